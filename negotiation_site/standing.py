"""How the whole site stands: figures that are read from database, broker, workers, disk and devices when somebody asks.

Here: one frozen record a subject, and the function that reads it. The operations page shows them (`operations`), `/metrics`
gives them to Prometheus (`metrics`). Not here: what is good or bad (`operations`), what a single process counts (`metrics`).

Contract. Nothing here is about a person or a single room, and no key, address or word of anybody is in it. A subject that
does not answer is told as such (None, or `answers` false) and never raises, and keeps whoever asks waiting for a second or
two at most. What is slow to find out is kept for some seconds in the process. Queries read indexes, whatever the size
of the record (`tests/negotiation_site/test_plans.py`).
"""

import json
import os
import shutil
import socket
import subprocess
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

import redis
from django.conf import settings
from django.core.cache import cache
from django.db import connection
from django.db.models import Count, Max, Min, Q, QuerySet, Sum
from django.utils import timezone
from kombu.exceptions import KombuError

from agents import backends
from agents.models import ModelCall
from markets.models import AgentTurn, Episode, Room, RoomEvent, RoomStatus, Seat, SeatKind, TurnState
from negotiation_site import recent_errors
from negotiation_site.celery import SENT_AT, app
from training.models import DeviceLock, Run, RunStatus

BROKER_TIMEOUT_S = 1
WORKERS_ANSWER_WITHIN_S = 0.7
CALLS_OF = timedelta(hours=1)
"""Calls to models are counted over this time."""
MOST_CALLS = 5_000
GRACE = timedelta(seconds=15)
"""What the clock has not done by then is stuck."""
MOST_FILES = 20_000
CLOCK_KEY = "clock:beat"
CLOCK_FORGOTTEN_S = 3_600

Figure = TypeVar("Figure")


@dataclass(frozen=True)
class Queue:
    """Tasks in the broker that no worker has taken."""

    name: str
    waiting: int
    oldest_s: float | None
    """Since the next one was sent; None where none waits, or it does not say."""


@dataclass(frozen=True)
class Broker:
    """Redis or Valkey."""

    configured: bool
    answers: bool
    queues: tuple[Queue, ...] = ()
    skew_s: float | None = None
    """Its clock less ours."""


@dataclass(frozen=True)
class Turns:
    """Moves that agents owe in live rooms."""

    queued: int
    """May be taken now."""
    pausing: int
    """May not start yet: a pause before an answer, or a wait of the agent's."""
    running: int
    expired: int
    """Of the running, those whose worker's lease has run out."""
    late: int
    """Past the moment at which the default act is due."""
    stuck: int
    """Late for longer than the clock takes to notice."""
    oldest_s: float | None
    """Since the oldest that may be taken now was asked for."""
    defaulted: int
    """In the last hour: a default act had to be played."""


@dataclass(frozen=True)
class Rooms:
    """Rooms that are not over."""

    waiting: int
    live: int
    unfilled: int
    """Wait although agents should have taken the open seats."""
    overdue: int
    """Seats of people whose time is over, and who were not taken to have left."""


@dataclass(frozen=True)
class BackEnd:
    """A server of language models, over the last hour."""

    name: str
    model: str
    reachable: bool | None
    """Whether its port can be reached; None for one that is not asked over a network."""
    calls: int
    errors: int
    """Calls that were not answered."""
    p50_ms: int | None
    p95_ms: int | None
    cost_micros: int | None
    """None where it has no price."""


@dataclass(frozen=True)
class Worker:
    """A Celery worker that answered."""

    name: str
    queues: tuple[str, ...]


@dataclass(frozen=True)
class Disk:
    """Where the state is kept."""

    free: int
    size: int
    database: int | None
    folders: tuple[tuple[str, int, bool], ...]
    """Name, bytes, and whether there were too many files to count them all."""


@dataclass(frozen=True)
class Training:
    """Runs and the devices that they hold."""

    held: tuple[tuple[str, str, float | None], ...]
    """Device, run, and seconds since its watcher was heard of."""
    waiting: int
    cards: tuple["Card", ...]
    """Of this machine."""


@dataclass(frozen=True)
class Card:
    """A graphics processor."""

    name: str
    used: int
    size: int
    busy: float
    """Share of its time."""


@dataclass(frozen=True)
class Clock:
    """Whoever keeps deadlines."""

    beat_s: float | None
    """Since it last swept; None where none was heard of."""
    name: str
    skew_s: float | None
    """The database's clock less ours; None where they are the same."""


@dataclass(frozen=True)
class Record:
    """Numbers of the newest rows, which only grow."""

    room_events: int
    episodes: int
    model_calls: int


# --- Reading ------------------------------------------------------------------------------------------


