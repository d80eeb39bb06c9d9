"""A checkpoint on each held-out axis by itself, for the last stage of a run and the dashboard of quality.

Here: which axes a run's game has, and their figures as rows of `evaluate.json`. Not here: the axes of games
over products (`training.comparison.axes`, `markets.engine.splits`), rules beside a learner
(`training.comparison`).

Contract: likeliest answers, on games of the `choose` split. An axis changes nothing but itself. A row is
`{"axis", "stage", "episodes", "share", "share_low", "share_high", "deal_rate", "allocation_quality",
"refused_rate"}`.
"""

from pathlib import Path
from typing import Any

import msgspec

from markets.engine import splits
from training import comparison, evaluation
from training import model as models
from training.config import Game, RunConfig
from training.tokenizer import Codec

KEPT = (
    "episodes",
    "share",
    "share_low",
    "share_high",
    "deal_rate",
    "allocation_quality",
    "refused_rate",
)


def moved(config: RunConfig) -> dict[str, Game]:
    """The run's game moved onto each axis that it never trains on, by the axis' name.

    Games over bare values have the buyers that no run meets, and the sizes under `verify` that are not among
    their own; games over products have the axes of `markets.engine.splits`.
    """
    game = config.game
    if game.catalogue:
        return comparison.axes(game)
    found = {
        f"{comparison.BUYER_TYPE}-{slug}": msgspec.structs.replace(game, opponents=(slug,), weights=())
        for slug in splits.BUYER_TYPES
    }
    for size in dict.fromkeys(config.verify.sizes):
        if size not in game.sizes:
            found["size-{}x{}".format(*size)] = msgspec.structs.replace(game, sizes=(size,))
    return found


def measured(checkpoint: Path, config: RunConfig, *, stage: str) -> list[dict[str, Any]]:
    """A row for each axis."""
    model, tokenizer = models.load(checkpoint)
    codec = Codec(tokenizer)
    rows = []
    for axis, game in moved(config).items():
        result = evaluation.evaluate(
            model,
            codec,
            game,
            split="choose",
            episodes=config.evaluation.axis_episodes,
            greedy=True,
            seed=config.seed,
        )
        found = evaluation.figures(result)
        rows.append({"axis": axis, "stage": stage, **{name: found[name] for name in KEPT}})
    return rows
