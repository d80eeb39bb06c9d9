"""What a participant is told about the other side, whatever the room knows.

Here: the words, and a seat's view with them in it. Everything else of the view is the engine's and untouched, so
nothing can be told here that the secrecy gate kept.
"""

from dataclasses import replace

from django.utils.translation import gettext as _

from markets.selectors import TOLD, Counterpart, SeatView
from negotiation_site.studies.design import Told


def words(told: Told) -> str:
    """What the other side is called after "against"."""
    return {
        Told.AI: _("an AI"),
        Told.PERSON: _("a person"),
        Told.NOTHING: _("the other side"),
    }[told]


def shown(view: SeatView, *, told: Told) -> SeatView:
    """The view as a participant of a condition reads it."""
    name = words(told)
    counterparts = tuple(Counterpart(thread=each.thread, kind=TOLD, name=name) for each in view.counterparts)
    return replace(view, counterparts=counterparts)
