"""A columnar copy of every seat of every stored episode, for figures over all of them at once.

Here: loading it from the database, keeping it up to date, keeping it on disk so that a restart is
quick. Not here: what is computed from it (`tables`, `people`).

Contract: the database is the truth and this is a copy. `current()` reads what was written since
the last call (episodes by number, erasures and changes of consent by `RecordChange`), so a page is
never older than the moment it was asked for. Columns never change once made: whoever holds a
`Facts` may go on reading it. One copy a process.
"""

import json
import logging
import os
import threading
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
from django.conf import settings
from django.db.models import Max, QuerySet
from numpy.typing import NDArray

from agents.entering import SANDBOX
from markets.engine import figures
from markets.engine.figures import MAX_PATH, ViolationType
from markets.models import ConsentScope, Episode, EpisodeSeat, EpisodeSource, PartyRole, RecordChange, SeatKind

log = logging.getLogger(__name__)

Array: TypeAlias = NDArray[Any]

FORMAT = 3
"""Changes with the columns: a file of another format is not read."""
CHUNK = 4_000
"""Episodes read at a time."""
OVERLAP = 500
"""Episodes before the last one that are looked at again: with several writers a lower number may be
committed after a higher one."""
KEEP_AFTER = 1_000
"""New episodes after which the copy on disk is written again."""

SELLER, BUYER = 0, 1
PERSON, MIXED = -1, -2
"""Codes of an opponent that is no one agent: a person, or several kinds of buyers."""
VIOLATIONS = tuple(ViolationType)

_DTYPES: dict[str, str] = {
    "episode": "i8",
    "market": "i4",
    "family": "i2",
    "live": "?",
    "public": "?",
    "scenario": "i8",
    "currency": "i2",
    "role": "i1",
    "lineup": "i4",
    "agent": "i2",
    "opponent": "i2",
    "participant": "i8",
    "welfare": "f4",
    "first_best": "f4",
    "surplus": "f4",
    "share": "f4",
    "joint": "f4",
    "own_value": "f4",
    "other_value": "f4",
    "list_price": "f4",
    "price": "f4",
    "deals": "i2",
    "messages": "i4",
    "offers": "i4",
    "distinct": "i4",
    "opening": "f4",
    "concession": "f4",
    "patience": "f4",
    "loss_offers": "i2",
    "loss_deals": "i2",
    "induced": "i2",
    "coverage": "f4",
    "entropy": "f4",
    "fixation": "f4",
    "top_deals": "i2",
    "matched": "f4",
    "best_pairs": "f4",
    "random_welfare": "f4",
    "broken": "i4",
    "steps": "i1",
}
_WIDE = {"violations": ("i2", len(VIOLATIONS)), "path": ("f4", MAX_PATH)}


@dataclass(frozen=True)
class Facts:
    """One row a seat. Undefined numbers are nan; amounts are cents, to seven digits.

    `path` has `steps` numbers a row and noughts after them.
    """

    columns: Mapping[str, Array]
    agents: tuple[tuple[str, str], ...] = ()
    """(slug, version) by the code in `agent` and `opponent`."""
    families: tuple[str, ...] = ()
    currencies: tuple[str, ...] = ()
    version: tuple[int, int] = (0, 0)
    """Last episode and last change that are in; equal versions hold equal rows."""
    lineups: tuple[Any, ...] = ()
    """Own party and (party, agent) of everybody else, by the code in `lineup`."""

    def __getitem__(self, name: str) -> Array:
        return self.columns[name]

    def __len__(self) -> int:
        return len(self.columns["episode"])

    @property
    def agent_rows(self) -> Array:
        """Seats of agents in episodes that may be shown to anybody."""
        return (self["agent"] >= 0) & self["public"]

    @cached_property
    def scenarios(self) -> Array:
        """Per row the number of its scenario, from 0."""
        return _numbered(self["scenario"])

    @cached_property
    def tables(self) -> Array:
        """Per row the number of its table, from 0: the same scenario, seat and others."""
        return _numbered(self.scenarios.astype("i8") * (len(self.lineups) + 1) + self["lineup"])

    @cached_property
    def episodes(self) -> Array:
        """Per row the number of its episode, from 0."""
        return _numbered(self["episode"])


def _numbered(keys: Array) -> Array:
    """Equal keys get equal numbers, from 0 without gaps."""
    if not len(keys):
        return np.empty(0, "i4")
    order = np.argsort(keys, kind="stable")
    ordered = keys[order]
    numbers = np.empty(len(keys), "i4")
    numbers[order] = np.cumsum(np.concatenate([[0], ordered[1:] != ordered[:-1]]))
    return numbers


def _empty() -> dict[str, Array]:
    columns = {name: np.empty(0, dtype) for name, dtype in _DTYPES.items()}
    return columns | {name: np.empty((0, width), dtype) for name, (dtype, width) in _WIDE.items()}


@dataclass
class _Names:
    """Codes of words, in order of appearance."""

    codes: dict[Any, int] = field(default_factory=dict)

    def code(self, word: Any) -> int:
        return self.codes.setdefault(word, len(self.codes))


