"""How many live rooms a site carries: people at sockets against scripted agents, and against one another.

`python -m benchmarks.rooms --json out.json`. For the embedded default (`manage.py lab`) and for two web processes and two
workers on PostgreSQL and Valkey it opens rooms, lets everybody move every ten seconds, and measures for each number of
rooms: moves a second, how long an own move takes to be acknowledged, to be answered by the agent and to be seen by the
person opposite, CPU and memory by kind of process. It says how many rooms meet DESIGN's gate and what is busiest. Nothing
is asserted: the exit status is 0 whenever the measurement went through. The bots run on the same machine and take their
share of it, which is told.
"""

import argparse
import json
import os
import platform
import signal
import statistics
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil

from tests.faults.clerk import Clerk
from tests.faults.players import Playing
from tests.faults.worlds import World, settle, world
from tests.postgres import CannotRun

TOPOLOGIES = ("embedded", "servers")
EVERY_S = 10.0
"""A move of each person, as the budget has it."""
SEATED_S = 180.0
MOVES_ALONE = 100
OWN_GATE_MS, ANSWER_GATE_MS = 50.0, 500.0
ROOMS_GATE, ROOMS_GOAL = 300, 1_000
MOVE_CPU_GATE_MS, MOVE_CPU_GOAL_MS = 6.0, 3.0


def kind_of(name: str) -> str:
    """`web` for web-1 and web-2, and so on."""
    return name.split("-")[0]


def processes(site: World) -> dict[int, str]:
    """Kind by pid of everything that belongs to the site, children of its processes included."""
    found = {}
    for name, pid in site.pids().items():
        try:
            process = psutil.Process(pid)
            for each in (process, *process.children(recursive=True)):
                found[each.pid] = kind_of(name)
        except psutil.NoSuchProcess:
            continue
    return found


def cpu_seconds(kinds: Mapping[int, str]) -> dict[str, float]:
    """CPU time so far, by kind."""
    spent: dict[str, float] = defaultdict(float)
    for pid, kind in kinds.items():
        try:
            times = psutil.Process(pid).cpu_times()
        except psutil.NoSuchProcess:
            continue
        spent[kind] += times.user + times.system
    return spent


def memory_mb(kinds: Mapping[int, str]) -> dict[str, float]:
    """Resident memory by kind, of all its processes together; shared pages count in each."""
    held: dict[str, float] = defaultdict(float)
    for pid, kind in kinds.items():
        try:
            held[kind] += psutil.Process(pid).memory_info().rss / 2**20
        except psutil.NoSuchProcess:
            continue
    return {kind: round(amount, 1) for kind, amount in held.items()}


def spread_ms(samples: Sequence[float]) -> dict[str, float] | None:
    """p50, p95 and p99 in milliseconds; None where there are too few to tell."""
    if len(samples) < 2:
        return None
    cuts = statistics.quantiles(samples, n=100, method="inclusive")
    return {f"p{share}": round(cuts[share - 1] * 1e3, 1) for share in (50, 95, 99)}


def step(site: World, clerk: Clerk, *, rooms: int, seconds: float, seed: int) -> dict[str, Any]:
    """Measure one number of rooms."""
    settle(site)
    seats = clerk.ask("open", rooms=rooms, seed=seed, load=True)
    stop = site.folder / "stop"
    stop.unlink(missing_ok=True)
    playing = Playing(site, seats, seed=seed, every_s=EVERY_S, stop=str(stop), patience_s=SEATED_S + 60 + seconds)
    try:
        seated = playing.wait(site, lambda told: told.get("drawn", 0) >= len(seats), seconds=SEATED_S)
        if not seated:
            raise RuntimeError(f"not everybody was seated within {SEATED_S:g} s: {playing.told}")
        playing.wait(site, lambda told: False, seconds=EVERY_S)  # Until everybody has found the rhythm.
        kinds = processes(site) | {playing.process.pid: "bots"}
        before, told, began = cpu_seconds(kinds), dict(playing.told), time.monotonic()
        machine = psutil.cpu_times()
        playing.wait(site, lambda told: False, seconds=seconds)
        ended, after, memory = time.monotonic(), cpu_seconds(kinds), memory_mb(kinds)
        busy = psutil.cpu_times()
        later = dict(playing.told)
        stop.touch()
        playing.process.wait(timeout=60)
    finally:
        if playing.process.poll() is None:
            playing.process.kill()
        playing.process.wait()
    ledger = json.loads(playing.ledger.read_text())
    wall = ended - began
    cpu = {kind: after[kind] - before[kind] for kind in sorted(after)}
    used = sum(
        b - a for name, a, b in zip(machine._fields, machine, busy, strict=True) if name not in ("idle", "iowait")
    )
    taken = {
        name: [took for sent, took in ledger[f"{name}_s"] if began <= sent < ended]
        for name in ("own", "agent", "other")
    }
    moves = len(taken["own"])
    errors: Counter[str] = Counter()
    for seat in ledger["seats"]:
        errors.update(seat["troubles"]["errors"])
        errors["refused"] += sum(move["answer"] == "refused" for move in seat["moves"])
        errors["reconnects"] += seat["troubles"]["reconnects"]
    web = cpu.get("web", 0.0)
    return {
        "rooms": rooms,
        "people": len(seats),
        "seconds": round(wall, 1),
        "moves": moves,
        "moves_per_second": round((later["acknowledged"] - told["acknowledged"]) / wall, 2),
        "own_ms": spread_ms(taken["own"]),
        "agent_ms": spread_ms(taken["agent"]),
        "other_ms": spread_ms(taken["other"]),
        "cpu_share": {kind: round(spent / wall, 3) for kind, spent in cpu.items()},
        "memory_mb": memory,
        "web_cpu_ms_per_move": round(web / moves * 1e3, 2) if moves else None,
        "others_cpu_share": round((used - sum(cpu.values())) / wall, 2),
        "errors": {name: count for name, count in errors.items() if count},
        "gate_met": meets(spread_ms(taken["own"]), spread_ms(taken["agent"])),
        "busiest": busiest(cpu, site),
    }


