"""The page without a browser keeps its moves as the real one does: a fault could hide behind a client that forgets."""

import asyncio
import json
import random
from collections.abc import Awaitable, Callable
from typing import Any

import httpx2
import pytest
import websockets

from negotiation_site import room_client
from negotiation_site.room_client import Paths, RoomClient

pytestmark = pytest.mark.asyncio

Talk = Callable[[websockets.ServerConnection], Awaitable[None]]


def view(seq: int, *, after: int = 0, ended: bool = False) -> dict[str, Any]:
    items = [{"seq": n, "thread": 1, "html": f"<li>{n}</li>"} for n in range(after + 1, seq + 1)]
    return {
        "type": "view", "seq": seq, "after": after, "items": items, "panels": {"panel-status": f"at {seq}"},
        "my_turn": not ended, "awaiting": [] if ended else [1], "ended": ended,
    }  # fmt: skip


async def played(talks: list[Talk], play: Callable[[RoomClient], Awaitable[None]]) -> RoomClient:
    """A page that meets these servers one after the other, and its player."""

    async def serve(socket: websockets.ServerConnection) -> None:
        await talks.pop(0)(socket)

    async with websockets.serve(serve, "127.0.0.1", 0) as server, httpx2.AsyncClient(trust_env=False) as http:
        port = next(iter(server.sockets)).getsockname()[1]
        page = RoomClient(
            bases=[f"http://127.0.0.1:{port}"],
            paths=Paths.of_room("room"),
            cookies={},
            http=http,
            chance=random.Random(1),
        )
        line = asyncio.create_task(page.run())
        async with asyncio.timeout(20):
            await play(page)
            await line
        return page


async def say(socket: websockets.ServerConnection, frame: dict[str, Any]) -> None:
    await socket.send(json.dumps(frame))


async def heard(socket: websockets.ServerConnection, kind: str) -> dict[str, Any]:
    while True:
        frame = json.loads(await socket.recv())
        if frame["type"] == kind:
            return dict(frame)


async def until(page: RoomClient, condition: Callable[[], bool]) -> None:
    while not condition():
        page.changed.clear()
        await asyncio.wait_for(page.changed.wait(), 10)


async def test_a_move_whose_answer_got_lost_is_sent_again_under_its_id() -> None:
    sent: list[dict[str, Any]] = []

    async def dies(socket: websockets.ServerConnection) -> None:
        await say(socket, view(0))
        sent.append(await heard(socket, "act"))

    async def lives(socket: websockets.ServerConnection) -> None:
        await say(socket, view(0))
        sent.append(await heard(socket, "act"))
        await say(socket, view(1, ended=True))
        await say(socket, {"type": "ack", "client_move_id": sent[-1]["client_move_id"], "seq": 1, "repeated": True})
        await socket.wait_closed()

    async def play(page: RoomClient) -> None:
        await until(page, lambda: page.shown.drawn)
        assert page.act(1, {"type": "say", "talk": "Hello."}) is not None
        assert page.act(1, {"type": "say", "talk": "Hello."}) is None  # A double click is one move.

    page = await played([dies, lives], play)
    assert sent[0] == sent[1]
    assert [(move.answer, move.sendings) for move in page.moves] == [("ack", 2)]
    assert (page.shown.seq, page.shown.ended, page.troubles.reconnects) == (1, True, 1)


async def test_a_view_that_does_not_continue_what_is_shown_is_asked_for() -> None:
    asked: list[int] = []

    async def skips(socket: websockets.ServerConnection) -> None:
        await say(socket, view(1))
        await heard(socket, "resync")
        await say(socket, view(4, after=3))
        asked.append((await heard(socket, "resync"))["after"])
        await say(socket, view(4, after=1, ended=True))
        await socket.wait_closed()

    async def play(page: RoomClient) -> None:
        await until(page, lambda: page.shown.ended)

    page = await played([skips], play)
    assert asked == [1]
    assert sorted(page.shown.items) == [1, 2, 3, 4]
    assert page.troubles.gaps == 1


async def test_a_page_whose_seat_is_somebody_elses_does_not_come_back() -> None:
    async def refuses(socket: websockets.ServerConnection) -> None:
        await say(socket, {"type": "error", "code": "not_seated", "sentence": "You do not sit here."})
        await socket.close(4403)

    async def play(page: RoomClient) -> None:
        await until(page, lambda: page.closed_out)

    page = await played([refuses], play)
    assert page.troubles.reconnects == 0


async def test_without_a_socket_the_same_frames_travel_by_get_and_post(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(room_client, "POLL_AFTER_S", 0.0)
    monkeypatch.setattr(room_client, "POLL_EVERY_S", 0.02)
    asked: list[tuple[str, str]] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        asked.append((request.method, request.url.path))
        if request.method == "POST":
            move = json.loads(request.content)["client_move_id"]
            return httpx2.Response(200, json={"type": "ack", "client_move_id": move, "seq": 1, "repeated": False})
        return httpx2.Response(200, json=view(1, ended=True) if ("POST", "/rooms/room/act/") in asked else view(0))

    async with httpx2.AsyncClient(transport=httpx2.MockTransport(answer)) as http:
        page = RoomClient(
            bases=["http://127.0.0.1:9"], paths=Paths.of_room("room"), cookies={}, http=http, chance=random.Random(1)
        )
        line = asyncio.create_task(page.run())
        async with asyncio.timeout(20):
            await until(page, lambda: page.shown.drawn)
            page.act(1, {"type": "say", "talk": "Hello."})
            await line
    assert [move.answer for move in page.moves] == ["ack"]
    assert page.shown.ended
    assert ("GET", "/rooms/room/view.json") in asked
