"""The guided first negotiation: a real room in a gentle market, with hints beside it.

Here: which market, who sits opposite, who has played already, and the hints. A room is guided because of its market;
nothing is stored beside it, so that a game counts, is kept and can be replayed as any other. Not here: the moment at
which a hint appears (`static/js/first-game.js` reads it off the page).
"""

from dataclasses import dataclass

from django.utils.translation import gettext as _

from markets import selectors, services
from markets.engine.protocol import SELLER, Role
from markets.models import Market, Participant, Room, RoomStatus, Seat
from markets.presentation import RoomPage
from negotiation_site import seating
from negotiation_site.starter.markets import FIRST

SELLER_AGENT = "conceder"
"""Gives way early and never loses its temper."""


@dataclass(frozen=True)
class Hint:
    """One sentence or two at the right moment."""

    moment: str
    """Name of the moment, known to the script."""
    at: str
    """Selector of what the hint is about."""
    text: str
    term: str = ""
    """Anchor of the glossary's entry that says more."""
    term_text: str = ""


def market() -> Market | None:
    """Where first games are played; None on a site without the starter world."""
    return selectors.market(FIRST)


def has_played(participant: Participant | None) -> bool:
    """Whether somebody has finished any negotiation."""
    return (
        participant is not None and Seat.objects.filter(participant=participant, room__status=RoomStatus.ENDED).exists()
    )


def running(participant: Participant) -> Room | None:
    """A guided game of somebody that is not over."""
    seat = (
        Seat.objects.filter(participant=participant, room__market__slug=FIRST)
        .exclude(room__status=RoomStatus.ENDED)
        .select_related("room")
        .order_by("-room_id")
        .first()
    )
    return None if seat is None else seat.room


def open_room(*, market: Market, participant: Participant) -> Room:
    """A guided game for somebody: the one that is going, or a new one. Raises `RoomError`."""
    return running(participant) or services.open_room(
        market=market,
        host=participant,
        role=Role.BUYER,
        agents={SELLER: seating.agent_name(SELLER_AGENT)},
    )


def hints(page: RoomPage) -> tuple[Hint, ...]:
    """What is said in a guided room, with the room's own value; in the order in which it is said."""
    value = page.card.products[0].value
    return (
        Hint(
            "consent",
            "#panel-consent",
            _("Choose first for whom this game may be kept. The game is the same whatever you choose."),
        ),
        Hint(
            "value",
            "#panel-card",
            _(
                "Your card is your secret: the thing is worth %(value)s to you. What you pay less is gained, what "
                "you pay more is lost. The seller has such a number too, and neither of you sees the other's."
            )
            % {"value": value},
            "reservation-value",
            _("Reservation value"),
        ),
        Hint(
            "theirs",
            "#panel-offers-1",
            _(
                "The seller's offer is on the table, and under it what it is worth to you. You may accept it, reject "
                "it, or answer with a price of your own. A first price is seldom the last one."
            ),
        ),
        Hint(
            "offer",
            "#composer-1",
            _(
                "Name your price in the field Offer and press Make offer. Begin well below %(value)s: both sides come "
                "towards each other, and you can raise it later. A price that stands in a message alone binds nobody."
            )
            % {"value": value},
            "offer",
            _("Offer"),
        ),
        Hint(
            "turns",
            "#panel-status",
            _(
                "Rounds are counted up here. When the last one is over without an acceptance there is no deal, which "
                "is worth nothing to either of you."
            ),
            "alternating-rounds",
            _("Alternating rounds"),
        ),
        Hint(
            "accept",
            "#panel-offers-1",
            _(
                "This offer gains you something. Accepting makes the deal at exactly that price; waiting for another "
                "step may gain more, and costs a round. Accepting asks you once more."
            ),
            "standing-offer",
            _("Standing offer"),
        ),
        Hint(
            "loss",
            "#panel-card",
            _(
                "At that price you would lose money: it is above %(value)s. No deal at all would be better for you. "
                "Nobody stops you here."
            )
            % {"value": value},
            "surplus",
            _("Surplus"),
        ),
        Hint(
            "result",
            "#panel-result",
            _(
                "It is over, and both secrets are shown. What lay between them was there to share, and the price "
                "divided it. Half for each is an even split; no deal leaves all of it on the table."
            ),
            "surplus-share",
            _("Surplus share"),
        ),
    )
