"""What holds in every negotiation, whoever plays and however badly: hypothesis looks for the exception."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from markets.engine import metrics, observation, rules
from markets.engine.protocol import (
    AcceptOffer,
    EndReason,
    IllegalAction,
    Leave,
    LogEntry,
    MakeOffer,
    MoveRefused,
    NegotiationEnded,
    OfferAccepted,
    OfferLapsed,
    OfferMade,
    OfferRejected,
    PartyLeft,
    PriceSearched,
    ProductSoldOut,
    RefusalCode,
    RejectOffer,
    Role,
    Say,
    SearchPrice,
    Wait,
    Waited,
    decode_log,
    encode,
    log_sha256,
)
from markets.engine.scenarios import Alternating, EventDriven, Scenario, SellerTurns, decode_scenario
from markets.engine.state import State, ThreadStatus, evolve, initial, replay
from tests.markets.engine.games import Play, any_scenario, opened, parties_of, plays

EXAMPLES = settings(max_examples=150)


# --- The log is the game ------------------------------------------------------------------------------


@EXAMPLES
@given(plays())
def test_replaying_the_log_gives_the_live_state(play: Play) -> None:
    assert replay(play.scenario, play.log) == play.final
    for step in play.steps:
        state = step.before
        for event in step.events:
            state = evolve(state, event)
        assert state == step.after


@EXAMPLES
@given(plays())
def test_a_stored_scenario_and_log_replay_to_the_same_game(play: Play) -> None:
    scenario = decode_scenario(encode(play.scenario))
    log = decode_log(encode(play.log))
    assert scenario == play.scenario
    assert log == play.log
    assert replay(scenario, log) == play.final
    assert log_sha256([log]) == log_sha256([play.log])


@EXAMPLES
@given(plays())
def test_the_version_counts_events_one_by_one(play: Play) -> None:
    state = initial(play.scenario)
    for number, entry in enumerate(play.log, start=1):
        state = evolve(state, entry.event)
        assert entry.n == state.version == number


@EXAMPLES
@given(plays())
def test_the_end_is_the_last_event_and_only_the_last(play: Play) -> None:
    ends = [entry.n for entry in play.log if isinstance(entry.event, NegotiationEnded)]
    assert ends == ([len(play.log)] if play.final.ended else [])


@EXAMPLES
@given(plays())
def test_a_refused_move_leaves_the_state_as_it_was(play: Play) -> None:
    for step in play.steps:
        if step.refused is not None and not step.events:
            assert step.after == step.before


@EXAMPLES
@given(plays())
def test_a_logged_refusal_spends_a_message_and_touches_nothing_else(play: Play) -> None:
    for step in play.steps:
        if not any(isinstance(event, MoveRefused) for event in step.events):
            continue
        assert step.after.deals == step.before.deals
        assert step.after.stock_left == step.before.stock_left
        for before, after in zip(step.before.threads, step.after.threads, strict=True):
            assert (after.offers, after.standing, after.status) == (before.offers, before.standing, before.status)


# --- Deals ----------------------------------------------------------------------------------------------


@EXAMPLES
@given(plays())
def test_no_deal_without_the_consent_of_both(play: Play) -> None:
    """Whoever sells or buys had named that very price itself, or took it while it stood."""
    made: dict[tuple[int, int], OfferMade] = {}
    standing: set[tuple[int, int]] = set()
    for entry in play.log:
        event = entry.event
        match event:
            case OfferMade():
                replaced = {
                    key
                    for key in standing
                    if key[0] == event.buyer and made[key].by is event.by and made[key].product == event.product
                }
                standing = standing - replaced | {(event.buyer, event.offer_id)}
                made[event.buyer, event.offer_id] = event
            case OfferRejected() | OfferLapsed():
                standing.remove((event.buyer, event.offer_id))
            case PartyLeft():
                standing = {key for key in standing if event.buyer not in (0, key[0])}
            case OfferAccepted():
                offer = made[event.buyer, event.offer_id]
                assert (event.buyer, event.offer_id) in standing
                assert offer.by is event.by.other
                assert (offer.product, offer.price_cents) == (event.product, event.price_cents)
                standing.remove((event.buyer, event.offer_id))
    still = {(thread.buyer, offer.offer_id) for thread in play.final.threads for offer in thread.standing}
    assert still == standing


@EXAMPLES
@given(plays())
def test_nobody_is_served_twice_and_stock_is_never_negative(play: Play) -> None:
    state = initial(play.scenario)
    for entry in play.log:
        state = evolve(state, entry.event)
        assert min(state.stock_left) >= 0
        sold = [deal.product for deal in state.deals]
        for index, product in enumerate(play.scenario.products):
            assert state.stock_left[index] + sold.count(index) == product.stock
        buyers = [deal.buyer for deal in state.deals]
        assert len(buyers) == len(set(buyers))
        assert {t.buyer for t in state.threads if t.status is ThreadStatus.SERVED} == set(buyers)


@EXAMPLES
@given(plays())
def test_a_product_is_called_sold_out_exactly_when_its_last_unit_goes(play: Play) -> None:
    called = [entry.event.product for entry in play.log if isinstance(entry.event, ProductSoldOut)]
    assert sorted(called) == [index for index, left in enumerate(play.final.stock_left) if left == 0]


@EXAMPLES
@given(plays())
def test_surpluses_sum_to_the_value_that_trade_created(play: Play) -> None:
    scenario = play.scenario
    outcome = metrics.outcome(scenario, play.log)
    created = [
        scenario.buyer_values_cents[deal.buyer - 1][deal.product] - scenario.seller_values_cents[deal.product]
        for deal in outcome.deals
    ]
    assert [deal.seller_surplus_cents + deal.buyer_surplus_cents for deal in outcome.deals] == created
    assert [deal.pair_joint_cents for deal in outcome.deals] == created
    assert outcome.welfare_cents == sum(created) == outcome.seller_surplus_cents + outcome.buyer_surplus_cents
    assert outcome.welfare_cents <= outcome.first_best_cents


@EXAMPLES
@given(plays())
def test_regulated_seats_never_lose_money(play: Play) -> None:
    scenario = play.scenario
    for deal in metrics.outcome(scenario, play.log).deals:
        offered_by_rule = (deal.buyer, deal.product, deal.price_cents) in {
            (bid.buyer, bid.product, bid.price_cents) for bid in scenario.opening_bids
        }
        if Role.SELLER in scenario.regulated:
            assert deal.seller_surplus_cents >= 0
        if Role.BUYER in scenario.regulated and not offered_by_rule:
            assert deal.buyer_surplus_cents >= 0


# --- What is gone stays gone ------------------------------------------------------------------------------


@EXAMPLES
@given(plays())
def test_an_offer_that_no_longer_stands_can_never_be_accepted_or_rejected(play: Play) -> None:
    """Tried after every move, by both sides, for every offer there ever was."""
    for step in play.steps:
        for thread in step.after.threads:
            standing = {offer.offer_id: offer.by for offer in thread.standing}
            for offer_id in range(len(thread.offers) + 2):
                for party, role in (("seller", Role.SELLER), (f"buyer-{thread.buyer}", Role.BUYER)):
                    if standing.get(offer_id) is role.other:
                        continue
                    buyer = thread.buyer if role is Role.SELLER else 0
                    with pytest.raises(IllegalAction):
                        rules.decide(step.after, party, AcceptOffer(offer_id=offer_id, buyer=buyer))
                    with pytest.raises(IllegalAction):
                        rules.decide(step.after, party, RejectOffer(offer_id=offer_id, buyer=buyer))


@EXAMPLES
@given(plays())
def test_a_side_has_at_most_one_standing_offer_on_a_product_in_a_thread(play: Play) -> None:
    for step in play.steps:
        for thread in step.after.threads:
            sides = [(offer.by, offer.product) for offer in thread.standing]
            assert len(sides) == len(set(sides))
            assert [offer.offer_id for offer in thread.offers] == list(range(1, len(thread.offers) + 1))


@EXAMPLES
@given(plays())
def test_nothing_stands_that_cannot_be_had(play: Play) -> None:
    for step in play.steps:
        for thread in step.after.threads:
            if thread.status is not ThreadStatus.OPEN:
                assert thread.standing == ()
                assert thread.to_move is None
            assert all(step.after.stock_left[offer.product] > 0 for offer in thread.standing)


# --- Turns ------------------------------------------------------------------------------------------------


@EXAMPLES
@given(plays(moves=60))
def test_messages_never_exceed_the_budget(play: Play) -> None:
    mechanism = play.scenario.mechanism
    for step in play.steps:
        state = step.after
        assert rules.turns_left(state) >= 0
        if isinstance(mechanism, Alternating):
            thread = state.threads[0]
            assert max(thread.seller_messages, thread.buyer_messages) <= mechanism.rounds
            assert abs(thread.seller_messages - thread.buyer_messages) <= 1
        elif isinstance(mechanism, EventDriven):
            assert state.events_used <= mechanism.events
            assert state.events_used == mechanism.events or state.end_reason is not EndReason.EVENTS_USED
        else:
            assert state.turns_used <= mechanism.turns
            assert sum(thread.seller_messages for thread in state.threads) <= state.turns_used
            for thread in state.threads:
                assert thread.buyer_messages <= thread.seller_messages


@EXAMPLES
@given(plays())
def test_a_legal_message_is_counted_once_and_leaving_is_not_counted(play: Play) -> None:
    def sent(state: State) -> int:
        return sum(thread.seller_messages + thread.buyer_messages for thread in state.threads)

    for step in play.steps:
        if step.refused is None:
            silent = step.action is None or isinstance(step.action, Leave | Wait | SearchPrice)
            assert sent(step.after) - sent(step.before) == (0 if silent else 1)


@EXAMPLES
@given(any_scenario, st.data())
def test_whoever_is_to_move_can_go_on_until_the_end_comes_by_itself(scenario: Scenario, data: st.DataObject) -> None:
    """Parties that never leave and never agree, and answer with talk, offers or nonsense, still end."""
    state = opened(scenario)
    mechanism = scenario.mechanism
    turns = 2 * (mechanism.turns if isinstance(mechanism, SellerTurns) else mechanism.rounds)
    if isinstance(mechanism, EventDriven):
        turns = mechanism.events
    stubborn = data.draw(st.lists(st.integers(0, 2), min_size=turns, max_size=turns))
    for choice in stubborn:
        if state.ended:
            break
        party = rules.parties_to_move(state)[-1]
        own = observation.observe(state, party)
        buyer = next(thread.buyer for thread in own.threads if thread.my_move)
        price_cents = own.products[0].reservation_value_cents
        if choice == 0:
            _, state = rules.refuse(state, party, RefusalCode.MALFORMED, buyer=buyer)
        elif choice == 1:
            _, state = rules.step(state, party, Say(talk="No.", buyer=buyer))
        else:
            _, state = rules.step(state, party, MakeOffer(price_cents=price_cents, buyer=buyer))
    assert state.end_reason in (EndReason.TURNS_USED, EndReason.EVENTS_USED, EndReason.MALFORMED)


@EXAMPLES
@given(plays())
def test_a_negotiation_that_goes_on_waits_for_somebody_who_can_write(play: Play) -> None:
    for step in play.steps:
        state = step.after
        waiting = rules.parties_to_move(state)
        assert bool(waiting) is not state.ended
        assert set(rules.parties_due(state)) <= set(waiting)
        for party in parties_of(play.scenario):
            assert observation.observe(state, party).to_move is (party in waiting)


@EXAMPLES
@given(plays())
def test_who_may_write_is_never_told_to_wait_and_who_may_not_always_is(play: Play) -> None:
    turn_codes = {RefusalCode.NOT_YOUR_TURN, RefusalCode.AWAITING_ANSWER, RefusalCode.TURNS_USED}
    for step in play.steps:
        for party in parties_of(play.scenario):
            for thread in observation.observe(step.before, party).threads:
                hello = Say(talk="Hello.", buyer=thread.buyer)
                if thread.my_move:
                    assert rules.decide(step.before, party, hello)
                    continue
                with pytest.raises(IllegalAction) as refused:
                    rules.decide(step.before, party, hello)
                assert refused.value.code in turn_codes | {RefusalCode.THREAD_CLOSED, RefusalCode.ALREADY_SERVED}


# --- What a party has seen ------------------------------------------------------------------------------


@EXAMPLES
@given(plays())
def test_every_partys_own_numbers_have_no_gaps(play: Play) -> None:
    for party in play.parties:
        seen = observation.seen_events(play.scenario, play.log, party)
        assert [each.seq for each in seen] == list(range(1, len(seen) + 1))
        assert [each.n for each in seen] == sorted({each.n for each in seen})


@EXAMPLES
@given(plays())
def test_later_events_never_change_what_a_party_has_already_seen(play: Play) -> None:
    """So that a page which asks for "what came after n" ends up where a reload does."""
    log = play.log
    for party in play.parties:
        whole = observation.seen_events(play.scenario, log, party)
        for cut in range(len(log) + 1):
            prefix = observation.seen_events(play.scenario, log[:cut], party)
            assert whole[: len(prefix)] == prefix


@EXAMPLES
@given(plays())
def test_the_seller_sees_every_event_of_the_log(play: Play) -> None:
    """But for what a buyer does on a simulated clock that changes nothing for anybody else."""
    free = isinstance(play.scenario.mechanism, EventDriven)
    unseen = (Waited, PriceSearched, MoveRefused) if free else ()
    seen = observation.seen_events(play.scenario, play.log, "seller")
    assert [each.n for each in seen] == [
        entry.n for entry in play.log if not (isinstance(entry.event, unseen) and entry.event.by is Role.BUYER)
    ]


@EXAMPLES
@given(plays())
def test_both_sides_of_a_thread_see_the_same_offers_and_deal(play: Play) -> None:
    for step in play.steps:
        sellers = observation.observe(step.after, "seller").threads
        for own in sellers:
            (theirs,) = observation.observe(step.after, f"buyer-{own.buyer}").threads
            mirrored = [(o.offer_id, not o.mine, o.product, o.price_cents) for o in theirs.offers]
            assert [(o.offer_id, o.mine, o.product, o.price_cents) for o in own.offers] == mirrored
            assert [o.offer_id for o in own.standing] == [o.offer_id for o in theirs.standing]
            assert (own.my_messages, own.their_messages) == (theirs.their_messages, theirs.my_messages)
            assert (own.deal is None) is (theirs.deal is None)
            assert own.status is theirs.status


# --- Time -------------------------------------------------------------------------------------------------


@given(any_scenario, st.integers(0, 5_000), st.integers(1, 5_000))
def test_after_the_deadline_every_move_is_refused(scenario: Scenario, deadline_ms: int, later_ms: int) -> None:
    state = opened(msgspec.structs.replace(scenario, deadline_ms=deadline_ms))
    for party in parties_of(scenario):
        with pytest.raises(IllegalAction) as refused:
            rules.decide(state, party, Leave(), deadline_ms + later_ms)
        assert refused.value.code is RefusalCode.DEADLINE_PASSED
        rules.decide(state, party, Leave(), deadline_ms)


@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=5))
def test_the_time_of_an_event_is_kept_to_the_millisecond(times: list[int]) -> None:
    log = tuple(
        LogEntry(number, at_ms, OfferMade(Role.BUYER, 1, number, 0, 100)) for number, at_ms in enumerate(times, start=1)
    )
    assert [entry.at_ms for entry in decode_log(encode(log))] == times
