"""How quickly the leaderboards answer over many stored episodes.

    python -m benchmarks.leaderboard --episodes 100000 --var /tmp/board

Makes a site of its own in `--var` (a minute or two for each 30,000 episodes, once; a second run uses
it), in which three tournaments of scripted agents and a few thousand games of people are stored, and
asks every page for its time: the first time after a start, anew, and again. `--json FILE` keeps the
figures.
"""

import argparse
import json
import statistics
import time
from pathlib import Path
from typing import Any

from benchmarks import filling

PAGES = (
    "/leaderboard/",
    "/leaderboard/?market=demo-bilateral",
    "/leaderboard/?market=demo-multi-buyer&role=seller",
    "/leaderboard/?family=catalogue&role=seller",
    "/leaderboard/?kind=scripted&role=buyer",
    "/leaderboard/people/",
    "/leaderboard/agents.csv",
    "/agents/linear/",
    "/agents/falling-ladder/",
    "/markets/demo-bilateral/",
    "/markets/",
)


def main() -> None:
    """Make what is missing, measure, print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--episodes", type=int, default=100_000)
    parser.add_argument("--var", type=Path, required=True, help="folder of a site of its own")
    parser.add_argument("--json", type=Path, help="where to keep the figures")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    filling.own_site(options.var)
    filling.fill(options.episodes)
    figures = _measured(options.rounds)
    if options.json:
        options.json.write_text(json.dumps(figures, indent=2))
    print(f"{'milliseconds, wall / processor':55} {'first':>15} {'anew':>15} {'again':>15}")
    for page in figures["pages"]:
        cells = [f"{page[f'{name}_ms']:7.1f}/{page[f'{name}_cpu_ms']:7.1f}" for name in ("first", "anew", "again")]
        print(f"{page['path']:55} {' '.join(cells)}")
    print(
        f"{figures['episodes']:,} episodes, {figures['seats']:,} seats; reading all of them {figures['read_s']:.2f} s, from disk {figures['kept_s'] * 1000:.0f} ms"
    )


def _measured(rounds: int) -> dict[str, Any]:
    from django.test import Client

    from negotiation_site.leaderboard import facts, pages

    facts.forget()
    kept = facts.Copy(None)
    started = time.perf_counter()
    held = kept.current()
    read_s = time.perf_counter() - started
    facts.current()
    facts.forget()
    started = time.perf_counter()
    facts.current()
    kept_s = time.perf_counter() - started
    client = Client(headers={"host": "127.0.0.1"})
    lines = []
    for path in PAGES:
        first = _ms(client, path)
        anew = []
        for _ in range(rounds):
            pages.forget()
            anew.append(_ms(client, path))
        again = [_ms(client, path) for _ in range(rounds)]
        line: dict[str, Any] = {"path": path}
        for name, spent in (("first", [first]), ("anew", anew), ("again", again)):
            line[f"{name}_ms"] = statistics.median(wall for wall, _cpu in spent)
            line[f"{name}_cpu_ms"] = statistics.median(cpu for _wall, cpu in spent)
        lines.append(line)
    return {
        "episodes": len(set(held["episode"].tolist())),
        "seats": len(held),
        "read_s": read_s,
        "kept_s": kept_s,
        "pages": lines,
    }


def _ms(client: Any, path: str) -> tuple[float, float]:
    """Milliseconds of the clock on the wall, and of this process alone."""
    started, worked = time.perf_counter(), time.process_time()
    response = client.get(path)
    spent = (time.perf_counter() - started) * 1000, (time.process_time() - worked) * 1000
    if response.status_code != 200:
        raise SystemExit(f"{path} answers {response.status_code}.")
    return spent


if __name__ == "__main__":
    main()
