"""Addresses of the market and room pages, and of the room socket."""

from typing import Any

urlpatterns: list[Any] = []
websocket_urlpatterns: list[Any] = []
