"""Exports stored episodes."""

from pathlib import Path
from typing import Any

from django.core.management import CommandParser

from markets import export, selectors
from negotiation_site.contract import ContractCommand, known_market


class Command(ContractCommand):
    help = "Export episodes that may leave this server, one a line, thoughts and identity left out."

    def arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--format", required=True, choices=("jsonl",))
        parser.add_argument("--out", required=True, type=Path, help="folder to write into")
        parser.add_argument("--market", help="slug of one market")
        parser.add_argument(
            "--consent",
            choices=("public", "research"),
            default="public",
            help="public: open data only; research: for use by those who run this server",
        )

    def run(self, **options: Any) -> dict[str, Any]:
        market = known_market(options["market"], retired_too=True) if options["market"] else None
        episodes = selectors.episodes_for_export(scope=options["consent"], market=market)
        expected = episodes.count()
        written = export.write_jsonl(episodes, options["out"])
        return {
            "format": options["format"],
            "consent": options["consent"],
            "episodes": written.count,
            "left_out": selectors.count_episodes(market=market) - expected,
            "files": [str(written.path)],
            "sha256": written.sha256,
        }

    def describe(self, document: Any) -> str:
        return f"{document['episodes']} episodes are in {document['files'][0]}."
