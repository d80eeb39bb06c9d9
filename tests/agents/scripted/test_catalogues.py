"""Catalogue sellers each follow the matching rule they are named after, with prices."""

import pytest

from agents.scripted.catalogues import ReSolvedAssignment, RisingPrices, expected_value_cents, price_to_beat
from markets.engine.priors import BandsSpec, UniformSpec
from markets.engine.protocol import AcceptOffer, Leave, MakeOffer
from markets.engine.scenarios import Family, OpeningBid, Recipe, Scenario, SellerTurns
from tests import effort
from tests.agents.tables import FREE, Opponent, figures, listed_market
from tests.markets.engine.factories import SELLER, Table, catalogue, offer, reject

MATCHING = ["greedy", "serial", "random-match"]
NAMED = [*MATCHING, "re-solved-assignment", "rising-prices"]
THREE_BUYERS = ((9_000, 6_000, 7_000), (8_000, 7_500, 5_000), (4_000, 5_000, 11_000))


def three_by_three(**changes: object) -> Scenario:
    return catalogue(values=THREE_BUYERS, costs=(4_000, 4_000, 4_000), **changes)  # type: ignore[arg-type]


def asks_to_silence(slug: str, scenario: Scenario) -> list[tuple[int, int, int]]:
    """(buyer, product, price) of every ask to buyers who refuse everything."""
    table = Table(scenario)
    seller = Opponent(table, SELLER, slug)
    asks = []
    while not table.state.ended:
        action = seller.answer()
        if not isinstance(action, MakeOffer):
            break
        asks.append((action.buyer, action.product, action.price_cents))
        table.play(f"buyer-{action.buyer}", reject(len(table.state.thread(action.buyer).offers)))
    return asks


@pytest.mark.parametrize("slug", NAMED)
@pytest.mark.parametrize("seed", range(5))
def test_the_price_of_a_pair_only_falls_and_never_below_cost(slug: str, seed: int) -> None:
    asks = asks_to_silence(slug, three_by_three(seed=seed))
    assert len(asks) == 12
    for pair in {ask[:2] for ask in asks}:
        prices = [price for *asked, price in asks if tuple(asked) == pair]
        assert prices == sorted(prices, reverse=True)
        assert len(set(prices)) == len(prices)
        assert prices[-1] >= 4_000


def test_greedy_goes_for_the_highest_margin_over_all_pairs_first() -> None:
    """All pairs are alike to the prior but for cost, so the cheapest product to make comes first."""
    asks = asks_to_silence("greedy", catalogue(values=THREE_BUYERS, costs=(5_000, 3_000, 4_000)))
    assert [product for _, product, _ in asks[:3]] == [1, 1, 1]
    assert {buyer for buyer, _, _ in asks[:3]} == {1, 2, 3}


def test_greedy_asks_buyers_for_what_they_have_bid_on() -> None:
    openings = (OpeningBid(1, 2, 2_500), OpeningBid(2, 0, 2_500), OpeningBid(3, 0, 2_500))
    asks = asks_to_silence("greedy", three_by_three(openings=openings))
    assert {ask[:2] for ask in asks} == {(1, 2), (2, 0), (3, 0)}


@pytest.mark.parametrize("seed", range(8))
def test_serial_serves_one_buyer_after_the_other(seed: int) -> None:
    openings = (OpeningBid(1, 2, 2_500), OpeningBid(2, 0, 2_500), OpeningBid(3, 0, 2_500))
    asks = asks_to_silence("serial", three_by_three(openings=openings, seed=seed))
    served = [buyer for buyer, _, _ in asks]
    assert all(served[4 * k : 4 * k + 4] == [served[4 * k]] * 4 for k in range(3)), "equal parts of twelve turns"
    assert len(set(served)) == 3
    assert {ask[:2] for ask in asks} == {(1, 2), (2, 0), (3, 0)}


def test_serial_takes_buyers_in_an_order_drawn_anew_in_each_negotiation() -> None:
    assert {asks_to_silence("serial", three_by_three(seed=seed))[0][0] for seed in range(30)} == {1, 2, 3}


