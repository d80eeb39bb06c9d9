"""A run that can come to nothing stops before it takes time, with a sentence, and leaves nothing half-written."""

import json
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest
import torch

from tests.training import tiny
from training import dialogues, guards, run_data, runs, sft, stages
from training import model as models
from training import tokenizer as words
from training.config import Evaluation, Exploits, Game, RunConfig, Sft


def config(**changes: Any) -> RunConfig:
    made = msgspec.structs.replace(
        tiny.config(rollouts=1),
        exploits=Exploits(games=2, climb_games=1, climb_steps=0),
        sft=Sft(demonstrations=16, steps=1, batch=4),
        evaluation=Evaluation(every=0, episodes=4, final_episodes=8),
    )
    return msgspec.structs.replace(made, **changes)


def start(run: RunConfig, folder: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """Start a run as the site does; its last words."""
    folder.mkdir(exist_ok=True)
    (folder / "run.json").write_bytes(msgspec.json.encode(run))
    assert stages.main([str(folder / "run.json"), "--out", str(folder)]) == 2
    said = capsys.readouterr().err.strip().splitlines()[-1]
    assert said.startswith(stages.STOPPED)
    assert not (folder / "exploits.json").exists()  # Nothing was spent.
    assert not (folder / "sft").exists()
    return said


@pytest.fixture
def base(tmp_path: Path) -> Path:
    tokenizer = words.build()
    models.save(tmp_path / "base", models.build(tiny.MODEL, tokenizer, seed=0), tokenizer)
    return tmp_path / "base"


def test_a_data_set_of_nothing_stops_the_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    dialogues.write(folder, b"")
    assert "empty" in start(config(data=run_data.digest(b"")), folder, capsys)


def test_a_data_set_that_is_not_the_one_chosen_stops_the_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    dialogues.write(folder, b'[["assistant", "leave"]]\n')
    assert "not the data set" in start(config(data="0" * 64), folder, capsys)


def test_a_template_without_a_stop_token_stops_the_run(
    base: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    template = base / "chat_template.jinja"
    template.write_text(template.read_text().replace(" <|end|>{% endgeneration %}", "{% endgeneration %}"))
    assert "chat template" in start(config(base=str(base)), tmp_path / "run", capsys)


def test_a_device_that_is_not_there_stops_the_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "is not there" in start(config(device="cuda:63"), tmp_path / "run", capsys)
    assert guards.missing_device("tpu")
    assert not guards.missing_device("cpu")
    (tmp_path / "nvidia1").touch()
    assert not guards.missing_device("cuda:1", root=tmp_path)


def test_a_disk_without_room_stops_the_run(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(guards, "LEAST_FREE_BYTES", 10**18)
    assert "make room" in start(config(), tmp_path / "run", capsys)


def test_a_disk_that_fills_ends_the_run_and_leaves_no_half_model(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise OSError(28, "No space left on device")

    tokenizer = words.build()
    model = models.build(tiny.MODEL, tokenizer, seed=0)
    models.save(tmp_path / "kept", model, tokenizer)
    before = (tmp_path / "kept" / "model.safetensors").read_bytes()
    monkeypatch.setattr(type(tokenizer), "save_pretrained", full)
    for name in ("kept", "new"):
        with pytest.raises(OSError, match="No space"):
            models.save(tmp_path / name, models.build(tiny.MODEL, tokenizer, seed=1), tokenizer)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["kept"]
    assert (tmp_path / "kept" / "model.safetensors").read_bytes() == before
    monkeypatch.setattr(stages, "run", full)
    assert "disk is full" in start(config(), tmp_path / "run", capsys)


def test_a_loss_that_is_no_number_stops_imitation(base: Path, tmp_path: Path) -> None:
    model, tokenizer = models.load(base)
    with torch.no_grad():
        model.get_output_embeddings().weight.fill_(float("nan"))
    models.save(base, model, tokenizer)
    with pytest.raises(guards.Stopped, match="loss of imitation was nan at step 0"):
        sft.train(config(base=str(base)), tmp_path / "run")
    assert not (tmp_path / "run" / "sft").exists()


def test_a_loss_that_is_no_number_stops_reinforcement(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model, tokenizer = tiny.taught()
    trainer = tiny.trainer(tmp_path, config(), model, tokenizer)
    parent = type(trainer).__mro__[1]
    monkeypatch.setattr(parent, "_compute_loss", lambda *_: torch.tensor(float("inf"), requires_grad=True))
    with pytest.raises(guards.Stopped, match="loss of reinforcement was inf"):
        trainer.train()


def test_a_reward_that_pays_everybody_alike_stops_the_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    nothing_to_gain = Game(sizes=((2, 3),), costs=(0.0,), values="uniform:0:0.001")
    assert "spread" in start(config(game=nothing_to_gain), tmp_path / "run", capsys)


def test_rollouts_without_any_spread_end_a_run_that_is_on_its_way() -> None:
    spread = guards.Spread()
    for _ in range(guards.FLAT_ROLLOUTS - 1):
        spread.look(1.0, reward=0.0)
    spread.look(0.5, reward=0.1)
    for _ in range(guards.FLAT_ROLLOUTS - 1):
        spread.look(1.0, reward=0.0)
    with pytest.raises(guards.Stopped, match="paid the same"):
        spread.look(1.0, reward=0.0)


def test_a_base_that_is_no_model_stops_the_run(base: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "not a folder" in start(config(base=str(tmp_path / "nowhere")), tmp_path / "a", capsys)
    empty = tmp_path / "empty"
    empty.mkdir()
    assert "not a model" in start(config(base=str(empty)), tmp_path / "b", capsys)
    (base / "model.safetensors").write_bytes(b"\0" * 64)
    assert "cannot be loaded" in start(config(base=str(base)), tmp_path / "c", capsys)
    (base / "config.json").write_text(json.dumps({"hidden": 3}))
    assert "model_type" in start(config(base=str(base)), tmp_path / "d", capsys)


def test_a_run_that_starts_from_a_base_has_its_weights(base: Path) -> None:
    model, _ = sft.start(config(base=str(base)))
    kept, _ = models.load(base)
    assert torch.equal(model.get_input_embeddings().weight, kept.get_input_embeddings().weight)


def test_games_are_read_as_the_learner_would_write_them(tmp_path: Path) -> None:
    from training.demonstrations import demonstrate

    found = list(demonstrate(tiny.GAME, episodes=8, seed=1))
    for each in found:
        own = dialogues.compact(each.episode.scenario, each.episode.log)
        assert own is not None
        last = max(k for k, message in enumerate(each.messages) if message.role == "assistant")
        assert own == each.messages[: last + 1]
    content = dialogues.encode([each.messages for each in found])
    dialogues.write(tmp_path, content)
    assert dialogues.read(tmp_path, sha256=run_data.digest(content)) == [each.messages for each in found]
    assert runs.figures(tmp_path, "sft") is None
    assert "torch" in sys.modules  # The trainer's side has it; the site's has not (tests of training_pages).
