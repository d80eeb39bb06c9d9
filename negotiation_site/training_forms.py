"""The form that launches a run: what can be chosen, what a choice would take, and the launch.

For staff with the permission to train (`training_pages.may_train`). A view reads the form into a
`services.Wish`, makes one call into `training.services` or `training.expectations`, and renders; the
preview writes nothing. Not here: runs' pages (`training_pages`). Nothing here loads torch.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
from django.contrib import messages
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy as _lazy
from django.utils.translation import ngettext
from django.views.decorators.http import require_http_methods, require_POST

from agents import registry
from agents.base import Kind as AgentKind
from agents.learned import published
from agents.registry import UnknownAgent
from markets import selectors
from markets.engine.protocol import Role
from markets.engine.scenarios import Family, SellerTurns, decode_recipe
from markets.models import Market
from markets.presentation import Choice, Figure
from markets.setup import SetupError, check_slug
from negotiation_site.leaderboard.words import count
from negotiation_site.stack import full_stack_missing
from negotiation_site.training_pages import REWARDS, STAGES, duration, may_train
from training import datasets, expectations, guards, market_games, presets, runs, services
from training.config import ConfigError
from training.datasets import Chosen, DataError, Kind
from training.language.config import EMBEDDED, LanguageRun
from training.language.config import Market as Haggling
from training.models import Run
from training.services import RunError, Wish

REFUSED = (RunError, ConfigError, DataError, SetupError, UnknownAgent)
"""Errors whose text is a sentence for whoever launches."""
KNOBS: tuple[tuple[str, Any, Any], ...] = (
    ("sft.demonstrations", _lazy("Demonstrations"), _lazy("Games that the preset's own demonstrators play.")),
    ("sft.steps", _lazy("Steps of imitation"), ""),
    ("grpo.rollouts", _lazy("Rollouts"), _lazy("Rounds of playing and learning.")),
    ("grpo.games", _lazy("Games in a rollout"), ""),
    ("grpo.group", _lazy("Tries of each game"), _lazy("At least 2: what is learned is the difference between them.")),
    ("grpo.save_every", _lazy("Rollouts between checkpoints"), _lazy("What a resumed run repeats at most.")),
    ("evaluation.every", _lazy("Rollouts between looks"), _lazy("Looks at games kept apart; 0 for none.")),
    ("evaluation.final_episodes", _lazy("Games at the end"), _lazy("Behind the figures of its report.")),
)
"""Key of the configuration, label, help."""
LANGUAGE_KNOBS: tuple[tuple[str, Any, Any], ...] = (
    (
        "sft.rows",
        _lazy("Moves to imitate"),
        _lazy("Of the preset's own teachers; of another source all that there are."),
    ),
    ("adapter.rank", _lazy("Rank of the adapter"), _lazy("0 teaches the whole model.")),
    ("grpo.rollouts", _lazy("Rollouts"), _lazy("Rounds of playing and learning; 0 for imitation alone.")),
    ("grpo.games", _lazy("Games in a rollout"), ""),
    ("grpo.group", _lazy("Tries of each game"), _lazy("At least 2: what is learned is the difference between them.")),
    ("grpo.turns", _lazy("Messages of a game"), _lazy("Of the learner, in games that reinforcement plays.")),
    ("sft.save_every", _lazy("Steps between checkpoints"), _lazy("What a resumed run repeats at most.")),
    (
        "judging.watch_every",
        _lazy("Steps between looks"),
        _lazy("Looks at games of its own while it imitates; 0 for none."),
    ),
    ("judging.scenarios", _lazy("Games at the end"), _lazy("Held out; the untrained model plays them, too.")),
)
"""The same for a language model."""
PRESETS = {
    "tiny": _lazy("tiny: half a million weights"),
    "smollm2": _lazy("smollm2: 135 million"),
    "qwen3-8b": _lazy("qwen3-8b: 8 billion"),
    "qwen3-14b": _lazy("qwen3-14b: 14 billion"),
}
ABOUT = {
    "tiny": _lazy("Built from nothing: it learns the words of the game and no other language. A processor is enough."),
    "smollm2": _lazy("A language model that is taught an adapter, on a processor within an hour or so."),
    "qwen3-8b": _lazy("A language model from a folder on this server; it needs graphics processors."),
    "qwen3-14b": _lazy("A language model from a folder on this server; it needs graphics processors."),
}
KINDS = {
    Kind.CORPUS: _lazy("Imported human dialogues"),
    Kind.ROOMS: _lazy("People's games on this site"),
    Kind.DEMONSTRATIONS: _lazy("Scripted demonstrations"),
    Kind.TOURNAMENT: _lazy("An agent's games of a tournament"),
    Kind.BEST: _lazy("The best games of each scenario"),
}
MOST_PREVIEWED = 2_000
BOTH_SIDES = "both"
OPPOSITE = (
    *((Role.BUYER, family) for family in Family),
    (Role.SELLER, Family.BILATERAL),
)
"""Seats that a learner may face."""


class FormError(ValueError):
    """Something typed that cannot be read; the message is a sentence."""


# --- What the templates read ------------------------------------------------------------------------


@dataclass(frozen=True)
class Knob:
    """A number of the budget."""

    name: str
    label: str
    help: str
    value: str


@dataclass(frozen=True)
class OpponentLine:
    """An agent that may sit opposite."""

    slug: str
    title: str
    note: str
    ticked: bool
    weight: str


@dataclass(frozen=True)
class SourceGroup:
    """A kind of data and what of it is here."""

    label: str
    choices: tuple[Choice, ...]
    problem: str


@dataclass(frozen=True)
class FormPage:
    """Context `page` of `training/new.html`."""

    typed: Mapping[str, str]
    presets: tuple[Choice, ...]
    markets: tuple[Choice, ...]
    bases: tuple[Choice, ...]
    sources: tuple[SourceGroup, ...]
    own_demonstrators: bool
    consents: tuple[Choice, ...]
    rewards: tuple[Choice, ...]
    roles: tuple[Choice, ...]
    devices: tuple[Choice, ...]
    opponents: tuple[OpponentLine, ...]
    knobs: tuple[Knob, ...]
    knobs_of: str
    """The preset whose numbers these are."""
    about: str
    """What the preset is."""
    problem: str
    missing: tuple[str, ...]


@dataclass(frozen=True)
class PreviewPage:
    """What a run would take: context `preview` of `training/_preview.html`."""

    problem: str = ""
    """Why it cannot be launched; what it would take may be known all the same."""
    figures: tuple[Figure, ...] = ()
    stages: tuple[tuple[str, str], ...] = ()
    basis: str = ""
    left_out: str = ""
    sample: tuple[str, ...] = ()


# --- Views ------------------------------------------------------------------------------------------


@require_http_methods(["GET", "POST"])
def new(request: HttpRequest) -> HttpResponse:
    """The form with what its choice would take; a POST launches, or shows that anew where scripts do not run."""
    if not request.user.is_authenticated:
        return redirect_to_login(reverse("run-new"))
    _for_trainers(request)
    if request.method != "POST":
        start = _start(request)
        return render(request, "training/new.html", {"page": _page(start), "preview": _preview(start, ())})
    typed = {name: value for name, value in request.POST.items() if isinstance(value, str)}
    ticked = request.POST.getlist("opponents")
    if "preview" in request.POST:
        return render(
            request, "training/new.html", {"page": _page(typed, ticked=ticked), "preview": _preview(typed, ticked)}
        )
    try:
        if missing := full_stack_missing():
            raise RunError(
                _("This server was installed for playing: training needs %(packages)s. Run make install.")
                % {"packages": ", ".join(missing)}
            )
        run = services.launch(_wish(typed, ticked))
    except (*REFUSED, FormError) as error:
        page = _page(typed, ticked=ticked, problem=_said(error))
        return render(request, "training/new.html", {"page": page, "preview": _preview(typed, ticked)}, status=400)
    messages.info(request, _("The run waits for its device; this page follows it."))
    return redirect("run", name=run.name)


@require_POST
def preview(request: HttpRequest) -> HttpResponse:
    """What the run that is typed so far would take."""
    _for_trainers(request)
    typed = {name: value for name, value in request.POST.items() if isinstance(value, str)}
    found = _preview(typed, request.POST.getlist("opponents"))
    return render(request, "training/_preview.html", {"preview": found})


def _for_trainers(request: HttpRequest) -> None:
    if not may_train(request):
        raise PermissionDenied


# --- Reading ----------------------------------------------------------------------------------------


def _wish(typed: Mapping[str, str], ticked: Sequence[str]) -> Wish:
    """The run that was asked for. Raises `FormError` and what `REFUSED` names."""
    name = typed.get("name", "").strip()
    check_slug(name, what="A run's name")
    market = selectors.market_on_record(typed.get("market", "").replace("\0", ""))
    if market is None:
        raise FormError(_("Choose a market."))
    opponents, weights = _opponents(typed, ticked)
    return Wish(
        name=name,
        preset_name=typed.get("preset", presets.PRESETS[0]),
        market=market,
        model_tokens=_whole(typed, "model_tokens", _("The number of tokens"), most=10_000_000_000),
        overrides=_overrides(typed),
        opponents=opponents,
        weights=weights,
        model_calls=_whole(typed, "model_calls", _("The number of model answers"), most=10_000_000),
        reward=typed.get("reward", ""),
        base=typed.get("base_folder", "").strip() or typed.get("base", ""),
        source=_source(typed),
        device=typed.get("device", "") or "auto",
        role=_role(typed),
    )


def _role(typed: Mapping[str, str]) -> Role | None:
    """The learner's side; None for both, which a language model alone can learn."""
    if typed.get("role") == BOTH_SIDES:
        if typed.get("preset", presets.PRESETS[0]) not in presets.LANGUAGE:
            raise FormError(_("A small model learns one side: choose the seller or the buyer."))
        return None
    return Role.BUYER if typed.get("role") == Role.BUYER.value else Role.SELLER


