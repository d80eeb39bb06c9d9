"""The room's socket: everybody is told what concerns them and nothing else, once and in order, and no frame breaks it."""

import asyncio
import copy
import itertools
import json
import random
import re
from dataclasses import dataclass, field

import pytest
from asgiref.sync import sync_to_async
from channels.db import database_sync_to_async
from django.contrib.auth import login
from django.contrib.auth.models import User
from django.http import HttpRequest

from markets import consumers, erasure, event_log, services, wire
from markets.engine.protocol import SELLER, Role
from markets.engine.scenarios import OpeningBid
from markets.export_masking import REMOVED
from markets.models import Participant, RoomEvent, Seat, SeatKind
from negotiation_site.moderation import services as moderation
from tests.markets.engine.factories import B1, B2, B3, bilateral, catalogue, multi_buyer, offer
from tests.markets.rooms import Game, staged
from tests.markets.tabs import LEAVING, Drawing, Tab, accepting, offering, rejecting, saying, session_of

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.asyncio]


@pytest.fixture
def two() -> Game:
    """Buyer and seller are people; the buyer opens."""
    return staged(bilateral(), people=(B1, SELLER))


@pytest.fixture
def three() -> Game:
    """A seller, two people and an agent who buys."""
    return staged(multi_buyer(), people=(SELLER, B1, B2), agents="threshold")


stored_kinds = database_sync_to_async(lambda game: game.kinds)


# --- Who gets in ------------------------------------------------------------------------------------


async def refused_at_the_door(tab: Tab) -> dict:
    assert await tab.connect()
    assert await tab.closed() == consumers.CLOSE_STRANGER
    (frame,) = tab.frames
    return frame


async def test_a_stranger_is_told_nothing_but_that(two):
    stranger = await database_sync_to_async(lambda: session_of(Participant.objects.create(pseudonym="Stranger")))()
    for session in (stranger, await database_sync_to_async(session_of)(None), None):
        frame = await refused_at_the_door(Tab.address(two.room.public_id, session))
        assert (frame["type"], frame["code"]) == ("error", "not_seated")
        assert frame["sentence"].endswith(".")


async def test_an_unknown_room_looks_like_a_foreign_one(two):
    session = await database_sync_to_async(session_of)(two.people[B1])
    frame = await refused_at_the_door(Tab.address("no-such-room", session))
    assert frame["code"] == "not_seated"


async def test_another_sites_page_cannot_open_the_socket(two):
    session = await database_sync_to_async(session_of)(two.people[B1])
    assert not await Tab.address(two.room.public_id, session, origin="https://evil.example").connect()


@pytest.mark.parametrize(
    "origin", ["http://localhost:8001", "null", "", "http://[::1", "http://localhost:99999999", "é"]
)
async def test_neither_a_neighbours_port_nor_a_broken_origin_opens_the_socket(two, origin):
    """Cookies know no ports: a page of another server on this host would act as whoever is at the browser."""
    session = await database_sync_to_async(session_of)(two.people[B1])
    assert not await Tab.address(two.room.public_id, session, origin=origin).connect()


async def test_an_origin_that_forms_trust_may_open_the_socket(two, settings):
    settings.CSRF_TRUSTED_ORIGINS = ["https://localhost:8443"]
    session = await database_sync_to_async(session_of)(two.people[B1])
    assert await Tab.address(two.room.public_id, session, origin="https://localhost:8443").connect()


async def test_frames_of_a_stranger_change_nothing(two):
    session = await database_sync_to_async(session_of)(None)
    tab = Tab.address(two.room.public_id, session)
    await tab.connect()
    await tab.send({"type": "act", "client_move_id": "m", "action": LEAVING})
    assert await tab.closed() == consumers.CLOSE_STRANGER
    assert await stored_kinds(two) == []


async def test_a_session_that_was_logged_out_moves_nothing_and_is_closed(two):
    tab = await Tab.open(two, B1)
    await sync_to_async(tab.session.flush)()
    await tab.send({"type": "act", "client_move_id": "m", "action": saying("Still here?")})
    assert await tab.closed() == consumers.CLOSE_STRANGER
    assert tab.frames[-1]["code"] == "not_seated"
    assert await stored_kinds(two) == []


async def test_a_person_who_was_erased_moves_nothing_and_sees_nothing_more(two):
    tab, other = await Tab.open(two, B1), await Tab.open(two, SELLER)
    await sync_to_async(two.people[B1].delete)()
    await other.act(LEAVING)
    assert await tab.closed() == consumers.CLOSE_STRANGER
    assert all(frame["seq"] == 0 for frame in tab.frames if frame["type"] == "view")


async def test_a_seat_that_went_to_somebody_else_is_not_shown_to_the_old_page(two):
    tab, other = await Tab.open(two, B1), await Tab.open(two, SELLER)
    await database_sync_to_async(
        lambda: Seat.objects.filter(room=two.room, party=B1).update(
            participant=Participant.objects.create(pseudonym="Heir")
        )
    )()
    await other.act(LEAVING)
    assert await tab.closed() == consumers.CLOSE_STRANGER


async def test_the_heartbeat_notices_a_log_out(two, monkeypatch):
    monkeypatch.setattr(consumers, "HEAL_S", 0.02)
    tab = await Tab.open(two, B1)
    await sync_to_async(tab.session.flush)()
    assert await tab.closed() == consumers.CLOSE_STRANGER


# --- One move, everywhere ---------------------------------------------------------------------------


