"""Pages of tournaments and suites: lists, a tournament's progress and result, holding one, CSV.

Everybody may look. Holding, cancelling and taking up are for the staff and whoever may build markets.
A view makes one call into `tournaments.services` or `results` and renders; plots are in
`tournament_charts`.
"""

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import chain, repeat
from typing import Any

from csp.decorators import csp_update
from django.contrib import messages
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.db import transaction
from django.http import Http404, HttpRequest, HttpResponse, StreamingHttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from agents import registry
from agents.base import AgentSpec
from agents.registry import UnknownAgent
from markets import market_page, presentation, selectors
from markets.engine.protocol import Role
from markets.engine.scenarios import Family, decode_recipe
from markets.setup import SetupError, check_slug
from negotiation_site import agent_groups, tournament_charts
from negotiation_site.builder_pages import may_build
from negotiation_site.dashboards import Chart
from negotiation_site.leaderboard.pages import Cell, Column, Table, plain
from negotiation_site.leaderboard.words import count, decimal, estimated, percent, signed, span
from negotiation_site.tournament_charts import roles_text, title, worded
from training.bootstrap import Estimate
from training.findings import HABITS, Association, Conceding, Habits
from training.models import Tournament
from training.ratings import Rated, Ratings
from training.suites import cards
from training.suites.cards import Card
from training.tournaments import results, services, tasks
from training.tournaments.design import TournamentError

PROVISIONAL = 30
"""Scenarios under which places are called provisional."""
POLL_S = 2
DEFAULT_SCENARIOS = "100"
DEFAULT_SEED = "1"
A_PAGE = 100


# --- What the templates read ------------------------------------------------------------------------


@dataclass(frozen=True)
class TournamentRow:
    """A line of the list."""

    name: str
    url: str
    market: str
    size: str
    state: str
    best: str


@dataclass(frozen=True)
class ProgressPage:
    """How far a tournament is."""

    state: str
    error: str
    url: str
    """Where to ask again; empty once it stands still."""
    figure: presentation.Figure
    cancel_url: str
    resume_url: str
    every_s: int = POLL_S


@dataclass(frozen=True)
class TournamentPage:
    """One tournament."""

    name: str
    market: str
    market_url: str
    lead: str
    progress: ProgressPage | None
    """None once it is finished."""
    provisional: str
    charts: tuple[Chart, ...]
    tables: tuple[Table, ...]
    sentences: tuple[str, ...]
    """What was found about conceding."""
    ranking: Table | None
    differences: Table | None
    hash: str
    command: str
    ranking_csv: str
    games_csv: str


@dataclass(frozen=True)
class AgentChoice:
    """An agent to tick."""

    slug: str
    title: str
    note: str
    families: str
    """Kinds of market that it plays, with spaces."""
    ticked: bool


@dataclass(frozen=True)
class AgentChoices:
    """Agents to tick under one heading."""

    key: str
    heading: str
    sentence: str
    agents: tuple[AgentChoice, ...]
    is_open: bool


@dataclass(frozen=True)
class MarketChoice(presentation.Choice):
    """A market to choose."""

    family: str


@dataclass(frozen=True)
class FormPage:
    """What was typed so far."""

    name: str
    markets: tuple[MarketChoice, ...]
    groups: tuple[AgentChoices, ...]
    agents: int
    ticked: int
    scenarios: str
    seed: str
    problem: str


@dataclass(frozen=True)
class SuiteCard:
    """A suite as people read it."""

    name: str
    title: str
    version: str
    facts: tuple[tuple[str, str], ...]
    table: Table
    command: str


# --- Who may ----------------------------------------------------------------------------------------


def _for_holders(request: HttpRequest) -> None:
    if not may_build(request):
        raise PermissionDenied


def _known(name: str) -> Tournament:
    try:
        return services.known_tournament(name)
    except TournamentError:
        raise Http404(_("There is no tournament called %(name)s.") % {"name": name}) from None


# --- List and detail --------------------------------------------------------------------------------


@require_GET
def tournament_list(request: HttpRequest) -> HttpResponse:
    """Every tournament, newest first."""
    rows = [_row(tournament) for tournament in Tournament.objects.select_related("market")[:A_PAGE]]
    return render(request, "tournaments/list.html", {"rows": rows, "may_hold": may_build(request)})


