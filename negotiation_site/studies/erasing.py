"""What studies forget when a person is erased, however that came about.

The row of the participation stays with its state and its place among those who entered; answers, events, staff's
messages, platform parameters and the way back in go. Words in rooms and the pseudonym are `markets.erasure`'s.
"""

from typing import Any

from django.utils import timezone

from markets.models import Participant, new_public_id
from markets.signals import person_erased
from negotiation_site.studies.design import Outcome
from negotiation_site.studies.models import Participation, State


def connect() -> None:
    """Listen to erasures."""
    person_erased.connect(_forget, dispatch_uid="studies.erasing")


def _forget(sender: object, participant: Participant, **_: Any) -> None:
    participation = Participation.objects.filter(participant=participant).first()
    if participation is not None:
        forget(participation)


def forget(participation: Participation) -> None:
    """Empty everything that tells of the person. Inside the caller's transaction."""
    participation.answers.all().delete()
    participation.notices.all().delete()
    participation.events.all().delete()
    now = timezone.now()
    Participation.objects.filter(pk=participation.pk).update(
        state=State.WITHDREW,
        outcome=Outcome.WITHDREW,
        slot=None,
        platform_person="",
        platform_study="",
        platform_session="",
        device="",
        resume_token=new_public_id(),
        completion_code="",
        state_at=now,
        ended_at=participation.ended_at or now,
    )
