"""A checkpoint folder answers like any other model, or says why it cannot."""

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from agents.backends import ChatMessage, ChatRequest
from agents.inference.checkpoint import CheckpointEngine, _tool_calls
from agents.inference.engine import EngineError
from tests.agents.inference.serving import client, running

pytestmark = [
    pytest.mark.language_model,
    pytest.mark.slow,
    pytest.mark.skipif(find_spec("torch") is None, reason="no torch here"),
]

TEMPLATE = (
    "{% for message in messages %}<|{{ message['role'] }}|>{{ message['content'] }}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model that nobody trained, with a tokenizer of a few words."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

    words = [
        "<|end|>",
        "<|user|>",
        "<|assistant|>",
        "<|system|>",
        "<unk>",
        *["hello", "good", "day", "price", "ten", "twenty"],
    ]
    tokenizer = Tokenizer(models.WordLevel({word: k for k, word in enumerate(words)}, unk_token="<unk>"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    fast = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        eos_token="<|end|>",
        unk_token="<unk>",
        additional_special_tokens=["<|user|>", "<|assistant|>", "<|system|>"],
        chat_template=TEMPLATE,
    )
    config = LlamaConfig(
        vocab_size=len(words),
        hidden_size=16,
        intermediate_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        max_position_embeddings=64,
        eos_token_id=0,
        bos_token_id=None,
    )
    path = tmp_path_factory.mktemp("checkpoints") / "tiny"
    LlamaForCausalLM(config).save_pretrained(path)
    fast.save_pretrained(path)
    return path


@pytest.fixture(scope="module")
def url(folder: Path) -> Iterator[str]:
    with running([CheckpointEngine(folder, name="tiny", threads=1)]) as url:
        yield url


def ask(**how: object) -> ChatRequest:
    return ChatRequest(**{"messages": (ChatMessage("user", "hello"),), "max_tokens": 6, **how})


def test_it_answers_the_sites_client_and_counts_tokens(url: str):
    reply = client(url, "tiny").chat(ask(temperature=0.0))
    assert reply.model == "tiny"
    assert reply.input_tokens == 4
    assert reply.output_tokens is not None
    assert reply.output_tokens <= 6


def test_the_same_seed_gives_the_same_words(url: str):
    first, second = (client(url, "tiny").chat(ask(temperature=1.0, seed=3)).text for _ in range(2))
    assert first == second


def test_a_prompt_that_does_not_fit_is_refused(folder: Path):
    engine = CheckpointEngine(folder, name="tiny", threads=1)
    engine.load()
    with pytest.raises(EngineError, match="longer than 64 tokens"):
        engine.complete({"messages": [{"role": "user", "content": "hello " * 80}], "max_tokens": 5})


def test_a_folder_that_is_no_checkpoint_is_told(tmp_path: Path):
    with pytest.raises(EngineError, match="no checkpoint"):
        CheckpointEngine(tmp_path, name="nothing", threads=1).load()


def test_tool_calls_are_read_and_broken_ones_are_left_to_the_text():
    text = 'Well. <tool_call>{"name": "make_offer", "arguments": {"price": 5}}</tool_call><tool_call>{no}</tool_call>'
    (call,) = _tool_calls(text)
    assert call["function"] == {"name": "make_offer", "arguments": '{"price":5}'}
