"""Browsers without a browser: open pages as the server sees them, with the session of whoever sits there.

Here: `Tab`, a room's socket that keeps every frame it gets and draws them as `room.js` does; `browser`, a client for
pages; `faults`, what no page may have. Not here: what frames and pages must say (`test_consumers`, `test_views`).
"""

import json
import re
import uuid
from dataclasses import dataclass, field
from html.parser import HTMLParser
from typing import Any

from asgiref.testing import ApplicationCommunicator
from channels.db import database_sync_to_async
from django.conf import settings
from django.contrib.sessions.backends.db import SessionStore
from django.test import Client

from markets import identity
from markets.models import Participant
from negotiation_site.asgi import application
from tests.markets.rooms import Game

WAIT_S = 20.0
QUIET_S = 0.03
"""After this long without a frame a tab has been told everything."""


def session_of(participant: Participant | None) -> SessionStore:
    """A stored session that belongs to a participant; to nobody in particular for None."""
    session = SessionStore()
    if participant is not None:
        session[identity.SESSION_KEY] = participant.pk
    session.save()
    return session


@dataclass
class Drawing:
    """What a page shows: the lines of its logs and its panels. Applies frames by the rules of `room.js`."""

    seq: int = 0
    items: list[tuple[int, int, str]] = field(default_factory=list)
    panels: dict[str, str] = field(default_factory=dict)
    ended: bool = False
    awaiting: tuple[int, ...] = ()

    def apply(self, frame: dict[str, Any]) -> bool:
        """Draw one view frame; False where it does not continue what is shown."""
        if frame["after"] > self.seq:
            return False
        if frame["seq"] < self.seq:
            return True
        new = [item for item in frame["items"] if item["seq"] > self.seq]
        self.items.extend((item["seq"], item["thread"], item["html"]) for item in new)
        self.panels.update(frame["panels"])
        self.seq, self.ended, self.awaiting = frame["seq"], frame["ended"], tuple(frame["awaiting"])
        return True


class Tab:
    """One open page of one seat."""

    def __init__(self, socket: ApplicationCommunicator, session: SessionStore | None) -> None:
        self.socket = socket
        self.session = session
        self.raw: list[str] = []
        self.frames: list[dict[str, Any]] = []
        self.drawing = Drawing()

    @classmethod
    async def open(cls, game: Game, party: str, *, after: int | str | None = None) -> "Tab":
        """The page of a seat, with its first view received."""
        session = await database_sync_to_async(session_of)(game.people[party])
        tab = cls.address(game.room.public_id, session, after=after)
        assert await tab.connect()
        await tab.until("view")
        return tab

    @classmethod
    def address(
        cls,
        public_id: str,
        session: SessionStore | None,
        *,
        after: int | None = None,
        origin: str = "http://localhost",
        at: str = "rooms",
    ) -> "Tab":
        """A socket that has not been connected yet."""
        headers = [(b"host", b"localhost"), (b"origin", origin.encode())]
        if session is not None:
            headers.append((b"cookie", f"{settings.SESSION_COOKIE_NAME}={session.session_key}".encode()))
        scope = {
            "type": "websocket",
            "path": f"/ws/{at}/{public_id}/",
            "query_string": b"" if after is None else f"after={after}".encode(),
            "headers": headers,
            "subprotocols": [],
        }
        return cls(ApplicationCommunicator(application, scope), session)

    async def connect(self) -> bool:
        """Knock; whether the door was opened."""
        await self.socket.send_input({"type": "websocket.connect"})
        answer = await self.socket.receive_output(timeout=WAIT_S)
        return answer["type"] == "websocket.accept"

    # Talking

    async def send(self, frame: dict[str, Any] | str | bytes) -> None:
        if isinstance(frame, bytes):
            message = {"bytes": frame}
        else:
            message = {"text": frame if isinstance(frame, str) else json.dumps(frame)}
        await self.socket.send_input({"type": "websocket.receive", **message})

    async def until(self, *types: str) -> dict[str, Any]:
        """The next frame of one of these types; the ones before it are kept and drawn."""
        while True:
            frame = await self._next()
            if frame["type"] in types:
                return frame

    async def reach(self, seq: int, *, ended: bool = False) -> None:
        """Receive views until the page shows event number `seq` of its seat, and the end if there is one."""
        while self.drawing.seq < seq or self.drawing.ended < ended:
            await self.until("view")

    async def settle(self) -> None:
        """Receive what is on its way, for tests that something does not come."""
        while not await self.socket.receive_nothing(timeout=QUIET_S, interval=QUIET_S / 3):
            await self._next()

    async def ask(self, frame: dict[str, Any] | str, *types: str) -> dict[str, Any]:
        """Send a frame and wait for its answer."""
        await self.send(frame)
        return await self.until(*types, "error")

    async def act(self, action: dict[str, Any], *, move: str | None = None, seen: int | None = None) -> dict[str, Any]:
        """Send a move and give its answer: an ack, a refusal or an error."""
        frame = {"type": "act", "client_move_id": move or uuid.uuid4().hex, "action": action}
        return await self.ask(frame if seen is None else {**frame, "seen": seen}, "ack", "refused")

    async def closed(self) -> int:
        """The code that the server closes with; frames before that are kept."""
        while True:
            message = await self.socket.receive_output(timeout=WAIT_S)
            if message["type"] == "websocket.close":
                return message.get("code", 1000)
            self._keep(message["text"])

    async def close(self) -> None:
        await self.socket.send_input({"type": "websocket.disconnect", "code": 1001})
        await self.socket.wait(timeout=WAIT_S)

    async def _next(self) -> dict[str, Any]:
        message = await self.socket.receive_output(timeout=WAIT_S)
        assert message["type"] == "websocket.send", message
        return self._keep(message["text"])

    def _keep(self, text: str) -> dict[str, Any]:
        frame = json.loads(text)
        self.raw.append(text)
        self.frames.append(frame)
        if frame["type"] == "view":
            self.drawing.apply(frame)
        return frame


