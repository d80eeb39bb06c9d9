"""Many negotiations between agents, and what they came to: the core of `simulate`.

Here: drawing scenarios from a market's recipe, playing them, and the figures of the report. Not
here: storing episodes or reading a command line. Pure, but for the seconds that `report` measures.

Contract: episode k of a run has the scenario seed `derive_seed("episode", seed, k)` whoever plays,
so agents meet in the same scenarios (common random numbers); the same arguments give the same
logs, and so the same hash, in any process.
"""

import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

import msgspec

from agents.base import AgentSpec, Turn
from agents.play import Played, Seat, play, seat
from markets.engine import metrics
from markets.engine.protocol import SELLER, Action, LogHash, Party, Role, buyer_party
from markets.engine.scenarios import Family, ProductFacts, Recipe, Scenario, sample
from markets.engine.seeds import derive_seed

Game: TypeAlias = tuple[Scenario, Played]


class SeatError(ValueError):
    """Agents that cannot be seated so; the message is a sentence."""


def seats_for(*, family: Family, buyers_n: int, seller: AgentSpec, buyers: Sequence[AgentSpec]) -> dict[Party, Seat]:
    """An agent on every chair; a single buyer's spec sits on every buyer's. Raises `SeatError`."""
    if len(buyers) not in (1, buyers_n):
        seats = "1 buyer; name one agent" if buyers_n == 1 else f"{buyers_n} buyers; name one agent or {buyers_n}"
        raise SeatError(f"This market seats {seats}, not {len(buyers)}.")
    filled = list(buyers) * buyers_n if len(buyers) == 1 else list(buyers)
    _check(seller, Role.SELLER, family)
    for spec in filled:
        _check(spec, Role.BUYER, family)
    return {
        SELLER: seat(seller),
        **{buyer_party(number): seat(spec) for number, spec in enumerate(filled, start=1)},
    }


def _check(spec: AgentSpec, role: Role, family: Family) -> None:
    if role not in spec.roles:
        only = spec.roles[0].value
        raise SeatError(f"{spec.slug!r} plays {only} only, not {role.value}.")
    if family not in spec.families:
        known = " and ".join(known.value for known in spec.families)
        raise SeatError(f"{spec.slug!r} plays {known} markets only, not {family.value}.")


def simulate(
    *,
    recipe: Recipe,
    pool: Sequence[ProductFacts],
    seller: AgentSpec,
    buyers: Sequence[AgentSpec],
    episodes: int,
    seed: int,
    words: Callable[[Action, Turn], Action] | None = None,
) -> Iterator[Game]:
    """Play `episodes` negotiations one by one. Raises `SeatError` at once.

    `words` puts moves into words where the games are kept; it changes no move.
    """
    seats = seats_for(family=recipe.family, buyers_n=recipe.buyers, seller=seller, buyers=buyers)
    return _games(recipe, pool, seats, episodes, seed, words)


def _games(
    recipe: Recipe,
    pool: Sequence[ProductFacts],
    seats: Mapping[Party, Seat],
    episodes: int,
    seed: int,
    words: Callable[[Action, Turn], Action] | None,
) -> Iterator[Game]:
    for k in range(episodes):
        scenario = sample(recipe, pool, derive_seed("episode", seed, k))
        yield scenario, play(scenario, seats, words=words)


class Report:
    """Running figures of a simulation: feed games with `add`, read with `figures`."""

    def __init__(self) -> None:
        self._tally = metrics.Tally()
        self._logs = LogHash()

    def add(self, scenario: Scenario, played: Played) -> None:
        """Count one game in."""
        self._tally.add(metrics.outcome(scenario, played.log))
        self._logs.add(played.log)

    def figures(self, *, seconds: float) -> dict[str, Any]:
        """The figures so far, by the names of the command's contract."""
        return {
            **msgspec.to_builtins(self._tally.summary()),
            "seconds": round(seconds, 3),
            "log_sha256": self._logs.hexdigest(),
        }


def report(games: Iterable[Game], *, clock: Callable[[], float] = time.perf_counter) -> dict[str, Any]:
    """Play `games` through and report on them."""
    started = clock()
    running = Report()
    for scenario, played in games:
        running.add(scenario, played)
    return running.figures(seconds=clock() - started)
