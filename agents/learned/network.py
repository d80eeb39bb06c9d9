"""A small Llama in numpy: reads a checkpoint's weights and tells what it would write next.

Here: the safetensors file, the forward pass, the key-value memory. Not here: words
(`dialogue`), choices (`policy`), training (`training`, in torch). It lets the light install seat a
trained agent without torch: half a million parameters answer in a few milliseconds.

Contract: float32 throughout; the same weights and ids give the same logits, and those of the
torch model that was saved, within rounding. A `Memory` is never changed once made, so it may be
shared and kept.
"""

import json
import math
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import NDArray

Array: TypeAlias = NDArray[Any]
"""Of float32 throughout."""

_DTYPES: dict[str, np.dtype[Any]] = {"F32": np.dtype("<f4"), "F16": np.dtype("<f2")}


class CheckpointError(ValueError):
    """Files that are no checkpoint this module can run; the message is a sentence."""


class Memory(NamedTuple):
    """What a network remembers of the ids it has read."""

    keys: tuple[Array, ...]
    """Per layer (H, T, D), rotated."""
    values: tuple[Array, ...]
    """Per layer (H, T, D)."""
    logits: Array
    """Scores of the next id, (V,)."""

    @property
    def length(self) -> int:
        """Number of ids read."""
        return int(self.keys[0].shape[1])


def read_safetensors(path: Path) -> dict[str, Array]:
    """Tensors of a safetensors file, as float32: eight bytes of header length, a JSON header, raw data."""
    data = path.read_bytes()
    size = int.from_bytes(data[:8], "little")
    if len(data) < 8 + size:
        raise CheckpointError(f"{path.name} is cut off.")
    tensors: dict[str, Array] = {}
    for name, entry in json.loads(data[8 : 8 + size]).items():
        if name == "__metadata__":
            continue
        if entry["dtype"] not in _DTYPES:
            raise CheckpointError(f"{path.name} holds {entry['dtype']} numbers; float32 or float16 are read.")
        start, end = (8 + size + offset for offset in entry["data_offsets"])
        flat = np.frombuffer(data[start:end], dtype=_DTYPES[entry["dtype"]])
        tensors[name] = flat.reshape(entry["shape"]).astype(np.float32)
    return tensors


class Network:
    """A Llama with as many key heads as query heads and untied embeddings."""

    def __init__(self, *, config: dict[str, Any], tensors: dict[str, Array]) -> None:
        self._heads = int(config["num_attention_heads"])
        width = int(config["hidden_size"])
        if config.get("model_type") != "llama" or config.get("num_key_value_heads", self._heads) != self._heads:
            raise CheckpointError("Only Llama models with one key head per query head are run here.")
        self._size = int(config.get("head_dim") or width // self._heads)
        self._epsilon = np.float32(config["rms_norm_eps"])
        rope = config.get("rope_parameters") or {}
        if rope.get("rope_type", "default") != "default":
            raise CheckpointError("Only plain rotary positions are run here.")
        theta = float(rope.get("rope_theta") or config.get("rope_theta") or 10_000.0)
        self._frequencies = theta ** (-np.arange(0, self._size, 2, dtype=np.float32) / self._size)
        try:
            self._embedding = tensors["model.embed_tokens.weight"]
            self._head = tensors["lm_head.weight"].T
            self._norm = tensors["model.norm.weight"]
            self._layers = [_layer(tensors, k) for k in range(int(config["num_hidden_layers"]))]
        except KeyError as error:
            raise CheckpointError(f"The checkpoint has no tensor {error}.") from None

    @classmethod
    def load(cls, folder: Path) -> "Network":
        """Read `config.json` and `model.safetensors`."""
        config = json.loads((folder / "config.json").read_text(encoding="utf-8"))
        return cls(config=config, tensors=read_safetensors(folder / "model.safetensors"))

    @property
    def words(self) -> int:
        """Size of the vocabulary."""
        return int(self._embedding.shape[0])

    def read(self, ids: tuple[int, ...], after: Memory | None = None) -> Memory:
        """The memory after reading at least one more id."""
        hidden = self._embedding[list(ids)]  # (T, H)
        past = 0 if after is None else after.length
        cosine, sine = self._rotation(past, len(ids))
        visible = np.tril(np.ones((len(ids), past + len(ids)), dtype=bool), k=past)
        keys, values = [], []
        for number, layer in enumerate(self._layers):
            normed = self._scaled(hidden, layer["input_layernorm"])
            query, key, value = (self._split(normed @ layer[name]) for name in ("q_proj", "k_proj", "v_proj"))
            query, key = _rotate(query, cosine, sine), _rotate(key, cosine, sine)
            if after is not None:
                key = np.concatenate([after.keys[number], key], axis=1)
                value = np.concatenate([after.values[number], value], axis=1)
            keys.append(key)
            values.append(value)
            scores = query @ key.transpose(0, 2, 1) / math.sqrt(self._size)  # (heads, T, past + T)
            weights = _softmax(np.where(visible, scores, np.float32(-np.inf)))
            mixed = (weights @ value).transpose(1, 0, 2).reshape(len(ids), -1)
            hidden = hidden + mixed @ layer["o_proj"]
            normed = self._scaled(hidden, layer["post_attention_layernorm"])
            gate = normed @ layer["gate_proj"]
            hidden = hidden + (gate / (1 + np.exp(-gate)) * (normed @ layer["up_proj"])) @ layer["down_proj"]
        logits = self._scaled(hidden[-1:], self._norm)[0] @ self._head
        return Memory(tuple(keys), tuple(values), logits)

    def _rotation(self, past: int, count: int) -> tuple[Array, Array]:
        angles = np.arange(past, past + count, dtype=np.float32)[:, None] * self._frequencies
        both = np.concatenate([angles, angles], axis=1)  # (T, D)
        return np.cos(both), np.sin(both)

    def _split(self, flat: Array) -> Array:
        """(T, heads * D) to (heads, T, D)."""
        return flat.reshape(len(flat), self._heads, self._size).transpose(1, 0, 2)

    def _scaled(self, hidden: Array, weight: Array) -> Array:
        """Root-mean-square normalisation (Zhang and Sennrich 2019)."""
        square = np.mean(hidden * hidden, axis=-1, keepdims=True)
        scaled: Array = weight * (hidden / np.sqrt(square + self._epsilon))
        return scaled


def _layer(tensors: dict[str, Array], number: int) -> dict[str, Array]:
    prefix = f"model.layers.{number}."
    attention = {f"{n}_proj": tensors[f"{prefix}self_attn.{n}_proj.weight"].T for n in "qkvo"}
    feed_forward = {f"{n}_proj": tensors[f"{prefix}mlp.{n}_proj.weight"].T for n in ("gate", "up", "down")}
    norms = {n: tensors[f"{prefix}{n}.weight"] for n in ("input_layernorm", "post_attention_layernorm")}
    return {**attention, **feed_forward, **norms}


def _rotate(heads: Array, cosine: Array, sine: Array) -> Array:
    """Rotary positions (Su et al. 2021), halves paired as in the published checkpoints."""
    first, second = np.split(heads, 2, axis=-1)
    rotated: Array = heads * cosine + np.concatenate([-second, first], axis=-1) * sine
    return rotated


def _softmax(scores: Array) -> Array:
    shifted: Array = np.exp(scores - scores.max(axis=-1, keepdims=True))
    normed: Array = shifted / shifted.sum(axis=-1, keepdims=True)
    return normed
