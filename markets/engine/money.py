"""Amounts of money: the one place that reads and prints them.

Here: cents, the currencies of a market, printing an amount, and the strict reader of a typed price
(`parse_amount`). Not here: prices in talk (`talk_prices`), or whether a price is allowed at the
table (`rules`).

Contract: an amount is an integer number of cents from reading to storing to printing; no float
touches it. A text is read in the market's one currency and in one format (1,234.50); what could
mean two things is refused with a sentence that says what to write. Standard library only.
"""

import re
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeAlias

Cents: TypeAlias = int

MAX_PRICE_CENTS: Cents = 10**10
"""No price, and no sampled value, is larger: 100 million units of money."""

MAX_AMOUNT_CHARS = 40


@dataclass(frozen=True, kw_only=True, slots=True)
class Currency:
    """How amounts of one currency are written; all have two decimals, `.` and `,`."""

    code: str
    symbol: str
    words: tuple[str, ...]
    """What people call it in talk, lower case."""
    decimals: int = 2
    decimal_mark: str = "."
    thousands_mark: str = ","
    comma_decimals: bool = False
    """Whether many people write its cents after a comma: 45,00."""


CURRENCIES: dict[str, Currency] = {
    currency.code: currency
    for currency in (
        Currency(code="USD", symbol="$", words=("dollar", "dollars", "buck", "bucks", "bux")),
        Currency(code="EUR", symbol="€", words=("euro", "euros"), comma_decimals=True),
        Currency(code="GBP", symbol="£", words=("pound", "pounds", "quid")),
    )
}


# Printing --------------------------------------------------------------------------------------


_HUNDREDTHS = tuple(f".{rest:02d}" for rest in range(100))


def format_amount(cents: Cents, currency: str) -> str:
    """`$1,234.50`; always two decimals, a loss with a real minus sign before the symbol."""
    symbol = CURRENCIES[currency].symbol
    if cents < 0:
        return f"\N{MINUS SIGN}{format_amount(-cents, currency)}"
    whole = cents // 100
    if whole < 1_000:
        return f"{symbol}{whole}{_HUNDREDTHS[cents % 100]}"
    return f"{symbol}{whole:,}{_HUNDREDTHS[cents % 100]}"


def format_plain(cents: Cents) -> str:
    """`1234.50`, for input fields and files; negative amounts with a hyphen."""
    whole, rest = divmod(abs(cents), 100)
    return f"{'-' if cents < 0 else ''}{whole}.{rest:02d}"


# A typed price ---------------------------------------------------------------------------------


class AmountCode(StrEnum):
    """Why a typed price was refused."""

    EMPTY = "empty"
    TOO_LONG = "too_long"
    NEGATIVE = "negative"
    ZERO = "zero"
    NOT_FINITE = "not_finite"
    EXPONENT = "exponent"
    TOO_MANY_DECIMALS = "too_many_decimals"
    AMBIGUOUS_COMMA = "ambiguous_comma"
    COMMA_DECIMALS = "comma_decimals"
    FOREIGN_DIGITS = "foreign_digits"
    OTHER_CURRENCY = "other_currency"
    NOT_A_NUMBER = "not_a_number"
    TOO_LARGE = "too_large"


class AmountError(ValueError):
    """A typed price that cannot be read; `sentence` is for the person who typed it."""

    def __init__(self, code: AmountCode, sentence: str) -> None:
        super().__init__(sentence)
        self.code = code
        self.sentence = sentence


_PLAIN_NUMBER = re.compile(r"(?P<whole>[0-9]{1,3}(?:,[0-9]{3})+|[0-9]+|(?=\.[0-9]))(?:\.(?P<rest>[0-9]{0,2}))?")
_USUAL = {
    code: re.compile(
        rf"(?:{re.escape(currency.symbol)})?(?P<whole>[0-9]{{1,3}}(?:,[0-9]{{3}})+|[0-9]+)(?:\.(?P<rest>[0-9]{{0,2}}))?"
    )
    for code, currency in CURRENCIES.items()
}
"""What nearly every typed price looks like; whatever does not is read with care."""
_DECIMAL_COMMA = re.compile(r"[0-9]{1,3}(\.[0-9]{3})+,[0-9]*|[0-9]{1,3}(\.[0-9]{3}){2,}")
_MINUS_SIGNS = "-\N{MINUS SIGN}\N{EN DASH}\N{EM DASH}"


