"""The ladder of people: OpenSkill over their games in live rooms.

Here: what counts as a won game, and the ratings that follow. Not here: agents, who are compared on
equal terms (`tables`), or pages.

A person is rated by what they got out of their seat. Two people at one bilateral table are rated
against each other: the larger share wins. Everybody else is rated against their table, which is a
player of its own for each market, seat and set of opponents: more than half of what could be shared
is a win, less a loss, within a hundredth of half a draw; so an easy table becomes one that little is
won from. A deal where nothing could be gained is a loss, walking away from it no game.

Contract: games are taken in the order in which they ended, so the ladder does not depend on when or
by whom it is worked out. Only games count that everybody in them gave as open data.
"""

from dataclasses import dataclass, field
from itertools import groupby
from operator import itemgetter
from typing import TypeAlias

import numpy as np
from openskill.models import PlackettLuce, PlackettLuceRating

from negotiation_site.leaderboard.facts import PERSON, Array, Facts

DRAW = 0.01
"""Shares of two people, or of a person and half, that are this close are a draw."""
PROVISIONAL = 10
"""Rated games under which a place is provisional."""

Table: TypeAlias = tuple[int, int]
"""Market and lineup of a table."""


@dataclass
class Standing:
    """One person on the ladder."""

    participant: int
    rating: PlackettLuceRating
    games: int = 0
    """Rated ones."""
    played: int = 0
    wins: int = 0
    draws: int = 0
    deals: int = 0
    shares: list[float] = field(default_factory=list)

    @property
    def score(self) -> float:
        """What the ladder is ordered by: the mean less three deviations, 0 for a newcomer."""
        return float(self.rating.ordinal())

    @property
    def provisional(self) -> bool:
        """Whether there are too few games for a place."""
        return self.games < PROVISIONAL

    @property
    def mean_share(self) -> float | None:
        """Mean share over games in which something could be gained, no deal = 0."""
        return sum(self.shares) / len(self.shares) if self.shares else None


class Ladder:
    """Takes games in, oldest first."""

    def __init__(self) -> None:
        self._model = PlackettLuce()
        self._tables: dict[Table, PlackettLuceRating] = {}
        self.people: dict[int, Standing] = {}

    def take(self, facts: Facts, rows: Array) -> None:
        """Rate the games of the rows (indices of people's seats, by episode)."""
        names = ("episode", "participant", "share", "role", "surplus", "deals", "market", "lineup", "opponent")
        cells = zip(*(facts[name][rows].tolist() for name in names), strict=True)
        for _episode, seats in groupby(cells, key=itemgetter(0)):
            self._game(
                [
                    _Seat(
                        person=person,
                        share=share,
                        role=role,
                        surplus=surplus,
                        deals=deals,
                        table=(market, lineup),
                        meets_person=opponent == PERSON,
                    )
                    for _, person, share, role, surplus, deals, market, lineup, opponent in seats
                ]
            )

    def standings(self) -> list[Standing]:
        """Everybody who has a rated game, the best first; those with too few come last."""
        rated = [standing for standing in self.people.values() if standing.games]
        return sorted(rated, key=lambda standing: (standing.provisional, -standing.score, standing.participant))

    def _game(self, seats: "list[_Seat]") -> None:
        for seat in seats:
            self._count(seat)
        if len(seats) == 2 and all(seat.meets_person for seat in seats) and seats[0].role != seats[1].role:
            first, second = seats
            if first.person and second.person and first.person != second.person:
                self._between(first, second)
                return
        for seat in seats:
            if seat.person:
                self._against_table(seat)

    def _count(self, seat: "_Seat") -> None:
        if not seat.person:
            return
        standing = self._standing(seat.person)
        standing.played += 1
        standing.deals += seat.deals > 0
        if not np.isnan(seat.share):
            standing.shares.append(seat.share)

    def _standing(self, person: int) -> Standing:
        if person not in self.people:
            self.people[person] = Standing(person, self._model.rating())
        return self.people[person]

    def _between(self, first: "_Seat", second: "_Seat") -> None:
        if np.isnan(first.share) and not first.deals:
            return
        outcome = _compared(first.surplus, second.surplus, within=DRAW * max(1.0, abs(first.surplus + second.surplus)))
        one, two = self._standing(first.person), self._standing(second.person)
        one.rating, two.rating = self._rated(one.rating, two.rating, outcome)
        self._note(one, outcome)
        self._note(two, -outcome)

    def _against_table(self, seat: "_Seat") -> None:
        if np.isnan(seat.share):
            if not seat.deals:
                return
            outcome = -1
        else:
            outcome = _compared(seat.share, 0.5, within=DRAW)
        standing = self._standing(seat.person)
        table = self._tables.get(seat.table) or self._model.rating()
        standing.rating, self._tables[seat.table] = self._rated(standing.rating, table, outcome)
        self._note(standing, outcome)

    def _rated(
        self, one: PlackettLuceRating, two: PlackettLuceRating, outcome: int
    ) -> tuple[PlackettLuceRating, PlackettLuceRating]:
        ranks = {1: [1.0, 2.0], 0: [1.0, 1.0], -1: [2.0, 1.0]}[outcome]
        ((first,), (second,)) = self._model.rate([[one], [two]], ranks=ranks)
        return first, second

    @staticmethod
    def _note(standing: Standing, outcome: int) -> None:
        standing.games += 1
        standing.wins += outcome > 0
        standing.draws += outcome == 0


@dataclass(frozen=True)
class _Seat:
    """A person's seat in one game."""

    person: int
    """0 where the person was erased."""
    share: float
    role: int
    surplus: float
    deals: int
    table: Table
    meets_person: bool
    """Whether a person sits opposite."""


def _compared(one: float, other: float, *, within: float) -> int:
    """1 where `one` is larger, -1 where it is smaller, 0 where they are about the same."""
    if abs(one - other) <= within:
        return 0
    return 1 if one > other else -1


def rated_rows(facts: Facts, *, after: int = 0) -> Array:
    """Indices of people's seats in games given as open data, by episode, after episode number `after`."""
    rows = np.flatnonzero((facts["agent"] < 0) & facts["live"] & facts["public"] & (facts["episode"] > after))
    return rows[np.argsort(facts["episode"][rows], kind="stable")]


def ladder(facts: Facts, chosen: Array | None = None) -> Ladder:
    """The ladder of all games, or of those among `chosen` rows (a mask)."""
    rows = rated_rows(facts)
    if chosen is not None:
        rows = rows[chosen[rows]]
    rated = Ladder()
    rated.take(facts, rows)
    return rated
