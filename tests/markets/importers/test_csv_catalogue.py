"""CSV catalogues: good rows go in, each bad one is reported by file and line."""

import pytest

from markets.importers import FORMATS, BadRow, CatalogueError, ProductRow
from markets.importers.csv_catalogue import read

HEADER = "sku,title,category,list_price,lowest_price,highest_price,stock,text\n"
GOOD = "d1,Oak desk,furniture,480,250,600,2,Three drawers.\n"
ALSO_GOOD = 'd2,"Lamp, brass",lights,"1,045.50",20,50,1,"Two\nlines, one ""quote""."\n'


@pytest.fixture
def catalogue(tmp_path):
    def write(content: str | bytes):
        path = tmp_path / "mine.csv"
        path.write_bytes(content if isinstance(content, bytes) else content.encode("utf-8"))
        return path

    return write


def products(rows) -> list[ProductRow]:
    return [row for row in rows if isinstance(row, ProductRow)]


def bad(rows) -> list[BadRow]:
    return [row for row in rows if isinstance(row, BadRow)]


def test_every_column_arrives(catalogue):
    first, second = read(catalogue(HEADER + GOOD + ALSO_GOOD))
    assert first == ProductRow(
        sku="d1",
        title="Oak desk",
        category="furniture",
        list_price_cents=48_000,
        lowest_price_cents=25_000,
        highest_price_cents=60_000,
        stock=2,
        text="Three drawers.",
        source="mine.csv:2",
    )
    assert second.title == "Lamp, brass"
    assert second.list_price_cents == 104_550
    assert second.text == 'Two\nlines, one "quote".'
    assert second.source == "mine.csv:3"


def test_the_format_is_registered_under_its_command_line_name():
    assert FORMATS["csv"] is read


def test_a_file_as_a_spreadsheet_saves_it_is_read(catalogue):
    windows = b"\xef\xbb\xbf" + (HEADER + GOOD).replace("\n", "\r\n").encode() + b",,,,,,,\r\n\r\n"
    assert [row.title for row in products(read(catalogue(windows)))] == ["Oak desk"]
    assert bad(read(catalogue(windows))) == []


def test_old_line_ends_are_counted_as_lines(catalogue):
    path = catalogue((HEADER + GOOD + "bad\n").replace("\n", "\r"))
    assert [row.line for row in bad(read(path))] == [3]


def test_columns_may_come_in_any_order_and_case_and_the_optional_ones_not_at_all(catalogue):
    path = catalogue("Highest_Price, lowest_price ,TITLE,list_price\n9,3,Café chair,7\n")
    (row,) = read(path)
    assert (row.title, row.list_price_cents) == ("Café chair", 700)
    assert (row.lowest_price_cents, row.highest_price_cents) == (300, 900)
    assert (row.sku, row.category, row.stock, row.text) == ("cafe-chair", "other", 1, "")


def test_rows_without_a_sku_get_one_that_is_theirs_alone_and_lasts(catalogue):
    path = catalogue("title,list_price,lowest_price,highest_price\n" + "Chair,9,3,9\n" * 3 + "机,9,3,9\n")
    skus = [row.sku for row in read(path)]
    assert skus == ["chair", "chair-2", "chair-3", "product"]
    assert skus == [row.sku for row in read(path)]


def test_a_repeated_sku_is_refused_with_the_line_that_has_it(catalogue):
    rows = list(read(catalogue(HEADER + GOOD + GOOD)))
    assert [row.line for row in bad(rows)] == [3]
    assert "taken by line 2" in bad(rows)[0].reason


def test_a_refused_row_does_not_take_its_sku(catalogue):
    rows = list(read(catalogue(HEADER + GOOD.replace("480", "0") + GOOD)))
    assert [row.source for row in products(rows)] == ["mine.csv:3"]


@pytest.mark.parametrize(
    ("line", "reason"),
    [
        ("b1,,c,480,250,600,1,x", "title is missing"),
        ("b1,Desk,c,,250,600,1,x", "list_price is missing"),
        ("b1,Desk,c,cheap,250,600,1,x", "list_price 'cheap' cannot be used"),
        ('b1,Desk,c,480,"12,50",600,1,x', "lowest_price '12,50' cannot be used"),
        ("b1,Desk,c,480,250,-600,1,x", "cannot be negative"),
        ("b1,Desk,c,0,250,600,1,x", "at least 0.01"),
        ("b1,Desk,c,NaN,250,600,1,x", "list_price 'NaN' cannot be used"),
        ("b1,Desk,c,1e99,250,600,1,x", "list_price '1e99' cannot be used"),
        ("b1,Desk,c,480,601,600,1,x", "above the highest_price"),
        ("b1,Desk,c,480,250,600,0,x", "stock '0' is not a whole number"),
        ("b1,Desk,c,480,250,600,-3,x", "stock '-3' is not a whole number"),
        ("b1,Desk,c,480,250,600,two,x", "stock 'two' is not a whole number"),
        ("b1," + "D" * 301 + ",c,480,250,600,1,x", "title has 301 characters"),
        ("b1,Desk,c,480,250,600,1", "7 columns and the header has 8"),
        ("b1,Desk,c,480,250,600,1,x,y", "9 columns and the header has 8"),
        ("b1,Desk,c,1,045.50,250,600,1,x", "9 columns and the header has 8"),
        ('b1,"Desk"s,c,480,250,600,1,x', "quotation mark"),
        ('b1,"Desk,c,480,250,600,1,x', "quotation mark"),
        ("b1,Desk\0,c,480,250,600,1,x", "unprintable"),
        ("b1,Desk \ud83d,c,480,250,600,1,x", "half of an emoji"),
    ],
)
def test_a_bad_row_is_reported_by_file_and_line_and_the_rest_goes_in(catalogue, line, reason):
    path = catalogue((HEADER + GOOD + line + "\n" + ALSO_GOOD).encode("utf-8", errors="surrogatepass"))
    rows = list(read(path))
    assert [row.sku for row in products(rows)] == ["d1", "d2"]
    (report,) = bad(rows)
    assert (report.path, report.line) == (str(path), 3)
    assert reason in report.reason
    assert report.reason.endswith(".")
    assert report.reason[0].isupper()


def test_lines_are_counted_through_rows_of_several_lines(catalogue):
    rows = list(read(catalogue(HEADER + ALSO_GOOD + "bad\n" + GOOD + "worse\n")))
    assert [row.line for row in bad(rows)] == [4, 6]
    assert len(products(rows)) == 2


def test_an_unknown_column_is_reported_and_costs_no_row(catalogue):
    rows = list(read(catalogue(HEADER.replace("stock", "stok") + GOOD)))
    assert [row.stock for row in products(rows)] == [1]
    assert [(row.line, "'stok'" in row.reason) for row in bad(rows)] == [(1, True)]


@pytest.mark.parametrize(
    ("header", "sentence"),
    [
        ("title,list_price\n", "lacks lowest_price, highest_price"),
        (GOOD, "lacks title"),
        (HEADER.replace(",", ";"), "not separated by commas"),
        (HEADER.replace(",", "\t"), "not separated by commas"),
        ("title," + HEADER, "names title twice"),
        ('"title,list_price\n', "header in line 1"),
    ],
)
def test_a_header_of_another_table_is_refused_before_any_row(catalogue, header, sentence):
    with pytest.raises(CatalogueError, match=sentence):
        read(catalogue(header + GOOD))


def test_a_header_without_products_is_no_catalogue(catalogue):
    with pytest.raises(CatalogueError, match="no products"):
        read(catalogue(HEADER + "\n,,,,,,,\n"))
