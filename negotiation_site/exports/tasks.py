"""Celery's way into exports, on the `default` queue, and what the clock does for them.

The row is the truth and a task only a nudge: an export that nobody works on is announced again every second.
"""

import logging
from datetime import datetime

from celery import shared_task
from kombu.exceptions import OperationalError
from redis.exceptions import RedisError

from negotiation_site.exports import jobs
from negotiation_site.exports.models import Export

log = logging.getLogger(__name__)


@shared_task
def write(*, number: int) -> None:
    """Make one export; one that somebody else makes is left alone."""
    jobs.work(number)


def sweep(*, now: datetime) -> None:
    """Announce exports that nobody works on, fail those that killed their workers. Idempotent."""
    jobs.give_up(now)
    jobs.clear_withdrawn()
    for row in Export.objects.filter(jobs.claimable(now)).order_by("id")[:4]:
        announce(row)


def announce(row: Export) -> None:
    """Tell the workers. A broker that is down is no loss: the clock tells them again."""
    try:
        write.apply_async(kwargs={"number": row.pk}, retry=False, expires=5)
    except (OperationalError, RedisError, OSError) as error:
        log.warning("Export %s was not announced: %s", row.public_id, error)
