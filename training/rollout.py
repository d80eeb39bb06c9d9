"""The one adapter between our episodes and TRL's GRPO trainer.

Here: the rollout function that TRL calls, the turn-level baseline, the falling entropy bonus and
the logged importance ratio. Not here: how episodes are played (`training.sampling`), the loss
itself (TRL's), the story of a run (`training.grpo`).

TRL hands over prompts repeated `num_generations` times, group after group; a prompt is the number
of a game in the `train` split. It gets ids, a mask of the learner's tokens and the rewards of the
event logs. Advantages leave as (B, T): TRL accepts them in this shape from a subclass.

Contract: one process; groups are whole. Rollouts are drawn from a generator that is derived from
the run's seed and the optimiser step, so that a resumed run draws what an unbroken one would.
"""

import time
from collections.abc import Sequence
from typing import Any

import torch
from torch.optim.lr_scheduler import LambdaLR
from trl.trainer.grpo_trainer import GRPOTrainer

from markets.engine import rewards
from markets.engine.seeds import derive_seed
from training import guards, watching
from training.config import RunConfig
from training.environment import Episode, draw_table
from training.limits import NOT_OWN, Limits
from training.sampling import Trajectory, play
from training.tokenizer import Codec

ROWS_SCORED_TOGETHER = 64
"""Rows of one forward pass when episodes are scored; sorted by length, they need little padding."""


def turn_advantages(
    episode_rewards: Sequence[float], turns: Sequence[Sequence[int]], *, group: int, per_turn: bool
) -> list[list[float]]:
    """Advantage of every token: reward minus its baseline, 0 where the learner did not write.

    Per turn the baseline is the mean reward of the group members that still had this turn, the
    member itself included; else it is the mean of the group. No division by the spread.
    """
    advantages: list[list[float]] = []
    for start in range(0, len(episode_rewards), group):
        own_rewards = episode_rewards[start : start + group]
        own_turns = turns[start : start + group]
        lengths = [max(tokens) + 1 for tokens in own_turns]
        baselines = []
        for turn in range(max(lengths)):
            alive = [r for r, length in zip(own_rewards, lengths, strict=True) if length > turn or not per_turn]
            baselines.append(sum(alive) / len(alive))
        for reward, tokens in zip(own_rewards, own_turns, strict=True):
            advantages.append([reward - baselines[turn] if turn >= 0 else 0.0 for turn in tokens])
    return advantages


def _stretch(config: RunConfig, step: int) -> tuple[float, float, float]:
    """(step, steps, scale) of the stretch between two restarts that an optimiser step lies in."""
    grpo = config.grpo
    start, scale = 0, 1.0
    for restart in grpo.restarts:
        if step < restart * grpo.updates:
            return step - start, restart * grpo.updates - start, scale
        start, scale = restart * grpo.updates, scale / 2
    return step - start, grpo.rollouts * grpo.updates - start, scale


def entropy_coefficient(config: RunConfig, step: int) -> float:
    """The entropy bonus at an optimiser step: falls linearly to 0 at `entropy_until` of the stretch."""
    done, steps, scale = _stretch(config, step)
    end = config.grpo.entropy_until * steps
    return scale * config.grpo.entropy_bonus * max(0.0, 1 - done / end) if end > 0 else 0.0


def learning_rate(config: RunConfig, step: int) -> float:
    """The rate at an optimiser step: falls linearly to `final_learning_rate` at the end of the stretch, after it has
    risen over the first rollouts of the run."""
    done, steps, scale = _stretch(config, step)
    final = config.grpo.final_learning_rate
    rising = min(1.0, (step + 1) / (config.grpo.warmup * config.grpo.updates)) if config.grpo.warmup else 1.0
    return rising * (final + (scale * config.grpo.learning_rate - final) * max(0.0, 1 - done / steps))


def episode_reward(completions: Sequence[Any], episode_rewards: Sequence[float], **_: Any) -> list[float]:
    """TRL's reward function: the engine's reward of each episode, computed when it ended."""
    return list(episode_rewards)


