"""Live episodes that a learner plays in words: the engine's game, one seat of it left open.

Here: drawing a game (scenario, opponents) by number, and stepping one episode with the learner's
words. Not here: token ids, models, or how words are sampled (`training.sampling`).

Contract: the learner is shown `markets.engine.observation` and nothing else; every move goes
through `markets.engine.rules`. An answer that cannot be read or breaks a rule is a refused move
that spends its message and is scored by the reward, never an exception. The same game number and
words give the same log in any process; a group that shares a game number shares scenario, seat
and opponents, the opponents' chance included.
"""

import random
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from agents import registry
from agents.base import AgentSpec, Kind, NoAnswer, Turn, Unplayable, default_act
from agents.learned import grammars
from agents.learned.dialogue import Message
from agents.learned.grammars import LADDER, Grammar
from agents.play import Clockwork, Seat, seat, turn_for
from markets.engine import priors, rewards, rules, splits
from markets.engine.observation import Observation, SeenEvent, observe, seen_events
from markets.engine.protocol import SELLER, Action, IllegalAction, LogEntry, Party, RefusalCode, Role, buyer_party
from markets.engine.scenarios import (
    Alternating,
    EventDriven,
    Family,
    Mechanism,
    Recipe,
    Scenario,
    SellerTurns,
    Split,
    sample,
)
from markets.engine.seeds import derive_seed
from markets.engine.state import State, evolve, initial
from training import products
from training.config import Game


class Table(NamedTuple):
    """One drawn game: what is at stake, who sits opposite, and which seat is open."""

    scenario: Scenario
    opponents: dict[Party, Seat]
    learner: Party = SELLER
    grammar: Grammar = LADDER
    limited: bool = False
    """Whether the learner's answers are limited to what its grammar allows there."""


def recipe(game: Game, *, buyers: int, turns: int, cost: float) -> Recipe:
    """The recipe of one member of a family of games."""
    if game.catalogue:
        return _over_products(game, buyers=buyers, turns=turns)
    cost_spec = priors.ConstantSpec(value=cost)
    return Recipe(
        family=Family.MULTI_BUYER,
        mechanism=SellerTurns(turns),
        buyers=buyers,
        value_spec=priors.parse_value_spec(game.values),
        cost_spec=cost_spec,
        cost_prior=cost_spec,
        unit_is_money=True,
        opening_bid_share=None,
    )


def _over_products(game: Game, *, buyers: int, turns: int) -> Recipe:
    """A game over a catalogue: values and costs are multiples of list prices, and buyers of several open with a bid."""
    values, cost = priors.parse_value_rule(game.values), priors.parse_cost_spec(game.cost)
    looks_up = isinstance(values, priors.HighestSpec | priors.RangeSpec)
    made = Recipe(
        family=game.family,
        mechanism=_mechanism(game, turns),
        buyers=buyers,
        products=game.products,
        value_spec=values,
        cost_spec=cost,
        cost_prior=products.public_prior(game.catalogue, cost),
        value_prior=products.public_prior(game.catalogue, values) if looks_up else msgspec.UNSET,
        rho=game.rho,
        split=Split.TRAINING,
        regulated=() if game.mechanism == "clock" else (Role.BUYER,) if game.role is Role.SELLER else (Role.SELLER,),
    )
    return splits.AXES[game.axis](made) if game.axis else made


def _mechanism(game: Game, turns: int) -> Mechanism:
    match game.mechanism:
        case "turns":
            return SellerTurns(turns)
        case "rounds":
            return Alternating(rounds=turns, opener=game.opener)
        case "clock":
            return EventDriven(rounds=turns, opener=game.opener)


def draw_table(game: Game, seed: int) -> Table:
    """The game of a seed: its size and cost, its hidden values, its opponents."""
    rng = random.Random(derive_seed("game", seed))
    buyers, turns = rng.choice([tuple(pair) for pair in game.sizes])
    cost = rng.choice(game.costs)
    if game.further_values:
        game = msgspec.structs.replace(game, values=rng.choice((game.values, *game.further_values)))
    made = recipe(game, buyers=buyers, turns=turns, cost=cost)
    pool = splits.select(products.read(game.catalogue), made.split) if game.catalogue else ()
    scenario = sample(made, pool, derive_seed("episode", seed))
    slugs = [registry.get(slug) for slug in game.opponents]
    learner = SELLER if game.role is Role.SELLER else buyer_party(1)
    others = [party for party in (SELLER, *map(buyer_party, range(1, scenario.buyers + 1))) if party != learner]
    opponents = {party: seat(_drawn(rng, slugs, game.weights)) for party in others}
    return Table(scenario, opponents, learner, grammars.by_name(game.dialogue), game.limited)


def _drawn(rng: random.Random, pool: Sequence[AgentSpec], weights: Sequence[float]) -> AgentSpec:
    """One of the pool; equal chances take the draw that they always took."""
    return rng.choices(pool, weights)[0] if weights else rng.choice(pool)


