"""Two browsers, two tabs, two workers at the same moment: one of them wins, nothing is lost and nothing is doubled."""

import threading

import pytest

from agents import turns
from markets import episodes, services
from markets.engine.protocol import SELLER, IllegalAction, Role
from markets.models import AgentTurn, Episode, Room, RoomEvent, RoomStatus, Seat, SeatKind, TurnState
from markets.services import Accepted, RoomError
from tests.markets import rooms
from tests.markets.engine.factories import B1, B2, B3, LEAVE, accept, bilateral, multi_buyer, offer, say
from tests.markets.rooms import staged, together

pytestmark = pytest.mark.django_db(transaction=True)


def test_a_double_click_that_reaches_two_processes_is_one_move_and_both_are_told_so():
    game = staged(bilateral(), people=(B1, SELLER))
    for round_number in range(3):
        party = (B1, SELLER)[round_number % 2]
        results = together(*[lambda party=party, n=round_number: game.act(party, say("Twice"), move=f"m{n}")] * 3)
        assert all(isinstance(result, Accepted) for result in results), results
        assert sorted(result.repeated for result in results) == [False, True, True]
        assert {result.version for result in results} == {round_number + 1}
    assert game.kinds == ["message_sent"] * 3


def test_rooms_asked_for_together_count_together(monkeypatch):
    monkeypatch.setattr(services, "MAX_OPEN_ROOMS", 2)
    host, market = rooms.person(), rooms.market("bilateral")

    def open_one() -> Room:
        return services.open_room(
            market=market, host=host, role=Role.BUYER, agents={SELLER: rooms.agent("linear")}, seed=1
        )

    results = together(*[open_one] * 5)
    assert sorted(type(result).__name__ for result in results) == ["Room"] * 2 + ["RoomError"] * 3, results
    assert Room.objects.count() == 2


def test_a_room_that_is_given_up_while_somebody_sits_down_has_one_outcome():
    game = staged(bilateral(), people=(B1, SELLER), start=False)
    host, token, guest = game.seat(B1), game.seat(SELLER).join_token, rooms.person()
    results = together(
        lambda: services.cancel_room(seat=host),
        lambda: services.join_room(room=game.room, token=token, participant=guest),
    )
    refused = [result for result in results if isinstance(result, RoomError)]
    assert len(refused) == 1
    assert Room.objects.filter(status=RoomStatus.LIVE).count() == (0 if refused[0].code == "room_gone" else 1)


def test_a_double_click_on_a_last_word_is_one_end():
    game = staged(bilateral(), people=(B1, SELLER))
    results = together(*[lambda: game.act(B1, LEAVE, move="bye")] * 3)
    assert all(isinstance(result, Accepted) for result in results), results
    assert Episode.objects.count() == 1


def test_of_two_different_moves_from_two_tabs_one_counts():
    game = staged(bilateral(), people=(B1, SELLER))
    results = together(*(lambda price=price: game.act(B1, offer(price), seen=0) for price in (5_100, 5_200, 5_300)))
    accepted = [result for result in results if isinstance(result, Accepted)]
    refused = [result for result in results if isinstance(result, IllegalAction | RoomError)]
    assert (len(accepted), len(refused)) == (1, 2), results
    assert RoomEvent.objects.count() == 1


def test_two_people_who_accept_the_last_unit_at_once_do_not_both_get_it():
    game = staged(multi_buyer(), people=(SELLER, B1, B2), agents="threshold")
    game.act(SELLER, offer(4_500, to=1))
    game.act(SELLER, offer(4_600, to=2))
    results = together(lambda: game.act(B1, accept(1)), lambda: game.act(B2, accept(1)))
    (refused,) = [result for result in results if not isinstance(result, Accepted)]
    assert isinstance(refused, IllegalAction)
    assert refused.code == "sold_out"
    assert game.kinds.count("offer_accepted") == 1
    assert game.fresh().version == RoomEvent.objects.count()