def _row(tournament: Tournament) -> TournamentRow:
    known = results.kept(tournament)
    state = str(tournament.get_status_display())
    if tournament.status in services.OPEN:
        state = _("%(state)s, %(share)s") % {
            "state": state,
            "share": percent(results.progress(tournament).share, digits=0),
        }
    return TournamentRow(
        name=tournament.name,
        url=reverse("tournament", args=[tournament.name]),
        market=tournament.market.name,
        size=_size_text(tournament),
        state=state,
        best=_first_places(known.ratings) if known else "",
    )


def _first_places(rated: Ratings) -> str:
    """Who came first, among the agents of each set of roles."""
    leaders: dict[tuple[Role, ...], Rated] = {}
    for agent in rated.agents:
        leaders.setdefault(agent.roles, agent)
    texts = []
    for roles, agent in leaders.items():
        text = f"{title(agent.agent)}, {estimated(worded(agent.share))}"
        texts.append(f"{text}, {roles_text(roles)}" if len(leaders) > 1 else text)
    return "; ".join(texts)


def _size_text(tournament: Tournament) -> str:
    agents, pairs = len(results.agents_of(tournament)), len(results.pairs_of(tournament))
    return _("%(agents)s agents, %(pairs)s pairs, %(games)s negotiations") % {
        "agents": count(agents),
        "pairs": count(pairs),
        "games": count(pairs * tournament.scenarios),
    }


@require_GET
@csp_update({"style-src": ["'unsafe-inline'"]})  # type: ignore[arg-type]  # Plotly writes style attributes.
def tournament(request: HttpRequest, name: str) -> HttpResponse:
    """One tournament: its progress while it is played, its result afterwards."""
    found = _known(name)
    return render(request, "tournaments/detail.html", {"page": _page(found, may_hold=may_build(request))})


@require_GET
@never_cache
def progress(request: HttpRequest, name: str) -> HttpResponse:
    """How far a tournament is, for the page that asks now and then; reloads it when there is news."""
    found = _known(name)
    response = render(
        request, "tournaments/_progress.html", {"progress": _progress(found, may_hold=may_build(request))}
    )
    if found.status not in services.OPEN:
        response["HX-Refresh"] = "true"
    return response


def _progress(found: Tournament, *, may_hold: bool) -> ProgressPage:
    so_far = results.progress(found)
    is_open = found.status in services.OPEN
    return ProgressPage(
        state=str(found.get_status_display()),
        error=found.error,
        url=reverse("tournament-progress", args=[found.name]) if is_open else "",
        figure=presentation.Figure(
            label=_("Played so far"),
            value=percent(so_far.share, digits=0),
            out_of=_("%(done)s of %(total)s negotiations") % {"done": count(so_far.done), "total": count(so_far.total)},
            fraction=so_far.share,
        ),
        cancel_url=reverse("tournament-cancel", args=[found.name]) if may_hold and is_open else "",
        resume_url=reverse("tournament-resume", args=[found.name])
        if may_hold and found.status in services.STOPPED
        else "",
    )


def _page(found: Tournament, *, may_hold: bool) -> TournamentPage:
    known = results.kept(found)
    names = results.agents_of(found)
    rated = known.ratings if known else None
    return TournamentPage(
        name=found.name,
        market=found.market.name,
        market_url=reverse("market", args=[found.market.slug]),
        lead=_("%(size)s: each pair in the same %(scenarios)s scenarios, drawn with seed %(seed)s.")
        % {"size": _size_text(found), "scenarios": count(found.scenarios), "seed": found.seed},
        progress=None if known else _progress(found, may_hold=may_hold),
        provisional=_provisional(rated) if rated else "",
        charts=tournament_charts.of_tournament(known, currency=decode_recipe(found.market.recipe).currency)
        if known
        else (),
        tables=(
            *(_habits_table(known.findings.agents, role) for role in Role),
            *(_associations_table(known.findings.associations, role) for role in Role),
        )
        if known
        else (),
        sentences=tuple(_conceding(row) for row in known.findings.conceding if row.agents > 1) if known else (),
        ranking=_ranking(rated, dict(names)) if rated else None,
        differences=_differences(rated) if rated and rated.differences else None,
        hash=found.result_sha256,
        command=f"manage.py tournament --agents {','.join(slug for slug, _version in names)} "
        f"--market {found.market.slug} --scenarios {found.scenarios} --seed {found.seed} --name NAME",
        ranking_csv=reverse("tournament-ranking-csv", args=[found.name]) if known else "",
        games_csv=reverse("tournament-games-csv", args=[found.name]) if known else "",
    )


