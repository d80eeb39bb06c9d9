"""What is said of how a seat negotiated follows from the log, figure by figure, with sums a reader can redo."""

import math
from itertools import pairwise

import pytest

from agents import registry, simulation
from markets.engine import figures, metrics, optimum
from markets.engine.figures import SeatFigures, ViolationType
from markets.engine.priors import UniformSpec
from markets.engine.protocol import SELLER, RefusalCode, encode
from markets.engine.scenarios import Alternating, EventDriven, Family, Recipe, SellerTurns
from tests.markets.engine.factories import (
    B1,
    B2,
    B3,
    LEAVE,
    Table,
    accept,
    bilateral,
    catalogue,
    multi_buyer,
    offer,
    reject,
    say,
)

pytestmark = pytest.mark.filterwarnings("error")


def of(table: Table) -> dict[str, SeatFigures]:
    return figures.of_seats(table.scenario, table.log, metrics.outcome(table.scenario, table.log))


def haggled() -> Table:
    """Value $80, cost $50: bids 40, 60; asks 90, 75, 70; the buyer turns 75 down and takes 70."""
    return Table(bilateral()).play_all(
        (B1, offer(4_000)),
        (SELLER, offer(9_000)),
        (B1, offer(6_000)),
        (SELLER, offer(7_500)),
        (B1, reject(4)),
        (SELLER, offer(7_000)),
        (B1, accept(5)),
    )


# --- One thread -------------------------------------------------------------------------------------


def test_openings_are_measured_against_the_own_value():
    seats = of(haggled())
    assert (seats[SELLER].opening_cents, seats[SELLER].opening_ratio) == (9_000, 1.8)
    assert (seats[B1].opening_cents, seats[B1].opening_ratio) == (4_000, 0.5)


def test_concessions_are_parts_of_the_way_from_opening_to_limit():
    seats = of(haggled())
    assert seats[SELLER].concession_rate == pytest.approx((1_500 / 4_000 + 500 / 4_000) / 2)
    assert seats[SELLER].path == (0.0, 0.375, 0.5)
    assert seats[B1].concession_rate == pytest.approx(0.5)
    assert seats[B1].path == (0.0, 0.5)


def test_a_step_back_is_a_negative_concession():
    table = Table(bilateral()).play_all((B1, offer(4_000)), (SELLER, offer(9_000)), (B1, offer(3_000)))
    assert of(table)[B1].concession_rate == pytest.approx(-0.25)


def test_one_offer_or_an_opening_at_the_limit_has_no_concession_rate():
    table = Table(bilateral()).play_all((B1, offer(8_000)), (SELLER, offer(9_000)), (B1, offer(7_000)))
    seats = of(table)
    assert (seats[SELLER].concession_rate, seats[B1].concession_rate) == (None, None)
    assert (seats[SELLER].path, seats[B1].path) == ((0.0,), ())


def test_counts_of_messages_and_of_different_prices():
    seats = of(haggled())
    assert (seats[SELLER].messages, seats[SELLER].offers, seats[SELLER].distinct_offers) == (3, 3, 3)
    assert (seats[B1].messages, seats[B1].offers, seats[B1].distinct_offers) == (4, 2, 2)
    again = Table(bilateral()).play_all((B1, offer(4_000)), (SELLER, offer(9_000)), (B1, offer(4_000)))
    assert of(again)[B1].distinct_offers == 1


def test_patience_is_the_part_of_the_budget_used_before_the_deal():
    assert of(haggled())[SELLER].patience == pytest.approx(4 / 6)
    assert of(haggled())[B1].patience == pytest.approx(4 / 6)
    first = Table(bilateral()).play_all((B1, offer(6_000)), (SELLER, accept(1)))
    assert of(first)[SELLER].patience == pytest.approx(1 / 6)
    assert of(Table(bilateral()).play_all((B1, LEAVE)))[B1].patience is None


def test_the_deal_carries_price_and_both_values():
    seats = of(haggled())
    assert (seats[SELLER].deals, seats[SELLER].price_cents) == (1, 7_000)
    assert (seats[SELLER].own_value_cents, seats[SELLER].other_value_cents) == (5_000, 8_000)
    assert (seats[B1].own_value_cents, seats[B1].other_value_cents, seats[B1].joint_cents) == (8_000, 5_000, 3_000)
    assert seats[B1].list_price_cents == 10_000


def test_offers_and_deals_that_lose_money_are_told_apart():
    table = Table(bilateral()).play_all((B1, offer(9_000)), (SELLER, accept(1)))
    seats = of(table)
    assert (seats[B1].loss_offers, seats[B1].loss_deals, seats[B1].induced_loss_deals) == (1, 1, 0)
    assert (seats[SELLER].loss_offers, seats[SELLER].loss_deals, seats[SELLER].induced_loss_deals) == (0, 0, 1)
    assert (seats[B1].reservation_violations, seats[SELLER].reservation_violations) == (1, 0)


