"""Plays one negotiation between agents, through the engine and nothing else.

The driver owns the order of moves: answers that are due come first, then the seller. A move that
breaks a rule is recorded as refused and costs its sender the message; nothing is guessed or
repaired. Pure: the same scenario and agents give the same log in any process.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from agents.base import Agent, AgentSpec, Kind, Turn
from markets.engine import rules
from markets.engine.observation import observe
from markets.engine.protocol import (
    Action,
    IllegalAction,
    LogEntry,
    Party,
)
from markets.engine.scenarios import Scenario
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


def turn_for(state: State, party: Party, spec: AgentSpec, log: Sequence[LogEntry] | None = None) -> Turn:
    """What the agent of `spec` on `party`'s chair is asked now; `log` lets it look back in order."""
    return Turn(
        observation=observe(state, party),
        seed=state.scenario.seed,
        party=party,
        slug=spec.slug,
        position=rules.position(state, party),
        scenario=state.scenario if spec.kind is Kind.REFERENCE else None,
        log=None if log is None else (state.scenario, log),
    )


def play(
    scenario: Scenario,
    seats: Mapping[Party, Seat],
    *,
    words: Callable[[Action, Turn], Action] | None = None,
) -> Played:
    """Play `scenario` to its end; `words` puts each move into words where these are wanted."""
    state = initial(scenario)
    opening = rules.opening_events(state)
    for event in opening:
        state = evolve(state, event)
    log = list(rules.number(opening, after=0, at_ms=0))
    actions: dict[int, Action] = {}
    while not state.ended:
        party = rules.parties_to_move(state)[0]
        sitting = seats[party]
        turn = turn_for(state, party, sitting.spec, log)
        action = sitting.agent.act(turn)
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
