"""The state of a negotiation as a fold over its log.

`evolve` applies one event and never judges it; `replay` is the fold. Whether an event may happen
is decided in `rules`, and nowhere else does a state change. States are frozen and share what did
not change.
"""

from collections.abc import Callable, Iterable
from enum import StrEnum
from typing import Any

import msgspec

from markets.engine.money import Cents
from markets.engine.protocol import (
    DeadlinePassed,
    EndReason,
    Event,
    LogEntry,
    MessageSent,
    MoveRefused,
    NegotiationEnded,
    OfferAccepted,
    OfferLapsed,
    OfferMade,
    OfferRejected,
    PartyLeft,
    PriceSearched,
    ProductSoldOut,
    Role,
    Waited,
)
from markets.engine.scenarios import Alternating, EventDriven, Scenario, SellerTurns

_with = msgspec.structs.replace

_SELLER, _BUYER = Role.SELLER, Role.BUYER
"""Bound once: to look a member up on its class costs as much as a small structure."""


class ThreadStatus(StrEnum):
    """Where the conversation of one buyer stands."""

    OPEN = "open"
    SERVED = "served"
    LEFT = "left"


class Offer(msgspec.Struct, frozen=True, gc=False):
    """One price on the table, as it was made."""

    offer_id: int
    by: Role
    product: int
    price_cents: Cents


class SeenOffer(msgspec.Struct, frozen=True, gc=False):
    """A price that was put on the table in a thread, as one side of it sees it."""

    offer_id: int
    mine: bool
    product: int
    price_cents: Cents


class Deal(msgspec.Struct, frozen=True, gc=False):
    """One unit sold."""

    buyer: int
    product: int
    price_cents: Cents
    offer_id: int


class Desk(msgspec.Struct, frozen=True, gc=False):
    """One side of an event-driven conversation: whether it is to be asked, and what it did unseen."""

    awake: bool = False
    """Whether something has happened to it that it has not acted upon."""
    until_ms: int | None = None
    """Clock time at which its timed wait is over; None while it keeps no such wait."""
    unseen: int = 0
    """Events of its own that the other side is not told of: waits, searches, refused moves."""
    searched: tuple[int, ...] = ()
    """Products that it has looked up."""


class Thread(msgspec.Struct, frozen=True, gc=False):
    """The conversation of the seller with one buyer."""

    buyer: int
    status: ThreadStatus = ThreadStatus.OPEN
    to_move: Role | None = None
    """Who owes the next message here; None while the seller is free to choose a thread. In an
    event-driven conversation whoever did not speak last; both are free to write."""
    seen_by_seller: tuple[SeenOffer, ...] = ()
    """Every offer ever made here as the seller sees it, oldest first."""
    seen_by_buyer: tuple[SeenOffer, ...] = ()
    """The same as the buyer sees it. Both are kept, so that nobody has to write them out at every look."""
    standing_for_seller: tuple[SeenOffer, ...] = ()
    """Those of `seen_by_seller` that can be accepted now."""
    seller_messages: int = 0
    buyer_messages: int = 0
    position: int = 0
    """Changes so far to what can be done here; an answer thought out at another one is stale."""
    seller_desk: Desk | None = None
    buyer_desk: Desk | None = None
    """What the sides are at in an event-driven conversation; None in every other."""

    @property
    def offers(self) -> tuple[Offer, ...]:
        """Every offer ever made here, oldest first."""
        return tuple([_made(seen) for seen in self.seen_by_seller])

    @property
    def standing(self) -> tuple[Offer, ...]:
        """Those that can be accepted now."""
        return tuple([_made(seen) for seen in self.standing_for_seller])

    def desk(self, role: Role) -> Desk:
        """The desk of one side of an event-driven conversation."""
        desk = self.seller_desk if role is _SELLER else self.buyer_desk
        if desk is None:
            raise ValueError("Only an event-driven conversation has desks.")
        return desk


def _made(seen: SeenOffer) -> Offer:
    """An offer that the seller sees, with its maker's name."""
    return Offer(seen.offer_id, _SELLER if seen.mine else _BUYER, seen.product, seen.price_cents)


class State(msgspec.Struct, frozen=True, gc=False):
    """Everything the rules need to judge the next move."""

    scenario: Scenario
    threads: tuple[Thread, ...]
    stock_left: tuple[int, ...]
    turns_used: int = 0
    """Seller messages so far, refused ones included."""
    events_used: int = 0
    """What both sides of an event-driven negotiation did so far, as its cap counts it."""
    deals: tuple[Deal, ...] = ()
    end_reason: EndReason | None = None
    version: int = 0
    """Number of the last event."""

    @property
    def ended(self) -> bool:
        """Whether the negotiation is over."""
        return self.end_reason is not None

    def thread(self, buyer: int) -> Thread:
        """The thread of buyer number `buyer` (1-based)."""
        return self.threads[buyer - 1]


