"""Makes a finished run's model an agent."""

from typing import Any

from django.core.management import CommandParser

from negotiation_site.contract import ContractCommand
from training import services


class Command(ContractCommand):
    help = "Publish a finished run as an agent; its slug works in simulate and in rooms."

    def arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", help="name of the run")

    def run(self, **options: Any) -> dict[str, Any]:
        run = services.known_run(options["name"])
        slug = services.publish(run)
        return {"run": run.name, "agents": [slug, f"{slug}-sampled"]}

    def describe(self, document: Any) -> str:
        return f"Agents: {', '.join(document['agents'])}."
