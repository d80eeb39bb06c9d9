"""Makes a market of a set of profiles that were published for another one."""

from pathlib import Path
from typing import Any

from django.core.management import CommandParser
from django.db import transaction

from markets import setup
from markets.engine.scenarios import MAX_BUYERS, MAX_PRODUCTS, Family
from markets.importers import magentic
from negotiation_site.contract import ContractCommand


class Command(ContractCommand):
    help = (
        "Import profiles as a catalogue of packages and a market on it. A package's value is what it is worth to its "
        "customer, its cost the least that its business takes. The market is ours: there one seller has all packages."
    )

    def arguments(self, parser: CommandParser) -> None:
        parser.add_argument("path", type=Path, help="folder with customers/ and businesses/")
        parser.add_argument("--format", required=True, choices=[magentic.FORMAT])
        parser.add_argument("--name", required=True, help="slug of the catalogue and the market")

    def run(self, **options: Any) -> dict[str, Any]:
        path: Path = options["path"]
        setup.check_slug(options["name"], what="A market's name")
        try:
            profiles = magentic.read(path)
        except magentic.ProfileError as error:
            raise setup.SetupError(str(error)) from error
        rows = list(magentic.packages(profiles, source=path.name))
        if not rows:
            raise setup.SetupError(f"No customer of {str(path)!r} could gain anywhere; there is nothing to sell.")
        with transaction.atomic():
            imported = setup.import_catalogue(name=options["name"], rows=rows, source=path.name)
            market = setup.create_market(
                setup.MarketSpec(
                    slug=options["name"],
                    family=Family.CATALOGUE.value,
                    catalogue=options["name"],
                    buyers=max(2, min(MAX_BUYERS, len(profiles.customers))),
                    products=min(MAX_PRODUCTS, 3, len(rows)),
                    values="highest:1",
                )
            )
        return {
            "market": market.slug,
            "version": market.version,
            "catalogue": imported.catalogue.slug,
            "customers": len(profiles.customers),
            "businesses": len(profiles.businesses),
            "products": imported.products,
            "optimal_welfare_cents": sum(choice.utility_cents for choice in magentic.best(profiles)),
        }

    def describe(self, document: Any) -> str:
        return f"The market {document['market']!r} sells {document['products']} packages."