class Rollouts:
    """What TRL calls as `rollout_func`."""

    def __init__(self, config: RunConfig, codec: Codec) -> None:
        self._config = config
        self._codec = codec
        self.limits = Limits(codec)
        """What may come next in limited games, for whoever scores what was drawn."""
        self._reward = rewards.by_name(config.game.reward, role=config.game.role)
        self.latest: list[Trajectory] = []
        """The trajectories of the last call, for transcripts and figures."""
        self.rewards: list[float] = []
        """What they were paid."""
        self.figures: dict[str, Any] = {}
        """What is logged of them (`training.watching`)."""
        self.seconds: dict[str, float] = {}
        """What the last call spent on generation and on the games."""
        self._spread = guards.Spread()

    @property
    def mean_reward(self) -> float:
        """Mean reward of the last call's episodes."""
        return sum(t.episode.reward(self._reward) for t in self.latest) / max(1, len(self.latest))

    def __call__(self, prompts: list[str], trainer: Any) -> dict[str, list[Any]]:
        """Play one episode per prompt. Groups share a drawn table."""
        tables = {
            number: draw_table(self._config.game, derive_seed("train", self._config.seed, int(number)))
            for number in dict.fromkeys(prompts)
        }
        seed = derive_seed("rollout", self._config.seed, trainer.state.global_step)
        generator = torch.Generator(device=trainer.model.device).manual_seed(seed % 2**63)
        model = trainer.accelerator.unwrap_model(trainer.model)
        started, watch = time.perf_counter(), watching.Stopwatch()
        episodes = [Episode(tables[number]) for number in prompts]
        watch.environment += time.perf_counter() - started
        self.latest = play(model, self._codec, episodes, generator=generator, watch=watch, limits=self.limits)
        trainer.limits = self.limits
        trainer.written_under = padded_limits([t.limits for t in self.latest]).to(trainer.model.device)
        seconds = time.perf_counter() - started
        self.seconds = {"generation": seconds - watch.environment, "environment": watch.environment}
        episode_rewards = self.rewards = [episode.reward(self._reward) for episode in episodes]
        self.figures = watching.figures(
            episodes, episode_rewards, group=self._config.grpo.group, role=self._config.game.role
        ) | {
            "tokens": sum(sum(t.mask) for t in self.latest),
            "tokens_seconds": seconds,
        }
        self._spread.look(self.figures["zero_spread_groups"], reward=sum(episode_rewards) / len(episode_rewards))
        return {
            "prompt_ids": [t.prompt_ids for t in self.latest],
            "completion_ids": [t.completion_ids for t in self.latest],
            "logprobs": [t.logprobs for t in self.latest],
            "env_mask": [t.mask for t in self.latest],
            "token_turns": [t.turns for t in self.latest],
            "token_limits": [t.limits for t in self.latest],
            "episode_rewards": episode_rewards,
        }


def padded_limits(rows: Sequence[Sequence[int]]) -> torch.Tensor:
    """(B, T) of rows of `Limits`, `NOT_OWN` where the learner did not write."""
    width = max(map(len, rows))
    return torch.tensor([[*row, *[NOT_OWN] * (width - len(row))] for row in rows])


