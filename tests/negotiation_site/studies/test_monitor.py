"""A researcher who watches a study sees who needs help, can help, and is the only one who can."""

from datetime import timedelta

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from markets.engine.scenarios import decode_scenario
from markets.models import Seat, SeatKind
from negotiation_site.studies import conduct, monitor, monitor_pages, play
from negotiation_site.studies.design import Matching, Side
from negotiation_site.studies.models import (
    Mode,
    Participation,
    State,
    Study,
    StudyEvent,
    StudyNotice,
    StudyStatus,
)
from tests.negotiation_site.studies import people
from tests.negotiation_site.studies.test_bonus import researcher, signed_in

pytestmark = pytest.mark.django_db


@pytest.fixture
def study() -> Study:
    made = people.study(people.design(people.condition("pair", matching=Matching.PERSON), people.condition("alone")))
    made.created_by = researcher("ada")
    made.save()
    return made


def pair(study: Study) -> tuple[Participation, Participation]:
    """Two people at one table: seller and buyer."""
    way = people.link(study)
    entered = [people.to(State.PLAYING, people.enter(way, person=f"p-{number}")) for number in range(4)]
    two = [one for one in entered if one.condition == "pair"]
    for one in two:
        conduct.go_on(one)
    two = [conduct.refresh(one) for one in two]
    return (two[0], two[1]) if two[0].role == "seller" else (two[1], two[0])


def address(name: str, study: Study, *more: str) -> str:
    return reverse(name, args=[study.slug, *more])


def test_it_shows_who_is_where_and_who_owes_a_move(study: Study) -> None:
    seller, buyer = pair(study)
    conduct.log_page(seller, kind="paste", detail="12 characters")
    seen = monitor.snapshot(study, mode=Mode.LIVE, now=timezone.now())
    assert seen.states == {State.PLAYING: 4}
    [table] = seen.tables
    assert set(table.people) == {seller.public_id, buyer.public_id}
    assert table.turn_of in table.people
    assert table.deadline_at is not None
    by_id = {one.public_id: one for one in seen.people}
    assert (by_id[seller.public_id].pastes, by_id[buyer.public_id].pastes) == (1, 0)
    assert sorted(one.at_table for one in seen.people) == [False, False, True, True]
    assert {(cell.condition, cell.role): cell.inside for cell in seen.cells} == {
        (condition, role): 1 for condition in ("pair", "alone") for role in ("buyer", "seller")
    }
    assert sum(cell.seated for cell in seen.cells) == 2


def test_whoever_was_not_heard_of_stands_first(study: Study) -> None:
    quiet, loud = (people.enter(people.link(study)) for _person in range(2))
    Participation.objects.filter(pk=quiet.pk).update(last_seen_at=timezone.now() - timedelta(minutes=2))
    seen = monitor.snapshot(study, mode=Mode.LIVE, now=timezone.now())
    assert [(one.public_id, one.silent) for one in seen.people] == [(quiet.public_id, True), (loud.public_id, False)]
    assert (seen.silent, seen.inside) == (1, 2)


def test_money_that_is_not_known_is_counted_and_not_added(study: Study) -> None:
    way = people.link(study)
    alone = next(one for one in (people.enter(way) for _person in range(4)) if _agree(one).condition == "alone")
    people.to(State.FINISHED, alone)
    [money] = monitor.snapshot(study, mode=Mode.LIVE, now=timezone.now()).money
    inside = Participation.objects.filter(study=study).exclude(pk=alone.pk).count()
    assert (money.paid_cents, money.owed_cents, money.unknown) == (0, 200, inside)
    assert money.fees_inside_cents == 200 * inside


def _agree(one: Participation) -> Participation:
    conduct.agree(one)
    return conduct.refresh(one)


def test_the_page_and_its_live_part_tell_no_private_value(study: Study) -> None:
    seller, _buyer = pair(study)
    played = play.current(seller)
    assert played is not None
    scenario = decode_scenario(played.room.scenario)
    client = signed_in(study.created_by)
    for name in ("study-monitor", "study-monitor-live"):
        text = client.get(address(name, study)).content.decode()
        assert "p-0" in text
        for cents in (scenario.seller_values_cents[0], scenario.buyer_values_cents[0][0]):
            assert f"{cents // 100}.{cents % 100:02d}" not in text


