"""The transcript of a stored episode, for whoever may read it.

Who may is `reading_room.access`: open data for everybody, what was kept for research for the staff and researchers.
Whoever asks for another, or for one that was taken back, is told that there is nothing here; who sat in it is led to
the replay from the own seat. Values are shown because the negotiation is over; agents' hidden thoughts are shown to
researchers alone.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal, assert_never

from csp.decorators import csp_update
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET

from agents import registry
from markets import identity, presentation, room_page
from markets.engine.money import Cents, format_amount
from markets.engine.protocol import (
    DeadlinePassed,
    Event,
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
    Waited,
    buyer_of,
    decode_log,
)
from markets.engine.scenarios import EventDriven, Scenario, decode_scenario
from markets.models import Episode, EpisodeSeat, EpisodeSource, SeatKind
from markets.presentation import Choice, EventItem, Figure, Mark, MarkKind
from markets.result import percent
from negotiation_site.leaderboard.words import agent_url
from negotiation_site.reading_room import access, price_path, reading, references
from negotiation_site.reading_room.access import Viewer
from negotiation_site.reading_room.reading import Reading, Turn


@dataclass(frozen=True)
class Sitting:
    """Who sat on one chair."""

    role: str
    chair: str
    who: str
    url: str
    gain: str
    share: str


@dataclass(frozen=True)
class TranscriptPage:
    """Context `page` of `leaderboard/transcript.html`."""

    title: str
    market_name: str
    market_url: str
    kind_text: str
    headline: str
    line: presentation.PriceLine | None
    sittings: tuple[Sitting, ...]
    figures: tuple[Figure, ...]


@require_GET
@never_cache
@csp_update({"style-src": ["'unsafe-inline'"]})  # type: ignore[arg-type]  # Plotly writes style attributes.
def transcript(request: HttpRequest, public_id: str) -> HttpResponse:
    """One episode from the first word to the last."""
    episode = references.find(request.user, public_id)
    if not isinstance(episode, Episode):
        participant = identity.participant_of(request.session)
        own = (
            participant is not None
            and Episode.objects.filter(
                public_id=public_id, room__seats__participant=participant, room__seats__kind=SeatKind.PERSON
            )
            .select_related("room")
            .first()
        )
        if own and own.room is not None:
            return redirect("room-replay", public_id=own.room.public_id)
        raise Http404(_("There is no such transcript, or it is not open to everybody."))
    return render(
        request,
        "leaderboard/transcript.html",
        {
            "page": transcript_page(episode),
            "reading": read(
                episode, request.user, product=request.GET.get("product", ""), noting=request.GET.get("note", "")
            ),
        },
    )


def transcript_page(episode: Episode) -> TranscriptPage:
    """An episode that may be shown, in words."""
    scenario, log = decode_scenario(episode.scenario), decode_log(episode.log)
    seats = sorted(episode.seats.all(), key=lambda seat: buyer_of(seat.party))
    return TranscriptPage(
        title=title(scenario),
        market_name=episode.market.name,
        market_url=reverse("market", args=[episode.market.slug]),
        kind_text=kind_text(episode),
        headline=_headline(
            scenario, episode, log_deals=[entry.event for entry in log if isinstance(entry.event, OfferAccepted)]
        ),
        line=_line(scenario, [entry.event for entry in log]),
        sittings=tuple(_sitting(seat, scenario) for seat in seats),
        figures=_figures(episode),
    )


def read(episode: Episode, viewer: Viewer, *, product: str = "", noting: str = "", prefix: str = "") -> Reading:
    """An episode that `viewer` may read, turn by turn. `product` is the number of the one whose prices are drawn."""
    scenario, log = decode_scenario(episode.scenario), decode_log(episode.log)
    more, texts = reading.extras(viewer, episode, noting=noting), {text.n: text for text in episode.texts.all()}
    thinks, money = access.is_researcher(viewer), price_path.money_of(scenario)
    named = price_path.products_in(log) or [0]
    chosen = next((number for number in named if str(number) == product), named[0])
    paths = {number: price_path.of_game(scenario, log, product=number) for number in {chosen, *named}}
    worths = {n: text for path in paths.values() for n, text in reading.worths(path, money).items()}
    turns = []
    for entry in log:
        when = _clock(entry.at_ms) if isinstance(scenario.mechanism, EventDriven) else ""
        text = texts.get(entry.n)
        item = _item(scenario, entry.event, talk="" if text is None else text.talk, number=entry.n, when=when)
        if item is not None:
            thought = text.thought if text is not None and thinks else ""
            turns.append(Turn(entry.n, item, thought, worths.get(entry.n, ""), more.by_turn.get(entry.n, ())))
    products = [
        Choice(value=str(number), label=scenario.products[number].title, selected=number == chosen) for number in named
    ]
    return Reading(
        name=references.of(episode),
        url=references.url(episode),
        title=title(scenario),
        about=f"{episode.market.name} · {kind_text(episode)}",
        headline=_headline(
            scenario, episode, log_deals=[entry.event for entry in log if isinstance(entry.event, OfferAccepted)]
        ),
        turns=tuple(turns),
        picture=price_path.picture(
            paths[chosen], element=f"{prefix}price-path", money=money, products=products if len(products) > 1 else ()
        ),
        facts=tuple(_facts(episode, scenario, paths[chosen], money)),
        notes=more.notes,
        form=more.form,
        prefix=prefix,
        choose_url=reading.choose_url(episode),
    )


def title(scenario: Scenario) -> str:
    """What was negotiated about."""
    titles = [product.title for product in scenario.products]
    if len(titles) == 1:
        return titles[0]
    return ngettext("%(count)d product", "%(count)d products", len(titles)) % {"count": len(titles)}


def kind_text(episode: Episode) -> str:
    """Where it was held."""
    return _("A game of people") if episode.source == EpisodeSource.LIVE else _("A simulation")


def _facts(
    episode: Episode, scenario: Scenario, path: price_path.Path, money: price_path.Money
) -> Iterator[tuple[str, str]]:
    """What two transcripts are compared by."""
    seats = sorted(episode.seats.all(), key=lambda seat: buyer_of(seat.party))
    for role in (Role.SELLER, Role.BUYER):
        yield room_page.role_text(role), ", ".join(who(seat) for seat in seats if seat.role == role)
    deals = [money(step.price_cents) for step in path.steps if step.deal]
    yield _("Price"), ", ".join(deals) or _("no deal")
    for role, label in ((Role.SELLER, _("First ask")), (Role.BUYER, _("First bid"))):
        first = next((step for step in path.steps if step.by is role and not step.deal), None)
        yield label, "–" if first is None else money(first.price_cents)
    yield _("Seller's part"), "–" if episode.seller_share is None else percent(episode.seller_share)
    yield (
        _("Gained together"),
        _("%(gain)s of %(best)s")
        % {
            "gain": money(episode.welfare_cents),
            "best": money(episode.first_best_cents),
        },
    )
    yield _("Messages"), str(episode.seller_messages + episode.buyer_messages)


def who(seat: EpisodeSeat) -> str:
    """Who sat there, as far as anybody is told."""
    return _("a person") if seat.kind != SeatKind.AGENT else agent_title(seat.agent_slug)


def _money(scenario: Scenario, cents: Cents) -> str:
    return format_amount(cents, scenario.currency)


def _headline(scenario: Scenario, episode: Episode, *, log_deals: list[OfferAccepted]) -> str:
    if len(log_deals) == 1:
        return _("Sold at %(price)s.") % {"price": _money(scenario, log_deals[0].price_cents)}
    if log_deals:
        return ngettext("%(count)d sale for %(sum)s.", "%(count)d sales for %(sum)s.", len(log_deals)) % {
            "count": len(log_deals),
            "sum": _money(scenario, sum(deal.price_cents for deal in log_deals)),
        }
    if episode.first_best_cents <= 0:
        return _("No deal, and rightly: there was no price that both could gain from.")
    return _("No deal. There was %(gain)s to share and it went to nobody.") % {
        "gain": _money(scenario, episode.first_best_cents)
    }


def _figures(episode: Episode) -> tuple[Figure, ...]:
    money = format_amount(episode.first_best_cents, episode.currency)
    if episode.first_best_cents <= 0:
        return ()
    quality = episode.welfare_cents / episode.first_best_cents
    return (
        Figure(
            label=_("Gained together"),
            value=format_amount(episode.welfare_cents, episode.currency),
            out_of=_("%(share)s of the %(gain)s that could be gained") % {"share": percent(quality), "gain": money},
            fraction=quality,
        ),
        Figure(
            label=_("Seller's part"),
            value=format_amount(episode.seller_surplus_cents, episode.currency),
            out_of=_("%(share)s of the %(gain)s that could be gained")
            % {"share": percent(episode.seller_share or 0.0), "gain": money},
            fraction=episode.seller_share,
        ),
    )


def _sitting(seat: EpisodeSeat, scenario: Scenario) -> Sitting:
    return Sitting(
        role=seat.role,
        chair=_chair(scenario, buyer_of(seat.party)),
        who=who(seat),
        url="" if seat.kind != SeatKind.AGENT else agent_url(seat.agent_slug),
        gain=_money(scenario, seat.surplus_cents),
        share="" if seat.surplus_share is None else percent(seat.surplus_share),
    )


def agent_title(slug: str) -> str:
    """The name of an agent, or its slug where it is no longer here."""
    try:
        return registry.get(slug).title
    except registry.UnknownAgent:
        return slug


def _chair(scenario: Scenario, buyer: int) -> str:
    """ "Seller", "Buyer", or "Buyer B" where there are several."""
    if buyer == 0:
        return room_page.role_text(Role.SELLER)
    if scenario.buyers == 1:
        return room_page.role_text(Role.BUYER)
    return _("Buyer %(letter)s") % {"letter": room_page.letter(buyer)}


def _clock(at_ms: int) -> str:
    """A moment of a negotiation in which nobody took turns."""
    return _("after %(seconds)s s") % {"seconds": f"{at_ms / 1000:.1f}"}


def _item(scenario: Scenario, event: Event, *, talk: str, number: int, when: str = "") -> EventItem | None:
    """One event in the third person; None for what the rules did and nobody said."""
    if isinstance(event, NegotiationEnded):
        return EventItem(seq=number, thread=0, kind="end", side="system", author="", sentence=_("That was the end."))
    if isinstance(event, OfferLapsed | ProductSoldOut | Waited | PriceSearched):
        return None
    by = event.by
    author = _chair(scenario, 0 if by is Role.SELLER else event.buyer)
    to = _chair(scenario, event.buyer) if scenario.buyers > 1 and by is Role.SELLER and event.buyer else ""
    words = {"who": author, "to": to}

    def item(
        kind: Literal["talk", "offer", "accept", "reject", "leave", "refused", "deadline"],
        sentence: str,
        *,
        price: str = "",
        product: str = "",
    ) -> EventItem:
        side: Literal["them", "system"] = "them" if kind in ("talk", "offer", "accept") else "system"
        shown = _("%(who)s to %(to)s") % words if to else author
        return EventItem(
            seq=number,
            thread=0,
            kind=kind,
            side=side,
            author=shown,
            role=by.value,
            sentence=sentence,
            talk=talk,
            price=price,
            product=product,
            when=when,
        )

    match event:
        case OfferMade():
            price = _money(scenario, event.price_cents)
            product = scenario.products[event.product].title if len(scenario.products) > 1 else ""
            return item("offer", _("offered %(price)s") % {"price": price}, price=price, product=product)
        case MessageSent():
            return item("talk", "")
        case OfferAccepted():
            price = _money(scenario, event.price_cents)
            return item("accept", _("%(who)s accepted: a deal at %(price)s.") % {**words, "price": price})
        case OfferRejected():
            return item("reject", _("%(who)s turned the offer down.") % words)
        case MoveRefused():
            return item("refused", _("%(who)s made a move that the rules refuse.") % words)
        case PartyLeft():
            return item("leave", _("%(who)s left.") % words)
        case DeadlinePassed():
            return item("deadline", _("%(who)s let the time run out.") % words)
        case _:
            assert_never(event)


def _line(scenario: Scenario, events: list[Event]) -> presentation.PriceLine | None:
    """All values, offers and the deal on one axis; None for several products."""
    if len(scenario.products) > 1:
        return None
    cost, values = scenario.seller_values_cents[0], [own[0] for own in scenario.buyer_values_cents]

    def mark(kind: MarkKind, cents: Cents, label: str, role: Literal["seller", "buyer", ""], key: str) -> Mark:
        return Mark(kind=kind, cents=cents, label=label, money=_money(scenario, cents), role=role, key=key)

    marks = [mark(MarkKind.THEIR_RESERVATION, cost, _("seller's cost"), "seller", "cost")]
    for buyer, value in enumerate(values, start=1):
        name = _("buyer's value") if len(values) == 1 else room_page.letter(buyer)
        marks.append(mark(MarkKind.THEIR_RESERVATION, value, name, "buyer", f"value-{buyer}"))
    for event in events:
        if isinstance(event, OfferMade):
            role: Literal["seller", "buyer"] = "seller" if event.by is Role.SELLER else "buyer"
            marks.append(
                mark(MarkKind.PAST_OFFER, event.price_cents, "", role, f"offer-{event.buyer}-{event.offer_id}")
            )
        elif isinstance(event, OfferAccepted):
            marks.append(mark(MarkKind.DEAL, event.price_cents, _("deal"), "", f"deal-{event.buyer}"))
    return presentation.price_line(
        title=_("The seller's cost was %(cost)s and the highest value %(value)s.")
        % {"cost": _money(scenario, cost), "value": _money(scenario, max(values))},
        marks=marks,
        money=lambda cents: _money(scenario, cents).removesuffix(".00"),
        agreement=(cost, max(values)) if cost <= max(values) else None,
    )
