"""Every figure worked out by hand: what a negotiation was worth, and what many were worth together."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from markets.engine import metrics
from markets.engine.metrics import Outcome, Summary, Tally
from markets.engine.protocol import EndReason, RefusalCode, Role
from markets.engine.scenarios import Scenario
from tests.markets.engine.factories import (
    B1,
    B2,
    B3,
    LEAVE,
    SELLER,
    Table,
    accept,
    bilateral,
    catalogue,
    multi_buyer,
    offer,
    reject,
    say,
)
from tests.markets.engine.games import Play, plays


def outcome(table: Table) -> Outcome:
    return metrics.outcome(table.scenario, table.log)


def sold(scenario: Scenario, *, buyer: int = 1, product: int = 0, price_cents: int) -> Table:
    """A table at which the seller made one offer, which was accepted at once."""
    table = Table(scenario)
    table.play(SELLER, offer(price_cents, to=buyer, product=product))
    table.play(f"buyer-{buyer}", accept(len(table.state.thread(buyer).offers)))
    return table


def impasse(scenario: Scenario) -> Table:
    return Table(scenario).play_all((SELLER, LEAVE))


# --- Surplus --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("role", "price_cents", "gain_cents"),
    [
        (Role.BUYER, 7_000, 1_000),
        (Role.BUYER, 8_000, 0),
        (Role.BUYER, 8_500, -500),
        (Role.SELLER, 8_500, 500),
        (Role.SELLER, 8_000, 0),
        (Role.SELLER, 7_000, -1_000),
    ],
)
def test_surplus_is_the_gain_over_no_deal_and_may_be_a_loss(role: Role, price_cents: int, gain_cents: int) -> None:
    assert metrics.surplus_cents(role=role, price_cents=price_cents, reservation_value_cents=8_000) == gain_cents


@pytest.mark.parametrize(
    ("own_cents", "joint_cents", "share"),
    [
        (1_000, 4_000, 0.25),
        (0, 4_000, 0.0),
        (-1_000, 4_000, -0.25),
        (5_000, 4_000, 1.25),
        (100, 0, None),
        (5, -1, None),
    ],
)
def test_a_share_is_undefined_without_a_zone_of_possible_agreement(
    own_cents: int, joint_cents: int, share: float | None
) -> None:
    assert metrics.surplus_share(own_cents=own_cents, joint_cents=joint_cents) == share


# --- One bilateral episode ------------------------------------------------------------------------------


def test_a_bilateral_deal_splits_the_joint_surplus() -> None:
    """Value $80, cost $50, price $56: the buyer gains $24 and the seller $6 of $30."""
    table = Table(bilateral(value=8_000, cost=5_000)).play_all(
        (B1, offer(4_000)), (SELLER, offer(7_500)), (B1, offer(5_600)), (SELLER, accept(3))
    )
    result = outcome(table)
    assert result == Outcome(
        end_reason=EndReason.DEAL,
        deals=(
            metrics.DealOutcome(
                buyer=1,
                product=0,
                price_cents=5_600,
                seller_surplus_cents=600,
                buyer_surplus_cents=2_400,
                seller_joint_cents=3_000,
                pair_joint_cents=3_000,
            ),
        ),
        seller_surplus_cents=600,
        buyer_surplus_cents=2_400,
        welfare_cents=3_000,
        first_best_cents=3_000,
        seller_messages=2,
        buyer_messages=2,
        seller_violations=0,
        buyer_violations=0,
    )
    assert result.seller_share == pytest.approx(0.2)
    assert result.allocation_quality == 1.0


def test_an_impasse_is_worth_nothing_and_wastes_what_there_was() -> None:
    result = outcome(impasse(bilateral(value=8_000, cost=5_000)))
    assert (result.seller_surplus_cents, result.buyer_surplus_cents, result.welfare_cents) == (0, 0, 0)
    assert result.first_best_cents == 3_000
    assert result.seller_share == 0.0
    assert result.allocation_quality == 0.0
    assert result.deals == ()


@pytest.mark.parametrize(("value", "cost"), [(4_000, 5_000), (5_000, 5_000)])
def test_where_nothing_can_be_gained_shares_are_undefined_and_not_zero(value: int, cost: int) -> None:
    result = outcome(impasse(bilateral(value=value, cost=cost)))
    assert result.first_best_cents == 0
    assert result.seller_share is None
    assert result.allocation_quality is None


def test_a_deal_that_destroys_value_counts_as_a_loss_and_has_no_share() -> None:
    """Value $40, cost $50, price $45: each loses $5."""
    result = outcome(sold(bilateral(value=4_000, cost=5_000, opener=Role.SELLER), price_cents=4_500))
    assert (result.seller_surplus_cents, result.buyer_surplus_cents, result.welfare_cents) == (-500, -500, -1_000)
    assert result.seller_share is None
    assert (result.seller_violations, result.buyer_violations) == (1, 1)


def test_an_unfinished_episode_can_be_measured_so_far() -> None:
    result = outcome(Table(bilateral()).play_all((B1, offer(3_000))))
    assert result.end_reason is None
    assert (result.buyer_messages, result.seller_messages) == (1, 0)


# --- One episode with several buyers ----------------------------------------------------------------------


def test_with_several_buyers_the_sellers_joint_surplus_is_with_the_highest_value() -> None:
    """Cost $40; the buyer of $72 pays $70, the one of $110 would have: the seller has $30 of $70."""
    result = outcome(sold(multi_buyer(values=(4_800, 7_200, 11_000), cost=4_000), buyer=2, price_cents=7_000))
    (deal,) = result.deals
    assert (deal.seller_joint_cents, deal.pair_joint_cents) == (7_000, 3_200)
    assert result.first_best_cents == 7_000
    assert result.seller_share == pytest.approx(3_000 / 7_000)
    assert result.allocation_quality == pytest.approx(3_200 / 7_000)


def test_one_unit_sold_to_the_highest_value_is_the_first_best() -> None:
    result = outcome(sold(multi_buyer(values=(4_800, 7_200, 11_000), cost=4_000), buyer=3, price_cents=11_000))
    assert result.seller_share == result.allocation_quality == 1.0


def test_with_stock_for_two_the_first_best_serves_the_two_highest_values() -> None:
    """$110 - $40 and $72 - $40; only the buyer of $48 gets one, at $44."""
    result = outcome(sold(multi_buyer(values=(4_800, 7_200, 11_000), cost=4_000, stock=2), buyer=1, price_cents=4_400))
    assert result.first_best_cents == 7_000 + 3_200
    assert result.welfare_cents == 800
    assert result.seller_share == pytest.approx(400 / 10_200)


def test_buyers_below_cost_are_no_part_of_the_first_best() -> None:
    result = outcome(impasse(multi_buyer(values=(3_000, 3_900), cost=4_000, stock=2)))
    assert result.first_best_cents == 0
    assert result.seller_share is None


# --- One catalogue episode ----------------------------------------------------------------------------------


def test_the_first_best_of_a_catalogue_is_the_best_way_to_match() -> None:
    """Gains: buyer 1 $40 and $20, buyer 2 $30 and $35. Best: (1, first) and (2, second), $75 together."""
    scenario = catalogue(values=((9_000, 6_000), (8_000, 7_500)), costs=(5_000, 4_000))
    assert metrics.best_assignment(scenario) == (7_500, ((0, 0), (1, 1)))


def test_serving_the_first_taker_can_cost_the_better_match() -> None:
    """Both buyers get the other's product: $20 + $30 of $75 are made, of which the seller has $10 + $25."""
    table = Table(catalogue(values=((9_000, 6_000), (8_000, 7_500)), costs=(5_000, 4_000))).play_all(
        (SELLER, offer(5_000, to=1, product=1)),
        (B1, accept(1)),
        (SELLER, offer(7_500, to=2, product=0)),
        (B2, accept(1)),
    )
    result = outcome(table)
    assert result.welfare_cents == 2_000 + 3_000
    assert result.allocation_quality == pytest.approx(5_000 / 7_500)
    assert result.seller_surplus_cents == 1_000 + 2_500
    assert result.seller_share == pytest.approx(3_500 / 7_500)
    assert result.end_reason is EndReason.SOLD_OUT
    assert [deal.seller_joint_cents for deal in result.deals] == [3_500, 4_000]


