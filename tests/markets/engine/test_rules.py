"""Who may do what, and what follows: one example a rule, every refusal code and every end."""

import pytest

from markets.engine import rules
from markets.engine.protocol import (
    MAX_TALK_CHARS,
    REFUSAL_SENTENCES,
    AcceptOffer,
    Action,
    DeadlinePassed,
    EndReason,
    Event,
    IllegalAction,
    LapseReason,
    Leave,
    LogEntry,
    MakeOffer,
    MessageSent,
    MoveRefused,
    NegotiationEnded,
    OfferAccepted,
    OfferLapsed,
    OfferMade,
    OfferRejected,
    Party,
    PartyLeft,
    ProductSoldOut,
    RefusalCode,
    Role,
    Say,
    SearchPrice,
    Wait,
)
from markets.engine.scenarios import OpeningBid, Scenario
from markets.engine.state import ThreadStatus
from tests.markets.engine import test_event_driven
from tests.markets.engine.factories import (
    B1,
    B2,
    B3,
    LEAVE,
    SELLER,
    Table,
    accept,
    bilateral,
    catalogue,
    event_driven,
    multi_buyer,
    offer,
    reject,
    say,
)

Moves = tuple[tuple[Party, Action], ...]

# --- Every refusal code ---------------------------------------------------------------------------

SOLD_TO_B1: Moves = ((SELLER, offer(9_500, to=2)), (SELLER, offer(9_000, to=1)), (B1, accept(1)))
"""Buyer 1 takes product 0 while buyer 2 still thinks about the same product."""

REFUSED: list[tuple[RefusalCode, Scenario, Moves, Party, Action, int]] = [
    (RefusalCode.NEGOTIATION_ENDED, bilateral(), ((B1, LEAVE),), SELLER, say(), 0),
    (RefusalCode.SOLD_OUT, catalogue(), SOLD_TO_B1, B2, accept(1), 0),
    (RefusalCode.NOT_YOUR_TURN, bilateral(opener=Role.BUYER), (), SELLER, offer(9_000), 0),
    (RefusalCode.AWAITING_ANSWER, multi_buyer(), ((SELLER, say(to=2)),), SELLER, offer(9_000, to=2), 0),
    (RefusalCode.UNKNOWN_THREAD, multi_buyer(), (), SELLER, offer(9_000, to=4), 0),
    (RefusalCode.THREAD_CLOSED, multi_buyer(), ((B2, LEAVE),), SELLER, offer(9_000, to=2), 0),
    (RefusalCode.ALREADY_SERVED, catalogue(), SOLD_TO_B1, SELLER, offer(9_000, to=1, product=1), 0),
    (RefusalCode.UNKNOWN_PRODUCT, catalogue(), (), SELLER, offer(9_000, to=1, product=2), 0),
    (RefusalCode.PRICE_OUT_OF_RANGE, bilateral(), (), B1, offer(0), 0),
    (RefusalCode.UNKNOWN_OFFER, bilateral(), (), B1, accept(1), 0),
    (
        RefusalCode.OFFER_GONE,
        bilateral(),
        ((B1, offer(3_000)), (SELLER, reject(1)), (B1, say())),
        SELLER,
        accept(1),
        0,
    ),
    (RefusalCode.OWN_OFFER, bilateral(), ((B1, offer(3_000)), (SELLER, say())), B1, accept(1), 0),
    (RefusalCode.BEYOND_RESERVATION, bilateral(regulated=(Role.BUYER,)), (), B1, offer(8_001), 0),
    (RefusalCode.TURNS_USED, multi_buyer(turns=1), ((SELLER, say(to=1)),), SELLER, say(to=2), 0),
    (RefusalCode.EMPTY_MESSAGE, bilateral(), (), B1, say(" \n\t"), 0),
    (RefusalCode.TALK_TOO_LONG, bilateral(), (), B1, say("x" * (MAX_TALK_CHARS + 1)), 0),
    (RefusalCode.TALK_NOT_TEXT, bilateral(), (), B1, say("half \ud83d of an emoji"), 0),
    (RefusalCode.WAIT_NOT_AVAILABLE, bilateral(), (), B1, Wait(), 0),
    (RefusalCode.WAIT_OUT_OF_RANGE, event_driven(), (), SELLER, Wait(for_ms=600_001), 0),
    (RefusalCode.SEARCH_NOT_AVAILABLE, bilateral(), (), B1, SearchPrice(), 0),
    (RefusalCode.DEADLINE_PASSED, bilateral(deadline_ms=60_000), (), B1, offer(5_000), 60_001),
]


@pytest.mark.parametrize(
    ("code", "scenario", "moves", "party", "action", "at_ms"), REFUSED, ids=[row[0].value for row in REFUSED]
)
def test_a_broken_rule_is_refused_with_its_own_code(
    code: RefusalCode, scenario: Scenario, moves: Moves, party: Party, action: Action, at_ms: int
) -> None:
    table = Table(scenario).play_all(*moves)
    assert table.refusal(party, action, at_ms=at_ms) is code


