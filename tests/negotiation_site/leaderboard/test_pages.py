"""The pages: something to read from the first day on, sentences for wrong addresses, and nothing of a private game."""

import csv
import html
import io
import re

import pytest
from django.db import OperationalError
from django.test import Client
from django.urls import reverse

from markets import identity
from markets.models import EpisodeSeat
from negotiation_site.leaderboard import pages
from negotiation_site.leaderboard.tables import PROVISIONAL
from tests.markets import rooms
from tests.markets.engine.factories import B1, bilateral, offer
from tests.markets.rooms import staged
from tests.negotiation_site.leaderboard.records import bought, stored, walked

pytestmark = pytest.mark.django_db

BOARD, PEOPLE, CSV = "/leaderboard/", "/leaderboard/people/", "/leaderboard/agents.csv"


def text(response) -> str:
    """What a page says, in one line."""
    body = re.sub(r"<script.*?</script>", " ", response.content.decode(), flags=re.S)
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", body)).replace("\xa0", " "))


def tournament(*, sellers=("linear", "conceder", "hardliner"), buyers=("linear", "boulware"), count=PROVISIONAL):
    market = rooms.market(slug="arena")
    for seller in sellers:
        for buyer in buyers:
            stored(market, seller=seller, buyers=buyer, count=count)
    return market


# --- Empty ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("path", "words"),
    [(BOARD, "No agent has played yet."), (PEOPLE, "Nobody is on the ladder yet.")],
)
def test_an_empty_board_leads_on(client: Client, path: str, words: str):
    response = client.get(path)
    assert response.status_code == 200
    assert words in text(response)
    assert "/markets/" in response.content.decode()


def test_filters_without_games_lead_back(client: Client):
    tournament(count=2)
    response = client.get(BOARD, {"family": "catalogue"})
    assert "No games of agents fit these filters." in text(response)
    assert "Show all games" in text(response)


# --- Agents -----------------------------------------------------------------------------------------


def test_the_board_ranks_agents_at_shared_tables_and_says_out_of_what(client: Client):
    tournament()
    answer = client.get(BOARD)
    words = text(answer)
    assert "at which at least two of these agents sat" in words
    assert "seats of 4 agents in 180 games about 30 different scenarios" in words
    first, last = words.index("1. "), words.index("4. ")
    assert first < last
    assert "95 % intervals" in words
    assert len(re.findall(r"<h2[^>]*>\s*Who keeps most of what there is to share\?", answer.content.decode())) == 1


def test_every_plot_has_a_question_and_its_table(client: Client):
    tournament()
    body = client.get(BOARD).content.decode()
    plots = re.findall(r'data-chart="([\w-]+)-data"', body)
    assert {
        "board-share",
        "board-deals",
        "board-meetings",
        "board-tiers",
        "board-openings",
        "board-concessions",
    } <= set(plots)
    for plot in plots:
        assert f'id="{plot}-title"' in body
        section = body[body.index(f'id="{plot}-title"') :]
        assert section.index("<table") < section.index("</section>")
    assert "plotly.min.js" in body


def test_agents_that_were_never_compared_are_not_ranked(client: Client):
    market = rooms.market()
    stored(market, seller="linear", buyers="boulware", count=3, seed=1)
    words = text(client.get(BOARD, {"role": "seller"}))
    assert "must not be compared" in words
    assert "not compared" in words
    assert "1. Steady" not in words


def test_an_agent_that_sits_without_being_listed_has_its_title_and_its_kind(client: Client):
    [game, _] = stored(rooms.market(), seller="linear+begging", buyers="boulware", count=2)
    answer = client.get(BOARD)
    assert "Steady, begging scripted" in text(answer)
    assert "no longer installed" not in text(answer)
    assert '<a href="/agents/linear/">' in answer.content.decode()
    assert '<a href="/agents/linear/">' in client.get(f"/episodes/{game.public_id}/").content.decode()


def test_few_games_are_marked_provisional(client: Client):
    tournament(count=3)
    assert "provisional" in text(client.get(BOARD))


def test_filters_narrow_the_board_and_stay_in_the_address(client: Client):
    tournament()
    stored(rooms.market("multi_buyer"), seller="falling-ladder", count=3)
    words = text(client.get(BOARD, {"market": "arena", "role": "seller", "kind": "scripted"}))
    assert "180 seats of 3 agents" in words
    assert "Falling prices" not in words.split("Agents by the share")[1]
    assert "Falling prices" in text(client.get(BOARD, {"family": "multi_buyer"}))
    body = client.get(BOARD, {"role": "seller", "market": "arena"}).content.decode()
    assert 'value="seller" selected' in body
    assert "/leaderboard/agents.csv?market=arena&amp;role=seller" in body