class EpisodeTrainer(GRPOTrainer):
    """TRL's trainer with advantages per turn and an entropy bonus that falls with the run."""

    def __init__(self, *, config: RunConfig, **arguments: Any) -> None:
        self._run = config
        self.reference: Any = None
        """The imitator that learning started from; now and then the distance to it is logged."""
        self.limits: Any = None
        """The table that these rows are of."""
        self.written_under = torch.zeros(0, 0, dtype=torch.long)
        """(B, T) of what is scored next: the row that each of the learner's words was drawn under."""
        super().__init__(**arguments)
        if self.accelerator.num_processes != 1:
            raise RuntimeError("Baselines are taken over whole groups: run one process.")

    def create_scheduler(self, num_training_steps: int, optimizer: Any = None) -> Any:
        """The rate of `learning_rate`, restarts included."""
        made: Any = getattr(self, "lr_scheduler", None)
        if made is None:
            start = self._run.grpo.learning_rate
            made = LambdaLR(optimizer or self.optimizer, lambda step: learning_rate(self._run, step) / start)
            self.lr_scheduler = made
        return made

    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
        output = super()._generate_and_score_completions(inputs)
        rows = turn_advantages(
            [row["episode_rewards"] for row in inputs],
            [row["token_turns"] for row in inputs],
            group=self._run.grpo.group,
            per_turn=self._run.grpo.turn_baseline,
        )
        mask = output["tool_mask"]
        advantages = torch.zeros_like(mask, dtype=torch.float32)  # (B, T)
        for row, values in enumerate(rows):
            advantages[row, : len(values)] = torch.tensor(values)
        output["advantages"] = advantages
        output["token_limits"] = padded_limits([row["token_limits"] for row in inputs]).to(mask.device)
        if "old_per_token_logps" in output:
            gap = (output["old_per_token_logps"] - output["sampling_per_token_logps"]) * mask
            self._metrics["train"]["sampling_gap/max"].append(gap.abs().max().item())
        if self.reference is not None and self._looks_now():
            self._metrics["train"]["kl/imitator"].append(self._distance(output))
        return output

    def _looks_now(self) -> bool:
        every = self._run.evaluation.every or self._run.grpo.save_every
        return self.state.global_step // self._run.grpo.updates % every == 0

    def _distance(self, output: dict[str, Any]) -> float:
        """Mean log-ratio of policy to imitator per sampled token: an unbiased estimate of their divergence, in nats."""
        ids, seen = (
            torch.cat([output[f"prompt_{what}"], output[f"completion_{what}"]], dim=1) for what in ("ids", "mask")
        )
        with torch.no_grad():
            scores, _, _ = self._get_per_token_logps_and_entropies(
                self.reference, ids, seen, output["completion_ids"].shape[1]
            )
        own = output["tool_mask"].bool() & output["completion_mask"].bool()
        return float((output["sampling_per_token_logps"] - scores)[own].mean().item())

    def _get_per_token_logps_and_entropies(
        self,
        model: Any,
        input_ids: torch.Tensor,
        attention_mask: torch.Tensor,
        logits_to_keep: int,
        **keywords: Any,
    ) -> Any:
        """TRL's scores of the learner's words, under what each was drawn under, and 0 everywhere else.

        Rows of like length are run together and start at their first word, so that little padding is run through
        the model and none comes before a word; only what the learner wrote is held against the vocabulary.
        """
        prompt, under = input_ids.shape[1] - logits_to_keep, self.written_under
        first = attention_mask.argmax(dim=1)  # (B,): prompts are padded on the left.
        lengths = attention_mask.sum(dim=1)
        logprobs = torch.zeros(input_ids.shape[0], logits_to_keep, device=input_ids.device)
        entropies = logprobs.clone()
        for rows in torch.argsort(lengths, stable=True).split(ROWS_SCORED_TOGETHER):
            columns = first[rows, None] + torch.arange(int(lengths[rows].max()), device=input_ids.device)
            ids = input_ids[rows].gather(1, columns.clamp(max=input_ids.shape[1] - 1))  # (b, t)
            hidden = model.model(input_ids=ids)[0]  # What follows a row's last word cannot be seen by it.
            row, column = (under[rows] != NOT_OWN).nonzero(as_tuple=True)
            at = column + prompt - first[rows][row]
            limit = under[rows[row], column]
            scores = torch.log_softmax(self.limits.masked(model.lm_head(hidden[row, at - 1]), limit), dim=-1)  # (n, V)
            where = (rows[row], column)
            logprobs = logprobs.index_put(where, scores.gather(1, ids[row, at][:, None])[:, 0])
            entropies = entropies.index_put(where, -(scores.exp() * scores).sum(-1))
        self._scored = logprobs.detach()
        return logprobs, entropies, None

    def _compute_loss(self, model: Any, inputs: Any) -> Any:
        if self._entropy_bonus_enabled:
            self.entropy_coef = entropy_coefficient(self._run, self.state.global_step)
        self.written_under = inputs["token_limits"]
        parent: Any = super()
        loss = parent._compute_loss(model, inputs)
        guards.check_loss(loss.item(), step=self.state.global_step, stage="reinforcement")
        played = inputs.get("old_per_token_logps", inputs.get("sampling_per_token_logps"))
        if played is not None:
            ratio = torch.exp(self._scored - played)
            own = inputs["tool_mask"].bool() & inputs["completion_mask"].bool()
            self._metrics["train"]["importance_ratio/mean"].append(ratio[own].mean().item())
            self._metrics["train"]["importance_ratio/max"].append(ratio[own].max().item())
            moved = ratio[own] - 1 - ratio[own].log()  # Unbiased for KL(played || now), and never negative.
            self._metrics["train"]["kl/update"].append(moved.mean().item())
        return loss
