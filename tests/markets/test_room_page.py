"""What one seat's page says, in the words of whoever sits there."""

from datetime import timedelta

import pytest
from django.utils import timezone

from markets import event_log, room_page, services
from markets.engine import rules
from markets.engine.protocol import SELLER, RefusalCode, Role
from markets.engine.scenarios import OpeningBid
from markets.presentation import EventItem
from tests.markets.engine.factories import (
    B1,
    B2,
    LEAVE,
    accept,
    bilateral,
    catalogue,
    multi_buyer,
    offer,
    reject,
    say,
)
from tests.markets.rooms import Game, staged

pytestmark = pytest.mark.django_db


def items(game: Game, party: str) -> list[EventItem]:
    """Every line of every conversation of a seat, in order."""
    view = game.view(party)
    lines = [
        room_page.event_item(view, event, thread=room_page.thread_number(view, event.thread)) for event in view.events
    ]
    return [line for line in lines if line is not None]


def sentences(game: Game, party: str) -> list[str]:
    return [f"{item.author}: {item.sentence}" if item.author else item.sentence for item in items(game, party)]


def turn(game: Game, party: str) -> str:
    return room_page.status_bar(game.view(party)).turn_text


# --- Lines of the log -------------------------------------------------------------------------------


def test_offers_and_answers_read_differently_from_each_side():
    game = staged(bilateral(), people=(B1, SELLER))
    game.act(B1, offer(5_500))
    game.act(SELLER, reject(1))
    game.act(B1, say("Hm."))
    game.act(SELLER, offer(7_000))
    game.act(B1, accept(2))
    assert sentences(game, B1) == [
        "You: offered $55.00",
        "Seller: Seller turned your $55.00 down.",
        "You: ",
        "Seller: offered $70.00",
        "You: You accepted $70.00. Deal.",
        "Deal. The negotiation is over.",
    ]
    assert sentences(game, SELLER) == [
        "Buyer: offered $55.00",
        "You: You turned $55.00 down.",
        "Buyer: ",
        "You: offered $70.00",
        "Buyer: Buyer accepted your $70.00. Deal.",
        "Deal. The negotiation is over.",
    ]


def test_leaving_and_running_out_of_time_read_differently_from_each_side():
    game = staged(bilateral(), people=(B1, SELLER))
    game.act(B1, LEAVE)
    assert sentences(game, B1)[0] == "You left."
    assert sentences(game, SELLER)[0] == "Buyer left."
    game = staged(bilateral(), people=(B1, SELLER))
    services.sweep(game.seat(B1).deadline_at)
    assert sentences(game, B1)[0] == "Your time ran out."
    assert sentences(game, SELLER)[0] == "Buyer did not answer in time."
    game = staged(bilateral(), people=(B1, SELLER))
    game.act(SELLER, LEAVE)
    assert sentences(game, B1)[0] == "Seller left."


def test_a_sellers_buyers_have_letters_and_a_buyer_knows_one_seller():
    game = staged(multi_buyer(openings=(2_700, 2_800, 2_900)), people=(SELLER, B1, B2))
    game.act(SELLER, offer(6_000, to=2))
    game.act(B2, accept(2))
    told = sentences(game, SELLER)
    assert told[:3] == [
        f"Buyer {letter}: offered ${price}.00" for letter, price in zip("ABC", (27, 28, 29), strict=True)
    ]
    assert "Buyer B: Buyer B accepted your $60.00. Deal." in told
    assert sentences(game, B1) == [
        "You: offered $27.00",
        "The offer of $27.00 lapsed: the product is sold.",
        "The market has closed. The negotiation is over.",
    ]
    assert items(game, B1)[0].when == "opening bid, by the market's rule"


