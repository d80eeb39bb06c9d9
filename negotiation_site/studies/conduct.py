"""The life of a participation: its single writer.

Every step locks the study's row or the participation's, checks that the step may follow (`NEXT`), writes, notes
an event and returns. Refusals raise `StudyError` with a sentence for whoever tried and change nothing. Steps that
come twice (a double click, two tabs) find the work done and say nothing.

Order of locks, everywhere: study, participation, room.

Staff's acts (`extend`, `end`, `replace`, `say`) are here too; each takes the `actor` and is noted with it.
"""

import hashlib
import hmac
import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from markets import erasure, identity, services
from markets.engine.protocol import Role
from markets.models import RoomStatus, Seat, SeatKind
from negotiation_site.studies import assignment, events, matching, pay, play
from negotiation_site.studies.design import (
    AfterWait,
    AnswerKind,
    Condition,
    Dropout,
    Idle,
    Matching,
    Outcome,
    QuizQuestion,
    SurveyQuestion,
)
from negotiation_site.studies.models import (
    ENDED,
    RELEASED,
    AnswerPart,
    LinkKind,
    Mode,
    Participation,
    RecruitmentLink,
    RoundOutcome,
    State,
    Study,
    StudyAnswer,
    StudyNotice,
    StudyRound,
    StudyStatus,
    StudyVersion,
)

NEXT: dict[str, tuple[str, ...]] = {
    State.ENTERED: (State.CONSENTED, State.RETURNED),
    State.CONSENTED: (State.QUIZ, State.PRACTICE, State.PLAYING),
    State.QUIZ: (State.PRACTICE, State.PLAYING, State.FAILED_QUIZ),
    State.PRACTICE: (State.PLAYING,),
    State.WAITING: (State.PLAYING, State.SURVEY, State.FINISHED),
    State.PLAYING: (State.WAITING, State.SURVEY, State.FINISHED),
    State.SURVEY: (State.FINISHED,),
    State.FINISHED: (),
    State.FAILED_QUIZ: (),
    State.RETURNED: (),
    State.TIMED_OUT: (),
    State.WITHDREW: (),
}
"""What may follow what. Falling silent, being ended by staff and withdrawing may follow anything that goes on."""
MAX_ANSWER_CHARS = 5_000
MAX_PARAMETER_CHARS = 120


class StudyError(Exception):
    """Something that cannot be done in a study; the sentence is for whoever tried."""

    def __init__(self, code: str, sentence: str) -> None:
        super().__init__(sentence)
        self.code = code
        self.sentence = sentence


@dataclass(frozen=True)
class Identity:
    """What a recruitment platform says of who comes."""

    person: str = ""
    """`PROLIFIC_PID` or `participant_label`."""
    study: str = ""
    session: str = ""

    @classmethod
    def of_query(cls, query: Mapping[str, str]) -> "Identity":
        """From the parameters of an address."""

        def read(*names: str) -> str:
            found = next((query[name] for name in names if query.get(name)), "")
            return "".join(character for character in found if character.isprintable())[:MAX_PARAMETER_CHARS].strip()

        return cls(person=read("PROLIFIC_PID", "participant_label"), study=read("STUDY_ID"), session=read("SESSION_ID"))

    @property
    def key(self) -> str:
        """Recognises the person again; empty for nobody in particular."""
        if not self.person:
            return ""
        return hmac.new(settings.SECRET_KEY.encode(), self.person.encode(), hashlib.sha256).hexdigest()


def new_device() -> str:
    """A key for a browser."""
    return secrets.token_urlsafe(12)


# --- Entering -----------------------------------------------------------------------------------------


