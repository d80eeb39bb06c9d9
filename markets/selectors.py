"""Reads of rooms, markets and episodes.

`seat_view` is what pages and sockets of one seat are built from: the engine's observation and seen
events of that seat, the words that go with them, and who sits opposite as far as people are told.
It carries no scenario and no log, so nothing private can reach a template by way of it. What is
revealed after the end comes from `revealed`, which refuses a room that is still going.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from django.db.models import Count, Exists, OuterRef, Q, QuerySet

from markets import event_log, room_rows
from markets.engine import observation
from markets.engine.observation import Observation, SeenEvent
from markets.engine.protocol import LogEntry, Party, Role, buyer_of, role_of
from markets.engine.scenarios import Scenario
from markets.models import (
    Episode,
    EpisodeSource,
    Market,
    Participant,
    Room,
    RoomStatus,
    Seat,
    SeatKind,
    Utterance,
)
from markets.room_rows import Table
from markets.statements import Reading, Slot

TOLD = "told"
"""Kind of a counterpart of whom people are told no more than `Counterpart.name`, whoever it is."""


@dataclass(frozen=True)
class Counterpart:
    """Who sits on the other side of a thread, as far as people are told."""

    thread: int
    """Buyer number for a seller; 0 for a buyer's own thread."""
    kind: str
    """`person`, `agent`, `open` or `TOLD`."""
    name: str
    """Name of the agent; empty for a person; what people are told."""


@dataclass(frozen=True)
class SeatView:
    """Everything that the page of one seat may show."""

    public_id: str
    party: Party
    status: str
    observation: Observation
    events: tuple[SeenEvent, ...]
    talk: Mapping[int, str]
    """Words by log number, of events that this seat sees; of the latest alone where a page shows the others already."""
    counterparts: tuple[Counterpart, ...]
    consent_scope: str
    deadline_at: datetime | None
    fills_at: datetime | None
    open_token: str
    """Token of the open seat that the host may share; empty when there is none."""
    alone: bool
    """Whether no other person has sat down in the room."""
    market_slug: str
    market_name: str

    @property
    def role(self) -> Role:
        """Side of this seat."""
        return role_of(self.party)

    @property
    def seq(self) -> int:
        """Number of the last event this seat has seen."""
        return len(self.events)

    @property
    def ended(self) -> bool:
        """Whether the room is over."""
        return self.status == RoomStatus.ENDED


class StillGoing(Exception):
    """Values are revealed only when a room is over."""


@dataclass(frozen=True)
class Revealed:
    """A finished room with everything in it."""

    scenario: Scenario
    log: tuple[LogEntry, ...]
    episode: Episode

    def beside_people(self, party: Party) -> bool:
        """Whether `party` is a buyer among buyers who were people: what they did and wanted is theirs."""
        return role_of(party) is Role.BUYER and any(
            seat.kind == SeatKind.PERSON and seat.role == Role.BUYER and seat.party != party
            for seat in self.episode.seats.all()
        )


def seat_of(*, public_id: str, participant: Participant | None) -> Seat | None:
    """The chair of `participant` in a room, or None: a stranger has none."""
    if participant is None:
        return None
    return (
        Seat.objects.filter(room__public_id=public_id, participant=participant, kind=SeatKind.PERSON)
        .select_related("room__market", "participant")
        .first()
    )


def seat_view(seat: Seat) -> SeatView:
    """The view of `seat`, which must carry its room and market."""
    return _view(seat, list(seat.room.seats.all()), words_after=0)


def table_view(table: Table, seat: Seat, *, after: int | None) -> SeatView:
    """The view of a seat at `table`, with the words of what it has seen after its own event number `after` alone: all
    that a page needs that shows the earlier ones already."""
    return _view(seat, list(table.seats.values()), words_after=after)


def _view(seat: Seat, seats: list[Seat], *, words_after: int | None) -> SeatView:
    room = seat.room
    fold = event_log.load(room)
    event_log.keep(room, fold)
    events = fold.seen(seat.party)
    return SeatView(
        public_id=room.public_id,
        party=seat.party,
        status=room.status,
        observation=observation.observe(fold.state, seat.party),
        events=events,
        talk={} if words_after is None else _talk(room, events[max(0, words_after) :]),
        counterparts=_counterparts(seat, seats),
        consent_scope=seat.consent_scope,
        deadline_at=seat.deadline_at,
        fills_at=room.fills_at,
        open_token=next((other.join_token for other in seats if other.kind == SeatKind.OPEN), ""),
        alone=not any(other.kind == SeatKind.PERSON and other.pk != seat.pk for other in seats),
        market_slug=room.market.slug,
        market_name=room.market.name,
    )


def fresh_table(seat: Seat) -> tuple[Table, Seat] | None:
    """The seat's table as the database has it now, and the seat at it; None when whoever sat there does not any more."""
    table = room_rows.table(seat.room_id)
    return None if table is None else seated(seat, table)


