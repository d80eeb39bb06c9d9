"""Defining markets: what is not said takes the family's default, and a market that was played never changes."""

from dataclasses import replace

import msgspec
import pytest
from django.utils import timezone

from markets import services, setup
from markets.engine.priors import EmpiricalSpec, LowestSpec, SpecError, UniformSpec
from markets.engine.scenarios import Alternating, RecipeError, SellerTurns, decode_recipe
from markets.importers import ProductRow
from markets.models import Market, Product
from markets.setup import MarketSpec, SetupError

pytestmark = pytest.mark.django_db


def row(sku: str, *, lowest: int = 5_000, title: str = "", category: str = "desks") -> ProductRow:
    return ProductRow(
        sku=sku,
        title=title or f"Desk {sku}",
        category=category,
        text="A desk.",
        list_price_cents=10_000,
        lowest_price_cents=lowest,
        highest_price_cents=12_000,
        stock=1,
        source="test",
    )


@pytest.fixture
def shop() -> str:
    """A catalogue of eleven products whose lowest prices are 40 to 60 % of the list price."""
    rows = [row(f"s{n}", lowest=4_000 + 200 * n) for n in range(11)]
    setup.import_catalogue(name="shop", rows=rows, source="test")
    return "shop"


def test_each_family_has_its_own_defaults(shop):
    made = {}
    for family in ("bilateral", "multi_buyer", "catalogue"):
        recipe = decode_recipe(setup.create_market(MarketSpec(slug=family, family=family, catalogue=shop)).recipe)
        made[family] = (recipe.buyers, recipe.products, setup.turns_of(recipe), type(recipe.mechanism))
    assert made == {
        "bilateral": (1, 1, 6, Alternating),
        "multi_buyer": (3, 1, 8, SellerTurns),
        "catalogue": (3, 3, 12, SellerTurns),
    }


def test_what_is_public_of_looked_up_costs_is_their_distribution(shop):
    market = setup.create_market(MarketSpec(slug="m", family="bilateral", catalogue=shop))
    recipe = decode_recipe(market.recipe)
    assert isinstance(recipe.cost_spec, LowestSpec)
    assert isinstance(recipe.cost_prior, EmpiricalSpec)
    quantiles = recipe.cost_prior.quantiles
    assert (quantiles[0], quantiles[10], quantiles[-1]) == (0.4, 0.5, 0.6)
    assert list(quantiles) == sorted(quantiles)


def test_what_is_told_may_be_vaguer_than_what_is_drawn(shop):
    spec = MarketSpec(
        slug="m",
        family="bilateral",
        catalogue=shop,
        values="uniform:0.9:1",
        values_told="uniform:0.5:2",
        cost_told="uniform:0:1",
    )
    market = setup.create_market(spec)
    for seed in range(20):
        scenario = services.draw_scenario(market, seed)
        assert 9_000 <= scenario.buyer_values_cents[0][0] <= 10_000
        assert scenario.prior.value_spec == UniformSpec(low=0.5, high=2)
        assert scenario.prior.cost_spec == UniformSpec(low=0, high=1)


def test_a_scenarios_cost_is_the_lowest_price_of_its_product(shop):
    market = setup.create_market(MarketSpec(slug="m", family="bilateral", catalogue=shop))
    for seed in range(5):
        scenario = services.draw_scenario(market, seed)
        product = Product.objects.get(sku=scenario.products[0].sku)
        assert scenario.seller_values_cents == (product.lowest_price_cents,)


def test_a_market_draws_from_its_category_alone(shop):
    setup.import_catalogue(name=shop, rows=[row("lamp", category="lamps")], source="test")
    market = setup.create_market(MarketSpec(slug="m", family="bilateral", catalogue=shop, category="lamps"))
    assert {services.draw_scenario(market, seed).products[0].sku for seed in range(5)} == {"lamp"}
    with pytest.raises(SetupError, match="has no product of 'boats'"):
        setup.create_market(MarketSpec(slug="n", family="bilateral", catalogue=shop, category="boats"))


