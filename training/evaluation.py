"""What a policy is worth: shares of the first best with intervals, asks, transcripts.

Here: playing a policy on kept-apart games and the figures of it, next to the exact references of
`training.exact`. Not here: training, exploit searches (`training.exploits`).

Contract: games are drawn from a named split by number; `train`, `demonstration`, `watch`,
`choose` and `final` never share a game. `final` is looked at once per result and nothing is tuned
on it. Shares are sums over sums (seller's surplus / first best); intervals are 95 % bootstraps
over games.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import msgspec
import numpy as np
import torch
from numpy.typing import NDArray

from markets.engine import measures, metrics, rewards
from markets.engine.protocol import MoveRefused, Role, role_of
from markets.engine.seeds import derive_seed
from training import exact
from training.config import Game
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
    earned: list[tuple[float, float]]
    """`earned` of each game."""

    @property
    def surplus(self) -> Numbers:
        """What the learner's seat got, per game."""
        return np.array([got for got, _ in self.earned], dtype=float)

    @property
    def first_best(self) -> Numbers:
        """What there was to get, per game."""
        return np.array([there for _, there in self.earned], dtype=float)


def games(game: Game, *, split: str, count: int, start: int = 0) -> list[Episode]:
    """Fresh episodes number `start` and on of a split."""
    return [Episode(draw_table(game, derive_seed(split, k))) for k in range(start, start + count)]


def earned(game: Game, episode: Episode) -> tuple[float, float]:
    """(what the learner's seat got, what there was): seller's surplus and first best, in cents.

    Over a catalogue, where products cost cents or thousands, every game counts alike: the reward, and 1.
    """
    if game.catalogue:
        return episode.reward(rewards.by_name(game.reward, role=game.role)), 1.0
    outcome = metrics.outcome(episode.scenario, episode.log)
    return float(outcome.seller_surplus_cents), float(outcome.first_best_cents)


def evaluate(model: Any, codec: Codec, game: Game, *, split: str, episodes: int, greedy: bool, seed: int = 0) -> Result:
    """Play `episodes` games of a split."""
    generator = None if greedy else torch.Generator().manual_seed(derive_seed("evaluation", seed) % 2**63)
    trajectories: list[Trajectory] = []
    for start in range(0, episodes, BATCH):
        batch = games(game, split=split, count=min(BATCH, episodes - start), start=start)
        trajectories += play(model, codec, batch, generator=generator)
    outcomes = [metrics.outcome(t.episode.scenario, t.episode.log) for t in trajectories]
    return Result(trajectories, outcomes, [earned(game, t.episode) for t in trajectories])


def share(surplus: Numbers, first_best: Numbers, *, seed: int = 0, resamples: int = 1000) -> Interval:
    """Sum of surpluses / sum of first bests with its bootstrap over games."""
    rng = np.random.default_rng(seed)
    draws = np.empty(resamples)
    for k in range(resamples):
        rows = rng.integers(0, len(surplus), len(surplus))
        draws[k] = surplus[rows].sum() / first_best[rows].sum()
    low, high = np.quantile(draws, [0.025, 0.975])
    return Interval(float(surplus.sum() / first_best.sum()), float(low), float(high))


def mean(paid: Sequence[float], *, seed: int = 0) -> Interval:
    """Mean over games with its bootstrap."""
    return share(np.array(paid, dtype=float), np.ones(len(paid)), seed=seed)


def asks(result: Result) -> list[exact.Asks]:
    """The learner's asks or bids, per game."""
    return [exact.asked(trajectory.episode) for trajectory in result.trajectories]


