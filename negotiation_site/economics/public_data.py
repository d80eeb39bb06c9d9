"""Rows on the public catalogue AmazonHistoryPrice (Xia et al., Findings of ACL 2024): its facts, and
what scripted sellers get on it.

Values and costs are those of arXiv 2604.09855 (fixed rule), 2607.05863 (bands; the cost is our
reading) and 2604.16472 (ranges), drawn by the engine from recipes such as a market has. L and H are
a product's lowest and highest price. Contract: `catalogue` is None where the data is not there, and
then there are no rows.
"""

from collections import defaultdict
from collections.abc import Iterator, Mapping
from functools import lru_cache
from pathlib import Path
from statistics import fmean

import msgspec

from markets.engine import priors
from markets.engine.money import Cents
from markets.engine.protocol import Role
from markets.engine.scenarios import Alternating, Family, Gains, ProductFacts, Recipe, Scenario, SellerTurns, sample
from markets.importers import FORMATS, BadRow
from negotiation_site.economics.playing import Job, Sums, of_recipe, over
from negotiation_site.economics.rows import Row, Scale

FOLDER = "amazon_history_price"
FORMAT = "amazon-history-price"

BASES = ("list price", "highest or list price")
"""What the bands are multiples of."""

RANGES = "ranges"
CONSTANTS = {
    "list-price": ("the list price asked of each buyer once", (0.825, 0.853)),
    "above-list-then-list-price": ("1.08 x list, then 1.00 x list, asked of each", (0.907, 0.923)),
}
BANDS_PART = 0.25
"""Part of a ladder row's games that each figure on bands is over."""


def catalogue(data: Path | None) -> tuple[ProductFacts, ...] | None:
    """The products below the data folder; None where they are not there."""
    if data is None or not (data / FOLDER).is_dir():
        return None
    return _read(data / FOLDER)


@lru_cache(maxsize=2)
def _read(folder: Path) -> tuple[ProductFacts, ...]:
    return tuple(
        ProductFacts(
            sku=row.sku,
            title=row.title,
            category=row.category,
            list_price_cents=row.list_price_cents,
            lowest_price_cents=row.lowest_price_cents,
            highest_price_cents=row.highest_price_cents,
        )
        for row in FORMATS[FORMAT](folder)
        if not isinstance(row, BadRow)
    )


SPREAD = priors.EmpiricalSpec(quantiles=(0.0, 2.0))
"""Public prior over the catalogue; no seller of these rows looks at it."""


def fixed_rule() -> Recipe:
    """B = .8 x max(highest, list), C = lowest (arXiv 2604.09855)."""
    return Recipe(
        family=Family.BILATERAL,
        mechanism=Alternating(rounds=6, opener=Role.BUYER),
        value_spec=priors.HighestSpec(share=0.8),
        value_prior=SPREAD,
        cost_spec=priors.LowestSpec(),
        cost_prior=SPREAD,
    )


def ranges(gains: Gains | msgspec.UnsetType = msgspec.UNSET) -> Recipe:
    """s ~ U[.60 L, .90 L], b ~ U[.40 L, H + .10 (H - L)], one offer of the seller (arXiv 2604.16472)."""
    return Recipe(
        family=Family.BILATERAL,
        mechanism=Alternating(rounds=1, opener=Role.SELLER),
        value_spec=priors.RangeSpec(low=0.4, high=0.1),
        value_prior=SPREAD,
        cost_spec=priors.LowestRangeSpec(low=0.6, high=0.9),
        cost_prior=SPREAD,
        gains=gains,
    )


def bands() -> Recipe:
    """Three buyers in three bands, C = lowest, eight messages (arXiv 2607.05863)."""
    return Recipe(
        family=Family.MULTI_BUYER,
        mechanism=SellerTurns(8),
        buyers=3,
        value_spec=priors.BandsSpec(),
        cost_spec=priors.LowestSpec(),
        cost_prior=SPREAD,
        opening_bid_share=None,
    )


def pool_for(base: str, pool: tuple[ProductFacts, ...]) -> tuple[ProductFacts, ...]:
    """The products with `base` as their list price."""
    if base == BASES[0]:
        return pool
    return tuple(
        msgspec.structs.replace(facts, list_price_cents=max(facts.highest_price_cents, facts.list_price_cents))
        for facts in pool
    )


def jobs(scale: Scale, pool: tuple[ProductFacts, ...]) -> Mapping[str, Job]:
    """The one-shot seller on ranges, with each treatment of gains; constants on bands."""
    found = {
        RANGES: Job(of_recipe(ranges(), pool), "one-shot-seller", scale.part(0.5)),
        Gains.FORCED.value: Job(of_recipe(ranges(Gains.FORCED), pool), "one-shot-seller", scale.part(0.25)),
        Gains.NONE.value: Job(of_recipe(ranges(Gains.NONE), pool), "one-shot-seller", scale.part(0.1)),
    }
    for base in BASES:
        game = of_recipe(bands(), pool_for(base, pool))
        found |= {f"{base}/{seller}": Job(game, seller, scale.part(BANDS_PART)) for seller in CONSTANTS}
    return found


