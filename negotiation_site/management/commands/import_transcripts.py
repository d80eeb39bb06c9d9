"""Imports negotiations of a public corpus."""

from pathlib import Path
from typing import Any

from django.core.management import CommandParser

from markets import corpora
from markets.importers.transcripts import FORMATS
from negotiation_site.contract import ContractCommand

SHOWN = 20
"""Bad records that are told on standard error."""


class Command(ContractCommand):
    help = "Import negotiations of a public corpus. Bad records are reported and passed over; the same again adds none."

    def arguments(self, parser: CommandParser) -> None:
        parser.add_argument("path", type=Path, help="a file, or a folder whose README and licence are passed over")
        parser.add_argument("--format", required=True, choices=tuple(FORMATS))
        parser.add_argument("--name", required=True, help="name of the corpus here")

    def run(self, **options: Any) -> dict[str, Any]:
        result = corpora.store(name=options["name"], format=options["format"], path=options["path"])
        for bad in result.bad[:SHOWN]:
            self.note(f"{bad.place}: {bad.reason}")
        if result.skipped > SHOWN:
            self.note(f"{result.skipped - SHOWN} more records were passed over.")
        return {
            "corpus": options["name"],
            "format": options["format"],
            "records": result.records,
            "imported": result.imported,
            "skipped": result.skipped,
            "duplicates": result.duplicates,
            "payoffs_checked": result.payoffs_checked,
            "payoff_mismatches": result.payoff_mismatches,
            "mismatched": result.mismatched,
            "bad_records": [{"place": bad.place, "reason": bad.reason} for bad in result.bad],
        }

    def describe(self, document: Any) -> str:
        return (
            f"{document['imported']} negotiations are new in {document['corpus']!r}; of {document['records']} records "
            f"{document['duplicates']} told of one that was there and {document['skipped']} were passed over. "
            f"{document['payoffs_checked']} payoffs were worked out again, {document['payoff_mismatches']} differ."
        )
