"""The script that a GPU machine runs once goes all its way on a processor, in seconds, with a model of two layers."""

import json
from pathlib import Path

import pytest

from tests.training.language import tiny
from training import gpu_check


def test_it_judges_before_between_and_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "")
    base = tiny.qwen3(tmp_path / "base")
    small = (
        *("adapter.first_layer=0", "sft.rows=6", "sft.longest=4096", "grpo.rollouts=1", "grpo.games=1", "grpo.group=2"),
        *("grpo.turns=2", "sampling.longest=4", "sampling.together=4", "judging.scenarios=8", "precision=fp32"),
    )
    changes = [word for change in small for word in ("--set", change)]
    status = gpu_check.main(["--device", "cpu", "--minutes", "0.05", "--base", str(base), *changes])
    said, complaint = capsys.readouterr()
    assert status == 0, complaint
    found = json.loads(said.splitlines()[-1])
    assert found["device"] == "cpu"
    for stage in ("before", "after_sft", "after_grpo"):
        assert found[stage]["scenarios"] in (4, 8)
        assert found[stage]["valid_rate"] == 0.0, "nobody can speak after two steps"
        assert found[stage]["share"] == 0.0
    assert found["sft"]["steps"] >= 1
    assert found["grpo"]["rollouts"] == 1


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["--minutes", "9", "--device", "cpu"], "at most 8"),
        (["--device", "cpu", "--base", "/nowhere"], "no folder of a model"),
        (["--device", "cpu", "--set", "sft.rows=0"], "sft.rows must be at least 1"),
    ],
)
def test_what_cannot_be_checked_is_told(words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]):
    assert gpu_check.main(words) == 2
    assert sentence in capsys.readouterr().err


def test_a_device_that_is_not_there_is_told(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    import torch

    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert gpu_check.main([]) == 2
    assert "no CUDA device" in capsys.readouterr().err
