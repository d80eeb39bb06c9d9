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

from agents import registry
from agents.base import AgentSpec, NoAnswer, Unplayable, default_act
from agents.learned import dialogue
from agents.learned.dialogue import Message
from agents.play import Seat, seat, turn_for
from markets.engine import priors, rewards, rules
from markets.engine.observation import Observation, SeenEvent, observe, seen_events
from markets.engine.protocol import SELLER, Action, IllegalAction, LogEntry, Party, RefusalCode, Role, buyer_party
from markets.engine.scenarios import Family, Recipe, Scenario, SellerTurns, sample
from markets.engine.seeds import derive_seed
from markets.engine.state import evolve, initial
from training.config import Game


class Table(NamedTuple):
    """One drawn game: what is at stake and who sits opposite."""

    scenario: Scenario
    opponents: dict[Party, Seat]


def recipe(game: Game, *, buyers: int, turns: int, cost: float) -> Recipe:
    """The recipe of one member of a family of games."""
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


def draw_table(game: Game, seed: int) -> Table:
    """The game of a seed: its size and cost, its hidden values, its opponents."""
    rng = random.Random(derive_seed("game", seed))
    buyers, turns = rng.choice([tuple(pair) for pair in game.sizes])
    cost = rng.choice(game.costs)
    scenario = sample(recipe(game, buyers=buyers, turns=turns, cost=cost), [], derive_seed("episode", seed))
    pool = [registry.get(slug) for slug in game.opponents]
    opponents = {buyer_party(buyer): seat(_drawn(rng, pool, game.weights)) for buyer in range(1, buyers + 1)}
    return Table(scenario, opponents)


def _drawn(rng: random.Random, pool: Sequence[AgentSpec], weights: Sequence[float]) -> AgentSpec:
    """One of the pool; equal chances take the draw that they always took."""
    return rng.choices(pool, weights)[0] if weights else rng.choice(pool)


class Episode:
    """One negotiation in progress, the seller's seat open to a learner."""

    def __init__(self, table: Table) -> None:
        self.scenario = table.scenario
        self._opponents = table.opponents
        self.state = initial(table.scenario)
        self._log: list[LogEntry] = []
        self._shown = 0
        events = rules.opening_events(self.state)
        for event in events:
            self.state = evolve(self.state, event)
        self._log.extend(rules.number(events, after=0, at_ms=0))
        self.observation = self._observe()

    @property
    def log(self) -> tuple[LogEntry, ...]:
        """The event log so far."""
        return tuple(self._log)

    @property
    def over(self) -> bool:
        """Whether the negotiation has ended."""
        return self.state.ended

    def opening(self) -> tuple[Message, ...]:
        """The messages before the learner's first move."""
        return dialogue.opening(self.observation, self._news())

    def act(self, words: Sequence[str] | None) -> Message | None:
        """Play the learner's answer and the replies to it; the next message, None at the end.

        `words` without the end marker; None for an answer that never came to its end.
        """
        action = None if words is None else dialogue.read(self.observation, words)
        if action is None:
            self._refuse(RefusalCode.MALFORMED, 0)
        else:
            self._play(SELLER, action)
        self._answers()
        if self.over:
            return None
        self.observation = self._observe()
        left = self.observation.turns_left
        assert left is not None
        return dialogue.heard(self.observation, self._news(), turns_left=left)

    def reward(self, function: rewards.RewardFunction) -> float:
        """What the episode is worth to the learner, from its log."""
        return function(self.scenario, self.log)

    def _observe(self) -> Observation:
        return observe(self.state, SELLER)

    def _news(self) -> list[SeenEvent]:
        fresh = self._log[self._shown :]
        self._shown = len(self._log)
        return list(seen_events(self.scenario, fresh, SELLER))

    def _answers(self) -> None:
        """Every answer that is due, as `agents.play` orders them."""
        while not self.over:
            due = rules.parties_due(self.state)
            if due[0] == SELLER:
                return
            self._answer(due[0], self._opponents[due[0]])

    def _answer(self, party: Party, sitting: Seat) -> None:
        """One opponent's move; one that cannot be read or does not come is what it is in a simulation."""
        turn = turn_for(self.state, party, sitting.spec, self._log)
        try:
            self._play(party, sitting.agent.act(turn))
        except Unplayable as answer:
            before = self.state.version
            events, self.state = rules.refuse(self.state, party, answer.code, buyer=answer.buyer)
            self._log.extend(rules.number(events, after=before, at_ms=0))
        except NoAnswer:
            passed = rules.deadline_passed(party)
            self._log.extend(rules.number((passed,), after=self.state.version, at_ms=0))
            self.state = evolve(self.state, passed)
            self._play(party, default_act(turn.observation))

    def _play(self, party: Party, action: Action) -> None:
        before = self.state.version
        try:
            events, self.state = rules.step(self.state, party, action)
        except IllegalAction as refused:
            events, self.state = rules.refuse(self.state, party, refused.code, buyer=action.buyer)
        self._log.extend(rules.number(events, after=before, at_ms=0))

    def _refuse(self, code: RefusalCode, buyer: int) -> None:
        before = self.state.version
        events, self.state = rules.refuse(self.state, SELLER, code, buyer=buyer)
        self._log.extend(rules.number(events, after=before, at_ms=0))


LEARNER_ROLE = Role.SELLER
"""The open seat."""
