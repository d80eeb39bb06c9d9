"""Imports products from a file or folder."""

from pathlib import Path
from typing import Any

from django.core.management import CommandParser

from markets import importers, setup
from negotiation_site.contract import ContractCommand


class Command(ContractCommand):
    help = "Import a catalogue. Bad rows are reported with file and line; the rest goes in."

    def arguments(self, parser: CommandParser) -> None:
        parser.add_argument("path", type=Path)
        parser.add_argument("--format", required=True, choices=sorted(importers.FORMATS))
        parser.add_argument("--name", required=True, help="slug of the catalogue")

    def run(self, **options: Any) -> dict[str, Any]:
        path: Path = options["path"]
        setup.check_slug(options["name"], what="A catalogue's name")
        rows = importers.FORMATS[options["format"]](path)
        imported = setup.import_catalogue(name=options["name"], rows=rows, source=path.name)
        bad_rows = [{"file": str(row.path), "line": row.line, "reason": row.reason} for row in imported.bad_rows]
        for row in bad_rows:
            self.note(f"{row['file']}:{row['line']}: {row['reason']}")
        return {
            "catalogue": imported.catalogue.slug,
            "products": imported.products,
            "skipped": len(bad_rows),
            "bad_rows": bad_rows,
        }

    def describe(self, document: Any) -> str:
        return (
            f"Products in the catalogue {document['catalogue']!r}: {document['products']}; "
            f"rows passed over: {document['skipped']}."
        )
