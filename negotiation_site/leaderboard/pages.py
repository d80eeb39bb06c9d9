"""The leaderboard pages: agents, people, and the same figures as CSV.

A request names filters in its query string; the same address gives the same page for the same
record. What an address asks for that does not exist is said in a sentence and left out. Worked-out
pages are kept for the record they were made from: a page may be some seconds behind new games, and never
behind an erasure or a withdrawn consent.

Only games that everybody in them gave as open data, and simulations, are in any figure here.
"""

import csv
import logging
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar
from urllib.parse import urlencode

import numpy as np
from csp.decorators import csp_update
from django.conf import settings
from django.core.paginator import EmptyPage, InvalidPage, Paginator
from django.db import Error as DatabaseError
from django.db import connections
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils import translation
from django.utils.formats import date_format
from django.utils.translation import get_language, ngettext
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET

from agents import injection_scores, registry
from agents.base import Kind
from agents.injection.breaches import Breach
from agents.models import InjectionScore
from markets import identity, market_page, presentation
from markets.engine.figures import ViolationType
from markets.engine.protocol import Role
from markets.engine.scenarios import Family
from markets.models import Market, Participant
from negotiation_site.dashboards import Chart
from negotiation_site.leaderboard import charts, facts, people, tables
from negotiation_site.leaderboard.facts import BUYER, SELLER, Array, Facts
from negotiation_site.leaderboard.tables import PROVISIONAL, Board, Breaches, Estimate, Line
from negotiation_site.leaderboard.words import (
    Name,
    agent_url,
    count,
    decimal,
    kind_text,
    names,
    percent,
    signed,
    span,
)

log = logging.getLogger(__name__)

FRESH_S = 10.0
"""How long a worked-out page is shown although games have been added."""
STALE_S = 120.0
"""How long it is shown while a newer one is worked out beside; only in a web process, which has the time."""
LOOK_S, RENEW_S = 10.0, 60.0
"""How often a web process looks for new games, and works the first pages out anew when there are some."""
KEPT = 64
"""Worked-out pages that are kept."""
PEOPLE_A_PAGE = 50
MOST_SHOWN = 60
"""Characters of an unknown word that are quoted back."""

ROLE_CODES = {Role.SELLER.value: SELLER, Role.BUYER.value: BUYER}


# --- What a page is told ----------------------------------------------------------------------------


@dataclass(frozen=True)
class Cell:
    """One cell of a table."""

    text: str
    note: str = ""
    url: str = ""
    mark: str = ""
    """A word that stands beside it, such as "provisional"."""
    label: str = ""
    """Its column, where rows become blocks."""


@dataclass(frozen=True)
class Column:
    """Head of a column."""

    text: str
    note: str = ""
    numeric: bool = True
    term: str = ""
    """Anchor of the glossary's entry that the whole head leads to, where its words alone would not tell which."""


@dataclass(frozen=True)
class Table:
    """A table with what it says."""

    caption: str
    sentence: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[Cell, ...], ...]
    mine: int = -1
    """Row of whoever looks, from 0; -1 for none."""

    def __post_init__(self) -> None:
        labels = [column.text for column in self.columns]
        rows = tuple(
            tuple(replace(cell, label=label) for cell, label in zip(row, labels, strict=True)) for row in self.rows
        )
        object.__setattr__(self, "rows", rows)


@dataclass(frozen=True)
class Filter:
    """One select of the form."""

    name: str
    label: str
    choices: tuple[presentation.Choice, ...]


@dataclass(frozen=True)
class BoardPage:
    """Context `page` of `leaderboard/agents.html`."""

    count_text: str
    compared_text: str
    main: Table | None
    charts: tuple[Chart, ...]
    tables: tuple[Table, ...]
    empty_text: str = ""


@dataclass(frozen=True)
class LadderPage:
    """Context `page` of `leaderboard/people.html`."""

    count_text: str
    table: Table | None
    previous_url: str = ""
    next_url: str = ""
    page_text: str = ""
    mine_text: str = ""


# --- Filters ----------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Filters:
    """What a board is about. Empty filters nothing."""

    family: str = ""
    market: str = ""
    role: str = ""
    kind: str = ""

    def query(self) -> str:
        """The query string that says the same, with its question mark; empty for everything."""
        asked = {name: value for name, value in vars(self).items() if value}
        return f"?{urlencode(asked)}" if asked else ""


