"""Whoever watches the site sees how it stands; nobody else does, and no figure is about a person."""

import pytest
from django.contrib.auth.models import User
from django.test import Client
from prometheus_client.parser import text_string_to_metric_families

from tests.markets.engine.factories import B1, SELLER, bilateral, offer
from tests.markets.rooms import staged

pytestmark = pytest.mark.django_db


@pytest.fixture
def token(settings) -> str:
    settings.METRICS_TOKEN = "let-me-see"
    return settings.METRICS_TOKEN


def read(client: Client, token: str) -> dict[str, dict[tuple[str, ...], float]]:
    text = client.get("/metrics", headers={"Authorization": f"Bearer {token}"}).content.decode()
    found: dict[str, dict[tuple[str, ...], float]] = {}
    for family in text_string_to_metric_families(text):
        for sample in family.samples:
            found.setdefault(sample.name, {})[tuple(word for _name, word in sorted(sample.labels.items()))] = (
                sample.value
            )
    return found


def test_rooms_turns_and_events_are_counted(client: Client, token: str) -> None:
    before = read(client, token)
    game = staged(bilateral(), people=(B1, SELLER))
    game.act(B1, offer(6_000))
    after = read(client, token)
    assert after["parley_rooms"][("live",)] == before["parley_rooms"][("live",)] + 1
    assert after["parley_room_events_total"][()] > before["parley_room_events_total"][()]
    assert after["parley_agent_turns"][("late",)] == 0


def test_answers_are_timed_by_the_name_of_their_address(client: Client, token: str) -> None:
    staged(bilateral(), people=(B1, SELLER))
    client.get("/glossary/")
    client.get("/glossary/")
    client.generic("BREW", "/glossary/")
    client.get("/secret-path-of-somebody/")
    told = read(client, token)["parley_http_seconds_count"]
    assert told[("GET", "200", "glossary")] >= 2
    assert ("other", "405", "glossary") in told
    assert ("GET", "404", "none") in told
    assert "secret" not in str(told)


def test_strangers_players_and_wrong_tokens_find_nothing(client: Client, token: str) -> None:
    assert client.get("/metrics").status_code == 404
    for shown in ("", "Bearer", "Bearer let-me-se", "Basic let-me-see", "bearer  x"):
        assert client.get("/metrics", headers={"Authorization": shown}).status_code == 404
    client.force_login(User.objects.create_user("player"), backend="django.contrib.auth.backends.ModelBackend")
    assert client.get("/metrics").status_code == 404
    client.force_login(
        User.objects.create_user("staff", is_staff=True), backend="django.contrib.auth.backends.ModelBackend"
    )
    assert client.get("/metrics").status_code == 200


def test_without_a_token_in_the_settings_an_empty_one_opens_nothing(client: Client) -> None:
    assert client.get("/metrics", headers={"Authorization": "Bearer "}).status_code == 404
