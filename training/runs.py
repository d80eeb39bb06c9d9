"""The folder of a run: configuration, versions, metrics and stages, for people and for resuming.

Contract: a folder belongs to one configuration; another one is refused rather than mixed in.
Everything is JSON or JSON lines; a line is written whole and flushed.
"""

import json
import os
import platform
import resource
import shutil
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path
from typing import Any, Protocol

import msgspec

from training.config import ConfigError

STAGES = ("exploits", "sft", "grpo", "evaluate")
"""Of a whole run, in order; each leaves `STAGE.json`."""
LANGUAGE_STAGES = ("sft", "grpo", "judge")
"""Of a language model's run, likewise; one without rollouts has no `grpo`."""

SAMPLES = "samples.jsonl"
"""Games that can be read while a run trains."""
MOST_SAMPLES = 300

PACKAGES = ("torch", "transformers", "trl", "datasets", "accelerate", "numpy")


class Configured(Protocol):
    """What a run depends on: plain data with a hash, such as `training.config.RunConfig`."""

    @property
    def sha256(self) -> str:
        """Hash of all of it."""
        ...


def folder(name: str) -> Path:
    """Where a run lives: `runs/NAME` under PARLEY_VAR, or under `var` here."""
    return Path(os.environ.get("PARLEY_VAR", "var")) / "runs" / name


def begin(path: Path, config: Configured) -> None:
    """Make the folder and write down what is about to run. Raises `ConfigError` for another run's."""
    path.mkdir(parents=True, exist_ok=True)
    file = path / "config.json"
    if file.exists() and json.loads(file.read_text())["sha256"] != config.sha256:
        raise ConfigError(f"{path} holds a run with another configuration; choose another name or folder.")
    about = {
        "sha256": config.sha256,
        "config": msgspec.to_builtins(config),
        "versions": {package: version(package) for package in PACKAGES},
        "python": platform.python_version(),
        "machine": platform.machine(),
    }
    _write(file, about)


def record(path: Path, stage: str, figures: dict[str, Any]) -> None:
    """Write a stage's figures."""
    _write(path / f"{stage}.json", figures)


def _write(file: Path, document: dict[str, Any]) -> None:
    """Replace a file at once: whoever is ended while writing leaves the old one, or none."""
    fresh = file.with_suffix(".new")
    fresh.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    fresh.replace(file)


def append(path: Path, line: dict[str, Any]) -> None:
    """Add one line to the run's metrics."""
    with (path / "metrics.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps({"at": round(time.time(), 3), **line}) + "\n")


def cut_steps(path: Path, *, after_step: int) -> None:
    """Forget what imitation measured after an update: a resumed stage measures it again."""
    own = ("imitate", "look")
    kept = [line for line in metrics(path) if line["kind"] not in own or line["step"] <= after_step]
    (path / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in kept), encoding="utf-8")


def cut(path: Path, *, after_rollout: int) -> None:
    """Forget what was measured after a rollout: a resumed run measures it again."""
    kept = [line for line in metrics(path) if line["rollout"] <= after_rollout]
    (path / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in kept), encoding="utf-8")
    file = path / SAMPLES
    if file.exists():
        read = [game for game in reversed(samples(path, last=MOST_SAMPLES)) if game["rollout"] <= after_rollout]
        file.write_text("".join(json.dumps(game) + "\n" for game in read), encoding="utf-8")


def add_line(file: Path, line: dict[str, Any]) -> None:
    """Add one line of JSON to a file of the run."""
    with file.open("a", encoding="utf-8") as opened:
        opened.write(json.dumps(line, ensure_ascii=False) + "\n")


def append_sample(path: Path, sample: dict[str, Any]) -> None:
    """Add one game to what can be read while the run trains."""
    with (path / SAMPLES).open("a", encoding="utf-8") as file:
        file.write(json.dumps(sample) + "\n")


def samples(path: Path, *, last: int) -> list[dict[str, Any]]:
    """The newest games, newest first; a line that is still being written is not there yet."""
    file = path / SAMPLES
    if not file.exists():
        return []
    *whole, _unfinished = file.read_text(encoding="utf-8").split("\n")
    return [json.loads(line) for line in reversed(whole[-last:])]


def lines(file: Path) -> list[dict[str, Any]]:
    """The lines of JSON in a file, without one that is still being written; none where there is no file."""
    if not file.exists():
        return []
    *whole, _unfinished = file.read_text(encoding="utf-8").split("\n")
    return [json.loads(line) for line in whole]


def metrics(path: Path) -> list[dict[str, Any]]:
    """The run's metrics so far, without a line that is still being written or was cut off."""
    return lines(path / "metrics.jsonl")


def figures(path: Path, stage: str) -> dict[str, Any] | None:
    """A stage's figures; None while it is not done."""
    file = path / f"{stage}.json"
    return json.loads(file.read_text(encoding="utf-8")) if file.exists() else None


@contextmanager
def whole(path: Path) -> Iterator[Path]:
    """A folder that takes the place of `path` once it is finished; after an error `path` is as it was before."""
    aside = path.parent / ".drafts"  # Out of sight of whoever lists the folders beside `path`.
    with _PLACING:
        aside.mkdir(parents=True, exist_ok=True)
        work = Path(tempfile.mkdtemp(prefix=f"{path.name}.", dir=aside))  # Two at a time have one each.
    draft, old = work / "new", work / "old"
    draft.mkdir()
    try:
        yield draft
        with _PLACING:
            _place(draft, path, old)
    finally:
        with _PLACING:
            shutil.rmtree(work, ignore_errors=True)
            if not any(aside.iterdir()):
                aside.rmdir()


_PLACING = threading.Lock()


def _place(draft: Path, path: Path, old: Path) -> None:
    """Put `draft` where `path` is, or leave `path` as it was."""
    if path.exists():
        path.rename(old)
    try:
        draft.rename(path)
    except OSError:
        if old.exists() and not path.exists():
            old.rename(path)
        raise


def enter(path: Path, stage: str) -> None:
    """Say which stage is under way; an empty name when none is."""
    (path / "stage").write_text(stage, encoding="utf-8")


def carry_out(path: Path, work: Mapping[str, Callable[[], dict[str, Any]]], *, peak_bytes: Callable[[], int]) -> None:
    """Do the stages in order; each leaves its figures with the time and the memory that it took."""
    for name, does in work.items():
        enter(path, name)
        started = time.monotonic()
        found = does()
        record(path, name, found | {"wall_seconds": round(time.monotonic() - started, 1), "peak_bytes": peak_bytes()})
    enter(path, "")


def peak_bytes() -> int:
    """The most memory that this process has held so far: what the site expects of the next run."""
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def stage(path: Path) -> str:
    """The stage under way, for whoever watches."""
    file = path / "stage"
    return file.read_text(encoding="utf-8") if file.exists() else ""
