"""An event-driven negotiation on the wall clock: which agents a room asks, when, and whose time runs.

Here: arithmetic on a fold and the room's clock. Not here: rows, leases or deadlines (`services`),
and the rules of waking, which are the engine's.

Contract: nobody is hurried by a simulated clock. An agent that has something to act upon answers
after a pause drawn between the market's latencies, in real time; its timed waits last as long in
real time. While the other side says nothing an agent is asked a few times only, so that waiting,
searching and broken moves cannot spend the events that a thinking person needs.
"""

import random
from collections.abc import Collection, Sequence
from typing import NamedTuple

from markets.engine import rules
from markets.engine.protocol import SELLER, LogEntry, Party, Role, buyer_party, role_of
from markets.engine.scenarios import EventDriven
from markets.engine.seeds import derive_seed
from markets.engine.state import State
from markets.event_log import Fold

MAX_UNANSWERED = 4
"""Events of an agent in a row after which it is not asked again before the other side has done something."""


class Wake(NamedTuple):
    """An agent that is to be asked."""

    party: Party
    at_ms: int
    """When, on the room's clock."""
    gives_up: bool = False
    """It owes an answer and has only broken rules or waited: its default act is played instead."""


class Plan(NamedTuple):
    """Whom the room waits for."""

    wakes: tuple[Wake, ...]
    people: frozenset[Party]
    """People whose time runs."""


def plan(fold: Fold, mechanism: EventDriven, *, agents: Collection[Party], now_ms: int) -> Plan:
    """What follows from the log as it stands at `now_ms`.

    A person's time runs while the person owes an answer, and where nobody is about to do anything.
    """
    state = fold.state
    due = rules.parties_due(state, now_ms)
    wakes = tuple(wake for party in sorted(agents) if (wake := _wake(fold, mechanism, party, due, now_ms)))
    everybody = {SELLER, buyer_party(1)}
    people = frozenset(everybody - set(agents))
    owing = people & set(due)
    if not owing and not wakes:
        owing = people & set(rules.parties_to_move(state)) or people
    return Plan(wakes, owing)


def _wake(fold: Fold, mechanism: EventDriven, party: Party, due: Collection[Party], now_ms: int) -> Wake | None:
    state = fold.state
    role = role_of(party)
    thread = state.threads[0]
    if unanswered(fold.log, role) >= MAX_UNANSWERED:
        return Wake(party, now_ms, gives_up=True) if thread.to_move is role else None
    if party in due:
        return Wake(party, now_ms + pause_ms(state, mechanism, party))
    alarm_ms = rules.next_alarm_ms(state, party)
    if alarm_ms is not None:
        return Wake(party, max(alarm_ms, now_ms))
    unopened = not thread.seller_messages and not thread.buyer_messages
    return Wake(party, now_ms, gives_up=True) if unopened and mechanism.opener is role else None


def pause_ms(state: State, mechanism: EventDriven, party: Party) -> int:
    """How long an agent takes over its answer, the same whichever process asks."""
    low_ms, high_ms = mechanism.latency_ms
    seed = derive_seed("pause", state.scenario.seed, party, rules.position(state, party))
    return random.Random(seed).randint(low_ms, high_ms)


def unanswered(log: Sequence[LogEntry], role: Role) -> int:
    """How many events of `role` stand at the end of the log with nothing of the other side between them."""
    count = 0
    for entry in reversed(log):
        by = getattr(entry.event, "by", None)
        if by is role.other:
            break
        count += by is role
    return count
