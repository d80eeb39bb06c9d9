"""Who sits opposite: which agents a room offers, and which take its seats.

Markets know agents by name only and agents do not know markets' rows; the site knows both.
"""

from agents import registry
from agents.base import AgentSpec, Kind
from markets.engine.protocol import SELLER, Party, Role, buyer_party
from markets.engine.scenarios import Family, decode_recipe
from markets.models import Market
from markets.services import AgentName, RoomError
from markets.setup import MarketSpec, SetupError, family_named


def opponents(*, role: Role, family: Family) -> tuple[AgentSpec, ...]:
    """Agents that a person can be offered on a seat of `role`, in the registry's order."""
    return tuple(
        spec
        for spec in registry.all_specs()
        if spec.kind is not Kind.REFERENCE and spec.can_play(role=role, family=family)
    )


def agents_for(market: Market, *, host: Role, opponent: str = "") -> dict[Party, AgentName]:
    """An agent for every seat but the host's.

    `opponent` is the slug chosen for the other side, empty for the market's own. Other buyers of a
    market with several are the market's own in any case. Where a language model is there to speak, the
    market's own agents opposite speak with it and make the moves they always make. Raises `RoomError`.
    """
    recipe = decode_recipe(market.recipe)
    if opponent:
        check_opponent(opponent, role=host.other, family=recipe.family)
    buyers = market.buyer_agents.split(",")
    chosen: dict[Party, AgentName] = {}
    if host is Role.BUYER:
        chosen[SELLER] = agent_name(opponent or registry.narrated(market.seller_agent))
    for buyer in range(1, recipe.buyers + 1):
        if host is Role.BUYER and buyer == 1:
            continue
        slug = buyers[(buyer - 1) % len(buyers)]
        if host is Role.SELLER:
            slug = opponent or registry.narrated(slug)
        chosen[buyer_party(buyer)] = agent_name(slug)
    return chosen


def check_opponent(slug: str, *, role: Role, family: Family) -> None:
    """Raise `RoomError` unless the agent can be met on such a seat."""
    try:
        spec = registry.get_open(slug)
    except registry.UnknownAgent as error:
        raise RoomError("unknown_agent", str(error)) from error
    if spec.kind is Kind.REFERENCE:
        raise RoomError("reference_agent", f"{spec.title} knows both values and cannot be played against.")
    if not spec.can_play(role=role, family=family):
        raise RoomError("wrong_seat", f"{spec.title} does not play {role.value} in this kind of market.")


def agent_name(slug: str) -> AgentName:
    """An agent as a room writes it down."""
    spec = registry.get(slug)
    return AgentName(slug=spec.slug, version=spec.version, name=spec.title)


def check_spec_agents(spec: MarketSpec) -> None:
    """Raise unless the agents that would fill a market's seats exist and can play there."""
    family = family_named(spec.family)
    for slug, role in (
        (spec.seller_agent, Role.SELLER),
        *((slug, Role.BUYER) for slug in spec.buyer_agents.split(",")),
    ):
        known = registry.get_open(slug)
        if known.kind is Kind.REFERENCE:
            raise SetupError(f"{slug!r} knows both values and cannot sit in a market.")
        if not known.can_play(role=role, family=family):
            raise SetupError(f"{slug!r} does not play {role.value} in a market of the family {family.value!r}.")
