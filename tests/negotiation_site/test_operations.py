"""The staff see what to do, most of all when something is down, and nobody's words or keys."""

import json
import logging
import sys
from datetime import timedelta
from types import SimpleNamespace

import pytest
import redis
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from agents import backends
from agents.backends.config import BackendConfig, Secret
from agents.models import ModelCall
from markets.models import AgentTurn, Room, RoomStatus, Seat, TurnState
from negotiation_site import operations, recent_errors, standing
from negotiation_site.celery import SENT_AT, note_the_time
from tests.agents.conftest import no_back_ends
from tests.markets.engine.factories import B1, SELLER, bilateral, offer, say
from tests.markets.rooms import staged
from training.models import DeviceLock, Run, RunStatus

__all__ = ["no_back_ends"]  # a fixture of the agents' tests

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def own_folder(no_back_ends: None, settings, tmp_path):
    settings.VAR = tmp_path
    standing.forget()
    yield
    standing.forget()


@pytest.fixture
def staff() -> Client:
    client = Client()
    user = User.objects.create_user("staff", is_staff=True)
    client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    return client


def lines(part: operations.Part) -> dict[str, operations.Line]:
    return {line.name: line for line in part.lines}


def subjects() -> dict[str, operations.Part]:
    return {part.key: part for part in operations.page(timezone.now()).parts}


class Redis:
    """A server as far as the figures ask it."""

    def __init__(self, queues: dict[str, list[bytes]] | None = None, *, skew_s: float = 0) -> None:
        self.queues, self.skew_s = queues, skew_s

    def time(self) -> tuple[int, int]:
        if self.queues is None:
            raise redis.ConnectionError("Connection refused: redis://:a-password@host")
        return int(timezone.now().timestamp() + self.skew_s), 0

    def llen(self, name: str) -> int:
        return len(self.queues[name]) if self.queues and name in self.queues else 0

    def lindex(self, name: str, at: int) -> bytes | None:
        held = (self.queues or {}).get(name)
        return held[at] if held else None

    def close(self) -> None:
        pass


@pytest.fixture
def broker(settings, monkeypatch):
    """Puts a server in the place of Redis."""

    def put(server: Redis) -> None:
        settings.REDIS_URL = "redis://:a-password@nowhere.example:6379/0"
        monkeypatch.setattr(standing.redis.Redis, "from_url", lambda *_args, **_kwargs: server)
        monkeypatch.setattr(standing, "_asked_workers", lambda: None if server.queues is None else ())

    return put


def task(*, seconds_ago: float) -> bytes:
    headers: dict[str, object] = {}
    note_the_time(headers)
    headers[SENT_AT] -= seconds_ago  # type: ignore[operator]
    return json.dumps({"headers": headers, "body": ""}).encode()


def test_the_page_is_in_order_on_a_quiet_site_and_asks_again_by_itself(staff):
    page = staff.get("/operations/").content.decode()
    assert "Everything that can be seen is in order." in page
    assert 'hx-get="/operations/figures/"' in page
    again = staff.get("/operations/figures/").content.decode()
    assert again.startswith('<div class="operations"')
    assert "<html" not in again
    assert Client().get("/operations/").status_code == 404


def test_a_redis_that_is_down_is_told_and_keeps_nothing_else_from_the_page(staff, broker):
    broker(Redis(None))
    page = staff.get("/operations/").content.decode()
    assert "does not answer" in page
    assert "Nothing is lost" in page
    assert 'data-testid="part-rooms"' in page
    assert "a-password" not in page
    assert subjects()["queues"].state == operations.ACT
    assert "does not answer" in subjects()["workers"].note


def test_a_queue_tells_how_long_its_next_task_has_waited(broker):
    broker(Redis({"agents": [task(seconds_ago=1), task(seconds_ago=75)], "default": [b"not ours"], "gpu": []}))
    found = lines(subjects()["queues"])
    assert found["agents"].value == "2 tasks wait, the next for 75 s"
    assert found["agents"].state == operations.ACT
    assert "Start another worker" in found["agents"].advice
    assert (found["default"].value, found["default"].state) == ("1 task waits", operations.OK)


