"""Pages of participants: the way in, every step, the table in the study's frame, the end.

A view finds out whose browser it is (`holding`), makes one call into `conduct`, and renders; a step that was taken
redirects to the one page of the participation, which shows whatever comes next. A stranger is told that the page
belongs to somebody else. Private values reach the table through the room's own view and nothing else.
"""

import json
import logging
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from functools import wraps
from typing import Any

from django.db.models import Q
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.safestring import SafeString
from django.utils.translation import gettext as _
from django.utils.translation import gettext_lazy, ngettext
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from agents.registry import UnknownAgent
from markets import market_page, room_frames, room_page, selectors, wire
from markets.engine.money import CURRENCIES, format_amount
from markets.engine.protocol import Role
from markets.engine.scenarios import decode_recipe
from markets.models import Market, RoomStatus
from markets.recipe_text import seconds_text
from markets.services import RoomError
from markets.views import origin_of
from negotiation_site.studies import conduct, holding, markdown, outcomes, pay, play, telling
from negotiation_site.studies.conduct import Identity, StudyError
from negotiation_site.studies.design import (
    AfterWait,
    AnswerKind,
    Counts,
    Design,
    Dropout,
    Idle,
    Matching,
    Outcome,
    Reveal,
    Told,
)
from negotiation_site.studies.models import (
    LinkKind,
    Mode,
    Participation,
    RecruitmentLink,
    RoundOutcome,
    State,
    StudyNotice,
    StudyRound,
)

log = logging.getLogger(__name__)

LOGGED = gettext_lazy(
    "While you take part, the page notes when text is pasted into it (how much, not what) and when you leave it for "
    "another window (when, not where to)."
)
"""What the consent says about logging, whatever its author wrote."""
MAX_BEAT_BYTES = 2_000


# --- What the templates read --------------------------------------------------------------------------


@dataclass(frozen=True)
class Frame:
    """What stands around every page of a participation: context `frame` of `studies/_frame.html`."""

    title: str
    step_text: str
    step: int
    steps: int
    contact: str
    mode: str
    leave_url: str
    """Empty for whoever has withdrawn."""
    study_url: str
    """Where an author's preview goes back to; empty for everybody else."""
    notices: tuple[tuple[int, str], ...]
    """Messages of the staff: number and words."""
    client: Mapping[str, Any]
    """What `study.js` reads."""


@dataclass(frozen=True)
class Option:
    """An answer to choose."""

    value: str
    label: str
    chosen: bool = False


@dataclass(frozen=True)
class Question:
    """A question of the quiz or the survey."""

    name: str
    text: str
    kind: str
    options: tuple[Option, ...] = ()
    low: str = ""
    high: str = ""
    required: bool = True
    typed: str = ""
    error: str = ""
    explanation: str = ""


@dataclass(frozen=True)
class RoundLine:
    """A round that is over."""

    name: str
    outcome: str
    gain: str
    counts: bool
    revealed: str = ""


@dataclass(frozen=True)
class Between:
    """Context `page` of `studies/between.html`: before a round, and after the one before."""

    heading: str
    lead: str
    last: RoundLine | None
    button: str
    briefing: SafeString | str
    against: str


@dataclass(frozen=True)
class Over:
    """Context `page` of `studies/over.html`."""

    heading: str
    lead: str
    code: str
    return_url: str
    pay_text: str
    pay_parts: tuple[tuple[str, str], ...]
    rounds: tuple[RoundLine, ...]
    debrief: SafeString | str
    resume_url: str = ""


class Elsewhere(Exception):
    """The browser may not act: it is a stranger's, or another has taken over."""

    def __init__(self, response: HttpResponse) -> None:
        super().__init__()
        self.response = response


