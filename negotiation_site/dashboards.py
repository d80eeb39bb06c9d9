"""Figures of dashboards: Plotly built in Python, drawn by the bundle of the installed wheel.

A function takes plain numbers and gives a figure's JSON for the page's `json_script`, with the table
that stands beside it. Titles say the question or the finding; every share says what it is out of.
"""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _

GREEDY, SAMPLED, REFERENCE = "#0b5d73", "#9a4600", "#6b6459"
"""Line colours that stay apart for colour-blind readers, in print and on dark paper."""


@dataclass(frozen=True)
class Chart:
    """A figure and its table."""

    element: str
    figure: dict[str, Any]
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    caption: str

    @property
    def data_id(self) -> str:
        """Id of the element that holds the figure."""
        return f"{self.element}-data"


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
    )
