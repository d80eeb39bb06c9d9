"""A running site and a Chromium to look at it.

The site is `manage.py lab` itself, seeded, in a folder of its own. Under the strict content security policy
`page.wait_for_function` cannot evaluate: use `expect(locator)`.
"""

import os
from collections.abc import Iterator
from typing import Any

import pytest

from tests import machine
from tests.lab import RunningLab

os.environ.setdefault("DJANGO_ALLOW_ASYNC_UNSAFE", "1")  # Playwright runs an event loop in the main thread.


@pytest.fixture(scope="session")
def browser_type_launch_args(browser_type_launch_args: dict[str, Any]) -> dict[str, Any]:
    path = machine.chromium()
    if path is None:
        machine.skip_or_fail("chromium", reason="no Chromium on this machine (Debian: apt install chromium)")
    return browser_type_launch_args | {"executable_path": path, "args": list(machine.CHROMIUM_ARGS)}


@pytest.fixture(scope="session")
def lab(browser_type_launch_args: dict[str, Any], tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningLab]:
    """The running site: `lab.url`, `lab.restart_web()`, `lab.restart("worker")`, `lab.manage("list_markets")`."""
    running = RunningLab(var=tmp_path_factory.mktemp("lab") / "var")
    yield running
    assert running.stop() == 0


@pytest.fixture
def complaints(page: Any) -> list[str]:
    """What the browser's console holds against the page: errors, and violations of the content security policy.

    A test ends with `assert complaints == []`.
    """
    said: list[str] = []
    page.on("console", lambda message: said.append(message.text) if message.type == "error" else None)
    page.on("pageerror", lambda error: said.append(str(error)))
    return said
