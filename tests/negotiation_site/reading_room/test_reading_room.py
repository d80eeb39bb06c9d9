"""The reading room finds what its reader may read, shows what each turn was worth, and keeps the staff's notes to them."""

import csv
import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import AnonymousUser, Group, User
from django.db import connection
from django.test import Client
from django.test.utils import CaptureQueriesContext

from markets import corpora, erasure, identity
from markets.apps import RESEARCHERS
from markets.engine.protocol import SELLER
from markets.models import Episode, EpisodeText, ImportedParty
from negotiation_site.reading_room import access, search
from negotiation_site.reading_room.models import Annotation
from tests.markets import dialogues, rooms
from tests.markets.engine.factories import B1, B2, LEAVE, accept, bilateral, catalogue, offer
from tests.markets.rooms import Game, staged
from tests.negotiation_site.leaderboard.records import bought, stored, walked
from tests.negotiation_site.leaderboard.test_pages import text
from training.models import Tournament, TournamentGame

pytestmark = pytest.mark.django_db

LIST = "/transcripts/"


def researcher(name: str = "rita", *, staff: bool = False) -> Client:
    user = User.objects.create_user(name, is_staff=staff)
    user.groups.add(Group.objects.get(name=RESEARCHERS))
    client = Client()
    client.force_login(user)
    return client


@pytest.fixture
def bikes(tmp_path: Path) -> None:
    path = tmp_path / "bikes.json"
    bargains = [dialogues.bargain(price=90), dialogues.bargain(price=95, key="C_2")]
    bargains[1]["outcome"]["reward"] = 0
    path.write_text(json.dumps(bargains), encoding="utf-8")
    corpora.store(name="bikes", format="craigslist-bargain", path=path)


def titled(response: Any) -> list[str]:
    """Where the rows lead."""
    return [row.url for row in response.context["page"].rows]


def address(game: Game | Episode) -> str:
    return f"/episodes/{(game if isinstance(game, Episode) else game.episode).public_id}/"


# --- Who may read what ------------------------------------------------------------------------------------


def test_strangers_find_open_data_and_researchers_what_was_kept_for_research(client, bikes):
    opened, kept = bought(6_500), bought(6_400, consent="research")
    private, own = bought(6_300, consent="private"), stored(rooms.market(), seller="linear")[0]
    assert set(titled(client.get(LIST))) == {address(opened), address(own)}
    found = titled(researcher().get(LIST))
    assert set(found) == {address(opened), address(own), address(kept), "/corpora/bikes/C_1/", "/corpora/bikes/C_2/"}
    for reader in (client, researcher("rob", staff=True)):
        assert reader.get(address(private)).status_code == 404
        assert reader.get(f"/transcripts/compare?a={private.episode.public_id}&b={own.public_id}").status_code == 404


def test_a_player_with_an_account_is_no_researcher(bikes):
    kept = bought(6_400, consent="research")
    player = Client()
    player.force_login(User.objects.create_user("pia"))
    assert titled(player.get(LIST)) == []
    assert player.get(address(kept)).status_code == 404
    assert player.get(f"{LIST}?source=corpus").context["page"].problems
    assert player.get("/transcripts/compare?a=bikes/C_1&b=bikes/C_2").status_code == 404


def test_no_filter_word_or_order_shows_a_stranger_what_is_not_open(client):
    game = staged(bilateral(), people=(B1, SELLER), consent="research")
    game.act(B1, offer(6_000, talk="Zanzibar"))
    game.act(SELLER, accept(1))
    for query in ("q=Zanzibar", "source=live", "outcome=deal", "agent=person", "min_share=0", "sort=-share", "tag=x"):
        response = client.get(f"{LIST}?{query}")
        assert titled(response) == []
        assert "Zanzibar”" not in text(response)


def test_a_market_that_keeps_values_keeps_its_games_out_of_the_public_list(client):
    game = bought(6_500)
    type(game.room.market).objects.filter(pk=game.room.market_id).update(reveals_values=False)
    assert titled(client.get(LIST)) == []
    assert client.get(address(game)).status_code == 404
    assert titled(researcher().get(LIST)) == [address(game)]


