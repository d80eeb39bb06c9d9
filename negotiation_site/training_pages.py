"""Pages of training runs: a list, and one run, live while it learns and with its report at the end.

Reads the files that the run's stages left in its folder (`training.stages`); of a checkpoint that came
with the code, those beside its weights. Everybody may look at curves and reports. Cancelling and
resuming are for staff; launching, logs and publishing for staff with the permission to train
(`may_train`). Not here: the form (`training_forms`), comparisons (`training_comparison`), plots
(`training_charts`). Nothing here loads torch.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from csp.decorators import csp_update
from django.contrib import messages
from django.contrib.auth.models import User
from django.core.exceptions import PermissionDenied
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as _lazy
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_POST

from agents import registry
from agents.learned import published
from agents.registry import UnknownAgent
from markets import presentation
from markets.engine.protocol import Role
from markets.result import percent
from negotiation_site import dashboards, training_charts
from negotiation_site.stack import full_stack_missing
from negotiation_site.tournament_charts import title
from training import model_opponents, phases, runs, services
from training.language.config import EMBEDDED, LanguageRun
from training.models import Run, RunStatus
from training.progress import progress
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


@dataclass(frozen=True)
class SampleRow:
    """A game that the run just played."""

    key: str
    title: str
    text: str


@dataclass(frozen=True)
class StageRow:
    """One stage of a run and how far it is."""

    name: str
    state: str
    """`done`, `now` or `waiting`."""
    words: str


@dataclass(frozen=True, kw_only=True)
class StatusPage:
    """How far a run is: context `status` of `training/_status.html`."""

    state: str
    stages: tuple[StageRow, ...] = ()
    figures: tuple[presentation.Figure, ...] = ()
    error: str = ""
    stopping: bool = False
    url: str = ""
    """Where to ask again; empty once the run stands still."""
    cancel_url: str = ""
    resume_url: str = ""
    publish_url: str = ""
    doubt: str = ""
    """What its figures say against publishing it; empty where nothing does."""
    every_s: int = 2


@dataclass(frozen=True, kw_only=True)
class CurvesPage:
    """What a run logged so far: context `curves` of `training/_curves.html`."""

    charts: tuple[dashboards.Chart, ...] = ()
    now: tuple[training_charts.NowRow, ...] = ()
    moments: str = ""
    """What the three columns of `now` are."""
    phases: tuple[str, ...] = ()
    missing: tuple[str, ...] = ()
    url: str = ""
    every_s: int = 8


@dataclass(frozen=True, kw_only=True)
class RunPage:
    """One run."""

    name: str
    market: str
    state: str
    agent_url: str = ""
    agent_name: str = ""
    play_url: str = ""
    clone_url: str = ""
    compare_url: str = ""
    status: StatusPage | None = None
    """None for a checkpoint that came with the code."""
    curves: CurvesPage | None = None
    samples: tuple[SampleRow, ...] = ()
    samples_url: str = ""
    log_url: str = ""
    settings: tuple[tuple[str, str], ...] = ()
    """What it was launched with."""
    figures: tuple[presentation.Figure, ...] = ()
    charts: tuple[dashboards.Chart, ...] = ()
    compared: tuple[ShareRow, ...] = ()
    measure: str = ""
    """What the shares of `compared` are of."""
    compact: bool = True
    """Whether games are told in the words of a small model."""
    members: tuple[MemberRow, ...] = ()
    tricks: tuple[TrickRow, ...] = ()
    games: tuple[GameRow, ...] = ()


REWARDS = {
    "": _lazy("the usual one for the market and the side"),
    "seller_profit": _lazy("profit, on the scale of the list price"),
    "rlvr_seller_multi": _lazy("share of what the best buyer could have paid (arXiv 2607.05863, inferred)"),
    "rlvr_seller_catalogue": _lazy("share of the best matching (arXiv 2609.33289, inferred)"),
    "rlvr_buyer": _lazy("the buyer's share, breaches cost everything (arXiv 2604.09855)"),
    "bilateral_share": _lazy("share of the joint surplus (after arXiv 2604.16472, inferred)"),
    "bilateral_share_batna": _lazy("the same, and walking away pays where it is right"),
}
"""Rewards of runs in words."""
OPEN = (RunStatus.QUEUED, RunStatus.RUNNING)
SAMPLES_SHOWN = 6
LOG_LINES = 60


@require_GET
def run_list(request: HttpRequest) -> HttpResponse:
    """Every run, newest first, then the checkpoints that come with the code."""
    rows = []
    for run in Run.objects.select_related("market")[:200]:
        shares = _shares_of(run)
        rows.append(_row(run.name, market=run.market.name, state=_state(run), shares=shares))
    for _path, card in _shipped():
        rows.append(
            _row(
                card.slug,
                shown=card.title,
                market=_table_of(card),
                state=_("came with Parley"),
                shares=_shares(card.measured),
            )
        )
    return render(
        request,
        "training/run_list.html",
        {"runs": rows, "missing": full_stack_missing(), "may_train": may_train(request)},
    )


def _shares_of(run: Run) -> dict[str, str]:
    """What a run's model kept at the end; a language model's answers are drawn."""
    folder = runs.folder(run.name)
    if not services.is_language(run):
        return _shares((runs.figures(folder, "evaluate") or {}).get("grpo"))
    judged = runs.figures(folder, "judge") or {}
    share = (judged.get("grpo") or judged.get("sft") or {}).get("share")
    return {} if share is None else {"sampled": percent(share)}


def _row(name: str, *, market: str, state: str, shares: dict[str, str], shown: str = "") -> RunRow:
    return RunRow(
        name=shown or name,
        url=reverse("run", args=[name]),
        market=market,
        state=state,
        greedy=shares.get("greedy", ""),
        sampled=shares.get("sampled", ""),
    )


def _table_of(card: published.Card) -> str:
    """Who sat at the tables that it learned at, and for how long: the first words of what its card says of them."""
    return re.sub(r"\b(\d+) to \1\b", r"\1", card.trained_on.partition("; ")[0].rstrip("."))


def _learned_on(card: published.Card) -> tuple[tuple[str, str], ...]:
    """What the card says of the games that it learned from, a part a line, with agents by their names."""
    _table, *parts = card.trained_on.rstrip(".").split("; ")
    facts = [(_("Table"), _table_of(card))]
    for part in parts:
        if part.startswith("values "):
            facts.append((_("Values and cost, as on the command line"), part.removeprefix("values ")))
        elif part.startswith("opponents "):
            slugs = part.removeprefix("opponents ").split(", ")
            facts.append((_("Opponents"), ", ".join(map(title, slugs))))
        elif part.startswith("seed "):
            facts.append((_("Seed"), part.removeprefix("seed ")))
        else:
            facts.append((_("Further"), part))
    return (*facts, (_("Made again by"), card.command))


def _shipped() -> list[tuple[Path, published.Card]]:
    """Checkpoints that come with the code and are no run of this server."""
    known = set(Run.objects.values_list("name", flat=True))
    return [(path, card) for path, card in published.cards(published.SHIPPED) if card.slug not in known]


@require_GET
@csp_update({"style-src": ["'unsafe-inline'"]})  # type: ignore[arg-type]  # Plotly writes style attributes.
def run_detail(request: HttpRequest, name: str) -> HttpResponse:
    """One run: live while it learns, its report afterwards."""
    run = Run.objects.filter(name=name).select_related("market").first()
    page = _shipped_page(name) if run is None else _run_page(run, request)
    return render(request, "training/run_detail.html", {"page": page})


@require_GET
@never_cache
def run_status(request: HttpRequest, name: str) -> HttpResponse:
    """How far a run is, for the page that asks now and then; reloads it once the run stands still."""
    run = _known(name)
    response = render(request, "training/_status.html", {"status": _status(run, request)})
    if run.status not in OPEN:
        response["HX-Refresh"] = "true"
    return response


@require_GET
@never_cache
def run_curves(request: HttpRequest, name: str) -> HttpResponse:
    """What a run logged so far."""
    return render(request, "training/_curves.html", {"curves": _curves(_known(name))})


@require_GET
@never_cache
def run_samples(request: HttpRequest, name: str) -> HttpResponse:
    """Games that a run just played."""
    run = _known(name)
    url = reverse("run-samples", args=[name]) if run.status in OPEN else ""
    told = {"samples": _samples(run), "url": url, "compact": not services.is_language(run)}
    return render(request, "training/_samples.html", told)


@require_GET
@never_cache
def run_log(request: HttpRequest, name: str) -> HttpResponse:
    """The end of a run's log, for whoever may train."""
    run = _run_for_trainers(request, name)
    lines = services.log_tail(runs.folder(run.name) / services.LOG_NAME, lines=LOG_LINES)
    url = reverse("run-log", args=[name]) if run.status in OPEN else ""
    return render(request, "training/_log.html", {"lines": lines, "url": url})


