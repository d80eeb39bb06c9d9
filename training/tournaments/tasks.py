"""Celery's way into tournaments, on the `default` queue, and what the clock does for them.

The rows are the truth and a task only a nudge: while shares are open the clock calls for hands every
second, so a broker that lost a call, or a command that knew no broker, loses nothing.

A worker process lends one hand at a time, however many threads it has: more would only keep one another,
and the agents of live rooms beside them, waiting for the interpreter.
"""

import logging
import threading
import time
from datetime import datetime

from celery import shared_task
from django.db.models import Q
from kombu.exceptions import OperationalError
from redis.exceptions import RedisError

from agents.registry import UnknownAgent
from training.models import ShardState, Tournament, TournamentShard, TournamentStatus
from training.tournaments import services
from training.tournaments.design import TournamentError

log = logging.getLogger(__name__)

STINT_S = 10.0
"""After this a worker lets other tasks of its queue come first."""
HANDS = 8
"""Most workers that are called to one tournament."""


_hand = threading.Lock()


@shared_task
def work(*, tournament_id: int) -> None:
    """Play shares for a while, then call for hands again if some are left."""
    if not _hand.acquire(blocking=False):
        return
    try:
        _work(tournament_id)
    finally:
        _hand.release()


def _work(tournament_id: int) -> None:
    tournament = Tournament.objects.select_related("market").get(pk=tournament_id)
    until = time.monotonic() + STINT_S
    try:
        cast = services.cast_of(tournament)
    except (TournamentError, UnknownAgent) as reason:
        services.fail(tournament, str(reason))
        return
    services.work(cast, owner=services.owner_name(), stop=lambda: time.monotonic() > until)
    if _waiting(tournament):
        announce(tournament)


def sweep(*, now: datetime) -> None:
    """Call for hands where shares are open; finish what is all played. Idempotent."""
    for tournament in Tournament.objects.filter(status__in=services.OPEN).select_related("market").order_by("id"):
        held = tournament.shards.filter(state=ShardState.RUNNING, lease_until__gt=now).count()
        if held < HANDS and _waiting(tournament, now=now):
            announce(tournament)
        elif not held:
            services.settle(tournament)


def _waiting(tournament: Tournament, *, now: datetime | None = None) -> bool:
    """Whether shares can be taken."""
    open_shares = Q(state=ShardState.QUEUED)
    if now is not None:
        open_shares |= Q(state=ShardState.RUNNING, lease_until__lte=now)
    return TournamentShard.objects.filter(
        open_shares,
        tournament=tournament,
        tournament__status__in=(TournamentStatus.QUEUED, TournamentStatus.RUNNING),
    ).exists()


def announce(tournament: Tournament) -> None:
    """Tell the workers. A broker that is down is no loss: the clock tells them again."""
    try:
        work.apply_async(kwargs={"tournament_id": tournament.pk}, retry=False, expires=5)
    except (OperationalError, RedisError, OSError) as error:
        log.warning("Tournament %s was not announced: %s", tournament.name, error)
