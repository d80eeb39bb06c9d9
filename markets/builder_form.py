"""What somebody types into the market builder, read into a `MarketSpec`, and a market as it would be typed.

Here: names of the form's fields, reading them with a sentence for each that cannot be read, and the
way back. What a spec may be is the engine's to say: values and costs are offered as the forms that its
parser names (`priors.VALUE_FORMS`) and are read by that parser, so that a new form appears here by
itself. What a market may be is `setup.new_market`'s to say. Nothing here writes.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from decimal import Decimal
from typing import Any, Literal

from django.http import QueryDict
from django.utils.text import slugify
from django.utils.translation import gettext as _
from msgspec import UnsetType

from markets import recipe_text, setup
from markets.engine import priors
from markets.engine.money import CURRENCIES, AmountError, format_plain, parse_amount
from markets.engine.priors import SpecError
from markets.engine.protocol import Role
from markets.engine.scenarios import MAX_BUYERS, EventDriven, Family, RecipeError, decode_recipe
from markets.models import Market
from markets.setup import MarketSpec

AS_TEXT = "text"
"""The choice of writing a spec down instead of filling a form in."""
OWN_RANGE = "range"
"""The choice of list prices by their ends."""
NUMBERS = re.compile("[A-Z]+")
"""Where a form of a spec has a number to fill in."""
_NUMBER = r"([0-9]{1,12}(?:\.[0-9]{0,20})?|\.[0-9]{1,20})"
_WHOLE = re.compile(r"[0-9]{1,9}")

LOOKED_UP = priors.HighestSpec | priors.RangeSpec | priors.LowestSpec | priors.LowestRangeSpec
Side = Literal["values", "costs"]
FORMS: Mapping[Side, tuple[str, ...]] = {"values": priors.VALUE_FORMS, "costs": priors.COST_FORMS}

PERSONA_MARK = "+"
"""Stands between an agent's slug and its way of talking."""


class FormError(ValueError):
    """Fields that cannot be read: name of the field to a sentence about it."""

    def __init__(self, errors: Mapping[str, str]) -> None:
        super().__init__(" ".join(errors.values()))
        self.errors = dict(errors)


@dataclass(frozen=True)
class Typed:
    """A form as it stands: one word a field, several for the fields that may have them."""

    words: Mapping[str, str] = field(default_factory=dict)
    buyers: tuple[str, ...] = ()
    """Agents of the buyers' seats, in order."""
    regulated: tuple[str, ...] = ()

    def __getitem__(self, name: str) -> str:
        return self.words.get(name, "")


BLANK: Mapping[str, str] = {
    "family": Family.BILATERAL.value,
    "opener": Role.SELLER.value,
    "products": "1",
    "stock": "1",
    "buyers": "1",
    "turns": "8",
    "unit": "list",
    "rho": "0",
    "currency": "USD",
    "openings": "on",
    "opening_low": "0.25",
    "opening_high": "0.3",
    "malformed_ends": "on",
    "listed": "on",
    "reveals": "on",
    "values_kind": "uniform:LO:HI",
    "values:uniform:LO:HI:0": "0.6",
    "values:uniform:LO:HI:1": "1.2",
    "costs_kind": "lowest",
    "seller_agent": "linear",
    "move_deadline_s": "600",
    "fill_wait_s": "120",
}


def blank(*, catalogue: str) -> Typed:
    """The form of a new market over a catalogue; in money where there is none."""
    words = {**BLANK, "catalogue": catalogue}
    if not catalogue:
        words |= {
            "unit": "money",
            "values:uniform:LO:HI:0": "0",
            "values:uniform:LO:HI:1": "100",
            "costs_kind": "constant:X",
            "costs:constant:X:0": "0",
        }
    return Typed(words=words, buyers=("linear",))


def posted(data: QueryDict) -> Typed:
    """What was typed. Strange input is kept, at a length that a page can show again and without what no database
    holds."""
    apart = ("buyer_agent", "buyer_persona", "seller_persona", "regulated")
    words = {str(name): _storable(data[name], 2_000) for name in data if name not in apart}
    if "seller_agent" in words:
        words["seller_agent"] = _voiced(words["seller_agent"], _storable(data.get("seller_persona", ""), 40))
    agents, personas = data.getlist("buyer_agent")[:MAX_BUYERS], data.getlist("buyer_persona")
    return Typed(
        words=words,
        buyers=tuple(
            _voiced(_storable(slug, 100), _storable(personas[place], 40) if place < len(personas) else "")
            for place, slug in enumerate(agents)
        ),
        regulated=tuple(data.getlist("regulated")[:2]),
    )


def _voiced(agent: str, persona: str) -> str:
    """An agent with a way of talking, as slugs write it; a slug that has one already keeps it."""
    return f"{agent}{PERSONA_MARK}{persona}" if persona and PERSONA_MARK not in agent else agent


