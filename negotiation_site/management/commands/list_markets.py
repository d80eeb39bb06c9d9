"""Lists the newest version of every market."""

from typing import Any

from markets import selectors
from negotiation_site.contract import ContractCommand, table


class Command(ContractCommand):
    help = "List the markets."

    def run(self, **options: Any) -> list[dict[str, Any]]:
        return [
            {
                "slug": market.slug,
                "family": market.family,
                "mechanism": market.mechanism,
                "version": market.version,
                "name": market.name,
                "catalogue": market.catalogue.slug if market.catalogue else None,
            }
            for market in selectors.current_markets()
        ]

    def describe(self, document: Any) -> str:
        return table(document, ("slug", "family", "mechanism", "name"))
