"""Whose browser this is in a study: the server-side session knows a key for each participation it has entered.

Contract: a participation answers to sessions that hold a key for it, and is taken part in by the one whose key is
`Participation.device`. A session that held it before another device took over is told so and may take it back; one
that never did is a stranger. Nothing about identity is kept in pages.
"""

from dataclasses import dataclass

from django.contrib.sessions.backends.base import SessionBase

from negotiation_site.studies.models import Mode, Participation, Study

SESSION_KEY = "studies"
MOST_HELD = 50
"""Participations that one session remembers: a laboratory's computer sees many."""


@dataclass(frozen=True)
class Held:
    """A participation as a session stands to it."""

    participation: Participation
    is_here: bool
    """Whether this browser is the one that takes part; another has taken over where not."""


def keys(session: SessionBase) -> dict[str, str]:
    """Device keys by public address."""
    stored = session.get(SESSION_KEY, {})
    return dict(stored) if isinstance(stored, dict) else {}


def hold(session: SessionBase, participation: Participation) -> None:
    """Remember that this browser takes part, by the key that the participation has now."""
    known = keys(session)
    known.pop(participation.public_id, None)
    known[participation.public_id] = participation.device
    session[SESSION_KEY] = dict(list(known.items())[-MOST_HELD:])


def held(session: SessionBase, public_id: str) -> Held | None:
    """How this session stands to a participation; None for a stranger."""
    key = keys(session).get(public_id)
    if key is None:
        return None
    participation = (
        Participation.objects.select_related("study", "version", "participant").filter(public_id=public_id).first()
    )
    if participation is None:
        return None
    return Held(participation, is_here=bool(key) and participation.device == key)


def in_study(session: SessionBase, study: Study, *, mode: Mode | str) -> list[Participation]:
    """What this session has entered in a study, newest first."""
    found = Participation.objects.filter(study=study, mode=mode, public_id__in=list(keys(session)))
    return list(found.select_related("study", "version", "participant").order_by("-pk"))
