"""What a language model's run needs of a machine, and what this machine has.

Here: weights, memory, room on the disk and floating-point work, reckoned from a run's configuration and its base; the
memory of this machine and of its graphics processors. Not here: seconds (`training.expectations`), refusing (`training.services`).

Contract: nothing is loaded and nothing written; no Django and no torch. Memory is reckoned from what a run holds at once: its
weights, for what learns also gradients and the optimiser's two moments, and the activations of one batch. It is an
estimate, and said to be one.
"""

import json
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from agents.inference.embedded import NAME, model_file
from training.language.config import EMBEDDED, LanguageRun

LIBRARIES_BYTES = 700_000_000
"""What a process holds once torch and transformers are loaded."""
WITHOUT_A_CARD = 1_500_000_000
"""Weights beyond which a processor alone would take weeks."""


class Shape(NamedTuple):
    """The size of a language model."""

    title: str
    parameters: int
    layers: int
    hidden: int
    feed_forward: int
    words: int


SHAPES = {
    EMBEDDED: Shape(NAME, 134_515_008, 30, 576, 1_536, 49_152),
    "Qwen/Qwen3-8B": Shape("Qwen3-8B", 8_190_735_360, 36, 4_096, 12_288, 151_936),
    "Qwen/Qwen3-14B": Shape("Qwen3-14B", 14_768_307_200, 40, 5_120, 17_408, 151_936),
}
"""Bases whose size is known without a folder: the embedded model's by its file, the others' as published."""


def shape(base: str) -> Shape | None:
    """The size of a base; None where neither its name nor its folder tells it."""
    if base in SHAPES:
        return SHAPES[base]
    folder = Path(base)
    try:
        about = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        numbers = [int(about[key]) for key in ("num_hidden_layers", "hidden_size", "intermediate_size", "vocab_size")]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    return Shape(folder.name, stored_weights(folder), *numbers)


def stored_weights(folder: Path) -> int:
    """Number of weights in a folder's safetensors, read off their headers; 0 where there are none."""
    return sum(count for file in sorted(folder.glob("*.safetensors")) for count in _shapes(file))


def _shapes(file: Path) -> Iterator[int]:
    with file.open("rb") as opened:
        length = int.from_bytes(opened.read(8), "little")
        if length > file.stat().st_size:
            return
        header = json.loads(opened.read(length) or b"{}")
    for name, about in header.items():
        if name != "__metadata__":
            count = 1
            for size in about["shape"]:
                count *= size
            yield count


def learned_weights(config: LanguageRun, model: Shape) -> int:
    """Weights that learn: all, or an adapter's."""
    rank = config.adapter.rank
    if not rank:
        return model.parameters
    wide = {"gate_proj", "up_proj", "down_proj"}
    a_layer = sum(
        model.hidden + (model.feed_forward if name in wide else model.hidden) for name in config.adapter.targets
    )
    return rank * a_layer * max(0, model.layers - config.adapter.first_layer)


ROWS_OF_A_GAME = 4.5
"""Own moves of a game, as scripted games of up to eight messages have them."""
PACKED = 0.42
"""Part of the tokens of a game's rows that is left once what they have in common is read once (docs/training.md)."""
ROW_TOKENS, ANSWER_TOKENS = 700, 60
"""A question of four parts with its answer, and the answer, where nothing was counted."""


