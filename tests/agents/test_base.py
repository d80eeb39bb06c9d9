"""The chance an agent is given: without these a live room and a simulation would play different games."""

import pytest

from agents.base import Turn, default_act
from markets.engine.protocol import RejectOffer, Say
from tests.markets.engine.factories import B1, SELLER, Table, bilateral, multi_buyer, offer


def turn(*, seed: int = 1, party: str = B1, slug: str = "linear", position: int = 0) -> Turn:
    table = Table(bilateral())
    return Turn(observation=table.sees(party), seed=seed, party=party, slug=slug, position=position)


def test_character_is_the_same_at_every_turn_and_chance_is_not() -> None:
    early, late = turn(position=1), turn(position=5)
    assert early.traits(5) == late.traits(5)
    assert early.character.random() == early.traits(1)[0]
    assert early.chance.random() != late.chance.random()
    assert early.words.random() != late.words.random()


def test_asking_twice_at_one_turn_gives_the_same_numbers() -> None:
    """A turn that is taken again after a worker died makes the same move."""
    assert turn(position=3).chance.random() == turn(position=3).chance.random()
    assert turn(position=3).words.random() == turn(position=3).words.random()


def test_words_and_character_tell_nothing_about_chance() -> None:
    one = turn(position=3)
    assert len({one.chance.random(), one.words.random(), one.character.random()}) == 3


@pytest.mark.parametrize("other", [{"seed": 2}, {"party": SELLER}, {"slug": "boulware"}])
def test_another_game_chair_or_agent_has_another_character(other: dict) -> None:
    assert turn(**other).traits(5) != turn().traits(5)
    assert turn(**other).chance.random() != turn().chance.random()


def test_a_late_agents_default_binds_nobody() -> None:
    table = Table(multi_buyer())
    assert isinstance(default_act(table.sees(SELLER)), Say)
    table.play(SELLER, offer(9_000, to=1))
    assert default_act(table.sees(B1)) == RejectOffer(offer_id=1)
    table.play(B1, offer(4_000))
    assert default_act(table.sees(SELLER)) == RejectOffer(offer_id=2, buyer=1)


def test_no_default_is_made_up_where_no_move_is_due() -> None:
    with pytest.raises(ValueError, match="No move is due"):
        default_act(Table(bilateral()).sees(SELLER))
