"""What a policy is worth: shares of the first best with intervals, asks, transcripts.

Here: playing a policy on kept-apart games and the figures of it, next to the exact references of
`markets.engine.optimum`. Not here: training, exploit searches (`training.exploits`).

Contract: games are drawn from a named split by number; `train`, `demonstration`, `watch`,
`choose` and `final` never share a game. `final` is looked at once per result and nothing is tuned
on it. Shares are sums over sums (seller's surplus / first best); intervals are 95 % bootstraps
over games.
"""

import argparse
import json
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray

from markets.engine import metrics, optimum, priors
from markets.engine.protocol import MoveRefused, OfferMade, Role
from markets.engine.seeds import derive_seed
from training import model as models
from training.config import Game, RunConfig, load
from training.environment import Episode, draw_table
from training.sampling import Trajectory, play
from training.tokenizer import Codec

Numbers: TypeAlias = NDArray[np.float64]

BATCH = 1024
"""Episodes played at the same time."""


@dataclass(frozen=True)
class Interval:
    """An estimate with its 95 % bootstrap interval."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class Result:
    """A policy's games."""

    trajectories: list[Trajectory]
    outcomes: list[metrics.Outcome]

    @property
    def surplus(self) -> Numbers:
        """Seller's surplus per game, in cents."""
        return np.array([outcome.seller_surplus_cents for outcome in self.outcomes], dtype=float)

    @property
    def first_best(self) -> Numbers:
        """Largest attainable welfare per game, in cents."""
        return np.array([outcome.first_best_cents for outcome in self.outcomes], dtype=float)


def games(game: Game, *, split: str, count: int, start: int = 0) -> list[Episode]:
    """Fresh episodes number `start` and on of a split."""
    return [Episode(draw_table(game, derive_seed(split, k))) for k in range(start, start + count)]


def evaluate(model: Any, codec: Codec, game: Game, *, split: str, episodes: int, greedy: bool, seed: int = 0) -> Result:
    """Play `episodes` games of a split."""
    generator = None if greedy else torch.Generator().manual_seed(derive_seed("evaluation", seed) % 2**63)
    trajectories: list[Trajectory] = []
    for start in range(0, episodes, BATCH):
        batch = games(game, split=split, count=min(BATCH, episodes - start), start=start)
        trajectories += play(model, codec, batch, generator=generator)
    return Result(trajectories, [metrics.outcome(t.episode.scenario, t.episode.log) for t in trajectories])


def share(surplus: Numbers, first_best: Numbers, *, seed: int = 0, resamples: int = 1000) -> Interval:
    """Sum of surpluses / sum of first bests with its bootstrap over games."""
    rng = np.random.default_rng(seed)
    draws = np.empty(resamples)
    for k in range(resamples):
        rows = rng.integers(0, len(surplus), len(surplus))
        draws[k] = surplus[rows].sum() / first_best[rows].sum()
    low, high = np.quantile(draws, [0.025, 0.975])
    return Interval(float(surplus.sum() / first_best.sum()), float(low), float(high))


@lru_cache(maxsize=256)
def references(values: str, buyers: int, turns: int, cost: float) -> dict[str, float]:
    """Exact shares of the first best against threshold buyers."""
    spec = priors.parse_value_spec(values)
    game: dict[str, Any] = {"spec": spec, "rho": 0.0, "buyers": buyers, "cost": cost}
    ladders = {
        "optimal_ladder": optimum.optimal_ladder(turns=turns, **game),
        "linear_ladder": optimum.linear_ladder(turns=turns, **game),
        "one_buyer": optimum.single_buyer_ladder(turns=turns, **game),
        "one_pass": optimum.one_pass(**game),
    }
    return {name: ladder.revenue_share or 0.0 for name, ladder in ladders.items()}


def asks(result: Result) -> list[tuple[tuple[int, int], ...]]:
    """(buyer, price as hundredths of the list price) of every ask, per game."""
    sequences = []
    for trajectory in result.trajectories:
        list_price = trajectory.episode.scenario.products[0].list_price_cents
        sequences.append(
            tuple(
                (entry.event.buyer, round(100 * entry.event.price_cents / list_price))
                for entry in trajectory.episode.log
                if isinstance(entry.event, OfferMade) and entry.event.by is Role.SELLER
            )
        )
    return sequences


