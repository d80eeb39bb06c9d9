"""The Celery application. Tasks live in each package's `tasks` module; settings are the `CELERY_` names of `settings`.

A worker is started as `celery -A negotiation_site.celery worker -Q agents,default`.
"""

import os
import time
from typing import Any

from celery import Celery
from celery.signals import before_task_publish, celeryd_init

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "negotiation_site.settings")

SENT_AT = "parley_sent_at"
"""Header of every task: when it was sent, so that a queue tells how long its next one has waited."""

app = Celery("parley")
app.config_from_object("django.conf:settings", namespace="CELERY")
app.autodiscover_tasks()
app.autodiscover_tasks(["training.tournaments"])


@celeryd_init.connect
def needs_a_broker(conf: Any, **_told: Any) -> None:
    """A worker without a broker would wait for ever for tasks that other processes can never hand it."""
    if str(conf.broker_url).startswith("memory:"):
        raise SystemExit(
            "A worker takes its tasks from Redis or Valkey and REDIS_URL is not set. Set it, or start everything with "
            "`manage.py lab`."
        )


@before_task_publish.connect
def note_the_time(headers: dict[str, Any], **_told: Any) -> None:
    """Tasks carry no time of their own."""
    headers[SENT_AT] = time.time()
