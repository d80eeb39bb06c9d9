"""How much the tests play: enough to see a fault within minutes, or everything.

`PARLEY_THOROUGH=1 make test` plays every pair of agents, every attack and the longer runs; it takes several times as
long. What is asserted is the same.
"""

import os
from collections.abc import Sequence
from typing import TypeVar

THOROUGH = os.environ.get("PARLEY_THOROUGH", "") == "1"

Item = TypeVar("Item")


def games(few: int, *, thorough: int) -> int:
    """How many games, examples or draws."""
    return thorough if THOROUGH else few


def some(items: Sequence[Item], *, one_in: int, start: int = 0) -> list[Item]:
    """Every `one_in`-th from `start` on (counted round), or all of them where everything is asked for."""
    return list(items) if THOROUGH else list(items[start % one_in :: one_in])
