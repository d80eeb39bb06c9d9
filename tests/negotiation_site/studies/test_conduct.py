"""A participation goes through its states in order, once, and ends with a code, a payment and a count of one."""

from datetime import timedelta

import pytest
from django.utils import timezone

from markets.engine.protocol import AcceptOffer, MakeOffer
from markets.models import Episode, Participant, Room, RoomStatus, Seat, SeatKind
from negotiation_site.studies import clock, conduct, pay, play
from negotiation_site.studies.conduct import StudyError
from negotiation_site.studies.design import (
    AfterWait,
    Clocks,
    Completion,
    Dropout,
    Idle,
    Matching,
    Partners,
    Practice,
    Waiting,
)
from negotiation_site.studies.models import (
    LinkKind,
    Mode,
    Participation,
    Payment,
    RoundOutcome,
    State,
    StudyAnswer,
    StudyRound,
    StudyStatus,
)
from tests.negotiation_site.studies import people
from tests.negotiation_site.studies.people import act, agents_answer, condition, design, enter, link, step, study, to

pytestmark = pytest.mark.django_db


def refused(code: str, call, *args, **kwargs) -> None:
    """The call is refused with this code."""
    with pytest.raises(StudyError) as error:
        call(*args, **kwargs)
    assert error.value.code == code


def people_design(**changes):
    """Two people with each other."""
    pair = condition("pair", matching=changes.pop("matching", Matching.PERSON))
    return design(pair, **changes)


def pair_at_table(**changes) -> tuple[Participation, Participation]:
    """A seller and a buyer who sit at the same table."""
    way = link(study(people_design(**changes)))
    one, two = (to(State.PLAYING, enter(way)) for _person in range(2))
    conduct.go_on(one)
    conduct.go_on(two)
    one, two = conduct.refresh(one), conduct.refresh(two)
    assert play.current(one).room_id == play.current(two).room_id
    return (one, two) if one.role == "seller" else (two, one)


def test_somebody_walks_through_the_whole_study_and_is_paid_from_the_log():
    way = link(study(design(rounds=2, practice=Practice(agent="conceder"))))
    somebody = to(State.PRACTICE, enter(way))
    somebody = to(State.SURVEY, somebody)
    assert somebody.completion_code == ""
    step(somebody)
    somebody = conduct.refresh(somebody)
    assert (somebody.state, somebody.outcome, somebody.round) == (State.FINISHED, "finished", 2)
    assert somebody.completion_code
    assert list(somebody.rounds.values_list("number", "outcome", "surplus_cents")) == [
        (0, "no_deal", 0),
        (1, "no_deal", 0),
        (2, "no_deal", 0),
    ]
    assert Payment.objects.filter(participation=somebody).values_list("fee_cents", "bonus_cents").get() == (200, 0)
    assert dict(somebody.answers.filter(part="survey").values_list("question", "answer")) == {
        "who": "An AI",
        "remark": "",
    }


def test_a_deal_is_exchanged_into_a_bonus():
    somebody = to(State.PLAYING, enter(link(study(design(condition(side=people.Side.BUYER))))))
    conduct.go_on(somebody)
    own = play.current(somebody)
    agents_answer()
    view = Room.objects.get(pk=own.room_id)
    if view.version == 0:
        act(somebody, MakeOffer(product=0, price_cents=100))
        agents_answer()
    act(somebody, AcceptOffer(offer_id=_standing(own)))
    somebody = to(State.FINISHED, somebody)
    played = somebody.rounds.get(number=1)
    episode = Episode.objects.get(room=own.room_id)
    gain = episode.seats.get(party="buyer-1").surplus_cents
    assert (played.outcome, played.surplus_cents) == (RoundOutcome.DEAL, gain)
    assert pay.amounts(somebody).bonus_cents == max(0, round(gain * 0.1))


def _standing(played: StudyRound) -> int:
    from markets import selectors

    view = selectors.seat_view(play.seat_of(played))
    return next(offer.offer_id for offer in view.observation.threads[0].standing if not offer.mine)


