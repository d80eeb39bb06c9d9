"""Headless participants: they walk a study over HTTP and sockets as browsers do.

Here: one bot's way from the link to the code, and many that arrive together. Not here: the server they walk on and
what the record says of them afterwards (`study_bots`). Nothing of the database is read: a bot knows its link, the
answers to the quiz that it was told, and what pages and frames say.

Contract: every step is the page's own form with the page's own fields; every move carries an id and is sent again
under it after a lost socket; "a little slower" is obeyed. What goes wrong is a sentence in `Walk.problem`, and the
other bots go on.
"""

import asyncio
import math
import random
import ssl
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import urlencode, urljoin, urlsplit

import httpx2
import websockets

from negotiation_site.room_client import ACK, Paths, RoomClient
from negotiation_site.studies import bot_pages
from negotiation_site.studies.bot_pages import Form, Page
from negotiation_site.studies.models import ENDED, State

SLOWER = 429
MAX_STEPS = 400
"""Pages that one bot opens at most: a study that never ends is a fault."""
BEAT_S = 15.0
QUIET_S = 4.0
"""At a table where nobody takes turns, a bot speaks after so long a silence."""
REQUEST_S = 120.0
"""For one answer of the server, with everybody arriving at once."""
KEPT_S = 3.0
"""How long an idle connection is used again: shorter than servers keep them."""
ASPIRATIONS = (0.30, 0.12, 0.03)
"""Share of its own value that a bot asks for with each offer; after the last it takes what does not lose, or leaves."""
RECONNECTS = 8
WORDS = ("How about this?", "I can come a little closer.", "That is the best I can do.")


class Lost(Exception):
    """A bot that cannot go on; the sentence says why."""


@dataclass(frozen=True)
class Person:
    """Who a bot says it is: the parameters of a recruitment platform."""

    name: str
    study: str
    session: str


@dataclass
class Walk:
    """What became of one bot, as its browser saw it."""

    person: Person
    public_id: str = ""
    seen: list[str] = field(default_factory=list)
    """States in the order in which its pages showed them."""
    rounds: int = 0
    """Tables it sat at, practice among them."""
    moves: int = 0
    refused: Counter[str] = field(default_factory=Counter)
    slowed: int = 0
    """How often it was asked to go slower."""
    problem: str = ""


@dataclass(frozen=True)
class Plan:
    """What all bots of a run have in common."""

    base: str
    """Scheme and host of the server."""
    links: tuple[str, ...]
    """Tokens: one for everybody, or one each."""
    answers: Mapping[str, int]
    """Right options of the quiz by question."""
    scope: str = "research"
    """What to choose where the consent asks."""
    pace_s: float = 0.0
    """Longest pause of a bot before a step; 0 makes all arrive in the same moment."""
    patience_s: float = 900.0
    """Longest walk."""
    haggles: bool = True
    """Whether they bargain at their tables; else they sit down, see the table, and leave it."""


def walk(plan: Plan, people: list[Person], *, seed: int) -> list[Walk]:
    """Let them all walk at once."""
    return asyncio.run(_walk_all(plan, people, seed))


async def _walk_all(plan: Plan, people: list[Person], seed: int) -> list[Walk]:
    doors = asyncio.Barrier(len(people)) if not plan.pace_s else None
    trust = ssl.create_default_context()
    walks = [Walk(person) for person in people]
    tasks = []
    for number, one in enumerate(walks):
        link = plan.links[number % len(plan.links)]
        bot = _Bot(plan=plan, walk=one, link=link, chance=random.Random(f"{seed}/{number}"), doors=doors)
        tasks.append(_one(bot, trust))
    await asyncio.gather(*tasks)
    return walks


async def _one(bot: "_Bot", trust: ssl.SSLContext) -> None:
    walk = bot.walk
    try:
        async with (
            asyncio.timeout(bot.plan.patience_s),
            httpx2.AsyncClient(
                base_url=bot.plan.base,
                follow_redirects=True,
                timeout=REQUEST_S,
                verify=trust,
                trust_env=False,
                limits=httpx2.Limits(max_connections=4, keepalive_expiry=KEPT_S),
            ) as http,
        ):
            bot.http = http
            await bot.go()
    except Lost as lost:
        walk.problem = str(lost)
    except TimeoutError:
        walk.problem = f"was still at {walk.seen[-1] if walk.seen else 'the door'!r} after {bot.plan.patience_s:g} s"
    except (httpx2.HTTPError, websockets.WebSocketException, OSError) as error:
        walk.problem = (
            f"lost the server at {walk.seen[-1] if walk.seen else 'the door'!r}: {type(error).__name__} {error}"
        )
    finally:
        await bot.past_the_door()


