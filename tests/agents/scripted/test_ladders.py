"""Sellers of ladders ask what the theory says, and earn it: these are the yardsticks of every trained seller."""

import itertools

import msgspec
import pytest

from agents import registry
from agents.base import Kind
from markets.engine import optimum, priors
from markets.engine.protocol import AcceptOffer, Leave, MakeOffer, RejectOffer, Role
from markets.engine.scenarios import Family, Prior, Recipe, Scenario, sample
from tests import effort
from tests.agents.tables import (
    LOGNORMAL,
    SHOP,
    UNIFORM,
    Opponent,
    figures,
    listed_market,
    money_market,
    sellers,
)
from tests.markets.engine.factories import B1, SELLER, Table, bilateral, multi_buyer, offer, reject

LADDERS = [
    "optimal-ladder",
    "falling-ladder",
    "equal-steps",
    "one-pass",
    "explore-then-commit",
    "chase-highest-bid",
    "all-on-one",
    "random-buyer-ladder",
]


def asks_to_silence(slug: str, scenario: Scenario) -> list[tuple[int, int]]:
    """(buyer, price) of every ask to buyers who refuse everything."""
    table = Table(scenario)
    seller = Opponent(table, SELLER, slug)
    asks = []
    while not table.state.ended:
        action = seller.answer()
        if not isinstance(action, MakeOffer):
            break
        asks.append((action.buyer, action.price_cents))
        offers = table.state.thread(action.buyer).offers
        table.play(f"buyer-{action.buyer}", reject(offers[-1].offer_id))
    return asks


# --- The asks ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(("values", "cost"), [(UNIFORM, 0), (UNIFORM, 30), (LOGNORMAL, 60), (priors.BandsSpec(), 0.3)])
@pytest.mark.parametrize(("buyers", "turns"), [(2, 8), (4, 8), (5, 3)])
def test_the_optimal_ladder_asks_the_best_prices_in_the_best_order(
    values: priors.ValueSpec, cost: float, buyers: int, turns: int
) -> None:
    scenario = sample(
        money_market(buyers=buyers, turns=turns, values=values, cost=priors.ConstantSpec(value=cost)), (), seed=1
    )
    best = optimum.optimal_ladder(spec=values, rho=0, buyers=buyers, turns=turns, cost=cost)
    asked = asks_to_silence("optimal-ladder", scenario)
    assert [buyer - 1 for buyer, _ in asked] == list(best.order)
    unit = priors.ladder_top(values)
    for (_, price), ideal in zip(asked, best.prices, strict=True):
        assert price / 100 == pytest.approx(ideal, abs=0.012 * unit)


def test_the_optimal_ladder_follows_a_correlated_prior() -> None:
    market = money_market(values=LOGNORMAL, cost=priors.ConstantSpec(value=60))
    related = sample(Recipe(**{f: getattr(market, f) for f in market.__struct_fields__} | {"rho": 0.5}), (), seed=1)
    best = optimum.optimal_ladder(spec=LOGNORMAL, rho=0.5, buyers=4, turns=8, cost=60)
    asked = asks_to_silence("optimal-ladder", related)
    assert [price / 100 for _, price in asked] == pytest.approx(best.prices, abs=2)


def test_the_falling_ladder_is_the_linear_one() -> None:
    scenario = sample(money_market(values=LOGNORMAL, cost=priors.ConstantSpec(value=60)), (), seed=1)
    linear = optimum.linear_ladder(spec=LOGNORMAL, rho=0, buyers=4, turns=8, cost=60)
    asked = asks_to_silence("falling-ladder", scenario)
    assert [buyer - 1 for buyer, _ in asked] == list(linear.order)
    assert [price / 100 for _, price in asked] == pytest.approx(linear.prices, abs=0.011)