class Copy:
    """The copy of one database, in this process."""

    def __init__(self, folder: Path | None) -> None:
        self._folder = folder
        self._lock = threading.Lock()
        self._facts: Facts | None = None
        self._kept_to = 0
        self._agents, self._families, self._currencies, self._lineups = _Names(), _Names(), _Names(), _Names()

    def current(self) -> Facts:
        """The copy, up to date."""
        facts = self._facts
        if facts is not None and facts.version == newest():
            return facts
        with self._lock:
            if self._facts is None:
                self._read_kept()
            facts = self._facts or Facts(columns=_empty())
            target = newest()
            if facts.version != target:
                facts = self._caught_up(facts, target)
            self._facts = facts
            if self._folder is not None and target[0] - self._kept_to >= KEEP_AFTER:
                self._kept_to = target[0]
                _keep(facts, self._folder)
        return facts

    def _caught_up(self, facts: Facts, target: tuple[int, int]) -> Facts:
        last_episode, last_change = facts.version
        changed = set(
            RecordChange.objects.filter(pk__gt=last_change, pk__lte=target[1]).values_list("episode_number", flat=True)
        )
        columns = dict(facts.columns)
        if changed:
            stays = ~np.isin(columns["episode"], np.fromiter(changed, "i8", len(changed)))
            columns = {name: column[stays] for name, column in columns.items()}
        first = max(0, last_episode - OVERLAP)
        known = set(columns["episode"][columns["episode"] > first].tolist())
        parts = [columns]
        parts += self._parts(_in_chunks(first, target[0]), known)
        again = [number for number in changed if number <= first]
        parts += self._parts(
            (EpisodeSeat.objects.filter(episode__in=again[at : at + 500]) for at in range(0, len(again), 500)), set()
        )
        return Facts(
            columns={name: np.concatenate([part[name] for part in parts]) for name in columns},
            agents=tuple(self._agents.codes),
            families=tuple(self._families.codes),
            currencies=tuple(self._currencies.codes),
            lineups=tuple(self._lineups.codes),
            version=target,
        )

    def _parts(self, queries: Iterable["QuerySet[EpisodeSeat]"], known: set[int]) -> list[dict[str, Array]]:
        return [part for query in queries if (part := self._part(query, known))]

    def _part(self, query: "QuerySet[EpisodeSeat]", known: set[int]) -> dict[str, Array]:
        query = query.exclude(episode__market__slug=SANDBOX)  # Trying an agent counts for nothing.
        found = query.order_by("episode_id", "id").values_list(*_FIELDS)
        rows = [row for episode in _episodes(found) if episode[0][0] not in known for row in self._rows(episode)]
        if not rows:
            return {}
        cells = dict(zip((*_DTYPES, *_WIDE), zip(*rows, strict=True), strict=True))
        columns = {name: np.array(cells[name], dtype) for name, dtype in _DTYPES.items()}
        return columns | {name: np.array(cells[name], dtype) for name, (dtype, _width) in _WIDE.items()}

    def _rows(self, episode: list[tuple[Any, ...]]) -> Iterator[tuple[Any, ...]]:
        """What is kept of each seat of an episode, in the order of the columns."""
        sitting = tuple(
            [
                (
                    row[_PARTY],
                    self._agents.code((row[_SLUG], row[_VERSION])) if row[_KIND] == SeatKind.AGENT else PERSON,
                )
                for row in episode
            ]
        )
        selling = next((code for party, code in sitting if party == "seller"), PERSON)
        buying = {code for party, code in sitting if party != "seller"}
        bought = buying.pop() if len(buying) == 1 else (PERSON if PERSON in buying else MIXED)
        number, market, family, source, scope, scenario, currency, welfare, first_best = episode[0][:_PARTY]
        about = (
            number,
            market,
            self._families.code(family),
            source == EpisodeSource.LIVE,
            scope == ConsentScope.PUBLIC,
            scenario,
            self._currencies.code(currency),
        )
        for place, (row, (party, code)) in enumerate(zip(episode, sitting, strict=True)):
            seat = figures.decode(row[_FIGURES])
            is_seller = row[_ROLE] == PartyRole.SELLER
            yield (
                *about,
                SELLER if is_seller else BUYER,
                self._lineups.code((party, *sitting[:place], *sitting[place + 1 :])),
                code,
                bought if is_seller else selling,
                row[_PARTICIPANT] or 0,
                welfare,
                first_best,
                row[_SURPLUS],
                _number(row[_SHARE]),
                seat.joint_cents,
                seat.own_value_cents,
                seat.other_value_cents,
                seat.list_price_cents,
                _number(seat.price_cents),
                seat.deals,
                seat.messages,
                seat.offers,
                seat.distinct_offers,
                _number(seat.opening_ratio),
                _number(seat.concession_rate),
                _number(seat.patience),
                seat.loss_offers,
                seat.loss_deals,
                seat.induced_loss_deals,
                _number(seat.coverage),
                _number(seat.probe_entropy),
                _number(seat.fixation_rate),
                seat.top_deals,
                _number(seat.matched_pairs),
                _number(seat.best_pairs),
                _number(seat.random_welfare_cents),
                seat.violations,
                len(seat.path),
                (
                    seat.format_violations,
                    seat.reservation_violations,
                    seat.sold_out_violations,
                    seat.buyer_violations,
                    seat.accept_violations,
                    seat.budget_violations,
                    seat.order_violations,
                ),
                (*seat.path, *_NO_PATH[len(seat.path) :]),
            )

    # --- On disk

    def _read_kept(self) -> None:
        if self._folder is None:
            return
        path = self._folder / _FILE
        try:
            with np.load(path) as stored:
                about = json.loads(bytes(stored["about"]).decode())
                if about["format"] != FORMAT or not _same_database(about):
                    return
                columns = {name: stored[name] for name in (*_DTYPES, *_WIDE)}
        except FileNotFoundError:
            return
        except (OSError, EOFError, KeyError, ValueError, zipfile.BadZipFile) as error:
            log.warning("The copy for leaderboards at %s cannot be read and is made again: %s", path, error)
            return
        for names, words in (
            (self._agents, [tuple(agent) for agent in about["agents"]]),
            (self._families, about["families"]),
            (self._currencies, about["currencies"]),
            (self._lineups, [(lineup[0], *map(tuple, lineup[1:])) for lineup in about["lineups"]]),
        ):
            names.codes = {word: code for code, word in enumerate(words)}
        version = (about["version"][0], about["version"][1])
        self._kept_to = version[0]
        self._facts = Facts(
            columns=columns,
            agents=tuple(self._agents.codes),
            families=tuple(self._families.codes),
            currencies=tuple(self._currencies.codes),
            lineups=tuple(self._lineups.codes),
            version=version,
        )