def _storable(word: object, most: int) -> str:
    return str(word).replace("\x00", "")[:most]


# --- A market as it would be typed ------------------------------------------------------------------


def typed_of(market: Market) -> Typed:
    """The form that would make this version."""
    recipe = decode_recipe(market.recipe)
    mechanism = recipe.mechanism
    has_range = market.price_from_cents is not None or market.price_to_cents is not None
    words = {
        "slug": market.slug,
        "name": market.name,
        "summary": "" if recipe_text.is_composed(market) else market.summary,
        "family": recipe.family.value,
        "mechanism": market.mechanism,
        "turns": str(setup.turns_of(recipe)),
        "events": str(mechanism.events) if isinstance(mechanism, EventDriven) else "",
        "opener": getattr(mechanism, "opener", Role.SELLER).value,
        "catalogue": market.catalogue.slug if market.catalogue else "",
        "category": market.category,
        "prices": OWN_RANGE if has_range else "",
        "price_from": "" if market.price_from_cents is None else format_plain(market.price_from_cents),
        "price_to": "" if market.price_to_cents is None else format_plain(market.price_to_cents),
        "split": "" if isinstance(recipe.split, UnsetType) else recipe.split.value,
        "gains": "" if isinstance(recipe.gains, UnsetType) else recipe.gains.value,
        "products": str(recipe.products),
        "stock": str(recipe.stock),
        "buyers": str(recipe.buyers),
        "unit": "money" if recipe.unit_is_money else "list",
        "rho": _plain(recipe.rho),
        "currency": recipe.currency,
        "openings": "on" if recipe.opening_bid_share else "",
        "malformed_ends": "on" if recipe.malformed_ends else "",
        "listed": "on" if market.is_listed else "",
        "reveals": "on" if market.reveals_values else "",
        "seller_agent": market.seller_agent,
        "move_deadline_s": str(market.move_deadline_s),
        "fill_wait_s": str(market.fill_wait_s),
    }
    low, high = recipe.opening_bid_share or (0.25, 0.3)
    words |= {"opening_low": _plain(low), "opening_high": _plain(high)}
    words |= _spec_words("values", priors.format_spec(recipe.value_spec))
    words |= _spec_words("costs", priors.format_spec(recipe.cost_spec))
    words |= _told_words(market, words)
    agents = market.buyer_agents.split(",")
    return Typed(
        words=words,
        buyers=tuple(agents[place % len(agents)] for place in range(recipe.buyers)),
        regulated=tuple(role.value for role in recipe.regulated),
    )


def _plain(number: float) -> str:
    """A number as it would be typed, nothing rounded off."""
    text = format(Decimal(repr(float(number))), "f")
    return text.removesuffix(".0")


def _told_words(market: Market, words: Mapping[str, str]) -> dict[str, str]:
    """What is told of values and cost, where that is not how they are drawn."""
    try:
        truth = decode_recipe(setup.new_market(spec_of(Typed(words=words))).recipe)
    except (FormError, setup.SetupError, SpecError, RecipeError):
        return {}  # The form will say what is not allowed any more.
    recipe = decode_recipe(market.recipe)
    told = {}
    if recipe.public_values != truth.public_values:
        told["told_values"] = priors.format_spec(recipe.public_values)
    if recipe.cost_prior != truth.cost_prior:
        told["told_costs"] = priors.format_spec(recipe.cost_prior)
    return told


def _spec_words(side: Side, text: str) -> dict[str, str]:
    """A written spec as the form it has, and always as text too."""
    words = {f"{side}_kind": AS_TEXT, f"{side}_text": text}
    for form in FORMS[side]:
        pattern = _NUMBER.join(re.escape(piece) for piece in NUMBERS.split(form))
        match = re.fullmatch(pattern, text)
        if match is not None:
            words[f"{side}_kind"] = form
            words |= {number_name(side, form, place): number for place, number in enumerate(match.groups())}
            break
    return words


def number_name(side: Side, form: str, place: int) -> str:
    """Name of the field for a form's number."""
    return f"{side}:{form}:{place}"


# --- Reading ----------------------------------------------------------------------------------------


FEWEST_OF_SEVERAL = 2


