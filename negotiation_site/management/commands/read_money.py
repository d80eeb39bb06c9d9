"""Reads one line of talk after the other from standard input and says which price each proposes."""

import json
import sys
from typing import Any

from django.core.management import BaseCommand, CommandParser

from markets.engine.money import CURRENCIES, Cents, format_plain
from markets.engine.talk_prices import NumberFormat, Reading, find_prices

COMMA_LANGUAGES = frozenset(
    [
        "bg",
        "ca",
        "cs",
        "da",
        "de",
        "el",
        "es",
        "et",
        "fi",
        "fr",
        "hr",
        "hu",
        "is",
        "it",
        "lt",
        "lv",
        "nb",
        "nl",
        "no",
        "pl",
        "pt",
        "ro",
        "ru",
        "sk",
        "sl",
        "sv",
        "tr",
        "uk",
    ]
)
"""Languages that write cents after a comma."""


class Command(BaseCommand):
    help = "Read the price that each line of standard input proposes. Needs no database."
    requires_system_checks = []
    requires_migrations_checks = False

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--json", action="store_true", help="print one JSON object a line")
        parser.add_argument(
            "--currency",
            choices=sorted(CURRENCIES),
            help="the market's currency; without it, the one that a line names, else USD",
        )
        parser.add_argument(
            "--locale", default="en", help="language whose marks of thousands and cents hold: en, de, …"
        )

    def handle(self, *args: Any, **options: Any) -> None:
        comma = options["locale"].replace("_", "-").partition("-")[0].casefold() in COMMA_LANGUAGES
        number_format = NumberFormat.COMMA if comma else NumberFormat.POINT
        for raw in sys.stdin.buffer:
            text = raw.decode(errors="replace").rstrip("\r\n")
            currency = options["currency"] or named_currency(text)
            reading = find_prices(text, currency=currency, number_format=number_format)
            if options["json"]:
                self.stdout.write(json.dumps(document(text, reading, currency), ensure_ascii=False))
            else:
                price = "no offer" if reading.cents is None else f"{format_plain(reading.cents)} {currency}"
                self.stdout.write(f"{price:>16}  {reading.kind.value:<10}  {text}")


def named_currency(text: str) -> str:
    """The one currency whose mark or word stands in `text`; USD where none or several do."""
    words = {word.strip(".,;:!?()'\"").casefold() for word in text.split()}
    named = {
        code
        for code, currency in CURRENCIES.items()
        if currency.symbol in text or code.casefold() in words or words & {*currency.words}
    }
    return named.pop() if len(named) == 1 else "USD"


def document(text: str, reading: Reading, currency: str) -> dict[str, Any]:
    """One line's reading as JSON holds it."""
    return {
        "text": text,
        "kind": reading.kind.value,
        "amount": _plain(reading.cents),
        "cents": reading.cents,
        "currency": currency,
        "span": None if reading.span is None else list(reading.span),
        "mentions": [
            {"kind": mention.kind.value, "amount": _plain(mention.cents), "span": list(mention.span)}
            for mention in reading.mentions
        ],
    }


def _plain(cents: Cents | None) -> str | None:
    return None if cents is None else format_plain(cents)
