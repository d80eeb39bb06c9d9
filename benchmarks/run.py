"""Compares the engine with its peers: interleaved rounds, CPU time, medians of ratios within a round.

`python -m benchmarks.run --rounds 5 --json out.json`. Each peer is installed from the package index
into an environment of its own under `PARLEY_VAR/benchmarks` and played by its own interpreter; one
that cannot be installed or run is reported as `skipped: reason`. Within a round our side and the
peer's run one after the other, so that what else the machine does touches both; a ratio is the
peer's cost of a message divided by ours, above 1 where we are faster. Nothing is asserted: gates and
goals stand beside the figures, and the exit status is 0 whenever the measurement went through.
"""

import argparse
import json
import os
import platform
import shutil
import statistics
import subprocess
import sys
import venv
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent


@dataclass(frozen=True)
class Peer:
    """A package to compare with."""

    name: str
    requirement: str
    script: str
    """File in `peers/`."""


OPEN_SPIEL = Peer("OpenSpiel", "open_spiel==2.0.2", "open_spiel_games.py")
NEGMAS = Peer("negmas", "negmas==0.16.0", "negmas_sao.py")
TEXT_ARENA = Peer("TextArena", "textarena==0.7.4", "textarena_negotiation.py")
VERIFIERS = Peer("verifiers", "verifiers==0.1.14", "verifiers_multiturn.py")


@dataclass(frozen=True)
class Comparison:
    """One of our cases against one case of a peer."""

    name: str
    ours: str
    peer: Peer
    case: str
    gate: float
    goal: float


@dataclass(frozen=True)
class Scaling:
    """One of our cases against another: what a larger market costs per message."""

    name: str
    ours: str
    base: str
    gate: float
    goal: float


@dataclass(frozen=True)
class Absolute:
    """One of our cases in microseconds a message."""

    name: str
    ours: str
    gate: float
    goal: float


COMPARISONS = (
    Comparison("typed bilateral / OpenSpiel bargaining", "typed-bilateral", OPEN_SPIEL, "bargaining", 1.5, 8),
    Comparison("typed bilateral / OpenSpiel negotiation", "typed-bilateral", OPEN_SPIEL, "negotiation", 0.5, 2),
    Comparison("typed bilateral / negmas", "typed-bilateral", NEGMAS, "aspiration", 50, 200),
    Comparison("text bilateral / TextArena", "text-bilateral", TEXT_ARENA, "simple-negotiation", 3, 8),
    Comparison("rollout loop / verifiers", "learner-message", VERIFIERS, "multi-turn", 5, 10),
)
SCALINGS = (
    Scaling("8 buyers x 32 offers / bilateral", "8-buyers-32-offers", "typed-bilateral", 3, 1.5),
    Scaling("10 products x 20 buyers / bilateral", "10-products-20-buyers", "typed-bilateral", 3, 1.5),
)
ABSOLUTES = (Absolute("environment per learner message, us", "learner-message", 50, 20),)


class Unmeasured(Exception):
    """A case that could not be played; the message is the reason."""


@dataclass
class Row:
    """One line of the table."""

    name: str
    unit: str
    gate: float
    goal: float
    per_round: list[float] = field(default_factory=list)
    ours_us: list[float] = field(default_factory=list)
    theirs_us: list[float] = field(default_factory=list)
    skipped: str | None = None

    def summary(self) -> dict[str, Any]:
        """Medians, and whether gate and goal are met."""
        if self.skipped is not None:
            return {"name": self.name, "skipped": self.skipped, "gate": self.gate, "goal": self.goal}
        middle = statistics.median(self.per_round)
        better = (lambda limit: middle >= limit) if self.unit == "times faster" else (lambda limit: middle <= limit)
        return {
            "name": self.name,
            "unit": self.unit,
            "median": round(middle, 3),
            "low": round(min(self.per_round), 3),
            "high": round(max(self.per_round), 3),
            "ours_us": round(statistics.median(self.ours_us), 2),
            "theirs_us": round(statistics.median(self.theirs_us), 2) if self.theirs_us else None,
            "gate": self.gate,
            "gate_met": better(self.gate),
            "goal": self.goal,
            "goal_met": better(self.goal),
        }


