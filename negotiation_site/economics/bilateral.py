"""Rows on one seller and one buyer: posted prices, private values on both sides, discounting.

References: Myerson (1981) and Riley and Zeckhauser (1983) for posted prices; Chatterjee and
Samuelson (1983) and Myerson and Satterthwaite (1983) for two private values; Gode and Sunder (1993)
for zero intelligence; Rubinstein (1982) and Stahl (1972) for alternating offers. Figures in money
are shares of the first best E[(v - c)+].
"""

import math
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np

from agents.scripted import equilibria
from markets.engine import optimum, priors
from markets.engine.protocol import Role
from markets.engine.scenarios import Alternating, Family, Recipe
from markets.engine.seeds import derive_seed
from negotiation_site.economics.playing import Job, Sums, of_recipe
from negotiation_site.economics.rows import Row, Scale

DRAWS = 1_000_000
"""Draws of an independent simulation: a share errs by about .001."""


class Posted(NamedTuple):
    """A configuration of the table of posted prices, as it is known in closed form."""

    name: str
    spec: priors.ValueSpec
    cost: float
    price: float
    profit: float
    share: float
    welfare: float
    deal_rate: float


def _exponential(steps: int = 400) -> priors.EmpiricalSpec:
    """Exp(1) by its quantiles, linear between them; the last stretch has the mean of the tail."""
    quantiles = [-math.log1p(-step / steps) for step in range(steps)]
    return priors.EmpiricalSpec(quantiles=(*quantiles, quantiles[-1] + 2))


POSTED = (
    Posted("uniform 0 to 1, cost 0", priors.UniformSpec(low=0, high=1), 0.0, 0.5, 1 / 4, 0.5, 0.75, 0.5),
    Posted("uniform .5 to 1.5, cost .25", priors.UniformSpec(low=0.5, high=1.5), 0.25, 0.875, 0.3906, 0.5208, 0.7813, 0.625),
    Posted("exponential, cost 0", _exponential(), 0.0, 1.0, 1 / math.e, 0.3679, 0.7358, 0.3679),
    Posted("lognormal 1, .5, cost 0", priors.LogNormalSpec(median=1, sigma=0.5), 0.0, 0.7719, 0.5386, 0.4753, 0.8456, 0.6977),
    Posted("lognormal 100, .5, cost 60", priors.LogNormalSpec(median=100, sigma=0.5), 60.0, 117.87, 21.48, 0.3886, 0.7616, 0.3711),
    Posted("lognormal 100, .25, cost 60", priors.LogNormalSpec(median=100, sigma=0.25), 60.0, 95.18, 20.35, 0.4701, 0.8022, 0.5784),
)  # fmt: skip

FALLING = (1, 2, 4, 8, 16, 32)
"""Numbers of offers to one threshold buyer."""
PLAYED_FALLING = (8, 32)

ONE_SHOT = "one shot"
ZERO_INTELLIGENCE = "zero intelligence"
MIDDLE = "middle"

MONEY = 10_000.0
"""Units of money that the number 1 stands for in played games, so that a cent is a millionth."""


def bilateral(*, value: priors.ValueSpec, cost: priors.UniformSpec | priors.ConstantSpec, rounds: int) -> Recipe:
    """A bilateral game in money in which the seller has the first word and the buyer the last."""
    return Recipe(
        family=Family.BILATERAL,
        mechanism=Alternating(rounds=rounds, opener=Role.SELLER),
        value_spec=value,
        cost_spec=cost,
        cost_prior=cost,
        unit_is_money=True,
        opening_bid_share=None,
    )


def _in_money(spec: priors.ValueSpec, *, unit: float) -> priors.ValueSpec:
    match spec:
        case priors.UniformSpec():
            return priors.UniformSpec(low=spec.low * unit, high=spec.high * unit)
        case priors.LogNormalSpec():
            return priors.LogNormalSpec(median=spec.median * unit, sigma=spec.sigma)
        case priors.EmpiricalSpec():
            return priors.EmpiricalSpec(quantiles=tuple(value * unit for value in spec.quantiles))
        case _:
            raise ValueError(f"No row is on {spec!r}.")


