"""How agents negotiated in a tournament, and what it had to do with how they fared.

Here: habits (opening, concession, patience, price discrimination) of each agent in each role beside its
share and deal rate; profiles over price tiers; what follows from them about conceding. Not here: reading
episodes (`tournaments.results`) or measuring one (`markets.engine.figures`). Pure: numpy on demand.

Contract. Every number is a mean over seats with a 95 % bootstrap interval clustered by scenario, None
where nothing was defined. *Share* is the seat's own surplus share, 0 without a deal, over the scenarios
where trade can gain; *deal rate* is over all seats. *Price slope* is the least-squares slope of the deal
price on the other side's value, both out of the list price, over deals: 0 asks everybody the same, 1
follows the other side's value cent by cent (INFERRED from arXiv 2604.16472, which names the measure).
*Tiers* are fifths of the tournament's seats of a role by own reservation value in cents, the same for all
agents; the spread is the highest minus the lowest of them.
A finding is stated as it was measured, true or false, with the numbers it rests on.
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import msgspec

from markets.engine.figures import SeatFigures
from markets.engine.protocol import Role
from training.bootstrap import RESAMPLES, Estimate, Resamples, resample

if TYPE_CHECKING:
    import numpy as np

    Array: TypeAlias = np.ndarray[Any, Any]

TIERS = 5
FEWEST = 3
"""Agents that a rank correlation needs."""


class SeatRow(NamedTuple):
    """One seat of one game."""

    scenario: int
    agent: str
    role: Role
    share: float | None
    figures: SeatFigures


class Tier(msgspec.Struct, frozen=True, kw_only=True):
    """A fifth of the seats by own reservation value."""

    tier: int
    """1 is the cheapest."""
    low_cents: int
    high_cents: int
    """Own reservation values in it, both ends included."""
    games: int
    share: Estimate
    deal_rate: Estimate


class Habits(msgspec.Struct, frozen=True, kw_only=True):
    """An agent in a role."""

    agent: str
    role: Role
    games: int
    """Seats that it had."""
    opening_ratio: Estimate
    """First own offer / own reservation value."""
    concession_rate: Estimate
    """Mean own step / way from the opening to the own limit."""
    patience: Estimate
    """Part of the turn budget used before the deal."""
    distinct_offers: Estimate
    """Different own prices an episode."""
    price_slope: Estimate
    share: Estimate
    deal_rate: Estimate
    tiers: tuple[Tier, ...]
    share_spread: float | None
    deal_rate_spread: float | None


class Association(msgspec.Struct, frozen=True, kw_only=True):
    """How a habit goes with faring well, over the agents of a role."""

    role: Role
    habit: str
    agents: int
    with_share: float | None
    """Spearman's rank correlation; None with fewer than three agents, or where nothing varies."""
    with_deal_rate: float | None


class Conceding(msgspec.Struct, frozen=True, kw_only=True):
    """Whether those who concede most fare worst, in a role."""

    role: Role
    agents: int
    most_conceding: str | None
    """Highest mean concession rate; None where fewer than two agents made steps."""
    lowest_share_agent: str | None
    lowest_deal_rate_agent: str | None
    lowest_share: bool | None
    """Whether the one that concedes most has the lowest share."""
    lowest_deal_rate: bool | None
    holds: bool | None
    """Both."""


class Findings(msgspec.Struct, frozen=True, kw_only=True):
    """Everything that is stated about a tournament's habits."""

    agents: tuple[Habits, ...]
    associations: tuple[Association, ...]
    conceding: tuple[Conceding, ...]


_MEANS = ("opening_ratio", "concession_rate", "patience", "distinct_offers")
HABITS = (*_MEANS, "price_slope")


def find(rows: Iterable[SeatRow], *, scenarios: int, seed: int = 0, resamples: int = RESAMPLES) -> Findings:
    """Measure the habits of all agents. Deterministic in its arguments."""
    import numpy as np

    sample = resample(np.arange(scenarios), seed, "findings", resamples)
    by_seat: dict[tuple[Role, str], list[SeatRow]] = {}
    for row in rows:
        by_seat.setdefault((row.role, row.agent), []).append(row)
    edges = {
        role: _edges([row for (there, _agent), seats in by_seat.items() if there is role for row in seats])
        for role in Role
    }
    habits = tuple(
        _habits(agent, role, seats, scenarios, sample, edges[role])
        for (role, agent), seats in sorted(by_seat.items(), key=lambda item: (item[0][0] is Role.BUYER, item[0][1]))
    )
    return Findings(
        agents=habits,
        associations=tuple(
            _association(role, habit, [row for row in habits if row.role is role]) for role in Role for habit in HABITS
        ),
        conceding=tuple(_conceding(role, [row for row in habits if row.role is role]) for role in Role),
    )


