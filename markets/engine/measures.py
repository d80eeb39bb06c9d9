"""The metrics of many episodes, by name: pure functions over `Measured` episodes.

Here: every rate, share and mean that a leaderboard or a paper quotes, one function each. Not here:
one episode's result (`metrics`) or one seat's style (`figures`), of which these are sums, and
intervals (the site's, by resampling scenarios).

Contract: `measure(scenario, log)` is all an episode has to give, so every figure can be computed
again from the log. Rates and shares are fractions; a metric without a single episode (or offer, or
deal) to speak of is None, never 0 or nan. `role` says whose figure it is; a figure of the buyers
pools all of them. Definitions follow arXiv 2604.09855, 2607.05863, 2609.33289 and 2604.16472 where
those state them; what is our own reading is marked INFERRED, what is ours OURS.
"""

from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from typing import TypeAlias

import msgspec

from markets.engine import figures, metrics
from markets.engine.figures import SeatFigures, ViolationType
from markets.engine.metrics import Outcome
from markets.engine.protocol import LogEntry, Role, role_of
from markets.engine.rewards import RewardFunction
from markets.engine.scenarios import Scenario

TIERS = 5
"""Price tiers: quintiles."""


class Measured(msgspec.Struct, frozen=True, kw_only=True):
    """One finished episode, as far as the metrics need it."""

    scenario: Scenario
    log: tuple[LogEntry, ...]
    outcome: Outcome
    seats: dict[str, SeatFigures]
    """By party."""

    def of(self, role: Role) -> list[SeatFigures]:
        """The figures of one side: one seller's, or every buyer's."""
        return [seat for party, seat in self.seats.items() if role_of(party) is role]

    @property
    def has_gains(self) -> bool:
        """Whether trade can gain: the first best is positive."""
        return self.outcome.first_best_cents > 0


Episodes: TypeAlias = Sequence[Measured]


def measure(scenario: Scenario, log: Sequence[LogEntry]) -> Measured:
    """An episode with its outcome and its seats' figures."""
    outcome = metrics.outcome(scenario, log)
    return Measured(scenario=scenario, log=tuple(log), outcome=outcome, seats=figures.of_seats(scenario, log, outcome))


# --- What was reached -------------------------------------------------------------------------------


def mean_reward(episodes: Episodes, reward: RewardFunction) -> float | None:
    """Mean of `reward(scenario, log)` over **all** episodes, in [-1, 1] (arXiv 2604.09855)."""
    return _mean([reward(episode.scenario, episode.log) for episode in episodes])


def deal_rate(episodes: Episodes) -> float | None:
    """Episodes with at least one deal / episodes; in [0, 1]."""
    return _mean([bool(episode.outcome.deals) for episode in episodes])


def deal_rate_with_gains(episodes: Episodes) -> float | None:
    """`deal_rate` over the episodes in which trade can gain (arXiv 2604.16472)."""
    return deal_rate([episode for episode in episodes if episode.has_gains])


def surplus_share(episodes: Episodes, role: Role) -> float | None:
    """Mean over **deals** of own surplus / joint surplus; below 0 or above 1 where somebody loses.

    A seller's joint surplus is with the highest value among the buyers of the product:
    (P - C) / (max_k B_k - C) (arXiv 2607.05863); a buyer's is its own with the seller. Deals where
    nothing could be shared are left out.
    """
    shares = []
    for episode in episodes:
        for deal in episode.outcome.deals:
            own, joint = (
                (deal.seller_surplus_cents, deal.seller_joint_cents)
                if role is Role.SELLER
                else (deal.buyer_surplus_cents, deal.pair_joint_cents)
            )
            shares.append(metrics.surplus_share(own_cents=own, joint_cents=joint))
    return _mean_defined(shares)


