"""Sellers of several products to buyers who want one each: by matching rules and by rising prices.

Here: which buyer is asked for which product, and the falling price of each pair. Greedy, serial and
random are the negotiating kin of the matching baselines of that name: they know the prior and not
the values. One more works the best assignment out anew from what has been learnt, and one lets
prices rise while too many want the same thing.

Contract: as in `ladders`. A pair's next price lies between the cost and the lowest price that the
buyer has refused for the product (at first the top of the prior), one part in B + 1 below it when
B turns are left for the sale: the best ladder for a uniform prior, worked out afresh at each turn.
What a buyer bids on, in its opening or later, is taken to be its favourite.
"""

from abc import abstractmethod
from collections.abc import Sequence

from agents.base import Turn
from agents.scripted.bargainers import Range
from agents.scripted.beliefs import mean_between, value_interval
from agents.scripted.ladders import Ask, Bid, LadderSeller, chance_of_sale, gain_cents
from agents.scripted.situation import (
    can_gain_as_seller,
    public_prices,
    reservation_cents,
    scaled,
    their_standing,
    traits,
)
from markets.engine import optimum
from markets.engine.money import Cents
from markets.engine.observation import Observation, SeenThread
from markets.engine.state import ThreadStatus


class CatalogueSeller(LadderSeller):
    """Names pairs of buyer and product, and takes bids before the turns run out."""

    @abstractmethod
    def next_ask(self, turn: Turn, threads: Sequence[SeenThread]) -> Ask | None: ...

    def good_bid(self, turn: Turn, threads: Sequence[SeenThread], ask: Ask | None) -> Bid | None:
        """A bid as good as the next ask of its own pair, or the best one when the turns that are
        left are needed to take bids and asking on promises less."""
        observation = turn.observation
        bids = takeable_bids(observation, threads)
        turns = turns_left(observation)
        for bid in bids:
            next_price = pair_price(observation, bid.thread, bid.offer.product, turns_for_a_sale(observation))
            if bid.offer.price_cents >= next_price:
                return bid
        if not bids or (ask is not None and turns > len(bids)):
            return None
        if ask is None:
            return bids[0]
        promise = (ask.price_cents - reservation_cents(observation, ask.product)) * chance_of_sale(observation, ask)
        return bids[0] if gain_cents(observation, bids[0]) >= promise else None


class Greedy(CatalogueSeller):
    """A Dutch sale over all pairs: the pair with the highest margin still open is asked next.

    With ever finer steps and threshold buyers this sells exactly the greedy matching. Turns are
    few, so a buyer is asked for its favourite alone while that is known and in stock.
    """

    def next_ask(self, turn: Turn, threads: Sequence[SeenThread]) -> Ask | None:
        observation = turn.observation
        pairs = [(thread, product) for thread in threads for product in wanted_products(observation, thread)]
        if not pairs:
            return None
        thread, product = max(
            pairs,
            key=lambda pair: (
                open_margin(observation, *pair),
                -pair[0].my_messages,
                -pair[0].buyer,
                -pair[1],
            ),
        )
        price = pair_price(observation, thread, product, turns_for_a_sale(observation))
        return Ask(thread, product, price)


