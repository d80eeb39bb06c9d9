"""Buyers that answer asks rather than bargain: threshold, logit, quoting, shading, impatient, strategic.

Here: the types against which ladders of offers are worked out, those that name what they would
pay, one that does not wait and one that does. Not here: strategies for either side (`bargainers`).

Contract: nobody accepts above its own value. An ask up to the top of the public prior moves
nobody to leave; one far above it does, as for every scripted buyer. A buyer without an ask to
answer says that it would like to hear one; those who quote a price do so.
"""

import math
from abc import ABC, abstractmethod

from agents.base import Turn
from agents.scripted.bargainers import (
    Range,
    TimeDependent,
    best_ask,
    favourite,
    plausible,
    refuse_or_leave,
)
from agents.scripted.beliefs import mean_between
from agents.scripted.situation import (
    can_buy,
    clock,
    is_outraged,
    public_prices,
    reservation_cents,
    scaled,
    their_standing,
    traits,
    unanswerable,
    within_reservation,
)
from agents.scripted.talk import speak
from markets.engine.money import Cents
from markets.engine.observation import Observation, SeenOffer, SeenThread
from markets.engine.protocol import AcceptOffer, Action, Leave, MakeOffer, RejectOffer, Say


class SilentBuyer(ABC):
    """Accepts or rejects and never names a price."""

    @abstractmethod
    def takes(self, turn: Turn, ask: SeenOffer, gain_cents: Cents) -> bool:
        """Whether a deal worth `gain_cents` (not negative) is taken now."""

    def act(self, turn: Turn) -> Action:
        observation = turn.observation
        if is_outraged(turn, observation) or not any(
            can_buy(observation, index) for index in range(len(observation.products))
        ):
            return Leave()
        thread = observation.threads[0]
        ask = best_ask(observation, thread)
        if ask is None:
            return Say(talk=speak(observation=observation, action=Say(), chance=turn.words))
        gain = observation.surplus_cents(product=ask.product, price_cents=ask.price_cents)
        if gain >= 0 and self.takes(turn, ask, gain):
            return AcceptOffer(offer_id=ask.offer_id)
        return RejectOffer(offer_id=their_standing(thread)[-1].offer_id)


class Threshold(SilentBuyer):
    """Accepts every price within its value, at once."""

    def takes(self, turn: Turn, ask: SeenOffer, gain_cents: Cents) -> bool:
        return True


class Logit(SilentBuyer):
    """Accepts a price p within its value b with probability 1 / (1 + exp(-(b - p) / tau)).

    tau is a hidden share of the median of the public prior. The published curve goes on above b;
    ours stops there, since a buyer that pays more than its value breaks its own constraint.
    """

    TAU: Range = (0.03, 0.15)

    def takes(self, turn: Turn, ask: SeenOffer, gain_cents: Cents) -> bool:
        median = public_prices(turn.observation, ask.product).median
        tau = scaled(traits(turn).temper, self.TAU) * median
        return turn.chance.random() < 1 / (1 + math.exp(-gain_cents / tau))


class Impatient(TimeDependent):
    """Accepts every price within its value; else it leaves with hazard h or bids once more."""

    HAZARD: Range = (0.10, 0.35)

    def __init__(self) -> None:
        super().__init__(beta=(0.8, 1.5))

    def act(self, turn: Turn) -> Action:
        observation = turn.observation
        thread = observation.threads[0]
        wanted = [index for index in range(len(observation.products)) if can_buy(observation, index)]
        if not wanted or is_outraged(turn, observation):
            return Leave()
        ask = best_ask(observation, thread)
        if ask is not None:
            gain = observation.surplus_cents(product=ask.product, price_cents=ask.price_cents)
            if gain >= 0:
                return AcceptOffer(offer_id=ask.offer_id)
            if turn.chance.random() < scaled(traits(turn).patience, self.HAZARD):
                return Leave()
        if unanswerable(observation):
            return refuse_or_leave(thread)
        product = favourite(observation, thread, wanted)
        return MakeOffer(product=product, price_cents=self.offer_cents(turn, thread, product))


