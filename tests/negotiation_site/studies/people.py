"""Studies for the tests: a design that runs, a study that is open, and people who walk through it by the services.

Not here: pages and browsers.
"""

import uuid
from datetime import datetime
from typing import Any

import msgspec

from agents import turns
from markets import services
from markets.engine.protocol import Action, Leave
from markets.models import AgentTurn, TurnState
from negotiation_site.studies import authoring, conduct, play
from negotiation_site.studies.design import (
    AnswerKind,
    Condition,
    Consent,
    Design,
    Instructions,
    Pay,
    Quiz,
    QuizQuestion,
    Scenarios,
    Side,
    SurveyQuestion,
)
from negotiation_site.studies.models import LinkKind, Participation, RecruitmentLink, State, Study, StudyStatus
from tests.markets import rooms

QUESTION = QuizQuestion(
    key="binds", text="What binds?", options=("Talk", "Offers that are accepted"), right=1, explanation="Talk is free."
)
BELIEF = SurveyQuestion(
    key="who",
    text="Who sat opposite?",
    kind=AnswerKind.CHOICE,
    options=("A person", "An AI", "Cannot say"),
    manipulation_check=True,
)
REMARK = SurveyQuestion(key="remark", text="Anything else?", kind=AnswerKind.TEXT, required=False)


def condition(key: str = "linear", **changes: Any) -> Condition:
    """A condition in a market of the tests, against the agent `linear` on both sides."""
    known = {"key": key, "market_version": 1, "side": Side.BOTH, "agent": "linear"}
    if "market" not in changes:
        changes["market"] = rooms.market("bilateral").slug
    return Condition(**{**known, **changes})


def design(*conditions: Condition, **changes: Any) -> Design:
    """A design that runs: consent, quiz, one round, survey."""
    known: dict[str, Any] = {
        "title": "Haggling with strangers",
        "consent": Consent(text="You may leave at any time.", version="2026-1"),
        "instructions": Instructions(everybody="Bargain.", buyer="You buy.", seller="You sell."),
        "quiz": Quiz(questions=(QUESTION,), tries=2),
        "conditions": conditions or (condition(),),
        "scenarios": Scenarios(seed=7, sets=4),
        "survey": (BELIEF, REMARK),
        "pay": Pay(show_up_cents=200, exchange_ppm=100_000),
    }
    return Design(**{**known, **changes})


def study(value: Design | None = None, *, slug: str = "", status: StudyStatus = StudyStatus.OPEN) -> Study:
    """A study that lets people in."""
    made = authoring.create(slug=slug or f"study-{uuid.uuid4().hex[:8]}", design=value or design(), author=None)
    return made if status == StudyStatus.DRAFT else authoring.set_status(made, status, actor=None)


def link(of: Study, kind: LinkKind = LinkKind.OPEN) -> RecruitmentLink:
    """A way in."""
    return RecruitmentLink.objects.create(study=of, kind=kind)


def enter(way: RecruitmentLink, *, now: datetime | None = None, **who: str) -> Participation:
    """Somebody new, on a device of their own."""
    return conduct.enter(link=way, device=conduct.new_device(), who=conduct.Identity(**who), now=now)


def to(state: State, somebody: Participation, *, now: datetime | None = None) -> Participation:
    """Walk on until this state is reached; the quiz is passed, the rounds are left without a deal."""
    for _step in range(40):
        somebody = conduct.refresh(somebody, now=now)
        if somebody.state == state:
            return somebody
        step(somebody, now=now)
    raise AssertionError(f"{somebody.state} instead of {state}")


def step(somebody: Participation, *, now: datetime | None = None) -> None:
    """The next thing that a compliant participant does."""
    match somebody.state:
        case State.ENTERED:
            conduct.agree(somebody, now=now)
        case State.CONSENTED:
            conduct.read_instructions(somebody, now=now)
        case State.QUIZ:
            right = {question.key: question.right or 0 for question in conduct.quiz_of(somebody)}
            conduct.answer_quiz(somebody, right, now=now)
        case State.PRACTICE | State.PLAYING:
            if play.current(somebody) is None:
                conduct.go_on(somebody, now=now)
            else:
                act(somebody, Leave(), now=now)
        case State.SURVEY:
            conduct.answer_survey(somebody, {"who": "1"}, now=now)


def act(somebody: Participation, action: Action, *, now: datetime | None = None) -> None:
    """A move at the table."""
    played = play.current(somebody)
    assert played is not None
    services.submit_action(
        room=played.room, seat=play.seat_of(played), action=action, client_move_id=uuid.uuid4().hex, now=now
    )


def agents_answer() -> None:
    """Let every agent that owes a move make it."""
    while due := list(AgentTurn.objects.filter(state=TurnState.QUEUED).values_list("pk", flat=True)):
        for turn in due:
            turns.take_turn(turn_id=turn)


def changed(of: Study, **changes: Any) -> Design:
    """The newest design of a study with something else in it."""
    return msgspec.structs.replace(conduct.newest_version(of).parsed, **changes)
