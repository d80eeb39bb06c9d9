"""Plays negotiations between agents and prints what they came to."""

from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from django.core.management import CommandParser
from django.db import transaction
from django.utils import timezone

from agents import registry, simulation
from agents.base import AgentSpec, Kind
from agents.play import Seat
from agents.simulation import Game
from agents.words import with_words
from markets import episodes, services
from markets.engine.protocol import Party
from markets.engine.scenarios import decode_recipe
from markets.models import Market, SeatKind
from markets.setup import SetupError
from negotiation_site.contract import ContractCommand, known_market, positive

BATCH = 500
"""Episodes stored in one transaction."""


class Command(ContractCommand):
    help = "Simulate negotiations. The same seed gives the same log, in any process."

    def arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--market", required=True)
        parser.add_argument("--seller", required=True)
        parser.add_argument("--buyers", required=True, help="one agent for every buyer, or one each, with commas")
        parser.add_argument("--episodes", required=True, type=positive)
        parser.add_argument("--seed", required=True, type=int)
        parser.add_argument("--store", action="store_true", help="keep the episodes")
        parser.add_argument("--sampled", action="store_true", help="a trained seller draws its moves")

    def run(self, **options: Any) -> dict[str, Any]:
        market = known_market(options["market"])
        seller = _seller(options["seller"], sampled=options["sampled"])
        buyers = [registry.get(slug.strip()) for slug in options["buyers"].split(",")]
        recipe = decode_recipe(market.recipe)
        try:
            played = simulation.simulate(
                recipe=recipe,
                pool=services.market_pool(market),
                seller=seller,
                buyers=buyers,
                episodes=options["episodes"],
                seed=options["seed"],
                words=with_words if options["store"] else None,
            )
            if options["store"]:
                seats = simulation.seats_for(family=recipe.family, buyers_n=recipe.buyers, seller=seller, buyers=buyers)
                played = _stored(market, seats, played)
            return simulation.report(played)
        except simulation.SeatError as error:
            raise SetupError(str(error)) from error


def _seller(slug: str, *, sampled: bool) -> AgentSpec:
    """The seller asked for; of a trained one the twin that draws its moves, where that was asked."""
    spec = registry.get(slug)
    if not sampled or slug.endswith("-sampled"):
        return spec
    if spec.kind is not Kind.LEARNED:
        raise SetupError(f"Only a trained agent draws its moves on request; {slug!r} is {spec.kind.value}.")
    return registry.get(f"{slug}-sampled")


def _stored(market: Market, seats: Mapping[Party, Seat], played: Iterator[Game]) -> Iterator[Game]:
    """Pass episodes through and keep them, a batch at a time."""
    sittings = tuple(
        episodes.Sitting(party, SeatKind.AGENT.value, seat.spec.slug, seat.spec.version)
        for party, seat in seats.items()
    )
    while batch := list(islice(played, BATCH)):
        rows = [
            episodes.Simulated(
                scenario=scenario,
                log=game.log,
                sittings=sittings,
                words=tuple(episodes.words_of(game.log, game.actions)),
            )
            for scenario, game in batch
        ]
        with transaction.atomic():
            episodes.store_simulated(market, rows, now=timezone.now())
        yield from batch
