"""Pages of rooms: whole for whoever sits there, not there for anybody else, and no page breaks its own policy."""

import json
import re
from datetime import timedelta
from urllib.parse import urlsplit

import pytest
from django.utils import timezone
from django.utils.html import escape

from markets import services
from markets.engine.protocol import SELLER
from markets.engine.scenarios import OpeningBid
from markets.models import Episode, Participant, Room, RoomEvent, RoomStatus, Seat, SeatKind
from markets.presentation import CONSENT_VERSION
from markets.services import RoomError
from tests.markets import rooms
from tests.markets.engine.factories import B1, B2, LEAVE, accept, bilateral, catalogue, multi_buyer, offer, say
from tests.markets.rooms import Game, staged
from tests.markets.tabs import browser, faults

pytestmark = pytest.mark.django_db

ROOM_PAGES = ("", "view.json", "result/", "replay/", "record.json")
HTMX = {"HX-Request": "true"}


def at(game: Game, path: str = "") -> str:
    return f"/rooms/{game.room.public_id}/{path}"


def page(client, address: str, *, status: int = 200, **how) -> str:
    """A page without faults."""
    response = client.get(address, **how)
    assert response.status_code == status, (address, response.status_code)
    html = response.content.decode()
    assert faults(html) == [], address
    return html


def post_frame(client, game: Game, frame: dict | str | bytes):
    body = frame if isinstance(frame, str | bytes) else json.dumps(frame)
    return client.post(at(game, "act/"), body, content_type="application/json")


def act(action: dict, move: str = "m-1") -> dict:
    return {"type": "act", "client_move_id": move, "action": action}


@pytest.fixture
def live() -> Game:
    """Two people in the middle of it."""
    game = staged(bilateral(), people=(B1, SELLER))
    game.act(B1, offer(6_000, talk="Sixty & <b>not more</b>."))
    game.act(SELLER, offer(7_500, talk="It cost me more than that."))
    return game


@pytest.fixture
def over(live) -> Game:
    """They agreed on $75."""
    live.act(B1, accept(2))
    return live


# --- Who may look -----------------------------------------------------------------------------------


def test_a_strangers_room_does_not_exist(live):
    for client in (browser(), browser(rooms.person())):
        for path in (*ROOM_PAGES, "consent/", "act/", "rematch/"):
            post = path in ("consent/", "act/", "rematch/")
            response = client.post(at(live, path)) if post else client.get(at(live, path))
            assert response.status_code == 404, path
    assert Room.objects.count() == 1
    assert live.fresh().version == 2


def test_a_stranger_cannot_look_at_a_finished_room_either(over):
    client = browser(rooms.person())
    for path in ROOM_PAGES:
        assert client.get(at(over, path)).status_code == 404, path


def test_a_stranger_cannot_choose_for_somebody_else(over):
    response = browser(rooms.person()).post(at(over, "consent/"), {"scope": "private", "version": CONSENT_VERSION})
    assert response.status_code == 404
    assert over.seat(B1).consent_scope == "public"


@pytest.mark.parametrize(
    "public_id", ["unknown", "x" * 300, "%00", "a%00b", "..%2f..%2fetc", "🍋", "a b", "<script>", "1;--"]
)
def test_an_address_that_leads_nowhere_says_so(public_id):
    client = browser(rooms.person())
    for path in ROOM_PAGES:
        assert client.get(f"/rooms/{public_id}/{path}").status_code == 404, path
    for path in ("consent/", "act/", "rematch/", "join/abc/"):
        assert client.post(f"/rooms/{public_id}/{path}").status_code == 404, path


def test_looking_does_not_make_anybody_a_participant(live):
    before = Participant.objects.count()
    client = browser()
    for address in ("/markets/", "/lobby/", "/history/", at(live), at(live, f"join/{live.seat(B1).join_token}/")):
        client.get(address)
    assert Participant.objects.count() == before


def test_before_the_end_there_is_no_result_and_no_record(live):
    client = browser(live.people[B1])
    assert client.get(at(live, "result/")).status_code == 404
    assert client.get(at(live, "record.json")).status_code == 404
    response = client.get(at(live, "replay/"))
    assert (response.status_code, response.url) == (302, at(live))


