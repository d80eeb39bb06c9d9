"""What the composer, the keyboard and the page's own switches promise.

A player would bind themselves without meaning to, be told nothing about a refused price, or be shut out without a mouse.
"""

import re

import pytest
from playwright.sync_api import Locator, expect

from tests.browser.conftest import Someone
from tests.browser.people import ROOM_URL, Player, Wire

HIDDEN_ON_DEMAND = """
Object.defineProperty(Document.prototype, "hidden", { get: () => window.looksAway === true });
window.tones = 0;
window.AudioContext = class {
  state = "running"; currentTime = 0; destination = {};
  resume() {}
  createOscillator() {
    window.tones += 1;
    return { frequency: {}, connect: (next) => next, start() {}, stop() {} };
  }
  createGain() {
    const gain = { setValueAtTime() {}, linearRampToValueAtTime() {}, exponentialRampToValueAtTime() {} };
    return { gain, connect: (next) => next };
  }
};
"""
LOOK_AWAY = "(away) => { window.looksAway = away; document.dispatchEvent(new Event('visibilitychange')); }"


def start(player: Player) -> None:
    """A game against a seller that has just asked its price."""
    player.sit_down("pair", seat="buyer", opponent="hardliner")
    player.my_move()
    expect(player.lines()).to_have_count(1)


def test_a_price_in_talk_is_read_back_and_binds_nothing(player: Player) -> None:
    start(player)
    player.talk().fill("How about 60?")
    proposal = player.text("proposal-offer")
    expect(proposal).to_have_text("Make this an offer of $60.00?")
    player.talk().press("Enter")
    expect(player.text("proposal-talk")).to_be_visible()  # Held back, and asked.
    expect(player.lines()).to_have_count(1)
    player.text("proposal-talk").click()
    expect(player.lines()).to_have_count(3)
    expect(player.lines().nth(1)).to_contain_text("How about 60?")
    expect(player.lines().nth(1)).not_to_contain_text("offered")
    expect(player.offers().filter(has_text="Your offer stands")).to_have_count(0)

    player.my_move()
    player.talk().fill("Then 62 dollars")
    proposal.click()
    expect(player.price()).to_have_value("62.00")
    expect(player.lines()).to_have_count(3)  # Nothing is sent until it is sent.
    player.send().click()
    expect(player.lines()).to_have_count(5)
    expect(player.lines().nth(3)).to_contain_text("offered $62.00")


def test_what_is_no_price_is_refused_in_words_and_kept(player: Player) -> None:
    start(player)
    for typed, sentence in (
        ("-1", "A price cannot be negative."),
        ("0", "A price must be at least 0.01."),
        ("NaN", "A price must be a number such as 120.50."),
        ("1e99", "Write the price out, such as 1200 and not 1.2e3."),
        ("12,50", "That comma could mean two things: write 12.50 or 1,250."),
        ("\N{MONEY BAG}", "Type only a number, such as 120 or 120.50."),
    ):
        player.talk().fill("My last word")
        player.price().fill(typed)
        player.my_move()
        player.send().click()
        expect(player.refusal()).to_have_text(sentence)
        expect(player.price()).to_have_value(typed)
        expect(player.talk()).to_have_value("My last word")
    player.price().fill("")
    long = "blah " * 4_000
    player.talk().fill(long)
    player.my_move()
    player.send().click()
    expect(player.refusal()).to_have_text("A message may be at most 2,000 characters long.")
    assert len(player.talk().input_value()) == len(long)
    player.talk().fill(" ")
    player.send().click()
    expect(player.refusal()).to_have_text("Write a message or name a price.")
    assert player.numbers() == [1]


def test_what_a_price_is_worth_is_not_said_after_it_was_sent(player: Player) -> None:
    wire = Wire(player.page)
    start(player)
    wire.delays = lambda frame: frame["type"] == "preview"
    player.price().fill("60")
    player.page.wait_for_timeout(300)  # The page asks when the typing has paused.
    player.send().click()
    expect(player.lines()).to_have_count(3)
    assert wire.deliver() == 1
    player.talk().fill("So?")  # The page has heard it by now.
    expect(player.page.locator("#preview-1")).to_have_text("")
    assert player.page.locator("[data-preview-mark]").count() == 0


def test_markup_in_talk_stays_text(player: Player) -> None:
    start(player)
    player.say("<img src=x onerror=alert('x')> <b>bold</b> \N{SMILING FACE WITH SMILING EYES}")
    expect(player.lines().nth(1)).to_contain_text("<img src=x onerror=alert('x')> <b>bold</b>")
    assert player.page.locator("#log-1 img, #log-1 b").count() == 0


def test_leaving_asks_first(player: Player) -> None:
    start(player)
    player.text("leave").click()
    expect(player.text("confirm-leave")).to_be_focused()
    player.page.keyboard.press("Escape")
    expect(player.text("confirm-leave")).to_be_hidden()
    player.text("leave").click()
    player.page.get_by_role("button", name="Stay").click()
    expect(player.text("confirm-leave")).to_be_hidden()
    assert player.numbers() == [1]
    player.leave()
    expect(player.result()).to_be_visible()
    expect(player.text("leave")).to_be_hidden()


