"""Writes to rooms: opening, joining, moving, expiring, and the record at the end.

Every change of a negotiation goes through `_change`: lock the room, fold its log, let the engine
decide, append, take care of what follows (agents' turns, deadlines, the episode), commit, and only
then publish the new version. Repeats are harmless: a person's move carries an identifier, an
agent's its position. Refusals raise `IllegalAction` or `RoomError` with a sentence for the sender
and change nothing.
"""

import logging
import random
import secrets
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import NamedTuple

from django.db import transaction
from django.utils import timezone
from django.utils.formats import date_format

from markets import episodes, event_log, publishing, room_clock, room_rows, statements
from markets.engine import rules, scenarios, splits
from markets.engine.protocol import (
    SELLER,
    Action,
    Event,
    IllegalAction,
    Leave,
    MakeOffer,
    OfferMade,
    Party,
    RefusalCode,
    Role,
    buyer_of,
    buyer_party,
    encode,
    role_of,
)
from markets.engine.scenarios import EventDriven, ProductFacts, Scenario
from markets.engine.seeds import derive_seed
from markets.engine.state import State, ThreadStatus, evolve
from markets.event_log import Fold
from markets.models import (
    AgentTurn,
    ConsentScope,
    Episode,
    EpisodeSeat,
    Market,
    Participant,
    Product,
    Room,
    RoomStatus,
    Seat,
    SeatKind,
    TurnState,
)
from markets.room_rows import Table
from markets.signals import turn_due
from markets.statements import Changing, Command, Slot

log = logging.getLogger(__name__)

AGENT_TURN_DEADLINE = timedelta(seconds=60)
"""An agent that has not moved by then has its default act played for it."""
SOLO_DEADLINE = timedelta(days=2)
"""A person who keeps nobody waiting may take this long over a move."""
ANNOUNCED_AHEAD = timedelta(seconds=10)
"""A turn that may start later than that is announced by the clock when its time has come."""
MAX_OPEN_ROOMS = 30
"""Rooms one person may have going at once."""


class RoomError(Exception):
    """Something that cannot be done with a room; the sentence is for the person who tried."""

    def __init__(self, code: str, sentence: str) -> None:
        super().__init__(sentence)
        self.code = code
        self.sentence = sentence


@dataclass(frozen=True)
class AgentName:
    """An agent as a room knows it: text alone, this package does not know agents."""

    slug: str
    version: str
    name: str


@dataclass(frozen=True, kw_only=True)
class RoomTerms:
    """What whoever opens a room may lay down beyond its market."""

    keeper: str = ""
    """Who answers people's silence instead of `sweep` (`Room.keeper`)."""
    move_deadline_s: int | None = None
    """Seconds a person may take over a move; None leaves it to the market."""
    reply_ms: tuple[int, int] | None = None
    """Bounds of the pause before an agent's move, where sides take turns."""


@dataclass(frozen=True)
class Accepted:
    """A move that is in the log."""

    version: int
    repeated: bool = False
    """True when this very move had been written before."""
    table: Table | None = field(default=None, compare=False, repr=False)
    """The room's rows as the move left them; None where it was written before."""


# --- Opening and joining ------------------------------------------------------------------------


def market_pool(market: Market) -> tuple[ProductFacts, ...]:
    """The products a market draws from, in a stable order."""
    if market.catalogue_id is None:
        return ()
    products = Product.objects.drawn(
        catalogue_id=market.catalogue_id,
        category=market.category,
        price_from_cents=market.price_from_cents,
        price_to_cents=market.price_to_cents,
    )
    return splits.select(facts_of(products), scenarios.decode_recipe(market.recipe).split)


def facts_of(products: Iterable[Product]) -> tuple[ProductFacts, ...]:
    """Products as the engine knows them."""
    return tuple(
        ProductFacts(
            sku=product.sku,
            title=product.title,
            category=product.category,
            text=product.text,
            list_price_cents=product.list_price_cents,
            lowest_price_cents=product.lowest_price_cents,
            highest_price_cents=product.highest_price_cents,
        )
        for product in products
    )


