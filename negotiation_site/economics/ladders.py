"""Rows on one item and several buyers: ladders of binding offers, played and exact, and auctions.

A turn is one offer to one buyer and its answer; acceptance ends the game. Shares of the first best
E[(highest value - c)+] against threshold buyers, after Chawla, Hartline, Malec and Sivan (2010);
auctions with strategic bidders beside them (Vickrey 1961, Myerson 1981), simulated apart from the
engine. Lognormal: median 100, sigma .5, cost 60; rho: one-factor Gaussian copula. The optimal
ladder's figures are our own computation, checked by enumeration of orders for small games; there
is no proof that round-robin is the best order in general.
"""

import math
from collections.abc import Iterator, Mapping
from itertools import product as cartesian
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.special import ndtr

from markets.engine import optimum, priors
from markets.engine.scenarios import Family, Recipe, SellerTurns
from markets.engine.seeds import derive_seed
from negotiation_site.economics.playing import Job, Sums, of_recipe
from negotiation_site.economics.rows import Row, Scale

DRAWS = 400_000


class World(NamedTuple):
    """A prior of the table, and how it is played in money."""

    name: str
    spec: priors.UniformSpec | priors.LogNormalSpec
    cost: float
    rho: float
    unit: float
    """Units of money that the number 1 stands for, so that a cent is a small part of a value."""
    played_part: float
    """Part of the games of a row that is played; the table of uniform priors is played in full."""
    tolerance: float

    def game(self, buyers: int) -> dict[str, Any]:
        """What `optimum` takes."""
        return {"spec": self.spec, "rho": self.rho, "buyers": buyers, "cost": self.cost}


UNIFORM = World("uniform", priors.UniformSpec(low=0, high=1), 0.0, 0.0, 10_000, 1.0, 0.01)
LOGNORMAL = World("lognormal", priors.LogNormalSpec(median=100, sigma=0.5), 60.0, 0.0, 100, 0.25, 0.015)
WORLDS = (
    UNIFORM,
    LOGNORMAL,
    LOGNORMAL._replace(name="lognormal rho=.5", rho=0.5),
    UNIFORM._replace(name="uniform rho=.5", rho=0.5, played_part=0.25, tolerance=0.015),
)


class Known(NamedTuple):
    """A row of the table; shares of the first best unless said otherwise."""

    world: str
    buyers: int
    turns: int
    first_best: float
    """In the prior's own unit."""
    optimal: float
    welfare: float
    deal_rate: float
    linear: float
    one_pass: float
    single_price: float
    one_buyer: float
    vickrey: float
    myerson: float | None


TABLE = tuple(
    Known(name, buyers, turns, *figures)
    for name, buyers, turns, *figures in (
        ("uniform", 2, 8, 0.6667, 0.854, 0.976, 0.923, 0.820, 0.586, 0.577, 0.667, 0.500, 0.625),
        ("uniform", 2, 16, 0.6667, 0.922, 0.992, 0.967, 0.908, 0.586, 0.577, 0.706, 0.500, 0.625),
        ("uniform", 2, 32, 0.6667, 0.960, 0.998, 0.986, 0.954, 0.586, 0.577, 0.727, 0.500, 0.625),
        ("uniform", 4, 8, 0.8000, 0.821, 0.953, 0.934, 0.739, 0.688, 0.669, 0.556, 0.750, 0.766),
        ("uniform", 4, 16, 0.8000, 0.905, 0.986, 0.976, 0.858, 0.688, 0.669, 0.588, 0.750, 0.766),
        ("uniform", 4, 32, 0.8000, 0.951, 0.996, 0.992, 0.925, 0.688, 0.669, 0.606, 0.750, 0.766),
        ("uniform", 8, 8, 0.8889, 0.787, 0.918, 0.931, 0.669, 0.787, 0.760, 0.500, 0.875, 0.875),
        ("uniform", 8, 16, 0.8889, 0.888, 0.973, 0.978, 0.794, 0.787, 0.760, 0.529, 0.875, 0.875),
        ("uniform", 8, 32, 0.8889, 0.943, 0.992, 0.993, 0.881, 0.787, 0.760, 0.545, 0.875, 0.875),
        ("lognormal", 4, 8, 118.3, 0.636, 0.914, 0.831, 0.599, 0.478, 0.464, 0.384, 0.519, 0.549),
        ("lognormal", 4, 16, 118.3, 0.769, 0.967, 0.916, 0.756, 0.478, 0.464, 0.420, 0.519, 0.549),
        ("lognormal", 4, 32, 118.3, 0.865, 0.991, 0.961, 0.850, 0.478, 0.464, 0.442, 0.519, 0.549),
        ("lognormal rho=.5", 4, 8, 98.2, 0.616, 0.880, 0.745, 0.589, 0.471, 0.425, 0.462, 0.626, None),
        ("lognormal rho=.5", 4, 16, 98.2, 0.748, 0.949, 0.836, 0.737, 0.471, 0.425, 0.506, 0.626, None),
        ("lognormal rho=.5", 4, 32, 98.2, 0.848, 0.981, 0.898, 0.835, 0.471, 0.425, 0.532, 0.626, None),
        ("uniform rho=.5", 4, 8, 0.7086, 0.782, 0.930, 0.879, 0.736, 0.653, 0.600, 0.627, 0.796, None),
        ("uniform rho=.5", 4, 16, 0.7086, 0.874, 0.975, 0.940, 0.849, 0.653, 0.600, 0.664, 0.796, None),
        ("uniform rho=.5", 4, 32, 0.7086, 0.932, 0.992, 0.972, 0.919, 0.653, 0.600, 0.684, 0.796, None),
    )
)

