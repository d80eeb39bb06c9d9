"""What every test gets: no network, no language model, a fresh in-memory channel layer, hypothesis without a clock; the
public data.

Browser tests run in a call of their own (`pytest tests/browser`): Playwright's event loop and pytest-asyncio's do not
share a process.
"""

import os
import socket
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from channels.layers import channel_layers
from hypothesis import settings as hypothesis_settings

hypothesis_settings.register_profile("here", deadline=None, print_blob=True)
hypothesis_settings.register_profile("ci", deadline=None, print_blob=True, derandomize=True)
hypothesis_settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "here"))

BROWSER = Path(__file__).parent / "browser"


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Browser tests are collected only when asked for by name."""
    if collection_path != BROWSER:
        return None
    asked = any(
        BROWSER in (path := Path(arg.split("::")[0]).resolve()).parents or path == BROWSER for arg in config.args
    )
    return None if asked else True


class NetworkUsed(RuntimeError):
    """A test reached for something beyond this machine."""


@pytest.fixture(scope="session", autouse=True)
def no_network() -> Iterator[None]:
    connect = socket.socket.connect

    def guarded(self: socket.socket, address: Any) -> None:
        if self.family in (socket.AF_INET, socket.AF_INET6) and address[0] not in ("127.0.0.1", "::1", "localhost"):
            raise NetworkUsed(f"a test connected to {address!r}; tests stay on this machine")
        connect(self, address)

    patch = pytest.MonkeyPatch()
    patch.setattr(socket.socket, "connect", guarded)
    yield
    patch.undo()


@pytest.fixture(autouse=True)
def no_language_model(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test asks a model over the network unless its marker `language_model` says so."""
    if request.node.get_closest_marker("language_model"):
        return
    from agents.backends.chat import ChatBackend

    def refused(self: ChatBackend, *_: Any, **__: Any) -> None:
        raise NetworkUsed(f"a test asked the back end {self.config.name!r}; mark it language_model, or seat a fake")

    monkeypatch.setattr(ChatBackend, "chat", refused)


@pytest.fixture(autouse=True)
def fresh_channel_layer() -> Iterator[None]:
    """No message of one test waits for the next."""
    yield
    channel_layers.backends.clear()


@pytest.fixture(autouse=True)
def no_copy_of_another_record() -> None:
    """What pages keep of the database is of this test's database."""
    for name in ("leaderboard.facts", "leaderboard.pages", "market_picture"):
        module = sys.modules.get(f"negotiation_site.{name}")
        if module is not None:
            module.forget()


@pytest.fixture(scope="session")
def parley_data() -> Path:
    """Folder of the public negotiation data (PARLEY_DATA)."""
    from django.conf import settings

    if not settings.DATA.is_dir():
        pytest.skip(f"no public data at {settings.DATA}; set PARLEY_DATA")
    return settings.DATA
