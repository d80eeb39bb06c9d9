"""What a room answers to a client's frame, whichever way the frame came.

The socket (`consumers`) and the page's fallback without a socket (`views`) both call `answer`, so
that a move means the same on either way. Every frame gets an answer; a refusal carries a code and a
sentence and has changed nothing.
"""

from collections.abc import Callable
from datetime import datetime
from typing import Any

import msgspec
from django.utils.translation import gettext as _

from markets import event_log, room_page, selectors, services, wire
from markets.engine.money import AmountError, format_amount, format_plain, parse_amount
from markets.engine.protocol import IllegalAction, RefusalCode, Role
from markets.engine.talk_prices import find_prices
from markets.models import Seat
from markets.refusals import refusal_sentence
from markets.room_rows import Table
from markets.selectors import SeatView
from markets.services import RoomError


def answer(
    seat: Seat,
    frame: wire.ClientFrame,
    *,
    origin: str,
    now: datetime,
    shown: Callable[[SeatView], SeatView] = lambda view: view,
) -> dict[str, Any] | None:
    """The frame to send back; None where there is nothing to say.

    `shown` may tell the reader less of who sits opposite than the room knows.
    """
    match frame:
        case wire.Act():
            reply, table = act(seat, frame, now=now)
            return reply if reply["type"] == "refused" else reply | {"seq": _view(seat, table=table).seq}
        case wire.Preview():
            return _preview(_view(seat), frame)
        case wire.ReadPrice():
            return _read_price(_view(seat), frame)
        case wire.Resync():
            return wire.view_frame(shown(_view(seat, after=frame.after)), after=frame.after, origin=origin, now=now)
        case wire.Ping():
            services.touch_seat(seat=seat, now=now)
            return {"type": "pong"}
        case wire.Typing():
            return None


def _view(seat: Seat, *, after: int | None = None, table: Table | None = None) -> SeatView:
    """The seat's view as it is now, with the words that were said after its event `after`; without words if None."""
    found = selectors.seated(seat, table) if table is not None else selectors.fresh_table(seat)
    if found is None:
        raise RoomError("not_seated", _("You do not sit in this room any more."))
    return selectors.table_view(*found, after=after)


def act(seat: Seat, frame: wire.Act, *, now: datetime) -> tuple[dict[str, Any], Table | None]:
    """Carry a move out: a refusal, or an acknowledgement that lacks the number of the seat's last event, and the rows
    as the move left them where it was written just now. The page is to be drawn from those, or anew."""
    move = frame.client_move_id
    currency = event_log.scenario_of(seat.room).currency
    try:
        action = wire.to_action(_own_thread(seat, frame.action), currency=currency)
        accepted = services.submit_action(
            room=seat.room,
            seat=seat,
            action=action,
            client_move_id=move,
            seen_seq=frame.seen,
            now=now,
        )
    except AmountError as error:
        return wire.refused(move, error.code.value, error.sentence), None
    except IllegalAction as error:
        return wire.refused(move, error.code.value, refusal_sentence(error.code)), None
    except RoomError as error:
        return wire.refused(move, error.code, error.sentence), None
    return {"type": "ack", "client_move_id": move, "repeated": accepted.repeated}, accepted.table


def _own_thread(seat: Seat, action: wire.ActionWire) -> wire.ActionWire:
    """A buyer's page calls its only thread 1; the rules know it by the buyer's own number."""
    if seat.role == Role.BUYER.value and getattr(action, "buyer", 0) == 1:
        return msgspec.structs.replace(action, buyer=0)
    return action


def _preview(view: SeatView, frame: wire.Preview) -> dict[str, Any]:
    reply: dict[str, Any] = {"type": "preview", "id": frame.id}
    observation = view.observation
    if not 0 <= frame.product < len(observation.products):
        return reply | {
            "ok": False,
            "surplus_cents": None,
            "sentence": refusal_sentence(RefusalCode.UNKNOWN_PRODUCT),
        }
    try:
        price_cents = parse_amount(frame.price, currency=observation.currency)
    except AmountError as error:
        return reply | {"ok": False, "surplus_cents": None, "sentence": error.sentence}
    return reply | {
        "ok": True,
        "surplus_cents": observation.surplus_cents(product=frame.product, price_cents=price_cents),
        "sentence": room_page.worth_sentence(observation, product=frame.product, price_cents=price_cents),
    }


def _read_price(view: SeatView, frame: wire.ReadPrice) -> dict[str, Any]:
    currency = view.observation.currency
    products = view.observation.products
    cents = find_prices(
        frame.text[: wire.MAX_FRAME_CHARS],
        currency=currency,
        list_price_cents=products[0].list_price_cents if len(products) == 1 else None,
    ).cents
    reply: dict[str, Any] = {"type": "price_read", "id": frame.id}
    if cents is None:
        return reply | {"price": None, "label": None}
    label = _("Make this an offer of %(price)s?") % {"price": format_amount(cents, currency)}
    return reply | {"price": format_plain(cents), "label": label}