def draw_scenario(market: Market, seed: int) -> Scenario:
    """The scenario of `market` for `seed`; the same for ever."""
    return scenarios.sample(scenarios.decode_recipe(market.recipe), market_pool(market), seed)


def open_room(
    *,
    market: Market,
    host: Participant,
    role: Role,
    agents: Mapping[Party, AgentName],
    for_people: frozenset[Party] = frozenset(),
    seed: int | None = None,
    rematch_of: Room | None = None,
    terms: RoomTerms | None = None,
    now: datetime | None = None,
) -> Room:
    """Open a room with `host` on a chair of `role`.

    `agents` names one for every other chair. Chairs in `for_people` stay open for a
    person until the market's wait is over; then their agent takes them.
    """
    now = now or timezone.now()
    terms = terms or RoomTerms()
    if market.retired_at is not None and not terms.keeper:  # A keeper has named its version and goes on in it.
        raise RoomError("market_retired", "This market is retired: games in it go on, new ones do not begin.")
    scenario = draw_scenario(market, secrets.randbits(63) if seed is None else seed)
    own = SELLER if role is Role.SELLER else buyer_party(1)
    parties = [SELLER, *(buyer_party(buyer) for buyer in range(1, scenario.buyers + 1))]
    with transaction.atomic():
        if for_people:
            _check_welcome(host, now)
        _check_going(host)
        room = Room.objects.create(
            market=market,
            scenario=encode(scenario).decode(),
            status=RoomStatus.WAITING,
            rematch_of=rematch_of,
            fills_at=now + timedelta(seconds=market.fill_wait_s) if for_people else None,
            keeper=terms.keeper,
            move_deadline_s=terms.move_deadline_s,
            reply_low_ms=None if terms.reply_ms is None else terms.reply_ms[0],
            reply_high_ms=None if terms.reply_ms is None else terms.reply_ms[1],
        )
        Seat.objects.bulk_create(_new_seat(room, party, own, host, agents, for_people, now) for party in parties)
        if not for_people:
            _start(room, now)
    return room


def _check_welcome(participant: Participant, now: datetime) -> None:
    """Raise `RoomError` where the staff keep somebody from meeting people for now."""
    until = Participant.objects.filter(pk=participant.pk).values_list("barred_until", flat=True).first()
    if until is not None and until > now:
        raise RoomError(
            "barred",
            f"After what was reported you may not meet people here until {date_format(until)}. Agents are open to you.",
        )


def _check_going(participant: Participant) -> None:
    """Raise `RoomError` where somebody has enough rooms going. Locks the person, so that requests sent together count."""
    Participant.objects.select_for_update().filter(pk=participant.pk).first()
    going = Seat.objects.filter(participant=participant).exclude(room__status=RoomStatus.ENDED).count()
    if going >= MAX_OPEN_ROOMS:
        raise RoomError(
            "too_many_rooms",
            f"You have {going} negotiations going. Finish or leave one before you begin another.",
        )


def _new_seat(
    room: Room,
    party: Party,
    own: Party,
    host: Participant,
    agents: Mapping[Party, AgentName],
    for_people: frozenset[Party],
    now: datetime,
) -> Seat:
    seat = Seat(room=room, party=party, role=role_of(party).value)
    if party == own:
        seat.kind = SeatKind.PERSON
        seat.participant = host
        seat.last_seen_at = now
        return seat
    seat.kind = SeatKind.OPEN if party in for_people else SeatKind.AGENT
    agent = agents[party]
    seat.agent_slug, seat.agent_version, seat.agent_name = agent.slug, agent.version, agent.name
    return seat


