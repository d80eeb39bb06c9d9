"""How seats that negotiated in different ways fared: pure functions of `leaderboard.facts` and a choice of rows.

Contract.
- A seat counts where something could be gained; its share is its part of that, 0 without a deal.
- Seats are put in order by one habit and cut into bands. A band of fewer than `LEAST` seats says nothing: it has no
  figure, and a habit without two bands that say something has none at all.
- Intervals are those of the leaderboards: 95 %, from a bootstrap over scenarios (`leaderboard.tables`).
- These are correlations. Who opens boldly differs in more than the opening; nothing here is an experiment.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from markets.models import Market
from negotiation_site.leaderboard.facts import Array, Facts
from negotiation_site.leaderboard.tables import (
    NONE,
    Estimate,
    Rows,
    Sample,
    clusters_of,
    intervals,
    renumbered,
    weights,
)

LEAST = 20
"""Seats behind a figure."""
TERCILES = 3
OPENING, OFFERS, STEP, PATIENCE = "opening", "offers", "step", "patience"
_BILATERAL_OFFERS = (1, 2, 3, 4, 5)
_MANY_OFFERS = (1, 3, 5, 7)


@dataclass(frozen=True)
class Band:
    """Seats that are alike in one habit."""

    low: float
    high: float
    """Smallest and largest of the habit's number in it."""
    seats: int
    share: Estimate = NONE
    """Mean share, no deal = 0; none where there are too few seats."""
    deals: Estimate = NONE
    """Seats with a deal out of all."""


@dataclass(frozen=True)
class Habit:
    """One way in which seats differ."""

    name: str
    bands: tuple[Band, ...]
    """In the order of the habit's number; empty where there are too few seats."""

    @property
    def apart(self) -> tuple[Band, Band] | None:
        """The lowest and the highest band that have figures, the better first; None where their intervals overlap."""
        known = [band for band in self.bands if band.share.low is not None and band.share.high is not None]
        if len(known) < 2:
            return None
        worse, better = sorted((known[0], known[-1]), key=lambda band: band.share.value or 0.0)
        return (better, worse) if (better.share.low or 0.0) > (worse.share.high or 0.0) else None


@dataclass(frozen=True)
class Findings:
    """What a choice of seats shows."""

    seats: int
    games: int
    people: int
    """Seats of them that people sat on."""
    habits: tuple[Habit, ...] = ()
    pull: Estimate = NONE
    """Change of the deal price with the own first offer, both as parts of the list price, at equal values of both
    sides (least squares); none outside two-sided markets or with too few deals."""


def closed_markets() -> list[int]:
    """Versions of markets that keep values after the end; games of people in them are in no figure."""
    return list(Market.objects.filter(reveals_values=False).values_list("pk", flat=True))


def open_rows(facts: Facts, closed: list[int]) -> Array:
    """Seats that anybody may learn from: `reading_room.access.open_episodes`, on the copy of the record."""
    return facts["public"] & ~(facts["live"] & np.isin(facts["market"], closed))


def findings(facts: Facts, chosen: Array, *, two_sided: bool) -> Findings:
    """What the chosen seats show; of one role and one family. `two_sided`: one seller, one buyer, one product."""
    held = Rows(facts, chosen & ~np.isnan(facts["share"]) & (facts["joint"] > 0))
    if not len(held):
        return Findings(seats=0, games=0, people=0)
    cluster, clusters, _scenarios = clusters_of(held)
    classes = _BILATERAL_OFFERS if two_sided else _MANY_OFFERS
    offers = held["offers"].astype("f8")
    habits = (
        _habit(OPENING, held, held["opening"], _terciles, cluster, clusters),
        _habit(OFFERS, held, np.where(offers > 0, offers, np.nan), _classes(classes), cluster, clusters),
        _habit(STEP, held, held["concession"], _terciles, cluster, clusters),
        _habit(PATIENCE, held, held["patience"], _terciles, cluster, clusters),
    )
    return Findings(
        seats=len(held),
        games=renumbered(held["episodes"])[1],
        people=int((held["agent"] < 0).sum()),
        habits=tuple(habit for habit in habits if habit is not None),
        pull=_pull(held, cluster, clusters) if two_sided else NONE,
    )


def _habit(
    name: str, held: Rows, numbers: Array, cut: Callable[[Array], Array], cluster: Array, clusters: int
) -> Habit | None:
    """The bands of one habit. Seats without its number are left out."""
    there = ~np.isnan(numbers)
    if int(there.sum()) < 2 * LEAST:
        return None
    kept, own = numbers[there], cluster[there]
    column, columns = renumbered(cut(kept))
    sample = Sample(column, columns, own, clusters)
    shares: list[Estimate] = []
    deals: list[Estimate] = []
    dealt = (held["deals"][there] > 0).astype("f8")
    sample.ask_mean(held["share"][there].astype("f8"), shares.extend)
    sample.ask(dealt, np.ones(len(kept)), deals.extend)
    sample.answer()
    bands = []
    for place in range(columns):
        inside = kept[column == place]
        seats = len(inside)
        known = seats >= LEAST
        bands.append(
            Band(
                low=float(inside.min()),
                high=float(inside.max()),
                seats=seats,
                share=shares[place] if known else NONE,
                deals=deals[place] if known else NONE,
            )
        )
    return Habit(name, tuple(bands)) if sum(band.share.value is not None for band in bands) > 1 else None


def _terciles(numbers: Array) -> Array:
    """0, 1, 2 by thirds of the seats; equal numbers are in one band."""
    return np.searchsorted(np.quantile(numbers, [1 / 3, 2 / 3]), numbers, side="left")


def _classes(starts: tuple[int, ...]) -> Callable[[Array], Array]:
    """The number of the class that begins at or before a count."""
    return lambda numbers: np.searchsorted(np.array(starts), numbers, side="right") - 1


def _pull(held: Rows, cluster: Array, clusters: int) -> Estimate:
    """How far the deal price goes with the own first offer where both sides' values are the same."""
    there = ~np.isnan(held["price"]) & ~np.isnan(held["opening"]) & (held["list_price"] > 0)
    if int(there.sum()) < 3 * LEAST:
        return NONE
    scale = held["list_price"][there].astype("f8")
    own, other = held["own_value"][there] / scale, held["other_value"][there] / scale
    facts = np.stack([np.ones(len(scale)), held["opening"][there] * own, own, other], axis=1)
    price = held["price"][there] / scale
    place = cluster[there]
    squares = np.zeros((clusters, 4, 4))
    moments = np.zeros((clusters, 4))
    np.add.at(squares, place, facts[:, :, None] * facts[:, None, :])
    np.add.at(moments, place, facts * price[:, None])
    if np.linalg.matrix_rank(squares.sum(axis=0)) < 4:
        return NONE
    value = np.linalg.solve(squares.sum(axis=0), moments.sum(axis=0))[1]
    drawn_squares = np.einsum("rc,cij->rij", weights(clusters), squares)
    drawn_moments = np.einsum("rc,ci->ri", weights(clusters), moments)
    drawn = (np.linalg.pinv(drawn_squares) @ drawn_moments[:, :, None])[:, 1, 0]
    return intervals(np.array([value]), drawn[:, None], np.array([clusters > 1]))[0]
