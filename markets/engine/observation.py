"""The one secrecy gate: what a party may know.

`observe(state, party)` gives the party's view of the table, `seen_events(scenario, log, party)`
its view of the past, numbered for that party alone so that a gap tells nothing about other
threads. Sockets, prompts, pages for players and exports for players are built from these two and
from nothing else. Private values of others, thoughts, other buyers' threads, the seller's
remaining turns as a buyer would learn other threads' pace from them, and the reason of another
party's refused move never pass.
"""

from collections.abc import Iterable
from typing import TypeVar

import msgspec

from markets.engine import rules
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
    Party,
    PartyLeft,
    PriceSearched,
    ProductSoldOut,
    Role,
    TurnPassed,
    Waited,
    buyer_of,
    role_of,
)
from markets.engine.scenarios import (
    Alternating,
    EventDriven,
    Family,
    Mechanism,
    PriceRange,
    Prior,
    Scenario,
    SellerTurns,
)
from markets.engine.state import SeenOffer, State, Thread, ThreadStatus

_E = TypeVar("_E", bound=msgspec.Struct)

_with = msgspec.structs.replace

__all__ = ["Observation", "SeenEvent", "SeenOffer", "SeenProduct", "SeenThread", "observe", "seen_events"]

_SELLER, _BUYER = Role.SELLER, Role.BUYER
"""Bound once: to look a member up on its class costs as much as a small structure."""


