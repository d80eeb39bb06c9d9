"""Plays a share of a tournament. Pure: no tables, no clock.

Contract: scenario k of a tournament has the seed that `agents.simulation` gives episode k, so a
tournament and a simulation with the same seed meet in the same scenarios; the same block gives the
same games in any process.
"""

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from agents import simulation
from agents.play import Played, play
from markets.engine.scenarios import ProductFacts, Recipe, Scenario, sample
from markets.engine.seeds import derive_seed
from training.tournaments.design import Block, Pair


class Game(NamedTuple):
    """One pair in one scenario, played to its end."""

    pair: int
    k: int
    scenario: Scenario
    played: Played


def play_block(
    *, recipe: Recipe, pool: Sequence[ProductFacts], pairs: Sequence[Pair], block: Block, seed: int
) -> Iterator[Game]:
    """The games of `block`, scenario by scenario. `pairs` are all pairs of the tournament."""
    seated = [
        (
            number,
            simulation.seats_for(
                family=recipe.family,
                buyers_n=recipe.buyers,
                seller=pairs[number].seller,
                buyers=[pairs[number].buyer],
            ),
        )
        for number in range(block.first_pair, block.first_pair + block.pairs)
    ]
    for k in range(block.first_scenario, block.first_scenario + block.scenarios):
        scenario = sample(recipe, pool, derive_seed("episode", seed, k))
        for number, seats in seated:
            yield Game(number, k, scenario, play(scenario, seats))
