"""A learner stands beside rules on the same games, with intervals; without them a lucky draw would read as a finding."""

from pathlib import Path

from training import comparison
from training.config import load

CONFIGS = Path(__file__).resolve().parents[2] / "training" / "configs"


def test_a_rule_over_several_products_has_intervals_of_its_matching_and_of_what_it_gets() -> None:
    game = load(CONFIGS / "catalogue.toml").game
    row = comparison.by_agent(game, "serial", split="choose", count=12)
    for name in comparison.WITH_INTERVALS:
        low, high = row.intervals[name]
        assert low < row.conduct[name] < high
    assert f"[{row.intervals['extraction'][0]:.3f}, " in comparison.line(row)


def test_one_product_has_none_of_them() -> None:
    game = load(CONFIGS / "bands.toml").game
    row = comparison.by_agent(game, "chase-highest-bid", split="choose", count=3)
    assert row.intervals == {}
    assert row.low <= row.share <= row.high
