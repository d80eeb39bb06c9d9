"""Markets, seats and single questions for the agents' tests.

Here: recipes with round numbers, and `Opponent`, which asks one agent for its moves while the test
plays the other side by hand. Not here: scenarios written field by field
(`tests.markets.engine.factories`) or at random (`tests.markets.engine.games`).
"""

from collections.abc import Sequence
from typing import Any

from agents import registry
from agents.base import AgentSpec
from agents.play import turn_for
from agents.simulation import report, simulate
from markets.engine import priors
from markets.engine.protocol import Action, LogEntry, MakeOffer, Party, Role
from markets.engine.scenarios import Alternating, Family, ProductFacts, Recipe, SellerTurns
from markets.engine.state import State
from tests.markets.engine.factories import Table

FREE = priors.ConstantSpec(value=0)
UNIFORM = priors.UniformSpec(low=0, high=100)
"""U[0, 1] in a currency with a hundred steps of one unit, so that cents do not matter."""

LOGNORMAL = priors.LogNormalSpec(median=100, sigma=0.5)


def money_market(
    *,
    buyers: int = 4,
    turns: int = 8,
    values: priors.ValueSpec = UNIFORM,
    cost: priors.UniformSpec | priors.ConstantSpec = FREE,
    **changes: Any,
) -> Recipe:
    """Several buyers for one thing, values in money and independent, as in the theory tables."""
    return Recipe(
        family=Family.MULTI_BUYER,
        mechanism=SellerTurns(turns),
        buyers=buyers,
        value_spec=values,
        cost_spec=cost,
        cost_prior=cost,
        unit_is_money=True,
        **changes,
    )


def listed_market(family: Family, *, turns: int | None = None, opener: Role = Role.SELLER, **changes: Any) -> Recipe:
    """The bands over a catalogue, costs between a tenth and half of the list price."""
    cost = priors.UniformSpec(low=0.1, high=0.5)
    many = family is not Family.BILATERAL
    settings: dict[str, Any] = {
        "buyers": 3 if many else 1,
        "products": 3 if family is Family.CATALOGUE else 1,
        "value_spec": priors.BandsSpec(),
        "cost_spec": cost,
        "cost_prior": cost,
    }
    return Recipe(
        family=family,
        mechanism=SellerTurns(turns or 12) if many else Alternating(turns or 6, opener),
        **{**settings, **changes},
    )


SHOP = tuple(
    ProductFacts(
        sku=f"sku-{number}",
        title=title,
        list_price_cents=2_000 + 977 * number,
        lowest_price_cents=1_000,
        highest_price_cents=40_000,
    )
    for number, title in enumerate(
        (
            "Canon EOS 80D Camera",
            "Desk lamp",
            "Set of 24 {coloured} pencils",
            "Extraordinarily long-winded title of a 12-piece stainless steel cookware set with lids",
            "Chair",
            "Bicycle, 28 inch",
            "Kettle 1.7 l",
            "Ink 5% off",
        )
    )
)


def figures(
    recipe: Recipe, *, seller: str, buyers: str | Sequence[str], episodes: int, seed: int = 1
) -> dict[str, Any]:
    """What `simulate` reports for agents given by slug."""
    slugs = [buyers] if isinstance(buyers, str) else list(buyers)
    games = simulate(
        recipe=recipe,
        pool=() if recipe.unit_is_money else SHOP,
        seller=registry.get(seller),
        buyers=[registry.get(slug) for slug in slugs],
        episodes=episodes,
        seed=seed,
    )
    return report(games)


def move(state: State, party: Party, spec: AgentSpec, log: Sequence[LogEntry]) -> Action:
    """What the agent on that chair does now, after `log`."""
    return spec.build().act(turn_for(state, party, spec, log))


class Opponent:
    """An agent on one chair of a table, while the test moves the others."""

    def __init__(self, table: Table, party: Party, spec: AgentSpec | str) -> None:
        self.table = table
        self.party = party
        self.spec = registry.get(spec) if isinstance(spec, str) else spec

    def answer(self) -> Action:
        """The agent's move, made at the table."""
        action = move(self.table.state, self.party, self.spec, self.table.log)
        self.table.play(self.party, action)
        return action

    def price(self) -> int:
        """The price of the agent's move, which must be an offer."""
        action = self.answer()
        assert isinstance(action, MakeOffer), f"{self.spec.slug} did not offer but {action!r}"
        return action.price_cents


def sellers(family: Family) -> list[str]:
    """Slugs of those who can sell in a family."""
    return [spec.slug for spec in registry.all_specs() if spec.can_play(role=Role.SELLER, family=family)]


def buyers(family: Family) -> list[str]:
    """Slugs of those who can buy in a family."""
    return [spec.slug for spec in registry.all_specs() if spec.can_play(role=Role.BUYER, family=family)]
