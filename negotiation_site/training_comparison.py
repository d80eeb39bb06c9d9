"""Runs side by side: what their configurations differ in and how they learned; and what each checkpoint is worth.

Everybody may look, as at runs. Reads configurations and the files of stages; plots are in
`training_charts`. What a run does not have (a figure, a held-out axis) is named, not left out silently.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec
from csp.decorators import csp_update
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as _lazy
from django.views.decorators.http import require_GET

from agents.learned import published
from agents.registry import UnknownAgent
from markets.presentation import Choice
from negotiation_site import dashboards, training_charts
from negotiation_site.dashboards import Chart
from training import held_out, runs, services
from training.config import RunConfig
from training.models import Run

PLACES = ("a", "b", "c")
MOST = 30
"""Runs on the dashboard, newest first."""
DRAWN = 8
STAGES = {"sft": _lazy("after imitation"), "grpo": _lazy("after learning")}
JUDGED = {"base": _lazy("before it was taught"), **STAGES}
"""Checkpoints of a language model."""
JUDGED_FIGURES = ("share", "share_low", "share_high", "deal_rate")


# --- What the templates read ------------------------------------------------------------------------


@dataclass(frozen=True)
class Picker:
    """One place in a comparison."""

    name: str
    label: str
    choices: tuple[Choice, ...]


@dataclass(frozen=True)
class Difference:
    """One setting in every run that is compared."""

    key: str
    values: tuple[str, ...]

    @property
    def parts(self) -> list[str]:
        """The key where it may be broken."""
        return _breakable(self.key)

    @property
    def values_in_parts(self) -> list[list[str]]:
        """The same of its values."""
        return [_breakable(value) for value in self.values]


def _breakable(text: str) -> list[str]:
    """Parts of a technical name, which breaks after its marks and not within a word."""
    return re.split(r"(?<=[_:/*])|(?<=\.)(?=[A-Za-z])", text)


@dataclass(frozen=True)
class ComparePage:
    """Context `page` of `training/compare.html`."""

    pickers: tuple[Picker, ...]
    names: tuple[str, ...]
    unknown: tuple[str, ...]
    differences: tuple[Difference, ...]
    same: int
    """Settings that are equal."""
    results: tuple[Difference, ...]
    charts: tuple[Chart, ...]
    absent: tuple[str, ...]


@dataclass(frozen=True)
class QualityRow:
    """One checkpoint of one run, or one held-out axis of it."""

    run: str
    url_name: str
    checkpoint: str
    cells: tuple[str, ...]


@dataclass(frozen=True)
class QualityPage:
    """Context `page` of `training/quality.html`."""

    picker: Picker
    rows: tuple[QualityRow, ...]
    axes: tuple[QualityRow, ...]
    charts: tuple[Chart, ...]
    absent: tuple[str, ...]


# --- Finding runs -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Found:
    """A run of this server, or a checkpoint that came with the code."""

    name: str
    folder: Path
    config: Mapping[str, Any]

    @property
    def judged(self) -> dict[str, Any]:
        """What a language model was judged at, by checkpoint; empty for a small model."""
        return {name: found for name, found in (runs.figures(self.folder, "judge") or {}).items() if name in JUDGED}

    @property
    def evaluated(self) -> dict[str, Any]:
        """What its last stage measured. A language model is measured where it never was: on held-out products."""
        if not self.judged:
            return runs.figures(self.folder, "evaluate") or {}
        rows = {
            stage: {name: found[name] for name in JUDGED_FIGURES if found.get(name) is not None}
            | {"refused_rate": None if found["valid_rate"] is None else 1 - found["valid_rate"]}
            for stage, found in self.judged.items()
            if stage in STAGES
        }
        return {stage: {"greedy": row} for stage, row in rows.items()} | {
            "axes": [{"axis": "products", "stage": stage, **row} for stage, row in rows.items()]
        }


def _all() -> list[Found]:
    found = [
        Found(run.name, runs.folder(run.name), msgspec.to_builtins(services.config_of(run)))
        for run in Run.objects.all()[:MOST]
    ]
    known = {each.name for each in found}
    for path, card in published.cards(published.SHIPPED):
        if card.slug not in known:
            found.append(Found(card.slug, path, services.config_in(path)))
    return found


# --- Comparing --------------------------------------------------------------------------------------


@require_GET
@csp_update({"style-src": ["'unsafe-inline'"]})
def compare(request: HttpRequest) -> HttpResponse:
    """Two or three runs: settings that differ, results, and the same curves in one plot."""
    known = {each.name: each for each in _all()}
    asked = [request.GET.get(place, "") for place in PLACES]
    chosen = [known[name] for name in dict.fromkeys(asked) if name in known]
    page = ComparePage(
        pickers=tuple(_picker(place, known, name) for place, name in zip(PLACES, asked, strict=True)),
        names=tuple(each.name for each in chosen),
        unknown=tuple(name for name in asked if name and name not in known),
        differences=tuple(row for row in _settings(chosen) if len(set(row.values)) > 1) if len(chosen) > 1 else (),
        same=sum(len(set(row.values)) == 1 for row in _settings(chosen)),
        results=_results(chosen),
        charts=_curves(chosen) if len(chosen) > 1 else (),
        absent=tuple(
            _("%(name)s has no curves yet.") % {"name": each.name} for each in chosen if not runs.metrics(each.folder)
        ),
    )
    return render(request, "training/compare.html", {"page": page})


def _curves(chosen: Sequence[Found]) -> tuple[Chart, ...]:
    return training_charts.side_by_side([(each.name, runs.metrics(each.folder)) for each in chosen])


LABELS = {"a": _lazy("First run"), "b": _lazy("Second run"), "c": _lazy("Third run, if you like")}


def _picker(place: str, known: Mapping[str, Found], chosen: str) -> Picker:
    none = Choice(value="", label=_("none"), selected=not chosen)
    return Picker(
        place,
        str(LABELS[place]),
        (none, *(Choice(value=name, label=name, selected=name == chosen) for name in known)),
    )


def _settings(chosen: Sequence[Found]) -> list[Difference]:
    flat = [dict(_flat(each.config)) for each in chosen]
    keys = sorted({key for each in flat for key in each} - {"name"})
    return [Difference(key, tuple(each.get(key, "–") for each in flat)) for key in keys]


def _flat(config: Mapping[str, Any], prefix: str = "") -> list[tuple[str, str]]:
    found = []
    for key, value in config.items():
        if isinstance(value, Mapping):
            found += _flat(value, f"{prefix}{key}.")
        elif isinstance(value, list | tuple):
            found.append((f"{prefix}{key}", ", ".join(_said(each) for each in value) or "–"))
        else:
            found.append((f"{prefix}{key}", _said(value)))
    return found


def _said(value: Any) -> str:
    """A value of a configuration for people."""
    if isinstance(value, list | tuple):
        return " x ".join(map(str, value))
    return f"{value:g}" if isinstance(value, float) else str(value) or "–"


def _results(chosen: Sequence[Found]) -> tuple[Difference, ...]:
    rows = []
    for stage, label in STAGES.items():
        for way, how in (("greedy", _("likeliest move")), ("sampled", _("moves drawn"))):
            figures = [None if each.judged else each.evaluated.get(stage, {}).get(way) for each in chosen]
            if any(figures):
                title = _("Share of the first best %(stage)s, %(how)s") % {"stage": label, "how": how}
                rows.append(Difference(title, tuple(_interval(found) for found in figures)))
    for stage, label in JUDGED.items():
        judged = [each.judged.get(stage) for each in chosen]
        if any(judged):
            title = _("Share of the joint surplus %(stage)s, held-out products") % {"stage": label}
            rows.append(Difference(title, tuple(_interval(found) for found in judged)))
            valid = tuple(
                training_charts.worded(found["valid_rate"] if found else None, "share") or "–" for found in judged
            )
            rows.append(Difference(_("Answers that could be used %(stage)s") % {"stage": label}, valid))
    return tuple(rows)


def _interval(found: Mapping[str, Any] | None) -> str:
    if not found or found["share"] is None:
        return "–"
    return _("%(share)s (%(low)s to %(high)s)") % {
        "share": f"{found['share']:.3f}",
        "low": f"{found['share_low']:.3f}",
        "high": f"{found['share_high']:.3f}",
    }


# --- Quality by checkpoint and by axis ----------------------------------------------------------------


COLUMNS = (("allocation_quality", "share"), ("share", "interval"), ("deal_rate", "share"), ("refused_rate", "share"))


@require_GET
@csp_update({"style-src": ["'unsafe-inline'"]})
def quality(request: HttpRequest) -> HttpResponse:
    """Allocation quality and surplus of every measured checkpoint, and one run's on held-out axes."""
    known = _all()
    measured = [each for each in known if any(stage in each.evaluated for stage in STAGES)]
    named = {each.name: each for each in known}
    asked = named.get(request.GET.get("run", "")) or next(iter(measured), None)
    rows = tuple(row for each in measured for row in _rows(each))
    axes = _axes(asked) if asked else ()
    page = QualityPage(
        picker=Picker(
            "run",
            _("Run"),
            tuple(
                Choice(value=each.name, label=each.name, selected=asked is not None and each.name == asked.name)
                for each in known
            ),
        ),
        rows=rows,
        axes=axes,
        charts=(
            *(_by_checkpoint(measured[:DRAWN]) if measured else ()),
            *(_by_axis(asked) if asked and axes else ()),
            *(_by_rollout(asked) if asked else ()),
        ),
        absent=tuple(_absent(known, measured, asked)),
    )
    return render(request, "training/quality.html", {"page": page})