def test_who_sat_in_a_game_that_is_not_open_is_led_to_the_replay_of_the_own_seat():
    game = bought(6_500, consent="private")
    player, other = Client(), Client()
    for client, person in ((player, game.people[B1]), (other, rooms.person())):
        session = client.session
        session[identity.SESSION_KEY] = person.pk
        session.save()
    response = player.get(address(game))
    assert response.headers["Location"] == f"/rooms/{game.room.public_id}/replay/"
    assert other.get(address(game)).status_code == 404
    assert titled(player.get(LIST)) == []


def test_a_game_taken_back_is_gone_at_once_with_its_notes():
    game, reader = bought(6_500, consent="research"), researcher()
    Annotation.objects.create(episode=game.episode, tag="bold-start", author=User.objects.get(username="rita"))
    assert "bold-start" in text(reader.get("/transcripts/notes/"))
    rooms.agree(game, SELLER, "private")
    assert titled(reader.get(LIST)) == []
    assert not reader.get("/transcripts/notes/").context["rows"]
    assert reader.get("/transcripts/notes.jsonl").content == b""
    assert reader.get(f"/transcripts/notes/{Annotation.objects.get().pk}/").status_code == 404


def test_a_game_in_play_is_in_no_list():
    game = staged(bilateral(), people=(B1,), agents="linear")
    game.act(B1, offer(4_000))
    assert titled(researcher().get(LIST)) == []


def test_nobody_is_found_or_named_by_a_pseudonym():
    game, reader = bought(6_500), researcher()
    name = game.people[B1].pseudonym
    assert titled(reader.get(LIST, {"q": name})) == []
    assert titled(reader.get(LIST, {"agent": name})) == []
    assert name not in reader.get(LIST).content.decode()


def test_thoughts_are_shown_to_researchers_alone(client):
    (episode,) = stored(rooms.market(), seller="linear")
    EpisodeText.objects.filter(episode=episode, n=1).delete()
    EpisodeText.objects.create(episode=episode, n=1, party="seller", talk="Hello.", thought="They look rich.")
    assert "They look rich." in text(researcher().get(address(episode)))
    assert "They look rich." not in text(client.get(address(episode)))
    assert titled(researcher("rob").get(f"{LIST}?q=rich")) == []


# --- Finding ----------------------------------------------------------------------------------------------


@pytest.fixture
def shelf(bikes) -> dict[str, str]:
    """One transcript of each kind by a short name."""
    simulated, played = (
        stored(rooms.market(), seller="linear", buyers="boulware")[0],
        stored(rooms.market("multi_buyer"), seller="conceder")[0],
    )
    tournament = Tournament.objects.create(
        name="cup", market=played.market, agents="[]", pairs="[]", scenarios=1, seed=1
    )
    TournamentGame.objects.create(tournament=tournament, pair=0, scenario=0, episode=played)
    Episode.objects.filter(pk=played.pk).update(created_at="2020-02-02T12:00:00Z")
    game = staged(bilateral(), people=(B1, SELLER))
    game.act(B1, offer(6_500, talk="Would you take sixty-five dollars?"))
    game.act(SELLER, accept(1))
    return {
        address(simulated): "simulated",
        address(played): "tournament",
        address(game): "live",
        address(walked()): "left",
        "/corpora/bikes/C_1/": "C_1",
        "/corpora/bikes/C_2/": "C_2",
    }


