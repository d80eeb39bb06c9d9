"""An open page of one seat without a browser: what `static/js/room.js` does with frames, in Python.

Here: the socket and its reconnects, the outbox, gaps and resyncs, the fallback by GET and POST, and what the page
shows. Not here: what to play (whoever holds a `RoomClient` calls `act` and `worth`), pages and forms.

Contract, the script's own: a move stays in the outbox under its id until it is answered and is sent again after every
reconnect; a view that does not continue what is shown is a gap and is asked for; where no socket opens for
`POLL_AFTER_S` the same frames travel by GET and POST. Every move and its answer is kept in `moves`, so that what the
server promised can be held against what it stored.
"""

import asyncio
import json
import random
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any, NamedTuple, Self
from urllib.parse import urlsplit

import httpx2
import websockets

POLL_AFTER_S = 3.0
POLL_EVERY_S = 2.0
PING_EVERY_S = 25.0
PONG_S = 30.0
OPEN_S = 120.0
"""Browsers wait long for a busy server to answer; whoever gave up early would only come back and cost it more."""
LONGEST_PAUSE_S = 10.0
REQUEST_S = 60.0
NOT_OURS = range(4400, 4500)
"""Codes by which a server closes a socket for good: the page would load itself anew."""

ACK, REFUSED = "ack", "refused"


@dataclass
class Move:
    """One move of this seat and what its sender was told."""

    id: str
    thread: int
    action: Mapping[str, Any]
    sent_at: float
    """Seconds of `time.monotonic`."""
    answer: str = ""
    """`ack`, `refused`, or nothing yet."""
    code: str = ""
    """Of a refusal."""
    answered_at: float | None = None
    sendings: int = 0
    frame: dict[str, Any] = field(default_factory=dict)


@dataclass
class Shown:
    """What the page shows: the lines of its logs, its panels, and what the last view said."""

    seq: int = 0
    items: dict[int, tuple[int, str]] = field(default_factory=dict)
    """Thread and text by the seat's number of the event."""
    panels: dict[str, str] = field(default_factory=dict)
    awaiting: tuple[int, ...] = ()
    my_turn: bool = False
    ended: bool = False
    drawn: bool = False
    """Whether any view has come yet."""


@dataclass
class Troubles:
    """What the line went through."""

    reconnects: int = 0
    gaps: int = 0
    polls: int = 0
    errors: dict[str, int] = field(default_factory=dict)


class Paths(NamedTuple):
    """Where a table's page speaks with the server, as its own data says."""

    socket: str
    view: str
    act: str

    @classmethod
    def of_room(cls, public_id: str) -> Self:
        """Those of a room by itself."""
        return cls(f"/ws/rooms/{public_id}/", f"/rooms/{public_id}/view.json", f"/rooms/{public_id}/act/")


