"""Supervised fine-tuning: teach a model the dialogue by imitation. `python -m training.sft FILE.toml`.

The story in order: read the configuration, build tokenizer and model, refuse to start on a wrong
template, mask or stop token, play the demonstrations, train on the learner's words alone through
TRL's SFTTrainer, save, and compare the imitator with its demonstrators.

Contract: the same file gives the same weights on the same machine. Nothing is downloaded.
"""

import argparse
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import torch
from datasets import Dataset
from torch.nn.functional import cross_entropy
from transformers import TrainerCallback
from trl.trainer.sft_config import SFTConfig
from trl.trainer.sft_trainer import SFTTrainer

from agents.learned import grammars
from agents.learned.dialogue import Message
from training import dialogues, evaluation, guards, runs
from training import model as models
from training import tokenizer as words
from training.config import ConfigError, Game, RunConfig, load
from training.demonstrations import Demonstration, demonstrate


class Trainer(SFTTrainer):
    """TRL's trainer, which stops at a loss that is no number, and holds only the learner's words against the vocabulary."""

    def compute_loss(self, model: Any, inputs: dict[str, Any], *_: Any, **__: Any) -> Any:
        """The mean cross entropy of the learner's words. Padding comes last, where no word sees it."""
        hidden = model.model(input_ids=inputs["input_ids"])[0][:, :-1]
        following = inputs["labels"][:, 1:]
        own = following != -100
        loss = cross_entropy(model.lm_head(hidden[own]), following[own])
        guards.check_loss(loss.item(), step=self.state.global_step, stage="imitation")
        return loss


