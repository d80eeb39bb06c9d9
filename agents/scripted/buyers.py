"""Buyers that answer asks rather than bargain: threshold, logit and impatient.

Here: the types against which ladders of offers are worked out, and one that does not wait. Not
here: strategies for either side (`bargainers`).

Contract: nobody accepts above its own value. An ask up to the top of the public prior moves
nobody to leave; one far above it does, as for every scripted buyer. A buyer without an ask to
answer says that it would like to hear one (the impatient one bids).
"""

import math
from abc import ABC, abstractmethod

from agents.base import Turn
from agents.scripted.bargainers import (
    Range,
    TimeDependent,
    best_ask,
    favourite,
    refuse_or_leave,
)
from agents.scripted.situation import (
    can_buy,
    is_outraged,
    public_prices,
    scaled,
    their_standing,
    traits,
    unanswerable,
)
from agents.scripted.talk import speak
from markets.engine.money import Cents
from markets.engine.observation import SeenOffer
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
