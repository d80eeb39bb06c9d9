"""A small Llama for the compact dialogue: built from nothing, saved and loaded as safetensors.

Contract: the same configuration and seed give the same weights. Weights are float32 and both
embeddings are untied; tied ones with the usual tiny spread learn one price for everything.
"""

import math
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig, LlamaForCausalLM

from agents.learned.dialogue import END, LONGEST_ANSWER, PAD
from markets.engine.scenarios import MAX_TURNS
from training import runs
from training import tokenizer as words
from training.config import Model

LONGEST_DIALOGUE = 24 + MAX_TURNS * (LONGEST_ANSWER + 24)
"""Positions that a model is built for, in tokens."""


def build(config: Model, tokenizer: Any, *, seed: int) -> Any:
    """A model with random weights."""
    vocab = tokenizer.get_vocab()
    torch.manual_seed(seed)
    model: Any = LlamaForCausalLM(
        LlamaConfig(
            vocab_size=len(vocab),
            hidden_size=config.hidden,
            intermediate_size=config.feed_forward,
            num_hidden_layers=config.layers,
            num_attention_heads=config.heads,
            num_key_value_heads=config.heads,
            max_position_embeddings=LONGEST_DIALOGUE,
            initializer_range=config.spread,
            tie_word_embeddings=False,
            bos_token_id=None,
            eos_token_id=vocab[END],
            pad_token_id=vocab[PAD],
            dtype="float32",
        )
    )
    tables = (model.get_input_embeddings(), model.get_output_embeddings())
    with torch.no_grad():
        if config.smooth_numbers:
            highest = words.grammar_of(tokenizer).highest_number
            ids = torch.tensor([vocab[str(number)] for number in range(highest + 1)])
            for table in tables:
                table.weight[ids] = _smooth_rows(len(ids), config.hidden, config.spread, per_wave=10)
        if config.smooth_turns:
            ids = torch.tensor([vocab[f"t{turns}"] for turns in range(MAX_TURNS + 1)])
            tables[0].weight[ids] = _smooth_rows(len(ids), config.hidden, config.spread, per_wave=4)
    return model


def _smooth_rows(count: int, width: int, spread: float, *, per_wave: int) -> torch.Tensor:
    """Rows that change slowly from one number to the next, with the spread of independent ones.

    A random mix of cosines of up to one half-wave per `per_wave` numbers, so that what is learned about
    80 says something about 79 and 82 from the start, plus a tenth of independent noise.
    """
    at = torch.arange(count, dtype=torch.float32)[:, None] / count
    waves = torch.arange(1, count // per_wave + 1, dtype=torch.float32)[None, :]
    features = torch.cos(math.pi * waves * at)  # (numbers, waves)
    rows = features @ torch.randn(waves.shape[1], width)
    rows = rows / rows.std() + 0.1 * torch.randn(count, width)
    return spread * rows


def save(folder: Path, model: Any, tokenizer: Any) -> None:
    """Write weights (safetensors), configuration and tokenizer: all of them, or nothing under this name."""
    with runs.whole(folder) as draft:
        model.save_pretrained(draft)
        tokenizer.save_pretrained(draft)


def load(folder: Path) -> tuple[Any, Any]:
    """Read what `save` wrote, from this machine only, and check that it fits together. Raises `SetupError`."""
    try:
        model = AutoModelForCausalLM.from_pretrained(folder, local_files_only=True, dtype=torch.float32)
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    except (OSError, ValueError, KeyError, RuntimeError, SafetensorError) as error:
        first = str(error).strip().splitlines()[:1]
        raise words.SetupError(f"{folder} cannot be loaded as a model: {''.join(first)}") from error
    words.check(tokenizer, model)
    return model, tokenizer
