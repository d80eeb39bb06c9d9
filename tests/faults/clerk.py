"""Opens rooms in a running site's database and reads them back: one process for each site, asked line by line.

    python -m tests.faults.clerk      (in the site's environment; a line of JSON in, a line of JSON out)

Here: everything of the faults that needs the site's tables. Not here: judging (`audit`), playing, breaking.
"""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

ORIGIN = "http://127.0.0.1"
TRIES = 30
"""A database that is being broken is asked again, once a second."""


class Table(NamedTuple):
    """A kind of room: market, who plays, and how many of a hundred rooms are of this kind."""

    market: str
    people: tuple[str, ...]
    weight: int


TABLES = (
    Table("faults-pair", ("buyer-1",), 22),
    Table("faults-pair", ("seller",), 18),
    Table("faults-pair", ("seller", "buyer-1"), 15),
    Table("faults-crowd", ("seller",), 10),
    Table("faults-crowd", ("buyer-1",), 8),
    Table("faults-crowd", ("seller", "buyer-1"), 4),
    Table("faults-shelf", ("seller",), 8),
    Table("faults-shelf", ("buyer-1",), 5),
    Table("faults-floor", ("buyer-1",), 6),
    Table("faults-floor", ("seller",), 4),
)
HANGING = "hanging-model"
"""The agent whose language model accepts and never answers."""
LONG = "faults-long"
"""A market with so many rounds that nobody comes to the end of them, for measurements of load."""


class Clerk:
    """The other end of a clerk's line."""

    def __init__(self, environment: Mapping[str, str]) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.faults.clerk"],
            env=dict(environment),
            cwd=Path(__file__).parent.parent.parent,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, what: str, **more: Any) -> Any:
        """What the clerk answers. Raises `RuntimeError` with its sentence where it cannot."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"ask": what} | more) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        answer = json.loads(line) if line else {"error": "the clerk ended"}
        if isinstance(answer, dict) and "error" in answer:
            raise RuntimeError(str(answer["error"]))
        return answer

    def close(self) -> None:
        """Let it go home."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self._process.kill()


# --- Inside the clerk's process ---------------------------------------------------------------------


def make_markets() -> None:
    """The markets of the tables, of every family, not listed. Harmless when repeated."""
    from markets.models import Market
    from markets.setup import MarketSpec, create_market

    values, cost = "uniform:70:130", "uniform:20:60"
    specs = (
        MarketSpec(slug="faults-pair", family="bilateral", values=values, cost=cost, turns=8),
        MarketSpec(slug="faults-crowd", family="multi_buyer", values=values, cost=cost, buyers=3, turns=10,
                   seller_agent="falling-ladder", buyer_agents="linear,conceder,tit-for-tat"),
        MarketSpec(slug="faults-shelf", family="catalogue", values=values, cost=cost, buyers=2, products=2, turns=10,
                   seller_agent="greedy", buyer_agents="linear,conceder"),
        MarketSpec(slug="faults-floor", family="bilateral", mechanism="event_driven", values=values, cost=cost),
        MarketSpec(slug=LONG, family="bilateral", values=values, cost=cost, turns=64, seller_agent="hardliner"),
    )  # fmt: skip
    for spec in specs:
        if not Market.objects.filter(slug=spec.slug).exists():
            create_market(MarketSpec(**(vars(spec) | {"unit": "money", "listed": False})))


def open_rooms(*, rooms: int, seed: int, hanging: int = 0, load: bool = False) -> list[dict[str, Any]]:
    """Open so many live rooms; one entry a person. In the first `hanging` of them the agent's model hangs."""
    entries = []
    for number in range(rooms):
        table = _table(number)
        if load:  # Every fifth is between two people, so that it is seen how soon the other has it.
            table = Table(LONG, ("buyer-1", "seller") if number % 5 == 4 else ("buyer-1",), 1)
        if number < hanging:
            table = TABLES[0] if number % 2 else TABLES[1]
        entries += _open(table, seed=seed * 100_000 + number, hanging=number < hanging)
    return entries


def _table(number: int) -> Table:
    """The kinds in turn, each as often as its weight says, well mixed."""
    place = number * 61 % 100
    for table in TABLES:
        place -= table.weight
        if place < 0:
            return table
    raise AssertionError("the weights of the tables do not add up to 100")