def test_one_pass_makes_everybody_one_offer_and_then_goes() -> None:
    scenario = sample(money_market(), (), seed=1)
    best = optimum.one_pass(spec=UNIFORM, rho=0, buyers=4, cost=0)
    asked = asks_to_silence("one-pass", scenario)
    assert [buyer for buyer, _ in asked] == [1, 2, 3, 4]
    assert [price / 100 for _, price in asked] == pytest.approx(best.prices, abs=0.8)


def test_all_on_one_stays_with_one_buyer_chosen_by_lot() -> None:
    chosen = set()
    for seed in range(40):
        asked = asks_to_silence("all-on-one", sample(money_market(), (), seed=seed))
        assert len(asked) == 8
        assert len({buyer for buyer, _ in asked}) == 1
        assert [price / 100 for _, price in asked] == pytest.approx([100 * k / 9 for k in range(8, 0, -1)], abs=0.8)
        chosen.add(asked[0][0])
    assert chosen == {1, 2, 3, 4}


def test_equal_steps_leave_out_the_top_and_the_cost() -> None:
    scenario = sample(money_market(cost=priors.ConstantSpec(value=10)), (), seed=1)
    asked = asks_to_silence("equal-steps", scenario)
    assert [buyer for buyer, _ in asked] == [1, 2, 3, 4] * 2
    assert [price / 100 for _, price in asked] == pytest.approx([10 + 90 * k / 9 for k in range(8, 0, -1)], abs=0.01)


@pytest.mark.parametrize("turns", [1, 2, 4, 8])
@pytest.mark.parametrize("slug", ["equal-steps", "optimal-ladder"])
def test_falling_offers_take_all_but_one_part_in_t_plus_one_from_one_threshold_buyer(slug: str, turns: int) -> None:
    """T / (T + 1) of the first best for U[0, 1] at cost 0, above Myerson's half, since the buyer does
    not wait. 800 games; the standard error is below .015."""
    market = money_market(buyers=1, turns=turns)
    earned = figures(market, seller=slug, buyers="threshold", episodes=800)
    assert earned["seller_extraction"] == pytest.approx(turns / (turns + 1), abs=0.035)


def test_a_ladder_loses_against_buyers_who_wait_and_a_price_that_stays_does_not() -> None:
    """Buyers who foresee falling prices wait for them (Coase 1972)."""
    market = listed_market(Family.MULTI_BUYER, turns=8)
    earned = {
        (slug, buyers): figures(market, seller=slug, buyers=buyers, episodes=100)["seller_extraction"]
        for slug in ("optimal-ladder", "posted-price")
        for buyers in ("threshold", "strategic")
    }
    assert earned["optimal-ladder", "threshold"] > earned["posted-price", "threshold"]
    assert earned["optimal-ladder", "strategic"] < earned["posted-price", "strategic"] - 0.2


def test_the_dice_choose_among_those_who_are_still_there() -> None:
    chosen = set()
    for seed in range(20):
        table = Table(multi_buyer(turns=8, seed=seed))
        table.play(SELLER, offer(11_000, to=2))
        table.play("buyer-2", Leave())
        chosen.add(Opponent(table, SELLER, "random-buyer-ladder").answer().buyer)
    assert chosen == {1, 3}


def test_exploring_asks_everybody_once_and_commits_to_the_best_answer() -> None:
    table = Table(multi_buyer(turns=8))
    seller = Opponent(table, SELLER, "explore-then-commit")
    asked = []
    for bid in (1_000, 3_000, 2_000, 3_100, 3_200):
        action = seller.answer()
        asked.append(action.buyer)
        table.play(f"buyer-{action.buyer}", offer(bid))
    assert asked == [1, 2, 3, 2, 2]


def test_chasing_turns_to_whoever_bids_most_and_changes_with_the_bids() -> None:
    table = Table(multi_buyer(turns=8, openings=(2_600, 2_900, 2_700)))
    seller = Opponent(table, SELLER, "chase-highest-bid")
    assert seller.answer().buyer == 2
    table.play("buyer-2", offer(2_950))
    assert seller.answer().buyer == 2
    table.play("buyer-2", offer(2_650))
    assert seller.answer().buyer == 3


