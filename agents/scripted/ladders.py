"""Sellers who go through a sequence of falling prices, with one buyer or with many.

Here: who is asked next and at what price. Not here: catalogues (`catalogues`), and how the best
sequence is found (`markets.engine.optimum`).

Contract: a ladder is worked out for one unit from the public prior and the seller's own cost and
never from a buyer's value. The place on it is the number of messages spent, so nothing has to be
remembered. No ask is below cost. A bid is accepted when it is at least the next ask, and at the
last turn when it is worth more than the last ask can be expected to be.
"""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from functools import lru_cache
from typing import NamedTuple

from agents.base import Turn
from agents.scripted.bargainers import least_addressed, refuse_or_leave
from agents.scripted.situation import (
    Clock,
    can_gain_as_seller,
    clock,
    has_last_word,
    public_prices,
    reservation_cents,
    their_standing,
    unanswerable,
    within_reservation,
)
from agents.scripted.talk import speak
from markets.engine import optimum, priors
from markets.engine.money import Cents
from markets.engine.observation import Observation, SeenOffer, SeenThread
from markets.engine.protocol import AcceptOffer, Action, Leave, MakeOffer, RejectOffer, Say
from markets.engine.scenarios import Family, Prior


class Ask(NamedTuple):
    """The next price, and who is asked."""

    thread: SeenThread
    product: int
    price_cents: float


class Bid(NamedTuple):
    """A standing offer of a buyer."""

    thread: SeenThread
    offer: SeenOffer


class LadderSeller(ABC):
    """Asks along a plan, takes a good bid, and leaves when the plan is through."""

    @abstractmethod
    def next_ask(self, turn: Turn, threads: Sequence[SeenThread]) -> Ask | None:
        """The next ask to one of `threads`, all open and free to write in; None when done."""

    def act(self, turn: Turn) -> Action:
        observation = turn.observation
        products = range(len(observation.products))
        if not any(can_gain_as_seller(observation, product) for product in products):
            return Leave()
        threads = [thread for thread in observation.threads if thread.my_move]
        ask = None if unanswerable(observation) else self.next_ask(turn, threads)
        bid = self.good_bid(turn, threads, ask)
        if bid is not None:
            return AcceptOffer(buyer=bid[0].buyer, offer_id=bid[1].offer_id)
        if ask is None:
            return refuse_or_leave(threads[0]) if unanswerable(observation) else Leave()
        return MakeOffer(
            buyer=ask.thread.buyer,
            product=ask.product,
            price_cents=within_reservation(observation, ask.product, ask.price_cents),
        )

    def good_bid(self, turn: Turn, threads: Sequence[SeenThread], ask: Ask | None) -> Bid | None:
        """A standing bid to take rather than go on with `ask`."""
        bid = best_bid(turn.observation, threads)
        if bid is None or not is_worth_taking(turn.observation, bid, ask):
            return None
        return bid


def best_bid(observation: Observation, threads: Sequence[SeenThread]) -> Bid | None:
    """The standing bid that gains most; None where none covers its cost."""
    bids = [Bid(thread, offer) for thread in threads for offer in their_standing(thread)]
    bids = [bid for bid in bids if gain_cents(observation, bid) >= 0]
    return max(bids, key=lambda bid: gain_cents(observation, bid), default=None)


def gain_cents(observation: Observation, bid: Bid) -> Cents:
    """What taking the bid is worth to the seller."""
    return observation.surplus_cents(product=bid.offer.product, price_cents=bid.offer.price_cents)


def is_worth_taking(observation: Observation, bid: Bid, ask: Ask | None) -> bool:
    """Whether a bid that covers its cost is better than going on with `ask`.

    Going on loses nothing while there are turns left, since a bid stays on the table.
    """
    gain = gain_cents(observation, bid)
    if ask is None:
        return True
    ask_gain = ask.price_cents - reservation_cents(observation, ask.product)
    if gain >= ask_gain:
        return True
    if not clock(observation).at_end:
        return False
    return gain > 0 and gain >= ask_gain * chance_of_sale(observation, ask)


def chance_of_sale(observation: Observation, ask: Ask) -> float:
    """Chance that a threshold buyer takes the ask, given the lowest price it has let pass."""
    prior = observation.prior
    scale = prior.scales_cents[ask.product]
    refused = [offer.price_cents for offer in ask.thread.offers if offer.mine and offer.product == ask.product]
    below_refused = priors.below(prior.value_spec, min(refused) / scale) if refused else 1.0
    if below_refused <= 0:
        return 0.0
    return max(0.0, 1 - priors.below(prior.value_spec, ask.price_cents / scale) / below_refused)


