"""A researcher holds a tournament on the running site and watches it to its result."""

from playwright.sync_api import expect

from tests.browser import world
from tests.browser.people import Player
from tests.browser.test_every_page import look_at


def test_a_tournament_is_held_watched_and_read(player: Player) -> None:
    player.sign_in(world.RESEARCHER)
    player.open("/tournaments/")
    player.text("new-tournament").click()
    page = player.page
    page.get_by_label("Name", exact=True).fill("browser-cup")
    page.get_by_label("Market").select_option("demo-bilateral")
    page.get_by_label("Scenarios").fill("40")
    page.locator("input[value=linear]").check()
    look_at(player)
    player.text("hold").click()
    expect(player.text("problem")).to_contain_text("at least 2 agents")
    player.watch.forgive("400 (Bad Request)")
    page.locator("input[value=boulware]").check()
    player.text("hold").click()
    expect(page.locator("h1")).to_have_text("browser-cup")
    # The worker of the site plays; the page reloads itself when there is a result.
    expect(page.get_by_role("heading", name="Who keeps most").first).to_be_visible(timeout=60_000)
    expect(page.locator("#tournament-meetings .heatmaplayer")).to_be_visible()
    expect(player.text("progress")).to_have_count(0)
    look_at(player)


def test_what_agents_were_compared_in_is_fit_for_everybody(player: Player) -> None:
    for path in ("/tournaments/", "/suites/"):
        player.open(path)
        expect(player.page.locator("h1")).to_be_visible()
        look_at(player)
