"""Statements whose SQL is kept give what the queryset itself would, of the database as it is at that moment."""

from datetime import UTC, datetime, timedelta

import pytest
from django.db import IntegrityError, connection, transaction
from django.db.models import F
from django.utils import timezone

from markets import room_rows, statements
from markets.engine.protocol import SELLER
from markets.models import AgentTurn, Room, Seat, TurnState, Utterance
from markets.statements import Changing, Reading, Slot
from tests.markets.engine.factories import B1, bilateral, offer
from tests.markets.rooms import Game, staged

pytestmark = pytest.mark.django_db


@pytest.fixture
def game() -> Game:
    return staged(bilateral(), people=(B1, SELLER))


def test_a_table_is_what_django_reads_of_the_same_rows(game):
    game.act(B1, offer(6_000))
    table = room_rows.table(game.room.pk)
    room = game.fresh()
    for name in room_rows._ROOM:
        assert getattr(table.room, name) == getattr(room, name), name
    for name in room_rows._MARKET:
        assert getattr(table.room.market, name) == getattr(room.market, name), name
    stored = list(Seat.objects.filter(room=room).order_by("id"))
    assert list(table.seats) == [seat.party for seat in stored]
    for seat in stored:
        for name in room_rows._SEAT:
            assert getattr(table.seats[seat.party], name) == getattr(seat, name), name
    assert any(seat.deadline_at is not None and seat.deadline_at.tzinfo is not None for seat in table.seats.values())


def test_a_column_that_no_move_needs_is_read_when_it_is_asked_for(game):
    assert room_rows.table(game.room.pk).room.scenario == game.fresh().scenario


def test_the_same_statement_sees_what_was_written_since(game):
    before = room_rows.table(game.room.pk)
    when = datetime(2031, 2, 3, 4, 5, 6, 789_000, tzinfo=UTC)
    Seat.objects.filter(room=game.room, party=B1).update(deadline_at=when, agent_name="Ünï % 'quoted'")
    after = room_rows.table(game.room.pk)
    assert (after.seats[B1].deadline_at, after.seats[B1].agent_name) == (when, "Ünï % 'quoted'")
    assert before.as_drawn != after.as_drawn == room_rows.table(game.room.pk).as_drawn


@pytest.mark.parametrize("name", ["kind", "agent_name", "participant_id", "consent_scope", "deadline_at"])
def test_every_column_that_a_page_shows_counts_as_a_change(game, name):
    before = room_rows.table(game.room.pk).as_drawn
    values = {"participant_id": None, "deadline_at": timezone.now() + timedelta(days=9)}
    Seat.objects.filter(room=game.room, party=SELLER).update(**{name: values.get(name, "agent")})
    assert room_rows.table(game.room.pk).as_drawn != before


def test_a_move_is_found_by_its_sender_and_its_name_alone(game):
    game.act(B1, offer(6_000), move="m-1")
    for party, move, number in ((B1, "m-1", 1), (SELLER, "m-1", None), (B1, "m-2", None), (B1, "", None)):
        with transaction.atomic():
            assert room_rows.locked_table(game.room.pk, party=party, move=move).repeated == number


def test_a_room_that_was_given_up_has_no_table(game):
    with transaction.atomic():
        assert room_rows.locked_table(game.room.pk + 1) is None
    assert room_rows.table(game.room.pk + 1) is None


def test_values_are_parameters_and_never_words_of_the_statement():
    for title in ("a' OR '1'='1", "%s", "%(name)s", "; DROP TABLE markets_room", "\\"):
        reading = Reading(lambda: Room.objects.filter(public_id=Slot("id", Room._meta.get_field("public_id"))))
        assert reading.all(id=title) == []


def test_rows_are_written_as_given_and_a_broken_constraint_is_djangos_error(game):
    names = ("room_id", "n", "party", "talk", "thought")
    rows = [(game.room.pk, 7, B1, "100 % ' \" sure", ""), (game.room.pk, 8, SELLER, "", "é")]
    statements.run(statements.insert(Utterance, names, rows))
    assert list(Utterance.objects.order_by("n").values_list(*names)) == rows
    with pytest.raises(IntegrityError), transaction.atomic():
        statements.run(statements.insert(Utterance, names, rows[:1]))


def test_an_update_writes_the_columns_named_and_no_other(game):
    seat, other = game.seat(B1), game.seat(SELLER)
    seat.deadline_at, seat.agent_name = None, "Nobody"
    statements.run(statements.update(seat, "deadline_at"))
    stored = game.seat(B1)
    assert (stored.deadline_at, stored.agent_name) == (None, "")
    assert game.seat(SELLER).deadline_at == other.deadline_at


def test_what_may_be_there_once_is_written_once(game):
    names = ("room_id", "party", "position", "state", "owner", "due_at", "attempts", "error", "created_at")
    row = (game.room.pk, B1, 40, TurnState.QUEUED, "", timezone.now(), 0, "", timezone.now())
    key = statements.insert_once(AgentTurn, names, row)
    assert AgentTurn.objects.get(position=40).pk == key
    assert statements.insert_once(AgentTurn, names, row) is None
    assert AgentTurn.objects.filter(position=40).count() == 1


def test_a_kept_update_changes_the_rows_that_meet_its_conditions_and_no_other(game):
    names = ("room_id", "party", "position", "state", "owner", "due_at", "attempts", "error", "created_at")
    now = timezone.now()
    keys = [
        statements.insert_once(AgentTurn, names, (game.room.pk, B1, n, TurnState.RUNNING, owner, now, n, "", now))
        for n, owner in ((1, "me"), (2, "you"))
    ]
    key, owner = AgentTurn._meta.pk, AgentTurn._meta.get_field("owner")
    changing = Changing(
        lambda: AgentTurn.objects.filter(pk=Slot("turn", key), owner=Slot("owner", owner)),
        owner=Slot("next", owner),
        attempts=F("attempts") + 1,
    )
    assert [changing.run(turn=turn, owner="me", next="her") for turn in (*keys, 0)] == [1, 0, 0]
    assert changing.run(turn=keys[0], owner="her", next="") == 1
    assert list(AgentTurn.objects.order_by("position").values_list("owner", "attempts")) == [("", 3), ("you", 2)]


def test_all_of_several_writes_or_none(game):
    seat = game.seat(B1)
    seat.agent_name = "Written"
    names = ("room_id", "n", "party", "talk", "thought")
    twice = statements.insert(Utterance, names, [(game.room.pk, 1, B1, "a", "")] * 2)
    with pytest.raises(IntegrityError), transaction.atomic():
        statements.run(statements.update(seat, "agent_name"), twice)
    assert game.seat(B1).agent_name == ""
    assert connection.in_atomic_block  # The test's own transaction goes on.
