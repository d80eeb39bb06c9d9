"""The page of one agent: what it is, its record, its style in five plots, its best and worst games.

What an agent does is no secret. Its record counts what leaderboards count: simulations, and games
that everybody in them gave as open data. An agent that is no longer installed keeps its record.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from csp.decorators import csp_update
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_GET

from agents import injection_scores, measured, model_log, registry
from agents.base import AgentSpec
from agents.measuring import interval
from agents.model_log import Usage
from markets import market_page
from markets.engine.money import format_amount
from markets.engine.scenarios import Family
from markets.models import ConsentScope, Episode, EpisodeSource
from markets.presentation import Figure
from negotiation_site import dashboards
from negotiation_site.dashboards import Chart
from negotiation_site.leaderboard import charts, pages, tables
from negotiation_site.leaderboard.facts import BUYER, MIXED, PERSON, SELLER, Array, Facts
from negotiation_site.leaderboard.tables import Board, Estimate, Line, Rows, Sample
from negotiation_site.leaderboard.words import (
    Name,
    count,
    decimals,
    estimated,
    kind_text,
    names,
    percent,
    signed,
    span,
)

SHOWN = 3
"""Best games, and worst ones."""
CANDIDATES = 40
"""Games looked at for them: some may not be open any more."""
SHARE_EDGES = (-0.2, 0.0, 0.05, 0.2, 0.4, 0.6, 0.8, 0.95, 1.0 + 1e-6, 1.2)
MOST_OPPONENTS = 20


@dataclass(frozen=True)
class Transcript:
    """A game that anybody may read."""

    url: str
    title: str
    seat: str
    against: str
    share: str
    price: str


@dataclass(frozen=True)
class AgentPage:
    """Context `page` of `agents/agent_detail.html`."""

    slug: str
    title: str
    summary: str
    facts: tuple[tuple[str, str], ...]
    """Label and text."""
    record: tuple[Figure, ...]
    record_text: str
    charts: tuple[Chart, ...]
    best: tuple[Transcript, ...]
    worst: tuple[Transcript, ...]
    board_url: str
    play_url: str


@dataclass(frozen=True)
class _Game:
    """A candidate for the best and worst games."""

    episode: int
    role: int
    opponent: str
    share: float
    price: float
    """nan without a deal."""


@dataclass(frozen=True)
class _Record:
    """What is worked out once."""

    record: tuple[Figure, ...]
    record_text: str
    charts: tuple[Chart, ...]
    best: tuple[_Game, ...]
    worst: tuple[_Game, ...]


@require_GET
@csp_update({"style-src": ["'unsafe-inline'"]})  # type: ignore[arg-type]  # Plotly writes style attributes.
def agent_page(request: HttpRequest, slug: str) -> HttpResponse:
    """One agent."""
    spec = _spec(slug)
    record = pages.worked_out(("agent", slug), lambda held: _record(held, slug))
    if spec is None and record is None:
        raise Http404(_("There is no agent called %(slug)s.") % {"slug": slug})
    best = () if record is None else _open(record.best)
    page = AgentPage(
        slug=slug,
        title=slug if spec is None else spec.title,
        summary=_("No longer installed; its record stays.") if spec is None else spec.summary,
        facts=() if spec is None else _facts(spec, to_staff=request.user.is_staff),
        record=() if record is None else record.record,
        record_text="" if record is None else record.record_text,
        charts=() if record is None else record.charts,
        best=best,
        worst=() if record is None else _open(record.worst, but=best),
        board_url=reverse("leaderboard"),
        play_url=reverse("market-list"),
    )
    return render(request, "agents/agent_detail.html", {"page": page})


def _spec(slug: str) -> AgentSpec | None:
    try:
        return registry.get_open(slug)
    except registry.UnknownAgent:
        return None


def _facts(spec: AgentSpec, *, to_staff: bool) -> tuple[tuple[str, str], ...]:
    """What is known of it; `to_staff` with the commands that measure it."""
    families = (
        _("every kind of market")
        if len(spec.families) == len(Family)
        else ", ".join(market_page.family_text(family) for family in spec.families)
    )
    facts = [
        (_("Decides"), kind_text(spec.kind)),
        (_("Seats"), ", ".join(_("seller") if role == "seller" else _("buyer") for role in spec.roles)),
        (_("Markets"), families),
        (_("Version"), spec.version),
        (_("Name in scripts"), spec.slug),
    ]
    if spec.source:
        facts.append((_("Where it comes from"), spec.source))
    score = injection_scores.of_agent(spec.slug, spec.version)
    if score is not None:
        broken = _("%(breaches)s of %(attempts)s attempts, attack set %(set)s, %(day)s") % {
            "breaches": count(score.breaches),
            "attempts": count(score.attempts),
            "set": score.set_version,
            "day": date_format(score.created_at),
        }
        if not score.whole:
            broken = _("%(score)s; some tables only") % {"score": broken}
        if to_staff:
            broken = _("%(told)s (%(command)s)") % {"told": broken, "command": score.command}
        facts.append((_("Attacks by words that got through"), broken))
    if spec.asks_models:
        facts += _usage(model_log.usage_of_agent(spec.slug, version=spec.version)) or _measured(spec, to_staff=to_staff)
    return tuple(facts)


def _measured(spec: AgentSpec, *, to_staff: bool) -> list[tuple[str, str]]:
    """What was measured elsewhere of a version that has answered nothing here, or how to measure it."""
    label = _("Answers of the model that were used")
    found = measured.answers_of(spec.slug, spec.version)
    if found is None:
        command = f"manage.py measure_model --agent {spec.slug} --market MARKET --store"
        told = _("not measured yet")
        return [(label, _("%(told)s (%(command)s)") % {"told": told, "command": command} if to_staff else told)]
    low, high = interval(found.used, found.answered) or (0.0, 1.0)
    told = _("%(share)s of %(answers)s (95 %% interval: %(low)s to %(high)s), measured on %(day)s") % {
        "share": percent(found.used / found.answered),
        "answers": count(found.answered),
        "low": percent(low),
        "high": percent(high),
        "day": date_format(found.on),
    }
    return [(label, _("%(told)s (%(command)s)") % {"told": told, "command": found.command} if to_staff else told)]


def _usage(usage: Usage) -> list[tuple[str, str]]:
    """What a version's calls to its model came to; nothing where it made none."""
    if usage.valid_rate is None or usage.valid_between is None:
        return []
    low, high = usage.valid_between
    answers, rooms = usage.calls - usage.not_answered, usage.in_rooms
    found = [
        (
            _("Answers of the model that were used"),
            _("%(share)s of %(answers)s (95 %% interval: %(low)s to %(high)s)")
            % {
                "share": percent(usage.valid_rate),
                "answers": count(answers),
                "low": percent(low),
                "high": percent(high),
            },
        ),
        (
            _("Calls to the model"),
            _("%(rooms)s in rooms, %(measured)s in simulated games")
            % {"rooms": count(rooms), "measured": count(usage.calls - rooms)},
        ),
        (
            _("Tokens, read and written"),
            _("%(read)s and %(written)s, %(each)s a call")
            % {
                "read": count(usage.input_tokens),
                "written": count(usage.output_tokens),
                "each": count(round((usage.input_tokens + usage.output_tokens) / max(1, answers))),
            },
        ),
    ]
    if usage.mean_ms is not None:
        found.append((_("Mean time of an answer"), _("%(seconds)s s") % {"seconds": f"{usage.mean_ms / 1000:.1f}"}))
    if usage.cost_micros is not None:
        found.append((_("Cost of its calls"), f"{usage.cost_micros / 1_000_000:.4f}"))
    return found


