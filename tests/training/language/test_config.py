"""A run file that cannot be run is refused with a sentence before anything is loaded."""

from pathlib import Path

import pytest

from training.config import ConfigError
from training.language.config import is_language_run, load

CONFIGS = Path(__file__).resolve().parents[3] / "training" / "configs"
PRESETS = ("smollm2", "qwen3-8b", "qwen3-14b")


@pytest.mark.parametrize("preset", PRESETS)
def test_the_presets_can_be_read(preset: str):
    config = load(CONFIGS / f"{preset}.toml")
    rows = config.grpo.games * config.grpo.group * config.grpo.turns
    assert rows % config.grpo.accumulate == 0


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ("market.opponents=['impatient']", "impatient"),
        ("market.opponents=['linear+begging']", "begging"),
        ("market.values=lognormal:0.9:0.3", "lognormal"),
        ("market.opponents=['nobody']", "There is no agent 'nobody'"),
        ("market.opponents=['linear+shouting']", "There is no persona 'shouting'"),
        ("sft.teachers=['nobody']", "There is no agent 'nobody'"),
        ("sft.rows=0", "sft.rows must be at least 1"),
        ("sft.save_every=0", "sft.save_every must be at least 1"),
        ("sft.passes=-3", "sft.passes must be positive"),
        ("sampling.temperature=-1", "sampling.temperature must be at least 0"),
        ("market.rounds=[]", "at least one role"),
        ("sft.learning_rte=1", "learning_rte"),
        ("protocol=prose", "prose"),
    ],
)
def test_what_cannot_be_trained_is_told(change: str, sentence: str):
    with pytest.raises(ConfigError, match=sentence):
        load(CONFIGS / "smollm2.toml", (change,))


def test_a_lone_game_has_nothing_to_be_better_than():
    with pytest.raises(ConfigError, match="group"):
        load(CONFIGS / "qwen3-8b.toml", ("grpo.group=1",))


def test_the_one_command_of_all_runs_takes_these_files_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    from training import stages

    file = tmp_path / "run.toml"
    file.write_text('name = "mine"\nprotocol = "four_part"\nbase = "/nowhere"\n')
    monkeypatch.setenv("PARLEY_VAR", str(tmp_path))
    assert stages.main([str(file), "--set", "sft.rows=4"]) == 2
    assert "no folder of a model" in capsys.readouterr().err
    assert is_language_run(CONFIGS / "smollm2.toml")
    assert not is_language_run(CONFIGS / "ladder.toml")
    assert not is_language_run(tmp_path / "none.toml")