def _provisional(rated: Ratings) -> str:
    if rated.scenarios_with_gains >= PROVISIONAL:
        return ""
    return _(
        "Provisional: trade could gain in %(count)s scenarios only, and places need about %(least)s to settle."
    ) % {"count": count(rated.scenarios_with_gains), "least": PROVISIONAL}


def _ranking(rated: Ratings, versions: dict[str, str]) -> Table:
    return Table(
        caption=_("Who keeps most"),
        sentence=_(
            "Share is the mean of the own surplus over what there was to share, in both roles and against everybody, "
            "no deal counted as 0, with its 95 % interval over scenarios. Places are among agents of the same roles."
        ),
        columns=(
            Column(_("Agent"), numeric=False),
            Column(_("Place"), _("as far as it can be told")),
            Column(_("Share"), _("of the surplus")),
            Column(_("As seller")),
            Column(_("As buyer")),
            Column(_("Deals"), _("out of all games")),
            Column(_("Bradley-Terry"), _("1000 is the middle")),
            Column(_("Violations"), _("out of own messages")),
        ),
        rows=tuple(_ranked(agent, versions) for agent in rated.agents),
    )


def _ranked(agent: Rated, versions: dict[str, str]) -> tuple[Cell, ...]:
    roles = "" if len(agent.roles) > 1 else roles_text(agent.roles)
    return (
        Cell(title(agent.agent), note=roles, url=_agent_url(agent.agent), mark=_version_mark(agent.agent, versions)),
        Cell(str(agent.rank), note=_places(agent)),
        _share_cell(agent.share),
        *(_share_cell(agent.by_role[role].share if role in agent.by_role else Estimate(None)) for role in Role),
        _share_cell(agent.deal_rate),
        Cell(
            decimal(agent.bradley_terry.value, digits=0),
            note=span(worded(agent.bradley_terry), scale=1, digits=0),
        ),
        Cell(count(agent.violations), note=_("of %(count)s") % {"count": count(agent.messages)}),
    )


def _agent_url(slug: str) -> str:
    """The agent's page while it is installed."""
    installed = (*registry.all_specs(), *registry.entered_specs())
    return reverse("agent", args=[slug]) if any(spec.slug == slug for spec in installed) else ""


def _version_mark(slug: str, versions: dict[str, str]) -> str:
    version = versions.get(slug, "")
    return "" if version in ("", "1") else _("version %(version)s") % {"version": version}


def _places(agent: Rated) -> str:
    if agent.rank_best == agent.rank_worst:
        return ""
    return _("%(best)d to %(worst)d") % {"best": agent.rank_best, "worst": agent.rank_worst}


def _share_cell(estimate: Estimate) -> Cell:
    return Cell(percent(estimate.value), note=span(worded(estimate)))


def _differences(rated: Ratings) -> Table:
    return Table(
        caption=_("One against the other"),
        sentence=_(
            "Differences of the shares in the same scenarios. p is corrected for all comparisons (Holm); wins, ties and "
            "losses count scenarios, roles and opponents one by one."
        ),
        columns=(
            Column(_("First"), numeric=False),
            Column(_("Second")),
            Column(_("Difference"), _("points of the share")),
            Column(_("p")),
            Column(_("Wins, ties, losses"), _("of the first")),
        ),
        rows=tuple(
            (
                Cell(title(gap.a)),
                Cell(title(gap.b)),
                Cell(
                    signed("" if gap.share.value is None else f"{gap.share.value * 100:+.1f}"),
                    note=span(worded(gap.share)),
                ),
                Cell(_level(gap.p_holm)),
                Cell(f"{count(gap.wins)}, {count(gap.ties)}, {count(gap.losses)}"),
            )
            for gap in rated.differences
        ),
    )


