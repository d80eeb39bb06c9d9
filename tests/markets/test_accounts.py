"""An account carries games along, never another's; erasing a person leaves every record valid."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.utils import timezone

from markets import accounts, episodes, identity
from markets.accounts import AccountError
from markets.engine.protocol import SELLER
from markets.models import (
    Episode,
    EpisodeSeat,
    EpisodeText,
    Participant,
    RecordChange,
    Room,
    RoomStatus,
    Seat,
    SignUp,
    Utterance,
)
from tests.markets import rooms
from tests.markets.engine.factories import B1, accept, bilateral, offer
from tests.markets.rooms import Game, staged

pytestmark = pytest.mark.django_db


def made(username: str = "ada", *, anonymous: Participant | None = None, address: str = "10.0.0.1") -> User:
    return accounts.sign_up(username=username, password="a long secret", address=address, anonymous=anonymous)


def played() -> Game:
    """Two people agreed, and both talked."""
    game = staged(bilateral(), people=(B1, SELLER))
    game.act(B1, offer(6_000, talk="My name is Ada."))
    game.act(SELLER, offer(7_500, talk="Mine is Bob."))
    game.act(B1, accept(2))
    return game


# --- Signing up -------------------------------------------------------------------------------------


def test_signing_up_keeps_the_player_and_its_games():
    game = played()
    account = made(anonymous=game.people[B1])
    own = Participant.objects.get(account=account)
    assert own == game.people[B1]
    assert own.seats.get().room == game.room
    assert account.check_password("a long secret")


def test_signing_up_without_the_games_leaves_them_where_they_were():
    game = played()
    account = made()
    assert not Participant.objects.filter(account=account).exists()
    assert Participant.objects.get(pk=game.people[B1].pk).account is None


def test_an_accounts_player_cannot_be_taken_by_another_account():
    game = played()
    made(anonymous=game.people[B1])
    with pytest.raises(AccountError, match="belong to an account already"):
        made("eve", anonymous=game.people[B1])
    assert not User.objects.filter(username="eve").exists()
    assert Participant.objects.get(pk=game.people[B1].pk).account.username == "ada"


def test_a_name_that_is_taken_in_the_same_moment_makes_nothing():
    made()
    with pytest.raises(AccountError, match="taken that name"):
        made()
    assert (User.objects.count(), SignUp.objects.count()) == (1, 1)


def test_accounts_from_one_address_are_limited_and_the_limit_passes(monkeypatch):
    monkeypatch.setattr(accounts, "SIGN_UPS_AN_HOUR", 2)
    made("a")
    made("b")
    with pytest.raises(AccountError, match="Try again in an hour"):
        made("c")
    made("d", address="10.0.0.2")
    SignUp.objects.update(at=timezone.now() - timedelta(hours=1, seconds=1))
    made("c")
    assert User.objects.count() == 4
    assert SignUp.objects.count() == 1  # Those that count no more are not kept.
    assert "10.0.0" not in SignUp.objects.get().address_digest


# --- Bringing games along ---------------------------------------------------------------------------


def test_a_second_browsers_games_become_the_accounts():
    first, second = played(), played()
    account = made(anonymous=first.people[B1])
    before = RecordChange.objects.count()
    brought = accounts.bring_along(account=account, anonymous=second.people[B1])
    assert (brought.games, brought.stayed) == (1, 0)
    own = Participant.objects.get(account=account)
    assert set(own.seats.values_list("room_id", flat=True)) == {first.room.pk, second.room.pk}
    assert own.episode_seats.count() == 2
    assert not Participant.objects.filter(pk=second.people[B1].pk).exists()
    assert Participant.objects.filter(pk=second.people[SELLER].pk).exists()
    changed = set(RecordChange.objects.order_by("pk").values_list("episode_number", flat=True)[before:])
    assert changed == {Episode.objects.get(room=second.room).pk}
    assert all(episodes.verify(episode) for episode in Episode.objects.all())


def test_a_game_against_oneself_from_two_browsers_stays_with_both_names():
    game, other = played(), played()
    Seat.objects.filter(room=other.room, party=B1).update(participant=game.people[SELLER])
    account = made(anonymous=game.people[B1])
    brought = accounts.bring_along(account=account, anonymous=game.people[SELLER])
    assert (brought.games, brought.stayed) == (1, 1)
    assert game.seat(SELLER).participant == game.people[SELLER]
    assert EpisodeSeat.objects.get(episode__room=game.room, party=SELLER).participant == game.people[SELLER]
    assert other.seat(B1).participant.account == account


def test_games_are_brought_along_once():
    game = played()
    account = made()
    accounts.bring_along(account=account, anonymous=game.people[B1])
    with pytest.raises(AccountError, match="belong to an account already"):
        accounts.bring_along(account=account, anonymous=game.people[B1])
    assert Seat.objects.filter(participant__account=account).count() == 1


def test_a_choice_of_consent_comes_along_where_the_account_has_none():
    account = made()
    own = identity.new_participant(account=account)
    guest = rooms.person()
    Participant.objects.filter(pk=guest.pk).update(default_consent="public")
    accounts.bring_along(account=account, anonymous=guest)
    own.refresh_from_db()
    assert own.default_consent == "public"


def test_everything_that_belongs_to_a_player_is_thought_of_when_players_are_merged():
    """Whoever hangs another table on a participant decides here what merging and erasing do to it."""
    belongings = {relation.get_accessor_name() for relation in Participant._meta.related_objects}
    merged = {"seats", "episode_seats", "exports", "reports_of", "reports_by"}
    studies_make_one_of_their_own = {"participation"}
    assert belongings == merged | studies_make_one_of_their_own


# --- Erasing ----------------------------------------------------------------------------------------


def test_erasing_takes_name_and_words_and_leaves_the_record_valid():
    game = played()
    episode = Episode.objects.get(room=game.room)
    hashed = episode.record_sha256
    account = made(anonymous=game.people[B1])
    accounts.erase(account=account)
    assert not User.objects.exists()
    assert not Participant.objects.filter(pk=game.people[B1].pk).exists()
    assert set(Utterance.objects.values_list("party", flat=True)) == {SELLER}
    assert set(EpisodeText.objects.values_list("party", flat=True)) == {SELLER}
    kept = Episode.objects.get(pk=episode.pk)
    assert kept.record_sha256 == hashed
    assert episodes.verify(kept)
    assert EpisodeSeat.objects.get(episode=kept, party=B1).participant is None
    assert EpisodeSeat.objects.get(episode=kept, party=SELLER).participant == game.people[SELLER]
    assert RecordChange.objects.filter(episode_number=kept.pk).exists()


def test_erasing_leaves_what_is_still_going():
    live = staged(bilateral(), people=(B1, SELLER))
    waiting = staged(bilateral(), people=(B1, SELLER), start=False)
    Seat.objects.filter(room=waiting.room, party=B1).update(participant=live.people[B1])
    accounts.erase(account=made(anonymous=live.people[B1]))
    assert live.fresh().status == RoomStatus.ENDED
    assert not Room.objects.filter(pk=waiting.room.pk).exists()
    assert episodes.verify(Episode.objects.get(room=live.room))


def test_a_damaged_room_does_not_keep_anybody_from_being_erased():
    live = staged(bilateral(), people=(B1, SELLER))
    live.act(B1, offer(6_000))
    Room.objects.filter(pk=live.room.pk).update(version=9)
    accounts.erase(account=made(anonymous=live.people[B1]))
    assert not User.objects.exists()
    assert live.seat(B1).participant is None


def test_the_staff_is_not_erased_from_a_page():
    root = User.objects.create_superuser("root")
    with pytest.raises(AccountError, match="in the administration"):
        accounts.erase(account=root)
    assert User.objects.filter(pk=root.pk).exists()


def test_one_account_has_one_player_however_often_it_is_asked_for():
    account = made()
    assert identity.new_participant(account=account) == identity.new_participant(account=account)
    assert Participant.objects.count() == 1
