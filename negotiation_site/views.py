"""The site's own pages: home, a market with its opponents, taking a seat, agents, glossary, about."""

from pathlib import Path
from typing import Literal

from csp.decorators import csp_update
from django.conf import settings
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET, require_POST

from agents import registry
from agents.base import AgentSpec, Kind
from markets import identity, market_page, presentation, selectors, services
from markets.engine.money import format_amount
from markets.engine.protocol import PROTOCOL_VERSION, SELLER, Party, Role, buyer_party
from markets.engine.scenarios import Family, decode_recipe
from markets.models import Episode, Market, Participant, Product, Room, RoomStatus, Seat, SeatKind
from markets.presentation import Mark, MarkKind
from markets.services import RoomError
from negotiation_site import agent_groups, glossary, market_picture, seating
from negotiation_site.dashboards import Chart
from negotiation_site.help import first_game
from negotiation_site.stack import full_stack_missing

VERSION = "0.1.0"

SEATS: tuple[Role, ...] = (Role.BUYER, Role.SELLER)
"""Seats in the order in which they are offered."""


@require_GET
def home(request: HttpRequest) -> HttpResponse:
    """What this is, and one button into a negotiation."""
    participant = identity.participant_of(request.session)
    running = None if participant is None else selectors.running_room(participant)
    markets = sum(market.is_listed for market in selectors.current_markets())
    page = presentation.HomePage(
        line=_example_line(),
        play_url=reverse("play", args=["demo-bilateral"]),
        markets_text=_("%(markets)d markets, %(agents)d agents, %(products)d products")
        % {
            "markets": markets,
            "agents": len(registry.all_specs()),
            "products": Product.objects.count(),
        }
        if markets
        else "",
        resume_url=reverse("room", args=[running.room.public_id]) if running else "",
        resume_text=_("Back to your negotiation") if running else "",
        first_url=reverse("first-game") if first_game.market() is not None else "",
        newcomer=not first_game.has_played(participant),
    )
    return render(request, "home.html", {"page": page})


def _example_line() -> presentation.PriceLine:
    """A made-up negotiation, revealed."""

    def mark(kind: MarkKind, cents: int, label: str, role: presentation.Role | Literal[""] = "") -> Mark:
        return Mark(kind=kind, cents=cents, label=label, money=format_amount(cents, "USD"), role=role)

    return presentation.price_line(
        title=_("A lamp, worth $84 to the buyer and $52 to the seller, sold at $66."),
        marks=(
            mark(MarkKind.RESERVATION, 8400, _("buyer's value"), "buyer"),
            mark(MarkKind.THEIR_RESERVATION, 5200, _("seller's cost"), "seller"),
            mark(MarkKind.PAST_OFFER, 9500, "", "seller"),
            mark(MarkKind.PAST_OFFER, 4000, "", "buyer"),
            mark(MarkKind.PAST_OFFER, 7800, "", "seller"),
            mark(MarkKind.DEAL, 6600, _("deal")),
        ),
        money=lambda cents: format_amount(cents, "USD").removesuffix(".00"),
        agreement=(5200, 8400),
    )


# --- A market and its seats -------------------------------------------------------------------------


def _market(slug: str) -> Market:
    market = selectors.market_on_record(slug)
    if market is None:
        raise Http404(_("There is no market called %(slug)s.") % {"slug": slug})
    return market


@require_GET
@csp_update({"style-src": ["'unsafe-inline'"]})  # type: ignore[arg-type]  # Plotly writes style attributes.
def market(request: HttpRequest, slug: str) -> HttpResponse:
    """What a market is, the seat to take, and what is at stake in it."""
    found = _market(slug)
    return _render_market(request, found, charts=market_picture.charts(found))


def _render_market(
    request: HttpRequest, market: Market, *, error: str = "", charts: tuple[Chart, ...] = ()
) -> HttpResponse:
    page = market_page.detail_page(market, seats=_seat_choices(market), error=error)
    context = {"page": page, "charts": charts}
    return render(request, "markets/market_detail.html", context, status=400 if error else 200)


