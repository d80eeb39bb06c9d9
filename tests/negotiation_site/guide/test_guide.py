"""The strategy guide: what the stored games show, out of how many, and nothing of games that are not open."""

import html
import re

import numpy as np
import pytest
from django.test import Client
from django.urls import reverse

from markets.models import Market
from negotiation_site.guide import findings
from negotiation_site.guide.findings import LEAST, OFFERS, OPENING, PATIENCE
from negotiation_site.leaderboard.facts import BUYER
from tests.markets import rooms
from tests.negotiation_site.leaderboard.columns import facts_of
from tests.negotiation_site.leaderboard.records import bought, stored

pytestmark = pytest.mark.django_db


def text(response) -> str:
    body = re.sub(r"<script.*?</script>", " ", response.content.decode(), flags=re.S)
    return re.sub(r"\s+", " ", html.unescape(re.sub(r"<[^>]+>", " ", body)).replace("\xa0", " "))


@pytest.fixture
def arena() -> Market:
    market = rooms.market(slug="arena")
    for buyer in ("boulware", "conceder", "linear"):
        stored(market, seller="linear", buyers=buyer, count=30)
    return market


def test_the_guide_says_what_openings_kept_with_intervals_numbers_and_a_caution(arena, client: Client) -> None:
    words = text(client.get(reverse("guide")))
    assert "How boldly to open" in words
    assert "seats in" in words
    assert "What goes together is not what causes." in words
    assert re.search(r"bids of [\d.]+ to [\d.]+ × the value [\d.]+ % \([\d.−]+ to [\d.]+\)", words)


def test_a_site_with_few_games_says_that_they_are_too_few(client: Client) -> None:
    stored(rooms.market(slug="arena"), seller="linear", count=5)
    words = text(client.get(reverse("guide")))
    assert "There are too few games to say anything" in words
    assert f"each figure needs {LEAST}" in words
    assert 'data-chart="' not in client.get(reverse("guide")).content.decode()


def test_a_kind_of_market_nobody_played_leads_on(arena, client: Client) -> None:
    page = client.get(reverse("guide"), {"family": "catalogue", "role": "seller"})
    assert "too few games" in text(page)
    assert reverse("market-list") in page.content.decode()


def test_an_address_that_asks_for_what_is_not_there_is_answered_with_sentences(client: Client) -> None:
    words = text(client.get(reverse("guide"), {"family": "x", "role": "y", "market": "z"}))
    assert words.count("There is no") == 2
    assert "not “y”" in words


@pytest.mark.parametrize("keeping", ["private", "research"])
def test_a_game_that_is_no_open_data_is_in_no_figure(keeping: str, client: Client) -> None:
    bought(6_000, consent=keeping)
    assert "From 0 seats in 0 finished games" in text(client.get(reverse("guide")))


def test_games_of_people_in_a_market_that_keeps_values_are_in_no_figure(client: Client) -> None:
    bought(6_000, consent="public")
    assert "From 1 seats in 1 finished games" in text(client.get(reverse("guide")))
    Market.objects.update(reveals_values=False)
    from negotiation_site.leaderboard import pages

    pages.forget()
    assert "From 0 seats in 0 finished games" in text(client.get(reverse("guide")))


def made(openings, shares, **columns):
    """Buyers' seats, each in a scenario of its own; a column is one number or one a seat."""
    rows = []
    for place, (opening, share) in enumerate(zip(openings, shares, strict=True)):
        more = {name: cell if np.isscalar(cell) else cell[place] for name, cell in columns.items()}
        rows.append({"role": BUYER, "opening": opening, "share": share, "deals": int(share > 0)} | more)
    return facts_of(*rows)


def test_bands_are_thirds_of_the_seats_with_their_own_mean_and_deal_rate() -> None:
    openings = [0.3] * 30 + [0.5] * 30 + [0.8] * 30
    held = made(openings, [0.9] * 15 + [0.0] * 15 + [0.5] * 30 + [0.2] * 30)
    found = findings.findings(held, np.ones(90, bool), two_sided=True)
    habit = next(habit for habit in found.habits if habit.name == OPENING)
    assert [(band.low, band.high, band.seats) for band in habit.bands] == [
        (pytest.approx(0.3), pytest.approx(0.3), 30),
        (pytest.approx(0.5), pytest.approx(0.5), 30),
        (pytest.approx(0.8), pytest.approx(0.8), 30),
    ]
    assert [band.share.value for band in habit.bands] == [pytest.approx(0.45), pytest.approx(0.5), pytest.approx(0.2)]
    assert [band.deals.value for band in habit.bands] == [0.5, 1.0, 1.0]
    assert habit.apart is not None
    assert [band.low for band in habit.apart] == [pytest.approx(0.3), pytest.approx(0.8)]


def test_a_band_of_too_few_seats_has_no_figure() -> None:
    held = made([0.4] * 60, [0.5] * 60, offers=[1] * 25 + [2] * 25 + [3] * 10)
    habit = next(
        habit for habit in findings.findings(held, np.ones(60, bool), two_sided=True).habits if habit.name == OFFERS
    )
    assert [(band.low, band.seats, band.share.value) for band in habit.bands] == [
        (1, 25, 0.5),
        (2, 25, 0.5),
        (3, 10, None),
    ]


def test_seats_where_nothing_could_be_gained_do_not_count() -> None:
    held = made([0.4] * 80, [0.5] * 80, patience=[0.1, 0.2] * 40)
    held["joint"][:50] = -1
    found = findings.findings(held, np.ones(80, bool), two_sided=True)
    assert found.seats == 30
    assert PATIENCE not in {habit.name for habit in found.habits}


def test_a_first_offer_that_pulls_the_price_is_measured_at_equal_values() -> None:
    rng = np.random.default_rng(1)
    own, other, opening = (rng.uniform(low, high, 200) for low, high in ((80, 120), (40, 70), (0.3, 0.9)))
    price = 0.3 * opening * own + 0.2 * own + 0.4 * other
    held = made(opening.tolist(), [0.5] * 200, own_value=own, other_value=other, list_price=100.0, price=price)
    pull = findings.findings(held, np.ones(200, bool), two_sided=True).pull
    assert pull.value == pytest.approx(0.3, abs=1e-3)
    assert pull.low is not None
    assert pull.high is not None
    assert pull.low - 1e-3 <= 0.3 <= pull.high + 1e-3
