"""People at tables: many open pages in one process, each with somebody who bargains.

    python -m tests.faults.players SEATS.json LEDGER.json

reads who sits where, plays until every room is over or the patience is used up, and writes what each page was promised
and what it showed at the end. On standard output a line of JSON now and then says how far they are. Nothing of the
database is read here.
"""

import argparse
import asyncio
import html
import json
import random
import re
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import httpx2

from negotiation_site.room_client import Paths, RoomClient
from negotiation_site.studies import bot_pages
from tests.faults.worlds import World
from tests.lab import ROOT

ASPIRATIONS = (0.30, 0.15, 0.05)
"""Share of its own value that a bot asks for with each offer in a thread; after the last it takes what does not lose."""
TOLD_EVERY_S = 0.5
QUIET_S = 6.0
"""Where nobody takes turns a bot speaks after so long a silence."""
_TAG = re.compile(r"#([0-9a-f]{8})")


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What all players of a run have in common."""

    bases: tuple[str, ...]
    seed: int
    pace_s: float = 1.0
    """Mean pause of a player before a move."""
    patience_s: float = 3_600.0
    """Longest game."""
    stalled_s: float = 150.0
    """So long nothing may happen at any table before everybody gives up."""
    every_s: float = 0.0
    """Talks on at this rate instead of coming to an end, until `stop` is there: for measurements of load."""
    stop: str = ""
    """A file whose coming ends the game."""


@dataclass
class Witness:
    """Who saw whose move when, in seconds of the monotonic clock, which all processes of a machine share."""

    sent: dict[str, float] = field(default_factory=dict)
    own: list[tuple[float, float]] = field(default_factory=list)
    """When a move was sent, and how long its acknowledgement took."""
    other: list[tuple[float, float]] = field(default_factory=list)
    """The same until the person opposite had it on the page."""
    agent: list[tuple[float, float]] = field(default_factory=list)
    """The same until the agent's answer was there."""


@dataclass
class Player:
    """One person at one table."""

    client: RoomClient
    seat: Mapping[str, Any]
    plan: Plan
    chance: random.Random
    witness: Witness
    offers: dict[int, int] = field(default_factory=dict)
    waits: dict[int, float] = field(default_factory=dict)
    """When the last move was sent, by thread, until something of the other side comes there."""

    @property
    def several(self) -> bool:
        return self.seat["role"] == "seller"

    async def play(self, until: float) -> None:
        """Until the table is over, or `until`."""
        line = asyncio.create_task(self.client.run())
        try:
            quiet_since = _now()
            while not line.done() and _now() < until:
                self.client.changed.clear()
                thread = self._thread(silent=_now() - quiet_since > QUIET_S)
                if thread is None:
                    with suppress(TimeoutError):
                        await asyncio.wait_for(self.client.changed.wait(), 1.0)
                        quiet_since = _now()
                    continue
                await asyncio.sleep(self._pause_s())
                if (thread := self._thread(silent=True)) is not None:
                    self._move(thread)
                    quiet_since = _now()
                    await asyncio.sleep(0.05)
        finally:
            line.cancel()
            with suppress(asyncio.CancelledError):
                await line

    def _pause_s(self) -> float:
        """Until the next move; the first ones of a measurement come evenly."""
        if not self.plan.every_s:
            return self.chance.random() * 2 * self.plan.pace_s
        if not self.client.moves:
            return self.chance.random() * self.plan.every_s
        return max(0.0, self.client.moves[-1].sent_at + self.plan.every_s - _now())

    def _thread(self, *, silent: bool) -> int | None:
        """Where to write now, if anywhere."""
        shown = self.client.shown
        if not shown.drawn or shown.ended or not (shown.my_turn or silent):
            return None
        busy = {move.thread for move in self.client.outbox}
        free = [thread for thread in shown.awaiting if thread not in busy]
        return min(free, key=lambda each: self.offers.get(each, 0)) if free and not busy else None

    def _move(self, thread: int) -> None:
        """Offer with falling aspiration, take what is good enough, leave when nothing is."""
        shown = self.client.shown
        value = bot_pages.own_value_cents(shown.panels.get("panel-card", "")) or 100
        done = self.offers.get(thread, 0)
        standing = bot_pages.offers(shown.panels.get(f"panel-offers-{thread}", ""))
        best = next((offer for offer in standing if not offer.loses), None)
        tag = f"{self.chance.getrandbits(32):08x}"
        most = self.seat.get("offers", len(ASPIRATIONS))
        if self.plan.every_s:
            action: dict[str, Any] = {"type": "say", "talk": f"Let me think about it. #{tag}"}
        elif best is not None and (done >= most or self._good_enough(best.price, done, value)):
            action = {"type": "accept_offer", "offer_id": best.offer_id, "talk": f"Done. #{tag}"}
        elif done >= most or len(self.client.moves) > 30:
            action = {"type": "leave"}
        else:
            self.offers[thread] = done + 1
            action = {"type": "make_offer", "price": self._price(done, value), "talk": f"How about this? #{tag}"}
        if self.several and action["type"] != "leave":
            action["buyer"] = thread
        self.witness.sent[tag] = self.waits[thread] = _now()
        self.client.act(thread, action)

    def _good_enough(self, price: str, done: int, value: int) -> bool:
        offered = bot_pages.amount_cents(price)
        if offered is None:
            return False
        gain = offered - value if self.several else value - offered
        return gain >= ASPIRATIONS[min(done, len(ASPIRATIONS) - 1)] * value

    def _price(self, done: int, value: int) -> str:
        share = ASPIRATIONS[min(done, len(ASPIRATIONS) - 1)] * (0.8 + 0.4 * self.chance.random())
        return f"{max(1, round(value * (1 + share if self.several else 1 - share))) / 100:.2f}"

    def saw(self, items: Sequence[Mapping[str, Any]]) -> None:
        """Lines came onto the page."""
        now = _now()
        for item in items:
            if 'data-side="them"' not in item["html"]:
                continue
            if self.seat["opposite"] == "person":
                for tag in _TAG.findall(html.unescape(item["html"])):
                    if (sent := self.witness.sent.get(tag)) is not None:
                        self.witness.other.append((sent, now - sent))
            elif (sent := self.waits.pop(item["thread"], None)) is not None:
                self.witness.agent.append((sent, now - sent))


