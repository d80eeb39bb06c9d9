"""Plays an agent through a frozen suite and prints what it came to, beside reference agents.

Needs no market and no table: suites draw from the project's own starter catalogue.
"""

import time
from typing import Any

import msgspec
from django.core.management import CommandParser

from agents import registry
from markets.engine.protocol import Role
from negotiation_site.contract import ContractCommand, table
from negotiation_site.starter import catalogue
from training.suites import cards, games, measure
from training.suites.cards import Card, Reference


class Command(ContractCommand):
    help = "Play an agent through a benchmark suite. The same agent gives the same figures on any machine."

    def arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--suite", required=True, choices=cards.NAMES)
        parser.add_argument("--agent", required=True)
        parser.add_argument("--role", choices=[role.value for role in Role], help="instead of the suite's own")
        parser.add_argument(
            "--freeze",
            nargs="+",
            metavar="AGENT",
            help="for a new version of the suite: measure these and write its card",
        )

    def run(self, **options: Any) -> dict[str, Any]:
        card = cards.card(options["suite"])
        spec = registry.get(options["agent"])
        if options["freeze"]:
            card = freeze(card, options["freeze"])
        if options["role"]:
            roles: tuple[Role, ...] = (Role(options["role"]),)
            games.check_plays(spec, roles[0], card)
        else:
            roles = games.default_roles(card, spec)
        started = time.perf_counter()
        tally = play(card, games.listings(card, catalogue.facts()), spec.slug, roles)
        found = {slug: registry.get(slug).version for slug in (*card.sellers, *card.buyers)}
        changed = sorted(slug for slug, version in (card.sellers | card.buyers).items() if found[slug] != version)
        if changed:
            self.note(f"Opponents have changed since the suite was frozen, so references do not compare: {changed}.")
        return {
            "suite": card.name,
            "version": card.version,
            "sha256": card.sha256,
            "agent": spec.slug,
            "agent_version": spec.version,
            **measure.report(card, tally.lines),
            "references": [msgspec.to_builtins(reference) for reference in card.references if reference.role in roles],
            "optimum": 1.0,
            "comparable": not changed,
            "log_sha256": tally.log_sha256,
            "licence": card.licence,
            "seconds": round(time.perf_counter() - started, 3),
        }

    def describe(self, document: Any) -> str:
        own = {"agent": document["agent"], "role": document["role"], **document}
        rows = [{column: _cell(row.get(column)) for column in COLUMNS} for row in (own, *document["references"])]
        return (
            f"{document['suite']} version {document['version']}: {document['episodes']:,} negotiations, "
            f"{document['violations']} violations in {document['messages']:,} messages. The first row is "
            f"{document['agent']}, the others are references; 1 is the optimum.\n{table(rows, COLUMNS)}"
        )


COLUMNS = (
    "agent", "role", "share", "share_low", "share_high", "deal_rate", "allocation_quality", "allocation_quality_rescaled",
)  # fmt: skip


MEASURED = tuple(name for name in Reference.__struct_fields__ if name not in ("agent", "version", "role"))
"""What a reference keeps of a report."""


def play(card: Card, drawn: tuple[games.Listing, ...], slug: str, roles: tuple[Role, ...]) -> measure.Tally:
    """An agent through the suite, in each role."""
    tally = measure.Tally()
    for role in roles:
        tally.add(games.play_suite(card, drawn, spec=registry.get(slug), role=role))
    return tally


def freeze(card: Card, slugs: list[str]) -> Card:
    """The card with the hash of its scenarios, the opponents' versions and the references' figures, written down."""
    drawn = games.draw(card, catalogue.facts())
    references = []
    for slug in slugs:
        spec = registry.get(slug)
        for role in games.default_roles(card, spec):
            figures = measure.report(card, play(card, drawn, slug, (role,)).lines)
            references.append(
                Reference(
                    agent=slug,
                    version=spec.version,
                    role=role,
                    **{name: figures.get(name) for name in MEASURED},
                )
            )
    frozen = msgspec.structs.replace(
        card,
        sellers={slug: registry.get(slug).version for slug in card.sellers},
        buyers={slug: registry.get(slug).version for slug in card.buyers},
        sha256=cards.scenarios_sha256(listing.scenario for listing in drawn),
        references=tuple(references),
    )
    cards.write(frozen)
    return frozen


def _cell(value: Any) -> Any:
    if value is None:
        return "-"
    return f"{value:.3f}" if isinstance(value, float) else value
