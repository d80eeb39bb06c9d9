"""Figures of load that flatter us would be worse than none."""

import argparse

import pytest

from benchmarks import rooms


def test_both_times_have_to_be_below_the_gate():
    good, slow = {"p50": 5.0, "p95": 40.0, "p99": 60.0}, {"p50": 5.0, "p95": 60.0, "p99": 90.0}
    assert rooms.meets(good, slow)
    assert not rooms.meets(slow, good)
    assert not rooms.meets(good, {"p50": 100.0, "p95": 600.0, "p99": 900.0})
    assert not rooms.meets(None, good)
    assert not rooms.meets(good, None)


def test_the_spread_is_in_milliseconds_and_unknown_where_there_is_too_little():
    assert rooms.spread_ms([0.001 * number for number in range(1, 102)]) == {"p50": 51.0, "p95": 96.0, "p99": 100.0}
    assert rooms.spread_ms([0.1]) is None


def test_the_busiest_is_counted_for_one_process_of_a_kind():
    class Site:
        def pids(self):
            return {"web-1": 1, "web-2": 2, "clock": 3}

    assert rooms.busiest({"web": 1.6, "clock": 0.9, "bots": 9.0}, Site()) == "clock"
    assert rooms.busiest({"web": 2.4, "clock": 0.9}, Site()) == "web"


def test_numbers_of_rooms_are_read_or_refused_with_a_sentence():
    assert rooms.room_counts("50,150,300") == [50, 150, 300]
    for wrong in ("", "many", "10,0", "-5"):
        with pytest.raises(argparse.ArgumentTypeError, match="names no numbers of rooms"):
            rooms.room_counts(wrong)


def test_a_step_without_answers_is_told_as_it_is():
    told = rooms.line(
        {
            "rooms": 3,
            "moves_per_second": 0.3,
            "own_ms": {"p50": 1.0, "p95": 2.0, "p99": 3.0},
            "agent_ms": None,
            "other_ms": None,
            "cpu_share": {"web": 0.05},
            "others_cpu_share": 1.5,
            "web_cpu_ms_per_move": 12.5,
            "gate_met": False,
        }
    )
    assert "own 1/2/3, agent -, other -" in told
    assert told.endswith("web 12.5 ms a move; gate not met")