def test_pages_that_change_something_do_not_listen_to_get(live):
    client = browser(live.people[B1])
    for path in ("act/", "consent/", "rematch/"):
        assert client.get(at(live, path)).status_code == 405, path
    for path in ROOM_PAGES:
        assert client.post(at(live, path)).status_code == 405, path


# --- The room ---------------------------------------------------------------------------------------

STAGES = {
    "bilateral": bilateral(),
    "multi_buyer": multi_buyer(openings=(2_700, 2_800, 2_900)),
    "catalogue": catalogue(openings=(OpeningBid(1, 0, 2_500), OpeningBid(2, 1, 2_600))),
}


@pytest.mark.parametrize("seat", [B1, SELLER])
@pytest.mark.parametrize("family", STAGES)
def test_every_page_of_a_game_is_whole_from_the_first_moment_to_the_last(family, seat):
    game = staged(STAGES[family], people=(seat,), agents="conceder")
    client = browser(game.people[seat])
    page(client, at(game))
    for number in range(40):
        game.let_agents_play()
        view = game.view(seat)
        if view.ended:
            break
        thread = next(thread for thread in view.observation.threads if thread.my_move)
        to = thread.buyer if seat == SELLER else 0
        left = next(index for index, seen in enumerate(view.observation.products) if seen.units_left)
        move = say(f"Line {number}", to=to) if number % 3 else offer(4_321 + number, to=to, product=left)
        game.act(seat, move)
        if number == 1:
            html = page(client, at(game))
            assert "Line 1" in html
            assert "$43.21" in html
    else:
        game.act(seat, LEAVE)
    assert game.fresh().status == RoomStatus.ENDED
    for path in ("", "replay/"):
        assert "undefined" not in page(client, at(game, path))
    assert faults(client.get(at(game, "result/")).content.decode()) == []
    record = client.get(at(game, "record.json")).json()
    assert record["scenario"]["family"] == family


def test_the_page_of_a_buyer_shows_the_own_value_and_not_the_cost(live):
    html = page(browser(live.people[B1]), at(live))
    assert "You value this at $80.00" in html
    assert "$50" not in html
    assert "5000" not in html
    assert "It cost me more than that." in html


def test_the_page_of_a_seller_shows_the_cost_and_not_the_value(live):
    html = page(browser(live.people[SELLER]), at(live))
    assert "This costs you $50.00" in html
    assert "$80" not in html
    assert "8000" not in html


def test_talk_is_text_and_not_html(live):
    html = page(browser(live.people[SELLER]), at(live))
    assert escape("Sixty & <b>not more</b>.") in html
    assert "<b>not more" not in html


def test_what_is_private_is_kept_in_no_cache(over):
    client = browser(over.people[B1])
    for address in (*(at(over, path) for path in ROOM_PAGES), "/history/"):
        assert "no-store" in client.get(address).headers.get("Cache-Control", ""), address


def test_at_the_end_both_values_are_shown(over):
    for party in (B1, SELLER):
        html = page(browser(over.people[party]), at(over))
        assert "$50.00" in html
        assert "$80.00" in html
        assert "$75.00" in html


def test_a_waiting_room_shows_the_link_to_share(django_assert_max_num_queries):
    game = staged(bilateral(), people=(B1, SELLER), start=False)
    html = page(browser(game.people[B1]), at(game))
    assert f"http://testserver/rooms/{game.room.public_id}/join/{game.seat(SELLER).join_token}/" in html
    assert game.seat(B1).join_token not in html


def test_a_live_room_gives_no_link_away(live):
    for party in (B1, SELLER):
        html = page(browser(live.people[party]), at(live))
        assert not any(seat.join_token in html for seat in Seat.objects.all())


def expire(game: Game) -> None:
    due = next(seat for seat in game.room.seats.order_by("deadline_at") if seat.deadline_at)
    services.sweep(due.deadline_at)


