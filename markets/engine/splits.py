"""What stays out of training: the held-out sets, how a product is told to be in one, and who refuses it.

Here: the definition of every held-out axis, the split of a catalogue's products, an in-distribution
recipe moved onto an axis (`AXES`), and `refuse_held_out`, which a run asks before it trains. Not
here: where the definition is frozen (`markets/held_out.json`, whose hashes a test recomputes), and
who evaluates on it.

Contract: whether a product is held out depends on its sku and its list price alone, so a catalogue
may grow without moving one product across. The axes were fixed before anything trained on a
catalogue. Numbers of buyers and structures are axes of the games over products (arXiv 2607.05863,
2609.33289); games over bare values in money, which have no product to hold out, keep pairs of
buyers and turns apart in their own configuration.
"""

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import msgspec

from markets.engine import priors
from markets.engine.money import Cents
from markets.engine.protocol import encode
from markets.engine.scenarios import Family, ProductFacts, Recipe, Split, sample
from markets.engine.seeds import derive_seed

PRODUCTS_IN_FIVE = 1
"""Of five products so many are held out by the hash of their sku."""
PRICE_DECADE = 3
"""Products listed at 10**3 to below 10**4 units of money are held out, whatever their sku."""
BUYERS = (2, 5, 8)
"""Numbers of buyers of one product; trained on are 3, and others between."""
BAND_FACTORS = (0.7, 1.4)
"""Multiples of the usual bands."""
LOGNORMAL = priors.LogNormalSpec(median=0.8, sigma=0.5)
"""Values in multiples of the list price; nothing trains on any lognormal."""
RHOS = (0.3, 0.6, 0.9)
"""Correlations of values, within a buyer over products or across the buyers of one."""
STRUCTURES = ((2, 2, 1), (4, 2, 1), (4, 4, 1), (6, 3, 1), (8, 4, 1), (6, 2, 2))
"""(buyers, products, stock of each) of a catalogue; trained on is (3, 3, 1), and others between."""
BUYER_TYPES = ("impatient", "satisficer")
"""Agents that no run meets as a buyer; slugs of `agents.registry`."""
PERSONAS = ("begging", "insulting", "unyielding")
"""Ways of talking that no run meets (arXiv 2604.09855)."""


class HeldOut(ValueError):
    """Something that stays out of training was about to be trained on; the message says what."""


# Products --------------------------------------------------------------------------------------


def split_of(*, sku: str, list_price_cents: Cents) -> Split:
    """The part of its catalogue that a product belongs to."""
    if 10**PRICE_DECADE * 100 <= list_price_cents < 10 ** (PRICE_DECADE + 1) * 100:
        return Split.HELD_OUT_DECADE
    if derive_seed("held-out product", sku) % 5 < PRODUCTS_IN_FIVE:
        return Split.HELD_OUT
    return Split.TRAINING


def select(pool: Iterable[ProductFacts], split: Split | msgspec.UnsetType) -> tuple[ProductFacts, ...]:
    """The products of one part, in their order; all of them where no part is asked for."""
    return tuple(
        facts
        for facts in pool
        if isinstance(split, msgspec.UnsetType)
        or split_of(sku=facts.sku, list_price_cents=facts.list_price_cents) is split
    )


TIERS = 5


def price_tiers(list_prices_cents: Iterable[Cents]) -> tuple[tuple[Cents, Cents], ...]:
    """(lowest, highest) list price of each fifth of the products, cheapest first.

    Products of one price stay in one tier, the lower one, so that tiers never overlap and a product's
    tier follows from its price. Raises `ValueError` where the prices are too alike for five tiers.
    """
    ranked = sorted(list_prices_cents)
    tiers: list[tuple[Cents, Cents]] = []
    start = 0
    for tier in range(1, TIERS + 1):
        end = len(ranked) * tier // TIERS
        while 0 < end < len(ranked) and ranked[end] == ranked[end - 1]:
            end += 1
        if end <= start:
            raise ValueError(f"{len(ranked)} products have too few different list prices for {TIERS} tiers.")
        tiers.append((ranked[start], ranked[end - 1]))
        start = end
    return tuple(tiers)


# Axes ------------------------------------------------------------------------------------------


def _scaled_bands(factor: float) -> priors.BandsSpec:
    usual = priors.BandsSpec().bands
    return priors.BandsSpec(bands=tuple((round(low * factor, 6), round(high * factor, 6)) for low, high in usual))


def _moved(**changes: Any) -> Callable[[Recipe], Recipe]:
    def move(recipe: Recipe) -> Recipe:
        return msgspec.structs.replace(recipe, **{"split": Split.HELD_OUT, **changes})

    return move


