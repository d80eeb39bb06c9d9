"""Places for calls at the same time: so many a back end, in all processes of one machine together.

A place is a lock on a file, which the operating system gives back when its process ends, however it
ends, so a crash leaves nothing behind to clear up. Without a folder for the files, or where it cannot
be written, the limit holds for one process. Not here: calls. Pure: no Django.
"""

import fcntl
import logging
import os
import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

log = logging.getLogger(__name__)

LOOK_AGAIN_S = (0.01, 0.05)
"""How long to wait before looking for a free place again: not the same for everybody."""


class NoPlace(Exception):
    """Every place was taken for as long as one would wait."""


class Places:
    """The places of one back end."""

    def __init__(
        self,
        name: str,
        count: int,
        *,
        folder: Path | None = None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._name = name
        self._count = count
        self._folder = folder
        self._clock = clock
        self._sleep = sleep
        self._own = threading.BoundedSemaphore(count)

    @contextmanager
    def one(self, *, within_s: float) -> Iterator[None]:
        """Hold a place for the block. Raises `NoPlace` where none comes free in time."""
        deadline = self._clock() + within_s
        if not self._own.acquire(timeout=within_s):
            raise NoPlace(self._name)
        try:
            held = self._locked(deadline)
            try:
                yield
            finally:
                if held is not None:
                    os.close(held)
        finally:
            self._own.release()

    def _locked(self, deadline: float) -> int | None:
        """The descriptor of a place's file, locked; None where there are no files."""
        if self._folder is None:
            return None
        try:
            self._folder.mkdir(parents=True, exist_ok=True)
            while True:
                for number in range(self._count):
                    if (held := _lock(self._folder / f"{self._name}.{number}")) is not None:
                        return held
                if self._clock() >= deadline:
                    raise NoPlace(self._name)
                self._sleep(random.uniform(*LOOK_AGAIN_S))
        except OSError as error:
            log.warning("Calls to %s are counted in this process alone: %s", self._name, error)
            return None


def _lock(path: Path) -> int | None:
    """Its descriptor where nobody else holds the file."""
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(descriptor)
        return None
    except OSError:
        os.close(descriptor)
        raise
    return descriptor
