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
from negotiation_site.api import tokens
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


def enter_an_agent(client: Client, address: str):
    return client.post("/agents/new/", {"name": "Ada"}, REMOTE_ADDR=address)


def open_a_room(client: Client, address: str):
    return client.post("/markets/nowhere/play/", {"seat": "buyer"}, REMOTE_ADDR=address)


def make_a_move(client: Client, address: str):
    return client.post("/rooms/nowhere/act/", "{}", content_type="application/json", REMOTE_ADDR=address)


def make_an_account(client: Client, address: str):
    return client.post("/account/sign-up/", {"username": "x"}, REMOTE_ADDR=address)


def sign_in_at_the_administration(client: Client, address: str):
    return client.post("/admin/login/", {"username": "x", "password": "y"}, REMOTE_ADDR=address)


@pytest.mark.parametrize(
    "act", [enter_an_agent, open_a_room, make_a_move, make_an_account, sign_in_at_the_administration]
)
def test_a_person_and_an_address_have_each_their_limit(act):
    person = with_session(Client())
    wandering = [act(person, f"192.0.2.{n}").status_code for n in range(4)]
    assert (429 in wandering[:3], wandering[3]) == (False, 429), "one person, from address to address"
    crowd = [act(with_session(Client()), "192.0.2.77").status_code for _ in range(6)]
    assert (429 in crowd[:5], crowd[5]) == (False, 429), "many people, at one address"


def script(owner: User) -> dict[str, str]:
    return {"Authorization": f"Bearer {tokens.create(owner=owner, name='x' * (1 + tokens.of(owner).count()))[1]}"}


def test_a_person_with_many_tokens_has_one_limit_and_says_when_to_come_back(monkeypatch):
    monkeypatch.setattr(throttle, "SCRIPTS", replace(throttle.SCRIPTS, person=3))
    owner = User.objects.create_user("ann")
    answers = [
        Client().get("/api/v1/agents", headers=script(owner), REMOTE_ADDR=f"192.0.2.{number}") for number in range(4)
    ]
    assert [answer.status_code for answer in answers] == [200, 200, 200, 429]
    assert answers[3]["Retry-After"] == "50"
    assert answers[3].json()["detail"] == "Your tokens may ask 3 times in 60 seconds together. Ask again in 50 seconds."
    other = Client().get("/api/v1/agents", headers=script(User.objects.create_user("bob")))
    assert other.status_code == 200


def test_who_guesses_tokens_is_held_by_the_address(monkeypatch):
    monkeypatch.setattr(throttle, "SCRIPTS", replace(throttle.SCRIPTS, address=3))
    codes = []
    for number in range(4):
        guess = {"Authorization": f"Bearer parley_{number}"}
        answer = Client().get("/api/v1/episodes", headers=guess, REMOTE_ADDR="192.0.2.5")
        codes.append(answer.status_code)
    assert codes == [401, 401, 401, 429]
    assert answer.json()["error"] == "too_many_requests"


def test_behind_a_proxy_the_address_is_the_visitors_and_not_what_somebody_claims(monkeypatch):
    """uvicorn puts the proxy's word in place of the peer; a header that it does not believe counts for nothing."""
    codes = [
        Client()
        .post(
            "/account/sign-in/", {"username": "x"}, REMOTE_ADDR="192.0.2.9", headers={"X-Forwarded-For": f"10.0.0.{n}"}
        )
        .status_code
        for n in range(6)
    ]
    assert codes[-1] == 429


def test_every_named_limit_is_that_of_an_address_that_exists():
    from django.urls import get_resolver

    names = {name for name in get_resolver().reverse_dict if isinstance(name, str)} | {"admin:login"}
    assert set(throttle.LIMITS) - names - {"run-new"} == set()
