"""Plots of a run while it learns and of several runs side by side, with the table of what they show.

A function takes the run's metrics (`training.runs.metrics`) and gives charts; a plot whose figures were not
logged is left out, and `missing` names them. Not here: pages, reading files, the rule of phases
(`training.phases`).
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as _lazy

from negotiation_site import dashboards
from negotiation_site.dashboards import Chart
from training import phases as rule

Lines = Sequence[Mapping[str, Any]]

MOST_ROWS = 200
"""Rows of a plot's table; of a longer run every so manieth rollout is shown."""
PHASES = {
    rule.Name.TAUGHT: _lazy("as taught"),
    rule.Name.PRESSING: _lazy("pressing"),
    rule.Name.DEADLOCK: _lazy("deadlock"),
    rule.Name.CLOSING: _lazy("closing"),
}
VIOLATIONS = {
    "format": _lazy("cannot be read"),
    "reservation": _lazy("below cost"),
    "sold_out": _lazy("sold out"),
    "buyer": _lazy("no such buyer"),
    "accept": _lazy("no such offer"),
    "budget": _lazy("after the last turn"),
    "order": _lazy("out of order"),
}


@dataclass(frozen=True)
class Curve:
    """One figure of the metrics' lines."""

    key: str
    label: Any
    kind: str = "number"
    """`share` (shown in percent), `number` or `count`."""


@dataclass(frozen=True)
class Plot:
    """A question and the figures that answer it."""

    element: str
    title: Any
    axis: Any
    curves: tuple[Curve, ...]
    note: Any = ""

    @property
    def shares(self) -> bool:
        """Whether its figures are shares."""
        return all(curve.kind == "share" for curve in self.curves)


PLOTS = (
    Plot(
        "live-reward",
        _lazy("Does the reward of its own games rise?"),
        _lazy("mean reward, -1 to 1"),
        (Curve("reward", _lazy("mean reward")),),
        _lazy(
            "Higher is better. A point is the mean of the games of one rollout, against the opponents of that moment."
        ),
    ),
    Plot(
        "live-deals",
        _lazy("Does it close, and what does it keep?"),
        _lazy("share"),
        (
            Curve("deal_rate", _lazy("games with a deal"), "share"),
            Curve("surplus_share", _lazy("share of the surplus, deals only"), "share"),
            Curve("unconditional_share", _lazy("share over all games"), "share"),
        ),
        _lazy(
            "Higher is better for all three; many deals at a small share are giving in. A point is one rollout's games."
        ),
    ),
    Plot(
        "live-opening",
        _lazy("How high does it open?"),
        _lazy("first offer, times the list price"),
        (
            Curve("opening_of_list", _lazy("first offer / list price")),
            Curve("opening", _lazy("first offer / own limit")),
        ),
        _lazy(
            "Higher is bolder: 1 asks the list price, or the own limit. A point is the mean over one rollout's games."
        ),
    ),
    Plot(
        "live-exploring",
        _lazy("Does it try several buyers, or stay with the highest bid?"),
        _lazy("share"),
        (
            Curve("coverage", _lazy("buyers written to before the deal"), "share"),
            Curve("fixation", _lazy("turns to the highest bidder"), "share"),
            Curve("top_buyer_rate", _lazy("deals with the buyer of highest value"), "share"),
        ),
        _lazy(
            "Higher coverage looks at more buyers before selling, higher fixation chases the highest bid. A point is one rollout's games."
        ),
    ),
    Plot(
        "live-adherence",
        _lazy("Does it keep the rules?"),
        _lazy("share of its messages"),
        (Curve("adherence", _lazy("without a violation"), "share"),),
        _lazy("Higher is better: 100 % broke no rule. A point is all messages of one rollout."),
    ),
    Plot(
        "live-spread",
        _lazy("Is there something to learn from?"),
        _lazy("share of the groups"),
        (Curve("zero_spread_groups", _lazy("groups in which all games were paid alike"), "share"),),
        _lazy(
            "Lower is better: a group whose games were all paid alike teaches nothing. A point is one rollout's groups."
        ),
    ),
    Plot(
        "live-entropy",
        _lazy("How undecided is it?"),
        _lazy("nats a token"),
        (Curve("entropy", _lazy("entropy")),),
        _lazy("Higher is less decided; 0 always writes the same. A point is the mean over one rollout's tokens."),
    ),
    Plot(
        "live-divergence",
        _lazy("How far has it moved?"),
        _lazy("nats a token"),
        (
            Curve("kl/imitator", _lazy("divergence from the imitator it started from")),
            Curve("kl/update", _lazy("divergence within one rollout's updates")),
        ),
        _lazy("Divergences estimated from the tokens it played; the first now and then, the second at every rollout."),
    ),
    Plot(
        "live-ratio",
        _lazy("Do updates stay close to what was played?"),
        _lazy("probability now / when played"),
        (
            Curve("importance_ratio/mean", _lazy("mean importance ratio")),
            Curve("importance_ratio/max", _lazy("largest importance ratio")),
        ),
        _lazy("Near 1 means that what is learned from is what would still be played. A point is one rollout's tokens."),
    ),
    Plot(
        "live-speed",
        _lazy("How fast does it play?"),
        _lazy("learner's tokens a second"),
        (Curve("tokens_per_second", _lazy("tokens a second"), "count"),),
        _lazy("Higher is faster. A point is one rollout on this machine."),
    ),
)
LOOKS = Plot(
    "live-looks",
    _lazy("Does it play what it reads?"),
    _lazy("share"),
    (
        Curve("valid_rate", _lazy("answers that can be used"), "share"),
        Curve("deal_rate", _lazy("games with a deal"), "share"),
        Curve("share", _lazy("share of the joint surplus"), "share"),
    ),
    _lazy("A few games of its own, now and then while it imitates, on products that it is taught on."),
)
"""Of a language model while it imitates."""
TIMES = (
    ("generation", _lazy("the model writing")),
    ("environment", _lazy("the game and its buyers")),
    ("learning", _lazy("learning")),
    ("looking", _lazy("looking at games kept apart")),
)