def join_room(*, room: Room, token: str, participant: Participant, now: datetime | None = None) -> Seat:
    """Take the open chair that `token` names. The last one to come starts the negotiation."""
    now = now or timezone.now()
    with transaction.atomic():
        room = locked(room)
        seat = Seat.objects.filter(room=room, join_token=token).first()
        if seat is None:
            raise RoomError("unknown_link", "This link does not lead to a seat in this room.")
        own = Seat.objects.filter(room=room, participant=participant).first()
        if own is not None:
            if own.pk == seat.pk:
                return own
            raise RoomError("already_seated", "You already sit in this room; send the link to somebody else.")
        _check_welcome(participant, now)
        if room.status == RoomStatus.ENDED:
            raise RoomError("room_ended", "This negotiation is over.")
        if seat.kind != SeatKind.OPEN:
            raise RoomError("seat_taken", "Somebody else has taken this seat.")
        _check_going(participant)
        seat.kind = SeatKind.PERSON
        seat.participant = participant
        seat.agent_slug = seat.agent_version = seat.agent_name = ""
        seat.last_seen_at = now
        seat.save()
        if not room.seats.filter(kind=SeatKind.OPEN).exists():
            _start(room, now)
    _publish_after_commit(room)
    return seat


def fill_open_seats(room: Room, *, now: datetime | None = None) -> bool:
    """Let the agents take the chairs that nobody came for. False when there is nothing to fill."""
    now = now or timezone.now()
    with transaction.atomic():
        try:
            room = locked(room)
        except RoomError:
            return False
        if room.status != RoomStatus.WAITING:
            return False
        Seat.objects.filter(room=room, kind=SeatKind.OPEN).update(kind=SeatKind.AGENT)
        _start(room, now)
    _publish_after_commit(room)
    return True


def cancel_room(*, seat: Seat) -> None:
    """Give up a room that waits, while nobody but the person on `seat` has sat down. Nothing was played, so nothing
    stays of it. Raises `RoomError`.

    Nobody is nudged: the page that asked is on its way elsewhere and must not be called back."""
    with transaction.atomic():
        room = locked(seat.room)
        if room.status != RoomStatus.WAITING:
            raise RoomError("room_started", "The negotiation has begun; leave it instead.")
        people = Seat.objects.filter(room=room, kind=SeatKind.PERSON)
        if not people.filter(pk=seat.pk, participant=seat.participant_id).exists():
            raise RoomError("not_seated", "You do not sit in this room any more.")
        if people.exclude(pk=seat.pk).exists():
            raise RoomError("room_shared", "Somebody else has sat down already; the room is theirs too.")
        room.delete()


def _start(room: Room, now: datetime) -> None:
    """Everybody is here: put the openings on the table and ask whoever moves first."""
    room.status = RoomStatus.LIVE
    room.opened_at = now
    room.fills_at = None
    fold = event_log.load(room)
    opening = rules.opening_events(fold.state)
    if opening:
        fold = event_log.append(room, fold, opening, party="", at_ms=0)
    statements.run(*_follow_up(room, fold, {seat.party: seat for seat in room.seats.all()}, now))
    room.save()


# --- Moving -------------------------------------------------------------------------------------


def submit_action(
    *,
    room: Room,
    seat: Seat,
    action: Action,
    client_move_id: str,
    seen_seq: int | None = None,
    now: datetime | None = None,
) -> Accepted:
    """A person's move. Raises `IllegalAction` or `RoomError`; a refused move leaves no trace.

    `seen_seq` is the last of the seat's own events that the person had seen: a move sent from an
    older view of its thread (a second tab) is refused instead of surprising its sender.
    """
    now = now or timezone.now()

    def decide(table: Table, fold: Fold) -> Sequence[_Move]:
        # Under the lock of the room: the same move may have come in by another process just now.
        if table.repeated is not None:
            raise _Repeated(Accepted(version=table.repeated, repeated=True))
        _check_person(table.seats.get(seat.party), seat, action, now)
        events, _ = rules.step(fold.state, seat.party, action, room_ms(table.room, fold, now))
        if seen_seq is not None:  # After the rules, whose refusal tells more than that something happened.
            _check_fresh(fold, seat.party, action, max(0, seen_seq))
        return [_Move(events, action.talk)]

    try:
        table = _change(room, decide, party=seat.party, now=now, client_move_id=client_move_id)
    except _Repeated as repeated:
        return repeated.earlier
    return Accepted(version=table.room.version, table=table)