def test_products_are_named_where_there_are_several():
    game = staged(catalogue(), people=(SELLER, B1, B2))
    game.act(SELLER, offer(7_500, to=1, product=1))
    assert items(game, B1)[0].product == "Thing 1"
    game.act(B1, LEAVE)
    game.act(SELLER, offer(7_400, to=2, product=1))
    game.act(B2, accept(1))
    assert "Thing 1 is sold out." in sentences(game, SELLER)


def test_an_agents_broken_move_is_a_pass_to_the_other_side_and_its_reason_stays_hidden():
    game = staged(bilateral(opener=Role.SELLER), people=(B1,))
    room = game.fresh()
    fold = event_log.load(room)
    events, _ = rules.refuse(fold.state, SELLER, RefusalCode.BEYOND_RESERVATION)
    event_log.append(room, fold, events, party=SELLER, at_ms=0)
    room.save()
    assert sentences(game, B1) == ["Seller passed."]


# --- Whose turn -------------------------------------------------------------------------------------


def test_the_status_says_whose_turn_it_is_in_a_game_of_two():
    game = staged(bilateral(rounds=6), people=(B1, SELLER), start=False)
    assert turn(game, B1) == "Waiting for somebody to take the other seat"
    game = staged(bilateral(rounds=6), people=(B1, SELLER))
    assert (turn(game, B1), turn(game, SELLER)) == ("Your turn", "Waiting for the buyer")
    game.act(B1, say())
    assert (turn(game, B1), turn(game, SELLER)) == ("Waiting for the seller", "Your turn")
    game.act(SELLER, say())
    assert room_page.status_bar(game.view(B1)).round_text == "Round 2 of 6"
    game.act(B1, LEAVE)
    assert turn(game, B1) == turn(game, SELLER) == "The negotiation is over"


def test_the_status_of_a_seller_of_several_counts_messages_and_a_buyers_does_not():
    game = staged(multi_buyer(turns=3), people=(SELLER, B1, B2))
    assert turn(game, SELLER) == "Your turn: choose a buyer"
    assert room_page.status_bar(game.view(SELLER)).turns_text == "3 of 3 messages left"
    game.act(SELLER, say(to=1))
    assert turn(game, SELLER) == "Answers are on their way; you may write to the others"
    assert (turn(game, B1), turn(game, B2)) == ("Your turn", "Waiting for the seller")
    assert room_page.status_bar(game.view(SELLER)).turns_text == "2 of 3 messages left"
    assert room_page.status_bar(game.view(B1)).turns_text == ""
    assert room_page.awaiting(game.view(SELLER)) == (2, 3)
    game.act(SELLER, say(to=2))
    game.act(SELLER, say(to=3))
    assert turn(game, SELLER) == "Waiting for answers"
    assert room_page.awaiting(game.view(SELLER)) == ()


def test_a_buyer_who_is_through_knows_that_the_others_go_on():
    game = staged(catalogue(stock=2), people=(SELLER, B1, B2))
    game.act(SELLER, offer(7_000, to=1))
    game.act(B1, accept(1))
    assert turn(game, B1) == "You have bought; the seller is still talking to others"
    assert room_page.thread_panels(game.view(B1))[0].status_text == "You bought at $70.00"
    assert room_page.thread_panels(game.view(SELLER))[0].status_text == "Bought at $70.00"


def test_a_buyer_who_left_knows_that_the_others_go_on():
    game = staged(multi_buyer(), people=(SELLER, B1, B2))
    game.act(B1, LEAVE)
    assert turn(game, B1) == "You have left; the seller is still talking to others"
    assert room_page.thread_panels(game.view(SELLER))[0].status == "left"


# --- Cards and offers -------------------------------------------------------------------------------


def test_the_card_says_what_the_seat_alone_knows():
    game = staged(bilateral(), people=(B1, SELLER))
    buyer, seller = (room_page.private_card(game.view(party)) for party in (B1, SELLER))
    assert buyer.products[0].value_sentence == "You value this at $80.00."
    assert seller.products[0].value_sentence == "This costs you $50.00."
    assert buyer.products[0].example_sentence == "A deal at $66.00 is worth $14.00 to you."
    assert seller.products[0].example_sentence == "A deal at $60.00 is worth $10.00 to you."


