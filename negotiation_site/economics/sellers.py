"""Sellers that only the proof needs: fixed asks that read no reply, and an honest middle.

Not here: agents that anybody may play against (`agents.registry`).
"""

from functools import partial

from agents.base import AgentSpec, Kind, Turn
from markets.engine.protocol import Action, Leave, MakeOffer, Role
from markets.engine.scenarios import Family


class Constants:
    """Asks every buyer once for each multiple of the list price, one multiple after the other."""

    def __init__(self, multiples: tuple[float, ...]) -> None:
        self._multiples = multiples

    def act(self, turn: Turn) -> Action:
        observation = turn.observation
        asked = sum(thread.my_messages for thread in observation.threads)
        if asked >= len(self._multiples) * observation.buyers:
            return Leave()
        product = observation.products[0]
        price_cents = round(self._multiples[asked // observation.buyers] * product.list_price_cents)
        return MakeOffer(buyer=asked % observation.buyers + 1, price_cents=price_cents)


class Middle:
    """Proposes the middle between both true values, as two truthful parties who split the difference do."""

    def act(self, turn: Turn) -> Action:
        assert turn.scenario is not None
        value, cost = turn.scenario.buyer_values_cents[0][0], turn.scenario.seller_values_cents[0]
        if value <= cost:
            return Leave()
        return MakeOffer(price_cents=(value + cost) // 2)


def _spec(slug: str, build: partial[Constants] | type[Middle], kind: Kind) -> AgentSpec:
    return AgentSpec(
        slug=slug,
        title=slug,
        summary="",
        kind=kind,
        roles=(Role.SELLER,),
        families=tuple(Family),
        build=build,
    )


BY_SLUG = {
    spec.slug: spec
    for spec in (
        _spec("list-price", partial(Constants, (1.0,)), Kind.SCRIPTED),
        _spec("above-list-then-list-price", partial(Constants, (1.08, 1.0)), Kind.SCRIPTED),
        _spec("middle", Middle, Kind.REFERENCE),
    )
}
