"""Where nobody takes turns: a person writes whenever it likes, and answers come in their own time.

They would be locked out of their own conversation, hurried, or asked to wait for a turn that never comes.
"""

from playwright.sync_api import expect

from tests.browser.conftest import Someone
from tests.browser.people import Player
from tests.browser.test_two_people import join


def test_a_buyer_writes_twice_in_a_row_to_an_agent_and_buys(player: Player) -> None:
    player.sit_down("floor", seat="buyer")
    expect(player.offers().first).to_contain_text("Seller offers")  # The agent opens after a short pause.
    expect(player.status()).to_contain_text("Your move, whenever you like")
    expect(player.status()).to_contain_text("49 moves left for both")
    player.say("That is a lot of money.")
    expect(player.send()).to_be_enabled()  # Nobody has to answer first.
    player.offer("45")
    expect(player.lines().filter(has_text="$45.00")).to_have_count(1)
    expect(player.page.locator("#panel-thread-1")).to_contain_text("Your move")  # The agent has answered.
    seen = player.numbers()
    assert seen == list(range(1, len(seen) + 1))
    player.accept()
    expect(player.result()).to_contain_text("You bought at")
    record = player.record()
    assert record["scenario"]["mechanism"]["type"] == "event_driven"
    times = [entry["at_ms"] for entry in record["events"]]
    assert times == sorted(times)
    assert times[0] >= 500


def test_a_buyer_looks_up_prices_and_waits_and_keeps_what_is_half_written(player: Player) -> None:
    player.sit_down("floor", seat="buyer")
    expect(player.offers().first).to_contain_text("Seller offers")
    talk = player.text("composer-talk")
    talk.fill("I was thinking")
    player.text("search-price").click()
    expect(player.lines().last).to_contain_text("You looked at prices")
    player.text("wait").click()
    expect(player.lines().last).to_contain_text("You waited.")
    expect(talk).to_have_value("I was thinking")
    expect(player.status()).to_contain_text("47 moves left for both")
    player.accept()
    expect(player.result()).to_contain_text("You bought at")
    kinds = [entry["event"]["type"] for entry in player.record()["events"]]
    assert kinds[:3] == ["offer_made", "price_searched", "waited"]


def test_a_seller_opens_and_an_agent_answers_without_being_asked_twice(player: Player) -> None:
    player.sit_down("floor", seat="seller", opponent="threshold")
    expect(player.status()).to_contain_text("Your move, whenever you like")
    player.offer("150")
    expect(player.lines().last).to_contain_text("turned your $150.00 down")
    player.offer("95")
    expect(player.result()).to_contain_text("You sold at $95.00")


def test_two_people_talk_over_one_another_and_lose_nothing(someone: Someone) -> None:
    seller, buyer = someone(), someone()
    seller.sit_down("floor", seat="seller", person=True)
    join(buyer, seller.text("share-link").input_value())
    expect(buyer.status()).to_contain_text("Waiting for the seller")
    expect(buyer.send()).to_be_disabled()
    seller.offer("90")
    seller.say("It is hardly used.")
    buyer.say("I see.")
    seller.say("And it has a bell.")
    buyer.offer("60")
    seller.say("Hm.")
    for player in (seller, buyer):
        expect(player.lines()).to_have_count(6)
        assert player.numbers() == [1, 2, 3, 4, 5, 6]
    seller.accept()
    expect(buyer.result()).to_contain_text("You bought at $60.00")
    expect(seller.result()).to_contain_text("You sold at $60.00")


def test_a_person_leaves_whoever_is_about_to_speak(player: Player) -> None:
    player.sit_down("floor", seat="buyer")
    expect(player.offers().first).to_contain_text("Seller offers")
    player.offer("41")
    player.leave()
    expect(player.result()).to_contain_text("No deal")
