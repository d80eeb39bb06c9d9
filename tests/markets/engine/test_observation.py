"""The secrecy gate: whatever a party is shown depends on nothing that it may not know.

A leak here reaches every page, prompt, export and data set at once.
"""

import random
import re

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from markets.engine import observation, rules
from markets.engine.protocol import (
    SELLER,
    DeadlinePassed,
    EndReason,
    IllegalAction,
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
    TurnPassed,
    buyer_of,
    encode,
)
from markets.engine.scenarios import Family, Scenario
from markets.engine.state import State, evolve, initial
from tests.markets.engine.factories import (
    B1,
    B2,
    B3,
    LEAVE,
    Table,
    accept,
    bilateral,
    catalogue,
    multi_buyer,
    offer,
    reject,
    say,
)
from tests.markets.engine.games import Play, cents, opened, parties_of, plays, written_scenarios

EXAMPLES = settings(max_examples=150)


def as_sent(scenario: Scenario, log: tuple[LogEntry, ...], party: Party) -> bytes:
    """What may leave the server: seen events without their numbers in the whole log."""
    seen = observation.seen_events(scenario, log, party)
    return encode([(each.seq, each.at_ms, each.thread, each.event) for each in seen])


# --- Another party's private values ---------------------------------------------------------------------


def with_others_values_changed(scenario: Scenario, party: Party, rng: random.Random) -> Scenario:
    """The same scenario for `party`: everybody else's values and the seed are different."""
    own = buyer_of(party)

    def other(price_cents: int) -> int:
        return max(1, price_cents + rng.choice((-1, 1, 17, -5_000, 99_991)))

    return msgspec.structs.replace(
        scenario,
        seller_values_cents=(
            scenario.seller_values_cents
            if party == SELLER
            else tuple(other(cost) for cost in scenario.seller_values_cents)
        ),
        buyer_values_cents=tuple(
            values if buyer == own else tuple(other(value) for value in values)
            for buyer, values in enumerate(scenario.buyer_values_cents, start=1)
        ),
        seed=scenario.seed + 1,
    )


@EXAMPLES
@given(plays(), st.integers(0, 2**32))
def test_what_a_party_is_shown_does_not_depend_on_anybody_elses_values(play: Play, chance: int) -> None:
    """Two scenarios that differ only in what others keep secret look the same, byte for byte, all the way."""
    for party in play.parties:
        twin = with_others_values_changed(play.scenario, party, random.Random(chance))
        real, other = initial(play.scenario), initial(twin)
        assert encode(observation.observe(real, party)) == encode(observation.observe(other, party))
        for entry in play.log:
            real, other = evolve(real, entry.event), evolve(other, entry.event)
            assert encode(observation.observe(real, party)) == encode(observation.observe(other, party))
        for cut in range(len(play.log) + 1):
            assert as_sent(play.scenario, play.log[:cut], party) == as_sent(twin, play.log[:cut], party)


@EXAMPLES
@given(plays(), st.integers(0, 2**32))
def test_how_a_move_is_judged_does_not_depend_on_anybody_elses_values(play: Play, chance: int) -> None:
    """Otherwise a player could find a value out by trying moves and reading the refusals."""
    for step in play.steps:
        if step.action is None:
            continue
        twin = with_others_values_changed(play.scenario, step.party, random.Random(chance))
        state = msgspec.structs.replace(step.before, scenario=twin)
        if step.refused is None:
            assert rules.decide(state, step.party, step.action) == step.events
            continue
        with pytest.raises(IllegalAction) as refused:
            rules.decide(state, step.party, step.action)
        assert refused.value.code is step.refused


UNUSUAL = (7_777_771, 8_888_883, 9_999_991, 6_666_661, 5_555_557, 4_444_447, 3_333_331, 2_222_227, 1_111_117)
"""Amounts that appear in an observation only if somebody put a private value there."""


@st.composite
def scenarios_with_unusual_values(draw: st.DrawFn) -> Scenario:
    scenario = draw(written_scenarios())
    amounts = iter(draw(st.permutations(UNUSUAL * 2)))
    return msgspec.structs.replace(
        scenario,
        seller_values_cents=tuple(next(amounts) for _ in scenario.seller_values_cents),
        buyer_values_cents=tuple(tuple(next(amounts) for _ in values) for values in scenario.buyer_values_cents),
        seed=123_456_789_012_345,
    )