@pytest.mark.parametrize("cents", [1, 2, 99, 100, 101, 12_345, 99_999_999])
def test_the_example_on_the_card_is_a_gain_whatever_the_value(cents):
    for scenario, party in ((bilateral(value=cents), B1), (bilateral(cost=cents), SELLER)):
        game = staged(scenario, people=(party,))
        sentence = room_page.private_card(game.view(party)).products[0].example_sentence
        assert ("is worth" in sentence) or cents == 1, sentence
        assert "cost you" not in sentence


def test_the_price_field_suggests_a_price_of_the_product_that_is_chosen():
    game = staged(catalogue(), people=(SELLER,))
    (panel, *_rest) = room_page.thread_panels(game.view(SELLER))
    for option, cost in zip(panel.composer.products, game.scenario.seller_values_cents, strict=True):
        assert cost < float(option.price_example) * 100 <= 2 * cost + 100


def test_standing_offers_say_what_they_are_worth_and_who_may_take_them():
    game = staged(bilateral(), people=(B1, SELLER))
    game.act(B1, offer(5_500))
    game.act(SELLER, offer(8_500))
    view = game.view(B1)
    (panel,) = room_page.thread_panels(view)
    theirs, own = panel.offers
    assert (theirs.price, theirs.can_accept, theirs.gains) == ("$85.00", True, False)
    assert theirs.surplus_sentence == "A deal at $85.00 would cost you $5.00."
    assert (own.price, own.yours, own.can_accept) == ("$55.00", True, False)
    assert own.surplus_sentence == "A deal at $55.00 is worth $25.00 to you."
    assert not any(offer.can_accept for offer in room_page.thread_panels(game.view(SELLER))[0].offers)


def test_nothing_can_be_accepted_once_it_is_over():
    game = staged(bilateral(), people=(B1, SELLER))
    game.act(B1, offer(5_500))
    game.act(SELLER, LEAVE)
    assert all(not panel.offers for panel in room_page.thread_panels(game.view(SELLER)))


def test_a_clock_is_shown_for_minutes_and_not_for_days():
    between_people = staged(bilateral(), people=(B1, SELLER))
    alone = staged(bilateral(), people=(B1,))
    deadline = between_people.seat(B1).deadline_at
    assert room_page.deadline_at_ms(between_people.view(B1)) == round(deadline.timestamp() * 1000)
    assert room_page.deadline_at_ms(between_people.view(SELLER)) is None
    assert alone.seat(B1).deadline_at > timezone.now() + timedelta(hours=2)
    assert room_page.deadline_at_ms(alone.view(B1)) is None


def test_an_opponent_is_an_agent_by_name_or_a_person_without_one():
    game = staged(bilateral(), people=(B1, SELLER))
    assert "a person" in room_page.room_page(game.view(B1), origin="").opponent_text
    game = staged(bilateral(), people=(B1,), agents="boulware")
    assert "an agent, Boulware" in room_page.room_page(game.view(B1), origin="").opponent_text
    game = staged(multi_buyer(), people=(SELLER,))
    assert room_page.room_page(game.view(SELLER), origin="").opponent_text == "against 3 buyers"


def test_every_page_number_of_a_thread_is_one_the_page_has():
    game = staged(catalogue(openings=(OpeningBid(1, 0, 2_500),)), people=(SELLER, B1, B2))
    game.act(SELLER, offer(7_000, to=1))
    game.act(B1, accept(2))
    for party, threads in ((SELLER, {1, 2}), (B1, {1}), (B2, {1})):
        page = room_page.room_page(game.view(party), origin="")
        assert {thread.thread for thread in page.threads} == threads
        assert {item.thread for item in items(game, party)} <= threads | {0}
        assert set(page.awaiting) <= threads
