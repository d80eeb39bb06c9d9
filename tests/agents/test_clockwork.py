"""The driver on a simulated clock: who is asked when, what arrives when, and that the same seed tells the same story.

Without these an agent could be asked twice, never, or before it could know; and a tournament could not be repeated.
"""

import os
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agents import registry
from agents.base import AgentSpec, Kind, Turn
from agents.play import Played, play, seat
from agents.simulation import SeatError, report, simulate
from agents.words import with_words
from markets.engine.protocol import (
    SELLER,
    AcceptOffer,
    Action,
    DeadlinePassed,
    EndReason,
    Leave,
    MakeOffer,
    MessageSent,
    MoveRefused,
    NegotiationEnded,
    OfferAccepted,
    OfferMade,
    PartyLeft,
    PriceSearched,
    Role,
    Say,
    SearchPrice,
    Wait,
    Waited,
    encode,
)
from markets.engine.scenarios import EventDriven, Family, Scenario
from markets.engine.state import evolve, initial, replay
from tests import effort
from tests.agents.tables import SHOP, buyers, listed_market, sellers
from tests.markets.engine.factories import B1, event_driven, offer, reject, say
from tests.markets.engine.games import any_scenario

relaxed = settings(
    max_examples=effort.games(40, thorough=150),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
clocked = any_scenario.filter(lambda scenario: isinstance(scenario.mechanism, EventDriven))

MARKET = msgspec.structs.replace(listed_market(Family.BILATERAL), mechanism=EventDriven(), malformed_ends=False)

Script = Sequence[Action | Sequence[Action]]


class Scripted:
    """Does one thing after the other, each when it is asked, and remembers what it saw."""

    def __init__(self, script: Script) -> None:
        self._script = list(script)
        self.asked: list[Turn] = []

    def act(self, turn: Turn) -> Action:
        raise AssertionError("an agent that can answer with a batch is asked for one")

    def act_batch(self, turn: Turn) -> Sequence[Action]:
        self.asked.append(turn)
        step = self._script.pop(0) if self._script else Leave()
        return step if isinstance(step, Sequence) else (step,)


def table(
    seller: Script, buyer: Script, *, latency_ms: int = 1_000, **changes: object
) -> tuple[Played, Scripted, Scripted]:
    """Two scripts against each other; every action takes a second unless told otherwise."""
    scenario = event_driven(**changes)  # type: ignore[arg-type]
    mechanism = msgspec.structs.replace(scenario.mechanism, latency_ms=(latency_ms, latency_ms))
    scenario = msgspec.structs.replace(scenario, mechanism=mechanism)
    players = Scripted(seller), Scripted(buyer)
    seats = {party: seat(spec(lambda own=own: own)) for party, own in zip((SELLER, B1), players, strict=True)}
    return play(scenario, seats), *players


def spec(build: Callable[[], Scripted]) -> AgentSpec:
    return AgentSpec(
        slug="scripted",
        title="",
        summary="",
        kind=Kind.SCRIPTED,
        roles=tuple(Role),
        families=(Family.BILATERAL,),
        build=build,
    )


def story(played: Played) -> list[tuple[int, type]]:
    """When what happened."""
    return [(entry.at_ms, type(entry.event)) for entry in played.log]


# --- When -------------------------------------------------------------------------------------------------------


def test_an_action_lands_after_its_latency_and_wakes_the_other_side_then() -> None:
    played, seller, buyer = table([offer(9_000)], [Leave()])
    assert story(played) == [(1_000, OfferMade), (2_000, PartyLeft), (2_000, NegotiationEnded)]
    assert [turn.observation.now_ms for turn in seller.asked] == [0]
    assert [turn.observation.now_ms for turn in buyer.asked] == [1_000]


def test_the_actions_of_one_batch_take_their_times_one_after_the_other_and_arrive_together() -> None:
    played, _, buyer = table([[say(), offer(9_000), say()]], [Leave()])
    assert [at_ms for at_ms, _ in story(played)][:3] == [3_000] * 3
    assert len(buyer.asked) == 1
    assert [o.price_cents for o in buyer.asked[0].observation.threads[0].standing] == [9_000]


def test_a_timed_wait_wakes_its_keeper_when_nothing_arrives() -> None:
    played, _, buyer = table([offer(9_000)], [Wait(for_ms=5_000), Leave()])
    assert [turn.observation.now_ms for turn in buyer.asked] == [1_000, 7_000]
    assert story(played)[1:3] == [(2_000, Waited), (8_000, PartyLeft)]


def test_what_arrives_earlier_wakes_it_earlier_and_the_alarm_is_off() -> None:
    _, _, buyer = table(
        [offer(9_000), [Wait(for_ms=3_000)], offer(8_000), Wait()],
        [[say(), Wait(for_ms=60_000)], Wait(for_ms=500), Leave()],
    )
    # The offer at 1,000; say and wait land at 3,000; the seller's wait at 4,000 is over at 7,000; its offer at 8,000.
    assert [turn.observation.now_ms for turn in buyer.asked] == [1_000, 8_000, 9_500]


def test_what_arrives_at_the_moment_a_wait_is_over_is_seen() -> None:
    _, _, buyer = table([offer(9_000), [Wait(for_ms=1_000)], offer(8_000)], [[say(), Wait(for_ms=3_000)], Leave()])
    # The seller wakes at 3,000, waits from 4,000 to 5,000 and lands at 6,000, when the buyer's wait is over.
    assert [turn.observation.now_ms for turn in buyer.asked] == [1_000, 6_000]
    assert buyer.asked[1].observation.threads[0].offers[-1].price_cents == 8_000


def test_what_arrives_while_a_party_is_busy_is_answered_as_soon_as_it_has_acted() -> None:
    """The buyer answers the first offer with three messages; the second arrives while they are on their way."""
    played, _, buyer = table([[offer(9_000), Wait(for_ms=500)], offer(8_500), Wait()], [[say(), say(), say()], Leave()])
    assert [turn.observation.now_ms for turn in buyer.asked] == [2_000, 5_000]
    assert (3_500, OfferMade) in story(played)
    assert buyer.asked[1].observation.threads[0].offers[-1].price_cents == 8_500


def test_an_offer_replaced_on_the_way_cannot_be_accepted_and_only_its_taker_learns_it() -> None:
    played, seller, buyer = table(
        [[offer(7_000), Wait(for_ms=500)], offer(9_000), Leave()],
        [[say(), say(), AcceptOffer(offer_id=1)], Leave()],
    )
    refused = [entry for entry in played.log if isinstance(entry.event, MoveRefused)]
    assert [(entry.event.by, entry.event.code) for entry in refused] == [(Role.BUYER, "offer_gone")]  # type: ignore[union-attr]
    assert not played.state.deals
    assert len(buyer.asked) == 2
    assert not any(isinstance(seen.event, MoveRefused) for turn in seller.asked for seen in turn.past)


def test_a_search_is_answered_to_who_searched_and_to_nobody_else() -> None:
    played, seller, buyer = table([offer(9_000)], [SearchPrice(), Leave()])
    assert story(played)[1] == (2_000, PriceSearched)
    found = [turn.observation.products[0].price_range for turn in buyer.asked]
    assert found[0] is None
    assert found[1] is not None
    assert len(seller.asked) == 1


# --- The end ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("buyer", [[Wait()], [[]], [[SearchPrice(), Wait()]]], ids=["wait", "nothing", "search"])
def test_when_both_wait_for_ever_it_ends_in_silence(buyer: Script) -> None:
    played, _, _ = table([offer(9_000)], buyer)
    assert played.state.end_reason is EndReason.SILENCE


def test_a_timed_wait_keeps_it_from_falling_silent() -> None:
    played, _, _ = table([offer(9_000)], [Wait(for_ms=600_000), Wait()])
    assert played.log[-1].at_ms == 603_000
    assert played.state.end_reason is EndReason.SILENCE


def test_the_cap_ends_it_in_the_middle_of_a_batch() -> None:
    played, _, _ = table([[say()] * 60], [], events=7)
    assert [kind for _, kind in story(played)] == [MessageSent] * 7 + [NegotiationEnded]
    assert played.state.end_reason is EndReason.EVENTS_USED


def test_what_is_on_its_way_when_it_ends_never_arrives() -> None:
    played, _, _ = table([[offer(7_000), Wait(for_ms=500)], Leave()], [[say(), say(), AcceptOffer(offer_id=1)]])
    assert played.state.end_reason is EndReason.SELLER_LEFT
    assert not any(isinstance(entry.event, MessageSent) for entry in played.log)


def test_who_cannot_land_before_the_deadline_has_let_its_time_run_out() -> None:
    played, _, _ = table([offer(9_000)], [offer(4_000)], deadline_ms=1_900)
    assert story(played)[1:] == [(1_900, DeadlinePassed), (1_900, PartyLeft), (1_900, NegotiationEnded)]
    assert played.state.end_reason is EndReason.DEADLINE


def test_a_party_that_only_breaks_rules_ends_at_the_cap() -> None:
    played, _, _ = table([offer(9_000)], [reject(9)] * 100)
    assert played.state.end_reason is EndReason.EVENTS_USED
    assert sum(isinstance(entry.event, MoveRefused) for entry in played.log) == 49


# --- Every agent ------------------------------------------------------------------------------------------------


@st.composite
def games(draw: st.DrawFn) -> tuple[Scenario, Played]:
    scenario = draw(clocked)
    seller, buyer = draw(st.sampled_from(sellers(Family.BILATERAL))), draw(st.sampled_from(buyers(Family.BILATERAL)))
    return scenario, play(scenario, {SELLER: seat(registry.get(seller)), B1: seat(registry.get(buyer))})


@relaxed
@given(games())
def test_replay_equals_live_time_never_runs_back_the_cap_holds_and_no_deal_lacks_consent(
    game: tuple[Scenario, Played],
) -> None:
    scenario, played = game
    assert isinstance(scenario.mechanism, EventDriven)
    assert replay(scenario, played.log) == played.state
    assert played.state.ended
    times = [entry.at_ms for entry in played.log]
    assert times == sorted(times)
    assert played.state.events_used <= scenario.mechanism.events
    state = initial(scenario)
    for entry in played.log:
        if isinstance(entry.event, OfferAccepted):
            taken = [o for o in state.threads[0].standing if o.offer_id == entry.event.offer_id]
            assert [(o.by, o.price_cents) for o in taken] == [(entry.event.by.other, entry.event.price_cents)]
        state = evolve(state, entry.event)


@relaxed
@given(clocked)
def test_the_same_game_again_gives_the_same_log_with_words_and_without(scenario: Scenario) -> None:
    def played(**how: Callable[[Action, Turn], Action]) -> bytes:
        seats = {SELLER: seat(registry.get("linear")), B1: seat(registry.get("zi-c"))}
        return encode(play(scenario, seats, **how).log)

    assert played() == played() == played(words=with_words)


@pytest.mark.parametrize("seller", sellers(Family.BILATERAL))
def test_every_seller_plays_every_buyer_to_an_end(seller: str) -> None:
    """A sixth of the buyers each, unless everything is asked for; all sellers together meet every one."""
    start = sellers(Family.BILATERAL).index(seller)
    for buyer in effort.some(buyers(Family.BILATERAL), one_in=6, start=start):
        for _, played in simulate(
            recipe=MARKET, pool=SHOP, seller=registry.get(seller), buyers=[registry.get(buyer)], episodes=2, seed=5
        ):
            assert played.state.end_reason is not None
            refused = [entry for entry in played.log if isinstance(entry.event, MoveRefused)]
            assert not refused, (seller, buyer, refused)


def test_who_can_agree_mostly_does() -> None:
    figures = report(
        simulate(
            recipe=MARKET,
            pool=SHOP,
            seller=registry.get("linear"),
            buyers=[registry.get("linear")],
            episodes=200,
            seed=1,
        )
    )
    assert figures["deal_rate"] > 0.9
    assert figures["constraint_adherence"] == 1.0


def test_words_are_said_with_moves_and_not_with_waits() -> None:
    scenario = event_driven()
    quiet = spec(lambda: Scripted([Wait(for_ms=1_000), SearchPrice(), offer(4_000)]))
    seats = {SELLER: seat(registry.get("hardliner")), B1: seat(quiet)}
    played = play(scenario, seats, words=with_words)
    for n, action in played.actions.items():
        assert bool(action.talk) is not isinstance(played.log[n - 1].event, Waited | PriceSearched)
        assert isinstance(action, Say | MakeOffer | Wait | SearchPrice | Leave | AcceptOffer) or action.talk


def test_a_seat_that_does_not_fit_is_refused_as_in_every_market() -> None:
    with pytest.raises(SeatError, match="plays buyer only"):
        simulate(
            recipe=MARKET,
            pool=SHOP,
            seller=registry.get("threshold"),
            buyers=[registry.get("linear")],
            episodes=1,
            seed=1,
        )


PROGRAM = """
from agents import registry
from agents.simulation import report, simulate
from tests.agents.test_clockwork import MARKET, SHOP
for seller, buyer in (("linear", "zi-c"), ("zi-u", "logit")):
    print(report(simulate(recipe=MARKET, pool=SHOP, seller=registry.get(seller), buyers=[registry.get(buyer)],
                          episodes=20, seed=9))["log_sha256"])
"""


def test_the_same_seed_gives_the_same_log_in_any_process() -> None:
    root = Path(__file__).parents[2]

    def hashes(hash_seed: str) -> list[str]:
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM],
            cwd=root,
            env={**os.environ, "PYTHONHASHSEED": hash_seed, "PYTHONPATH": str(root)},
            capture_output=True,
            text=True,
            check=True,
            timeout=60,
        )
        return done.stdout.split()

    first = hashes("1")
    assert first == hashes("2")
    assert len(set(first)) == 2