ENDS = {
    "impasse": (bilateral(), lambda game: game.act(SELLER, LEAVE), "went to nobody"),
    "no deal possible": (
        bilateral(value=4_000, cost=6_000),
        lambda game: game.act(B1, LEAVE),
        "walking away was right",
    ),
    "abandoned": (bilateral(), expire, "The time is up."),
    "several, abandoned by the seller": (multi_buyer(values=(4_800, 7_200)), expire, "went to nobody"),
    "several, left": (catalogue(), lambda game: game.act(SELLER, LEAVE), "went to nobody"),
}


@pytest.mark.parametrize("end", ENDS)
def test_an_end_without_a_deal_is_told_to_everybody(end):
    scenario, finish, sentence = ENDS[end]
    people = [SELLER, *(f"buyer-{k}" for k in range(1, scenario.buyers + 1))]
    game = staged(scenario, people=people)
    finish(game)
    for party in people:
        client = browser(game.people[party])
        assert sentence in page(client, at(game)), party
        page(client, at(game, "replay/"))
        assert client.get(at(game, "record.json")).json()["outcome"]["end_reason"]


def test_a_game_with_somebody_who_was_erased_can_still_be_looked_at(over):
    over.people[SELLER].delete()
    client = browser(over.people[B1])
    for address in (at(over), at(over, "replay/"), "/history/"):
        page(client, address)
    assert client.get(at(over, "record.json")).status_code == 200


def test_the_smallest_and_the_largest_price_fit_on_the_page():
    game = staged(bilateral(), people=(B1, SELLER))
    game.act(B1, offer(1))
    game.act(SELLER, offer(10_000_000_000))
    for party in (B1, SELLER):
        html = page(browser(game.people[party]), at(game))
        assert "$0.01" in html
        assert "$100,000,000.00" in html
    game.act(B1, accept(2))
    assert "lost $99,999,920.00" in page(browser(game.people[B1]), at(game))


def test_a_dozen_buyers_fit_on_the_page():
    game = staged(multi_buyer(values=(9_000,) * 12, turns=24), people=(SELLER,), agents="threshold")
    html = page(browser(game.people[SELLER]), at(game))
    assert "Buyer L" in html
    assert html.count('data-testid="thread-') == 12


# --- Without a socket -------------------------------------------------------------------------------


def test_the_view_is_there_by_polling(live):
    client = browser(live.people[B1])
    frame = client.get(at(live, "view.json")).json()
    assert (frame["type"], frame["after"], frame["seq"], frame["my_turn"]) == ("view", 0, 2, True)
    assert [item["seq"] for item in client.get(at(live, "view.json?after=1")).json()["items"]] == [2]


@pytest.mark.parametrize("after", ["x", "-1", "", "1e9", "9" * 30, "²", "٣", "99"])
def test_polling_from_nowhere_does_no_harm(live, after):
    frame = browser(live.people[B1]).get(at(live, "view.json"), {"after": after}).json()
    assert 0 <= frame["after"] <= frame["seq"] == 2


def test_a_move_can_be_posted_and_repeated(live):
    client = browser(live.people[B1])
    first = post_frame(client, live, act({"type": "accept_offer", "offer_id": 2})).json()
    again = post_frame(client, live, act({"type": "accept_offer", "offer_id": 2})).json()
    assert (first["type"], first["repeated"], again["type"], again["repeated"]) == ("ack", False, "ack", True)
    assert Episode.objects.count() == 1


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (act({"type": "make_offer", "price": "12,50"}), "ambiguous_comma"),
        (act({"type": "say", "talk": "x" * 20_000}), "talk_too_long"),
        (act({"type": "accept_offer", "offer_id": 1}), "own_offer"),
        ({"type": "win"}, "bad_frame"),
        ("", "bad_frame"),
        ("{", "bad_frame"),
        (b"\xff\xfe", "bad_frame"),
        ("[" * 50_000, "bad_frame"),
        ("x" * 70_000, "bad_frame"),
    ],
    ids=range(9),
)
def test_a_bad_post_is_answered_with_a_sentence(live, body, code):
    response = post_frame(browser(live.people[B1]), live, body)
    assert response.status_code == 200
    answer = response.json()
    assert (answer["type"] in ("refused", "error"), answer["code"]) == (True, code)
    assert len(answer["sentence"]) > 10
    assert live.fresh().version == 2


