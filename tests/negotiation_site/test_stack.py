"""The site runs without the training stack, knows that it is missing, and never pays for it when it is there."""

import subprocess
import sys
from importlib.machinery import ModuleSpec
from pathlib import Path

import pytest

from negotiation_site import stack
from tests.lab import ROOT, lab_environment


def test_what_is_not_installed_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stack, "find_spec", lambda name: None if name == "trl" else ModuleSpec(name, None))
    assert stack.full_stack_missing() == ("trl",)


@pytest.mark.parametrize("module", ["negotiation_site.asgi", "negotiation_site.celery"])
def test_the_web_and_worker_processes_never_load_the_training_stack(tmp_path: Path, module: str) -> None:
    code = (
        f"import sys, {module} as entry; from negotiation_site.stack import FULL_STACK, full_stack_missing\n"
        "getattr(entry, 'app', None) and entry.app.loader.import_default_modules()\n"
        "full_stack_missing(); print(sorted(set(FULL_STACK) & set(sys.modules)))"
    )
    command = [sys.executable, "-c", code]
    environment = lab_environment(tmp_path)
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=120)
    assert done.stdout.strip() == "[]", done.stderr
