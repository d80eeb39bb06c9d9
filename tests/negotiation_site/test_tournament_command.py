"""The command holds a tournament, refuses what cannot be held, and survives being killed."""

import json
import os
import signal
import sqlite3
import subprocess
import sys
import time
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.management import CommandError, call_command

from markets.models import Episode
from training.models import Tournament

ROOT = Path(settings.BASE_DIR)


@pytest.fixture
def starter(db) -> None:
    call_command("seed_demo", "--bare", stdout=StringIO())


def tournament(*words: str) -> dict[str, Any]:
    out = StringIO()
    call_command("tournament", *words, "--json", stdout=out, stderr=StringIO())
    return json.loads(out.getvalue())


def small(*, name: str = "cup", agents: str = "linear,conceder", scenarios: str = "4", seed: str = "3") -> list[str]:
    return [
        "--agents", agents, "--market", "demo-bilateral", "--scenarios", scenarios, "--seed", seed, "--name", name,
    ]  # fmt: skip


def test_the_document_says_who_met_and_what_it_came_to(starter) -> None:
    document = tournament(*small())
    assert (document["status"], document["pairs"], document["episodes"]) == ("done", 4, 16)
    assert {row["agent"] for row in document["ranking"]} == {"linear", "conceder"}
    assert sorted((met["seller"], met["buyer"]) for met in document["head_to_head"]) == [
        ("conceder", "conceder"), ("conceder", "linear"), ("linear", "conceder"), ("linear", "linear"),
    ]  # fmt: skip
    for row in document["ranking"]:
        assert row["share_low"] <= row["share"] <= row["share_high"]


def test_a_finished_tournament_is_reported_and_not_played_again(starter) -> None:
    first = tournament(*small())
    assert tournament(*small()) == first
    assert Episode.objects.count() == 16


def test_one_scenario_has_no_interval_and_no_nan(starter) -> None:
    document = tournament(*small(scenarios="1"))
    assert [row["share_low"] for row in document["ranking"]] == [None, None]
    json.loads(json.dumps(document), parse_constant=pytest.fail)


def test_a_tournament_can_be_left_to_the_workers_cancelled_and_taken_up(starter) -> None:
    waiting = tournament(*small(), "--queue")
    assert (waiting["status"], waiting["episodes"], waiting["ranking"]) == ("queued", 0, [])
    assert tournament("--cancel", "--name", "cup")["status"] == "cancelled"
    assert tournament(*small())["status"] == "done"
    with pytest.raises(CommandError, match="Only a tournament under way can be cancelled"):
        tournament("--cancel", "--name", "cup")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (small(agents="linear"), "at least 2 agents"),
        (small(agents="linear,linear"), "named twice"),
        (small(agents="linear,nobody"), "There is no agent 'nobody'"),
        (small(agents="linear,greedy"), "plays catalogue markets only"),
        (small(scenarios="0"), "less than 1"),
        (small(seed="99999999999999999999"), "64 bits"),
        (small(name="not a name"), "letters, digits, hyphens"),
        (["--agents", "linear,conceder", "--scenarios", "3", "--name", "x"], "needs --market"),
        (["--agents", "linear,boulware", "--market", "none", "--scenarios", "3", "--name", "x"], "There is no market"),
        (["--cancel", "--name", "nothing"], "There is no tournament 'nothing'"),
    ],
    ids=["one", "twice", "unknown", "family", "zero", "seed", "name", "no-market", "market", "cancel"],
)
def test_what_cannot_be_held_is_a_sentence_and_changes_nothing(starter, words, sentence) -> None:
    with pytest.raises(CommandError, match=sentence) as refused:
        tournament(*words)
    assert refused.value.returncode in (1, 2)
    assert (Tournament.objects.count(), Episode.objects.count()) == (0, 0)