def rooms(now: datetime) -> Rooms:
    """Rooms by state, and those that nobody looked after in time."""
    counts = dict(
        Room.objects.filter(status__in=(RoomStatus.WAITING, RoomStatus.LIVE))
        .order_by()
        .values_list("status")
        .annotate(count=Count("pk"))
    )
    overdue = Seat.objects.filter(
        deadline_at__lte=now - GRACE, kind=SeatKind.PERSON, room__status=RoomStatus.LIVE, room__keeper=""
    )
    return Rooms(
        waiting=counts.get(RoomStatus.WAITING, 0),
        live=counts.get(RoomStatus.LIVE, 0),
        unfilled=Room.objects.filter(status=RoomStatus.WAITING, fills_at__lte=now - GRACE).count(),
        overdue=overdue.count(),
    )


def turns(now: datetime) -> Turns:
    """The outbox."""
    startable = Q(starts_at=None) | Q(starts_at__lte=now)
    queued, running = Q(state=TurnState.QUEUED), Q(state=TurnState.RUNNING)
    sums = (
        AgentTurn.objects.filter(state__in=(TurnState.QUEUED, TurnState.RUNNING))
        .order_by()
        .aggregate(
            queued=Count("pk", filter=queued & startable),
            pausing=Count("pk", filter=queued & ~startable),
            running=Count("pk", filter=running),
            expired=Count("pk", filter=running & Q(lease_until__lte=now)),
            late=Count("pk", filter=Q(due_at__lt=now)),
            stuck=Count("pk", filter=Q(due_at__lt=now - GRACE)),
            oldest=Min("created_at", filter=queued & Q(starts_at=None)),
            started=Min("starts_at", filter=queued & Q(starts_at__lte=now)),
        )
    )
    since = [moment for moment in (sums.pop("oldest"), sums.pop("started")) if moment is not None]
    return Turns(
        **sums,
        oldest_s=max(0.0, (now - min(since)).total_seconds()) if since else None,
        defaulted=AgentTurn.objects.filter(state=TurnState.DEFAULTED, created_at__gte=now - timedelta(hours=1)).count(),
    )


def record() -> Record:
    """How much there is."""
    return Record(*(_newest(model) for model in (RoomEvent, Episode, ModelCall)))


def _newest(model: Any) -> int:
    return model._default_manager.aggregate(newest=Max("pk"))["newest"] or 0


def broker() -> Broker:
    """Whether there is one, and what waits in it."""
    if not settings.REDIS_URL:
        return Broker(configured=False, answers=False)
    client = redis.Redis.from_url(
        settings.REDIS_URL, socket_timeout=BROKER_TIMEOUT_S, socket_connect_timeout=BROKER_TIMEOUT_S
    )
    try:
        seconds, micros = client.time()
        skew_s = seconds + micros / 1e6 - time.time()
        queues = tuple(_queue(client, name) for name in settings.CELERY_TASK_QUEUES)
    except (redis.RedisError, OSError):
        return Broker(configured=True, answers=False)
    finally:
        client.close()
    return Broker(configured=True, answers=True, queues=queues, skew_s=skew_s)


def _queue(client: Any, name: str) -> Queue:
    waiting, following = client.llen(name), client.lindex(name, -1)  # Workers take from this end.
    sent = None
    if following is not None:
        try:
            sent = json.loads(following)["headers"].get(SENT_AT)
        except (ValueError, KeyError, AttributeError, TypeError):
            sent = None  # Somebody else's message.
    return Queue(name, waiting, max(0.0, time.time() - sent) if isinstance(sent, int | float) else None)


def workers() -> tuple[Worker, ...] | None:
    """The workers that answer at once; None where they cannot be asked. One that trains answers when it is done."""
    if not settings.REDIS_URL:
        return None
    return _kept(10, "workers", _asked_workers)


def _asked_workers() -> tuple[Worker, ...] | None:
    try:
        with app.connection_for_write(connect_timeout=BROKER_TIMEOUT_S) as link:
            link.ensure_connection(max_retries=0, timeout=BROKER_TIMEOUT_S)
            told = app.control.inspect(timeout=WORKERS_ANSWER_WITHIN_S, connection=link).active_queues() or {}
    except (redis.RedisError, KombuError, OSError):
        return None
    return tuple(Worker(name, tuple(queue["name"] for queue in queues)) for name, queues in sorted(told.items()))


def back_ends(now: datetime) -> tuple[BackEnd, ...]:
    """Every back end that is configured, and any other that was asked in the last hour."""
    recent = ModelCall.objects.filter(created_at__gte=now - CALLS_OF)
    sums: dict[str, Any] = {
        row["backend"]: row
        for row in recent.order_by()
        .values("backend")
        .annotate(calls=Count("pk"), errors=Count("pk", filter=Q(total_ms=None)), cost=Sum("cost_micros"))
    }
    known = {config.name: config for config in backends.configured()}
    found = []
    for name in sorted(known.keys() | sums.keys()):
        row = sums.get(name, {})
        config = known.get(name)
        spent = _spent(recent.filter(backend=name)) if row else []
        reachable = None if config is None else _kept(10, f"reachable {name}", partial(_answers, config.url))
        found.append(
            BackEnd(
                name=name,
                model="" if config is None else config.model,
                reachable=reachable,
                calls=row.get("calls", 0),
                errors=row.get("errors", 0),
                p50_ms=_quantile(spent, 0.5),
                p95_ms=_quantile(spent, 0.95),
                cost_micros=row.get("cost"),
            )
        )
    return tuple(found)


