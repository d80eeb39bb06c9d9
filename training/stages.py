"""A whole run in one process: a search for tricks, imitation, reinforcement, a look at the result.

`python -m training.stages FILE [--out FOLDER] [--resume]`, FILE a run's TOML or JSON; the site starts
it through `training.services` in a process group of its own. With `--resume` a stage that is done is
not done again, and reinforcement goes on from its last checkpoint. What is under way stands in the
folder's `stage` file; what a stage found stands in `STAGE.json`, and the run's page shows it. No Django.
"""

import argparse
import ctypes
import errno
import json
import os
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec

from agents import backends
from agents.backends.config import BackendConfigError
from agents.backends.config import read as read_back_ends
from markets.engine import rewards
from training import axes, dialogues, entered_opponents, exploits, grpo, guards, model_opponents, report, runs, sft
from training.config import ConfigError, RunConfig, load
from training.demonstrations import demonstrate
from training.language.config import is_language_run
from training.tokenizer import SetupError

PR_SET_PDEATHSIG = 1
STOPPED = "Stopped: "
"""What the last line of a run that stopped on purpose starts with."""


def run(config: RunConfig, folder: Path, *, resume: bool) -> None:
    """Every stage that is not done yet, in order."""
    runs.begin(folder, config)
    waiting = [stage for stage in runs.STAGES if not resume or runs.figures(folder, stage) is None]
    if waiting:
        check(config, folder)
        model_opponents.seat_models(folder, calls=config.game.model_calls, tokens=config.game.model_tokens)
    quiet = msgspec.structs.replace(
        config, game=msgspec.structs.replace(config.game, opponents=model_opponents.quiet(config.game.opponents))
    )
    work: dict[str, Callable[[], dict[str, Any]]] = {
        "exploits": lambda: tricks(quiet),
        "sft": lambda: sft.train(quiet, folder),
        "grpo": lambda: grpo.train(config, folder, resume=resume),
        "evaluate": lambda: look(quiet, folder),
    }
    runs.carry_out(folder, {stage: work[stage] for stage in waiting}, peak_bytes=runs.peak_bytes)


def check(config: RunConfig, folder: Path) -> None:
    """Stop before any time is spent where the run cannot come to anything. Raises `Stopped`, `SetupError`, `ConfigError`."""
    guards.choose_device(config.device)
    guards.check_room(folder)
    if config.data and not dialogues.read(folder, sha256=config.data):
        raise ConfigError("The data set to imitate is empty: nothing can be learned from it.")
    sft.start(config)
    reward = rewards.by_name(config.game.reward, role=config.game.role)
    played = demonstrate(
        msgspec.structs.replace(config.game, opponents=model_opponents.quiet(config.game.opponents)),
        episodes=guards.PROBED_GAMES,
        seed=config.seed,
        habits=config.sft.habits,
        teachers=config.sft.teachers,
    )
    guards.check_reward([each.episode.reward(reward) for each in played], name=config.game.reward)


def tricks(config: RunConfig) -> dict[str, Any]:
    """The exploit search against the run's opponents, before anything is trained on them."""
    effort = config.exploits
    rows = exploits.search(
        config.game,
        count=effort.games,
        climb_games=effort.climb_games,
        climb_steps=effort.climb_steps,
        seed=config.seed,
    )
    return {"games": effort.games, "rows": rows}


def look(config: RunConfig, folder: Path) -> dict[str, Any]:
    """The imitator and the learner on games that neither trained on, and on each held-out axis by itself."""
    found: dict[str, Any] = {
        stage: report.measured(folder / stage, config, episodes=config.evaluation.final_episodes)
        for stage in ("sft", "grpo")
    }
    if config.evaluation.axis_episodes:
        found["axes"] = [row for stage in ("sft", "grpo") for row in axes.measured(folder / stage, config, stage=stage)]
    return found


def die_with(watcher: int) -> None:
    """Ask the kernel to end this process when its watcher ends, so that no run is left on a device (Linux)."""
    if not sys.platform.startswith("linux"):
        return
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != watcher:
        raise SystemExit("Whoever watched this run has ended.")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run every stage of a configuration."""
    parser = argparse.ArgumentParser(prog="python -m training.stages", description=main.__doc__)
    parser.add_argument("config", type=Path)
    parser.add_argument("--out", type=Path, default=None, help="folder of the run (default: var/runs/NAME)")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--watcher", type=int, default=None, help="process that this one must not outlive")
    asked = parser.parse_args(arguments)
    if asked.watcher is not None:
        die_with(asked.watcher)
    try:
        name = _run(asked)
    except (ConfigError, SetupError, BackendConfigError, guards.Stopped, rewards.UnknownReward) as problem:
        return _stop(str(problem))
    except OSError as problem:
        if problem.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        return _stop(
            "The disk is full: what was saved before stays, and the run goes on from there once there is room."
        )
    sys.stdout.write(json.dumps({"run": name, "done": True}) + "\n")
    return 0


def _run(asked: argparse.Namespace) -> str:
    """Run what the file asks for; the name of the run."""
    entered_opponents.seat(asked.out or asked.config.parent)
    backends.configure(read_back_ends(os.environ))
    if is_language_run(asked.config):
        from training.language import stages as language  # Loads what only language models need.
        from training.language.config import load as load_language

        model = load_language(asked.config, tuple(asked.set))
        guards.choose_device(model.device)
        language.run(model, asked.out or runs.folder(model.name), resume=asked.resume)
        return model.name
    config = load(asked.config, tuple(asked.set))
    run(config, asked.out or runs.folder(config.name), resume=asked.resume)
    return config.name


def _stop(sentence: str) -> int:
    """Say why the run ends, and give the exit status of a run that was stopped on purpose."""
    sys.stderr.write(f"{STOPPED}{sentence}\n")
    return 2


if __name__ == "__main__":
    raise SystemExit(main())
