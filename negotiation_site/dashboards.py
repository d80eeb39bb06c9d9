"""Figures of dashboards: Plotly built in Python, drawn by the bundle of the installed wheel.

A function takes plain numbers and gives a figure's JSON for the page's `json_script`, with the table
that stands beside it. Titles say the question or the finding; every share says what it is out of.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

from django.utils.translation import gettext as _

GREEDY, SAMPLED, REFERENCE = "#0b5d73", "#9a4600", "#6b6459"
"""Line colours that stay apart for colour-blind readers, in print and on dark paper."""
BUYER, SELLER, YOU, GAIN, ALARM, PAPER = "#0b5d73", "#9a4600", "#7b2a6b", "#4d6b1f", "#a11b1b", "#fffefb"
"""The page's own colours, which `chart.js` puts in their place."""
SERIES = (
    (BUYER, "circle", "solid"),
    (SELLER, "square", "dash"),
    (YOU, "diamond", "dot"),
    (GAIN, "triangle-up", "dashdot"),
    (ALARM, "x", "longdash"),
    (REFERENCE, "cross", "solid"),
)
"""Colour, mark and dash of the lines of one plot: told apart without colour too."""


@dataclass(frozen=True)
class Chart:
    """A figure and its table."""

    element: str
    figure: dict[str, Any]
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    caption: str
    note: str = ""
    """What is compared, and out of how much."""

    @property
    def axes_text(self) -> str:
        """What lies across and what upwards, with the unit; empty where the marks say it themselves."""
        layout = self.figure.get("layout", {})
        across, upwards = (_axis_words(layout.get(name, {})) for name in ("xaxis", "yaxis"))
        if across and upwards:
            return _("Across: %(across)s. Upwards: %(upwards)s.") % {"across": across, "upwards": upwards}
        if across:
            return _("Across: %(across)s.") % {"across": across}
        return _("Upwards: %(upwards)s.") % {"upwards": upwards} if upwards else ""

    @property
    def data_id(self) -> str:
        """Id of the element that holds the figure."""
        return f"{self.element}-data"


def _axis_words(axis: dict[str, Any]) -> str:
    """The title of an axis, and that it is in percent."""
    title = axis.get("title") or {}
    words = title.get("text", "") if isinstance(title, dict) else str(title)
    percent = "%" in str(axis.get("tickformat", "")) and "percent" not in words and "%" not in words
    return _("%(words)s, in percent") % {"words": words} if words and percent else str(words)


def learning_curve(watched: Sequence[dict[str, Any]], references: dict[str, float]) -> Chart:
    """Share of the first best on games kept apart, by rollout, beside what is known to be reachable."""
    import plotly.graph_objects as go

    rollouts = [line["rollout"] for line in watched]
    figure = go.Figure()
    for key, name, colour in (
        ("greedy", _("always the likeliest move"), GREEDY),
        ("sampled", _("moves drawn"), SAMPLED),
    ):
        figure.add_scatter(
            x=rollouts,
            y=[line[key] for line in watched],
            mode="lines+markers",
            name=name,
            line={"color": colour, "width": 2},
        )
    for name, share in references.items():
        figure.add_hline(
            y=share,
            line={"color": REFERENCE, "width": 1, "dash": "dot"},
            annotation={"text": name, "font": {"size": 12, "color": REFERENCE}},
            annotation_position="top left",
        )
    figure.update_layout(
        template=None,
        title=_("How much of the first best does the seller keep as it learns?"),
        xaxis={"title": {"text": _("rollouts of training")}, "rangemode": "tozero"},
        yaxis={"title": {"text": _("seller's profit / first best")}, "range": [0, 1], "tickformat": ".0%"},
        legend={"orientation": "h", "y": -0.25},
        margin={"l": 70, "r": 20, "t": 60, "b": 60},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
    )
    return Chart(
        element="chart-learning",
        figure=json.loads(figure.to_json()),
        columns=(_("rollout"), _("likeliest"), _("drawn")),
        rows=tuple((str(line["rollout"]), f"{line['greedy']:.3f}", f"{line['sampled']:.3f}") for line in watched),
        caption=_("Shares of the first best on games kept apart from training"),
        note=_(
            "Higher is better: more of what could be gained at most. Measured on games kept apart from training, the same "
            "at every point; dotted lines are what fixed rules reach on them."
        ),
    )


def reward_curve(steps: Sequence[dict[str, Any]]) -> Chart:
    """Mean reward of the learner's own games, by rollout."""
    import plotly.graph_objects as go

    figure = go.Figure()
    figure.add_scatter(
        x=[line["rollout"] for line in steps],
        y=[line["reward"] for line in steps],
        mode="lines",
        name=_("mean reward"),
        line={"color": GREEDY, "width": 2},
    )
    figure.update_layout(
        template=None,
        title=_("Does the reward of its own games rise?"),
        xaxis={"title": {"text": _("rollouts of training")}, "rangemode": "tozero"},
        yaxis={"title": {"text": _("mean reward, -1 to 1")}},
        showlegend=False,
        margin={"l": 70, "r": 20, "t": 60, "b": 60},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
    )
    return Chart(
        element="chart-reward",
        figure=json.loads(figure.to_json()),
        columns=(_("rollout"), _("mean reward")),
        rows=tuple((str(line["rollout"]), f"{line['reward']:.3f}") for line in steps),
        caption=_("Mean reward of the games of each rollout"),
        note=_(
            "Higher is better, within what the opponents of the moment allow. Each point is the mean of a rollout's own games."
        ),
    )


