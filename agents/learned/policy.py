"""A trained seller on a chair: its numbers come from the network, its talk from templates.

Here: from a turn to ids, from scores to a legal answer. Not here: the network (`network`), the
words (`dialogue`), finding checkpoints (`published`).

Contract: memoryless like every agent: the dialogue is rebuilt from the turn's observation and own
past, and what the network remembers of a prefix is only kept to save time. Answers are limited to
those the dialogue allows at this table (known words in order, open threads, standing bids) and to
prices that do not lose money, so a move can always be read and made; whether a policy needs that is
measured in training, where nothing limits it. Greedy takes the likeliest answer, sampled draws at temperature 1 from the turn's own stream.
"""

from collections import OrderedDict
from collections.abc import Sequence

import numpy as np

from agents.base import Turn
from agents.learned import dialogue
from agents.learned.dialogue import ASSISTANT, END, HIGHEST_NUMBER, SYSTEM, USER, Message
from agents.learned.network import Array, CheckpointError, Memory, Network
from markets.engine.observation import Observation
from markets.engine.protocol import AcceptOffer, Action

KEPT_MEMORIES = 2_000

_ROLE_WORDS = {"system": SYSTEM, "user": USER, "assistant": ASSISTANT}
_NUMBERS = tuple(str(number) for number in range(HIGHEST_NUMBER + 1))


class Policy:
    """An agent of one checkpoint; one object may sit on many chairs."""

    def __init__(self, network: Network, *, sampled: bool) -> None:
        words = dialogue.vocabulary()
        if network.words != len(words):
            raise CheckpointError(f"The checkpoint knows {network.words} words, the dialogue has {len(words)}.")
        self._network = network
        self._sampled = sampled
        self._id_of = {word: number for number, word in enumerate(words)}
        self._memories: OrderedDict[tuple[int, ...], Memory] = OrderedDict()

    def act(self, turn: Turn) -> Action:
        """The move that the network's answer stands for."""
        observation = turn.observation
        memory = self._memory(dialogue.transcript(observation, turn.past))
        chance = turn.chance
        answer: list[str] = []
        while True:
            allowed = self._allowed(observation, answer)
            if not allowed:
                break
            word = self._choose(memory.logits, allowed, chance.random() if self._sampled else None)
            if word == END:
                break
            answer.append(word)
            memory = self._network.read((self._id_of[word],), memory)
        action = dialogue.read(observation, answer)
        assert action is not None, answer
        return action

    def _memory(self, messages: Sequence[Message]) -> Memory:
        """What the network remembers when it is about to answer; read on from the longest kept prefix."""
        chunks = [self._ids(message) for message in messages]
        ids = tuple(number for chunk in chunks for number in chunk)
        memory, known = None, 0
        for cut in range(len(chunks), 0, -1):
            prefix = tuple(number for chunk in chunks[:cut] for number in chunk)
            if prefix in self._memories:
                memory, known = self._memories[prefix], len(prefix)
                self._memories.move_to_end(prefix)
                break
        if known < len(ids):
            memory = self._network.read(ids[known:], memory)
            self._memories[ids] = memory
            while len(self._memories) > KEPT_MEMORIES:
                self._memories.popitem(last=False)
        return self._network.read((self._id_of[ASSISTANT],), memory)

    def _ids(self, message: Message) -> tuple[int, ...]:
        return tuple(self._id_of[word] for word in (_ROLE_WORDS[message.role], *message.words, END))

    def _allowed(self, observation: Observation, answer: Sequence[str]) -> Sequence[str]:
        """Words that may come next; none when the answer can only end."""
        cost_cents = observation.products[0].reservation_value_cents
        open_threads = [thread for thread in observation.threads if thread.my_move]
        bidding = [
            thread
            for thread in open_threads
            if isinstance(
                taken := dialogue.read(observation, ("accept", dialogue.buyer_word(thread.buyer))), AcceptOffer
            )
            and thread.offers[taken.offer_id - 1].price_cents >= cost_cents
        ]
        match list(answer):
            case []:
                can_ask = dialogue.price_cents(observation, _NUMBERS[-1]) >= cost_cents
                return [*(["ask"] if can_ask else []), "leave", *(["accept"] if bidding else [])]
            case ["ask"]:
                return [dialogue.buyer_word(thread.buyer) for thread in open_threads]
            case ["accept"]:
                return [dialogue.buyer_word(thread.buyer) for thread in bidding]
            case ["ask", _]:
                return [word for word in _NUMBERS if dialogue.price_cents(observation, word) >= cost_cents]
            case _:
                return ()

    def _choose(self, logits: Array, allowed: Sequence[str], draw: float | None) -> str:
        scores = logits[[self._id_of[word] for word in allowed]].astype(np.float64)
        if draw is None:
            return allowed[int(scores.argmax())]
        chances = np.exp(scores - scores.max())
        reached = np.cumsum(chances) / chances.sum()
        return allowed[min(int(np.searchsorted(reached, draw, side="right")), len(allowed) - 1)]
