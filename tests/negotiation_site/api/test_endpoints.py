"""A script with a token reads what its owner may, in pages, as the document says; it is told why when it may not."""

import json
from typing import Any

import jsonschema
import pytest
from django.contrib.auth.models import Group, User
from django.test import Client
from openapi_spec_validator import validate

from markets import identity
from markets.apps import RESEARCHERS
from markets.engine.protocol import SELLER
from markets.models import Episode, EpisodeText
from negotiation_site.api import tokens
from negotiation_site.api.models import ApiToken
from negotiation_site.api.pages import answered, document
from negotiation_site.leaderboard import pages as leaderboard
from tests.markets import rooms
from tests.markets.engine.factories import B1, accept, bilateral, offer
from tests.negotiation_site.leaderboard.records import bought, stored
from training.models import Run

pytestmark = pytest.mark.django_db

V1 = "/api/v1"


def player(name: str = "pia") -> User:
    return User.objects.create_user(name, password="a long secret")


def researcher(name: str = "rita") -> User:
    user = player(name)
    user.groups.add(Group.objects.get(name=RESEARCHERS))
    return User.objects.get(pk=user.pk)


class Script:
    """A program with a token and no cookies."""

    def __init__(self, owner: User) -> None:
        self.token, self.secret = tokens.create(owner=owner, name="a script")
        self.client = Client()

    def get(self, path: str) -> Any:
        return self.client.get(path, headers={"Authorization": f"Bearer {self.secret}"})

    def items(self, path: str) -> list[dict[str, Any]]:
        """Every page after the other."""
        found: list[dict[str, Any]] = []
        address: str | None = path
        while address:
            body = self.get(address.removeprefix("http://testserver")).json()
            found += body["items"]
            address = body["next"]
        return found


def problem(response: Any, status: int, error: str) -> str:
    """The sentence of an error, which is JSON and whole."""
    assert response.status_code == status
    assert response.headers["Content-Type"].startswith("application/json")
    body = response.json()
    assert body["error"] == error
    assert body["detail"].endswith((".", "!"))
    return str(body["detail"])


# --- The document -----------------------------------------------------------------------------------------


def test_the_document_is_valid_and_open_to_everybody(client):
    body = client.get(f"{V1}/openapi.json").json()
    validate(body)
    assert set(body["paths"]) == {
        f"{V1}/{path}" for path in ("episodes", "episodes/{episode}", "markets", "agents", "leaderboards", "runs")
    }


def answers_as_documented(response: Any, path: str, status: str) -> None:
    answers = document()["paths"][path]["get"]["responses"]
    schema = answers[status]["content"]["application/json"]["schema"]
    whole = schema | {"components": document()["components"]}
    jsonschema.validate(response.json(), whole, format_checker=jsonschema.FormatChecker())


def test_every_documented_address_answers_what_its_schema_says():
    market = rooms.market()
    stored(market, seller="linear", buyers="boulware", count=2)
    stored(market, seller="conceder", buyers="boulware", count=2)
    bought(6_500)
    Run.objects.create(name="first", preset="smoke", market=market, config="{}")
    leaderboard.forget()
    script = Script(researcher())
    one = Episode.objects.order_by("pk").last()
    assert one is not None
    for path in document()["paths"]:
        response = script.get(path.replace("{episode}", one.public_id))
        assert response.status_code == 200, path
        answers_as_documented(response, path, "200")
        if "items" in response.json():
            assert response.json()["items"], path
        answers_as_documented(script.get(path.replace("{episode}", "x") + "?nonsense=1"), path, "400")
        answers_as_documented(Client().get(path.replace("{episode}", "x")), path, "401")
    answers_as_documented(script.get(f"{V1}/episodes/nothing"), f"{V1}/episodes/{{episode}}", "404")


def test_the_page_names_every_address_parameter_and_field(client):
    text = client.get("/api/docs/").content.decode()
    for path, operations in document()["paths"].items():
        assert path in text
        for parameter in operations["get"]["parameters"]:
            assert f"<code>{parameter['name']}</code>" in text
    for name in answered(document()):
        for field in document()["components"]["schemas"][name].get("properties", {}):
            assert f"<code>{field}</code>" in text, (name, field)
    assert "<script>" not in text
    assert "//cdn" not in text


def test_a_market_or_an_agent_that_nobody_knows_is_told_and_not_an_empty_list():
    script = Script(player())
    assert "“nope”" in problem(script.get(f"{V1}/episodes?market=nope"), 404, "no_such_market")
    assert "“nope”" in problem(script.get(f"{V1}/episodes?agent=nope"), 404, "no_such_agent")
    assert script.get(f"{V1}/episodes?agent=linear").status_code == 200
    assert script.get(f"{V1}/episodes?agent=person").status_code == 200
    (episode,) = stored(rooms.market("bilateral"), seller="linear")
    episode.seats.filter(party=SELLER).update(agent_slug="retired-long-ago")
    assert len(script.items(f"{V1}/episodes?agent=retired-long-ago")) == 1


# --- Who asks ----------------------------------------------------------------------------------------------


