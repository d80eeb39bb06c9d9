"""A trained seller meets buyers that speak: arms share their scenarios, words are all that differs."""

import json
from pathlib import Path
from typing import ClassVar

import msgspec
import pytest

from agents import backends, registry
from agents.base import Turn
from markets.engine.protocol import MakeOffer
from tests.training.language import tiny
from training.language import base, meeting
from training.language.config import Sampling


def test_buyers_that_do_not_listen_make_no_difference(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    file = tmp_path / "games.jsonl"
    assert meeting.main(["--buyer", "threshold", "--scenarios", "12", "--games", str(file)]) == 0
    found = json.loads(capsys.readouterr().out)
    assert 0 < found["talk"]["mean_first_ask"] <= 100
    assert found["talk"]["default_acts"] == 0
    games = [json.loads(line) for line in file.read_text().splitlines()]
    assert [(game["scenario"], game["arm"]) for game in games[:3]] == [(0, "talk"), (0, "silent"), (1, "talk")]
    assert len(games) == 24
    assert all(game["game"] for game in games)
    assert found["talk_minus_silent"] == [0.0, 0.0, 0.0]
    assert found["talk"]["share"] == found["silent"]["share"] > 0.5
    assert found["talk"]["valid_rate"] is None, "nobody was asked for words"


class Listening:
    """A buyer that keeps what it hears and bids a dollar."""

    heard: ClassVar[list[str]] = []

    def act(self, turn: Turn) -> MakeOffer:
        """The bid."""
        self.heard.extend(turn.said(seen) for seen in turn.past)
        return MakeOffer(price_cents=100)


@pytest.mark.parametrize("talks", [True, False], ids=["talk", "silent"])
def test_a_talking_seller_is_heard_and_a_silent_one_is_not(talks: bool):
    buyer = msgspec.structs.replace(meeting.buyer_spec(tiny.config("nowhere")), build=Listening)
    game = meeting.scenario(0, buyers=2, turns=4, values="uniform:0:100")
    Listening.heard.clear()
    meeting.meet(game, registry.get("falling-ladder"), talks=talks, buyer=buyer)
    assert Listening.heard
    assert any(Listening.heard) is talks


def test_an_untrained_model_in_the_form_is_met(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(backends, "_configs", {})
    monkeypatch.setattr(backends, "_seated", {})
    sampling = Sampling(longest=400, together=2, temperature=1.0)
    config = tiny.config(tiny.qwen3(tmp_path / "base"), sampling=sampling)
    found = meeting.run(
        config,
        base.load(config),
        seller=registry.get("ladder-learner"),
        buyer=meeting.buyer_spec(config),
        scenarios=2,
        buyers=2,
        turns=2,
        values="uniform:0:100",
    )
    assert found["talk"]["answers"] >= 2
    assert found["talk"]["buyers_surplus_negative"] == 0, "a regulated buyer loses nothing"


@pytest.mark.parametrize(
    ("words", "sentence"),
    [(["--seller", "nobody"], "There is no agent"), (["--scenarios", "0", "--buyer", "threshold"], "at least 1")],
)
def test_what_cannot_meet_is_told(words: list[str], sentence: str, capsys: pytest.CaptureFixture[str]):
    assert meeting.main(words) == 2
    assert sentence in capsys.readouterr().err