@pytest.mark.parametrize(
    ("query", "sentence"),
    [
        ({"market": "nope"}, "There is no market called “nope”. All markets are shown."),
        ({"role": "xyz"}, "A seat is the seller's or a buyer's, not “xyz”. Both are shown."),
        ({"family": "-1"}, "There is no kind of market called “-1”. All kinds are shown."),
        ({"kind": "<b>"}, "There is no kind of agent called “<b>”. All kinds are shown."),
        ({"market": "x" * 5_000}, f"“{'x' * 60}…”"),
        ({"market": "\x00"}, "All markets are shown"),
    ],
    ids=["market", "role", "family", "kind", "long", "nul"],
)
def test_what_an_address_asks_for_and_does_not_exist_is_said(client: Client, query: dict[str, str], sentence: str):
    tournament(count=2)
    response = client.get(BOARD, query)
    assert response.status_code == 200
    assert sentence in text(response)
    assert "24 seats" in text(response)


@pytest.mark.parametrize("page", ["-1", "0", "99", "abc", "", "1e9", "9" * 400])
def test_a_page_of_the_ladder_that_does_not_exist_is_said(client: Client, page: str):
    walked()
    response = client.get(PEOPLE, {"page": page})
    assert response.status_code == 200
    assert "There is no page" in text(response)


def test_only_reading_is_offered(client: Client):
    for path in (BOARD, PEOPLE, CSV):
        assert client.post(path).status_code == 405


# --- CSV --------------------------------------------------------------------------------------------


def rows(response) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(response.content.decode())))


def test_the_csv_has_the_figures_of_the_page(client: Client):
    tournament()
    response = client.get(CSV, {"role": "seller"})
    assert response["Content-Type"].startswith("text/csv")
    found = rows(response)
    assert [row["agent"] for row in found][-1] == "hardliner"
    shares = [float(row["share_on_equal_terms"]) for row in found]
    assert shares == sorted(shares, reverse=True)
    for row in found:
        assert float(row["share_low"]) <= float(row["share"]) <= float(row["share_high"])
        assert row["exploration_coverage"] == ""
        assert 0 < int(row["tables_shared"]) <= 60  # Tables where something could be gained.
    words = text(client.get(BOARD, {"role": "seller"}))
    assert f"{shares[0] * 100:.1f} %" in words


def test_a_wrong_address_of_the_csv_gets_a_sentence(client: Client):
    response = client.get(CSV, {"market": "nope"})
    assert (response.status_code, response["Content-Type"]) == (400, "text/plain; charset=utf-8")
    assert "There is no market called “nope”" in response.content.decode()


def test_a_name_is_no_formula(client: Client):
    stored(rooms.market(), seller="linear")
    EpisodeSeat.objects.filter(agent_slug="linear").update(agent_slug="=cmd|x")
    assert {row["agent"] for row in rows(client.get(CSV))} == {"'=cmd|x"}


# --- Whose games count ------------------------------------------------------------------------------


def test_games_that_are_not_open_data_are_in_no_figure(client: Client):
    walked(consent="private")
    walked(consent="research")
    walked(consent="")
    assert "No games of agents fit" in text(client.get(BOARD))
    assert "Nobody is on the ladder yet." in text(client.get(PEOPLE))
    assert rows(client.get(CSV)) == []


def test_taking_consent_back_takes_a_game_off_the_board_at_once(client: Client):
    game = walked()
    assert "1 seats of 1 agents" in text(client.get(BOARD))
    rooms.agree(game, B1, "private")
    assert "No games of agents fit" in text(client.get(BOARD))
    assert "Nobody is on the ladder yet." in text(client.get(PEOPLE))


def test_a_room_in_play_shows_nowhere(client: Client):
    game = staged(bilateral(value=123_457, cost=98_765), people=(B1,), agents="linear")
    game.act(B1, offer(4_321))
    tournament(count=2)
    for path in (BOARD, PEOPLE, CSV, "/agents/linear/", f"/markets/{game.room.market.slug}/", "/markets/"):
        body = client.get(path).content.decode()
        for secret in ("1,234.57", "123457", "987.65", "98765", "43.21", game.room.public_id):
            assert secret not in body, path


def test_an_erased_person_leaves_the_ladder(client: Client):
    game = bought(6_000)
    name = game.people[B1].pseudonym
    assert name in text(client.get(PEOPLE))
    game.people[B1].delete()
    assert name not in text(client.get(PEOPLE))
    assert game.people["seller"].pseudonym in text(client.get(PEOPLE))


