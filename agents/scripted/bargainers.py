"""Strategies that bargain on either side of the table, in every family.

Here: one class per rule for the next own price; what is common (accepting, patience, choosing
thread and product) is in `Bargainer`. Not here: what only buyers (`buyers`), sellers with many
buyers (`ladders`) or catalogue sellers (`catalogues`) do.

Contract: offers and acceptances stay within the own reservation value, except those of `ZiU`,
the negative control. A party accepts what is at least as good as its own next offer (AC_next,
Baarslag, Hindriks and Jonker 2013) and, at the last message it can expect, whatever is within its
reservation value. A buyer's price never depends on how absurd an ask is: asks above the public
prior count as its top, and a buyer that is asked for far more than that leaves.
"""

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence

from agents.base import Turn
from agents.scripted.situation import (
    Traits,
    can_buy,
    can_gain_as_seller,
    clock,
    is_out_of_patience,
    is_outraged,
    public_prices,
    reservation_cents,
    scaled,
    their_standing,
    traits,
    unanswerable,
    within_reservation,
)
from markets.engine.money import MAX_PRICE_CENTS, Cents
from markets.engine.observation import Observation, SeenOffer, SeenThread
from markets.engine.protocol import AcceptOffer, Action, Leave, MakeOffer, RejectOffer, Role
from markets.engine.scenarios import SellerTurns

Range = tuple[float, float]

ASK_OPENING: Range = (0.90, 1.05)
"""First ask as a share of the top of the public prior."""

BID_OPENING: Range = (0.30, 0.60)
"""First bid as a share of the median of the public prior."""

MAX_OPENING_SHARE = 0.85
"""A first bid is at most this share of the buyer's own value."""

MARGIN: Range = (0.02, 0.12)
"""Part of the way from the first offer to the own reservation value that a time-dependent party
keeps to itself even at the end."""


class Bargainer(ABC):
    """Names a price of its own at every turn until somebody accepts."""

    @abstractmethod
    def price(self, turn: Turn, thread: SeenThread, product: int) -> float:
        """The next own price in cents, before it is kept within the reservation value."""

    def offer_cents(self, turn: Turn, thread: SeenThread, product: int) -> Cents:
        """The next own price as it would be offered."""
        return within_reservation(turn.observation, product, self.price(turn, thread, product))

    def demand_cents(self, turn: Turn, thread: SeenThread, product: int) -> Cents:
        """The price that is good enough to accept: the next own one."""
        return self.offer_cents(turn, thread, product)

    def settles(self, turn: Turn) -> bool:
        """Whether anything within the reservation value will do now."""
        return clock(turn.observation).at_end

    def act(self, turn: Turn) -> Action:
        if turn.observation.role is Role.BUYER:
            return self._act_as_buyer(turn)
        return self._act_as_seller(turn)

    # A buyer

    def _act_as_buyer(self, turn: Turn) -> Action:
        observation = turn.observation
        thread = observation.threads[0]
        wanted = [index for index in range(len(observation.products)) if can_buy(observation, index)]
        if not wanted or is_outraged(turn, observation):
            return Leave()
        product = favourite(observation, thread, wanted)
        ask = best_ask(observation, thread)
        if ask is not None:
            gain = observation.surplus_cents(product=ask.product, price_cents=ask.price_cents)
            if gain >= 0 and self._takes(turn, gain, product):
                return AcceptOffer(offer_id=ask.offer_id)
            if gain < 0 and is_out_of_patience(thread, ask.product, traits(turn).patience):
                return Leave()
        if unanswerable(observation):
            return refuse_or_leave(thread)
        bid = self.offer_cents(turn, thread, product)
        return MakeOffer(product=product, price_cents=bid)

    def _takes(self, turn: Turn, gain: Cents, product: int) -> bool:
        observation = turn.observation
        if self.settles(turn):
            return True
        demand = self.demand_cents(turn, observation.threads[0], product)
        return gain >= observation.surplus_cents(product=product, price_cents=demand)

    # A seller

    def _act_as_seller(self, turn: Turn) -> Action:
        observation = turn.observation
        if not any(can_gain_as_seller(observation, index) for index in range(len(observation.products))):
            return Leave()
        threads = [thread for thread in observation.threads if thread.my_move]
        bid = self._best_bid(turn, threads)
        if bid is not None:
            thread, offer = bid
            return AcceptOffer(buyer=thread.buyer, offer_id=offer.offer_id)
        thread = least_addressed(threads)
        if unanswerable(observation):
            return refuse_or_leave(thread)
        product = product_to_sell(observation, thread)
        ask = self.offer_cents(turn, thread, product)
        return MakeOffer(buyer=thread.buyer, product=product, price_cents=ask)

    def _best_bid(self, turn: Turn, threads: list[SeenThread]) -> tuple[SeenThread, SeenOffer] | None:
        """The bid with the largest gain among those that are good enough."""
        observation = turn.observation
        good = []
        for thread in threads:
            for offer in their_standing(thread):
                gain = observation.surplus_cents(product=offer.product, price_cents=offer.price_cents)
                if gain < 0:
                    continue
                if self.settles(turn) or offer.price_cents >= self.demand_cents(turn, thread, offer.product):
                    good.append((gain, -thread.buyer, thread, offer))
        if not good:
            return None
        _, _, thread, offer = max(good, key=lambda entry: entry[:2])
        return thread, offer