@pytest.mark.parametrize("seed", range(8))
def test_random_matching_asks_each_buyer_for_one_product_only(seed: int) -> None:
    asks = asks_to_silence("random-match", three_by_three(seed=seed))
    pairs = {ask[:2] for ask in asks}
    assert len(pairs) == len({buyer for buyer, _ in pairs}) == len({product for _, product in pairs}) == 3
    assert [buyer for buyer, _, _ in asks] == [1, 2, 3] * 4, "a ladder on each, in turn"


def test_random_matchings_differ() -> None:
    matchings = {
        frozenset(ask[:2] for ask in asks_to_silence("random-match", three_by_three(seed=seed))) for seed in range(40)
    }
    assert len(matchings) == 6


def test_the_matching_stays_the_same_after_a_sale() -> None:
    table = Table(three_by_three(seed=3))
    planned = {ask[:2] for ask in asks_to_silence("random-match", three_by_three(seed=3))}
    seller = Opponent(table, SELLER, "random-match")
    action = seller.answer()
    table.play("buyer-1", offer(action.price_cents - 1, product=action.product))
    while not table.state.ended:
        action = seller.answer()
        if isinstance(action, MakeOffer):
            assert (action.buyer, action.product) in planned
            table.play(f"buyer-{action.buyer}", reject(len(table.state.thread(action.buyer).offers)))
        else:
            assert isinstance(action, AcceptOffer)


@pytest.mark.parametrize("slug", NAMED)
def test_good_bids_are_taken_before_the_turns_run_out(slug: str) -> None:
    """Three buyers bid well above cost and three turns are left: three sales."""
    openings = (OpeningBid(1, 0, 10_900), OpeningBid(2, 1, 10_900), OpeningBid(3, 2, 10_900))
    table = Table(three_by_three(openings=openings, turns=3))
    seller = Opponent(table, SELLER, slug)
    for _ in range(3):
        assert isinstance(seller.answer(), AcceptOffer)
    assert table.state.ended


@pytest.mark.parametrize("slug", NAMED)
def test_a_sold_out_product_or_a_served_buyer_is_asked_no_more(slug: str) -> None:
    market = listed_market(Family.CATALOGUE, buyers=5, turns=16)
    done = figures(market, seller=slug, buyers="threshold", episodes=40)
    assert done["constraint_adherence"] == 1
    assert done["deals"] <= 3 * 40


@pytest.mark.parametrize("slug", NAMED)
def test_nothing_to_gain_means_leaving(slug: str) -> None:
    assert isinstance(Opponent(Table(catalogue(costs=(11_500, 11_500))), SELLER, slug).answer(), Leave)


def market(buyers: int, products: int, turns: int) -> Recipe:
    return Recipe(
        family=Family.CATALOGUE,
        mechanism=SellerTurns(turns),
        buyers=buyers,
        products=products,
        value_spec=UniformSpec(low=0, high=100),
        cost_spec=FREE,
        cost_prior=FREE,
        unit_is_money=True,
    )


def test_with_many_turns_the_rules_rank_as_matchings_do() -> None:
    """Greedy pairs reach more than buyers in random order, and a random matching least (2N = M)."""
    quality = {
        slug: figures(market(6, 3, 60), seller=slug, buyers="threshold", episodes=effort.games(60, thorough=150))[
            "allocation_quality"
        ]
        for slug in MATCHING
    }
    assert quality["greedy"] > 0.93
    assert quality["greedy"] > quality["serial"] + 0.05
    assert quality["serial"] > quality["random-match"] + 0.05


def test_the_named_sellers_sell_and_only_full_information_gets_everything() -> None:
    shop = listed_market(Family.CATALOGUE, value_spec=BandsSpec())
    extraction = {
        slug: figures(shop, seller=slug, buyers="threshold", episodes=effort.games(40, thorough=100))[
            "seller_extraction"
        ]
        for slug in (*NAMED, "oracle", "optimal-assignment", "linear")
    }
    assert extraction["oracle"] == extraction["optimal-assignment"] == pytest.approx(1)
    assert min(extraction["greedy"], extraction["serial"], extraction["re-solved-assignment"]) > 0.75
    assert 0.2 < extraction["random-match"] < 0.7
    assert extraction["greedy"] > max(extraction["linear"], extraction["random-match"])


