"""The games of a language model's run: products, scenarios by number, who sits opposite.

Contract: a game number fixes scenario, seat and opponent. Training draws products of the catalogue's
training part alone, judging those of the held-out part, from seeds that never meet.
"""

import random
from typing import NamedTuple

import msgspec

from agents import registry
from agents.base import Agent, Turn
from agents.play import Seat, seat
from agents.words import with_words
from markets.engine import priors, splits
from markets.engine.protocol import Action, Role
from markets.engine.scenarios import Alternating, Family, ProductFacts, Recipe, Scenario, Split, sample
from markets.engine.seeds import derive_seed
from training import products
from training.config import ConfigError
from training.language.config import Market


class Game(NamedTuple):
    """One drawn game."""

    scenario: Scenario
    role: Role
    """The learner's seat."""
    opponent: Seat


class Spoken:
    """An agent whose moves have words, as they have in a room."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent

    def act(self, turn: Turn) -> Action:
        """The agent's move, said."""
        return with_words(self._agent.act(turn), turn)


def pool(market: Market, split: Split) -> tuple[ProductFacts, ...]:
    """The products of one part. Raises `ConfigError` where there are none."""
    found = splits.select(products.read(market.catalogue), split)
    if not found:
        raise ConfigError(f"The catalogue {market.catalogue} has no products in its {split.value} part.")
    return found


def recipe(market: Market, *, rounds: int, opener: Role, split: Split) -> Recipe:
    """The recipe of games with so many rounds."""
    cost, values = priors.parse_cost_spec(market.cost), priors.parse_value_rule(market.values)
    looks_up = isinstance(values, priors.HighestSpec | priors.RangeSpec)
    return Recipe(
        family=Family.BILATERAL,
        mechanism=Alternating(rounds=rounds, opener=opener),
        value_spec=values,
        value_prior=products.public_prior(market.catalogue, values) if looks_up else msgspec.UNSET,
        cost_spec=cost,
        cost_prior=products.public_prior(market.catalogue, cost),
        split=split,
        opening_bid_share=None,
    )


def training_game(market: Market, number: int, *, seed: int, stage: str, rounds: int | None = None) -> Game:
    """Game `number` of a stage; `rounds` fixes what is drawn otherwise."""
    drawn = derive_seed("language", stage, seed, number)
    return _game(market, drawn, role=market.roles[number % len(market.roles)], split=Split.TRAINING, rounds=rounds)


def held_out_game(market: Market, number: int, *, rounds: int) -> Game:
    """Game `number` of those kept apart: the same for every run and every model that is judged."""
    drawn = derive_seed("language", "held-out", number)
    return _game(market, drawn, role=market.roles[number % len(market.roles)], split=Split.HELD_OUT, rounds=rounds)


def _game(market: Market, drawn: int, *, role: Role, split: Split, rounds: int | None) -> Game:
    rng = random.Random(derive_seed("game", drawn))
    length = rng.choice(market.rounds) if rounds is None else rounds
    opener = Role.BUYER if rng.random() < market.buyer_opens else Role.SELLER
    scenario = sample(
        recipe(market, rounds=length, opener=opener, split=split),
        pool(market, split),
        derive_seed("episode", drawn),
    )
    drawn_slug = rng.choices(market.opponents, market.weights)[0] if market.weights else rng.choice(market.opponents)
    spec = registry.get(drawn_slug)
    sitting = seat(spec)
    return Game(scenario, role, sitting._replace(agent=Spoken(sitting.agent)))
