"""Rewards of whole episodes: pure functions of a scenario and its event log.

Here: what training maximises, by name. Not here: metrics that describe an episode (`metrics`), and
how a reward is spread over turns (`training`). `rlvr_*` follow arXiv 2604.09855 (buyer),
2607.05863 (several buyers) and 2609.33289 (catalogue) as far as these are known; what is our own
reading is marked INFERRED.

Contract: a reward looks at the economic log alone, is a fraction of a surplus in [-1, 1], and never
raises on an episode that the rules let happen. It is defined for every episode, also where trade can
gain nothing and a metric would be None. A message that could not be read is a `MoveRefused` event
and is scored like any other move. P is the price of a deal, B a buyer's value, C the seller's cost.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeAlias

from markets.engine import metrics
from markets.engine.money import Cents
from markets.engine.protocol import LogEntry, MoveRefused, OfferAccepted, OfferMade, RefusalCode, Role
from markets.engine.scenarios import Scenario

Log: TypeAlias = Sequence[LogEntry]
RewardFunction: TypeAlias = Callable[[Scenario, Log], float]

UNIT_CENTS = 100
"""One currency unit: joint surpluses below it count as this much, so that no ratio explodes."""


class UnknownReward(LookupError):
    """No reward has this name for this role; the message lists those that do."""


def rlvr_buyer(scenario: Scenario, log: Log) -> float:
    """The buyer's part of the surplus of a bilateral deal; breaches cost everything.

    Formula: clip((B - P) / max(|B - C|, 100 cents), -1, 1) for a deal at P; 0 without a deal; -1 for
    any own bid or deal above B and for any refused or unreadable message of the buyer's.
    Unit: fraction of the joint surplus. Range: [-1, 1]. Source: arXiv 2604.09855.
    """
    value, cost = scenario.buyer_values_cents[0][0], scenario.seller_values_cents[0]
    for entry in log:
        match entry.event:
            case MoveRefused(by=Role.BUYER):
                return -1.0
            case OfferMade(by=Role.BUYER, price_cents=price) if price > value:
                return -1.0
    deals = _deals(log)
    if not deals:
        return 0.0
    price = deals[0].price_cents
    return -1.0 if price > value else _clip((value - price) / max(abs(value - cost), UNIT_CENTS))


def rlvr_seller_multi(scenario: Scenario, log: Log) -> float:
    """The seller's part of what the best of several buyers could have paid for the one product.

    Formula: clip((P - C) / (max_k B_k - C), -1, 1) for a deal at P; 0 without a deal; -1 for a deal
    below C or an unreadable message. Where no buyer's value exceeds C: 0 without a deal and -1 with
    one; such an episode has no ratio, and metrics leave it out. Unit: fraction of the joint surplus
    with the highest value. Range: [-1, 1]. Source: arXiv 2607.05863; INFERRED, supported by its
    reward being deal rate x ratio.
    """
    if _malformed(log, Role.SELLER):
        return -1.0
    deals = _deals(log)
    if not deals:
        return 0.0
    cost = scenario.seller_values_cents[0]
    joint = max(values[0] for values in scenario.buyer_values_cents) - cost
    gain = deals[0].price_cents - cost
    if joint <= 0 or gain < 0:
        return -1.0
    return _clip(gain / joint)


def rlvr_seller_catalogue(scenario: Scenario, log: Log) -> float:
    """The seller's profit over all deals as a part of the best matching of products to buyers.

    Formula: clip(sum over deals of (P - C_j) / W*, -1, 1), W* the maximum-weight matching of
    max(0, V_ij - C_j) under unit demand and stock; 0 without a deal; -1 for any deal below its cost
    or an unreadable message. Where W* is 0: 0 without a deal and -1 with one. Unit: fraction of the
    first best. Range: [-1, 1]. Source: arXiv 2609.33289; INFERRED.
    """
    if _malformed(log, Role.SELLER):
        return -1.0
    gains = [deal.price_cents - scenario.seller_values_cents[deal.product] for deal in _deals(log)]
    if not gains:
        return 0.0
    first_best, _ = metrics.best_assignment(scenario)
    if min(gains) < 0 or first_best <= 0:
        return -1.0
    return _clip(sum(gains) / first_best)


def catalogue_matching(scenario: Scenario, log: Log) -> float:
    """Half for what the seller gets of the best matching, half for how good the matching is that it makes.

    Formula: the mean of `rlvr_seller_catalogue` and sum over deals of (V_ij - C_j) / W*; wherever the former is -1 or
    there is no deal, that. Unit: fraction of the first best. Range: [-1, 1]. Source: ours. A seller of few messages
    that is paid by its profit alone leaves buyers out for the sake of dear ones; half of what it forgoes is welfare.
    """
    own = rlvr_seller_catalogue(scenario, log)
    deals = _deals(log)
    if own < 0 or not deals:
        return own
    first_best, _ = metrics.best_assignment(scenario)
    made = sum(
        scenario.buyer_values_cents[deal.buyer - 1][deal.product] - scenario.seller_values_cents[deal.product]
        for deal in deals
    )
    return (own + _clip(made / first_best)) / 2


def seller_profit(scenario: Scenario, log: Log) -> float:
    """The seller's profit on a public scale.

    Formula: clip(sum over deals of (P - C_j) / sum over products of list price x stock, -1, 1); 0
    without a deal; -1 for an unreadable message. Unit: fraction of the list prices of all units for
    sale. Range: [-1, 1]. Source: ours. Its mean is expected profit on a public scale, which is what a ladder of `optimum` maximises;
    `rlvr_seller_multi` weighs every scenario by its hidden best value instead and has another optimum.
    """
    if _malformed(log, Role.SELLER):
        return -1.0
    scale: Cents = sum(product.list_price_cents * product.stock for product in scenario.products)
    gains = sum(deal.price_cents - scenario.seller_values_cents[deal.product] for deal in _deals(log))
    return _clip(gains / scale)


def bilateral_share(scenario: Scenario, log: Log, *, role: Role) -> float:
    """One side's share of the joint surplus of a bilateral deal.

    Formula: own surplus / (b - s) for a deal, clipped to [-1, 1]; 0 without a deal; -1 for an
    unreadable message. Where b - s is not positive, own surplus / max(|b - s|, 100 cents), so that a
    loss is negative. Keeps a known flaw on purpose: walking away where nothing can be gained earns
    nothing. Unit: fraction of the joint surplus. Range: [-1, 1]. Source: after arXiv 2604.16472;
    INFERRED.
    """
    if _malformed(log, role):
        return -1.0
    deals = _deals(log)
    if not deals:
        return 0.0
    value, cost = scenario.buyer_values_cents[0][0], scenario.seller_values_cents[0]
    price = deals[0].price_cents
    own = metrics.surplus_cents(
        role=role, price_cents=price, reservation_value_cents=value if role is Role.BUYER else cost
    )
    joint = value - cost
    return _clip(own / (joint if joint > 0 else max(-joint, UNIT_CENTS)))


def bilateral_share_batna(
    scenario: Scenario, log: Log, *, role: Role, tau: float = 0.1, kappa: float = 0.2, omega: float = 0.2
) -> float:
    """`bilateral_share` that pays for walking away where it is right, and not for giving all away.

    Formula: a deal with a share below `tau` scores -`kappa`, or its share where that is lower still,
    so that losing more is never better; ending without a deal where b <= s scores +`omega`; anything
    else as `bilateral_share`. Unit: fraction of the joint surplus. Range: [-1, 1] for parameters in
    it. Source: ours.
    """
    share = bilateral_share(scenario, log, role=role)
    if _deals(log):
        return share if share >= tau else min(share, -kappa)
    gains_from_trade = scenario.buyer_values_cents[0][0] > scenario.seller_values_cents[0]
    return omega if share == 0.0 and not gains_from_trade else share


_BY_NAME: dict[tuple[str, Role], RewardFunction] = {
    ("rlvr_buyer", Role.BUYER): rlvr_buyer,
    ("rlvr_seller_multi", Role.SELLER): rlvr_seller_multi,
    ("rlvr_seller_catalogue", Role.SELLER): rlvr_seller_catalogue,
    ("catalogue_matching", Role.SELLER): catalogue_matching,
    ("seller_profit", Role.SELLER): seller_profit,
    **{("bilateral_share", role): partial(bilateral_share, role=role) for role in Role},
    **{("bilateral_share_batna", role): partial(bilateral_share_batna, role=role) for role in Role},
}


def by_name(name: str, *, role: Role) -> RewardFunction:
    """The reward called `name` for a learner on `role`'s side. Raises `UnknownReward`."""
    try:
        return _BY_NAME[name, role]
    except KeyError:
        known = ", ".join(sorted(known for known, of in _BY_NAME if of is role))
        raise UnknownReward(f"There is no reward {name!r} for a {role.value}; there are {known}.") from None


def _deals(log: Log) -> list[OfferAccepted]:
    return [entry.event for entry in log if isinstance(entry.event, OfferAccepted)]


def _malformed(log: Log, role: Role) -> bool:
    return any(
        isinstance(entry.event, MoveRefused)
        and entry.event.by is role
        and entry.event.code == RefusalCode.MALFORMED.value
        for entry in log
    )


def _clip(number: float) -> float:
    return max(-1.0, min(1.0, number))