# --- The way in ---------------------------------------------------------------------------------------


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
def join(request: HttpRequest, token: str) -> HttpResponse:
    """A recruitment link. Looking at it tells what it is; taking part is a POST."""
    link = RecruitmentLink.objects.select_related("study").filter(token=token).first()
    if link is None:
        return _refused(request, _("This link does not lead to a study. Check that it was copied whole."), status=404)
    who = Identity.of_query(request.GET)
    mine = _mine(request, link, who)
    if mine is not None:
        return redirect("study-page", public_id=mine.public_id)
    if request.method == "POST":
        try:
            participation = conduct.enter(link=link, device=conduct.new_device(), who=who)
        except StudyError as refused:
            return _refused(request, refused.sentence, status=409, title=_title(link))
        holding.hold(request.session, participation)
        return redirect("study-page", public_id=participation.public_id)
    problem = conduct.entry_problem(link, who)
    if problem is not None:
        return _refused(request, problem.sentence, status=409, title=_title(link))
    design = conduct.newest_version(link.study).parsed
    context = {
        "title": design.title,
        "summary": markdown.html(design.summary),
        "facts": _facts(design),
        "contact": design.contact,
        "mode": link.study.mode.value,
        "one_time": link.kind == LinkKind.ONE_TIME,
        "known": who.key and conduct.is_known(link, who),
    }
    return render(request, "studies/join.html", context)


def _mine(request: HttpRequest, link: RecruitmentLink, who: Identity) -> Participation | None:
    """What this browser has entered by such a link already: as the same person, where the platform names one."""
    entered = holding.in_study(request.session, link.study, mode=link.study.mode)
    if who.key:
        return next((each for each in entered if each.person_key == who.key), None)
    if link.kind == LinkKind.ONE_TIME:
        return next((each for each in entered if each.link_id == link.pk), None)
    return next(iter(entered), None)


def _title(link: RecruitmentLink) -> str:
    version = link.study.versions.order_by("-number").first()
    return "" if version is None else version.title


def _refused(request: HttpRequest, sentence: str, *, status: int, title: str = "") -> HttpResponse:
    return render(request, "studies/refused.html", {"sentence": sentence, "title": title}, status=status)


def _facts(design: Design) -> tuple[str, ...]:
    """What people want to know before they begin."""
    facts = [
        ngettext("It takes about %(count)d minute.", "It takes about %(count)d minutes.", design.minutes)
        % {"count": design.minutes}
    ]
    if design.pay.show_up_cents or design.pay.exchange_ppm:
        facts.append(pay_sentence(design))
    return tuple(facts)