def _seat_choices(market: Market) -> tuple[presentation.SeatChoice, ...]:
    family = decode_recipe(market.recipe).family
    several = family is not Family.BILATERAL
    own = {Role.BUYER: market.buyer_agents.split(",")[0], Role.SELLER: market.seller_agent}
    names = {
        Role.BUYER: (
            _("Buyer"),
            _("You learn what the product is worth to you and try to pay less."),
        ),
        Role.SELLER: (
            _("Seller"),
            _("You learn what the product costs you and try to be paid more.")
            if not several
            else _("You learn what you pay for what you sell, and choose whom to write to."),
        ),
    }
    return tuple(
        presentation.SeatChoice(
            role=role.value,
            name=names[role][0],
            sentence=names[role][1],
            selected=role is Role.BUYER,
            opponents=(
                *_own_mix(market, role, several=several),
                *_narrated(own[role.other], role, several=several),
                *(
                    presentation.OpponentChoice(
                        value=spec.slug,
                        name=spec.title,
                        description=spec.summary,
                        selected=spec.slug == registry.narrated(own[role.other])
                        and not (several and role is Role.SELLER),
                    )
                    for spec in seating.opponents(role=role.other, family=family)
                ),
            ),
            opponents_label=_("Who sells")
            if role is Role.BUYER
            else (_("Who the buyers are") if several else _("Who buys")),
        )
        for role in SEATS
    )


def _own_mix(market: Market, role: Role, *, several: bool) -> tuple[presentation.OpponentChoice, ...]:
    """The market's own mix of buyers, where there are several."""
    if not several or role is Role.BUYER:
        return ()
    return (
        presentation.OpponentChoice(
            value="",
            name=_("The market's mix"),
            description=_("buyers of different kinds"),
            selected=True,
        ),
    )


def _narrated(slug: str, role: Role, *, several: bool) -> tuple[presentation.OpponentChoice, ...]:
    """The market's own agent with the words of a language model, where one is there to speak."""
    voiced = registry.narrated(slug)
    if voiced == slug or (several and role is Role.SELLER):
        return ()
    spec = registry.get(voiced)
    return (presentation.OpponentChoice(value=spec.slug, name=spec.title, description=spec.summary, selected=True),)


@require_POST
def play(request: HttpRequest, slug: str) -> HttpResponse:
    """Take a seat: opens a room, against agents at once or with a seat kept for a person."""
    market = _market(slug)
    seat = request.POST.get("seat", Role.BUYER.value)
    if seat not in (Role.BUYER.value, Role.SELLER.value):
        return _render_market(request, market, error=_("Choose the buyer's or the seller's seat."))
    role = Role(seat)
    opponent = request.POST.get(f"opponent_{role.value}", "")
    with_person = request.POST.get("with") == "person"
    try:
        agents = seating.agents_for(market, host=role, opponent=opponent)
        room = services.open_room(
            market=market,
            host=identity.ensure_participant(request.session),
            role=role,
            agents=agents,
            for_people=_seat_for_a_person(role) if with_person else frozenset(),
        )
    except RoomError as refused:
        return _render_market(request, market, error=refused.sentence)
    return enter(request, room)


def _seat_for_a_person(host: Role) -> frozenset[Party]:
    return frozenset({SELLER if host is Role.BUYER else buyer_party(1)})


def enter(request: HttpRequest, room: Room) -> HttpResponse:
    """Into the room; a choice of consent made in an earlier game is made for this one too."""
    participant = identity.ensure_participant(request.session)
    seat = Seat.objects.get(room=room, participant=participant)
    if participant.default_consent:
        services.choose_consent(
            seat=seat,
            scope=participant.default_consent,
            version=presentation.CONSENT_VERSION,
        )
    return redirect("room", public_id=room.public_id)


