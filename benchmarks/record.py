"""How everything that reads the record stands at many episodes: pages, search, the API, exports, erasure; and by what plan.

    python -m benchmarks.record --episodes 200000 --var DIR [--json FILE]

Makes a site of its own in `--var` (`benchmarks.filling`; about twenty minutes for 200,000 episodes, once) on SQLite, or
on the server that DATABASE_URL names. Each page is asked once with nothing kept in the process, then three times more.
Every statement that it sends is then sent again by itself, read to its end and timed; those above `--slow` milliseconds
are explained by the database (`EXPLAIN QUERY PLAN`, `EXPLAIN (ANALYZE)`). Prints a table in Markdown; `--only WORD` measures
what has the word in its name. What a plan must not become is held by `tests/negotiation_site/test_plans.py`.
"""

import argparse
import json
import shutil
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks import filling

AGAIN = 3
COPIES = 10
"""One in so many episodes is played, the others are copies of it."""


@dataclass(frozen=True)
class Page:
    """An address, and who asks for it: nobody, `player`, `staff`, or a script with a `token`."""

    name: str
    path: str
    who: str = ""


@dataclass
class Statement:
    """One that took long, and how the database went about it."""

    ms: float
    sql: str
    plan: list[str]


@dataclass
class Measured:
    """What a page or a job took."""

    name: str
    path: str
    first_ms: float
    first_cpu_ms: float
    again_ms: float
    again_cpu_ms: float
    statements: int
    sql_ms: float
    slow: list[Statement] = field(default_factory=list)


RARE, COMMON = "hagglingly", "price"
PAGES = (
    Page("home", "/"),
    Page("about", "/about/"),
    Page("markets, with how often each was played", "/markets/"),
    Page("one market", "/markets/demo-bilateral/"),
    Page("lobby", "/lobby/"),
    Page("history of somebody with 1,900 games", "/history/", "player"),
    Page("account of the same", "/account/", "player"),
    Page("leaderboard", "/leaderboard/"),
    Page("leaderboard of a market", "/leaderboard/?market=demo-bilateral"),
    Page("leaderboard of sellers with several buyers", "/leaderboard/?market=demo-multi-buyer&role=seller"),
    Page("leaderboard of a family", "/leaderboard/?family=catalogue&role=seller"),
    Page("leaderboard of people", "/leaderboard/people/"),
    Page("leaderboard as CSV", "/leaderboard/agents.csv"),
    Page("one agent", "/agents/linear/"),
    Page("transcripts", "/transcripts/"),
    Page("transcripts, page 4,000", "/transcripts/?page=4000"),
    Page("transcripts of a market", "/transcripts/?market=demo-catalogue"),
    Page("transcripts of a family", "/transcripts/?family=multi_buyer"),
    Page("transcripts of people", "/transcripts/?source=live"),
    Page("transcripts of simulations", "/transcripts/?source=simulated"),
    Page("transcripts of tournaments", "/transcripts/?source=tournament"),
    Page("transcripts of an agent", "/transcripts/?agent=satisficer"),
    Page("transcripts of an agent that is rare", "/transcripts/?agent=logit"),
    Page("transcripts of an agent as the seller", "/transcripts/?agent=linear&role=seller"),
    Page("transcripts with a person", "/transcripts/?agent=person"),
    Page("transcripts with a deal", "/transcripts/?outcome=deal"),
    Page("transcripts from a share up", "/transcripts/?min_share=0.9"),
    Page("transcripts from a buyer's share up", "/transcripts/?min_share=0.9&role=buyer"),
    Page("transcripts from 20 messages up", "/transcripts/?min_turns=20"),
    Page("transcripts of some days", "/transcripts/?since=2026-03-01&until=2026-03-03"),
    Page("transcripts by share", "/transcripts/?sort=-share"),
    Page("transcripts by length", "/transcripts/?sort=-turns"),
    Page("transcripts, the oldest first", "/transcripts/?sort=oldest"),
    Page("transcripts with a common word", f"/transcripts/?q={COMMON}"),
    Page("transcripts with a rare word", f"/transcripts/?q={RARE}"),
    Page("transcripts with a phrase", "/transcripts/?q=%22best+I+can+do%22"),
    Page("transcripts with a common word in a market", f"/transcripts/?q={COMMON}&market=demo-catalogue"),
    Page("transcripts with a common word, for staff", f"/transcripts/?q={COMMON}", "staff"),
    Page("transcripts, for staff", "/transcripts/", "staff"),
    Page("api: episodes", "/api/v1/episodes?limit=100", "token"),
    Page("api: episodes of a market", "/api/v1/episodes?limit=100&market=demo-catalogue", "token"),
    Page("api: episodes of people", "/api/v1/episodes?limit=100&source=live", "token"),
    Page("api: episodes of an agent", "/api/v1/episodes?limit=100&agent=satisficer", "token"),
    Page("api: episodes of an agent that is rare", "/api/v1/episodes?limit=100&agent=logit", "token"),
    Page("api: episodes since a day", "/api/v1/episodes?limit=100&since=2026-11-01", "token"),
    Page("api: markets", "/api/v1/markets", "token"),
    Page("api: agents", "/api/v1/agents", "token"),
    Page("api: leaderboards", "/api/v1/leaderboards", "token"),
    Page("exports", "/exports/", "staff"),
    Page("moderation", "/moderation/", "staff"),
    Page("metrics", "/metrics", "staff"),
    Page("operations", "/operations/", "staff"),
    Page("administration's list of episodes", "/admin/markets/episode/", "staff"),
    Page("administration's list of rooms", "/admin/markets/room/", "staff"),
)


