"""Every page and every state of a room, wide and on a phone, light and dark.

Somebody who reads with a screen reader, needs contrast, or plays on a phone would be shut out. The fixture `someone`
adds that no page complains on its console (the content security policy included) or loads anything from elsewhere.
"""

import json
from pathlib import Path

import pytest
from axe_playwright_python.base import AXE_SCRIPT
from playwright.sync_api import Page, expect

from tests.addresses import addresses
from tests.browser import world
from tests.browser.conftest import Someone
from tests.browser.people import ROOM_URL, Player
from tests.lab import RunningLab
from tests.markets import dialogues

WIDTHS = {"wide": 1440, "phone": 390}
LOOKS = (("wide", "light"), ("phone", "dark"))
"""Axe takes most of the time. Colours do not change with the width, and nothing but colours changes in the dark."""
SERIOUS = ("serious", "critical")
PLOT = ".js-plotly-plot .plot-container"
"""What Plotly draws is one image with a name; its thousand marks have none."""
SPILT = """() => [...document.querySelectorAll("[data-chart]")].filter((place) => {
    const plot = place.querySelector(".main-svg")?.getBoundingClientRect();
    return plot && (plot.height > place.offsetHeight + 1 || plot.width > place.offsetWidth + 1);
}).map((place) => place.id)"""
"""Plots that lie over what comes after them, as they would where a window changed its size."""


def violations(page: Page) -> list[str]:
    """What axe holds against the page as it stands."""
    if not page.evaluate("() => 'axe' in window"):
        page.evaluate(AXE_SCRIPT)
    found = page.evaluate("(plot) => axe.run({exclude: [[plot]]}, {resultTypes: ['violations']})", PLOT)
    return [
        f"{each['id']}: {[node['html'][:200] for node in each['nodes']]}"
        for each in found["violations"]
        if each["impact"] in SERIOUS
    ]


def faults(page: Page, looks: tuple[tuple[str, str], ...] = LOOKS) -> list[str]:
    """What is wrong with the page as it stands, in words; it is wide and light afterwards."""
    found: list[str] = []
    for width, scheme in looks:
        page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        page.set_viewport_size({"width": WIDTHS[width], "height": 900})
        found += [f"{width}, {scheme}: {violation}" for violation in violations(page)]
        beyond = page.evaluate("() => document.documentElement.scrollWidth - window.innerWidth")
        if beyond > 0:
            found.append(f"{width}: the page is {beyond} px wider than the window")
        if spilt := page.evaluate(SPILT):
            found.append(f"{width}: these plots do not fit their place: {spilt}")
    page.emulate_media(color_scheme="light", reduced_motion="reduce")
    page.set_viewport_size({"width": WIDTHS["wide"], "height": 900})
    return found


def look_at(player: Player) -> None:
    """Assert that the page as it stands is fit for everybody."""
    assert faults(player.page) == []


ELSEWHERE = {"leaderboard", "leaderboard-people", "leaderboard-corpora", "tournament-list", "tournament-new", "suites"}
"""Addresses that tests of their own look at, with something on them."""


def test_every_address_is_fit_for_everybody(player: Player) -> None:
    """All that name nothing, to the staff, who sees more on them than anybody else."""
    player.sign_in(world.STAFF)
    looked_at = 0
    found: dict[str, list[str]] = {}
    for address in addresses():
        if address.parameters or address.name in ELSEWHERE:
            continue
        answer = player.page.request.get(player.site + address.written({}), max_redirects=0)
        if answer.status != 200 or "text/html" not in answer.headers["content-type"] or "<html" not in answer.text():
            continue
        player.open(address.written({}))
        expect(player.page.locator("h1")).to_be_visible()
        # Once each: other tests look twice at what all pages have in common.
        if wrong := faults(player.page, looks=LOOKS[1:]):
            found[address.route] = wrong
        looked_at += 1
    assert found == {}
    assert looked_at > 20


@pytest.fixture(scope="module")
def games(lab: RunningLab) -> None:
    """A few dozen stored negotiations, in which agents met at the same tables."""
    lab.manage("shell", "-v", "0", "-c", "from tests.browser import world; world.play()")


def until_it_shows(player: Player, path: str, selector: str) -> None:
    """Open a page that may be some seconds behind new games, until it shows them."""
    for _ in range(40):
        player.open(path)
        if player.page.locator(selector).count():
            return
        player.page.wait_for_timeout(500)
    raise AssertionError(f"{path} never showed {selector}")


