"""More ways to come towards the other side, for either role and every family.

Here: schedules over time and resources, imitation in proportion, MiCRO, anchoring and adjusting,
random moves. Not here: the first set and what all bargainers share (`bargainers`), and strategies
that reckon with the other side's gains (`equilibria`).

Contract: as in `bargainers`. A price that moves with the other side's follows its best plausible
price so far, so that raising and lowering an offer again is no concession.
"""

import itertools
import math
from abc import abstractmethod

from agents.base import Turn
from agents.scripted.bargainers import (
    MARGIN,
    Bargainer,
    Hardliner,
    Range,
    first_price,
    least_addressed,
    plausible,
    refuse_or_leave,
)
from agents.scripted.beliefs import prior_mean_cents
from agents.scripted.situation import (
    can_buy,
    can_gain_as_seller,
    clock,
    is_outraged,
    public_prices,
    reservation_cents,
    scaled,
    their_standing,
    thread_clock,
    traits,
    unanswerable,
    within_reservation,
)
from agents.scripted.talk import speak
from markets.engine import priors
from markets.engine.money import Cents
from markets.engine.observation import Observation, SeenThread
from markets.engine.protocol import AcceptOffer, Action, Leave, MakeOffer, RejectOffer, Role, Say
from markets.engine.state import ThreadStatus

# Schedules -------------------------------------------------------------------------------------


class Exponential(Bargainer):
    """p = R + (P0 - R)(1 - alpha), alpha = exp((1 - x)^beta ln k) (Faratin, Sierra and Jennings 1998).

    The other family of curves in that paper: alpha is k at the first offer and 1 at the last one.
    As in `TimeDependent`, ours keeps a margin at the end.
    """

    K: Range = (0.02, 0.10)
    BETA: Range = (0.5, 3.0)

    def price(self, turn: Turn, thread: SeenThread, product: int) -> float:
        observation, character = turn.observation, traits(turn)
        own = reservation_cents(observation, product)
        start = first_price(observation, thread, product, character)
        k = scaled(character.opening, self.K)
        late = math.pow(1 - clock(observation).x, scaled(character.temper, self.BETA))
        alpha = math.exp(late * math.log(k)) * (1 - scaled(character.margin, MARGIN))
        return own + (start - own) * (1 - alpha)


class ResourceDependent(Bargainer):
    """alpha = k + (1 - k) exp(-resource), the resource being messages left per open buyer.

    After Faratin, Sierra and Jennings (1998), whose resources are time, counterparts or money. A
    buyer's resource is its own messages left. Ours counts the messages after this one, so that the
    last offer has alpha = 1, and keeps a margin at the end.
    """

    K: Range = (0.0, 0.10)

    def price(self, turn: Turn, thread: SeenThread, product: int) -> float:
        observation, character = turn.observation, traits(turn)
        own = reservation_cents(observation, product)
        start = first_price(observation, thread, product, character)
        k = scaled(character.temper, self.K)
        alpha = (k + (1 - k) * math.exp(-messages_per_buyer(observation))) * (1 - scaled(character.margin, MARGIN))
        return own + (start - own) * (1 - alpha)


def messages_per_buyer(observation: Observation) -> float:
    """Own messages that can be expected after this one, per conversation still open."""
    now = clock(observation)
    open_threads = sum(thread.status is ThreadStatus.OPEN for thread in observation.threads)
    return max(0, now.moves - 1 - now.move) / max(1, open_threads)


class Aspiration(Bargainer):
    """Bids what gives it the utility a(t) = r + (1 - r)(1 - t^e) (the rule of negmas' aspiration negotiator).

    Utility is linear from 0 at R to 1 at the best price conceivable: the top of the prior for a
    seller, the lowest cost for a buyer (at least the lowest plausible bid). The exponent is one of
    those named boulware, linear and conceder there; r is our margin. No offer is taken back, not even
    one that the market made for the party.
    """

    EXPONENTS = (4.0, 1.0, 0.25)

    def exponent(self, temper: float) -> float:
        """The hidden exponent of a character."""
        return self.EXPONENTS[min(int(temper * len(self.EXPONENTS)), len(self.EXPONENTS) - 1)]

    def price(self, turn: Turn, thread: SeenThread, product: int) -> float:
        observation, character = turn.observation, traits(turn)
        own = reservation_cents(observation, product)
        reserve = scaled(character.margin, MARGIN)
        passed = math.pow(clock(observation).x, self.exponent(character.temper))
        aspired = reserve + (1 - reserve) * (1 - passed)
        price = own + (best_price(observation, product) - own) * aspired
        last = thread.last(mine=True, product=product)
        if last is None:
            return price
        return min(price, last.price_cents) if observation.role is Role.SELLER else max(price, last.price_cents)


