"""A language model's run goes from lessons to a verdict by itself, can be watched, and stops early where it comes to nothing."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
import torch

from agents import backends
from markets.engine.protocol import Role
from tests.training.language import tiny
from training import guards, model_opponents, run_data, runs, stages
from training.language import imitation, lessons, watching
from training.language import stages as language
from training.language.config import LanguageRun
from training.language.demonstrations import collect

pytestmark = pytest.mark.xdist_group("tiny_language_run")


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.qwen3(tmp_path_factory.mktemp("base"))


@pytest.fixture(scope="module", autouse=True)
def no_back_ends() -> Any:
    yield
    backends.configure({})


def config(base: Path | str, **changes: Any) -> LanguageRun:
    made = tiny.config(base, name="watched", **changes)
    judging = msgspec.structs.replace(made.judging, scenarios=2, rounds=2, watch_every=2, watch_games=2)
    return msgspec.structs.replace(made, judging=judging)


def start(run: LanguageRun, folder: Path, *, resume: bool = True) -> int:
    """Start a run as the site does."""
    folder.mkdir(exist_ok=True)
    (folder / "run.json").write_bytes(msgspec.json.encode(run))
    return stages.main([str(folder / "run.json"), "--out", str(folder), *(["--resume"] if resume else [])])


@pytest.fixture(scope="module")
def done(base: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run of lessons that were chosen, both stages and a verdict."""
    torch.set_num_threads(1)
    folder, run = tmp_path_factory.mktemp("run"), config(base)
    content = lessons.encode(collect(run).games)
    lessons.write(folder, content)
    assert start(msgspec.structs.replace(run, data=run_data.digest(content)), folder) == 0
    return folder


def test_every_stage_leaves_its_figures_and_a_verdict_on_the_base_too(done: Path):
    judged = runs.figures(done, "judge")
    assert judged is not None
    assert {"base", "sft", "grpo"} <= set(judged)
    assert all(judged[name]["scenarios"] == 2 for name in ("base", "sft", "grpo"))
    for stage in runs.LANGUAGE_STAGES:
        figures = runs.figures(done, stage)
        assert figures is not None
        assert figures["wall_seconds"] > 0
        assert figures["peak_bytes"] > 100_000_000
    assert runs.stage(done) == ""
    (played, _) = runs.lines(done / "judge-sft.jsonl")
    assert "The learner is the" in played["game"][0]


def test_what_a_page_shows_is_logged_while_it_learns(done: Path):
    lines = runs.metrics(done)
    imitated, looks, trained = (
        [line for line in lines if line["kind"] == kind] for kind in ("imitate", "look", "train")
    )
    assert [(line["step"], line["steps"]) for line in imitated] == [(1, 2), (2, 2)]
    assert {"valid_rate", "share", "deal_rate", "adherence", "violations", "tokens_per_second"} <= set(looks[0])
    wanted = {"reward", "deal_rate", "unconditional_share", "adherence", "zero_spread_groups", "entropy", "kl/update"}
    wanted |= {"importance_ratio/mean", "importance_ratio/max", "tokens_per_second", "valid_rate"}
    assert all(wanted <= set(line) for line in trained)
    assert set(trained[0]["seconds"]) == {"generation", "environment", "learning"}
    assert trained[0]["kl/imitator"] == pytest.approx(0, abs=1e-4), "it starts as imitation left it"
    told = runs.samples(done, last=20)
    assert {("step" in game, game["chosen"]) for game in told} >= {(True, "best"), (False, "best"), (False, "worst")}
    assert all("list price" in game["text"] for game in told)


def test_what_is_done_is_not_done_again(done: Path, monkeypatch: pytest.MonkeyPatch):
    before = {file: file.read_bytes() for file in done.glob("*.json*")}
    for name in ("imitation", "reinforcement", "judging"):
        monkeypatch.setattr(language, name, None)
    run = msgspec.json.decode((done / "run.json").read_bytes(), type=LanguageRun)
    language.run(run, done, resume=True)
    assert {file: file.read_bytes() for file in done.glob("*.json*")} == before


def test_a_resumed_imitation_measures_nothing_twice(tmp_path: Path):
    for line in ({"kind": "imitate", "step": 1}, {"kind": "look", "step": 4}, {"kind": "train", "rollout": 1}):
        runs.append(tmp_path, {"rollout": 0, **line})
    runs.cut_steps(tmp_path, after_step=2)
    assert [line["kind"] for line in runs.metrics(tmp_path)] == ["imitate", "train"]


# --- What stops a run ---------------------------------------------------------------------------------


