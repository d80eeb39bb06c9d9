"""Exports a study as tables that join, in a folder."""

from pathlib import Path
from typing import Any

from django.core.management import CommandError, CommandParser

from negotiation_site.contract import ContractCommand
from negotiation_site.studies import dataset
from negotiation_site.studies.models import Study


class Command(ContractCommand):
    help = "Export a study: participants, answers, rounds, episodes and events, with a data dictionary."

    def arguments(self, parser: CommandParser) -> None:
        parser.add_argument("study", help="address of the study, such as demo-study")
        parser.add_argument("--out", required=True, type=Path, help="folder to make: new, empty, or an earlier export")
        parser.add_argument(
            "--consent",
            choices=dataset.SCOPES,
            default="research",
            help="research: for use by those who run the study; public: open data only",
        )

    def run(self, **options: Any) -> dict[str, Any]:
        slug = options["study"]
        study = None if "\0" in slug else Study.objects.filter(slug=slug).first()
        if study is None:
            there = ", ".join(Study.objects.order_by("slug").values_list("slug", flat=True)[:20])
            raise CommandError(f"There is no study {slug!r}; there is: {there or 'none yet'}.", returncode=2)
        made = dataset.make(study, options["out"], scope=options["consent"])
        return made.manifest | {"out": str(made.folder), "files": [str(path) for path in made.files]}

    def describe(self, document: Any) -> str:
        return f"{document['participants']} participants and {document['episodes']} episodes are in {document['out']}."
