"""Exact worth of play: held-out sizes are judged by it, so it must agree with games that are really played."""

from typing import Any

import pytest

from tests.training import tiny
from training import evaluation, exact
from training.config import Game
from training.exact import Member
from training.tokenizer import Codec

GAME = Game(sizes=((4, 8),))
FALLING = tuple((turn % 4 + 1, 88 - 6 * turn) for turn in range(8))


@pytest.fixture(scope="module")
def taught() -> tuple[Any, Any]:
    return tiny.taught()


def test_the_references_are_the_published_shares() -> None:
    known = exact.references("uniform:0:100", 4, 8, 0.0)
    assert known["optimal_ladder"] == pytest.approx(0.821, abs=5e-4)
    assert known["linear_ladder"] == pytest.approx(0.739, abs=5e-4)
    assert known["one_buyer"] == pytest.approx(0.556, abs=5e-4)


def test_a_sequence_is_worth_what_its_games_earn() -> None:
    from training.exploits import measure, sequence

    found = exact.valued(GAME, Member(4, 8, 0.0), FALLING)
    plan = [(buyer - 1, number) for buyer, number in FALLING]
    played = evaluation.share(*measure(sequence(plan), GAME, split="watch", count=1500))
    assert played.low < found.share < played.high
    assert found.share < found.optimal


def test_the_price_scale_changes_nothing_and_no_ask_earns_nothing() -> None:
    dear = Game(sizes=((4, 8),), values="uniform:0:25000")
    small = exact.valued(GAME, Member(4, 8, 20.0), FALLING)
    large = exact.valued(dear, Member(4, 8, 5000.0), FALLING)
    assert small.share == pytest.approx(large.share, abs=1e-6)
    assert exact.valued(GAME, Member(4, 8, 0.0), ()).share == 0.0


def test_a_policys_worth_is_that_of_its_own_games(taught: tuple[Any, Any]) -> None:
    codec = Codec(taught[1])
    member = Member(2, 3, 20.0)
    (found,) = exact.greedy(taught[0], codec, tiny.GAME, [member])
    game = Game(sizes=((2, 3),), costs=(20.0,))
    result = evaluation.evaluate(taught[0], codec, game, split="watch", episodes=1500, greedy=True)
    longest, _ = evaluation.most_common_plays(result, count=1)[0]
    assert found.asks[: len(longest)] == longest
    played = evaluation.share(result.surplus, result.first_best)
    assert played.low - 0.01 < found.share < played.high + 0.01
    assert found.of_optimum == pytest.approx(found.share / found.optimal)
