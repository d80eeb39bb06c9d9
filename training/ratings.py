"""How good agents are, from games that they all played in the same scenarios.

Here: means with intervals, paired differences, Bradley-Terry. Not here: reading games (`tournaments.
results`) or showing them. Pure: numpy, and evalica on demand.

Contract.
- *Share*: own side's surplus / first best, 0 without a deal, negative for a loss. Where trade cannot
  gain there is no share, for any pair, so such a scenario counts towards no share.
- An agent's share is the mean over the roles it plays of its mean over opponents and scenarios; so every
  opponent and both roles weigh the same.
- *Intervals* are 95 % percentile bootstrap intervals over scenarios (all games of a scenario are drawn
  together, for all agents alike, so differences are paired). Fewer than two scenarios give None.
- *Groups*: agents are ranked, and compared, with those that play the same roles.
- *Differences* are those of the agents' shares; p is the bootstrap's two-sided level, `p_holm` corrected
  for all comparisons of the group (Holm 1979).
- *Bradley-Terry* (1952): two agents are compared in each scenario, role and opponent; the larger share
  wins, equal ones are half a win each. One tie is added to each pair, so that a pair without a loss has a
  finite rating. Scores are 400 log10 points around 1000. It does not depend on the order of games, and
  it ignores by how much: read it second.
- Undefined is None; there is never a nan.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from markets.engine.protocol import Role
from training.bootstrap import LEVEL, NONE, RESAMPLES, Estimate, Resamples, around, resample

if TYPE_CHECKING:
    import numpy as np

    Array: TypeAlias = np.ndarray[Any, Any]

FITS = 500
"""Resamples of the Bradley-Terry intervals, the first of the same draws."""
BASE = 1000.0
SCALE = 400.0


@dataclass(frozen=True)
class Games:
    """What all pairs came to in all scenarios: one row a scenario, one column a pair."""

    pairs: tuple[tuple[str, str], ...]
    """Who sells and who buys in each column."""
    first_best: "Array"
    """(scenarios,) cents; at most 0 where trade cannot gain."""
    surplus: "dict[Role, Array]"
    """Cents of either side."""
    deals: "Array"
    """Whether there was a deal."""
    messages: "dict[Role, Array]"
    violations: "dict[Role, Array]"

    @property
    def scenarios(self) -> int:
        """Number of scenarios."""
        return len(self.first_best)


class RoleFigures(msgspec.Struct, frozen=True, kw_only=True):
    """An agent on one side of the table."""

    games: int
    share: Estimate
    deal_rate: Estimate
    messages: int
    violations: int
    constraint_adherence: float | None


class Rated(msgspec.Struct, frozen=True, kw_only=True):
    """One agent."""

    agent: str
    roles: tuple[Role, ...]
    rank: int
    """Place by share among the agents of the same roles, 1 is best; equal shares share a place."""
    rank_best: int
    """1 + agents of the group that are better beyond chance (`p_holm` below 1 - level)."""
    rank_worst: int
    """Agents of the group, less those that are worse beyond chance."""
    games: int
    share: Estimate
    deal_rate: Estimate
    bradley_terry: Estimate
    messages: int
    violations: int
    constraint_adherence: float | None
    by_role: dict[Role, RoleFigures]


class Difference(msgspec.Struct, frozen=True, kw_only=True):
    """How much better `a` does than `b`, which plays the same roles."""

    a: str
    b: str
    share: Estimate
    p: float | None
    p_holm: float | None
    wins: int
    """Comparisons (scenario, role, opponent) that `a` won."""
    losses: int
    ties: int


class Met(msgspec.Struct, frozen=True, kw_only=True):
    """One ordered pair."""

    seller: str
    buyer: str
    games: int
    seller_share: Estimate
    buyer_share: Estimate
    deal_rate: Estimate


class Ratings(msgspec.Struct, frozen=True, kw_only=True):
    """What a tournament came to."""

    scenarios: int
    scenarios_with_gains: int
    """Scenarios in which trade can gain: those that shares are taken over."""
    games: int
    resamples: int
    """Behind the intervals of shares; 0 where there are none."""
    level: float
    agents: tuple[Rated, ...]
    """By group, then by rank."""
    differences: tuple[Difference, ...]
    head_to_head: tuple[Met, ...]


def rate(games: Games, *, seed: int = 0, resamples: int = RESAMPLES) -> Ratings:
    """Rate all agents of `games`. Deterministic in its arguments."""
    import numpy as np

    gains = games.first_best > 0
    everywhere = resample(np.arange(games.scenarios), seed, "everywhere", resamples)
    with_gains = resample(np.flatnonzero(gains), seed, "gains", resamples)
    safe = np.where(gains, games.first_best, 1)[:, None]
    shares = {role: games.surplus[role] / safe for role in Role}
    columns = _columns(games.pairs)
    rated: list[Rated] = []
    differences: list[Difference] = []
    for roles, members in _groups(columns).items():
        own = {
            agent: sum(shares[role][:, list(columns[agent][role].values())].mean(axis=1) for role in roles) / len(roles)
            for agent in members
        }
        compared = {pair: _compared(*pair, roles, columns, shares) for pair in combinations(members, 2)}
        strengths = _bradley_terry(members, compared, with_gains)
        found = _differences(own, compared, with_gains)
        figures = {
            agent: _rated(agent, roles, games, columns[agent], shares, own[agent], everywhere, with_gains)
            for agent in members
        }
        rated += _ranked(figures, strengths, found)
        differences += found
    return Ratings(
        scenarios=games.scenarios,
        scenarios_with_gains=int(gains.sum()),
        games=games.scenarios * len(games.pairs),
        resamples=0 if with_gains.weights is None else len(with_gains.weights),
        level=LEVEL,
        agents=tuple(rated),
        differences=tuple(differences),
        head_to_head=tuple(
            Met(
                seller=seller,
                buyer=buyer,
                games=games.scenarios,
                seller_share=seller_share,
                buyer_share=buyer_share,
                deal_rate=deal_rate,
            )
            for (seller, buyer), seller_share, buyer_share, deal_rate in zip(
                games.pairs,
                with_gains.estimates(shares[Role.SELLER]),
                with_gains.estimates(shares[Role.BUYER]),
                everywhere.estimates(games.deals.astype(float)),
                strict=True,
            )
        ),
    )


def holm(levels: Sequence[float | None]) -> list[float | None]:
    """Levels corrected for their number (Holm 1979), in the order given; None stays None."""
    known = sorted((level, place) for place, level in enumerate(levels) if level is not None)
    corrected: list[float | None] = [None] * len(levels)
    running = 0.0
    for rank, (level, place) in enumerate(known):
        running = max(running, min(1.0, level * (len(known) - rank)))
        corrected[place] = running
    return corrected


def _columns(pairs: Sequence[tuple[str, str]]) -> dict[str, dict[Role, dict[str, int]]]:
    """Columns of every agent by the role it has there and its opponent."""
    columns: dict[str, dict[Role, dict[str, int]]] = {}
    for column, (seller, buyer) in enumerate(pairs):
        columns.setdefault(seller, {}).setdefault(Role.SELLER, {})[buyer] = column
        columns.setdefault(buyer, {}).setdefault(Role.BUYER, {})[seller] = column
    return columns


def _groups(columns: dict[str, dict[Role, dict[str, int]]]) -> dict[tuple[Role, ...], list[str]]:
    """Agents by the roles they play, those that play both first."""
    groups: dict[tuple[Role, ...], list[str]] = {}
    for agent, by_role in columns.items():
        groups.setdefault(tuple(role for role in Role if role in by_role), []).append(agent)
    return dict(sorted(groups.items(), key=lambda item: (-len(item[0]), item[0] != (Role.SELLER,))))


def _compared(
    a: str,
    b: str,
    roles: tuple[Role, ...],
    columns: dict[str, dict[Role, dict[str, int]]],
    shares: "dict[Role, Array]",
) -> "Array":
    """(scenarios, 3): comparisons that `a` won, that `b` won, and ties, over roles and opponents."""
    import numpy as np

    counts = np.zeros((len(next(iter(shares.values()))), 3))
    for role in roles:
        of_a, of_b = columns[a][role], columns[b][role]
        opponents = [opponent for opponent in of_a if opponent in of_b]
        first = shares[role][:, [of_a[opponent] for opponent in opponents]]
        second = shares[role][:, [of_b[opponent] for opponent in opponents]]
        counts[:, 0] += (first > second).sum(axis=1)
        counts[:, 1] += (first < second).sum(axis=1)
        counts[:, 2] += (first == second).sum(axis=1)
    return counts


def _bradley_terry(
    members: Sequence[str], compared: "dict[tuple[str, str], Array]", sample: Resamples
) -> dict[str, Estimate]:
    """Ratings of a group; None for an agent that is compared with nobody."""
    import numpy as np

    if not compared or not len(sample.rows):
        return dict.fromkeys(members, NONE)
    counts = np.stack(list(compared.values()), axis=1)
    flat = counts.reshape(len(counts), -1)
    place = {agent: number for number, agent in enumerate(members)}
    xs = [place[a] for a, _b in compared for _outcome in range(3)]
    ys = [place[b] for _a, b in compared for _outcome in range(3)]
    points = _fit(xs, ys, flat[sample.rows].sum(axis=0), len(members))
    if sample.weights is None:
        return {agent: Estimate(float(points[number])) for number, agent in enumerate(members)}
    resampled = sample.draws(flat)[:FITS] * len(sample.rows)
    drawn = np.stack([_fit(xs, ys, row, len(members)) for row in resampled])
    return {agent: around(float(points[number]), drawn[:, number]) for number, agent in enumerate(members)}


def _fit(xs: list[int], ys: list[int], counts: "Array", agents: int) -> "Array":
    """Scores in points around `BASE` from counts of (win, loss, tie) of each pair of agents."""
    import numpy as np
    from evalica import Winner, bradley_terry

    weights = counts + np.tile([0.0, 0.0, 1.0], len(counts) // 3)
    outcomes = [Winner.X, Winner.Y, Winner.Draw] * (len(counts) // 3)
    fitted = bradley_terry(xs, ys, outcomes, weights=weights.tolist(), tolerance=1e-9, limit=10_000)
    logs = np.log10(fitted.scores.reindex(range(agents)).to_numpy())
    return BASE + SCALE * (logs - logs.mean())


def _differences(
    own: "dict[str, Array]", compared: "dict[tuple[str, str], Array]", sample: Resamples
) -> list[Difference]:
    found = []
    for (a, b), counts in compared.items():
        gap = own[a] - own[b]
        wins, losses, ties = (int(count) for count in counts[sample.rows].sum(axis=0))
        found.append((a, b, sample.estimate(gap), _level(gap, sample), wins, losses, ties))
    corrected = holm([level for _a, _b, _share, level, *_counts in found])
    return [
        Difference(a=a, b=b, share=share, p=level, p_holm=held, wins=wins, losses=losses, ties=ties)
        for (a, b, share, level, wins, losses, ties), held in zip(found, corrected, strict=True)
    ]


def _level(gap: "Array", sample: Resamples) -> float | None:
    """Two-sided bootstrap level of a mean of zero; None without an interval.

    Never below 2^(1 - scenarios), the best that a sign test of so few could give: few scenarios hold few
    different resamples, which would take any two that agree for proof.
    """
    if sample.weights is None:
        return None
    draws = sample.draws(gap)
    below, above = int((draws <= 0).sum()), int((draws >= 0).sum())
    return min(1.0, max(2.0 ** (1 - len(sample.rows)), 2 * (min(below, above) + 1) / (len(draws) + 1)))


def _rated(
    agent: str,
    roles: tuple[Role, ...],
    games: Games,
    columns: dict[Role, dict[str, int]],
    shares: "dict[Role, Array]",
    own: "Array",
    everywhere: Resamples,
    with_gains: Resamples,
) -> Rated:
    by_role = {}
    deal_rates = []
    for role in roles:
        mine = list(columns[role].values())
        messages, violations = int(games.messages[role][:, mine].sum()), int(games.violations[role][:, mine].sum())
        dealt = games.deals[:, mine].mean(axis=1)
        deal_rates.append(dealt)
        by_role[role] = RoleFigures(
            games=games.scenarios * len(mine),
            share=with_gains.estimate(shares[role][:, mine].mean(axis=1)),
            deal_rate=everywhere.estimate(dealt),
            messages=messages,
            violations=violations,
            constraint_adherence=_adherence(messages, violations),
        )
    messages = sum(figures.messages for figures in by_role.values())
    violations = sum(figures.violations for figures in by_role.values())
    return Rated(
        agent=agent,
        roles=roles,
        rank=0,
        rank_best=0,
        rank_worst=0,
        games=sum(figures.games for figures in by_role.values()),
        share=with_gains.estimate(own),
        deal_rate=everywhere.estimate(sum(deal_rates) / len(deal_rates)),
        bradley_terry=NONE,
        messages=messages,
        violations=violations,
        constraint_adherence=_adherence(messages, violations),
        by_role=by_role,
    )


def _adherence(messages: int, violations: int) -> float | None:
    return 1 - violations / messages if messages else None


def _ranked(
    figures: dict[str, Rated], strengths: dict[str, Estimate], differences: Sequence[Difference]
) -> list[Rated]:
    """The agents of a group with their places and ratings, best first."""

    def height(rated: Rated) -> float:
        return -math.inf if rated.share.value is None else rated.share.value

    ordered = sorted(figures.values(), key=lambda rated: (-height(rated), rated.agent))
    beaten_by = dict.fromkeys(figures, 0)
    beats = dict.fromkeys(figures, 0)
    for gap in differences:
        if gap.p_holm is None or gap.p_holm >= 1 - LEVEL or gap.share.value is None:
            continue
        better, worse = (gap.a, gap.b) if gap.share.value > 0 else (gap.b, gap.a)
        beats[better] += 1
        beaten_by[worse] += 1
    return [
        msgspec.structs.replace(
            rated,
            rank=1 + sum(height(other) > height(rated) for other in ordered),
            rank_best=1 + beaten_by[rated.agent],
            rank_worst=len(ordered) - beats[rated.agent],
            bradley_terry=strengths[rated.agent],
        )
        for rated in ordered
    ]