async def test_a_move_reaches_every_page_of_both_seats(two):
    buyer, second, seller = await Tab.open(two, B1), await Tab.open(two, B1), await Tab.open(two, SELLER)
    ack = await buyer.act(offering("60.50", talk="Sixty and a half?"), move="m-1", seen=0)
    assert ack == {"type": "ack", "client_move_id": "m-1", "seq": 1, "repeated": False}
    for tab in (buyer, second, seller):
        await tab.reach(1)
        assert tab.drawing.seq == 1
        assert "$60.50" in tab.drawing.items[0][2]
        assert "Sixty and a half?" in tab.drawing.items[0][2]
    assert (buyer.drawing.awaiting, seller.drawing.awaiting) == ((), (1,))


async def test_whoever_moves_sees_it_before_it_is_acknowledged(two):
    buyer = await Tab.open(two, B1)
    await buyer.act(offering("60"))
    assert [frame["type"] for frame in buyer.frames] == ["view", "view", "ack"]


async def test_the_same_move_twice_is_one_event_and_two_acks(two):
    buyer = await Tab.open(two, B1)
    first = await buyer.act(offering("60"), move="m-1", seen=0)
    again = await buyer.act(offering("60"), move="m-1", seen=0)
    assert (first["seq"], again["seq"], again["repeated"]) == (1, 1, True)
    await buyer.settle()
    assert [item[0] for item in buyer.drawing.items] == [1]
    assert await stored_kinds(two) == ["offer_made"]


async def test_a_move_sent_again_after_a_reconnect_is_one_move(two):
    first = await Tab.open(two, B1)
    await first.send({"type": "act", "client_move_id": "m-1", "action": offering("60")})
    await first.until("ack")
    await first.close()
    second = await Tab.open(two, B1, after=0)
    assert (await second.act(offering("60"), move="m-1"))["repeated"]
    assert await stored_kinds(two) == ["offer_made"]


async def test_a_tab_that_did_not_look_is_refused_and_shown_what_happened(two):
    buyer, seller = await Tab.open(two, B1), await Tab.open(two, SELLER)
    await buyer.act(offering("55"), seen=0)
    await seller.act(offering("70"), seen=1)
    refused = await buyer.act(accepting(2), move="late", seen=1)
    assert (refused["type"], refused["client_move_id"], refused["code"]) == ("refused", "late", "stale_view")
    assert buyer.drawing.seq == 2
    assert (await buyer.act(accepting(2), seen=2))["type"] == "ack"


async def test_a_page_can_pick_up_where_it_was(two):
    buyer, seller = await Tab.open(two, B1), await Tab.open(two, SELLER)
    await buyer.act(offering("55"))
    await seller.act(offering("70"))
    await buyer.act(offering("58"))
    late = await Tab.open(two, SELLER, after=2)
    (view,) = late.frames
    assert (view["after"], view["seq"], [item["seq"] for item in view["items"]]) == (2, 3, [3])


async def test_an_after_that_makes_no_sense_does_no_harm(two):
    for after in ("-1", "x", "99", "1e9", "", "9" * 40):
        tab = await Tab.open(two, B1, after=after)
        assert (tab.frames[0]["after"], tab.frames[0]["seq"]) == (0, 0), after
        assert (await tab.ask({"type": "ping"}, "pong"))["type"] == "pong"
        await tab.close()


async def test_a_gap_is_noticed_and_filled(two):
    buyer, seller = await Tab.open(two, B1), await Tab.open(two, SELLER)
    await buyer.act(offering("55"))
    await seller.reach(1)
    shown = Drawing()
    assert not shown.apply(seller.frames[-1] | {"after": 1, "seq": 2})
    view = await seller.ask({"type": "resync", "after": shown.seq}, "view")
    assert shown.apply(view)
    assert [item[0] for item in shown.items] == [1]


async def test_any_resync_gives_a_view_that_can_be_applied(two):
    buyer = await Tab.open(two, B1)
    await buyer.act(offering("55"))
    for after in (-5, 0, 1, 10**6, 10**30):
        view = await buyer.ask({"type": "resync", "after": after}, "view")
        assert 0 <= view["after"] <= view["seq"] == 1


async def test_a_lost_nudge_is_healed(two, monkeypatch):
    monkeypatch.setattr(consumers, "HEAL_S", 0.05)
    seller = await Tab.open(two, SELLER)
    monkeypatch.setattr(services, "_send", lambda group, message: None)
    buyer = await Tab.open(two, B1)
    await buyer.act(offering("55"))
    assert (await seller.until("view"))["seq"] == 1


async def test_a_page_is_drawn_once_for_its_own_move(two, monkeypatch):
    """The nudge that follows says what the page shows already; drawing it again would cost every move twice."""
    drawn = []
    draw = wire.view_frame
    monkeypatch.setattr(wire, "view_frame", lambda view, **how: drawn.append(view.party) or draw(view, **how))
    buyer, seller = await Tab.open(two, B1), await Tab.open(two, SELLER)
    await buyer.settle()
    drawn.clear()
    await buyer.act(offering("55"))
    await seller.until("view")
    await buyer.settle()
    assert sorted(drawn) == [B1, SELLER]
    assert (buyer.drawing.seq, seller.drawing.seq) == (1, 1)


