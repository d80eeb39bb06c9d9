"""The bootstrap behind every interval: whole scenarios are drawn again, for all agents alike.

Here: weights of the resamples, means and ratios in them, their ends. Not here: what is measured
(`ratings`, `findings`). Pure: numpy on demand.

Contract: percentile intervals (Efron 1979) at `LEVEL`, clustered by scenario: what belongs to a scenario
is drawn together, so comparisons are paired. The same seed and name give the same draws. Fewer than two
scenarios have no interval. Undefined is None; there is never a nan.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from markets.engine.seeds import derive_seed

if TYPE_CHECKING:
    import numpy as np

    Array: TypeAlias = np.ndarray[Any, Any]

RESAMPLES = 2000
LEVEL = 0.95
BUNDLES = 20_000
"""More scenarios than this are resampled in bundles of neighbours, which changes nothing but the cost."""
LEAST_RESAMPLES = 400
_CELLS = 8_000_000
"""Most weights that are kept: very many scenarios make do with fewer resamples."""


class Estimate(msgspec.Struct, frozen=True):
    """A mean with its interval."""

    value: float | None
    low: float | None = None
    high: float | None = None


NONE = Estimate(None)


@dataclass(frozen=True)
class Resamples:
    """Bootstrap weights over some scenarios: each resample's share of every bundle of them."""

    rows: "Array"
    starts: "Array"
    """Where each bundle begins among `rows`."""
    sizes: "Array"
    weights: "Array | None"
    """(resamples, bundles); None where fewer than two scenarios are there."""

    def draws(self, per_row: "Array") -> "Array":
        """Means in every resample of numbers a scenario (of all scenarios)."""
        import numpy as np

        assert self.weights is not None
        sums = np.add.reduceat(per_row[self.rows], self.starts, axis=0)
        return self.weights @ (sums.T / self.sizes).T

    def estimate(self, per_row: "Array") -> Estimate:
        """Mean of one number a scenario (of all scenarios), with its interval."""
        values = per_row[self.rows]
        if not len(values):
            return NONE
        mean = float(values.mean())
        if self.weights is None:
            return Estimate(mean)
        return around(mean, self.draws(per_row))

    def estimates(self, columns: "Array") -> list[Estimate]:
        """`estimate` of every column at once."""
        values = columns[self.rows]
        if not len(values):
            return [NONE] * columns.shape[1]
        means = values.mean(axis=0).tolist()
        if self.weights is None:
            return [Estimate(mean) for mean in means]
        return [around(mean, draws) for mean, draws in zip(means, self.draws(columns).T, strict=True)]

    def ratios(self, parts: "Sequence[tuple[Array, Array]]") -> list[Estimate]:
        """Of each pair: sum of one number a scenario / sum of the other, with its interval; None where that sums to 0.

        Resamples in which nothing is below are left out; where that is more than half there is no interval.
        """
        import numpy as np

        columns = np.stack([column for pair in parts for column in pair], axis=1).astype(float)
        tops, bottoms = columns[self.rows].sum(axis=0).reshape(-1, 2).T
        draws = None if self.weights is None else self.draws(columns)
        return [
            NONE
            if not bottom
            else Estimate(float(top / bottom))
            if draws is None
            else self._of_draws(float(top / bottom), draws[:, 2 * place], draws[:, 2 * place + 1])
            for place, (top, bottom) in enumerate(zip(tops, bottoms, strict=True))
        ]

    def mean_ratio(self, parts: "Sequence[tuple[Array, Array]]") -> Estimate:
        """Mean of several ratios of sums, with its interval; None where one of them is undefined."""
        import numpy as np

        single = self.ratios(parts)
        values = [estimate.value for estimate in single if estimate.value is not None]
        if len(values) < len(parts):
            return NONE
        value = sum(values) / len(values)
        if self.weights is None:
            return Estimate(value)
        draws = self.draws(np.stack([column for pair in parts for column in pair], axis=1).astype(float))
        bottoms = draws[:, 1::2]
        usable: Array = np.all(bottoms > 1e-12, axis=1)
        if usable.sum() * 2 < len(usable):
            return Estimate(value)
        return around(value, (draws[usable, 0::2] / bottoms[usable]).mean(axis=1))

    def slope(self, sums: "Array") -> Estimate:
        """Least-squares slope from each scenario's (n, sum x, sum y, sum xx, sum xy); None where x does not vary."""
        total = sums[self.rows].sum(axis=0) / max(1, len(self.rows))
        top, bottom = _slope_parts(*total)
        if total[0] * len(self.rows) < 2 or bottom <= 1e-12 * max(1.0, float(total[3]) * float(total[0])):
            return NONE
        value = float(top / bottom)
        if self.weights is None:
            return Estimate(value)
        return self._of_draws(value, *_slope_parts(*self.draws(sums).T))

    def ratio_draws(self, parts: "Sequence[tuple[Array, Array]]") -> "Array":
        """(resamples, pairs): each pair's ratio of sums in every resample, nan where it is undefined there."""
        import numpy as np

        draws = self.draws(np.stack([column for pair in parts for column in pair], axis=1).astype(float))
        return _quotients(draws[:, 0::2], draws[:, 1::2])

    def slope_draws(self, sums: "Array") -> "Array":
        """The least-squares slope in every resample, nan where x does not vary there; `sums` as in `slope`."""
        return _quotients(*_slope_parts(*self.draws(sums).T))

    def correlation(self, sums: "Array") -> Estimate:
        """Pearson's, from each scenario's (n, sum x, sum y, sum xx, sum xy, sum yy); None where x or y never varies."""
        total = sums[self.rows].sum(axis=0)
        value = _correlations(total[None])[0]
        if value != value:
            return NONE
        if self.weights is None:
            return Estimate(float(value))
        return of_draws(float(value), _correlations(self.draws(sums)))

    def _of_draws(self, value: float, tops: "Array", bottoms: "Array") -> Estimate:
        usable: Array = bottoms > 1e-12
        if usable.sum() * 2 < len(usable):
            return Estimate(value)
        return around(value, tops[usable] / bottoms[usable])


