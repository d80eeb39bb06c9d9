"""Whoever watches the site learns whether the process lives and whether it can do its work."""

import socket
from collections.abc import Iterator

import pytest
from django.db import OperationalError
from django.test import Client
from pytest_django import Settings

from negotiation_site import health


@pytest.fixture
def closed_port() -> Iterator[int]:
    """A port on which nobody listens, kept so that nobody else takes it."""
    with socket.socket() as holder:
        holder.bind(("127.0.0.1", 0))
        yield holder.getsockname()[1]


class NoCursor:
    def cursor(self) -> None:
        raise OperationalError("the server went away")


def test_a_living_process_says_so_without_the_database(client: Client) -> None:
    response = client.get("/healthz")
    assert (response.status_code, response.content) == (200, b"ok")


@pytest.mark.django_db
def test_a_site_that_can_work_is_ready(client: Client) -> None:
    response = client.get("/readyz")
    assert response.status_code == 200
    assert response.json() == {"database": "ok", "broker": "not configured"}


def test_a_site_without_its_database_is_not_ready(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(health, "connection", NoCursor())
    response = client.get("/readyz")
    assert response.status_code == 503
    assert response.json()["database"] == "no answer"
    assert "went away" not in response.content.decode()


@pytest.mark.django_db
def test_a_site_without_its_broker_is_not_ready(client: Client, settings: Settings, closed_port: int) -> None:
    settings.REDIS_URL = f"redis://127.0.0.1:{closed_port}/0"
    response = client.get("/readyz")
    assert response.status_code == 503
    assert response.json() == {"database": "ok", "broker": "no answer"}


@pytest.mark.parametrize("path", ["/healthz", "/readyz"])
def test_the_answers_are_for_reading_and_never_cached(client: Client, path: str) -> None:
    assert client.post(path).status_code == 405


def test_pages_carry_the_policy_that_keeps_foreign_code_out(client: Client) -> None:
    policy = client.get("/healthz")["Content-Security-Policy"]
    rules = {rule.split()[0]: rule.split()[1:] for rule in policy.split(";")}
    assert rules["default-src"] == rules["script-src"] == rules["style-src"] == ["'self'"]
    assert rules["frame-ancestors"] == rules["object-src"] == ["'none'"]
