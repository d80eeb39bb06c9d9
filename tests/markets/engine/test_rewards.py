"""Rewards: what a learner is paid for. A wrong line here teaches every later policy the wrong game."""

from collections.abc import Sequence

import pytest

from markets.engine import metrics, priors, rewards
from markets.engine.protocol import (
    SELLER,
    AcceptOffer,
    Action,
    LogEntry,
    MakeOffer,
    Party,
    RefusalCode,
    Role,
)
from markets.engine.rules import number, refuse, step
from markets.engine.scenarios import Alternating, Family, Mechanism, Prior, Product, Scenario, SellerTurns
from markets.engine.state import initial

MALFORMED = "malformed"


def scenario(
    *,
    costs: Sequence[int] = (4_000,),
    values: Sequence[Sequence[int]] = ((7_000,), (9_000,)),
    mechanism: Mechanism | None = None,
) -> Scenario:
    bilateral = len(values) == 1
    family = Family.BILATERAL if bilateral else Family.MULTI_BUYER if len(costs) == 1 else Family.CATALOGUE
    return Scenario(
        family=family,
        mechanism=mechanism or (Alternating(6) if bilateral else SellerTurns(8)),
        products=tuple(Product(sku=f"p{j}", title=f"P {j}", list_price_cents=10_000) for j in range(len(costs))),
        seller_values_cents=tuple(costs),
        buyer_values_cents=tuple(tuple(own) for own in values),
        prior=Prior(
            value_spec=priors.UniformSpec(low=0, high=1),
            cost_spec=priors.UniformSpec(low=0, high=1),
            scales_cents=(10_000,) * len(costs),
        ),
        seed=1,
    )


def played(deal: Scenario, *moves: tuple[Party, Action | str]) -> tuple[LogEntry, ...]:
    state, log = initial(deal), []
    for party, move in moves:
        before = state.version
        if isinstance(move, str):
            events, state = refuse(state, party, RefusalCode(move), buyer=1)
        else:
            events, state = step(state, party, move)
        log.extend(number(events, after=before, at_ms=0))
    return tuple(log)


def sale(price: int, *, buyer: int = 1, product: int = 0, offer_id: int = 1) -> tuple[tuple[Party, Action], ...]:
    return (
        (SELLER, MakeOffer(buyer=buyer, product=product, price_cents=price)),
        (f"buyer-{buyer}", AcceptOffer(offer_id=offer_id)),
    )


ONE = scenario(values=((9_000,),))


@pytest.mark.parametrize(
    ("moves", "expected"),
    [
        (sale(6_500), 0.5),
        (sale(4_000), 1.0),
        (sale(1_000), 1.0),
        (sale(9_500), -1.0),
        ((), 0.0),
        ((("seller", MakeOffer(price_cents=8_000)), ("buyer-1", MALFORMED)), -1.0),
        ((("seller", MakeOffer(price_cents=8_000)), ("buyer-1", MakeOffer(price_cents=9_001))), -1.0),
        ((("seller", MALFORMED),), 0.0),
    ],
)
def test_a_buyer_is_paid_its_part_of_the_surplus_and_fined_for_every_breach(moves, expected) -> None:
    assert rewards.rlvr_buyer(ONE, played(ONE, *moves)) == pytest.approx(expected)


def test_a_buyers_tiny_surplus_is_measured_in_whole_currency_units() -> None:
    deal = scenario(costs=(8_990,), values=((9_000,),))
    assert rewards.rlvr_buyer(deal, played(deal, *sale(8_995))) == pytest.approx(0.05)


@pytest.mark.parametrize(
    ("moves", "expected"),
    [
        (sale(6_500), 0.5),
        (sale(9_000, buyer=2), 1.0),
        (sale(9_900), 1.0),
        (sale(3_999), -1.0),
        ((), 0.0),
        ((("seller", MALFORMED), *sale(6_500)), -1.0),
        ((("seller", MakeOffer(buyer=1, price_cents=8_000)), ("buyer-1", MALFORMED)), 0.0),
    ],
)
def test_a_seller_with_several_buyers_is_paid_against_the_best_of_them(moves, expected) -> None:
    deal = scenario()
    assert rewards.rlvr_seller_multi(deal, played(deal, *moves)) == pytest.approx(expected)


def test_a_seller_whom_nobody_can_pay_does_best_without_a_deal() -> None:
    hopeless = scenario(costs=(9_500,))
    assert rewards.rlvr_seller_multi(hopeless, ()) == 0.0
    assert rewards.rlvr_seller_multi(hopeless, played(hopeless, *sale(9_600))) == -1.0


