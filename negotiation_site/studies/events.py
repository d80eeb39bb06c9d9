"""What is noted of a study as it goes: one line for each step, paste, loss of focus and act of the staff.

Contract: a paste is noted by its length, never by its words. Acts of the staff carry who did it.
"""

from datetime import datetime

from django.contrib.auth.models import User
from django.utils import timezone
from django.utils.translation import gettext_lazy as _

from negotiation_site.studies.models import Participation, Study, StudyEvent

KINDS = {
    # Steps of a participant. `detail` is the state, where one was reached.
    "entered": _("entered"),
    "state": _("went on"),
    "seated": _("sat down at a table"),
    "round_over": _("a round ended"),
    "took_over": _("continued on another device"),
    "refused": _("was refused"),
    "silent": _("let the time run out"),
    "replaced": _("an agent took the chair"),
    # Logged by the page, as the consent says.
    "paste": _("pasted text"),
    "blur": _("looked away from the page"),
    "focus": _("came back to the page"),
    "notice_read": _("put a message of the staff away"),
    # Acts of the staff.
    "message": _("staff sent a message"),
    "extend": _("staff gave more time"),
    "end": _("staff ended the participation"),
    "replace": _("staff let an agent play on"),
    "settle": _("staff marked the payment as made"),
    "status": _("staff changed the status"),
    "version": _("staff saved a version"),
    "register": _("staff registered a version"),
    "link": _("staff made or closed a link"),
}


def note(
    study: Study,
    kind: str,
    *,
    participation: Participation | None = None,
    detail: str = "",
    actor: User | None = None,
    now: datetime | None = None,
) -> StudyEvent:
    """Write one line."""
    if kind not in KINDS:
        raise ValueError(f"No event of a study is called {kind!r}.")
    return StudyEvent.objects.create(
        study=study, participation=participation, kind=kind, detail=detail[:500], actor=actor, at=now or timezone.now()
    )
