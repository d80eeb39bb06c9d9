"""Prints how the agents of a finished tournament negotiated, and what it had to do with how they fared."""

from typing import Any

from django.core.management import CommandParser

from negotiation_site.contract import ContractCommand, table
from training.tournaments import results, services


class Command(ContractCommand):
    help = "Print openings, concessions, patience and price discrimination of a tournament against its outcomes."

    def arguments(self, parser: CommandParser) -> None:
        parser.add_argument("name", help="of a finished tournament")

    def run(self, **options: Any) -> dict[str, Any]:
        return results.findings_document(services.known_tournament(options["name"]))

    def describe(self, document: Any) -> str:
        columns = (
            "agent", "role", "games", "opening_ratio", "concession_rate", "patience", "distinct_offers", "price_slope",
            "share", "deal_rate", "share_spread",
        )  # fmt: skip
        rows = [{column: _cell(row[column]) for column in columns} for row in document["agents"]]
        return "\n".join(
            [
                table(rows, columns),
                table([_association(row) for row in document["associations"]], _ASSOCIATION),
                *(_sentence(row) for row in document["conceding"]),
            ]
        )


_ASSOCIATION = ("role", "habit", "agents", "with_share", "with_deal_rate", "seats_with_share", "seats_with_deal")


def _association(row: dict[str, Any]) -> dict[str, Any]:
    def with_ends(name: str) -> str:
        low, high = row[f"{name}_low"], row[f"{name}_high"]
        ends = "" if low is None else f" ({low:.2f} to {high:.2f})"
        return "-" if row[name] is None else f"{row[name]:.2f}{ends}"

    return {name: row[name] if name in ("role", "habit", "agents") else with_ends(name) for name in _ASSOCIATION}


def _cell(value: Any) -> Any:
    if value is None:
        return "-"
    return f"{value:.3f}" if isinstance(value, float) else value


def _sentence(row: dict[str, Any]) -> str:
    if row["holds"] is None:
        return f"Among {row['role']}s too few made steps to say whether conceding goes with faring worst."
    verdict = "true" if row["holds"] else "false"
    share, deals = row["lowest_share_agent"], row["lowest_deal_rate_agent"]
    return (
        f"Conceding {row['role']}s show the lowest share and completion: {verdict}. {row['most_conceding']} concedes "
        f"most; {'all have the same share' if share is None else f'the lowest share is that of {share}'}, "
        f"{'all have the same deal rate' if deals is None else f'the lowest deal rate that of {deals}'}."
    )
