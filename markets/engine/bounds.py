"""How much a party could expect who knows only what is public: the yardstick beside "perfect".

A bound is an expected gain over negotiations like this one, against the counterpart named in its
`assumption`; a single lucky negotiation may beat it. The sequences behind it are `optimum`'s.
"""

from enum import StrEnum

import msgspec

from markets.engine import optimum
from markets.engine.money import Cents
from markets.engine.protocol import Party, Role, buyer_of, role_of
from markets.engine.scenarios import Alternating, EventDriven, Family, Scenario


class Assumption(StrEnum):
    """What the other side is taken to do."""

    THRESHOLD_BUYERS = "threshold_buyers"
    """Buyers take the first price at or below their value and nothing else."""
    THRESHOLD_SELLER = "threshold_seller"
    """The seller takes the first bid at or above its cost; nobody else buys first."""
    PRODUCTS_IN_TURN = "products_in_turn"
    """As threshold buyers, and the seller sells one unit after another."""


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

    For a seller of one unit this is the best falling ladder of asks (`optimum.optimal_ladder`), for
    a buyer the best rising ladder of bids. For a seller of several it is the gain of a plan that
    can be followed, unit after unit, and no proven maximum. Only offers that can still be answered
    count: in alternating rounds the last message of whoever did not open is none.
    """
    if role_of(party) is Role.BUYER:
        return _buyer_bound(scenario, buyer_of(party))
    units = _units(scenario)
    if len(scenario.products) > 1 or len(units) > 1:
        return _units_bound(scenario, units)
    buyers = tuple(range(scenario.buyers))
    turns = _turns(scenario, Role.SELLER)
    expected, here, _served = _ladder(scenario, product=0, buyers=buyers, turns=turns)
    return Bound(expected_cents=expected, here_cents=here, assumption=Assumption.THRESHOLD_BUYERS)


def _buyer_bound(scenario: Scenario, buyer: int) -> Bound:
    """Over the products the best; a buyer of several expects its share of the seller's turns."""
    turns = _turns(scenario, Role.BUYER)
    plans = [
        _bids(scenario, product=product, value_cents=value_cents, turns=turns)
        for product, value_cents in enumerate(scenario.buyer_values_cents[buyer - 1])
    ]
    expected, here = max(plans)
    return Bound(expected_cents=expected, here_cents=here, assumption=Assumption.THRESHOLD_SELLER)


def _bids(scenario: Scenario, *, product: int, value_cents: Cents, turns: int) -> tuple[Cents, Cents]:
    """Expected gain of the best rising bids on a product, and their gain against its true cost."""
    if turns == 0:
        return 0, 0
    scale = scenario.prior.scales_cents[product]
    plan = optimum.buyer_ladder(spec=scenario.prior.cost_spec, value=value_cents / scale, turns=turns)
    cost_cents = scenario.seller_values_cents[product]
    taken = next((bid for bid in plan.bids if round(bid * scale) >= cost_cents), None)
    here = 0 if taken is None else value_cents - round(taken * scale)
    return max(0, round(plan.surplus * scale)), max(0, here)


def _units(scenario: Scenario) -> tuple[int, ...]:
    """The product of every unit that there is a buyer and a turn for, dearest products first."""
    scales = scenario.prior.scales_cents
    dearest_first = sorted(range(len(scales)), key=scales.__getitem__, reverse=True)
    units = [product for product in dearest_first for _unit in range(scenario.products[product].stock)]
    return tuple(units[: min(scenario.buyers, _turns(scenario, Role.SELLER))])


def _units_bound(scenario: Scenario, units: tuple[int, ...]) -> Bound:
    """Unit after unit, an equal part of the turns each, to the buyers not yet served."""
    turns = _turns(scenario, Role.SELLER) // max(1, len(units))
    expected_cents = here_cents = 0
    free = tuple(range(scenario.buyers))
    for place, product in enumerate(units):
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
    if turns == 0:
        return 0, 0, None
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


def _turns(scenario: Scenario, role: Role) -> int:
    """Offers of one party that can still be answered; 0 is possible in a single round."""
    mechanism = scenario.mechanism
    if isinstance(mechanism, Alternating):
        return mechanism.rounds - (mechanism.opener is not role)
    if isinstance(mechanism, EventDriven):
        return mechanism.rounds
    return mechanism.turns if role is Role.SELLER else -(-mechanism.turns // scenario.buyers)