def _open(table: Table, *, seed: int, hanging: bool) -> list[dict[str, Any]]:
    from django.db import transaction

    from markets import services
    from markets.engine.protocol import role_of
    from markets.engine.scenarios import decode_recipe
    from markets.models import Market, Seat
    from markets.presentation import CONSENT_VERSION
    from negotiation_site import seating

    market = Market.objects.get(slug=table.market)
    people = {party: _person() for party in table.people}
    first, *others = table.people
    role = role_of(first)
    opponent = HANGING if hanging else ""
    with transaction.atomic():
        agents = seating.agents_for(market, host=role, opponent=opponent)
        room = services.open_room(
            market=market,
            host=people[first],
            role=role,
            agents=agents,
            for_people=frozenset(others),
            seed=seed,
        )
        for party in others:
            token = Seat.objects.get(room=room, party=party).join_token
            services.join_room(room=room, token=token, participant=people[party])
        for seat in Seat.objects.filter(room=room, party__in=table.people).select_related("room"):
            services.choose_consent(seat=seat, scope="research", version=CONSENT_VERSION)
    one_buyer = decode_recipe(market.recipe).buyers == 1
    opposite = "person" if others and one_buyer else "agent"
    return [
        {
            "room": room.public_id,
            "party": party,
            "role": role_of(party).value,
            "opposite": opposite,
            "cookies": _cookies(person),
            **({"offers": 1} if hanging else {}),
        }
        for party, person in people.items()
    ]


def _person() -> Any:
    import uuid

    from markets.models import Participant

    return Participant.objects.create(pseudonym=f"Bot {uuid.uuid4().hex[:12]}")


def _cookies(person: Any) -> dict[str, str]:
    """Of a browser that this person plays in."""
    import secrets
    import string

    from django.conf import settings
    from django.contrib.sessions.backends.db import SessionStore

    from markets import identity

    session = SessionStore()
    session[identity.SESSION_KEY] = person.pk
    session.save()
    token = "".join(secrets.choice(string.ascii_letters + string.digits) for _ in range(32))
    return {settings.SESSION_COOKIE_NAME: str(session.session_key), settings.CSRF_COOKIE_NAME: token}


def running_turns(*, pid: int) -> int:
    """Agents' turns that the process with this id holds at the moment."""
    from markets.models import AgentTurn, TurnState

    return AgentTurn.objects.filter(state=TurnState.RUNNING, owner__contains=f":{pid}:").count()


def open_turns(*, rooms: list[str]) -> int:
    """Agents' turns in these rooms that are neither taken nor given up."""
    from markets.models import AgentTurn, TurnState

    return AgentTurn.objects.filter(
        room__public_id__in=rooms, room__status="live", state__in=(TurnState.QUEUED, TurnState.RUNNING)
    ).count()


def move_cpu(*, moves: int, seed: int) -> dict[str, float]:
    """CPU in milliseconds of what a web process does for one move, without the line: carrying it out, with the look at who
    sits there, and drawing the page of whoever moved; and drawing the page of the person opposite.

    The medians of so many moves of two people who talk in turn.
    """
    import statistics

    from django.utils import timezone

    from markets import wire

    seats = _open(Table(LONG, ("buyer-1", "seller"), 1), seed=seed, hanging=False)
    pages = [_page(seat) for seat in sorted(seats, key=lambda seat: seat["party"] != "seller")]
    moved, views = [], []
    for number in range(moves):
        page, other = pages[number % 2], pages[1 - number % 2]
        before = time.process_time()
        action = wire.SayWire(buyer=1, talk="Let me think about it.")
        frame = wire.Act(client_move_id=f"m{number}", seen=None, action=action)
        reply, drawn = page._carry_out(frame, timezone.now())
        json.dumps([reply, drawn])
        between = time.process_time()
        seen = other._view_frame()
        json.dumps(seen)
        after = time.process_time()
        if reply["type"] != "ack" or drawn is None or seen is None:
            raise RuntimeError(f"move {number} was answered {reply}")
        page.seq, other.seq = drawn["seq"], seen["seq"]
        moved.append(between - before)
        views.append(after - between)
    return {"move": statistics.median(moved) * 1e3, "view": statistics.median(views) * 1e3}


