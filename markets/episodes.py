"""Writing the one record of a finished negotiation, from a live room or from a simulation.

An `Episode` is written once, in the transaction that ends the negotiation, and never changed but
for its consent scope. Its hash covers what is economic (protocol, scenario, who sat where without
identity, log), so erasing words or people leaves it valid; `verify` checks it against a replay.
"""

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from django.db import transaction

from markets.engine import figures, metrics
from markets.engine.metrics import Outcome
from markets.engine.protocol import (
    PROTOCOL_VERSION,
    SELLER,
    Action,
    LogEntry,
    Party,
    Role,
    buyer_of,
    buyer_party,
    decode_log,
    encode,
    role_of,
)
from markets.engine.scenarios import Scenario, decode_scenario
from markets.event_log import Fold
from markets.models import (
    ConsentScope,
    Episode,
    EpisodeSeat,
    EpisodeSource,
    EpisodeText,
    Market,
    RecordChange,
    Room,
    Seat,
    SeatKind,
    Utterance,
)

_WIDTH = {ConsentScope.PRIVATE: 0, ConsentScope.RESEARCH: 1, ConsentScope.PUBLIC: 2}


@dataclass(frozen=True)
class Sitting:
    """Who sat on one chair, without identity."""

    party: Party
    kind: str
    agent_slug: str = ""
    agent_version: str = ""


@dataclass(frozen=True)
class Words:
    """What was said and thought with one event."""

    n: int
    party: Party
    talk: str
    thought: str = ""


@dataclass(frozen=True)
class Simulated:
    """A negotiation between agents, ready to be stored."""

    scenario: Scenario
    log: tuple[LogEntry, ...]
    sittings: tuple[Sitting, ...]
    words: tuple[Words, ...] = ()


def record_room(room: Room, fold: Fold, *, seats: Mapping[Party, Seat], now: datetime) -> Episode:
    """Write the episode of a room that has just ended. Inside the room's transaction."""
    scenario = fold.state.scenario
    sittings = tuple(Sitting(seat.party, seat.kind, seat.agent_slug, seat.agent_version) for seat in seats.values())
    result = metrics.outcome(scenario, fold.log)
    episode = _episode(
        market=room.market,
        source=EpisodeSource.LIVE,
        scenario=scenario,
        log=fold.log,
        sittings=sittings,
        result=result,
        now=now,
    )
    episode.room = room
    rows = _seat_rows(episode, scenario, fold.log, sittings, result)
    for row in rows:
        seat = seats[row.party]
        row.participant_id = seat.participant_id
        row.consent_scope = seat.consent_scope
        row.consent_version = seat.consent_version
    episode.consent_scope = narrowest_scope(rows)
    episode.save()
    EpisodeSeat.objects.bulk_create(rows)
    EpisodeText.objects.bulk_create(
        EpisodeText(
            episode=episode,
            n=words.n,
            party=words.party,
            talk=words.talk,
            thought=words.thought,
        )
        for words in Utterance.objects.filter(room=room).order_by("n")
    )
    return episode


def store_simulated(market: Market, batch: Sequence[Simulated], *, now: datetime) -> list[Episode]:
    """Write many simulated negotiations at once, in the order given. Inside the caller's transaction."""
    return insert(simulated_rows(market, batch, now=now))


@dataclass(frozen=True)
class Rows:
    """Episodes that are ready to be written, made outside the transaction that writes them."""

    episodes: list[Episode]
    seats: list[EpisodeSeat]
    texts: list[EpisodeText]


def simulated_rows(market: Market, batch: Sequence[Simulated], *, now: datetime) -> Rows:
    """What `store_simulated` writes, worked out without touching the database.

    A scenario that several negotiations of the batch share (the same object) is encoded once.
    """
    rows = Rows([], [], [])
    texts: dict[int, str] = {}
    for played in batch:
        result = metrics.outcome(played.scenario, played.log)
        episode = _episode(
            market=market,
            source=EpisodeSource.SIMULATED,
            scenario=played.scenario,
            log=played.log,
            sittings=played.sittings,
            result=result,
            now=now,
            texts=texts,
        )
        rows.episodes.append(episode)
        rows.seats.extend(_seat_rows(episode, played.scenario, played.log, played.sittings, result))
        rows.texts.extend(
            EpisodeText(episode=episode, n=words.n, party=words.party, talk=words.talk, thought=words.thought)
            for words in played.words
        )
    return rows


