"""What tests need of the machine besides Python, and how they say that it is missing.

`PARLEY_REQUIRE=chromium,postgresql` turns a missing one from a skip into a failure, so that a machine meant to run
everything cannot pass by running less.
"""

import os
import shutil
from pathlib import Path
from typing import NoReturn

import pytest

CHROMIUM_NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
CHROMIUM_ARGS = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
"""The last ones keep the browser from calling home."""


def chromium() -> str | None:
    """Path of an installed Chromium."""
    return next((path for name in CHROMIUM_NAMES if (path := shutil.which(name))), None)


def postgresql() -> Path | None:
    """Folder of the PostgreSQL server binaries, the newest version first."""
    debian = sorted(Path("/usr/lib/postgresql").glob("*/bin"), key=lambda path: float(path.parent.name), reverse=True)
    found = shutil.which("initdb")
    folders = [*debian, *([Path(found).resolve().parent] if found else [])]
    return next((path for path in folders if (path / "initdb").exists() and (path / "postgres").exists()), None)


def required(what: str) -> bool:
    return what in os.environ.get("PARLEY_REQUIRE", "").split(",")


def skip_or_fail(what: str, *, reason: str) -> NoReturn:
    if required(what):
        pytest.fail(f"{reason} (required here by PARLEY_REQUIRE)")
    pytest.skip(reason)