def _level(p: float | None) -> str:
    if p is None:
        return ""
    return _("under .01") if p < 0.01 else f"{p:.2f}"


def _habits_table(rows: Sequence[Habits], role: Role) -> Table:
    texts = {
        Role.SELLER: (_("How sellers went about it"), _("first ask / cost")),
        Role.BUYER: (_("How buyers went about it"), _("first bid / value")),
    }[role]
    return Table(
        caption=texts[0],
        sentence=_(
            "Means over games with 95 % intervals over scenarios. Price slope: how far the deal price follows the other "
            "side's value, 0 not at all, 1 cent by cent."
        ),
        columns=(
            Column(_("Agent"), numeric=False),
            Column(_("Opening"), texts[1]),
            Column(_("Concession rate"), _("of the way, each step")),
            Column(_("Patience"), _("of the turns, before a deal")),
            Column(_("Different offers"), _("a game")),
            Column(_("Price slope")),
            Column(_("Share"), _("of the surplus")),
            Column(_("Deals"), _("out of all games")),
            Column(_("Spread of shares"), _("best price tier less worst")),
        ),
        rows=tuple(
            (
                Cell(title(row.agent)),
                *(_plain_cell(getattr(row, habit)) for habit in HABITS),
                _share_cell(row.share),
                _share_cell(row.deal_rate),
                _share_cell(Estimate(row.share_spread, row.share_spread_low, row.share_spread_high)),
            )
            for row in rows
            if row.role is role
        ),
    )


def _associations_table(rows: Sequence[Association], role: Role) -> Table:
    names = {
        "opening_ratio": _("Opening"),
        "concession_rate": _("Concession rate"),
        "patience": _("Patience"),
        "distinct_offers": _("Different offers"),
        "price_slope": _("Price slope"),
    }
    return Table(
        caption={
            Role.SELLER: _("What went with faring well: sellers"),
            Role.BUYER: _("What went with faring well: buyers"),
        }[role],
        sentence=_(
            "Correlations from -1 to 1 with 95 % intervals over scenarios. Over agents: Spearman's, by rank, with three "
            "agents at least. Over games: Pearson's, over every seat. They say what goes together, not what causes what."
        ),
        columns=(
            Column(_("Habit"), numeric=False),
            Column(_("Share"), _("over agents")),
            Column(_("Deals"), _("over agents")),
            Column(_("Share"), _("over games")),
            Column(_("Deals"), _("over games")),
        ),
        rows=tuple(
            (
                Cell(names[row.habit]),
                _plain_cell(Estimate(row.with_share, row.with_share_low, row.with_share_high)),
                _plain_cell(Estimate(row.with_deal_rate, row.with_deal_rate_low, row.with_deal_rate_high)),
                _plain_cell(Estimate(row.seats_with_share, row.seats_with_share_low, row.seats_with_share_high)),
                _plain_cell(Estimate(row.seats_with_deal, row.seats_with_deal_low, row.seats_with_deal_high)),
            )
            for row in rows
            if row.role is role
        ),
    )


def _plain_cell(estimate: Estimate) -> Cell:
    return Cell(decimal(estimate.value), note=span(worded(estimate), scale=1, digits=2))


def _conceding(row: Conceding) -> str:
    who = _("sellers") if row.role is Role.SELLER else _("buyers")
    if row.holds is None:
        return _("Too few %(who)s made steps here to say whether conceding goes with faring worst.") % {"who": who}
    claim = (
        _("Conceding %(who)s show the lowest share and the lowest completion here.")
        if row.holds
        else _("Conceding %(who)s do not show both the lowest share and the lowest completion here.")
    ) % {"who": who}
    share, deals = row.lowest_share_agent, row.lowest_deal_rate_agent
    found = [
        _("%(most)s concedes most.") % {"most": title(row.most_conceding or "")},
        _("All have the same share.")
        if share is None
        else _("The lowest share is that of %(who)s.") % {"who": title(share)},
        _("All have the same deal rate.")
        if deals is None
        else _("The lowest deal rate is that of %(who)s.") % {"who": title(deals)},
    ]
    return " ".join([claim, *found])