FILTERS = [
    ("", {"simulated", "tournament", "live", "left", "C_1", "C_2"}),
    ("source=live", {"live", "left"}),
    ("source=simulated", {"simulated"}),
    ("source=tournament", {"tournament"}),
    ("source=corpus", {"C_1", "C_2"}),
    ("corpus=bikes&outcome=deal", {"C_1"}),
    ("source=corpus&market=bench-bilateral", {"C_1", "C_2"}),
    ("family=multi_buyer", {"tournament"}),
    ("market=bench-multi-buyer", {"tournament"}),
    ("agent=boulware", {"simulated"}),
    ("agent=linear&role=seller", {"simulated", "left"}),
    ("agent=boulware&role=seller", set()),
    ("agent=person&role=seller", {"live"}),
    ("outcome=no-deal&source=live", {"left"}),
    ("min_share=0.45&max_share=0.55&source=live", {"live"}),
    ("role=buyer&min_share=0.45&source=live", {"live"}),
    ("role=buyer&min_share=0.55&source=live", set()),
    ("max_turns=1&source=live", {"left"}),
    ("since=2020-02-02&until=2020-02-02", {"tournament"}),
    ("until=2020-02-01", set()),
    ('q="sixty-five+DOLLARS"', {"live"}),
    ("q=dollars+sixty-five", {"live"}),
    ("q=dollars+nowhere", set()),
    ("q=100%25_", set()),
    ("q=%00", {"simulated", "tournament", "live", "left", "C_1", "C_2"}),
]
"""Query strings and what they leave; in one test, because the shelf is long in the filling."""
MEANINGLESS = (
    "source=moon", "family=x", "market=x", "role=x", "outcome=x", "min_share=nan", "min_share=1e99", "max_turns=-1",
    "since=yesterday", "until=9999-12-31", "sort=x", "corpus=x", "page=x", "a=nothing", "min_turns=٣",
)  # fmt: skip


def test_filters_leave_what_fits_and_what_means_nothing_is_said_and_left_out(shelf):
    reader = researcher()
    for query, expected in FILTERS:
        response = reader.get(f"{LIST}?{query}")
        assert {shelf[url] for url in titled(response)} == expected, query
    for query in MEANINGLESS:
        page = reader.get(f"{LIST}?{query}").context["page"]
        assert len(page.problems) == 1, query
        assert len(page.rows) == 6, query


def test_orders_and_pages_hold_everything_once(monkeypatch, bikes):
    stored(rooms.market(), seller="linear", buyers="boulware", count=5)
    bought(6_500)
    monkeypatch.setattr(search, "ROWS", 3)
    reader = researcher()
    for sort in search.SORTS:
        found, query = [], f"?sort={sort}"
        while query:
            response = reader.get(LIST + query)
            assert response.context["page"].count_text == "6 games and 2 imported dialogues"
            found += titled(response)
            query = response.context["page"].after_url
        assert len(found) == len(set(found)) == 8
        assert all("corpora" in url for url in found[6:])
    shares = [row.share for row in reader.get(f"{LIST}?sort=-share").context["page"].rows]
    assert shares[0] == max(shares, key=lambda share: float(share.split()[0]))
    assert len(titled(reader.get(f"{LIST}?page=999"))) == 2


def test_words_that_are_everywhere_are_looked_for_no_further_than_needed(monkeypatch):
    stored(rooms.market(), seller="linear", buyers="boulware", count=4)
    EpisodeText.objects.all().delete()
    EpisodeText.objects.bulk_create(
        EpisodeText(episode=episode, n=1, party="seller", talk="The price.") for episode in Episode.objects.all()
    )
    monkeypatch.setattr(search, "MOST_FOUND", 3)
    page = Client().get(f"{LIST}?q=price").context["page"]
    assert len(page.rows) == 3
    assert page.count_text == "The first 3 games with these words"
    assert page.rows[0].said == "The price."
    assert re.search(r"#turn-\d+$", page.rows[0].said_url)


def test_a_list_asks_the_database_as_often_for_many_as_for_few(shelf):
    reader = researcher()
    stored(rooms.market(), seller="linear", buyers="boulware", count=2)
    with CaptureQueriesContext(
        connection,
    ) as few:
        reader.get(f"{LIST}?source=simulated")
    stored(rooms.market(), seller="linear", buyers="boulware", count=12)
    with CaptureQueriesContext(connection) as many:
        reader.get(f"{LIST}?source=simulated")
    assert len(many) == len(few)


