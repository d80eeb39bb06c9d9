"""Notes of the staff and researchers on transcripts: writing, changing, deleting, finding, and taking them out.

Contract: only researchers read or write notes (`access.is_researcher`); who wrote one changes it, and the staff may
change all. A note is read and taken out only while its transcript may be read, so a game that somebody withdrew takes
its notes out of sight. A tag is a short word in small letters.
"""

import csv
import io
import json
from collections.abc import Iterable, Iterator
from typing import Any

from django.contrib.auth.models import User
from django.db.models import Q, QuerySet
from django.utils.text import slugify
from django.utils.translation import gettext as _

from markets.engine.protocol import decode_log
from markets.export_files import neutral
from markets.models import Episode
from negotiation_site.reading_room import access, references
from negotiation_site.reading_room.models import Annotation
from negotiation_site.reading_room.references import Transcript

LONGEST_TAG, LONGEST_NOTE = 40, 4_000
COLUMNS = ("transcript", "source", "turn", "tag", "note", "author", "created_at", "changed_at")


class AnnotationError(ValueError):
    """A note that cannot be kept; the sentence is for its author."""


def add(*, author: User, transcript: Transcript, tag: str, note: str, turn: str) -> Annotation:
    """A new note. Raises `AnnotationError`."""
    of: dict[str, Any] = {"episode": transcript} if isinstance(transcript, Episode) else {"dialogue": transcript}
    words = _read(transcript, tag=tag, note=note, turn=turn)
    return Annotation.objects.create(author=author, **of, **words)


def change(row: Annotation, *, by: User, tag: str, note: str, turn: str) -> None:
    """Another tag, note or turn. Raises `AnnotationError`."""
    _check(row, by)
    for name, value in _read(transcript_of(row), tag=tag, note=note, turn=turn).items():
        setattr(row, name, value)
    row.save()


def delete(row: Annotation, *, by: User) -> None:
    """Away with it. Raises `AnnotationError`."""
    _check(row, by)
    row.delete()


def may_change(row: Annotation, by: User) -> bool:
    """Whether somebody may change a note."""
    return access.is_researcher(by) and (row.author_id == by.pk or by.is_staff)


def transcript_of(row: Annotation) -> Transcript:
    """What a note is about."""
    found = row.episode or row.dialogue
    assert found is not None  # The table allows no other.
    return found


def on(transcript: Transcript) -> QuerySet[Annotation]:
    """The notes on a transcript, the oldest first."""
    mine = Q(episode=transcript) if isinstance(transcript, Episode) else Q(dialogue=transcript)
    return Annotation.objects.filter(mine).select_related("author").order_by("pk")


def readable(viewer: User) -> QuerySet[Annotation]:
    """The notes on everything that `viewer` may read, the newest first."""
    if not access.is_researcher(viewer):
        return Annotation.objects.none()
    episodes = Q(episode__consent_scope__in=("public", "research"))
    found = Annotation.objects.filter(episodes | Q(dialogue__isnull=False))
    return found.select_related("author", "episode", "dialogue__corpus").order_by("-pk")


def found(viewer: User, *, tag: str = "", words: str = "") -> QuerySet[Annotation]:
    """Readable notes with this tag in which the words stand."""
    notes = readable(viewer)
    if tag:
        notes = notes.filter(tag=tag)
    if words:
        notes = notes.filter(note__icontains=words)
    return notes


def tags() -> list[str]:
    """Every tag in use."""
    return list(Annotation.objects.order_by("tag").values_list("tag", flat=True).distinct())


# --- Out ------------------------------------------------------------------------------------------------


def as_csv(notes: Iterable[Annotation]) -> Iterator[str]:
    """Lines of CSV with a head; a cell that a spreadsheet would compute begins with an apostrophe."""
    buffer = io.StringIO()
    writer = csv.writer(buffer)
    writer.writerow(COLUMNS)
    for note in notes:
        yield buffer.getvalue()
        buffer.seek(0)
        buffer.truncate()
        writer.writerow([neutral(cell) for cell in _fields(note).values()])
    yield buffer.getvalue()


def as_jsonl(notes: Iterable[Annotation]) -> Iterator[str]:
    """One object a line."""
    for note in notes:
        yield json.dumps(_fields(note), ensure_ascii=False) + "\n"


def _fields(row: Annotation) -> dict[str, Any]:
    about = transcript_of(row)
    values = (
        references.of(about),
        about.source if isinstance(about, Episode) else about.corpus.name,
        row.n,
        row.tag,
        row.note,
        row.author.get_username(),
        row.created_at.isoformat(),
        row.changed_at.isoformat(),
    )
    return dict(zip(COLUMNS, values, strict=True))


# --- What was typed -------------------------------------------------------------------------------------


def _check(row: Annotation, by: User) -> None:
    if not may_change(row, by):
        raise AnnotationError(_("This note is somebody else's; its author and the staff may change it."))


def _read(transcript: Transcript, *, tag: str, note: str, turn: str) -> dict[str, Any]:
    word, note = slugify(tag), note.replace("\0", "").replace("\r\n", "\n").strip()
    if not word:
        raise AnnotationError(_("Give the note a tag: a word of letters and digits, such as anchoring."))
    if len(word) > LONGEST_TAG:
        raise AnnotationError(_("A tag has at most %(count)d characters.") % {"count": LONGEST_TAG})
    if len(note) > LONGEST_NOTE:
        raise AnnotationError(_("A note has at most %(count)d characters.") % {"count": LONGEST_NOTE})
    return {"tag": word, "note": note.encode("utf-8", "replace").decode(), "n": _turn(transcript, turn.strip())}


def _turn(transcript: Transcript, turn: str) -> int | None:
    if not turn:
        return None
    last = len(decode_log(transcript.log)) if isinstance(transcript, Episode) else transcript.turns
    if not turn.isascii() or not turn.isdecimal() or len(turn) > 6 or not 1 <= int(turn) <= last:
        raise AnnotationError(
            _("This transcript has turns 1 to %(last)d; leave the turn empty for all of it.") % {"last": last}
        )
    return int(turn)
