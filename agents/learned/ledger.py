"""The ledger: a dialogue that tells the whole table anew before every move, for either side and every family.

Here: its closed vocabulary, a seat's own past as chat messages of whole words, and the reading of its
answers. Not here: token ids (`training.tokenizer`), any decision, any value of another party:
everything is built from `markets.engine.observation`.

    system     seller t8 cost 47
    user       1st 29 none 2nd 28 none 3rd 25 none left t8
    assistant  ask 3rd 112
    user       1st 61 112 2nd 29 none 3rd 28 none left t7

Contract: every word is one token. Prices are whole hundredths of the product's public list price, 0 to
200; own limits, and prices of the other side, are rounded to the own disadvantage, so that what the words
allow the rules do too. Each open conversation is a line `PLACE BID ASK`: the latest price of the other
side and the best own one, or `none`. Conversations are listed by what the other side's price is worth, best
first, and are addressed by their place, so that play cannot depend on how buyers are numbered. With
several products a line names the one that it is about, `PLACE PRODUCT BID ASK`; with one conversation it
has no place. The messages up to any moment follow from the seat's own past alone, and a later dialogue
starts with the earlier one.

On a simulated clock a seat is asked when something arrived that it has not answered yet. What arrived while its
last action was on its way it hears as soon as that has landed; so the moments at which it was asked, and what
it knew, can be told from the times in its past.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar, NamedTuple

from agents.learned.dialogue import SPECIAL, Message, NoDialogue
from markets.engine import priors
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
    PriceSearched,
    ProductSoldOut,
    Role,
    Wait,
    Waited,
)
from markets.engine.scenarios import MAX_BUYERS, MAX_PRODUCTS, MAX_TURNS, EventDriven, Family, SellerTurns

HIGHEST_NUMBER = 200
"""Prices run from 0 to this many hundredths of the list price."""
LONGEST_ANSWER = 5
"""Words of the longest answer that can be read, its end marker included."""

_WORDS = (
    "seller",
    "buyer",
    "clock",
    "cost",
    "value",
    "theirs",
    "list",
    "left",
    "none",
    "sold",
    "refused",
    "ask",
    "bid",
    "accept",
    "wait",
    "leave",
)
PLACES = ("1st", "2nd", "3rd", *(f"{place}th" for place in range(4, MAX_BUYERS + 1)))
_PRODUCTS = tuple(f"p{product}" for product in range(1, MAX_PRODUCTS + 1))
_NUMBERS = tuple(str(number) for number in range(HIGHEST_NUMBER + 1))
_PLACE_OF = {word: place for place, word in enumerate(PLACES)}


def vocabulary() -> tuple[str, ...]:
    """Every word, special ones first; the order is the order of token ids and never changes."""
    return (*SPECIAL, *_WORDS, *PLACES, *_PRODUCTS, *(f"t{turns}" for turns in range(MAX_TURNS + 1)), *_NUMBERS)


SAMPLE = (
    Message("system", ("seller", "t8", "cost", "47")),
    Message("user", ("1st", "29", "none", "2nd", "28", "none", "left", "t8")),
    Message("assistant", ("ask", "2nd", "112")),
    Message("user", ("1st", "61", "112", "2nd", "29", "none", "left", "t7")),
    Message("assistant", ("leave",)),
)
"""A dialogue for checks of tokenizers and templates."""


@dataclass
class _Line:
    """One conversation as far as it has been told."""

    buyer: int
    bids: dict[int, Cents] = field(default_factory=dict)
    """Latest price of the other side, by product."""
    asks: dict[int, Cents] = field(default_factory=dict)
    """Best own price for the other side, by product."""
    interest: int = 0
    """The product that the other side named last."""
    written: int = 0
    """Own messages."""
    open: bool = True


class Place(NamedTuple):
    """A conversation that can be addressed."""

    buyer: int
    product: int
    """The one that its line is about."""


class Conversation:
    """What one seat was told of a negotiation and what it wrote; told and read in order."""

    highest_number: ClassVar[int] = HIGHEST_NUMBER

    def __init__(self, observation: Observation) -> None:
        self._seen = observation
        self._seller = observation.role is Role.SELLER
        self._alone = len(observation.threads) == 1
        self._several = len(observation.products) > 1
        numbers = [thread.buyer for thread in observation.threads]
        self._lines = {number: _Line(number) for number in numbers}
        self._sold: set[int] = set()
        self._numbers_of: dict[int, tuple[str, ...]] = {}
        self._spent = 0
        self.places: list[Place] = []
        """Who can be addressed by which place, as last told."""

    def opening(self, events: Sequence[SeenEvent]) -> tuple[Message, Message]:
        """The rules of the table, and what lies on it before the first own move."""
        seen = self._seen
        words = [seen.role.value]
        if isinstance(seen.mechanism, EventDriven):
            words.append("clock")
        words.append(f"t{min(MAX_TURNS, self._turns())}")
        limit = "cost" if self._seller else "value"
        if self._several:
            dearest = max(product.list_price_cents for product in seen.products)
            for k, product in enumerate(seen.products):
                share = max(1, round(100 * product.list_price_cents / dearest))
                words += [_PRODUCTS[k], str(share), limit, self._limit_word(k)]
        else:
            words += [limit, self._limit_word(0)]
        if seen.family is Family.BILATERAL:
            words += ["theirs", *self._their_range()]
        words += self._law()
        return Message("system", tuple(words)), self._told(events)

    def heard(self, observation: Observation, events: Sequence[SeenEvent]) -> Message:
        """The table as it lies when the seat is asked for its next move."""
        return self._told(events)

    def _told(self, events: Sequence[SeenEvent]) -> Message:
        refused = False
        for seen in events:
            self._fold(seen)
            refused = refused or (isinstance(seen.event, MoveRefused) and seen.event.by is self._seen.role)
        self.places = self._listed()
        words: list[str] = ["refused"] if refused else []
        for place, (buyer, product) in enumerate(self.places):
            line = self._lines[buyer]
            words += [] if self._alone else [PLACES[place]]
            words += [_PRODUCTS[product]] if self._several else []
            words += [self._their_word(line, product), self._own_word(line, product)]
        words += [word for product in sorted(self._sold) for word in ("sold", _PRODUCTS[product])]
        left = max(0, self._turns() - self._spent)
        return Message("user", (*words, "left", f"t{min(MAX_TURNS, left)}"))

    def read(self, observation: Observation, words: Sequence[str]) -> Action | None:
        """The action that an answer (without its end marker) stands for; None if it cannot be read."""
        match list(words):
            case ["leave"]:
                return Leave()
            case ["wait"] if isinstance(observation.mechanism, EventDriven):
                return Wait(buyer=0)
            case [("ask" | "bid" | "accept") as verb, *rest]:
                place = self._place(rest)
                if place is None:
                    return None
                rest = rest if self._alone else rest[1:]
                if verb == "accept":
                    return None if rest else self._acceptance(observation, place)
                return self._offer(verb, place, rest)
            case _:
                return None

    def write(self, observation: Observation, action: Action) -> tuple[str, ...]:
        """The words of an action, as far as there are any. Raises `NoDialogue`."""
        match action:
            case MakeOffer():
                product = (_PRODUCTS[action.product],) if self._several else ()
                number = self._number(action.product, action.price_cents, up=self._seller)
                return "ask" if self._seller else "bid", *self._address(action.buyer), *product, str(number)
            case AcceptOffer():
                return "accept", *self._address(action.buyer)
            case Wait() if isinstance(observation.mechanism, EventDriven):
                return ("wait",)
            case Leave():
                return ("leave",)
            case _:
                raise NoDialogue(f"The ledger has no words for {type(action).__name__}.")

    def phrase(self, *, buyer: int, product: int, number: int) -> tuple[str, ...]:
        """An own price in words; for whoever reckons in hundredths of the list price."""
        return self._phrase(buyer=buyer, product=product, number=max(0, min(self.highest_number, number)))

    def _phrase(self, *, buyer: int, product: int, number: int) -> tuple[str, ...]:
        kind = (_PRODUCTS[product],) if self._several else ()
        return "ask" if self._seller else "bid", *self._address(buyer), *kind, str(number)

    def written(self, seen: SeenEvent) -> tuple[str, ...]:
        """The words of an own move as it stands in the log."""
        match seen.event:
            case OfferMade(buyer=buyer, product=product, price_cents=price) if self._addressable(buyer):
                number = self._number(product, price, up=not self._seller)
                return self._phrase(buyer=buyer, product=product, number=number)
            case OfferAccepted(buyer=buyer) if self._addressable(buyer):
                return self.acceptance(buyer)
            case Waited():
                return ("wait",)
            case _:
                return ("refused",)

    def acceptance(self, buyer: int) -> tuple[str, ...]:
        """Taking the other side's latest price, in words."""
        return "accept", *self._address(buyer)

    def allowed(self, observation: Observation, answer: Sequence[str]) -> Sequence[str]:
        """Words that may come next at this table without breaking a rule or losing money; none when done."""
        free = [place for place, _ in enumerate(self.places) if self._may_write(observation, place)]
        takeable = [place for place in free if self._good(observation, place)]
        verb = "ask" if self._seller else "bid"
        match list(answer):
            case []:
                waits = ["wait"] if isinstance(observation.mechanism, EventDriven) else []
                return [
                    *([verb] if free and self._products(observation) else []),
                    *(["accept"] if takeable else []),
                    *waits,
                    "leave",
                ]
            case ["accept"] if not self._alone:
                return [PLACES[place] for place in takeable]
            case ["ask" | "bid", *rest]:
                return self._next_of_offer(observation, free, rest)
            case _:
                return ()

    def _next_of_offer(self, observation: Observation, free: Sequence[int], rest: Sequence[str]) -> Sequence[str]:
        wanted = ["place"] * (not self._alone) + ["product"] * self._several + ["number"]
        if len(rest) >= len(wanted):
            return ()
        match wanted[len(rest)]:
            case "place":
                return [PLACES[place] for place in free]
            case "product":
                return [_PRODUCTS[product] for product in self._products(observation)]
            case _:
                product = _PRODUCTS.index(rest[-1]) if self._several else 0
                return self._numbers(product)

    # Telling

    def _fold(self, seen: SeenEvent) -> None:
        event, role = seen.event, self._seen.role
        line = self._lines.get(getattr(event, "buyer", 0))
        match event:
            case OfferMade(by=by, product=product, price_cents=price) if line is not None:
                if by is role and not event.opening:
                    self._spend(line)
                if by is role:
                    best = line.asks.get(product, price)
                    line.asks[product] = min(best, price) if self._seller else max(best, price)
                else:
                    line.bids[product] = price
                    line.interest = product
            case OfferAccepted(by=by) if line is not None:
                if by is role:
                    self._spend(line)
                line.open = False
            case OfferRejected(by=by) | MessageSent(by=by) if line is not None:
                if by is role:
                    self._spend(line)
            case MoveRefused(by=by):
                if by is role:
                    self._spend(line)
            case ProductSoldOut(product=product):
                self._sold.add(product)
            case PartyLeft(by=by) if line is not None and by is not role:
                line.open = False

    def _spend(self, line: _Line | None) -> None:
        self._spent += 1
        if line is not None:
            line.written += 1

    def _listed(self) -> list[Place]:
        lines = [line for line in self._lines.values() if line.open]
        places = [Place(line.buyer, self._topic(line)) for line in lines]
        return sorted(places, key=lambda place: (-self._worth(place), self._lines[place.buyer].written, place.buyer))

    def _topic(self, line: _Line) -> int:
        if line.interest not in self._sold:
            return line.interest
        return next((k for k in range(len(self._seen.products)) if k not in self._sold), line.interest)

    def _worth(self, place: Place) -> float:
        """What the other side's price is worth, in hundredths of the list price; by cents where products differ."""
        price = self._lines[place.buyer].bids.get(place.product)
        if price is None:
            return float("-inf")
        product = self._seen.products[place.product]
        gain = self._seen.surplus_cents(product=place.product, price_cents=price)
        return float(gain) if self._several else gain / product.list_price_cents

    def _their_word(self, line: _Line, product: int) -> str:
        price = line.bids.get(product)
        return "none" if price is None else str(self._number(product, price, up=not self._seller))

    def _own_word(self, line: _Line, product: int) -> str:
        price = line.asks.get(product)
        return "none" if price is None else str(self._number(product, price, up=not self._seller))

    def _limit_word(self, product: int) -> str:
        own = self._seen.products[product].reservation_value_cents
        return str(self._number(product, own, up=self._seller))

    def _their_range(self) -> tuple[str, str]:
        """What is public of the other side's limit: the ends of its distribution."""
        prior = self._seen.prior
        spec = prior.value_spec if self._seller else prior.cost_spec
        scale = prior.scales_cents[0]
        low, high = (priors.quantile(spec, share) * scale for share in (0.01, 0.99))
        return str(self._number(0, round(low), up=False)), str(self._number(0, round(high), up=True))

    def _law(self) -> tuple[str, ...]:
        """What else is told of the other side's limits before the first move."""
        return ()

    def _turns(self) -> int:
        mechanism = self._seen.mechanism
        return mechanism.turns if isinstance(mechanism, SellerTurns) else mechanism.rounds

    def _unit(self, product: int) -> Cents:
        """What prices of a product are hundredths of."""
        return self._seen.products[product].list_price_cents

    def _number(self, product: int, price_cents: Cents, *, up: bool) -> int:
        """A price as a number, rounded up or down."""
        scaled, unit = 100 * price_cents, self._unit(product)
        number = -(-scaled // unit) if up else scaled // unit
        return max(0, min(self.highest_number, number))

    # Reading

    def _price(self, product: int, number: int) -> Cents:
        scaled = number * self._unit(product)
        cents = -(-scaled // 100) if self._seller else scaled // 100
        return max(1, min(MAX_PRICE_CENTS, cents))

    def _place(self, rest: Sequence[str]) -> int | None:
        """Which conversation is meant; None where that place is empty."""
        if self._alone:
            return 0 if self.places else None
        place = _PLACE_OF.get(rest[0], MAX_BUYERS) if rest else MAX_BUYERS
        return place if place < len(self.places) else None

    def _offer(self, verb: str, place: int, rest: Sequence[str]) -> Action | None:
        if (verb == "ask") is not self._seller:
            return None
        product = 0
        if self._several:
            if not rest or rest[0] not in _PRODUCTS[: len(self._seen.products)]:
                return None
            product, rest = _PRODUCTS.index(rest[0]), rest[1:]
        if len(rest) != 1 or not rest[0].isdecimal() or int(rest[0]) > self.highest_number:
            return None
        price = self._price(product, int(rest[0]))
        return MakeOffer(buyer=self.places[place].buyer, product=product, price_cents=price)

    def _acceptance(self, observation: Observation, place: int) -> Action | None:
        buyer, product = self.places[place]
        for thread in observation.threads:
            if thread.buyer == buyer and (offer := thread.standing_offer(mine=False, product=product)):
                return AcceptOffer(buyer=buyer, offer_id=offer.offer_id)
        return None

    def _addressable(self, buyer: int) -> bool:
        return any(place.buyer == buyer for place in self.places)

    def _address(self, buyer: int) -> tuple[str, ...]:
        if self._alone:
            return ()
        return (PLACES[[place.buyer for place in self.places].index(buyer)],)

    # What may be written

    def _may_write(self, observation: Observation, place: int) -> bool:
        buyer = self.places[place].buyer
        return any(thread.buyer == buyer and thread.my_move for thread in observation.threads)

    def _good(self, observation: Observation, place: int) -> bool:
        taken = self._acceptance(observation, place)
        if not isinstance(taken, AcceptOffer):
            return False
        buyer, product = self.places[place]
        thread = next(thread for thread in observation.threads if thread.buyer == buyer)
        price = thread.offers[taken.offer_id - 1].price_cents
        return observation.surplus_cents(product=product, price_cents=price) >= 0

    def _products(self, observation: Observation) -> list[int]:
        return [k for k, product in enumerate(observation.products) if product.units_left > 0 and self._numbers(k)]

    def _numbers(self, product: int) -> tuple[str, ...]:
        """The prices that lose no money; the own limit never changes, so they are looked for once."""
        found = self._numbers_of.get(product)
        if found is None:
            own = self._seen.products[product].reservation_value_cents
            prices = [self._price(product, number) for number in range(self.highest_number + 1)]
            found = self._numbers_of[product] = tuple(
                word
                for word, price in zip(_NUMBERS, prices, strict=False)
                if (price >= own if self._seller else price <= own)
            )
        return found


def moments(observation: Observation, past: Sequence[SeenEvent]) -> Iterator[tuple[list[SeenEvent], SeenEvent | None]]:
    """A seat's past cut where it was asked: what it heard then, and its move, None for the one that is due."""
    clock = isinstance(observation.mechanism, EventDriven)
    rest, answered = list(past), set[int]()
    landed_ms, at_once = 0, False
    while True:
        place = next(
            (k for k, seen in enumerate(rest) if seen.n not in answered and _is_own_move(seen, observation.role)), None
        )
        if place is None:
            yield rest, None
            return
        own, news = rest[place], rest[:place]
        if clock:
            arrived_ms = [seen.at_ms for seen in news if seen.n not in answered]
            asked_ms = landed_ms if at_once or not arrived_ms else max(landed_ms, arrived_ms[0])
            news = [seen for seen in news if seen.at_ms <= asked_ms]
        yield news, own
        answered.add(own.n)
        rest = rest[len(news) :]
        landed_ms, at_once = own.at_ms, isinstance(own.event, MoveRefused | PriceSearched)


def conversation(
    observation: Observation, past: Sequence[SeenEvent], start: type[Conversation] = Conversation
) -> tuple[Conversation, tuple[Message, ...]]:
    """The whole dialogue of a seat about to move, rebuilt from its own past.

    Own moves come back as they would be written; one that the ledger has no words for stands as `refused`.
    """
    told = start(observation)
    messages: list[Message] = []
    for news, own in moments(observation, past):
        messages += [told.heard(observation, news)] if messages else told.opening(news)
        if own is not None:
            messages.append(Message("assistant", told.written(own)))
    return told, tuple(messages)


def _is_own_move(seen: SeenEvent, role: Role) -> bool:
    match seen.event:
        case OfferMade(opening=True):
            return False
        case (
            OfferMade() | OfferAccepted() | OfferRejected() | MessageSent() | MoveRefused() | Waited() | PriceSearched()
        ):
            return seen.event.by is role
        case _:
            return False
