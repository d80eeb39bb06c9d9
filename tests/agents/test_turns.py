"""An agent answers once, whatever happens to its worker, to the broker or to the game while it thinks."""

import logging
from collections.abc import Iterator
from datetime import timedelta

import msgspec
import pytest
from django.utils import timezone
from kombu.exceptions import OperationalError
from redis.exceptions import ConnectionError as RedisConnectionError

from agents import apps, registry, tasks, turns
from markets import services
from markets.engine.protocol import SELLER, AcceptOffer, MakeOffer, RejectOffer, Role, Say
from markets.models import AgentTurn, Episode, RoomEvent, RoomStatus, TurnState, Utterance
from markets.signals import turn_due
from tests.markets.engine.factories import B1, B2, LEAVE, accept, bilateral, event_driven, multi_buyer, offer, say
from tests.markets.rooms import Game, staged, together

pytestmark = pytest.mark.django_db


@pytest.fixture
def announced() -> Iterator[list[int]]:
    """Identifiers of the turns that workers were told of."""
    told: list[int] = []

    def hear(*, turn_id: int, **_: object) -> None:
        told.append(turn_id)

    turn_due.connect(hear)
    yield told
    turn_due.disconnect(hear)


def waiting_for_the_seller(**how) -> Game:
    """A buyer has offered $60 to a seller with a cost of $50; the seller's agent owes an answer."""
    game = staged(bilateral(), people=(B1,), **how)
    game.act(B1, offer(6_000, talk="Sixty?"))
    return game


def the_turn(game: Game) -> AgentTurn:
    return AgentTurn.objects.select_related("room__market").get(room=game.room)


def held(game: Game, *, owner: str = "somebody", lease: timedelta = timedelta(seconds=10), attempts: int = 1):
    """The one turn of the game, as a worker holds it."""
    AgentTurn.objects.filter(room=game.room).update(
        state=TurnState.RUNNING, owner=owner, lease_until=timezone.now() + lease, attempts=attempts
    )
    return the_turn(game)


# --- One answer -------------------------------------------------------------------------------------


def test_an_agent_answers_with_a_move_and_words():
    game = waiting_for_the_seller()
    assert turns.take_turn(turn_id=the_turn(game).pk) == TurnState.DONE
    assert RoomEvent.objects.filter(n=2, party=SELLER).exists()
    assert Utterance.objects.get(n=2).talk
    turn = the_turn(game)
    assert (turn.state, turn.attempts, turn.position) == (TurnState.DONE, 1, 1)
    assert game.seat(B1).due_position is not None


def test_the_task_plays_the_turn_it_names():
    game = waiting_for_the_seller()
    tasks.take_turn(turn_id=the_turn(game).pk)
    assert the_turn(game).state == TurnState.DONE


def test_a_turn_that_is_announced_twice_is_played_once():
    game = waiting_for_the_seller()
    turn = the_turn(game)
    assert turns.take_turn(turn_id=turn.pk) == TurnState.DONE
    assert turns.take_turn(turn_id=turn.pk) is None
    assert game.fresh().version == 2


def test_a_turn_that_does_not_exist_is_nobodys():
    assert turns.take_turn(turn_id=4_711) is None


@pytest.mark.django_db(transaction=True)
def test_of_several_workers_that_are_told_one_answers():
    game = waiting_for_the_seller()
    turn = the_turn(game)
    results = together(*[lambda: turns.take_turn(turn_id=turn.pk)] * 3)
    assert sorted(results, key=str) == [None, None, TurnState.DONE]
    assert RoomEvent.objects.filter(party=SELLER).exists()
    assert game.seat(B1).due_position is not None or game.fresh().status == RoomStatus.ENDED
    assert the_turn(game).attempts == 1


def test_the_same_game_gets_the_same_answers_in_any_process():
    first, again = (waiting_for_the_seller() for _ in range(2))
    for game in (first, again):
        game.let_agents_play()
    events = [list(RoomEvent.objects.filter(room=game.room).values_list("event", flat=True)) for game in (first, again)]
    assert events[0] == events[1]


# --- Leases -----------------------------------------------------------------------------------------


def test_a_turn_in_the_hands_of_a_worker_is_left_alone():
    game = waiting_for_the_seller()
    turn = held(game)
    assert turns.take_turn(turn_id=turn.pk) is None
    assert turns.sweep(timezone.now()) == 0
    assert the_turn(game).owner == "somebody"


def test_a_dead_workers_turn_is_taken_again():
    game = waiting_for_the_seller()
    turn = held(game, lease=timedelta(seconds=-1))
    assert turns.take_turn(turn_id=turn.pk) == TurnState.DONE
    assert the_turn(game).attempts == 2
    assert game.fresh().version == 2


