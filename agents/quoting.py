"""What other people wrote, made fit for a prompt: data, whatever it says.

A chat template marks turns and tools with control tokens, and many tokenizers read such a token out
of plain text too. So every character that markers of any template are built from is replaced by a
look-alike that no template uses, text of others stays on one line, and a quotation cannot be closed
from within. Only the prompt sees this; the record keeps what was written.

Contract: no marker in `MARKERS`, and none built like them, survives `as_data`. Pure.
"""

import unicodedata

MARKERS = (
    "<|im_start|>",
    "<|im_end|>",
    "<|endoftext|>",
    "<|begin_of_text|>",
    "<|start_header_id|>",
    "<|end_header_id|>",
    "<|eot_id|>",
    "<|user|>",
    "<|assistant|>",
    "<|system|>",
    "<|end|>",
    "<|channel|>",
    "<start_of_turn>",
    "<end_of_turn>",
    "<｜User｜>",
    "<｜Assistant｜>",
    "<｜end▁of▁sentence｜>",
    "<s>",
    "</s>",
    "<think>",
    "</think>",
    "<tool_call>",
    "</tool_call>",
    "<tool_response>",
    "<function=",
    "[INST]",
    "[/INST]",
    "<<SYS>>",
    "<</SYS>>",
    "[TOOL_CALLS]",
    "[AVAILABLE_TOOLS]",
    "[TOOL_RESULTS]",
    "### Instruction:",
    "### Response:",
)
"""Markers of the chat templates in wide use, for tests and for looking at what was typed."""

_REPLACED = str.maketrans(
    {
        "<": "‹",
        ">": "›",
        "＜": "‹",
        "＞": "›",
        "﹤": "‹",
        "﹥": "›",
        "|": "¦",
        "｜": "¦",
        "│": "¦",
        "[": "(",
        "]": ")",
        "［": "(",
        "］": ")",
        "{": "(",
        "}": ")",
        "`": "'",
        '"': "'",
        "“": "'",
        "”": "'",
        "«": "'",
        "»": "'",
        "▁": "_",
        "#": "＃",
    }
)

LONGEST_QUOTE = 600
"""Characters of one message that a prompt repeats; the rest is left out, and the prompt says so."""


def as_data(text: str, *, longest: int = LONGEST_QUOTE) -> str:
    """`text` on one line, without a control character, a marker or a quotation mark."""
    plain = " ".join("".join(_kept(character) for character in text).translate(_REPLACED).split())
    return plain if len(plain) <= longest else f"{plain[:longest].rstrip()} … (cut)"


def quoted(text: str, *, longest: int = LONGEST_QUOTE) -> str:
    """`as_data` between quotation marks."""
    return f'"{as_data(text, longest=longest)}"'


def _kept(character: str) -> str:
    """Nothing of what cannot be seen: controls, halves of pairs, tags, marks that turn the direction of text."""
    category = unicodedata.category(character)
    if character.isspace():
        return " "
    if category in ("Cc", "Cf", "Cs", "Co", "Cn"):
        return "\u200d" if character == "\u200d" else ""  # The joiner that holds emoji together.
    return character
