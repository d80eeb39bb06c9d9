"""Start-up checks: configurations that would seem to work and lose things are refused with a sentence."""

from typing import Any

from django.conf import settings
from django.core.checks import CheckMessage, Error, register

TAG = "parley"


@register(TAG)
def channel_layer_is_shared(app_configs: Any, **kwargs: Any) -> list[CheckMessage]:
    """An in-memory channel layer ends at the process's edge: with a role there are other processes."""
    backend = settings.CHANNEL_LAYERS["default"]["BACKEND"]
    if settings.ROLE and backend == "channels.layers.InMemoryChannelLayer":
        return [
            Error(
                f"This is one of several processes (PARLEY_ROLE={settings.ROLE}) and the channel layer is in memory: "
                "moves made here would not reach players connected elsewhere.",
                hint="Set REDIS_URL to a Redis or Valkey server, or start everything with `manage.py lab`.",
                id="parley.E001",
            )
        ]
    return []