def best_price(observation: Observation, product: int) -> float:
    """The best price that a party can conceive of, as far as the public prior tells."""
    public, own = public_prices(observation, product), reservation_cents(observation, product)
    if observation.role is Role.SELLER:
        return max(own, public.top)
    lowest_cost = priors.low(observation.prior.cost_spec) * observation.prior.scales_cents[product]
    return min(own, max(lowest_cost, public.plausible_bid))


class Anchored(Bargainer):
    """Goes linearly from P0 to v = w * (their first offer) + (1 - w) * (prior mean of their limit).

    Anchoring and insufficient adjustment (Tversky and Kahneman 1974; first offers as anchors:
    Galinsky and Mussweiler 2001), made a rule. The anchor is the first offer as far as it is
    plausible; before there is one, v is the prior mean. R is kept to throughout.
    """

    WEIGHT: Range = (0.3, 0.5)

    def price(self, turn: Turn, thread: SeenThread, product: int) -> float:
        observation, character = turn.observation, traits(turn)
        start = first_price(observation, thread, product, character)
        target = self.target(observation, thread, product, scaled(character.temper, self.WEIGHT))
        return start + (target - start) * clock(observation).x

    def target(self, observation: Observation, thread: SeenThread, product: int, weight: float) -> float:
        """Where the party thinks the price will end, in cents."""
        mean = prior_mean_cents(observation, product)
        theirs = their_prices(observation, thread, product)
        return weight * theirs[0] + (1 - weight) * mean if theirs else mean


class LateHardliner(Hardliner):
    """Names one price and never moves, but takes what does not lose at its last message."""

    def settles(self, turn: Turn) -> bool:
        return clock(turn.observation).at_end


# Imitation -------------------------------------------------------------------------------------


def their_prices(observation: Observation, thread: SeenThread, product: int) -> list[Cents]:
    """The other side's plausible prices on `product`, oldest first."""
    return [plausible(observation, offer) for offer in thread.offers if not offer.mine and offer.product == product]


def their_best_so_far(observation: Observation, thread: SeenThread, product: int) -> list[Cents]:
    """The best of the other side's plausible prices up to each of its offers."""
    best = min if observation.role is Role.BUYER else max
    return list(itertools.accumulate(their_prices(observation, thread, product), best))


class Imitator(Bargainer):
    """Answers the other side's last concession from its own last price.

    The second own offer adds a first step, so that two of a kind do not wait for ever. No price
    lies beyond P0 or R.
    """

    FIRST_STEP: Range = (0.03, 0.08)
    """As a share of the own first offer."""

    @abstractmethod
    def follow(self, turn: Turn, own: Cents, theirs: list[Cents]) -> float:
        """The next price from the own last one and the other side's best so far, oldest first."""

    def price(self, turn: Turn, thread: SeenThread, product: int) -> float:
        observation, character = turn.observation, traits(turn)
        start = first_price(observation, thread, product, character)
        mine = [offer.price_cents for offer in thread.offers if offer.mine and offer.product == product]
        if not mine:
            return start
        theirs = their_best_so_far(observation, thread, product)
        price = self.follow(turn, mine[-1], theirs)
        step = scaled(character.temper, self.FIRST_STEP) * start if len(mine) == 1 else 0.0
        if observation.role is Role.SELLER:
            return min(price - step, start)
        return max(price + step, start)


class RelativeTitForTat(Imitator):
    """own * theirs_before / theirs_now: concedes in the same proportion (relative tit-for-tat)."""

    def follow(self, turn: Turn, own: Cents, theirs: list[Cents]) -> float:
        return own * theirs[-2] / theirs[-1] if len(theirs) > 1 else own


