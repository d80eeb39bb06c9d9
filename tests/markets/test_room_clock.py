"""Rooms in which nobody takes turns: agents answer in their time, and no simulated clock hurries a person.

Without these an agent could spend a thinking person's moves, answer twice, or never; and a person could be cut off by
somebody else's waiting.
"""

from collections.abc import Sequence
from datetime import timedelta

import pytest
from django.utils import timezone

from agents import registry, turns
from agents.base import AgentSpec, Kind, Turn
from markets import episodes, room_page, services, wire
from markets.engine.protocol import (
    SELLER,
    AcceptOffer,
    Action,
    Role,
    SearchPrice,
    Wait,
)
from markets.engine.scenarios import Family
from markets.models import AgentTurn, Episode, RoomEvent, RoomStatus, TurnState
from markets.room_clock import MAX_UNANSWERED
from markets.services import SOLO_DEADLINE
from markets.signals import turn_due
from tests.markets.engine.factories import B1, LEAVE, event_driven, offer, reject, say
from tests.markets.rooms import Game, staged

pytestmark = pytest.mark.django_db


class Puppet:
    """An agent that does what the test says next, and waits when nothing is left."""

    def __init__(self, moves: list[Sequence[Action]]) -> None:
        self._moves = moves

    def act(self, turn: Turn) -> Action:
        raise AssertionError("asked for a batch")

    def act_batch(self, turn: Turn) -> Sequence[Action]:
        return self._moves.pop(0) if self._moves else [Wait()]


@pytest.fixture
def puppet(monkeypatch: pytest.MonkeyPatch) -> list[Sequence[Action]]:
    """What the agent `linear` does, turn by turn."""
    moves: list[Sequence[Action]] = []
    spec = AgentSpec(
        slug="linear",
        title="Puppet",
        summary="",
        kind=Kind.SCRIPTED,
        roles=tuple(Role),
        families=tuple(Family),
        build=lambda: Puppet(moves),
    )
    known = registry.get
    monkeypatch.setattr(registry, "get", lambda slug, version="": spec if slug == "linear" else known(slug))
    return moves


def buying(**changes) -> Game:
    """A person buys from an agent, which has not said anything yet."""
    return staged(event_driven(**changes), people=(B1,))


def selling(**changes) -> Game:
    """A person sells to an agent."""
    return staged(event_driven(**changes), people=(SELLER,))


def once(game: Game) -> None:
    """Let every agent that may be asked act once, each in its time."""
    for turn in game.queued():
        assert turns.take_turn(turn_id=turn.pk, now=turn.starts_at) is not None


def play_and_default(game: Game) -> None:
    """Let the agents act until nobody is asked any more, and the clock play what they owe."""
    game.let_agents_play()
    while waiting := game.queued():
        turns.sweep(max(turn.due_at for turn in waiting) + timedelta(seconds=3))
        game.let_agents_play()


def the_turn(game: Game) -> AgentTurn:
    (turn,) = game.queued()
    return turn


# --- Agents answer in their time ------------------------------------------------------------------------------


def test_an_agent_may_not_answer_before_its_pause_is_over_and_does_then(puppet):
    puppet[:] = [[offer(9_000, talk="Ninety.")]]
    game = buying()
    turn = the_turn(game)
    pause = turn.starts_at - game.fresh().opened_at
    assert timedelta(milliseconds=500) <= pause <= timedelta(milliseconds=2_000)
    assert turn.due_at == turn.starts_at + services.AGENT_TURN_DEADLINE
    assert turns.take_turn(turn_id=turn.pk, now=turn.starts_at - timedelta(milliseconds=1)) is None
    assert turns.take_turn(turn_id=turn.pk, now=turn.starts_at) == TurnState.DONE
    assert game.kinds == ["offer_made"]


def test_the_workers_are_told_of_a_turn_with_its_delay_and_of_a_long_wait_by_the_clock(
    puppet, django_capture_on_commit_callbacks
):
    told: list[tuple[int, float]] = []

    def hear(*, turn_id: int, delay_s: float = 0.0, **_: object) -> None:
        told.append((turn_id, delay_s))

    turn_due.connect(hear)
    try:
        puppet[:] = [[offer(9_000), Wait(for_ms=60_000)]]
        with django_capture_on_commit_callbacks(execute=True):
            game = buying()
        first = the_turn(game)
        assert [pk for pk, _ in told] == [first.pk]
        assert 0.4 < told[0][1] <= 2.0
        with django_capture_on_commit_callbacks(execute=True):
            once(game)
        waiting = the_turn(game)
        assert len(told) == 1
        assert turns.sweep(waiting.starts_at - timedelta(seconds=1)) == 0
        assert turns.sweep(waiting.starts_at + timedelta(seconds=1)) == 1
        assert told[-1][0] == waiting.pk
    finally:
        turn_due.disconnect(hear)