# --- Learning what they want ------------------------------------------------------------------------


def test_the_plan_is_made_anew_after_every_answer() -> None:
    """Alike to the prior at first; once buyer 1 lets a low price of product 0 pass, it is planned for 1."""
    table = Table(catalogue(values=((1, 9_000), (8_000, 7_500)), costs=(4_000, 4_000)))
    seller = ReSolvedAssignment()
    for price in (11_000, 5_000):
        table.play(SELLER, offer(price, to=1, product=0))
        table.play("buyer-1", reject(len(table.state.thread(1).offers)))
    seen = table.sees(SELLER)
    assert [(thread.buyer, product) for thread, product in seller.assigned(seen, seen.threads)] == [(1, 1), (2, 0)]


def test_a_bid_raises_what_a_buyer_is_expected_to_pay() -> None:
    table = Table(three_by_three(openings=(OpeningBid(1, 0, 10_500),)))
    seen = table.sees(SELLER)
    assert expected_value_cents(seen, seen.threads[0], 0) == pytest.approx(11_000, abs=20)
    assert expected_value_cents(seen, seen.threads[1], 0) == pytest.approx(7_583, abs=30)


def test_a_replanner_sells_more_of_the_best_assignment_than_lots_do() -> None:
    quality = {
        slug: figures(market(6, 3, 60), seller=slug, buyers="threshold", episodes=effort.games(25, thorough=100))[
            "allocation_quality"
        ]
        for slug in ("re-solved-assignment", "random-match")
    }
    assert quality["re-solved-assignment"] > quality["random-match"] + 0.2


# --- Rising prices ----------------------------------------------------------------------------------

WANTED = (OpeningBid(1, 0, 6_000), OpeningBid(2, 0, 7_000), OpeningBid(3, 0, 6_500))


def test_the_price_of_what_too_many_want_is_the_bid_that_gets_it() -> None:
    seen = Table(three_by_three(openings=WANTED)).sees(SELLER)
    assert price_to_beat(seen, seen.threads, 0) == 7_000
    assert price_to_beat(seen, seen.threads, 1) == 4_000, "a free unit costs what it costs to make"
    two = Table(three_by_three(openings=WANTED, stock=2)).sees(SELLER)
    assert price_to_beat(two, two.threads, 0) == 6_500
    assert {thread.buyer for thread in RisingPrices().left_over(two, two.threads)} == {1}


def test_whoever_is_left_over_is_asked_to_beat_the_price_and_then_offered_something_else() -> None:
    table = Table(three_by_three(openings=WANTED))
    seller = Opponent(table, SELLER, "rising-prices")
    asked = []
    for _ in range(4):
        action = seller.answer()
        assert isinstance(action, MakeOffer)
        asked.append((action.buyer, action.product))
        table.play(f"buyer-{action.buyer}", reject(len(table.state.thread(action.buyer).offers)))
    assert asked[:2] == [(1, 0), (3, 0)], "the two that the bid of 70 dollars beats"
    assert all(product != 0 and buyer != 2 for buyer, product in asked[2:])


def test_when_nobody_is_left_over_the_bids_are_taken_best_first() -> None:
    openings = (OpeningBid(1, 0, 6_000), OpeningBid(2, 1, 7_000), OpeningBid(3, 2, 6_500))
    table = Table(three_by_three(openings=openings, turns=12))
    seller = Opponent(table, SELLER, "rising-prices")
    taken = []
    for _ in range(3):
        action = seller.answer()
        assert isinstance(action, AcceptOffer)
        taken.append(action.buyer)
    assert taken == [2, 3, 1]


def test_competition_raises_prices_among_truthful_buyers() -> None:
    """Six quoting buyers for three things: the highest bids win, and hardly anything is left to them."""
    done = figures(market(6, 3, 30), seller="rising-prices", buyers="quoting", episodes=60)
    assert done["allocation_quality"] > 0.9
    assert done["seller_extraction"] > 0.85
