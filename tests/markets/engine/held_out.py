"""The frozen manifest of the held-out sets, worked out anew.

`markets/held_out.json` was written before anything trained on a catalogue and is not meant to change.
After a wanted change of an axis, which every earlier result then no longer speaks of:

    python -m tests.markets.engine.held_out            # what it would be
    python -m tests.markets.engine.held_out --write    # write it

and the commit says why. The public catalogue is counted where PARLEY_DATA names its folder.
"""

import json
import os
import sys
from pathlib import Path
from typing import Any

from markets.engine import priors, splits
from markets.engine.scenarios import Family, ProductFacts, Recipe, SellerTurns
from markets.importers import FORMATS, BadRow

ROOT = Path(__file__).parents[3]
MANIFEST = ROOT / "markets" / "held_out.json"
STARTER = ROOT / "negotiation_site" / "starter" / "catalogue.csv"
PUBLIC = "amazon_history_price"

_COST = {
    "cost_spec": priors.LowestSpec(),
    "cost_prior": priors.EmpiricalSpec(quantiles=(0.3, 0.6, 0.9)),
    "value_spec": priors.BandsSpec(),
}
ONE_PRODUCT = Recipe(family=Family.MULTI_BUYER, mechanism=SellerTurns(8), buyers=3, **_COST)
CATALOGUE = Recipe(family=Family.CATALOGUE, mechanism=SellerTurns(12), buyers=3, products=3, **_COST)
"""In-distribution games of arXiv 2607.05863 and 2609.33289 that the axes move away from."""


def pool(format_name: str, path: Path) -> list[ProductFacts]:
    """A catalogue file as the engine knows it."""
    return [
        ProductFacts(
            sku=row.sku,
            title=row.title,
            category=row.category,
            list_price_cents=row.list_price_cents,
            lowest_price_cents=row.lowest_price_cents,
            highest_price_cents=row.highest_price_cents,
        )
        for row in FORMATS[format_name](path)
        if not isinstance(row, BadRow)
    ]


def starter() -> list[ProductFacts]:
    return pool("csv", STARTER)


def recipe_for(axis: str) -> Recipe:
    """The in-distribution game that an axis is for."""
    return CATALOGUE if axis.startswith(("structure-", "rho-")) else ONE_PRODUCT


def manifest(public: Path | None) -> dict[str, Any]:
    """Everything that is frozen; the public catalogue's part only where its folder is given."""
    own = starter()
    told: dict[str, Any] = {
        "definition": splits.definition(),
        "axes": {name: splits.axis_digest(name, recipe_for(name), own) for name in splits.AXES},
        "catalogues": {"starter": splits.products_digest(own)},
    }
    if public is not None:
        told["catalogues"][PUBLIC] = splits.products_digest(pool("amazon-history-price", public))
    return told


def main(arguments: list[str]) -> int:
    folder = Path(os.environ["PARLEY_DATA"]) / PUBLIC
    text = json.dumps(manifest(folder), indent=1) + "\n"
    if "--write" in arguments:
        MANIFEST.write_text(text, encoding="utf-8")
    else:
        sys.stdout.write(text)
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
