"""Agents' turns in live rooms: claim one from the outbox, think, hand the move in.

A turn is a row (`markets.models.AgentTurn`) and is claimed by compare-and-swap with a lease, so any
number of workers may be told of it and one takes it. Nothing is thought inside a transaction. A
dead worker's lease expires and the turn is taken again; after `MAX_ATTEMPTS`, or past its
deadline, the agent's default act is played and the log says so.

An agent that asks a language model may take longer than a lease, so its lease is renewed while it
thinks; the room shows that it writes; a model that does not answer gives the turn back, the room says
so and it is asked again after a pause. A narrator whose model does not answer plays on in a template's words, and
the room says that too. Every call is kept (`model_log`).
"""

import logging
import os
import secrets
import socket
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from django.db import DEFAULT_DB_ALIAS, connection
from django.db import Error as DatabaseError
from django.db.models import F, Q
from django.utils import timezone

from agents import calls, model_log, registry
from agents.base import AgentSpec, Kind, NoAnswer, Unplayable, batch, default_act
from agents.play import turn_for
from agents.words import with_words
from markets import event_log, room_rows, services, trace
from markets.engine import rules
from markets.engine.observation import observe
from markets.engine.protocol import Action, LogEntry, Party
from markets.engine.scenarios import EventDriven
from markets.engine.state import State
from markets.models import AgentTurn, Seat, TurnState, Utterance
from markets.signals import turn_due
from markets.statements import Changing, Reading, Slot

log = logging.getLogger(__name__)

LEASE = timedelta(seconds=10)
MAX_ATTEMPTS = 3
RETRY_QUEUED_AFTER = timedelta(seconds=2)
"""A turn that nobody took by then is announced again: the broker may have lost it."""
CLOCKS_DIFFER = timedelta(seconds=5)
"""By so much the clocks of machines may differ; what was written later than that was written before a clock was set back."""
ASKED_AGAIN_AFTER = timedelta(seconds=2)
"""Pause after a model that did not answer, times the attempts so far."""
WRITING_SHOWN_EVERY_S = 2.0


@dataclass(frozen=True)
class Claim:
    """A turn that this worker holds until `lease_until`."""

    turn: AgentTurn
    owner: str
    seat: Seat
    """Whose turn it is."""


def take_turn(*, turn_id: int, now: datetime | None = None) -> TurnState | None:
    """Play the turn if it is still open and nobody holds it; None when somebody else does."""
    claim = _claim(turn_id, now or timezone.now())
    if claim is None:
        return None
    turn = claim.turn
    with trace.in_room(turn.room.public_id), _faults_noted(claim):
        seat = claim.seat
        fold = event_log.load(turn.room)
        state = fold.state
        if not observe(state, turn.party).to_move:
            return services.supersede_turn(turn=turn, owner=claim.owner)
        if rules.position(state, turn.party) != turn.position:
            return services.supersede_turn(turn=turn, owner=claim.owner)
        spec = registry.get(seat.agent_slug, version=seat.agent_version)
        try:
            with _asking_models(claim, spec):
                action, *then = think(
                    state,
                    turn.party,
                    spec,
                    fold.log,
                    now_ms=services.room_ms(turn.room, fold, now or timezone.now()),
                    words_at=_words_in(turn) if spec.asks_models else None,
                )
        except Unplayable as answer:
            return services.submit_agent_refusal(
                turn=turn, owner=claim.owner, code=answer.code, buyer=answer.buyer, thought=answer.thought, now=now
            )
        except NoAnswer as silence:
            return _give_back(claim, silence)
        return services.submit_agent_action(turn=turn, owner=claim.owner, action=action, then=then, now=now)


def asks_models(turn_id: int) -> bool:
    """Whether the agent that owes this turn waits for a language model; an unknown one fails in its turn."""
    found = _agent.first(turn=turn_id)
    if found is None:
        return False
    try:
        return registry.get(found[0]).asks_models
    except registry.UnknownAgent:
        return False