@require_POST
def run_publish(request: HttpRequest, name: str) -> HttpResponse:
    """Make a finished run's model an agent."""
    run = _run_for_trainers(request, name)
    try:
        services.publish(run)
    except RunError as error:
        messages.error(request, str(error))
    else:
        told = _("The model is an agent now; it can be played in markets like its own.")
        if services.is_language(_known(name)):
            told = _(
                "The adapter is published. It plays as an agent once the site's model server has been started anew (make run)."
            )
        messages.info(request, told)
    return redirect("run", name=name)


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


def may_train(request: HttpRequest) -> bool:
    """Whether whoever asks may launch runs, read their logs and publish: staff with the permission."""
    user = request.user
    return isinstance(user, User) and _is_staff(request) and user.has_perm("training.train_agents")


def _run_for_trainers(request: HttpRequest, name: str) -> Run:
    """The run, for somebody who may train."""
    if not may_train(request):
        raise PermissionDenied
    return _known(name)


def _known(name: str) -> Run:
    run = Run.objects.filter(name=name).select_related("market").first()
    if run is None:
        raise Http404(_("There is no such run."))
    return run


def _run_for_staff(request: HttpRequest, name: str) -> Run:
    """The run, for somebody who may change it."""
    if not _is_staff(request):
        raise PermissionDenied
    return _known(name)


