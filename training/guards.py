"""What stops a run before it wastes time, each with a sentence: before the first step, and on the way.

Here: the checks of base, data, device, disk and reward, the watch for a loss that is no number and for a
reward without spread. Not here: templates, masks and stop tokens (`training.tokenizer.check`), the
checks of a configuration alone (`training.config`).

Contract: a check raises `Stopped` whose message is a sentence for whoever launched the run, and changes
nothing. No Django and no torch: the site asks `base_problem` and `missing_device` before a launch, too.
"""

import json
import math
import os
import shutil
from collections.abc import Sequence
from pathlib import Path

LEAST_FREE_BYTES = 200_000_000
"""Room that a run must find on its disk at the start, on top of what its checkpoints take."""
PROBED_GAMES = 64
FLAT_ROLLOUTS = 5
"""Rollouts in a row in which no group's rewards differ, after which a run stops."""
WEIGHTS = ("model.safetensors", "model.safetensors.index.json")


class Stopped(RuntimeError):
    """A run that must not go on; the message is a sentence."""


# Before the first step ------------------------------------------------------------------------------


def base_problem(folder: Path) -> str:
    """Why a folder is no model to start from, as a sentence; empty when it looks like one."""
    if not folder.is_dir():
        return f"The base {folder} is not a folder."
    try:
        about = json.loads((folder / "config.json").read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return f"The base {folder} is not a model: it has no config.json that can be read."
    if not isinstance(about, dict) or not about.get("model_type"):
        return f"The base {folder} is not a model: its config.json names no model_type."
    if not any((folder / name).is_file() for name in WEIGHTS):
        return f"The base {folder} is not a model: it has no {WEIGHTS[0]}."
    if not (folder / "tokenizer.json").is_file():
        return f"The base {folder} has no tokenizer.json, so nothing says how it reads words."
    return ""


def check_base(folder: Path) -> None:
    """Raise `Stopped` unless a folder looks like a model."""
    if problem := base_problem(folder):
        raise Stopped(problem)


def missing_device(device: str, *, root: Path = Path("/dev")) -> str:
    """Why this machine has no such device, as a sentence; empty where nothing speaks against it.

    Looks at device files alone, so that whoever asks need not load torch.
    """
    kind, _, number = device.partition(":")
    if kind in ("auto", "cpu"):
        return ""
    if kind != "cuda" or not (number or "0").isdecimal():
        return f"There is no device {device!r}; a run learns on cpu, on cuda:0 and so on, or on auto."
    if not (root / f"nvidia{number or 0}").exists():
        return f"The device {device!r} is not there: this machine shows no graphics processor {number or 0}."
    return ""


def choose_device(device: str) -> None:
    """Let torch see the device of a run alone. Raises `Stopped` where it is not there; call before torch is used."""
    if problem := missing_device(device):
        raise Stopped(problem)
    kind, _, number = device.partition(":")
    if kind == "cpu":
        os.environ["CUDA_VISIBLE_DEVICES"] = ""
    elif kind == "cuda":
        os.environ["CUDA_VISIBLE_DEVICES"] = number or "0"


def check_room(folder: Path, *, bytes_needed: int = 0) -> None:
    """Raise `Stopped` where the disk has too little room for what a run writes."""
    free, needed = shutil.disk_usage(folder).free, LEAST_FREE_BYTES + bytes_needed
    if free < needed:
        raise Stopped(
            f"The disk of {folder} has {free / 1e6:,.0f} MB free and this run needs {needed / 1e6:,.0f}: make room first."
        )


def check_reward(rewards: Sequence[float], *, name: str) -> None:
    """Raise `Stopped` where every probed game is paid the same: there is nothing to learn from."""
    if rewards and max(rewards) - min(rewards) < 1e-12:
        raise Stopped(
            f"The reward {name!r} was {rewards[0]:g} in each of {len(rewards)} games of the demonstrators: "
            "without spread there is nothing to learn. Choose another reward, market or opponents."
        )


# On the way -----------------------------------------------------------------------------------------


def check_loss(loss: float, *, step: int, stage: str) -> None:
    """Raise `Stopped` for a loss that is no number."""
    if not math.isfinite(loss):
        raise Stopped(
            f"The loss of {stage} was {loss:g} at step {step}: the run stops here, and what it saved before stays. "
            "A lower learning rate usually helps."
        )


class Spread:
    """Counts rollouts whose groups' rewards never differ."""

    def __init__(self) -> None:
        self.flat = 0

    def look(self, zero_spread_groups: float, *, reward: float) -> None:
        """One more rollout. Raises `Stopped` after `FLAT_ROLLOUTS` in a row without any spread."""
        self.flat = self.flat + 1 if zero_spread_groups >= 1.0 else 0
        if self.flat >= FLAT_ROLLOUTS:
            raise Stopped(
                f"In {self.flat} rollouts in a row all games of every group were paid the same (the mean is {reward:g}): "
                "without spread nothing can be learned, so the run stops."
            )