def _number(number: float | None) -> float:
    return _UNDEFINED if number is None else number


_FILE = "seats.npz"
_UNDEFINED = float("nan")
_NO_PATH = (0.0,) * MAX_PATH
_FIELDS = (
    "episode_id",
    "episode__market_id",
    "episode__family",
    "episode__source",
    "episode__consent_scope",
    "episode__scenario_key",
    "episode__currency",
    "episode__welfare_cents",
    "episode__first_best_cents",
    "party",
    "role",
    "kind",
    "participant_id",
    "agent_slug",
    "agent_version",
    "surplus_cents",
    "surplus_share",
    "figures",
)
_PARTY, _ROLE, _KIND, _PARTICIPANT, _SLUG, _VERSION, _SURPLUS, _SHARE, _FIGURES = range(9, 18)


def newest() -> tuple[int, int]:
    """The last episode and the last change there are."""
    episode = Episode.objects.aggregate(newest=Max("id"))["newest"] or 0
    return episode, RecordChange.objects.aggregate(newest=Max("id"))["newest"] or 0


def _in_chunks(first: int, last: int) -> Iterator["QuerySet[EpisodeSeat]"]:
    """Seats of the episodes after number `first`, up to `last`."""
    for start in range(first, last, CHUNK):
        yield EpisodeSeat.objects.filter(episode_id__gt=start, episode_id__lte=min(start + CHUNK, last))


def _episodes(rows: Iterable[tuple[Any, ...]]) -> Iterator[list[tuple[Any, ...]]]:
    """Rows, in order of their episodes, an episode at a time."""
    episode: list[tuple[Any, ...]] = []
    for row in rows:
        if episode and row[0] != episode[0][0]:
            yield episode
            episode = []
        episode.append(row)
    if episode:
        yield episode


def _public_id(number: int) -> str:
    return Episode.objects.filter(pk=number).values_list("public_id", flat=True).first() or ""


def _same_database(about: dict[str, Any]) -> bool:
    """Whether a kept copy was made from this database: its last episode has an address nobody can guess."""
    return bool(about["last"]) and _public_id(about["version"][0]) == about["last"]


def _keep(facts: Facts, folder: Path) -> None:
    """Write the copy beside and move it into place. A disk that is full costs a slow start, no page."""
    about = {
        "format": FORMAT,
        "version": facts.version,
        "last": _public_id(facts.version[0]),
        "agents": facts.agents,
        "families": facts.families,
        "currencies": facts.currencies,
        "lineups": facts.lineups,
    }
    arrays: dict[str, Any] = {"about": np.frombuffer(json.dumps(about).encode(), "u1"), **facts.columns}
    draft = folder / f".{_FILE}.{os.getpid()}"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with draft.open("wb") as file:
            np.savez(file, **arrays)
        draft.replace(folder / _FILE)
    except OSError as error:
        log.warning("The copy for leaderboards cannot be kept in %s: %s", folder, error)
        with suppress(OSError):  # There may be no folder.
            draft.unlink(missing_ok=True)


_copy: Copy | None = None
_making = threading.Lock()


def current() -> Facts:
    """The copy of this site's database, up to date."""
    global _copy
    with _making:
        if _copy is None:
            _copy = Copy(settings.VAR / "leaderboard")
    return _copy.current()


def forget() -> None:
    """Start anew with the next request. For tests, whose databases come and go."""
    global _copy
    with _making:
        _copy = None
