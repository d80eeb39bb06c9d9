"""What a strategy takes the other side's reservation value to be, from the public prior and bids.

Here: conditional means of a prior and what visible offers say about a reservation value. Not here:
any decision.

Contract: only offers bind, and nobody is taken to offer at a loss: a buyer is worth at least its
best bid, a cost is at most the best ask. That a price was let pass says nothing about somebody who
bargains; `value_interval` reads it as a threshold buyer's answer would be read, and says so. Every
amount is in cents, of the prior's multiples times the product's scale.
"""

from bisect import bisect_left
from functools import lru_cache
from typing import NamedTuple

from agents.scripted.situation import public_prices, reservation_cents
from markets.engine import priors
from markets.engine.money import MAX_PRICE_CENTS, Cents
from markets.engine.observation import Observation, SeenThread
from markets.engine.protocol import Role

POINTS = 256
"""Equally likely points that stand for a prior; a conditional mean is off by less than 1/256 of the
spread of what is left."""


class Interval(NamedTuple):
    """Bounds of a reservation value, in cents."""

    low: float
    high: float

    @property
    def middle(self) -> float:
        return (self.low + self.high) / 2


@lru_cache(maxsize=512)
def _points(spec: priors.ValueSpec) -> tuple[tuple[float, ...], tuple[float, ...]]:
    """Equally likely points of a prior, rising, and their running sums from 0."""
    at = tuple(priors.quantile(spec, (index + 0.5) / POINTS) for index in range(POINTS))
    sums = [0.0]
    for point in at:
        sums.append(sums[-1] + point)
    return at, tuple(sums)


def mean_between(spec: priors.ValueSpec, low: float, high: float) -> float:
    """E[V | low <= V <= high] in the prior's unit; the nearest bound where nothing lies between."""
    at, sums = _points(spec)
    first, last = bisect_left(at, low), bisect_left(at, high)
    if last > first:
        return (sums[last] - sums[first]) / (last - first)
    if low >= at[-1]:
        return low
    return high if high <= at[0] else (low + high) / 2


def prior_mean_cents(observation: Observation, product: int) -> float:
    """Mean of the other side's reservation value before a word is said."""
    prior = observation.prior
    spec = prior.value_spec if observation.role is Role.SELLER else prior.cost_spec
    return _points(spec)[1][-1] / POINTS * prior.scales_cents[product]


def expected_reservation_cents(observation: Observation, thread: SeenThread, product: int) -> float:
    """Mean of the other side's reservation value, given that trade gains and given its best offer.

    For a seller E[V | V >= cost, V >= best bid], for a buyer E[C | C <= value, C <= best ask].
    """
    scale = observation.prior.scales_cents[product]
    bounds = [reservation_cents(observation, product)]
    bounds += [offer.price_cents for offer in thread.offers if not offer.mine and offer.product == product]
    if observation.role is Role.SELLER:
        low = max(bounds) / scale
        return max(mean_between(observation.prior.value_spec, low, MAX_PRICE_CENTS / scale), low) * scale
    high = min(bounds) / scale
    return min(mean_between(observation.prior.cost_spec, 0.0, high), high) * scale


def value_interval(observation: Observation, thread: SeenThread, product: int) -> Interval:
    """Where a buyer's value lies if it takes every price within it: above its bids, below the asks
    it has let pass. The prior's bottom and top at first."""
    scale = observation.prior.scales_cents[product]
    bids: list[Cents] = []
    passed: list[Cents] = []
    for offer in thread.offers:
        if offer.product == product:
            (passed if offer.mine else bids).append(offer.price_cents)
    low = max([*bids, priors.low(observation.prior.value_spec) * scale])
    high = min([*passed, public_prices(observation, product).top])
    return Interval(low, max(low, high))
