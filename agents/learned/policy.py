"""A trained agent on a chair: its numbers come from the network, its talk from templates.

Here: from a turn to ids, from scores to a legal answer. Not here: the network (`network`), the
words (`dialogue`, `ledger`), finding checkpoints (`published`).

Contract: memoryless like every agent: the dialogue is rebuilt from the turn's observation and own
past, and what the network remembers of a prefix is only kept to save time. Answers are limited to
those its grammar allows at this table (known words in order, open threads, standing bids) and to
prices that do not lose money, so a move can always be read and made; whether a policy needs that is
measured in training, where nothing limits it. Greedy takes the likeliest answer, sampled draws at temperature 1 from the turn's own stream.
"""

from collections import OrderedDict
from collections.abc import Sequence

import numpy as np

from agents.base import Turn
from agents.learned.dialogue import ASSISTANT, END, SYSTEM, USER, Message
from agents.learned.grammars import LADDER, Grammar
from agents.learned.network import Array, CheckpointError, Memory, Network
from markets.engine.protocol import Action

KEPT_MEMORIES = 2_000

_ROLE_WORDS = {"system": SYSTEM, "user": USER, "assistant": ASSISTANT}


class Policy:
    """An agent of one checkpoint; one object may sit on many chairs."""

    def __init__(self, network: Network, *, sampled: bool, grammar: Grammar = LADDER) -> None:
        words = grammar.words
        if network.words != len(words):
            raise CheckpointError(f"The checkpoint knows {network.words} words, the dialogue has {len(words)}.")
        self._network = network
        self._sampled = sampled
        self._grammar = grammar
        self._id_of = {word: number for number, word in enumerate(words)}
        self._memories: OrderedDict[tuple[int, ...], Memory] = OrderedDict()

    @property
    def is_sampled(self) -> bool:
        """Whether it draws its moves."""
        return self._sampled

    def act(self, turn: Turn) -> Action:
        """The move that the network's answer stands for."""
        observation = turn.observation
        conversation, messages = self._grammar.rebuild(observation, turn.past)
        memory = self._memory(messages)
        chance = turn.chance
        answer: list[str] = []
        while True:
            allowed = conversation.allowed(observation, answer)
            if not allowed:
                break
            word = self._choose(memory.logits, allowed, chance.random() if self._sampled else None)
            if word == END:
                break
            answer.append(word)
            memory = self._network.read((self._id_of[word],), memory)
        action = conversation.read(observation, answer)
        assert action is not None, answer
        return action

    def log_probability(self, turn: Turn, action: Action) -> float | None:
        """Log of the chance that the move has when moves are drawn; None for a move that it cannot make there."""
        observation = turn.observation
        conversation, messages = self._grammar.rebuild(observation, turn.past)
        memory = self._memory(messages)
        words = conversation.write(observation, action)
        answer: list[str] = []
        total = 0.0
        for word in (*words, END):
            allowed = conversation.allowed(observation, answer)
            if not allowed and word == END:
                break
            if word not in allowed:
                return None
            scores = memory.logits[[self._id_of[each] for each in allowed]].astype(np.float64)
            highest = scores.max()
            total += float(scores[list(allowed).index(word)] - highest - np.log(np.exp(scores - highest).sum()))
            if word != END:
                answer.append(word)
                memory = self._network.read((self._id_of[word],), memory)
        return total

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

    def _choose(self, logits: Array, allowed: Sequence[str], draw: float | None) -> str:
        scores = logits[[self._id_of[word] for word in allowed]].astype(np.float64)
        if draw is None:
            return allowed[int(scores.argmax())]
        chances = np.exp(scores - scores.max())
        reached = np.cumsum(chances) / chances.sum()
        return allowed[min(int(np.searchsorted(reached, draw, side="right")), len(allowed) - 1)]
