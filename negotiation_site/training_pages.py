"""Pages of training runs: a list, and one run's report: curves, economics, tricks, asks, games.

Reads the files that the run's stages left in its folder (`training.stages`); of a checkpoint that came
with the code, those beside its weights. Cancelling and resuming are for staff.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from csp.decorators import csp_update
from django.contrib import messages
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as _lazy
from django.views.decorators.http import require_GET, require_POST

from agents.learned import published
from markets import presentation
from markets.result import percent
from negotiation_site import dashboards
from negotiation_site.stack import full_stack_missing
from training import runs, services
from training.models import Run, RunStatus
from training.services import RunError


@dataclass(frozen=True)
class RunRow:
    """A line of the list."""

    name: str
    url: str
    market: str
    state: str
    greedy: str
    sampled: str


@dataclass(frozen=True)
class ShareRow:
    """A share of the first best beside others."""

    label: str
    share: str
    interval: str
    """What it was measured to lie in, or that it is exact."""


@dataclass(frozen=True)
class MemberRow:
    """One size of a family of games."""

    size: str
    cost: str
    trained: str
    share: str
    of_optimum: str
    linear: str
    asks: str


@dataclass(frozen=True)
class TrickRow:
    """What a trick earns."""

    name: str
    detail: str
    share: str
    interval: str


@dataclass(frozen=True)
class GameRow:
    """One game as the model read and wrote it."""

    title: str
    text: str


@dataclass(frozen=True, kw_only=True)
class RunPage:
    """One run."""

    name: str
    market: str
    state: str
    error: str = ""
    agent_url: str = ""
    cancel_url: str = ""
    resume_url: str = ""
    figures: tuple[presentation.Figure, ...] = ()
    charts: tuple[dashboards.Chart, ...] = ()
    compared: tuple[ShareRow, ...] = ()
    members: tuple[MemberRow, ...] = ()
    tricks: tuple[TrickRow, ...] = ()
    games: tuple[GameRow, ...] = ()


@require_GET
def run_list(request: HttpRequest) -> HttpResponse:
    """Every run, newest first, then the checkpoints that come with the code."""
    rows = []
    for run in Run.objects.select_related("market")[:200]:
        shares = _shares((runs.figures(runs.folder(run.name), "evaluate") or {}).get("grpo"))
        rows.append(_row(run.name, market=run.market.name, state=_state(run), shares=shares))
    for _path, card in _shipped():
        rows.append(_row(card.slug, market=card.trained_on, state=_("came with Parley"), shares=_shares(card.measured)))
    return render(request, "training/run_list.html", {"runs": rows, "missing": full_stack_missing()})


def _row(name: str, *, market: str, state: str, shares: dict[str, str]) -> RunRow:
    return RunRow(
        name=name,
        url=reverse("run", args=[name]),
        market=market,
        state=state,
        greedy=shares.get("greedy", ""),
        sampled=shares.get("sampled", ""),
    )


def _shipped() -> list[tuple[Path, published.Card]]:
    """Checkpoints that come with the code and are no run of this server."""
    known = set(Run.objects.values_list("name", flat=True))
    return [(path, card) for path, card in published.cards(published.SHIPPED) if card.slug not in known]


@require_GET
@csp_update({"style-src": ["'unsafe-inline'"]})  # type: ignore[arg-type]  # Plotly writes style attributes.
def run_detail(request: HttpRequest, name: str) -> HttpResponse:
    """One run's report."""
    run = Run.objects.filter(name=name).select_related("market").first()
    page = _shipped_page(name) if run is None else _run_page(run, staff=_is_staff(request))
    return render(request, "training/run_detail.html", {"page": page})


@require_POST
def run_cancel(request: HttpRequest, name: str) -> HttpResponse:
    """Ask a run to stop."""
    services.cancel(_run_for_staff(request, name))
    messages.info(request, _("The run is asked to stop; what it has saved stays."))
    return redirect("run", name=name)


@require_POST
def run_resume(request: HttpRequest, name: str) -> HttpResponse:
    """Queue a stopped run again."""
    try:
        services.resume(_run_for_staff(request, name))
    except RunError as error:
        messages.error(request, str(error))
    else:
        messages.info(request, _("The run waits for its device and goes on from its last checkpoint."))
    return redirect("run", name=name)


def _is_staff(request: HttpRequest) -> bool:
    return request.user.is_active and request.user.is_staff


def _run_for_staff(request: HttpRequest, name: str) -> Run:
    """The run, for somebody who may change it."""
    if not _is_staff(request):
        raise PermissionDenied
    run = Run.objects.filter(name=name).first()
    if run is None:
        raise Http404(_("There is no such run."))
    return run


