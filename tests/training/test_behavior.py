"""The chance of a recorded move is the one that it was drawn with, and where there is none a row says why."""

import math
from collections import Counter

import pytest

from agents import registry, simulation
from agents.base import Kind, Turn
from agents.learned.policy import Policy
from agents.play import turn_for
from markets.engine.protocol import Leave, Role
from markets.engine.scenarios import decode_recipe, sample
from markets.engine.state import initial
from markets.models import Market
from tests.markets import rooms
from training import behavior
from training.rows import Chair, Options, Source, Tally, codec, step_rows

pytestmark = pytest.mark.django_db

DRAWN = "ladder-learner-sampled"


@pytest.fixture
def table() -> Market:
    return rooms.market("multi_buyer", slug="stall", values="uniform:0:100", cost="constant:0", buyers=4, turns=8)


def policy(slug: str) -> str:
    return f"{slug}@{registry.get(slug).version}"


def opening(market: Market, seed: int) -> Turn:
    scenario = sample(decode_recipe(market.recipe), (), seed)
    return turn_for(initial(scenario), "seller", registry.get(DRAWN), [])


def test_moves_come_as_often_as_their_chance_says(table):
    turn = opening(table, 1)
    agent = registry.get(DRAWN).build()
    assert isinstance(agent, Policy)
    drawn: Counter[object] = Counter()
    for seed in range(200):
        other = Turn(
            observation=turn.observation, seed=seed, party="seller", slug=DRAWN, position=0, log=(turn._log[0], [])
        )
        drawn[agent.act(other)] += 1
    sum_of_chances = 0.0
    for action, times in drawn.items():
        chance = behavior.chance_of(policy(DRAWN), turn, (action,))
        assert chance.log_probability is not None
        expected = math.exp(chance.log_probability)
        sum_of_chances += expected
        assert abs(times / 200 - expected) < 4 * math.sqrt(expected * (1 - expected) / 200) + 0.005
    assert 0.5 < sum_of_chances <= 1 + 1e-6


def test_rows_of_a_trained_seller_carry_the_chance_of_each_move(table):
    games = simulation.simulate(
        recipe=decode_recipe(table.recipe), pool=(), seller=registry.get(DRAWN), buyers=[registry.get("threshold")],
        episodes=3, seed=5,
    )  # fmt: skip
    for scenario, played in games:
        source = Source(
            episode="x", market="stall", scenario=scenario, log=played.log, talk={}, thoughts={},
            chairs={"seller": Chair(policy(DRAWN), 0, None)}, timed=False,
        )  # fmt: skip
        rows = list(step_rows(source, Options(codec("four_part"), Role.SELLER), Tally()))
        assert rows
        assert all(-20 < row["behavior_log_probability"] <= 0 for row in rows)


def test_whoever_takes_the_likeliest_is_certain(table):
    turn = opening(table, 1)
    move = registry.get("ladder-learner").build().act(turn)
    assert behavior.chance_of(policy("ladder-learner"), turn, (move,)).log_probability == 0


@pytest.mark.parametrize(
    ("who", "note"),
    [
        ("person", "A person moved."),
        ("linear@1", "A rule moved"),
        ("no-such-agent@1", "no longer installed"),
        (f"{DRAWN}@0123456789ab", "Version 0123456789ab moved"),
    ],
)
def test_what_is_not_known_is_null_with_a_reason(table, who, note):
    chance = behavior.chance_of(who, opening(table, 1), (Leave(),))
    assert chance.log_probability is None
    assert note in chance.note


def test_every_kind_of_agent_has_a_reason():
    assert set(behavior._UNKNOWN) | {Kind.LEARNED} == set(Kind)
