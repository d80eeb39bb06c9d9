"""Human dialogues of public corpora beside the games of this site: a source of its own on the dashboards.

Only means and medians over many dialogues are shown, to anybody; the dialogues themselves are for staff and researchers
(`corpora_pages`). What a corpus does not have is left empty and said in a sentence.

Contract: figures follow the stored dialogues and words at once: they are worked out anew when either changes. Intervals are
95 %, over dialogues for corpora, over scenarios for games here.
"""

import hashlib
import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from csp.decorators import csp_update
from django.db.models import Count, Sum
from django.db.models.functions import Length
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import get_language
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET

from markets import corpora, corpus_figures
from markets.corpus_figures import ShareOf, Side
from markets.engine.scenarios import Family
from markets.importers.transcripts import SOURCES
from markets.models import Corpus, ImportedDialogue, ImportedText
from negotiation_site import dashboards
from negotiation_site.dashboards import Chart
from negotiation_site.leaderboard.facts import BUYER, PERSON, SELLER, Array, Facts
from negotiation_site.leaderboard.pages import Cell, Column, Table, worked_out
from negotiation_site.leaderboard.tables import Estimate
from negotiation_site.leaderboard.words import count, decimal, decimals, percent, span
from negotiation_site.reading_room import access

LEAST = 5
"""Dialogues of a corpus, or seats here, under which no mean is shown."""
LEAST_AT_A_STEP = 20
"""Sides under which a point of a curve is not drawn: medians of a handful jump about."""
MOST_STEPS = 8
"""Prices of one side that a curve follows."""
NOTHING = Estimate(None, None, None)


@dataclass(frozen=True)
class Group:
    """One source on one side of the table."""

    source: str
    corpus: str
    """Name of the corpus; empty for games here."""
    role: str
    human: bool
    sides: int
    deals: Estimate
    share: Estimate
    share_of: ShareOf | None
    first: Estimate
    """First price ÷ list price."""
    price: Estimate
    """Agreed price ÷ list price."""
    messages: Estimate
    seconds: Estimate
    path: tuple[float, ...]
    path_games: tuple[int, ...]


@dataclass(frozen=True)
class CorporaPage:
    """Context `page` of `leaderboard/corpora.html`."""

    count_text: str
    table: Table | None
    charts: tuple[Chart, ...]
    lacks: tuple[tuple[str, tuple[str, ...]], ...]
    """Per corpus what it does not have, in sentences."""


# --- Figures --------------------------------------------------------------------------------------------


def mean(values: Array, clusters: Array) -> Estimate:
    """Mean of what is defined with its interval; what belongs to one cluster varies together."""
    known = np.isfinite(values)
    values = values[known]
    if len(values) < LEAST:
        return NOTHING
    middle = float(values.mean())
    numbers = np.unique(clusters[known], return_inverse=True)[1]
    apart = np.bincount(numbers, weights=values - middle)
    if len(apart) < 2:
        return Estimate(middle, None, None)
    half = 1.96 * math.sqrt(float((apart**2).sum()) * len(apart) / (len(apart) - 1)) / len(values)
    return Estimate(middle, middle - half, middle + half)


def rate(values: Array, clusters: Array) -> Estimate:
    """The same of noughts and ones, whose interval ends where they do."""
    found = mean(values, clusters)
    if found.low is None or found.high is None:
        return found
    return Estimate(found.value, max(0.0, found.low), min(1.0, found.high))


def median(values: Array, clusters: Array) -> Estimate:
    """Median over the clusters' means, with the interval that their order gives: one absurd price moves it little."""
    known = np.isfinite(values)
    if np.count_nonzero(known) < LEAST:
        return NOTHING
    numbers = np.unique(clusters[known], return_inverse=True)[1]
    means = np.sort(np.bincount(numbers, weights=values[known]) / np.bincount(numbers))
    half = 0.98 * math.sqrt(len(means))
    low, high = math.floor(len(means) / 2 - half), math.ceil(len(means) / 2 + half)
    if low < 0 or high >= len(means):
        return Estimate(float(np.median(means)), None, None)
    return Estimate(float(np.median(means)), float(means[low]), float(means[high]))


