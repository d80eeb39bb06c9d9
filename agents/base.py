"""What an agent is: something that turns an observation into one action, or into several at once.

An agent keeps no memory between turns. All it may use is in its `Turn`: the observation, the past
as its seat saw it, and random streams derived from the scenario's seed: one for the
turn, one for the words that go with it, and one for its character, the same throughout a
negotiation. So a worker that answers one turn of a live room and a simulation that plays ten
thousand episodes run the same code and give the same moves. Pure: no Django, no clock, no global
randomness.
"""

import random
from collections.abc import Callable, Sequence
from enum import StrEnum
from functools import lru_cache
from typing import Protocol

import msgspec

from markets.engine.observation import Observation, SeenEvent, seen_events
from markets.engine.protocol import (
    Action,
    LogEntry,
    MoveRefused,
    Party,
    RefusalCode,
    RejectOffer,
    Role,
    Say,
    TurnPassed,
    Wait,
)
from markets.engine.scenarios import Family, Scenario
from markets.engine.seeds import derive_seed


class Turn:
    """One request to act."""

    def __init__(
        self,
        *,
        observation: Observation,
        seed: int,
        party: Party,
        slug: str,
        position: int,
        scenario: Scenario | None = None,
        log: tuple[Scenario, Sequence[LogEntry]] | None = None,
        words_at: Callable[[int], str] | None = None,
    ) -> None:
        self.observation = observation
        self.scenario = scenario
        """The whole scenario, given to reference policies that know the values and to no other."""
        self._seed = seed
        self._party = party
        self._slug = slug.partition("+")[0]  # A persona talks; it has no chance of its own.
        self._position = position
        self._log = log
        self._words_at = words_at

    @property
    def past(self) -> tuple[SeenEvent, ...]:
        """What happened so far, in order, as this seat saw it (`observation.seen_events`)."""
        if self._log is None:
            raise ValueError("This turn was made without the log of its negotiation.")
        scenario, log = self._log
        return seen_events(scenario, log, self._party)

    def said(self, seen: SeenEvent) -> str:
        """The words that went with an event of the past; what was refused was not heard."""
        if self._words_at is None or isinstance(seen.event, MoveRefused | TurnPassed):
            return ""
        return self._words_at(seen.n)

    @property
    def chance(self) -> random.Random:
        """A fresh stream for this turn."""
        return random.Random(derive_seed("turn", self._seed, self._party, self._slug, self._position))

    @property
    def words(self) -> random.Random:
        """A fresh stream for what is said this turn, apart from what is done."""
        return random.Random(derive_seed("words", self._seed, self._party, self._slug, self._position))

    @property
    def character(self) -> random.Random:
        """A fresh stream that starts the same at every turn of this negotiation: hidden traits."""
        return random.Random(derive_seed("character", self._seed, self._party, self._slug))

    def traits(self, count: int) -> tuple[float, ...]:
        """The first `count` numbers of `character`, each in [0, 1); kept, as every turn asks for them."""
        return _first_numbers(self._seed, self._party, self._slug, count)


@lru_cache(maxsize=1024)
def _first_numbers(seed: int, party: Party, slug: str, count: int) -> tuple[float, ...]:
    draw = random.Random(derive_seed("character", seed, party, slug)).random
    return tuple(draw() for _ in range(count))


class Unplayable(Exception):
    """An agent's answer that is no move: it is recorded as refused with `code`, and nothing is guessed."""

    def __init__(self, code: RefusalCode, reason: str, *, buyer: int = 0, thought: str = "") -> None:
        super().__init__(f"{code.value}: {reason}")
        self.code = code
        self.reason = reason
        """Finer than the code, for counting."""
        self.buyer = buyer
        """Thread it was meant for; 0 where it named none."""
        self.thought = thought


class NoAnswer(Exception):
    """An agent could not be asked just now: whoever runs the turn tries again or plays the default act."""


class Agent(Protocol):
    """A player."""

    def act(self, turn: Turn) -> Action:
        """The next move. Called only when `turn.observation.to_move` is true. Raises `Unplayable` or `NoAnswer`."""
        ...


class BatchAgent(Agent, Protocol):
    """A player that, on a simulated clock, may answer with several actions that arrive together."""

    def act_batch(self, turn: Turn) -> Sequence[Action]:
        """The next moves in order; none at all waits for the other side."""
        ...


def batch(agent: Agent, turn: Turn) -> tuple[Action, ...]:
    """What the agent does when it is asked once in an event-driven negotiation."""
    act_batch: Callable[[Turn], Sequence[Action]] | None = getattr(agent, "act_batch", None)
    if act_batch is None:
        return (agent.act(turn),)
    return tuple(act_batch(turn)) or (Wait(),)


class Kind(StrEnum):
    """What decides."""

    SCRIPTED = "scripted"
    NARRATOR = "narrator"
    """A strategy decides and a language model speaks."""
    MODEL = "language_model"
    """A language model decides and speaks."""
    LEARNED = "learned"
    """A trained model."""
    REFERENCE = "reference"
    """Knows what no player can know: a bound to measure against, never an opponent in a room."""


class AgentSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A named, versioned, immutable agent."""

    slug: str
    title: str
    summary: str
    """One sentence for people who choose an opponent."""
    kind: Kind
    roles: tuple[Role, ...]
    families: tuple[Family, ...]
    build: Callable[[], Agent]
    version: str = "1"
    source: str = ""
    """Where the strategy comes from."""
    plays_as: str = ""
    """The agent whose chance it draws and whose moves it therefore makes, where that is not itself."""
    asks_models: bool = False
    """Whether its turns wait for a language model."""
    remark: str = ""
    """What people should know before they choose it, in a few words."""
    persona: str = ""
    """The way of talking that it has."""
    speak_as: Callable[[str], Agent] | None = None
    """Builds it with the persona of this name, where a language model has to be told of it; None where an agent's
    words can be changed from outside."""

    def can_play(self, *, role: Role, family: Family) -> bool:
        """Whether the agent knows what to do on this seat."""
        return role in self.roles and family in self.families


def default_act(observation: Observation) -> Action:
    """What is played when an agent's move does not come in time: it turns the latest standing
    offer of the other side down, or says that it needs a moment. Never binds anybody."""
    for thread in observation.threads:
        if not thread.my_move:
            continue
        theirs = [offer for offer in thread.standing if not offer.mine]
        if theirs:
            return RejectOffer(offer_id=theirs[-1].offer_id, buyer=thread.buyer)
        return Say(talk="I need a moment to think.", buyer=thread.buyer)
    raise ValueError("No move is due.")
