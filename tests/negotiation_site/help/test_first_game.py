"""The guided first negotiation: a newcomer finds it, plays a real game in it, and is told nothing they may not know."""

from io import StringIO

import pytest
from django.core.management import call_command
from django.urls import reverse

from markets import identity, services
from markets.engine.money import format_amount
from markets.engine.protocol import Leave, buyer_party
from markets.engine.scenarios import decode_scenario
from markets.models import Participant, Room, Seat
from markets.selectors import market
from negotiation_site.help import first_game
from negotiation_site.starter.markets import FIRST
from tests.markets.tabs import browser, faults

pytestmark = pytest.mark.django_db


@pytest.fixture
def world() -> None:
    call_command("seed_demo", "--bare", stdout=StringIO())


def begun(client) -> Room:
    response = client.post(reverse("first-game"))
    assert response.status_code == 302
    return Room.objects.get(public_id=response["Location"].split("/")[2])


def leave(room: Room) -> None:
    seat = Seat.objects.select_related("room__market", "participant").get(room=room, party=buyer_party(1))
    services.submit_action(room=room, seat=seat, action=Leave(), client_move_id="x" * 16, seen_seq=None)


def test_a_newcomer_is_offered_hints_until_a_game_is_over_and_finds_them_again_in_the_help(world) -> None:
    client = browser()
    assert 'data-testid="first-game"' in client.get("/").content.decode()
    leave(begun(client))
    assert 'data-testid="first-game"' not in client.get("/").content.decode()
    assert "Play it again, with the hints" in client.get(reverse("help")).content.decode()
    assert begun(client).status == "live"


def test_the_room_is_a_real_one_with_hints_that_name_the_own_value_and_never_the_sellers(world) -> None:
    client = browser()
    room = begun(client)
    html = client.get(f"/rooms/{room.public_id}/").content.decode()
    scenario = decode_scenario(room.scenario)
    assert "data-guide" in html
    assert faults(html) == []
    assert format_amount(scenario.buyer_values_cents[0][0], scenario.currency) in html
    assert format_amount(scenario.seller_values_cents[0], scenario.currency) not in html
    assert room.seats.get(party="seller").agent_slug == first_game.SELLER_AGENT


def test_pressing_twice_leads_back_into_the_same_room(world) -> None:
    client = browser()
    assert begun(client) == begun(client)
    assert Participant.objects.count() == 1


def test_no_other_room_has_hints(world) -> None:
    client = browser()
    where = client.post(reverse("play", args=["demo-bilateral"]), {"seat": "buyer"})["Location"]
    assert "data-guide" not in client.get(where).content.decode()


def test_every_game_has_something_to_share(world) -> None:
    there = market(FIRST)
    assert there is not None
    for seed in range(60):
        scenario = services.draw_scenario(there, seed)
        assert scenario.buyer_values_cents[0][0] > scenario.seller_values_cents[0] * 11 // 10


def test_a_site_without_the_starter_world_offers_none() -> None:
    client = browser()
    assert 'data-testid="first-game"' not in client.get("/").content.decode()
    assert client.get(reverse("help")).status_code == 200
    assert client.post(reverse("first-game")).status_code == 404


def test_whoever_has_played_elsewhere_is_no_newcomer(world) -> None:
    client = browser()
    where = client.post(reverse("play", args=["demo-bilateral"]), {"seat": "buyer"})["Location"]
    leave(Room.objects.get(public_id=where.split("/")[2]))
    person = identity.participant_of(client.session)
    assert first_game.has_played(person)
    assert 'data-testid="first-game"' not in client.get("/").content.decode()