def of_corpus(name: str, title: str, sides: Sequence[Side]) -> list[Group]:
    """A corpus by the roles in it."""
    found = []
    for role in sorted({side.role for side in sides}, reverse=True):
        own = [side for side in sides if side.role == role]

        clusters = np.array([side.dialogue for side in own])
        path, games = _curve([side.path for side in own])
        found.append(
            Group(
                source=title,
                corpus=name,
                role=role,
                human=True,
                sides=len(own),
                deals=rate(_column([float(side.deal) for side in own]), clusters),
                share=mean(_column([side.share for side in own]), clusters),
                share_of=next((side.share_of for side in own if side.share_of is not None), None),
                first=median(_column([side.path[0] if side.path else None for side in own]), clusters),
                price=median(_column([side.price for side in own]), clusters),
                messages=mean(_column([float(side.messages + side.offers) for side in own]), clusters),
                seconds=median(_column([side.seconds for side in own]), clusters),
                path=path,
                path_games=games,
            )
        )
    return found


def _column(values: Sequence[float | None]) -> Array:
    return np.array([math.nan if value is None else value for value in values])


def _curve(paths: Sequence[Sequence[float]]) -> tuple[tuple[float, ...], tuple[int, ...]]:
    middles, games = [], []
    for step in range(MOST_STEPS):
        there = [path[step] for path in paths if len(path) > step]
        if len(there) < LEAST_AT_A_STEP:
            break
        middles.append(statistics.median(there))
        games.append(len(there))
    return tuple(middles), tuple(games)


def of_games(held: Facts) -> list[Group]:
    """Bilateral games here: of agents, and of people who gave theirs as open data."""
    if Family.BILATERAL.value not in held.families:
        return []
    bilateral = held["public"] & (held["family"] == held.families.index(Family.BILATERAL.value))
    found = []
    for human, source, rows in (
        (False, _("Agents here"), bilateral & (held["agent"] >= 0)),
        (True, _("People here"), bilateral & held["live"] & (held["agent"] == PERSON)),
    ):
        for role, code in (("seller", SELLER), ("buyer", BUYER)):
            chosen = rows & (held["role"] == code)
            if np.count_nonzero(chosen) >= LEAST:
                found.append(_of_rows(held, chosen, source=source, role=role, human=human))
    return found


def _of_rows(held: Facts, chosen: Array, *, source: str, role: str, human: bool) -> Group:
    clusters = held.scenarios[chosen]
    own, listed, opening = (held[name][chosen].astype("f8") for name in ("own_value", "list_price", "opening"))
    share = held["share"][chosen].astype("f8")
    first = opening * own / listed
    steps, way = held["steps"][chosen], held["path"][chosen].astype("f8")
    path, games = [], []
    for step in range(min(MOST_STEPS, way.shape[1])):
        prices = (first + way[:, step] * (own / listed - first))[steps > step]
        prices = prices[np.isfinite(prices)]
        if len(prices) < LEAST_AT_A_STEP:
            break
        path.append(float(np.median(prices)))
        games.append(len(prices))
    return Group(
        source=source,
        corpus="",
        role=role,
        human=human,
        sides=int(np.count_nonzero(chosen)),
        deals=rate((held["deals"][chosen] > 0).astype("f8"), clusters),
        share=mean(share, clusters),
        share_of=ShareOf.SURPLUS,
        first=median(first, clusters),
        price=median(held["price"][chosen].astype("f8") / listed, clusters),
        messages=mean(held["messages"][chosen].astype("f8"), clusters),
        seconds=NOTHING,
        path=tuple(path),
        path_games=tuple(games),
    )


# --- Kept until something changes -----------------------------------------------------------------------

_kept: dict[tuple[object, ...], list[Group]] = {}