def test_nothing_moves_before_somebody_said_who_may_keep_the_game(player: Player) -> None:
    player.sit_down("pair", seat="buyer", opponent="hardliner", consent="")
    expect(player.offers()).to_have_count(1)
    expect(player.talk()).to_be_disabled()
    expect(player.note()).to_have_text("Choose for whom the game is kept, then it is your move.")
    player.offers().locator("[data-accept]").click()
    expect(player.refusal()).to_have_text("Choose for whom the game is kept, then it is your move.")
    expect(player.text("consent-public")).to_be_focused()
    expect(player.page.locator("[data-confirm]")).to_have_count(0)
    player.consent("private")
    expect(player.page.get_by_text("Kept for nobody")).to_be_visible()
    expect(player.talk()).to_be_focused()
    player.accept()
    expect(player.result()).to_contain_text("You bought at")
    assert player.record()["consent_scope"] == "private"


def tab_to(player: Player, target: Locator) -> None:
    """Press Tab until `target` has the focus."""
    for _press in range(60):
        if target.evaluate("(element) => element === document.activeElement"):
            return
        player.page.keyboard.press("Tab")
    raise AssertionError(f"60 tabs do not lead to {target}")


def test_a_game_for_two_needs_no_mouse(player: Player) -> None:
    page, keys = player.page, player.page.keyboard
    player.open("/")
    tab_to(player, player.text("play-now"))
    keys.press("Enter")
    page.wait_for_url(ROOM_URL)
    expect(player.connection()).to_have_text("Live")
    tab_to(player, player.text("consent-research"))
    keys.press("Enter")
    expect(player.talk()).to_be_focused()
    player.my_move()
    keys.press("Alt+KeyR")
    expect(player.lines()).to_contain_text(["", re.compile("You turned .* down")])
    player.my_move()
    keys.press("Alt+KeyO")
    expect(player.price()).to_be_focused()
    keys.type("1")
    keys.press("Enter")
    expect(player.lines()).to_contain_text(["", "", "", "offered $1.00"])
    player.my_move()
    keys.press("Alt+KeyA")
    expect(player.text("confirm-accept")).to_be_focused()
    page.wait_for_timeout(300)
    keys.press("Enter")
    expect(player.result()).to_contain_text("You bought at")
    expect(player.text("result-panel")).to_be_focused()


def test_several_conversations_need_no_mouse(player: Player) -> None:
    page, keys = player.page, player.page.keyboard
    player.open("/markets/crowd/")
    tab_to(player, player.text("seat-buyer"))
    keys.press("ArrowDown")
    expect(player.text("seat-seller")).to_be_checked()
    tab_to(player, player.text("play"))
    keys.press("Enter")
    page.wait_for_url(ROOM_URL)
    tab_to(player, player.text("consent-research"))
    keys.press("Enter")
    keys.press("Alt+Digit3")
    expect(player.talk(3)).to_be_focused()
    keys.type("Anything better, C")
    keys.press("Enter")
    expect(player.lines(3)).to_contain_text(["", "Anything better, C"])
    keys.press("Alt+Digit2")
    expect(player.talk(2)).to_be_focused()
    keys.press("Alt+KeyA")
    expect(player.thread(2).get_by_test_id("confirm-accept")).to_be_focused()
    expect(player.thread(2).locator("[data-confirm]")).to_contain_text("would cost you")
    page.wait_for_timeout(300)
    keys.press("Enter")
    expect(player.result()).to_contain_text("You sold at")
    assert player.record()["outcome"]["deals"][0]["buyer"] == 2


def test_the_title_and_a_tone_call_back_whoever_looks_away(player: Player) -> None:
    page = player.page
    page.add_init_script(HIDDEN_ON_DEMAND)
    player.sit_down("pair", seat="seller", opponent="threshold")
    sound = page.get_by_role("button", name="Sound when it is your turn")
    expect(sound).to_have_attribute("aria-pressed", "true")
    title = page.title()
    page.evaluate(LOOK_AWAY, True)
    expect(page).to_have_title(f"(1) Your turn · {title}")
    page.evaluate(LOOK_AWAY, False)
    expect(page).to_have_title(title)
    player.offer("120")
    expect(player.lines()).to_have_count(2)
    player.my_move()
    heard = page.evaluate("() => window.tones")
    assert heard > 0

    sound.click()
    page.reload()
    expect(sound).to_have_attribute("aria-pressed", "false")  # Remembered.
    player.offer("110")
    expect(player.lines()).to_have_count(4)
    player.my_move()
    assert page.evaluate("() => window.tones") == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_colours_can_be_chosen_and_stay(someone: Someone, scheme: str) -> None:
    player = someone(color_scheme=scheme)
    player.open("/")
    background = "(element) => getComputedStyle(element).backgroundColor"
    body = player.page.locator("body")
    words = {"light": "Light colours", "dark": "Dark colours"}
    other = "dark" if scheme == "light" else "light"
    button = player.page.locator("[data-theme-button]")
    before = body.evaluate(background)
    expect(button).to_have_text(words[other])  # What pressing it does.
    button.click()
    after = body.evaluate(background)
    assert after != before
    player.open("/markets/")
    assert body.evaluate(background) == after
    expect(button).to_have_text(words[scheme])
