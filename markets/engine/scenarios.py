"""What one negotiation is about: the frozen `Scenario`, and how a market draws one.

A `Recipe` is a market's rule for drawing; `sample(recipe, pool, seed)` draws. The same recipe,
pool and seed give the same scenario for ever; a pool is what `splits.select` left of a catalogue.
Private values live here and leave only through `observation`. Bands, budgets and openings follow the multi-buyer and catalogue settings of
arXiv 2607.05863 and 2609.33289 where those are known; stock of one, the product of interest and
the spread of bands over more than three buyers are our own reading.
"""

import random
from collections.abc import Sequence
from enum import StrEnum
from functools import cached_property
from typing import Any, TypeAlias, final

import msgspec

from markets.engine import priors
from markets.engine.money import CURRENCIES, MAX_PRICE_CENTS, Cents
from markets.engine.protocol import Role
from markets.engine.seeds import derive_seed


class Family(StrEnum):
    """Shape of a market: who meets whom over what."""

    BILATERAL = "bilateral"
    MULTI_BUYER = "multi_buyer"
    CATALOGUE = "catalogue"


@final
class Alternating(msgspec.Struct, frozen=True, tag="alternating", forbid_unknown_fields=True):
    """One seller and one buyer write in turn for `rounds` rounds of one message each."""

    rounds: int
    opener: Role = Role.SELLER


@final
class SellerTurns(msgspec.Struct, frozen=True, tag="seller_turns", forbid_unknown_fields=True):
    """The seller spends one of `turns` messages on one buyer, and that buyer answers."""

    turns: int


@final
class EventDriven(msgspec.Struct, frozen=True, tag="event_driven", forbid_unknown_fields=True):
    """Both sides of a bilateral market act when they like, on a simulated clock (arXiv 2604.16472).

    The clock is the driver's: it draws how long each action takes and says when it landed.
    """

    rounds: int = 10
    """Messages of each side that the parties are told of. Binds nobody."""
    events: int = 50
    """Hard cap on what both sides do together, waits and refused moves included."""
    opener: Role = Role.SELLER
    """Who acts first; the other side is free to act from then on."""
    latency_ms: tuple[int, int] = (500, 2_000)
    """Bounds of the uniform time that one action takes to land, in simulated milliseconds."""


Mechanism: TypeAlias = Alternating | SellerTurns | EventDriven


