"""A model that is held to a form says nothing that the protocol's reader could not read."""

import random
from pathlib import Path

import pytest
import torch

from agents import backends
from tests.training.language import tiny
from training.language import base, forms, judging
from training.language.config import Sampling
from training.language.playing import LocalWriter


def test_the_grammar_of_a_table_is_followed_to_the_letter():
    form = forms.Form(GRAMMAR)
    whole = "Thought: I wait.\nTalk: Hello there!\nAction: [BUY] $84.50"
    assert all(form.begins(whole[:cut]) for cut in range(len(whole) + 1))
    assert form.ends(whole)
    assert form.ends(whole.removesuffix(".50"))
    assert not form.ends(whole.removesuffix("0"))
    for wrong in ("Talk: Hello", "Thought: i", "Thought: I wait.\n\n", f"{whole}0", whole.replace("BUY", "SELL")):
        assert not form.begins(wrong), wrong


def test_a_token_is_drawn_among_all_that_keep_the_form():
    """However far down the list it stands: the likeliest tokens are mostly of other letters."""
    words = forms.Words(["", "stop", *(f"x{k}" for k in range(200)), "Thought", "T", "Talk", " "])
    scores = torch.zeros(1, len(words.texts))
    scores[0, 2:202] = 5.0
    scores[0, 2] = 6.0
    chance = random.Random(1)

    def ask(text: str, temperature: float = 0.0) -> int:
        order = forms.ranked(scores, temperatures=[temperature], chances=[chance])
        return forms.next_token(order, 0, form=forms.Form(GRAMMAR), text=text, words=words, stop=1)

    drawn = [words.texts[ask("", temperature=1.0)] for _ in range(40)]
    assert 10 < drawn.count("T") < 30
    assert set(drawn) == {"Thought", "T"}
    assert ask("Thought: I wait") == 2, "the likeliest, where it fits"
    assert ask("Thought: I wait.\nTalk: No.\nAction: [TALK]") == 1, "the end, where nothing else fits"


GRAMMAR = "\n".join(
    (
        r'root ::= "Thought: " text "\nTalk: " text "\nAction: " action',
        r'action ::= "[BUY] $" price | "[QUIT]" | "[TALK]"',
        r"text ::= [A-Z] [a-zA-Z0-9 ,;:'!?.$-]{1,160}",
        r'price ::= [1-9] [0-9]{0,5} ("." [0-9] [0-9])?',
    )
)


@pytest.mark.parametrize("grammar", ["root ::= root", "root ::= nothing", "root ::= ~"])
def test_a_grammar_that_cannot_be_followed_is_told(grammar: str):
    with pytest.raises(forms.FormError):
        forms.expression(grammar)


def test_an_untrained_model_in_the_form_is_understood(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(backends, "_configs", {})
    monkeypatch.setattr(backends, "_seated", {})
    config = tiny.config(tiny.qwen3(tmp_path / "base"), sampling=Sampling(longest=400, together=4, temperature=1.0))
    ready = base.load(config)
    writer = LocalWriter(ready.model, ready.tokenizer, together=4)
    found = judging.judge(config, writer, ready.tokenizer, grammar=True)
    assert found["answers"] > 0
    assert set(found["unusable"]) <= {"at_a_loss", "price_out_of_range", "talk_too_long"}
