"""What is said about how agents negotiated can be worked out again from their seats."""

import json

import msgspec
import pytest

from markets.engine.figures import SeatFigures
from markets.engine.protocol import Role
from training.findings import SeatRow, find, rank_correlation


def seat(
    agent: str = "a",
    *,
    scenario: int = 0,
    role: Role = Role.BUYER,
    own: int = 100,
    other: int = 50,
    price: int | None = 70,
    share: float | None = 0.6,
    **figures,
) -> SeatRow:
    return SeatRow(
        scenario,
        agent,
        role,
        share,
        SeatFigures(
            own_value_cents=own, other_value_cents=other, list_price_cents=100, joint_cents=own - other,
            price_cents=price, deals=0 if price is None else 1, **figures,
        ),
    )  # fmt: skip


def test_habits_are_means_over_the_seats_where_they_are_defined() -> None:
    rows = [
        seat(scenario=0, opening_ratio=0.4, concession_rate=0.2, patience=0.5, distinct_offers=3),
        seat(scenario=1, opening_ratio=0.6, concession_rate=None, price=None, share=0.0, distinct_offers=1),
    ]
    habits = find(rows, scenarios=2).agents[0]
    assert habits.opening_ratio.value == pytest.approx(0.5)
    assert habits.concession_rate.value == pytest.approx(0.2)
    assert habits.patience.value == pytest.approx(0.5)
    assert habits.distinct_offers.value == pytest.approx(2)
    assert (habits.share.value, habits.deal_rate.value) == (pytest.approx(0.3), 0.5)


def test_a_seat_where_trade_cannot_gain_has_no_share_but_counts_towards_deals() -> None:
    habits = find([seat(scenario=0), seat(scenario=1, share=None, price=None)], scenarios=2).agents[0]
    assert (habits.share.value, habits.deal_rate.value) == (pytest.approx(0.6), 0.5)


@pytest.mark.parametrize(("follows", "slope"), [(0.0, 0.0), (0.5, 0.5), (1.0, 1.0)], ids=["blind", "half", "all"])
def test_price_discrimination_is_how_far_the_price_follows_the_other_sides_value(follows, slope) -> None:
    rows = [
        seat(scenario=k, role=Role.SELLER, other=100 + 10 * k, price=round(80 + follows * 10 * k)) for k in range(20)
    ]
    measured = find(rows, scenarios=20).agents[0].price_slope
    assert measured.value == pytest.approx(slope, abs=1e-9)
    assert measured.low == pytest.approx(slope, abs=1e-6)


def test_one_value_everywhere_has_no_slope() -> None:
    assert find([seat(scenario=k) for k in range(5)], scenarios=5).agents[0].price_slope.value is None


def test_tiers_are_fifths_by_own_value_the_same_for_everybody() -> None:
    rows = [
        seat(agent, scenario=k, own=100 * (k + 1), share=k / 10, price=None if k >= 8 else 70)
        for k in range(10)
        for agent in ("a", "b")
    ]
    habits = find(rows, scenarios=10).agents
    assert [(tier.low_cents, tier.high_cents, tier.games) for tier in habits[0].tiers] == [
        (100, 299, 2), (300, 499, 2), (500, 699, 2), (700, 899, 2), (900, 1000, 2),
    ]  # fmt: skip
    assert [tier.share.value for tier in habits[0].tiers] == pytest.approx([0.05, 0.25, 0.45, 0.65, 0.85])
    assert habits[0].share_spread == pytest.approx(0.8)
    assert habits[0].deal_rate_spread == 1
    low, high = habits[0].share_spread_low, habits[0].share_spread_high
    assert low is not None
    assert high is not None
    assert 0.7 - 1e-9 <= low <= 0.8 <= high <= 0.9 + 1e-9  # 0.8 or 0.9 at best, 0 or 0.1 at worst.
    assert habits[0].tiers == habits[1].tiers


def test_few_values_make_fewer_tiers() -> None:
    habits = find([seat(scenario=k) for k in range(4)], scenarios=4).agents[0]
    assert [tier.games for tier in habits.tiers] == [4]
    assert (habits.share_spread, habits.share_spread_low, habits.share_spread_high) == (None, None, None)


def claims(rows: list[SeatRow]):
    return {row.role: row for row in find(rows, scenarios=1).conceding}


def test_the_claim_about_conceding_is_stated_as_it_was_measured() -> None:
    firm = seat("firm", concession_rate=0.05, share=0.7)
    soft = seat("soft", concession_rate=0.4, share=0.2, price=None)
    sold = seat("soft", concession_rate=0.4, share=0.8)
    true, false = claims([firm, soft])[Role.BUYER], claims([firm, sold])[Role.BUYER]
    assert (true.most_conceding, true.lowest_share, true.lowest_deal_rate, true.holds) == ("soft", True, True, True)
    assert (false.lowest_share, false.lowest_share_agent, false.holds) == (False, "firm", False)


