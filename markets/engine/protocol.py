"""Actions, events, codes and their strict JSON form: the vocabulary of one negotiation.

Actions are imperatives that a party sends; events are past-tense facts that the rules append to
the log. Nothing here judges a move (`rules`) or folds a log (`state`). Events hold economic facts
alone: free text hangs on the event number in rows of its own, so that it can be erased while the
log and its hash stay valid.

Contract: one decoder per direction, strict, unknown fields refused. `PROTOCOL_VERSION` changes
whenever a field, a tag or a meaning changes; what an older version wrote is still read, folded and
encoded byte for byte as it was.
"""

import hashlib
from collections.abc import Iterable, Sequence
from enum import StrEnum
from typing import TypeAlias, final

import msgspec

from markets.engine.money import MAX_PRICE_CENTS, Cents

PROTOCOL_VERSION = "2"

MAX_TALK_CHARS = 2_000
"""Longest talk of one message, in characters; a longer one is refused, never cut."""

MAX_WAIT_MS = 600_000
"""Longest timed wait in milliseconds: ten minutes."""


class Role(StrEnum):
    """Side of the market a party sits on."""

    SELLER = "seller"
    BUYER = "buyer"

    @property
    def other(self) -> "Role":
        """The opposite side."""
        return _BUYING if self is _SELLING else _SELLING


Party: TypeAlias = str
"""`"seller"`, `"buyer-1"`, `"buyer-2"`, …: one chair of a negotiation."""

SELLER: Party = "seller"


_SELLING, _BUYING = Role.SELLER, Role.BUYER
"""Bound once: to look a member up on its class costs as much as a small structure."""


def buyer_party(buyer: int) -> Party:
    """Name of the chair of buyer number `buyer` (1-based)."""
    return f"buyer-{buyer}"


_BUYERS: dict[Party, int] = {buyer_party(buyer): buyer for buyer in range(1, 65)}
"""The chairs of all usual sizes, so that a name is taken apart only where it is none of them."""


def role_of(party: Party) -> Role:
    """Side that `party` sits on."""
    return _SELLING if party == SELLER else _BUYING


def buyer_of(party: Party) -> int:
    """Thread number of a buyer's chair; 0 for the seller, who has one thread with each buyer.

    Raises `ValueError` for what is no chair, so that nobody is taken for somebody else.
    """
    known = _BUYERS.get(party)
    if known is not None:
        return known
    if party == SELLER:
        return 0
    buyer = int(party.removeprefix("buyer-"))
    if buyer < 1 or party != buyer_party(buyer):
        raise ValueError(f"{party!r} is no party of a negotiation.")
    return buyer


class Message(msgspec.Struct, frozen=True, gc=False, kw_only=True, forbid_unknown_fields=True):
    """What every action carries. The actions are final: `type(action) is Say` tells them apart at a fifth of
    the cost of an `isinstance` that says no."""

    buyer: int = 0
    """Thread the action belongs to, 1-based; 0 where a party has only one thread."""
    talk: str = ""
    """Free text for the other side; binds nobody."""
    thought: str = ""
    """Hidden reasoning of an agent; never leaves its own seat."""


@final
class Say(Message, frozen=True, gc=False, tag="say"):
    """Talk without an economic act."""


@final
class MakeOffer(Message, frozen=True, gc=False, tag="make_offer"):
    """A binding price for one unit of one product; replaces the party's own earlier one."""

    price_cents: Cents
    product: int = 0
    """Index in `Scenario.products`, 0-based."""


@final
class AcceptOffer(Message, frozen=True, gc=False, tag="accept_offer"):
    """Take a standing offer of the other side; this alone closes a deal."""

    offer_id: int
    """Number of the offer within its thread, from 1."""


@final
class RejectOffer(Message, frozen=True, gc=False, tag="reject_offer"):
    """Turn a standing offer of the other side down; it can never be accepted afterwards."""

    offer_id: int


@final
class Wait(Message, frozen=True, gc=False, tag="wait"):
    """Let simulated time pass; only a mechanism with a simulated clock knows it."""

    for_ms: int = 0
    """Longest wait in milliseconds; 0 waits for the other side."""


@final
class SearchPrice(Message, frozen=True, gc=False, tag="search_price"):
    """Look up what is public about prices; only an event-driven market knows it. Changes nothing."""

    product: int = 0
    """Index in `Scenario.products`, 0-based."""


@final
class Leave(Message, frozen=True, gc=False, tag="leave"):
    """Walk away for good: a buyer from its thread, the seller from all of them."""


Action: TypeAlias = Say | MakeOffer | AcceptOffer | RejectOffer | Wait | SearchPrice | Leave


class LapseReason(StrEnum):
    """Why a standing offer stopped standing without anybody answering it."""

    SOLD_OUT = "sold_out"
    BUYER_SERVED = "buyer_served"