@dataclass
class _Bot:
    plan: Plan
    walk: Walk
    link: str
    chance: random.Random
    doors: asyncio.Barrier | None
    http: httpx2.AsyncClient = field(init=False)
    url: str = ""
    """Of the page that is open."""
    html: str = ""
    """Of that page."""

    # --- The way ------------------------------------------------------------------------------------

    async def go(self) -> None:
        """From the link to the end."""
        query = urlencode(
            {
                "PROLIFIC_PID": self.walk.person.name,
                "STUDY_ID": self.walk.person.study,
                "SESSION_ID": self.walk.person.session,
            }
        )
        page = await self._open(f"/study/join/{self.link}/?{query}")
        await self.past_the_door()
        for _step in range(MAX_STEPS):
            state = page.state
            if state and (not self.walk.seen or self.walk.seen[-1] != state):
                self.walk.seen.append(state)
            if state in ENDED:
                return
            if self.plan.pace_s:
                await asyncio.sleep(self.chance.random() * self.plan.pace_s)
            page = await self._step(page, state)
        raise Lost(f"opened {MAX_STEPS} pages and is still at {page.state!r}")

    async def past_the_door(self) -> None:
        """Wait until everybody stands at the door, so that all come in together; whoever cannot come is not waited for."""
        doors, self.doors = self.doors, None
        if doors is None or doors.broken:
            return
        try:
            async with asyncio.timeout(60):
                await doors.wait()
        except (TimeoutError, asyncio.BrokenBarrierError):
            await doors.abort()

    async def _step(self, page: Page, state: str) -> Page:
        if state == "":
            entered = await self._send(page, page.form(""), {})
            self.walk.public_id = str(entered.data.get("study-data", {}).get("public_id", ""))
            if not entered.state:
                raise Lost(f"was not let in: {entered.text}")
            return entered
        if "room-data" in page.data:
            return await self._play(page)
        match state:
            case State.ENTERED:
                form = page.form("/consent/")
                scope = {"scope": self.plan.scope} if form is not None and "scope" in form.choices else {}
                return await self._send(page, form, scope | {"agree": "yes"})
            case State.CONSENTED:
                return await self._send(page, page.form("/instructions/"), {})
            case State.QUIZ:
                return await self._quiz(page)
            case State.WAITING:
                return await self._wait(page)
            case State.SURVEY:
                form = page.form("/survey/")
                return await self._send(page, form, {} if form is None else self._answers(form))
            case _:
                return await self._send(page, page.form("/go-on/"), {})

    async def _quiz(self, page: Page) -> Page:
        form = page.form("/quiz/")
        if form is None:
            raise Lost("found no questions at the quiz")
        unknown = sorted(set(form.choices) - set(self.plan.answers))
        if unknown:
            raise Lost(f"was not told the answer to {', '.join(unknown)}")
        return await self._send(page, form, {name: str(self.plan.answers[name]) for name in form.choices})

    def _answers(self, form: Form) -> dict[str, str]:
        """Any answer to every question of the survey."""
        chosen = {name: self.chance.choice(values) for name, values in form.choices.items()}
        written = {
            name: str(self.chance.randint(18, 80))
            if name in form.numbers
            else f"Written by bot {self.walk.person.name}."
            for name, required in form.texts.items()
            if required or self.chance.random() < 0.5
        }
        return chosen | written

    async def _wait(self, page: Page) -> Page:
        """The waiting room: its page tells the server every few seconds that it is open."""
        data = page.data["study-data"]
        while True:
            due = await self._beat(page)
            if due != data["stamp"]:
                return await self._open(urlsplit(self.url).path)
            await asyncio.sleep(data["every_ms"] / 1000)

    # --- HTTP -----------------------------------------------------------------------------------------

    async def _open(self, path: str) -> Page:
        return self._read(await self._ask("GET", path))

    async def _send(self, page: Page, form: Form | None, chosen: Mapping[str, str]) -> Page:
        if form is None:
            raise Lost(f"found no form to go on with at {page.state or 'the door'!r}: {page.text}")
        fields = form.fixed | dict(chosen)
        action = urljoin(self.url, form.action)
        return self._read(await self._ask("POST", action, data=fields))

    async def _beat(self, page: Page, more: Mapping[str, str] | None = None) -> str:
        data = page.data["study-data"]
        answer = await self._ask("POST", data["beat"], json=dict(more or {}), headers={"X-CSRFToken": page.token})
        return str(answer.json().get("stamp", "")) if answer.status_code == httpx2.codes.OK else ""

    async def _ask(self, method: str, url: str, **more: Any) -> httpx2.Response:
        headers = dict(more.pop("headers", {}))
        if method == "POST":
            headers |= {"Origin": self.plan.base, "Referer": self.url}
        lost = 0
        for _try in range(20):
            try:
                answer = await self.http.request(method, url, headers=headers, **more)
            except (httpx2.NetworkError, httpx2.RemoteProtocolError):
                # A connection that the server had just given up: browsers send again, and no step is taken twice.
                lost += 1
                if lost > RECONNECTS:
                    raise
                await asyncio.sleep(0.2 * lost)
                continue
            if answer.status_code != SLOWER:
                return answer
            self.walk.slowed += 1
            after = answer.headers.get("Retry-After", "1")
            await asyncio.sleep(float(after) if after.isdecimal() else 1.0)
        raise Lost("was told to go slower twenty times")

    def _read(self, answer: httpx2.Response) -> Page:
        page = bot_pages.read(answer.text)
        if answer.status_code >= httpx2.codes.BAD_REQUEST:
            raise Lost(f"was answered {answer.status_code}: {page.text or answer.reason_phrase}")
        self.url, self.html = str(answer.url), answer.text
        return page

    # --- The table ------------------------------------------------------------------------------------

    async def _play(self, page: Page) -> Page:
        self.walk.rounds += 1
        await _Table(self, page).sit()
        await self._ask("GET", page.data["room-data"]["result"])
        return await self._open(urlsplit(self.url).path)

    def cookies(self) -> dict[str, str]:
        """What a browser sends along with whatever its page asks for."""
        return {cookie.name: cookie.value or "" for cookie in self.http.cookies.jar}


