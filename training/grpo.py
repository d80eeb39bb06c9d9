"""Group-relative policy optimisation in the real game. `python -m training.grpo FILE.toml`.

The story in order: read the configuration, load the imitator that `training.sft` left, refuse to
start on a wrong template, mask or stop token, let TRL's trainer play groups of episodes through
the one adapter (`training.rollout`) and learn, look at kept-apart games now and then, save.

Contract: the same file gives the same run; `--resume` goes on from the last checkpoint with the
step that would have come next. Figures are appended to the run's `metrics.jsonl`.
"""

import argparse
import copy
import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import torch
from datasets import Dataset
from transformers import TrainerCallback
from trl.trainer.grpo_config import GRPOConfig

from training import evaluation, exact, model_opponents, runs, watching
from training import model as models
from training import tokenizer as words
from training.config import ConfigError, RunConfig, load
from training.rollout import EpisodeTrainer, Rollouts, episode_reward


class Watch(TrainerCallback):
    """Appends figures to the run, and looks at kept-apart games now and then."""

    def __init__(self, config: RunConfig, folder: Path, codec: words.Codec, rollouts: Rollouts | None = None) -> None:
        self._rollouts = rollouts
        self._config = config
        self._folder = folder
        self._codec = codec
        self.looking_seconds = 0.0
        self.looking_cpu_seconds = 0.0
        self._told_at: float | None = None
        self._looked = 0.0

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """The clock of the first rollout starts."""
        self._told_at = time.monotonic()

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **_: Any) -> None:
        """One line per rollout."""
        if logs and "reward" in logs:
            rollout = state.global_step // self._config.grpo.updates
            runs.append(self._folder, {"kind": "train", "rollout": rollout, **logs, **self._played()})
            self._keep_samples(rollout)

    def _played(self) -> dict[str, Any]:
        """The rollout's games, and where the time since the last line went."""
        if self._rollouts is None or not self._rollouts.figures:
            return {}
        now, seconds = time.monotonic(), dict(self._rollouts.seconds)
        found = dict(self._rollouts.figures)
        tokens, spent = found["tokens"], found.pop("tokens_seconds")
        if self._told_at is not None:
            seconds["looking"] = self.looking_seconds - self._looked
            seconds["learning"] = max(0.0, now - self._told_at - sum(seconds.values()))
        self._told_at, self._looked = now, self.looking_seconds
        found["tokens_per_second"] = tokens / spent if spent else None
        found["seconds"] = {name: round(value, 4) for name, value in seconds.items()}
        return {name: value for name, value in found.items() if value is not None}

    def _keep_samples(self, rollout: int) -> None:
        """Games to read: the best, the worst and the one in the middle, now and then."""
        every = self._config.evaluation.every or self._config.grpo.save_every
        if self._rollouts is None or not self._rollouts.latest or (rollout != 1 and rollout % every):
            return
        played, paid = self._rollouts.latest, self._rollouts.rewards
        for name, k in watching.chosen(paid).items():
            text = evaluation.dialogue_lines(played[k], self._codec)
            runs.append_sample(
                self._folder, {"rollout": rollout, "chosen": name, "reward": round(paid[k], 4), "text": text}
            )

    def on_step_end(self, args: Any, state: Any, control: Any, model: Any = None, **_: Any) -> None:
        """A look at the policy, greedy and sampled, on games of the `watch` split."""
        look, updates = self._config.evaluation, self._config.grpo.updates
        rollout, rest = divmod(state.global_step, updates)
        if rest or not look.every or rollout % look.every:
            return
        started, cpu = time.monotonic(), time.process_time()
        line: dict[str, Any] = {"kind": "watch", "rollout": rollout}
        for greedy in (False, True):
            result = evaluation.evaluate(
                model,
                self._codec,
                self._config.game,
                split="watch",
                episodes=look.episodes,
                greedy=greedy,
                seed=rollout,
            )
            name = "greedy" if greedy else "sampled"
            line[name] = float(result.surplus.sum() / result.first_best.sum())
            if greedy:
                line["play"] = [list(map(list, play)) for play, _ in evaluation.most_common_plays(result, count=1)]
        line |= self._exact(model)
        runs.append(self._folder, line)
        self.looking_seconds += time.monotonic() - started
        self.looking_cpu_seconds += time.process_time() - cpu

    def _exact(self, model: Any) -> dict[str, float]:
        """Exact shares of the optimum over the trained sizes at the lowest cost: the mean one and the worst."""
        game = self._config.game
        if not exact.applies(game):
            return {}
        members = [exact.Member(buyers, turns, min(game.costs)) for buyers, turns in dict.fromkeys(game.sizes)]
        shares = [found.of_optimum for found in exact.greedy(model, self._codec, game, members)]
        return {"of_optimum": sum(shares) / len(shares), "of_optimum_worst": min(shares)}


