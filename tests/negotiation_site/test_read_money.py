"""Prices that people type in talk: what the reader's commands promise to whoever scripts them."""

import io
import json
import sys
from pathlib import Path

import pytest
from django.core.management import CommandError, call_command

from markets.importers.craigslist_bargain import Dialogue, Line
from negotiation_site.reader_score import score


def _read(monkeypatch: pytest.MonkeyPatch, raw: bytes, *arguments: str) -> list[dict[str, object]]:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(raw)))
    out = io.StringIO()
    call_command("read_money", "--json", *arguments, stdout=out)
    return [json.loads(line) for line in out.getvalue().splitlines()]


def test_every_line_gets_one_answer_in_order(monkeypatch):
    raw = "how about 120?\n\n€ 45,00\nnot more than 90\n".encode() + b"\xff\xed\xa0\x80\n"
    rows = _read(monkeypatch, raw)
    assert [row["kind"] for row in rows] == ["offer", "none", "offer", "negated", "none"]
    assert [row["amount"] for row in rows] == ["120.00", None, "45.00", None, None]
    assert [row["currency"] for row in rows] == ["USD", "USD", "EUR", "USD", "USD"]


def test_a_language_decides_what_one_mark_means(monkeypatch):
    assert _read(monkeypatch, b"how about 3.350?")[0]["kind"] == "ambiguous"
    assert _read(monkeypatch, b"how about 3.350?", "--locale", "de")[0]["amount"] == "3350.00"
    assert _read(monkeypatch, b"how about 3.350?", "--locale", "pt_BR")[0]["amount"] == "3350.00"


def test_no_text_is_no_answer(monkeypatch):
    assert _read(monkeypatch, b"") == []


def _dialogue(*texts: str, deal_cents: int | None, offers_cents: tuple[int, ...] = ()) -> Dialogue:
    lines = tuple(Line(place % 2, text) for place, text in enumerate(texts))
    return Dialogue(uuid="x", list_price_cents=10_000, lines=lines, offers_cents=offers_cents, deal_cents=deal_cents)


def test_a_wrong_final_price_lowers_the_score():
    right = _dialogue("how about 80?", "ok 90", deal_cents=9_000, offers_cents=(9_000,))
    wrong = _dialogue("how about 80?", "deal", deal_cents=9_000, offers_cents=(9_000,))
    figures = score([right, wrong])
    assert figures["final_price_accuracy"] == 0.5
    assert figures["offer_recall"] == 1.0
    assert figures["messages"] == 4


def test_a_reduction_comes_off_the_price_before_it():
    assert score([_dialogue("50?", "I can take $5 off", deal_cents=4_500)])["final_price_accuracy"] == 1.0


def test_nothing_to_count_is_none_and_not_zero():
    figures = score([])
    assert figures["final_price_accuracy"] is None
    assert figures["offer_precision"] is None


@pytest.mark.parametrize("text", ['{"a": 1}', "[1, 2", '[{"uuid": "x"}]'], ids=["object", "truncated", "other-records"])
def test_a_file_of_another_kind_is_refused_with_a_sentence(tmp_path, text):
    path = tmp_path / "corpus.json"
    path.write_text(text)
    with pytest.raises(CommandError, match=r"\.$") as refusal:
        call_command("score_money_reader", str(path), "--corpus", "craigslist-bargain")
    assert refusal.value.returncode == 2


def test_people_are_read_better_than_by_their_last_number(parley_data: Path):
    corpus = parley_data / "craigslist_bargain" / "dev.json"
    out = io.StringIO()
    call_command("score_money_reader", str(corpus), "--corpus", "craigslist-bargain", "--json", stdout=out)
    figures = json.loads(out.getvalue())
    assert figures["final_price_accuracy"] >= 0.93
    assert figures["last_number_accuracy"] < 0.86
    assert figures["offer_precision"] >= 0.98
    assert figures["offer_recall"] >= 0.95