def _opponents(typed: Mapping[str, str], ticked: Sequence[str]) -> tuple[tuple[str, ...], tuple[float, ...]]:
    """Slugs with weights: those ticked, then those written out, one `SLUG WEIGHT` a line."""
    found = {slug: typed.get(f"weight-{slug}", "") for slug in ticked}
    for line in typed.get("more_opponents", "").splitlines():
        slug, _space, weight = line.strip().partition(" ")
        if slug:
            found[slug] = weight
    weights = tuple(_weight(slug, text) for slug, text in found.items())
    return tuple(found), weights if len(set(weights)) > 1 else ()


def _weight(slug: str, text: str) -> float:
    try:
        weight = float(text.strip().replace(",", ".") or 1)
    except ValueError:
        weight = -1.0
    if not 0 < weight < 1e6:
        raise FormError(
            _("The weight of %(slug)s must be a positive number, not %(text)s.") % {"slug": slug, "text": text}
        )
    return weight


def _overrides(typed: Mapping[str, str]) -> tuple[str, ...]:
    """Changes of the preset: the seed, the budget's numbers that were typed, then free lines."""
    changes = []
    preset_name = typed.get("preset", presets.PRESETS[0])
    own = typed.get("knobs_of", preset_name) == preset_name  # Else they are another preset's: its own hold.
    knobs = tuple((key, str(label)) for key, label, _help in knobs_of(preset_name)) if own else ()
    for key, label in (("seed", _("The seed")), *knobs):
        if typed.get(key, "").strip():
            changes.append(f"{key}={_whole(typed, key, label, most=10_000_000)}")
    changes += [line.strip() for line in typed.get("changes", "").splitlines() if line.strip()]
    return tuple(changes)