def test_steps_that_come_twice_or_out_of_turn_change_nothing():
    somebody = enter(link(study()))
    conduct.read_instructions(somebody)
    conduct.answer_survey(somebody, {"who": "1"})
    conduct.go_on(somebody)
    assert conduct.refresh(somebody).state == State.ENTERED
    conduct.agree(somebody)
    place = conduct.refresh(somebody)
    conduct.agree(somebody)
    again = conduct.refresh(somebody)
    assert (again.condition, again.role, again.slot) == (place.condition, place.role, place.slot)
    playing = to(State.PLAYING, somebody)
    for _click in range(2):
        conduct.go_on(playing)
    assert playing.rounds.count() == 1


def test_a_quiz_that_is_not_passed_within_its_tries_screens_out_with_a_code_of_its_own():
    somebody = to(State.QUIZ, enter(link(study())))
    refused("unanswered", conduct.answer_quiz, somebody, {})
    first = conduct.answer_quiz(somebody, {"binds": 0}, attempt=1)
    assert (first.passed, first.tries_left, first.wrong[0].explanation) == (False, 1, "Talk is free.")
    conduct.answer_quiz(somebody, {"binds": 0}, attempt=1)  # The double click of the first try.
    assert conduct.refresh(somebody).state == State.QUIZ
    conduct.answer_quiz(somebody, {"binds": 0}, attempt=2)
    somebody = conduct.refresh(somebody)
    assert (somebody.state, somebody.outcome, somebody.slot) == (State.FAILED_QUIZ, "screened_out", None)
    assert somebody.completion_code not in ("", to(State.FINISHED, enter(somebody.link)).completion_code)
    assert StudyAnswer.objects.filter(participation=somebody, part="quiz").count() == 2
    assert pay.amounts(somebody).total_cents == 0


def test_a_second_try_of_the_same_person_is_refused_and_a_second_device_goes_on():
    way = link(study())
    first = enter(way, person="pid-1", session="s-1")
    second = enter(way, person="pid-1", session="s-2")
    assert second.pk == first.pk
    assert second.device != first.device
    to(State.FINISHED, second)
    refused("taken_part", enter, way, person="pid-1")
    assert Participation.objects.count() == 1
    assert enter(way, person="pid-2").pk != first.pk


def test_a_one_time_link_lets_in_one_person():
    way = link(study(), LinkKind.ONE_TIME)
    first = enter(way)
    refused("link_used", enter, way)
    again = conduct.resume(token=first.resume_token, device="another")
    assert (again.pk, again.device) == (first.pk, "another")
    refused("unknown_link", conduct.resume, token="nobody", device="x")


@pytest.mark.parametrize(
    ("status", "code"),
    [(StudyStatus.DRAFT, "not_open"), (StudyStatus.PAUSED, "paused"), (StudyStatus.CLOSED, "closed")],
)
def test_a_study_that_is_not_open_lets_nobody_in_and_says_why(status, code):
    made = study(status=StudyStatus.DRAFT)
    way = link(made)
    type(made).objects.filter(pk=made.pk).update(status=status)
    refused(code, enter, way)


def test_a_study_that_has_enough_people_takes_no_more_until_one_drops_out():
    way = link(study(design(participants=2)))
    first = to(State.CONSENTED, enter(way))
    enter(way)
    refused("full", enter, way)
    conduct.withdraw(first)
    assert enter(way).state == State.ENTERED


def test_the_version_is_frozen_by_the_first_participant_and_not_by_a_preview():
    made = study()
    version = conduct.newest_version(made)
    from markets.engine.protocol import Role

    conduct.enter_preview(version=version, condition="linear", role=Role.BUYER, device="d")
    assert conduct.newest_version(made).frozen_at is None
    enter(link(made))
    assert conduct.newest_version(made).frozen_at is not None


