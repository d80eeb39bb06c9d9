"""Writes imported negotiations out again."""

from pathlib import Path
from typing import Any

from django.core.management import CommandParser

from markets import corpora
from negotiation_site.contract import ContractCommand


class Command(ContractCommand):
    help = "Write an imported corpus as JSON lines; import_transcripts --format parley reads them back, byte for byte."

    def arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--name", required=True, help="name of the corpus")
        parser.add_argument(
            "--out", required=True, type=Path, help="file to write; a folder is read back only where it ends in .jsonl"
        )

    def run(self, **options: Any) -> dict[str, Any]:
        written = corpora.write(name=options["name"], path=options["out"])
        return {
            "corpus": options["name"],
            "dialogues": written.dialogues,
            "file": str(written.path),
            "sha256": written.sha256,
            "licence": written.licence,
        }

    def describe(self, document: Any) -> str:
        return f"{document['dialogues']} negotiations are in {document['file']}. Licence: {document['licence']}."