def _run_page(run: Run, *, staff: bool) -> RunPage:
    can_cancel = run.status in (RunStatus.QUEUED, RunStatus.RUNNING) and not run.cancel_asked
    can_resume = run.status in (RunStatus.FAILED, RunStatus.CANCELLED)
    return RunPage(
        name=run.name,
        market=run.market.name,
        state=_state(run),
        error=run.error,
        agent_url=reverse("market", args=[run.market.slug]) if run.published_slug else "",
        cancel_url=reverse("run-cancel", args=[run.name]) if staff and can_cancel else "",
        resume_url=reverse("run-resume", args=[run.name]) if staff and can_resume else "",
        **_report(runs.folder(run.name), None),
    )


def _shipped_page(name: str) -> RunPage:
    """The page of a checkpoint that comes with the code, from its card and what its run left beside it."""
    for path, card in _shipped():
        if card.slug == name:
            return RunPage(
                name=card.title,
                market=card.trained_on,
                state=_("Made again by: %(command)s") % {"command": card.command},
                agent_url=reverse("market-list"),
                **_report(path, card.measured),
            )
    raise Http404(_("There is no such run."))


def _report(folder: Path, card: dict[str, Any] | None) -> dict[str, Any]:
    """The parts of a page that a run's folder fills; `card` stands in where it was never evaluated there."""
    imitation = runs.figures(folder, "sft")
    learner = (runs.figures(folder, "evaluate") or {}).get("grpo") or card
    tricks = (runs.figures(folder, "exploits") or {}).get("rows", [])
    return {
        "figures": (*_imitation_figures(imitation), *_learner_figures(learner)),
        "charts": _charts(runs.metrics(folder), learner),
        "compared": _compared(imitation, learner, tricks),
        "members": tuple(map(_member, (learner or {}).get("members", []))),
        "tricks": tuple(_trick(row) for row in tricks if row["trick"] != LINEAR_LADDER),
        "games": tuple(map(_game, (learner or {}).get("transcripts", []))),
    }


LINEAR_LADDER = "linear ladder"
HILL_CLIMBED = "hill-climbed fixed sequence"
"""Rows of an exploit search that other shares are held against."""


def _compared(
    imitation: dict[str, Any] | None, learner: dict[str, Any] | None, tricks: list[dict[str, Any]]
) -> tuple[ShareRow, ...]:
    """Everything that earns a share of the first best in the run's games, in the order of a story."""
    rows = []
    if imitation:
        teachers = imitation["demonstrators"]
        rows.append(_share_row(_("Its teachers"), teachers["mean"], teachers["low"], teachers["high"]))
        rows.append(_measured_row(_("After imitation, likeliest move"), imitation["greedy"]))
        rows.append(_measured_row(_("After imitation, moves drawn"), imitation["sampled"]))
    if learner:
        rows.append(_measured_row(_("After learning, likeliest move"), learner["greedy"]))
        rows.append(_measured_row(_("After learning, moves drawn"), learner["sampled"]))
    known = (learner or {}).get("references", {})
    measured = [HILL_CLIMBED] if "linear_ladder" in known else [LINEAR_LADDER, HILL_CLIMBED]
    labels = {LINEAR_LADDER: _("Linear ladder"), HILL_CLIMBED: _("Best fixed sequence found")}
    for row in tricks:
        if row["trick"] in measured:
            rows.append(_share_row(labels[row["trick"]], row["mean"], row["low"], row["high"]))
    for name, label in (("linear_ladder", _("Linear ladder")), ("optimal_ladder", _("Limit: the optimal ladder"))):
        if name in known:
            rows.append(ShareRow(label=label, share=f"{known[name]:.3f}", interval=_("exact")))
    return tuple(rows)


def _share_row(label: str, share: float, low: float, high: float) -> ShareRow:
    return ShareRow(label=label, share=f"{share:.3f}", interval=_interval(low, high))


def _measured_row(label: str, measured: dict[str, Any]) -> ShareRow:
    return _share_row(label, measured["share"], measured["share_low"], measured["share_high"])


def _interval(low: float, high: float) -> str:
    return _("%(low)s to %(high)s") % {"low": f"{low:.3f}", "high": f"{high:.3f}"}


TRICKS = {
    "best constant ask": _lazy("The best price for everybody, always the same"),
    "absurd ask": _lazy("An absurd price"),
    "accept the first bid, ask high": _lazy("Ask high, take the first bid"),
    "accept the first bid after an absurd ask": _lazy("Ask an absurd price, take the first bid"),
    HILL_CLIMBED: _lazy("The best fixed sequence found"),
}
"""Names of tricks for people."""


def _trick(row: dict[str, Any]) -> TrickRow:
    return TrickRow(
        name=str(TRICKS.get(row["trick"], row["trick"])),
        detail=row["detail"],
        share=f"{row['mean']:.3f}",
        interval=_interval(row["low"], row["high"]),
    )


def _member(row: dict[str, Any]) -> MemberRow:
    return MemberRow(
        size=_("%(buyers)d buyers, %(turns)d turns") % row,
        cost=f"{row['cost']:g}",
        trained=_("trained on") if row["trained"] else _("never seen"),
        share=f"{row['greedy']:.3f}",
        of_optimum=percent(row["greedy"] / row["optimal_ladder"]),
        linear=f"{row['linear_ladder']:.3f}",
        asks=" ".join(f"{buyer}:{price}" for buyer, price in row.get("asks", [])),
    )


