"""Re-evaluates the shipped checkpoints. `python -m training.verify [--json] [--retrain]`.

Here: one row per checkpoint, pair of (buyers, turns) and way of playing, held against the exact
ladders of `training.exact`. Not here: what must be reached (`[verify]` in the run's file).

Over a catalogue, where no optimum is known, a row is a mean reward beside agents on the same games, in the trained
games and on each held-out axis.

Contract: games come from the `final` split. A row is `{name, seed, metric, reference, measured,
ci_low, ci_high, ok}`; `measured` is the policy's share of the first best, `reference` the least it
must be. The exit status is 0 only when every row is ok. `--retrain` trains each shipped run again
with each of its seeds and judges those models instead; what it trains lies in run folders of its own
(`verify-NAME-…`), and a stage whose result is there, or a step before the last checkpoint, is not
repeated. `--set` changes the runs that are trained (a smaller budget is another run, in another folder).
"""

import argparse
import json
import sys
import tomllib
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import redirect_stdout
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import torch

from agents.learned.published import SHIPPED
from training import comparison, evaluation, exact, grpo, held_out, runs, sft
from training import model as models
from training.config import ConfigError, Game, RunConfig, apply_overrides
from training.tokenizer import Codec

RUN_FILE = "run.toml"
"""The configuration that is kept beside a shipped checkpoint's weights."""


class Judged(NamedTuple):
    """One figure that is judged."""

    name: str
    checkpoint: Path
    config: RunConfig
    member: exact.Member | None
    """None over a catalogue."""
    greedy: bool
    least: float
    """Share of the optimal ladder's that must be reached; over a catalogue the mean reward."""
    episodes: int
    axis: str = ""
    """The held-out axis, over a catalogue."""


def checkpoints(folder: Path) -> list[tuple[Path, dict[str, Any]]]:
    """Shipped checkpoints with what the file of their run says."""
    return [
        (file.parent, tomllib.loads(file.read_text(encoding="utf-8"))) for file in sorted(folder.glob(f"*/{RUN_FILE}"))
    ]


def configuration(data: dict[str, Any], *, seed: int | None = None, overrides: tuple[str, ...] = ()) -> RunConfig:
    """A run's configuration; with another seed it is another run of the same recipe. Raises `ConfigError`."""
    changed = json.loads(json.dumps(data))
    if seed is not None:
        recipe = data["name"].removesuffix(f"-{data.get('seed', 1)}")
        changed |= {"seed": seed, "name": f"{recipe}-{seed}"}
    apply_overrides(changed, overrides)
    try:
        return msgspec.convert(changed, RunConfig)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{data['name']}: {error}.") from error


def figures(checkpoint: Path, config: RunConfig, *, name: str, episodes: int | None = None) -> Iterator[Judged]:
    """Everything that one checkpoint is judged by."""
    wanted = config.verify
    count = episodes or wanted.episodes
    if config.game.catalogue:
        for axis in ("", *wanted.axes):
            for greedy, least in ((True, wanted.greedy), (False, wanted.sampled)):
                if least > 0:
                    yield Judged(name, checkpoint, config, None, greedy, least, count, axis)
        return
    for buyers, turns in wanted.sizes or config.game.sizes:
        for cost in wanted.costs or config.game.costs:
            for greedy, least in ((True, wanted.greedy), (False, wanted.sampled)):
                if least > 0:
                    member = exact.Member(buyers, turns, cost)
                    yield Judged(name, checkpoint, config, member, greedy, least, count)


def row(judged: Judged) -> dict[str, Any]:
    """Play the `final` games of one figure and judge it."""
    torch.set_num_threads(1)
    if judged.member is None:
        return beside_rules(judged)
    config, (buyers, turns, cost) = judged.config, judged.member
    model, tokenizer = models.load(judged.checkpoint)
    result = evaluation.evaluate(
        model,
        Codec(tokenizer),
        msgspec.structs.replace(config.game, sizes=((buyers, turns),), costs=(cost,)),
        split="final",
        episodes=judged.episodes,
        greedy=judged.greedy,
        seed=config.seed,
    )
    known = exact.references(config.game.values, *judged.member)
    share = evaluation.share(result.surplus, result.first_best)
    reference = max(judged.least * known["optimal_ladder"], config.verify.of_linear * known["linear_ladder"])
    return {
        "name": judged.name,
        "seed": config.seed,
        "metric": f"{'greedy' if judged.greedy else 'sampled'} share, N={buyers} T={turns} cost={cost:g}",
        "reference": round(reference, 4),
        "measured": round(share.mean, 4),
        "ci_low": round(share.low, 4),
        "ci_high": round(share.high, 4),
        "ok": share.mean >= reference,
        "of_optimum": round(share.mean / known["optimal_ladder"], 4),
    }


