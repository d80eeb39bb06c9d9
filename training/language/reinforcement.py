"""Group-relative policy optimisation of a language model in the real game, through TRL's trainer.

The story in order: load what imitation left (or the base), let TRL's trainer play groups of games of one
scenario and learn from them, save. Every answer of a game is a row of its own, with the very prompt that
it was asked with, and has its game's reward; a game has `grpo.turns` rows, those that it did not need are
empty and teach nothing. An answer that cannot be read is a refused move, scored like any other.

Contract: the same file gives the same games; no division by the spread, no KL; the baseline is the mean
of the group. A group lies within one process. A model that is spread over processes cannot write its own
answers: `sampling.vllm` names the server that does.
"""

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from transformers import TrainerCallback
from trl.trainer.grpo_config import GRPOConfig
from trl.trainer.grpo_trainer import GRPOTrainer

from agents.base import Turn
from agents.llm import ModelAgent
from markets.engine import rewards
from markets.engine.protocol import Action
from training import guards, runs
from training import rows as protocols
from training.config import ConfigError
from training.language import base, judging, watching
from training.language.config import LanguageRun
from training.language.games import Game, training_game
from training.language.imitation import last_checkpoint, processes, save, step_of
from training.language.playing import BACKEND, Asked, LocalWriter, Writer
from training.language.writers import VllmWriter


class FirstAnswer(ModelAgent):
    """A model that is asked once: what it could not say is what it learns from."""

    def act_batch(self, turn: Turn) -> Sequence[Action]:
        """The model's moves. Raises `Unplayable`."""
        return self._read(self._ask(turn, self._told(turn), "move"), turn.observation)


def game_reward(completions: Sequence[Any], game_rewards: Sequence[float], **_: Any) -> list[float]:
    """TRL's reward function: the engine's reward of each row's game."""
    return list(game_rewards)


class Rollouts:
    """What TRL calls as `rollout_func`: prompts are numbers of games, repeated for every row."""

    def __init__(self, config: LanguageRun, tokenizer: Any) -> None:
        self._config = config
        self._tokenizer = tokenizer
        self._stop = tokenizer.eos_token_id
        self.rewards: list[float] = []
        """Of the games of the last call."""
        self.outcomes: list[str] = []
        self.latest: list[judging.Finished] = []
        """The games of the last call."""
        self.figures: dict[str, Any] = {}
        """What is logged of them (`watching`)."""
        self.seconds: dict[str, float] = {}
        """What the last call spent on writing and on the games."""
        self._spread = guards.Spread()

    def __call__(self, prompts: list[str], trainer: Any) -> dict[str, list[Any]]:
        """Play the groups; rows come back in the order of the prompts."""
        grpo = self._config.grpo
        whole = grpo.group * grpo.turns
        if any(len(set(prompts[k : k + whole])) > 1 for k in range(0, len(prompts), whole)):
            raise RuntimeError("A group of games was torn apart: its mean would be that of others.")
        numbers = [int(number) for number in prompts[:: grpo.turns]]
        games = [self._game(number) for number in numbers]
        started, writer = time.perf_counter(), watching.Timed(self._writer(trainer))
        step = 1_000_000 * trainer.state.global_step + 10_000 * trainer.accelerator.process_index
        played = judging.play_together(
            self._config,
            games,
            writer,
            self._tokenizer,
            self._agent(),
            salts=[step + k for k in range(len(games))],
        )
        out: dict[str, list[Any]] = {
            name: [] for name in ("prompt_ids", "completion_ids", "logprobs", "env_mask", "game_rewards")
        }
        self.rewards, self.outcomes = [], []
        for done, asked in played:
            reward = rewards.by_name(grpo.reward, role=done.game.role)(done.game.scenario, done.played.log)
            self.rewards.append(reward)
            self.outcomes += done.outcomes
            for turn in range(grpo.turns):
                self._add(out, asked, turn)
                out["game_rewards"].append(reward)
        self.latest = [done for done, _asked in played]
        seconds = time.perf_counter() - started
        self.seconds = {"generation": writer.seconds, "environment": max(0.0, seconds - writer.seconds)}
        self.figures = watching.figures(self.latest, self.rewards, group=grpo.group)
        if seconds > 0:
            self.figures["tokens_per_second"] = writer.tokens / seconds
        self._spread.look(self.figures["zero_spread_groups"], reward=sum(self.rewards) / len(self.rewards))
        return out

    def _game(self, number: int) -> Game:
        return training_game(
            self._config.market, number, seed=self._config.seed, stage="grpo", rounds=self._config.grpo.turns
        )

    def _add(self, out: dict[str, list[Any]], asked: Sequence[Asked], turn: int) -> None:
        here = asked[turn] if turn < len(asked) else None
        # A turn that was never played: the first question, an answer of nothing, and nothing to learn.
        out["prompt_ids"].append(asked[0].prompt if here is None and asked else here.prompt if here else [self._stop])
        out["completion_ids"].append(here.answer.ids if here else [self._stop])
        out["logprobs"].append(here.answer.logprobs if here else [0.0])
        out["env_mask"].append([1] * len(here.answer.ids) if here else [0])

    def _agent(self) -> ModelAgent:
        return FirstAnswer(
            backend=BACKEND,
            codec=protocols.codec(self._config.protocol),
            regulated=True,
            temperature=self._config.sampling.temperature,
            max_tokens=self._config.sampling.longest,
        )

    def _writer(self, trainer: Any) -> Writer:
        sampling = self._config.sampling
        if sampling.vllm:
            trainer.accelerator.wait_for_everyone()  # The first process has handed the weights over.
            return VllmWriter(sampling.vllm, together=sampling.together)
        if trainer.is_fsdp_enabled or trainer.is_deepspeed_enabled:
            raise ConfigError(
                "A model spread over processes cannot write its own answers: name a server, sampling.vllm."
            )
        model = trainer.accelerator.unwrap_model(trainer.model_wrapped)
        return LocalWriter(model, self._tokenizer, together=sampling.together)