def knobs_of(preset_name: str) -> tuple[tuple[str, Any, Any], ...]:
    """The numbers that a preset's form asks for."""
    return LANGUAGE_KNOBS if preset_name in presets.LANGUAGE else KNOBS


def _whole(typed: Mapping[str, str], key: str, label: str, *, most: int) -> int:
    text = typed.get(key, "").strip()
    number = int(text or 0) if (text or "0").isdecimal() and len(text) < 12 else -1
    if not 0 <= number <= most:
        raise FormError(
            _("%(label)s must be a whole number from 0 to %(most)s.") % {"label": label, "most": f"{most:,}"}
        )
    return number


def _source(typed: Mapping[str, str]) -> Chosen | None:
    kind, _colon, name = typed.get("source", "").partition(":")
    if not kind:
        return None
    if kind not in {each.value for each in Kind}:
        raise FormError(_("There is no such source of data."))
    text = typed.get("min_share", "").strip().replace(",", ".")
    try:
        least = float(text) if text else None
    except ValueError:
        raise FormError(_("The least share must be a number such as 0.5.")) from None
    return Chosen(
        kind=Kind(kind),
        name=name,
        agent=typed.get("agent", "").strip(),
        consent=typed.get("consent", "public"),
        best_of=_whole(typed, "best_of", _("The best of a scenario"), most=1_000) or 1,
        min_share=least,
        most=_whole(typed, "most", _("The number of conversations"), most=datasets.MOST) or MOST_PREVIEWED,
        seed=_whole(typed, "seed", _("The seed"), most=10_000_000) or 1,
    )


