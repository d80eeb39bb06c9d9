"""Low-rank adapters of the embedded model, for llama.cpp: from what training saves to what the bindings load.

Here: reading a folder with `adapter_config.json` and `adapter_model.safetensors` (peft's names), writing the
same numbers as a GGUF file. Not here: training them, serving (`llama`). numpy alone, no torch.

Contract: an adapter that is not for a model of this shape, or holds weights that cannot be told, is refused
with a sentence (`EngineError`) and nothing is left half-written. llama.cpp turns each head's query and
key rows round by pairs (rotary positions, interleaved); an adapter's rows are turned likewise.
"""

import hashlib
import json
import os
import re
import struct
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from agents.inference.engine import EngineError

Array = NDArray[np.float32]

CONFIG, WEIGHTS = "adapter_config.json", "adapter_model.safetensors"
_NAME = re.compile(r"(?:base_model\.model\.)?model\.layers\.(\d+)\.(?:self_attn|mlp)\.(\w+)\.lora_([AB])\.weight")
_TENSORS = {
    "q_proj": "attn_q",
    "k_proj": "attn_k",
    "v_proj": "attn_v",
    "o_proj": "attn_output",
    "gate_proj": "ffn_gate",
    "up_proj": "ffn_up",
    "down_proj": "ffn_down",
}
_ALIGNMENT = 32
_U32, _F32, _TEXT = 4, 6, 8
"""Types of GGUF's values."""
_TENSOR_F16 = 1
LARGEST_BYTES = 64_000_000


class Shape(NamedTuple):
    """What of a model an adapter's rows depend on."""

    heads: int
    key_value_heads: int


EMBEDDED_SHAPE = Shape(heads=9, key_value_heads=3)
"""SmolLM2-135M's."""


def is_adapter(folder: Path) -> bool:
    """Whether a folder holds an adapter."""
    return (folder / CONFIG).is_file() and (folder / WEIGHTS).is_file()


def ready(folder: Path) -> tuple[str, Path]:
    """(name, GGUF file) of an adapter's folder; the file is made once. Raises `EngineError`."""
    if not is_adapter(folder):
        raise EngineError(500, f"{folder} holds no adapter: it needs {CONFIG} and {WEIGHTS}.")
    mark = hashlib.sha256((folder / WEIGHTS).read_bytes() + (folder / CONFIG).read_bytes()).hexdigest()[:16]
    file = Path(os.environ.get("PARLEY_VAR", "var")) / "models" / f"adapter-{mark}.gguf"
    if not file.is_file():
        tensors, alpha = read(folder)
        write_gguf(file, tensors, alpha=alpha)
    return folder.name, file


def read(folder: Path) -> tuple[dict[str, Array], float]:
    """(tensors by their names in GGUF, alpha) of an adapter. Raises `EngineError`."""
    try:
        settings = json.loads((folder / CONFIG).read_text(encoding="utf-8"))
        alpha = float(settings["lora_alpha"])
        raw = _safetensors((folder / WEIGHTS).read_bytes())
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise EngineError(500, f"{folder} holds no adapter that can be read: {error}") from error
    if settings.get("use_rslora") or settings.get("use_dora"):
        raise EngineError(500, f"{folder} holds an adapter of a kind that llama.cpp does not know.")
    made: dict[str, Array] = {}
    for name, values in raw.items():
        match = _NAME.fullmatch(name)
        if match is None or match[2] not in _TENSORS:
            raise EngineError(500, f"{folder} holds a weight that llama.cpp has no place for: {name}.")
        layer, module, side = match.groups()
        if side == "B" and module in ("q_proj", "k_proj"):
            heads = EMBEDDED_SHAPE.heads if module == "q_proj" else EMBEDDED_SHAPE.key_value_heads
            values = turned(values, heads)
        made[f"blk.{layer}.{_TENSORS[module]}.weight.lora_{side.lower()}"] = values
    if not made:
        raise EngineError(500, f"{folder} holds an adapter without weights.")
    return made, alpha


def turned(rows: Array, heads: int) -> Array:
    """Rows of every head in llama.cpp's order: halves become pairs."""
    if rows.shape[0] % (2 * heads):
        raise EngineError(500, f"An adapter with {rows.shape[0]} rows is not for a model with {heads} heads.")
    return rows.reshape(heads, 2, rows.shape[0] // heads // 2, *rows.shape[1:]).swapaxes(1, 2).reshape(rows.shape)


def write_gguf(path: Path, tensors: dict[str, Array], *, alpha: float) -> None:
    """The adapter as GGUF, half precision; appears whole or not at all."""
    head = [b"GGUF", struct.pack("<IQQ", 3, len(tensors), 4)]
    head += [_pair("general.type", "adapter"), _pair("general.architecture", "llama"), _pair("adapter.type", "lora")]
    head.append(_string("adapter.lora.alpha") + struct.pack("<If", _F32, alpha))
    at, blocks = 0, []
    for name, values in tensors.items():
        block = values.astype("<f2").tobytes()
        block += b"\0" * (-len(block) % _ALIGNMENT)
        sizes = values.shape[::-1]
        head.append(_string(name) + struct.pack(f"<I{len(sizes)}QIQ", len(sizes), *sizes, _TENSOR_F16, at))
        at += len(block)
        blocks.append(block)
    start = b"".join(head)
    start += b"\0" * (-len(start) % _ALIGNMENT)
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f"{path.name}.{os.getpid()}.new")
    fresh.write_bytes(start + b"".join(blocks))
    fresh.replace(path)


def _string(text: str) -> bytes:
    data = text.encode()
    return struct.pack("<Q", len(data)) + data


def _pair(key: str, value: str) -> bytes:
    return _string(key) + struct.pack("<I", _TEXT) + _string(value)


def _safetensors(data: bytes) -> dict[str, Array]:
    """Tensors of a safetensors file as float32: eight bytes of header length, a JSON header, raw data."""
    size = int.from_bytes(data[:8], "little")
    if len(data) > LARGEST_BYTES or len(data) < 8 + size:
        raise ValueError(f"{WEIGHTS} is cut off, or too large for an adapter.")
    found: dict[str, Array] = {}
    for name, entry in json.loads(data[8 : 8 + size]).items():
        if name != "__metadata__":
            start, end = (8 + size + offset for offset in entry["data_offsets"])
            found[name] = _floats(data[start:end], entry["dtype"]).reshape(entry["shape"])
    return found


def _floats(raw: bytes, kind: str) -> Array:
    match kind:
        case "F32":
            return np.frombuffer(raw, "<f4").astype(np.float32)
        case "F16":
            return np.frombuffer(raw, "<f2").astype(np.float32)
        case "BF16":  # The upper half of a float32.
            wide: NDArray[Any] = np.frombuffer(raw, "<u2").astype("<u4") << 16
            return wide.view("<f4").astype(np.float32)
    raise ValueError(f"{kind} numbers cannot be read.")