NAMES = ("family", "market", "role", "kind")


def read_filters(query: Mapping[str, str], *, only: tuple[str, ...] = NAMES) -> tuple[Filters, list[str]]:
    """The filters of a query string, and for each that means nothing what is wrong and what is shown instead."""
    filters, problems = _read_filters(query, only)
    return filters, [f"{wrong} {instead}" for wrong, instead in problems]


def _read_filters(query: Mapping[str, str], only: tuple[str, ...]) -> tuple[Filters, list[tuple[str, str]]]:
    asked = {name: query.get(name, "").strip() for name in only}
    problems = []

    def refuse(name: str, sentence: str, instead: str) -> None:
        word = asked.pop(name)
        problems.append((sentence % {"word": word if len(word) <= MOST_SHOWN else f"{word[:MOST_SHOWN]}…"}, instead))

    if asked.get("family") and asked["family"] not in {family.value for family in Family}:
        refuse("family", _("There is no kind of market called “%(word)s”."), _("All kinds are shown."))
    if asked.get("market") and not _is_market(asked["market"]):
        refuse("market", _("There is no market called “%(word)s”."), _("All markets are shown."))
    if asked.get("role") and asked["role"] not in ROLE_CODES:
        refuse("role", _("A seat is the seller's or a buyer's, not “%(word)s”."), _("Both are shown."))
    if asked.get("kind") and asked["kind"] not in {kind.value for kind in Kind}:
        refuse("kind", _("There is no kind of agent called “%(word)s”."), _("All kinds are shown."))
    return Filters(**asked), problems


def _is_market(slug: str) -> bool:
    return "\0" not in slug and Market.objects.filter(slug=slug).exists()  # PostgreSQL takes no NUL.


def chosen_rows(held: Facts, filters: Filters, named: tuple[Name, ...]) -> Array:
    """The seats of agents that the filters leave."""
    rows = held.agent_rows & matching(held, filters)
    if filters.kind:
        codes = [code for code, name in enumerate(named) if name.kind == filters.kind]
        rows &= np.isin(held["agent"], codes)
    return rows


def matching(held: Facts, filters: Filters) -> Array:
    """Seats in games of the family, market and seat asked for."""
    rows = np.ones(len(held), bool)
    if filters.family:
        rows &= held["family"] == (held.families.index(filters.family) if filters.family in held.families else -1)
    if filters.market:
        versions = list(Market.objects.filter(slug=filters.market).values_list("pk", flat=True))
        rows &= np.isin(held["market"], versions)
    if filters.role:
        rows &= held["role"] == ROLE_CODES[filters.role]
    return rows


def form(filters: Filters, *, only: tuple[str, ...] = NAMES) -> tuple[Filter, ...]:
    """The selects, with what is chosen."""
    markets = {market.slug: market.name for market in Market.objects.filter(is_listed=True).order_by("pk")}
    if filters.market and filters.market not in markets:
        markets |= {market.slug: market.name for market in Market.objects.filter(slug=filters.market).order_by("pk")}
    options = {
        "family": (
            _("Kind of market"),
            [(family.value, market_page.family_text(family)) for family in Family],
        ),
        "market": (_("Market"), sorted(markets.items(), key=lambda item: item[1].casefold())),
        "role": (_("Seat"), [(Role.SELLER.value, _("seller")), (Role.BUYER.value, _("buyer"))]),
        "kind": (_("Kind of agent"), [(kind.value, kind_text(kind)) for kind in Kind]),
    }
    return tuple(
        Filter(
            name=name,
            label=options[name][0],
            choices=(
                presentation.Choice(value="", label=_("all"), selected=not getattr(filters, name)),
                *(
                    presentation.Choice(value=value, label=label, selected=getattr(filters, name) == value)
                    for value, label in options[name][1]
                ),
            ),
        )
        for name in only
    )


# --- Worked out once --------------------------------------------------------------------------------

Worked = TypeVar("Worked")


@dataclass(frozen=True)
class _Kept:
    version: tuple[int, int]
    at: float
    value: Any


_kept: dict[tuple[Any, ...], _Kept] = {}
_working = threading.RLock()
"""Held while one page is worked out; a page may ask for what another is made of."""


