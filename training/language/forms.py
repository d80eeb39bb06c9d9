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


class Words:
    """The text of every token, and the tokens by their first letter: a form mostly allows a few letters."""

    def __init__(self, texts: Sequence[str]) -> None:
        self.texts = list(texts)
        firsts = sorted({text[0] for text in self.texts if text})
        self.firsts = firsts
        places = {letter: place for place, letter in enumerate(firsts)}
        self.first_of = np.array([places[text[0]] if text else len(firsts) for text in self.texts], dtype=np.int32)
        """Place of each token's first letter; one past the last for a token without text."""


def words_of(tokenizer: Any) -> Words:
    """The text of every token, taken by itself."""
    return Words([tokenizer.decode([number]) for number in range(len(tokenizer))])


FEW = 32
"""Of the likeliest tokens, those that are tried before all are looked at by their first letters."""


def next_token(
    scores: NDArray[np.float32],
    *,
    temperature: float,
    chance: random.Random,
    form: Form,
    text: str,
    words: Words,
    stop: int,
) -> int:
    """The next token of an answer that is held to a form; the stop token where nothing else is left."""
    ranked = scores.astype(np.float64)
    if temperature > 0:  # Gumbel's trick: in this order, the first that is allowed is a draw among those allowed.
        noise = np.random.default_rng(chance.getrandbits(63)).gumbel(size=ranked.shape)
        ranked = ranked / temperature + noise
    fitting = ranked[: len(words.texts)]  # A model may have more scores than its tokenizer has tokens.
    may_end = form.ends(text)
    if not may_end:
        fitting[stop] = -np.inf

    def first_fitting(tokens: NDArray[np.intp]) -> int | None:
        for token in tokens.tolist():
            if token == stop and may_end:
                return stop
            if words.texts[token] and fitting[token] > -np.inf and form.begins(text + words.texts[token]):
                return int(token)
        return None

    few = np.argpartition(-fitting, min(FEW, len(fitting) - 1))[:FEW]
    found = first_fitting(few[np.argsort(-fitting[few])])
    if found is not None:
        return found
    allowed = np.array([form.begins(text + letter) for letter in words.firsts] + [False])[words.first_of]
    allowed[stop] = may_end
    tokens = np.flatnonzero(allowed)
    found = first_fitting(tokens[np.argsort(-fitting[tokens])])
    return stop if found is None else found