def jobs(scale: Scale) -> Mapping[str, Job]:
    """One-shot games for the posted prices and for two private values, and falling prices."""
    unit = priors.UniformSpec(low=0, high=MONEY)
    both = of_recipe(bilateral(value=unit, cost=unit, rounds=1))
    found: dict[str, Job] = {}
    for row in POSTED:
        width = MONEY / row.cost if row.cost > 1 else MONEY
        recipe = bilateral(
            value=_in_money(row.spec, unit=width), cost=priors.ConstantSpec(value=row.cost * width), rounds=1
        )
        found[row.name] = Job(of_recipe(recipe), "posted-price", scale.part(0.15))
    for turns in PLAYED_FALLING:
        recipe = bilateral(value=unit, cost=priors.ConstantSpec(value=0), rounds=turns)
        found[_falling(turns)] = Job(of_recipe(recipe), "optimal-ladder", scale.part(0.15))
    found[ONE_SHOT] = Job(both, "one-shot-seller", scale.part(0.4))
    found[ZERO_INTELLIGENCE] = Job(both, "zi-c", scale.part(0.4), buyers="zi-c")
    found[MIDDLE] = Job(both, "middle", scale.part(0.1))
    return found


def _falling(turns: int) -> str:
    return f"falling {turns}"


def rows(played: Mapping[str, Sums], scale: Scale) -> Iterator[Row]:
    """Every row of the module."""
    for posted in POSTED:
        yield from _posted_rows(posted, played[posted.name])
    yield from _falling_rows(played)
    yield from _two_sided_rows(played)
    yield from _discounting_rows()


def _posted_rows(row: Posted, played: Sums) -> Iterator[Row]:
    name = f"posted price/{row.name}"
    best = optimum.posted_price(spec=row.spec, cost=row.cost)
    first_best = row.profit / row.share
    exact = (
        ("price as a share of the first best", row.price / first_best, best.prices[0] / best.first_best, 0.003),
        ("profit", row.share, best.revenue_share, 0.001),
        ("welfare", row.welfare, best.welfare_share, 0.001),
        ("deal rate", row.deal_rate, best.deal_rate, 0.001),
    )
    for what, reference, measured, tolerance in exact:
        yield Row(name=f"{name}/{what}/exact", reference=reference, measured=measured, tolerance=tolerance)
    for what, reference, measured in (
        ("profit", row.share, played.seller_share),
        ("welfare", row.welfare, played.welfare_share),
        ("deal rate", row.deal_rate, played.deal_rate),
    ):
        yield Row(name=f"{name}/{what}/played", reference=reference, measured=measured, tolerance=0.02)


def _falling_rows(played: Mapping[str, Sums]) -> Iterator[Row]:
    """T falling offers to a threshold buyer: share T/(T+1), prices T/(T+1) to 1/(T+1)."""
    spec = priors.UniformSpec(low=0, high=1)
    for turns in FALLING:
        name = f"falling offers to one buyer/T={turns}"
        best = optimum.optimal_ladder(spec=spec, rho=0.0, buyers=1, turns=turns, cost=0.0)
        share = turns / (turns + 1)
        yield Row(name=f"{name}/share/exact", reference=share, measured=best.revenue_share, tolerance=0.001)
        yield Row(name=f"{name}/first price/exact", reference=share, measured=best.prices[0], tolerance=0.002)
        yield Row(name=f"{name}/last price/exact", reference=1 - share, measured=best.prices[-1], tolerance=0.002)
    for turns in PLAYED_FALLING:
        yield Row(
            name=f"falling offers to one buyer/T={turns}/share/played",
            reference=turns / (turns + 1),
            measured=played[_falling(turns)].seller_share,
            tolerance=0.01,
        )


# Two private values ----------------------------------------------------------------------------


def _two_sided_rows(played: Mapping[str, Sums]) -> Iterator[Row]:
    """Values and costs U[0,1]: the first best is 1/6."""
    shot = played[ONE_SHOT]
    name = "two private values/seller's one offer"
    rate = shot.gainful_deals / shot.gainful if shot.gainful else None
    for what, reference, measured in (
        ("deals where trade can gain", 0.5, rate),
        ("deals", 0.25, shot.deal_rate),
        ("efficiency", 0.75, shot.welfare_share),
        ("seller's profit", 0.5, shot.seller_share),
        ("buyer's surplus", 0.25, shot.buyer_share),
    ):
        yield Row(name=f"{name}/{what}/played", reference=reference, measured=measured, tolerance=0.015)
    noise = played[ZERO_INTELLIGENCE]
    name = "two private values/zero intelligence, one shot"
    yield Row(name=f"{name}/efficiency/played", reference=0.232, measured=noise.welfare_share, tolerance=0.015)
    yield Row(name=f"{name}/deals/played", reference=0.073, measured=noise.deal_rate, tolerance=0.01)
    middle = played[MIDDLE]
    name = "two private values/truthful middle"
    for what, reference, measured in (
        ("efficiency", 1.0, middle.welfare_share),
        ("seller's share", 0.5, middle.seller_share),
        ("buyer's share", 0.5, middle.buyer_share),
    ):
        yield Row(name=f"{name}/{what}/played", reference=reference, measured=measured, tolerance=0.001)
    yield from _double_auction_rows()