def submit_agent_action(
    *, turn: AgentTurn, owner: str, action: Action, then: Sequence[Action] = (), now: datetime | None = None
) -> TurnState:
    """An agent's move, thought out at `turn.position`; where nobody takes turns, more of them in `then`.

    Written only while `owner` holds the turn and nothing has happened at the seat since;
    otherwise the turn is superseded. A move that breaks a rule is logged as refused.
    """
    now = now or timezone.now()

    def moves(table: Table, fold: Fold) -> Sequence[_Move]:
        moves, state = [], fold.state
        for each in (action, *then):
            try:
                events, state = rules.step(state, turn.party, each, room_ms(table.room, fold, now))
                moves.append(_Move(events, each.talk, each.thought))
            except IllegalAction as refused:
                events, state = rules.refuse(state, turn.party, refused.code, buyer=each.buyer)
                moves.append(_Move(events, "", each.thought))
            if state.ended:
                break
        return moves

    return _hand_in(turn, owner, moves, now)


def submit_agent_refusal(
    *,
    turn: AgentTurn,
    owner: str,
    code: RefusalCode,
    buyer: int = 0,
    thought: str = "",
    now: datetime | None = None,
) -> TurnState:
    """An agent's answer that was no move: logged as refused, under the conditions of `submit_agent_action`."""

    def moves(table: Table, fold: Fold) -> Sequence[_Move]:
        events, _ = rules.refuse(fold.state, turn.party, code, buyer=buyer)
        return [_Move(events, "", thought)]

    return _hand_in(turn, owner, moves, now or timezone.now())


def _hand_in(
    turn: AgentTurn, owner: str, moves: Callable[[Table, Fold], Sequence["_Move"]], now: datetime
) -> TurnState:
    """Write what `owner` has for its turn, unless somebody else holds it or its moment has gone."""

    def decide(table: Table, fold: Fold) -> Sequence[_Move]:
        _finish_turn(turn, owner, TurnState.DONE)
        if not _still_due(fold.state, turn):
            raise _Superseded
        return moves(table, fold)

    try:
        _change(turn.room, decide, party=turn.party, now=now)
    except _Superseded:
        AgentTurn.objects.filter(pk=turn.pk).update(state=TurnState.SUPERSEDED)
        return TurnState.SUPERSEDED
    except _NotOwner:
        return TurnState.SUPERSEDED
    return TurnState.DONE


def supersede_turn(*, turn: AgentTurn, owner: str) -> TurnState:
    """Give a turn back whose moment has gone."""
    AgentTurn.objects.filter(pk=turn.pk, owner=owner, state=TurnState.RUNNING).update(state=TurnState.SUPERSEDED)
    return TurnState.SUPERSEDED


def play_default_act(
    *,
    turn: AgentTurn,
    choose: Callable[[State], Action],
    reason: str,
    now: datetime | None = None,
) -> TurnState:
    """Play the agent's stated default act because its move did not come. The log says so."""
    now = now or timezone.now()

    def decide(table: Table, fold: Fold) -> Sequence[_Move]:
        changed = AgentTurn.objects.filter(pk=turn.pk, state__in=(TurnState.QUEUED, TurnState.RUNNING)).update(
            state=TurnState.DEFAULTED, error=reason
        )
        if not changed:
            raise _NotOwner
        if not _still_due(fold.state, turn):
            raise _Superseded
        passed = rules.deadline_passed(turn.party)
        state = evolve(fold.state, passed)
        action = choose(state)
        events, _ = rules.step(state, turn.party, action, room_ms(table.room, fold, now))
        return [_Move((passed, *events), action.talk)]

    try:
        _change(turn.room, decide, party=turn.party, now=now)
    except _Superseded:
        AgentTurn.objects.filter(pk=turn.pk).update(state=TurnState.SUPERSEDED)
        return TurnState.SUPERSEDED
    except _NotOwner:
        return TurnState.SUPERSEDED
    return TurnState.DEFAULTED