def test_a_pair_that_gains_nothing_stays_unmatched() -> None:
    scenario = catalogue(values=((9_000, 3_000), (4_000, 2_000)), costs=(5_000, 4_000))
    assert metrics.best_assignment(scenario) == (4_000, ((0, 0),))


def test_one_buyer_counts_once_however_many_products_it_likes() -> None:
    scenario = catalogue(values=((9_000, 8_500),), costs=(5_000, 4_000), stock=2)
    assert metrics.best_assignment(scenario) == (4_500, ((0, 1),))


@settings(max_examples=60)
@given(plays())
def test_extraction_is_allocation_quality_times_the_sellers_part_of_what_was_made(play: Play) -> None:
    """Matching and pricing can be told apart: extraction = quality x profit / welfare of the made matches."""
    result = metrics.outcome(play.scenario, play.log)
    if result.first_best_cents > 0 and result.welfare_cents != 0:
        assert result.allocation_quality is not None
        pricing = result.seller_surplus_cents / result.welfare_cents
        assert result.seller_share == pytest.approx(result.allocation_quality * pricing)


# --- Messages and violations --------------------------------------------------------------------------------


def test_openings_lapses_and_leaving_are_no_messages() -> None:
    table = Table(multi_buyer(openings=(2_600, 2_700, 2_800))).play_all(
        (SELLER, offer(9_000, to=1)), (B1, LEAVE), (SELLER, accept(1, to=3))
    )
    result = outcome(table)
    assert (result.seller_messages, result.buyer_messages) == (2, 0)


