"""What must happen without anybody asking: deadlines, open seats that an agent fills, turns whose worker died.

Each second every sweep is called with the time. Sweeps are idempotent and claim their work by compare-and-swap, so any
number of clocks may run. A database that does not answer is waited for; any other error ends the process, and whoever
supervises it starts it again.
"""

import logging
import signal
import threading
from collections.abc import Callable
from datetime import datetime
from typing import Any, Protocol

from django.conf import settings
from django.core.management import BaseCommand, CommandError
from django.db import Error as DatabaseError
from django.db import connections
from django.utils import timezone

from agents import turns
from markets import services
from negotiation_site import standing
from negotiation_site.exports import tasks as export_tasks
from negotiation_site.studies import clock as study_clock
from training import tasks as training_tasks
from training.tournaments import tasks as tournament_tasks

logger = logging.getLogger(__name__)

PERIOD_S = 1.0
LONGEST_PAUSE_S = 30.0


class Sweep(Protocol):
    def __call__(self, *, now: datetime) -> object: ...


SWEEPS: dict[str, Sweep] = {
    "rooms": services.sweep,
    "agent turns": turns.sweep,
    "training runs": training_tasks.sweep,
    "tournaments": tournament_tasks.sweep,
    "exports": export_tasks.sweep,
    "studies": study_clock.sweep,
    "the clock's own beat": standing.beat,
}


class Command(BaseCommand):
    help = "Sweep deadlines and agent turns every second until told to stop."

    def handle(self, *args: Any, **options: Any) -> None:
        if not settings.REDIS_URL:
            raise CommandError(
                "The clock runs beside other processes and reaches them over Redis or Valkey: set REDIS_URL, "
                "or start everything with `manage.py lab`.",
                returncode=2,
            )
        stop = threading.Event()
        for signum in (signal.SIGINT, signal.SIGTERM):
            signal.signal(signum, lambda *_: stop.set())
        run(sweeps=SWEEPS, wait=stop.wait)


def run(*, sweeps: dict[str, Sweep], wait: Callable[[float], bool]) -> None:
    """Sweep, wait, sweep; `wait(seconds)` returns true when it is time to stop."""
    pause = PERIOD_S
    while True:
        pause = PERIOD_S if sweep_once(sweeps=sweeps) else min(LONGEST_PAUSE_S, pause * 2)
        if wait(pause):
            return


def sweep_once(*, sweeps: dict[str, Sweep]) -> bool:
    """Call every sweep; false when the database failed one. One that fails does not keep the others from running."""
    answered = True
    for name, sweep in sweeps.items():
        try:
            sweep(now=timezone.now())
        except DatabaseError:
            logger.exception("The database failed the sweep of %s", name)
            connections.close_all()
            answered = False
    return answered
