"""Strategies that reckon with what a price is worth to the other side.

Here: Zeuthen's risk rule, the splits of Rubinstein and Stahl, and the prices of one-shot theory:
posted prices and take-it-or-leave-it offers. Not here: how the other side's reservation value is
estimated (`beliefs`), and sequences of offers to several buyers (`ladders`).

Contract: as in `bargainers`. Nobody knows the other side's reservation value: where the theory
does, an estimate from the public prior and the offers made stands in for it.
"""

from abc import abstractmethod
from functools import lru_cache

from agents.base import Turn
from agents.scripted.bargainers import Bargainer, Range, first_price, plausible
from agents.scripted.beliefs import expected_reservation_cents
from agents.scripted.ladders import asks, on_grid
from agents.scripted.situation import (
    public_prices,
    reservation_cents,
    scaled,
    thread_clock,
    traits,
    within_reservation,
)
from markets.engine import optimum, priors
from markets.engine.money import MAX_PRICE_CENTS, Cents
from markets.engine.observation import Observation, SeenThread
from markets.engine.protocol import Role
from markets.engine.scenarios import Alternating, Family, SellerTurns

# Risk ------------------------------------------------------------------------------------------


def risk(*, own_offer_gain: float, other_offer_gain: float) -> float:
    """Zeuthen's readiness to risk a breakdown, 0 to 1: (U(own) - U(other)) / U(own).

    Gains of one party at both offers on the table, over no deal (Zeuthen 1930; Harsanyi 1956). A
    party that gains nothing even at its own offer has nothing to lose: 1. An offer at a loss is as
    good as none.
    """
    if own_offer_gain <= 0:
        return 1.0
    return min(1.0, max(0.0, (own_offer_gain - max(0.0, other_offer_gain)) / own_offer_gain))


class Zeuthen(Bargainer):
    """The party with the lower risk concedes, just enough to make the other's the lower one.

    The monotonic concession protocol (Rosenschein and Zlotkin 1994). With gains linear in the
    price this walks to the middle between both reservation values, the other's as estimated. At
    equal risks it concedes. While the other side names no price, the far end of what is plausible
    stands in for it.
    """

    def price(self, turn: Turn, thread: SeenThread, product: int) -> float:
        observation = turn.observation
        last = thread.last(mine=True, product=product)
        if last is None:
            return first_price(observation, thread, product, traits(turn))
        sign = 1 if observation.role is Role.SELLER else -1
        own = reservation_cents(observation, product)
        other = expected_reservation_cents(observation, thread, product)
        mine, theirs = last.price_cents, self._their_offer(observation, thread, product)
        my_risk = risk(own_offer_gain=sign * (mine - own), other_offer_gain=sign * (theirs - own))
        their_risk = risk(own_offer_gain=sign * (other - theirs), other_offer_gain=sign * (other - mine))
        if my_risk > their_risk:
            return mine
        flipped = own + other - theirs - sign
        return min(mine, flipped) if sign > 0 else max(mine, flipped)

    def _their_offer(self, observation: Observation, thread: SeenThread, product: int) -> Cents:
        last = thread.last(mine=False, product=product)
        if last is not None:
            return plausible(observation, last)
        public = public_prices(observation, product)
        return public.top if observation.role is Role.BUYER else public.plausible_bid


# Discounting -----------------------------------------------------------------------------------


def rubinstein_share(*, own_delta: float, other_delta: float) -> float:
    """What the party that proposes keeps without a horizon: (1 - d_other) / (1 - d_own d_other).

    Rubinstein 1982; 1 / (1 + d) for equal discount factors.
    """
    return (1 - other_delta) / (1 - own_delta * other_delta)


def stahl_share(*, own_delta: float, other_delta: float, offers: int) -> float:
    """What the party that proposes keeps when `offers` offers are left, this one included.

    Backward from x = 1 at the last offer: whoever answers gets what it could keep one offer later,
    discounted (Stahl 1972). With equal factors x <- 1 - d x.
    """
    share = 1.0
    for left in range(2, offers + 1):
        proposer_is_own = (offers - left) % 2 == 0
        share = 1 - (other_delta if proposer_is_own else own_delta) * share
    return share


class EquilibriumSplit(Bargainer):
    """Proposes the equilibrium's split of the gain that it expects, and never takes back an offer.

    Both discount factors are hidden traits; an offer is good enough when it gives what the party
    could keep with the proposal it would make instead, discounted once. The expected gain is the distance from R
    to the estimate of the other side's reservation value, and follows its offers.
    """

    DELTA: Range = (0.80, 0.97)

    @abstractmethod
    def share(self, turn: Turn, thread: SeenThread) -> float:
        """What the party keeps as the one who proposes now."""

    def deltas(self, turn: Turn) -> tuple[float, float]:
        """(own, other's) discount factor, as the party takes them to be."""
        character = traits(turn)
        return scaled(character.temper, self.DELTA), scaled(character.margin, self.DELTA)

    def price(self, turn: Turn, thread: SeenThread, product: int) -> float:
        split = self._split(turn, thread, product, self.share(turn, thread))
        last = thread.last(mine=True, product=product)
        if last is None:
            return split
        return min(split, last.price_cents) if turn.observation.role is Role.SELLER else max(split, last.price_cents)

    def demand_cents(self, turn: Turn, thread: SeenThread, product: int) -> Cents:
        own_delta, _ = self.deltas(turn)
        kept = own_delta * self.share(turn, thread)
        return within_reservation(turn.observation, product, self._split(turn, thread, product, kept))

    def _split(self, turn: Turn, thread: SeenThread, product: int, share: float) -> float:
        own = reservation_cents(turn.observation, product)
        other = expected_reservation_cents(turn.observation, thread, product)
        return own + share * (other - own)