def test_talk_offers_answers_and_refused_moves_are_messages() -> None:
    table = Table(bilateral()).play_all((B1, offer(3_000)), (SELLER, reject(1)), (B1, say()))
    table.refuse(SELLER, RefusalCode.UNKNOWN_OFFER)
    table.play(B1, offer(5_000))
    table.play(SELLER, accept(2))
    result = outcome(table)
    assert (result.seller_messages, result.buyer_messages) == (3, 3)
    assert (result.seller_violations, result.buyer_violations) == (1, 0)


def test_an_offer_beyond_the_own_value_is_a_violation_even_if_nobody_takes_it() -> None:
    table = Table(bilateral(value=8_000, cost=5_000)).play_all((B1, offer(8_001)), (SELLER, offer(4_999)), (B1, LEAVE))
    result = outcome(table)
    assert (result.seller_violations, result.buyer_violations) == (1, 1)


def test_a_price_at_the_own_value_is_none() -> None:
    table = Table(bilateral(value=8_000, cost=5_000)).play_all((B1, offer(8_000)), (SELLER, offer(5_000)), (B1, LEAVE))
    result = outcome(table)
    assert (result.seller_violations, result.buyer_violations) == (0, 0)


def test_an_opening_bid_that_the_market_made_is_nobodys_violation() -> None:
    result = outcome(impasse(multi_buyer(values=(2_000, 2_000, 2_000), openings=(2_600, 2_700, 2_800))))
    assert result.buyer_violations == 0


def test_taking_a_ruinous_offer_is_the_takers_violation_and_not_the_makers() -> None:
    result = outcome(sold(bilateral(value=8_000, cost=5_000, opener=Role.SELLER), price_cents=8_500))
    assert (result.seller_violations, result.buyer_violations) == (0, 1)


# --- Many episodes ------------------------------------------------------------------------------------------


def test_nothing_is_known_about_no_episodes() -> None:
    assert metrics.summary([]) == Summary(
        episodes=0,
        deals=0,
        deal_rate=None,
        seller_surplus_share=None,
        buyer_surplus_share=None,
        unconditional_seller_share=None,
        seller_extraction=None,
        allocation_quality=None,
        constraint_adherence=None,
        constraint_adherence_by_role={"seller": None, "buyer": None},
        mean_turns=None,
    )


def test_four_bilateral_episodes_by_hand() -> None:
    """A deal at $56 ($6 of $30), one at $95 ($45 of $50), an impasse over $30, and one where no trade can gain."""
    bought = bilateral(value=8_000, cost=5_000, opener=Role.SELLER)
    dear = bilateral(value=10_000, cost=5_000, opener=Role.SELLER)
    hopeless = bilateral(value=4_000, cost=5_000, opener=Role.SELLER)
    result = metrics.summary(
        outcome(table)
        for table in (
            sold(bought, price_cents=5_600),
            sold(dear, price_cents=9_500),
            impasse(bought),
            impasse(hopeless),
        )
    )
    assert result.episodes == 4
    assert result.deals == 2
    assert result.deal_rate == 0.5
    assert result.seller_surplus_share == pytest.approx((0.2 + 0.9) / 2)
    assert result.buyer_surplus_share == pytest.approx((0.8 + 0.1) / 2)
    assert result.unconditional_seller_share == pytest.approx((0.2 + 0.9 + 0.0) / 3)
    assert result.seller_extraction == pytest.approx((600 + 4_500) / (3_000 + 5_000 + 3_000))
    assert result.allocation_quality == pytest.approx((3_000 + 5_000) / 11_000)
    assert result.constraint_adherence == 1.0
    assert result.mean_turns == 0.5


def test_buyers_shares_are_of_the_pair_that_traded_and_sellers_of_the_best_pair() -> None:
    """Cost $40, highest value $110; the buyer of $72 pays $56: half of its pair's $32, and $16 of the seller's $70."""
    table = sold(multi_buyer(values=(4_800, 7_200, 11_000), cost=4_000), buyer=2, price_cents=5_600)
    result = metrics.summary([outcome(table)])
    assert result.buyer_surplus_share == pytest.approx(0.5)
    assert result.seller_surplus_share == pytest.approx(1_600 / 7_000)
    assert result.unconditional_seller_share == pytest.approx(1_600 / 7_000)


