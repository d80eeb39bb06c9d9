"""The simulated clock: who may act, who wakes, what counts and what nobody is told.

Without these a wait would bind the other side, a secret would show in a gap of numbers, or a log could not be told
from one in which time ran backwards.
"""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from markets.engine import observation, priors, rules
from markets.engine.protocol import (
    EndReason,
    IllegalAction,
    MakeOffer,
    MoveRefused,
    NegotiationEnded,
    OfferMade,
    Party,
    PriceSearched,
    RefusalCode,
    Role,
    SearchPrice,
    Wait,
    Waited,
    buyer_of,
    decode_log,
    encode,
)
from markets.engine.scenarios import EventDriven, Family, PriceRange, Recipe, Scenario, decode_scenario, sample
from markets.engine.state import evolve, initial, replay
from tests.markets.engine.factories import (
    B1,
    LEAVE,
    SELLER,
    Table,
    accept,
    bilateral,
    event_driven,
    multi_buyer,
    offer,
    reject,
    say,
)
from tests.markets.engine.games import POOL, Play, plays, written_scenarios

clocked = written_scenarios().filter(lambda scenario: isinstance(scenario.mechanism, EventDriven))


def opened(**changes: object) -> Table:
    """The seller has named $90."""
    return Table(event_driven(**changes)).play_all((SELLER, offer(9_000)))  # type: ignore[arg-type]


# --- Who may act ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("opener", "other"), [(Role.SELLER, B1), (Role.BUYER, SELLER)])
def test_the_other_side_waits_for_the_openers_first_word_but_may_leave(opener: Role, other: Party) -> None:
    table = Table(event_driven(opener=opener))
    for action in (offer(5_000), say(), Wait(), SearchPrice()):
        assert table.refusal(other, action) is RefusalCode.NOT_YOUR_TURN
    assert rules.parties_to_move(table.state) == rules.parties_due(table.state)
    table.play(other, LEAVE)
    assert table.state.ended


def test_then_both_may_act_at_any_time_and_as_often_as_they_like() -> None:
    table = opened()
    table.play_all((SELLER, say("Well?")), (SELLER, offer(8_500)), (B1, offer(4_000)), (B1, say()), (SELLER, say()))
    assert rules.parties_to_move(table.state) == (B1, SELLER)
    assert [o.price_cents for o in table.state.threads[0].standing] == [8_500, 4_000]


def test_an_offer_that_was_answered_on_its_way_is_gone() -> None:
    table = opened().play_all((B1, offer(4_000)), (SELLER, offer(8_000)))
    assert table.refusal(B1, accept(1)) is RefusalCode.OFFER_GONE
    table.play(B1, accept(3))
    assert table.state.end_reason is EndReason.DEAL


def test_after_an_acceptance_nothing_can_be_accepted() -> None:
    table = opened().play_all((B1, offer(8_000)), (SELLER, accept(2)))
    assert table.refusal(B1, accept(1)) in (RefusalCode.SOLD_OUT, RefusalCode.NEGOTIATION_ENDED)


def test_nobody_is_kept_from_losing_money_unless_the_market_says_so() -> None:
    opened().play_all((B1, offer(20_000)), (SELLER, offer(100)), (B1, accept(3)))
    guarded = opened(regulated=(Role.BUYER,))
    assert guarded.refusal(B1, offer(8_001)) is RefusalCode.BEYOND_RESERVATION


# --- Who wakes -------------------------------------------------------------------------------------------------


def test_what_is_seen_wakes_the_other_side_and_ends_both_waits() -> None:
    table = opened()
    assert rules.parties_due(table.state) == (B1,)
    table.play(B1, Wait(for_ms=5_000), at_ms=1_000)
    assert rules.parties_due(table.state, 5_999) == ()
    assert rules.parties_due(table.state, 6_000) == (B1,)
    assert rules.next_alarm_ms(table.state, B1) == 6_000
    table.play(SELLER, say("Still there?"), at_ms=3_000)
    assert rules.parties_due(table.state, 3_000) == (B1,)
    assert rules.next_alarm_ms(table.state, B1) is None


