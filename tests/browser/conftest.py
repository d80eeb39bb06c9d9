"""A running site and a Chromium to look at it.

The site is `manage.py lab` itself, seeded, in a folder of its own; where DATABASE_URL and REDIS_URL name servers it serves
from those, in a database of its own (`python -m tests.postgres -n 2 tests/browser`). Under the strict content security policy
`page.wait_for_function` cannot evaluate: use `expect(locator)`.
"""

import os
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import pytest
from playwright.sync_api import Browser, BrowserContext, expect

from tests import machine, postgres
from tests.browser.people import Player, Watch
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
    servers = postgres.site_of_its_own(f"browser_{os.environ.get('PYTEST_XDIST_WORKER', 'gw0')}")
    running = RunningLab(var=tmp_path_factory.mktemp("lab") / "var", environment=servers)
    running.manage("shell", "-v", "0", "-c", "from tests.browser import world; world.make()")
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


Someone: TypeAlias = Callable[..., Player]

PATIENCE_MS = 20_000
"""How long a page may take on a busy machine before a test gives up on it."""

expect.set_options(timeout=PATIENCE_MS)


@pytest.fixture
def someone(browser: Browser, lab: RunningLab) -> Iterator[Someone]:
    """Makes people, each in a browser of their own: `someone()`, `someone(viewport=...)`.

    Whatever a test does, no page may complain on its console or ask another origin for anything.
    """
    contexts: list[BrowserContext] = []
    watches: list[Watch] = []

    def come(**options: Any) -> Player:
        context = browser.new_context(**({"viewport": {"width": 1440, "height": 900}} | options))
        context.set_default_timeout(PATIENCE_MS)
        contexts.append(context)
        watches.append(Watch(context, origin=lab.url))
        return Player(context.new_page(), site=lab.url, watch=watches[-1])

    yield come
    for context in contexts:
        context.close()
    for watch in watches:
        assert watch.complaints == []
        assert watch.strangers() == []


@pytest.fixture
def player(someone: Someone) -> Player:
    """One person with nothing behind them."""
    return someone()
