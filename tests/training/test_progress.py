"""Whoever watches a run is told when its stage may end, once that can be told."""

from tests.training import tiny
from training.progress import progress

LINES = [{"kind": "train", "rollout": k, "at": 100.0 + 2 * k + (50 if k > 3 else 0)} for k in range(1, 5)]


def test_the_end_follows_from_the_usual_pace_and_not_from_one_pause() -> None:
    found = progress(tiny.config(rollouts=10), LINES, stage="grpo")
    assert (found.done, found.total, found.share) == (4, 10, 0.4)
    assert found.seconds_left == 12.0


def test_nothing_is_promised_before_there_is_a_pace_or_where_nothing_is_counted() -> None:
    assert progress(tiny.config(rollouts=10), LINES[:2], stage="grpo").seconds_left is None
    assert progress(tiny.config(rollouts=10), [], stage="sft").seconds_left is None
    assert progress(tiny.config(rollouts=10), LINES, stage="evaluate").total == 0


def test_imitation_counts_its_steps() -> None:
    lines = [{"kind": "imitate", "step": 25 * k, "rollout": 0, "at": 10.0 * k} for k in range(1, 5)]
    found = progress(tiny.config(rollouts=10), lines, stage="sft")
    assert (found.done, found.total) == (100, 250)
    assert found.seconds_left == 60.0