# --- Showing ----------------------------------------------------------------------------------------


def _start(request: HttpRequest) -> dict[str, str]:
    """What the form shows first: the preset's values, or those of a run to launch another one like."""
    like = Run.objects.filter(name=request.GET.get("like", "").replace("\0", "")).select_related("market").first()
    if like is None:
        preset_name = request.GET.get("preset", "")
        preset_name = preset_name if preset_name in presets.PRESETS else presets.PRESETS[0]
        return {"market": _fitting_market(preset_name, request.GET.get("market", "")), "preset": preset_name}
    config = services.config_of(like)
    game, opponents = (
        (config.market, config.market.opponents)
        if isinstance(config, LanguageRun)
        else (
            config.game,
            config.game.opponents,
        )
    )
    weights = game.weights or (1.0,) * len(opponents)
    told = msgspec.to_builtins(config)
    found = {key: str(_at(told, key)) for key, _label, _help in knobs_of(like.preset)}
    source = msgspec.json.decode(like.source, type=Chosen) if like.source else None
    if source is not None:
        found |= {
            "source": f"{source.kind.value}:{source.name}",
            "agent": source.agent,
            "consent": source.consent,
            "best_of": str(source.best_of),
            "min_share": "" if source.min_share is None else f"{source.min_share:g}",
            "most": str(source.most),
        }
    return found | {
        "preset": like.preset,
        "market": like.market.slug,
        "role": _side(config),
        "reward": config.grpo.reward if isinstance(config, LanguageRun) else config.game.reward,
        "seed": str(config.seed),
        "device": config.device,
        "base_folder": "" if config.base == EMBEDDED else config.base,
        "model_calls": str(game.model_calls),
        "model_tokens": str(game.model_tokens),
        "more_opponents": "\n".join(f"{slug} {weight:g}" for slug, weight in zip(opponents, weights, strict=True)),
    }


def _fitting_market(preset_name: str, wanted: str) -> str:
    """The market that is wanted where the preset can learn in it; else one of the size that the preset is made for."""
    language = preset_name in presets.LANGUAGE
    fits = market_games.can_be_haggled if language else market_games.can_be_learned
    slugs = {market.slug: decode_recipe(market.recipe) for market in _by_name() if fits(market)}
    if wanted in slugs or not slugs:
        return wanted
    if not language:
        sizes = expectations.MEASURED.config.game.sizes
        for slug, recipe in slugs.items():
            if isinstance(recipe.mechanism, SellerTurns) and (recipe.buyers, recipe.mechanism.turns) in sizes:
                return slug
    return next(iter(slugs))


def _by_name() -> Iterable[Market]:
    return selectors.current_markets().order_by("name")


def _side(config: services.Config) -> str:
    """The learner's side as the form has it."""
    if not isinstance(config, LanguageRun):
        return config.game.role.value
    return config.market.roles[0].value if len(config.market.roles) == 1 else BOTH_SIDES


def _choice(value: str, label: str, selected: bool) -> Choice:
    return Choice(value=value, label=label, selected=selected)


