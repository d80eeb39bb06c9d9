"""Django's handle on the agents package: connects the signals that ask for an agent's move and that erase words."""

import logging
from collections.abc import Collection
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

        from agents import backends, entering, registry
        from markets.signals import turn_due, words_erased

        backends.configure(settings.LLM_BACKENDS, places=settings.VAR / "run" / "model-calls")
        backends.follow(settings.INFERENCE_FILE)
        registry.keep_entered(listed=entering.listed, named=entering.named)

        turn_due.connect(enqueue_turn, dispatch_uid="agents.enqueue_turn")
        words_erased.connect(empty_calls, dispatch_uid="agents.empty_calls")


def empty_calls(*, room_ids: Collection[int], **_: Any) -> int:
    """Empty what models were asked and answered in these rooms."""
    from agents import model_log

    return model_log.empty(room_ids)


def enqueue_turn(*, turn_id: int, delay_s: float = 0.0, **_: Any) -> None:
    """Tell the workers. A broker that is down is no loss: the clock announces the row again."""
    from agents.tasks import take_turn

    try:
        take_turn.apply_async(kwargs={"turn_id": turn_id}, countdown=delay_s or None, retry=False)
    except (OperationalError, RedisError, OSError) as error:
        log.warning("Turn %s was not announced: %s", turn_id, error)