@pytest.mark.parametrize("slug", LADDERS)
def test_no_ladder_asks_less_than_the_cost_or_more_than_before(slug: str) -> None:
    asked = asks_to_silence(slug, multi_buyer(cost=9_000))
    prices = [price for _, price in asked]
    assert prices
    assert min(prices) >= 9_000
    assert prices == sorted(prices, reverse=True)


@pytest.mark.parametrize("slug", LADDERS)
def test_a_buyer_that_leaves_is_passed_over(slug: str) -> None:
    table = Table(multi_buyer(turns=8))
    seller = Opponent(table, SELLER, slug)
    gone = seller.answer().buyer
    table.play(f"buyer-{gone}", Leave())
    action = seller.answer()
    assert isinstance(action, MakeOffer)
    assert action.buyer != gone


# --- Bids -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("slug", LADDERS)
def test_a_bid_as_good_as_the_next_ask_is_taken_and_a_poor_one_is_not(slug: str) -> None:
    for bid, taken in ((11_500, True), (4_500, False)):
        table = Table(multi_buyer(turns=8, openings=(bid, 10, 10)))
        assert isinstance(Opponent(table, SELLER, slug).answer(), AcceptOffer) is taken


@pytest.mark.parametrize("slug", ["falling-ladder", "optimal-ladder", "chase-highest-bid", "all-on-one"])
def test_the_last_turn_takes_a_sure_bid_rather_than_a_poor_chance(slug: str) -> None:
    """The last ask to a buyer who let $41 pass cannot sell for more than the $45 on the table."""
    table = Table(multi_buyer(turns=4, cost=4_000, openings=(4_500, 10, 10)))
    for buyer in (1, 2, 3):
        table.play(SELLER, offer(4_100, to=buyer))
        table.play(f"buyer-{buyer}", reject(len(table.state.thread(buyer).offers)))
    action = Opponent(table, SELLER, slug).answer()
    assert isinstance(action, AcceptOffer)
    assert action.buyer == 1


def test_one_pass_ends_by_taking_the_best_bid() -> None:
    table = Table(multi_buyer(turns=8, openings=(2_600, 2_700, 2_800)))
    seller = Opponent(table, SELLER, "one-pass")
    for bid in (4_100, 4_900, 4_600):
        action = seller.answer()
        assert isinstance(action, MakeOffer)
        table.play(f"buyer-{action.buyer}", offer(bid))
    action = seller.answer()
    assert isinstance(action, AcceptOffer)
    assert action.buyer == 2


@pytest.mark.parametrize("slug", LADDERS)
def test_a_cost_above_every_value_makes_a_seller_leave(slug: str) -> None:
    table = Table(multi_buyer(cost=11_500))
    assert isinstance(Opponent(table, SELLER, slug).answer(), Leave)


# --- One buyer --------------------------------------------------------------------------------------


@pytest.mark.parametrize("rounds", [1, 2, 5])
def test_against_one_buyer_the_optimal_ladder_has_equal_steps_for_a_uniform_prior(rounds: int) -> None:
    scenario = one_on_one(rounds, opener=Role.SELLER)
    asked = [price / 100 for _, price in asks_to_silence("optimal-ladder", scenario)]
    assert asked == pytest.approx([100 * k / (rounds + 1) for k in range(rounds, 0, -1)], abs=0.6)


def one_on_one(rounds: int, *, opener: Role) -> Scenario:
    return msgspec.structs.replace(
        bilateral(value=5_000, cost=0, rounds=rounds, opener=opener),
        prior=Prior(value_spec=UNIFORM, cost_spec=priors.ConstantSpec(value=0), scales_cents=(100,)),
    )


