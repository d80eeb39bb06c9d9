"""Rows on catalogues: simple assignments as shares of the best one, and competitive revenue.

Matchings are played: the seller asks each buyer of an assignment for its full value, so the welfare
of a game is that of the assignment. Unit demand, one unit of each product, cost 0. The best
assignment is a maximum-weight matching (Shapley and Shubik 1971), checked against brute force;
revenue of the Vickrey-Clarke-Groves mechanism is that of the lowest competitive prices (Leonard
1983; Demange, Gale and Sotomayor 1986).
"""

import math
import random
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from markets.engine import optimum, priors
from markets.engine.scenarios import Family, Prior, Product, Scenario, SellerTurns
from markets.engine.seeds import derive_seed
from negotiation_site.economics.playing import Job, Sums, over
from negotiation_site.economics.rows import Row, Scale

CENTS = 100_000
"""Cents that the number 1 stands for."""

Values = Callable[[np.random.Generator, int, int], NDArray[np.float64]]
"""(buyer, product) values from a generator, a number of buyers and a number of products."""


def _independent(rng: np.random.Generator, buyers: int, products: int) -> NDArray[np.float64]:
    return rng.random((buyers, products))


def _budget_times_quality(rng: np.random.Generator, buyers: int, products: int) -> NDArray[np.float64]:
    return rng.random((buyers, 1)) * (0.5 + rng.random((1, products)))


def _mixed(rng: np.random.Generator, buyers: int, products: int) -> NDArray[np.float64]:
    return 0.5 * rng.random((buyers, 1)) + 0.3 * rng.random((1, products)) + 0.2 * rng.random((buyers, products))


def _lognormal(rng: np.random.Generator, buyers: int, products: int) -> NDArray[np.float64]:
    scores = (rng.standard_normal((buyers, 1)) + rng.standard_normal((buyers, products))) / math.sqrt(2)
    return np.exp(0.5 * scores)


VALUES: Mapping[str, Values] = {
    "independent uniform": _independent,
    "budget x quality": _budget_times_quality,
    "buyer .5, item .3, noise .2": _mixed,
    "lognormal .5, buyer rho .5": _lognormal,
}


class Known(NamedTuple):
    """A row of the table."""

    values: str
    buyers: int
    products: int
    optimum: float
    """Mean first best, in units of the values."""
    greedy: float
    serial: float
    random: float
    vcg: float
    """These four as shares of the summed first best."""


TABLE = (
    Known("independent uniform", 2, 2, 37 / 30, 0.976, 0.947, 0.813, 0.07),
    Known("independent uniform", 4, 4, 2.9475, 0.951, 0.921, 0.678, 0.12),
    Known("independent uniform", 8, 8, 6.7076, 0.944, 0.919, 0.595, 0.12),
    Known("independent uniform", 4, 2, 1.5725, 0.989, 0.746, 0.631, 0.71),
    Known("independent uniform", 8, 4, 3.5074, 0.988, 0.775, 0.570, 0.83),
    Known("independent uniform", 16, 8, 7.4637, 0.991, 0.824, 0.536, 0.91),
    Known("budget x quality", 4, 4, 2.19, 1.000, 0.907, 0.908, 0.18),
    Known("budget x quality", 8, 8, 4.52, 1.000, 0.887, 0.887, 0.23),
    Known("budget x quality", 8, 4, 3.00, 1.000, 0.665, 0.668, 0.66),
    Known("budget x quality", 20, 10, 7.74, 1.000, 0.646, 0.648, 0.70),
    Known("buyer .5, item .3, noise .2", 4, 4, 2.20, 0.964, 0.953, 0.914, 0.14),
    Known("buyer .5, item .3, noise .2", 8, 8, 4.53, 0.956, 0.944, 0.880, 0.18),
    Known("buyer .5, item .3, noise .2", 8, 4, 2.65, 0.978, 0.788, 0.754, 0.78),
    Known("buyer .5, item .3, noise .2", 20, 10, 6.95, 0.975, 0.781, 0.723, 0.81),
    Known("lognormal .5, buyer rho .5", 4, 4, 5.93, 0.982, 0.936, 0.763, 0.08),
    Known("lognormal .5, buyer rho .5", 8, 8, 13.59, 0.980, 0.918, 0.671, 0.10),
    Known("lognormal .5, buyer rho .5", 8, 4, 7.81, 0.989, 0.713, 0.584, 0.66),
    Known("lognormal .5, buyer rho .5", 20, 10, 23.05, 0.986, 0.702, 0.492, 0.69),
)