def drawn(player: Player, plots: int) -> None:
    """Every plot is there, drawn by Plotly, and its numbers are a click away."""
    expect(player.page.locator(".chart .main-svg").first).to_be_visible()
    assert player.page.locator("[data-chart]").count() == plots
    for place in range(plots):
        expect(player.page.locator("[data-chart]").nth(place).locator(".main-svg").first).to_be_attached()
    player.page.locator(".chart-block__numbers summary").first.click()
    expect(player.page.locator(".chart-block__numbers table").first).to_be_visible()


def test_the_leaderboard_is_fit_for_everybody(player: Player, games: None) -> None:
    until_it_shows(player, "/leaderboard/", ".board")
    expect(player.page.locator(".board tbody tr").first).to_contain_text("1. ")
    drawn(player, plots=7)
    look_at(player)
    player.page.get_by_label("Market", exact=True).select_option("demo-bilateral")
    player.page.get_by_role("button", name="Show").click()
    player.page.wait_for_url("**market=demo-bilateral**")
    expect(player.page.locator("#filter-market")).to_have_value("demo-bilateral")
    expect(player.page.locator(".board__count")).to_contain_text("agents in")
    player.open("/leaderboard/?market=nowhere&role=xyz")
    expect(player.page.locator(".notices li")).to_have_count(2)


def test_human_dialogues_stand_beside_the_games(player: Player, lab: RunningLab, games: None, tmp_path: Path) -> None:
    player.open("/leaderboard/corpora/")
    look_at(player)
    bargains = [dialogues.bargain(price=90, key=f"C_{k}") for k in range(24)]
    (tmp_path / "bikes.json").write_text(json.dumps(bargains), encoding="utf-8")
    into = ("--format", "craigslist-bargain", "--name", "bikes", "--json")
    lab.manage("import_transcripts", str(tmp_path / "bikes.json"), *into)
    until_it_shows(player, "/leaderboard/corpora/", ".board")
    drawn(player, plots=1)
    look_at(player)


def test_an_agents_page_leads_to_a_transcript(player: Player, games: None) -> None:
    until_it_shows(player, "/agents/linear/", ".figures")
    drawn(player, plots=5)
    look_at(player)
    player.page.locator(".games a").first.click()
    expect(player.page.get_by_role("heading", name="What happened")).to_be_visible()
    look_at(player)
    player.open("/agents/oracle/")
    expect(player.page.get_by_text("It has no games on record yet.")).to_be_visible()
    look_at(player)


def test_a_market_shows_what_is_at_stake(player: Player) -> None:
    player.open("/markets/demo-multi-buyer/")
    # Whoever only takes a seat does not wait for what draws the plots below.
    assert not any("plotly" in url for url in player.watch.requests)
    player.page.locator("[data-chart]").first.scroll_into_view_if_needed()
    drawn(player, plots=2)
    look_at(player)


def test_the_ladder_of_people_before_and_after_a_game(player: Player) -> None:
    player.open("/leaderboard/people/")
    look_at(player)
    player.sit_down("pair", seat="buyer", opponent="hardliner", consent="public")
    player.leave()
    expect(player.result()).to_be_visible()
    until_it_shows(player, "/leaderboard/people/", ".board__mine")
    expect(player.page.locator(".board__mine")).to_contain_text("provisional")
    look_at(player)


def test_an_address_that_leads_nowhere_says_so(player: Player) -> None:
    player.open("/rooms/never-existed/")
    expect(player.page.locator("h1")).to_have_text("There is nothing at this address.")
    look_at(player)
    player.watch.forgive("404 (Not Found)")


def test_the_menu_opens_on_a_phone(someone: Someone) -> None:
    player = someone(viewport={"width": 390, "height": 844})
    player.open("/")
    link = player.page.get_by_role("banner").get_by_role("link", name="Glossary")
    expect(link).to_be_hidden()
    player.page.get_by_role("button", name="Menu").click()
    link.click()
    expect(player.page.locator("h1")).to_have_text("Glossary")


def test_markets_can_be_filtered(player: Player) -> None:
    player.open("/markets/")
    rows = player.page.locator(".market-row")
    every = rows.count()
    player.page.get_by_label("Family").select_option("catalogue")
    expect(player.page.locator(".count")).to_contain_text(f"of {every} markets")
    assert rows.count() == 3
    player.page.get_by_role("searchbox").fill("zeppelin")
    expect(player.page.get_by_text("No market fits these filters.")).to_be_visible()
    player.page.reload()  # The address keeps the filters.
    expect(player.page.get_by_text("No market fits these filters.")).to_be_visible()


