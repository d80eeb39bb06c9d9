"""Files that are no catalogue at all: the person is told what is wrong with which file."""

import pytest

from markets.importers import FORMATS, CatalogueError
from markets.importers.files import read_text


@pytest.mark.parametrize("name", FORMATS)
def test_a_missing_file_is_named(tmp_path, name):
    with pytest.raises(CatalogueError, match=r"There is no file .*absent\.dat"):
        FORMATS[name](tmp_path / "absent.dat")


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("content", [b"", b"  \r\n\n", b"\xef\xbb\xbf", b"\xef\xbb\xbf \n"])
def test_an_empty_file_is_called_empty(tmp_path, name, content):
    path = tmp_path / "empty.dat"
    path.write_bytes(content)
    with pytest.raises(CatalogueError, match=r"empty\.dat' is empty"):
        FORMATS[name](path)


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("content", [b"[\n\xff]", "[\ntitle".encode("utf-16"), b"[\nCaf\xe9\n"])
def test_bytes_that_are_not_utf_8_are_told_with_their_line(tmp_path, name, content):
    path = tmp_path / "latin.dat"
    path.write_bytes(content)
    with pytest.raises(CatalogueError, match=r"latin\.dat' is not UTF-8 text: line [12] "):
        FORMATS[name](path)


def test_a_folder_is_no_csv_file(tmp_path):
    with pytest.raises(CatalogueError, match="is not a file"):
        FORMATS["csv"](tmp_path)


def test_the_byte_order_mark_of_a_spreadsheet_is_not_part_of_the_text(tmp_path):
    path = tmp_path / "bom.csv"
    path.write_bytes(b"\xef\xbb\xbftitle\r\n")
    assert read_text(path) == "title\r\n"


def test_half_an_emoji_costs_its_row_and_not_the_file(tmp_path):
    path = tmp_path / "half.csv"
    path.write_bytes(b"a \xed\xa0\xbd b")
    assert read_text(path) == "a \ud83d b"
