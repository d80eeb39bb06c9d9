"""Celery entry point of training: one a run, on the `gpu` queue. Delegates to `services`."""

import os
import secrets
import socket

from celery import shared_task

from training import services
from training.models import Run


@shared_task(queue="gpu")
def train(*, run_id: int) -> None:
    """Take the run and see it to its end; a run that somebody else has is left alone."""
    run = Run.objects.get(pk=run_id)
    owner = f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"
    if services.claim(run=run, owner=owner):
        services.execute(run=run, owner=owner)
