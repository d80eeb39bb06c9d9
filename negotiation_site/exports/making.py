"""Writes an export: reads the episodes that may leave, in chunks, and fills a folder that is whole or not there.

Contract: the counts of what was written are compared with those of the database before the folder gets its
name; the same data on the same server gives the same bytes. Pseudonyms are keyed by the server's secret and
by what is in the export, so they differ between exports and cannot be computed from one. Memory does not grow
with the number of episodes but for their keys.
"""

import hashlib
import hmac
import json
from array import array
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path
from typing import Any

import msgspec
from django.conf import settings
from django.db.models import Max

from markets import corpora, export
from markets.export import ExportError
from markets.export_card import CROISSANT, croissant
from markets.export_files import (
    LONG_ROW_GROUP,
    MANIFEST,
    ROW_GROUP,
    SUMS,
    Csv,
    JsonLines,
    Parquet,
    Rows,
    content_hash,
    sha256_of,
    sums,
    whole_folder,
)
from markets.export_masking import mask, whole
from markets.export_splits import SPLITS, Splits
from markets.export_tables import EPISODES, EVENTS, Column, episode_row, event_rows
from markets.models import Episode, EpisodeSeat, EpisodeText
from negotiation_site.exports import asked as asking
from negotiation_site.exports import card
from negotiation_site.exports.asked import Asked
from training import datasets
from training import rows as training_rows
from training.rows import Format, Options, Source, Tally, Unit

CHUNK = 500
Progress = Callable[[int, int], None]


@dataclass
class Made:
    """A finished export."""

    folder: Path
    manifest: dict[str, Any]
    files: list[Path]
    people: tuple[int, ...] = ()
    """Numbers of the rows of everybody who sat at its tables."""


@dataclass
class _Plan:
    """What was found out about the episodes before the first is written."""

    ids: "array[int]" = field(default_factory=lambda: array("q"))
    keys: "array[int]" = field(default_factory=lambda: array("q"))
    splits: Splits = field(default_factory=Splits)
    by_split: Counter[str] = field(default_factory=Counter)
    salt: bytes = b""
    seats: int = 0
    texts: int = 0
    event_driven: int = 0


@dataclass
class _Counts:
    episodes: int = 0
    seats: int = 0
    texts: int = 0


def make(asked: Asked, out: Path, *, progress: Progress = lambda done, total: None) -> Made:
    """Write the export into `out`. Raises `ExportError` with a sentence."""
    asking.check(asked)
    if asked.corpus:
        return _of_corpus(asked, out, progress)
    with whole_folder(out) as draft:
        plan = _plan(asked)
        protocol = asked.protocol
        if protocol == "auto":
            protocol = "tools" if plan.ids and plan.event_driven == len(plan.ids) else "four_part"
        writer = _writer(asked, draft, plan, protocol)
        counts = _write(asked, plan, writer, progress)
        found = (counts.episodes, counts.seats, counts.texts)
        if found != (len(plan.ids), plan.seats, plan.texts):
            raise ExportError(
                f"{counts.episodes} of {len(plan.ids)} episodes, {counts.seats} of {plan.seats} seats and "
                f"{counts.texts} of {plan.texts} texts were read; the record changed meanwhile, run the export again."
            )
        manifest = _finish(asked, draft, plan, writer, protocol)
    files = [out / path for path in manifest["files"]]
    return Made(out, manifest, files, plan.splits.participants)


def _of_corpus(asked: Asked, out: Path, progress: Progress) -> Made:
    """Rows of an imported corpus in place of episodes."""
    total = corpora.corpus(asked.corpus).dialogues.count()
    chosen = datasets.Chosen(
        kind=datasets.Kind.CORPUS,
        name=asked.corpus,
        perspective=asking.side_of_corpus(asked),
        unit=Unit(asked.rows),
        min_share=asked.min_share,
        most=max(1, min(total, datasets.MOST)),
        keep_text_as_is=asked.keep_text_as_is,
    )
    progress(0, total)
    try:
        written = datasets.write(chosen, out, form=Format(asked.format), progress=lambda done: progress(done, total))
    except datasets.DataError as error:
        raise ExportError(str(error)) from error
    manifest = json.loads((out / MANIFEST).read_text(encoding="utf-8"))
    return Made(out, manifest, list(written.files))