def test_nobody_has_the_lowest_deal_rate_where_all_deal_alike() -> None:
    """The claim would otherwise come out true of a tournament in which every negotiation ends in a deal."""
    firm, soft = seat("firm", concession_rate=0.05, share=0.7), seat("soft", concession_rate=0.4, share=0.2)
    found = claims([firm, soft])[Role.BUYER]
    assert (found.lowest_share, found.lowest_share_agent) == (True, "soft")
    assert (found.lowest_deal_rate, found.lowest_deal_rate_agent, found.holds) == (False, None, False)


def test_who_concedes_most_is_named_where_two_have_the_least() -> None:
    rows = [
        seat("a", concession_rate=0.1, share=0.2, price=None),
        seat("b", concession_rate=0.4, share=0.2, price=None),
        seat("c", concession_rate=0.2, share=0.7),
    ]
    found = claims(rows)[Role.BUYER]
    assert (found.lowest_share_agent, found.lowest_deal_rate_agent, found.holds) == ("b", "b", True)


def test_too_few_agents_or_steps_say_nothing() -> None:
    found = claims([seat("a", concession_rate=0.1), seat("b", concession_rate=None)])
    assert (found[Role.BUYER].holds, found[Role.BUYER].most_conceding) == (None, None)
    assert found[Role.SELLER].agents == 0


def test_findings_of_one_scenario_have_no_interval_and_no_nan() -> None:
    found = find([seat("a", concession_rate=0.1), seat("b", price=None, share=None)], scenarios=1)
    assert found.agents[0].share.low is None
    json.loads(msgspec.json.encode(found), parse_constant=pytest.fail)


def test_rank_correlations_share_ranks_and_need_three() -> None:
    assert rank_correlation([1, 2, 3], [10, 20, 30]) == pytest.approx(1)
    assert rank_correlation([1, 2, 3], [3, 2, 1]) == pytest.approx(-1)
    assert rank_correlation([1, 1, 2, 3], [1, 2, 3, 3]) == pytest.approx(4 / 4.5)
    assert rank_correlation([1, 2], [1, 2]) is None
    assert rank_correlation([1, 1, 1], [1, 2, 3]) is None


def habits_of(opening: float, share: float, *, agent: str, scenarios: int = 12) -> list[SeatRow]:
    return [
        seat(agent, scenario=k, opening_ratio=opening + 0.01 * (k % 3), share=share + 0.02 * (k % 3))
        for k in range(scenarios)
    ]


def association(rows: list[SeatRow], habit: str, *, scenarios: int = 12):
    found = find(rows, scenarios=scenarios).associations
    return next(row for row in found if row.role is Role.BUYER and row.habit == habit)


def test_what_a_habit_has_to_do_with_faring_well_comes_with_intervals() -> None:
    rows = [
        row
        for agent, opening, share in (("a", 0.4, 0.6), ("b", 0.5, 0.5), ("c", 0.6, 0.3))
        for row in habits_of(opening, share, agent=agent)
    ]
    found = association(rows, "opening_ratio")
    assert (found.agents, found.with_share) == (3, pytest.approx(-1))
    assert found.with_share_low == found.with_share_high == pytest.approx(-1)
    assert found.seats == 36
    assert -1 <= found.seats_with_share_low <= found.seats_with_share <= found.seats_with_share_high < -0.8
    assert found.seats_with_deal is None, "everybody dealt: nothing varies"


def test_seats_say_something_where_two_agents_are_too_few_to_rank() -> None:
    rows = habits_of(0.4, 0.6, agent="a") + habits_of(0.6, 0.3, agent="b")
    found = association(rows, "opening_ratio")
    assert found.with_share is None
    assert found.seats_with_share < -0.8


def test_an_uncertain_order_of_agents_has_a_wide_interval() -> None:
    rows = [
        seat(agent, scenario=k, opening_ratio=opening, share=(7 * k + 5 * turn) % 11 / 10)
        for turn, (agent, opening) in enumerate((("a", 0.4), ("b", 0.5), ("c", 0.6)))
        for k in range(12)
    ]
    found = association(rows, "opening_ratio")
    assert found.with_share_low < 0 < found.with_share_high


def test_a_price_slope_is_no_single_seats() -> None:
    assert association(habits_of(0.4, 0.6, agent="a"), "price_slope").seats_with_share is None


def test_associations_of_one_scenario_have_no_interval() -> None:
    rows = [
        seat(agent, opening_ratio=opening, share=share)
        for agent, opening, share in (("a", 1, 0.1), ("b", 2, 0.2), ("c", 3, 0.3))
    ]
    found = association(rows, "opening_ratio", scenarios=1)
    assert (found.with_share, found.with_share_low) == (pytest.approx(1), None)
    assert (found.seats_with_share, found.seats_with_share_low) == (pytest.approx(1), None)
