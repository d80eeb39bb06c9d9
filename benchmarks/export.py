"""Measures exports: makes a database of simulated episodes of its own, writes them, says what an episode costs.

`python -m benchmarks.export --episodes 100000 --formats parquet --var DIR`. Memory is the peak of this process
after the first tenth of the episodes and at the end, so that growth with their number shows. The gate is 100,000
episodes to Parquet within 120 seconds with memory flat. `DIR` must be new or made by this script.
"""

import argparse
import json
import os
import resource
import shutil
import sys
import time
from pathlib import Path


def main() -> int:
    """Make, export, print one JSON document."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.export", description=__doc__)
    parser.add_argument("--episodes", type=int, default=5_000)
    parser.add_argument("--formats", default="parquet", help="with commas")
    parser.add_argument("--var", type=Path, required=True, help="folder for the database and the exports")
    asked = parser.parse_args()
    asked.var.mkdir(parents=True, exist_ok=True)
    os.environ["PARLEY_VAR"] = str(asked.var)
    os.environ.pop("DATABASE_URL", None)
    os.environ["DJANGO_SETTINGS_MODULE"] = "negotiation_site.settings"
    import django

    django.setup()
    _fill(asked.episodes)
    figures = [_measure(form, asked.var / "out") for form in asked.formats.split(",")]
    print(json.dumps({"episodes": asked.episodes, "exports": figures}, indent=1))
    return 0


def _fill(episodes: int) -> None:
    """Bring the database up to `episodes` simulated bilateral negotiations with words."""
    from io import StringIO

    from django.core.management import call_command

    from markets.models import Episode

    call_command("migrate", stdout=StringIO(), verbosity=0)
    call_command("seed_demo", "--bare", stdout=StringIO())
    lacking = episodes - Episode.objects.count()
    if lacking > 0:
        call_command(
            "simulate", market="demo-bilateral", seller="linear", buyers="linear", episodes=lacking,
            seed=Episode.objects.count() + 1, store=True, stdout=StringIO(),
        )  # fmt: skip


def _measure(form: str, out: Path) -> dict[str, object]:
    from negotiation_site.exports import making
    from negotiation_site.exports.asked import Asked

    early: list[int] = []

    def progress(done: int, total: int) -> None:
        if not early and total and done >= total / 10:
            early.append(_peak_kib())

    shutil.rmtree(out / form, ignore_errors=True)
    started, cpu = time.perf_counter(), time.process_time()
    made = making.make(Asked(format=form), out / form, progress=progress)
    seconds, cpu_seconds = time.perf_counter() - started, time.process_time() - cpu
    episodes = made.manifest["episodes"]
    return {
        "format": form,
        "episodes": episodes,
        "rows": made.manifest["rows"],
        "seconds": round(seconds, 2),
        "cpu_seconds": round(cpu_seconds, 2),
        "ms_per_episode": round(1000 * seconds / max(1, episodes), 3),
        "peak_mib_after_a_tenth": round((early[0] if early else _peak_kib()) / 1024, 1),
        "peak_mib": round(_peak_kib() / 1024, 1),
    }


def _peak_kib() -> int:
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak // 1024 if sys.platform == "darwin" else peak


if __name__ == "__main__":
    raise SystemExit(main())
