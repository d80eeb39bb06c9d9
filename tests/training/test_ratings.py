"""Ratings are means that anybody can work out, with intervals that say how far they can be trusted."""

import itertools
import json
import math

import msgspec
import numpy as np
import pytest

from markets.engine.protocol import Role
from training import bootstrap, ratings
from training.bootstrap import Estimate, interval
from training.ratings import Games, holm, rate


def games(
    skills: dict[str, float], *, scenarios: int, first_best: int = 1000, noise: float = 0.0, barren: int = 0
) -> Games:
    """Everybody plays both roles; a seller's share is .5 + its skill - the buyer's skill."""
    rng = np.random.default_rng(5)
    pairs = tuple(itertools.product(skills, skills))
    best = np.full(scenarios + barren, first_best)
    best[scenarios:] = -50
    share = np.array([[0.5 + skills[seller] - skills[buyer] for seller, buyer in pairs]] * len(best))
    share = share + noise * rng.normal(size=share.shape)
    gained = np.where(best[:, None] > 0, np.rint(share * first_best), 0).astype(np.int64)
    left = np.where(best[:, None] > 0, first_best - gained, 0)
    return Games(
        pairs=pairs,
        first_best=best,
        surplus={Role.SELLER: gained, Role.BUYER: left},
        deals=np.broadcast_to(best[:, None] > 0, gained.shape),
        messages=dict.fromkeys(Role, np.full(gained.shape, 4)),
        violations={Role.SELLER: np.zeros_like(gained), Role.BUYER: np.ones_like(gained)},
    )


def by_name(rated: ratings.Ratings) -> dict[str, ratings.Rated]:
    return {agent.agent: agent for agent in rated.agents}


def test_the_headline_is_the_mean_of_both_roles_over_all_opponents() -> None:
    agents = by_name(rate(games({"good": 0.2, "poor": 0.0}, scenarios=3)))
    # The seller good takes .5 from itself and .7 from poor; the buyer good keeps .5 and .7.
    assert agents["good"].share.value == pytest.approx(0.6)
    assert agents["poor"].share.value == pytest.approx(0.4)
    assert agents["good"].by_role[Role.SELLER].share.value == pytest.approx(0.6)


def test_scenarios_where_trade_cannot_gain_count_towards_deals_and_not_towards_shares() -> None:
    rated = rate(games({"good": 0.2, "poor": 0.0}, scenarios=3, barren=1))
    good = by_name(rated)["good"]
    assert (rated.scenarios, rated.scenarios_with_gains) == (4, 3)
    assert good.share.value == pytest.approx(0.6)
    assert good.deal_rate.value == pytest.approx(0.75)


def test_violations_are_counted_apart_from_the_share() -> None:
    good = by_name(rate(games({"good": 0.2, "poor": 0.0}, scenarios=3)))["good"]
    assert (good.messages, good.violations) == (4 * 3 * 4, 3 * 2)
    assert good.constraint_adherence == pytest.approx(1 - 6 / 48)
    assert good.by_role[Role.SELLER].constraint_adherence == 1


def test_one_scenario_has_means_and_no_interval() -> None:
    rated = rate(games({"good": 0.2, "poor": 0.0}, scenarios=1))
    good = by_name(rated)["good"]
    assert good.share == Estimate(pytest.approx(0.6), None, None)
    assert good.bradley_terry.value is not None
    assert good.bradley_terry.low is None
    assert (rated.differences[0].share.low, rated.differences[0].p) == (None, None)
    assert rated.resamples == 0


def test_no_scenario_with_gains_has_no_share_and_nothing_is_a_nan() -> None:
    rated = rate(games({"good": 0.2, "poor": 0.0}, scenarios=0, barren=3))
    assert [agent.share.value for agent in rated.agents] == [None, None]
    assert [agent.rank for agent in rated.agents] == [1, 1]
    json.loads(msgspec.json.encode(rated), parse_constant=pytest.fail)


def test_the_interval_holds_the_truth_about_as_often_as_it_says() -> None:
    rng = np.random.default_rng(7)
    held = 0
    for seed in range(200):
        estimate = interval(rng.normal(0.3, 1.0, size=60).tolist(), seed=seed, resamples=400)
        assert estimate.low is not None
        assert estimate.high is not None
        held += estimate.low <= 0.3 <= estimate.high
    assert 0.89 <= held / 200 <= 0.99


def test_differences_of_agents_in_the_same_scenarios_are_told_apart_better_than_their_means() -> None:
    rng = np.random.default_rng(3)
    pairs = (("a", "x"), ("b", "x"))
    luck = rng.normal(0.5, 0.2, size=(200, 1))
    share = np.hstack([luck, luck - 0.01])
    gained = np.rint(share * 10_000).astype(np.int64)
    rated = rate(
        Games(
            pairs=pairs,
            first_best=np.full(200, 10_000),
            surplus={Role.SELLER: gained, Role.BUYER: 10_000 - gained},
            deals=np.ones_like(gained, dtype=bool),
            messages=dict.fromkeys(Role, np.ones_like(gained)),
            violations=dict.fromkeys(Role, np.zeros_like(gained)),
        )
    )
    gap = next(gap for gap in rated.differences if (gap.a, gap.b) == ("a", "b"))
    alone = by_name(rated)["a"].share
    assert gap.share.value == pytest.approx(0.01, abs=1e-4)
    assert gap.share.high - gap.share.low < 0.1 * (alone.high - alone.low)  # type: ignore[operator]
    assert gap.p is not None
    assert gap.p < 0.01


