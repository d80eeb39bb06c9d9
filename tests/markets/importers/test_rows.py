"""Checks of single rows: what gets past these reaches rooms, prompts and exports as it is."""

import msgspec
import pytest

from markets.engine.money import MAX_PRICE_CENTS
from markets.importers.rows import (
    MAX_CATEGORY_CHARACTERS,
    MAX_SKU_CHARACTERS,
    MAX_TEXT_CHARACTERS,
    MAX_TITLE_CHARACTERS,
    ProductRow,
    RowError,
    catalogue_amount,
    product_row,
)


def row(**changes: str) -> ProductRow:
    fields = {
        "sku": "desk-1",
        "title": "Oak desk",
        "list_price": "480.00",
        "lowest_price": "250",
        "highest_price": "$1,600.50",
        "source": "here.csv:2",
    }
    return product_row(**(fields | changes))


def test_a_plain_row_becomes_cents_and_defaults():
    assert row() == ProductRow(
        sku="desk-1",
        title="Oak desk",
        category="other",
        list_price_cents=48_000,
        lowest_price_cents=25_000,
        highest_price_cents=160_050,
        text="",
        stock=1,
        image_url="",
        source="here.csv:2",
    )


def test_a_row_cannot_be_changed_after_it_was_checked():
    with pytest.raises(AttributeError):
        row().title = "Something else"


@pytest.mark.parametrize(
    ("typed", "cents"),
    [("8.21", 821), ("$1,299.00", 129_900), (" 12 ", 1_200), ("0.01", 1), (".5", 50)],
)
def test_amounts_are_read_as_catalogues_write_them(typed, cents):
    assert catalogue_amount(typed) == cents


@pytest.mark.parametrize("field", ["list_price", "lowest_price", "highest_price"])
@pytest.mark.parametrize(
    "typed",
    [
        "12,50",
        "1.234,50",
        "0",
        "0.00",
        "-4",
        "−4",
        "NaN",
        "inf",
        "1e3",
        "1e99",
        "9" * 30,
        "12.345",
        "€12",
        "twelve",
        "١٢",
        "12 or 13",
        "\ud83d",
        "$",
    ],
)
def test_an_unreadable_price_names_its_field_and_its_text(field, typed):
    with pytest.raises(RowError) as problem:
        row(**{field: typed})
    sentence = str(problem.value)
    assert sentence.startswith(f"The {field} ")
    assert repr(typed) in sentence
    sentence.encode("utf-8")


@pytest.mark.parametrize("field", ["list_price", "lowest_price", "highest_price"])
def test_a_blank_price_is_called_missing(field):
    with pytest.raises(RowError, match=f"The {field} is missing"):
        row(**{field: "  "})


def test_the_largest_price_of_the_engine_is_also_the_catalogues():
    largest = f"{MAX_PRICE_CENTS // 100}"
    assert row(list_price=largest).list_price_cents == MAX_PRICE_CENTS
    with pytest.raises(RowError, match="list_price"):
        row(list_price=f"{largest}.01")


def test_a_lowest_price_above_the_highest_is_refused_and_an_equal_one_is_not():
    with pytest.raises(RowError, match=r"'1,600.51' is above the highest_price"):
        row(lowest_price="1,600.51")
    assert row(lowest_price="1600.50").lowest_price_cents == 160_050


def test_a_highest_price_below_the_list_price_is_a_fact_and_stays():
    assert row(highest_price="470").highest_price_cents == 47_000


@pytest.mark.parametrize("title", ["", "   ", "\n\t"])
def test_a_missing_title_is_refused(title):
    with pytest.raises(RowError, match="The title is missing"):
        row(title=title)


def test_a_title_is_brought_onto_one_line():
    assert row(title="  Oak\n  desk,\t1960s ").title == "Oak desk, 1960s"


@pytest.mark.parametrize(
    ("field", "limit"),
    [
        ("sku", MAX_SKU_CHARACTERS),
        ("title", MAX_TITLE_CHARACTERS),
        ("category", MAX_CATEGORY_CHARACTERS),
        ("text", MAX_TEXT_CHARACTERS),
    ],
)
def test_text_of_the_longest_length_passes_and_one_character_more_does_not(field, limit):
    assert getattr(row(**{field: "x" * limit}), field) == "x" * limit
    with pytest.raises(RowError, match=f"The {field} has {limit + 1:,} characters"):
        row(**{field: "x" * (limit + 1)})


@pytest.mark.parametrize("field", ["sku", "title", "category", "text"])
def test_half_an_emoji_is_refused_before_it_can_break_an_export(field):
    with pytest.raises(RowError, match=f"The {field} holds half of an emoji"):
        row(**{field: "Desk \ud83d"})


@pytest.mark.parametrize("field", ["sku", "title", "category", "text"])
def test_a_control_character_is_refused_before_a_database_chokes_on_it(field):
    with pytest.raises(RowError, match=f"The {field} holds an unprintable character"):
        row(**{field: "Desk\x00top"})


def test_a_whole_emoji_and_other_scripts_are_kept():
    title = "Schreibtisch 🪑 œuvre 机"
    assert row(title=title, text=title).title == title
    assert msgspec.json.decode(msgspec.json.encode(row(title=title)), type=ProductRow).title == title


def test_a_text_keeps_its_paragraphs():
    assert row(text="\r\nOne.\r\nTwo.\rThree.\n\n").text == "One.\nTwo.\nThree."


@pytest.mark.parametrize(("typed", "units"), [("", 1), ("1", 1), (" 12 ", 12), ("007", 7)])
def test_stock_is_a_positive_whole_number_or_one(typed, units):
    assert row(stock=typed).stock == units


@pytest.mark.parametrize("typed", ["0", "000", "-1", "1.5", "1e3", "many", "²", "١", "1000001", "9" * 5000])
def test_any_other_stock_is_refused(typed):
    with pytest.raises(RowError, match=r"The stock .* is not a whole number from 1"):
        row(stock=typed)


def test_a_plain_image_address_is_kept():
    assert row(image_url="https://pictures.example/a.jpg").image_url.endswith("/a.jpg")


@pytest.mark.parametrize(
    "address",
    [
        "javascript:alert(1)",
        "data:image/png;base64,AAAA",
        "//pictures.example/a.jpg",
        "https://",
        "https://[::1",
        'https://pictures.example/"onerror=',
        "https://pictures.example/a b.jpg",
        "https://pictures.example/" + "a" * 600,
    ],
)
def test_an_odd_image_address_is_refused(address):
    with pytest.raises(RowError, match="image_url"):
        row(image_url=address)
