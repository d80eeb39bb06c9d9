"""Which episode is for training, which for validation and which for the test, by its scenario.

Contract: no scenario and no person is in two splits. Scenarios that share a person, however indirectly,
stay together (union-find), and where they go is decided by the hash of the smallest of their keys; so a
split depends on the data alone, in any order, and a scenario of agents alone never moves. Pure.
"""

import hashlib
from collections import Counter
from collections.abc import Iterable

SPLITS = ("train", "validation", "test")
SHARES = (0.8, 0.1, 0.1)
"""Parts of the scenarios that go to each, on average."""


def _by_hash(key: int) -> str:
    place = int.from_bytes(hashlib.sha256(f"split {key}".encode()).digest()[:8], "big") / 2**64
    if place < SHARES[0]:
        return SPLITS[0]
    return SPLITS[1] if place < SHARES[0] + SHARES[1] else SPLITS[2]


class Splits:
    """The split of every scenario of an export. Memory grows with the scenarios that people were in, not with others."""

    def __init__(self) -> None:
        self._parent: dict[int, int] = {}
        self._first: dict[int, int] = {}
        self._moved = ""

    @property
    def participants(self) -> tuple[int, ...]:
        """Everybody who sat somewhere."""
        return tuple(self._first)

    def sat(self, participant: int, key: int) -> None:
        """Somebody was in a scenario."""
        known = self._first.setdefault(participant, key)
        self._join(known, key)

    def settle(self, keys: Iterable[int]) -> Counter[str]:
        """Look at the keys of all episodes once; gives how many are in each split.

        Where the hash leaves nothing to train on, the fullest split is the one for training.
        """
        counts = Counter(_by_hash(self._root(key)) for key in keys)
        if counts and not counts[SPLITS[0]]:
            self._moved = max(SPLITS, key=lambda split: counts[split])
            counts[SPLITS[0]] = counts.pop(self._moved)
        return counts

    def split_of(self, key: int) -> str:
        """The split of a scenario."""
        found = _by_hash(self._root(key))
        return SPLITS[0] if found == self._moved else found

    def _root(self, key: int) -> int:
        parent = self._parent
        if key not in parent:
            return key
        root = key
        while parent[root] != root:
            root = parent[root]
        while parent[key] != root:
            parent[key], key = root, parent[key]
        return root

    def _join(self, one: int, other: int) -> None:
        self._parent.setdefault(one, one)
        self._parent.setdefault(other, other)
        low, high = sorted((self._root(one), self._root(other)))
        self._parent[high] = low