def test_every_refusal_code_has_an_example_here() -> None:
    by_a_move = {row[0] for row in REFUSED}
    never_by_a_move = {RefusalCode.MALFORMED}
    """Bytes that are no move at all; see `test_an_unreadable_message_ends_alternating_rounds`."""
    assert by_a_move | never_by_a_move == set(RefusalCode)
    assert not by_a_move & never_by_a_move


def test_every_refusal_code_has_a_sentence_of_its_own() -> None:
    assert set(REFUSAL_SENTENCES) == set(RefusalCode)
    assert len(set(REFUSAL_SENTENCES.values())) == len(RefusalCode)
    assert all(sentence.endswith((".", "!")) for sentence in REFUSAL_SENTENCES.values())


# --- Every end --------------------------------------------------------------------------------------


def test_a_bilateral_deal_ends_the_negotiation() -> None:
    table = Table(bilateral()).play_all((B1, offer(6_000)))
    assert table.play(SELLER, accept(1)) == (
        OfferAccepted(by=Role.SELLER, buyer=1, offer_id=1, product=0, price_cents=6_000),
        ProductSoldOut(product=0),
        NegotiationEnded(reason=EndReason.DEAL),
    )


def test_selling_the_last_unit_of_several_ends_as_sold_out() -> None:
    table = Table(catalogue()).play_all((SELLER, offer(8_000, to=1)), (B1, accept(1)))
    assert not table.state.ended
    table.play_all((SELLER, offer(7_000, to=2, product=1)), (B2, accept(1)))
    assert table.state.end_reason is EndReason.SOLD_OUT


def test_serving_every_buyer_ends_as_a_deal_though_goods_are_left() -> None:
    table = Table(multi_buyer(stock=5)).play_all(
        *((SELLER, offer(4_500, to=buyer)) for buyer in (1, 2, 3)), (B1, accept(1)), (B2, accept(1))
    )
    assert not table.state.ended
    table.play(B3, accept(1))
    assert table.state.end_reason is EndReason.DEAL
    assert table.state.stock_left == (2,)


@pytest.mark.parametrize("scenario", [bilateral(), multi_buyer(), catalogue()], ids=lambda s: s.family.value)
def test_when_every_buyer_has_left_nothing_can_follow(scenario: Scenario) -> None:
    table = Table(scenario)
    for buyer in range(1, scenario.buyers + 1):
        assert not table.state.ended
        table.play(f"buyer-{buyer}", LEAVE)
    assert table.state.end_reason is EndReason.BUYERS_GONE


def test_the_last_open_buyer_may_leave_after_another_was_served() -> None:
    table = Table(multi_buyer(values=(9_000, 9_000), stock=2)).play_all(
        (SELLER, offer(8_000, to=1)), (B1, accept(1)), (B2, LEAVE)
    )
    assert table.state.end_reason is EndReason.BUYERS_GONE
    assert len(table.state.deals) == 1


@pytest.mark.parametrize("scenario", [bilateral(), multi_buyer(), catalogue()], ids=lambda s: s.family.value)
def test_the_seller_leaving_ends_it_for_everybody(scenario: Scenario) -> None:
    table = Table(scenario)
    assert table.play(SELLER, LEAVE) == (
        PartyLeft(by=Role.SELLER, buyer=0),
        NegotiationEnded(reason=EndReason.SELLER_LEFT),
    )
    assert {thread.status for thread in table.state.threads} == {ThreadStatus.LEFT}


def test_rounds_that_are_used_up_end_in_an_impasse() -> None:
    table = Table(bilateral(rounds=2)).play_all(
        (B1, offer(3_000)), (SELLER, offer(9_000)), (B1, offer(4_000)), (SELLER, offer(8_500))
    )
    assert table.state.end_reason is EndReason.TURNS_USED
    assert table.log[-2].event == OfferMade(by=Role.SELLER, buyer=1, offer_id=4, product=0, price_cents=8_500)


def test_a_party_that_lets_its_time_run_out_is_taken_to_have_left() -> None:
    table = Table(bilateral()).play_all((B1, offer(3_000)))
    assert table.expire(SELLER) == (
        DeadlinePassed(by=Role.SELLER, buyer=0),
        PartyLeft(by=Role.SELLER, buyer=0),
        NegotiationEnded(reason=EndReason.DEADLINE),
    )


def test_one_of_several_buyers_running_out_of_time_stops_nobody_else() -> None:
    table = Table(multi_buyer()).play_all((SELLER, offer(9_000, to=1)), (SELLER, offer(9_000, to=2)))
    assert table.expire(B1) == (DeadlinePassed(by=Role.BUYER, buyer=1), PartyLeft(by=Role.BUYER, buyer=1))
    assert not table.state.ended
    table.play(B2, accept(1))
    assert table.state.end_reason is EndReason.DEAL