def parse_amount(text: str, *, currency: str) -> Cents:
    """Read a price that a person typed into a price field; 1 to `MAX_PRICE_CENTS` cents.

    Reads `120`, `120.5`, `120.50`, `$120`, `1,234.50`, ` 120 USD `. Everything else raises
    `AmountError` with its own code and a sentence; nothing is guessed or rounded.
    """
    if len(text) > MAX_AMOUNT_CHARS:
        raise AmountError(AmountCode.TOO_LONG, f"A price has at most {MAX_AMOUNT_CHARS} characters.")
    match = _USUAL[currency].fullmatch(text)
    if match is None:
        body = _strip_currency(text.strip(), currency)
        _refuse_what_is_no_number(body)
        match = _PLAIN_NUMBER.fullmatch(body)
        if match is None:
            raise _unreadable(body)
    whole, rest = match.groups()
    cents = _to_cents(whole, rest)
    if cents == 0:
        raise AmountError(AmountCode.ZERO, "A price must be at least 0.01.")
    if cents > MAX_PRICE_CENTS:
        limit = format_amount(MAX_PRICE_CENTS, currency)
        raise AmountError(AmountCode.TOO_LARGE, f"A price can be at most {limit}.")
    return cents


def _to_cents(whole: str, rest: str | None) -> Cents:
    if rest is None and whole.isdigit():
        return int(whole) * 100
    units = int(whole.replace(",", "") or "0") * 100
    return units + int(rest.ljust(2, "0")) if rest else units


def _strip_currency(body: str, currency: str) -> str:
    """`body` without one mark of the market's own currency before or after the number."""
    marks = {mark.casefold(): known.code for known in CURRENCIES.values() for mark in (known.symbol, known.code)}
    folded = body.casefold()
    for mark, code in marks.items():
        for found, rest in (
            (folded.startswith(mark), body[len(mark) :]),
            (folded.endswith(mark), body[: -len(mark)]),
        ):
            if found and code != currency:
                raise AmountError(AmountCode.OTHER_CURRENCY, f"Prices here are in {currency}, not in {code}.")
            if found:
                return rest.strip()
    return body


def _refuse_what_is_no_number(body: str) -> None:
    if not body:
        raise AmountError(AmountCode.EMPTY, "Type a price, such as 120 or 120.50.")
    if body[0] in _MINUS_SIGNS:
        raise AmountError(AmountCode.NEGATIVE, "A price cannot be negative.")
    if body.lstrip("+").casefold() in {"nan", "inf", "infinity", "∞"}:
        raise AmountError(AmountCode.NOT_FINITE, "A price must be a number such as 120.50.")
    if re.fullmatch(r"[0-9.,]+[eE][+-]?[0-9]+", body):
        raise AmountError(AmountCode.EXPONENT, "Write the price out, such as 1200 and not 1.2e3.")
    if any(char.isdigit() and not char.isascii() for char in body):
        raise AmountError(AmountCode.FOREIGN_DIGITS, "Write the price with the digits 0 to 9.")
    if not re.fullmatch(r"[0-9.,]+", body):
        raise AmountError(AmountCode.NOT_A_NUMBER, "Type only a number, such as 120 or 120.50.")


def _unreadable(body: str) -> AmountError:
    if _DECIMAL_COMMA.fullmatch(body):
        return AmountError(
            AmountCode.COMMA_DECIMALS,
            "Write thousands with commas and cents with a point: 1,234.50.",
        )
    if re.fullmatch(r"[0-9,]+\.[0-9]{3,}", body):
        return AmountError(
            AmountCode.TOO_MANY_DECIMALS,
            "A price has two decimals at most: write 3.35, or 3,350 for thousands.",
        )
    if "," in body and re.search("[0-9]", body):
        return AmountError(AmountCode.AMBIGUOUS_COMMA, "That comma could mean two things: write 12.50 or 1,250.")
    return AmountError(AmountCode.NOT_A_NUMBER, "Type only a number, such as 120 or 120.50.")