def _at(told: Mapping[str, Any], key: str) -> Any:
    part, _dot, name = key.partition(".")
    return told[part][name]


def _page(typed: Mapping[str, str], *, ticked: Sequence[str] = (), problem: str = "") -> FormPage:
    preset_name = typed.get("preset") or presets.PRESETS[0]
    return FormPage(
        typed=typed,
        presets=tuple(_choice(name, str(PRESETS[name]), name == preset_name) for name in presets.PRESETS),
        markets=_markets(typed.get("market", "")),
        bases=_bases(typed.get("base", "")),
        sources=tuple(_group(offered, typed.get("source", "")) for offered in datasets.list_sources()),
        own_demonstrators=not typed.get("source"),
        consents=tuple(
            _choice(value, label, typed.get("consent", "public") == value)
            for value, label in (("public", _("given as open data")), ("research", _("also for research here")))
        ),
        rewards=tuple(
            _choice(
                name,
                f"{str(label).capitalize()} ({name})" if name else str(label).capitalize(),
                name == typed.get("reward", ""),
            )
            for name, label in REWARDS.items()
        ),
        roles=tuple(
            _choice(side, label, typed.get("role", Role.SELLER.value) == side)
            for side, label in (
                (Role.SELLER.value, _("the seller")),
                (Role.BUYER.value, _("the buyer, one to one")),
                (BOTH_SIDES, _("either side (language models)")),
            )
        ),
        devices=_devices(typed.get("device", "")),
        opponents=_lines(typed, ticked),
        knobs=_knobs(typed, preset_name),
        knobs_of=preset_name,
        about=str(ABOUT.get(preset_name, "")),
        problem=problem,
        missing=full_stack_missing(),
    )


def _markets(chosen: str) -> tuple[Choice, ...]:
    """Markets that can be learned in, the chosen one first ticked."""
    found = []
    for market in _by_name():
        small, language = market_games.can_be_learned(market), market_games.can_be_haggled(market)
        if small or language:
            label = _("%(market)s (language models, too)") % {"market": market.name} if language else market.name
            found.append(_choice(market.slug, label, market.slug == chosen))
    return tuple(found)


def _bases(chosen: str) -> tuple[Choice, ...]:
    cards = [card for folder in (published.SHIPPED, published.own_folder()) for _path, card in published.cards(folder)]
    return (
        _choice("", _("What the preset says"), not chosen),
        *(
            _choice(card.slug, _("The published agent %(title)s") % {"title": card.title}, card.slug == chosen)
            for card in cards
        ),
    )


def _group(offered: datasets.Offered, chosen: str) -> SourceGroup:
    choices = []
    for option in offered.options:
        value = f"{offered.kind.value}:{option.name}"
        licence = f" ({option.licence})" if option.licence and offered.kind is Kind.CORPUS else ""
        size = (
            ""
            if offered.kind is Kind.DEMONSTRATIONS
            else ngettext(", %(count)s conversation", ", %(count)s conversations", option.conversations)
            % {"count": count(option.conversations)}
        )
        choices.append(_choice(value, f"{option.title}{size}{licence}", value == chosen))
    return SourceGroup(str(KINDS[offered.kind]), tuple(choices), offered.problem)


def _devices(chosen: str) -> tuple[Choice, ...]:
    cards = [f"cuda:{k}" for k in range(16) if not guards.missing_device(f"cuda:{k}")]
    names = {"auto": _("automatic"), "cpu": _("the processor")}
    return tuple(
        _choice(
            name, names.get(name, _("graphics processor %(number)s") % {"number": name}), name == (chosen or "auto")
        )
        for name in ("auto", "cpu", *cards)
    )


def _lines(typed: Mapping[str, str], ticked: Sequence[str]) -> tuple[OpponentLine, ...]:
    """Every agent that may sit opposite; none ticked stands for the market's own."""
    lines = []
    for spec in (*registry.all_specs(), *registry.entered_specs()):
        if spec.kind is AgentKind.REFERENCE or not any(
            spec.can_play(role=role, family=family) for role, family in OPPOSITE
        ):
            continue
        if spec.slug in registry.HELD_OUT_BUYERS:
            continue
        note = _("asks a language model") if services.asks_models(spec) else ""
        lines.append(
            OpponentLine(spec.slug, spec.title, note, spec.slug in ticked, typed.get(f"weight-{spec.slug}", "1") or "1")
        )
    return tuple(lines)


