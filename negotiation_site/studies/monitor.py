"""A study as it goes: who is where, who is silent, tables in play, balance, money, and what the staff did.

Here: one reading of the record at a moment. Not here: pages (`monitor_pages`), acts (`conduct`, `authoring`). Nothing
is written. No private value, no offer and no word of a table is read: whoever watches a study does not watch the play.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.db.models import Count, Q

from markets.models import RoomStatus, Seat, SeatKind
from negotiation_site.studies import assignment, conduct, pay
from negotiation_site.studies.models import (
    Mode,
    Participation,
    Payment,
    State,
    Study,
    StudyEvent,
    StudyRound,
)

SILENT_AFTER = timedelta(seconds=60)
"""Pages are heard of every fifteen seconds; one that missed four beats is silent."""
STAFF_KINDS = ("message", "extend", "end", "replace", "settle", "status", "version", "register", "link")
SHOWN_ACTS = 20


@dataclass(frozen=True)
class Table:
    """A room that is being played."""

    room: str
    condition: str
    number: int
    """Of the round; 0 is practice."""
    people: tuple[str, ...]
    """Public addresses of those who sit there."""
    agent: str
    """Who sits opposite where no person does."""
    turn_of: str
    """The participation that owes a move; empty where an agent does or nobody."""
    deadline_at: datetime | None
    events: int
    opened_at: datetime


@dataclass(frozen=True)
class Somebody:
    """A participant as the monitor shows them."""

    public_id: str
    person: str
    condition: str
    role: str
    state: str
    outcome: str
    round: int
    since: datetime
    last_seen_at: datetime
    extended_until: datetime | None
    silent: bool
    at_table: bool
    owes_move: bool
    deadline_at: datetime | None
    pastes: int
    looked_away: int
    over: bool


@dataclass(frozen=True)
class Cell:
    """How far a condition with a side is."""

    condition: str
    role: str
    weight: float
    inside: int
    seated: int
    finished: int


@dataclass(frozen=True)
class Money:
    """What the study costs so far, in one currency."""

    currency: str
    paid_cents: int
    owed_cents: int
    """Known and not marked as paid."""
    fees_inside_cents: int
    """Show-up fees of those who are still inside: what finishing costs at least."""
    unknown: int
    """People whose amount is not known: those inside, and those whose rounds are not over."""


@dataclass(frozen=True)
class Act:
    """Something the staff did."""

    at: datetime
    kind: str
    detail: str
    actor: str
    public_id: str


@dataclass(frozen=True)
class Snapshot:
    """A study at a moment."""

    states: dict[str, int]
    """How many are in each state, in the order of the way."""
    people: tuple[Somebody, ...]
    """Silent ones first, then who is inside, then who is through."""
    tables: tuple[Table, ...]
    cells: tuple[Cell, ...]
    money: tuple[Money, ...]
    acts: tuple[Act, ...]
    silent: int
    inside: int


def snapshot(study: Study, *, mode: Mode | str, now: datetime) -> Snapshot:
    """Everything that the monitor shows."""
    rows = list(
        Participation.objects.filter(study=study, mode=mode)
        .select_related("version")
        .annotate(
            pastes=Count("events", filter=Q(events__kind="paste")),
            blurs=Count("events", filter=Q(events__kind="blur")),
        )
        .order_by("pk")
    )
    tables, seats = _tables(study, mode)
    people = tuple(sorted((_somebody(row, seats.get(row.pk), now) for row in rows), key=_order))
    counted = Counter(row.state for row in rows)
    return Snapshot(
        states={state: counted[state] for state in State.values if counted[state]},
        people=people,
        tables=tables,
        cells=_cells(study, rows),
        money=_money(rows),
        acts=acts(study),
        silent=sum(one.silent for one in people),
        inside=sum(not one.over for one in people),
    )


def _order(one: Somebody) -> tuple[bool, bool, float]:
    return (one.over, not one.silent, -one.since.timestamp() if one.over else one.since.timestamp())


def _somebody(row: Participation, seat: Seat | None, now: datetime) -> Somebody:
    return Somebody(
        public_id=row.public_id,
        person=row.platform_person,
        condition=row.condition,
        role=row.role,
        state=row.state,
        outcome=row.outcome,
        round=row.round,
        since=row.state_at,
        last_seen_at=row.last_seen_at,
        extended_until=row.extended_until if row.extended_until and row.extended_until > now else None,
        silent=not row.ended and now - row.last_seen_at > SILENT_AFTER,
        at_table=seat is not None,
        owes_move=seat is not None and seat.deadline_at is not None,
        deadline_at=None if seat is None else seat.deadline_at,
        pastes=getattr(row, "pastes", 0),
        looked_away=getattr(row, "blurs", 0),
        over=row.ended,
    )


def _tables(study: Study, mode: Mode | str) -> tuple[tuple[Table, ...], dict[int, Seat]]:
    """The rooms in play, and the chair of everybody who sits at one, by participation."""
    rounds = list(
        StudyRound.objects.filter(
            participation__study=study, participation__mode=mode, ended_at=None, room__status=RoomStatus.LIVE
        )
        .select_related("participation", "room")
        .order_by("opened_at", "pk")
    )
    chairs = {
        (seat.room_id, seat.party): seat
        for seat in Seat.objects.filter(room__in=[played.room_id for played in rounds], kind=SeatKind.PERSON)
    }
    seats: dict[int, Seat] = {}
    by_room: dict[int, list[StudyRound]] = {}
    for played in rounds:
        by_room.setdefault(played.room_id, []).append(played)
        seat = chairs.get((played.room_id, played.party))
        if seat is not None:
            seats[played.participation_id] = seat
    return tuple(_table(played, seats) for played in by_room.values()), seats


def _table(rounds: list[StudyRound], seats: dict[int, Seat]) -> Table:
    first = rounds[0]
    sitting = [played for played in rounds if played.participation_id in seats]
    due = next((played for played in sitting if seats[played.participation_id].deadline_at is not None), None)
    return Table(
        room=first.room.public_id,
        condition=first.participation.condition,
        number=first.number,
        people=tuple(played.participation.public_id for played in sitting),
        agent=first.agent_slug if len(sitting) < 2 else "",
        turn_of="" if due is None else due.participation.public_id,
        deadline_at=None if due is None else seats[due.participation_id].deadline_at,
        events=first.room.version,
        opened_at=first.opened_at,
    )


def _cells(study: Study, rows: Iterable[Participation]) -> tuple[Cell, ...]:
    """Balance over all versions: the cells of the newest design, and those of earlier ones that people are in."""
    inside: Counter[tuple[str, str]] = Counter()
    seated: Counter[tuple[str, str]] = Counter()
    finished: Counter[tuple[str, str]] = Counter()
    for row in rows:
        key = (row.condition, row.role)
        if row.condition:
            inside[key] += row.slot is not None
            seated[key] += row.seated_at is not None
            finished[key] += row.state == State.FINISHED
    wanted = {
        (cell.condition, cell.role.value): float(cell.weight)
        for cell in assignment.cells(conduct.newest_version(study).parsed)
    }
    return tuple(
        Cell(key[0], key[1], wanted.get(key, 0.0), inside[key], seated[key], finished[key])
        for key in dict.fromkeys([*wanted, *inside])
    )


def _money(rows: Sequence[Participation]) -> tuple[Money, ...]:
    payments = {payment.participation_id: payment for payment in Payment.objects.filter(participation__in=rows)}
    found: dict[str, list[int]] = {}
    for row in rows:
        currency = row.version.parsed.pay.currency
        payment = payments.get(row.pk)
        total = None if payment is None or payment.bonus_cents is None else payment.fee_cents + payment.bonus_cents
        sums = found.setdefault(currency, [0, 0, 0, 0])
        if payment is not None and payment.settled_at is not None:
            sums[0] += total or 0
        elif row.state == State.WITHDREW or (row.ended and row.outcome not in pay.PAID_OUTCOMES):
            continue
        elif row.ended and total is not None:
            sums[1] += total
        else:
            sums[2] += 0 if row.ended else row.version.parsed.pay.show_up_cents
            sums[3] += 1
    return tuple(Money(currency, *sums) for currency, sums in found.items())


def acts(study: Study) -> tuple[Act, ...]:
    """The newest acts of the staff."""
    found = (
        StudyEvent.objects.filter(study=study, kind__in=STAFF_KINDS)
        .select_related("actor", "participation")
        .order_by("-pk")[:SHOWN_ACTS]
    )
    return tuple(_act(event) for event in found)


def _act(event: StudyEvent) -> Act:
    return Act(
        at=event.at,
        kind=event.kind,
        detail=event.detail,
        actor=event.actor.get_username() if event.actor else "",
        public_id=event.participation.public_id if event.participation else "",
    )


def timeline(participation: Participation) -> tuple[Act, ...]:
    """What happened to one participant, oldest first."""
    return tuple(_act(event) for event in participation.events.select_related("actor", "participation").order_by("pk"))
