"""Agents named after a theorem play its formula; a share reported under that name rests on it."""

import itertools

import msgspec
import pytest

from agents import registry
from agents.play import turn_for
from agents.scripted.beliefs import expected_reservation_cents
from agents.scripted.equilibria import offers_left, risk, rubinstein_share, stahl_share
from agents.scripted.situation import scaled, traits
from markets.engine import priors
from markets.engine.protocol import AcceptOffer, MakeOffer, RejectOffer, Role, Say
from markets.engine.scenarios import Alternating, Family, Prior, Recipe, Scenario
from tests.agents.scripted.answers import buyer_bids, scenario_for, seller_asks
from tests.agents.tables import UNIFORM, Opponent, figures, listed_market, money_market
from tests.markets.engine.factories import B1, SELLER, Table, bilateral, multi_buyer, offer

SEEDS = range(10)
FREE = priors.ConstantSpec(value=0)


def uniform_duel(rounds: int = 6, *, value: int = 9_000, cost: int = 0, opener: Role = Role.SELLER) -> Scenario:
    """Values and costs uniform on 0 to 100 dollars."""
    return msgspec.structs.replace(
        bilateral(value=value, cost=cost, rounds=rounds, opener=opener),
        prior=Prior(value_spec=UNIFORM, cost_spec=UNIFORM, scales_cents=(100,)),
    )


# --- Risk -------------------------------------------------------------------------------------------


def test_risk_is_the_share_of_the_own_offers_gain_that_giving_in_costs() -> None:
    assert risk(own_offer_gain=80, other_offer_gain=60) == 0.25
    assert risk(own_offer_gain=80, other_offer_gain=-5) == 1, "an offer at a loss is as good as none"
    assert risk(own_offer_gain=0, other_offer_gain=0) == 1, "nothing to lose"
    assert risk(own_offer_gain=50, other_offer_gain=70) == 0


@pytest.mark.parametrize("seed", SEEDS)
def test_the_party_with_the_lower_risk_concedes_just_enough_to_make_the_other_the_lower(seed: int) -> None:
    """Seller at cost 30, its first ask about 105; the bid of 20 makes the buyer's value 72 on average."""
    table = Table(scenario_for(seed, rounds=8))
    seller = Opponent(table, SELLER, "zeuthen")
    first = seller.price()
    table.play(B1, offer(3_500))
    seen = table.sees(SELLER)
    estimate = expected_reservation_cents(seen, seen.threads[0], 0)
    mine = risk(own_offer_gain=first - 3_000, other_offer_gain=500)
    theirs = risk(own_offer_gain=estimate - 3_500, other_offer_gain=estimate - first)
    assert mine <= theirs
    second = seller.price()
    assert second < first
    for price, is_above in ((second, True), (second + 2, False)):
        now_mine = risk(own_offer_gain=price - 3_000, other_offer_gain=500)
        now_theirs = risk(own_offer_gain=estimate - 3_500, other_offer_gain=estimate - price)
        assert (now_mine > now_theirs) is is_above


def test_the_party_with_the_higher_risk_repeats_its_offer() -> None:
    asks = seller_asks("zeuthen", scenario_for(1, rounds=8), [3_500, 3_500, 3_500])
    assert asks[1] == asks[2] == asks[3]


def test_two_risk_weighers_share_about_equally_and_sometimes_wait_for_each_other_in_vain() -> None:
    """Each must guess what the other has to lose, so both may think that it is the other's turn."""
    market = listed_market(Family.BILATERAL, turns=10, value_spec=priors.UniformSpec(low=0.7, high=1.2))
    done = figures(market, seller="zeuthen", buyers="zeuthen", episodes=120)
    assert 0.5 < done["deal_rate"] < 1
    assert 0.35 < done["seller_extraction"] / done["allocation_quality"] < 0.65


# --- Discounting ------------------------------------------------------------------------------------


@pytest.mark.parametrize(("delta", "share"), [(0.9, 0.5263), (0.95, 0.5128), (0.99, 0.5025)])
def test_the_first_mover_of_rubinstein_keeps_one_over_one_plus_delta(delta: float, share: float) -> None:
    assert rubinstein_share(own_delta=delta, other_delta=delta) == pytest.approx(share, abs=5e-5)


@pytest.mark.parametrize(("offers", "share"), [(1, 1.0), (2, 0.1), (8, 0.2998), (20, 0.4623)])
def test_the_horizon_of_stahl_gives_the_power_to_whoever_offers_last(offers: int, share: float) -> None:
    assert stahl_share(own_delta=0.9, other_delta=0.9, offers=offers) == pytest.approx(share, abs=5e-5)


def test_a_far_horizon_is_no_horizon() -> None:
    for own, other in ((0.9, 0.8), (0.7, 0.95)):
        far = stahl_share(own_delta=own, other_delta=other, offers=400)
        assert far == pytest.approx(rubinstein_share(own_delta=own, other_delta=other), abs=1e-9)


def test_the_more_patient_party_gets_more() -> None:
    assert rubinstein_share(own_delta=0.95, other_delta=0.8) > rubinstein_share(own_delta=0.8, other_delta=0.95)