def _knobs(typed: Mapping[str, str], preset_name: str) -> tuple[Knob, ...]:
    told: dict[str, Any] = {}
    if preset_name in presets.LANGUAGE:
        told = msgspec.to_builtins(presets.language_preset(preset_name, name="any", market=Haggling()))
    elif preset_name in presets.PRESETS:
        told = msgspec.to_builtins(presets.preset(preset_name, name="any", game=expectations.MEASURED.config.game))
    own = typed.get("knobs_of", preset_name) == preset_name
    return tuple(
        Knob(key, str(label), str(help_), (typed.get(key) if own else "") or (str(_at(told, key)) if told else ""))
        for key, label, help_ in knobs_of(preset_name)
    )


def _preview(typed: Mapping[str, str], ticked: Sequence[str]) -> PreviewPage:
    """What a run would take, or why it cannot be launched."""
    try:
        named = typed if typed.get("name", "").strip() else {**typed, "name": "not-named-yet"}
        wish = _wish(named, ticked)
        config = services.drafted(wish)
        if isinstance(config, LanguageRun):
            return _language_preview(config, wish)
        services.check(config, wish)
        found = expectations.expect(config, wish.source)
    except (*REFUSED, FormError) as error:
        return PreviewPage(problem=_said(error))
    if not found.rows:
        return PreviewPage(problem=_("This data set is empty: nothing of it can be imitated."))
    return PreviewPage(
        figures=_figures(found),
        stages=tuple((str(STAGES[stage]), duration(found.seconds[stage])) for stage in runs.STAGES),
        basis=_basis(found),
        left_out=_left_out(found),
        sample=found.sample,
    )


def _figures(found: expectations.Expected) -> tuple[Figure, ...]:
    counted = _("counted") if found.tokens_counted else _("scaled from games played just now")
    return (
        Figure(label=_("Time"), value=duration(found.all_seconds), out_of=_("of all stages, estimated")),
        Figure(
            label=_("Memory"),
            value=_("%(count).1f GB") % {"count": found.peak_bytes / 1e9},
            out_of=_("at most, estimated; %(count)s weights") % {"count": count(found.parameters)},
        ),
        Figure(label=_("Rows"), value=count(found.rows), out_of=_("dialogues to imitate, one a row")),
        Figure(label=_("Tokens"), value=count(found.tokens), out_of=_("of all rows, %(how)s") % {"how": counted}),
        Figure(label=_("Games"), value=count(found.games), out_of=_("that reinforcement plays")),
    )


def _basis(found: expectations.Expected) -> str:
    basis = found.basis
    whole = duration(sum(basis.seconds.values()))
    grpo = basis.config.grpo
    told = {
        "name": basis.name,
        "time": whole,
        "rollouts": grpo.rollouts,
        "games": grpo.games * grpo.group,
        "memory": f"{basis.peak_bytes / 1e9:.1f}",
    }
    if basis.name:
        start = _(
            "Scaled from the run %(name)s of this server: %(time)s and %(memory)s GB for %(rollouts)d rollouts of "
            "%(games)d games."
        )
    else:
        start = _(
            "Scaled from a run that comes with the code, measured on one of two shared processor cores: %(time)s and "
            "%(memory)s GB for %(rollouts)d rollouts of %(games)d games. Your machine will differ; after the first "
            "finished run its own time is taken."
        )
    return start % told + " " + _("Each stage is scaled by its games, their turns and the number of weights.")


def _left_out(found: expectations.Expected) -> str:
    gone = found.looked_at - found.rows
    if not gone:
        return ""
    return ngettext(
        "%(count)s negotiation is left out: its moves cannot be written in the words of this model.",
        "%(count)s negotiations are left out: their moves cannot be written in the words of this model.",
        gone,
    ) % {"count": count(gone)}