def test_without_a_token_nothing_is_read_not_even_with_a_cookie(client):
    bought(6_500)
    client.force_login(User.objects.create_superuser("root"))
    response = client.get(f"{V1}/episodes")
    problem(response, 401, "no_token")
    assert response.headers["WWW-Authenticate"].startswith("Bearer")
    assert "Access-Control-Allow-Origin" not in response.headers


@pytest.mark.parametrize("sent", ["Bearer parley_nothing", "Bearer ", "Basic cGlhOng=", "Bearer \x00", "parley_"])
def test_a_token_that_nobody_made_is_unknown(client, sent):
    problem(client.get(f"{V1}/episodes", headers={"Authorization": sent}), 401, "unknown_token")


def test_a_revoked_token_and_one_of_a_closed_account_read_nothing():
    script = Script(player())
    assert script.get(f"{V1}/markets").status_code == 200
    tokens.revoke(owner=script.token.owner, number=script.token.pk)
    problem(script.get(f"{V1}/markets"), 401, "unknown_token")
    other = Script(player("olga"))
    User.objects.filter(username="olga").update(is_active=False)
    problem(other.get(f"{V1}/markets"), 401, "unknown_token")


def test_what_a_token_reads_follows_the_permission_of_the_moment():
    kept, private, opened = bought(6_500, consent="research"), bought(6_400, consent="private"), bought(6_300)
    user = researcher()
    script, stranger = Script(user), Script(player())
    assert [row["episode"] for row in script.items(f"{V1}/episodes")] == [
        kept.episode.public_id,
        opened.episode.public_id,
    ]
    assert [row["episode"] for row in stranger.items(f"{V1}/episodes")] == [opened.episode.public_id]
    for episode in (kept.episode, private.episode):
        problem(stranger.get(f"{V1}/episodes/{episode.public_id}"), 404, "no_such_episode")
    problem(script.get(f"{V1}/episodes/{private.episode.public_id}"), 404, "no_such_episode")
    user.groups.clear()
    problem(script.get(f"{V1}/episodes/{kept.episode.public_id}"), 404, "no_such_episode")
    assert script.items(f"{V1}/episodes?consent=research") == []


def test_a_market_that_keeps_values_keeps_them_from_scripts_of_players():
    game = bought(6_500)
    type(game.room.market).objects.filter(pk=game.room.market_id).update(reveals_values=False)
    assert Script(player()).items(f"{V1}/episodes") == []
    assert len(Script(researcher()).items(f"{V1}/episodes")) == 1


def test_a_room_in_play_is_in_no_answer():
    game = rooms.staged(bilateral(value=8_123, cost=5_077), people=(B1, SELLER))
    game.act(B1, offer(4_000, talk="Nobody may read this."))
    script = Script(User.objects.create_superuser("root"))
    for path in ("episodes", "markets", "agents", "leaderboards", "runs", f"episodes/{game.room.public_id}"):
        text = script.get(f"{V1}/{path}").content.decode()
        assert "8123" not in text
        assert "5077" not in text
        assert "Nobody may" not in text


# --- People ------------------------------------------------------------------------------------------------


def test_people_are_pseudonyms_that_hold_for_one_token_and_their_words_are_masked():
    game = rooms.staged(bilateral(), people=(B1, SELLER))
    game.act(B1, offer(6_000, talk="Write to pia@example.org or +49 170 1234567"))
    game.act(SELLER, accept(1))
    EpisodeText.objects.filter(party=B1).update(thought="hidden thought")
    first, second = Script(researcher()), Script(player())
    address = f"{V1}/episodes/{game.episode.public_id}"
    body, again, other = first.get(address).json(), first.get(address).json(), second.get(address).json()
    names = [seat["participant"] for seat in body["seats"]]
    assert names == [seat["participant"] for seat in again["seats"]]
    assert len(set(names)) == 2
    assert not set(names) & {seat["participant"] for seat in other["seats"]}
    listed = first.items(f"{V1}/episodes")[0]["seats"]
    assert names == [seat["participant"] for seat in listed]
    text = json.dumps(body)
    assert "[email]" in text
    assert "[phone]" in text
    for person in game.people.values():
        assert person.pseudonym not in text
    assert "hidden thought" not in text
    assert "pia@" not in text


def test_somebody_who_was_erased_has_no_pseudonym():
    game = bought(6_500)
    game.people[B1].delete()
    seats = Script(player()).get(f"{V1}/episodes/{game.episode.public_id}").json()["seats"]
    assert sum(seat["participant"] is None for seat in seats) == 1


# --- Lists -------------------------------------------------------------------------------------------------


def test_pages_hold_everything_once_whatever_is_added_meanwhile():
    market = rooms.market()
    before = [episode.public_id for episode in stored(market, seller="linear", count=5)]
    script = Script(player())
    first = script.get(f"{V1}/episodes?limit=2").json()
    assert [row["episode"] for row in first["items"]] == before[:2]
    added = [episode.public_id for episode in stored(market, seller="conceder", count=1)]
    Episode.objects.filter(public_id=before[2]).delete()
    assert [row["episode"] for row in script.items(first["next"])] == before[3:] + added