def test_the_last_buyer_running_out_of_time_ends_by_the_clock_and_not_by_choice() -> None:
    table = Table(multi_buyer(values=(4_800, 7_200))).play_all((B1, LEAVE), (SELLER, offer(9_000, to=2)))
    assert table.expire(B2)[-1] == NegotiationEnded(reason=EndReason.DEADLINE)


def test_nobody_can_run_out_of_time_twice_or_after_the_end() -> None:
    table = Table(multi_buyer()).play_all((SELLER, offer(9_000, to=1)))
    table.expire(B1)
    with pytest.raises(IllegalAction) as refused:
        rules.expire(table.state, B1)
    assert refused.value.code is RefusalCode.THREAD_CLOSED
    table.play(SELLER, LEAVE)
    with pytest.raises(IllegalAction) as refused:
        rules.expire(table.state, SELLER)
    assert refused.value.code is RefusalCode.NEGOTIATION_ENDED


def test_an_unreadable_message_ends_alternating_rounds() -> None:
    table = Table(bilateral())
    assert table.refuse(B1, RefusalCode.MALFORMED) == (
        MoveRefused(by=Role.BUYER, buyer=1, code="malformed"),
        NegotiationEnded(reason=EndReason.MALFORMED),
    )


def test_a_market_can_let_an_unreadable_message_pass_as_a_lost_turn() -> None:
    table = Table(bilateral(malformed_ends=False))
    table.refuse(B1, RefusalCode.MALFORMED)
    assert not table.state.ended
    assert rules.parties_to_move(table.state) == (SELLER,)


def test_under_seller_turns_an_unreadable_message_costs_a_turn_only() -> None:
    table = Table(multi_buyer(turns=3))
    table.refuse(SELLER, RefusalCode.MALFORMED)
    assert not table.state.ended
    assert rules.turns_left(table.state) == 2


def test_every_way_to_end_has_an_example_here() -> None:
    endings = {
        EndReason.DEAL: test_a_bilateral_deal_ends_the_negotiation,
        EndReason.SOLD_OUT: test_selling_the_last_unit_of_several_ends_as_sold_out,
        EndReason.BUYERS_GONE: test_when_every_buyer_has_left_nothing_can_follow,
        EndReason.SELLER_LEFT: test_the_seller_leaving_ends_it_for_everybody,
        EndReason.TURNS_USED: test_rounds_that_are_used_up_end_in_an_impasse,
        EndReason.EVENTS_USED: test_event_driven.test_the_cap_ends_it,
        EndReason.SILENCE: test_event_driven.test_who_both_wait_for_ever_end_in_silence_when_the_driver_says_so,
        EndReason.DEADLINE: test_a_party_that_lets_its_time_run_out_is_taken_to_have_left,
        EndReason.MALFORMED: test_an_unreadable_message_ends_alternating_rounds,
    }
    only_told_to_buyers = {EndReason.CLOSED}
    assert set(endings) | only_told_to_buyers == set(EndReason)


@pytest.mark.parametrize(
    "action", [say(), offer(5_000), accept(1), reject(1), Wait(), LEAVE], ids=lambda a: type(a).__name__
)
@pytest.mark.parametrize("party", [SELLER, B1])
def test_after_the_end_nothing_can_be_added(party: Party, action: Action) -> None:
    table = Table(bilateral()).play_all((B1, offer(6_000)), (SELLER, accept(1)))
    assert table.refusal(party, action) is RefusalCode.NEGOTIATION_ENDED
    with pytest.raises(IllegalAction):
        rules.refuse(table.state, party, RefusalCode.MALFORMED)
    assert rules.parties_to_move(table.state) == ()


# --- Alternating rounds -----------------------------------------------------------------------------


@pytest.mark.parametrize(("opener", "first", "second"), [(Role.BUYER, B1, SELLER), (Role.SELLER, SELLER, B1)])
def test_the_market_says_who_opens_and_then_they_alternate(opener: Role, first: Party, second: Party) -> None:
    table = Table(bilateral(opener=opener))
    for party, other in ((first, second), (second, first), (first, second)):
        assert rules.parties_to_move(table.state) == (party,)
        assert table.refusal(other, say()) is RefusalCode.NOT_YOUR_TURN
        table.play(party, say())


def test_each_side_has_one_message_a_round_and_the_last_one_can_still_accept() -> None:
    table = Table(bilateral(rounds=2, opener=Role.SELLER)).play_all(
        (SELLER, offer(9_000)), (B1, offer(4_000)), (SELLER, offer(7_500))
    )
    assert table.sees(SELLER).turns_left == 0
    assert table.sees(B1).turns_left == 1
    table.play(B1, accept(3))
    assert table.state.deals[0].price_cents == 7_500


@pytest.mark.parametrize("move", [say(), offer(5_000), reject(2)], ids=lambda a: type(a).__name__)
def test_talk_offers_and_rejections_are_one_message_each(move: Action) -> None:
    table = Table(bilateral(rounds=2)).play_all((B1, offer(3_000)), (SELLER, offer(9_000)), (B1, move))
    assert table.sees(B1).turns_left == 0
    assert rules.parties_to_move(table.state) == (SELLER,)