def arguments_for(config: RunConfig, folder: Path) -> GRPOConfig:
    """TRL's configuration; everything that differs from its defaults is said here."""
    grpo = config.grpo
    batch = grpo.games * grpo.group
    return GRPOConfig(
        output_dir=str(folder / "grpo-trainer"),
        max_steps=grpo.rollouts * grpo.updates,
        per_device_train_batch_size=batch,
        num_generations=grpo.group,
        steps_per_generation=1,
        gradient_accumulation_steps=1,
        num_iterations=grpo.updates,  # Each update is on the whole rollout, not on a slice of it.
        epsilon=grpo.clip,
        beta=0.0,
        loss_type="bnpo",  # The mean over the learner's tokens, the scale that the entropy bonus has.
        scale_rewards="none",
        entropy_coef=grpo.entropy_bonus,
        temperature=1.0,
        top_p=1.0,
        top_k=0,
        max_completion_length=models.LONGEST_DIALOGUE,
        learning_rate=grpo.learning_rate,
        max_grad_norm=1.0,
        weight_decay=0.0,
        shuffle_dataset=False,
        activation_checkpointing=False,
        use_cpu=not torch.cuda.is_available(),
        bf16=False,
        seed=config.seed,
        logging_steps=grpo.updates,
        save_strategy="steps",
        save_steps=grpo.save_every * grpo.updates,  # Never in the middle of a rollout's updates.
        save_total_limit=2,
        report_to=[],
        disable_tqdm=True,
    )


def build_trainer(
    config: RunConfig, folder: Path, model: Any, tokenizer: Any
) -> tuple[EpisodeTrainer, Watch, Rollouts]:
    """The trainer over every game of the run, in order."""
    words.check(tokenizer, model)
    codec = words.Codec(tokenizer)
    rollouts = Rollouts(config, codec)
    quiet = msgspec.structs.replace(config.game, opponents=model_opponents.quiet(config.game.opponents))
    watch = Watch(msgspec.structs.replace(config, game=quiet), folder, codec, rollouts)
    numbers = [str(number) for number in range(config.grpo.rollouts * config.grpo.games)]
    trainer = EpisodeTrainer(
        config=config,
        model=model,
        processing_class=tokenizer,
        reward_funcs=[episode_reward],
        args=arguments_for(config, folder),
        train_dataset=Dataset.from_dict({"prompt": numbers}),
        rollout_func=rollouts,
        callbacks=[watch],
    )
    return trainer, watch, rollouts


def last_checkpoint(folder: Path) -> Path | None:
    """The newest whole checkpoint that a run left, if any; the trainer's state is what is written last."""
    found = [
        path
        for path in folder.glob("checkpoint-*")
        if path.name.removeprefix("checkpoint-").isdecimal() and (path / "trainer_state.json").exists()
    ]
    return max(found, key=lambda path: int(path.name.removeprefix("checkpoint-")), default=None)


def train(config: RunConfig, folder: Path, *, resume: bool) -> dict[str, Any]:
    """Run the stage from `folder/sft`; the model goes to `folder/grpo`, figures come back."""
    torch.set_num_threads(config.threads)
    source = folder / "sft"
    if not source.is_dir():
        raise ConfigError(f"{source} does not exist: run `python -m training.sft` with this file first.")
    model, tokenizer = models.load(source)
    trainer, watch, rollouts = build_trainer(config, folder, model, tokenizer)
    trainer.reference = copy.deepcopy(model).eval()
    checkpoint = last_checkpoint(folder / "grpo-trainer") if resume else None
    done = 0 if checkpoint is None else int(checkpoint.name.removeprefix("checkpoint-")) // config.grpo.updates
    runs.cut(folder, after_rollout=done)
    started, cpu = time.monotonic(), time.process_time()
    trainer.train(resume_from_checkpoint=None if checkpoint is None else str(checkpoint))
    seconds = time.monotonic() - started - watch.looking_seconds
    cpu_seconds = time.process_time() - cpu - watch.looking_cpu_seconds
    models.save(folder / "grpo", model, tokenizer)
    return {
        "stage": "grpo",
        "seconds": round(seconds, 1),
        "cpu_seconds": round(cpu_seconds, 1),
        "looking_seconds": round(watch.looking_seconds, 1),
        "resumed_from": None if checkpoint is None else checkpoint.name,
        "last_reward": rollouts.mean_reward,
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """`python -m training.grpo FILE.toml`: learn by playing, from what `training.sft` left."""
    parser = argparse.ArgumentParser(prog="python -m training.grpo", description=main.__doc__)
    parser.add_argument("config", type=Path)
    parser.add_argument("--out", type=Path, default=None, help="folder of the run (default: var/runs/NAME)")
    parser.add_argument("--resume", action="store_true", help="go on from the last checkpoint of the run")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    asked = parser.parse_args(arguments)
    config = load(asked.config, tuple(asked.set))
    folder = asked.out or runs.folder(config.name)
    runs.begin(folder, config)
    figures = train(config, folder, resume=asked.resume)
    runs.record(folder, "grpo", figures)
    sys.stdout.write(json.dumps(figures) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
