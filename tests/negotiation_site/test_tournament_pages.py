"""Everybody sees how a tournament stands; only those who may build hold, cancel and take up."""

import csv
import json
import re
from io import StringIO

import pytest
from django.contrib.auth.models import Permission, User
from django.core.management import call_command

from agents import registry
from markets.models import Episode
from markets.selectors import market
from training.models import Tournament, TournamentStatus
from training.suites import cards
from training.tournaments import services, tasks

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def world() -> None:
    call_command("seed_demo", "--bare", stdout=StringIO())


@pytest.fixture
def calls(monkeypatch) -> list[str]:
    """Tournaments that workers were called to."""
    called: list[str] = []
    monkeypatch.setattr(tasks, "announce", lambda tournament: called.append(tournament.name))
    return called


@pytest.fixture
def staff(client):
    client.force_login(User.objects.create_user("boss", is_staff=True))
    return client


def opened(name: str = "cup", *, scenarios: int = 2) -> Tournament:
    specs = [registry.get(slug) for slug in ("linear", "conceder")]
    return services.open_tournament(
        name=name, market=market("demo-bilateral"), agents=specs, scenarios=scenarios, seed=1
    )[0]


def played(name: str = "cup", *, scenarios: int = 2) -> Tournament:
    tournament = opened(name, scenarios=scenarios)
    services.work(services.cast_of(tournament), owner="me")
    tournament.refresh_from_db()
    return tournament


def form(**changes) -> dict[str, object]:
    return {
        "name": "cup", "market": "demo-bilateral", "agents": ["linear", "conceder"], "scenarios": "2", "seed": "1",
    } | changes  # fmt: skip


def test_without_a_tournament_the_list_says_how_to_hold_one(client) -> None:
    page = client.get("/tournaments/").content.decode()
    assert "No tournament has been held" in page
    assert "Hold a tournament" not in page


def test_a_finished_tournament_has_its_table_matrix_findings_and_command(client) -> None:
    tournament = played()
    page = client.get("/tournaments/cup/").content.decode()
    for text in (
        "Who keeps most",
        "Who gets how much from whom?",
        "One against the other",
        "What went with faring well: buyers",
        tournament.result_sha256,
    ):
        assert text in page
    assert "--agents linear,conceder --market demo-bilateral --scenarios 2 --seed 1" in page
    assert "Provisional" in page
    assert 'data-testid="progress"' not in page
    figure = json.loads(re.search(r'id="tournament-meetings-data" type="application/json">(.*?)</script>', page)[1])
    assert figure["data"][0]["type"] == "heatmap"
    assert "Steady" in client.get("/tournaments/").content.decode()


def test_one_scenario_is_shown_without_intervals(client) -> None:
    played(scenarios=1)
    assert client.get("/tournaments/cup/").status_code == 200


def test_a_tournament_under_way_asks_for_news_and_reloads_at_the_end(client) -> None:
    tournament = opened()
    page = client.get("/tournaments/cup/").content.decode()
    assert 'hx-get="/tournaments/cup/progress/"' in page
    assert "0 of 8 negotiations" in page
    assert "HX-Refresh" not in client.get("/tournaments/cup/progress/")
    services.work(services.cast_of(tournament), owner="me")
    assert client.get("/tournaments/cup/progress/")["HX-Refresh"] == "true"


def test_an_unknown_tournament_is_not_there(client) -> None:
    for address in ("", "progress/", "ranking.csv", "games.csv"):
        assert client.get(f"/tournaments/nothing/{address}").status_code == 404


def test_the_result_can_be_taken_away_as_csv(client) -> None:
    opened("waiting")
    assert client.get("/tournaments/waiting/games.csv").status_code == 404
    played()
    ranking = list(csv.DictReader(StringIO(client.get("/tournaments/cup/ranking.csv").getvalue().decode())))
    assert {row["agent"] for row in ranking} == {"linear", "conceder"}
    games = list(csv.DictReader(StringIO(client.get("/tournaments/cup/games.csv").getvalue().decode())))
    assert len(games) == 8
    assert {row["record_sha256"] for row in games} == set(Episode.objects.values_list("record_sha256", flat=True))


