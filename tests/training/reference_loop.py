"""The oracle: group-relative policy optimisation in plain PyTorch, one sequence at a time.

No TRL, no padding, no batching, no cache: each episode is scored by one forward pass over its own
ids. What `training.rollout` and TRL compute must equal this; when they differ, they are wrong.

The loss, per rollout of episodes i with learner tokens k in turn t(k):
  A_ik = R_i - mean of R_j over the members j of i's group that had a turn t(k)
  L = - mean over all learner tokens of min(r_ik A_ik, clip(r_ik, 1 - c, 1 + c) A_ik) - e * mean entropy
with r_ik the probability ratio to the policy that played. AdamW, gradient norm clipped at 1, the
rate falls linearly, `updates` steps on each rollout.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch.nn.utils import clip_grad_norm_


@dataclass(frozen=True)
class Played:
    """One episode: its ids, which of them the learner wrote, in which turn, and what it earned."""

    prompt_ids: list[int]
    completion_ids: list[int]
    mask: list[int]
    turns: list[int]
    reward: float
    allowed: list[list[int] | None] | None = None
    """Per completion id: the ids that it was drawn from; None for all of them."""


@dataclass(frozen=True)
class Settings:
    """The numbers of a run."""

    group: int
    clip: float
    entropy_bonus: float
    entropy_end: float
    learning_rate: float
    final_learning_rate: float
    steps: int
    per_turn: bool = True


def advantages(episodes: Sequence[Played], settings: Settings) -> list[list[float]]:
    """A_ik for every completion token; 0 for what the learner did not write."""
    rows = []
    for i, own in enumerate(episodes):
        first = i // settings.group * settings.group
        group = episodes[first : first + settings.group]
        row = []
        for turn in own.turns:
            if turn < 0:
                row.append(0.0)
                continue
            peers = [peer.reward for peer in group if not settings.per_turn or turn in peer.turns]
            row.append(own.reward - sum(peers) / len(peers))
        rows.append(row)
    return rows


def score(model: torch.nn.Module, episode: Played) -> tuple[torch.Tensor, torch.Tensor]:
    """(log-probability, entropy) of every completion token, each (T,)."""
    ids = torch.tensor([episode.prompt_ids + episode.completion_ids])
    logits = model(input_ids=ids).logits[0, :-1]
    start = len(episode.prompt_ids) - 1
    for k, only in enumerate(episode.allowed or ()):
        if only is not None:
            others = [n for n in range(logits.shape[-1]) if n not in set(only)]
            logits[start + k, others] = -1e9
    logprobs = torch.log_softmax(logits, dim=-1)
    chosen = logprobs.gather(1, ids[0, 1:, None])[:, 0]
    entropy = -(logprobs.exp() * logprobs).sum(dim=-1)
    return chosen[start:], entropy[start:]


def loss(
    model: torch.nn.Module,
    episodes: Sequence[Played],
    old: Sequence[torch.Tensor],
    settings: Settings,
    *,
    step: int,
) -> torch.Tensor:
    """L at optimiser step `step`."""
    gains, entropies = torch.zeros(()), torch.zeros(())
    count = sum(sum(episode.mask) for episode in episodes)
    for episode, before, row in zip(episodes, old, advantages(episodes, settings), strict=True):
        logprobs, entropy = score(model, episode)
        own = torch.tensor(episode.mask, dtype=torch.float32)
        advantage = torch.tensor(row)
        ratio = torch.exp(logprobs - before)
        clipped = ratio.clamp(1 - settings.clip, 1 + settings.clip)
        gains = gains + (torch.minimum(ratio * advantage, clipped * advantage) * own).sum()
        entropies = entropies + (entropy * own).sum()
    bonus = settings.entropy_bonus * max(0.0, 1 - step / settings.entropy_end)
    return -gains / count - bonus * entropies / count


def train(
    model: torch.nn.Module, rollouts: Sequence[Sequence[Played]], settings: Settings, *, updates: int
) -> list[float]:
    """Learn from rollouts that were played beforehand or on demand; the loss of every update."""
    optimizer = torch.optim.AdamW(model.parameters(), lr=settings.learning_rate, weight_decay=0.0)
    losses, step = [], 0
    for episodes in rollouts:
        with torch.no_grad():
            old = [score(model, episode)[0] for episode in episodes]
        for _ in range(updates):
            left = 1 - step / settings.steps
            span = settings.learning_rate - settings.final_learning_rate
            optimizer.param_groups[0]["lr"] = settings.final_learning_rate + span * left
            optimizer.zero_grad()
            value = loss(model, episodes, old, settings, step=step)
            value.backward()
            clip_grad_norm_(model.parameters(), 1.0)
            optimizer.step()
            losses.append(value.item())
            step += 1
    return losses