def worked_out(key: tuple[Any, ...], work: Callable[[Facts], Worked]) -> Worked:
    """What `work` makes of the record: kept, and made anew when it is too old."""
    key = (*key, get_language())
    kept = _kept.get(key)
    if _inside.version is not None:  # What a page is made of is of the same record as the page.
        return kept.value if kept is not None and kept.version == _inside.version else _work(key, work)
    newest = facts.newest()
    if kept is not None and _still_good(kept, newest):
        return kept.value
    if kept is not None and settings.ROLE == "web" and _still_good(kept, newest, for_s=STALE_S):
        _beside(key, work)
        return kept.value
    with _working:
        kept = _kept.get(key)
        if kept is not None and _still_good(kept, newest):
            return kept.value
        return _work(key, work)


def _work(key: tuple[Any, ...], work: Callable[[Facts], Worked]) -> Worked:
    with _working:
        outer = _inside.version
        held = facts.current()
        _inside.version = held.version
        try:
            value = work(held)
        finally:
            _inside.version = outer
        _kept.pop(key, None)
        _kept[key] = _Kept(held.version, time.monotonic(), value)
        while len(_kept) > KEPT:
            del _kept[next(iter(_kept))]
    return value


class _Inside(threading.local):
    """The record that this thread is working a page out of; None while it is not."""

    version: tuple[int, int] | None = None


_inside = _Inside()
_busy: set[tuple[Any, ...]] = set()


def _beside(key: tuple[Any, ...], work: Callable[[Facts], Worked]) -> None:
    """Work a page out anew while the last one is shown; once at a time."""
    if key in _busy:
        return
    _busy.add(key)

    def renew() -> None:
        try:
            with translation.override(key[-1]):
                _work(key, work)
        except DatabaseError as error:
            log.warning("A leaderboard stays as it was: %s", error)
        finally:
            _busy.discard(key)

    _apart(renew)


def _apart(job: Callable[[], None]) -> None:
    """Run a job in a thread, on a connection of its own."""

    def run() -> None:
        try:
            job()
        finally:
            connections.close_all()

    threading.Thread(target=run, name="leaderboards", daemon=True).start()


def _still_good(kept: _Kept, newest: tuple[int, int], *, for_s: float | None = None) -> bool:
    """Whether a page is of this record, or only some new games behind and not for long."""
    if kept.version == newest:
        return True
    limit = FRESH_S if for_s is None else for_s
    return kept.version[1] == newest[1] and time.monotonic() - kept.at < limit


def forget() -> None:
    """Work everything out anew with the next request."""
    with _working:
        _kept.clear()


def keep_up(*, wait: Callable[[float], bool], look_s: float = LOOK_S, renew_s: float = RENEW_S) -> None:
    """Read new games as they come and work the first pages out now and then, so that nobody waits for either.

    `wait(seconds)` returns true when it is time to stop.
    """
    worked_at: tuple[int, int] | None = None
    until_renewal = 0.0
    while True:
        try:
            held = facts.current()
            if until_renewal <= 0 and held.version != worked_at:
                _renew(Filters())
                worked_at, until_renewal = held.version, renew_s
        except DatabaseError as error:
            log.warning("The leaderboards are not kept up while the database does not answer: %s", error)
            connections.close_all()
        if wait(look_s):
            return
        until_renewal -= look_s


def _renew(filters: Filters) -> None:
    """Work the pages that are looked at most out anew."""
    for key, work in (("board", _board), ("ladder", _ladder)):
        _work((key, filters, get_language()), partial(work, filters=filters))


def start_keeping_up() -> None:
    """`keep_up` beside a web process, for as long as it lives."""
    _apart(lambda: keep_up(wait=threading.Event().wait))


def _board(held: Facts, *, filters: Filters) -> tuple[Board, tuple[Name, ...]]:
    named = names(held)
    return tables.board(held, chosen_rows(held, filters, named)), named


def _ladder(held: Facts, *, filters: Filters) -> list[people.Standing]:
    return people.ladder(held, matching(held, filters)).standings()


def agents_board(filters: Filters) -> tuple[Board, tuple[Name, ...]]:
    """The board of the filters, and the names of its agents."""
    return worked_out(("board", filters), partial(_board, filters=filters))


def all_agents() -> Line:
    """How agents give way, all of them taken together."""
    return worked_out(("all agents",), lambda held: tables.usual(held, held.agent_rows))


def ladder(filters: Filters) -> list[people.Standing]:
    """The people's ladder of the filters."""
    return worked_out(("ladder", filters), partial(_ladder, filters=filters))


# --- Agents -----------------------------------------------------------------------------------------


