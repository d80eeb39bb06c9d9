"""Many games in step: each draws its own answers, an answer is kept as it was drawn, faults reach whoever started them."""

from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from agents import backends
from tests.training.language import tiny
from training.language import base, judging
from training.language.config import Sampling
from training.language.playing import LocalWriter, Question, Tables, Written


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny.qwen3(tmp_path_factory.mktemp("base"))


@pytest.fixture(scope="module")
def ready(folder: Path) -> base.Base:
    return base.load(tiny.config(folder))


@pytest.fixture(autouse=True)
def no_back_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backends, "_configs", {})
    monkeypatch.setattr(backends, "_seated", {})


def questions(ready: base.Base, count: int) -> list[Question]:
    texts = ["Sell.", "You sell a lamp and the buyer writes to you.", "Now?"]
    return [
        Question(base.prompt_ids(ready.tokenizer, [{"role": "user", "content": texts[k % 3]}], ()), 1.0, k, 8)
        for k in range(count)
    ]


def test_who_else_is_in_the_batch_changes_no_answer(ready: base.Base):
    asked = questions(ready, 7)
    together = LocalWriter(ready.model, ready.tokenizer, together=4).write(asked)
    alone = [LocalWriter(ready.model, ready.tokenizer, together=1).write([question])[0] for question in asked]
    assert [answer.ids for answer in together] == [answer.ids for answer in alone]
    for one, other in zip(together, alone, strict=True):
        assert one.logprobs == pytest.approx(other.logprobs, abs=1e-4)


def test_logprobs_are_those_of_the_distribution_drawn_from(ready: base.Base):
    import torch

    (question,) = questions(ready, 1)
    question = question._replace(temperature=0.5)
    (answer,) = LocalWriter(ready.model, ready.tokenizer, together=1).write([question])
    ids = torch.tensor([[*question.prompt, *answer.ids]])
    with torch.no_grad():
        scores = ready.model(input_ids=ids).logits[0, len(question.prompt) - 1 : -1] / 0.5
    expected = scores.log_softmax(-1).gather(1, torch.tensor(answer.ids)[:, None])[:, 0]
    assert answer.logprobs == pytest.approx(expected.tolist(), abs=1e-4)


class Scripted:
    """Answers from a list of texts, one for each question, and counts the batches."""

    def __init__(self, ready: base.Base, text: str) -> None:
        self._ids = [*ready.tokenizer(text, add_special_tokens=False)["input_ids"], ready.tokenizer.eos_token_id]
        self.batches: list[int] = []

    def write(self, questions: Sequence[Question]) -> list[Written]:
        self.batches.append(len(questions))
        return [Written(self._ids, [0.0] * len(self._ids)) for _ in questions]


def test_a_model_that_keeps_the_form_is_read_and_all_tables_are_asked_at_once(folder: Path, ready: base.Base):
    config = tiny.config(folder, sampling=Sampling(longest=64, together=4))
    writer = Scripted(ready, "Thought: No.\nTalk: Hello there.\nAction: [TALK]")
    found = judging.judge(config, writer, ready.tokenizer)
    assert found["valid_rate"] == 1.0
    assert found["deal_rate"] == 0.0
    assert found["share"] == 0.0
    assert writer.batches[0] == 4
    assert found["answers"] == sum(writer.batches)


def test_what_cannot_be_read_is_counted_by_its_reason(folder: Path, ready: base.Base):
    found = judging.judge(tiny.config(folder), Scripted(ready, "Hello."), ready.tokenizer)
    assert found["valid_rate"] == 0.0
    assert found["unusable"] == {"no_action": found["answers"]}


def test_a_writer_that_fails_ends_the_games_and_is_heard_of(folder: Path, ready: base.Base):
    class Broken:
        def write(self, questions: Sequence[Question]) -> list[Written]:
            raise MemoryError("The device is full.")

    with pytest.raises(MemoryError, match="full"):
        judging.judge(tiny.config(folder), Broken(), ready.tokenizer)


def test_a_fault_in_one_game_does_not_leave_the_others_waiting(ready: base.Base):
    tables = Tables(Scripted(ready, "Hello."), ready.tokenizer, Sampling(together=2))

    def broken() -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        tables.play([broken, lambda: None, lambda: None])


def test_members_of_a_group_draw_different_answers(folder: Path, ready: base.Base):
    config = tiny.config(folder)
    game = judging.held_out(config)[0]
    agent = judging.model_agent(msgspec.structs.replace(config, sampling=config.sampling), temperature=1.0)
    writer = LocalWriter(ready.model, ready.tokenizer, together=4)
    played = judging.play_together(config, [game] * 3, writer, ready.tokenizer, agent, salts=[1, 2, 1])
    first, second, third = (asked[0].answer.ids for _done, asked in played)
    assert first == third
    assert first != second