def seated(seat: Seat, table: Table) -> tuple[Table, Seat] | None:
    """The table and the seat at it; None when whoever sat there does not any more."""
    current = table.seats.get(seat.party)
    if current is None or current.pk != seat.pk:
        return None
    sits = current.kind == SeatKind.PERSON and current.participant_id == seat.participant_id
    return (table, current) if sits else None


def fresh_seat_view(seat: Seat, *, after: int | None = 0) -> SeatView | None:
    """The view of a seat as the database has it now, with words as in `table_view`; None when whoever sat there does
    not any more."""
    found = fresh_table(seat)
    return None if found is None else table_view(*found, after=after)


def revealed(room: Room) -> Revealed:
    """Scenario, log and record of a finished room. Raises `StillGoing` for one that is not."""
    if room.status != RoomStatus.ENDED:
        raise StillGoing(room.public_id)
    fold = event_log.load(room)
    episode = Episode.objects.prefetch_related("seats", "texts").get(room=room)
    return Revealed(scenario=fold.state.scenario, log=fold.log, episode=episode)


_spoken: Reading[tuple[int, str]] = Reading(
    lambda: (
        Utterance.objects.filter(room=Slot("room", Room._meta.pk), n__gte=Slot("since", Utterance._meta.get_field("n")))
        .exclude(talk="")
        .order_by()
        .values_list("n", "talk")
    )
)


def _talk(room: Room, events: Sequence[SeenEvent]) -> dict[int, str]:
    """What was said with these events, which a seat sees, by log number."""
    if not events:
        return {}
    allowed = {event.n for event in events}
    return {n: talk for n, talk in _spoken.all(room=room.pk, since=events[0].n) if n in allowed}


def _counterparts(own: Seat, seats: list[Seat]) -> tuple[Counterpart, ...]:
    others = [seat for seat in seats if seat.role != own.role]
    is_seller = own.role == Role.SELLER.value
    return tuple(
        Counterpart(
            thread=buyer_of(seat.party) if is_seller else 0,
            kind=seat.kind,
            name=seat.agent_name if seat.kind == SeatKind.AGENT else "",
        )
        for seat in sorted(others, key=lambda seat: buyer_of(seat.party))
    )


# --- Lists ----------------------------------------------------------------------------------------


def current_markets() -> QuerySet[Market]:
    """Of every market the newest version that is not retired, listed or not."""
    newer = Market.objects.filter(slug=OuterRef("slug"), version__gt=OuterRef("version"), retired_at=None)
    return Market.objects.filter(~Exists(newer), retired_at=None).select_related("catalogue")


def market(slug: str) -> Market | None:
    """The newest version of a market that is not retired."""
    return current_markets().filter(slug=slug).first()


def market_on_record(slug: str) -> Market | None:
    """The market as `market` finds it, else its newest retired version: what a direct link and an export look at."""
    return market(slug) or newest_version(slug)


def newest_version(slug: str) -> Market | None:
    """The newest version of a market, retired or not."""
    return Market.objects.filter(slug=slug).select_related("catalogue").order_by("-version").first()


@dataclass(frozen=True)
class MarketRecord:
    """How often a market was played."""

    episodes: int
    with_deal: int


def market_records() -> dict[str, MarketRecord]:
    """Per market slug, over the games of people; simulations are no games anybody came for."""
    rows = (
        Episode.objects.filter(source=EpisodeSource.LIVE)
        .values("market__slug")
        .annotate(episodes=Count("id"), with_deal=Count("id", filter=Q(deals__gt=0)))
    )
    return {row["market__slug"]: MarketRecord(row["episodes"], row["with_deal"]) for row in rows}


def open_seats() -> QuerySet[Seat]:
    """Seats that wait for a person, oldest first, with who waits."""
    return (
        Seat.objects.filter(kind=SeatKind.OPEN, room__status=RoomStatus.WAITING)
        .select_related("room__market")
        .prefetch_related("room__seats__participant")
        .order_by("room_id", "id")
    )


def games_of(participant: Participant) -> QuerySet[Seat]:
    """Every seat a person ever took, newest first."""
    return (
        Seat.objects.filter(participant=participant)
        .select_related("room__market", "room__episode")
        .prefetch_related("room__seats", "room__episode__seats")
        .order_by("-room_id")
    )


def running_room(participant: Participant) -> Seat | None:
    """The newest negotiation of a person that is still going."""
    return (
        Seat.objects.filter(participant=participant)
        .exclude(room__status=RoomStatus.ENDED)
        .select_related("room__market")
        .order_by("-room_id")
        .first()
    )


def episodes_for_export(*, scope: str, market: Market | None = None) -> QuerySet[Episode]:
    """Episodes that may be used under `scope`: open data alone, or also what is kept for research."""
    scopes = ["public"] if scope == "public" else ["public", "research"]
    episodes = Episode.objects.filter(consent_scope__in=scopes)
    if market is not None:
        episodes = episodes.filter(market__slug=market.slug)
    return episodes.select_related("market").prefetch_related("seats", "texts")
