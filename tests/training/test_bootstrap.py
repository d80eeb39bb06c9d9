"""Whole scenarios are drawn again, and what cannot be told has no interval."""

import numpy as np
import pytest

from training.bootstrap import Estimate, Resamples, interval, resample


def over(scenarios: int, *, seed: int = 0) -> Resamples:
    return resample(np.arange(scenarios), seed, "test", 1000)


def test_every_resample_weighs_as_much_as_the_whole() -> None:
    weights = over(40).weights
    assert weights is not None
    assert weights.shape == (1000, 40)
    assert weights.sum(axis=1) == pytest.approx(np.ones(1000))
    assert weights.std() > 0


def test_a_ratio_is_a_quotient_of_sums_and_its_interval_that_of_scenarios_drawn_together() -> None:
    rng = np.random.default_rng(2)
    below = rng.integers(1, 9, size=200).astype(float)
    above = below * 0.3 + rng.normal(0, 0.2, size=200)
    (estimate,) = over(200).ratios([(above, below)])
    assert estimate.value == pytest.approx(above.sum() / below.sum())
    spread = (above - estimate.value * below).std() / below.mean() / np.sqrt(200)
    assert estimate.high - estimate.low == pytest.approx(2 * 1.96 * spread, rel=0.15)


def test_a_ratio_over_nothing_is_undefined_and_over_one_scenario_has_no_interval() -> None:
    nothing = np.zeros(5)
    assert over(5).ratios([(nothing, nothing)]) == [Estimate(None)]
    assert over(1).ratios([(np.array([1.0]), np.array([2.0]))]) == [Estimate(0.5)]
    assert interval([]) == Estimate(None)


def test_what_is_defined_in_one_scenario_of_many_has_no_interval_that_pretends() -> None:
    above, below = np.zeros(400), np.zeros(400)
    above[0], below[0] = 0.5, 1.0
    (estimate,) = over(400).ratios([(above, below)])
    assert estimate.value == 0.5
    assert estimate.low in (None, 0.5)


def test_the_mean_of_two_ratios_is_undefined_where_one_of_them_is() -> None:
    ones, zeros = np.ones(10), np.zeros(10)
    both = over(10).mean_ratio([(ones * 0.2, ones), (ones * 0.6, ones)])
    assert (both.value, both.low, both.high) == pytest.approx((0.4, 0.4, 0.4))
    assert over(10).mean_ratio([(ones, ones), (zeros, zeros)]) == Estimate(None)


def test_a_slope_is_least_squares_and_undefined_where_nothing_varies() -> None:
    rng = np.random.default_rng(4)
    x = rng.normal(size=300)
    y = 0.7 * x + rng.normal(0, 0.1, size=300)
    sums = np.stack([np.ones_like(x), x, y, x * x, x * y], axis=1)
    estimate = over(300).slope(sums)
    assert estimate.value == pytest.approx(np.polyfit(x, y, 1)[0])
    assert estimate.low < 0.7 < estimate.high
    flat = np.stack([np.ones_like(x), np.ones_like(x), y, np.ones_like(x), y], axis=1)
    assert over(300).slope(flat) == Estimate(None)
    assert over(300).slope(np.zeros((300, 5))) == Estimate(None)


def test_an_interval_holds_its_mean_where_every_scenario_says_the_same() -> None:
    for share in (1.0, 0.9999999999999999, 0.1 + 0.2):
        estimate = interval([share] * 7)
        assert estimate.low <= estimate.value <= estimate.high
        assert estimate.high <= max(1.0, share)


def test_a_correlation_is_pearsons_and_undefined_where_nothing_varies() -> None:
    rng = np.random.default_rng(5)
    x = rng.normal(size=200)
    y = x + rng.normal(size=200)
    sums = np.stack([np.ones_like(x), x, y, x * x, x * y, y * y], axis=1)
    estimate = over(200).correlation(sums)
    assert estimate.value == pytest.approx(np.corrcoef(x, y)[0, 1])
    assert estimate.low < estimate.value < estimate.high
    same = np.full(200, 0.3)
    level = np.stack([np.ones_like(x), same, y, same * same, same * y, y * y], axis=1)
    assert over(200).correlation(level) == Estimate(None)
