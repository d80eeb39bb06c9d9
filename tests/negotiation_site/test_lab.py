"""One command starts the whole site; whatever way it ends, nothing of it stays behind."""

import json
import os
import re
import signal
import socket
import stat
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Iterator
from pathlib import Path

import pytest

from negotiation_site.management.commands.lab import Stopping, listen
from tests.lab import ROOT, RunningLab, lab_environment, wait_for

pytestmark = [
    pytest.mark.slow,
    pytest.mark.xdist_group("lab"),
    pytest.mark.skipif(sys.platform != "linux", reason="looks at /proc and relies on Linux ending orphans"),
]


CHILDREN = {"valkey", "web", "worker", "clock", "trainer"}


def processes_of(var: Path) -> list[int]:
    """Every living process that was started with this PARLEY_VAR, whoever its parent is now.

    Valkey writes its title over its environment; it is known by the folder it runs in.
    """
    mark = f"PARLEY_VAR={var}".encode()
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        try:
            state = (process / "stat").read_text().rsplit(")", 1)[1].split()[0]
            ours = (
                mark in (process / "environ").read_bytes().split(b"\0") or (process / "cwd").readlink() == var / "run"
            )
            if ours and state != "Z":
                found.append(int(process.name))
        except (FileNotFoundError, ProcessLookupError, PermissionError):
            continue
    return found


def wait_until_none_is_left(var: Path) -> None:
    wait_for(lambda: not processes_of(var), what="every process to end", seconds=15)


@pytest.fixture
def var(tmp_path: Path) -> Iterator[Path]:
    """A folder that nothing was started on."""
    folder = tmp_path / "var"
    yield folder
    for pid in processes_of(folder):
        os.kill(pid, signal.SIGKILL)


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """The folder of one world that is started and ended again and again."""
    folder = tmp_path_factory.mktemp("lab") / "var"
    yield folder
    for pid in processes_of(folder):
        os.kill(pid, signal.SIGKILL)


@pytest.fixture(scope="module")
def lab(world: Path) -> Iterator[RunningLab]:
    """One running lab for the tests that leave it whole; at last its terminal is closed."""
    running = RunningLab(var=world, environment={"PARLEY_INFERENCE": "on"}, bare=True)
    yield running
    assert running.stop(signal.SIGHUP) == 0  # As Ctrl-C and SIGTERM do (`test_every_way_to_ask_it_to_stop_is_heard`).
    wait_until_none_is_left(world)