def test_agents_are_ranked_with_those_that_play_the_same_roles() -> None:
    rated = rate(
        Games(
            pairs=(("a", "x"), ("b", "x")),
            first_best=np.full(4, 100),
            surplus={Role.SELLER: np.array([[60, 40]] * 4), Role.BUYER: np.array([[40, 60]] * 4)},
            deals=np.ones((4, 2), dtype=bool),
            messages=dict.fromkeys(Role, np.ones((4, 2), dtype=int)),
            violations=dict.fromkeys(Role, np.zeros((4, 2), dtype=int)),
        )
    )
    agents = by_name(rated)
    assert [(agent.agent, agent.rank) for agent in rated.agents] == [("a", 1), ("b", 2), ("x", 1)]
    assert agents["x"].bradley_terry.value is None, "it was compared with nobody"
    assert agents["x"].share.value == pytest.approx(0.5)
    assert [(gap.a, gap.b) for gap in rated.differences] == [("a", "b")]


def test_few_scenarios_prove_nothing() -> None:
    rated = rate(games({"good": 0.2, "poor": 0.0}, scenarios=3))
    assert rated.differences[0].p == 0.25
    assert [(agent.rank_best, agent.rank_worst) for agent in rated.agents] == [(1, 2), (1, 2)]


def test_many_scenarios_place_agents_beyond_chance() -> None:
    rated = rate(games({"good": 0.2, "fair": 0.1, "poor": 0.0}, scenarios=60, noise=0.1))
    assert [(agent.agent, agent.rank_best, agent.rank_worst) for agent in rated.agents] == [
        ("good", 1, 1),
        ("fair", 2, 2),
        ("poor", 3, 3),
    ]


def test_bradley_terry_recovers_the_odds_of_winning() -> None:
    # a beats b 300 times in 400, so that log10 odds are log10(3), up to the one tie that is added.
    gained = np.full((400, 2), 50)
    gained[:300, 0], gained[300:, 0] = 60, 40
    rated = rate(
        Games(
            pairs=(("a", "x"), ("b", "x")),
            first_best=np.full(400, 100),
            surplus={Role.SELLER: gained, Role.BUYER: 100 - gained},
            deals=np.ones((400, 2), dtype=bool),
            messages=dict.fromkeys(Role, np.ones((400, 2), dtype=int)),
            violations=dict.fromkeys(Role, np.zeros((400, 2), dtype=int)),
        )
    )
    agents = by_name(rated)
    gap = agents["a"].bradley_terry.value - agents["b"].bradley_terry.value  # type: ignore[operator]
    assert gap == pytest.approx(400 * math.log10(300.5 / 100.5), abs=0.1)
    low, high = agents["a"].bradley_terry.low, agents["a"].bradley_terry.high
    assert low < agents["a"].bradley_terry.value < high  # type: ignore[operator]


def test_a_pair_without_a_loss_has_a_finite_rating() -> None:
    rated = rate(games({"good": 0.2, "poor": 0.0}, scenarios=5))
    points = [agent.bradley_terry.value for agent in rated.agents]
    assert all(point is not None and math.isfinite(point) for point in points)
    assert points[0] > points[1]  # type: ignore[operator]


def test_ratings_do_not_depend_on_the_order_of_games() -> None:
    played = games({"good": 0.1, "fair": 0.05, "poor": 0.0}, scenarios=40, noise=0.2)
    turned = Games(
        pairs=played.pairs,
        first_best=played.first_best[::-1],
        surplus={role: cents[::-1] for role, cents in played.surplus.items()},
        deals=played.deals[::-1],
        messages=played.messages,
        violations=played.violations,
    )
    for one, other in zip(rate(played).agents, rate(turned).agents, strict=True):
        assert one.share.value == pytest.approx(other.share.value)
        assert one.bradley_terry.value == pytest.approx(other.bradley_terry.value, abs=1e-3)


def test_the_same_games_and_seed_give_the_same_ratings() -> None:
    played = games({"good": 0.1, "poor": 0.0}, scenarios=40, noise=0.2)
    assert rate(played, seed=4) == rate(played, seed=4)
    assert rate(played, seed=4) != rate(played, seed=5)


def test_scenarios_in_bundles_give_the_same_mean_and_about_the_same_interval(monkeypatch) -> None:
    numbers = np.random.default_rng(1).normal(size=1003).tolist()
    whole = interval(numbers)
    monkeypatch.setattr(bootstrap, "BUNDLES", 250)
    bundled = interval(numbers)
    assert bundled.value == pytest.approx(whole.value)
    assert bundled.low == pytest.approx(whole.low, abs=0.02)
    assert bundled.high == pytest.approx(whole.high, abs=0.02)


def test_levels_are_corrected_for_their_number() -> None:
    assert holm([0.04, 0.01, None, 0.03]) == pytest.approx([0.06, 0.03, None, 0.06])
    assert holm([]) == []
