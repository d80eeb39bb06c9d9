"""What the best informed plan expects: closed forms, and never more than full information could."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from markets.engine import bounds, metrics
from markets.engine.bounds import Assumption, knowing_prior
from markets.engine.priors import BandsSpec, ConstantSpec, UniformSpec
from markets.engine.protocol import Role
from markets.engine.scenarios import Prior, Scenario
from tests.markets.engine.factories import B1, B2, SELLER, bilateral, catalogue, multi_buyer
from tests.markets.engine.games import parties_of, sampled_scenarios


def with_prior(scenario: Scenario, *, values: object = None, costs: object = None, scale: int = 100) -> Scenario:
    """The scenario with values and costs publicly uniform from $0 to $100 unless told otherwise."""
    evenly = UniformSpec(low=0.0, high=100.0)
    prior = Prior(
        value_spec=values or evenly, cost_spec=costs or evenly, scales_cents=(scale,) * len(scenario.products)
    )
    return msgspec.structs.replace(scenario, prior=prior)


@pytest.mark.parametrize(
    ("opener", "rounds", "asks"), [(Role.SELLER, 1, 1), (Role.SELLER, 4, 4), (Role.BUYER, 2, 1), (Role.BUYER, 5, 4)]
)
def test_a_seller_expects_from_its_answerable_asks_what_theory_says(opener: Role, rounds: int, asks: int) -> None:
    """v ~ U[0, 100], c = 0, T asks: T / (2 (T + 1)) of $100. The last word of who did not open is no ask."""
    bound = knowing_prior(with_prior(bilateral(value=5_000, cost=0, rounds=rounds, opener=opener)), SELLER)
    assert bound.expected_cents == pytest.approx(10_000 * asks / (2 * (asks + 1)), abs=30)
    assert bound.assumption is Assumption.THRESHOLD_BUYERS


@pytest.mark.parametrize(("opener", "rounds", "bids"), [(Role.BUYER, 1, 1), (Role.BUYER, 4, 4), (Role.SELLER, 5, 4)])
def test_a_buyer_expects_from_its_answerable_bids_the_mirror_of_it(opener: Role, rounds: int, bids: int) -> None:
    """c ~ U[0, 100], v = $100: the same game upside down."""
    bound = knowing_prior(with_prior(bilateral(value=10_000, cost=5_000, rounds=rounds, opener=opener)), B1)
    assert bound.expected_cents == pytest.approx(10_000 * bids / (2 * (bids + 1)), abs=30)
    assert bound.assumption is Assumption.THRESHOLD_SELLER


def test_the_plan_is_followed_in_the_very_game() -> None:
    """Two asks, $66.67 and $33.33: a buyer of $50 pays the second, one of $70 the first, one of $30 nothing."""
    for value, paid in ((5_000, 3_333), (7_000, 6_667), (3_000, 0)):
        scenario = with_prior(bilateral(value=value, cost=0, rounds=2, opener=Role.SELLER))
        assert knowing_prior(scenario, SELLER).here_cents == pytest.approx(paid, abs=20)


def test_who_has_a_single_message_and_the_last_word_can_ask_nobody() -> None:
    scenario = with_prior(bilateral(rounds=1, opener=Role.BUYER))
    assert knowing_prior(scenario, SELLER) == bounds.Bound(
        expected_cents=0, here_cents=0, assumption=Assumption.THRESHOLD_BUYERS
    )


def test_two_buyers_are_worth_more_than_one() -> None:
    """U[0, 1], N = 2, T = 8: .854 of the first best 2/3."""
    bound = knowing_prior(with_prior(multi_buyer(values=(5_000, 9_000), cost=0, turns=8)), SELLER)
    assert bound.expected_cents == pytest.approx(10_000 * 0.854 * 2 / 3, abs=60)


def test_known_values_leave_nothing_to_chance() -> None:
    scenario = with_prior(multi_buyer(values=(9_000, 9_000), cost=4_000), values=ConstantSpec(value=90.0))
    bound = knowing_prior(scenario, SELLER)
    assert (bound.expected_cents, bound.here_cents) == (5_000, 5_000)


def test_several_units_are_sold_one_after_another() -> None:
    scenario = with_prior(
        multi_buyer(values=(9_000, 9_000, 9_000), cost=4_000, stock=2), values=ConstantSpec(value=90.0)
    )
    bound = knowing_prior(scenario, SELLER)
    assert (bound.expected_cents, bound.here_cents) == (10_000, 10_000)
    assert bound.assumption is Assumption.PRODUCTS_IN_TURN


def test_units_beyond_the_buyers_or_the_turns_cannot_be_sold() -> None:
    known = ConstantSpec(value=90.0)
    few_buyers = with_prior(catalogue(values=((9_000, 9_000),), costs=(4_000, 4_000), stock=3), values=known)
    assert knowing_prior(few_buyers, SELLER).here_cents == 5_000
    few_turns = with_prior(catalogue(values=((9_000, 9_000),) * 3, costs=(4_000, 4_000), turns=1), values=known)
    assert knowing_prior(few_turns, SELLER).here_cents == 5_000


def test_a_buyer_of_several_products_goes_for_the_best_of_them() -> None:
    known = with_prior(
        catalogue(values=((9_000, 6_000), (8_000, 7_500)), costs=(5_000, 5_000)), costs=ConstantSpec(value=50.0)
    )
    assert knowing_prior(known, B1).here_cents == 4_000
    assert knowing_prior(known, B2).here_cents == 3_000


@settings(max_examples=60)
@given(sampled_scenarios(), st.data())
def test_no_plan_gains_more_than_full_information_or_loses(scenario: Scenario, data: st.DataObject) -> None:
    party = data.draw(st.sampled_from(parties_of(scenario)))
    bound = knowing_prior(scenario, party)
    assert bound.expected_cents >= 0
    assert bound.here_cents >= 0
    assert bound.here_cents <= metrics.best_assignment(scenario)[0]


def test_the_published_bands_are_nearly_solved_by_the_prior_alone() -> None:
    """Eight asks to three buyers in three known bands: most of the top band's surplus."""
    scenario = with_prior(
        multi_buyer(values=(4_800, 7_200, 11_000), cost=4_000, turns=8), values=BandsSpec(), scale=10_000
    )
    bound = knowing_prior(scenario, SELLER)
    assert 0.85 * 6_750 < bound.expected_cents < 6_750
