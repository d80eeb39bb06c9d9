"""Rooms of a study: opening them, handing chairs to agents, taking over what they came to.

Here: everything between a participation and `markets.services`. Not here: who is whose partner (`matching`), what
follows for a participation (`conduct`). Functions that write run inside the caller's transaction, which holds the
participations that are concerned.

A room of a study has `keeper` set, so that silence is answered here by the study's rules. Its agents are the
condition's own or the market's own, never with a voice that happens to be on this server.
"""

from datetime import datetime

from agents.scripted.personas import MARK
from markets import services
from markets.engine import metrics
from markets.engine.protocol import (
    SELLER,
    DeadlinePassed,
    IllegalAction,
    Leave,
    Party,
    Role,
    buyer_party,
    decode_log,
    role_of,
)
from markets.engine.scenarios import decode_recipe, decode_scenario
from markets.models import Episode, Market, Participant, Room, RoomStatus, Seat, SeatKind
from markets.services import AgentName, RoomError, RoomTerms
from negotiation_site import seating
from negotiation_site.studies import assignment, events
from negotiation_site.studies.design import Condition, Design, Told
from negotiation_site.studies.models import (
    ENDED,
    RELEASED,
    Mode,
    Participation,
    RoundOutcome,
    Study,
    StudyRound,
    StudyStatus,
)

KEEPER = "study"


def market_of(condition: Condition) -> Market:
    """The market of a condition, in the version that the design names."""
    return Market.objects.select_related("catalogue").get(slug=condition.market, version=condition.market_version)


def party_of(role: Role) -> Party:
    """The chair that people take on a side."""
    return SELLER if role is Role.SELLER else buyer_party(1)


def agent_slug(condition: Condition, market: Market, role: Role) -> str:
    """The agent on the side `role` of a condition, with its persona."""
    slug = condition.agent or (market.seller_agent if role is Role.SELLER else market.buyer_agents.split(",")[0])
    return f"{slug}{MARK}{condition.persona}" if condition.persona else slug


def agents_for(condition: Condition, market: Market, *, host: Role) -> dict[Party, AgentName]:
    """An agent for every chair but the host's: opposite the condition's, beside it the market's own."""
    buyers = market.buyer_agents.split(",")
    chosen: dict[Party, AgentName] = {}
    if host is Role.BUYER:
        chosen[SELLER] = seating.agent_name(agent_slug(condition, market, Role.SELLER))
    for buyer in range(1, decode_recipe(market.recipe).buyers + 1):
        if host is Role.BUYER and buyer == 1:
            continue
        own = buyers[(buyer - 1) % len(buyers)]
        opposite = host is Role.SELLER and (condition.agent or condition.persona or buyer == 1)
        chosen[buyer_party(buyer)] = seating.agent_name(agent_slug(condition, market, Role.BUYER) if opposite else own)
    return chosen


# --- Opening ------------------------------------------------------------------------------------------


def open_practice(participation: Participation, *, now: datetime) -> StudyRound:
    """The practice round: the condition's market against the design's practice agent."""
    design = participation.version.parsed
    condition = design.condition(participation.condition)
    role = Role(participation.role)
    market = market_of(condition)
    agents = agents_for(condition, market, host=role)
    agents |= {party: seating.agent_name(design.practice.agent) for party in agents if role_of(party) is not role}
    room = _open(participation, market, agents, seed=assignment.practice_seed(design), now=now)
    return _round(participation, 0, room, agents, draw=None, now=now)


def open_against_agent(participation: Participation, number: int, *, now: datetime) -> StudyRound:
    """Round `number` against the condition's agent."""
    design = participation.version.parsed
    condition = design.condition(participation.condition)
    market = market_of(condition)
    agents = agents_for(condition, market, host=Role(participation.role))
    draw = draw_of(participation, number)
    room = _open(participation, market, agents, seed=draw.seed, now=now)
    return _round(participation, number, room, agents, draw=draw, now=now)


