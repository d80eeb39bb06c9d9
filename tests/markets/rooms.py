"""Live rooms for the rim's tests: a written-down scenario on the table, people and agents on the chairs.

Here: `staged`, which opens a room through the services alone and seats whoever a test names, and `Game`, which moves for
them and lets the agents answer as a worker would. Not here: the scenarios themselves (`engine.factories`), browsers and
sockets.
"""

import threading
import uuid
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import connections

from agents import registry, turns
from markets import event_log, selectors, services, setup
from markets.engine.protocol import SELLER, Action, IllegalAction, Party, Role, buyer_party, encode, role_of
from markets.engine.scenarios import Scenario
from markets.engine.state import State
from markets.models import AgentTurn, Episode, Market, Participant, Room, RoomEvent, Seat, TurnState
from markets.presentation import CONSENT_VERSION
from markets.services import Accepted, AgentName, RoomError

SPECS = {
    "bilateral": {"values": "uniform:20:120", "cost": "uniform:10:90", "turns": 6, "opener": Role.BUYER},
    "multi_buyer": {"values": "uniform:20:120", "cost": "uniform:10:40", "turns": 8, "buyers": 3},
    "catalogue": {"values": "uniform:20:120", "cost": "uniform:10:40", "turns": 12, "buyers": 2, "products": 2},
}
"""A market of each family without a catalogue, values in money."""


def market(family: str = "bilateral", **changes: Any) -> Market:
    """A market of its family; the same for the same slug."""
    spec = {"slug": f"bench-{family.replace('_', '-')}", "family": family, "unit": "money"}
    return setup.create_market(setup.MarketSpec(**{**spec, **SPECS[family], **changes}))


def person(pseudonym: str = "") -> Participant:
    """Somebody at a browser."""
    return Participant.objects.create(pseudonym=pseudonym or f"Person {uuid.uuid4().hex[:12]}")


def agent(slug: str) -> AgentName:
    """An agent as a room writes it down."""
    spec = registry.get(slug)
    return AgentName(slug=spec.slug, version=spec.version, name=spec.title)


@dataclass
class Game:
    """A room in play, as a test holds it."""

    room: Room
    people: dict[Party, Participant]

    # Reading

    def fresh(self) -> Room:
        """The room's row as the database has it."""
        return Room.objects.select_related("market").get(pk=self.room.pk)

    def seat(self, party: Party) -> Seat:
        """A chair as the database has it, as pages and sockets load it."""
        return Seat.objects.select_related("room__market", "participant").get(room=self.room, party=party)

    @property
    def state(self) -> State:
        """The fold of what is stored."""
        return event_log.load(self.fresh()).state

    @property
    def scenario(self) -> Scenario:
        return self.state.scenario

    @property
    def kinds(self) -> list[str]:
        """Tags of the stored events, in order."""
        rows = RoomEvent.objects.filter(room=self.room).order_by("n").values_list("event", flat=True)
        return [text.split('"')[3] for text in rows]

    @property
    def episode(self) -> Episode:
        return Episode.objects.get(room=self.room)

    def view(self, party: Party) -> selectors.SeatView:
        """What the page of a seat is built from."""
        return selectors.seat_view(self.seat(party))

    # Moving

    def act(
        self,
        party: Party,
        action: Action,
        *,
        move: str | None = None,
        seen: int | None = None,
        now: datetime | None = None,
    ) -> Accepted:
        """A person's move."""
        return services.submit_action(
            room=self.fresh(),
            seat=self.seat(party),
            action=action,
            client_move_id=move or uuid.uuid4().hex,
            seen_seq=seen,
            now=now,
        )

    def refusal(self, party: Party, action: Action, **how: Any) -> str:
        """The code that a person's move is refused with; fails where it is accepted or changes a row."""
        before = (self.fresh().version, RoomEvent.objects.count(), AgentTurn.objects.count())
        try:
            self.act(party, action, **how)
        except (IllegalAction, RoomError) as refused:
            assert before == (self.fresh().version, RoomEvent.objects.count(), AgentTurn.objects.count())
            return refused.code.value if isinstance(refused, IllegalAction) else refused.code
        raise AssertionError(f"{action!r} of {party} was accepted")

    def queued(self) -> list[AgentTurn]:
        """Turns that wait for a worker, oldest first."""
        return list(AgentTurn.objects.filter(room=self.room, state=TurnState.QUEUED).order_by("pk"))

    def let_agents_play(self) -> int:
        """Take every queued turn as a worker would, until no agent owes a move; how many were played.

        A turn that may not start yet is taken at the moment at which it may; one whose time is over is not taken.
        """
        played = 0
        while outcomes := [turns.take_turn(turn_id=turn.pk, now=turn.starts_at) for turn in self.queued()]:
            if not any(outcomes):
                break
            played += outcomes.count(TurnState.DONE)
        return played


