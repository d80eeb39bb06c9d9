"""Frames that are not ours are answered with a sentence, however they are broken."""

import pytest

from markets import wire


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "null",
        '"act"',
        "{}",
        '{"type":"act"}',
        '{"type":"nothing"}',
        '{"type":"ping","extra":1}',
        '{"type":"act","client_move_id":"","action":{"type":"leave"}}',
        '{"type":"act","client_move_id":"' + "x" * 65 + '","action":{"type":"leave"}}',
        '{"type":"act","client_move_id":"a","action":{"type":"make_offer","price":120}}',
        '{"type":"resync","after":"1"}',
        '{"a":' * 13_000,
        '{"type":"ping"}' + " " * wire.MAX_FRAME_CHARS,
        '{"type":"read_price","id":1,"text":"\ud83d"}',
    ],
)
def test_a_broken_frame_is_refused_in_words(text: str) -> None:
    with pytest.raises(wire.BadFrame) as refused:
        wire.decode(text)
    assert len(str(refused.value)) > 10


def test_what_cannot_be_stored_is_taken_out_of_talk() -> None:
    assert wire.clean(" so\x00me thing\nelse\ud800") == "some thing\nelse"
