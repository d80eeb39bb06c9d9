"""Whole games in every family, from the market's page to the record. What is lost without them: the product itself.

The markets are those of `tests.browser.world`: the thing is worth $100 to a buyer and costs the seller $40.
"""

import hashlib
import json
from typing import Any

from playwright.sync_api import expect

from tests.browser.people import ROOM_URL, Player


def compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)


def test_a_buyer_sees_what_a_deal_is_worth_before_saying_yes(player: Player) -> None:
    player.sit_down("pair", seat="buyer", opponent="hardliner")
    player.my_move()
    player.price().fill("65")
    expect(player.page.locator("#preview-1")).to_have_text("A deal at $65.00 is worth $35.00 to you.")
    player.offer("65", talk="I would pay 65.")
    expect(player.lines()).to_have_count(3)
    expect(player.lines().nth(1)).to_contain_text("offered $65.00")
    expect(player.lines().nth(1)).to_contain_text("I would pay 65.")
    player.my_move()

    asked = player.offers().first.get_attribute("data-price") or ""
    gain = f"${100 - float(asked.removeprefix('$')):.2f}"
    player.offers().first.locator("[data-accept]").click()
    expect(player.page.locator("[data-confirm]")).to_contain_text(f"A deal at {asked} is worth {gain} to you.")
    expect(player.lines()).to_have_count(3)  # Asking is not accepting.
    player.page.keyboard.press("Escape")
    expect(player.page.locator("[data-confirm]")).to_have_count(0)
    player.accept()

    expect(player.result()).to_contain_text(f"You bought at {asked}")
    expect(player.result()).to_contain_text("of the $60.00 there was to share")
    expect(player.text("send")).to_be_hidden()


def test_a_seller_learns_at_the_end_what_was_possible(player: Player) -> None:
    player.sit_down("pair", seat="seller", opponent="threshold")
    player.offer("120")
    expect(player.page.get_by_text("Buyer turned your $120.00 down.")).to_be_visible()
    player.offer("70", talk="Seventy, then.")

    result = player.result()
    expect(result).to_contain_text("You sold at $70.00 and took 50\u00a0% of the $60.00 there was to share.")
    marks = result.locator(".price-line figcaption")
    for mark in ("your cost: $40.00", "buyer's value: $100.00", "deal: $70.00"):
        expect(marks).to_contain_text(mark)
    figures = dict(
        zip(
            result.locator(".figure dt").all_inner_texts(),
            result.locator(".figure__value").all_inner_texts(),
            strict=True,
        )
    )
    assert figures == {
        "Your gain": "$30.00",
        "Best with full information": "$60.00",
        "Best knowing only what was public": "$60.00",
    }


def test_several_buyers_can_be_played_off_against_one_another(player: Player) -> None:
    player.sit_down("crowd", seat="seller", opponent="threshold")
    for number, name in ((1, "Buyer A"), (2, "Buyer B"), (3, "Buyer C")):
        expect(player.thread(number)).to_contain_text(name)
        expect(player.offers(number)).to_have_count(1)  # The market's opening bid.
    expect(player.status()).to_contain_text("8 of 8 messages left")
    player.offer("130", number=1)
    player.offer("125", number=3)  # Without waiting for the first answer.
    expect(player.lines(1)).to_contain_text(["", "offered $130.00", "turned your $130.00 down"])
    expect(player.lines(3)).to_contain_text(["", "offered $125.00", "turned your $125.00 down"])
    expect(player.lines(2)).to_have_count(1)
    expect(player.status()).to_contain_text("6 of 8 messages left")
    player.offer("80", number=2)

    result = player.result()
    expect(result).to_contain_text("You sold at $80.00 and took 67\u00a0% of the $60.00 there was to share.")
    rows = result.locator("table").first.locator("tbody tr")
    expect(rows).to_have_count(3)
    expect(rows.nth(0)).to_contain_text("No deal")
    expect(rows.nth(1)).to_contain_text("Bought at $80.00")
    expect(rows.nth(1)).to_contain_text("$40.00")
    expect(rows.nth(0)).to_contain_text("$100.00")  # Their value, told at last.


def test_one_of_several_buyers_can_buy(player: Player) -> None:
    player.sit_down("crowd", seat="buyer", opponent="falling-ladder")
    player.my_move()
    expect(player.status()).not_to_contain_text("messages left")  # What the seller has left is the seller's secret.
    player.offer("45")
    player.my_move()  # The seller has been with the others and is back.
    asked = player.offers().first.get_attribute("data-price") or ""
    player.accept()
    expect(player.result()).to_contain_text(f"You bought at {asked}")