def enter(
    *, link: RecruitmentLink, device: str, who: Identity | None = None, now: datetime | None = None
) -> Participation:
    """Let somebody in by a link. The same person of a platform gets their participation back, on this device."""
    now = now or timezone.now()
    who = who or Identity()
    with transaction.atomic():
        study = _locked_study(link.study_id)
        link = RecruitmentLink.objects.select_for_update().get(pk=link.pk)
        mode = study.mode
        known = _known(study, mode, who)
        if known is not None:
            return _take_over(known, device=device, now=now)
        refuse_entry(study, link)
        version = newest_version(study)
        _refuse_full(version, mode)
        if version.frozen_at is None:
            StudyVersion.objects.filter(pk=version.pk).update(frozen_at=now)
        if link.kind == LinkKind.ONE_TIME:
            RecruitmentLink.objects.filter(pk=link.pk).update(used_at=now)
        return _new(study, version, mode, now=now, link=link, device=device, who=who)


def enter_preview(
    *, version: StudyVersion, condition: str, role: Role, device: str, now: datetime | None = None
) -> Participation:
    """Let an author look around in a condition. Freezes nothing and is nobody's data."""
    now = now or timezone.now()
    with transaction.atomic():
        participation = _new(version.study, version, Mode.PREVIEW, now=now, device=device)
        participation.condition, participation.role = condition, role.value
        participation.save(update_fields=["condition", "role"])
    return participation


def entry_problem(link: RecruitmentLink, who: Identity) -> StudyError | None:
    """Why this person would not get in by this link just now; None where they would. Changes nothing."""
    study = link.study
    try:
        known = Participation.objects.filter(study=study, mode=study.mode, person_key=who.key).first()
        if who.key and known is not None:
            if known.ended:
                raise _taken_part(known)
            return None
        refuse_entry(study, link)
        _refuse_full(newest_version(study), study.mode)
    except StudyError as refused:
        return refused
    return None


def is_known(link: RecruitmentLink, who: Identity) -> bool:
    """Whether this person has entered before, on another device perhaps."""
    found = Participation.objects.filter(study=link.study_id, mode=link.study.mode, person_key=who.key)
    return bool(who.key) and found.exists()


def _taken_part(known: Participation) -> StudyError:
    if known.outcome == Outcome.DECLINED:
        return StudyError("taken_part", _("You chose not to take part in this study, and that holds. Thank you."))
    sentence = _("You have taken part in this study already, and once is all it can use. Thank you.")
    return StudyError("taken_part", sentence)


def refuse_entry(study: Study, link: RecruitmentLink) -> None:
    """Raise `StudyError` where a link does not lead in."""
    if link.closed_at is not None:
        raise StudyError("link_closed", _("This link has been closed."))
    if study.status == StudyStatus.PAUSED:
        raise StudyError("paused", _("This study is paused just now. Try again later."))
    if study.status == StudyStatus.CLOSED:
        raise StudyError("closed", _("This study is over. Thank you for your interest."))
    if not study.lets_in:
        raise StudyError("not_open", _("This study has not begun yet."))
    if link.kind == LinkKind.ONE_TIME and link.used_at is not None:
        raise StudyError(
            "link_used",
            _("This link lets in one person and has been used. If that was you, go on in the browser you began in."),
        )


def _refuse_full(version: StudyVersion, mode: Mode) -> None:
    wanted = version.parsed.participants
    if not wanted:
        return
    inside = Participation.objects.filter(study=version.study_id, mode=mode).exclude(state__in=RELEASED).count()
    if inside >= wanted:
        raise StudyError("full", _("Enough people take part already. Thank you for your interest."))


def _known(study: Study, mode: Mode, who: Identity) -> Participation | None:
    if not who.key:
        return None
    return (
        Participation.objects.select_for_update(of=("self",))
        .select_related("study", "version", "participant")
        .filter(study=study, mode=mode, person_key=who.key)
        .first()
    )


def _new(
    study: Study,
    version: StudyVersion,
    mode: Mode,
    *,
    now: datetime,
    device: str,
    link: RecruitmentLink | None = None,
    who: Identity | None = None,
) -> Participation:
    who = who or Identity()
    participation = Participation.objects.create(
        study=study,
        version=version,
        mode=mode,
        link=link,
        participant=identity.new_participant(),
        device=device,
        platform_person=who.person,
        platform_study=who.study,
        platform_session=who.session,
        person_key=who.key,
        entered_at=now,
        state_at=now,
        last_seen_at=now,
    )
    events.note(study, "entered", participation=participation, now=now)
    return participation