# --- Record -----------------------------------------------------------------------------------------


def _record(held: Facts, slug: str) -> _Record | None:
    codes = [code for code, (known, _version) in enumerate(held.agents) if known == slug]
    own = held.agent_rows & np.isin(held["agent"], codes)
    if not own.any():
        return None
    named = names(held)
    by_role = {role: _line(held, own & (held["role"] == role)) for role in (SELLER, BUYER)}
    known = {role: line for role, line in by_role.items() if line is not None}
    board, _named = pages.agents_board(pages.Filters())
    games = _games(held, own, named)
    return _Record(
        record=_figures(known),
        record_text=_record_text(board, set(codes), int(own.sum())),
        charts=_charts(held, own, known, named),
        best=games[:CANDIDATES],
        worst=games[::-1][:CANDIDATES],
    )


def _line(held: Facts, rows: Array) -> Line | None:
    """The figures of one agent's seats on one side, its versions together."""
    if not rows.any():
        return None
    return tables.alone(held, rows)


def _record_text(board: Board, codes: set[int], games: int) -> str:
    text = ngettext("%(count)s seat in games that are open.", "%(count)s seats in games that are open.", games) % {
        "count": count(games)
    }
    ranked = [line for line in board.lines if line.has_place]
    for place, line in enumerate(ranked, start=1):
        if line.agent in codes:
            return _(
                "%(text)s On equal terms it keeps %(share)s of the surplus (%(interval)s), place %(place)d of %(all)d "
                "over all markets."
            ) % {
                "text": text,
                "share": percent(line.equal_terms.value),
                "interval": span(line.equal_terms),
                "place": place,
                "all": len(ranked),
            }
    return text