def favourite(observation: Observation, thread: SeenThread, wanted: list[int]) -> int:
    """The product a buyer bids on: the best own surplus at the price asked, or at list price.

    An ask above the list price counts as the list price, so that asking for a product never makes
    it less wanted; among equals the product asked for last comes first.
    """
    if len(wanted) == 1:
        return wanted[0]
    latest = thread.last(mine=False)

    def appeal(product: int) -> tuple[Cents, bool, int]:
        asked = thread.standing_offer(mine=False, product=product)
        price = observation.products[product].list_price_cents
        if asked is not None:
            price = min(price, asked.price_cents)
        surplus = observation.surplus_cents(product=product, price_cents=price)
        return surplus, latest is not None and latest.product == product, -product

    return max(wanted, key=appeal)


def best_ask(observation: Observation, thread: SeenThread) -> SeenOffer | None:
    """The standing ask that is worth most to a buyer."""
    asks = their_standing(thread)
    if not asks:
        return None
    return max(
        asks,
        key=lambda ask: observation.surplus_cents(product=ask.product, price_cents=ask.price_cents),
    )


def least_addressed(threads: Sequence[SeenThread]) -> SeenThread:
    """Round-robin: the thread with the fewest own messages, the lowest number first."""
    return min(threads, key=lambda thread: (thread.my_messages, thread.buyer))


def product_to_sell(observation: Observation, thread: SeenThread) -> int:
    """What a seller offers a buyer: what it last bid on, else one product after the other.

    The turn of a product comes by its margin at the top of the prior, highest first.
    """
    if len(observation.products) == 1:
        return 0
    interest = thread.last(mine=False)
    if interest is not None and can_gain_as_seller(observation, interest.product):
        return interest.product
    for_sale = [index for index in range(len(observation.products)) if can_gain_as_seller(observation, index)]
    for_sale.sort(key=lambda index: reservation_cents(observation, index) - public_prices(observation, index).top)
    return for_sale[thread.my_messages % len(for_sale)]


def refuse_or_leave(thread: SeenThread) -> Action:
    """The last message of a party that nobody can answer and that has nothing to accept."""
    theirs = their_standing(thread)
    if theirs:
        return RejectOffer(buyer=thread.buyer, offer_id=theirs[-1].offer_id)
    return Leave()


