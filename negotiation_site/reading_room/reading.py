"""A transcript as the reading room shows it: turns with what they were worth and what was noted on them.

Here: the plain dataclasses that templates read, and the parts that a game and an imported dialogue share. What was
said in words is made where each kind is at home (`transcripts`, `corpora_pages`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from django.contrib.auth.models import User
from django.urls import reverse
from django.utils.formats import date_format
from django.utils.http import urlencode

from markets.presentation import EventItem
from negotiation_site.reading_room import access, annotations, price_path, references
from negotiation_site.reading_room.access import Viewer
from negotiation_site.reading_room.models import Annotation
from negotiation_site.reading_room.price_path import Picture
from negotiation_site.reading_room.references import Transcript


@dataclass(frozen=True)
class Note:
    """A note of the staff."""

    number: int
    tag: str
    text: str
    author: str
    when: str
    turn: int | None
    changed: bool
    change_url: str
    """Empty for who may not."""


@dataclass(frozen=True)
class Turn:
    """One event. Partial `reading_room/_turn.html` (`turn`)."""

    n: int
    """Number of the event: its place in the address is `#turn-N`."""
    item: EventItem
    thought: str = ""
    worth: str = ""
    """What taking the price of this turn would have brought."""
    notes: tuple[Note, ...] = ()


@dataclass(frozen=True)
class NoteForm:
    """A note being written. Partial `reading_room/_note_form.html` (`form`)."""

    action: str
    of: str = ""
    tag: str = ""
    note: str = ""
    turn: str = ""
    tags: tuple[str, ...] = ()


@dataclass(frozen=True)
class Reading:
    """One transcript. Context `reading` of its page and of the comparison."""

    name: str
    """What names it in an address (`references`)."""
    url: str
    title: str
    about: str
    """Where it was held."""
    headline: str
    turns: tuple[Turn, ...]
    picture: Picture | None
    facts: tuple[tuple[str, str], ...] = ()
    """What two transcripts are compared by."""
    notes: tuple[Note, ...] = ()
    """On the whole of it."""
    form: NoteForm | None = None
    """For who may write notes."""
    prefix: str = ""
    """Before the numbers of turns, where two transcripts are on one page."""
    choose_url: str = ""
    """Where another is chosen to be put beside it."""


@dataclass(frozen=True)
class Extras:
    """What the reading room knows of a transcript beyond its words."""

    notes: tuple[Note, ...] = ()
    by_turn: Mapping[int, tuple[Note, ...]] = field(default_factory=dict)
    form: NoteForm | None = None


def extras(viewer: Viewer, transcript: Transcript, *, noting: str = "") -> Extras:
    """Notes and the form for them; nothing for who is no researcher. `noting` is the turn that the form begins with."""
    if not isinstance(viewer, User) or not access.is_researcher(viewer):
        return Extras()
    notes = [note(row, viewer) for row in annotations.on(transcript)]
    by_turn: dict[int, tuple[Note, ...]] = {}
    for row in notes:
        if row.turn is not None:
            by_turn[row.turn] = (*by_turn.get(row.turn, ()), row)
    form = NoteForm(
        action=reverse("transcript-notes-add"),
        of=references.of(transcript),
        turn=noting if noting.isdecimal() and len(noting) < 7 else "",
        tags=tuple(annotations.tags()),
    )
    return Extras(tuple(row for row in notes if row.turn is None), by_turn, form)


def note(row: Annotation, viewer: User) -> Note:
    """A note in words."""
    return Note(
        number=row.pk,
        tag=row.tag,
        text=row.note,
        author=row.author.get_username(),
        when=date_format(row.created_at, "DATETIME_FORMAT"),
        turn=row.n,
        changed=(row.changed_at - row.created_at).total_seconds() > 1,
        change_url=reverse("transcript-note", args=[row.pk]) if annotations.may_change(row, viewer) else "",
    )


def worths(path: price_path.Path, money: price_path.Money) -> dict[int, str]:
    """By event number: what its price would have brought both."""
    return {step.n: price_path.gains_text(step, money) for step in path.steps if not step.deal}


def choose_url(transcript: Transcript) -> str:
    """The list, for choosing what to read beside this one."""
    return f"{reverse('transcripts')}?{urlencode({'a': references.of(transcript)})}"
