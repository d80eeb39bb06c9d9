"""Which words may come next where a learner's answers are limited, as rows of a table over the vocabulary.

Here: the table, and scores under it. Not here: what may be written (`Conversation.allowed` of the agents), who
samples (`training.sampling`), the loss (`training.rollout`).

Contract: row 0 allows every word; a row never changes once it has a number, so that what was sampled can be
scored later. A word that is not allowed has no chance and no gradient.
"""

from collections.abc import Sequence

import torch

from agents.learned.dialogue import END
from training.tokenizer import Codec

NO_CHANCE = -1e9
"""The score of a word that is not allowed; finite, so that nothing times it is 0 and not undefined."""
FREE = 0
"""The row that allows every word."""
NOT_OWN = -1
"""Stands for a row where the learner did not write."""


class Limits:
    """All sets of allowed words that came up so far, each with a number."""

    def __init__(self, codec: Codec) -> None:
        self._codec = codec
        words = len(codec.grammar.words)
        self._number_of: dict[tuple[str, ...], int] = {}
        self._table = torch.ones(64, words, dtype=torch.bool)
        self._used = 1

    def number(self, words: Sequence[str]) -> int:
        """The row of a set of words; of no words it is the end marker alone."""
        key = tuple(words)
        found = self._number_of.get(key)
        if found is None:
            if self._used == len(self._table):
                self._table = torch.cat([self._table, torch.ones_like(self._table)])
            found = self._number_of[key] = self._used
            row = self._table[found]
            row[:] = False
            row[self._codec.ids(key or (END,))] = True
            self._used += 1
        return found

    def ends(self, number: int) -> bool:
        """Whether the row allows the end marker alone."""
        return number == self._number_of.get(())

    def masked(self, logits: torch.Tensor, numbers: torch.Tensor) -> torch.Tensor:
        """Scores (R, V) under the rows `numbers` (R,)."""
        if not bool((numbers > FREE).any()):
            return logits
        allowed = self._table[: self._used].to(logits.device)[numbers.clamp(min=FREE)]
        return logits.masked_fill(~allowed, NO_CHANCE)
