"""The room socket: one consumer per open page of one seat.

Frames come in, are decoded strictly and answered; when the room's version changes every consumer
sends its own seat what that seat may see. The database is the truth: a nudge may be lost, so the
consumer looks for itself every `HEAL_S` seconds, and a client that notices a gap asks again.
"""

import asyncio
import json
from contextlib import suppress
from datetime import datetime
from typing import Any

from channels.db import database_sync_to_async
from channels.generic.websocket import AsyncWebsocketConsumer
from django.contrib.sessions.backends.base import SessionBase
from django.utils import timezone
from django.utils.translation import gettext as _
from redis.exceptions import RedisError

from markets import identity, publishing, room_frames, services, trace, wire
from markets.engine.scenarios import MAX_BUYERS
from markets.links import origin_of_socket
from markets.models import Seat
from markets.room_page import letter
from markets.room_rows import Table
from markets.selectors import SeatView, fresh_table, seat_of, seated, table_view
from markets.services import RoomError

HEAL_S = 15.0
MAX_FRAMES = 120
WINDOW_S = 10.0
"""A person types, a script floods: more frames than that in so many seconds are not read."""

CLOSE_STRANGER = 4403


class RoomConsumer(AsyncWebsocketConsumer):
    """One page at one seat. Whose seat it is and what the page is told of the others can be said by a subclass."""

    seat: Seat
    group: str = ""
    seq: int = 0
    """Last seat event that this page has been sent."""
    version: int = -1
    """The room's version that the page was last drawn from."""
    rows: tuple[Any, ...] = ()
    """All the rows that it was drawn from."""
    believed: tuple[Any, ...] | None = None
    """What was stored of the session, the person and the account when the seat was found to be theirs."""
    stamp: object = None
    """What the page was last sent, so that a heartbeat sends nothing new."""

    async def connect(self) -> None:
        public_id = self.scope["url_route"]["kwargs"]["public_id"]
        trace.room_id.set(public_id)
        seat = await database_sync_to_async(self.find_seat)(public_id, self.scope["session"])
        await self.accept()
        if seat is None:
            await self._send(wire.error("not_seated", _("You do not sit in this room. Ask for a link to join.")))
            await self.close(CLOSE_STRANGER)
            return
        self.seat = seat
        self.seq = _last_seen(self.scope.get("query_string", b""))
        self.origin = origin_of_socket(scheme=self.scope.get("scheme", "ws"), headers=self.scope["headers"])
        self._recent: list[float] = []
        self._sending = asyncio.Lock()
        self.group = publishing.group_of(seat.room.public_id)
        await self.channel_layer.group_add(self.group, self.channel_name)
        await database_sync_to_async(services.touch_seat)(seat=seat)
        await self._send_view(always=True)
        self._healer = asyncio.create_task(self._heal())

    def find_seat(self, public_id: str, session: SessionBase) -> Seat | None:
        """The chair in the room that this session plays on."""
        return seat_of(public_id=public_id, participant=identity.participant_of(session))

    def sits_there(self, seat: Seat, session: SessionBase) -> bool:
        """Whether the seat is still that of the session as it is stored now: a socket outlives log-out and expiry."""
        grounds = identity.grounds(session, seat.participant_id)
        if grounds is not None and grounds == self.believed:
            return True
        participant = identity.participant_of(session)
        sits = participant is not None and participant.pk == seat.participant_id
        self.believed = grounds if sits else None
        return sits

    def shown(self, view: SeatView) -> SeatView:
        """The view as this page is told it."""
        return view

    async def disconnect(self, code: int) -> None:
        if self.group:
            self._healer.cancel()
            with suppress(asyncio.CancelledError):
                await self._healer
            await self.channel_layer.group_discard(self.group, self.channel_name)

    async def receive(self, text_data: str | None = None, bytes_data: bytes | None = None) -> None:
        if not self.group:
            return
        if text_data is None:
            await self._send(wire.error("not_text", _("This room reads text frames only.")))
            return
        if self._too_many():
            await self._send(wire.error("too_many", _("Slow down a little, then try again.")))
            return
        try:
            frame = wire.decode(text_data)
        except wire.BadFrame as error:
            await self._send(wire.error("bad_frame", str(error)))
            return
        if isinstance(frame, wire.Typing):
            await self._tell_typing(frame)
            return
        now = timezone.now()
        try:
            if isinstance(frame, wire.Act):
                reply = await self._move(frame, now)
            else:
                reply = await database_sync_to_async(self._answer)(frame, now)
        except RoomError as error:
            await self._send(wire.error(error.code, error.sentence))
            await self.close(CLOSE_STRANGER)
            return
        if reply is not None:
            if reply["type"] == "view":
                self.seq = reply["seq"]
            await self._send(reply)

    async def room_nudge(self, event: dict[str, Any]) -> None:
        """The room has a new version; where a move made it and this page was drawn since, as after its own move, it
        shows everything already."""
        if not (event.get("moved") and event["version"] <= self.version):
            await self._send_view()

    async def room_typing(self, event: dict[str, Any]) -> None:
        """Somebody is writing; told to the other side of that thread only."""
        mine = self.seat.role
        if event["role"] == mine:
            return
        if mine == "buyer" and event["buyer"] != _buyer_number(self.seat):
            return
        thread = event["buyer"] if mine == "seller" else 1
        await self._send({"type": "typing", "thread": thread})

    async def room_waiting(self, event: dict[str, Any]) -> None:
        """The other side of a thread is an agent that cannot be asked just now."""
        if event["role"] == self.seat.role:
            return
        if self.seat.role == "buyer" and event["buyer"] != _buyer_number(self.seat):
            return
        who = _("the seller") if event["role"] == "seller" else _("the buyer")
        if event["role"] == "buyer" and event.get("several"):
            who = _("Buyer %(letter)s") % {"letter": letter(event["buyer"])}
        sentence = (
            _("The language model of %(who)s does not answer just now. The moves go on, in plain words of ours.")
            if event.get("plays_on")
            else _(
                "The language model of %(who)s does not answer just now. It is asked again; if it stays silent, its turn "
                "is over."
            )
        ) % {"who": who}
        await self._send(wire.error("agent_waits", sentence))

    async def _tell_typing(self, frame: wire.Typing) -> None:
        buyer = _buyer_number(self.seat) if self.seat.role == "buyer" else frame.buyer or 1
        if not 0 < buyer <= MAX_BUYERS:  # Nobody listens there, and the channel layer carries no number of any size.
            return
        with suppress(OSError, RedisError):
            await self.channel_layer.group_send(
                self.group, {"type": "room.typing", "role": self.seat.role, "buyer": buyer}
            )

    async def _move(self, frame: wire.Act, now: datetime) -> dict[str, Any]:
        """Carry a move out and draw the page after it in one go; whoever moves sees it before it is acknowledged."""
        async with self._sending:
            reply, drawn = await database_sync_to_async(self._carry_out)(frame, now)
            await self._show(drawn)
        return reply

    async def _send_view(self, *, always: bool = False) -> None:
        async with self._sending:
            await self._show(await database_sync_to_async(self._view_frame)(), always=always)

    async def _show(self, drawn: dict[str, Any] | None, *, always: bool = False) -> None:
        """Send what was drawn, unless the page shows it; close where nobody may look any more."""
        if drawn is None:
            await self.close(CLOSE_STRANGER)
            return
        stamp = (drawn["seq"], drawn["ended"], drawn["panels"])
        if always or stamp != self.stamp:
            self.stamp, self.seq = stamp, drawn["seq"]
            await self._send(drawn)

    async def _heal(self) -> None:
        with suppress(OSError):  # The page has gone; the server says so when something is sent to it.
            while True:
                await asyncio.sleep(HEAL_S)
                sits, changed = await database_sync_to_async(self._look_again)()
                if not sits:
                    await self.close(CLOSE_STRANGER)
                    return
                if changed:
                    await self._send_view()

    def _carry_out(self, frame: wire.Act, now: datetime) -> tuple[dict[str, Any], dict[str, Any]]:
        """The answer to a move, and the page drawn after it."""
        if not self._still_sits(self.seat):
            raise _not_seated()
        reply, table = room_frames.act(self.seat, frame, now=now)
        drawn = self._view_frame(table)
        if drawn is None:
            raise _not_seated()
        return reply if reply["type"] == "refused" else reply | {"seq": drawn["seq"]}, drawn

    def _answer(self, frame: wire.ClientFrame, now: datetime) -> dict[str, Any] | None:
        found = fresh_table(self.seat)
        if found is None or not self._still_sits(found[1]):
            raise _not_seated()
        return room_frames.answer(found[1], frame, origin=self.origin, now=now, shown=self.shown)

    def _still_sits(self, seat: Seat) -> bool:
        return self.sits_there(seat, identity.stored_session(self.scope["session"].session_key))

    def _view_frame(self, table: Table | None = None) -> dict[str, Any] | None:
        """The page as it is now, or as `table` has just been left; None when somebody else sits there."""
        found = fresh_table(self.seat) if table is None else seated(self.seat, table)
        return None if found is None else self._draw(*found)

    def _look_again(self) -> tuple[bool, bool]:
        """Whether whoever sat there still does, and whether a row that the page is drawn from has changed since."""
        if not self._still_sits(self.seat):
            return False, False
        found = fresh_table(self.seat)
        return True, found is None or found[0].as_drawn != self.rows

    def _draw(self, table: Table, seat: Seat) -> dict[str, Any]:
        self.version, self.rows = table.room.version, table.as_drawn
        view = table_view(table, seat, after=self.seq)
        return wire.view_frame(self.shown(view), after=self.seq, origin=self.origin, now=timezone.now())

    def _too_many(self) -> bool:
        now = asyncio.get_running_loop().time()
        self._recent = [moment for moment in self._recent if now - moment < WINDOW_S]
        if len(self._recent) >= MAX_FRAMES:
            return True
        self._recent.append(now)
        return False

    async def _send(self, frame: dict[str, Any]) -> None:
        await self.send(text_data=json.dumps(frame, ensure_ascii=False))


def _not_seated() -> RoomError:
    return RoomError("not_seated", _("You do not sit in this room any more."))


def _buyer_number(seat: Seat) -> int:
    return int(seat.party.removeprefix("buyer-"))


def _last_seen(query: bytes) -> int:
    """`?after=n` of the address, 0 where it is missing or no number."""
    for part in query.decode("ascii", "ignore").split("&"):
        name, _sep, value = part.partition("=")
        if name == "after" and value.isdigit() and len(value) < 10:
            return int(value)
    return 0
