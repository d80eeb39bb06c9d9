"""What the best informed play could reach: ladders of offers, posted prices, assignments.

Here: the value of any fixed sequence of offers to threshold buyers under a public prior, the best
such sequence (`optimal_ladder`), its simpler rivals (`linear_ladder`, `one_pass`,
`single_buyer_ladder`, `single_price`, `posted_price`), the mirror image for a buyer
(`buyer_ladder`), and the best assignment of products to buyers (`optimal_assignment`).
Not here: agents that play these, or metrics over episodes.

Contract: pure functions of the prior. Every figure holds against *myopic threshold* parties, who
accept whatever is at least as good as their own reservation value and nothing else; a strategic
buyer would wait, and then the optimal auction (Myerson 1981) is the ceiling instead. Numbers are
in the spec's own unit (multiples of a list price or of a unit of money), shares are fractions.
numpy and scipy are imported when first needed.

Model (sequential posted prices, Chawla, Hartline, Malec and Sivan 2010, with repeated visits): a
turn is one binding offer to one buyer and its answer, acceptance ends the game, so only
rejections go on and every policy is a fixed sequence of (buyer, price). With u_j the last price
that buyer j refused, S(u) = P(V_j < u_j for all j) and S_0 = 1, a sequence earns

    revenue = sum over t of (p_t - c) * (S_{t-1} - S_t).

S is a mixture of independent cases: one for independent values, the nodes of the common factor
for correlated ones (`priors.factor_nodes`), and for bands the coefficient of a polynomial, taken
exactly by a discrete Fourier transform instead of up to 34,650 ways of dealing bands to buyers.
A hidden common factor is averaged over `priors.FACTOR_CELLS` equal parts of its interval, inside
each of which every buyer's factor is taken to be independent: shares of the first best come out
within 3e-4 of eight times as many parts for N = 4 and 6 under U[.6, 1.6], and within 1e-5 for
N = 2 and 3, where no two buyers share a band.
"""

from __future__ import annotations

import math
from bisect import bisect_right
from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import pairwise
from itertools import product as cartesian
from typing import TYPE_CHECKING, Protocol

import msgspec

from markets.engine import priors

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy as np
    from numpy.typing import NDArray

    Array = NDArray[np.float64]

MAX_BUYERS = 12
MAX_TURNS = 64
COST_STEPS = 256
"""Ladders are computed for costs on a grid of this many steps between the lowest value and
`priors.ladder_top`, and at the kinks between; then priced at the true cost, see `optimal_ladder`."""


class Ladder(msgspec.Struct, frozen=True, kw_only=True):
    """A sequence of offers by a seller and what it is worth against myopic threshold buyers."""

    prices: tuple[float, ...]
    """Price of each turn, in the prior's unit; never below the cost."""
    order: tuple[int, ...]
    """Buyer of each turn, counted from 0."""
    revenue: float
    """Expected seller's surplus E[price - cost; deal]."""
    first_best: float
    """Largest attainable expected welfare, E[(highest value - cost)+]."""
    welfare: float
    """Expected realised welfare, E[value of the buyer served - cost; deal]."""
    deal_rate: float

    @property
    def revenue_share(self) -> float | None:
        """Revenue / first best; None where trade cannot gain anything."""
        return self.revenue / self.first_best if self.first_best > 0 else None

    @property
    def welfare_share(self) -> float | None:
        """Welfare / first best (Smith 1962's efficiency); None likewise."""
        return self.welfare / self.first_best if self.first_best > 0 else None


_SCORE_REACH = 8.0
"""Normal scores beyond this distance from 0 have no density that counts."""

_GAUSS_POINTS = 10

# Distribution functions on arrays --------------------------------------------------------------


class _Curve(Protocol):
    """One buyer's distribution function."""

    kinks: Array
    """Where the function or its slope jumps, and both ends of the support."""
    unit: float
    """Width over which most of the values lie."""
    panels: Array
    """Edges of intervals on which a Gauss rule of `_GAUSS_POINTS` points is exact enough."""

    def below(self, x: Array) -> Array:
        """P(V < x)."""

    def density(self, x: Array) -> Array: ...

    def score(self, x: Array) -> Array:
        """Normal score of P(V < x)."""

    def score_slope(self, x: Array) -> Array:
        """Derivative of `score`."""


class _LinearCurve:
    """A piecewise-linear distribution function."""

    def __init__(self, knots: priors.Knots) -> None:
        import numpy as np

        self.kinks = np.array(knots.at)
        self._below, self._upto = np.array(knots.below), np.array(knots.upto)
        self.panels = self.kinks
        self.unit = float(self.kinks[-1] - self.kinks[0]) or 1.0

    def below(self, x: Array) -> Array:
        import numpy as np

        right = np.searchsorted(self.kinks, x, side="left")
        left = np.maximum(right - 1, 0)
        right = np.minimum(right, len(self.kinks) - 1)
        width = self.kinks[right] - self.kinks[left]
        part = (x - self.kinks[left]) / np.where(width > 0, width, 1.0)
        inside = self._upto[left] + part * (self._below[right] - self._upto[left])
        return np.where(x <= self.kinks[0], 0.0, np.where(x > self.kinks[-1], 1.0, inside))

    def density(self, x: Array) -> Array:
        import numpy as np

        if len(self.kinks) == 1:
            return np.zeros_like(x)
        right = np.clip(np.searchsorted(self.kinks, x, side="left"), 1, len(self.kinks) - 1)
        rise = self._below[right] - self._upto[right - 1]
        slope = rise / (self.kinks[right] - self.kinks[right - 1])
        return np.where((x < self.kinks[0]) | (x > self.kinks[-1]), 0.0, slope)

    def score(self, x: Array) -> Array:
        from scipy.special import ndtri

        return ndtri(self.below(x))

    def score_slope(self, x: Array) -> Array:
        import numpy as np

        score = np.clip(self.score(x), -_SCORE_REACH, _SCORE_REACH)
        return self.density(x) * math.sqrt(2 * math.pi) * np.exp(score * score / 2)


