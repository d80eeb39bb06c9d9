"""Each strategy does what its description promises a player, and no ask or bid tricks it."""

import itertools

import pytest

from agents import registry
from agents.base import Turn
from agents.play import turn_for
from agents.scripted import bargainers
from agents.scripted.situation import public_prices, traits
from markets.engine.observation import observe
from markets.engine.protocol import AcceptOffer, Leave, MakeOffer, Role
from markets.engine.scenarios import Family, OpeningBid, Scenario
from tests.agents.scripted.answers import buyer_bids, scenario_for, seller_asks
from tests.agents.tables import Opponent, figures, listed_market
from tests.markets.engine.factories import B1, SELLER, Table, bilateral, catalogue, multi_buyer, offer, reject

BARGAINING = [
    "linear",
    "conceder",
    "boulware",
    "exponential",
    "resource-dependent",
    "aspiration",
    "tit-for-tat",
    "relative-tit-for-tat",
    "averaged-tit-for-tat",
    "random-tit-for-tat",
    "micro",
    "split-the-difference",
    "anchoring",
    "zeuthen",
    "rubinstein",
    "stahl",
    "satisficer",
    "hardliner",
    "late-hardliner",
    "posted-price",
    "zi-c",
]
"""Whoever names prices by rule, on either side."""

OPENING_BY_OWN_VALUE = {"exponential", "resource-dependent", "rubinstein", "stahl", "posted-price", "zi-c"}
"""Whose rule makes the first price depend on the own reservation value."""
SEEDS = range(40)


def first_turn(scenario: Scenario, slug: str) -> Turn:
    """A buyer's turn before anything happened, for its hidden traits."""
    return turn_for(Table(scenario).state, B1, registry.get(slug))


# --- Concession curves ------------------------------------------------------------------------------


def conceded_by_half_time(slug: str, seed: int) -> float:
    """Share of its whole concession that a seller has made after half its messages."""
    asks = seller_asks(slug, scenario_for(seed, rounds=9), [1] * 8)
    assert len(asks) == 9
    return (asks[0] - asks[4]) / (asks[0] - asks[-1])


@pytest.mark.parametrize("seed", SEEDS)
def test_boulware_waits_the_steady_one_is_half_way_and_the_conceder_gives_early(seed: int) -> None:
    assert conceded_by_half_time("boulware", seed) < 0.25
    assert conceded_by_half_time("linear", seed) == pytest.approx(0.5, abs=0.01)
    assert conceded_by_half_time("conceder", seed) > 0.7


@pytest.mark.parametrize("slug", ["boulware", "linear", "conceder"])
@pytest.mark.parametrize("seed", SEEDS[:10])
def test_a_time_dependent_seller_only_comes_down_and_keeps_a_margin_to_the_end(slug: str, seed: int) -> None:
    asks = seller_asks(slug, scenario_for(seed), [1] * 7)
    assert asks == sorted(asks, reverse=True)
    first, last = asks[0], asks[-1]
    assert 0.02 - 1e-3 <= (last - 3_000) / (first - 3_000) <= 0.12 + 1e-3


@pytest.mark.parametrize("slug", ["boulware", "linear", "conceder"])
@pytest.mark.parametrize("seed", SEEDS[:10])
def test_a_time_dependent_buyer_goes_up_whatever_it_is_asked(slug: str, seed: int) -> None:
    dear = buyer_bids(slug, scenario_for(seed), [16_000 - 100 * k for k in range(7)])
    cheap = buyer_bids(slug, scenario_for(seed), [11_000 - 100 * k for k in range(7)])
    assert dear == cheap == sorted(dear)
    assert len(dear) == 7
    assert dear[-1] < 9_000


@pytest.mark.parametrize("seed", SEEDS[:10])
def test_the_last_message_takes_whatever_does_not_lose(seed: int) -> None:
    table = Table(scenario_for(seed, rounds=2))
    buyer = Opponent(table, B1, "linear")
    table.play(SELLER, offer(9_500))
    assert isinstance(buyer.answer(), MakeOffer)
    table.play(SELLER, offer(9_000))
    assert isinstance(buyer.answer(), AcceptOffer)