def _run_page(run: Run, request: HttpRequest) -> RunPage:
    trainer, is_open = may_train(request), run.status in OPEN
    report = _judged(run) if services.is_language(run) else _report(runs.folder(run.name), None)
    curves = _curves(run)
    shown = {chart.element for chart in curves.charts}
    report["charts"] = tuple(
        c for c in report["charts"] if not (c.element == "chart-reward" and "live-reward" in shown)
    )
    published_as = run.published_slug if _is_agent(run.published_slug) else ""
    return RunPage(
        name=run.name,
        market=run.market.name,
        state=_state(run),
        agent_url=reverse("agent", args=[published_as]) if published_as else "",
        agent_name=published_as,
        play_url=reverse("market", args=[run.market.slug]) if published_as else "",
        clone_url=f"{reverse('run-new')}?like={run.name}" if trainer else "",
        compare_url=f"{reverse('run-compare')}?a={run.name}",
        status=_status(run, request),
        curves=curves,
        samples=_samples(run),
        samples_url=reverse("run-samples", args=[run.name]) if is_open else "",
        log_url=reverse("run-log", args=[run.name]) if trainer else "",
        settings=_settings(run),
        **report,
    )


def _is_agent(slug: str) -> bool:
    """Whether there is an agent of a slug now: an adapter is none before its server was started with it."""
    try:
        return bool(slug) and bool(registry.get(slug))
    except UnknownAgent:
        return False


def _settings(run: Run) -> tuple[tuple[str, str], ...]:
    """What a run was launched with, for people."""
    config = services.config_of(run)
    if isinstance(config, LanguageRun):
        return _language_settings(run, config)
    game = config.game
    return (
        (_("Preset"), run.preset),
        (_("Starts from"), Path(config.base).name if config.base else _("nothing: random weights")),
        (_("Imitates"), _imitated(run)),
        (_("Opponents"), _opponents(game.opponents, game.weights)),
        (_("Measured against"), _quiet(game.opponents)),
        (_("Reward"), _reward(game.reward)),
        (_("Seed"), str(config.seed)),
        (_("Device"), run.device),
        (
            _("Budget"),
            _("%(steps)d steps of imitation, %(rollouts)d rollouts of %(games)d games")
            % {
                "steps": config.sft.steps,
                "rollouts": config.grpo.rollouts,
                "games": config.grpo.games * config.grpo.group,
            },
        ),
        (_("Data"), config.data[:12]),
        (_("Configuration"), config.sha256[:12]),
    )