def test_either_side_may_leave_out_of_turn() -> None:
    table = Table(bilateral(opener=Role.BUYER))
    table.play(SELLER, LEAVE)
    assert table.state.end_reason is EndReason.SELLER_LEFT


def test_an_agents_refused_move_hands_the_turn_on() -> None:
    table = Table(bilateral(rounds=2))
    table.refuse(B1, RefusalCode.UNKNOWN_OFFER)
    assert rules.parties_to_move(table.state) == (SELLER,)
    assert table.sees(B1).turns_left == 1


def test_refused_moves_alone_use_up_the_rounds() -> None:
    table = Table(bilateral(rounds=1))
    table.refuse(B1, RefusalCode.UNKNOWN_OFFER)
    assert table.refuse(SELLER, RefusalCode.OWN_OFFER)[-1] == NegotiationEnded(reason=EndReason.TURNS_USED)


def test_a_refused_move_out_of_turn_takes_no_turn_from_anybody() -> None:
    table = Table(bilateral(rounds=2))
    table.refuse(SELLER, RefusalCode.NOT_YOUR_TURN)
    assert rules.parties_to_move(table.state) == (B1,)
    assert table.sees(SELLER).turns_left == 2
    assert table.sees(B1).turns_left == 2


# --- Seller turns -----------------------------------------------------------------------------------


def test_buyers_write_only_when_addressed_and_then_once() -> None:
    table = Table(multi_buyer())
    assert table.refusal(B1, offer(3_000)) is RefusalCode.NOT_YOUR_TURN
    table.play(SELLER, say(to=1))
    assert table.refusal(B2, offer(3_000)) is RefusalCode.NOT_YOUR_TURN
    table.play(B1, offer(3_000))
    assert table.refusal(B1, offer(3_100)) is RefusalCode.NOT_YOUR_TURN


def test_the_seller_may_write_to_another_buyer_while_an_answer_is_due() -> None:
    table = Table(multi_buyer()).play_all((SELLER, offer(9_000, to=1)))
    assert table.refusal(SELLER, offer(8_000, to=1)) is RefusalCode.AWAITING_ANSWER
    table.play(SELLER, offer(9_500, to=3))
    assert rules.parties_to_move(table.state) == (B1, B3, SELLER)
    assert rules.parties_due(table.state) == (B1, B3)
    table.play_all((B3, offer(5_000)), (B1, say()))
    assert rules.parties_due(table.state) == (SELLER,)


@pytest.mark.parametrize(
    "move", [say(to=1), offer(9_000, to=1), accept(1, to=1), reject(1, to=1)], ids=lambda a: type(a).__name__
)
def test_whatever_the_seller_sends_costs_one_turn(move: Action) -> None:
    table = Table(multi_buyer(turns=3, stock=2, openings=(2_600, 2_700, 2_800)))
    table.play(SELLER, move)
    assert rules.turns_left(table.state) == 2


def test_answers_of_buyers_cost_no_turn() -> None:
    table = Table(multi_buyer(turns=3)).play_all((SELLER, say(to=1)), (B1, offer(3_000)))
    assert rules.turns_left(table.state) == 2


def test_leaving_costs_no_turn_and_a_buyer_may_leave_unasked() -> None:
    table = Table(multi_buyer(turns=3)).play_all((B2, LEAVE))
    assert rules.turns_left(table.state) == 3
    assert table.state.thread(2).status is ThreadStatus.LEFT
    assert table.sees(SELLER).threads[1].their_messages == 0


def test_the_last_turn_is_answered_before_the_end() -> None:
    table = Table(multi_buyer(turns=2)).play_all((SELLER, offer(9_000, to=1)), (SELLER, offer(9_000, to=2)))
    assert not table.state.ended
    assert rules.parties_to_move(table.state) == (B1, B2)
    assert table.play(B1, say()) == (MessageSent(by=Role.BUYER, buyer=1),)
    assert table.play(B2, say())[-1] == NegotiationEnded(reason=EndReason.TURNS_USED)


def test_the_last_turn_can_be_accepted() -> None:
    table = Table(multi_buyer(turns=1)).play_all((SELLER, offer(7_000, to=2)), (B2, accept(1)))
    assert table.state.end_reason is EndReason.DEAL


def test_the_seller_can_close_with_the_last_turn() -> None:
    table = Table(multi_buyer(turns=1, openings=(2_600, 2_700, 4_100)))
    table.play(SELLER, accept(1, to=3))
    assert table.state.end_reason is EndReason.DEAL


def test_a_buyer_leaving_is_an_answer_to_the_last_turn() -> None:
    table = Table(multi_buyer(turns=1)).play_all((SELLER, offer(9_000, to=1)))
    assert table.play(B1, LEAVE)[-1] == NegotiationEnded(reason=EndReason.TURNS_USED)


