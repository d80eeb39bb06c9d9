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
    "zi-c",
    "boulware",
    "linear",
    "conceder",
    "tit-for-tat",
    "hardliner",
    "split-the-difference",
    "satisficer",
}
BUYERS = {"threshold", "logit", "impatient"}
MANY_BUYERS = {
    "chase-highest-bid",
    "one-pass",
    "falling-ladder",
    "explore-then-commit",
    "all-on-one",
    "optimal-ladder",
}
CATALOGUES = {"greedy", "serial", "random-match"}


def test_the_slugs_are_those_that_markets_and_records_name() -> None:
    slugs = [spec.slug for spec in registry.all_specs()]
    assert len(slugs) == len(set(slugs))
    ruled = {spec.slug for spec in registry.all_specs() if spec.kind is not Kind.LEARNED}
    assert ruled == BOTH | BUYERS | MANY_BUYERS | CATALOGUES | {"oracle"}


@pytest.mark.parametrize("slug", sorted(BOTH))
def test_a_general_strategy_plays_both_sides_of_every_market(slug: str) -> None:
    spec = registry.get(slug)
    assert all(spec.can_play(role=role, family=family) for role in Role for family in Family)


@pytest.mark.parametrize("slug", sorted(BUYERS))
def test_a_buyer_type_buys_everywhere_and_never_sells(slug: str) -> None:
    spec = registry.get(slug)
    assert all(spec.can_play(role=Role.BUYER, family=family) for family in Family)
    assert not any(spec.can_play(role=Role.SELLER, family=family) for family in Family)


@pytest.mark.parametrize("slug", sorted(MANY_BUYERS | CATALOGUES))
def test_a_seller_for_many_sells_only_where_it_knows_how(slug: str) -> None:
    spec = registry.get(slug)
    family = Family.CATALOGUE if slug in CATALOGUES else Family.MULTI_BUYER
    other = Family.MULTI_BUYER if slug in CATALOGUES else Family.CATALOGUE
    assert spec.can_play(role=Role.SELLER, family=family)
    assert not spec.can_play(role=Role.SELLER, family=other)
    assert not spec.can_play(role=Role.BUYER, family=family)


def test_the_optimal_ladder_also_plays_a_single_buyer() -> None:
    assert registry.get("optimal-ladder").can_play(role=Role.SELLER, family=Family.BILATERAL)


def test_only_the_oracle_knows_values() -> None:
    assert [spec.slug for spec in registry.all_specs() if spec.kind is Kind.REFERENCE] == ["oracle"]


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
