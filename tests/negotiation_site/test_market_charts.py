"""A figure that says something else than its numbers would mislead whoever builds a market by it."""

import pytest

from markets.engine import priors
from markets.engine.scenarios import Family, Recipe, SellerTurns
from markets.supply_demand import draw, picture
from negotiation_site import market_charts


def recipe(**changes) -> Recipe:
    fields = {
        "family": Family.MULTI_BUYER,
        "mechanism": SellerTurns(turns=8),
        "buyers": 4,
        "value_spec": priors.UniformSpec(low=0, high=100),
        "cost_spec": priors.ConstantSpec(value=20),
        "cost_prior": priors.ConstantSpec(value=20),
        "unit_is_money": True,
    }
    return Recipe(**fields | changes)


def chart(made: Recipe):
    return market_charts.supply_and_demand(picture(draw(made, (), draws=100)), made)


def test_the_title_says_where_wanted_and_offered_meet():
    made = recipe(value_spec=priors.ConstantSpec(value=60))
    title = chart(made).figure["layout"]["title"]["text"]
    assert title == "Wanted and offered meet near $60.00, at 1.00 units a game."


def test_a_market_without_a_gain_says_so():
    made = recipe(value_spec=priors.ConstantSpec(value=10))
    drawn = chart(made)
    assert "nothing can be gained here" in drawn.figure["layout"]["title"]["text"]
    assert len(drawn.figure["data"]) == 2


def test_the_table_counts_what_is_wanted_and_for_sale_at_each_price():
    drawn = chart(recipe(value_spec=priors.ConstantSpec(value=60)))
    assert drawn.columns == ("at a price of", "units wanted", "units for sale")
    rows = {price: (wanted, offered) for price, wanted, offered in drawn.rows}
    assert rows["$13.20"] == ("4.00", "0.00")
    assert rows["$33.00"] == ("4.00", "1.00")
    assert set(rows.values()) == {("4.00", "0.00"), ("4.00", "1.00")}


def test_axes_name_their_units_and_lines_end_where_nothing_is_left():
    drawn = chart(recipe(currency="EUR"))
    layout = drawn.figure["layout"]
    assert layout["yaxis"]["title"]["text"] == "price in EUR"
    assert layout["xaxis"]["title"]["text"] == "units in a game, on average"
    demand, supply = drawn.figure["data"][:2]
    assert demand["y"][-1] == 0
    assert supply["y"][-1] == pytest.approx(layout["yaxis"]["range"][1])


@pytest.mark.parametrize("spec", [priors.BandsSpec(), priors.LogNormalSpec(median=1, sigma=2)], ids=["bands", "tail"])
def test_a_long_tail_does_not_squeeze_the_rest(spec):
    made = recipe(value_spec=spec, cost_spec=priors.ConstantSpec(value=0.5), cost_prior=priors.ConstantSpec(value=0.5))
    drawn = chart(made)
    top = drawn.figure["layout"]["yaxis"]["range"][1]
    values = drawn.figure["data"][0]["y"][:-1]
    assert sum(value <= top for value in values) >= 0.97 * len(values)
