"""A newcomer's first game, from the home page to the result: hints come when there is something to say, and go."""

from playwright.sync_api import expect

from tests.browser.people import ROOM_URL, Player
from tests.browser.test_every_page import look_at


def test_a_newcomer_is_led_through_a_first_game_and_a_word_explains_itself(player: Player) -> None:
    player.open("/")
    player.text("first-game").click()
    player.page.wait_for_url(ROOM_URL)
    hint = player.text("guide-text")
    expect(hint).to_contain_text("for whom this game may be kept")
    player.consent("research")
    expect(hint).to_contain_text("Your card is your secret")
    term = player.page.locator("[data-guide] a.term")
    term.press("Enter")
    note = player.page.get_by_role("dialog", name="Reservation value")
    expect(note).to_be_focused()
    player.page.keyboard.press("Escape")
    expect(term).to_be_focused()
    look_at(player)
    player.my_move()
    player.price().fill("9999")
    expect(hint).to_contain_text("you would lose money")
    player.price().fill("")
    expect(hint).to_contain_text("Your card is your secret")
    player.text("guide-hide").click()
    expect(hint).to_be_empty()
    player.page.reload()
    expect(player.text("guide-back")).to_be_visible()
    player.text("guide-back").click()
    player.offer("20")
    expect(hint).to_contain_text("Rounds are counted")  # What was for the first move is not said after it.
    player.leave()
    expect(hint).to_contain_text("both secrets are shown")
    player.open("/")
    expect(player.text("first-game")).to_have_count(0)
