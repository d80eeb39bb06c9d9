"""What agents take the other side to be worth: a wrong mean would bias every split they propose."""

import pytest

from agents.scripted.beliefs import (
    expected_reservation_cents,
    mean_between,
    prior_mean_cents,
    value_interval,
)
from markets.engine import priors
from tests.markets.engine.factories import B1, SELLER, Table, multi_buyer, offer, reject

UNIT = priors.UniformSpec(low=0, high=1)


@pytest.mark.parametrize(("low", "high", "mean"), [(0, 1, 0.5), (0.6, 1, 0.8), (0, 0.4, 0.2), (0.25, 0.75, 0.5)])
def test_the_mean_of_a_uniform_value_between_two_bounds_is_their_middle(low: float, high: float, mean: float) -> None:
    assert mean_between(UNIT, low, high) == pytest.approx(mean, abs=1 / 256)


def test_bands_are_averaged_over_what_is_left_of_them() -> None:
    assert mean_between(priors.BandsSpec(), 0.9, 2) == pytest.approx(1.075, abs=1e-3)
    assert mean_between(priors.BandsSpec(), 0.5, 2) == pytest.approx((0.525 + 3 * 0.725 + 3 * 1.075) / 7, abs=0.01)


def test_a_lognormal_mean_has_its_tail() -> None:
    spec = priors.LogNormalSpec(median=100, sigma=0.5)
    assert mean_between(spec, 0, 1e9) == pytest.approx(100 * 2.718281828 ** (0.5**2 / 2), rel=0.01)


def test_bounds_outside_the_prior_give_the_nearest_one() -> None:
    assert mean_between(UNIT, 2, 3) == 2
    assert mean_between(UNIT, -3, -2) == -2
    assert mean_between(priors.BandsSpec(), 0.85, 0.9) == pytest.approx(0.875), "between two bands"


def test_a_seller_expects_a_buyer_above_its_cost_and_its_bids() -> None:
    table = Table(multi_buyer(values=(11_000,), cost=9_000))
    seen = table.sees(SELLER)
    assert expected_reservation_cents(seen, seen.threads[0], 0) == pytest.approx(10_750, abs=20)
    table.play(SELLER, offer(11_400, to=1))
    table.play(B1, offer(11_000))
    seen = table.sees(SELLER)
    assert expected_reservation_cents(seen, seen.threads[0], 0) == pytest.approx(11_250, abs=20)


def test_a_buyer_expects_a_cost_below_its_value_and_the_asks() -> None:
    """Costs are uniform from a tenth to nine tenths of the list price of 100 dollars."""
    table = Table(multi_buyer(values=(7_000,)))
    seen = table.sees(B1)
    assert prior_mean_cents(seen, 0) == pytest.approx(5_000, abs=20)
    assert expected_reservation_cents(seen, seen.threads[0], 0) == pytest.approx(4_000, abs=20)
    table.play(SELLER, offer(5_000, to=1))
    seen = table.sees(B1)
    assert expected_reservation_cents(seen, seen.threads[0], 0) == pytest.approx(3_000, abs=20)


def test_a_threshold_buyers_value_lies_between_its_bid_and_what_it_let_pass() -> None:
    table = Table(multi_buyer(values=(9_000,)))
    seen = table.sees(SELLER)
    assert value_interval(seen, seen.threads[0], 0) == (4_000, 11_500)
    table.play(SELLER, offer(10_000, to=1))
    table.play(B1, offer(6_000))
    table.play(SELLER, offer(9_500, to=1))
    table.play(B1, reject(3))
    seen = table.sees(SELLER)
    assert value_interval(seen, seen.threads[0], 0) == (6_000, 9_500)
    assert value_interval(seen, seen.threads[0], 0).middle == 7_750
