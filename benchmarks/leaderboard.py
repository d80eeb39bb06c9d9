"""How quickly the leaderboards answer over many stored episodes.

    python -m benchmarks.leaderboard --episodes 100000 --var /tmp/board

Makes a site of its own in `--var` (a minute or two for each 30,000 episodes, once; a second run uses
it), in which three tournaments of scripted agents and a few thousand games of people are stored, and
asks every page for its time: the first time after a start, anew, and again. `--json FILE` keeps the
figures.
"""

import argparse
import json
import os
import random
import statistics
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

BILATERAL = ("linear", "conceder", "boulware", "tit-for-tat", "satisficer", "hardliner", "zi-c", "split-the-difference")
SELLERS = ("falling-ladder", "optimal-ladder", "explore-then-commit", "chase-highest-bid", "all-on-one", "linear")
BUYERS = ("linear", "conceder", "threshold", "impatient")
MATCHERS = ("greedy", "serial", "random-match", "linear")
PEOPLE = 60
PARTS = {"demo-bilateral": 0.70, "demo-multi-buyer": 0.18, "demo-catalogue": 0.08, "people": 0.04}
BATCH = 1_000

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
    options.var.mkdir(parents=True, exist_ok=True)
    os.environ["PARLEY_VAR"] = str(options.var)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "negotiation_site.settings")
    os.environ.setdefault("LOG_LEVEL", "WARNING")
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # As `manage.py lab` starts its web process.
    import django

    django.setup()
    _fill(options.episodes)
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


def _fill(wanted: int) -> None:
    from django.core.management import call_command
    from django.db import transaction
    from django.utils import timezone

    from markets import episodes
    from markets.models import Episode, EpisodeSeat, Market, Participant

    call_command("migrate", verbosity=0)
    call_command("collectstatic", interactive=False, verbosity=0)
    if Episode.objects.count() >= wanted:
        return
    call_command("seed_demo", verbosity=0, stdout=sys.stderr)
    started, done = time.perf_counter(), Episode.objects.count()
    people = [Participant.objects.create(pseudonym=f"Player {number}") for number in range(PEOPLE)]
    chance = random.Random(7)
    for name, part in PARTS.items():
        slug = "demo-bilateral" if name == "people" else name
        market = Market.objects.get(slug=slug)
        left = round(wanted * part)
        for batch in _batches(_games(name, market), left):
            with transaction.atomic():
                last = EpisodeSeat.objects.order_by("-pk").values_list("pk", flat=True).first() or 0
                episodes.store_simulated(market, batch, now=timezone.now())
                if name == "people":
                    seats = list(EpisodeSeat.objects.filter(pk__gt=last, kind="person"))
                    for seat in seats:
                        seat.participant = chance.choice(people)
                        seat.consent_scope = "public"
                    EpisodeSeat.objects.bulk_update(seats, ["participant", "consent_scope"], batch_size=200)
                    Episode.objects.filter(seats__in=seats).update(source="live")
            done += len(batch)
            print(f"{done:,} episodes stored, {time.perf_counter() - started:.0f} s", file=sys.stderr)


def _batches(games: Iterator[Any], count: int) -> Iterator[list[Any]]:
    while count > 0:
        batch = [next(games) for _ in range(min(BATCH, count))]
        count -= len(batch)
        yield batch


def _games(name: str, market: Any) -> Iterator[Any]:
    """Every scenario with every pair, without end."""
    from agents import registry
    from agents.play import play, seat
    from markets import episodes, services
    from markets.engine.protocol import SELLER, buyer_party
    from markets.engine.scenarios import decode_recipe, sample
    from markets.engine.seeds import derive_seed

    recipe, pool = decode_recipe(market.recipe), services.market_pool(market)
    pairs = {
        "demo-bilateral": [(seller, buyer) for seller in BILATERAL for buyer in BILATERAL],
        "demo-multi-buyer": [(seller, buyer) for seller in SELLERS for buyer in BUYERS],
        "demo-catalogue": [(seller, buyer) for seller in MATCHERS for buyer in BUYERS],
        "people": [("linear", "conceder"), ("boulware", "satisficer"), ("conceder", "zi-c")],
    }[name]
    number = 0
    while True:
        scenario = sample(recipe, pool, derive_seed("board", name, number))
        number += 1
        for seller, buyer in pairs:
            specs = {SELLER: registry.get(seller)}
            specs |= {buyer_party(place): registry.get(buyer) for place in range(1, recipe.buyers + 1)}
            played = play(scenario, {party: seat(spec) for party, spec in specs.items()})
            sittings = tuple(
                episodes.Sitting(party, "person")
                if name == "people" and party != SELLER
                else episodes.Sitting(party, "agent", spec.slug, spec.version)
                for party, spec in specs.items()
            )
            yield episodes.Simulated(scenario=scenario, log=played.log, sittings=sittings)
            if name == "people":
                break


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
