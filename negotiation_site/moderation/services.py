"""Writing and answering reports. Every act of the staff is idempotent and can be taken back.

Contract. Only who sits in a room may report a seat of it that another party has, once; a second report of the same
person about the same seat changes the first. Hidden words are replaced, in the room and in the stored episode, by
`REMOVED`; the log of the game, its hash and its outcome stay as they are. A barred person may play agents and may
neither open a room for people nor take a seat in one until the time given.
"""

from datetime import datetime, timedelta

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from markets.export_masking import REMOVED
from markets.models import EpisodeText, Participant, Room, Seat, SeatKind, Utterance
from negotiation_site.moderation.models import HiddenWords, Reason, Report

MOST_NOTE = 1_000
DAYS = (1, 7, 30, 365)
"""For how long somebody may be barred."""


class ModerationError(Exception):
    """An act that cannot be done; the sentence is for whoever asked."""


def report(*, seat: Seat, party: str, reason: str, note: str) -> Report:
    """`seat` reports who sits at `party`."""
    if reason not in Reason.values:
        raise ModerationError(_("Say what is wrong: choose one of the reasons."))
    if len(note) > MOST_NOTE:
        raise ModerationError(_("A report may be at most %(most)d characters long.") % {"most": MOST_NOTE})
    theirs = Seat.objects.filter(room=seat.room, party=party).first()
    if theirs is None or theirs.pk == seat.pk or theirs.kind == SeatKind.OPEN:
        raise ModerationError(_("Nobody else sits there who could be reported."))
    written, _made = Report.objects.update_or_create(
        room=seat.room,
        party=party,
        reporter=seat.participant,
        defaults={
            "reported": theirs.participant,
            "reason": reason,
            "note": note.replace("\x00", "").strip(),
            "closed_at": None,
            "closed_by": None,
        },
    )
    return written


def close(*, number: int, by: User, answer: str) -> Report:
    """Put a report away with a word about what was done."""
    found = Report.objects.filter(pk=number).first()
    if found is None:
        raise ModerationError(_("This report is gone."))
    found.closed_at, found.closed_by, found.answer = timezone.now(), by, answer.replace("\x00", "").strip()[:MOST_NOTE]
    found.save(update_fields=["closed_at", "closed_by", "answer"])
    return found


def hide(*, room: Room, n: int, by: User) -> None:
    """Take the words at event `n` away, wherever they are shown or sent from here on."""
    with transaction.atomic():
        said = Utterance.objects.select_for_update().filter(room=room, n=n).exclude(talk="").first()
        if said is None:
            raise ModerationError(_("Nothing was said there."))
        if said.talk == REMOVED:
            return
        HiddenWords.objects.update_or_create(room=room, n=n, defaults={"talk": said.talk, "hidden_by": by})
        _show_instead(room, n, REMOVED)


def put_back(*, room: Room, n: int) -> None:
    """Show again what was taken away."""
    with transaction.atomic():
        kept = HiddenWords.objects.select_for_update().filter(room=room, n=n).first()
        if kept is None:
            raise ModerationError(_("Nothing is hidden there."))
        _show_instead(room, n, kept.talk)
        kept.delete()


def _show_instead(room: Room, n: int, words: str) -> None:
    Utterance.objects.filter(room=room, n=n).update(talk=words)
    EpisodeText.objects.filter(episode__room=room, n=n).update(talk=words)


def bar(*, participant: Participant, days: int, now: datetime | None = None) -> datetime:
    """Keep somebody from meeting people here for some days; 0 lets them again."""
    if days and days not in DAYS:
        raise ModerationError(_("Choose for how long from the list."))
    now = now or timezone.now()
    until = now + timedelta(days=days) if days else None
    Participant.objects.filter(pk=participant.pk).update(barred_until=until)
    return until or now
