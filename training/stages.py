"""A whole run in one process: imitation, reinforcement, a look at the result.

`python -m training.stages run.json --out FOLDER [--resume]`, started by `training.services` in a
process group of its own. A stage that is done is not done again; reinforcement goes on from its last
checkpoint. What is under way stands in the folder's `stage` file. No Django.
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

import msgspec

from training import evaluation, grpo, runs, sft
from training.config import RunConfig

PR_SET_PDEATHSIG = 1
LOOK_EPISODES = 4_000
"""Games of the `choose` split behind the figures of a run's page."""


def run(config: RunConfig, folder: Path, *, resume: bool) -> None:
    """Every stage that is not done yet, in order."""
    runs.begin(folder, config)
    todo: tuple[tuple[str, Callable[[], dict[str, Any]]], ...] = (
        ("sft", lambda: sft.train(config, folder)),
        ("grpo", lambda: grpo.train(config, folder, resume=resume)),
        ("evaluate", lambda: look(config, folder)),
    )
    for stage, work in todo:
        if resume and runs.figures(folder, stage) is not None:
            continue
        runs.enter(folder, stage)
        runs.record(folder, stage, work())
    runs.enter(folder, "")


def look(config: RunConfig, folder: Path) -> dict[str, Any]:
    """The imitator and the learner on games that neither trained on."""
    return {
        stage: evaluation.report(folder / stage, config, split="choose", episodes=LOOK_EPISODES)
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
    """Run the stages of a configuration that is kept as JSON."""
    parser = argparse.ArgumentParser(prog="python -m training.stages", description=main.__doc__)
    parser.add_argument("config", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--resume", action="store_true")
    parser.add_argument("--watcher", type=int, default=None, help="process that this one must not outlive")
    asked = parser.parse_args(arguments)
    if asked.watcher is not None:
        die_with(asked.watcher)
    config = msgspec.json.decode(asked.config.read_bytes(), type=RunConfig)
    run(config, asked.out, resume=asked.resume)
    sys.stdout.write(json.dumps({"run": config.name, "done": True}) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
