"""How often a person, and an address, may change something.

Here: the limits, and the middleware that keeps them for forms and for moves sent as forms. Elsewhere: the
frames of a socket (`markets.consumers`), failed sign-ins (django-axes), new accounts (`markets.accounts`),
open rooms a person (`markets.services`), scripts with a token (`negotiation_site.api`).

Contract. A limit counts in fixed windows, in the cache: with `REDIS_URL` that is shared by all processes,
without it there is only one. A person is an account, or else the browser's session; a browser that brings
none has the limits of its address alone. Limits of an address are wide, because a class or an office shares
one. What is over a limit is refused with 429, a sentence and `Retry-After`, and changes nothing. Where the
cache does not answer nobody is refused: a limit is worth less than a game.
The address is the peer's; behind a proxy uvicorn's `--forwarded-allow-ips` says whose word is believed.
"""

import hashlib
import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass

from django.conf import settings
from django.core.cache import cache
from django.http import HttpRequest, HttpResponse, JsonResponse
from django.shortcuts import render
from django.utils.deprecation import MiddlewareMixin
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from redis.exceptions import RedisError

log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Limit:
    """At most so many requests in a window."""

    name: str
    person: int
    address: int
    window_s: int


DEFAULT = Limit("forms", person=120, address=2_400, window_s=60)
MOVES = Limit("moves", person=240, address=12_000, window_s=60)
ROOMS = Limit("rooms", person=30, address=900, window_s=60)
ENTRY = Limit("entry", person=20, address=240, window_s=60)
WORK = Limit("work", person=60, address=600, window_s=3_600)

LIMITS: Mapping[str, Limit] = {
    **dict.fromkeys(("room-act", "room-view", "study-room-act", "study-beat"), MOVES),
    **dict.fromkeys(("play", "room-join", "room-rematch", "agent-try"), ROOMS),
    **dict.fromkeys(("sign-in", "sign-up", "change-password", "admin:login"), ENTRY),
    **dict.fromkeys(("agents-new", "agent-versions", "tournament-new", "export-list", "run-new"), WORK),
}
"""By the name of the address; every other form has the default."""
clock = time.time
READ = frozenset(("GET", "HEAD", "OPTIONS", "TRACE"))


class Throttle(MiddlewareMixin):
    """Refuses what comes too often. After the session and the account are known."""

    def process_view(
        self, request: HttpRequest, view: object, args: object, kwargs: Mapping[str, object]
    ) -> HttpResponse | None:
        if request.method in READ or not settings.RATE_LIMITS or request.resolver_match is None:
            return None
        limit = LIMITS.get(request.resolver_match.view_name, DEFAULT)
        now = clock()
        try:
            over = [
                who
                for who, most in ((person_of(request), limit.person), (address_of(request), limit.address))
                if who and count(limit, who, now=now) > most
            ]
        except RedisError:
            log.warning("Limits are not kept: the cache does not answer")
            return None
        return refusal(request, seconds=_left(limit, now)) if over else None


def person_of(request: HttpRequest) -> str:
    """The account or the session; empty for a browser that brings neither."""
    if request.user.is_authenticated:
        return f"account {request.user.pk}"
    key = request.session.session_key
    return f"session {key}" if key else ""


def address_of(request: HttpRequest) -> str:
    """The network that a request comes from: an address of IPv4, or the /64 of one of IPv6."""
    address = request.META.get("REMOTE_ADDR", "")
    if ":" in address:
        address = ":".join(address.split(":")[:4])
    return f"address {address}" if address else ""


def count(limit: Limit, who: str, *, now: float) -> int:
    """How many there were in this window, this one included. Raises `RedisError`."""
    digest = hashlib.sha256(who.encode()).hexdigest()[:32]
    key = f"limit:{limit.name}:{digest}:{int(now // limit.window_s)}"
    cache.add(key, 0, timeout=2 * limit.window_s)
    try:
        return int(cache.incr(key))
    except ValueError:  # It fell out between the two.
        return 1


def _left(limit: Limit, now: float) -> int:
    return max(1, limit.window_s - int(now % limit.window_s))


def refusal(request: HttpRequest, *, seconds: int) -> HttpResponse:
    """The answer to one too many, in the shape that the page expects."""
    sentence = ngettext(
        "That was a lot at once. Nothing was changed; try again in %(seconds)d second.",
        "That was a lot at once. Nothing was changed; try again in %(seconds)d seconds.",
        seconds,
    ) % {"seconds": seconds}
    match = request.resolver_match
    if match is not None and match.view_name in ("room-act", "study-room-act"):
        response: HttpResponse = JsonResponse({"type": "error", "code": "too_many", "sentence": sentence})
    else:
        context = {"sentence": sentence, "title": _("A little slower")}
        response = render(request, "429.html", context)
    response.status_code = 429
    response["Retry-After"] = str(seconds)
    return response
