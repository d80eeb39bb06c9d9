"""Imported negotiations: storing them, finding them, writing them out again.

Here: the one way in (`store`) and out (`write`) of the tables of corpora, and the searches that pages
show. Not here: the files of a corpus (`importers.transcripts`), erasing a party (`erasure`).

Contract: an import is one transaction, so a file that turns out to be damaged leaves nothing behind. A
dialogue is known by its key: the same again is a duplicate and changes nothing, so words that were
erased do not come back under the same name. Imported dialogues are no episodes and no leaderboard
counts them.
"""

import hashlib
import re
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from django.db import transaction
from django.db.models import Count, Exists, OuterRef, Q, QuerySet

from markets.importers import transcripts
from markets.importers.transcripts import SOURCES, BadRecord, CorpusError, Repeat, Source, Transcript, parley, records
from markets.importers.transcripts.records import Dialogue, Text
from markets.models import Corpus, ImportedDialogue, ImportedParty, ImportedText

BATCH = 200
MAX_REPORTED = 1_000
"""Bad records that are named; all are counted."""
_NAME = re.compile(r"[a-z0-9](?:[a-z0-9-]{0,48}[a-z0-9])?")


@dataclass
class Imported:
    """What an import came to: imported + skipped + duplicates = records."""

    records: int = 0
    imported: int = 0
    skipped: int = 0
    duplicates: int = 0
    payoffs_checked: int = 0
    """Payoffs that the corpus publishes and that were worked out again from the deal and the values."""
    payoff_mismatches: int = 0
    bad: list[BadRecord] = field(default_factory=list)
    mismatched: list[str] = field(default_factory=list)
    """Keys of the dialogues in which payoffs differ."""


# --- In -------------------------------------------------------------------------------------------------


def store(*, name: str, format: str, path: Path) -> Imported:
    """Import the dialogues of a file or folder. Raises `CorpusError` and stores nothing."""
    if not _NAME.fullmatch(name):
        raise CorpusError(
            f"The name {name!r} cannot be used: small letters, digits and hyphens, 50 at most, no hyphen at an end."
        )
    with transaction.atomic():
        intake = _Intake(name, format)
        for found in transcripts.FORMATS[format](path):
            intake.take(found)
        return intake.finished(path)


class _Intake:
    """One import under way."""

    def __init__(self, name: str, format: str) -> None:
        self._name, self._format = name, format
        self._corpus = Corpus.objects.filter(name=name).first()
        self._stored = dict(self._corpus.dialogues.values_list("key", "record_sha256")) if self._corpus else {}
        self._read: dict[str, str] = {}
        self._waiting: list[Transcript] = []
        self._result = Imported()

    def take(self, found: tuple[str, Transcript] | BadRecord | Repeat) -> None:
        """One thing that the reader found."""
        self._result.records += 1
        if isinstance(found, Repeat):
            self._result.duplicates += 1
        elif isinstance(found, BadRecord):
            self._skip(found)
        else:
            self._dialogue(*found)

    def finished(self, path: Path) -> Imported:
        """Write what waits. Raises `CorpusError` where nothing could be used."""
        self._insert()
        result = self._result
        if not result.records:
            raise CorpusError(f"{str(path)!r} holds no dialogues.")
        if not result.imported and not result.duplicates:
            first = result.bad[0]
            raise CorpusError(
                f"None of the {result.records:,} records of {str(path)!r} can be used as {self._format} "
                f"({first.place}: {first.reason})"
            )
        return result

    def _skip(self, bad: BadRecord) -> None:
        self._result.skipped += 1
        if len(self._result.bad) < MAX_REPORTED:
            self._result.bad.append(bad)

    def _dialogue(self, place: str, transcript: Transcript) -> None:
        dialogue = transcript.dialogue
        if dialogue.format not in SOURCES:
            self._skip(BadRecord(place, f"There is no corpus {dialogue.format!r}."))
            return
        if self._corpus is None:
            self._corpus = Corpus.objects.create(name=self._name, format=dialogue.format)
        if self._corpus.format != dialogue.format:
            held = f"{self._name!r} holds dialogues of {self._corpus.format}, and this one is of {dialogue.format}."
            self._skip(BadRecord(place, held))
            return
        sha256 = records.sha256(dialogue)
        stored, read = self._stored.get(dialogue.key), self._read.get(dialogue.key)
        if (stored or read or sha256) != sha256:
            self._skip(BadRecord(place, f"Another dialogue with the key {dialogue.key!r} is there already."))
            return
        if read is None:
            self._read[dialogue.key] = sha256
            self._check_payoffs(dialogue)
        if stored or read:
            self._result.duplicates += 1
            return
        self._result.imported += 1
        self._waiting.append(transcript)
        if len(self._waiting) >= BATCH:
            self._insert()

    def _check_payoffs(self, dialogue: Dialogue) -> None:
        published = [side for side in dialogue.sides if side.published_payoff is not None]
        wrong = [side for side in published if side.payoff != side.published_payoff]
        self._result.payoffs_checked += len(published)
        self._result.payoff_mismatches += len(wrong)
        if wrong and len(self._result.mismatched) < MAX_REPORTED:
            self._result.mismatched.append(dialogue.key)

    def _insert(self) -> None:
        """Write the dialogues that wait, with their parties and words."""
        corpus, waiting, self._waiting = self._corpus, self._waiting, []
        stored = ImportedDialogue.objects.bulk_create(
            _dialogue_row(corpus, transcript.dialogue) for transcript in waiting
        )
        parties, texts = [], []
        for row, transcript in zip(stored, waiting, strict=True):
            dialogue = transcript.dialogue
            parties += [
                ImportedParty(
                    dialogue=row,
                    party=side.party,
                    pseudonym=records.pseudonym(format=dialogue.format, key=dialogue.key, party=side.party),
                )
                for side in dialogue.sides
                if side.party not in transcript.erased
            ]
            texts += [
                ImportedText(dialogue=row, n=text.n, party=text.party, kind=text.kind, text=text.text)
                for text in transcript.texts
            ]
        ImportedParty.objects.bulk_create(parties, batch_size=2_000)
        ImportedText.objects.bulk_create(texts, batch_size=2_000)


