"""Each metric that is quoted means what its formula says, is empty where it means nothing, and the identities hold."""

from collections.abc import Callable

import pytest

from agents import registry, simulation
from markets.engine import measures, rewards
from markets.engine.figures import ViolationType
from markets.engine.measures import Measured, measure
from markets.engine.protocol import SELLER, RefusalCode, Role
from tests.markets.engine.factories import B1, B2, B3, LEAVE, Table, accept, bilateral, catalogue, multi_buyer, offer
from tests.markets.engine.test_figures import RECIPES

S, B = Role.SELLER, Role.BUYER


def measured(table: Table) -> Measured:
    return measure(table.scenario, table.log)


def sold(price: int, *, value: int = 8_000, cost: int = 5_000) -> Measured:
    """The buyer bids `price`, the seller takes it."""
    table = Table(bilateral(value=value, cost=cost)).play_all((B1, offer(price)), (SELLER, accept(1)))
    return measured(table)


def walked(*, value: int = 8_000, cost: int = 5_000) -> Measured:
    return measured(Table(bilateral(value=value, cost=cost)).play_all((B1, LEAVE)))


def matched(*pairs: tuple[int, int, int]) -> Measured:
    """A catalogue in which the seller sells (buyer, product, price) one after the other."""
    table = Table(catalogue())
    for buyer, product, price in pairs:
        table.play(SELLER, offer(price, to=buyer, product=product))
        table.play(f"buyer-{buyer}", accept(1))
    if len(pairs) < 2:
        table.play(SELLER, LEAVE)
    return measured(table)


def played(family: str, *, seller: str, buyer: str, episodes: int = 80) -> list[Measured]:
    games = simulation.simulate(
        recipe=RECIPES[family],
        pool=(),
        seller=registry.get(seller),
        buyers=[registry.get(buyer)],
        episodes=episodes,
        seed=11,
    )
    return [measure(scenario, game.log) for scenario, game in games]


# --- What was reached -------------------------------------------------------------------------------


def test_mean_reward_is_over_all_episodes():
    reward = rewards.by_name("rlvr_buyer", role=B)
    assert measures.mean_reward([sold(6_500), walked()], reward) == pytest.approx(0.25)


def test_deal_rate_counts_episodes_and_within_gains_leaves_the_hopeless_out():
    episodes = [sold(6_500), walked(), walked(value=4_000)]
    assert measures.deal_rate(episodes) == pytest.approx(1 / 3)
    assert measures.deal_rate_with_gains(episodes) == pytest.approx(1 / 2)


def test_surplus_share_is_over_deals_and_against_the_highest_value():
    assert measures.surplus_share([sold(6_500), walked()], S) == pytest.approx(0.5)
    table = Table(multi_buyer()).play_all((SELLER, offer(7_000, to=2)), (B2, accept(1)))
    assert measures.surplus_share([measured(table)], S) == pytest.approx(3_000 / 7_000)
    assert measures.surplus_share([measured(table)], B) == pytest.approx(200 / 3_200)


def test_unconditional_surplus_counts_a_missed_deal_as_nothing_and_leaves_the_hopeless_out():
    episodes = [sold(6_500), walked(), walked(value=4_000)]
    assert measures.unconditional_surplus(episodes, S) == pytest.approx(0.25)
    assert measures.unconditional_surplus(episodes, B) == pytest.approx(0.25)


@pytest.mark.parametrize("role", [S, B])
def test_unconditional_surplus_is_the_mean_reward_where_nothing_is_clipped(role):
    """arXiv 2604.09855 and 2607.05863 quote deal rate x share = reward."""
    episodes = [
        episode
        for episode in played("bilateral", seller="conceder", buyer="linear")
        if episode.outcome.first_best_cents >= rewards.UNIT_CENTS
    ]
    name = "rlvr_buyer" if role is B else "rlvr_seller_multi"
    reward = measures.mean_reward(episodes, rewards.by_name(name, role=role))
    assert measures.unconditional_surplus(episodes, role) == pytest.approx(reward)
    rate, share = measures.deal_rate(episodes), measures.surplus_share(episodes, role)
    assert rate * share == pytest.approx(reward)
    assert 0 < rate < 1 or share < 1


def test_total_surplus_fraction_weighs_by_what_is_at_stake():
    episodes = [sold(6_500), walked(value=14_000), walked(value=4_000)]
    assert measures.total_surplus_fraction(episodes) == pytest.approx(3_000 / 12_000)


