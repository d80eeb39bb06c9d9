"""`python -m training.language train FILE`: see `docs/training.md`.

python -m training.language train   FILE [--resume]      imitation, then reinforcement where the file asks for it
python -m training.language judge   FILE [--model …]     held-out games
python -m training.language publish FILE --slug SLUG --title TITLE
"""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

from training import runs
from training.config import ConfigError
from training.language import imitation
from training.language.config import load
from training.tokenizer import SetupError


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m training.language")
    parser.add_argument("what", choices=["train"])
    parser.add_argument("config", type=Path)
    parser.add_argument("--out", type=Path, default=None)
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--resume", action="store_true")
    asked = parser.parse_args(arguments)
    try:
        config = load(asked.config, tuple(asked.set))
        folder = asked.out or runs.folder(config.name)
        runs.begin(folder, config)
        figures = imitation.train(config, folder, resume=asked.resume)
        runs.record(folder, "sft", figures)
    except (ConfigError, SetupError, imitation.LossError) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    sys.stdout.write(json.dumps(figures) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
