"""The web process: pages through Django, room sockets through Channels. Served by uvicorn."""

import os
from typing import Any

from channels.auth import AuthMiddlewareStack
from channels.routing import ProtocolTypeRouter, URLRouter
from channels.security.websocket import AllowedHostsOriginValidator
from django.core.asgi import get_asgi_application
from django.urls import re_path

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "negotiation_site.settings")
pages = get_asgi_application()

from markets.urls import websocket_urlpatterns  # noqa: E402  (models must be loaded first)


async def no_such_socket(scope: Any, receive: Any, send: Any) -> None:
    """An address without a socket is the caller's mistake: refused, not an error in the log."""
    await receive()
    await send({"type": "websocket.close", "code": 4404})


sockets: list[Any] = [*websocket_urlpatterns]
not_a_view: Any = no_such_socket
sockets.append(re_path(r"", not_a_view))
application = ProtocolTypeRouter(
    {
        "http": pages,
        "websocket": AllowedHostsOriginValidator(AuthMiddlewareStack(URLRouter(sockets))),
    }
)
