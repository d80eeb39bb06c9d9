"""What a model has read, kept: the prompt of a turn is that of the turn before and a few lines more.

Here: keys and values of prompts, found again by their first tokens, and a cache that grows in place. Not
here: drawing answers (`playing`). On a processor reading is most of the work of judging.

Contract: exact up to rounding, for as long as the weights stay as they are. Whoever changes them takes
another memory.
"""

from collections.abc import Sequence
from typing import Any

import torch
from transformers import DynamicCache
from transformers.cache_utils import DynamicLayer

LEAST_SHARED = 32
"""Tokens that two prompts must begin with alike for one to help the other."""
ROOM = 64
"""Tokens by which a cache grows at a time."""


class Roomy(DynamicLayer):
    """A cache layer that writes into room taken ahead, where others copy everything for every token."""

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._all: list[torch.Tensor] = []

    def update(self, key_states: Any, value_states: Any, *_: Any, **__: Any) -> tuple[torch.Tensor, torch.Tensor]:
        """Append; everything so far."""
        if not self.is_initialized:
            self.lazy_initialization(key_states, value_states)
        before = self.get_seq_length()
        after = before + key_states.shape[-2]
        if not self._all or after > self._all[0].shape[-2]:
            batch, heads, _, size = key_states.shape
            fresh = [key_states.new_empty(batch, heads, after + ROOM, size) for _ in range(2)]
            if before:
                for to, old in zip(fresh, (self.keys, self.values), strict=True):
                    to[:, :, :before] = old
            self._all = fresh
        for to, new in zip(self._all, (key_states, value_states), strict=True):
            to[:, :, before:after] = new
        self._show(after)
        return self.keys, self.values

    def batch_select_indices(self, indices: torch.Tensor) -> None:
        """Keep these rows."""
        length = self.get_seq_length()
        self._all = [whole[indices] for whole in self._all]
        self._show(length)

    def _show(self, length: int) -> None:
        self.keys, self.values = (whole[:, :, :length] for whole in self._all)


class _Read:
    """One prompt that was read."""

    def __init__(self, ids: list[int], layers: list[tuple[torch.Tensor, torch.Tensor]]) -> None:
        self.ids = ids
        self.layers = layers


class Memory:
    """Prompts that were read lately."""

    def __init__(self, model: Any, *, most: int) -> None:
        self._model = model
        self._most = most
        self._kept: list[_Read] = []

    @torch.no_grad()
    def read(self, prompts: Sequence[list[int]]) -> tuple[Any, torch.Tensor]:
        """A cache of all prompts, shorter ones moved to the right, and the scores of what comes after each."""
        read, scores = [], []
        for prompt in prompts:
            known, score = self._one(prompt)
            read.append(known)
            scores.append(score)
        cache: Any = DynamicCache(config=self._model.config)
        cache.layers = [self._stacked([each.layers[k] for each in read]) for k in range(len(read[0].layers))]
        return cache, torch.cat(scores)

    def _one(self, prompt: list[int]) -> tuple[_Read, torch.Tensor]:
        shared, known = max(
            ((_shared(each.ids, prompt), each) for each in self._kept), key=lambda found: found[0], default=(0, None)
        )
        shared = min(shared, len(prompt) - 1)  # The last token is read anew, for its scores.
        device = self._model.device
        cache: Any = DynamicCache(config=self._model.config)
        if known is None or shared < LEAST_SHARED:
            shared, known = 0, None
        else:
            for k, (keys, values) in enumerate(known.layers):
                cache.update(keys[:, :, :shared], values[:, :, :shared], k)
        output = self._model(
            input_ids=torch.tensor([prompt[shared:]], device=device),
            position_ids=torch.arange(shared, len(prompt), device=device)[None],
            cache=cache,
            use_cache=True,
            logits_to_keep=1,
        )
        fresh = _Read(prompt, [(layer.keys, layer.values) for layer in cache.layers])
        if known is not None and shared > len(known.ids) // 2:  # The same game, further on.
            self._kept.remove(known)
        self._kept = [*self._kept, fresh][-self._most :]
        return fresh, output.logits[:, -1]

    def _stacked(self, rows: Sequence[tuple[torch.Tensor, torch.Tensor]]) -> Roomy:
        width = max(keys.shape[-2] for keys, _values in rows)
        layer = Roomy()
        both = []
        for which in range(2):
            first = rows[0][which]
            whole = first.new_zeros(len(rows), first.shape[1], width, first.shape[3])
            for place, row in enumerate(rows):
                whole[place, :, width - row[which].shape[-2] :] = row[which][0]
            both.append(whole)
        layer.update(*both)
        return layer


def _shared(one: list[int], other: list[int]) -> int:
    """Tokens that both begin with."""
    low, high = 0, min(len(one), len(other))
    while low < high:  # Slices compare fast; the answer lies where they stop being alike.
        middle = (low + high + 1) // 2
        if one[low:middle] == other[low:middle]:
            low = middle
        else:
            high = middle - 1
    return low