RIVALS = {
    "falling-ladder": ("linear ladder", 0.739),
    "one-pass": ("one pass", 0.688),
    "posted-price": ("single price, asked again and again", 0.669),
    "all-on-one": ("all on one buyer", 0.556),
}
"""Agents played on uniform values, N = 4, T = 8: what they stand for, and their share there."""
RIVALS_PART = 0.15

PRICES = {
    2: (0.8690, 0.8350, 0.7189, 0.6598, 0.5446, 0.4655, 0.3305, 0.2328),
    4: (0.8540, 0.8297, 0.7984, 0.7547, 0.6210, 0.5674, 0.4936, 0.3773),
}
"""Optimal ladders of eight turns on uniform values, by number of buyers."""


def recipe(world: World, *, buyers: int, turns: int) -> Recipe:
    """A game of the table, in money."""
    unit = world.unit
    match world.spec:
        case priors.UniformSpec():
            spec: priors.ValueSpec = priors.UniformSpec(low=world.spec.low * unit, high=world.spec.high * unit)
        case priors.LogNormalSpec():
            spec = priors.LogNormalSpec(median=world.spec.median * unit, sigma=world.spec.sigma)
    cost = priors.ConstantSpec(value=world.cost * unit)
    return Recipe(
        family=Family.MULTI_BUYER,
        mechanism=SellerTurns(turns),
        buyers=buyers,
        value_spec=spec,
        cost_spec=cost,
        cost_prior=cost,
        rho=world.rho,
        unit_is_money=True,
        opening_bid_share=None,
    )


def _worlds() -> dict[str, World]:
    return {world.name: world for world in WORLDS}


def jobs(scale: Scale) -> Mapping[str, Job]:
    """The optimal ladder in every row, its rivals in one."""
    worlds = _worlds()
    found = {
        _name(known): Job(
            of_recipe(recipe(worlds[known.world], buyers=known.buyers, turns=known.turns)),
            "optimal-ladder",
            scale.part(worlds[known.world].played_part),
        )
        for known in TABLE
    }
    game = of_recipe(recipe(UNIFORM, buyers=4, turns=8))
    return found | {slug: Job(game, slug, scale.part(RIVALS_PART)) for slug in RIVALS}


def _name(known: Known) -> str:
    return f"ladder/{known.world}/N={known.buyers}/T={known.turns}"


def rows(played: Mapping[str, Sums], scale: Scale) -> Iterator[Row]:
    """Every row of the module."""
    worlds = _worlds()
    for known in TABLE:
        yield from _played_rows(known, worlds[known.world], played[_name(known)])
    for known in TABLE:
        yield from _exact_rows(known, worlds[known.world])
    for slug, (what, reference) in RIVALS.items():
        yield Row(
            name=f"ladder/uniform/N=4/T=8/{what}/played by {slug}",
            reference=reference,
            measured=played[slug].seller_share,
            tolerance=0.015,
        )
    for world in WORLDS:
        yield from _auction_rows(world, [known for known in TABLE if known.world == world.name])
    yield from _closed_forms()
    yield from _order_rows()
    yield from _probing_rows()


