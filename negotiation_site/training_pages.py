"""Pages of training runs: a list, and one run's curves beside its economics."""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from csp.decorators import csp_update
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET

from agents.learned import published
from markets import presentation
from markets.result import percent
from negotiation_site import dashboards
from negotiation_site.stack import full_stack_missing
from training import runs
from training.models import Run, RunStatus


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
class RunPage:
    """One run."""

    name: str
    market: str
    state: str
    error: str
    agent_url: str
    figures: tuple[presentation.Figure, ...]
    charts: tuple[dashboards.Chart, ...]


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
    """One run's curves and figures."""
    run = Run.objects.filter(name=name).select_related("market").first()
    page = _run_page(run) if run is not None else _shipped_page(name)
    return render(request, "training/run_detail.html", {"page": page})


def _run_page(run: Run) -> RunPage:
    folder = runs.folder(run.name)
    evaluated = runs.figures(folder, "evaluate")
    learner = (evaluated or {}).get("grpo")
    return RunPage(
        name=run.name,
        market=run.market.name,
        state=_state(run),
        error=run.error,
        agent_url=reverse("market", args=[run.market.slug]) if run.published_slug else "",
        figures=(*_imitation_figures(runs.figures(folder, "sft")), *_learner_figures(learner)),
        charts=_charts(runs.metrics(folder), _references(learner)),
    )


def _shipped_page(name: str) -> RunPage:
    """The page of a checkpoint that comes with the code, from its card and its kept curve."""
    for path, card in _shipped():
        if card.slug == name:
            return RunPage(
                name=card.title,
                market=card.trained_on,
                state=_("Made again by: %(command)s") % {"command": card.command},
                error="",
                agent_url=reverse("market-list"),
                figures=_learner_figures(card.measured),
                charts=_charts(runs.metrics(path), _references(card.measured)),
            )
    raise Http404(_("There is no such run."))


def _charts(lines: list[dict[str, Any]], references: dict[str, float]) -> tuple[dashboards.Chart, ...]:
    watched = [line for line in lines if line["kind"] == "watch"]
    steps = [line for line in lines if line["kind"] == "train"]
    return (
        *((dashboards.learning_curve(watched, references),) if watched else ()),
        *((dashboards.reward_curve(steps),) if steps else ()),
    )


def _state(run: Run) -> str:
    if run.status == RunStatus.RUNNING and run.stage:
        stages = {"sft": _("imitating"), "grpo": _("learning by playing"), "evaluate": _("being measured")}
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