@pytest.mark.parametrize("slug", ["boulware", "linear", "conceder"])
def test_a_price_as_good_as_the_own_next_offer_is_taken(slug: str) -> None:
    scenario = scenario_for(3)
    second = buyer_bids(slug, scenario, [12_000, 12_000])[1]
    for ask, taken in ((second, True), (second + 1, False)):
        table = Table(scenario)
        buyer = Opponent(table, B1, slug)
        table.play(SELLER, offer(12_000))
        buyer.answer()
        table.play(SELLER, offer(ask))
        assert isinstance(buyer.answer(), AcceptOffer) is taken


# --- Moves for moves --------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS[:10])
def test_tit_for_tat_moves_exactly_as_far_as_you_did(seed: int) -> None:
    bids = buyer_bids("tit-for-tat", scenario_for(seed), [11_500, 11_500, 11_200, 11_200, 10_700])
    steps = [after - before for before, after in itertools.pairwise(bids)]
    assert steps[0] > 0, "its own first step, so that two of a kind get going"
    assert steps[1:] == [300, 0, 500]


@pytest.mark.parametrize("seed", SEEDS[:10])
def test_tit_for_tat_as_a_seller_comes_down_by_what_the_bid_goes_up(seed: int) -> None:
    asks = seller_asks("tit-for-tat", scenario_for(seed), [2_000, 2_000, 2_600, 2_700])
    steps = [before - after for before, after in itertools.pairwise(asks)]
    assert steps[1:] == [0, 600, 100]


def test_splitting_the_difference_meets_in_the_middle_of_the_first_offers_and_stays() -> None:
    scenario = scenario_for(5)
    bids = buyer_bids("split-the-difference", scenario, [11_000, 10_900, 10_000])
    table = Table(multi_buyer(values=(9_000,), openings=(2_000,)))
    buyer = Opponent(table, B1, "split-the-difference")
    table.play(SELLER, offer(11_000, to=1))
    assert buyer.price() == (2_000 + 11_000) // 2
    assert bids[1] == bids[2] == pytest.approx((bids[0] + 11_000) / 2, abs=1)


def test_two_of_a_kind_come_to_terms() -> None:
    for slug in ("tit-for-tat", "split-the-difference", "linear", "boulware", "conceder"):
        done = figures(listed_market(Family.BILATERAL, turns=4), seller=slug, buyers=slug, episodes=60)
        assert done["allocation_quality"] > 0.8, slug


# --- Standing firm ----------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", SEEDS[:10])
def test_the_hardliner_never_moves(seed: int) -> None:
    asks = seller_asks("hardliner", scenario_for(seed), [2_000 + 500 * k for k in range(7)])
    bids = buyer_bids("hardliner", scenario_for(seed), [12_000 - 400 * k for k in range(7)])
    assert len(asks) == 8
    assert len(bids) == 7
    assert len(set(asks)) == len(set(bids)) == 1


def test_the_hardliner_would_rather_have_no_deal_than_a_worse_one() -> None:
    table = Table(scenario_for(1, opener=Role.BUYER, rounds=1))
    table.play(B1, offer(7_000))
    assert not isinstance(Opponent(table, SELLER, "hardliner").answer(), AcceptOffer)


@pytest.mark.parametrize("seed", SEEDS[:10])
def test_the_satisficer_takes_the_first_offer_that_is_good_enough_and_no_worse_one(seed: int) -> None:
    scenario = scenario_for(seed)
    first = buyer_bids("satisficer", scenario, [12_000])[0]
    theta = bargainers.Satisficer().theta(traits(first_turn(scenario, "satisficer")), 0)
    assert 0.35 <= theta <= 0.5
    enough = round(9_000 - theta * (9_000 - first))
    for ask, kind in ((enough - 2, AcceptOffer), (enough + 2, MakeOffer)):
        table = Table(scenario)
        table.play(SELLER, offer(ask))
        assert isinstance(Opponent(table, B1, "satisficer").answer(), kind)


@pytest.mark.parametrize("seed", SEEDS[:10])
def test_the_satisficer_wants_less_as_time_goes_by_but_never_nothing(seed: int) -> None:
    character = traits(first_turn(scenario_for(seed), "satisficer"))
    thetas = [bargainers.Satisficer().theta(character, messages) for messages in range(40)]
    assert thetas == sorted(thetas, reverse=True)
    assert thetas[0] > thetas[6] > thetas[-1] == pytest.approx(0.1)


# --- Zero intelligence ------------------------------------------------------------------------------