def test_accepting_a_loss_is_the_acceptors_violation():
    table = Table(bilateral()).play_all((B1, offer(4_000)), (SELLER, accept(1)))
    seats = of(table)
    assert (seats[SELLER].loss_offers, seats[SELLER].loss_deals, seats[SELLER].reservation_violations) == (0, 1, 1)
    assert (seats[B1].induced_loss_deals, seats[B1].violations) == (1, 0)


def test_walking_away_is_seen():
    seats = of(Table(bilateral()).play_all((B1, LEAVE)))
    assert (seats[B1].left, seats[SELLER].left) == (True, False)
    assert of(Table(multi_buyer()).play_all((SELLER, LEAVE)))[SELLER].left


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (RefusalCode.MALFORMED, ViolationType.FORMAT),
        (RefusalCode.EMPTY_MESSAGE, ViolationType.FORMAT),
        (RefusalCode.PRICE_OUT_OF_RANGE, ViolationType.FORMAT),
        (RefusalCode.BEYOND_RESERVATION, ViolationType.RESERVATION),
        (RefusalCode.SOLD_OUT, ViolationType.SOLD_OUT),
        (RefusalCode.ALREADY_SERVED, ViolationType.BUYER),
        (RefusalCode.UNKNOWN_THREAD, ViolationType.BUYER),
        (RefusalCode.OFFER_GONE, ViolationType.ACCEPT),
        (RefusalCode.TURNS_USED, ViolationType.BUDGET),
        (RefusalCode.NOT_YOUR_TURN, ViolationType.ORDER),
    ],
)
def test_a_refused_move_is_counted_under_its_type(code, kind):
    table = Table(multi_buyer())
    table.refuse(SELLER, code, buyer=1)
    seat = of(table)[SELLER]
    assert (seat.violations, seat.violations_of(kind), seat.messages) == (1, 1, 1)


def test_a_code_of_a_later_protocol_is_not_lost():
    assert figures.violation_type("something_new") is ViolationType.ORDER


def test_violations_are_those_of_the_outcome():
    table = Table(bilateral(malformed_ends=False)).play_all((B1, offer(9_000)))
    table.refuse(SELLER, RefusalCode.UNKNOWN_OFFER, buyer=1)
    outcome = metrics.outcome(table.scenario, table.log)
    seats = of(table)
    assert (seats[SELLER].violations, seats[B1].violations) == (outcome.seller_violations, outcome.buyer_violations)
    assert (seats[SELLER].messages, seats[B1].messages) == (outcome.seller_messages, outcome.buyer_messages)


# --- Several buyers ---------------------------------------------------------------------------------


def searched() -> Table:
    """Bids stand at 30 and 28; the seller writes to B1, B2, B1, B2 and sells to B2."""
    return Table(multi_buyer(openings=(3_000, 2_800, 2_700), turns=8)).play_all(
        (SELLER, offer(9_000, to=1)),
        (B1, reject(2)),
        (SELLER, offer(9_000, to=2)),
        (B2, offer(5_000)),
        (SELLER, offer(8_000, to=2)),
        (B2, reject(4)),
        (SELLER, offer(8_000, to=1)),
        (B1, reject(3)),
        (SELLER, offer(7_000, to=2)),
        (B2, accept(5)),
    )


def test_coverage_counts_buyers_written_to_before_the_deal():
    assert of(searched())[SELLER].coverage == pytest.approx(2 / 3)


def test_entropy_of_the_probes_is_normalised_by_all_buyers():
    shares = (2 / 5, 3 / 5)
    expected = -sum(share * math.log(share) for share in shares) / math.log(3)
    assert of(searched())[SELLER].probe_entropy == pytest.approx(expected)
    one = Table(multi_buyer()).play_all((SELLER, say(to=2)))
    assert of(one)[SELLER].probe_entropy == 0.0


def test_fixation_counts_turns_to_whoever_bids_most_just_then():
    # After the first: B2 (B1 bids most), B2 (most), B1 (not), B2 (most): 2 of 4.
    assert of(searched())[SELLER].fixation_rate == pytest.approx(2 / 4)


def test_with_one_buyer_there_is_nothing_to_explore():
    seat = of(haggled())[SELLER]
    assert (seat.coverage, seat.probe_entropy, seat.fixation_rate, seat.best_pairs) == (None, None, None, None)


def test_a_sale_to_the_highest_value_is_a_top_deal():
    assert of(searched())[SELLER].top_deals == 0
    top = Table(multi_buyer()).play_all((SELLER, offer(10_000, to=3)), (B3, accept(1)))
    seat = of(top)[SELLER]
    assert (seat.top_deals, seat.matched_pairs, seat.best_pairs) == (1, 1, 1)


def test_of_equally_good_matchings_the_one_that_was_made_counts():
    tied = Table(multi_buyer(values=(8_000, 8_000))).play_all((SELLER, offer(7_000, to=2)), (B2, accept(1)))
    assert of(tied)[SELLER].matched_pairs == 1