def offering(price: str, **where: Any) -> dict[str, Any]:
    return {"type": "make_offer", "price": price, **where}


def saying(talk: str, **where: Any) -> dict[str, Any]:
    return {"type": "say", "talk": talk, **where}


def accepting(offer_id: int, **where: Any) -> dict[str, Any]:
    return {"type": "accept_offer", "offer_id": offer_id, **where}


def rejecting(offer_id: int, **where: Any) -> dict[str, Any]:
    return {"type": "reject_offer", "offer_id": offer_id, **where}


LEAVING = {"type": "leave"}


def browser(participant: Participant | None = None, **how: Any) -> Client:
    """A browser with the session of a participant; with none yet for None."""
    client = Client(**how)
    if participant is not None:
        client.cookies[settings.SESSION_COOKIE_NAME] = session_of(participant).session_key
    return client


class _Page(HTMLParser):
    """Collects what is wrong with a page."""

    VOID = frozenset(
        ["area", "base", "br", "col", "embed", "hr", "img", "input", "link", "meta", "source", "track", "wbr"]
    )
    HANDLER = re.compile(r"on[a-z]+|hx-on.*|style")

    def __init__(self) -> None:
        super().__init__()
        self.faults: list[str] = []
        self.open: list[str] = []
        self.ids: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = dict(attrs)
        self.ids.extend(value for name, value in attrs if name == "id" and value)
        self.faults.extend(f"{tag} {name}" for name in values if self.HANDLER.fullmatch(name))
        if tag == "style" or (tag == "script" and "src" not in values and values.get("type") != "application/json"):
            self.faults.append(f"inline {tag}")
        for name in ("src", "href", "action", "hx-get", "hx-post"):
            if re.match(r"(?i)\s*(https?:|//|javascript:|data:)", values.get(name) or ""):
                self.faults.append(f"{tag} {name}={values[name]!r}")
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        if tag not in self.VOID:
            self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        if not self.open or self.open.pop() != tag:
            self.faults.append(f"</{tag}> out of place")

    def handle_data(self, data: str) -> None:
        if not (self.open and self.open[-1] in ("script", "textarea")):
            self.faults.extend(re.findall(r"\{[%{#].{0,40}|<[A-Za-z_.]+ object at|^\W*None\W*$", data))


def faults(html: str) -> list[str]:
    """What no page may have: inline scripts or styles, foreign addresses, tags out of place, an id twice, code as text."""
    page = _Page()
    page.feed(html)
    page.close()
    twice = {name for name in page.ids if page.ids.count(name) > 1}
    return [*page.faults, *(f"id {name} twice" for name in twice), *(f"<{tag}> left open" for tag in page.open)]