def test_a_sellers_refused_move_spends_its_turn_and_asks_nobody_for_an_answer() -> None:
    table = Table(multi_buyer(turns=2))
    table.refuse(SELLER, RefusalCode.PRICE_OUT_OF_RANGE, buyer=2)
    assert rules.turns_left(table.state) == 1
    assert rules.parties_to_move(table.state) == (SELLER,)


@pytest.mark.parametrize(
    ("buyer", "logged"), [(0, 0), (2, 2), (7, 0), (-1, 0)], ids=["none", "open", "unknown", "negative"]
)
def test_a_refused_move_is_logged_in_the_thread_it_was_meant_for_where_there_is_one(buyer: int, logged: int) -> None:
    table = Table(multi_buyer())
    (event,) = table.refuse(SELLER, RefusalCode.UNKNOWN_THREAD, buyer=buyer)
    assert event == MoveRefused(by=Role.SELLER, buyer=logged, code="unknown_thread")


def test_a_refused_move_to_a_buyer_who_is_gone_costs_a_turn_and_reaches_nobody() -> None:
    table = Table(multi_buyer(turns=3)).play_all((B2, LEAVE))
    before = len(table.history(B2))
    table.refuse(SELLER, RefusalCode.THREAD_CLOSED, buyer=2)
    assert rules.turns_left(table.state) == 2
    assert len(table.history(B2)) == before


def test_a_buyers_refused_answer_is_its_answer() -> None:
    table = Table(multi_buyer(turns=1)).play_all((SELLER, offer(9_000, to=1)))
    assert table.refuse(B1, RefusalCode.BEYOND_RESERVATION) == (
        MoveRefused(by=Role.BUYER, buyer=1, code="beyond_reservation"),
        NegotiationEnded(reason=EndReason.TURNS_USED),
    )


def test_a_buyer_who_was_not_asked_spends_nothing_on_a_refused_move() -> None:
    table = Table(multi_buyer())
    table.refuse(B1, RefusalCode.NOT_YOUR_TURN)
    assert table.sees(B1).threads[0].my_messages == 0
    table.play_all((SELLER, say(to=1)), (B1, say()))
    assert table.sees(B1).threads[0].my_messages == 1


def test_a_seller_without_turns_cannot_go_below_zero() -> None:
    table = Table(multi_buyer(turns=1)).play_all((SELLER, offer(9_000, to=1)))
    table.refuse(SELLER, RefusalCode.TURNS_USED, buyer=2)
    assert rules.turns_left(table.state) == 0
    assert rules.parties_to_move(table.state) == (B1,)


# --- Openings ---------------------------------------------------------------------------------------


def test_opening_bids_stand_before_the_first_message_and_cost_nothing() -> None:
    table = Table(multi_buyer(turns=4, openings=(2_600, 2_700, 2_800)))
    assert [entry.event for entry in table.log] == [
        OfferMade(by=Role.BUYER, buyer=buyer, offer_id=1, product=0, price_cents=price, opening=True)
        for buyer, price in ((1, 2_600), (2, 2_700), (3, 2_800))
    ]
    assert rules.turns_left(table.state) == 4
    assert rules.parties_to_move(table.state) == (SELLER,)
    assert all(thread.their_messages == 0 for thread in table.sees(SELLER).threads)


def test_an_opening_bid_can_be_accepted_and_is_replaced_like_any_other() -> None:
    table = Table(multi_buyer(openings=(2_600, 2_700, 2_800))).play_all((SELLER, say(to=2)), (B2, offer(4_200)))
    assert table.standing(B2) == [(Role.BUYER, 0, 4_200)]
    assert table.refusal(SELLER, accept(1, to=2)) is RefusalCode.OFFER_GONE
    table.play(SELLER, accept(1, to=3))
    assert table.state.deals[0].price_cents == 2_800


def test_two_opening_bids_of_one_buyer_have_two_numbers() -> None:
    table = Table(catalogue(openings=(OpeningBid(1, 0, 2_600), OpeningBid(1, 1, 2_500), OpeningBid(2, 0, 2_700))))
    assert [(o.offer_id, o.product) for o in table.state.thread(1).standing] == [(1, 0), (2, 1)]
    assert [(o.offer_id, o.product) for o in table.state.thread(2).standing] == [(1, 0)]


# --- Offers -----------------------------------------------------------------------------------------


def test_a_newer_offer_on_the_same_product_replaces_the_own_earlier_one() -> None:
    table = Table(bilateral()).play_all((B1, offer(3_000)), (SELLER, say()), (B1, offer(4_000)))
    assert table.standing(B1) == [(Role.BUYER, 0, 4_000)]
    assert table.refusal(SELLER, accept(1)) is RefusalCode.OFFER_GONE
    table.play(SELLER, accept(2))
    assert table.state.deals[0].price_cents == 4_000


def test_offers_on_different_products_stand_side_by_side() -> None:
    table = Table(catalogue()).play_all(
        (SELLER, offer(8_500, to=1, product=0)), (B1, say()), (SELLER, offer(5_500, to=1, product=1))
    )
    assert table.standing(B1) == [(Role.SELLER, 0, 8_500), (Role.SELLER, 1, 5_500)]
    table.play(B1, accept(1))
    assert table.state.deals[0].product == 0


