"""The oracle is the bound that shares are measured against: it must reach it, and stay out of rooms."""

import pytest

from agents import registry
from agents.base import Kind, Turn
from agents.play import turn_for
from markets.engine.observation import observe
from markets.engine.protocol import AcceptOffer, Leave, MakeOffer, RejectOffer, Role
from markets.engine.scenarios import Family, OpeningBid, Recipe, SellerTurns
from tests.agents.tables import FREE, UNIFORM, Opponent, figures, listed_market, money_market
from tests.markets.engine.factories import B1, SELLER, Table, bilateral, catalogue, multi_buyer, offer, reject


@pytest.mark.parametrize("family", list(Family))
def test_against_threshold_buyers_it_takes_the_whole_first_best(family: Family) -> None:
    done = figures(listed_market(family), seller="oracle", buyers="threshold", episodes=60)
    assert done["seller_extraction"] == done["allocation_quality"] == pytest.approx(1)
    assert done["constraint_adherence"] == 1


def test_it_asks_the_buyer_with_the_highest_value_for_that_value() -> None:
    done = figures(money_market(), seller="oracle", buyers="threshold", episodes=100)
    assert done["seller_extraction"] == pytest.approx(1)
    assert done["mean_turns"] == 1


def test_it_follows_the_best_assignment_and_not_the_best_pair() -> None:
    """The best pair is buyer 1 and product 0 (4,000); the other two pairs together gain 6,800."""
    table = Table(catalogue(values=((9_000, 6_900), (8_900, 4_100))))
    seller = Opponent(table, SELLER, "oracle")
    asked = []
    for _ in range(2):
        action = seller.answer()
        assert isinstance(action, MakeOffer)
        asked.append((action.buyer, action.product, action.price_cents))
        table.play(f"buyer-{action.buyer}", reject(len(table.state.thread(action.buyer).offers)))
    assert sorted(asked) == [(1, 1, 6_900), (2, 0, 8_900)]


def test_when_a_buyer_leaves_it_turns_to_the_next_best() -> None:
    table = Table(multi_buyer())
    seller = Opponent(table, SELLER, "oracle")
    assert seller.price() == 11_000
    table.play("buyer-3", Leave())
    assert seller.price() == 7_200


def test_as_a_buyer_it_bids_the_cost() -> None:
    assert Opponent(Table(bilateral()), B1, "oracle").price() == 5_000
    table = Table(catalogue(values=((9_000, 8_500), (1, 1))))
    table.play(SELLER, offer(9_000, to=1, product=0))
    bid = Opponent(table, B1, "oracle").answer()
    assert isinstance(bid, MakeOffer)
    assert (bid.product, bid.price_cents) == (1, 4_000)


@pytest.mark.parametrize("party", [SELLER, B1])
def test_it_leaves_where_trade_cannot_gain(party: str) -> None:
    opener = Role.SELLER if party == SELLER else Role.BUYER
    table = Table(bilateral(value=5_000, cost=5_000, opener=opener))
    assert isinstance(Opponent(table, party, "oracle").answer(), Leave)


def test_with_the_last_word_it_takes_what_gains() -> None:
    for bid, kind in ((5_100, AcceptOffer), (4_900, RejectOffer)):
        table = Table(bilateral(rounds=1))
        table.play(B1, offer(bid))
        assert isinstance(Opponent(table, SELLER, "oracle").answer(), kind)


def test_without_the_scenario_it_says_so_instead_of_guessing() -> None:
    table = Table(bilateral(opener=Role.SELLER))
    spec = registry.get("oracle")
    blind = Turn(observation=observe(table.state, SELLER), seed=1, party=SELLER, slug="oracle", position=0)
    with pytest.raises(ValueError, match="whole scenario"):
        spec.build().act(blind)


def test_nobody_else_is_handed_the_scenario() -> None:
    state = Table(bilateral(opener=Role.SELLER)).state
    for spec in registry.all_specs():
        assert (turn_for(state, SELLER, spec).scenario is not None) is (spec.kind is Kind.REFERENCE), spec.slug


