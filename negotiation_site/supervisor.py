"""Keeps a handful of child processes running and leaves none behind. Knows nothing of Django or of what they do.

Contract: a child that ends is started again with back-off; `stop` ends all, the last started first; and on Linux a
child dies with this process even when this process is killed with SIGKILL. Start children from the main thread only:
the kernel ties a child's life to the thread that made it.
"""

import contextlib
import ctypes
import logging
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

logger = logging.getLogger(__name__)

PR_SET_PDEATHSIG = 1
_libc = ctypes.CDLL(None, use_errno=True) if sys.platform == "linux" else None

FIRST_PAUSE_S = 0.25
LONGEST_PAUSE_S = 30.0
SETTLED_S = 20.0
"""A child that lived this long is taken for healthy: its next end is a first one."""
GRACE_S = 6.0


def die_with_parent(*, parent_pid: int, signum: int = signal.SIGKILL) -> None:
    """Ask the kernel to send `signum` to this process when its parent ends. Does nothing outside Linux.

    Meant for `preexec_fn`; the parent may have ended before the request, so that is looked at afterwards.
    """
    if _libc is None:
        return
    _libc.prctl(PR_SET_PDEATHSIG, int(signum), 0, 0, 0)
    if os.getppid() != parent_pid:
        os.kill(os.getpid(), signum)


@dataclass(frozen=True, kw_only=True)
class Program:
    """What to start, and how it is called in messages."""

    name: str
    argv: Sequence[str]
    env: Mapping[str, str]
    cwd: Path
    pass_fds: Sequence[int] = ()


@dataclass(kw_only=True)
class Child:
    """A program and its process, if it runs."""

    program: Program
    process: subprocess.Popen[bytes] | None = None
    started_at: float = 0.0
    start_again_at: float = 0.0
    quick_ends: int = 0
    """Ends in a row that came before the child had settled."""

    def start(self) -> None:
        parent_pid = os.getpid()
        self.process = subprocess.Popen(
            self.program.argv,
            env=dict(self.program.env),
            cwd=self.program.cwd,
            pass_fds=tuple(self.program.pass_fds),
            stdin=subprocess.DEVNULL,
            start_new_session=True,  # Ctrl-C is for the supervisor; it tells the children.
            preexec_fn=lambda: die_with_parent(parent_pid=parent_pid),
        )
        self.started_at = time.monotonic()

    def send(self, signum: int) -> None:
        """Signal the child's whole process group, of which it may itself have left already."""
        if self.process is not None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.process.pid, signum)


@dataclass(kw_only=True)
class Supervisor:
    """Children in the order in which they were started."""

    on_change: Callable[[Mapping[str, int]], None]
    """Told the running children's pids whenever one was started or ended."""
    children: list[Child] = field(default_factory=list)

    def start(self, program: Program) -> Child:
        child = Child(program=program)
        child.start()
        self.children.append(child)
        self._tell()
        return child

    def renew(self, child: Child, program: Program) -> None:
        """End a child and start `program` in its place, without the pause of one that ended by itself."""
        self._end(child)
        child.program, child.quick_ends, child.start_again_at = program, 0, 0.0
        child.start()
        self._tell()

    def tend(self) -> None:
        """Notice ended children and start again those whose pause is over. Returns at once."""
        now = time.monotonic()
        for child in self.children:
            if child.process is not None and child.process.poll() is not None:
                self._note_end(child, now=now)
            if child.process is None and now >= child.start_again_at:
                child.start()
                self._tell()

    def stop(self, *, hurry: Callable[[], bool] = lambda: False) -> None:
        """End every child, the last started first: politely, and after a grace (or when told to hurry) by force."""
        for child in reversed(self.children):
            self._end(child, hurry)
        self.children.clear()
        self._tell()

    @staticmethod
    def _end(child: Child, hurry: Callable[[], bool] = lambda: False) -> None:
        child.send(signal.SIGTERM)
        deadline = time.monotonic() + GRACE_S
        while child.process is not None and child.process.poll() is None:
            if hurry() or time.monotonic() > deadline:
                break
            time.sleep(0.02)
        child.send(signal.SIGKILL)
        if child.process is not None:
            child.process.wait()
            child.process = None

    def _note_end(self, child: Child, *, now: float) -> None:
        assert child.process is not None
        child.send(signal.SIGKILL)  # What it may have started itself.
        settled = now - child.started_at >= SETTLED_S
        child.quick_ends = 1 if settled else child.quick_ends + 1
        pause = min(LONGEST_PAUSE_S, FIRST_PAUSE_S * 2 ** (child.quick_ends - 1))
        logger.warning(
            "%s (pid %d) ended %s; starting it again in %.2g s",
            child.program.name,
            child.process.pid,
            how_it_ended(child.process.returncode),
            pause,
        )
        child.process = None
        child.start_again_at = now + pause
        self._tell()

    def _tell(self) -> None:
        self.on_change({child.program.name: child.process.pid for child in self.children if child.process is not None})


def how_it_ended(returncode: int) -> str:
    if returncode >= 0:
        return f"with exit status {returncode}"
    try:
        return f"by {signal.Signals(-returncode).name}"
    except ValueError:
        return f"by signal {-returncode}"
