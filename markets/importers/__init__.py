"""Readers of product catalogues, by the name of their format.

Here live pure parsers: a path in, checked rows and reported faults out. They know no database and
no settings; storing a catalogue is the services' business, choosing a format the command's.

Contract: `FORMATS[name](path)` raises `CatalogueError` at once if nothing can be read, and
otherwise yields a `ProductRow` or a `BadRow` for every row of the source, in its order.
"""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import TypeAlias

from markets.importers import amazon_history_price, craigslist_listings, csv_catalogue
from markets.importers.files import CatalogueError
from markets.importers.rows import BadRow, ProductRow

__all__ = ["FORMATS", "BadRow", "CatalogueError", "ProductRow", "Reader"]

Reader: TypeAlias = Callable[[Path], Iterator[ProductRow | BadRow]]

FORMATS: Mapping[str, Reader] = MappingProxyType(
    {
        "amazon-history-price": amazon_history_price.read,
        "craigslist-listings": craigslist_listings.read,
        "csv": csv_catalogue.read,
    }
)