class _LogNormalCurve:
    """The distribution function of a lognormal variable, cut where its tail no longer counts."""

    def __init__(self, spec: priors.LogNormalSpec) -> None:
        import numpy as np

        self._median, self._sigma = spec.median, spec.sigma
        self.unit = priors.ladder_top(spec)
        reach = 7.0 + spec.sigma
        scores = np.linspace(-reach, reach, 2 * math.ceil(reach * max(1.0, spec.sigma)) + 1)
        self.panels = spec.median * np.exp(spec.sigma * scores)
        self.kinks = self.panels[[0, -1]]

    def below(self, x: Array) -> Array:
        from scipy.special import ndtr

        return ndtr(self.score(x))

    def density(self, x: Array) -> Array:
        import numpy as np

        score = self.score(x)
        return self.score_slope(x) * np.exp(-score * score / 2) / math.sqrt(2 * math.pi)

    def score(self, x: Array) -> Array:
        import numpy as np

        return np.log(np.maximum(x, 1e-300) / self._median) / self._sigma

    def score_slope(self, x: Array) -> Array:
        import numpy as np

        return 1.0 / (self._sigma * np.maximum(x, 1e-300))


class _MirroredLogNormalCurve:
    """The distribution function of `top` minus a lognormal variable."""

    def __init__(self, spec: priors.LogNormalSpec) -> None:
        self._curve = _LogNormalCurve(spec)
        self.top = float(self._curve.kinks[-1])
        self.unit = self._curve.unit
        self.panels = self.top - self._curve.panels[::-1]
        self.kinks = self.panels[[0, -1]]

    def below(self, x: Array) -> Array:
        return 1.0 - self._curve.below(self.top - x)

    def density(self, x: Array) -> Array:
        return self._curve.density(self.top - x)

    def score(self, x: Array) -> Array:
        return -self._curve.score(self.top - x)

    def score_slope(self, x: Array) -> Array:
        return self._curve.score_slope(self.top - x)


class _FactorCurve:
    """One buyer's distribution function under a hidden common factor, whatever the factor is."""

    def __init__(self, spec: priors.FactorSpec) -> None:
        import numpy as np

        self._edges = _FactorEdges(spec, cells=1)
        low, high = priors.low(spec), priors.high(spec)
        self.kinks = np.array([low, high])
        self.unit = high - low
        self.panels = np.linspace(low, high, 65)

    def below(self, x: Array) -> Array:
        return self._edges.below(x).mean(axis=(1, 2))

    def density(self, x: Array) -> Array:
        return self._edges.density(x).mean(axis=(1, 2))

    def score(self, x: Array) -> Array:
        raise NotImplementedError("Values under a common factor have no correlation beside it.")

    def score_slope(self, x: Array) -> Array:
        raise NotImplementedError("Values under a common factor have no correlation beside it.")


class _FactorEdges:
    """P(F Y < x) for F uniform on each of `cells` parts of its interval and Y uniform on each band.

    The mean over F of P(Y < x / F), in closed form: smooth in x, so that it can be climbed.
    """

    def __init__(self, spec: priors.FactorSpec, *, cells: int) -> None:
        import numpy as np

        bands = spec.base.bands if isinstance(spec.base, priors.BandsSpec) else ((spec.base.low, spec.base.high),)
        self._start, self._end = np.array(bands).T[:, None, None, :]
        cuts = np.linspace(spec.factor.low, spec.factor.high, cells + 1)
        self._from, self._to = cuts[:-1, None], cuts[1:, None]

    def below(self, x: Array) -> Array:
        """(x, cell, band)."""
        import numpy as np

        covered, reached = self._stretch(x)
        at = x[:, None, None]
        partly = at * np.log(reached / covered) - self._start * (reached - covered)
        width = self._end - self._start
        inside = np.divide(partly, width, out=np.zeros_like(partly), where=width > 0)
        return (covered - self._from + inside) / (self._to - self._from)

    def density(self, x: Array) -> Array:
        """Derivative of `below` by x; (x, cell, band)."""
        import numpy as np

        covered, reached = self._stretch(x)
        width = self._end - self._start
        at = np.broadcast_to(x[:, None, None] / np.maximum(self._end, 1e-300), covered.shape)
        jump = np.where((self._from < at) & (at < self._to), 1 / self._end, 0.0)
        inside = np.divide(np.log(reached / covered), width, out=jump, where=width > 0)
        return inside / (self._to - self._from)

    def _stretch(self, x: Array) -> tuple[Array, Array]:
        """The factors below which every Y gives less than x, and those above which none does."""
        import numpy as np

        at = np.maximum(x, 0.0)[:, None, None]
        covered = np.clip(at / self._end, self._from, self._to)
        return covered, np.clip(at / np.maximum(self._start, 1e-300), self._from, self._to)