class Serial(CatalogueSeller):
    """Buyers in random order; each is sold its favourite among what is left.

    A buyer gets its equal part of the turns that are left when its time comes. Where its
    favourite is not known, the products are asked for by the highest margin still open.
    """

    def next_ask(self, turn: Turn, threads: Sequence[SeenThread]) -> Ask | None:
        observation = turn.observation
        order = [thread.buyer for thread in observation.threads]
        turn.character.shuffle(order)
        thread, turns = self._at_the_counter(observation, threads, order)
        products = wanted_products(observation, thread)
        if not products:
            return None
        product = max(products, key=lambda product: (open_margin(observation, thread, product), -product))
        price = pair_price(observation, thread, product, turns / len(products))
        return Ask(thread, product, price)

    def _at_the_counter(
        self, observation: Observation, threads: Sequence[SeenThread], order: list[int]
    ) -> tuple[SeenThread, int]:
        """The first buyer in `order` with turns of its own left, and how many."""
        writable = {thread.buyer: thread for thread in threads}
        spent_before = 0
        total = turns_left(observation) + sum(t.my_messages for t in observation.threads)
        for place, buyer in enumerate(order):
            thread = observation.threads[buyer - 1]
            if buyer in writable:
                waiting = sum(other in writable for other in order[place:])
                share = -(-(total - spent_before) // min(waiting, units_left(observation)))
                if thread.my_messages < share:
                    return thread, share - thread.my_messages
            spent_before += thread.my_messages
        return threads[-1], 1


class RandomMatch(CatalogueSeller):
    """A matching drawn at random, and a ladder of its own on each pair, in turn."""

    def next_ask(self, turn: Turn, threads: Sequence[SeenThread]) -> Ask | None:
        observation = turn.observation
        matched = self._matching(turn)
        pairs = [
            (thread, matched[thread.buyer])
            for thread in threads
            if thread.buyer in matched and can_gain_as_seller(observation, matched[thread.buyer])
        ]
        if not pairs:
            return None
        thread, product = min(pairs, key=lambda pair: (pair[0].my_messages, pair[0].buyer))
        turns = turns_left(observation) / len(pairs)
        return Ask(thread, product, pair_price(observation, thread, product, turns))

    def _matching(self, turn: Turn) -> dict[int, int]:
        """Product of each matched buyer: drawn over all buyers and the whole opening stock."""
        observation = turn.observation
        sold = [thread.deal.product for thread in observation.threads if thread.deal is not None]
        units = [
            product
            for product, seen in enumerate(observation.products)
            for _ in range(min(seen.units_left + sold.count(product), observation.buyers))
        ]
        chance = turn.character
        buyers = list(range(1, observation.buyers + 1))
        chance.shuffle(buyers)
        chance.shuffle(units)
        return dict(zip(buyers, units, strict=False))


class ReSolvedAssignment(CatalogueSeller):
    """Asks along the best assignment for what the values are expected to be, worked out at each turn.

    A pair is expected to be worth E[V | best bid <= V <= lowest price let pass]; among the pairs of
    the best assignment (maximum weight: Shapley and Shubik 1971) the buyer asked least comes first.
    """

    def next_ask(self, turn: Turn, threads: Sequence[SeenThread]) -> Ask | None:
        observation = turn.observation
        pairs = self.assigned(observation, threads)
        if not pairs:
            pairs = [(thread, product) for thread in threads for product in wanted_products(observation, thread)]
        if not pairs:
            return None
        thread, product = min(
            pairs,
            key=lambda pair: (pair[0].my_messages, -open_margin(observation, *pair), pair[0].buyer, pair[1]),
        )
        return Ask(thread, product, pair_price(observation, thread, product, turns_for_a_sale(observation)))

    def assigned(self, observation: Observation, threads: Sequence[SeenThread]) -> list[tuple[SeenThread, int]]:
        """The pairs of the best assignment among these buyers and what is left."""
        stock = [seen.units_left for seen in observation.products]
        surplus = [
            [
                round(expected_value_cents(observation, thread, product) - reservation_cents(observation, product))
                for product in range(len(stock))
            ]
            for thread in threads
        ]
        _, pairs = optimum.optimal_assignment(surplus=surplus, stock=stock)
        return [(threads[place], product) for place, product in pairs]


class RisingPrices(CatalogueSeller):
    """Raises the price of what more buyers want than there are units, until nobody is left over.

    The approximate auction of Demange, Gale and Sotomayor (1986) by correspondence. The price of a
    product is the lowest standing bid that gets a unit, its cost while units are free. A buyer
    whose bid gets none is asked to beat the price of that product by a step, and when it lets that
    pass, of the other products; when it has let all pass it is out. When nobody is left over, bids
    are taken. An offer binds, so a buyer who takes a raised price has bought. Buyers who have not bid
    are asked along a ladder by margin. The step is hidden.
    """

    STEP: Range = (0.03, 0.08)
    """As a share of the product's median."""

    def next_ask(self, turn: Turn, threads: Sequence[SeenThread]) -> Ask | None:
        observation = turn.observation
        silent = [thread for thread in threads if thread.last(mine=False) is None]
        loud = [thread for thread in threads if thread.last(mine=False) is not None]
        fresh = [thread for thread in silent if not thread.my_messages]
        raised = [ask for thread in self.left_over(observation, loud) if (ask := self._quote(turn, loud, thread))]
        if fresh or not raised:
            return self._by_margin(observation, fresh or silent)
        return min(raised, key=lambda ask: (ask.thread.my_messages, ask.thread.buyer))

    def left_over(self, observation: Observation, threads: Sequence[SeenThread]) -> list[SeenThread]:
        """The buyers who have bid and whose bids get no unit at a gain."""
        winners = {bid.thread.buyer for bid in takeable_bids(observation, threads)}
        return [thread for thread in threads if thread.buyer not in winners]

    def good_bid(self, turn: Turn, threads: Sequence[SeenThread], ask: Ask | None) -> Bid | None:
        """The best bid once nobody is left over, or when the turns that are left are needed for bids."""
        bids = takeable_bids(turn.observation, threads)
        if not bids or (ask is not None and turns_left(turn.observation) > len(bids)):
            return None
        return bids[0]

    def _quote(self, turn: Turn, bidders: Sequence[SeenThread], thread: SeenThread) -> Ask | None:
        """The raised price that a left-over buyer has not let pass yet, of what it bid on first."""
        observation = turn.observation
        wanted = thread.last(mine=False)
        products = [index for index in range(len(observation.products)) if can_gain_as_seller(observation, index)]
        products.sort(
            key=lambda index: (wanted is None or wanted.product != index, -open_margin(observation, thread, index))
        )
        for product in products:
            step = scaled(traits(turn).temper, self.STEP) * public_prices(observation, product).median
            price = price_to_beat(observation, bidders, product) + round(step)
            if not any(
                offer.mine and offer.product == product and offer.price_cents <= price for offer in thread.offers
            ):
                return Ask(thread, product, price)
        return None

    def _by_margin(self, observation: Observation, threads: Sequence[SeenThread]) -> Ask | None:
        pairs = [(thread, product) for thread in threads for product in wanted_products(observation, thread)]
        if not pairs:
            return None
        thread, product = min(
            pairs,
            key=lambda pair: (pair[0].my_messages, -open_margin(observation, *pair), pair[0].buyer, pair[1]),
        )
        return Ask(thread, product, pair_price(observation, thread, product, turns_for_a_sale(observation)))


def price_to_beat(observation: Observation, threads: Sequence[SeenThread], product: int) -> Cents:
    """The lowest standing bid that gets a unit of the product, or its cost while units are free."""
    winning = [bid.offer.price_cents for bid in takeable_bids(observation, threads) if bid.offer.product == product]
    cost = reservation_cents(observation, product)
    return max(cost, min(winning)) if len(winning) >= observation.products[product].units_left > 0 else cost


# The price of a pair ---------------------------------------------------------------------------


def upper_bound_cents(observation: Observation, thread: SeenThread, product: int) -> Cents:
    """The lowest price that the buyer has let pass for the product, else the top of the prior."""
    refused = [offer.price_cents for offer in thread.offers if offer.mine and offer.product == product]
    return min([*refused, public_prices(observation, product).top])


def open_margin(observation: Observation, thread: SeenThread, product: int) -> Cents:
    """The largest margin that the buyer may still pay."""
    return upper_bound_cents(observation, thread, product) - reservation_cents(observation, product)


def expected_value_cents(observation: Observation, thread: SeenThread, product: int) -> float:
    """E[V | best bid <= V <= lowest price let pass], as a threshold buyer's answers would be read."""
    low, high = value_interval(observation, thread, product)
    scale = observation.prior.scales_cents[product]
    return mean_between(observation.prior.value_spec, low / scale, high / scale) * scale


def pair_price(observation: Observation, thread: SeenThread, product: int, turns: float) -> float:
    """One part in B + 1 below the upper bound, with B the turns left for this sale, at least 1."""
    cost = reservation_cents(observation, product)
    left = max(1.0, turns)
    margin = max(0, open_margin(observation, thread, product))
    return cost + margin * left / (left + 1)


# Who wants what --------------------------------------------------------------------------------


def wanted_products(observation: Observation, thread: SeenThread) -> list[int]:
    """What the buyer may still be sold at a gain: its favourite where that is known."""
    bid = thread.last(mine=False)
    products = [product for product in range(len(observation.products)) if can_gain_as_seller(observation, product)]
    open_products = [product for product in products if open_margin(observation, thread, product) > 0]
    if bid is not None and bid.product in open_products:
        return [bid.product]
    return open_products or products


def takeable_bids(observation: Observation, threads: Sequence[SeenThread]) -> list[Bid]:
    """The best gaining bid of each thread, best first, no more than there are units."""
    bids = [Bid(thread, offer) for thread in threads for offer in their_standing(thread)]
    bids = [bid for bid in bids if gain_cents(observation, bid) > 0]
    bids.sort(key=lambda bid: (-gain_cents(observation, bid), bid.thread.buyer))
    left = [seen.units_left for seen in observation.products]
    served: set[int] = set()
    taken = []
    for bid in bids:
        if bid.thread.buyer not in served and left[bid.offer.product]:
            left[bid.offer.product] -= 1
            served.add(bid.thread.buyer)
            taken.append(bid)
    return taken


def turns_left(observation: Observation) -> int:
    """Messages that the seller has left."""
    assert observation.turns_left is not None
    return observation.turns_left


def units_left(observation: Observation) -> int:
    """Units that are still for sale, at least 1."""
    return max(1, sum(seen.units_left for seen in observation.products))


def turns_for_a_sale(observation: Observation) -> float:
    """Turns left for each sale that can still be made."""
    waiting = sum(thread.status is ThreadStatus.OPEN for thread in observation.threads)
    return turns_left(observation) / max(1, min(waiting, units_left(observation)))