def asks(observation: Observation) -> Clock:
    """The clock in messages that can still be answered."""
    now = clock(observation)
    return Clock(now.move, max(1, now.moves - has_last_word(observation)))


def linear_price(observation: Observation, product: int, asks: Clock) -> float:
    """Falls by equal steps from the top of the prior towards the cost (`optimum.linear_ladder`)."""
    cost = reservation_cents(observation, product)
    top = max(public_prices(observation, product).top, cost)
    return top - (top - cost) * min(asks.move, asks.moves) / asks.moves


# The best sequence for a prior -----------------------------------------------------------------


COST_STEPS = 64
"""Ladders are kept for costs on a grid of this many steps up to the top of the prior. Next to the
exact cost this loses less than 3e-4 of the first best (uniform, lognormal and bands, N = 3, T = 8),
and a market whose costs vary needs few ladders."""


def spec_cost(prior: Prior, product: int, cost_cents: Cents) -> float:
    """The cost in the prior's unit, on the grid of costs on which ladders are kept."""
    return on_grid(prior.value_spec, cost_cents / prior.scales_cents[product])


def on_grid(spec: priors.ValueSpec, at: float) -> float:
    """The nearest point of the grid on which what follows from a prior is kept; never negative."""
    start = priors.low(spec)
    step = (priors.ladder_top(spec) - start) / COST_STEPS or 1.0
    return max(0.0, start + step * round((at - start) / step))


def buyers_correlation(observation: Observation) -> float:
    """Correlation across the buyers of one product; in a catalogue rho is within a buyer."""
    return 0.0 if observation.family is Family.CATALOGUE else observation.prior.rho


@lru_cache(maxsize=4096)
def optimal_prices(spec: priors.ValueSpec, rho: float, buyers: int, turns: int, cost: float) -> tuple[float, ...]:
    """Prices of the best round-robin ladder, in the prior's unit."""
    return optimum.optimal_ladder(spec=spec, rho=rho, buyers=buyers, turns=turns, cost=cost).prices


@lru_cache(maxsize=4096)
def single_buyer_prices(spec: priors.ValueSpec, turns: int, cost: float) -> tuple[float, ...]:
    """Prices of the best ladder for one buyer alone, in the prior's unit."""
    return optimum.single_buyer_ladder(spec=spec, rho=0.0, buyers=1, turns=turns, cost=cost).prices


class OptimalLadder(LadderSeller):
    """The best round-robin sequence of offers for any prior, number of buyers and turns."""

    def next_ask(self, turn: Turn, threads: Sequence[SeenThread]) -> Ask | None:
        observation, prior = turn.observation, turn.observation.prior
        now = asks(observation)
        prices = optimal_prices(
            prior.value_spec,
            buyers_correlation(observation),
            observation.buyers,
            now.moves,
            spec_cost(prior, 0, reservation_cents(observation, 0)),
        )
        price = prices[min(now.move, now.moves - 1)] * prior.scales_cents[0]
        return Ask(by_turns(observation, threads, now.move), 0, price)


class FallingLadder(LadderSeller):
    """The linear ladder: equal steps from the top of the prior to the cost, round-robin."""

    def next_ask(self, turn: Turn, threads: Sequence[SeenThread]) -> Ask | None:
        observation = turn.observation
        now = asks(observation)
        thread = by_turns(observation, threads, now.move)
        return Ask(thread, 0, linear_price(observation, 0, now))


class EqualSteps(LadderSeller):
    """T equally spaced prices between the top of the prior and the cost, both left out, round-robin.

    p_t = cost + (top - cost) * (T + 1 - t) / (T + 1) for t = 1, ..., T: the best sequence for one
    threshold buyer whose value is uniform from the cost up, where it earns T / (T + 1) of the first
    best (also the falling prices of arXiv 2604.16472).
    """

    def next_ask(self, turn: Turn, threads: Sequence[SeenThread]) -> Ask | None:
        observation = turn.observation
        now = asks(observation)
        cost = reservation_cents(observation, 0)
        top = max(public_prices(observation, 0).top, cost)
        left = max(1, now.moves - now.move)
        return Ask(by_turns(observation, threads, now.move), 0, cost + (top - cost) * left / (now.moves + 1))


class RandomBuyerLadder(LadderSeller):
    """The linear ladder, each price to a buyer drawn by lot among those who are still there."""

    def next_ask(self, turn: Turn, threads: Sequence[SeenThread]) -> Ask | None:
        observation = turn.observation
        thread = threads[int(turn.chance.random() * len(threads))]
        return Ask(thread, 0, linear_price(observation, 0, asks(observation)))


