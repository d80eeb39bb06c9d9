"""Works out what the customers of a set of profiles could gain at best, beside what was published."""

import json
from pathlib import Path
from typing import Any

from django.core.management import CommandParser

from markets.importers import magentic
from markets.setup import SetupError
from negotiation_site.contract import ContractCommand

PUBLISHED = "baseline_utilities.json"


class Command(ContractCommand):
    help = "The optimal welfare of a folder of Magentic profiles, and whether it is the published one."

    def arguments(self, parser: CommandParser) -> None:
        parser.add_argument("path", type=Path, help="folder with customers/ and businesses/")

    def run(self, **options: Any) -> dict[str, Any]:
        path: Path = options["path"]
        try:
            profiles = magentic.read(path)
        except magentic.ProfileError as error:
            raise SetupError(str(error)) from error
        choices = magentic.best(profiles)
        optimal = sum(choice.utility_cents for choice in choices)
        published = _published(path / PUBLISHED)
        return {
            "customers": len(profiles.customers),
            "businesses": len(profiles.businesses),
            "optimal_welfare": optimal / 100,
            "optimal_welfare_cents": optimal,
            "published_cents": published,
            "matches": None if published is None else published == optimal,
            "choices": [choice._asdict() for choice in choices],
        }

    def describe(self, document: Any) -> str:
        told = "" if document["matches"] is None else f"; published: {document['published_cents'] / 100:,.2f}"
        return f"The customers could gain {document['optimal_welfare']:,.2f} at best{told}."


def _published(path: Path) -> int | None:
    """The published optimum in cents; None where none lies beside the profiles. Raises `SetupError`."""
    if not path.exists():
        return None
    try:
        return round(float(json.loads(path.read_text(encoding="utf-8"))["pick_optimal_baseline"]["constant"]) * 100)
    except (OSError, ValueError, TypeError, KeyError) as error:
        raise SetupError(f"{str(path)!r} holds no published optimum (pick_optimal_baseline).") from error
