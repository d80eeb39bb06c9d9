"""The fold: what each event does to the table, and that nothing else is touched."""

import msgspec
import pytest
from hypothesis import given

from markets.engine import rules
from markets.engine.protocol import (
    SELLER,
    DeadlinePassed,
    Event,
    LapseReason,
    MessageSent,
    MoveRefused,
    OfferAccepted,
    OfferLapsed,
    OfferMade,
    OfferRejected,
    PartyLeft,
    ProductSoldOut,
    Role,
    buyer_party,
    role_of,
)
from markets.engine.state import Deal, State, ThreadStatus, evolve, initial, replay
from tests.markets.engine.factories import bilateral, catalogue, multi_buyer
from tests.markets.engine.games import Play, plays

BID = OfferMade(by=Role.BUYER, buyer=2, offer_id=1, product=0, price_cents=3_000)


def after(state: State, *events: Event) -> State:
    for event in events:
        state = evolve(state, event)
    return state


def test_before_the_first_event_nothing_has_happened() -> None:
    state = initial(catalogue(stock=(1, 3)))
    assert state.version == 0
    assert state.stock_left == (1, 3)
    assert state.deals == ()
    assert not state.ended
    assert [thread.buyer for thread in state.threads] == [1, 2]
    assert all(thread.status is ThreadStatus.OPEN and thread.to_move is None for thread in state.threads)


@pytest.mark.parametrize("opener", list(Role))
def test_in_alternating_rounds_the_opener_is_to_move(opener: Role) -> None:
    assert initial(bilateral(opener=opener)).threads[0].to_move is opener


def test_replaying_nothing_is_the_initial_state() -> None:
    assert replay(multi_buyer(), ()) == initial(multi_buyer())


def test_threads_in_which_nothing_happened_are_the_same_objects() -> None:
    """States share what did not change; eight buyers must not cost eight times as much."""
    before = initial(multi_buyer())
    state = evolve(before, BID)
    assert state.threads[0] is before.threads[0]
    assert state.threads[2] is before.threads[2]
    assert state.threads[1] is not before.threads[1]


def test_a_state_is_never_changed_in_place() -> None:
    before = initial(multi_buyer())
    copy = msgspec.structs.replace(before)
    after(before, BID, OfferRejected(by=Role.SELLER, buyer=2, offer_id=1))
    assert before == copy
    with pytest.raises(AttributeError):
        before.version = 7  # type: ignore[misc]


def test_an_offer_is_remembered_after_it_stopped_standing() -> None:
    state = after(initial(multi_buyer()), BID, OfferLapsed(buyer=2, offer_id=1, reason=LapseReason.SOLD_OUT))
    assert state.thread(2).standing == ()
    assert [offer.price_cents for offer in state.thread(2).offers] == [3_000]


def test_a_deal_takes_a_unit_and_closes_its_thread_only() -> None:
    state = after(
        initial(multi_buyer(stock=2)),
        BID,
        OfferAccepted(by=Role.SELLER, buyer=2, offer_id=1, product=0, price_cents=3_000),
    )
    assert state.stock_left == (1,)
    assert state.deals == (Deal(buyer=2, product=0, price_cents=3_000, offer_id=1),)
    assert [thread.status for thread in state.threads] == [ThreadStatus.OPEN, ThreadStatus.SERVED, ThreadStatus.OPEN]


def test_the_seller_leaving_closes_what_is_open_and_undoes_no_deal() -> None:
    state = after(
        initial(multi_buyer(stock=2)),
        BID,
        OfferAccepted(by=Role.SELLER, buyer=2, offer_id=1, product=0, price_cents=3_000),
        PartyLeft(by=Role.SELLER, buyer=0),
    )
    assert [thread.status for thread in state.threads] == [ThreadStatus.LEFT, ThreadStatus.SERVED, ThreadStatus.LEFT]
    assert len(state.deals) == 1


def test_messages_are_counted_for_who_sent_them_in_the_thread() -> None:
    state = after(
        initial(multi_buyer()),
        MessageSent(by=Role.SELLER, buyer=1),
        MessageSent(by=Role.BUYER, buyer=1),
        MessageSent(by=Role.SELLER, buyer=3),
    )
    assert [(t.seller_messages, t.buyer_messages) for t in state.threads] == [(1, 1), (0, 0), (1, 0)]
    assert state.turns_used == 2


def test_an_opening_bid_is_an_offer_and_no_message() -> None:
    state = evolve(initial(multi_buyer()), msgspec.structs.replace(BID, opening=True))
    assert len(state.thread(2).standing) == 1
    assert state.thread(2).buyer_messages == 0
    assert state.thread(2).to_move is None


def test_a_deadline_alone_changes_nothing_but_the_version() -> None:
    before = after(initial(multi_buyer()), BID)
    state = evolve(before, DeadlinePassed(by=Role.BUYER, buyer=2))
    assert msgspec.structs.replace(state, version=before.version) == before


def test_a_sold_out_product_moves_every_open_thread_on_and_no_closed_one() -> None:
    before = after(initial(catalogue()), PartyLeft(by=Role.BUYER, buyer=1))
    state = evolve(before, ProductSoldOut(product=0))
    assert state.thread(1).position == before.thread(1).position
    assert state.thread(2).position == before.thread(2).position + 1


def test_a_refused_move_without_a_thread_costs_the_seller_a_turn() -> None:
    state = evolve(initial(multi_buyer()), MoveRefused(by=Role.SELLER, buyer=0, code="unknown_thread"))
    assert state.turns_used == 1
    assert all(thread.seller_messages == 0 for thread in state.threads)


@given(plays())
def test_whatever_happens_in_a_thread_moves_its_position_on(play: Play) -> None:
    """An agent's answer is discarded when the position has moved: a change that did not move it would be missed.

    What one side of an event-driven conversation does unseen moves its own position alone.
    """
    state = initial(play.scenario)
    for entry in play.log:
        before, state = state, evolve(state, entry.event)
        for old, new in zip(before.threads, state.threads, strict=True):
            kept = {"position": old.position, "seller_desk": old.seller_desk, "buyer_desk": old.buyer_desk}
            if msgspec.structs.replace(new, **kept) != old:
                assert new.position > old.position
            for party in (SELLER, buyer_party(old.buyer)):
                if new.seller_desk is not None and new.desk(role_of(party)).unseen != old.desk(role_of(party)).unseen:
                    assert rules.position(state, party) > rules.position(before, party)
