"""A room's event log: reading it, folding it, appending to it.

The database alone is the truth. `load` folds the rows of a room and keeps the fold of recently
used rooms in the process, so that a move reads only what is new; the fold is checked against the
row's version, and an event number can be written once. `append` must run inside the transaction
that locked the room.
"""

from collections import OrderedDict
from dataclasses import dataclass, field
from threading import Lock

import msgspec
from django.db import transaction
from django.utils import timezone

from markets import statements
from markets.engine.observation import SeenEvent, seen_events
from markets.engine.protocol import Event, LogEntry, Party, encode
from markets.engine.scenarios import Scenario, decode_scenario
from markets.engine.state import State, evolve, initial
from markets.models import Room, RoomEvent, Utterance
from markets.statements import Reading, Slot

MAX_KEPT_FOLDS = 500

_EVENT = ("room_id", "n", "at_ms", "party", "event", "client_move_id", "created_at")
_UTTERANCE = ("room_id", "n", "party", "talk", "thought")

_events = msgspec.json.Decoder(Event, strict=True)
_newer: Reading[tuple[int, int, str]] = Reading(
    lambda: (
        RoomEvent.objects.filter(
            room=Slot("room", Room._meta.pk),
            n__gt=Slot("after", RoomEvent._meta.get_field("n")),
            n__lte=Slot("until", RoomEvent._meta.get_field("n")),
        )
        .order_by("n")
        .values_list("n", "at_ms", "event")
    )
)
_kept: OrderedDict[str, "Fold"] = OrderedDict()
_lock = Lock()


@dataclass(frozen=True)
class Fold:
    """A room's log and the state it leads to."""

    log: tuple[LogEntry, ...]
    state: State
    _seen: dict[Party, tuple[SeenEvent, ...]] = field(default_factory=dict, compare=False, repr=False)

    def seen(self, party: Party) -> tuple[SeenEvent, ...]:
        """The log as `party` may know it: what the secrecy gate lets through, asked once for each party of this fold."""
        events = self._seen.get(party)
        if events is None:
            events = self._seen[party] = seen_events(self.state.scenario, self.log, party)
        return events


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


def scenario_of(room: Room) -> Scenario:
    """What the room is about; settled before its first event, so any fold of it knows."""
    with _lock:
        kept = _kept.get(room.public_id)
    return decode_scenario(room.scenario) if kept is None else kept.state.scenario


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
    now = timezone.now()
    first = entries[0].n
    commands = [
        statements.insert(
            RoomEvent,
            _EVENT,
            [
                (
                    room.pk,
                    each.n,
                    at_ms,
                    party,
                    encode(each.event).decode(),
                    client_move_id if each.n == first else "",
                    now,
                )
                for each in entries
            ],
        )
    ]
    if talk or thought:
        commands.append(statements.insert(Utterance, _UTTERANCE, [(room.pk, first, party, talk, thought)]))
    statements.run(*commands)
    room.version = state.version
    return Fold(log=(*fold.log, *entries), state=state)


def _catch_up(room: Room, fold: Fold) -> Fold:
    state, entries = fold.state, []
    for n, at_ms, event_text in _newer.all(room=room.pk, after=fold.state.version, until=room.version):
        event = _events.decode(event_text)
        state = evolve(state, event)
        if state.version != n:
            raise LogGap(f"Room {room.public_id!r} has event {n} where {state.version} is due.")
        entries.append(LogEntry(n, at_ms, event))
    if state.version != room.version:
        raise LogGap(f"Room {room.public_id!r} stops at {state.version} of {room.version} events.")
    return Fold(log=(*fold.log, *entries), state=state)
