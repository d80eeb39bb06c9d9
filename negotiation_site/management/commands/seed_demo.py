"""Makes the starter world: catalogue, markets in every family, games in each, a small tournament, a study. Idempotent."""

from typing import Any

from django.core.management import CommandParser

from markets import setup
from markets.models import Catalogue, Market
from negotiation_site import seating
from negotiation_site.contract import ContractCommand
from negotiation_site.starter import attacks, catalogue, games, markets, studies


class Command(ContractCommand):
    help = "Make the starter world. Running it again changes nothing that is there."

    def arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--bare", action="store_true", help="catalogue, markets and the study alone, no games")

    def run(self, **options: Any) -> dict[str, Any]:
        rows = catalogue.load()
        known = Catalogue.objects.filter(slug=markets.CATALOGUE).first()
        if known is None or known.products.count() != len(rows):
            imported = setup.import_catalogue(
                name=markets.CATALOGUE, rows=rows, source="Parley's own starter catalogue"
            )
            Catalogue.objects.filter(pk=imported.catalogue.pk).update(name="Starter catalogue")
        made = []
        for spec in markets.MARKETS:
            seating.check_spec_agents(spec)
            if not Market.objects.filter(slug=spec.slug).exists():
                made.append(setup.create_market(spec).slug)
        studies.make()
        if not options["bare"]:
            attacks.fill()
        return {
            "products": len(rows),
            "markets": [spec.slug for spec in markets.MARKETS],
            "created": made,
            "episodes": 0 if options["bare"] else games.fill(),
            "study": studies.SLUG,
            "tournament": None if options["bare"] else games.TOURNAMENT,
        }

    def describe(self, document: Any) -> str:
        return (
            f"The starter world has {document['products']} products and "
            f"{len(document['markets'])} markets; {len(document['created'])} were made now. "
            f"{document['episodes']} negotiations were played into it."
        )