@EXAMPLES
@given(scenarios_with_unusual_values(), st.integers(0, 2**32), st.data())
def test_no_private_value_of_another_party_and_no_seed_is_ever_shown(
    scenario: Scenario, chance: int, data: st.DataObject
) -> None:
    """Prices here are never private values, so whatever is found in a frame was leaked by the gate."""
    table = Table(scenario)
    rng = random.Random(chance)
    for _ in range(12):
        if table.state.ended:
            break
        party = rng.choice(rules.parties_to_move(table.state))
        thread = next(thread for thread in table.sees(party).threads if thread.my_move)
        product = rng.randrange(len(scenario.products))
        try:
            table.play(party, MakeOffer(price_cents=rng.randint(1, 30_000), product=product, buyer=thread.buyer))
        except IllegalAction as refused:
            table.refuse(party, refused.code, buyer=thread.buyer)
        for reader in parties_of(scenario):
            own = {each.reservation_value_cents for each in table.sees(reader).products}
            shown = encode(table.sees(reader)) + encode(table.history(reader))
            numbers = {int(number) for number in re.findall(rb"\d+", shown)}
            assert not numbers & (set(UNUSUAL) - own)
            assert scenario.seed not in numbers


def test_a_party_is_shown_its_own_values() -> None:
    table = Table(catalogue())
    assert [each.reservation_value_cents for each in table.sees(SELLER).products] == [5_000, 4_000]
    assert [each.reservation_value_cents for each in table.sees(B1).products] == [9_000, 6_000]
    assert [each.reservation_value_cents for each in table.sees(B2).products] == [8_000, 7_500]


# --- Other threads ----------------------------------------------------------------------------------------


@EXAMPLES
@given(plays())
def test_nothing_in_another_thread_reaches_a_buyer_but_sold_out_goods_and_the_end(play: Play) -> None:
    log: tuple[LogEntry, ...] = rules.number(play.opening, after=0, at_ms=0)
    for step in play.steps:
        before = log
        log += rules.number(step.events, after=len(log), at_ms=0)
        for buyer in range(1, play.scenario.buyers + 1):
            party = f"buyer-{buyer}"
            if any(getattr(event, "buyer", 0) == buyer for event in step.events):
                continue
            if any(isinstance(event, ProductSoldOut | NegotiationEnded) for event in step.events):
                continue
            assert encode(observation.observe(step.before, party)) == encode(observation.observe(step.after, party))
            assert as_sent(play.scenario, log, party) == as_sent(play.scenario, before, party)


@EXAMPLES
@given(plays())
def test_a_sale_to_somebody_else_tells_a_buyer_only_what_cannot_be_had_any_more(play: Play) -> None:
    for step in play.steps:
        for event in step.events:
            if not isinstance(event, OfferAccepted):
                continue
            for thread in step.after.threads:
                if thread.buyer == event.buyer:
                    continue
                party = f"buyer-{thread.buyer}"
                before, after = observation.observe(step.before, party), observation.observe(step.after, party)
                (own_before,), (own_after,) = before.threads, after.threads
                assert own_after.offers == own_before.offers
                assert own_after.status is own_before.status
                assert own_after.deal == own_before.deal
                assert set(own_after.standing) <= set(own_before.standing)
                for seen_before, seen_after in zip(before.products, after.products, strict=True):
                    unchanged = msgspec.structs.replace(seen_after, units_left=seen_before.units_left)
                    assert unchanged == seen_before


def without_other_threads(log: tuple[LogEntry, ...], buyer: int) -> tuple[LogEntry, ...]:
    """The log as if nothing had happened to anybody but `buyer`."""
    return tuple(entry for entry in log if getattr(entry.event, "buyer", 0) in (0, buyer))


@EXAMPLES
@given(plays())
def test_a_buyer_sees_the_same_past_whether_or_not_others_were_there(play: Play) -> None:
    for buyer in range(1, play.scenario.buyers + 1):
        alone = without_other_threads(play.log, buyer)
        assert as_sent(play.scenario, play.log, f"buyer-{buyer}") == as_sent(play.scenario, alone, f"buyer-{buyer}")


