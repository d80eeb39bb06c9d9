"""A player is told what values are like in words: every kind of prior has some, with its own numbers."""

import pytest

from markets import priors_text
from markets.engine import priors
from markets.engine.scenarios import Family, Recipe, SellerTurns


def told(text: str, *, money: bool = False) -> str:
    spec = priors.parse_value_spec(text)
    recipe = Recipe(
        family=Family.MULTI_BUYER,
        mechanism=SellerTurns(8),
        value_spec=spec,
        cost_spec=priors.ConstantSpec(value=0),
        cost_prior=priors.ConstantSpec(value=0),
        unit_is_money=money,
    )
    return priors_text.describe(spec, recipe).replace("\u00a0", " ")


@pytest.mark.parametrize(
    ("rule", "words"),
    [
        (
            priors.parse_value_rule("highest:0.8"),
            "80 % of the product's highest price or of its list price, whichever is higher",
        ),
        (
            priors.parse_value_rule("range:0.4:0.1"),
            "anything from 40 % of the product's lowest price to its highest price and 10 % of the distance between the "
            "two on top, all equally likely",
        ),
        (priors.parse_cost_spec("lowest"), "the product's own lowest price"),
        (
            priors.parse_cost_spec("lowest:0.6:0.905"),
            "anything from 60 % to 90.5 % of the product's own lowest price, all equally likely",
        ),
        (priors.parse_cost_spec("uniform:0.2:0.5"), "anything from 20 % to 50 % of the list price, all equally likely"),
    ],
    ids=("highest", "range", "lowest", "lowest-range", "uniform"),
)
def test_a_rule_that_reads_a_products_own_prices_is_told_in_words(rule, words: str) -> None:
    recipe = Recipe(
        family=Family.MULTI_BUYER,
        mechanism=SellerTurns(8),
        value_spec=priors.BandsSpec(),
        cost_spec=priors.ConstantSpec(value=0),
        cost_prior=priors.ConstantSpec(value=0),
        unit_is_money=False,
    )
    assert priors_text.describe_rule(rule, recipe).replace("\u00a0", " ") == words


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("bands", "in one of these bands: 40 % – 55 %, 65 % – 80 %, 100 % – 115 % of the list price"),
        ("uniform:0.5:1.5", "anything from 50 % to 150 % of the list price, all equally likely"),
        ("constant:0.6", "always 60 % of the list price"),
        ("empirical:0.5:0.7:0.9", "around 70 %, in eight cases out of ten from 54 % to 86 % of the list price"),
        (
            "bands:0.4:0.5*uniform:0.6:1.6",
            "in one of these bands: 40 % – 50 % of the list price; all of them times one hidden number from 0.6 to 1.6, "
            "the same for everybody",
        ),
    ],
    ids=lambda text: text.split(":")[0] if text.count(":") else text[:5],
)
def test_a_prior_is_told_in_words(text: str, words: str) -> None:
    assert told(text) == words


def test_amounts_of_money_are_told_as_amounts() -> None:
    assert told("uniform:10:20", money=True) == "anything from $10.00 to $20.00, all equally likely"
    assert told("lognormal:100:0.5", money=True).startswith("around $100.00, in eight cases out of ten from $")