async def test_a_page_looks_again_when_something_other_than_a_move_is_said_to_have_changed(two):
    buyer = await Tab.open(two, B1)
    await buyer.act(offering("55"))
    await buyer.settle()
    seen = len(buyer.frames)
    await database_sync_to_async(
        lambda: Seat.objects.filter(room=two.room, party=SELLER).update(
            kind=SeatKind.AGENT, agent_slug="linear", agent_version="1", agent_name="Linear"
        )
    )()
    await database_sync_to_async(lambda: services.nudge(two.fresh()))()
    await buyer.until("view")
    assert len(buyer.frames) > seen


# --- What a process remembers -----------------------------------------------------------------------


def in_another_process(work):
    """Do something that this process's kept folds know nothing of, as a second web process or a worker would."""
    kept = dict(event_log._kept)
    event_log._kept.clear()
    try:
        return work()
    finally:
        event_log._kept.clear()
        event_log._kept.update(kept)


async def test_moves_of_two_processes_are_one_log_on_every_page(two):
    buyer, seller = await Tab.open(two, B1), await Tab.open(two, SELLER)
    await buyer.act(offering("55"))
    await seller.reach(1)
    elsewhere = database_sync_to_async(in_another_process)
    await elsewhere(lambda: two.act(SELLER, offer(8_000, talk="Eighty.")))
    await buyer.reach(2)
    assert "Eighty." in buyer.drawing.items[-1][2]
    assert (await buyer.act(offering("60"), seen=2))["seq"] == 3
    await elsewhere(lambda: two.act(SELLER, offer(7_500)))
    await seller.reach(4)
    fresh = await Tab.open(two, SELLER, after=0)
    assert (fresh.drawing.items, fresh.drawing.panels) == (seller.drawing.items, seller.drawing.panels)
    assert await stored_kinds(two) == ["offer_made"] * 4


async def test_a_move_repeated_in_another_process_is_still_one(two):
    buyer = await Tab.open(two, B1)
    await database_sync_to_async(in_another_process)(lambda: two.act(B1, offer(5_500), move="m-1"))
    again = await buyer.act(offering("55"), move="m-1")
    assert (again["repeated"], again["seq"]) == (True, 1)
    assert await stored_kinds(two) == ["offer_made"]


async def test_a_process_that_was_killed_with_everything_it_remembered_goes_on_from_the_database(two):
    buyer = await Tab.open(two, B1)
    await buyer.act(offering("55"), move="m-1")
    for forget in (event_log._kept.clear, wire._draw.cache_clear):
        forget()
    again = await Tab.open(two, B1, after=0)
    assert again.drawing.items == buyer.drawing.items
    assert (await again.act(offering("55"), move="m-1"))["repeated"]


@pytest.mark.parametrize("change", ["logged out", "other password", "switched off", "brought along", "erased"])
async def test_a_page_that_has_moved_already_is_believed_no_longer_than_its_session(two, change):
    """Whoever sits there is looked up in full once and then believed while nothing stored about it changes."""

    def owned():
        user = User.objects.create_user("ada", password="correct horse")
        Participant.objects.filter(pk=two.people[B1].pk).update(account=user)
        request = HttpRequest()
        request.session = tab.session
        login(request, user, backend="django.contrib.auth.backends.ModelBackend")
        request.session.save()
        return user

    tab = await Tab.open(two, B1)
    user = await sync_to_async(owned)() if change in ("other password", "switched off") else None
    if user is not None:
        tab = Tab.address(two.room.public_id, tab.session)
        assert await tab.connect()
        await tab.until("view")
    seller = await Tab.open(two, SELLER)
    assert (await tab.act(offering("55")))["type"] == "ack"
    await seller.act(offering("80"))
    await tab.reach(2)

    def happen():
        match change:
            case "logged out":
                tab.session.flush()
            case "other password":
                user.set_password("another horse")
                user.save()
            case "switched off":
                User.objects.filter(pk=user.pk).update(is_active=False)
            case "brought along":
                owner = User.objects.create_user("bea", password="correct horse")
                Participant.objects.filter(pk=two.people[B1].pk).update(account=owner)
            case "erased":
                two.people[B1].delete()

    await sync_to_async(happen)()
    await tab.send({"type": "act", "client_move_id": "late", "action": offering("60")})
    assert await tab.closed() == consumers.CLOSE_STRANGER
    assert tab.frames[-1]["code"] == "not_seated"
    assert await stored_kinds(two) == ["offer_made"] * 2


async def test_words_that_were_hidden_or_erased_are_on_no_page_that_asks_for_them_again(two):
    buyer, seller = await Tab.open(two, B1), await Tab.open(two, SELLER)
    await buyer.act(saying("A word that had better not been said."))
    await seller.act(saying("Another one."))
    await buyer.reach(2)
    staff = await sync_to_async(User.objects.create_user)("staff")
    await sync_to_async(moderation.hide)(room=two.room, n=1, by=staff)
    for party in (B1, SELLER):
        again = await Tab.open(two, party, after=0)
        view = await again.ask({"type": "resync", "after": 0}, "view")
        assert "better not" not in json.dumps(view)
        assert REMOVED in view["items"][0]["html"]
    await sync_to_async(erasure.erase)(participant=two.people[SELLER])
    again = await Tab.open(two, B1, after=0)
    assert "Another one." not in "".join(again.raw)