def rows(played: Mapping[str, Sums], scale: Scale, pool: tuple[ProductFacts, ...]) -> Iterator[Row]:
    """Every row of the module."""
    yield from _fixed_rule_rows(pool)
    yield from _ranges_rows(played)
    for place, base in enumerate(BASES):
        yield from _bands_rows(base, place, pool, scale.part(BANDS_PART))
        for seller, (what, references) in CONSTANTS.items():
            sums = played[f"{base}/{seller}"]
            share = over(sums.deal_shares, sums.priced_deals)
            name = f"public data/bands of the {base}/{what}"
            yield Row(name=f"{name}/share/played", reference=references[place], measured=share, tolerance=0.02)
            yield Row(name=f"{name}/deal rate/played", reference=1.0, measured=sums.deal_rate, tolerance=0.0)


def names() -> list[str]:
    """What the rows are called, whether the data is there or not."""
    return [row.name for row in rows(defaultdict(Sums), Scale(episodes=0), ())]


def _fixed_rule_rows(pool: tuple[ProductFacts, ...]) -> Iterator[Row]:
    drawn = [sample(fixed_rule(), [facts], 0) for facts in pool]
    gainful = sum(s.buyer_values_cents[0][0] > s.seller_values_cents[0] for s in drawn)
    for what, reference, measured in (
        ("products", 930, len(pool)),
        ("categories", 18, len({facts.category for facts in pool})),
        ("products with gains from trade", 886, gainful),
        ("products without", 44, len(pool) - gainful),
    ):
        yield Row(name=f"public data/fixed rule/{what}", reference=reference, measured=measured, tolerance=0.0)


def _ranges_rows(played: Mapping[str, Sums]) -> Iterator[Row]:
    drawn, forced = played[RANGES], played[Gains.FORCED.value]
    name = "public data/ranges"
    for what, reference, part, whole, tolerance in (
        ("draws with gains from trade", 0.773, drawn.gainful, drawn.games, 0.01),
        ("one-shot seller/deals where trade can gain", 0.501, drawn.gainful_deals, drawn.gainful, 0.02),
        ("one-shot seller/share of the joint surplus of a deal", 0.693, drawn.pair_shares, drawn.priced_deals, 0.02),
        ("one-shot seller/opening as a multiple of its cost", 2.24, drawn.openings, drawn.opened, 0.03),
        ("one-shot seller/deals when gains are forced", 0.501, forced.deals, forced.games, 0.02),
    ):
        yield Row(name=f"{name}/{what}/played", reference=reference, measured=over(part, whole), tolerance=tolerance)
    for gains, reference in ((Gains.FORCED, 1.0), (Gains.NONE, 0.0)):
        sums = played[gains.value]
        yield Row(
            name=f"{name}/draws with gains from trade when {gains.value}",
            reference=reference,
            measured=over(sums.gainful, sums.games),
            tolerance=0.0,
        )
    yield Row(
        name=f"{name}/deals of a one-shot seller when no trade can gain/played",
        reference=0.0,
        measured=played[Gains.NONE.value].deal_rate,
        tolerance=0.0,
    )


BAND_SHARES = {
    "top buyer at its full value": (1.000, 1.000),
    "top buyer at the list price, capped by its value": (0.825, 0.853),
    "top buyer at the middle of the zone": (0.500, 0.500),
    "a random buyer at its full value": (0.432, 0.472),
    "mid-band buyer at its full value": (0.259, 0.342),
    "low-band buyer at its full value": (0.039, 0.077),
}
"""Mean of (P - C) / (B* - C) by base; a buyer whose value does not cover the cost counts 0."""


def _bands_rows(base: str, place: int, pool: tuple[ProductFacts, ...], scenarios: int) -> Iterator[Row]:
    draw = of_recipe(bands(), pool_for(base, pool), seed=2)
    scenarios = scenarios if pool else 0
    shares: dict[str, list[float]] = {what: [] for what in BAND_SHARES}
    for k in range(scenarios):
        for what, share in _shares(draw(k)).items():
            shares[what].append(share)
    for what, references in BAND_SHARES.items():
        yield Row(
            name=f"public data/bands of the {base}/{what}/share",
            reference=references[place],
            measured=fmean(shares[what]) if shares[what] else None,
            tolerance=0.02,
        )


def _shares(scenario: Scenario) -> dict[str, float]:
    """What each pricing of `BAND_SHARES` gets in one scenario; nothing where no trade can gain."""
    low, middle, top = sorted(own[0] for own in scenario.buyer_values_cents)
    cost, list_price = scenario.seller_values_cents[0], scenario.products[0].list_price_cents
    if top <= cost:
        return {}

    def at(price_cents: Cents | float) -> float:
        return max(0.0, (price_cents - cost) / (top - cost))

    prices = (top, min(list_price, top), (top + cost) / 2)
    figures = [at(price) for price in prices]
    figures += [fmean(map(at, (low, middle, top))), at(middle), at(low)]
    return dict(zip(BAND_SHARES, figures, strict=True))
