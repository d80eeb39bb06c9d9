"""What must happen in studies without anybody asking: waits that are over, people who fell silent, rounds that ended.

Idempotent, and safe beside other clocks: every step looks again under its lock.
"""

import logging
from datetime import datetime, timedelta

from django.db.models import Exists, OuterRef, Q

from agents.registry import UnknownAgent
from markets.models import RoomStatus, Seat, SeatKind
from markets.services import RoomError, damage_noted
from negotiation_site.studies import conduct, play
from negotiation_site.studies.models import (
    ENDED,
    Mode,
    Participation,
    State,
    Study,
    StudyRound,
    StudyStatus,
    StudyVersion,
)

log = logging.getLogger(__name__)

BATCH = 200
SHORTEST_IDLE = timedelta(seconds=60)
"""No design allows less; who was heard of since is not looked at."""


def sweep(now: datetime) -> int:
    """How many participations and rounds were moved on."""
    return tables(now) + waits(now) + ended_rooms(now) + silences(now) + open_data(now)


def open_data(now: datetime) -> int:
    """Games to be opened of closed studies that somebody was still inside of when they were closed."""
    waiting = Study.objects.filter(
        status=StudyStatus.CLOSED,
        pk__in=Participation.objects.filter(
            Exists(Seat.objects.filter(participant__participation=OuterRef("pk")).exclude(consent_scope="public")),
            mode=Mode.LIVE,
            consent_scope="public",
        ).values("study"),
    )
    opened = 0
    for study in waiting.order_by("pk")[:BATCH]:
        try:
            opened += play.open_data(study, now=now)
        except RoomError:
            log.exception("Games of study %s cannot be opened", study.slug)
    return opened


def tables(now: datetime) -> int:
    """People at a table whose time for a move has run out."""
    overdue = (
        StudyRound.objects.filter(
            ended_at=None,
            replaced_at=None,
            room__keeper=play.KEEPER,
            room__status=RoomStatus.LIVE,
            room__seats__deadline_at__lte=now,
            room__seats__kind=SeatKind.PERSON,
        )
        .select_related("participation", "room")
        .distinct()
        .order_by("pk")
    )
    moved = 0
    for played in overdue[:BATCH]:
        with damage_noted(played.room):
            moved += conduct.fell_silent_at_table(played, now=now)
    return moved


def waits(now: datetime) -> int:
    """The end of waits past their limit. Partners are found by those who come and by the waiting pages themselves."""
    moved = 0
    waiting_rows = Participation.objects.filter(state=State.WAITING).select_related("version")
    for waiting in waiting_rows.order_by("waiting_since")[:BATCH]:
        try:
            conduct.waiting_over(waiting, now=now)
        except (RoomError, UnknownAgent):
            log.exception("Participation %s cannot be seated and was passed over", waiting.public_id)
        moved += Participation.objects.filter(pk=waiting.pk).exclude(state=State.WAITING).exists()
    return moved


def ended_rooms(now: datetime) -> int:
    """Rounds whose room is over and whose page did not come to see it."""
    over = StudyRound.objects.filter(ended_at=None, room__status=RoomStatus.ENDED).select_related("participation")
    moved = 0
    for played in over.order_by("pk")[:BATCH]:
        conduct.refresh(played.participation, now=now)
        moved += 1
    return moved


def silences(now: datetime) -> int:
    """People whose page was not heard of for longer than their design allows."""
    still = Participation.objects.filter(
        Q(extended_until=None) | Q(extended_until__lte=now), last_seen_at__lte=now - SHORTEST_IDLE
    ).exclude(state__in=ENDED)
    moved = 0
    for version in StudyVersion.objects.filter(participations__in=still).distinct():
        idle = timedelta(seconds=version.parsed.clocks.idle_s)
        silent = still.filter(version=version, last_seen_at__lte=now - idle).select_related("version")
        moved += sum(conduct.fell_silent(each, now=now) for each in silent.order_by("last_seen_at")[:BATCH])
    return moved