class QuotingBuyer(ABC):
    """Accepts what is within its quote and else names the quote."""

    @abstractmethod
    def quote_cents(self, turn: Turn, product: int) -> Cents:
        """The price that it says it would pay, within its value."""

    def limit_cents(self, turn: Turn, product: int) -> Cents:
        """The highest price that it takes now."""
        return self.quote_cents(turn, product)

    def act(self, turn: Turn) -> Action:
        observation = turn.observation
        thread = observation.threads[0]
        wanted = [index for index in range(len(observation.products)) if can_buy(observation, index)]
        if not wanted or is_outraged(turn, observation):
            return Leave()
        ask = best_ask(observation, thread)
        if ask is not None and ask.price_cents <= self.limit_cents(turn, ask.product):
            return AcceptOffer(offer_id=ask.offer_id)
        if unanswerable(observation):
            return refuse_or_leave(thread)
        product = favourite(observation, thread, wanted)
        return MakeOffer(product=product, price_cents=self.quote_cents(turn, product))


class Quoting(QuotingBuyer):
    """Says truthfully what the product is worth to it, in a bid that binds it."""

    def quote_cents(self, turn: Turn, product: int) -> Cents:
        return reservation_cents(turn.observation, product)


class Shading(QuotingBuyer):
    """Behaves as if its value were s times what it is; takes anything within its value at the end.

    Bid shading, as in first-price auctions; s is hidden.
    """

    SHARE: Range = (0.60, 0.90)

    def quote_cents(self, turn: Turn, product: int) -> Cents:
        share = scaled(traits(turn).temper, self.SHARE)
        return within_reservation(turn.observation, product, share * reservation_cents(turn.observation, product))

    def limit_cents(self, turn: Turn, product: int) -> Cents:
        if clock(turn.observation).at_end:
            return reservation_cents(turn.observation, product)
        return self.quote_cents(turn, product)


class Strategic(SilentBuyer):
    """Waits: rejects a price within its value while it expects to do better by waiting.

    It expects asks to go on falling by their mean fall so far, never below the cost that it
    expects, E[C | C <= ask]; before it has seen a fall, by equal steps to that cost at its last
    message. At each message the product is still there with a hidden chance. Intertemporal
    choice of buyers who foresee prices (Coase 1972; Besanko and Winston 1990); the forecast is ours.
    """

    STAYS: Range = (0.88, 0.98)

    def takes(self, turn: Turn, ask: SeenOffer, gain_cents: Cents) -> bool:
        observation = turn.observation
        now = clock(observation)
        thread = observation.threads[0]
        later = now.moves - 1 - now.move
        if later <= 0:
            return True
        floor = self._expected_cost(observation, ask)
        fall = self._fall(observation, thread, ask, floor=floor, later=later)
        stays = scaled(traits(turn).patience, self.STAYS)
        value = ask.price_cents + gain_cents
        waiting = (
            stays**messages * (value - max(floor, ask.price_cents - messages * fall))
            for messages in range(1, later + 1)
        )
        return gain_cents >= max(waiting)

    def _expected_cost(self, observation: Observation, ask: SeenOffer) -> float:
        prior = observation.prior
        scale = prior.scales_cents[ask.product]
        return min(ask.price_cents, mean_between(prior.cost_spec, 0.0, ask.price_cents / scale) * scale)

    def _fall(self, observation: Observation, thread: SeenThread, ask: SeenOffer, *, floor: float, later: int) -> float:
        """Cents by which the ask is expected to fall from one message to the next, not negative."""
        asks = [plausible(observation, offer) for offer in thread.offers if not offer.mine]
        if len(asks) < 2:
            return (ask.price_cents - floor) / later
        return max(0.0, (asks[0] - asks[-1]) / (len(asks) - 1))
