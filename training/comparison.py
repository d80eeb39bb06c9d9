"""A checkpoint beside rules on the same games. `python -m training.comparison FILE [--run FOLDER] [--axes] [--json]`.

Here: one row for each way of playing a seat: the learner (likeliest answers and drawn ones), what it imitated, its
imitator, agents by slug, and the fixed sequence that the search for tricks found. Not here: the search
(`training.exploits`), what has to be reached (`training.verify`).

Contract: all rows of an axis are about the same games of one split, so that they can be told apart by pairs.
`share` is the mean reward over all games, its interval a 95 % bootstrap over games; the conduct of a row is by
the names of `markets.engine.measures`. Held-out axes are those of `markets.engine.splits`, each by itself;
`buyer-type` seats the held-out buyers.
"""

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import torch

from agents import registry
from agents.play import play, seat
from markets.engine import measures, rewards
from markets.engine.protocol import LogEntry
from markets.engine.scenarios import Family, Scenario
from markets.engine.seeds import derive_seed
from training import evaluation, exploits, held_out, runs
from training import model as models
from training.config import Game, RunConfig, load
from training.demonstrations import demonstrate
from training.environment import draw_table
from training.tokenizer import Codec

RULES = {
    Family.MULTI_BUYER: (
        "chase-highest-bid",
        "random-buyer-ladder",
        "falling-ladder",
        "explore-then-commit",
        "fixed-sequence",
        "optimal-ladder",
        "oracle",
    ),
    Family.CATALOGUE: ("greedy", "serial", "random-match", "re-solved-assignment", "optimal-assignment"),
    Family.BILATERAL: ("linear", "conceder", "boulware", "hardliner", "oracle"),
}
"""Agents that stand beside a learner where none are named."""


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """One way of playing."""

    who: str
    axis: str
    """Empty for the games that were trained on."""
    games: int
    share: float
    low: float
    high: float
    conduct: dict[str, Any]
    intervals: dict[str, tuple[float, float]] = {}
    """Of the quotients in `WITH_INTERVALS`, over a catalogue of several products."""


WITH_INTERVALS = {"allocation_rescaled": measures.allocation_rescaled, "extraction": measures.extraction}
"""Quotients of sums that a seller of several products is compared by."""
RESAMPLES = 200


def intervals(seen: Sequence[measures.Measured], *, seed: int = 0) -> dict[str, tuple[float, float]]:
    """95 % bootstraps over games of the quotients in `WITH_INTERVALS`; one that is undefined is missing."""
    rng, drawn = np.random.default_rng(seed), []
    for _ in range(RESAMPLES):
        games = [seen[k] for k in rng.integers(0, len(seen), len(seen))]
        drawn.append([function(games) for function in WITH_INTERVALS.values()])
    found = {}
    for name, column in zip(WITH_INTERVALS, zip(*drawn, strict=True), strict=True):
        if known := [value for value in column if value is not None]:
            low, high = np.quantile(known, [0.025, 0.975])
            found[name] = (float(low), float(high))
    return found


def by_agent(game: Game, slug: str, *, split: str, count: int, axis: str = "") -> Row:
    """An agent on the learner's seat."""
    spec = registry.get(slug)

    def game_number(k: int) -> tuple[Scenario, tuple[LogEntry, ...]]:
        table = draw_table(game, derive_seed(split, k))
        return table.scenario, play(table.scenario, {**table.opponents, table.learner: seat(spec)}).log

    return _row(game, slug, axis, [game_number(k) for k in range(count)])


def by_plan(game: Game, plan: exploits.Plan, *, split: str, count: int, axis: str = "") -> Row:
    """The fixed sequence of a search."""
    played = list(exploits.played(exploits.sequence(plan), game, split=split, count=count))
    return _row(game, "best fixed sequence", axis, [(episode.scenario, episode.log) for episode in played])


def by_teachers(config: RunConfig, *, count: int) -> Row:
    """What was imitated, in games of its own."""
    played = demonstrate(
        config.game, episodes=count, seed=config.seed, habits=config.sft.habits, teachers=config.sft.teachers
    )
    return _row(config.game, "demonstrators", "", [(each.episode.scenario, each.episode.log) for each in played])


