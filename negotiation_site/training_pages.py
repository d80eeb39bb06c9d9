"""Pages of training runs: a list, and one run's curves beside its economics."""

from dataclasses import dataclass
from typing import Any

from csp.decorators import csp_update
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET

from markets import presentation
from markets.result import percent
from negotiation_site import dashboards
from negotiation_site.stack import full_stack_missing
from training import runs
from training.models import Run, RunStatus
from training.services import report


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
    """Every run, newest first."""
    rows = []
    for run in Run.objects.select_related("market")[:200]:
        shares = _shares(runs.figures(runs.folder(run.name), "evaluate"))
        rows.append(
            RunRow(
                name=run.name,
                url=reverse("run", args=[run.name]),
                market=run.market.name,
                state=_state(run),
                greedy=shares.get("greedy", ""),
                sampled=shares.get("sampled", ""),
            )
        )
    return render(request, "training/run_list.html", {"runs": rows, "missing": full_stack_missing()})


@require_GET
@csp_update({"style-src": ["'unsafe-inline'"]})  # type: ignore[arg-type]  # Plotly writes style attributes.
def run_detail(request: HttpRequest, name: str) -> HttpResponse:
    """One run's curves and figures."""
    run = Run.objects.filter(name=name).select_related("market").first()
    if run is None:
        raise Http404(_("There is no such run."))
    folder = runs.folder(run.name)
    lines = runs.metrics(folder)
    evaluated = runs.figures(folder, "evaluate")
    references = _references(evaluated)
    watched = [line for line in lines if line["kind"] == "watch"]
    steps = [line for line in lines if line["kind"] == "train"]
    page = RunPage(
        name=run.name,
        market=run.market.name,
        state=_state(run),
        error=run.error,
        agent_url=reverse("market", args=[run.market.slug]) if run.published_slug else "",
        figures=_figures(report(run)["figures"], evaluated),
        charts=(
            *((dashboards.learning_curve(watched, references),) if watched else ()),
            *((dashboards.reward_curve(steps),) if steps else ()),
        ),
    )
    return render(request, "training/run_detail.html", {"page": page})


def _state(run: Run) -> str:
    if run.status == RunStatus.RUNNING and run.stage:
        stages = {"sft": _("imitating"), "grpo": _("learning by playing"), "evaluate": _("being measured")}
        return stages.get(run.stage, run.stage)
    return str(run.get_status_display())


def _shares(evaluated: dict[str, Any] | None) -> dict[str, str]:
    if not evaluated:
        return {}
    learner = evaluated["grpo"]
    return {way: percent(learner[way]["share"]) for way in ("greedy", "sampled")}


def _references(evaluated: dict[str, Any] | None) -> dict[str, float]:
    """Known limits of the game, by a name for people."""
    known = (evaluated or {}).get("grpo", {}).get("references", {})
    names = {"optimal_ladder": _("optimal ladder"), "linear_ladder": _("linear ladder")}
    return {label: known[key] for key, label in names.items() if key in known}


def _figures(stages: Any, evaluated: dict[str, Any] | None) -> tuple[presentation.Figure, ...]:
    figures = []
    imitation = stages.get("sft")
    if imitation:
        figures.append(_share_figure(_("Its teachers"), imitation["demonstrators"], "mean", "low", "high"))
        figures.append(_share_figure(_("After imitation, moves drawn"), imitation["sampled"]))
    if evaluated:
        learner = evaluated["grpo"]
        figures.append(_share_figure(_("After learning, likeliest move"), learner["greedy"]))
        figures.append(_share_figure(_("After learning, moves drawn"), learner["sampled"]))
    return tuple(figures)


def _share_figure(
    label: str, measured: dict[str, Any], mean: str = "share", low: str = "share_low", high: str = "share_high"
) -> presentation.Figure:
    return presentation.Figure(
        label=label,
        value=percent(measured[mean]),
        out_of=_("of the first best; 95%% interval %(low)s to %(high)s")
        % {"low": percent(measured[low]), "high": percent(measured[high])},
        fraction=measured[mean],
    )