def test_a_pilot_is_apart_from_the_study_and_its_games_are_nobodys_data():
    made = study(status=StudyStatus.PILOT)
    way = link(made)
    somebody = to(State.FINISHED, enter(way, person="pid-1"))
    assert somebody.mode == Mode.PILOT
    assert set(Episode.objects.values_list("consent_scope", flat=True)) == {"private"}
    from negotiation_site.studies import authoring

    authoring.set_status(made, StudyStatus.OPEN, actor=None)
    again = to(State.FINISHED, enter(way, person="pid-1"))
    assert (again.mode, again.assigned_slot) == (Mode.LIVE, 0)
    assert Episode.objects.filter(consent_scope="research").count() == 1


def test_nobody_who_declines_has_a_place_in_the_design():
    somebody = enter(link(study()))
    conduct.decline(somebody)
    somebody = conduct.refresh(somebody)
    assert (somebody.state, somebody.outcome, somebody.condition) == (State.RETURNED, "declined", "")


# --- Two people ---------------------------------------------------------------------------------------


def test_two_people_are_matched_on_the_same_draw_and_both_go_on():
    seller, buyer = pair_at_table(rounds=2)
    act(buyer, MakeOffer(product=0, price_cents=4_000)) if play.seat_of(
        play.current(buyer)
    ).due_position is not None else act(seller, MakeOffer(product=0, price_cents=4_000))
    people.act(seller, people.Leave())
    seller, buyer = conduct.refresh(seller), conduct.refresh(buyer)
    assert (seller.state, buyer.state) == (State.PLAYING, State.PLAYING)
    first = seller.rounds.get(number=1)
    assert first.partner_id == buyer.pk
    assert (first.scenario_set, first.scenario_number) == tuple(
        buyer.rounds.values_list("scenario_set", "scenario_number").get(number=1)
    )
    conduct.go_on(seller)
    conduct.go_on(buyer)
    assert seller.rounds.get(number=2).partner_id == buyer.pk


def test_strangers_never_meet_twice():
    way = link(study(people_design(rounds=2, partners=Partners.STRANGER)))
    four = [to(State.PLAYING, enter(way)) for _person in range(4)]
    for _round in range(2):
        for somebody in four:
            conduct.go_on(somebody)
        for somebody in four:
            somebody = conduct.refresh(somebody)
            if somebody.state == State.PLAYING and play.current(somebody) is not None and somebody.role == "seller":
                act(somebody, people.Leave())
        for somebody in four:
            conduct.refresh(somebody)
    met = list(StudyRound.objects.values_list("participation", "partner"))
    assert len(met) == 8
    assert len(set(met)) == 8


@pytest.mark.parametrize("dropout", [Dropout.AGENT, Dropout.END])
def test_a_partner_who_falls_silent_strands_nobody(dropout):
    seller, buyer = pair_at_table(clocks=Clocks(move_s=60, dropout=dropout))
    quiet = next(each for each in (seller, buyer) if play.seat_of(play.current(each)).deadline_at is not None)
    other = buyer if quiet.pk == seller.pk else seller
    later = timezone.now() + timedelta(seconds=61)
    conduct.heard_of(other, now=later)
    clock.sweep(later)
    quiet, other = conduct.refresh(quiet, now=later), conduct.refresh(other, now=later)
    assert (quiet.state, quiet.outcome) == (State.TIMED_OUT, "timed_out")
    if dropout is Dropout.AGENT:
        assert other.state == State.PLAYING
        room = Room.objects.get(pk=play.current(other).room_id)
        assert room.status == RoomStatus.LIVE
        assert Seat.objects.get(room=room, participant=quiet.participant).kind == SeatKind.AGENT
        agents_answer()
        other = to(State.FINISHED, other)
        assert other.outcome == "finished"
        assert pay.amounts(other).bonus_cents is not None
    else:
        assert (other.state, other.outcome) == (State.SURVEY, "partner_left")
        other = to(State.FINISHED, other)
        assert (other.outcome, pay.amounts(other).fee_cents) == ("partner_left", 200)
    assert (pay.amounts(conduct.refresh(quiet)).total_cents, quiet.slot) == (0, None)