def test_several_actions_arrive_together_each_with_its_words(puppet):
    puppet[:] = [[say("Good morning."), offer(9_000, talk="Ninety.")]]
    game = buying()
    once(game)
    rows = RoomEvent.objects.filter(room=game.room).order_by("n")
    assert len({row.at_ms for row in rows}) == 1
    view = game.view(B1)
    assert [view.talk[event.n] for event in view.events] == ["Good morning.", "Ninety."]


def test_what_the_person_adds_makes_the_answer_on_its_way_stale_and_the_agent_is_asked_anew(puppet):
    puppet[:] = [[offer(9_000)], [offer(8_000)], [offer(7_000)]]
    game = buying()
    once(game)
    game.act(B1, say("Well?"))
    first = the_turn(game)
    game.act(B1, offer(6_000))
    assert turns.take_turn(turn_id=first.pk, now=first.starts_at) == TurnState.SUPERSEDED
    once(game)
    assert game.kinds == ["offer_made", "message_sent", "offer_made", "offer_made"]


def test_a_timed_wait_lasts_in_real_time_and_asks_again(puppet):
    puppet[:] = [[offer(9_000), Wait(for_ms=30_000)], [offer(8_500)]]
    game = buying()
    once(game)
    turn = the_turn(game)
    waited = turn.starts_at - game.fresh().opened_at
    assert timedelta(seconds=30) <= waited <= timedelta(seconds=33)
    once(game)
    assert game.kinds == ["offer_made", "waited", "offer_made"]


def test_every_scripted_agent_can_be_met_on_either_side():
    for seat_of_person, role in ((B1, Role.SELLER), (SELLER, Role.BUYER)):
        for slug in ("linear", "boulware", "tit-for-tat", "hardliner", "zi-c"):
            game = staged(event_driven(), people=(seat_of_person,), agents=slug)
            if role is Role.BUYER:
                game.act(SELLER, offer(9_000))
            game.let_agents_play()
            assert game.kinds[-1] in ("offer_made", "message_sent", "offer_rejected"), slug
            assert not game.queued()


# --- Nobody is hurried -----------------------------------------------------------------------------------------


def test_a_person_may_write_again_and_again_and_accept_at_any_time(puppet):
    puppet[:] = [[offer(9_000)]]
    game = buying()
    assert game.refusal(B1, say("First!")) == "not_your_turn"
    once(game)
    game.act(B1, say("Hm."))
    game.act(B1, offer(4_000))
    game.act(B1, AcceptOffer(offer_id=1))
    assert game.fresh().status == RoomStatus.ENDED
    assert Episode.objects.get(room=game.room).mechanism


def test_an_agent_that_keeps_waiting_does_not_spend_the_persons_moves(puppet):
    puppet[:] = [[offer(9_000)], *([[Wait(for_ms=1_000)]] * 40)]
    game = buying()
    game.let_agents_play()
    assert game.kinds == ["offer_made"]
    game.act(B1, say("Let me think."))
    play_and_default(game)
    assert game.kinds.count("waited") == MAX_UNANSWERED
    assert game.kinds[-2:] == ["deadline_passed", "message_sent"]
    assert not game.queued()
    game.act(B1, offer(4_000))
    assert game.queued()


def test_an_agent_that_nags_falls_silent_until_the_person_says_something(puppet):
    puppet[:] = [[offer(9_000), Wait(for_ms=1_000)], *([[say("Well?"), Wait(for_ms=1_000)]] * 20)]
    game = buying()
    game.let_agents_play()
    assert not game.queued()
    assert len(game.kinds) <= MAX_UNANSWERED + 1
    assert game.seat(B1).deadline_at is not None


def test_an_agent_that_only_breaks_rules_has_its_default_act_played(puppet):
    puppet[:] = [[offer(9_000)], *([[reject(9)]] * 20)]
    game = buying()
    once(game)
    game.act(B1, offer(4_000))
    play_and_default(game)
    assert game.kinds[2:] == ["move_refused"] * MAX_UNANSWERED + ["deadline_passed", "offer_rejected"]


def test_an_opener_that_says_nothing_has_its_default_act_played(puppet):
    puppet[:] = [[Wait()]]
    game = buying()
    play_and_default(game)
    assert game.kinds == ["waited", "deadline_passed", "message_sent"]
    game.act(B1, offer(4_000))


# --- Deadlines of the wall ---------------------------------------------------------------------------------------