def test_questions_can_be_posted(live):
    client = browser(live.people[B1])
    assert post_frame(client, live, {"type": "preview", "id": 1, "price": "70"}).json()["surplus_cents"] == 1_000
    assert post_frame(client, live, {"type": "ping"}).json() == {"type": "pong"}
    assert post_frame(client, live, {"type": "resync", "after": 1}).json()["items"][0]["seq"] == 2


# --- Consent ----------------------------------------------------------------------------------------


def test_the_choice_is_stored_with_its_wording_and_shown(live):
    client = browser(live.people[B1])
    response = client.post(at(live, "consent/"), {"scope": "research", "version": CONSENT_VERSION}, headers=HTMX)
    assert response.status_code == 200
    html = response.content.decode()
    assert 'data-consent="research"' in html
    assert faults(html) == []
    seat = live.seat(B1)
    assert (seat.consent_scope, seat.consent_version) == ("research", CONSENT_VERSION)
    assert seat.consent_at is not None


def test_without_htmx_the_choice_leads_back_to_the_room(live):
    response = browser(live.people[B1]).post(at(live, "consent/"), {"scope": "private", "version": CONSENT_VERSION})
    assert (response.status_code, response.url) == (302, at(live))


def test_a_choice_about_an_older_wording_is_not_taken_for_this_one(live):
    response = browser(live.people[B1]).post(at(live, "consent/"), {"scope": "private", "version": "2020-01"})
    assert response.status_code == 400
    assert "wording has changed" in response.content.decode()
    assert live.seat(B1).consent_scope == "public"


@pytest.mark.parametrize("scope", ["", "everybody", "PUBLIC", "\0"])
def test_a_choice_that_does_not_exist_is_refused(live, scope):
    response = browser(live.people[B1]).post(at(live, "consent/"), {"scope": scope, "version": CONSENT_VERSION})
    assert response.status_code == 400
    assert response.content.decode().endswith(".")
    assert live.seat(B1).consent_scope == "public"


def test_a_choice_changed_from_the_history_reaches_the_record(over):
    client = browser(over.people[B1])
    html = page(client, "/history/")
    assert at(over, "consent/") in html
    client.post(at(over, "consent/"), {"scope": "private", "version": CONSENT_VERSION}, headers=HTMX)
    assert over.episode.consent_scope == "private"
    assert client.get(at(over, "record.json")).json()["consent_scope"] == "private"


# --- Share links and lobby --------------------------------------------------------------------------


@pytest.fixture
def waiting() -> Game:
    """A buyer waits for a person to sell."""
    return staged(bilateral(), people=(B1, SELLER), start=False)


def link(game: Game, party: str = SELLER) -> str:
    return at(game, f"join/{game.seat(party).join_token}/")


def test_a_share_link_tells_nothing_private_and_lets_one_in(waiting):
    guest = browser()
    html = page(guest, link(waiting))
    assert "Take the seat" in html
    assert "$80" not in html
    assert "$50" not in html
    response = guest.post(link(waiting))
    assert (response.status_code, response.url) == (302, at(waiting))
    assert "This costs you $50.00" in page(guest, at(waiting))
    assert waiting.fresh().status == RoomStatus.LIVE


@pytest.mark.parametrize("method", ["put", "patch", "delete"])
def test_a_link_knows_looking_and_taking_and_nothing_else(waiting, method):
    assert getattr(browser(), method)(link(waiting)).status_code == 405
    assert waiting.seat(SELLER).kind == SeatKind.OPEN


def test_a_link_is_not_kept_by_the_browser(waiting):
    """Going back to it would offer a seat that somebody took meanwhile."""
    assert "no-store" in browser().get(link(waiting)).headers["Cache-Control"]


def test_looking_at_a_link_takes_no_seat(waiting):
    browser().get(link(waiting))
    assert waiting.seat(SELLER).kind == SeatKind.OPEN


