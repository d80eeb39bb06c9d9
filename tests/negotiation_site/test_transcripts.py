"""A stored negotiation as anybody may read it: in order, and where nobody took turns with its times."""

import pytest
from django.test import Client
from django.urls import reverse
from django.utils import timezone

from agents import registry, simulation
from markets import episodes, services
from markets.engine.scenarios import decode_recipe
from markets.models import Episode, SeatKind
from tests.markets import rooms

pytestmark = pytest.mark.django_db


def stored(**changes: object) -> Episode:
    """One simulated negotiation, kept."""
    market = rooms.market("bilateral", slug="read", **changes)
    linear = registry.get("linear")
    ((scenario, played),) = simulation.simulate(
        recipe=decode_recipe(market.recipe),
        pool=services.market_pool(market),
        seller=linear,
        buyers=[linear],
        episodes=1,
        seed=3,
    )
    sittings = tuple(
        episodes.Sitting(party, SeatKind.AGENT.value, linear.slug, linear.version) for party in ("seller", "buyer-1")
    )
    row = episodes.Simulated(scenario=scenario, log=played.log, sittings=sittings)
    episodes.store_simulated(market, [row], now=timezone.now())
    return Episode.objects.get()


def page(client: Client, episode: Episode) -> str:
    return client.get(reverse("transcript", args=[episode.public_id])).content.decode()


def test_what_happened_on_a_simulated_clock_is_told_with_its_times(client):
    episode = stored(mechanism="event_driven", turns=10)
    first = episode.log.split('"at_ms":')[1].split(",")[0]
    text = page(client, episode)
    assert f"after {int(first) / 1000:.1f} s" in text
    assert text.count('class="event__when"') >= 2


def test_where_turns_are_taken_no_times_are_told(client):
    assert "event__when" not in page(client, stored())