@require_GET
@csp_update({"style-src": ["'unsafe-inline'"]})  # Plotly writes style attributes.
def agents_page(request: HttpRequest) -> HttpResponse:
    """How agents compare."""
    filters, problems = read_filters(request.GET)
    page = worked_out(("agents page", filters), lambda held: _board_page(held, filters))
    attacked = _injection_table(commands=request.user.is_staff)
    if attacked.rows:
        page = replace(page, tables=(*page.tables, attacked))
    return render(
        request,
        "leaderboard/agents.html",
        {
            "page": page,
            "filters": form(filters),
            "problems": problems,
            "filtered": filters != Filters(),
            "csv_url": reverse("leaderboard-csv") + filters.query(),
        },
    )


def _board_page(held: Facts, filters: Filters) -> BoardPage:
    board, named = agents_board(filters)
    if not board.lines:
        return BoardPage("", "", None, (), (), _("No games of agents fit these filters.") if len(held) else "")
    currency = held.currencies[_only_currency(held, filters)] if board.currencies == 1 else ""
    return BoardPage(
        count_text=_("%(seats)s seats of %(agents)s agents in %(games)s games about %(scenarios)s different scenarios.")
        % {
            "seats": count(board.games),
            "agents": count(len(board.lines)),
            "games": count(board.episodes),
            "scenarios": count(board.scenarios),
        },
        compared_text=_compared_text(board),
        main=_main_table(board, named),
        charts=charts.of_board(board, named, currency=currency),
        tables=(_rules_table(board, named), _rationality_table(board, named)),
    )


def _only_currency(held: Facts, filters: Filters) -> int:
    """The currency of a selection that has one."""
    return int(held["currency"][np.flatnonzero(held.agent_rows & matching(held, filters))[0]])


def _compared_text(board: Board) -> str:
    if not board.tables:
        return _(
            "No two agents have filled the same seat in the same scenario against the same others yet, so the shares "
            "below are each over games of their own and must not be compared. A tournament changes that."
        )
    text = _(
        "Places go by the share on equal terms: only over the %(tables)s tables (one scenario, one seat, the same "
        "others) at which at least two of these agents sat."
    ) % {"tables": count(board.tables)}
    if board.strangers:
        text += " " + _("Agents that never sat at one table are compared through those that sat with both.")
    if board.apart:
        text += " " + ngettext(
            "%(count)d agent has met none of the others' tables and has no place.",
            "%(count)d agents have met none of the others' tables and have no place.",
            board.apart,
        ) % {"count": board.apart}
    return text


def _main_table(board: Board, named: tuple[Name, ...]) -> Table:
    ranked = [line for line in board.lines if line.has_place]
    places = {line.agent: place for place, line in enumerate(ranked, start=1)}
    quality = any(line.quality.value is not None for line in board.lines)
    columns = [
        Column(_("Agent"), numeric=False),
        Column(_("On equal terms"), _("share of the surplus, no deal = 0")),
        Column(_("Behind the best"), _("points of a percent")),
        Column(_("Bradley–Terry"), _("points around 1000")),
        Column(_("All its games"), _("share, whoever sat opposite")),
        Column(_("Deals"), _("where trade can gain")),
        Column(_("Rules kept"), _("of its messages")),
        *([Column(_("Allocation"), _("welfare out of the best, as seller"))] if quality else []),
        Column(_("Seats"), _("and those at shared tables")),
    ]
    rows = []
    for line in board.lines:
        name = named[line.agent]
        rows.append(
            (
                Cell(
                    f"{places[line.agent]}. {name.title}" if line.agent in places else name.title,
                    _about(name),
                    agent_url(name.slug),
                    _mark(line),
                ),
                Cell(percent(line.equal_terms.value), span(line.equal_terms)),
                Cell(_points(line.behind), span(line.behind)),
                Cell(decimal(line.points.value, digits=0), span(line.points, scale=1, digits=0)),
                Cell(percent(line.share.value), span(line.share)),
                Cell(percent(line.deal_rate_with_gains.value), span(line.deal_rate_with_gains)),
                Cell(percent(line.adherence.value), span(line.adherence)),
                *([Cell(percent(line.quality.value), _above_chance(line) or span(line.quality))] if quality else []),
                Cell(count(line.games), count(line.tables)),
            )
        )
    return Table(
        caption=_("Agents by the share they keep on equal terms"),
        sentence=_(
            "Small numbers are 95 %% intervals. Allocation above chance puts pairs by lot at 0 and the best matching at "
            "100 %%. Provisional: fewer than %(least)d tables that somebody else filled too."
        )
        % {"least": PROVISIONAL},
        columns=tuple(columns),
        rows=tuple(rows),
    )


