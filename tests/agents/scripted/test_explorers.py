"""Sellers who learn whom to talk to: each keeps to its published rule, so that results under its name are its own."""

import math

import pytest

from agents import registry
from agents.play import turn_for
from agents.scripted.beliefs import value_interval
from agents.scripted.explorers import (
    EpsilonGreedy,
    Pandora,
    PlayOff,
    SuccessiveElimination,
    UpperConfidence,
    estimate_cents,
    opening_price,
)
from agents.scripted.ladders import best_bid
from markets.engine import priors
from markets.engine.protocol import AcceptOffer, Leave, MakeOffer
from markets.engine.scenarios import Family
from tests.agents.tables import LOGNORMAL, Opponent, figures, listed_market, money_market
from tests.markets.engine.factories import SELLER, Table, multi_buyer, offer, reject

UNIT = priors.UniformSpec(low=0, high=1)
LEARNING = ["epsilon-greedy", "ucb", "successive-elimination", "play-off", "pandora", "random-buyer-ladder"]


def answered(table: Table, buyer: int, bid: int | None) -> None:
    """The buyer's reply to the ask it got: a bid, or no."""
    reply = reject(len(table.state.thread(buyer).offers)) if bid is None else offer(bid)
    table.play(f"buyer-{buyer}", reply)


def asked(slug: str, table: Table, bids: list[int | None]) -> list[int]:
    """Whom the seller asks while buyers answer with `bids`."""
    seller = Opponent(table, SELLER, slug)
    buyers = []
    for bid in bids:
        action = seller.answer()
        assert isinstance(action, MakeOffer)
        buyers.append(action.buyer)
        answered(table, action.buyer, bid)
    return buyers


# --- Bandits ----------------------------------------------------------------------------------------


def test_the_chance_of_a_draw_by_lot_starts_at_a_fifth_and_ends_at_none() -> None:
    rule = EpsilonGreedy()
    assert rule.epsilon(move=0, moves=8) == 0.2
    assert rule.epsilon(move=4, moves=8) == 0.1
    assert rule.epsilon(move=8, moves=8) == 0


def test_the_estimate_of_a_buyer_is_its_latest_bid_or_the_middle_of_what_is_left() -> None:
    table = Table(multi_buyer())
    seen = table.sees(SELLER)
    assert estimate_cents(seen, seen.threads[0]) == (4_000 + 11_500) / 2
    table.play(SELLER, offer(9_000, to=1))
    answered(table, 1, None)
    seen = table.sees(SELLER)
    assert estimate_cents(seen, seen.threads[0]) == (4_000 + 9_000) / 2
    table.play(SELLER, offer(8_000, to=1))
    answered(table, 1, 4_400)
    seen = table.sees(SELLER)
    assert estimate_cents(seen, seen.threads[0]) == 4_400


def test_epsilon_greedy_mostly_asks_the_buyer_with_the_best_estimate() -> None:
    greedy = 0
    for seed in range(300):
        table = Table(multi_buyer(openings=(2_600, 2_900, 2_700), seed=seed))
        greedy += Opponent(table, SELLER, "epsilon-greedy").answer().buyer == 2
    # With epsilon .2 over three buyers the best one is asked with probability .8 + .2 / 3.
    assert greedy / 300 == pytest.approx(0.8 + 0.2 / 3, abs=0.07)


def test_the_optimist_tries_everybody_once_first() -> None:
    assert asked("ucb", Table(multi_buyer()), [None, None, None]) == [1, 2, 3]


def test_the_bound_of_ucb_is_the_mean_plus_a_width_that_shrinks_with_asks() -> None:
    table = Table(multi_buyer())
    for buyer, bid in ((1, 4_000), (2, 5_000), (1, 4_000)):
        table.play(SELLER, offer(11_000, to=buyer))
        answered(table, buyer, bid)
    seen = table.sees(SELLER)
    rule = UpperConfidence()
    assert rule.score(seen, seen.threads[2], width=0.4, spent=3) == math.inf
    assert rule.score(seen, seen.threads[0], width=0.4, spent=3) == pytest.approx(
        4_000 / 11_500 + 0.4 * math.sqrt(math.log(3) / 2)
    )
    assert rule.score(seen, seen.threads[1], width=0.4, spent=3) == pytest.approx(
        5_000 / 11_500 + 0.4 * math.sqrt(math.log(3))
    )


def test_the_optimist_comes_back_to_buyers_it_knows_little_about() -> None:
    buyers = asked("ucb", Table(multi_buyer(turns=12)), [4_000, 4_100, 4_050, *[4_100] * 6])
    assert set(buyers[3:]) == {1, 2, 3}


# --- Elimination ------------------------------------------------------------------------------------


def test_a_buyer_whose_most_is_less_than_anothers_least_is_dropped() -> None:
    table = Table(multi_buyer(turns=12))
    for buyer, ask, bid in ((1, 6_000, None), (2, 10_000, 7_000), (3, 10_000, None)):
        table.play(SELLER, offer(ask, to=buyer))
        answered(table, buyer, bid)
    seen = table.sees(SELLER)
    assert [thread.buyer for thread in SuccessiveElimination().active(seen, seen.threads)] == [2, 3]
    assert Opponent(table, SELLER, "successive-elimination").answer().buyer in (2, 3)


