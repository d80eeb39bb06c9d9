"""Who meets whom in a tournament, and how its games are cut into shares of work.

Here: arithmetic on agents, pairs and scenario numbers. Not here: playing (`games`) or tables
(`services`). Pure.

Contract: a pair is (who sells, who buys); in markets with several buyers the buying agent sits on
every buyer's chair. An agent is paired in the roles that it plays in the market's family: an agent
that only sells is no buyer in any pair, and one that plays neither role there is refused. Every pair
plays the scenarios 0, 1, 2, …, pairs of an agent with itself included, so that each agent meets the
same opponents. The same agents in the same order give the same numbers for ever.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from agents.base import AgentSpec, Kind
from markets.engine.protocol import Role
from markets.engine.scenarios import Family

SMALLEST = 2
"""Agents that make a tournament."""
LARGEST = 250_000
"""Most games of one tournament."""
MOST_AGENTS = 100
SEED_BITS = 63
"""Seeds lie between -2^63 and 2^63 - 1, as the database holds them."""

GAMES_OF_RULES = 400
"""Games of one share where no language model is asked: half a second of work, and one transaction."""
GAMES_OF_MODELS = 8
"""Games of one share where a model may be asked."""
LEASE_OF_RULES_S = 30.0
LEASE_OF_MODELS_S = 900.0
"""A lease is renewed between games, so it must outlast the longest one."""
LEAST_SHARES = 8
"""A small tournament is cut into about this many shares all the same, so that workers share it."""


class TournamentError(ValueError):
    """A tournament that cannot be held, or something that cannot be done with it; the sentence says why."""


class Pair(NamedTuple):
    """Who sells and who buys."""

    seller: AgentSpec
    buyer: AgentSpec


class Block(NamedTuple):
    """A share of the work: some pairs in some scenarios."""

    first_pair: int
    pairs: int
    first_scenario: int
    scenarios: int

    @property
    def games(self) -> int:
        """Games in it."""
        return self.pairs * self.scenarios


def pairs(agents: Sequence[AgentSpec], family: Family) -> tuple[Pair, ...]:
    """Every ordered pair of agents that can sell and buy in the family, sellers in order, then buyers."""
    sellers = [spec for spec in agents if spec.can_play(role=Role.SELLER, family=family)]
    buyers = [spec for spec in agents if spec.can_play(role=Role.BUYER, family=family)]
    return tuple(Pair(seller, buyer) for seller in sellers for buyer in buyers)


def check(*, agents: Sequence[AgentSpec], family: Family, scenarios: int, seed: int) -> None:
    """Raise `TournamentError` with a sentence unless such a tournament can be held."""
    slugs = [spec.slug for spec in agents]
    if twice := next((slug for slug in slugs if slugs.count(slug) > 1), None):
        raise TournamentError(f"{twice!r} is named twice; every agent meets itself anyway, so name it once.")
    if len(agents) < SMALLEST:
        one = f"only {slugs[0]!r} is named" if slugs else "none is named"
        raise TournamentError(f"A tournament needs at least {SMALLEST} agents; {one}.")
    if len(agents) > MOST_AGENTS:
        raise TournamentError(f"A tournament has at most {MOST_AGENTS} agents, not {len(agents)}.")
    for spec in agents:
        if family not in spec.families:
            known = " and ".join(known.value for known in spec.families)
            raise TournamentError(
                f"{spec.slug!r} would play no pair: it plays {known} markets only, and this market is {family.value}."
            )
    for role in (Role.SELLER, Role.BUYER):
        if not any(spec.can_play(role=role, family=family) for spec in agents):
            raise TournamentError(
                f"No pair can be made: none of {', '.join(slugs)} plays {role.value} in a {family.value} market."
            )
    if scenarios < 1:
        raise TournamentError(f"A tournament needs at least one scenario, not {scenarios}.")
    if not -(2**SEED_BITS) <= seed < 2**SEED_BITS:
        raise TournamentError(f"The seed must fit into 64 bits, and {seed} does not.")
    games = len(pairs(agents, family)) * scenarios
    if games > LARGEST:
        raise TournamentError(f"That would be {games:,} negotiations; a tournament has at most {LARGEST:,}.")


def is_ruled(agents: Iterable[AgentSpec]) -> bool:
    """Whether rules and small networks alone decide, so that a game takes a moment."""
    return all(spec.kind in (Kind.SCRIPTED, Kind.LEARNED, Kind.REFERENCE) for spec in agents)


def share_size(agents: Iterable[AgentSpec], *, games: int) -> int:
    """Games of one share of a tournament of so many."""
    most = GAMES_OF_RULES if is_ruled(agents) else GAMES_OF_MODELS
    return max(1, min(most, -(-games // LEAST_SHARES)))


def lease_s(agents: Iterable[AgentSpec]) -> float:
    """Seconds after which a worker that was not heard of is taken for dead."""
    return LEASE_OF_RULES_S if is_ruled(agents) else LEASE_OF_MODELS_S


def blocks(*, pairs: int, scenarios: int, games: int) -> tuple[Block, ...]:
    """Cut `pairs` x `scenarios` into blocks of at most about `games`, none empty, together exactly everything.

    All pairs of a scenario stay together where they fit, since a scenario is then drawn once.
    """
    wide = min(pairs, games)
    tall = max(1, games // wide)
    return tuple(
        Block(pair, min(wide, pairs - pair), scenario, min(tall, scenarios - scenario))
        for scenario in range(0, scenarios, tall)
        for pair in range(0, pairs, wide)
    )