def groups_of_corpora() -> list[Group]:
    """Every corpus in which people talk, by name."""
    version = _version()
    if version not in _kept:
        found = []
        for corpus in Corpus.objects.order_by("name"):
            about = SOURCES[corpus.format]
            if about.people:
                found += of_corpus(corpus.name, about.title, list(corpus_figures.every_side(corpus)))
        _kept.clear()
        _kept[version] = found
    return _kept[version]


def _version() -> tuple[object, ...]:
    """Changes with every dialogue that comes or goes, and with every word that is erased."""
    digest = hashlib.sha256()
    for name, sha256 in ImportedDialogue.objects.order_by("id").values_list("corpus__name", "record_sha256").iterator():
        digest.update(f"{name} {sha256}\n".encode())
    words = ImportedText.objects.aggregate(rows=Count("id"), length=Sum(Length("text")))
    return digest.hexdigest(), words["rows"], words["length"]


# --- The page -------------------------------------------------------------------------------------------


@require_GET
@csp_update({"style-src": ["'unsafe-inline'"]})  # Plotly writes style attributes.
def corpora_figures_page(request: HttpRequest) -> HttpResponse:
    """Human dialogues beside the games here."""
    reads = access.reads_corpora(request.user)
    people = groups_of_corpora()
    groups = [*people, *worked_out(("games beside corpora", get_language()), of_games)] if people else []
    page = CorporaPage(
        count_text=_count_text(people) if people else "",
        table=_table(groups, links=reads) if groups else None,
        charts=tuple(chart for chart in (_openings(groups), _curves(groups)) if chart is not None),
        lacks=_lacks(people),
    )
    return render(request, "leaderboard/corpora.html", {"page": page, "reads": reads})


def _count_text(people: Sequence[Group]) -> str:
    names = {group.corpus for group in people}
    dialogues = sum(holding.dialogues for holding in corpora.holdings() if holding.name in names)
    return _("%(dialogues)s dialogues between people, from %(corpora)s public corpora.") % {
        "dialogues": count(dialogues),
        "corpora": count(len(names)),
    }


def role_text(role: str) -> str:
    """A side of the table."""
    return {"seller": _("selling"), "buyer": _("buying")}.get(role, _("either side"))


def share_text(share_of: ShareOf | None) -> str:
    """What a share is out of."""
    return {
        ShareOf.SURPLUS: _("of the joint surplus"),
        ShareOf.TARGETS: _("of the way between the targets, deals only"),
        ShareOf.POINTS: _("of its most points"),
        None: "",
    }[share_of]


def _label(group: Group) -> str:
    return _("%(source)s, %(role)s") % {"source": group.source, "role": role_text(group.role)}


def _table(groups: Sequence[Group], *, links: bool) -> Table:
    return Table(
        caption=_("How do people of public corpora fare beside the games here?"),
        sentence=_(
            "Read along the rows: tasks, stakes and who sat opposite differ between sources, so no place follows from "
            "these figures. Games here are the bilateral ones."
        ),
        columns=(
            Column(_("Source"), numeric=False),
            Column(_("Sides"), _("of dialogues or games")),
            Column(_("Deals")),
            Column(_("Share")),
            Column(_("First price"), _("÷ list price, median")),
            Column(_("Agreed price"), _("÷ list price, median")),
            Column(_("Messages"), _("mean, offers included")),
            Column(_("Length"), _("minutes, median")),
        ),
        rows=tuple(
            (
                Cell(
                    _label(group),
                    group.corpus or _("on this site"),
                    reverse("corpus", args=[group.corpus]) if links and group.corpus else "",
                    _("people") if group.human else "",
                ),
                Cell(count(group.sides)),
                Cell(percent(group.deals.value), span(group.deals)),
                Cell(percent(group.share.value), f"{span(group.share)} · {share_text(group.share_of)}"),
                Cell(decimal(group.first.value), span(group.first, scale=1, digits=2)),
                Cell(decimal(group.price.value), span(group.price, scale=1, digits=2)),
                Cell(decimal(group.messages.value, digits=1), span(group.messages, scale=1)),
                Cell(
                    decimal(None if group.seconds.value is None else group.seconds.value / 60, digits=1),
                    span(group.seconds, scale=1 / 60),
                ),
            )
            for group in groups
        ),
    )


