"""Scores the reader of prices in talk on a corpus of human bargaining."""

from pathlib import Path
from typing import Any

from django.core.management import CommandParser

from markets.importers.craigslist_bargain import read_dialogues
from negotiation_site.contract import ContractCommand
from negotiation_site.reader_score import score


class Command(ContractCommand):
    help = "Score the reader of prices in talk on a corpus. Needs no database."
    requires_system_checks = []

    def arguments(self, parser: CommandParser) -> None:
        parser.add_argument("path", type=Path, help="a file of the corpus")
        parser.add_argument("--corpus", choices=["craigslist-bargain"], required=True)

    def run(self, **options: Any) -> dict[str, Any]:
        dialogues, left_out = read_dialogues(options["path"])
        return {**score(dialogues), "records_left_out": left_out}