AXES: Mapping[str, Callable[[Recipe], Recipe]] = MappingProxyType(
    {
        "products": _moved(),
        **{f"buyers-{buyers}": _moved(buyers=buyers) for buyers in BUYERS},
        **{f"bands-x{factor:g}": _moved(value_spec=_scaled_bands(factor)) for factor in BAND_FACTORS},
        "lognormal": _moved(value_spec=LOGNORMAL),
        **{f"rho-{rho:g}": _moved(rho=rho) for rho in RHOS},
        **{
            f"structure-{buyers}x{products}x{stock}": _moved(buyers=buyers, products=products, stock=stock)
            for buyers, products, stock in STRUCTURES
        },
        "price-decade": _moved(split=Split.HELD_OUT_DECADE),
    }
)
"""A recipe that was trained on -> the same game on one held-out axis, and on held-out products.

`buyers-*` and `bands-*` are for games over one product, `structure-*` for catalogues, the others for
both. Buyer types and personas are changed by who sits opposite, not by a recipe.
"""


def held_out_axes(
    *,
    recipe: Recipe | None = None,
    values: priors.ValueRule | None = None,
    products: Iterable[ProductFacts] = (),
    opponents: Iterable[str] = (),
    personas: Iterable[str] = (),
) -> tuple[str, ...]:
    """What of this stays out of training, each as a phrase; nothing where all may be trained on."""
    return (
        *(() if recipe is None else _of_recipe(recipe)),
        *(() if values is None else _of_values(values)),
        *_of_products(products),
        *(f"the buyer {slug!r}" for slug in opponents if slug in BUYER_TYPES),
        *(f"the persona {name!r}" for name in personas if name in PERSONAS),
    )


def refuse_held_out(
    *,
    recipe: Recipe | None = None,
    values: priors.ValueRule | None = None,
    products: Iterable[ProductFacts] = (),
    opponents: Iterable[str] = (),
    personas: Iterable[str] = (),
) -> None:
    """Raise `HeldOut` with a sentence unless all of this may be trained on."""
    found = held_out_axes(recipe=recipe, values=values, products=products, opponents=opponents, personas=personas)
    if found:
        raise HeldOut(f"Held out for evaluation and so never trained on: {', '.join(found)}.")


def _of_values(spec: priors.ValueRule) -> Iterator[str]:
    base = spec.base if isinstance(spec, priors.FactorSpec) else spec
    if isinstance(base, priors.BandsSpec) and base in map(_scaled_bands, BAND_FACTORS):
        yield f"the bands {priors.format_spec(base)}"
    if isinstance(base, priors.LogNormalSpec):
        yield "lognormal values"


def _of_recipe(recipe: Recipe) -> Iterator[str]:
    yield from _of_values(recipe.value_spec)
    if recipe.rho in RHOS:
        yield f"the correlation {recipe.rho:g}"
    if recipe.split in (Split.HELD_OUT, Split.HELD_OUT_DECADE):
        yield "the products of a held-out part"
    if recipe.unit_is_money:
        return
    if recipe.family is Family.MULTI_BUYER and recipe.buyers in BUYERS:
        yield f"{recipe.buyers} buyers"
    shape = (recipe.buyers, recipe.products, recipe.stock)
    if recipe.family is Family.CATALOGUE and shape in STRUCTURES:
        yield "the structure {}x{}x{}".format(*shape)


def _of_products(products: Iterable[ProductFacts]) -> Iterator[str]:
    kept = [
        facts.sku
        for facts in products
        if split_of(sku=facts.sku, list_price_cents=facts.list_price_cents) is not Split.TRAINING
    ]
    if kept:
        yield f"{len(kept)} products such as {kept[0]!r}"


# The frozen definition -------------------------------------------------------------------------


def definition() -> dict[str, Any]:
    """Every axis as plain data."""
    return {
        "products_in_five": PRODUCTS_IN_FIVE,
        "price_decade": PRICE_DECADE,
        "buyers": list(BUYERS),
        "bands": {f"{factor:g}": priors.format_spec(_scaled_bands(factor)) for factor in BAND_FACTORS},
        "lognormal": priors.format_spec(LOGNORMAL),
        "rho": list(RHOS),
        "structures": [list(shape) for shape in STRUCTURES],
        "buyer_types": list(BUYER_TYPES),
        "personas": list(PERSONAS),
    }


def products_digest(pool: Sequence[ProductFacts]) -> dict[str, Any]:
    """How many products of a catalogue are in each part, and the hash of which are."""
    parts = {
        split.value: sorted(
            facts.sku for facts in pool if split_of(sku=facts.sku, list_price_cents=facts.list_price_cents) is split
        )
        for split in Split
    }
    return {
        "products": {split: len(skus) for split, skus in parts.items()},
        "sha256": _sha256(parts),
    }


def axis_digest(name: str, recipe: Recipe, pool: Sequence[ProductFacts], *, scenarios: int = 16) -> str:
    """Hash of the first scenarios of `recipe` on the axis: changes when the axis or the sampler does."""
    moved = AXES[name](recipe)
    part = select(pool, moved.split)
    drawn = [sample(moved, part, derive_seed("held-out", name, k)) for k in range(scenarios)]
    return hashlib.sha256(b"\n".join(encode(scenario) for scenario in drawn)).hexdigest()


def _sha256(data: Any) -> str:
    return hashlib.sha256(msgspec.json.encode(data, order="sorted")).hexdigest()
