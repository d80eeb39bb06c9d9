"""Two people in two browsers, and everybody else kept out.

They would lose each other, the seat they were promised, or the secret that a negotiation is about.
"""

import re

from playwright.sync_api import expect

from tests.browser.conftest import Someone
from tests.browser.people import ROOM_URL, Player


def money(cents: int) -> str:
    return f"{cents // 100:,}.{cents % 100:02d}"


def join(guest: Player, link: str) -> None:
    guest.page.goto(link)
    guest.text("join").click()
    guest.page.wait_for_url(ROOM_URL)
    guest.consent("private")


def test_two_people_trade_by_a_share_link_and_keep_their_secrets(someone: Someone) -> None:
    seller, buyer, stranger = someone(), someone(), someone()
    seller.sit_down("sealed", seat="seller", person=True)
    expect(seller.status()).to_contain_text("Waiting for somebody to take the other seat")
    expect(seller.send()).to_be_disabled()
    link = seller.text("share-link").input_value()
    join(buyer, link)
    expect(buyer.page.locator(".room__seat")).to_contain_text("You: Buyer against a person")
    expect(seller.text("share-link")).to_have_count(0)
    expect(seller.page.locator(".room__seat")).to_contain_text("You: Seller against a person")
    expect(seller.text("leave")).to_be_visible()
    expect(seller.page.locator("[data-clock-text]")).to_contain_text(":")  # Somebody waits now, so there is a clock.

    # Nobody else gets in, by whatever address.
    for path in ("", "view.json", "result/", "replay/", "record.json"):
        answer = stranger.page.request.get(f"{stranger.site}{seller.room}{path}")
        assert answer.status == 404, path
        assert "There is nothing at this address." in answer.text()
    stranger.page.goto(link)
    expect(stranger.page.get_by_role("alert")).to_have_text("Somebody else has taken this seat.")
    stranger.watch.forgive("409 (Conflict)")

    seller.talk().press_sequentially("Good ev")
    expect(buyer.page.get_by_text("Seller is writing…")).to_be_visible()
    seller.talk().fill("")
    seller.offer("2500", talk="Good evening.")
    expect(buyer.lines()).to_contain_text(["Good evening."])
    buyer.my_move()
    buyer.offer("1950")
    seller.my_move()
    expect(seller.offers().first).to_contain_text("Buyer offers")
    seller.say("I am listening.")
    expect(buyer.lines()).to_contain_text(["", "", "I am listening."])
    buyer.my_move()

    # The secrets so far: in no page and in no frame of the other side.
    pages = {player: player.page.content() + "".join(player.watch.received) for player in (seller, buyer)}
    for player in (seller, buyer):
        assert any("offered $1,950.00" in frame for frame in player.watch.received)
    buyer.accept()
    expect(buyer.result()).to_contain_text("You bought at $2,500.00")
    expect(seller.result()).to_contain_text("You sold at $2,500.00")
    scenario = buyer.record()["scenario"]
    cost, value = scenario["seller_values_cents"][0], scenario["buyer_values_cents"][0][0]
    for player, own, other in ((seller, cost, value), (buyer, value, cost)):
        assert money(own) in pages[player]
        assert money(other) not in pages[player]
        assert not re.search(rf"(?<!\d){other}(?!\d)", pages[player])
        expect(player.result()).to_contain_text(money(other))  # Told at the end.


def test_a_seat_in_the_lobby_can_be_taken_there(someone: Someone) -> None:
    guest, host = someone(), someone()
    guest.open("/lobby/")
    host.sit_down("pair", seat="buyer", person=True)
    row = guest.page.locator(".lobby-row").filter(has_text="Pair")
    expect(row).to_contain_text("Seller's seat")  # The page asks again by itself.
    host.open("/history/")
    expect(host.page.locator(".history-row")).to_contain_text("against an open seat")
    host.open("/lobby/")
    expect(host.page.get_by_role("link", name="Your seat")).to_be_visible()
    host.page.get_by_role("link", name="Your seat").click()
    row.get_by_role("link", name="Sit down").click()
    guest.text("join").click()
    guest.page.wait_for_url(ROOM_URL)
    expect(host.page.get_by_text("Send this link")).to_have_count(0)
    guest.consent("public")
    guest.offer("60")
    host.my_move()
    host.accept()
    expect(guest.result()).to_contain_text("You sold at $60.00")
    guest.open("/lobby/")
    expect(row).to_have_count(0)


def test_an_agent_takes_the_seat_that_nobody_came_for(player: Player) -> None:
    player.sit_down("hasty", seat="buyer", person=True)
    expect(player.page.get_by_text("If nobody comes, an agent takes the seat in")).to_be_visible()
    player.my_move()
    expect(player.lines()).to_have_count(1)
    expect(player.page.locator("#panel-waiting")).to_have_text("")
    expect(player.thread()).to_contain_text("an agent, Hardliner")