class RandomTitForTat(Imitator):
    """own + (theirs_before - theirs_now) + noise (random absolute tit-for-tat).

    The noise is uniform, up to a hidden share of the own last price to either side.
    """

    NOISE: Range = (0.005, 0.02)

    def follow(self, turn: Turn, own: Cents, theirs: list[Cents]) -> float:
        noise = scaled(traits(turn).margin, self.NOISE) * own * (2 * turn.chance.random() - 1)
        moved = theirs[-2] - theirs[-1] if len(theirs) > 1 else 0
        return own + moved + noise


class AveragedTitForTat(Imitator):
    """Concedes by the mean proportion of the other side's last moves (averaged tit-for-tat).

    The window is hidden. In the paper the whole change over the window is given back at each
    move, which multiplies concessions; ours is the geometric mean.
    """

    WINDOWS = (2, 3, 4)

    def window(self, margin: float) -> int:
        """The hidden number of moves that are averaged over."""
        return self.WINDOWS[min(int(margin * len(self.WINDOWS)), len(self.WINDOWS) - 1)]

    def follow(self, turn: Turn, own: Cents, theirs: list[Cents]) -> float:
        moves = min(self.window(traits(turn).margin), len(theirs) - 1)
        if moves < 1:
            return own
        return own * math.pow(theirs[-1 - moves] / theirs[-1], 1 / moves)


class Micro(Bargainer):
    """Makes its next best bid if the other side has made as many different bids, else repeats (MiCRO).

    De Jonge (2022), who orders all outcomes by utility. Ours orders the prices from P0 to R in as
    many equal steps as the party has messages for them, and settles at the end like all others.
    """

    def price(self, turn: Turn, thread: SeenThread, product: int) -> float:
        observation = turn.observation
        own = reservation_cents(observation, product)
        start = first_price(observation, thread, product, traits(turn))
        mine = {offer.price_cents for offer in thread.offers if offer.mine and offer.product == product}
        theirs = set(their_prices(observation, thread, product))
        step = len(mine) if len(mine) <= len(theirs) else len(mine) - 1
        steps = max(1, thread_clock(observation, thread).moves - 1)
        return start + (own - start) * min(step, steps) / steps


# Chance ----------------------------------------------------------------------------------------


class RandomMoves:
    """Does anything that its position allows and that costs it nothing, all moves alike likely.

    Accepting, rejecting, asking for an offer and naming a price on the profitable side, uniform
    over the whole hundredths of the way from R to the far end of the prior.
    """

    STEPS = 100

    def act(self, turn: Turn) -> Action:
        observation, chance = turn.observation, turn.chance
        writable = [thread for thread in observation.threads if thread.my_move]
        thread = writable[int(chance.random() * len(writable))]
        can_trade = can_buy if observation.role is Role.BUYER else can_gain_as_seller
        products = [index for index in range(len(observation.products)) if can_trade(observation, index)]
        if not products or (observation.role is Role.BUYER and is_outraged(turn, observation)):
            return Leave()
        moves = self._moves(turn, thread, products[int(chance.random() * len(products))], chance.random())
        return moves[int(chance.random() * len(moves))] if moves else refuse_or_leave(least_addressed(writable))

    def _moves(self, turn: Turn, thread: SeenThread, product: int, share: float) -> list[Action]:
        observation = turn.observation
        moves: list[Action] = []
        for offer in their_standing(thread):
            if observation.surplus_cents(product=offer.product, price_cents=offer.price_cents) >= 0:
                moves.append(AcceptOffer(buyer=thread.buyer, offer_id=offer.offer_id))
            moves.append(RejectOffer(buyer=thread.buyer, offer_id=offer.offer_id))
        if not unanswerable(observation):
            talk = speak(observation=observation, action=Say(buyer=thread.buyer), chance=turn.words)
            own = reservation_cents(observation, product)
            far = public_prices(observation, product).top if observation.role is Role.SELLER else 0
            price = own + (far - own) * int(share * self.STEPS + 1) / self.STEPS
            cents = within_reservation(observation, product, price)
            moves += [
                Say(buyer=thread.buyer, talk=talk),
                MakeOffer(buyer=thread.buyer, product=product, price_cents=cents),
            ]
        return moves
