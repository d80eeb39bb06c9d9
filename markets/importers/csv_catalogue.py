"""Catalogues as a spreadsheet saves them: one CSV file, UTF-8, one product a line.

The first line names the columns, in any order: `title`, `list_price`, `lowest_price` and
`highest_price` are required; `sku`, `category`, `text`, `stock` and `image_url` may be left out or
left blank. Contract: `read` raises `CatalogueError` at once if the file as a whole is no such
table; after that, a bad row costs only itself and comes out as a `BadRow`.
"""

import csv
import io
import re
import unicodedata
from collections.abc import Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from markets.importers.files import CatalogueError, read_text
from markets.importers.rows import (
    MAX_SKU_CHARACTERS,
    BadRow,
    ProductRow,
    RowError,
    product_row,
    quoted,
)

REQUIRED_COLUMNS = ("title", "list_price", "lowest_price", "highest_price")
OPTIONAL_COLUMNS = ("sku", "category", "text", "stock", "image_url")
COLUMNS = REQUIRED_COLUMNS + OPTIONAL_COLUMNS


class _Record(NamedTuple):
    line: int
    """Line on which the record starts, from 1."""
    fields: list[str] | csv.Error


def _is_blank(fields: list[str] | csv.Error) -> bool:
    return not isinstance(fields, csv.Error) and not any(field.strip() for field in fields)


def _records(lines: Sequence[str]) -> Iterator[_Record]:
    """Each record with the number of its first line; a stray quotation mark costs one line.

    A quotation mark that is never closed would swallow the rest of the file, so that reading
    starts anew on the line after the one that failed.
    """
    start = 0
    while start < len(lines):
        reader = csv.reader(islice(lines, start, None), strict=True)
        read = 0
        try:
            for fields in reader:
                yield _Record(start + read + 1, fields)
                read = reader.line_num
        except csv.Error as error:
            yield _Record(start + read + 1, error)
            start += read + 1
        else:
            return


def _column_names(header: _Record, *, path: Path) -> list[str]:
    """The header's names, lower case; raises if they cannot be those of a catalogue."""
    if isinstance(header.fields, csv.Error):
        raise CatalogueError(f"The header in line {header.line} of {str(path)!r} cannot be read.")
    names = [name.strip().lower() for name in header.fields]
    missing = [name for name in REQUIRED_COLUMNS if name not in names]
    if missing and len(names) == 1 and re.search("[;\t]", names[0]):
        raise CatalogueError(f"The columns of {str(path)!r} are not separated by commas; save it with commas.")
    if missing:
        raise CatalogueError(
            f"The header of {str(path)!r} lacks {', '.join(missing)}. It names the columns "
            f"{', '.join(REQUIRED_COLUMNS)}, and if wanted {', '.join(OPTIONAL_COLUMNS)}."
        )
    repeated = sorted({name for name in names if name in COLUMNS and names.count(name) > 1})
    if repeated:
        raise CatalogueError(f"The header of {str(path)!r} names {', '.join(repeated)} twice.")
    return names


def _sku_from_title(title: str, *, taken: dict[str, int]) -> str:
    """A sku for a row without one, the same at the next reading: `oak-desk`, `oak-desk-2`…"""
    plain = unicodedata.normalize("NFKD", title).encode("ascii", "ignore").decode().lower()
    stem = re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[: MAX_SKU_CHARACTERS - 8] or "product"
    sku, copies = stem, 1
    while sku in taken:
        copies += 1
        sku = f"{stem}-{copies}"
    return sku


def _row(
    fields: list[str] | csv.Error,
    *,
    names: list[str],
    taken: dict[str, int],
    path: Path,
    line: int,
) -> ProductRow:
    if isinstance(fields, csv.Error):
        raise RowError(f"A quotation mark that starts on this line goes wrong ({fields}).")
    if len(fields) != len(names):
        raise RowError(
            f"This row has {len(fields)} columns and the header has {len(names)}; text with a "
            "comma in it needs quotation marks around it."
        )
    values = {name: value.strip() for name, value in zip(names, fields, strict=True) if name in COLUMNS}
    if not values.get("sku"):
        values["sku"] = _sku_from_title(values["title"], taken=taken)
    row = product_row(**values, source=f"{path.name}:{line}")
    if row.sku in taken:
        raise RowError(f"The sku {quoted(row.sku)} is taken by line {taken[row.sku]}.")
    return row


def _rows(
    records: Sequence[_Record], *, names: list[str], header_line: int, path: Path
) -> Iterator[ProductRow | BadRow]:
    unknown = [quoted(name) for name in names if name not in COLUMNS]
    if unknown:
        yield BadRow(
            path=str(path),
            line=header_line,
            reason=f"Passed over the unknown columns {', '.join(unknown)}.",
        )
    taken: dict[str, int] = {}
    for line, fields in records:
        try:
            row = _row(fields, names=names, taken=taken, path=path, line=line)
        except RowError as problem:
            yield BadRow(path=str(path), line=line, reason=str(problem))
        else:
            taken[row.sku] = line
            yield row


def read(path: Path) -> Iterator[ProductRow | BadRow]:
    """Products of the CSV file at `path`, in its order, with what had to be left out."""
    lines = list(io.StringIO(read_text(path), newline=""))
    records = [record for record in _records(lines) if not _is_blank(record.fields)]
    if not records:
        raise CatalogueError(f"{str(path)!r} is empty.")
    header, *rows = records
    names = _column_names(header, path=path)
    if not rows:
        raise CatalogueError(f"{str(path)!r} has a header and no products.")
    return _rows(rows, names=names, header_line=header.line, path=path)
