"""Somebody who is insulted can say so and be rid of it; nobody else learns who spoke up, and no record is falsified."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone
from django.utils.formats import date_format

from markets import accounts, episodes, erasure, export_masking
from markets.engine.protocol import SELLER, Role, buyer_party
from markets.export_masking import REMOVED
from markets.models import EpisodeText, Utterance
from markets.services import RoomError, join_room, open_room
from negotiation_site.moderation import services
from negotiation_site.moderation.models import HiddenWords, Report
from negotiation_site.moderation.services import ModerationError
from tests.markets import rooms
from tests.markets.engine.factories import B1, accept, bilateral, offer
from tests.markets.rooms import Game, staged
from tests.markets.tabs import browser

pytestmark = pytest.mark.django_db

INSULT = "You stupid heron."


@pytest.fixture
def game() -> Game:
    game = staged(bilateral(), people=(B1, SELLER))
    game.act(B1, offer(6_000, talk=INSULT))
    return game


@pytest.fixture
def staff() -> Client:
    client = Client()
    client.force_login(
        User.objects.create_user("judge", is_staff=True), backend="django.contrib.auth.backends.ModelBackend"
    )
    return client


def report(game: Game, by: str = SELLER, about: str = B1, **typed: str):
    fields = {"party": about, "reason": "insult", "note": "He called me a heron."} | typed
    return browser(game.people[by]).post(f"/rooms/{game.room.public_id}/report/", fields)


def test_who_is_insulted_can_say_so_and_the_staff_read_it_with_what_was_said(game, staff):
    page = browser(game.people[SELLER]).get(f"/rooms/{game.room.public_id}/")
    assert f"/rooms/{game.room.public_id}/report/" in page.content.decode()
    assert report(game).status_code == 302
    desk = staff.get("/moderation/").content.decode()
    for text in (INSULT, "He called me a heron.", "1 report", "Insults or threats"):
        assert text in desk


def test_the_reported_side_is_not_told(game):
    report(game)
    told = browser(game.people[B1]).get(f"/rooms/{game.room.public_id}/").content.decode()
    assert "heron." in told, "their own words"
    assert "called me" not in told


@pytest.mark.parametrize("who", ["anonymous", "stranger", "member"])
def test_the_desk_and_the_form_do_not_exist_for_others(game, who):
    client = browser(None if who == "anonymous" else rooms.person())
    if who == "member":
        client.force_login(User.objects.create_user("m"), backend="django.contrib.auth.backends.ModelBackend")
    assert client.get("/moderation/").status_code == 404
    assert client.post("/moderation/act/", {"act": "hide", "room": "1", "n": "1"}).status_code == 404
    assert client.get(f"/rooms/{game.room.public_id}/report/").status_code == 404
    assert client.post(f"/rooms/{game.room.public_id}/report/", {"party": B1, "reason": "insult"}).status_code == 404
    assert Report.objects.count() == 0


@pytest.mark.parametrize(
    ("typed", "sentence"),
    [
        ({"reason": "sour"}, "Say what is wrong"),
        ({"about": "seller"}, "Nobody else sits there"),
        ({"about": "buyer:9"}, "Nobody else sits there"),
        ({"note": "x" * 1_001}, "at most 1000 characters"),
    ],
    ids=["reason", "oneself", "nobody", "long"],
)
def test_a_report_of_nothing_is_refused_with_a_sentence(game, typed, sentence):
    about = {"seller": SELLER, "buyer:9": "buyer:9"}.get(typed.pop("about", ""), B1)
    answer = report(game, about=about, **typed)
    assert answer.status_code == 400
    assert sentence in answer.content.decode()
    assert not Report.objects.exists()


def test_the_same_person_reports_a_seat_once_and_may_say_it_better(game):
    report(game)
    report(game, note="And worse.", reason="private")
    assert list(Report.objects.values_list("note", "reason")) == [("And worse.", "private")]


def test_hidden_words_are_gone_for_everybody_and_the_record_holds(game, staff):
    game.act(SELLER, accept(1))
    episode = game.episode
    before = episode.record_sha256
    report(game)
    said = Utterance.objects.get(room=game.room, talk=INSULT)
    staff.post("/moderation/act/", {"act": "hide", "room": str(game.room.pk), "n": str(said.n)})
    for party in (B1, SELLER):
        page = browser(game.people[party]).get(f"/rooms/{game.room.public_id}/replay/").content.decode()
        assert INSULT not in page
        assert REMOVED in page
    assert not EpisodeText.objects.filter(talk__contains="heron").exists()
    episode.refresh_from_db()
    assert episode.record_sha256 == before
    assert episodes.verify(episode)
    assert INSULT in staff.get("/moderation/").content.decode(), "the staff still see what they judge"
    staff.post("/moderation/act/", {"act": "hide", "room": str(game.room.pk), "n": str(said.n)})
    staff.post("/moderation/act/", {"act": "put_back", "room": str(game.room.pk), "n": str(said.n)})
    said.refresh_from_db()
    assert said.talk == INSULT, "hidden twice and put back is as it was"
    assert not HiddenWords.objects.exists()


def test_who_is_barred_meets_no_people_and_still_plays_agents(game):
    offender = game.people[B1]
    services.bar(participant=offender, days=7)
    market = rooms.market()
    steady = {buyer_party(1): rooms.agent("linear"), SELLER: rooms.agent("linear")}
    with pytest.raises(RoomError, match="may not meet people here until") as refused:
        open_room(market=market, host=offender, role=Role.BUYER, agents=steady, for_people=frozenset({SELLER}))
    assert refused.value.code == "barred"
    assert date_format(timezone.now() + timedelta(days=7)) in str(refused.value), "as dates are written on pages"
    open_room(market=market, host=offender, role=Role.BUYER, agents=steady)
    waiting = open_room(
        market=market, host=rooms.person(), role=Role.BUYER, agents=steady, for_people=frozenset({SELLER})
    )
    token = waiting.seats.get(party=SELLER).join_token
    with pytest.raises(RoomError, match="may not meet people"):
        join_room(room=waiting, token=token, participant=offender)
    later = timezone.now() + timedelta(days=8)
    assert join_room(room=waiting, token=token, participant=offender, now=later).participant == offender


def test_a_bar_is_lifted_and_a_report_put_away_from_the_desk(game, staff):
    report(game)
    number = str(game.people[B1].pk)
    staff.post("/moderation/act/", {"act": "bar", "participant": number, "days": "30"})
    game.people[B1].refresh_from_db()
    assert game.people[B1].barred_until > timezone.now() + timedelta(days=29)
    staff.post("/moderation/act/", {"act": "bar", "participant": number, "days": "0"})
    game.people[B1].refresh_from_db()
    assert game.people[B1].barred_until is None
    staff.post(
        "/moderation/act/", {"act": "close", "report": str(Report.objects.get().pk), "answer": "Talked to both."}
    )
    assert "Nothing to look at" in staff.get("/moderation/").content.decode()
    assert "Talked to both." in staff.get("/moderation/?closed").content.decode()


@pytest.mark.parametrize(
    "typed",
    [{}, {"act": "hide"}, {"act": "hide", "room": "x", "n": "1"}, {"act": "hide", "room": "9" * 30, "n": "1"},
     {"act": "close", "report": "0"}, {"act": "put_back", "room": "1", "n": "77"}, {"act": "burn"}],
    ids=["nothing", "no-room", "word", "huge", "no-report", "not-hidden", "unknown"],
)  # fmt: skip
def test_an_act_that_means_nothing_is_a_sentence_and_changes_nothing(game, staff, typed):
    answer = staff.post("/moderation/act/", typed, follow=True)
    assert 'class="notice notice--error"' in answer.content.decode()
    assert Utterance.objects.filter(talk=INSULT).exists()


def test_a_bar_of_an_odd_length_is_refused():
    with pytest.raises(ModerationError):
        services.bar(participant=rooms.person(), days=3)


def test_words_that_were_taken_away_leave_in_no_data_set():
    assert export_masking.mask(REMOVED) == export_masking.whole(REMOVED) == ""


def test_erasing_somebody_at_the_table_empties_what_was_written_about_it(game, staff):
    report(game)
    said = Utterance.objects.get(room=game.room, talk=INSULT)
    services.hide(room=game.room, n=said.n, by=User.objects.get())
    erasure.erase(participant=game.people[SELLER])
    assert list(Report.objects.values_list("note", "reporter")) == [("", None)]
    assert not HiddenWords.objects.exists()


def test_signing_in_leaves_neither_a_report_nor_a_bar_behind(game):
    report(game)
    guest = game.people[B1]
    services.bar(participant=guest, days=7)
    account = User.objects.create_user("again")
    own = rooms.person()
    own.account = account
    own.save()
    accounts.bring_along(account=account, anonymous=guest)
    own.refresh_from_db()
    assert own.barred_until > timezone.now()
    assert Report.objects.get().reported == own
