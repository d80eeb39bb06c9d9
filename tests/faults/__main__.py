"""`python -m tests.faults`: the table of what was lost under every fault. Exit status 1 where anything was.

With `--json` standard output holds the rows as JSON and nothing else.
"""

import argparse
import json
import os
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.faults.clerk import Clerk
from tests.faults.injuries import FAULTS, DidNotBite, Fault, hanging_model, shift_clock
from tests.faults.players import Playing
from tests.faults.worlds import World, own_mounts, settle, world
from tests.lab import ROOT
from tests.postgres import CannotRun

TOPOLOGIES = ("embedded", "servers")
COLUMNS = (
    "fault",
    "topology",
    "rooms",
    "moves",
    "lost",
    "doubled",
    "unconverged",
    "turns_missing",
    "replay_mismatches",
)
UNDER_WAY = 0.6
"""Moves acknowledged a room, on average, before the fault comes."""
UNDER_WAY_S = 600.0
LONGEST_S = 3_600.0
AFTERMATH_S = 75.0
"""So long the agents' turns of unfinished rooms may take after the last player has gone."""


@dataclass
class Row:
    """What came of one fault."""

    fault: str
    topology: str
    rooms: int
    found: Mapping[str, Any] = field(default_factory=dict)
    told: str = ""
    players: Mapping[str, Any] = field(default_factory=dict)
    seconds: float = 0.0
    failed: str = ""
    """Why it could not be measured."""

    @property
    def ok(self) -> bool:
        return not self.failed and bool(self.found.get("ok"))

    def document(self) -> dict[str, Any]:
        """As `--json` prints it."""
        counts = {name: self.found.get(name, 0) for name in COLUMNS[3:]}
        return {"fault": self.fault, "topology": self.topology, "rooms": self.rooms} | counts | {"ok": self.ok}


def say(sentence: str) -> None:
    """To whoever watches: standard output is for the table."""
    sys.stderr.write(sentence + "\n")
    sys.stderr.flush()


def put_to_the_test(site: World, clerk: Clerk, fault: Fault, *, rooms: int, seed: int) -> Row:
    """Open the rooms, let people play, break the site, wait for the end, and look at what there is."""
    row = Row(fault.name, site.topology, rooms)
    began = time.monotonic()
    settle(site)
    hanging = -(-rooms * fault.hanging_rooms // 100)
    seats = clerk.ask("open", rooms=rooms, seed=seed, hanging=hanging)
    players = Playing(site, seats, seed=seed, pace_s=fault.pace_s, patience_s=LONGEST_S)
    try:
        under_way = players.wait(
            site, lambda told: told.get("acknowledged", 0) >= UNDER_WAY * rooms, seconds=UNDER_WAY_S
        )
        if not under_way:
            raise DidNotBite(f"the game did not get under way: {players.told}")
        row.told = fault.injure(site, clerk)
        said = dict(players.told)
        players.wait(site, lambda told: False, seconds=LONGEST_S)
        row.players = players.told
        if players.process.poll() is None or not players.ledger.exists():
            raise DidNotBite("the players did not end")
        if said.get("over", 0) > 0.9 * said["seats"]:
            raise DidNotBite("the games were over before the fault was")
        settle(site)
        public_ids = sorted({seat["room"] for seat in seats})
        deadline = time.monotonic() + AFTERMATH_S
        while clerk.ask("open_turns", rooms=public_ids) and time.monotonic() < deadline:
            site.tend()
            time.sleep(0.5)
        row.found = clerk.ask("judge", ledger=str(players.ledger))
    except (DidNotBite, RuntimeError, OSError) as error:
        row.failed = str(error)
        say(site.log())
    finally:
        if players.process.poll() is None:
            players.process.kill()
        players.process.wait()
        shift_clock(site.folder, 0.0)
    row.seconds = time.monotonic() - began
    return row


def run(topology: str, faults: Sequence[Fault], *, rooms: int, seed: int, small_disk: bool) -> list[Row]:
    """Every fault on one site, one after the other. Without a disk of its own there is none that could be filled."""
    rows = []
    with hanging_model() as model:
        clock = Path(__file__).parent / "shifted_clock"
        more = dict(model.variables()) | {"PYTHONPATH": os.pathsep.join((str(clock), str(ROOT)))}
        with world(topology, more=more, small_disk=small_disk) as site:
            clerk = Clerk(site.environment)
            try:
                clerk.ask("markets")
                for number, fault in enumerate(faults):
                    row = put_to_the_test(site, clerk, fault, rooms=rooms, seed=seed * 100 + number)
                    rows.append(row)
                    tell(row)
            finally:
                clerk.close()
    return rows


def tell(row: Row) -> None:
    """What came of a fault, to whoever watches."""
    players = ", ".join(f"{name} {count}" for name, count in row.players.items())
    say(f"{row.topology} {row.fault}: {'ok' if row.ok else 'NOT OK'} in {row.seconds:.0f} s. {row.told}. {row.failed}")
    found = {name: row.found.get(name) for name in ("acknowledged", "defaults", "expired", "unfinished")}
    say(f"  {players}; {found}")
    for note in list(row.found.get("notes", ()))[:12]:
        say(f"  {note}")


def table(rows: Sequence[Row]) -> str:
    """For people."""
    lines = [f"{'fault':<20}{'topology':<10}" + "".join(f"{name:>19}" for name in COLUMNS[2:]) + "  ok"]
    for row in rows:
        document = row.document()
        figures = "".join(f"{document[name]:>19,}" for name in COLUMNS[2:])
        lines.append(f"{row.fault:<20}{row.topology:<10}{figures}  {'yes' if row.ok else 'NO'}")
        if row.failed:
            lines.append(f"  {row.failed}")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Break what was asked for and print the table."""
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description=__doc__)
    parser.add_argument("--rooms", type=int, default=200)
    parser.add_argument("--fault", choices=[fault.name for fault in FAULTS], action="append")
    parser.add_argument("--topology", choices=TOPOLOGIES)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args(arguments)
    if options.rooms < 1:
        parser.error("--rooms must be at least 1")
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # So that what was started is ended.
    mounts = own_mounts()
    rows: list[Row] = []
    for topology in TOPOLOGIES if options.topology is None else (options.topology,):
        faults = [
            fault
            for fault in FAULTS
            if topology in fault.topologies and (not options.fault or fault.name in options.fault)
        ]
        if not faults:
            continue
        try:
            rows += run(topology, faults, rooms=options.rooms, seed=options.seed, small_disk=mounts)
        except CannotRun as reason:
            say(f"{topology} skipped: {reason}")
            rows += [Row(fault.name, topology, 0, failed=str(reason)) for fault in faults]
    sys.stdout.write((json.dumps([row.document() for row in rows], indent=1) if options.json else table(rows)) + "\n")
    return 0 if rows and all(row.ok for row in rows) else 1


if __name__ == "__main__":
    sys.exit(main())
