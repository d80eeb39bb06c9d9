"""A run is started once, can be cancelled, and is noticed when its watcher dies."""

import sys
from datetime import timedelta

import pytest
from django.utils import timezone

from markets import setup
from markets.setup import MarketSpec
from training import services, tasks
from training.config import ConfigError, load
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
