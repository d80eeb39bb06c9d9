"""`create_market` reads every value model, and answers what it cannot read with a sentence."""

import json
from io import StringIO

import pytest
from django.core.management import CommandError, call_command

from markets import setup
from markets.engine.scenarios import decode_recipe
from markets.models import Market
from tests.markets.test_setup_values import row

pytestmark = pytest.mark.django_db


@pytest.fixture
def shop() -> str:
    setup.import_catalogue(name="shop", rows=[row(number) for number in range(1, 51)], source="test")
    return "shop"


def create(*arguments: str) -> dict[str, object]:
    out = StringIO()
    call_command("create_market", "--slug", "m", *arguments, "--json", stdout=out)
    return json.loads(out.getvalue())


def test_every_value_model_has_an_option(shop):
    told = create(
        *["--family", "bilateral", "--catalogue", shop, "--values", "range:0.4:0.1", "--cost", "lowest:0.6:0.9"],
        *["--gains", "forced", "--split", "training", "--price-decade", "2"],
    )
    assert (told["values"], told["cost"]) == ("range:0.4:0.1", "lowest:0.6:0.9")
    market = Market.objects.get(slug="m")
    recipe = decode_recipe(market.recipe)
    assert (recipe.gains, recipe.split, market.price_from_cents) == ("forced", "training", 10_000)


def test_openings_are_moved_below_the_lowest_value_or_left_out(shop):
    base = ["--family", "multi_buyer", "--catalogue", shop, "--values", "bands*uniform:0.6:1.6"]
    create(*base, "--opening-bids", "0.1:0.2")
    assert decode_recipe(Market.objects.get(slug="m").recipe).opening_bid_share == (0.1, 0.2)
    with pytest.raises(CommandError) as refusal:
        create(*base, "--opening-bids", "none")
    assert refusal.value.returncode == 2
    assert "a market does not change" in str(refusal.value)


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (["--values", "bands*2"], "is not a value spec"),
        (["--values", "highest"], "is not a rule for values"),
        (["--cost", "lowest:0.9"], "is not a cost spec"),
        (["--opening-bids", "high"], "neither none nor two shares"),
        (["--opening-bids", "0.5:0.4"], "shares of the list price, low to high"),
        (["--price-tier", "9"], "A price tier is 1 to 5"),
        (["--stock", "3"], "sells one unit, not 3"),
        (["--opener", "buyer"], "the seller always writes first"),
    ],
    ids=lambda item: " ".join(item) if isinstance(item, list) else "",
)
def test_a_wrong_option_ends_with_a_sentence_and_stores_nothing(shop, arguments, sentence):
    with pytest.raises(CommandError, match=sentence):
        create("--family", "multi_buyer", "--catalogue", shop, *arguments)
    assert not Market.objects.exists()