def test_a_counter_offer_leaves_the_other_sides_offer_standing() -> None:
    table = Table(bilateral()).play_all((B1, offer(4_000)), (SELLER, offer(7_000)), (B1, offer(5_000)))
    assert table.standing(B1) == [(Role.SELLER, 0, 7_000), (Role.BUYER, 0, 5_000)]
    table.play_all((SELLER, say()), (B1, accept(2)))
    assert table.state.deals[0].price_cents == 7_000


def test_a_rejected_offer_is_gone_for_good() -> None:
    table = Table(bilateral()).play_all((B1, offer(6_000)))
    assert table.play(SELLER, reject(1)) == (OfferRejected(by=Role.SELLER, buyer=1, offer_id=1),)
    table.play(B1, say())
    assert table.refusal(SELLER, accept(1)) is RefusalCode.OFFER_GONE
    assert table.refusal(SELLER, reject(1)) is RefusalCode.OFFER_GONE


def test_a_rejected_price_can_be_offered_anew_under_a_new_number() -> None:
    table = Table(bilateral()).play_all((B1, offer(6_000)), (SELLER, reject(1)), (B1, offer(6_000)))
    table.play(SELLER, accept(2))
    assert table.state.deals[0].offer_id == 2


def test_nobody_rejects_its_own_offer() -> None:
    table = Table(bilateral()).play_all((B1, offer(6_000)), (SELLER, say()))
    assert table.refusal(B1, reject(1)) is RefusalCode.OWN_OFFER


def test_a_price_in_talk_binds_nobody() -> None:
    table = Table(bilateral()).play_all((B1, say("I offer $60.00, deal?")))
    assert table.state.thread(1).offers == ()
    assert table.refusal(SELLER, accept(1)) is RefusalCode.UNKNOWN_OFFER


def test_offers_are_numbered_in_each_thread_on_its_own() -> None:
    table = Table(multi_buyer()).play_all(
        (SELLER, offer(9_000, to=1)), (B1, offer(3_000)), (SELLER, offer(9_500, to=2)), (B2, offer(3_500))
    )
    assert [o.offer_id for o in table.state.thread(1).offers] == [1, 2]
    assert [o.offer_id for o in table.state.thread(2).offers] == [1, 2]


@pytest.mark.parametrize("price_cents", [-1, 0, 10**10 + 1, 10**30])
def test_prices_below_a_cent_and_above_100_million_are_refused(price_cents: int) -> None:
    assert Table(bilateral()).refusal(B1, offer(price_cents)) is RefusalCode.PRICE_OUT_OF_RANGE


@pytest.mark.parametrize("price_cents", [1, 10**10])
def test_the_smallest_and_the_largest_price_are_prices(price_cents: int) -> None:
    table = Table(bilateral()).play_all((B1, offer(price_cents)))
    assert table.standing(B1) == [(Role.BUYER, 0, price_cents)]


@pytest.mark.parametrize("offer_id", [-1, 0, 2, 10**30])
def test_numbers_that_no_offer_has_are_refused(offer_id: int) -> None:
    table = Table(bilateral()).play_all((B1, offer(6_000)))
    assert table.refusal(SELLER, accept(offer_id)) is RefusalCode.UNKNOWN_OFFER
    assert table.refusal(SELLER, reject(offer_id)) is RefusalCode.UNKNOWN_OFFER


@pytest.mark.parametrize("number", [-1, 1, 10**30])
def test_products_that_are_not_on_the_table_are_refused(number: int) -> None:
    assert Table(bilateral()).refusal(B1, offer(6_000, product=number)) is RefusalCode.UNKNOWN_PRODUCT


def test_a_sold_out_product_cannot_be_offered_by_anybody() -> None:
    table = Table(catalogue()).play_all(*SOLD_TO_B1)
    assert table.refusal(B2, offer(9_999, product=0)) is RefusalCode.SOLD_OUT
    table.play(B2, say())
    assert table.refusal(SELLER, offer(9_999, to=2, product=0)) is RefusalCode.SOLD_OUT


# --- Lapses and races -------------------------------------------------------------------------------


def test_when_stock_is_gone_the_other_offers_on_it_lapse_in_the_same_batch() -> None:
    table = Table(multi_buyer(openings=(2_600, 2_700, 2_800))).play_all((SELLER, offer(9_000, to=1)))
    assert table.play(SELLER, accept(1, to=3)) == (
        OfferAccepted(by=Role.SELLER, buyer=3, offer_id=1, product=0, price_cents=2_800),
        OfferLapsed(buyer=1, offer_id=1, reason=LapseReason.SOLD_OUT),
        OfferLapsed(buyer=1, offer_id=2, reason=LapseReason.SOLD_OUT),
        OfferLapsed(buyer=2, offer_id=1, reason=LapseReason.SOLD_OUT),
        ProductSoldOut(product=0),
        NegotiationEnded(reason=EndReason.DEAL),
    )


