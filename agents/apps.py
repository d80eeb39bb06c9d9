"""Django's handle on the agents package: connects the one signal that asks for an agent's move."""

import logging
from typing import Any

from django.apps import AppConfig
from kombu.exceptions import OperationalError
from redis.exceptions import RedisError

log = logging.getLogger(__name__)


class AgentsConfig(AppConfig):
    name = "agents"
    verbose_name = "Agents"
    default_auto_field = "django.db.models.BigAutoField"

    def ready(self) -> None:
        from django.conf import settings

        from agents import backends
        from markets.signals import turn_due

        backends.configure(settings.LLM_BACKENDS)

        turn_due.connect(enqueue_turn, dispatch_uid="agents.enqueue_turn")


def enqueue_turn(*, turn_id: int, delay_s: float = 0.0, **_: Any) -> None:
    """Tell the workers. A broker that is down is no loss: the clock announces the row again."""
    from agents.tasks import take_turn

    try:
        take_turn.apply_async(kwargs={"turn_id": turn_id}, countdown=delay_s or None, retry=False)
    except (OperationalError, RedisError, OSError) as error:
        log.warning("Turn %s was not announced: %s", turn_id, error)
