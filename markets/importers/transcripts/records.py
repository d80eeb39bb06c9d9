"""One dialogue of a public corpus as it is kept, whatever corpus it is from.

Here: the economic record (`Dialogue`), the words that hang on it (`Text`), its hash, and what follows
from it alone (counts, openings, shares). Not here: the files of a corpus (a module a format), storing.

Contract: a record holds no words of anybody and nobody's name, so its hash stays valid when words are
erased. What cannot be known is None and `notes` says why, by the name of the field. Shares are not
clamped: a price beyond a target or a limit gives a share below 0 or above 1. Equal records have equal
bytes (`canonical`).
"""

import hashlib
from typing import Literal, TypeAlias

import msgspec

from markets.engine.money import Cents

EventType: TypeAlias = Literal["message", "offer", "accept", "reject", "leave", "choose"]
Outcome: TypeAlias = Literal["deal", "no_deal", "walk_away", "disagreement", "unfinished"]
TextKind: TypeAlias = Literal["said", "thought", "private"]
"""`private`: what this party alone knew at the start."""
Units: TypeAlias = dict[str, int]
"""How many units of each issue."""

OUTCOMES: tuple[Outcome, ...] = ("deal", "no_deal", "walk_away", "disagreement", "unfinished")


class Event(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """One turn, without its words."""

    n: int
    """From 1 without gaps."""
    party: str
    type: EventType
    at_ms: int | None = None
    """Milliseconds since the first event; None where the corpus has no times."""
    began_ms: int | None = None
    """When the party began to write it, on the same clock."""
    price_cents: Cents | None = None
    units: dict[str, Units] | None = None
    """Who would get how much, of an offer; of a choice, what its party says it gets."""


class Side(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """One party: what it wanted, what it did and what it came to."""

    party: str
    role: Literal["seller", "buyer", ""]
    """Empty where nobody sells."""
    kind: Literal["person", "agent"]
    agent: str = ""
    """Name of the model, of an agent."""
    reservation_value_cents: Cents | None = None
    target_cents: Cents | None = None
    """What it was told to aim for: no reservation value."""
    points: Units | None = None
    """Its points for one unit of each issue."""
    no_deal_points: int | None = None
    units: Units | None = None
    """What it got."""
    payoff_points: int | None = None
    surplus_cents: Cents | None = None
    surplus_share: float | None = None
    target_share: float | None = None
    """How far the price came from the other side's target to its own: 1 at its own, 0 at the other's."""
    published_payoff: int | None = None
    """What the corpus says it came to: cents where there is a currency, else points."""
    messages: int = 0
    offers: int = 0
    """Formal offers."""
    distinct_offers: int = 0
    opening_cents: Cents | None = None
    """Its first formal offer of a price."""
    opening_ratio: float | None = None
    """Its first formal offer ÷ list price."""
    notes: dict[str, str] = {}

    @property
    def payoff(self) -> int | None:
        """What it came to, in the unit of `published_payoff`."""
        return self.surplus_cents if self.points is None else self.payoff_points


class Dialogue(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """The economic record of one negotiation."""

    format: str
    key: str
    """What names it in its corpus."""
    outcome: Outcome
    sides: tuple[Side, ...]
    events: tuple[Event, ...]
    currency: str = ""
    """Of a negotiation about a price; empty of one about issues."""
    title: str = ""
    category: str = ""
    list_price_cents: Cents | None = None
    price_cents: Cents | None = None
    """What was agreed."""
    price_ratio: float | None = None
    """Price ÷ list price."""
    issues: Units | None = None
    """What there was to divide."""
    started_at: str | None = None
    """Time of the first event, ISO 8601."""
    duration_ms: int | None = None
    notes: dict[str, str] = {}


class Text(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Words that belong to an event, or (`n` 0) that a party was given or wrote before the first."""

    n: int
    party: str
    kind: TextKind
    text: str


class Transcript(msgspec.Struct, frozen=True, kw_only=True):
    """A dialogue with its words."""

    dialogue: Dialogue
    texts: tuple[Text, ...]
    erased: frozenset[str] = frozenset()
    """Parties that were erased before this copy was written."""


def canonical(dialogue: Dialogue) -> bytes:
    """The bytes that are hashed and stored."""
    return msgspec.json.encode(dialogue, order="sorted")


def sha256(dialogue: Dialogue) -> str:
    """Hash of the economic record."""
    return hashlib.sha256(canonical(dialogue)).hexdigest()


def decode(record: str | bytes) -> Dialogue:
    """A stored record. Raises `msgspec.DecodeError`."""
    return msgspec.json.decode(record, type=Dialogue)


def pseudonym(*, format: str, key: str, party: str) -> str:
    """A name for one party of one dialogue that says nothing of a person and is the same in every import."""
    digest = hashlib.sha256("\n".join(("pseudonym", format, key, party)).encode("utf-8", "replace")).hexdigest()
    return f"corpus-{digest[:16]}"


# --- What follows from a record -----------------------------------------------------------------------


def counted(side: Side, events: tuple[Event, ...], *, list_price_cents: Cents | None) -> Side:
    """`side` with what it did, counted."""
    own = [event for event in events if event.party == side.party]
    prices = [event.price_cents for event in own if event.type == "offer" and event.price_cents is not None]
    splits = {msgspec.json.encode(event.units, order="sorted") for event in own if event.type == "offer"}
    opening = prices[0] if prices else None
    return msgspec.structs.replace(
        side,
        messages=sum(event.type == "message" for event in own),
        offers=sum(event.type == "offer" for event in own),
        distinct_offers=len(set(prices)) if prices else len(splits),
        opening_cents=opening,
        opening_ratio=None if opening is None or not list_price_cents else opening / list_price_cents,
    )


def in_price(sides: tuple[Side, ...], *, price_cents: Cents | None, deal: bool) -> tuple[Side, ...]:
    """A seller and a buyer with what the price is worth to them, as far as it can be known."""
    by_role = {side.role: side for side in sides}
    return tuple(
        _priced(side, by_role["buyer" if side.role == "seller" else "seller"], price_cents=price_cents, deal=deal)
        for side in sides
    )


NO_LIMIT = "The corpus gives a target to aim for and no reservation value."
NOT_AGREED = "Nothing was agreed."
NO_TIMES = "The corpus records no times."


def _priced(side: Side, other: Side, *, price_cents: Cents | None, deal: bool) -> Side:
    sign = 1 if side.role == "seller" else -1
    notes = dict(side.notes)
    surplus: Cents | None = None
    share: float | None = None
    target_share: float | None = None
    if side.reservation_value_cents is None:
        notes |= dict.fromkeys(("reservation_value_cents", "surplus_cents", "surplus_share"), NO_LIMIT)
    elif not deal:
        surplus = 0
    elif price_cents is None:
        notes["surplus_cents"] = notes["surplus_share"] = "The price is not known."
    else:
        surplus = sign * (price_cents - side.reservation_value_cents)
    if surplus is not None and other.reservation_value_cents is not None and side.reservation_value_cents is not None:
        joint = sign * (other.reservation_value_cents - side.reservation_value_cents)
        share = surplus / joint if joint > 0 else None
        if share is None:
            notes["surplus_share"] = "There was no price that both could gain from."
    if side.target_cents is not None and other.target_cents is not None:
        if not deal:
            notes["target_share"] = NOT_AGREED
        elif price_cents is None:
            notes["target_share"] = "The price is not known."
        elif side.target_cents == other.target_cents:
            notes["target_share"] = "Both sides aimed for the same price."
        else:
            target_share = (price_cents - other.target_cents) / (side.target_cents - other.target_cents)
    return msgspec.structs.replace(
        side, surplus_cents=surplus, surplus_share=share, target_share=target_share, notes=notes
    )