def _language_settings(run: Run, config: LanguageRun) -> tuple[tuple[str, str], ...]:
    """The same of a language model's run."""
    market, rank = config.market, config.adapter.rank
    learns = _("an adapter of rank %(rank)d") % {"rank": rank} if rank else _("the whole model")
    sides = {Role.SELLER: _("seller"), Role.BUYER: _("buyer")}
    return (
        (_("Preset"), run.preset),
        (_("Starts from"), _("the embedded model") if config.base == EMBEDDED else Path(config.base).name),
        (_("Learns"), learns),
        (_("Protocol"), config.protocol),
        (_("It plays"), _(" and ").join(sides[role] for role in market.roles)),
        (_("Imitates"), _imitated(run)),
        (_("Opponents"), _opponents(market.opponents, market.weights)),
        (_("Measured against"), _quiet(market.opponents)),
        (_("Reward"), _reward(config.grpo.reward) if config.grpo.rollouts else ""),
        (_("Seed"), str(config.seed)),
        (_("Device"), run.device),
        (_("Budget"), _language_budget(run, config)),
        (_("Data"), config.data[:12]),
        (_("Configuration"), config.sha256[:12]),
    )


def _language_budget(run: Run, config: LanguageRun) -> str:
    """How much a language model's run was given."""
    told = {
        "rows": config.sft.rows,
        "rollouts": config.grpo.rollouts,
        "games": config.grpo.games * config.grpo.group,
        "judged": config.judging.scenarios,
    }
    parts = [] if run.source else [_("%(rows)d moves of imitation") % told]
    parts += [_("%(rollouts)d rollouts of %(games)d games") % told] if config.grpo.rollouts else []
    return ", ".join((*parts, _("%(judged)d games at the end") % told))


def _imitated(run: Run) -> str:
    """What a run imitates, for people."""
    source = json.loads(run.source) if run.source else {}
    if not source:
        return _("the preset's demonstrators")
    return " ".join(str(source[key]) for key in ("kind", "name", "agent") if source.get(key))


def _reward(name: str) -> str:
    """A reward in words, with its name in files."""
    return f"{REWARDS[name]} ({name})" if name in REWARDS else name


def _opponents(slugs: Sequence[str], given: Sequence[float]) -> str:
    weights = given or (1.0,) * len(slugs)
    whole = sum(weights)
    return ", ".join(f"{title(slug)} {percent(weight / whole)}" for slug, weight in zip(slugs, weights, strict=True))


def _quiet(slugs: Sequence[str]) -> str:
    """Who plays in looks and in the measure at the end, where some opponents ask language models; else nothing."""
    try:
        quiet = model_opponents.quiet(slugs)
    except UnknownAgent:
        return ""
    return ", ".join(map(title, dict.fromkeys(quiet))) if tuple(quiet) != tuple(slugs) else ""


def _status(run: Run, request: HttpRequest) -> StatusPage:
    staff, is_open = _is_staff(request), run.status in OPEN
    folder = runs.folder(run.name)
    can_resume = run.status in (RunStatus.FAILED, RunStatus.CANCELLED)
    can_publish = run.status == RunStatus.DONE and may_train(request) and not _is_agent(run.published_slug)
    return StatusPage(
        state=_state(run),
        stages=_stages(run, folder),
        figures=_progress_figures(run, folder) if run.status == RunStatus.RUNNING else (),
        error=run.error,
        stopping=is_open and run.cancel_asked,
        url=reverse("run-status", args=[run.name]) if is_open else "",
        cancel_url=reverse("run-cancel", args=[run.name]) if staff and is_open and not run.cancel_asked else "",
        resume_url=reverse("run-resume", args=[run.name]) if staff and can_resume else "",
        publish_url=reverse("run-publish", args=[run.name]) if can_publish else "",
        doubt=_doubt(run, folder) if can_publish else "",
    )


NOTHING = 0.005
"""Below this a share is nothing, as it is shown."""


def _doubt(run: Run, folder: Path) -> str:
    """What speaks against publishing a finished run: it was not judged, keeps nothing, or less than what it began with."""
    if services.is_language(run):
        judged = runs.figures(folder, "judge") or {}
        before, after = judged.get("base"), judged.get("grpo") or judged.get("sft")
        told = {"whole": _("the joint surplus in held-out games"), "earlier": _("before it was taught")}
    else:
        evaluated = runs.figures(folder, "evaluate") or {}
        before, after = (evaluated.get(stage, {}).get("greedy") for stage in ("sft", "grpo"))
        told = {"whole": _("the first best in games kept apart"), "earlier": _("after imitation")}
    if not after or after.get("share") is None:
        return _("Its model was not judged: nothing tells whether it is better than what it began with.")
    told |= {"now": _share_in_words(after)}
    if after["share"] < NOTHING:
        return _("It keeps nothing: %(now)s of %(whole)s.") % told
    if before and before.get("share") is not None and after["share"] < before["share"]:
        return _("It keeps %(now)s of %(whole)s, which is less than %(earlier)s: %(then)s.") % (
            told | {"then": _share_in_words(before)}
        )
    return ""