class EndReason(StrEnum):
    """Why a negotiation is over."""

    DEAL = "deal"
    SOLD_OUT = "sold_out"
    BUYERS_GONE = "buyers_gone"
    SELLER_LEFT = "seller_left"
    TURNS_USED = "turns_used"
    EVENTS_USED = "events_used"
    """An event-driven negotiation reached its cap."""
    SILENCE = "silence"
    """Both sides wait for the other and nothing is on its way."""
    DEADLINE = "deadline"
    """Somebody let its time run out, and nobody is left to go on."""
    MALFORMED = "malformed"
    CLOSED = "closed"
    """What a buyer is told when the reason concerns other threads."""


class OfferMade(msgspec.Struct, frozen=True, gc=False, tag="offer_made", forbid_unknown_fields=True):
    """`by` put a price on `product` in the thread of `buyer`."""

    by: Role
    buyer: int
    offer_id: int
    product: int
    price_cents: Cents
    opening: bool = False
    """True when the market's opening rule made it; it spent no message."""


class OfferAccepted(msgspec.Struct, frozen=True, gc=False, tag="offer_accepted", forbid_unknown_fields=True):
    """`by` took the other side's offer: one unit changed hands at `price_cents`."""

    by: Role
    buyer: int
    offer_id: int
    product: int
    price_cents: Cents


class OfferRejected(msgspec.Struct, frozen=True, gc=False, tag="offer_rejected", forbid_unknown_fields=True):
    """`by` turned the other side's offer down."""

    by: Role
    buyer: int
    offer_id: int


class OfferLapsed(msgspec.Struct, frozen=True, gc=False, tag="offer_lapsed", forbid_unknown_fields=True):
    """A standing offer fell because stock or the buyer's single want was used up."""

    buyer: int
    offer_id: int
    reason: LapseReason


class ProductSoldOut(msgspec.Struct, frozen=True, gc=False, tag="product_sold_out", forbid_unknown_fields=True):
    """The last unit of `product` is gone: a public fact, told to everybody."""

    product: int


class MessageSent(msgspec.Struct, frozen=True, gc=False, tag="message_sent", forbid_unknown_fields=True):
    """`by` spoke without an offer; the words are kept outside the economic log."""

    by: Role
    buyer: int


class Waited(msgspec.Struct, frozen=True, gc=False, tag="waited", forbid_unknown_fields=True):
    """`by` chose to let simulated time pass; the other side is not told."""

    by: Role
    buyer: int
    until_ms: int | None
    """Clock time at which the wait is over unless something arrives earlier; None waits for that."""


class PriceSearched(msgspec.Struct, frozen=True, gc=False, tag="price_searched", forbid_unknown_fields=True):
    """`by` looked up what is public about prices; the other side is not told."""

    by: Role
    buyer: int
    product: int


class MoveRefused(msgspec.Struct, frozen=True, gc=False, tag="move_refused", forbid_unknown_fields=True):
    """An agent's move broke a rule: nothing changed, but its message is spent."""

    by: Role
    buyer: int
    """Thread it was meant for; 0 where it named none that exists."""
    code: str


class TurnPassed(msgspec.Struct, frozen=True, gc=False, tag="turn_passed", forbid_unknown_fields=True):
    """What the other side sees of a refused move. Never in a log: the reason could tell a value."""

    by: Role
    buyer: int


class PartyLeft(msgspec.Struct, frozen=True, gc=False, tag="party_left", forbid_unknown_fields=True):
    """`by` walked away; `buyer` is 0 when the seller left everybody."""

    by: Role
    buyer: int


class DeadlinePassed(msgspec.Struct, frozen=True, gc=False, tag="deadline_passed", forbid_unknown_fields=True):
    """`by` did not move in time; what follows from it is in the events after this one."""

    by: Role
    buyer: int


class NegotiationEnded(msgspec.Struct, frozen=True, gc=False, tag="negotiation_ended", forbid_unknown_fields=True):
    """Nothing can be added after this."""

    reason: EndReason


Event: TypeAlias = (
    OfferMade
    | OfferAccepted
    | OfferRejected
    | OfferLapsed
    | ProductSoldOut
    | MessageSent
    | Waited
    | PriceSearched
    | MoveRefused
    | PartyLeft
    | DeadlinePassed
    | NegotiationEnded
)


class LogEntry(msgspec.Struct, frozen=True, gc=False, forbid_unknown_fields=True):
    """One line of the log."""

    n: int
    """Number in the negotiation, from 1, without gaps."""
    at_ms: int
    """Milliseconds since the negotiation opened, simulated or of the wall; 0 throughout a simulation
    without a clock."""
    event: Event


class RefusalCode(StrEnum):
    """Why a move was refused. The sentence that a person reads is `REFUSAL_SENTENCES[code]`."""

    NEGOTIATION_ENDED = "negotiation_ended"
    SOLD_OUT = "sold_out"
    NOT_YOUR_TURN = "not_your_turn"
    AWAITING_ANSWER = "awaiting_answer"
    UNKNOWN_THREAD = "unknown_thread"
    THREAD_CLOSED = "thread_closed"
    ALREADY_SERVED = "already_served"
    UNKNOWN_PRODUCT = "unknown_product"
    PRICE_OUT_OF_RANGE = "price_out_of_range"
    UNKNOWN_OFFER = "unknown_offer"
    OFFER_GONE = "offer_gone"
    OWN_OFFER = "own_offer"
    BEYOND_RESERVATION = "beyond_reservation"
    TURNS_USED = "turns_used"
    EMPTY_MESSAGE = "empty_message"
    TALK_TOO_LONG = "talk_too_long"
    TALK_NOT_TEXT = "talk_not_text"
    WAIT_NOT_AVAILABLE = "wait_not_available"
    WAIT_OUT_OF_RANGE = "wait_out_of_range"
    SEARCH_NOT_AVAILABLE = "search_not_available"
    DEADLINE_PASSED = "deadline_passed"
    MALFORMED = "malformed"