@contextmanager
def _asking_models(claim: Claim, spec: AgentSpec) -> Iterator[None]:
    """Hold the lease, show the sign and keep the calls of an agent that asks a model; nothing for any other."""
    if not spec.asks_models:
        yield
        return
    made: list[calls.Call] = []
    try:
        with _lease_renewed(claim), calls.listening(calls.Listener(made.append, _writing_sign(claim.turn))):
            yield
    finally:
        model_log.keep(claim.turn, spec, made)
        if spec.kind is Kind.NARRATOR and any(call.reply is None for call in made):
            services.show_waiting(room=claim.turn.room, party=claim.turn.party, plays_on=True)


def _writing_sign(turn: AgentTurn) -> Callable[[str], None]:
    """Tells the room now and then that the agent is writing, not what."""
    shown_at = float("-inf")

    def hear(_text: str) -> None:
        nonlocal shown_at
        if time.monotonic() - shown_at >= WRITING_SHOWN_EVERY_S:
            shown_at = time.monotonic()
            services.show_writing(room=turn.room, party=turn.party)

    return hear


@contextmanager
def _lease_renewed(claim: Claim, *, every_s: float = LEASE.total_seconds() / 3) -> Iterator[None]:
    """Renew the claim's lease from another thread until the block is left."""
    done = threading.Event()

    def renew() -> None:
        try:
            while not done.wait(every_s):
                try:
                    held = AgentTurn.objects.filter(pk=claim.turn.pk, owner=claim.owner, state=TurnState.RUNNING)
                    if not held.update(lease_until=timezone.now() + LEASE):
                        return
                except DatabaseError as error:
                    log.warning("The lease of turn %s was not renewed: %s", claim.turn.pk, error)
        finally:
            connection.close()

    thread = threading.Thread(target=renew, name=f"lease-{claim.turn.pk}", daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()


def _words_in(turn: AgentTurn) -> Callable[[int], str]:
    """What was said in the turn's room, by event number; what a seat hears of it is for `Turn.said`."""
    said = dict(Utterance.objects.filter(room=turn.room_id).values_list("n", "talk"))
    return lambda n: said.get(n, "")


def _give_back(claim: Claim, silence: NoAnswer) -> TurnState:
    """Let the turn be taken again after a pause, and say so in the room."""
    pause = ASKED_AGAIN_AFTER * claim.turn.attempts
    AgentTurn.objects.filter(pk=claim.turn.pk, owner=claim.owner, state=TurnState.RUNNING).update(
        error=str(silence), lease_until=timezone.now() + pause
    )
    log.warning("%s in room %s has no answer: %s", claim.turn.party, claim.turn.room.public_id, silence)
    services.show_waiting(room=claim.turn.room, party=claim.turn.party)
    return TurnState.RUNNING


@contextmanager
def _faults_noted(claim: Claim) -> Iterator[None]:
    """Write an agent's fault down beside its turn and give the turn back at once; the fault rises."""
    try:
        yield
    except Exception as fault:
        AgentTurn.objects.filter(pk=claim.turn.pk, owner=claim.owner, state=TurnState.RUNNING).update(
            error=f"{type(fault).__name__}: {fault}", lease_until=timezone.now()
        )
        raise


def think(
    state: State,
    party: Party,
    spec: AgentSpec,
    log: Sequence[LogEntry] | None = None,
    *,
    now_ms: int = 0,
    words_at: Callable[[int], str] | None = None,
) -> tuple[Action, ...]:
    """The agent's move with its words; several where nobody takes turns and it wants them."""
    agent = spec.build()
    if isinstance(state.scenario.mechanism, EventDriven):
        turn = turn_for(state, party, spec, log, now_ms=now_ms, words_at=words_at)
        return tuple(with_words(action, turn) for action in batch(agent, turn))
    turn = turn_for(state, party, spec, log, words_at=words_at)
    return (with_words(agent.act(turn), turn),)


def sweep(now: datetime) -> int:
    """Announce turns that nobody took or whose worker died; default those that are too late."""
    _move_back(now)
    waiting = (
        AgentTurn.objects.filter(
            Q(state=TurnState.QUEUED, created_at__lte=now - RETRY_QUEUED_AFTER)
            & (Q(starts_at=None) | Q(starts_at__lte=now))
            | Q(state=TurnState.RUNNING, lease_until__lte=now)
        )
        .select_related("room")
        .order_by("pk")
    )
    handled = 0
    for turn in waiting[:500]:
        handled += 1
        if turn.attempts >= MAX_ATTEMPTS or turn.due_at <= now:
            with services.damage_noted(turn.room):
                _play_default(turn, now)
        else:
            turn_due.send(sender=AgentTurn, turn_id=turn.pk)
    return handled


def _move_back(now: datetime) -> None:
    """Turns that were written while the clock was ahead start, and are over, that much earlier: a clock that is set
    back by an hour lets nobody wait for an hour."""
    open_turns = AgentTurn.objects.filter(state__in=(TurnState.QUEUED, TurnState.RUNNING))
    for turn in open_turns.filter(created_at__gt=now + CLOCKS_DIFFER)[:500]:
        by = turn.created_at - now
        AgentTurn.objects.filter(pk=turn.pk, created_at=turn.created_at).update(
            created_at=now, due_at=turn.due_at - by, starts_at=turn.starts_at and turn.starts_at - by
        )
    open_turns.filter(state=TurnState.RUNNING, lease_until__gt=now + LEASE + CLOCKS_DIFFER).update(lease_until=now)


def _claim(turn_id: int, now: datetime) -> Claim | None:
    owner = f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"
    if not _take.run(turn=turn_id, now=now, owner=owner, until=now + LEASE):
        return None
    row = _turn.first(turn=turn_id)
    if row is None:  # The room is given up just now, and the turn with it.
        return None
    turn = AgentTurn.from_db(DEFAULT_DB_ALIAS, _TURN, row)
    table = room_rows.table(turn.room_id)
    if table is None:
        return None
    turn.room = table.room
    return Claim(turn, owner, table.seats[turn.party])


_TURN = ("id", "room_id", "party", "position", "state", "owner", "due_at", "attempts", "error")
_NUMBER = AgentTurn._meta.pk
_MOMENT = AgentTurn._meta.get_field("due_at")
_turn: Reading[tuple[Any, ...]] = Reading(
    lambda: AgentTurn.objects.filter(pk=Slot("turn", _NUMBER)).order_by().values_list(*_TURN)
)
_agent: Reading[tuple[str]] = Reading(
    lambda: (
        Seat.objects.filter(room__agent_turns__pk=Slot("turn", _NUMBER), party=F("room__agent_turns__party"))
        .order_by()
        .values_list("agent_slug")
    )
)
_take = Changing(
    lambda: (
        AgentTurn.objects.filter(pk=Slot("turn", _NUMBER), attempts__lt=MAX_ATTEMPTS, due_at__gt=Slot("now", _MOMENT))
        .filter(Q(state=TurnState.QUEUED) | Q(state=TurnState.RUNNING, lease_until__lte=Slot("now", _MOMENT)))
        .filter(Q(starts_at=None) | Q(starts_at__lte=Slot("now", _MOMENT)))
    ),
    state=TurnState.RUNNING,
    owner=Slot("owner", AgentTurn._meta.get_field("owner")),
    lease_until=Slot("until", _MOMENT),
    attempts=F("attempts") + 1,
)


def _play_default(turn: AgentTurn, now: datetime) -> None:
    reason = (
        "No move before the deadline."
        if turn.due_at <= now
        else f"No move after {turn.attempts} attempts. {turn.error}".strip()
    )
    log.warning("Default act for %s in room %s: %s", turn.party, turn.room.public_id, reason)
    services.play_default_act(
        turn=turn,
        choose=lambda state: default_act(observe(state, turn.party)),
        reason=reason,
        now=now,
    )