def beside_rules(judged: Judged) -> dict[str, Any]:
    """The same over a catalogue, where no optimum is known: beside agents on the same games."""
    config, axis = judged.config, judged.axis
    trained = msgspec.structs.replace(config.game, sizes=config.verify.sizes or config.game.sizes, further_values=())
    game = held_out.axes(trained)[axis] if axis else trained
    ways: dict[str, Any] = {"split": "final", "count": judged.episodes}

    def learner(played: Game) -> comparison.Row:
        return comparison.by_model(
            judged.checkpoint, played, judged.name, greedy=judged.greedy, seed=config.seed, **ways
        )

    own = learner(game)
    rules = [comparison.by_agent(game, slug, **ways) for slug in config.verify.above]
    least = config.verify.kept * learner(trained).share if axis else judged.least
    bar = max([rule.share if axis else rule.high for rule in rules], default=least)
    return {
        "name": judged.name,
        "seed": config.seed,
        "metric": f"{'greedy' if judged.greedy else 'sampled'} mean reward, {axis or 'trained games'}",
        "reference": round(max(least, bar), 4),
        "measured": round(own.share, 4),
        "ci_low": round(own.low, 4),
        "ci_high": round(own.high, 4),
        "ok": own.share >= least and (own.share if axis else own.low) > bar,
        "beside": {rule.who: round(rule.share, 4) for rule in rules},
    }


def rows(judged: Sequence[Judged], *, processes: int) -> Iterator[dict[str, Any]]:
    """The rows in order, some of them worked out side by side; one is the same whoever works it out."""
    if processes == 1:
        yield from map(row, judged)
        return
    with ProcessPoolExecutor(processes, mp_context=get_context("spawn")) as pool:
        yield from pool.map(row, judged)


def retrain(config: RunConfig) -> Path:
    """Train a run again, going on from what an earlier try left; the folder of the model."""
    folder = runs.folder(f"verify-{config.name}-{config.sha256[:8]}")
    runs.begin(folder, config)
    with redirect_stdout(sys.stderr):  # The trainers report progress; the output is for rows alone.
        if runs.figures(folder, "sft") is None:
            runs.record(folder, "sft", sft.train(config, folder))
        if runs.figures(folder, "grpo") is None:
            runs.record(folder, "grpo", grpo.train(config, folder, resume=True))
    return folder / "grpo"


def main(arguments: Sequence[str] | None = None) -> int:
    """Re-evaluate the shipped checkpoints."""
    parser = argparse.ArgumentParser(prog="python -m training.verify", description=main.__doc__)
    parser.add_argument("--json", action="store_true", help="a JSON list instead of a table")
    parser.add_argument(
        "--retrain", action="store_true", help="train every shipped run again first, with all its seeds"
    )
    parser.add_argument(
        "--set", action="append", default=[], metavar="KEY=VALUE", help="with --retrain: change the runs"
    )
    parser.add_argument("--episodes", type=int, default=None, help="games per row, instead of the run's own number")
    parser.add_argument("--processes", type=int, default=2, help="rows worked out side by side (default 2)")
    parser.add_argument("--folder", type=Path, default=SHIPPED)
    asked = parser.parse_args(arguments)
    judged: list[Judged] = []
    try:
        for path, data in checkpoints(asked.folder):
            if not asked.retrain:
                judged += figures(path, configuration(data), name=path.name, episodes=asked.episodes)
                continue
            for seed in configuration(data).verify.seeds:
                config = configuration(data, seed=seed, overrides=tuple(asked.set))
                judged += figures(retrain(config), config, name=path.name, episodes=asked.episodes)
    except ConfigError as error:
        parser.error(str(error))
    found = []
    for line in rows(judged, processes=asked.processes):
        found.append(line)
        if not asked.json:
            sys.stdout.write(
                f"{'ok  ' if line['ok'] else 'LOW '} {line['name']}, seed {line['seed']}: {line['metric']}: "
                f"{line['measured']:.4f} [{line['ci_low']:.4f}, {line['ci_high']:.4f}], at least {line['reference']:.4f}\n"
            )
            sys.stdout.flush()
    if asked.json:
        sys.stdout.write(json.dumps(found, indent=1) + "\n")
    return 0 if found and all(line["ok"] for line in found) else 1


if __name__ == "__main__":
    raise SystemExit(main())
