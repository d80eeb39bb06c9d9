"""Craigslist listings: the file as it was collected, and what happens to damaged copies of it."""

import json
from collections import Counter
from io import StringIO
from pathlib import Path

import pytest
from django.core.management import call_command

from markets.importers import FORMATS, BadRow, CatalogueError, ProductRow
from markets.importers.craigslist_listings import read
from markets.models import Product


def listing(**changes: object) -> dict[str, object]:
    fields: dict[str, object] = {
        "category": "bike",
        "description": ["Good condition.", "", "Rides well & fast <b>really</b>."],
        "title": "BEACH CRUISER",
        "price": 300,
        "image_urls": ["https://images.craigslist.org/00G0G_9VtDlKm11Zt_600x450.jpg"],
        "post_id": "6144370082",
        "attrs": {},
        "item": "Felt",
        "images": ["bike/6144370082_0.jpg"],
    }
    return fields | changes


@pytest.fixture
def file(tmp_path):
    def write(content: object, name: str = "craigslist_bike.json") -> Path:
        path = tmp_path / name
        text = content if isinstance(content, str) else json.dumps(content, indent=1)
        path.write_text(text, encoding="utf-8")
        return path

    return write


@pytest.fixture(scope="module")
def folder(parley_data: Path) -> Path:
    path = parley_data / "craigslist_listings"
    if not path.is_dir():
        pytest.skip(f"no craigslist_listings in {parley_data}")
    return path


# The data set itself


def test_every_record_of_the_collection_goes_in_or_is_reported(folder):
    records = [record for path in sorted(folder.glob("*.json")) for record in json.loads(path.read_text("utf-8"))]
    rows = list(read(folder))
    good = [row for row in rows if isinstance(row, ProductRow)]
    bad = [row for row in rows if isinstance(row, BadRow)]
    assert len(rows) == len(records)
    assert len(bad) == sum(record["price"] <= 1 for record in records)
    assert all("is a placeholder" in row.reason for row in bad)
    assert len({row.sku for row in good}) == len(good)
    kept = [record for record in records if record["price"] > 1]
    assert [row.list_price_cents for row in good] == [100 * record["price"] for record in kept]
    assert [row.title for row in good] == [" ".join(record["title"].split()) for record in kept]
    assert Counter(row.category for row in good) == Counter(record["category"] for record in kept)


@pytest.mark.django_db
def test_the_command_imports_the_unedited_file_and_counts(folder):
    out, err = StringIO(), StringIO()
    path = folder / "craigslist_bike.json"
    call_command(
        "import_catalogue", str(path), "--format", "craigslist-listings", "--name", "bikes", "--json",
        stdout=out, stderr=err,
    )  # fmt: skip
    told = json.loads(out.getvalue())
    assert (told["products"], told["skipped"]) == (1361, 12)
    assert Product.objects.filter(catalogue__slug="bikes").count() == 1361
    assert err.getvalue().count("is a placeholder") == 12


# Single records


def test_the_format_is_registered_under_its_command_line_name():
    assert FORMATS["craigslist-listings"] is read


def test_a_listing_becomes_a_row(file):
    assert list(read(file([listing()]))) == [
        ProductRow(
            sku="6144370082",
            title="BEACH CRUISER",
            category="bike",
            list_price_cents=30_000,
            lowest_price_cents=15_000,
            highest_price_cents=30_000,
            text="Good condition.\n\nRides well & fast <b>really</b>.",
            image_url="https://images.craigslist.org/00G0G_9VtDlKm11Zt_600x450.jpg",
            source="craigslist_bike.json:2, record 1",
        )
    ]


@pytest.mark.parametrize(
    ("price", "cents"), [(2, 200), (48_000, 4_800_000), (12.5, 1_250), ("$1,300", 130_000), ("85", 8_500)]
)
def test_prices_are_read_as_dollars(file, price, cents):
    (row,) = read(file([listing(price=price)]))
    assert (row.list_price_cents, row.lowest_price_cents, row.highest_price_cents) == (cents, cents // 2, cents)


@pytest.mark.parametrize(
    ("changes", "reason"),
    [
        ({"price": 1}, "The price 1 is a placeholder"),
        ({"price": 0}, "Record 2: "),
        ({"price": -5}, "Record 2: "),
        ({"price": None}, "The price is missing"),
        ({"price": True}, "The price is no amount"),
        ({"price": [300]}, "The price is no amount"),
        ({"price": float("nan")}, "Record 2: "),
        ({"price": 10**40}, "Record 2: "),
        ({"price": "make an offer"}, "Record 2: "),
        ({"title": ""}, "The title is missing"),
        ({"title": 7}, "The title is not text"),
        ({"title": "half an emoji \ud83d"}, "half of an emoji"),
        ({"description": {"a": 1}}, "The description is not a list of paragraphs"),
        ({"description": ["x" * 20_001]}, "The text has 20,001 characters"),
    ],
    ids=lambda item: ", ".join(item) if isinstance(item, dict) else "",
)
def test_a_bad_listing_is_reported_by_file_and_line_and_the_rest_goes_in(file, changes, reason):
    path = file([listing(post_id="1"), listing(post_id="2", **changes), listing(post_id="3")])
    first, bad, last = read(path)
    assert (first.sku, last.sku) == ("1", "3")
    assert isinstance(bad, BadRow)
    assert reason in bad.reason
    assert (bad.path, bad.line > 2) == (str(path), True)


def test_a_listing_without_post_or_category_is_named_by_its_file_and_place(file):
    (row,) = read(file([listing(post_id="", category="")]))
    assert (row.sku, row.category) == ("craigslist_bike-0001", "craigslist_bike")


def test_the_same_post_twice_is_two_rows(file):
    assert [row.sku for row in read(file([listing(), listing()]))] == ["6144370082", "6144370082-2"]


def test_a_description_in_one_piece_and_none_at_all_are_both_read(file):
    rows = list(read(file([listing(description="One piece."), listing(description=None), listing(image_urls=[])])))
    assert [row.text for row in rows][:2] == ["One piece.", ""]
    assert rows[2].image_url == ""


@pytest.mark.parametrize("addresses", [["javascript:alert(1)"], [7], ["https://a b"], "https://x", None])
def test_an_odd_picture_address_is_dropped_and_the_listing_kept(file, addresses):
    (row,) = read(file([listing(image_urls=addresses)]))
    assert row.image_url == ""


@pytest.mark.parametrize("content", ["[", "{}", "[{]", '[{"price": 3}', "[]", ""])
def test_a_file_that_is_no_list_of_listings_is_refused(file, content):
    with pytest.raises(CatalogueError, match=r"craigslist_bike\.json"):
        read(file(content))