def expire_seat(*, seat: Seat, now: datetime | None = None) -> bool:
    """A person let the time run out: the seat is taken to have left. False when it moved after all."""
    now = now or timezone.now()

    def decide(table: Table, fold: Fold) -> Sequence[_Move]:
        current = table.seats[seat.party]
        if current.deadline_at is None or current.deadline_at > now:
            raise _Superseded
        events, _ = rules.expire(fold.state, seat.party)
        return [_Move(events)]

    try:
        _change(seat.room, decide, party=seat.party, now=now)
    except (_Superseded, IllegalAction):
        return False
    return True


def replace_by_agent(*, seat: Seat, agent: AgentName, now: datetime | None = None) -> None:
    """Let an agent play on for the person on `seat`. Raises `RoomError` where nobody plays there any more.

    The chair keeps who sat there and what they consented to, so that their words stay theirs to have erased and
    go no further than they agreed to.
    """
    now = now or timezone.now()
    with transaction.atomic():
        table = _locked_table(seat.room)
        room, current = table.room, table.seats[seat.party]
        if room.status != RoomStatus.LIVE:
            raise RoomError("room_not_live", "This negotiation is not going on.")
        if current.kind != SeatKind.PERSON:
            raise RoomError("not_a_person", "No person sits on this chair.")
        current.kind = SeatKind.AGENT
        current.agent_slug, current.agent_version, current.agent_name = agent.slug, agent.version, agent.name
        current.due_position = current.deadline_at = None
        current.save()
        fold = event_log.load(room)
        statements.run(*_follow_up(room, fold, table.seats, now), statements.update(room, *_CHANGED))
    _publish_after_commit(room)


class _Move(NamedTuple):
    """The events of one move, and the words and thoughts that hang on the first of them."""

    events: tuple[Event, ...]
    talk: str = ""
    thought: str = ""


class _Repeated(Exception):
    """This very move is in the log already."""

    def __init__(self, earlier: Accepted) -> None:
        super().__init__(earlier.version)
        self.earlier = earlier


class _Superseded(Exception):
    """The moment this was meant for has gone."""


class _NotOwner(Exception):
    """Somebody else has taken this turn."""


def locked(room: Room) -> Room:
    """The row of `room`, locked until the transaction ends. Raises `RoomError` once its host has given it up."""
    return _locked_table(room).room


def _locked_table(room: Room, *, party: Party = "", move: str = "") -> Table:
    table = room_rows.locked_table(room.pk, party=party, move=move)
    if table is None:
        raise RoomError("room_gone", "This room is not there any more: its host has given it up.")
    return table


_CHANGED = ("version", "status", "ended_at")
"""Columns of a room that a move may change."""


def _change(
    room: Room,
    decide: Callable[[Table, Fold], Sequence[_Move]],
    *,
    party: Party,
    now: datetime,
    client_move_id: str = "",
) -> Table:
    """One transaction: lock, fold, decide, append, follow up. Publishes after the commit."""
    with transaction.atomic():
        table = _locked_table(room, party=party, move=client_move_id)
        room = table.room
        if room.status == RoomStatus.WAITING:
            raise RoomError("not_started", "The negotiation has not begun: a seat is still open.")
        fold = event_log.load(room)
        at_ms = room_ms(room, fold, now)
        for move in decide(table, fold):
            fold = event_log.append(
                room,
                fold,
                move.events,
                party=party,
                at_ms=at_ms,
                client_move_id=client_move_id,
                talk=move.talk,
                thought=move.thought,
            )
        statements.run(*_follow_up(room, fold, table.seats, now), statements.update(room, *_CHANGED))
    event_log.keep(room, fold)
    _publish_after_commit(room, moved=True)
    return table


