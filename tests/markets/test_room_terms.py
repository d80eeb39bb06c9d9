"""What whoever opens a room lays down holds there, and nowhere else."""

from datetime import timedelta

import pytest
from django.utils import timezone

from markets import episodes, services
from markets.engine.protocol import SELLER, Role
from markets.models import AgentTurn, Room, RoomStatus, Seat, SeatKind
from markets.services import RoomError, RoomTerms
from tests.markets import rooms
from tests.markets.engine.factories import B1, LEAVE, bilateral, offer, say
from tests.markets.rooms import staged

pytestmark = pytest.mark.django_db


def opened(terms: RoomTerms | None = None, **changes) -> Room:
    """A room in which the seller opens, who is an agent unless the host is one."""
    market = rooms.market("bilateral", opener=Role.SELLER, slug="terms")
    role = changes.pop("role", Role.BUYER)
    opposite = {SELLER: rooms.agent("linear")} if role is Role.BUYER else {B1: rooms.agent("linear")}
    return services.open_room(
        market=market, host=rooms.person(), role=role, agents=opposite, seed=1, terms=terms, **changes
    )


def test_an_agent_waits_as_long_as_was_laid_down_the_same_in_every_process():
    now = timezone.now()
    pauses = set()
    for _time in range(2):
        room = opened(RoomTerms(reply_ms=(2_000, 5_000)), now=now)
        turn = AgentTurn.objects.get(room=room)
        assert turn.starts_at is not None
        pauses.add(turn.starts_at - now)
        assert turn.due_at == turn.starts_at + services.AGENT_TURN_DEADLINE
    assert len(pauses) == 1
    assert timedelta(seconds=2) <= pauses.pop() <= timedelta(seconds=5)
    assert AgentTurn.objects.get(room=opened()).starts_at is None


def test_a_room_with_a_keeper_is_left_to_it():
    now = timezone.now()
    kept = opened(RoomTerms(keeper="somebody", move_deadline_s=30), role=Role.SELLER, now=now)
    own = opened(RoomTerms(move_deadline_s=30), role=Role.SELLER, now=now)
    assert Seat.objects.get(room=kept, party=SELLER).deadline_at == now + timedelta(seconds=30)
    services.sweep(now + timedelta(seconds=31))
    assert Room.objects.get(pk=kept.pk).status == RoomStatus.LIVE
    assert Room.objects.get(pk=own.pk).status == RoomStatus.ENDED


def test_a_keeper_goes_on_in_a_market_that_was_retired_and_nobody_else_does():
    market = rooms.market("bilateral")
    type(market).objects.update(retired_at=timezone.now())
    market.refresh_from_db()
    how = {"market": market, "role": Role.BUYER, "agents": {SELLER: rooms.agent("linear")}}
    with pytest.raises(RoomError, match="retired"):
        services.open_room(host=rooms.person(), **how)
    services.open_room(host=rooms.person(), terms=RoomTerms(keeper="somebody"), **how)


def test_an_agent_plays_on_for_a_person_whose_words_stay_under_their_consent():
    game = staged(bilateral(), people=(B1, SELLER))
    for party, scope in ((B1, "research"), (SELLER, "public")):
        services.choose_consent(seat=game.seat(party), scope=scope, version="1")
    game.act(B1, say("Good morning."))
    services.replace_by_agent(seat=game.seat(B1), agent=rooms.agent("linear"))
    seat = Seat.objects.get(room=game.room, party=B1)
    assert (seat.kind, seat.participant_id, seat.agent_slug) == (SeatKind.AGENT, game.people[B1].pk, "linear")
    with pytest.raises(RoomError, match="do not sit"):
        services.submit_action(room=game.fresh(), seat=seat, action=say("And me?"), client_move_id="late")
    game.act(SELLER, offer(9_000))
    assert AgentTurn.objects.filter(room=game.room, party=B1).exists()
    game.act(SELLER, LEAVE)
    assert game.episode.consent_scope == "research"
    assert episodes.verify(game.episode)
    with pytest.raises(RoomError, match="not going on"):
        services.replace_by_agent(seat=game.seat(SELLER), agent=rooms.agent("linear"))


def test_an_agent_asked_to_play_on_moves_at_once_where_it_is_its_turn():
    game = staged(bilateral(), people=(B1, SELLER))
    assert not AgentTurn.objects.filter(room=game.room).exists()
    services.replace_by_agent(seat=game.seat(B1), agent=rooms.agent("linear"))
    assert AgentTurn.objects.filter(room=game.room, party=B1).count() == 1
    with pytest.raises(RoomError, match="No person"):
        services.replace_by_agent(seat=Seat.objects.get(room=game.room, party=B1), agent=rooms.agent("linear"))