def ask_histogram(result: Result, *, width: int = 10) -> dict[str, int]:
    """Number of asks per stretch of prices."""
    counts = Counter(price // width * width for sequence in asks(result) for _, price in sequence)
    return {f"{start}-{start + width - 1}": counts[start] for start in sorted(counts)}


def refused_rate(result: Result) -> float:
    """Refused or unreadable answers / answers."""
    refused = sum(
        isinstance(entry.event, MoveRefused) and entry.event.by is Role.SELLER
        for trajectory in result.trajectories
        for entry in trajectory.episode.log
    )
    return refused / max(1, sum(trajectory.answers for trajectory in result.trajectories))


def figures(result: Result, *, seed: int = 0) -> dict[str, Any]:
    """The numbers of a report."""
    interval = share(result.surplus, result.first_best, seed=seed)
    pooled = metrics.summary(result.outcomes)
    return {
        "episodes": len(result.outcomes),
        "share": interval.mean,
        "share_low": interval.low,
        "share_high": interval.high,
        "deal_rate": pooled.deal_rate,
        "allocation_quality": pooled.allocation_quality,
        "loss_rate": float(np.mean(result.surplus < 0)),
        "refused_rate": refused_rate(result),
        "mean_turns": pooled.mean_turns,
        "asks": ask_histogram(result),
    }


def dialogue_lines(trajectory: Trajectory, codec: Codec) -> str:
    """One episode as text: what was shown and written, and what it came to."""
    words = codec.words([*trajectory.prompt_ids, *trajectory.completion_ids])
    text = " ".join(words).replace(" <|end|>", "\n").replace("\n ", "\n").strip()
    values = ", ".join(f"{own[0] / 100:.2f}" for own in trajectory.episode.scenario.buyer_values_cents)
    outcome = metrics.outcome(trajectory.episode.scenario, trajectory.episode.log)
    deal = f"sold for {outcome.deals[0].price_cents / 100:.2f}" if outcome.deals else "no deal"
    return f"{text}\n= {deal}; hidden values {values}"


def transcripts(result: Result, codec: Codec, *, seed: int = 0) -> str:
    """Ten episodes: the three best, the three worst and four random ones, by share of first best."""
    shares = result.surplus / np.maximum(result.first_best, 1)
    order = np.argsort(shares, kind="stable")
    random_rows = np.random.default_rng(seed).choice(len(order), min(4, len(order)), replace=False)
    parts = []
    for title, rows in (("best", order[::-1][:3]), ("worst", order[:3]), ("random", random_rows)):
        for row in rows:
            parts.append(f"[{title}, game {row}]\n{dialogue_lines(result.trajectories[row], codec)}")
    return "\n\n".join(parts)


def report(checkpoint: Path, config: RunConfig, *, split: str, episodes: int) -> dict[str, Any]:
    """Greedy and sampled figures of a checkpoint, per size where the game has several."""
    model, tokenizer = models.load(checkpoint)
    codec = Codec(tokenizer)
    rows: dict[str, Any] = {"checkpoint": checkpoint.name, "split": split}
    for greedy in (True, False):
        result = evaluate(model, codec, config.game, split=split, episodes=episodes, greedy=greedy, seed=config.seed)
        rows["greedy" if greedy else "sampled"] = figures(result)
    if len(config.game.sizes) == 1 and len(config.game.costs) == 1:
        (buyers, turns), cost = config.game.sizes[0], config.game.costs[0]
        rows["references"] = references(config.game.values, buyers, turns, cost)
    return rows


def most_common_plays(result: Result, *, count: int = 3) -> Sequence[tuple[tuple[tuple[int, int], ...], int]]:
    """The longest ask sequences that occur most often."""
    longest = max((len(sequence) for sequence in asks(result)), default=0)
    return Counter(sequence for sequence in asks(result) if len(sequence) == longest).most_common(count)


def main(arguments: Sequence[str] | None = None) -> int:
    """`python -m training.evaluation FILE.toml CHECKPOINT`."""
    parser = argparse.ArgumentParser(prog="python -m training.evaluation", description=main.__doc__)
    parser.add_argument("config", type=Path)
    parser.add_argument("checkpoint", type=Path)
    parser.add_argument("--split", default="choose")
    parser.add_argument("--episodes", type=int, default=2000)
    parser.add_argument("--transcripts", action="store_true", help="print ten transcripts of the greedy policy")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE")
    asked = parser.parse_args(arguments)
    config = load(asked.config, tuple(asked.set))
    torch.set_num_threads(config.threads)
    out = report(asked.checkpoint, config, split=asked.split, episodes=asked.episodes)
    sys.stdout.write(json.dumps(out, indent=1) + "\n")
    if asked.transcripts:
        model, tokenizer = models.load(asked.checkpoint)
        codec = Codec(tokenizer)
        result = evaluate(model, codec, config.game, split=asked.split, episodes=200, greedy=True)
        sys.stdout.write(f"{most_common_plays(result)}\n\n{transcripts(result, codec)}\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
