"""The site's own pages: two clicks into a negotiation, an opponent who can be met, and a sentence for every mistake."""

import pytest
from django.core.management import call_command
from django.utils.html import escape

from agents import registry
from agents.base import Kind
from markets import services
from markets.engine.protocol import SELLER
from markets.engine.scenarios import decode_scenario
from markets.models import Market, Participant, Room, RoomStatus, Seat, SeatKind
from markets.presentation import CONSENT_VERSION
from tests.markets import rooms
from tests.markets.engine.factories import B1, B2, LEAVE, accept, bilateral, multi_buyer, offer
from tests.markets.rooms import Game, staged
from tests.markets.tabs import browser, faults

pytestmark = pytest.mark.django_db

SLUGS = {"bilateral": "demo-bilateral", "multi_buyer": "demo-multi-buyer", "catalogue": "demo-catalogue"}
EVERY_SEAT = pytest.mark.parametrize("seat", ["buyer", "seller"])
EVERY_FAMILY = pytest.mark.parametrize("family", SLUGS)


@pytest.fixture
def world() -> None:
    """The starter world, as `make run` seeds it, less its games."""
    call_command("seed_demo", "--bare", "--json")


def page(client, address: str, *, status: int = 200) -> str:
    response = client.get(address)
    assert response.status_code == status, address
    html = response.content.decode()
    assert faults(html) == [], address
    return html


def play(client, slug: str, **fields: str):
    return client.post(f"/markets/{slug}/play/", fields)


def refused(client, slug: str, sentence: str, **fields: str) -> None:
    """The seat is refused with a sentence on the market's page, and nothing was opened."""
    response = play(client, slug, **fields)
    html = response.content.decode()
    assert response.status_code == 400
    assert sentence in html
    assert faults(html) == []
    assert not Room.objects.exists()


# --- Reading ----------------------------------------------------------------------------------------


def test_every_page_of_the_site_is_whole_and_loads_nothing_from_elsewhere(world):
    client = browser()
    for address in ("/", "/markets/", "/lobby/", "/history/", "/agents/", "/glossary/", "/about/"):
        page(client, address)
    for market in Market.objects.all():
        assert market.name in page(client, f"/markets/{market.slug}/")


def test_a_site_without_a_world_still_shows_its_pages():
    client = browser()
    for address in ("/", "/markets/", "/lobby/", "/agents/", "/glossary/", "/about/"):
        page(client, address)


def test_a_page_that_is_not_there_says_so(world):
    client = browser()
    for address in ("/markets/nowhere/", "/nowhere/", "/rooms/nowhere/"):
        page(client, address, status=404)


def test_a_market_page_tells_the_rules_and_no_drawn_value(world):
    html = page(browser(), "/markets/demo-multi-buyer/")
    assert "The seller has 8 messages to spend over 3 buyers" in html
    assert "Only an offer and its acceptance bind." in html
    assert "There are 3 buyers, and each product has a stock of 1." in html


def test_the_agents_page_names_every_agent_with_its_source(world):
    html = page(browser(), "/agents/")
    for spec in registry.all_specs():
        assert all(escape(text) in html for text in (spec.title, spec.slug, spec.summary, spec.source)), spec.slug


def test_the_about_page_counts_what_is_there(world):
    html = page(browser(), "/about/")
    assert str(len(registry.all_specs())) in html
    assert str(Market.objects.count()) in html


# --- Taking a seat ----------------------------------------------------------------------------------


def test_a_visitor_is_in_a_negotiation_within_two_clicks(world):
    client = browser()
    html = page(client, "/")
    assert 'action="/markets/demo-bilateral/play/"' in html
    response = client.post("/markets/demo-bilateral/play/", {"seat": "buyer", "with": "agent"}, follow=True)
    assert response.status_code == 200
    assert "You are the buyer" in response.content.decode()
    assert Room.objects.get().status == RoomStatus.LIVE


def test_a_visitor_who_left_a_game_open_is_shown_the_way_back(world):
    client = browser()
    room_url = play(client, "demo-bilateral", seat="buyer").url
    assert f'href="{room_url}"' in page(client, "/")


@EVERY_SEAT
@EVERY_FAMILY
def test_a_seat_can_be_taken_in_every_family(world, family, seat):
    client = browser()
    response = play(client, SLUGS[family], seat=seat)
    assert response.status_code == 302
    room = Room.objects.get()
    assert response.url == f"/rooms/{room.public_id}/"
    assert f"You are the {seat}" in page(client, response.url)
    own = room.seats.get(kind=SeatKind.PERSON)
    assert (own.role, own.participant) == (seat, Participant.objects.get())
    assert set(room.seats.exclude(pk=own.pk).values_list("kind", flat=True)) == {"agent"}