def test_a_buyer_does_not_learn_that_the_seller_is_talking_to_others() -> None:
    table = Table(multi_buyer(turns=4)).play_all((SELLER, offer(9_000, to=1)), (B1, offer(3_000)))
    observed, seen = encode(table.sees(B1)), table.history(B1)
    table.play_all(
        (SELLER, offer(9_900, to=2)), (B2, offer(7_000)), (SELLER, reject(2, to=2)), (B2, say()), (B3, LEAVE)
    )
    assert encode(table.sees(B1)) == observed
    assert table.history(B1) == seen


def test_a_buyer_does_not_learn_how_many_turns_the_seller_has_left() -> None:
    table = Table(multi_buyer(turns=4))
    assert table.sees(B1).turns_left is None
    assert table.sees(SELLER).turns_left == 4


def test_in_alternating_rounds_both_know_how_many_messages_they_have_left() -> None:
    table = Table(bilateral(rounds=3)).play_all((B1, offer(3_000)))
    assert (table.sees(B1).turns_left, table.sees(SELLER).turns_left) == (2, 3)


def test_a_buyer_is_not_told_its_number() -> None:
    table = Table(multi_buyer()).play_all((SELLER, offer(9_000, to=3)), (B3, offer(5_000)))
    assert [thread.buyer for thread in table.sees(B3).threads] == [0]
    assert {getattr(each.event, "buyer", 0) for each in table.history(B3)} == {0}
    assert {each.thread for each in table.history(B3)} == {0}


def test_a_buyer_is_told_that_goods_can_be_had_but_not_how_many_there_are() -> None:
    table = Table(multi_buyer(stock=3)).play_all((SELLER, offer(4_500, to=1)), (B1, accept(1)))
    assert table.sees(SELLER).products[0].units_left == 2
    assert table.sees(B2).products[0].units_left == 1
    assert [each.event for each in table.history(B2)] == []


def test_everybody_is_told_what_is_sold_out_but_not_to_whom_or_for_how_much() -> None:
    table = Table(catalogue()).play_all(
        (SELLER, offer(8_000, to=2)), (B2, say()), (SELLER, offer(8_765, to=1)), (B1, accept(1))
    )
    assert table.sees(B2).products[0].units_left == 0
    assert [each.event for each in table.history(B2)][-2:] == [
        OfferLapsed(buyer=0, offer_id=1, reason="sold_out"),
        ProductSoldOut(product=0),
    ]
    assert b"8765" not in encode(table.sees(B2)) + encode(table.history(B2))


@pytest.mark.parametrize(
    ("ended", "told"),
    [
        (EndReason.DEAL, EndReason.CLOSED),
        (EndReason.SOLD_OUT, EndReason.CLOSED),
        (EndReason.BUYERS_GONE, EndReason.CLOSED),
        (EndReason.EVENTS_USED, EndReason.CLOSED),
        (EndReason.SILENCE, EndReason.CLOSED),
        (EndReason.DEADLINE, EndReason.CLOSED),
        (EndReason.MALFORMED, EndReason.CLOSED),
        (EndReason.CLOSED, EndReason.CLOSED),
        (EndReason.SELLER_LEFT, EndReason.SELLER_LEFT),
        (EndReason.TURNS_USED, EndReason.TURNS_USED),
    ],
)
def test_one_of_several_buyers_is_told_of_an_end_only_what_concerns_the_seller(
    ended: EndReason, told: EndReason
) -> None:
    scenario = multi_buyer()
    log = (LogEntry(1, 0, NegotiationEnded(reason=ended)),)
    state = evolve(initial(scenario), log[0].event)
    for party, expected in ((B1, told), (SELLER, ended)):
        assert observation.observe(state, party).end_reason is expected
        assert observation.seen_events(scenario, log, party)[-1].event == NegotiationEnded(reason=expected)


def test_every_reason_for_an_end_is_decided_above() -> None:
    (mark,) = test_one_of_several_buyers_is_told_of_an_end_only_what_concerns_the_seller.pytestmark
    assert {ended for ended, _ in mark.args[1]} == set(EndReason)