def insert(rows: Rows) -> list[Episode]:
    """Write prepared rows. Inside the caller's transaction, which this keeps as short as it can."""
    stored = Episode.objects.bulk_create(rows.episodes)
    EpisodeSeat.objects.bulk_create(rows.seats, batch_size=2000)
    EpisodeText.objects.bulk_create(rows.texts, batch_size=2000)
    return stored


def words_of(log: Sequence[LogEntry], actions: Mapping[int, Action]) -> Iterator[Words]:
    """What was said and thought with each move; `actions` are by the number of their first event."""
    for n, action in sorted(actions.items()):
        if action.talk or action.thought:
            event: Any = log[n - 1].event  # A move's first event always names who made it.
            sender = SELLER if event.by is Role.SELLER else buyer_party(event.buyer)
            yield Words(n, sender, action.talk, action.thought)


def record_sha256(*, protocol_version: str, scenario: str, sittings: Sequence[Sitting], log: str) -> str:
    """Hash of the economic record. `scenario` and `log` are canonical JSON as stored."""
    chairs = sorted((sitting.party, sitting.kind, sitting.agent_slug, sitting.agent_version) for sitting in sittings)
    parts = (protocol_version, scenario, encode(chairs).decode(), log)
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()


def scenario_key(scenario: str) -> int:
    """A number that equal scenarios share and others do not: 63 bits of the hash of its canonical JSON."""
    return int.from_bytes(hashlib.sha256(scenario.encode()).digest()[:8], "big") >> 1


def note_change(numbers: Iterable[int]) -> None:
    """Tell whoever keeps copies that these episodes (by primary key) changed or went."""
    RecordChange.objects.bulk_create(RecordChange(episode_number=number) for number in numbers)


def verify(episode: Episode) -> bool:
    """Whether the stored record is what was written: its hash fits and its log replays to its figures."""
    seats = list(episode.seats.all())
    sittings = [Sitting(seat.party, seat.kind, seat.agent_slug, seat.agent_version) for seat in seats]
    expected = record_sha256(
        protocol_version=episode.protocol_version,
        scenario=episode.scenario,
        sittings=sittings,
        log=episode.log,
    )
    if expected != episode.record_sha256:
        return False
    scenario = decode_scenario(episode.scenario)
    log = decode_log(episode.log)
    result = metrics.outcome(scenario, log)
    styles = figures.of_seats(scenario, log, result)
    return (
        episode.scenario_key == scenario_key(episode.scenario)
        and all(getattr(episode, name) == value for name, value in _figures(result).items())
        and all(
            (seat.surplus_cents, seat.surplus_share) == seat_result(scenario, result, seat.party)
            and seat.figures == encode(styles[seat.party]).decode()
            for seat in seats
        )
    )


def refresh_figures(*, batch: int = 500) -> int:
    """Work out the stored style of every seat anew, from the logs; gives how many seats had another one.

    For a version of Parley that measures something more or otherwise. The record and its hash stay.
    """
    changed = 0
    numbers = list(Episode.objects.order_by("pk").values_list("pk", flat=True))
    for start in range(0, len(numbers), batch):
        stale = []
        for episode in Episode.objects.filter(pk__in=numbers[start : start + batch]).prefetch_related("seats"):
            scenario, log = decode_scenario(episode.scenario), decode_log(episode.log)
            styles = figures.of_seats(scenario, log, metrics.outcome(scenario, log))
            for seat in episode.seats.all():
                text = encode(styles[seat.party]).decode()
                if seat.figures != text:
                    seat.figures = text
                    stale.append(seat)
        with transaction.atomic():
            EpisodeSeat.objects.bulk_update(stale, ["figures"], batch_size=200)
            note_change(sorted({seat.episode_id for seat in stale}))
        changed += len(stale)
    return changed