def test_a_catalogue_seller_is_paid_against_the_best_matching() -> None:
    deal = scenario(costs=(1_000, 2_000), values=((5_000, 8_000), (4_000, 3_000)))
    both = played(deal, *sale(7_000, buyer=1, product=1), *sale(3_000, buyer=2, product=0))
    assert rewards.rlvr_seller_catalogue(deal, both) == pytest.approx((5_000 + 2_000) / (6_000 + 3_000))
    assert rewards.rlvr_seller_catalogue(deal, ()) == 0.0
    below = played(deal, *sale(7_000, buyer=1, product=1), *sale(900, buyer=2, product=0))
    assert rewards.rlvr_seller_catalogue(deal, below) == -1.0
    assert rewards.rlvr_seller_catalogue(deal, played(deal, (SELLER, MALFORMED))) == -1.0


def test_the_reward_for_matching_pays_half_for_welfare_and_forgives_no_breach() -> None:
    deal = scenario(costs=(1_000, 2_000), values=((5_000, 8_000), (4_000, 3_000)))
    both = played(deal, *sale(7_000, buyer=1, product=1), *sale(3_000, buyer=2, product=0))
    assert rewards.catalogue_matching(deal, both) == pytest.approx((7_000 / 9_000 + 1) / 2)
    dear = played(deal, *sale(7_900, buyer=1, product=1))
    assert rewards.catalogue_matching(deal, dear) == pytest.approx((5_900 + 6_000) / 2 / 9_000)
    below = played(deal, *sale(7_000, buyer=1, product=1), *sale(900, buyer=2, product=0))
    for log, worth in ((), 0.0), (below, -1.0), (played(deal, (SELLER, MALFORMED)), -1.0):
        assert rewards.catalogue_matching(deal, log) == worth


def test_nothing_to_gain_in_a_catalogue_means_nothing_for_waiting_and_a_fine_for_selling() -> None:
    deal = scenario(costs=(9_000, 9_000), values=((5_000, 8_000), (4_000, 3_000)))
    assert rewards.rlvr_seller_catalogue(deal, ()) == 0.0
    assert rewards.rlvr_seller_catalogue(deal, played(deal, *sale(9_100))) == -1.0


def test_profit_is_counted_on_the_public_scale_and_not_on_hidden_values() -> None:
    deal = scenario()
    assert rewards.seller_profit(deal, played(deal, *sale(6_500))) == pytest.approx(0.25)
    assert rewards.seller_profit(deal, played(deal, *sale(3_000))) == pytest.approx(-0.1)
    assert rewards.seller_profit(deal, ()) == 0.0
    assert rewards.seller_profit(deal, played(deal, (SELLER, MALFORMED))) == -1.0


@pytest.mark.parametrize(("role", "expected"), [(Role.SELLER, 0.3), (Role.BUYER, 0.7)])
def test_shares_of_a_bilateral_deal_sum_to_one(role, expected) -> None:
    assert rewards.bilateral_share(ONE, played(ONE, *sale(5_500)), role=role) == pytest.approx(expected)


def test_a_losing_deal_is_negative_and_walking_away_earns_nothing_in_the_plain_share() -> None:
    hopeless = scenario(costs=(6_000,), values=((5_000,),))
    log = played(hopeless, *sale(5_500))
    assert rewards.bilateral_share(hopeless, log, role=Role.SELLER) == pytest.approx(-0.5)
    assert rewards.bilateral_share(hopeless, log, role=Role.BUYER) == pytest.approx(-0.5)
    assert rewards.bilateral_share(hopeless, (), role=Role.SELLER) == 0.0
    assert rewards.bilateral_share(ONE, played(ONE, (SELLER, MALFORMED)), role=Role.SELLER) == -1.0


def test_the_batna_reward_pays_for_walking_away_and_fines_deals_that_give_all_away() -> None:
    hopeless = scenario(costs=(6_000,), values=((5_000,),))
    assert rewards.bilateral_share_batna(hopeless, (), role=Role.SELLER) == 0.2
    assert rewards.bilateral_share_batna(ONE, (), role=Role.SELLER) == 0.0
    assert rewards.bilateral_share_batna(ONE, played(ONE, *sale(4_100)), role=Role.SELLER) == -0.2
    assert rewards.bilateral_share_batna(ONE, played(ONE, *sale(5_500)), role=Role.SELLER) == pytest.approx(0.3)
    assert rewards.bilateral_share_batna(hopeless, played(hopeless, *sale(5_500)), role=Role.SELLER) == -0.5
    assert rewards.bilateral_share_batna(ONE, played(ONE, (SELLER, MALFORMED)), role=Role.SELLER) == -1.0


def test_a_reward_is_found_by_name_and_role_and_the_wrong_pair_is_told_what_there_is() -> None:
    assert rewards.by_name("seller_profit", role=Role.SELLER) is rewards.seller_profit
    share = rewards.by_name("bilateral_share", role=Role.BUYER)
    assert share(ONE, played(ONE, *sale(5_500))) == pytest.approx(0.7)
    with pytest.raises(rewards.UnknownReward, match="rlvr_buyer"):
        rewards.by_name("seller_profit", role=Role.BUYER)


