"""Chosen negotiations give the same events as ever: nothing in an old record changes its meaning.

What the files are and how they are renewed is told in `golden`.
"""

import json

import pytest

from markets.engine.protocol import EndReason, decode_log, encode
from markets.engine.scenarios import Family, decode_scenario
from markets.engine.state import replay
from tests.markets.engine import golden


@pytest.mark.parametrize("name", golden.names())
def test_a_transcript_is_played_again_line_for_line(name: str) -> None:
    stored = (golden.FOLDER / f"{name}.json").read_text(encoding="utf-8")
    assert golden.written(golden.load(name)) == stored, "see `python -m tests.markets.engine.golden`"


@pytest.mark.parametrize("name", golden.names())
def test_a_stored_log_alone_replays_to_the_stored_end(name: str) -> None:
    """As an old room does, whose moves nobody makes again."""
    stored = json.loads((golden.FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    text = json.dumps(stored["log"], separators=(",", ":"), ensure_ascii=False).encode()
    log = decode_log(text)
    assert encode(log) == text, "the stored events are in canonical form"
    state = replay(decode_scenario(json.dumps(stored["scenario"])), log)
    assert (state.end_reason or "") == (stored["outcome"]["end_reason"] or "")
    assert [deal.price_cents for deal in state.deals] == [deal["price_cents"] for deal in stored["outcome"]["deals"]]


def test_the_transcripts_cover_every_family_and_every_kind_of_event() -> None:
    told = [json.loads((golden.FOLDER / f"{name}.json").read_text(encoding="utf-8")) for name in golden.names()]
    events = {entry["event"]["type"] for each in told for entry in each["log"]}
    assert events == {
        "offer_made",
        "offer_accepted",
        "offer_rejected",
        "offer_lapsed",
        "product_sold_out",
        "message_sent",
        "waited",
        "price_searched",
        "move_refused",
        "party_left",
        "deadline_passed",
        "negotiation_ended",
    }
    assert {each["scenario"]["family"] for each in told} == set(Family)
    ends = {each["outcome"]["end_reason"] for each in told}
    assert ends == set(EndReason) - {EndReason.CLOSED}
    assert any(move.get("refused") for each in told for move in each["moves"])