def test_a_queue_that_nobody_serves_is_to_be_acted_on(broker, monkeypatch):
    broker(Redis({}))
    monkeypatch.setattr(standing, "_asked_workers", lambda: (standing.Worker("celery@one", ("agents",)),))
    found = lines(subjects()["workers"])
    assert found["celery@one"].value == "agents"
    assert (found["default"].value, found["default"].state) == ("no worker answers", operations.ACT)
    assert found["gpu"].state == operations.UNKNOWN


def test_turns_that_wait_died_or_are_stuck_are_told_apart():
    game = staged(bilateral(), people=(B1,))
    now = timezone.now()
    made = [
        AgentTurn(room=game.room, party=SELLER, position=1_000 + number, due_at=now + timedelta(minutes=1))
        for number in range(5)
    ]
    made[0].starts_at = now + timedelta(seconds=20)
    made[1].state, made[1].lease_until = TurnState.RUNNING, now - timedelta(seconds=1)
    made[2].state, made[2].lease_until = TurnState.RUNNING, now + timedelta(seconds=5)
    made[3].due_at = now - timedelta(minutes=1)
    made[4].state = TurnState.DEFAULTED
    AgentTurn.objects.bulk_create(made)
    AgentTurn.objects.filter(pk=made[3].pk).update(created_at=now - timedelta(seconds=90))
    found = lines(subjects()["turns"])
    assert found["to be taken"].value == "1, the oldest for 90 s"
    assert (found["pausing before they start"].value, found["being thought about"].value) == ("1", "2")
    assert (found["of these, of a worker that died"].value, found["stuck"].value) == ("1", "1")
    assert found["stuck"].state == operations.ACT
    assert found["default acts in the last hour"].value == "1"


def test_rooms_that_the_clock_forgot_are_red():
    game = staged(bilateral(), people=(B1, SELLER))
    assert subjects()["rooms"].state == operations.OK
    late = timezone.now() - timedelta(minutes=1)
    Seat.objects.filter(room=game.room, party=B1).update(deadline_at=late)
    waiting = staged(bilateral(), people=(B1, SELLER), start=False)
    Room.objects.filter(pk=waiting.room.pk).update(fills_at=late)
    found = lines(subjects()["rooms"])
    assert (found["in play"].value, found["waiting for people"].value) == ("1", "1")
    assert (found["waiting past their time"].value, found["people past their deadline"].value) == ("1", "1")
    assert found["people past their deadline"].state == operations.ACT
    assert Room.objects.get(pk=game.room.pk).status == RoomStatus.LIVE


def test_a_clock_that_stops_and_one_that_runs_elsewhere_in_time(broker):
    broker(Redis({}, skew_s=-30))
    assert lines(subjects()["clock"])["last sweep"].state == operations.ACT
    standing.beat(now=timezone.now() - timedelta(seconds=20))
    assert lines(subjects()["clock"])["last sweep"].state == operations.LOOK
    standing.beat(now=timezone.now())
    found = lines(subjects()["clock"])
    assert found["last sweep"].state == operations.OK
    assert found["Redis's, against it"].state == operations.ACT
    standing.cache.clear()


def called(backend: str, *, ms: int | None, cost: int | None = None, hours_ago: int = 0) -> None:
    call = ModelCall.objects.create(
        party=SELLER, agent_slug="x", agent_version="1", purpose="move", backend=backend, asked_model="m", prompt="p@1",
        sampling="{}", messages='[{"content": "a secret of Ada"}]', reply="my limit is 84", outcome="used", used=True,
        total_ms=ms, cost_micros=cost,
    )  # fmt: skip
    ModelCall.objects.filter(pk=call.pk).update(created_at=timezone.now() - timedelta(hours=hours_ago))