async def test_a_kept_panel_is_what_would_be_drawn_anew(three, monkeypatch):
    """Panels are kept by all that they show; nothing of one seat, price or moment turns up in another's."""
    pages = {party: await Tab.open(three, party) for party in (SELLER, B1, B2)}
    kept, anew = [], []
    draw = wire._draw

    def both(*what):
        kept.append(draw(*what))
        anew.append(draw.__wrapped__(*what))
        return kept[-1]

    monkeypatch.setattr(wire, "_draw", both)
    for party, price in ((B1, "50"), (B2, "52"), (B1, "50"), (B2, "52")):
        await pages[SELLER].act(offering("90", buyer=int(party[-1])))
        await pages[party].act(offering(price))
        for page in pages.values():
            await page.settle()
    assert kept == anew
    assert len(kept) > len(set(kept))


async def test_the_heartbeat_sees_a_change_that_nobody_was_told_of(two, monkeypatch):
    monkeypatch.setattr(consumers, "HEAL_S", 0.05)
    buyer = await Tab.open(two, B1)

    def replace():
        who = {"kind": SeatKind.AGENT, "agent_slug": "linear", "agent_version": "1", "agent_name": "Linear"}
        Seat.objects.filter(room=two.room, party=SELLER).update(**who)

    await database_sync_to_async(replace)()
    await buyer.until("view")
    assert "Linear" in buyer.drawing.panels["panel-opponent"]


async def test_a_heartbeat_draws_nothing_where_nothing_changed(two, monkeypatch):
    monkeypatch.setattr(consumers, "HEAL_S", 0.02)
    tab = await Tab.open(two, B1)
    drawn = []
    monkeypatch.setattr(wire, "view_frame", lambda view, **how: drawn.append(view.party))
    await asyncio.sleep(0.2)
    await tab.settle()
    assert drawn == []


async def test_a_quiet_room_sends_nothing(two, monkeypatch):
    monkeypatch.setattr(consumers, "HEAL_S", 0.02)
    tab = await Tab.open(two, B1)
    await asyncio.sleep(0.1)
    await tab.settle()
    assert len(tab.frames) == 1


async def test_the_waiting_page_is_told_when_the_other_sits_down():
    game = await database_sync_to_async(lambda: staged(bilateral(), people=(B1, SELLER), start=False))()
    tab = await Tab.open(game, B1)
    assert "/join/" in tab.drawing.panels["panel-waiting"]
    refused = await tab.act(offering("60"))
    assert (refused["type"], refused["code"]) == ("refused", "not_started")

    def join():
        token = game.seat(SELLER).join_token
        services.join_room(room=game.fresh(), token=token, participant=game.people[SELLER])

    await database_sync_to_async(join)()
    await tab.until("view")
    assert tab.drawing.panels["panel-waiting"].strip() == ""
    assert tab.drawing.awaiting == (1,)


# --- Frames that make no sense ----------------------------------------------------------------------


PRICES = {
    "-1": "negative",
    "0": "zero",
    "0.00": "zero",
    "NaN": "not_finite",
    "Infinity": "not_finite",
    "1e99": "exponent",
    "12,50": "ambiguous_comma",
    "🍋": "not_a_number",
    "": "empty",
    "9" * 20: "too_large",
    "1" * 5_000: "too_long",
    "€60": "other_currency",
    "٣٤": "foreign_digits",
    "60; DROP TABLE": "not_a_number",
    "60\0": "not_a_number",
}


async def test_a_price_that_is_none_is_refused_with_a_sentence(two):
    tab = await Tab.open(two, B1)
    for price, code in PRICES.items():
        refused = await tab.act(offering(price), move="m")
        assert (refused["type"], refused["client_move_id"], refused["code"]) == ("refused", "m", code), price
        assert re.search(r"[.:]", refused["sentence"]), price
        assert await stored_kinds(two) == [], price
    assert (await tab.act(offering("60"), move="m"))["type"] == "ack"


AGAINST_THE_RULES = [
    (saying("x" * 20_000), "talk_too_long"),
    (saying(" \n "), "empty_message"),
    (saying("\u0000\u0007"), "empty_message"),
    (offering("60", product=7), "unknown_product"),
    (offering("60", product=-1), "unknown_product"),
    (offering("60", product=10**40), "unknown_product"),
    (offering("60", buyer=2), "unknown_thread"),
    (offering("60", buyer=-1), "unknown_thread"),
    (accepting(5), "unknown_offer"),
    (accepting(-1), "unknown_offer"),
    (rejecting(10**40), "unknown_offer"),
]


async def test_a_move_against_the_rules_is_refused_with_a_sentence(two):
    tab = await Tab.open(two, B1)
    for action, code in AGAINST_THE_RULES:
        refused = await tab.act(action)
        assert (refused["type"], refused["code"]) == ("refused", code), action
        assert refused["sentence"].endswith("."), action
        assert await stored_kinds(two) == [], action
    assert (await tab.act(offering("60")))["type"] == "ack"


