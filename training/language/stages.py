"""A whole run of a language model in one process: imitation, reinforcement where it is asked for, judging.

`python -m training.stages FILE` comes here where FILE is a language model's. What stops a run is looked at first, in the
order of what it costs to find out; what is under way stands in the folder's `stage` file, what a stage found in `STAGE.json`.
Not here: several processes (`python -m training.language train` under `accelerate launch`). No Django.

Contract: the base and every stage that learned are judged on the same held-out games. With `resume` what is done is not done
again, and a stage goes on from its last checkpoint.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import torch

from markets.engine import rewards
from training import guards, model_opponents, runs
from training.capacity import disk_bytes, shape
from training.config import ConfigError
from training.language import base, imitation, judging, lessons, reinforcement, watching
from training.language.config import LanguageRun
from training.language.demonstrations import demonstrate
from training.language.playing import LocalWriter

PROBED_GAMES = 16
"""Games of the teachers that a reward is probed on."""


def run(config: LanguageRun, folder: Path, *, resume: bool) -> None:
    """Every stage that is not done yet, in order."""
    runs.begin(folder, config)
    stages = tuple(stage for stage in runs.LANGUAGE_STAGES if stage != "grpo" or config.grpo.rollouts)
    waiting = [stage for stage in stages if not resume or runs.figures(folder, stage) is None]
    if waiting:
        check(config, folder)
        model_opponents.seat_models(folder, calls=config.market.model_calls, tokens=config.market.model_tokens)
    quiet = msgspec.structs.replace(
        config, market=msgspec.structs.replace(config.market, opponents=model_opponents.quiet(config.market.opponents))
    )
    work: dict[str, Callable[[], dict[str, Any]]] = {
        "sft": lambda: imitation.train(quiet, folder, resume=resume),
        "grpo": lambda: reinforcement.train(config, folder, resume=resume),
        "judge": lambda: look(quiet, folder, resume=resume),
    }
    runs.carry_out(folder, {stage: work[stage] for stage in waiting}, peak_bytes=_peak_bytes)


def _peak_bytes() -> int:
    """Of this process or of its device, whichever held more."""
    return max(runs.peak_bytes(), torch.cuda.max_memory_allocated()) if torch.cuda.is_available() else runs.peak_bytes()


def check(config: LanguageRun, folder: Path) -> None:
    """Stop before any time is spent where the run cannot come to anything. Raises `Stopped`, `SetupError`, `ConfigError`."""
    guards.choose_device(config.device)
    model = shape(config.base)
    guards.check_room(folder, bytes_needed=0 if model is None else disk_bytes(config, model))
    if config.data:
        lessons.read(folder, sha256=config.data)
    base.load(config)
    if config.grpo.rollouts:
        quiet = msgspec.structs.replace(
            config,
            market=msgspec.structs.replace(config.market, opponents=model_opponents.quiet(config.market.opponents)),
        )
        shown = [demonstrate(quiet, number) for number in range(PROBED_GAMES)]
        paid = [
            rewards.by_name(config.grpo.reward, role=each.game.role)(each.game.scenario, each.played.log)
            for each in shown
        ]
        guards.check_reward(paid, name=config.grpo.reward)


def look(config: LanguageRun, folder: Path, *, resume: bool) -> dict[str, Any]:
    """The base and what each stage taught it, on held-out games."""
    learned = [stage for stage in ("sft", "grpo") if (folder / stage).is_dir()]
    if not learned:
        raise ConfigError(f"{folder} holds nothing that was trained.")
    found: dict[str, Any] = {}
    for name in ("base", *learned):
        kept = runs.figures(folder, f"judge-{name}") if resume else None
        if kept is None:
            kept = _judged(config, folder, name)
            runs.record(folder, f"judge-{name}", kept)
        found[name] = kept
    return found


def _judged(config: LanguageRun, folder: Path, name: str) -> dict[str, Any]:
    ready = base.load(config) if name == "base" else base.merged(base.learned(config, folder / name, trainable=False))
    if torch.cuda.is_available():
        ready.model.to("cuda")
    writer = LocalWriter(ready.model, ready.tokenizer, together=config.sampling.together, remembers=True)
    file = folder / f"judge-{name}.jsonl"
    file.unlink(missing_ok=True)

    def told(done: judging.Finished) -> None:
        runs.add_line(file, judging.line(done) | {"game": watching.readable(done)})
        runs.append(folder, {"kind": "judged", "rollout": 0, "of": name, "games": config.judging.scenarios})

    return judging.judge(config, writer, ready.tokenizer, told=told)