def live(lines: Lines, found: Sequence[rule.Phase] = ()) -> tuple[Chart, ...]:
    """Every plot that the metrics have figures for."""
    steps = [line for line in lines if line["kind"] == "train"]
    imitated = [line for line in lines if line["kind"] == "imitate"]
    charts = [_imitation(imitated)] if imitated else []
    looks = [line for line in lines if line["kind"] == "look"]
    if looks and (chart := drawn(LOOKS, looks, by="step", axis=_("steps of imitation"))):
        charts.append(chart)
    for plot in PLOTS:
        curves = [(str(curve.label), _series(steps, curve.key), curve.kind) for curve in plot.curves]
        if plot.element == "live-adherence":
            curves += _violations(steps)
        marks = found if plot.element in ("live-reward", "live-deals", "live-opening") else ()
        if chart := _drawn(plot, curves, marks):
            charts.append(chart)
    if times := _times(steps):
        charts.append(times)
    return tuple(charts)


def drawn(plot: Plot, lines: Lines, *, by: str = "rollout", axis: str = "") -> Chart | None:
    """One plot of a run's lines; None where none of its figures were logged."""
    curves = [(str(curve.label), _series(lines, curve.key, by=by), curve.kind) for curve in plot.curves]
    return _drawn(plot, curves, (), axis=axis, column=_("step") if by == "step" else "")


def _series(lines: Lines, key: str, *, by: str = "rollout") -> list[tuple[int, float]]:
    return [(line[by], line[key]) for line in lines if line.get(key) is not None]


def _violations(steps: Lines) -> list[tuple[str, list[tuple[int, float]], str]]:
    """Violations by type, those that ever happened."""
    known = [line for line in steps if "violations" in line]
    kinds = {kind for line in known for kind in line["violations"]}
    return [
        (str(label), [(line["rollout"], line["violations"].get(kind, 0.0)) for line in known], "share")
        for kind, label in VIOLATIONS.items()
        if kind in kinds
    ]