def test_who_lets_the_time_run_out_may_go_on_where_the_design_says_so():
    way = link(study(design(clocks=Clocks(move_s=60, idle=Idle.NEXT_ROUND), rounds=2)))
    somebody = to(State.PLAYING, enter(way))
    conduct.go_on(somebody)
    agents_answer()
    later = timezone.now() + timedelta(seconds=61)
    conduct.heard_of(somebody, now=later)
    clock.sweep(later)
    somebody = conduct.refresh(somebody, now=later)
    assert (somebody.state, somebody.rounds.get(number=1).outcome) == (State.PLAYING, RoundOutcome.SILENT)


@pytest.mark.parametrize(
    ("matching", "after", "state", "outcome"),
    [
        (Matching.PERSON, AfterWait.DISMISS, State.RETURNED, "no_partner"),
        (Matching.PERSON, AfterWait.AGENT, State.PLAYING, ""),
        (Matching.MIXED, AfterWait.DISMISS, State.PLAYING, ""),
    ],
)
def test_nobody_waits_longer_than_the_limit(matching, after, state, outcome):
    waiting = Waiting(limit_s=60, exit_after_s=30, after=after, pay_cents=75)
    somebody = to(State.PLAYING, enter(link(study(people_design(matching=matching, waiting=waiting)))))
    conduct.go_on(somebody)
    somebody = conduct.refresh(somebody)
    assert somebody.state == State.WAITING
    early = timezone.now() + timedelta(seconds=50)
    conduct.heard_of(somebody, now=early)
    clock.sweep(early)
    assert conduct.refresh(somebody).state == State.WAITING
    late = timezone.now() + timedelta(seconds=61)
    conduct.heard_of(somebody, now=late)
    clock.sweep(late)
    somebody = conduct.refresh(somebody)
    assert (somebody.state, somebody.outcome) == (state, outcome)
    if outcome:
        assert pay.amounts(somebody).total_cents == 75


def test_the_way_out_of_the_waiting_room_opens_when_it_was_said_to():
    waiting = Waiting(limit_s=60, exit_after_s=30, pay_cents=75)
    somebody = to(State.PLAYING, enter(link(study(people_design(waiting=waiting)))))
    conduct.go_on(somebody)
    refused("too_early", conduct.waiting_exit, somebody)
    conduct.waiting_exit(somebody, now=timezone.now() + timedelta(seconds=31))
    somebody = conduct.refresh(somebody)
    assert (somebody.outcome, pay.amounts(somebody).total_cents) == ("no_partner", 75)


def test_a_closed_tab_is_matched_with_nobody():
    way = link(study(people_design()))
    one = to(State.PLAYING, enter(way))
    conduct.go_on(one)
    conduct.heard_of(one, now=timezone.now() - timedelta(seconds=30))
    two = to(State.PLAYING, enter(way))
    conduct.go_on(two)
    assert conduct.refresh(two).state == State.WAITING
    conduct.heard_of(one)
    assert conduct.look_for_partner(two)


# --- Leaving ------------------------------------------------------------------------------------------


def test_who_withdraws_is_erased_and_counted_and_the_other_side_goes_on():
    seller, buyer = pair_at_table()
    person = seller.participant_id
    conduct.withdraw(seller)
    seller, buyer = conduct.refresh(seller), conduct.refresh(buyer)
    assert (seller.state, seller.outcome, seller.participant_id) == (State.WITHDREW, "withdrew", None)
    assert not Participant.objects.filter(pk=person).exists()
    assert not seller.events.exists()
    assert not seller.answers.exists()
    assert play.current(buyer) is not None
    agents_answer()
    assert to(State.FINISHED, buyer).outcome == "finished"


def test_a_withdrawal_closes_finished_games_to_everybody():
    somebody = to(State.FINISHED, enter(link(study()), person="pid-9"))
    assert Episode.objects.get().consent_scope == "research"
    conduct.withdraw(somebody)
    assert Episode.objects.get().consent_scope == "private"
    somebody = conduct.refresh(somebody)
    assert (somebody.platform_person, somebody.completion_code) == ("", "")


