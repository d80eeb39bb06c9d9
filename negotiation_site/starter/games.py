"""The games of the starter world: a few in every market, and a small tournament. Deterministic and idempotent.

Contract: a market that has simulated games is left as it is, so that this changes nothing the second time.
"""

from collections.abc import Sequence

from django.db import transaction
from django.utils import timezone

from agents import registry, simulation
from agents.words import with_words
from markets import episodes, services
from markets.engine.scenarios import decode_recipe
from markets.models import Episode, EpisodeSource, Market, SeatKind
from negotiation_site.starter import markets
from training.models import Tournament
from training.tournaments import services as tournaments

SEED = 2026
GAMES = 14
"""Of each market: with three markets a family, a few dozen of each."""

TOURNAMENT = "demo-tournament"
TOURNAMENT_MARKET = "demo-bilateral"
TOURNAMENT_AGENTS = ("linear", "boulware", "conceder", "tit-for-tat")
TOURNAMENT_SCENARIOS = 40


def fill() -> int:
    """Play what is missing; the number of games stored now."""
    before = Episode.objects.count()
    for spec in markets.MARKETS:
        market = Market.objects.filter(slug=spec.slug).order_by("version").first()
        if market is not None and not market.episodes.filter(source=EpisodeSource.SIMULATED).exists():
            play_and_store(market, seller=market.seller_agent, buyers=market.buyer_agents.split(","), games=GAMES)
    hold_tournament()
    return Episode.objects.count() - before


def play_and_store(market: Market, *, seller: str, buyers: Sequence[str], games: int) -> None:
    """Simulate in one market between its own agents, with words, and keep the games together or not at all."""
    recipe = decode_recipe(market.recipe)
    selling = registry.get(seller)
    buying = [registry.get(buyers[place % len(buyers)]) for place in range(recipe.buyers)]
    seated = simulation.seats_for(family=recipe.family, buyers_n=recipe.buyers, seller=selling, buyers=buying)
    sittings = tuple(
        episodes.Sitting(party, SeatKind.AGENT.value, seat.spec.slug, seat.spec.version)
        for party, seat in seated.items()
    )
    played = simulation.simulate(
        recipe=recipe,
        pool=services.market_pool(market),
        seller=selling,
        buyers=buying,
        episodes=games,
        seed=SEED,
        words=with_words,
    )
    batch = [
        episodes.Simulated(scenario, game.log, sittings, tuple(episodes.words_of(game.log, game.actions)))
        for scenario, game in played
    ]
    with transaction.atomic():
        episodes.store_simulated(market, batch, now=timezone.now())


def hold_tournament() -> None:
    """Hold the small tournament unless one of its name is there; a broken-off one is taken up."""
    market = Market.objects.filter(slug=TOURNAMENT_MARKET).order_by("version").first()
    known = Tournament.objects.filter(name=TOURNAMENT).select_related("market").first()
    if market is None or (known is not None and known.status not in tournaments.OPEN):
        return
    tournament = known
    if tournament is None:
        tournament, _made = tournaments.open_tournament(
            name=TOURNAMENT,
            market=market,
            agents=[registry.get(slug) for slug in TOURNAMENT_AGENTS],
            scenarios=TOURNAMENT_SCENARIOS,
            seed=SEED,
        )
    if tournament.status in tournaments.OPEN:
        tournaments.release_dead(tournament)
        tournaments.work(tournaments.cast_of(tournament), owner=tournaments.owner_name())
