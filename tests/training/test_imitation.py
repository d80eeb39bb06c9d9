"""A small model imitates recorded games of every family as far as it has words for them; what is left out is told by reason."""

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest

from agents.learned import ledger
from markets import corpora, setup
from markets.engine.protocol import SELLER, Leave, Role
from markets.engine.scenarios import Family
from markets.importers import csv_catalogue
from markets.setup import MarketSpec
from tests.markets import dialogues as people
from tests.markets.engine.factories import B1, accept, bilateral, event_driven, offer, say
from tests.markets.rooms import staged
from training import dialogues, imitation, market_games
from training.config import Game
from training.datasets import Chosen, DataError, Kind

pytestmark = pytest.mark.django_db

HAGGLE = Game(
    sizes=((1, 6),),
    dialogue="ledger",
    family=Family.BILATERAL,
    mechanism="rounds",
    catalogue="any",
    reward="bilateral_share",
)


def game(**changes: Any) -> Game:
    """Haggling one to one, each side in turn."""
    return msgspec.structs.replace(HAGGLE, **changes)


@pytest.fixture
def things(settings, tmp_path: Path):
    settings.VAR = tmp_path
    return setup.import_catalogue(
        name="things", rows=csv_catalogue.read(Path("negotiation_site/starter/catalogue.csv")), source="starter"
    )


@pytest.mark.parametrize(
    ("family", "role", "more"),
    [
        ("bilateral", Role.SELLER, {"turns": 6}),
        ("bilateral", Role.BUYER, {"turns": 6}),
        ("multi_buyer", Role.SELLER, {"values": "bands", "buyers": 3, "turns": 8}),
        ("catalogue", Role.SELLER, {"values": "bands", "buyers": 3, "products": 3, "turns": 12}),
    ],
)
def test_demonstrations_over_a_catalogue_are_told_in_the_ledger(things, family: str, role: Role, more: dict[str, Any]):
    market = setup.create_market(MarketSpec(slug="shop", family=family, catalogue="things", **more))
    own = market_games.game_of(market, role=role)
    found = imitation.gather(Chosen(kind=Kind.DEMONSTRATIONS, name="shop", most=10), own)
    assert found.dialogues, found.sentence
    assert found.looked_at >= len(found.dialogues)
    words = set(ledger.vocabulary())
    for messages in found.dialogues:
        assert messages[0].role == "system"
        assert messages[0].words[0] == role.value
        assert messages[-1].role == "assistant"
        assert {word for message in messages for word in message.words} <= words
    told = {message.words[0] for each in found.dialogues for message in each if message.role == "assistant"}
    assert told <= set(dialogues.WRITTEN)


def test_games_of_people_are_imitated_and_those_with_bare_words_counted():
    for price in (6_000, 6_500):
        sold = staged(bilateral(value=8_000), people=(B1, SELLER), consent="public")
        sold.act(B1, offer(price, talk="What about this?"))
        sold.act(SELLER, accept(1))
    talked = staged(bilateral(value=8_000), people=(B1, SELLER), consent="public")
    talked.act(B1, say("Hello."))
    talked.act(SELLER, Leave())
    chosen = Chosen(kind=Kind.ROOMS)
    buying = imitation.gather(chosen, game(role=Role.BUYER))
    assert buying.looked_at == 3
    assert buying.left_out == {imitation.TALKED: 1}
    assert {each[-1].words[0] for each in buying.dialogues} == {"bid"}
    selling = imitation.gather(chosen, game())
    assert {each[-1].words[0] for each in selling.dialogues} == {"accept", "leave"}


def test_games_of_another_kind_are_left_out_by_that_reason():
    sold = staged(event_driven(), people=(B1, SELLER), consent="public")
    sold.act(SELLER, offer(9_000))
    sold.act(SELLER, Leave())
    found = imitation.gather(Chosen(kind=Kind.ROOMS), game())
    assert found.dialogues == ()
    assert found.left_out == {imitation.OTHER_GAME: 1}
    assert imitation.OTHER_GAME in found.sentence


def test_dialogues_of_people_who_were_told_targets_are_refused_with_the_counts(tmp_path: Path):
    file = tmp_path / "lamps.json"
    file.write_text(json.dumps([people.bargain(price=80 + k, targets=(70, 100), key=f"C_{k}") for k in range(3)]))
    corpora.store(name="lamps", format="craigslist-bargain", path=file)
    with pytest.raises(DataError, match="reads moves and prices, not sentences: of 3 negotiations chosen, 0"):
        imitation.check(Chosen(kind=Kind.CORPUS, name="lamps"), game())
