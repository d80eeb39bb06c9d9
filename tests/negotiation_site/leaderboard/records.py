"""Stored episodes for the tests of leaderboards: simulations of named agents, and games of people."""

from django.utils import timezone

from agents import registry, simulation
from markets import episodes, services
from markets.engine.protocol import SELLER, buyer_party
from markets.engine.scenarios import decode_recipe
from markets.models import Episode, Market, SeatKind
from tests.markets.engine.factories import B1, LEAVE, accept, bilateral, offer
from tests.markets.rooms import Game, staged


def stored(market: Market, *, seller: str, buyers: str = "linear", count: int = 1, seed: int = 1) -> list[Episode]:
    """Simulations in the first `count` scenarios of `seed`; the same scenarios whoever plays."""
    recipe = decode_recipe(market.recipe)
    sitting = {SELLER: registry.get(seller)}
    sitting |= {buyer_party(number): registry.get(buyers) for number in range(1, recipe.buyers + 1)}
    games = simulation.simulate(
        recipe=recipe,
        pool=services.market_pool(market),
        seller=sitting[SELLER],
        buyers=[registry.get(buyers)],
        episodes=count,
        seed=seed,
    )
    sittings = tuple(
        episodes.Sitting(party, SeatKind.AGENT.value, spec.slug, spec.version) for party, spec in sitting.items()
    )
    batch = [episodes.Simulated(scenario=scenario, log=played.log, sittings=sittings) for scenario, played in games]
    return list(episodes.store_simulated(market, batch, now=timezone.now()))


def bought(price: int, *, consent: str = "public", value: int = 8_000, cost: int = 5_000) -> Game:
    """A person buys from another at `price`."""
    game = staged(bilateral(value=value, cost=cost), people=(B1, SELLER), consent=consent)
    game.act(B1, offer(price))
    game.act(SELLER, accept(1))
    return game


def walked(*, consent: str = "public", value: int = 8_000) -> Game:
    """A person leaves an agent's table at once."""
    game = staged(bilateral(value=value), people=(B1,), consent=consent, agents="linear")
    game.act(B1, LEAVE)
    return game