def _share_in_words(found: dict[str, Any]) -> str:
    return _("%(share)s (95%% interval %(low)s to %(high)s)") % {
        "share": f"{found['share']:.3f}",
        "low": f"{found['share_low']:.3f}",
        "high": f"{found['share_high']:.3f}",
    }


def _stages(run: Run, folder: Path) -> tuple[StageRow, ...]:
    rows = []
    for stage in services.stages_of(services.config_of(run)):
        figures = runs.figures(folder, stage)
        if figures is not None:
            seconds = figures.get("wall_seconds")
            words = duration(seconds) if seconds is not None else ""
            rows.append(StageRow(str(STAGES[stage]), "done", words))
        else:
            here = run.status == RunStatus.RUNNING and run.stage == stage
            rows.append(StageRow(str(STAGES[stage]), "now" if here else "waiting", ""))
    return tuple(rows)


def _progress_figures(run: Run, folder: Path) -> tuple[presentation.Figure, ...]:
    """How far the stage under way is, and when it may end."""
    config = services.config_of(run)
    found = progress(config, runs.metrics(folder), stage=run.stage)
    asked = _asked_of_models(config, folder)
    if not found.total:
        return asked
    left = _("not to be told yet") if found.seconds_left is None else duration(found.seconds_left)
    basis = _("the median pace of its last steps; later stages come on top")
    if found.done >= found.total:
        left, basis = _("soon"), _("its steps are done; what it learned is measured and written")
    return (
        presentation.Figure(
            label=str(STAGES.get(run.stage, run.stage)),
            value=percent(found.share),
            out_of=_("%(done)d of %(total)d") % {"done": found.done, "total": found.total},
            fraction=found.share,
        ),
        presentation.Figure(label=_("This stage ends in"), value=left, out_of=basis),
        *asked,
    )


def _asked_of_models(config: services.Config, folder: Path) -> tuple[presentation.Figure, ...]:
    """What the opponents asked of language models so far, and what happens when that is used up."""
    game = config.market if isinstance(config, LanguageRun) else config.game
    if not game.model_calls:
        return ()
    spent = model_opponents.spent(folder)
    return (
        presentation.Figure(
            label=_("Answers of language models"),
            value=f"{spent.calls:,}",
            out_of=_("of %(most)s; %(tokens)s tokens. When they are used up the run stops")
            % {"most": f"{game.model_calls:,}", "tokens": f"{spent.tokens:,}"},
            fraction=min(1.0, spent.calls / game.model_calls),
        ),
    )


def duration(seconds: float) -> str:
    """A stretch of time for people."""
    if seconds < 90:
        return _("%(count)d s") % {"count": round(seconds)}
    if seconds < 5400:
        return _("%(count)d min") % {"count": round(seconds / 60)}
    if seconds < 172_800:
        return _("%(count).1f h") % {"count": seconds / 3600}
    return _("%(count).1f days") % {"count": seconds / 86_400}


def _curves(run: Run) -> CurvesPage:
    lines = runs.metrics(runs.folder(run.name))
    trained = [line for line in lines if line["kind"] == "train"]
    found = phases.phases(trained, seller=_sells(run))
    return CurvesPage(
        charts=training_charts.live(lines, found),
        now=training_charts.now(lines),
        moments=_("The first rollout, ten before the last, and the last.")
        if trained
        else _("The first look at games of its own, the one before the last, and the last."),
        phases=tuple(
            _("%(name)s: rollouts %(first)d to %(last)d")
            % {"name": training_charts.PHASES[phase.name], "first": phase.first, "last": phase.last}
            for phase in found
        ),
        missing=training_charts.missing(lines),
        url=reverse("run-curves", args=[run.name]) if run.status in OPEN else "",
    )


def _sells(run: Run) -> bool:
    """Whether the figures of a run's openings are a seller's."""
    config = services.config_of(run)
    return Role.SELLER in config.market.roles if isinstance(config, LanguageRun) else config.game.role is Role.SELLER


SAMPLED = {
    "best": _lazy("best paid"),
    "middle": _lazy("in the middle"),
    "worst": _lazy("worst paid"),
}


def _samples(run: Run) -> tuple[SampleRow, ...]:
    return tuple(
        SampleRow(
            f"{game['rollout']}-{game.get('step', 0)}-{game['chosen']}",
            _sample_title(game),
            game["text"],
        )
        for game in runs.samples(runs.folder(run.name), last=SAMPLES_SHOWN)
    )