def _take_over(participation: Participation, *, device: str, now: datetime) -> Participation:
    """The same person again: here from now on, unless they are through."""
    if participation.ended:
        raise _taken_part(participation)
    if participation.device != device:
        participation.device = device
        participation.save(update_fields=["device"])
        events.note(participation.study, "took_over", participation=participation, now=now)
        transaction.on_commit(lambda: _nudge(participation))
    return participation


def resume(*, token: str, device: str, now: datetime | None = None) -> Participation:
    """Go on where one was, on another device, by one's own link."""
    now = now or timezone.now()
    with transaction.atomic():
        found = Participation.objects.filter(resume_token=token).first()
        if found is None or found.state == State.WITHDREW:
            raise StudyError("unknown_link", _("This link does not lead to anybody's place in a study."))
        participation = locked(found)
        if participation.device == device:
            return participation
        return _take_over(participation, device=device, now=now)


def come_back(participation: Participation, *, device: str, now: datetime | None = None) -> None:
    """Take one's place back from another device, in a browser that has held it before."""
    with transaction.atomic():
        _take_over(locked(participation), device=device, now=now or timezone.now())


def _nudge(participation: Participation) -> None:
    """Let the open page of the room look at once whether it is still the one."""
    played = play.current(participation)
    if played is not None:
        services.nudge(played.room)


# --- Consent, instructions, quiz --------------------------------------------------------------------


def agree(participation: Participation, *, scope: str = "", now: datetime | None = None) -> None:
    """Consent is given; the place in the design is drawn. `scope` is the choice where the design asks."""
    now = now or timezone.now()
    with transaction.atomic():
        _locked_study(participation.study_id)
        current = locked(participation)
        if current.state != State.ENTERED:
            return
        consent = current.version.parsed.consent
        if consent.scope == "ask" and scope not in ("research", "public"):
            raise StudyError("choose_scope", _("Choose who may use your data."))
        current.consent_scope = scope if consent.scope == "ask" else consent.scope
        current.consent_version, current.consented_at = consent.version, now
        if current.mode == Mode.PREVIEW:
            current.assigned_slot = 0
        else:
            place = assignment.assign(current.version, mode=current.mode)
            current.condition, current.role = place.condition, place.role.value
            current.slot = current.assigned_slot = place.slot
        _move(current, State.CONSENTED, now)


def decline(participation: Participation, *, now: datetime | None = None) -> None:
    """No consent: the participation ends without a place in the design."""
    now = now or timezone.now()
    with transaction.atomic():
        current = locked(participation)
        if current.state == State.ENTERED:
            _end(current, State.RETURNED, Outcome.DECLINED, now)


def read_instructions(participation: Participation, *, now: datetime | None = None) -> None:
    """The instructions are read: on to the quiz, or past it."""
    now = now or timezone.now()
    with transaction.atomic():
        current = locked(participation)
        if current.state != State.CONSENTED:
            return
        current.instructed_at = now
        if quiz_of(current):
            _move(current, State.QUIZ, now)
        else:
            _past_quiz(current, now)


def quiz_of(participation: Participation) -> tuple[QuizQuestion, ...]:
    """The questions that this participant is asked."""
    return participation.version.parsed.quiz.for_role(Role(participation.role))


@dataclass(frozen=True)
class QuizResult:
    """What a try at the quiz came to."""

    passed: bool
    wrong: tuple[QuizQuestion, ...]
    tries_left: int


