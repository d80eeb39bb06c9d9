"""A suite plays the same negotiations for every agent, on any machine, for ever."""

from collections import Counter

import msgspec
import pytest

from agents import registry
from markets.engine.protocol import Role
from negotiation_site.starter import catalogue
from training.suites import cards, games, measure
from training.suites.cards import SuiteError


@pytest.fixture(scope="module")
def pool():
    return catalogue.facts()


def played(name: str, slug: str, role: Role, pool, *, first: int):
    card = cards.card(name)
    drawn = games.listings(card, pool)[:first]
    return list(games.play_suite(card, drawn, spec=registry.get(slug), role=role))


@pytest.mark.parametrize("name", cards.NAMES)
def test_the_scenarios_are_those_that_were_frozen(name, pool) -> None:
    card = cards.card(name)
    drawn = games.listings(card, pool)
    assert len(drawn) == card.listings * card.rollouts
    assert len({listing.scenario.seed for listing in drawn}) == len(drawn)


@pytest.mark.parametrize("name", cards.NAMES)
def test_a_suite_that_comes_out_otherwise_is_not_played(name, pool) -> None:
    dearer = [msgspec.structs.replace(facts, list_price_cents=facts.list_price_cents + 1) for facts in pool]
    with pytest.raises(SuiteError, match="come out otherwise than version 1 froze them"):
        games.listings(cards.card(name), dearer)
    with pytest.raises(SuiteError, match=r"needs|come out otherwise"):
        games.listings(cards.card(name), pool[:5])


def test_better_words_about_a_product_leave_a_suite_what_it_is(pool) -> None:
    reworded = [msgspec.structs.replace(facts, text=facts.text + " As new.") for facts in pool]
    assert games.listings(cards.card("p1"), reworded)


@pytest.mark.parametrize("name", ["p1", "p2"])
def test_every_one_of_128_products_comes_up_in_four_negotiations_of_its_own(name, pool) -> None:
    card = cards.card(name)
    drawn = games.listings(card, pool)
    own = Counter(listing.number for listing in drawn)
    assert (len(own), set(own.values())) == (128, {4})
    chosen = {product.sku for listing in drawn for product in listing.scenario.products}
    assert len(chosen) == 128


def test_no_opponent_changes_with_the_agent_under_test(pool) -> None:
    card = cards.card("p1")
    drawn = games.listings(card, pool)[:40]
    met = {slug: games.seat(registry.get(slug)) for slug in (*card.sellers, *card.buyers)}
    for slug in ("linear", "falling-ladder"):
        own = games.seat(registry.get(slug))
        seats = [games._seats(card, listing.scenario, own, Role.SELLER, met, "") for listing in drawn]
        slugs = [[seat.spec.slug for party, seat in each.items() if party != "seller"] for each in seats]
        assert all(each["seller"].spec.slug == slug for each in seats)
        assert {kind for each in slugs for kind in each} == set(card.buyers), "every kind of buyer is met"
    assert slugs[0] != slugs[1]


def test_a_buyer_under_test_sits_on_one_chair_beside_others(pool) -> None:
    tested = played("p1", "linear", Role.BUYER, pool, first=8)
    lines = [measure.line(each) for each in tested]
    assert {each.role for each in lines} == {Role.BUYER}
    assert sum(each.deal for each in lines) < len(lines), "others buy as well"


def test_every_opponent_is_met_in_every_listing_of_p3(pool) -> None:
    tested = played("p3", "hardliner", Role.SELLER, pool, first=3)
    assert Counter(each.opponent for each in tested) == dict.fromkeys(cards.card("p3").buyers, 3)


def test_an_agent_that_cannot_play_is_refused_with_its_reason() -> None:
    with pytest.raises(SuiteError, match="'greedy' does not play seller in a multi_buyer market, which suite 'p1' is"):
        games.default_roles(cards.card("p1"), registry.get("greedy"))
    with pytest.raises(SuiteError, match="'one-pass' does not play buyer"):
        games.check_plays(registry.get("one-pass"), Role.BUYER, cards.card("p1"))
    assert games.default_roles(cards.card("p3"), registry.get("threshold")) == (Role.BUYER,)
    with pytest.raises(SuiteError, match="There is no suite 'p9'"):
        cards.card("p9")


def test_the_frozen_figures_of_a_reference_come_out_again(pool) -> None:
    card = cards.card("p1")
    reference = next(each for each in card.references if each.agent == "falling-ladder")
    tally = measure.Tally().add(
        games.play_suite(card, games.listings(card, pool), spec=registry.get("falling-ladder"), role=Role.SELLER)
    )
    found = measure.report(card, tally.lines)
    assert found["share"] == pytest.approx(reference.share)
    assert (found["share_low"], found["share_high"]) == pytest.approx((reference.share_low, reference.share_high))
    assert found["allocation_quality"] == pytest.approx(reference.allocation_quality)


@pytest.mark.parametrize("name", cards.NAMES)
def test_every_opponent_and_reference_is_still_the_version_that_was_frozen(name) -> None:
    card = cards.card(name)
    assert {slug: registry.get(slug).version for slug in card.sellers} == card.sellers
    assert {slug: registry.get(slug).version for slug in card.buyers} == card.buyers
    assert [each.agent for each in card.references if registry.get(each.agent).version != each.version] == []


@pytest.mark.parametrize("name", cards.NAMES)
def test_the_bound_is_above_every_reference(name) -> None:
    references = cards.card(name).references
    for role in Role:
        shares = {each.agent: each.share for each in references if each.role is role}
        if shares:
            assert max(shares, key=lambda slug: shares[slug] or 0) == "oracle"
            assert max(share or 0 for share in shares.values()) <= 1


@pytest.mark.parametrize("name", ["p1", "p2"])
def test_references_of_a_suite_with_choices_say_how_well_goods_were_allocated(name: str) -> None:
    for reference in cards.card(name).references:
        assert reference.allocation_quality_low <= reference.allocation_quality <= reference.allocation_quality_high
        assert reference.allocation_quality_rescaled < reference.allocation_quality < 1.000001
        assert reference.deal_rate_low <= reference.deal_rate <= reference.deal_rate_high