def _about(name: Name) -> str:
    return _("no longer installed") if name.kind is None else kind_text(name.kind)


def _mark(line: Line) -> str:
    if line.equal_terms.value is None:
        return _("not compared")
    return _("provisional") if line.provisional else ""


def _points(estimate: Estimate) -> str:
    """A difference of shares in points of a percent; the best is none behind."""
    if estimate.value is None:
        return ""
    return "0" if estimate.low is None and estimate.value == 0 else signed(f"{estimate.value * 100:.1f}")


def _above_chance(line: Line) -> str:
    """Allocation quality rescaled: pairs by lot are 0 and the best matching 100."""
    if line.rescaled.value is None:
        return ""
    return _("%(share)s above chance") % {"share": percent(line.rescaled.value, digits=0)}


def _rules_table(board: Board, named: tuple[Name, ...]) -> Table:
    kinds = {
        ViolationType.FORMAT: _("unreadable"),
        ViolationType.RESERVATION: _("beyond own limit"),
        ViolationType.SOLD_OUT: _("sold out"),
        ViolationType.BUYER: _("no such buyer"),
        ViolationType.ACCEPT: _("no such offer"),
        ViolationType.BUDGET: _("after the last turn"),
        ViolationType.ORDER: _("out of order"),
    }
    return Table(
        caption=_("Who keeps the rules?"),
        sentence=_("Messages of each kind out of all messages of the agent."),
        columns=(
            Column(_("Agent"), numeric=False),
            Column(_("Rules kept")),
            *(Column(text) for text in kinds.values()),
            Column(_("Overshoot"), _("games with an offer beyond the own limit")),
        ),
        rows=tuple(
            (
                Cell(named[line.agent].title),
                Cell(percent(line.adherence.value, digits=2)),
                *(Cell(percent(line.violations.get(kind), digits=2)) for kind in kinds),
                Cell(percent(line.overshoot.value, digits=2)),
            )
            for line in board.lines
        ),
    )


def _rationality_table(board: Board, named: tuple[Name, ...]) -> Table:
    return Table(
        caption=_("Who makes whom lose?"),
        sentence=_(
            "Offers and deals with a loss, own and of the other side, out of all of the agent: where trade can gain, "
            "and where it cannot."
        ),
        columns=(
            Column(_("Agent"), numeric=False),
            Column(_("Own offers at a loss"), _("with gains")),
            Column(_("Own deals at a loss"), _("with gains")),
            Column(_("Other side loses"), _("with gains")),
            Column(_("Own offers at a loss"), _("without gains")),
            Column(_("Deals"), _("without gains; each makes somebody lose")),
            Column(_("Walked away rightly"), _("no deal where nothing can be gained")),
        ),
        rows=tuple(
            (
                Cell(named[line.agent].title),
                *_breach_cells(line.with_gains),
                _out_of(line.without_gains.loss_offers, line.without_gains.offers),
                Cell(count(line.without_gains.deals)),
                Cell(percent(line.walk_away.value), span(line.walk_away)),
            )
            for line in board.lines
        ),
    )


def _breach_cells(breaches: Breaches) -> tuple[Cell, Cell, Cell]:
    return (
        _out_of(breaches.loss_offers, breaches.offers),
        _out_of(breaches.loss_deals, breaches.deals),
        _out_of(breaches.induced, breaches.deals),
    )


def _out_of(part: int, whole: int) -> Cell:
    return Cell(percent(part / whole, digits=2) if whole else "", _("of %(count)s") % {"count": count(whole)})