def test_no_list_reads_the_records_themselves():
    """A row of the table is kilobytes; the list is found in the index that holds what it filters and sorts by."""
    if connection.vendor != "sqlite":
        pytest.skip("the plan is SQLite's")
    stored(rooms.market(), seller="linear", buyers="boulware", count=3)
    economics = {"family": "bilateral", "outcome": "deal", "min_share": "0.2", "min_turns": "2"}
    for asked in ({}, economics):
        for sort in ("newest", "-share", "-turns"):
            read, problems = search.read(asked | {"sort": sort}, AnonymousUser())
            assert not problems
            plan = search.games(read, AnonymousUser()).values_list("pk", flat=True)[:25].explain()
            assert "COVERING INDEX episode_" in plan, (asked, sort, plan)


# --- Reading ----------------------------------------------------------------------------------------------


def test_every_price_says_what_it_would_have_brought_both(client):
    game = staged(bilateral(value=8_000, cost=5_000), people=(B1, SELLER))
    game.act(B1, offer(4_000))
    game.act(SELLER, offer(7_400))
    game.act(B1, offer(6_500))
    game.act(SELLER, accept(3))
    response = client.get(address(game))
    words = text(response)
    assert "seller −$10.00, buyer $40.00: −33 % for the seller" in words
    assert "seller $24.00, buyer $6.00: 80 % for the seller" in words
    picture = response.context["reading"].picture
    rows = [(row.n, row.who, row.price, row.part) for row in picture.rows]
    assert rows == [
        (1, "Buyer", "$40.00", "−33\u00a0%"),
        (2, "Seller", "$74.00", "80\u00a0%"),
        (3, "Buyer", "$65.00", "50\u00a0%"),
        (4, "deal", "$65.00", "50\u00a0%"),
    ]  # fmt: skip
    layout = picture.chart.figure["layout"]
    assert layout["shapes"][0] | {"y0": 50.0, "y1": 80.0, "type": "rect"} == layout["shapes"][0]
    assert [trace["y"] for trace in picture.chart.figure["data"]] == [[74.0], [40.0, 65.0], [65.0]]
    assert 'id="turn-4"' in response.content.decode()
    assert 'href="#turn-4"' in response.content.decode()


def test_without_gains_there_is_no_zone_and_no_part(client):
    game = staged(bilateral(value=4_000, cost=5_000), people=(B1, SELLER))
    game.act(B1, offer(3_000))
    game.act(SELLER, LEAVE)
    response = client.get(address(game))
    assert "there was nothing to share" in text(response)
    assert all(
        shape["type"] == "line" for shape in response.context["reading"].picture.chart.figure["layout"]["shapes"]
    )


def test_a_negotiation_without_a_price_has_no_picture(client):
    game = walked()
    game.episode.texts.all().delete()
    assert client.get(address(game)).context["reading"].picture is None


def test_several_products_are_drawn_one_at_a_time(client):
    game = staged(catalogue(), people=(SELLER, B1, B2))
    game.act(SELLER, offer(7_000, to=1))
    game.act(B1, accept(1))
    game.act(SELLER, offer(9_000, to=2, product=1))
    game.act(B2, LEAVE)
    first = client.get(address(game)).context["reading"].picture
    assert [choice.label for choice in first.products] == ["Thing 0", "Thing 1"]
    assert [row.price for row in first.rows] == ["$70.00", "$70.00"]
    second = client.get(f"{address(game)}?product=1").context["reading"].picture
    assert [row.price for row in second.rows] == ["$90.00"]
    assert client.get(f"{address(game)}?product=99").status_code == 200


