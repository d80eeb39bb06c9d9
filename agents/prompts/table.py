"""A table in words, for a prompt: what is for sale, what the rules are, what has happened, what stands.

Everything is built from a seat's own observation, its own past and the words that it heard; whatever
somebody else wrote (talk, titles, descriptions) is quoted as data. The own thoughts of earlier turns
are not told again, so a prompt holds no thought of anybody.
"""

from collections.abc import Sequence

import msgspec

from agents.base import Turn
from agents.quoting import LONGEST_QUOTE, as_data, quoted
from markets.engine.money import format_amount
from markets.engine.observation import Observation, SeenEvent, SeenOffer, SeenThread
from markets.engine.protocol import (
    DeadlinePassed,
    MessageSent,
    MoveRefused,
    NegotiationEnded,
    OfferAccepted,
    OfferLapsed,
    OfferMade,
    OfferRejected,
    PartyLeft,
    ProductSoldOut,
    Role,
    TurnPassed,
)
from markets.engine.scenarios import Alternating, EventDriven, Family, SellerTurns

_SELLER = Role.SELLER  # Looked up once: a prompt is made for every turn of many games.


class Detail(msgspec.Struct, frozen=True, kw_only=True):
    """How much of a table is told."""

    title: int = 120
    """Characters of a title."""
    description: int = 300
    """Characters of a description; 0 for none."""
    ranges: bool = True
    """Whether the list prices of similar products are told."""
    history: int = 2_400
    """Characters of the past, the latest of it."""
    words: int = 600
    """Characters of what was said with one event."""
    terse: bool = False
    """Whether what holds for every product is told once."""
    offers: int = 1_000
    """Standing offers of either side in one conversation, the latest of them."""
    gains: bool = True
    """Whether it is told what an acceptance would gain, so that nobody has to subtract."""


DETAILS = (
    Detail(),
    Detail(title=80, description=120, history=1_600, words=300),
    Detail(title=60, description=40, ranges=False, history=900, words=200, offers=4, gains=False),
    Detail(title=40, description=0, ranges=False, history=500, words=120, offers=2, gains=False),
    Detail(title=24, description=0, ranges=False, history=160, words=80, terse=True, offers=1, gains=False),
    Detail(title=8, description=0, ranges=False, history=160, words=40, terse=True, offers=1, gains=False),
)
"""Everything, and ever less for models that cannot read as much."""


def has_many(observation: Observation) -> bool:
    """Whether the seat is that of a seller who must say which buyer it means."""
    return observation.buyers > 1 and observation.role is _SELLER


def other_side(observation: Observation) -> str:
    """What the other side is called."""
    return "the buyer" if observation.role is _SELLER else "the seller"


def money(observation: Observation, cents: int) -> str:
    """An amount of the table's currency."""
    return format_amount(cents, observation.currency)


def products(observation: Observation, detail: Detail = DETAILS[0]) -> str:
    """What is for sale and what it is worth to this seat, one line a product."""
    seller = observation.role is Role.SELLER
    lines = [f"Only you know what each {'costs' if seller else 'is worth to'} you."] if detail.terse else []
    for number, product in enumerate(observation.products, start=1):
        own = money(observation, product.reservation_value_cents)
        worth = f"it costs you {own}" if seller else f"it is worth {own} to you"
        name = quoted(product.title, longest=detail.title)
        label = f"Product {number}: {name}" if len(observation.products) > 1 else f"Product: {name}"
        told = bool(product.text and detail.description)
        about = f" Description: {quoted(product.text, longest=detail.description)}." if told else ""
        gone = " Sold out." if product.units_left < 1 else ""
        listed = money(observation, product.list_price_cents)
        alone = "" if detail.terse else " (only you know that)"
        lines.append(f"{label}. List price {listed}; {worth}{alone}.{about}{gone}")
        if product.price_range is not None and detail.ranges:
            found = product.price_range
            low, middle, high = (
                money(observation, cents)
                for cents in (
                    found.lowest_list_price_cents,
                    found.median_list_price_cents,
                    found.highest_list_price_cents,
                )
            )
            lines.append(f"List prices of {found.products} such products: {low} to {high}, median {middle}.")
    return "\n".join(lines)


def rules(observation: Observation) -> str:
    """How turns are taken, and what can be gained."""
    seller = observation.role is Role.SELLER
    lines = []
    match observation.mechanism:
        case Alternating(rounds=rounds):
            lines.append(f"You and {other_side(observation)} write in turn, at most {rounds} messages each.")
        case SellerTurns(turns=turns) if seller:
            lines.append(f"You have {turns} messages for all {observation.buyers} buyers together; each answers.")
        case SellerTurns():
            lines.append("The seller writes to one buyer at a time; you answer when you are written to.")
        case EventDriven(rounds=rounds):
            lines.append(f"Both sides may act at any time; you have about {rounds} messages.")
    if observation.family is Family.CATALOGUE:
        lines.append("Every buyer wants one product at most.")
    elif seller and observation.buyers > 1:
        lines.append("You have one to sell; every buyer knows only its own conversation with you.")
    gain = "price minus what it costs you" if seller else "what it is worth to you minus the price"
    lines.append(f"A deal gains you {gain}; no deal gains nothing, and a deal at a loss is worse than none.")
    lines.append("Only an offer and its acceptance bind; a price that is merely talked about binds nobody.")
    return "\n".join(lines)