def _double_auction_rows() -> Iterator[Row]:
    """The linear equilibrium of the k = 1/2 double auction, simulated; and that it is one."""
    rng = np.random.default_rng(derive_seed("double auction"))
    value, cost = rng.random(DRAWS), rng.random(DRAWS)
    bid, ask = 2 * value / 3 + 1 / 12, 2 * cost / 3 + 1 / 4
    trade = bid >= ask
    price = (bid + ask) / 2
    first_best = np.maximum(value - cost, 0).mean()
    name = "two private values/double auction"
    for what, reference, measured in (
        ("efficiency, as Chatterjee and Samuelson have it", 27 / 32, (trade * (value - cost)).mean() / first_best),
        ("deals", 9 / 32, trade.mean()),
        ("seller's surplus", 27 / 64, (trade * (price - cost)).mean() / first_best),
        ("buyer's surplus", 27 / 64, (trade * (value - price)).mean() / first_best),
        (
            "Myerson and Satterthwaite's budget",
            0.0,
            (np.where(value >= cost + 1 / 4, 2 * value - 1 - 2 * cost, 0.0)).mean() / first_best,
        ),
    ):
        yield Row(name=f"{name}/{what}/simulated", reference=reference, measured=float(measured), tolerance=0.01)
    yield Row(
        name=f"{name}/first best, of the highest value/simulated",
        reference=1 / 6,
        measured=float(first_best),
        tolerance=0.002,
    )
    yield Row(
        name=f"{name}/largest gain from leaving the equilibrium/exact",
        reference=0.0,
        measured=_gain_from_leaving(),
        tolerance=0.001,
    )


def _gain_from_leaving() -> float:
    """What a buyer could gain by another bid than its linear one, as a share of the first best.

    Against asks uniform on [1/4, 11/12]; the seller's case is the mirror image.
    """
    asks = 1 / 4 + (np.arange(4_000) + 0.5) / 4_000 * 2 / 3
    bids = np.linspace(0, 1, 401)
    most = 0.0
    for value in np.linspace(1 / 4, 1, 16):
        offers = np.append(bids, 2 * value / 3 + 1 / 12)[:, None]
        surplus = np.where(offers >= asks, value - (offers + asks) / 2, 0.0).mean(axis=1)
        most = max(most, float(surplus.max() - surplus[-1]))
    return most * 6


# Discounting -----------------------------------------------------------------------------------


def _discounting_rows() -> Iterator[Row]:
    for delta, reference in ((0.9, 0.5263), (0.95, 0.5128), (0.99, 0.5025)):
        name = f"alternating offers/no horizon, delta={delta:g}/first mover's share"
        limit = equilibria.rubinstein_share(own_delta=delta, other_delta=delta)
        yield Row(name=f"{name}/formula", reference=reference, measured=limit, tolerance=0.0001)
        long = equilibria.stahl_share(own_delta=delta, other_delta=delta, offers=2_001)
        yield Row(name=f"{name}/of 2001 offers", reference=reference, measured=long, tolerance=0.0001)
    for turns, reference in ((2, 0.1), (8, 0.2998), (20, 0.4623)):
        name = f"alternating offers/{turns} offers, delta=0.9/first mover's share"
        share = equilibria.stahl_share(own_delta=0.9, other_delta=0.9, offers=turns)
        yield Row(name=f"{name}/formula", reference=reference, measured=share, tolerance=0.0001)
        yield Row(
            name=f"{name}/backward induction",
            reference=reference,
            measured=_backward_induction(delta=0.9, offers=turns),
            tolerance=0.002,
        )


def _backward_induction(*, delta: float, offers: int, grid: int = 5_000) -> float:
    """What the first of `offers` proposers keeps of 1, solved on a grid of proposals with nothing assumed.

    From the last offer back: whoever answers takes a proposal that leaves it at least what it would
    get by proposing next, discounted, and the proposer picks the best proposal that is taken.
    """
    kept = np.linspace(0, 1, grid + 1)
    continuation = 0.0
    for _ in range(offers):
        taken = 1 - kept >= delta * continuation - 1e-12
        continuation = float(kept[taken].max())
    return continuation
