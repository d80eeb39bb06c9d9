"""A researcher finds transcripts, links to one turn, notes something on it, and reads two side by side on a phone."""

import pytest
from playwright.sync_api import Page, expect

from tests.browser import world
from tests.browser.people import Player
from tests.browser.test_every_page import look_at
from tests.lab import RunningLab


@pytest.fixture(scope="module")
def games(lab: RunningLab) -> None:
    """A few stored negotiations."""
    for market, seller in (("demo-bilateral", "conceder"), ("demo-multi-buyer", "falling-ladder")):
        who = ("--market", market, "--seller", seller, "--buyers", "boulware")
        lab.manage("simulate", *who, "--episodes", "3", "--seed", "1", "--store", "--json")


def drawn(page: Page, plots: int) -> None:
    expect(page.locator(".chart .main-svg").first).to_be_visible()
    assert page.locator("[data-chart]").count() == plots


def test_a_researcher_finds_links_notes_and_compares(player: Player, games: None) -> None:
    page = player.page
    player.sign_in(world.RESEARCHER)
    player.open("/transcripts/")
    page.get_by_text("Filters and order").click()
    look_at(player)
    page.get_by_label("Market", exact=True).select_option("demo-bilateral")
    page.get_by_label("Agent, or person").fill("conceder")
    page.get_by_role("button", name="Find").last.click()
    page.wait_for_url("**agent=conceder**")
    expect(page.get_by_label("Agent, or person")).to_have_value("conceder")
    expect(page.locator(".found__row").first).to_contain_text("Conceder")

    page.locator(".found__title a").first.click()
    drawn(page, 1)
    page.locator(".price-path__table tbody th a").first.click()
    first = page.locator(".turn").first
    expect(first).to_be_in_viewport()
    assert first.evaluate("element => element.matches(':target') && element === document.activeElement")
    look_at(player)

    first.get_by_role("link", name="Note").click()
    expect(page.get_by_label("Turn", exact=True)).to_have_value("1")
    page.get_by_label("Tag", exact=True).fill("Bold start")
    page.get_by_label("Note", exact=True).fill("As far from the limit as it can be.")
    page.get_by_test_id("keep-note").click()
    expect(page.locator("#turn-1 .staff-note")).to_contain_text("bold-start")
    player.open("/transcripts/?tag=bold-start")
    expect(page.get_by_test_id("count")).to_have_text("1 game")

    page.get_by_role("link", name="Compare").click()
    page.get_by_role("link", name="Start again").click()
    player.open("/transcripts/?market=demo-bilateral")
    page.get_by_role("link", name="Compare").first.click()
    page.get_by_role("link", name="Read beside it").first.click()
    expect(page.get_by_role("heading", level=1)).to_have_text("Side by side")
    drawn(page, 2)
    look_at(player)
    left, right = (page.locator(".compared__one").nth(place) for place in (0, 1))
    wide = left.bounding_box(), right.bounding_box()
    page.set_viewport_size({"width": 390, "height": 900})
    narrow = left.bounding_box(), right.bounding_box()
    assert None not in (*wide, *narrow)
    assert wide[0]["y"] == wide[1]["y"]  # type: ignore[index]
    assert narrow[1]["y"] > narrow[0]["y"] + narrow[0]["height"]  # type: ignore[index]


def test_tokens_and_their_documentation_are_fit_for_everybody(player: Player) -> None:
    page = player.page
    player.open("/api/docs/")
    look_at(player)
    player.sign_in(world.RESEARCHER)
    player.open("/account/tokens/")
    page.get_by_label("What will use it").fill("a notebook")
    page.get_by_test_id("make-token").click()
    secret = page.get_by_test_id("token").input_value()
    look_at(player)
    answer = page.request.get(
        f"{page.url.split('/account')[0]}/api/v1/markets", headers={"Authorization": f"Bearer {secret}"}
    )
    assert answer.status == 200
    assert answer.json()["items"]