def test_walking_away_is_right_where_nothing_can_be_gained():
    episodes = [walked(value=4_000), sold(4_500, value=4_000, cost=5_000), sold(6_500), walked()]
    assert measures.walk_away_correctness(episodes) == pytest.approx(1 / 2)
    assert measures.efficient_trade_rate(episodes) == pytest.approx(2 / 4)


# --- Losses and rules -------------------------------------------------------------------------------


def test_breaches_of_rationality_own_and_induced_with_and_without_gains():
    episodes = [sold(8_500), sold(6_500), sold(6_000, value=4_000, cost=5_000)]
    buyer, seller = measures.rationality(episodes, B), measures.rationality(episodes, S)
    assert (buyer.with_gains.offers, buyer.with_gains.deals, buyer.with_gains.induced) == (0.5, 0.5, 0.0)
    assert (buyer.without_gains.offers, buyer.without_gains.deals) == (1.0, 1.0)
    assert (seller.with_gains.offers, seller.with_gains.induced) == (None, 0.5)
    assert (seller.without_gains.deals, seller.without_gains.induced) == (0.0, 1.0)


def test_overshoot_counts_episodes_with_an_offer_beyond_the_limit():
    assert measures.overshoot_rate([sold(8_500), sold(6_500)], B) == pytest.approx(0.5)
    assert measures.overshoot_rate([sold(8_500), sold(6_500)], S) == 0.0


def slips() -> Measured:
    """Four messages of the seller, one unreadable, one about an offer that does not stand."""
    table = Table(multi_buyer())
    table.play_all((SELLER, offer(9_000, to=1)), (B1, LEAVE))
    table.refuse(SELLER, RefusalCode.MALFORMED)
    table.refuse(SELLER, RefusalCode.UNKNOWN_OFFER, buyer=2)
    table.play(SELLER, offer(9_000, to=2))
    return measured(table)


def test_format_validity_and_adherence_are_parts_of_all_messages():
    assert measures.format_validity([slips()], S) == pytest.approx(3 / 4)
    assert measures.constraint_adherence([slips()], S) == pytest.approx(2 / 4)
    assert measures.violation_rate([slips()], S, ViolationType.ACCEPT) == pytest.approx(1 / 4)
    assert measures.violation_rate([slips()], S, ViolationType.SOLD_OUT) == 0.0


# --- Style ------------------------------------------------------------------------------------------


def test_openings_are_the_mean_ratio_to_the_own_value():
    assert measures.opening_aggressiveness([sold(6_000), sold(4_000), walked()], B) == pytest.approx(0.625)
    assert measures.opening_aggressiveness([sold(6_000)], S) is None


def test_distinct_offers_are_counted_per_seat():
    assert measures.distinct_offers([sold(6_000), walked()], B) == pytest.approx(0.5)


def test_the_price_slope_is_one_for_whoever_follows_the_other_sides_value():
    follows = [sold(value - 500, value=value) for value in (6_000, 7_000, 9_000)]
    fixed = [sold(5_500, value=value) for value in (6_000, 7_000, 9_000)]
    assert measures.price_slope(follows, S) == pytest.approx(1.0)
    assert measures.price_slope(fixed, S) == pytest.approx(0.0)
    assert measures.price_slope(follows[:2], S) is None
    assert measures.price_slope([follows[0]] * 3, S) is None


def test_concession_and_patience_are_means_over_seats_that_have_them():
    table = Table(bilateral()).play_all(
        (B1, offer(4_000)), (SELLER, offer(9_000)), (B1, offer(6_000)), (SELLER, accept(3))
    )
    assert measures.concession_rate([measured(table), sold(6_500)], B) == pytest.approx(0.5)
    assert measures.patience([measured(table), sold(6_500), walked()], B) == pytest.approx((2 / 6 + 1 / 6) / 2)


def test_tiers_are_quintiles_of_the_own_value():
    episodes = [sold(5_500, value=value) for value in range(6_000, 11_000, 1_000)] + [walked(value=20_000)] * 5
    tiers = measures.tier_profile(episodes, B)
    assert [tier.seats for tier in tiers] == [2, 2, 2, 2, 2]
    assert (tiers[0].low_cents, tiers[0].high_cents) == (6_000, 7_000)
    assert (tiers[0].deal_rate, tiers[4].deal_rate, tiers[4].share) == (1.0, 0.0, 0.0)
    assert measures.tier_spread(tiers, lambda tier: tier.deal_rate) == 1.0
    assert measures.tier_profile([], B) == ()
    assert measures.tier_spread((), lambda tier: tier.share) is None


# --- Several buyers ---------------------------------------------------------------------------------