@pytest.mark.parametrize("ended", list(EndReason))
def test_with_one_buyer_both_are_told_the_reason(ended: EndReason) -> None:
    state = evolve(initial(bilateral()), NegotiationEnded(reason=ended))
    assert observation.observe(state, B1).end_reason is observation.observe(state, SELLER).end_reason is ended


def test_the_sellers_missed_deadline_tells_several_buyers_nothing_of_its_pace() -> None:
    scenario = multi_buyer()
    log = (LogEntry(1, 0, DeadlinePassed(by=Role.SELLER, buyer=0)),)
    assert observation.seen_events(scenario, log, B1) == ()
    assert len(observation.seen_events(bilateral(), log, B1)) == 1


# --- Refused moves, thoughts and talk -------------------------------------------------------------------


@EXAMPLES
@given(plays())
def test_why_a_move_was_refused_is_told_to_its_sender_alone(play: Play) -> None:
    """A refusal "beyond your value" would tell the other side where that value lies."""
    others_code = {code.value: "unknown_offer" for code in RefusalCode} | {"unknown_offer": "own_offer"}
    for party in play.parties:
        role, own = (Role.SELLER, 0) if party == SELLER else (Role.BUYER, buyer_of(party))

        def disguised(entry: LogEntry, role: Role = role, own: int = own) -> LogEntry:
            event = entry.event
            if not isinstance(event, MoveRefused) or (event.by is role and own in (0, event.buyer)):
                return entry
            return LogEntry(entry.n, entry.at_ms, MoveRefused(event.by, event.buyer, others_code[event.code]))

        log = tuple(disguised(entry) for entry in play.log)
        assert as_sent(play.scenario, log, party) == as_sent(play.scenario, play.log, party)


def test_the_other_side_sees_a_refused_move_as_a_turn_that_passed() -> None:
    table = Table(bilateral(regulated=(Role.BUYER,)))
    table.refuse(B1, RefusalCode.BEYOND_RESERVATION)
    assert table.history(SELLER)[-1].event == TurnPassed(by=Role.BUYER, buyer=1)
    assert table.history(B1)[-1].event == MoveRefused(by=Role.BUYER, buyer=0, code="beyond_reservation")
    table.refuse(SELLER, RefusalCode.OWN_OFFER)
    assert table.history(B1)[-1].event == TurnPassed(by=Role.SELLER, buyer=0)


def test_a_refused_move_to_one_buyer_is_no_news_to_another() -> None:
    table = Table(multi_buyer())
    table.refuse(SELLER, RefusalCode.PRICE_OUT_OF_RANGE, buyer=2)
    table.refuse(SELLER, RefusalCode.UNKNOWN_THREAD, buyer=9)
    assert table.history(B1) == ()
    assert [each.event for each in table.history(B2)] == [TurnPassed(by=Role.SELLER, buyer=0)]
    assert len(table.history(SELLER)) == 2


@EXAMPLES
@given(plays())
def test_events_hold_no_free_text(play: Play) -> None:
    """Talk and thoughts can be erased only because they are nowhere in the economic log."""
    shown = encode(play.log) + b"".join(encode(observation.observe(play.final, party)) for party in play.parties)
    assert b"Well." not in shown
    assert b"talk" not in shown
    assert b"thought" not in shown


# --- The view itself --------------------------------------------------------------------------------------


def test_the_seller_sees_every_thread_in_order() -> None:
    table = Table(multi_buyer(openings=(2_600, 2_700, 2_800))).play_all((SELLER, offer(9_000, to=2)))
    view = table.sees(SELLER)
    assert [thread.buyer for thread in view.threads] == [1, 2, 3]
    assert [(thread.my_move, thread.their_move) for thread in view.threads] == [
        (True, False),
        (False, True),
        (True, False),
    ]
    assert [thread.standing[0].price_cents for thread in view.threads] == [2_600, 2_700, 2_800]


def test_a_seller_without_turns_may_write_nowhere() -> None:
    table = Table(multi_buyer(turns=1)).play_all((SELLER, offer(9_000, to=2)))
    view = table.sees(SELLER)
    assert not view.to_move
    assert not any(thread.my_move for thread in view.threads)
    assert table.sees(B2).to_move
    assert not table.sees(B1).to_move