class _Joint:
    """P(V_1 < u_1, …, V_N < u_N) as Re sum over m of w_m * product over j of F_m(u_j)."""

    def __init__(
        self,
        curves: Sequence[_Curve],
        *,
        buyers: int,
        kinked: bool,
        weights: Array | None = None,
        mix: Array | None = None,
        factor: Array | None = None,
        rho: float = 0.0,
    ) -> None:
        import numpy as np

        self.buyers, self.kinked = buyers, kinked
        self.weights = np.ones(1) if weights is None else weights
        self._curves, self._mix, self._factor, self._rho = curves, mix, factor, rho
        self.kinks = np.unique(np.concatenate([curve.kinks for curve in curves]))
        self.low, self.high = float(self.kinks[0]), float(self.kinks[-1])
        panels = np.unique(np.concatenate([curve.panels for curve in curves]))
        self.panels = panels if factor is None else _subdivide(panels, 8)
        inside = self._integrate(self.panels[:-1], self.panels[1:])
        self.certain = self.below(np.array([2 * self.high + 1]))
        self.unit = max(self.high - self.low if len(curves) > 1 else 0.0, curves[0].unit)
        self._upto_panel = np.concatenate([np.zeros((1, len(self.weights))), inside]).cumsum(axis=0)

    def below(self, x: Array) -> Array:
        """F_m(x): one row per x, one column per case."""
        import numpy as np

        if self._factor is not None:
            from scipy.special import ndtr

            return ndtr(self._conditional_score(x))
        shares = np.stack([curve.below(x) for curve in self._curves], axis=-1)
        return shares if self._mix is None else shares @ self._mix

    def density(self, x: Array) -> Array:
        """Derivative of `below`."""
        import numpy as np

        if self._factor is not None:
            score = self._conditional_score(x)
            slope = self._curves[0].score_slope(x)[:, None] / math.sqrt(1 - self._rho)
            return slope * np.exp(-score * score / 2) / math.sqrt(2 * math.pi)
        densities = np.stack([curve.density(x) for curve in self._curves], axis=-1)
        return densities if self._mix is None else densities @ self._mix

    def mixed(self, cases: Array) -> Array:
        """The average over the cases, along the last axis."""
        mean: Array = (cases * self.weights).sum(axis=-1).real
        return mean

    def integral(self, x: Array) -> Array:
        """Integral of `below` from the lowest value to x, a row per x."""
        import numpy as np

        inside = np.clip(x, self.low, self.high)
        panel = np.searchsorted(self.panels, inside, side="right") - 1
        part = self._integrate(self.panels[panel], inside)
        beyond = np.maximum(x - self.high, 0.0)[:, None] * self.certain
        return self._upto_panel[panel] + part + beyond

    def first_best(self, cost: float) -> float:
        """E[(highest value - cost)+], the integral of 1 - S(x, …, x) from the cost up."""
        import numpy as np

        edges = np.maximum(self.panels, cost)
        points, widths = _gauss(edges[:-1], edges[1:])
        nobody = self.mixed(self.below(points.ravel()) ** self.buyers)
        inside = float(((1 - nobody.reshape(points.shape)) * widths).sum())
        return inside + max(self.low - cost, 0.0)

    def _conditional_score(self, x: Array) -> Array:
        assert self._factor is not None
        score = self._curves[0].score(x)[:, None] - math.sqrt(self._rho) * self._factor
        return score / math.sqrt(1 - self._rho)

    def _integrate(self, start: Array, end: Array) -> Array:
        points, widths = _gauss(start, end)
        values = self.below(points.ravel()).reshape(*points.shape, len(self.weights))
        return (values * widths[..., None]).sum(axis=1)


class _FactorJoint(_Joint):
    """The joint prior under a hidden common factor: for each part of its interval the cases of the base."""

    def __init__(self, spec: priors.FactorSpec, *, buyers: int) -> None:
        import numpy as np

        cells = priors.FACTOR_CELLS
        self._edges = _FactorEdges(spec, cells=cells)
        self._dealt = np.ones((1, 1))
        weights = np.ones(1)
        if isinstance(spec.base, priors.BandsSpec):
            self._dealt, weights = _dealing_nodes(bands=len(spec.base.bands), buyers=buyers)
        super().__init__([_FactorCurve(spec)], buyers=buyers, kinked=True, weights=np.tile(weights / cells, cells))

    def below(self, x: Array) -> Array:
        return (self._edges.below(x) @ self._dealt).reshape(len(x), -1)

    def density(self, x: Array) -> Array:
        return (self._edges.density(x) @ self._dealt).reshape(len(x), -1)


@lru_cache(maxsize=256)
def _joint(spec: priors.ValueSpec, rho: float, buyers: int) -> _Joint:
    import numpy as np

    kinked = not isinstance(spec, priors.UniformSpec | priors.LogNormalSpec)
    if isinstance(spec, priors.FactorSpec):
        if rho:
            raise ValueError("Values under a common factor have no correlation rho beside it.")
        return _FactorJoint(spec, buyers=buyers) if buyers > 1 else _Joint([_FactorCurve(spec)], buyers=1, kinked=True)
    if isinstance(spec, priors.BandsSpec) and buyers > 1:
        curves = [_curve(priors.EmpiricalSpec(quantiles=band)) for band in spec.bands]
        mix, weights = _dealing_nodes(bands=len(spec.bands), buyers=buyers)
        return _Joint(curves, buyers=buyers, kinked=True, mix=mix, weights=weights)
    curves = [_curve(spec)]
    if rho == 0 or buyers == 1 or isinstance(spec, priors.BandsSpec):
        return _Joint(curves, buyers=buyers, kinked=kinked)
    factor, weights = np.array(priors.factor_nodes(rho)).T
    return _Joint(curves, buyers=buyers, kinked=kinked, weights=weights, factor=factor, rho=rho)


@lru_cache(maxsize=64)
def _mirrored(spec: priors.ValueSpec) -> tuple[_Joint, float]:
    """The prior of `top` minus a cost, which a buyer sells money against, and `top`."""
    if isinstance(spec, priors.LogNormalSpec):
        curve = _MirroredLogNormalCurve(spec)
        return _Joint([curve], buyers=1, kinked=False), curve.top
    table = priors.knots(spec)
    top = table.at[-1]
    turned = priors.Knots(
        at=tuple(top - x for x in reversed(table.at)),
        below=tuple(1 - share for share in reversed(table.upto)),
        upto=tuple(1 - share for share in reversed(table.below)),
    )
    kinked = not isinstance(spec, priors.UniformSpec)
    return _Joint([_LinearCurve(turned)], buyers=1, kinked=kinked), top


def _curve(spec: priors.ValueSpec) -> _Curve:
    if isinstance(spec, priors.LogNormalSpec):
        return _LogNormalCurve(spec)
    return _LinearCurve(priors.knots(spec))