def _figures(known: dict[int, Line]) -> tuple[Figure, ...]:
    figures = []
    for role, line in known.items():
        side = charts.role_text(role)
        figures += [
            Figure(
                label=_("Share of the surplus, %(side)s") % {"side": side},
                value=percent(line.share.value) or "–",
                out_of=_interval_text(line.share),
                note=_("No deal counts as 0. %(games)s seats.") % {"games": count(line.games)},
                fraction=line.share.value,
            ),
            Figure(
                label=_("Deals, %(side)s") % {"side": side},
                value=percent(line.deal_rate_with_gains.value) or "–",
                out_of=_("of games in which trade can gain"),
                fraction=line.deal_rate_with_gains.value,
            ),
            Figure(
                label=_("Rules kept, %(side)s") % {"side": side},
                value=percent(line.adherence.value) or "–",
                out_of=_("of its messages"),
                fraction=line.adherence.value,
            ),
        ]
        if line.rescaled.value is not None:
            figures.append(
                Figure(
                    label=_("Allocation above chance"),
                    value=percent(line.rescaled.value),
                    out_of=_("of the way from pairs by lot to the best matching"),
                    fraction=line.rescaled.value,
                )
            )
    return tuple(figures)


def _interval_text(estimate: Estimate) -> str:
    interval = span(estimate)
    return _("95 %% interval %(interval)s") % {"interval": interval} if interval else ""


# --- Style in five plots ----------------------------------------------------------------------------


def _charts(held: Facts, own: Array, known: dict[int, Line], named: Sequence[Name]) -> tuple[Chart, ...]:
    drawn = (
        _outcomes(held, own),
        _openings(held, own),
        _concessions(known),
        _tiers(known),
        _opponents(held, own, named),
    )
    return tuple(chart for chart in drawn if chart is not None)


def _outcomes(held: Facts, own: Array) -> Chart | None:
    labels = [
        _("%(low)d–%(high)d") % {"low": round(low * 100), "high": round(high * 100)}
        for low, high in pairwise(SHARE_EDGES)
    ]
    labels[0] = _("loss")
    labels[-1] = _("over 100")
    traces, rows = [], [[label] for label in labels]
    columns = [_("share of the surplus, percent")]
    for role, colour, _symbol in charts.ROLES:
        shares = held["share"][own & (held["role"] == role)]
        counts = tables.histogram(shares, SHARE_EDGES)
        total = sum(counts)
        if not total:
            continue
        traces.append(
            dashboards.bars(
                x=labels, y=[number / total for number in counts], name=charts.role_text(role), colour=colour
            )
        )
        columns.append(_("games %(side)s, of %(total)s") % {"side": charts.role_text(role), "total": count(total)})
        for row, number in zip(rows, counts, strict=True):
            row.append(count(number))
    if not traces:
        return None
    return dashboards.plot(
        "agent-outcomes",
        title=_("How much does it come away with?"),
        caption=_("Games by share of the surplus"),
        note=_("Out of its games in which something could be gained; 0 is mostly no deal."),
        traces=traces,
        columns=columns,
        rows=rows,
        x=dashboards.axis(_("share of the surplus, percent"), type="category"),
        y=dashboards.share_axis(_("part of its games")),
        barmode="group",
    )


