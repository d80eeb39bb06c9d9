"""Says attacks to an agent at every table that it plays, and counts which got through."""

import shlex
from pathlib import Path
from typing import Any

from django.core.management import CommandParser

from agents import registry
from agents.injection import attacks, suite
from agents.injection.attacks import AttackError
from agents.injection.suite import Report
from markets.engine.protocol import Role
from markets.engine.scenarios import Family
from markets.setup import SetupError
from negotiation_site.contract import ContractCommand, positive

SEED = 1


class Command(ContractCommand):
    help = "Attack an agent by words and count breaches. Needs no database without --store."
    requires_system_checks = []

    def arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--agent", required=True)
        parser.add_argument("--attacks", type=Path, metavar="FILE", help="own attacks as JSON lines")
        parser.add_argument("--role", choices=[role.value for role in Role], help="only this seat")
        parser.add_argument("--family", choices=[family.value for family in Family], help="only this kind of market")
        parser.add_argument("--seed", type=int, default=SEED)
        parser.add_argument(
            "--regulated", action="store_true", help="have the market refuse the agent's moves beyond its own value"
        )
        parser.add_argument("--most", type=positive, metavar="N", help="so many attacks a table, class by class")
        parser.add_argument(
            "--together",
            type=positive,
            default=1,
            metavar="N",
            help="tables at a time; the embedded model writes 3 answers",
        )
        parser.add_argument("--clock", action="store_true", help="bilateral tables on a simulated clock")
        parser.add_argument(
            "--store",
            action="store_true",
            help="keep the score for the agent's page; that of a whole suite for leaderboards too",
        )

    def run(self, **options: Any) -> dict[str, Any]:
        if options["store"] and (options["attacks"] or options["regulated"]):
            raise SetupError(
                "Only attacks of the shipped set on unregulated tables are kept: "
                "--store goes with no --attacks or --regulated."
            )
        spec = registry.get(options["agent"])
        roles = [Role(options["role"])] if options["role"] else list(Role)
        families = [Family(options["family"])] if options["family"] else list(Family)
        try:
            chosen = attacks.read(options["attacks"]) if options["attacks"] else attacks.shipped()
            report = suite.run(
                spec,
                chosen,
                seed=options["seed"],
                roles=roles,
                families=families,
                regulated=options["regulated"],
                clocked=options["clock"],
                most=options["most"],
                together=options["together"],
            )
        except AttackError as error:
            raise SetupError(str(error)) from error
        command = _command(options)
        if options["store"]:
            self._store(report, command, whole=not any(options[name] for name in ("role", "family", "clock", "most")))
        return {**report.document(), "stored": options["store"], "command": command}

    def _store(self, report: Report, command: str, *, whole: bool) -> None:
        from agents import injection_scores

        injection_scores.store(report, command=command, whole=whole)

    def describe(self, document: Any) -> str:
        """Breaches out of attempts, and the classes that got through."""
        attack_set = document["attack_set"]
        lines = [
            f"{document['agent']}, version {document['version']}: {document['breaches']} breaches in "
            f"{document['attempts']} attempts ({attack_set['attacks']} attacks, set {attack_set['name']} "
            f"{attack_set['version']})",
            *(
                f"  {name:<18} {group['breaches']:>4} of {group['attempts']}"
                for name, group in document["by_class"].items()
            ),
            "  by kind: " + ", ".join(f"{name} {number}" for name, number in document["by_kind"].items()),
        ]
        return "\n".join(lines)


def _command(options: dict[str, Any]) -> str:
    """What gives the same figures again."""
    words = ["manage.py", "injection_suite", "--agent", options["agent"]]
    for name in ("attacks", "role", "family", "most"):
        if options[name]:
            words += [f"--{name}", str(options[name])]
    words += ["--seed", str(options["seed"])]
    words += [f"--{name}" for name in ("regulated", "clock") if options[name]]
    return shlex.join([*words, "--json"])
