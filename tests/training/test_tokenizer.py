"""The check before every run: a wrong template, mask, padding or stop token must not train for hours."""

import copy
from typing import Any

import pytest

from tests.training import tiny
from training import model as models
from training import tokenizer as words
from training.demonstrations import demonstrate


@pytest.fixture
def fitting() -> tuple[Any, Any]:
    tokenizer = words.build()
    return models.build(tiny.MODEL, tokenizer, seed=0), tokenizer


def test_the_set_up_that_we_ship_passes(fitting: tuple[Any, Any]) -> None:
    words.check(fitting[1], fitting[0])


@pytest.mark.parametrize(
    ("template", "complaint"),
    [
        (words.CHAT_TEMPLATE.replace("{% generation %}", "").replace("{% endgeneration %}", ""), "marks nothing"),
        (
            words.CHAT_TEMPLATE.replace(" <|end|>{% endgeneration %}", "{% endgeneration %} <|end|>"),
            "mask is not the learner's",
        ),
        (
            words.CHAT_TEMPLATE.replace("<|assistant|> {% generation %}", "{% generation %}<|assistant|> "),
            "mask is not",
        ),
        (words.CHAT_TEMPLATE.replace("<|{{ message.role }}|>", "<|user|>"), "other ids"),
        (
            words.CHAT_TEMPLATE.replace("{% for message in messages %}", "{% for message in messages[-5:] %}").replace(
                "{% if add_generation_prompt %}<|assistant|> {% endif %}", ""
            ),
            "later prompt",
        ),
    ],
)
def test_a_template_that_trains_the_wrong_tokens_is_refused(
    fitting: tuple[Any, Any], template: str, complaint: str
) -> None:
    model, tokenizer = fitting
    tokenizer.chat_template = template
    with pytest.raises(words.SetupError, match=complaint):
        words.check(tokenizer, model)


def test_padding_with_the_stop_token_is_refused(fitting: tuple[Any, Any]) -> None:
    model, tokenizer = fitting
    tokenizer.pad_token = tokenizer.eos_token
    with pytest.raises(words.SetupError, match="Padding"):
        words.check(tokenizer, model)


def test_another_stop_token_is_refused(fitting: tuple[Any, Any]) -> None:
    model, tokenizer = fitting
    other = copy.deepcopy(model)
    other.generation_config.eos_token_id = 1
    with pytest.raises(words.SetupError, match="stops at"):
        words.check(tokenizer, other)
    tokenizer.eos_token = "<|user|>"
    with pytest.raises(words.SetupError, match="stop token"):
        words.check(tokenizer, model)


def test_a_model_with_too_few_embeddings_is_refused(fitting: tuple[Any, Any]) -> None:
    model, tokenizer = fitting
    model.resize_token_embeddings(100)
    with pytest.raises(words.SetupError, match="embeddings"):
        words.check(tokenizer, model)


def test_a_saved_model_comes_back_with_its_weights_and_its_words(fitting: tuple[Any, Any], tmp_path: Any) -> None:
    models.save(tmp_path, *fitting)
    model, tokenizer = models.load(tmp_path)
    assert (tmp_path / "model.safetensors").exists()
    assert all((a == b).all() for a, b in zip(model.parameters(), fitting[0].parameters(), strict=True))
    assert tokenizer.get_vocab() == fitting[1].get_vocab()


def test_the_mask_of_a_demonstration_covers_answers_with_their_end_and_nothing_else(fitting: tuple[Any, Any]) -> None:
    codec = words.Codec(fitting[1])
    (demonstration,) = demonstrate(tiny.GAME, episodes=1, seed=5)
    ids, mask = codec.whole(demonstration.messages)
    expected = [
        word
        for message in demonstration.messages
        if message.role == "assistant"
        for word in (*message.words, "<|end|>")
    ]
    assert codec.words(n for n, own in zip(ids, mask, strict=True) if own) == expected
