"""Craigslist listings as they were collected for CraigslistBargain (He et al., EMNLP 2018): JSON lists of offers.

A folder holds one JSON file a category, each a list of records with a `title`, a `description` of
several paragraphs, a `post_id` and one `price` in whole dollars. A listing has no history, so its
price is the list price and the highest price, and the lowest is taken to be `LOWEST_SHARE` of it: the
lowest target that those data give a buyer. That is our assumption, not a fact about the listing.
Contract: as for `amazon_history_price`; a price of a dollar or less is how people write "make an
offer" there, and is reported instead of sold.
"""

import re
from collections import Counter
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any

from markets.importers.json_records import Record, fields_of, read_files, text_field
from markets.importers.rows import BadRow, ProductRow, RowError, catalogue_amount, product_row

LOWEST_SHARE = Decimal("0.5")
"""Lowest price over asking price."""

PLACEHOLDER_CENTS = 100
"""Prices up to this one stand for no price."""


def _price_cents(fields: dict[str, Any]) -> int:
    price = fields.get("price")
    if price is None:
        raise RowError("The price is missing.")
    if isinstance(price, bool) or not isinstance(price, int | float | str):
        raise RowError("The price is no amount.")
    cents = catalogue_amount(price if isinstance(price, str) else f"{price:.2f}")
    if cents <= PLACEHOLDER_CENTS:
        raise RowError(f"The price {price!r} is a placeholder: nothing is sold for a dollar or less.")
    return cents


def _paragraphs(fields: dict[str, Any]) -> str:
    paragraphs = fields.get("description") or []
    if isinstance(paragraphs, str):
        paragraphs = [paragraphs]
    if not isinstance(paragraphs, list) or not all(isinstance(paragraph, str) for paragraph in paragraphs):
        raise RowError("The description is not a list of paragraphs.")
    return "\n\n".join(paragraph.strip() for paragraph in paragraphs if paragraph.strip())


def _image_url(fields: dict[str, Any]) -> str:
    """The first picture's address if it is a plain one; an odd one is no reason to lose the listing."""
    addresses = fields.get("image_urls")
    first = addresses[0] if isinstance(addresses, list) and addresses else ""
    plain = isinstance(first, str) and re.fullmatch(r"https://[\w.-]+/[\w.%+,/~-]{1,400}", first, re.A)
    return first if plain else ""


def _row(record: Record, *, taken: Counter[str]) -> ProductRow:
    fields = fields_of(record)
    stem = record.path.stem
    cents = _price_cents(fields)
    sku = text_field(fields, "post_id").strip() or f"{stem[:48]}-{record.position:04d}"
    row = product_row(
        sku=sku if not taken[sku] else f"{sku}-{taken[sku] + 1}",
        title=text_field(fields, "title"),
        category=text_field(fields, "category") or stem,
        list_price=_dollars(cents),
        lowest_price=_dollars(int(cents * LOWEST_SHARE)),
        highest_price=_dollars(cents),
        text=_paragraphs(fields),
        image_url=_image_url(fields),
        source=f"{record.path.name}:{record.line}, record {record.position}",
    )
    taken[sku] += 1
    return row


def _dollars(cents: int) -> str:
    return f"{cents // 100}.{cents % 100:02d}"


def _rows(files: list[list[Record]]) -> Iterator[ProductRow | BadRow]:
    taken: Counter[str] = Counter()
    for records in files:
        for record in records:
            try:
                yield _row(record, taken=taken)
            except RowError as problem:
                reason = f"Record {record.position}: {problem}"
                yield BadRow(path=str(record.path), line=record.line, reason=reason)


def read(path: Path) -> Iterator[ProductRow | BadRow]:
    """Listings of a folder's JSON files, by file name, or of one JSON file, in its order."""
    return _rows(read_files(path))
