"""What a party may do now, as a closed description: the legal actions of a seat.

Built from the party's observation alone, so it can tell nothing that the secrecy gate keeps back.
Prices form a range, since a grid of cents would be a list of a hundred million moves. A move inside
the description is accepted by `rules.step` and one outside is refused (a test plays both).
"""

from functools import lru_cache

import msgspec

from markets.engine.money import MAX_PRICE_CENTS, Cents
from markets.engine.observation import Observation, SeenProduct, SeenThread
from markets.engine.protocol import Role
from markets.engine.state import ThreadStatus


class LegalPrices(msgspec.Struct, frozen=True, gc=False):
    """Offers that may be made on one product: any whole number of cents in the range."""

    product: int
    lowest_cents: Cents
    highest_cents: Cents


class LegalThread(msgspec.Struct, frozen=True, gc=False):
    """What may be done in one conversation. Talk alone is always among it."""

    buyer: int
    """Number of the buyer for the seller; 0 for a buyer."""
    offers: tuple[LegalPrices, ...]
    accept: tuple[int, ...]
    """Numbers of the offers that may be accepted."""
    reject: tuple[int, ...]
    """Numbers of the offers that may be turned down."""


class LegalMoves(msgspec.Struct, frozen=True, gc=False):
    """Everything a party may do now. Empty threads mean that it may only leave, if that."""

    threads: tuple[LegalThread, ...]
    may_leave: bool


_BUYER, _OPEN = Role.BUYER, ThreadStatus.OPEN


def legal_moves(observation: Observation) -> LegalMoves:
    """What the observing party may do at this table now."""
    may_leave, prices = False, None
    writable = []
    for thread in observation.threads:
        if thread.status is _OPEN:
            may_leave = True
            if thread.my_move:
                if prices is None:
                    prices = _prices(observation)
                writable.append(_thread(observation, thread, prices))
    return LegalMoves(tuple(writable), may_leave and observation.end_reason is None)


@lru_cache(maxsize=64)
def _any_price(products: int) -> tuple[LegalPrices, ...]:
    """What may be asked or bid for each of some products where no limit rules."""
    return tuple(LegalPrices(product, 1, MAX_PRICE_CENTS) for product in range(products))


def _prices(observation: Observation) -> tuple[LegalPrices, ...]:
    """Per product that is left: 1 cent to the largest price, or to the own limit where it rules."""
    products = observation.products
    ranges = _within_limits(observation) if observation.regulated else _any_price(len(products))
    for product in products:
        if product.units_left < 1:
            return tuple([limits for limits in ranges if products[limits.product].units_left > 0])
    return ranges


def _within_limits(observation: Observation) -> tuple[LegalPrices, ...]:
    ranges = []
    for index, product in enumerate(observation.products):
        low, high = _limits(observation, product)
        if low <= high:
            ranges.append(LegalPrices(index, low, high))
    return tuple(ranges)


def _thread(observation: Observation, thread: SeenThread, prices: tuple[LegalPrices, ...]) -> LegalThread:
    reject: tuple[int, ...] = ()
    accept: tuple[int, ...] = ()
    for offer in thread.standing:
        if not offer.mine:
            product = observation.products[offer.product]
            if product.units_left > 0:
                reject = (*reject, offer.offer_id)
                if observation.regulated:
                    low, high = _limits(observation, product)
                    if low <= offer.price_cents <= high:
                        accept = (*accept, offer.offer_id)
    return LegalThread(thread.buyer, prices, accept if observation.regulated else reject, reject)


def _limits(observation: Observation, product: SeenProduct) -> tuple[Cents, Cents]:
    """Lowest and highest price of a regulated seat; the first is above the second where none is left to it."""
    own = product.reservation_value_cents
    return (1, min(MAX_PRICE_CENTS, own)) if observation.role is _BUYER else (max(1, own), MAX_PRICE_CENTS)
