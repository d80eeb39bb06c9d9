"""A run is started once, can be cancelled, and is noticed when its watcher dies."""

import shutil
import socket
import sys
import time
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from django.utils import timezone

from agents.learned import published
from markets import setup
from markets.setup import MarketSpec
from training import dialogues, runs, services, tasks
from training.config import ConfigError, load
from training.datasets import Chosen, DataError, Kind
from training.models import DeviceLock, Run, RunStatus
from training.services import RunError

pytestmark = pytest.mark.django_db


@pytest.fixture
def market():
    spec = MarketSpec(
        slug="four", family="multi_buyer", unit="money", values="uniform:0:100", cost="constant:0",
        buyers=4, turns=8, buyer_agents="threshold",
    )  # fmt: skip
    return setup.create_market(spec)


@pytest.fixture
def run(market, tmp_path, monkeypatch) -> Run:
    monkeypatch.setenv("PARLEY_VAR", str(tmp_path))
    return services.create_run(name="mine", preset_name="tiny", market=market, overrides=("sft.steps=3",))


def stages(monkeypatch, code: str) -> None:
    """Let a run's process be a small script instead of the real stages."""
    real = services.subprocess.Popen
    monkeypatch.setattr(services.subprocess, "Popen", lambda argv, **more: real([sys.executable, "-c", code], **more))


def status(run: Run) -> str:
    run.refresh_from_db()
    return run.status


def test_a_run_learns_in_the_games_of_its_market(run: Run) -> None:
    config = services.config_of(run)
    assert (config.name, config.game.sizes, config.game.costs) == ("mine", ((4, 8),), (0.0,))
    assert config.sft.steps == 3


def test_a_name_is_used_once_and_wrong_wishes_are_refused(run: Run, market) -> None:
    with pytest.raises(RunError, match="already a run"):
        services.create_run(name="mine", preset_name="tiny", market=market)
    with pytest.raises(RunError, match="already an agent"):
        services.create_run(name="linear", preset_name="tiny", market=market)
    with pytest.raises(ConfigError):
        services.create_run(name="other", preset_name="tiny", market=market, overrides=("sft.stepz=3",))
    with pytest.raises(ConfigError, match="no preset"):
        services.create_run(name="other", preset_name="huge", market=market)
    assert Run.objects.count() == 1


def test_a_task_that_comes_twice_starts_one_run(run: Run) -> None:
    assert services.claim(run=run, owner="first")
    assert not services.claim(run=run, owner="second")
    assert Run.objects.get().owner == "first"


def test_a_device_holds_one_run_at_a_time(run: Run, market) -> None:
    other = services.create_run(name="other", preset_name="tiny", market=market)
    assert services.claim(run=run, owner="first")
    assert not services.claim(run=other, owner="second")
    assert status(other) == RunStatus.QUEUED


def test_a_run_that_ends_well_is_done_and_frees_its_device(run: Run, monkeypatch) -> None:
    stages(monkeypatch, "print('fine')")
    assert services.claim(run=run, owner="me")
    assert services.execute(run=run, owner="me", pause=lambda _: None) == RunStatus.DONE
    assert not DeviceLock.objects.exists()


def test_a_run_that_fails_shows_its_last_words(run: Run, monkeypatch) -> None:
    stages(monkeypatch, "raise SystemExit('no such template')")
    services.claim(run=run, owner="me")
    assert services.execute(run=run, owner="me", pause=lambda _: None) == RunStatus.FAILED
    run.refresh_from_db()
    assert "no such template" in run.error
    services.resume(run)
    assert status(run) == RunStatus.QUEUED


def test_a_cancelled_run_ends_with_everything_it_started(run: Run, monkeypatch) -> None:
    stages(monkeypatch, "import subprocess, sys; subprocess.run([sys.executable, '-c', 'import time; time.sleep(60)'])")
    services.claim(run=run, owner="me")

    def pause(_: float) -> None:
        services.cancel(run)

    assert services.execute(run=run, owner="me", pause=pause) == RunStatus.CANCELLED
    assert not DeviceLock.objects.exists()


def test_a_run_that_waits_is_cancelled_at_once(run: Run) -> None:
    services.cancel(run)
    assert status(run) == RunStatus.CANCELLED
    assert not services.claim(run=run, owner="late")


def test_a_dead_watcher_is_noticed_and_the_device_is_free_again(run: Run) -> None:
    services.claim(run=run, owner="dead")
    assert services.sweep(timezone.now()) == 0
    assert services.sweep(timezone.now() + services.HEARTBEAT_LIMIT + timedelta(seconds=1)) == 1
    run.refresh_from_db()
    assert run.status == RunStatus.FAILED
    assert "Resume" in run.error
    assert not DeviceLock.objects.exists()


def test_only_a_finished_run_can_be_published(run: Run) -> None:
    with pytest.raises(RunError, match="finished"):
        services.publish(run)


def test_a_runs_own_file_is_read_back_as_the_same_configuration(run: Run, tmp_path) -> None:
    file = tmp_path / "run.json"
    file.write_text(run.config, encoding="utf-8")
    assert load(file) == services.config_of(run)