MALFORMED = {
    "nothing": "",
    "no JSON": "hello",
    "half JSON": '{"type": "act"',
    "a number": "12",
    "a list": "[1, 2]",
    "null": "null",
    "no type": "{}",
    "unknown type": '{"type": "win"}',
    "type of another kind": '{"type": 3}',
    "unknown field": '{"type": "ping", "now": true}',
    "no identifier": '{"type": "act", "action": {"type": "leave"}}',
    "empty identifier": '{"type": "act", "client_move_id": "", "action": {"type": "leave"}}',
    "long identifier": json.dumps({"type": "act", "client_move_id": "x" * 65, "action": {"type": "leave"}}),
    "identifier with a NUL": '{"type": "act", "client_move_id": "a\\u0000b", "action": {"type": "leave"}}',
    "identifier of another kind": '{"type": "act", "client_move_id": 5, "action": {"type": "leave"}}',
    "no action": '{"type": "act", "client_move_id": "m"}',
    "unknown action": '{"type": "act", "client_move_id": "m", "action": {"type": "steal"}}',
    "a wait of another kind": '{"type": "act", "client_move_id": "m", "action": {"type": "wait", "for_ms": 1.5}}',
    "a thought": '{"type": "act", "client_move_id": "m", "action": {"type": "leave", "thought": "x"}}',
    "a price in cents": '{"type": "act", "client_move_id": "m", "action": {"type": "make_offer", "price_cents": 1}}',
    "a price that is a number": '{"type": "act", "client_move_id": "m", "action": {"type": "make_offer", "price": 60}}',
    "an offer that is true": '{"type": "act", "client_move_id": "m", "action": {"type": "accept_offer", "offer_id": true}}',
    "an offer by name": '{"type": "act", "client_move_id": "m", "action": {"type": "accept_offer", "offer_id": "1"}}',
    "half an offer": '{"type": "act", "client_move_id": "m", "action": {"type": "accept_offer", "offer_id": 1.5}}',
    "talk of another kind": '{"type": "act", "client_move_id": "m", "action": {"type": "say", "talk": ["x"]}}',
    "half an emoji": '{"type": "act", "client_move_id": "m", "action": {"type": "say", "talk": "\\ud83d"}}',
    "infinity": '{"type": "resync", "after": Infinity}',
    "NaN": '{"type": "resync", "after": NaN}',
    "very deep": "[" * 30_000,
    "deep in a field": '{"type": "act", "x": ' + '{"a":' * 10_000,
    "too long": json.dumps({"type": "read_price", "id": 1, "text": "x" * 70_000}),
    "twice the type": '{"type": "ping", "type": "act"}',
}


async def test_where_no_clock_runs_waits_and_looks_at_prices_are_refused_and_cost_nothing(two):
    tab = await Tab.open(two, B1)
    for action, code in (({"type": "wait"}, "wait_not_available"), ({"type": "search_price"}, "search_not_available")):
        answer = await tab.ask({"type": "act", "client_move_id": action["type"], "action": action}, "refused", "ack")
        assert (answer["type"], answer["code"]) == ("refused", code)
    assert await stored_kinds(two) == []


async def test_a_frame_that_cannot_be_read_is_answered_and_changes_nothing(two):
    tab = await Tab.open(two, B1)
    for what, text in MALFORMED.items():
        await tab.send(text)
        error = await tab.until("error", "ack", "refused", "pong", "view")
        assert (error["type"], error.get("code")) == ("error", "bad_frame"), what
        assert re.search(r"[.:]$", error["sentence"]), what
        assert await stored_kinds(two) == [], what
    assert (await tab.ask({"type": "ping"}, "pong"))["type"] == "pong"


async def test_binary_frames_are_answered_in_words(two):
    tab = await Tab.open(two, B1)
    await tab.send(b"\xff\x00")
    error = await tab.until("error")
    assert error["code"] == "not_text"
    assert (await tab.ask({"type": "ping"}, "pong"))["type"] == "pong"


async def test_a_move_after_the_end_is_refused(two):
    buyer, seller = await Tab.open(two, B1), await Tab.open(two, SELLER)
    await buyer.act(LEAVING)
    refused = await seller.act(offering("60"))
    assert (refused["type"], refused["code"]) == ("refused", "negotiation_ended")
    assert (await seller.ask({"type": "ping"}, "pong"))["type"] == "pong"


async def test_a_seller_cannot_write_to_a_buyer_that_is_not_there(three):
    tab = await Tab.open(three, SELLER)
    for buyer in (0, 4, -1, 10**40):
        refused = await tab.act(offering("60", buyer=buyer))
        assert (refused["type"], refused["code"]) == ("refused", "unknown_thread")
    assert await stored_kinds(three) == []


async def test_a_buyer_cannot_reach_into_another_thread(three):
    seller, first, second = [await Tab.open(three, party) for party in (SELLER, B1, B2)]
    await seller.act(offering("60", buyer=1))
    await seller.act(offering("70", buyer=2))
    refused = await first.act(accepting(1, buyer=2))
    assert (refused["type"], refused["code"]) == ("refused", "unknown_thread")
    assert (await second.act(rejecting(1, buyer=1)))["type"] == "ack"
    assert (
        '"offer_rejected","by":"buyer","buyer":2'
        in await database_sync_to_async(lambda: RoomEvent.objects.latest("n").event)()
    )


async def test_a_flood_is_slowed_down_and_does_not_close_the_page(two, monkeypatch):
    monkeypatch.setattr(consumers, "MAX_FRAMES", 5)
    tab = await Tab.open(two, B1)
    for _ in range(5):
        assert (await tab.ask({"type": "ping"}, "pong"))["type"] == "pong"
    for _ in range(20):
        error = await tab.ask({"type": "act", "client_move_id": "m", "action": LEAVING}, "ack", "refused")
        assert error["code"] == "too_many"
    assert await stored_kinds(two) == []


async def test_a_flooder_is_heard_again_after_a_while(two, monkeypatch):
    monkeypatch.setattr(consumers, "MAX_FRAMES", 3)
    monkeypatch.setattr(consumers, "WINDOW_S", 600)
    tab = await Tab.open(two, B1)
    for _ in range(10):
        await tab.ask({"type": "ping"}, "pong")
    assert tab.frames[-1]["code"] == "too_many"
    monkeypatch.setattr(consumers, "WINDOW_S", 0)  # It is over.
    assert (await tab.ask({"type": "ping"}, "pong"))["type"] == "pong"