class GamesTrainer(GRPOTrainer):
    """TRL's trainer, which logs how far its updates move and stops at a loss that is no number."""

    def __init__(self, *, run: LanguageRun, **arguments: Any) -> None:
        self._run = run
        self._taught: list[tuple[Any, torch.Tensor]] = []
        """What learns, as imitation left it; nothing where that is too much to keep beside."""
        super().__init__(**arguments)

    def keep_taught(self, model: Any) -> None:
        """Remember the weights that reinforcement starts from."""
        own = [weight for weight in model.parameters() if weight.requires_grad]
        if sum(weight.numel() for weight in own) <= MOST_KEPT:
            self._taught = [(weight, weight.detach().clone()) for weight in own]

    def _generate_and_score_completions(self, inputs: list[dict[str, Any]]) -> dict[str, Any]:
        output: dict[str, Any] = super()._generate_and_score_completions(inputs)
        every = max(1, min(self._run.grpo.save_every, LOOK_EVERY))
        if self._taught and self.state.global_step % every == 0 and "sampling_per_token_logps" in output:
            self._metrics["train"]["kl/imitator"].append(self._distance(output))
        return output

    def _distance(self, output: dict[str, Any]) -> float:
        """Mean log-ratio of policy to imitator per sampled token: an unbiased estimate of their divergence, in nats."""
        ids, seen = (
            torch.cat([output[f"prompt_{what}"], output[f"completion_{what}"]], dim=1) for what in ("ids", "mask")
        )
        now = [weight.detach().clone() for weight, _then in self._taught]
        with torch.no_grad():
            for weight, then in self._taught:
                weight.copy_(then)
            try:
                scores = self._get_per_token_logps_and_entropies(
                    self.model, ids, seen, output["completion_ids"].shape[1], batch_size=ROWS_SCORED_TOGETHER
                )[0]
            finally:
                for (weight, _then), was in zip(self._taught, now, strict=True):
                    weight.copy_(was)
        assert scores is not None
        own = output["tool_mask"].bool() & output["completion_mask"].bool()
        return float((output["sampling_per_token_logps"] - scores)[own].mean().item())

    def _get_per_token_logps_and_entropies(self, *arguments: Any, **keywords: Any) -> Any:
        found: Any = super()._get_per_token_logps_and_entropies(*arguments, **keywords)
        self._scored = found[0].detach()
        return found

    def _compute_loss(self, model: Any, inputs: Any) -> Any:
        parent: Any = super()
        loss = parent._compute_loss(model, inputs)
        guards.check_loss(loss.item(), step=self.state.global_step, stage="reinforcement")
        played = inputs.get("old_per_token_logps", inputs.get("sampling_per_token_logps"))
        own = inputs["tool_mask"].bool() & inputs["completion_mask"].bool()
        if played is not None and own.any():
            ratio = torch.exp(self._scored - played)[own]
            self._metrics["train"]["importance_ratio/mean"].append(ratio.mean().item())
            self._metrics["train"]["importance_ratio/max"].append(ratio.max().item())
            moved = ratio - 1 - ratio.log()  # Unbiased for KL(played || now), and never negative.
            self._metrics["train"]["kl/update"].append(moved.mean().item())
        return loss


MOST_KEPT = 200_000_000
"""Weights that are kept beside as imitation left them."""
LOOK_EVERY = 10
"""Rollouts between two measures of how far the policy is from the imitator, at most."""
ROWS_SCORED_TOGETHER = 8