def _dealing_nodes(*, bands: int, buyers: int) -> tuple[Array, Array]:
    """(mix, weights) with S = Re sum over m of weights_m * prod_j (F(u_j) @ mix)_m for bands.

    With n_k buyers in band k, S is the coefficient of prod_k x_k^{n_k} in the product over the
    buyers of sum_k x_k F_k(u_j), over the number of ways to deal. Read off by evaluating at roots
    of unity; x of the fullest band is 1, since all terms have degree N, and the radii n_k / n_0
    keep the terms of one size.
    """
    import numpy as np

    dealt = priors.bands_by_rank(bands=bands, buyers=buyers)
    counts = [dealt.count(band) for band in range(bands)]
    fullest = counts.index(max(counts))
    others = [band for band in range(bands) if band != fullest and counts[band]]
    moduli = [max(counts[band], buyers - counts[band]) + 1 for band in others]
    ways = math.factorial(buyers) // math.prod(math.factorial(count) for count in counts)
    mix = np.zeros((bands, math.prod(moduli)), dtype=complex)
    weights = np.full(mix.shape[1], 1 / (ways * mix.shape[1]), dtype=complex)
    mix[fullest] = 1
    steps = np.array(list(cartesian(*(range(modulus) for modulus in moduli))), dtype=float)
    for column, (band, modulus) in enumerate(zip(others, moduli, strict=True)):
        roots = np.exp(2j * np.pi * steps[:, column] / modulus)
        mix[band] = roots * counts[band] / counts[fullest]
        weights *= mix[band] ** -counts[band]
    return mix, weights


@lru_cache(maxsize=1)
def _gauss_rule() -> tuple[Array, Array]:
    import numpy as np

    return np.polynomial.legendre.leggauss(_GAUSS_POINTS)


def _gauss(start: Array, end: Array) -> tuple[Array, Array]:
    """Points and weights of a Gauss rule on each interval, a row per interval."""
    points, weights = _gauss_rule()
    half = (end - start)[:, None] / 2
    return start[:, None] + half * (1 + points), half * weights


def _subdivide(edges: Array, pieces: int) -> Array:
    import numpy as np

    parts = [np.linspace(a, b, pieces + 1)[:-1] for a, b in pairwise(edges)]
    return np.concatenate([*parts, edges[-1:]])


# The value of a sequence -----------------------------------------------------------------------


class _Visits:
    """Who is asked when, as index arrays; index T stands for "not asked yet"."""

    def __init__(self, order: tuple[int, ...], buyers: int) -> None:
        import numpy as np

        turns = len(order)
        self.turns = turns
        self.order = order
        self.last = np.full((turns, buyers), turns)
        """Turn of the latest offer to each buyer, up to and including each turn."""
        self.previous = np.full(turns, turns)
        """Turn of the offer before, to the same buyer."""
        self.until = np.full(turns, turns)
        """Turn of the next offer to the same buyer."""
        for turn, buyer in enumerate(order):
            self.previous[turn] = self.last[turn, buyer]
            if self.previous[turn] < turns:
                self.until[self.previous[turn]] = turn
            self.last[turn:, buyer] = turn
        self.by_buyer = [np.flatnonzero(np.array(order) == buyer) for buyer in range(buyers)]

    def never_rising(self, prices: Array) -> Array:
        """`prices` with each buyer's lowest so far: what a threshold buyer has already refused."""
        import numpy as np

        lowest = np.array(prices, dtype=float)
        for turns in self.by_buyer:
            lowest[turns] = np.minimum.accumulate(lowest[turns])
        return lowest


@lru_cache(maxsize=256)
def _visits(order: tuple[int, ...], buyers: int) -> _Visits:
    return _Visits(order, buyers)


@dataclass(frozen=True)
class _Game:
    """A joint prior, an order of visits and a cost: all that prices are judged by."""

    joint: _Joint
    visits: _Visits
    cost: float

    def no_deal(self, shares: Array) -> tuple[Array, Array]:
        """(P(no deal up to turn t), the factors of each turn by buyer and case)."""
        import numpy as np

        factors = np.concatenate([shares, self.joint.certain])[self.visits.last]
        return self.joint.mixed(factors.prod(axis=1)), factors

    @cached_property
    def hope(self) -> float:
        """P(some buyer's value is above the cost): the scale of all gains."""
        import numpy as np

        lost = self.joint.mixed(self.joint.below(np.array([max(self.cost, self.joint.low)])) ** self.joint.buyers)
        return max(1.0 - float(lost[0]), 1e-300)

    def revenue(self, prices: Array) -> float:
        """Expected price - cost."""
        return float((prices - self.cost) @ self.sold(prices))

    def sold(self, prices: Array) -> Array:
        """P(deal at turn t)."""
        import numpy as np

        return -np.diff(self.no_deal(self.joint.below(prices))[0], prepend=1.0)


def _revenue_and_gradient(game: _Game, prices: Array, slopes: Array) -> tuple[float, Array]:
    """Revenue and its derivative by each price, given the density of the cases there."""
    import numpy as np

    no_deal, factors = game.no_deal(game.joint.below(prices))
    sold = -np.diff(no_deal, prepend=1.0)
    ahead = np.ones_like(factors)
    ahead[:, 1:] = factors[:, :-1].cumprod(axis=1)
    behind = np.ones_like(factors)
    behind[:, :-1] = factors[:, :0:-1].cumprod(axis=1)[:, ::-1]
    per_no_deal = np.append(prices[1:], game.cost) - prices
    per_factor = per_no_deal[:, None, None] * game.joint.weights * ahead * behind
    gradient = sold.copy()
    for buyer, turns in enumerate(game.visits.by_buyer):
        if len(turns):
            per_share = np.add.reduceat(per_factor[:, buyer], turns, axis=0)
            gradient[turns] += (per_share * slopes[turns]).sum(axis=1).real
    return float((prices - game.cost) @ sold), gradient


def _welfare(game: _Game, prices: Array) -> float:
    """E[value of the buyer served - cost; deal], by parts over each turn's stretch of values."""
    import numpy as np

    joint, visits, cost = game.joint, game.visits, game.cost
    highest = max(joint.high, float(prices.max()))
    bounds = np.append(prices, highest)
    shares = np.concatenate([joint.below(prices), joint.certain])
    areas = joint.integral(bounds)
    factors = shares[visits.last]
    before = visits.previous
    for turn, buyer in enumerate(visits.order):
        factors[turn, buyer] = (
            (bounds[before[turn]] - cost) * shares[before[turn]]
            - (bounds[turn] - cost) * shares[turn]
            - areas[before[turn]]
            + areas[turn]
        )
    return float(joint.mixed(factors.prod(axis=1)).sum())


# The best sequence -----------------------------------------------------------------------------