GAMES = {2: 0.1, 4: 0.05, 8: 0.02, 16: 0.0075, 20: 0.0075}
"""Part of the games of a ladder's row that is played, by number of buyers: larger markets average more."""

DRAWS = {2: 0.1, 4: 0.1, 8: 0.075, 16: 0.015, 20: 0.025}
"""Likewise the scenarios that competitive revenue is worked out for."""

AGENTS = ("greedy-assignment", "serial-assignment", "random-assignment")


def scenario(values: str, buyers: int, products: int, k: int) -> Scenario:
    """Scenario number k of a structure."""
    rng = np.random.default_rng(derive_seed("catalogue", values, buyers, products, k))
    drawn = VALUES[values](rng, buyers, products)
    return Scenario(
        family=Family.CATALOGUE,
        mechanism=SellerTurns(buyers + products),
        products=tuple(
            Product(sku=f"item-{number}", title=f"Item {number}", list_price_cents=CENTS) for number in range(products)
        ),
        seller_values_cents=(0,) * products,
        buyer_values_cents=tuple(tuple(max(1, round(value * CENTS)) for value in own) for own in drawn.tolist()),
        prior=Prior(
            value_spec=priors.UniformSpec(low=0, high=10),
            cost_spec=priors.ConstantSpec(value=0),
            scales_cents=(CENTS,) * products,
        ),
        seed=derive_seed("catalogue seat", values, buyers, products, k),
    )


def _games(known: Known, scale: Scale) -> int:
    return scale.part(GAMES[known.buyers])


def _name(known: Known) -> str:
    return f"catalogue/{known.values}/{known.buyers}x{known.products}"


def jobs(scale: Scale) -> Mapping[str, Job]:
    """Each simple assignment of every structure, and the best one of the smallest."""
    found = {
        f"{_name(known)}/{agent}": Job(
            partial(scenario, known.values, known.buyers, known.products), agent, _games(known, scale)
        )
        for known in TABLE
        for agent in AGENTS
    }
    for values in VALUES:
        found[f"{values}/best"] = Job(partial(scenario, values, 4, 4), "optimal-assignment", scale.part(0.01))
    return found


def rows(played: Mapping[str, Sums], scale: Scale) -> Iterator[Row]:
    """Every row of the module."""
    for known in TABLE:
        yield from _table_rows(known, played, scale)
    for values in VALUES:
        best = played[f"{values}/best"]
        for what, measured in (("welfare", best.welfare_share), ("seller's surplus", best.seller_share)):
            yield Row(
                name=f"catalogue/{values}/4x4/best assignment/{what}/played",
                reference=1.0,
                measured=measured,
                tolerance=0.0,
            )
    for size in (2, 4, 8):
        key = f"catalogue/independent uniform/{size}x{size}"
        serial, lot = (played[f"{key}/{agent}"] for agent in ("serial-assignment", "random-assignment"))
        for what, reference, sums in (
            ("serial", sum(k / (k + 1) for k in range(1, size + 1)) / size, serial),
            ("random", 0.5, lot),
        ):
            yield Row(
                name=f"{key}/{what}/value of a sale, of the highest value/played",
                reference=reference,
                measured=over(sums.welfare_cents, CENTS * size * sums.games),
                tolerance=0.015,
            )
    yield from _brute_force_rows()
    yield from _assignment_cost_rows(scale)


