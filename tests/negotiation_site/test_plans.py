"""No page, script, clock or export reads a large table from end to end: the database's plans say so, whatever the machine.

A plan is asked for every statement that is sent. On PostgreSQL, which rightly reads small tables whole, reading whole is
made expensive first, so that it is done only where no index would do.
"""

import json
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.db import connection
from django.test import Client
from django.utils import timezone

from agents import turns
from markets import erasure, services
from negotiation_site import standing
from negotiation_site.api import tokens
from negotiation_site.exports import making
from negotiation_site.exports.asked import Asked
from negotiation_site.leaderboard import facts
from tests.markets import rooms
from tests.markets.engine.factories import B1
from tests.negotiation_site.leaderboard.records import bought, stored

pytestmark = pytest.mark.django_db

LARGE = frozenset(
    f"markets_{name}"
    for name in ("episode", "episodeseat", "episodetext", "room", "seat", "roomevent", "utterance", "agentturn")
) | {"agents_modelcall"}
SAID = frozenset({"markets_episodetext"})
"""What is said is looked through once for rare words."""
_RENAMED = re.compile(r'"(\w+)" ([A-Z]\d+)\b')
_SCAN = re.compile(r"SCAN (\w+)(?! USING)\b(?:$| (?!USING))")


@contextmanager
def listening() -> Iterator[list[tuple[str, Any]]]:
    sent: list[tuple[str, Any]] = []

    def heard(execute: Any, sql: str, params: Any, many: bool, context: Any) -> Any:
        if sql.startswith("SELECT"):
            sent.append((sql, params))
        return execute(sql, params, many, context)

    with connection.execute_wrapper(heard):
        yield sent


def plan(sql: str, params: Any) -> list[str]:
    """Steps of the plan, on SQLite."""
    with connection.cursor() as cursor:
        cursor.execute(f"EXPLAIN QUERY PLAN {sql}", params)
        return [row[3] for row in cursor.fetchall()]


