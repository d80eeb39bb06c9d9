"""The AmazonHistoryPrice data set (Xia et al., Findings of ACL 2024): JSON lists of products.

A folder holds one JSON file a category, each a list of records whose prices are strings such as
`"$1,299.00"`; other files beside them are passed over. Contract: `read` checks every file as a
whole before the first row comes out and raises `CatalogueError` where one is no complete list; a
record that cannot be used comes out as a `BadRow` with the line on which it starts, and the
records around it are read.
"""

import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from markets.importers.json_records import Record, fields_of, read_files, text_field
from markets.importers.rows import BadRow, ProductRow, RowError, product_row

_IDENTIFIER_IN_LINK = re.compile(r"/(?:product|dp)/([A-Z0-9]{10})(?![A-Za-z0-9])")
# Control characters 128 to 159 in these texts are Windows-1252 that was taken for Latin-1.
_WINDOWS_1252 = {code: bytes([code]).decode("cp1252", errors="ignore") for code in range(128, 160)}
_PAGE_FURNITURE = frozenset(
    {
        "NA",
        "Read more",
        "› See more product details",
        "Product Description",
        "From the Publisher",
        "From the Manufacturer",
    }
)


def _text_field(record: dict[str, Any], name: str) -> str:
    """The string under `name` with its punctuation put back; empty if there is none."""
    return text_field(record, name).translate(_WINDOWS_1252)


def _description(record: dict[str, Any]) -> str:
    """The description, or else the features, without the headings of the page they stood on."""
    for name in ("description", "features"):
        lines = _text_field(record, name).splitlines()
        text = "\n".join(line for line in lines if line.strip() not in _PAGE_FURNITURE).strip()
        if text:
            return text
    return ""


def _image_url(record: dict[str, Any]) -> str:
    """The picture's address if it is a plain one; an odd one is no reason to lose the product."""
    address = _text_field(record, "img")
    return address if re.fullmatch(r"https://[\w.-]+/[\w.%+,/~-]{1,400}", address, re.A) else ""


def _row(record: Record, *, taken: Counter[str]) -> ProductRow:
    fields = fields_of(record)
    stem = record.path.stem
    link = _IDENTIFIER_IN_LINK.search(_text_field(fields, "link") + " " + _text_field(fields, "amazon_link"))
    sku = link[1] if link else f"{stem[:48]}-{record.position:04d}"
    row = product_row(
        sku=sku if not taken[sku] else f"{sku}-{taken[sku] + 1}",
        title=_text_field(fields, "title"),
        category=_text_field(fields, "category") or stem,
        list_price=_text_field(fields, "list_price"),
        lowest_price=_text_field(fields, "lowest_price"),
        highest_price=_text_field(fields, "highest_price"),
        text=_description(fields),
        image_url=_image_url(fields),
        source=f"{record.path.name}:{record.line}, record {record.position}",
    )
    taken[sku] += 1
    return row


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
    """Products of a folder's JSON files, by file name, or of one JSON file, in its order."""
    return _rows(read_files(path))