def _edges(seats: Sequence[SeatRow]) -> list[int]:
    """Lowest own value of each tier and one more than the highest of all; tiers of equal values fall together."""
    values = sorted(row.figures.own_value_cents for row in seats)
    if not values:
        return []
    starts = [values[len(values) * tier // TIERS] for tier in range(TIERS)]
    return [*sorted({values[0], *starts}), values[-1] + 1]


def _habits(
    agent: str, role: Role, seats: Sequence[SeatRow], scenarios: int, sample: Resamples, edges: Sequence[int]
) -> Habits:
    import numpy as np

    place = np.array([row.scenario for row in seats])

    def per_scenario(numbers: Sequence[float | None], keep: "Array | None" = None) -> "tuple[Array, Array]":
        """Sum and count in every scenario of what is defined (and kept)."""
        defined = np.array([number is not None for number in numbers])
        if keep is not None:
            defined &= keep
        values = np.array([0.0 if number is None else number for number in numbers])
        return (
            np.bincount(place[defined], weights=values[defined], minlength=scenarios),
            np.bincount(place[defined], minlength=scenarios).astype(float),
        )

    shares = [row.share for row in seats]
    deals = [float(row.figures.deals > 0) for row in seats]
    own = np.array([row.figures.own_value_cents for row in seats])
    inside = [(own >= low) & (own < high) for low, high in pairwise(edges)]
    share, deal_rate, *others = sample.ratios(
        [
            per_scenario(shares),
            per_scenario(deals),
            *(per_scenario([getattr(row.figures, name) for row in seats]) for name in _MEANS),
            *(per_scenario(numbers, keep) for keep in inside for numbers in (shares, deals)),
        ]
    )
    in_tiers = others[len(_MEANS) :]
    tiers = tuple(
        Tier(
            tier=number,
            low_cents=low,
            high_cents=high - 1,
            games=int(keep.sum()),
            share=in_tiers[2 * number - 2],
            deal_rate=in_tiers[2 * number - 1],
        )
        for number, ((low, high), keep) in enumerate(zip(pairwise(edges), inside, strict=True), start=1)
    )
    return Habits(
        agent=agent,
        role=role,
        games=len(seats),
        **dict(zip(_MEANS, others, strict=False)),
        price_slope=sample.slope(_slope_sums(seats, place, scenarios)),
        share=share,
        deal_rate=deal_rate,
        tiers=tiers,
        share_spread=_spread([tier.share for tier in tiers]),
        deal_rate_spread=_spread([tier.deal_rate for tier in tiers]),
    )


def _slope_sums(seats: Sequence[SeatRow], place: "Array", scenarios: int) -> "Array":
    """(scenarios, 5): n, sum x, sum y, sum xx, sum xy over deals; x the other's value, y the price, of list."""
    import numpy as np

    sold = np.array([row.figures.price_cents is not None for row in seats])
    if not sold.any():
        return np.zeros((scenarios, 5))
    with_deal = [row.figures for row in seats if row.figures.price_cents is not None]
    listed = np.array([figures.list_price_cents for figures in with_deal], dtype=float)
    x = np.array([figures.other_value_cents for figures in with_deal]) / listed
    y = np.array([figures.price_cents for figures in with_deal], dtype=float) / listed
    return np.stack(
        [
            np.bincount(place[sold], weights=weights, minlength=scenarios)
            for weights in (np.ones_like(x), x, y, x * x, x * y)
        ],
        axis=1,
    )


def _spread(estimates: Sequence[Estimate]) -> float | None:
    values = [estimate.value for estimate in estimates if estimate.value is not None]
    return max(values) - min(values) if len(values) > 1 else None


def _association(role: Role, habit: str, rows: Sequence[Habits]) -> Association:
    known = [row for row in rows if getattr(row, habit).value is not None]

    def against(name: str) -> float | None:
        both = [
            (getattr(row, habit).value, getattr(row, name).value)
            for row in known
            if getattr(row, name).value is not None
        ]
        return rank_correlation([first for first, _second in both], [second for _first, second in both])

    return Association(
        role=role, habit=habit, agents=len(known), with_share=against("share"), with_deal_rate=against("deal_rate")
    )


def rank_correlation(xs: Sequence[float], ys: Sequence[float]) -> float | None:
    """Spearman's, equal numbers sharing their mean rank; None for too few, or where one side never varies."""
    if len(xs) < FEWEST or len(set(xs)) < 2 or len(set(ys)) < 2:
        return None
    ranks = [_ranks(xs), _ranks(ys)]
    middle = (len(xs) + 1) / 2
    cross = sum((a - middle) * (b - middle) for a, b in zip(*ranks, strict=True))
    scale = [sum((rank - middle) ** 2 for rank in side) for side in ranks]
    return float(cross / (scale[0] * scale[1]) ** 0.5)


def _ranks(numbers: Sequence[float]) -> list[float]:
    return [
        (sum(other < number for other in numbers) + sum(other <= number for other in numbers) + 1) / 2
        for number in numbers
    ]


def _conceding(role: Role, rows: Sequence[Habits]) -> Conceding:
    stepped = [row for row in rows if row.concession_rate.value is not None]
    if len(stepped) < 2:
        return Conceding(
            role=role,
            agents=len(rows),
            most_conceding=None,
            lowest_share_agent=None,
            lowest_deal_rate_agent=None,
            lowest_share=None,
            lowest_deal_rate=None,
            holds=None,
        )
    most = max(stepped, key=lambda row: _value(row.concession_rate))
    shares = [row for row in rows if row.share.value is not None]
    least_share = min(shares, key=lambda row: _value(row.share), default=None)
    least_deals = min(rows, key=lambda row: _value(row.deal_rate))
    lowest_share = None if least_share is None else _value(most.share) <= _value(least_share.share)
    lowest_deal_rate = _value(most.deal_rate) <= _value(least_deals.deal_rate)
    return Conceding(
        role=role,
        agents=len(rows),
        most_conceding=most.agent,
        lowest_share_agent=None if least_share is None else least_share.agent,
        lowest_deal_rate_agent=least_deals.agent,
        lowest_share=lowest_share,
        lowest_deal_rate=lowest_deal_rate,
        holds=None if lowest_share is None else lowest_share and lowest_deal_rate,
    )


def _value(estimate: Estimate) -> float:
    return 0.0 if estimate.value is None else estimate.value