def test_those_left_are_asked_so_that_all_say_no_with_even_odds() -> None:
    """L + (U - L) 2^(-1/n): with three uniform values the chance that none reaches it is 1/2."""
    table = Table(multi_buyer(cost=4_000))
    seen = table.sees(SELLER)
    low, high = value_interval(seen, seen.threads[0], 0)
    price = Opponent(table, SELLER, "successive-elimination").price()
    assert price == pytest.approx(low + (high - low) * 2 ** (-1 / 3), abs=1)
    assert ((price - low) / (high - low)) ** 3 == pytest.approx(0.5, abs=1e-3)


# --- Play-off ---------------------------------------------------------------------------------------


def test_the_best_bid_is_quoted_with_a_step_to_each_of_the_others() -> None:
    table = Table(multi_buyer(openings=(5_000, 4_500, 4_800)))
    seller = Opponent(table, SELLER, "play-off")
    quotes = {}
    for _ in range(2):
        action = seller.answer()
        assert isinstance(action, MakeOffer)
        quotes[action.buyer] = action.price_cents
        answered(table, action.buyer, None)
    assert set(quotes) == {2, 3}
    assert len(set(quotes.values())) == 1
    step = quotes[2] - 5_000
    assert 0.03 * 7_250 - 1 <= step <= 0.10 * 7_250 + 1
    action = seller.answer()
    assert isinstance(action, AcceptOffer), "nobody is left to beat the bid"
    assert action.buyer == 1


def test_a_higher_counter_bid_makes_the_old_best_bidder_the_one_to_be_asked() -> None:
    table = Table(multi_buyer(openings=(5_000, 4_500, 4_800)))
    seller = Opponent(table, SELLER, "play-off")
    assert seller.answer().buyer == 2
    answered(table, 2, 6_500)
    third, first = seller.answer(), None
    answered(table, third.buyer, None)
    first = seller.answer()
    assert {third.buyer, first.buyer} == {1, 3}
    assert min(third.price_cents, first.price_cents) > 6_500


def test_without_a_bid_above_cost_there_is_nobody_to_play_off() -> None:
    table = Table(multi_buyer(openings=(2_600, 2_700, 2_800)))
    seen = table.sees(SELLER)
    assert best_bid(seen, seen.threads) is None
    assert PlayOff().rivals(seen, seen.threads, quote=5_000) == []
    assert isinstance(Opponent(table, SELLER, "play-off").answer(), MakeOffer)


def test_a_play_off_among_truthful_buyers_stops_short_of_the_second_highest_value() -> None:
    """An English auction would get .75 of the first best (Vickrey, four uniform values); whoever takes
    a quote ends ours early, since offers bind."""
    done = figures(money_market(buyers=4, turns=16), seller="play-off", buyers="quoting", episodes=200)
    assert done["allocation_quality"] > 0.85
    assert 0.55 < done["seller_extraction"] < 0.75


# --- Pandora ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("cost", [0.01, 0.02, 0.05, 0.2])
def test_a_box_is_worth_opening_below_weitzmans_price(cost: float) -> None:
    """U[0, 1]: z = 1 - sqrt(2k)."""
    assert opening_price(UNIT, cost) == pytest.approx(1 - math.sqrt(2 * cost), abs=2e-3)


def test_what_is_not_worth_opening_at_all_has_the_lowest_price() -> None:
    assert opening_price(UNIT, 0.6) == 0
    assert opening_price(LOGNORMAL, 1e9) == 0


def reservation_price(table: Table) -> int:
    return Pandora().reservation_price_cents(turn_for(table.state, SELLER, registry.get("pandora")))


@pytest.mark.parametrize("seed", range(8))
def test_pandora_stops_at_a_bid_worth_more_than_trying_the_next_and_not_before(seed: int) -> None:
    z = reservation_price(Table(multi_buyer(seed=seed)))
    for bid, kind in ((z, AcceptOffer), (z - 1, MakeOffer)):
        table = Table(multi_buyer(seed=seed))
        seller = Opponent(table, SELLER, "pandora")
        first = seller.answer()
        assert isinstance(first, MakeOffer)
        assert first.price_cents == z
        answered(table, 1, bid)
        second = seller.answer()
        assert isinstance(second, kind)
        assert not isinstance(second, MakeOffer) or second.buyer == 2


def test_when_all_boxes_are_open_the_best_bidder_is_asked_at_falling_prices() -> None:
    table = Table(multi_buyer(turns=8))
    assert asked("pandora", table, [4_200, 5_000, 4_400, 5_100, 5_200]) == [1, 2, 3, 2, 2]


# --- All of them ------------------------------------------------------------------------------------


@pytest.mark.parametrize("slug", LEARNING)
def test_a_seller_that_learns_sells_within_its_cost_to_anybody(slug: str) -> None:
    for buyers in ("threshold", "linear", "quoting"):
        done = figures(listed_market(Family.MULTI_BUYER, turns=8), seller=slug, buyers=buyers, episodes=40)
        assert done["constraint_adherence"] == 1
        assert done["deal_rate"] > 0.4, (slug, buyers)


@pytest.mark.parametrize("slug", LEARNING)
def test_a_buyer_that_left_is_not_asked_again(slug: str) -> None:
    table = Table(multi_buyer(turns=8))
    seller = Opponent(table, SELLER, slug)
    gone = seller.answer().buyer
    table.play(f"buyer-{gone}", Leave())
    for _ in range(3):
        action = seller.answer()
        assert isinstance(action, MakeOffer)
        assert action.buyer != gone
        answered(table, action.buyer, None)


@pytest.mark.parametrize("slug", LEARNING)
def test_a_cost_above_every_value_makes_it_leave(slug: str) -> None:
    assert isinstance(Opponent(Table(multi_buyer(cost=11_500)), SELLER, slug).answer(), Leave)