def first_price(
    observation: Observation,
    thread: SeenThread,
    product: int,
    character: Traits,
    *,
    ask: Range = ASK_OPENING,
    bid: Range = BID_OPENING,
    from_market_opening: bool = True,
) -> float:
    """P0 in cents: anchored on the public prior, never beyond the reservation value.

    A buyer whose first bid the market made starts from that bid, or at least does not go below it.
    """
    own = reservation_cents(observation, product)
    public = public_prices(observation, product)
    if observation.role is Role.SELLER:
        return max(own, scaled(character.opening, ask) * public.top)
    start = min(MAX_OPENING_SHARE * own, scaled(character.opening, bid) * public.median)
    opened = _market_opening(observation, thread, product)
    if opened is None:
        return start
    return min(own, opened) if from_market_opening else min(own, max(start, opened))


def _market_opening(observation: Observation, thread: SeenThread, product: int) -> Cents | None:
    """The bid that stood before the first message; a buyer cannot tell it from its own first one,
    and need not, since that one is P0 as well."""
    if not isinstance(observation.mechanism, SellerTurns) or not thread.offers:
        return None
    first = thread.offers[0]
    return first.price_cents if first.mine and first.product == product else None


# Zero intelligence -----------------------------------------------------------------------------


class ZiC(Bargainer):
    """Uniform on the profitable side of the reservation value (Gode and Sunder 1993)."""

    def price(self, turn: Turn, thread: SeenThread, product: int) -> float:
        own = reservation_cents(turn.observation, product)
        share = turn.chance.random()
        if turn.observation.role is Role.SELLER:
            return own + share * (public_prices(turn.observation, product).top - own)
        return share * own

    def settles(self, turn: Turn) -> bool:
        return False


class ZiU:
    """Uniform over all prices, whatever it costs: the control that breaks the constraint."""

    def act(self, turn: Turn) -> Action:
        observation, chance = turn.observation, turn.chance
        thread = least_addressed([thread for thread in observation.threads if thread.my_move])
        available = [index for index, seen in enumerate(observation.products) if seen.units_left]
        if not available:
            return Leave()
        product = available[int(chance.random() * len(available))]
        top = public_prices(observation, product).top
        price = max(1, min(round(chance.random() * top), MAX_PRICE_CENTS))
        is_buyer = observation.role is Role.BUYER
        for offer in their_standing(thread):
            if offer.price_cents <= price if is_buyer else offer.price_cents >= price:
                return AcceptOffer(buyer=thread.buyer, offer_id=offer.offer_id)
        return MakeOffer(buyer=thread.buyer, product=product, price_cents=price)


# Time-dependent --------------------------------------------------------------------------------


class TimeDependent(Bargainer):
    """p = R + (P0 - R)(1 - alpha), alpha = x^(1/beta) (Faratin, Sierra and Jennings 1998).

    `beta` is drawn from a range by character. We depart from the paper in one thing: the last
    offer keeps a hidden margin (`MARGIN`), since a party that ends at R hands everything to
    whoever waits. R itself is still accepted at the end.
    """

    def __init__(self, *, beta: Range) -> None:
        self._beta = beta

    def price(self, turn: Turn, thread: SeenThread, product: int) -> float:
        observation, character = turn.observation, traits(turn)
        own = reservation_cents(observation, product)
        start = first_price(observation, thread, product, character)
        beta = scaled(character.temper, self._beta)
        alpha = math.pow(clock(observation).x, 1 / beta) * (1 - scaled(character.margin, MARGIN))
        return own + (start - own) * (1 - alpha)


# Answering the other side's moves --------------------------------------------------------------


def plausible(observation: Observation, offer: SeenOffer) -> Cents:
    """The other side's price, an absurd one replaced by the edge of what the prior allows."""
    public = public_prices(observation, offer.product)
    if observation.role is Role.BUYER:
        return min(offer.price_cents, public.top)
    return max(offer.price_cents, public.plausible_bid)


def their_concession(observation: Observation, thread: SeenThread, product: int) -> Cents:
    """How far the other side has come on `product` from its first offer to its best, in cents.

    Measured between plausible prices, so that coming back from an absurd one is no concession.
    """
    theirs = [plausible(observation, offer) for offer in thread.offers if not offer.mine and offer.product == product]
    if not theirs:
        return 0
    return theirs[0] - min(theirs) if observation.role is Role.BUYER else max(theirs) - theirs[0]


