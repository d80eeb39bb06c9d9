"""Reads: the newest version of a market, nothing of a stranger's, and a page of many rows for the price of a few queries."""

import pytest
from django.db import connection
from django.test.utils import CaptureQueriesContext

from markets import selectors, services
from markets.engine.protocol import SELLER
from markets.models import Episode, Market, Room, Seat
from tests.markets import rooms
from tests.markets.engine.factories import B1, B2, LEAVE, accept, bilateral, multi_buyer, offer, say
from tests.markets.rooms import staged
from tests.markets.tabs import browser

pytestmark = pytest.mark.django_db


def test_a_new_version_of_a_market_takes_the_old_ones_place():
    old = rooms.market("bilateral", slug="bench")
    rooms.market("bilateral", slug="other")
    new = Market.objects.get(pk=old.pk)
    new.pk, new.version, new.name = None, 2, "Bench, again"
    new.save()
    assert [(market.slug, market.version) for market in selectors.current_markets()] == [("other", 1), ("bench", 2)]
    assert selectors.market("bench").name == "Bench, again"
    assert selectors.market("nowhere") is None


def test_a_seat_is_found_for_its_person_alone():
    game = staged(bilateral(), people=(B1, SELLER))
    public_id = game.room.public_id
    assert selectors.seat_of(public_id=public_id, participant=game.people[B1]).party == B1
    assert selectors.seat_of(public_id=public_id, participant=rooms.person()) is None
    assert selectors.seat_of(public_id=public_id, participant=None) is None
    assert selectors.seat_of(public_id="nowhere", participant=game.people[B1]) is None


def test_the_view_of_a_seat_carries_no_scenario_and_no_words_of_others():
    game = staged(multi_buyer(), people=(SELLER, B1, B2))
    game.act(SELLER, offer(6_000, to=1, talk="For the first."))
    game.act(SELLER, offer(6_100, to=2, talk="For the second."))
    view = game.view(B1)
    assert list(view.talk.values()) == ["For the first."]
    assert "7200" not in repr(view)
    assert "6100" not in repr(view)
    assert sorted(game.view(SELLER).talk.values()) == ["For the first.", "For the second."]


def test_a_market_is_counted_over_live_games_and_simulations():
    game = staged(bilateral(), people=(B1, SELLER))
    game.act(B1, offer(6_000))
    game.act(SELLER, accept(1))
    other = staged(bilateral(), people=(B1,))
    other.act(B1, LEAVE)
    records = selectors.market_records()
    assert records == {game.room.market.slug: selectors.MarketRecord(episodes=2, with_deal=1)}


def test_the_newest_running_game_is_the_one_to_go_back_to():
    person = rooms.person()
    games = [staged(bilateral(), people=(B1,)) for _ in range(3)]
    for game in games:
        Seat.objects.filter(room=game.room, party=B1).update(participant=person)
    games[2].people[B1] = person
    games[2].act(B1, LEAVE)
    assert selectors.running_room(person).room_id == games[1].room.pk


# --- Queries ----------------------------------------------------------------------------------------


def test_a_move_takes_few_queries(django_assert_max_num_queries):
    game = staged(bilateral(), people=(B1, SELLER))
    seat, room = game.seat(B1), game.fresh()
    with django_assert_max_num_queries(14):
        services.submit_action(room=room, seat=seat, action=say(), client_move_id="m", seen_seq=0)


def test_a_room_page_takes_few_queries(django_assert_max_num_queries):
    game = staged(multi_buyer(openings=(2_700, 2_800, 2_900)), people=(SELLER,))
    client = browser(game.people[SELLER])
    with django_assert_max_num_queries(9):
        client.get(f"/rooms/{game.room.public_id}/")


def queries_of(job) -> int:
    with CaptureQueriesContext(connection) as captured:
        job()
    return len(captured)


@pytest.mark.parametrize("address", ["/lobby/", "/history/", "/markets/", "/"])
def test_a_list_of_many_takes_no_more_queries_than_a_list_of_one(address):
    person = rooms.person()
    client = browser(person)

    def more() -> None:
        waiting, over = staged(bilateral(), people=(B1, SELLER), start=False), staged(bilateral(), people=(B1,))
        over.act(B1, LEAVE)
        Seat.objects.filter(room__in=(waiting.room, over.room), party=B1).update(participant=person)
        rooms.market("bilateral", slug=f"bench-{Market.objects.count()}")

    more()
    client.get(address)
    one = queries_of(lambda: client.get(address))
    for _ in range(4):
        more()
    assert Room.objects.count() == 10
    assert Episode.objects.count() == 5
    assert queries_of(lambda: client.get(address)) == one
