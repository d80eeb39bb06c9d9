"""Held-out sets stay what they were when training began, or a figure called "out of distribution" is a lie."""

import json
from pathlib import Path

import msgspec
import pytest

from agents import registry
from markets.engine import priors, splits
from markets.engine.protocol import Role
from markets.engine.scenarios import ProductFacts, Recipe, Split, check
from tests.markets.engine import held_out
from tests.markets.engine.held_out import CATALOGUE, ONE_PRODUCT

FROZEN = json.loads(held_out.MANIFEST.read_text(encoding="utf-8"))


def product(sku: str, *, dollars: int = 50) -> ProductFacts:
    return ProductFacts(
        sku=sku,
        title=sku,
        list_price_cents=dollars * 100,
        lowest_price_cents=dollars * 50,
        highest_price_cents=dollars * 120,
    )


POOL = tuple(product(f"sku-{n}") for n in range(1000))


# --- Frozen -------------------------------------------------------------------------------------


def test_the_definition_is_the_frozen_one() -> None:
    assert splits.definition() == FROZEN["definition"]


@pytest.mark.parametrize("axis", splits.AXES)
def test_an_axis_draws_the_frozen_scenarios(axis: str) -> None:
    drawn = splits.axis_digest(axis, held_out.recipe_for(axis), held_out.starter())
    assert drawn == FROZEN["axes"][axis], "see `python -m tests.markets.engine.held_out`"


def test_no_axis_was_added_or_dropped() -> None:
    assert list(splits.AXES) == list(FROZEN["axes"])


def test_the_starter_catalogue_is_split_as_it_was() -> None:
    assert splits.products_digest(held_out.starter()) == FROZEN["catalogues"]["starter"]


def test_the_public_catalogue_is_split_as_it_was(parley_data: Path) -> None:
    folder = parley_data / held_out.PUBLIC
    if not folder.is_dir():
        pytest.skip(f"no {held_out.PUBLIC} in {parley_data}")
    told = splits.products_digest(held_out.pool("amazon-history-price", folder))
    assert told == FROZEN["catalogues"][held_out.PUBLIC]
    assert told["products"]["held_out"] >= 128, "enough for the test products of arXiv 2609.33289"


def test_a_change_of_one_number_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(splits, "RHOS", (0.3, 0.6, 0.8))
    monkeypatch.setattr(splits, "PRODUCTS_IN_FIVE", 2)
    assert splits.definition() != FROZEN["definition"]
    assert splits.products_digest(held_out.starter()) != FROZEN["catalogues"]["starter"]


def test_a_change_of_the_sampler_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(priors, "bands_by_rank", lambda *, bands, buyers: (bands - 1,) * buyers)
    assert splits.axis_digest("products", ONE_PRODUCT, held_out.starter()) != FROZEN["axes"]["products"]


# --- Products -----------------------------------------------------------------------------------


def test_about_a_fifth_of_the_products_is_held_out() -> None:
    assert len(splits.select(POOL, Split.HELD_OUT)) == pytest.approx(200, abs=40)


def test_a_catalogue_that_grows_moves_no_product_across() -> None:
    before = splits.select(POOL[:300], Split.HELD_OUT)
    assert splits.select(POOL, Split.HELD_OUT)[: len(before)] == before


def test_the_parts_of_a_catalogue_are_all_of_it_and_share_nothing() -> None:
    pool = [*POOL, *(product(f"dear-{n}", dollars=1000 + n) for n in range(20))]
    parts = [splits.select(pool, split) for split in Split]
    assert sum(map(len, parts)) == len(pool)
    assert {facts.sku for part in parts for facts in part} == {facts.sku for facts in pool}
    assert splits.select(pool, msgspec.UNSET) == tuple(pool)


@pytest.mark.parametrize(("cents", "inside"), [(99_999, False), (100_000, True), (999_999, True), (1_000_000, False)])
def test_the_decade_ends_where_it_says(cents: int, inside: bool) -> None:
    assert (splits.split_of(sku="x", list_price_cents=cents) is Split.HELD_OUT_DECADE) is inside


