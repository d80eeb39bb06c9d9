"""What happens to a game when something breaks: the page, the network, a process of the server.

A player would lose a move, make it twice, or look at a table that is no longer true.
"""

from playwright.sync_api import expect

from tests.browser.people import Frame, Player, Wire
from tests.lab import RunningLab, wait_for

NETWORK = ("WebSocket connection", "ERR_INTERNET_DISCONNECTED", "Failed to load resource")
"""What a browser itself says on the console about a network that is not there."""


def start(player: Player) -> None:
    """A game against a seller that has just asked its price."""
    player.sit_down("pair", seat="buyer", opponent="hardliner")
    player.my_move()
    expect(player.lines()).to_have_count(1)


def test_a_reload_in_the_middle_changes_nothing(player: Player) -> None:
    start(player)
    player.offer("45")
    expect(player.lines()).to_have_count(3)
    player.my_move()
    said = player.lines().all_inner_texts()
    player.talk().fill("What about")
    player.page.reload()
    expect(player.connection()).to_have_text("Live")
    assert player.lines().all_inner_texts() == said
    assert player.numbers() == [1, 2, 3]
    expect(player.talk()).to_have_value("What about")
    player.offer("50")
    expect(player.lines()).to_have_count(5)
    assert player.numbers() == [1, 2, 3, 4, 5]


def test_a_second_tab_follows(player: Player) -> None:
    start(player)
    other = Player(player.page.context.new_page(), site=player.site, watch=player.watch)
    other.open(player.room)
    expect(other.connection()).to_have_text("Live")
    player.offer("45", talk="Hello from the first tab")
    for tab in (player, other):
        expect(tab.lines()).to_have_count(3)
        expect(tab.lines().nth(1)).to_contain_text("Hello from the first tab")
    other.leave()
    expect(player.result()).to_be_visible()
    expect(other.result()).to_be_visible()


def test_a_second_tab_that_lags_behind_cannot_move_twice(player: Player) -> None:
    start(player)
    other = Player(player.page.context.new_page(), site=player.site, watch=player.watch)
    late = Wire(other.page)
    other.open(player.room)
    expect(other.connection()).to_have_text("Live")
    late.loses = lambda frame: frame["type"] == "view"
    player.offer("45")
    expect(player.lines()).to_have_count(3)
    player.my_move()
    expect(other.lines()).to_have_count(1)
    other.price().fill("46")
    other.send().click()
    expect(other.refusal()).to_have_text("Something happened while you were writing. Look at it, then send again.")
    expect(other.price()).to_have_value("46")
    expect(player.lines()).to_have_count(3)


def test_a_double_click_is_one_move(player: Player) -> None:
    start(player)
    player.price().fill("45")
    player.send().dblclick()
    expect(player.lines()).to_have_count(3)
    player.my_move()
    assert player.numbers() == [1, 2, 3]
    assert sum('"type":"act"' in frame for frame in player.watch.sent) == 1


def test_a_double_click_on_accept_is_not_a_yes(player: Player) -> None:
    start(player)
    player.offers().locator("[data-accept]").dblclick()
    player.page.keyboard.press("Enter")
    expect(player.text("confirm-accept")).to_be_focused()
    expect(player.lines()).to_have_count(1)


def test_a_move_made_without_a_network_arrives_once(player: Player) -> None:
    start(player)
    player.page.context.set_offline(True)
    expect(player.connection()).to_contain_text("Reconnecting")
    player.price().fill("45")
    player.send().click()
    expect(player.note()).to_contain_text("Kept; it is sent when the connection is back.")
    expect(player.lines()).to_have_count(1)
    player.page.context.set_offline(False)
    expect(player.connection()).to_have_text("Live")
    expect(player.lines()).to_have_count(3)
    player.my_move()
    assert player.numbers() == [1, 2, 3]
    player.watch.forgive(*NETWORK)


