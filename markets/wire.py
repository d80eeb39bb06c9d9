"""The room socket's frames: what a client may send, strictly decoded, and what it is told.

A frame from a client is one JSON object with a `type`; unknown types, unknown fields and wrong kinds
of value are refused with a sentence. A price travels as the text that was typed and is read by
`engine.money` alone. Frames to the client are built here from a seat's view, rendered with the same
partials as the first paint.
"""

import re
import unicodedata
from collections.abc import Hashable
from datetime import datetime
from functools import lru_cache
from typing import Any, TypeAlias

import msgspec
from django.template.loader import render_to_string
from django.utils.html import escape
from django.utils.translation import get_language
from django.utils.translation import gettext as _

from markets import room_page
from markets.engine.money import parse_amount
from markets.engine.protocol import (
    AcceptOffer,
    Action,
    Leave,
    MakeOffer,
    RejectOffer,
    Say,
    SearchPrice,
    Wait,
)
from markets.presentation import StatusBar
from markets.selectors import SeatView

MAX_KEPT_PANELS = 4_000
"""A few kilobytes each."""

MAX_FRAME_CHARS = 65_536
"""What is longer is answered with a sentence, up to the web server's own limit of 262,144 bytes (`--ws-max-size`: as many
characters of any kind); what is longer than that is closed with 1009, which the page knows."""