def answer_quiz(
    participation: Participation, answers: Mapping[str, int], *, attempt: int | None = None, now: datetime | None = None
) -> QuizResult:
    """One try: `answers` are indices of options by question. `attempt`, where given, is the try the page was for.

    A try that was counted already (a double click) counts once.
    """
    now = now or timezone.now()
    with transaction.atomic():
        current = locked(participation)
        quiz = current.version.parsed.quiz
        stale = attempt is not None and attempt != current.quiz_tries + 1
        if current.state != State.QUIZ or stale:
            return QuizResult(current.quiz_passed_at is not None, (), max(0, quiz.tries - current.quiz_tries))
        questions = quiz_of(current)
        if any(answers.get(question.key) not in range(len(question.options)) for question in questions):
            raise StudyError("unanswered", _("Answer every question."))
        current.quiz_tries += 1
        StudyAnswer.objects.bulk_create(
            StudyAnswer(
                participation=current,
                part=AnswerPart.QUIZ,
                question=question.key,
                attempt=current.quiz_tries,
                answer=question.options[answers[question.key]],
                right=answers[question.key] == question.right,
                answered_at=now,
            )
            for question in questions
        )
        wrong = tuple(question for question in questions if answers[question.key] != question.right)
        left = max(0, quiz.tries - current.quiz_tries)
        if not wrong:
            current.quiz_passed_at = now
            _past_quiz(current, now)
        elif left:
            current.save()
        else:
            _end(current, State.FAILED_QUIZ, Outcome.SCREENED_OUT, now)
        return QuizResult(not wrong, wrong, left)


def _past_quiz(current: Participation, now: datetime) -> None:
    _move(current, State.PRACTICE if current.version.parsed.practice.agent else State.PLAYING, now)


# --- Playing ------------------------------------------------------------------------------------------


def go_on(participation: Participation, *, now: datetime | None = None) -> None:
    """The button between rounds: open the practice table, the next round, or the waiting room.

    Where a round is being played, or another click came first, nothing happens.
    """
    now = now or timezone.now()
    with transaction.atomic():
        study = _locked_study(participation.study_id)
        current = locked(participation)
        if study.status == StudyStatus.PAUSED and current.mode == Mode.LIVE and current.state not in ENDED:
            raise StudyError("paused", _("The study is paused just now. Stay on this page and try again in a while."))
        if play.current(current) is not None:
            return
        if current.state == State.PRACTICE:
            if current.rounds.filter(number=0).exists():
                _move(current, State.PLAYING, now)
                _next_round(current, now)
            else:
                play.open_practice(current, now=now)
        elif current.state == State.PLAYING:
            _next_round(current, now)


def _next_round(current: Participation, now: datetime) -> None:
    design = current.version.parsed
    if current.round >= design.rounds:
        _past_rounds(current, now)
    elif _partner_gone(current) and design.clocks.dropout is Dropout.END:
        current.outcome = Outcome.PARTNER_LEFT
        _past_rounds(current, now)
    elif meets_people(current):
        current.waiting_since = now
        _move(current, State.WAITING, now)
        _match(current, now)
    else:
        start_against_agent(current, now=now)


def look_for_partner(participation: Participation, *, now: datetime | None = None) -> bool:
    """Seat somebody who waits with a partner, if one is there now. The waiting page asks every few seconds."""
    now = now or timezone.now()
    if not matching.anybody(participation):
        return False  # No lock is taken where nobody could come: every waiting page asks.
    with transaction.atomic():
        _locked_study(participation.study_id)
        current = locked(participation)
        return current.state == State.WAITING and _match(current, now)


def _match(waiting: Participation, now: datetime) -> bool:
    other = matching.partner_for(waiting, now=now)
    if other is None:
        return False
    seller, buyer = (waiting, other) if waiting.role == Role.SELLER else (other, waiting)
    play.open_with_person(seller, buyer, numbers=(seller.round + 1, buyer.round + 1), now=now)
    for each in (seller, buyer):
        seated(each, now=now)
    return True


def meets_people(participation: Participation) -> bool:
    """Whether the next round waits for a person. In a preview nobody else is there, and an agent takes the seat."""
    if participation.mode == Mode.PREVIEW:
        return False
    condition = condition_of(participation)
    return condition.matching is not Matching.AGENT and not _partner_gone(participation)