def test_matches_of_a_catalogue_are_compared_pair_by_pair():
    # Best: B1 takes product 0 (4,000), B2 product 1 (3,500).
    crossed = Table(catalogue()).play_all((SELLER, offer(6_000, to=2, product=0)), (B2, accept(1)))
    seat = of(crossed)[SELLER]
    assert (seat.matched_pairs, seat.best_pairs) == (0, 2)
    right = Table(catalogue()).play_all((SELLER, offer(6_000, to=2, product=1)), (B2, accept(1)))
    assert of(right)[SELLER].matched_pairs == 1


def test_offers_to_different_buyers_are_no_concession():
    apart = Table(multi_buyer()).play_all((SELLER, offer(9_000, to=1)), (B1, reject(1)), (SELLER, offer(8_000, to=2)))
    assert of(apart)[SELLER].concession_rate is None
    assert of(apart)[SELLER].path == (0.0,)


def test_random_welfare_is_the_mean_over_all_pairings():
    scenario = catalogue()
    gains = [[4_000, 2_000], [3_000, 3_500]]
    both = [gains[0][0] + gains[1][1], gains[0][1] + gains[1][0]]
    assert figures.random_welfare_cents(scenario) == pytest.approx(sum(both) / 2)
    assert figures.random_welfare_cents(multi_buyer()) == pytest.approx((800 + 3_200 + 7_000) / 3)
    assert figures.random_welfare_cents(multi_buyer(stock=5)) == pytest.approx(800 + 3_200 + 7_000)


# --- All of it --------------------------------------------------------------------------------------


def test_figures_survive_being_stored():
    for seat in of(searched()).values():
        assert figures.decode(encode(seat)) == seat


@pytest.mark.parametrize("family", ["bilateral", "event_driven", "multi_buyer", "catalogue"])
def test_played_games_give_figures_within_their_ranges(family):
    sellers = {"multi_buyer": "chase-highest-bid", "catalogue": "greedy"}
    seller = sellers.get(family, "zi-u")
    for scenario, played in simulation.simulate(
        recipe=RECIPES[family],
        pool=(),
        seller=registry.get(seller),
        buyers=[registry.get("zi-u")],
        episodes=60,
        seed=3,
    ):
        outcome = metrics.outcome(scenario, played.log)
        seats = figures.of_seats(scenario, played.log, outcome)
        buyers = [seat for party, seat in seats.items() if party != SELLER]
        assert seats[SELLER].deals == sum(seat.deals for seat in buyers) == len(outcome.deals)
        assert seats[SELLER].loss_deals == sum(seat.induced_loss_deals for seat in buyers)
        assert seats[SELLER].messages == outcome.seller_messages
        assert sum(seat.violations for seat in buyers) == outcome.buyer_violations
        for seat in seats.values():
            for rate in (seat.coverage, seat.probe_entropy, seat.fixation_rate):
                assert rate is None or 0 <= rate <= 1 + 1e-12
            assert seat.patience is None or seat.patience > 0
            assert seat.patience is None or seat.patience <= 1 or family == "event_driven"  # Its rounds bind nobody.
            assert seat.distinct_offers <= seat.offers <= seat.messages
            assert (seat.opening_ratio is None) == (seat.offers == 0 or seat.own_value_cents == 0)
        if scenario.buyers > 1:
            assert 0 <= seats[SELLER].matched_pairs <= seats[SELLER].best_pairs
            assert seats[SELLER].random_welfare_cents <= outcome.first_best_cents + 1e-9


def test_a_falling_ladder_gives_up_more_and_more():
    table = Table(bilateral(rounds=4))
    for bid, price in ((1_000, 9_000), (1_500, 8_000), (2_000, 7_000)):
        table.play_all((B1, offer(bid)), (SELLER, offer(price)))
    path = of(table)[SELLER].path
    assert all(earlier < later for earlier, later in pairwise(path))


def test_breaking_ties_never_costs_welfare():
    """The matching that is compared with is worth the first best."""
    scenario = catalogue(values=((9_000, 8_000), (9_000, 8_000)), costs=(5_000, 4_000))
    table = Table(scenario).play_all((SELLER, offer(6_000, to=1, product=1)), (B1, accept(1)))
    seat = of(table)[SELLER]
    assert (seat.matched_pairs, seat.best_pairs) == (1, 2)
    total, _ = optimum.optimal_assignment(surplus=((4_000, 4_000), (4_000, 4_000)), stock=(1, 1))
    assert total == metrics.outcome(scenario, table.log).first_best_cents


COSTS = UniformSpec(low=10.0, high=90.0)
SHAPES = {
    "bilateral": {"mechanism": Alternating(rounds=6)},
    "event_driven": {"mechanism": EventDriven()},
    "multi_buyer": {"mechanism": SellerTurns(turns=8), "buyers": 3},
    "catalogue": {"mechanism": SellerTurns(turns=12), "buyers": 3, "products": 2},
}
RECIPES = {
    family: Recipe(
        family=Family.BILATERAL if family == "event_driven" else Family(family),
        value_spec=UniformSpec(low=20.0, high=120.0),
        cost_spec=COSTS,
        cost_prior=COSTS,
        unit_is_money=True,
        **shape,
    )
    for family, shape in SHAPES.items()
}
