"""Lessons that a language model imitates, as they lie in a run's folder: JSON lines, one game a line.

Here: writing and reading `data/lessons.jsonl`. Not here: which conversations they are (`training.imitation`), token ids.

Contract: a line is the decisions of one side of one conversation, each `[messages, tools, answer]`: what is asked and the
assistant's message. What is read has the hash that the run's configuration names. No Django, no torch.
"""

import json
from collections.abc import Iterable, Sequence
from pathlib import Path

from training import run_data
from training.config import ConfigError
from training.language.demonstrations import Demonstrations, Row

FILE = "lessons.jsonl"


def encode(games: Iterable[Sequence[Row]]) -> bytes:
    """The lines of a file."""
    lines = (json.dumps([[row.messages, row.tools, row.answer] for row in game], ensure_ascii=False) for game in games)
    return "".join(f"{line}\n" for line in lines).encode("utf-8", errors="replace")


def write(folder: Path, content: bytes) -> None:
    """Put the lines into a run's folder, whole or not at all."""
    run_data.write(folder, FILE, content)


def read(folder: Path, *, sha256: str) -> Demonstrations:
    """The lessons of a run. Raises `ConfigError` where they are not those that it was launched with, or none."""
    content = run_data.read(folder, FILE, sha256=sha256)
    games = [
        [Row(messages, tuple(tools), answer) for messages, tools, answer in json.loads(line)]
        for line in content.decode("utf-8").split("\n")
        if line
    ]
    if not any(games):
        raise ConfigError("The data set to imitate is empty: nothing can be learned from it.")
    return Demonstrations(games, len(games), [])
