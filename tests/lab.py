"""The real thing in a subprocess: `manage.py lab` with a folder and a port of its own.

For tests of the processes themselves and for the browser. `RunningLab` knows its pids from `run/lab.json`.
"""

import json
import os
import signal
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
PATIENCE_S = 240


class RunningLab:
    """A started lab. `url` is its address, `var` its folder."""

    def __init__(
        self, *, var: Path, environment: Mapping[str, str] | None = None, port: int = 0, bare: bool = False
    ) -> None:
        self.var = var
        self.environment = lab_environment(var) | dict(environment or {})
        self.log = var.parent / f"{var.name}.log"
        self.log_starts_at = self.log.stat().st_size if self.log.exists() else 0
        arguments = ["--bare"] if bare else []
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "manage.py", "lab", "--port", str(port), "--stop-with-parent", *arguments],
                cwd=ROOT,
                env=self.environment,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        wait_for(lambda: self._announced(), what="the lab to announce itself", log=self.log)
        self.url = str(self.state()["url"])

    def _announced(self) -> bool:
        if self.process.poll() is not None:
            raise AssertionError(f"the lab ended with {self.process.returncode}:\n{tail(self.log)}")
        return b"Parley is at http" in self.log.read_bytes()[self.log_starts_at :]

    def state(self) -> dict[str, Any]:
        return dict(json.loads((self.var / "run" / "lab.json").read_text()))

    def pid(self, name: str) -> int | None:
        """Of `web`, `worker`, `clock` or `valkey`; `None` while it is being started again."""
        pid = self.state()["children"].get(name)
        return None if pid is None else int(pid)

    def kill(self, name: str) -> int:
        """kill -9 one child and return the pid it had."""
        pid = self.pid(name)
        assert pid is not None, f"{name} is not running"
        os.kill(pid, signal.SIGKILL)
        return pid

    def restart(self, name: str) -> None:
        """kill -9 one child and wait until the site is whole again."""
        old = self.kill(name)
        wait_for(lambda: self.pid(name) not in (None, old), what=f"a new {name}", log=self.log)
        wait_for(lambda: self.status("/readyz") == 200, what="the site to answer", log=self.log)

    def restart_web(self) -> None:
        self.restart("web")

    def status(self, path: str) -> int | None:
        """HTTP status of a page, `None` when nobody answers."""
        try:
            with urllib.request.urlopen(self.url + path, timeout=PATIENCE_S) as response:
                return int(response.status)
        except urllib.error.HTTPError as error:
            return error.code
        except OSError:
            return None

    def manage(self, *arguments: str, seconds: float = 120) -> str:
        """Standard output of a management command on this lab's world."""
        command = [sys.executable, "manage.py", *arguments]
        done = subprocess.run(command, cwd=ROOT, env=self.environment, capture_output=True, text=True, timeout=seconds)
        assert done.returncode == 0, f"{' '.join(arguments)} ended with {done.returncode}:\n{done.stderr}"
        return done.stdout

    def stop(self, signum: int = signal.SIGTERM) -> int:
        """Ask it to stop and return the exit status."""
        if self.process.poll() is None:
            self.process.send_signal(signum)
        try:
            return self.process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            self.process.kill()
            raise AssertionError(f"the lab did not stop:\n{tail(self.log)}") from None


def lab_environment(var: Path) -> dict[str, str]:
    """This process's environment without what tests or a running site have put in it, and without a language model."""
    foreign = ("DJANGO_SETTINGS_MODULE", "REDIS_URL", "DATABASE_URL", "PARLEY_ROLE", "PORT", "SECRET_KEY", "MAKELEVEL")
    kept = {name: value for name, value in os.environ.items() if name not in foreign}
    return kept | {"PARLEY_VAR": str(var), "PARLEY_INFERENCE": "off"}


def wait_for(condition: Callable[[], bool], *, what: str, log: Path | None = None, seconds: float = PATIENCE_S) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {seconds:g} s for {what}\n{tail(log) if log else ''}")
        time.sleep(0.05)


def tail(log: Path) -> str:
    return "\n".join(log.read_text(errors="replace").splitlines()[-40:])
