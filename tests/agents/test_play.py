"""What must hold for every agent in every market, whoever it meets.

Without these an agent's illegal move would cost it a message nobody meant to spend, its constraint
adherence would mean nothing, and a move could carry another party's private value to its reader.
"""

from random import Random

import msgspec
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from agents import registry
from agents.base import AgentSpec, Kind
from agents.play import Played, play, seat
from agents.words import with_words
from markets.engine import rules
from markets.engine.protocol import (
    SELLER,
    Action,
    IllegalAction,
    LogEntry,
    MoveRefused,
    OfferAccepted,
    OfferMade,
    Party,
    RefusalCode,
    Role,
    buyer_of,
    buyer_party,
    encode,
    role_of,
)
from markets.engine.scenarios import Scenario
from markets.engine.state import State, evolve, initial
from tests import effort
from tests.agents.tables import move
from tests.markets.engine.games import Play, any_scenario, opened, plays, sampled_scenarios

relaxed = settings(
    max_examples=effort.games(60, thorough=200),
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)


@st.composite
def seatings(draw: st.DrawFn, scenario: Scenario) -> dict[Party, AgentSpec]:
    """Any agent that can play there on every chair."""

    def of(role: Role) -> st.SearchStrategy[AgentSpec]:
        return st.sampled_from(
            [spec for spec in registry.all_specs() if spec.can_play(role=role, family=scenario.family)]
        )

    return {
        SELLER: draw(of(Role.SELLER)),
        **{buyer_party(number): draw(of(Role.BUYER)) for number in range(1, scenario.buyers + 1)},
    }


@st.composite
def games(draw: st.DrawFn, scenarios: st.SearchStrategy[Scenario]) -> tuple[Scenario, dict[Party, AgentSpec], Played]:
    scenario = draw(scenarios)
    seating = draw(seatings(scenario))
    return scenario, seating, play(scenario, {party: seat(spec) for party, spec in seating.items()})


def party_of(event: OfferMade | OfferAccepted | MoveRefused) -> Party:
    return SELLER if event.by is Role.SELLER else buyer_party(event.buyer)


@relaxed
@given(games(any_scenario))
def test_no_agent_breaks_a_rule_except_the_unconstrained_one_where_losses_are_refused(
    game: tuple[Scenario, dict[Party, AgentSpec], Played],
) -> None:
    scenario, seating, played = game
    assert played.state.ended
    for entry in played.log:
        if isinstance(entry.event, MoveRefused):
            party = party_of(entry.event)
            assert seating[party].slug == "zi-u", (party, seating[party].slug, entry.event.code)
            assert entry.event.code == RefusalCode.BEYOND_RESERVATION
            assert role_of(party) in scenario.regulated


@relaxed
@given(games(any_scenario))
def test_nobody_but_the_unconstrained_one_offers_or_accepts_at_a_loss(
    game: tuple[Scenario, dict[Party, AgentSpec], Played],
) -> None:
    scenario, seating, played = game
    for entry in played.log:
        event = entry.event
        if not isinstance(event, OfferMade | OfferAccepted) or getattr(event, "opening", False):
            continue
        party = party_of(event)
        own = scenario.reservation_value_cents(role=event.by, buyer=event.buyer, product=event.product)
        gain = own - event.price_cents if event.by is Role.BUYER else event.price_cents - own
        assert gain >= 0 or seating[party].slug == "zi-u", (party, seating[party].slug, gain)


@settings(relaxed, max_examples=effort.games(25, thorough=60))
@given(games(any_scenario))
def test_words_go_with_every_move_and_change_none(game: tuple[Scenario, dict[Party, AgentSpec], Played]) -> None:
    scenario, seating, silent = game
    spoken = play(scenario, {party: seat(spec) for party, spec in seating.items()}, words=with_words)
    assert all(action.talk.strip() for action in spoken.actions.values())
    assert encode(spoken.log) == encode(silent.log)


@relaxed
@given(plays(), st.randoms(use_true_random=False))
def test_an_agent_that_takes_over_at_any_table_makes_a_legal_move(drawn: Play, chance: Random) -> None:
    """Whatever people have done before, and while other answers are still due."""
    for state in [opened(drawn.scenario), *(step.after for step in drawn.steps)]:
        for party in rules.parties_to_move(state):
            able = [
                spec
                for spec in registry.all_specs()
                if spec.can_play(role=role_of(party), family=drawn.scenario.family)
            ]
            spec = chance.choice(able)
            action = move(state, party, spec, drawn.log[: state.version])
            refused = refusal(state, party, action)
            assert refused is None or (spec.slug == "zi-u" and refused is RefusalCode.BEYOND_RESERVATION), (
                spec.slug,
                action,
                refused,
            )


def refusal(state: State, party: Party, action: Action) -> RefusalCode | None:
    """Why the rules refuse a move; None for a legal one."""
    try:
        rules.step(state, party, action)
    except IllegalAction as illegal:
        return illegal.code
    return None


def with_other_values(scenario: Scenario, keep: Party, by_cents: int) -> Scenario:
    """The same market with every value changed but those of `keep`."""
    own = buyer_of(keep)
    return msgspec.structs.replace(
        scenario,
        seller_values_cents=tuple(
            value if keep == SELLER else value + by_cents for value in scenario.seller_values_cents
        ),
        buyer_values_cents=tuple(
            values if buyer == own else tuple(value + by_cents for value in values)
            for buyer, values in enumerate(scenario.buyer_values_cents, start=1)
        ),
    )


@settings(relaxed, max_examples=120)
@given(games(sampled_scenarios()), st.integers(1, 5_000))
def test_a_move_does_not_depend_on_another_partys_private_values(
    game: tuple[Scenario, dict[Party, AgentSpec], Played], by_cents: int
) -> None:
    scenario, seating, played = game
    assume(any(spec.kind is not Kind.REFERENCE for spec in seating.values()))
    for n, action in played.actions.items():
        party = mover(played.log[n - 1])
        if seating[party].kind is Kind.REFERENCE:
            continue
        state = initial(with_other_values(scenario, party, by_cents))
        for entry in played.log[: n - 1]:
            state = evolve(state, entry.event)
        assert encode(move(state, party, seating[party], played.log[: n - 1])) == encode(action)


def mover(entry: LogEntry) -> Party:
    """Whose move an event begins."""
    event = entry.event
    by: Role = event.by  # type: ignore[union-attr]
    return SELLER if by is Role.SELLER else buyer_party(event.buyer)  # type: ignore[union-attr]


@settings(relaxed, max_examples=effort.games(25, thorough=60))
@given(games(any_scenario))
def test_the_same_scenario_and_agents_give_the_same_game_again(
    game: tuple[Scenario, dict[Party, AgentSpec], Played],
) -> None:
    scenario, seating, played = game
    again = play(scenario, {party: seat(spec) for party, spec in seating.items()})
    assert encode(again.log) == encode(played.log)
    assert [encode(action) for action in again.actions.values()] == [
        encode(action) for action in played.actions.values()
    ]
