"""A market's own figure: supply and demand pooled over draws of its recipe, with its table.

The numbers are `markets.supply_demand`'s; here they get axes, colours and a title that says the finding.
"""

import json
from collections.abc import Callable

from django.utils.translation import gettext as _

from markets.engine.money import format_amount
from markets.engine.scenarios import Recipe
from markets.supply_demand import Picture, Step, units_at
from negotiation_site.dashboards import Chart

BUYER, SELLER, NEUTRAL = "#0b5d73", "#9a4600", "#6b6459"
"""The colours of the two sides, which chart.js turns into the page's own."""
ROWS = 9
"""Prices in the table beside the figure."""


def supply_and_demand(picture: Picture, recipe: Recipe, *, element: str = "chart-supply-demand") -> Chart:
    """Units against prices, both schedules, and the point where they meet."""
    import plotly.graph_objects as go

    price, top = price_text(recipe), _top(picture)
    figure = go.Figure()
    for steps, end, name, colour in (
        (picture.demand, 0.0, _("demand: what buyers value it at"), BUYER),
        (picture.supply, top, _("supply: what it costs the seller"), SELLER),
    ):
        # A schedule ends where there is nobody left to buy, and nothing left to sell.
        figure.add_scatter(
            x=[0.0, *(step.units for step in steps), steps[-1].units],
            y=[steps[0].price, *(step.price for step in steps), end],
            mode="lines",
            name=name,
            line={"color": colour, "width": 2.5, "shape": "hv"},
            hovertemplate="%{x:.2f}, %{y:.2f}<extra></extra>",
        )
    if picture.meeting is not None:
        figure.add_scatter(
            x=[picture.meeting.units],
            y=[picture.meeting.price],
            mode="markers",
            name=_("where they meet"),
            marker={"color": NEUTRAL, "size": 11, "symbol": "circle-open", "line": {"width": 2.5}},
            hovertemplate="%{x:.2f}, %{y:.2f}<extra></extra>",
        )
    figure.update_layout(
        template=None,
        title=finding(picture, price),
        xaxis={
            "title": {"text": _("units in a game, on average")},
            "range": [0, max(picture.demand[-1].units, picture.supply[-1].units) * 1.08],
        },
        yaxis={
            "title": {
                "text": _("price in %(currency)s") % {"currency": recipe.currency}
                if recipe.unit_is_money
                else _("price, share of the list price")
            },
            "range": [-0.03 * top, top],
            "tickformat": ",.0f" if recipe.unit_is_money and top >= 10 else "",
        },
        legend={"orientation": "h", "yref": "container", "y": 0, "yanchor": "bottom", "x": 0},
        margin={"l": 70, "r": 20, "t": 60, "b": 100},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
    )
    prices = [top * place / (ROWS + 1) for place in range(1, ROWS + 1)]
    wanted = units_at(prices, picture.demand, wanted=True)
    offered = units_at(prices, picture.supply, wanted=False)
    return Chart(
        element=element,
        figure=json.loads(figure.to_json()),
        columns=(_("at a price of"), _("units wanted"), _("units for sale")),
        rows=tuple(
            (price(at), f"{want:.2f}", f"{offer:.2f}") for at, want, offer in zip(prices, wanted, offered, strict=True)
        ),
        caption=_("Units a game that are wanted and for sale at a price, pooled over %(draws)d draws")
        % {"draws": picture.draws},
        note=_(
            "A step is a price at which somebody would still buy, or sell, pooled over %(draws)d games drawn from what is "
            "public. Left of where the lines meet every unit gains something; the wider the gap, the more there is to share."
        )
        % {"draws": picture.draws},
    )


def price_text(recipe: Recipe) -> Callable[[float], str]:
    """Writes a price in the market's unit."""
    if recipe.unit_is_money:
        return lambda number: format_amount(round(number * 100), recipe.currency)
    return lambda number: _("%(share).2f of the list price") % {"share": number}


def finding(picture: Picture, price: Callable[[float], str]) -> str:
    """What the picture says, in one sentence."""
    if picture.meeting is None:
        return _("No buyer values it at what it costs: nothing can be gained here.")
    return _("Wanted and offered meet near %(price)s, at %(units).2f units a game.") % {
        "price": price(picture.meeting.price),
        "units": picture.meeting.units,
    }


def _top(picture: Picture) -> float:
    """Upper end of the price axis: far tails of a lognormal are cut so that the rest can be seen."""

    def high(steps: tuple[Step, ...]) -> float:
        ranked = sorted(step.price for step in steps)
        return ranked[min(len(ranked) - 1, round(0.98 * len(ranked)))]

    return max(high(picture.demand), high(picture.supply), 0.01) * 1.1
