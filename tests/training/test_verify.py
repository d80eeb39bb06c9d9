"""Judging what is shipped: a claim that does not hold must show, and training again must survive a kill."""

import json
from pathlib import Path
from typing import Any

import pytest

from agents.learned import grammars
from agents.learned.published import SHIPPED
from tests.training import tiny
from training import guards, runs, sft, verify
from training import model as models
from training import tokenizer as words
from training.config import ConfigError

SMALL = """
name = "small-1"
[game]
sizes = [[2, 3]]
[model]
hidden = 32
heads = 2
feed_forward = 48
[sft]
demonstrations = 64
steps = 4
[grpo]
rollouts = 6
games = 2
group = 4
save_every = 1
[evaluation]
every = 0
final_episodes = 20
[verify]
greedy = 0.99
sampled = 0.01
sizes = [[2, 3], [3, 3]]
episodes = 100
seeds = [1, 2]
"""


@pytest.fixture
def shipped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of checkpoints with one that knows little; runs lie beside it."""
    monkeypatch.setenv("PARLEY_VAR", str(tmp_path / "var"))
    models.save(tmp_path / "shipped" / "novice", *tiny.taught())
    (tmp_path / "shipped" / "novice" / "run.toml").write_text(SMALL)
    return tmp_path / "shipped"


def judged(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, list[dict[str, Any]]]:
    capsys.readouterr()
    status = verify.main(["--json", "--processes", "1", *arguments])
    return status, json.loads(capsys.readouterr().out)


def test_a_checkpoint_that_falls_short_is_reported_low(shipped: Path, capsys: pytest.CaptureFixture[str]) -> None:
    status, rows = judged(capsys, "--folder", str(shipped))
    assert status == 1
    assert [row["metric"] for row in rows[::2]] == ["greedy share, N=2 T=3 cost=0", "greedy share, N=3 T=3 cost=0"]
    assert set(rows[0]) >= {"name", "seed", "metric", "reference", "measured", "ci_low", "ci_high", "ok"}
    assert (rows[0]["name"], rows[0]["seed"], rows[0]["ok"]) == ("novice", 1, False)
    assert rows[0]["ci_low"] <= rows[0]["measured"] <= rows[0]["ci_high"] < rows[0]["reference"]


OVER_A_CATALOGUE = """
name = "hall-1"
[game]
sizes = [[3, 4]]
dialogue = "ledger"
catalogue = "negotiation_site/starter/catalogue.csv"
values = "bands"
reward = "rlvr_seller_multi"
[verify]
greedy = 0.0
sampled = 0.01
episodes = 12
above = ["optimal-ladder"]
axes = ["buyers-2", "buyer-type"]
"""


def test_over_a_catalogue_a_checkpoint_is_judged_beside_rules_and_on_each_axis(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    tokenizer = words.build(grammars.LEDGER)
    models.save(tmp_path / "novice", models.build(tiny.MODEL, tokenizer, seed=1), tokenizer)
    (tmp_path / "novice" / "run.toml").write_text(OVER_A_CATALOGUE)
    status, rows = judged(capsys, "--folder", str(tmp_path))
    assert status == 1
    assert [row["metric"].partition(", ")[2] for row in rows] == ["trained games", "buyers-2", "buyer-type"]
    assert all(row["beside"]["optimal-ladder"] > row["measured"] and not row["ok"] for row in rows)


def test_nothing_shipped_is_no_success(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert judged(capsys, "--folder", str(tmp_path)) == (1, [])


def test_training_again_goes_on_after_a_kill_and_then_repeats_nothing(
    shipped: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    arguments = ("--retrain", "--folder", str(shipped), "--episodes", "20")
    monkeypatch.setattr(guards, "FLAT_ROLLOUTS", 100)  # A model of six steps may well be paid the same in all of them.
    real = runs.append

    def killed(path: Path, line: dict[str, Any]) -> None:
        if line.get("rollout") == 4:
            raise KeyboardInterrupt
        real(path, line)

    monkeypatch.setattr(runs, "append", killed)
    with pytest.raises(KeyboardInterrupt):
        judged(capsys, *arguments)
    monkeypatch.setattr(runs, "append", real)
    (folder,) = (tmp_path / "var" / "runs").iterdir()
    imitated = (folder / "sft.json").read_bytes()
    assert not (folder / "grpo.json").exists()

    _, rows = judged(capsys, *arguments)
    assert [(row["seed"], row["metric"][:7]) for row in rows] == [
        (s, w) for s in (1, 2) for w in ("greedy ", "sampled") * 2
    ]
    assert (folder / "sft.json").read_bytes() == imitated
    assert runs.figures(folder, "grpo")["resumed_from"] == "checkpoint-6"
    assert [line["rollout"] for line in runs.metrics(folder) if line["rollout"]] == [1, 2, 3, 4, 5, 6]

    monkeypatch.setattr(sft, "train", None)
    monkeypatch.setattr(verify.grpo, "train", None)
    assert judged(capsys, *arguments)[1] == rows


def test_a_smaller_budget_is_a_run_of_its_own(shipped: Path) -> None:
    ((_, data),) = verify.checkpoints(shipped)
    own = verify.configuration(data, seed=2)
    small = verify.configuration(data, seed=2, overrides=("grpo.rollouts=2",))
    assert (own.name, own.seed, own.grpo.rollouts, small.grpo.rollouts) == ("small-2", 2, 6, 2)
    assert own.sha256 != small.sha256
    with pytest.raises(ConfigError, match="small-1"):
        verify.configuration(data, overrides=("grpo.rolouts=2",))


def test_every_shipped_checkpoint_is_judged_on_enough_games() -> None:
    """A checkpoint without its run's file would be shipped unjudged."""
    found = verify.checkpoints(SHIPPED)
    assert {path.name for path, _ in found} == {file.parent.name for file in SHIPPED.glob("*/card.json")}
    for path, data in found:
        config = verify.configuration(data)
        figures = list(verify.figures(path, config, name=path.name))
        assert figures
        if config.game.catalogue:
            assert all(each.episodes >= 1000 and each.least > 0 for each in figures)
            assert config.verify.above
        else:
            assert all(each.episodes >= 4000 and each.least >= 0.95 for each in figures)
