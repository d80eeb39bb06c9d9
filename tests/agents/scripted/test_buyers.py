"""Buyers that only answer: the yardstick of every ladder, so their rule must be exactly the stated one."""

import pytest

from agents import registry
from agents.play import turn_for
from agents.scripted.buyers import Impatient, Logit, Shading
from agents.scripted.situation import scaled, traits
from markets.engine.priors import UniformSpec
from markets.engine.protocol import AcceptOffer, Action, Leave, MakeOffer, RejectOffer, Role, Say
from markets.engine.scenarios import Family
from tests.agents.tables import Opponent, figures, listed_market, money_market
from tests.markets.engine.factories import B1, SELLER, Table, bilateral, catalogue, multi_buyer, offer, say

VALUE = 7_200


def answer(slug: str, ask: int, *, seed: int = 1) -> Action:
    table = Table(multi_buyer(values=(4_800, VALUE), seed=seed))
    table.play(SELLER, offer(ask, to=2))
    return Opponent(table, "buyer-2", slug).answer()


@pytest.mark.parametrize("seed", range(20))
def test_the_threshold_buyer_takes_its_value_and_not_a_cent_more(seed: int) -> None:
    assert isinstance(answer("threshold", VALUE, seed=seed), AcceptOffer)
    assert isinstance(answer("threshold", VALUE + 1, seed=seed), RejectOffer)


@pytest.mark.parametrize("slug", ["threshold", "logit", "strategic"])
@pytest.mark.parametrize("seed", range(20))
def test_no_ask_up_to_the_top_of_the_prior_drives_a_silent_buyer_away(slug: str, seed: int) -> None:
    """Else a ladder that starts at the top would not earn what the theory says it does."""
    assert isinstance(answer(slug, 11_500, seed=seed), RejectOffer)


@pytest.mark.parametrize("slug", ["threshold", "logit", "strategic"])
def test_a_silent_buyer_invites_an_offer_where_it_has_none_to_answer(slug: str) -> None:
    opening = Table(bilateral(opener=Role.BUYER))
    assert isinstance(Opponent(opening, B1, slug).answer(), Say)
    spoken = Table(multi_buyer())
    spoken.play(SELLER, say("Hello?", to=1))
    assert isinstance(Opponent(spoken, B1, slug).answer(), Say)


def test_the_impatient_buyer_opens_with_a_bid() -> None:
    assert isinstance(Opponent(Table(bilateral(opener=Role.BUYER)), B1, "impatient").answer(), MakeOffer)


def test_a_threshold_buyer_takes_the_best_of_what_stands() -> None:
    table = Table(catalogue(values=((9_000, 9_000), (1, 1))))
    buyer = Opponent(table, B1, "logit")
    table.play(SELLER, offer(9_001, to=1, product=0))
    assert isinstance(buyer.answer(), RejectOffer)
    table.play(SELLER, offer(6_000, to=1, product=1))
    assert isinstance(Opponent(table, B1, "threshold").answer(), AcceptOffer)


def acceptance(ask: int, episodes: int = 400) -> float:
    return sum(isinstance(answer("logit", ask, seed=seed), AcceptOffer) for seed in range(episodes)) / episodes


def test_the_hesitant_buyer_is_surer_the_more_it_gains_and_never_pays_above_its_value() -> None:
    at_value, worthwhile, bargain = acceptance(VALUE), acceptance(VALUE - 500), acceptance(VALUE - 3_000)
    assert 0.42 < at_value < 0.58, "at its value it is of two minds"
    assert at_value + 0.1 < worthwhile < bargain
    assert bargain > 0.97
    assert acceptance(VALUE + 1, 50) == 0


def test_the_hesitant_buyers_odds_follow_its_own_tau() -> None:
    """Seen over many buyers, accepted and expected shares agree."""
    gain, expected, taken = 400, 0.0, 0
    for seed in range(400):
        table = Table(multi_buyer(values=(4_800, VALUE), seed=seed))
        turn = turn_for(table.state, "buyer-2", registry.get("logit"))
        tau = scaled(traits(turn).temper, Logit.TAU) * 7_250  # 72.50 is the median of the bands.
        expected += 1 / (1 + 2.718281828 ** (-gain / tau))
        taken += isinstance(answer("logit", VALUE - gain, seed=seed), AcceptOffer)
    assert taken / 400 == pytest.approx(expected / 400, abs=0.06)


def test_the_impatient_buyer_leaves_at_some_refusals_and_bids_at_the_others() -> None:
    answers = [answer("impatient", 11_000, seed=seed) for seed in range(400)]
    left = sum(isinstance(action, Leave) for action in answers) / len(answers)
    low, high = Impatient.HAZARD
    assert left == pytest.approx((low + high) / 2, abs=0.06)
    assert {type(action) for action in answers} == {Leave, MakeOffer}
    assert isinstance(answer("impatient", VALUE), AcceptOffer)


