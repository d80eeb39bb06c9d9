"""Log lines that can be followed: each names its request and its room.

Here: the number of a request (the proxy's `X-Request-ID` where it sends a plain one, else our own, sent
back in the answer), the room of an address, and what puts both into a line. Not here: what is logged.
Neither addresses of people nor bodies nor cookies enter a line.
"""

import logging
import re
import secrets
from typing import Any

from django.http import HttpRequest, HttpResponse
from django.utils.deprecation import MiddlewareMixin

from markets import trace

_PLAIN = re.compile(r"[A-Za-z0-9._-]{8,64}")


class RequestTrace(MiddlewareMixin):
    """Numbers every request; outermost, so that refusals of the others carry the number too."""

    def process_request(self, request: HttpRequest) -> None:
        given = request.headers.get("X-Request-ID", "")
        trace.request_id.set(given if _PLAIN.fullmatch(given) else secrets.token_hex(8))
        trace.room_id.set("")

    def process_view(self, request: HttpRequest, view: object, args: object, kwargs: dict[str, Any]) -> None:
        if request.path_info.startswith("/rooms/") and isinstance(kwargs.get("public_id"), str):
            trace.room_id.set(kwargs["public_id"])

    def process_response(self, request: HttpRequest, response: HttpResponse) -> HttpResponse:
        response["X-Request-ID"] = trace.request_id.get()
        return response


def traced(record: logging.LogRecord) -> bool:
    """Give the line its request and room, and for plain lines both in one word."""
    named = {"request": trace.request_id.get(), "room": trace.room_id.get()}
    vars(record).update({f"{name}_id": word for name, word in named.items()})
    vars(record)["trace"] = "".join(f" [{name} {word}]" for name, word in named.items() if word)
    return True
