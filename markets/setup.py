"""Writes to catalogues and markets: importing products, defining a market.

A market's version never changes: defining the same market again changes nothing, defining another
one under its slug is refused.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any, get_args

from django.core.exceptions import ValidationError
from django.core.validators import validate_slug
from django.db import transaction
from django.db.models import CharField
from msgspec import UNSET, UnsetType

from markets import recipe_text, services
from markets.engine import priors, scenarios, splits
from markets.engine.protocol import Role, encode
from markets.engine.scenarios import EventDriven, Family, Gains, Mechanism, Recipe, SellerTurns, Split
from markets.importers import BadRow, ProductRow
from markets.models import Catalogue, Market, Product

MAX_WAIT_S = 30 * 24 * 3600
"""Longest time for a move, and for a seat to stay open, that a market may give."""
COST_QUANTILES = 21
"""Points of the public distribution of lowest over list price, minimum and maximum included."""

DEFAULT_BUYERS = {Family.BILATERAL: 1, Family.MULTI_BUYER: 3, Family.CATALOGUE: 3}
DEFAULT_PRODUCTS = {Family.BILATERAL: 1, Family.MULTI_BUYER: 1, Family.CATALOGUE: 3}
DEFAULT_TURNS = {Family.BILATERAL: 6, Family.MULTI_BUYER: 8, Family.CATALOGUE: 12}
DEFAULT_EVENT_ROUNDS = 10
"""Rounds that the parties of an event-driven market are told of."""
DEFAULT_MECHANISM = {
    Family.BILATERAL: "alternating",
    Family.MULTI_BUYER: "seller_turns",
    Family.CATALOGUE: "seller_turns",
}
MECHANISMS: dict[str, Any] = {kind.__struct_config__.tag: kind for kind in get_args(Mechanism)}
"""The engine's mechanisms by name; which family is played by which, the engine says."""
DEFAULT_VALUES = {
    Family.BILATERAL: "uniform:0.6:1.2",
    Family.MULTI_BUYER: "bands",
    Family.CATALOGUE: "bands",
}


class SetupError(ValueError):
    """Something that cannot be set up; the sentence says what to change."""


@dataclass(frozen=True, kw_only=True)
class MarketSpec:
    """A market as somebody asks for it; None takes the family's default."""

    slug: str
    family: str
    mechanism: str = ""
    """Empty takes the family's usual one."""
    catalogue: str | None = None
    name: str = ""
    summary: str = ""
    category: str = ""
    price_from_cents: int | None = None
    price_to_cents: int | None = None
    """Ends of the list prices that are drawn, both included; None for no end."""
    price_tier: int | None = None
    """1 to 5: only the fifth of the products with such list prices, 1 the cheapest; sets both ends."""
    price_decade: int | None = None
    """d: only list prices from 10**d to below 10**(d + 1) units of money; sets both ends."""
    split: str = ""
    """Only the training, held_out or held_out_decade part of the catalogue; empty draws from all of it."""
    gains: str = ""
    """forced: values and costs are drawn again until trade can gain; none: until it cannot; empty: as they come."""
    buyers: int | None = None
    products: int | None = None
    turns: int | None = None
    stock: int = 1
    cost: str | None = None
    values: str | None = None
    rho: float = 0.0
    unit: str = "list"
    opener: Role | None = None
    """Who writes first in a negotiation of two, the seller unless said; with several buyers always the seller."""
    regulated: tuple[Role, ...] = ()
    currency: str = "USD"
    opening_bids: tuple[float, float] | None = (0.25, 0.30)
    """Range of the buyers' opening bids as a share of the list price; None for no openings."""
    malformed_ends: bool | None = None
    """Whether an agent's unreadable message ends a negotiation of two; None: in alternating rounds."""
    events: int | None = None
    """Cap on the events of an event-driven market."""
    values_told: str = ""
    """What everybody is told about the values, as a value spec that reaches over all that is drawn; empty tells how
    they are drawn."""
    cost_told: str = ""
    """What everybody is told about the cost, likewise."""
    seller_agent: str = "linear"
    buyer_agents: str = "linear"
    move_deadline_s: int = 600
    fill_wait_s: int = 120
    listed: bool = True
    reveals_values: bool = True
    """Whether players see the other side's values once a game is over."""


@dataclass(frozen=True)
class Imported:
    """What an import did."""

    catalogue: Catalogue
    products: int
    bad_rows: tuple[BadRow, ...]


