"""Every answer of a game is learned from, with the game's reward; what was not played teaches nothing."""

from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from agents import backends
from tests.training.language import tiny
from training.config import ConfigError
from training.language import base
from training.language.config import LanguageRun, Sampling
from training.language.playing import Question, Written
from training.language.reinforcement import Rollouts, arguments_for


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


class Saying(Rollouts):
    """Rollouts of a model that says what it is told to, and keeps the questions."""

    def __init__(self, config: LanguageRun, ready: base.Base, texts: Sequence[str]) -> None:
        super().__init__(config, ready.tokenizer)
        self._answers = [
            [*ready.tokenizer(text, add_special_tokens=False)["input_ids"], ready.tokenizer.eos_token_id]
            for text in texts
        ]
        self.asked: list[Question] = []

    def _writer(self, trainer: Any) -> Any:
        return self

    def write(self, questions: Sequence[Question]) -> list[Written]:
        """The next answers in turn."""
        start = len(self.asked)
        self.asked += questions
        chosen = [self._answers[(start + k) % len(self._answers)] for k in range(len(questions))]
        return [Written(ids, [-0.5] * len(ids)) for ids in chosen]


TRAINER = SimpleNamespace(state=SimpleNamespace(global_step=3), accelerator=SimpleNamespace(process_index=0))


def run(folder: Path, **grpo: Any) -> LanguageRun:
    made = tiny.config(folder, sampling=Sampling(longest=96, together=4))
    return msgspec.structs.replace(made, grpo=msgspec.structs.replace(made.grpo, games=2, group=2, turns=3, **grpo))


def test_a_game_is_as_many_rows_as_it_has_turns(folder: Path, ready: base.Base):
    rollouts = Saying(run(folder), ready, ["Talk: Good day to you.\nAction: [TALK]"])
    out = rollouts([number for number in ("7", "8") for _ in range(6)], TRAINER)
    assert {len(column) for column in out.values()} == {12}
    assert out["game_rewards"] == [0.0] * 12, "talk alone earns nothing and costs nothing"
    played = [ids for ids, mask in zip(out["prompt_ids"], out["env_mask"], strict=True) if any(mask)]
    assert sorted(played) == sorted(question.prompt for question in rollouts.asked)
    for ids, mask, logprobs in zip(out["completion_ids"], out["env_mask"], out["logprobs"], strict=True):
        assert len(ids) == len(mask) == len(logprobs)
        assert ids[-1] == ready.tokenizer.eos_token_id
        assert set(mask) in ({0}, {1})


def test_an_unreadable_answer_is_asked_once_and_costs_its_game(folder: Path, ready: base.Base):
    """The first member of the group speaks, the second one babbles: it has one row to learn from."""
    speaks = "Talk: Good day.\nAction: [TALK]"
    rollouts = Saying(run(folder), ready, [speaks, "Good day.", *[speaks] * 10])
    out = rollouts(["7"] * 6, TRAINER)
    assert sorted(set(out["game_rewards"])) == [-1.0, 0.0]
    assert "no_action" in rollouts.outcomes
    assert out["game_rewards"] == [0.0] * 3 + [-1.0] * 3
    assert [any(mask) for mask in out["env_mask"]] == [True, True, True, True, False, False]


def test_members_of_a_group_meet_the_same_table_with_chance_of_their_own(folder: Path, ready: base.Base):
    rollouts = Saying(run(folder), ready, ["Talk: Good day.\nAction: [TALK]"])
    rollouts(["7"] * 6, TRAINER)
    first, second = rollouts.asked[:2]
    assert first.prompt == second.prompt
    assert first.seed != second.seed


def test_a_group_that_was_torn_apart_is_refused(folder: Path, ready: base.Base):
    rollouts = Saying(run(folder), ready, ["Talk: Good day.\nAction: [TALK]"])
    with pytest.raises(RuntimeError, match="torn apart"):
        rollouts(["7"] * 5 + ["8"] * 7, TRAINER)


def test_a_spread_model_without_a_server_is_refused(folder: Path, ready: base.Base):
    trainer = SimpleNamespace(**vars(TRAINER), is_fsdp_enabled=True, is_deepspeed_enabled=False)
    with pytest.raises(ConfigError, match=r"sampling\.vllm"):
        Rollouts(run(folder), ready.tokenizer)(["7"] * 6, trainer)


def test_a_rollout_that_cannot_be_split_is_refused(folder: Path, tmp_path: Path):
    with pytest.raises(ConfigError, match="12 rows"):
        arguments_for(run(folder, accumulate=5), tmp_path)
