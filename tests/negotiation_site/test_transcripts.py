"""Transcripts for anybody: complete for what is open data, and nothing at all for everything else."""

import pytest
from django.test import Client

from markets.models import Episode, EpisodeText
from tests.markets import rooms
from tests.markets.engine.factories import B1, B2, LEAVE, SELLER, accept, bilateral, catalogue, offer, reject, say
from tests.markets.rooms import staged
from tests.negotiation_site.leaderboard.records import bought, stored, walked
from tests.negotiation_site.leaderboard.test_pages import text

pytestmark = pytest.mark.django_db


def address(episode: Episode) -> str:
    return f"/episodes/{episode.public_id}/"


@pytest.mark.parametrize("consent", ["private", "research", ""])
def test_a_stranger_is_told_that_there_is_nothing(client: Client, consent: str):
    game = staged(bilateral(), people=(B1,), consent=consent, agents="linear")
    if consent:
        game.act(B1, offer(4_321, talk="My secret reason."))
    game.act(B1, LEAVE)
    response = client.get(address(game.episode))
    assert response.status_code == 404
    body = response.content.decode()
    assert "My secret reason" not in body
    assert "43.21" not in body


def test_one_person_who_keeps_a_game_keeps_it_for_everybody_in_it(client: Client):
    game = bought(6_500)
    assert client.get(address(game.episode)).status_code == 200
    rooms.agree(game, SELLER, "research")
    assert client.get(address(game.episode)).status_code == 404


def test_a_room_in_play_has_no_transcript(client: Client):
    game = staged(bilateral(), people=(B1,), agents="linear")
    game.act(B1, offer(4_000))
    assert client.get(f"/episodes/{game.room.public_id}/").status_code == 404
    assert client.get("/episodes/never-existed/").status_code == 404


def test_an_open_game_is_told_from_the_first_word_to_the_last(client: Client):
    game = staged(bilateral(), people=(B1, SELLER))
    game.act(B1, offer(4_000, talk="Forty, for a <b>friend</b>?"))
    game.act(SELLER, say("Too little."))
    game.act(B1, offer(6_500))
    game.act(SELLER, accept(2))
    response = client.get(address(game.episode))
    words = text(response)
    for line in (
        "Sold at $65.00.",
        "A game of people",
        "Forty, for a <b>friend</b>?",
        "Too little.",
        "$40.00",
        "Seller accepted: a deal at $65.00.",
        "That was the end.",
        "seller's cost",
        "$50.00",
        "buyer's value",
        "$80.00",
        "gained $15.00",
        "50 % of what it could share in",
    ):
        assert line in words, line
    assert "<b>friend</b>" not in response.content.decode()
    assert words.index("Forty") < words.index("Too little") < words.index("accepted")


def test_a_person_has_no_name_in_it(client: Client):
    game = bought(6_500)
    body = client.get(address(game.episode)).content.decode()
    for person in game.people.values():
        assert person.pseudonym not in body
    assert "a person" in body


def test_thoughts_are_not_told(client: Client):
    (episode,) = stored(rooms.market(), seller="linear")
    EpisodeText.objects.create(episode=episode, n=1, party="seller", talk="Hello.", thought="They look rich.")
    words = text(client.get(address(episode)))
    assert "Hello." in words
    assert "They look rich." not in words


def test_several_buyers_and_products_are_told_apart(client: Client):
    game = staged(catalogue(), people=(SELLER, B1, B2))
    game.act(SELLER, offer(7_000, to=1))
    game.act(B1, accept(1))
    game.act(SELLER, offer(9_000, to=2, product=1))
    game.act(B2, reject(1))
    game.act(SELLER, LEAVE)
    words = text(client.get(address(game.episode)))
    assert "Seller to Buyer A" in words
    assert "Seller to Buyer B" in words
    assert "Buyer B turned the offer down." in words
    assert "Buyer A accepted: a deal at $70.00." in words
    assert "Thing 1" in words


def test_walking_away_from_nothing_is_called_right(client: Client):
    game = walked(value=4_000)
    assert "No deal, and rightly" in text(client.get(address(game.episode)))
    assert "There was $30.00 to share" in text(client.get(address(walked().episode)))


def test_an_agent_in_it_leads_to_its_page(client: Client):
    (episode,) = stored(rooms.market(), seller="linear", buyers="boulware")
    body = client.get(address(episode)).content.decode()
    assert 'href="/agents/linear/"' in body
    assert 'href="/agents/boulware/"' in body
    assert "A simulation" in body
