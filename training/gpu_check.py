"""The small language model, taught and reinforced on one GPU in minutes: `python -m training.gpu_check`.

    python -m training.gpu_check --minutes 8                       on a machine with a GPU; JSON
    python -m training.gpu_check --device cpu --minutes 1 --base FOLDER

Imitation and then reinforcement of `training/configs/smollm2.toml`'s run, made smaller or larger by how
long they may take, and held-out games before, between and after, all against the clock: each stage stops
when its part of the time is over, and what was judged is said with its number of games. Not here: how any
of it is done (`training.language`).
"""

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import torch
from transformers import TrainerCallback

from training import runs
from training.config import ConfigError
from training.language import base, imitation, judging, reinforcement
from training.language.config import LanguageRun, load
from training.language.playing import LocalWriter
from training.tokenizer import SetupError

FILE = Path(__file__).with_name("configs") / "smollm2.toml"
LONGEST_MINUTES = 8.0
PARTS = {"judge_base": 0.10, "sft": 0.30, "judge_sft": 0.10, "grpo": 0.35, "judge_grpo": 0.10}
"""Of the time; the rest is for loading and saving."""


class Clock(TrainerCallback):
    """Stops a trainer when its time is over, after the step under way."""

    def __init__(self, seconds: float) -> None:
        self._until = time.monotonic() + seconds

    def on_step_end(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Look at the time."""
        if time.monotonic() >= self._until:
            control.should_training_stop = True


def check(config: LanguageRun, folder: Path, *, minutes: float) -> dict[str, Any]:
    """Run it all; figures by stage."""
    started = time.monotonic()
    runs.begin(folder, config)
    found: dict[str, Any] = {
        "device": torch.cuda.get_device_name() if torch.cuda.is_available() else "cpu",
        "base": config.base,
        "minutes": minutes,
        "torch": torch.__version__,
    }

    def part(name: str) -> float:
        return PARTS[name] * minutes * 60

    def judged(stage: str) -> dict[str, Any]:
        ready = base.load(config) if stage == "base" else base.learned(config, folder / stage, trainable=False)
        ready = base.merged(ready)
        if torch.cuda.is_available():
            ready.model.to("cuda")
        writer = LocalWriter(ready.model, ready.tokenizer, together=config.sampling.together)
        return judging.judge_within(config, writer, ready.tokenizer, seconds=part(f"judge_{stage}"))

    found["before"] = judged("base")
    found["sft"] = imitation.train(config, folder, callbacks=(Clock(part("sft")),))
    found["after_sft"] = judged("sft")
    found["grpo"] = reinforcement.train(config, folder, callbacks=(Clock(part("grpo")),))
    found["after_grpo"] = judged("grpo")
    found["seconds"] = round(time.monotonic() - started, 1)
    if torch.cuda.is_available():
        found["gpu_memory_peak_gib"] = round(torch.cuda.max_memory_allocated() / 2**30, 2)
    return found


def sized(config: LanguageRun, *, on_gpu: bool) -> LanguageRun:
    """The run for the device: a GPU takes larger batches, all layers and more games."""
    if not on_gpu:
        return msgspec.structs.replace(
            config,
            name="gpu-check",
            sft=msgspec.structs.replace(config.sft, rows=60, steps=0),
            grpo=msgspec.structs.replace(config.grpo, rollouts=1_000, games=2, group=4),
            judging=msgspec.structs.replace(config.judging, scenarios=40),
        )
    return msgspec.structs.replace(
        config,
        name="gpu-check",
        adapter=msgspec.structs.replace(config.adapter, rank=16, alpha=32, first_layer=0),
        sft=msgspec.structs.replace(config.sft, rows=6_000, steps=0, batch=4, accumulate=1, learning_rate=5e-4),
        grpo=msgspec.structs.replace(
            config.grpo, rollouts=1_000, games=8, group=8, accumulate=8, learning_rate=1e-4, entropy_bonus=0.0
        ),
        sampling=msgspec.structs.replace(config.sampling, together=256),
        judging=msgspec.structs.replace(config.judging, scenarios=400),
    )


def main(arguments: Sequence[str] | None = None) -> int:
    """Check one machine; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m training.gpu_check", description=__doc__.split("\n")[0])
    parser.add_argument("config", type=Path, nargs="?", default=FILE)
    parser.add_argument("--minutes", type=float, default=LONGEST_MINUTES)
    parser.add_argument("--device", choices=("cuda", "cpu"), default="cuda")
    parser.add_argument("--base", default="", help="folder of another model (default: the run file's)")
    parser.add_argument("--out", type=Path, default=None, help="folder to keep (default: none is kept)")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    asked = parser.parse_args(arguments)
    if asked.device == "cpu":
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
    try:
        if not 0 < asked.minutes <= LONGEST_MINUTES:
            raise ConfigError(f"--minutes must be more than 0 and at most {LONGEST_MINUTES:g}.")
        if asked.device == "cuda" and not torch.cuda.is_available():
            raise ConfigError("There is no CUDA device here; --device cpu tries the way without one.")
        config = sized(load(asked.config), on_gpu=asked.device == "cuda")
        changes = (*asked.set, *((f"base='{asked.base}'",) if asked.base else ()))
        with tempfile.TemporaryDirectory() as spare:
            folder = asked.out or Path(spare)
            file = Path(spare) / "run.json"
            file.write_bytes(msgspec.json.encode(config))
            found = check(load(file, changes), folder, minutes=asked.minutes)
    except (ConfigError, SetupError, imitation.LossError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    sys.stdout.write(json.dumps(found) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
