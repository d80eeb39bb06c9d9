"""Supply and demand of a market, pooled over draws: what its recipe makes of values and costs.

Pure numbers from scenarios, no database and no drawing. Prices are in the market's own unit: the
share of a product's list price, or one unit of money where the recipe says so. A buyer wants one
unit and counts with the product that is worth most to it relative to its scale; a seller offers
every unit of stock at its cost (Marshall's schedules, as induced values make them; Smith 1962).
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from markets.engine import metrics
from markets.engine.money import Cents
from markets.engine.scenarios import ProductFacts, Recipe, Scenario, sample

MOST_POINTS = 240
"""Points of a curve that is drawn; more would not be seen."""
DRAWS = 200
"""Games that a picture pools: enough for a share to lie within some seven points."""


@dataclass(frozen=True)
class Step:
    """A point of a schedule."""

    units: float
    """Units a game, on average."""
    price: float


@dataclass(frozen=True)
class Picture:
    """Both schedules and where they meet."""

    draws: int
    demand: tuple[Step, ...]
    """Units that buyers would take at a price, dearest first."""
    supply: tuple[Step, ...]
    """Units that sellers would part with at a price, cheapest first."""
    meeting: Step | None
    """Where as many units are for sale as are wanted; None where no price would sell anything."""
    gain_rate: float
    """Share of the games in which some trade gains."""
    first_best_cents: float
    """Mean of the most that all parties together can gain in a game."""
    traded: float
    """Mean number of units that the best assignment sells in a game."""


def draw(recipe: Recipe, pool: Sequence[ProductFacts], *, draws: int = DRAWS) -> tuple[Scenario, ...]:
    """The scenarios of the seeds 1, 2, 3…: examples, never those of a live room, whose seeds nobody chooses."""
    return tuple(sample(recipe, pool, seed) for seed in range(1, draws + 1))


def picture(scenarios: Sequence[Scenario]) -> Picture:
    """Pool the draws of one market. There must be one at least."""
    values: list[float] = []
    costs: list[float] = []
    best_cents: list[Cents] = []
    traded = 0
    for scenario in scenarios:
        scales = scenario.prior.scales_cents
        for own in scenario.buyer_values_cents:
            values.append(max(value / scale for value, scale in zip(own, scales, strict=True)))
        for product, cost, scale in zip(scenario.products, scenario.seller_values_cents, scales, strict=True):
            costs.extend([cost / scale] * min(product.stock, scenario.buyers))
        gain, pairs = metrics.best_assignment(scenario)
        best_cents.append(gain)
        traded += sum(
            scenario.buyer_values_cents[buyer][product] > scenario.seller_values_cents[product]
            for buyer, product in pairs
        )
    draws = len(scenarios)
    values.sort(reverse=True)
    costs.sort()
    return Picture(
        draws=draws,
        demand=_schedule(values, draws),
        supply=_schedule(costs, draws),
        meeting=_meeting(values, costs, draws),
        gain_rate=sum(gain > 0 for gain in best_cents) / draws,
        first_best_cents=sum(best_cents) / draws,
        traded=traded / draws,
    )


def units_at(prices: Iterable[float], steps: Sequence[Step], *, wanted: bool) -> tuple[float, ...]:
    """Units a game that are wanted (or for sale) at each price, read off a schedule."""
    return tuple(
        max((step.units for step in steps if (step.price >= price if wanted else step.price <= price)), default=0.0)
        for price in prices
    )


def _schedule(ranked: Sequence[float], draws: int) -> tuple[Step, ...]:
    """Unit number against price, thinned to what can be drawn; first and last are kept."""
    last = len(ranked) - 1
    places = list(range(len(ranked)))
    if len(ranked) > MOST_POINTS:
        places = [round(step * last / (MOST_POINTS - 1)) for step in range(MOST_POINTS)]
    return tuple(Step(units=(place + 1) / draws, price=ranked[place]) for place in places)


def _meeting(values: Sequence[float], costs: Sequence[float], draws: int) -> Step | None:
    """The last unit whose value covers its cost, at the middle of the prices that clear the market."""
    sold = 0
    for value, cost in zip(values, costs, strict=False):
        if value < cost:
            break
        sold += 1
    if not sold:
        return None
    low = max([costs[sold - 1], *values[sold : sold + 1]])
    high = min([values[sold - 1], *costs[sold : sold + 1]])
    return Step(units=sold / draws, price=(low + high) / 2)