def import_catalogue(*, name: str, rows: Iterable[ProductRow | BadRow], source: str) -> Imported:
    """Store a catalogue under the slug `name`; a product that is there already is brought up to date.

    Bad rows are passed over and reported. A catalogue that a market draws from does not change, or a
    market's seed would not give the same scenario for ever: the same rows again are welcome, others
    raise `SetupError`.
    """
    check_slug(name, what="A catalogue's name")
    good: dict[str, ProductRow] = {}
    bad: list[BadRow] = []
    for row in rows:
        if isinstance(row, BadRow):
            bad.append(row)
        else:
            good[row.sku] = row
    if not good:
        reasons = " ".join(f"{row.path}:{row.line}: {row.reason}" for row in bad[:3])
        raise SetupError(f"Nothing to import: no good row was found. {reasons}".strip())
    with transaction.atomic():
        catalogue, _created = Catalogue.objects.get_or_create(slug=name, defaults={"name": name, "source": source})
        if catalogue.markets.exists():
            _check_unchanged(catalogue, good.values())
            return Imported(catalogue, len(good), tuple(bad))
        Product.objects.bulk_create(
            (_product(catalogue, row) for row in good.values()),
            update_conflicts=True,
            unique_fields=["catalogue", "sku"],
            update_fields=[
                "title",
                "category",
                "text",
                "list_price_cents",
                "lowest_price_cents",
                "highest_price_cents",
                "stock",
            ],
            batch_size=500,
        )
    return Imported(catalogue, len(good), tuple(bad))


def _check_unchanged(catalogue: Catalogue, rows: Iterable[ProductRow]) -> None:
    """Raise `SetupError` unless `rows` are what the catalogue holds."""
    fields = [field.name for field in Product._meta.concrete_fields if field.name not in ("id", "catalogue")]
    stored = set(catalogue.products.values_list(*fields))
    offered = {tuple(getattr(_product(catalogue, row), field) for field in fields) for row in rows}
    if stored != offered:
        raise SetupError(
            f"Markets draw from the catalogue {catalogue.slug!r}, so its products do not change; import these under "
            "another name and make a market of it."
        )


def _product(catalogue: Catalogue, row: ProductRow) -> Product:
    return Product(
        catalogue=catalogue,
        sku=row.sku,
        title=row.title,
        category=row.category,
        text=row.text,
        list_price_cents=row.list_price_cents,
        lowest_price_cents=row.lowest_price_cents,
        highest_price_cents=row.highest_price_cents,
        stock=row.stock,
    )


def new_market(spec: MarketSpec) -> Market:
    """The row of a market, not stored. Raises `SetupError`, `SpecError` or `RecipeError` with a sentence."""
    check_slug(spec.slug, what="A market's slug")
    for words, field, what in (
        (spec.name, "name", "name"),
        (spec.summary, "summary", "summary"),
        (spec.buyer_agents, "buyer_agents", "list of buyers' agents"),
    ):
        _check_length(words, field=field, what=what)
    for amount, what in ((spec.move_deadline_s, "time for a move"), (spec.fill_wait_s, "wait for a person")):
        if not 1 <= amount <= MAX_WAIT_S:
            raise SetupError(f"The {what} must be 1 to {MAX_WAIT_S} seconds, not {amount}.")
    catalogue = catalogue_of(spec)
    spec = _with_price_ends(spec, catalogue)
    pool = pool_of(spec, catalogue)
    recipe = make_recipe(spec, pool=pool)
    scenarios.check(recipe, pool_size=len(pool))
    if recipe.gains is not UNSET:
        _try_every_product(recipe, pool)
    return Market(
        slug=spec.slug,
        name=spec.name or spec.slug.replace("-", " ").capitalize(),
        summary=spec.summary or recipe_text.summary(recipe, goods=recipe_text.goods(catalogue, spec.category)),
        family=recipe.family.value,
        mechanism=_mechanism_name(recipe),
        catalogue=catalogue,
        category=spec.category,
        price_from_cents=spec.price_from_cents,
        price_to_cents=spec.price_to_cents,
        recipe=encode(recipe).decode(),
        seller_agent=spec.seller_agent,
        buyer_agents=spec.buyer_agents,
        move_deadline_s=spec.move_deadline_s,
        fill_wait_s=spec.fill_wait_s,
        is_listed=spec.listed,
        reveals_values=spec.reveals_values,
    )


