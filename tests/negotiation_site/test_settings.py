"""Settings refuse what they cannot read, and the defaults run with nothing set."""

import json
import os
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.db import connection

from tests.lab import ROOT, lab_environment

READ = "import json; from negotiation_site import settings; print(json.dumps(settings.{name}, default=str))"


def read(name: str, *, var: Path, **environment: str) -> Any:
    """A setting as a fresh process reads it."""
    done = start(READ.format(name=name), var=var, **environment)
    output, error = done.communicate(timeout=60)
    assert done.returncode == 0, error
    return json.loads(output)


def refusal(*, var: Path, **environment: str) -> str:
    """The last line of what a process says that will not read its settings."""
    done = start("from negotiation_site import settings", var=var, **environment)
    error = done.communicate(timeout=60)[1]
    assert done.returncode != 0
    return error.strip().splitlines()[-1]


def start(code: str, *, var: Path, **environment: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", code],
        cwd=ROOT,
        env=lab_environment(var) | environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("PARLEY_HTTPS", "maybe"),
        ("PARLEY_DEBUG", "app:*"),
        ("PARLEY_ROLE", "wbe"),
        ("DATABASE_URL", "mysql://u@localhost/parley"),
        ("DATABASE_URL", "nonsense"),
    ],
)
def test_a_value_that_means_nothing_is_refused(tmp_path: Path, name: str, value: str) -> None:
    assert "ImproperlyConfigured" in refusal(var=tmp_path, **{name: value})


@pytest.mark.parametrize(
    "arguments",
    [
        ("-c", "import negotiation_site.asgi"),
        ("-m", "celery", "-A", "negotiation_site.celery", "worker", "-P", "solo"),
        ("manage.py", "clock"),
    ],
    ids=["web", "worker", "clock"],
)
def test_one_of_several_processes_does_not_start_with_a_channel_layer_of_its_own(
    tmp_path: Path, arguments: tuple[str, ...]
) -> None:
    environment = lab_environment(tmp_path) | {"PARLEY_ROLE": "web"}
    command = [sys.executable, *arguments]
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60)
    assert done.returncode != 0
    assert "moves made here would not reach players" in done.stderr


def test_an_empty_variable_counts_as_unset(tmp_path: Path) -> None:
    assert read("HTTPS", var=tmp_path, PARLEY_HTTPS="") is False
    assert read("DATA", var=tmp_path, PARLEY_DATA="") == str(ROOT.parent / "shared" / "data")
    assert len(read("SECRET_KEY", var=tmp_path, SECRET_KEY="")) > 50


def test_errors_are_not_shown_to_visitors_unless_asked_for(tmp_path: Path) -> None:
    assert read("DEBUG", var=tmp_path) is False
    assert read("DEBUG", var=tmp_path, PARLEY_DEBUG="true") is True


def test_processes_that_start_together_agree_on_one_secret_key(tmp_path: Path) -> None:
    starts = [start(READ.format(name="SECRET_KEY"), var=tmp_path) for _ in range(4)]
    keys = {process.communicate(timeout=60)[0] for process in starts}
    assert len(keys) == 1
    assert stat.S_IMODE((tmp_path / "secret_key").stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir()] == ["secret_key"]


def test_https_makes_cookies_secure_and_is_remembered_by_browsers(tmp_path: Path) -> None:
    names = ("SESSION_COOKIE_SECURE", "CSRF_COOKIE_SECURE", "SECURE_SSL_REDIRECT", "SECURE_HSTS_SECONDS")
    code = f"from negotiation_site import settings; print([bool(getattr(settings, name)) for name in {names}])"
    for value, answer in (("", False), ("1", True)):
        output = start(code, var=tmp_path, PARLEY_HTTPS=value).communicate(timeout=60)[0]
        assert output.strip() == str([answer] * len(names))


def test_postgresql_gets_a_pool_and_sqlite_keeps_its_connection(tmp_path: Path) -> None:
    postgresql = read("DATABASES", var=tmp_path, DATABASE_URL="postgres://u:p@db/parley")["default"]
    assert postgresql["OPTIONS"]["pool"]["max_size"] > 1
    assert postgresql["CONN_MAX_AGE"] == 0
    sqlite = read("DATABASES", var=tmp_path)["default"]
    assert sqlite["NAME"] == str(tmp_path / "db.sqlite3")
    assert sqlite["CONN_MAX_AGE"] is None


@pytest.mark.django_db
def test_sqlite_lets_readers_read_while_one_writes() -> None:
    if connection.vendor != "sqlite":
        pytest.skip("a setting of SQLite")
    with connection.cursor() as cursor:
        assert cursor.execute("PRAGMA journal_mode").fetchone() == ("wal",)
    assert settings.DATABASES["default"]["OPTIONS"]["transaction_mode"] == "IMMEDIATE"


def test_a_redis_url_makes_layer_and_broker_shared(tmp_path: Path) -> None:
    url = "redis://localhost:1/0"
    layer = read("CHANNEL_LAYERS", var=tmp_path, REDIS_URL=url)["default"]
    assert layer["BACKEND"] == "channels_redis.pubsub.RedisPubSubChannelLayer"
    assert read("CELERY_BROKER_URL", var=tmp_path, REDIS_URL=url) == url


def test_a_relative_folder_is_meant_from_where_the_command_was_typed(tmp_path: Path) -> None:
    environment = lab_environment(Path("here")) | {"PYTHONPATH": str(ROOT)}
    command = [sys.executable, "-c", READ.format(name="VAR")]
    done = subprocess.run(command, cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    assert json.loads(done.stdout) == os.path.join(os.path.realpath(tmp_path), "here")


@pytest.mark.parametrize(
    ("request_line", "part"),
    [
        ("client.get('/', headers={'host': 'evil.example'})", "Invalid HTTP_HOST header"),
        ("client.post('/markets/x/play/', b'x', content_type='multipart/form-data; boundary=')", "Bad request"),
    ],
)
def test_a_strangers_request_costs_the_log_one_line(tmp_path: Path, request_line: str, part: str) -> None:
    """Anybody can send a foreign Host or half a form; a stack trace for each would bury what went wrong here."""
    asks = (
        "import django; django.setup(); from django.test import Client; "
        "client = Client(raise_request_exception=False, enforce_csrf_checks=True, headers={'host': 'localhost'}); "
        f"client.cookies['csrftoken'] = 'a' * 32; {request_line}"
    )
    done = start(asks, var=tmp_path, DJANGO_SETTINGS_MODULE="tests.settings")
    error = done.communicate(timeout=60)[1]
    assert len([line for line in error.splitlines() if part in line]) == 1, error
    assert "Traceback" not in error
