"""A market that keeps values after the game: what a player reads at its end must not depend on the other side's."""

import re

import pytest

from markets import setup
from markets.engine.protocol import SELLER
from markets.market_page import detail_page
from markets.models import Episode, Market
from tests.markets import rooms
from tests.markets.engine.factories import B1, LEAVE, accept, bilateral, catalogue, multi_buyer, offer
from tests.markets.rooms import Game, staged
from tests.markets.tabs import browser, faults

pytestmark = pytest.mark.django_db

KEPT = {"reveals_values": False}


def read(game: Game, party: str) -> str:
    """Everything a player can read of a finished game, without what differs from room to room."""
    client = browser(game.people[party])
    address = f"/rooms/{game.room.public_id}/"
    pages = [client.get(f"{address}{path}") for path in ("", "result/", "replay/")] + [client.get("/history/")]
    assert [page.status_code for page in pages] == [200] * 4
    html = "".join(page.content.decode() for page in pages)
    assert faults(pages[0].content.decode()) == faults(pages[2].content.decode()) == []
    html = html.replace(game.room.public_id, "ROOM").replace(game.people[party].pseudonym, "NAME")
    html = re.sub(r'name="csrfmiddlewaretoken" value="[^"]*"', "", html)
    when = r"server_time&quot;: \d+|\"server_time\": \d+|\d{1,2} \w{3} \d{4}, \d\d:\d\d"
    return re.sub(when, "", html)


def difference(pages: set[str]) -> str:
    """The first lines in which two pages differ."""
    first, second = sorted(pages)
    lines = zip(first.splitlines(), second.splitlines(), strict=False)
    return next((f"{one[:2_000]}\n{two[:2_000]}" for one, two in lines if one != two), "in length")


def played(scenario, *, party: str, deal: bool) -> Game:
    game = staged(scenario, people=(B1, SELLER) if scenario.buyers == 1 else (SELLER,), market_changes=KEPT)
    if scenario.buyers > 1:
        game.act(SELLER, LEAVE)
        return game
    game.act(B1, offer(6_000))
    game.act(SELLER, accept(1) if deal else LEAVE)
    return game


@pytest.mark.parametrize("deal", [True, False], ids=["deal", "no-deal"])
@pytest.mark.parametrize("party", [B1, SELLER])
def test_nothing_at_the_end_depends_on_what_it_was_worth_to_the_other_side(party, deal):
    other = "cost" if party == B1 else "value"
    pages = set()
    for cents in (4_200, 5_900) if other == "cost" else (6_100, 7_700):
        pages.add(read(played(bilateral(**{other: cents}), party=party, deal=deal), party))
    assert len(pages) == 1, difference(pages)
    html = pages.pop()
    assert "This market keeps what it was worth to the other side" in html
    assert "$80.00" in html if party == B1 else "$50.00" in html


def test_a_seller_of_several_learns_no_buyers_value():
    pages = {
        read(played(multi_buyer(values=values), party=SELLER, deal=False), SELLER)
        for values in ((4_800, 7_200, 11_000), (3_100, 5_500, 9_900))
    }
    assert len(pages) == 1


def test_a_seller_of_a_catalogue_learns_no_best_assignment():
    pages = {
        read(played(catalogue(values=values), party=SELLER, deal=False), SELLER)
        for values in (((9_000, 6_000), (8_000, 7_500)), ((6_000, 9_000), (5_500, 4_100)))
    }
    assert len(pages) == 1
    assert "Who should have had what" not in pages.pop()


def test_the_record_and_the_open_transcript_are_kept_too():
    game = played(bilateral(), party=B1, deal=True)
    episode = Episode.objects.get(room=game.room)
    assert episode.consent_scope == "public"
    for client in (browser(game.people[B1]), browser(game.people[SELLER])):
        assert client.get(f"/rooms/{game.room.public_id}/record.json").status_code == 404
    assert browser().get(f"/episodes/{episode.public_id}/").status_code == 404
    Market.objects.update(reveals_values=True)
    assert browser(game.people[B1]).get(f"/rooms/{game.room.public_id}/record.json").status_code == 200
    assert browser().get(f"/episodes/{episode.public_id}/").status_code == 200


def test_the_own_gain_is_told_and_a_loss_too():
    html = read(played(bilateral(value=8_000), party=B1, deal=True), B1)
    assert "You bought at $60.00, which is worth $20.00 to you." in html
    html = read(played(bilateral(value=5_000, cost=4_000), party=B1, deal=True), B1)
    assert "You bought at $60.00 and lost $10.00." in html
    html = read(played(bilateral(cost=5_000), party=SELLER, deal=True), SELLER)
    assert "You sold for $60.00, which is worth $10.00 to you." in html


def test_players_are_told_before_they_sit_down():
    market = setup.create_market(
        setup.MarketSpec(slug="kept", family="bilateral", unit="money", values="uniform:1:9", reveals_values=False)
    )
    assert detail_page(market, seats=()).after_text == "After the game, each side's values stay its own."
    assert detail_page(rooms.market("bilateral"), seats=()).after_text == ""