def rate_text(exchange_ppm: int, currency: str) -> str:
    """What is paid for 1.00 that was gained, to the last decimal."""
    if exchange_ppm % 10_000 == 0:
        return format_amount(exchange_ppm // 10_000, currency)
    return CURRENCIES[currency].symbol + f"{exchange_ppm // 1_000_000}.{exchange_ppm % 1_000_000:06d}".rstrip("0")


def pay_sentence(design: Design) -> str:
    """The payoff rule in a sentence."""
    payoff = design.pay
    fee = format_amount(payoff.show_up_cents, payoff.currency)
    if not payoff.exchange_ppm:
        return _("You are paid %(fee)s.") % {"fee": fee}
    rate = rate_text(payoff.exchange_ppm, payoff.currency)
    which = {
        Counts.ALL: _("all rounds count"),
        Counts.RANDOM: _("one round counts, drawn at random"),
        Counts.BEST: _("your best round counts"),
    }[payoff.counts]
    sentence = _("You are paid %(fee)s, and %(rate)s for every 1.00 that you gain at the table (%(which)s).") % {
        "fee": fee,
        "rate": rate,
        "which": which if design.rounds > 1 else _("the one round counts"),
    }
    if payoff.cap_cents is not None:
        cap = format_amount(payoff.cap_cents, payoff.currency)
        sentence += " " + _("The bonus is at most %(cap)s.") % {"cap": cap}
    if payoff.floor_cents < 0:
        sentence += " " + _("Losses reduce what you are paid.")
    return sentence


@require_http_methods(["GET", "HEAD", "POST"])
@never_cache
def resume(request: HttpRequest, token: str) -> HttpResponse:
    """One's own link: go on, on this device."""
    found = Participation.objects.filter(resume_token=token).select_related("version").first()
    if found is None or found.state == State.WITHDREW:
        return _refused(request, _("This link does not lead to anybody's place in a study."), status=404)
    mine = holding.held(request.session, found.public_id)
    if mine is not None and mine.is_here:
        return redirect("study-page", public_id=found.public_id)
    if request.method != "POST":
        return render(request, "studies/resume.html", {"title": found.version.title})
    try:
        participation = conduct.resume(token=token, device=conduct.new_device())
    except StudyError as refused:
        return _refused(request, refused.sentence, status=409, title=found.version.title)
    holding.hold(request.session, participation)
    return redirect("study-page", public_id=participation.public_id)


# --- Whose page it is -----------------------------------------------------------------------------------


def _held(request: HttpRequest, public_id: str) -> Participation:
    """The participation of this browser. Raises `Elsewhere` for a stranger and where another device took over."""
    found = holding.held(request.session, public_id)
    if found is None:
        sentence = _("This page belongs to somebody else's place in a study. Open the link that you were sent.")
        raise Elsewhere(_refused(request, sentence, status=403))
    if not found.is_here:
        if found.participation.state == State.WITHDREW:
            raise Elsewhere(_over(request, found.participation))
        context = {"title": found.participation.version.title, "public_id": public_id}
        raise Elsewhere(render(request, "studies/elsewhere.html", context, status=409))
    conduct.heard_of(found.participation)
    return found.participation


def _for_participants(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Hands the view the participation; a refusal is said on the next page."""

    @wraps(view)
    def guarded(request: HttpRequest, public_id: str, *args: Any, **kwargs: Any) -> HttpResponse:
        try:
            participation = _held(request, public_id)
        except Elsewhere as elsewhere:
            return elsewhere.response
        return never_cache(view)(request, participation, *args, **kwargs)

    return guarded


@require_POST
@never_cache
def come_back(request: HttpRequest, public_id: str) -> HttpResponse:
    """Take one's place back from another device."""
    found = holding.held(request.session, public_id)
    if found is None:
        return _refused(request, _("This page belongs to somebody else's place in a study."), status=403)
    device = conduct.new_device()
    try:
        conduct.come_back(found.participation, device=device)
    except StudyError as refused:
        return _refused(request, refused.sentence, status=409, title=found.participation.version.title)
    found.participation.device = device
    holding.hold(request.session, found.participation)
    return redirect("study-page", public_id=public_id)


# --- The page -------------------------------------------------------------------------------------------


@require_GET
@_for_participants
def page(request: HttpRequest, participation: Participation) -> HttpResponse:
    """Whatever comes next for this participant."""
    return _page(request, participation)


def _page(request: HttpRequest, participation: Participation, *, error: str = "", **more: Any) -> HttpResponse:
    current = conduct.refresh(participation)
    if current.ended:
        return _over(request, current)
    show = {
        State.ENTERED: _consent,
        State.CONSENTED: _instructions,
        State.QUIZ: _quiz,
        State.PRACTICE: _table,
        State.PLAYING: _table,
        State.WAITING: _waiting,
        State.SURVEY: _survey,
    }[State(current.state)]
    return show(request, current, error=error, **more)


def _render(request: HttpRequest, template: str, current: Participation, context: dict[str, Any]) -> HttpResponse:
    status = 400 if context.get("error") else 200
    return render(request, template, {"frame": frame(current), **context}, status=status)


def frame(current: Participation) -> Frame:
    """What stands around the page of a participation."""
    design = current.version.parsed
    steps = _steps(design)
    step = steps.index(_step_of(current)) + 1
    return Frame(
        title=design.title,
        step_text=_step_text(current),
        step=step,
        steps=len(steps),
        contact=design.contact,
        mode=current.mode,
        leave_url="" if current.state == State.WITHDREW else reverse("study-leave", args=[current.public_id]),
        study_url=reverse("study", args=[current.study.slug]) if current.mode == Mode.PREVIEW else "",
        notices=_notices(current),
        client={
            "public_id": current.public_id,
            "beat": reverse("study-beat", args=[current.public_id]),
            "stamp": stamp(current),
            "every_ms": 3_000 if current.state == State.WAITING else 15_000,
            "logs": current.state != State.ENTERED and not current.ended,
        },
    )


def stamp(current: Participation) -> str:
    """Changes when another page is due than the one that is shown."""
    newest = max((number for number, _text in _notices(current)), default=0)
    return f"{current.state}-{current.round}-{newest}"


def _steps(design: Design) -> list[str]:
    """Names of the steps that a design has."""
    return [
        "consent",
        "instructions",
        *(["quiz"] if design.quiz.questions else []),
        *(["practice"] if design.practice.agent else []),
        *(f"round-{number}" for number in range(1, design.rounds + 1)),
        *(["survey"] if design.survey else []),
        "over",
    ]


def _step_of(current: Participation) -> str:
    if current.ended:
        return "over"
    known = {
        State.ENTERED: "consent",
        State.CONSENTED: "instructions",
        State.QUIZ: "quiz",
        State.PRACTICE: "practice",
        State.SURVEY: "survey",
    }
    if current.state in known:
        return known[State(current.state)]
    at_table = play.current(current) is not None
    number = current.round if at_table else current.round + 1
    return f"round-{min(number, current.version.parsed.rounds)}"


def _step_text(current: Participation) -> str:
    step = _step_of(current)
    if step.startswith("round-"):
        rounds = current.version.parsed.rounds
        return _("Round %(number)s of %(rounds)d") % {"number": step.removeprefix("round-"), "rounds": rounds}
    return {
        "consent": _("Consent"),
        "instructions": _("Instructions"),
        "quiz": _("Questions"),
        "practice": _("Practice"),
        "survey": _("Survey"),
        "over": _("The end"),
    }[step]


def _notices(current: Participation) -> tuple[tuple[int, str], ...]:
    """Messages to this participant, and to all since they entered; not those they have put away."""
    away = set(current.events.filter(kind="notice_read").values_list("detail", flat=True))
    found = StudyNotice.objects.filter(
        Q(participation=current) | Q(participation=None, study=current.study_id, sent_at__gte=current.entered_at)
    )
    return tuple((notice.pk, notice.text) for notice in found[:5] if str(notice.pk) not in away)


# --- Consent, instructions, quiz ------------------------------------------------------------------------


def _consent(request: HttpRequest, current: Participation, *, error: str = "") -> HttpResponse:
    design = current.version.parsed
    context = {
        "text": markdown.html(design.consent.text),
        "logged": LOGGED,
        "scope": design.consent.scope,
        "version": design.consent.version,
        "facts": _facts(design),
        "error": error,
    }
    return _render(request, "studies/consent.html", current, context)


@require_POST
@_for_participants
def consent(request: HttpRequest, participation: Participation) -> HttpResponse:
    """Agree, or decline."""
    try:
        if request.POST.get("agree") == "yes":
            conduct.agree(participation, scope=request.POST.get("scope", ""))
        elif request.POST.get("agree") == "no":
            conduct.decline(participation)
        else:
            return _page(request, participation, error=_("Say whether you agree to take part."))
    except StudyError as refused:
        return _page(request, participation, error=refused.sentence)
    return redirect("study-page", public_id=participation.public_id)


def _instructions(request: HttpRequest, current: Participation, *, error: str = "") -> HttpResponse:
    design = current.version.parsed
    condition = conduct.condition_of(current)
    role = Role(current.role)
    context = {
        "text": markdown.html(design.instructions.for_role(role)),
        "briefing": markdown.html(condition.briefing) if condition.briefing else "",
        "role": role.value,
        "role_text": _("You are the buyer") if role is Role.BUYER else _("You are the seller"),
        "facts": rules_in_words(current),
        "error": error,
    }
    return _render(request, "studies/instructions.html", current, context)


def rules_in_words(current: Participation) -> tuple[str, ...]:
    """The study's own rules, as they hold for this participant."""
    design, condition = current.version.parsed, conduct.condition_of(current)
    clocks = design.clocks
    facts = [
        ngettext("There is %(count)d round.", "There are %(count)d rounds.", design.rounds) % {"count": design.rounds},
        _("You have %(time)s for each move.") % {"time": seconds_text(clocks.move_s)}
        + " "
        + (
            _("If it runs out, your part in the study is over and is not paid.")
            if clocks.idle is Idle.END
            else _("If it runs out, the round is over without a deal.")
        ),
    ]
    if design.practice.agent:
        facts.insert(1, _("Before them there is a practice round with a program. It is not paid."))
    if condition.matching is not Matching.AGENT:
        facts.append(_waiting_rule(design, condition.matching))
        facts.append(
            _("If the other side falls silent, a program plays on in its place.")
            if clocks.dropout is Dropout.AGENT
            else _("If the other side falls silent, the study ends early and you are paid.")
        )
    if design.pay.show_up_cents or design.pay.exchange_ppm:
        facts.append(pay_sentence(design))
    return tuple(facts)


def _waiting_rule(design: Design, matching: Matching) -> str:
    limit = seconds_text(design.waiting.limit_s)
    if matching is Matching.MIXED or design.waiting.after is AfterWait.AGENT:
        return _("You may have to wait for somebody, for at most %(limit)s; then the round begins all the same.") % {
            "limit": limit
        }
    part = format_amount(design.waiting.pay_cents, design.pay.currency)
    return _("You may have to wait for somebody, for at most %(limit)s. If nobody comes you are paid %(part)s.") % {
        "limit": limit,
        "part": part,
    }


@require_POST
@_for_participants
def instructions(request: HttpRequest, participation: Participation) -> HttpResponse:
    """The instructions are read."""
    conduct.read_instructions(participation)
    return redirect("study-page", public_id=participation.public_id)


def _quiz(
    request: HttpRequest,
    current: Participation,
    *,
    error: str = "",
    typed: Mapping[str, str] | None = None,
    wrong: Mapping[str, str] | None = None,
) -> HttpResponse:
    typed, wrong = typed or {}, wrong or {}
    design = current.version.parsed
    left = design.quiz.tries - current.quiz_tries
    questions = tuple(
        Question(
            name=question.key,
            text=question.text,
            kind="choice",
            options=tuple(
                Option(str(index), option, chosen=typed.get(question.key) == str(index))
                for index, option in enumerate(question.options)
            ),
            error=_("Not quite.") if question.key in wrong else "",
            explanation=wrong.get(question.key, ""),
        )
        for question in conduct.quiz_of(current)
    )
    context = {
        "questions": questions,
        "attempt": current.quiz_tries + 1,
        "tries_text": ngettext("You have %(count)d try.", "You have %(count)d tries.", left) % {"count": left},
        "instructions": markdown.html(design.instructions.for_role(Role(current.role))),
        "error": error,
    }
    return _render(request, "studies/quiz.html", current, context)


@require_POST
@_for_participants
def quiz(request: HttpRequest, participation: Participation) -> HttpResponse:
    """One try at the quiz."""
    typed = {key: str(value) for key, value in request.POST.items()}
    answers = {key: int(value) for key, value in typed.items() if value.isdecimal() and len(value) < 4}
    attempt = answers.pop("attempt", None)
    try:
        result = conduct.answer_quiz(participation, answers, attempt=attempt)
    except StudyError as refused:
        return _page(request, participation, error=refused.sentence, typed=typed)
    if result.wrong and result.tries_left:
        wrong = {question.key: question.explanation for question in result.wrong}
        sentence = ngettext(
            "Not all answers are right yet. You have %(count)d try left.",
            "Not all answers are right yet. You have %(count)d tries left.",
            result.tries_left,
        ) % {"count": result.tries_left}
        return _page(request, participation, error=sentence, typed=typed, wrong=wrong)
    return redirect("study-page", public_id=participation.public_id)


# --- The table ------------------------------------------------------------------------------------------


def _table(request: HttpRequest, current: Participation, *, error: str = "") -> HttpResponse:
    """The room in the study's frame, or the page between two rounds."""
    played = play.current(current)
    if played is None:
        return _between(request, current, error=error)
    played.participation = current
    seat = play.seat_of(played)
    view = telling.shown(selectors.seat_view(seat), told=play.told(played))
    public_id = current.public_id
    design, condition = current.version.parsed, conduct.condition_of(current)
    room = replace(
        room_page.room_page(view, origin=origin_of(request)),
        market_name=design.title,
        market_url="",
        socket_path=f"/ws/study/{public_id}/",
        view_url=reverse("study-room-view", args=[public_id]),
        act_url=reverse("study-room-act", args=[public_id]),
        result_url=reverse("study-room-result", args=[public_id]),
        waiting=None,
    )
    context = {
        "page": room,
        "practice": played.number == 0,
        "briefing": markdown.html(condition.briefing) if condition.briefing else "",
        "prior": _prior(condition.market, condition.market_version) if condition.shows_prior else (),
    }
    return _render(request, "studies/room.html", current, context)


def _prior(slug: str, version: int) -> tuple[str, ...]:
    """What is public of the values in a market."""
    return market_page.public_facts(decode_recipe(Market.objects.get(slug=slug, version=version).recipe))


def _between(request: HttpRequest, current: Participation, *, error: str = "") -> HttpResponse:
    design, condition = current.version.parsed, conduct.condition_of(current)
    last = current.rounds.select_related("room__market", "participation").order_by("-number").first()
    practising = current.state == State.PRACTICE and last is None
    number = current.round + 1
    if practising:
        heading, button = _("First, a practice round"), _("Begin the practice round")
        lead = _("It works like the rounds that follow, against a program, and is not paid.")
    elif number > design.rounds:
        heading, button = _("That was the last round"), _("Go on")
        lead = _("A few questions remain.") if design.survey else ""
    else:
        heading = _("Round %(number)d of %(rounds)d") % {"number": number, "rounds": design.rounds}
        button = _("Begin the round")
        lead = _("Now the rounds that count begin.") if number == 1 else ""
        if conduct.meets_people(current):
            lead = " ".join(filter(None, (lead, _waiting_rule(design, condition.matching))))
            button = _("I am ready")
    page = Between(
        heading=heading,
        lead=lead,
        last=None if last is None else round_line(last),
        button=button,
        briefing=markdown.html(condition.briefing) if condition.briefing and not practising else "",
        against=""
        if practising or number > design.rounds or condition.told is Told.NOTHING
        else telling.words(condition.told),
    )
    return _render(request, "studies/between.html", current, {"page": page, "error": error})


@require_POST
@_for_participants
def go_on(request: HttpRequest, participation: Participation) -> HttpResponse:
    """The button between rounds."""
    try:
        conduct.go_on(participation)
    except (StudyError, RoomError) as refused:
        return _page(request, participation, error=refused.sentence)
    except UnknownAgent:
        log.exception("Participation %s cannot be seated", participation.public_id)
        return _page(request, participation, error=_("The round cannot begin just now. Please tell whoever runs this."))
    return redirect("study-page", public_id=participation.public_id)


def _at_table(participation: Participation) -> StudyRound | None:
    return play.current(participation)


@require_GET
@_for_participants
def room_view(request: HttpRequest, participation: Participation) -> HttpResponse:
    """The view frame as JSON, for a page that has no socket."""
    played = _at_table(participation)
    if played is None:
        return JsonResponse(wire.error("not_seated", _("You sit at no table just now.")), status=404)
    played.participation = participation
    after = request.GET.get("after", "0")
    number = int(after) if after.isdecimal() and len(after) < 10 else 0
    view = telling.shown(selectors.seat_view(play.seat_of(played)), told=play.told(played))
    return JsonResponse(wire.view_frame(view, after=number, origin=origin_of(request), now=timezone.now()))


@require_POST
@_for_participants
def room_act(request: HttpRequest, participation: Participation) -> HttpResponse:
    """One frame as a POST, for a page that has no socket; answered as on the socket."""
    played = _at_table(participation)
    if played is None:
        return JsonResponse(wire.error("not_seated", _("You sit at no table just now.")))
    played.participation = participation
    told = play.told(played)
    try:
        reply = room_frames.answer(
            play.seat_of(played),
            wire.decode(request.body.decode("utf-8")),
            origin=origin_of(request),
            now=timezone.now(),
            shown=lambda view: telling.shown(view, told=told),
        )
    except UnicodeDecodeError:
        return JsonResponse(wire.error("bad_frame", _("That message is not readable text.")))
    except wire.BadFrame as error:
        return JsonResponse(wire.error("bad_frame", str(error)))
    except RoomError as error:
        return JsonResponse(wire.error(error.code, error.sentence))
    return JsonResponse(reply or {"type": "pong"})


@require_GET
@_for_participants
def room_result(request: HttpRequest, participation: Participation) -> HttpResponse:
    """What a round came to, for the table that has just seen its end."""
    current = conduct.refresh(participation)
    last = current.rounds.select_related("room__market", "participation").order_by("-number").first()
    if last is None or last.ended_at is None:
        return _refused(request, _("This negotiation is not over yet."), status=404)
    context = {
        "line": round_line(last),
        "practice": last.number == 0,
        "next_url": reverse("study-page", args=[current.public_id]),
    }
    return render(request, "studies/_round_over.html", context)


def round_line(played: StudyRound) -> RoundLine:
    """A round that is over, as its participant may know it now."""
    if played.ended_at is None or played.room.status != RoomStatus.ENDED:
        raise ValueError("A round is told of once it is over.")
    revealed = selectors.revealed(played.room)
    headline, gain = outcomes.told(revealed, played.party)
    if played.replaced_at is not None or played.outcome == RoundOutcome.SILENT:
        headline, gain = _("Your time ran out."), format_amount(0, revealed.scenario.currency)
    elif played.outcome == RoundOutcome.PARTNER_LEFT:
        headline = _("The other side fell silent. No deal.")
    return RoundLine(
        name=_("Practice") if played.number == 0 else _("Round %(number)d") % {"number": played.number},
        outcome=headline,
        gain=gain,
        counts=played.number > 0,
        revealed=outcomes.others_values(revealed, played.party) if may_reveal(played) else "",
    )


def may_reveal(played: StudyRound) -> bool:
    """Whether the other side's value may be shown now. Practice follows the rule of the rounds."""
    reveal = played.participation.version.parsed.reveal
    if reveal is Reveal.NEVER or played.room.status != RoomStatus.ENDED:
        return False
    return reveal is Reveal.AFTER_ROUND or played.participation.ended


# --- Waiting --------------------------------------------------------------------------------------------


def _waiting(request: HttpRequest, current: Participation, *, error: str = "") -> HttpResponse:
    design = current.version.parsed
    since = current.waiting_since or timezone.now()
    limit = since + timedelta(seconds=design.waiting.limit_s)
    exit_at = since + timedelta(seconds=design.waiting.exit_after_s)
    context = {
        "rule": _waiting_rule(design, conduct.condition_of(current).matching),
        "since_at": _epoch_ms(since),
        "limit_at": _epoch_ms(limit),
        "exit_at": _epoch_ms(exit_at),
        "now_at": _epoch_ms(timezone.now()),
        "exit_open": timezone.now() >= exit_at,
        "exit_after": seconds_text(design.waiting.exit_after_s),
        "part_pay": format_amount(design.waiting.pay_cents, design.pay.currency)
        if not current.seated_at
        else _("what you have earned so far"),
        "error": error,
    }
    return _render(request, "studies/waiting.html", current, context)


def _epoch_ms(moment: datetime) -> int:
    return round(moment.timestamp() * 1000)


@require_POST
@_for_participants
def leave_waiting(request: HttpRequest, participation: Participation) -> HttpResponse:
    """The way out of the waiting room."""
    try:
        conduct.waiting_exit(participation)
    except StudyError as refused:
        return _page(request, participation, error=refused.sentence)
    return redirect("study-page", public_id=participation.public_id)


@require_POST
@_for_participants
def beat(request: HttpRequest, participation: Participation) -> HttpResponse:
    """The page is open; it may have noticed something. Answered with the stamp of the page that is due."""
    try:
        body = json.loads(request.body[:MAX_BEAT_BYTES] or b"{}")
    except (ValueError, RecursionError):
        return JsonResponse({"error": _("That message is not readable JSON.")}, status=400)
    noticed = body.get("noticed") if isinstance(body, dict) else None
    if noticed is not None:
        detail = body.get("detail", "")
        if noticed not in conduct.LOGGED or not isinstance(detail, str):
            return JsonResponse({"error": _("That is nothing this page logs.")}, status=400)
        conduct.log_page(participation, kind=noticed, detail=detail)
    if participation.state == State.WAITING:
        try:
            if not conduct.look_for_partner(participation):
                conduct.waiting_over(participation)
        except (RoomError, UnknownAgent):
            log.exception("Participation %s cannot be seated", participation.public_id)
    current = conduct.refresh(participation)
    return JsonResponse({"stamp": stamp(current), "notices": _notices(current)})


# --- Survey and the end ---------------------------------------------------------------------------------


def _survey(
    request: HttpRequest,
    current: Participation,
    *,
    error: str = "",
    typed: Mapping[str, str] | None = None,
    wrong: str = "",
) -> HttpResponse:
    typed = typed or {}
    questions = tuple(
        Question(
            name=question.key,
            text=question.text,
            kind=question.kind.value,
            options=tuple(
                Option(str(index), option, chosen=typed.get(question.key) == str(index))
                for index, option in enumerate(question.options)
            )
            if question.kind is AnswerKind.CHOICE
            else tuple(Option(n, n, chosen=typed.get(question.key) == n) for n in "1234567")
            if question.kind is AnswerKind.SCALE
            else (),
            low=question.options[0] if question.kind is AnswerKind.SCALE and question.options else "",
            high=question.options[-1] if question.kind is AnswerKind.SCALE and question.options else "",
            required=question.required,
            typed=typed.get(question.key, ""),
            error=error if question.key == wrong else "",
        )
        for question in conduct.survey_of(current)
    )
    return _render(request, "studies/survey.html", current, {"questions": questions, "error": error})


@require_POST
@_for_participants
def survey(request: HttpRequest, participation: Participation) -> HttpResponse:
    """The survey is answered."""
    typed = {key: str(value) for key, value in request.POST.items()}
    try:
        conduct.answer_survey(participation, typed)
    except StudyError as refused:
        return _page(request, participation, error=refused.sentence, typed=typed, wrong=refused.code)
    return redirect("study-page", public_id=participation.public_id)


def _over(request: HttpRequest, current: Participation) -> HttpResponse:
    design = current.version.parsed
    outcome = Outcome(current.outcome or Outcome.FINISHED)
    heading, lead = end_words(outcome)
    withdrew = outcome is Outcome.WITHDREW
    earned = pay.amounts(current)
    rounds = [] if withdrew else list(current.rounds.select_related("room__market", "participation").order_by("number"))
    page = Over(
        heading=heading,
        lead=lead,
        code=current.completion_code,
        return_url=design.completion.url.replace("{code}", current.completion_code) if current.completion_code else "",
        pay_text="" if withdrew or earned.total_cents is None else format_amount(earned.total_cents, earned.currency),
        pay_parts=()
        if withdrew
        else tuple(
            (label, format_amount(cents, earned.currency))
            for label, cents in ((_("for taking part"), earned.fee_cents), (_("bonus"), earned.bonus_cents))
            if cents is not None
        ),
        rounds=tuple(round_line(each) for each in rounds if each.ended_at is not None),
        debrief=markdown.html(design.debrief) if design.debrief and current.seated_at and not withdrew else "",
    )
    return render(request, "studies/over.html", {"frame": frame(current), "page": page})


def end_words(outcome: Outcome) -> tuple[str, str]:
    """How a participation ended, in words to its participant."""
    return {
        Outcome.FINISHED: (_("Thank you."), _("You have finished the study, and everything is stored.")),
        Outcome.PARTNER_LEFT: (
            _("Thank you."),
            _("The other side left, so the study ended early. Everything is stored and you are paid."),
        ),
        Outcome.NO_PARTNER: (
            _("Nobody came this time."),
            _("Thank you for waiting. You are paid for your time."),
        ),
        Outcome.SCREENED_OUT: (
            _("Thank you for your time."),
            _("The questions about the rules were not all answered right, so the study ends here."),
        ),
        Outcome.DECLINED: (
            _("You did not take part."),
            _("Only that you declined is kept, so that nobody asks you again."),
        ),
        Outcome.TIMED_OUT: (
            _("Your time ran out."),
            _("You were not heard of for longer than the study allows, so your part is over."),
        ),
        Outcome.ENDED_BY_STAFF: (
            _("The study was ended."),
            _("The people who run it ended your part. You are paid for what you played."),
        ),
        Outcome.WITHDREW: (
            _("You have withdrawn."),
            _("What you wrote and who you are were erased; your games are used for nothing."),
        ),
    }[outcome]


@require_http_methods(["GET", "HEAD", "POST"])
@_for_participants
def leave(request: HttpRequest, participation: Participation) -> HttpResponse:
    """Withdraw from the study, at any time, after one question."""
    if participation.state == State.WITHDREW:
        return redirect("study-page", public_id=participation.public_id)
    if request.method == "POST":
        conduct.withdraw(participation)
        return _over(request, conduct.refresh(participation))
    context = {
        "frame": frame(participation),
        "back_url": reverse("study-page", args=[participation.public_id]),
        "resume_url": request.build_absolute_uri(reverse("study-resume", args=[participation.resume_token])),
        "ended": participation.ended,
        "preview": participation.mode == Mode.PREVIEW,
    }
    return render(request, "studies/leave.html", context)


@require_POST
@_for_participants
def put_away(request: HttpRequest, participation: Participation) -> HttpResponse:
    """A message of the staff has been read."""
    number = request.POST.get("notice", "")
    if number.isdecimal() and len(number) < 12:
        conduct.put_away(participation, notice=int(number))
    return redirect("study-page", public_id=participation.public_id)
