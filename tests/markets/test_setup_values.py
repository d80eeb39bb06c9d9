"""Value models as somebody asks for them: what a market then draws, and what it refuses with a reason."""

import pytest
from msgspec import UNSET

from markets import services, setup
from markets.engine import priors, splits
from markets.engine.scenarios import Gains, Recipe, RecipeError, Split, decode_recipe
from markets.importers import ProductRow
from markets.models import Market
from markets.setup import MarketSpec, SetupError

pytestmark = pytest.mark.django_db


def row(number: int) -> ProductRow:
    """Prices of 100 to 5000 dollars, lowest at half, highest at 1.2 times the list price."""
    return ProductRow(
        sku=f"s{number}",
        title=f"Desk {number}",
        category="desks",
        text="",
        list_price_cents=10_000 * number,
        lowest_price_cents=5_000 * number,
        highest_price_cents=12_000 * number,
        source="test",
    )


@pytest.fixture
def shop() -> str:
    setup.import_catalogue(name="shop", rows=[row(number) for number in range(1, 51)], source="test")
    return "shop"


def made(shop: str, **asked: object) -> tuple[Market, Recipe]:
    market = setup.create_market(MarketSpec(slug="m", **({"family": "bilateral", "catalogue": shop} | asked)))
    return market, decode_recipe(market.recipe)


def test_the_fixed_rule_looks_values_up_and_tells_their_spread(shop):
    market, recipe = made(shop, values="highest:0.8")
    assert recipe.value_spec == priors.HighestSpec(share=0.8)
    assert recipe.value_prior == priors.EmpiricalSpec(quantiles=(0.96,) * setup.COST_QUANTILES)
    scenario = services.draw_scenario(market, 3)
    list_price = scenario.products[0].list_price_cents
    assert scenario.buyer_values_cents[0][0] == round(0.8 * 1.2 * list_price)
    assert scenario.seller_values_cents[0] == list_price // 2


def test_ranges_over_a_products_prices_tell_the_spread_over_the_catalogue_before_the_draw(shop):
    market, recipe = made(shop, values="range:0.4:0.1", cost="lowest:0.6:0.9", gains="forced")
    assert recipe.gains is Gains.FORCED
    assert recipe.value_prior.quantiles[0] == pytest.approx(0.2)
    assert recipe.value_prior.quantiles[-1] == pytest.approx(1.27)
    assert recipe.cost_prior.quantiles[0] == pytest.approx(0.3)
    for seed in range(30):
        scenario = services.draw_scenario(market, seed)
        assert scenario.buyer_values_cents[0][0] > scenario.seller_values_cents[0]


def test_values_under_a_common_factor_are_asked_for_by_their_text(shop):
    _market, recipe = made(shop, family="multi_buyer", values="bands*uniform:0.6:1.6", opening_bids=(0.1, 0.2))
    assert priors.format_spec(recipe.value_spec) == "bands*uniform:0.6:1.6"
    assert recipe.value_prior is UNSET


def test_a_price_tier_draws_from_its_fifth_of_the_catalogue_alone(shop):
    market, _recipe = made(shop, price_tier=5)
    assert (market.price_from_cents, market.price_to_cents) == (410_000, 500_000)
    assert {facts.list_price_cents for facts in services.market_pool(market)} == {10_000 * n for n in range(41, 51)}


def test_a_price_decade_draws_from_its_prices_alone(shop):
    market, _recipe = made(shop, price_decade=3)
    assert {facts.list_price_cents for facts in services.market_pool(market)} == {10_000 * n for n in range(10, 51)}


@pytest.mark.parametrize("split", Split)
def test_a_market_draws_from_its_part_of_the_catalogue_alone(shop, split):
    market, recipe = made(shop, split=split.value)
    assert recipe.split is split
    pool = services.market_pool(market)
    assert pool
    assert all(splits.split_of(sku=f.sku, list_price_cents=f.list_price_cents) is split for f in pool)
    drawn = services.draw_scenario(market, 1).products[0]
    assert drawn.sku in {facts.sku for facts in pool}


