"""Defines a market from the command line."""

from argparse import ArgumentTypeError
from typing import Any

from django.core.management import CommandParser

from markets import setup
from markets.engine import priors
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


def opening_bids(text: str) -> tuple[float, float] | None:
    """`none`, or two shares of the list price as LO:HI, for argparse."""
    if text == "none":
        return None
    try:
        low, high = map(float, text.split(":"))
    except ValueError:
        raise ArgumentTypeError(f"{text!r} is neither none nor two shares such as 0.25:0.30") from None
    return low, high


class Command(ContractCommand):
    help = (
        "Define a market. Values: bands, uniform:LO:HI, lognormal:MEDIAN:SIGMA, constant:X, with a hidden "
        "common factor as in bands*uniform:0.6:1.6; cost: lowest, uniform:LO:HI, constant:X; as shares of the "
        "list price or, with --unit money, in money. From a product's own prices: values highest:SHARE (of the "
        "highest or list price) or range:LO:HI (from LO x lowest to HI of the range above highest), cost "
        "lowest:LO:HI."
    )

    def arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--slug", required=True)
        parser.add_argument("--family", required=True, help="bilateral, multi_buyer or catalogue")
        parser.add_argument(
            "--mechanism", default="", help="alternating or event_driven for one buyer; seller_turns for several"
        )
        parser.add_argument("--catalogue", help="slug of a catalogue; may be left out with --unit money")
        parser.add_argument("--name", default="")
        parser.add_argument("--summary", default="")
        parser.add_argument("--category", default="", help="draw products of this category only")
        parser.add_argument(
            "--price-tier", type=positive, help="draw from this fifth of the list prices only, 1 the cheapest"
        )
        parser.add_argument(
            "--price-decade", type=int, help="d: draw list prices from 10**d to below 10**(d + 1) units of money only"
        )
        parser.add_argument("--split", default="", help="draw the training, held_out or held_out_decade part only")
        parser.add_argument(
            "--gains", default="", help="forced or none: draw again until trade can gain, or until it cannot"
        )
        parser.add_argument(
            "--opening-bids",
            type=opening_bids,
            default=(0.25, 0.30),
            help="LO:HI, the buyers' opening bids as shares of the list price, or none",
        )
        parser.add_argument("--buyers-n", type=positive, help="number of buyers")
        parser.add_argument("--products-m", type=positive, help="products on the table at once")
        parser.add_argument("--turns", type=positive, help="rounds, or messages of the seller")
        parser.add_argument("--events", type=positive, help="cap on the events of an event_driven market")
        parser.add_argument("--stock", type=positive, default=1, help="units of each product of a catalogue")
        parser.add_argument("--cost")
        parser.add_argument("--values")
        parser.add_argument("--rho", type=correlation, default=0.0)
        parser.add_argument("--unit", default="list", choices=("list", "money"))
        parser.add_argument("--opener", choices=("seller", "buyer"), help="of a negotiation of two; seller unless said")
        parser.add_argument("--seller-agent", default="linear", help="fills an empty seller's seat")
        parser.add_argument("--buyer-agents", default="linear", help="fill empty buyers' seats")

    def run(self, **options: Any) -> dict[str, Any]:
        spec = setup.MarketSpec(
            slug=options["slug"],
            family=options["family"],
            mechanism=options["mechanism"],
            events=options["events"],
            catalogue=options["catalogue"],
            name=options["name"],
            summary=options["summary"],
            category=options["category"],
            price_tier=options["price_tier"],
            price_decade=options["price_decade"],
            split=options["split"],
            gains=options["gains"],
            opening_bids=options["opening_bids"],
            buyers=options["buyers_n"],
            products=options["products_m"],
            turns=options["turns"],
            stock=options["stock"],
            cost=options["cost"],
            values=options["values"],
            rho=options["rho"],
            unit=options["unit"],
            opener=Role(options["opener"]) if options["opener"] else None,
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
            "values": priors.format_spec(recipe.value_spec),
            "cost": priors.format_spec(recipe.cost_spec),
        }

    def describe(self, document: Any) -> str:
        return f"Market {document['slug']!r} is there: {document['family']}, {document['mechanism']}."
