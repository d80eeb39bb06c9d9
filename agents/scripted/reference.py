"""Policies that know what no player can know: bounds to measure against.

Here: the oracle, and sellers who carry out one assignment of products to buyers at full extraction.
Not here: anything that may sit opposite a person.

Contract: reference policies get the whole scenario through `Turn.scenario`; without it they raise.
Their moves keep to the rules and to their own reservation value like everybody's.
"""

from abc import ABC, abstractmethod

from agents.base import Turn
from agents.scripted.bargainers import best_ask, refuse_or_leave
from agents.scripted.ladders import best_bid
from agents.scripted.situation import clock, their_standing, unanswerable
from markets.engine import optimum
from markets.engine.money import MAX_PRICE_CENTS, Cents
from markets.engine.observation import Observation, SeenThread
from markets.engine.protocol import AcceptOffer, Action, Leave, MakeOffer, Role
from markets.engine.scenarios import Alternating, Scenario
from markets.engine.state import ThreadStatus


class Oracle:
    """Names the other side's reservation value, to the best counterpart; leaves without gains.

    A seller asks the buyers of the best assignment of what is left for their full values, to the
    end; a buyer bids the cost of the product that gains most. Threshold parties take that, so it
    bounds what can be had from them; it knows values, not strategies.
    """

    def act(self, turn: Turn) -> Action:
        scenario = turn.scenario
        if scenario is None:
            raise ValueError("The oracle needs the whole scenario.")
        if turn.observation.role is Role.SELLER:
            return self._act_as_seller(turn, scenario)
        return self._act_as_buyer(turn, scenario)

    def _act_as_seller(self, turn: Turn, scenario: Scenario) -> Action:
        observation = turn.observation
        threads = [thread for thread in observation.threads if thread.my_move]
        targets = self._targets(turn, scenario)
        asked = [thread for thread in threads if thread.buyer in targets]
        if not asked:
            return Leave()
        bid = best_bid(observation, threads)
        if bid is not None:
            product, value = targets.get(bid.thread.buyer, (bid.offer.product, MAX_PRICE_CENTS))
            full = bid.offer.product == product and bid.offer.price_cents >= value
            if full or unanswerable(observation):
                return AcceptOffer(buyer=bid.thread.buyer, offer_id=bid.offer.offer_id)
        if unanswerable(observation):
            return refuse_or_leave(threads[0])

        def rank(thread: SeenThread) -> tuple[int, Cents]:
            product, value = targets[thread.buyer]
            return thread.my_messages, scenario.seller_values_cents[product] - value

        thread = min(asked, key=rank)
        product, value = targets[thread.buyer]
        return MakeOffer(buyer=thread.buyer, product=product, price_cents=value)

    def _targets(self, turn: Turn, scenario: Scenario) -> dict[int, tuple[int, Cents]]:
        """(product, value) of each buyer in the best assignment of what is left."""
        observation = turn.observation
        surplus = [
            [
                value - cost if thread.status is ThreadStatus.OPEN else 0
                for value, cost in zip(values, scenario.seller_values_cents, strict=True)
            ]
            for thread, values in zip(observation.threads, scenario.buyer_values_cents, strict=True)
        ]
        _, pairs = optimum.optimal_assignment(surplus=surplus, stock=[seen.units_left for seen in observation.products])
        return {buyer + 1: (product, scenario.buyer_values_cents[buyer][product]) for buyer, product in pairs}

    def _act_as_buyer(self, turn: Turn, scenario: Scenario) -> Action:
        observation = turn.observation
        thread = observation.threads[0]
        costs = scenario.seller_values_cents
        gains = [
            (observation.surplus_cents(product=product, price_cents=max(1, costs[product])), product)
            for product, seen in enumerate(observation.products)
            if seen.units_left
        ]
        gain, product = max(gains, default=(0, 0))
        if gain <= 0:
            return Leave()
        ask = best_ask(observation, thread)
        if ask is not None:
            offered = observation.surplus_cents(product=ask.product, price_cents=ask.price_cents)
            if offered >= gain or (offered >= 0 and self._last_chance(observation)):
                return AcceptOffer(offer_id=ask.offer_id)
        if unanswerable(observation):
            return refuse_or_leave(thread)
        return MakeOffer(product=product, price_cents=max(1, costs[product]))

    def _last_chance(self, observation: Observation) -> bool:
        """Whether the buyer cannot expect to be heard again."""
        alternating = isinstance(observation.mechanism, Alternating)
        return unanswerable(observation) if alternating else clock(observation).at_end