def test_the_same_market_with_value_models_is_the_same_market(shop):
    asked = {"values": "range:0.4:0.1", "cost": "lowest:0.6:0.9", "gains": "none", "split": "training", "price_tier": 1}
    first, _recipe = made(shop, **asked)
    again, _recipe = made(shop, **asked)
    assert first.pk == again.pk


def test_a_market_of_the_usual_kind_is_stored_as_ever(shop):
    """Otherwise a database of before would refuse to seed its own markets again."""
    market, _recipe = made(shop)
    assert not {"value_prior", "gains", "split"} & set(market.recipe.replace('"', " ").split())


@pytest.mark.parametrize(
    ("asked", "error", "sentence"),
    [
        ({"values": "highest:0"}, priors.SpecError, "is not a rule for values"),
        ({"gains": "sometimes"}, SetupError, "There is no gains 'sometimes'; choose one of forced, none"),
        ({"split": "test"}, SetupError, "There is no split 'test'; choose one of training, held_out, held_out_decade"),
        ({"price_tier": 6}, SetupError, "A price tier is 1 to 5, not 6"),
        ({"price_decade": 8}, SetupError, "A price decade is 0 to 7, not 8"),
        ({"price_decade": 5}, SetupError, "has no product in that category and price range"),
        ({"price_tier": 1, "price_decade": 2}, SetupError, "not by two of them"),
        ({"price_tier": 1, "price_from_cents": 5}, SetupError, "not by two of them"),
        ({"price_decade": 2, "split": "held_out_decade"}, SetupError, "products of 'shop' is in the held_out_decade"),
        ({"values": "constant:0.1", "gains": "forced"}, RecipeError, "with gains from trade"),
        ({"values": "constant:0.9", "gains": "none"}, RecipeError, "without gains from trade"),
        ({"values": "uniform:0:1*uniform:1:2", "family": "multi_buyer", "rho": 0.5}, RecipeError, "leave rho at 0"),
    ],
    ids=lambda item: ",".join(f"{k}={v}" for k, v in item.items()) if isinstance(item, dict) else "",
)
def test_what_cannot_be_drawn_is_refused_and_nothing_is_stored(shop, asked, error, sentence):
    with pytest.raises(error, match=sentence):
        made(shop, **asked)
    assert not Market.objects.filter(slug="m").exists()


@pytest.mark.parametrize(
    ("asked", "sentence"),
    [
        ({"values": "range:0.4:0.1", "cost": "constant:1"}, "follow a product's own prices only where"),
        ({"values": "uniform:0:100", "cost": "lowest:0.6:0.9"}, "only where there is a catalogue"),
        ({"values": "uniform:0:100", "price_tier": 1}, "chooses from a catalogue"),
        ({"values": "uniform:0:100", "split": "training"}, "chooses from a catalogue"),
    ],
    ids=["values", "cost", "tier", "split"],
)
def test_without_a_catalogue_there_are_no_prices_to_follow(asked, sentence):
    with pytest.raises(SetupError, match=sentence):
        setup.create_market(MarketSpec(slug="m", family="bilateral", unit="money", **asked))


def test_gains_can_be_forced_without_a_catalogue_too():
    spec = MarketSpec(slug="m", family="bilateral", unit="money", values="uniform:0:100", cost="uniform:0:100")
    forced = setup.create_market(MarketSpec(**{**vars(spec), "gains": "forced"}))
    for seed in range(20):
        scenario = services.draw_scenario(forced, seed)
        assert scenario.buyer_values_cents[0][0] > scenario.seller_values_cents[0]


def test_a_shop_of_like_prices_has_no_tiers():
    setup.import_catalogue(name="flat", rows=[row(1)], source="test")
    with pytest.raises(SetupError, match="too few different list prices"):
        made("flat", price_tier=1)