# --- CSV --------------------------------------------------------------------------------------------


@require_GET
def ranking_csv(request: HttpRequest, name: str) -> HttpResponse:
    """The ranking as fractions, one agent a row."""
    rows = results.document(_finished(name))["ranking"]
    columns = [column for column in rows[0] if column != "roles"]
    return _csv(
        f"{name}-ranking",
        [[*columns, "roles"], *([*(row[column] for column in columns), " ".join(row["roles"])] for row in rows)],
    )


@require_GET
def games_csv(request: HttpRequest, name: str) -> HttpResponse:
    """Every game, one a row, streamed."""
    found = _finished(name)
    pairs = results.pairs_of(found)
    columns = (
        "episode__public_id", "episode__first_best_cents", "episode__seller_surplus_cents",
        "episode__buyer_surplus_cents", "episode__deals", "episode__seller_violations", "episode__buyer_violations",
        "episode__record_sha256",
    )  # fmt: skip
    games = found.games.order_by("pair", "scenario").values_list("pair", "scenario", *columns)

    def rows() -> Iterator[Sequence[Any]]:
        yield ["seller", "buyer", "scenario", *(column.removeprefix("episode__") for column in columns)]
        for pair, scenario, *figures in games.iterator(chunk_size=2000):
            yield [*pairs[pair], scenario, *figures]

    return _csv(f"{name}-games", rows())


def _finished(name: str) -> Tournament:
    found = _known(name)
    if not results.finished(found):
        raise Http404(_("This tournament has no result yet."))
    return found


class _Echo:
    """A file that hands its lines back."""

    def write(self, line: str) -> str:
        return line


