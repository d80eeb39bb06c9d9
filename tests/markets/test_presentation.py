"""Tests of the price line's geometry and of what the page dataclasses promise.

What a player would lose: labels that lie on one another, a mark at the wrong price, an axis that
jumps with every offer, a consent text that changed without its version changing.
"""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from markets import presentation
from markets.presentation import Label, Mark, MarkKind, Slot, lay_out, price_line

TEMPLATES = Path(__file__).parents[2] / "templates"


def money(cents: int) -> str:
    return f"${cents / 100:,.2f}"


def mark(kind: MarkKind, cents: int, role: presentation.Role = "buyer") -> Mark:
    return Mark(kind=kind, cents=cents, label="someone", money=money(cents), role=role)


def overlap(one: Slot, other: Slot) -> bool:
    return one.lane == other.lane and one.left < other.right and other.left < one.right


labels = st.lists(
    st.builds(
        Label,
        x=st.floats(min_value=0, max_value=1, allow_nan=False),
        width=st.floats(min_value=0.05, max_value=0.9, allow_nan=False),
    ),
    max_size=9,
)


@given(labels)
def test_labels_never_overlap(wanted: list[Label]) -> None:
    slots = lay_out(wanted)
    for index, slot in enumerate(slots):
        assert not any(overlap(slot, other) for other in slots[:index])


@given(labels)
def test_every_label_keeps_its_place_in_the_order_given(wanted: list[Label]) -> None:
    slots = lay_out(wanted)
    assert len(slots) == len(wanted)
    for slot, label in zip(slots, wanted, strict=True):
        assert slot.right - slot.left == pytest.approx(label.width)


@given(labels)
def test_a_label_that_fits_stays_inside_the_line(wanted: list[Label]) -> None:
    for slot, label in zip(lay_out(wanted), wanted, strict=True):
        if label.width <= 0.45:
            assert slot.left >= -1e-9
            assert slot.right <= 1 + 1e-9


def test_two_labels_far_apart_share_a_row() -> None:
    slots = lay_out([Label(x=0.2, width=0.2), Label(x=0.8, width=0.2)])
    assert [slot.lane for slot in slots] == [0, 0]
    assert [slot.anchor for slot in slots] == ["middle", "middle"]


def test_a_line_to_a_far_row_does_not_strike_a_nearer_label() -> None:
    wanted = [Label(x=0.5, width=0.3), Label(x=0.52, width=0.3), Label(x=0.54, width=0.3)]
    slots = lay_out(wanted)
    for slot in slots:
        for other, label in zip(slots, wanted, strict=True):
            assert other.lane <= slot.lane or not slot.left < label.x < slot.right


def test_eight_bids_at_one_price_still_get_eight_rows() -> None:
    slots = lay_out([Label(x=0.5, width=0.7)] * 8)
    assert sorted(slot.lane for slot in slots) == list(range(8))


@pytest.mark.parametrize(
    ("span_cents", "step_cents"), [(5_000, 1_000), (9_900, 2_000), (260, 100), (1, 1), (120_000, 25_000)]
)
def test_the_axis_steps_in_round_amounts(span_cents: int, step_cents: int) -> None:
    assert presentation.axis_step_cents(span_cents) == step_cents


def test_marks_lie_in_the_order_of_their_prices() -> None:
    line = price_line(
        title="",
        money=money,
        marks=[
            mark(MarkKind.RESERVATION, 8_400),
            mark(MarkKind.THEIR_OFFER, 9_200),
            mark(MarkKind.YOUR_OFFER, 7_000),
            mark(MarkKind.LIST, 12_000),
        ],
    )
    places = {placed.kind: float(placed.x.removesuffix("%")) for placed in line.marks}
    assert places["your_offer"] < places["reservation"] < places["their_offer"] < places["list"]
    assert all(0 < place < 100 for place in places.values())


def test_equal_spacing_in_money_is_equal_spacing_on_the_line() -> None:
    line = price_line(
        title="",
        money=money,
        marks=[mark(MarkKind.RESERVATION, cents) for cents in (4_000, 6_000, 8_000)],
    )
    low, middle, high = (float(placed.x.removesuffix("%")) for placed in line.marks)
    assert middle - low == pytest.approx(high - middle, abs=0.02)
    assert (high - low) / 100 * line.span_cents == pytest.approx(4_000, rel=0.01)


