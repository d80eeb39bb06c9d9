"""Our own format of imported dialogues: what an export writes and an import reads back, byte for byte.

JSON lines, a dialogue a line, sorted by key: the record with its hash, the parties' pseudonyms, the
words. A line whose record does not fit its hash is a bad record: somebody changed it.
"""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec

from markets.importers.transcripts import reading, records
from markets.importers.transcripts.reading import BadRecord, Repeat
from markets.importers.transcripts.records import Dialogue, Text, Transcript

FORMAT = "parley"
SCHEMA = "parley-dialogue@1"
MAX_LINE_BYTES = 64 * 2**20
"""More than any dialogue that can come in: 2,000 turns of at most 20,000 characters, as they are usually written."""


class Line(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One line of the file."""

    schema: str
    licence: str
    """Of the corpus, as its authors give it."""
    record_sha256: str
    pseudonyms: dict[str, str]
    """By party; without those that were erased."""
    record: Dialogue
    texts: tuple[Text, ...]


def line(dialogue: Dialogue, texts: Iterable[Text], *, licence: str, pseudonyms: dict[str, str]) -> bytes:
    """One dialogue as it is written."""
    ordered = sorted(texts, key=lambda text: (text.n, text.party, text.kind))
    return (
        msgspec.json.encode(
            Line(
                schema=SCHEMA,
                licence=licence,
                record_sha256=records.sha256(dialogue),
                pseudonyms=pseudonyms,
                record=dialogue,
                texts=tuple(ordered),
            ),
            order="sorted",
        )
        + b"\n"
    )


def read(path: Path) -> Iterator[tuple[str, Transcript] | BadRecord | Repeat]:
    """Every line, in order."""
    for file in reading.data_files(path, suffix=".jsonl", largest=None):
        for raw in reading.lines(file, longest=MAX_LINE_BYTES):
            if isinstance(raw, BadRecord):
                yield raw
                continue
            try:
                yield raw.place, _transcript(raw.content)
            except reading.RecordError as problem:
                yield BadRecord(raw.place, str(problem))


def _transcript(content: Any) -> Transcript:
    try:
        told = msgspec.json.decode(content, type=Line)
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        raise reading.RecordError("This line is no dialogue as Parley writes it.") from None
    if told.schema != SCHEMA:
        raise reading.RecordError(f"This line is of another version than {SCHEMA}.")
    if records.sha256(told.record) != told.record_sha256:
        raise reading.RecordError("The record does not fit its hash: it was changed after it was written.")
    _check(told.record)
    parties = {side.party for side in told.record.sides}
    if any(text.party not in parties for text in told.texts):
        raise reading.RecordError("Words stand here of somebody who was not at the table.")
    if len({(text.n, text.party, text.kind) for text in told.texts}) != len(told.texts):
        raise reading.RecordError("The same turn stands here twice.")
    for text in told.texts:
        reading.words(text.text, what="text of a turn")
    erased = frozenset(parties - set(told.pseudonyms))
    if any(text.party in erased for text in told.texts):
        raise reading.RecordError("Words stand here of a party without a pseudonym.")
    return Transcript(dialogue=told.record, texts=told.texts, erased=erased)


def _check(dialogue: Dialogue) -> None:
    """Whether a record that has the right form also has sizes that can be stored. Raises `RecordError`."""
    reading.key(dialogue.key, what="key")
    reading.words(dialogue.title, what="title", limit=500)
    reading.words(dialogue.category, what="category", limit=100)
    reading.words(dialogue.currency, what="currency", limit=3)
    reading.listed(list(dialogue.events), what="list of events")
    for amount in (dialogue.price_cents, dialogue.list_price_cents):
        if amount is not None and not 0 <= amount <= reading.MAX_AMOUNT * 100:
            raise reading.RecordError("A price is below 0 or too large.")
    parties = [side.party for side in dialogue.sides]
    if len(set(parties)) != len(parties) or not all(0 < len(party) <= 20 for party in parties):
        raise reading.RecordError("The parties have no names of their own, or too long ones.")
    if any(event.party not in parties for event in dialogue.events):
        raise reading.RecordError("An event is by somebody who was not at the table.")