def _plan(asked: Asked) -> _Plan:
    plan, digest = _Plan(), hashlib.sha256(msgspec.json.encode(asked))
    episodes = asking.allowed(asked).select_related(None).prefetch_related(None)
    newest = episodes.aggregate(newest=Max("id"))["newest"] or 0
    episodes = episodes.filter(id__lte=newest)  # What ends meanwhile is for the next export.
    order = ("scenario_key", "id") if asked.format == Format.PREFERENCE else ("id",)
    rows = episodes.order_by(*order).values_list("id", "scenario_key", "public_id", "record_sha256", "mechanism")
    for number, key, public_id, sha256, mechanism in rows.iterator(chunk_size=5000):
        plan.ids.append(number)
        plan.keys.append(key)
        plan.event_driven += mechanism == "event_driven"
        digest.update(f"{public_id} {sha256}\n".encode())
    seats = EpisodeSeat.objects.filter(episode__in=episodes.order_by().values("pk"))
    plan.seats = seats.count()
    plan.texts = EpisodeText.objects.filter(episode__in=episodes.order_by().values("pk")).count()
    people = seats.exclude(participant=None).order_by().values_list("participant_id", "episode__scenario_key")
    for participant, key in people.iterator(chunk_size=5000):
        plan.splits.sat(participant, key)
    plan.by_split = plan.splits.settle(plan.keys)
    plan.salt = hmac.digest(settings.SECRET_KEY.encode(), b"export" + digest.digest(), "sha256")
    return plan


class _Pseudonyms(dict[int, str]):
    """Names of people within one export, by the number of their row."""

    def __init__(self, salt: bytes) -> None:
        super().__init__()
        self._salt = salt

    def get(self, key: int, default: Any = None) -> Any:
        """The pseudonym; None for 0, which is nobody."""
        return f"p-{hmac.new(self._salt, str(key).encode(), 'sha256').hexdigest()[:16]}" if key else default


# --- Writers ----------------------------------------------------------------------------------------


class _Writer:
    """Fills the files of one format. Subclasses write episodes."""

    def __init__(self, asked: Asked, draft: Path, plan: _Plan) -> None:
        self.asked, self.draft, self.plan = asked, draft, plan
        self.mask = whole if asked.keep_text_as_is else mask
        self.with_thoughts = asked.thoughts == asking.Thoughts.WITH
        self.pseudonyms = _Pseudonyms(plan.salt)
        self.tables: dict[str, dict[str, Rows]] = {}
        self.fields: tuple[training_rows.Field, ...] = ()
        self.facts: dict[str, Any] = {}

    def add(self, episodes: list[Episode]) -> None:
        """Write a chunk."""
        raise NotImplementedError

    def files(self) -> list[Rows]:
        """Every file."""
        return [rows for table in self.tables.values() for rows in table.values()]

    def _split(self, episode: Episode) -> str:
        return self.plan.splits.split_of(episode.scenario_key)


class _Records(_Writer):
    def __init__(self, asked: Asked, draft: Path, plan: _Plan) -> None:
        super().__init__(asked, draft, plan)
        self._lines = JsonLines(draft / "episodes.jsonl")
        self.tables = {"default": {"episodes.jsonl": self._lines}}

    def add(self, episodes: list[Episode]) -> None:
        for episode in episodes:
            row = export.record(episode, with_thoughts=self.with_thoughts, mask=self.mask, pseudonyms=self.pseudonyms)
            self._lines.add(row | {"times": export.times(episode), "split": self._split(episode)})


class _Tables(_Writer):
    def __init__(self, asked: Asked, draft: Path, plan: _Plan) -> None:
        super().__init__(asked, draft, plan)
        tables: dict[str, tuple[Column, ...]] = {"episodes": EPISODES, "events": EVENTS}
        for name, columns in tables.items():
            if asked.format == "csv":
                self.tables[name] = {f"{name}.csv": Csv(draft / f"{name}.csv", columns)}
            else:
                paths = {split: f"{name}/{split}.parquet" for split in SPLITS}
                group = LONG_ROW_GROUP if name == "episodes" else ROW_GROUP
                self.tables[name] = {path: Parquet(draft / path, columns, group=group) for path in paths.values()}

    def add(self, episodes: list[Episode]) -> None:
        for episode in episodes:
            split = self._split(episode)
            scenario, log = export.decoded(episode)
            self._rows("episodes", split).add(
                episode_row(episode, scenario, log, split=split, pseudonyms=self.pseudonyms)
            )
            add = self._rows("events", split).add
            for row in event_rows(
                episode, scenario, log, split=split, mask=self.mask, with_thoughts=self.with_thoughts
            ):
                add(row)

    def _rows(self, name: str, split: str) -> Rows:
        files = self.tables[name]
        return files[f"{name}.csv"] if self.asked.format == "csv" else files[f"{name}/{split}.parquet"]