def history(turn: Turn, *, longest: int, words_longest: int = LONGEST_QUOTE, thread: int | None = None) -> str:
    """What has happened, oldest first, the latest `longest` characters of it; in one thread where named."""
    lines: list[str] = []
    for seen in turn.past:
        if thread is None or seen.thread in (0, thread):
            line = _line(turn.observation, seen)
            if line:
                words = turn.said(seen)
                lines.append(f"{line} saying {quoted(words, longest=words_longest)}." if words else f"{line}.")
    kept: list[str] = []
    for line in reversed(lines):
        if kept and sum(map(len, kept)) + len(line) > longest:
            left_out = len(lines) - len(kept)
            kept.append(f"({left_out} earlier {'event is' if left_out == 1 else 'events are'} left out)")
            break
        kept.append(line)
    return "\n".join(reversed(kept)) or "Nothing has been said yet."


def standing(observation: Observation, detail: Detail = DETAILS[0]) -> str:
    """What can be accepted now, and what is left to do."""
    many, several = has_many(observation), len(observation.products) > 1
    lines = []
    for thread in observation.threads:
        who = f"Buyer {thread.buyer}" if many else "The buyer" if observation.role is _SELLER else "The seller"
        if not thread.my_move:
            if many:
                lines.append(f"{who}: you cannot write to this buyer now.")
            continue
        offers = []
        kept = _latest(thread.standing, detail.offers)
        for offer in kept:
            price = format_amount(offer.price_cents, observation.currency)
            if several:
                price = f"{price} for product {offer.product + 1}"
            gain = f"; {_gain(observation, offer)}" if detail.gains else ""
            offers.append(f"{price} (yours)" if offer.mine else f"{price} (theirs{gain})")
        if len(kept) < len(thread.standing):
            offers.append(f"and {len(thread.standing) - len(kept)} more")
        lines.append(f"{who}: standing offers {', '.join(offers)}." if offers else f"{who}: no standing offer.")
    if observation.turns_left is not None:
        lines.append(f"Messages you have left, this one included: {observation.turns_left}.")
    if detail.gains and not several:
        side = "below" if observation.role is _SELLER else "above"
        lines.append(
            f"Any price {side} {money(observation, observation.products[0].reservation_value_cents)} loses you money."
        )
    return "\n".join(lines)


def _gain(observation: Observation, offer: SeenOffer) -> str:
    """What accepting an offer would come to."""
    surplus = observation.surplus_cents(product=offer.product, price_cents=offer.price_cents)
    return f"accepting it {'gains' if surplus >= 0 else 'loses'} you {money(observation, abs(surplus))}"


def _latest(offers: Sequence[SeenOffer], most: int) -> Sequence[SeenOffer]:
    """The latest offers of either side, at most so many of each, in their order."""
    if len(offers) <= most:
        return offers
    kept = [offer for mine in (True, False) for offer in [each for each in offers if each.mine is mine][-most:]]
    return [offer for offer in offers if offer in kept]


def last_heard(turn: Turn, thread: SeenThread) -> str:
    """The latest words of the other side in a thread, as written; empty where it has said none."""
    for seen in reversed(turn.past):
        if seen.thread in (0, thread.buyer) and not _is_own(turn.observation, seen):
            words = turn.said(seen)
            if words:
                return words
    return ""


def own_words(turn: Turn, thread: SeenThread) -> tuple[str, ...]:
    """What this seat has said in a thread, oldest first."""
    return tuple(
        words
        for seen in turn.past
        if seen.thread in (0, thread.buyer) and _is_own(turn.observation, seen) and (words := turn.said(seen))
    )


def _is_own(observation: Observation, seen: SeenEvent) -> bool:
    return getattr(seen.event, "by", None) is observation.role


def _price(observation: Observation, product: int, cents: int) -> str:
    amount = format_amount(cents, observation.currency)
    return f"{amount} for product {product + 1}" if len(observation.products) > 1 else amount


def _line(observation: Observation, seen: SeenEvent) -> str:
    """One event, without a full stop; empty for what needs no telling."""
    event = seen.event
    own = _is_own(observation, seen)
    many = has_many(observation)
    who = "You" if own else f"Buyer {seen.thread}" if many else other_side(observation).capitalize()
    to = f" to buyer {seen.thread}" if own and many and seen.thread else ""
    match event:
        case OfferMade(opening=True):
            return f"{who} opened with a bid of {_price(observation, event.product, event.price_cents)}"
        case OfferMade():
            return f"{who} offered {_price(observation, event.product, event.price_cents)}{to}"
        case OfferAccepted():
            return f"{who} accepted {_price(observation, event.product, event.price_cents)}"
        case OfferRejected():
            return f"{who} turned the offer down{to}"
        case MessageSent():
            return f"{who} wrote{to}"
        case OfferLapsed():
            return (
                f"An offer in the conversation with buyer {seen.thread} has lapsed" if many else "An offer has lapsed"
            )
        case ProductSoldOut():
            return f"Product {event.product + 1} is sold out"
        case MoveRefused():
            return f"Your move was refused ({event.code})"
        case TurnPassed():
            return f"{who} let a turn pass"
        case PartyLeft():
            return f"{who} left"
        case DeadlinePassed():
            return f"{who} took too long"
        case NegotiationEnded():
            return "The negotiation has ended"
        case _:
            return ""


def name_of_product(observation: Observation, product: int) -> str:
    """The title as data, short."""
    return as_data(observation.products[product].title, longest=60)