def narrowest_scope(seats: Iterable[EpisodeSeat]) -> str:
    """The scope that every person in it agreed to; public where nobody was a person."""
    scopes = [
        ConsentScope(seat.consent_scope or ConsentScope.PRIVATE)
        for seat in seats
        if seat.kind == SeatKind.PERSON or seat.consent_scope  # An agent may have taken a person's chair over.
    ]
    return min(scopes, key=_WIDTH.__getitem__, default=ConsentScope.PUBLIC).value


def _episode(
    *,
    market: Market,
    source: EpisodeSource,
    scenario: Scenario,
    log: tuple[LogEntry, ...],
    sittings: Sequence[Sitting],
    result: Outcome,
    now: datetime,
    texts: dict[int, str] | None = None,
) -> Episode:
    """`texts` keeps the JSON of scenarios by identity, for batches that outlive it."""
    scenario_text = None if texts is None else texts.get(id(scenario))
    if scenario_text is None:
        scenario_text = encode(scenario).decode()
        if texts is not None:
            texts[id(scenario)] = scenario_text
    log_text = encode(log).decode()
    return Episode(
        source=source,
        market=market,
        family=scenario.family.value,
        mechanism=market.mechanism,
        currency=scenario.currency,
        protocol_version=PROTOCOL_VERSION,
        scenario=scenario_text,
        scenario_key=scenario_key(scenario_text),
        log=log_text,
        record_sha256=record_sha256(
            protocol_version=PROTOCOL_VERSION,
            scenario=scenario_text,
            sittings=sittings,
            log=log_text,
        ),
        **_figures(result),
        consent_scope=ConsentScope.PUBLIC,
        created_at=now,
    )


def _figures(result: Outcome) -> dict[str, Any]:
    """The columns of an episode that follow from its scenario and log."""
    if result.end_reason is None:
        raise ValueError("Only a finished negotiation has an episode.")
    return {
        "end_reason": result.end_reason.value,
        "deals": len(result.deals),
        "seller_surplus_cents": result.seller_surplus_cents,
        "buyer_surplus_cents": result.buyer_surplus_cents,
        "welfare_cents": result.welfare_cents,
        "first_best_cents": result.first_best_cents,
        "seller_share": result.seller_share,
        "seller_messages": result.seller_messages,
        "buyer_messages": result.buyer_messages,
        "seller_violations": result.seller_violations,
        "buyer_violations": result.buyer_violations,
    }


def _seat_rows(
    episode: Episode,
    scenario: Scenario,
    log: Sequence[LogEntry],
    sittings: Sequence[Sitting],
    result: Outcome,
) -> list[EpisodeSeat]:
    styles = figures.of_seats(scenario, log, result)
    return [
        EpisodeSeat(
            episode=episode,
            party=sitting.party,
            role=role_of(sitting.party).value,
            kind=sitting.kind,
            agent_slug=sitting.agent_slug,
            agent_version=sitting.agent_version,
            surplus_cents=surplus_cents,
            surplus_share=share,
            figures=encode(styles[sitting.party]).decode(),
        )
        for sitting in sittings
        for surplus_cents, share in (seat_result(scenario, result, sitting.party),)
    ]


def seat_result(scenario: Scenario, result: Outcome, party: Party) -> tuple[int, float | None]:
    """Own surplus in cents and its share of what there was for this party.

    For the seller out of the first best. For a buyer out of its own value minus cost, of the
    product it bought or else of the one where that is largest; None where that is not positive.
    """
    if role_of(party) is Role.SELLER:
        return result.seller_surplus_cents, result.seller_share
    buyer = buyer_of(party)
    for deal in result.deals:
        if deal.buyer == buyer:
            share = metrics.surplus_share(own_cents=deal.buyer_surplus_cents, joint_cents=deal.pair_joint_cents)
            return deal.buyer_surplus_cents, share
    best = max(
        value - cost
        for value, cost in zip(scenario.buyer_values_cents[buyer - 1], scenario.seller_values_cents, strict=True)
    )
    return 0, metrics.surplus_share(own_cents=0, joint_cents=best)