def main() -> None:
    """Make what is missing, measure, print."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.record", description=__doc__)
    parser.add_argument("--episodes", type=int, default=200_000)
    parser.add_argument("--var", type=Path, required=True, help="folder of a site of its own")
    parser.add_argument("--json", type=Path, help="where to keep the figures")
    parser.add_argument("--slow", type=float, default=100, help="milliseconds from which a statement is explained")
    parser.add_argument("--only", default="", help="what has this word in its name")
    options = parser.parse_args()
    filling.own_site(options.var)
    filling.fill(options.episodes, words=True, rooms=True, sessions=20_000, copies=COPIES)
    told = _measured(options)
    if options.json:
        options.json.write_text(json.dumps(told, indent=1))
    _print(told)


def _measured(options: argparse.Namespace) -> dict[str, Any]:
    from django.conf import settings
    from django.db import connection

    from markets.models import Episode, EpisodeSeat, EpisodeText, Room

    settings.RATE_LIMITS = False
    with connection.cursor() as cursor:
        if connection.vendor == "postgresql":
            cursor.execute("VACUUM ANALYZE")
    lines = [asdict(one) for one in _pages(options)]
    lines += [asdict(job()) for name, job in _jobs(options).items() if options.only in name]
    tables = {"episodes": Episode, "seats": EpisodeSeat, "texts": EpisodeText, "rooms": Room}
    return {
        "database": f"{connection.vendor} {_version()}",
        "rows": {name: model._default_manager.count() for name, model in tables.items()},
        "lines": lines,
    }


def _version() -> str:
    from django.db import connection

    with connection.cursor() as cursor:
        cursor.execute("SELECT sqlite_version()" if connection.vendor == "sqlite" else "SHOW server_version")
        return str(cursor.fetchone()[0])


# --- Pages --------------------------------------------------------------------------------------------


def _pages(options: argparse.Namespace) -> Iterator[Measured]:
    clients = _clients()
    for page in PAGES:
        if options.only not in page.name:
            continue
        try:
            line = _page(page, clients[page.who], slow=options.slow)
        except LookupError as missing:
            print(f"{page.name} is left out: {missing}", file=sys.stderr)
            continue
        print(f"{page.name}: {line.first_cpu_ms:.0f} ms, {line.again_cpu_ms:.0f} ms", file=sys.stderr)
        yield line


def _page(page: Page, client: Any, *, slow: float) -> Measured:
    def ask() -> None:
        response = client.get(page.path)
        if response.status_code != 200:
            raise LookupError(f"{page.path} answers {response.status_code}")

    _forget()
    sent: list[tuple[str, Any]] = []
    first = _ms(ask)
    with _listening(sent):
        ask()
    again = min(_ms(ask) for _ in range(AGAIN))
    return _told(page.name, page.path, first, again, sent, slow)


def _clients() -> dict[str, Any]:
    from django.contrib.auth.models import User
    from django.test import Client

    from markets.identity import SESSION_KEY
    from markets.models import Participant
    from negotiation_site.api import tokens

    staff, _made = User.objects.get_or_create(username="measuring", is_staff=True, is_superuser=True)
    tokens.of(staff).delete()
    tokens.LIMIT = 1_000_000
    _row, secret = tokens.create(owner=staff, name="measuring")
    host = {"host": "127.0.0.1"}
    clients = {name: Client(headers=host) for name in ("", "player", "staff")}
    clients["token"] = Client(headers=host | {"authorization": f"Bearer {secret}"})
    clients["staff"].force_login(staff, backend="django.contrib.auth.backends.ModelBackend")
    player = Participant.objects.filter(pseudonym="Player 0").get()
    clients["player"].force_login(staff, backend="django.contrib.auth.backends.ModelBackend")
    session = clients["player"].session
    session[SESSION_KEY] = player.pk
    session.save()
    return clients


def _forget() -> None:
    """As after a start of the process."""
    from django.db import connection

    from negotiation_site import market_picture
    from negotiation_site.leaderboard import facts, pages

    facts.forget()
    pages.forget()
    market_picture.forget()
    connection.close()


# --- Jobs ---------------------------------------------------------------------------------------------


def _jobs(options: argparse.Namespace) -> dict[str, Callable[[], Measured]]:
    """What is no page: a copy for the boards, exports, erasing somebody."""
    return {
        "reading the whole record for the boards": lambda: _board(options),
        "export of all open data to Parquet": lambda: _export(options, {}),
        "export of one agent's rows for training": lambda: _export(
            options, {"format": "sft", "agent": "satisficer", "market": "demo-bilateral"}
        ),
        "export of what people played": lambda: _export(options, {"format": "jsonl", "source": "live"}),
        "erasing somebody with 1,900 games": lambda: _erasure(options, "Player 1"),
        "erasing somebody with 20 games": lambda: _erasure(options, "Player 30"),
        "one sweep of the clock": lambda: _sweep(options),
    }


def _board(options: argparse.Namespace) -> Measured:
    from negotiation_site.leaderboard import facts

    sent: list[tuple[str, Any]] = []
    with _listening(sent):
        first = _ms(lambda: facts.Copy(None).current())
    return _told("reading the whole record for the boards", "", first, first, sent[:3], options.slow)


def _export(options: argparse.Namespace, asked: dict[str, Any]) -> Measured:
    from negotiation_site.exports import making
    from negotiation_site.exports.asked import Asked

    out = options.var / "out"
    shutil.rmtree(out, ignore_errors=True)
    sent: list[tuple[str, Any]] = []
    began: list[Spent] = []
    started, worked = time.perf_counter(), time.process_time()

    def so_far() -> Spent:
        return Spent((time.perf_counter() - started) * 1000, (time.process_time() - worked) * 1000)

    def begin(_done: int, _total: int) -> None:
        if not began:
            began.append(so_far())

    with _listening(sent):
        made = making.make(Asked(**{"format": "parquet", **asked}), out, progress=begin)
    whole = so_far()
    shutil.rmtree(out)
    name = f"export, until it writes and whole, of {made.manifest['episodes']:,} episodes as {made.manifest['format']}"
    return _told(name, "", began[0], whole, sent[:12], options.slow)


def _erasure(options: argparse.Namespace, pseudonym: str) -> Measured:
    """Erased in a transaction that is then undone."""
    from django.db import connection, transaction

    from markets import erasure
    from markets.models import Participant

    sent: list[tuple[str, Any]] = []
    spent: list[float] = []
    clock = time.process_time if connection.vendor == "sqlite" else time.perf_counter

    def timed(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        started = clock()
        try:
            return execute(sql, params, many, context)
        finally:
            spent.append((clock() - started) * 1000)
            sent.append((sql, params))

    person = Participant.objects.get(pseudonym=pseudonym)
    games = person.episode_seats.count()
    foreseen = _ms(lambda: erasure.foreseen(person))
    with transaction.atomic(), connection.execute_wrapper(timed):
        whole = _ms(lambda: erasure.erase(participant=person))
        slow = sorted(zip(spent, sent, strict=True), key=lambda one: -one[0])[:3]
        told = [Statement(ms, sql[:4000], _plan(sql, params)) for ms, (sql, params) in slow if ms >= options.slow]
        transaction.set_rollback(True)
    name = f"erasing somebody with {games:,} games: foreseen, and done"
    return Measured(name, "", *foreseen, *whole, len(sent), sum(spent), told)


def _sweep(options: argparse.Namespace) -> Measured:
    from django.utils import timezone

    from agents import turns
    from markets import services

    def sweep() -> None:
        services.sweep(timezone.now())
        turns.sweep(timezone.now())

    sent: list[tuple[str, Any]] = []
    first = _ms(sweep)
    with _listening(sent):
        again = _ms(sweep)
    return _told("one sweep of the rooms' and the turns' clock", "", first, again, sent, options.slow)


# --- Statements and their plans -----------------------------------------------------------------------


@contextmanager
def _listening(sent: list[tuple[str, Any]]) -> Iterator[None]:
    from django.db import connection

    def heard(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        sent.append((sql, params))
        return execute(sql, params, many, context)

    with connection.execute_wrapper(heard):
        yield


def _told(name: str, path: str, first: "Spent", again: "Spent", sent: list[tuple[str, Any]], slow: float) -> Measured:
    """The statements one by one: on SQLite most of the work is done while rows are fetched, in this process."""
    from django.db import connection

    line = Measured(name, path, first.wall, first.cpu, again.wall, again.cpu, len(sent), 0.0)
    clock = time.process_time if connection.vendor == "sqlite" else time.perf_counter
    with connection.cursor() as cursor:
        for sql, params in sent:
            if not sql.startswith("SELECT"):
                continue
            started = clock()
            cursor.execute(sql, params)
            cursor.fetchall()
            ms = (clock() - started) * 1000
            line.sql_ms += ms
            if ms >= slow:
                line.slow.append(Statement(ms, sql[:4000], _plan(sql, params)))
    return line


def _plan(sql: str, params: Any) -> list[str]:
    from django.db import connection

    with connection.cursor() as cursor:
        if connection.vendor == "sqlite":
            cursor.execute(f"EXPLAIN QUERY PLAN {sql}", params)
            return [row[3] for row in cursor.fetchall()]
        reading = sql.startswith("SELECT")
        cursor.execute(f"EXPLAIN ({'ANALYZE, ' if reading else ''}COSTS OFF) {sql}", params)
        return [row[0].rstrip() for row in cursor.fetchall()]


class Spent(NamedTuple):
    """Milliseconds of the clock on the wall and of this process, which on SQLite is the database too."""

    wall: float
    cpu: float


def _ms(job: Callable[[], object]) -> Spent:
    started, worked = time.perf_counter(), time.process_time()
    job()
    return Spent((time.perf_counter() - started) * 1000, (time.process_time() - worked) * 1000)


def _print(told: dict[str, Any]) -> None:
    rows = ", ".join(f"{count:,} {name}" for name, count in told["rows"].items())
    print(f"{told['database']}; {rows}\n")
    print(
        "| what | first, ms (processor) | again, ms (processor) | statements | in the database, ms |\n|---|---|---|---|---|"
    )
    for line in told["lines"]:
        first = f"{line['first_ms']:,.0f} ({line['first_cpu_ms']:,.0f})"
        again = f"{line['again_ms']:,.0f} ({line['again_cpu_ms']:,.0f})"
        print(f"| {line['name']} | {first} | {again} | {line['statements']} | {line['sql_ms']:,.0f} |")
    for line in told["lines"]:
        for one in line["slow"]:
            print(f"\n{line['name']}: {one['ms']:.0f} ms\n  {one['sql'][:1500]}\n  " + "\n  ".join(one["plan"]))


if __name__ == "__main__":
    main()
