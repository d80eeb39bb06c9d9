"""What a study is: one frozen value, its strict JSON, its hash.

Here: the words of a design and reading them back. Not here: whether a design can be run (`checks`), its
versions (`authoring`), anything about people. A `StudyVersion` stores a design as canonical JSON; the hash of
that text is what a pre-registration names.

Contract: money is integer cents, in the market's currency for what is negotiated and in `Pay.currency` for what
is paid. Markdown is stored as typed and rendered by `markdown` alone. An empty text means that there is none.
"""

import hashlib
from enum import StrEnum

import msgspec

from markets.engine.money import Cents
from markets.engine.protocol import Role

DESIGN_VERSION = 1


class Side(StrEnum):
    """Which side of the market a condition seats its participants on."""

    BUYER = "buyer"
    SELLER = "seller"
    BOTH = "both"
    """Half here, half there."""

    @property
    def roles(self) -> tuple[Role, ...]:
        """The roles that participants are assigned to."""
        return (Role.BUYER, Role.SELLER) if self is Side.BOTH else (Role(self.value),)


class Matching(StrEnum):
    """Who sits opposite."""

    AGENT = "agent"
    PERSON = "person"
    MIXED = "mixed"
    """A person where one comes within the waiting limit, else the agent."""


class Partners(StrEnum):
    """Whom people meet from round to round."""

    PARTNER = "partner"
    """The same person in every round."""
    STRANGER = "stranger"
    """Nobody twice."""


class Told(StrEnum):
    """What participants are told about the other side."""

    AI = "ai"
    PERSON = "person"
    NOTHING = "nothing"


class AfterWait(StrEnum):
    """What happens to somebody for whom nobody came within the waiting limit."""

    AGENT = "agent"
    """The condition's agent takes the other seat."""
    DISMISS = "dismiss"
    """The study ends with part pay."""


class Dropout(StrEnum):
    """What becomes of a negotiation whose other side fell silent."""

    AGENT = "agent"
    """The condition's agent plays on."""
    END = "end"
    """It ends as if they had left, and the study ends with pay."""


class Idle(StrEnum):
    """What becomes of a participant who lets the time of a move run out."""

    END = "end"
    """The study is over for them."""
    NEXT_ROUND = "next_round"
    """The round is over without a deal and they go on."""


class Counts(StrEnum):
    """Which rounds are paid."""

    ALL = "all"
    RANDOM = "random"
    """One, drawn from the study's seed and the participation's address: nobody can choose it, anybody can redraw it."""
    BEST = "best"


class Reveal(StrEnum):
    """When participants learn what the other side's value was."""

    NEVER = "never"
    AFTER_ROUND = "after_round"
    AT_END = "at_end"


class AnswerKind(StrEnum):
    """How a survey question is answered."""

    CHOICE = "choice"
    SCALE = "scale"
    """1 to 7."""
    NUMBER = "number"
    TEXT = "text"


class Outcome(StrEnum):
    """How a participation ended; each has a completion code of its own."""

    FINISHED = "finished"
    SCREENED_OUT = "screened_out"
    """The quiz was not passed within its tries."""
    DECLINED = "declined"
    """No consent was given."""
    NO_PARTNER = "no_partner"
    """Nobody came within the waiting limit."""
    PARTNER_LEFT = "partner_left"
    """The other side fell silent and the design ends the study then."""
    TIMED_OUT = "timed_out"
    """The participant fell silent."""
    ENDED_BY_STAFF = "ended_by_staff"
    WITHDREW = "withdrew"
    """Consent was withdrawn and the data erased. Without a code."""