def _dialogue_row(corpus: Corpus | None, dialogue: Dialogue) -> ImportedDialogue:
    record = records.canonical(dialogue)
    return ImportedDialogue(
        corpus=corpus,
        key=dialogue.key,
        record=record.decode(),
        record_sha256=hashlib.sha256(record).hexdigest(),
        outcome=dialogue.outcome,
        title=dialogue.title,
        category=dialogue.category,
        currency=dialogue.currency,
        list_price_cents=dialogue.list_price_cents,
        price_cents=dialogue.price_cents,
        turns=len(dialogue.events),
    )


def verify(dialogue: ImportedDialogue) -> bool:
    """Whether the stored record is what was written: its hash fits and its columns follow from it."""
    if hashlib.sha256(dialogue.record.encode()).hexdigest() != dialogue.record_sha256:
        return False
    row = _dialogue_row(dialogue.corpus, records.decode(dialogue.record))
    names = ("key", "outcome", "title", "category", "currency", "list_price_cents", "price_cents", "turns")
    return all(getattr(row, name) == getattr(dialogue, name) for name in names)


# --- Out ------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Written:
    """A finished file."""

    path: Path
    dialogues: int
    sha256: str
    licence: str


def corpus(name: str) -> Corpus:
    """The corpus of this name. Raises `CorpusError` with the names there are."""
    found = Corpus.objects.filter(name=name).first()
    if found is None:
        known = ", ".join(Corpus.objects.values_list("name", flat=True))
        raise CorpusError(f"There is no corpus {name!r}; there is: {known or 'none yet, import one'}.")
    return found


def write(*, name: str, path: Path) -> Written:
    """Write a corpus as JSON lines in the order of the keys, beside and then moved into place.

    Raises `CorpusError`. The same dialogues give the same bytes, under whatever name they were imported.
    """
    of = corpus(name)
    keys = sorted(of.dialogues.values_list("key", flat=True))  # Here, because databases sort text in their own ways.
    draft = path.with_name(f".{path.name}.part")
    digest, count = hashlib.sha256(), 0
    try:
        if path.is_dir():
            raise CorpusError(f"{str(path)!r} is a folder; name a file to write.")
        path.parent.mkdir(parents=True, exist_ok=True)
        with draft.open("wb") as file:
            for line in _lines(of, keys):
                file.write(line)
                digest.update(line)
                count += 1
        if count != len(keys):
            raise CorpusError(f"{count} of {len(keys)} dialogues were read; run the export again.")
        draft.replace(path)
    except OSError as error:
        raise CorpusError(f"{str(path)!r} cannot be written: {error.strerror}.") from error
    finally:
        with suppress(OSError):  # There is no draft where there is no folder.
            draft.unlink(missing_ok=True)
    return Written(path, count, digest.hexdigest(), SOURCES[of.format].licence)


def _lines(of: Corpus, keys: list[str]) -> Iterator[bytes]:
    licence = SOURCES[of.format].licence
    for start in range(0, len(keys), BATCH):
        chunk = keys[start : start + BATCH]
        rows = of.dialogues.filter(key__in=chunk).prefetch_related("parties", "texts")
        by_key = {row.key: row for row in rows}
        for key in chunk:
            if key in by_key:
                row = by_key[key]
                yield parley.line(
                    records.decode(row.record),
                    [
                        Text(n=text.n, party=text.party, kind=_kind(text.kind), text=text.text)
                        for text in row.texts.all()
                    ],
                    licence=licence,
                    pseudonyms={party.party: party.pseudonym for party in row.parties.all()},
                )


def _kind(kind: str) -> records.TextKind:
    match kind:
        case "said" | "thought" | "private":
            return kind
        case _:
            raise ValueError(f"{kind!r} is no kind of text")


# --- Searching ------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Holding:
    """A corpus and how much of it is here."""

    name: str
    format: str
    source: Source
    dialogues: int
    deals: int


def holdings() -> list[Holding]:
    """Every corpus, by name."""
    counted = Corpus.objects.annotate(
        count=Count("dialogues"), deals=Count("dialogues", filter=Q(dialogues__outcome="deal"))
    )
    rows = counted.order_by("name").values_list("name", "format", "count", "deals")
    return [Holding(name, format, SOURCES[format], count, deals) for name, format, count, deals in rows]


def found(of: Corpus, *, words: str = "", outcome: str = "") -> QuerySet[ImportedDialogue]:
    """Dialogues of a corpus in which the words are said or in whose title or key they stand, in order of import."""
    dialogues = of.dialogues.order_by("id")
    if outcome:
        dialogues = dialogues.filter(outcome=outcome)
    if words:
        said = ImportedText.objects.filter(dialogue=OuterRef("pk"), text__icontains=words)
        dialogues = dialogues.filter(Q(title__icontains=words) | Q(key=words) | Exists(said))
    return dialogues