def test_a_worker_that_was_thought_dead_comes_too_late_with_its_answer():
    game = waiting_for_the_seller()
    slow = held(game, owner="slow", lease=timedelta(seconds=-1))
    turns.take_turn(turn_id=slow.pk)
    late = services.submit_agent_action(turn=slow, owner="slow", action=MakeOffer(price_cents=9_900))
    assert late == TurnState.SUPERSEDED
    assert the_turn(game).state == TurnState.DONE
    assert game.fresh().version == 2


def test_giving_a_turn_back_needs_the_turn():
    game = waiting_for_the_seller()
    turn = held(game, owner="slow")
    services.supersede_turn(turn=turn, owner="other")
    assert the_turn(game).state == TurnState.RUNNING
    services.supersede_turn(turn=turn, owner="slow")
    assert the_turn(game).state == TurnState.SUPERSEDED


# --- Default acts -----------------------------------------------------------------------------------


def test_past_its_deadline_an_agents_default_act_is_played_and_the_log_says_why():
    game = waiting_for_the_seller()
    turn = the_turn(game)
    assert turns.sweep(turn.due_at) == 1
    assert game.kinds == ["offer_made", "deadline_passed", "offer_rejected"]
    turn = the_turn(game)
    assert turn.state == TurnState.DEFAULTED
    assert "deadline" in turn.error
    assert turns.sweep(turn.due_at) == 0
    assert game.seat(B1).due_position is not None


def test_a_turn_past_its_deadline_is_not_thought_about_any_more():
    game = waiting_for_the_seller()
    turn = the_turn(game)
    assert turns.take_turn(turn_id=turn.pk, now=turn.due_at) is None
    assert game.fresh().version == 1


def test_after_three_attempts_the_default_act_is_played():
    game = waiting_for_the_seller()
    turn = held(game, lease=timedelta(seconds=-1), attempts=turns.MAX_ATTEMPTS)
    assert turns.take_turn(turn_id=turn.pk) is None
    assert turns.sweep(timezone.now()) == 1
    assert the_turn(game).state == TurnState.DEFAULTED
    assert "3 attempts" in the_turn(game).error
    assert game.kinds[1] == "deadline_passed"


def test_a_default_act_binds_nobody_even_with_nothing_to_turn_down():
    game = staged(bilateral(opener=Role.SELLER), people=(B1,))
    turns.sweep(the_turn(game).due_at)
    assert game.kinds == ["deadline_passed", "message_sent"]
    assert Utterance.objects.get().talk
    assert game.act(B1, say("Take your time.")).version == 3


def test_a_default_act_of_one_buyer_leaves_the_others_alone():
    game = staged(multi_buyer(), people=(SELLER,), agents="threshold")
    game.act(SELLER, offer(20_000, to=1))
    game.act(SELLER, offer(20_000, to=2))
    first, second = game.queued()
    services.play_default_act(turn=first, choose=lambda state: RejectOffer(offer_id=1, buyer=1), reason="late")
    assert turns.take_turn(turn_id=second.pk) == TurnState.DONE
    assert [thread.buyer_messages for thread in game.state.threads] == [1, 1, 0]


def test_a_default_act_comes_too_late_for_a_turn_that_was_played():
    game = waiting_for_the_seller()
    turn = the_turn(game)
    turns.take_turn(turn_id=turn.pk)
    late = services.play_default_act(turn=turn, choose=lambda state: RejectOffer(offer_id=1), reason="late")
    assert late == TurnState.SUPERSEDED
    assert the_turn(game).state == TurnState.DONE
    assert game.fresh().version == 2


@pytest.mark.django_db(transaction=True)
def test_several_clocks_play_a_default_act_once():
    game = waiting_for_the_seller()
    due_at = the_turn(game).due_at
    together(*[lambda: turns.sweep(due_at)] * 3)
    assert game.kinds == ["offer_made", "deadline_passed", "offer_rejected"]


# --- The game went on -------------------------------------------------------------------------------


def test_a_person_who_leaves_while_the_agent_thinks_gets_no_answer():
    game = waiting_for_the_seller()
    turn = held(game, owner="thinking")
    game.act(B1, LEAVE)
    assert services.submit_agent_action(turn=turn, owner="thinking", action=AcceptOffer(offer_id=1)) == "superseded"
    assert game.kinds == ["offer_made", "party_left", "negotiation_ended"]
    assert the_turn(game).state == TurnState.SUPERSEDED
    assert Episode.objects.get().deals == 0