class _Training(_Writer):
    def __init__(self, asked: Asked, draft: Path, plan: _Plan, protocol: str) -> None:
        super().__init__(asked, draft, plan)
        self._form = Format(asked.format)
        self._options = Options(
            training_rows.codec(protocol), asked.side, thoughts=self.with_thoughts, unit=Unit(asked.rows)
        )
        self._tally = Tally()
        self._slugs = asking.slugs_of_kind(asked)
        self.fields = training_rows.fields(self._form, protocol)
        self.tables = {"default": {f"{split}.jsonl": JsonLines(draft / f"{split}.jsonl") for split in SPLITS}}
        self._held: list[Episode] = []

    def add(self, episodes: list[Episode]) -> None:
        if self._form is not Format.PREFERENCE:
            for episode in episodes:
                rows = training_rows.ROWS[self._form](self._source(episode), self._options, self._tally)
                self._put(self._split(episode), rows)
            return
        self._held += episodes
        last = episodes[-1].scenario_key
        ready = [episode for episode in self._held if episode.scenario_key != last]
        self._held = [episode for episode in self._held if episode.scenario_key == last]
        self._pairs(ready)

    def finish(self) -> None:
        """Write what waited for more of its scenario, and say what was left out."""
        self._pairs(self._held)
        tally = self._tally
        if tally.decisions != tally.written + tally.not_chosen + tally.not_sayable:
            raise ExportError("The moves that were written and left out do not add up; run the export again.")
        self.facts = {
            "moves": tally.decisions,
            "moves_answered": tally.written,
            "moves_refused_or_late": tally.not_chosen,
            "moves_not_sayable": tally.not_sayable,
        }

    def _pairs(self, episodes: list[Episode]) -> None:
        for _key, group in groupby(episodes, key=lambda episode: episode.scenario_key):
            together = list(group)
            rows = training_rows.preference_rows(list(map(self._source, together)), self._options, self._tally)
            self._put(self._split(together[0]), rows)

    def _put(self, split: str, rows: Iterator[dict[str, Any]]) -> None:
        file = self.tables["default"][f"{split}.jsonl"]
        for row in rows:
            file.add(row)

    def _source(self, episode: Episode) -> Source:
        parties = [seat.party for seat in episode.seats.all() if asking.fits(seat, self.asked, self._slugs)]
        return datasets.stored(episode, parties=parties, mask=self.mask, thoughts=self.with_thoughts)


def _writer(asked: Asked, draft: Path, plan: _Plan, protocol: str) -> _Writer:
    if asked.is_training:
        return _Training(asked, draft, plan, protocol)
    return (_Records if asked.format == "jsonl" else _Tables)(asked, draft, plan)


def _write(asked: Asked, plan: _Plan, writer: _Writer, progress: Progress) -> _Counts:
    counts, total = _Counts(), len(plan.ids)
    progress(0, total)
    with ExitStack() as stack:
        for rows in writer.files():
            stack.callback(rows.close)
        for start in range(0, total, CHUNK):
            numbers = plan.ids[start : start + CHUNK].tolist()
            # Asked again for what may leave: who took a consent back meanwhile is not in it, and the counts tell.
            found = asking.allowed(asked).filter(pk__in=numbers).in_bulk()
            episodes = [found[number] for number in numbers if number in found]
            if episodes:
                writer.add(episodes)
            counts.episodes += len(episodes)
            counts.seats += sum(len(episode.seats.all()) for episode in episodes)
            counts.texts += sum(len(episode.texts.all()) for episode in episodes)
            progress(counts.episodes, total)
        if isinstance(writer, _Training):
            writer.finish()
    return counts


def _finish(asked: Asked, draft: Path, plan: _Plan, writer: _Writer, protocol: str) -> dict[str, Any]:
    tables = {name: {path: rows.count for path, rows in files.items()} for name, files in writer.tables.items()}
    data = [rows.path for rows in writer.files()]
    main = next(iter(tables.values()))
    manifest = {
        "schema_version": export.SCHEMA_VERSION,
        "format": asked.format,
        "protocol": protocol if asked.is_training else None,
        "asked": msgspec.to_builtins(asked),
        "consent": asked.consent,
        "licence": card.LICENCES[asked.consent],
        "episodes": len(plan.ids),
        "episodes_by_split": {split: plan.by_split.get(split, 0) for split in SPLITS},
        "seats": plan.seats,
        "texts": plan.texts,
        "rows": sum(main.values()),
        **writer.facts,
        "files": {path: count for files in tables.values() for path, count in files.items()},
        "sha256": content_hash(draft, data),
    }
    fields = card.dictionary(asked, writer.fields)
    text = card.readme(asked=asked, protocol=protocol, tables=tables, fields=writer.fields, manifest=manifest)
    (draft / "README.md").write_text(text, encoding="utf-8", errors="replace")
    _json(draft / "fields.json", dict(fields))
    _json(
        draft / CROISSANT,
        croissant(
            name=f"parley-{asked.format}",
            description=f"Negotiations from Parley as {asked.format}: {len(plan.ids)} episodes. {card.LICENCES[asked.consent]}",
            licence=card.CREATIVE_COMMONS if asked.consent == "public" else card.LICENCES[asked.consent],
            version=f"{export.SCHEMA_VERSION}.0.0",
            tables={name: {path: sha256_of(draft / path) for path in files} for name, files in tables.items()},
            columns=card.described(asked, writer.fields),
        ),
    )
    _json(draft / MANIFEST, manifest)
    listed = [path for path in draft.rglob("*") if path.is_file()]
    (draft / SUMS).write_text(sums(draft, listed), encoding="utf-8")
    return manifest


def _json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, ensure_ascii=False, indent=1) + "\n", encoding="utf-8", errors="replace")
