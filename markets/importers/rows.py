"""One product as a catalogue file gives it, and the checks that every format shares.

Here live `ProductRow`, its counterpart `BadRow`, and the readers of single fields (amounts, titles,
stock). Files are opened in `files`; their layouts are in one module each; storing rows is the
business of the services.

Contract: `product_row` either returns a row that every later part may trust (cents, no control
characters, no half of an emoji, lowest not above highest) or raises `RowError` with a sentence.
"""

import re
import unicodedata
from urllib.parse import urlsplit

import msgspec

from markets.engine import money

MAX_SKU_CHARACTERS = 64
MAX_TITLE_CHARACTERS = 300
MAX_CATEGORY_CHARACTERS = 80
MAX_TEXT_CHARACTERS = 20_000
MAX_IMAGE_URL_CHARACTERS = 500
MAX_STOCK = 1_000_000

DEFAULT_CATEGORY = "other"

CURRENCY = "USD"
"""Currency of every catalogue amount."""


class ProductRow(msgspec.Struct, frozen=True, kw_only=True):
    """One product, checked. The three prices are the facts from which private values are drawn."""

    sku: str
    """Identifier, unique among the rows of one reading."""
    title: str
    category: str
    """Slug or short name, as the file gives it."""
    list_price_cents: int
    lowest_price_cents: int
    """Lowest price ever asked; the usual reservation value of a seller."""
    highest_price_cents: int
    """Highest price ever asked; may be below the list price."""
    text: str
    """Description, possibly of several lines; may be empty and may be long."""
    stock: int = 1
    image_url: str = ""
    """Address of a picture elsewhere, kept as a fact: pages never load it. May be empty."""
    source: str
    """Where the row stands: `mine.csv:21`, or `books.json:21, record 2`."""


class BadRow(msgspec.Struct, frozen=True, kw_only=True):
    """A row that was left out, and why; the rows around it were read."""

    path: str
    line: int
    """Line on which the row starts, from 1."""
    reason: str
    """A sentence for the person who made the file."""


class RowError(Exception):
    """One row cannot be used; the message is a sentence."""


def quoted(text: str) -> str:
    """`text` as it may be shown in a sentence: escaped where unprintable, and not too long."""
    return repr(text if len(text) <= 60 else text[:59] + "…")


def catalogue_amount(text: str) -> int:
    """Cents that a catalogue's amount such as `$1,234.50` stands for, 1 to `MAX_PRICE_CENTS`."""
    try:
        return money.parse_amount(text, currency=CURRENCY)
    except money.AmountError as error:
        raise RowError(error.sentence) from error


def _reject_unstorable(text: str, *, field: str) -> None:
    """Refuse what a database, a page or an export would choke on later."""
    for character in text:
        category = unicodedata.category(character)
        if category == "Cs":
            raise RowError(f"The {field} holds half of an emoji or other broken text.")
        if category == "Cc" and character not in "\n\t":
            raise RowError(f"The {field} holds an unprintable character ({character!r}).")


def _one_line(text: str, *, field: str, limit: int) -> str:
    """`text` on one line; refused if it is longer than `limit` characters."""
    line = " ".join(text.split())
    _reject_unstorable(line, field=field)
    if len(line) > limit:
        raise RowError(f"The {field} has {len(line):,} characters; at most {limit:,} are possible.")
    return line


def _paragraphs(text: str) -> str:
    """A description with plain line ends and no outer blanks."""
    plain = text.replace("\r\n", "\n").replace("\r", "\n").strip()
    _reject_unstorable(plain, field="text")
    if len(plain) > MAX_TEXT_CHARACTERS:
        raise RowError(f"The text has {len(plain):,} characters; at most {MAX_TEXT_CHARACTERS:,} are possible.")
    return plain


def _price_cents(text: str, *, field: str) -> int:
    if not text.strip():
        raise RowError(f"The {field} is missing.")
    try:
        return catalogue_amount(text.strip())
    except RowError as problem:
        raise RowError(f"The {field} {quoted(text)} cannot be used: {problem}") from problem


def _stock(text: str) -> int:
    if not text.strip():
        return 1
    digits = re.fullmatch(r"0*([0-9]{1,7})", text.strip())
    units = int(digits[1]) if digits else 0
    if not 1 <= units <= MAX_STOCK:
        raise RowError(f"The stock {quoted(text)} is not a whole number from 1 to {MAX_STOCK:,}.")
    return units


def _image_url(text: str) -> str:
    address = text.strip()
    if not address:
        return ""
    try:
        parts = urlsplit(address)
        reachable = parts.scheme in {"http", "https"} and bool(parts.hostname)
    except ValueError:
        reachable = False
    plain = re.fullmatch(r"[!-~]+", address) and not re.search(r"[<>\"'`\\]", address)
    if not reachable or not plain or len(address) > MAX_IMAGE_URL_CHARACTERS:
        raise RowError(f"The image_url {quoted(text)} is not a plain web address.")
    return address


def product_row(
    *,
    title: str,
    list_price: str,
    lowest_price: str,
    highest_price: str,
    sku: str,
    category: str = "",
    text: str = "",
    stock: str = "",
    image_url: str = "",
    source: str,
) -> ProductRow:
    """The row that these fields, as typed, stand for."""
    row = ProductRow(
        sku=_one_line(sku, field="sku", limit=MAX_SKU_CHARACTERS),
        title=_one_line(title, field="title", limit=MAX_TITLE_CHARACTERS),
        category=_one_line(category, field="category", limit=MAX_CATEGORY_CHARACTERS) or DEFAULT_CATEGORY,
        list_price_cents=_price_cents(list_price, field="list_price"),
        lowest_price_cents=_price_cents(lowest_price, field="lowest_price"),
        highest_price_cents=_price_cents(highest_price, field="highest_price"),
        text=_paragraphs(text),
        stock=_stock(stock),
        image_url=_image_url(image_url),
        source=source,
    )
    if not row.title:
        raise RowError("The title is missing.")
    if row.lowest_price_cents > row.highest_price_cents:
        raise RowError(f"The lowest_price {quoted(lowest_price)} is above the highest_price {quoted(highest_price)}.")
    return row