def initial(scenario: Scenario) -> State:
    """The state before the first event."""
    mechanism = scenario.mechanism
    stock = tuple([product.stock for product in scenario.products])
    if type(mechanism) is EventDriven:
        opener = mechanism.opener
        seller, buyer = Desk(awake=opener is _SELLER), Desk(awake=opener is _BUYER)
        return State(scenario, (Thread(1, to_move=opener, seller_desk=seller, buyer_desk=buyer),), stock)
    if type(mechanism) is Alternating:
        return State(scenario, (Thread(1, to_move=mechanism.opener),), stock)
    return State(scenario, tuple([Thread(number) for number in range(1, scenario.buyers + 1)]), stock)


def replay(scenario: Scenario, log: Iterable[LogEntry]) -> State:
    """Fold a whole log."""
    state = initial(scenario)
    for entry in log:
        state = evolve(state, entry.event)
    return state


def evolve(state: State, event: Event) -> State:
    """The state after `event`. Never judges."""
    return _FOLDS[type(event)](state, event)


def _offer_made(state: State, event: OfferMade) -> State:
    """Put an offer among those that were made and those that stand, and hand the move on."""
    offer_id, product, price_cents = event.offer_id, event.product, event.price_cents
    selling = event.by is _SELLER
    thread, mechanism = state.threads[event.buyer - 1], type(state.scenario.mechanism)
    sold = (SeenOffer(offer_id, selling, product, price_cents),)
    bought = (SeenOffer(offer_id, not selling, product, price_cents),)
    standing = []
    for offer in thread.standing_for_seller:
        if offer.mine is not selling or offer.product != product:
            standing.append(offer)
    standing.append(sold[0])
    to_move, messages = thread.to_move, 0
    if not event.opening:
        messages = 1
        to_move = _BUYER if selling else None if mechanism is SellerTurns else _SELLER
    seller_desk, buyer_desk, counted = None, None, 0
    if mechanism is EventDriven:
        seller_desk, buyer_desk = _woken(thread, selling=selling)
        counted = messages
    thread = Thread(
        thread.buyer,
        thread.status,
        to_move,
        thread.seen_by_seller + sold,
        thread.seen_by_buyer + bought,
        tuple(standing),
        thread.seller_messages + messages if selling else thread.seller_messages,
        thread.buyer_messages if selling else thread.buyer_messages + messages,
        thread.position + 1,
        seller_desk,
        buyer_desk,
    )
    threads = state.threads
    return State(
        state.scenario,
        (thread,) if len(threads) == 1 else _in_place(threads, thread),
        state.stock_left,
        state.turns_used + messages if selling else state.turns_used,
        state.events_used + counted,
        state.deals,
        state.end_reason,
        state.version + 1,
    )


def _message_sent(state: State, event: MessageSent) -> State:
    return _after_message(state, state.thread(event.buyer), event.by)


def _offer_rejected(state: State, event: OfferRejected) -> State:
    return _after_message(state, _without(state.thread(event.buyer), event.offer_id), event.by)


def _offer_lapsed(state: State, event: OfferLapsed) -> State:
    return _put(state, _moved(_without(state.thread(event.buyer), event.offer_id)))


def _waited(state: State, event: Waited) -> State:
    desk = state.thread(event.buyer).desk(event.by)
    desk = Desk(False, event.until_ms, desk.unseen + 1, desk.searched)
    return _at_desk(state, event.buyer, event.by, desk)


def _price_searched(state: State, event: PriceSearched) -> State:
    desk = state.thread(event.buyer).desk(event.by)
    desk = Desk(True, None, desk.unseen + 1, (*desk.searched, event.product))
    return _at_desk(state, event.buyer, event.by, desk)


def _deadline_passed(state: State, event: DeadlinePassed) -> State:
    return _with(state, version=state.version + 1)


def _negotiation_ended(state: State, event: NegotiationEnded) -> State:
    return _with(state, end_reason=event.reason, version=state.version + 1)


def _offer_accepted(state: State, event: OfferAccepted) -> State:
    thread = _with(_without(state.thread(event.buyer), event.offer_id), status=ThreadStatus.SERVED)
    stock_left = tuple(left - 1 if product == event.product else left for product, left in enumerate(state.stock_left))
    deal = Deal(event.buyer, event.product, event.price_cents, event.offer_id)
    state = _with(state, stock_left=stock_left, deals=(*state.deals, deal))
    return _closed(_after_message(state, thread, event.by), event.buyer)


def _move_refused(state: State, event: MoveRefused) -> State:
    """Spend the message that the sender had; who had none loses none. On a simulated clock the
    sender learns of it and may try again."""
    mechanism = state.scenario.mechanism
    if isinstance(mechanism, EventDriven):
        desk = state.threads[0].desk(event.by)
        return _at_desk(state, 1, event.by, Desk(True, None, desk.unseen + 1, desk.searched))
    is_seller = event.by is Role.SELLER
    has_turn = is_seller and isinstance(mechanism, SellerTurns) and state.turns_used < mechanism.turns
    if event.buyer:
        thread = state.thread(event.buyer)
        if thread.to_move is event.by or (has_turn and thread.to_move is None):
            return _after_message(state, thread, event.by, answered=False)
    spent = 1 if has_turn else 0
    return _with(state, turns_used=state.turns_used + spent, version=state.version + 1)


