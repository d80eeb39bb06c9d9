"""A player who changes browsers would lose the games, a researcher the market that was only looked at."""

from playwright.sync_api import expect

from tests.browser import world
from tests.browser.conftest import Someone
from tests.browser.people import ROOM_URL, Player


def play(player: Player) -> None:
    player.sit_down("pair", seat="buyer", opponent="hardliner")
    player.leave()
    expect(player.result()).to_be_visible()


def games(player: Player) -> int:
    player.open("/history/")
    return player.page.locator(".history-row").count()


def test_games_follow_a_player_from_browser_to_browser(someone: Someone) -> None:
    first, second, stranger = someone(), someone(), someone()
    play(first)
    first.sign_up("follows-me")
    assert games(first) == 1
    play(second)
    second.sign_in("follows-me")
    expect(second.page.locator("h1")).to_have_text("Are these games yours?")
    second.text("bring").click()
    expect(second.page.locator(".notice")).to_have_text("1 game came along.")
    assert games(first) == games(second) == 2
    first.open("/account/")
    first.text("sign-out").click()
    expect(first.text("account-link")).to_have_text("Sign in")
    assert games(first) == games(stranger) == 0
    assert games(second) == 2


def test_a_room_goes_on_after_signing_up_in_the_middle_of_it(someone: Someone) -> None:
    player = someone()
    player.sit_down("pair", seat="buyer", opponent="hardliner")
    player.offer("45")
    room = player.room
    player.sign_up("in-the-middle")
    player.open(room)
    expect(player.connection()).to_have_text("Live")
    player.offer("46")
    expect(player.page.locator("#log-1")).to_contain_text("$46.00")


def test_a_player_who_is_erased_leaves_the_other_side_its_record(someone: Someone) -> None:
    host, guest = someone(), someone()
    host.sit_down("pair", seat="seller", person=True)
    guest.page.goto(host.text("share-link").input_value())
    guest.text("join").click()
    guest.page.wait_for_url(ROOM_URL)
    guest.consent("public")
    host.offer("80", talk="My number is secret-word.")
    guest.accept()
    expect(guest.result()).to_be_visible()
    host.sign_up("erase-me")
    host.open("/account/delete/")
    host.page.get_by_label("Your password").fill("three green lamps")
    host.text("erase").click()
    expect(host.page.locator(".notice")).to_contain_text("You are erased")
    guest.page.reload()
    expect(guest.result()).to_contain_text("You bought at $80.00")
    assert "secret-word" not in guest.page.content()


def test_a_market_is_composed_looked_at_saved_changed_and_retired(someone: Someone) -> None:
    player = someone()
    player.sign_in(world.RESEARCHER)
    page = player.page
    player.open("/builder/new/")
    page.get_by_label("Name").fill("Five at the door")
    page.get_by_label("Family").select_option("multi_buyer")
    page.get_by_label("Buyers", exact=True).fill("5")
    expect(page.locator("[name=buyer_agent]")).to_have_count(5)
    page.locator("[name=values_kind][value=bands]").check()
    expect(player.text("preview")).to_contain_text("Value E")
    expect(player.text("preview")).to_contain_text("in one of these bands")
    expect(page.locator("[data-chart] .main-svg").first).to_be_visible()
    # Plotly's own style sheet holds its drawings on top of one another: without it they stand in a column.
    tops = page.evaluate(
        "() => [...document.querySelectorAll('[data-chart] .main-svg')].map((svg) => svg.getBoundingClientRect().top)"
    )
    assert len(set(tops)) == 1
    player.text("save-market").click()
    page.wait_for_url("**/builder/markets/five-at-the-door/1/")
    page.get_by_role("link", name="A new version").click()
    page.get_by_label("Rounds or messages").fill("12")
    page.get_by_label("In your words").fill("More time.")
    player.text("save-market").click()
    page.wait_for_url("**/builder/markets/five-at-the-door/2/")
    player.open("/builder/markets/five-at-the-door/")
    expect(player.text("version-2")).to_contain_text("More time.")
    expect(player.text("version-2")).to_contain_text("8 messages to spend → 12 messages to spend")
    visitor = someone()
    visitor.sit_down("five-at-the-door", seat="seller")
    player.text("retire-market").click()
    expect(page.locator(".page-head")).to_contain_text("nobody opens it anew")
    visitor.offer("500", number=1)  # What is going on goes on.
    visitor.open("/markets/five-at-the-door/")
    expect(visitor.text("retired")).to_be_visible()


def test_a_host_gives_a_seat_up(someone: Someone) -> None:
    host, guest = someone(), someone()
    host.sit_down("pair", seat="buyer", person=True)
    link = host.text("share-link").input_value()
    host.text("cancel-room").click()
    expect(host.page.locator(".notice")).to_contain_text("Your seat is given up")
    guest.page.goto(link)
    expect(guest.page.locator("h1")).to_have_text("There is nothing at this address.")
    guest.watch.forgive("404 (Not Found)")
