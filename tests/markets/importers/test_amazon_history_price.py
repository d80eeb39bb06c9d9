"""AmazonHistoryPrice: all 930 products, and what happens to damaged copies of it."""

import json
import re
from collections import Counter
from pathlib import Path

import pytest

from markets.importers import FORMATS, BadRow, CatalogueError, ProductRow
from markets.importers.amazon_history_price import read

PRODUCTS_PER_CATEGORY = {
    "automotive": 7,
    "baby-products": 11,
    "beauty": 12,
    "books": 13,
    "electronics": 284,
    "health-personal-care": 2,
    "home-kitchen": 23,
    "industrial-scientific": 2,
    "movies-tv": 75,
    "music": 5,
    "other": 288,
    "patio-lawn-garden": 10,
    "pet-supplies": 5,
    "software": 4,
    "sports-outdoors": 16,
    "tools-home-improvement": 144,
    "toys-games": 22,
    "video-games": 7,
}


def record(**changes: object) -> dict[str, object]:
    fields: dict[str, object] = {
        "title": "House of Earth",
        "list_price": "$8.21",
        "lowest_price": "$2.99",
        "highest_price": "$1,016.09",
        "category": "books",
        "link": "https://prices.example/product/B07QBC8QTP?active=price",
        "img": "https://pictures.example/images/I/51n2SL82XlL._SY445_.jpg",
        "description": "From the Publisher\nA tale.\nRead more",
    }
    return fields | changes


@pytest.fixture
def file(tmp_path):
    def write(content: object, name: str = "books.json") -> Path:
        path = tmp_path / name
        text = content if isinstance(content, str) else json.dumps(content, indent=2)
        path.write_text(text, encoding="utf-8")
        return path

    return write


# The data set itself


@pytest.fixture(scope="module")
def data(parley_data) -> Path:
    folder = parley_data / "amazon_history_price"
    if not folder.is_dir():
        pytest.skip(f"there is no folder {folder}")
    return folder


@pytest.fixture(scope="module")
def rows(data) -> list[ProductRow]:
    found = list(read(data))
    assert [row for row in found if isinstance(row, BadRow)] == []
    return found


def test_all_930_products_go_in_with_their_categories(rows):
    assert len(rows) == 930
    assert Counter(row.category for row in rows) == PRODUCTS_PER_CATEGORY


def test_every_product_has_a_sku_and_a_source_of_its_own(rows):
    assert len({row.sku for row in rows}) == 930
    assert len({row.source for row in rows}) == 930


def test_prices_with_thousands_commas_are_read_whole(data, rows):
    raw = [entry for file in sorted(data.glob("*.json")) for entry in json.loads(file.read_bytes())]
    for column in ("list_price", "lowest_price", "highest_price"):
        expected = [int(re.sub(r"[$,.]", "", entry[column])) for entry in raw]
        assert [getattr(row, f"{column}_cents") for row in rows] == expected


def test_titles_keep_every_letter(data, rows):
    raw = [entry for file in sorted(data.glob("*.json")) for entry in json.loads(file.read_bytes())]
    repaired = {"Wifi\x96 TSR1-NA": "Wifi– TSR1-NA"}
    for row, entry in zip(rows, raw, strict=True):
        expected = entry["title"]
        for wrong, right in repaired.items():
            expected = expected.replace(wrong, right)
        assert row.title == " ".join(expected.split())
    assert any(not row.title.isascii() for row in rows)


def test_886_products_have_gains_from_trade_and_44_have_none(rows):
    # Buyer's value .8 x max(highest, list), seller's cost the lowest price: the bilateral game of
    # arXiv 2604.09855. Whole cents, so that no rounding decides a case.
    gains = [8 * max(row.highest_price_cents, row.list_price_cents) >= 10 * row.lowest_price_cents for row in rows]
    assert (gains.count(True), gains.count(False)) == (886, 44)


def test_a_source_names_the_line_on_which_the_record_starts(data, rows):
    for row in (rows[0], rows[400], rows[800]):
        place = re.fullmatch(r"(.+\.json):([0-9]+), record ([0-9]+)", row.source)
        assert place is not None
        text = (data / place[1]).read_text(encoding="utf-8")
        from_there = "".join(text.splitlines(keepends=True)[int(place[2]) - 1 :])
        assert json.loads(text)[int(place[3]) - 1]["title"] == row.title
        assert json.dumps(row.title, ensure_ascii=False) in from_there[:2_000]


def test_one_file_of_the_set_can_be_read_alone(data, rows):
    books = list(read(data / "books.json"))
    assert books == [row for row in rows if row.source.startswith("books.json:")]


def test_descriptions_lose_the_furniture_of_the_page_they_stood_on(rows):
    lines = {line.strip() for row in rows for line in row.text.splitlines()}
    assert lines.isdisjoint({"Read more", "› See more product details", "NA"})
    assert sum(bool(row.text) for row in rows) > 850


def test_images_are_plain_secure_addresses_or_absent(rows):
    assert all(re.match(r"https://[\w.-]+/", row.image_url) for row in rows if row.image_url)
    assert sum(bool(row.image_url) for row in rows) > 900


# Damaged copies


def test_the_format_is_registered_under_its_command_line_name():
    assert FORMATS["amazon-history-price"] is read