def _product_sold_out(state: State, event: ProductSoldOut) -> State:
    """What can be done changes in every open thread, so that answers on their way are stale."""
    threads = tuple(_moved(thread) if thread.status is ThreadStatus.OPEN else thread for thread in state.threads)
    return _with(state, threads=threads, version=state.version + 1)


def _party_left(state: State, event: PartyLeft) -> State:
    buyers = (event.buyer,) if event.buyer else tuple(t.buyer for t in state.threads)
    version = state.version + 1
    for buyer in buyers:
        thread = state.thread(buyer)
        if thread.status is ThreadStatus.OPEN:
            thread = _with(_moved(thread), status=ThreadStatus.LEFT, standing_for_seller=())
            state = _closed(_put(state, thread), buyer)
    return _with(state, version=version)


def _after_message(state: State, thread: Thread, by: Role, *, answered: bool = True) -> State:
    """Count one message of `by` and hand the move on.

    A seller's refused message (`answered=False`) under seller turns asks nothing of the buyer.
    """
    mechanism = type(state.scenario.mechanism)
    if mechanism is EventDriven:
        return _arrived(state, thread, by)
    position = thread.position + 1
    if by is _SELLER:
        to_move = _BUYER if answered or mechanism is not SellerTurns else None
        thread = _with(thread, to_move=to_move, seller_messages=thread.seller_messages + 1, position=position)
        return _put(state, thread, turns=1)
    to_move = None if mechanism is SellerTurns else _SELLER
    return _put(state, _with(thread, to_move=to_move, buyer_messages=thread.buyer_messages + 1, position=position))


def _arrived(state: State, thread: Thread, by: Role) -> State:
    """Count one message of `by` on the simulated clock."""
    selling = by is _SELLER
    seller_desk, buyer_desk = _woken(thread, selling=selling)
    thread = _with(
        thread,
        seller_messages=thread.seller_messages + selling,
        buyer_messages=thread.buyer_messages + (not selling),
        to_move=_BUYER if selling else _SELLER,
        seller_desk=seller_desk,
        buyer_desk=buyer_desk,
        position=thread.position + 1,
    )
    return _put(state, thread, turns=1 if selling else 0, events=1)


_AWAKE, _ASLEEP = Desk(awake=True), Desk()
"""The desks of sides that did nothing unseen."""


def _woken(thread: Thread, *, selling: bool) -> tuple[Desk, Desk]:
    """The seller's and the buyer's desk after a message: it wakes the other side and ends both waits."""
    seller, buyer = thread.desk(_SELLER), thread.desk(_BUYER)
    return _at_rest(seller, awake=not selling), _at_rest(buyer, awake=selling)


def _at_rest(desk: Desk, *, awake: bool) -> Desk:
    """A desk without a wait."""
    if desk.unseen:
        return Desk(awake, None, desk.unseen, desk.searched)
    return _AWAKE if awake else _ASLEEP


def _at_desk(state: State, buyer: int, role: Role, desk: Desk) -> State:
    """Count one event of `role` that the other side is not told of."""
    if role is _SELLER:
        thread = _with(state.thread(buyer), seller_desk=desk)
    else:
        thread = _with(state.thread(buyer), buyer_desk=desk)
    return _with(state, threads=(thread,), events_used=state.events_used + 1, version=state.version + 1)


def _without(thread: Thread, offer_id: int) -> Thread:
    standing = tuple([offer for offer in thread.standing_for_seller if offer.offer_id != offer_id])
    return _with(thread, standing_for_seller=standing)


def _moved(thread: Thread) -> Thread:
    return _with(thread, position=thread.position + 1)


def _closed(state: State, buyer: int) -> State:
    """Nobody owes a message in a closed thread."""
    threads = list(state.threads)
    threads[buyer - 1] = _with(threads[buyer - 1], to_move=None)
    return _with(state, threads=tuple(threads))


def _put(state: State, thread: Thread, *, turns: int = 0, events: int = 0) -> State:
    """Count one event, with which `thread` has changed; `turns` of the seller, `events` towards a cap."""
    return State(
        state.scenario,
        _in_place(state.threads, thread),
        state.stock_left,
        state.turns_used + turns,
        state.events_used + events,
        state.deals,
        state.end_reason,
        state.version + 1,
    )


def _in_place(threads: tuple[Thread, ...], thread: Thread) -> tuple[Thread, ...]:
    """`threads` with `thread` in the place of its own earlier self."""
    place = thread.buyer - 1
    return (*threads[:place], thread, *threads[place + 1 :])


_FOLDS: dict[type[Event], Callable[[State, Any], State]] = {
    OfferMade: _offer_made,
    OfferAccepted: _offer_accepted,
    OfferRejected: _offer_rejected,
    OfferLapsed: _offer_lapsed,
    ProductSoldOut: _product_sold_out,
    MessageSent: _message_sent,
    Waited: _waited,
    PriceSearched: _price_searched,
    MoveRefused: _move_refused,
    PartyLeft: _party_left,
    DeadlinePassed: _deadline_passed,
    NegotiationEnded: _negotiation_ended,
}
"""What each event does. A table, because asking one class after the other costs more than the fold."""
