"""A researcher judges a recipe by this picture: it must be the schedules of what was drawn, and say where they meet."""

import pytest

from markets import supply_demand
from markets.engine import priors
from markets.engine.scenarios import Alternating, Family, Recipe, SellerTurns
from markets.supply_demand import Step, draw, picture, units_at
from tests.markets.engine.factories import bilateral, catalogue, multi_buyer


def money_recipe(**changes) -> Recipe:
    fields = {
        "family": Family.MULTI_BUYER,
        "mechanism": SellerTurns(turns=8),
        "buyers": 4,
        "value_spec": priors.UniformSpec(low=0, high=100),
        "cost_spec": priors.ConstantSpec(value=0),
        "cost_prior": priors.ConstantSpec(value=0),
        "unit_is_money": True,
    }
    return Recipe(**fields | changes)


def test_one_game_has_the_schedules_of_its_values_and_costs():
    drawn = picture([multi_buyer(values=(8_000, 3_000, 6_000), cost=5_000)])
    scale = multi_buyer().prior.scales_cents[0]
    assert [step.units for step in drawn.demand] == [1, 2, 3]
    assert [round(step.price * scale) for step in drawn.demand] == [8_000, 6_000, 3_000]
    assert [(step.units, round(step.price * scale)) for step in drawn.supply] == [(1, 5_000)]
    assert drawn.meeting.units == 1
    # One unit is for sale: it clears between the two highest values, both above its cost.
    assert round(drawn.meeting.price * scale) == 7_000
    assert (drawn.gain_rate, drawn.first_best_cents, drawn.traded) == (1, 3_000, 1)


def test_a_game_without_a_gain_meets_nowhere():
    drawn = picture([bilateral(value=3_000, cost=5_000)])
    assert drawn.meeting is None
    assert (drawn.gain_rate, drawn.first_best_cents, drawn.traded) == (0, 0, 0)


def test_a_buyer_of_several_products_counts_once_and_every_unit_of_stock_is_for_sale():
    scenario = catalogue()
    drawn = picture([scenario])
    assert drawn.demand[-1].units == scenario.buyers
    assert drawn.supply[-1].units == sum(min(product.stock, scenario.buyers) for product in scenario.products)


def test_four_uniform_buyers_for_one_free_unit_clear_where_three_are_outbid():
    recipe = money_recipe()
    drawn = picture(draw(recipe, (), draws=400))
    # The pooled demand at one unit in four is the upper quartile of the uniform values.
    assert drawn.meeting.units == pytest.approx(1)
    assert drawn.meeting.price == pytest.approx(75, abs=5)
    # The mean of the highest of four uniform values is 4/5.
    assert drawn.first_best_cents == pytest.approx(8_000, abs=250)
    assert drawn.gain_rate == 1


def test_the_same_recipe_draws_the_same_examples_and_they_are_those_of_the_first_seeds():
    recipe = money_recipe()
    first = draw(recipe, (), draws=3)
    assert first == draw(recipe, (), draws=3)
    assert [scenario.seed for scenario in first] == [1, 2, 3]


def test_long_schedules_are_thinned_and_keep_their_ends():
    drawn = picture(draw(money_recipe(buyers=12), (), draws=100))
    assert len(drawn.demand) == supply_demand.MOST_POINTS
    assert drawn.demand[-1].units == 12
    prices = [step.price for step in drawn.demand]
    assert prices == sorted(prices, reverse=True)


def test_units_at_a_price_are_read_off_the_schedule():
    steps = (Step(1, 80), Step(2, 60), Step(3, 30))
    assert units_at((90, 60, 10), steps, wanted=True) == (0, 2, 3)
    assert units_at((90, 60, 10), steps[::-1], wanted=False) == (3, 3, 0)


def test_a_bilateral_recipe_is_drawn_too():
    recipe = money_recipe(family=Family.BILATERAL, mechanism=Alternating(rounds=6), buyers=1)
    drawn = picture(draw(recipe, (), draws=50))
    assert drawn.demand[-1].units == 1
    assert drawn.traded <= 1