class Watch(TrainerCallback):
    """Appends figures to the run, in the first process."""

    def __init__(self, config: LanguageRun, folder: Path, rollouts: Rollouts) -> None:
        self._config = config
        self._folder = folder
        self._rollouts = rollouts
        self._told_at = time.monotonic()

    def on_train_begin(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """The clock of the first rollout starts."""
        self._told_at = time.monotonic()

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **_: Any) -> None:
        """One line per rollout, and now and then games to read."""
        if not (state.is_world_process_zero and logs and "reward" in logs):
            return
        now, seconds = time.monotonic(), dict(self._rollouts.seconds)
        seconds["learning"] = max(0.0, now - self._told_at - sum(seconds.values()))
        self._told_at = now
        rollout = state.global_step
        line = {"kind": "train", "rollout": rollout, **logs, **self._rollouts.figures}
        line["seconds"] = {name: round(value, 4) for name, value in seconds.items()}
        runs.append(self._folder, line)
        if rollout == 1 or rollout % max(1, min(self._config.grpo.save_every, LOOK_EVERY)) == 0:
            watching.keep_samples(self._folder, self._rollouts.latest, self._rollouts.rewards, at={"rollout": rollout})


def arguments_for(config: LanguageRun, folder: Path) -> GRPOConfig:
    """TRL's configuration; everything that differs from its defaults is said here."""
    grpo = config.grpo
    rows = grpo.games * grpo.group * grpo.turns
    if rows % grpo.accumulate:
        raise ConfigError(f"A rollout of {rows} rows cannot be split into {grpo.accumulate} equal parts.")
    on_cpu = not torch.cuda.is_available()
    served: dict[str, Any] = {}
    if config.sampling.vllm:
        served = {"use_vllm": True, "vllm_mode": "server", "vllm_server_base_url": config.sampling.vllm}
    return GRPOConfig(
        output_dir=str(folder / "grpo-trainer"),
        max_steps=grpo.rollouts,
        per_device_train_batch_size=rows // grpo.accumulate,
        gradient_accumulation_steps=grpo.accumulate,
        steps_per_generation=grpo.accumulate,
        num_generations=grpo.group * grpo.turns,
        epsilon=grpo.clip,
        beta=0.0,
        loss_type="bnpo",
        scale_rewards="none",
        entropy_coef=grpo.entropy_bonus,
        temperature=config.sampling.temperature,
        top_p=1.0,
        top_k=0,
        max_completion_length=config.sampling.longest,
        learning_rate=grpo.learning_rate,
        lr_scheduler_type="constant",
        max_grad_norm=1.0,
        weight_decay=0.0,
        shuffle_dataset=False,
        activation_checkpointing=config.adapter.rank == 0 and not on_cpu,
        use_cpu=on_cpu,
        bf16=config.precision == "bf16",
        seed=config.seed,
        logging_steps=1,
        save_strategy="steps",
        save_steps=grpo.save_every,
        save_total_limit=2,
        report_to=[],
        disable_tqdm=True,
        ddp_find_unused_parameters=False,
        **served,
    )


def train(
    config: LanguageRun, folder: Path, *, resume: bool = False, callbacks: Sequence[TrainerCallback] = ()
) -> dict[str, Any]:
    """Run the stage from `folder/sft`, or from the base where there was no imitation; the model goes to
    `folder/grpo`, figures come back."""
    torch.set_num_threads(config.threads)
    started, cpu = time.monotonic(), time.process_time()
    ready = base.learned(config, folder / "sft") if (folder / "sft").is_dir() else base.fresh(config)
    rollouts = Rollouts(config, ready.tokenizer)
    per_rollout = config.grpo.games * processes()
    numbers = [str(number) for number in range(config.grpo.rollouts * per_rollout)]
    trainer = GamesTrainer(
        run=config,
        model=ready.model,
        processing_class=ready.tokenizer,
        reward_funcs=[game_reward],
        args=arguments_for(config, folder),
        train_dataset=Dataset.from_dict({"prompt": numbers}),
        rollout_func=rollouts,
        callbacks=[Watch(config, folder, rollouts), *callbacks],
    )
    if not (trainer.is_fsdp_enabled or trainer.is_deepspeed_enabled):
        trainer.keep_taught(trainer.model)
    checkpoint = last_checkpoint(folder / "grpo-trainer") if resume else None
    if resume and trainer.accelerator.is_main_process:
        runs.cut(folder, after_rollout=0 if checkpoint is None else step_of(checkpoint))
    trainer.train(resume_from_checkpoint=None if checkpoint is None else str(checkpoint))
    save(trainer, folder / "grpo", ready.tokenizer)
    rewards_seen = [line["reward"] for line in trainer.state.log_history if "reward" in line]
    return {
        "stage": "grpo",
        "processes": processes(),
        "seconds": round(time.monotonic() - started, 1),
        "cpu_seconds": round(time.process_time() - cpu, 1),
        "rollouts": trainer.state.global_step,
        "reward": rewards_seen,
        "resumed_from": None if checkpoint is None else checkpoint.name,
    }
