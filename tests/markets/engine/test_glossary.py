"""docs/glossary.md: every word that a figure or a page uses is explained, in the form the page reads."""

import re
from functools import cache
from pathlib import Path

import msgspec
import pytest

from markets.engine.metrics import DealOutcome, Outcome, Summary

ROOT = Path(__file__).parents[3]
LABELS = ("Formula", "In code", "Source", "On pages")
NO_TERM = {
    "episodes": "a plain count",
    "end_reason": "told in protocol.md",
    "buyer": "a seat",
    "product": "told in protocol.md",
    "price_cents": "told in protocol.md",
    "seller_messages": "a plain count",
    "buyer_messages": "a plain count",
    "mean_turns": "a mean of seller_messages",
}
"""Fields of the metrics that need no entry, and why."""


@cache
def entries() -> dict[str, list[str]]:
    """Term -> its lines, blank ones left out."""
    text = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    parts = re.split(r"^## ", text, flags=re.MULTILINE)[1:]
    return {
        part.splitlines()[0].strip(): [line.strip() for line in part.splitlines()[1:] if line.strip()] for part in parts
    }


def labelled(term: str, label: str) -> str:
    """Text of a labelled line, empty where there is none."""
    return next((line.partition(":")[2].strip() for line in entries()[term] if line.startswith(f"{label}:")), "")


def code_names() -> set[str]:
    return {name for term in entries() for name in re.findall(r"`([^`]+)`", labelled(term, "In code"))}


@cache
def words_of_the_code() -> set[str]:
    packages = ("markets", "agents", "negotiation_site/studies")
    source = [path for package in packages for path in (ROOT / package).rglob("*.py")]
    return {word for path in source for word in re.findall(r"\w+", path.read_text(encoding="utf-8"))}


def test_terms_are_in_alphabetical_order_and_told_once() -> None:
    text = (ROOT / "docs" / "glossary.md").read_text(encoding="utf-8")
    headings = re.findall(r"^## (.+)$", text, re.MULTILINE)
    assert headings == sorted(set(headings), key=str.lower)


@pytest.mark.parametrize("term", entries())
def test_an_entry_opens_with_a_plain_sentence(term: str) -> None:
    """A player reads this line alone; no formula, no name of the code, no term of art explained by another."""
    first = entries()[term][0]
    assert re.fullmatch(r"[A-Z][^`÷Σρ=]{15,170}\.", first), first


@pytest.mark.parametrize("term", entries())
def test_an_entry_says_where_it_comes_from_or_where_it_is_in_the_code(term: str) -> None:
    assert labelled(term, "Source") or labelled(term, "In code")


@pytest.mark.parametrize("term", entries())
def test_labels_stand_once_in_their_order_at_the_end(term: str) -> None:
    """The glossary page reads them line by line; a wrapped formula would be cut."""
    found = [
        line.partition(":")[0] for line in entries()[term] if line.startswith(tuple(f"{each}:" for each in LABELS))
    ]
    assert found == [label for label in LABELS if label in found]
    tail = entries()[term][len(entries()[term]) - len(found) :]
    assert [line.partition(":")[0] for line in tail] == found


def test_amounts_and_fractions_say_so() -> None:
    for term in entries():
        formula = labelled(term, "Formula")
        if re.search(r"[÷×Σ−]", formula):
            assert re.search(r"Unit: (fraction|cents|square cents|multiples of the scale)\.$", formula), term


def test_every_name_of_the_code_exists_there() -> None:
    assert code_names() <= words_of_the_code()


@pytest.mark.parametrize("struct", [Summary, Outcome, DealOutcome], ids=lambda struct: struct.__name__)
def test_every_figure_of_the_metrics_has_an_entry(struct: type[msgspec.Struct]) -> None:
    fields = {field.name for field in msgspec.structs.fields(struct)}
    properties = {name for name, value in vars(struct).items() if isinstance(value, property)}
    assert (fields | properties) - NO_TERM.keys() <= code_names()


@pytest.mark.parametrize(
    "term",
    [
        "Allocation quality",
        "Aspiration",
        "BATNA",
        "Concession",
        "Concession rate",
        "Deal rate",
        "First best",
        "Impasse",
        "Joint surplus",
        "Opening offer",
        "Prior",
        "Reservation value",
        "Seller turns",
        "Standing offer",
        "Surplus",
        "Surplus share",
        "Welfare",
        "Zone of possible agreement",
    ],
)
def test_the_vocabulary_of_the_discipline_is_complete(term: str) -> None:
    assert term in entries()
