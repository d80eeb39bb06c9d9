"""Rows that hold for every log: how the figures of an episode hang together.

The papers quote two products (arXiv 2604.09855 and 2607.05863); the rest are ours.
"""

from collections.abc import Iterator, Mapping

from markets.engine import priors
from markets.engine.scenarios import Family, Recipe, SellerTurns
from negotiation_site.economics.playing import Job, Sums, of_recipe, over
from negotiation_site.economics.rows import Row, Scale

MULTI_BUYER = "multi_buyer"
CATALOGUE = "catalogue"


def _recipe(family: Family) -> Recipe:
    cost = priors.UniformSpec(low=0, high=90)
    return Recipe(
        family=family,
        mechanism=SellerTurns(8),
        buyers=3,
        products=3 if family is Family.CATALOGUE else 1,
        value_spec=priors.UniformSpec(low=100, high=200),
        cost_spec=cost,
        cost_prior=cost,
        unit_is_money=True,
        opening_bid_share=None,
    )


def jobs(scale: Scale) -> Mapping[str, Job]:
    """Games in which nobody breaks a rule, nothing is clipped and trade can always gain."""
    return {
        MULTI_BUYER: Job(of_recipe(_recipe(Family.MULTI_BUYER)), "falling-ladder", scale.part(0.05), buyers="logit"),
        CATALOGUE: Job(of_recipe(_recipe(Family.CATALOGUE)), "greedy", scale.part(0.05), buyers="linear"),
    }


def rows(played: Mapping[str, Sums], scale: Scale) -> Iterator[Row]:
    """Every row of the module."""
    one, several = played[MULTI_BUYER], played[CATALOGUE]
    share = over(one.deal_shares, one.priced_deals) or 0.0
    reward = over(one.rewards, one.games) or 0.0
    quality, extraction = several.welfare_share or 0.0, several.seller_share or 0.0
    profit_part = over(several.seller_cents, several.welfare_cents) or 0.0
    for what, left, right in (
        ("mean reward over deal rate x mean share of a deal", reward, (one.deal_rate or 0.0) * share),
        ("extraction over allocation quality x profit of the welfare", extraction, quality * profit_part),
        ("both sides' surplus over welfare", several.seller_cents + several.buyer_cents, several.welfare_cents),
    ):
        yield Row(name=f"identity/{what}/played", reference=1.0, measured=over(left, right), tolerance=1e-9)
    for paper, rate, ratio, reference in (
        ("arXiv 2604.09855", 0.918, 0.4380, 0.4021),
        ("arXiv 2607.05863", 0.828, 0.700, 0.580),
    ):
        yield Row(
            name=f"identity/deal rate x ratio that {paper} quotes",
            reference=reference,
            measured=rate * ratio,
            tolerance=0.0005,
        )
