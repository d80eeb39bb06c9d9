"""Sellers who learn which buyer to talk to: bandits, elimination, auctions and search.

Here: who is asked next where answers are what a seller learns from. Not here: sequences fixed in
advance (`ladders`), catalogues (`catalogues`).

Contract: as in `ladders`. Each rule is the published one with binding offers in place of free
questions: an ask that is taken sells, so whoever asks to learn asks high. What a buyer would pay
is read off its bids and off the asks it has let pass (`beliefs.value_interval`).
"""

import math
from collections.abc import Sequence
from functools import lru_cache

from agents.base import Turn
from agents.scripted.bargainers import Range, least_addressed
from agents.scripted.beliefs import value_interval
from agents.scripted.ladders import (
    Ask,
    Bid,
    LadderSeller,
    asks,
    best_bid,
    highest_bidder,
    linear_price,
)
from agents.scripted.situation import (
    public_prices,
    reservation_cents,
    scaled,
    traits,
)
from markets.engine import priors
from markets.engine.money import Cents
from markets.engine.observation import Observation, SeenThread


def estimate_cents(observation: Observation, thread: SeenThread) -> float:
    """What a buyer seems ready to pay: its latest bid, else the middle of where its value lies."""
    bid = thread.last(mine=False, product=0)
    return bid.price_cents if bid is not None else value_interval(observation, thread, 0).middle


class EpsilonGreedy(LadderSeller):
    """Asks the buyer with the best estimate, or one drawn by lot with probability epsilon.

    Epsilon starts at .2 and falls to 0 by the last turn; prices fall linearly. Arms are buyers
    (Auer, Cesa-Bianchi and Fischer 2002).
    """

    EPSILON = 0.2

    def epsilon(self, *, move: int, moves: int) -> float:
        """Chance of a draw by lot after `move` of `moves` messages."""
        return self.EPSILON * (1 - move / moves)

    def next_ask(self, turn: Turn, threads: Sequence[SeenThread]) -> Ask | None:
        observation, chance = turn.observation, turn.chance
        now = asks(observation)
        if chance.random() < self.epsilon(move=now.move, moves=now.moves):
            thread = threads[int(chance.random() * len(threads))]
        else:
            thread = max(threads, key=lambda thread: (estimate_cents(observation, thread), -thread.my_messages))
        return Ask(thread, 0, linear_price(observation, 0, now))


class UpperConfidence(LadderSeller):
    """Asks the buyer with the highest mu + c sqrt(ln t / n) (UCB1: Auer, Cesa-Bianchi and Fischer 2002).

    mu is the estimate of what the buyer would pay as a share of the top of the prior, n the asks
    made to it, t those made to all; everybody is asked once first. c is hidden; prices fall
    linearly.
    """

    WIDTH: Range = (0.2, 0.6)

    def score(self, observation: Observation, thread: SeenThread, *, width: float, spent: int) -> float:
        """Upper confidence bound of a buyer; infinite before it was asked."""
        if not thread.my_messages:
            return math.inf
        mean = estimate_cents(observation, thread) / public_prices(observation, 0).top
        return mean + width * math.sqrt(math.log(max(1, spent)) / thread.my_messages)

    def next_ask(self, turn: Turn, threads: Sequence[SeenThread]) -> Ask | None:
        observation = turn.observation
        width = scaled(traits(turn).temper, self.WIDTH)
        now = asks(observation)
        thread = max(
            threads,
            key=lambda thread: (
                self.score(observation, thread, width=width, spent=now.move),
                -thread.my_messages,
                -thread.buyer,
            ),
        )
        return Ask(thread, 0, linear_price(observation, 0, now))


class SuccessiveElimination(LadderSeller):
    """Drops a buyer whose upper bound is below another's lower one; splits the rest.

    Each of the n buyers left is asked L + (U - L) 2^(-1/n), at which, for uniform values, none
    would say yes with probability 1/2 (elimination: Even-Dar, Mannor and Mansour 2006). The one
    with the widest room is asked next. Bids are lower bounds; without bids nobody is dropped.
    """

    def active(self, observation: Observation, threads: Sequence[SeenThread]) -> list[SeenThread]:
        """The buyers that may still be worth most."""
        bounds = {thread.buyer: value_interval(observation, thread, 0) for thread in threads}
        floor = max(interval.low for interval in bounds.values())
        return [thread for thread in threads if bounds[thread.buyer].high >= floor]

    def next_ask(self, turn: Turn, threads: Sequence[SeenThread]) -> Ask | None:
        observation = turn.observation
        left = self.active(observation, threads)
        thread = max(
            left, key=lambda thread: (value_interval(observation, thread, 0).high, -thread.my_messages, -thread.buyer)
        )
        low, high = value_interval(observation, thread, 0)
        low = min(high, max(low, reservation_cents(observation, 0)))
        return Ask(thread, 0, low + (high - low) * 2 ** (-1 / len(left)))