def staged(
    scenario: Scenario,
    *,
    people: Sequence[Party] = ("buyer-1",),
    agents: Mapping[Party, str] | str | None = None,
    consent: str = "public",
    start: bool = True,
    market_changes: Mapping[str, Any] | None = None,
) -> Game:
    """A room about `scenario`: `people` sit down (the first is the host), agents take the other chairs.

    The room is opened with a chair kept for a person, so that nothing has happened yet when the scenario is put on the
    table; from there on it goes the way every room goes. `start=False` leaves it waiting.
    """
    parties = [SELLER, *(buyer_party(buyer) for buyer in range(1, scenario.buyers + 1))]
    host = people[0]
    assert host in (SELLER, "buyer-1"), "a host sits on the seller's or the first buyer's chair"
    names = _agents(parties, agents)
    others = [party for party in parties if party != host]
    kept = frozenset(people[1:]) or frozenset(others[:1])
    sitting = {host: person()}
    room = services.open_room(
        market=_market_for(scenario, market_changes or {}),
        host=sitting[host],
        role=role_of(host),
        agents={party: names[party] for party in others},
        for_people=kept,
    )
    Room.objects.filter(pk=room.pk).update(scenario=encode(scenario).decode())
    game = Game(room=room, people=sitting)
    for party in people[1:]:
        sitting[party] = person()
    if consent:
        agree(game, host, consent)
    if not start:
        return game
    for party in people[1:]:
        token = Seat.objects.get(room=room, party=party).join_token
        services.join_room(room=game.fresh(), token=token, participant=sitting[party])
        if consent:
            agree(game, party, consent)
    services.fill_open_seats(game.fresh())
    return game


def agree(game: Game, party: Party, scope: str = "public") -> None:
    """Say who may use the game."""
    services.choose_consent(seat=game.seat(party), scope=scope, version=CONSENT_VERSION)


def _market_for(scenario: Scenario, changes: Mapping[str, Any]) -> Market:
    """A market with as many chairs as the scenario needs."""
    shape = {"buyers": scenario.buyers, "products": len(scenario.products)}
    known = market(scenario.family.value, slug=f"stage-{scenario.family}-{'x'.join(map(str, shape.values()))}", **shape)
    if changes:
        Market.objects.filter(pk=known.pk).update(**changes)
        known.refresh_from_db()
    return known


def _agents(parties: Sequence[Party], agents: Mapping[Party, str] | str | None) -> dict[Party, AgentName]:
    if isinstance(agents, str):
        return dict.fromkeys(parties, agent(agents))
    chosen = dict.fromkeys(parties, "linear") | dict(agents or {})
    return {party: agent(slug) for party, slug in chosen.items()}


def together(*jobs: Callable[[], Any]) -> list[Any]:
    """Run the jobs at the same moment, each on a connection of its own; what each returned or raised."""
    start = threading.Barrier(len(jobs))

    def run(job: Callable[[], Any]) -> Any:
        start.wait(timeout=30)
        try:
            return job()
        finally:
            connections.close_all()

    with ThreadPoolExecutor(len(jobs)) as pool:
        futures = [pool.submit(run, job) for job in jobs]
        return [future.exception(timeout=60) or future.result() for future in futures]