def test_two_are_read_side_by_side_with_places_of_their_own(bikes):
    game, reader = bought(6_500), researcher()
    response = reader.get(f"/transcripts/compare?a={game.episode.public_id}&b=bikes/C_1")
    body = response.content.decode()
    assert response.status_code == 200
    assert 'id="a-turn-1"' in body
    assert 'id="b-turn-1"' in body
    identifiers = re.findall(r'\sid="([^"]+)"', body)
    assert len(identifiers) == len(set(identifiers))
    assert "the first" not in body
    rows = {label: values for label, *values in response.context["facts"]}
    assert rows["Price"] == ["$65.00", "$90"]
    assert f"b={game.episode.public_id}" in response.context["swap_url"]


def test_a_comparison_of_what_is_not_here_is_a_page_that_says_so(bikes):
    reader = researcher()
    for query in ("", "?a=x", "?a=x&b=y", "?a=%00&b=bikes/%00", "?a=bikes/C_1&b="):
        response = reader.get(f"/transcripts/compare{query}")
        assert response.status_code == 404
        assert "not open to you" in text(response)


def test_the_second_is_chosen_in_the_list(shelf):
    reader = researcher()
    (game,) = [url for url, kind in shelf.items() if kind == "live"]
    name = game.split("/")[2]
    page = reader.get(f"{LIST}?a={name}&source=live").context["page"]
    assert page.beside
    (other,) = [row for row in page.rows if not row.chosen]
    assert reader.get(other.beside_url).status_code == 200


def test_a_dialogue_is_read_with_its_targets_and_without_parts_that_nobody_knows(bikes):
    response = researcher().get("/corpora/bikes/C_1/")
    picture = response.context["reading"].picture
    assert picture is not None
    assert picture.knows_values is False
    assert "target" in str(picture.chart.figure["layout"]["annotations"])
    assert 'id="turn-1"' in response.content.decode()


# --- Notes ------------------------------------------------------------------------------------------------


def noted(reader: Client, of: str, **typed: str) -> Any:
    return reader.post("/transcripts/notes/add/", {"of": of, "tag": "Bold start!", "note": "", "turn": ""} | typed)


def test_a_note_on_a_turn_is_seen_by_researchers_alone(client):
    game, reader = bought(6_500), researcher()
    name = game.episode.public_id
    response = noted(reader, name, note="Bold <b>opening</b>.", turn="1")
    assert response.headers["Location"] == f"{address(game)}#turn-1"
    row = Annotation.objects.get()
    assert (row.tag, row.n, row.author.username) == ("bold-start", 1, "rita")
    assert "Bold <b>opening</b>." in text(reader.get(address(game)))
    assert "<b>opening" not in reader.get(address(game)).content.decode()
    for stranger in (client, Client()):
        assert "bold-start" not in stranger.get(address(game)).content.decode()
        assert "bold-start" not in stranger.get(LIST).content.decode()
    assert "bold-start" not in client.get(f"/transcripts/compare?a={name}&b={name}").content.decode()
    assert titled(reader.get(f"{LIST}?tag=bold-start")) == [address(game)]
    assert titled(reader.get(f"{LIST}?tag=other")) == []


@pytest.mark.parametrize("path", ["", "1/", "add/", "1/delete/"])
def test_notes_are_for_researchers(client, path):
    game = bought(6_500)
    Annotation.objects.create(pk=1, episode=game.episode, tag="x", author=User.objects.create_user("ann"))
    player = Client()
    player.force_login(User.objects.create_user("pia"))
    typed = {"of": game.episode.public_id, "tag": "y"}
    for visitor, status in ((client, 302), (player, 403)):
        assert visitor.post(f"/transcripts/notes/{path}", typed).status_code in (status, 405)
        if path in ("", "1/"):
            assert visitor.get(f"/transcripts/notes/{path}").status_code == status
    for file in ("notes.csv", "notes.jsonl"):
        assert client.get(f"/transcripts/{file}").status_code == 302
        assert player.get(f"/transcripts/{file}").status_code == 403
    assert [row.tag for row in Annotation.objects.all()] == ["x"]


