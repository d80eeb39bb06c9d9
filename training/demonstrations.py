"""Mediocre sellers to imitate first: a mix that shows every habit and is good at none.

Here: the demonstrators and the dialogues they leave behind. Not here: imitation (`training.sft`).

Contract: a demonstrator knows what the learner knows. The mix holds no best ladder, no strict
round-robin over a fixed order, no explore-then-commit and no oracle, and its share of the first
best is at most .65 in the calibration game, so that what comes after can be told from imitation.
The same seed gives the same demonstrations.
"""

import random
from collections.abc import Iterator
from typing import NamedTuple

from agents.learned.dialogue import Message, buyer_word
from markets.engine.observation import Observation, SeenThread
from markets.engine.scenarios import SellerTurns
from markets.engine.seeds import derive_seed
from markets.engine.state import ThreadStatus
from training.config import Game, Sft
from training.environment import Episode, draw_table


class Demonstration(NamedTuple):
    """A finished dialogue and the episode behind it."""

    messages: tuple[Message, ...]
    episode: Episode


class Demonstrator:
    """One character: falling prices between two random ends, with noise, to buyers of its taste.

    By `habits` some go round a random order of the buyers, some pick anybody each time, the rest stay with one.
    """

    def __init__(self, rng: random.Random, buyers: int, habits: tuple[float, float, float]) -> None:
        self._rng = rng
        self._order = rng.sample(range(1, buyers + 1), buyers)
        habit, (cycle, anybody, _) = rng.random() * sum(habits), habits
        self._habit = "cycle" if habit < cycle else "anybody" if habit < cycle + anybody else "one"
        self._top = rng.uniform(0.60, 1.20)
        self._bottom = rng.uniform(0.05, 0.50)
        self._noise = rng.uniform(0.0, 0.10)

    def answer(self, observation: Observation) -> tuple[str, ...]:
        """The words of the next move."""
        assert observation.turns_left is not None
        assert isinstance(observation.mechanism, SellerTurns)
        turns = observation.mechanism.turns
        done = turns - observation.turns_left
        prior_top = 100
        cost = 100 * observation.products[0].reservation_value_cents / observation.products[0].list_price_cents
        share = self._top + (self._bottom - self._top) * done / max(1, turns - 1) + self._rng.gauss(0, self._noise)
        number = round(max(cost, min(160.0, cost + (prior_top - cost) * share)))
        threads = [thread for thread in observation.threads if thread.status is ThreadStatus.OPEN and thread.my_move]
        bid = self._good_bid(observation, threads, number)
        if bid is not None:
            return "accept", buyer_word(bid)
        return "ask", buyer_word(self._buyer(threads, done)), str(number)

    def _buyer(self, threads: list[SeenThread], done: int) -> int:
        open_buyers = [thread.buyer for thread in threads]
        if self._habit == "anybody":
            return self._rng.choice(open_buyers)
        start = done if self._habit == "cycle" else 0
        for k in range(len(self._order)):
            buyer = self._order[(start + k) % len(self._order)]
            if buyer in open_buyers:
                return buyer
        raise ValueError("Nobody is left to write to.")

    def _good_bid(self, observation: Observation, threads: list[SeenThread], number: int) -> int | None:
        """A buyer whose standing bid is at least what would be asked now, or anything at the last turn."""
        last = observation.turns_left == 1
        list_price = observation.products[0].list_price_cents
        best: tuple[int, int] | None = None
        for thread in threads:
            for offer in thread.standing:
                gain = observation.surplus_cents(product=0, price_cents=offer.price_cents)
                wanted = 100 * offer.price_cents >= number * list_price or (last and gain > 0)
                if not offer.mine and wanted and (best is None or offer.price_cents > best[0]):
                    best = offer.price_cents, thread.buyer
        return None if best is None else best[1]


def demonstrate(
    game: Game, *, episodes: int, seed: int, habits: tuple[float, float, float] = Sft().habits
) -> Iterator[Demonstration]:
    """Play `episodes` games with a new character in each."""
    for k in range(episodes):
        episode = Episode(draw_table(game, derive_seed("demonstration", seed, k)))
        rng = random.Random(derive_seed("demonstrator", seed, k))
        demonstrator = Demonstrator(rng, episode.scenario.buyers, habits)
        messages = list(episode.opening())
        while not episode.over:
            words = demonstrator.answer(episode.observation)
            messages.append(Message("assistant", words))
            reply = episode.act(words)
            if reply is not None:
                messages.append(reply)
        yield Demonstration(tuple(messages), episode)
