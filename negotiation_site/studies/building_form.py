"""What is typed into the study builder: reading it into a design, and a design back into it.

Here: the fields, by name, with what each means; lists that grow and shrink. Not here: what may be saved (`checks`),
pages (`building`). What was typed is never lost: the page is drawn from `Typed`, whatever of it can be read.

Names of fields are those of the design with a hyphen (`pay-show_up`), in lists with a number (`quiz-0-text`). A
`Problem.field` is the same with dots, so that every sentence finds its field.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from decimal import Decimal, InvalidOperation
from enum import StrEnum
from typing import TypeVar

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from agents import registry
from agents.base import Kind
from markets import selectors
from markets.engine.money import CURRENCIES, AmountCode, AmountError, format_plain, parse_amount
from markets.models import Market
from markets.presentation import Choice
from negotiation_site.builder_pages import ways_of_talking
from negotiation_site.studies.checks import Problem
from negotiation_site.studies.design import (
    AfterWait,
    AnswerKind,
    Clocks,
    Completion,
    Condition,
    Consent,
    Counts,
    Design,
    Dropout,
    Idle,
    Instructions,
    Matching,
    Outcome,
    Partners,
    Pay,
    Practice,
    Quiz,
    QuizQuestion,
    Reveal,
    Scenarios,
    Side,
    SurveyQuestion,
    Told,
    Waiting,
)

LISTS = ("quiz", "conditions", "survey")
MOST = {"quiz": 20, "conditions": 24, "survey": 40}
"""Most entries of a list in the form."""
LONGEST = 40_000
"""Characters of one field that are read at all."""
CODED = tuple(outcome for outcome in Outcome if outcome is not Outcome.WITHDREW)
PPM = 1_000_000

Word = TypeVar("Word", bound=StrEnum)


@dataclass(frozen=True)
class Field:
    """One field as the page draws it."""

    name: str
    label: str
    kind: str = "text"
    """`text`, `number`, `long`, `choice` or `check`."""
    value: str = ""
    help: str = ""
    error: str = ""
    choices: tuple[Choice, ...] = ()
    rows: int = 5
    half: bool = False
    """Whether it stands beside another."""


@dataclass(frozen=True)
class Entry:
    """One entry of a list."""

    heading: str
    remove: str
    """Value of the button that takes it away."""
    fields: tuple[Field, ...]
    digest: str = ""
    """What it holds, in a line: what is read while it is folded."""
    open: bool = False


@dataclass(frozen=True)
class Part:
    """One part of the form."""

    key: str
    heading: str
    lead: str = ""
    fields: tuple[Field, ...] = ()
    list_name: str = ""
    entries: tuple[Entry, ...] = ()
    add: str = ""
    """Words of the button that adds an entry."""
    error: str = ""
    digest: str = ""
    """What it holds, in a line: what is read while it is folded."""
    open: bool = False


class Typed:
    """The form as it was sent: every field a text."""

    def __init__(self, words: Mapping[str, str]) -> None:
        self._words = {
            key: str(value)[:LONGEST].replace("\0", "").replace("\r\n", "\n") for key, value in words.items()
        }

    def __getitem__(self, name: str) -> str:
        return self._words.get(name, "")

    def count(self, name: str) -> int:
        """How many entries a list has."""
        text = self[f"{name}-count"]
        return min(MOST[name], int(text)) if text.isdecimal() and len(text) < 4 else 0

    def with_entry(self, name: str) -> "Typed":
        """One more at the end of a list."""
        return Typed({**self._words, f"{name}-count": str(min(MOST[name], self.count(name) + 1))})

    def without_entry(self, name: str, index: int) -> "Typed":
        """One less; those after it move up."""
        count = self.count(name)
        if not 0 <= index < count:
            return self
        moved = {key: text for key, text in self._words.items() if not key.startswith(f"{name}-")}
        for key, text in self._words.items():
            parts = key.split("-", 2)
            if parts[0] == name and len(parts) == 3 and parts[1].isdecimal() and int(parts[1]) != index:
                at = int(parts[1]) - (int(parts[1]) > index)
                moved[f"{name}-{at}-{parts[2]}"] = text
        for key, text in self._words.items():
            if key.startswith(f"{name}-") and not key.split("-", 2)[1].isdecimal():
                moved[key] = text
        moved[f"{name}-count"] = str(count - 1)
        return Typed(moved)

    def without(self, *names: str) -> "Typed":
        """All but these fields."""
        return Typed({key: text for key, text in self._words.items() if key not in names})

    def touched(self, button: str) -> tuple[str, ...]:
        """What is looked at after a button of a list was pressed: the list, and the entry that was added."""
        act, _colon, rest = button.partition(":")
        name = rest.partition(":")[0]
        return (name, f"{name}-{self.count(name) - 1}") if act == "add" else (name,)

    def changed(self, button: str) -> "Typed | None":
        """What a button of a list makes of the form: `add:quiz`, `remove:quiz:2`; None for any other."""
        parts = button.split(":")
        if len(parts) == 2 and parts[0] == "add" and parts[1] in LISTS:
            return self.with_entry(parts[1])
        if len(parts) == 3 and parts[0] == "remove" and parts[1] in LISTS and parts[2].isdecimal():
            return self.without_entry(parts[1], int(parts[2][:4]))
        return None


# --- Reading ------------------------------------------------------------------------------------------


class _Reader:
    """Reads fields and keeps what could not be read."""

    def __init__(self, typed: Typed) -> None:
        self.typed = typed
        self.problems: list[Problem] = []

    def text(self, name: str) -> str:
        return self.typed[name].strip()

    def whole(self, name: str, otherwise: int) -> int:
        text = self.text(name)
        if not text:
            return otherwise
        if not text.isascii() or not text.isdecimal() or len(text) > 9:
            return self._wrong(name, _("Write a whole number."), otherwise)
        return int(text)

    def seconds(self, name: str, otherwise: int) -> int:
        return self.whole(name, otherwise)

    def cents(self, name: str, currency: str, otherwise: int = 0) -> int:
        text = self.text(name)
        if not text:
            return otherwise
        sign, text = (-1, text[1:].strip()) if text[0] in "-−" else (1, text)
        try:
            return sign * parse_amount(text, currency=currency if currency in CURRENCIES else "USD")
        except AmountError as error:
            return 0 if error.code is AmountCode.ZERO else self._wrong(name, error.sentence, otherwise)

    def cents_or_none(self, name: str, currency: str) -> int | None:
        return self.cents(name, currency) if self.text(name) else None

    def ppm(self, name: str) -> int:
        text = self.text(name)
        if not text:
            return 0
        try:
            number = Decimal(text) if len(text) < 20 and "e" not in text.lower() else Decimal("NaN")
        except InvalidOperation:
            number = Decimal("NaN")
        if not number.is_finite() or number != number.quantize(Decimal("0.000001")):
            return self._wrong(name, _("Write a number with at most six decimals, as in 0.05."), 0)
        return int(number * PPM)

    def choice(self, name: str, kind: type[Word], otherwise: Word) -> Word:
        text = self.text(name)
        try:
            return kind(text) if text else otherwise
        except ValueError:
            self.problems.append(Problem(name.replace("-", "."), _("Choose one of the list.")))
            return otherwise

    def ticked(self, name: str) -> bool:
        return bool(self.text(name))

    def lines(self, name: str) -> tuple[str, ...]:
        return tuple(line.strip() for line in self.text(name).split("\n") if line.strip())

    def _wrong(self, name: str, sentence: str, otherwise: int) -> int:
        self.problems.append(Problem(name.replace("-", "."), sentence))
        return otherwise


def design_of(typed: Typed, *, scenarios: Scenarios) -> tuple[Design, tuple[Problem, ...]]:
    """The design that was typed, and what of it could not be read. `scenarios` keeps the seed, which nobody types."""
    read = _Reader(typed)
    currency = read.text("pay-currency") or "USD"
    known = Design(title="", consent=Consent(text="", version=""), scenarios=scenarios)
    value = Design(
        title=read.text("title"),
        summary=read.text("summary"),
        minutes=read.whole("minutes", known.minutes),
        contact=read.text("contact")[:200],
        participants=read.whole("participants", 0),
        consent=Consent(
            text=read.text("consent-text"),
            version=read.text("consent-version"),
            scope=read.text("consent-scope") or "research",
        ),
        instructions=Instructions(
            everybody=read.text("instructions-everybody"),
            buyer=read.text("instructions-buyer"),
            seller=read.text("instructions-seller"),
        ),
        quiz=Quiz(
            questions=tuple(_quiz_question(read, index) for index in range(typed.count("quiz"))),
            tries=read.whole("quiz-tries", known.quiz.tries),
        ),
        practice=Practice(agent=read.text("practice")),
        conditions=tuple(_condition(read, index) for index in range(typed.count("conditions"))),
        rounds=read.whole("rounds", known.rounds),
        partners=read.choice("partners", Partners, known.partners),
        scenarios=Scenarios(seed=scenarios.seed, sets=read.whole("scenarios-sets", scenarios.sets)),
        waiting=Waiting(
            limit_s=read.seconds("waiting-limit_s", known.waiting.limit_s),
            exit_after_s=read.seconds("waiting-exit_after_s", known.waiting.exit_after_s),
            after=read.choice("waiting-after", AfterWait, known.waiting.after),
            pay_cents=read.cents("waiting-pay_cents", currency),
        ),
        clocks=Clocks(
            move_s=read.seconds("clocks-move_s", known.clocks.move_s),
            idle_s=read.seconds("clocks-idle_s", known.clocks.idle_s),
            idle=read.choice("clocks-idle", Idle, known.clocks.idle),
            dropout=read.choice("clocks-dropout", Dropout, known.clocks.dropout),
        ),
        survey=tuple(_survey_question(read, index) for index in range(typed.count("survey"))),
        pay=Pay(
            currency=currency,
            show_up_cents=read.cents("pay-show_up_cents", currency),
            exchange_ppm=read.ppm("pay-exchange_ppm"),
            counts=read.choice("pay-counts", Counts, known.pay.counts),
            cap_cents=read.cents_or_none("pay-cap_cents", currency),
            floor_cents=read.cents("pay-floor_cents", currency),
        ),
        completion=Completion(
            codes={outcome.value: code for outcome in CODED if (code := read.text(f"completion-{outcome.value}")[:60])},
            per_person=read.ticked("completion-per_person"),
            url=read.text("completion-url"),
        ),
        reveal=read.choice("reveal", Reveal, known.reveal),
        debrief=read.text("debrief"),
    )
    return value, tuple(read.problems)


def _quiz_question(read: _Reader, index: int) -> QuizQuestion:
    name = f"quiz-{index}"
    right = read.whole(f"{name}-right", 0)
    return QuizQuestion(
        key=read.text(f"{name}-key") or f"q{index + 1}",
        text=read.text(f"{name}-text"),
        options=read.lines(f"{name}-options"),
        right=right - 1 if right else None,
        explanation=read.text(f"{name}-explanation"),
        role=read.text(f"{name}-role"),
    )


def _condition(read: _Reader, index: int) -> Condition:
    name = f"conditions-{index}"
    slug, _mark, version = read.text(f"{name}-market").rpartition(":")
    low, high = read.text(f"{name}-reply_low"), read.text(f"{name}-reply_high")
    reply = None
    if low or high:
        shortest = read.whole(f"{name}-reply_low", 0)
        reply = (shortest * 1000, read.whole(f"{name}-reply_high", shortest) * 1000)
    return Condition(
        key=read.text(f"{name}-key") or f"c{index + 1}",
        market=slug,
        market_version=int(version) if version.isdecimal() and len(version) < 6 else 0,
        side=read.choice(f"{name}-side", Side, Side.BOTH),
        matching=read.choice(f"{name}-matching", Matching, Matching.AGENT),
        agent=read.text(f"{name}-agent"),
        persona=read.text(f"{name}-persona"),
        briefing=read.text(f"{name}-briefing"),
        shows_prior=read.ticked(f"{name}-shows_prior"),
        told=read.choice(f"{name}-told", Told, Told.NOTHING),
        reply_ms=reply,
        weight=read.whole(f"{name}-weight", 1),
    )


def _survey_question(read: _Reader, index: int) -> SurveyQuestion:
    name = f"survey-{index}"
    return SurveyQuestion(
        key=read.text(f"{name}-key") or f"s{index + 1}",
        text=read.text(f"{name}-text"),
        kind=read.choice(f"{name}-kind", AnswerKind, AnswerKind.TEXT),
        options=read.lines(f"{name}-options"),
        required=not read.ticked(f"{name}-optional"),
        manipulation_check=read.ticked(f"{name}-check"),
    )


# --- Writing a design into the form ---------------------------------------------------------------------


def typed_of(value: Design) -> Typed:
    """The form of a design."""
    words: dict[str, str] = {
        "title": value.title,
        "summary": value.summary,
        "minutes": str(value.minutes),
        "contact": value.contact,
        "participants": str(value.participants or ""),
        "consent-text": value.consent.text,
        "consent-version": value.consent.version,
        "consent-scope": value.consent.scope,
        "instructions-everybody": value.instructions.everybody,
        "instructions-buyer": value.instructions.buyer,
        "instructions-seller": value.instructions.seller,
        "quiz-tries": str(value.quiz.tries),
        "quiz-count": str(len(value.quiz.questions)),
        "practice": value.practice.agent,
        "conditions-count": str(len(value.conditions)),
        "rounds": str(value.rounds),
        "partners": value.partners.value,
        "scenarios-sets": str(value.scenarios.sets),
        "waiting-limit_s": str(value.waiting.limit_s),
        "waiting-exit_after_s": str(value.waiting.exit_after_s),
        "waiting-after": value.waiting.after.value,
        "waiting-pay_cents": format_plain(value.waiting.pay_cents),
        "clocks-move_s": str(value.clocks.move_s),
        "clocks-idle_s": str(value.clocks.idle_s),
        "clocks-idle": value.clocks.idle.value,
        "clocks-dropout": value.clocks.dropout.value,
        "survey-count": str(len(value.survey)),
        "pay-currency": value.pay.currency,
        "pay-show_up_cents": format_plain(value.pay.show_up_cents),
        "pay-exchange_ppm": _decimal(value.pay.exchange_ppm),
        "pay-counts": value.pay.counts.value,
        "pay-cap_cents": "" if value.pay.cap_cents is None else format_plain(value.pay.cap_cents),
        "pay-floor_cents": format_plain(value.pay.floor_cents),
        "completion-per_person": "on" if value.completion.per_person else "",
        "completion-url": value.completion.url,
        "reveal": value.reveal.value,
        "debrief": value.debrief,
    }
    words |= {f"completion-{outcome}": code for outcome, code in value.completion.codes.items()}
    for index, question in enumerate(value.quiz.questions):
        words |= _named(
            f"quiz-{index}",
            key=question.key,
            text=question.text,
            options="\n".join(question.options),
            right="" if question.right is None else str(question.right + 1),
            explanation=question.explanation,
            role=question.role,
        )
    for index, condition in enumerate(value.conditions):
        words |= _named(
            f"conditions-{index}",
            key=condition.key,
            market=f"{condition.market}:{condition.market_version}",
            side=condition.side.value,
            matching=condition.matching.value,
            agent=condition.agent,
            persona=condition.persona,
            briefing=condition.briefing,
            shows_prior="on" if condition.shows_prior else "",
            told=condition.told.value,
            reply_low="" if condition.reply_ms is None else str(condition.reply_ms[0] // 1000),
            reply_high="" if condition.reply_ms is None else str(condition.reply_ms[1] // 1000),
            weight=str(condition.weight),
        )
    for index, asked in enumerate(value.survey):
        words |= _named(
            f"survey-{index}",
            key=asked.key,
            text=asked.text,
            kind=asked.kind.value,
            options="\n".join(asked.options),
            optional="" if asked.required else "on",
            check="on" if asked.manipulation_check else "",
        )
    return Typed(words)


def blank() -> Typed:
    """The form of a new study: one condition, no questions yet, and the usual numbers."""
    empty = Design(title="", consent=Consent(text="", version="1"), scenarios=Scenarios(seed=0))
    return typed_of(empty).with_entry("conditions")


def place_of(problem: Problem) -> tuple[str, str]:
    """Where a problem is: the anchor of its field, and what the entry of the list is called; either may be empty."""
    parts = problem.field.split(".")
    if len(parts) < 3 or not parts[1].isdecimal():
        return ("f-" + problem.field.replace(".", "-") if problem.field else "", "")
    number = int(parts[1]) + 1
    words = {
        "quiz": _("Question %(number)d") % {"number": number},
        "conditions": _("Condition %(number)d") % {"number": number},
        "survey": _("Survey, question %(number)d") % {"number": number},
    }
    return "f-" + problem.field.replace(".", "-"), words.get(parts[0], "")


def _named(prefix: str, **words: str) -> dict[str, str]:
    return {f"{prefix}-{name}": text for name, text in words.items()}


def _decimal(ppm: int) -> str:
    return format(Decimal(ppm) / PPM, "f").rstrip("0").rstrip(".") if ppm % PPM else str(ppm // PPM)


# --- The page ---------------------------------------------------------------------------------------------


NEW = frozenset(("about", "consent", "conditions", "conditions-0"))
"""What is open in the form of a new study: what nobody can leave as it is."""


def parts(
    typed: Typed, problems: Sequence[Problem], *, fixed_slug: bool, opened: Collection[str] = ()
) -> tuple[Part, ...]:
    """The whole form, with every sentence at its field.

    Parts are folded, each with a line that says what it holds; open are those of `opened` (a part's key, or an entry's
    such as `quiz-0`) and those in which something is wrong.
    """
    return tuple(
        _folded(part, typed, opened) for part in _unfolded(_Drawn(typed, problems), typed, fixed_slug=fixed_slug)
    )


def _folded(part: Part, typed: Typed, opened: Collection[str]) -> Part:
    entries = tuple(
        replace(
            entry,
            digest=_entry_digest(part.list_name, entry.fields, f"{part.list_name}-{index}"),
            open=f"{part.list_name}-{index}" in opened or any(field.error for field in entry.fields),
        )
        for index, entry in enumerate(part.entries)
    )
    wrong = part.error or any(field.error for field in part.fields) or any(entry.open for entry in entries)
    return replace(part, entries=entries, digest=_digest(part, typed), open=bool(part.key in opened or wrong))


def _said(fields: Sequence[Field]) -> dict[str, str]:
    """What fields hold, by name; of a choice the words that were chosen."""
    return {
        field.name: next((choice.label for choice in field.choices if choice.selected), "")
        if field.kind == "choice"
        else field.value.strip()
        for field in fields
    }


def _digest(part: Part, typed: Typed) -> str:
    """A part in a line."""
    said, count = _said(part.fields), len(part.entries)
    questions = (
        ngettext("%(count)d question", "%(count)d questions", count) % {"count": count}
        if count
        else _("no questions yet")
    )
    match part.key:
        case "about":
            return said["title"] or _("no title yet")
        case "consent":
            if not said["consent-text"]:
                return _("no text yet")
            return _("version %(version)s; data is %(scope)s") % {
                "version": said["consent-version"],
                "scope": said["consent-scope"],
            }
        case "conditions":
            return ", ".join(typed[f"conditions-{k}-key"].strip() or f"c{k + 1}" for k in range(count)) or _("none yet")
        case "rounds":
            return _("rounds: %(rounds)s; practice: %(practice)s") % {
                "rounds": said["rounds"],
                "practice": said["practice"],
            }
        case "instructions":
            words = len(said["instructions-everybody"].split())
            if not words:
                return _("none for everybody yet")
            return ngettext("%(count)d word for everybody", "%(count)d words for everybody", words) % {"count": words}
        case "quiz":
            if not count:
                return questions
            return _("%(questions)s, tries: %(tries)s") % {"questions": questions, "tries": said["quiz-tries"]}
        case "clocks":
            return _("%(move)s s for a move, %(idle)s s for any other page") % {
                "move": said["clocks-move_s"],
                "idle": said["clocks-idle_s"],
            }
        case "survey":
            return questions
        case "pay":
            return _("%(currency)s %(fee)s for showing up, %(rate)s for every 1.00 gained") % {
                "currency": said["pay-currency"],
                "fee": said["pay-show_up_cents"] or "0",
                "rate": said["pay-exchange_ppm"] or "0",
            }
        case _:
            given = sum(bool(said[f"completion-{outcome.value}"]) for outcome in CODED)
            if not given:
                return _("codes of the study's own")
            return ngettext(
                "%(count)d code is given, the others are made", "%(count)d codes are given, the others are made", given
            ) % {"count": given}


def _entry_digest(list_name: str, fields: Sequence[Field], name: str) -> str:
    """An entry of a list in a line."""
    said = _said(fields)
    if list_name != "conditions":
        return said[f"{name}-text"]
    return " · ".join(filter(None, (said[f"{name}-key"], said[f"{name}-market"], said[f"{name}-agent"])))


def _unfolded(drawn: "_Drawn", typed: Typed, *, fixed_slug: bool) -> tuple[Part, ...]:
    return (
        Part(
            "about",
            _("What it is"),
            fields=(
                drawn.text("title", _("Title")),
                *(
                    ()
                    if fixed_slug
                    else (
                        drawn.text(
                            "slug", _("Address"), _("Letters, digits and hyphens; made from the title when left out.")
                        ),
                    )
                ),
                drawn.long("summary", _("What people read before they begin"), _("Markdown."), rows=3),
                drawn.number("minutes", _("Minutes it takes"), half=True),
                drawn.number("participants", _("Participants wanted"), _("Left empty, there is no end."), half=True),
                drawn.text("contact", _("Whom to ask"), _("A name and an address.")),
            ),
        ),
        Part(
            "consent",
            _("Consent"),
            _("The first page. What is logged, how long it takes and what is paid is added to it."),
            fields=(
                drawn.long("consent-text", _("Text"), _("Markdown."), rows=8),
                drawn.text(
                    "consent-version", _("Version of this text"), _("Stored with every participant."), half=True
                ),
                drawn.choice(
                    "consent-scope",
                    _("Data is"),
                    (
                        ("research", _("for research here")),
                        ("public", _("open data")),
                        ("ask", _("as each participant chooses")),
                    ),
                    half=True,
                ),
            ),
        ),
        Part(
            "conditions",
            _("Conditions"),
            _("Everybody is assigned to the one that is emptiest. All of them meet the same value draws."),
            list_name="conditions",
            entries=tuple(_condition_entry(drawn, index) for index in range(typed.count("conditions"))),
            add=_("Add a condition"),
            error=drawn.error("conditions"),
        ),
        Part(
            "rounds",
            _("Rounds"),
            fields=(
                drawn.number("rounds", _("Rounds"), half=True),
                drawn.number(
                    "scenarios-sets",
                    _("Sets of value draws"),
                    _("Participants of a condition go through them in turn."),
                    half=True,
                ),
                drawn.choice(
                    "partners",
                    _("Where people meet people"),
                    (("partner", _("the same partner in every round")), ("stranger", _("nobody twice"))),
                    half=True,
                ),
                drawn.choice("practice", _("Practice round"), _practice_choices(), half=True),
                drawn.choice(
                    "reveal",
                    _("The other side's value is told"),
                    (
                        ("at_end", _("at the end of the study")),
                        ("after_round", _("after each round")),
                        ("never", _("never")),
                    ),
                    half=True,
                ),
            ),
        ),
        Part(
            "instructions",
            _("Instructions"),
            _("Markdown. Everybody reads the first, then the one for their side, then the condition's."),
            fields=(
                drawn.long("instructions-everybody", _("For everybody"), rows=8),
                drawn.long("instructions-buyer", _("For buyers"), rows=3),
                drawn.long("instructions-seller", _("For sellers"), rows=3),
            ),
        ),
        Part(
            "quiz",
            _("Questions about the rules"),
            _("All have to be right in one try. Without questions, this step is passed over."),
            fields=(drawn.number("quiz-tries", _("Tries"), half=True),),
            list_name="quiz",
            entries=tuple(_quiz_entry(drawn, index) for index in range(typed.count("quiz"))),
            add=_("Add a question"),
        ),
        Part(
            "clocks",
            _("Waiting and silence"),
            _("Seconds."),
            fields=(
                drawn.number("clocks-move_s", _("For a move"), half=True),
                drawn.number("clocks-idle_s", _("For any other page"), half=True),
                drawn.choice(
                    "clocks-idle",
                    _("Who lets a move's time run out"),
                    (("end", _("is out of the study, unpaid")), ("next_round", _("goes on with the next round"))),
                ),
                drawn.choice(
                    "clocks-dropout",
                    _("When the other person falls silent"),
                    (("agent", _("the condition's agent plays on")), ("end", _("the study ends early, and is paid"))),
                ),
                drawn.number("waiting-limit_s", _("Longest wait for a person"), half=True),
                drawn.number("waiting-exit_after_s", _("Way out opens after"), half=True),
                drawn.choice(
                    "waiting-after",
                    _("When nobody came"),
                    (
                        ("agent", _("the condition's agent takes the seat")),
                        ("dismiss", _("the study ends with part pay")),
                    ),
                    half=True,
                ),
                drawn.number("waiting-pay_cents", _("Part pay"), half=True),
            ),
        ),
        Part(
            "survey",
            _("Survey"),
            _("After the last round."),
            list_name="survey",
            entries=tuple(_survey_entry(drawn, index) for index in range(typed.count("survey"))),
            add=_("Add a question"),
        ),
        Part(
            "pay",
            _("Pay"),
            _("The bonus follows from the record of the negotiations and nothing else."),
            fields=(
                drawn.choice("pay-currency", _("Currency"), tuple((code, code) for code in CURRENCIES), half=True),
                drawn.number("pay-show_up_cents", _("Show-up fee"), half=True),
                drawn.number(
                    "pay-exchange_ppm", _("Paid for every 1.00 gained"), _("0.05 pays five cents."), half=True
                ),
                drawn.choice(
                    "pay-counts",
                    _("What counts"),
                    (("all", _("all rounds")), ("random", _("one round, drawn")), ("best", _("the best round"))),
                    half=True,
                ),
                drawn.number("pay-cap_cents", _("Largest bonus"), _("Left empty, there is none."), half=True),
                drawn.number("pay-floor_cents", _("Smallest bonus"), _("Below 0, losses eat into the fee."), half=True),
            ),
        ),
        Part(
            "completion",
            _("Completion"),
            _("A code for each way it can end. What is left empty gets a code of the study's own."),
            fields=(
                *(drawn.text(f"completion-{outcome.value}", _code_label(outcome), half=True) for outcome in CODED),
                drawn.text(
                    "completion-url",
                    _("Address to return to"),
                    _("With {code} where the code goes; left empty, people copy the code."),
                ),
                drawn.check("completion-per_person", _("Every participant's code has a tail of its own")),
                drawn.long(
                    "debrief",
                    _("What it was about"),
                    _("Markdown, on the last page. Needed where people may be told of a partner who is not there."),
                    rows=4,
                ),
            ),
            error=drawn.error("completion.codes"),
        ),
    )


class _Drawn:
    """Fields with what was typed and what is wrong."""

    def __init__(self, typed: Typed, problems: Sequence[Problem]) -> None:
        self.typed = typed
        self._errors: dict[str, str] = {}
        for problem in problems:
            self._errors.setdefault(problem.field, problem.sentence)

    def error(self, field: str) -> str:
        return self._errors.get(field, "")

    def _field(self, name: str, label: str, kind: str, help_text: str, half: bool) -> dict[str, object]:
        return {
            "name": name,
            "label": label,
            "kind": kind,
            "value": self.typed[name],
            "help": help_text,
            "error": self._errors.get(name.replace("-", "."), ""),
            "half": half,
        }

    def text(self, name: str, label: str, help_text: str = "", *, half: bool = False) -> Field:
        return Field(**self._field(name, label, "text", help_text, half))  # type: ignore[arg-type]

    def number(self, name: str, label: str, help_text: str = "", *, half: bool = False) -> Field:
        return Field(**self._field(name, label, "number", help_text, half))  # type: ignore[arg-type]

    def long(self, name: str, label: str, help_text: str = "", *, rows: int = 5) -> Field:
        return Field(**self._field(name, label, "long", help_text, False), rows=rows)  # type: ignore[arg-type]

    def check(self, name: str, label: str, help_text: str = "") -> Field:
        return Field(**self._field(name, label, "check", help_text, False))  # type: ignore[arg-type]

    def choice(
        self,
        name: str,
        label: str,
        pairs: Sequence[tuple[str, str]],
        help_text: str = "",
        *,
        half: bool = False,
    ) -> Field:
        chosen = self.typed[name]
        if chosen and chosen not in dict(pairs):
            pairs = (*pairs, (chosen, chosen))
        choices = tuple(Choice(value=value, label=words, selected=value == chosen) for value, words in pairs)
        return Field(**self._field(name, label, "choice", help_text, half), choices=choices)  # type: ignore[arg-type]


def _condition_entry(drawn: _Drawn, index: int) -> Entry:
    name = f"conditions-{index}"
    return Entry(
        heading=_("Condition %(number)d") % {"number": index + 1},
        remove=f"remove:conditions:{index}",
        fields=(
            drawn.text(f"{name}-key", _("Short name in the data"), half=True),
            drawn.choice(f"{name}-market", _("Market"), _market_choices(), half=True),
            drawn.choice(
                f"{name}-side",
                _("Participants are"),
                (("both", _("half buyers, half sellers")), ("buyer", _("buyers")), ("seller", _("sellers"))),
                half=True,
            ),
            drawn.choice(
                f"{name}-matching",
                _("Opposite sits"),
                (
                    ("agent", _("the agent")),
                    ("person", _("a person")),
                    ("mixed", _("a person, or the agent when nobody comes")),
                ),
                half=True,
            ),
            drawn.choice(f"{name}-agent", _("Agent"), _agent_choices(), half=True),
            drawn.choice(f"{name}-persona", _("Its way of talking"), ways_of_talking(), half=True),
            drawn.choice(
                f"{name}-told",
                _("People are told that it is"),
                (("nothing", _("nothing is said")), ("ai", _("an AI")), ("person", _("a person"))),
                half=True,
            ),
            drawn.number(f"{name}-weight", _("Weight"), _("2 gets twice as many people."), half=True),
            drawn.number(f"{name}-reply_low", _("Pause before an answer, from"), _("Seconds; empty: none."), half=True),
            drawn.number(f"{name}-reply_high", _("to"), half=True),
            drawn.long(f"{name}-briefing", _("Information of this condition alone"), _("Markdown."), rows=2),
            drawn.check(f"{name}-shows_prior", _("The rule that values are drawn by is shown at the table")),
        ),
    )


def _quiz_entry(drawn: _Drawn, index: int) -> Entry:
    name = f"quiz-{index}"
    return Entry(
        heading=_("Question %(number)d") % {"number": index + 1},
        remove=f"remove:quiz:{index}",
        fields=(
            drawn.text(f"{name}-text", _("Question")),
            drawn.long(f"{name}-options", _("Answers"), _("One on each line."), rows=3),
            drawn.number(f"{name}-right", _("Number of the right answer"), half=True),
            drawn.choice(
                f"{name}-role",
                _("Asked of"),
                (("", _("everybody")), ("buyer", _("buyers")), ("seller", _("sellers"))),
                half=True,
            ),
            drawn.text(f"{name}-explanation", _("Explanation after a wrong answer")),
            drawn.text(f"{name}-key", _("Short name in the data"), _("Made when left empty."), half=True),
        ),
    )


def _survey_entry(drawn: _Drawn, index: int) -> Entry:
    name = f"survey-{index}"
    return Entry(
        heading=_("Question %(number)d") % {"number": index + 1},
        remove=f"remove:survey:{index}",
        fields=(
            drawn.text(f"{name}-text", _("Question")),
            drawn.choice(
                f"{name}-kind",
                _("Answered by"),
                (
                    ("choice", _("one of a list")),
                    ("scale", _("a number from 1 to 7")),
                    ("number", _("a number")),
                    ("text", _("words")),
                ),
                half=True,
            ),
            drawn.text(f"{name}-key", _("Short name in the data"), _("Made when left empty."), half=True),
            drawn.long(
                f"{name}-options", _("Answers"), _("One on each line; of a scale, the words for 1 and for 7."), rows=3
            ),
            drawn.check(f"{name}-optional", _("May be left out")),
            drawn.check(f"{name}-check", _("Manipulation check: asks what the condition was to make people believe")),
        ),
    )


def _market_choices() -> tuple[tuple[str, str], ...]:
    markets: list[Market] = list(selectors.current_markets().order_by("name"))
    return tuple(
        (f"{market.slug}:{market.version}", f"{market.name} ({_('version')} {market.version})") for market in markets
    )


def _agent_choices() -> tuple[tuple[str, str], ...]:
    known = [(spec.slug, spec.title) for spec in registry.all_specs() if spec.kind is not Kind.REFERENCE]
    return (("", _("the market's own")), *known)


def _practice_choices() -> tuple[tuple[str, str], ...]:
    return (("", _("none")), *_agent_choices()[1:])


def _code_label(outcome: Outcome) -> str:
    return {
        Outcome.FINISHED: _("Finished"),
        Outcome.SCREENED_OUT: _("Quiz not passed"),
        Outcome.DECLINED: _("No consent"),
        Outcome.NO_PARTNER: _("Nobody came"),
        Outcome.PARTNER_LEFT: _("Other side left"),
        Outcome.TIMED_OUT: _("Fell silent"),
        Outcome.ENDED_BY_STAFF: _("Ended by staff"),
    }[outcome]
