"""Value models of a market: what each draws, what of it is public, and that no stored market changes its draws."""

import hashlib
import json
from pathlib import Path

import msgspec
import pytest

from markets.engine import optimum, priors, scenarios
from markets.engine.protocol import Role, encode
from markets.engine.scenarios import (
    Alternating,
    Family,
    Gains,
    OpeningBid,
    ProductFacts,
    Recipe,
    RecipeError,
    Scenario,
    ScenarioError,
    SellerTurns,
    decode_recipe,
    decode_scenario,
    sample,
)
from tests.markets.engine.games import POOL

STORED = json.loads((Path(__file__).parent / "stored_scenarios.json").read_text(encoding="utf-8"))
"""Recipes as they were stored before value models were added, a scenario of each, and the hash of twenty."""

SPREAD = priors.EmpiricalSpec(quantiles=(0.2, 0.8, 1.5))
KETTLE = ProductFacts(
    sku="kettle", title="Kettle", list_price_cents=10_000, lowest_price_cents=6_000, highest_price_cents=14_000
)
LAMP = ProductFacts(
    sku="lamp", title="Lamp", list_price_cents=5_000, lowest_price_cents=2_000, highest_price_cents=4_000
)


def market(**changes: object) -> Recipe:
    """A bilateral market on the ranges of arXiv 2604.16472."""
    settings = {
        "family": Family.BILATERAL,
        "mechanism": Alternating(rounds=4),
        "value_spec": priors.RangeSpec(low=0.4, high=0.1),
        "value_prior": SPREAD,
        "cost_spec": priors.LowestRangeSpec(low=0.6, high=0.9),
        "cost_prior": SPREAD,
    }
    return Recipe(**(settings | changes))


# --- What is stored -----------------------------------------------------------------------------


@pytest.mark.parametrize("name", STORED)
def test_a_stored_recipe_draws_the_scenarios_it_always_drew(name: str) -> None:
    """The hash of a record covers its scenario: a changed draw would make every old room a forgery."""
    text = json.dumps(STORED[name]["recipe"], separators=(",", ":"), ensure_ascii=False)
    recipe = decode_recipe(text)
    assert encode(recipe).decode() == text, "a market that is stored again is the same market"
    pool = () if recipe.unit_is_money else POOL
    drawn = [encode(sample(recipe, pool, seed)).decode() for seed in range(20)]
    assert json.loads(drawn[0]) == STORED[name]["first_scenario"]
    assert hashlib.sha256("\n".join(drawn).encode()).hexdigest() == STORED[name]["sha256"]


@pytest.mark.parametrize("name", STORED)
def test_a_stored_scenario_is_read_back_to_the_byte(name: str) -> None:
    text = json.dumps(STORED[name]["first_scenario"], separators=(",", ":"), ensure_ascii=False)
    assert encode(decode_scenario(text)).decode() == text


# --- Rules that read a product's own prices -----------------------------------------------------


def test_the_fixed_rule_gives_four_fifths_of_the_highest_or_list_price() -> None:
    recipe = market(value_spec=priors.HighestSpec(share=0.8), cost_spec=priors.LowestSpec())
    assert sample(recipe, [KETTLE], 1).buyer_values_cents == ((11_200,),)
    assert sample(recipe, [LAMP], 1).buyer_values_cents == ((4_000,),)
    assert sample(recipe, [LAMP], 1).seller_values_cents == (2_000,)
    assert sample(recipe, [KETTLE], 1).prior.value_spec == SPREAD, "the rule is public, the highest price is not"


def test_the_fixed_rule_loses_no_gains_from_trade_to_rounding() -> None:
    """Prices at four fifths of another are common: a fifth of a cent decides whether trade can gain."""
    recipe = market(value_spec=priors.HighestSpec(share=0.8), cost_spec=priors.LowestSpec())
    tight = msgspec.structs.replace(LAMP, list_price_cents=999, lowest_price_cents=799, highest_price_cents=900)
    even = msgspec.structs.replace(tight, list_price_cents=1_000, lowest_price_cents=800)
    assert sample(recipe, [tight], 1).buyer_values_cents == ((800,),)
    assert sample(recipe, [even], 1).buyer_values_cents == ((800,),)
    assert all(priors.share_cents(0.1, of_cents=10 * cents) == cents for cents in range(1, 2_000))


