"""What every command of the site promises: one JSON document on request, and errors as sentences.

With `--json` a command prints one document on standard output and nothing else. A wrong argument or
an input that cannot be used ends with exit status 2 and a sentence on standard error, without a
traceback; anything else is a fault of ours and rises.
"""

import json
from abc import ABC, abstractmethod
from argparse import ArgumentTypeError
from typing import Any

from django.core.management import BaseCommand, CommandError, CommandParser
from django.db import OperationalError, ProgrammingError

from agents.registry import UnknownAgent
from markets.accounts import AccountError
from markets.engine.priors import SpecError
from markets.engine.scenarios import RecipeError
from markets.erasure import ErasureError
from markets.export import ExportError
from markets.importers import CatalogueError
from markets.importers.craigslist_bargain import CorpusError
from markets.models import Market
from markets.selectors import current_markets, market_on_record
from markets.services import RoomError
from markets.setup import SetupError
from training.config import ConfigError
from training.services import RunError
from training.suites.cards import SuiteError
from training.tournaments.design import TournamentError

REFUSED = (
    SetupError,
    SpecError,
    RecipeError,
    CatalogueError,
    CorpusError,
    UnknownAgent,
    RoomError,
    ExportError,
    AccountError,
    ErasureError,
    ConfigError,
    RunError,
    SuiteError,
    TournamentError,
)
"""Errors whose text is a sentence for whoever typed the command."""


class ContractCommand(BaseCommand, ABC):
    """A command with `--json`. Subclasses define `run`, which returns the document."""

    requires_migrations_checks = False

    def add_arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--json", action="store_true", help="print one JSON document and nothing else")
        self.arguments(parser)

    def arguments(self, parser: CommandParser) -> None:
        """The command's own arguments."""

    @abstractmethod
    def run(self, **options: Any) -> Any:
        """Do the work and return a document that JSON can hold."""

    def describe(self, document: Any) -> str:
        """The document for a person."""
        return json.dumps(document, indent=2, ensure_ascii=False)

    def handle(self, *args: Any, **options: Any) -> None:
        try:
            document = self.run(**options)
        except REFUSED as error:
            raise CommandError(str(error), returncode=2) from error
        except (OperationalError, ProgrammingError) as error:
            if "no such table" in str(error) or "does not exist" in str(error):
                raise CommandError(
                    "The database has no tables yet: run `manage.py migrate` first.", returncode=2
                ) from error
            raise
        if options["json"]:
            self.stdout.write(json.dumps(document, ensure_ascii=False))
        else:
            self.stdout.write(self.describe(document))

    def note(self, text: str) -> None:
        """Tell a person something beside the document."""
        self.stderr.write(text)


def known_market(slug: str, *, retired_too: bool = False) -> Market:
    """The newest version of a market that is not retired. Raises `SetupError` with the slugs there are.

    `retired_too` takes the newest retired one where there is no other, for whoever reads what was played.
    """
    market = market_on_record(slug)
    if market is None:
        known = ", ".join(dict.fromkeys(current_markets().order_by("id").values_list("slug", flat=True)))
        raise SetupError(f"There is no market {slug!r}; there is: {known or 'none yet, run seed_demo'}.")
    if market.retired_at is not None and not retired_too:
        raise SetupError(f"The market {slug!r} is retired: what was played in it stays, nothing new is played.")
    return market


def positive(text: str) -> int:
    """A whole number of at least 1, for argparse."""
    try:
        number = int(text)
    except ValueError:
        raise ArgumentTypeError(f"{text!r} is not a whole number") from None
    if number < 1:
        raise ArgumentTypeError(f"{text!r} is less than 1")
    return number


def table(rows: list[dict[str, Any]], columns: tuple[str, ...]) -> str:
    """Rows as aligned text."""
    cells = [[_cell(row[column]) for column in columns] for row in rows]
    widths = [
        max(len(column), *(len(line[place]) for line in cells)) if cells else len(column)
        for place, column in enumerate(columns)
    ]
    lines = [columns, *cells]
    return "\n".join(
        "  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )


def _cell(value: Any) -> str:
    return ", ".join(map(str, value)) if isinstance(value, list | tuple) else str(value)