def _follow_up(room: Room, fold: Fold, seats: Mapping[Party, Seat], now: datetime) -> Iterator[Command]:
    """After a change: write the record at the end, else put the next turns into the outbox.

    What is left to write of the seats comes back, to be written with the room."""
    state = fold.state
    if state.ended:
        room.status = RoomStatus.ENDED
        room.ended_at = now
        for seat in seats.values():
            yield from _set_due(seat, None, None)
        episodes.record_room(room, fold, seats=seats, now=now)
        return
    mechanism = state.scenario.mechanism
    if isinstance(mechanism, EventDriven):
        yield from _follow_clock(room, fold, mechanism, seats, now)
        return
    due = rules.parties_due(state)
    people = sum(seat.kind == SeatKind.PERSON and _still_plays(state, party) for party, seat in seats.items())
    patience = _patience(room, people)
    for party, seat in seats.items():
        if party not in due:
            yield from _set_due(seat, None, None)
        elif seat.kind == SeatKind.AGENT:
            position = rules.position(state, party)
            starts_at = _reply_at(room, state, party, position, now)
            due_at = None if starts_at is None else starts_at + AGENT_TURN_DEADLINE
            _queue_turn(room, seat, position, now, starts_at=starts_at, due_at=due_at)
        elif seat.due_position != rules.position(state, party):
            yield from _set_due(seat, rules.position(state, party), now + patience)


def _reply_at(room: Room, state: State, party: Party, position: int, now: datetime) -> datetime | None:
    """When an agent may move in a room that lays down a pause; the same whichever process asks."""
    if room.reply_low_ms is None or room.reply_high_ms is None:
        return None
    chance = random.Random(derive_seed("reply", state.scenario.seed, party, position))
    return now + timedelta(milliseconds=chance.randint(room.reply_low_ms, room.reply_high_ms))


def _patience(room: Room, people: int) -> timedelta:
    """How long a person may take, by how many people play."""
    if room.move_deadline_s is not None:
        return timedelta(seconds=room.move_deadline_s)
    return timedelta(seconds=room.market.move_deadline_s) if people > 1 else SOLO_DEADLINE


def _follow_clock(
    room: Room, fold: Fold, mechanism: EventDriven, seats: Mapping[Party, Seat], now: datetime
) -> Iterator[Command]:
    """As `_follow_up` where nobody takes turns: agents are asked in their time, people's deadlines run."""
    agents = [party for party, seat in seats.items() if seat.kind == SeatKind.AGENT]
    opened_at = room.opened_at or now
    now_ms = room_ms(room, fold, now)
    ahead_ms = now_ms - clock_ms(room, now)  # The wall's clock may have been set back since the last event.
    plan = room_clock.plan(fold, mechanism, agents=agents, now_ms=now_ms)
    for wake in plan.wakes:
        starts_at = opened_at + timedelta(milliseconds=wake.at_ms - ahead_ms)
        due_at = now if wake.gives_up else starts_at + AGENT_TURN_DEADLINE
        _queue_turn(
            room, seats[wake.party], rules.position(fold.state, wake.party), now, starts_at=starts_at, due_at=due_at
        )
    patience = _patience(room, len(seats) - len(agents))
    for party, seat in seats.items():
        position = rules.position(fold.state, party)
        if party not in plan.people:
            yield from _set_due(seat, None, None)
        elif seat.due_position != position:
            yield from _set_due(seat, position, now + patience)


def _still_plays(state: State, party: Party) -> bool:
    """Whether somebody else's silence keeps this party waiting: not a buyer who has bought or left."""
    return party == SELLER or state.thread(buyer_of(party)).status is ThreadStatus.OPEN


def _set_due(seat: Seat, position: int | None, deadline_at: datetime | None) -> Iterator[Command]:
    if (seat.due_position, seat.deadline_at) != (position, deadline_at):
        seat.due_position, seat.deadline_at = position, deadline_at
        yield statements.update(seat, "due_position", "deadline_at")


_TURN = (
    "room_id", "party", "position", "state", "owner", "starts_at", "due_at", "attempts", "error", "created_at",
)  # fmt: skip


