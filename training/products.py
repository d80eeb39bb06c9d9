"""Products that games are trained on: a catalogue's file, and what is public of its prices.

Contract: the same file gives the same products; which of them may be trained on is told by
`markets.engine.splits`. No Django.
"""

import csv
from functools import lru_cache
from pathlib import Path

from markets.engine import priors
from markets.engine.scenarios import ProductFacts
from markets.importers import BadRow, csv_catalogue
from training.config import ConfigError

ROOT = Path(__file__).resolve().parents[1]
QUANTILES = 21
"""Points of a public distribution over the catalogue."""


@lru_cache(maxsize=8)
def read(catalogue: str) -> tuple[ProductFacts, ...]:
    """Every product of a catalogue's file, relative to the code. Raises `ConfigError`."""
    try:
        rows = list(csv_catalogue.read(ROOT / catalogue))
    except (OSError, ValueError, csv.Error) as error:
        raise ConfigError(f"The catalogue {catalogue} cannot be read: {error}") from error
    for row in rows:
        if isinstance(row, BadRow):
            raise ConfigError(f"The catalogue {catalogue} has a bad row, line {row.line}: {row.reason}")
    return tuple(
        ProductFacts(
            sku=row.sku,
            title=row.title,
            category=row.category,
            text=row.text,
            list_price_cents=row.list_price_cents,
            lowest_price_cents=row.lowest_price_cents,
            highest_price_cents=row.highest_price_cents,
        )
        for row in rows
        if not isinstance(row, BadRow)
    )


@lru_cache(maxsize=32)
def public_prior(catalogue: str, rule: priors.ValueRule | priors.CostSpec) -> priors.ValueSpec:
    """What is public of values or costs before a product is drawn: a rule that looks at the product's own
    prices, or draws around them, spreads over the catalogue."""
    match rule:
        case priors.LowestSpec() | priors.LowestRangeSpec() | priors.HighestSpec() | priors.RangeSpec():
            shares = sorted(share for facts in read(catalogue) for share in _ends(rule, facts))
            last = len(shares) - 1
            return priors.EmpiricalSpec(
                quantiles=tuple(round(shares[round(last * k / (QUANTILES - 1))], 6) for k in range(QUANTILES))
            )
        case _:
            return rule


def _ends(
    rule: priors.LowestSpec | priors.LowestRangeSpec | priors.HighestSpec | priors.RangeSpec, facts: ProductFacts
) -> tuple[float, ...]:
    """Multiples of the list price that a rule comes to for one product: its ends and what lies between."""
    lowest, highest = (
        cents / facts.list_price_cents for cents in (facts.lowest_price_cents, facts.highest_price_cents)
    )
    match rule:
        case priors.LowestSpec():
            return (lowest,)
        case priors.HighestSpec(share=share):
            return (share * max(highest, 1.0),)
        case priors.LowestRangeSpec(low=low, high=high):
            start, end = low * lowest, high * lowest
        case priors.RangeSpec(low=low, high=high):
            start, end = low * lowest, highest + high * (highest - lowest)
    return tuple(start + (end - start) * k / 4 for k in range(5))
