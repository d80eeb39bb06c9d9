"""What one thing costs: a person's move, what a page is told of it, an agent's turn, an open socket, a row.

    python -m benchmarks.costs --var DIR [--moves 300] [--sockets 300] [--json FILE]

In one process and in processor time, which a busy machine changes little: the same functions that a web process and a
worker call, on SQLite in `--var` or on the server of DATABASE_URL (then the database's own time is not in it). Sockets are
held by the application without a web server, whose own buffers come on top. `benchmarks.rooms` measures whole sites;
docs/scale.md reckons with both.
"""

import argparse
import asyncio
import json
import os
import statistics
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import psutil

from benchmarks import filling

MARKET = "demo-bilateral"
TABLES = ("RoomEvent", "Utterance", "AgentTurn")


def main() -> None:
    """Measure, print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.costs", description=__doc__)
    parser.add_argument("--var", type=Path, required=True, help="folder of a site of its own")
    parser.add_argument("--moves", type=int, default=300)
    parser.add_argument("--sockets", type=int, default=300)
    parser.add_argument("--json", type=Path, help="where to keep the figures")
    options = parser.parse_args()
    filling.own_site(options.var)
    from django.core.management import call_command

    call_command("seed_demo", "--bare", verbosity=0)
    told = _moves(options.moves) | asyncio.run(_sockets(options.sockets))
    if options.json:
        options.json.write_text(json.dumps(told, indent=1))
    for name, value in told.items():
        print(f"{name:24} {value:,.1f}" if isinstance(value, float) else f"{name:24} {value}")


def _cpu_ms(job: Callable[[], Any]) -> tuple[Any, float]:
    started = time.process_time()
    return job(), (time.process_time() - started) * 1000


def _moves(wanted: int) -> dict[str, Any]:
    """Games of a person against the market's agent, move by move, as socket and worker play them."""
    from django.db import connection
    from django.utils import timezone

    from agents import turns
    from markets import models, room_frames, selectors, services, wire
    from markets.engine.protocol import Role
    from negotiation_site import seating

    market = models.Market.objects.filter(slug=MARKET).latest("version")
    origin = "http://localhost"
    spent: dict[str, list[float]] = {name: [] for name in ("open", "move", "view", "turn")}

    def frame(price: int) -> str:
        action = {"type": "make_offer", "price": str(price), "talk": "I can go a little further, but not much."}
        return json.dumps({"type": "act", "client_move_id": uuid.uuid4().hex, "action": action})

    def open_one() -> Any:
        host = models.Participant.objects.create(pseudonym=f"Measured {uuid.uuid4().hex[:12]}")
        room = services.open_room(
            market=market,
            host=host,
            role=Role.BUYER,
            agents=seating.agents_for(market, host=Role.BUYER, opponent="boulware"),
        )
        seat = models.Seat.objects.select_related("room__market", "participant").get(room=room, participant=host)
        services.choose_consent(seat=seat, scope="public", version="1")
        return seat

    def take(turn: Any) -> None:
        turns.take_turn(turn_id=turn.pk, now=max(timezone.now(), turn.starts_at or timezone.now()))

    before, size, games, moves, agent_moves = _rows(models), _bytes(), 0, 0, 0
    while moves < wanted:
        seat, ms = _cpu_ms(open_one)
        spent["open"].append(ms)
        games += 1
        for number in range(40):
            for turn in models.AgentTurn.objects.filter(room=seat.room, state=models.TurnState.QUEUED):
                _done, ms = _cpu_ms(lambda turn=turn: take(turn))
                spent["turn"].append(ms)
                agent_moves += 1
            seat = models.Seat.objects.select_related("room__market", "participant").get(pk=seat.pk)
            view = selectors.seat_view(seat)
            if view.ended:
                break
            if not view.observation.to_move:
                continue
            text = frame(20 + number)
            reply, ms = _cpu_ms(
                lambda text=text, seat=seat: room_frames.answer(
                    seat, wire.decode(text), origin=origin, now=timezone.now()
                )
            )
            if reply["type"] != "ack":
                raise SystemExit(f"A move was answered with {reply}.")
            spent["move"].append(ms)
            moves += 1
            _frame, ms = _cpu_ms(
                lambda seat=seat: wire.view_frame(
                    selectors.fresh_seat_view(seat), after=0, origin=origin, now=timezone.now()
                )
            )
            spent["view"].append(ms)
    rows, grown = _rows(models) - before, _bytes() - size
    return {
        "games": games,
        "moves_of_people": moves,
        "moves_of_agents": agent_moves,
        "open_ms": statistics.median(spent["open"]),
        "move_ms": statistics.median(spent["move"]),
        "view_ms": statistics.median(spent["view"]),
        "turn_ms": statistics.median(spent["turn"]),
        "rows_per_move": rows / (moves + agent_moves),
        "bytes_per_move": grown / (moves + agent_moves),
        "database": connection.vendor,
    }


def _rows(models: Any) -> int:
    return sum(getattr(models, name).objects.count() for name in TABLES)


def _bytes() -> int:
    """Of the database, indexes included."""
    from django.db import connection

    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("SELECT pg_database_size(current_database())")
            return int(cursor.fetchone()[0])
        cursor.execute("PRAGMA wal_checkpoint(TRUNCATE)")
        cursor.fetchall()
        return os.path.getsize(connection.settings_dict["NAME"])


async def _sockets(count: int) -> dict[str, Any]:
    """Open pages of waiting people, each a seat of its own."""
    from channels.db import database_sync_to_async
    from django.conf import settings

    from markets.engine.protocol import Role
    from tests.markets import rooms
    from tests.markets.tabs import Tab, session_of

    settings.RATE_LIMITS = False

    def sit() -> tuple[str, Any]:
        from markets import models, services
        from negotiation_site import seating

        market = models.Market.objects.filter(slug=MARKET).latest("version")
        host = rooms.person()
        room = services.open_room(
            market=market,
            host=host,
            role=Role.BUYER,
            agents=seating.agents_for(market, host=Role.BUYER, opponent="linear"),
        )
        return room.public_id, session_of(host)

    process = psutil.Process()
    seats = [await database_sync_to_async(sit)() for _number in range(count)]
    tabs = [Tab.address(*seat) for seat in seats]
    for tab in tabs[:10]:  # What is loaded once.
        await tab.connect()
        await tab.until("view")
    held, worked = process.memory_info().rss, time.process_time()
    for tab in tabs[10:]:
        await tab.connect()
        await tab.until("view")
    cpu_ms = (time.process_time() - worked) * 1000
    grown = process.memory_info().rss - held
    more = max(1, count - 10)
    for tab in tabs:
        await tab.close()
    return {"sockets": count, "socket_bytes": grown / more, "connect_ms": cpu_ms / more}


if __name__ == "__main__":
    main()