class _Table:
    """One bot at one table, over the page's socket."""

    def __init__(self, bot: _Bot, page: Page) -> None:
        self.bot, self.page = bot, page
        self.data = page.data["room-data"]
        self.client = RoomClient(
            bases=[bot.plan.base],
            paths=Paths(self.data["socket"], self.data["view"], self.data["act"]),
            cookies=bot.cookies(),
            http=bot.http,
            chance=bot.chance,
        )
        self.offers_made: Counter[int] = Counter()
        self.refusals = self.counted = 0
        self.value_cents = bot_pages.own_value_cents(bot.html)
        """What the first product is worth to the bot, as its card says; None where the card does not."""

    async def sit(self) -> None:
        """Until the table is over for this seat."""
        shown, changed = self.client.shown, self.client.changed
        line = asyncio.create_task(self.client.run())
        beat_at = asyncio.get_running_loop().time() + BEAT_S
        try:
            while not line.done():
                silent = False
                try:
                    async with asyncio.timeout(QUIET_S):
                        await changed.wait()
                except TimeoutError:
                    silent = True
                changed.clear()
                if asyncio.get_running_loop().time() > beat_at:
                    beat_at += BEAT_S
                    await self.bot._beat(self.page)
                if self.client.troubles.reconnects > RECONNECTS:
                    raise Lost("lost the socket of its table too often")
                self._count()
                if (
                    shown.drawn
                    and not (shown.ended or self.client.outbox)
                    and (shown.my_turn or (silent and shown.awaiting))
                ):
                    await self._move()
            line.result()  # What the line died of, if it did.
        finally:
            line.cancel()
        self._count()
        # The last view may come before the answer to the move that ended it.
        self.bot.walk.moves += len(self.client.outbox)

    def _count(self) -> None:
        """Put the answers to moves into the bot's walk, each once."""
        for move in self.client.moves[self.counted :]:
            if not move.answer:
                return
            self.counted += 1
            if move.answer == ACK:
                self.bot.walk.moves += 1
            else:
                self.refusals += 1
                self.bot.walk.refused[move.code] += 1

    def _act(self, action: dict[str, Any], thread: int) -> None:
        if self.data["role"] == "seller" and action["type"] != "leave":
            action["buyer"] = thread
        self.client.act(thread, action)

    async def _asked_value(self) -> int:
        """The own value, from what a deal at one unit of money would be worth."""
        probe = await self.client.worth("1.00")
        return 100 if probe is None else 100 + (probe if self.data["role"] == "buyer" else -probe)

    async def _move(self) -> None:
        """Offer with falling aspiration; take what is good enough; leave when nothing is."""
        if self.bot.plan.pace_s:
            await asyncio.sleep(self.bot.chance.random() * self.bot.plan.pace_s)
        if not self.bot.plan.haggles:
            self._act({"type": "leave"}, 0)
            return
        if self.value_cents is None:
            self.value_cents = await self._asked_value()
        shown = self.client.shown
        if shown.ended or not shown.awaiting:
            return
        thread = min(shown.awaiting, key=lambda each: self.offers_made[each])
        done = self.offers_made[thread]
        panel = shown.panels.get(f"panel-offers-{thread}", "")
        best = next((offer for offer in bot_pages.offers(panel) if not offer.loses), None)
        if best is not None and self._good_enough(best.price, done):
            self._act({"type": "accept_offer", "offer_id": best.offer_id}, thread)
        elif done >= len(ASPIRATIONS) or self.refusals > len(ASPIRATIONS):
            self._act({"type": "leave"}, thread)
        else:
            self.offers_made[thread] += 1
            action = {"type": "make_offer", "price": self._price(done), "talk": WORDS[done]}
            self._act(action, thread)

    def _good_enough(self, price: str, done: int) -> bool:
        offered, value = bot_pages.amount_cents(price), self.value_cents or 0
        if done >= len(ASPIRATIONS) - 1 or offered is None:
            return True
        gain = value - offered if self.data["role"] == "buyer" else offered - value
        return gain >= ASPIRATIONS[done] * value

    def _price(self, done: int) -> str:
        share = ASPIRATIONS[done] * (0.8 + 0.4 * self.bot.chance.random())
        value = self.value_cents or 100
        cents = value * (1 - share) if self.data["role"] == "buyer" else value * (1 + share)
        return f"{max(1, math.floor(cents)) / 100:.2f}"