def _openings(held: Facts, own: Array) -> Chart | None:
    traces, rows = [], []
    for role, colour, _symbol in charts.ROLES:
        openings = held["opening"][own & (held["role"] == role)]
        openings = openings[~np.isnan(openings)]
        if not len(openings):
            continue
        cuts = np.quantile(openings, (0.05, 0.25, 0.5, 0.75, 0.95)).tolist()
        traces.append(
            {
                "type": "box",
                "name": charts.role_text(role),
                "y": [charts.role_text(role)],
                "orientation": "h",
                "lowerfence": [cuts[0]],
                "q1": [cuts[1]],
                "median": [cuts[2]],
                "q3": [cuts[3]],
                "upperfence": [cuts[4]],
                "marker": {"color": colour},
                "line": {"color": colour},
            }
        )
        rows.append((charts.role_text(role), count(len(openings)), *(f"{cut:.2f}" for cut in cuts)))
    if not traces:
        return None
    return dashboards.plot(
        "agent-openings",
        title=_("How boldly does it open?"),
        caption=_("First offer out of its own value"),
        note=_(
            "A seller's first ask out of its cost, a buyer's first bid out of its value: 1 is the own limit. The box "
            "holds half of its games, the line nine in ten."
        ),
        traces=traces,
        columns=(
            _("seat"),
            _("games"),
            _("5 in 100 below"),
            _("a quarter below"),
            _("median"),
            _("a quarter above"),
            _("5 in 100 above"),
        ),
        rows=rows,
        x=dashboards.axis(_("first offer / own value")),
        y={},
        showlegend=False,
        height=240,
    )


def _concessions(known: dict[int, Line]) -> Chart | None:
    everybody = pages.all_agents()
    lines = [(charts.role_text(role), line) for role, line in known.items() if line.concession.value is not None]
    if not lines:
        return None
    series = {role: place for place, role in ((1, SELLER), (0, BUYER))}
    traces = [
        dashboards.line(
            x=list(range(1, charts.steps(line) + 1)),
            y=list(line.path[: charts.steps(line)]),
            name=charts.role_text(role),
            series=series[role],
        )
        for role, line in known.items()
        if line.concession.value is not None
    ]
    traces.append(
        dashboards.line(
            x=list(range(1, charts.steps(everybody) + 1)),
            y=list(everybody.path[: charts.steps(everybody)]),
            name=_("all agents"),
            series=5,
        )
    )
    lines.append((_("all agents"), everybody))
    longest = max(charts.steps(line) for _name, line in lines)
    return dashboards.plot(
        "agent-concessions",
        title=_("How does it give way?"),
        caption=_("Part of the way from its first offer to its limit, given up by each offer"),
        note=_("Means over the games that got so far."),
        traces=traces,
        columns=(
            _("who"),
            _("mean step"),
            _("turns used before a deal"),
            *(_("offer %(number)d") % {"number": step} for step in range(1, longest + 1)),
        ),
        rows=[
            (
                name,
                estimated(line.concession),
                decimals(line.patience),
                *(percent(line.path[step], digits=0) if step < charts.steps(line) else "" for step in range(longest)),
            )
            for name, line in lines
        ],
        x=dashboards.axis(_("number of the own offer"), dtick=1),
        y=dashboards.share_axis(_("part of the way given up")),
    )


def _tiers(known: dict[int, Line]) -> Chart | None:
    lines = [(role, line) for role, line in known.items() if line.tier_spread is not None]
    if not lines:
        return None
    labels = charts.tier_labels((), "")
    series = {SELLER: 1, BUYER: 0}
    return dashboards.plot(
        "agent-tiers",
        title=_("Does it do as well with dear things?"),
        caption=_("Share of the surplus by fifth of the own value"),
        note=_("Fifths of its own seats by its private value, the cost as seller and the value as buyer."),
        traces=[
            dashboards.line(
                x=labels,
                y=[tier.value for tier in line.tier_share],
                name=charts.role_text(role),
                series=series[role],
                intervals=line.tier_share,
            )
            for role, line in lines
        ],
        columns=(_("seat"), *labels, _("spread")),
        rows=[
            (charts.role_text(role), *(estimated(tier) for tier in line.tier_share), percent(line.tier_spread))
            for role, line in lines
        ],
        x=dashboards.axis(_("own value, in fifths")),
        y=dashboards.share_axis(_("share of the surplus")),
    )