@pytest.mark.parametrize("slug", ["optimal-ladder", "falling-ladder"])
def test_a_seller_with_the_last_word_keeps_it_for_the_buyers_bid(slug: str) -> None:
    """Where the buyer opens, nobody answers the seller's last message: it plans one ask less."""
    table = Table(one_on_one(3, opener=Role.BUYER))
    seller = Opponent(table, SELLER, slug)
    prices = []
    for _ in range(2):
        table.play(B1, offer(2_000))
        prices.append(seller.price())
    assert prices == ([6_667, 3_333] if slug == "optimal-ladder" else [10_000, 5_000])
    table.play(B1, offer(2_100))
    assert isinstance(seller.answer(), AcceptOffer)


def test_the_last_word_on_a_bid_below_cost_is_no() -> None:
    table = Table(bilateral(cost=5_000, rounds=1, opener=Role.BUYER))
    table.play(B1, offer(4_999))
    assert isinstance(Opponent(table, SELLER, "optimal-ladder").answer(), RejectOffer)


# --- What they earn ---------------------------------------------------------------------------------

EARNINGS = [
    (
        money_market(buyers=4),
        {"optimal-ladder": 0.821, "falling-ladder": 0.739, "one-pass": 0.688, "all-on-one": 0.556},
    ),
    (
        money_market(buyers=2),
        {"optimal-ladder": 0.854, "falling-ladder": 0.820, "one-pass": 0.586, "all-on-one": 0.667},
    ),
    (
        money_market(values=LOGNORMAL, cost=priors.ConstantSpec(value=60)),
        {"optimal-ladder": 0.636, "falling-ladder": 0.599, "one-pass": 0.478, "all-on-one": 0.384},
    ),
]


@pytest.mark.parametrize(
    ("market", "slug", "share"),
    [(market, slug, share) for market, shares in EARNINGS for slug, share in shares.items()],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_against_threshold_buyers_a_ladder_earns_its_share_of_the_first_best(
    market: Recipe, slug: str, share: float
) -> None:
    """Shares of the first best, by integration; one seed, and a tolerance of about two standard errors."""
    episodes, near = (1_500, 0.015) if effort.THOROUGH else (400, 0.03)
    earned = figures(market, seller=slug, buyers="threshold", episodes=episodes, seed=1)
    assert earned["seller_extraction"] == pytest.approx(share, abs=near)
    assert earned["constraint_adherence"] == 1


def test_competition_pays_and_fixation_does_not() -> None:
    market = listed_market(Family.MULTI_BUYER, turns=8)
    earned = {
        slug: figures(market, seller=slug, buyers="threshold", episodes=effort.games(80, thorough=300))[
            "seller_extraction"
        ]
        for slug in LADDERS
    }
    assert earned["optimal-ladder"] > earned["falling-ladder"] > earned["chase-highest-bid"] + 0.25
    assert earned["optimal-ladder"] > 0.9


def test_no_scripted_seller_beats_the_optimal_ladder() -> None:
    market = money_market()
    episodes = effort.games(100, thorough=300)
    best = figures(market, seller="optimal-ladder", buyers="threshold", episodes=episodes)["seller_extraction"]
    scripted = [slug for slug in sellers(Family.MULTI_BUYER) if registry.get(slug).kind is Kind.SCRIPTED]
    for slug in itertools.filterfalse({"optimal-ladder"}.__contains__, scripted):
        assert figures(market, seller=slug, buyers="threshold", episodes=episodes)["seller_extraction"] < best, slug


def test_products_of_a_shop_have_ladders_in_their_own_price_range() -> None:
    for seed in range(5):
        scenario = sample(listed_market(Family.MULTI_BUYER, turns=8), SHOP, seed)
        prices = [price for _, price in asks_to_silence("optimal-ladder", scenario)]
        assert prices[0] <= 1.15 * scenario.products[0].list_price_cents + 1
        assert prices[-1] >= scenario.seller_values_cents[0]