def _page(entry: Mapping[str, Any]) -> Any:
    """The socket's end of a page at this seat, without a socket."""
    from django.conf import settings
    from django.contrib.sessions.backends.db import SessionStore

    from markets.consumers import RoomConsumer
    from markets.models import Seat

    page = RoomConsumer()
    page.scope = {"session": SessionStore(entry["cookies"][settings.SESSION_COOKIE_NAME])}
    page.seat = Seat.objects.select_related("room__market", "participant").get(
        room__public_id=entry["room"], party=entry["party"]
    )
    page.origin = ORIGIN
    return page


def judge(*, ledger: str) -> dict[str, Any]:
    """Hold a ledger against the database."""
    from tests.faults import audit

    pages = json.loads(Path(ledger).read_text())["seats"]
    by_room: dict[str, list[audit.Page]] = {}
    for page in pages:
        by_room.setdefault(page["room"], []).append(
            audit.Page(page["party"], page["moves"], page["seq"], page["items"], page["panels"], page["ended"])
        )
    found = audit.Findings()
    for public_id, seats in by_room.items():
        audit.judge(stored(public_id, [page.party for page in seats]), seats, found)
    return vars(found) | {"ok": found.ok}


def stored(public_id: str, people: list[str]) -> Any:
    """A room as the database has it."""
    from django.utils import timezone

    from markets import episodes, selectors, wire
    from markets.engine.protocol import decode_log
    from markets.engine.scenarios import decode_scenario
    from markets.models import AgentTurn, Episode, Room, RoomEvent, RoomStatus, Seat, SeatKind
    from tests.faults import audit

    room = Room.objects.get(public_id=public_id)
    events = list(RoomEvent.objects.filter(room=room).order_by("n"))
    text = ",".join(f'{{"n":{row.n},"at_ms":{row.at_ms},"event":{row.event}}}' for row in events)
    log = decode_log(f"[{text}]")
    rows = [audit.Row(entry, row.party, row.client_move_id) for entry, row in zip(log, events, strict=True)]
    seats = list(Seat.objects.filter(room=room).select_related("room__market", "participant"))
    ended = room.status == RoomStatus.ENDED
    episode = Episode.objects.filter(room=room).first()
    whole = [row.entry.n for row in rows] == list(range(1, room.version + 1))
    replays = whole and (episode is not None) == ended
    if episode is not None:
        replays &= episodes.verify(episode) and tuple(decode_log(episode.log)) == tuple(log)
    return audit.Stored(
        public_id=public_id,
        scenario=decode_scenario(room.scenario),
        rows=rows,
        turns=[audit.Turn(turn.party, turn.position, turn.state) for turn in AgentTurn.objects.filter(room=room)],
        agents=frozenset(seat.party for seat in seats if seat.kind == SeatKind.AGENT),
        ended=ended,
        views={
            seat.party: wire.view_frame(selectors.seat_view(seat), after=0, origin=ORIGIN, now=timezone.now())
            for seat in seats
            if seat.party in people and whole
        },
        replays=replays,
    )


ANSWERS: Mapping[str, Callable[..., Any]] = {
    "markets": make_markets,
    "open": open_rooms,
    "running": running_turns,
    "open_turns": open_turns,
    "move_cpu": move_cpu,
    "judge": judge,
}


def main() -> int:
    """Answer until nobody asks any more."""
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "negotiation_site.settings")
    import django
    from django.conf import settings

    # A pool would hand out connections of a server that has been restarted since.
    settings.DATABASES["default"].get("OPTIONS", {}).pop("pool", None)
    django.setup()
    from django.db import DatabaseError, connections

    for line in sys.stdin:
        request = json.loads(line)
        what = ANSWERS[request.pop("ask")]
        for _attempt in range(TRIES):
            try:
                answer = what(**request)
                break
            except DatabaseError as error:
                answer = {"error": f"{type(error).__name__}: {error}"}
                connections.close_all()
                time.sleep(1)
        sys.stdout.write(json.dumps(answer) + "\n")
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    sys.exit(main())
