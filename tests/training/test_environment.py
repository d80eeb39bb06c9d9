"""Episodes in words are the engine's game: the same moves make the same log, and bad words are moves."""

import random
from pathlib import Path

import msgspec
import pytest

from agents.base import Turn
from agents.learned import dialogue, grammars
from agents.learned.dialogue import Message
from agents.play import Seat, play
from agents.registry import get
from markets.engine import rewards, splits
from markets.engine.observation import observe, seen_events
from markets.engine.protocol import SELLER, Action, MoveRefused, Role
from markets.engine.scenarios import Family
from markets.engine.seeds import derive_seed
from tests.training import tiny
from training import evaluation, held_out, sft
from training import model as models
from training import tokenizer as words
from training.config import ConfigError, Game, refuse_held_out
from training.demonstrations import demonstrate
from training.environment import Episode, draw_table

PROFIT = rewards.by_name("seller_profit", role=Role.SELLER)
MIXED = Game(sizes=((2, 6), (4, 9)), costs=(0.0, 15.0), opponents=("threshold", "linear", "impatient", "conceder"))


class Scripted:
    """Plays given words."""

    def __init__(self, answers: list[tuple[str, ...]]) -> None:
        self._answers = iter(answers)

    def act(self, turn: Turn) -> Action:
        action = dialogue.read(turn.observation, next(self._answers))
        assert action is not None
        return action


def test_an_episode_in_words_is_the_negotiation_that_the_driver_plays() -> None:
    for demonstration in demonstrate(MIXED, episodes=40, seed=2):
        answers = [m.words for m in demonstration.messages if m.role == "assistant"]
        k = demonstration.episode
        table = draw_table_of(k)
        seats = {SELLER: Seat(get("linear"), Scripted(answers)), **table.opponents}
        assert play(k.scenario, seats).log == k.log


def draw_table_of(episode: Episode):
    for k in range(40):
        table = draw_table(MIXED, derive(k))
        if table.scenario == episode.scenario:
            return table
    raise AssertionError("not one of the drawn games")


def derive(k: int) -> int:
    return derive_seed("demonstration", 2, k)


def test_what_an_episode_showed_is_what_a_worker_rebuilds_later() -> None:
    for demonstration in demonstrate(MIXED, episodes=40, seed=9):
        episode = demonstration.episode
        past = seen_events(episode.scenario, episode.log, SELLER)
        rebuilt = dialogue.transcript(observe(episode.state, SELLER), past)
        shown = demonstration.messages
        assert rebuilt[: len(shown)] == shown


def test_answers_that_cannot_be_read_spend_turns_and_are_scored_not_raised() -> None:
    episode = Episode(draw_table(tiny.GAME, 1))
    replies = [episode.act(words) for words in (None, ["t7", "ask"], ["ask", "b9", "50"])]
    assert [reply.words[0] for reply in replies[:2]] == ["refused", "refused"]
    assert episode.over
    codes = [entry.event.code for entry in episode.log if isinstance(entry.event, MoveRefused)]
    assert codes == ["malformed", "malformed", "unknown_thread"]
    assert episode.reward(PROFIT) == -1.0


def test_the_same_number_draws_the_same_table_and_another_one_another() -> None:
    first, again, other = (draw_table(MIXED, seed) for seed in (1, 1, 2))
    assert first.scenario == again.scenario
    assert {p: s.spec.slug for p, s in first.opponents.items()} == {p: s.spec.slug for p, s in again.opponents.items()}
    assert first.scenario != other.scenario


def test_members_of_a_group_meet_the_same_chance() -> None:
    rng = random.Random(3)
    for seed in range(30):
        table = draw_table(MIXED, seed)
        asks = [["ask", f"b{rng.randint(1, table.scenario.buyers)}", str(rng.randint(60, 99))] for _ in range(9)]
        logs = []
        for _ in range(2):
            episode = Episode(table)
            for asked in asks:
                if not episode.over:
                    episode.act(asked)
            logs.append(episode.log)
        assert logs[0] == logs[1]