def lab_refused(var: Path, *arguments: str) -> str:
    """What `lab` says when it will not start; it must say it with exit status 2 and leave no process."""
    done = subprocess.run(
        [sys.executable, "manage.py", "lab", *arguments],
        cwd=ROOT,
        env=lab_environment(var),
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.returncode == 2, done.stderr
    assert "Traceback" not in done.stderr
    return done.stderr


def test_whatever_kills_it_nothing_of_it_is_left_and_the_next_start_keeps_the_world(
    world: Path, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    with log.open("wb") as output:
        make = subprocess.Popen(
            ["/bin/sh", "-c", f"{sys.executable} manage.py lab --port 0 --stop-with-parent --bare; true"],
            cwd=ROOT,
            env=lab_environment(world),
            stdout=output,
            stderr=output,
        )
    wait_for(lambda: b"Parley is at" in log.read_bytes(), what="the lab", log=log)
    assert len(processes_of(world)) >= 5
    key = (world / "secret_key").read_text()
    make.kill()  # Whoever started it.
    make.wait()
    wait_for(lambda: not processes_of(world), what="every process to end", seconds=30)
    assert not (world / "run" / "lab.json").exists()

    lab = RunningLab(var=world, bare=True)
    assert lab.status("/readyz") == 200
    assert set(lab.state()["children"]) == CHILDREN
    lab.manage("shell", "-c", "from django.contrib.auth.models import User; User.objects.create(username='kept')")
    lab.process.kill()
    lab.process.wait()
    wait_until_none_is_left(world)
    assert (world / "secret_key").read_text() == key


def test_what_was_in_the_world_is_there_after_a_kill(lab: RunningLab) -> None:
    # The lock and the old lab.json were no hindrance to the start either.
    count = "from django.contrib.auth.models import User; print(User.objects.filter(username='kept').count())"
    assert lab.status("/readyz") == 200
    assert lab.manage("shell", "-v", "0", "-c", count).strip() == "1"


@pytest.mark.parametrize("host", ["127.0.0.1", "::1"])
def test_no_answer_waits_for_the_one_before_it_to_be_acknowledged(host: str) -> None:
    with listen(host=host, port=0) as listener, socket.create_connection(listener.getsockname()[:2]):
        accepted, _address = listener.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)


def test_every_way_to_ask_it_to_stop_is_heard() -> None:
    asked = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
    before = {signum: signal.getsignal(signum) for signum in asked}
    try:
        stopping = Stopping()
        for times, signum in enumerate(asked, start=1):
            assert stopping.asked() is (times > 1)
            signal.raise_signal(signum)
            assert stopping.requests == times
    finally:
        for signum, handler in before.items():
            signal.signal(signum, handler)


@pytest.mark.parametrize("name", ["web", "worker", "clock", "valkey", "inference"])
def test_a_killed_process_comes_back(lab: RunningLab, name: str) -> None:
    lab.restart(name)
    assert set(lab.state()["children"]) == CHILDREN | {"inference"}


def test_visitors_wait_while_the_web_process_is_started_again(lab: RunningLab) -> None:
    lab.kill("web")
    assert lab.status("/healthz") == 200


def test_static_files_are_named_by_content_and_compressed(lab: RunningLab) -> None:
    with urllib.request.urlopen(lab.url + "/admin/login/") as response:
        address = re.search(r'href="(/static/admin/css/base\.[0-9a-f]{12}\.css)"', response.read().decode())
    assert address is not None
    request = urllib.request.Request(lab.url + address[1], headers={"Accept-Encoding": "gzip"})
    with urllib.request.urlopen(request) as response:
        assert response.headers["Content-Encoding"] == "gzip"
        assert "immutable" in response.headers["Cache-Control"]
    assert lab.status("/static/plotly/plotly.min.js") == 200


def test_what_holds_secrets_is_readable_by_its_owner_only(lab: RunningLab) -> None:
    for name in ("secret_key", "run/lab.json", "run/valkey.conf", "run/inference.json"):
        assert stat.S_IMODE((lab.var / name).stat().st_mode) == 0o600, name


def test_the_embedded_server_talks_to_nobody_without_the_password(lab: RunningLab) -> None:
    port = int(lab.state()["redis_url"].rsplit(":", 1)[1].split("/")[0])
    with socket.create_connection(("127.0.0.1", port), timeout=5) as stranger:
        stranger.sendall(b"PING\r\n")
        assert stranger.recv(100).startswith(b"-NOAUTH")


def test_a_second_lab_on_the_same_folder_is_refused(lab: RunningLab) -> None:
    sentence = lab_refused(lab.var, "--port", "0")
    assert "already runs" in sentence
    assert lab.url in sentence
    assert lab.status("/readyz") == 200


def test_a_taken_port_is_told_in_a_sentence(var: Path) -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        port = str(other.getsockname()[1])
        sentence = lab_refused(var, "--port", port)
    assert f"Port {port} is taken" in sentence
    assert not processes_of(var)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--port", "eighty"), "'eighty' is not a port"),
        (("--port", "70000"), "'70000' is not a port"),
        (("--port", "-1"), "'-1' is not a port"),
        (("--host", "203.0.113.7", "--port", "0"), "Cannot listen on 203.0.113.7"),
    ],
)
def test_a_wrong_argument_is_told_in_a_sentence(var: Path, arguments: tuple[str, ...], words: str) -> None:
    assert words in lab_refused(var, *arguments)


def test_the_embedded_model_answers_commands_beside_the_lab_and_no_stranger(lab: RunningLab) -> None:
    ask = (
        "from agents import backends; from agents.backends import *; "
        "asked = ChatRequest(messages=(ChatMessage('user', 'Hello'),), max_tokens=4); "
        "print('SAID', backends.get('embedded').chat(asked).output_tokens)"
    )
    assert "SAID" in lab.manage("shell", "-v", "0", "-c", ask)
    url = json.loads((lab.var / "run" / "inference.json").read_text())["PARLEY_LLM_EMBEDDED_URL"]
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(f"{url}/models", timeout=10)
    assert refused.value.code == 401