def unconditional_surplus(episodes: Episodes, role: Role) -> float | None:
    """Mean of own surplus / what could be shared, no deal = 0, over seats that could gain.

    Out of the first best for a seller; out of its own value - cost for a buyer. Equals `mean_reward`
    of the `rlvr_*` rewards where nobody violates, nothing is clipped and the joint surplus is at
    least one unit of currency (arXiv 2604.09855 and 2607.05863: rate x ratio = reward; tested).
    """
    shares = []
    for episode in episodes:
        if role is Role.SELLER:
            shares.append(episode.outcome.seller_share)
            continue
        won = {deal.buyer: deal.buyer_surplus_cents for deal in episode.outcome.deals}
        shares.extend(
            metrics.surplus_share(own_cents=won.get(number, 0), joint_cents=seat.joint_cents)
            for number, seat in enumerate(episode.of(Role.BUYER), start=1)
        )
    return _mean_defined(shares)


def total_surplus_fraction(episodes: Episodes) -> float | None:
    """Sum of realised surpluses / sum of available ones; at most 1, negative when deals destroy value.

    One deal realises b - s; available is the first best, max(b - s, 0) in a bilateral episode
    (arXiv 2604.16472).
    """
    return _ratio(
        sum(episode.outcome.welfare_cents for episode in episodes),
        sum(episode.outcome.first_best_cents for episode in episodes),
    )


def walk_away_correctness(episodes: Episodes) -> float | None:
    """No-gains episodes without a deal / no-gains episodes; in [0, 1] (arXiv 2604.16472)."""
    return _mean([not episode.outcome.deals for episode in episodes if not episode.has_gains])


def efficient_trade_rate(episodes: Episodes) -> float | None:
    """((gains and deal) or (no gains and no deal)) / episodes; in [0, 1] (arXiv 2604.16472)."""
    return _mean([episode.has_gains == bool(episode.outcome.deals) for episode in episodes])


# --- Losses and rules -------------------------------------------------------------------------------


class RationalityBreaches(msgspec.Struct, frozen=True, kw_only=True):
    """Breaches of individual rationality by one side; every rate in [0, 1]."""

    offers: float | None
    """Own offers with negative own surplus / own offers."""
    deals: float | None
    """Own deals with negative own surplus / own deals."""
    induced: float | None
    """Own deals in which the other side loses / own deals."""


class Rationality(msgspec.Struct, frozen=True, kw_only=True):
    """`RationalityBreaches` where trade can gain, and where it cannot (arXiv 2604.16472)."""

    with_gains: RationalityBreaches
    without_gains: RationalityBreaches


def rationality(episodes: Episodes, role: Role) -> Rationality:
    """Own and induced breaches of individual rationality (Myerson and Satterthwaite 1983: surplus >= 0)."""
    return Rationality(
        with_gains=_breaches([episode for episode in episodes if episode.has_gains], role),
        without_gains=_breaches([episode for episode in episodes if not episode.has_gains], role),
    )


def _breaches(episodes: Episodes, role: Role) -> RationalityBreaches:
    seats = list(_seats(episodes, role))
    deals = sum(seat.deals for seat in seats)
    return RationalityBreaches(
        offers=_ratio(sum(seat.loss_offers for seat in seats), sum(seat.offers for seat in seats)),
        deals=_ratio(sum(seat.loss_deals for seat in seats), deals),
        induced=_ratio(sum(seat.induced_loss_deals for seat in seats), deals),
    )


def overshoot_rate(episodes: Episodes, role: Role) -> float | None:
    """Episodes with any own offer beyond the own reservation value / episodes (arXiv 2604.09855)."""
    return _mean([any(seat.loss_offers for seat in episode.of(role)) for episode in episodes])


def format_validity(episodes: Episodes, role: Role) -> float | None:
    """Messages that could be read as a move / messages; in [0, 1] (arXiv 2604.09855)."""
    broken = violation_rate(episodes, role, ViolationType.FORMAT)
    return None if broken is None else 1 - broken


def constraint_adherence(episodes: Episodes, role: Role) -> float | None:
    """1 - violations / messages, over all types of violation; in [0, 1] (arXiv 2609.33289)."""
    seats = list(_seats(episodes, role))
    broken = _ratio(sum(seat.violations for seat in seats), sum(seat.messages for seat in seats))
    return None if broken is None else 1 - broken


