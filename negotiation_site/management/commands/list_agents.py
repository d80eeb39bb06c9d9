"""Lists every agent that can be seated, those that people entered and put up last."""

from typing import Any

from agents import registry
from negotiation_site.contract import ContractCommand, table


class Command(ContractCommand):
    help = "List the agents."

    def run(self, **options: Any) -> list[dict[str, Any]]:
        return [
            {
                "slug": spec.slug,
                "roles": [role.value for role in spec.roles],
                "families": [family.value for family in spec.families],
                "kind": spec.kind.value,
                "version": spec.version,
                "title": spec.title,
                "summary": spec.summary,
            }
            for spec in (*registry.all_specs(), *registry.entered_specs())
        ]

    def describe(self, document: Any) -> str:
        return table(document, ("slug", "roles", "families", "kind"))
