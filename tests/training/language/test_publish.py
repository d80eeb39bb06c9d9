"""What is published is small, whole, of the embedded model, and says how it came about."""

import json
from pathlib import Path

import pytest

from agents import adapters
from markets.engine.protocol import Role
from training.language import __main__ as command
from training.language.config import load
from training.language.publish import publish

FILE = Path(__file__).resolve().parents[3] / "training" / "configs" / "smollm2.toml"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """The folder of a run that left an adapter."""
    folder = tmp_path / "run"
    (folder / "sft").mkdir(parents=True)
    (folder / "sft" / "adapter_model.safetensors").write_bytes(b"weights")
    (folder / "sft" / "adapter_config.json").write_text("{}")
    (folder / "sft" / "tokenizer.json").write_text("{}")
    (folder / "sft.json").write_text(json.dumps({"rows_seen": 900}))
    (folder / "judge.json").write_text(json.dumps({"sft": {"share": 0.5}}))
    return folder


def ask(run: Path, to: Path, *more: str) -> int:
    return command.main(["publish", str(FILE), "--out", str(run), "--to", str(to), *more])


def test_the_card_says_what_it_learned_and_was_measured_at(run: Path, tmp_path: Path):
    assert ask(run, tmp_path / "to", "--slug", "haggler", "--title", "Haggler") == 0
    ((folder, card),) = adapters.cards(tmp_path / "to")
    assert folder.name == card.slug == "haggler"
    assert card.measured == {"sft": {"share": 0.5}}
    assert "900 decisions of linear, boulware, anchoring, micro" in card.trained_on
    assert sorted(path.name for path in folder.iterdir()) == [
        "adapter_config.json",
        "adapter_model.safetensors",
        "card.json",
        "judge.json",
        "run.toml",
        "sft.json",
    ]
    assert [path.name for path in (tmp_path / "to").iterdir()] == ["haggler"]


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--slug", "haggler"), "--slug and --title"),
        (("--slug", "linear", "--title", "Mine"), "an agent 'linear' already"),
    ],
)
def test_what_cannot_be_published_is_told(
    run: Path, tmp_path: Path, words: tuple[str, ...], sentence: str, capsys: pytest.CaptureFixture[str]
):
    assert ask(run, tmp_path / "to", *words) == 2
    assert sentence in capsys.readouterr().err
    assert not (tmp_path / "to").exists()


def test_a_published_adapter_is_replaced_only_when_asked(run: Path, tmp_path: Path):
    words = ("--slug", "haggler", "--title", "Haggler")
    assert ask(run, tmp_path / "to", *words) == 0
    assert ask(run, tmp_path / "to", *words) == 2
    assert ask(run, tmp_path / "to", *words, "--replace") == 0


def test_it_takes_only_the_seats_that_it_is_good_enough_for(
    run: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    words = ("--slug", "haggler", "--title", "Haggler", "--set", "market.roles=['seller', 'buyer']")
    assert ask(run, tmp_path / "to", *words, "--role", "seller") == 0
    ((_, card),) = adapters.cards(tmp_path / "to")
    assert card.roles == (Role.SELLER,)
    assert ask(run, tmp_path / "to", *words, "--replace") == 0
    ((_, card),) = adapters.cards(tmp_path / "to")
    assert set(card.roles) == set(Role)
    assert ask(run, tmp_path / "to", *words, "--replace", "--role", "buyer", "--set", "market.roles=['seller']") == 2
    assert "It did not learn to be a buyer." in capsys.readouterr().err


def test_large_foreign_and_missing_weights_are_refused(run: Path, tmp_path: Path):
    from training.config import ConfigError

    config = load(FILE)
    (run / "sft" / "adapter_model.safetensors").write_bytes(bytes(5_000_001))
    with pytest.raises(ConfigError, match="more than 5,000,000"):
        publish(config, run, tmp_path / "to", file=FILE, slug="haggler", title="Haggler")
    (run / "sft" / "adapter_model.safetensors").unlink()
    with pytest.raises(ConfigError, match="holds no adapter"):
        publish(config, run, tmp_path / "to", file=FILE, slug="haggler", title="Haggler")
    with pytest.raises(ConfigError, match="nothing that was trained"):
        publish(config, tmp_path, tmp_path / "to", file=FILE, slug="haggler", title="Haggler")
    other = load(FILE, ("base='/models/other'",))
    with pytest.raises(ConfigError, match="Only adapters of the embedded model"):
        publish(other, run, tmp_path / "to", file=FILE, slug="haggler", title="Haggler")
