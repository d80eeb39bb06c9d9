"""Exact worth against threshold buyers: of the known ladders, and of a policy's likeliest answers.

Here: the sequence of asks that a policy makes while everybody says no, valued without sampling, beside
the ladders of `markets.engine.optimum`. Not here: figures over drawn games (`training.evaluation`),
sampled play, buyers that bid.

Contract: against threshold buyers only refusals go on, so its sequence of asks is all there is to a
policy that always takes the likeliest answer. A refused or unreadable answer spends its turn and is no
ask. Nothing is drawn: looking uses up no split of games.
"""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import msgspec

from markets.engine import optimum, priors
from markets.engine.protocol import OfferMade, role_of
from training.config import Game
from training.environment import Episode, Table, draw_table
from training.sampling import play
from training.tokenizer import Codec

POOL = ("threshold",)
"""The opponents that all of this is about."""


def applies(game: Game) -> bool:
    """Whether the worth of a policy can be computed in this game."""
    return game.opponents == POOL and not game.catalogue


Asks = tuple[tuple[int, int], ...]
"""(buyer from 1, price in hundredths of the list price), in order."""


class Member(NamedTuple):
    """One game of a family."""

    buyers: int
    turns: int
    cost: float


class Exact(NamedTuple):
    """A policy's likeliest answers in one game, as shares of the first best."""

    member: Member
    asks: Asks
    share: float
    optimal: float
    """Of the best ladder."""
    linear: float
    """Of the linear ladder."""

    @property
    def of_optimum(self) -> float:
        """Share / the best ladder's share."""
        return self.share / self.optimal


@lru_cache(maxsize=1024)
def references(values: str, buyers: int, turns: int, cost: float) -> dict[str, float]:
    """Shares of the first best of the known ladders."""
    world: dict[str, Any] = {"spec": priors.parse_value_spec(values), "rho": 0.0, "buyers": buyers, "cost": cost}
    ladders = {
        "optimal_ladder": optimum.optimal_ladder(turns=turns, **world),
        "linear_ladder": optimum.linear_ladder(turns=turns, **world),
        "one_buyer": optimum.single_buyer_ladder(turns=turns, **world),
        "one_pass": optimum.one_pass(**world),
    }
    return {name: ladder.revenue_share or 0.0 for name, ladder in ladders.items()}


def greedy(model: Any, codec: Codec, game: Game, members: Sequence[Member]) -> list[Exact]:
    """What always taking the likeliest answer is worth in each member of a family."""
    trajectories = play(model, codec, [_refusing(game, member) for member in members], generator=None)
    return [
        valued(game, member, asked(trajectory.episode))
        for member, trajectory in zip(members, trajectories, strict=True)
    ]


def asked(episode: Episode) -> Asks:
    """Every ask of the learner's, or bid."""
    products = episode.scenario.products
    return tuple(
        (entry.event.buyer, round(100 * entry.event.price_cents / products[entry.event.product].list_price_cents))
        for entry in episode.log
        if isinstance(entry.event, OfferMade) and entry.event.by is role_of(episode.learner) and not entry.event.opening
    )


def valued(game: Game, member: Member, asks: Asks) -> Exact:
    """The exact worth of a sequence of asks."""
    spec = priors.parse_value_spec(game.values)
    world: dict[str, Any] = {"spec": spec, "rho": 0.0, "buyers": member.buyers, "cost": member.cost}
    first_best = optimum.first_best(**world)
    revenue = 0.0
    if asks:
        hundredth = priors.ladder_top(spec) / 100  # Without a catalogue the list price is the top of the prior.
        prices = [number * hundredth for _, number in asks]
        revenue, _, _ = optimum.evaluate(prices=prices, order=[buyer - 1 for buyer, _ in asks], **world)
    known = references(game.values, *member)
    return Exact(member, asks, revenue / first_best, known["optimal_ladder"], known["linear_ladder"])


def _refusing(game: Game, member: Member) -> Episode:
    """An episode whose buyers take nothing above one cent, and come to the table all the same."""
    own = msgspec.structs.replace(game, sizes=((member.buyers, member.turns),), costs=(member.cost,), opponents=POOL)
    table = draw_table(own, seed=0)
    worth_a_cent = tuple((1,) for _ in range(member.buyers))
    return Episode(Table(msgspec.structs.replace(table.scenario, buyer_values_cents=worth_a_cent), table.opponents))