def _drawn(
    plot: Plot,
    curves: Sequence[tuple[str, list[tuple[int, float]], str]],
    marks: Sequence[rule.Phase],
    *,
    axis: str = "",
    column: str = "",
) -> Chart | None:
    shown = [(label, points, kind) for label, points, kind in curves if points]
    # A curve keeps its colour where one before it was not logged.
    series = [k for k, (_label, points, _kind) in enumerate(curves) if points]
    if not shown:
        return None
    rollouts = sorted({x for _label, points, _kind in shown for x, _y in points})
    tables = [dict(points) for _label, points, _kind in shown]
    scale = dashboards.share_axis if plot.shares else dashboards.axis
    return dashboards.plot(
        plot.element,
        title=str(plot.title),
        caption=str(plot.title),
        note=str(plot.note),
        traces=[
            _line(label, points, k, len(points) > 60) for k, (label, points, _kind) in zip(series, shown, strict=True)
        ],
        columns=(column or _("rollout"), *(label for label, _points, _kind in shown)),
        rows=[
            (str(x), *(worded(table.get(x), kind) for table, (_l, _p, kind) in zip(tables, shown, strict=True)))
            for x in _thinned(rollouts)
        ],
        x=dashboards.axis(axis or _("rollouts of training"), rangemode="tozero"),
        y=scale(str(plot.axis), rangemode="tozero" if plot.shares else "normal"),
        **_marked(marks),
    )


def _line(label: str, points: Sequence[tuple[int, float]], series: int, many: bool) -> dict[str, Any]:
    trace = dashboards.line(x=[x for x, _y in points], y=[y for _x, y in points], name=label, series=series)
    return trace | {"mode": "lines" if many else "lines+markers"}


def _marked(marks: Sequence[rule.Phase]) -> dict[str, Any]:
    """A line where each phase begins, with its name."""
    if not marks:
        return {}
    colour = dashboards.REFERENCE
    return {
        "shapes": [
            {
                "type": "line",
                "x0": phase.first,
                "x1": phase.first,
                "yref": "paper",
                "y0": 0,
                "y1": 1,
                "line": {"color": colour, "width": 1, "dash": "dot"},
            }
            for phase in marks[1:]
        ],
        "annotations": [
            {
                "x": phase.first,
                "y": 1,
                "yref": "paper",
                "xanchor": "left",
                "yanchor": "top",
                "text": str(PHASES[phase.name]),
                "showarrow": False,
                "font": {"size": 12, "color": colour},
            }
            for phase in marks
        ],
    }


