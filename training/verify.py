"""Re-evaluates the shipped checkpoints. `python -m training.verify [--json] [--retrain]`.

Here: one row per checkpoint, pair of (buyers, turns) and way of playing, held against the exact
ladders of `markets.engine.optimum`. Not here: what must be reached (`[verify]` in the run's file).

Contract: games come from the `final` split. A row is `{name, seed, metric, reference, measured,
ci_low, ci_high, ok}`; `measured` is the policy's share of the first best, `reference` the least it
must be. The exit status is 0 only when every row is ok. `--retrain` trains each shipped run again
into its run folder first and evaluates that; a run whose result is already there is not repeated.
"""

import argparse
import json
import sys
import tomllib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import torch

from agents.learned.published import SHIPPED
from training import evaluation, grpo, runs, sft
from training import model as models
from training.config import RunConfig
from training.tokenizer import Codec

RUN_FILE = "run.toml"
"""The configuration that is kept beside a shipped checkpoint's weights."""


def checkpoints(folder: Path) -> list[tuple[Path, RunConfig]]:
    """Shipped checkpoints with the configuration of their run."""
    found = []
    for file in sorted(folder.glob(f"*/{RUN_FILE}")):
        found.append((file.parent, msgspec.convert(tomllib.loads(file.read_text(encoding="utf-8")), RunConfig)))
    return found


def rows(path: Path, config: RunConfig, *, name: str, episodes: int | None = None) -> Iterator[dict[str, Any]]:
    """Every judged figure of one checkpoint."""
    model, tokenizer = models.load(path)
    codec = Codec(tokenizer)
    wanted = config.verify
    for buyers, turns in wanted.sizes or config.game.sizes:
        for cost in wanted.costs or config.game.costs:
            game = msgspec.structs.replace(config.game, sizes=((buyers, turns),), costs=(cost,))
            exact = evaluation.references(game.values, buyers, turns, cost)
            for greedy, least in ((True, wanted.greedy), (False, wanted.sampled)):
                if least <= 0:
                    continue
                result = evaluation.evaluate(
                    model,
                    codec,
                    game,
                    split="final",
                    episodes=episodes or wanted.episodes,
                    greedy=greedy,
                    seed=config.seed,
                )
                share = evaluation.share(result.surplus, result.first_best)
                reference = max(least * exact["optimal_ladder"], exact["linear_ladder"])
                yield {
                    "name": name,
                    "seed": config.seed,
                    "metric": f"{'greedy' if greedy else 'sampled'} share, N={buyers} T={turns} cost={cost:g}",
                    "reference": round(reference, 4),
                    "measured": round(share.mean, 4),
                    "ci_low": round(share.low, 4),
                    "ci_high": round(share.high, 4),
                    "ok": share.mean >= reference,
                    "of_optimum": round(share.mean / exact["optimal_ladder"], 4),
                }


def retrain(config: RunConfig) -> Path:
    """Train a run again in its folder, unless its result is there; the folder of the model."""
    folder = runs.folder(config.name)
    runs.begin(folder, config)
    if not (folder / "sft.json").exists():
        runs.record(folder, "sft", sft.train(config, folder))
    if not (folder / "grpo.json").exists():
        runs.record(folder, "grpo", grpo.train(config, folder, resume=True))
    return folder / "grpo"


def main(arguments: Sequence[str] | None = None) -> int:
    """Re-evaluate the shipped checkpoints."""
    parser = argparse.ArgumentParser(prog="python -m training.verify", description=main.__doc__)
    parser.add_argument("--json", action="store_true", help="a JSON list instead of a table")
    parser.add_argument("--retrain", action="store_true", help="train every shipped run again first")
    parser.add_argument("--episodes", type=int, default=None, help="games per row, instead of the run's own number")
    parser.add_argument("--folder", type=Path, default=SHIPPED)
    asked = parser.parse_args(arguments)
    judged: list[dict[str, Any]] = []
    for path, config in checkpoints(asked.folder):
        torch.set_num_threads(config.threads)
        source = retrain(config) if asked.retrain else path
        for row in rows(source, config, name=path.name, episodes=asked.episodes):
            judged.append(row)
            if not asked.json:
                sys.stdout.write(
                    f"{'ok  ' if row['ok'] else 'LOW '} {row['name']}: {row['metric']}: {row['measured']:.4f} "
                    f"[{row['ci_low']:.4f}, {row['ci_high']:.4f}], at least {row['reference']:.4f}\n"
                )
                sys.stdout.flush()
    if asked.json:
        sys.stdout.write(json.dumps(judged, indent=1) + "\n")
    return 0 if judged and all(row["ok"] for row in judged) else 1


if __name__ == "__main__":
    raise SystemExit(main())
