"""What the tests of agents share: a process without back ends, put back afterwards."""

from collections.abc import Iterator

import pytest

from agents import backends


@pytest.fixture
def no_back_ends() -> Iterator[None]:
    """No model is configured; whatever a test configures is gone after it."""
    before = dict(backends._configs), dict(backends._seated)
    backends.configure({})
    yield
    backends.configure(before[0])
    backends._seated.update(before[1])