class PlayOff(LadderSeller):
    """Quotes the best standing bid plus a step to the others until one buyer is left.

    An English auction by correspondence: whoever lets the quote pass is out until the bid to beat
    is its own. An offer binds, so a buyer who takes the quote has bought; the step is hidden. Without any
    bid everybody is asked at falling prices, which invites bids. The last one left is taken at its bid.
    """

    STEP: Range = (0.03, 0.10)
    """As a share of the median of the prior."""

    def rivals(self, observation: Observation, threads: Sequence[SeenThread], *, quote: Cents) -> list[SeenThread]:
        """Buyers who hold no standing bid as good as the best and have not let `quote` pass."""
        best = best_bid(observation, threads)
        return [
            thread
            for thread in threads
            if best is not None
            and thread.buyer != best.thread.buyer
            and not any(offer.mine and offer.price_cents <= quote for offer in thread.offers)
        ]

    def quote_cents(self, turn: Turn, bid: Bid) -> Cents:
        """The price that the others are asked to beat the bid with."""
        step = scaled(traits(turn).temper, self.STEP) * public_prices(turn.observation, 0).median
        return bid.offer.price_cents + round(step)

    def next_ask(self, turn: Turn, threads: Sequence[SeenThread]) -> Ask | None:
        observation = turn.observation
        bid = best_bid(observation, threads)
        if bid is None:
            return Ask(least_addressed(threads), 0, linear_price(observation, 0, asks(observation)))
        quote = self.quote_cents(turn, bid)
        rivals = self.rivals(observation, threads, quote=quote)
        return Ask(least_addressed(rivals), 0, quote) if rivals else None


class Pandora(LadderSeller):
    """Tries buyers one by one and stops when the best bid is worth more than trying the next.

    Weitzman's rule (1979): a box is worth opening while the best price so far is below z, where
    E[(V - z)+] is the cost of opening it. To open a box is to ask z: whoever pays that much ends the
    search rightly, and a bid of z or more is taken. The cost of a turn is a hidden share of the
    median. When all are tried, the one with the best bid is asked at falling prices.
    """

    TURN_COST: Range = (0.01, 0.05)

    def reservation_price_cents(self, turn: Turn) -> Cents:
        """z."""
        observation = turn.observation
        spec, scale = observation.prior.value_spec, observation.prior.scales_cents[0]
        cost = scaled(traits(turn).temper, self.TURN_COST)
        steps = round(cost * _COST_STEPS) / _COST_STEPS
        return round(opening_price(spec, steps * priors.quantile(spec, 0.5)) * scale)

    def next_ask(self, turn: Turn, threads: Sequence[SeenThread]) -> Ask | None:
        observation = turn.observation
        closed = [thread for thread in threads if not thread.my_messages]
        if closed:
            return Ask(least_addressed(closed), 0, self.reservation_price_cents(turn))
        low = min(linear_price(observation, 0, asks(observation)), self.reservation_price_cents(turn))
        return Ask(highest_bidder(threads), 0, low)


_COST_STEPS = 400


@lru_cache(maxsize=4096)
def opening_price(spec: priors.ValueSpec, cost: float) -> float:
    """z with E[(V - z)+] = cost in the prior's unit, by bisection; the bottom of the prior where even
    that is worth less than the cost. For U[0, 1], z = 1 - sqrt(2 cost)."""
    points = [priors.quantile(spec, (index + 0.5) / _GAIN_POINTS) for index in range(_GAIN_POINTS)]

    def gain(z: float) -> float:
        return math.fsum(point - z for point in points if point > z) / _GAIN_POINTS

    low, high = priors.low(spec), points[-1]
    if gain(low) <= cost:
        return low
    for _ in range(40):
        middle = (low + high) / 2
        low, high = (middle, high) if gain(middle) > cost else (low, middle)
    return (low + high) / 2


_GAIN_POINTS = 1_024
