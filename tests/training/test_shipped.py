"""What comes with the code must be as strong as its run's file demands, without drawing a game."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from agents.learned.published import SHIPPED
from training import exact, verify
from training import model as models
from training.tokenizer import Codec

FOUND = verify.checkpoints(SHIPPED)


@pytest.mark.parametrize(("path", "data"), FOUND, ids=[path.name for path, _ in FOUND])
def test_a_shipped_policy_reaches_its_aim_in_every_judged_game(path: Path, data: dict[str, Any]) -> None:
    config = verify.configuration(data)
    members = {each.member: each.least for each in verify.figures(path, config, name=path.name) if each.greedy}
    model, tokenizer = models.load(path)
    for found in exact.greedy(model, Codec(tokenizer), config.game, list(members)):
        least = max(members[found.member] * found.optimal, found.linear)
        assert found.share >= least, (found.member, found.share, least)


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