@pytest.mark.parametrize("slug", ["rubinstein", "stahl"])
@pytest.mark.parametrize("seed", SEEDS)
def test_the_first_ask_is_the_equilibrium_split_of_the_expected_gain(slug: str, seed: int) -> None:
    """Value uniform on 0 to 100 and cost 40: the expected value of a buyer worth meeting is 70."""
    scenario = msgspec.structs.replace(uniform_duel(cost=4_000), seed=seed)
    table = Table(scenario)
    own = traits(turn_for(table.state, SELLER, registry.get(slug)))
    deltas = {"own_delta": scaled(own.temper, (0.8, 0.97)), "other_delta": scaled(own.margin, (0.8, 0.97))}
    share = rubinstein_share(**deltas) if slug == "rubinstein" else stahl_share(**deltas, offers=11)
    assert Opponent(table, SELLER, slug).price() == pytest.approx(4_000 + share * 3_000, abs=15)


@pytest.mark.parametrize("seed", SEEDS)
def test_an_offer_is_taken_that_gives_what_the_own_proposal_would_once_discounted(seed: int) -> None:
    scenario = scenario_for(seed, opener=Role.SELLER)
    own = traits(turn_for(Table(scenario).state, B1, registry.get("rubinstein")))
    mine, theirs = scaled(own.temper, (0.8, 0.97)), scaled(own.margin, (0.8, 0.97))
    kept = mine * rubinstein_share(own_delta=mine, other_delta=theirs)
    answers = []
    for ask in range(3_000, 9_000, 150):
        table = Table(scenario)
        table.play(SELLER, offer(ask))
        seen = table.sees(B1)
        gain = 9_000 - expected_reservation_cents(seen, seen.threads[0], 0)
        good = 9_000 - ask >= kept * gain
        answers.append(good)
        expected = AcceptOffer if good else MakeOffer
        assert isinstance(Opponent(table, B1, "rubinstein").answer(), expected), ask
    assert answers[0]
    assert not answers[-1]


@pytest.mark.parametrize("slug", ["rubinstein", "stahl", "zeuthen"])
@pytest.mark.parametrize("seed", SEEDS)
def test_nobody_takes_an_offer_back(slug: str, seed: int) -> None:
    asks = seller_asks(slug, scenario_for(seed), [2_000, 2_500, 4_000, 4_000, 5_000, 5_500])
    assert asks == sorted(asks, reverse=True)
    bids = buyer_bids(slug, scenario_for(seed), [11_400, 11_000, 10_400, 10_000, 9_900])
    assert bids == sorted(bids)


def test_offers_left_count_those_that_can_still_be_answered() -> None:
    """Of three rounds the side that opens has three offers and the other two, its last word being none."""
    for opener, left in ((Role.SELLER, 5), (Role.BUYER, 4)):
        table = Table(bilateral(rounds=3, opener=opener))
        if opener is Role.BUYER:
            table.play(B1, offer(2_000))
        seen = table.sees(SELLER)
        assert offers_left(seen, seen.threads[0]) == left
    seen = Table(multi_buyer(turns=9)).sees(SELLER)
    assert offers_left(seen, seen.threads[0]) == 5, "nine turns are three for each of three buyers"
    last = Table(bilateral(rounds=1))
    last.play(B1, offer(2_000))
    assert offers_left(last.sees(SELLER), last.sees(SELLER).threads[0]) == 1


# --- One price --------------------------------------------------------------------------------------


def duel(**changes: object) -> Recipe:
    """One buyer with a value uniform on 0 to 100, one seller with cost 0, in one round."""
    return Recipe(
        family=Family.BILATERAL,
        mechanism=Alternating(1, Role.SELLER),
        value_spec=UNIFORM,
        cost_spec=FREE,
        cost_prior=FREE,
        unit_is_money=True,
        **changes,
    )


@pytest.mark.parametrize("slug", ["posted-price", "one-shot-seller"])
def test_a_posted_price_takes_half_and_leaves_a_quarter_of_the_gains_unrealised(slug: str) -> None:
    """Uniform value, cost 0: price 1/2, seller's share .5, welfare .75, deals .5 (Myerson 1981).

    2,000 games; the standard error of each figure is below .012.
    """
    done = figures(duel(), seller=slug, buyers="threshold", episodes=2_000)
    assert done["seller_extraction"] == pytest.approx(0.5, abs=0.03)
    assert done["allocation_quality"] == pytest.approx(0.75, abs=0.03)
    assert done["deal_rate"] == pytest.approx(0.5, abs=0.03)


def test_with_costs_unknown_too_the_seller_posts_the_middle_of_cost_and_top() -> None:
    """Both uniform: half of the gainful pairs trade, .75 of the gains are realised, .5 go to the seller."""
    both = duel()
    market = msgspec.structs.replace(both, cost_spec=UNIFORM, cost_prior=UNIFORM)
    done = figures(market, seller="posted-price", buyers="threshold", episodes=3_000)
    assert done["deal_rate"] == pytest.approx(0.25, abs=0.025)
    assert done["allocation_quality"] == pytest.approx(0.75, abs=0.03)
    assert done["seller_extraction"] == pytest.approx(0.5, abs=0.03)


