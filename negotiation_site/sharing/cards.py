"""What a shared result says, and whether a result may be shown at all.

Contract. A card holds what the table divided, never anybody's value: the market, the thing, the price, who took which
part of what there was to share. Nobody's name but the sharer's own, where they asked for it. Nothing of a result is
shown
- while the negotiation goes on, or in a room of a study;
- where the market keeps values after the end, because a share tells something of the other side's;
- where another person sat at the table who did not give the game as open data, or took that back.
It is asked again whenever somebody looks, so that a consent taken back takes the card away.
"""

from dataclasses import dataclass

from django.utils.translation import gettext as _

from markets import episodes
from markets.engine import metrics
from markets.engine.money import format_amount
from markets.engine.protocol import Role, buyer_of, decode_log
from markets.engine.scenarios import Scenario, decode_scenario
from markets.models import ConsentScope, Episode, RoomStatus, Seat, SeatKind
from markets.result import percent
from markets.room_page import shape_text


class NotShareable(Exception):
    """A result that may not be shown; the sentence is for whoever sat there."""


@dataclass(frozen=True)
class Part:
    """A piece of the bar."""

    role: str
    """`seller`, `buyer`, or `rest` for what nobody or others took."""
    label: str
    text: str
    fraction: float
    """Width, 0 to 1; the pieces of a bar add up to 1."""

    @property
    def width(self) -> str:
        """The width as SVG writes it."""
        return f"{self.fraction * 100:.2f}%"


@dataclass(frozen=True)
class Card:
    """What a shared result says."""

    headline: str
    thing: str
    market: str
    market_slug: str
    market_listed: bool
    against: str
    who: str
    """Pseudonym of whoever shares it; empty unless they asked for it."""
    parts: tuple[Part, ...]
    """Who took what; empty where there was nothing to share."""

    @property
    def placed(self) -> tuple[tuple[Part, str], ...]:
        """The pieces of the bar with where each begins, as SVG writes it."""
        at, found = 0.0, []
        for part in self.parts:
            found.append((part, f"{at * 100:.2f}%"))
            at += part.fraction
        return tuple(found)

    @property
    def sentence(self) -> str:
        """All of it in one line, for a preview's text and for a screen reader."""
        parts = ", ".join(f"{part.label} {part.text}" for part in self.parts)
        return ". ".join(filter(None, (f"{self.market}: {self.thing}", parts, self.against))) + "."


def check(seat: Seat) -> Episode:
    """The record behind a seat whose result may be shown. Raises `NotShareable`."""
    room = seat.room
    if room.keeper:
        raise NotShareable(_("Games of a study are not shown to others."))
    if room.status != RoomStatus.ENDED:
        raise NotShareable(_("This negotiation is not over yet."))
    if not room.market.reveals_values:
        raise NotShareable(
            _("This market keeps what it was worth to the other side, so its results stay at the table.")
        )
    others = room.seats.filter(kind=SeatKind.PERSON).exclude(pk=seat.pk)
    if others.exclude(consent_scope=ConsentScope.PUBLIC).exists():
        raise NotShareable(
            _("Another person sat at this table who did not give the game as open data. Its result stays between you.")
        )
    episode = Episode.objects.filter(room=room).first()
    if episode is None:
        raise NotShareable(_("This negotiation left no record."))
    return episode


def card(seat: Seat, *, named: bool) -> Card:
    """The card of a seat. Raises `NotShareable`."""
    episode = check(seat)
    scenario = decode_scenario(episode.scenario)
    outcome = metrics.outcome(scenario, decode_log(episode.log))
    _cents, share = episodes.seat_result(scenario, outcome, seat.party)
    deals = [deal for deal in outcome.deals if seat.role == Role.SELLER or deal.buyer == buyer_of(seat.party)]
    return Card(
        headline=_headline(scenario, seat, deals, share),
        thing=scenario.products[0].title
        if len(scenario.products) == 1
        else shape_text(products=len(scenario.products), buyers=scenario.buyers),
        market=seat.room.market.name,
        market_slug=seat.room.market.slug,
        market_listed=seat.room.market.is_listed,
        against=_against(seat),
        who=seat.participant.pseudonym if named and seat.participant is not None else "",
        parts=_parts(scenario, seat, share, dealt=bool(deals)),
    )


def _headline(scenario: Scenario, seat: Seat, deals: list[metrics.DealOutcome], share: float | None) -> str:
    if not deals:
        if share is None:
            return _("Walked away, and rightly: no price suited both sides")
        return _("No deal: what there was to share went to nobody")
    total = format_amount(sum(deal.price_cents for deal in deals), scenario.currency)
    bought = seat.role == Role.BUYER
    if share is None:
        text = (
            _("Bought at %(price)s, with nothing to share")
            if bought
            else _("Sold for %(price)s, with nothing to share")
        )
    elif share < 0:
        text = _("Bought at %(price)s, at a loss") if bought else _("Sold for %(price)s, at a loss")
    elif share > 1:
        text = (
            _("Bought at %(price)s and took all there was to share, and more")
            if bought
            else _("Sold for %(price)s and took all there was to share, and more")
        )
    else:
        text = (
            _("Bought at %(price)s and took %(share)s of what there was to share")
            if bought
            else _("Sold for %(price)s and took %(share)s of what there was to share")
        )
    return text % {"price": total, "share": "" if share is None else percent(share)}


def _against(seat: Seat) -> str:
    others = [other for other in seat.room.seats.all() if other.role != seat.role]
    if len(others) > 1:
        return _("Against %(count)d buyers") % {"count": len(others)}
    if others and others[0].kind == SeatKind.AGENT:
        return _("Against an agent, %(name)s") % {"name": others[0].agent_name}
    return _("Against a person")


def _parts(scenario: Scenario, seat: Seat, share: float | None, *, dealt: bool) -> tuple[Part, ...]:
    """The bar: of two sides both, of several the own part and the rest."""
    if share is None:
        return ()
    if not dealt:
        return (Part("rest", _("left on the table"), percent(1), 1.0),)
    own = min(1.0, max(0.0, share))
    names = {Role.SELLER.value: _("seller"), Role.BUYER.value: _("buyer")}
    mine = Part(seat.role, names[seat.role], percent(share), own)
    if scenario.buyers == 1 and len(scenario.products) == 1:
        other = Role(seat.role).other.value
        theirs = Part(other, names[other], percent(1 - share), 1 - own)
    else:
        theirs = Part("rest", _("others, or nobody"), percent(1 - share), 1 - own)
    pair = (mine, theirs) if seat.role == Role.SELLER else (theirs, mine)
    return tuple(part for part in pair if part.fraction > 0 or part is mine)