def _played_rows(known: Known, world: World, played: Sums) -> Iterator[Row]:
    for what, reference, measured in (
        ("share", known.optimal, played.seller_share),
        ("welfare", known.welfare, played.welfare_share),
        ("deal rate", known.deal_rate, played.deal_rate),
    ):
        yield Row(
            name=f"{_name(known)}/optimal ladder/{what}/played",
            reference=reference,
            measured=measured,
            tolerance=world.tolerance,
        )


def _exact_rows(known: Known, world: World) -> Iterator[Row]:
    game = world.game(known.buyers)
    best = optimum.optimal_ladder(turns=known.turns, **game)
    figures = [
        ("optimal ladder/share", known.optimal, best.revenue_share),
        ("optimal ladder/welfare", known.welfare, best.welfare_share),
        ("optimal ladder/deal rate", known.deal_rate, best.deal_rate),
        ("linear ladder/share", known.linear, optimum.linear_ladder(turns=known.turns, **game).revenue_share),
        (
            "all on one buyer/share",
            known.one_buyer,
            optimum.single_buyer_ladder(turns=known.turns, **game).revenue_share,
        ),
    ]
    if known.turns == 8:
        figures += [
            ("one pass/share", known.one_pass, optimum.one_pass(**game).revenue_share),
            ("single price/share", known.single_price, optimum.single_price(**game).revenue_share),
            ("first best as a share of the table's", 1.0, best.first_best / known.first_best),
        ]
    for what, reference, measured in figures:
        yield Row(name=f"{_name(known)}/{what}/exact", reference=reference, measured=measured, tolerance=0.002)


# Auctions --------------------------------------------------------------------------------------


def _values(world: World, buyers: int) -> NDArray[np.float64]:
    """(draw, buyer), made here from normal scores and not by the engine's sampler."""
    rng = np.random.default_rng(derive_seed("auction", world.name, buyers))
    common = rng.standard_normal((DRAWS, 1))
    scores = math.sqrt(world.rho) * common + math.sqrt(1 - world.rho) * rng.standard_normal((DRAWS, buyers))
    match world.spec:
        case priors.UniformSpec():
            return world.spec.low + (world.spec.high - world.spec.low) * ndtr(scores)
        case priors.LogNormalSpec():
            return world.spec.median * np.exp(world.spec.sigma * scores)


def _auction_rows(world: World, table: list[Known]) -> Iterator[Row]:
    """Second-price auctions: with the cost as reserve, and with the price of `optimum.posted_price` as reserve."""
    for known in {row.buyers: row for row in table}.values():
        values = np.sort(_values(world, known.buyers), axis=1)
        highest, second = values[:, -1], values[:, -2]
        first_best = np.maximum(highest - world.cost, 0).mean()
        reserves = [("Vickrey", world.cost, known.vickrey)]
        if known.myerson is not None:
            best = optimum.posted_price(spec=world.spec, cost=world.cost).prices[0]
            reserves.append(("Myerson", best, known.myerson))
        for name, reserve, reference in reserves:
            revenue = np.where(highest >= reserve, np.maximum(second, reserve) - world.cost, 0.0).mean()
            yield Row(
                name=f"auction/{world.name}/N={known.buyers}/{name}/share/simulated",
                reference=reference,
                measured=float(revenue / first_best),
                tolerance=0.005,
            )


# Closed forms and orders -----------------------------------------------------------------------