def test_constrained_zero_intelligence_spreads_over_the_profitable_side_only() -> None:
    asks = [seller_asks("zi-c", scenario_for(seed), [])[0] for seed in range(300)]
    assert min(asks) >= 3_000
    assert max(asks) <= 11_500
    below = sum(ask < (3_000 + 11_500) / 2 for ask in asks) / len(asks)
    assert 0.42 < below < 0.58


@pytest.mark.parametrize("family", list(Family))
def test_only_unconstrained_zero_intelligence_fails_the_constraint(family: Family) -> None:
    market = listed_market(family)
    control = figures(market, seller="zi-u", buyers="threshold", episodes=100)
    assert control["constraint_adherence_by_role"]["seller"] < 0.9
    assert control["constraint_adherence_by_role"]["buyer"] == 1
    assert figures(market, seller="linear", buyers="zi-u", episodes=100)["constraint_adherence"] < 0.9
    for slug in BARGAINING:
        assert figures(market, seller=slug, buyers=slug, episodes=20)["constraint_adherence"] == 1, slug


# --- Nobody is tricked ------------------------------------------------------------------------------


@pytest.mark.parametrize("slug", [*BARGAINING, "impatient", "threshold", "logit"])
@pytest.mark.parametrize("seed", SEEDS[:12])
def test_an_absurd_ask_makes_a_buyer_leave(slug: str, seed: int) -> None:
    table = Table(scenario_for(seed))
    table.play(SELLER, offer(666 * 10_000))
    assert isinstance(Opponent(table, B1, slug).answer(), Leave)


@pytest.mark.parametrize("slug", BARGAINING)
@pytest.mark.parametrize("seed", SEEDS[:12])
def test_asking_far_too_much_first_buys_no_better_bid_later(slug: str, seed: int) -> None:
    """The top of the prior is 115 dollars; asks above it that do not drive a buyer away count as that."""
    scenario = scenario_for(seed)
    top = public_prices(observe(Table(scenario).state, B1), 0).top
    honest = buyer_bids(slug, scenario, [top, 10_000, 9_500])
    absurd = buyer_bids(slug, scenario, [top + 5_500, 10_000, 9_500])
    assert absurd == honest


@pytest.mark.parametrize("slug", BARGAINING)
@pytest.mark.parametrize("seed", SEEDS[:12])
def test_bidding_next_to_nothing_first_buys_no_better_ask_later(slug: str, seed: int) -> None:
    scenario = scenario_for(seed)
    floor = public_prices(observe(Table(scenario).state, SELLER), 0).plausible_bid
    honest = seller_asks(slug, scenario, [floor, floor, 2_500])
    absurd = seller_asks(slug, scenario, [1, floor, 2_500])
    assert absurd == honest


def test_raising_and_lowering_the_ask_again_is_no_concession() -> None:
    scenario = scenario_for(2)
    held = buyer_bids("tit-for-tat", scenario, [11_000, 10_500, 10_500, 10_500])
    cycled = buyer_bids("tit-for-tat", scenario, [11_000, 10_500, 11_000, 10_500])
    assert cycled == held


@pytest.mark.parametrize("seed", SEEDS[:12])
def test_a_buyer_does_not_sit_through_the_same_hopeless_ask_for_ever(seed: int) -> None:
    bids = buyer_bids("linear", scenario_for(seed, rounds=12), [11_400] * 11)
    assert 3 <= len(bids) <= 5


def test_a_buyer_stays_where_the_repeated_ask_is_within_its_value() -> None:
    assert len(buyer_bids("boulware", scenario_for(1, rounds=9), [8_900] * 8)) == 8


def test_a_seller_that_cannot_gain_leaves_at_once() -> None:
    for slug in BARGAINING:
        table = Table(bilateral(value=9_000, cost=11_500, opener=Role.SELLER))
        assert isinstance(Opponent(table, SELLER, slug).answer(), Leave), slug


def test_a_first_bid_tells_little_about_a_high_value() -> None:
    """Bids start from the public prior, so two rich buyers open alike."""
    for slug in sorted(set(BARGAINING) - OPENING_BY_OWN_VALUE):
        bids = {
            buyer_bids(slug, bilateral(opener=Role.SELLER, value=value, seed=4), [11_400])[0]
            for value in (9_000, 11_000)
        }
        assert len(bids) == 1, slug


# --- Several buyers and products --------------------------------------------------------------------


