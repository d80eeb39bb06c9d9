"""What was read before is not read again, and changes no answer."""

from pathlib import Path
from typing import Any

import pytest
import torch

from tests.training.language import tiny
from training.language import attention, base
from training.language.memory import Memory, _shared
from training.language.playing import LocalWriter, Question


@pytest.fixture(scope="module")
def ready(tmp_path_factory: pytest.TempPathFactory) -> base.Base:
    folder: Path = tiny.qwen3(tmp_path_factory.mktemp("base"))
    return base.load(tiny.config(folder))


def turns(ready: base.Base) -> list[list[Question]]:
    """Three games, two turns of each: a turn's prompt is the one before and more."""
    beginnings = [
        f"You sell thing {k}, which cost you {k} and has a long story that is told here. " * 3 for k in range(3)
    ]
    asked = []
    for turn in range(2):
        texts = [begun + f"They said {turn}. " * (turn + k + 1) for k, begun in enumerate(beginnings)]
        asked.append(
            [
                Question(base.prompt_ids(ready.tokenizer, [{"role": "user", "content": text}], ()), 1.0, k + turn, 8)
                for k, text in enumerate(texts)
            ]
        )
    return asked


def test_what_is_remembered_changes_no_answer(ready: base.Base):
    plain = LocalWriter(ready.model, ready.tokenizer, together=3)
    remembering = LocalWriter(ready.model, ready.tokenizer, together=3, remembers=True)
    for asked in turns(ready):
        for one, other in zip(plain.write(asked), remembering.write(asked), strict=True):
            assert one.ids == other.ids
            assert one.logprobs == pytest.approx(other.logprobs, abs=1e-4)


def test_only_what_is_new_is_read_and_old_games_are_forgotten(ready: base.Base, monkeypatch: pytest.MonkeyPatch):
    memory = Memory(ready.model, most=2)
    read: list[int] = []
    forward = ready.model.forward

    def counted(*args: Any, **options: Any) -> Any:
        read.append(options["input_ids"].shape[1])
        return forward(*args, **options)

    monkeypatch.setattr(ready.model, "forward", counted)
    first, second = ([question.prompt for question in asked] for asked in turns(ready))
    memory.read(first[:2])
    assert read == [len(prompt) for prompt in first[:2]]
    memory.read(second[:1])
    assert read[2] == len(second[0]) - _shared(first[0], second[0]) < len(second[0]) // 2
    memory.read(first[2:])
    memory.read(first[1:2])  # Of three games two are remembered.
    assert read[4] == len(first[1])


def test_two_prompts_share_what_both_begin_with():
    assert _shared([1, 2, 3, 4], [1, 2, 9, 4]) == 2
    assert _shared([1, 2], [1, 2, 3]) == 2
    assert _shared([], [1]) == 0
    assert _shared([5], [6]) == 0


def test_writing_attends_to_what_reading_attends_to(ready: base.Base):
    """Prompts of other lengths beside it, and heads that share, change no score."""
    model, pad = ready.model.eval(), ready.tokenizer.pad_token_id
    assert model.config.num_key_value_heads < model.config.num_attention_heads
    long, short = list(range(40, 60)), list(range(70, 78))
    ids = torch.tensor([long, [pad] * 12 + short])
    mask = (torch.arange(20)[None] >= torch.tensor([[0], [12]])).long()
    positions = (mask.cumsum(1) - 1).clamp(min=0)
    with torch.no_grad():
        whole = model(input_ids=ids, attention_mask=mask, position_ids=positions).logits[:, -1]
        read = model(input_ids=ids[:, :-1], attention_mask=mask[:, :-1], position_ids=positions[:, :-1], use_cache=True)
        with attention.writing(model):
            assert model.config._attn_implementation == attention.NAME
            after = model(
                input_ids=ids[:, -1:],
                attention_mask=mask,
                position_ids=positions[:, -1:],
                past_key_values=read.past_key_values,
            ).logits[:, -1]
    assert model.config._attn_implementation == "sdpa"
    assert torch.allclose(whole, after, atol=1e-4)