def test_whoever_owes_an_answer_has_the_deadline_and_nobody_is_left_waiting_without_one(puppet):
    puppet[:] = [[offer(9_000)], [Wait()]]
    game = buying()
    assert game.seat(B1).deadline_at is None
    once(game)
    assert game.seat(B1).deadline_at is not None
    game.act(B1, offer(4_000))
    assert game.seat(B1).deadline_at is None
    once(game)
    assert game.kinds[-1] == "waited"
    assert game.seat(B1).deadline_at > timezone.now() + SOLO_DEADLINE - timedelta(minutes=1)


def test_two_people_write_freely_and_the_one_who_owes_has_the_rooms_deadline():
    game = staged(event_driven(), people=(SELLER, B1))
    assert (game.seat(SELLER).deadline_at is None, game.seat(B1).deadline_at is None) == (False, True)
    game.act(SELLER, offer(9_000))
    game.act(SELLER, say("It is a good one."))
    game.act(B1, say("I see."))
    game.act(B1, offer(5_000))
    assert (game.seat(SELLER).deadline_at is None, game.seat(B1).deadline_at is None) == (False, True)
    deadline = game.seat(SELLER).deadline_at
    assert services.sweep(deadline + timedelta(seconds=1)) == 1
    assert game.episode.end_reason == "deadline"


def test_the_clock_of_a_room_never_runs_back(puppet):
    game = staged(event_driven(), people=(SELLER, B1))
    now = timezone.now()
    game.act(SELLER, offer(9_000), now=now + timedelta(seconds=5))
    game.act(B1, say("Hm."), now=now + timedelta(seconds=3))
    at = list(RoomEvent.objects.filter(room=game.room).order_by("n").values_list("at_ms", flat=True))
    assert at == sorted(at)


# --- What a person sees --------------------------------------------------------------------------------------------


def test_a_price_named_without_having_seen_the_other_sides_is_sent_back_and_talk_is_not():
    game = staged(event_driven(), people=(SELLER, B1))
    game.act(SELLER, offer(9_000))
    game.act(SELLER, offer(7_000))
    assert game.refusal(B1, offer(7_500), seen=1) == "stale_view"
    game.act(B1, say("Hello."), seen=1)
    assert game.refusal(B1, AcceptOffer(offer_id=1), seen=1) == "offer_gone"
    game.act(B1, offer(6_500), seen=2)


def test_the_page_says_whose_move_it_is_without_locking_anybody(puppet):
    puppet[:] = [[offer(9_000)]]
    game = buying()
    view = game.view(B1)
    assert (room_page.my_turn(view), room_page.awaiting(view)) == (False, ())
    assert room_page.status_bar(view).turn_text == "Waiting for the seller"
    once(game)
    view = game.view(B1)
    assert (room_page.my_turn(view), room_page.awaiting(view)) == (True, (1,))
    assert room_page.status_bar(view).turn_text == "Your move, whenever you like"
    assert room_page.status_bar(view).round_text == "49 moves left for both"
    game.act(B1, offer(4_000))
    view = game.view(B1)
    frame = wire.view_frame(view, after=0, origin="http://here", now=timezone.now())
    assert (frame["my_turn"], frame["awaiting"]) == (False, [1])
    assert "Their move; you may also write again" in frame["panels"]["panel-status"]
    assert "No answer yet" in frame["panels"]["panel-thread-1"]
    game.act(B1, AcceptOffer(offer_id=1))
    assert room_page.status_bar(game.view(B1)).round_text == ""


def test_an_agents_waits_and_broken_moves_leave_no_gap_and_no_line_on_the_persons_page(puppet):
    puppet[:] = [[offer(9_000)], [SearchPrice()], [reject(9)], [Wait(for_ms=1_000)], [offer(8_000)]]
    game = buying()
    once(game)
    game.act(B1, offer(4_000))
    game.let_agents_play()
    assert {"price_searched", "move_refused", "waited"} <= set(game.kinds)
    view = game.view(B1)
    assert [event.seq for event in view.events] == [1, 2, 3]
    (thread,) = room_page.thread_panels(view)
    assert [item.kind for item in thread.items] == ["offer", "offer", "offer"]


def test_a_finished_room_is_kept_as_one_record_that_verifies(puppet):
    puppet[:] = [[SearchPrice()], [offer(6_500)]]
    game = buying()
    game.let_agents_play()
    game.act(B1, AcceptOffer(offer_id=1))
    assert episodes.verify(game.episode)
    assert game.episode.protocol_version == "2"


def test_leaving_ends_it_for_the_agent_that_was_about_to_answer(puppet):
    puppet[:] = [[offer(9_000)], [offer(8_000)]]
    game = buying()
    once(game)
    game.act(B1, offer(4_000))
    turn = the_turn(game)
    game.act(B1, LEAVE)
    assert turns.take_turn(turn_id=turn.pk, now=turn.starts_at) == TurnState.SUPERSEDED
    assert game.episode.end_reason == "buyers_gone"