class Tell(TrainerCallback):
    """Appends the loss to the run's metrics as it falls."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def on_log(self, args: Any, state: Any, control: Any, logs: dict[str, Any] | None = None, **_: Any) -> None:
        """One line now and then; it belongs to no rollout."""
        if logs and "loss" in logs:
            line = {"kind": "imitate", "rollout": 0, "step": state.global_step, "steps": state.max_steps}
            runs.append(self._folder, line | {"loss": logs["loss"]})


def dataset(dialogues_: Sequence[Sequence[Message]], codec: words.Codec) -> Dataset:
    """Ids and labels; the label is -100 wherever the learner did not write."""
    rows: dict[str, list[list[int]]] = {"input_ids": [], "labels": []}
    for messages in dialogues_:
        ids, mask = codec.whole(messages)
        rows["input_ids"].append(ids)
        rows["labels"].append([number if own else -100 for number, own in zip(ids, mask, strict=True)])
    return Dataset.from_dict(rows)


def demonstrators_share(game: Game, demonstrations: Sequence[Demonstration]) -> evaluation.Interval:
    """What the teachers earn, as a share of the first best."""
    result = evaluation.Result([], [], [evaluation.earned(game, d.episode) for d in demonstrations])
    return evaluation.share(result.surplus, result.first_best)


PROBED = 1_000
"""Games of the built-in demonstrators that stand beside imitated dialogues of another source, for comparison."""


def start(config: RunConfig) -> tuple[Any, Any]:
    """(model, tokenizer) that imitation starts from: the base of the run, or random weights. Raises `SetupError`."""
    if config.base:
        guards.check_base(Path(config.base))
        model, tokenizer = models.load(Path(config.base))
        spoken = words.grammar_of(tokenizer).name
        if spoken != config.game.dialogue:
            raise words.SetupError(
                f"The base {config.base} reads and writes the {spoken}; this game is played in the {config.game.dialogue}."
            )
        return model, tokenizer
    tokenizer = words.build(grammars.by_name(config.game.dialogue))
    model = models.build(config.model, tokenizer, seed=config.seed)
    words.check(tokenizer, model)
    return model, tokenizer


def imitate(
    model: Any, tokenizer: Any, rows: Sequence[Sequence[Message]], *, config: RunConfig, folder: Path
) -> list[float]:
    """Let the model learn the answers of dialogues; the losses on the way."""
    trainer = Trainer(
        model=model,
        processing_class=tokenizer,
        train_dataset=dataset(rows, words.Codec(tokenizer)),
        callbacks=[Tell(folder)],
        args=SFTConfig(
            output_dir=str(folder / "sft-trainer"),
            max_steps=config.sft.steps,
            per_device_train_batch_size=config.sft.batch,
            learning_rate=config.sft.learning_rate,
            lr_scheduler_type="cosine",
            warmup_steps=config.sft.warmup_steps,
            max_grad_norm=1.0,
            weight_decay=0.0,
            max_length=None,
            train_sampling_strategy="group_by_length",  # Little padding in a batch.
            dataset_kwargs={"skip_prepare_dataset": True},
            activation_checkpointing=False,
            use_cpu=not torch.cuda.is_available(),
            bf16=False,
            seed=config.seed,
            logging_steps=max(1, min(25, config.sft.steps // 10)),
            logging_nan_inf_filter=False,
            save_strategy="no",
            report_to=[],
            disable_tqdm=True,
        ),
    )
    trainer.train()
    return [line["loss"] for line in trainer.state.log_history if "loss" in line]


def train(config: RunConfig, folder: Path) -> dict[str, Any]:
    """Run the stage; the model goes to `folder/sft`, figures come back."""
    torch.set_num_threads(config.threads)
    started, cpu = time.monotonic(), time.process_time()
    model, tokenizer = start(config)
    codec = words.Codec(tokenizer)
    given = dialogues.read(folder, sha256=config.data) if config.data else None
    demonstrations = list(
        demonstrate(
            config.game,
            episodes=config.sft.demonstrations if given is None else min(PROBED, config.sft.demonstrations),
            seed=config.seed,
            habits=config.sft.habits,
            teachers=config.sft.teachers,
        )
    )
    imitated = [demonstration.messages for demonstration in demonstrations] if given is None else given
    if not imitated:
        raise ConfigError("The data set to imitate is empty: nothing can be learned from it.")
    if config.sft.before:
        first = demonstrate(
            config.game, episodes=config.sft.demonstrations, seed=config.seed + 1, teachers=config.sft.before
        )
        imitate(model, tokenizer, [each.messages for each in first], config=config, folder=folder)
        models.save(folder / "base", model, tokenizer)
    losses = imitate(model, tokenizer, imitated, config=config, folder=folder) if config.sft.steps else []
    models.save(folder / "sft", model, tokenizer)
    seconds, cpu_seconds = time.monotonic() - started, time.process_time() - cpu
    teachers = demonstrators_share(config.game, demonstrations)
    figures: dict[str, Any] = {
        "stage": "sft",
        "seconds": round(seconds, 1),
        "cpu_seconds": round(cpu_seconds, 1),
        "dialogues": len(imitated),
        "demonstrators": asdict(teachers) | {"conduct": evaluation.conduct([d.episode for d in demonstrations])},
        "loss": losses,
    }
    figures |= looked_at(model, codec, config)
    if config.sft.before:
        figures["base"] = looked_at(models.load(folder / "base")[0], codec, config)
    return figures


def looked_at(model: Any, codec: words.Codec, config: RunConfig) -> dict[str, Any]:
    """What an imitator earns on games that it did not see, drawn and likeliest."""
    figures = {}
    for greedy in (False, True):
        result = evaluation.evaluate(
            model,
            codec,
            config.game,
            split="watch",
            episodes=max(1, config.evaluation.final_episodes // 2),
            greedy=greedy,
            seed=config.seed,
        )
        figures["greedy" if greedy else "sampled"] = evaluation.figures(result)
    return figures


def main(arguments: Sequence[str] | None = None) -> int:
    """`python -m training.sft FILE.toml`: imitate the demonstrators."""
    parser = argparse.ArgumentParser(prog="python -m training.sft", description=main.__doc__)
    parser.add_argument("config", type=Path)
    parser.add_argument("--out", type=Path, default=None, help="folder of the run (default: var/runs/NAME)")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    asked = parser.parse_args(arguments)
    config = load(asked.config, tuple(asked.set))
    folder = asked.out or runs.folder(config.name)
    runs.begin(folder, config)
    figures = train(config, folder)
    runs.record(folder, "sft", figures)
    sys.stdout.write(json.dumps(figures) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
