"""The best sequence of offers that is settled before the first word and reads no reply.

Here: finding it by search over training scenarios, the sequences found so far, and the seller that
plays them. Not here: the best sequence by theory, which also knows the own cost (`ladders`,
`markets.engine.optimum`).

Contract: a sequence is a tuple of (buyer, product, price as a multiple of the product's scale), the
same for every scenario of a kind of market; only an ask below the own cost is raised to it. It is the
baseline that whatever reads replies must beat: in a market where buyers take the first price within
their value a constant can do very well. The search is coordinate ascent on the mean share of the
first best against threshold buyers, deterministic in its arguments. Scenarios for it are drawn from
streams of their own (`training_scenarios`), so nothing that is measured on episodes was searched on.
Kinds of market that are not in `FROZEN` are searched for when first met, on fewer scenarios, and kept.
numpy is imported when first needed.

`python -m agents.scripted.fixed_sequence --values bands --cost uniform:0.1:0.5 --buyers 3 --turns 8
--json` searches for one kind of market and prints what `FROZEN` holds; `manage.py fixed_sequence` does
it on a stored market's own training scenarios.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from agents.base import Turn
from agents.scripted.ladders import Ask, LadderSeller, asks
from agents.scripted.situation import can_gain_as_seller
from markets.engine import optimum, priors, splits
from markets.engine.observation import Observation, SeenThread
from markets.engine.protocol import Role
from markets.engine.scenarios import (
    Alternating,
    Family,
    ProductFacts,
    Recipe,
    Scenario,
    SellerTurns,
    Split,
    sample,
)
from markets.engine.seeds import derive_seed

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Floats = NDArray[np.float64]

UNIT_CENTS = 10_000
"""Scale at which training values are drawn; a multiple has four decimals."""


class NothingToTrainOn(ValueError):
    """Too few of a market's products may be trained on; the message is a sentence."""


class Step(NamedTuple):
    """One offer of a sequence."""

    buyer: int
    """Counted from 0."""
    product: int
    price: float
    """As a multiple of the product's scale."""


class MarketKind(NamedTuple):
    """What a sequence is the best for: all that is public and fixed about a market."""

    family: Family
    value_spec: priors.ValueSpec
    cost_spec: priors.ValueSpec
    rho: float
    buyers: int
    stock: tuple[int, ...]
    """Units of each product."""
    turns: int
    """Offers that can be answered."""


class Found(NamedTuple):
    """A sequence and what it earned where it was searched for."""

    steps: tuple[Step, ...]
    share: float
    """Mean share of the first best over the training scenarios."""


class Draws(NamedTuple):
    """Training scenarios as arrays of multiples."""

    values: Floats
    """(scenario, buyer, product)"""
    costs: Floats
    """(scenario, product)"""
    weights: Floats
    """(scenario,): 1 / first best / scenarios that have one; 0 where trade cannot gain."""


# Training scenarios ----------------------------------------------------------------------------


def training_scenarios(kind: MarketKind, *, scenarios: int, seed: int) -> Draws:
    """Draw values and costs from the public prior of a kind of market."""
    rng = random.Random(derive_seed("fixed-sequence", seed))
    values, costs = [], []
    for _ in range(scenarios):
        values.append(
            priors.sample_values(
                spec=kind.value_spec,
                rho=kind.rho,
                buyers=kind.buyers,
                scales_cents=(UNIT_CENTS,) * len(kind.stock),
                within="products" if kind.family is Family.CATALOGUE else "buyers",
                rng=rng,
            )
        )
        costs.append([round(priors.quantile(kind.cost_spec, rng.random()) * UNIT_CENTS) for _ in kind.stock])
    return _draws(values, costs, [(UNIT_CENTS,) * len(kind.stock)] * scenarios, kind.stock)


def of_recipe(recipe: Recipe, pool: Sequence[ProductFacts], *, scenarios: int, seed: int) -> Draws:
    """The same of a market's own scenarios, over the products that may be trained on."""
    if pool and recipe.split is msgspec.UNSET:
        pool = splits.select(pool, Split.TRAINING)
        if len(pool) < recipe.products:
            raise NothingToTrainOn(
                f"Only {len(pool)} of this market's products may be trained on, too few for {recipe.products} at once."
            )
    return of_scenarios([sample(recipe, pool, derive_seed("fixed-sequence", seed, k)) for k in range(scenarios)])


def of_scenarios(scenarios: Sequence[Scenario]) -> Draws:
    """Values and costs of scenarios of one shape."""
    return _draws(
        [scenario.buyer_values_cents for scenario in scenarios],
        [scenario.seller_values_cents for scenario in scenarios],
        [scenario.prior.scales_cents for scenario in scenarios],
        tuple(product.stock for product in scenarios[0].products),
    )