def _partner_gone(participation: Participation) -> bool:
    """Whether the fixed partner of earlier rounds will not come again, so that its agent takes the seat."""
    partner = matching.fixed_partner(participation)
    return partner is not None and partner.ended


def condition_of(participation: Participation) -> Condition:
    """The condition that a participant is in."""
    return participation.version.parsed.condition(participation.condition)


def start_against_agent(current: Participation, *, now: datetime) -> StudyRound:
    """Seat somebody opposite the condition's agent. The caller holds the participation locked."""
    played = play.open_against_agent(current, current.round + 1, now=now)
    seated(current, now=now)
    return played


def seated(current: Participation, *, now: datetime) -> None:
    """A round has begun for somebody who is locked."""
    current.round += 1
    current.seated_at = current.seated_at or now
    current.waiting_since = None
    if current.state == State.PLAYING:
        current.save()
    else:
        _move(current, State.PLAYING, now)


def _past_rounds(current: Participation, now: datetime) -> None:
    if current.version.parsed.survey:
        _move(current, State.SURVEY, now)
    else:
        _finish(current, now)


def refresh(participation: Participation, *, now: datetime | None = None) -> Participation:
    """Take over what has happened in the room meanwhile, and what follows from it. Gives the row as it is now."""
    now = now or timezone.now()
    current = Participation.objects.select_related("study", "version", "participant").get(pk=participation.pk)
    played = play.current(current)
    if played is None or played.room.status != RoomStatus.ENDED:
        return current  # Nothing to take over, and no lock taken: pages ask every few seconds.
    with transaction.atomic():
        current = locked(participation)
        played = play.current(current)
        if played is not None:
            played.participation = current
            if play.settle(played, now=now):
                _after_round(current, played, now)
        return current


def _after_round(current: Participation, played: StudyRound, now: datetime) -> None:
    if current.state not in (State.PRACTICE, State.PLAYING):
        return
    clocks = current.version.parsed.clocks
    if played.outcome == RoundOutcome.SILENT and clocks.idle is Idle.END:
        events.note(current.study, "silent", participation=current, detail=f"round {played.number}", now=now)
        _end(current, State.TIMED_OUT, Outcome.TIMED_OUT, now)
    elif played.outcome == RoundOutcome.PARTNER_LEFT and clocks.dropout is Dropout.END:
        current.outcome = Outcome.PARTNER_LEFT
        _past_rounds(current, now)


def waiting_exit(participation: Participation, *, now: datetime | None = None) -> None:
    """The way out of the waiting room, once it is open: the study ends with part pay."""
    now = now or timezone.now()
    with transaction.atomic():
        _locked_study(participation.study_id)
        current = locked(participation)
        if current.state != State.WAITING or current.waiting_since is None:
            return
        opens = current.waiting_since + timedelta(seconds=current.version.parsed.waiting.exit_after_s)
        if now < opens:
            raise StudyError("too_early", _("Please wait a little longer: somebody may come any moment."))
        _end(current, State.RETURNED, Outcome.NO_PARTNER, now)


def waiting_over(participation: Participation, *, now: datetime | None = None) -> None:
    """Nobody came within the limit: an agent takes the seat, or the study ends with part pay."""
    now = now or timezone.now()
    since, limit = participation.waiting_since, timedelta(seconds=participation.version.parsed.waiting.limit_s)
    if since is None or now < since + limit:
        return
    with transaction.atomic():
        _locked_study(participation.study_id)
        current = locked(participation)
        design = current.version.parsed
        if current.state != State.WAITING or current.waiting_since is None:
            return
        if now < current.waiting_since + timedelta(seconds=design.waiting.limit_s):
            return
        if not matching.is_present(current, now=now):
            events.note(current.study, "silent", participation=current, detail="waiting", now=now)
            _end(current, State.TIMED_OUT, Outcome.TIMED_OUT, now)
        elif condition_of(current).matching is Matching.MIXED or design.waiting.after is AfterWait.AGENT:
            start_against_agent(current, now=now)
        else:
            _end(current, State.RETURNED, Outcome.NO_PARTNER, now)


