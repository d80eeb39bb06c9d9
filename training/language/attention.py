"""Attention for writing token by token, where several heads of a question share one head of what was read.

Transformers copies what was read once for each of these heads at every token, which on a processor takes longer than
everything else. Here the heads that share stand in the place of several tokens, so nothing is copied.

Contract: the values of `sdpa` up to rounding; for more than one token at a time it is `sdpa`.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from transformers import AttentionInterface, AttentionMaskInterface
from transformers.integrations.sdpa_attention import sdpa_attention_forward
from transformers.masking_utils import sdpa_mask

NAME = "grouped"


def grouped(
    module: Any, query: torch.Tensor, key: torch.Tensor, value: torch.Tensor, attention_mask: Any, **options: Any
) -> tuple[torch.Tensor, None]:
    """What each head makes of what was read, (B, T, heads, size)."""
    batch, heads, tokens, size = query.shape
    if tokens > 1 or heads == key.shape[1] or module.training:
        whole: tuple[torch.Tensor, None] = sdpa_attention_forward(module, query, key, value, attention_mask, **options)
        return whole
    asked = query.reshape(batch, key.shape[1], heads // key.shape[1], size)
    told = torch.nn.functional.scaled_dot_product_attention(
        asked, key, value, attn_mask=attention_mask, scale=options.get("scaling")
    )
    return told.reshape(batch, 1, heads, size), None


AttentionInterface.register(NAME, grouped)
AttentionMaskInterface.register(NAME, sdpa_mask)


@contextmanager
def writing(model: Any) -> Iterator[None]:
    """Have `model` attend like this in this block, where it would by `sdpa`."""
    config = model.config
    usual = config._attn_implementation
    if usual == "sdpa":
        config._attn_implementation = NAME
    try:
        yield
    finally:
        config._attn_implementation = usual