def read_whole(sql: str, params: Any) -> set[str]:
    """The tables that are read from end to end, not by way of an index."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SET enable_seqscan = off")
            cursor.execute(f"EXPLAIN (FORMAT JSON) {sql}", params)
            told = cursor.fetchone()[0]
            cursor.execute("SET enable_seqscan = on")
        return set(_sequential(told if isinstance(told, list) else json.loads(told)))
    steps = plan(sql, params)
    if " LIMIT " in sql and " WHERE " not in sql and not any("TEMP B-TREE" in step for step in steps):
        return set()  # The first rows in the order in which they lie.
    names = {alias: table for table, alias in _RENAMED.findall(sql)}
    found = (match[1] for step in steps if (match := _SCAN.match(step)))
    return {names.get(name, name) for name in found}


def _sequential(node: Any) -> Iterator[str]:
    if isinstance(node, list):
        for each in node:
            yield from _sequential(each)
    elif isinstance(node, dict):
        if node.get("Node Type") == "Seq Scan":
            yield node["Relation Name"]
        for each in node.values():
            yield from _sequential(each)


def wrong(job: Callable[[], object], *, but: frozenset[str] = frozenset()) -> list[str]:
    """What `job` reads whole and should not, with the statement."""
    with listening() as sent:
        job()
    return [f"{whole}: {sql[:400]}" for sql, params in sent if (whole := (read_whole(sql, params) & LARGE) - but)]


@pytest.fixture
def clients() -> dict[str, Client]:
    stored(rooms.market("bilateral"), seller="linear", count=3)
    game = bought(6_000)
    staff = User.objects.create_user("staff", is_staff=True, is_superuser=True)
    found = {name: Client() for name in ("", "staff", "player")}
    found["staff"].force_login(staff, backend="django.contrib.auth.backends.ModelBackend")
    person = game.people[B1]
    person.account = User.objects.create_user("player")
    person.save()
    found["player"].force_login(person.account, backend="django.contrib.auth.backends.ModelBackend")
    _row, secret = tokens.create(owner=staff, name="a script")
    found["script"] = Client(headers={"Authorization": f"Bearer {secret}"})
    return found


PAGES = (
    ("", "/"),
    ("", "/about/"),
    ("", "/markets/"),
    ("", "/lobby/"),
    ("", "/leaderboard/people/"),
    ("player", "/history/"),
    ("player", "/account/"),
    ("staff", "/moderation/"),
    ("staff", "/exports/"),
    ("staff", "/metrics"),
    ("staff", "/operations/figures/"),
    ("staff", "/admin/markets/episode/"),
    *(
        (who, f"/transcripts/{query}")
        for who in ("", "staff")
        for query in (
            "", "?source=live", "?source=simulated", "?source=tournament", "?family=bilateral", "?agent=linear",
            "?agent=person", "?agent=linear&role=seller", "?outcome=deal", "?min_share=0.5", "?min_share=0.5&role=buyer",
            "?min_turns=2", "?since=2026-01-01&until=2026-12-31", "?sort=-share", "?sort=turns", "?sort=oldest",
        )
    ),
    *(
        ("script", f"/api/v1/{query}")
        for query in (
            "episodes", "episodes?source=live", "episodes?agent=linear", "episodes?family=bilateral&outcome=deal",
            "episodes?since=2026-01-01T00:00:00Z", "markets", "agents",
        )
    ),
)  # fmt: skip


def test_no_page_reads_a_large_table_whole(clients):
    bad = {}
    for who, path in PAGES:

        def ask(client: Client = clients[who], path: str = path) -> None:
            assert client.get(path).status_code == 200, path

        if found := wrong(ask):
            bad[f"{who} {path}".strip()] = found
    assert bad == {}


def test_looking_for_words_reads_what_is_said_and_no_record(clients):
    for query in ("?q=price", '?q="best+price"&outcome=deal', "?q=hagglingly"):
        assert wrong(lambda query=query: clients[""].get(f"/transcripts/{query}"), but=SAID) == []


def test_the_clock_the_boards_an_export_and_an_erasure_read_no_large_table_whole(clients, tmp_path):
    now = timezone.now()
    jobs: dict[str, Callable[[], object]] = {
        "rooms": lambda: services.sweep(now),
        "turns": lambda: turns.sweep(now),
        "board": lambda: facts.Copy(None).current(),
        "figures": lambda: (standing.rooms(now), standing.turns(now), standing.record(), standing.back_ends(now)),
        "export": lambda: making.make(Asked(format="jsonl", agent="linear"), tmp_path / "one"),
        "export of games": lambda: making.make(Asked(format="jsonl", source="live"), tmp_path / "two"),
        "erasure": lambda: erasure.erase(participant=bought(5_500).people[B1]),
    }
    assert {name: found for name, job in jobs.items() if (found := wrong(job))} == {}


def by_index(client: Client, path: str, *, index: str) -> list[str]:
    """Steps in which a page uses an index."""
    with listening() as sent:
        assert client.get(path).status_code == 200
    return [step for sql, params in sent for step in plan(sql, params) if index in step]


@pytest.mark.skipif(
    connection.vendor != "sqlite", reason="a small table of PostgreSQL's is read otherwise than a large one"
)
@pytest.mark.parametrize(
    ("who", "path", "index"),
    [
        ("", "/transcripts/", "episode_reading"),
        ("", "/transcripts/?agent=linear", "seat_reading"),
        ("script", "/api/v1/episodes", "episode_by_number"),
        ("script", "/api/v1/markets", "episode_open"),
        ("staff", "/metrics", "agent_turn_open"),
        ("staff", "/metrics", "model_call_recent"),
    ],
)
def test_lists_are_read_from_the_index_that_was_made_for_them(clients, who, path, index):
    used = by_index(clients[who], path, index=index)
    assert used
    if index.startswith(("episode", "seat_reading")):
        assert all("COVERING" in step for step in used), "rows themselves are kilobytes"


@pytest.mark.skipif(connection.vendor != "sqlite", reason="the words of SQLite's plans")
def test_the_first_page_of_a_list_is_not_sorted(clients):
    for who, path in (("", "/transcripts/"), ("", "/transcripts/?sort=oldest"), ("script", "/api/v1/episodes")):
        with listening() as sent:
            clients[who].get(path)
        lists = [one for one in sent if "ORDER BY" in one[0] and "LIMIT" in one[0] and '"markets_episode"' in one[0]]
        assert lists
        assert [step for sql, params in lists for step in plan(sql, params) if "TEMP B-TREE FOR ORDER BY" in step] == []


def test_a_scan_is_noticed():
    with connection.cursor() as cursor:
        cursor.execute("SELECT 1")
    assert read_whole("SELECT * FROM markets_episode WHERE log LIKE %s", ["%x%"]) == {"markets_episode"}