@pytest.mark.parametrize(
    "typed",
    [
        {"tag": "  "},
        {"tag": "!!"},
        {"tag": "x" * 41},
        {"note": "x" * 4_001},
        {"turn": "0"},
        {"turn": "99"},
        {"turn": "one"},
    ],
)
def test_a_note_that_cannot_be_kept_comes_back_with_what_was_typed(typed):
    game, reader = bought(6_500), researcher()
    response = noted(reader, game.episode.public_id, **({"note": "My words."} | typed))
    assert response.status_code == 400
    assert response.context["problem"]
    assert response.context["form"].note == typed.get("note", "My words.")
    assert not Annotation.objects.exists()


def test_a_note_on_what_is_not_open_is_refused():
    game = bought(6_500, consent="private")
    assert noted(researcher(), game.episode.public_id).status_code == 404
    assert not Annotation.objects.exists()


def test_the_author_and_the_staff_change_and_delete_a_note_and_others_do_not():
    game, author = bought(6_500), researcher()
    noted(author, game.episode.public_id)
    place = f"/transcripts/notes/{Annotation.objects.get().pk}/"
    other, staff = researcher("rob"), researcher("sue", staff=True)
    assert other.post(place, {"tag": "mine"}).status_code == 403
    assert other.post(f"{place}delete/").status_code == 403
    assert "Change" not in text(other.get("/transcripts/notes/"))
    assert author.get(place).context["form"].tag == "bold-start"
    assert author.post(place, {"tag": "late", "note": "Changed.", "turn": "2"}).status_code == 302
    assert author.post(place, {"tag": "", "note": "x", "turn": ""}).status_code == 400
    row = Annotation.objects.get()
    assert (row.tag, row.note, row.n) == ("late", "Changed.", 2)
    assert staff.post(f"{place}delete/").status_code == 302
    assert not Annotation.objects.exists()


def test_notes_leave_as_csv_without_formulas_and_as_json_lines(bikes):
    game, reader = bought(6_500), researcher()
    noted(reader, game.episode.public_id, tag="one", note="=1+1", turn="1")
    noted(reader, "bikes/C_1", tag="two", note="Two\nlines")
    rows = list(csv.DictReader(io.StringIO(reader.get("/transcripts/notes.csv").content.decode())))
    assert [(row["transcript"], row["turn"], row["tag"], row["note"]) for row in rows] == [
        (game.episode.public_id, "1", "one", "'=1+1"),
        ("bikes/C_1", "", "two", "Two\nlines"),
    ]
    (line,) = reader.get("/transcripts/notes.jsonl?tag=two").content.decode().splitlines()
    assert json.loads(line) | {"source": "bikes", "turn": None, "author": "rita"} == json.loads(line)
    assert len(reader.get("/transcripts/notes/?q=two").context["rows"]) == 1
    assert reader.get("/transcripts/notes.csv?tag=none").content.decode().count("\n") == 1


def test_erasing_a_person_takes_the_notes_on_their_games():
    game, other, reader = bought(6_500), bought(6_400), researcher()
    noted(reader, game.episode.public_id, note="She said the plover nests here.")
    noted(reader, other.episode.public_id, note="Another game.")
    erasure.erase(participant=game.people[B1])
    assert [row.note for row in Annotation.objects.all()] == ["Another game."]


def test_erasing_an_imported_party_takes_the_notes_on_its_dialogue(bikes):
    noted(researcher(), "bikes/C_1", note="Quoted.")
    pseudonym = ImportedParty.objects.filter(dialogue__key="C_1").first()
    assert pseudonym is not None
    erasure.erase_imported(pseudonym.pseudonym)
    assert not Annotation.objects.exists()


def test_erasing_an_author_takes_the_notes_they_wrote():
    game, reader = bought(6_500), researcher()
    noted(reader, game.episode.public_id)
    erasure.erase(participant=None, account=User.objects.get(username="rita"))
    assert not Annotation.objects.exists()


def test_a_disabled_account_is_no_researcher():
    user = User(username="x", is_staff=True, is_active=False)
    assert not access.is_researcher(user)
    assert not access.reads_corpora(user)
