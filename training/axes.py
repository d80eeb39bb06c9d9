"""A checkpoint on each held-out axis by itself, for the last stage of a run and the dashboard of quality.

Here: a checkpoint's figures on each axis as rows of `evaluate.json`. Not here: which axes a game has (`training.held_out`),
rules beside a learner (`training.comparison`).

Contract: likeliest answers, on games of the `choose` split. An axis changes nothing but itself. A row is
`{"axis", "stage", "episodes", "share", "share_low", "share_high", "deal_rate", "allocation_quality",
"refused_rate"}`.
"""

from pathlib import Path
from typing import Any

from training import evaluation, held_out
from training import model as models
from training.config import RunConfig
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


def measured(checkpoint: Path, config: RunConfig, *, stage: str) -> list[dict[str, Any]]:
    """A row for each axis."""
    model, tokenizer = models.load(checkpoint)
    codec = Codec(tokenizer)
    rows = []
    for axis, game in held_out.moved(config).items():
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