def meets(own: Mapping[str, float] | None, agent: Mapping[str, float] | None) -> bool:
    """Whether the p95 of the own move and of the agent's answer are below the gate's."""
    return own is not None and agent is not None and own["p95"] < OWN_GATE_MS and agent["p95"] < ANSWER_GATE_MS


def busiest(cpu: Mapping[str, float], site: World) -> str:
    """Kind of the site's processes of which one takes the most CPU: what would saturate first, one core each."""
    counts = Counter(kind_of(name) for name in site.pids())
    shares = {kind: spent / counts[kind] for kind, spent in cpu.items() if counts.get(kind)}
    return max(shares, key=shares.__getitem__, default="")


def measure(topology: str, *, rooms: Sequence[int], seconds: float, seed: int) -> dict[str, Any]:
    """One site, every number of rooms."""
    steps = []
    with world(topology, more={"PARLEY_RATE_LIMITS": "off"}, small_disk=False) as site:
        clerk = Clerk(site.environment)
        try:
            clerk.ask("markets")
            alone = clerk.ask("move_cpu", moves=MOVES_ALONE, seed=seed)
            for number, count in enumerate(rooms):
                steps.append(step(site, clerk, rooms=count, seconds=seconds, seed=seed * 100 + number))
                sys.stderr.write(f"{topology}: {line(steps[-1])}\n")
        finally:
            clerk.close()
    carried = max((each["rooms"] for each in steps if each["gate_met"]), default=0)
    cpu = alone["move"]  # With the page of whoever moved, as its web process draws it in one go.
    return {
        "topology": topology,
        "steps": steps,
        "rooms_within_gate": carried,
        "rooms_gate": {"gate": ROOMS_GATE, "goal": ROOMS_GOAL, "met": carried >= ROOMS_GATE, "goal_met": carried >= ROOMS_GOAL},
        "move_cpu_ms": {name: round(spent, 2) for name, spent in alone.items()} | {
            "gate": MOVE_CPU_GATE_MS, "goal": MOVE_CPU_GOAL_MS, "met": cpu <= MOVE_CPU_GATE_MS, "goal_met": cpu <= MOVE_CPU_GOAL_MS,
        },
        "saturates_first": steps[-1]["busiest"] if steps else "",
    }  # fmt: skip


def line(each: Mapping[str, Any]) -> str:
    """One step for people."""

    def spread(name: str) -> str:
        found = each[f"{name}_ms"]
        return "-" if found is None else f"{found['p50']:g}/{found['p95']:g}/{found['p99']:g}"

    shares = ", ".join(f"{kind} {share:.0%}" for kind, share in each["cpu_share"].items())
    return (
        f"{each['rooms']} rooms, {each['moves_per_second']:g} moves/s; p50/p95/p99 in ms: own {spread('own')}, agent "
        f"{spread('agent')}, other {spread('other')}; CPU of a core: {shares}; others {each['others_cpu_share']:.0%}; web "
        f"{each['web_cpu_ms_per_move']} ms a move; gate {'met' if each['gate_met'] else 'not met'}"
    )


def room_counts(text: str) -> list[int]:
    """`50,150,300`."""
    try:
        counts = [int(word) for word in text.split(",")]
    except ValueError:
        counts = []
    if not counts or min(counts) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} names no numbers of rooms: write 300, or 50,150,300")
    return counts


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, tell, write."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.rooms", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rooms", type=room_counts, default=[50, 150, 300], help="numbers of rooms, with commas")
    parser.add_argument("--seconds", type=float, default=40.0, help="of each measurement")
    parser.add_argument("--topology", choices=(*TOPOLOGIES, "both"), default="both")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", type=Path)
    options = parser.parse_args(arguments)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(128 + signal.SIGTERM))  # So that what was started is ended.
    document: dict[str, Any] = {
        "measured_at": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": {"python": platform.python_version(), "system": platform.platform(), "cores": os.cpu_count()},
        "load_before": os.getloadavg()[0],
        "topologies": [],
    }
    for topology in TOPOLOGIES if options.topology == "both" else (options.topology,):
        try:
            found = measure(topology, rooms=options.rooms, seconds=options.seconds, seed=options.seed)
        except CannotRun as reason:
            found = {"topology": topology, "skipped": str(reason)}
        document["topologies"].append(found)
    if options.json:
        options.json.write_text(json.dumps(document, indent=1) + "\n")
    for found in document["topologies"]:
        if "skipped" in found:
            sys.stdout.write(f"{found['topology']}: skipped: {found['skipped']}\n")
            continue
        for each in found["steps"]:
            sys.stdout.write(f"{found['topology']}: {line(each)}\n")
        sys.stdout.write(
            f"{found['topology']}: {found['rooms_within_gate']} rooms within the gate of {ROOMS_GATE} (goal {ROOMS_GOAL:,}); "
            f"{found['saturates_first']} is the busiest; a move costs {found['move_cpu_ms']['move']:g} ms of CPU to store, "
            f"answer and draw (gate {MOVE_CPU_GATE_MS:g}) and {found['move_cpu_ms']['view']:g} ms to draw for somebody else\n"
        )
    return 0


if __name__ == "__main__":
    sys.exit(main())
