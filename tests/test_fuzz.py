"""Strange input gets an answer, never a fault: a short run of what `make fuzz` does at length."""

import pytest

from tests import fuzz
from tests.agents.conftest import no_back_ends

__all__ = ["no_back_ends"]  # a fixture of the agents' tests


@pytest.mark.django_db
def test_the_server_bears_what_is_thrown_at_it(no_back_ends: None) -> None:
    document = fuzz.run(inputs=300, seed=11)
    assert document["errors"] == []
    assert min(document["by_kind"].values()) > 5
    assert document["addresses"] > 80
    # A run whose people were all signed out by its first inputs would find nothing wrong either.
    assert document["addresses_that_answered_with_a_page"] > 15
    assert document["by_status"]["200"] > 60