def open_with_person(
    seller: Participation, buyer: Participation, *, numbers: tuple[int, int], now: datetime
) -> tuple[StudyRound, StudyRound]:
    """A room for two people, with the draw that the seller's place meets. `numbers` are their rounds."""
    design = seller.version.parsed
    condition = design.condition(seller.condition)
    market = market_of(condition)
    agents = agents_for(condition, market, host=Role.SELLER)
    draw = draw_of(seller, numbers[0])
    chair = party_of(Role.BUYER)
    room = _open(seller, market, agents, seed=draw.seed, now=now, for_people=frozenset({chair}))
    seat = Seat.objects.get(room=room, party=chair)
    joined = services.join_room(room=room, token=seat.join_token, participant=_person(buyer), now=now)
    _consent(buyer, joined, now)
    sold = _round(seller, numbers[0], room, agents, draw=draw, now=now, partner=buyer)
    opposite = agents_for(condition, market, host=Role.BUYER)
    bought = _round(buyer, numbers[1], room, opposite, draw=draw, now=now, partner=seller)
    return sold, bought


def draw_of(participation: Participation, number: int) -> assignment.Draw:
    """The draw that round `number` of a participation meets."""
    slot = participation.assigned_slot or 0
    return assignment.draw(participation.version.parsed, slot=slot, number=number, mode=participation.mode)


def terms(design: Design, condition: Condition) -> RoomTerms:
    """What a study lays down for its rooms."""
    return RoomTerms(keeper=KEEPER, move_deadline_s=design.clocks.move_s, reply_ms=condition.reply_ms)


def _open(
    participation: Participation,
    market: Market,
    agents: dict[Party, AgentName],
    *,
    seed: int,
    now: datetime,
    for_people: frozenset[Party] = frozenset(),
) -> Room:
    design = participation.version.parsed
    room = services.open_room(
        market=market,
        host=_person(participation),
        role=Role(participation.role),
        agents=agents,
        for_people=for_people,
        seed=seed,
        terms=terms(design, design.condition(participation.condition)),
        now=now,
    )
    _consent(participation, Seat.objects.select_related("room").get(room=room, participant=_person(participation)), now)
    return room


def _person(participation: Participation) -> Participant:
    if participation.participant is None:
        raise RoomError("erased", "This participant's data was erased.")
    return participation.participant


def _consent(participation: Participation, seat: Seat, now: datetime) -> None:
    """Mark the chair with what was agreed to; a pilot's and a preview's games are nobody's data.

    Open data opens when the study is closed: until then others meet the same draws, whose values it would tell.
    """
    scope = participation.consent_scope if participation.mode == Mode.LIVE else "private"
    if scope == "public" and participation.study.status != StudyStatus.CLOSED:
        scope = "research"
    services.choose_consent(seat=seat, scope=scope, version=participation.consent_version, now=now)


def open_data(study: Study, *, now: datetime) -> int:
    """Open the games of those who agreed to open data; how many chairs. For a study that has been closed.

    None while somebody is still inside: they meet the same draws.
    """
    live = Participation.objects.filter(study=study, mode=Mode.LIVE)
    if live.exclude(state__in=ENDED).exists():
        return 0
    agreed = Participation.objects.filter(study=study, mode=Mode.LIVE, consent_scope="public")
    seats = Seat.objects.filter(participant__participation__in=agreed).exclude(consent_scope="public")
    opened = 0
    for seat in seats.select_related("room").order_by("pk"):
        services.choose_consent(seat=seat, scope="public", version=seat.consent_version, now=now)
        opened += 1
    return opened


def has_open_games(study: Study) -> bool:
    """Whether anybody can read a game of a live participant, with both values."""
    return Seat.objects.filter(
        participant__participation__study=study, participant__participation__mode=Mode.LIVE, consent_scope="public"
    ).exists()


def _round(
    participation: Participation,
    number: int,
    room: Room,
    agents: dict[Party, AgentName],
    *,
    draw: assignment.Draw | None,
    now: datetime,
    partner: Participation | None = None,
) -> StudyRound:
    party = party_of(Role(participation.role))
    opposite = next(agent for chair, agent in agents.items() if role_of(chair) is not Role(participation.role))
    events.note(participation.study, "seated", participation=participation, detail=f"round {number}, {party}", now=now)
    return StudyRound.objects.create(
        participation=participation,
        number=number,
        room=room,
        party=party,
        scenario_set=None if draw is None else draw.scenario_set,
        scenario_number=None if draw is None else draw.scenario_number,
        partner=partner,
        agent_slug=opposite.slug,
        opened_at=now,
    )