class OnePass(LadderSeller):
    """One offer to each buyer at the best falling prices, then whatever bid there is."""

    def next_ask(self, turn: Turn, threads: Sequence[SeenThread]) -> Ask | None:
        observation, prior = turn.observation, turn.observation.prior
        now = asks(observation)
        offers = min(observation.buyers, now.moves)
        fresh = [thread for thread in threads if thread.my_messages == 0]
        if now.move >= offers or not fresh:
            return None
        prices = optimal_prices(
            prior.value_spec,
            buyers_correlation(observation),
            observation.buyers,
            offers,
            spec_cost(prior, 0, reservation_cents(observation, 0)),
        )
        return Ask(least_addressed(fresh), 0, prices[now.move] * prior.scales_cents[0])


class AllOnOne(LadderSeller):
    """Spends every turn on one buyer, at the best prices for that buyer alone."""

    def next_ask(self, turn: Turn, threads: Sequence[SeenThread]) -> Ask | None:
        observation, prior = turn.observation, turn.observation.prior
        now = asks(observation)
        prices = single_buyer_prices(
            prior.value_spec, now.moves, spec_cost(prior, 0, reservation_cents(observation, 0))
        )
        chosen = 1 + int(turn.character.random() * observation.buyers)
        thread = next((thread for thread in threads if thread.buyer == chosen), None)
        thread = thread or most_addressed(threads)
        price = prices[min(now.move, now.moves - 1)] * prior.scales_cents[0]
        return Ask(thread, 0, price)


class ChaseHighestBid(LadderSeller):
    """Always turns to whoever bids most, at linearly falling prices.

    The habit of untrained language models in arXiv 2607.05863: first bids tell nothing about
    values, so it mostly bargains with the wrong buyer.
    """

    def next_ask(self, turn: Turn, threads: Sequence[SeenThread]) -> Ask | None:
        observation = turn.observation
        price = linear_price(observation, 0, asks(observation))
        return Ask(highest_bidder(threads), 0, price)


class ExploreThenCommit(LadderSeller):
    """Asks every buyer once, then spends the other turns on the one that answered best.

    Prices fall linearly throughout. Where nobody names a price, it stays with a buyer chosen by
    its character.
    """

    def next_ask(self, turn: Turn, threads: Sequence[SeenThread]) -> Ask | None:
        observation = turn.observation
        now = asks(observation)
        price = linear_price(observation, 0, now)
        fresh = [thread for thread in threads if thread.my_messages == 0]
        if fresh:
            return Ask(least_addressed(fresh), 0, price)
        if any(thread.last(mine=False) for thread in threads):
            return Ask(highest_bidder(threads), 0, price)
        committed = [thread for thread in threads if thread.my_messages > 1]
        if committed:
            return Ask(most_addressed(committed), 0, price)
        return Ask(threads[int(turn.character.random() * len(threads))], 0, price)


def by_turns(observation: Observation, threads: Sequence[SeenThread], move: int) -> SeenThread:
    """Round-robin by number of messages spent; a buyer that is gone is passed over."""
    planned = move % observation.buyers + 1
    for thread in threads:
        if thread.buyer == planned:
            return thread
    return least_addressed(threads)


def highest_bidder(threads: Sequence[SeenThread]) -> SeenThread:
    """The thread with the highest latest bid; without bids the one written to most."""

    def rank(thread: SeenThread) -> tuple[Cents, int, int]:
        bid = thread.last(mine=False)
        return (0 if bid is None else bid.price_cents, thread.my_messages, -thread.buyer)

    return max(threads, key=rank)


def most_addressed(threads: Sequence[SeenThread]) -> SeenThread:
    """The thread with most own messages, the lowest number first."""
    return max(threads, key=lambda thread: (thread.my_messages, -thread.buyer))


class ThresholdSeller:
    """Takes the first bid that covers its cost and never names a price: what rising bids are for."""

    def act(self, turn: Turn) -> Action:
        observation = turn.observation
        if not can_gain_as_seller(observation, 0):
            return Leave()
        threads = [thread for thread in observation.threads if thread.my_move]
        bid = best_bid(observation, threads)
        if bid is not None:
            return AcceptOffer(buyer=bid.thread.buyer, offer_id=bid.offer.offer_id)
        thread = threads[0]
        theirs = their_standing(thread)
        if theirs:
            return RejectOffer(buyer=thread.buyer, offer_id=theirs[-1].offer_id)
        return Say(talk=speak(observation=observation, action=Say(), chance=turn.words))
