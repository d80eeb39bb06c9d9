"""Telling open pages of a room that there is something to see: a message to the room's channel-layer group.

Here: sending one without waiting for it, from whatever thread a change was made in. Not here: what is said (`services`) and
who listens (`consumers`). Contract: a message may be lost and nothing depends on it; pages look for themselves. It is sent
on the event loop that the thread works for, and where there is none, as in a worker, on one that this process keeps for it,
so that the connection to the channel layer is made once.
"""

import asyncio
import logging
import os
import threading
from collections.abc import Mapping
from concurrent.futures import Future
from typing import Any

from asgiref.sync import SyncToAsync
from channels.layers import get_channel_layer
from redis.exceptions import RedisError

log = logging.getLogger(__name__)

_lock = threading.Lock()
_own: tuple[int, asyncio.AbstractEventLoop] | None = None


def group_of(public_id: str) -> str:
    """Channel-layer group of a room."""
    return f"room.{public_id}"


def send(group: str, message: Mapping[str, object]) -> "Future[None] | None":
    """Let `message` go out to `group`; what comes back tells when it has. None where there is no channel layer."""
    layer = get_channel_layer()
    return None if layer is None else asyncio.run_coroutine_threadsafe(_tell(layer, group, message), _loop())


async def _tell(layer: Any, group: str, message: Mapping[str, object]) -> None:
    try:
        await layer.group_send(group, dict(message))
    except (RedisError, OSError) as error:
        log.warning("Nobody was nudged in %s: %s", group, error)


def _loop() -> asyncio.AbstractEventLoop:
    served = getattr(SyncToAsync.threadlocal, "main_event_loop", None)
    if isinstance(served, asyncio.AbstractEventLoop) and served.is_running():
        return served
    return _loop_of_its_own()


def _loop_of_its_own() -> asyncio.AbstractEventLoop:
    global _own
    with _lock:
        if _own is None or _own[0] != os.getpid():  # A process that was forked has none of its parent's threads.
            loop = asyncio.new_event_loop()
            threading.Thread(target=loop.run_forever, name="publishing", daemon=True).start()
            _own = os.getpid(), loop
        return _own[1]
