"""What a run's page and an agent's card say of a checkpoint.

Here: greedy and sampled figures with intervals, asks, transcripts, and what each member of a family
is exactly worth, in one document. Not here: how episodes are played and counted
(`training.evaluation`), the pages themselves.

Contract: figures come from the `choose` split, so that a report never looks at `final` games. The
document is JSON; a key that does not apply is missing, never 0.
"""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import torch

from training import evaluation, exact
from training import model as models
from training.config import RunConfig, load
from training.tokenizer import Codec


def measured(checkpoint: Path, config: RunConfig, *, episodes: int) -> dict[str, Any]:
    """The report of a checkpoint."""
    model, tokenizer = models.load(checkpoint)
    codec = Codec(tokenizer)
    found: dict[str, Any] = {"split": "choose"}
    for greedy in (True, False):
        result = evaluation.evaluate(
            model, codec, config.game, split="choose", episodes=episodes, greedy=greedy, seed=config.seed
        )
        found["greedy" if greedy else "sampled"] = evaluation.figures(result)
        if greedy:
            found["transcripts"] = [msgspec.to_builtins(each) for each in evaluation.transcripts(result, codec)]
    if exact.applies(config.game):
        found |= known_exactly(model, codec, config)
    return found


def known_exactly(model: Any, codec: Codec, config: RunConfig) -> dict[str, Any]:
    """References of the one game, or a row per member of a family, those held out of training included."""
    trained = dict.fromkeys(config.game.sizes)
    members = [
        exact.Member(buyers, turns, cost)
        for buyers, turns in sorted(trained | dict.fromkeys(config.verify.sizes))
        for cost in config.verify.costs or config.game.costs
    ]
    if len(members) == 1:
        return {"references": exact.references(config.game.values, *members[0])}
    return {
        "members": [
            {
                **each.member._asdict(),
                "trained": (each.member.buyers, each.member.turns) in trained,
                "greedy": each.share,
                "optimal_ladder": each.optimal,
                "linear_ladder": each.linear,
                "asks": [list(ask) for ask in each.asks],
            }
            for each in exact.greedy(model, codec, config.game, members)
        ]
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """`python -m training.report FILE CHECKPOINT`: the figures of a checkpoint."""
    parser = argparse.ArgumentParser(prog="python -m training.report", description=main.__doc__)
    parser.add_argument("config", type=Path)
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("--episodes", type=int, default=2000)
    parser.add_argument("--transcripts", action="store_true", help="print ten transcripts of the greedy policy")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    asked = parser.parse_args(arguments)
    config = load(asked.config, tuple(asked.set))
    torch.set_num_threads(config.threads)
    found = measured(asked.checkpoint, config, episodes=asked.episodes)
    chosen = found.pop("transcripts")
    sys.stdout.write(json.dumps(found, indent=1) + "\n")
    if asked.transcripts:
        for each in chosen:
            sys.stdout.write(f"\n[{each['chosen']}, game {each['game']}]\n{each['text']}\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