CHOSEN = {"best": _lazy("One of the best"), "worst": _lazy("One of the worst"), "random": _lazy("Drawn at random")}


def _game(row: dict[str, Any]) -> GameRow:
    title = _("%(chosen)s: game %(game)d, %(share)s of the first best") % {
        "chosen": CHOSEN[row["chosen"]],
        "game": row["game"],
        "share": percent(row["share"]),
    }
    return GameRow(title=title, text=row["text"])


def _charts(lines: list[dict[str, Any]], learner: dict[str, Any] | None) -> tuple[dashboards.Chart, ...]:
    watched = [line for line in lines if line["kind"] == "watch"]
    steps = [line for line in lines if line["kind"] == "train"]
    asks = {way: (learner or {}).get(way, {}).get("asks", {}) for way in ("greedy", "sampled")}
    return (
        *((dashboards.learning_curve(watched, _references(learner)),) if watched else ()),
        *((dashboards.reward_curve(steps),) if steps else ()),
        *((asks_histogram(asks),) if any(asks.values()) else ()),
    )


def asks_histogram(asks: dict[str, dict[str, int]]) -> dashboards.Chart:
    """How often each stretch of prices was asked, always the likeliest move and moves drawn."""
    import plotly.graph_objects as go

    stretches = sorted({stretch for counts in asks.values() for stretch in counts}, key=lambda s: int(s.split("-")[0]))
    parts = {way: [counts.get(s, 0) / max(1, sum(counts.values())) for s in stretches] for way, counts in asks.items()}
    figure = go.Figure()
    for way, name, colour in (
        ("greedy", _("always the likeliest move"), dashboards.GREEDY),
        ("sampled", _("moves drawn"), dashboards.SAMPLED),
    ):
        figure.add_bar(x=stretches, y=parts[way], name=name, marker={"color": colour})
    figure.update_layout(
        template=None,
        title=_("What does it ask for?"),
        xaxis={
            "title": {"text": _("price asked, hundredths of the list price")},
            "type": "category",
            "automargin": True,
        },
        yaxis={"title": {"text": _("share of all asks")}, "tickformat": ".0%", "rangemode": "tozero"},
        legend={"orientation": "h", "y": 1.12},
        margin={"l": 70, "r": 20, "t": 60, "b": 60},
        paper_bgcolor="rgba(0,0,0,0)",
        plot_bgcolor="rgba(0,0,0,0)",
    )
    return dashboards.Chart(
        element="chart-asks",
        figure=json.loads(figure.to_json()),
        columns=(_("price, hundredths of the list price"), _("likeliest"), _("drawn")),
        rows=tuple(
            (stretch, percent(parts["greedy"][k]), percent(parts["sampled"][k])) for k, stretch in enumerate(stretches)
        ),
        caption=_("Asks by price, as a share of all asks"),
    )


def _state(run: Run) -> str:
    if run.status == RunStatus.RUNNING and run.stage:
        stages = {
            "exploits": _("looking for tricks"),
            "sft": _("imitating"),
            "grpo": _("learning by playing"),
            "evaluate": _("being measured"),
        }
        return stages.get(run.stage, run.stage)
    return str(run.get_status_display())


def _shares(learner: dict[str, Any] | None) -> dict[str, str]:
    return {way: percent(learner[way]["share"]) for way in ("greedy", "sampled")} if learner else {}


def _references(learner: dict[str, Any] | None) -> dict[str, float]:
    """Known limits of the game, by a name for people."""
    known = (learner or {}).get("references", {})
    names = {"optimal_ladder": _("optimal ladder"), "linear_ladder": _("linear ladder")}
    return {label: known[key] for key, label in names.items() if key in known}


def _imitation_figures(imitation: dict[str, Any] | None) -> tuple[presentation.Figure, ...]:
    if not imitation:
        return ()
    teachers = imitation["demonstrators"]
    return (
        _share_figure(_("Its teachers"), teachers["mean"], teachers["low"], teachers["high"]),
        _measured_figure(_("After imitation, moves drawn"), imitation["sampled"]),
    )


def _learner_figures(learner: dict[str, Any] | None) -> tuple[presentation.Figure, ...]:
    if not learner:
        return ()
    return (
        _measured_figure(_("After learning, likeliest move"), learner["greedy"]),
        _measured_figure(_("After learning, moves drawn"), learner["sampled"]),
    )


def _measured_figure(label: str, measured: dict[str, Any]) -> presentation.Figure:
    return _share_figure(label, measured["share"], measured["share_low"], measured["share_high"])


def _share_figure(label: str, share: float, low: float, high: float) -> presentation.Figure:
    return presentation.Figure(
        label=label,
        value=f"{share:.3f}",
        out_of=_("of the first best; 95%% interval %(low)s to %(high)s") % {"low": f"{low:.3f}", "high": f"{high:.3f}"},
        fraction=share,
    )
