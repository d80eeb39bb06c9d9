"""A benchmark that flatters us would be worse than none."""

import json
from pathlib import Path

import pytest

from benchmarks import ours, run
from benchmarks.run import Absolute, Comparison, Peer, Row, Scaling


@pytest.mark.parametrize("case", sorted(ours.CASES))
def test_each_case_plays_whole_games_and_counts_its_messages(case):
    told = ours.CASES[case](0.01)
    assert told["games"] >= 1
    assert told["messages"] >= told["games"]
    assert told["cpu_s"] >= 0.01


def test_a_peer_that_cannot_be_installed_is_skipped_with_the_reason(tmp_path: Path):
    with pytest.raises(run.Unmeasured) as reason:
        run.prepare(Peer("nobody", str(tmp_path / "no-such-package"), "nobody.py"), tmp_path)
    assert str(reason.value)


def test_a_command_that_fails_gives_its_last_line_as_the_reason():
    with pytest.raises(run.Unmeasured, match="ValueError: out of order"):
        run.measure(["python3", "-c", "raise ValueError('out of order')"])


def test_faster_is_above_one_and_slower_below():
    row = Row("x / peer", "times faster", gate=1.5, goal=8, per_round=[1.0, 2.0, 9.0], ours_us=[1], theirs_us=[2])
    assert row.summary()["median"] == 2.0
    assert (row.summary()["gate_met"], row.summary()["goal_met"]) == (True, False)
    row = Row("large / small", "times the cost", gate=3, goal=1.5, per_round=[4.0], ours_us=[4], theirs_us=[1])
    assert (row.summary()["gate_met"], row.summary()["goal_met"]) == (False, False)


def test_the_file_holds_every_row_measured_or_skipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    missing = Peer("nobody", str(tmp_path / "no-such-package"), "nobody.py")
    monkeypatch.setattr(run, "COMPARISONS", (Comparison("a / nobody", "typed-bilateral", missing, "x", 1, 2),))
    monkeypatch.setattr(run, "SCALINGS", (Scaling("b / a", "8-buyers-32-offers", "typed-bilateral", 3, 1.5),))
    monkeypatch.setattr(run, "ABSOLUTES", (Absolute("c", "typed-bilateral", 50, 20),))
    monkeypatch.setenv("PARLEY_VAR", str(tmp_path))
    out = tmp_path / "out.json"
    assert run.main(["--rounds", "1", "--seconds", "0.05", "--json", str(out)]) == 0
    told = json.loads(out.read_text())
    assert [row["name"] for row in told["rows"]] == ["a / nobody", "b / a", "c"]
    assert told["rows"][0]["skipped"]
    assert told["rows"][1]["median"] > 0


@pytest.mark.parametrize("arguments", [["--rounds", "0"], ["--seconds", "0"], ["--json", "/no/such/folder/out.json"]])
def test_arguments_that_make_no_sense_are_refused(arguments):
    with pytest.raises(SystemExit) as refusal:
        run.main(arguments)
    assert refusal.value.code == 2
