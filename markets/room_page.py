"""What one seat's page says: presentation dataclasses filled from that seat's view.

Everything here is built from a `selectors.SeatView`, which has passed the secrecy gate; no function
takes a scenario or a log. The sentences of a live room are made here; those of its end in `result`.
The numbers and names are the same for the first paint and for every live update.
"""

from collections.abc import Callable
from datetime import datetime, timedelta
from functools import lru_cache
from typing import Any, Literal, TypeAlias

from django.urls import reverse
from django.utils import timezone
from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from markets import presentation
from markets.engine.money import CURRENCIES, Cents, format_amount, format_plain
from markets.engine.observation import Observation, SeenEvent, SeenOffer, SeenProduct, SeenThread
from markets.engine.protocol import (
    MAX_TALK_CHARS,
    DeadlinePassed,
    EndReason,
    LapseReason,
    MessageSent,
    MoveRefused,
    NegotiationEnded,
    OfferAccepted,
    OfferLapsed,
    OfferMade,
    OfferRejected,
    PartyLeft,
    PriceSearched,
    ProductSoldOut,
    Role,
    TurnPassed,
    Waited,
)
from markets.engine.scenarios import Alternating, EventDriven, SellerTurns
from markets.engine.state import ThreadStatus
from markets.illustrations import category_image
from markets.links import share_url
from markets.models import SeatKind
from markets.presentation import Mark, MarkKind
from markets.selectors import TOLD, SeatView

ThreadWord: TypeAlias = Literal["yours", "theirs", "idle", "bought", "left", "over"]
SystemKind: TypeAlias = Literal["lapse", "leave", "refused", "deadline", "end"]


def role_text(role: Role) -> str:
    """Name of a side."""
    return _("Seller") if role is Role.SELLER else _("Buyer")


def thread_number(view: SeatView, thread: int) -> int:
    """The number a page gives a thread: the buyer's for a seller, 1 for a buyer's only one."""
    return thread or (1 if view.role is Role.BUYER else 0)


def other_name(view: SeatView, thread: int) -> str:
    """What the other side of a thread is called."""
    if view.role is Role.BUYER:
        return _("Seller")
    if view.observation.buyers == 1:
        return _("Buyer")
    return _("Buyer %(letter)s") % {"letter": letter(thread)}


def letter(buyer: int) -> str:
    """A, B, C… for buyer 1, 2, 3…"""
    return "ABCDEFGHIJKLMNOPQRSTUVWXYZ"[buyer - 1]


def worth_sentence(observation: Observation, *, product: int, price_cents: Cents) -> str:
    """What a deal at a price is worth to the seat that looks."""
    price = format_amount(price_cents, observation.currency)
    surplus = observation.surplus_cents(product=product, price_cents=price_cents)
    if surplus < 0:
        return _("A deal at %(price)s would cost you %(loss)s.") % {
            "price": price,
            "loss": format_amount(-surplus, observation.currency),
        }
    if surplus == 0:
        return _("A deal at %(price)s is worth nothing to you, and costs you nothing.") % {"price": price}
    return _("A deal at %(price)s is worth %(gain)s to you.") % {
        "price": price,
        "gain": format_amount(surplus, observation.currency),
    }


def value_sentence(observation: Observation, product: SeenProduct) -> str:
    """The seat's own reservation value in words."""
    value = format_amount(product.reservation_value_cents, observation.currency)
    if observation.role is Role.BUYER:
        return _("You value this at %(value)s.") % {"value": value}
    return _("This costs you %(value)s.") % {"value": value}


# --- Page -----------------------------------------------------------------------------------------


