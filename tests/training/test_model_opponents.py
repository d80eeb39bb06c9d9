"""Language models sit opposite in training, asked once for each answer and never beyond what was allowed."""

from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from agents import backends, registry
from agents.backends import BackendError, ChatMessage, ChatRequest
from agents.backends.fake import FakeBackend
from agents.base import Kind
from markets.engine.protocol import DeadlinePassed, MoveRefused, Role
from tests.training import tiny
from training.environment import Episode, draw_table
from training.guards import Stopped
from training.model_opponents import FILE, Metered

QUESTION = ChatRequest(messages=(ChatMessage("user", "What now?"),), seed=3)
OTHER = msgspec.structs.replace(QUESTION, seed=4)


def test_an_answer_is_asked_for_once_and_kept_over_restarts(tmp_path: Path) -> None:
    server = FakeBackend(["yes", "no"])
    model = Metered.open(tmp_path, budget=5).around(server)
    assert [model.chat(QUESTION).text, model.chat(QUESTION).text, model.chat(OTHER).text] == ["yes", "yes", "no"]
    again = Metered.open(tmp_path, budget=5)
    assert again.around(FakeBackend([])).chat(OTHER).text == "no"
    assert (len(server.requests), again.asked) == (2, 2)


def test_a_budget_holds_over_restarts_and_stops_the_run_with_a_sentence(tmp_path: Path) -> None:
    Metered.open(tmp_path, budget=1).around(FakeBackend(["yes"])).chat(QUESTION)
    server = FakeBackend(["no"])
    later = Metered.open(tmp_path, budget=1).around(server)
    assert later.chat(QUESTION).text == "yes"
    with pytest.raises(Stopped, match="model_calls"):
        later.chat(OTHER)
    assert not server.requests


def test_a_call_that_fails_is_paid_for_and_not_kept(tmp_path: Path) -> None:
    meter = Metered.open(tmp_path, budget=2)
    with pytest.raises(BackendError):
        meter.around(FakeBackend([BackendError("busy", "Busy.")])).chat(QUESTION)
    assert meter.around(FakeBackend(["yes"])).chat(QUESTION).text == "yes"
    with pytest.raises(Stopped):
        meter.around(FakeBackend(["more"])).chat(OTHER)


def test_a_line_that_was_cut_off_is_not_read(tmp_path: Path) -> None:
    Metered.open(tmp_path, budget=5).around(FakeBackend(["yes"])).chat(QUESTION)
    with (tmp_path / FILE).open("ab") as file:
        file.write(b'{"key":"ab')
    assert Metered.open(tmp_path, budget=5).asked == 1


@pytest.fixture
def model() -> Iterator[FakeBackend]:
    before = {config.name: config for config in backends.configured()}
    server = FakeBackend(["I do not follow the form at all."], name="clever")
    backends.seat(server)
    yield server
    backends.configure(before)


def opposite(slug: str) -> Episode:
    game = msgspec.structs.replace(tiny.GAME, opponents=(slug,), model_calls=10)
    return Episode(draw_table(game, 5))


def slug_of_decider() -> str:
    return next(
        spec.slug for spec in registry.all_specs() if spec.kind is Kind.MODEL and spec.slug.startswith("clever")
    )


def test_a_model_that_cannot_be_read_breaks_a_rule_and_not_the_rollout(model: FakeBackend) -> None:
    episode = opposite(slug_of_decider())
    assert episode.act(("ask", "b1", "90")) is not None
    assert any(isinstance(entry.event, MoveRefused) and entry.event.by is Role.BUYER for entry in episode.log)


def test_a_model_that_does_not_answer_lets_its_time_run_out(model: FakeBackend) -> None:
    model._answers = [BackendError("timeout", "Too late.")]
    episode = opposite(slug_of_decider())
    assert episode.act(("ask", "b1", "90")) is not None
    assert any(isinstance(entry.event, DeadlinePassed) for entry in episode.log)