@pytest.mark.parametrize(("buyers", "share"), [(2, 0.577), (4, 0.669), (8, 0.760)])
def test_one_price_for_several_buyers_is_the_best_common_one(buyers: int, share: float) -> None:
    market = money_market(buyers=buyers, turns=buyers)
    asked = figures(market, seller="posted-price", buyers="threshold", episodes=1_200)
    assert asked["seller_extraction"] == pytest.approx(share, abs=0.025)


def test_a_posted_price_is_never_given_up() -> None:
    asks = seller_asks("posted-price", scenario_for(1), [2_000, 4_000, 5_000, 6_000, 6_500])
    assert len(set(asks)) == 1
    table = Table(bilateral(rounds=1))
    table.play(B1, offer(asks[0] - 1))
    assert not isinstance(Opponent(table, SELLER, "posted-price").answer(), AcceptOffer)


def test_a_buyers_posted_price_is_half_way_to_a_uniform_cost() -> None:
    """Value 80 and costs uniform on 0 to 100: q = 40."""
    table = Table(uniform_duel(value=8_000, opener=Role.BUYER))
    assert Opponent(table, B1, "posted-price").price() == pytest.approx(4_000, abs=80)


def test_the_one_shot_seller_asks_half_way_between_cost_and_the_highest_value() -> None:
    table = Table(bilateral(cost=5_000, opener=Role.SELLER))
    assert Opponent(table, SELLER, "one-shot-seller").price() == (5_000 + 11_500) // 2


@pytest.mark.parametrize(("value", "bid"), [(8_000, 7_000), (14_000, 9_000)])
def test_the_one_shot_buyer_bids_half_way_to_the_lowest_cost_and_no_more_than_the_highest(value: int, bid: int) -> None:
    """Costs from .6 to .9 of 100 dollars: min((b + 60) / 2, 90)."""
    scenario = msgspec.structs.replace(
        bilateral(value=value),
        prior=Prior(
            value_spec=priors.UniformSpec(low=0.4, high=1.5),
            cost_spec=priors.UniformSpec(low=0.6, high=0.9),
            scales_cents=(10_000,),
        ),
    )
    assert Opponent(Table(scenario), B1, "one-shot-buyer").price() == bid


@pytest.mark.parametrize("turns", [1, 2, 4, 8])
def test_rising_bids_take_all_but_one_part_in_t_plus_one_from_a_threshold_seller(turns: int) -> None:
    """Costs uniform up to the value: T / (T + 1) of the first best, as for a seller's falling offers.
    800 games; the standard error is below .015."""
    market = Recipe(
        family=Family.BILATERAL,
        mechanism=Alternating(turns, Role.BUYER),
        value_spec=priors.ConstantSpec(value=100),
        cost_spec=UNIFORM,
        cost_prior=UNIFORM,
        unit_is_money=True,
    )
    done = figures(market, seller="threshold-seller", buyers="rising-bids", episodes=800)
    bought = done["allocation_quality"] - done["seller_extraction"]
    assert bought == pytest.approx(turns / (turns + 1), abs=0.035)


def test_rising_bids_leave_the_last_word_out_of_the_plan() -> None:
    """Where the seller opens, nobody answers the buyer's last message: two bids in three rounds."""
    bids = buyer_bids("rising-bids", uniform_duel(3, value=9_000), [9_900, 9_800, 9_700])
    assert bids == pytest.approx([3_000, 6_000], abs=80)


def test_a_threshold_seller_takes_its_cost_and_not_a_cent_less() -> None:
    for bid, kind in ((5_000, AcceptOffer), (4_999, RejectOffer)):
        table = Table(bilateral(cost=5_000))
        table.play(B1, offer(bid))
        assert isinstance(Opponent(table, SELLER, "threshold-seller").answer(), kind)
    assert isinstance(Opponent(Table(bilateral(opener=Role.SELLER)), SELLER, "threshold-seller").answer(), Say)


@pytest.mark.parametrize("slug", ["linear", "conceder", "boulware", "exponential", "aspiration"])
def test_waiting_takes_nearly_everything_from_a_buyer_with_a_schedule(slug: str) -> None:
    """So shares against schedules alone say nothing: asking a cent less each time and taking the
    last bid gets all but the margin that our schedules keep."""
    shares = []
    for seed in range(40):
        table = Table(scenario_for(seed, opener=Role.BUYER, rounds=6))
        buyer = Opponent(table, B1, slug)
        for step in range(6):
            bid = buyer.price()
            if step < 5:
                table.play(SELLER, offer(11_000 - step))
        shares.append((bid - 3_000) / (9_000 - 3_000))
    assert sum(shares) / len(shares) > 0.9


def test_pairs_of_shares_are_exhausted() -> None:
    """Proposer's and responder's parts of one split add up to the whole."""
    for own, other in itertools.product((0.8, 0.9), repeat=2):
        kept = rubinstein_share(own_delta=own, other_delta=other)
        given = other * rubinstein_share(own_delta=other, other_delta=own)
        assert kept + given == pytest.approx(1)
