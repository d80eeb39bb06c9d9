"""Language models, trained, judged and published: `python -m training.language WHAT FILE`.

    train   FILE [FILE …] [--resume]        imitation, then reinforcement where the file asks for it
    judge   FILE [--stage base|sft|grpo] [--agent SLUG] [--scenarios N] [--part K/N]
    publish FILE --slug SLUG --title TITLE [--to FOLDER] [--replace] [--role seller|buyer]…

`accelerate launch … -m training.language train FILE` spreads the training over processes (docs/training.md).
What cannot be run ends with a sentence and status 2.
"""

import argparse
import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from agents import adapters, backends, registry
from agents.backends.config import BackendConfigError
from agents.backends.config import read as read_backends
from markets.engine.protocol import Role
from training import guards, runs
from training.config import ConfigError
from training.language import base, imitation, judging, reinforcement
from training.language.config import LanguageRun, load
from training.language.playing import LocalWriter
from training.language.publish import publish
from training.tokenizer import SetupError


def main(arguments: Sequence[str] | None = None) -> int:
    """Do what is asked; the exit status."""
    asked = _parser().parse_args(arguments)
    what = {"train": _train, "judge": _judge, "publish": _publish}[asked.what]
    try:
        for file in asked.config:
            config = load(file, tuple(asked.set))
            found = what(asked, config, file, asked.out or runs.folder(config.name))
            if _first():
                sys.stdout.write(json.dumps(found) + "\n")
    except (ConfigError, SetupError, BackendConfigError, registry.UnknownAgent, guards.Stopped) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    return 0


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m training.language", description=__doc__.split("\n")[0])
    parser.add_argument("what", choices=("train", "judge", "publish"))
    parser.add_argument("config", type=Path, nargs="+", help="run file, TOML or JSON")
    parser.add_argument("--out", type=Path, default=None, help="folder of the run (default: var/runs/NAME)")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    parser.add_argument("--resume", action="store_true", help="go on from the last checkpoint of the run")
    parser.add_argument("--stage", choices=("base", "sft", "grpo"), default=None, help="judge this one, not the last")
    parser.add_argument("--agent", default="", help="judge an agent of the registry in the model's place")
    parser.add_argument("--grammar", action="store_true", help="hold the answers to the protocol's form")
    parser.add_argument("--scenarios", type=int, default=None)
    parser.add_argument(
        "--part",
        type=_part,
        default=(1, 1),
        metavar="K/N",
        help="judge the K-th of N parts of the games; whichever part ends last reports on all",
    )
    parser.add_argument("--slug", default="")
    parser.add_argument("--title", default="")
    parser.add_argument("--to", type=Path, default=None, help="folder of adapters (default: training/adapters)")
    parser.add_argument("--replace", action="store_true")
    parser.add_argument(
        "--role",
        action="append",
        default=[],
        choices=[role.value for role in Role],
        help="a seat that it is good enough for; may be named repeatedly (default: all that it learned)",
    )
    return parser


def _part(text: str) -> tuple[int, int]:
    """`2/3` as numbers."""
    number, _, of = text.partition("/")
    if not (number.isdecimal() and of.isdecimal() and 1 <= int(number) <= int(of)):
        raise argparse.ArgumentTypeError(f"{text!r} is no part: 1/2 is the first of two")
    return int(number), int(of)


def _first() -> bool:
    """Whether this is the first of several processes, which alone writes."""
    return os.environ.get("RANK", "0") == "0"


def _train(asked: argparse.Namespace, config: LanguageRun, file: Path, folder: Path) -> dict[str, Any]:
    guards.choose_device(config.device)
    stages = {"sft": imitation.train} | ({"grpo": reinforcement.train} if config.grpo.rollouts else {})
    if _first():
        runs.begin(folder, config)
    found: dict[str, Any] = {}
    for stage, train in stages.items():
        if asked.resume and runs.figures(folder, stage) is not None:
            continue
        if _first():
            runs.enter(folder, stage)
        found[stage] = train(config, folder, resume=asked.resume)
        if _first():
            runs.record(folder, stage, found[stage])
    if _first():
        runs.enter(folder, "")
    return found


def _judge(asked: argparse.Namespace, config: LanguageRun, file: Path, folder: Path) -> dict[str, Any]:
    if asked.scenarios is not None:
        config = msgspec.structs.replace(
            config, judging=msgspec.structs.replace(config.judging, scenarios=asked.scenarios)
        )
    if asked.agent:
        backends.configure(read_backends(os.environ))
        name, found = asked.agent, judging.judge_agent(config, registry.get(asked.agent))
    else:
        stages = [stage for stage in ("grpo", "sft") if (folder / stage).is_dir()]
        stage = asked.stage or next(iter(stages), "base")
        ready = (
            base.load(config) if stage == "base" else base.merged(base.learned(config, folder / stage, trainable=False))
        )
        name = f"{stage}-in-form" if asked.grammar else stage
        writer = LocalWriter(ready.model, ready.tokenizer, together=config.sampling.together, remembers=True)
        file_of_games = folder / f"judge-{name}.jsonl"
        folder.mkdir(parents=True, exist_ok=True)
        if asked.part == (1, 1):
            file_of_games.unlink(missing_ok=True)
        found = judging.judge(
            config,
            writer,
            ready.tokenizer,
            grammar=asked.grammar,
            told=lambda done: _add(file_of_games, judging.line(done)),
            part=asked.part,
        )
        if asked.part != (1, 1):
            games = {game["seed"]: game for game in runs.lines(file_of_games)}
            if len(games) < config.judging.scenarios:
                return {name: found}
            found = judging.figures_of(list(games.values()), seconds=found["seconds"])
    folder.mkdir(parents=True, exist_ok=True)
    runs.record(folder, "judge", (runs.figures(folder, "judge") or {}) | {name: found})
    return {name: found}


def _add(file: Path, document: dict[str, Any]) -> None:
    with file.open("a", encoding="utf-8", buffering=1 << 20) as games:  # Games end in threads; a line is one write.
        games.write(json.dumps(document, ensure_ascii=False) + "\n")


def _publish(asked: argparse.Namespace, config: LanguageRun, file: Path, folder: Path) -> dict[str, Any]:
    if not asked.slug or not asked.title:
        raise ConfigError("Publishing needs --slug and --title.")
    card = publish(
        config,
        folder,
        asked.to or adapters.SHIPPED,
        file=file,
        slug=asked.slug,
        title=asked.title,
        replace=asked.replace,
        roles=[Role(name) for name in asked.role],
    )
    made: dict[str, Any] = msgspec.to_builtins(card)
    return made


if __name__ == "__main__":
    raise SystemExit(main())
