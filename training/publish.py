"""Makes a run's model an agent: `python -m training.publish FILE.toml --slug SLUG --title TITLE`.

Writes weights, configuration, the run's file, what its stages found and a card into a folder of
checkpoints (`training.publishing`). Here: the command, and measuring a run that was never evaluated.

Contract: measured figures on the card come from the `choose` games, so that publishing never looks at
`final` ones.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from agents.learned.published import SHIPPED, Card
from training import publishing, report, runs
from training.config import RunConfig, load


def publish(
    config: RunConfig, run: Path, folder: Path, *, file: Path, slug: str, title: str, episodes: int, replace: bool
) -> Card:
    """Write `folder/slug` from the folder of a run; the card comes back. Raises `ConfigError`."""
    evaluated = runs.figures(run, "evaluate")
    measured = evaluated["grpo"] if evaluated else report.measured(run / "grpo", config, episodes=episodes)
    return publishing.write(config, run, folder, file=file, slug=slug, title=title, measured=measured, replace=replace)


def main(arguments: Sequence[str] | None = None) -> int:
    """Publish the model of a run."""
    parser = argparse.ArgumentParser(prog="python -m training.publish", description=main.__doc__)
    parser.add_argument("config", type=Path)
    parser.add_argument("--slug", required=True)
    parser.add_argument("--title", required=True)
    parser.add_argument("--run", type=Path, default=None, help="folder of the run (default: var/runs/NAME)")
    parser.add_argument("--to", type=Path, default=SHIPPED, help="folder of checkpoints")
    parser.add_argument("--episodes", type=int, default=4000)
    parser.add_argument("--replace", action="store_true")
    asked = parser.parse_args(arguments)
    config = load(asked.config)
    card = publish(
        config,
        asked.run or runs.folder(config.name),
        asked.to,
        file=asked.config,
        slug=asked.slug,
        title=asked.title,
        episodes=asked.episodes,
        replace=asked.replace,
    )
    sys.stdout.write(json.dumps(msgspec.to_builtins(card), indent=1) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