def _slope_parts(n: Any, x: Any, y: Any, xx: Any, xy: Any) -> tuple[Any, Any]:
    return n * xy - x * y, n * xx - x * x


def _quotients(tops: "Array", bottoms: "Array") -> "Array":
    import numpy as np

    defined = bottoms > 1e-12
    return np.where(defined, tops / np.where(defined, bottoms, 1.0), np.nan)


def _correlations(sums: "Array") -> "Array":
    """Pearson's of each line of (n, x, y, xx, xy, yy), nan where a variance is nothing but rounding."""
    import numpy as np

    n, x, y, xx, xy, yy = sums.T
    across, up = n * xx - x * x, n * yy - y * y
    varies = (across > 1e-9 * np.maximum(n * xx, 1e-12)) & (up > 1e-9 * np.maximum(n * yy, 1e-12))
    scale = np.sqrt(np.where(varies, across, 1.0)) * np.sqrt(np.where(varies, up, 1.0))
    return np.where(varies, np.clip((n * xy - x * y) / scale, -1.0, 1.0), np.nan)


def of_draws(value: float, draws: "Array") -> Estimate:
    """An estimate from its draws, the undefined (nan) left out; no interval where they are more than half."""
    import numpy as np

    usable = draws[~np.isnan(draws)]
    if usable.size * 2 < draws.size:
        return Estimate(value)
    return around(value, usable)


def around(value: float, draws: "Array") -> Estimate:
    """An estimate whose interval contains it: means of equal numbers differ in their last digit by the order of sums."""
    return Estimate(value, *(snapped(value, end) for end in ends(draws)))


def snapped(value: float, end: float) -> float:
    """An end of an interval without the noise of its last digits, and the value itself where they are as good as equal."""
    near = round(end, 12)
    return value if abs(near - value) <= 1e-11 * max(1.0, abs(value)) else near


def resample(rows: "Array", seed: int, name: str, resamples: int) -> Resamples:
    """Draw the scenarios `rows` again and again."""
    import numpy as np

    size = max(1, -(-len(rows) // BUNDLES))
    starts = np.arange(0, len(rows), size)
    sizes = np.diff(np.append(starts, len(rows)))
    count = len(starts)
    if len(rows) < 2:
        return Resamples(rows, starts, sizes, None)
    resamples = min(resamples, max(LEAST_RESAMPLES, _CELLS // count))
    rng = np.random.default_rng(derive_seed("bootstrap", name, seed))
    weights = np.empty((resamples, count))
    step = max(1, _CELLS // 8 // count)
    for start in range(0, resamples, step):
        lines = min(step, resamples - start)
        drawn = rng.integers(0, count, size=(lines, count)) + np.arange(lines)[:, None] * count
        times = np.bincount(drawn.ravel(), minlength=lines * count).reshape(lines, count) * sizes
        weights[start : start + lines] = times / times.sum(axis=1, keepdims=True)
    return Resamples(rows, starts, sizes, weights)


def ends(draws: "Array") -> tuple[float, float]:
    """Where the middle `LEVEL` of the draws begins and ends."""
    import numpy as np

    low, high = np.quantile(draws, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return float(low), float(high)


def interval(per_scenario: Sequence[float], *, seed: int = 0, resamples: int = RESAMPLES) -> Estimate:
    """Mean of one number a scenario with its interval; None where there is too little."""
    import numpy as np

    values = np.asarray(per_scenario, dtype=float)
    return resample(np.arange(len(values)), seed, "interval", resamples).estimate(values)