def _rows(each: Found) -> list[QualityRow]:
    return [
        QualityRow(each.name, each.name, f"{label}", _cells(each.evaluated[stage].get("greedy", {})))
        for stage, label in STAGES.items()
        if stage in each.evaluated
    ]


def _cells(found: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(
        _interval(found if found.get("share") is not None else None)
        if kind == "interval"
        else (training_charts.worded(found.get(key), kind) or "–")
        for key, kind in COLUMNS
    )


def _axes(each: Found) -> tuple[QualityRow, ...]:
    return tuple(
        QualityRow(
            each.name,
            each.name,
            _("%(axis)s, %(stage)s") % {"axis": axis_name(row), "stage": STAGES[row["stage"]]},
            _cells(row),
        )
        for row in each.evaluated.get("axes", ())
        if row.get("stage") in STAGES
    )


AXES = (
    ("buyer-type-", _lazy("buyers it never met: %(value)s")),
    ("buyer-type", _lazy("buyers it never met")),
    ("size-", _lazy("a size it never met: %(value)s")),
    ("products", _lazy("products it never saw")),
    ("price-decade", _lazy("prices of another magnitude")),
    ("buyers-", _lazy("another number of buyers: %(value)s")),
    ("bands-", _lazy("other bands of values: %(value)s")),
    ("lognormal", _lazy("another law of values")),
    ("rho-", _lazy("correlated values: %(value)s")),
    ("structure-", _lazy("another structure: %(value)s")),
)
"""Beginnings of held-out axes' names, for people; the first that fits counts."""


def axis_name(row: Mapping[str, Any]) -> str:
    """A held-out axis for people."""
    axis = str(row["axis"])
    for start, text in AXES:
        if axis.startswith(start):
            return str(text) % {"value": axis.removeprefix(start)} if "%" in str(text) else str(text)
    return axis


def _by_checkpoint(measured: Sequence[Found]) -> list[Chart]:
    charts = []
    for element, key, title in (
        ("quality-allocation", "allocation_quality", _("How much of what could be gained is gained?")),
        ("quality-share", "share", _("How much of it does the seller keep?")),
    ):
        traces, rows = [], []
        for k, (stage, label) in enumerate(STAGES.items()):
            found = [(each.name, each.evaluated.get(stage, {}).get("greedy", {})) for each in measured]
            shown = [(name, figures) for name, figures in found if figures.get(key) is not None]
            if shown:
                colour, symbol, _dash = dashboards.SERIES[k]
                traces.append(
                    dashboards.points(
                        x=[figures[key] for _name, figures in shown],
                        y=[name for name, _figures in shown],
                        name=str(label),
                        colour=colour,
                        symbol=symbol,
                        x_intervals=[_bars(figures) for _name, figures in shown] if key == "share" else (),
                    )
                )
                rows += [(name, str(label), f"{figures[key]:.3f}") for name, figures in shown]
        if traces:
            charts.append(
                dashboards.plot(
                    element,
                    title=title,
                    caption=title,
                    traces=traces,
                    columns=(_("run"), _("checkpoint"), _("share of the first best")),
                    rows=rows,
                    x=dashboards.share_axis(_("share of the first best"), rangemode="tozero", nticks=6),
                    **_lines(len(measured)),
                )
            )
    return charts


def _lines(count: int) -> dict[str, Any]:
    """A line for each name, from above, as long as it has to be: names are read from left to right."""
    return {"y": {"type": "category", "autorange": "reversed"}, "height": 110 + 30 * count}


def _bars(figures: Mapping[str, Any]) -> dashboards.Interval:
    return figures["share"], figures.get("share_low"), figures.get("share_high")


def _by_axis(each: Found) -> list[Chart]:
    rows = [
        row for row in each.evaluated.get("axes", ()) if row.get("share") is not None and row.get("stage") in STAGES
    ]
    if not rows:
        return []
    traces = []
    home = _("its own games")
    for k, (stage, label) in enumerate(STAGES.items()):
        own = each.evaluated.get(stage, {}).get("greedy")
        shown = [(home, own)] if own else []
        shown += [(axis_name(row), row) for row in rows if row["stage"] == stage]
        colour, symbol, _dash = dashboards.SERIES[k]
        traces.append(
            dashboards.points(
                x=[row["share"] for _name, row in shown],
                y=[name for name, _row in shown],
                name=str(label),
                colour=colour,
                symbol=symbol,
                x_intervals=[_bars(row) for _name, row in shown],
            )
        )
    title = _("Does what %(name)s learned hold where it never was?") % {"name": each.name}
    return [
        dashboards.plot(
            "quality-axes",
            title=title,
            caption=title,
            traces=traces,
            columns=(_("axis"), _("checkpoint"), _("share of the first best")),
            rows=[(axis_name(row), str(STAGES[row["stage"]]), _interval(row)) for row in rows],
            x=dashboards.share_axis(_("seller's profit / first best"), rangemode="tozero", nticks=6),
            **_lines(1 + len({axis_name(row) for row in rows})),
        )
    ]


def _by_rollout(each: Found) -> list[Chart]:
    steps = [line for line in runs.metrics(each.folder) if line["kind"] == "train"]
    plot = training_charts.Plot(
        "quality-rollouts",
        _("How did %(name)s come to gain and to keep it?") % {"name": each.name},
        _("share of the first best"),
        (
            training_charts.Curve("allocation_quality", _("gained: allocation quality"), "share"),
            training_charts.Curve("extraction", _("kept by the seller"), "share"),
        ),
        _("Games of its own training, moves drawn."),
    )
    chart = training_charts.drawn(plot, steps)
    return [chart] if chart else []


def _unmeasured(asked: Found) -> list[str]:
    """Held-out axes of a run's game that nothing was measured on."""
    have = {row["axis"] for row in asked.evaluated.get("axes", ())}
    try:
        wanted = held_out.moved(msgspec.convert(asked.config, RunConfig)) if "game" in asked.config else {}
    except (msgspec.ValidationError, UnknownAgent):  # A configuration of another version of the code.
        wanted = {}
    without = [axis for axis in wanted if axis not in have]
    if not have:
        told = _(
            "%(name)s was measured on no held-out axis: it was trained before runs did so, or it has not come to it."
        )
        sentences = [told % {"name": asked.name}]
    else:
        sentences = []
    if without:
        names = ", ".join(axis_name({"axis": axis}) for axis in without)
        sentences.append(_("Not measured of %(name)s: %(axes)s.") % {"name": asked.name, "axes": names})
    return sentences


def _absent(known: Sequence[Found], measured: Sequence[Found], asked: Found | None) -> list[str]:
    """What the page cannot show, and why."""
    sentences = []
    waiting = [each.name for each in known if each not in measured]
    if waiting:
        sentences.append(_("Not measured yet: %(names)s.") % {"names": ", ".join(waiting)})
    if asked is not None:
        sentences += _unmeasured(asked)
        if not any("allocation_quality" in line for line in runs.metrics(asked.folder)):
            sentences.append(_("%(name)s logged no allocation quality while it learned.") % {"name": asked.name})
    return sentences
