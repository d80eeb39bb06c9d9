"""What the staff does to a participation is noted with who did it, and strands nobody."""

from datetime import timedelta

import pytest
from django.utils import timezone

from markets.models import SeatKind
from negotiation_site.studies import clock, conduct, pay, play
from negotiation_site.studies.conduct import StudyError
from negotiation_site.studies.design import Clocks, Dropout, Matching, Waiting
from negotiation_site.studies.models import Participation, State
from tests.negotiation_site.studies.people import agents_answer, condition, design, enter, link, study, to

pytestmark = pytest.mark.django_db


@pytest.fixture
def staff(django_user_model):
    return django_user_model.objects.create_user("staff", is_staff=True)


def at_table(**changes) -> Participation:
    """Somebody alone whose move it is."""
    somebody = to(State.PLAYING, enter(link(study(design(**changes)))))
    conduct.go_on(somebody)
    agents_answer()
    return conduct.refresh(somebody)


def pair(**changes) -> tuple[Participation, Participation]:
    """A seller and a buyer at one table."""
    way = link(study(design(condition("pair", matching=Matching.PERSON), **changes)))
    one, two = (to(State.PLAYING, enter(way)) for _person in range(2))
    conduct.go_on(one)
    conduct.go_on(two)
    return (one, two) if one.role == "seller" else (two, one)


def acts(somebody: Participation) -> list[tuple[str, str]]:
    return list(somebody.study.events.exclude(actor=None).values_list("kind", "actor__username"))


def test_more_time_is_given_at_the_table_and_for_the_page(staff):
    somebody = at_table(clocks=Clocks(move_s=60, idle_s=60))
    before = play.seat_of(play.current(somebody)).deadline_at
    conduct.extend(somebody, minutes=5, actor=staff)
    assert play.seat_of(play.current(somebody)).deadline_at == before + timedelta(minutes=5)
    clock.sweep(timezone.now() + timedelta(minutes=4))
    assert conduct.refresh(somebody).state == State.PLAYING
    clock.sweep(timezone.now() + timedelta(minutes=8))
    assert conduct.refresh(somebody).state == State.TIMED_OUT
    assert acts(somebody) == [("extend", "staff")]
    for minutes in (0, 500):
        with pytest.raises(StudyError, match="between 1 and 240"):
            conduct.extend(somebody, minutes=minutes, actor=staff)
    with pytest.raises(StudyError, match="is over"):
        conduct.extend(somebody, minutes=5, actor=staff)


def test_more_time_is_given_to_somebody_who_waits(staff):
    pairs = condition("pair", matching=Matching.PERSON)
    somebody = to(State.PLAYING, enter(link(study(design(pairs, waiting=Waiting(limit_s=60, exit_after_s=30))))))
    conduct.go_on(somebody)
    conduct.extend(somebody, minutes=5, actor=staff)
    later = timezone.now() + timedelta(seconds=90)
    conduct.heard_of(somebody, now=later)
    clock.sweep(later)
    assert conduct.refresh(somebody).state == State.WAITING


@pytest.mark.parametrize("dropout", list(Dropout))
def test_who_is_ended_is_paid_and_the_other_side_goes_on(staff, dropout):
    seller, buyer = pair(clocks=Clocks(dropout=dropout))
    conduct.end(seller, actor=staff)
    seller, buyer = conduct.refresh(seller), conduct.refresh(buyer)
    assert (seller.state, seller.outcome) == (State.RETURNED, "ended_by_staff")
    assert seller.completion_code
    agents_answer()
    other = to(State.FINISHED, buyer)
    assert other.outcome == ("finished" if dropout is Dropout.AGENT else "partner_left")
    assert pay.amounts(seller).fee_cents == pay.amounts(other).fee_cents == 200
    assert pay.amounts(conduct.refresh(seller)).bonus_cents is not None
    assert acts(seller) == [("end", "staff")]
    with pytest.raises(StudyError, match="is over"):
        conduct.end(seller, actor=staff)


def test_an_agent_plays_on_for_somebody_who_is_silent(staff):
    seller, buyer = pair()
    conduct.replace(seller, actor=staff)
    played = play.current(buyer)
    assert (played.partner_replaced_at is not None, played.replaced_at) == (True, None)
    assert play.seat_of(seller.rounds.get()).kind == SeatKind.AGENT
    assert conduct.refresh(seller).outcome == "timed_out"
    assert acts(seller) == [("replace", "staff")]
    with pytest.raises(StudyError, match="at no table"):
        conduct.replace(seller, actor=staff)
    agents_answer()
    assert to(State.FINISHED, buyer).outcome == "finished"
    own = seller.rounds.get()
    assert pay.surplus_cents(own) == 0  # What the agent gained is not theirs.


def test_a_message_needs_words_and_is_noted(staff):
    somebody = at_table()
    with pytest.raises(StudyError, match="Write a message"):
        conduct.say(somebody.study, "  ", actor=staff)
    notice = conduct.say(somebody.study, "Please go on.", actor=staff, participation=somebody)
    assert (notice.participation_id, notice.sent_by) == (somebody.pk, staff)
    assert acts(somebody) == [("message", "staff")]


def test_a_paused_study_lets_nobody_begin_a_round_and_those_at_a_table_finish():
    from negotiation_site.studies import authoring

    somebody = at_table(rounds=2)
    authoring.set_status(somebody.study, "paused", actor=None)
    played = play.current(somebody)
    play.leave(played, now=timezone.now())
    somebody = conduct.refresh(somebody)
    with pytest.raises(StudyError, match="paused just now"):
        conduct.go_on(somebody)
    authoring.set_status(somebody.study, "open", actor=None)
    conduct.go_on(somebody)
    assert conduct.refresh(somebody).round == 2
