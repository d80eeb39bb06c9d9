"""A person at a page: what they press, and what they can then read. No assertion beyond "it came to that".

`Watch` listens to everything a browser context does that nobody may see: complaints on the console, requests to other
origins, and every frame of a room's socket in both directions.
"""

import json
import re
from typing import Any
from urllib.parse import urlsplit

from playwright.sync_api import BrowserContext, Locator, Page, expect

ROOM_URL = re.compile(r"/rooms/[\w-]+/$")
ROOM_SOCKET = re.compile(r"/ws/rooms/")


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
