"""An agent's page: what it is, what its record is out of, and only games that are open to everybody."""

import csv
import io
import json
import re

import pytest
from django.core.management import call_command
from django.test import Client
from django.urls import reverse

from agents import registry
from agents.models import InjectionScore
from markets.models import Episode, EpisodeSeat
from negotiation_site import agent_page
from tests.markets import rooms
from tests.negotiation_site.leaderboard.records import stored, walked
from tests.negotiation_site.leaderboard.test_pages import text, tournament

pytestmark = pytest.mark.django_db


def plots(body: str) -> dict[str, dict]:
    found = re.findall(r'<script id="(agent-[\w-]+)-data" type="application/json">(.*?)</script>', body, flags=re.S)
    return {name: json.loads(figure) for name, figure in found}


@pytest.mark.parametrize("slug", ["linear", "optimal-ladder", "oracle", "threshold"])
def test_an_agent_without_a_game_has_a_page_that_leads_on(client: Client, slug: str):
    response = client.get(f"/agents/{slug}/")
    words = text(response)
    assert response.status_code == 200
    spec = registry.get(slug)
    assert spec.summary in words
    assert spec.source in words
    assert "It has no games on record yet." in words


def test_the_list_leads_to_every_agent(client: Client):
    body = client.get("/agents/").content.decode()
    for spec in registry.all_specs():
        assert f'href="/agents/{spec.slug}/"' in body


def test_an_unknown_agent_is_a_page_that_does_not_exist(client: Client):
    assert client.get("/agents/nobody-ever/").status_code == 404


def test_a_record_says_what_it_is_out_of(client: Client):
    tournament()
    words = text(client.get("/agents/linear/"))
    assert "150 seats in games that are open." in words
    assert "On equal terms it keeps" in words
    assert re.search(r"place \d of 4 over all markets", words)
    assert "No deal counts as 0. 60 seats." in words
    assert "95 % interval" in words


def test_its_style_is_five_plots_each_with_its_table(client: Client):
    tournament()
    body = client.get("/agents/linear/").content.decode()
    drawn = plots(body)
    assert list(drawn) == ["agent-outcomes", "agent-openings", "agent-concessions", "agent-tiers", "agent-opponents"]
    assert body.count("<table") == 5
    for name, figure in drawn.items():
        assert figure["layout"]["title"]["text"].endswith("?"), name
        assert "NaN" not in json.dumps(figure)


def test_the_outcomes_add_up_to_all_games_where_something_could_be_gained(client: Client):
    tournament()
    bars = plots(client.get("/agents/hardliner/").content.decode())["agent-outcomes"]["data"]
    assert [sum(trace["y"]) for trace in bars] == pytest.approx([1.0])


def test_an_agent_that_is_no_longer_installed_keeps_its_record(client: Client):
    stored(rooms.market(), seller="linear", count=3)
    EpisodeSeat.objects.filter(role="seller").update(agent_slug="long-gone")
    response = client.get("/agents/long-gone/")
    assert response.status_code == 200
    assert "No longer installed; its record stays." in text(response)


def test_best_and_worst_games_lead_to_transcripts_that_exist(client: Client):
    tournament()
    body = client.get("/agents/linear/").content.decode()
    links = re.findall(r'href="(/episodes/[\w-]+/)"', body)
    assert 2 <= len(links) <= 2 * agent_page.SHOWN
    assert len(set(links)) == len(links)
    for link in links:
        assert client.get(link).status_code == 200


def test_the_best_game_is_the_best(client: Client):
    tournament(sellers=("linear",), buyers=("boulware",))
    words = text(client.get("/agents/linear/"))
    best = (
        EpisodeSeat.objects.filter(agent_slug="linear", surplus_share__isnull=False).order_by("-surplus_share").first()
    )
    shown = re.search(r"Its best games as seller against Boulware (\d+) %", words)
    assert shown is not None
    assert int(shown[1]) == round(best.surplus_share * 100)


def test_a_game_that_was_taken_back_is_no_longer_shown(client: Client):
    walked(consent="public")
    body = client.get("/agents/linear/").content.decode()
    assert "/episodes/" in body
    Episode.objects.update(consent_scope="research")  # Even before the copy has heard of it.
    body = client.get("/agents/linear/").content.decode()
    assert "/episodes/" not in body


def test_private_games_are_in_no_record(client: Client):
    walked(consent="private")
    assert "It has no games on record yet." in text(client.get("/agents/linear/"))


def test_a_stored_injection_score_stands_on_the_page_and_the_board_with_its_source(client: Client):
    tournament()
    assert "got through" not in text(client.get("/agents/gullible/"))
    assert "Who can be talked into it?" not in text(client.get("/leaderboard/"))
    call_command("injection_suite", "--agent", "gullible", "--store", "--json", stdout=io.StringIO())
    page = text(client.get("/agents/gullible/"))
    assert "330 of 336 attempts, attack set 1, " in page
    assert "manage.py" not in page
    rows = list(csv.DictReader(io.StringIO(client.get(reverse("leaderboard-csv")).content.decode())))
    assert {row["injection_attempts"] for row in rows} == {""}  # None of these was attacked.
    call_command("injection_suite", "--agent", "linear", "--store", "--json", stdout=io.StringIO())
    rows = list(csv.DictReader(io.StringIO(client.get(reverse("leaderboard-csv")).content.decode())))
    (row,) = [row for row in rows if row["agent"] == "linear"]
    assert (row["injection_breaches"], row["injection_breach_rate"]) == ("0", "0.0")
    assert int(row["injection_attempts"]) >= 40
    board = text(client.get("/leaderboard/"))
    assert "Who can be talked into it?" in board
    assert "330 / 336" in board
    assert "manage.py injection_suite" not in board


def test_the_staff_read_how_a_score_is_measured_again(admin_client: Client):
    tournament()
    call_command("injection_suite", "--agent", "gullible", "--store", "--json", stdout=io.StringIO())
    assert "(manage.py injection_suite --agent gullible --seed 1 --json)" in text(admin_client.get("/agents/gullible/"))
    assert "manage.py injection_suite --agent gullible --seed 1 --json, " in text(admin_client.get("/leaderboard/"))


def test_a_score_of_another_version_is_no_score_of_this_agent(client: Client):
    call_command("injection_suite", "--agent", "linear", "--store", "--json", stdout=io.StringIO())
    InjectionScore.objects.update(agent_version="0")
    assert "got through" not in text(client.get("/agents/linear/"))
    call_command("injection_suite", "--agent", "linear", "--store", "--json", stdout=io.StringIO())
    InjectionScore.objects.update(set_digest="of another set")
    assert "got through" not in text(client.get("/agents/linear/"))


def test_a_score_of_some_tables_is_shown_as_such_and_compared_with_none(client: Client):
    options = ("--agent", "gullible", "--family", "bilateral", "--role", "seller", "--store", "--json")
    call_command("injection_suite", *options, stdout=io.StringIO())
    page = text(client.get("/agents/gullible/"))
    assert "got through" in page
    assert "some tables only" in page
    tournament()
    assert "Who can be talked into it?" not in text(client.get("/leaderboard/"))
    call_command("injection_suite", "--agent", "gullible", "--store", "--json", stdout=io.StringIO())
    assert "some tables only" not in text(client.get("/agents/gullible/"))