class TitForTat(Bargainer):
    """Concedes as many cents as the other side has (absolute tit-for-tat, Faratin et al. 1998).

    Its second offer adds a first step of its own, so that two of a kind do not wait for ever.
    """

    FIRST_STEP: Range = (0.03, 0.08)
    """As a share of the first offer."""

    def price(self, turn: Turn, thread: SeenThread, product: int) -> float:
        observation, character = turn.observation, traits(turn)
        start = first_price(observation, thread, product, character)
        moved: float = their_concession(observation, thread, product)
        if thread.last(mine=True, product=product) is not None:
            moved += scaled(character.temper, self.FIRST_STEP) * start
        return start - moved if observation.role is Role.SELLER else start + moved


class SplitTheDifference(Bargainer):
    """Proposes the middle between both first offers and stays there (the k = 1/2 rule).

    Prices count as far as they are plausible, so an absurd opening does not move the middle. While
    the other side names no price, the far end of what is plausible stands in for it.
    """

    NEAR_ENOUGH = 0.02
    """A price this close to the middle, as a share of it, is accepted."""

    def price(self, turn: Turn, thread: SeenThread, product: int) -> float:
        observation = turn.observation
        start = first_price(observation, thread, product, traits(turn))
        if thread.last(mine=True, product=product) is None:
            return start
        return (start + self._their_first(observation, thread, product)) / 2

    def demand_cents(self, turn: Turn, thread: SeenThread, product: int) -> Cents:
        next_price = self.offer_cents(turn, thread, product)
        near = self.NEAR_ENOUGH * next_price
        price = next_price - near if turn.observation.role is Role.SELLER else next_price + near
        return within_reservation(turn.observation, product, price)

    def _their_first(self, observation: Observation, thread: SeenThread, product: int) -> Cents:
        for offer in thread.offers:
            if not offer.mine and offer.product == product:
                return plausible(observation, offer)
        public = public_prices(observation, product)
        return public.top if observation.role is Role.BUYER else public.plausible_bid


# Standing firm ---------------------------------------------------------------------------------


class Hardliner(Bargainer):
    """Names one price and never moves from it."""

    ASK: Range = (0.80, 0.95)
    BID: Range = (0.50, 0.75)

    def price(self, turn: Turn, thread: SeenThread, product: int) -> float:
        return first_price(
            turn.observation,
            thread,
            product,
            traits(turn),
            ask=self.ASK,
            bid=self.BID,
            from_market_opening=False,
        )

    def settles(self, turn: Turn) -> bool:
        return False


class Satisficer(Bargainer):
    """Takes the first offer that gives it theta of the way from R to P0 (Simon 1956).

    theta falls by a hidden step every second own message and never below `FLOOR`; after its first
    offer it names the price that would satisfy it.
    """

    START: Range = (0.35, 0.50)
    STEP: Range = (0.04, 0.10)
    EVERY = 2
    FLOOR = 0.10

    def price(self, turn: Turn, thread: SeenThread, product: int) -> float:
        if not thread.my_messages:
            return self._start(turn, thread, product)
        return self._aspiration(turn, thread, product)

    def theta(self, character: Traits, messages: int) -> float:
        """Share of the way from the reservation value to the first offer that satisfies."""
        start = scaled(character.temper, self.START)
        fall = scaled(character.margin, self.STEP) * (messages // self.EVERY)
        return max(self.FLOOR, start - fall)

    def settles(self, turn: Turn) -> bool:
        return False

    def demand_cents(self, turn: Turn, thread: SeenThread, product: int) -> Cents:
        return within_reservation(turn.observation, product, self._aspiration(turn, thread, product))

    def _aspiration(self, turn: Turn, thread: SeenThread, product: int) -> float:
        own = reservation_cents(turn.observation, product)
        theta = self.theta(traits(turn), thread.my_messages)
        return own + theta * (self._start(turn, thread, product) - own)

    def _start(self, turn: Turn, thread: SeenThread, product: int) -> float:
        return first_price(turn.observation, thread, product, traits(turn), from_market_opening=False)
