"""Plays one negotiation between agents, through the engine and nothing else.

The driver owns the order of moves: answers that are due come first, then the seller. A move that
breaks a rule is recorded as refused and costs its sender the message; nothing is guessed or
repaired. Where an agent cannot be asked, its default act is played and recorded as late. Pure: the same scenario and agents give the same log in any process.

On a simulated clock the driver also owns time and chance: how long each action takes is drawn from
the scenario's seed, and it keeps what is on its way and who wakes when (`Clockwork`).
"""

import random
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from agents.base import Agent, AgentSpec, Kind, NoAnswer, Turn, Unplayable, batch, default_act
from markets.engine import rules
from markets.engine.observation import observe
from markets.engine.protocol import (
    Action,
    Event,
    IllegalAction,
    LogEntry,
    Party,
    Say,
    Wait,
)
from markets.engine.scenarios import EventDriven, Scenario
from markets.engine.seeds import derive_seed
from markets.engine.state import State, evolve, initial


class Seat(NamedTuple):
    """An agent on a chair."""

    spec: AgentSpec
    agent: Agent


class Played(NamedTuple):
    """A finished negotiation."""

    log: tuple[LogEntry, ...]
    state: State
    actions: dict[int, Action]
    """The action behind the first event of each move, by event number: carries talk."""


def seat(spec: AgentSpec) -> Seat:
    """Put a new agent of `spec` on a chair."""
    return Seat(spec, spec.build())


def turn_for(
    state: State,
    party: Party,
    spec: AgentSpec,
    log: Sequence[LogEntry] | None = None,
    *,
    now_ms: int = 0,
    words_at: Callable[[int], str] | None = None,
) -> Turn:
    """What the agent of `spec` on `party`'s chair is asked now; `log` lets it look back in order,
    `words_at` lets it hear what was said with an event."""
    return Turn(
        observation=observe(state, party, now_ms=now_ms),
        seed=state.scenario.seed,
        party=party,
        slug=spec.plays_as or spec.slug,
        position=rules.position(state, party),
        scenario=state.scenario if spec.kind is Kind.REFERENCE else None,
        log=None if log is None else (state.scenario, log),
        words_at=words_at,
    )


def play(
    scenario: Scenario,
    seats: Mapping[Party, Seat],
    *,
    words: Callable[[Action, Turn], Action] | None = None,
) -> Played:
    """Play `scenario` to its end; `words` puts each move into words where these are wanted."""
    if isinstance(scenario.mechanism, EventDriven):
        return Clockwork(scenario, scenario.mechanism, seats, words).play()
    state = initial(scenario)
    opening = rules.opening_events(state)
    for event in opening:
        state = evolve(state, event)
    log = list(rules.number(opening, after=0, at_ms=0))
    actions: dict[int, Action] = {}
    while not state.ended:
        party = rules.parties_to_move(state)[0]
        sitting = seats[party]
        turn = turn_for(state, party, sitting.spec, log, words_at=_words_of(actions))
        try:
            action = sitting.agent.act(turn)
        except Unplayable as answer:
            action = _nothing(answer)
            events, after = rules.refuse(state, party, answer.code, buyer=answer.buyer)
        except NoAnswer:
            action = default_act(turn.observation)
            passed = rules.deadline_passed(party)
            events, after = rules.step(evolve(state, passed), party, action)
            events = (passed, *events)
        else:
            if words is not None:
                action = words(action, turn)
            try:
                events, after = rules.step(state, party, action)
            except IllegalAction as refused:
                events, after = rules.refuse(state, party, refused.code, buyer=action.buyer)
        actions[state.version + 1] = action
        log.extend(rules.number(events, after=state.version, at_ms=0))
        state = after
    return Played(tuple(log), state, actions)


def _words_of(actions: Mapping[int, Action]) -> Callable[[int], str]:
    """What was said with an event so far."""
    return lambda n: actions[n].talk if n in actions else ""


def _nothing(answer: Unplayable) -> Action:
    """What stands for an answer that was no move: its thought alone."""
    return Say(buyer=answer.buyer, thought=answer.thought)


class _Flight(NamedTuple):
    """The actions of one activation on their way to the table."""

    lands_ms: int
    actions: tuple[Action | Unplayable, ...]


