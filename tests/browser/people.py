"""A person at a page: what they press, and what they can then read. No assertion beyond "it came to that".

`Watch` listens to everything a browser context does that nobody may see: complaints on the console, requests to other
origins, and every frame of a room's socket in both directions.
"""

import json
import re
from collections.abc import Callable
from typing import Any, TypeAlias
from urllib.parse import urlsplit

from playwright.sync_api import BrowserContext, Locator, Page, WebSocketRoute, expect

Frame: TypeAlias = dict[str, Any]

ROOM_URL = re.compile(r"/rooms/[\w-]+/$")
ROOM_SOCKET = re.compile(r"/ws/rooms/")
PASSWORD = "three green lamps"
"""Of everybody with an account."""


class Watch:
    """What a browser context did, for a test to look at; its fixture refuses what should not have been."""

    def __init__(self, context: BrowserContext, *, origin: str) -> None:
        self.origin = origin
        self.complaints: list[str] = []
        """Errors on the console, refusals of the content security policy among them, and uncaught exceptions."""
        self.requests: list[str] = []
        self.sent: list[str] = []
        self.received: list[str] = []
        context.on("console", lambda message: self._said(message.type, message.text))
        context.on("weberror", lambda error: self.complaints.append(str(error.error)))
        context.on("request", lambda request: self.requests.append(request.url))
        context.on("page", lambda page: page.on("websocket", self._socket))

    def _said(self, kind: str, text: str) -> None:
        if kind == "error":
            self.complaints.append(text)

    def _socket(self, socket: Any) -> None:
        self.requests.append(socket.url)
        socket.on("framesent", lambda payload: self.sent.append(str(payload)))
        socket.on("framereceived", lambda payload: self.received.append(str(payload)))

    def forgive(self, *words: str) -> None:
        """Take back complaints that a test has provoked: those with one of `words` in them."""
        self.complaints[:] = [said for said in self.complaints if not any(word in said for word in words)]

    def strangers(self) -> list[str]:
        """Requests that left the origin."""
        home = urlsplit(self.origin).netloc
        return [url for url in self.requests if not url.startswith("data:") and urlsplit(url).netloc != home]


class Player:
    """One person at one tab of the running site."""

    def __init__(self, page: Page, *, site: str, watch: Watch) -> None:
        self.page = page
        self.site = site
        self.watch = watch

    # Getting there

    def open(self, path: str) -> None:
        self.page.goto(self.site + path)

    def sit_down(
        self, market: str, *, seat: str, opponent: str | None = None, person: bool = False, consent: str = "research"
    ) -> None:
        """Take a seat on the market's page and, unless `consent` is empty, say who may keep the game."""
        self.open(f"/markets/{market}/")
        self.page.get_by_test_id(f"seat-{seat}").check()
        if opponent is not None:
            self.page.get_by_test_id(f"opponent-{seat}").select_option(opponent)
        if person:
            self.page.get_by_test_id("with-person").check()
        self.page.get_by_test_id("play").click()
        self.page.wait_for_url(ROOM_URL)
        if consent:
            self.consent(consent)

    def sign_up(self, name: str, *, carry: bool = True) -> None:
        """Make an account on the page for it."""
        self.open("/account/sign-up/")
        self.page.get_by_label("Username").fill(name)
        self.page.get_by_label("Password", exact=True).fill(PASSWORD)
        self.page.get_by_label("Password confirmation").fill(PASSWORD)
        box = self.text("carry")
        if box.count() and not carry:
            box.uncheck()
        self.text("sign-up").click()
        expect(self.text("account-link")).to_contain_text(name)

    def sign_in(self, name: str) -> None:
        self.open("/account/sign-in/")
        self.page.get_by_label("Username").fill(name)
        self.page.get_by_label("Password").fill(PASSWORD)
        self.text("sign-in").click()
        expect(self.text("account-link")).to_contain_text(name)

    def consent(self, scope: str) -> None:
        choice = self.page.get_by_test_id(f"consent-{scope}")
        if choice.is_visible():
            choice.click()
        expect(self.talk()).to_be_enabled()

    @property
    def room(self) -> str:
        """Path of the room this tab shows."""
        return urlsplit(self.page.url).path

    # What is on the page

    def text(self, test_id: str) -> Locator:
        return self.page.get_by_test_id(test_id)

    def thread(self, number: int = 1) -> Locator:
        return self.page.get_by_test_id(f"thread-{number}")

    def lines(self, number: int = 1) -> Locator:
        return self.page.locator(f"#log-{number} [data-seq]")

    def numbers(self, number: int = 1) -> list[int]:
        """Numbers of the events in a log, from top to bottom."""
        return [int(line.get_attribute("data-seq") or 0) for line in self.lines(number).all()]

    def offers(self, number: int = 1) -> Locator:
        return self.page.locator(f"#panel-offers-{number} [data-offer]")

    def price(self, number: int = 1) -> Locator:
        return self.thread(number).get_by_test_id("composer-price")

    def talk(self, number: int = 1) -> Locator:
        return self.thread(number).get_by_test_id("composer-talk")

    def send(self, number: int = 1) -> Locator:
        return self.thread(number).get_by_test_id("send")

    def note(self, number: int = 1) -> Locator:
        return self.page.locator(f"#composer-note-{number}")

    def refusal(self, number: int = 1) -> Locator:
        return self.page.locator(f"#composer-{number} [data-refusal]")

    def connection(self) -> Locator:
        return self.page.get_by_test_id("connection")

    def status(self) -> Locator:
        return self.page.locator("#panel-status")

    def result(self) -> Locator:
        return self.page.get_by_test_id("result")

    def record(self) -> dict[str, Any]:
        """The record of a finished room, as the link gives it."""
        answer = self.page.request.get(f"{self.site}{self.room}record.json")
        assert answer.status == 200
        return dict(json.loads(answer.text()))

    # Moves

    def my_move(self, number: int = 1) -> None:
        """Wait until this seat may write in a conversation."""
        expect(self.send(number)).to_be_enabled()

    def offer(self, price: str, *, talk: str = "", number: int = 1, product: str | None = None) -> None:
        """Make an offer as soon as it is this seat's move, and see it in the log."""
        self.my_move(number)
        if product is not None:
            self.thread(number).get_by_test_id("composer-product").select_option(product)
        if talk:
            self.talk(number).fill(talk)
        self.price(number).fill(price)
        self.send(number).click()
        expect(self.price(number)).to_have_value("")

    def say(self, talk: str, *, number: int = 1) -> None:
        self.my_move(number)
        self.talk(number).fill(talk)
        self.send(number).click()
        expect(self.talk(number)).to_have_value("")

    def accept(self, number: int = 1) -> None:
        """Accept the newest offer of the other side, and say so again when asked."""
        self.offers(number).locator("[data-accept]").first.click()
        self.page.wait_for_timeout(300)  # The page takes no second click of a double click for a yes.
        self.text("confirm-accept").click()

    def leave(self) -> None:
        self.text("leave").click()
        self.text("confirm-leave").click()