# --- Silence ------------------------------------------------------------------------------------------


def fell_silent_at_table(played: StudyRound, *, now: datetime | None = None) -> bool:
    """A person's time for a move has run out. The other side goes on against an agent, or the room ends."""
    now = now or timezone.now()
    with transaction.atomic():
        current = locked(played.participation)
        seat = play.seat_of(played)
        overdue = seat.deadline_at is not None and seat.deadline_at <= now and seat.kind == SeatKind.PERSON
        if not overdue or seat.room.status != RoomStatus.LIVE:
            return False
        design = current.version.parsed
        played.participation = current
        if _person_opposite(played) and design.clocks.dropout is Dropout.AGENT and design.clocks.idle is Idle.END:
            events.note(current.study, "silent", participation=current, detail=f"round {played.number}", now=now)
            play.hand_over(played, now=now)
            if not current.ended:
                _end(current, State.TIMED_OUT, Outcome.TIMED_OUT, now)
            return True
        if services.expire_seat(seat=seat, now=now):
            if play.settle(played, now=now):
                _after_round(current, played, now)
            return True
        return False


def _person_opposite(played: StudyRound) -> bool:
    """Whether somebody would be stranded."""
    return (
        Seat.objects.filter(room=played.room_id, kind=SeatKind.PERSON, participant__isnull=False)
        .exclude(party=played.party)
        .exists()
    )


def fell_silent(participation: Participation, *, now: datetime | None = None) -> bool:
    """No page of this participant was heard of for longer than the design allows."""
    now = now or timezone.now()
    idle = timedelta(seconds=participation.version.parsed.clocks.idle_s)
    if now < participation.last_seen_at + idle:
        return False
    with transaction.atomic():
        current = locked(participation)
        extended = current.extended_until is not None and now < current.extended_until
        if current.ended or extended or now < current.last_seen_at + idle:
            return False
        _vacate(current, now)
        events.note(current.study, "silent", participation=current, detail=current.state, now=now)
        _end(current, State.TIMED_OUT, Outcome.TIMED_OUT, now)
        return True


def _vacate(current: Participation, now: datetime) -> None:
    """Leave the table, without stranding whoever sits opposite."""
    played = play.current(current)
    if played is None:
        return
    played.participation = current
    hands_over = current.version.parsed.clocks.dropout is Dropout.AGENT and _person_opposite(played)
    if not (hands_over and play.hand_over(played, now=now)):
        play.leave(played, now=now)
    play.settle(played, now=now)


# --- Survey and the end -------------------------------------------------------------------------------


def answer_survey(participation: Participation, answers: Mapping[str, str], *, now: datetime | None = None) -> None:
    """The survey is answered and with it the participation finished: record, payment and code in one transaction."""
    now = now or timezone.now()
    with transaction.atomic():
        current = locked(participation)
        if current.state != State.SURVEY:
            return
        read = {question.key: survey_answer(question, answers.get(question.key, "")) for question in survey_of(current)}
        StudyAnswer.objects.bulk_create(
            StudyAnswer(
                participation=current, part=AnswerPart.SURVEY, question=key, attempt=1, answer=text, answered_at=now
            )
            for key, text in read.items()
        )
        _finish(current, now)


def survey_of(participation: Participation) -> tuple[SurveyQuestion, ...]:
    """The questions after the last round."""
    return participation.version.parsed.survey


