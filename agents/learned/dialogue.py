"""The compact dialogue: what a small model reads and writes at a table with one product.

Here: the closed vocabulary, a seller's view of the table as chat messages of whole words, and the
reading of its answer. Not here: token ids and masks (`training.tokenizer`), any decision, any
value of another party: everything is built from `markets.engine.observation`.

    system     buyers n4 turns t8 cost 0
    user       left t8
    assistant  ask b2 84
    user       b2 no left t7

Contract: every word is one token. Prices are whole hundredths of the product's public list price,
0 to 160, so that a policy plays at any price scale. The message that follows a move restates the
turns left. The messages up to any moment follow from the observation and the seat's own past
alone, and a later dialogue starts with the earlier one.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from markets.engine.money import MAX_PRICE_CENTS, Cents
from markets.engine.observation import Observation, SeenEvent
from markets.engine.protocol import (
    AcceptOffer,
    Action,
    Leave,
    MakeOffer,
    MessageSent,
    MoveRefused,
    OfferAccepted,
    OfferMade,
    OfferRejected,
    PartyLeft,
    Role,
    TurnPassed,
)
from markets.engine.scenarios import MAX_BUYERS, MAX_TURNS, Family, SellerTurns

HIGHEST_NUMBER = 160
"""Prices run from 0 to this many hundredths of the list price."""

PAD, UNKNOWN, SYSTEM, USER, ASSISTANT, END = (
    "<|pad|>",
    "<|unknown|>",
    "<|system|>",
    "<|user|>",
    "<|assistant|>",
    "<|end|>",
)
SPECIAL = (PAD, UNKNOWN, SYSTEM, USER, ASSISTANT, END)

_WORDS = (
    "buyers",
    "turns",
    "cost",
    "left",
    "ask",
    "accept",
    "leave",
    "no",
    "bid",
    "gone",
    "said",
    "passed",
    "bought",
    "refused",
)

LONGEST_ANSWER = 4
"""Words of the longest answer that can be read, its end marker included."""


class Message(NamedTuple):
    """One chat message."""

    role: str
    """`system`, `user` (the table) or `assistant` (the learner)."""
    words: tuple[str, ...]

    @property
    def content(self) -> str:
        """The message as a chat template takes it."""
        return " ".join(self.words)


SAMPLE = (
    Message("system", ("buyers", "n4", "turns", "t8", "cost", "0")),
    Message("user", ("left", "t8")),
    Message("assistant", ("ask", "b2", "84")),
    Message("user", ("b2", "no", "left", "t7")),
    Message("assistant", ("leave",)),
)
"""A dialogue for checks of tokenizers and templates."""


class NoDialogue(ValueError):
    """A seat that this dialogue has no words for; the message is a sentence."""


def vocabulary() -> tuple[str, ...]:
    """Every word, special ones first; the order is the order of token ids and never changes."""
    return (
        *SPECIAL,
        *_WORDS,
        *(buyer_word(buyer) for buyer in range(1, MAX_BUYERS + 1)),
        *(f"n{buyers}" for buyers in range(1, MAX_BUYERS + 1)),
        *(f"t{turns}" for turns in range(MAX_TURNS + 1)),
        *(str(number) for number in range(HIGHEST_NUMBER + 1)),
    )


def buyer_word(buyer: int) -> str:
    """The name of buyer number `buyer` (1-based)."""
    return f"b{buyer}"


def price_word(observation: Observation, price_cents: Cents) -> str:
    """The whole number nearest to a price."""
    list_price = observation.products[0].list_price_cents
    return str(max(0, min(HIGHEST_NUMBER, round(100 * price_cents / list_price))))


def price_cents(observation: Observation, word: str) -> Cents:
    """The price that a number stands for, at least one cent."""
    list_price = observation.products[0].list_price_cents
    return max(1, min(MAX_PRICE_CENTS, round(int(word) * list_price / 100)))


def check(observation: Observation) -> None:
    """Raise `NoDialogue` unless the seat is that of a seller with one product and seller turns."""
    if observation.role is not Role.SELLER or observation.family is not Family.MULTI_BUYER:
        raise NoDialogue("The compact dialogue is for sellers with one product and several buyers.")
    if not isinstance(observation.mechanism, SellerTurns):
        raise NoDialogue("The compact dialogue is for markets in seller turns.")


def opening(observation: Observation, past: Iterable[SeenEvent] = ()) -> tuple[Message, Message]:
    """The rules of the table, and what lies on it before the first own move."""
    check(observation)
    assert isinstance(observation.mechanism, SellerTurns)
    turns = observation.mechanism.turns
    cost = price_word(observation, observation.products[0].reservation_value_cents)
    rules = Message("system", ("buyers", f"n{observation.buyers}", "turns", f"t{turns}", "cost", cost))
    return rules, heard(observation, past, turns_left=turns)


def heard(observation: Observation, events: Iterable[SeenEvent], *, turns_left: int) -> Message:
    """What happened since the last own move, and the turns that are left."""
    words = [word for seen in events for word in _news(observation, seen)]
    return Message("user", (*words, "left", f"t{turns_left}"))


def transcript(observation: Observation, past: Sequence[SeenEvent]) -> tuple[Message, ...]:
    """The whole dialogue of a seller about to move, rebuilt from its own past.

    Own moves come back as they would be written; of an own move that was refused only that it
    was is known, and it stands as `refused`.
    """
    check(observation)
    assert isinstance(observation.mechanism, SellerTurns)
    own = [index for index, seen in enumerate(past) if _is_own_message(seen)]
    cuts = [*own, len(past)]
    messages = list(opening(observation, past[: cuts[0]]))
    for k, index in enumerate(own):
        messages.append(Message("assistant", _own_words(observation, past[index])))
        left = observation.mechanism.turns - k - 1
        messages.append(heard(observation, past[index : cuts[k + 1]], turns_left=left))
    return tuple(messages)


def read(observation: Observation, words: Sequence[str]) -> Action | None:
    """The action that an answer (without its end marker) stands for; None if it cannot be read."""
    match list(words):
        case ["ask", buyer, number] if (named := _buyer(buyer)) and _is_number(number):
            return MakeOffer(buyer=named, price_cents=price_cents(observation, number))
        case ["accept", buyer] if named := _buyer(buyer):
            return _acceptance(observation, named)
        case ["leave"]:
            return Leave()
        case _:
            return None


def _acceptance(observation: Observation, buyer: int) -> Action | None:
    for thread in observation.threads:
        if thread.buyer == buyer:
            for offer in reversed(thread.standing):
                if not offer.mine:
                    return AcceptOffer(buyer=buyer, offer_id=offer.offer_id)
    return None


def write(observation: Observation, action: Action) -> tuple[str, ...]:
    """The words of an action; the inverse of `read` up to rounding of the price."""
    match action:
        case MakeOffer():
            return "ask", buyer_word(action.buyer), price_word(observation, action.price_cents)
        case AcceptOffer():
            return "accept", buyer_word(action.buyer)
        case Leave():
            return ("leave",)
        case _:
            raise NoDialogue(f"The compact dialogue has no words for {type(action).__name__}.")


def _buyer(word: str) -> int | None:
    digits = word.removeprefix("b")
    named = int(digits) if digits != word and digits.isdecimal() else 0
    return named if 1 <= named <= MAX_BUYERS else None


def _is_number(word: str) -> bool:
    return word.isdecimal() and int(word) <= HIGHEST_NUMBER


def _is_own_message(seen: SeenEvent) -> bool:
    match seen.event:
        case (
            OfferMade(by=Role.SELLER)
            | OfferAccepted(by=Role.SELLER)
            | OfferRejected(by=Role.SELLER)
            | MessageSent(by=Role.SELLER)
            | MoveRefused(by=Role.SELLER)
        ):
            return True
        case _:
            return False


def _own_words(observation: Observation, seen: SeenEvent) -> tuple[str, ...]:
    match seen.event:
        case OfferMade(buyer=buyer, price_cents=price):
            return "ask", buyer_word(buyer), price_word(observation, price)
        case OfferAccepted(buyer=buyer):
            return "accept", buyer_word(buyer)
        case OfferRejected(buyer=buyer):
            return "no", buyer_word(buyer)
        case MessageSent(buyer=buyer):
            return "said", buyer_word(buyer)
        case _:
            return ("refused",)


def _news(observation: Observation, seen: SeenEvent) -> tuple[str, ...]:
    """The words for one event; none for own moves, which the learner wrote itself."""
    match seen.event:
        case OfferMade(by=Role.BUYER, buyer=buyer, price_cents=price):
            return buyer_word(buyer), "bid", price_word(observation, price)
        case OfferRejected(by=Role.BUYER, buyer=buyer):
            return buyer_word(buyer), "no"
        case MessageSent(by=Role.BUYER, buyer=buyer):
            return buyer_word(buyer), "said"
        case OfferAccepted(buyer=buyer):
            return buyer_word(buyer), "bought"
        case PartyLeft(by=Role.BUYER, buyer=buyer):
            return buyer_word(buyer), "gone"
        case TurnPassed(buyer=buyer):
            return buyer_word(buyer), "passed"
        case MoveRefused(by=Role.SELLER):
            return ("refused",)
        case _:
            return ()


class Conversation:
    """What one seat was told of a negotiation, told and read in order: the functions above, on one seat."""

    def __init__(self, observation: Observation) -> None:
        check(observation)
        self._seen = observation

    def opening(self, events: Sequence[SeenEvent]) -> tuple[Message, Message]:
        """The rules of the table, and what lies on it before the first own move."""
        return opening(self._seen, events)

    def heard(self, observation: Observation, events: Sequence[SeenEvent]) -> Message:
        """What happened since the last own move, as the seat is asked for its next one."""
        assert observation.turns_left is not None
        return heard(observation, events, turns_left=observation.turns_left)

    def read(self, observation: Observation, words: Sequence[str]) -> Action | None:
        """The action that an answer (without its end marker) stands for; None if it cannot be read."""
        return read(observation, words)

    def phrase(self, *, buyer: int, product: int, number: int) -> tuple[str, ...]:
        """An own price in words."""
        return "ask", buyer_word(buyer), str(number)

    def acceptance(self, buyer: int) -> tuple[str, ...]:
        """Taking a buyer's latest bid, in words."""
        return "accept", buyer_word(buyer)

    def write(self, observation: Observation, action: Action) -> tuple[str, ...]:
        """The words of an action. Raises `NoDialogue`."""
        return write(observation, action)

    def allowed(self, observation: Observation, answer: Sequence[str]) -> Sequence[str]:
        """Words that may come next at this table without breaking a rule or losing money; none when done."""
        cost_cents = observation.products[0].reservation_value_cents
        open_threads = [thread for thread in observation.threads if thread.my_move]
        bidding = [
            thread
            for thread in open_threads
            if isinstance(taken := read(observation, ("accept", buyer_word(thread.buyer))), AcceptOffer)
            and thread.offers[taken.offer_id - 1].price_cents >= cost_cents
        ]
        match list(answer):
            case []:
                can_ask = price_cents(observation, _NUMBERS[-1]) >= cost_cents
                return [*(["ask"] if can_ask else []), "leave", *(["accept"] if bidding else [])]
            case ["ask"]:
                return [buyer_word(thread.buyer) for thread in open_threads]
            case ["accept"]:
                return [buyer_word(thread.buyer) for thread in bidding]
            case ["ask", _]:
                return [word for word in _NUMBERS if price_cents(observation, word) >= cost_cents]
            case _:
                return ()


_NUMBERS = tuple(str(number) for number in range(HIGHEST_NUMBER + 1))


def conversation(observation: Observation, past: Sequence[SeenEvent]) -> tuple[Conversation, tuple[Message, ...]]:
    """The dialogue of a seller about to move, rebuilt from its own past."""
    return Conversation(observation), transcript(observation, past)