def test_the_axis_stays_still_while_offers_move_inside_the_core() -> None:
    value = mark(MarkKind.RESERVATION, 8_400)
    axes = {
        (line.ticks[0].x, line.ticks[-1].x, line.marks[0].x, line.span_cents)
        for cents in (4_500, 7_000, 9_900, 11_800)
        if (
            line := price_line(
                title="", money=money, core=(4_000, 12_000), marks=[value, mark(MarkKind.THEIR_OFFER, cents)]
            )
        )
    }
    assert len(axes) == 1


def test_an_absurd_offer_is_pinned_to_the_edge_and_leaves_the_rest_readable() -> None:
    line = price_line(
        title="",
        money=money,
        core=(4_000, 12_000),
        marks=[mark(MarkKind.RESERVATION, 8_400), mark(MarkKind.THEIR_OFFER, 10_000_000_000)],
    )
    value, absurd = line.marks
    assert (absurd.x, absurd.off) == ("100.00%", "high")
    assert 20 < float(value.x.removesuffix("%")) < 80


@given(st.lists(st.integers(min_value=1, max_value=10_000_000_000), max_size=8))
def test_any_prices_can_be_drawn(prices: list[int]) -> None:
    kinds = list(MarkKind)
    marks = [mark(kinds[index % len(kinds)], cents) for index, cents in enumerate(prices)]
    line = price_line(title="", money=money, marks=marks)
    assert len(line.marks) == len(prices)
    assert all(0 <= float(placed.x.removesuffix("%")) <= 100 for placed in line.marks)
    assert len(line.ticks) <= 8


def test_the_side_that_gains_is_right_of_a_sellers_value_and_left_of_a_buyers() -> None:
    def gain(role: presentation.Role) -> presentation.Band:
        (band,) = price_line(
            title="",
            money=money,
            core=(0, 10_000),
            gain_for=role,
            marks=[mark(MarkKind.RESERVATION, 4_000, role=role)],
        ).bands
        return band

    assert (gain("buyer").x, gain("buyer").width) == ("0.00%", "40.00%")
    assert (gain("seller").x, gain("seller").width) == ("40.00%", "60.00%")


def test_an_empty_zone_of_agreement_is_not_drawn() -> None:
    values = [mark(MarkKind.RESERVATION, 4_600), mark(MarkKind.THEIR_RESERVATION, 8_400)]
    zone = price_line(title="", money=money, agreement=(4_600, 8_400), marks=values).bands
    none = price_line(title="", money=money, agreement=(8_400, 4_600), marks=values).bands
    assert [band.kind for band in zone] == ["agreement"]
    assert none == ()


def test_values_are_labelled_above_and_offers_below_the_axis() -> None:
    line = price_line(
        title="",
        money=money,
        marks=[mark(MarkKind.RESERVATION, 8_000), mark(MarkKind.THEIR_OFFER, 9_000)],
    )
    value, offer = line.marks
    assert value.label_y < line.axis_y < offer.label_y <= line.height


def test_past_offers_have_no_label() -> None:
    (placed,) = price_line(title="", money=money, marks=[mark(MarkKind.PAST_OFFER, 5_000)]).marks
    assert placed.lane == -1


def test_a_tick_is_not_struck_through_by_an_offer() -> None:
    line = price_line(title="", money=money, core=(0, 10_000), marks=[mark(MarkKind.THEIR_OFFER, 6_000)])
    texts = {tick.x: tick.text for tick in line.ticks}
    assert texts["60.00%"] == ""
    assert texts["0.00%"] == "$0.00"


def test_turns_left_are_counted_from_the_end() -> None:
    status = presentation.StatusBar(my_turn=True, turn_text="", turns_left=2, turns_total=5)
    assert status.pips == (False, False, False, True, True)


@pytest.mark.parametrize(("fraction", "bar"), [(None, ""), (0.61, "61.00%"), (-0.4, "0.00%"), (1.7, "100.00%")])
def test_a_bar_never_leaves_its_track(fraction: float | None, bar: str) -> None:
    assert presentation.Figure(label="", value="", fraction=fraction).bar == bar


def test_a_changed_consent_wording_needs_a_new_version() -> None:
    template = (TEMPLATES / "markets" / "_consent.html").read_text(encoding="utf-8")
    wording = "\n".join(re.findall(r'{% translate "([^"]*)" %}', template))
    digest = hashlib.sha256(wording.encode()).hexdigest()[:12]
    assert (presentation.CONSENT_VERSION, digest) == ("2026-11-a", "6b267d89d6df")
