"""Many live episodes played by one model, all of them turn by turn in one batch.

Here: generation with a key-value cache that follows the episodes, and the record of it. Not here:
rules or rewards (`training.environment`), losses, anything of TRL.

Contract: the ids in a trajectory are the ids that were sampled or shown, in order, never tokenized
again; the mask is 1 exactly on sampled ids, the stop token included; `turns` numbers the learner's
answers from 0. Sampling is from the untruncated softmax at temperature 1, or greedy; where an episode
limits its answers, over the words that may come next, and `limits` says which those were. The same
weights, episodes and generator state give the same trajectories.
"""

import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from transformers import DynamicCache

from training.environment import Episode
from training.limits import FREE, NOT_OWN, Limits
from training.tokenizer import Codec
from training.watching import Stopwatch


@dataclass
class Trajectory:
    """One episode as the model saw and wrote it."""

    episode: Episode
    prompt_ids: list[int]
    """What is shown before the first answer."""
    completion_ids: list[int] = field(default_factory=list)
    """Everything after that: answers and what is shown between them."""
    mask: list[int] = field(default_factory=list)
    """Per completion id: 1 where the learner wrote it."""
    turns: list[int] = field(default_factory=list)
    """Per completion id: number of the answer it belongs to, -1 where it was shown."""
    logprobs: list[float] = field(default_factory=list)
    """Per completion id: log-probability under the sampling policy, 0 where it was shown."""
    limits: list[int] = field(default_factory=list)
    """Per completion id: row of `training.limits` that it was drawn under, `NOT_OWN` where it was shown."""
    answers: int = 0

    def show(self, ids: Sequence[int]) -> None:
        """Append ids that the table wrote."""
        self.completion_ids += ids
        self.mask += [0] * len(ids)
        self.turns += [-1] * len(ids)
        self.logprobs += [0.0] * len(ids)
        self.limits += [NOT_OWN] * len(ids)

    def write(self, number: int, logprob: float, limit: int = FREE) -> None:
        """Append one id that the learner wrote."""
        self.completion_ids.append(number)
        self.mask.append(1)
        self.turns.append(self.answers)
        self.logprobs.append(logprob)
        self.limits.append(limit)


@torch.no_grad()
def play(
    model: Any,
    codec: Codec,
    episodes: Sequence[Episode],
    *,
    generator: torch.Generator | None,
    watch: Stopwatch | None = None,
    limits: Limits | None = None,
) -> list[Trajectory]:
    """Play every episode to its end; `generator` draws the answers, None takes the likeliest.

    `limits` numbers what limited episodes allow; whoever scores the answers later brings its own.
    """
    was_training = model.training
    model.eval()
    trajectories = [Trajectory(episode, codec.shown(episode.opening())) for episode in episodes]
    batch = _Batch(model, codec, len(trajectories))
    limits = limits or Limits(codec)
    watch = watch or Stopwatch()
    live = list(trajectories)
    unread = [trajectory.prompt_ids for trajectory in live]
    while live:
        unread, live = _one_turn(batch, live, unread, codec, generator, watch, limits)
    model.train(was_training)
    return trajectories


def _one_turn(
    batch: "_Batch",
    live: list[Trajectory],
    unread: list[list[int]],
    codec: Codec,
    generator: torch.Generator | None,
    watch: Stopwatch,
    limits: Limits,
) -> tuple[list[list[int]], list[Trajectory]]:
    """One answer of every live episode and the table's reply; returns what goes on."""
    logits = batch.feed(unread)  # (B, V)
    answers: list[list[int]] = [[] for _ in live]
    open_rows = [True] * len(live)
    unfed: list[list[int]] = [[] for _ in live]
    for k in range(codec.grammar.longest_answer):
        if not any(open_rows):
            break
        rows = [
            limits.number(trajectory.episode.allowed(codec.words(answers[row])))
            if open_rows[row] and trajectory.episode.limited
            else FREE
            for row, trajectory in enumerate(live)
        ]
        if all(limits.ends(number) for number, still in zip(rows, open_rows, strict=True) if still):
            chosen, logprobs = [codec.end] * len(live), [0.0] * len(live)  # Nothing is left to decide.
        else:
            if k:
                logits = batch.feed([own if still else [] for own, still in zip(unfed, open_rows, strict=True)])
                unfed = [[] if still else own for own, still in zip(unfed, open_rows, strict=True)]
            chosen, logprobs = _choose(limits.masked(logits, torch.tensor(rows, device=logits.device)), generator)
        for row, trajectory in enumerate(live):
            if open_rows[row]:
                answers[row].append(chosen[row])
                unfed[row].append(chosen[row])
                trajectory.write(chosen[row], logprobs[row], rows[row])
                open_rows[row] = chosen[row] != codec.end
    keep, following = [], []
    started = time.perf_counter()
    for row, trajectory in enumerate(live):
        trajectory.answers += 1
        message = trajectory.episode.act(codec.answer(answers[row]))
        if message is not None:
            shown = codec.shown([message])
            trajectory.show(shown)
            keep.append(row)
            following.append([*unfed[row], *shown])
    watch.environment += time.perf_counter() - started
    if len(keep) < len(live):
        batch.keep(keep)
    return following, [live[row] for row in keep]


def _choose(logits: torch.Tensor, generator: torch.Generator | None) -> tuple[list[int], list[float]]:
    logprobs = torch.log_softmax(logits.float(), dim=-1)  # (B, V)
    if generator is None:
        chosen = logprobs.argmax(dim=-1, keepdim=True)
    else:
        chosen = torch.multinomial(logprobs.exp(), 1, generator=generator)
    return chosen[:, 0].tolist(), logprobs.gather(1, chosen)[:, 0].tolist()


class _Batch:
    """The cache of all live rows; ids arrive ragged and are padded on the left of each feed."""

    def __init__(self, model: Any, codec: Codec, rows: int) -> None:
        self._model = model
        self._pad = codec.pad
        self._cache: Any = DynamicCache(config=model.config)
        self._device = model.device
        self._mask = torch.zeros(rows, 0, dtype=torch.long, device=self._device)  # (B, L)

    def feed(self, ragged: Sequence[Sequence[int]]) -> torch.Tensor:
        """Append ids to every row (none to some); the logits after the last column, (B, V)."""
        width = max(len(ids) for ids in ragged)
        ids = torch.tensor([[self._pad] * (width - len(own)) + list(own) for own in ragged], device=self._device)
        fresh = torch.tensor([[0] * (width - len(own)) + [1] * len(own) for own in ragged], device=self._device)
        before = self._mask.sum(dim=1, keepdim=True)
        positions = (before + fresh.cumsum(dim=1) - 1).clamp(min=0)
        self._mask = torch.cat([self._mask, fresh], dim=1)
        output = self._model(
            input_ids=ids,
            attention_mask=self._mask,
            position_ids=positions,
            cache=self._cache,
            use_cache=True,
            logits_to_keep=1,
        )
        logits: torch.Tensor = output.logits[:, -1]
        return logits

    def keep(self, rows: Sequence[int]) -> None:
        """Drop all other rows."""
        if not rows:
            return
        index = torch.tensor(rows, device=self._device)
        self._cache.batch_select_indices(index)
        self._mask = self._mask[index]