def test_models_are_told_with_their_calls_and_times_and_without_keys_or_prompts(staff):
    config = BackendConfig(name="hosted", url="http://127.0.0.1:9/v1?key=in-the-url", model="big", key=Secret("sk-123"))
    backends.configure({"hosted": config})
    for ms in range(100, 2_100, 100):
        called("hosted", ms=ms, cost=500_000)
    called("hosted", ms=None)
    called("hosted", ms=9_000, hours_ago=2)
    called("gone", ms=None)
    page = staff.get("/operations/").content.decode()
    for secret in ("sk-123", "in-the-url", "a secret of Ada", "my limit is 84"):
        assert secret not in page
    found = lines(subjects()["models"])
    hosted = found["hosted (big)"]
    assert hosted.value == (
        "cannot be reached · 21 calls · 1 not answered · half within 1.1 s, 95 % within 2.0 s · cost 10.00"
    )
    assert hosted.state == operations.ACT
    assert (found["gone"].value, found["gone"].state) == ("not configured any more · 1 call · 1 not answered", "act")


def test_a_run_whose_watcher_is_silent_is_told_beside_its_device():
    game = staged(bilateral(), people=(B1,))
    run = Run.objects.create(
        name="quiet", preset="tiny", market=game.room.market, config="{}", status=RunStatus.RUNNING,
        heartbeat_at=timezone.now() - timedelta(minutes=3),
    )  # fmt: skip
    Run.objects.create(name="next", preset="tiny", market=game.room.market, config="{}")
    DeviceLock.objects.create(device="cuda:0", run=run)
    found = lines(subjects()["devices"])
    assert found["cuda:0"].value == "held by the run quiet, heard of 3 min ago"
    assert found["cuda:0"].state == operations.LOOK
    assert found["runs that wait"].value == "1"


def test_a_disk_that_fills_up_says_what_may_go(monkeypatch, tmp_path):
    (tmp_path / "exports").mkdir()
    (tmp_path / "exports" / "a.zip").write_bytes(b"x" * 3_000)
    monkeypatch.setattr(standing.shutil, "disk_usage", lambda _path: SimpleNamespace(free=4, total=100))
    found = lines(subjects()["disk"])
    assert found["free"].state == operations.ACT
    assert "Delete exports" in found["free"].advice
    assert found["exports"].value.startswith("2.9")


def test_errors_are_listed_without_what_they_said(staff, tmp_path):
    noting = recent_errors.Noting(folder=tmp_path, role="worker")
    log = logging.getLogger("markets.somewhere")
    try:
        raise ValueError("my limit is $84.17 and the key is sk-123")
    except ValueError:
        record = log.makeRecord(
            log.name, logging.ERROR, __file__, 1, "Room %s is damaged", ("r-secret",), sys.exc_info()
        )
    record.request_id = "abcdef123456"
    noting.handle(record)
    noting.handle(logging.makeLogRecord({"name": "asyncio", "levelno": logging.ERROR, "msg": "sk-123 leaked"}))
    page = staff.get("/operations/").content.decode()
    assert "ValueError: Room … is damaged" in page
    assert "tests/negotiation_site/test_operations.py:" in page
    assert "abcdef123456" in page
    for secret in ("84.17", "sk-123", "r-secret"):
        assert secret not in page.split('data-testid="part-faults"')[1]
    assert [noted.logger for noted in standing.errors()] == ["asyncio", "markets.somewhere"]


def test_the_list_of_errors_stays_short_and_survives_a_broken_line(tmp_path, monkeypatch):
    monkeypatch.setattr(recent_errors, "MOST_BYTES", 2_000)
    noting = recent_errors.Noting(folder=tmp_path, role="web")
    for number in range(60):
        noting.handle(logging.makeLogRecord({"name": "markets", "levelno": logging.ERROR, "msg": f"number {number}"}))
    path = tmp_path / recent_errors.FILE
    assert path.stat().st_size < 3_000
    with path.open("a") as file:
        file.write('{"at": 1}\n{"half')
    assert recent_errors.newest(tmp_path)[0].message == "number 59"
    assert recent_errors.newest(tmp_path / "nowhere") == ()


def test_nothing_that_a_seat_keeps_to_itself_is_on_the_page(staff):
    game = staged(bilateral(value=8_437, cost=5_219), people=(B1, SELLER))
    game.act(B1, offer(6_113))
    game.act(SELLER, say("Meet me at nine"))
    page = staff.get("/operations/").content.decode()
    for told in ("84.37", "8437", "52.19", "5219", "61.13", "Meet me", game.room.public_id, game.people[B1].pseudonym):
        assert told not in page
