"""Supervised fine-tuning of a language model: loss on its own answers and their stop token alone.

The story in order: play the teachers, make ids, refuse to start where there is nothing to learn, train
(transformers' Trainer, so `accelerate launch` brings several processes, FSDP or DeepSpeed), save.
The turns of a game are packed (`packing`), and only the places of answers are scored: the vocabulary is
wide and the prompt's scores are nobody's business.

Contract: the same file gives the same batches in the same order; `resume` goes on from the last
checkpoint. A loss that is no number ends the run with a sentence, and nothing is saved.
"""

import math
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch.utils.data import Dataset
from transformers import Trainer, TrainerCallback, TrainingArguments

from training import guards, runs
from training.config import ConfigError
from training.language import base, lessons, packing, watching
from training.language.config import LanguageRun
from training.language.demonstrations import Demonstrations, collect
from training.language.playing import LocalWriter


class Games(Dataset[list[base.Row]]):
    """The rows of each game, by number."""

    def __init__(self, games: Sequence[list[base.Row]]) -> None:
        self._games = games

    def __len__(self) -> int:
        return len(self._games)

    def __getitem__(self, number: int) -> list[base.Row]:
        return self._games[number]


def packed(games: Sequence[list[base.Row]]) -> dict[str, Any]:
    """Some games in one sequence."""
    return packing.pack([row for game in games for row in game])._asdict()


class AnswersTrainer(Trainer):
    """Transformers' trainer with the cross entropy of the answers' tokens."""

    def compute_loss(
        self, model: Any, inputs: Any, return_outputs: bool = False, num_items_in_batch: Any = None
    ) -> Any:
        """The loss of one batch: its part of the mean over the update's learned tokens."""
        labels = inputs["labels"]
        total = torch.nn.functional.cross_entropy(packing.scores(model, inputs), labels, reduction="sum")
        tokens = len(labels) if num_items_in_batch is None else num_items_in_batch / self.args.world_size
        loss = total / tokens  # Gradients are averaged over processes, so each divides by its part.
        if not torch.isfinite(loss):
            raise LossError(
                f"The loss of imitation was {loss.item():g} at step {self.state.global_step}: the run stops here, and what it "
                "saved before stays. A lower sft.learning_rate usually helps."
            )
        return (loss, None) if return_outputs else loss

    def _get_num_items_in_batch(self, batch_samples: Any, device: Any) -> Any:
        """Tokens that are learned in this update, over all parts and processes."""
        count = torch.tensor(sum(len(batch["labels"]) for batch in batch_samples), device=device)
        return self.accelerator.gather(count).sum()


class LossError(guards.Stopped):
    """A loss that is no number."""


class Log(TrainerCallback):
    """Appends the loss to the run's metrics, in the first process."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._started = time.monotonic()

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **_: Any) -> None:
        """One line per look."""
        if state.is_world_process_zero and logs and "loss" in logs:
            runs.append(
                self._folder,
                {
                    "kind": "imitate",
                    "rollout": 0,
                    "step": state.global_step,
                    "steps": state.max_steps,
                    "seconds": round(time.monotonic() - self._started, 1),
                    **{key: logs[key] for key in ("loss", "grad_norm", "learning_rate") if key in logs},
                },
            )


class Look(TrainerCallback):
    """Plays a few games now and then with the weights as they are, in the first process."""

    def __init__(self, config: LanguageRun, folder: Path, tokenizer: Any) -> None:
        self._config = config
        self._folder = folder
        self._tokenizer = tokenizer

    def on_step_end(self, args: Any, state: Any, control: Any, model: Any = None, **_: Any) -> None:
        """A look, where it is time for one."""
        every = self._config.judging.watch_every
        if not every or state.global_step % every or not state.is_world_process_zero or processes() > 1:
            return
        writer = LocalWriter(model, self._tokenizer, together=self._config.sampling.together)
        line, games, shares = watching.look(self._config, writer, self._tokenizer, step=state.global_step)
        runs.append(self._folder, line)
        watching.keep_samples(self._folder, games, shares, at={"step": state.global_step})


class Stop(TrainerCallback):
    """Ends training after an update."""

    def __init__(self, step: int) -> None:
        self._step = step

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Whether this was it."""
        if self._step and state.global_step >= self._step:
            control.should_training_stop = True


def token_rows(tokenizer: Any, shown: Demonstrations, *, longest: int) -> list[list[base.Row]]:
    """The demonstrations as ids, without rows that are too long and games that have no others."""
    games = (
        [base.row(tokenizer, row.messages, row.tools, row.answer) for row in decisions] for decisions in shown.games
    )
    fitting = ([row for row in game if len(row.prompt) + len(row.answer) <= longest] for game in games)
    return [game for game in fitting if game]


