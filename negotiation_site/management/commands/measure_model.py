"""Plays a language model's agent against a scripted one and says how often its answers could be used, and at what cost."""

import shlex
from typing import Any

from django.core.management import CommandParser

from agents import measuring, model_log, registry
from agents.calls import Call
from agents.simulation import SeatError
from markets import services
from markets.engine.protocol import Role
from markets.engine.scenarios import decode_recipe
from markets.setup import SetupError
from negotiation_site.contract import ContractCommand, known_market, positive

SEED = 1


class Command(ContractCommand):
    help = "Measure the answers of an agent that asks a language model. --store keeps the calls for its page."

    def arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--agent", required=True)
        parser.add_argument("--market", required=True)
        parser.add_argument("--opponent", default="linear")
        parser.add_argument("--role", choices=[role.value for role in Role], help="only this seat")
        parser.add_argument("--games", type=positive, default=10)
        parser.add_argument("--seed", type=int, default=SEED)
        parser.add_argument(
            "--together",
            type=positive,
            default=1,
            metavar="N",
            help="games at a time; the embedded model writes 3 answers",
        )
        parser.add_argument(
            "--store", action="store_true", help="keep every call; staff read them, the agent's page counts"
        )

    def run(self, **options: Any) -> dict[str, Any]:
        market = known_market(options["market"])
        spec = registry.get(options["agent"])
        if not spec.asks_models:
            raise SetupError(f"{spec.slug!r} asks no language model.")
        made: list[Call] = []
        kept: list[tuple[Role, Call]] = []
        roles = [Role(options["role"])] if options["role"] else list(Role)
        try:
            for role, calls in measuring.play(
                spec,
                registry.get(options["opponent"]),
                recipe=decode_recipe(market.recipe),
                pool=services.market_pool(market),
                games=options["games"],
                seed=options["seed"],
                roles=roles,
                together=options["together"],
            ):
                made += calls
                kept += [(role, call) for call in calls]
                if not any(call.reply for call in made):
                    told = made[-1].detail if made else "It asked nothing."
                    raise SetupError(f"No model answers for {spec.slug!r}: {told}")
        except SeatError as error:
            raise SetupError(str(error)) from error
        if options["store"]:
            model_log.keep_measured(spec, kept)
        return {
            "agent": spec.slug,
            "version": spec.version,
            "market": market.slug,
            "opponent": options["opponent"],
            "games": options["games"],
            "seed": options["seed"],
            **measuring.figures(made),
            "stored": options["store"],
            "command": _command(options),
        }

    def describe(self, document: Any) -> str:
        """The rate with its interval, and what it took."""
        rate = "no answer" if document["valid_rate"] is None else f"{document['valid_rate']:.1%}"
        return "\n".join(
            (
                f"{document['agent']}, version {document['version']}: {rate} of {document['answered']} answers used "
                f"({document['valid_rate_low'] or 0:.1%} to {document['valid_rate_high'] or 0:.1%})",
                "  " + ", ".join(f"{name} {number}" for name, number in document["by_outcome"].items()),
                f"  tokens {document['input_tokens']} read, {document['output_tokens']} written; "
                f"{document['total_ms']['p50']} ms, 19 of 20 within {document['total_ms']['p95']} ms",
            )
        )


def _command(options: dict[str, Any]) -> str:
    """What measures the same again."""
    words = ["manage.py", "measure_model"]
    for name in ("agent", "market", "opponent", "role", "games", "seed"):
        if options[name] is not None:
            words += [f"--{name}", str(options[name])]
    return shlex.join([*words, "--json"])