def test_asking_often_costs_a_seller_its_impatient_buyers() -> None:
    market = listed_market(Family.MULTI_BUYER)
    patient = figures(market, seller="boulware", buyers="threshold", episodes=150)
    hurried = figures(market, seller="boulware", buyers="impatient", episodes=150)
    assert hurried["deal_rate"] < patient["deal_rate"]


def test_buyers_of_different_kinds_can_sit_at_one_table() -> None:
    done = figures(
        money_market(buyers=3, values=UniformSpec(low=20, high=100)),
        seller="falling-ladder",
        buyers=["threshold", "logit", "impatient"],
        episodes=100,
    )
    assert done["deal_rate"] > 0.8
    assert done["constraint_adherence"] == 1


# --- Quotes -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(10))
def test_the_quoting_buyer_names_its_value_and_takes_no_more(seed: int) -> None:
    assert isinstance(answer("quoting", VALUE, seed=seed), AcceptOffer)
    quoted = answer("quoting", VALUE + 1, seed=seed)
    assert isinstance(quoted, MakeOffer)
    assert quoted.price_cents == VALUE


def test_truthful_quotes_are_worth_more_to_a_seller_than_silence() -> None:
    market = money_market(buyers=3)
    earned = {
        buyers: figures(market, seller="optimal-ladder", buyers=buyers, episodes=200)["seller_extraction"]
        for buyers in ("quoting", "threshold")
    }
    assert earned["quoting"] > earned["threshold"] + 0.03


@pytest.mark.parametrize("seed", range(20))
def test_the_shading_buyer_acts_as_if_its_value_were_a_hidden_part_of_it(seed: int) -> None:
    quoted = answer("shading", VALUE, seed=seed)
    assert isinstance(quoted, MakeOffer)
    low, high = Shading.SHARE
    assert low * VALUE - 1 <= quoted.price_cents <= high * VALUE + 1
    assert isinstance(answer("shading", quoted.price_cents, seed=seed), AcceptOffer)
    assert isinstance(answer("shading", quoted.price_cents + 1, seed=seed), MakeOffer)


def test_at_its_last_message_a_shading_buyer_takes_its_full_value() -> None:
    table = Table(multi_buyer(values=(VALUE,), turns=2))
    buyer = Opponent(table, B1, "shading")
    table.play(SELLER, offer(VALUE, to=1))
    assert isinstance(buyer.answer(), MakeOffer)
    table.play(SELLER, offer(VALUE, to=1))
    assert isinstance(buyer.answer(), AcceptOffer)


# --- Waiting ----------------------------------------------------------------------------------------


def strategic_answers(asks: list[int], *, turns: int, seed: int = 1) -> list[type]:
    table = Table(multi_buyer(values=(VALUE,), turns=turns, seed=seed))
    buyer = Opponent(table, B1, "strategic")
    kinds: list[type] = []
    for ask in asks:
        table.play(SELLER, offer(ask, to=1))
        kinds.append(type(buyer.answer()))
        if kinds[-1] is AcceptOffer:
            break
    return kinds


@pytest.mark.parametrize("seed", range(10))
def test_a_buyer_who_foresees_lower_prices_waits_for_them(seed: int) -> None:
    """Asks fall by five dollars a time, all within its value of 72: it takes none before the end."""
    kinds = strategic_answers([6_800, 6_300, 5_800, 5_300, 4_800], turns=5, seed=seed)
    assert kinds == [RejectOffer] * 4 + [AcceptOffer]


@pytest.mark.parametrize("seed", range(10))
def test_a_price_that_does_not_fall_is_taken_when_that_is_clear(seed: int) -> None:
    assert strategic_answers([6_800, 6_800, 6_800], turns=6, seed=seed) == [RejectOffer, AcceptOffer]


@pytest.mark.parametrize("seed", range(10))
def test_a_small_fall_is_not_worth_the_risk_that_somebody_else_buys(seed: int) -> None:
    """To wait for a cent less at odds of at most .98 costs more than it gains."""
    assert strategic_answers([4_000, 3_999], turns=6, seed=seed)[-1] is AcceptOffer


def test_nobody_waits_beyond_the_last_message_or_above_the_value() -> None:
    assert strategic_answers([VALUE], turns=1) == [AcceptOffer]
    assert strategic_answers([VALUE + 1], turns=1) == [RejectOffer]


@pytest.mark.parametrize("slug", ["quoting", "shading", "strategic", "one-shot-buyer"])
@pytest.mark.parametrize("family", list(Family))
def test_the_newer_buyers_keep_to_their_value_against_anybody(slug: str, family: Family) -> None:
    for seller in ("linear", "hardliner", "zi-u"):
        done = figures(listed_market(family), seller=seller, buyers=slug, episodes=40)
        assert done["constraint_adherence_by_role"]["buyer"] == 1