def test_a_link_that_was_used_says_so(waiting):
    browser().post(link(waiting))
    late = browser()
    for response in (late.get(link(waiting)), late.post(link(waiting))):
        assert response.status_code == 409
        assert "Somebody else has taken this seat." in response.content.decode()
    assert page(late, link(waiting), status=409)


def test_ones_own_link_leads_back_into_the_room(waiting):
    guest = browser()
    guest.post(link(waiting))
    response = guest.get(link(waiting))
    assert (response.status_code, response.url) == (302, at(waiting))


def test_the_host_cannot_take_the_other_seat_too(waiting):
    host = browser(waiting.people[B1])
    for response in (host.get(link(waiting)), host.post(link(waiting))):
        assert response.status_code == 409
        assert "You already sit in this room" in response.content.decode()
    assert waiting.seat(SELLER).kind == SeatKind.OPEN


def test_a_link_to_a_finished_room_says_so(over):
    html = page(browser(), link(over), status=409)
    assert "This negotiation is over." in html


@pytest.mark.parametrize("token", ["wrong", "x" * 200, "%00", "🍋"])
def test_a_wrong_token_leads_nowhere(waiting, token):
    client = browser()
    assert client.get(at(waiting, f"join/{token}/")).status_code == 404
    assert client.post(at(waiting, f"join/{token}/")).status_code == 404
    assert waiting.seat(SELLER).kind == SeatKind.OPEN


def test_a_host_gives_a_room_up_that_nobody_has_joined(waiting):
    host, address = browser(waiting.people[B1]), link(waiting)
    assert at(waiting, "cancel/") in page(host, at(waiting))
    assert host.get(at(waiting, "cancel/")).status_code == 405
    response = host.post(at(waiting, "cancel/"), follow=True)
    assert "Your seat is given up" in response.content.decode()
    assert faults(response.content.decode()) == []
    assert not Room.objects.exists()
    page(browser(), address, status=404)
    page(host, at(waiting), status=404)
    assert services.fill_open_seats(waiting.room) is False


def test_nobody_but_the_host_gives_a_room_up(waiting):
    for client in (browser(), browser(rooms.person())):
        assert client.post(at(waiting, "cancel/")).status_code == 404
    assert Room.objects.count() == 1


def test_a_room_that_others_sit_in_is_not_given_up(live):
    seat = live.seat(B1)
    response = browser(live.people[B1]).post(at(live, "cancel/"), follow=True)
    assert "leave it instead" in response.content.decode()
    assert Room.objects.filter(pk=live.room.pk).exists()
    Room.objects.filter(pk=live.room.pk).update(status=RoomStatus.WAITING)
    with pytest.raises(RoomError, match="Somebody else has sat down"):
        services.cancel_room(seat=seat)


def test_the_lobby_is_never_kept_by_a_browser(waiting):
    assert "no-store" in browser().get("/lobby/").headers["Cache-Control"]


def test_the_lobby_lists_who_waits_and_for_how_long(waiting):
    Room.objects.filter(pk=waiting.room.pk).update(
        created_at=timezone.now() - timedelta(seconds=40), fills_at=timezone.now() + timedelta(seconds=80)
    )
    html = page(browser(), "/lobby/")
    assert link(waiting) in html
    assert waiting.people[B1].pseudonym in html
    assert re.search(r"waiting for 4\d seconds", html)
    assert re.search(r"takes it in (7\d|80) seconds", html)


def test_the_lobby_refreshes_its_rows_alone(waiting):
    html = browser().get("/lobby/", headers=HTMX).content.decode()
    assert link(waiting) in html
    assert "<html" not in html
    assert faults(html) == []


def test_ones_own_seat_in_the_lobby_is_no_seat_to_take(waiting):
    mine, others = page(browser(waiting.people[B1]), "/lobby/"), page(browser(), "/lobby/")
    assert link(waiting) in others
    assert link(waiting) not in mine


def test_the_lobby_lists_no_room_that_has_begun_or_ended(live):
    html = page(browser(), "/lobby/")
    assert live.room.public_id not in html


