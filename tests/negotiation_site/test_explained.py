"""Economic terms lead to their explanation: every heading and every head of a table, on every page there is."""

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from django.conf import settings
from django.template import Context, Template

from negotiation_site import glossary
from tests.addresses import addresses
from tests.markets import rooms
from tests.negotiation_site import test_tournament_pages as tournament_pages
from tests.negotiation_site.leaderboard.records import stored
from tests.negotiation_site.test_permissions import knockers, may, no_back_ends, written
from tests.negotiation_site.test_training_pages import learning, run
from tests.negotiation_site.test_training_pages import market as market_of_runs

__all__ = ["knockers", "learning", "no_back_ends", "run"]
market = market_of_runs

BASE = Path(settings.BASE_DIR)


def rendered(source: str, **context: object) -> str:
    return Template(source).render(Context(context))


def test_a_term_leads_to_its_entry_and_carries_its_sentence() -> None:
    html = rendered("{{ text|explained }}", text="Share of the surplus, buyers")
    assert html == (
        '<a class="term" href="/glossary/#surplus-share" title="Your part of what there was to gain.">'
        "Share of the surplus</a>, buyers"
    )
    assert rendered("{% load i18n %}{% translate 'First best'|explained %}").startswith('<a class="term"')


def test_a_word_that_holds_a_term_is_left_alone_and_text_is_escaped() -> None:
    assert rendered("{{ text|explained }}", text="Surplusage <b> & priority") == "Surplusage &lt;b&gt; &amp; priority"
    assert rendered("{{ text|explained }}", text="") == ""


def test_a_term_is_led_to_once() -> None:
    assert rendered("{{ text|explained }}", text="Surplus, surplus").count("<a") == 1


def test_a_label_may_name_its_entry_and_only_one_that_is_there() -> None:
    assert 'href="/glossary/#unconditional-share"' in rendered(
        "{{ text|explained:'unconditional-share' }}", text="Share"
    )
    with pytest.raises(glossary.UnknownTerm):
        rendered("{{ text|explained:'nothing-of-the-kind' }}", text="Share")


def test_no_two_entries_claim_the_same_words() -> None:
    claimed = [phrase.casefold() for term in glossary.terms(BASE) for phrase in term.phrases]
    assert sorted(set(claimed)) == sorted(claimed)


HEADS = ("h1", "h2", "h3", "h4", "th", "dt")


class Heads(HTMLParser):
    """The headings, labels and heads of columns of a page, and what in them leads to the glossary."""

    def __init__(self) -> None:
        super().__init__()
        self.found: list[tuple[str, str]] = []
        self._open = ""
        self._text: list[str] = []
        self._led: list[str] = []
        self._elsewhere = False

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        if tag in HEADS and named.get("scope") != "row":
            self._open, self._text, self._led, self._elsewhere = tag, [], [], False
        elif tag == "a" and self._open:
            page, _mark, anchor = (named.get("href") or "").partition("#")
            if page == "/glossary/" and anchor:
                self._led.append(anchor)
            else:
                self._elsewhere = True

    def handle_endtag(self, tag: str) -> None:
        if tag == self._open:
            if not self._elsewhere:  # a name that leads to its own page leads nowhere else
                self.found.append((" ".join("".join(self._text).split()), ",".join(self._led)))
            self._open = ""

    def handle_data(self, data: str) -> None:
        if self._open:
            self._text.append(data)


PLOT = re.compile(
    r'<section class="(?:chart-block|price-path)[^>]*>(?:(?!<section).)*?data-chart="([^"]+)".*?</section>', re.S
)


def unexplained(plot: str, name: str) -> str:
    """What a plot leaves its reader to guess; empty where it explains itself."""
    note = re.search(r'chart-block__note">(.*?)</p>', plot, re.S)
    layout = json.loads(re.findall(r'type="application/json">(.*?)</script>', plot, re.S)[0])["layout"]
    named = [layout.get(axis, {}) for axis in ("xaxis", "yaxis")]
    titled = any((axis.get("title") or {}).get("text") for axis in named)
    if note is None or len(note[1].split()) < 6:
        return f"{name} says neither what it shows nor from how much"
    if titled and not re.search("Across: |Upwards: ", note[1]):
        return f"{name} does not say what its axes are"
    if not re.search(r'role="img" aria-label="[^"]+', plot):
        return f"{name} has no name for a screen reader"
    return "" if "<table" in plot else f"{name} has no table beside it"


@pytest.mark.django_db
def test_every_term_at_the_head_of_anything_is_explained_and_every_plot_explains_itself(knockers, learning) -> None:
    clients, world = knockers
    rooms.market(slug="demo-bilateral")
    tournament_pages.played("mine")
    arena = rooms.market(slug="arena", family="multi_buyer")
    for seller in ("falling-ladder", "chase-highest-bid"):
        stored(arena, seller=seller, buyers="linear", count=2)
    world["known"]["name"] = "mine"
    bare, plots = [], 0
    for address in addresses():
        allowed = may(address) or frozenset()
        who = next((name for name in ("trainer", "owner") if name in allowed), "anonymous")
        where = {"agent": "/agents/falling-ladder/"}.get(address.name, "") or written(address, world)
        response = clients[who].get(where)
        if response.status_code != 200 or "html" not in response.get("Content-Type", "") or address.name == "glossary":
            continue
        for plot in PLOT.finditer(response.content.decode()):
            plots += 1
            problem = unexplained(plot[0], plot[1])
            if problem:
                bare.append(f"{address.name}: {problem}")
        heads = Heads()
        heads.feed(response.content.decode())
        for text, led in heads.found:
            wanted = [term.anchor for _part, term in glossary.mentions(BASE, text) if term]
            if wanted and not led:
                bare.append(f"{address.name}: {text!r} does not lead to {wanted}")
    assert not bare, "\n".join(bare)
    assert plots > 25
