"""A row says yes only to a figure that is there and close enough."""

import math

import pytest

from negotiation_site.economics.rows import MAX_TOLERANCE, Row


def row(**changes: object) -> Row:
    return Row(**({"name": "a/b", "reference": 0.5, "measured": 0.5, "tolerance": 0.01} | changes))


@pytest.mark.parametrize("measured", [0.49, 0.5, 0.51])
def test_a_figure_within_its_tolerance_is_right(measured: float) -> None:
    assert row(measured=measured).ok


@pytest.mark.parametrize("measured", [0.4899, 0.5101, None, math.nan, math.inf])
def test_a_figure_beyond_it_or_undefined_is_wrong(measured: float | None) -> None:
    assert not row(measured=measured).ok


@pytest.mark.parametrize("tolerance", [MAX_TOLERANCE + 0.001, 1.0, -0.1, math.nan])
def test_no_row_is_loose_enough_to_hide_a_fault(tolerance: float) -> None:
    with pytest.raises(ValueError, match="has a tolerance of"):
        row(tolerance=tolerance)


def test_a_row_is_told_with_the_keys_of_the_contract() -> None:
    assert row(measured=1 / 3).told() == {
        "name": "a/b",
        "reference": 0.5,
        "measured": 0.333333,
        "tolerance": 0.01,
        "ok": False,
    }
    assert row(measured=None).told()["measured"] is None
