"""What is wrong with a design, in sentences, where it can be put right.

Contract: a design without problems can be run as it is: every market opens, every agent exists and plays the
side it is asked to, every cell can be filled evenly. Only reads the database.
"""

import re
from collections import Counter
from dataclasses import dataclass

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from agents import registry
from agents.base import AgentSpec, Kind
from agents.registry import UnknownAgent
from markets import services
from markets.engine.money import CURRENCIES, format_amount
from markets.engine.protocol import Role
from markets.engine.scenarios import EventDriven, Recipe, RecipeError, decode_recipe
from markets.models import Market
from negotiation_site.studies import assignment
from negotiation_site.studies.design import (
    AnswerKind,
    Condition,
    Design,
    Matching,
    Outcome,
    Side,
    Told,
)
from negotiation_site.studies.play import agent_slug

KEY = re.compile(r"[a-z0-9][a-z0-9-]{0,39}")
MAX_ROUNDS = 20
MAX_SETS = 1_000
MAX_TEXT = 20_000
MAX_REPLY_MS = 120_000


@dataclass(frozen=True)
class Problem:
    """One thing that is wrong."""

    field: str
    """Where: `consent.text`, `conditions.0.market`, `quiz.2.right`."""
    sentence: str


def problems(design: Design) -> tuple[Problem, ...]:
    """Everything that is wrong with a design, in the order of the form; empty for one that can be run."""
    return (
        *_words(design),
        *_quiz(design),
        *_conditions(design),
        *_balance(design),
        *_practice(design),
        *_waiting(design),
        *_numbers(design),
        *_pay(design),
        *_survey(design),
        *_completion(design),
    )


def _words(design: Design) -> list[Problem]:
    found = []
    if not design.title.strip():
        found.append(Problem("title", _("Give the study a title.")))
    if len(design.title) > 200:
        found.append(Problem("title", _("A title may be at most 200 characters long.")))
    if not design.consent.text.strip():
        found.append(Problem("consent.text", _("Write the consent: without one, nobody can be let into the study.")))
    if not design.consent.version.strip() or len(design.consent.version) > 40:
        found.append(Problem("consent.version", _("Name the version of the consent, in at most 40 characters.")))
    if design.consent.scope not in ("research", "public", "ask"):
        found.append(Problem("consent.scope", _("Data is kept for research, as open data, or as participants choose.")))
    texts = {
        "summary": design.summary,
        "consent.text": design.consent.text,
        "instructions.everybody": design.instructions.everybody,
        "instructions.buyer": design.instructions.buyer,
        "instructions.seller": design.instructions.seller,
        "debrief": design.debrief,
    }
    found += [
        Problem(field, _("A text may be at most 20,000 characters long."))
        for field, text in texts.items()
        if len(text) > MAX_TEXT
    ]
    misleading = [condition.key for condition in design.conditions if misleads(condition)]
    if misleading and not design.debrief.strip():
        found.append(
            Problem(
                "debrief",
                _("In %(conditions)s people may be told of a partner who is not there: say so in the debriefing.")
                % {"conditions": ", ".join(misleading)},
            )
        )
    return found


def misleads(condition: Condition) -> bool:
    """Whether what is said about the other side may be untrue."""
    return (condition.told is Told.PERSON and condition.matching is not Matching.PERSON) or (
        condition.told is Told.AI and condition.matching is not Matching.AGENT
    )


def _keys(field: str, keys: list[str]) -> list[Problem]:
    counts = Counter(keys)
    found = []
    for index, key in enumerate(keys):
        if not KEY.fullmatch(key):
            sentence = _("A short name has small letters, digits and hyphens, at most 40 of them.")
            found.append(Problem(f"{field}.{index}.key", sentence))
        elif counts[key] > 1:
            sentence = _("The short name “%(key)s” is used twice.") % {"key": key}
            found.append(Problem(f"{field}.{index}.key", sentence))
    return found


def _quiz(design: Design) -> list[Problem]:
    found = _keys("quiz", [question.key for question in design.quiz.questions])
    for index, question in enumerate(design.quiz.questions):
        field = f"quiz.{index}"
        if not question.text.strip():
            found.append(Problem(f"{field}.text", _("Write the question.")))
        if len(question.options) < 2 or any(not option.strip() for option in question.options):
            found.append(Problem(f"{field}.options", _("Give at least two answers, one on each line.")))
        if question.right is None or not 0 <= question.right < len(question.options):
            found.append(
                Problem(
                    f"{field}.right",
                    _("Say which answer to “%(question)s” is right: nobody could pass the quiz.")
                    % {"question": question.text.strip()[:60] or question.key},
                )
            )
        if question.role not in ("", "buyer", "seller"):
            found.append(Problem(f"{field}.role", _("A question is for buyers, for sellers, or for everybody.")))
    if not 1 <= design.quiz.tries <= 10:
        found.append(Problem("quiz.tries", _("Allow between 1 and 10 tries.")))
    return found


# --- Conditions ---------------------------------------------------------------------------------------