def _table_rows(known: Known, played: Mapping[str, Sums], scale: Scale) -> Iterator[Row]:
    name = _name(known)
    for agent, reference in zip(AGENTS, (known.greedy, known.serial, known.random), strict=True):
        yield Row(
            name=f"{name}/{agent}/share/played",
            reference=reference,
            measured=played[f"{name}/{agent}"].welfare_share,
            tolerance=0.02,
        )
    first_best = played[f"{name}/{AGENTS[0]}"]
    yield Row(
        name=f"{name}/first best as a share of the table's/played",
        reference=1.0,
        measured=over(first_best.first_best_cents, CENTS * first_best.games * known.optimum),
        tolerance=0.03,
    )
    revenue = best = 0
    for k in range(scale.part(DRAWS[known.buyers])):
        drawn = scenario(known.values, known.buyers, known.products, k)
        total, prices = competitive_prices(drawn.buyer_values_cents)
        best += total
        revenue += prices
    yield Row(
        name=f"{name}/Vickrey-Clarke-Groves revenue/share/exact",
        reference=known.vcg,
        measured=revenue / best,
        tolerance=0.02,
    )


def competitive_prices(values: tuple[tuple[int, ...], ...]) -> tuple[int, int]:
    """(first best, sum of the payments of the Vickrey-Clarke-Groves mechanism), in cents; one unit of each.

    A buyer pays what its presence costs the others: the best they could do without it minus what
    they get beside it. Whoever gets nothing pays nothing.
    """
    stock = (1,) * len(values[0])
    total, pairs = optimum.optimal_assignment(surplus=values, stock=stock)
    payments = 0
    for buyer, product in pairs:
        others = tuple(own for index, own in enumerate(values) if index != buyer)
        without = optimum.optimal_assignment(surplus=others, stock=stock)[0] if others else 0
        payments += without - (total - values[buyer][product])
    return total, payments


def _brute_force_rows() -> Iterator[Row]:
    """W* against all ways of serving buyers, for up to five of each."""
    rng = random.Random(derive_seed("brute force"))
    wrong = 0
    for _ in range(150):
        buyers, products = rng.randint(1, 5), rng.randint(1, 5)
        gains = [[rng.randint(-40, 100) for _ in range(products)] for _ in range(buyers)]
        stock = [rng.randint(1, 2) for _ in range(products)]
        wrong += optimum.optimal_assignment(surplus=gains, stock=stock)[0] != _most(gains, stock)
    yield Row(name="catalogue/best assignments unlike brute force", reference=0.0, measured=float(wrong), tolerance=0.0)


def _most(gains: list[list[int]], stock: list[int], buyer: int = 0) -> int:
    """The largest total gain from `buyer` on, by trying for each buyer every unit that is left, and none."""
    if buyer == len(gains):
        return 0
    totals = [_most(gains, stock, buyer + 1)]
    for product, left in enumerate(stock):
        if left:
            fewer = [*stock[:product], left - 1, *stock[product + 1 :]]
            totals.append(gains[buyer][product] + _most(gains, fewer, buyer + 1))
    return max(totals)


def _assignment_cost_rows(scale: Scale) -> Iterator[Row]:
    """Cheapest assignments at costs Exp(1): the sum of 1/k^2 (Parisi's formula)."""
    for size, part in ((2, 0.25), (4, 0.1), (8, 0.05)):
        draws = scale.part(part)
        rng = np.random.default_rng(derive_seed("parisi", size))
        total = 0
        for _ in range(draws):
            costs = (rng.exponential(size=(size, size)) * CENTS).round().astype(int)
            most = int(costs.max()) + 1
            gain = optimum.optimal_assignment(surplus=(most - costs).tolist(), stock=(1,) * size)[0]
            total += most * size - gain
        yield Row(
            name=f"catalogue/cheapest assignment, exponential costs/{size}x{size}/cost of a sale, of the mean cost/simulated",
            reference=sum(1 / k**2 for k in range(1, size + 1)) / size,
            measured=total / CENTS / draws / size,
            tolerance=0.02,
        )
