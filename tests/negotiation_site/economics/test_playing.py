"""The games behind a figure are the engine's, and add up the same however they are shared out."""

from dataclasses import fields

import pytest

from agents import registry
from agents.play import play
from agents.simulation import seats_for, simulate
from markets.engine import metrics
from markets.engine.protocol import OfferMade
from markets.engine.scenarios import Scenario
from negotiation_site.economics import ladders, sellers
from negotiation_site.economics.playing import Job, Sums, of_recipe, over, play_all, play_games

RECIPE = ladders.recipe(ladders.UNIFORM, buyers=2, turns=4)


def test_games_are_those_of_a_simulation() -> None:
    """Whoever doubts a row can simulate its market and find the same games."""
    played = simulate(
        recipe=RECIPE,
        pool=[],
        seller=registry.get("optimal-ladder"),
        buyers=[registry.get("threshold")],
        episodes=60,
        seed=1,
    )
    outcomes = [metrics.outcome(scenario, game.log) for scenario, game in played]
    sums = play_games(Job(of_recipe(RECIPE), "optimal-ladder", 60), range(60))
    assert sums.games == 60
    assert sums.seller_cents == sum(outcome.seller_surplus_cents for outcome in outcomes)
    assert sums.first_best_cents == sum(outcome.first_best_cents for outcome in outcomes)
    assert sums.deals == sum(bool(outcome.deals) for outcome in outcomes)


def test_two_processes_come_to_the_sums_of_one() -> None:
    jobs = {
        "a": Job(of_recipe(RECIPE), "optimal-ladder", 1_100),
        "b": Job(of_recipe(RECIPE), "list-price", 30),
    }
    assert play_all(jobs, workers=2) == play_all(jobs, workers=1)


def test_sums_add_field_by_field() -> None:
    one = Sums(**{field.name: place for place, field in enumerate(fields(Sums), start=1)})
    assert one + one == Sums(**{field.name: 2 * place for place, field in enumerate(fields(Sums), start=1)})
    assert one + Sums() == one


def test_a_share_of_nothing_is_undefined() -> None:
    assert (Sums().seller_share, Sums().deal_rate, over(0, 0)) == (None, None, None)


@pytest.mark.parametrize(("slug", "asks"), [("list-price", 2), ("above-list-then-list-price", 4)])
def test_a_constant_seller_reads_no_reply_and_then_leaves(slug: str, asks: int) -> None:
    seats = seats_for(
        family=RECIPE.family, buyers_n=2, seller=sellers.BY_SLUG[slug], buyers=[registry.get("threshold")]
    )
    assert len(seats) == 3
    scenario: Scenario = of_recipe(RECIPE)(3)
    offers = [entry.event for entry in play(scenario, seats).log if isinstance(entry.event, OfferMade)]
    assert len(offers) == asks
    assert [offer.buyer for offer in offers] == [1, 2] * (asks // 2)
