"""So many calls at the same time, whichever process makes them; a process that dies takes no place with it."""

import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from agents.backends.places import NoPlace, Places

HOLDS_ONE = """
import sys
from pathlib import Path
from agents.backends.places import Places
with Places("model", 1, folder=Path(sys.argv[1])).one(within_s=1):
    print("held", flush=True)
    sys.stdin.read()
"""


def test_a_place_that_another_process_holds_is_not_given_twice_and_free_when_it_is_killed(tmp_path: Path):
    other = subprocess.Popen(
        [sys.executable, "-c", HOLDS_ONE, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert other.stdout is not None
        assert other.stdout.readline() == "held\n"
        places = Places("model", 1, folder=tmp_path)
        with pytest.raises(NoPlace), places.one(within_s=0.05):
            pass
        with Places("another", 1, folder=tmp_path).one(within_s=0.05):
            pass  # Another back end's calls are its own.
        other.kill()
        other.wait()
        with places.one(within_s=1):
            pass
    finally:
        other.kill()
        other.wait()


def test_two_counters_of_one_back_end_share_its_places(tmp_path: Path):
    first, second = Places("model", 2, folder=tmp_path), Places("model", 2, folder=tmp_path)
    with first.one(within_s=1), second.one(within_s=1), pytest.raises(NoPlace), second.one(within_s=0.05):
        pass
    with first.one(within_s=1), first.one(within_s=1):
        pass


def test_who_waits_gets_the_place_that_comes_free(tmp_path: Path):
    places = Places("model", 1, folder=tmp_path)
    done: list[int] = []

    def call(number: int) -> None:
        with Places("model", 1, folder=tmp_path).one(within_s=5):
            done.append(number)

    with ThreadPoolExecutor(3) as pool, places.one(within_s=1):
        waiting = [pool.submit(call, number) for number in range(3)]
        assert done == []
        held_up = [each for each in waiting if each.done()]
        assert held_up == []
    assert sorted(done) == [0, 1, 2]


def test_a_folder_that_cannot_be_written_leaves_the_limit_of_one_process(tmp_path: Path):
    taken = tmp_path / "file"
    taken.write_text("")
    places = Places("model", 1, folder=taken / "below")
    with places.one(within_s=1), pytest.raises(NoPlace), places.one(within_s=0.05):
        pass