def spec_of(typed: Typed, *, slug: str = "") -> MarketSpec:
    """The market that was asked for; `slug` where it is fixed. Raises `FormError`.

    Only what can be told field by field is refused here; `setup.new_market` judges the rest.
    """
    errors: dict[str, str] = {}
    money = typed["unit"] == "money"
    catalogue = typed["catalogue"] or None
    if catalogue is None and not money:
        errors["unit"] = _("Without a catalogue there is no list price: give values and costs as amounts of money.")
    currency = typed["currency"] if typed["currency"] in CURRENCIES else "USD"
    if typed["currency"] != currency:
        errors["currency"] = _("Choose one of %(known)s.") % {"known": ", ".join(CURRENCIES)}
    slug = slug or typed["slug"].strip() or slugify(typed["name"])[:50]
    if not slug:
        errors["name"] = _("Give the market a name.")
    spec = MarketSpec(
        slug=slug,
        name=typed["name"].strip(),
        summary=typed["summary"].strip(),
        family=typed["family"],
        mechanism=typed["mechanism"],
        turns=_whole(typed, "turns", errors),
        events=_whole(typed, "events", errors) if typed["events"].strip() else None,
        opener=Role.BUYER if typed["opener"] == Role.BUYER.value and typed["family"] == Family.BILATERAL else None,
        catalogue=catalogue,
        **({} if catalogue is None else _goods(typed, currency, errors)),
        gains=typed["gains"],
        products=_whole(typed, "products", errors),
        stock=_whole(typed, "stock", errors),
        buyers=_whole(typed, "buyers", errors),
        values=_spec_text(typed, "values", errors),
        cost=_spec_text(typed, "costs", errors),
        values_told=_told(typed, "told_values", errors),
        cost_told=_told(typed, "told_costs", errors),
        rho=_share(typed, "rho", errors),
        unit="money" if money else "list",
        currency=currency,
        opening_bids=(_share(typed, "opening_low", errors), _share(typed, "opening_high", errors))
        if typed["openings"]
        else None,
        regulated=tuple(role for role in Role if role.value in typed.regulated),
        malformed_ends=bool(typed["malformed_ends"]),
        seller_agent=typed["seller_agent"],
        buyer_agents=",".join(_shortest_cycle(typed.buyers)),
        move_deadline_s=_whole(typed, "move_deadline_s", errors),
        fill_wait_s=_whole(typed, "fill_wait_s", errors),
        listed=bool(typed["listed"]),
        reveals_values=bool(typed["reveals"]),
    )
    if spec.family == Family.MULTI_BUYER.value and spec.buyers is not None and spec.buyers < FEWEST_OF_SEVERAL:
        errors.setdefault("buyers", _("Several buyers are two at least."))
    if errors:
        raise FormError(errors)
    return spec


def _goods(typed: Typed, currency: str, errors: dict[str, str]) -> dict[str, Any]:
    """What is drawn from a catalogue; without one these fields are not there, and what they held says nothing."""
    return {
        "category": typed["category"],
        "price_tier": int(typed["prices"]) if _WHOLE.fullmatch(typed["prices"]) else None,
        "price_from_cents": _amount(typed, "price_from", currency, errors),
        "price_to_cents": _amount(typed, "price_to", currency, errors),
        "split": typed["split"],
    }


def _whole(typed: Typed, name: str, errors: dict[str, str]) -> int:
    word = typed[name].strip()
    if _WHOLE.fullmatch(word):
        return int(word)
    errors[name] = _("Give a whole number, such as %(example)s.") % {"example": BLANK.get(name, "50")}
    return 0


def _share(typed: Typed, name: str, errors: dict[str, str]) -> float:
    word = typed[name].strip()
    if re.fullmatch(_NUMBER, word):
        return float(word)
    errors[name] = _("Give a number, such as %(example)s.") % {"example": BLANK.get(name, "0.5")}
    return 0.0


def _amount(typed: Typed, name: str, currency: str, errors: dict[str, str]) -> int | None:
    if typed["prices"] != OWN_RANGE or not typed[name].strip():
        return None
    try:
        return parse_amount(typed[name], currency=currency)
    except AmountError as error:
        errors[name] = str(error)
        return None


def _spec_text(typed: Typed, side: Side, errors: dict[str, str]) -> str:
    """The spec that a form stands for, read by the engine's own parser."""
    text = written(typed, side)
    try:
        spec = priors.parse_value_rule(text) if side == "values" else priors.parse_cost_spec(text)
    except SpecError as error:
        errors[side] = str(error)
        return text
    if not typed["catalogue"] and isinstance(spec, LOOKED_UP):
        errors[side] = _("Without a catalogue there are no prices to look up: choose another kind.")
    return text


def written(typed: Typed, side: Side) -> str:
    """A side's spec as text, whether it can be read or not."""
    form = typed[f"{side}_kind"]
    if form not in FORMS[side]:
        return typed[f"{side}_text"].strip()
    text = ""
    for place, piece in enumerate(NUMBERS.split(form)):
        text += piece if place == 0 else typed[number_name(side, form, place - 1)].strip() + piece
    return text


def _told(typed: Typed, name: str, errors: dict[str, str]) -> str:
    text = typed[name].strip()
    try:
        if text:
            priors.parse_value_spec(text)
    except SpecError as error:
        errors[name] = str(error)
    return text


def _shortest_cycle(agents: tuple[str, ...]) -> tuple[str, ...]:
    """The agents without repetition: seats take them in turn."""
    for length in range(1, len(agents) + 1):
        if all(agents[place] == agents[place % length] for place in range(len(agents))):
            return agents[:length]
    return ("linear",)