def survey_answer(question: SurveyQuestion, typed: str) -> str:
    """What is stored for an answer as it was sent. Raises `StudyError` where it is none."""
    text = typed.replace("\x00", "").strip()[:MAX_ANSWER_CHARS].encode("utf-8", "ignore").decode()
    if not text:
        if question.required:
            raise StudyError(question.key, _("Please answer this question."))
        return ""
    if question.kind is AnswerKind.CHOICE:
        if not text.isdecimal() or len(text) > 4 or int(text) >= len(question.options):
            raise StudyError(question.key, _("Choose one of the answers."))
        return question.options[int(text)]
    if question.kind is AnswerKind.SCALE and text not in tuple("1234567"):
        raise StudyError(question.key, _("Choose a number from 1 to 7."))
    if question.kind is AnswerKind.NUMBER:
        plain = text.replace(" ", "")
        if not plain.removeprefix("-").replace(".", "", 1).isdecimal() or len(plain) > 20 or not plain.isascii():
            raise StudyError(question.key, _("Write a number, as in 12 or 3.5."))
        return plain
    return text


def _finish(current: Participation, now: datetime) -> None:
    """The last record is stored: only then is there a code."""
    if current.rounds.filter(ended_at=None).exists():
        raise StudyError("still_playing", _("A negotiation is still going on."))
    _end(current, State.FINISHED, Outcome(current.outcome or Outcome.FINISHED), now)


def withdraw(participation: Participation, *, now: datetime | None = None) -> None:
    """Withdraw consent: leave the table, close the games to everybody, erase the person. The count stays."""
    now = now or timezone.now()
    with transaction.atomic():
        current = locked(participation)
        if current.state == State.WITHDREW:
            return
        _vacate(current, now)
        for seat in Seat.objects.filter(participant=current.participant).select_related("room"):
            services.choose_consent(seat=seat, scope="private", version=current.consent_version, now=now)
        current.consent_scope = ""
        current.slot = None
        current.save(update_fields=["consent_scope", "slot"])
        participant = current.participant
    # Rooms that go on are left in transactions of their own; the rest is `erasing`'s, in erasure's.
    erasure.erase(participant=participant)


# --- Presence and what pages log -----------------------------------------------------------------------


def heard_of(participation: Participation, *, now: datetime | None = None) -> None:
    """A page of this participant is open."""
    Participation.objects.filter(pk=participation.pk).update(last_seen_at=now or timezone.now())


LOGGED = ("paste", "blur", "focus")
MAX_LOGGED = 500
"""Most lines that one participant's pages may log."""


def log_page(participation: Participation, *, kind: str, detail: str = "", now: datetime | None = None) -> None:
    """What a page noticed, as the consent says: a paste with its length, focus that went or came."""
    if kind not in LOGGED:
        raise StudyError("unknown_kind", _("That is nothing this page logs."))
    if participation.state in (State.ENTERED, *ENDED):  # Nothing is logged without consent.
        return
    if participation.events.filter(kind__in=LOGGED).count() < MAX_LOGGED:
        short = detail if detail.isascii() and len(detail) <= 60 else ""
        events.note(participation.study, kind, participation=participation, detail=short, now=now)


def put_away(participation: Participation, *, notice: int, now: datetime | None = None) -> None:
    """A message of the staff has been read and is not shown again."""
    with transaction.atomic():
        current = locked(participation)
        if not current.events.filter(kind="notice_read", detail=str(notice)).exists():
            events.note(current.study, "notice_read", participation=current, detail=str(notice), now=now)


# --- Acts of the staff ---------------------------------------------------------------------------------


def say(
    study: Study, text: str, *, actor: User, participation: Participation | None = None, now: datetime | None = None
) -> StudyNotice:
    """Send a message to one participant, or to everybody in the study."""
    now = now or timezone.now()
    text = text.strip()
    if not text or len(text) > 1_000:
        raise StudyError("no_text", _("Write a message of at most 1,000 characters."))
    with transaction.atomic():
        notice = StudyNotice.objects.create(
            study=study, participation=participation, text=text, sent_by=actor, sent_at=now
        )
        events.note(study, "message", participation=participation, detail=text, actor=actor, now=now)
    return notice