def test_staff_hold_a_tournament_from_the_form(staff, calls, django_capture_on_commit_callbacks) -> None:
    assert 'data-testid="hold"' in staff.get("/tournaments/new/").content.decode()
    with django_capture_on_commit_callbacks(execute=True):
        answer = staff.post("/tournaments/new/", form())
    assert (answer.status_code, answer["Location"]) == (302, "/tournaments/cup/")
    assert calls == ["cup"]
    assert Tournament.objects.get().status == TournamentStatus.QUEUED


def test_whoever_may_build_markets_may_hold_tournaments(client, calls) -> None:
    researcher = User.objects.create_user("researcher")
    researcher.user_permissions.add(Permission.objects.get(codename="build_market"))
    client.force_login(researcher)
    assert client.post("/tournaments/new/", form()).status_code == 302


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"agents": ["linear"]}, "at least 2 agents"),
        ({"agents": []}, "none is named"),
        ({"agents": ["linear", "nobody"]}, "There is no agent"),
        ({"agents": ["linear", "greedy"]}, "plays catalogue markets only"),
        ({"scenarios": "0"}, "at least one scenario"),
        ({"scenarios": "many"}, "must be a whole number"),
        ({"seed": ""}, "must be a whole number"),
        ({"market": "none"}, "Choose a market"),
        ({"name": "two words"}, "letters, digits, hyphens"),
        ({"name": "new"}, "its address is taken"),
    ],
    ids=["one", "none", "unknown", "family", "zero", "words", "no-seed", "market", "name", "reserved"],
)
def test_a_form_that_makes_no_tournament_says_why_and_keeps_what_was_typed(staff, calls, changes, sentence) -> None:
    answer = staff.post("/tournaments/new/", form(**changes))
    page = answer.content.decode()
    assert answer.status_code == 400
    assert sentence in page
    assert (Tournament.objects.count(), calls) == (0, [])
    if "name" not in changes:
        assert 'value="cup"' in page


def test_a_name_that_is_taken_is_refused_in_the_form(staff, calls) -> None:
    opened()
    answer = staff.post("/tournaments/new/", form())
    assert answer.status_code == 400
    assert "already a tournament" in answer.content.decode()


def test_strangers_and_players_change_nothing(client, calls) -> None:
    opened()
    assert client.get("/tournaments/new/")["Location"].startswith("/account/sign-in/")
    for login in (None, User.objects.create_user("player")):
        if login is not None:
            client.force_login(login)
            assert client.get("/tournaments/new/").status_code == 403
            assert client.post("/tournaments/new/", form(name="other")).status_code == 403
        for address in ("cancel", "resume"):
            assert client.post(f"/tournaments/cup/{address}/").status_code == 403
    assert (Tournament.objects.get().status, calls) == (TournamentStatus.QUEUED, [])


def test_staff_cancel_and_take_up(staff, calls) -> None:
    opened()
    assert 'data-testid="cancel-tournament"' in staff.get("/tournaments/cup/").content.decode()
    staff.post("/tournaments/cup/cancel/")
    assert Tournament.objects.get().status == TournamentStatus.CANCELLED
    page = staff.get("/tournaments/cup/").content.decode()
    assert 'data-testid="resume-tournament"' in page
    assert "hx-get" not in page
    staff.post("/tournaments/cup/resume/")
    assert (Tournament.objects.get().status, calls) == (TournamentStatus.QUEUED, ["cup"])


def test_cancelling_what_is_over_is_answered_with_a_sentence(staff) -> None:
    played()
    answer = staff.post("/tournaments/cup/cancel/", follow=True)
    assert "Only a tournament under way can be cancelled" in answer.content.decode()


def test_every_suite_has_its_card(client) -> None:
    page = client.get("/suites/").content.decode()
    for card in cards.cards():
        for text in (card.sha256, card.licence.split(",")[0], f"--suite {card.name}"):
            assert text in page