REFUSAL_SENTENCES: dict[RefusalCode, str] = {
    RefusalCode.NEGOTIATION_ENDED: "This negotiation is over.",
    RefusalCode.SOLD_OUT: "Too late: this product has just been sold.",
    RefusalCode.NOT_YOUR_TURN: "It is not your turn yet.",
    RefusalCode.AWAITING_ANSWER: "Wait for this buyer's answer before you write again.",
    RefusalCode.UNKNOWN_THREAD: "There is no such buyer in this negotiation.",
    RefusalCode.THREAD_CLOSED: "This conversation is closed.",
    RefusalCode.ALREADY_SERVED: "This buyer has already bought and wants one unit only.",
    RefusalCode.UNKNOWN_PRODUCT: "There is no such product in this negotiation.",
    RefusalCode.PRICE_OUT_OF_RANGE: "A price must be at least one cent and at most 100 million.",
    RefusalCode.UNKNOWN_OFFER: "There is no such offer in this conversation.",
    RefusalCode.OFFER_GONE: "That offer was rejected, replaced or withdrawn and no longer stands.",
    RefusalCode.OWN_OFFER: "That is your own offer; only the other side can accept or reject it.",
    RefusalCode.BEYOND_RESERVATION: "This market refuses prices that would cost you money.",
    RefusalCode.TURNS_USED: "All the seller's messages have been used.",
    RefusalCode.EMPTY_MESSAGE: "Write something, or name a price.",
    RefusalCode.TALK_TOO_LONG: "A message may be at most 2,000 characters long.",
    RefusalCode.TALK_NOT_TEXT: "The message holds characters that cannot be stored. Type it again.",
    RefusalCode.WAIT_NOT_AVAILABLE: "This market has no clock to wait on.",
    RefusalCode.WAIT_OUT_OF_RANGE: "A wait lasts at most ten minutes and never goes back in time.",
    RefusalCode.SEARCH_NOT_AVAILABLE: "This market has no prices to look up.",
    RefusalCode.DEADLINE_PASSED: "The deadline has passed.",
    RefusalCode.MALFORMED: "The message could not be read.",
}


class IllegalAction(Exception):
    """A move breaks a rule. Carries the code; the state is unchanged."""

    def __init__(self, code: RefusalCode) -> None:
        super().__init__(f"{code.value}: {REFUSAL_SENTENCES[code]}")
        self.code = code

    @property
    def sentence(self) -> str:
        """What to tell the sender, in English."""
        return REFUSAL_SENTENCES[self.code]


class ProtocolError(ValueError):
    """Bytes that are no message of ours."""


_actions: msgspec.json.Decoder[Action] = msgspec.json.Decoder(Action, strict=True)
_log = msgspec.json.Decoder(tuple[LogEntry, ...], strict=True)
_encoder = msgspec.json.Encoder()


def decode_action(data: bytes | str) -> Action:
    """Read one action. Raises `ProtocolError` on anything but a well-formed one."""
    try:
        return _actions.decode(data)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise ProtocolError(str(error)) from error


def decode_log(data: bytes | str) -> tuple[LogEntry, ...]:
    """Read an event log. Raises `ProtocolError` on anything else."""
    try:
        return _log.decode(data)
    except (msgspec.DecodeError, UnicodeError, RecursionError) as error:
        raise ProtocolError(str(error)) from error


def encode(value: object) -> bytes:
    """Canonical JSON of any struct of the engine: fields in declared order, no white space."""
    return _encoder.encode(value)


class LogHash:
    """SHA-256 over the economic logs of negotiations that are added one by one."""

    def __init__(self) -> None:
        self._digest = hashlib.sha256()

    def add(self, log: Sequence[LogEntry]) -> None:
        """Take in the next log."""
        self._digest.update(encode(log))
        self._digest.update(b"\n")

    def hexdigest(self) -> str:
        """The hash so far."""
        return self._digest.hexdigest()


def log_sha256(logs: Iterable[Sequence[LogEntry]]) -> str:
    """Hash over the economic logs of several negotiations, in order; same play, same hash."""
    running = LogHash()
    for log in logs:
        running.add(log)
    return running.hexdigest()


def is_text(talk: str) -> bool:
    """Whether talk can be stored and sent anywhere: no NUL, no half of a surrogate pair."""
    try:
        talk.encode()
    except UnicodeEncodeError:
        return False
    return "\0" not in talk


def is_valid_price(price_cents: int) -> bool:
    """Whether a price is one that an offer may carry."""
    return 1 <= price_cents <= MAX_PRICE_CENTS
