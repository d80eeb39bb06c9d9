"""A room's event log: reading it, folding it, appending to it.

The database alone is the truth. `load` folds the rows of a room and keeps the fold of recently
used rooms in the process, so that a move reads only what is new; the fold is checked against the
row's version, and an event number can be written once. `append` must run inside the transaction
that locked the room.
"""

from collections import OrderedDict
from dataclasses import dataclass
from threading import Lock

import msgspec
from django.db import transaction

from markets.engine.protocol import Event, LogEntry, Party, encode
from markets.engine.scenarios import decode_scenario
from markets.engine.state import State, evolve, initial
from markets.models import Room, RoomEvent, Utterance

MAX_KEPT_FOLDS = 500

_events = msgspec.json.Decoder(Event, strict=True)
_kept: OrderedDict[str, "Fold"] = OrderedDict()
_lock = Lock()


@dataclass(frozen=True)
class Fold:
    """A room's log and the state it leads to."""

    log: tuple[LogEntry, ...]
    state: State


class LogGap(RuntimeError):
    """The stored events of a room are not numbered 1 to its version: the log is damaged."""


def load(room: Room) -> Fold:
    """The log of `room` up to `room.version`, folded.

    Reads only committed rows that are newer than the fold kept in this process.
    """
    with _lock:
        kept = _kept.get(room.public_id)
    if kept is None or kept.state.version > room.version:
        kept = Fold(log=(), state=initial(decode_scenario(room.scenario)))
    if kept.state.version < room.version:
        kept = _catch_up(room, kept)
    return kept


def keep(room: Room, fold: Fold) -> None:
    """Remember the fold of a room, once what it was folded from is committed."""
    transaction.on_commit(lambda: _remember(room.public_id, fold))


def _remember(public_id: str, fold: Fold) -> None:
    with _lock:
        known = _kept.get(public_id)
        if known is None or known.state.version < fold.state.version:
            _kept[public_id] = fold
        _kept.move_to_end(public_id)
        while len(_kept) > MAX_KEPT_FOLDS:
            _kept.popitem(last=False)


def append(
    room: Room,
    fold: Fold,
    events: tuple[Event, ...],
    *,
    party: Party,
    at_ms: int,
    client_move_id: str = "",
    talk: str = "",
    thought: str = "",
) -> Fold:
    """Write `events` after the fold's last one and give the new fold. Inside a transaction.

    Talk and thought hang on the first event. Raises `IntegrityError` when somebody else wrote the
    same number or the same move first; the caller's transaction then rolls back.
    """
    state = fold.state
    entries = []
    for event in events:
        state = evolve(state, event)
        entries.append(LogEntry(state.version, at_ms, event))
    RoomEvent.objects.bulk_create(
        RoomEvent(
            room=room,
            n=entry.n,
            at_ms=at_ms,
            party=party,
            event=encode(entry.event).decode(),
            client_move_id=client_move_id if entry is entries[0] else "",
        )
        for entry in entries
    )
    if talk or thought:
        Utterance.objects.create(room=room, n=entries[0].n, party=party, talk=talk, thought=thought)
    room.version = state.version
    return Fold(log=(*fold.log, *entries), state=state)


def _catch_up(room: Room, fold: Fold) -> Fold:
    rows = (
        RoomEvent.objects.filter(room=room, n__gt=fold.state.version, n__lte=room.version)
        .order_by("n")
        .values_list("n", "at_ms", "event")
    )
    state, entries = fold.state, []
    for n, at_ms, event_text in rows:
        event = _events.decode(event_text)
        state = evolve(state, event)
        if state.version != n:
            raise LogGap(f"Room {room.public_id!r} has event {n} where {state.version} is due.")
        entries.append(LogEntry(n, at_ms, event))
    if state.version != room.version:
        raise LogGap(f"Room {room.public_id!r} stops at {state.version} of {room.version} events.")
    return Fold(log=(*fold.log, *entries), state=state)