def _thinned(rollouts: Sequence[int]) -> list[int]:
    every = -(-len(rollouts) // MOST_ROWS)
    return [x for k, x in enumerate(rollouts) if every <= 1 or k % every == 0 or k == len(rollouts) - 1]


def _imitation(lines: Lines) -> Chart:
    points = [(line["step"], line["loss"]) for line in lines]
    return dashboards.plot(
        "live-imitation",
        title=_("Does it learn to write like those it imitates?"),
        caption=_("Loss of imitation, in nats a token"),
        traces=[_line(_("loss"), points, 0, False)],
        columns=(_("step"), _("loss")),
        rows=[(str(step), f"{loss:.3f}") for step, loss in points],
        x=dashboards.axis(_("steps of imitation"), rangemode="tozero"),
        y=dashboards.axis(_("nats a token"), rangemode="tozero"),
    )


def _times(steps: Lines) -> Chart | None:
    known = [line for line in steps if line.get("seconds")]
    parts = [(key, str(label)) for key, label in TIMES if any(line["seconds"].get(key) for line in known)]
    if not parts:
        return None
    x = [line["rollout"] for line in known]
    colours = (dashboards.BUYER, dashboards.SELLER, dashboards.GAIN, dashboards.REFERENCE)
    return dashboards.plot(
        "live-time",
        title=_("Where does the time go?"),
        caption=_("Seconds of each rollout by what they were spent on"),
        traces=[
            dashboards.bars(
                x=x, y=[line["seconds"].get(key, 0.0) for line in known], name=label, colour=colours[k % len(colours)]
            )
            for k, (key, label) in enumerate(parts)
        ],
        columns=(_("rollout"), *(label for _key, label in parts)),
        rows=[
            (str(line["rollout"]), *(f"{line['seconds'].get(key, 0.0):.2f}" for key, _label in parts))
            for line in known
            if line["rollout"] in set(_thinned(x))
        ],
        x=dashboards.axis(_("rollouts of training")),
        y=dashboards.axis(_("seconds")),
        barmode="stack",
    )


# --- Figures as a table -------------------------------------------------------------------------------


@dataclass(frozen=True)
class NowRow:
    """One figure of a run at three moments."""

    label: str
    first: str
    before: str
    now: str


AGO = 10


def now(lines: Lines) -> tuple[NowRow, ...]:
    """Every figure that was logged: at the first rollout, ten before the last, and at the last; of a language model
    that only imitates yet, at its first look, the one before the last, and the last."""
    steps = [line for line in lines if line["kind"] == "train"]
    if not steps:
        return _looked(lines)
    rows = []
    for plot in PLOTS:
        for curve in plot.curves:
            points = _series(steps, curve.key)
            if not points:
                continue
            last = points[-1][0]
            earlier = [y for x, y in points if x <= last - AGO]
            rows.append(
                NowRow(
                    str(curve.label),
                    worded(points[0][1], curve.kind),
                    worded(earlier[-1] if earlier else None, curve.kind),
                    worded(points[-1][1], curve.kind),
                )
            )
    return tuple(rows)


LOOKED = (
    *LOOKS.curves,
    Curve("opening_of_list", _lazy("first offer / list price")),
    Curve("opening", _lazy("first offer / own limit")),
    Curve("adherence", _lazy("without a violation"), "share"),
    Curve("tokens_per_second", _lazy("tokens a second"), "count"),
)


def _looked(lines: Lines) -> tuple[NowRow, ...]:
    looks = [line for line in lines if line["kind"] == "look"]
    rows = []
    for curve in LOOKED:
        points = _series(looks, curve.key, by="step")
        if points:
            before = points[-2][1] if len(points) > 1 else None
            first, last = points[0][1], points[-1][1]
            rows.append(NowRow(str(curve.label), *(worded(value, curve.kind) for value in (first, before, last))))
    return tuple(rows)


def missing(lines: Lines) -> tuple[str, ...]:
    """Figures that a run never logged, once it has rollouts at all."""
    steps = [line for line in lines if line["kind"] == "train"]
    if not steps:
        return ()
    return tuple(
        str(curve.label) for plot in PLOTS for curve in plot.curves if not any(curve.key in line for line in steps)
    )


def worded(value: float | None, kind: str) -> str:
    """A figure for people; nothing for one that is undefined."""
    if value is None:
        return ""
    if kind == "share":
        return f"{100 * value:.1f} %"
    return f"{value:,.0f}" if kind == "count" else f"{value:.3f}"


# --- Runs side by side --------------------------------------------------------------------------------


def side_by_side(runs: Sequence[tuple[str, Lines]]) -> tuple[Chart, ...]:
    """The same figure of several runs in one plot, for the figures that more than one plot needs."""
    charts = []
    kept = [
        (
            "compare-kept",
            _("What do they keep on games kept apart?"),
            _("seller's profit / first best"),
            "watch",
            "greedy",
            "share",
        ),
        ("compare-reward", _("Whose reward rises?"), _("mean reward, -1 to 1"), "train", "reward", "number"),
        ("compare-deals", _("Who closes?"), _("games with a deal"), "train", "deal_rate", "share"),
        ("compare-share", _("Who keeps more of a deal?"), _("share of the surplus"), "train", "surplus_share", "share"),
        (
            "compare-opening",
            _("Who opens higher?"),
            _("first offer / list price"),
            "train",
            "opening_of_list",
            "number",
        ),
        ("compare-entropy", _("Who is more undecided?"), _("nats a token"), "train", "entropy", "number"),
    ]
    for element, title, axis, kind, key, shown_as in kept:
        by = "step" if kind in ("imitate", "look") else "rollout"
        curves = [
            (name, _series([line for line in lines if line["kind"] == kind], key, by=by), shown_as)
            for name, lines in runs
        ]
        without = [name for name, points, _kind in curves if not points]
        note = _("A point is one rollout's games, or tokens; the same question of each run.")
        if by == "step":
            note = _("A point is one step of imitation, or a look at games after one; the same question of each run.")
        if without:
            note += " " + _("Not logged by %(names)s.") % {"names": ", ".join(without)}
        plot = Plot(element, title, axis, (Curve(key, "", shown_as),), note)
        steps = {"axis": _("steps of imitation"), "column": _("step")} if by == "step" else {}
        if chart := _drawn(plot, curves, (), **steps):
            chart.figure["layout"]["showlegend"] = True  # One run alone is named, too.
            charts.append(chart)
    return tuple(charts)