def ask_histogram(result: Result, *, width: int = 10) -> dict[str, int]:
    """Number of asks per stretch of prices."""
    counts = Counter(price // width * width for sequence in asks(result) for _, price in sequence)
    return {f"{start}-{start + width - 1}": counts[start] for start in sorted(counts)}


def refused_rate(result: Result) -> float:
    """Refused or unreadable answers / answers."""
    refused = sum(
        isinstance(entry.event, MoveRefused) and entry.event.by is role_of(trajectory.episode.learner)
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
        "conduct": conduct([trajectory.episode for trajectory in result.trajectories]),
    }


def conduct(episodes: Sequence[Episode]) -> dict[str, Any]:
    """How the learner's seat behaved, by the names of `markets.engine.measures`; what is undefined is missing."""
    if not episodes:
        return {}
    seen = [measures.measure(episode.scenario, episode.log) for episode in episodes]
    return conduct_of(seen, role_of(episodes[0].learner))


def conduct_of(seen: Sequence[measures.Measured], role: Role) -> dict[str, Any]:
    """The same of finished negotiations, whoever sat on the learner's seat."""
    tiers = measures.tier_profile(seen, role)
    found = {
        "deal_rate": measures.deal_rate(seen),
        "deal_rate_with_gains": measures.deal_rate_with_gains(seen),
        "walk_away_correctness": measures.walk_away_correctness(seen),
        "surplus_share": measures.surplus_share(seen, role),
        "opening": measures.opening_aggressiveness(seen, role),
        "concession_rate": measures.concession_rate(seen, role),
        "distinct_offers": measures.distinct_offers(seen, role),
        "overshoot_rate": measures.overshoot_rate(seen, role),
        "adherence": measures.constraint_adherence(seen, role),
        "coverage": measures.exploration_coverage(seen),
        "probe_entropy": measures.probe_entropy(seen),
        "fixation": measures.fixation_rate(seen),
        "top_buyer_rate": measures.top_buyer_rate(seen),
        "allocation_rescaled": measures.allocation_rescaled(seen),
        "extraction": measures.extraction(seen),
        "match_accuracy": measures.match_accuracy(seen),
        "tier_share_spread": measures.tier_spread(tiers, lambda tier: tier.share),
        "tier_deal_spread": measures.tier_spread(tiers, lambda tier: tier.deal_rate),
    }
    return {name: value for name, value in found.items() if value is not None}


def dialogue_lines(trajectory: Trajectory, codec: Codec) -> str:
    """One episode as text: what was shown and written, and what it came to."""
    words = codec.words([*trajectory.prompt_ids, *trajectory.completion_ids])
    text = " ".join(words).replace(" <|end|>", "\n").replace("\n ", "\n").strip()
    values = ", ".join(f"{own[0] / 100:.2f}" for own in trajectory.episode.scenario.buyer_values_cents)
    outcome = metrics.outcome(trajectory.episode.scenario, trajectory.episode.log)
    deal = f"sold for {outcome.deals[0].price_cents / 100:.2f}" if outcome.deals else "no deal"
    return f"{text}\n= {deal}; hidden values {values}"


class Transcript(msgspec.Struct, frozen=True, kw_only=True):
    """One episode for people."""

    chosen: str
    """`best`, `worst` or `random`."""
    game: int
    """Its number in the split."""
    share: float
    """Seller's surplus / first best; 0 where trade could gain nothing."""
    text: str


def transcripts(result: Result, codec: Codec, *, seed: int = 0) -> list[Transcript]:
    """Ten episodes: the three best, the three worst and four random ones, by share of first best."""
    shares = result.surplus / np.maximum(result.first_best, 1)
    order = np.argsort(shares, kind="stable")
    order = order[result.first_best[order] > 0]  # Where trade gains nothing, nobody did well or badly.
    random_rows = np.random.default_rng(seed).choice(len(shares), min(4, len(shares)), replace=False)
    return [
        Transcript(
            chosen=chosen,
            game=int(row),
            share=float(shares[row]),
            text=dialogue_lines(result.trajectories[row], codec),
        )
        for chosen, rows in (("best", order[::-1][:3]), ("worst", order[:3]), ("random", random_rows))
        for row in rows
    ]


def most_common_plays(result: Result, *, count: int = 3) -> Sequence[tuple[tuple[tuple[int, int], ...], int]]:
    """The longest ask sequences that occur most often."""
    longest = max((len(sequence) for sequence in asks(result)), default=0)
    return Counter(sequence for sequence in asks(result) if len(sequence) == longest).most_common(count)