class Episode:
    """One negotiation in progress, one seat open to a learner."""

    def __init__(self, table: Table) -> None:
        self.scenario = table.scenario
        self.learner = table.learner
        self.limited = table.limited
        self._shown = 0
        clocked = isinstance(table.scenario.mechanism, EventDriven)
        self._run: _Turns | _Clocked = _Clocked(table) if clocked else _Turns(table)
        self._run.go_on()
        self.observation = self._observe()
        self.conversation = table.grammar.start(self.observation)

    @property
    def state(self) -> State:
        """The table as it stands."""
        return self._run.state

    @property
    def log(self) -> tuple[LogEntry, ...]:
        """The event log so far."""
        return tuple(self._run.log)

    @property
    def over(self) -> bool:
        """Whether the negotiation has ended."""
        return self.state.ended

    def opening(self) -> tuple[Message, ...]:
        """The messages before the learner's first move."""
        return self.conversation.opening(self._news())

    def act(self, words: Sequence[str] | None) -> Message | None:
        """Play the learner's answer and the replies to it; the next message, None at the end.

        `words` without the end marker; None for an answer that never came to its end.
        """
        self._run.move(None if words is None else self.conversation.read(self.observation, words))
        self._run.go_on()
        if self.over:
            return None
        self.observation = self._observe()
        return self.conversation.heard(self.observation, self._news())

    def allowed(self, answer: Sequence[str]) -> Sequence[str]:
        """Words that may follow in the learner's answer where it is limited; none when it is complete."""
        return self.conversation.allowed(self.observation, answer)

    def reward(self, function: rewards.RewardFunction) -> float:
        """What the episode is worth to the learner, from its log."""
        return function(self.scenario, self.log)

    def turn(self, spec: AgentSpec) -> Turn:
        """What an agent on the learner's seat would be asked now."""
        return turn_for(self.state, self.learner, spec, self._run.log, now_ms=self._run.now_ms)

    def _observe(self) -> Observation:
        return observe(self.state, self.learner, now_ms=self._run.now_ms)

    def _news(self) -> list[SeenEvent]:
        """What the seat has not been told, numbered anew: the ledger tells events apart by their place in the log."""
        fresh = self._run.log[self._shown :]
        self._shown = len(self._run.log)
        return list(seen_events(self.scenario, fresh, self.learner))


class _Turns:
    """A negotiation in turns: answers that are due come first, as `agents.play` orders them."""

    now_ms = 0

    def __init__(self, table: Table) -> None:
        self._opponents = table.opponents
        self._learner = table.learner
        self.state = initial(table.scenario)
        self.log: list[LogEntry] = []
        events = rules.opening_events(self.state)
        for event in events:
            self.state = evolve(self.state, event)
        self.log.extend(rules.number(events, after=0, at_ms=0))

    def go_on(self) -> None:
        """Every answer that is due until the learner's is."""
        while not self.state.ended:
            due = rules.parties_due(self.state)
            if due[0] == self._learner:
                return
            self._answer(due[0], self._opponents[due[0]])

    def move(self, action: Action | None) -> None:
        """The learner's move; None for one that cannot be read."""
        if action is None:
            self._refuse(self._learner, RefusalCode.MALFORMED, 0)
        else:
            self._play(self._learner, action)

    def _answer(self, party: Party, sitting: Seat) -> None:
        """One opponent's move; where a language model could not be asked or gave none, as `agents.play` plays it."""
        turn = turn_for(self.state, party, sitting.spec, self.log)
        try:
            self._play(party, sitting.agent.act(turn))
        except Unplayable as answer:
            self._refuse(party, answer.code, answer.buyer)
        except NoAnswer:
            passed, before = rules.deadline_passed(party), self.state.version
            self.state = evolve(self.state, passed)
            self.log.extend(rules.number((passed,), after=before, at_ms=0))
            self._play(party, default_act(turn.observation))

    def _play(self, party: Party, action: Action) -> None:
        before = self.state.version
        try:
            events, self.state = rules.step(self.state, party, action)
        except IllegalAction as refused:
            events, self.state = rules.refuse(self.state, party, refused.code, buyer=action.buyer)
        self.log.extend(rules.number(events, after=before, at_ms=0))

    def _refuse(self, party: Party, code: RefusalCode, buyer: int) -> None:
        before = self.state.version
        events, self.state = rules.refuse(self.state, party, code, buyer=buyer)
        self.log.extend(rules.number(events, after=before, at_ms=0))


class _Asked(Exception):
    """The driver wants the learner's move."""


class _Clocked(Clockwork):
    """A negotiation on the simulated clock of `agents.play`, halted whenever the open seat is asked."""

    def __init__(self, table: Table) -> None:
        assert isinstance(table.scenario.mechanism, EventDriven)
        self._learner = table.learner
        self._chosen: list[Action | Unplayable] = []
        parties = [SELLER, buyer_party(1)]
        seats = {party: table.opponents.get(party, Seat(_NOBODY, _Open(self._chosen))) for party in parties}
        super().__init__(table.scenario, table.scenario.mechanism, seats, None)

    def go_on(self) -> None:
        """Until the learner is asked, or the end."""
        try:
            self.play()
        except _Asked:
            return

    def move(self, action: Action | None) -> None:
        """What the learner does; it lands later."""
        self._chosen.append(Unplayable(RefusalCode.MALFORMED, "unreadable") if action is None else action)
        super().ask(self._learner)

    def ask(self, party: Party) -> None:
        """Ask an opponent; halt where it is the learner's turn to decide."""
        if party == self._learner:
            raise _Asked
        super().ask(party)


class _Open:
    """The open seat: it does what the learner wrote."""

    def __init__(self, chosen: list[Action | Unplayable]) -> None:
        self._chosen = chosen

    def act(self, turn: Turn) -> Action:
        """The move that was written; one that cannot be read is raised."""
        move = self._chosen.pop()
        if isinstance(move, Unplayable):
            raise move
        return move


_NOBODY = AgentSpec(
    slug="learner",
    title="Learner",
    summary="A seat that is played in words.",
    kind=Kind.LEARNED,
    roles=tuple(Role),
    families=tuple(Family),
    build=lambda: _Open([]),
)


LEARNER_ROLE = Role.SELLER
"""The open seat where a game names no other."""