def create_market(spec: MarketSpec) -> Market:
    """Define a market. Raises `SetupError`, `SpecError` or `RecipeError` with a sentence."""
    market = new_market(spec)
    with transaction.atomic():
        known = Market.objects.filter(slug=spec.slug).order_by("-version").first()
        if known is None:
            market.save()
            return market
    if known.retired_at is not None:
        raise SetupError(f"The market {spec.slug!r} is retired; choose another slug, or bring it back in the builder.")
    if rules_of(known) == rules_of(market):
        return known
    raise SetupError(
        f"There is already a market {spec.slug!r} with other rules, and a market does not change; choose another slug."
    )


def rules_of(market: Market) -> tuple[object, ...]:
    """What decides which scenarios a market draws."""
    return (
        market.recipe,
        market.catalogue_id,
        market.category,
        market.price_from_cents,
        market.price_to_cents,
    )


def make_recipe(spec: MarketSpec, *, pool: list[Product]) -> Recipe:
    """The rule behind a spec. Raises `SetupError` or `SpecError`."""
    family = family_named(spec.family)
    mechanism = _mechanism(spec, family)
    unit_is_money = _unit_is_money(spec.unit)
    value_spec = priors.parse_value_rule(_values_text(spec, family, unit_is_money))
    cost_spec = priors.parse_cost_spec(_cost_text(spec, has_pool=bool(pool)))
    cost_prior: priors.ValueSpec
    if isinstance(cost_spec, priors.LowestSpec | priors.LowestRangeSpec):
        if not pool:
            raise SetupError(
                "Costs can be the lowest price only where there is a catalogue; name one with "
                "--catalogue, or give a cost such as constant:0."
            )
        cost_prior = _catalogue_prior(cost_spec, pool, unit_is_money=unit_is_money)
    else:
        cost_prior = cost_spec
    follows_prices = isinstance(value_spec, priors.HighestSpec | priors.RangeSpec)
    if follows_prices and not pool:
        raise SetupError(
            "Values can follow a product's own prices only where there is a catalogue; name one with "
            "--catalogue, or give values such as uniform:0:100."
        )
    value_prior: priors.ValueSpec | UnsetType = UNSET
    if follows_prices:
        value_prior = _catalogue_prior(value_spec, pool, unit_is_money=unit_is_money)
    if spec.values_told:
        truth = value_spec if isinstance(value_prior, UnsetType) else value_prior
        value_prior = _told(spec.values_told, rule=value_spec, truth=truth, what="values")
    if spec.cost_told:
        cost_prior = _told(spec.cost_told, rule=cost_spec, truth=cost_prior, what="cost")
    return Recipe(
        family=family,
        mechanism=mechanism,
        buyers=DEFAULT_BUYERS[family] if spec.buyers is None else spec.buyers,
        products=DEFAULT_PRODUCTS[family] if spec.products is None else spec.products,
        stock=spec.stock,
        value_spec=value_spec,
        cost_spec=cost_spec,
        cost_prior=cost_prior,
        value_prior=value_prior,
        gains=_one_of(Gains, spec.gains, what="gains") if spec.gains else UNSET,
        split=_one_of(Split, spec.split, what="split") if spec.split else UNSET,
        rho=spec.rho,
        unit_is_money=unit_is_money,
        currency=spec.currency,
        regulated=spec.regulated,
        malformed_ends=not isinstance(mechanism, EventDriven) if spec.malformed_ends is None else spec.malformed_ends,
        opening_bid_share=spec.opening_bids,
    )


def _told(text: str, *, rule: object, truth: Any, what: str) -> priors.ValueSpec:
    """What everybody is told instead of the truth: less, never what cannot be. Raises `SetupError` or `SpecError`."""
    told = priors.parse_value_spec(text)
    if isinstance(rule, priors.RangeSpec | priors.LowestRangeSpec):
        raise SetupError(f"The range of a product's own prices is told with the product; the {what} cannot hide it.")
    if priors.low(told) > priors.low(truth) or priors.high(told) < priors.high(truth):
        drawn = f"{priors.low(truth):g} to {priors.high(truth):g}"
        raise SetupError(f"What is told of the {what} must reach over everything that is drawn, {drawn}.")
    return told