def test_a_wait_without_a_time_lasts_until_something_arrives() -> None:
    table = opened()
    table.play(B1, Wait(), at_ms=1_000)
    assert rules.parties_due(table.state, 10**9) == ()
    assert rules.next_alarm_ms(table.state, B1) is None


def test_whoever_searches_or_is_refused_is_asked_again() -> None:
    table = opened()
    table.play(B1, SearchPrice())
    assert rules.parties_due(table.state) == (B1,)
    table.refuse(B1, RefusalCode.OFFER_GONE)
    assert rules.parties_due(table.state) == (B1,)
    table.play(B1, reject(1))
    assert rules.parties_due(table.state) == (SELLER,)


@pytest.mark.parametrize("for_ms", [-1, 600_001, 2**70])
def test_a_wait_goes_neither_back_in_time_nor_on_for_ever(for_ms: int) -> None:
    assert opened().refusal(B1, Wait(for_ms=for_ms)) is RefusalCode.WAIT_OUT_OF_RANGE


def test_who_both_wait_for_ever_end_in_silence_when_the_driver_says_so() -> None:
    table = opened()
    table.play(B1, Wait())
    assert rules.parties_due(table.state) == ()
    assert table.fall_silent() == (NegotiationEnded(reason=EndReason.SILENCE),)
    with pytest.raises(IllegalAction):
        rules.fall_silent(table.state)


def test_what_one_side_does_unseen_makes_only_its_own_answers_stale() -> None:
    table = opened()
    before = {party: rules.position(table.state, party) for party in (SELLER, B1)}
    table.play(B1, Wait(for_ms=700))
    table.refuse(B1, RefusalCode.MALFORMED)
    assert rules.position(table.state, SELLER) == before[SELLER]
    assert rules.position(table.state, B1) == before[B1] + 2
    table.play(B1, say())
    assert rules.position(table.state, SELLER) > before[SELLER]


# --- What counts -----------------------------------------------------------------------------------------------


def test_the_cap_ends_it() -> None:
    table = Table(event_driven(events=5)).play_all((SELLER, offer(9_000)), (B1, Wait()), (SELLER, SearchPrice()))
    table.refuse(B1, RefusalCode.MALFORMED)
    assert table.sees(B1).events_left == table.sees(SELLER).events_left == 1
    assert table.play(SELLER, say())[-1] == NegotiationEnded(reason=EndReason.EVENTS_USED)


def test_the_last_event_can_still_accept() -> None:
    table = Table(event_driven(events=2)).play_all((SELLER, offer(7_000)), (B1, accept(1)))
    assert table.state.end_reason is EndReason.DEAL


def test_the_rounds_that_both_are_told_of_bind_nobody() -> None:
    table = Table(event_driven(rounds=1)).play_all((SELLER, offer(9_000)))
    assert (table.sees(SELLER).turns_left, table.sees(B1).turns_left) == (0, 1)
    table.play(SELLER, offer(8_000))
    assert table.sees(SELLER).turns_left == 0
    assert table.sees(SELLER).to_move


@pytest.mark.parametrize(("ends", "reason"), [(False, None), (True, EndReason.MALFORMED)])
def test_an_unreadable_message_counts_and_ends_it_only_where_the_market_says_so(
    ends: bool, reason: EndReason | None
) -> None:
    table = opened(malformed_ends=ends)
    table.refuse(B1, RefusalCode.MALFORMED)
    assert table.state.events_used == 2
    assert table.state.end_reason is reason


# --- What nobody is told ---------------------------------------------------------------------------------------


def test_waits_searches_and_refused_moves_are_their_senders_alone() -> None:
    table = opened()
    table.play(B1, Wait(for_ms=800))
    table.play(B1, SearchPrice())
    table.refuse(B1, RefusalCode.OFFER_GONE)
    table.play(B1, offer(4_000))
    assert [type(seen.event) for seen in table.history(SELLER)] == [OfferMade, OfferMade]
    assert [seen.seq for seen in table.history(SELLER)] == [1, 2]
    kinds = [type(seen.event) for seen in table.history(B1)]
    assert kinds == [OfferMade, Waited, PriceSearched, MoveRefused, OfferMade]
    assert all(seen.event.buyer == 0 for seen in table.history(B1))  # type: ignore[union-attr]