_LOOKS = {"seller": (dashboards.SELLER, "square"), "buyer": (dashboards.BUYER, "circle")}


def _openings(groups: Sequence[Group]) -> Chart | None:
    drawn = [group for group in groups if group.first.value is not None and group.price.value is not None]
    if not any(group.corpus for group in drawn):
        return None
    traces = []
    for group in drawn:
        colour, symbol = _LOOKS.get(group.role, (dashboards.REFERENCE, "diamond"))
        traces.append(
            dashboards.points(
                x=[group.first.value],
                y=[group.price.value],
                name=_label(group),
                colour=colour,
                symbol=symbol if group.corpus else f"{symbol}-open",
                x_intervals=[group.first],
                y_intervals=[group.price],
                hovertemplate="%{x:.2f} → %{y:.2f}<extra>" + _label(group) + "</extra>",
            )
        )
    return dashboards.plot(
        "corpora-openings",
        title=_("Where do people open, and where do they end?"),
        caption=_("Median first price of each side and median agreed price, both out of the list price"),
        note=_(
            "Filled marks are people of public corpora, open ones games here. A price that people name in words counts "
            "where it lies between 30 and 150 % of the list price: a rule of thumb of ours. Bars are 95 % intervals."
        ),
        traces=traces,
        columns=(_("source"), _("first price ÷ list price"), _("agreed price ÷ list price"), _("sides")),
        rows=[(_label(group), decimals(group.first), decimals(group.price), count(group.sides)) for group in drawn],
        x=dashboards.axis(_("first price ÷ list price")),
        y=dashboards.axis(_("agreed price ÷ list price")),
    )


def _curves(groups: Sequence[Group]) -> Chart | None:
    drawn = [group for group in groups if len(group.path) > 1]
    if not any(group.corpus for group in drawn):
        return None
    longest = max(len(group.path) for group in drawn)
    return dashboards.plot(
        "corpora-concessions",
        title=_("How do people give way, and how do agents?"),
        caption=_("Median price by its number among the side's own, out of the list price"),
        note=_(
            "A point is the median over the sides that named so many prices, at least %(least)d; those that named fewer are "
            "not in it, so a line may bend because others are left."
        )
        % {"least": LEAST_AT_A_STEP},
        traces=[
            dashboards.line(x=list(range(1, len(group.path) + 1)), y=list(group.path), name=_label(group), series=place)
            for place, group in enumerate(drawn)
        ],
        columns=(_("source"), *(_("price %(number)d") % {"number": step} for step in range(1, longest + 1))),
        rows=[
            (
                _label(group),
                *(
                    f"{decimal(group.path[step])} ({count(group.path_games[step])})" if step < len(group.path) else ""
                    for step in range(longest)
                ),
            )
            for group in drawn
        ],
        x=dashboards.axis(_("number of the own price"), dtick=1),
        y=dashboards.axis(_("price ÷ list price")),
    )


def _lacks(people: Sequence[Group]) -> tuple[tuple[str, tuple[str, ...]], ...]:
    found: dict[str, list[str]] = {}
    for group in people:
        told = found.setdefault(_("%(title)s (%(name)s)") % {"title": group.source, "name": group.corpus}, [])
        if group.sides < LEAST:
            told.append(_("Fewer than %(least)d dialogues: no mean is shown.") % {"least": LEAST})
        if group.share_of is ShareOf.TARGETS:
            told.append(
                _(
                    "It gives targets to aim for and no reservation values, so no share of the surplus can be known. Prices "
                    "beyond a target are kept as they are: shares may lie below 0 or above 1."
                )
            )
        if group.share_of is ShareOf.POINTS:
            told.append(
                _("Things are divided and no price is negotiated: no first price, no agreed price and no curve.")
            )
        if group.seconds.value is None:
            told.append(_("It records no times."))
    return tuple((title, tuple(dict.fromkeys(told))) for title, told in found.items() if told)