def test_a_catalogue_is_sold_product_by_product(player: Player) -> None:
    player.sit_down("shelf", seat="seller", opponent="threshold")
    expect(player.page.locator("[data-product-card]")).to_have_count(3)
    player.offer("90", number=1, product="0")
    expect(player.thread(1)).to_contain_text("Bought at $90.00")
    expect(player.thread(2)).to_contain_text("Item A is sold out.")
    player.offer("90", number=2, product="2")
    player.offer("60", number=3, product="1")

    result = player.result()
    expect(result).to_contain_text("You sold 3 products for $240.00")
    expect(result.get_by_text("Together you reached 100\u00a0% of the best total gain of $180.00.")).to_be_visible()
    matching = result.locator("table").nth(1).locator("tbody tr")
    expect(matching).to_have_count(3)
    expect(matching.nth(2)).to_contain_text("Buyer B")


def test_walking_away_ends_without_a_deal_and_says_what_was_lost(player: Player) -> None:
    player.sit_down("pair", seat="buyer", opponent="hardliner")
    player.offer("41")
    expect(player.lines()).to_have_count(3)
    player.leave()
    expect(player.result()).to_contain_text("No deal. There was $60.00 to share and it went to nobody.")


def test_walking_away_is_right_where_no_price_suits_both(player: Player) -> None:
    player.sit_down("apart", seat="seller")
    player.offer("45")
    expect(player.page.get_by_text("Buyer turned your $45.00 down.")).to_be_visible()
    player.leave()
    expect(player.result()).to_contain_text("There was no price both could accept; walking away was right.")


def test_what_is_left_of_a_game_afterwards(player: Player) -> None:
    """Result on reload, replay, record, rematch and history: a played game can be looked at and taken further."""
    page = player.page
    player.sit_down("pair", seat="seller", opponent="threshold", consent="public")
    player.offer("120", talk="Make me happy.")
    expect(player.lines()).to_have_count(2)
    player.offer("75")
    expect(player.result()).to_be_visible()
    room = player.room
    page.reload()
    expect(player.result()).to_contain_text("You sold at $75.00")

    # The record
    with page.expect_download() as download:
        player.text("record").click()
    record = json.loads(download.value.path().read_text("utf-8"))
    assert download.value.suggested_filename.endswith(".json")
    assert record["market"] == "pair"
    assert record["consent_scope"] == "public"
    happened = [entry["event"]["type"] for entry in record["events"]]
    assert happened == [
        "offer_made",
        "offer_rejected",
        "offer_made",
        "offer_accepted",
        "product_sold_out",
        "negotiation_ended",
    ]
    assert record["outcome"]["deals"][0]["price_cents"] == 7500
    assert {seat["party"]: seat["surplus_cents"] for seat in record["seats"]} == {"seller": 3500, "buyer-1": 2500}
    assert any(text["talk"] == "Make me happy." for text in record["texts"])
    chairs = sorted(
        [seat["party"], seat["kind"], seat["agent"] or "", seat["agent_version"] or ""] for seat in record["seats"]
    )
    parts = [record["protocol_version"], compact(record["scenario"]), compact(chairs), compact(record["events"])]
    assert hashlib.sha256("\n".join(parts).encode()).hexdigest() == record["record_sha256"]

    # The replay
    player.text("replay").click()
    steps = page.locator("[data-step]")
    shown = page.locator("[data-step][data-current]")
    count = steps.count()
    assert count == len(happened) - 1  # Where there is one thing only, nobody need be told that it is sold out.
    expect(shown).to_contain_text(f"Step 1 of {count}")
    player.text("replay-next").click()
    expect(shown).to_contain_text(f"Step 2 of {count}")
    for key, step in (("ArrowRight", 3), ("End", count), ("ArrowLeft", count - 1), ("Home", 1)):
        page.keyboard.press(key)
        expect(shown).to_contain_text(f"Step {step} of {count}")
    expect(shown.locator("figcaption")).to_contain_text("buyer's value: $100.00")

    # The rematch
    player.open(room)
    player.text("rematch").click()
    page.wait_for_url(lambda url: bool(ROOM_URL.search(url)) and room not in url)
    expect(page.locator(".room__seat")).to_contain_text("You: Buyer")
    expect(player.talk()).to_be_enabled()  # The choice of consent was taken over.
    player.leave()
    expect(player.result()).to_be_visible()

    # The history
    player.open("/history/")
    rows = page.locator(".history-row")
    expect(rows).to_have_count(2)
    row = page.get_by_test_id(f"game-{room.split('/')[2]}")
    expect(row).to_contain_text("Sold at $75.00")
    expect(row).to_contain_text("58\u00a0%")
    row.locator("summary").click()
    row.get_by_test_id("consent-private").click()
    expect(row.locator("summary")).to_contain_text("Kept for nobody")
    page.reload()
    expect(row.locator("summary")).to_contain_text("Kept for nobody")
    player.open(room)
    assert player.record()["consent_scope"] == "private"