# --- History ----------------------------------------------------------------------------------------


def test_somebody_new_has_an_empty_history():
    assert "You have not negotiated here yet." in page(browser(), "/history/")


def test_the_history_has_ones_own_games_and_nobody_elses(over):
    other = staged(bilateral(), people=(B1,))
    html = page(browser(over.people[B1]), "/history/")
    assert over.people[B1].pseudonym in html
    assert "Bought at $75.00" in html
    assert at(over, "replay/") in html
    assert other.room.public_id not in html
    assert "Sold at $75.00" in page(browser(over.people[SELLER]), "/history/")


@pytest.mark.parametrize("family", STAGES)
@pytest.mark.parametrize("seat", [B1, SELLER])
def test_the_history_shows_games_of_every_kind_running_and_over(family, seat):
    game = staged(STAGES[family], people=(seat,))
    client = browser(game.people[seat])
    assert "Still going" in page(client, "/history/")
    game.act(seat, LEAVE)
    game.let_agents_play()
    html = page(client, "/history/")
    assert ("No deal" in html) == (game.fresh().status == RoomStatus.ENDED)


def test_a_long_history_comes_in_pages():
    person = rooms.person()
    for _ in range(23):
        game = staged(bilateral(), people=(B1,))
        Seat.objects.filter(room=game.room, party=B1).update(participant=person)
    client = browser(person)
    assert page(client, "/history/").count('/consent/" hx-post') == 20
    assert page(client, "/history/?page=2").count('/consent/" hx-post') == 3
    for nonsense in ("x", "-1", "999", "\0"):
        assert client.get("/history/", {"page": nonsense}).status_code == 200


# --- Markets ----------------------------------------------------------------------------------------


@pytest.fixture
def markets() -> None:
    rooms.market("bilateral", slug="lamps", name="Old lamps", summary="A lamp each.")
    rooms.market("multi_buyer", slug="boats", name="Boats", summary="One boat for three.")
    rooms.market("catalogue", slug="fair", name="The fair", summary="Many things.")
    rooms.market("bilateral", slug="hidden", name="Hidden market", listed=False)


def shown(html: str) -> set[str]:
    return {name for name in ("Old lamps", "Boats", "The fair", "Hidden market") if name in html}


@pytest.mark.parametrize(
    ("query", "names"),
    [
        ({}, {"Old lamps", "Boats", "The fair"}),
        ({"family": "bilateral"}, {"Old lamps"}),
        ({"family": "catalogue"}, {"The fair"}),
        ({"family": "nonsense"}, {"Old lamps", "Boats", "The fair"}),
        ({"q": "BOAT three"}, {"Boats"}),
        ({"q": "nothing like it"}, set()),
        ({"q": "\0<script>"}, set()),
        ({"role": "seller", "sort": "name"}, {"Old lamps", "Boats", "The fair"}),
        ({"sort": "newest", "role": "x"}, {"Old lamps", "Boats", "The fair"}),
        ({"q": "x" * 5_000}, set()),
    ],
    ids=lambda value: f"{sorted(value)}"[:60],
)
def test_markets_can_be_filtered_with_and_without_htmx(markets, query, names):
    client = browser()
    assert shown(page(client, "/markets/", data=query)) == names
    rows = client.get("/markets/", query, headers=HTMX).content.decode()
    assert shown(rows) == names
    assert "<html" not in rows


def test_going_back_to_the_list_gets_the_whole_page(markets):
    response = browser().get("/markets/", headers=HTMX | {"HX-History-Restore-Request": "true"})
    assert "<html" in response.content.decode()


def test_markets_come_in_the_order_that_was_asked_for(markets, over):
    def order(sort: str) -> list[str]:
        html = page(browser(), "/markets/", data={"sort": sort})
        names = ("Old lamps", "Boats", "The fair", over.room.market.name)
        return sorted(names, key=html.index)

    assert order("name") == sorted(["Old lamps", "Boats", "The fair", over.room.market.name], key=str.casefold)
    assert order("newest")[0] == over.room.market.name
    assert order("played")[0] == over.room.market.name