def extend(participation: Participation, *, minutes: int, actor: User, now: datetime | None = None) -> None:
    """Give more time: for the move at the table, for waiting, and for the page."""
    now = now or timezone.now()
    if not 1 <= minutes <= 240:
        raise StudyError("minutes", _("Give between 1 and 240 minutes."))
    more = timedelta(minutes=minutes)
    with transaction.atomic():
        current = locked(participation)
        if current.ended:
            raise StudyError("ended", _("This participation is over."))
        current.extended_until = now + more
        if current.waiting_since is not None:
            current.waiting_since += more
        current.last_seen_at = max(current.last_seen_at, now)
        current.save(update_fields=["extended_until", "waiting_since", "last_seen_at"])
        played = play.current(current)
        if played is not None:
            seat = play.seat_of(played)
            if seat.deadline_at is not None:
                Seat.objects.filter(pk=seat.pk).update(deadline_at=max(seat.deadline_at, now) + more)
                transaction.on_commit(lambda: services.nudge(played.room))
        events.note(
            current.study,
            "extend",
            participation=current,
            detail=ngettext("%(count)d minute", "%(count)d minutes", minutes) % {"count": minutes},
            actor=actor,
            now=now,
        )


def end(participation: Participation, *, actor: User, now: datetime | None = None) -> None:
    """End a participation, with pay for what was played. Whoever sits opposite is not stranded."""
    now = now or timezone.now()
    with transaction.atomic():
        _locked_study(participation.study_id)
        current = locked(participation)
        if current.ended:
            raise StudyError("ended", _("This participation is over."))
        _vacate(current, now)
        events.note(current.study, "end", participation=current, detail=current.state, actor=actor, now=now)
        _end(current, State.RETURNED, Outcome.ENDED_BY_STAFF, now)


def replace(participation: Participation, *, actor: User, now: datetime | None = None) -> None:
    """Let the condition's agent play on for somebody who is silent; their participation ends as timed out."""
    now = now or timezone.now()
    with transaction.atomic():
        current = locked(participation)
        played = play.current(current)
        if current.ended or played is None:
            raise StudyError("not_playing", _("This participant sits at no table just now."))
        played.participation = current
        if not play.hand_over(played, now=now):
            raise StudyError("not_seated", _("No person sits on this chair any more."))
        events.note(current.study, "replace", participation=current, detail=played.agent_slug, actor=actor, now=now)
        _end(current, State.TIMED_OUT, Outcome.TIMED_OUT, now)


# --- Locks and moves -----------------------------------------------------------------------------------


def newest_version(study: Study) -> StudyVersion:
    """The version that newcomers get."""
    version = study.versions.select_related("study").order_by("-number").first()
    if version is None:
        raise StudyError("no_version", _("This study has no design yet."))
    return version


def locked(participation: Participation) -> Participation:
    """The row, locked until the transaction ends."""
    return (
        Participation.objects.select_for_update(of=("self",))
        .select_related("study", "version", "participant")
        .get(pk=participation.pk)
    )


def _locked_study(study_id: int) -> Study:
    return Study.objects.select_for_update(of=("self",)).get(pk=study_id)


def _move(current: Participation, to: State, now: datetime) -> None:
    if to not in NEXT[current.state]:
        raise StudyError("wrong_step", _("That is not the next step."))
    current.state, current.state_at = to, now
    current.save()
    events.note(current.study, "state", participation=current, detail=to.value, now=now)


def _end(current: Participation, to: State, outcome: Outcome, now: datetime) -> None:
    """Nothing follows: keep how it ended, what it pays, and the code that says so."""
    if current.ended or (to is State.FINISHED and to not in NEXT[current.state]):
        raise StudyError("wrong_step", _("That is not the next step."))
    current.state, current.state_at, current.ended_at = to, now, now
    current.outcome = outcome.value
    current.waiting_since = None
    if to in RELEASED:
        current.slot = None
    current.completion_code = pay.code_of(current, outcome)
    current.save()
    events.note(current.study, "state", participation=current, detail=f"{to.value}, {outcome.value}", now=now)
    pay.store(current, now=now)
