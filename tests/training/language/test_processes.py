"""The papers' sizes train in several processes: here a two-layer Qwen3 goes the very same way in two."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.training.language import tiny

ROOT = Path(__file__).resolve().parents[3]
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("two_processes")]
"""One worker runs them all, so that the processes are started once."""


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, list[dict[str, Any]]]:
    """(folder of the runs, what the first process said) of one launch that trains in either protocol."""
    folder = tmp_path_factory.mktemp("processes")
    base = tiny.qwen3(folder / "base")
    files = []
    for protocol in ("four_part", "tools"):
        run = tiny.config(base, name=protocol, protocol=protocol)
        files.append(folder / f"{protocol}.json")
        files[-1].write_bytes(msgspec.json.encode(run))
    launched = subprocess.run(
        [
            *(sys.executable, "-m", "accelerate.commands.launch"),
            *("--config_file", str(ROOT / "training/configs/accelerate/two-cpu-processes.yaml")),
            *("--main_process_port", "0"),
            *("-m", "training.language", "train", *map(str, files)),
        ],
        cwd=ROOT,
        env=os.environ | {"PARLEY_VAR": str(folder), "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1"},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert launched.returncode == 0, launched.stderr[-3_000:]
    return folder, [json.loads(line) for line in launched.stdout.splitlines() if line.startswith('{"sft"')]


@pytest.mark.parametrize("place", [0, 1], ids=["four_part", "tools"])
def test_both_stages_take_their_steps_and_leave_an_adapter(trained: tuple[Path, list[dict[str, Any]]], place: int):
    folder, said = trained
    assert len(said) == 2, "only the first process speaks, once a run"
    stages = said[place]
    assert stages["sft"]["processes"] == stages["grpo"]["processes"] == 2
    assert stages["sft"]["steps"] == 2
    assert all(0 < loss < 10 for loss in stages["sft"]["loss"])
    assert stages["grpo"]["rollouts"] == 2
    assert all(-1 <= reward <= 1 for reward in stages["grpo"]["reward"])
    for stage in ("sft", "grpo"):
        kept = {path.name for path in (folder / "runs" / ("four_part", "tools")[place] / stage).iterdir()}
        assert {"adapter_config.json", "adapter_model.safetensors", "tokenizer.json"} <= kept
    taught, played = (weights(folder, ("four_part", "tools")[place], stage) for stage in ("sft", "grpo"))
    moved = [name for name in taught if name.endswith("lora_B.weight") and taught[name].any()]
    assert moved, "low-rank weights start at nothing"
    assert any((played[name] != taught[name]).any() for name in moved), "reinforcement goes on from there"


def weights(folder: Path, run: str, stage: str) -> dict[str, Any]:
    from safetensors.torch import load_file

    return dict(load_file(folder / "runs" / run / stage / "adapter_model.safetensors"))


def test_an_update_of_two_processes_is_that_of_one_with_twice_the_games(
    trained: tuple[Path, list[dict[str, Any]]], tmp_path: Path
):
    """Each process divides by the tokens of all, so splitting a batch changes no gradient."""
    import torch

    from training.language import imitation

    folder, _said = trained
    run = tiny.config(folder / "base", name="alone")
    run = msgspec.structs.replace(run, sft=msgspec.structs.replace(run.sft, batch=2))
    (tmp_path / "runs" / "alone").mkdir(parents=True)
    figures = imitation.train(run, tmp_path / "runs" / "alone")
    assert figures["games_imitated"] == 2, "every update is on both"
    alone, together = weights(tmp_path, "alone", "sft"), weights(folder, "four_part", "sft")
    assert alone.keys() == together.keys()
    gap = torch.cat([(alone[name].float() - together[name].float()).abs().flatten() for name in alone])
    moved = torch.cat([weight.float().abs().flatten() for name, weight in alone.items() if "lora_B" in name])
    assert gap.mean() < 0.01 * moved.mean()
