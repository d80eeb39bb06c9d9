"""Without these, a renamed agent breaks markets, links and stored records that name it."""

import re
from pathlib import Path

import pytest

from agents import registry
from agents.base import Kind
from markets.engine.protocol import Role
from markets.engine.scenarios import Family

BOTH = {
    "zi-u",
    "gullible",
    "zi-c",
    "random",
    "boulware",
    "linear",
    "conceder",
    "exponential",
    "resource-dependent",
    "aspiration",
    "tit-for-tat",
    "relative-tit-for-tat",
    "averaged-tit-for-tat",
    "random-tit-for-tat",
    "micro",
    "anchoring",
    "zeuthen",
    "rubinstein",
    "stahl",
    "hardliner",
    "late-hardliner",
    "split-the-difference",
    "satisficer",
    "posted-price",
}
BUYERS = {"threshold", "logit", "impatient", "quoting", "shading", "strategic", "one-shot-buyer", "rising-bids"}
ONE_OR_MANY_BUYERS = {"falling-ladder", "optimal-ladder", "equal-steps"}
MANY_BUYERS = ONE_OR_MANY_BUYERS | {
    "chase-highest-bid",
    "one-pass",
    "explore-then-commit",
    "all-on-one",
    "random-buyer-ladder",
    "epsilon-greedy",
    "ucb",
    "successive-elimination",
    "play-off",
    "pandora",
}
SELLERS = {"one-shot-seller", "fixed-sequence"}
CATALOGUES = {"greedy", "serial", "random-match", "re-solved-assignment", "rising-prices"}
ASSIGNMENTS = {"optimal-assignment", "greedy-assignment", "serial-assignment", "random-assignment"}


def test_the_slugs_are_those_that_markets_and_records_name() -> None:
    slugs = [spec.slug for spec in registry.all_specs()]
    assert len(slugs) == len(set(slugs))
    ruled = {spec.slug for spec in registry.all_specs() if spec.kind is not Kind.LEARNED}
    assert ruled == BOTH | BUYERS | SELLERS | MANY_BUYERS | CATALOGUES | ASSIGNMENTS | {"threshold-seller", "oracle"}


@pytest.mark.parametrize("slug", sorted(BOTH))
def test_a_general_strategy_plays_both_sides_of_every_market(slug: str) -> None:
    spec = registry.get(slug)
    assert all(spec.can_play(role=role, family=family) for role in Role for family in Family)


@pytest.mark.parametrize("slug", sorted(BUYERS))
def test_a_buyer_type_buys_everywhere_and_never_sells(slug: str) -> None:
    spec = registry.get(slug)
    assert all(spec.can_play(role=Role.BUYER, family=family) for family in Family)
    assert not any(spec.can_play(role=Role.SELLER, family=family) for family in Family)


@pytest.mark.parametrize("slug", sorted(SELLERS))
def test_a_sellers_yardstick_sells_everywhere_and_never_buys(slug: str) -> None:
    spec = registry.get(slug)
    assert all(spec.can_play(role=Role.SELLER, family=family) for family in Family)
    assert not any(spec.can_play(role=Role.BUYER, family=family) for family in Family)


@pytest.mark.parametrize("slug", sorted(MANY_BUYERS | CATALOGUES | ASSIGNMENTS))
def test_a_seller_for_many_sells_only_where_it_knows_how(slug: str) -> None:
    spec = registry.get(slug)
    many = slug in CATALOGUES | ASSIGNMENTS
    family = Family.CATALOGUE if many else Family.MULTI_BUYER
    other = Family.MULTI_BUYER if many else Family.CATALOGUE
    assert spec.can_play(role=Role.SELLER, family=family)
    assert not spec.can_play(role=Role.SELLER, family=other)
    assert not spec.can_play(role=Role.BUYER, family=family)


@pytest.mark.parametrize("slug", sorted(MANY_BUYERS))
def test_a_ladder_without_a_choice_of_buyers_also_plays_a_single_one(slug: str) -> None:
    can = registry.get(slug).can_play(role=Role.SELLER, family=Family.BILATERAL)
    assert can is (slug in ONE_OR_MANY_BUYERS)


def test_only_references_know_values_and_they_come_last() -> None:
    kinds = [spec.kind for spec in registry.all_specs()]
    references = {spec.slug for spec in registry.all_specs() if spec.kind is Kind.REFERENCE}
    assert references == {"oracle"} | ASSIGNMENTS
    assert kinds[-len(references) :] == [Kind.REFERENCE] * len(references)


def test_everybody_says_in_one_sentence_what_to_expect_and_where_it_comes_from() -> None:
    for spec in registry.all_specs():
        assert spec.summary.endswith("."), spec.slug
        assert 20 < len(spec.summary) <= 100, spec.slug
        assert spec.title, spec.slug
        assert spec.source.endswith("."), spec.slug
    summaries = [spec.summary for spec in registry.all_specs()]
    assert len(set(summaries)) == len(summaries)


def test_a_misspelt_slug_gets_a_sentence_with_what_was_meant() -> None:
    with pytest.raises(registry.UnknownAgent, match=r"^There is no agent 'bolware'\. Did you mean 'boulware'") as error:
        registry.get("bolware")
    assert error.value.slug == "bolware"


def test_a_slug_like_none_gets_the_whole_list() -> None:
    with pytest.raises(registry.UnknownAgent, match=r"The agents are: .*threshold"):
        registry.get("0000")


def test_the_page_about_agents_lists_each_of_them_once() -> None:
    """A reader who meets a slug in a table of results must find its rule."""
    page = (Path(__file__).parents[2] / "docs" / "agents.md").read_text(encoding="utf-8")
    listed = re.findall(r"^\| `([a-z-]+)` \|", page, flags=re.MULTILINE)
    assert sorted(listed) == sorted(spec.slug for spec in registry.all_specs() if spec.kind is not Kind.LEARNED)
