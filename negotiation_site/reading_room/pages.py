"""Pages of the reading room: the list, two transcripts side by side, notes and their files.

Each view finds out who is asking, makes one call, and renders. A transcript itself has its page where its kind is at
home (`negotiation_site.transcripts`, `negotiation_site.corpora_pages`).
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any, cast
from urllib.parse import urlencode

from csp.decorators import csp_update
from django.contrib import messages
from django.contrib.auth.models import User
from django.contrib.auth.views import redirect_to_login
from django.core.exceptions import PermissionDenied
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse, HttpResponseBase
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from agents import registry
from markets import market_page
from markets.engine.money import format_amount
from markets.engine.protocol import OfferAccepted, buyer_of, decode_log
from markets.engine.scenarios import Family, decode_scenario
from markets.models import Corpus, Episode, ImportedDialogue, Market
from markets.presentation import Choice
from negotiation_site import corpora_pages, transcripts
from negotiation_site.leaderboard.words import count, percent
from negotiation_site.reading_room import access, annotations, reading, references, search
from negotiation_site.reading_room.filters import PERSON, Source
from negotiation_site.reading_room.models import Annotation
from negotiation_site.reading_room.reading import Note, NoteForm, Reading
from negotiation_site.reading_room.references import Transcript
from negotiation_site.reading_room.search import Asked, Found

SNIPPET = 160
NOTES_A_PAGE = 50


@dataclass(frozen=True)
class Row:
    """A line of the list."""

    url: str
    title: str
    about: str
    who: str
    outcome: str
    share: str
    turns: int
    when: str
    said: str
    """The first utterance with the words asked for."""
    said_url: str
    said_n: int
    tags: tuple[str, ...]
    beside_url: str
    """Puts it beside the chosen one, or chooses it."""
    chosen: bool


@dataclass(frozen=True)
class Field:
    """One filter of the form."""

    name: str
    label: str
    value: str = ""
    choices: tuple[Choice, ...] = ()
    kind: str = "text"
    suggestions: tuple[str, ...] = ()
    placeholder: str = ""


@dataclass(frozen=True)
class ListPage:
    """Context `page` of `reading_room/list.html`."""

    rows: tuple[Row, ...]
    count_text: str
    words: str
    fields: tuple[Field, ...]
    filtered: bool
    problems: tuple[str, ...]
    place_text: str
    before_url: str
    after_url: str
    researcher: bool
    beside: str
    """Title of the transcript that another is being chosen for."""
    beside_name: str
    beside_url: str
    drop_url: str
    signed_in: bool


# --- The list -----------------------------------------------------------------------------------------


@require_GET
@never_cache
def transcript_list(request: HttpRequest) -> HttpResponse:
    """Every transcript that whoever asks may read, searched, filtered and sorted."""
    asked, problems = search.read(request.GET, request.user)
    beside = references.find(request.user, asked.beside) if asked.beside else None
    if asked.beside and beside is None:
        problems.append(_("The transcript that was to stand beside another is not here."))
    found = search.find(asked, request.user)
    return render(request, "reading_room/list.html", {"page": _list_page(request, asked, found, problems, beside)})


def _list_page(
    request: HttpRequest, asked: Asked, found: Found, problems: list[str], beside: Transcript | None
) -> ListPage:
    researcher = access.is_researcher(request.user)
    said = search.first_said(found.rows, asked.tokens)
    tags = _tags(found.rows) if researcher else {}
    return ListPage(
        rows=tuple(_row(row, asked, said.get(_key(row)), tags.get(_key(row), ()), beside) for row in found.rows),
        count_text=_count_text(found),
        words=asked.words,
        fields=_fields(request, asked, researcher=researcher),
        filtered=bool({name for name, _value in asked.raw} - {"q", "sort", "page", "a"}),
        problems=tuple(problems),
        place_text=_("Page %(number)s of %(all)s") % {"number": count(found.number), "all": count(found.pages)},
        before_url=asked.query(page=str(found.number - 1)) if found.number > 1 else "",
        after_url=asked.query(page=str(found.number + 1)) if found.number < found.pages else "",
        researcher=researcher,
        beside="" if beside is None else _title(beside),
        beside_name="" if beside is None else references.of(beside),
        beside_url="" if beside is None else references.url(beside),
        drop_url=asked.query(a=""),
        signed_in=request.user.is_authenticated,
    )


def _key(row: Transcript) -> tuple[str, int]:
    return ("game" if isinstance(row, Episode) else "dialogue", row.pk)


def _tags(rows: Any) -> dict[tuple[str, int], tuple[str, ...]]:
    """Tags of the staff by transcript, each once."""
    found: dict[tuple[str, int], tuple[str, ...]] = {}
    games = [row.pk for row in rows if isinstance(row, Episode)]
    dialogues = [row.pk for row in rows if isinstance(row, ImportedDialogue)]
    for kind, notes in (
        ("game", Annotation.objects.filter(episode__in=games).values_list("episode_id", "tag")),
        ("dialogue", Annotation.objects.filter(dialogue__in=dialogues).values_list("dialogue_id", "tag")),
    ):
        for number, tag in notes.order_by("pk"):
            held = found.get((kind, number), ())
            found[kind, number] = held if tag in held else (*held, tag)
    return found


def _title(row: Transcript) -> str:
    if isinstance(row, Episode):
        return transcripts.title(decode_scenario(row.scenario))
    return row.title or row.key


def _count_text(found: Found) -> str:
    games = ngettext("%(count)s game", "%(count)s games", found.games) % {"count": count(found.games)}
    dialogues = ngettext("%(count)s imported dialogue", "%(count)s imported dialogues", found.dialogues) % {
        "count": count(found.dialogues)
    }
    more = _("the first %(what)s with these words")
    parts = []
    if found.games or not found.dialogues:
        parts.append(more % {"what": games} if found.more_games else games)
    if found.dialogues:
        parts.append(more % {"what": dialogues} if found.more_dialogues else dialogues)
    text = _(" and ").join(parts)
    return text[:1].upper() + text[1:]


def _row(
    row: Transcript, asked: Asked, said: tuple[int, str] | None, tags: tuple[str, ...], beside: Transcript | None
) -> Row:
    name, url = references.of(row), references.url(row)
    chosen = beside is not None and references.of(beside) == name
    pair = {"a": references.of(beside), "b": name} if beside is not None else {}
    n, text = said or (0, "")
    shared: dict[str, Any] = {
        "url": url,
        "said": _snippet(text, asked.tokens),
        "said_url": f"{url}#turn-{n}" if said else "",
        "said_n": n,
        "tags": tags,
        "beside_url": f"{reverse('transcripts-compare')}?{urlencode(pair)}" if pair else asked.query(a=name, page=""),
        "chosen": chosen,
    }
    return Row(**shared, **(_game(row) if isinstance(row, Episode) else _dialogue(row)))


def _game(row: Episode) -> dict[str, Any]:
    scenario = decode_scenario(row.scenario)
    seats = sorted(row.seats.all(), key=lambda seat: buyer_of(seat.party))
    names = list(dict.fromkeys(transcripts.who(seat) for seat in seats[1:]))
    words = {"seller": transcripts.who(seats[0]), "buyers": ", ".join(names)} if seats else {}
    prices = [entry.event.price_cents for entry in decode_log(row.log) if isinstance(entry.event, OfferAccepted)]
    return {
        "title": transcripts.title(scenario),
        "about": f"{row.market.name} · {transcripts.kind_text(row)}",
        "who": _("%(seller)s sold to %(buyers)s") % words if prices else _("%(seller)s faced %(buyers)s") % words,
        "outcome": ", ".join(format_amount(price, row.currency) for price in prices) or _("no deal"),
        "share": "–" if row.seller_share is None else percent(row.seller_share, digits=0),
        "turns": row.seller_messages + row.buyer_messages,
        "when": date_format(row.created_at),
    }


def _dialogue(row: ImportedDialogue) -> dict[str, Any]:
    price = corpora_pages.money(row.price_cents, row.currency) if row.price_cents is not None else ""
    return {
        "title": row.title or row.key,
        "about": _("%(corpus)s · imported") % {"corpus": row.corpus.name},
        "who": row.key,
        "outcome": price or corpora_pages.outcome_text(row.outcome),
        "share": "–",
        "turns": row.turns,
        "when": "",
    }


def _snippet(text: str, tokens: tuple[str, ...]) -> str:
    """The words around the first token."""
    flat = " ".join(text.split())
    at = max(0, flat.casefold().find(tokens[0].casefold()) - SNIPPET // 3) if tokens else 0
    shown = flat[at : at + SNIPPET]
    return ("…" if at else "") + shown + ("…" if at + SNIPPET < len(flat) else "")


def _fields(request: HttpRequest, asked: Asked, *, researcher: bool) -> tuple[Field, ...]:
    raw = dict(asked.raw)

    def select(name: str, label: str, options: list[tuple[str, str]], *, empty: str) -> Field:
        value = raw.get(name, "")
        choices = [("", empty), *options] if empty else options
        chosen = tuple(Choice(value=key, label=text, selected=key == value) for key, text in choices)
        return Field(name, label, value, chosen)

    def line(name: str, label: str, *, kind: str = "text", placeholder: str = "", **more: Any) -> Field:
        return Field(name, label, raw.get(name, ""), kind=kind, placeholder=placeholder, **more)

    corpora = access.reads_corpora(request.user)
    sources = [
        (Source.LIVE.value, _("games of people")),
        (Source.SIMULATED.value, _("simulations")),
        (Source.TOURNAMENT.value, _("tournaments")),
        *([(Source.CORPUS.value, _("imported corpora"))] if corpora else []),
    ]
    held = Market.objects.filter(is_listed=True) if not researcher else Market.objects.all()
    markets = dict(held.order_by("slug", "version").values_list("slug", "name"))
    if asked.economics.market:
        markets.setdefault(asked.economics.market, asked.economics.market)
    found = [
        select("source", _("Held in"), sources, empty=_("any place")),
        select("family", _("Kind of market"), [(f.value, market_page.family_text(f)) for f in Family], empty=_("any")),
        select("market", _("Market"), sorted(markets.items(), key=lambda item: item[1].casefold()), empty=_("any")),
        line(
            "agent",
            _("Agent, or person"),
            suggestions=(PERSON, *(spec.slug for spec in registry.all_specs())),
            placeholder=_("linear"),
        ),
        select("role", _("On the seat of"), [("seller", _("the seller")), ("buyer", _("a buyer"))], empty=_("either")),
        select("outcome", _("How it ended"), [("deal", _("a deal")), ("no-deal", _("no deal"))], empty=_("any end")),
        line("min_share", _("Share from"), placeholder="0.5"),
        line("max_share", _("Share to"), placeholder="1"),
        line("min_turns", _("Messages from"), kind="number"),
        line("max_turns", _("Messages to"), kind="number"),
        line("since", _("Ended from"), kind="date"),
        line("until", _("Ended up to"), kind="date"),
    ]
    if corpora:
        names = [(name, name) for name in Corpus.objects.values_list("name", flat=True)]
        found.append(select("corpus", _("Corpus"), names, empty=_("any")))
    if researcher:
        found.append(select("tag", _("Tag"), [(tag, tag) for tag in annotations.tags()], empty=_("any")))
    orders = [
        ("", _("newest first")),
        ("oldest", _("oldest first")),
        ("-share", _("seller's share, largest first")),
        ("share", _("seller's share, smallest first")),
        ("-turns", _("longest first")),
        ("turns", _("shortest first")),
    ]
    return (*found, select("sort", _("Order"), orders, empty=""))


# --- Two of them --------------------------------------------------------------------------------------


@require_GET
@never_cache
@csp_update({"style-src": ["'unsafe-inline'"]})  # Plotly writes style attributes.
def compare(request: HttpRequest) -> HttpResponse:
    """Two transcripts side by side."""
    readings = []
    for name in ("a", "b"):
        row = references.find(request.user, request.GET.get(name, ""))
        if row is None:
            return render(request, "reading_room/no_pair.html", status=404)
        readings.append(read(row, request.user, product=request.GET.get(f"product_{name}", ""), prefix=f"{name}-"))
    first, second = readings
    facts = {label: (value, "–") for label, value in first.facts}
    for label, value in second.facts:
        facts[label] = (facts.get(label, ("–", ""))[0], value)
    context = {
        "readings": readings,
        "facts": [(label, *values) for label, values in facts.items()],
        "compare_query": urlencode({"a": first.name, "b": second.name}),
        "swap_url": f"{reverse('transcripts-compare')}?{urlencode({'a': second.name, 'b': first.name})}",
    }
    return render(request, "reading_room/compare.html", context)


def read(row: Transcript, viewer: access.Viewer, **how: str) -> Reading:
    """A transcript of either kind, turn by turn."""
    if isinstance(row, Episode):
        return transcripts.read(row, viewer, **how)
    how.pop("product", None)
    return corpora_pages.read(row, viewer, **how)


# --- Notes --------------------------------------------------------------------------------------------


def for_researchers(view: Callable[..., HttpResponseBase]) -> Callable[..., HttpResponseBase]:
    """Asks strangers to sign in and refuses everybody else who is no researcher."""

    @wraps(view)
    def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponseBase:
        if not request.user.is_authenticated:
            return redirect_to_login(
                reverse("transcript-notes") if request.method == "POST" else request.get_full_path()
            )
        if not access.is_researcher(request.user):
            raise PermissionDenied(_("Notes on transcripts are for the staff and researchers of this server."))
        return never_cache(view)(request, *args, **kwargs)

    return guarded


@dataclass(frozen=True)
class NoteRow:
    """A line of the list of notes."""

    note: Note
    title: str
    url: str


@require_GET
@for_researchers
def notes(request: HttpRequest) -> HttpResponse:
    """Every note on what may be read."""
    viewer = cast(User, request.user)
    tag, words = _note_query(request)
    pages = Paginator(annotations.found(viewer, tag=tag, words=words), NOTES_A_PAGE)
    here = pages.get_page(request.GET.get("page"))
    rows = []
    for row in here.object_list:
        about = annotations.transcript_of(row)
        anchor = "" if row.n is None else f"#turn-{row.n}"
        rows.append(NoteRow(reading.note(row, viewer), _title(about), references.url(about) + anchor))

    def url(number: int) -> str:
        return "?" + urlencode({"tag": tag, "q": words, "page": str(number)})

    context = {
        "rows": rows,
        "tag": tag,
        "words": words,
        "tags": annotations.tags(),
        "count_text": ngettext("%(count)s note", "%(count)s notes", pages.count) % {"count": count(pages.count)},
        "query": urlencode({"tag": tag, "q": words}),
        "place_text": _("Page %(number)d of %(all)d") % {"number": here.number, "all": pages.num_pages},
        "before_url": url(here.previous_page_number()) if here.has_previous() else "",
        "after_url": url(here.next_page_number()) if here.has_next() else "",
    }
    return render(request, "reading_room/notes.html", context)


@require_GET
@for_researchers
def notes_file(request: HttpRequest, format: str) -> HttpResponseBase:
    """The same notes as a file."""
    tag, words = _note_query(request)
    found = annotations.found(cast(User, request.user), tag=tag, words=words).order_by("pk")
    write, kind = (
        (annotations.as_csv, "text/csv; charset=utf-8")
        if format == "csv"
        else (annotations.as_jsonl, "application/x-ndjson")
    )
    response = HttpResponse(write(found.iterator(chunk_size=500)), content_type=kind)
    response["Content-Disposition"] = f'attachment; filename="parley-notes.{format}"'
    return response


def _note_query(request: HttpRequest) -> tuple[str, str]:
    tag, words = (request.GET.get(name, "").replace("\0", "").strip()[: search.LONGEST] for name in ("tag", "q"))
    return tag, words


@require_POST
@for_researchers
def note_add(request: HttpRequest) -> HttpResponse:
    """A new note; what cannot be kept comes back in a form."""
    about = references.find(request.user, request.POST.get("of", ""))
    if about is None:
        raise Http404(_("There is no such transcript, or it is not open to you."))
    form = _typed(request, action=reverse("transcript-notes-add"), of=references.of(about))
    try:
        row = annotations.add(
            author=cast(User, request.user), transcript=about, tag=form.tag, note=form.note, turn=form.turn
        )
    except annotations.AnnotationError as error:
        return _note_page(request, form, about, problem=str(error), status=400)
    messages.success(request, _("The note is kept."))
    return redirect(_place(about, row))


@require_http_methods(["GET", "HEAD", "POST"])
@for_researchers
def note_change(request: HttpRequest, number: int) -> HttpResponse:
    """A note of one's own in a form; a POST changes it."""
    row, about = _note(request, number)
    if request.method != "POST":
        form = NoteForm(
            action=request.path,
            of=references.of(about),
            tag=row.tag,
            note=row.note,
            turn="" if row.n is None else str(row.n),
            tags=tuple(annotations.tags()),
        )
        return _note_page(request, form, about, number=number)
    form = _typed(request, action=request.path, of=references.of(about))
    try:
        annotations.change(row, by=cast(User, request.user), tag=form.tag, note=form.note, turn=form.turn)
    except annotations.AnnotationError as error:
        return _note_page(request, form, about, problem=str(error), status=400, number=number)
    messages.success(request, _("The note is changed."))
    return redirect(_place(about, row))