def violation_rate(episodes: Episodes, role: Role, kind: ViolationType) -> float | None:
    """Messages with a violation of one type / messages; in [0, 1]. The types are ours, after 2609.33289."""
    seats = list(_seats(episodes, role))
    return _ratio(sum(seat.violations_of(kind) for seat in seats), sum(seat.messages for seat in seats))


# --- Style ------------------------------------------------------------------------------------------


def opening_aggressiveness(episodes: Episodes, role: Role) -> float | None:
    """Mean of first ask / C for a seller, of first bid / B for a buyer; positive (arXiv 2604.16472).

    A seller is the more aggressive the higher it is, a buyer the lower. Openings made by the market
    are nobody's.
    """
    return _mean_defined([seat.opening_ratio for seat in _seats(episodes, role)])


def distinct_offers(episodes: Episodes, role: Role) -> float | None:
    """Mean number of different own prices of a seat in an episode (arXiv 2604.16472)."""
    return _mean([seat.distinct_offers for seat in _seats(episodes, role)])


def price_slope(episodes: Episodes, role: Role) -> float | None:
    """Slope of the deal price on the other side's value, both / list price; least squares over deals.

    0 is one price for everybody, 1 follows the other side's value cent by cent (arXiv 2604.16472:
    price discrimination; dividing by the list price, so that products can be pooled, is INFERRED).
    None with fewer than three deals or where all values are the same.
    """
    points = [
        (seat.other_value_cents / seat.list_price_cents, seat.price_cents / seat.list_price_cents)
        for seat in _seats(episodes, role)
        if seat.price_cents is not None
    ]
    if len(points) < 3:
        return None
    mean_value = sum(value for value, _ in points) / len(points)
    mean_price = sum(price for _, price in points) / len(points)
    spread = sum((value - mean_value) ** 2 for value, _ in points)
    return _ratio(sum((value - mean_value) * (price - mean_price) for value, price in points), spread)


def concession_rate(episodes: Episodes, role: Role) -> float | None:
    """Mean of the seats' mean own move / (opening - reservation) (Faratin, Sierra and Jennings 1998)."""
    return _mean_defined([seat.concession_rate for seat in _seats(episodes, role)])


def patience(episodes: Episodes, role: Role) -> float | None:
    """Mean over seats with a deal of the part of the turn budget used before it (arXiv 2604.16472)."""
    return _mean_defined([seat.patience for seat in _seats(episodes, role)])


class Tier(msgspec.Struct, frozen=True, kw_only=True):
    """Seats whose own value lies in one quintile."""

    low_cents: int
    high_cents: int
    seats: int
    share: float | None
    """Unconditional surplus share."""
    deal_rate: float | None


def tier_profile(episodes: Episodes, role: Role) -> tuple[Tier, ...]:
    """Share and deal rate by quintile of the own value (buyer) or cost (seller) (arXiv 2604.16472).

    Seats in order of that value in five groups of the same size up to one; groups without a seat are
    left out. Episodes must share a currency.
    """
    rows = sorted(
        (
            (
                seat.own_value_cents,
                bool(seat.deals),
                metrics.surplus_share(own_cents=_gain(episode, role, seat), joint_cents=seat.joint_cents),
            )
            for episode in episodes
            for seat in episode.of(role)
        ),
        key=lambda row: row[0],
    )
    cuts = [round(len(rows) * tier / TIERS) for tier in range(TIERS + 1)]
    return tuple(
        Tier(
            low_cents=rows[start][0],
            high_cents=rows[end - 1][0],
            seats=end - start,
            share=_mean_defined([share for _, _, share in rows[start:end]]),
            deal_rate=_mean([dealt for _, dealt, _ in rows[start:end]]),
        )
        for start, end in pairwise(cuts)
        if end > start
    )


def tier_spread(tiers: Sequence[Tier], of: Callable[[Tier], float | None]) -> float | None:
    """Highest - lowest figure over the tiers; `of` picks it."""
    known = [number for tier in tiers if (number := of(tier)) is not None]
    return max(known) - min(known) if known else None


