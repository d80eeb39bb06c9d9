"""Phases of a run are marked where the stated rule says, and nowhere for a run that says too little."""

from itertools import pairwise
from typing import Any

from training.phases import DEALS, HOLDS, KEPT, OPENING, WINDOW, Name, Phase, phases


def run(*stretches: tuple[int, float, float, float]) -> list[dict[str, Any]]:
    """Rollouts: (how many, deal rate, kept over all games, opening)."""
    lines: list[dict[str, Any]] = []
    for count, deals, kept, opening in stretches:
        for _ in range(count):
            lines.append(
                {
                    "rollout": len(lines) + 1,
                    "deal_rate": deals,
                    "unconditional_share": kept,
                    "opening_of_list": opening,
                }
            )
    return lines


def test_a_run_goes_from_taught_over_pressing_and_deadlock_to_closing() -> None:
    found = phases(run((10, 0.8, 0.4, 0.7), (10, 0.8, 0.4, 0.9), (10, 0.5, 0.4, 0.9), (10, 0.85, 0.6, 0.9)))
    assert [phase.name for phase in found] == [Name.TAUGHT, Name.PRESSING, Name.DEADLOCK, Name.CLOSING]
    assert (found[0].first, found[-1].last) == (1, 40)
    assert all(before.last + 1 == after.first for before, after in pairwise(found))
    # The mean of the last five is past the mark from the second changed rollout on.
    assert found[1].first == 12


def test_a_run_that_changes_nothing_stays_as_it_was_taught() -> None:
    assert phases(run((30, 0.8, 0.4, 0.7))) == (Phase(Name.TAUGHT, 1, 30),)


def test_a_jump_that_does_not_hold_is_no_phase() -> None:
    lines = run((20, 0.8, 0.4, 0.7))
    lines[10]["opening_of_list"] += WINDOW * OPENING * 1.01  # Lifts five means in a row, the last barely.
    held = phases(lines)
    lines[10]["opening_of_list"] = 0.7 + OPENING
    assert phases(lines) == (Phase(Name.TAUGHT, 1, 20),)
    assert len(held) == 3  # Five means above the mark are more than it takes.
    assert HOLDS <= WINDOW


def test_each_mark_is_where_the_rule_says() -> None:
    start = (WINDOW, 0.8, 0.4, 0.7)
    for change, name in (
        ((0.8 - DEALS - 1e-6, 0.4, 0.7), Name.DEADLOCK),
        ((0.8 - DEALS + 1e-6, 0.4, 0.7), Name.TAUGHT),
        ((0.8, 0.4 + KEPT + 1e-6, 0.7), Name.CLOSING),
        ((0.8, 0.4 + KEPT - 1e-6, 0.7), Name.TAUGHT),
        ((0.8, 0.4, 0.7 + OPENING + 1e-6), Name.PRESSING),
        ((0.8, 0.4, 0.7 + OPENING - 1e-6), Name.TAUGHT),
        ((0.5, 0.9, 0.9), Name.DEADLOCK),
    ):
        assert phases(run(start, (20, *change)))[-1].name is name, (change, name)


def test_a_buyer_presses_by_opening_lower() -> None:
    lines = run((5, 0.8, 0.4, 0.5), (10, 0.8, 0.4, 0.4))
    assert phases(lines, seller=False)[-1].name is Name.PRESSING
    assert phases(lines)[-1].name is Name.TAUGHT


def test_a_run_that_says_too_little_has_no_phases() -> None:
    assert phases([]) == ()
    assert phases(run((WINDOW - 1, 0.8, 0.4, 0.7))) == ()
    assert phases([{"rollout": k, "reward": 0.1} for k in range(30)]) == ()