def test_two_people_racing_for_a_seat_do_not_both_sit_down():
    game = staged(bilateral(), people=(B1, SELLER), start=False)
    token, guests = game.seat(SELLER).join_token, [rooms.person() for _ in range(3)]
    results = together(
        *(lambda guest=guest: services.join_room(room=game.fresh(), token=token, participant=guest) for guest in guests)
    )
    (winner,) = [result for result in results if isinstance(result, Seat)]
    assert {result.code for result in results if isinstance(result, RoomError)} == {"seat_taken"}
    assert game.seat(SELLER).participant_id == winner.participant_id
    assert game.fresh().status == RoomStatus.LIVE


def test_a_guest_and_an_agent_who_come_at_once_do_not_share_a_seat():
    game = staged(bilateral(opener=Role.SELLER), people=(B1, SELLER), start=False)
    token, guest = game.seat(SELLER).join_token, rooms.person()
    results = together(
        lambda: services.join_room(room=game.fresh(), token=token, participant=guest),
        lambda: services.fill_open_seats(game.fresh()),
    )
    seat = game.seat(SELLER)
    assert (seat.kind == SeatKind.PERSON) == (seat.participant == guest)
    assert AgentTurn.objects.count() == (seat.kind == SeatKind.AGENT)
    assert results[1] is (seat.kind == SeatKind.AGENT)
    assert game.fresh().status == RoomStatus.LIVE


def test_several_clocks_end_a_silent_game_once():
    game = staged(bilateral(), people=(B1, SELLER))
    deadline = game.seat(B1).deadline_at
    results = together(*[lambda: services.sweep(deadline)] * 3)
    assert sorted(results) == [0, 0, 1]
    assert game.kinds == ["deadline_passed", "party_left", "negotiation_ended"]
    assert Episode.objects.count() == 1


def test_several_clocks_fill_an_empty_seat_once():
    game = staged(bilateral(opener=Role.SELLER), people=(B1, SELLER), start=False)
    fills_at = game.fresh().fills_at
    assert sorted(together(*[lambda: services.sweep(fills_at)] * 3)) == [0, 0, 1]
    assert AgentTurn.objects.count() == 1


def test_a_mind_changed_in_the_moment_of_the_last_move_is_in_the_record(monkeypatch):
    game = staged(bilateral(), people=(B1, SELLER), consent="public")
    being_written, changed = threading.Event(), threading.Event()
    write = episodes.record_room

    def write_slowly(*args, **kwargs):
        episode = write(*args, **kwargs)
        being_written.set()
        changed.wait(timeout=0.3)
        return episode

    def change():
        being_written.wait(timeout=10)
        rooms.agree(game, SELLER, "private")
        changed.set()

    monkeypatch.setattr(episodes, "record_room", write_slowly)
    together(lambda: game.act(B1, LEAVE), change)
    assert game.seat(SELLER).consent_scope == "private"
    assert game.episode.consent_scope == "private"


def test_rooms_do_not_stand_in_each_others_way():
    games = [staged(bilateral(), people=(B1, SELLER)) for _ in range(4)]
    results = together(*(lambda game=game: game.act(B1, offer(6_000)) for game in games))
    assert [result.version for result in results] == [1] * 4


def test_several_buyers_answer_at_once_and_none_is_cancelled():
    game = staged(multi_buyer(), people=(SELLER,), agents="threshold")
    for buyer in (1, 2, 3):
        game.act(SELLER, offer(20_000, to=buyer))
    results = together(*(lambda turn=turn: turns.take_turn(turn_id=turn.pk) for turn in game.queued()))
    assert results == [TurnState.DONE] * 3
    assert [thread.buyer_messages for thread in game.state.threads] == [1, 1, 1]
    assert {B1, B2, B3} == set(AgentTurn.objects.values_list("party", flat=True))
    assert Room.objects.get().version == RoomEvent.objects.count() == 6
