"""What is said of a market before anybody sits down: its rules and what is public, never a drawn value."""

import pytest

from markets import market_page
from markets.engine.protocol import SELLER, Role
from markets.engine.scenarios import decode_recipe
from tests.markets import rooms
from tests.markets.engine.factories import B1, bilateral, catalogue
from tests.markets.rooms import staged

pytestmark = pytest.mark.django_db


def rules(family: str, **changes) -> str:
    return " ".join(market_page.rules(decode_recipe(rooms.market(family, slug="m", **changes).recipe)))


def test_the_rules_say_who_begins_and_how_long_it_lasts():
    assert "for up to 6 rounds. The buyer writes first." in rules("bilateral")


def test_the_rules_of_several_buyers_say_what_the_seller_can_spend():
    text = rules("multi_buyer", turns=9, buyers=4)
    assert "The seller has 9 messages to spend over 4 buyers" in text
    assert "Every buyer wants one unit." in text


def test_one_buyer_among_several_is_not_counted():
    assert "The seller has 9 messages to spend on one buyer" in rules("multi_buyer", turns=9, buyers=1)


def test_a_market_without_turns_says_when_it_ends_and_that_nothing_guards_its_seats():
    text = rules("bilateral", mechanism="event_driven", turns=10)
    assert "The buyer writes first. From then on there are no turns" in text
    assert "Plan for about 10 messages each; after 50 moves of both together it ends" in text
    assert "Nothing stops you from a deal that costs you money" in text
    guarded = rooms.market("bilateral", slug="g", mechanism="event_driven", regulated=(Role.BUYER,))
    assert "Nothing stops you" not in " ".join(market_page.rules(decode_recipe(guarded.recipe)))
    assert "range of list prices" in " ".join(market_page.detail_page(guarded, seats=()).public)


def test_a_market_that_guards_its_seats_says_so():
    assert "are refused" in rules("bilateral", regulated=(Role.BUYER,))
    assert "are refused" not in market_page.rules(decode_recipe(rooms.market("bilateral", slug="n").recipe))


def test_the_public_facts_name_the_distributions_and_the_correlation():
    market = rooms.market("multi_buyer", slug="m", rho=0.6)
    page = market_page.detail_page(market, seats=())
    facts = " ".join(page.public)
    assert "$20" in facts
    assert "$120" in facts
    assert "their correlation is 0.6" in facts
    assert "There are 3 buyers" in facts


def test_an_item_without_a_catalogue_is_explained():
    page = market_page.detail_page(rooms.market("bilateral", slug="m"), seats=())
    assert page.products == ()
    assert page.products_note == "An item without a name: only values and prices matter here."


@pytest.mark.parametrize(("scenario", "product"), [(bilateral(), "Thing 0"), (catalogue(), "2 products for 2 buyers")])
def test_a_share_link_says_which_seat_and_what_is_on_the_table(scenario, product):
    host = B1 if scenario.buyers == 1 else SELLER
    other = SELLER if host == B1 else B1
    game = staged(scenario, people=(host, other), start=False)
    page = market_page.join_page(game.seat(other), game.room.market, error="")
    assert (page.product, page.role) == (product, "seller" if other == SELLER else "buyer")
    assert "5000" not in repr(page)
    assert "80" not in repr(page)