def prepare(peer: Peer, folder: Path) -> str:
    """The interpreter of an environment that holds `peer`. Raises `Unmeasured`."""
    home = folder / peer.requirement.replace("==", "-")
    interpreter = home / "bin" / "python"
    done = home / "installed"
    if done.exists():
        return str(interpreter)
    shutil.rmtree(home, ignore_errors=True)
    print(f"installing {peer.requirement} …", file=sys.stderr)
    venv.create(home, with_pip=True)
    command = [str(interpreter), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", peer.requirement]
    result = subprocess.run(command, capture_output=True, text=True, check=False)
    if result.returncode:
        lines = result.stderr.strip().splitlines()
        raise Unmeasured(lines[-1] if lines else f"pip ended with status {result.returncode}")
    done.touch()
    return str(interpreter)


def measure(command: Sequence[str]) -> float:
    """CPU microseconds a message, as the command tells in its last line. Raises `Unmeasured`."""
    surroundings = {**os.environ, "OMP_NUM_THREADS": "1"}
    result = subprocess.run(command, capture_output=True, text=True, check=False, env=surroundings, cwd=HERE.parent)
    if result.returncode:
        lines = result.stderr.strip().splitlines()
        raise Unmeasured(lines[-1] if lines else f"ended with status {result.returncode}")
    told = json.loads(result.stdout.strip().splitlines()[-1])
    return float(told["cpu_s"]) / float(told["messages"]) * 1e6


def ours(case: str, seconds: float) -> float:
    """CPU microseconds a message of one of our cases."""
    return measure([sys.executable, "-m", "benchmarks.ours", "--case", case, "--seconds", str(seconds)])


def compare(*, rounds: int, seconds: float, folder: Path) -> list[Row]:
    """All rows, measured in interleaved rounds."""
    rows = {c.name: Row(c.name, "times faster", c.gate, c.goal) for c in COMPARISONS}
    rows |= {s.name: Row(s.name, "times the cost", s.gate, s.goal) for s in SCALINGS}
    rows |= {a.name: Row(a.name, "microseconds", a.gate, a.goal) for a in ABSOLUTES}
    interpreters: dict[str, str] = {}
    for comparison in COMPARISONS:
        try:
            interpreters[comparison.peer.name] = prepare(comparison.peer, folder)
        except Unmeasured as reason:
            rows[comparison.name].skipped = str(reason)
    for number in range(1, rounds + 1):
        print(f"round {number} of {rounds}", file=sys.stderr)
        for comparison in COMPARISONS:
            row = rows[comparison.name]
            if row.skipped is not None:
                continue
            script = str(HERE / "peers" / comparison.peer.script)
            command = [interpreters[comparison.peer.name], script, "--case", comparison.case]
            try:
                own = ours(comparison.ours, seconds)
                other = measure([*command, "--seconds", str(seconds)])
            except Unmeasured as reason:
                row.skipped = str(reason)
                continue
            row.ours_us.append(own)
            row.theirs_us.append(other)
            row.per_round.append(other / own)
        for scaling in SCALINGS:
            row = rows[scaling.name]
            base, own = ours(scaling.base, seconds), ours(scaling.ours, seconds)
            row.ours_us.append(own)
            row.theirs_us.append(base)
            row.per_round.append(own / base)
        for absolute in ABSOLUTES:
            row = rows[absolute.name]
            own = ours(absolute.ours, seconds)
            row.ours_us.append(own)
            row.per_round.append(own)
    return list(rows.values())


def machine() -> dict[str, Any]:
    """What the figures were measured on."""
    return {
        "date": datetime.now(UTC).date().isoformat(),
        "python": platform.python_version(),
        "system": platform.system(),
        "machine": platform.machine(),
        "cores": os.cpu_count(),
    }


def table(summaries: Sequence[dict[str, Any]]) -> str:
    """The rows as Markdown."""
    lines = ["| what | median | range | ours, us | theirs, us | gate | goal |", "|---|---|---|---|---|---|---|"]
    for row in summaries:
        if "skipped" in row:
            lines.append(f"| {row['name']} | skipped: {row['skipped']} | | | | {row['gate']:g} | {row['goal']:g} |")
            continue
        theirs = "" if row["theirs_us"] is None else f"{row['theirs_us']:.1f}"
        marks = " ".join(f"| {row[key]:g} {'met' if row[f'{key}_met'] else 'not met'}" for key in ("gate", "goal"))
        spread = f"{row['low']:.2f} to {row['high']:.2f}"
        lines.append(
            f"| {row['name']} | {row['median']:.2f} {row['unit']} | {spread} | {row['ours_us']:.1f} | {theirs} {marks} |"
        )
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print the table, write the JSON."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.run", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=1.0, help="CPU seconds per side and round")
    parser.add_argument("--json", type=Path, help="file to write the figures to")
    options = parser.parse_args(arguments)
    if options.rounds < 1:
        parser.error("The number of rounds must be at least 1.")
    if options.seconds <= 0:
        parser.error("The seconds must be above 0.")
    if options.json is not None and not options.json.parent.is_dir():
        parser.error(f"There is no folder {str(options.json.parent)!r} to write to.")
    folder = Path(os.environ.get("PARLEY_VAR", HERE.parent / "var")) / "benchmarks"
    folder.mkdir(parents=True, exist_ok=True)
    rows = compare(rounds=options.rounds, seconds=options.seconds, folder=folder)
    summaries = [row.summary() for row in rows]
    told = {
        **machine(),
        "rounds": options.rounds,
        "seconds": options.seconds,
        "peers": {comparison.peer.name: comparison.peer.requirement for comparison in COMPARISONS},
        "rows": summaries,
        "per_round": {row.name: asdict(row) for row in rows},
    }
    if options.json is not None:
        options.json.write_text(json.dumps(told, indent=1) + "\n")
    print(table(summaries))
    return 0


if __name__ == "__main__":
    sys.exit(main())
