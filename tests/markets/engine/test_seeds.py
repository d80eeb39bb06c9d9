"""Seeds by name: the same everywhere, and no two names share a stream by accident."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from markets.engine.seeds import derive_seed

parts = st.lists(st.one_of(st.text(max_size=8), st.integers()), min_size=1, max_size=4)


def test_a_seed_is_the_same_in_every_process_and_for_ever() -> None:
    """The number is written down: a change would give every stored seed another scenario."""
    assert derive_seed("scenario", 1) == 10383757971125377973
    told = subprocess.run(
        [sys.executable, "-c", "from markets.engine.seeds import derive_seed; print(derive_seed('scenario', 1))"],
        cwd=Path(__file__).parents[3],
        env=os.environ | {"PYTHONHASHSEED": "99"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert int(told.stdout) == derive_seed("scenario", 1)


@given(parts, parts)
def test_different_names_give_different_seeds(first: list[str | int], second: list[str | int]) -> None:
    assert (derive_seed(*first) == derive_seed(*second)) is (first == second)


@pytest.mark.parametrize(
    ("first", "second"),
    [((1,), ("1",)), (("a", "b"), ("ab",)), (("a", "b"), ("b", "a")), (("a",), ("a", "")), (("a\x1fsb",), ("a", "b"))],
)
def test_the_parts_are_kept_apart(first: tuple[str | int, ...], second: tuple[str | int, ...]) -> None:
    assert derive_seed(*first) != derive_seed(*second)


@given(parts)
def test_a_seed_has_64_bits(names: list[str | int]) -> None:
    assert 0 <= derive_seed(*names) < 2**64