def test_when_a_buyer_is_served_its_other_offers_lapse_and_other_buyers_keep_theirs() -> None:
    table = Table(catalogue(stock=2)).play_all(
        (SELLER, offer(8_500, to=1, product=0)),
        (SELLER, offer(8_500, to=2, product=0)),
        (B1, offer(5_000, product=1)),
        (SELLER, say(to=1)),
    )
    assert table.play(B1, accept(1)) == (
        OfferAccepted(by=Role.BUYER, buyer=1, offer_id=1, product=0, price_cents=8_500),
        OfferLapsed(buyer=1, offer_id=2, reason=LapseReason.BUYER_SERVED),
    )
    assert table.standing(B1) == []
    assert table.standing(B2) == [(Role.SELLER, 0, 8_500)]


def test_offers_on_other_products_survive_a_product_selling_out() -> None:
    table = Table(catalogue()).play_all(
        (SELLER, offer(5_000, to=2, product=1)), (B2, say()), (SELLER, offer(8_000, to=2, product=0))
    )
    table.play_all((SELLER, offer(8_500, to=1, product=0)), (B1, accept(1)))
    assert table.standing(B2) == [(Role.SELLER, 1, 5_000)]
    table.play(B2, accept(1))
    assert table.state.end_reason is EndReason.SOLD_OUT


def test_of_two_who_accept_at_once_the_second_is_told_that_the_goods_are_gone() -> None:
    table = Table(multi_buyer()).play_all((SELLER, offer(6_000, to=2)), (SELLER, offer(6_500, to=3)))
    table.play(B3, accept(1))
    assert table.state.deals[0].buyer == 3
    assert table.refusal(B2, accept(1)) is RefusalCode.SOLD_OUT


def test_in_a_catalogue_too_the_second_is_told_that_the_goods_are_gone() -> None:
    table = Table(catalogue()).play_all(*SOLD_TO_B1)
    assert table.refusal(B2, accept(1)) is RefusalCode.SOLD_OUT
    assert table.refusal(B2, reject(1)) is RefusalCode.SOLD_OUT
    table.play(B2, offer(5_000, product=1))


def test_whoever_repeats_its_own_acceptance_is_not_told_that_somebody_else_was_faster() -> None:
    table = Table(multi_buyer()).play_all((SELLER, offer(6_000, to=2)), (B2, accept(1)))
    assert table.refusal(B2, accept(1)) is RefusalCode.NEGOTIATION_ENDED
    table = Table(catalogue()).play_all((SELLER, offer(6_000, to=2)), (B2, accept(1)))
    assert table.refusal(B2, accept(1)) is RefusalCode.ALREADY_SERVED


def test_a_buyer_who_left_cannot_be_sold_to_and_its_offers_fall() -> None:
    table = Table(multi_buyer(openings=(2_600, 2_700, 2_800))).play_all((B3, LEAVE))
    assert table.refusal(SELLER, accept(1, to=3)) is RefusalCode.THREAD_CLOSED
    assert table.refusal(B3, say()) is RefusalCode.THREAD_CLOSED
    assert table.refusal(B3, LEAVE) is RefusalCode.THREAD_CLOSED
    assert table.standing(B3) == []


def test_a_served_buyer_wants_nothing_more() -> None:
    table = Table(catalogue(stock=2)).play_all((SELLER, offer(8_000, to=1)), (B1, accept(1)))
    for party, action in ((B1, offer(1_000)), (B1, LEAVE), (SELLER, offer(1_000, to=1, product=1))):
        assert table.refusal(party, action) is RefusalCode.ALREADY_SERVED


def test_a_product_selling_out_makes_answers_on_their_way_stale_in_every_open_thread() -> None:
    table = Table(catalogue(values=((9_000, 6_000),) * 3)).play_all((SELLER, say(to=2)), (SELLER, offer(8_000, to=1)))
    before = [rules.position(table.state, party) for party in (SELLER, B2, B3)]
    table.play(B1, accept(1))
    after = [rules.position(table.state, party) for party in (SELLER, B2, B3)]
    assert all(new > old for new, old in zip(after, before, strict=True))


def test_an_answer_makes_no_other_buyers_answer_stale() -> None:
    table = Table(multi_buyer()).play_all((SELLER, offer(9_000, to=1)), (SELLER, offer(9_000, to=2)))
    before = rules.position(table.state, B2)
    table.play(B1, offer(3_000))
    assert rules.position(table.state, B2) == before


# --- Guardrails -------------------------------------------------------------------------------------


def test_a_regulated_buyer_neither_offers_nor_accepts_above_its_value() -> None:
    table = Table(bilateral(value=8_000, regulated=(Role.BUYER,)))
    assert table.refusal(B1, offer(8_001)) is RefusalCode.BEYOND_RESERVATION
    table.play_all((B1, offer(8_000)), (SELLER, offer(8_001)))
    assert table.refusal(B1, accept(2)) is RefusalCode.BEYOND_RESERVATION
    table.play_all((B1, say()), (SELLER, offer(8_000)), (B1, accept(3)))
    assert table.state.deals[0].price_cents == 8_000


