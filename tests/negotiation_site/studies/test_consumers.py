"""The socket of a participant: the browser that takes part plays, others are turned away, nobody learns too much."""

import pytest
from channels.db import database_sync_to_async
from django.contrib.sessions.backends.db import SessionStore

from markets import consumers
from markets.engine.money import format_amount
from markets.engine.scenarios import decode_scenario
from negotiation_site.studies import conduct, holding, play
from negotiation_site.studies.design import Matching, Told
from negotiation_site.studies.models import Participation, State
from tests.markets.tabs import LEAVING, Tab, offering
from tests.negotiation_site.studies.people import condition, design, enter, link, study, to

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.asyncio]


def session_of(somebody: Participation) -> SessionStore:
    """The stored session of the browser that takes part."""
    session = SessionStore()
    holding.hold(session, somebody)
    session.save()
    return session


@database_sync_to_async
def pair(told: Told = Told.NOTHING) -> tuple[tuple[Participation, SessionStore], tuple[Participation, SessionStore]]:
    """A seller and a buyer at one table."""
    value = design(condition("pair", matching=Matching.PERSON, told=told), debrief="You met a person.")
    way = link(study(value))
    one, two = (to(State.PLAYING, enter(way)) for _person in range(2))
    conduct.go_on(one)
    conduct.go_on(two)
    seller, buyer = sorted((one, two), key=lambda each: each.role != "seller")
    return (seller, session_of(seller)), (buyer, session_of(buyer))


def tab_of(somebody: Participation, session: SessionStore | None) -> Tab:
    return Tab.address(somebody.public_id, session, at="study")


@database_sync_to_async
def values(somebody: Participation) -> tuple[int, int]:
    """The seller's cost and the buyer's value."""
    scenario = decode_scenario(play.current(somebody).room.scenario)
    return scenario.seller_values_cents[0], scenario.buyer_values_cents[0][0]


async def test_two_people_play_and_neither_is_sent_the_others_value_or_kind():
    (seller, selling), (buyer, buying) = await pair()
    sold, bought = tab_of(seller, selling), tab_of(buyer, buying)
    for tab in (sold, bought):
        assert await tab.connect()
        await tab.until("view")
    assert (await bought.act(offering("40")))["type"] == "ack"
    await sold.reach(1)
    assert (await sold.act(LEAVING))["type"] == "ack"
    await bought.until("view")
    cost, value = await values(seller)
    for tab, others in ((sold, value), (bought, cost)):
        sent = "".join(tab.raw)
        assert format_amount(others, "USD") not in sent
        assert str(others) not in sent
        assert tab.drawing.panels["panel-opponent"] == "against the other side"
        assert "a person" not in sent


async def test_a_stranger_and_somebody_elses_session_are_turned_away():
    (seller, _selling), (buyer, buying) = await pair()
    for session in (None, buying):
        tab = tab_of(seller, session)
        assert await tab.connect()
        assert await tab.closed() == consumers.CLOSE_STRANGER
        assert [frame["code"] for frame in tab.frames] == ["not_seated"]
    assert await database_sync_to_async(lambda: play.current(buyer).room.version)() == 0


async def test_a_device_that_takes_over_closes_the_other_at_once():
    (seller, selling), _buyer = await pair()
    tab = tab_of(seller, selling)
    assert await tab.connect()
    await tab.until("view")
    token = seller.resume_token
    await database_sync_to_async(lambda: conduct.resume(token=token, device="phone"))()
    assert await tab.closed() == consumers.CLOSE_STRANGER
    again = tab_of(seller, selling)
    assert await again.connect()
    assert await again.closed() == consumers.CLOSE_STRANGER


async def test_whoever_was_replaced_by_an_agent_moves_no_more(django_user_model):
    (seller, selling), _buyer = await pair()
    tab = tab_of(seller, selling)
    assert await tab.connect()
    await tab.until("view")
    staff = await database_sync_to_async(django_user_model.objects.create_user)("staff", is_staff=True)
    await database_sync_to_async(lambda: conduct.replace(seller, actor=staff))()
    assert await tab.closed() == consumers.CLOSE_STRANGER


async def test_that_a_language_model_is_late_is_said_only_to_those_who_know_of_one():
    for told, said in ((Told.AI, True), (Told.PERSON, False)):
        (seller, selling), _buyer = await pair(told)
        tab = tab_of(seller, selling)
        assert await tab.connect()
        await tab.until("view")
        room = await database_sync_to_async(lambda somebody=seller: play.current(somebody).room)()
        from markets import services

        await database_sync_to_async(lambda room=room: services.show_waiting(room=room, party="buyer-1"))()
        if said:
            await tab.until("error")  # However long the nudge is on its way.
        await tab.settle()
        assert ("agent_waits" in {frame.get("code") for frame in tab.frames}) is said
        await tab.close()
