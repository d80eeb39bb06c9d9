"""Celery entry point of training: one a run, on the `gpu` queue; and what the clock does for runs.

The row of a run is the truth and a task only a nudge: a queued run is announced again every second
until somebody has taken it, so a broker that lost it, or a command that knew no broker, loses nothing.
"""

import logging
import os
import secrets
import socket
from datetime import datetime

from celery import shared_task
from kombu.exceptions import OperationalError
from redis.exceptions import RedisError

from training import services
from training.models import DeviceLock, Run, RunStatus

log = logging.getLogger(__name__)


@shared_task(queue="gpu")
def train(*, run_id: int) -> None:
    """Take the run and see it to its end; a run that somebody else has is left alone."""
    run = Run.objects.get(pk=run_id)
    owner = f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"
    if services.claim(run=run, owner=owner):
        services.execute(run=run, owner=owner)


def sweep(*, now: datetime) -> None:
    """Fail runs whose watcher died, and announce the oldest that waits for each device that is free. Idempotent."""
    services.sweep(now)
    busy = set(DeviceLock.objects.values_list("device", flat=True))
    for waiting in Run.objects.filter(status=RunStatus.QUEUED).order_by("id"):
        if waiting.device not in busy:
            busy.add(waiting.device)
            announce(waiting)


def announce(run: Run) -> None:
    """Tell the workers. A broker that is down is no loss: the clock tells them again."""
    try:
        train.apply_async(kwargs={"run_id": run.pk}, retry=False, expires=5)
    except (OperationalError, RedisError, OSError) as error:
        log.warning("Run %s was not announced: %s", run.name, error)
