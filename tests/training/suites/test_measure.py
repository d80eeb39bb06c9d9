"""The figures of a suite are sums over its negotiations that anybody can add up."""

import json

import msgspec
import pytest

from markets.engine.protocol import Role
from training.suites import cards, measure
from training.suites.measure import Line


def line(listing: int = 0, **changes) -> Line:
    usual = Line(
        listing=listing, role=Role.SELLER, opponent="", share=0.5, deal=True, messages=4, violations=0, own_cents=50,
        first_best_cents=100, welfare_cents=80, random_cents=40.0, matched=1, matchable=2,
    )  # fmt: skip
    return usual._replace(**changes)


def small(name: str, listings: int) -> cards.Card:
    return msgspec.structs.replace(cards.card(name), listings=listings)


def test_shares_count_where_trade_can_gain_and_deals_everywhere() -> None:
    lines = [line(0), line(1, share=0.0, deal=False), line(2, share=None, deal=False)]
    found = measure.report(small("p1", 3), lines)
    assert (found["share"], found["deal_rate"]) == (pytest.approx(0.25), pytest.approx(1 / 3))
    assert (found["role"], found["episodes"], found["listings"]) == ("seller", 3, 3)


def test_allocation_is_summed_before_dividing_and_rescaled_from_the_lot_to_the_best() -> None:
    lines = [line(0), line(1, welfare_cents=300, first_best_cents=300, random_cents=100.0, own_cents=30)]
    found = measure.report(small("p2", 2), lines)
    assert found["allocation_quality"] == pytest.approx(380 / 400)
    assert found["allocation_quality_rescaled"] == pytest.approx((380 - 140) / (400 - 140))
    assert found["extraction"] == pytest.approx(80 / 400)
    assert found["match_accuracy"] == pytest.approx(2 / 4)


def test_both_roles_weigh_the_same_and_stand_beside_their_mean() -> None:
    lines = [line(0), line(1), line(0, role=Role.BUYER, share=0.1, deal=False, violations=2, opponent="linear")]
    found = measure.report(small("p3", 2), lines)
    assert (found["role"], found["share"], found["deal_rate"]) == ("both", pytest.approx(0.3), pytest.approx(0.5))
    assert found["by_role"]["buyer"]["share"] == pytest.approx(0.1)
    assert found["constraint_adherence"] == pytest.approx(1 - 2 / 12)
    assert [(row["role"], row["opponent"]) for row in found["by_opponent"]] == [("buyer", "linear")]


def test_one_listing_has_no_interval_and_nothing_is_a_nan() -> None:
    found = measure.report(small("p2", 1), [line(0, share=None, first_best_cents=0, random_cents=0.0, messages=0)])
    assert (found["share"], found["share_low"], found["constraint_adherence"]) == (None, None, None)
    json.loads(json.dumps(found), parse_constant=pytest.fail)
