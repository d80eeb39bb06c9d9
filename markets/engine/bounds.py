"""How much a party could expect who knows only what is public: the yardstick beside "perfect".

A bound is an expected gain over negotiations like this one, against the counterpart named in its
`assumption`; a single lucky negotiation may beat it. The sequences behind it are `optimum`'s.
"""

from enum import StrEnum

import msgspec

from markets.engine import optimum
from markets.engine.money import Cents
from markets.engine.protocol import Party, Role, buyer_of, role_of
from markets.engine.scenarios import Alternating, Family, Scenario


class Assumption(StrEnum):
    """What the other side is taken to do."""

    THRESHOLD_BUYERS = "threshold_buyers"
    """Buyers take the first price at or below their value and nothing else."""
    THRESHOLD_SELLER = "threshold_seller"
    """The seller takes the first bid at or above its cost; nobody else buys first."""
    PRODUCTS_IN_TURN = "products_in_turn"
    """As threshold buyers, and the seller sells one product after another."""


class Bound(msgspec.Struct, frozen=True, kw_only=True):
    """An expected gain and what it assumes."""

    expected_cents: Cents
    assumption: Assumption


def knowing_prior(scenario: Scenario, party: Party) -> Bound:
    """What the best plan that knows own values and public priors expects to gain.

    For a seller of one product this is the best falling ladder of asks (`optimum.optimal_ladder`),
    for a buyer the best rising ladder of bids. For a catalogue it is the gain of a plan that can
    be followed, product after product, and no proven maximum.
    """
    if role_of(party) is Role.BUYER:
        return _buyer_bound(scenario, buyer_of(party))
    if scenario.family is Family.CATALOGUE:
        return _catalogue_bound(scenario)
    expected = _ladder_cents(scenario, product=0, buyers=scenario.buyers, turns=_turns(scenario))
    return Bound(expected_cents=expected, assumption=Assumption.THRESHOLD_BUYERS)


def _buyer_bound(scenario: Scenario, buyer: int) -> Bound:
    """Over the products the best; a buyer of several expects its share of the seller's turns."""
    turns = _turns(scenario)
    if not isinstance(scenario.mechanism, Alternating):
        turns = -(-turns // scenario.buyers)
    prior = scenario.prior
    gains = []
    for product, value_cents in enumerate(scenario.buyer_values_cents[buyer - 1]):
        scale = prior.scales_cents[product]
        plan = optimum.buyer_ladder(
            spec=prior.cost_spec, value=value_cents / scale, turns=max(1, turns)
        )
        gains.append(round(plan.surplus * scale))
    return Bound(expected_cents=max(0, *gains, 0), assumption=Assumption.THRESHOLD_SELLER)


def _catalogue_bound(scenario: Scenario) -> Bound:
    """Products by falling gain, an equal part of the turns each, one buyer fewer every time."""
    products = len(scenario.products)
    turns = max(1, _turns(scenario) // products)
    ordered = sorted(
        range(products),
        key=lambda product: scenario.prior.scales_cents[product],
        reverse=True,
    )
    expected = sum(
        _ladder_cents(scenario, product=product, buyers=scenario.buyers - place, turns=turns)
        for place, product in enumerate(ordered)
        if place < scenario.buyers
    )
    return Bound(expected_cents=expected, assumption=Assumption.PRODUCTS_IN_TURN)


def _ladder_cents(scenario: Scenario, *, product: int, buyers: int, turns: int) -> Cents:
    prior = scenario.prior
    scale = prior.scales_cents[product]
    ladder = optimum.optimal_ladder(
        spec=prior.value_spec,
        rho=prior.rho if scenario.family is not Family.CATALOGUE else 0.0,
        buyers=buyers,
        turns=turns,
        cost=scenario.seller_values_cents[product] / scale,
    )
    return max(0, round(ladder.revenue * scale))


def _turns(scenario: Scenario) -> int:
    mechanism = scenario.mechanism
    return mechanism.rounds if isinstance(mechanism, Alternating) else mechanism.turns
