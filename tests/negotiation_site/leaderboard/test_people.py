"""The ladder of people: what is won and lost, in which order, and whose games count."""

import pytest

from negotiation_site.leaderboard.facts import BUYER, PERSON, SELLER, Copy
from negotiation_site.leaderboard.people import PROVISIONAL, Ladder, Standing, ladder
from tests.markets import rooms
from tests.negotiation_site.leaderboard.columns import NAN, facts_of
from tests.negotiation_site.leaderboard.records import bought, stored, walked


def seat(person: int, share: float, **more: object) -> dict[str, object]:
    """A person as buyer at an agent's table."""
    return {"agent": PERSON, "live": True, "role": BUYER, "participant": person, "share": share} | more


def pair(episode: int, buyer: int, seller: int, share: float) -> list[dict[str, object]]:
    """Two people at one table; the buyer gets `share`."""
    both = {"episode": episode, "scenario": episode, "opponent": PERSON}
    return [
        seat(seller, 1 - share, role=SELLER, surplus=1_000 * (1 - share), **both),
        seat(buyer, share, surplus=1_000 * share, **both),
    ]


def of(*rows: dict[str, object]) -> dict[int, Standing]:
    return ladder(facts_of(*rows)).people


def test_more_than_half_is_a_win_less_a_loss_and_about_half_a_draw():
    people = of(seat(1, 0.7), seat(2, 0.3), seat(3, 0.505), seat(3, 0.495))
    assert (people[1].games, people[1].wins) == (1, 1)
    assert (people[2].games, people[2].wins, people[2].draws) == (1, 0, 0)
    assert (people[3].games, people[3].draws) == (2, 2)
    assert people[1].rating.mu > 25 > people[2].rating.mu


def test_no_deal_where_something_could_be_gained_is_a_loss():
    people = of(seat(1, 0.0, deals=0))
    assert (people[1].games, people[1].wins, people[1].draws) == (1, 0, 0)


def test_walking_away_from_nothing_is_no_game_and_a_deal_there_a_loss():
    people = of(seat(1, NAN, deals=0), seat(2, NAN, deals=1, surplus=-50.0))
    assert (people[1].games, people[1].played) == (0, 1)
    assert (people[2].games, people[2].wins) == (1, 0)
    assert people[2].rating.mu < 25
    assert people[1].mean_share is None


def test_a_win_at_a_table_where_others_lose_counts_for_more():
    hard = [seat(person, 0.1, lineup=7) for person in range(10, 30)]
    easy = [seat(person, 0.9, lineup=8) for person in range(30, 50)]
    people = of(*hard, *easy, seat(1, 0.6, lineup=7), seat(2, 0.6, lineup=8))
    assert people[1].rating.mu > people[2].rating.mu > 25


def test_two_people_at_one_table_are_rated_against_each_other():
    people = of(*pair(1, buyer=1, seller=2, share=0.8))
    assert people[1].wins == 1
    assert people[2].games == 1
    assert people[1].rating.mu - 25 == pytest.approx(25 - people[2].rating.mu)


def test_nobody_is_rated_against_themselves_or_somebody_who_was_erased():
    people = of(*pair(1, buyer=1, seller=0, share=0.8))
    assert (people[1].wins, list(people)) == (1, [1])


def test_the_ladder_does_not_depend_on_how_the_games_lie_in_the_copy():
    rows = [seat(1 + number % 3, number / 40, episode=number, lineup=number % 2) for number in range(1, 40)]
    forwards, backwards = of(*rows), of(*rows[::-1])
    assert {person: each.score for person, each in forwards.items()} == {
        person: each.score for person, each in backwards.items()
    }


def test_games_can_be_taken_in_one_by_one():
    facts = facts_of(*(seat(1, number / 10, episode=number) for number in range(1, 10)))
    piecemeal = Ladder()
    for number in range(9):
        piecemeal.take(facts, [number])
    assert piecemeal.people[1].score == ladder(facts).people[1].score


def test_few_games_are_provisional_and_come_last():
    rows = [seat(1, 0.6) for _ in range(PROVISIONAL)] + [seat(2, 0.9) for _ in range(PROVISIONAL - 1)]
    standings = ladder(facts_of(*rows)).standings()
    assert [(each.participant, each.provisional) for each in standings] == [(1, False), (2, True)]


def test_a_newcomer_starts_at_nought_and_rises_as_more_is_known():
    first = of(seat(1, 0.505))[1].score
    later = of(*(seat(1, 0.505) for _ in range(12)))[1].score
    assert 0 <= first < later


def test_simulations_and_games_that_are_not_open_rate_nobody():
    people = of(seat(1, 0.9, live=False), seat(2, 0.9, public=False))
    assert people == {}


@pytest.mark.django_db
def test_a_person_who_keeps_a_game_to_themselves_is_on_no_ladder():
    copy = Copy(None)
    game = bought(6_000, consent="public")
    walked(consent="research")
    stored(rooms.market(), seller="linear")
    buyer, seller = game.people["buyer-1"].pk, game.people["seller"].pk
    people = ladder(copy.current()).people
    assert set(people) == {buyer, seller}
    assert (people[buyer].wins, people[seller].wins) == (1, 0)
    rooms.agree(game, "seller", "private")
    assert ladder(copy.current()).people == {}