def room_page(
    view: SeatView,
    *,
    origin: str,
    result: presentation.Result | None = None,
    now: datetime | None = None,
) -> presentation.RoomPage:
    """The whole page of a seat."""
    now = now or timezone.now()
    observation = view.observation
    return presentation.RoomPage(
        public_id=view.public_id,
        title=title(observation),
        market_name=view.market_name,
        market_url=reverse("market", args=[view.market_slug]),
        family=observation.family.value,
        role=view.role.value,
        role_text=role_text(view.role),
        opponent_text=opponent_text(view),
        socket_path=f"/ws/rooms/{view.public_id}/",
        view_url=reverse("room-view", args=[view.public_id]),
        act_url=reverse("room-act", args=[view.public_id]),
        result_url=reverse("room-result", args=[view.public_id]),
        seq=view.seq,
        awaiting=awaiting(view),
        card=private_card(view),
        status=status_bar(view),
        threads=thread_panels(view),
        consent=consent(public_id=view.public_id, scope=view.consent_scope),
        waiting=waiting(view, origin=origin),
        result=result,
        deadline_at_ms=deadline_at_ms(view),
        server_time_ms=epoch_ms(now),
        talk_limit=MAX_TALK_CHARS,
        can_leave=not view.ended and view.status != "waiting",
        leave_sentence=_("You walk away without a deal, which is worth nothing and costs nothing."),
    )


def epoch_ms(moment: datetime) -> int:
    """Milliseconds since 1970."""
    return round(moment.timestamp() * 1000)


def deadline_at_ms(view: SeatView) -> int | None:
    """The deadline that a clock should show; one that is days away shows none."""
    if view.deadline_at is None or view.deadline_at - timezone.now() > timedelta(hours=2):
        return None
    return epoch_ms(view.deadline_at)


def awaiting(view: SeatView) -> tuple[int, ...]:
    """Threads in which this seat may write now, by page number."""
    if view.status != "live":
        return ()
    return tuple(thread_number(view, thread.buyer) for thread in view.observation.threads if thread.my_move)


def my_turn(view: SeatView) -> bool:
    """Whether it is for this seat to act; where nobody takes turns, whether it has not spoken last."""
    may_write = bool(awaiting(view))
    if isinstance(view.observation.mechanism, EventDriven):
        return may_write and not view.observation.threads[0].their_move
    return may_write


_SCOPES: dict[str, presentation.ConsentScope] = {"private": "private", "research": "research", "public": "public"}


def consent(*, public_id: str, scope: str) -> presentation.Consent:
    """The consent strip of a seat; an empty `scope` has not been chosen yet."""
    return presentation.Consent(url=reverse("room-consent", args=[public_id]), chosen=_SCOPES.get(scope, ""))


def waiting(view: SeatView, *, origin: str) -> presentation.Waiting | None:
    """The notice that another seat is still open."""
    if view.status != "waiting":
        return None
    seat_text = _("A buyer's seat is open.") if view.role is Role.SELLER else _("The seller's seat is open.")
    return presentation.Waiting(
        share_url=share_url(origin=origin, public_id=view.public_id, token=view.open_token),
        seat_text=seat_text,
        fills_at_ms=epoch_ms(view.fills_at) if view.fills_at else None,
        fills_text=_("If nobody comes, an agent takes the seat in"),
        cancel_url=reverse("room-cancel", args=[view.public_id]) if view.alone else "",
    )


def title(observation: Observation) -> str:
    """What is for sale: the product's name, or how many there are and for how many buyers."""
    if len(observation.products) == 1:
        return observation.products[0].title
    return shape_text(products=len(observation.products), buyers=observation.buyers)


def shape_text(*, products: int, buyers: int) -> str:
    """A table with several products, in a few words."""
    return ngettext(
        "%(products)d products for %(buyers)d buyer", "%(products)d products for %(buyers)d buyers", buyers
    ) % {"products": products, "buyers": buyers}


def opponent_text(view: SeatView) -> str:
    """Who sits opposite: changes when an open seat is taken."""
    if view.role is Role.SELLER and view.observation.buyers > 1:
        return _("against %(count)d buyers") % {"count": view.observation.buyers}
    return _("against %(who)s") % {"who": _who(view, view.observation.threads[0].buyer)}