# --- Words and questions ----------------------------------------------------------------------------


async def test_talk_keeps_its_characters_and_is_shown_as_text(two):
    talk = "1 234,50 € – “naïve” 価格は　いくら？ می‌خواهم 👩‍👩‍👧 <script>alert(1)</script>\nsecond line"
    tab = await Tab.open(two, B1)
    await tab.act(saying(talk))
    html = tab.drawing.items[0][2]
    assert "👩‍👩‍👧" in html
    assert "می‌خواهم" in html
    assert "価格は　いくら" in html
    assert "1 234,50 €" in html
    assert "&lt;script&gt;" in html
    assert "<script" not in html


async def test_control_characters_and_reversed_text_do_not_reach_the_other_side(two):
    tab = await Tab.open(two, B1)
    await tab.act(saying("a\u0000b\u0008c\u202ed\u2066e\ufefff\r\ng"))
    assert "abcdef" in tab.drawing.items[0][2]


async def test_what_a_deal_is_worth_is_told_before_it_is_made(two):
    tab = await Tab.open(two, B1)
    answer = await tab.ask({"type": "preview", "id": 7, "price": "66"}, "preview")
    assert answer == {
        "type": "preview",
        "id": 7,
        "ok": True,
        "surplus_cents": 1_400,
        "sentence": "A deal at $66.00 is worth $14.00 to you.",
    }
    loss = await tab.ask({"type": "preview", "id": 8, "price": "81"}, "preview")
    assert (loss["surplus_cents"], loss["sentence"]) == (-100, "A deal at $81.00 would cost you $1.00.")
    even = await tab.ask({"type": "preview", "id": 9, "price": "80"}, "preview")
    assert even["surplus_cents"] == 0
    assert await stored_kinds(two) == []


async def test_a_preview_of_nonsense_says_why(two):
    tab = await Tab.open(two, B1)
    for price, product in (("x", 0), ("-1", 0), ("66", 5), ("66", -1), ("", 0)):
        answer = await tab.ask({"type": "preview", "id": 1, "price": price, "product": product}, "preview")
        assert (answer["ok"], answer["surplus_cents"]) == (False, None)
        assert re.search(r"[.]$", answer["sentence"])


async def test_a_price_in_talk_is_read_back_and_binds_nothing(two):
    tab = await Tab.open(two, B1)
    answer = await tab.ask({"type": "read_price", "id": 3, "text": "how about 62.50?"}, "price_read")
    assert answer == {
        "type": "price_read",
        "id": 3,
        "price": "62.50",
        "label": "Make this an offer of $62.50?",
    }
    none = await tab.ask({"type": "read_price", "id": 4, "text": "between 50 and 60"}, "price_read")
    assert (none["price"], none["label"]) == (None, None)
    await tab.act(saying("how about 62.50?"))
    assert await stored_kinds(two) == ["message_sent"]


async def test_typing_is_told_to_the_other_side_of_that_thread_alone(three):
    seller, first, second = [await Tab.open(three, party) for party in (SELLER, B1, B2)]
    other_page = await Tab.open(three, SELLER)
    for tab in (seller, first, second, other_page):
        await tab.settle()
    counts = {tab: len(tab.frames) for tab in (seller, first, second, other_page)}
    await seller.send({"type": "typing", "buyer": 2})
    assert await second.until("typing") == {"type": "typing", "thread": 1}
    await first.send({"type": "typing"})
    assert await seller.until("typing") == {"type": "typing", "thread": 1}
    assert await other_page.until("typing") == {"type": "typing", "thread": 1}
    for tab in (seller, first, second, other_page):
        await tab.settle()
    assert {tab: len(tab.frames) - counts[tab] for tab in counts} == {seller: 1, first: 0, second: 1, other_page: 1}


async def test_a_buyer_cannot_type_in_another_buyers_name(three):
    seller, second = await Tab.open(three, SELLER), await Tab.open(three, B2)
    await second.send({"type": "typing", "buyer": 1})
    assert await seller.until("typing") == {"type": "typing", "thread": 2}


@pytest.mark.parametrize("buyer", [10**30, 2**31, -(10**30), -1, 99])
async def test_typing_where_nobody_is_leaves_the_page_open(three, buyer):
    seller, first = await Tab.open(three, SELLER), await Tab.open(three, B1)
    await seller.send({"type": "typing", "buyer": buyer})
    assert await seller.ask({"type": "ping"}, "pong") == {"type": "pong"}
    await first.settle()
    assert "typing" not in {frame["type"] for frame in first.frames}


async def test_a_heartbeat_of_a_page_that_has_gone_ends_quietly(two, monkeypatch):
    """Otherwise every closed laptop leaves a stack trace in the log."""
    monkeypatch.setattr(consumers, "HEAL_S", 0.01)
    page = consumers.RoomConsumer()
    page.seat = await database_sync_to_async(Seat.objects.get)(room=two.room, party=B1)
    page.scope = {"session": await database_sync_to_async(session_of)(two.people[B1])}

    async def gone() -> None:
        raise OSError

    monkeypatch.setattr(page, "_send_view", gone)
    await asyncio.wait_for(page._heal(), timeout=5)


# --- Secrecy by seat --------------------------------------------------------------------------------