def test_a_message_more_time_and_an_agent_are_given_and_noted(study: Study) -> None:
    seller, buyer = pair(study)
    ada = study.created_by
    client = signed_in(ada)
    act = address("study-monitor-act", study, seller.public_id)
    client.post(act, {"act": "message", "text": "Are you there?"})
    assert StudyNotice.objects.get().participation == seller
    before = Seat.objects.filter(room=play.current(seller).room_id, deadline_at__isnull=False).get().deadline_at
    due = seller if play.seat_of(play.current(seller)).deadline_at else buyer
    client.post(address("study-monitor-act", study, due.public_id), {"act": "extend", "minutes": "5"})
    assert Seat.objects.filter(room=play.current(due).room_id, deadline_at__isnull=False).get().deadline_at > before
    page = client.get(address("study-monitor-person", study, seller.public_id)).content.decode()
    for final in ("replace", "end"):  # What cannot be taken back is behind a question.
        assert '<details class="ask">' in page
        assert f'value="{final}"' in page
        assert page.split(f'value="{final}"')[0].rsplit("<details", 1)[1].startswith(' class="ask">')
    client.post(act, {"act": "replace"})
    chairs = dict(Seat.objects.filter(room=play.current(buyer).room_id).values_list("party", "kind"))
    assert chairs["seller"] == SeatKind.AGENT
    assert conduct.refresh(seller).state == State.TIMED_OUT
    assert conduct.refresh(buyer).state == State.PLAYING
    client.post(address("study-monitor-act", study, buyer.public_id), {"act": "end"})
    assert conduct.refresh(buyer).outcome == "ended_by_staff"
    noted = StudyEvent.objects.filter(kind__in=("message", "extend", "replace", "end")).order_by("pk")
    assert list(noted.values_list("kind", "actor__username")) == [
        (kind, "ada") for kind in ("message", "extend", "replace", "end")
    ]
    assert "Are you there?" in client.get(address("study-monitor-person", study, seller.public_id)).content.decode()


def test_an_act_that_cannot_be_done_is_said_and_changes_nothing(study: Study) -> None:
    somebody = people.enter(people.link(study))
    client = signed_in(study.created_by)
    act = address("study-monitor-act", study, somebody.public_id)
    for form in ({"act": "replace"}, {"act": "extend", "minutes": "0"}, {"act": "message", "text": " "}):
        assert client.post(act, form, follow=True).status_code == 200
    assert client.post(act, {"act": "pay"}).status_code == 400
    assert not StudyEvent.objects.filter(kind__in=monitor.STAFF_KINDS, participation=somebody).exists()
    assert conduct.refresh(somebody).state == State.ENTERED


def test_pausing_closing_and_telling_everybody_are_noted(study: Study) -> None:
    client = signed_in(study.created_by)
    client.post(address("study-monitor-status", study), {"status": "paused"})
    client.post(address("study-monitor-status", study), {"status": "closed"})
    client.post(address("study-monitor-say", study), {"text": "Thank you all."})
    study.refresh_from_db()
    assert study.status == StudyStatus.CLOSED
    kinds = StudyEvent.objects.filter(actor=study.created_by).order_by("pk").values_list("kind", "detail")
    assert list(kinds) == [("status", "paused"), ("status", "closed"), ("message", "Thank you all.")]
    assert client.post(address("study-monitor-status", study), {"status": "gone"}).status_code == 400


def test_nobody_else_watches_or_acts(study: Study) -> None:
    somebody = people.enter(people.link(study))
    looking = [
        address("study-monitor", study),
        address("study-monitor-live", study),
        address("study-monitor-person", study, somebody.public_id),
    ]
    acting = [
        (address("study-monitor-act", study, somebody.public_id), {"act": "end"}),
        (address("study-monitor-say", study), {"text": "hello"}),
        (address("study-monitor-status", study), {"status": "closed"}),
    ]
    participant = Client()
    link = people.link(study)
    participant.post(reverse("study-join", args=[link.token]))
    others = (
        (signed_in(researcher("bob")), 404),
        (signed_in(User.objects.create_user("member")), 403),
        (Client(), 302),
        (participant, 302),
    )
    before = StudyEvent.objects.count()
    for client, status in others:
        assert {client.get(each).status_code for each in looking} == {status}
        assert {client.post(each, form).status_code for each, form in acting} == {status}
    assert StudyEvent.objects.count() == before
    study.refresh_from_db()
    assert study.status == StudyStatus.OPEN


def test_a_participant_of_another_study_cannot_be_reached_through_one_s_own(study: Study) -> None:
    elsewhere = people.enter(people.link(people.study(people.design(people.condition(side=Side.BUYER)))))
    client = signed_in(study.created_by)
    assert client.get(address("study-monitor-person", study, elsewhere.public_id)).status_code == 404
    assert client.post(address("study-monitor-act", study, elsewhere.public_id), {"act": "end"}).status_code == 404
    assert conduct.refresh(elsewhere).state == State.ENTERED


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (-3, "0 seconds"),
        (0, "0 seconds"),
        (1, "1 second"),
        (119, "119 seconds"),
        (1_514, "25 minutes"),
        (7_200, "2 hours"),
    ],
)
def test_a_silence_is_told_in_a_unit_that_can_be_read(seconds: int, words: str) -> None:
    now = timezone.now()
    assert monitor_pages._ago(now - timedelta(seconds=seconds), now) == words