def test_a_room_before_the_first_move(player: Player) -> None:
    player.sit_down("demo-multi-buyer", seat="seller", consent="")
    expect(player.connection()).to_have_text("Live")
    look_at(player)


def test_a_phone_holds_tabs_offers_and_composer_of_several_conversations(someone: Someone) -> None:
    player = someone(viewport={"width": 390, "height": 844})
    player.sit_down("demo-multi-buyer", seat="seller")
    expect(player.offers(1)).to_have_count(1)
    player.page.evaluate("() => scrollTo(0, 0)")
    handles = (player.page.locator("[data-tab='1']"), player.page.locator("[data-tab='3']"), player.offers(1))
    for handle in (*handles, player.talk(1), player.price(1), player.send(1)):
        expect(handle).to_be_in_viewport(ratio=1)


def test_a_room_in_play_with_a_question_open(player: Player) -> None:
    player.sit_down("pair", seat="buyer", opponent="hardliner")
    player.offer("45", talk="A fair price, I think.")
    expect(player.lines()).to_have_count(3)
    player.my_move()
    player.talk().fill("How about 50?")
    expect(player.text("proposal-offer")).to_be_visible()
    player.price().fill("abc")
    player.send().click()
    expect(player.refusal()).not_to_be_empty()
    player.offers().locator("[data-accept]").click()
    player.page.get_by_role("button", name="Leave").click()
    look_at(player)


def test_a_catalogue_from_the_table_to_the_record(player: Player) -> None:
    """The room with three products, its result with two tables, the replay, and a history with a game in it."""
    player.sit_down("shelf", seat="seller")
    player.offer("130", number=1, product="0")
    expect(player.lines(1)).to_contain_text(["", "offered $130.00", "turned your $130.00 down"])
    look_at(player)
    player.offer("90", number=2, product="1")
    expect(player.thread(2)).to_contain_text("Bought at $90.00")
    player.leave()
    expect(player.result()).to_be_visible()
    look_at(player)
    player.text("replay").click()
    expect(player.page.locator("[data-step][data-current]")).to_be_visible()
    look_at(player)
    player.open("/history/")
    expect(player.page.locator(".history-row")).to_have_count(1)
    look_at(player)


def test_waiting_for_a_person(someone: Someone) -> None:
    """The lobby without and with an open seat, the room that waits, and the page behind its link."""
    host, guest = someone(), someone()
    guest.open("/lobby/")
    expect(guest.page.get_by_text("Nobody is waiting.")).to_be_visible()
    look_at(guest)
    host.sit_down("pair", seat="buyer", person=True)
    look_at(host)
    expect(guest.page.locator(".lobby-row")).to_have_count(1)
    look_at(guest)
    guest.page.get_by_role("link", name="Sit down").click()
    look_at(guest)
    guest.text("join").click()
    guest.page.wait_for_url(ROOM_URL)
    guest.leave()
    expect(host.result()).to_contain_text("No deal.")
    look_at(host)


def test_the_pages_of_an_account(player: Player) -> None:
    """With a form that was refused, and with games of the browser that are somebody's question."""
    player.open("/account/sign-in/")
    look_at(player)
    player.open("/account/sign-up/")
    player.page.get_by_label("Username").fill("no spaces please")
    player.text("sign-up").click()
    look_at(player)
    player.watch.forgive("400 (Bad Request)")
    player.sign_up("every-page")
    for path in ("/account/", "/account/password/", "/account/delete/", "/builder/"):
        player.open(path)
        look_at(player)
    player.watch.forgive("403 (Forbidden)")  # The builder is not for players, and says so on a page of its own.
    player.open("/account/")
    player.text("sign-out").click()
    player.sit_down("pair", seat="buyer", opponent="hardliner")
    player.leave()
    player.sign_in("every-page")
    expect(player.page.locator("h1")).to_have_text("Are these games yours?")
    look_at(player)
    player.open("/account/")
    look_at(player)


def test_the_pages_of_the_builder(player: Player) -> None:
    player.sign_in(world.RESEARCHER)
    for path in ("/builder/", "/builder/markets/demo-catalogue/", "/builder/markets/demo-catalogue/1/"):
        player.open(path)
        look_at(player)
    player.open("/builder/new/?from=demo-multi-buyer")
    expect(player.page.locator("[data-chart] .main-svg").first).to_be_visible()
    look_at(player)
    player.page.get_by_label("Rounds or messages").fill("many")
    expect(player.text("preview-problem")).to_be_visible()
    player.text("save-market").click()
    expect(player.text("problem")).to_contain_text("whole number")
    look_at(player)
    player.watch.forgive("400 (Bad Request)")