def test_a_range_follows_the_product_and_its_ends_are_public() -> None:
    drawn = [sample(market(), [KETTLE], seed) for seed in range(400)]
    values = [scenario.buyer_values_cents[0][0] for scenario in drawn]
    costs = [scenario.seller_values_cents[0] for scenario in drawn]
    assert 2_400 <= min(values) < 2_600
    assert 14_600 < max(values) <= 14_800
    assert 3_600 <= min(costs) < 3_630
    assert 5_370 < max(costs) <= 5_400
    assert drawn[0].prior.value_spec == priors.UniformSpec(low=0.24, high=1.48)
    assert drawn[0].prior.cost_spec == priors.UniformSpec(low=0.36, high=0.54)


def test_values_and_costs_of_a_range_are_independent() -> None:
    drawn = [sample(market(), [KETTLE], seed) for seed in range(1500)]
    high_cost = [s.buyer_values_cents[0][0] for s in drawn if s.seller_values_cents[0] > 4_500]
    low_cost = [s.buyer_values_cents[0][0] for s in drawn if s.seller_values_cents[0] <= 4_500]
    assert sum(high_cost) / len(high_cost) == pytest.approx(sum(low_cost) / len(low_cost), abs=650)


def test_with_several_products_on_the_table_only_the_spread_over_the_catalogue_is_public() -> None:
    recipe = market(family=Family.CATALOGUE, mechanism=SellerTurns(6), buyers=2, products=2)
    scenario = sample(recipe, [KETTLE, LAMP], 3)
    assert scenario.prior.value_spec == scenario.prior.cost_spec == SPREAD
    for index, product in enumerate(scenario.products):
        facts = {"kettle": KETTLE, "lamp": LAMP}[product.sku]
        low, high = 0.4 * facts.lowest_price_cents, 1.1 * facts.highest_price_cents - 0.1 * facts.lowest_price_cents
        assert all(low - 1 <= own[index] <= high + 1 for own in scenario.buyer_values_cents)


@pytest.mark.parametrize("gains", Gains)
def test_gains_from_trade_are_forced_either_way(gains: Gains) -> None:
    for seed in range(60):
        scenario = sample(market(gains=gains), [KETTLE, LAMP], seed)
        can_gain = scenario.buyer_values_cents[0][0] > scenario.seller_values_cents[0]
        assert can_gain is (gains is Gains.FORCED)
        assert isinstance(scenario.prior.value_spec, priors.UniformSpec), "nobody is told of the mode"


def test_a_market_that_can_never_gain_says_so_instead_of_drawing_for_ever() -> None:
    hopeless = market(
        value_spec=priors.UniformSpec(low=0.1, high=0.2), cost_spec=priors.LowestSpec(), gains=Gains.FORCED
    )
    with pytest.raises(RecipeError, match="with gains from trade for 'Kettle'; choose other values or costs"):
        sample(hopeless, [KETTLE], 1)


def test_the_public_interval_is_what_ladders_are_worked_out_from() -> None:
    """p = (s + b_max) / 2, the best single price of arXiv 2604.16472's seller, also where gains are forced."""
    for gains in (msgspec.UNSET, Gains.FORCED):
        scenario = sample(market(gains=gains), [KETTLE], 5)
        cost = scenario.seller_values_cents[0] / scenario.prior.scales_cents[0]
        best = optimum.posted_price(spec=scenario.prior.value_spec, cost=cost)
        assert best.prices[0] == pytest.approx((cost + 1.48) / 2, abs=1e-4)


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"value_prior": msgspec.UNSET}, "need a public prior"),
        ({"unit_is_money": True}, "only where there is a catalogue"),
        (
            {"value_spec": priors.UniformSpec(low=0, high=1), "value_prior": msgspec.UNSET, "unit_is_money": True},
            "only where there is a catalogue",
        ),
        (
            {
                "value_spec": priors.parse_value_spec("uniform:0:1*uniform:1:2"),
                "value_prior": msgspec.UNSET,
                "rho": 0.2,
            },
            "cannot be correlated beside it",
        ),
    ],
    ids=["no public prior", "values without a catalogue", "costs without a catalogue", "factor and rho"],
)
def test_a_recipe_that_cannot_be_drawn_is_refused_with_the_reason(changes: dict[str, object], sentence: str) -> None:
    with pytest.raises(RecipeError, match=sentence):
        scenarios.check(market(**changes), pool_size=0 if "unit_is_money" in changes else 1)


