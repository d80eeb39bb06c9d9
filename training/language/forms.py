"""Answers held to a form: the grammars of the protocols, for models of this process.

llama.cpp takes a grammar in GBNF; here the same grammar becomes a regular expression, and a token is drawn
among those with which the answer can still become a sentence of it. The distribution is the model's own
with everything else left out, as llama.cpp has it. For grammars that do not refer to themselves.
"""

import random
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
import regex
from numpy.typing import NDArray

_PIECE = re.compile(r'\s*(?:"((?:\\.|[^"\\])*)"|(\[(?:\\.|[^\]\\])*\])|([A-Za-z][\w-]*)|(\{\d+,?\d*\}|[|()?*+]))')
_ESCAPES = {"n": "\n", '"': '"', "\\": "\\"}


class FormError(ValueError):
    """A grammar that cannot be followed here; the message is a sentence."""


def expression(grammar: str) -> str:
    """The regular expression of a grammar. Raises `FormError`."""
    rules = dict(line.split(" ::= ", 1) for line in grammar.strip().split("\n"))
    return _rule("root", rules, ())


def _rule(name: str, rules: dict[str, str], within: tuple[str, ...]) -> str:
    if name in within or name not in rules:
        raise FormError(f"The rule {name!r} of the grammar refers to itself or is not there.")
    body, at, made = rules[name].rstrip(), 0, []
    while at < len(body):
        piece = _PIECE.match(body, at)
        if piece is None:
            raise FormError(f"The grammar cannot be read at {body[at : at + 20]!r}.")
        literal, letters, reference, mark = piece.groups()
        if literal is not None:
            made.append(regex.escape(re.sub(r"\\(.)", lambda found: _ESCAPES.get(found[1], found[1]), literal)))
        elif reference is not None:
            made.append(f"(?:{_rule(reference, rules, (*within, name))})")
        else:
            made.append("(?:" if mark == "(" else letters or mark)
        at = piece.end()
    return "".join(made)


class Form:
    """One grammar, followed."""

    def __init__(self, grammar: str) -> None:
        self._expression = _compiled(grammar)

    def begins(self, text: str) -> bool:
        """Whether `text` can still become a sentence, or is one."""
        return self._expression.fullmatch(text, partial=True) is not None

    def ends(self, text: str) -> bool:
        """Whether `text` is a sentence."""
        return self._expression.fullmatch(text) is not None


@lru_cache(maxsize=4_096)
def _compiled(grammar: str) -> Any:
    return regex.compile(expression(grammar))


def words_of(tokenizer: Any) -> list[str]:
    """The text of every token, taken by itself."""
    return [tokenizer.decode([number]) for number in range(len(tokenizer))]


def next_token(
    scores: NDArray[np.float32],
    *,
    temperature: float,
    chance: random.Random,
    form: Form,
    text: str,
    words: Sequence[str],
    stop: int,
) -> int:
    """The next token of an answer that is held to a form; the stop token where nothing else is left."""
    ranked = scores.astype(np.float64)
    if temperature > 0:  # Gumbel's trick: in this order, the first that is allowed is a draw among those allowed.
        noise = np.random.default_rng(chance.getrandbits(63)).gumbel(size=ranked.shape)
        ranked = ranked / temperature + noise
    starts: dict[str, bool] = {}
    for token in np.argsort(-ranked).tolist():
        if token == stop:
            if form.ends(text):
                return stop
            continue
        word = words[token] if token < len(words) else ""
        if not word:
            continue
        first = word[0]
        if first not in starts:
            starts[first] = form.begins(text + first)
        if starts[first] and form.begins(text + word):
            return int(token)
    return stop