def test_a_record_becomes_a_row(file):
    (row,) = read(file([record()]))
    assert row == ProductRow(
        sku="B07QBC8QTP",
        title="House of Earth",
        category="books",
        list_price_cents=821,
        lowest_price_cents=299,
        highest_price_cents=101_609,
        text="A tale.",
        image_url="https://pictures.example/images/I/51n2SL82XlL._SY445_.jpg",
        source="books.json:2, record 1",
    )


def test_features_stand_in_for_a_missing_description(file):
    (row,) = read(file([record(description="NA", features="Strong.\nRead more")]))
    assert row.text == "Strong."


def test_windows_punctuation_taken_for_control_characters_is_put_back(file):
    (row,) = read(file([record(title="Radio \x96 it\x92s loud\x81")]))
    assert row.title == "Radio – it’s loud"


def test_a_record_without_link_picture_or_category_is_named_by_its_file_and_place(file):
    bare = record()
    for name in ("link", "img", "category", "description"):
        del bare[name]
    (row,) = read(file([bare], "garden.json"))
    assert (row.sku, row.category, row.image_url, row.text) == ("garden-0001", "garden", "", "")


def test_the_same_product_twice_is_two_rows(file):
    assert [row.sku for row in read(file([record()] * 3))] == [
        "B07QBC8QTP",
        "B07QBC8QTP-2",
        "B07QBC8QTP-3",
    ]


@pytest.mark.parametrize("address", ["javascript:alert(1)", "http://pictures.example/a.jpg", 'https://x/"><b>', "x"])
def test_an_odd_picture_address_is_dropped_and_the_product_kept(file, address):
    (row,) = read(file([record(img=address)]))
    assert row.image_url == ""


@pytest.mark.parametrize(
    ("broken", "reason"),
    [
        (record(title=""), "title is missing"),
        (record(title=None), "title is missing"),
        (record(title=7), "title is not text"),
        (record(title="Half \ud83d"), "half of an emoji"),
        (record(title="x" * 301), "title has 301 characters"),
        (record(description="a\u0000b"), "unprintable"),
        (record(description=["a"]), "description is not text"),
        (record(list_price=""), "list_price is missing"),
        (record(list_price=8.21), "list_price is not text"),
        (record(list_price=True), "list_price is not text"),
        (record(list_price="$12,50"), "list_price '$12,50' cannot be used"),
        (record(lowest_price="-$3.00"), "lowest_price '-$3.00' cannot be used"),
        (record(highest_price="NaN"), "highest_price 'NaN' cannot be used"),
        (record(lowest_price="$2,000.00"), "above the highest_price"),
        ("just text", "not a record"),
        (None, "not a record"),
        ([], "not a record"),
    ],
)
def test_a_bad_record_is_reported_by_file_and_line_and_the_rest_goes_in(file, broken, reason):
    path = file([record(), broken, record(title="After")])
    first, report, last = read(path)
    assert (first.title, last.title) == ("House of Earth", "After")
    assert isinstance(report, BadRow)
    assert (report.path, report.line) == (str(path), 2 + json.dumps(record(), indent=2).count("\n") + 1)
    assert report.reason.startswith("Record 2: ")
    assert reason in report.reason
    report.reason.encode("utf-8")


@pytest.mark.parametrize(
    "broken",
    [
        '{"title": "Lamp" "list_price": "$1"}',
        '{"title": }',
        '{"title": "12" tablet", "list_price": "$1"}',
        '{title: "Lamp", "tags": ["a", {"b": 1}]}',
        "tru",
        '{"number": ' + "9" * 5000 + "}",
        '{"line": "a\tb"}',
        "[" * 100_000 + "]" * 100_000,
    ],
)
def test_a_record_that_is_not_json_costs_only_itself(file, broken):
    good = json.dumps(record())
    path = file(f"[{good},\n{broken},\n{good}]")
    first, report, last = read(path)
    assert isinstance(first, ProductRow)
    assert isinstance(last, ProductRow)
    assert (report.path, report.line) == (str(path), 2)
    assert "not valid JSON" in report.reason


@pytest.mark.parametrize("keep", [0.2, 0.5, 0.99])
def test_a_file_cut_short_is_refused_before_any_row_comes_out(file, keep):
    whole = json.dumps([record(), record()], indent=2)
    with pytest.raises(CatalogueError, match=r"books\.json' is cut short"):
        read(file(whole[: int(len(whole) * keep)]))


@pytest.mark.parametrize(
    ("content", "sentence"),
    [
        ("{}", "does not hold a JSON list"),
        ("nothing of the kind", "does not hold a JSON list"),
        ("[]", "holds no products"),
        ("[", "cut short"),
        ("[{},", "cut short"),
        ("[{} {}]", "lacks a comma"),
        ("[{}] []", "goes on after the end"),
    ],
)
def test_a_file_that_is_no_list_of_products_is_refused(file, content, sentence):
    with pytest.raises(CatalogueError, match=sentence):
        read(file(content))


def test_a_cut_file_anywhere_in_a_folder_is_refused_at_once(file):
    folder = file([record()], "a.json").parent
    file("[{", "b.json")
    with pytest.raises(CatalogueError, match=r"b\.json' is cut short"):
        read(folder)


def test_a_folder_without_json_files_is_refused(tmp_path):
    (tmp_path / "README.md").write_text("nothing here")
    with pytest.raises(CatalogueError, match="holds no JSON file"):
        read(tmp_path)


def test_other_files_in_the_folder_are_passed_over(file):
    folder = file([record()]).parent
    (folder / "LICENSE").write_text("Apache")
    (folder / "README.md").write_bytes(b"\xff")
    assert len(list(read(folder))) == 1
