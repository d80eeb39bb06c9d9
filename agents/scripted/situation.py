"""What a scripted strategy reads off its turn: clock, public prices, hidden traits, own limits.

Here: arithmetic on one observation that several strategies share. Not here: any decision.

Contract: everything follows from the observation, the party's own values in it and the turn's
random streams. Public prices follow from the public prior alone, so that a price anchored on them
tells nothing about its sender's value.
"""

import math
from functools import lru_cache
from typing import NamedTuple

from agents.base import Turn
from markets.engine import priors
from markets.engine.money import MAX_PRICE_CENTS, Cents
from markets.engine.observation import Observation, SeenOffer, SeenThread
from markets.engine.protocol import Role
from markets.engine.scenarios import Alternating, EventDriven

ABSURD_QUANTILE = 0.999
"""A buyer calls an ask absurd relative to this quantile of the public prior or the list price,
whichever is higher; a seller that follows the prior never asks more."""

ABSURD_MULTIPLE = (1.5, 3.0)
"""Range of the hidden multiple of that reference above which a buyer walks away."""

PLAUSIBLE_BID_SHARE = 0.25
"""Bids below this share of the median value count as this much where a strategy answers moves."""

PATIENCE = (3, 5)
"""Range of the hidden number of asks without improvement that a buyer sits through."""


class PublicPrices(NamedTuple):
    """Prices in cents that everybody can work out from the public prior of one product."""

    median: Cents
    top: Cents
    """Where a falling ladder starts: the highest value, or two sigma up for a lognormal."""
    highest: Cents
    """No value is larger."""
    plausible_bid: Cents
    """Lowest bid that is taken at its word."""
    absurd_from: Cents
    """Reference of an absurd ask, before the hidden multiple."""


@lru_cache(maxsize=4096)
def _public_prices(spec: priors.ValueSpec, scale_cents: Cents, list_price_cents: Cents) -> PublicPrices:
    def cents(multiple: float) -> Cents:
        if multiple * scale_cents >= MAX_PRICE_CENTS:
            return MAX_PRICE_CENTS
        return max(1, math.ceil(multiple * scale_cents))

    median = cents(priors.quantile(spec, 0.5))
    return PublicPrices(
        median=median,
        top=cents(priors.ladder_top(spec)),
        highest=cents(priors.high(spec)),
        plausible_bid=max(1, round(PLAUSIBLE_BID_SHARE * median)),
        absurd_from=max(list_price_cents, cents(priors.quantile(spec, ABSURD_QUANTILE))),
    )


def public_prices(observation: Observation, product: int) -> PublicPrices:
    """Public prices of product number `product` (0-based)."""
    prior = observation.prior
    return _public_prices(
        prior.value_spec,
        prior.scales_cents[product],
        observation.products[product].list_price_cents,
    )


class Traits(NamedTuple):
    """An agent's character in one negotiation: uniform numbers that each strategy scales."""

    opening: float
    margin: float
    patience: float
    outrage: float
    temper: float


def traits(turn: Turn) -> Traits:
    """The hidden traits, the same at every turn of a negotiation."""
    return Traits(*turn.traits(len(Traits._fields)))


def scaled(share: float, bounds: tuple[float, float]) -> float:
    """`share` of the way from the lower to the upper bound."""
    low, high = bounds
    return low + (high - low) * share


class Clock(NamedTuple):
    """How far a party is in the messages it can expect to send."""

    move: int
    """Own messages sent so far."""
    moves: int
    """Own messages that can be expected in all, at least 1."""

    @property
    def x(self) -> float:
        """Time from 0 at the first message to 1 at the last expected one and after it."""
        return 1.0 if self.moves <= 1 else min(1.0, self.move / (self.moves - 1))

    @property
    def at_end(self) -> bool:
        """Whether this message is the last that can be expected."""
        return self.move >= self.moves - 1


def clock(observation: Observation) -> Clock:
    """The observing party's clock.

    A buyer under seller turns is not told the turns that are left; it expects its equal part of
    them, the public turns over the public number of buyers, rounded up.
    """
    mechanism = observation.mechanism
    if isinstance(mechanism, Alternating | EventDriven):
        return Clock(observation.threads[0].my_messages, mechanism.rounds)
    if observation.role is Role.SELLER:
        assert observation.turns_left is not None
        return Clock(mechanism.turns - observation.turns_left, mechanism.turns)
    return Clock(observation.threads[0].my_messages, max(1, -(-mechanism.turns // observation.buyers)))


def thread_clock(observation: Observation, thread: SeenThread) -> Clock:
    """The observing party's clock in one thread: a seller's turns are spread over its buyers."""
    whole = clock(observation)
    return Clock(thread.my_messages, max(1, -(-whole.moves // len(observation.threads))))


def has_last_word(observation: Observation) -> bool:
    """Whether nobody can answer the observing party's last message."""
    mechanism = observation.mechanism
    return isinstance(mechanism, Alternating) and mechanism.opener is not observation.role


def unanswerable(observation: Observation) -> bool:
    """Whether the message to be sent now is one that nobody can answer, or that comes after the
    rounds that both sides of an event-driven negotiation were told of."""
    if isinstance(observation.mechanism, EventDriven):
        return observation.turns_left == 0
    return has_last_word(observation) and observation.turns_left == 1


def reservation_cents(observation: Observation, product: int) -> Cents:
    """The observing party's own value or cost."""
    return observation.products[product].reservation_value_cents


def within_reservation(observation: Observation, product: int, price: float) -> Cents:
    """`price` rounded to a cent that an offer may carry and that costs its sender nothing."""
    limit = reservation_cents(observation, product)
    if observation.role is Role.BUYER:
        return max(1, min(round(price), limit))
    return min(max(round(price), limit, 1), MAX_PRICE_CENTS)


def can_buy(observation: Observation, product: int) -> bool:
    """Whether a buyer could name a price for `product` that gains."""
    seen = observation.products[product]
    return seen.units_left > 0 and seen.reservation_value_cents >= 1


def can_gain_as_seller(observation: Observation, product: int) -> bool:
    """Whether some buyer may value `product` above its cost, as far as the prior tells."""
    seen = observation.products[product]
    return seen.units_left > 0 and seen.reservation_value_cents < public_prices(observation, product).highest


def their_standing(thread: SeenThread) -> list[SeenOffer]:
    """What the observing party could accept in `thread`."""
    return [offer for offer in thread.standing if not offer.mine]


def is_absurd(observation: Observation, offer: SeenOffer, outrage: float) -> bool:
    """Whether a buyer of that temper is driven away by an ask, whatever its own value."""
    multiple = scaled(outrage, ABSURD_MULTIPLE)
    return offer.price_cents > multiple * public_prices(observation, offer.product).absurd_from


def is_outraged(turn: Turn, observation: Observation) -> bool:
    """Whether the latest ask makes a buyer walk away; draws its character only where in doubt."""
    ask = observation.threads[0].last(mine=False)
    if ask is None or not is_absurd(observation, ask, 0.0):
        return False
    return is_absurd(observation, ask, traits(turn).outrage)


def is_out_of_patience(thread: SeenThread, product: int, patience: float) -> bool:
    """Whether the other side has repeated itself on `product` longer than the party bears."""
    bears = round(scaled(patience, PATIENCE))
    asks = [offer.price_cents for offer in thread.offers if not offer.mine and offer.product == product]
    return len(asks) > bears and min(asks[-bears:]) >= min(asks[:-bears])
