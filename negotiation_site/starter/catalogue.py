"""Loading the starter catalogue from `catalogue.csv` beside this file.

Contract: `load` returns every product, checked by the importer, or raises; a bad row in our own
file is a fault of ours and never passed over.
"""

from pathlib import Path

from markets.engine.scenarios import ProductFacts
from markets.importers import BadRow, ProductRow, csv_catalogue

PATH = Path(__file__).with_name("catalogue.csv")


class StarterCatalogueError(Exception):
    """The starter catalogue holds a row that its importer refuses."""


def load() -> tuple[ProductRow, ...]:
    """All products of the starter catalogue, in the order of the file."""
    products = []
    for row in csv_catalogue.read(PATH):
        if isinstance(row, BadRow):
            raise StarterCatalogueError(f"{row.path}:{row.line}: {row.reason}")
        products.append(row)
    return tuple(products)


def facts() -> tuple[ProductFacts, ...]:
    """The same products as the engine draws from, without a database."""
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
        for row in load()
    )