@require_POST
def rematch(request: HttpRequest, public_id: str) -> HttpResponse:
    """The same market again with a new draw: with roles swapped, or in the same seat.

    Against a person the other seat is kept for a person again; they get in by the share link.
    """
    participant = identity.participant_of(request.session)
    seat = selectors.seat_of(public_id=public_id, participant=participant)
    if seat is None or participant is None:
        raise Http404(_("There is no such room, or you do not sit in it."))
    if seat.room.status != RoomStatus.ENDED:
        return redirect("room", public_id=public_id)
    role = Role(seat.role)
    if request.POST.get("swap") == "1":
        role = role.other
    market = seat.room.market
    others = list(seat.room.seats.exclude(pk=seat.pk))
    person = any(other.kind == SeatKind.PERSON for other in others)
    try:
        room = services.open_room(
            market=market,
            host=participant,
            role=role,
            agents=seating.agents_for(market, host=role, opponent=_same_opponent(market, role, others)),
            for_people=_seat_for_a_person(role) if person else frozenset(),
            rematch_of=seat.room,
        )
    except RoomError as refused:
        return _render_market(request, market, error=refused.sentence)
    return enter(request, room)


def _same_opponent(market: Market, role: Role, others: list[Seat]) -> str:
    """The agent met before, where it was one and can play the other side too; else the market's."""
    family = decode_recipe(market.recipe).family
    slugs = {other.agent_slug for other in others if other.kind == SeatKind.AGENT}
    if len(slugs) != 1:
        return ""
    slug = slugs.pop()
    known = {spec.slug for spec in seating.opponents(role=role.other, family=family)}
    return slug if slug in known else ""


# --- Reading ----------------------------------------------------------------------------------------


@require_GET
def agents(request: HttpRequest) -> HttpResponse:
    """What each agent does."""
    page = presentation.AgentsPage(
        groups=tuple(
            presentation.AgentGroup(
                heading=group.heading,
                sentence=group.sentence,
                rows=tuple(_agent_row(spec) for spec in group.specs),
            )
            for group in agent_groups.grouped((*registry.all_specs(), *registry.entered_specs()))
        )
    )
    return render(request, "agents_list.html", {"page": page})


def _agent_row(spec: AgentSpec) -> presentation.AgentRow:
    kinds = {
        Kind.SCRIPTED: _("scripted"),
        Kind.NARRATOR: _("scripted, a language model speaks"),
        Kind.MODEL: _("language model"),
        Kind.LEARNED: _("trained here"),
        Kind.REFERENCE: _("reference"),
    }
    return presentation.AgentRow(
        slug=spec.slug,
        name=spec.title,
        kind_text=kinds[spec.kind],
        description=spec.summary,
        roles=tuple(role.value for role in spec.roles),
        families_text=_("every family")
        if len(spec.families) == len(Family)
        else "; ".join(market_page.family_text(family).lower() for family in spec.families),
        source=spec.source,
        version=spec.version,
    )


@require_GET
def glossary_page(request: HttpRequest) -> HttpResponse:
    """The words of the discipline."""
    page = presentation.GlossaryPage(terms=glossary.terms(Path(settings.BASE_DIR)))
    return render(request, "glossary.html", {"page": page})


@require_GET
def about(request: HttpRequest) -> HttpResponse:
    """What this server is and what it runs on."""
    page = presentation.AboutPage(
        version=VERSION,
        protocol_version=PROTOCOL_VERSION,
        training_stack=not full_stack_missing(),
        counts={
            str(_("negotiations recorded")): f"{Episode.objects.count():,}",
            str(_("players")): f"{Participant.objects.count():,}",
            str(_("markets")): f"{selectors.current_markets().count():,}",
            str(_("agents")): f"{len(registry.all_specs()):,}",
        },
    )
    return render(request, "about.html", {"page": page})
