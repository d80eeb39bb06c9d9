"""A process that works on one tournament until nothing is left: `python -m training.tournaments.worker ID PARENT`.

Started by `manage.py tournament --workers K` (see `crew`). It ends when its parent does, so that a killed
command leaves nobody behind; the share in its hands is given back or, after a kill, taken over by the next.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import django
from django.conf import settings


@contextmanager
def crew(tournament_id: int, *, hands: int) -> Iterator[list["subprocess.Popen[bytes]"]]:
    """`hands` processes at work on the tournament; ended and collected at the end of the block."""
    environment = os.environ | {
        "PARLEY_VAR": str(settings.VAR),
        "DJANGO_SETTINGS_MODULE": os.environ.get("DJANGO_SETTINGS_MODULE", "negotiation_site.settings"),
    }
    command = [sys.executable, "-m", "training.tournaments.worker", str(tournament_id), str(os.getpid())]
    workers: list[subprocess.Popen[bytes]] = []
    try:
        for _hand in range(hands):
            workers.append(subprocess.Popen(command, cwd=settings.BASE_DIR, env=environment, stdout=subprocess.DEVNULL))
        yield workers
    finally:
        for worker in workers:
            worker.terminate()
        for worker in workers:
            worker.wait()


def main(tournament_id: int, parent: int) -> None:
    """Work; asked to end, give the share back first."""
    django.setup()
    from training.models import Tournament
    from training.tournaments import services

    asked: list[int] = []
    signal.signal(signal.SIGTERM, lambda signum, _frame: asked.append(signum))
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    tournament = Tournament.objects.select_related("market").get(pk=tournament_id)
    services.work(
        services.cast_of(tournament),
        owner=services.owner_name(),
        drop=lambda: bool(asked) or os.getppid() != parent,
    )


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]))
