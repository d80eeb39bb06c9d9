"""The command measures an agent in a frozen suite, without a market or a table."""

import json
from io import StringIO
from typing import Any

import pytest
from django.core.management import CommandError, call_command


def benchmark(*words: str) -> dict[str, Any]:
    out = StringIO()
    call_command("benchmark", *words, "--json", stdout=out, stderr=StringIO())
    return json.loads(out.getvalue(), parse_constant=pytest.fail)


def test_a_suite_needs_no_table_and_says_what_was_played() -> None:
    document = benchmark("--suite", "p1", "--agent", "falling-ladder")
    assert (document["suite"], document["version"], document["episodes"]) == ("p1", 1, 512)
    assert document["share_low"] < document["share"] < document["share_high"]
    assert 0 < document["allocation_quality_rescaled"] < 1
    assert len(document["sha256"]) == 64
    own = next(row for row in document["references"] if row["agent"] == "falling-ladder")
    assert own["share"] == pytest.approx(document["share"])


def test_the_same_agent_gives_the_same_figures() -> None:
    first, second = (benchmark("--suite", "p1", "--agent", "one-pass") for _time in range(2))
    assert {**first, "seconds": 0} == {**second, "seconds": 0}


def test_a_role_can_be_asked_for() -> None:
    document = benchmark("--suite", "p1", "--agent", "linear", "--role", "buyer")
    assert document["role"] == "buyer"
    assert set(document["by_role"]) == {"buyer"}


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--suite", "p9", "--agent", "linear"), "invalid choice"),
        (("--suite", "p1", "--agent", "nobody"), "There is no agent 'nobody'"),
        (("--suite", "p1", "--agent", "greedy"), "does not play seller in a multi_buyer market"),
        (("--suite", "p1", "--agent", "one-pass", "--role", "buyer"), "does not play buyer"),
    ],
    ids=["suite", "agent", "family", "role"],
)
def test_what_cannot_be_played_is_a_sentence(words, sentence) -> None:
    with pytest.raises(CommandError, match=sentence):
        benchmark(*words)