def _said(error: Exception) -> str:
    """A refusal as the form says it: a number by its label there, not by its key."""
    sentence = str(error)
    for key, label, _help in (*KNOBS, *LANGUAGE_KNOBS):
        sentence = sentence.replace(key, f"“{label}”")
    return sentence


# --- What teaching a language model would take ------------------------------------------------------


def _language_preview(config: LanguageRun, wish: Wish) -> PreviewPage:
    """What it would take, and why it cannot be launched here where it cannot. Raises what `REFUSED` names."""
    problem = ""
    try:
        services.check(config, wish)
    except RunError as error:
        problem = str(error)
    found = expectations.expect_language(config, wish.source)
    if not found.rows:
        return PreviewPage(problem=_("This data set is empty: nothing of it can be imitated."))
    return PreviewPage(
        problem=problem,
        figures=_language_figures(found),
        stages=tuple((str(STAGES[stage]), duration(seconds)) for stage, seconds in found.seconds.items()),
        basis=_language_basis(found),
        left_out=_moves_left_out(found),
        sample=found.sample,
    )


def _language_figures(found: expectations.LanguageExpected) -> tuple[Figure, ...]:
    counted = _("counted") if found.tokens_counted else _("scaled from some of them")
    unknown = _("not to be told")
    figures = [
        Figure(
            label=_("Time"),
            value=duration(found.all_seconds) if found.seconds else unknown,
            out_of=_("of all stages, estimated"),
        ),
        Figure(
            label=_("Memory"),
            value=_gigabytes(found.peak_bytes) or unknown,
            out_of=_("at most, of %(device)s, estimated; %(disk)s on the disk")
            % {"device": found.device, "disk": _gigabytes(found.disk_bytes) or unknown},
        ),
        Figure(label=_("Rows"), value=count(found.rows), out_of=_("moves to imitate, one a row")),
        Figure(
            label=_("Tokens"),
            value=count(found.tokens),
            out_of=_("of all rows at four characters each, %(how)s") % {"how": counted},
        ),
        Figure(
            label=_("Weights"),
            value=_weights(found.learned) if found.parameters else unknown,
            out_of=_("that learn, of %(all)s in %(base)s")
            % {"all": _weights(found.parameters) if found.parameters else unknown, "base": found.title},
        ),
    ]
    if found.games:
        figures.insert(4, Figure(label=_("Games"), value=count(found.games), out_of=_("that reinforcement plays")))
    return tuple(figures)


def _weights(amount: int) -> str:
    """A number of weights for people."""
    if amount >= 1_000_000_000:
        return _("%(count).1f billion") % {"count": amount / 1e9}
    if amount >= 1_000_000:
        return _("%(count).1f million") % {"count": amount / 1e6}
    return count(amount)


def _gigabytes(amount: int | None) -> str:
    if amount is None:
        return ""
    if amount < 1_000_000_000:
        return _("%(count)d MB") % {"count": round(amount / 1e6)}
    return _("%(count).1f GB") % {"count": amount / 1e9}


def _language_basis(found: expectations.LanguageExpected) -> str:
    pace = found.pace
    if pace.name:
        start = _("Scaled from the pace of the run %(name)s of this server.") % {"name": pace.name}
    elif pace.assumed:
        start = _(
            "Nothing was measured on a graphics processor here yet: a pace of %(flops)s thousand billion operations a second is "
            "assumed, which yours will differ from."
        ) % {"flops": count(round(pace.flops / 1e12))}
    else:
        start = _(
            "Scaled from a run of the preset smollm2 on one processor thread that had it for itself; where others share it, it "
            "takes longer. After the first finished run its own pace is taken."
        )
    return start + " " + _("Memory and room on the disk are reckoned from the weights and one batch.")


def _moves_left_out(found: expectations.LanguageExpected) -> str:
    gone = found.looked_at - found.rows
    if gone <= 0 or not found.tokens_counted:
        return ""
    return ngettext(
        "%(count)s move is left out: it was refused, played by the clock, or has no words in the protocol.",
        "%(count)s moves are left out: they were refused, played by the clock, or have no words in the protocol.",
        gone,
    ) % {"count": count(gone)}
