"""The starter world: what a visitor finds on a site that was installed a minute ago."""

import re
from collections import Counter
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import call_command

from markets.models import Episode, EpisodeText
from negotiation_site.starter import catalogue, games
from training.models import Tournament, TournamentStatus

PICTURES = Path(__file__).parents[2] / "static" / "img" / "categories"


@pytest.fixture(scope="module")
def products():
    return catalogue.load()


def test_there_is_enough_to_browse_in_every_category(products):
    sizes = Counter(product.category for product in products)
    assert len(products) >= 160
    assert len(sizes) >= 10
    assert min(sizes.values()) >= 10


def test_no_two_products_are_alike(products):
    for field in ("sku", "title", "text"):
        assert len({getattr(product, field) for product in products}) == len(products)


def test_every_product_can_be_haggled_over(products):
    for product in products:
        lowest_share = product.lowest_price_cents / product.list_price_cents
        highest_share = product.highest_price_cents / product.list_price_cents
        assert 0.34 <= lowest_share <= 0.76, product.title
        assert 0.95 <= highest_share <= 1.40, product.title
        assert 1 <= product.stock <= 12, product.title


def test_margins_and_prices_spread_into_tiers(products):
    margins = [product.lowest_price_cents / product.list_price_cents for product in products]
    assert sum(share < 0.45 for share in margins) >= 30
    assert sum(share > 0.60 for share in margins) >= 30
    dollars = [product.list_price_cents / 100 for product in products]
    assert min(dollars) < 10
    assert max(dollars) > 5_000
    assert all(
        sum(low <= price < high for price in dollars) >= 12
        for low, high in ((0, 50), (50, 120), (120, 300), (300, 900), (900, 6_001))
    )


def test_texts_are_one_to_three_sentences(products):
    for product in products:
        assert re.search(r"[.!?]$", product.text), product.title
        assert 1 <= len(re.findall(r"[.!?](?= [A-Z]|$)", product.text)) <= 3, product.title
        assert 30 <= len(product.text) <= 300, product.title


def test_texts_are_in_plain_typography(products):
    for product in products:
        assert not re.search(r"  |\n|[—–]", product.text), product.title


def test_every_category_has_a_picture_and_unknown_ones_have_the_default(products):
    names = {picture.stem for picture in PICTURES.glob("*.svg")}
    assert {product.category for product in products} | {"default"} <= names


def test_pictures_are_harmless_and_of_one_size():
    for picture in PICTURES.glob("*.svg"):
        drawing = picture.read_text(encoding="utf-8")
        assert 'viewBox="0 0 64 64"' in drawing, picture.name
        assert not re.search(r"<script|<style|style=|href|url\(|currentColor|\son\w+=", drawing)


def test_a_fault_in_our_own_catalogue_is_not_passed_over(tmp_path, monkeypatch):
    broken = tmp_path / "catalogue.csv"
    broken.write_text("title,list_price,lowest_price,highest_price\nDesk,0,1,2\n")
    monkeypatch.setattr(catalogue, "PATH", broken)
    with pytest.raises(catalogue.StarterCatalogueError, match=r"catalogue\.csv:2: The list_price"):
        catalogue.load()


@pytest.mark.django_db
def test_the_world_is_never_empty_and_is_the_same_every_time() -> None:
    call_command("seed_demo", stdout=StringIO())
    stored = Episode.objects.count()
    families = Counter(Episode.objects.values_list("family", flat=True))
    assert all(families[family] >= 36 for family in ("bilateral", "multi_buyer", "catalogue"))
    assert EpisodeText.objects.exists(), "games that people read have words"
    tournament = Tournament.objects.get(name=games.TOURNAMENT)
    assert (tournament.status, tournament.games.count()) == (TournamentStatus.DONE, 16 * games.TOURNAMENT_SCENARIOS)
    records = sorted(Episode.objects.values_list("record_sha256", flat=True))
    assert games.fill() == 0
    assert Episode.objects.count() == stored
    Tournament.objects.all().delete()
    EpisodeText.objects.all().delete()
    Episode.objects.all().delete()
    games.fill()
    assert sorted(Episode.objects.values_list("record_sha256", flat=True)) == records