def _spent(calls: QuerySet[ModelCall]) -> list[int]:
    answered = calls.exclude(total_ms=None).order_by("-created_at").values_list("total_ms", flat=True)
    return sorted(ms for ms in answered[:MOST_CALLS] if ms is not None)


def _quantile(ordered: list[int], share: float) -> int | None:
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))] if ordered else None


def _answers(url: str) -> bool | None:
    """Whether something listens there; nothing is asked of it, so it costs nothing and no key is shown."""
    parts = urlsplit(url)
    if parts.hostname is None:
        return None
    try:
        socket.create_connection((parts.hostname, parts.port or (443 if parts.scheme == "https" else 80)), 0.5).close()
    except OSError:
        return False
    return True


def disk() -> Disk:
    """The disk that the state is on, and what takes its room."""
    usage = shutil.disk_usage(settings.VAR)
    folders = _kept(60, "folders", lambda: tuple(map(_measured, sorted(filter(Path.is_dir, settings.VAR.iterdir())))))
    return Disk(free=usage.free, size=usage.total, database=_kept(60, "database", _database_bytes), folders=folders)


def _measured(folder: Path) -> tuple[str, int, bool]:
    size = files = 0
    for place, _folders, names in os.walk(folder):
        for name in names:
            try:
                size += os.lstat(os.path.join(place, name)).st_size
            except OSError:
                continue  # It went in this moment.
            files += 1
            if files >= MOST_FILES:
                return folder.name, size, True
    return folder.name, size, False


def _database_bytes() -> int | None:
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT pg_database_size(current_database())")
            return int(cursor.fetchone()[0])
    path = str(connection.settings_dict["NAME"])
    sizes = [os.path.getsize(path + end) for end in ("", "-wal") if os.path.exists(path + end)]
    return sum(sizes) if sizes else None


def training(now: datetime) -> Training:
    """Who holds which device, what waits for one, and the cards of this machine."""
    held = DeviceLock.objects.select_related("run").order_by("device")
    return Training(
        held=tuple(
            (lock.device, lock.run.name, None if (at := lock.run.heartbeat_at) is None else (now - at).total_seconds())
            for lock in held
        ),
        waiting=Run.objects.filter(status=RunStatus.QUEUED).count(),
        cards=_kept(10, "cards", _cards),
    )


def _cards() -> tuple[Card, ...]:
    program = shutil.which("nvidia-smi")
    if program is None:
        return ()
    asked = "--query-gpu=name,memory.used,memory.total,utilization.gpu"
    try:
        told = subprocess.run(
            [program, asked, "--format=csv,noheader,nounits"], capture_output=True, text=True, timeout=3, check=True
        ).stdout
        rows = [[cell.strip() for cell in line.split(",")] for line in told.splitlines() if line.strip()]
        mega = 1024 * 1024
        return tuple(
            Card(name, int(used) * mega, int(size) * mega, float(busy) / 100) for name, used, size, busy in rows
        )
    except (OSError, ValueError, subprocess.SubprocessError):
        return ()


# --- The clock ----------------------------------------------------------------------------------------


def beat(now: datetime) -> None:
    """The clock's own sign of life; it is worth less than its work, so nothing comes of a broker that is down."""
    try:
        cache.set(CLOCK_KEY, (now.timestamp(), socket.gethostname()), CLOCK_FORGOTTEN_S)
    except redis.RedisError:
        return


def clock(now: datetime) -> Clock:
    """When a clock last swept, and how far the database's time is from ours."""
    try:
        at, name = cache.get(CLOCK_KEY) or (None, "")
    except redis.RedisError:
        at, name = None, ""
    return Clock(
        beat_s=None if at is None else max(0.0, now.timestamp() - at),
        name=name,
        skew_s=_kept(10, "skew", _database_skew),
    )


def _database_skew() -> float | None:
    if connection.vendor != "postgresql":
        return None
    with connection.cursor() as cursor:
        cursor.execute("SELECT clock_timestamp()")
        return float((cursor.fetchone()[0] - timezone.now()).total_seconds())


# --- Errors, and what is kept a while -----------------------------------------------------------------


def errors() -> tuple[recent_errors.Noted, ...]:
    """The last faults of this machine's processes, the newest first."""
    return recent_errors.newest(settings.VAR)


_held: dict[str, tuple[float, Any]] = {}


def _kept(seconds: float, name: str, read: Callable[[], Figure]) -> Figure:
    """What `read` gave at most so many seconds ago. Two who ask at once may both read."""
    at, value = _held.get(name, (float("-inf"), None))
    if time.monotonic() - at >= seconds:
        value = read()
        _held[name] = (time.monotonic(), value)
    found: Figure = value
    return found


def forget() -> None:
    """Read everything anew. For tests."""
    _held.clear()