def _best_prices(game: _Game, *, top: float) -> Array:
    """The prices of the largest revenue found from several starts; deterministic.

    Between kinks of the prior revenue is smooth and `_climb` climbs it; across kinks, which only
    bands, constants and counted priors have, sweeps over a grid find the stretch of every price.
    """
    import numpy as np

    joint = game.joint
    if max(game.cost, joint.low) >= joint.high:
        return np.full(game.visits.turns, max(game.cost, joint.high))
    starts = _starts(game, top=top)
    starts = sorted(starts, key=game.revenue, reverse=True)[: 3 if joint.kinked else 1]
    found = [_refine(game, start) for start in starts]
    prices = max(found, key=game.revenue)
    rounded = np.round(prices, _decimals(joint))
    kinks = joint.kinks[np.abs(joint.kinks - rounded[:, None]).argmin(axis=1)]
    return np.where(np.abs(kinks - prices) < 1e-7 * joint.unit, kinks, rounded)


def _decimals(joint: _Joint) -> int:
    return max(0, _DIGITS - math.floor(math.log10(joint.unit)))


_DIGITS = 5
"""Prices are rounded to this many digits of the support's width: beyond it lies the optimiser's
noise, which could differ between machines. A price at a kink stays there."""


def _refine(game: _Game, prices: Array) -> Array:
    """A local maximum reached from `prices`."""
    if not game.joint.kinked:
        return game.visits.never_rising(_climb(game, prices))
    grid = _grid(game)
    best, value = prices, game.revenue(prices)
    while True:
        for _ in range(2):
            prices = _sweep(game, prices, grid)
        prices = game.visits.never_rising(_climb(game, prices))
        revenue = game.revenue(prices)
        if revenue <= value + 1e-6 * game.joint.unit:
            return best if revenue < value else prices
        best, value = prices, revenue