def _who(view: SeatView, thread: int) -> str:
    counterpart = next(c for c in view.counterparts if c.thread == thread)
    if counterpart.kind == TOLD:
        return counterpart.name
    if counterpart.kind == SeatKind.AGENT:
        return _("an agent, %(name)s") % {"name": counterpart.name}
    if counterpart.kind == SeatKind.OPEN:
        return _("an open seat")
    return _("a person")


# --- Card and status ------------------------------------------------------------------------------


def private_card(view: SeatView) -> presentation.PrivateCard:
    """What only this seat knows."""
    observation = view.observation
    if view.role is Role.BUYER:
        role, rule = (
            _("You are the buyer"),
            _("Any price below your value gains you money. You want one, and no deal gains nothing."),
        )
    else:
        role, rule = (
            _("You are the seller"),
            _("Any price above your cost gains you money. What you do not sell gains nothing."),
        )
    return presentation.PrivateCard(
        role=view.role.value,
        role_text=role,
        products=tuple(_card_product(view, index, product) for index, product in enumerate(observation.products)),
        rule_sentence=rule,
    )


def _card_product(view: SeatView, index: int, product: SeenProduct) -> presentation.CardProduct:
    observation = view.observation
    example_cents = _example_price_cents(observation, product)
    several = len(observation.products) > 1
    return presentation.CardProduct(
        product=product_fact(observation, index, product),
        value=format_amount(product.reservation_value_cents, observation.currency),
        value_sentence=value_sentence(observation, product),
        example_sentence="" if several else worth_sentence(observation, product=index, price_cents=example_cents),
        line=card_line(view, index),
        sold_out=product.units_left == 0 and not view.ended,
    )


