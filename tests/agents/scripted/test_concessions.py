"""Each rule concedes as its name says: a label on a curve in a paper must mean that curve."""

import itertools
import math

import pytest

from agents import registry
from agents.play import turn_for
from agents.scripted import concessions
from agents.scripted.bargainers import MARGIN
from agents.scripted.situation import Traits, public_prices, scaled, traits
from markets.engine.observation import observe
from markets.engine.protocol import AcceptOffer, Leave, MakeOffer, RejectOffer, Role, Say
from markets.engine.scenarios import Family
from tests.agents.scripted.answers import buyer_bids, scenario_for, seller_asks
from tests.agents.tables import Opponent, figures, listed_market
from tests.markets.engine.factories import B1, SELLER, Table, multi_buyer, offer

SEEDS = range(12)
COST, VALUE = 3_000, 9_000


def character(slug: str, seed: int, party: str = SELLER) -> Traits:
    """The hidden traits of an agent in the game of a seed."""
    return traits(turn_for(Table(scenario_for(seed)).state, party, registry.get(slug)))


# --- Schedules --------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
def test_the_exponential_seller_follows_its_curve(seed: int) -> None:
    asks = seller_asks("exponential", scenario_for(seed, rounds=9), [1] * 8)
    own = character("exponential", seed)
    k, beta = scaled(own.opening, (0.02, 0.10)), scaled(own.temper, (0.5, 3.0))
    kept = 1 - scaled(own.margin, MARGIN)
    start = (asks[0] - COST * k * kept) / (1 - k * kept)
    for step, ask in enumerate(asks):
        alpha = kept * math.exp((1 - step / 8) ** beta * math.log(k))
        assert ask == pytest.approx(COST + (start - COST) * (1 - alpha), abs=1.5)


@pytest.mark.parametrize("seed", SEEDS)
def test_resources_are_messages_left_for_each_open_buyer(seed: int) -> None:
    """With six messages left alpha is k + (1 - k) e^-6; with none it is 1, less the margin."""
    asks = seller_asks("resource-dependent", scenario_for(seed, rounds=7), [1] * 6)
    own = character("resource-dependent", seed)
    k, kept = scaled(own.temper, (0, 0.10)), 1 - scaled(own.margin, MARGIN)

    def alpha(left: int) -> float:
        return kept * (k + (1 - k) * math.exp(-left))

    start = COST + (asks[0] - COST) / (1 - alpha(6))
    for step, ask in enumerate(asks):
        assert ask == pytest.approx(COST + (start - COST) * (1 - alpha(6 - step)), abs=1.5)


def test_a_seller_of_many_hurries_more_than_one_with_a_single_buyer() -> None:
    """Seven turns after the first: alone with a buyer that is plenty, for four it is not."""
    alone = observe(Table(multi_buyer(values=(9_000,))).state, SELLER)
    four = observe(Table(multi_buyer(values=(9_000,) * 4)).state, SELLER)
    assert concessions.messages_per_buyer(alone) == 7
    assert concessions.messages_per_buyer(four) == 7 / 4


@pytest.mark.parametrize("seed", SEEDS)
def test_an_aspiration_falls_by_the_power_that_its_character_draws(seed: int) -> None:
    asks = seller_asks("aspiration", scenario_for(seed, rounds=9), [1] * 8)
    own = character("aspiration", seed)
    exponent = concessions.Aspiration().exponent(own.temper)
    reserve = scaled(own.margin, MARGIN)
    top = public_prices(observe(Table(scenario_for(seed)).state, SELLER), 0).top
    assert asks[0] == top, "the best price conceivable comes first"
    for step, ask in enumerate(asks):
        utility = (ask - COST) / (top - COST)
        assert utility == pytest.approx(reserve + (1 - reserve) * (1 - (step / 8) ** exponent), abs=1e-3)


def test_all_three_exponents_occur() -> None:
    drawn = {concessions.Aspiration().exponent(share / 10) for share in range(10)}
    assert drawn == {4.0, 1.0, 0.25}
    assert concessions.Aspiration().exponent(1 - 1e-12) == 0.25


@pytest.mark.parametrize("slug", ["exponential", "resource-dependent", "aspiration"])
@pytest.mark.parametrize("seed", SEEDS)
def test_a_schedule_only_goes_one_way_and_stops_short_of_the_limit(slug: str, seed: int) -> None:
    bids = buyer_bids(slug, scenario_for(seed), [11_400 - 100 * step for step in range(7)])
    assert bids == sorted(bids)
    assert len(bids) == 7
    assert bids[-1] < VALUE


# --- Anchors ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
def test_a_first_offer_pulls_the_price_by_the_weight_of_the_anchor(seed: int) -> None:
    """At its last message the price is w times the anchor plus (1 - w) times the prior mean."""
    weight = scaled(character("anchoring", seed).temper, (0.3, 0.5))
    low = seller_asks("anchoring", scenario_for(seed, rounds=6), [4_000] + [10] * 4)
    high = seller_asks("anchoring", scenario_for(seed, rounds=6), [5_000] + [10] * 4)
    assert low[0] == high[0]
    assert high[-1] - low[-1] == pytest.approx(weight * 1_000, abs=1.5)
    mean_of_bands = 10_000 * (0.475 + 0.725 + 1.075) / 3
    assert low[-1] == pytest.approx(weight * 4_000 + (1 - weight) * mean_of_bands, abs=20)


