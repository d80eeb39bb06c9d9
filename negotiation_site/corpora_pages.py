"""Pages of imported corpora: which there are, their dialogues, and one of them turn by turn.

For the staff and researchers only, whatever a corpus's licence says: two of the four were given for tests
alone, and nobody in any of them was asked about being shown on this site. What a model wrote for itself and
what a party alone knew is shown too, apart from what was said.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import wraps
from typing import Any, Literal
from urllib.parse import urlencode

from csp.decorators import csp_update
from django.contrib.auth.models import User
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from markets import corpora, presentation
from markets.engine.money import Cents
from markets.importers.transcripts import SOURCES, Source, records
from markets.importers.transcripts.records import Dialogue, Event, Side, Units
from markets.models import Corpus, ImportedDialogue
from markets.presentation import EventItem, Figure, Mark, MarkKind
from markets.result import percent
from negotiation_site.reading_room import price_path, reading, references
from negotiation_site.reading_room.access import Viewer
from negotiation_site.reading_room.reading import Reading

ROWS = 50
"""Dialogues a page."""
LONGEST_SEARCH = 200


@dataclass(frozen=True)
class CorpusRow:
    """A line of the list of corpora."""

    name: str
    url: str
    title: str
    citation: str
    licence: str
    dialogues: int
    deals: str


@dataclass(frozen=True)
class DialogueRow:
    """A line of the list of dialogues."""

    key: str
    url: str
    title: str
    outcome: str
    price: str
    list_price: str
    turns: int


@dataclass(frozen=True)
class Choice:
    """One outcome to filter by."""

    value: str
    text: str
    chosen: bool


@dataclass(frozen=True)
class CorpusPage:
    """Context `page` of `corpora/corpus.html`."""

    name: str
    source: Source
    rows: tuple[DialogueRow, ...]
    has_prices: bool
    count_text: str
    words: str
    outcomes: tuple[Choice, ...]
    place_text: str
    before_url: str
    after_url: str


@dataclass(frozen=True)
class PartyCard:
    """One party of a dialogue."""

    chair: str
    role: str
    pseudonym: str
    facts: tuple[tuple[str, str], ...]
    private: str
    notes: tuple[str, ...]


@dataclass(frozen=True)
class DialoguePage:
    """Context `page` of `corpora/dialogue.html`."""

    corpus: str
    corpus_url: str
    title: str
    key: str
    headline: str
    source: Source
    line: presentation.PriceLine | None
    items: tuple["Turn", ...]
    parties: tuple[PartyCard, ...]
    figures: tuple[Figure, ...]
    notes: tuple[str, ...]
    record_sha256: str


@dataclass(frozen=True)
class Turn:
    """One event with what its author thought."""

    item: EventItem
    thought: str


# --- Who may --------------------------------------------------------------------------------------------


def for_researchers(view: Callable[..., HttpResponseBase]) -> Callable[..., HttpResponseBase]:
    """Asks strangers to sign in and refuses everybody else who is neither of the staff nor a researcher."""

    @wraps(view)
    def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        user = request.user
        if not isinstance(user, User):
            return redirect_to_login(request.get_full_path())
        if not (user.is_staff or user.has_perm("markets.build_market") or user.has_perm("markets.view_corpus")):
            raise PermissionDenied(_("Imported corpora are for the staff and researchers of this server."))
        return never_cache(view)(request, *args, **kwargs)

    return guarded


# --- Pages ----------------------------------------------------------------------------------------------


@require_GET
@for_researchers
def corpus_list(request: HttpRequest) -> HttpResponse:
    """Every corpus here."""
    rows = [
        CorpusRow(
            name=holding.name,
            url=reverse("corpus", args=[holding.name]),
            title=holding.source.title,
            citation=holding.source.citation,
            licence=holding.source.licence,
            dialogues=holding.dialogues,
            deals=percent(holding.deals / holding.dialogues) if holding.dialogues else "–",
        )
        for holding in corpora.holdings()
    ]
    return render(request, "corpora/list.html", {"rows": rows})


@require_GET
@for_researchers
def corpus_page(request: HttpRequest, name: str) -> HttpResponse:
    """The dialogues of one corpus, searched and filtered."""
    corpus = get_object_or_404(Corpus, name=name)
    words = request.GET.get("q", "").replace("\0", "").strip()[:LONGEST_SEARCH]
    outcome = request.GET.get("outcome", "")
    if outcome not in records.OUTCOMES:
        outcome = ""
    pages = Paginator(corpora.found(corpus, words=words, outcome=outcome), ROWS)
    here = pages.get_page(request.GET.get("page"))

    def url(number: int) -> str:
        asked = {"q": words, "outcome": outcome, "page": str(number)}
        return "?" + urlencode({key: value for key, value in asked.items() if value})

    page = CorpusPage(
        name=name,
        source=SOURCES[corpus.format],
        rows=tuple(_row(dialogue, name) for dialogue in here.object_list),
        has_prices=any(dialogue.currency for dialogue in here.object_list),
        count_text=ngettext("%(count)s dialogue", "%(count)s dialogues", pages.count) % {"count": f"{pages.count:,}"},
        words=words,
        outcomes=(
            Choice("", _("Any end"), not outcome),
            *(Choice(value, outcome_text(value), value == outcome) for value in records.OUTCOMES),
        ),
        place_text=_("Page %(number)d of %(all)d") % {"number": here.number, "all": pages.num_pages},
        before_url=url(here.previous_page_number()) if here.has_previous() else "",
        after_url=url(here.next_page_number()) if here.has_next() else "",
    )
    return render(request, "corpora/corpus.html", {"page": page})


@require_GET
@for_researchers
@csp_update({"style-src": ["'unsafe-inline'"]})  # type: ignore[arg-type]  # Plotly writes style attributes.
def dialogue_page(request: HttpRequest, name: str, key: str) -> HttpResponse:
    """One dialogue."""
    row = (
        ImportedDialogue.objects.filter(corpus__name=name, key=key)
        .select_related("corpus")
        .prefetch_related("parties", "texts")
        .first()
    )
    if row is None:
        raise Http404(_("There is no such dialogue here."))
    noting = request.GET.get("note", "")
    context = {"page": shown(row), "reading": read(row, request.user, noting=noting)}
    return render(request, "corpora/dialogue.html", context)


def read(row: ImportedDialogue, viewer: Viewer, *, noting: str = "", prefix: str = "") -> Reading:
    """A dialogue that `viewer` may read, turn by turn, as the reading room shows it."""
    page, dialogue = shown(row), records.decode(row.record)
    more, path = reading.extras(viewer, row, noting=noting), price_path.of_dialogue(dialogue)

    def amount(cents: Cents) -> str:
        return money(cents, dialogue.currency)

    worths = reading.worths(path, amount)
    return Reading(
        name=references.of(row),
        url=references.url(row),
        title=page.title,
        about=_("%(corpus)s · imported") % {"corpus": page.corpus},
        headline=page.headline,
        turns=tuple(
            reading.Turn(
                turn.item.seq,
                turn.item,
                turn.thought,
                worths.get(turn.item.seq, ""),
                more.by_turn.get(turn.item.seq, ()),
            )
            for turn in page.items
        ),
        picture=price_path.picture(path, element=f"{prefix}price-path", money=amount),
        facts=(
            *((_chair(dialogue, side.party), side.agent or _("a person")) for side in dialogue.sides),
            (_("Price"), amount(row.price_cents) if row.price_cents is not None else outcome_text(row.outcome)),
            *((figure.label, figure.value) for figure in page.figures),
            (_("Messages"), str(row.turns)),
        ),
        notes=more.notes,
        form=more.form,
        prefix=prefix,
        choose_url=reading.choose_url(row),
    )


# --- In words -------------------------------------------------------------------------------------------


def outcome_text(outcome: str) -> str:
    """How a dialogue ended, for people."""
    return {
        "deal": _("A deal"),
        "no_deal": _("No deal"),
        "walk_away": _("Somebody walked away"),
        "disagreement": _("The two chose differently"),
        "unfinished": _("Broken off"),
    }.get(outcome, outcome)


def money(cents: Cents | None, currency: str) -> str:
    """An amount in a currency of a corpus, which may be one of its own."""
    if cents is None:
        return "–"
    text = f"{cents / 100:,.2f}".removesuffix(".00").replace("-", "−")
    if currency != "USD":
        return f"{text} {currency}"
    return f"−${text[1:]}" if cents < 0 else f"${text}"


def _row(dialogue: ImportedDialogue, name: str) -> DialogueRow:
    return DialogueRow(
        key=dialogue.key,
        url=reverse("corpus-dialogue", args=[name, dialogue.key]),
        title=dialogue.title or dialogue.key,
        outcome=outcome_text(dialogue.outcome),
        price=money(dialogue.price_cents, dialogue.currency),
        list_price=money(dialogue.list_price_cents, dialogue.currency),
        turns=dialogue.turns,
    )


def shown(row: ImportedDialogue) -> DialoguePage:
    """A stored dialogue in words."""
    dialogue = records.decode(row.record)
    texts = {(text.n, text.party, text.kind): text.text for text in row.texts.all()}
    pseudonyms = {party.party: party.pseudonym for party in row.parties.all()}
    return DialoguePage(
        corpus=row.corpus.name,
        corpus_url=reverse("corpus", args=[row.corpus.name]),
        title=dialogue.title or dialogue.key,
        key=dialogue.key,
        headline=_headline(dialogue),
        source=SOURCES[dialogue.format],
        line=_line(dialogue),
        items=tuple(
            Turn(
                _item(dialogue, event, talk=texts.get((event.n, event.party, "said"), "")),
                texts.get((event.n, event.party, "thought"), ""),
            )
            for event in dialogue.events
        ),
        parties=tuple(
            _card(
                dialogue,
                side,
                pseudonym=pseudonyms.get(side.party, ""),
                private=texts.get((0, side.party, "private"), ""),
            )
            for side in dialogue.sides
        ),
        figures=_figures(dialogue),
        notes=tuple(dict.fromkeys(dialogue.notes.values())),
        record_sha256=row.record_sha256,
    )


def _headline(dialogue: Dialogue) -> str:
    if dialogue.price_cents is not None:
        return _("Agreed at %(price)s.") % {"price": money(dialogue.price_cents, dialogue.currency)}
    return outcome_text(dialogue.outcome) + "."


def _chair(dialogue: Dialogue, party: str) -> str:
    role = next((side.role for side in dialogue.sides if side.party == party), "")
    if role == "seller":
        return _("Seller")
    if role == "buyer":
        return _("Buyer")
    return _("Party %(number)s") % {"number": party.removeprefix("party-")}


def _role(dialogue: Dialogue, party: str) -> Literal["seller", "buyer", ""]:
    return next((side.role for side in dialogue.sides if side.party == party), "")


def _units(units: Units) -> str:
    return ", ".join(f"{count} {issue}" for issue, count in units.items())


def _item(dialogue: Dialogue, event: Event, *, talk: str) -> EventItem:
    who = _chair(dialogue, event.party)
    price = money(event.price_cents, dialogue.currency) if event.price_cents is not None else ""
    split = "; ".join(
        _("%(who)s gets %(units)s") % {"who": _chair(dialogue, party), "units": _units(units)}
        for party, units in (event.units or {}).items()
    )
    kind: Literal["talk", "offer", "accept", "reject", "leave"]
    match event.type:
        case "message":
            kind, sentence = "talk", ""
        case "offer" if price:
            kind, sentence = "offer", _("offered %(price)s") % {"price": price}
        case "offer":
            kind, sentence = "talk", ""
            talk = _("An offer: %(split)s.") % {"split": split} if split else _("An offer without a price.")
        case "accept":
            kind, sentence = "accept", _("%(who)s accepted.") % {"who": who}
        case "reject":
            kind, sentence = "reject", _("%(who)s turned the offer down.") % {"who": who}
        case "leave":
            kind, sentence = "leave", _("%(who)s left without a deal.") % {"who": who}
        case "choose":
            chosen = _units((event.units or {}).get(event.party, {}))
            kind, sentence = "reject", _("%(who)s chose for itself: %(units)s.") % {"who": who, "units": chosen}
    return EventItem(
        seq=event.n,
        thread=0,
        kind=kind,
        side="them" if kind in ("talk", "offer", "accept") else "system",
        author=who,
        role=_role(dialogue, event.party),
        sentence=sentence,
        talk=talk,
        price=price,
        when="" if event.at_ms is None else _("after %(seconds)s s") % {"seconds": f"{event.at_ms / 1000:.0f}"},
    )


def _facts(dialogue: Dialogue, side: Side) -> Iterator[tuple[str, str]]:
    if side.agent:
        yield _("Model"), side.agent
    if side.target_cents is not None:
        yield _("Told to aim for"), money(side.target_cents, dialogue.currency)
    if side.reservation_value_cents is not None:
        yield _("Reservation value"), money(side.reservation_value_cents, dialogue.currency)
    if side.points is not None:
        yield _("Points for each"), ", ".join(f"{issue} {points}" for issue, points in side.points.items())
    if side.units is not None:
        yield _("Got"), _units(side.units)
    if side.payoff_points is not None:
        yield _("Points in the end"), str(side.payoff_points)
    if side.surplus_cents is not None:
        yield _("Surplus"), money(side.surplus_cents, dialogue.currency)
    if side.surplus_share is not None:
        yield _("Share of the joint surplus"), percent(side.surplus_share)
    if side.target_share is not None:
        yield _("From the other's target to its own"), percent(side.target_share)
    if side.opening_cents is not None:
        yield _("First formal offer"), money(side.opening_cents, dialogue.currency)
    yield _("Messages"), str(side.messages)


def _card(dialogue: Dialogue, side: Side, *, pseudonym: str, private: str) -> PartyCard:
    return PartyCard(
        chair=_chair(dialogue, side.party),
        role=side.role,
        pseudonym=pseudonym or _("erased"),
        facts=tuple(_facts(dialogue, side)),
        private=private,
        notes=tuple(dict.fromkeys(side.notes.values())),
    )


def _figures(dialogue: Dialogue) -> tuple[Figure, ...]:
    found = []
    if dialogue.price_ratio is not None:
        found.append(Figure(label=_("Price ÷ list price"), value=percent(dialogue.price_ratio)))
    if dialogue.duration_ms is not None:
        found.append(
            Figure(label=_("Length"), value=_("%(seconds)s s") % {"seconds": f"{dialogue.duration_ms / 1000:,.0f}"})
        )
    return tuple(found)


def _line(dialogue: Dialogue) -> presentation.PriceLine | None:
    """Targets or values, list price, formal offers and the deal on one axis; None where no price was negotiated."""
    if not dialogue.currency:
        return None
    marks: list[Mark] = []

    def add(kind: MarkKind, cents: Cents | None, label: str, role: Literal["seller", "buyer", ""], key: str) -> None:
        if cents is not None:
            text = money(cents, dialogue.currency)
            marks.append(Mark(kind=kind, cents=cents, label=label, money=text, role=role, key=key))

    for side in dialogue.sides:
        seller = side.role == "seller"
        if side.reservation_value_cents is not None:
            label = _("seller's cost") if seller else _("buyer's value")
            add(MarkKind.THEIR_RESERVATION, side.reservation_value_cents, label, side.role, f"value-{side.party}")
        else:
            label = _("seller's target") if seller else _("buyer's target")
            add(MarkKind.THEIR_RESERVATION, side.target_cents, label, side.role, f"target-{side.party}")
    add(MarkKind.LIST, dialogue.list_price_cents, _("list price"), "", "list")
    for event in dialogue.events:
        if event.type == "offer":
            add(MarkKind.PAST_OFFER, event.price_cents, "", _role(dialogue, event.party), f"offer-{event.n}")
    add(MarkKind.DEAL, dialogue.price_cents, _("deal"), "", "deal")
    if len({mark.cents for mark in marks}) < 2:
        return None
    return presentation.price_line(
        title=_headline(dialogue), marks=marks, money=lambda cents: money(cents, dialogue.currency)
    )