class _Frame(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    pass


class SayWire(_Frame, frozen=True, kw_only=True, tag="say"):
    """Talk without an offer."""

    buyer: int = 0
    talk: str


class MakeOfferWire(_Frame, frozen=True, kw_only=True, tag="make_offer"):
    """An offer with the price as typed."""

    buyer: int = 0
    product: int = 0
    price: str
    talk: str = ""


class AcceptOfferWire(_Frame, frozen=True, kw_only=True, tag="accept_offer"):
    """Take a standing offer."""

    buyer: int = 0
    offer_id: int
    talk: str = ""


class RejectOfferWire(_Frame, frozen=True, kw_only=True, tag="reject_offer"):
    """Turn a standing offer down."""

    buyer: int = 0
    offer_id: int
    talk: str = ""


class WaitWire(_Frame, frozen=True, kw_only=True, tag="wait"):
    """Let time pass, on the record; a market with a clock alone knows it."""

    buyer: int = 0
    for_ms: int = 0


class SearchPriceWire(_Frame, frozen=True, kw_only=True, tag="search_price"):
    """Look up what is public about prices like that of a product; a market with a clock alone knows it."""

    buyer: int = 0
    product: int = 0


class LeaveWire(_Frame, frozen=True, kw_only=True, tag="leave"):
    """Walk away."""


ActionWire: TypeAlias = (
    SayWire | MakeOfferWire | AcceptOfferWire | RejectOfferWire | WaitWire | SearchPriceWire | LeaveWire
)


class Act(_Frame, frozen=True, kw_only=True, tag="act"):
    """A move."""

    client_move_id: str
    seen: int | None = None
    """Last seat event the sender had seen."""
    action: ActionWire


class Preview(_Frame, frozen=True, kw_only=True, tag="preview"):
    """What would a deal at this price be worth to me?"""

    id: int
    buyer: int = 0
    product: int = 0
    price: str


class ReadPrice(_Frame, frozen=True, kw_only=True, tag="read_price"):
    """Is there a price in this talk?"""

    id: int
    buyer: int = 0
    text: str


class Typing(_Frame, frozen=True, kw_only=True, tag="typing"):
    """I am writing in this thread."""

    buyer: int | None = None


class Resync(_Frame, frozen=True, kw_only=True, tag="resync"):
    """Send me my events after this one."""

    after: int


class Ping(_Frame, frozen=True, kw_only=True, tag="ping"):
    """Are you there?"""


ClientFrame: TypeAlias = Act | Preview | ReadPrice | Typing | Resync | Ping

_decoder = msgspec.json.Decoder(ClientFrame, strict=True)
_MOVE_ID = re.compile(r"[!-~]{1,64}")


class BadFrame(ValueError):
    """Not a frame of ours; the sentence is for whoever sent it."""


def decode(text: str) -> ClientFrame:
    """Read one frame. Raises `BadFrame` with a sentence."""
    if len(text) > MAX_FRAME_CHARS:
        raise BadFrame(_("That message is too large."))
    try:
        frame = _decoder.decode(text.encode("utf-8"))
    except UnicodeEncodeError as error:
        raise BadFrame(_("That message holds half a character; type it again.")) from error
    except msgspec.ValidationError as error:
        raise BadFrame(_("That message is not one this room knows: %s.") % error) from error
    except (msgspec.DecodeError, RecursionError) as error:
        raise BadFrame(_("That message is not readable JSON.")) from error
    if isinstance(frame, Act) and not _MOVE_ID.fullmatch(frame.client_move_id):
        raise BadFrame(_("A move needs an identifier of 1 to 64 plain characters."))
    return frame


def to_action(wire: ActionWire, *, currency: str) -> Action:
    """The engine's action for what a person sent. Raises `AmountError` on an unreadable price."""
    match wire:
        case SayWire():
            return Say(buyer=wire.buyer, talk=clean(wire.talk))
        case MakeOfferWire():
            return MakeOffer(
                buyer=wire.buyer,
                product=wire.product,
                price_cents=parse_amount(wire.price, currency=currency),
                talk=clean(wire.talk),
            )
        case AcceptOfferWire():
            return AcceptOffer(buyer=wire.buyer, offer_id=wire.offer_id, talk=clean(wire.talk))
        case RejectOfferWire():
            return RejectOffer(buyer=wire.buyer, offer_id=wire.offer_id, talk=clean(wire.talk))
        case WaitWire():
            return Wait(buyer=wire.buyer, for_ms=wire.for_ms)
        case SearchPriceWire():
            return SearchPrice(buyer=wire.buyer, product=wire.product)
        case LeaveWire():
            return Leave()


_DROPPED = frozenset("\ufeff\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
"""Byte-order mark, and the marks that turn the direction of what follows: a price could be made to read backwards."""


def clean(text: str) -> str:
    """Talk as it is stored: without controls and marks that a database or a reader cannot hold.

    Joiners and spaces of every script stay: without them emoji fall apart and words run together.
    """
    return "".join(
        character
        for character in text.strip()
        if character in "\n\t" or (unicodedata.category(character) not in ("Cc", "Cs") and character not in _DROPPED)
    )


# --- To the client ----------------------------------------------------------------------------------


def view_frame(view: SeatView, *, after: int, origin: str, now: datetime) -> dict[str, Any]:
    """Everything that changed for a seat after its event number `after`."""
    after = min(max(0, after), view.seq)
    awaiting = room_page.awaiting(view)
    status = room_page.status_bar(view)
    return {
        "type": "view",
        "seq": view.seq,
        "after": after,
        "items": _items(view, after),
        "panels": _panels(view, status, origin=origin),
        "my_turn": status.my_turn,
        "awaiting": list(awaiting),
        "ended": view.ended,
        "deadline_at": room_page.deadline_at_ms(view),
        "server_time": room_page.epoch_ms(now),
        "status_line": status.turn_text,
    }


def _items(view: SeatView, after: int) -> list[dict[str, Any]]:
    """New events; thread 0 stands for every thread of a seller."""
    items = []
    for event in view.events[after:]:
        thread = room_page.thread_number(view, event.thread)
        item = room_page.event_item(view, event, thread=thread)
        if item is not None:
            html = render_to_string("markets/_event_item.html", {"item": item})
            items.append({"seq": item.seq, "thread": thread, "html": html})
    return items


def _panels(view: SeatView, status: StatusBar, *, origin: str) -> dict[str, str]:
    """Every replaceable part of the page, by element id. None of them shows what was said."""
    panels: dict[str, str] = {
        "panel-opponent": escape(room_page.opponent_text(view)),
        "panel-card": _drawn("markets/_private_card.html", "card", room_page.private_card(view)),
        "panel-status": _drawn("markets/_status_bar.html", "status", status),
        "panel-waiting": _drawn("markets/_waiting.html", "waiting", room_page.waiting(view, origin=origin)),
    }
    for thread in room_page.thread_panels(view, with_log=False):
        panels[f"panel-thread-{thread.thread}"] = _drawn("markets/_thread_status.html", "thread", thread)
        panels[f"panel-offers-{thread.thread}"] = _drawn("markets/_standing_offers.html", "thread", thread)
    return panels


def _drawn(template: str, name: str, shown: Hashable) -> str:
    """A partial filled with one thing. Most moves leave most panels as they were, so the latest are kept: by everything
    that goes into them, so that another seat, value or language is another panel."""
    return _draw(template, name, shown, get_language())


@lru_cache(maxsize=MAX_KEPT_PANELS)
def _draw(template: str, name: str, shown: Hashable, language: str | None) -> str:
    return render_to_string(template, {name: shown})


def error(code: str, sentence: str) -> dict[str, Any]:
    """A frame that could not be used."""
    return {"type": "error", "code": code, "sentence": sentence}


def refused(client_move_id: str, code: str, sentence: str) -> dict[str, Any]:
    """A move that changed nothing, and why."""
    return {
        "type": "refused",
        "client_move_id": client_move_id,
        "code": code,
        "sentence": sentence,
    }
