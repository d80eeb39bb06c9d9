"""The socket of a participant at the table: the room's own, for the browser that takes part.

Its address names the participation, not the room: whatever round is being played is found on connecting.
"""

from typing import Any

from channels.db import database_sync_to_async
from django.contrib.sessions.backends.base import SessionBase

from markets.consumers import CLOSE_STRANGER, RoomConsumer
from markets.models import Seat, SeatKind
from markets.selectors import SeatView
from negotiation_site.studies import holding, play, telling
from negotiation_site.studies.design import Told


class StudyConsumer(RoomConsumer):
    """One page at one seat of a study."""

    public_id = ""
    """Of the participation."""
    told = Told.NOTHING

    def find_seat(self, public_id: str, session: SessionBase) -> Seat | None:
        """The chair of the round that is being played."""
        found = holding.held(session, public_id)
        if found is None or not found.is_here:
            return None
        played = play.current(found.participation)
        if played is None:
            return None
        self.public_id = public_id
        self.told = play.told(played)
        seat = play.seat_of(played)
        return seat if seat.kind == SeatKind.PERSON else None

    def sits_there(self, seat: Seat, session: SessionBase) -> bool:
        """Until another device takes over, or an agent the chair."""
        found = holding.held(session, self.public_id)
        return (
            found is not None
            and found.is_here
            and Seat.objects.filter(
                pk=seat.pk, kind=SeatKind.PERSON, participant=found.participation.participant_id
            ).exists()
        )

    def shown(self, view: SeatView) -> SeatView:
        """With what this condition is told of the other side."""
        return telling.shown(view, told=self.told)

    async def room_nudge(self, event: dict[str, Any]) -> None:
        """The room has a new version, or another device took over."""
        if not await database_sync_to_async(self._still_sits)(self.seat):
            await self.close(CLOSE_STRANGER)
            return
        await super().room_nudge(event)

    async def room_waiting(self, event: dict[str, Any]) -> None:
        """That a language model is late is said only to those who were told of one."""
        if self.told is Told.AI:
            await super().room_waiting(event)
