"""Every rollout says how its games went, and what is undefined in them is left out."""

import json
from pathlib import Path

import msgspec
import pytest

from markets.engine.protocol import Role
from tests.training import tiny
from training import runs, watching
from training.config import Evaluation
from training.demonstrations import demonstrate
from training.progress import progress


def test_a_rollout_logs_its_economics_its_time_and_games_to_read(tmp_path: Path) -> None:
    run = msgspec.structs.replace(tiny.config(rollouts=2), evaluation=Evaluation(every=1, episodes=8))
    model, tokenizer = tiny.taught()
    tiny.trainer(tmp_path, run, model, tokenizer).train()
    lines = [line for line in runs.metrics(tmp_path) if line["kind"] == "train"]
    assert [line["rollout"] for line in lines] == [1, 2]
    for line in lines:
        assert {
            "reward", "deal_rate", "unconditional_share", "adherence", "violations", "opening_of_list", "coverage",
            "zero_spread_groups", "entropy", "kl/update", "importance_ratio/mean", "tokens", "tokens_per_second",
        } <= set(line)  # fmt: skip
        assert set(line["seconds"]) == {"generation", "environment", "learning", "looking"}
        assert all(seconds >= 0 for seconds in line["seconds"].values())
        assert line["kl/update"] >= 0
        assert "NaN" not in json.dumps(line)
    games = runs.samples(tmp_path, last=10)
    assert [game["chosen"] for game in games[:3]] == ["worst", "middle", "best"]
    assert games[2]["reward"] >= games[1]["reward"] >= games[0]["reward"]
    assert games[0]["text"].startswith("<|system|>")
    runs.cut(tmp_path, after_rollout=1)
    assert {game["rollout"] for game in runs.samples(tmp_path, last=10)} == {1}
    assert progress(run, lines, stage="grpo").done == 2


def test_groups_without_spread_are_counted_and_undefined_figures_are_missing() -> None:
    episodes = [each.episode for each in demonstrate(tiny.GAME, episodes=4, seed=1)]
    found = watching.figures(episodes, [0.1, 0.1, 0.0, 0.5], group=2, role=Role.SELLER)
    assert found["zero_spread_groups"] == 0.5
    assert None not in found.values()
    assert "fixation" not in found or 0 <= found["fixation"] <= 1


@pytest.mark.parametrize(("paid", "keys"), [([], []), ([0.2], ["best", "middle", "worst"])])
def test_games_to_read_are_chosen_by_what_they_paid(paid: list[float], keys: list[str]) -> None:
    assert list(watching.chosen(paid)) == keys
    assert watching.chosen([0.3, -1.0, 0.9]) == {"best": 2, "middle": 0, "worst": 1}