class Clockwork:
    """One negotiation on a simulated clock: what is on its way, and who wakes when.

    A party that is asked at some moment acts on what it saw then. Its actions take their times one
    after the other and arrive together when the last has. What arrives for a party that is busy
    wakes it as soon as it has acted; a timed wait wakes its keeper unless something arrives first,
    and what arrives at the same millisecond does.
    """

    def __init__(
        self,
        scenario: Scenario,
        mechanism: EventDriven,
        seats: Mapping[Party, Seat],
        words: Callable[[Action, Turn], Action] | None,
    ) -> None:
        self._seats = seats
        self._words = words
        self._latency_ms = mechanism.latency_ms
        self._deadline_ms = scenario.deadline_ms
        self._chance = {party: random.Random(derive_seed("latency", scenario.seed, party)) for party in seats}
        self._state = initial(scenario)
        self._log: list[LogEntry] = []
        self._actions: dict[int, Action] = {}
        self._flights: dict[Party, _Flight] = {}
        """In the order in which they set out."""
        self._missed: set[Party] = set()
        """Parties that something arrived for while they were busy."""
        self._now_ms = 0

    @property
    def state(self) -> State:
        """The table as it stands."""
        return self._state

    @property
    def log(self) -> list[LogEntry]:
        """The event log so far."""
        return self._log

    @property
    def now_ms(self) -> int:
        """The simulated clock."""
        return self._now_ms

    def play(self) -> Played:
        """To the end: a deal, somebody left, the cap, or nobody will ever wake."""
        while not self._state.ended:
            self._wake()
            alarm_ms = self._next_alarm_ms()
            if self._flights:
                party = min(self._flights, key=lambda flying: self._flights[flying].lands_ms)
                if alarm_ms is None or self._flights[party].lands_ms <= alarm_ms:
                    self._land(party, self._flights.pop(party))
                    continue
            if alarm_ms is None:
                self._write(*rules.fall_silent(self._state))
            else:
                self._now_ms = alarm_ms  # The wait of somebody who is not busy: the next to be asked.
        return Played(tuple(self._log), self._state, self._actions)

    def _wake(self) -> None:
        """Ask everybody who has something to act upon and is not busy."""
        due = rules.parties_due(self._state, self._now_ms)
        for party in self._seats:
            if party not in self._flights and (party in due or party in self._missed):
                self._missed.discard(party)
                self.ask(party)

    def ask(self, party: Party) -> None:
        """Let a party decide what it does; it lands later. Whoever drives a seat from outside overrides this."""
        sitting = self._seats[party]
        turn = turn_for(
            self._state, party, sitting.spec, self._log, now_ms=self._now_ms, words_at=_words_of(self._actions)
        )
        actions: tuple[Action | Unplayable, ...]
        try:
            moves = batch(sitting.agent, turn)
            actions = moves if self._words is None else tuple(self._words(action, turn) for action in moves)
        except Unplayable as answer:
            actions = (answer,)
        except NoAnswer:
            actions = (Wait(),)
        low_ms, high_ms = self._latency_ms
        draw = self._chance[party].random
        takes_ms = sum([low_ms + int(draw() * (high_ms - low_ms + 1)) for _action in actions])
        self._flights[party] = _Flight(self._now_ms + takes_ms, actions)

    def _land(self, party: Party, flight: _Flight) -> None:
        """Judge the actions of a batch at the moment it arrives; nothing lands on a table that is cleared.

        Who would land after the scenario's deadline has let its time run out.
        """
        if self._deadline_ms is not None and flight.lands_ms > self._deadline_ms:
            self._now_ms = max(self._now_ms, self._deadline_ms)
            self._write(*rules.expire(self._state, party))
            return
        self._now_ms = flight.lands_ms
        heard = self._state.threads[0].position
        for sent in flight.actions:
            action = _nothing(sent) if isinstance(sent, Unplayable) else sent
            try:
                if isinstance(sent, Unplayable):
                    raise IllegalAction(sent.code)
                events, after = rules.step(self._state, party, sent, self._now_ms)
            except IllegalAction as refused:
                events, after = rules.refuse(self._state, party, refused.code, buyer=action.buyer)
            self._actions[self._state.version + 1] = action
            self._write(events, after)
            if after.ended:
                return
        if self._state.threads[0].position != heard:
            self._missed.update(self._flights)

    def _next_alarm_ms(self) -> int | None:
        """When the first timed wait is over, of parties that are not busy."""
        first_ms = None
        for party in self._seats:
            if party not in self._flights:
                alarm_ms = rules.next_alarm_ms(self._state, party)
                if alarm_ms is not None and (first_ms is None or alarm_ms < first_ms):
                    first_ms = alarm_ms
        return first_ms

    def _write(self, events: Sequence[Event], after: State) -> None:
        self._log.extend(rules.number(events, after=self._state.version, at_ms=self._now_ms))
        self._state = after