def test_price_tiers_are_fifths_that_never_overlap() -> None:
    tiers = splits.price_tiers(range(1, 101))
    assert tiers == ((1, 20), (21, 40), (41, 60), (61, 80), (81, 100))


def test_products_of_one_price_share_a_tier() -> None:
    assert splits.price_tiers([1, 2, 2, 5, 6, 7, 8, 9, 10, 10]) == ((1, 2), (5, 5), (6, 7), (8, 9), (10, 10))


@pytest.mark.parametrize("prices", [[], [5], [5] * 20, [1, 2, 3, 4]])
def test_too_few_prices_make_no_tiers(prices: list[int]) -> None:
    with pytest.raises(ValueError, match="too few different list prices for 5 tiers"):
        splits.price_tiers(prices)


# --- Axes ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("axis", splits.AXES)
def test_training_refuses_every_axis_and_an_axis_can_be_drawn(axis: str) -> None:
    moved = splits.AXES[axis](held_out.recipe_for(axis))
    check(moved, pool_size=20)
    with pytest.raises(splits.HeldOut, match="never trained on") as refusal:
        splits.refuse_held_out(recipe=moved)
    plain = msgspec.structs.replace(moved, split=msgspec.UNSET)
    assert bool(splits.held_out_axes(recipe=plain)) is (axis not in ("products", "price-decade")), refusal.value


@pytest.mark.parametrize("recipe", [ONE_PRODUCT, CATALOGUE], ids=["one product", "catalogue"])
def test_the_games_that_are_trained_on_are_not_refused(recipe: Recipe) -> None:
    trained = msgspec.structs.replace(recipe, split=Split.TRAINING)
    splits.refuse_held_out(
        recipe=trained,
        products=splits.select(POOL, Split.TRAINING),
        opponents=("threshold", "linear", "logit"),
        personas=("neutral", "chatty"),
    )


def test_a_common_factor_does_not_hide_held_out_bands() -> None:
    spec = priors.FactorSpec(
        base=priors.BandsSpec(bands=((0.28, 0.385), (0.455, 0.56), (0.7, 0.805))),
        factor=priors.UniformSpec(low=0.9, high=1.1),
    )
    assert splits.held_out_axes(recipe=msgspec.structs.replace(ONE_PRODUCT, value_spec=spec))


def test_games_over_bare_money_keep_their_own_pairs_apart() -> None:
    recipe = msgspec.structs.replace(
        ONE_PRODUCT,
        buyers=2,
        unit_is_money=True,
        value_spec=priors.UniformSpec(low=0, high=100),
        cost_spec=priors.ConstantSpec(value=0),
    )
    assert splits.held_out_axes(recipe=recipe) == ()


def test_one_held_out_product_opponent_or_persona_is_enough_to_refuse() -> None:
    kept = splits.select(POOL, Split.HELD_OUT)[0]
    free = splits.select(POOL, Split.TRAINING)[0]
    with pytest.raises(splits.HeldOut, match=f"1 products such as '{kept.sku}'"):
        splits.refuse_held_out(products=(free, kept))
    with pytest.raises(splits.HeldOut, match="the buyer 'impatient', the persona 'begging'"):
        splits.refuse_held_out(opponents=("linear", "impatient"), personas=("begging",))


@pytest.mark.parametrize("text", ["lognormal:100:0.5", "bands:0.28:0.385:0.455:0.56:0.7:0.805"])
def test_held_out_values_are_refused_without_a_recipe_too(text: str) -> None:
    with pytest.raises(splits.HeldOut, match="never trained on"):
        splits.refuse_held_out(values=priors.parse_value_spec(text))
    splits.refuse_held_out(values=priors.parse_value_spec("uniform:0:100"))


def test_the_held_out_buyer_types_are_agents_that_play_buyers() -> None:
    assert all(Role.BUYER in registry.get(slug).roles for slug in splits.BUYER_TYPES)
