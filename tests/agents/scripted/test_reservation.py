"""No agent makes or takes an offer that costs it money, against an opponent that offers anything at all.

Without this a share would hide losses, and a guardrail that refuses such moves would decide games.
"""

import msgspec
import pytest

from agents import registry
from agents.base import Kind
from agents.simulation import simulate
from markets.engine.protocol import MoveRefused, OfferAccepted, OfferMade, Role
from markets.engine.scenarios import EventDriven, Family, Recipe
from tests.agents.tables import SHOP, listed_market

MARKETS = {
    "bilateral": listed_market(Family.BILATERAL),
    "buyer-opens": listed_market(Family.BILATERAL, turns=3, opener=Role.BUYER),
    "event-driven": msgspec.structs.replace(
        listed_market(Family.BILATERAL), mechanism=EventDriven(rounds=6, events=40)
    ),
    "multi-buyer": listed_market(Family.MULTI_BUYER),
    "catalogue": listed_market(Family.CATALOGUE),
}
SEATED = [
    pytest.param(market, spec.slug, role, id=f"{market}-{spec.slug}-{role.value}")
    for market, recipe in MARKETS.items()
    for spec in registry.all_specs()
    for role in spec.roles
    if spec.kind is not Kind.LEARNED and spec.can_play(role=role, family=recipe.family)
]


def losses(recipe: Recipe, slug: str, role: Role, opponent: str) -> tuple[int, int, set[str]]:
    """(moves at a loss, offers and acceptances in all, codes of refusals) of one agent over a few games."""
    seller, buyer = (slug, opponent) if role is Role.SELLER else (opponent, slug)
    lost, made, refused = 0, 0, set[str]()
    run = simulate(
        recipe=recipe,
        pool=SHOP,
        seller=registry.get(seller),
        buyers=[registry.get(buyer)],
        episodes=40 if slug in registry.NEGATIVE_CONTROLS else 5,
        seed=11,
    )
    for scenario, played in run:
        assert played.state.ended
        for entry in played.log:
            event = entry.event
            if isinstance(event, MoveRefused) and event.by is role:
                refused.add(event.code)
            if not isinstance(event, OfferMade | OfferAccepted) or event.by is not role:
                continue
            if isinstance(event, OfferMade) and event.opening:
                continue
            own = scenario.reservation_value_cents(role=role, buyer=event.buyer, product=event.product)
            gain = own - event.price_cents if role is Role.BUYER else event.price_cents - own
            lost, made = lost + (gain < 0), made + 1
    return lost, made, refused


@pytest.mark.parametrize(("market", "slug", "role"), SEATED)
def test_nobody_loses_by_a_move_of_its_own_but_the_control(market: str, slug: str, role: Role) -> None:
    lost, _, refused = losses(MARKETS[market], slug, role, "zi-u")
    if slug == "zi-u":
        assert lost > 0
    else:  # the other control, which does what it is told, is told nothing here
        assert lost == 0
    # On a simulated clock an offer can be gone when its acceptance lands; nowhere else may anything be refused.
    assert market == "event-driven" or not refused


@pytest.mark.parametrize("slug", ["linear", "zeuthen", "micro", "stahl", "tit-for-tat", "aspiration"])
def test_bargainers_come_to_terms_on_a_simulated_clock(slug: str) -> None:
    """Where nobody has to wait for an answer, the rounds that the parties are told of are the clock."""
    market = MARKETS["event-driven"]
    deals = 0
    run = simulate(
        recipe=market, pool=SHOP, seller=registry.get(slug), buyers=[registry.get(slug)], episodes=30, seed=3
    )
    for _, played in run:
        deals += bool(played.state.deals)
    assert deals > 20