SCENARIOS = {
    "bilateral": bilateral(value=7_319, cost=3_187, rounds=8),
    "multi_buyer": multi_buyer(values=(4_861, 7_319, 10_957), cost=3_187, turns=12, openings=(2_641, 2_753, 2_867)),
    "catalogue": catalogue(
        values=((9_241, 6_173), (8_387, 7_549)),
        costs=(5_147, 4_219),
        turns=14,
        openings=(OpeningBid(1, 0, 2_639), OpeningBid(2, 1, 2_871)),
    ),
}


def spelled(cents: int) -> re.Pattern[str]:
    """An amount in any of the ways a frame could carry it."""
    whole = f"{cents // 100:,}".replace(",", ",?")
    return re.compile(rf"(?<![\d.])({whole}\.{cents % 100:02d}|{cents})(?![\d%])")


def leaks(texts: list[str], secrets: set[int]) -> list[tuple[int, str]]:
    """Every secret amount that shows up, with its surroundings."""
    return [
        (cents, text[max(0, found.start() - 60) : found.end() + 30])
        for text in texts
        for cents in secrets
        for found in spelled(cents).finditer(text)
    ]


@dataclass
class Played:
    """A game that is over, as its pages saw it."""

    raw: dict[str, list[str]]
    views: dict[str, list[dict]]
    compared: list[tuple[str, Drawing, Drawing]] = field(default_factory=list)
    """Page that was there all along, and a fresh one, now and then."""
    resynced: list[tuple[str, Drawing, Drawing]] = field(default_factory=list)
    """Page that lost frames and asked again, and a fresh one."""
    said: dict[int, set[str]] = field(default_factory=dict)
    """Words by thread."""
    priced: dict[int, set[int]] = field(default_factory=dict)
    """Prices that were typed, by thread."""


class Match:
    """People on every chair who play at random, each in words and prices that nobody else uses."""

    def __init__(self, game: Game, rng: random.Random) -> None:
        self.game = game
        self.rng = rng
        self.tabs: dict[str, Tab] = {}
        self.played = Played(raw={}, views={})
        self.count = 0

    async def play(self, moves: int = 26) -> Played:
        for party in self.game.people:
            self.tabs[party] = await Tab.open(self.game, party)
        for number in range(moves):
            if not await self.move():
                break
            if number in (2, 9):
                await self.compare()
        else:
            await self.tabs[SELLER].act(LEAVING)
        await self.compare()
        for party, tab in self.tabs.items():
            self.played.raw[party] = list(tab.raw)
            self.played.views[party] = [frame for frame in tab.frames if frame["type"] == "view"]
            await self.lose_frames(party, tab)
        return self.played

    async def move(self) -> bool:
        """One move of somebody; False where nobody may move any more."""
        party, view = await database_sync_to_async(self.someone_who_may)()
        if view is None:
            return False
        thread = self.rng.choice([thread for thread in view.observation.threads if thread.my_move])
        buyer = thread.buyer or int(party.removeprefix("buyer-"))
        where = {"buyer": buyer} if party == SELLER else {}
        theirs = [offer for offer in thread.standing if not offer.mine]
        self.count += 1
        words = f"word{buyer}x{self.count}x"
        roll = self.rng.random()
        if theirs and roll < 0.1:
            action = accepting(theirs[-1].offer_id, talk=words, **where)
        elif theirs and roll < 0.25:
            action = rejecting(theirs[-1].offer_id, talk=words, **where)
        elif roll < 0.4:
            action = saying(words, **where)
        else:
            cents = self.rng.randrange(30, 99) * 100 + self.count * 2 + 1
            self.played.priced.setdefault(buyer, set()).add(cents)
            product = self.rng.choice([i for i, seen in enumerate(view.observation.products) if seen.units_left])
            action = offering(f"{cents / 100:.2f}", product=product, talk=words, **where)
        reply = await self.tabs[party].act(action)
        assert reply["type"] == "ack", reply
        self.played.said.setdefault(buyer, set()).add(words)
        return True

    def someone_who_may(self):
        views = {party: self.game.view(party) for party in self.game.people}
        able = [party for party, view in views.items() if view.observation.to_move]
        party = self.rng.choice(able) if able else ""
        return party, views.get(party)

    async def compare(self) -> None:
        for party, tab in self.tabs.items():
            fresh = await self.fresh(party)
            await tab.reach(fresh.seq, ended=fresh.ended)
            self.played.compared.append((party, copy.deepcopy(tab.drawing), fresh))

    async def fresh(self, party: str) -> Drawing:
        tab = await Tab.open(self.game, party)
        await tab.close()
        return tab.drawing

    async def lose_frames(self, party: str, tab: Tab) -> None:
        shown = Drawing()
        for frame in self.played.views[party]:
            if self.rng.random() < 0.5:
                continue
            if not shown.apply(frame):
                assert shown.apply(await tab.ask({"type": "resync", "after": shown.seq}, "view"))
        shown.apply(await tab.ask({"type": "resync", "after": shown.seq}, "view"))
        self.played.resynced.append((party, shown, await self.fresh(party)))


_played: dict[str, Played] = {}


async def whole_game(family: str) -> Played:
    """A game of a family that people played to its end; played once for all tests that look at it."""
    if family not in _played:
        scenario = SCENARIOS[family]
        people = (SELLER, *(f"buyer-{k}" for k in range(1, scenario.buyers + 1)))
        game = await database_sync_to_async(lambda: staged(scenario, people=people))()
        _played[family] = await Match(game, random.Random(family)).play()
    return _played[family]


every_family = pytest.mark.parametrize("family", SCENARIOS)


