"""How agents negotiated in a tournament, and what it had to do with how they fared.

Here: habits (opening, concession, patience, price discrimination) of each agent in each role beside its
share and deal rate; profiles over price tiers; what follows from them about conceding. Not here: reading
episodes (`tournaments.results`) or measuring one (`markets.engine.figures`). Pure: numpy on demand.

Contract. Every number is a mean over seats with a 95 % bootstrap interval clustered by scenario, None
where nothing was defined. *Share* is the seat's own surplus share, 0 without a deal, over the scenarios
where trade can gain; *deal rate* is over all seats. *Price slope* is the least-squares slope of the deal
price on the other side's value, both out of the list price, over deals: 0 asks everybody the same, 1
follows the other side's value cent by cent (INFERRED from arXiv 2604.16472, which names the measure).
*Associations* hold a habit against share and deals twice: over agents (whoever has more of it, does he fare
better?) by rank, and over single seats; both intervals come from the same resamples of scenarios.
*Tiers* are fifths of the tournament's seats of a role by own reservation value in cents, the same for all
agents; the spread is the highest minus the lowest of them, with the interval of the difference between those two.
A finding is stated as it was measured, true or false, with the numbers it rests on.
"""

from collections.abc import Iterable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

import msgspec

from markets.engine.figures import SeatFigures
from markets.engine.protocol import Role
from training.bootstrap import NONE, RESAMPLES, Estimate, Resamples, of_draws, resample

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
    """Share in the best tier less that in the worst; None with fewer than two tiers."""
    deal_rate_spread: float | None
    share_spread_low: float | None = None
    """Of the difference between these two tiers, whichever would be best and worst in a resample."""
    share_spread_high: float | None = None
    deal_rate_spread_low: float | None = None
    deal_rate_spread_high: float | None = None


class Association(msgspec.Struct, frozen=True, kw_only=True):
    """How a habit goes with faring well in a role: over its agents, and over all their seats."""

    role: Role
    habit: str
    agents: int
    with_share: float | None
    """Spearman's rank correlation over agents; None with fewer than three, or where nothing varies."""
    with_share_low: float | None = None
    with_share_high: float | None = None
    with_deal_rate: float | None
    with_deal_rate_low: float | None = None
    with_deal_rate_high: float | None = None
    seats: int = 0
    """Seats where the habit and the share are defined."""
    seats_with_share: float | None = None
    """Pearson's correlation over seats; None where nothing varies, and for the slope, which no single seat has."""
    seats_with_share_low: float | None = None
    seats_with_share_high: float | None = None
    seats_with_deal: float | None = None
    """The same with whether the seat dealt (1 or 0)."""
    seats_with_deal_low: float | None = None
    seats_with_deal_high: float | None = None