def _starts(game: _Game, *, top: float) -> list[Array]:
    """Falling prices to start from; where the prior has kinks, some that end in a few turns at one."""
    import numpy as np

    joint, turns = game.joint, game.visits.turns
    bottom = max(game.cost, joint.low)
    tops = (top, bottom + joint.unit / 4, bottom + joint.unit, (bottom + joint.high) / 2)
    starts = [np.linspace(min(start, joint.high), bottom, turns + 1)[:-1] for start in tops if start > bottom]
    grid = _grid(game)[::-1]
    highest_below = joint.mixed(joint.below(grid) ** joint.buyers)
    for power in (0.5, 1.0, 2.0):
        levels = 1 - (np.arange(1, turns + 1) / (turns + 1)) ** power * game.hope
        starts.append(np.interp(levels, highest_below, grid))
    if len(set(game.visits.order)) == 1:
        starts.append(_best_on_grid(game))
    if not joint.kinked:
        return starts
    ends = joint.kinks[(joint.kinks >= bottom) & (joint.kinks <= top)]
    for end in ends[:: max(1, len(ends) // 8)]:
        for last in range(1, min(joint.buyers, turns) + 1):
            line = np.linspace(top, end, turns - last + 2)[1:-1]
            starts.append(np.append(line, [end] * last))
    return starts


def _best_on_grid(game: _Game) -> Array:
    """The best prices on a grid when one buyer has all the turns: dynamic programming over u."""
    import numpy as np

    joint, grid = game.joint, _grid(game)
    refused = joint.mixed(joint.below(grid) * joint.certain ** (joint.buyers - 1))
    step = (grid - game.cost) * (np.append(1.0, refused)[:, None] - refused)
    step[1:][np.tri(len(grid), k=-1, dtype=bool)] = -math.inf
    ahead, choices = np.zeros(len(grid)), []
    for _ in range(game.visits.turns):
        worth = step + ahead
        choices.append(worth.argmax(axis=1))
        ahead = worth.max(axis=1)[1:]
    prices, row = [], 0
    for choice in reversed(choices):
        prices.append(grid[choice[row]])
        row = int(choice[row]) + 1
    return np.array(prices)


def _grid(game: _Game) -> Array:
    """Falling points down to the cost, the kinks among them."""
    import numpy as np

    joint = game.joint
    edges = joint.kinks if joint.kinked and len(joint.kinks) > 2 else joint.panels
    grid = _subdivide(edges, max(2, min(24 if joint.kinked else 240, 240 // len(edges))))
    return np.unique(np.append(grid[grid > game.cost], max(game.cost, joint.low)))[::-1]


def _climb(game: _Game, prices: Array) -> Array:
    """A local maximum near `prices`, no price crossing a kink of the prior.

    Projected L-BFGS (Nocedal 1980). It is written out here because SciPy's own starts a thread
    per core for problems of a few dozen numbers, which costs a busy machine twenty times the work
    itself.
    """
    import numpy as np

    joint = game.joint
    upper = np.clip(np.searchsorted(joint.kinks, prices), 1, len(joint.kinks) - 1)
    start, end = joint.kinks[upper - 1], joint.kinks[upper]
    inset = 1e-9 * (end - start)
    floor = np.maximum(start, game.cost)

    def revenue_and_gradient(at: Array) -> tuple[float, Array]:
        slopes = joint.density(np.clip(at, start + inset, end - inset))
        return _revenue_and_gradient(game, at, slopes)

    at = np.clip(prices, floor, end)
    value, gradient = revenue_and_gradient(at)
    flat = 1e-7 * game.hope
    steps: list[tuple[Array, Array]] = []
    for _ in range(_MAX_CLIMB):
        free = ~(((at <= floor) & (gradient < 0)) | ((at >= end) & (gradient > 0)))
        uphill = np.where(free, gradient, 0.0)
        steepest = float(np.abs(uphill).max())
        if steepest < flat:
            break
        direction = np.where(free, _quasi_newton(uphill, steps), 0.0)
        if not steps or direction @ gradient <= 0:
            steps, direction = [], uphill * 0.05 * joint.unit / steepest
        for halving in range(40):
            ahead = np.clip(at + direction * 0.5**halving, floor, end)
            reached, slope = revenue_and_gradient(ahead)
            if reached >= value + 1e-4 * (gradient @ (ahead - at)):
                break
        else:
            break
        step, turn = ahead - at, gradient - slope
        if step @ turn > 1e-14 * joint.unit * game.hope:
            steps = [*steps[-9:], (step, turn)]
        stalled = reached - value < 1e-15 * abs(value)
        at, value, gradient = ahead, reached, slope
        if stalled:
            break
    return at


_MAX_CLIMB = 1000


def _quasi_newton(uphill: Array, steps: list[tuple[Array, Array]]) -> Array:
    """`uphill` times the inverse curvature that past (step, loss of slope) pairs tell of."""
    direction = uphill.copy()
    weights = []
    for step, turn in reversed(steps):
        weights.append((step @ direction) / (step @ turn))
        direction -= weights[-1] * turn
    if steps:
        step, turn = steps[-1]
        direction *= (step @ turn) / (turn @ turn)
    for (step, turn), weight in zip(steps, reversed(weights), strict=True):
        direction += step * (weight - (turn @ direction) / (step @ turn))
    return direction


def _sweep(game: _Game, prices: Array, grid: Array) -> Array:
    """Each price in turn moved to the best point of `grid` between its buyer's other prices."""
    import numpy as np

    joint, visits = game.joint, game.visits
    prices = prices.copy()
    options = joint.below(grid)
    shares = np.concatenate([joint.below(prices), joint.certain])
    no_deal = np.append(game.no_deal(shares[:-1])[0], 1.0)
    for turn, buyer in enumerate(visits.order):
        window = np.arange(turn, visits.until[turn])
        factors = shares[visits.last[window]]
        factors[:, buyer] = 1
        others = factors.prod(axis=1) * joint.weights
        following = np.append(prices, game.cost)[window + 1]
        pull = (following[0] - game.cost) * others[0]
        pull = pull + (following[1:] - prices[window[1:]]) @ others[1:]
        sold = no_deal[turn - 1] - (options * others[0]).sum(axis=1).real
        gain = (grid - game.cost) * sold + (options * pull).sum(axis=1).real
        ceiling = np.append(prices, math.inf)[visits.previous[turn]]
        floor = np.append(prices, -math.inf)[visits.until[turn]]
        gain[(grid < floor) | (grid > ceiling)] = -math.inf
        best = int(gain.argmax())
        prices[turn], shares[turn] = grid[best], options[best]
        factors[:, buyer] = options[best]
        no_deal[window] = joint.mixed(factors.prod(axis=1))
    return prices


# Sellers' sequences ----------------------------------------------------------------------------


def optimal_ladder(*, spec: priors.ValueSpec, rho: float, buyers: int, turns: int, cost: float) -> Ladder:
    """The best round-robin sequence of `turns` offers by a seller who knows only the prior.

    `buyers` 1 to 12, `turns` 1 to 64, `rho` in [0, 1): correlation of the buyers' values for the
    product (it changes nothing for bands). Against threshold buyers; round-robin was the best
    order in every case enumerated, without a proof. One buyer and U[0,1] at cost 0 give prices
    T/(T+1), …, 1/(T+1) and the share T/(T+1); T = N gives V_n = ((1 + V_{n-1})/2)^2.

    Prices are computed, and cached, on a grid of `COST_STEPS` costs and then valued at the true
    cost, none below it: between two costs of the grid smooth priors interpolate, which loses under
    1e-6 of the first best, and kinked ones take the best of both neighbours and the interpolation,
    under 1e-3. Over a rough counted prior with several buyers the search itself is local and can
    miss a few thousandths; for one buyer it starts from dynamic programming and misses nothing.
    """
    _check_game(rho=rho, buyers=buyers, turns=turns, cost=cost)
    return _best_ladder(spec, rho, buyers, _round_robin(turns, buyers), cost)


def best_in_order(*, spec: priors.ValueSpec, rho: float, buyers: int, order: Sequence[int], cost: float) -> Ladder:
    """The best prices for any order of visits (buyers counted from 0), against threshold buyers."""
    _check_order(order, buyers)
    return _best_ladder(spec, rho, buyers, tuple(order), cost)


def one_pass(*, spec: priors.ValueSpec, rho: float, buyers: int, cost: float) -> Ladder:
    """The best single offer to each buyer in turn (Chawla et al. 2010), threshold buyers."""
    return _best_ladder(spec, rho, buyers, _round_robin(buyers, buyers), cost)


def single_buyer_ladder(*, spec: priors.ValueSpec, rho: float, buyers: int, turns: int, cost: float) -> Ladder:
    """The best sequence that spends every turn on one threshold buyer and ignores the others."""
    return _best_ladder(spec, rho, buyers, (0,) * turns, cost)


def posted_price(*, spec: priors.ValueSpec, cost: float) -> Ladder:
    """The best take-it-or-leave-it price to one buyer.

    Against one buyer, threshold or strategic, no mechanism earns more in one sale (Myerson 1981;
    Riley and Zeckhauser 1983) for priors that are regular.
    """
    return _best_ladder(spec, 0.0, 1, (0,), cost)


def linear_ladder(*, spec: priors.ValueSpec, rho: float, buyers: int, turns: int, cost: float) -> Ladder:
    """Round-robin prices falling by equal steps from `priors.ladder_top` towards the cost.

    p_t = top - (top - cost) * (t - 1) / T for t = 1, …, T: the first offer is the top, the last one
    step above the cost. Against threshold buyers.
    """
    _check_game(rho=rho, buyers=buyers, turns=turns, cost=cost)
    top = max(priors.ladder_top(spec), cost)
    prices = [top - (top - cost) * turn / turns for turn in range(turns)]
    return _ladder(spec, rho, buyers, tuple(prices), _round_robin(turns, buyers), cost)


def single_price(*, spec: priors.ValueSpec, rho: float, buyers: int, cost: float) -> Ladder:
    """The best single price for all, asked of each buyer once: (p - c) * (1 - S(p, …, p)).

    For U[0,1] at cost 0, p = (N + 1)^(-1/N). Against threshold buyers.
    """
    import numpy as np

    _check_game(rho=rho, buyers=buyers, turns=1, cost=cost)
    joint = _joint(spec, rho, buyers)
    points = np.maximum(_subdivide(joint.panels, 16), cost)
    best = (0.0, max(cost, joint.high))
    for _ in range(6):
        earned = (points - cost) * (1 - joint.mixed(joint.below(points) ** buyers))
        peak = int(earned.argmax())
        best = max(best, (float(earned[peak]), float(points[peak])))
        points = np.linspace(points[max(peak - 1, 0)], points[min(peak + 1, len(points) - 1)], 33)
    return _ladder(spec, rho, buyers, (best[1],) * buyers, tuple(range(buyers)), cost)


def evaluate(
    *,
    prices: Sequence[float],
    order: Sequence[int],
    spec: priors.ValueSpec,
    rho: float,
    buyers: int,
    cost: float,
) -> tuple[float, float, float]:
    """(revenue, welfare, deal rate) of any sequence of offers, exact, against threshold buyers.

    `order` counts buyers from 0. A price at or above one that the buyer refused never sells.
    """
    _check_game(rho=rho, buyers=buyers, turns=len(prices), cost=cost)
    _check_order(order, buyers)
    if len(order) != len(prices):
        raise ValueError(f"There are {len(prices)} prices for {len(order)} turns.")
    ladder = _ladder(spec, rho, buyers, tuple(prices), tuple(order), cost)
    return ladder.revenue, ladder.welfare, ladder.deal_rate


def first_best(*, spec: priors.ValueSpec, rho: float, buyers: int, cost: float) -> float:
    """E[(highest value - cost)+]: what full information could gain; N/(N+1) for U[0,1], cost 0."""
    _check_game(rho=rho, buyers=buyers, turns=1, cost=cost)
    return _first_best(spec, rho, buyers, cost)


def _best_ladder(spec: priors.ValueSpec, rho: float, buyers: int, order: tuple[int, ...], cost: float) -> Ladder:
    _check_game(rho=rho, buyers=buyers, turns=len(order), cost=cost)
    game = _Game(_joint(spec, rho, buyers), _visits(order, buyers), cost)
    near = _candidates(spec, cost, lambda grid_cost: _cached_prices(spec, rho, buyers, order, grid_cost))
    allowed = [tuple(max(price, cost) for price in prices) for prices in near]
    return _ladder(spec, rho, buyers, _worth_most(game, allowed), order, cost)


def _candidates(
    spec: priors.ValueSpec, at: float, prices: Callable[[float], tuple[float, ...]]
) -> list[tuple[float, ...]]:
    """Prices for the cost or value `at` from those of its neighbours on the grid that is cached."""
    low, high = _neighbours(spec, at)
    before = prices(low)
    if low == at:
        return [before]
    after = prices(high)
    part = (at - low) / (high - low)
    between = tuple(a + part * (b - a) for a, b in zip(before, after, strict=True))
    smooth = isinstance(spec, priors.UniformSpec | priors.LogNormalSpec)
    return [between] if smooth else [between, before, after]


def _neighbours(spec: priors.ValueSpec, at: float) -> tuple[float, float]:
    """The points of the grid around `at`; the kinks of the prior are among its points."""
    start = priors.low(spec)
    step = (priors.ladder_top(spec) - start) / COST_STEPS or 1.0
    steps = math.floor((at - start) / step)
    low, high = max(0.0, start + step * steps), start + step * (steps + 1)
    if not isinstance(spec, priors.LogNormalSpec | priors.FactorSpec):
        kinks = priors.knots(spec).at
        following = bisect_right(kinks, at)
        low = max([low, *kinks[max(following - 1, 0) : following]])
        high = min([high, *kinks[following : following + 1]])
    return min(low, at), high


def _worth_most(game: _Game, sequences: list[tuple[float, ...]]) -> tuple[float, ...]:
    import numpy as np

    if len(sequences) == 1:
        return sequences[0]
    return max(sequences, key=lambda prices: game.revenue(game.visits.never_rising(np.array(prices))))


@lru_cache(maxsize=4096)
def _cached_prices(
    spec: priors.ValueSpec, rho: float, buyers: int, order: tuple[int, ...], cost: float
) -> tuple[float, ...]:
    game = _Game(_joint(spec, rho, buyers), _visits(order, buyers), cost)
    return tuple(float(price) for price in _best_prices(game, top=priors.ladder_top(spec)))


@lru_cache(maxsize=4096)
def _ladder(
    spec: priors.ValueSpec,
    rho: float,
    buyers: int,
    prices: tuple[float, ...],
    order: tuple[int, ...],
    cost: float,
) -> Ladder:
    import numpy as np

    game = _Game(_joint(spec, rho, buyers), _visits(order, buyers), cost)
    asked = game.visits.never_rising(np.array(prices, dtype=float))
    return Ladder(
        prices=prices,
        order=order,
        revenue=game.revenue(asked),
        first_best=_first_best(spec, rho, buyers, cost),
        welfare=_welfare(game, asked),
        deal_rate=float(game.sold(asked).sum()),
    )


@lru_cache(maxsize=16384)
def _first_best(spec: priors.ValueSpec, rho: float, buyers: int, cost: float) -> float:
    return _joint(spec, rho, buyers).first_best(cost)


def _round_robin(turns: int, buyers: int) -> tuple[int, ...]:
    return tuple(turn % buyers for turn in range(turns))


def _check_game(*, rho: float, buyers: int, turns: int, cost: float) -> None:
    if not 1 <= buyers <= MAX_BUYERS:
        raise ValueError(f"Ladders are for 1 to {MAX_BUYERS} buyers, not {buyers!r}.")
    if not 1 <= turns <= MAX_TURNS:
        raise ValueError(f"Ladders have 1 to {MAX_TURNS} turns, not {turns!r}.")
    if not 0 <= rho < 1:
        raise ValueError(f"The correlation rho must lie in [0, 1), not {rho!r}.")
    if not (math.isfinite(cost) and cost >= 0):
        raise ValueError(f"A cost is a number from 0 up, not {cost!r}.")


def _check_order(order: Sequence[int], buyers: int) -> None:
    if not all(0 <= buyer < buyers for buyer in order):
        raise ValueError(f"An order names one of {buyers} buyers, counted from 0, a turn, not {order!r}.")


# A buyer's sequence ----------------------------------------------------------------------------


class BuyerLadder(msgspec.Struct, frozen=True, kw_only=True):
    """A rising sequence of bids and what it is worth against a myopic threshold seller."""

    bids: tuple[float, ...]
    """Bid of each turn, in the prior's unit; never above the buyer's value."""
    surplus: float
    """Expected buyer's surplus E[value - bid; deal]."""
    first_best: float
    """E[(value - cost)+]: the joint surplus that full information could gain."""
    welfare: float
    """Expected realised joint surplus E[value - cost; deal]."""
    deal_rate: float

    @property
    def surplus_share(self) -> float | None:
        """Surplus / first best; None where trade cannot gain anything."""
        return self.surplus / self.first_best if self.first_best > 0 else None


def buyer_ladder(*, spec: priors.ValueSpec, value: float, turns: int) -> BuyerLadder:
    """The best rising bids of a buyer who values the product at `value` and knows a cost prior.

    `spec` is the distribution of the seller's cost, and the seller accepts the first bid that is
    not below it. It is a seller's problem in a mirror: with T the top of the prior, the buyer
    "sells" at price T - bid to a value T - cost, at a cost of T - value. For a cost uniform on
    [0, w] with value w, the surplus is T/(T+1) of the first best as for a seller. Bids are
    computed on a grid of `COST_STEPS` values, as in `optimal_ladder`. A cost under a common factor is
    taken by its quantiles: with one seller nothing is common.
    """
    import numpy as np

    if isinstance(spec, priors.FactorSpec):
        spec = priors.EmpiricalSpec(quantiles=tuple(priors.quantile(spec, step / 64) for step in range(65)))
    _check_game(rho=0.0, buyers=1, turns=turns, cost=value)
    joint, top = _mirrored(spec)
    game = _Game(joint, _visits((0,) * turns, 1), top - value)
    near = _candidates(spec, value, lambda grid_value: _cached_bids(spec, turns, grid_value))
    allowed = {tuple(top - min(bid, value) for bid in bids): bids for bids in near}
    bids = tuple(min(bid, value) for bid in allowed[_worth_most(game, list(allowed))])
    asked = game.visits.never_rising(top - np.array(bids))
    return BuyerLadder(
        bids=bids,
        surplus=game.revenue(asked),
        first_best=joint.first_best(game.cost),
        welfare=_welfare(game, asked),
        deal_rate=float(game.sold(asked).sum()),
    )


@lru_cache(maxsize=4096)
def _cached_bids(spec: priors.ValueSpec, turns: int, value: float) -> tuple[float, ...]:
    joint, top = _mirrored(spec)
    game = _Game(joint, _visits((0,) * turns, 1), top - value)
    lowest = priors.quantile(spec, 0.02 if isinstance(spec, priors.LogNormalSpec) else 0.0)
    kinks = () if isinstance(spec, priors.LogNormalSpec) else priors.knots(spec).at
    exact = {top - kink: kink for kink in kinks}
    prices = [float(price) for price in _best_prices(game, top=top - lowest)]
    return tuple(exact.get(price, round(top - price, _decimals(joint))) for price in prices)


# Assignments -----------------------------------------------------------------------------------


def optimal_assignment(
    *, surplus: Sequence[Sequence[int]], stock: Sequence[int]
) -> tuple[int, tuple[tuple[int, int], ...]]:
    """The best way to serve unit-demand buyers from stock: (total in cents, (buyer, product)s).

    `surplus[buyer][product]` is value - cost in cents and may be negative; `stock[product]` the
    units there are. A maximum-weight matching (Shapley and Shubik 1971): exact, deterministic,
    pairs by rising buyer, and only pairs that gain something. Both counted from 0.
    """
    buyers = range(len(surplus))
    if len(stock) == 1:
        ranked = sorted((-surplus[buyer][0], buyer) for buyer in buyers if surplus[buyer][0] > 0)
        served = sorted(buyer for _, buyer in ranked[: stock[0]])
        pairs = tuple((buyer, 0) for buyer in served)
    elif math.prod(min(units, len(surplus)) + 1 for units in stock) <= _TABLE_STATES:
        pairs = _assign_by_table(surplus, stock)
    else:
        pairs = _assign_by_scipy(surplus, stock)
    return sum(surplus[buyer][product] for buyer, product in pairs), pairs


_TABLE_STATES = 32
"""Up to so many states of the stock, the table is faster than arrays (3 products: 8 states)."""


def _assign_by_table(surplus: Sequence[Sequence[int]], stock: Sequence[int]) -> tuple[tuple[int, int], ...]:
    """Dynamic programming over buyers and what is left of each product."""
    best: dict[tuple[int, ...], tuple[int, tuple[tuple[int, int], ...]]] = {tuple(stock): (0, ())}
    for buyer, row in enumerate(surplus):
        gains = [(product, gain) for product, gain in enumerate(row) if gain > 0]
        reached = dict(best)
        for left, (total, pairs) in best.items():
            for product, gain in gains:
                if left[product]:
                    after = (*left[:product], left[product] - 1, *left[product + 1 :])
                    if after not in reached or total + gain > reached[after][0]:
                        reached[after] = (total + gain, (*pairs, (buyer, product)))
        best = reached
    return max(best.values(), key=lambda found: found[0])[1]


def _assign_by_scipy(surplus: Sequence[Sequence[int]], stock: Sequence[int]) -> tuple[tuple[int, int], ...]:
    """One column per unit; doubles hold sums of cents exactly up to 2**53."""
    import numpy as np
    from scipy.optimize import linear_sum_assignment

    units = np.repeat(np.arange(len(stock)), [min(held, len(surplus)) for held in stock])
    gains = np.maximum(np.array(surplus, dtype=float)[:, units], 0)
    matched = zip(*linear_sum_assignment(gains, maximize=True), strict=True)
    return tuple((int(buyer), int(units[column])) for buyer, column in matched if gains[buyer, column] > 0)