def _now() -> float:
    return asyncio.get_running_loop().time()


async def play_all(plan: Plan, seats: Sequence[Mapping[str, Any]], *, tell: Any) -> tuple[list[Player], Witness]:
    """Let everybody play; `tell` is called with the figures of the moment."""
    witness = Witness()
    limits = httpx2.Limits(max_connections=50, keepalive_expiry=3)
    async with httpx2.AsyncClient(trust_env=False, limits=limits) as http:
        players = []
        for number, seat in enumerate(seats):
            chance = random.Random(f"{plan.seed}/{number}")
            client = RoomClient(
                bases=plan.bases, paths=Paths.of_room(seat["room"]), cookies=seat["cookies"], http=http, chance=chance
            )
            player = Player(client, seat, plan, chance, witness)
            client.on_items = player.saw
            players.append(player)
        telling = asyncio.create_task(_tell(players, tell))
        until = _now() + plan.patience_s
        playing = asyncio.gather(*(player.play(until) for player in players))
        seen, since = _steps(players), _now()
        while not playing.done():
            await asyncio.sleep(TOLD_EVERY_S)
            if (now := _steps(players)) != seen:
                seen, since = now, _now()
            if _now() - since > plan.stalled_s or (plan.stop and Path(plan.stop).exists()):
                playing.cancel()
        with suppress(asyncio.CancelledError):
            await playing
        telling.cancel()
    witness.own = [
        (move.sent_at, move.answered_at - move.sent_at)
        for player in players
        for move in player.client.moves
        if move.answer == "ack" and move.answered_at is not None
    ]
    tell(figures(players))
    return players, witness


async def _tell(players: Sequence[Player], tell: Any) -> None:
    while True:
        await asyncio.sleep(TOLD_EVERY_S)
        tell(figures(players))


def figures(players: Sequence[Player]) -> dict[str, int]:
    """How far they are."""
    return {
        "acknowledged": sum(move.answer == "ack" for player in players for move in player.client.moves),
        "refused": sum(move.answer == "refused" for player in players for move in player.client.moves),
        "drawn": sum(player.client.shown.drawn for player in players),
        "over": sum(player.client.shown.ended for player in players),
        "seats": len(players),
        "reconnects": sum(player.client.troubles.reconnects for player in players),
        "polls": sum(player.client.troubles.polls for player in players),
        "gaps": sum(player.client.troubles.gaps for player in players),
    }


def _steps(players: Sequence[Player]) -> int:
    """Grows with every move that is answered and every line that comes onto a page."""
    return sum(player.client.shown.seq + sum(bool(move.answer) for move in player.client.moves) for player in players)


def ledger(players: Sequence[Player]) -> list[dict[str, Any]]:
    """What each page was promised, and what it showed at the end."""
    return [
        {
            "room": player.seat["room"],
            "party": player.seat["party"],
            "moves": [
                {
                    "id": move.id,
                    "type": move.action["type"],
                    "answer": move.answer,
                    "code": move.code,
                    "sendings": move.sendings,
                }
                for move in player.client.moves
            ],
            "seq": player.client.shown.seq,
            "items": [[seq, thread, text] for seq, (thread, text) in sorted(player.client.shown.items.items())],
            "panels": player.client.shown.panels,
            "ended": player.client.shown.ended,
            "troubles": asdict(player.client.troubles),
        }
        for player in players
    ]


class Playing:
    """The process of the people at the tables, and how far they are."""

    def __init__(self, site: World, seats: Sequence[Mapping[str, Any]], **plan: Any) -> None:
        self.ledger = site.folder / "ledger.json"
        self.ledger.unlink(missing_ok=True)
        document = site.folder / "seats.json"
        document.write_text(json.dumps({"plan": plan | {"bases": site.bases}, "seats": seats}))
        self.told: dict[str, int] = {}
        self.process = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.players", str(document), str(self.ledger)],
            cwd=ROOT,
            stdout=subprocess.PIPE,
            stderr=sys.stderr,
            text=True,
        )
        threading.Thread(target=self._listen, daemon=True).start()

    def _listen(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.told = json.loads(line)

    def wait(self, site: World, until: Any, *, seconds: float) -> bool:
        """Until `until` says so; False where they ended or the time went by before."""
        deadline = time.monotonic() + seconds
        while not until(self.told):
            site.tend()
            if self.process.poll() is not None or time.monotonic() > deadline:
                return False
            time.sleep(0.05)
        return True


def main() -> int:
    """Play as the files say."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("seats", type=Path)
    parser.add_argument("ledger", type=Path)
    options = parser.parse_args()
    document = json.loads(options.seats.read_text())
    plan = Plan(**(document["plan"] | {"bases": tuple(document["plan"]["bases"])}))

    def tell(told: Mapping[str, int]) -> None:
        sys.stdout.write(json.dumps(told) + "\n")
        sys.stdout.flush()

    players, witness = asyncio.run(play_all(plan, document["seats"], tell=tell))
    options.ledger.write_text(
        json.dumps(
            {
                "seats": ledger(players),
                "own_s": witness.own,
                "other_s": witness.other,
                "agent_s": witness.agent,
            }
        )
    )
    return 0


if __name__ == "__main__":
    sys.exit(main())
