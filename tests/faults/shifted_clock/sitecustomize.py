"""Shifts the wall clock of every Python process that has this folder in PYTHONPATH: seconds are read from a file.

Only `tests.faults` puts it there; the site itself knows nothing of it. What Python reads as the time of day moves
(`time.time`, and Django's `timezone.now`, by which the site reads the time), the monotonic clock stays, as when a
machine's clock is set.
"""

import os
import sys
import time
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from typing import Any

_file = os.environ.get("PARLEY_FAULTS_CLOCK", "")
_time, _time_ns, _monotonic = time.time, time.time_ns, time.monotonic
_read_at, _shift = -1.0, 0.0
LOOK_EVERY_S = 0.1


def shift_s() -> float:
    """By how much the clock is off."""
    global _read_at, _shift
    if _monotonic() - _read_at > LOOK_EVERY_S:
        _read_at = _monotonic()
        try:
            with open(_file) as file:
                _shift = float(file.read() or 0)
        except (OSError, ValueError):
            _shift = 0.0
    return _shift


def _shift_timezone(module: Any) -> None:
    now = module.now

    def shifted() -> Any:
        moment = now()
        return moment + module.timedelta(seconds=shift_s())

    module.now = shifted


class _Finder(MetaPathFinder):
    """Lets `django.utils.timezone` load as ever and then shifts its `now`."""

    def find_spec(self, fullname: str, path: Any = None, target: Any = None) -> ModuleSpec | None:
        if fullname != "django.utils.timezone":
            return None
        sys.meta_path.remove(self)
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is None or spec.loader is None:
            return None
        spec.loader = _Shifting(spec.loader)
        return spec


class _Shifting(Loader):
    def __init__(self, loader: Any) -> None:
        self._loader = loader

    def create_module(self, spec: ModuleSpec) -> Any:
        return self._loader.create_module(spec)

    def exec_module(self, module: Any) -> None:
        self._loader.exec_module(module)
        _shift_timezone(module)


if _file:
    time.time = lambda: _time() + shift_s()
    time.time_ns = lambda: _time_ns() + round(shift_s() * 1e9)
    sys.meta_path.insert(0, _Finder())