@every_family
async def test_no_frame_tells_a_seller_what_the_goods_are_worth_to_a_buyer(family):
    played = await whole_game(family)
    assert leaks(played.raw[SELLER], {value for own in SCENARIOS[family].buyer_values_cents for value in own}) == []


@every_family
async def test_no_frame_tells_a_buyer_the_cost_or_anything_of_another_buyer(family):
    scenario, played = SCENARIOS[family], await whole_game(family)
    values = scenario.buyer_values_cents
    for number in range(1, scenario.buyers + 1):
        others = {other for other in range(1, scenario.buyers + 1) if other != number}
        secrets = {
            *scenario.seller_values_cents,
            *(value for other in others for value in values[other - 1]),
            *(bid.price_cents for bid in scenario.opening_bids if bid.buyer != number),
            *(cents for other in others for cents in played.priced.get(other, ())),
        }
        raw = played.raw[f"buyer-{number}"]
        assert leaks(raw, secrets) == []
        text = "".join(raw)
        assert not [word for other in others for word in played.said.get(other, ()) if word in text]
        assert "buyer-" not in text


@every_family
async def test_everybody_is_told_what_was_said_to_them(family):
    scenario, played = SCENARIOS[family], await whole_game(family)
    for number in range(1, scenario.buyers + 1):
        text = "".join(played.raw[f"buyer-{number}"])
        assert all(word in text for word in played.said.get(number, ()))
        assert all(word in "".join(played.raw[SELLER]) for word in played.said.get(number, ()))


@every_family
async def test_a_buyer_of_several_cannot_count_the_sellers_messages(family):
    played = await whole_game(family)
    told = {party: "messages left" in "".join(raw) for party, raw in played.raw.items()}
    assert told.pop(SELLER) == (family != "bilateral")
    assert not any(told.values())


@every_family
async def test_a_seats_events_are_numbered_without_gaps(family):
    played = await whole_game(family)
    for views in played.views.values():
        assert views[0]["after"] == 0
        assert all(later["after"] <= earlier["seq"] <= later["seq"] for earlier, later in itertools.pairwise(views))
        assert views[-1]["ended"]
    for _party, shown, _fresh in played.compared:
        seqs = [item[0] for item in shown.items]
        assert seqs == sorted(set(seqs))
        assert not seqs or seqs[-1] <= shown.seq


@every_family
async def test_a_page_that_was_there_all_along_shows_what_a_fresh_one_shows(family):
    played = await whole_game(family)
    assert len(played.compared) >= 2 * len(played.raw)
    for party, shown, fresh in played.compared:
        assert shown == fresh, party


@every_family
async def test_a_page_that_lost_frames_and_asks_again_shows_what_a_fresh_one_shows(family):
    played = await whole_game(family)
    for party, shown, fresh in played.resynced:
        assert shown == fresh, party


@pytest.mark.parametrize("seat", [SELLER, B1])
async def test_an_agents_secrets_stay_its_own(seat):
    scenario = SCENARIOS["multi_buyer"]
    game = await database_sync_to_async(lambda: staged(scenario, people=(seat,), agents="zi-c"))()
    tab = await Tab.open(game, seat)
    for _ in range(12):
        await database_sync_to_async(game.let_agents_play)()
        view = await database_sync_to_async(game.view)(seat)
        await tab.reach(view.seq, ended=view.ended)
        if view.ended:
            break
        if tab.drawing.awaiting:
            where = {"buyer": tab.drawing.awaiting[0]} if seat == SELLER else {}
            await tab.act(saying("Go on.", **where))
    assert tab.drawing.seq > 5
    own = scenario.seller_values_cents if seat == SELLER else scenario.buyer_values_cents[0]
    secrets = {*scenario.seller_values_cents, *(v for each in scenario.buyer_values_cents for v in each)}
    assert leaks(tab.raw, secrets - set(own)) == []


async def test_the_search_for_leaks_would_find_one():
    assert leaks(["x $31.87 y"], {3_187})
    assert leaks(['{"cost_cents": 3187}'], {3_187})
    assert leaks(["worth 1,031.87"], {103_187})
    assert not leaks(["x=31.87%", "131.87", "31.877", "2.31.87"], {3_187})


# --- Reading frames ---------------------------------------------------------------------------------


async def test_every_kind_of_frame_is_read_back_as_it_was_written():
    act = wire.decode('{"type":"act","client_move_id":"m","seen":4,"action":{"type":"leave"}}')
    assert act == wire.Act(client_move_id="m", seen=4, action=wire.LeaveWire())
    assert wire.decode('{"type":"typing","buyer":null}') == wire.Typing(buyer=None)
    assert wire.decode('{"type":"resync","after":0}') == wire.Resync(after=0)


async def test_an_agents_seat_has_no_page(two):
    await database_sync_to_async(lambda: Seat.objects.filter(room=two.room, party=B1).update(kind=SeatKind.AGENT))()
    session = await database_sync_to_async(session_of)(two.people[B1])
    assert (await refused_at_the_door(Tab.address(two.room.public_id, session)))["code"] == "not_seated"


async def test_the_opening_bids_are_on_a_fresh_page():
    game = await database_sync_to_async(lambda: staged(SCENARIOS["multi_buyer"], people=(SELLER, B1, B2, B3)))()
    tab = await Tab.open(game, B2)
    assert "$27.53" in tab.drawing.items[0][2]
    assert [item[0] for item in tab.drawing.items] == [1]
    assert tab.drawing.awaiting == ()
    assert Role.BUYER.value in tab.drawing.items[0][2]