class Rubinstein(EquilibriumSplit):
    """Alternating offers without a horizon (Rubinstein 1982)."""

    def share(self, turn: Turn, thread: SeenThread) -> float:
        own_delta, other_delta = self.deltas(turn)
        return rubinstein_share(own_delta=own_delta, other_delta=other_delta)


class Stahl(EquilibriumSplit):
    """Alternating offers with as many offers left as can still be answered (Stahl 1972)."""

    def share(self, turn: Turn, thread: SeenThread) -> float:
        own_delta, other_delta = self.deltas(turn)
        offers = offers_left(turn.observation, thread)
        return stahl_share(own_delta=own_delta, other_delta=other_delta, offers=offers)


def offers_left(observation: Observation, thread: SeenThread) -> int:
    """Offers of both sides that can still be answered here, an own one now included; at least 1.

    The last message of the side that has the last word is no offer. A seller's turns are spread
    over its buyers, and under seller turns the buyer has the last word.
    """
    now = thread_clock(observation, thread)
    messages = max(1, now.moves - now.move)
    mechanism = observation.mechanism
    if isinstance(mechanism, SellerTurns):
        answers = observation.role is Role.BUYER
    else:
        answers = isinstance(mechanism, Alternating) and mechanism.opener is not observation.role
    return max(1, 2 * messages - 1 - answers)


# One price -------------------------------------------------------------------------------------


@lru_cache(maxsize=4096)
def _single_price(spec: priors.ValueSpec, rho: float, buyers: int, cost: float) -> float:
    return optimum.single_price(spec=spec, rho=rho, buyers=buyers, cost=cost).prices[0]


@lru_cache(maxsize=4096)
def _single_bid(spec: priors.ValueSpec, value: float) -> float:
    return optimum.buyer_ladder(spec=spec, value=value, turns=1).bids[0]


class OnePrice(Bargainer):
    """Names one price for each product, to everybody, and takes nothing worse."""

    def settles(self, turn: Turn) -> bool:
        return False


class PostedPrice(OnePrice):
    """The optimal single price for the public prior, and commits to it.

    A seller's maximises (p - c) P(some buyer's value is at least p), a buyer's (v - q) P(C <= q).
    Against one strategic buyer no mechanism earns more (Myerson 1981; Riley and Zeckhauser 1983).
    """

    def price(self, turn: Turn, thread: SeenThread, product: int) -> float:
        observation, prior = turn.observation, turn.observation.prior
        own, scale = reservation_cents(observation, product), prior.scales_cents[product]
        if observation.role is Role.BUYER:
            return _single_bid(prior.cost_spec, on_grid(prior.cost_spec, own / scale)) * scale
        rho = 0.0 if observation.family is Family.CATALOGUE else prior.rho
        cost = on_grid(prior.value_spec, own / scale)
        return _single_price(prior.value_spec, rho, observation.buyers, cost) * scale


@lru_cache(maxsize=4096)
def _rising_bids(spec: priors.ValueSpec, value: float, turns: int) -> tuple[float, ...]:
    return optimum.buyer_ladder(spec=spec, value=value, turns=turns).bids


class RisingBids(Bargainer):
    """The best rising bids of a buyer who knows the prior of the cost: the optimal ladder in a mirror.

    Worked out against a seller who takes the first bid not below its cost (`optimum.buyer_ladder`),
    for as many bids as can still be answered.
    """

    def price(self, turn: Turn, thread: SeenThread, product: int) -> float:
        observation, prior = turn.observation, turn.observation.prior
        scale = prior.scales_cents[product]
        value = on_grid(prior.cost_spec, reservation_cents(observation, product) / scale)
        now = asks(observation)
        return _rising_bids(prior.cost_spec, value, now.moves)[min(now.move, now.moves - 1)] * scale


class OneShotSeller(OnePrice):
    """p = (s + b_max) / 2, with b_max the highest value that a buyer may have (arXiv 2604.16472).

    The best single offer to one buyer with a uniform prior that reaches below p. A lognormal prior
    has no highest value; two sigma up stands in for it.
    """

    def price(self, turn: Turn, thread: SeenThread, product: int) -> float:
        own = reservation_cents(turn.observation, product)
        public = public_prices(turn.observation, product)
        highest = public.highest if public.highest < MAX_PRICE_CENTS else public.top
        return (own + max(own, highest)) / 2


class OneShotBuyer(OnePrice):
    """q = min((b + s_min) / 2, s_max), the seller's cost lying between both (arXiv 2604.16472).

    With costs from .6 to .9 of the lowest price L this is min((b + .6 L) / 2, .9 L).
    """

    def price(self, turn: Turn, thread: SeenThread, product: int) -> float:
        prior = turn.observation.prior
        own, scale = reservation_cents(turn.observation, product), prior.scales_cents[product]
        lowest, highest = priors.low(prior.cost_spec) * scale, priors.high(prior.cost_spec) * scale
        return min((own + min(own, lowest)) / 2, highest)