# --- While it goes on ---------------------------------------------------------------------------------


def current(participation: Participation) -> StudyRound | None:
    """The round that is being played: its figures are not taken over yet."""
    return (
        participation.rounds.filter(ended_at=None).select_related("room__market", "partner").order_by("-number").first()
    )


def seat_of(played: StudyRound) -> Seat:
    """The chair of a round."""
    return Seat.objects.select_related("room__market", "participant").get(room=played.room_id, party=played.party)


def hand_over(played: StudyRound, *, now: datetime) -> bool:
    """Let the condition's agent play on for this participant. False where the chair is a person's no more."""
    seat = seat_of(played)
    participation = played.participation
    condition = participation.version.parsed.condition(participation.condition)
    slug = agent_slug(condition, market_of(condition), Role(participation.role))
    try:
        services.replace_by_agent(seat=seat, agent=seating.agent_name(slug), now=now)
    except RoomError:
        return False
    StudyRound.objects.filter(pk=played.pk).update(replaced_at=now)
    StudyRound.objects.filter(room=played.room_id).exclude(pk=played.pk).update(partner_replaced_at=now)
    events.note(participation.study, "replaced", participation=participation, detail=slug, now=now)
    played.replaced_at = now
    return True


def leave(played: StudyRound, *, now: datetime) -> None:
    """Walk away for this participant, where they still sit there."""
    seat = seat_of(played)
    if seat.kind != SeatKind.PERSON or seat.room.status != RoomStatus.LIVE:
        return
    try:
        services.submit_action(
            room=seat.room, seat=seat, action=Leave(), client_move_id=f"study-left-{played.pk}", now=now
        )
    except (RoomError, IllegalAction):
        # Late or already gone: then the deadline speaks for them.
        services.expire_seat(seat=seat, now=now)


# --- The end ------------------------------------------------------------------------------------------


def settle(played: StudyRound, *, now: datetime) -> bool:
    """Take over what the room's episode says. False while the room goes on; again changes nothing."""
    if played.ended_at is not None:
        return True
    episode = Episode.objects.filter(room=played.room_id).first()
    if episode is None:
        return False
    own = episode.seats.get(party=played.party)
    played.outcome = _outcome(played, episode)
    played.surplus_cents = 0 if played.replaced_at is not None else own.surplus_cents
    played.ended_at = episode.created_at
    played.save(update_fields=["outcome", "surplus_cents", "ended_at"])
    events.note(
        played.participation.study,
        "round_over",
        participation=played.participation,
        detail=f"round {played.number}, {played.outcome}",
        now=now,
    )
    return True


def _outcome(played: StudyRound, episode: Episode) -> RoundOutcome:
    if played.replaced_at is not None:
        return RoundOutcome.SILENT
    silent = _silent_people(played, episode)
    if played.party in silent:
        return RoundOutcome.SILENT
    if _has_deal(played.party, episode):
        return RoundOutcome.DEAL
    partner = played.partner
    if partner is not None and (silent or _gone(partner)):
        return RoundOutcome.PARTNER_LEFT
    return RoundOutcome.NO_DEAL


def _silent_people(played: StudyRound, episode: Episode) -> set[Party]:
    """Chairs whose person's time ran out; an agent's default act is logged in the same words."""
    people = set(Seat.objects.filter(room=played.room_id, kind=SeatKind.PERSON).values_list("party", flat=True))
    passed = [entry.event for entry in decode_log(episode.log) if isinstance(entry.event, DeadlinePassed)]
    return people & {SELLER if event.by is Role.SELLER else buyer_party(event.buyer) for event in passed}


def _has_deal(party: Party, episode: Episode) -> bool:
    result = metrics.outcome(decode_scenario(episode.scenario), decode_log(episode.log))
    return any(party in (SELLER, buyer_party(deal.buyer)) for deal in result.deals)


def _gone(partner: Participation) -> bool:
    return Participation.objects.filter(pk=partner.pk, state__in=RELEASED).exists()


def told(played: StudyRound) -> Told:
    """What this participant is told of the other side; practice is with a program, and says so."""
    if played.number == 0:
        return Told.AI
    participation = played.participation
    return participation.version.parsed.condition(participation.condition).told