def _mechanism(spec: MarketSpec, family: Family) -> Mechanism:
    """The spec's mechanism, with what it has of a length, an opener and a cap. Raises `SetupError`."""
    name = spec.mechanism or DEFAULT_MECHANISM[family]
    kind = MECHANISMS.get(name)
    if kind is None:
        raise SetupError(f"There is no mechanism {name!r}; choose one of {', '.join(MECHANISMS)}.")
    if spec.events is not None and kind is not EventDriven:
        raise SetupError(f"Only an event_driven market has a cap on events; this one is played by {name}.")
    if spec.opener is Role.BUYER and kind is SellerTurns:
        raise SetupError("With several buyers the seller always writes first; leave out the opener.")
    usual = DEFAULT_EVENT_ROUNDS if kind is EventDriven else DEFAULT_TURNS[family]
    turns = usual if spec.turns is None else spec.turns
    said: dict[str, Any] = {"rounds": turns, "turns": turns, "opener": spec.opener or Role.SELLER}
    if spec.events is not None:
        said["events"] = spec.events
    mechanism: Mechanism = kind(**{field: said[field] for field in kind.__struct_fields__ if field in said})
    return mechanism


def family_named(name: str) -> Family:
    """The family of a name. Raises `SetupError`."""
    try:
        return Family(name)
    except ValueError:
        known = ", ".join(family.value for family in Family)
        raise SetupError(f"There is no family {name!r}; choose one of {known}.") from None


def turns_of(recipe: Recipe) -> int:
    """Rounds of an alternating market, messages of the seller otherwise."""
    mechanism = recipe.mechanism
    return mechanism.turns if isinstance(mechanism, SellerTurns) else mechanism.rounds


def check_slug(slug: str, *, what: str) -> None:
    """Raise `SetupError` unless `slug` can stand in an address."""
    if not slug:
        raise SetupError(f"{what} is missing; it has letters, digits, hyphens and underscores only.")
    try:
        validate_slug(slug)
    except ValidationError:
        raise SetupError(f"{what} has letters, digits, hyphens and underscores only, not {slug!r}.") from None
    if len(slug) > 50:
        raise SetupError(f"{what} has at most 50 characters.")


def _check_length(words: str, *, field: str, what: str) -> None:
    """Raise `SetupError` for words too long to be stored: SQLite would take them, PostgreSQL would not."""
    column = Market._meta.get_field(field)
    longest = column.max_length if isinstance(column, CharField) else None
    if longest is not None and len(words) > longest:
        raise SetupError(f"A market's {what} has at most {longest} characters, not {len(words)}.")


def catalogue_of(spec: MarketSpec) -> Catalogue | None:
    if spec.catalogue is None:
        if _unit_is_money(spec.unit):
            return None
        raise SetupError("A market needs a --catalogue, unless its values are in money (--unit money).")
    catalogue = Catalogue.objects.filter(slug=spec.catalogue).first()
    if catalogue is None:
        known = ", ".join(Catalogue.objects.values_list("slug", flat=True)) or "none yet"
        raise SetupError(f"There is no catalogue {spec.catalogue!r}; there is: {known}.")
    return catalogue


def pool_of(spec: MarketSpec, catalogue: Catalogue | None) -> list[Product]:
    """The products that a spec draws from, none without a catalogue. Raises `SetupError` where the filter leaves none."""
    low, high = spec.price_from_cents, spec.price_to_cents
    if low is not None and high is not None and low > high:
        raise SetupError("The lowest list price drawn must not be above the highest.")
    if catalogue is None:
        if spec.split:
            raise SetupError("A part of the products chooses from a catalogue; without one there is none to choose.")
        if spec.category or low is not None or high is not None:
            raise SetupError("A category and list prices choose from a catalogue; without one there is none to choose.")
        return []
    pool = list(
        Product.objects.drawn(
            catalogue_id=catalogue.pk, category=spec.category, price_from_cents=low, price_to_cents=high
        )
    )
    if spec.split:
        part = _one_of(Split, spec.split, what="split")
        found, pool = len(pool), [product for product in pool if _split_of(product) is part]
        if found and not pool:
            raise SetupError(f"None of those {found} products of {catalogue.slug!r} is in the {part.value} part.")
    if not pool and (low, high) == (None, None):
        raise SetupError(f"The catalogue {catalogue.slug!r} has no product of {spec.category!r}.")
    if not pool:
        raise SetupError(f"The catalogue {catalogue.slug!r} has no product in that category and price range.")
    return pool