def test_a_buyer_expects_its_equal_part_of_the_sellers_turns() -> None:
    """Eight turns and two buyers: four answers, so the fourth takes anything within the value."""
    table = Table(multi_buyer(values=(9_000, 5_000), turns=8))
    buyer = Opponent(table, B1, "boulware")
    for _ in range(3):
        table.play(SELLER, offer(9_000, to=1))
        assert isinstance(buyer.answer(), MakeOffer)
    table.play(SELLER, offer(9_000, to=1))
    assert isinstance(buyer.answer(), AcceptOffer)


def test_concessions_start_from_the_bid_that_the_market_made() -> None:
    table = Table(multi_buyer(values=(9_000, 5_000), openings=(2_750, 2_600)))
    table.play(SELLER, offer(11_000, to=1))
    assert Opponent(table, B1, "linear").price() == 2_750


@pytest.mark.parametrize("slug", sorted(set(BARGAINING) - {"posted-price", "zi-c"}))
def test_nobody_goes_back_behind_the_bid_that_the_market_made(slug: str) -> None:
    """A lower bid would replace the one that stands and that the seller could have taken."""
    for seed in range(6):
        table = Table(multi_buyer(values=(9_000, 5_000), openings=(2_990, 2_600), seed=seed, turns=12))
        buyer = Opponent(table, B1, slug)
        bids = [2_990]
        for ask in (11_000, 10_800, 10_600, 10_400):
            table.play(SELLER, offer(ask, to=1))
            bids.append(buyer.price())
        if slug == "random-tit-for-tat":
            assert min(bids) == 2_990
        else:
            assert bids == sorted(bids)


def test_a_seller_goes_round_the_buyers_and_passes_over_those_that_left() -> None:
    table = Table(multi_buyer(turns=8))
    seller = Opponent(table, SELLER, "boulware")
    asked = []
    for _ in range(5):
        action = seller.answer()
        asked.append(action.buyer)
        if action.buyer == 2:
            table.play("buyer-2", Leave())
        else:
            table.play(f"buyer-{action.buyer}", reject(len(table.state.thread(action.buyer).offers), to=action.buyer))
    assert asked == [1, 2, 3, 1, 3]


def test_a_seller_takes_the_better_of_two_good_bids() -> None:
    table = Table(multi_buyer(turns=3))
    for buyer, bid in ((1, 4_100), (2, 6_900)):
        table.play(SELLER, offer(11_000, to=buyer))
        table.play(f"buyer-{buyer}", offer(bid))
    action = Opponent(table, SELLER, "linear").answer()
    assert isinstance(action, AcceptOffer)
    assert action.buyer == 2


def test_a_buyer_bids_on_what_gives_it_most_at_the_prices_asked() -> None:
    scenario = catalogue(values=((9_000, 9_500), (8_000, 7_500)))
    table = Table(scenario)
    table.play(SELLER, offer(9_900, to=1, product=0))
    bid = Opponent(table, B1, "linear").answer()
    assert isinstance(bid, MakeOffer)
    assert bid.product == 1


def test_a_buyer_takes_the_better_of_two_standing_asks() -> None:
    table = Table(catalogue(values=((9_000, 9_500), (8_000, 7_500)), turns=2))
    table.play(SELLER, offer(8_900, to=1, product=0))
    table.play(B1, offer(100, product=0))
    table.play(SELLER, offer(7_000, to=1, product=1))
    action = Opponent(table, B1, "linear").answer()
    assert isinstance(action, AcceptOffer)
    assert action.offer_id == 3


def test_a_seller_offers_a_buyer_what_it_has_bid_on() -> None:
    table = Table(catalogue(openings=(OpeningBid(1, 1, 2_600), OpeningBid(2, 0, 2_700))))
    seller = Opponent(table, SELLER, "linear")
    first = seller.answer()
    table.play(B1, offer(2_700, product=1))
    second = seller.answer()
    assert [(a.buyer, a.product) for a in (first, second)] == [(1, 1), (2, 0)]


def test_every_bargainer_is_in_the_registry_with_its_class() -> None:
    built = [type(registry.get(slug).build()) for slug in BARGAINING]
    assert all(issubclass(each, bargainers.Bargainer) for each in built)
    assert built.count(bargainers.TimeDependent) == 3
    assert len(set(built)) == len(BARGAINING) - 2, "only the three schedules of one kind share a class"
