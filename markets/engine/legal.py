"""What a party may do now, as a closed description: the legal actions of a seat.

Built from the party's observation alone, so it can tell nothing that the secrecy gate keeps back.
Prices form a range, since a grid of cents would be a list of a hundred million moves. A move inside
the description is accepted by `rules.step` and one outside is refused (a test plays both).
"""

import msgspec

from markets.engine.money import MAX_PRICE_CENTS, Cents
from markets.engine.observation import Observation, SeenThread
from markets.engine.protocol import Role


class LegalPrices(msgspec.Struct, frozen=True):
    """Offers that may be made on one product: any whole number of cents in the range."""

    product: int
    lowest_cents: Cents
    highest_cents: Cents


class LegalThread(msgspec.Struct, frozen=True):
    """What may be done in one conversation. Talk alone is always among it."""

    buyer: int
    """Number of the buyer for the seller; 0 for a buyer."""
    offers: tuple[LegalPrices, ...]
    accept: tuple[int, ...]
    """Numbers of the offers that may be accepted."""
    reject: tuple[int, ...]
    """Numbers of the offers that may be turned down."""


class LegalMoves(msgspec.Struct, frozen=True):
    """Everything a party may do now. Empty threads mean that it may only leave, if that."""

    threads: tuple[LegalThread, ...]
    may_leave: bool


def legal_moves(observation: Observation) -> LegalMoves:
    """What the observing party may do at this table now."""
    prices = _prices(observation)
    threads = tuple(_thread(observation, thread, prices) for thread in observation.threads if thread.my_move)
    may_leave = not observation.ended and any(thread.status == "open" for thread in observation.threads)
    return LegalMoves(threads, may_leave)


def _prices(observation: Observation) -> tuple[LegalPrices, ...]:
    """Per product that is left: 1 cent to the largest price, or to the own limit where it rules."""
    ranges = []
    for index, product in enumerate(observation.products):
        if product.units_left < 1:
            continue
        low, high = 1, MAX_PRICE_CENTS
        if observation.regulated:
            own = product.reservation_value_cents
            low, high = (low, min(high, own)) if observation.role is Role.BUYER else (max(low, own), high)
        if low <= high:
            ranges.append(LegalPrices(index, low, high))
    return tuple(ranges)


def _thread(observation: Observation, thread: SeenThread, prices: tuple[LegalPrices, ...]) -> LegalThread:
    theirs = [offer for offer in thread.standing if not offer.mine]
    if not theirs:
        return LegalThread(thread.buyer, prices, (), ())
    ranges = {price.product: price for price in prices}
    accept = tuple(
        offer.offer_id
        for offer in theirs
        if (limits := ranges.get(offer.product)) and limits.lowest_cents <= offer.price_cents <= limits.highest_cents
    )
    reject = tuple(offer.offer_id for offer in theirs if observation.products[offer.product].units_left >= 1)
    return LegalThread(thread.buyer, prices, accept, reject)
