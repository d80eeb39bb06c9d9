"""The glossary page is the document, entry by entry."""

from pathlib import Path

import pytest
from django.conf import settings

from negotiation_site import glossary
from tests.markets.tabs import browser

DOCUMENT = """# Words

Introduction that is no entry.

## Reservation value

The price at which you are **indifferent** to no deal;
see [surplus](#surplus).

Formula: `value - price`
In code: `reservation_value_cents`
Source: Raiffa (1982)

## Zone of agreement

What lies between.
"""


@pytest.fixture
def base(tmp_path: Path) -> Path:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "glossary.md").write_text(DOCUMENT, encoding="utf-8")
    return tmp_path


def test_an_entry_is_read_with_its_formula_name_and_source(base):
    first, second = glossary.terms(base)
    assert (first.anchor, first.term) == ("reservation-value", "Reservation value")
    assert first.definition == "The price at which you are indifferent to no deal; see surplus."
    assert (first.formula, first.code_name, first.source) == (
        "value - price",
        "reservation_value_cents",
        "Raiffa (1982)",
    )
    assert (second.definition, second.formula, second.source) == ("What lies between.", "", "")


def test_every_entry_of_the_document_is_whole():
    terms = glossary.terms(Path(settings.BASE_DIR))
    assert len(terms) >= 15
    assert len({term.anchor for term in terms}) == len(terms)
    for term in terms:
        assert term.definition, term.term
        assert not set("`*[]") & set(term.definition), term.term


@pytest.mark.django_db
def test_the_page_shows_every_entry():
    html = browser().get("/glossary/").content.decode()
    for term in glossary.terms(Path(settings.BASE_DIR)):
        assert f'id="{term.anchor}"' in html
