"""Answers held to a form: the grammars of the protocols, for models of this process.

llama.cpp takes a grammar in GBNF; here the same grammar becomes a regular expression, and a token is drawn
among those with which the answer can still become a sentence of it. The distribution is the model's own
with everything else left out, as llama.cpp has it. For grammars that do not refer to themselves.
"""

import random
import re
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import regex
import torch

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


class Ranked(NamedTuple):
    """The tokens of some answers in the order in which they are tried."""

    ranks: torch.Tensor
    """(B, V): the higher, the earlier."""
    first: list[list[int]]
    """The first `FEW` of each row, in order."""


def ranked(scores: torch.Tensor, *, temperatures: Sequence[float], chances: Sequence[random.Random]) -> Ranked:
    """An order of the tokens of each row. Gumbel's trick: in it, the first that is allowed is a draw among those
    allowed; at temperature 0 the likeliest comes first."""
    ranks = scores.float()
    drawn = [row for row, temperature in enumerate(temperatures) if temperature > 0]
    if drawn:
        size = ranks.shape[1]
        noise = np.stack(
            [np.random.default_rng(chances[row].getrandbits(63)).random(size, dtype=np.float32) for row in drawn]
        )
        gumbel = -torch.log(-torch.log(torch.from_numpy(noise).to(ranks.device)))
        scale = torch.tensor([temperatures[row] for row in drawn], device=ranks.device)[:, None]
        ranks = ranks.clone()
        ranks[drawn] = ranks[drawn] / scale + gumbel
    return Ranked(ranks, ranks.topk(min(FEW, ranks.shape[1]), dim=-1).indices.tolist())


def next_token(order: Ranked, row: int, *, form: Form, text: str, words: Words, stop: int) -> int:
    """The next token of an answer that is held to a form; the stop token where nothing else is left."""
    may_end = form.ends(text)

    def first_fitting(tokens: Sequence[int]) -> int | None:
        for token in tokens:
            if token == stop:
                if may_end:
                    return stop
            elif token < len(words.texts) and words.texts[token] and form.begins(text + words.texts[token]):
                return token
        return None

    found = first_fitting(order.first[row])
    if found is not None:
        return found
    letters = np.array([form.begins(text + letter) for letter in words.firsts] + [False])
    allowed = letters[words.first_of]
    allowed[stop] = may_end
    ranks = order.ranks[row, : len(words.texts)].cpu().numpy()  # A model may have more scores than there are tokens.
    tokens = np.flatnonzero(allowed)
    found = first_fitting(tokens[np.argsort(-ranks[tokens])].tolist())
    return stop if found is None else found