def test_a_regulated_seller_neither_offers_nor_accepts_below_its_cost() -> None:
    table = Table(catalogue(costs=(5_000, 4_000), regulated=(Role.SELLER,), openings=(OpeningBid(1, 0, 4_500),)))
    assert table.refusal(SELLER, accept(1, to=1)) is RefusalCode.BEYOND_RESERVATION
    assert table.refusal(SELLER, offer(3_999, to=1, product=1)) is RefusalCode.BEYOND_RESERVATION
    table.play(SELLER, offer(4_000, to=1, product=1))


def test_each_buyer_is_held_to_its_own_value_of_that_product() -> None:
    table = Table(catalogue(values=((9_000, 6_000), (8_000, 7_500)), regulated=(Role.BUYER,))).play_all(
        (SELLER, say(to=1)), (SELLER, say(to=2))
    )
    assert table.refusal(B1, offer(6_001, product=1)) is RefusalCode.BEYOND_RESERVATION
    assert table.refusal(B2, offer(8_001, product=0)) is RefusalCode.BEYOND_RESERVATION
    table.play_all((B1, offer(9_000, product=0)), (B2, offer(7_500, product=1)))


def test_unregulated_seats_may_lose_money() -> None:
    table = Table(bilateral(value=8_000, cost=5_000)).play_all((B1, offer(9_900)), (SELLER, offer(100)))
    table.play(B1, accept(2))
    assert table.state.deals[0].price_cents == 100


# --- Threads, clocks, odds and ends -----------------------------------------------------------------


@pytest.mark.parametrize("buyer", [0, -1, 4, 10**30])
def test_a_seller_with_several_buyers_names_one_that_exists(buyer: int) -> None:
    assert Table(multi_buyer()).refusal(SELLER, Say(talk="Hello.", buyer=buyer)) is RefusalCode.UNKNOWN_THREAD


def test_a_seller_with_one_buyer_need_not_name_it() -> None:
    table = Table(bilateral(opener=Role.SELLER))
    table.play_all((SELLER, offer(9_000)), (B1, say()), (SELLER, offer(8_000, to=1)))


def test_a_buyer_cannot_write_in_another_buyers_thread_nor_learn_whether_there_is_one() -> None:
    table = Table(multi_buyer()).play_all((SELLER, say(to=1)))
    for other in (2, 3, 4):
        assert table.refusal(B1, Say(talk="Psst.", buyer=other)) is RefusalCode.UNKNOWN_THREAD
    table.play(B1, Say(talk="Hello.", buyer=1))


def test_a_deadline_is_a_last_moment_and_not_a_first_forbidden_one() -> None:
    table = Table(bilateral(deadline_ms=60_000))
    table.play(B1, offer(3_000), at_ms=60_000)
    assert table.refusal(SELLER, accept(1), at_ms=60_001) is RefusalCode.DEADLINE_PASSED
    assert table.refusal(SELLER, LEAVE, at_ms=60_001) is RefusalCode.DEADLINE_PASSED


def test_the_longest_talk_is_allowed_and_counted_in_characters() -> None:
    table = Table(bilateral())
    table.play(B1, say("é" * MAX_TALK_CHARS))


@pytest.mark.parametrize(
    "action",
    [MakeOffer(price_cents=5_000, talk="\0"), Leave(talk="\0"), AcceptOffer(offer_id=1, talk="x" * 20_000)],
    ids=["offer", "leave", "accept"],
)
def test_bad_talk_spoils_any_move_that_carries_it(action: Action) -> None:
    table = Table(bilateral(opener=Role.SELLER)).play_all((SELLER, offer(7_000)))
    assert table.refusal(B1, action) in (RefusalCode.TALK_NOT_TEXT, RefusalCode.TALK_TOO_LONG)


def test_an_offer_or_an_answer_needs_no_words() -> None:
    table = Table(bilateral()).play_all((B1, offer(3_000)), (SELLER, reject(1)), (B1, LEAVE))
    assert table.state.ended


def test_deciding_changes_nothing_and_gives_the_same_events_again() -> None:
    table = Table(bilateral()).play_all((B1, offer(6_000)))
    before = table.state
    first: tuple[Event, ...] = rules.decide(table.state, SELLER, accept(1))
    assert rules.decide(table.state, SELLER, accept(1)) == first
    assert table.state == before


def test_log_entries_are_numbered_on_from_the_last_event() -> None:
    events = (MessageSent(by=Role.BUYER, buyer=1), PartyLeft(by=Role.BUYER, buyer=1))
    assert rules.number(events, after=7, at_ms=1_500) == (
        LogEntry(8, 1_500, events[0]),
        LogEntry(9, 1_500, events[1]),
    )