def test_that_the_other_side_waits_does_not_show() -> None:
    """Whether an answer is due follows from what was said alone."""
    table = opened()
    before = encode(table.sees(SELLER))
    table.play(B1, Wait(for_ms=60_000))
    after = table.sees(SELLER)
    assert encode(msgspec.structs.replace(after, events_left=49)) == before


def test_a_search_finds_list_prices_and_is_told_to_who_searched() -> None:
    table = opened()
    assert table.sees(B1).products[0].price_range is None
    table.play(B1, SearchPrice())
    found = table.sees(B1).products[0].price_range
    assert found == table.scenario.price_ranges[0]  # type: ignore[index]
    assert table.sees(SELLER).products[0].price_range is None
    assert table.refusal(B1, SearchPrice(product=1)) is RefusalCode.UNKNOWN_PRODUCT


def test_the_price_range_is_made_of_list_prices_of_the_category_and_never_of_costs() -> None:
    cost = priors.UniformSpec(low=0.3, high=0.9)
    recipe = Recipe(
        family=Family.BILATERAL,
        mechanism=EventDriven(),
        value_spec=priors.BandsSpec(),
        cost_spec=cost,
        cost_prior=cost,
    )
    drawn = sample(
        recipe,
        [msgspec.structs.replace(facts, category="odd" if index % 2 else "even") for index, facts in enumerate(POOL)],
        3,
    )
    assert not isinstance(drawn.price_ranges, msgspec.UnsetType)
    (found,) = drawn.price_ranges
    kin = [facts for index, facts in enumerate(POOL) if ("odd" if index % 2 else "even") == drawn.products[0].category]
    listed = sorted(facts.list_price_cents for facts in kin)
    assert found == PriceRange(
        products=len(kin),
        lowest_list_price_cents=listed[0],
        median_list_price_cents=listed[1],
        highest_list_price_cents=listed[-1],
    )
    assert not {facts.lowest_price_cents for facts in POOL} & set(msgspec.structs.astuple(found)[1:])


@given(plays(clocked), st.integers(1, 5_000))
def test_an_observation_never_depends_on_the_other_sides_value(play: Play, by_cents: int) -> None:
    for keep, other in ((SELLER, B1), (B1, SELLER)):
        changed = with_other_value(play.scenario, of=other, by_cents=by_cents)
        state, twin = initial(play.scenario), initial(changed)
        for entry in play.log:
            state, twin = evolve(state, entry.event), evolve(twin, entry.event)
            assert encode(observation.observe(state, keep, now_ms=entry.at_ms)) == encode(
                observation.observe(twin, keep, now_ms=entry.at_ms)
            )
        assert encode(observation.seen_events(play.scenario, play.log, keep)) == encode(
            observation.seen_events(changed, play.log, keep)
        )


def with_other_value(scenario: Scenario, *, of: Party, by_cents: int) -> Scenario:
    if buyer_of(of):
        return msgspec.structs.replace(scenario, buyer_values_cents=((scenario.buyer_values_cents[0][0] + by_cents,),))
    return msgspec.structs.replace(scenario, seller_values_cents=(scenario.seller_values_cents[0] + by_cents,))


# --- The record ------------------------------------------------------------------------------------------------


def test_a_scenario_of_an_older_mechanism_is_written_as_it_always_was() -> None:
    for scenario in (bilateral(), multi_buyer()):
        assert b"price_ranges" not in encode(scenario)
        assert decode_scenario(encode(scenario)) == scenario


def test_a_record_of_this_mechanism_replays_from_its_stored_text() -> None:
    table = opened()
    table.play(B1, Wait(for_ms=800), at_ms=1_500)
    table.play_all((B1, MakeOffer(price_cents=5_500)), (SELLER, accept(2)))
    log = decode_log(encode(table.log))
    assert replay(decode_scenario(encode(table.scenario)), log) == table.state