def test_the_accepted_offer_is_shown_to_the_two_who_made_the_deal() -> None:
    table = Table(catalogue()).play_all((SELLER, offer(8_000, to=2)), (B2, accept(1)))
    deal = table.sees(B2).threads[0].deal
    assert deal is not None
    assert (deal.product, deal.price_cents, deal.mine) == (0, 8_000, False)
    assert table.sees(SELLER).threads[1].deal == msgspec.structs.replace(deal, mine=True)
    assert table.sees(B1).threads[0].deal is None


def test_after_the_end_nobody_is_to_move() -> None:
    table = Table(bilateral()).play_all((B1, offer(6_000)), (SELLER, accept(1)))
    for party in (SELLER, B1):
        view = table.sees(party)
        assert view.ended
        assert not view.to_move
        assert not view.threads[0].their_move


def test_an_offer_that_was_answered_stays_in_the_history_and_stands_no_more() -> None:
    table = Table(bilateral()).play_all((B1, offer(3_000)), (SELLER, reject(1)), (B1, offer(4_000)))
    thread = table.sees(SELLER).threads[0]
    assert [each.price_cents for each in thread.offers] == [3_000, 4_000]
    assert [each.price_cents for each in thread.standing] == [4_000]
    assert thread.last(mine=False) == thread.offers[1]
    assert thread.last(mine=True) is None
    assert thread.last(mine=False, product=1) is None
    assert thread.standing_offer(mine=False, product=0) == thread.offers[1]
    assert thread.standing_offer(mine=True, product=0) is None


def test_a_party_knows_whether_its_own_moves_are_guarded_and_not_the_other_sides() -> None:
    table = Table(bilateral(regulated=(Role.BUYER,)))
    assert table.sees(B1).regulated
    assert not table.sees(SELLER).regulated
    unguarded = Table(bilateral())
    assert encode(unguarded.sees(SELLER)) == encode(table.sees(SELLER))


@given(cents, cents)
def test_the_gain_from_a_deal_is_reckoned_from_the_own_side(value: int, price: int) -> None:
    table = Table(bilateral(value=value, cost=value))
    assert table.sees(B1).surplus_cents(product=0, price_cents=price) == value - price
    assert table.sees(SELLER).surplus_cents(product=0, price_cents=price) == price - value


def test_each_event_says_in_which_thread_of_the_seller_it_happened() -> None:
    table = Table(multi_buyer(values=(9_000, 9_000), openings=(2_600, 2_700)))
    table.play_all((SELLER, offer(8_000, to=2)), (B1, LEAVE), (B2, reject(2)), (SELLER, say(to=2)), (B2, say()))
    table.play(SELLER, LEAVE)
    assert [(type(each.event), each.thread) for each in table.history(SELLER)] == [
        (OfferMade, 1),
        (OfferMade, 2),
        (OfferMade, 2),
        (PartyLeft, 1),
        (OfferRejected, 2),
        (MessageSent, 2),
        (MessageSent, 2),
        (PartyLeft, 0),
        (NegotiationEnded, 0),
    ]


@pytest.mark.parametrize(
    "party", ["buyer-0", "buyer--1", "buyer-01", "buyer-", "spectator", "", "Seller", "buyer-+1", "buyer-1_0"]
)
def test_who_has_no_chair_is_shown_nothing(party: str) -> None:
    """A number counted from the wrong end would show one buyer another buyer's card."""
    state: State = opened(multi_buyer())
    with pytest.raises((ValueError, IndexError)):
        observation.observe(state, party)
    with pytest.raises(ValueError):
        observation.seen_events(state.scenario, (), party)


def test_a_buyer_beyond_the_last_is_shown_nothing() -> None:
    with pytest.raises(IndexError):
        observation.observe(opened(multi_buyer()), "buyer-4")


def test_every_family_is_observed_from_every_chair() -> None:
    for scenario in (bilateral(), multi_buyer(), catalogue()):
        for party in parties_of(scenario):
            view = observation.observe(opened(scenario), party)
            assert view.family is scenario.family
            assert len(view.threads) == (scenario.buyers if party == SELLER else 1)
    assert {s.family for s in (bilateral(), multi_buyer(), catalogue())} == set(Family)
