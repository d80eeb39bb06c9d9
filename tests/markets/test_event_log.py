"""A room's log is what the database says, whatever this process remembers of it."""

import pytest
from django.db import IntegrityError, transaction

from markets import event_log
from markets.engine import rules
from markets.engine.protocol import SELLER, encode
from markets.engine.state import replay
from markets.models import RoomEvent, Utterance
from tests.markets.engine.factories import B1, bilateral, offer, say
from tests.markets.rooms import Game, staged


@pytest.fixture
def game() -> Game:
    return staged(bilateral(), people=(B1, SELLER))


@pytest.fixture(autouse=True)
def forget():
    """No fold of another test is remembered, nor of this one by the next."""
    event_log._kept.clear()
    yield
    event_log._kept.clear()


def remembered(game: Game) -> int | None:
    """Version of the fold that this process keeps."""
    fold = event_log._kept.get(game.room.public_id)
    return None if fold is None else fold.state.version


@pytest.mark.django_db
def test_the_fold_is_the_replay_of_the_rows(game):
    game.act(B1, offer(6_000, talk="Sixty."))
    game.act(SELLER, offer(7_500))
    fold = event_log.load(game.fresh())
    assert fold.state == replay(fold.state.scenario, fold.log)
    assert [entry.n for entry in fold.log] == [1, 2]
    assert [encode(entry.event).decode() for entry in fold.log] == list(
        RoomEvent.objects.order_by("n").values_list("event", flat=True)
    )


@pytest.mark.django_db(transaction=True)
def test_what_was_folded_once_is_not_read_again(game, django_assert_num_queries):
    game.act(B1, offer(6_000))
    assert remembered(game) == 1
    room = game.fresh()
    with django_assert_num_queries(0):
        event_log.load(room)


@pytest.mark.django_db(transaction=True)
def test_only_what_is_new_is_read(game):
    game.act(B1, offer(6_000))
    before = event_log.load(game.fresh())
    event_log._kept.clear()
    game.act(SELLER, offer(7_500))
    event_log._kept[game.room.public_id] = before
    after = event_log.load(game.fresh())
    assert after.log[:1] == before.log
    assert after.state.version == 2


@pytest.mark.django_db(transaction=True)
def test_a_move_that_was_rolled_back_is_not_remembered(game):
    with transaction.atomic():
        game.act(B1, offer(6_000))
        transaction.set_rollback(True)
    assert remembered(game) is None
    game.act(B1, say("Something else."))
    assert remembered(game) == 1
    assert game.state.threads[0].offers == ()
    assert game.kinds == ["message_sent"]


@pytest.mark.django_db(transaction=True)
def test_looking_at_a_room_in_a_transaction_that_fails_is_forgotten_too(game):
    with transaction.atomic():
        game.act(B1, offer(6_000))
        game.view(B1)
        transaction.set_rollback(True)
    assert remembered(game) is None
    assert game.state.version == 0


@pytest.mark.django_db(transaction=True)
def test_somebody_who_holds_an_older_row_gets_the_log_as_of_that_row(game):
    old = game.fresh()
    game.act(B1, offer(6_000))
    assert event_log.load(old).log == ()
    assert event_log.load(game.fresh()).state.version == 1


@pytest.mark.django_db(transaction=True)
def test_an_older_fold_never_takes_the_place_of_a_newer_one(game):
    older = event_log.load(game.fresh())
    game.act(B1, offer(6_000))
    event_log.keep(game.fresh(), older)
    assert remembered(game) == 1


@pytest.mark.django_db(transaction=True)
def test_memory_is_bounded_and_the_rooms_in_use_stay(game, monkeypatch):
    monkeypatch.setattr(event_log, "MAX_KEPT_FOLDS", 2)
    others = [staged(bilateral(), people=(B1, SELLER)) for _ in range(2)]
    for each in (game, others[0], game, others[1]):
        event_log.keep(each.fresh(), event_log.load(each.fresh()))
    assert set(event_log._kept) == {game.room.public_id, others[1].room.public_id}


@pytest.mark.django_db
@pytest.mark.parametrize("lost", [1, 2, 3])
def test_a_lost_row_is_noticed_and_never_played_over(game, lost):
    game.act(B1, offer(6_000))
    game.act(SELLER, offer(7_500))
    game.act(B1, say())
    event_log._kept.clear()
    RoomEvent.objects.filter(n=lost).delete()
    with pytest.raises(event_log.LogGap, match=game.room.public_id):
        event_log.load(game.fresh())
    with pytest.raises(event_log.LogGap):
        game.act(SELLER, say())


@pytest.mark.django_db
def test_a_number_is_written_once(game):
    room = game.fresh()
    fold = event_log.load(room)
    (event,) = rules.decide(fold.state, B1, offer(6_000))
    event_log.append(room, fold, (event,), party=B1, at_ms=0)
    with pytest.raises(IntegrityError), transaction.atomic():
        event_log.append(room, fold, (event,), party=B1, at_ms=0)


@pytest.mark.django_db
def test_words_hang_on_the_first_event_of_a_move_and_not_in_the_log(game):
    game.act(B1, offer(6_000))
    room = game.fresh()
    fold = event_log.load(room)
    events = rules.decide(fold.state, SELLER, offer(7_000))
    event_log.append(room, fold, events, party=SELLER, at_ms=5, talk="No.", thought="He will pay.", client_move_id="m")
    assert Utterance.objects.values_list("n", "party", "talk", "thought").get() == (2, SELLER, "No.", "He will pay.")
    assert RoomEvent.objects.values_list("n", "at_ms", "client_move_id").get(n=2) == (2, 5, "m")
    assert not RoomEvent.objects.filter(event__contains="No.").exists()