def test_two_units_in_one_episode_are_two_deals_of_one_episode_with_a_deal() -> None:
    table = Table(multi_buyer(values=(9_000, 8_000), cost=4_000, stock=2)).play_all(
        (SELLER, offer(8_000, to=1)), (B1, accept(1)), (SELLER, offer(7_000, to=2)), (B2, accept(1))
    )
    result = metrics.summary([outcome(table), outcome(impasse(multi_buyer(values=(9_000, 8_000), cost=4_000)))])
    assert (result.episodes, result.deals, result.deal_rate) == (2, 2, 0.5)
    assert result.seller_surplus_share == pytest.approx((4_000 / 5_000 + 3_000 / 5_000) / 2)
    assert result.unconditional_seller_share == pytest.approx((7_000 / 9_000 + 0) / 2)


def test_a_deal_without_a_zone_of_agreement_has_no_share_but_is_a_deal_and_a_loss() -> None:
    table = sold(bilateral(value=4_000, cost=5_000, opener=Role.SELLER), price_cents=4_500)
    result = metrics.summary([outcome(table)])
    assert result.deal_rate == 1.0
    assert result.seller_surplus_share is None
    assert result.buyer_surplus_share is None
    assert result.unconditional_seller_share is None
    assert result.seller_extraction is None
    assert result.allocation_quality is None
    assert result.constraint_adherence == 0.0


def test_pooled_ratios_weigh_episodes_by_what_was_at_stake() -> None:
    """A cent of $0.02 and all of $1,000: the mean share is .75, the pooled one nearly 1."""
    small = sold(bilateral(value=102, cost=100, opener=Role.SELLER), price_cents=101)
    large = sold(bilateral(value=200_000, cost=100_000, opener=Role.SELLER), price_cents=200_000)
    result = metrics.summary([outcome(small), outcome(large)])
    assert result.unconditional_seller_share == pytest.approx(0.75)
    assert result.seller_extraction == pytest.approx(100_001 / 100_002)


def test_adherence_is_told_for_each_side() -> None:
    """The buyer breaks a rule once in two messages, the seller once in one."""
    table = Table(bilateral(value=8_000, cost=5_000)).play_all((B1, offer(8_500)), (SELLER, offer(100)), (B1, say()))
    table.play(SELLER, LEAVE)
    result = metrics.summary([outcome(table)])
    assert result.constraint_adherence_by_role == {"seller": 0.0, "buyer": 0.5}
    assert result.constraint_adherence == pytest.approx(1 / 3)


def test_a_side_that_sent_no_message_has_no_adherence() -> None:
    result = metrics.summary([outcome(Table(bilateral()).play_all((B1, offer(3_000)), (SELLER, LEAVE)))])
    assert result.constraint_adherence_by_role == {"seller": None, "buyer": 1.0}
    assert result.constraint_adherence == 1.0


@settings(max_examples=60)
@given(st.lists(plays(finish=True), min_size=1, max_size=5))
def test_a_tally_fed_one_by_one_gives_what_the_summary_gives(games: list[Play]) -> None:
    results = [metrics.outcome(play.scenario, play.log) for play in games]
    tally = Tally()
    for result in results:
        tally.add(result)
    assert tally.summary() == metrics.summary(results)


@settings(max_examples=60)
@given(plays(finish=True))
def test_every_figure_stays_where_it_belongs(play: Play) -> None:
    result = metrics.summary([metrics.outcome(play.scenario, play.log)])
    for rate in (result.deal_rate, result.constraint_adherence, *result.constraint_adherence_by_role.values()):
        assert rate is None or 0 <= rate <= 1
    assert result.allocation_quality is None or result.allocation_quality <= 1
    encoded = msgspec.json.decode(msgspec.json.encode(result))
    assert set(encoded) == {field.name for field in msgspec.structs.fields(Summary)}


def test_the_unconditional_share_is_the_share_over_deals_times_the_deal_rate_when_all_can_gain() -> None:
    """Identity of the published results, such as .918 x .438 = .402, for one buyer and joint surpluses above 0."""
    tables = [
        sold(bilateral(opener=Role.SELLER), price_cents=5_600),
        sold(bilateral(opener=Role.SELLER), price_cents=7_100),
        impasse(bilateral()),
    ]
    result = metrics.summary(outcome(table) for table in tables)
    assert result.deal_rate is not None
    assert result.seller_surplus_share is not None
    assert result.unconditional_seller_share == pytest.approx(result.deal_rate * result.seller_surplus_share)


def test_three_buyers_are_three_parties_to_the_same_unit() -> None:
    table = Table(multi_buyer(openings=(2_600, 2_700, 2_800))).play_all((SELLER, offer(10_500, to=3)), (B3, accept(2)))
    assert [(deal.buyer, deal.price_cents) for deal in outcome(table).deals] == [(3, 10_500)]
