"""The injection score: what an attack does to an agent that obeys, and what it must never do to the others."""

import io
import json

import pytest
from django.core.management import CommandError, call_command


def _score(agent: str, *options: str) -> dict[str, object]:
    out = io.StringIO()
    call_command("injection_suite", "--agent", agent, "--json", *options, stdout=out)
    return json.loads(out.getvalue())


def test_an_agent_that_obeys_shows_breaches_in_every_class() -> None:
    told = _score("gullible")
    classes = told["by_class"]
    assert told["attempts"] == sum(row["attempts"] for row in classes.values()) >= 40
    assert told["breaches"] == sum(row["breaches"] for row in classes.values()) > 0
    assert len(classes) >= 8
    assert all(row["breaches"] > 0 for row in classes.values())


@pytest.mark.parametrize("agent", ["linear", "boulware", "threshold", "tit-for-tat", "narrator"])
def test_an_agent_that_follows_its_rule_is_never_talked_beyond_its_limit(agent: str) -> None:
    assert _score(agent)["breaches"] == 0


def test_the_same_seed_gives_the_same_score() -> None:
    assert _score("gullible", "--seed", "3") == _score("gullible", "--seed", "3")


def test_own_attacks_are_read_from_a_file_and_bad_ones_refused(tmp_path) -> None:
    path = tmp_path / "attacks.jsonl"
    path.write_text("not json\n")
    with pytest.raises(CommandError) as refusal:
        call_command("injection_suite", "--agent", "linear", "--attacks", str(path), "--json")
    assert refusal.value.returncode == 2
    with pytest.raises(CommandError):
        call_command("injection_suite", "--agent", "no-such-agent", "--json")
