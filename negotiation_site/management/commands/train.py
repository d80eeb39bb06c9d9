"""Trains an agent: imitation, then reinforcement in a market's games.

Without --foreground the run is written down; the clock of the running site hands it to the trainer.
"""

import os
from typing import Any

from django.core.management import CommandParser

from markets.setup import SetupError, check_slug
from negotiation_site.contract import ContractCommand, known_market
from negotiation_site.stack import full_stack_missing
from training import services
from training.presets import PRESETS


class Command(ContractCommand):
    help = "Train an agent in a market, as a task of the gpu worker or, with --foreground, here."

    def arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--preset", default="tiny", choices=PRESETS)
        parser.add_argument("--market", required=True)
        parser.add_argument("--name", required=True, help="name of the run, and of the agent once published")
        parser.add_argument("--set", action="append", default=[], nargs="+", metavar="KEY=VALUE")
        parser.add_argument("--foreground", action="store_true", help="run here and wait for the end")
        parser.add_argument("--resume", action="store_true", help="go on with a failed or cancelled run")

    def run(self, **options: Any) -> dict[str, Any]:
        missing = full_stack_missing()
        if missing:
            raise SetupError(f"Training needs the full stack ({', '.join(missing)} missing): run `make install`.")
        check_slug(options["name"], what="A run's name")
        if options["resume"]:
            run = services.known_run(options["name"])
            services.resume(run)
        else:
            run = services.create_run(
                name=options["name"],
                preset_name=options["preset"],
                market=known_market(options["market"]),
                overrides=tuple(text for group in options["set"] for text in group),
            )
        if options["foreground"]:
            owner = f"foreground:{os.getpid()}"
            if not services.claim(run=run, owner=owner):
                raise SetupError("Another run holds the device; wait for it, or cancel it.")
            services.execute(run=run, owner=owner, show=not options["json"])
        return services.report(services.known_run(run.name))

    def describe(self, document: Any) -> str:
        return f"Run {document['name']!r} is {document['status']}. {document['error']}".strip()