# --- The record -------------------------------------------------------------------------------------


def test_the_record_has_everything_of_a_game_between_two(over):
    for party in (B1, SELLER):
        response = browser(over.people[party]).get(at(over, "record.json"))
        assert response.headers["Content-Type"] == "application/json"
        assert over.room.public_id in response.headers["Content-Disposition"]
        record = response.json()
        assert record["record_sha256"] == over.episode.record_sha256
        assert record["scenario"]["seller_values_cents"] == [5_000]
        assert record["scenario"]["buyer_values_cents"] == [[8_000]]
        assert [event["n"] for event in record["events"]] == list(range(1, over.fresh().version + 1))
        assert record["texts"][0] == {"n": 1, "party": B1, "talk": "Sixty & <b>not more</b>."}
        assert record["outcome"]["welfare_cents"] == 3_000
        assert {seat["party"]: seat["surplus_cents"] for seat in record["seats"]} == {B1: 500, SELLER: 2_500}


def test_the_record_names_nobody(over):
    text = browser(over.people[B1]).get(at(over, "record.json")).content.decode()
    assert not any(participant.pseudonym in text for participant in over.people.values())
    assert "thought" not in text
    assert "participant" not in text


def market_day() -> Game:
    """Three people buy from a fourth; the first leaves, the second buys, the third is never asked."""
    game = staged(multi_buyer(values=(4_861, 7_319, 10_957), cost=3_187), people=(SELLER, B1, B2, "buyer-3"))
    game.act(SELLER, offer(9_113, to=1, talk="Ninety-one for you, first."))
    game.act(B1, offer(3_571, talk="Thirty-five."))
    game.act(SELLER, offer(6_427, to=2, talk="Sixty-four for you, second."))
    game.act(B1, LEAVE)
    game.act(B2, accept(1))
    return game


def test_a_buyer_among_people_takes_home_its_own_thread_and_not_theirs():
    game = market_day()
    for party, own, others in (
        (B1, {"4861", "9113", "3571", "Thirty-five"}, {"7319", "10957", "6427", "Sixty-four"}),
        (B2, {"7319", "6427", "Sixty-four"}, {"4861", "10957", "9113", "3571", "Thirty-five", "Ninety-one"}),
    ):
        response = browser(game.people[party]).get(at(game, "record.json"))
        text, record = response.content.decode(), response.json()
        assert {word for word in own if word not in text} == set()
        assert {word for word in others if word in text} == set()
        assert record["scenario"]["seller_values_cents"] == [3_187]
        assert "seed" not in record["scenario"]
        assert "record_sha256" not in record
        assert [seat["party"] for seat in record["seats"]] == [party]
        assert [event["n"] for event in record["events"]] == list(range(1, len(record["events"]) + 1))
        assert game.seat(party).party == record["seat"]


def test_the_seller_who_spoke_with_everybody_takes_home_everything():
    game = market_day()
    record = browser(game.people[SELLER]).get(at(game, "record.json")).json()
    assert record["scenario"]["buyer_values_cents"] == [[4_861], [7_319], [10_957]]
    assert len(record["events"]) == game.fresh().version
    assert len(record["texts"]) == 3


def test_no_page_of_a_buyer_shows_what_the_other_people_wanted():
    game = market_day()
    client = browser(game.people[B1])
    for path in ("", "result/", "replay/", "view.json"):
        html = client.get(at(game, path)).content.decode()
        for secret in ("73.19", "109.57", "64.27", "Sixty-four"):
            assert secret not in html, (path, secret)
        assert "48.61" in html