class FullExtraction(ABC):
    """Asks each buyer of one assignment for its full value for what the assignment gives it.

    The assignment is settled before the first move and stays; a buyer who does not pay its value
    is asked again, and what nobody gains from is not offered. Against threshold buyers the welfare is
    the assignment's, and all of it goes to the seller.
    """

    @abstractmethod
    def assignment(self, turn: Turn, gains: list[list[Cents]], stock: list[int]) -> list[tuple[int, int]]:
        """(buyer, product) pairs, both from 0, from value - cost of every pair and the opening stock."""

    def act(self, turn: Turn) -> Action:
        scenario, observation = turn.scenario, turn.observation
        if scenario is None:
            raise ValueError("An assignment at full extraction needs the whole scenario.")
        costs, values = scenario.seller_values_cents, scenario.buyer_values_cents
        gains = [[value - cost for value, cost in zip(own, costs, strict=True)] for own in values]
        stock = [product.stock for product in scenario.products]
        due = [
            (observation.threads[buyer], product)
            for buyer, product in self.assignment(turn, gains, stock)
            if gains[buyer][product] > 0
            and observation.threads[buyer].my_move
            and observation.products[product].units_left
        ]
        if not due:
            return Leave()
        for thread, product in due:
            for bid in their_standing(thread):
                if bid.product == product and bid.price_cents >= values[thread.buyer - 1][product]:
                    return AcceptOffer(buyer=thread.buyer, offer_id=bid.offer_id)
        thread, product = min(due, key=lambda pair: (pair[0].my_messages, pair[0].buyer))
        return MakeOffer(buyer=thread.buyer, product=product, price_cents=values[thread.buyer - 1][product])


class OptimalAssignment(FullExtraction):
    """The assignment of the largest total gain."""

    def assignment(self, turn: Turn, gains: list[list[Cents]], stock: list[int]) -> list[tuple[int, int]]:
        return list(optimum.optimal_assignment(surplus=gains, stock=stock)[1])


class GreedyAssignment(FullExtraction):
    """The pair with the largest gain first, then the next that is still possible."""

    def assignment(self, turn: Turn, gains: list[list[Cents]], stock: list[int]) -> list[tuple[int, int]]:
        ranked = sorted((-gain, buyer, product) for buyer, row in enumerate(gains) for product, gain in enumerate(row))
        left, served, pairs = list(stock), set(), []
        for _, buyer, product in ranked:
            if buyer not in served and left[product]:
                left[product] -= 1
                served.add(buyer)
                pairs.append((buyer, product))
        return pairs


class SerialAssignment(FullExtraction):
    """Buyers in an order drawn by lot, each with what it values most above cost among what is left."""

    def assignment(self, turn: Turn, gains: list[list[Cents]], stock: list[int]) -> list[tuple[int, int]]:
        order = list(range(len(gains)))
        turn.character.shuffle(order)
        left, pairs = list(stock), []
        for buyer in order:
            possible = [product for product, units in enumerate(left) if units and gains[buyer][product] > 0]
            if possible:
                product = max(possible, key=lambda product: (gains[buyer][product], -product))
                left[product] -= 1
                pairs.append((buyer, product))
        return pairs


class RandomAssignment(FullExtraction):
    """Units and buyers matched by lot, as many pairs as there can be."""

    def assignment(self, turn: Turn, gains: list[list[Cents]], stock: list[int]) -> list[tuple[int, int]]:
        chance = turn.character
        buyers = list(range(len(gains)))
        units = [product for product, held in enumerate(stock) for _ in range(min(held, len(buyers)))]
        chance.shuffle(buyers)
        chance.shuffle(units)
        return list(zip(buyers, units, strict=False))
