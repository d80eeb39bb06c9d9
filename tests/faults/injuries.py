"""What is done to a site while people play: one function for each fault.

Here: the faults, how it is made sure that each one bites, and how it is undone where it does not end by itself. Not here:
starting sites (`worlds`), and what came of it (`audit`).

Contract: a fault returns a sentence about what it did, and raises `DidNotBite` where it did nothing.
"""

import contextlib
import os
import re
import signal
import socket
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import redis

from tests.faults.clerk import Clerk
from tests.faults.worlds import Embedded, Servers, World, pings

LOCKED_S = 24.0
"""Longer than SQLite's busy timeout of 20 s, so that waiting is not enough."""
FULL_S = 8.0
FELT_S = 60.0
NO_SPACE = re.compile(rb"(?:database or disk is full|disk I/O error|No space left on device)")
DOWN_S = 4.0
SHIFT_S = 3600.0
SHIFTED_S = 8.0
CLAIM_S = 60.0
"""So long a worker is watched for the moment at which it holds a turn."""


class DidNotBite(Exception):
    """The fault changed nothing; the sentence says why."""


@dataclass(frozen=True)
class Fault:
    """One fault and where it can be had."""

    name: str
    injure: Callable[[World, Clerk], str]
    told: str
    """In words, for the table."""
    topologies: tuple[str, ...] = ("embedded", "servers")
    pace_s: float = 1.5
    """Mean pause of a player before a move: the games have to outlast the fault."""
    hanging_rooms: int = 0
    """Rooms out of a hundred whose agent asks a model that never answers."""


def web_killed(world: World, clerk: Clerk) -> str:
    """kill -9 of a web process."""
    name = "web" if isinstance(world, Embedded) else "web-1"
    return _kill(world, name)


def worker_killed(world: World, clerk: Clerk) -> str:
    """kill -9 of a worker that holds an agent's turn: it is stopped, looked at, and killed only then."""
    name = "worker" if isinstance(world, Embedded) else "agents-1"
    pid = world.pids()[name]
    deadline = time.monotonic() + CLAIM_S
    looks = 0
    while time.monotonic() < deadline:
        world.tend()
        looks += 1
        os.kill(pid, signal.SIGSTOP)
        held = 0
        try:
            held = clerk.ask("running", pid=pid)
        finally:
            os.kill(pid, signal.SIGKILL if held else signal.SIGCONT)
        if held:
            return f"{name} killed with {held} turns in its hands (look {looks})"
        time.sleep(0.01)
    raise DidNotBite(f"{name} held no turn in {looks} looks")


def redis_flushed(world: World, clerk: Clerk) -> str:
    """FLUSHALL, and kill -9 of the server, which comes back empty."""
    with redis.Redis.from_url(world.redis_url, socket_timeout=5) as client:
        keys = client.dbsize()
        client.flushall()
    told = _kill(world, "valkey")
    deadline = time.monotonic() + 60
    while not pings(world.redis_url):
        world.tend()
        if time.monotonic() > deadline:
            raise DidNotBite("Valkey did not come back")
        time.sleep(0.1)
    return f"{keys} keys flushed, {told}"


def postgres_restarted(world: World, clerk: Clerk) -> str:
    """The database stops as in a crash, stays away for some seconds and recovers."""
    assert isinstance(world, Servers)
    world.crash_postgres()
    _wait(world, DOWN_S)
    world.start_postgres()
    return f"PostgreSQL crashed and was away for {DOWN_S:g} s"