def arguments_for(config: LanguageRun, folder: Path, *, games: int) -> TrainingArguments:
    """What transformers' trainer is told; everything that differs from its defaults is said here."""
    sft = config.sft
    on_cpu = not torch.cuda.is_available()
    world = processes()
    steps = sft.steps or max(1, math.ceil(sft.passes * games / (sft.batch * sft.accumulate * world)))
    return TrainingArguments(
        output_dir=str(folder / "sft-trainer"),
        max_steps=steps,
        per_device_train_batch_size=sft.batch,
        gradient_accumulation_steps=sft.accumulate,
        learning_rate=sft.learning_rate,
        lr_scheduler_type="cosine",
        warmup_steps=min(sft.warmup_steps, steps // 2),
        max_grad_norm=1.0,
        weight_decay=0.0,
        bf16=config.precision == "bf16",
        use_cpu=on_cpu,
        activation_checkpointing=config.adapter.rank == 0 and not on_cpu,
        seed=config.seed,
        data_seed=config.seed,
        logging_steps=1 if steps < 20 else 5,
        save_strategy="steps",
        save_steps=sft.save_every,
        save_total_limit=2,
        remove_unused_columns=False,
        label_names=["labels"],
        report_to=[],
        disable_tqdm=True,
        ddp_find_unused_parameters=False,
    )


def processes() -> int:
    """Processes of this run, as its launcher says."""
    return int(os.environ.get("WORLD_SIZE", "1"))


def train(
    config: LanguageRun, folder: Path, *, resume: bool = False, callbacks: Sequence[TrainerCallback] = ()
) -> dict[str, Any]:
    """Run the stage; what was learned goes to `folder/sft`, figures come back."""
    torch.set_num_threads(config.threads)
    started, cpu = time.monotonic(), time.process_time()
    ready = base.fresh(config)
    shown = lessons.read(folder, sha256=config.data) if config.data else collect(config)
    games = token_rows(ready.tokenizer, shown, longest=config.sft.longest)
    if not games:
        raise ConfigError("There is nothing to learn: no demonstration is short enough (sft.longest).")
    model = ready.model
    trainer = AnswersTrainer(
        model=model,
        args=arguments_for(config, folder, games=len(games)),
        train_dataset=Games(games),
        data_collator=packed,
        callbacks=[Log(folder), Look(config, folder, ready.tokenizer), Stop(config.sft.stop_at), *callbacks],
    )
    checkpoint = last_checkpoint(folder / "sft-trainer") if resume else None
    if resume and trainer.accelerator.is_main_process:
        runs.cut_steps(folder, after_step=0 if checkpoint is None else step_of(checkpoint))
    trainer.train(resume_from_checkpoint=None if checkpoint is None else str(checkpoint))
    save(trainer, folder / "sft", ready.tokenizer)
    seconds, cpu_seconds = time.monotonic() - started, time.process_time() - cpu
    rows = [row for game in games for row in game]
    return {
        "stage": "sft",
        "processes": processes(),
        "seconds": round(seconds, 1),
        "cpu_seconds": round(cpu_seconds, 1),
        "rows": len(rows),
        "rows_too_long": sum(map(len, shown.games)) - len(rows),
        "tokens": sum(len(row.prompt) + len(row.answer) for row in rows),
        "tokens_learned": sum(len(row.answer) for row in rows),
        "steps": trainer.state.global_step,
        "rows_seen": round(len(rows) * min(1.0, trainer.state.epoch or 0.0)),
        "games_played": shown.played,
        "games_imitated": len(games),
        "teachers_share": sum(shown.shares) / len(shown.shares) if shown.shares else None,
        "trainable_parameters": sum(p.numel() for p in model.parameters() if p.requires_grad),
        "resumed_from": None if checkpoint is None else checkpoint.name,
        "loss": [line["loss"] for line in trainer.state.log_history if "loss" in line],
    }


def save(trainer: Any, folder: Path, tokenizer: Any) -> None:
    """Write what was trained once, whole, from the first process; the parts of a sharded model are gathered."""
    accelerator = trainer.accelerator
    state = accelerator.get_state_dict(trainer.model_wrapped) if accelerator.num_processes > 1 else None
    if accelerator.is_main_process:
        model = accelerator.unwrap_model(trainer.model_wrapped)
        with runs.whole(folder) as draft:
            base.save(draft, model, tokenizer, state=state)
    accelerator.wait_for_everyone()


def last_checkpoint(folder: Path) -> Path | None:
    """The newest whole checkpoint, if any."""
    found = [path for path in folder.glob("checkpoint-*") if (path / "trainer_state.json").exists()]
    return max(found, key=step_of, default=None)


def step_of(checkpoint: Path) -> int:
    """The update after which a checkpoint was written."""
    return int(checkpoint.name.removeprefix("checkpoint-"))
