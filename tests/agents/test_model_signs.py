"""While a model writes, or cannot be reached, the page opposite says so, and no other page does."""

import pytest
from channels.db import database_sync_to_async

from markets import services
from markets.engine.protocol import SELLER
from tests.markets.engine.factories import B1, B2, bilateral, multi_buyer
from tests.markets.rooms import staged
from tests.markets.tabs import Tab

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.asyncio]


async def test_the_other_side_is_told_that_a_model_writes_and_that_it_is_asked_again() -> None:
    game = await database_sync_to_async(lambda: staged(bilateral(), people=(B1,)))()
    tab = await Tab.open(game, B1)
    await database_sync_to_async(lambda: services.show_writing(room=game.room, party=SELLER))()
    assert await tab.until("typing", "error") == {"type": "typing", "thread": 1}
    await database_sync_to_async(lambda: services.show_waiting(room=game.room, party=SELLER))()
    error = await tab.until("error")
    assert error["code"] == "agent_waits"
    assert error["sentence"].startswith("The language model of the seller does not answer just now.")
    await database_sync_to_async(lambda: services.show_waiting(room=game.room, party=SELLER, plays_on=True))()
    plays_on = await tab.until("error")
    assert plays_on["code"] == "agent_waits"
    assert plays_on["sentence"] != error["sentence"]


async def test_one_buyers_silence_is_told_to_the_seller_and_to_no_other_buyer() -> None:
    game = await database_sync_to_async(lambda: staged(multi_buyer(), people=(SELLER, B1)))()
    seller, other = await Tab.open(game, SELLER), await Tab.open(game, B1)
    await database_sync_to_async(lambda: services.show_waiting(room=game.room, party=B2))()
    error = await seller.until("error")
    assert error["code"] == "agent_waits"
    assert error["sentence"].startswith("The language model of Buyer B does not answer")
    assert (await other.ask({"type": "ping"}, "pong"))["type"] == "pong"
    assert not [frame for frame in other.frames if frame["type"] in ("error", "typing")]
