"""Splits keep people and scenarios together and depend on the data alone."""

from hypothesis import given
from hypothesis import strategies as st

from markets.export_splits import SPLITS, Splits

SEATINGS = st.lists(st.tuples(st.integers(1, 12), st.integers(0, 40)), max_size=60)


def settled(seatings, keys) -> Splits:
    splits = Splits()
    for participant, key in seatings:
        splits.sat(participant, key)
    splits.settle(keys)
    return splits


@given(SEATINGS, st.randoms())
def test_nobody_is_in_two_splits_and_the_order_does_not_matter(seatings, rng):
    keys = sorted({key for _participant, key in seatings} | {100, 101, 102})
    splits = settled(seatings, keys)
    people: dict[int, set[str]] = {}
    for participant, key in seatings:
        people.setdefault(participant, set()).add(splits.split_of(key))
    assert all(len(found) == 1 for found in people.values())
    shuffled = list(seatings)
    rng.shuffle(shuffled)
    again = settled(shuffled, reversed(keys))
    assert [splits.split_of(key) for key in keys] == [again.split_of(key) for key in keys]


def test_there_is_always_something_to_train_on():
    for key in range(50):
        splits = Splits()
        assert splits.settle([key])[SPLITS[0]] == 1
        assert splits.split_of(key) == SPLITS[0]


def test_parts_are_as_large_as_they_are_said_to_be():
    counts = Splits().settle(range(10_000))
    assert 7_800 < counts["train"] < 8_200
    assert 850 < counts["test"] < 1_150