# --- Assignments at full extraction -----------------------------------------------------------------

ASSIGNMENTS = ["optimal-assignment", "greedy-assignment", "serial-assignment", "random-assignment"]


def iid_market(buyers: int, products: int) -> Recipe:
    """Values uniform on 0 to 100 for every pair, costs 0, turns for everybody."""
    return Recipe(
        family=Family.CATALOGUE,
        mechanism=SellerTurns(buyers),
        buyers=buyers,
        products=products,
        value_spec=UNIFORM,
        cost_spec=FREE,
        cost_prior=FREE,
        unit_is_money=True,
    )


@pytest.mark.parametrize(
    ("buyers", "products", "shares"),
    [(4, 4, (1.0, 0.951, 0.921, 0.678)), (2, 2, (1.0, 0.976, 0.947, 0.813)), (8, 4, (1.0, 0.988, 0.775, 0.570))],
)
def test_matching_rules_reach_their_part_of_the_optimum(buyers: int, products: int, shares: tuple[float, ...]) -> None:
    """Shares of the summed optimum for independent uniform values, by Monte Carlo elsewhere; 400
    games here, with standard errors below .012. Everything gained goes to the seller."""
    for slug, share in zip(ASSIGNMENTS, shares, strict=True):
        done = figures(iid_market(buyers, products), seller=slug, buyers="threshold", episodes=400)
        assert done["allocation_quality"] == pytest.approx(share, abs=0.03), slug
        assert done["seller_extraction"] == pytest.approx(done["allocation_quality"]), slug
        assert done["constraint_adherence"] == 1


def test_the_greedy_assignment_takes_the_best_pair_first_and_the_optimal_one_does_not() -> None:
    scenario = catalogue(values=((9_000, 6_900), (8_900, 4_100)))
    for slug, pairs in (
        ("greedy-assignment", {(1, 0, 9_000), (2, 1, 4_100)}),
        ("optimal-assignment", {(1, 1, 6_900), (2, 0, 8_900)}),
    ):
        table = Table(scenario)
        seller = Opponent(table, SELLER, slug)
        asked = set()
        for _ in range(2):
            action = seller.answer()
            assert isinstance(action, MakeOffer)
            asked.add((action.buyer, action.product, action.price_cents))
            table.play(f"buyer-{action.buyer}", reject(1))
        assert asked == pairs


def test_lots_decide_who_comes_first_and_who_gets_what() -> None:
    for slug in ("serial-assignment", "random-assignment"):
        firsts = set()
        for seed in range(30):
            table = Table(catalogue(values=((9_000, 6_000), (8_900, 6_000)), seed=seed))
            action = Opponent(table, SELLER, slug).answer()
            assert isinstance(action, MakeOffer)
            firsts.add((action.buyer, action.product))
        assert len(firsts) == 2, slug


@pytest.mark.parametrize("slug", ASSIGNMENTS)
def test_an_assignment_needs_the_scenario_and_leaves_where_nothing_gains(slug: str) -> None:
    table = Table(catalogue(costs=(11_500, 11_500)))
    assert isinstance(Opponent(table, SELLER, slug).answer(), Leave)
    blind = Turn(observation=observe(table.state, SELLER), seed=1, party=SELLER, slug=slug, position=0)
    with pytest.raises(ValueError, match="whole scenario"):
        registry.get(slug).build().act(blind)


@pytest.mark.parametrize("slug", ["optimal-assignment", "greedy-assignment", "serial-assignment"])
def test_a_bid_at_the_full_value_is_taken(slug: str) -> None:
    table = Table(catalogue(values=((9_000, 1), (1, 8_000)), openings=(OpeningBid(1, 0, 9_000),)))
    action = Opponent(table, SELLER, slug).answer()
    assert isinstance(action, AcceptOffer)
    assert action.buyer == 1