@pytest.mark.parametrize("path", ["markets", "agents", "runs", "leaderboards"])
def test_every_list_comes_in_pages(path):
    market = rooms.market()
    stored(market, seller="linear", buyers="boulware")
    stored(market, seller="conceder", buyers="boulware")
    rooms.market("catalogue")
    Run.objects.create(name="first", preset="smoke", market=market, config="{}")
    leaderboard.forget()
    script = Script(player())
    whole = script.get(f"{V1}/{path}?limit=200").json()["items"]
    assert len(whole) > 1
    assert script.items(f"{V1}/{path}?limit=1") == whole


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("family=bilateral", 3),
        ("family=catalogue", 0),
        ("market=bench-bilateral&source=simulated", 2),
        ("source=live", 1),
        ("source=tournament", 0),
        ("agent=boulware&role=buyer", 2),
        ("agent=boulware&role=seller", 0),
        ("outcome=no-deal&source=live", 0),
        ("source=live&min_share=0.4&max_share=0.6", 1),
        ("source=live&role=buyer&min_share=0.6", 0),
        ("since=2999-01-01", 0),
        ("until=2999-01-01T00:00:00Z", 3),
    ],
)
def test_episodes_are_filtered(query, expected):
    stored(rooms.market(), seller="linear", buyers="boulware", count=2)
    bought(6_500)
    assert len(Script(player()).items(f"{V1}/episodes?{query}")) == expected


@pytest.mark.parametrize(
    ("query", "error"),
    [
        ("limit=0", "bad_parameter"),
        ("limit=201", "bad_parameter"),
        ("limit=many", "bad_parameter"),
        ("limit=1&limit=2", "bad_parameter"),
        ("min_share=nan", "bad_parameter"),
        ("family=none", "bad_parameter"),
        ("since=yesterday", "bad_parameter"),
        ("market=a%00b", "bad_parameter"),
        ("cursor=forged", "bad_cursor"),
        ("page=2", "unknown_parameter"),
        ("Family=bilateral", "unknown_parameter"),
    ],
)
def test_what_cannot_be_read_is_refused_with_a_sentence(query, error):
    problem(Script(player()).get(f"{V1}/episodes?{query}"), 400, error)


def test_a_cursor_of_another_list_is_refused():
    stored(rooms.market(), seller="linear", count=2)
    script = Script(player())
    following = script.get(f"{V1}/episodes?limit=1").json()["next"]
    problem(script.get(f"{V1}/markets?cursor={following.rpartition('cursor=')[2]}"), 400, "bad_cursor")


@pytest.mark.parametrize("path", ["", "/", "/nothing", "/episodes/", "/episodes/a/b"])
def test_an_address_that_leads_nowhere_says_so_in_json(path):
    problem(Script(player()).get(f"{V1}{path}"), 404, "no_such_endpoint")


def test_nothing_can_be_written(client):
    script = Script(player())
    for method in (client.post, client.put, client.delete, client.patch):
        response = method(f"{V1}/episodes", headers={"Authorization": f"Bearer {script.secret}"})
        problem(response, 405, "method_not_allowed")
        assert response.headers["Allow"] == "GET"


def test_unlisted_markets_are_for_researchers():
    rooms.market()
    hidden = rooms.market("catalogue")
    type(hidden).objects.filter(pk=hidden.pk).update(is_listed=False)
    assert [row["market"] for row in Script(player()).items(f"{V1}/markets")] == ["bench-bilateral"]
    assert len(Script(researcher()).items(f"{V1}/markets")) == 2


def test_a_market_counts_the_episodes_that_the_token_may_read():
    bought(6_500)
    bought(6_400, consent="research")
    (market,) = {row["episodes"] for row in Script(player()).items(f"{V1}/markets") if row["episodes"]}
    assert market == 1


# --- Too many ----------------------------------------------------------------------------------------------


def test_a_token_that_asks_too_often_waits_and_others_do_not(monkeypatch):
    monkeypatch.setattr(tokens, "LIMIT", 3)
    script, other = Script(player()), Script(player("olga"))
    for _time in range(3):
        assert script.get(f"{V1}/runs").status_code == 200
    response = script.get(f"{V1}/runs")
    problem(response, 429, "too_many_requests")
    assert 1 <= int(response.headers["Retry-After"]) <= tokens.WINDOW_S
    assert other.get(f"{V1}/runs").status_code == 200
    ApiToken.objects.filter(pk=script.token.pk).update(window_began_at="2020-01-01T00:00:00Z")
    assert script.get(f"{V1}/runs").status_code == 200


def test_the_owner_sees_when_a_token_was_last_used():
    script = Script(player())
    assert ApiToken.objects.get().last_used_at is None
    script.get(f"{V1}/runs")
    assert ApiToken.objects.get().last_used_at is not None


def test_a_script_makes_no_participant(client):
    Script(player()).get(f"{V1}/episodes")
    assert not identity.Participant.objects.exists()