def _sample_title(game: dict[str, Any]) -> str:
    told = {
        "rollout": game["rollout"],
        "step": game.get("step", 0),
        "chosen": SAMPLED.get(game["chosen"], game["chosen"]),
        "reward": f"{game['reward']:.3f}",
    }
    if told["step"]:
        return _("Step %(step)d of imitation, %(chosen)s: kept %(reward)s of the joint surplus") % told
    return _("Rollout %(rollout)d, %(chosen)s: reward %(reward)s") % told


def _shipped_page(name: str) -> RunPage:
    """The page of a checkpoint that comes with the code, from its card and what its run left beside it."""
    for path, card in _shipped():
        if card.slug == name:
            return RunPage(
                name=card.title,
                market=_table_of(card),
                state=_("Came with Parley"),
                agent_url=reverse("agent", args=[card.slug]),
                settings=_learned_on(card),
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
        "measure": _("The learner's profit as a share of the first best, on games kept apart from training."),
        "members": tuple(map(_member, (learner or {}).get("members", []))),
        "tricks": tuple(_trick(row) for row in tricks if row["trick"] != LINEAR_LADDER),
        "games": tuple(map(_game, (learner or {}).get("transcripts", []))),
    }


JUDGED = {
    "base": _lazy("Before it was taught"),
    "sft": _lazy("After imitation"),
    "grpo": _lazy("After learning by playing"),
}
GAMES_OF_A_KIND = 3


def _judged(run: Run) -> dict[str, Any]:
    """The parts of a page that a language model's judging fills."""
    folder = runs.folder(run.name)
    parts = {name: runs.figures(folder, f"judge-{name}") for name in JUDGED}
    known = {name: found for name, found in parts.items() if found is not None and found["share"] is not None}
    taught = (runs.figures(folder, "sft") or {}).get("teachers_share")
    rows = [ShareRow(label=_("Its teachers"), share=f"{taught:.3f}", interval="")] if taught is not None else []
    rows += [
        _share_row(str(JUDGED[name]), found["share"], found["share_low"], found["share_high"])
        for name, found in known.items()
    ]
    figures = [
        presentation.Figure(
            label=str(JUDGED[name]),
            value=percent(found["valid_rate"]),
            out_of=_("of %(answers)d answers could be used, in %(games)d held-out games")
            % {"answers": found["answers"], "games": found["scenarios"]},
            fraction=found["valid_rate"],
        )
        for name, found in known.items()
        if found["valid_rate"] is not None
    ]
    last = next((name for name in reversed(JUDGED) if name in known), "")
    return {
        "figures": tuple(figures),
        "charts": (),
        "compared": tuple(rows) if known else (),
        "measure": _(
            "The learner's share of the joint surplus, 0 without a deal, on held-out products; answers drawn. Its teachers' is of "
            "the games that were imitated."
        ),
        "games": tuple(_judged_games(folder / f"judge-{last}.jsonl")) if last else (),
        "compact": False,
    }


def _judged_games(file: Path) -> Iterator[GameRow]:
    """The best, the worst and some others of the games that a model was judged on."""
    played = [line for line in runs.lines(file) if line.get("share") is not None]
    order = sorted(range(len(played)), key=lambda k: played[k]["share"])
    chosen = {
        "worst": order[:GAMES_OF_A_KIND],
        "best": order[-GAMES_OF_A_KIND:][::-1],
        "random": order[GAMES_OF_A_KIND : -GAMES_OF_A_KIND or None][:: max(1, len(order) // (GAMES_OF_A_KIND + 1))],
    }
    for kind in ("best", "worst", "random"):
        for k in chosen[kind][: GAMES_OF_A_KIND + 1]:
            yield _game(
                {"chosen": kind, "game": k + 1, "share": played[k]["share"], "text": "\n".join(played[k]["game"])}
            )


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


STAGES = {
    "data": _lazy("writing its data"),
    "exploits": _lazy("looking for tricks"),
    "sft": _lazy("imitating"),
    "grpo": _lazy("learning by playing"),
    "evaluate": _lazy("being measured"),
    "judge": _lazy("being judged on held-out games"),
}
"""Stages for people."""


def _state(run: Run) -> str:
    if run.status == RunStatus.RUNNING and run.stage:
        return str(STAGES.get(run.stage, run.stage))
    if run.status == RunStatus.RUNNING:
        return _("Starting: the training stack is being loaded")
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
