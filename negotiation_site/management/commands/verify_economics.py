"""Measures the economics anew and compares them with the figures they must have."""

import os
from typing import Any

from django.conf import settings
from django.core.management import CommandError, CommandParser

from negotiation_site.contract import ContractCommand, positive, table
from negotiation_site.economics import proof
from negotiation_site.economics.rows import Row, Scale


def _processors() -> int:
    """Processors that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


class Command(ContractCommand):
    help = (
        "Prove the economics: theory, ladders, catalogues, public data, identities. Needs no database. Exit status 1 "
        "when a figure does not come out; rows whose public data (PARLEY_DATA) is absent are named and left out."
    )

    def arguments(self, parser: CommandParser) -> None:
        parser.add_argument(
            "--episodes", type=positive, default=20_000, help="games behind a row of the ladder table (20000)"
        )
        parser.add_argument("--workers", type=positive, help="processes; as many as there are processors")
        parser.add_argument("--part", action="append", choices=proof.PART_NAMES, help="only this part; may be repeated")

    def run(self, **options: Any) -> list[dict[str, Any]]:
        found = proof.prove(
            scale=Scale(options["episodes"]),
            workers=options["workers"] or _processors(),
            data=settings.DATA,
            parts=tuple(options["part"] or proof.PART_NAMES),
        )
        for name in found.left_out:
            self.note(f"Left out, as its data is not in {settings.DATA}: {name}")
        self._failed[:] = found.failed
        return [row.told() for row in found.rows]

    def describe(self, document: Any) -> str:
        shown = [{**row, "ok": "yes" if row["ok"] else "NO"} for row in document]
        lines = table(shown, ("ok", "reference", "measured", "tolerance", "name"))
        return f"{lines}\n{sum(row['ok'] for row in document)} of {len(document)} figures came out."

    def handle(self, *args: Any, **options: Any) -> None:
        self._failed: list[Row] = []
        super().handle(*args, **options)
        if self._failed:
            names = "; ".join(row.name for row in self._failed[:5])
            more = "" if len(self._failed) <= 5 else " and others"
            raise CommandError(f"{len(self._failed)} figures did not come out: {names}{more}.", returncode=1)
