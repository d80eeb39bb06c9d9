"""An adapter that training left is the same adapter in llama.cpp, and leaves the model beside it as it was."""

import json
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agents.inference import adapter, embedded
from agents.inference.engine import EngineError
from agents.inference.llama import LlamaEngine

WIDTH, HEADS, RANK = 576, 9, 4


def weights(rng: np.random.Generator, *, size: float = 0.1) -> dict[str, np.ndarray[Any, Any]]:
    """Of one layer's queries and of one layer's way down."""
    shapes = {
        "base_model.model.model.layers.3.self_attn.q_proj.lora_A.weight": (RANK, WIDTH),
        "base_model.model.model.layers.3.self_attn.q_proj.lora_B.weight": (WIDTH, RANK),
        "base_model.model.model.layers.29.mlp.down_proj.lora_A.weight": (RANK, 1536),
        "base_model.model.model.layers.29.mlp.down_proj.lora_B.weight": (WIDTH, RANK),
    }
    return {name: (size * rng.standard_normal(shape)).astype(np.float32) for name, shape in shapes.items()}


def saved(folder: Path, tensors: dict[str, np.ndarray[Any, Any]], *, kind: str = "BF16", **settings: Any) -> Path:
    """The folder as peft writes it."""
    folder.mkdir(exist_ok=True)
    header, blocks, at = {}, [], 0
    for name, values in tensors.items():
        if kind == "BF16":
            block = (values.astype("<f4").view("<u4") >> 16).astype("<u2").tobytes()
        else:
            block = values.astype({"F32": "<f4", "F16": "<f2", "F64": "<f8"}[kind]).tobytes()
        header[name] = {"dtype": kind, "shape": list(values.shape), "data_offsets": [at, at + len(block)]}
        at += len(block)
        blocks.append(block)
    head = json.dumps(header).encode()
    (folder / adapter.WEIGHTS).write_bytes(len(head).to_bytes(8, "little") + head + b"".join(blocks))
    (folder / adapter.CONFIG).write_text(json.dumps({"lora_alpha": 8, "r": RANK} | settings))
    return folder


@pytest.fixture
def rng() -> np.random.Generator:
    return np.random.default_rng(5)


@pytest.mark.parametrize(("kind", "gap"), [("F32", 0.0), ("F16", 1e-3), ("BF16", 1e-2)])
def test_every_kind_of_number_is_read(tmp_path: Path, rng: np.random.Generator, kind: str, gap: float):
    tensors = weights(rng)
    made, alpha = adapter.read(saved(tmp_path / "a", tensors, kind=kind))
    assert alpha == 8.0
    assert set(made) == {
        f"blk.{layer}.{name}.weight.lora_{side}" for layer, name in ((3, "attn_q"), (29, "ffn_down")) for side in "ab"
    }
    down = tensors["base_model.model.model.layers.29.mlp.down_proj.lora_A.weight"]
    assert np.abs(made["blk.29.ffn_down.weight.lora_a"] - down).max() <= gap


def test_rows_of_a_head_change_from_halves_to_pairs():
    """A head of four: rows 0, 1 and their partners 2, 3 become 0, 2, 1, 3."""
    rows = np.arange(8, dtype=np.float32)[:, None]
    assert adapter.turned(rows, 2)[:, 0].tolist() == [0, 2, 1, 3, 4, 6, 5, 7]


@pytest.mark.skipif(find_spec("gguf") is None, reason="gguf is part of the full install")
def test_the_file_says_what_llama_cpp_asks_for(tmp_path: Path, rng: np.random.Generator):
    from gguf import GGUFReader

    tensors, alpha = adapter.read(saved(tmp_path / "a", weights(rng)))
    adapter.write_gguf(tmp_path / "a.gguf", tensors, alpha=alpha)
    reader = GGUFReader(tmp_path / "a.gguf")
    assert reader.fields["general.type"].contents() == "adapter"
    assert reader.fields["adapter.lora.alpha"].contents() == 8.0
    for tensor in reader.tensors:
        assert np.allclose(tensor.data, tensors[tensor.name], atol=1e-3), tensor.name
    assert len(reader.tensors) == len(tensors)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"kind": "F64"}, "F64 numbers"),
        ({"use_dora": True}, "does not know"),
        ({"lora_alpha": "much"}, "no adapter that can be read"),
    ],
)
def test_what_cannot_be_served_is_told(tmp_path: Path, rng: np.random.Generator, change: dict[str, Any], sentence: str):
    with pytest.raises(EngineError, match=sentence):
        adapter.read(saved(tmp_path / "a", weights(rng), **change))


def test_foreign_weights_cut_off_files_and_other_shapes_are_refused(tmp_path: Path, rng: np.random.Generator):
    tensors = weights(rng)
    foreign = saved(tmp_path / "foreign", {"lm_head.lora_A.weight": np.zeros((1, 1), np.float32)})
    with pytest.raises(EngineError, match="no place for"):
        adapter.read(foreign)
    cut = saved(tmp_path / "cut", tensors)
    (cut / adapter.WEIGHTS).write_bytes((cut / adapter.WEIGHTS).read_bytes()[:40])
    with pytest.raises(EngineError, match="no adapter that can be read"):
        adapter.read(cut)
    name = "base_model.model.model.layers.3.self_attn.q_proj.lora_B.weight"
    with pytest.raises(EngineError, match="not for a model with 9 heads"):
        adapter.read(saved(tmp_path / "other", {name: np.zeros((512, RANK), np.float32)}))
    with pytest.raises(EngineError, match="holds no adapter"):
        adapter.ready(tmp_path / "nowhere")
    with pytest.raises(EngineError, match="without weights"):
        adapter.read(saved(tmp_path / "empty", {}))


def test_the_file_is_made_once(tmp_path: Path, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PARLEY_VAR", str(tmp_path / "var"))
    folder = saved(tmp_path / "haggler", weights(rng))
    name, file = adapter.ready(folder)
    assert (name, file.is_file()) == ("haggler", True)
    before = file.stat().st_mtime_ns
    assert adapter.ready(folder) == (name, file)
    assert file.stat().st_mtime_ns == before
    assert [path.name for path in file.parent.iterdir()] == [file.name], "nothing half-written is left"


@pytest.mark.slow
@pytest.mark.language_model
@pytest.mark.xdist_group("embedded")
@pytest.mark.skipif(bool(embedded.missing()), reason="the embedded model is not installed")
def test_an_adapter_changes_its_own_answers_and_no_others(tmp_path: Path, rng: np.random.Generator):
    tensors, alpha = adapter.read(saved(tmp_path / "loud", weights(rng, size=0.5)))
    adapter.write_gguf(tmp_path / "loud.gguf", tensors, alpha=alpha)
    path = embedded.model_file()
    assert path is not None
    model = LlamaEngine(path, name="plain", threads=1, slots=1, adapters=[("loud", tmp_path / "loud.gguf")])
    (taught,) = model.taught
    taught.load()
    request = {"messages": [{"role": "user", "content": "Say hello."}], "max_tokens": 6, "temperature": 0.0}

    def text(engine: Any) -> str:
        return str(engine.complete(request)["choices"][0]["message"]["content"])

    plain, loud, again = text(model), text(taught), text(model)
    assert plain == again
    assert loud != plain
    pieces: list[str] = []
    taught.stream(request, lambda chunk: bool(pieces.append(_piece(chunk))))
    assert "".join(pieces) == loud


def _piece(chunk: dict[str, Any]) -> str:
    return next((str(choice["delta"].get("content") or "") for choice in chunk.get("choices", ())), "")
