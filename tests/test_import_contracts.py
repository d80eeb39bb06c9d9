"""Who may import whom is checked, and the check itself is proven to bite: on a copy of the code with one wrong import.

A rule that passes because it looks at nothing would let Django into the engine and torch into the web process.
"""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.lab import ROOT

PACKAGES = ("negotiation_site", "training", "agents", "markets")

WRONG = [
    ("markets/offender.py", "import agents.registry", "never the other way"),
    ("agents/offender.py", "import training.apps", "never the other way"),
    ("training/offender.py", "import negotiation_site.stack", "never the other way"),
    ("markets/engine/offender.py", "import markets.models", "then the engine"),
    ("markets/engine/offender.py", "import django.conf", "The engine is arithmetic and rules"),
    ("markets/engine/offender.py", "import time", "The engine is arithmetic and rules"),
    ("markets/engine/offender.py", "import numpy", "The engine is arithmetic and rules"),
    ("agents/scripted/offender.py", "import django.db", "Strategies are pure"),
    ("agents/scripted/offender.py", "import markets.models", "Strategies are pure"),
    ("markets/offender.py", "def late() -> None:\n    import torch", "without the training stack"),
    ("negotiation_site/offender.py", "import trl", "without the training stack"),
]


def lint(folder: Path) -> tuple[bool, str]:
    """Are all contracts kept by the packages in `folder`? With the report, its line breaks removed."""
    command = [Path(sys.executable).parent / "lint-imports", "--no-logo", "--no-cache"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=120)
    return done.returncode == 0, " ".join(done.stdout.split())


@pytest.fixture(scope="module")
def copy(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("copy")
    for package in PACKAGES:
        shutil.copytree(
            ROOT / package, folder / package, ignore=lambda at, names: [n for n in names if not is_code(at, n)]
        )
    shutil.copy(ROOT / "pyproject.toml", folder)
    return folder


def is_code(folder: str, name: str) -> bool:
    return name.endswith(".py") or (name != "__pycache__" and (Path(folder) / name).is_dir())


@pytest.mark.xdist_group("import_contracts")
def test_every_contract_is_kept() -> None:
    kept, report = lint(ROOT)
    assert kept, report
    assert re.search(r"Contracts: [6-9] kept, 0 broken", report)


@pytest.mark.xdist_group("import_contracts")
@pytest.mark.parametrize(("path", "code", "contract"), WRONG)
def test_a_wrong_import_breaks_the_contract_that_forbids_it(copy: Path, path: str, code: str, contract: str) -> None:
    offender = copy / path
    offender.write_text(code + "\n")
    try:
        kept, report = lint(copy)
    finally:
        offender.unlink()
    assert not kept
    broken = [part for part in report.split("KEPT") if "BROKEN" in part]
    assert any(contract in part.split("BROKEN")[0] for part in broken), report
