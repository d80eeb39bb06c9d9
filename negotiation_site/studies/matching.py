"""People with people: who sits down with whom, and when.

Here: finding a partner for somebody who waits. Not here: what happens when nobody comes (`conduct.waiting_over`).
`partner_for` runs while the caller holds the study's row locked, so that nobody is seated twice; it locks the
partner's participation too.

Whoever waits is matched only while their page was heard of just now: a closed tab does not count. Of those who
fit, the one who has waited longest comes first. Both sides must be in the same condition and mode, on different
sides; strangers have not met before, fixed partners have met nobody else.
"""

from datetime import datetime, timedelta

from negotiation_site.studies.design import Partners
from negotiation_site.studies.models import Participation, State, StudyRound

PRESENT = timedelta(seconds=20)
"""The waiting page is heard of every few seconds; one that has been still for longer is not there."""


def is_present(participation: Participation, *, now: datetime) -> bool:
    """Whether a page of this participant was heard of just now."""
    return now - participation.last_seen_at <= PRESENT


def fixed_partner(participation: Participation) -> Participation | None:
    """Whom a participant has played with where partners stay the same; None before the first round with somebody."""
    if participation.version.parsed.partners is not Partners.PARTNER:
        return None
    met = (
        StudyRound.objects.filter(participation=participation, number__gt=0, partner__isnull=False)
        .select_related("partner")
        .order_by("number")
        .first()
    )
    return None if met is None else met.partner


def anybody(waiting: Participation) -> bool:
    """Whether somebody waits on the other side at all."""
    others = Participation.objects.filter(
        version=waiting.version_id, mode=waiting.mode, condition=waiting.condition, state=State.WAITING
    )
    return others.exclude(role=waiting.role).exists()


def candidates(waiting: Participation, *, now: datetime) -> list[Participation]:
    """Those who could sit opposite now, longest wait first."""
    found = (
        Participation.objects.select_for_update(of=("self",))
        .select_related("study", "version", "participant")
        .filter(
            version=waiting.version_id,
            mode=waiting.mode,
            condition=waiting.condition,
            state=State.WAITING,
            last_seen_at__gte=now - PRESENT,
        )
        .exclude(role=waiting.role)
        .order_by("waiting_since", "pk")
    )
    return [other for other in found if _fit(waiting, other)]


def _fit(one: Participation, other: Participation) -> bool:
    if one.version.parsed.partners is Partners.STRANGER:
        return not StudyRound.objects.filter(participation=one, partner=other, number__gt=0).exists()
    mine, theirs = fixed_partner(one), fixed_partner(other)
    if mine is None and theirs is None:
        return _played_alone(one) == _played_alone(other)
    return mine is not None and mine.pk == other.pk


def _played_alone(participation: Participation) -> int:
    """Rounds already played: fixed pairs begin and go on together."""
    return participation.round


def partner_for(waiting: Participation, *, now: datetime) -> Participation | None:
    """Whom somebody who waits sits down with now. The caller holds the study and the participation."""
    return next(iter(candidates(waiting, now=now)), None)
