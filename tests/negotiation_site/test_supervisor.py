"""Processes that nobody asked to end are started again, and none outlives its supervisor."""

import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from negotiation_site import supervisor as module
from negotiation_site.supervisor import Program, Supervisor, how_it_ended
from tests.lab import ROOT, wait_for

SLEEPER = "import time; time.sleep(60)"
STUBBORN = (
    "import signal, time, pathlib, sys; signal.signal(signal.SIGTERM, signal.SIG_IGN);"
    "pathlib.Path(sys.argv[1]).touch(); time.sleep(60)"
)


@pytest.fixture
def told() -> list[Mapping[str, int]]:
    return []


@pytest.fixture
def supervisor(told: list[Mapping[str, int]]) -> Iterator[Supervisor]:
    one = Supervisor(on_change=told.append)
    yield one
    one.stop(hurry=lambda: True)


def program(code: str, *arguments: str) -> Program:
    return Program(name="child", argv=[sys.executable, "-c", code, *arguments], env=os.environ, cwd=Path.cwd())


def tending(supervisor: Supervisor, condition: Callable[[], bool]) -> Callable[[], bool]:
    def once() -> bool:
        supervisor.tend()
        return condition()

    return once


def is_gone(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] == "Z"
    except (FileNotFoundError, ProcessLookupError):
        return True


def test_a_renewed_child_is_the_new_program_at_once(supervisor: Supervisor, told: list[Mapping[str, int]]) -> None:
    child = supervisor.start(program(SLEEPER))
    first = told[-1]["child"]
    fresh = program(SLEEPER, "with-something-new")
    supervisor.renew(child, fresh)
    assert is_gone(first)
    assert child.program is fresh
    assert told[-1]["child"] != first
    assert supervisor.children == [child]
    assert child.quick_ends == 0


def test_a_killed_child_is_started_again(supervisor: Supervisor, told: list[Mapping[str, int]]) -> None:
    child = supervisor.start(program(SLEEPER))
    assert child.process is not None
    first = child.process.pid
    os.kill(first, signal.SIGKILL)
    wait_for(tending(supervisor, lambda: bool(told[-1]) and told[-1]["child"] != first), what="a new child", seconds=10)


def test_a_child_that_keeps_ending_is_started_ever_more_rarely(supervisor: Supervisor) -> None:
    child = supervisor.start(program("raise SystemExit(3)"))
    pauses = []
    for ends in (1, 2, 3):
        assert child.process is not None
        child.process.wait()
        before = time.monotonic()
        supervisor.tend()
        assert child.quick_ends == ends
        pauses.append(child.start_again_at - before)
        child.start_again_at = 0.0
        supervisor.tend()
    assert pauses == pytest.approx([0.25, 0.5, 1.0], abs=0.05)


def test_a_child_that_had_settled_is_started_again_at_once(
    supervisor: Supervisor, monkeypatch: pytest.MonkeyPatch
) -> None:
    child = supervisor.start(program(SLEEPER))
    child.quick_ends = 6
    monkeypatch.setattr(module, "SETTLED_S", 0.0)
    assert child.process is not None
    child.process.kill()
    child.process.wait()
    supervisor.tend()
    assert child.quick_ends == 1


def test_the_log_says_which_child_ended_and_how(supervisor: Supervisor, caplog: pytest.LogCaptureFixture) -> None:
    child = supervisor.start(program("raise SystemExit(3)"))
    assert child.process is not None
    child.process.wait()
    with caplog.at_level(logging.WARNING):
        supervisor.tend()
    assert "child (pid" in caplog.text
    assert "with exit status 3" in caplog.text


def test_stopping_ends_even_a_child_that_does_not_listen(
    supervisor: Supervisor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "GRACE_S", 0.2)
    child = supervisor.start(program(STUBBORN, str(tmp_path / "ready")))
    assert child.process is not None
    pid = child.process.pid
    wait_for((tmp_path / "ready").exists, what="the stubborn child", seconds=10)
    supervisor.stop()
    assert is_gone(pid)


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux ties a child's life to its parent's")
def test_a_child_dies_with_a_killed_supervisor() -> None:
    code = (
        "import os, sys, time; from pathlib import Path\n"
        "from negotiation_site.supervisor import Program, Supervisor\n"
        "one = Supervisor(on_change=lambda pids: print(pids['child'], flush=True))\n"
        f"one.start(Program(name='child', argv=[sys.executable, '-c', {SLEEPER!r}], env=os.environ, cwd=Path.cwd()))\n"
        "time.sleep(60)\n"
    )
    parent = subprocess.Popen([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, text=True)
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    parent.kill()
    parent.wait()
    wait_for(lambda: is_gone(pid), what="the orphan to end", seconds=5)


@pytest.mark.parametrize(
    ("returncode", "words"), [(0, "with exit status 0"), (-9, "by SIGKILL"), (-200, "by signal 200")]
)
def test_an_end_is_told_in_words(returncode: int, words: str) -> None:
    assert how_it_ended(returncode) == words