def _opponents(held: Facts, own: Array, named: Sequence[Name]) -> Chart | None:
    rows = Rows(held, own)
    key = (rows["opponent"].astype("i8") - MIXED) * 2 + rows["role"]
    codes = np.flatnonzero(np.bincount(key))
    column, columns = tables.renumbered(key)
    cluster, clusters, _scenarios = tables.clusters_of(rows)
    sample = Sample(column, columns, cluster, clusters)
    shares: list[Estimate] = []
    sample.ask_mean(rows["share"], shares.extend)
    sample.answer()
    games = np.bincount(column, minlength=columns)
    met = [
        (int(code % 2), _opponent_text(int(code // 2) + MIXED, named), shares[place], int(games[place]))
        for place, code in enumerate(codes.tolist())
        if shares[place].value is not None
    ]
    if not met:
        return None
    met.sort(key=lambda each: -(each[2].value or 0.0))
    drawn = met[:MOST_OPPONENTS] if len(met) > MOST_OPPONENTS else met
    labels = list(dict.fromkeys(text for _role, text, _share, _games in drawn))
    traces = []
    for role, colour, symbol in charts.ROLES:
        lines = [each for each in drawn if each[0] == role]
        if lines:
            traces.append(
                dashboards.points(
                    x=[share.value for _role, _text, share, _games in lines],
                    y=[text for _role, text, _share, _games in lines],
                    name=charts.role_text(role),
                    colour=colour,
                    symbol=symbol,
                    x_intervals=[share for _role, _text, share, _games in lines],
                    hovertemplate="%{y}: %{x:.1%}<extra></extra>",
                )
            )
    return dashboards.plot(
        "agent-opponents",
        title=_("Against whom does it do well?"),
        caption=_("Share of the surplus by opponent"),
        note=_("Each opponent over the scenarios they met in, which are not the same for all."),
        traces=traces,
        columns=(_("opponent"), _("seat"), _("share, no deal = 0"), _("games")),
        rows=[(text, charts.role_text(role), estimated(share), count(number)) for role, text, share, number in met],
        x=dashboards.share_axis(_("share of the surplus")),
        y={"categoryorder": "array", "categoryarray": labels[::-1]},
        height=max(260, 28 * len(labels) + 140),
    )


def _opponent_text(code: int, named: Sequence[Name]) -> str:
    if code == PERSON:
        return _("people")
    return _("several kinds") if code == MIXED else named[code].title


# --- Best and worst games ---------------------------------------------------------------------------


def _games(held: Facts, own: Array, named: Sequence[Name]) -> tuple[_Game, ...]:
    """Its games by share, the best first; the best and the worst candidates alone."""
    index = np.flatnonzero(own & ~np.isnan(held["share"]))
    order = index[np.argsort(-held["share"][index], kind="stable")]
    ends = order if len(order) <= 2 * CANDIDATES else np.concatenate([order[:CANDIDATES], order[-CANDIDATES:]])
    return tuple(
        _Game(
            episode=int(held["episode"][row]),
            role=int(held["role"][row]),
            opponent=_opponent_text(int(held["opponent"][row]), named),
            share=float(held["share"][row]),
            price=float(held["price"][row]),
        )
        for row in ends.tolist()
    )


def _open(games: Sequence[_Game], *, but: Sequence[Transcript] = ()) -> tuple[Transcript, ...]:
    """The first of them that are open to everybody as the database has it now, one an opponent."""
    known = {transcript.url for transcript in but}
    stored = {
        episode.pk: episode
        for episode in Episode.objects.filter(
            pk__in=[game.episode for game in games], consent_scope=ConsentScope.PUBLIC
        )
        .exclude(source=EpisodeSource.LIVE, market__reveals_values=False)
        .select_related("market")
    }
    shown: dict[tuple[str, int], Transcript] = {}
    for game in games:
        episode = stored.get(game.episode)
        if episode is None or len(shown) == SHOWN or (game.opponent, game.role) in shown:
            continue
        url = reverse("transcript", args=[episode.public_id])
        if url in known:
            continue
        shown[game.opponent, game.role] = Transcript(
            url=url,
            title=episode.market.name,
            seat=charts.role_text(game.role),
            against=game.opponent,
            share=signed(percent(game.share, digits=0)),
            price="" if np.isnan(game.price) else format_amount(int(game.price), episode.currency),
        )
    return tuple(shown.values())