def test_no_page_of_a_buyer_of_several_goods_shows_what_the_other_people_wanted():
    game = staged(catalogue(values=((9_241, 6_173), (8_387, 7_549)), costs=(5_147, 4_219)), people=(SELLER, B1, B2))
    game.act(SELLER, offer(7_001, to=1))
    game.act(B1, accept(1))
    game.act(SELLER, offer(6_337, to=2, product=1))
    game.act(B2, accept(1))
    client = browser(game.people[B1])
    for path in ("", "result/", "replay/", "record.json"):
        html = client.get(at(game, path)).content.decode()
        for cents in (8_387, 7_549, 6_337, 8_387 - 5_147, 7_549 - 4_219, 9_241 - 5_147 + 7_549 - 4_219):
            assert f"{cents / 100:.2f}" not in html, (path, cents)
            assert str(cents) not in html, (path, cents)


def test_beside_agents_a_buyer_takes_home_everything_but_the_words_of_others():
    game = staged(multi_buyer(), people=(B1,), agents="conceder")
    for _ in range(20):
        game.let_agents_play()
        if game.fresh().status == RoomStatus.ENDED:
            break
        game.act(B1, say("Hm."))
    record = browser(game.people[B1]).get(at(game, "record.json")).json()
    assert len(record["events"]) == game.fresh().version
    heard = {event.n for event in game.view(B1).events}
    assert record["texts"]
    assert {text["n"] for text in record["texts"]} <= heard


# --- Policy -----------------------------------------------------------------------------------------


def test_a_form_without_its_token_changes_nothing(live):
    client = browser(live.people[B1], enforce_csrf_checks=True)
    for path in ("act/", "consent/", "rematch/"):
        assert client.post(at(live, path)).status_code == 403, path
    assert live.fresh().version == 2
    assert browser(enforce_csrf_checks=True).post(link(live)).status_code == 403


def test_the_token_of_the_page_opens_the_form(live):
    client = browser(live.people[B1], enforce_csrf_checks=True)
    html = page(client, at(live))
    (token,) = set(re.findall(r'name="csrfmiddlewaretoken" value="(\w+)"', html))
    response = client.post(
        at(live, "act/"),
        json.dumps(act({"type": "leave"})),
        content_type="application/json",
        headers={"X-CSRFToken": token},
    )
    assert response.json()["type"] == "ack"


def test_every_page_forbids_scripts_and_frames_of_others(over):
    client = browser(over.people[B1])
    for address in (
        at(over),
        at(over, "replay/"),
        at(over, "result/"),
        "/markets/",
        "/lobby/",
        "/history/",
        "/nowhere",
    ):
        headers = client.get(address).headers
        policy = dict(
            part.strip().split(" ", 1) for part in headers["Content-Security-Policy"].split(";") if " " in part.strip()
        )
        assert policy["script-src"] == "'self'", address
        assert policy["style-src"] == "'self'", address
        assert policy["default-src"] == "'self'", address
        assert policy["frame-ancestors"] == "'none'", address
        assert headers["X-Content-Type-Options"] == "nosniff"
        assert headers["Referrer-Policy"] == "same-origin"
        assert headers["X-Frame-Options"] == "DENY"


def test_the_session_cookie_is_out_of_reach_of_scripts_and_other_sites():
    rooms.market("bilateral", slug="demo")
    client = browser()
    client.post("/markets/demo/play/", {"seat": "buyer"})
    cookie = client.cookies["sessionid"]
    assert cookie["httponly"]
    assert cookie["samesite"] == "Lax"


def test_the_link_to_share_is_on_the_host_that_was_asked(waiting):
    response = browser(waiting.people[B1]).get(at(waiting), headers={"host": "localhost:8123"})
    shared = re.search(r'id="share-link"[^>]*value="([^"]+)"', response.content.decode())[1]
    assert urlsplit(shared).netloc == "localhost:8123"


def test_opening_a_page_again_and_again_writes_no_event(live):
    client = browser(live.people[B1])
    for _ in range(3):
        client.get(at(live))
        client.get(at(live, "view.json"))
    assert RoomEvent.objects.count() == 2


def test_the_clock_of_the_page_is_the_servers(live):
    frame = browser(live.people[B1]).get(at(live, "view.json")).json()
    deadline = live.seat(B1).deadline_at
    assert frame["deadline_at"] == round(deadline.timestamp() * 1000)
    assert frame["deadline_at"] > frame["server_time"]
    assert services.sweep(deadline) == 1