def test_exploration_is_read_off_the_sellers_messages():
    table = Table(multi_buyer(openings=(3_000, 2_800, 2_700)))
    table.play_all((SELLER, offer(9_000, to=1)), (B1, LEAVE), (SELLER, offer(7_000, to=2)), (B2, accept(2)))
    episode = [measured(table)]
    assert measures.exploration_coverage(episode) == pytest.approx(2 / 3)
    assert measures.fixation_rate(episode) == 1.0
    assert 0.6 < measures.probe_entropy(episode) < 0.7
    assert measures.top_buyer_rate(episode) == 0.0


def test_the_top_buyer_rate_is_a_part_of_deals():
    top = Table(multi_buyer()).play_all((SELLER, offer(10_000, to=3)), (B3, accept(1)))
    second = Table(multi_buyer()).play_all((SELLER, offer(7_000, to=2)), (B2, accept(1)))
    assert measures.top_buyer_rate([measured(top), measured(second)]) == pytest.approx(0.5)


def test_allocation_quality_is_welfare_out_of_the_first_best():
    assert measures.allocation_quality([matched((1, 1, 5_000), (2, 0, 6_000))]) == pytest.approx(5_000 / 7_500)


def test_rescaled_the_best_matching_is_one_and_a_random_one_zero_on_average():
    best, crossed = matched((1, 0, 6_000), (2, 1, 5_000)), matched((1, 1, 5_000), (2, 0, 6_000))
    assert measures.allocation_rescaled([best]) == pytest.approx(1.0)
    assert measures.allocation_rescaled([best, crossed]) == pytest.approx(0.0)
    assert measures.allocation_rescaled([sold(6_500)]) is None


def test_match_accuracy_is_a_part_of_the_best_pairs():
    assert measures.match_accuracy([matched((1, 0, 6_000))]) == pytest.approx(0.5)
    assert measures.match_accuracy([sold(6_500)]) is None


@pytest.mark.parametrize("family", ["bilateral", "multi_buyer", "catalogue"])
def test_extraction_is_quality_times_the_sellers_part_of_what_was_made(family):
    seller = {"bilateral": "linear", "multi_buyer": "falling-ladder", "catalogue": "greedy"}[family]
    episodes = played(family, seller=seller, buyer="linear")
    quality, part = measures.allocation_quality(episodes), measures.profit_part(episodes)
    assert measures.extraction(episodes) == pytest.approx(quality * part)
    assert 0 < measures.extraction(episodes) < quality <= 1


# --- Undefined --------------------------------------------------------------------------------------

OF_NOBODY: dict[str, Callable[[list[Measured]], object]] = {
    "deal rate": measures.deal_rate,
    "deal rate with gains": measures.deal_rate_with_gains,
    "reward": lambda e: measures.mean_reward(e, rewards.by_name("rlvr_buyer", role=B)),
    "share": lambda e: measures.surplus_share(e, S),
    "unconditional": lambda e: measures.unconditional_surplus(e, B),
    "total fraction": measures.total_surplus_fraction,
    "walk-away": measures.walk_away_correctness,
    "efficient trade": measures.efficient_trade_rate,
    "overshoot": lambda e: measures.overshoot_rate(e, S),
    "format": lambda e: measures.format_validity(e, S),
    "adherence": lambda e: measures.constraint_adherence(e, S),
    "violations": lambda e: measures.violation_rate(e, S, ViolationType.FORMAT),
    "opening": lambda e: measures.opening_aggressiveness(e, S),
    "distinct offers": lambda e: measures.distinct_offers(e, S),
    "slope": lambda e: measures.price_slope(e, S),
    "concession": lambda e: measures.concession_rate(e, S),
    "patience": lambda e: measures.patience(e, S),
    "coverage": measures.exploration_coverage,
    "entropy": measures.probe_entropy,
    "fixation": measures.fixation_rate,
    "top buyer": measures.top_buyer_rate,
    "quality": measures.allocation_quality,
    "rescaled": measures.allocation_rescaled,
    "accuracy": measures.match_accuracy,
    "extraction": measures.extraction,
    "profit part": measures.profit_part,
}


@pytest.mark.parametrize("name", OF_NOBODY)
def test_what_is_undefined_is_empty_and_never_nought(name):
    assert OF_NOBODY[name]([]) is None


def test_breaches_without_a_deal_are_empty():
    breaches = measures.rationality([], S)
    assert breaches.with_gains == breaches.without_gains
    assert (breaches.with_gains.deals, breaches.with_gains.offers, breaches.with_gains.induced) == (None, None, None)