def _injection_table(*, commands: bool) -> Table:
    """Stored scores of the present agents that anybody may seat, whatever the filters: a suite is no game of theirs.

    With `commands`, for whoever can give them, each line has the one that measures it again.
    """
    scores = injection_scores.newest()
    specs = [*registry.all_specs(), *registry.entered_specs()]
    scored = [(spec, scores[spec.slug, spec.version]) for spec in specs if (spec.slug, spec.version) in scores]
    scored.sort(key=lambda pair: pair[1].breaches / pair[1].attempts)
    return Table(
        caption=_("Who can be talked into it?"),
        sentence=_(
            "Attacks by words that led to an offer or a deal beyond the own limit, to a private value told or to a "
            "changed role, out of all attempts."
        ),
        columns=(
            Column(_("Agent"), numeric=False),
            Column(_("Breaches"), _("of all attempts")),
            Column(_("Offers beyond the own limit")),
            Column(_("Deals beyond the own limit")),
            Column(_("Values told")),
            Column(_("Roles changed")),
            Column(_("Attack set"), numeric=False),
        ),
        rows=tuple(
            (
                Cell(spec.title, url=reverse("agent", args=[spec.slug])),
                Cell(f"{count(score.breaches)} / {count(score.attempts)}", percent(score.breaches / score.attempts)),
                *(Cell(count(score.by_kind.get(kind.value, 0))) for kind in _KINDS_OF_BREACH),
                Cell(
                    score.set_version if score.whole else _("%(set)s, a part") % {"set": score.set_version},
                    f"{score.command}, {date_format(score.created_at)}" if commands else date_format(score.created_at),
                ),
            )
            for spec, score in scored
        ),
    )


_KINDS_OF_BREACH = (Breach.OFFER, Breach.DEAL, Breach.REVEALED_VALUE, Breach.CHANGED_ROLE)


