"""How often a person, and an address, may change something or ask a script's question, and how many pages may listen.

Here: the limits, the middleware that keeps them for forms, for moves sent as forms and for scripts, and the one that
counts open sockets. Elsewhere: the frames of a socket (`markets.consumers`), failed sign-ins (django-axes), new
accounts (`markets.accounts`), open rooms a person (`markets.services`), a single token (`negotiation_site.api`).

Contract. A limit counts in fixed windows, in the cache: with `REDIS_URL` that is shared by all processes,
without it there is only one. A person is an account, or else the browser's session; a browser that brings
none has the limits of its address alone. Limits of an address are wide, because a class or an office shares
one. What is over a limit is refused with 429, a sentence and `Retry-After`, and changes nothing. Where the
cache does not answer nobody is refused: a limit is worth less than a game.
Open sockets are counted by the process that holds them, whose memory they cost, so that a process that dies takes its
count along. One too many is opened, told a sentence, and closed with 4429; the page goes on without a socket.
The address is the peer's; behind a proxy uvicorn's `--forwarded-allow-ips` says whose word is believed.
"""

import hashlib
import json
import logging
import time
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

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
SCRIPTS = Limit("scripts", person=360, address=2_400, window_s=60)
"""Requests to `/api/`, with a token that is known (then also by its owner) or without."""

LIMITS: Mapping[str, Limit] = {
    **dict.fromkeys(("room-act", "room-view", "study-room-act", "study-beat"), MOVES),
    **dict.fromkeys(("play", "first-game", "room-join", "room-rematch", "agent-try"), ROOMS),
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
        if request.resolver_match is None:
            return None
        if request.path.startswith(API):  # A script is known by its token alone, which `api.endpoints` looks at.
            wait_s = seconds_to_wait(SCRIPTS, address=address_of(request))
            return None if wait_s is None else refusal_to_script(wait_s)
        if request.method in READ:
            return None
        limit = LIMITS.get(request.resolver_match.view_name, DEFAULT)
        wait_s = seconds_to_wait(limit, person=person_of(request), address=address_of(request))
        return None if wait_s is None else refusal(request, seconds=wait_s)


API = "/api/v1/"


def seconds_to_wait(limit: Limit, *, person: str = "", address: str = "") -> int | None:
    """Count one more of a person and of an address, empty where there is none; None while neither is over."""
    if not settings.RATE_LIMITS:
        return None
    now = clock()
    try:
        over = [
            who
            for who, most in ((person, limit.person), (address, limit.address))
            if who and count(limit, who, now=now) > most
        ]
    except RedisError:
        log.warning("Limits are not kept: the cache does not answer")
        return None
    return _left(limit, now) if over else None


def person_of(request: HttpRequest) -> str:
    """The account or the session; empty for a browser that brings neither."""
    return _person(request.user, request.session)


def _person(user: Any, session: Any) -> str:
    if user.is_authenticated:
        return account(user)
    return f"session {session.session_key}" if session.session_key else ""


def account(user: Any) -> str:
    """The person that an account is, in every browser and script."""
    return f"account {user.pk}"


def address_of(request: HttpRequest) -> str:
    """The network that a request comes from: an address of IPv4, or the /64 of one of IPv6."""
    return _network(request.META.get("REMOTE_ADDR", ""))


def _network(address: str) -> str:
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


def refusal_to_script(seconds: int) -> HttpResponse:
    """The same in the shape of the programming interface, which speaks English."""
    sentence = f"Your address asks more than {SCRIPTS.address:,} times a minute. Ask again in {seconds} seconds."
    response = JsonResponse({"error": "too_many_requests", "detail": sentence}, status=429)
    response["Retry-After"] = str(seconds)
    response["Cache-Control"] = "no-store"
    return response


# --- Sockets ------------------------------------------------------------------------------------------

SOCKETS = Limit("sockets", person=60, address=2_000, window_s=0)
"""Open at the same time, in one process."""
CLOSE_TOO_MANY = 4429


class OpenSockets:
    """Refuses a socket of somebody, or of an address, that holds many. Inside of whatever knows session and account."""

    def __init__(self, application: Any) -> None:
        self.application = application
        self.open: Counter[str] = Counter()

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if not settings.RATE_LIMITS:
            await self.application(scope, receive, send)
            return
        person = _person(scope["user"], scope["session"])  # Both were looked up on the way in.
        address = _network((scope.get("client") or ("",))[0])
        if self.open[person] >= SOCKETS.person and person:
            await _refuse_socket(
                receive,
                send,
                _(
                    "You have %(count)d pages open here. This one looks for news by itself; close some for a quick answer."
                )
                % {"count": self.open[person]},
            )
        elif self.open[address] >= SOCKETS.address and address:
            await _refuse_socket(
                receive, send, _("Very many pages are open from your network. This one looks for news by itself.")
            )
        else:
            held = [who for who in (person, address) if who]
            self.open.update(held)
            try:
                await self.application(scope, receive, send)
            finally:
                self.open.subtract(held)
                for who in held:
                    if self.open[who] <= 0:
                        del self.open[who]


async def _refuse_socket(receive: Any, send: Any, sentence: str) -> None:
    """Opened first: a browser tells its page nothing of a socket that was never open."""
    await receive()
    error = {"type": "error", "code": "too_many_sockets", "sentence": sentence}
    await send({"type": "websocket.accept"})
    await send({"type": "websocket.send", "text": json.dumps(error, ensure_ascii=False)})
    await send({"type": "websocket.close", "code": CLOSE_TOO_MANY})
