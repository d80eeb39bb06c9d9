"""Deadlines and lost turns are noticed every second, also after the database was away for a while."""

from datetime import datetime

import pytest
from django.core.management import CommandError, call_command
from django.db import OperationalError

from negotiation_site.management.commands import clock


class Recorder:
    """A sweep that fails the first `failures` times."""

    def __init__(self, *, failures: int = 0, error: type[Exception] = OperationalError) -> None:
        self.failures = failures
        self.error = error
        self.times: list[datetime] = []

    def __call__(self, *, now: datetime) -> None:
        self.times.append(now)
        if len(self.times) <= self.failures:
            raise self.error("the server went away")


class Waiter:
    """Waits by noting how long; says stop after `rounds`."""

    def __init__(self, rounds: int) -> None:
        self.rounds = rounds
        self.pauses: list[float] = []

    def __call__(self, seconds: float) -> bool:
        self.pauses.append(seconds)
        return len(self.pauses) >= self.rounds


def test_every_sweep_is_called_each_second_with_an_aware_time() -> None:
    rooms, turns, wait = Recorder(), Recorder(), Waiter(3)
    clock.run(sweeps={"rooms": rooms, "agent turns": turns}, wait=wait)
    assert len(rooms.times) == len(turns.times) == 3
    assert all(time.tzinfo is not None for time in rooms.times)
    assert wait.pauses == [1.0, 1.0, 1.0]


@pytest.mark.django_db
def test_a_database_that_is_away_is_asked_ever_more_rarely_and_then_each_second_again() -> None:
    rooms, wait = Recorder(failures=3), Waiter(5)
    clock.run(sweeps={"rooms": rooms}, wait=wait)
    assert wait.pauses == [2.0, 4.0, 8.0, 1.0, 1.0]


@pytest.mark.django_db
def test_one_failing_sweep_does_not_keep_the_other_from_running() -> None:
    turns = Recorder()
    assert not clock.sweep_once(sweeps={"rooms": Recorder(failures=1), "agent turns": turns})
    assert len(turns.times) == 1


def test_a_bug_is_not_hidden() -> None:
    with pytest.raises(ZeroDivisionError):
        clock.sweep_once(sweeps={"rooms": Recorder(failures=1, error=ZeroDivisionError)})


def test_the_clock_does_not_run_where_it_could_reach_nobody() -> None:
    with pytest.raises(CommandError, match="REDIS_URL") as refused:
        call_command("clock")
    assert refused.value.returncode == 2
