"""A room's rows as moves and views read them: the room, its market's name and its seats, in one statement.

Here: `table`, which reads them as they are stored at that moment, and `locked_table`, the same under the room's lock. Not
here: the log (`event_log`) and what a seat may see of any of it (`selectors`). Columns that a move has no use for, the
scenario above all, are read by Django when somebody asks for them.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from django.db import DEFAULT_DB_ALIAS, connection
from django.db.models import OuterRef, QuerySet, Subquery, TextField

from markets.engine.protocol import Party
from markets.models import Market, Room, RoomEvent, Seat
from markets.statements import Reading, Slot

_ROOM = (
    "id",
    "public_id",
    "market_id",
    "status",
    "version",
    "opened_at",
    "ended_at",
    "fills_at",
    "keeper",
    "move_deadline_s",
    "reply_low_ms",
    "reply_high_ms",
)
_MARKET = ("id", "slug", "name", "move_deadline_s")
_SEAT = (
    "id",
    "room_id",
    "party",
    "role",
    "kind",
    "participant_id",
    "agent_slug",
    "agent_version",
    "agent_name",
    "join_token",
    "consent_scope",
    "consent_version",
    "due_position",
    "deadline_at",
)
_MARKET_AT = len(_ROOM)
_SEAT_AT = _MARKET_AT + len(_MARKET)
_REPEATED_AT = _SEAT_AT + len(_SEAT)


def _seats() -> "QuerySet[Seat, Seat]":
    return Seat.objects.filter(room=Slot("room", Room._meta.pk)).order_by("id")


def _columns(*more: str) -> tuple[str, ...]:
    room = tuple(f"room__{name}" for name in _ROOM)
    return (*room, *(f"room__market__{name}" for name in _MARKET), *_SEAT, *more)


def _move() -> Subquery:
    """Number of the event that a sender's move has in the log."""
    sent = {"party": Slot("party", TextField()), "client_move_id": Slot("move", TextField())}
    return Subquery(RoomEvent.objects.filter(room=OuterRef("room"), **sent).order_by().values("n")[:1])


_table: Reading[tuple[Any, ...]] = Reading(lambda: _seats().values_list(*_columns()))
_table_and_move: Reading[tuple[Any, ...]] = Reading(
    lambda: _seats().annotate(move=_move()).values_list(*_columns("move"))
)
_lock: Reading[tuple[int]] = Reading(
    lambda: Room.objects.select_for_update().filter(pk=Slot("room", Room._meta.pk)).values_list("pk")
)


@dataclass(frozen=True)
class Table:
    """A room with its market, and everybody's seat in it, in the order of the chairs."""

    room: Room
    seats: dict[Party, Seat]
    repeated: int | None
    """Number of the event that the move asked about has in the log, where it is there already."""

    @property
    def as_drawn(self) -> tuple[Any, ...]:
        """Every value in these rows that changes: as long as they are the same, so is each seat's view."""
        room = self.room
        seats = tuple(tuple(getattr(seat, name) for name in _SEAT) for seat in self.seats.values())
        return (room.version, room.status, room.opened_at, room.ended_at, room.fills_at, seats)


def table(room_id: int, *, party: Party = "", move: str = "") -> Table | None:
    """The rows of a room; None once its host has given it up. `move` of `party` is looked for in the log."""
    rows = _table_and_move.all(room=room_id, party=party, move=move) if move else _table.all(room=room_id)
    if not rows:
        return None
    first = rows[0]
    room: Room = _made(Room, _ROOM, first[:_MARKET_AT])
    room.market = _made(Market, _MARKET, first[_MARKET_AT:_SEAT_AT])
    seats: dict[Party, Seat] = {}
    for row in rows:
        seat: Seat = _made(Seat, _SEAT, row[_SEAT_AT:_REPEATED_AT])
        seat.room = room
        seats[seat.party] = seat
    return Table(room, seats, first[_REPEATED_AT] if move else None)


def locked_table(room_id: int, *, party: Party = "", move: str = "") -> Table | None:
    """The same, locked until the transaction ends; read after the lock was had, so that nothing of it is older."""
    if connection.features.has_select_for_update:  # Where it has not, the transaction itself is the only writer.
        _lock.first(room=room_id)
    return table(room_id, party=party, move=move)


def _made(model: Any, names: Sequence[str], values: Sequence[Any]) -> Any:
    return model.from_db(DEFAULT_DB_ALIAS, names, values)