def _conditions(design: Design) -> list[Problem]:
    if not design.conditions:
        return [Problem("conditions", _("Add at least one condition: it says where people play and against whom."))]
    found = _keys("conditions", [condition.key for condition in design.conditions])
    currencies = set()
    for index, condition in enumerate(design.conditions):
        field = f"conditions.{index}"
        market = Market.objects.filter(slug=condition.market, version=condition.market_version).first()
        if market is None:
            found.append(Problem(f"{field}.market", _("Choose a market.")))
            continue
        recipe = decode_recipe(market.recipe)
        currencies.add(recipe.currency)
        found += [Problem(f"{field}.market", sentence) for sentence in unplayable(market)]
        found += _agents(field, condition, market, recipe)
        found += _reply(field, condition, recipe)
        if len(condition.briefing) > MAX_TEXT:
            found.append(Problem(f"{field}.briefing", _("A text may be at most 20,000 characters long.")))
    if len(currencies) > 1:
        sentence = _("The conditions' markets use different currencies (%(list)s), which cannot be paid at one rate.")
        found.append(Problem("conditions", sentence % {"list": ", ".join(sorted(currencies))}))
    return found


def unplayable(market: Market) -> list[str]:
    """Why people cannot play in a market."""
    if market.retired_at is not None:
        return [_("The market “%(market)s” is retired: no new negotiations begin in it.") % {"market": market.name}]
    recipe = decode_recipe(market.recipe)
    try:
        services.draw_scenario(market, 1)
    except RecipeError as error:
        return [
            _("People cannot play in “%(market)s”: %(why)s") % {"market": market.name, "why": str(error)},
        ]
    for slug, role in (
        (market.seller_agent, Role.SELLER),
        *((slug, Role.BUYER) for slug in market.buyer_agents.split(",")),
    ):
        spec = _spec(slug)
        if spec is None or not spec.can_play(role=role, family=recipe.family) or spec.kind is Kind.REFERENCE:
            return [
                _("People cannot play in “%(market)s”: its own agent “%(agent)s” cannot sit at a table with them.")
                % {"market": market.name, "agent": slug}
            ]
    return []


def _spec(slug: str) -> AgentSpec | None:
    try:
        return registry.get_open(slug)
    except UnknownAgent:
        return None


def _agents(field: str, condition: Condition, market: Market, recipe: Recipe) -> list[Problem]:
    found = []
    for role in condition.side.roles:
        slug = agent_slug(condition, market, role.other)
        spec = _spec(slug)
        if spec is None:
            found.append(Problem(f"{field}.agent", _("There is no agent “%(agent)s”.") % {"agent": slug}))
        elif spec.kind is Kind.REFERENCE:
            sentence = _("%(agent)s knows both values and cannot be played against.") % {"agent": spec.title}
            found.append(Problem(f"{field}.agent", sentence))
        elif not spec.can_play(role=role.other, family=recipe.family):
            sentence = _("%(agent)s does not play the %(role)s in “%(market)s”.")
            found.append(
                Problem(
                    f"{field}.agent",
                    sentence % {"agent": spec.title, "role": _role_word(role.other), "market": market.name},
                )
            )
    return found


def _role_word(role: Role) -> str:
    return _("buyer") if role is Role.BUYER else _("seller")


def _reply(field: str, condition: Condition, recipe: Recipe) -> list[Problem]:
    if condition.reply_ms is None:
        return []
    low, high = condition.reply_ms
    if not 0 <= low <= high <= MAX_REPLY_MS:
        return [
            Problem(f"{field}.reply_low", _("A pause before an answer lasts from 0 to 120 seconds, the shorter first."))
        ]
    if isinstance(recipe.mechanism, EventDriven):
        return [Problem(f"{field}.reply_low", _("This market has answering times of its own; leave the pause empty."))]
    return []


def _balance(design: Design) -> list[Problem]:
    found = []
    for index, condition in enumerate(design.conditions):
        field = f"conditions.{index}"
        if not 1 <= condition.weight <= 20:
            found.append(Problem(f"{field}.weight", _("A weight is a whole number from 1 to 20.")))
        if condition.matching is not Matching.AGENT and condition.side is not Side.BOTH:
            found.append(
                Problem(
                    f"{field}.side",
                    _("“%(condition)s” cannot balance: it matches people with people, so it needs both sides.")
                    % {"condition": condition.key},
                )
            )
    if found or not design.conditions or not design.participants:
        return found
    unit = assignment.unit(design)
    if design.participants % unit:
        more = design.participants + unit - design.participants % unit
        return [
            Problem(
                "participants",
                _(
                    "%(people)d participants cannot be balanced over these conditions and sides, which take %(unit)d "
                    "at a time. Ask for %(more)d, or change the weights."
                )
                % {"people": design.participants, "unit": unit, "more": more},
            )
        ]
    return []


# --- The rest -----------------------------------------------------------------------------------------


