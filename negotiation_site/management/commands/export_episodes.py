"""Exports stored episodes as a data set in a folder."""

from pathlib import Path
from typing import Any

from django.core.management import CommandParser

from markets.engine.protocol import Role
from markets.engine.scenarios import Family
from markets.models import EpisodeSource
from negotiation_site.contract import ContractCommand, known_market
from negotiation_site.exports import asked as asking
from negotiation_site.exports import making
from negotiation_site.exports.asked import Asked

ROLES = [role.value for role in Role]


class Command(ContractCommand):
    help = "Export episodes that may leave this server as a data set: raw, or ready to train on. Identity stays here."

    def arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--format", required=True, choices=asking.FORMATS)
        parser.add_argument("--out", required=True, type=Path, help="folder to make: new, empty, or an earlier export")
        parser.add_argument("--market", default="", help="slug of one market")
        parser.add_argument("--family", default="", choices=[family.value for family in Family])
        parser.add_argument("--role", default="", choices=ROLES, help="with a seat of this side")
        parser.add_argument("--agent", default="", help="slug of an agent on such a seat")
        parser.add_argument("--kind", default="", choices=list(asking.KINDS), help="who sat on such a seat")
        parser.add_argument("--outcome", default="", choices=asking.OUTCOMES)
        parser.add_argument("--min-share", type=float, help="least surplus share of such a seat")
        parser.add_argument("--since", default="", help="ended on this day or later, such as 2026-11-30")
        parser.add_argument("--study", default="", help="played in this study")
        parser.add_argument("--source", default="", choices=EpisodeSource.values)
        parser.add_argument(
            "--perspective", default="", choices=asking.PERSPECTIVES, help="whose moves are learned (--role, seller)"
        )
        parser.add_argument("--corpus", default="", help="rows of an imported corpus instead of episodes")
        parser.add_argument("--protocol", default="auto", choices=asking.PROTOCOLS, help="how moves are written")
        parser.add_argument("--thoughts", default="without", choices=[way.value for way in asking.Thoughts])
        parser.add_argument("--rows", default="turn", choices=("turn", "episode"), help="what a row of sft is")
        parser.add_argument("--keep-text-as-is", action="store_true", help="mask no address, number or link in words")
        parser.add_argument(
            "--consent",
            choices=asking.SCOPES,
            default="public",
            help="public: open data only; research: for use by those who run this server",
        )

    def run(self, **options: Any) -> dict[str, Any]:
        if options["market"]:
            known_market(options["market"], retired_too=True)
        asked = Asked(**{name: options[name] for name in Asked.__struct_fields__})
        made = making.make(asked, options["out"])
        manifest = made.manifest
        return {
            "format": asked.format,
            "consent": asked.consent,
            "episodes": manifest["episodes"],
            "left_out": asking.count(asked) - manifest["episodes"],
            "rows": manifest["rows"],
            "out": str(made.folder),
            "files": [str(path) for path in made.files],
            **{
                name: value
                for name, value in manifest.items()
                if name in ("protocol", "schema_version", "episodes_by_split", "seats", "texts", "sha256")
                or name.startswith("moves")
            },
        }

    def describe(self, document: Any) -> str:
        made = f"{document['episodes']} episodes in {document['rows']} rows are in {document['out']}."
        if document["rows"] or document["consent"] != "public":
            return made
        return f"{made} Only open data was asked for; --consent research takes what may be used on this server, too."