def by_model(
    checkpoint: Path, game: Game, who: str, *, split: str, count: int, greedy: bool, seed: int, axis: str = ""
) -> Row:
    """A checkpoint."""
    model, tokenizer = models.load(checkpoint)
    result = evaluation.evaluate(model, Codec(tokenizer), game, split=split, episodes=count, greedy=greedy, seed=seed)
    played = [(trajectory.episode.scenario, trajectory.episode.log) for trajectory in result.trajectories]
    return _row(game, f"{who}, {'likeliest' if greedy else 'drawn'}", axis, played)


def _row(game: Game, who: str, axis: str, played: Sequence[tuple[Scenario, tuple[LogEntry, ...]]]) -> Row:
    worth = rewards.by_name(game.reward, role=game.role)
    paid = evaluation.mean([worth(scenario, log) for scenario, log in played])
    seen = [measures.measure(scenario, log) for scenario, log in played]
    return Row(
        who=who,
        axis=axis,
        games=len(played),
        share=paid.mean,
        low=paid.low,
        high=paid.high,
        conduct=evaluation.conduct_of(seen, game.role),
        intervals=intervals(seen) if game.family is Family.CATALOGUE else {},
    )


def plan_of(run: Path) -> exploits.Plan | None:
    """The sequence that a run's search for tricks found."""
    found = runs.figures(run, "exploits")
    for row in found["rows"] if found else ():
        if row["trick"] == exploits.FIXED_SEQUENCE:
            steps = (step.split(":") for step in row["detail"].split())
            return [(int(buyer) - 1, int(number)) for buyer, number in steps]
    return None


def table(config: RunConfig, run: Path, *, split: str, count: int, agents: Sequence[str], moved: bool) -> Iterator[Row]:
    """Every row, those of the trained games first."""
    stages = [stage for stage in ("base", "sft", "grpo") if (run / stage).is_dir()]
    checkpoints = {stage: run / stage for stage in stages} or {"learner": run}
    plan = plan_of(run)
    yield by_teachers(config, count=count)
    for axis, game in {"": config.game, **(held_out.axes(config.game) if moved else {})}.items():
        for who, checkpoint in checkpoints.items():
            for greedy in (True, False):
                yield by_model(
                    checkpoint, game, who, split=split, count=count, greedy=greedy, seed=config.seed, axis=axis
                )
        if plan is not None:
            yield by_plan(game, plan, split=split, count=count, axis=axis)
        for slug in agents:
            yield by_agent(game, slug, split=split, count=count, axis=axis)


SHOWN = (
    "deal_rate",
    "surplus_share",
    "coverage",
    "top_buyer_rate",
    "fixation",
    "opening",
    "overshoot_rate",
    "allocation_rescaled",
    "extraction",
)
"""Conduct that a printed table has columns for."""


def line(row: Row) -> str:
    """A row for people."""
    within = {name: " [{:.3f}, {:.3f}]".format(*ends) for name, ends in row.intervals.items()}
    conduct = " ".join(f"{name} {row.conduct[name]:.3f}{within.get(name, '')}" for name in SHOWN if name in row.conduct)
    return f"{row.axis or 'trained on':16} {row.who:28} {row.share:.4f} [{row.low:.4f}, {row.high:.4f}]  {conduct}"


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare a run's models with rules on the same games."""
    parser = argparse.ArgumentParser(prog="python -m training.comparison", description=main.__doc__)
    parser.add_argument("config", type=Path)
    parser.add_argument("--run", type=Path, default=None, help="folder of the run, or of one checkpoint")
    parser.add_argument("--agents", default="", help="slugs, with commas between them, instead of the usual ones")
    parser.add_argument("--games", type=int, default=1000, help="games of each row")
    parser.add_argument("--split", choices=("watch", "choose", "final"), default="choose")
    parser.add_argument("--axes", action="store_true", help="each held-out axis, too")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    asked = parser.parse_args(arguments)
    config = load(asked.config, tuple(asked.set))
    torch.set_num_threads(config.threads)
    agents = tuple(asked.agents.split(",")) if asked.agents else RULES[config.game.family]
    write: Callable[[Row], str] = (lambda row: json.dumps(msgspec.to_builtins(row))) if asked.json else line
    run = asked.run or runs.folder(config.name)
    for row in table(config, run, split=asked.split, count=asked.games, agents=agents, moved=asked.axes):
        sys.stdout.write(write(row) + "\n")
        sys.stdout.flush()
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
