"""Nobody fills the server with open sockets, and whoever has one too many is told so and plays on without."""

import asyncio
import json
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest
from asgiref.testing import ApplicationCommunicator
from channels.db import database_sync_to_async

from markets.engine.protocol import SELLER
from negotiation_site import throttle
from negotiation_site.throttle import CLOSE_TOO_MANY, OpenSockets
from tests.markets.engine.factories import B1, bilateral
from tests.markets.rooms import staged
from tests.markets.tabs import Tab, session_of

pytestmark = pytest.mark.asyncio


@pytest.fixture(autouse=True)
def limits(settings, monkeypatch):
    settings.RATE_LIMITS = True
    monkeypatch.setattr(throttle, "SOCKETS", replace(throttle.SOCKETS, person=2, address=3))


async def until_closed(scope: Any, receive: Any, send: Any) -> None:
    """A socket that stays open until its page goes."""
    await receive()
    await send({"type": "websocket.accept"})
    while (await receive())["type"] != "websocket.disconnect":
        pass


class Door:
    """One process's sockets."""

    def __init__(self) -> None:
        self.limited = OpenSockets(until_closed)

    async def knock(self, *, session: str = "", account: int = 0, address: str = "192.0.2.1") -> Any:
        user = SimpleNamespace(is_authenticated=bool(account), pk=account)
        scope = {"type": "websocket", "user": user, "session": SimpleNamespace(session_key=session or None)}
        page = ApplicationCommunicator(self.limited, scope | ({"client": (address, 4000)} if address else {}))
        await page.send_input({"type": "websocket.connect"})
        assert (await page.receive_output())["type"] == "websocket.accept"
        page.refused = None
        if page.future.done() or not await page.receive_nothing(timeout=0.01):
            page.refused = json.loads((await page.receive_output())["text"])
            assert (await page.receive_output()) == {"type": "websocket.close", "code": CLOSE_TOO_MANY}
        return page


async def leave(page: Any) -> None:
    await page.send_input({"type": "websocket.disconnect", "code": 1001})
    await page.wait()


async def test_one_too_many_of_a_person_is_told_a_sentence_and_a_closed_page_makes_room():
    door = Door()
    first, second, third = [await door.knock(session="s1") for _ in range(3)]
    assert (first.refused, second.refused) == (None, None)
    assert third.refused["code"] == "too_many_sockets"
    assert third.refused["sentence"].startswith("You have 2 pages open here.")
    await leave(first)
    again = await door.knock(session="s1")
    assert again.refused is None
    for page in (second, again):
        await leave(page)
    assert not door.limited.open, "nothing is remembered of who went"


async def test_an_account_is_one_person_in_every_browser_and_others_of_its_network_come_in():
    door = Door()
    pages = [await door.knock(session=f"s{n}", account=7, address=f"192.0.2.{n}") for n in range(3)]
    assert [page.refused is None for page in pages] == [True, True, False]
    assert (await door.knock(session="other", account=8, address="192.0.2.1")).refused is None


async def test_a_network_has_a_limit_and_one_of_ipv6_is_one_network():
    door = Door()
    pages = [await door.knock(session=f"s{n}", address=f"2001:db8:1:2::{n:x}") for n in range(4)]
    assert [page.refused is None for page in pages] == [True] * 3 + [False]
    assert "your network" in pages[-1].refused["sentence"]
    assert (await door.knock(session="s9", address="2001:db8:1:3::1")).refused is None


async def test_a_socket_whose_application_fails_is_not_counted_for_ever():
    async def fails(scope: Any, receive: Any, send: Any) -> None:
        raise OSError("gone")

    limited = OpenSockets(fails)
    user = SimpleNamespace(is_authenticated=False)
    scope = {"user": user, "session": SimpleNamespace(session_key="s"), "client": ("192.0.2.1", 1)}
    for _ in range(5):
        with pytest.raises(OSError, match="gone"):
            await limited(scope, None, None)
    assert not limited.open


@pytest.mark.django_db(transaction=True)
async def test_the_rooms_own_socket_stands_behind_the_limit():
    game = await database_sync_to_async(lambda: staged(bilateral(), people=(B1, SELLER)))()
    session = await database_sync_to_async(session_of)(game.people[B1])
    tabs = [Tab.address(game.room.public_id, session) for _ in range(3)]
    for tab in tabs:
        assert await tab.connect()
    frames = [await asyncio.wait_for(tab.until("view", "error"), 20) for tab in tabs]
    assert [frame["type"] for frame in frames] == ["view", "view", "error"]
    assert frames[2]["code"] == "too_many_sockets"
    assert await tabs[2].closed() == CLOSE_TOO_MANY
    for tab in tabs[:2]:
        await tab.close()
