"""Mediocre agents to imitate first: a mix that shows every habit and is good at none.

Here: the demonstrators and the dialogues they leave behind. Not here: imitation (`training.sft`).

Contract: a demonstrator knows what the learner knows. The mix holds no best ladder, no strict
round-robin over a fixed order, no explore-then-commit and no oracle, and its share of the first
best is at most .65 in the calibration game, so that what comes after can be told from imitation.
The same seed gives the same demonstrations.
"""

import random
from collections.abc import Callable, Iterator, Sequence
from itertools import accumulate
from typing import NamedTuple, TypeAlias

from agents import registry
from agents.base import Agent, AgentSpec
from agents.learned.dialogue import Message, NoDialogue
from agents.learned.grammars import Conversation
from markets.engine import priors
from markets.engine.observation import Observation, SeenThread
from markets.engine.scenarios import SellerTurns
from markets.engine.seeds import derive_seed
from markets.engine.state import ThreadStatus
from training.config import Game, Sft
from training.environment import Episode, draw_table

HABITS = ("cycle", "anybody", "one", "highest")
"""What `Sft.habits` are the shares of."""

Answers: TypeAlias = Callable[[Episode], tuple[str, ...]]
"""The words of the next move in an episode."""


class Demonstration(NamedTuple):
    """A finished dialogue and the episode behind it."""

    messages: tuple[Message, ...]
    episode: Episode


class Demonstrator:
    """One character: falling prices between two random ends, with noise, to buyers of its taste.

    By `habits` some go round a random order of the buyers, some pick anybody each time, some stay with one,
    and some turn to whoever bids most.
    """

    def __init__(self, rng: random.Random, buyers: int, habits: Sequence[float]) -> None:
        self._rng = rng
        self._order = rng.sample(range(1, buyers + 1), buyers)
        habit, shares = rng.random() * sum(habits), list(accumulate(habits))
        self._habit = next(name for name, share in zip(HABITS, shares, strict=False) if habit < share)
        self._top = rng.uniform(0.60, 1.20)
        self._bottom = rng.uniform(0.05, 0.50)
        self._noise = rng.uniform(0.0, 0.10)

    def answer(self, observation: Observation, conversation: Conversation) -> tuple[str, ...]:
        """The words of the next move."""
        assert observation.turns_left is not None
        assert isinstance(observation.mechanism, SellerTurns)
        turns = observation.mechanism.turns
        done = turns - observation.turns_left
        threads = [thread for thread in observation.threads if thread.status is ThreadStatus.OPEN and thread.my_move]
        share = self._top + (self._bottom - self._top) * done / max(1, turns - 1) + self._rng.gauss(0, self._noise)
        several = len(observation.products) > 1
        bid = None if several else self._good_bid(observation, threads, self._number(observation, 0, share))
        if bid is not None:
            return conversation.acceptance(bid)
        buyer = self._buyer(threads, done)
        product = self._product(observation, threads, buyer) if several else 0
        number = self._number(observation, product, share)
        if several and (bid := self._good_bid(observation, threads, number)) is not None:
            return conversation.acceptance(bid)
        return conversation.phrase(buyer=buyer, product=product, number=number)

    def _number(self, observation: Observation, product: int, share: float) -> int:
        """So much of the way from the cost to the top of the prior, in hundredths of the list price."""
        seen, prior = observation.products[product], observation.prior
        top = 100 * priors.ladder_top(prior.value_spec) * prior.scales_cents[product] / seen.list_price_cents
        cost = 100 * seen.reservation_value_cents / seen.list_price_cents
        return round(max(cost, min(1.6 * top, cost + (top - cost) * share)))

    def _product(self, observation: Observation, threads: list[SeenThread], buyer: int) -> int:
        """What the buyer last bid on while that is to be had, else anything that is."""
        (thread,) = (thread for thread in threads if thread.buyer == buyer)
        left = [k for k, product in enumerate(observation.products) if product.units_left]
        interest = thread.last(mine=False)
        if interest is not None and interest.product in left and self._rng.random() < 0.8:
            return interest.product
        return self._rng.choice(left)

    def _buyer(self, threads: list[SeenThread], done: int) -> int:
        open_buyers = [thread.buyer for thread in threads]
        if self._habit == "anybody":
            return self._rng.choice(open_buyers)
        if self._habit == "highest":
            bids = {thread.buyer: thread.last(mine=False) for thread in threads}
            return max(open_buyers, key=lambda buyer: (0 if (bid := bids[buyer]) is None else bid.price_cents, -buyer))
        start = done if self._habit == "cycle" else 0
        for k in range(len(self._order)):
            buyer = self._order[(start + k) % len(self._order)]
            if buyer in open_buyers:
                return buyer
        raise ValueError("Nobody is left to write to.")

    def _good_bid(self, observation: Observation, threads: list[SeenThread], number: int) -> int | None:
        """A buyer whose standing bid is at least what would be asked now, or anything at the last turn."""
        last = observation.turns_left == 1
        best: tuple[int, int] | None = None
        for thread in threads:
            for offer in thread.standing:
                gain = observation.surplus_cents(product=offer.product, price_cents=offer.price_cents)
                list_price = observation.products[offer.product].list_price_cents
                wanted = 100 * offer.price_cents >= number * list_price or (last and gain > 0)
                if not offer.mine and wanted and (best is None or offer.price_cents > best[0]):
                    best = offer.price_cents, thread.buyer
        return None if best is None else best[1]


class Imitated:
    """An agent whose moves are put into the learner's words; what has none is left out as walking away."""

    def __init__(self, spec: AgentSpec) -> None:
        self._spec = spec
        self._agent: Agent = spec.build()

    def answer(self, episode: Episode) -> tuple[str, ...]:
        """The words of its next move."""
        action = self._agent.act(episode.turn(self._spec))
        try:
            return episode.conversation.write(episode.observation, action)
        except NoDialogue:
            return ("leave",)


def demonstrate(
    game: Game,
    *,
    episodes: int,
    seed: int,
    habits: Sequence[float] = Sft().habits,
    teachers: Sequence[str] = (),
) -> Iterator[Demonstration]:
    """Play `episodes` games with a new character in each: one of `teachers` where there are any."""
    known = [registry.get(slug) for slug in teachers]
    for k in range(episodes):
        episode = Episode(draw_table(game, derive_seed("demonstration", seed, k)))
        rng = random.Random(derive_seed("demonstrator", seed, k))
        yield Demonstration(_dialogue(episode, _character(rng, episode, habits, known)), episode)


def _character(rng: random.Random, episode: Episode, habits: Sequence[float], known: Sequence[AgentSpec]) -> Answers:
    if known:
        return Imitated(rng.choice(known)).answer
    demonstrator = Demonstrator(rng, episode.scenario.buyers, habits)
    return lambda played: demonstrator.answer(played.observation, played.conversation)


def _dialogue(episode: Episode, answers: Answers) -> tuple[Message, ...]:
    messages = list(episode.opening())
    while not episode.over:
        words = answers(episode)
        messages.append(Message("assistant", words))
        reply = episode.act(words)
        if reply is not None:
            messages.append(reply)
    return tuple(messages)