def test_a_market_draws_from_its_range_of_list_prices_alone(shop):
    rows = [msgspec.structs.replace(row(f"p{n}"), list_price_cents=1_000 * n) for n in range(1, 10)]
    setup.import_catalogue(name="prices", rows=rows, source="test")
    spec = MarketSpec(slug="m", family="bilateral", catalogue="prices", price_from_cents=3_000, price_to_cents=4_000)
    market = setup.create_market(spec)
    drawn = {services.draw_scenario(market, seed).products[0].list_price_cents for seed in range(20)}
    assert drawn == {3_000, 4_000}
    assert setup.create_market(spec) == market
    with pytest.raises(SetupError, match="choose another slug"):
        setup.create_market(replace(spec, price_to_cents=5_000))


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"price_from_cents": 99_000}, "no product in that category and price range"),
        ({"price_from_cents": 900, "price_to_cents": 100}, "must not be above"),
        ({"catalogue": None, "unit": "money", "values": "uniform:0:1", "category": "desks"}, "choose from a catalogue"),
        ({"mechanism": "auction"}, "There is no mechanism 'auction'"),
        ({"mechanism": "seller_turns"}, "alternating rounds"),
        ({"fill_wait_s": 0}, "wait for a person must be"),
        ({"move_deadline_s": 10**9}, "time for a move must be"),
        ({"currency": "XYZ"}, "currency must be one of"),
        ({"opening_bids": (0.5, 0.2)}, "low to high"),
        ({"cost_told": "nonsense"}, "is not a value spec"),
        ({"cost_told": "uniform:0.5:0.7"}, "told of the cost must reach over everything that is drawn, 0.4 to 0.6"),
        ({"values_told": "uniform:0.7:2"}, "told of the values must reach over everything that is drawn, 0.6 to 1.2"),
        ({"values": "lognormal:1:0.2", "values_told": "uniform:0:9"}, "told of the values must reach over"),
        ({"values": "range:0.4:0.1", "values_told": "uniform:0:9"}, "told with the product"),
        ({"cost": "lowest:0.6:0.9", "cost_told": "uniform:0:9"}, "told with the product"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
def test_what_cannot_be_set_up_is_refused_with_a_sentence_and_nothing_is_made(shop, changes, sentence):
    with pytest.raises((SetupError, RecipeError, SpecError), match=sentence):
        setup.create_market(MarketSpec(**({"slug": "m", "family": "bilateral", "catalogue": shop} | changes)))
    assert not Market.objects.exists()


@pytest.mark.parametrize(
    ("changes", "summary"),
    [
        ({}, "One seller and one buyer over one product from shop; 6 rounds."),
        (
            {"family": "catalogue", "category": "desks", "stock": 2, "buyers": 4},
            "One seller and 4 buyers over 3 products (2 of each) from Desks of shop; 12 messages to spend.",
        ),
        (
            {"family": "multi_buyer", "catalogue": None, "unit": "money", "values": "uniform:0:9"},
            "One seller and 3 buyers over one product; 8 messages to spend.",
        ),
        ({"summary": "My own words."}, "My own words."),
    ],
    ids=["bilateral", "catalogue", "money", "own-words"],
)
def test_a_market_without_a_summary_gets_one_from_its_recipe(shop, changes, summary):
    spec = {"slug": "m", "family": "bilateral", "catalogue": shop} | changes
    assert setup.create_market(MarketSpec(**spec)).summary == summary


def test_a_catalogue_that_a_market_draws_from_does_not_change(shop):
    market = setup.create_market(MarketSpec(slug="m", family="bilateral", catalogue=shop))
    drawn = services.draw_scenario(market, seed=7)
    same = [row(f"s{n}", lowest=4_000 + 200 * n) for n in range(11)]
    for rows in (same[:10], [*same, row("s11")], [row(f"s{n}", lowest=9_000) for n in range(11)]):
        with pytest.raises(SetupError, match="under another name"):
            setup.import_catalogue(name=shop, rows=rows, source="test")
    assert setup.import_catalogue(name=shop, rows=same, source="test").products == 11
    assert services.draw_scenario(market, seed=7) == drawn


def test_more_products_than_there_are_cannot_be_on_the_table(shop):
    with pytest.raises(RecipeError, match="too few"):
        setup.create_market(MarketSpec(slug="m", family="catalogue", catalogue=shop, products=12))
    assert not Market.objects.exists()


def test_the_same_market_again_is_the_same_and_another_one_is_refused(shop):
    spec = MarketSpec(slug="m", family="bilateral", catalogue=shop)
    assert setup.create_market(spec) == setup.create_market(spec)
    with pytest.raises(SetupError, match="choose another slug"):
        setup.create_market(MarketSpec(slug="m", family="bilateral", catalogue=shop, turns=3))
    assert Market.objects.count() == 1


def test_a_retired_market_is_not_defined_again(shop):
    spec = MarketSpec(slug="m", family="bilateral", catalogue=shop)
    Market.objects.filter(pk=setup.create_market(spec).pk).update(retired_at=timezone.now())
    with pytest.raises(SetupError, match="is retired; choose another slug"):
        setup.create_market(spec)
    assert Market.objects.count() == 1


def test_a_product_that_comes_twice_in_a_file_is_one_and_its_last_line_counts():
    rows = [row("a", title="Old"), row("b"), row("a", title="New")]
    imported = setup.import_catalogue(name="twice", rows=rows, source="test")
    assert imported.products == 2
    assert Product.objects.get(sku="a").title == "New"