def test_a_move_kept_through_a_reload_is_still_sent(player: Player) -> None:
    wire = Wire(player.page)
    start(player)
    wire.cut()
    player.price().fill("45")
    player.send().click()
    expect(player.note()).to_contain_text("Kept")
    player.page.reload()
    wire.mend()
    expect(player.lines()).to_have_count(3)
    player.my_move()
    assert player.numbers() == [1, 2, 3]
    assert len(wire.moves()) == 1


def test_a_move_whose_answer_was_lost_is_repeated_and_counts_once(player: Player) -> None:
    wire = Wire(player.page)
    start(player)
    wire.loses = lambda frame: True
    player.price().fill("45")
    player.send().click()
    wait_for(lambda: pumped(player, len(wire.moves()) == 1), what="the move to leave")
    wire.cut()
    wire.loses = lambda frame: False
    wire.mend()
    expect(player.lines()).to_have_count(3)
    player.my_move()
    assert player.numbers() == [1, 2, 3]
    first, second = wire.moves()
    assert first == second


def pumped(player: Player, condition: bool) -> bool:
    """`condition`, after the browser had a moment to tell what happened."""
    player.page.wait_for_timeout(20)
    return condition


def test_a_frame_that_gets_lost_is_asked_for_again(player: Player) -> None:
    wire = Wire(player.page)
    start(player)
    lost: list[Frame] = []

    def lose_the_first(frame: Frame) -> bool:
        if frame["type"] != "view" or not frame["items"] or lost:
            return False
        lost.append(frame)
        return True

    wire.loses = lose_the_first
    before = len(wire.sent)
    player.offer("45", talk="Is anybody there?")
    expect(player.lines()).to_have_count(3)
    expect(player.lines().nth(1)).to_contain_text("Is anybody there?")
    assert player.numbers() == [1, 2, 3]
    assert len(lost) == 1
    assert {"type": "resync", "after": 1} in wire.sent[before:]


def test_a_page_without_sockets_plays_a_whole_game(player: Player) -> None:
    wire = Wire(player.page)
    wire.is_cut = True
    player.sit_down("pair", seat="seller", opponent="threshold")
    expect(player.connection()).to_have_text("Live, by polling")
    player.price().fill("120")
    expect(player.page.locator("#preview-1")).to_have_text("A deal at $120.00 is worth $80.00 to you.")
    player.offer("120", talk="Too much, I know.")
    expect(player.lines()).to_have_count(2)
    player.price().fill("-5")
    player.my_move()
    player.send().click()
    expect(player.refusal()).to_have_text("A price cannot be negative.")
    player.offer("80")
    expect(player.result()).to_contain_text("You sold at $80.00")


def test_a_killed_web_process_costs_nothing(player: Player, lab: RunningLab) -> None:
    start(player)
    player.offer("45")
    expect(player.lines()).to_have_count(3)
    player.my_move()
    player.page.evaluate("() => { window.sameDocument = true; }")
    player.talk().fill("Half a thou")
    killed = lab.kill("web")
    expect(player.connection()).to_contain_text("Reconnecting")
    player.price().fill("50")
    player.send().click()
    expect(player.note()).to_contain_text("Kept")
    expect(player.lines()).to_have_count(5)
    player.my_move()
    assert player.numbers() == [1, 2, 3, 4, 5]
    assert player.page.evaluate("() => window.sameDocument") is True
    wait_for(lambda: lab.pid("web") not in (None, killed), what="a new web process")
    player.watch.forgive(*NETWORK)


def test_a_killed_worker_does_not_swallow_the_answer(player: Player, lab: RunningLab) -> None:
    start(player)
    killed = lab.kill("worker")
    player.offer("45")
    expect(player.lines()).to_have_count(2)
    expect(player.status()).to_contain_text("Waiting for the seller")
    expect(player.lines()).to_have_count(3, timeout=30_000)
    player.my_move()
    assert player.numbers() == [1, 2, 3]
    assert lab.pid("worker") not in (None, killed)