def _draws(
    values: Sequence[Sequence[Sequence[int]]],
    costs: Sequence[Sequence[int]],
    scales: Sequence[Sequence[int]],
    stock: tuple[int, ...],
) -> Draws:
    import numpy as np

    first_best = []
    for own, cost in zip(values, costs, strict=True):
        gains = [[value - c for value, c in zip(row, cost, strict=True)] for row in own]
        first_best.append(optimum.optimal_assignment(surplus=gains, stock=stock)[0])
    unit = np.array(scales, dtype=float)
    best = np.array(first_best, dtype=float)
    possible = max(1, int((best > 0).sum()))
    # A sequence earns multiples; with products of several scales its share weighs them by scale.
    weights = np.where(best > 0, 1 / np.maximum(best, 1) / possible, 0.0)
    return Draws(np.array(values) / unit[:, None, :], np.array(costs) / unit, weights[:, None] * unit)


# The search ------------------------------------------------------------------------------------


def share(steps: Sequence[Step], draws: Draws, *, stock: tuple[int, ...]) -> float:
    """Mean share of the first best that a sequence earns from threshold buyers."""
    import numpy as np

    table = _Table(draws, stock)
    for step in steps:
        table.offer(step.buyer, step.product, np.array([[step.price]]))
    return float(table.earned.sum())


