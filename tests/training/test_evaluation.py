"""Figures that reports are made of: a wrong share or a shared game would make every claim worthless."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from agents.learned import published
from agents.play import play, seat
from markets.engine.protocol import SELLER, MoveRefused, Role
from tests.training import tiny
from training import evaluation, exploits
from training import model as models
from training.config import Game
from training.environment import draw_table
from training.publish import publish
from training.tokenizer import Codec

LADDER = Game(sizes=((4, 8),))


@pytest.fixture(scope="module")
def taught() -> tuple[Any, Any]:
    return tiny.taught()


def test_a_share_is_a_sum_over_a_sum_and_its_interval_covers_it() -> None:
    rng = np.random.default_rng(0)
    first_best = rng.uniform(50, 100, 2000)
    surplus = first_best * rng.binomial(1, 0.7, 2000)
    interval = evaluation.share(surplus, first_best)
    assert interval.mean == pytest.approx(surplus.sum() / first_best.sum())
    assert interval.low < interval.mean < interval.high
    assert 0.03 < interval.high - interval.low < 0.06


def test_splits_share_no_game_and_a_split_is_the_same_every_time() -> None:
    def values(split: str) -> set[Any]:
        return {e.scenario.buyer_values_cents for e in evaluation.games(LADDER, split=split, count=50)}

    assert values("final") == values("final")
    assert not values("final") & values("watch")
    assert not values("choose") & values("exploit")


def test_sampled_and_greedy_play_are_repeatable_and_differ(taught: tuple[Any, Any]) -> None:
    model, tokenizer = taught
    codec = Codec(tokenizer)

    def asks(greedy: bool) -> list[Any]:
        result = evaluation.evaluate(model, codec, tiny.GAME, split="watch", episodes=20, greedy=greedy)
        return evaluation.asks(result)

    assert asks(True) == asks(True)
    assert asks(False) == asks(False)
    assert asks(True) != asks(False)


def test_batches_of_any_size_play_the_same_greedy_games(taught: tuple[Any, Any], monkeypatch: Any) -> None:
    model, tokenizer = taught
    codec = Codec(tokenizer)
    whole = evaluation.evaluate(model, codec, tiny.GAME, split="watch", episodes=12, greedy=True)
    monkeypatch.setattr(evaluation, "BATCH", 5)
    parts = evaluation.evaluate(model, codec, tiny.GAME, split="watch", episodes=12, greedy=True)
    assert [t.episode.log for t in whole.trajectories] == [t.episode.log for t in parts.trajectories]
    figures = evaluation.figures(whole)
    assert figures["episodes"] == 12
    assert sum(figures["asks"].values()) == sum(len(sequence) for sequence in evaluation.asks(whole))
    chosen = evaluation.transcripts(whole, codec)
    assert [each.chosen for each in chosen] == ["best"] * 3 + ["worst"] * 3 + ["random"] * 4
    assert all("hidden values" in each.text for each in chosen)
    assert chosen[0].share >= chosen[1].share > chosen[4].share >= chosen[3].share


def test_the_absurd_ask_wins_nothing_and_the_climbed_plan_beats_the_constant_one() -> None:
    table = {row["trick"]: row for row in exploits.search(LADDER, count=300, climb_games=60, climb_steps=10, seed=1)}
    assert table["absurd ask"]["mean"] == 0.0
    assert 0.5 < table["best constant ask"]["mean"] < 0.75
    assert table["hill-climbed fixed sequence"]["mean"] > table["best constant ask"]["mean"]
    assert table["hill-climbed fixed sequence"]["mean"] < 0.87


def test_a_bid_tempts_the_trick_that_accepts_at_once() -> None:
    game = Game(sizes=((3, 6),), opponents=("linear",))
    surplus, _ = exploits.measure(exploits.accept_first(99), game, split="choose", count=60)
    assert (surplus > 0).mean() > 0.8


def test_a_published_model_plays_in_numpy_what_it_played_in_torch(taught: tuple[Any, Any], tmp_path: Path) -> None:
    models.save(tmp_path / "grpo", *taught)
    file = tmp_path / "tiny.toml"
    file.write_text('name = "tiny"\n[game]\nsizes = [[2, 3]]\ncosts = [0.0, 20.0]\n')
    run = tiny.config()
    card = publish(run, tmp_path, tmp_path / "out", file=file, slug="tiny", title="Tiny", episodes=40, replace=False)
    assert card.measured["greedy"]["episodes"] == 40
    (spec, _) = published.specs(tmp_path / "out")
    assert spec.version == card.weights_sha256[:12]
    model, tokenizer = models.load(tmp_path / "out" / "tiny")
    result = evaluation.evaluate(model, Codec(tokenizer), run.game, split="choose", episodes=60, greedy=True)
    same = 0
    for trajectory in result.trajectories:
        log = trajectory.episode.log
        if any(isinstance(e.event, MoveRefused) and e.event.by is Role.SELLER for e in log):
            continue
        seats = {SELLER: seat(spec), **draw_table_opponents(trajectory.episode.scenario, run.game)}
        assert play(trajectory.episode.scenario, seats).log == log
        same += 1
    assert same > 20


def draw_table_opponents(scenario: Any, game: Game) -> dict[str, Any]:
    from markets.engine.seeds import derive_seed

    for k in range(60):
        table = draw_table(game, derive_seed("choose", k))
        if table.scenario == scenario:
            return table.opponents
    raise AssertionError("not one of the drawn games")


def test_publishing_twice_needs_a_word_and_a_taken_slug_is_refused(taught: tuple[Any, Any], tmp_path: Path) -> None:
    from training.config import ConfigError

    models.save(tmp_path / "grpo", *taught)
    file = tmp_path / "tiny.toml"
    file.write_text('name = "tiny"\n[game]\nsizes = [[2, 3]]\n')
    arguments: dict[str, Any] = {"file": file, "title": "Tiny", "episodes": 4}
    publish(tiny.config(), tmp_path, tmp_path / "out", slug="tiny", replace=False, **arguments)
    with pytest.raises(ConfigError, match="--replace"):
        publish(tiny.config(), tmp_path, tmp_path / "out", slug="tiny", replace=False, **arguments)
    publish(tiny.config(), tmp_path, tmp_path / "out", slug="tiny", replace=True, **arguments)
    with pytest.raises(ConfigError, match="already"):
        publish(tiny.config(), tmp_path, tmp_path / "out", slug="linear", replace=True, **arguments)