class Wire:
    """The line between one page and the server, to cut and to tamper with. Lay it before the page opens a room."""

    def __init__(self, page: Page) -> None:
        self.is_cut = False
        self.loses: Callable[[Frame], bool] = lambda frame: False
        """Which frames of the server get lost on the way."""
        self.delays: Callable[[Frame], bool] = lambda frame: False
        """Which of them come only with `deliver`."""
        self._delayed: list[tuple[WebSocketRoute, str | bytes]] = []
        self.sent: list[Frame] = []
        self._ends: list[tuple[WebSocketRoute, WebSocketRoute]] = []
        page.route_web_socket(ROOM_SOCKET, self._lay)

    def _lay(self, page_end: WebSocketRoute) -> None:
        if self.is_cut:
            page_end.close(code=1011, reason="cut")
            return
        server_end = page_end.connect_to_server()
        self._ends.append((page_end, server_end))
        page_end.on_message(lambda message: self._from_page(server_end, message))
        server_end.on_message(lambda message: self._from_server(page_end, message))

    def _from_page(self, server_end: WebSocketRoute, message: str | bytes) -> None:
        self.sent.append(json.loads(message))
        server_end.send(message)

    def _from_server(self, page_end: WebSocketRoute, message: str | bytes) -> None:
        frame = json.loads(message)
        if self.delays(frame):
            self._delayed.append((page_end, message))
        elif not self.loses(frame):
            page_end.send(message)

    def deliver(self) -> int:
        """Let through what was delayed; returns how many frames that were."""
        delayed, self._delayed = self._delayed, []
        for page_end, message in delayed:
            page_end.send(message)
        return len(delayed)

    def cut(self) -> None:
        """Close what is open and let nothing through until `mend`."""
        self.is_cut = True
        for page_end, server_end in self._ends:
            page_end.close(code=1011, reason="cut")
            server_end.close(code=1001, reason="cut")
        self._ends.clear()

    def mend(self) -> None:
        self.is_cut = False

    def moves(self) -> list[str]:
        """Identifiers of the moves that the page has sent, repeats included."""
        return [str(frame["client_move_id"]) for frame in self.sent if frame["type"] == "act"]