@EVERY_SEAT
@EVERY_FAMILY
def test_every_opponent_that_is_offered_can_be_met(world, family, seat):
    client = browser()
    html = page(client, f"/markets/{SLUGS[family]}/")
    other = "seller" if seat == "buyer" else "buyer"
    offered = [spec for spec in registry.all_specs() if f'<option value="{spec.slug}"' in html]
    met = [spec for spec in offered if other in spec.roles and family in spec.families]
    assert len(met) >= 9
    for spec in met:
        assert play(client, SLUGS[family], seat=seat, **{f"opponent_{seat}": spec.slug}).status_code == 302, spec.slug
        seats = Room.objects.latest("pk").seats.filter(role=other)
        assert {seat.agent_slug for seat in seats} == {spec.slug}
        Room.objects.update(status=RoomStatus.ENDED)


def test_reference_policies_are_not_offered(world):
    for slug in SLUGS.values():
        assert 'value="oracle"' not in page(browser(), f"/markets/{slug}/")


def test_the_markets_own_mix_of_buyers_sits_down_where_nobody_was_chosen(world):
    play(browser(), "demo-multi-buyer", seat="seller")
    buyers = Room.objects.get().seats.filter(role="buyer").order_by("party")
    assert [seat.agent_slug for seat in buyers] == ["linear", "conceder", "tit-for-tat"]


def test_a_chosen_seller_does_not_change_who_the_other_buyers_are(world):
    play(browser(), "demo-multi-buyer", seat="buyer", opponent_buyer="one-pass")
    slugs = dict(Room.objects.get().seats.values_list("party", "agent_slug"))
    assert slugs == {SELLER: "one-pass", "buyer-1": "", "buyer-2": "conceder", "buyer-3": "tit-for-tat"}


@pytest.mark.parametrize(
    ("fields", "sentence"),
    [
        ({"seat": "king"}, "Choose the buyer&#x27;s or the seller&#x27;s seat."),
        ({"seat": ""}, "Choose the buyer&#x27;s or the seller&#x27;s seat."),
        ({"seat": "buyer", "opponent_buyer": "nobody"}, "There is no agent &#x27;nobody&#x27;."),
        ({"seat": "buyer", "opponent_buyer": "<script>"}, "There is no agent &#x27;&lt;script&gt;&#x27;."),
        ({"seat": "buyer", "opponent_buyer": "\0"}, "There is no agent"),
        ({"seat": "buyer", "opponent_buyer": "threshold"}, "Threshold buyer does not play seller"),
        ({"seat": "seller", "opponent_seller": "optimal-ladder"}, "Optimal ladder does not play buyer"),
        ({"seat": "buyer", "opponent_buyer": "greedy"}, "Greedy seller does not play seller"),
        ({"seat": "buyer", "opponent_buyer": "oracle"}, "Oracle knows both values and cannot be played against."),
    ],
    ids=lambda value: "-".join(value.values()) if isinstance(value, dict) else "",
)
def test_a_seat_that_cannot_be_had_is_refused_with_a_sentence(world, fields, sentence):
    refused(browser(), "demo-bilateral", sentence, **fields)


def test_an_unknown_market_has_no_seats(world):
    assert play(browser(), "nowhere", seat="buyer").status_code == 404


def test_too_many_open_games_are_refused_with_a_sentence(world, monkeypatch):
    monkeypatch.setattr(services, "MAX_OPEN_ROOMS", 1)
    client = browser()
    play(client, "demo-bilateral", seat="buyer")
    response = play(client, "demo-bilateral", seat="buyer")
    assert response.status_code == 400
    assert "You have 1 negotiations going." in response.content.decode()
    assert Room.objects.count() == 1


def test_a_seat_is_taken_by_post_alone(world):
    assert browser().get("/markets/demo-bilateral/play/").status_code == 405
    assert browser(enforce_csrf_checks=True).post("/markets/demo-bilateral/play/", {"seat": "buyer"}).status_code == 403
    assert not Room.objects.exists()


@EVERY_SEAT
@EVERY_FAMILY
def test_a_seat_can_be_kept_for_a_person(world, family, seat):
    host, guest = browser(), browser()
    room_url = play(host, SLUGS[family], seat=seat, **{"with": "person"}).url
    room = Room.objects.get()
    assert room.status == RoomStatus.WAITING
    kept = room.seats.get(kind=SeatKind.OPEN)
    assert kept.party == (SELLER if seat == "buyer" else B1)
    address = f"/rooms/{room.public_id}/join/{kept.join_token}/"
    assert address in page(host, room_url)
    assert address in page(browser(), "/lobby/")
    guest.post(address)
    assert Room.objects.get().status == RoomStatus.LIVE
    assert "You are the " + ("seller" if seat == "buyer" else "buyer") in page(guest, room_url)


