"""A whole run in one process: a search for tricks, imitation, reinforcement, a look at the result.

`python -m training.stages FILE [--out FOLDER] [--resume]`, FILE a run's TOML or JSON; the site starts
it through `training.services` in a process group of its own. With `--resume` a stage that is done is
not done again, and reinforcement goes on from its last checkpoint. What is under way stands in the
folder's `stage` file; what a stage found stands in `STAGE.json`, and the run's page shows it. No Django.
"""

import argparse
import ctypes
import json
import os
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from training import exploits, grpo, report, runs, sft
from training.config import RunConfig, load

PR_SET_PDEATHSIG = 1


def run(config: RunConfig, folder: Path, *, resume: bool) -> None:
    """Every stage that is not done yet, in order."""
    runs.begin(folder, config)
    work: dict[str, Callable[[], dict[str, Any]]] = {
        "exploits": lambda: tricks(config),
        "sft": lambda: sft.train(config, folder),
        "grpo": lambda: grpo.train(config, folder, resume=resume),
        "evaluate": lambda: look(config, folder),
    }
    for stage in runs.STAGES:
        if resume and runs.figures(folder, stage) is not None:
            continue
        runs.enter(folder, stage)
        runs.record(folder, stage, work[stage]())
    runs.enter(folder, "")


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
    """The imitator and the learner on games that neither trained on."""
    return {
        stage: report.measured(folder / stage, config, episodes=config.evaluation.final_episodes)
        for stage in ("sft", "grpo")
    }


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
    config = load(asked.config, tuple(asked.set))
    run(config, asked.out or runs.folder(config.name), resume=asked.resume)
    sys.stdout.write(json.dumps({"run": config.name, "done": True}) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