def test_a_hidden_factor_is_in_no_part_of_the_scenario() -> None:
    spec = priors.parse_value_spec("bands*uniform:0.6:1.6")
    recipe = market(
        family=Family.MULTI_BUYER,
        mechanism=SellerTurns(8),
        buyers=3,
        value_spec=spec,
        value_prior=msgspec.UNSET,
        opening_bid_share=(0.15, 0.2),
    )
    scenario = sample(recipe, [KETTLE], 4)
    assert scenario.prior.value_spec == spec
    assert len(scenario.opening_bids) == 3
    assert sample(msgspec.structs.replace(recipe, opening_bid_share=(0.25, 0.3)), [KETTLE], 4).opening_bids == (), (
        "the lowest value is .24 of the list price, and no rule makes a buyer bid above its value"
    )


# --- The shape of a scenario --------------------------------------------------------------------


def changed(**changes: object) -> bytes:
    """A multi-buyer scenario with a part replaced, as JSON; the parts are not checked on the way."""
    told = json.loads(
        encode(sample(market(family=Family.CATALOGUE, mechanism=SellerTurns(6), products=2), [KETTLE, LAMP], 1))
    )
    return json.dumps(told | changes).encode()


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"products": []}, "needs a product and a buyer"),
        ({"buyer_values_cents": []}, "needs a product and a buyer"),
        ({"family": "multi_buyer"}, "has one product, not 2"),
        ({"family": "bilateral"}, "has one product, not 2"),
        ({"seller_values_cents": [1]}, "2 products and 1 costs"),
        ({"seller_values_cents": [1, -1]}, "must be 0 to"),
        ({"buyer_values_cents": [[1, 2], [1]]}, "2 products and 1 values of a buyer"),
        ({"buyer_values_cents": [[1, 10**12]]}, "must be 0 to"),
        ({"seller_values_cents": [1], "buyer_values_cents": [[1, 2, 3]]}, "2 products and 1 costs"),
        ({"opening_bids": [{"buyer": 2, "product": 0, "price_cents": 5}]}, "is of nobody"),
        ({"opening_bids": [{"buyer": 1, "product": 2, "price_cents": 5}]}, "is of nobody"),
        ({"opening_bids": [{"buyer": 1, "product": 0, "price_cents": 0}]}, "is of nobody"),
    ],
    ids=lambda item: item if isinstance(item, str) else ",".join(item),
)
def test_a_scenario_whose_parts_do_not_fit_is_refused_when_it_is_read(
    changes: dict[str, object], sentence: str
) -> None:
    with pytest.raises(msgspec.ValidationError, match=sentence):
        decode_scenario(changed(**changes))


@pytest.mark.parametrize("field", ["list_price_cents", "stock"])
def test_a_product_without_a_price_or_stock_is_refused_when_it_is_read(field: str) -> None:
    told = json.loads(changed())
    told["products"][1][field] = 0
    with pytest.raises(msgspec.ValidationError, match=r"needs a list price of 1 to .* and a stock of at least 1"):
        decode_scenario(json.dumps(told))


def test_a_scale_of_nothing_is_refused_when_it_is_read() -> None:
    told = json.loads(changed())
    told["prior"]["scales_cents"] = [0, 100]
    with pytest.raises(msgspec.ValidationError, match="scales must be positive"):
        decode_scenario(json.dumps(told))


def test_two_buyers_are_no_bilateral_scenario() -> None:
    whole: Scenario = sample(market(), [KETTLE], 1)
    with pytest.raises(ScenarioError, match="has one buyer, not 2"):
        msgspec.structs.replace(whole, buyer_values_cents=((1,), (2,)))
    with pytest.raises(ScenarioError, match="is of nobody"):
        msgspec.structs.replace(whole, opening_bids=(OpeningBid(buyer=3, product=0, price_cents=1),))
    assert whole.reservation_value_cents(role=Role.BUYER, buyer=1, product=0) == whole.buyer_values_cents[0][0]
