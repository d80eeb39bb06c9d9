"""Shared results: from the seat of whoever shares, of whoever sat opposite, and of a stranger with the link."""

import re
from io import BytesIO

import pytest
from django.urls import reverse
from PIL import Image

from markets import erasure, services
from markets.engine.money import format_amount
from markets.engine.protocol import SELLER, Leave
from markets.models import ConsentScope, Market, Room, Seat
from markets.presentation import CONSENT_VERSION
from negotiation_site.sharing import drawing
from negotiation_site.sharing.models import SharedResult
from tests.markets.engine.factories import B1, accept, bilateral, offer
from tests.markets.rooms import Game, person, staged
from tests.markets.tabs import browser, faults

pytestmark = pytest.mark.django_db


def played(*, people=(B1,), price_cents: int = 6_000, consent: str = "") -> Game:
    """A finished game: the buyer's value is $90, the seller's cost $40."""
    game = staged(bilateral(), people=people)
    game.act(B1, offer(price_cents))
    if SELLER in people:
        game.act(SELLER, accept(1))
    else:
        game.act(B1, Leave())
    for party in people if consent else ():
        services.choose_consent(seat=game.seat(party), scope=consent, version=CONSENT_VERSION)
    return game


def share_page(game: Game) -> str:
    return reverse("room-share", args=[game.room.public_id])


def shared(game: Game, party=B1, **more: str) -> str:
    """The link that the person on a chair makes."""
    response = browser(game.people[party]).post(share_page(game), {"act": "make", **more})
    assert response.status_code == 302
    return reverse("shared-result", args=[SharedResult.objects.get(seat=game.seat(party)).token])


def test_a_stranger_with_the_link_sees_who_took_what_and_no_value_word_or_name() -> None:
    game = played(people=(B1, SELLER), consent="public")
    page = browser().get(shared(game)).content.decode()
    scenario = game.scenario
    assert faults(page) == []
    assert "Bought at $60.00 and took" in page
    assert "Against a person" in page
    for cents in (scenario.buyer_values_cents[0][0], scenario.seller_values_cents[0]):
        assert format_amount(cents, scenario.currency) not in page
    for one in game.people.values():
        assert one.pseudonym not in page
    assert game.room.public_id not in page


@pytest.mark.parametrize(
    ("price_cents", "buyer_reads", "seller_reads"),
    [
        (9_500, "Bought at $95.00, at a loss", "Sold for $95.00 and took all there was to share, and more"),
        (3_500, "Bought at $35.00 and took all there was to share, and more", "Sold for $35.00, at a loss"),
    ],
)
def test_a_deal_beyond_somebodys_value_is_told_in_words(price_cents: int, buyer_reads: str, seller_reads: str) -> None:
    game = played(people=(B1, SELLER), price_cents=price_cents, consent="public")
    for party, reads in ((B1, buyer_reads), (SELLER, seller_reads)):
        assert reads in browser().get(shared(game, party)).content.decode()


def test_previews_get_a_title_a_text_and_a_picture_of_their_size() -> None:
    where = shared(played(people=(B1, SELLER), consent="public"))
    page = browser().get(where).content.decode()
    tags = dict(re.findall(r'<meta property="(og:[\w:]+)" content="([^"]*)"', page))
    assert tags["og:url"].endswith(where)
    assert (tags["og:image:width"], tags["og:image:height"], tags["og:image:type"]) == ("1200", "630", "image/png")
    answer = browser().get(re.sub(r"^https?://[^/]+", "", tags["og:image"]))
    assert answer["Content-Type"] == "image/png"
    with Image.open(BytesIO(answer.content)) as picture:
        assert picture.size == (drawing.WIDTH, drawing.HEIGHT)
    assert len(answer.content) < 150_000


def test_the_own_pseudonym_is_said_only_where_it_was_asked_for() -> None:
    game = played(people=(B1, SELLER), consent="public")
    page = browser().get(shared(game, named="yes")).content.decode()
    assert game.people[B1].pseudonym in page
    assert game.people[SELLER].pseudonym not in page
    assert game.people[B1].pseudonym not in browser().get(shared(game)).content.decode()


def test_a_link_taken_back_leads_nowhere_and_a_new_one_is_another() -> None:
    game = played(people=(B1, SELLER), consent="public")
    first = shared(game)
    browser(game.people[B1]).post(share_page(game), {"act": "take-back"})
    assert browser().get(first).status_code == 404
    assert browser().get(f"{first}card.png").status_code == 404
    assert shared(game) != first


@pytest.mark.parametrize("scope", ["research", "private"])
def test_what_another_person_did_not_give_as_open_data_stays_between_the_two(scope: str) -> None:
    game = played(people=(B1, SELLER), consent="public")
    where = shared(game)
    services.choose_consent(seat=game.seat(SELLER), scope=scope, version=CONSENT_VERSION)
    assert browser().get(where).status_code == 404
    assert browser().get(f"{where}card.png").status_code == 404
    assert "stays between you" in browser(game.people[B1]).get(share_page(game)).content.decode()
    SharedResult.objects.all().delete()
    browser(game.people[B1]).post(share_page(game), {"act": "make"})
    assert not SharedResult.objects.exists()


def test_a_game_against_agents_is_the_own_persons_to_show_whoever_it_is_kept_for() -> None:
    game = played(consent=ConsentScope.PRIVATE)
    assert "No deal: what there was to share went to nobody" in browser().get(shared(game)).content.decode()


def test_a_market_that_keeps_values_shows_no_share_to_anybody() -> None:
    game = played(people=(B1, SELLER), consent="public")
    where = shared(game)
    Market.objects.update(reveals_values=False)
    assert browser().get(where).status_code == 404
    assert "its results stay at the table" in browser(game.people[B1]).get(share_page(game)).content.decode()


def test_neither_a_game_that_goes_on_nor_one_of_a_study_is_shown() -> None:
    going = staged(bilateral(), people=(B1,))
    browser(going.people[B1]).post(share_page(going), {"act": "make"})
    kept = played(consent="public")
    Room.objects.filter(pk=kept.room.pk).update(keeper="study")
    browser(kept.people[B1]).post(share_page(kept), {"act": "make"})
    assert not SharedResult.objects.exists()


def test_nobody_but_whoever_sat_there_makes_or_takes_back_a_link() -> None:
    game = played(people=(B1, SELLER), consent="public")
    for stranger in (browser(), browser(person())):
        assert stranger.get(share_page(game)).status_code == 404
        assert stranger.post(share_page(game), {"act": "make"}).status_code == 404
    where = shared(game)
    browser(game.people[SELLER]).post(share_page(game), {"act": "take-back"})
    assert browser().get(where).status_code == 200
    assert Seat.objects.filter(shared__isnull=False).count() == 1


def test_erasing_a_person_takes_their_links_away() -> None:
    game = played(consent="public")
    where = shared(game, named="yes")
    erasure.erase(participant=game.people[B1])
    assert browser().get(where).status_code == 404
    assert not SharedResult.objects.exists()


def test_a_title_in_letters_that_the_typeface_lacks_is_drawn_without_them() -> None:
    assert drawing.drawable("Ärger über Øre, −5\u00a0% 漢字") == "Ärger über Øre, −5 %"
    assert drawing.lines_of("word " * 60, drawing.face(60), width=600, most=2)[1].endswith("…")
