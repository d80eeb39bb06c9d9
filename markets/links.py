"""Addresses that people hand on."""

from collections.abc import Iterable

from django.conf import settings
from django.urls import reverse


def share_url(*, origin: str, public_id: str, token: str) -> str:
    """Absolute address at which somebody takes an open seat; empty where none is open."""
    return f"{origin}{reverse('room-join', args=[public_id, token])}" if token else ""


def origin_of_socket(*, scheme: str, headers: Iterable[tuple[bytes, bytes]]) -> str:
    """`https://host` of the page that a socket belongs to. Behind a proxy that ends TLS a socket comes in plain."""
    host = next((value.decode("latin-1") for name, value in headers if name == b"host"), "")
    secure = settings.SECURE_SSL_REDIRECT or scheme in ("wss", "https")
    return f"{'https' if secure else 'http'}://{host}"