def test_a_seller_whose_table_changed_thinks_again():
    """Buyer 1 walks off while the seller considers whom to write to."""
    game = staged(multi_buyer(), people=(B1,), agents="falling-ladder")
    turn = held(game, owner="thinking")
    game.act(B1, LEAVE)
    stale = services.submit_agent_action(turn=turn, owner="thinking", action=MakeOffer(price_cents=9_000, buyer=1))
    assert stale == TurnState.SUPERSEDED
    (again,) = game.queued()
    assert (again.party, again.pk) != (SELLER, turn.pk)
    assert turns.take_turn(turn_id=again.pk) == TurnState.DONE
    assert game.state.threads[0].status == "left"
    assert game.state.turns_used == 1


def test_two_buyers_who_thought_at_the_same_time_both_answer():
    game = staged(multi_buyer(), people=(SELLER,), agents="threshold")
    game.act(SELLER, offer(20_000, to=1))
    game.act(SELLER, offer(20_000, to=2))
    first, second = game.queued()
    for turn in (first, second):
        AgentTurn.objects.filter(pk=turn.pk).update(
            state=TurnState.RUNNING, owner=turn.party, lease_until=timezone.now() + turns.LEASE
        )
    answers = {
        turn.party: turns.think(game.state, turn.party, registry.get("threshold"))[0] for turn in (first, second)
    }
    results = [
        services.submit_agent_action(turn=turn, owner=turn.party, action=answers[turn.party])
        for turn in (second, first)
    ]
    assert results == [TurnState.DONE, TurnState.DONE]
    assert {seat.party for seat in game.room.seats.exclude(due_position=None)} == {SELLER}


def test_an_answer_about_goods_that_were_sold_meanwhile_is_dropped():
    game = staged(multi_buyer(), people=(SELLER, B1), agents="threshold")
    game.act(SELLER, offer(6_000, to=3))
    turn = held(game, owner="thinking")
    game.act(SELLER, offer(4_500, to=1))
    game.act(B1, accept(1))
    assert services.submit_agent_action(turn=turn, owner="thinking", action=AcceptOffer(offer_id=1)) == "superseded"
    assert Episode.objects.get().deals == 1


def test_a_stale_turn_that_is_taken_up_is_put_away():
    game = waiting_for_the_seller()
    turn = the_turn(game)
    game.act(B1, LEAVE)
    assert turns.take_turn(turn_id=turn.pk) == TurnState.SUPERSEDED
    assert game.fresh().version == 3


# --- Broken moves -----------------------------------------------------------------------------------


def test_an_agents_broken_move_is_in_the_log_and_costs_its_turn():
    game = waiting_for_the_seller()
    turn = held(game, owner="me")
    action = MakeOffer(price_cents=0, talk="Nothing!", thought="Let us see.")
    assert services.submit_agent_action(turn=turn, owner="me", action=action) == TurnState.DONE
    assert game.kinds == ["offer_made", "move_refused"]
    assert '"price_out_of_range"' in RoomEvent.objects.get(n=2).event
    assert (Utterance.objects.get(n=2).talk, Utterance.objects.get(n=2).thought) == ("", "Let us see.")
    assert game.seat(B1).due_position is not None


def test_a_seller_who_writes_to_nobody_loses_a_turn_and_gets_another():
    game = staged(multi_buyer(), people=(B1,), agents="falling-ladder")
    turn = held(game, owner="me")
    services.submit_agent_action(turn=turn, owner="me", action=Say(talk="Hello?", buyer=9))
    assert game.kinds == ["move_refused"]
    assert game.state.turns_used == 1
    assert [turn.party for turn in game.queued()] == [SELLER]


class Broken:
    """An agent with a fault."""

    def act(self, turn: object) -> None:
        raise ZeroDivisionError("division by zero")


def test_an_agent_with_a_fault_is_tried_again_and_then_defaulted(monkeypatch):
    broken = msgspec.structs.replace(registry.get("linear"), build=Broken)
    monkeypatch.setitem(registry._BY_SLUG, "linear", broken)
    game = waiting_for_the_seller()
    turn = the_turn(game)
    for attempt in (1, 2, 3):
        with pytest.raises(ZeroDivisionError):
            turns.take_turn(turn_id=turn.pk)
        assert the_turn(game).attempts == attempt
    assert turns.sweep(timezone.now()) == 1
    assert game.kinds == ["offer_made", "deadline_passed", "offer_rejected"]
    assert "division by zero" in the_turn(game).error


# --- Announcing -------------------------------------------------------------------------------------


@pytest.mark.django_db(transaction=True)
def test_workers_are_told_of_a_turn_once_it_is_stored(announced):
    game = waiting_for_the_seller()
    assert announced == [the_turn(game).pk]


