"""The last faults of this machine's processes, so that the staff see them without looking for logs.

Here: a handler of logging that notes each record from ERROR up in a file that all processes of a machine share, and the
reader of it. Not here: logs themselves, which say everything (`settings.LOGGING`).

Contract. What is noted is when, in which process, by which logger, the kind of fault and the line of ours that it came
from, and the id by which the request stands in the logs. Never what the fault says, nor the values in its message: they may
be somebody's words, a value or a key. A disk that is full costs the note. The file keeps its last few hundred lines.
"""

import json
import logging
import os
import traceback
from dataclasses import dataclass
from pathlib import Path
from typing import Any

FILE = "recent_errors.jsonl"
MOST_BYTES = 100_000
SHOWN = 20
_OURS = Path(__file__).resolve().parent.parent
_OWN = frozenset(("markets", "agents", "training", "negotiation_site"))
"""Loggers whose sentences are fixed; others may put values into theirs."""


@dataclass(frozen=True)
class Noted:
    """One fault."""

    at: float
    role: str
    logger: str
    kind: str
    """Of exception; empty where somebody logged a sentence of ours."""
    place: str
    message: str
    """The sentence without its values."""
    request_id: str


class Noting(logging.Handler):
    """Writes one line a fault."""

    def __init__(self, folder: Path, role: str) -> None:
        super().__init__(logging.ERROR)
        self._path, self._role = folder / FILE, role

    def emit(self, record: logging.LogRecord) -> None:
        try:
            line = json.dumps(_line(record, self._role), ensure_ascii=False) + "\n"
            if self._path.exists() and self._path.stat().st_size > MOST_BYTES:
                _shorten(self._path)
            descriptor = os.open(self._path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            try:
                os.write(
                    descriptor, line.encode("utf-8", "replace")
                )  # At once, so that lines of two processes stay whole.
            finally:
                os.close(descriptor)
        except (OSError, ValueError):
            return


def _line(record: logging.LogRecord, role: str) -> dict[str, Any]:
    fault = record.exc_info[1] if record.exc_info else None
    return {
        "at": record.created,
        "role": role,
        "logger": record.name[:100],
        "kind": "" if fault is None else type(fault).__name__,
        "place": _place(record, fault),
        "message": str(record.msg)[:200] if record.args or record.name.split(".")[0] in _OWN else "",
        "request_id": str(getattr(record, "request_id", "") or ""),
    }


def _place(record: logging.LogRecord, fault: BaseException | None) -> str:
    """The last line of ours on the way to the fault, else where it was logged."""
    for frame in reversed(traceback.extract_tb(fault.__traceback__) if fault is not None else []):
        path = Path(frame.filename)
        if _OURS in path.parents and "site-packages" not in path.parts:
            return f"{path.relative_to(_OURS)}:{frame.lineno}"
    return f"{record.module}:{record.lineno}"


def _shorten(path: Path) -> None:
    lines = path.read_bytes().splitlines(keepends=True)
    draft = path.with_suffix(f".{os.getpid()}")
    draft.write_bytes(b"".join(lines[-len(lines) // 2 :]))
    draft.replace(path)


def newest(folder: Path) -> tuple[Noted, ...]:
    """The last ones, the newest first; a line that is not whole is passed over."""
    try:
        lines = (folder / FILE).read_text(encoding="utf-8", errors="replace").splitlines()
    except OSError:
        return ()
    found = []
    for line in reversed(lines):
        try:
            found.append(Noted(**json.loads(line)))
        except (ValueError, TypeError):
            continue
        if len(found) == SHOWN:
            break
    return tuple(found)
