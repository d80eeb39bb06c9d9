"""Finds the best sequence of offers for a market that is settled before the first word and reads no reply."""

from typing import Any

from django.core.management import CommandParser

from agents.scripted import fixed_sequence
from markets import services
from markets.engine.scenarios import decode_recipe
from markets.setup import SetupError
from negotiation_site.contract import ContractCommand, known_market, positive, table


class Command(ContractCommand):
    help = (
        "Find the best fixed sequence of offers for a market on its training scenarios: the baseline "
        "that whatever reads replies must beat. The same seed finds the same sequence."
    )

    def arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--market", required=True)
        parser.add_argument("--scenarios", type=positive, default=fixed_sequence.FROZEN_SCENARIOS)
        parser.add_argument("--seed", type=int, default=fixed_sequence.FROZEN_SEED)

    def run(self, **options: Any) -> dict[str, Any]:
        market = known_market(options["market"])
        recipe, pool = decode_recipe(market.recipe), services.market_pool(market)
        try:
            found = fixed_sequence.find_for(recipe, pool, scenarios=options["scenarios"], seed=options["seed"])
        except fixed_sequence.NothingToTrainOn as error:
            raise SetupError(str(error)) from error
        return {
            "market": market.slug,
            "scenarios": options["scenarios"],
            "seed": options["seed"],
            "share": found.share,
            "steps": [
                {"buyer": step.buyer + 1, "product": step.product + 1, "price_share": step.price}
                for step in found.steps
            ],
        }

    def describe(self, document: Any) -> str:
        earned = f"Earns {document['share']:.4f} of the first best on {document['scenarios']:,} training scenarios."
        return f"{earned}\n{table(document['steps'], ('buyer', 'product', 'price_share'))}"
