"""What comes with the code must be what its card says, without drawing a game; aims are judged by `training.verify`."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from agents.learned.published import SHIPPED
from training import evaluation, exact, verify
from training import model as models
from training.tokenizer import Codec

ALL = verify.checkpoints(SHIPPED)
FOUND = [(path, data) for path, data in ALL if not data["game"].get("catalogue")]
"""Those whose worth can be computed."""
OVER_PRODUCTS = [(path, data) for path, data in ALL if data["game"].get("catalogue")]


@pytest.mark.parametrize(("path", "data"), FOUND, ids=[path.name for path, _ in FOUND])
def test_a_shipped_policy_is_as_strong_as_its_card_says(path: Path, data: dict[str, Any]) -> None:
    config = verify.configuration(data)
    measured = json.loads((path / "card.json").read_text())["measured"]
    model, tokenizer = models.load(path)
    codec = Codec(tokenizer)
    if "members" in measured:
        rows = [row for row in measured["members"] if not row["trained"]]
        members = [exact.Member(row["buyers"], row["turns"], row["cost"]) for row in rows]
        assert {each.member for each in verify.figures(path, config, name=path.name)} == set(members)
        found = exact.greedy(model, codec, config.game, members)
        assert [each.share for each in found] == pytest.approx([row["greedy"] for row in rows], abs=0.005)
    else:
        (pair,), (cost,) = config.game.sizes, config.game.costs
        (only,) = exact.greedy(model, codec, config.game, [exact.Member(*pair, cost)])
        card = measured["greedy"]
        assert card["share_low"] - 0.005 < only.share < card["share_high"] + 0.005


def test_the_policy_for_a_family_beats_the_policy_for_one_game_at_every_other_size() -> None:
    """Otherwise visitors of markets of other sizes would be offered the weaker one."""
    found = {path.name: verify.configuration(data) for path, data in FOUND}
    config = found["all-round-learner"]
    members = [exact.Member(buyers, turns, 25.0) for buyers, turns in config.verify.sizes]
    shares = {}
    for name in ("all-round-learner", "ladder-learner"):
        model, tokenizer = models.load(SHIPPED / name)
        shares[name] = [each.share for each in exact.greedy(model, Codec(tokenizer), config.game, members)]
    assert all(ours > theirs for ours, theirs in zip(*shares.values(), strict=True)), shares


@pytest.mark.parametrize(("path", "data"), FOUND, ids=[path.name for path, _ in FOUND])
def test_a_shipped_policy_asks_alike_over_five_decades_of_prices(path: Path, data: dict[str, Any]) -> None:
    config = verify.configuration(data)
    buyers, turns = max(config.verify.sizes or config.game.sizes)
    model, tokenizer = models.load(path)
    asks = set()
    for decade in range(5):
        game = msgspec.structs.replace(config.game, values=f"uniform:0:{10**decade}")
        (found,) = exact.greedy(model, Codec(tokenizer), game, [exact.Member(buyers, turns, 0.2 * 10**decade)])
        asks.add(found.asks)
    assert len(asks) == 1


@pytest.mark.parametrize(("path", "data"), OVER_PRODUCTS, ids=[path.name for path, _ in OVER_PRODUCTS])
def test_a_shipped_policy_earns_about_what_its_card_says_and_answers_in_words_that_can_be_read(
    path: Path, data: dict[str, Any]
) -> None:
    config = verify.configuration(data)
    card = json.loads((path / "card.json").read_text())
    assert (card["grammar"], card["role"], card["family"]) == (
        config.game.dialogue,
        config.game.role.value,
        config.game.family.value,
    )
    model, tokenizer = models.load(path)
    result = evaluation.evaluate(model, Codec(tokenizer), config.game, split="choose", episodes=80, greedy=True)
    found, told = evaluation.figures(result), card["measured"]["greedy"]
    assert found["share_low"] < told["share_high"]
    assert told["share_low"] < found["share_high"]
    assert found["refused_rate"] < 0.02
    assert (path / "model.safetensors").stat().st_size < 3_000_000
