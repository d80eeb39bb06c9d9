"""Token ids of questions and answers: what is learned is the answer with its stop token, and packing changes nothing."""

from pathlib import Path
from typing import Any

import msgspec
import pytest
import torch

from tests.training.language import tiny
from training.language import base, packing
from training.language.demonstrations import collect
from training.language.imitation import token_rows
from training.tokenizer import SetupError


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.qwen3(tmp_path_factory.mktemp("base"))


@pytest.fixture(scope="module")
def ready(folder: Path) -> base.Base:
    return base.load(tiny.config(folder))


@pytest.fixture(scope="module")
def games(folder: Path, ready: base.Base) -> list[list[base.Row]]:
    return token_rows(ready.tokenizer, collect(tiny.config(folder)), longest=4_096)


@pytest.mark.parametrize("protocol", ["four_part", "tools"])
def test_an_answer_is_what_the_template_makes_of_it_and_stops(folder: Path, ready: base.Base, protocol: str):
    shown = collect(msgspec.structs.replace(tiny.config(folder), protocol=protocol))
    for row in shown.games[0]:
        made = base.row(ready.tokenizer, row.messages, row.tools, row.answer)
        said = ready.tokenizer.decode(made.answer)
        assert said.endswith("<|im_end|>")
        assert said.count("<|im_end|>") == 1
        assert ready.tokenizer.decode(made.prompt).endswith("<|im_start|>assistant\n<think>\n\n</think>\n\n")
        if protocol == "tools":
            assert '<tool_call>\n{"name": "' in said
        else:
            assert said == f"{row.answer['content']}<|im_end|>"


def test_packed_turns_score_as_they_do_alone(ready: base.Base, games: list[list[base.Row]]):
    rows = [row for game in games[:2] for row in game]
    packed = packing.pack(rows)
    assert packed.input_ids.shape[1] < 0.8 * sum(len(row.prompt) + len(row.answer) for row in rows)
    with torch.no_grad():
        together = packing.scores(ready.model, packed)
        for number, row in enumerate(rows):
            ids = torch.tensor([[*row.prompt, *row.answer]])
            alone = ready.model(input_ids=ids).logits[0, len(row.prompt) - 1 : -1]
            assert torch.allclose(together[packed.rows == number], alone, atol=1e-4)
    assert packed.labels.tolist() == [number for row in rows for number in row.answer]


def test_the_gradient_reaches_no_word_of_the_prompt(ready: base.Base, games: list[list[base.Row]]):
    """Scores are asked for at the places before answers' tokens alone."""
    row = games[0][0]
    packed = packing.pack([row])
    first = len(row.prompt) - 1
    assert packed.scored_at.tolist() == list(range(first, first + len(row.answer)))


def broken(ready: base.Base, template: str) -> Any:
    import copy

    tokenizer = copy.deepcopy(ready.tokenizer)
    tokenizer.chat_template = template
    return tokenizer


@pytest.mark.parametrize(
    ("template", "sentence"),
    [
        ("", "no chat template"),
        (
            "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}"
            "{% if add_generation_prompt %}assistant: {% endif %}",
            "without the stop token",
        ),
        (
            "{{ messages | length }}{% for m in messages %}{{ m.content }}<|im_end|>{% endfor %}",
            "does not render an answer after the prompt",
        ),
    ],
)
def test_a_template_that_cannot_be_trained_on_stops_the_run(ready: base.Base, template: str, sentence: str):
    with pytest.raises(SetupError, match=sentence):
        base.check(broken(ready, template), ready.model, protocol="four_part")


def test_a_template_without_tools_is_refused_for_tools_alone(ready: base.Base):
    plain = (
        "{% for m in messages %}<|im_start|>{{ m.role }}\n{{ m.content }}<|im_end|>\n{% endfor %}"
        "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
    )
    base.check(broken(ready, plain), ready.model, protocol="four_part")
    with pytest.raises(SetupError, match="no tools"):
        base.check(broken(ready, plain), ready.model, protocol="tools")


def test_a_folder_that_is_no_model_is_told(tmp_path: Path):
    with pytest.raises(SetupError, match=r"no config\.json"):
        base.load(tiny.config(tmp_path))
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(SetupError, match="cannot be loaded"):
        base.load(tiny.config(tmp_path))


def test_padding_is_never_the_stop_token(ready: base.Base):
    import copy

    tokenizer = copy.deepcopy(ready.tokenizer)
    tokenizer.pad_token = tokenizer.eos_token
    base.prepare(tokenizer)
    assert tokenizer.pad_token_id != tokenizer.eos_token_id
