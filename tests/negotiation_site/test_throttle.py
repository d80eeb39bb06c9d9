"""A script cannot flood the site with rooms, forms or moves, and people in one office do not lock one another out."""

import json
from dataclasses import replace

import pytest
from django.contrib.auth.models import User
from django.core.cache import cache
from django.test import Client
from redis.exceptions import ConnectionError as RedisConnectionError

from markets.models import Room
from negotiation_site import throttle
from tests.markets import rooms
from tests.markets.engine.factories import B1, SELLER, bilateral
from tests.markets.rooms import staged

TRIED = 400
"""What a wrong password is answered with."""

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def limits(settings, monkeypatch):
    """Small limits, one window for the whole test."""
    settings.RATE_LIMITS = True
    monkeypatch.setattr(throttle, "clock", lambda: 6_000_010.0)
    small = {name: replace(limit, person=3, address=5) for name, limit in throttle.LIMITS.items()}
    monkeypatch.setattr(throttle, "LIMITS", small)
    monkeypatch.setattr(throttle, "DEFAULT", replace(throttle.DEFAULT, person=3, address=5))
    cache.clear()
    yield
    cache.clear()


def sign_in(client: Client, *, address: str = "192.0.2.1"):
    return client.post("/account/sign-in/", {"username": "x", "password": "y"}, REMOTE_ADDR=address)


def with_session(client: Client) -> Client:
    client.session.save()
    session = client.session
    session["known"] = True
    session.save()
    client.cookies["sessionid"] = session.session_key
    return client


def test_the_next_one_is_told_when_to_come_back_and_the_following_window_is_open(client, monkeypatch):
    person = with_session(client)
    assert [sign_in(person).status_code for _ in range(4)] == [TRIED, TRIED, TRIED, 429]
    refused = sign_in(person)
    assert refused["Retry-After"] == "50"
    assert "try again in 50 seconds" in refused.content.decode()
    assert "Content-Security-Policy" in refused
    monkeypatch.setattr(throttle, "clock", lambda: 6_000_060.0)
    assert sign_in(person).status_code == TRIED


def test_people_of_one_address_have_limits_of_their_own_up_to_the_address():
    first, second = with_session(Client()), with_session(Client())
    assert [sign_in(first).status_code for _ in range(3)] == [TRIED] * 3
    assert [sign_in(second).status_code for _ in range(3)] == [TRIED, TRIED, 429], "five from one address"
    assert sign_in(with_session(Client()), address="192.0.2.77").status_code == TRIED


def test_who_throws_the_cookie_away_is_held_by_the_address():
    assert [sign_in(Client()).status_code for _ in range(6)][-1] == 429


def test_an_account_is_one_person_in_every_browser():
    user = User.objects.create_user("ann")
    codes = []
    for number in range(4):
        browser = Client()
        browser.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
        codes.append(sign_in(browser, address=f"192.0.2.{number}").status_code)
    assert codes[-1] == 429


def test_one_network_of_ipv6_counts_as_one_address():
    assert [sign_in(Client(), address=f"2001:db8:1:2::{n:x}").status_code for n in range(6)][-1] == 429
    assert sign_in(Client(), address="2001:db8:1:3::1").status_code == TRIED


def test_a_room_too_many_is_not_opened(client):
    market = rooms.market()
    person = with_session(client)
    address = f"/markets/{market.slug}/play/"
    codes = [person.post(address, {"seat": "buyer", "opponent": "linear"}).status_code for _ in range(4)]
    assert codes[-1] == 429
    assert Room.objects.count() == codes.count(302)


def test_a_move_too_many_is_answered_as_the_room_page_understands():
    game = staged(bilateral(), people=(B1, SELLER))
    browser = game.client(B1) if hasattr(game, "client") else with_session(Client())
    frame = json.dumps({"type": "ping"})
    answers = [
        browser.post(f"/rooms/{game.room.public_id}/act/", frame, content_type="application/json") for _ in range(4)
    ]
    assert answers[-1].status_code == 429
    assert json.loads(answers[-1].content)["code"] == "too_many"


def test_reading_is_not_counted(client):
    assert {client.get("/glossary/").status_code for _ in range(10)} == {200}


def test_where_the_cache_does_not_answer_nobody_is_refused(client, monkeypatch):
    def gone(*_args, **_kwargs):
        raise RedisConnectionError("gone")

    monkeypatch.setattr(throttle.cache, "add", gone)
    assert {sign_in(client).status_code for _ in range(8)} == {TRIED}


def test_limits_can_be_switched_off_for_load_tests(client, settings):
    settings.RATE_LIMITS = False
    assert {sign_in(client).status_code for _ in range(8)} == {TRIED}


def test_every_named_limit_is_that_of_an_address_that_exists():
    from django.urls import get_resolver

    names = {name for name in get_resolver().reverse_dict if isinstance(name, str)} | {"admin:login"}
    assert set(throttle.LIMITS) - names - {"run-new"} == set()