@require_POST
@for_researchers
def note_delete(request: HttpRequest, number: int) -> HttpResponse:
    """Away with a note."""
    row, about = _note(request, number)
    annotations.delete(row, by=cast(User, request.user))
    messages.success(request, _("The note is deleted."))
    return redirect(references.url(about))


def _note(request: HttpRequest, number: int) -> tuple[Annotation, Transcript]:
    """A note that whoever asks may change, and what it is about."""
    viewer = cast(User, request.user)
    row = annotations.readable(viewer).filter(pk=number).first()
    if row is None:
        raise Http404(_("There is no such note."))
    if not annotations.may_change(row, viewer):
        raise PermissionDenied(_("This note is somebody else's; its author and the staff may change it."))
    return row, annotations.transcript_of(row)


def _typed(request: HttpRequest, *, action: str, of: str) -> NoteForm:
    typed = {name: request.POST.get(name, "") for name in ("tag", "note", "turn")}
    return NoteForm(action=action, of=of, tags=tuple(annotations.tags()), **typed)


def _note_page(
    request: HttpRequest, form: NoteForm, about: Transcript, *, problem: str = "", status: int = 200, number: int = 0
) -> HttpResponse:
    context = {
        "form": form,
        "title": _title(about),
        "url": references.url(about),
        "problem": problem,
        "delete_url": reverse("transcript-note-delete", args=[number]) if number else "",
    }
    return render(request, "reading_room/note.html", context, status=status)


def _place(about: Transcript, row: Annotation) -> str:
    return references.url(about) + ("#notes" if row.n is None else f"#turn-{row.n}")