def _closed_forms() -> Iterator[Row]:
    unit: dict[str, Any] = {"spec": UNIFORM.spec, "rho": 0.0, "cost": 0.0}
    for buyers, reference in ((2, 0.3906), (4, 0.5502), (8, 0.6996)):
        name = f"closed form/uniform/N={buyers}"
        first_best = optimum.first_best(buyers=buyers, **unit)
        figures = (
            ("one pass", reference * (buyers + 1) / buyers, optimum.one_pass(buyers=buyers, **unit).revenue_share),
            ("first best, of the highest value", buyers / (buyers + 1), first_best),
            (
                "single price, of the highest value",
                (buyers + 1) ** (-1 / buyers),
                optimum.single_price(buyers=buyers, **unit).prices[0],
            ),
        )
        for what, expected, measured in figures:
            yield Row(name=f"{name}/{what}/exact", reference=expected, measured=measured, tolerance=0.0005)
    for buyers, reference in ((2, 0.743), (4, 0.688), (8, 0.619)):
        ladder = optimum.optimal_ladder(turns=4, buyers=buyers, **unit)
        yield Row(
            name=f"ladder/uniform/N={buyers}/eight messages, four offers/share/exact",
            reference=reference,
            measured=ladder.revenue_share,
            tolerance=0.001,
        )
    for buyers, prices in PRICES.items():
        ladder = optimum.optimal_ladder(turns=8, buyers=buyers, **unit)
        for turn, (expected, price) in enumerate(zip(prices, ladder.prices, strict=True), start=1):
            yield Row(
                name=f"ladder/uniform/N={buyers}/T=8/price of turn {turn}, of the highest value/exact",
                reference=expected,
                measured=price,
                tolerance=0.001,
            )
    for buyers, gap in ((1, 1.0), (2, 1.3), (4, 1.6), (8, 1.8)):
        ladder = optimum.optimal_ladder(turns=32, buyers=buyers, **unit)
        yield Row(
            name=f"ladder/uniform/N={buyers}/T=32/gap to the first best, as k/T/exact",
            reference=gap / 32,
            measured=1 - (ladder.revenue_share or 0.0),
            tolerance=0.003,
        )


def _order_rows() -> Iterator[Row]:
    """Round-robin against all orders of visits, where they can be gone through."""
    unit: dict[str, Any] = {"spec": UNIFORM.spec, "rho": 0.0, "cost": 0.0}
    for buyers, turns, reference in (
        *((2, 2, 0.3906), (2, 4, 0.4951), (2, 8, 0.5695)),
        *((3, 3, 0.4835), (3, 4, 0.5308), (3, 6, 0.5920), (3, 8, 0.6258)),
    ):
        ladder = optimum.optimal_ladder(turns=turns, buyers=buyers, **unit)
        yield Row(
            name=f"ladder/uniform/N={buyers}/T={turns}/share, among all orders/exact",
            reference=reference * (buyers + 1) / buyers,
            measured=ladder.revenue_share,
            tolerance=0.0005,
        )
    for world, buyers, turns in ((UNIFORM, 2, 5), (UNIFORM, 3, 4), (LOGNORMAL, 2, 5), (WORLDS[2], 2, 5)):
        game = world.game(buyers)
        robin = optimum.optimal_ladder(turns=turns, **game)
        most = max(
            optimum.best_in_order(order=(0, *rest), **game).revenue
            for rest in cartesian(range(buyers), repeat=turns - 1)
        )
        yield Row(
            name=f"ladder/{world.name}/N={buyers}/T={turns}/best of all orders over round-robin/exact",
            reference=1.0,
            measured=most / robin.revenue,
            tolerance=0.0005,
        )


# Asking at a cost ------------------------------------------------------------------------------


def _probing_rows() -> Iterator[Row]:
    """Truthful answers at a cost k each: inspect in turn until the best reaches z, E[(v - z)+] = k (Weitzman 1979)."""
    rng = np.random.default_rng(derive_seed("probing"))
    for cost, known in (
        (0.01, (0.6476, 0.7653, 0.8304)),
        (0.02, (0.6293, 0.7345, 0.7851)),
        (0.05, (0.5772, 0.6539, 0.6801)),
    ):
        index = 1 - math.sqrt(2 * cost)
        for buyers, reference in zip((2, 4, 8), known, strict=True):
            best, paid = np.zeros(DRAWS), np.zeros(DRAWS)
            for _ in range(buyers):
                asked = best < index
                paid += cost * asked
                best = np.where(asked, np.maximum(best, rng.random(DRAWS)), best)
            yield Row(
                name=f"asking at a cost/uniform/N={buyers}/k={cost:g}/value, of the highest value/simulated",
                reference=reference,
                measured=float((best - paid).mean()),
                tolerance=0.003,
            )
