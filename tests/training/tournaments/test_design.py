"""Everybody meets everybody, and the shares of the work are exactly all of it."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents import registry
from markets.engine.scenarios import Family
from training.tournaments import design
from training.tournaments.design import TournamentError


def specs(*slugs: str):
    return [registry.get(slug) for slug in slugs]


def names(*slugs: str, family: Family) -> list[tuple[str, str]]:
    return [(pair.seller.slug, pair.buyer.slug) for pair in design.pairs(specs(*slugs), family)]


def test_agents_of_both_roles_meet_in_every_order_and_meet_themselves() -> None:
    pairs = names("linear", "boulware", "conceder", family=Family.BILATERAL)
    assert pairs == list(itertools.product(["linear", "boulware", "conceder"], repeat=2))


def test_agents_of_one_role_meet_those_of_the_other() -> None:
    pairs = names("one-pass", "linear", "threshold", family=Family.MULTI_BUYER)
    assert pairs == [
        ("one-pass", "linear"),
        ("one-pass", "threshold"),
        ("linear", "linear"),
        ("linear", "threshold"),
    ]


@given(pairs=st.integers(1, 40), scenarios=st.integers(1, 200), games=st.integers(1, 500))
def test_every_pair_has_every_scenario_in_exactly_one_share(pairs: int, scenarios: int, games: int) -> None:
    blocks = design.blocks(pairs=pairs, scenarios=scenarios, games=games)
    cells = [
        (pair, scenario)
        for block in blocks
        for pair in range(block.first_pair, block.first_pair + block.pairs)
        for scenario in range(block.first_scenario, block.first_scenario + block.scenarios)
    ]
    assert sorted(cells) == list(itertools.product(range(pairs), range(scenarios)))
    assert all(0 < block.games <= max(games, 1) for block in blocks)


@pytest.mark.parametrize(
    ("slugs", "family", "scenarios", "seed", "sentence"),
    [
        (["linear"], Family.BILATERAL, 5, 1, "at least 2 agents; only 'linear' is named"),
        ([], Family.BILATERAL, 5, 1, "at least 2 agents; none is named"),
        (["linear", "conceder", "linear"], Family.BILATERAL, 5, 1, "'linear' is named twice"),
        (["linear", "linear"], Family.BILATERAL, 5, 1, "'linear' is named twice"),
        (["linear", "greedy"], Family.BILATERAL, 5, 1, "'greedy' would play no pair: it plays catalogue markets only"),
        (["threshold", "logit"], Family.BILATERAL, 5, 1, "none of threshold, logit plays seller"),
        (["one-pass", "all-on-one"], Family.MULTI_BUYER, 5, 1, "none of one-pass, all-on-one plays buyer"),
        (["linear", "conceder"], Family.BILATERAL, 0, 1, "at least one scenario, not 0"),
        (["linear", "conceder"], Family.BILATERAL, 5, 2**63, "must fit into 64 bits"),
        (["linear", "conceder"], Family.BILATERAL, 10**6, 1, "at most 250,000"),
    ],
    ids=["one", "none", "twice", "pair-of-one", "family", "no-seller", "no-buyer", "no-scenario", "seed", "too-many"],
)
def test_a_tournament_that_cannot_be_held_is_refused_with_its_reason(slugs, family, scenarios, seed, sentence) -> None:
    with pytest.raises(TournamentError, match=sentence):
        design.check(agents=specs(*slugs), family=family, scenarios=scenarios, seed=seed)


def test_small_tournaments_are_shared_out_and_large_ones_in_moments_of_work() -> None:
    agents = specs("linear", "conceder")
    assert design.share_size(agents, games=16) == 2
    assert design.share_size(agents, games=15_000) == design.GAMES_OF_RULES