def _queue_turn(
    room: Room,
    seat: Seat,
    position: int,
    now: datetime,
    *,
    starts_at: datetime | None = None,
    due_at: datetime | None = None,
) -> None:
    due_at = due_at or now + AGENT_TURN_DEADLINE
    row = (room.pk, seat.party, position, TurnState.QUEUED, "", starts_at, due_at, 0, "", timezone.now())
    turn_id = statements.insert_once(AgentTurn, _TURN, row)
    delay = timedelta() if starts_at is None else max(timedelta(), starts_at - now)
    if turn_id is not None and delay <= ANNOUNCED_AHEAD:
        transaction.on_commit(lambda: _announce(turn_id, delay.total_seconds()))


def _announce(turn_id: int, delay_s: float) -> None:
    turn_due.send(sender=AgentTurn, turn_id=turn_id, delay_s=delay_s)


def _check_person(current: Seat | None, seat: Seat, action: Action, now: datetime) -> None:
    """Raise unless the person of `seat` still sits there, in time, and has said who may use the game.

    Nobody is held who wants to go. A move after the deadline is late even if no clock has looked yet.
    """
    if current is None or current.kind != SeatKind.PERSON or current.participant_id != seat.participant_id:
        raise RoomError("not_seated", "You do not sit in this room any more.")
    if not current.consent_scope and not isinstance(action, Leave):
        raise RoomError("no_consent", "Choose first who may use this game.")
    if current.deadline_at is not None and now > current.deadline_at:
        raise IllegalAction(RefusalCode.DEADLINE_PASSED)


def _check_fresh(fold: Fold, party: Party, action: Action, seen_seq: int) -> None:
    """Raise unless the sender had seen everything that happened in the thread it writes in."""
    thread = rules.thread_of(fold.state, party, action) if party == SELLER else 0
    seen = fold.seen(party)
    if isinstance(fold.state.scenario.mechanism, EventDriven):
        # Nobody waits for a turn to speak; but who names a price has seen the other side's last one.
        missed = [event.event for event in seen[seen_seq:]]
        theirs = any(isinstance(event, OfferMade) and event.by is not role_of(party) for event in missed)
        if not isinstance(action, MakeOffer) or not theirs:
            return
    if not isinstance(action, Leave) and any(event.thread == thread for event in seen[seen_seq:]):
        raise RoomError("stale_view", "Something happened while you were writing. Look at it, then send again.")


def _still_due(state: State, turn: AgentTurn) -> bool:
    """Whether nothing has happened at the seat since the turn was put into the outbox."""
    if state.ended or rules.position(state, turn.party) != turn.position:
        return False
    return isinstance(state.scenario.mechanism, EventDriven) or turn.party in rules.parties_due(state)


def _finish_turn(turn: AgentTurn, owner: str, outcome: TurnState) -> None:
    if not _finish.run(turn=turn.pk, owner=owner, state=outcome):
        raise _NotOwner


_finish = Changing(
    lambda: AgentTurn.objects.filter(
        pk=Slot("turn", AgentTurn._meta.pk),
        owner=Slot("owner", AgentTurn._meta.get_field("owner")),
        state=TurnState.RUNNING,
    ),
    state=Slot("state", AgentTurn._meta.get_field("state")),
)


def room_ms(room: Room, fold: Fold, now: datetime) -> int:
    """The room's clock, which never runs back: two processes may not quite agree on the time."""
    last_ms = fold.log[-1].at_ms if fold.log else 0
    return max(last_ms, clock_ms(room, now))


def clock_ms(room: Room, now: datetime) -> int:
    """Milliseconds since the room opened, by the wall's clock."""
    opened_at = room.opened_at or now
    return max(0, round((now - opened_at).total_seconds() * 1000))


# --- Consent and presence -------------------------------------------------------------------------