class ProductFacts(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A product as a catalogue knows it; `lowest` and `highest` are not public."""

    sku: str
    title: str
    category: str = ""
    text: str = ""
    list_price_cents: Cents
    lowest_price_cents: Cents
    highest_price_cents: Cents


class Split(StrEnum):
    """Which part of a catalogue's products; `splits` tells them apart."""

    TRAINING = "training"
    HELD_OUT = "held_out"
    HELD_OUT_DECADE = "held_out_decade"
    """Of prices that nothing trains on."""


class Gains(StrEnum):
    """Whether a market draws again until trade can gain, or until it cannot (arXiv 2604.16472).

    The parties are not told: what is public of values and costs is their spread before.
    """

    FORCED = "forced"
    NONE = "none"


class Product(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The public facts of a product on the table."""

    sku: str
    title: str
    category: str = ""
    text: str = ""
    list_price_cents: Cents
    stock: int = 1
    """Units for sale when the negotiation opens."""


class Prior(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What everybody knows about everybody's values before a word is said."""

    value_spec: priors.ValueSpec
    """Distribution of a buyer's value, as a multiple of the product's scale."""
    cost_spec: priors.ValueSpec
    """Distribution of the seller's cost, likewise; an empirical one where costs are looked up."""
    rho: float = 0.0
    """Gaussian-copula correlation: across the buyers of one product, or across the products of
    one buyer in a catalogue."""
    scales_cents: tuple[Cents, ...]
    """Per product: cents that the number 1 stands for (the list price, or one unit of money)."""


class PriceRange(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a market makes public about prices like that of one product: list prices alone."""

    products: int
    """Products of the same category that the market draws from, this one included."""
    lowest_list_price_cents: Cents
    median_list_price_cents: Cents
    highest_list_price_cents: Cents


class OpeningBid(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """An offer that the market's opening rule puts on the table before the first message."""

    buyer: int
    product: int
    price_cents: Cents


class ScenarioError(ValueError):
    """A scenario whose parts do not fit together; the message is a sentence."""


class Scenario(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True, dict=True):
    """Everything that is settled before the first move. With an event log it determines all."""

    family: Family
    mechanism: Mechanism
    currency: str = "USD"
    products: tuple[Product, ...]
    seller_values_cents: tuple[Cents, ...]
    """Seller's reservation value (cost) per product."""
    buyer_values_cents: tuple[tuple[Cents, ...], ...]
    """Reservation value per buyer and product."""
    prior: Prior
    opening_bids: tuple[OpeningBid, ...] = ()
    regulated: tuple[Role, ...] = ()
    """Roles whose moves beyond their own reservation value are refused."""
    malformed_ends: bool = True
    """Whether an unreadable message ends an alternating or event-driven negotiation."""
    deadline_ms: int | None = None
    """Clock time after which every move is refused; None where a clock rules nothing."""
    price_ranges: tuple[PriceRange, ...] | msgspec.UnsetType = msgspec.UNSET
    """Per product what a search finds. Left out where the mechanism knows no search."""
    seed: int

    def __post_init__(self) -> None:
        products, buyers = len(self.products), len(self.buyer_values_cents)
        if not (products and buyers):
            raise ScenarioError(f"A scenario needs a product and a buyer, not {products} and {buyers}.")
        if self.family is not Family.CATALOGUE and products > 1:
            raise ScenarioError(f"A {self.family.value} scenario has one product, not {products}.")
        if self.family is Family.BILATERAL and buyers > 1:
            raise ScenarioError(f"A bilateral scenario has one buyer, not {buyers}.")
        rows = (self.seller_values_cents, self.prior.scales_cents, *self.buyer_values_cents)
        amounts = [amount for row in rows for amount in row]
        if set(map(len, rows)) != {products} or min(amounts) < 0 or max(amounts) > MAX_PRICE_CENTS:
            self._check_amounts()
        if min(self.prior.scales_cents) < 1:
            raise ScenarioError(f"The scales must be positive, not {self.prior.scales_cents!r}.")
        for product in self.products:
            if not 1 <= product.list_price_cents <= MAX_PRICE_CENTS or product.stock < 1:
                raise ScenarioError(
                    f"The product {product.sku!r} needs a list price of 1 to {MAX_PRICE_CENTS} cents and a stock of "
                    f"at least 1, not {product.list_price_cents} and {product.stock}."
                )
        for bid in self.opening_bids:
            if not (1 <= bid.buyer <= buyers and 0 <= bid.product < products and bid.price_cents >= 1):
                raise ScenarioError(f"The opening bid {bid!r} is of nobody, for nothing, or no price.")

    def _check_amounts(self) -> None:
        """Name the row of values, costs or scales that has another length or an amount out of bounds."""
        products = len(self.products)
        for what, values in (
            ("costs", self.seller_values_cents),
            ("scales", self.prior.scales_cents),
            *(("values of a buyer", own) for own in self.buyer_values_cents),
        ):
            if len(values) != products:
                raise ScenarioError(f"There are {products} products and {len(values)} {what}.")
            if min(values) < 0 or max(values) > MAX_PRICE_CENTS:
                raise ScenarioError(f"The {what} must be 0 to {MAX_PRICE_CENTS} cents, not {values!r}.")

    @property
    def buyers(self) -> int:
        """Number of buyers."""
        return len(self.buyer_values_cents)

    @cached_property
    def views(self) -> dict[str, Any]:
        """Room for what `observation` works out of a scenario once for each party; no part of its value."""
        return {}

    def reservation_value_cents(self, *, role: Role, buyer: int, product: int) -> Cents:
        """Price at which the party is indifferent to no deal (Raiffa 1982). `buyer` is 1-based."""
        if role is Role.SELLER:
            return self.seller_values_cents[product]
        return self.buyer_values_cents[buyer - 1][product]


class Recipe(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a market draws its scenarios."""

    family: Family
    mechanism: Mechanism
    buyers: int = 1
    products: int = 1
    """Products on the table of one negotiation."""
    stock: int = 1
    """Units of each product."""
    value_spec: priors.ValueRule
    cost_spec: priors.CostSpec
    cost_prior: priors.ValueSpec
    """Public distribution of the cost; equals `cost_spec` unless costs are looked up."""
    value_prior: priors.ValueSpec | msgspec.UnsetType = msgspec.UNSET
    """Public distribution of the values over the whole catalogue, where `value_spec` is a rule that
    reads a product's own prices; left out otherwise."""
    gains: Gains | msgspec.UnsetType = msgspec.UNSET
    """Whether values and costs are drawn again until they allow a gain, or none; left out for as they come."""
    split: Split | msgspec.UnsetType = msgspec.UNSET
    """Part of the catalogue that is drawn from; left out for all of it."""
    rho: float = 0.0
    unit_is_money: bool = False
    """Specs are multiples of one unit of money instead of the product's list price."""
    currency: str = "USD"
    regulated: tuple[Role, ...] = ()
    malformed_ends: bool = True
    opening_bid_share: tuple[float, float] | None = (0.25, 0.30)
    """Range of the buyers' opening bids as a share of the list price; None for no openings."""

    @property
    def public_values(self) -> priors.ValueSpec:
        """What is public of the buyers' values before a product is drawn. Raises `RecipeError` where nothing is."""
        if not isinstance(self.value_prior, msgspec.UnsetType):
            return self.value_prior
        if isinstance(self.value_spec, priors.HighestSpec | priors.RangeSpec):
            raise RecipeError("Values that follow a product's own prices need a public prior over the catalogue.")
        return self.value_spec


class RecipeError(ValueError):
    """A recipe that no scenario can be drawn from; the sentence says why."""


GENERIC_TITLES = tuple(f"Item {letter}" for letter in "ABCDEFGHIJKLMNOPQRSTUVWXYZ")
MAX_BUYERS = 12
MAX_PRODUCTS = 12
MAX_TURNS = 64
MAX_EVENTS = 1_000
MAX_LATENCY_MS = 60_000


def check(recipe: Recipe, *, pool_size: int) -> None:
    """Raise `RecipeError` unless scenarios can be drawn from `recipe`.

    `pool_size` is the number of products of its catalogue; 0 means a market without a catalogue.
    """
    if not 1 <= recipe.buyers <= MAX_BUYERS:
        raise RecipeError(f"The number of buyers must be 1 to {MAX_BUYERS}, not {recipe.buyers}.")
    if not 1 <= recipe.products <= MAX_PRODUCTS:
        raise RecipeError(f"The number of products must be 1 to {MAX_PRODUCTS}, not {recipe.products}.")
    if not 1 <= recipe.stock <= 1000:
        raise RecipeError(f"The stock must be 1 to 1000, not {recipe.stock}.")
    turns = _turns(recipe.mechanism)
    if not 1 <= turns <= MAX_TURNS:
        raise RecipeError(f"The number of turns must be 1 to {MAX_TURNS}, not {turns}.")
    if recipe.currency not in CURRENCIES:
        raise RecipeError(f"The currency must be one of {', '.join(CURRENCIES)}, not {recipe.currency!r}.")
    if recipe.opening_bid_share is not None:
        low_share, high_share = recipe.opening_bid_share
        if not 0 < low_share <= high_share <= 1:
            raise RecipeError(
                f"Opening bids must be shares of the list price, low to high, not {low_share} to {high_share}."
            )
    if not 0 <= recipe.rho < 1:
        raise RecipeError(f"The correlation rho must be at least 0 and below 1, not {recipe.rho}.")
    if recipe.family is not Family.CATALOGUE and recipe.products != 1:
        raise RecipeError(f"A {recipe.family.value} market has one product, not {recipe.products}.")
    if recipe.family is not Family.CATALOGUE and recipe.stock != 1:
        raise RecipeError(
            f"A {recipe.family.value} market sells one unit, not {recipe.stock}; a catalogue may hold more."
        )
    if recipe.family is Family.BILATERAL:
        if recipe.buyers != 1:
            raise RecipeError(f"A bilateral market has one buyer, not {recipe.buyers}.")
        if isinstance(recipe.mechanism, SellerTurns):
            raise RecipeError("A bilateral market is played in alternating rounds or event-driven.")
        if isinstance(recipe.mechanism, EventDriven):
            _check_event_driven(recipe.mechanism)
    elif not isinstance(recipe.mechanism, SellerTurns):
        raise RecipeError(f"A {recipe.family.value} market is played in seller turns.")
    public = recipe.public_values
    if isinstance(public, priors.FactorSpec) and isinstance(public.base, priors.UniformSpec) and recipe.rho:
        raise RecipeError("Uniform values under a common factor cannot be correlated beside it; leave rho at 0.")
    if pool_size == 0:
        if isinstance(recipe.value_spec, priors.HighestSpec | priors.RangeSpec):
            raise RecipeError("Values can follow a product's own prices only where there is a catalogue.")
        if not recipe.unit_is_money:
            raise RecipeError("A market without a catalogue needs its values in money.")
        if isinstance(recipe.cost_spec, priors.LowestSpec | priors.LowestRangeSpec):
            raise RecipeError("Costs can be the lowest price only where there is a catalogue.")
    elif pool_size < recipe.products:
        raise RecipeError(f"The catalogue has {pool_size} products, too few for {recipe.products} at once.")


def _turns(mechanism: Mechanism) -> int:
    return mechanism.turns if isinstance(mechanism, SellerTurns) else mechanism.rounds


def _check_event_driven(mechanism: EventDriven) -> None:
    if not 1 <= mechanism.events <= MAX_EVENTS:
        raise RecipeError(f"The cap on events must be 1 to {MAX_EVENTS}, not {mechanism.events}.")
    low_ms, high_ms = mechanism.latency_ms
    if not 1 <= low_ms <= high_ms <= MAX_LATENCY_MS:
        raise RecipeError(
            f"A latency must be 1 to {MAX_LATENCY_MS} milliseconds, low to high, not {low_ms} to {high_ms}."
        )


def sample(recipe: Recipe, pool: Sequence[ProductFacts], seed: int) -> Scenario:
    """Draw one scenario: products, costs, values, openings. Deterministic in its arguments."""
    check(recipe, pool_size=len(pool))
    rng = random.Random(derive_seed("scenario", seed))
    facts = rng.sample(list(pool), recipe.products) if pool else _generic_products(recipe)
    scales = tuple(100 if recipe.unit_is_money else fact.list_price_cents for fact in facts)
    values, costs = _draw_private(recipe, facts, scales, rng)
    public = _public_prior(recipe, facts, scales)
    return Scenario(
        family=recipe.family,
        mechanism=recipe.mechanism,
        currency=recipe.currency,
        products=tuple(
            Product(
                sku=fact.sku,
                title=fact.title,
                category=fact.category,
                text=fact.text,
                list_price_cents=fact.list_price_cents,
                stock=recipe.stock,
            )
            for fact in facts
        ),
        seller_values_cents=costs,
        buyer_values_cents=values,
        prior=public,
        opening_bids=_opening_bids(recipe, public, facts, values, rng),
        regulated=recipe.regulated,
        malformed_ends=recipe.malformed_ends,
        price_ranges=_price_ranges(facts, pool) if isinstance(recipe.mechanism, EventDriven) else msgspec.UNSET,
        seed=seed,
    )


def _price_ranges(facts: Sequence[ProductFacts], pool: Sequence[ProductFacts]) -> tuple[PriceRange, ...]:
    """The list prices of each product's category, as far as the market draws from it."""
    ranges = []
    for fact in facts:
        listed = sorted(other.list_price_cents for other in pool if other.category == fact.category)
        listed = listed or [fact.list_price_cents]
        ranges.append(
            PriceRange(
                products=len(listed),
                lowest_list_price_cents=listed[0],
                median_list_price_cents=listed[(len(listed) - 1) // 2],
                highest_list_price_cents=listed[-1],
            )
        )
    return tuple(ranges)


MAX_REDRAWS = 2_000
"""So many draws are looked through for one with gains from trade, or without."""


def _draw_private(
    recipe: Recipe, facts: Sequence[ProductFacts], scales: tuple[Cents, ...], rng: random.Random
) -> tuple[tuple[tuple[Cents, ...], ...], tuple[Cents, ...]]:
    """(values per buyer and product, costs), drawn again until gains from trade are as the recipe wants them.

    Raises `RecipeError` where `MAX_REDRAWS` draws were all of the other kind.
    """
    for _ in range(MAX_REDRAWS):
        values = _draw_values(recipe, facts, scales, rng)
        costs = tuple(
            fact.lowest_price_cents
            if isinstance(recipe.cost_spec, priors.LowestSpec)
            else _draw_cost(_for_product(recipe.cost_spec, fact, scale), scale, rng)
            for fact, scale in zip(facts, scales, strict=True)
        )
        if recipe.gains is msgspec.UNSET:
            return values, costs
        can_gain = any(value > cost for own in values for value, cost in zip(own, costs, strict=True))
        if can_gain is (recipe.gains is Gains.FORCED):
            return values, costs
    wanted = "with" if recipe.gains is Gains.FORCED else "without"
    raise RecipeError(
        f"None of {MAX_REDRAWS} draws was {wanted} gains from trade for {facts[0].title!r}; choose other values or costs."
    )


def _draw_values(
    recipe: Recipe, facts: Sequence[ProductFacts], scales: tuple[Cents, ...], rng: random.Random
) -> tuple[tuple[Cents, ...], ...]:
    rule = recipe.value_spec
    if isinstance(rule, priors.HighestSpec):
        looked_up = tuple(
            priors.share_cents(rule.share, of_cents=max(fact.highest_price_cents, fact.list_price_cents))
            for fact in facts
        )
        return (looked_up,) * recipe.buyers
    spec: priors.ValueSpec | tuple[priors.ValueSpec, ...]
    if isinstance(rule, priors.RangeSpec):
        spec = tuple(_for_product(rule, fact, scale) for fact, scale in zip(facts, scales, strict=True))
    else:
        spec = rule
    return priors.sample_values(
        spec=spec,
        rho=recipe.rho,
        buyers=recipe.buyers,
        scales_cents=scales,
        within="products" if recipe.family is Family.CATALOGUE else "buyers",
        rng=rng,
    )


def _for_product(rule: priors.ValueRule | priors.CostSpec, facts: ProductFacts, scale_cents: Cents) -> priors.ValueSpec:
    """What `rule` draws from for one product, in multiples of its scale."""
    return priors.drawn_spec(
        rule,
        list_price=facts.list_price_cents / scale_cents,
        lowest_price=facts.lowest_price_cents / scale_cents,
        highest_price=facts.highest_price_cents / scale_cents,
    )


def _public_prior(recipe: Recipe, facts: Sequence[ProductFacts], scales: tuple[Cents, ...]) -> Prior:
    """What everybody knows: of one product whose values or costs are drawn from an interval, the interval."""
    value_spec, cost_spec = recipe.public_values, recipe.cost_prior
    if len(facts) == 1 and isinstance(recipe.value_spec, priors.RangeSpec):
        value_spec = _for_product(recipe.value_spec, facts[0], scales[0])
    if len(facts) == 1 and isinstance(recipe.cost_spec, priors.LowestRangeSpec):
        cost_spec = _for_product(recipe.cost_spec, facts[0], scales[0])
    return Prior(value_spec=value_spec, cost_spec=cost_spec, rho=recipe.rho, scales_cents=scales)


def _draw_cost(spec: priors.ValueSpec, scale_cents: Cents, rng: random.Random) -> Cents:
    return round(priors.quantile(spec, rng.random()) * scale_cents)


def _generic_products(recipe: Recipe) -> list[ProductFacts]:
    """Products of a market without a catalogue; the list price is the top of the value prior."""
    top_cents = max(1, min(round(priors.ladder_top(recipe.public_values) * 100), MAX_PRICE_CENTS))
    return [
        ProductFacts(
            sku=f"item-{index}",
            title=GENERIC_TITLES[index],
            list_price_cents=top_cents,
            lowest_price_cents=1,
            highest_price_cents=top_cents,
        )
        for index in range(recipe.products)
    ]


def _opening_bids(
    recipe: Recipe,
    public: Prior,
    facts: Sequence[ProductFacts],
    values: Sequence[Sequence[Cents]],
    rng: random.Random,
) -> tuple[OpeningBid, ...]:
    """Every buyer's bid for its product of interest, drawn whatever the value is.

    A rule that could force a bid above a buyer's value would make the buyer lose by rule, so a
    market whose prior reaches below the highest bid has no openings. That depends on the public
    prior alone, never on a drawn value.
    """
    if recipe.opening_bid_share is None or recipe.family is Family.BILATERAL:
        return ()
    low_share, high_share = recipe.opening_bid_share
    if any(
        priors.low(public.value_spec) * scale < high_share * fact.list_price_cents
        for fact, scale in zip(facts, public.scales_cents, strict=True)
    ):
        return ()
    bids = []
    for buyer, own in enumerate(values, start=1):
        product = max(range(len(facts)), key=lambda index: own[index] - facts[index].list_price_cents)
        share = rng.uniform(low_share, high_share)
        price_cents = max(1, round(share * facts[product].list_price_cents))
        bids.append(OpeningBid(buyer=buyer, product=product, price_cents=price_cents))
    return tuple(bids)


_scenarios = msgspec.json.Decoder(Scenario, strict=True)
_recipes = msgspec.json.Decoder(Recipe, strict=True)


def decode_scenario(data: bytes | str) -> Scenario:
    """Read a stored scenario back. Raises `msgspec.ValidationError` when it is not one."""
    return _scenarios.decode(data)


def decode_recipe(data: bytes | str) -> Recipe:
    """Read a stored recipe back. Raises `msgspec.ValidationError` when it is not one."""
    return _recipes.decode(data)