# --- People -----------------------------------------------------------------------------------------


def test_whoever_looks_finds_their_own_row(client: Client):
    game = bought(6_000)
    session = client.session
    session[identity.SESSION_KEY] = game.people[B1].pk
    session.save()
    response = client.get(PEOPLE)
    assert "You are number 1 of 2." in text(response)
    assert response.content.decode().count("board__mine") == 1
    assert "You are number" not in text(Client().get(PEOPLE))


def test_names_are_escaped(client: Client):
    game = bought(6_000)
    person = game.people[B1]
    person.pseudonym = "<script>alert(1)</script>"
    person.save()
    assert "<script>alert(1)</script>" not in client.get(PEOPLE).content.decode()


def test_the_ladder_turns_pages(client: Client, monkeypatch):
    monkeypatch.setattr(pages, "PEOPLE_A_PAGE", 2)
    for price in (6_000, 6_100):
        bought(price)
    first = client.get(PEOPLE).content.decode()
    assert "Page 1 of 2" in first
    assert 'href="/leaderboard/people/?page=2"' in first
    assert "Page 2 of 2" in client.get(PEOPLE, {"page": "2"}).content.decode()


# --- Kept pages -------------------------------------------------------------------------------------


def test_a_board_is_worked_out_once_and_again_when_games_have_come(client: Client, monkeypatch):
    worked = []
    made = pages.tables.board
    monkeypatch.setattr(pages.tables, "board", lambda *args: worked.append(1) or made(*args))
    stored(rooms.market(), seller="linear", count=2)
    for _ in range(3):
        client.get(BOARD)
    assert len(worked) == 1
    stored(rooms.market(), seller="linear", count=1)
    assert "4 seats" in text(client.get(BOARD))  # Within the time that a page may be behind.
    monkeypatch.setattr(pages, "FRESH_S", 0.0)
    assert "6 seats" in text(client.get(BOARD))
    assert len(worked) == 2


def test_a_web_process_shows_the_last_page_while_a_newer_one_is_worked_out(client: Client, monkeypatch, settings):
    jobs = []
    monkeypatch.setattr(pages, "_apart", jobs.append)
    monkeypatch.setattr(pages, "FRESH_S", 0.0)
    settings.ROLE = "web"
    stored(rooms.market(), seller="linear", count=2)
    assert "4 seats" in text(client.get(BOARD))
    stored(rooms.market(), seller="linear", count=1)
    for _ in range(3):
        assert "4 seats" in text(client.get(BOARD))
    (job,) = jobs
    job()
    assert "6 seats" in text(client.get(BOARD))
    assert len(jobs) == 1


def test_a_withdrawn_consent_waits_for_no_other_page(client: Client, monkeypatch, settings):
    monkeypatch.setattr(pages, "_apart", lambda job: None)
    settings.ROLE = "web"
    game = walked()
    assert "1 seats of 1 agents" in text(client.get(BOARD))
    rooms.agree(game, B1, "private")
    assert "No games of agents fit" in text(client.get(BOARD))


def test_no_more_pages_are_kept_than_fit(client: Client, monkeypatch):
    monkeypatch.setattr(pages, "KEPT", 3)
    stored(rooms.market(), seller="linear")
    for family in ("", "bilateral", "multi_buyer", "catalogue"):
        client.get(BOARD, {"family": family})
    assert len(pages._kept) == 3


def test_new_games_are_read_before_anybody_asks_and_the_first_page_worked_out_now_and_then(client: Client, monkeypatch):
    worked, waits = [], iter([False, False, False, True])
    made = pages.tables.board
    monkeypatch.setattr(pages.tables, "board", lambda *args: worked.append(len(args[0])) or made(*args))

    def wait(seconds: float) -> bool:
        stored(rooms.market(), seller="linear", count=1, seed=len(worked) + int(seconds))
        return next(waits)

    pages.keep_up(wait=wait, look_s=10, renew_s=15)
    assert worked == [0, 4]  # At once, and after the second pause: every fifteen seconds at most.
    assert len(pages.facts.current()) == 8


def test_a_database_that_does_not_answer_is_waited_for(monkeypatch, caplog):
    calls = []

    def fails() -> None:
        calls.append(1)
        raise OperationalError("gone away")

    monkeypatch.setattr(pages.facts, "current", fails)
    monkeypatch.setattr(pages.connections, "close_all", lambda: None)
    pages.keep_up(wait=lambda seconds: len(calls) == 2)
    assert len(calls) == 2
    assert "gone away" in caplog.text


def test_the_board_is_in_the_menu(client: Client):
    assert f'href="{reverse("leaderboard")}"' in client.get("/").content.decode()