def stopped(run: LanguageRun, folder: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """The last words of a run that stops before anything was spent or written."""
    assert start(run, folder) == 2
    said = capsys.readouterr().err.strip().splitlines()[-1]
    assert said.startswith(stages.STOPPED), said
    assert not list(folder.glob("sft*"))
    return said


def test_a_base_that_is_no_model_stops_the_run(base: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert "no folder of a model" in stopped(config(tmp_path / "nowhere"), tmp_path / "a", capsys)
    broken = tmp_path / "broken"
    broken.mkdir()
    for file in base.iterdir():
        (broken / file.name).write_bytes(b"\0" * 64 if file.suffix == ".safetensors" else file.read_bytes())
    assert "cannot be loaded" in stopped(config(broken), tmp_path / "b", capsys)


def test_a_template_without_a_stop_token_stops_the_run(base: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    torn = tmp_path / "torn"
    torn.mkdir()
    for file in base.iterdir():
        (torn / file.name).write_bytes(file.read_bytes())
    template = torn / "chat_template.jinja"
    template.write_text(template.read_text().replace("<|im_end|>", ""))
    assert "stop token" in stopped(config(torn), tmp_path / "run", capsys)


def test_a_data_set_of_nothing_or_another_one_stops_the_run(
    base: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    lessons.write(tmp_path / "run", b"")
    lessons.write(tmp_path / "other", b"[[]]\n")
    empty = config(base, data=run_data.digest(b""))
    assert "empty" in stopped(empty, tmp_path / "run", capsys)
    assert "not the data set" in stopped(config(base, data="0" * 64), tmp_path / "other", capsys)


def test_a_device_that_is_not_there_and_a_disk_without_room_stop_the_run(
    base: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    assert "is not there" in stopped(config(base, device="cuda:63"), tmp_path / "a", capsys)
    monkeypatch.setattr(guards, "LEAST_FREE_BYTES", 10**18)
    assert "make room" in stopped(config(base), tmp_path / "b", capsys)


def test_a_disk_that_fills_leaves_what_was_saved_and_no_half_model(
    base: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(imitation.base, "save", full)
    assert start(config(base), tmp_path / "run") == 2
    assert "disk is full" in capsys.readouterr().err
    assert not (tmp_path / "run" / "sft").exists()
    assert runs.figures(tmp_path / "run", "sft") is None


def test_a_reward_that_pays_everybody_alike_stops_the_run(
    base: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    market = msgspec.structs.replace(tiny.MARKET, values="constant:0.01")  # Nobody can gain, so nobody deals.
    assert "without spread" in stopped(config(base, market=market), tmp_path / "run", capsys)


def test_a_loss_that_is_no_number_stops_the_run(
    base: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
):
    nothing = torch.tensor(float("nan"), requires_grad=True)
    monkeypatch.setattr(torch.nn.functional, "cross_entropy", lambda *_, **__: nothing)
    assert start(config(base), tmp_path / "run") == 2
    assert "loss of imitation was nan at step 0" in capsys.readouterr().err
    assert not (tmp_path / "run" / "sft").exists()


def test_the_search_and_the_looks_ask_no_language_model(monkeypatch: pytest.MonkeyPatch):
    asked = {"narrator": "linear", "embedded-model": "", "boulware": ""}
    monkeypatch.setattr(model_opponents, "asks_models", lambda slug: slug != "boulware")
    monkeypatch.setattr(model_opponents.registry, "get", lambda slug: type("Spec", (), {"plays_as": asked[slug]}))
    assert model_opponents.quiet(("narrator", "embedded-model", "boulware")) == ("linear", "linear", "boulware")


def test_a_game_is_told_in_words_that_people_read(base: Path):
    from training.language.demonstrations import demonstrate
    from training.language.judging import Finished

    shown = demonstrate(config(base), 0)
    told = watching.readable(Finished(shown.game, shown.played, []))
    assert "The learner is the seller" in told[0]
    assert any(line.startswith("seller (learner): offers") and "(thinks: " in line for line in told), told
    assert json.dumps(told).count("thinks") == sum("(learner)" in line for line in told)


def test_games_that_were_judged_in_parts_come_to_what_they_come_to_at_once(
    base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    from training.language.__main__ import main

    monkeypatch.setattr(backends, "_configs", {})
    monkeypatch.setattr(backends, "_seated", {})
    file = tmp_path / "run.json"
    file.write_bytes(msgspec.json.encode(config(base)))

    def judged(*options: str) -> dict[str, Any]:
        assert main(["judge", str(file), "--out", str(tmp_path / "out"), *options]) == 0
        found: dict[str, Any] = json.loads(capsys.readouterr().out)["base"]
        return {name: value for name, value in found.items() if "seconds" not in name}

    whole = judged()
    (tmp_path / "out" / "judge-base.jsonl").unlink()
    assert judged("--part", "1/2")["scenarios"] == 1
    assert judged("--part", "2/2") == whole
    assert whole["valid"]["answers"] == whole["answers"]
    assert sum(each["games"] for each in whole["valid_by_role"].values()) == 2
    for wrong in ("0/2", "3/2", "half"):
        with pytest.raises(SystemExit):
            main(["judge", str(file), "--part", wrong])


def test_what_a_model_wrote_in_the_place_of_a_move_can_be_read(base: Path, monkeypatch: pytest.MonkeyPatch):
    """Else whoever looks at a run sees that it fails and never how."""
    from agents.backends.fake import FakeBackend
    from training.language import judging
    from training.language.games import held_out_game

    run = config(base)
    monkeypatch.setattr(backends, "_configs", {})
    monkeypatch.setattr(backends, "_seated", {})
    mended = ["I ask for more.", "Thought: no.\nTalk: Hello there.\nAction: [TALK]"]
    backends.seat(FakeBackend([*mended, "Give me\nmoney!", "", *mended * 4], name=judging.BACKEND))
    game = next(game for k in range(20) if (game := held_out_game(run.market, k, rounds=4)).role is Role.SELLER)
    done = judging.table(game, judging.spec_of(judging.model_agent(run)))
    assert done.refused[0] == ["Give me\nmoney!", ""]
    told = "\n".join(watching.readable(done))
    assert "writes what is refused (malformed), and wrote “Give me / money!”, then “nothing”" in told
    assert "I ask for more" not in told, "what was mended is no refused move"
