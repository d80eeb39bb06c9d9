"""A run's last stage looks at each held-out axis by itself, and trains on none of them."""

from pathlib import Path

import msgspec

from markets.engine import priors, splits
from tests.training import tiny
from training import held_out, stages
from training import model as models
from training.config import Evaluation, Verify, load
from training.environment import draw_table


def test_games_over_bare_values_are_moved_to_strangers_and_to_unseen_sizes_one_at_a_time() -> None:
    run = msgspec.structs.replace(tiny.config(), verify=Verify(sizes=((2, 3), (3, 5))))
    found = held_out.moved(run)
    assert list(found) == [*(f"buyer-type-{slug}" for slug in splits.BUYER_TYPES), "size-3x5"]
    for game in found.values():
        changed = [name for name in game.__struct_fields__ if getattr(game, name) != getattr(run.game, name)]
        assert len(changed) == 1, changed


def test_games_over_products_have_the_axes_of_their_family() -> None:
    found = held_out.moved(load(Path("training/configs/bands.toml")))
    assert {"products", "price-decade", "lognormal", "buyers-5", "rho-0.6"} <= set(found)
    assert all(game.axis == name for name, game in found.items() if name != "buyer-type")


def test_of_several_laws_each_game_has_one_and_an_axis_is_about_the_first() -> None:
    game = load(Path("training/configs/robust.toml")).game
    drawn = {priors.format_spec(draw_table(game, seed).scenario.prior.value_spec) for seed in range(40)}
    assert drawn == {game.values, *game.further_values}
    on_products = held_out.axes(game)["products"]
    assert {draw_table(on_products, seed).scenario.prior.value_spec for seed in range(8)} == {priors.BandsSpec()}


def test_each_checkpoint_gets_a_row_for_each_axis(tmp_path: Path) -> None:
    model, tokenizer = tiny.taught()
    for stage in ("sft", "grpo"):
        models.save(tmp_path / stage, model, tokenizer)
    run = msgspec.structs.replace(tiny.config(), evaluation=Evaluation(every=0, final_episodes=8, axis_episodes=8))
    found = stages.look(run, tmp_path)
    assert [(row["axis"], row["stage"]) for row in found["axes"]] == [
        (f"buyer-type-{slug}", stage) for stage in ("sft", "grpo") for slug in splits.BUYER_TYPES
    ]
    for row in found["axes"]:
        assert row["episodes"] == 8
        assert row["share_low"] <= row["share"] <= row["share_high"]
    without = msgspec.structs.replace(run, evaluation=Evaluation(every=0, final_episodes=8))
    assert "axes" not in stages.look(without, tmp_path)