class SeenProduct(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """A product as one party sees it."""

    sku: str
    title: str
    category: str
    text: str
    list_price_cents: Cents
    reservation_value_cents: Cents
    """The observing party's own value (buyer) or cost (seller)."""
    units_left: int
    """For the seller the stock; for a buyer 1 while the product can be had and 0 afterwards."""
    price_range: PriceRange | None = None
    """What the observing party found when it looked prices up; None before that."""


class SeenThread(msgspec.Struct, frozen=True, gc=False):
    """A conversation as one party sees it."""

    buyer: int
    """Number of the buyer for the seller; 0 for a buyer, who knows only its own."""
    status: ThreadStatus
    my_move: bool
    """Whether the observing party may write here now."""
    their_move: bool
    """Whether an answer of the other side is due here."""
    offers: tuple[SeenOffer, ...]
    """Every offer made here, oldest first."""
    standing: tuple[SeenOffer, ...]
    """Those that can be accepted now."""
    my_messages: int
    their_messages: int
    position: int
    """Grows with every change to what can be done in this thread."""
    deal: SeenOffer | None
    """The offer that was accepted here."""

    def last(self, *, mine: bool, product: int | None = None) -> SeenOffer | None:
        """Latest offer of one side, of one product where named."""
        for offer in reversed(self.offers):
            if offer.mine is mine and product in (None, offer.product):
                return offer
        return None

    def standing_offer(self, *, mine: bool, product: int) -> SeenOffer | None:
        """The offer of one side on `product` that can be accepted now."""
        for offer in self.standing:
            if offer.mine is mine and offer.product == product:
                return offer
        return None


class Observation(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """Everything a party knows: all that an agent, a prompt or a page may be built from."""

    role: Role
    family: Family
    mechanism: Mechanism
    currency: str
    products: tuple[SeenProduct, ...]
    buyers: int
    """Number of buyers, a public rule of the market."""
    prior: Prior
    """Public distribution of values and costs."""
    regulated: bool
    """Whether moves beyond the own reservation value are refused."""
    threads: tuple[SeenThread, ...]
    """For the seller one per buyer, in order; for a buyer exactly its own."""
    turns_left: int | None
    """Messages the observing party has left; None for a buyer under seller turns. Event-driven,
    of those it was told of: at 0 it may still act."""
    to_move: bool
    """Whether the observing party may write anywhere now."""
    end_reason: EndReason | None
    now_ms: int = 0
    """Time on the simulated clock; 0 where there is none."""
    events_left: int | None = None
    """What both sides may still do before an event-driven negotiation ends; None in every other."""

    @property
    def ended(self) -> bool:
        """Whether the negotiation is over."""
        return self.end_reason is not None

    def surplus_cents(self, *, product: int, price_cents: Cents) -> Cents:
        """Own gain from a deal at `price_cents` over no deal; negative if the deal is worse."""
        own = self.products[product].reservation_value_cents
        return own - price_cents if self.role is Role.BUYER else price_cents - own


class SeenEvent(msgspec.Struct, frozen=True, gc=False, kw_only=True):
    """One line of the past as one party sees it."""

    seq: int
    """Number in this party's own sequence, from 1, without gaps."""
    n: int
    """Number in the log, for joining free text. Never sent to a party."""
    at_ms: int
    thread: int
    """Buyer number for the seller; 0 for a buyer, and for what concerns every thread."""
    event: Event | TurnPassed


def observe(state: State, party: Party, *, now_ms: int = 0) -> Observation:
    """What `party` may know of the table as it stands; `now_ms` is the driver's clock."""
    scenario, threads, reason = state.scenario, state.threads, state.end_reason
    known: tuple[Observation, int] | None = scenario.views.get(party)
    if known is None:
        known = scenario.views[party] = _frame(scenario, party), buyer_of(party)
    frame, own = known
    role, mechanism = frame.role, scenario.mechanism
    if own or len(threads) == 1:
        first = _seen_thread(state, threads[own - 1], role)
        seen: tuple[SeenThread, ...] = (first,)
        to_move = first.my_move
    else:
        seen = _conversations(state)
        first = seen[0]
        to_move = False
        for view in seen:
            if view.my_move:
                to_move = True
                break
    turns_left: int | None
    if type(mechanism) is Alternating:
        turns_left = mechanism.rounds - first.my_messages
    elif type(mechanism) is SellerTurns:
        turns_left = None if own else mechanism.turns - state.turns_used
    else:
        turns_left = max(0, mechanism.rounds - first.my_messages)
        changed = state.deals or state.threads[0].desk(role).searched
        return _with(
            frame,
            products=_seen_products(state, frame) if changed else frame.products,
            threads=seen,
            turns_left=turns_left,
            to_move=to_move,
            end_reason=reason,
            now_ms=now_ms,
            events_left=mechanism.events - state.events_used,
        )
    if reason is None and not state.deals:
        return _with(frame, threads=seen, turns_left=turns_left, to_move=to_move, now_ms=now_ms)
    return _with(
        frame,
        products=_seen_products(state, frame),
        threads=seen,
        turns_left=turns_left,
        to_move=to_move,
        end_reason=_seen_reason(reason, frame.family, role),
        now_ms=now_ms,
    )


def _frame(scenario: Scenario, party: Party) -> Observation:
    """What `party` knows before anything has happened: the part that stays the same throughout."""
    role, own = role_of(party), buyer_of(party)
    return Observation(
        role=role,
        family=scenario.family,
        mechanism=scenario.mechanism,
        currency=scenario.currency,
        products=tuple(
            SeenProduct(
                sku=product.sku,
                title=product.title,
                category=product.category,
                text=product.text,
                list_price_cents=product.list_price_cents,
                reservation_value_cents=scenario.reservation_value_cents(role=role, buyer=own, product=index),
                units_left=product.stock if role is _SELLER else min(1, product.stock),
            )
            for index, product in enumerate(scenario.products)
        ),
        buyers=scenario.buyers,
        prior=scenario.prior,
        regulated=role in scenario.regulated,
        threads=(),
        turns_left=None,
        to_move=False,
        end_reason=None,
    )


def _seen_products(state: State, frame: Observation) -> tuple[SeenProduct, ...]:
    """The products with what is left of them and what was found out about them."""
    selling = frame.role is _SELLER
    return tuple(
        _with(
            product,
            units_left=left if selling else min(1, left),
            price_range=_price_range(state, frame.role, index),
        )
        for index, (product, left) in enumerate(zip(frame.products, state.stock_left, strict=True))
    )


def _price_range(state: State, role: Role, product: int) -> PriceRange | None:
    """The public price range of a product, for who has looked it up."""
    ranges = state.scenario.price_ranges
    if isinstance(ranges, msgspec.UnsetType) or not isinstance(state.scenario.mechanism, EventDriven):
        return None
    return ranges[product] if product in state.threads[0].desk(role).searched else None


def seen_events(scenario: Scenario, log: Iterable[LogEntry], party: Party) -> tuple[SeenEvent, ...]:
    """The past as `party` may know it, numbered for this party alone."""
    role, own = role_of(party), buyer_of(party)
    free = type(scenario.mechanism) is EventDriven
    seen: list[SeenEvent] = []
    for entry in log:
        event = _seen_event(entry.event, scenario.family, role, own, free=free)
        if event is None:
            continue
        thread = getattr(event, "buyer", 0) if role is _SELLER else 0
        seen.append(SeenEvent(seq=len(seen) + 1, n=entry.n, at_ms=entry.at_ms, thread=thread, event=event))
    return tuple(seen)


def _seen_event(event: Event, family: Family, role: Role, own: int, *, free: bool) -> Event | TurnPassed | None:
    """`event` as the party may see it, or None. A buyer's copies carry no buyer number.

    Where both sides are `free` to act, another party's refused move passes no turn.
    """
    is_seller = role is _SELLER
    if type(event) is OfferMade or type(event) is OfferRejected or type(event) is MessageSent:
        # Most of a log, and each class that is asked in vain costs.
        return _of_one_thread(event, event.buyer, role, own)
    match event:
        case NegotiationEnded():
            reason = _seen_reason(event.reason, family, role)
            return event if reason is None else NegotiationEnded(reason=reason)
        case ProductSoldOut():
            return event
        case PartyLeft(by=Role.SELLER):
            return event
        case DeadlinePassed(by=Role.SELLER):
            # It belongs to no thread: with several buyers it would tell of the seller's pace.
            return event if is_seller or family is Family.BILATERAL else None
        case Waited() | PriceSearched():
            if event.by is not role:
                return None
            return event if is_seller else _anonymous(event)
        case MoveRefused():
            if free and event.by is not role:
                return None
            if event.by is role and (is_seller or event.buyer == own):
                return event if is_seller else _anonymous(event)
            if is_seller:
                return TurnPassed(by=event.by, buyer=event.buyer)
            return TurnPassed(by=event.by, buyer=0) if event.buyer == own else None
        case (
            OfferMade()
            | OfferAccepted()
            | OfferRejected()
            | OfferLapsed()
            | MessageSent()
            | PartyLeft()
            | DeadlinePassed()
        ):
            return _of_one_thread(event, event.buyer, role, own)


def _of_one_thread(event: _E, buyer: int, role: Role, own: int) -> _E | None:
    """An event that the seller and the one buyer know."""
    if role is _SELLER:
        return event
    return _anonymous(event) if buyer == own else None


def _anonymous(event: _E) -> _E:
    return _with(event, buyer=0)


def _seen_reason(reason: EndReason | None, family: Family, role: Role) -> EndReason | None:
    """A buyer is told why only where the reason says nothing about other threads."""
    if reason is None or role is Role.SELLER or family is Family.BILATERAL:
        return reason
    if reason in (EndReason.SELLER_LEFT, EndReason.TURNS_USED):
        return reason
    return EndReason.CLOSED


_CONVERSATIONS = "conversations"
"""Where `Scenario.views` keeps each thread of the state that was looked at last, and what the seller sees of it."""


def _conversations(state: State) -> tuple[SeenThread, ...]:
    """All conversations of a seller with several; one that has not changed is not written out again.

    Beside the thread itself, only that the negotiation is over or the seller's turns are used up shows in it.
    """
    if state.end_reason is not None or rules.turns_left(state) < 1:
        return tuple([_seen_thread(state, thread, _SELLER) for thread in state.threads])
    kept: list[tuple[Thread | None, SeenThread | None]] | None = state.scenario.views.get(_CONVERSATIONS)
    if kept is None:
        kept = state.scenario.views[_CONVERSATIONS] = [(None, None)] * len(state.threads)
    seen = []
    for place, thread in enumerate(state.threads):
        latest, view = kept[place]
        if latest is not thread or view is None:
            view = _seen_thread(state, thread, _SELLER)
            kept[place] = thread, view
        seen.append(view)
    return tuple(seen)


def _seen_thread(state: State, thread: Thread, role: Role) -> SeenThread:
    to_move, standing = thread.to_move, thread.standing_for_seller
    going_on = state.end_reason is None
    if role is _SELLER:
        buyer, other, offers = thread.buyer, _BUYER, thread.seen_by_seller
        own_messages, their_messages = thread.seller_messages, thread.buyer_messages
    else:
        buyer, other, offers = 0, _SELLER, thread.seen_by_buyer
        own_messages, their_messages = thread.buyer_messages, thread.seller_messages
        mirrored = []
        for offer in standing:
            mirrored.append(offers[offer.offer_id - 1])
        standing = tuple(mirrored)
    deal = None
    for made in state.deals:
        if made.buyer == thread.buyer:
            deal = offers[made.offer_id - 1]
    return SeenThread(
        buyer,
        thread.status,
        going_on and (to_move is role or rules.may_write(state, role, thread)),
        going_on and to_move is other,
        offers,
        standing,
        own_messages,
        their_messages,
        thread.position,
        deal,
    )
