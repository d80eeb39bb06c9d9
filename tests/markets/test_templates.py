"""Tests of the templates by themselves: the content security policy, escaping, names of panels.

What a player would lose: a page whose inline style or script the browser refuses, talk that turns
into markup, a live panel that the socket cannot find.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from django.template.loader import render_to_string

from markets.presentation import Composer, EventItem, MarkKind, StandingOffer, ThreadPanel, price_line
from markets.presentation import Mark as PriceMark

ROOT = Path(__file__).parents[2]
TEMPLATES = sorted((ROOT / "templates").rglob("*.html"))
SCRIPTS = sorted((ROOT / "static" / "js").glob("*.js"))
INLINE = {
    "style element": re.compile(r"<style\b"),
    "style attribute": re.compile(r"\sstyle\s*="),
    "event handler": re.compile(r"\son[a-z]+\s*="),
    "inline script": re.compile(r"<script(?![^>]*\ssrc=)"),
    "script address": re.compile(r"javascript:"),
    "another server": re.compile(r"(?:src|href)\s*=\s*[\"'](?:https?:)?//"),
}


def offer(*, talk: str) -> EventItem:
    return EventItem(
        seq=3,
        thread=1,
        kind="offer",
        side="them",
        author="Seller",
        role="seller",
        talk=talk,
        price="$92.00",
        sentence="offered $92.00",
    )


def thread(*offers: StandingOffer) -> ThreadPanel:
    return ThreadPanel(
        thread=2,
        name="Buyer B",
        short_name="B",
        role="buyer",
        who="an agent",
        status="yours",
        status_text="Waiting for your message",
        items=(),
        offers=offers,
        composer=Composer(thread=2, may_act=True),
    )


@pytest.mark.parametrize("path", TEMPLATES, ids=lambda path: path.name)
@pytest.mark.parametrize("what", INLINE)
def test_no_template_needs_what_the_policy_forbids(path: Path, what: str) -> None:
    assert not INLINE[what].search(path.read_text(encoding="utf-8"))


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.name)
def test_no_script_evaluates_text(path: Path) -> None:
    assert not re.search(r"\beval\(|new Function\(", path.read_text(encoding="utf-8"))


def test_talk_stays_text() -> None:
    html = render_to_string("markets/_event_item.html", {"item": offer(talk="<img src=x onerror=alert(1)>\nsecond")})
    assert "<img" not in html
    assert "&lt;img" in html
    assert "<br>second" in html


def test_an_event_is_one_list_item_that_carries_its_number() -> None:
    html = render_to_string("markets/_event_item.html", {"item": offer(talk="")}).strip()
    assert html.startswith("<li ")
    assert html.endswith("</li>")
    assert 'data-seq="3"' in html


def test_only_an_offer_that_can_be_accepted_has_a_button() -> None:
    theirs = StandingOffer(
        offer_id=4, yours=False, author="Buyer B", role="buyer", price="$70.00", can_accept=True, can_reject=True
    )
    own = StandingOffer(offer_id=5, yours=True, author="You", role="seller", price="$98.00")
    html = render_to_string("markets/_standing_offers.html", {"thread": thread(theirs, own)})
    assert re.findall(r'data-testid="((?:accept|reject)-\d+)"', html) == ["accept-4", "reject-4"]


def test_a_sentence_with_quotes_stays_inside_its_attribute() -> None:
    tricky = StandingOffer(
        offer_id=4,
        yours=False,
        author="B",
        role="buyer",
        price="$1",
        surplus_sentence='worth "$1" <b>',
        can_accept=True,
    )
    html = render_to_string("markets/_standing_offers.html", {"thread": thread(tricky)})
    assert 'data-sentence="worth &quot;$1&quot; &lt;b&gt;"' in html


def test_the_price_line_says_in_words_what_it_draws() -> None:
    line = price_line(
        title="The seller asks $92.00.",
        money=lambda cents: f"${cents // 100}",
        marks=[PriceMark(kind=MarkKind.THEIR_OFFER, cents=9_200, label="seller asks", money="$92.00", role="seller")],
    )
    html = render_to_string("markets/_price_line.html", {"line": line})
    assert 'aria-label="The seller asks $92.00."' in html
    assert "<li>seller asks: $92.00</li>" in html


def test_every_panel_that_the_socket_replaces_is_in_the_room() -> None:
    room = (ROOT / "templates/markets/room.html").read_text(encoding="utf-8")
    one = (ROOT / "templates/markets/_thread.html").read_text(encoding="utf-8")
    for panel in ("panel-opponent", "panel-card", "panel-status", "panel-waiting", "panel-consent", "panel-result"):
        assert f'id="{panel}"' in room
    for panel in ("panel-thread-", "panel-offers-", "log-"):
        assert f'id="{panel}{{{{ b }}}}"' in one
