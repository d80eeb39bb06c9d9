"""What offering, accepting and rejecting mean, whatever the mechanism.

An offer stands until it is accepted, rejected, replaced by its maker or lapsed; only a standing
offer of the other side can be taken or turned down, by its number within the thread.
"""

from markets.engine.money import MAX_PRICE_CENTS
from markets.engine.protocol import (
    AcceptOffer,
    Event,
    IllegalAction,
    LapseReason,
    MakeOffer,
    OfferAccepted,
    OfferLapsed,
    OfferMade,
    OfferRejected,
    ProductSoldOut,
    RefusalCode,
    RejectOffer,
    Role,
)
from markets.engine.state import SeenOffer, State, Thread, ThreadStatus


def make(state: State, thread: Thread, role: Role, action: MakeOffer) -> OfferMade:
    """Put a price on the table."""
    product, price_cents = action.product, action.price_cents
    if not 0 <= product < len(state.stock_left):
        raise IllegalAction(RefusalCode.UNKNOWN_PRODUCT)
    if state.stock_left[product] < 1:
        raise IllegalAction(RefusalCode.SOLD_OUT)
    if not 1 <= price_cents <= MAX_PRICE_CENTS:
        raise IllegalAction(RefusalCode.PRICE_OUT_OF_RANGE)
    if state.scenario.regulated:
        _check_reservation(state, thread, role, product, price_cents)
    return OfferMade(role, thread.buyer, len(thread.seen_by_seller) + 1, product, price_cents)


def accept(state: State, thread: Thread, role: Role, action: AcceptOffer) -> tuple[Event, ...]:
    """Close a deal, and let everything lapse that it leaves without stock or without want."""
    offer = _standing_offer(state, thread, role, action.offer_id)
    _check_reservation(state, thread, role, offer.product, offer.price_cents)
    sold_out = state.stock_left[offer.product] == 1
    events: list[Event] = [OfferAccepted(role, thread.buyer, offer.offer_id, offer.product, offer.price_cents)]
    for other in state.threads:
        for standing in other.standing_for_seller:
            if other.buyer == thread.buyer:
                if standing.offer_id != offer.offer_id:
                    events.append(OfferLapsed(other.buyer, standing.offer_id, LapseReason.BUYER_SERVED))
            elif sold_out and standing.product == offer.product:
                events.append(OfferLapsed(other.buyer, standing.offer_id, LapseReason.SOLD_OUT))
    if sold_out:
        events.append(ProductSoldOut(offer.product))
    return tuple(events)


def reject(thread: Thread, role: Role, action: RejectOffer) -> OfferRejected:
    """Turn an offer down for good."""
    offer = _offer_of_the_other_side(thread, role, action.offer_id)
    return OfferRejected(role, thread.buyer, offer.offer_id)


def lost_to_another(state: State, thread: Thread, offer_id: int) -> bool:
    """Whether an offer cannot be had in an open thread because its product went to somebody else."""
    if thread.status is not ThreadStatus.OPEN or not 1 <= offer_id <= len(thread.seen_by_seller):
        return False
    return state.stock_left[thread.seen_by_seller[offer_id - 1].product] < 1


def _standing_offer(state: State, thread: Thread, role: Role, offer_id: int) -> SeenOffer:
    offer = _offer_of_the_other_side(thread, role, offer_id)
    if state.stock_left[offer.product] < 1:
        raise IllegalAction(RefusalCode.SOLD_OUT)
    return offer


def _offer_of_the_other_side(thread: Thread, role: Role, offer_id: int) -> SeenOffer:
    for offer in thread.standing_for_seller:
        if offer.offer_id == offer_id:
            if offer.mine is (role is Role.SELLER):
                raise IllegalAction(RefusalCode.OWN_OFFER)
            return offer
    if 1 <= offer_id <= len(thread.seen_by_seller):
        raise IllegalAction(RefusalCode.OFFER_GONE)
    raise IllegalAction(RefusalCode.UNKNOWN_OFFER)


def _check_reservation(state: State, thread: Thread, role: Role, product: int, price_cents: int) -> None:
    """A regulated seat cannot lose money."""
    if role not in state.scenario.regulated:
        return
    own = state.scenario.reservation_value_cents(role=role, buyer=thread.buyer, product=product)
    if (price_cents > own) if role is Role.BUYER else (price_cents < own):
        raise IllegalAction(RefusalCode.BEYOND_RESERVATION)