def needed_bytes(
    config: LanguageRun, model: Shape, *, row_tokens: int = ROW_TOKENS, answer_tokens: int = ANSWER_TOKENS
) -> int:
    """The most that a run holds at once, where one process trains on one device."""
    a_weight = 2 if config.precision == "bf16" else 4
    learned = learned_weights(config, model)
    held = model.parameters * a_weight
    # An adapter is kept in single precision; a model that learns as a whole, in its own.
    held += learned * ((a_weight * 3) if not config.adapter.rank else 4 * 4)
    tokens = config.sft.batch * ROWS_OF_A_GAME * PACKED * row_tokens
    wide = tokens**2  # Places of a packed sequence that look at one another.
    answers = config.sft.batch * ROWS_OF_A_GAME
    if config.grpo.rollouts:
        rows = config.grpo.games * config.grpo.group * config.grpo.turns / config.grpo.accumulate
        tokens, wide = max(tokens, rows * row_tokens), max(wide, rows * row_tokens**2)
        answers = max(answers, rows)
    a_token = 2 * (10 * model.hidden + 3 * model.feed_forward)
    deep = 1 if config.adapter.rank == 0 else max(1, model.layers - config.adapter.first_layer)
    kept = tokens * model.layers * model.hidden * 2 if config.adapter.rank == 0 else 0  # Checkpoints between layers.
    seen = wide * (model.hidden / 64) * 4 * deep
    scored = answers * answer_tokens * model.words * 8
    return round(LIBRARIES_BYTES + held + tokens * a_token * deep + kept + seen + scored)


def disk_bytes(config: LanguageRun, model: Shape) -> int:
    """Room that a run's checkpoints and models take: two checkpoints with the optimiser's moments, and a model a stage."""
    learned = learned_weights(config, model)
    stages = 2 if config.grpo.rollouts else 1
    return learned * (2 * 12 + stages * 4)


def machine_bytes() -> int | None:
    """Memory of this machine; None where it does not tell."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:
        return None
    told = dict(line.split(":", 1) for line in lines if ":" in line)
    return int(told["MemTotal"].split()[0]) * 1024 if "MemTotal" in told else None


def card_bytes(number: int) -> int | None:
    """Memory of a graphics processor; None where nothing here tells."""
    program = shutil.which("nvidia-smi")
    if program is None:
        return None
    try:
        told = subprocess.run(
            [program, f"--id={number}", "--query-gpu=memory.total", "--format=csv,noheader,nounits"],
            capture_output=True,
            text=True,
            timeout=5,
            check=True,
        ).stdout
        return int(told.split()[0]) * 1024 * 1024
    except (OSError, ValueError, IndexError, subprocess.SubprocessError):
        return None


def held_bytes(device: str) -> int | None:
    """Memory of a device (`cpu`, `cuda:0`); None where nothing tells."""
    kind, _, number = device.partition(":")
    return card_bytes(int(number or 0)) if kind == "cuda" else machine_bytes()


def has_embedded() -> bool:
    """Whether the embedded model's file is installed."""
    return model_file() is not None


def problem(config: LanguageRun, *, preset_variable: str, device: str, needed: int, model: Shape | None) -> str:
    """Why this machine cannot run it, as a sentence that says what to do; empty where nothing speaks against it."""
    if config.base == EMBEDDED and not has_embedded():
        return "The embedded model is not installed here: run make install, or name a folder to start from."
    if model is not None and device == "cpu" and model.parameters > WITHOUT_A_CARD:
        return (
            f"{model.title} needs a graphics processor with about {needed / 1e9:,.0f} GB, and this machine shows none. Start it on "
            "machines that have some (docs/training.md, One node, several nodes), or choose the preset smollm2 or tiny."
        )
    if config.base != EMBEDDED and not Path(config.base).is_dir():
        return (
            f"The weights of {config.base} are not here: name their folder under Or from a folder, or in the environment variable "
            f"{preset_variable}, and start the site anew."
        )
    held = held_bytes(device)
    if held is not None and needed > held:
        less = (
            "learn from fewer games at once (grpo.games, grpo.group, sft.batch), split a rollout (grpo.accumulate)"
            if config.adapter.rank
            else "teach an adapter instead of the whole model (adapter.rank=8)"
        )
        return (
            f"The run needs about {needed / 1e9:,.1f} GB and {device} has {held / 1e9:,.1f}: {less}, or start it on a larger machine "
            "(docs/training.md)."
        )
    return ""


def flops_a_token(config: LanguageRun, model: Shape) -> float:
    """Floating-point work of learning from one token; reading one takes 2 for each weight."""
    if not config.adapter.rank:
        return 6.0 * model.parameters
    part = max(0, model.layers - config.adapter.first_layer) / model.layers
    return model.parameters * (2.0 + 2.0 * part)
