"""Holds a tournament: every ordered pair of agents in the same scenarios, by as many processes as asked for.

The same name with the same parameters takes a tournament up where it stopped, or reports what it came to.
Progress goes to standard error.
"""

import subprocess
import sys
import time
from typing import Any

from django.core.management import CommandError, CommandParser

from agents import registry
from markets.setup import SetupError, check_slug
from negotiation_site.contract import ContractCommand, known_market, positive, table
from training.models import Tournament
from training.tournaments import results, services, tasks, worker
from training.tournaments.services import Cast

NOTE_EVERY_S = 2.0
WAIT_S = 0.1


class Command(ContractCommand):
    help = "Hold a tournament between agents. The same seed gives the same result, whatever the number of workers."

    def arguments(self, parser: CommandParser) -> None:
        parser.add_argument("--name", required=True, help="of the tournament; the same again takes it up")
        parser.add_argument("--agents", help="at least two agents, with commas")
        parser.add_argument("--market")
        parser.add_argument("--scenarios", type=positive, help="negotiations of each ordered pair")
        parser.add_argument("--seed", type=int, default=1)
        parser.add_argument("--workers", type=positive, default=1, help="processes of this command (1)")
        parser.add_argument("--queue", action="store_true", help="leave the games to the workers of the running site")
        parser.add_argument("--cancel", action="store_true", help="stop the tournament of this name")

    def run(self, **options: Any) -> dict[str, Any]:
        check_slug(options["name"], what="A tournament's name")
        if options["cancel"]:
            tournament = services.known_tournament(options["name"])
            services.cancel(tournament)
            return results.document(tournament)
        tournament = self._opened(options)
        if options["queue"]:
            if tournament.status in services.OPEN:
                tasks.announce(tournament)
        elif not results.finished(tournament):
            try:
                self._play(services.cast_of(tournament), workers=options["workers"])
            except KeyboardInterrupt:
                raise CommandError("Stopped. The same command goes on from here.", returncode=130) from None
        return results.document(services.known_tournament(tournament.name))

    def _opened(self, options: dict[str, Any]) -> Tournament:
        missing = [f"--{name}" for name in ("agents", "market", "scenarios") if options[name] is None]
        if missing:
            raise SetupError(f"A tournament needs {', '.join(missing)} as well.")
        market = known_market(options["market"])
        slugs = [slug.strip() for slug in options["agents"].split(",") if slug.strip()]
        tournament, made = services.open_tournament(
            name=options["name"],
            market=market,
            agents=[registry.get(slug) for slug in slugs],
            scenarios=options["scenarios"],
            seed=options["seed"],
        )
        for sentence in () if made else services.changes_since(tournament):
            self.note(f"{tournament.name}: {sentence}")
        if not made and not results.finished(tournament):
            so_far = results.progress(tournament)
            self.note(f"{tournament.name}: taken up at {so_far.done:,} of {so_far.total:,} negotiations")
        return tournament

    def _play(self, cast: Cast, *, workers: int) -> None:
        """Work until the tournament is over, with `workers - 1` processes beside this one."""
        tournament = cast.tournament
        services.release_dead(tournament)
        owner = services.owner_name()
        notes = _Notes(self, tournament)
        with worker.crew(tournament.pk, hands=workers - 1) as crew:
            services.work(cast, owner=owner, after=notes.now_and_then)
            while _open(tournament):
                # The last shares are in other hands. A hand that is gone without finishing is replaced by this one.
                notes.now_and_then()
                time.sleep(WAIT_S)
                if services.release_dead(tournament) or not _at_work(crew):
                    services.work(cast, owner=owner, after=notes.now_and_then)
        notes.last()

    def describe(self, document: Any) -> str:
        head = (
            f"{document['name']}: {document['status']}, {document['episodes']:,} of {document['episodes_total']:,} "
            f"negotiations in {document['market']}. {document['error']}"
        ).strip()
        rows = [
            {
                "place": row["rank"],
                "agent": row["agent"],
                "plays": " and ".join(row["roles"]),
                "share": _with_interval(row, "share", ".3f"),
                "deal rate": _with_interval(row, "deal_rate", ".3f"),
                "Bradley-Terry": _with_interval(row, "bradley_terry", ".0f"),
                "violations": row["violations"],
            }
            for row in document["ranking"]
        ]
        columns = ("place", "agent", "plays", "share", "deal rate", "Bradley-Terry", "violations")
        return f"{head}\n{table(rows, columns)}" if rows else head


class _Notes:
    """Progress on standard error, now and then."""

    def __init__(self, command: Command, tournament: Tournament) -> None:
        self._command, self._tournament = command, tournament
        self._noted = time.monotonic()

    def now_and_then(self) -> None:
        """Say how far it is, unless that was said a moment ago."""
        if time.monotonic() - self._noted >= NOTE_EVERY_S:
            self.last()

    def last(self) -> None:
        """Say how far it is."""
        self._noted = time.monotonic()
        so_far = results.progress(self._tournament)
        self._command.note(
            f"{self._tournament.name}: {so_far.done:,} of {so_far.total:,} negotiations ({so_far.share:.0%})"
        )
        sys.stderr.flush()


def _open(tournament: Tournament) -> bool:
    return Tournament.objects.filter(pk=tournament.pk, status__in=services.OPEN).exists()


def _at_work(crew: list["subprocess.Popen[bytes]"]) -> bool:
    codes = [hand.poll() for hand in crew]  # Asks every one: that is what collects those that died.
    return None in codes


def _with_interval(row: dict[str, Any], name: str, form: str) -> str:
    value, low, high = row[name], row[f"{name}_low"], row[f"{name}_high"]
    if value is None:
        return "-"
    return f"{value:{form}}" if low is None else f"{value:{form}} [{low:{form}}, {high:{form}}]"