def test_two_visitors_are_two_people(world):
    for client in (browser(), browser()):
        play(client, "demo-bilateral", seat="buyer")
        play(client, "demo-bilateral", seat="buyer")
    assert Participant.objects.count() == 2
    assert len(set(Participant.objects.values_list("pseudonym", flat=True))) == 2


def test_a_choice_made_once_is_made_for_the_next_game_too(world):
    client = browser()
    first = play(client, "demo-bilateral", seat="buyer").url
    assert Seat.objects.get(kind=SeatKind.PERSON).consent_scope == ""
    client.post(f"{first}consent/", {"scope": "research", "version": CONSENT_VERSION})
    play(client, "demo-bilateral", seat="buyer")
    newest = Seat.objects.filter(kind=SeatKind.PERSON).latest("pk")
    assert (newest.consent_scope, newest.consent_version) == ("research", CONSENT_VERSION)


# --- Rematch ----------------------------------------------------------------------------------------


def over(game: Game) -> Game:
    game.act(next(iter(game.people)), LEAVE)
    return game


def again(game: Game, party: str, *, swap: bool) -> Room:
    response = browser(game.people[party]).post(
        f"/rooms/{game.room.public_id}/rematch/", {"swap": "1" if swap else "0"}
    )
    room = Room.objects.latest("pk")
    assert response.url == f"/rooms/{room.public_id}/"
    assert room.pk != game.room.pk
    assert room.rematch_of_id == game.room.pk
    return room


def test_a_rematch_swaps_the_roles_and_draws_anew():
    game = over(staged(bilateral(), people=(B1,), agents="boulware"))
    room = again(game, B1, swap=True)
    own = room.seats.get(participant=game.people[B1])
    assert own.party == SELLER
    assert room.seats.get(party=B1).agent_slug == "boulware"
    assert decode_scenario(room.scenario).seed != game.scenario.seed


def test_the_same_again_keeps_the_seat():
    game = over(staged(bilateral(), people=(B1,), agents="boulware"))
    room = again(game, B1, swap=False)
    assert room.seats.get(participant=game.people[B1]).party == B1
    assert room.seats.get(party=SELLER).agent_slug == "boulware"


def test_an_agent_that_cannot_play_the_other_side_gives_way_to_the_markets_own():
    game = over(staged(bilateral(), people=(SELLER,), agents="threshold"))
    room = again(game, SELLER, swap=True)
    assert room.seats.get(party=SELLER).agent_slug == "linear"


def test_a_rematch_against_a_person_waits_for_a_person():
    game = staged(bilateral(), people=(B1, SELLER))
    game.act(B1, offer(6_000))
    game.act(SELLER, accept(1))
    room = again(game, SELLER, swap=True)
    assert room.status == RoomStatus.WAITING
    assert room.seats.get(kind=SeatKind.OPEN).party == SELLER
    assert room.seats.get(participant=game.people[SELLER]).party == B1


def test_a_buyer_among_several_can_have_a_rematch_as_the_seller():
    game = staged(multi_buyer(), people=(SELLER, B1, B2))
    game.act(SELLER, LEAVE)
    for swap, party in ((True, SELLER), (False, B1)):
        room = again(game, B2, swap=swap)
        assert room.seats.get(participant=game.people[B2]).party == party


def test_a_game_that_is_going_has_no_rematch():
    game = staged(bilateral(), people=(B1,))
    response = browser(game.people[B1]).post(f"/rooms/{game.room.public_id}/rematch/", {"swap": "1"})
    assert response.url == f"/rooms/{game.room.public_id}/"
    assert Room.objects.count() == 1


def test_nobody_gets_a_rematch_of_a_strangers_game():
    game = over(staged(bilateral(), people=(B1,)))
    for client in (browser(), browser(rooms.person())):
        assert client.post(f"/rooms/{game.room.public_id}/rematch/", {"swap": "1"}).status_code == 404
    assert Room.objects.count() == 1


def test_a_rematch_beyond_what_one_may_have_open_is_refused_with_a_sentence(monkeypatch):
    game = over(staged(bilateral(), people=(B1,)))
    monkeypatch.setattr(services, "MAX_OPEN_ROOMS", 0)
    response = browser(game.people[B1]).post(f"/rooms/{game.room.public_id}/rematch/", {"swap": "1"})
    assert response.status_code == 400
    assert "negotiations going" in response.content.decode()
    assert kinds_of_rooms() == [RoomStatus.ENDED]


def kinds_of_rooms() -> list[str]:
    return list(Room.objects.values_list("status", flat=True))


def test_no_opponent_is_a_reference_policy(world):
    references = {spec.slug for spec in registry.all_specs() if spec.kind is Kind.REFERENCE}
    named = {slug for market in Market.objects.all() for slug in (market.seller_agent, *market.buyer_agents.split(","))}
    assert not named & references
