"""Defines a market from the command line."""

from argparse import ArgumentTypeError
from typing import Any

from django.core.management import CommandParser

from markets import setup
from markets.engine.protocol import Role
from markets.engine.scenarios import decode_recipe
from negotiation_site import seating
from negotiation_site.contract import ContractCommand, positive


def correlation(text: str) -> float:
    """A number in [0, 1), for argparse."""
    try:
        number = float(text)
    except ValueError:
        raise ArgumentTypeError(f"{text!r} is not a number") from None
    if not 0 <= number < 1:
        raise ArgumentTypeError(f"{text!r} is not at least 0 and below 1")
    return number


class Command(ContractCommand):
    help = (
        "Define a market. Values: bands, uniform:LO:HI, lognormal:MEDIAN:SIGMA, constant:X; cost: "
        "lowest, uniform:LO:HI, constant:X; as shares of the list price or, with --unit money, in money."
    )

    def arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--slug", required=True)
        parser.add_argument("--family", required=True, help="bilateral, multi_buyer or catalogue")
        parser.add_argument("--catalogue", help="slug of a catalogue; may be left out with --unit money")
        parser.add_argument("--name", default="")
        parser.add_argument("--summary", default="")
        parser.add_argument("--category", default="", help="draw products of this category only")
        parser.add_argument("--buyers-n", type=positive, help="number of buyers")
        parser.add_argument("--products-m", type=positive, help="products on the table at once")
        parser.add_argument("--turns", type=positive, help="rounds, or messages of the seller")
        parser.add_argument("--stock", type=positive, default=1, help="units of each product")
        parser.add_argument("--cost")
        parser.add_argument("--values")
        parser.add_argument("--rho", type=correlation, default=0.0)
        parser.add_argument("--unit", default="list", choices=("list", "money"))
        parser.add_argument("--opener", default="seller", choices=("seller", "buyer"))
        parser.add_argument("--seller-agent", default="linear", help="fills an empty seller's seat")
        parser.add_argument("--buyer-agents", default="linear", help="fill empty buyers' seats")

    def run(self, **options: Any) -> dict[str, Any]:
        spec = setup.MarketSpec(
            slug=options["slug"],
            family=options["family"],
            catalogue=options["catalogue"],
            name=options["name"],
            summary=options["summary"],
            category=options["category"],
            buyers=options["buyers_n"],
            products=options["products_m"],
            turns=options["turns"],
            stock=options["stock"],
            cost=options["cost"],
            values=options["values"],
            rho=options["rho"],
            unit=options["unit"],
            opener=Role(options["opener"]),
            seller_agent=options["seller_agent"],
            buyer_agents=options["buyer_agents"],
        )
        seating.check_spec_agents(spec)
        market = setup.create_market(spec)
        recipe = decode_recipe(market.recipe)
        return {
            "slug": market.slug,
            "family": market.family,
            "mechanism": market.mechanism,
            "version": market.version,
            "catalogue": market.catalogue.slug if market.catalogue else None,
            "buyers_n": recipe.buyers,
            "products_m": recipe.products,
            "turns": setup.turns_of(recipe),
            "stock": recipe.stock,
        }

    def describe(self, document: Any) -> str:
        return f"Market {document['slug']!r} is there: {document['family']}, {document['mechanism']}."