CATALOGUE = "negotiation_site/starter/catalogue.csv"
LEDGER = Game(sizes=((3, 5),), dialogue="ledger", catalogue=CATALOGUE, values="bands", reward="rlvr_seller_multi")
OVER_PRODUCTS = {
    "several buyers": (LEDGER, ("chase-highest-bid",)),
    "a catalogue": (
        msgspec.structs.replace(
            LEDGER, family=Family.CATALOGUE, products=2, sizes=((3, 6),), reward="rlvr_seller_catalogue"
        ),
        ("greedy",),
    ),
    "a buyer": (
        msgspec.structs.replace(
            LEDGER,
            family=Family.BILATERAL,
            role=Role.BUYER,
            mechanism="rounds",
            opener=Role.BUYER,
            sizes=((1, 6),),
            values="highest:0.8",
            opponents=("linear", "boulware"),
            reward="rlvr_buyer",
        ),
        ("conceder",),
    ),
    "the clock": (
        msgspec.structs.replace(
            LEDGER,
            family=Family.BILATERAL,
            mechanism="clock",
            sizes=((1, 10),),
            values="range:0.4:0.1",
            cost="lowest:0.6:0.9",
            opponents=("linear", "tit-for-tat"),
            reward="bilateral_share",
        ),
        ("boulware",),
    ),
}


class InWords:
    """Plays given words on a seat of the driver's, as a worker would."""

    def __init__(self, answers: list[tuple[str, ...]]) -> None:
        self._answers = iter(answers)
        self.told: list[tuple[Message, ...]] = []

    def act(self, turn: Turn) -> Action:
        conversation, messages = grammars.LEDGER.rebuild(turn.observation, turn.past)
        self.told.append(messages)
        action = conversation.read(turn.observation, next(self._answers))
        assert action is not None
        return action


@pytest.mark.parametrize("name", OVER_PRODUCTS)
def test_every_kind_of_episode_is_the_negotiation_that_the_driver_plays_and_a_worker_rebuilds(name: str) -> None:
    game, teachers = OVER_PRODUCTS[name]
    for k, demonstration in enumerate(demonstrate(game, episodes=15, seed=4, teachers=teachers)):
        answers = [m.words for m in demonstration.messages if m.role == "assistant"]
        table = draw_table(game, derive_seed("demonstration", 4, k))
        worker = InWords(answers)
        played = play(table.scenario, {**table.opponents, table.learner: Seat(get("linear"), worker)})
        assert played.log == demonstration.episode.log
        assert worker.told[-1] == demonstration.messages[: len(worker.told[-1])]


def test_the_demonstrators_of_the_bands_game_explore_little_and_know_no_buyer() -> None:
    played = list(demonstrate(LEDGER, episodes=150, seed=1, habits=(0.0, 0.4, 0.3, 0.3)))
    conduct = evaluation.conduct([each.episode for each in played])
    assert conduct["coverage"] < 0.6
    assert conduct["top_buyer_rate"] < 0.75


def test_a_held_out_axis_moves_the_game_and_is_never_trained_on() -> None:
    moved = held_out.axes(LEDGER)
    assert {"products", "price-decade", "buyers-5", "bands-x0.7", "lognormal", "rho-0.9", "buyer-type"} <= set(moved)
    assert draw_table(moved["buyers-5"], 1).scenario.buyers == 5
    assert {s.spec.slug for s in draw_table(moved["buyer-type"], 1).opponents.values()} <= set(splits.BUYER_TYPES)
    with pytest.raises(ConfigError, match="judging"):
        refuse_held_out(moved["products"])


def test_a_base_that_speaks_another_dialogue_is_refused_with_a_sentence(tmp_path: Path) -> None:
    tokenizer = words.build(grammars.LEDGER)
    models.save(tmp_path, models.build(tiny.MODEL, tokenizer, seed=1), tokenizer)
    own = msgspec.structs.replace(tiny.config(), base=str(tmp_path))
    with pytest.raises(words.SetupError, match="the ledger; this game is played in the ladder"):
        sft.start(own)
    sft.start(msgspec.structs.replace(own, game=LEDGER))