# Identities


def mixed_episodes() -> list[tuple[Scenario, tuple[LogEntry, ...]]]:
    """Deals and walks over several prices in one scenario: nobody breaks a rule and nothing is clipped."""
    deal = scenario()
    return [
        (deal, played(deal, *sale(4_500, buyer=2))),
        (deal, played(deal, *sale(8_000, buyer=2))),
        (deal, played(deal, *sale(6_000, buyer=1))),
        (deal, ()),
    ]


def test_mean_reward_is_deal_rate_times_mean_share_where_nobody_breaks_a_rule() -> None:
    """The identity behind .828 x .700 = .580 (arXiv 2607.05863)."""
    episodes = mixed_episodes()
    mean_reward = sum(rewards.rlvr_seller_multi(*episode) for episode in episodes) / len(episodes)
    summary = metrics.summary(metrics.outcome(*episode) for episode in episodes)
    assert summary.deal_rate is not None
    assert summary.seller_surplus_share is not None
    assert mean_reward == pytest.approx(summary.deal_rate * summary.seller_surplus_share)
    assert mean_reward == pytest.approx(summary.unconditional_seller_share)


def test_a_buyers_mean_reward_is_its_deal_rate_times_its_share() -> None:
    """The identity behind .918 x .4380 = .4021 (arXiv 2604.09855)."""
    logs = [played(ONE, *sale(price)) for price in (4_500, 6_000, 8_500)] + [()]
    mean_reward = sum(rewards.rlvr_buyer(ONE, log) for log in logs) / len(logs)
    summary = metrics.summary(metrics.outcome(ONE, log) for log in logs)
    assert summary.deal_rate is not None
    assert summary.buyer_surplus_share is not None
    assert mean_reward == pytest.approx(summary.deal_rate * summary.buyer_surplus_share)


def test_a_catalogue_reward_is_allocation_quality_times_the_profit_part_of_the_welfare() -> None:
    deal = scenario(costs=(1_000, 2_000), values=((5_000, 8_000), (4_000, 3_000)))
    log = played(deal, *sale(6_500, buyer=1, product=1))
    outcome = metrics.outcome(deal, log)
    assert outcome.allocation_quality is not None
    profit_part = outcome.seller_surplus_cents / outcome.welfare_cents
    assert rewards.rlvr_seller_catalogue(deal, log) == pytest.approx(outcome.allocation_quality * profit_part)


@pytest.mark.parametrize("role", Role)
@pytest.mark.parametrize("cost", [4_000, 9_000, 9_001, 12_000])
@pytest.mark.parametrize("price", [1, 4_000, 6_500, 9_000, 20_000])
def test_no_reward_leaves_its_range_or_raises_whoever_loses(role: Role, cost: int, price: int) -> None:
    deal = scenario(costs=(cost,), values=((9_000,),))
    for log in (played(deal, *sale(price)), ()):
        for name in (
            ("rlvr_buyer",)
            if role is Role.BUYER
            else ("rlvr_seller_multi", "rlvr_seller_catalogue", "catalogue_matching")
        ):
            assert -1 <= rewards.by_name(name, role=role)(deal, log) <= 1
        for name in ("bilateral_share", "bilateral_share_batna"):
            assert -1 <= rewards.by_name(name, role=role)(deal, log) <= 1


@pytest.mark.parametrize(
    ("price", "expected"), [(4_000, -0.2), (4_499, -0.2), (4_500, 0.1), (3_500, -0.2), (2_000, -0.4), (1, -0.7998)]
)
def test_giving_all_away_is_fined_and_losing_more_is_never_better(price: int, expected: float) -> None:
    log = played(ONE, *sale(price))
    assert rewards.bilateral_share_batna(ONE, log, role=Role.SELLER) == pytest.approx(expected)


def test_the_fine_and_the_prize_are_parameters() -> None:
    hopeless = scenario(costs=(6_000,), values=((5_000,),))
    assert rewards.bilateral_share_batna(hopeless, (), role=Role.BUYER, omega=0.5) == 0.5
    log = played(ONE, *sale(5_000))
    assert rewards.bilateral_share_batna(ONE, log, role=Role.SELLER, tau=0.3, kappa=0.7) == -0.7
    assert rewards.bilateral_share_batna(ONE, log, role=Role.SELLER, tau=0.2) == pytest.approx(0.2)


@pytest.mark.parametrize("reward", [*rewards._BY_NAME.values()], ids=[f"{n} {r.value}" for n, r in rewards._BY_NAME])
def test_every_reward_tells_its_formula_unit_range_and_source(reward: rewards.RewardFunction) -> None:
    text = getattr(reward, "func", reward).__doc__ or ""
    assert all(f"{label}: " in " ".join(text.split()) for label in ("Formula", "Unit", "Range", "Source"))