def search(
    draws: Draws, *, stock: tuple[int, ...], turns: int, starts: Sequence[Sequence[Step]] = (), grid: int = 40
) -> Found:
    """The best sequence of `turns` offers that coordinate ascent finds.

    From each start (falling prices round-robin, and those given) one offer is changed at a time: its
    price on a grid of the values' quantiles, its buyer and product too while the market is small,
    then its price on a grid six times as fine, until nothing gains any more.
    """
    import numpy as np

    buyers, products = draws.values.shape[1:]
    coarse = np.unique(np.quantile(draws.values, (np.arange(grid) + 0.5) / grid, method="lower"))
    fine = np.unique(np.quantile(draws.values, (np.arange(6 * grid) + 0.5) / (6 * grid), method="lower"))
    falling = np.quantile(draws.values, np.linspace(0.98, 0.35, turns))
    robin = [Step(t % buyers, (t // buyers + t) % products, float(falling[t])) for t in range(turns)]
    pairs = [(buyer, product) for buyer in range(buyers) for product in range(products)]
    every_pair = pairs if len(pairs) * turns * turns <= _SMALL else None
    found = []
    for start in (robin, *starts):
        steps = _climb(list(start), draws, stock, pairs=every_pair, levels=lambda _price: coarse)
        steps = _climb(steps, draws, stock, pairs=None, levels=lambda price: _near(fine, price))
        rounded = tuple(Step(step.buyer, step.product, round(step.price, 4)) for step in steps)
        found.append(Found(rounded, round(share(rounded, draws, stock=stock), 4)))
    return max(found, key=lambda each: each.share)


def _climb(
    steps: list[Step],
    draws: Draws,
    stock: tuple[int, ...],
    *,
    pairs: list[tuple[int, int]] | None,
    levels: Callable[[float], Floats],
) -> list[Step]:
    """Sweep over the offers until a sweep gains nothing; without `pairs` nobody changes places."""
    import numpy as np

    best = share(steps, draws, stock=stock)
    for _ in range(_SWEEPS):
        before = best
        table = _Table(draws, stock)
        for place in range(len(steps)):
            prices = levels(steps[place].price)
            for buyer, product in pairs or [steps[place][:2]]:
                tried = table.branch()
                tried.offer(buyer, product, prices[:, None])
                for later in steps[place + 1 :]:
                    tried.offer(later.buyer, later.product, np.array([[later.price]]))
                earned = tried.earned.sum(axis=1)
                peak = int(earned.argmax())
                if earned[peak] > best + _LEAST_GAIN:
                    best = float(earned[peak])
                    steps[place] = Step(buyer, product, float(prices[peak]))
            chosen = steps[place]
            table.offer(chosen.buyer, chosen.product, np.array([[chosen.price]]))
        if best <= before + _LEAST_GAIN:
            break
    return steps


def _near(levels: Floats, price: float) -> Floats:
    """The dozen levels around a price."""
    import numpy as np

    at = int(np.searchsorted(levels, price))
    return levels[max(0, at - 6) : at + 7]


_SWEEPS = 6

_SMALL = 3_000
"""Above so many pairs times turns squared the order of visits stays round-robin."""

_LEAST_GAIN = 1e-9


class _Table:
    """Many negotiations at once, in as many versions as prices are tried: arrays (version, scenario)."""

    def __init__(self, draws: Draws, stock: tuple[int, ...]) -> None:
        import numpy as np

        shape = (1, len(draws.values))
        self._draws = draws
        self._free = [np.ones(shape, dtype=bool) for _ in range(draws.values.shape[1])]
        self._left = [np.full(shape, units) for units in stock]
        self.earned: Floats = np.zeros(shape)

    def branch(self) -> _Table:
        """The same tables, to be played on apart."""
        other = object.__new__(_Table)
        other._draws = self._draws
        other._free, other._left = list(self._free), list(self._left)
        other.earned = self.earned
        return other

    def offer(self, buyer: int, product: int, price: Floats) -> None:
        """Ask one buyer; no ask is below cost, and who is served or finds none left does not buy."""
        import numpy as np

        cost = self._draws.costs[:, product]
        ask = np.maximum(price, cost)
        sells = self._free[buyer] & (self._left[product] > 0) & (self._draws.values[:, buyer, product] >= ask)
        self.earned = self.earned + sells * ((ask - cost) * self._draws.weights[:, product])
        self._free[buyer] = self._free[buyer] & ~sells
        self._left[product] = self._left[product] - sells


# Sequences -------------------------------------------------------------------------------------

FROZEN_TURNS = 8


def _one_unit(values: str, cost: str, *, buyers: int) -> MarketKind:
    """One unit for several buyers and eight offers."""
    return MarketKind(
        Family.MULTI_BUYER,
        priors.parse_value_spec(values),
        priors.parse_value_spec(cost),
        0.0,
        buyers,
        (1,),
        FROZEN_TURNS,
    )


def _asks(text: str) -> tuple[Step, ...]:
    """Read `buyer:price` pairs, buyers counted from 1."""
    parts = [part.split(":") for part in text.split()]
    return tuple(Step(int(buyer) - 1, 0, float(price)) for buyer, price in parts)


FROZEN: dict[MarketKind, tuple[Step, ...]] = {
    _one_unit("uniform:0:100", "constant:0", buyers=2): _asks(
        "1:83.1823 2:78.1254 1:64.077 2:59.5001 1:45.9042 2:36.7331 1:24.1278 2:13.9733"
    ),  # 0.8125
    _one_unit("uniform:0:100", "constant:0", buyers=4): _asks(
        "1:81.2062 2:80.5523 3:76.2224 4:71.3001 1:55.6767 2:51.846 3:46.2283 4:38.5518"
    ),  # 0.7995
    _one_unit("uniform:0:100", "constant:0", buyers=8): _asks(
        "1:82.2548 2:82.652 3:77.9929 4:74.3678 5:73.4761 6:63.7562 7:53.8441 8:48.067"
    ),  # 0.7798
    _one_unit("lognormal:100:0.5", "constant:60", buyers=4): _asks(
        "1:183.894 2:162.425 3:151.269 4:146.561 1:117.859 2:112.302 3:96.933 4:86.939"
    ),  # 0.6301
    _one_unit("bands", "uniform:0.1:0.5", buyers=2): _asks(
        "1:1.1124 2:1.1156 1:1.0763 2:1.0774 1:1.041 2:1.0375 1:1 2:1"
    ),  # 0.9753
    _one_unit("bands", "uniform:0.1:0.5", buyers=3): _asks(
        "1:1.1056 2:1.1016 3:1.0746 1:1.05 2:1.0468 3:1 1:1 2:1"
    ),  # 0.9626
    _one_unit("bands", "uniform:0.1:0.5", buyers=5): _asks(
        "1:1.0889 5:1.0828 2:1.0784 4:1.0742 5:1 1:1 2:1 3:1"
    ),  # 0.9382
}
"""Found by `find` on 4,000 scenarios of seed 1; behind each the share it earned on them."""

FROZEN_SCENARIOS, FROZEN_SEED = 4_000, 1
ON_DEMAND_SCENARIOS, ON_DEMAND_GRID = 300, 24


def find(kind: MarketKind, *, scenarios: int, seed: int, grid: int = 40) -> Found:
    """Search for the best sequence of a kind of market on scenarios drawn from its public prior."""
    draws = training_scenarios(kind, scenarios=scenarios, seed=seed)
    return search(draws, stock=kind.stock, turns=kind.turns, starts=_by_theory(kind), grid=grid)


def _by_theory(kind: MarketKind) -> list[list[Step]]:
    """The best round-robin ladder at the median cost, where one unit is sold: a second start."""
    if kind.stock != (1,):
        return []
    ladder = optimum.optimal_ladder(
        spec=kind.value_spec,
        rho=kind.rho,
        buyers=kind.buyers,
        turns=kind.turns,
        cost=priors.quantile(kind.cost_spec, 0.5),
    )
    return [[Step(buyer, 0, price) for buyer, price in zip(ladder.order, ladder.prices, strict=True)]]


@lru_cache(maxsize=4096)
def sequence_for(kind: MarketKind) -> tuple[Step, ...]:
    """The sequence for a kind of market: the frozen one, else one that is searched for now."""
    if kind in FROZEN:
        return FROZEN[kind]
    return find(kind, scenarios=ON_DEMAND_SCENARIOS, seed=FROZEN_SEED, grid=ON_DEMAND_GRID).steps


def find_for(recipe: Recipe, pool: Sequence[ProductFacts], *, scenarios: int, seed: int) -> Found:
    """Search on a market's own training scenarios instead of its public prior."""
    kind = _kind_of_recipe(recipe)
    draws = of_recipe(recipe, pool, scenarios=scenarios, seed=seed)
    return search(draws, stock=kind.stock, turns=kind.turns, starts=_by_theory(kind))


def _kind_of_recipe(recipe: Recipe) -> MarketKind:
    """What a seller in such a market would call its kind."""
    mechanism = recipe.mechanism
    if isinstance(mechanism, SellerTurns):
        turns = mechanism.turns
    else:
        unanswerable = isinstance(mechanism, Alternating) and mechanism.opener is not Role.SELLER
        turns = max(1, mechanism.rounds - unanswerable)
    return MarketKind(
        recipe.family,
        recipe.public_values,
        recipe.cost_prior,
        recipe.rho,
        recipe.buyers,
        (min(recipe.stock, recipe.buyers),) * recipe.products,
        turns,
    )


def kind_of(observation: Observation) -> MarketKind:
    """The kind of market that a seller sits in."""
    prior = observation.prior
    sold = [thread.deal.product for thread in observation.threads if thread.deal is not None]
    stock = tuple(
        min(seen.units_left + sold.count(product), observation.buyers)
        for product, seen in enumerate(observation.products)
    )
    return MarketKind(
        observation.family,
        prior.value_spec,
        prior.cost_spec,
        prior.rho,
        observation.buyers,
        stock,
        asks(observation).moves,
    )


class FixedSequence(LadderSeller):
    """Plays the best fixed sequence of its kind of market.

    An offer whose buyer is gone or whose product is sold out gives way to the next one that can
    be made. Bids are taken as by every ladder.
    """

    def next_ask(self, turn: Turn, threads: Sequence[SeenThread]) -> Ask | None:
        observation = turn.observation
        steps = sequence_for(kind_of(observation))
        writable = {thread.buyer: thread for thread in threads}
        for step in steps[asks(observation).move :]:
            if step.buyer + 1 in writable and can_gain_as_seller(observation, step.product):
                price = step.price * observation.prior.scales_cents[step.product]
                return Ask(writable[step.buyer + 1], step.product, price)
        return None


# The command -----------------------------------------------------------------------------------


def main(arguments: Sequence[str] | None = None) -> int:
    """`python -m agents.scripted.fixed_sequence`: search for one kind of market and print it."""
    parser = argparse.ArgumentParser(prog="fixed_sequence", description=main.__doc__)
    parser.add_argument("--family", choices=[family.value for family in Family], default=Family.MULTI_BUYER.value)
    parser.add_argument("--values", default="bands", help="value spec, as create_market takes it")
    parser.add_argument("--cost", default="constant:0", help="public spec of the cost")
    parser.add_argument("--rho", type=float, default=0.0)
    parser.add_argument("--buyers", type=int, default=3)
    parser.add_argument("--products", type=int, default=1)
    parser.add_argument("--stock", type=int, default=1, help="units of each product")
    parser.add_argument("--turns", type=int, default=8)
    parser.add_argument("--scenarios", type=int, default=FROZEN_SCENARIOS)
    parser.add_argument("--seed", type=int, default=FROZEN_SEED)
    parser.add_argument("--json", action="store_true")
    asked = parser.parse_args(arguments)
    sizes = ("buyers", "products", "stock", "turns", "scenarios")
    for name in sizes:
        if getattr(asked, name) < 1:
            parser.error(f"--{name} must be at least 1, not {getattr(asked, name)}.")
    try:
        kind = MarketKind(
            Family(asked.family),
            priors.parse_value_spec(asked.values),
            priors.parse_value_spec(asked.cost),
            asked.rho,
            asked.buyers,
            (asked.stock,) * asked.products,
            asked.turns,
        )
    except priors.SpecError as error:
        parser.error(str(error))
    found = find(kind, scenarios=asked.scenarios, seed=asked.seed)
    if asked.json:
        sys.stdout.write(json.dumps({"share": found.share, "steps": [list(step) for step in found.steps]}) + "\n")
    else:
        sys.stdout.write(f"Earns {found.share:.4f} of the first best on {asked.scenarios:,} training scenarios.\n")
        for step in found.steps:
            sys.stdout.write(f"buyer {step.buyer + 1}, product {step.product + 1}: {step.price:g} x scale\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())
