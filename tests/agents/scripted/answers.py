"""What one agent says to offers that a test makes by hand, in a bilateral game with round numbers.

Here: bids against given asks and asks against given bids. Not here: whole games between agents
(`tests.agents.tables`).
"""

from agents.base import AgentSpec
from markets.engine.protocol import MakeOffer, Role
from markets.engine.scenarios import Scenario
from tests.agents.tables import Opponent
from tests.markets.engine.factories import B1, SELLER, Table, bilateral, offer


def buyer_bids(slug: str, scenario: Scenario, asks: list[int]) -> list[int]:
    """Bids of a buyer against given asks, until it does something else."""
    table = Table(scenario)
    buyer = Opponent(table, B1, slug)
    bids = []
    for ask in asks:
        table.play(SELLER, offer(ask, to=1))
        action = buyer.answer()
        if not isinstance(action, MakeOffer):
            break
        bids.append(action.price_cents)
    return bids


def seller_asks(slug: str | AgentSpec, scenario: Scenario, bids: list[int]) -> list[int]:
    """Asks of a seller who opens, against given bids, until it does something else."""
    table = Table(scenario)
    seller = Opponent(table, SELLER, slug)
    asks = []
    for bid in [*bids, None]:
        action = seller.answer()
        if not isinstance(action, MakeOffer):
            break
        asks.append(action.price_cents)
        if bid is None or table.state.ended:
            break
        table.play(B1, offer(bid))
    return asks


def scenario_for(seed: int, *, opener: Role = Role.SELLER, rounds: int = 8, **changes: int) -> Scenario:
    return bilateral(opener=opener, rounds=rounds, value=9_000, cost=3_000, seed=seed, **changes)