# --- Plots of figures with intervals ------------------------------------------------------------------

Interval: TypeAlias = tuple[float | None, float | None, float | None]
"""Value, low, high; the ends are None where there is no interval."""


def plot(
    element: str,
    *,
    title: str,
    caption: str,
    traces: Sequence[dict[str, Any]],
    columns: Sequence[str],
    rows: Sequence[Sequence[str]],
    x: dict[str, Any],
    y: dict[str, Any],
    note: str = "",
    **layout: Any,
) -> Chart:
    """A figure with its table. `traces` and the axes are Plotly's own words, `title` is the question."""
    figure = {
        "data": list(traces),
        "layout": {
            "title": {"text": title},
            "xaxis": {"automargin": True, "zeroline": False} | x,
            "yaxis": {"automargin": True, "zeroline": False} | y,
            "legend": {"orientation": "h", "x": 0, "y": 1.02, "yanchor": "bottom"},
            "margin": {"l": 60, "r": 16, "t": 24, "b": 48},
            "paper_bgcolor": "rgba(0,0,0,0)",
            "plot_bgcolor": "rgba(0,0,0,0)",
            "hovermode": "closest",
            "showlegend": len(traces) > 1,
        }
        | layout,
    }
    return Chart(
        element=element,
        figure=figure,
        columns=tuple(columns),
        rows=tuple(tuple(row) for row in rows),
        caption=caption,
        note=note,
    )


def axis(text: str, **more: Any) -> dict[str, Any]:
    """An axis with its name and unit."""
    return {"title": {"text": text}} | more


def share_axis(text: str, **more: Any) -> dict[str, Any]:
    """An axis of fractions, shown in percent."""
    return axis(text, tickformat=".0%", **more)


def points(
    *,
    x: Sequence[Any],
    y: Sequence[Any],
    name: str,
    colour: str,
    symbol: str = "circle",
    x_intervals: Sequence[Interval] = (),
    y_intervals: Sequence[Interval] = (),
    text: Sequence[str] = (),
    **more: Any,
) -> dict[str, Any]:
    """Marks with bars of their intervals."""
    trace: dict[str, Any] = {
        "type": "scatter",
        "mode": "markers",
        "x": list(x),
        "y": list(y),
        "name": name,
        "marker": {"color": colour, "size": 9, "symbol": symbol},
    } | more
    if x_intervals:
        trace["error_x"] = _bars(x_intervals, colour)
    if y_intervals:
        trace["error_y"] = _bars(y_intervals, colour)
    if text:
        trace["text"] = list(text)
    return trace


def line(
    *, x: Sequence[Any], y: Sequence[Any], name: str, series: int, intervals: Sequence[Interval] = (), **more: Any
) -> dict[str, Any]:
    """A line of one series among several."""
    colour, symbol, dash = SERIES[series % len(SERIES)]
    trace = points(x=x, y=y, name=name, colour=colour, symbol=symbol, y_intervals=intervals)
    return trace | {"mode": "lines+markers", "line": {"color": colour, "width": 2, "dash": dash}} | more


def bars(*, x: Sequence[Any], y: Sequence[Any], name: str, colour: str, **more: Any) -> dict[str, Any]:
    """Columns."""
    return {"type": "bar", "x": list(x), "y": list(y), "name": name, "marker": {"color": colour}} | more


def heat(
    *, x: Sequence[str], y: Sequence[str], z: Sequence[Sequence[float | None]], text: Sequence[Sequence[str]]
) -> dict[str, Any]:
    """Shares from 0 to 1 as shaded cells with their numbers."""
    return {
        "type": "heatmap",
        "x": list(x),
        "y": list(y),
        "z": [list(row) for row in z],
        "zmin": 0,
        "zmax": 1,
        "text": [list(row) for row in text],
        "texttemplate": "%{text}",
        "hoverongaps": False,
        "xgap": 2,
        "ygap": 2,
        "colorscale": [[0, PAPER], [1, SELLER]],
        "showscale": False,
    }


def _bars(intervals: Sequence[Interval], colour: str) -> dict[str, Any]:
    return {
        "type": "data",
        "symmetric": False,
        "array": [0 if high is None or value is None else high - value for value, _low, high in intervals],
        "arrayminus": [0 if low is None or value is None else value - low for value, low, _high in intervals],
        "color": colour,
        "thickness": 1.5,
        "width": 4,
    }
