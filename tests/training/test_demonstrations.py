"""Teachers must be mediocre and varied, or a later gain proves nothing."""

from markets.engine import metrics
from training.config import Game
from training.demonstrations import demonstrate

LADDER = Game(sizes=((4, 8),))


def test_the_teachers_earn_at_most_two_thirds_and_no_teacher_is_a_fool() -> None:
    demonstrations = list(demonstrate(LADDER, episodes=1500, seed=1))
    pooled = metrics.summary(metrics.outcome(d.episode.scenario, d.episode.log) for d in demonstrations)
    assert 0.55 < pooled.seller_extraction < 0.66
    assert pooled.constraint_adherence_by_role["seller"] == 1.0


def test_all_three_habits_are_shown() -> None:
    kinds = set()
    for demonstration in demonstrate(LADDER, episodes=200, seed=1):
        asked = [m.words[1] for m in demonstration.messages if m.role == "assistant"]
        if len(asked) == 8:
            kinds.add("one" if len(set(asked)) == 1 else "cycle" if len(set(asked[:4])) == 4 else "anybody")
    assert kinds == {"one", "cycle", "anybody"}


def test_teachers_keep_to_their_cost_and_take_bids_that_are_good_enough() -> None:
    game = Game(sizes=((3, 9),), costs=(30.0,), opponents=("linear",))
    accepted = 0
    for demonstration in demonstrate(game, episodes=150, seed=4):
        answers = [m.words for m in demonstration.messages if m.role == "assistant"]
        assert all(int(words[2]) >= 30 for words in answers if words[0] == "ask")
        accepted += any(words[0] == "accept" for words in answers)
        outcome = metrics.outcome(demonstration.episode.scenario, demonstration.episode.log)
        assert outcome.seller_surplus_cents >= 0
    assert accepted > 5


def test_the_same_seed_demonstrates_the_same() -> None:
    first, again = ([d.messages for d in demonstrate(LADDER, episodes=20, seed=s)] for s in (1, 1))
    assert first == again
    assert first != [d.messages for d in demonstrate(LADDER, episodes=20, seed=2)]
