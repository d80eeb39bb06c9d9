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
    """Expected gain over negotiations with these own values and this prior."""
    here_cents: Cents
    """What the same plan would have gained in this very negotiation; never above what full
    information could."""
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
    buyers = tuple(range(scenario.buyers))
    expected, here, _served = _ladder(scenario, product=0, buyers=buyers, turns=_turns(scenario))
    return Bound(expected_cents=expected, here_cents=here, assumption=Assumption.THRESHOLD_BUYERS)


def _buyer_bound(scenario: Scenario, buyer: int) -> Bound:
    """Over the products the best; a buyer of several expects its share of the seller's turns."""
    turns = _turns(scenario)
    if not isinstance(scenario.mechanism, Alternating):
        turns = -(-turns // scenario.buyers)
    plans = [
        _bids(scenario, product=product, value_cents=value_cents, turns=max(1, turns))
        for product, value_cents in enumerate(scenario.buyer_values_cents[buyer - 1])
    ]
    expected, here = max(plans)
    return Bound(expected_cents=expected, here_cents=here, assumption=Assumption.THRESHOLD_SELLER)


def _bids(scenario: Scenario, *, product: int, value_cents: Cents, turns: int) -> tuple[Cents, Cents]:
    """Expected gain of the best rising bids on a product, and their gain against its true cost."""
    scale = scenario.prior.scales_cents[product]
    plan = optimum.buyer_ladder(
        spec=scenario.prior.cost_spec, value=value_cents / scale, turns=turns
    )
    cost_cents = scenario.seller_values_cents[product]
    taken = next((bid for bid in plan.bids if round(bid * scale) >= cost_cents), None)
    here = 0 if taken is None else value_cents - round(taken * scale)
    return max(0, round(plan.surplus * scale)), max(0, here)


def _catalogue_bound(scenario: Scenario) -> Bound:
    """Dearest product first, an equal part of the turns each, to the buyers not yet served."""
    products = len(scenario.products)
    turns = max(1, _turns(scenario) // products)
    ordered = sorted(
        range(products), key=lambda product: scenario.prior.scales_cents[product], reverse=True
    )
    expected_cents = here_cents = 0
    free = tuple(range(scenario.buyers))
    for place, product in enumerate(ordered[: scenario.buyers]):
        expected, _here, _served = _ladder(
            scenario, product=product, buyers=tuple(range(scenario.buyers - place)), turns=turns
        )
        expected_cents += expected
        if free:
            _expected, here, served = _ladder(scenario, product=product, buyers=free, turns=turns)
            here_cents += here
            free = tuple(buyer for buyer in free if buyer != served)
    return Bound(
        expected_cents=expected_cents,
        here_cents=here_cents,
        assumption=Assumption.PRODUCTS_IN_TURN,
    )


def _ladder(
    scenario: Scenario, *, product: int, buyers: tuple[int, ...], turns: int
) -> tuple[Cents, Cents, int | None]:
    """Expected gain of the best ladder, its gain here, and the (0-based) buyer it serves here."""
    prior = scenario.prior
    scale = prior.scales_cents[product]
    cost_cents = scenario.seller_values_cents[product]
    ladder = optimum.optimal_ladder(
        spec=prior.value_spec,
        rho=prior.rho if scenario.family is not Family.CATALOGUE else 0.0,
        buyers=len(buyers),
        turns=turns,
        cost=cost_cents / scale,
    )
    expected = max(0, round(ladder.revenue * scale))
    for place, price in zip(ladder.order, ladder.prices, strict=True):
        price_cents = round(price * scale)
        buyer = buyers[place]
        if scenario.buyer_values_cents[buyer][product] >= price_cents >= cost_cents:
            return expected, price_cents - cost_cents, buyer
    return expected, 0, None


def _turns(scenario: Scenario) -> int:
    mechanism = scenario.mechanism
    return mechanism.rounds if isinstance(mechanism, Alternating) else mechanism.turns
