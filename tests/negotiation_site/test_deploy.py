"""What an operator copies out of `deploy/` starts the processes that there are, with settings that are read."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from django.conf import settings
from django.core.management import get_commands

ROOT = Path(__file__).resolve().parents[2]
UNITS = sorted((ROOT / "deploy" / "systemd").glob("*.service"))
COMPOSE = yaml.safe_load((ROOT / "deploy" / "compose.yaml").read_text())


def commands() -> list[list[str]]:
    found = [
        line.removeprefix("ExecStart=").split()
        for unit in UNITS
        for line in unit.read_text().splitlines()
        if line.startswith("ExecStart=")
    ]
    return [
        *found,
        *(service["command"] for service in COMPOSE["services"].values() if "python" in service.get("command", "")),
    ]


@pytest.mark.parametrize("command", commands(), ids=lambda words: "-".join(words[1:4]).replace("/", "_"))
def test_every_process_that_is_started_exists(command: list[str]) -> None:
    if command[1] == "manage.py":
        assert command[2] in get_commands()
        return
    assert command[1] == "-m"
    assert command[2] in ("uvicorn", "celery", "agents.inference")
    if "-Q" in command:
        assert set(command[command.index("-Q") + 1].split(",")) <= set(settings.CELERY_TASK_QUEUES)


@pytest.mark.parametrize("kind", ["systemd", "compose"])
def test_every_queue_has_a_worker(kind: str) -> None:
    text = (
        "".join(unit.read_text() for unit in UNITS)
        if kind == "systemd"
        else " ".join(" ".join(service.get("command", [])) for service in COMPOSE["services"].values())
    )
    assert set(re.findall(r"-Q (\S+)", text)) == set(settings.CELERY_TASK_QUEUES)


def test_every_variable_of_the_example_is_one_that_is_read() -> None:
    known = (ROOT / "negotiation_site" / "settings.py").read_text()
    for name in re.findall(r"^#?([A-Z][A-Z_]+)=", (ROOT / "deploy" / "parley.env.example").read_text(), re.MULTILINE):
        assert name in known or name.startswith("PARLEY_LLM_"), name


def start(code: list[str], **environment: str) -> subprocess.CompletedProcess[str]:
    kept = {name: word for name, word in os.environ.items() if name not in ("REDIS_URL", "PARLEY_ROLE")}
    return subprocess.run(
        [sys.executable, *code],
        cwd=ROOT,
        env=kept | {"DJANGO_SETTINGS_MODULE": "negotiation_site.settings", "LOG_LEVEL": "ERROR"} | environment,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_several_web_processes_without_a_broker_are_refused() -> None:
    ended = start(["-c", "import negotiation_site.asgi"], WEB_CONCURRENCY="4")
    assert ended.returncode != 0
    assert "a move made here would not reach players" in ended.stderr


def test_a_worker_without_a_broker_is_refused() -> None:
    ended = start(["-m", "celery", "-A", "negotiation_site.celery", "worker", "-Q", "agents"])
    assert ended.returncode != 0
    assert "REDIS_URL is not set" in ended.stderr + ended.stdout
