"""The AmazonHistoryPrice data set (Xia et al., Findings of ACL 2024): JSON lists of products.

A folder holds one JSON file a category, each a list of records whose prices are strings such as
`"$1,299.00"`; other files beside them are passed over. Contract: `read` checks every file as a
whole before the first row comes out and raises `CatalogueError` where one is no complete list; a
record that cannot be used comes out as a `BadRow` with the line on which it starts, and the
records around it are read.
"""

import json
import re
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from markets.importers.files import CatalogueError, read_text
from markets.importers.rows import BadRow, ProductRow, RowError, product_row

_DECODER = json.JSONDecoder()
_BLANKS = re.compile(r"[ \t\r\n]*")
# A string ends on its own line, so that one stray quotation mark upsets no later line.
_BRACKETS_AND_COMMAS = re.compile(r'"(?:[^"\\\n]|\\.)*"|[\[\]{},]')
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


class _Record(NamedTuple):
    path: Path
    position: int
    """Place in the file's list, from 1: a file may be one long line."""
    line: int
    """Line on which the record starts, from 1."""
    content: Any
    """The decoded JSON value, or a `RowError` where there is none."""


def _end_of_broken_record(text: str, start: int) -> int | None:
    """Position of the comma or bracket after the record at `start`; `None` if it has no end."""
    depth = 0
    for token in _BRACKETS_AND_COMMAS.finditer(text, start):
        if depth == 0 and token[0] in {",", "]"}:
            return token.start()
        depth += {"{": 1, "[": 1, "}": -1, "]": -1}.get(token[0], 0)
    return None


def _records(path: Path) -> list[_Record]:
    """Every record of one file with the line on which it starts."""
    text = read_text(path)
    position = _after_blanks(text, 0)
    if not text.startswith("[", position):
        raise CatalogueError(f"{str(path)!r} does not hold a JSON list of products.")
    records: list[_Record] = []
    line, counted = 1, 0
    position = _after_blanks(text, position + 1)
    while not text.startswith("]", position):
        line, counted = line + text.count("\n", counted, position), position
        content: Any
        try:
            content, position = _DECODER.raw_decode(text, position)
        except (ValueError, RecursionError) as error:
            end = _end_of_broken_record(text, position)
            if end is None:
                raise CatalogueError(f"{str(path)!r} is cut short: what starts on line {line} has no end.") from error
            content, position = RowError(f"This record is not valid JSON ({error})."), end
        records.append(_Record(path=path, position=len(records) + 1, line=line, content=content))
        position = _after_blanks(text, position)
        if text.startswith(",", position):
            position = _after_blanks(text, position + 1)
        elif not text.startswith("]", position):
            raise CatalogueError(
                f"{str(path)!r} is cut short or lacks a comma after the record that starts on line {line}."
            )
    if _after_blanks(text, position + 1) != len(text):
        raise CatalogueError(f"{str(path)!r} goes on after the end of its list.")
    return records


def _after_blanks(text: str, position: int) -> int:
    match = _BLANKS.match(text, position)
    return match.end() if match else position


def _text_field(record: dict[str, Any], name: str) -> str:
    """The string under `name`; empty if there is none."""
    value = record.get(name)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise RowError(f"The {name} is not text in quotation marks.")
    return value.translate(_WINDOWS_1252)


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


def _row(record: _Record, *, taken: Counter[str]) -> ProductRow:
    if isinstance(record.content, RowError):
        raise record.content
    if not isinstance(record.content, dict):
        raise RowError("This is not a record with named fields.")
    fields = record.content
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


def _rows(files: list[list[_Record]]) -> Iterator[ProductRow | BadRow]:
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
    if path.is_dir():
        paths = sorted(file for file in path.glob("*.json") if file.is_file())
        if not paths:
            raise CatalogueError(f"The folder {str(path)!r} holds no JSON file.")
    else:
        paths = [path]
    files = [_records(file) for file in paths]
    if not any(files):
        raise CatalogueError(f"{str(path)!r} holds no products.")
    return _rows(files)