def database_locked(world: World, clerk: Clerk) -> str:
    """Another program holds SQLite's write lock for longer than anybody waits for it."""
    with contextlib.closing(sqlite3.connect(world.disk / "db.sqlite3", timeout=30, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        _wait(world, LOCKED_S)
        other.execute("ROLLBACK")
    return f"the write lock was held for {LOCKED_S:g} s"


def clock_jump(world: World, clerk: Clerk) -> str:
    """Every process sees the time jump an hour ahead, back, an hour behind, and right again."""
    for shift in (SHIFT_S, -SHIFT_S, 0.0):
        shift_clock(world.folder, shift)
        _wait(world, SHIFTED_S)
    return f"the clock was {SHIFT_S:g} s ahead for {SHIFTED_S:g} s, then as much behind, then right"


def disk_full(world: World, clerk: Clerk) -> str:
    """The database's disk has not one byte left, until the site has felt it for some seconds."""
    if not world.disk.is_mount():
        raise DidNotBite("this user may not mount a disk of its own, and no other may be filled")
    ballast = world.disk / "ballast"
    began = world.log_file.stat().st_size
    filled, felt_at = 0, 0.0
    deadline = time.monotonic() + FELT_S
    if isinstance(world, Embedded):  # What the log has reserved would last for a while.
        with contextlib.closing(sqlite3.connect(world.disk / "db.sqlite3", timeout=30)) as other:
            other.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    try:
        with ballast.open("wb", buffering=0) as file:
            while time.monotonic() < (felt_at + FULL_S if felt_at else deadline):
                for size in (1 << 16, 1 << 9):  # Again and again: what somebody frees is taken too.
                    with contextlib.suppress(OSError):
                        while True:
                            filled += file.write(bytes(size))
                if not felt_at and NO_SPACE.search(_since(world.log_file, began)):
                    felt_at = time.monotonic()
                _wait(world, 0.05)
    finally:
        ballast.unlink(missing_ok=True)
    if not felt_at:
        raise DidNotBite("nobody noticed that the disk was full")
    times = len(NO_SPACE.findall(_since(world.log_file, began)))
    return f"the disk was full ({filled >> 20} MB of ballast) for {FULL_S:g} s after it was first felt, {times} times"


def backend_hanging(world: World, clerk: Clerk) -> str:
    """Nothing is done: the model of some agents accepts every question and never answers."""
    return "a language model accepted and never answered"


FAULTS = (
    Fault("web_killed", web_killed, "kill -9 of a web process"),
    Fault("worker_killed", worker_killed, "kill -9 of a worker with an agent's turn in its hands"),
    Fault("redis_flushed", redis_flushed, "FLUSHALL and kill -9 of Valkey"),
    Fault("postgres_restarted", postgres_restarted, "PostgreSQL crashes and recovers", ("servers",)),
    Fault("database_locked", database_locked, "SQLite's write lock held for 24 s", ("embedded",), pace_s=6.0),
    Fault("clock_jump", clock_jump, "the clock jumps by +1 h, -2 h, +1 h", pace_s=6.0),
    Fault("disk_full", disk_full, "the database's disk is full", pace_s=4.0),
    Fault("backend_hanging", backend_hanging, "a language model that never answers", hanging_rooms=12),
)


def shift_clock(folder: Path, seconds: float) -> None:
    """Set the clock of a world's processes so many seconds ahead."""
    draft = folder / "clock.draft"
    draft.write_text(str(seconds))
    draft.replace(folder / "clock")


def _kill(world: World, name: str) -> str:
    pid = world.pids().get(name)
    if pid is None:
        raise DidNotBite(f"{name} does not run")
    os.kill(pid, signal.SIGKILL)
    deadline = time.monotonic() + 60
    while world.pids().get(name) in (None, pid):
        world.tend()
        if time.monotonic() > deadline:
            raise DidNotBite(f"{name} did not come back")
        time.sleep(0.05)
    return f"{name} killed"


def _since(log: Path, start: int) -> bytes:
    """What a log says from there on."""
    with log.open("rb") as file:
        file.seek(start)
        return file.read()


def _wait(world: World, seconds: float) -> None:
    deadline = time.monotonic() + seconds
    while (left := deadline - time.monotonic()) > 0:
        world.tend()
        time.sleep(min(0.1, left))


class HangingModel:
    """A server that accepts connections, reads what it is asked and never answers."""

    def __init__(self) -> None:
        self._listener = socket.socket()
        self._listener.bind(("127.0.0.1", 0))
        self._listener.listen(512)
        self.port = int(self._listener.getsockname()[1])
        self.asked = 0
        self._held: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def _accept(self) -> None:
        with contextlib.suppress(OSError):
            while True:
                connection, _address = self._listener.accept()
                self.asked += 1
                self._held.append(connection)

    def variables(self) -> Mapping[str, str]:
        """By which a site finds it."""
        return {
            "PARLEY_LLM_HANGING_URL": f"http://127.0.0.1:{self.port}/v1",
            "PARLEY_LLM_HANGING_MODEL": "never",
            "PARLEY_LLM_HANGING_TIMEOUT": "2",
            "PARLEY_LLM_HANGING_ATTEMPTS": "1",
            "PARLEY_LLM_HANGING_CONCURRENCY": "32",
        }

    def close(self) -> None:
        """Let everybody go."""
        self._listener.close()
        for connection in self._held:
            connection.close()


@contextlib.contextmanager
def hanging_model() -> Iterator[HangingModel]:
    """Such a server while the block runs."""
    model = HangingModel()
    try:
        yield model
    finally:
        model.close()