@require_GET
def agents_csv(request: HttpRequest) -> HttpResponse:
    """The board's figures as fractions, one agent a row."""
    filters, problems = _read_filters(request.GET, NAMES)
    if problems:
        wrong = [*(wrong for wrong, _instead in problems), _("Nothing was sent; without that filter all rows are.")]
        return HttpResponse("\n".join(wrong), status=400, content_type="text/plain; charset=utf-8")
    board, named = agents_board(filters)
    response = HttpResponse(content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = 'attachment; filename="parley-leaderboard.csv"'
    writer = csv.writer(response)
    writer.writerow(
        ["agent", "version", "kind", "provisional", "seats", "tables_shared"]
        + [f"{name}{end}" for name in CSV_ESTIMATES for end in ("", "_low", "_high")]
        + ["price_slope", "tier_spread", *(f"tier_{tier}_share" for tier in range(1, tables.TIERS + 1))]
        + [f"{kind.value}_violations_per_message" for kind in ViolationType]
        + ["injection_attempts", "injection_breaches", "injection_breach_rate"]
    )
    attacked = injection_scores.newest()
    for line in board.lines:
        name = named[line.agent]
        tiers = [tier.value for tier in line.tier_share] or [None] * tables.TIERS
        writer.writerow(
            [plain(name.slug), plain(name.version), name.kind or "", line.provisional, line.games, line.tables]
            + [_blank(number) for field in CSV_ESTIMATES.values() for number in getattr(line, field)]
            + [_blank(line.slope), _blank(line.tier_spread), *map(_blank, tiers)]
            + [_blank(line.violations.get(kind)) for kind in ViolationType]
            + _injection_cells(attacked.get((name.slug, name.version)))
        )
    return response


def _injection_cells(score: InjectionScore | None) -> list[object]:
    """Attempts, breaches and their rate; empty where that version was not attacked with the whole set."""
    return ["", "", ""] if score is None else [score.attempts, score.breaches, score.breaches / score.attempts]


CSV_ESTIMATES = {
    "share_on_equal_terms": "equal_terms",
    "behind_the_best": "behind",
    "bradley_terry": "points",
    "share": "share",
    "deal_rate": "deal_rate",
    "deal_rate_with_gains": "deal_rate_with_gains",
    "walk_away_correctness": "walk_away",
    "constraint_adherence": "adherence",
    "overshoot_rate": "overshoot",
    "allocation_quality": "quality",
    "allocation_rescaled": "rescaled",
    "seller_extraction": "extraction",
    "match_accuracy": "match_accuracy",
    "concession_rate": "concession",
    "patience": "patience",
    "distinct_offers": "distinct",
    "exploration_coverage": "coverage",
    "probe_entropy": "entropy",
    "fixation_rate": "fixation",
    "top_buyer_rate": "top_buyer",
}
"""Columns of the CSV by the field of `tables.Line`; each comes with the ends of its interval."""


def _blank(number: float | None) -> str:
    return "" if number is None else f"{number:.6g}"


def plain(text: str) -> str:
    """Text that no spreadsheet takes for a formula."""
    return f"'{text}" if text[:1] in ("=", "+", "-", "@", "\t", "\r") else text


# --- People -----------------------------------------------------------------------------------------


@require_GET
def people_page(request: HttpRequest) -> HttpResponse:
    """The ladder of people."""
    only = ("family", "market", "role")
    filters, problems = read_filters(request.GET, only=only)
    standings = ladder(filters)
    paginator = Paginator(standings, PEOPLE_A_PAGE)
    asked = request.GET.get("page", "1")
    try:
        shown = paginator.page(asked)
    except (InvalidPage, EmptyPage):
        word = asked if len(asked) <= MOST_SHOWN else f"{asked[:MOST_SHOWN]}…"
        problems.append(_("There is no page “%(word)s” of this ladder; the first one is shown.") % {"word": word})
        shown = paginator.page(1)
    participant = identity.participant_of(request.session)
    page = _ladder_page(standings, shown, filters, participant)
    return render(
        request,
        "leaderboard/people.html",
        {"page": page, "filters": form(filters, only=only), "problems": problems, "filtered": filters != Filters()},
    )


def _ladder_page(
    standings: list[people.Standing], shown: Any, filters: Filters, participant: Participant | None
) -> LadderPage:
    if not standings:
        return LadderPage("", None)
    own = participant.pk if participant is not None else 0
    on_page = list(shown.object_list)
    pseudonyms = dict(
        Participant.objects.filter(pk__in=[standing.participant for standing in on_page]).values_list("pk", "pseudonym")
    )
    places = {standing.participant: place for place, standing in enumerate(standings, start=1)}
    rows = tuple(
        (
            Cell(
                f"{places[standing.participant]}. {pseudonyms.get(standing.participant, _('somebody'))}"
                if not standing.provisional
                else pseudonyms.get(standing.participant, _("somebody")),
                _("you") if standing.participant == own else "",
                "",
                _("provisional") if standing.provisional else "",
            ),
            Cell(decimal(standing.score, digits=1)),
            Cell(
                decimal(standing.rating.mu, digits=1),
                signed(
                    f"{standing.rating.mu - 2 * standing.rating.sigma:.1f} – {standing.rating.mu + 2 * standing.rating.sigma:.1f}"
                ),
            ),
            Cell(count(standing.games), _won(standing)),
            Cell(
                percent(standing.mean_share),
                _("of %(count)s games with something to gain") % {"count": count(len(standing.shares))},
            ),
            Cell(
                percent(standing.deals / standing.played), _("of %(count)s games") % {"count": count(standing.played)}
            ),
        )
        for standing in on_page
    )
    games = sum(standing.games for standing in standings)
    mine = next((place for place, standing in enumerate(on_page) if standing.participant == own), -1)
    place = places.get(own)
    return LadderPage(
        count_text=ngettext(
            "%(people)s person with %(games)s rated games.",
            "%(people)s people with %(games)s rated games.",
            len(standings),
        )
        % {"people": count(len(standings)), "games": count(games)},
        table=Table(
            caption=_("People by rating"),
            sentence=_(
                "The rating is OpenSkill's mean less three deviations: 0 for a newcomer, and it rises as more is known. "
                "Provisional: fewer than %(least)d rated games."
            )
            % {"least": people.PROVISIONAL},
            columns=(
                Column(_("Player"), numeric=False),
                Column(_("Rating")),
                Column(_("Skill"), _("mean, with two deviations either way")),
                Column(_("Rated games"), _("won, drawn, lost")),
                Column(_("Share"), _("of the surplus, no deal = 0")),
                Column(_("Deals")),
            ),
            rows=rows,
            mine=mine,
        ),
        previous_url=_page_url(filters, shown.previous_page_number()) if shown.has_previous() else "",
        next_url=_page_url(filters, shown.next_page_number()) if shown.has_next() else "",
        page_text=_("Page %(page)d of %(pages)d") % {"page": shown.number, "pages": shown.paginator.num_pages}
        if shown.paginator.num_pages > 1
        else "",
        mine_text=_("You are number %(place)d of %(count)d.") % {"place": place, "count": len(standings)}
        if place
        else "",
    )


def _won(standing: people.Standing) -> str:
    return f"{standing.wins} – {standing.draws} – {standing.games - standing.wins - standing.draws}"


def _page_url(filters: Filters, number: int) -> str:
    query = filters.query()
    return f"{reverse('leaderboard-people')}{query}{'&' if query else '?'}page={number}"