def _gain(episode: Measured, role: Role, seat: SeatFigures) -> int:
    if role is Role.SELLER:
        return episode.outcome.seller_surplus_cents
    return 0 if seat.price_cents is None else seat.own_value_cents - seat.price_cents


# --- Several buyers ---------------------------------------------------------------------------------


def exploration_coverage(episodes: Episodes) -> float | None:
    """Mean of distinct buyers written to up to the first deal / N; in (0, 1] (arXiv 2607.05863).

    None with one buyer, where there is nothing to explore.
    """
    return _mean_defined([seat.coverage for seat in _seats(episodes, Role.SELLER)])


def probe_entropy(episodes: Episodes) -> float | None:
    """Mean of the entropy of the seller's messages over buyers / log N; in [0, 1] (after 2607.05863)."""
    return _mean_defined([seat.probe_entropy for seat in _seats(episodes, Role.SELLER)])


def fixation_rate(episodes: Episodes) -> float | None:
    """Mean of turns sent to the currently highest bidder / turns after the first (arXiv 2607.05863)."""
    return _mean_defined([seat.fixation_rate for seat in _seats(episodes, Role.SELLER)])


def top_buyer_rate(episodes: Episodes) -> float | None:
    """Deals with a buyer of the highest value for the product / deals, with several buyers (2607.05863)."""
    several = [seat for seat in _seats(episodes, Role.SELLER) if seat.best_pairs is not None]
    return _ratio(sum(seat.top_deals for seat in several), sum(seat.deals for seat in several))


def allocation_quality(episodes: Episodes) -> float | None:
    """Sum over made matches of (V_ij - C_j) / sum of W* (Smith 1962; arXiv 2609.33289); at most 1."""
    return total_surplus_fraction(episodes)


def allocation_rescaled(episodes: Episodes) -> float | None:
    """(W - W_random) / (W* - W_random), each summed: 0 is a matching by lot, 1 the best one. OURS.

    A random matching already reaches much of the optimum on square markets, so the plain quotient
    flatters. Only episodes with several buyers; None where lots could not do worse.
    """
    several = [
        (episode.outcome, seat.random_welfare_cents)
        for episode in episodes
        for seat in episode.of(Role.SELLER)
        if seat.random_welfare_cents is not None
    ]
    lot = sum(welfare for _, welfare in several)
    made = sum(outcome.welfare_cents for outcome, _ in several)
    best = sum(outcome.first_best_cents for outcome, _ in several)
    return _ratio(made - lot, best - lot)


def match_accuracy(episodes: Episodes) -> float | None:
    """Made pairs that are in an optimal matching / pairs in it, summed (arXiv 2609.33289); in [0, 1]."""
    sellers = list(_seats(episodes, Role.SELLER))
    return _ratio(sum(seat.matched_pairs or 0 for seat in sellers), sum(seat.best_pairs or 0 for seat in sellers))


def extraction(episodes: Episodes) -> float | None:
    """Sum of (P - C_j) over deals / sum of W* (arXiv 2609.33289); at most 1 unless buyers lose.

    = `allocation_quality` x `profit_part` (tested).
    """
    return _ratio(
        sum(episode.outcome.seller_surplus_cents for episode in episodes),
        sum(episode.outcome.first_best_cents for episode in episodes),
    )


def profit_part(episodes: Episodes) -> float | None:
    """Seller's profit / welfare of the matches that were made: pricing apart from matching (2609.33289)."""
    return _ratio(
        sum(episode.outcome.seller_surplus_cents for episode in episodes),
        sum(episode.outcome.welfare_cents for episode in episodes),
    )


# --- Sums -------------------------------------------------------------------------------------------


def _seats(episodes: Episodes, role: Role) -> Iterator[SeatFigures]:
    for episode in episodes:
        yield from episode.of(role)


def _mean(numbers: Sequence[float]) -> float | None:
    return sum(numbers) / len(numbers) if numbers else None


def _mean_defined(numbers: Sequence[float | None]) -> float | None:
    return _mean([number for number in numbers if number is not None])


def _ratio(part: float, whole: float) -> float | None:
    return part / whole if whole else None