def _practice(design: Design) -> list[Problem]:
    slug = design.practice.agent
    if not slug:
        return []
    spec = _spec(slug)
    if spec is None or spec.kind is Kind.REFERENCE:
        return [Problem("practice", _("There is no agent “%(agent)s” to practise with.") % {"agent": slug})]
    for condition in design.conditions:
        market = Market.objects.filter(slug=condition.market, version=condition.market_version).first()
        if market is None:
            continue
        family = decode_recipe(market.recipe).family
        for role in condition.side.roles:
            if not spec.can_play(role=role.other, family=family):
                sentence = _("%(agent)s does not play the %(role)s in “%(market)s”, where people practise.")
                words = {"agent": spec.title, "role": _role_word(role.other), "market": market.name}
                return [Problem("practice", sentence % words)]
    return []


def _waiting(design: Design) -> list[Problem]:
    if all(condition.matching is Matching.AGENT for condition in design.conditions):
        return []
    waiting = design.waiting
    found = []
    if not 10 <= waiting.limit_s <= 3_600:
        found.append(Problem("waiting.limit_s", _("Let nobody wait for less than 10 seconds or more than an hour.")))
    if not 0 <= waiting.exit_after_s <= waiting.limit_s:
        sentence = _("The way out of the waiting room opens before its limit is reached.")
        found.append(Problem("waiting.exit_after_s", sentence))
    if waiting.pay_cents < 0:
        found.append(Problem("waiting.pay_cents", _("Part pay cannot be negative.")))
    return found


def _numbers(design: Design) -> list[Problem]:
    ranges = (
        ("rounds", design.rounds, 1, MAX_ROUNDS),
        ("scenarios.sets", design.scenarios.sets, 1, MAX_SETS),
        ("minutes", design.minutes, 1, 600),
        ("participants", design.participants, 0, 100_000),
        ("clocks.move_s", design.clocks.move_s, 10, 3_600),
        ("clocks.idle_s", design.clocks.idle_s, 60, 86_400),
    )
    return [
        Problem(field, _("Choose a whole number from %(low)d to %(high)d.") % {"low": low, "high": high})
        for field, value, low, high in ranges
        if not low <= value <= high
    ]


def _pay(design: Design) -> list[Problem]:
    pay = design.pay
    if pay.currency not in CURRENCIES:
        return [Problem("pay.currency", _("Choose a currency."))]
    found = []
    if not 0 <= pay.show_up_cents <= 100_000:
        found.append(Problem("pay.show_up_cents", _("A show-up fee is at least nothing and at most 1,000.")))
    if not 0 <= pay.exchange_ppm <= 100_000_000:
        found.append(Problem("pay.exchange_ppm", _("An exchange rate is at least 0 and at most 100.")))
    if pay.cap_cents is not None and pay.cap_cents < max(0, pay.floor_cents):
        found.append(Problem("pay.cap_cents", _("The largest bonus cannot be below the smallest, or below nothing.")))
    if not -pay.show_up_cents <= pay.floor_cents:
        fee = format_amount(pay.show_up_cents, pay.currency)
        sentence = _("Losses may use up the show-up fee of %(fee)s, and no more.") % {"fee": fee}
        found.append(Problem("pay.floor_cents", sentence))
    return found


def _survey(design: Design) -> list[Problem]:
    found = _keys("survey", [question.key for question in design.survey])
    for index, question in enumerate(design.survey):
        if not question.text.strip():
            found.append(Problem(f"survey.{index}.text", _("Write the question.")))
        blank = any(not option.strip() for option in question.options)
        if question.kind is AnswerKind.CHOICE and (len(question.options) < 2 or blank):
            sentence = _("Give at least two answers, one on each line.")
            found.append(Problem(f"survey.{index}.options", sentence))
        if question.kind is AnswerKind.SCALE and len(question.options) not in (0, 2):
            sentence = _("Give the words for 1 and for 7, each on a line of its own, or none.")
            found.append(Problem(f"survey.{index}.options", sentence))
    return found


def _completion(design: Design) -> list[Problem]:
    found = []
    for outcome, code in design.completion.codes.items():
        if outcome not in tuple(Outcome) or outcome == Outcome.WITHDREW:
            found.append(Problem("completion.codes", _("There is no outcome “%(outcome)s”.") % {"outcome": outcome}))
        elif not re.fullmatch(r"[A-Za-z0-9_-]{1,40}", code):
            sentence = _("A completion code has letters, digits, - and _, at most 40 of them.")
            found.append(Problem(f"completion.{outcome}", sentence))
    used = Counter(design.completion.codes.values())
    if any(count > 1 for count in used.values()):
        found.append(Problem("completion.codes", _("Give every outcome a code of its own: a code says what happened.")))
    url = design.completion.url
    if url and (not url.startswith("https://") or "{code}" not in url or len(url) > 300):
        sentence = _("The address to return to begins with https:// and has {code} where the code goes.")
        found.append(Problem("completion.url", sentence))
    return found


def counted(found: tuple[Problem, ...]) -> str:
    """How many things are wrong, for the top of a form."""
    return ngettext(
        "One thing has to be put right before this can be saved.",
        "%(count)d things have to be put right before this can be saved.",
        len(found),
    ) % {"count": len(found)}
