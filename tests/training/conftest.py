"""Training tests need the full stack; in the light install they are skipped, and say so."""

from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

WITH_TRAINING = find_spec("torch") is not None and find_spec("trl") is not None


class NeedsTrainingStack(pytest.Module):
    """A test module that cannot be imported here."""

    def collect(self) -> Any:
        pytest.skip("needs the training stack (make install)", allow_module_level=True)


def pytest_pycollect_makemodule(module_path: Path, parent: Any) -> pytest.Module | None:
    """Without torch and TRL a module is one skip with its reason."""
    return None if WITH_TRAINING else NeedsTrainingStack.from_parent(parent, path=module_path)


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """Sums come out the same on a machine with more cores, and neighbours are left theirs."""
    import torch

    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
