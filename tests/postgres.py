"""A PostgreSQL server of our own for one pytest call: `python -m tests.postgres PYTEST-ARGUMENTS`.

Makes a cluster in a temporary folder, listens on a free port of loopback, sets DATABASE_URL, runs pytest, and leaves
nothing. Where the server binaries are missing it says so and succeeds, unless PARLEY_REQUIRE names postgresql.
"""

import os
import pwd
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg

from negotiation_site.supervisor import die_with_parent
from tests import machine

START_S = 30
# Nothing here has to survive: speed over safety.
TUNING = ("fsync=off", "synchronous_commit=off", "full_page_writes=off", "max_connections=60", "shared_buffers=64MB")


class CannotRun(Exception):
    """This machine has no PostgreSQL server that we could start; the message says why."""


def account() -> dict[str, Any]:
    """Who runs the server: PostgreSQL refuses root, so root hands over to the packaged user."""
    if os.geteuid() != 0:
        return {}
    try:
        user = pwd.getpwnam("postgres")
    except KeyError:
        raise CannotRun("root may not run PostgreSQL and there is no user postgres") from None
    return {"user": user.pw_uid, "group": user.pw_gid, "extra_groups": []}


@contextmanager
def server() -> Iterator[str]:
    """Yields the DATABASE_URL of a fresh server."""
    binaries = machine.postgresql()
    if binaries is None:
        raise CannotRun("no PostgreSQL server binaries on this machine (Debian: apt install postgresql)")
    runs_as = account()
    folder = Path(tempfile.mkdtemp(prefix="parley-postgres-"))
    if runs_as:
        os.chown(folder, runs_as["user"], runs_as["group"])
    cluster = folder / "cluster"
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "LC_ALL": "C.UTF-8"}
    process = None
    try:
        subprocess.run(
            [binaries / "initdb", "-D", cluster, "-U", "parley", "-E", "UTF8", "--auth=trust", "--no-sync"],
            check=True,
            cwd=folder,
            env=environment,
            stdout=subprocess.DEVNULL,
            **runs_as,
        )
        settings = [*TUNING, "listen_addresses=127.0.0.1", f"port={port}", f"unix_socket_directories={folder}"]
        parent_pid = os.getpid()
        with (folder / "log").open("wb") as log:
            process = subprocess.Popen(
                [binaries / "postgres", "-D", cluster, *(word for one in settings for word in ("-c", one))],
                cwd=folder,
                env=environment,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=lambda: die_with_parent(parent_pid=parent_pid, signum=signal.SIGQUIT),
                **runs_as,
            )
        url = f"postgres://parley@127.0.0.1:{port}/postgres"
        wait_until_it_answers(url, process=process, log=folder / "log")
        yield url
    finally:
        if process is not None:
            process.send_signal(signal.SIGQUIT)  # "Immediate shutdown" in PostgreSQL's words.
            process.wait(timeout=30)
        shutil.rmtree(folder, ignore_errors=True)


def wait_until_it_answers(url: str, *, process: subprocess.Popen[bytes], log: Path) -> None:
    deadline = time.monotonic() + START_S
    while True:
        try:
            psycopg.connect(url, connect_timeout=2).close()
            return
        except psycopg.OperationalError:
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"PostgreSQL does not start:\n{log.read_text(errors='replace')}") from None
            time.sleep(0.1)


def main(arguments: list[str]) -> int:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # So that what was started is ended.
    try:
        with server() as url:
            print(f"On PostgreSQL ({url}):", flush=True)  # noqa: T201
            environment = os.environ | {"DATABASE_URL": url}
            environment.pop("DJANGO_SETTINGS_MODULE", None)  # Set by importing the site; pytest has its own.
            return subprocess.run([sys.executable, "-m", "pytest", *arguments], env=environment).returncode
    except CannotRun as reason:
        print(f"PostgreSQL tests skipped: {reason}", flush=True)  # noqa: T201
        return 1 if machine.required("postgresql") else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