def choose_consent(*, seat: Seat, scope: str, version: str, now: datetime | None = None) -> None:
    """Say who may use this game: before the first move, and again at any time later."""
    if scope not in ConsentScope.values:
        raise RoomError("unknown_scope", "Choose open data, research here, or nobody.")
    now = now or timezone.now()
    with transaction.atomic():
        locked(seat.room)  # The record may be being written in this moment.
        Seat.objects.filter(pk=seat.pk).update(consent_scope=scope, consent_version=version, consent_at=now)
        if seat.participant_id is not None:
            Participant.objects.filter(pk=seat.participant_id).update(default_consent=scope)
        episode = Episode.objects.select_for_update().filter(room=seat.room_id).first()
        if episode is not None:
            EpisodeSeat.objects.filter(episode=episode, party=seat.party).update(
                consent_scope=scope, consent_version=version
            )
            episode.consent_scope = episodes.narrowest_scope(episode.seats.all())
            episode.save(update_fields=["consent_scope"])
            episodes.note_change([episode.pk])
    seat.consent_scope, seat.consent_version, seat.consent_at = scope, version, now


def touch_seat(*, seat: Seat, now: datetime | None = None) -> None:
    """The person on this chair was heard of just now."""
    Seat.objects.filter(pk=seat.pk).update(last_seen_at=now or timezone.now())


# --- Clock ----------------------------------------------------------------------------------------


def sweep(now: datetime) -> int:
    """Fill seats whose wait is over and expire seats whose deadline has passed, but in rooms that have a keeper.

    Idempotent."""
    changed = 0
    waiting = Room.objects.filter(status=RoomStatus.WAITING, fills_at__lte=now).order_by("fills_at")
    for room in waiting[:200]:
        with damage_noted(room):
            changed += fill_open_seats(room, now=now)
    overdue = (
        Seat.objects.filter(deadline_at__lte=now, kind=SeatKind.PERSON, room__status=RoomStatus.LIVE, room__keeper="")
        .select_related("room__market")
        .order_by("deadline_at")
    )
    for seat in overdue[:200]:
        with damage_noted(seat.room):
            changed += expire_seat(seat=seat, now=now)
    return changed


@contextmanager
def damage_noted(room: Room) -> Iterator[None]:
    """Log that a room's events are damaged instead of stopping the clock of every other room."""
    try:
        yield
    except event_log.LogGap:
        log.exception("Room %s is damaged and was passed over", room.public_id)


# --- Publishing -----------------------------------------------------------------------------------


def nudge(room: Room) -> None:
    """Let every open page of the room look at once; nothing is written."""
    _publish_after_commit(room)


def _publish_after_commit(room: Room, *, moved: bool = False) -> None:
    """Nudge every socket of the room once the change is stored. A lost nudge is healed by clients.

    `moved` says that everything that changed is in this version: a page that was drawn from it need not look again."""
    message = {"type": "room.nudge", "version": room.version, "moved": moved}
    transaction.on_commit(lambda: _send(publishing.group_of(room.public_id), message))


def _send(group: str, message: dict[str, object]) -> None:
    publishing.send(group, message)


def show_writing(*, room: Room, party: Party) -> None:
    """Show that an agent is writing, to those who may know whom it writes to; kept nowhere."""
    if (thread := _shown_in(room, party)) is not None:
        _send(
            publishing.group_of(room.public_id), {"type": "room.typing", "role": role_of(party).value, "buyer": thread}
        )


def show_waiting(*, room: Room, party: Party, plays_on: bool = False) -> None:
    """Say that an agent's language model cannot be asked just now, to the same; kept nowhere. An agent that
    `plays_on` lacks only the model's words."""
    if (thread := _shown_in(room, party)) is not None:
        sign: dict[str, object] = {
            "type": "room.waiting",
            "role": role_of(party).value,
            "buyer": thread,
            "plays_on": plays_on,
            "several": party != SELLER and _buyers_of(room) > 1,
        }
        _send(publishing.group_of(room.public_id), sign)


def _shown_in(room: Room, party: Party) -> int | None:
    """The thread in which a sign of `party` is shown; None for a seller with several buyers, whose pace is its own."""
    if party != SELLER:
        return buyer_of(party)
    return 1 if _buyers_of(room) == 1 else None


def _buyers_of(room: Room) -> int:
    return Seat.objects.filter(room=room, role=Role.BUYER.value).count()


REFUSED = (IllegalAction, RoomError)
"""What a move can be refused with."""