@pytest.mark.parametrize("failure", [OperationalError("no broker"), RedisConnectionError(), ConnectionRefusedError()])
def test_a_broker_that_is_down_loses_nothing(failure, monkeypatch, caplog, announced):
    def fail(*args, **kwargs):
        raise failure

    monkeypatch.setattr(tasks.take_turn, "apply_async", fail)
    game = waiting_for_the_seller()
    turn = the_turn(game)
    with caplog.at_level(logging.WARNING):
        apps.enqueue_turn(turn_id=turn.pk)
    assert "was not announced" in caplog.text
    assert turns.sweep(turn.created_at + timedelta(seconds=1)) == 0
    assert announced == []
    assert turns.sweep(turn.created_at + turns.RETRY_QUEUED_AFTER) == 1
    assert announced == [turn.pk]
    assert turns.take_turn(turn_id=turn.pk) == TurnState.DONE
    assert turns.sweep(turn.created_at + timedelta(seconds=30)) == 0


def test_a_dead_workers_turn_is_announced_again(announced):
    game = waiting_for_the_seller()
    turn = held(game, lease=timedelta(seconds=-1))
    assert turns.sweep(timezone.now()) == 1
    assert announced == [turn.pk]
    assert the_turn(game).state == TurnState.RUNNING


def test_one_damaged_room_does_not_stop_the_clock_for_the_others(caplog):
    damaged, sound = waiting_for_the_seller(), waiting_for_the_seller()
    RoomEvent.objects.filter(room=damaged.room).delete()
    turns.sweep(the_turn(sound).due_at)
    assert the_turn(sound).state == TurnState.DEFAULTED
    assert damaged.room.public_id in caplog.text


def test_the_turn_that_waits_longest_is_seen_to_first(announced):
    games = [waiting_for_the_seller() for _ in range(3)]
    turns.sweep(timezone.now() + turns.RETRY_QUEUED_AFTER)
    assert announced == [the_turn(game).pk for game in games]


def test_agents_finish_a_game_with_a_person_who_only_talks():
    game = staged(multi_buyer(), people=(B1, B2), agents={SELLER: "falling-ladder", "buyer-3": "conceder"})
    for _ in range(40):
        game.let_agents_play()
        if game.state.ended:
            break
        for party in (B1, B2):
            if game.view(party).observation.to_move:
                game.act(party, say("Hm."))
    assert game.state.ended
    assert not game.queued()


# --- A clock that is set ----------------------------------------------------------------------------


def test_nobody_waits_an_hour_for_an_answer_because_the_clock_was_an_hour_ahead(announced):
    """The row was written by a clock that has been set back since: it is announced, and may start, at once."""
    now, hour = timezone.now(), timedelta(hours=1)
    game = waiting_for_the_seller()
    turn = the_turn(game)
    AgentTurn.objects.filter(pk=turn.pk).update(
        created_at=now + hour, starts_at=now + hour + timedelta(seconds=1), due_at=now + hour + timedelta(seconds=61)
    )
    turns.sweep(now)
    moved = the_turn(game)
    assert (moved.created_at, moved.starts_at, moved.due_at) == (
        now,
        now + timedelta(seconds=1),
        now + timedelta(seconds=61),
    )
    announced.clear()
    turns.sweep(now + timedelta(seconds=3))
    assert announced == [turn.pk]
    assert turns.take_turn(turn_id=turn.pk, now=now + timedelta(seconds=3)) == TurnState.DONE


def test_a_dead_workers_lease_of_a_clock_ahead_is_over_at_once(announced):
    game = waiting_for_the_seller()
    turn = held(game, lease=timedelta(hours=1))
    turns.sweep(timezone.now())
    assert announced[-1:] == [turn.pk]
    assert turns.take_turn(turn_id=turn.pk) == TurnState.DONE


def test_a_little_difference_between_two_machines_clocks_moves_nothing():
    game = waiting_for_the_seller()
    turn = the_turn(game)
    turns.sweep(turn.created_at - timedelta(seconds=4))
    assert the_turn(game).due_at == turn.due_at


def test_where_nobody_takes_turns_an_agent_answers_in_seconds_after_the_clock_was_set_back():
    game = staged(event_driven(), people=(SELLER,))
    now = timezone.now()
    game.act(SELLER, offer(9_000), now=now + timedelta(hours=1))
    AgentTurn.objects.filter(room=game.room).delete()
    game.act(SELLER, say("Are you there?"), now=now)
    assert the_turn(game).starts_at < now + timedelta(seconds=30)