class _Part(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pass


class Consent(_Part, frozen=True, kw_only=True):
    """What people agree to before anything else."""

    text: str
    """Markdown. What is logged is added to it by the page (`pages.LOGGED`)."""
    version: str
    scope: str = "research"
    """`research`, `public`, or `ask`, which lets participants choose between the two."""


class Instructions(_Part, frozen=True, kw_only=True):
    """What people read before they play, in Markdown."""

    everybody: str = ""
    buyer: str = ""
    seller: str = ""

    def for_role(self, role: Role) -> str:
        """What somebody on this side reads."""
        own = self.buyer if role is Role.BUYER else self.seller
        return "\n\n".join(text for text in (self.everybody, own) if text)


class QuizQuestion(_Part, frozen=True, kw_only=True):
    """A comprehension question with one right answer."""

    key: str
    text: str
    options: tuple[str, ...]
    right: int | None
    """Index into `options`; None until the author has said."""
    explanation: str = ""
    """Shown after a wrong answer."""
    role: str = ""
    """`buyer` or `seller` where only that side is asked."""


class Quiz(_Part, frozen=True, kw_only=True):
    """All questions have to be answered right in one try."""

    questions: tuple[QuizQuestion, ...] = ()
    tries: int = 2

    def for_role(self, role: Role) -> tuple[QuizQuestion, ...]:
        """The questions that somebody on this side is asked."""
        return tuple(question for question in self.questions if question.role in ("", role.value))


class SurveyQuestion(_Part, frozen=True, kw_only=True):
    """A question after the last round."""

    key: str
    text: str
    kind: AnswerKind
    options: tuple[str, ...] = ()
    """Of a choice; of a scale, the words at its two ends."""
    required: bool = True
    manipulation_check: bool = False
    """Whether it asks for what the condition was meant to make people believe."""


class Practice(_Part, frozen=True, kw_only=True):
    """A round before the rounds that count, against a named agent, whose scenario is in no block."""

    agent: str = ""
    """Slug; empty for no practice."""


class Condition(_Part, frozen=True, kw_only=True):
    """One cell of the design."""

    key: str
    """Short name in data; unique in its design."""
    market: str
    market_version: int
    side: Side
    matching: Matching = Matching.AGENT
    agent: str = ""
    """Slug of the agent opposite (or that steps in for a person); empty for the market's own."""
    persona: str = ""
    """Way of talking of that agent."""
    briefing: str = ""
    """Information of this condition alone, in Markdown: read with the instructions and beside the table."""
    shows_prior: bool = False
    """Whether the public rule that the other side's value is drawn from is shown beside the table."""
    told: Told = Told.NOTHING
    reply_ms: tuple[int, int] | None = None
    """Bounds of the pause before an agent's answer; None lets it answer at once."""
    weight: int = 1
    """Participants here for every one in a condition of weight 1."""


class Scenarios(_Part, frozen=True, kw_only=True):
    """Value draws in blocks: every condition meets the same sets, in rotated orders."""

    seed: int
    sets: int = 8
    """Different sets of `rounds` draws. The k-th participant of a cell meets set k modulo this."""


class Waiting(_Part, frozen=True, kw_only=True):
    """The waiting room of conditions that match people."""

    limit_s: int = 300
    """Stated on the page; nobody waits longer."""
    exit_after_s: int = 120
    """After so long a button ends the study with part pay."""
    after: AfterWait = AfterWait.AGENT
    pay_cents: Cents = 0
    """Part pay, in place of the show-up fee, for leaving the waiting room or being dismissed from it."""


class Clocks(_Part, frozen=True, kw_only=True):
    """Deadlines."""

    move_s: int = 180
    """For one move."""
    idle_s: int = 1_800
    """For any other page."""
    idle: Idle = Idle.END
    dropout: Dropout = Dropout.AGENT


class Pay(_Part, frozen=True, kw_only=True):
    """What participants are paid: a fee, and a bonus that follows from the event log."""

    currency: str = "USD"
    show_up_cents: Cents = 0
    exchange_ppm: int = 0
    """Millionths of a cent of pay for a cent of surplus: 50,000 pays 5 cents for every dollar gained."""
    counts: Counts = Counts.ALL
    cap_cents: Cents | None = None
    """Largest bonus."""
    floor_cents: Cents = 0
    """Smallest bonus; below 0 a loss eats into the show-up fee."""


class Completion(_Part, frozen=True, kw_only=True):
    """How a participant proves what happened."""

    codes: dict[str, str] = {}
    """Code by `Outcome`; an outcome without one gets a code of the study's (`pay.code_of`)."""
    per_person: bool = False
    """Whether every participant's code has a tail of its own."""
    url: str = ""
    """Address to return to, with `{code}` where the code goes."""


class Design(_Part, frozen=True, kw_only=True):
    """A whole study."""

    title: str
    summary: str = ""
    """Markdown for the first page that a link opens."""
    minutes: int = 15
    """How long it takes, as told."""
    contact: str = ""
    participants: int = 0
    """How many are wanted; 0 sets no end."""
    consent: Consent
    instructions: Instructions = Instructions()
    quiz: Quiz = Quiz()
    practice: Practice = Practice()
    conditions: tuple[Condition, ...] = ()
    rounds: int = 1
    partners: Partners = Partners.PARTNER
    scenarios: Scenarios
    waiting: Waiting = Waiting()
    clocks: Clocks = Clocks()
    survey: tuple[SurveyQuestion, ...] = ()
    pay: Pay = Pay()
    completion: Completion = Completion()
    reveal: Reveal = Reveal.AT_END
    debrief: str = ""
    """Markdown on the last page. A design that tells of a partner who is not there must have one."""
    design_version: int = DESIGN_VERSION

    def condition(self, key: str) -> Condition:
        """The condition of this name."""
        return next(condition for condition in self.conditions if condition.key == key)


_decoder = msgspec.json.Decoder(Design, strict=True)


def decode(text: str | bytes) -> Design:
    """Read a stored design back. Raises `msgspec.ValidationError` on anything else."""
    return _decoder.decode(text)


def encode(design: Design) -> str:
    """Canonical JSON: fields in declared order, no white space."""
    return msgspec.json.encode(design, order="deterministic").decode()


def sha256(text: str) -> str:
    """What a pre-registration names: the hash of the canonical JSON."""
    return hashlib.sha256(text.encode()).hexdigest()


def plan(design: Design) -> str:
    """What of a design may be public before the data are there: without the seed that would tell the draws, without
    completion codes, and without the right answers of the quiz. Canonical JSON."""
    hidden = msgspec.structs.replace(
        design,
        scenarios=msgspec.structs.replace(design.scenarios, seed=0),
        completion=Completion(),
        quiz=msgspec.structs.replace(
            design.quiz,
            questions=tuple(
                msgspec.structs.replace(question, right=None, explanation="") for question in design.quiz.questions
            ),
        ),
    )
    return encode(hidden)