def _unit_is_money(unit: str) -> bool:
    if unit not in ("list", "money"):
        raise SetupError(f"The unit is list or money, not {unit!r}.")
    return unit == "money"


def _values_text(spec: MarketSpec, family: Family, unit_is_money: bool) -> str:
    if spec.values is not None:
        return spec.values
    if unit_is_money:
        raise SetupError("With --unit money say what the values are, such as --values uniform:0:100.")
    return DEFAULT_VALUES[family]


def _cost_text(spec: MarketSpec, *, has_pool: bool) -> str:
    if spec.cost is not None:
        return spec.cost
    return "lowest" if has_pool else "constant:0"


def _catalogue_prior(
    rule: priors.ValueRule | priors.CostSpec, pool: list[Product], *, unit_is_money: bool
) -> priors.EmpiricalSpec:
    """What is public of values or costs that are looked up: their distribution over the products drawn from.

    A product whose values come from an interval counts with `_POINTS_IN_RANGE` equally likely points of it.
    """
    ratios = []
    for product in pool:
        scale = 100 if unit_is_money else product.list_price_cents
        spec = priors.drawn_spec(
            rule,
            list_price=product.list_price_cents / scale,
            lowest_price=product.lowest_price_cents / scale,
            highest_price=product.highest_price_cents / scale,
        )
        if isinstance(spec, priors.ConstantSpec):
            ratios.append(spec.value)
        else:
            ratios.extend(priors.quantile(spec, point / (_POINTS_IN_RANGE - 1)) for point in range(_POINTS_IN_RANGE))
    ratios.sort()
    points = []
    for step in range(COST_QUANTILES):
        place = step / (COST_QUANTILES - 1) * (len(ratios) - 1)
        left = int(place)
        right = min(left + 1, len(ratios) - 1)
        points.append(ratios[left] + (ratios[right] - ratios[left]) * (place - left))
    return priors.EmpiricalSpec(quantiles=tuple(round(point, 6) for point in points))


_POINTS_IN_RANGE = 11


def _with_price_ends(spec: MarketSpec, catalogue: Catalogue | None) -> MarketSpec:
    """The spec with a tier or decade of list prices as the ends that it stands for. Raises `SetupError`."""
    if spec.price_tier is None and spec.price_decade is None:
        return spec
    if (spec.price_tier, spec.price_decade).count(None) == 0 or (spec.price_from_cents, spec.price_to_cents) != (
        None,
        None,
    ):
        raise SetupError("Choose list prices by a tier, by a decade or by their ends, not by two of them.")
    if catalogue is None:
        raise SetupError("A price tier or decade chooses from a catalogue; without one there is none to choose.")
    if spec.price_decade is not None:
        if not 0 <= spec.price_decade <= 7:
            raise SetupError(f"A price decade is 0 to 7, not {spec.price_decade}.")
        low = 10**spec.price_decade * 100
        return replace(spec, price_from_cents=low, price_to_cents=10 * low - 1)
    assert spec.price_tier is not None
    if not 1 <= spec.price_tier <= splits.TIERS:
        raise SetupError(f"A price tier is 1 to {splits.TIERS}, not {spec.price_tier}.")
    try:
        tiers = splits.price_tiers(product.list_price_cents for product in pool_of(spec, catalogue))
    except ValueError as error:
        raise SetupError(str(error)) from error
    low, high = tiers[spec.price_tier - 1]
    return replace(spec, price_from_cents=low, price_to_cents=high)


def _try_every_product(recipe: Recipe, pool: list[Product]) -> None:
    """Draw a scenario of each product, so that one that never or always gains is found now and not in a game."""
    facts = services.facts_of(pool)
    if recipe.products > 1:
        for seed in range(10):
            scenarios.sample(recipe, facts, seed)
        return
    for each in facts or [None]:
        scenarios.sample(recipe, [] if each is None else [each], 0)


def _one_of(kind: Any, word: str, *, what: str) -> Any:
    """The member of an enumeration by its value. Raises `SetupError`."""
    try:
        return kind(word)
    except ValueError:
        known = ", ".join(member.value for member in kind)
        raise SetupError(f"There is no {what} {word!r}; choose one of {known}.") from None


def _split_of(product: Product) -> Split:
    return splits.split_of(sku=product.sku, list_price_cents=product.list_price_cents)


def _mechanism_name(recipe: Recipe) -> str:
    return str(type(recipe.mechanism).__struct_config__.tag)
