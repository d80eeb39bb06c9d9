"""The pictures of the tours in docs/: `python -m tests.browser.pictures [NAME ...]` takes them all, or those named.

A site of its own is started in a folder that goes afterwards (or `--site` names one that runs), a game is played in it, and every page is photographed
1280 pixels wide into docs/img/tour-<name>.png, with so few colours that none is larger than 150 kB. Not a test: run it
when the pages have changed, and look at what came of it.
"""

import argparse
import sys
import tempfile
from collections.abc import Callable, Mapping
from io import BytesIO
from pathlib import Path

from PIL import Image
from playwright.sync_api import Page, ViewportSize, expect, sync_playwright

from tests import machine
from tests.browser.people import PASSWORD
from tests.lab import RunningLab

OUT = Path(__file__).resolve().parents[2] / "docs" / "img"
SIZE: ViewportSize = {"width": 1280, "height": 800}
MOST_BYTES = 150_000
PATIENCE_MS = 180_000
ADMIN = "admin"
PEOPLE = f"""
from django.contrib.auth.models import Permission, User
admin = User.objects.create_superuser("{ADMIN}", password="{PASSWORD}")
admin.user_permissions.add(Permission.objects.get(codename="train_agents"))
"""


def save(page: Page, name: str) -> None:
    """What the window shows, in as many colours as fit."""
    with Image.open(BytesIO(page.screenshot(animations="disabled"))) as picture:
        for colours in (256, 128, 64, 32):
            held = BytesIO()
            picture.convert("RGB").quantize(colours, dither=Image.Dither.NONE).save(held, "PNG", optimize=True)
            if len(held.getvalue()) <= MOST_BYTES:
                break
    (OUT / f"tour-{name}.png").write_bytes(held.getvalue())
    sys.stderr.write(f"tour-{name}.png: {len(held.getvalue()):,} bytes, {colours} colours\n")


def opened(path: str, *, at: str = "") -> Callable[[Page, str], None]:
    """A page, scrolled to the element `at` where one is named."""

    def photograph(page: Page, site: str) -> None:
        page.goto(site + path, wait_until="domcontentloaded")
        expect(page.locator("h1").first).to_be_visible()
        for plot in page.locator("[data-chart]").all():
            plot.scroll_into_view_if_needed()
            expect(plot.locator(".main-svg").first).to_be_attached()
        if at:
            page.locator(at).first.evaluate(
                "element => window.scrollTo(0, element.getBoundingClientRect().top + scrollY - 24)"
            )
        else:
            page.evaluate("window.scrollTo(0, 0)")

    return photograph


def first_game(page: Page, site: str) -> None:
    """Into the guided game, up to the hint about the own value."""
    page.goto(site + "/help/")
    page.get_by_test_id("first-game").click()
    page.wait_for_url("**/rooms/**")
    choice = page.get_by_test_id("consent-public")
    if choice.is_visible():
        choice.click()
    expect(page.get_by_test_id("composer-talk")).to_be_enabled()
    expect(page.get_by_test_id("guide-text")).to_contain_text("Your card is your secret")
    expect(page.locator("[data-accept]").first).to_be_visible()


def dealt(page: Page, site: str) -> None:
    """One counter-offer, then the seller's next price is taken."""
    first_game(page, site)
    price = page.get_by_test_id("composer-price")
    price.fill((price.get_attribute("placeholder") or "50").replace(",", ""))
    page.get_by_test_id("send").click()
    over, accept = page.get_by_test_id("result"), page.locator("[data-accept]").first
    answered = page.locator("#log-1 .event--them").nth(1)
    expect(over.or_(answered).first).to_be_visible()  # It may take the offer at once.
    if not over.is_visible():
        accept.click()
        page.wait_for_timeout(400)  # A second press within a blink is not taken for a yes.
        page.get_by_test_id("confirm-accept").click()
    expect(over).to_be_visible()
    page.get_by_test_id("guide-hide").click()
    page.evaluate("window.scrollTo(0, 0)")


def shared(page: Page, site: str) -> None:
    """The card of a result, from whoever has the link."""
    page.goto(site + "/history/")
    page.locator("a[href^='/rooms/']").first.click()
    page.get_by_test_id("share-result").click()
    page.get_by_test_id("make-link").click()
    page.goto(page.get_by_test_id("shared-url").input_value())


def signed_in(then: Callable[[Page, str], None]) -> Callable[[Page, str], None]:
    """As the admin."""

    def photograph(page: Page, site: str) -> None:
        page.goto(site + "/account/sign-in/")
        if page.get_by_label("Username").count():
            page.get_by_label("Username").fill(ADMIN)
            page.get_by_label("Password").fill(PASSWORD)
            page.get_by_test_id("sign-in").click()
            expect(page.get_by_test_id("account-link")).to_contain_text(ADMIN)
        then(page, site)

    return photograph


def explained(page: Page, site: str) -> None:
    """A term and its explanation beside it."""
    opened("/leaderboard/", at=".board__count")(page, site)
    page.locator(".board a.term").first.click()
    expect(page.locator(".term-note")).to_be_visible()


PICTURES: Mapping[str, Callable[[Page, str], None]] = {
    "home": opened("/"),
    "first-game": first_game,
    "result": dealt,
    "shared": shared,
    "guide": opened("/guide/", at="#found-heading"),
    "market": opened("/markets/demo-multi-buyer/"),
    "stake": opened("/markets/demo-multi-buyer/", at=".market__picture"),
    "leaderboard": explained,
    "agent": opened("/agents/boulware/"),
    "transcripts": opened("/transcripts/"),
    "builder": signed_in(opened("/builder/new/?from=demo-multi-buyer", at="#builder-preview")),
    "tournament": signed_in(opened("/tournaments/demo-tournament/", at=".chart-block")),
    "studies": signed_in(opened("/studies/")),
    "exports": signed_in(opened("/exports/")),
    "runs": signed_in(opened("/runs/")),
    "run-new": signed_in(opened("/runs/new/")),
    "moderation": signed_in(opened("/moderation/")),
    "operations": signed_in(opened("/operations/")),
}


def take(names: list[str], site: str) -> None:
    """Photograph the pages of a running site."""
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=machine.chromium(), args=list(machine.CHROMIUM_ARGS))
        context = browser.new_context(viewport=SIZE, color_scheme="light", reduced_motion="reduce")
        context.set_default_timeout(PATIENCE_MS)
        expect.set_options(timeout=PATIENCE_MS)
        page = context.new_page()
        for name in names:
            PICTURES[name](page, site)
            save(page, name)
        browser.close()


def main() -> None:
    """Take the pictures named, or all."""
    parser = argparse.ArgumentParser(description="Take the pictures of the tours in docs/.")
    parser.add_argument("names", nargs="*", choices=[*PICTURES, []], metavar="NAME", help=", ".join(PICTURES))
    parser.add_argument(
        "--site", default="", help=f"a running site with an account {ADMIN!r} instead of one of its own"
    )
    asked = parser.parse_args()
    names = asked.names or list(PICTURES)
    if asked.site:
        return take(names, asked.site.rstrip("/"))
    with tempfile.TemporaryDirectory() as folder:
        running = RunningLab(var=Path(folder) / "var")
        try:
            running.manage("shell", "-v", "0", "-c", PEOPLE)
            take(names, running.url)
        finally:
            running.stop()


if __name__ == "__main__":
    main()