def test_a_run_that_waits_is_announced_while_the_device_is_free(run: Run, market, monkeypatch) -> None:
    told: list[int] = []
    monkeypatch.setattr(tasks.train, "apply_async", lambda *, kwargs, **_: told.append(kwargs["run_id"]))
    tasks.sweep(now=timezone.now())
    services.claim(run=run, owner="me")
    services.create_run(name="other", preset_name="tiny", market=market)
    tasks.sweep(now=timezone.now())
    assert told == [run.pk]


# --- Cancelling, killing, resuming with real processes ------------------------------------------------

STUBBORN = (
    "import signal, subprocess, sys, time, pathlib;"
    "signal.signal(signal.SIGTERM, signal.SIG_IGN);"
    "code = 'import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(300)';"
    "child = subprocess.Popen([sys.executable, '-c', code]);"
    "pathlib.Path({path!r}).write_text(str(child.pid));"
    "time.sleep(300)"
)
"""A trainer with a child of its own; neither listens to a polite request."""


def alive(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().split()[2] != "Z"
    except OSError:
        return False


def pid_in(file: Path) -> int:
    deadline = time.monotonic() + 10
    while time.monotonic() < deadline:
        if file.exists() and file.read_text():
            return int(file.read_text())
        time.sleep(0.02)
    raise AssertionError("the stages never started")


def test_cancelling_ends_a_trainer_that_does_not_listen_within_ten_seconds(run: Run, monkeypatch, tmp_path) -> None:
    child = tmp_path / "child"
    stages(monkeypatch, STUBBORN.format(path=str(child)))
    services.claim(run=run, owner="me")
    asked: list[float] = []

    def pause(_: float) -> None:
        pid_in(child)
        asked.append(time.monotonic())
        services.cancel(run)

    monkeypatch.setattr(services, "GRACE_S", 1.0)
    assert services.execute(run=run, owner="me", pause=pause) == RunStatus.CANCELLED
    assert time.monotonic() - asked[0] < 10
    assert services.GRACE_S + 1.0 < 10
    deadline = time.monotonic() + 10  # It has been killed; a busy machine may take a moment to carry that out.
    while alive(pid_in(child)) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not alive(pid_in(child))
    assert not DeviceLock.objects.exists()


def test_what_a_trainer_leaves_behind_ends_with_it(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(services, "GRACE_S", 0.5)
    file = tmp_path / "child"
    code = "import subprocess, sys, pathlib;" + (
        "child = subprocess.Popen([sys.executable, '-c', 'import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
        " time.sleep(300)']);"
        f"pathlib.Path({str(file)!r}).write_text(str(child.pid)); import time; time.sleep(300)"
    )
    process = services.subprocess.Popen([sys.executable, "-c", code], start_new_session=True)
    child = pid_in(file)
    time.sleep(0.3)  # The child ignores SIGTERM by now; the leader does not.
    services.end_group(process.pid)
    assert not alive(process.pid)
    deadline = time.monotonic() + 5
    while alive(child) and time.monotonic() < deadline:
        time.sleep(0.02)
    assert not alive(child)


def test_a_killed_trainer_fails_its_run_at_once_and_one_click_resumes_it(run: Run, monkeypatch) -> None:
    stages(monkeypatch, "import os, signal; os.kill(os.getpid(), signal.SIGKILL)")
    services.claim(run=run, owner="me")
    assert services.execute(run=run, owner="me", pause=lambda _: None) == RunStatus.FAILED
    run.refresh_from_db()
    assert "SIGKILL" in run.error
    assert not DeviceLock.objects.exists()
    services.resume(run)
    assert services.claim(run=run, owner="again")


def test_a_killed_worker_is_noticed_within_a_minute_and_its_run_can_go_on(run: Run) -> None:
    services.claim(run=run, owner=f"{socket.gethostname()}:1:x")
    assert timedelta(seconds=58) > services.HEARTBEAT_LIMIT
    now = timezone.now()
    assert services.sweep(now + timedelta(seconds=5)) == 0
    assert services.sweep(now + timedelta(seconds=59)) == 1
    assert services.sweep(now + timedelta(seconds=60)) == 0
    services.resume(run)
    assert status(run) == RunStatus.QUEUED
    assert services.claim(run=run, owner="another")
    assert DeviceLock.objects.get().run == run


def test_a_stranger_with_the_number_of_a_dead_trainer_is_left_alone(run: Run) -> None:
    stranger = services.subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"], start_new_session=True)
    try:
        services.claim(run=run, owner=f"{socket.gethostname()}:1:x")
        Run.objects.filter(pk=run.pk).update(process_group=stranger.pid)
        assert services.sweep(timezone.now() + timedelta(seconds=59)) == 1
        assert stranger.poll() is None
    finally:
        stranger.kill()
        stranger.wait()


def test_a_task_that_comes_again_while_its_run_learns_goes_away(run: Run, monkeypatch) -> None:
    started: list[str] = []
    monkeypatch.setattr(services, "execute", lambda *, run, owner: started.append(owner))
    tasks.train(run_id=run.pk)
    tasks.train(run_id=run.pk)
    assert len(started) == 1


def test_two_devices_hold_two_runs(run: Run, market, monkeypatch) -> None:
    monkeypatch.setattr(services.guards, "missing_device", lambda device: "")
    other = services.create_run(name="other", preset_name="tiny", market=market, device="cuda:0")
    assert services.claim(run=run, owner="first")
    assert services.claim(run=other, owner="second")
    third = services.create_run(name="third", preset_name="tiny", market=market, device="cuda:0")
    assert not services.claim(run=third, owner="third")


# --- Launching ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wish", "sentence"),
    [
        ({"name": "new"}, "address of a page"),
        ({"opponents": ("nobody",)}, "no agent"),
        ({"opponents": ("impatient",)}, "impatient"),
        ({"opponents": ("one-pass",)}, "plays no buyer"),
        ({"opponents": ("narrator",)}, "model_calls"),
        ({"opponents": ("linear", "threshold"), "weights": (1.0,)}, "one for each"),
        ({"reward": "rlvr_buyer"}, "no reward"),
        ({"base": "/nowhere"}, "not a folder"),
        ({"device": "cuda:63"}, "not there"),
        ({"source": Chosen(kind=Kind.CORPUS, name="casino")}, "no corpus"),
        ({"source": Chosen(kind=Kind.TOURNAMENT, name="x")}, "Name the agent"),
        ({"overrides": ("grpo.rollouts=many",)}, "configured"),
    ],
)
def test_a_launch_that_cannot_work_is_refused_with_a_sentence(market, wish: dict[str, Any], sentence: str) -> None:
    with pytest.raises((RunError, ConfigError, DataError), match=sentence):
        services.create_run(**{"name": "mine", "preset_name": "tiny", "market": market} | wish)
    assert not Run.objects.exists()


def test_a_run_imitates_the_games_of_a_tournament_and_says_which(market, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("PARLEY_VAR", str(tmp_path))
    chosen = Chosen(kind=Kind.DEMONSTRATIONS, name=market.slug, most=12)
    run = services.create_run(name="mine", preset_name="tiny", market=market, source=chosen, base="ladder-learner")
    stages(monkeypatch, "pass")
    services.claim(run=run, owner="me")
    assert services.execute(run=run, owner="me", pause=lambda _: None) == RunStatus.DONE
    run.refresh_from_db()
    config = services.config_of(run)
    assert config.base.endswith("ladder-learner")
    found = dialogues.read(runs.folder("mine"), sha256=config.data)
    assert 6 <= len(found) <= 12
    assert all(
        message.words[0] in dialogues.READABLE for own in found for message in own if message.role == "assistant"
    )


def test_a_data_set_of_nothing_fails_before_anything_starts(market, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("PARLEY_VAR", str(tmp_path))
    chosen = Chosen(kind=Kind.BEST, name=market.slug)
    run = services.create_run(name="mine", preset_name="tiny", market=market, source=chosen)
    stages(monkeypatch, "raise SystemExit('started')")
    services.claim(run=run, owner="me")
    assert services.execute(run=run, owner="me", pause=lambda _: None) == RunStatus.FAILED
    run.refresh_from_db()
    assert "empty" in run.error
    assert not DeviceLock.objects.exists()


def test_publishing_loads_no_model_and_leaves_what_was_published_when_the_run_is_not_whole(
    run: Run, tmp_path, settings
) -> None:
    settings.VAR = tmp_path
    Run.objects.filter(pk=run.pk).update(status=RunStatus.DONE)
    run.refresh_from_db()
    shipped = published.SHIPPED / "ladder-learner"
    folder = runs.folder("mine")
    shutil.copytree(shipped, folder / "grpo")
    shutil.copy(shipped / "evaluate.json", folder)
    (folder / "run.json").write_text(run.config)
    assert services.publish(run) == "mine"
    card = tmp_path / "checkpoints" / "mine" / "card.json"
    before = card.read_bytes()
    (folder / "grpo" / "model.safetensors").unlink()
    with pytest.raises(RunError, match="not whole"):
        services.publish(run)
    assert card.read_bytes() == before
    assert [path.name for path in card.parent.parent.iterdir()] == ["mine"]


def test_what_a_dead_watcher_left_is_ended_without_keeping_the_clock(run: Run, monkeypatch) -> None:
    code = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(60)  # training.stages"
    left = services.subprocess.Popen([sys.executable, "-c", code], start_new_session=True)
    services.claim(run=run, owner=f"{socket.gethostname()}:1:x")
    Run.objects.filter(pk=run.pk).update(process_group=left.pid)
    started = time.monotonic()
    assert services.sweep(timezone.now() + timedelta(seconds=59)) == 1
    assert time.monotonic() - started < 2
    assert left.wait(timeout=10) == -9
    assert not DeviceLock.objects.exists()