def test_a_name_that_is_taken_by_other_parameters_is_refused(starter) -> None:
    tournament(*small())
    with pytest.raises(CommandError, match="other seed") as refused:
        tournament(*small(seed="4"))
    assert refused.value.returncode == 2
    assert Episode.objects.count() == 16


@pytest.mark.slow
def test_a_killed_command_is_taken_up_and_a_killed_worker_replaced_with_every_game_exactly_once(tmp_path) -> None:
    environment = os.environ | {
        "PARLEY_VAR": str(tmp_path), "DJANGO_SETTINGS_MODULE": "negotiation_site.settings", "DATABASE_URL": "",
    }  # fmt: skip
    environment.pop("DATABASE_URL")

    def manage(*words: str) -> "subprocess.Popen[str]":
        return subprocess.Popen(
            [sys.executable, "manage.py", *words], cwd=ROOT, env=environment, text=True,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip

    def count(table: str) -> int:
        with sqlite3.connect(tmp_path / "db.sqlite3", timeout=20) as database:
            return database.execute(f"select count(*) from {table}").fetchone()[0]

    for words in (["migrate"], ["seed_demo", "--bare"]):
        assert manage(*words).wait() == 0
    words = ["tournament", *small(scenarios="1000"), "--workers", "2", "--json"]
    running = manage(*words)
    until = time.monotonic() + 60
    while not count("training_tournamentgame") and time.monotonic() < until:
        time.sleep(0.02)
    running.send_signal(signal.SIGKILL)
    running.wait()
    kept = count("training_tournamentgame")
    assert 0 < kept < 4000
    running = manage(*words)
    hands = Path(f"/proc/{running.pid}/task/{running.pid}/children")
    until = time.monotonic() + 60
    while count("training_tournamentgame") == kept and time.monotonic() < until:
        time.sleep(0.02)
    for hand in hands.read_text().split():
        os.kill(int(hand), signal.SIGKILL)
    out, err = running.communicate(timeout=120)
    document = json.loads(out)
    assert "taken up at" in err
    assert (document["status"], document["episodes"]) == ("done", 4000)
    assert count("training_tournamentgame") == count("markets_episode") == 4000
    with sqlite3.connect(tmp_path / "db.sqlite3") as database:
        pairs = database.execute("select count(distinct pair * 100000 + scenario) from training_tournamentgame")
        assert pairs.fetchone()[0] == 4000
    alone = manage("tournament", *small(scenarios="1000", name="alone"), "--json").communicate(timeout=120)[0]
    assert json.loads(alone)["result_sha256"] == document["result_sha256"]


def test_findings_are_those_of_a_finished_tournament(starter) -> None:
    tournament(*small())
    out = StringIO()
    call_command("findings", "cup", "--json", stdout=out)
    document = json.loads(out.getvalue(), parse_constant=pytest.fail)
    assert [(row["agent"], row["role"]) for row in document["agents"]] == [
        ("conceder", "seller"), ("linear", "seller"), ("conceder", "buyer"), ("linear", "buyer"),
    ]  # fmt: skip
    for row in document["agents"]:
        assert row["games"] == 8
        assert row["opening_ratio_low"] <= row["opening_ratio"] <= row["opening_ratio_high"]
    assert document["conceding_buyers_do_worst"] in (True, False)
    openings = next(
        row for row in document["associations"] if (row["role"], row["habit"]) == ("buyer", "opening_ratio")
    )
    assert openings["with_share"] is None, "two agents cannot be ranked against each other"
    assert openings["seats_with_share_low"] <= openings["seats_with_share"] <= openings["seats_with_share_high"]


def test_findings_of_an_unfinished_or_unknown_tournament_are_a_sentence(starter) -> None:
    tournament(*small(), "--queue")
    for name, sentence in (("cup", "has not come to its end"), ("none", "There is no tournament 'none'")):
        with pytest.raises(CommandError, match=sentence) as refused:
            call_command("findings", name, "--json")
        assert refused.value.returncode == 2
