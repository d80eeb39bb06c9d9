"""The web process: pages through Django, room sockets through Channels. Served by uvicorn."""

import multiprocessing
import os
from typing import Any
from urllib.parse import urlsplit

from channels.auth import AuthMiddlewareStack
from channels.routing import ProtocolTypeRouter, URLRouter
from channels.security.websocket import AllowedHostsOriginValidator
from django.conf import settings
from django.core.asgi import get_asgi_application
from django.core.exceptions import ImproperlyConfigured
from django.urls import re_path

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "negotiation_site.settings")
pages = get_asgi_application()

from markets.urls import websocket_urlpatterns  # noqa: E402  (models must be loaded first)
from negotiation_site.leaderboard import pages as leaderboard  # noqa: E402
from negotiation_site.studies.urls import websocket_urlpatterns as study_sockets  # noqa: E402
from negotiation_site.throttle import OpenSockets  # noqa: E402


async def no_such_socket(scope: Any, receive: Any, send: Any) -> None:
    """An address without a socket is the caller's mistake: refused, not an error in the log."""
    await receive()
    await send({"type": "websocket.close", "code": 4404})


class OwnPagesOnly:
    """Refuses a socket that another page opens: the rule by which forms are believed, ports included.

    Cookies know no ports, so a page of another server on the same host would bring the session along.
    """

    def __init__(self, application: Any) -> None:
        self.application = application

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        headers = dict(scope["headers"])
        origin = headers.get(b"origin", b"").decode("latin-1")
        if _own(origin, host=headers.get(b"host", b"").decode("latin-1")):
            await self.application(scope, receive, send)
        else:
            await receive()
            await send({"type": "websocket.close", "code": 4403})


def _own(origin: str, *, host: str) -> bool:
    try:
        parts = urlsplit(origin)
        readable = parts.hostname is not None and (parts.port is None or parts.port > 0)
    except ValueError:
        return False
    return readable and (parts.netloc.lower() == host.lower() or origin in settings.CSRF_TRUSTED_ORIGINS)


sockets: list[Any] = [*websocket_urlpatterns, *study_sockets]
not_a_view: Any = no_such_socket
sockets.append(re_path(r"", not_a_view))
application = ProtocolTypeRouter(
    {
        "http": pages,
        "websocket": OwnPagesOnly(AllowedHostsOriginValidator(AuthMiddlewareStack(OpenSockets(URLRouter(sockets))))),
    }
)


def siblings() -> bool:
    """Whether the server that loads this was told to serve from several processes: uvicorn's and gunicorn's ways."""
    several = os.environ.get("WEB_CONCURRENCY", "1").strip() not in ("", "0", "1")
    forked = os.environ.get("SERVER_SOFTWARE", "").startswith("gunicorn") and not settings.DEBUG
    return several or forked or multiprocessing.parent_process() is not None


if not settings.REDIS_URL and siblings():
    raise ImproperlyConfigured(
        "This web process has others beside it and REDIS_URL is not set: a move made here would not reach players "
        "connected to the others. Set REDIS_URL to a Redis or Valkey server, or serve from one process."
    )

if settings.ROLE == "web":
    # Whoever looks at a leaderboard should not wait for all of the record to be read.
    leaderboard.start_keeping_up()