class Conceding(msgspec.Struct, frozen=True, kw_only=True):
    """Whether those who concede most fare worst, in a role."""

    role: Role
    agents: int
    most_conceding: str | None
    """Highest mean concession rate; None where fewer than two agents made steps."""
    lowest_share_agent: str | None
    """None where all agents have the same; where the one that concedes most has as little as another, it is named."""
    lowest_deal_rate_agent: str | None
    lowest_share: bool | None
    """Whether the one that concedes most has the lowest share; not where all have the same."""
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
    measured = [
        _habits(agent, role, seats, scenarios, sample, edges[role])
        for (role, agent), seats in sorted(by_seat.items(), key=lambda item: (item[0][0] is Role.BUYER, item[0][1]))
    ]
    habits = tuple(row for row, _draws in measured)
    return Findings(
        agents=habits,
        associations=tuple(
            association
            for role in Role
            for association in _associations(
                role,
                [(row, draws) for row, draws in measured if row.role is role],
                [row for (there, _agent), seats in by_seat.items() if there is role for row in seats],
                scenarios,
                sample,
            )
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
) -> "tuple[Habits, dict[str, Array]]":
    """Habits, and what share, deal rate and every habit are in each resample (nothing of one scenario)."""
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
    overall = [
        per_scenario(shares),
        per_scenario(deals),
        *(per_scenario([getattr(row.figures, name) for row in seats]) for name in _MEANS),
    ]
    by_tier = [(per_scenario(shares, keep), per_scenario(deals, keep)) for keep in inside]
    share, deal_rate, *others = sample.ratios([*overall, *(part for parts in by_tier for part in parts)])
    slopes = _slope_sums(seats, place, scenarios)
    draws: dict[str, Array] = {}
    if sample.weights is not None:
        draws = dict(zip(("share", "deal_rate", *_MEANS), sample.ratio_draws(overall).T, strict=True))
        draws["price_slope"] = sample.slope_draws(slopes)
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
    shares_apart = _spread([tier.share for tier in tiers], [part for part, _deals in by_tier], sample)
    deals_apart = _spread([tier.deal_rate for tier in tiers], [part for _shares, part in by_tier], sample)
    habits = Habits(
        agent=agent,
        role=role,
        games=len(seats),
        **dict(zip(_MEANS, others, strict=False)),
        price_slope=sample.slope(slopes),
        share=share,
        deal_rate=deal_rate,
        tiers=tiers,
        share_spread=shares_apart.value,
        share_spread_low=shares_apart.low,
        share_spread_high=shares_apart.high,
        deal_rate_spread=deals_apart.value,
        deal_rate_spread_low=deals_apart.low,
        deal_rate_spread_high=deals_apart.high,
    )
    return habits, draws


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


def _spread(estimates: Sequence[Estimate], parts: "Sequence[tuple[Array, Array]]", sample: Resamples) -> Estimate:
    """The highest less the lowest, and how sure that difference is; the two tiers stay the same in every resample."""
    known = [(found.value, part) for found, part in zip(estimates, parts, strict=True) if found.value is not None]
    if len(known) < 2:
        return NONE
    (most, best), (least, worst) = max(known, key=lambda each: each[0]), min(known, key=lambda each: each[0])
    if sample.weights is None:
        return Estimate(most - least)
    draws = sample.ratio_draws([best, worst])
    return of_draws(most - least, draws[:, 0] - draws[:, 1])


def _associations(
    role: Role,
    measured: "Sequence[tuple[Habits, dict[str, Array]]]",
    seats: Sequence[SeatRow],
    scenarios: int,
    sample: Resamples,
) -> list[Association]:
    found = []
    for habit in HABITS:
        known = [(row, draws) for row, draws in measured if getattr(row, habit).value is not None]
        with_share, with_deals = (_over_agents(known, habit, name) for name in ("share", "deal_rate"))
        seat_share = seat_deal = NONE
        defined: list[SeatRow] = []
        if habit in _MEANS:
            defined = [row for row in seats if getattr(row.figures, habit) is not None]
            seat_deal = _over_seats(habit, [(row, float(row.figures.deals > 0)) for row in defined], scenarios, sample)
            shared = [(row, row.share) for row in defined if row.share is not None]
            seat_share = _over_seats(habit, shared, scenarios, sample)
            defined = [row for row, _share in shared]
        found.append(
            Association(
                role=role,
                habit=habit,
                agents=len(known),
                with_share=with_share.value,
                with_share_low=with_share.low,
                with_share_high=with_share.high,
                with_deal_rate=with_deals.value,
                with_deal_rate_low=with_deals.low,
                with_deal_rate_high=with_deals.high,
                seats=len(defined),
                seats_with_share=seat_share.value,
                seats_with_share_low=seat_share.low,
                seats_with_share_high=seat_share.high,
                seats_with_deal=seat_deal.value,
                seats_with_deal_low=seat_deal.low,
                seats_with_deal_high=seat_deal.high,
            )
        )
    return found


def _over_agents(known: "Sequence[tuple[Habits, dict[str, Array]]]", habit: str, name: str) -> Estimate:
    """Rank correlation of a habit with how the agents fare, worked out again in every resample."""
    import numpy as np

    both = [(row, draws) for row, draws in known if getattr(row, name).value is not None]
    value = rank_correlation(
        [getattr(row, habit).value for row, _draws in both], [getattr(row, name).value for row, _draws in both]
    )
    if value is None or not all(draws for _row, draws in both):
        return Estimate(value)
    sides = [np.stack([draws[side] for _row, draws in both], axis=1) for side in (habit, name)]
    return of_draws(value, _rank_correlations(*sides))


def _rank_correlations(xs: "Array", ys: "Array") -> "Array":
    """`rank_correlation` of each line of two (resamples, agents) arrays; nan where it is undefined."""
    import numpy as np

    middle = (xs.shape[1] + 1) / 2
    ranks = []
    for side in (xs, ys):
        near = np.round(side, 12)
        below = (near[:, None, :] < near[:, :, None]).sum(axis=2)
        not_above = (near[:, None, :] <= near[:, :, None]).sum(axis=2)
        ranks.append((below + not_above + 1) / 2 - middle)
    scale = (ranks[0] ** 2).sum(axis=1) * (ranks[1] ** 2).sum(axis=1)
    usable = (scale > 0) & ~np.isnan(xs).any(axis=1) & ~np.isnan(ys).any(axis=1)
    return np.where(usable, (ranks[0] * ranks[1]).sum(axis=1) / np.sqrt(np.where(usable, scale, 1.0)), np.nan)


def _over_seats(habit: str, pairs: Sequence[tuple[SeatRow, float]], scenarios: int, sample: Resamples) -> Estimate:
    """Pearson's correlation of a habit with a number a seat."""
    import numpy as np

    if not pairs:
        return NONE
    place = np.array([row.scenario for row, _y in pairs])
    x = np.array([getattr(row.figures, habit) for row, _y in pairs], dtype=float)
    y = np.array([y for _row, y in pairs])
    sums = np.stack(
        [np.bincount(place, weights=w, minlength=scenarios) for w in (np.ones_like(x), x, y, x * x, x * y, y * y)],
        axis=1,
    )
    return sample.correlation(sums)


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
    shares = [(row.agent, row.share.value) for row in rows if row.share.value is not None]
    least_share = _lowest(shares, most.agent)
    least_deals = _lowest([(row.agent, _value(row.deal_rate)) for row in rows], most.agent)
    lowest_share = least_share == most.agent if shares else None
    return Conceding(
        role=role,
        agents=len(rows),
        most_conceding=most.agent,
        lowest_share_agent=least_share,
        lowest_deal_rate_agent=least_deals,
        lowest_share=lowest_share,
        lowest_deal_rate=least_deals == most.agent,
        holds=None if lowest_share is None else lowest_share and least_deals == most.agent,
    )


def _lowest(rows: Sequence[tuple[str, float]], most_conceding: str) -> str | None:
    """The agent with the least; among equals the one that concedes most. None where nobody has less than another."""
    least = min((value for _, value in rows), default=None)
    if least is None or all(value == least for _, value in rows):
        return None
    lowest = [agent for agent, value in rows if value == least]
    return most_conceding if most_conceding in lowest else lowest[0]


def _value(estimate: Estimate) -> float:
    return 0.0 if estimate.value is None else estimate.value