def _example_price_cents(observation: Observation, product: SeenProduct) -> Cents:
    """A round price on the gaining side of the own value."""
    own = product.reservation_value_cents
    raw = own * 5 // 6 if observation.role is Role.BUYER else max(own * 6 // 5, own + 100)
    step: int = 10 ** max(0, len(str(max(raw, 1))) - 2)
    return max(1, raw // step * step if observation.role is Role.BUYER else -(-raw // step) * step)


MAX_CARD_TEXT = 600
"""Longest product text on a card; imported catalogues have pages of it."""


def product_fact(observation: Observation, index: int, product: SeenProduct) -> presentation.ProductFact:
    """The public facts of a product as this seat sees them."""
    if product.units_left == 0:
        stock = "" if observation.ended else _("sold out")
    elif observation.role is Role.SELLER:
        stock = ngettext("one only", "%(count)d in stock", product.units_left) % {"count": product.units_left}
    else:
        stock = ""
    text = product.text
    return presentation.ProductFact(
        index=index,
        name=product.title,
        category=product.category,
        text=text if len(text) <= MAX_CARD_TEXT else text[:MAX_CARD_TEXT].rstrip() + "…",
        list_price=format_amount(product.list_price_cents, observation.currency),
        image=category_image(product.category),
        stock=stock,
    )


def card_line(view: SeatView, product: int) -> presentation.PriceLine:
    """The price line of one product with every standing offer that this seat may see."""
    offers = [
        (thread, offer) for thread in view.observation.threads for offer in thread.standing if offer.product == product
    ]
    if view.role is Role.SELLER and view.observation.buyers > 1:
        offers = [(thread, offer) for thread, offer in offers if not offer.mine]
    return offer_line(view, product=product, offers=offers)


def offer_line(view: SeatView, *, product: int, offers: list[tuple[SeenThread, SeenOffer]]) -> presentation.PriceLine:
    """Own value, list price and some offers on one axis that stays still while they move."""
    observation = view.observation
    facts = observation.products[product]
    own, listed = facts.reservation_value_cents, facts.list_price_cents
    money = _money(observation)
    several = view.role is Role.SELLER and observation.buyers > 1
    marks = [
        Mark(
            kind=MarkKind.RESERVATION,
            cents=own,
            label=_("your value") if view.role is Role.BUYER else _("your cost"),
            money=money(own),
            role=view.role.value,
            you=True,
        ),
        Mark(kind=MarkKind.LIST, cents=listed, label=_("list"), money=money(listed)),
    ]
    for thread, offer in offers:
        name = letter(thread.buyer) if several else other_name(view, thread.buyer).lower()
        role = view.role if offer.mine else view.role.other
        deal = thread.deal is not None and thread.deal.offer_id == offer.offer_id
        marks.append(
            Mark(
                kind=MarkKind.DEAL if deal else (MarkKind.YOUR_OFFER if offer.mine else MarkKind.THEIR_OFFER),
                cents=offer.price_cents,
                label=_("deal") if deal else (_("you") if offer.mine else name),
                money=money(offer.price_cents),
                role="" if deal else role.value,
                you=offer.mine,
                key=f"{'mine' if offer.mine else 'theirs'}-{thread.buyer}-{product}",
            )
        )
    core = (min(own, listed) * 3 // 10, max(own, listed) * 115 // 100 + 1)
    return _laid_out(_line_title(view, product, offers), tuple(marks), core, view.role.value, observation.currency)


@lru_cache(maxsize=1_000)
def _laid_out(
    title: str, marks: tuple[Mark, ...], core: tuple[Cents, Cents], gain_for: presentation.Role, currency: str
) -> presentation.PriceLine:
    """Where everything on a line goes; the same for the same marks, and most moves are not offers."""
    return presentation.price_line(
        title=title, marks=marks, money=lambda cents: _tick(cents, currency), core=core, gain_for=gain_for
    )


def _line_title(view: SeatView, product: int, offers: list[tuple[SeenThread, SeenOffer]]) -> str:
    observation = view.observation
    parts = [value_sentence(observation, observation.products[product])]
    for thread, offer in offers:
        price = format_amount(offer.price_cents, observation.currency)
        if offer.mine:
            parts.append(_("You offer %(price)s.") % {"price": price})
        else:
            parts.append(_("%(who)s offers %(price)s.") % {"who": other_name(view, thread.buyer), "price": price})
    return " ".join(parts)


def _money(observation: Observation) -> Callable[[Cents], str]:
    return lambda cents: format_amount(cents, observation.currency)


def _tick(cents: Cents, currency: str) -> str:
    text = format_amount(cents, currency)
    return text.removesuffix(".00")


def status_bar(view: SeatView) -> presentation.StatusBar:
    """Whose turn it is and how much is left."""
    observation = view.observation
    mine = my_turn(view)
    mechanism = observation.mechanism
    round_text = turns_text = ""
    turns_left = turns_total = None
    if isinstance(mechanism, Alternating):
        thread = observation.threads[0]
        started = min(thread.my_messages, thread.their_messages)
        number = min(mechanism.rounds, started + 1)
        round_text = _("Round %(number)d of %(rounds)d") % {
            "number": number,
            "rounds": mechanism.rounds,
        }
    elif isinstance(mechanism, EventDriven):
        if not view.ended and observation.events_left is not None:
            round_text = ngettext(
                "%(left)d move left for both", "%(left)d moves left for both", observation.events_left
            ) % {"left": observation.events_left}
    elif isinstance(mechanism, SellerTurns) and view.role is Role.SELLER and observation.turns_left is not None:
        turns_left, turns_total = observation.turns_left, mechanism.turns
        turns_text = ngettext(
            "%(left)d of %(total)d message left", "%(left)d of %(total)d messages left", turns_total
        ) % {"left": turns_left, "total": turns_total}
    return presentation.StatusBar(
        my_turn=mine,
        turn_text=_turn_text(view, mine=mine),
        turns_left=turns_left,
        turns_total=turns_total,
        turns_text=turns_text,
        round_text=round_text,
        ended=view.ended,
    )


def _turn_text(view: SeatView, *, mine: bool) -> str:
    observation = view.observation
    if view.ended:
        return _("The negotiation is over")
    if view.status == "waiting":
        return _("Waiting for somebody to take the other seat")
    own = observation.threads[0]
    if view.role is Role.BUYER and own.status is ThreadStatus.SERVED:
        return _("You have bought; the seller is still talking to others")
    if view.role is Role.BUYER and own.status is ThreadStatus.LEFT:
        return _("You have left; the seller is still talking to others")
    if isinstance(observation.mechanism, EventDriven) and own.my_move:
        if mine:
            return _("Your move, whenever you like")
        return _("Their move; you may also write again")
    if mine:
        if view.role is Role.SELLER and observation.buyers > 1:
            if any(thread.their_move for thread in observation.threads):
                return _("Answers are on their way; you may write to the others")
            return _("Your turn: choose a buyer")
        return _("Your turn")
    if view.role is Role.BUYER:
        return _("Waiting for the seller")
    if observation.buyers > 1:
        return _("Waiting for answers")
    return _("Waiting for the buyer")


# --- Threads --------------------------------------------------------------------------------------


def thread_panels(view: SeatView, *, with_log: bool = True) -> tuple[presentation.ThreadPanel, ...]:
    """Every conversation of this seat, with its log unless a page shows that already."""
    return tuple(_thread_panel(view, thread, with_log=with_log) for thread in view.observation.threads)


def _thread_panel(view: SeatView, thread: SeenThread, *, with_log: bool) -> presentation.ThreadPanel:
    number = thread_number(view, thread.buyer)
    status, status_text = _thread_status(view, thread)
    several = view.role is Role.SELLER and view.observation.buyers > 1
    line = None
    if several and len(view.observation.products) == 1:
        shown = [(thread, offer) for offer in thread.standing]
        if thread.deal is not None:
            shown = [(thread, thread.deal)]
        line = offer_line(view, product=0, offers=shown)
    return presentation.ThreadPanel(
        thread=number,
        name=other_name(view, thread.buyer),
        short_name=letter(number) if several else other_name(view, thread.buyer),
        role=view.role.other.value,
        who=_who(view, thread.buyer),
        status=status,
        status_text=status_text,
        items=tuple(
            item
            for event in (view.events if with_log else ())
            if event.thread in (thread.buyer, 0)
            for item in (event_item(view, event, thread=number),)
            if item is not None
        ),
        offers=standing_offers(view, thread),
        composer=composer(view, thread),
        line=line,
    )


def _thread_status(view: SeatView, thread: SeenThread) -> tuple[ThreadWord, str]:
    if thread.status is ThreadStatus.SERVED and thread.deal is not None:
        price = format_amount(thread.deal.price_cents, view.observation.currency)
        text = _("You bought at %(price)s") if view.role is Role.BUYER else _("Bought at %(price)s")
        return "bought", text % {"price": price}
    if thread.status is ThreadStatus.LEFT:
        if view.observation.end_reason is EndReason.SELLER_LEFT:
            # The log below says who left; once for each conversation is enough.
            return "over", _("No deal")
        return "left", _("You left") if view.role is Role.BUYER else _("Left")
    if view.ended:
        return "over", _("No deal")
    if view.status == "waiting":
        return "idle", _("Not here yet")
    if thread.my_move and thread.their_move:
        return "theirs", _("No answer yet")
    if thread.my_move:
        return "yours", _("Your move")
    if thread.their_move:
        return "theirs", _("Thinking…")
    return "idle", _("Waiting")


def composer(view: SeatView, thread: SeenThread) -> presentation.Composer:
    """Where this seat writes in one thread."""
    observation = view.observation
    symbol = CURRENCIES[observation.currency].symbol
    first = observation.products[0]
    return presentation.Composer(
        thread=thread_number(view, thread.buyer),
        may_act=thread.my_move and view.status == "live",
        products=tuple(
            presentation.ProductOption(
                index=index,
                name=product.title,
                note=_("list %(price)s") % {"price": format_amount(product.list_price_cents, observation.currency)},
                price_example=format_plain(_example_price_cents(observation, product)),
            )
            for index, product in enumerate(observation.products)
        ),
        currency_prefix=symbol,
        price_example=format_plain(_example_price_cents(observation, first)),
        clock=isinstance(view.observation.mechanism, EventDriven),
    )


def _searched_sentence(observation: Observation, product: int) -> str:
    """What a look at prices found."""
    found = observation.products[product].price_range
    if found is None:
        return _("You looked at prices; this market publishes none.")
    amounts = {
        "lowest": format_amount(found.lowest_list_price_cents, observation.currency),
        "median": format_amount(found.median_list_price_cents, observation.currency),
        "highest": format_amount(found.highest_list_price_cents, observation.currency),
    }
    return ngettext(
        "You looked at prices: %(count)d product like this one lists at %(median)s.",
        "You looked at prices: %(count)d products like this one list at %(lowest)s to %(highest)s, half of them up to "
        "%(median)s.",
        found.products,
    ) % {"count": found.products, **amounts}


def standing_offers(view: SeatView, thread: SeenThread) -> tuple[presentation.StandingOffer, ...]:
    """The offers that bind in one thread, newest first, the other side's before one's own."""
    observation = view.observation
    several = len(observation.products) > 1
    if view.ended or thread.status is not ThreadStatus.OPEN:
        return ()
    ordered = sorted(thread.standing, key=lambda offer: (offer.mine, -offer.offer_id))
    may_answer = thread.my_move and view.status == "live"
    return tuple(
        presentation.StandingOffer(
            offer_id=offer.offer_id,
            yours=offer.mine,
            author=_("You") if offer.mine else other_name(view, thread.buyer),
            role=(view.role if offer.mine else view.role.other).value,
            price=format_amount(offer.price_cents, observation.currency),
            product=observation.products[offer.product].title if several else "",
            surplus_sentence=worth_sentence(observation, product=offer.product, price_cents=offer.price_cents),
            gains=observation.surplus_cents(product=offer.product, price_cents=offer.price_cents) >= 0,
            can_accept=may_answer and not offer.mine,
            can_reject=may_answer and not offer.mine,
        )
        for offer in ordered
    )


# --- Events ---------------------------------------------------------------------------------------


def event_item(view: SeatView, event: SeenEvent, *, thread: int) -> presentation.EventItem | None:
    """One line of a thread's log; None for what a reader need not be told."""
    observation = view.observation
    happened = event.event
    talk = view.talk.get(event.n, "")
    common: dict[str, Any] = {"seq": event.seq, "thread": thread}
    other = other_name(view, event.thread)

    def by(role: Role) -> dict[str, Any]:
        mine = role is view.role
        return {
            "side": "you" if mine else "them",
            "author": _("You") if mine else other,
            "role": role.value,
            "talk": talk,
        }

    match happened:
        case OfferMade():
            price = format_amount(happened.price_cents, observation.currency)
            sentence = _("offered %(price)s") % {"price": price}
            return presentation.EventItem(
                kind="offer",
                sentence=sentence,
                price=price,
                product=_product_name(observation, happened.product),
                offer_id=happened.offer_id,
                when=_("opening bid, by the market's rule") if happened.opening else "",
                **common,
                **by(happened.by),
            )
        case MessageSent():
            return presentation.EventItem(kind="talk", **common, **by(happened.by))
        case OfferAccepted():
            return presentation.EventItem(
                kind="accept",
                sentence=_accepted_sentence(view, happened, other),
                price=format_amount(happened.price_cents, observation.currency),
                product=_product_name(observation, happened.product),
                **common,
                **by(happened.by),
            )
        case OfferRejected():
            return presentation.EventItem(
                kind="reject",
                sentence=_rejected_sentence(view, event, happened, other),
                **common,
                **by(happened.by),
            )
        case OfferLapsed():
            price = _offer_price(view, event.thread, happened.offer_id)
            reasons = {
                LapseReason.SOLD_OUT: _("The offer of %(price)s lapsed: the product is sold."),
                LapseReason.BUYER_SERVED: _("The offer of %(price)s lapsed."),
            }
            return _system("lapse", reasons[happened.reason] % {"price": price}, seq=event.seq, thread=thread)
        case ProductSoldOut():
            if len(observation.products) == 1:
                return None
            sentence = _("%(product)s is sold out.") % {"product": observation.products[happened.product].title}
            return _system("lapse", sentence, seq=event.seq, thread=thread)
        case PartyLeft():
            if happened.by is view.role:
                sentence = _("You left.")
            else:
                sentence = _("%(who)s left.") % {
                    "who": other if happened.buyer or view.role is Role.BUYER else _("Seller")
                }
            return _system("leave", sentence, seq=event.seq, thread=thread, talk=talk)
        case DeadlinePassed():
            if happened.by is view.role:
                sentence = _("Your time ran out.")
            else:
                sentence = _("%(who)s did not answer in time.") % {"who": other}
            return _system("deadline", sentence, seq=event.seq, thread=thread)
        case Waited():
            return _system("refused", _("You waited."), seq=event.seq, thread=thread)
        case PriceSearched():
            sentence = _searched_sentence(observation, happened.product)
            return _system("refused", sentence, seq=event.seq, thread=thread)
        case MoveRefused():
            sentence = _("A move was refused and its turn is spent.")
            return _system("refused", sentence, seq=event.seq, thread=thread)
        case TurnPassed():
            sentence = _("%(who)s passed.") % {"who": other}
            return _system("refused", sentence, seq=event.seq, thread=thread)
        case NegotiationEnded():
            sentence = end_sentence(happened.reason, role=view.role)
            if happened.reason is EndReason.SELLER_LEFT:
                sentence = _("The negotiation is over.")  # who left is the line above
            return _system("end", sentence, seq=event.seq, thread=thread)


def end_sentence(reason: EndReason, *, role: Role | None = None) -> str:
    """Why a negotiation is over, for somebody who was in it, as `role`."""
    if reason is EndReason.SELLER_LEFT and role is Role.SELLER:
        return _("You left. The negotiation is over.")
    return {
        EndReason.DEAL: _("Deal. The negotiation is over."),
        EndReason.SOLD_OUT: _("Everything is sold. The negotiation is over."),
        EndReason.BUYERS_GONE: _("Nobody is left to sell to. The negotiation is over."),
        EndReason.SELLER_LEFT: _("The seller left. The negotiation is over."),
        EndReason.TURNS_USED: _("No messages are left. The negotiation is over."),
        EndReason.EVENTS_USED: _("No moves are left. The negotiation is over."),
        EndReason.SILENCE: _("Both sides waited for the other. The negotiation is over."),
        EndReason.DEADLINE: _("The time is up. The negotiation is over."),
        EndReason.MALFORMED: _("A message could not be read. The negotiation is over."),
        EndReason.CLOSED: _("The market has closed. The negotiation is over."),
    }[reason]


def _system(kind: SystemKind, sentence: str, *, seq: int, thread: int, talk: str = "") -> presentation.EventItem:
    return presentation.EventItem(
        seq=seq,
        thread=thread,
        kind=kind,
        side="system",
        author="",
        sentence=sentence,
        talk=talk,
    )


def _product_name(observation: Observation, product: int) -> str:
    return observation.products[product].title if len(observation.products) > 1 else ""


def _offer_price(view: SeatView, thread: int, offer_id: int) -> str:
    seen = next(t for t in view.observation.threads if t.buyer == thread)
    return format_amount(seen.offers[offer_id - 1].price_cents, view.observation.currency)


def _accepted_sentence(view: SeatView, event: OfferAccepted, other: str) -> str:
    price = format_amount(event.price_cents, view.observation.currency)
    if event.by is view.role:
        return _("You accepted %(price)s. Deal.") % {"price": price}
    return _("%(who)s accepted your %(price)s. Deal.") % {"who": other, "price": price}


def _rejected_sentence(view: SeatView, event: SeenEvent, rejected: OfferRejected, other: str) -> str:
    price = _offer_price(view, event.thread, rejected.offer_id)
    if rejected.by is view.role:
        return _("You turned %(price)s down.") % {"price": price}
    return _("%(who)s turned your %(price)s down.") % {"who": other, "price": price}
