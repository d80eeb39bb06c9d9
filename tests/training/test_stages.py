"""A whole run leaves its report, and what is published shows it."""

import json
from pathlib import Path

import msgspec
import pytest

from tests.training import tiny
from training import runs, stages
from training.config import Evaluation, Exploits, RunConfig, Sft
from training.publish import publish


@pytest.fixture(scope="module")
def config() -> RunConfig:
    return msgspec.structs.replace(
        tiny.config(rollouts=2),
        exploits=Exploits(games=20, climb_games=4, climb_steps=2),
        sft=Sft(demonstrations=64, steps=4),
        evaluation=Evaluation(every=1, episodes=8, final_episodes=40),
    )


@pytest.fixture(scope="module")
def folder(config: RunConfig, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("run")
    stages.run(config, path, resume=False)
    return path


def test_every_stage_leaves_what_a_report_needs(folder: Path) -> None:
    assert all(runs.figures(folder, stage) for stage in runs.STAGES)
    assert runs.stage(folder) == ""
    tricks = {row["trick"] for row in runs.figures(folder, "exploits")["rows"]}
    assert {"absurd ask", "best constant ask", "hill-climbed fixed sequence", "linear ladder"} <= tricks
    learner = runs.figures(folder, "evaluate")["grpo"]
    assert len(learner["transcripts"]) == 10
    for way in ("greedy", "sampled"):
        assert learner[way]["share_low"] <= learner[way]["share"] <= learner[way]["share_high"]
    assert [(row["turns"], row["cost"], row["trained"]) for row in learner["members"]] == [(3, 0, True), (3, 20, True)]
    looks = [line for line in runs.metrics(folder) if line["kind"] == "watch"]
    assert {"greedy", "sampled", "of_optimum", "of_optimum_worst"} <= set(looks[-1])


def test_a_stage_that_is_done_is_not_done_again(
    folder: Path, config: RunConfig, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = {file: file.read_bytes() for file in folder.glob("*.json")}
    monkeypatch.setattr(stages, "sft", None)
    monkeypatch.setattr(stages, "grpo", None)
    stages.run(config, folder, resume=True)
    assert {file: file.read_bytes() for file in folder.glob("*.json")} == before


def test_a_published_run_keeps_its_report_and_names_the_command_that_makes_it_again(
    folder: Path, config: RunConfig, tmp_path: Path
) -> None:
    file = tmp_path / "run.json"
    file.write_bytes(msgspec.json.encode(config))
    card = publish(config, folder, tmp_path / "out", file=file, slug="own", title="Own", episodes=10, replace=False)
    kept = tmp_path / "out" / "own"
    assert runs.figures(kept, "evaluate") == runs.figures(folder, "evaluate")
    assert runs.metrics(kept) == runs.metrics(folder)
    assert card.measured["greedy"]["episodes"] == 40
    assert [row["turns"] for row in card.measured["members"]] == [3, 3]
    assert card.command == f"python -m training.stages {file}"
    assert json.loads((kept / "card.json").read_text())["slug"] == "own"


def test_a_line_that_was_cut_off_is_not_read(tmp_path: Path) -> None:
    runs.append(tmp_path, {"rollout": 1})
    with (tmp_path / "metrics.jsonl").open("a") as metrics:
        metrics.write('{"rollout": 2, "rew')
    assert [line["rollout"] for line in runs.metrics(tmp_path)] == [1]