def _csv(name: str, rows: Any) -> HttpResponse:
    writer = csv.writer(_Echo())
    lines = (
        writer.writerow(["" if cell is None else plain(cell) if isinstance(cell, str) else cell for cell in row])
        for row in rows
    )
    response: Any = StreamingHttpResponse(lines, content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="parley-{name}.csv"'
    return response


# --- Holding one ------------------------------------------------------------------------------------


@require_http_methods(["GET", "POST"])
@never_cache
def hold(request: HttpRequest) -> HttpResponse:
    """The form of a tournament, and holding it."""
    if not request.user.is_authenticated:
        return redirect_to_login(reverse("tournament-new"))
    _for_holders(request)
    if request.method == "GET":
        return render(request, "tournaments/new.html", {"page": _form(request)})
    try:
        opened = _open(request)
    except (TournamentError, SetupError, UnknownAgent) as error:
        return render(request, "tournaments/new.html", {"page": _form(request, problem=str(error))}, status=400)
    return redirect("tournament", name=opened.name)


def _open(request: HttpRequest) -> Tournament:
    """Write the tournament down and call for workers. Raises an error whose text is a sentence."""
    posted = request.POST
    name = posted.get("name", "").strip()
    check_slug(name, what=_("A tournament's name"))
    market = selectors.market(posted.get("market", ""))
    if market is None:
        raise TournamentError(_("Choose a market."))
    with transaction.atomic():
        opened, made = services.open_tournament(
            name=name,
            market=market,
            agents=[registry.get_open(slug) for slug in posted.getlist("agents")],
            scenarios=_whole(posted.get("scenarios", ""), what=_("The number of scenarios")),
            seed=_whole(posted.get("seed", ""), what=_("The seed")),
        )
        if not made:
            raise TournamentError(_("There is already a tournament of this name; choose another."))
        transaction.on_commit(partial(tasks.announce, opened))
    return opened


def _whole(text: str, *, what: str) -> int:
    try:
        return int(text.strip())
    except ValueError:
        raise TournamentError(_("%(what)s must be a whole number.") % {"what": what}) from None


def _form(request: HttpRequest, *, problem: str = "") -> FormPage:
    typed = request.POST if request.method == "POST" else request.GET
    chosen = selectors.market(typed.get("market", ""))
    ticked = set(typed.getlist("agents"))
    specs = (*registry.all_specs(), *registry.entered_specs())
    return FormPage(
        name=typed.get("name", ""),
        markets=tuple(
            MarketChoice(
                value=market.slug,
                label=f"{market.name} ({market_page.family_text(Family(market.family))})",
                selected=chosen is not None and market.slug == chosen.slug,
                family=market.family,
            )
            for market in selectors.current_markets().order_by("id")
        ),
        groups=tuple(
            AgentChoices(
                key=group.key,
                heading=group.heading,
                sentence=group.sentence,
                agents=tuple(
                    AgentChoice(
                        slug=spec.slug,
                        title=spec.title,
                        note="" if len({_plays(each) for each in group.specs}) == 1 else _plays(spec),
                        families=" ".join(spec.families),
                        ticked=spec.slug in ticked,
                    )
                    for spec in group.specs
                ),
                is_open=first or any(spec.slug in ticked for spec in group.specs),
            )
            for first, group in zip(chain((True,), repeat(False)), agent_groups.grouped(specs), strict=False)
        ),
        agents=len(specs),
        ticked=sum(spec.slug in ticked for spec in specs),
        scenarios=typed.get("scenarios", DEFAULT_SCENARIOS),
        seed=typed.get("seed", DEFAULT_SEED),
        problem=problem,
    )


def _plays(spec: AgentSpec) -> str:
    """What it can be, in words: roles, and kinds of market where it does not play all."""
    roles = roles_text(spec.roles)
    if len(spec.families) == len(Family):
        return roles
    families = ", ".join(market_page.family_text(family).lower() for family in spec.families)
    return _("%(roles)s; %(families)s") % {"roles": roles, "families": families}


@require_POST
def cancel(request: HttpRequest, name: str) -> HttpResponse:
    """Stop a tournament."""
    _for_holders(request)
    found = _known(name)
    try:
        services.cancel(found)
    except TournamentError as error:
        messages.error(request, str(error))
    return redirect("tournament", name=name)


@require_POST
def resume(request: HttpRequest, name: str) -> HttpResponse:
    """Let a stopped tournament go on from where it stopped."""
    _for_holders(request)
    found = _known(name)
    if services.reopen(found):
        tasks.announce(found)
    return redirect("tournament", name=name)


# --- Suites -----------------------------------------------------------------------------------------


@require_GET
def suites(request: HttpRequest) -> HttpResponse:
    """What the benchmark suites are, and how reference agents fare in them."""
    return render(request, "tournaments/suites.html", {"suites": [_suite(card) for card in cards.cards()]})


def _suite(card: Card) -> SuiteCard:
    several = card.family is not Family.BILATERAL
    opponents = {slug for role in card.roles for slug in card.opponents(role)}
    return SuiteCard(
        name=card.name,
        title=card.title,
        version=_("version %(version)d") % {"version": card.version},
        facts=(
            (_("What is played"), card.what),
            (_("What it shows"), card.why),
            (_("Where it comes from"), card.source),
            (
                _("Negotiations"),
                ngettext("%(count)s for an agent", "%(count)s for an agent", 2)
                % {"count": count(sum(card.episodes(role) for role in card.roles))},
            ),
            (_("Opponents"), ", ".join(title(slug) for slug in sorted(opponents))),
            (_("Metric"), card.metric),
            (_("Licence"), card.licence),
            (_("SHA-256 of the scenarios"), card.sha256),
        ),
        table=Table(
            caption=_("References"),
            sentence=_("Measured when this version was frozen. 100 % is the optimum."),
            columns=(
                Column(_("Agent"), numeric=False),
                Column(_("Role")),
                Column(_("Share"), _("of the surplus")),
                Column(_("Deals"), _("out of all")),
                *((Column(_("Allocation quality"), _("of the best welfare")),) if several else ()),
            ),
            rows=tuple(
                (
                    Cell(title(reference.agent)),
                    Cell(_("seller") if reference.role is Role.SELLER else _("buyer")),
                    _share_cell(Estimate(reference.share, reference.share_low, reference.share_high)),
                    Cell(percent(reference.deal_rate)),
                    *((Cell(percent(reference.allocation_quality)),) if several else ()),
                )
                for reference in card.references
            ),
        ),
        command=f"manage.py benchmark --suite {card.name} --agent AGENT --json",
    )