def test_somebody_whose_page_is_gone_times_out():
    somebody = to(State.QUIZ, enter(link(study(design(clocks=Clocks(idle_s=60))))))
    clock.sweep(timezone.now() + timedelta(seconds=59))
    assert conduct.refresh(somebody).state == State.QUIZ
    clock.sweep(timezone.now() + timedelta(seconds=61))
    assert conduct.refresh(somebody).outcome == "timed_out"


def test_codes_say_the_outcome_and_may_be_each_persons_own():
    completion = Completion(codes={"finished": "DONE1"}, per_person=True)
    way = link(study(design(completion=completion)))
    one, two = (to(State.FINISHED, enter(way)).completion_code for _person in range(2))
    assert one != two
    assert {one[:6], two[:6]} == {"DONE1-"}


def test_pages_log_only_after_consent_and_never_what_was_pasted():
    somebody = enter(link(study()))
    conduct.log_page(somebody, kind="paste", detail="42 characters")
    assert not somebody.events.filter(kind="paste").exists()
    somebody = to(State.CONSENTED, somebody)
    conduct.log_page(somebody, kind="paste", detail="42 characters")
    conduct.log_page(somebody, kind="paste", detail="x" * 200)
    assert list(somebody.events.filter(kind="paste").values_list("detail", flat=True)) == ["42 characters", ""]
    refused("unknown_kind", conduct.log_page, somebody, kind="keys")


def test_open_data_opens_when_the_study_is_closed_because_others_meet_the_same_draws():
    from negotiation_site.studies import authoring
    from negotiation_site.studies.design import Consent

    made = study(design(consent=Consent(text="Yes?", version="1", scope="ask")))
    way = link(made)
    for scope in ("public", "research", "public"):
        somebody = enter(way)
        refused("choose_scope", conduct.agree, somebody)
        conduct.agree(somebody, scope=scope)
        to(State.FINISHED, somebody)
    gone = somebody
    assert set(Episode.objects.values_list("consent_scope", flat=True)) == {"research"}
    conduct.withdraw(gone)
    authoring.set_status(made, StudyStatus.CLOSED, actor=None)
    assert sorted(Episode.objects.values_list("consent_scope", flat=True)) == ["private", "public", "research"]
    made.refresh_from_db()
    assert authoring.may_become(made) == ()  # No page offers what would be refused.
    with pytest.raises(authoring.AuthoringError, match="tell the values"):
        authoring.set_status(made, StudyStatus.OPEN, actor=None)


def test_open_data_waits_for_whoever_is_inside_when_the_study_is_closed():
    from negotiation_site.studies import authoring
    from negotiation_site.studies.design import Consent

    made = study(design(consent=Consent(text="Yes?", version="1", scope="public")))
    way = link(made)
    done, inside = enter(way), enter(way)
    for somebody in (done, inside):
        conduct.agree(somebody)
    to(State.FINISHED, done)
    authoring.set_status(made, StudyStatus.CLOSED, actor=None)
    clock.sweep(timezone.now())
    assert set(Episode.objects.values_list("consent_scope", flat=True)) == {"research"}
    to(State.FINISHED, inside)
    clock.sweep(timezone.now())
    assert set(Episode.objects.values_list("consent_scope", flat=True)) == {"public"}


def test_a_study_whose_games_stayed_closed_can_be_opened_again():
    from negotiation_site.studies import authoring

    made = study(design())
    somebody = enter(link(made))
    conduct.agree(somebody)
    to(State.FINISHED, somebody)
    authoring.set_status(made, StudyStatus.CLOSED, actor=None)
    made.refresh_from_db()
    assert authoring.may_become(made) == (StudyStatus.OPEN,)
    assert authoring.set_status(made, StudyStatus.OPEN, actor=None).status == StudyStatus.OPEN