@pytest.mark.parametrize("seed", SEEDS)
def test_an_anchored_buyer_never_goes_beyond_its_value(seed: int) -> None:
    bids = buyer_bids("anchoring", scenario_for(seed, rounds=6), [11_500] * 5)
    assert max(bids) <= VALUE


def test_the_late_hardliner_differs_from_the_hardliner_at_its_last_message_alone() -> None:
    for slug, kind in (("hardliner", RejectOffer), ("late-hardliner", AcceptOffer)):
        table = Table(scenario_for(1, opener=Role.SELLER, rounds=3))
        buyer = Opponent(table, B1, slug)
        bids = []
        for ask in (8_900, 8_800):
            table.play(SELLER, offer(ask))
            bids.append(buyer.price())
        assert len(set(bids)) == 1
        table.play(SELLER, offer(8_700))
        assert isinstance(buyer.answer(), kind)


# --- Imitation --------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS)
def test_relative_tit_for_tat_concedes_in_the_same_proportion(seed: int) -> None:
    offered = [11_500, 11_500, 11_040, 10_600, 10_600, 9_900]
    bids = buyer_bids("relative-tit-for-tat", scenario_for(seed), offered)
    for turn in range(2, len(bids)):
        assert bids[turn] / bids[turn - 1] == pytest.approx(offered[turn - 1] / offered[turn], rel=1e-3)
    assert bids[1] > bids[0], "its own first step"


@pytest.mark.parametrize("seed", SEEDS)
def test_relative_tit_for_tat_sells_by_the_same_proportion(seed: int) -> None:
    offered = [4_000, 4_000, 4_400, 4_400, 5_000]
    asks = seller_asks("relative-tit-for-tat", scenario_for(seed), offered)
    for turn in range(3, len(asks)):
        assert asks[turn] / asks[turn - 1] == pytest.approx(offered[turn - 2] / offered[turn - 1], rel=1e-3)


@pytest.mark.parametrize("seed", SEEDS)
def test_averaged_tit_for_tat_spreads_one_large_move_over_its_window(seed: int) -> None:
    window = concessions.AveragedTitForTat().window(character("averaged-tit-for-tat", seed, B1).margin)
    assert window in (2, 3, 4)
    bids = buyer_bids("averaged-tit-for-tat", scenario_for(seed, rounds=14), [8_800] * 5 + [7_920] * 6)
    factors = [after / before for before, after in itertools.pairwise(bids)]
    assert factors[1:4] == [1, 1, 1]
    assert factors[4 : 4 + window] == pytest.approx([(8_800 / 7_920) ** (1 / window)] * window, rel=1e-3)
    assert set(factors[4 + window :]) <= {1}
    assert math.prod(factors[1:]) == pytest.approx(8_800 / 7_920, rel=2e-3)


@pytest.mark.parametrize("seed", SEEDS)
def test_random_tit_for_tat_stays_near_the_move_it_answers(seed: int) -> None:
    noise = scaled(character("random-tit-for-tat", seed, B1).margin, (0.005, 0.02))
    offered = [11_500, 11_500, 11_000, 10_400, 10_400]
    bids = buyer_bids("random-tit-for-tat", scenario_for(seed), offered)
    off = []
    for turn in range(2, len(bids)):
        expected = bids[turn - 1] + offered[turn - 1] - offered[turn]
        off.append(abs(bids[turn] - expected))
        assert off[-1] <= noise * bids[turn - 1] + 1
    assert any(off), "chance plays a part"


@pytest.mark.parametrize("slug", ["relative-tit-for-tat", "averaged-tit-for-tat"])
def test_raising_and_lowering_again_wins_nothing_from_an_imitator(slug: str) -> None:
    scenario = scenario_for(2)
    held = buyer_bids(slug, scenario, [11_000, 10_500, 10_500, 10_500, 10_500])
    cycled = buyer_bids(slug, scenario, [11_000, 10_500, 11_000, 10_500, 10_500])
    assert cycled == held


@pytest.mark.parametrize("seed", SEEDS)
def test_micro_makes_a_new_bid_only_against_as_many_different_ones(seed: int) -> None:
    offered = [11_000, 10_900, 10_900, 10_900, 10_800, 10_700]
    bids = buyer_bids("micro", scenario_for(seed, rounds=12), offered)
    for turn in range(1, len(bids)):
        made, met = len(set(bids[:turn])), len(set(offered[: turn + 1]))
        assert (bids[turn] > bids[turn - 1]) is (made <= met), turn
        assert bids[turn] >= bids[turn - 1]


def test_two_of_micro_come_together_step_by_step() -> None:
    done = figures(listed_market(Family.BILATERAL, turns=8), seller="micro", buyers="micro", episodes=80)
    assert done["allocation_quality"] > 0.8


# --- Chance -----------------------------------------------------------------------------------------


def test_the_coin_tosser_does_everything_that_it_may() -> None:
    seen: set[type] = set()
    for seed in range(200):
        table = Table(scenario_for(seed))
        table.play(SELLER, offer(8_000))
        seen.add(type(Opponent(table, B1, "random").answer()))
    assert seen == {AcceptOffer, RejectOffer, MakeOffer, Say}


def test_the_coin_tosser_takes_no_loss_and_names_no_losing_price() -> None:
    for seed in range(100):
        table = Table(scenario_for(seed))
        table.play(SELLER, offer(9_001))
        action = Opponent(table, B1, "random").answer()
        assert not isinstance(action, AcceptOffer | Leave)
        assert not isinstance(action, MakeOffer) or action.price_cents <= VALUE
