"""Which request and which room the code at hand works for, so that every line of the log can say so.

Here: two names that follow a call through threads and tasks of one process. Not here: reading requests
(`negotiation_site.request_log`) or writing lines. Contract: outside of any request or room both are empty.
"""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

request_id: ContextVar[str] = ContextVar("request_id", default="")
room_id: ContextVar[str] = ContextVar("room_id", default="")
"""A room's public id; it opens no seat."""


@contextmanager
def in_room(public_id: str) -> Iterator[None]:
    """Everything inside is done for this room."""
    token = room_id.set(public_id)
    try:
        yield
    finally:
        room_id.reset(token)