class RoomClient:
    """One page. `run` keeps the line until the room is over for the seat and every move is answered."""

    def __init__(
        self,
        *,
        bases: Sequence[str],
        paths: Paths,
        cookies: Mapping[str, str],
        http: httpx2.AsyncClient,
        chance: random.Random,
        on_items: Callable[[Sequence[Mapping[str, Any]]], None] = lambda items: None,
    ) -> None:
        """`bases` are addresses of the same site, as a load balancer would choose among them."""
        self.bases, self.paths, self.cookies = bases, paths, cookies
        self.http, self.chance, self.on_items = http, chance, on_items
        self.shown, self.troubles = Shown(), Troubles()
        self.moves: list[Move] = []
        self.changed = asyncio.Event()
        """Set whenever a frame changed something."""
        self.closed_out = False
        """The server said that the seat is not ours."""
        self._socket: websockets.ClientConnection | None = None
        self._resyncing = False
        self._writers: set[asyncio.Task[None]] = set()
        self._asked: dict[int, asyncio.Future[int | None]] = {}

    # --- For whoever plays --------------------------------------------------------------------------

    @property
    def outbox(self) -> list[Move]:
        """Moves that are not answered."""
        return [move for move in self.moves if not move.answer]

    def act(self, thread: int, action: Mapping[str, Any]) -> Move | None:
        """Send a move; None while an earlier one of the same thread waits for its answer."""
        if any(move.thread == thread for move in self.outbox):
            return None
        move = Move(uuid.UUID(int=self.chance.getrandbits(128)).hex, thread, action, _now())
        move.frame = {"type": "act", "client_move_id": move.id, "seen": self.shown.seq, "action": dict(action)}
        self.moves.append(move)
        self._send_soon(move)
        return move

    async def worth(self, price: str) -> int | None:
        """Cents that a deal at a price would be worth, as the page asks while one types; None for no price, or no line."""
        number = self.chance.randrange(1, 1_000_000)
        answer = self._asked[number] = asyncio.get_running_loop().create_future()
        try:
            with suppress(OSError, TimeoutError, websockets.WebSocketException):
                await self._say({"type": "preview", "id": number, "price": price})
                return await asyncio.wait_for(answer, REQUEST_S)
            return None
        finally:
            del self._asked[number]

    async def run(self) -> None:
        """Connect, and connect again, until `done`; a page that has seen the end does not come back for an answer."""
        tries, lost_at = 0, _now()
        polling: asyncio.Task[None] | None = None
        try:
            while not self._over():
                base = self.chance.choice(self.bases)
                heard = False
                with suppress(OSError, TimeoutError, websockets.WebSocketException):
                    async with self._open(base) as socket:
                        self._socket, self._resyncing = socket, False
                        await self._say({"type": "resync", "after": self.shown.seq})
                        for move in self.outbox:
                            await self._send_move(move)
                        async for text in socket:
                            if not heard:
                                heard, tries = True, 0
                                _stop(polling)
                                polling = None
                            await self._receive(json.loads(text))
                            if self._over():
                                return
                if self._socket is not None and self._socket.close_code in NOT_OURS:
                    self.closed_out = True
                self._socket = None
                if heard:
                    lost_at = _now()
                if self.shown.ended or self.closed_out:
                    return
                self.troubles.reconnects += 1
                if polling is None:
                    polling = asyncio.create_task(self._poll(max(0.0, POLL_AFTER_S - (_now() - lost_at))))
                await asyncio.sleep(min(LONGEST_PAUSE_S, 0.2 * 2**tries) * (0.5 + self.chance.random() / 2))
                tries += 1
        finally:
            _stop(polling)
            self.changed.set()

    def _over(self) -> bool:
        """Nothing more will come of this page."""
        return self.closed_out or (self.shown.ended and not self.outbox)

    # --- The line -----------------------------------------------------------------------------------

    def _open(self, base: str) -> websockets.connect:
        parts = urlsplit(base)
        address = f"{'wss' if parts.scheme == 'https' else 'ws'}://{parts.netloc}{self.paths.socket}"
        return websockets.connect(
            address,
            additional_headers={"Cookie": _cookie_header(self.cookies), "Origin": base},
            open_timeout=OPEN_S,
            ping_interval=PING_EVERY_S,
            ping_timeout=PONG_S,
            close_timeout=1,
            proxy=None,
        )

    async def _say(self, frame: Mapping[str, Any]) -> None:
        if self._socket is not None:
            await self._socket.send(json.dumps(frame))

    async def _send_move(self, move: Move) -> None:
        move.sendings += 1
        await self._say(move.frame)

    def _send_soon(self, move: Move) -> None:
        """Send it now if there is a line; otherwise the next connection or poll takes it along."""

        async def send() -> None:
            with suppress(OSError, websockets.WebSocketException):
                if self._socket is not None:
                    await self._send_move(move)

        task = asyncio.create_task(send())
        self._writers.add(task)
        task.add_done_callback(self._writers.discard)

    async def _poll(self, wait_s: float) -> None:
        """The same frames by GET and POST, until a socket opens."""
        await asyncio.sleep(wait_s)
        while not self._over():
            base = self.chance.choice(self.bases)
            with suppress(httpx2.HTTPError, ValueError):
                answer = await self._ask("GET", f"{base}{self.paths.view}?after={self.shown.seq}", base)
                answer.raise_for_status()
                self.troubles.polls += 1
                await self._receive(answer.json())
                for move in self.outbox:
                    move.sendings += 1
                    reply = await self._ask("POST", f"{base}{self.paths.act}", base, json=move.frame)
                    if "application/json" in reply.headers.get("Content-Type", ""):
                        await self._receive(reply.json())
            await asyncio.sleep(POLL_EVERY_S)

    async def _ask(self, method: str, address: str, base: str, **more: Any) -> httpx2.Response:
        headers = {
            "Cookie": _cookie_header(self.cookies),
            "Origin": base,
            "Accept": "application/json",
            "X-CSRFToken": self.cookies.get("csrftoken", ""),
        }
        return await self.http.request(method, address, headers=headers, timeout=REQUEST_S, **more)

    # --- Frames -------------------------------------------------------------------------------------

    async def _receive(self, frame: dict[str, Any]) -> None:
        match frame.get("type"):
            case "view":
                await self._view(frame)
            case "ack" | "refused":
                await self._answered(frame)
            case "preview" if (asked := self._asked.get(frame["id"])) is not None and not asked.done():
                asked.set_result(frame["surplus_cents"] if frame["ok"] else None)
            case "error":
                code = str(frame.get("code"))
                self.troubles.errors[code] = self.troubles.errors.get(code, 0) + 1
                if code == "not_seated":
                    self.closed_out = True
                elif code == "too_many":
                    await asyncio.sleep(1.5)
                    for move in self.outbox:
                        await self._send_move(move)
        self.changed.set()

    async def _view(self, frame: dict[str, Any]) -> None:
        shown = self.shown
        if frame["after"] > shown.seq:
            self.troubles.gaps += 1
            await self._resync()
            return
        self._resyncing = False
        if frame["seq"] < shown.seq:
            return
        fresh = [item for item in frame["items"] if item["seq"] > shown.seq]
        for item in fresh:
            shown.items[item["seq"]] = (item["thread"], item["html"])
        shown.seq = frame["seq"]
        shown.panels.update(frame["panels"])
        shown.awaiting, shown.my_turn = tuple(frame["awaiting"]), frame["my_turn"]
        shown.ended, shown.drawn = frame["ended"], True
        self.on_items(fresh)

    async def _answered(self, frame: dict[str, Any]) -> None:
        move = next((one for one in self.outbox if one.id == frame["client_move_id"]), None)
        if move is None:
            return
        move.answer, move.code = frame["type"], str(frame.get("code", ""))
        move.answered_at = _now()
        if move.answer == ACK and frame["seq"] > self.shown.seq:
            await self._resync()

    async def _resync(self) -> None:
        if not self._resyncing and self._socket is not None:
            self._resyncing = True
            await self._say({"type": "resync", "after": self.shown.seq})


def _stop(task: "asyncio.Task[None] | None") -> None:
    if task is not None:
        task.cancel()


def _cookie_header(cookies: Mapping[str, str]) -> str:
    return "; ".join(f"{name}={value}" for name, value in cookies.items())


def _now() -> float:
    return asyncio.get_running_loop().time()
