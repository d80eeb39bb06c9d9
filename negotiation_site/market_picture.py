"""What a market page draws: supply and demand, and what there is to gain in a game.

Both are pooled over games drawn from what is public of the market: values from its prior, and costs
from the public prior of costs, never looked up. So nothing here depends on a room, and nobody
learns more from it than the rules tell everybody.
"""

from collections.abc import Sequence
from functools import lru_cache

import msgspec
from django.utils.translation import get_language
from django.utils.translation import gettext as _

from markets import services, supply_demand
from markets.engine import metrics
from markets.engine.scenarios import Recipe, Scenario, decode_recipe
from markets.models import Market
from negotiation_site import dashboards, market_charts
from negotiation_site.dashboards import Chart

BINS = 10


def charts(market: Market) -> tuple[Chart, ...]:
    """The pictures of one version of a market, which never changes."""
    return _charts(market.pk, get_language() or "")


def forget() -> None:
    """Draw anew. For tests, whose markets come and go."""
    _charts.cache_clear()


@lru_cache(maxsize=256)
def _charts(number: int, _language: str) -> tuple[Chart, ...]:
    market = Market.objects.select_related("catalogue").get(pk=number)
    recipe = in_public(decode_recipe(market.recipe))
    scenarios = supply_demand.draw(recipe, services.market_pool(market))
    picture = supply_demand.picture(scenarios)
    return market_charts.supply_and_demand(picture, recipe, element="market-supply-demand"), gains(scenarios, recipe)


def in_public(recipe: Recipe) -> Recipe:
    """The recipe as everybody knows it: values and costs come from their public priors, and nobody is told what is
    drawn again."""
    return msgspec.structs.replace(
        recipe, value_spec=recipe.public_values, cost_spec=recipe.cost_prior, gains=msgspec.UNSET
    )


def gains(scenarios: Sequence[Scenario], recipe: Recipe) -> Chart:
    """How the most that can be gained in a game is spread over games."""
    gained = sorted(_gain(scenario, recipe) for scenario in scenarios)
    with_gains = [gain for gain in gained if gain > 0]
    top = with_gains[int(0.98 * (len(with_gains) - 1))] if with_gains else 1.0
    width = top / BINS
    labels, counts = [_("nothing")], [len(gained) - len(with_gains)]
    for place in range(BINS):
        low, high = place * width, (place + 1) * width
        last = place == BINS - 1
        labels.append(_label(low, high, recipe, last=last))
        counts.append(sum(low < gain and (last or gain <= high) for gain in gained))
    return dashboards.plot(
        "market-gains",
        title=_finding(gained, recipe),
        caption=_("Games by the most that all parties together can gain"),
        note=_("Over %(draws)d games drawn from what is public of this market.") % {"draws": len(gained)},
        traces=[
            dashboards.bars(x=labels, y=[number / len(gained) for number in counts], name="", colour=dashboards.GAIN)
        ],
        columns=(_unit(recipe), _("games, of %(draws)d") % {"draws": len(gained)}),
        rows=[(label, str(number)) for label, number in zip(labels, counts, strict=True)],
        x=dashboards.axis(_unit(recipe), type="category"),
        y=dashboards.share_axis(_("part of the games")),
        bargap=0.12,
        height=340,
    )


def _gain(scenario: Scenario, recipe: Recipe) -> float:
    """First best in money, or out of the list prices of all that is for sale."""
    best_cents, _pairs = metrics.best_assignment(scenario)
    if recipe.unit_is_money:
        return best_cents / 100
    listed = sum(product.list_price_cents * min(product.stock, scenario.buyers) for product in scenario.products)
    return best_cents / listed


def _unit(recipe: Recipe) -> str:
    if recipe.unit_is_money:
        return _("to gain, %(currency)s") % {"currency": recipe.currency}
    return _("to gain, percent of the list price")


def _label(low: float, high: float, recipe: Recipe, *, last: bool) -> str:
    scale = 1 if recipe.unit_is_money else 100
    digits = 0 if (high - low) * scale >= 2 else 1
    if last:
        return _("over %(low)s") % {"low": f"{low * scale:.{digits}f}"}
    return _("to %(high)s") % {"high": f"{high * scale:.{digits}f}"}


def _finding(gained: Sequence[float], recipe: Recipe) -> str:
    """How often there is something, and how much in the middle game of those."""
    with_gains = [gain for gain in gained if gain > 0]
    if not with_gains:
        return _("In none of the games drawn could trade gain.")
    middle = with_gains[len(with_gains) // 2]
    often = {"count": len(with_gains), "draws": len(gained)}
    if recipe.unit_is_money:
        return _("Trade can gain in %(count)d of %(draws)d games drawn, mostly around %(middle)s %(currency)s.") % {
            **often,
            "middle": f"{middle:,.0f}" if middle >= 10 else f"{middle:.2f}",
            "currency": recipe.currency,
        }
    return _("Trade can gain in %(count)d of %(draws)d games drawn, mostly around %(middle)d %% of the list price.") % {
        **often,
        "middle": round(middle * 100),
    }
