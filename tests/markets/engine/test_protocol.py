"""The words of the game: strict reading, canonical writing, names of chairs, hashes."""

import hashlib
from typing import get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from markets.engine import protocol
from markets.engine.money import MAX_PRICE_CENTS
from markets.engine.protocol import (
    AcceptOffer,
    Action,
    Event,
    IllegalAction,
    Leave,
    LogEntry,
    LogHash,
    MakeOffer,
    MessageSent,
    OfferMade,
    ProtocolError,
    RefusalCode,
    RejectOffer,
    Role,
    Say,
    Wait,
    buyer_of,
    buyer_party,
    decode_action,
    decode_log,
    encode,
    is_text,
    is_valid_price,
    log_sha256,
    role_of,
)

integers = st.integers(-(2**63), 2**63 - 1)
texts = st.text(max_size=30)
shared = {"buyer": integers, "talk": texts, "thought": texts}
actions = st.one_of(
    st.builds(Say, **shared),
    st.builds(MakeOffer, price_cents=integers, product=integers, **shared),
    st.builds(AcceptOffer, offer_id=integers, **shared),
    st.builds(RejectOffer, offer_id=integers, **shared),
    st.builds(Wait, for_ms=integers, **shared),
    st.builds(Leave, **shared),
)
events = st.one_of(*(st.from_type(event) for event in get_args(Event)))
logs = st.lists(st.builds(LogEntry, n=integers, at_ms=integers, event=events), max_size=6).map(tuple)


# --- Reading and writing ------------------------------------------------------------------------------------


@given(actions)
def test_an_action_is_read_back_as_it_was_written(action: Action) -> None:
    assert decode_action(encode(action)) == action
    assert decode_action(encode(action).decode()) == action


@given(logs)
def test_a_log_is_read_back_as_it_was_written(log: tuple[LogEntry, ...]) -> None:
    assert decode_log(encode(log)) == log
    assert encode(decode_log(encode(log))) == encode(log)


def test_the_canonical_form_is_the_same_text_for_ever() -> None:
    """Hashes of old records are taken over this text."""
    entry = LogEntry(3, 1_500, OfferMade(Role.BUYER, 2, 1, 0, 2_750, opening=True))
    assert encode([entry]) == (
        b'[{"n":3,"at_ms":1500,"event":{"type":"offer_made","by":"buyer","buyer":2,"offer_id":1,'
        b'"product":0,"price_cents":2750,"opening":true}}]'
    )
    assert encode(MakeOffer(price_cents=2_750, buyer=2, talk="é")) == (
        '{"type":"make_offer","price_cents":2750,"product":0,"buyer":2,"talk":"é","thought":""}'.encode()
    )


@pytest.mark.parametrize(
    ("text", "action"),
    [
        ('{"type":"say","talk":"Hello."}', Say(talk="Hello.")),
        ('{"type":"make_offer","price_cents":1}', MakeOffer(price_cents=1)),
        (' {"price_cents" : 1 , "type" : "make_offer"} ', MakeOffer(price_cents=1)),
        ('{"type":"accept_offer","offer_id":2,"buyer":3}', AcceptOffer(offer_id=2, buyer=3)),
        ('{"type":"leave"}', Leave()),
        ('{"type":"wait"}', Wait()),
    ],
)
def test_what_has_a_default_may_be_left_out(text: str, action: Action) -> None:
    assert decode_action(text) == action


NOT_AN_ACTION = [
    b"",
    b"null",
    b"[]",
    b"say",
    b"{}",
    b'{"talk":"Hello."}',
    b'{"type":"shout","talk":"Hello."}',
    b'{"type":"offer_made","by":"buyer","buyer":1,"offer_id":1,"product":0,"price_cents":1}',
    b'{"type":"say","talk":"Hello.","volume":11}',
    b'{"type":"say","talk":null}',
    b'{"type":"say","talk":7}',
    b'{"type":"make_offer"}',
    b'{"type":"make_offer","price_cents":true}',
    b'{"type":"make_offer","price_cents":"120"}',
    b'{"type":"make_offer","price_cents":120.0}',
    b'{"type":"make_offer","price_cents":12,50}',
    b'{"type":"make_offer","price_cents":1e99}',
    b'{"type":"make_offer","price_cents":NaN}',
    b'{"type":"make_offer","price_cents":Infinity}',
    b'{"type":"make_offer","price_cents":null}',
    b'{"type":"make_offer","price_cents":' + b"9" * 5_000 + b"}",
    b'{"type":"accept_offer","offer_id":"1"}',
    b'{"type":"leave"} {"type":"leave"}',
    b'{"type":"leave"',
    b'{"type":"say","talk":"\\ud83d"}',
    b'{"type":"say","talk":"\xff"}',
    "\N{SLIGHTLY SMILING FACE}".encode(),
    '{"type":"say","talk":"half \ud83d"}',
    b"[" * 100_000,
    b'{"a":' * 100_000,
    b'{"type":"say","talk":' + b"[" * 100_000,
]


@pytest.mark.parametrize("data", NOT_AN_ACTION, ids=range(len(NOT_AN_ACTION)))
def test_what_is_no_action_is_a_protocol_error_and_never_a_guess(data: bytes | str) -> None:
    with pytest.raises(ProtocolError):
        decode_action(data)


@given(st.binary(max_size=60))
def test_any_bytes_are_an_action_or_a_protocol_error(data: bytes) -> None:
    try:
        action = decode_action(data)
    except ProtocolError:
        return
    assert decode_action(encode(action)) == action


@pytest.mark.parametrize(
    "data",
    [
        b"{}",
        b"null",
        b'[{"n":1,"at_ms":0}]',
        b'[{"n":1,"at_ms":0,"event":{"type":"turn_passed","by":"seller","buyer":1}}]',
        b'[{"n":1,"at_ms":0,"event":{"type":"message_sent","by":"broker","buyer":1}}]',
        b'[{"n":1,"at_ms":0,"event":{"type":"message_sent","by":"buyer","buyer":1,"talk":"Hello."}}]',
        b'[{"n":1,"at_ms":0,"who":"me","event":{"type":"message_sent","by":"buyer","buyer":1}}]',
        b'[{"n":1.5,"at_ms":0,"event":{"type":"message_sent","by":"buyer","buyer":1}}]',
        b"[" * 100_000,
    ],
)
def test_what_is_no_log_is_a_protocol_error(data: bytes) -> None:
    with pytest.raises(ProtocolError):
        decode_log(data)


def test_events_have_no_field_for_words() -> None:
    """So that a log can be kept when the words of a person are erased."""
    for event in get_args(Event):
        kinds = {field.type for field in msgspec.structs.fields(event)}
        assert "text" not in {field.name for field in msgspec.structs.fields(event)}
        assert str not in kinds or event is protocol.MoveRefused


# --- Hashes -------------------------------------------------------------------------------------------------


def test_the_hash_of_a_run_is_over_its_logs_in_order() -> None:
    first = (LogEntry(1, 0, MessageSent(Role.SELLER, 1)),)
    second = (LogEntry(1, 0, MessageSent(Role.BUYER, 1)),)
    assert log_sha256([first, second]) == hashlib.sha256(encode(first) + b"\n" + encode(second) + b"\n").hexdigest()
    assert log_sha256([first, second]) != log_sha256([second, first])
    assert log_sha256([]) == hashlib.sha256().hexdigest()


@given(st.lists(logs, max_size=3))
def test_logs_hashed_one_by_one_give_the_same_hash(many: list[tuple[LogEntry, ...]]) -> None:
    running = LogHash()
    for log in many:
        running.add(log)
    assert running.hexdigest() == log_sha256(many)


@given(logs, logs)
def test_where_one_log_ends_is_part_of_the_hash(first: tuple[LogEntry, ...], second: tuple[LogEntry, ...]) -> None:
    if first and second:
        assert log_sha256([first, second]) != log_sha256([(*first, *second)])


# --- Names --------------------------------------------------------------------------------------------------


@given(st.integers(1, 10**6))
def test_a_buyers_chair_has_its_number_in_its_name(buyer: int) -> None:
    party = buyer_party(buyer)
    assert party == f"buyer-{buyer}"
    assert buyer_of(party) == buyer
    assert role_of(party) is Role.BUYER


def test_the_seller_has_one_chair_and_no_number() -> None:
    assert buyer_of(protocol.SELLER) == 0
    assert role_of(protocol.SELLER) is Role.SELLER


@pytest.mark.parametrize(
    "name", ["", "buyer", "buyer-", "buyer-0", "buyer--1", "buyer-01", "buyer-1 ", "Buyer-1", "1", "0"]
)
def test_what_is_no_chair_has_no_number(name: str) -> None:
    with pytest.raises(ValueError):
        buyer_of(name)


def test_the_other_side_of_the_other_side_is_the_own() -> None:
    assert Role.SELLER.other is Role.BUYER
    assert Role.BUYER.other is Role.SELLER


# --- Bounds -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("price_cents", "valid"),
    [(-1, False), (0, False), (1, True), (MAX_PRICE_CENTS, True), (MAX_PRICE_CENTS + 1, False)],
)
def test_a_price_is_at_least_a_cent_and_at_most_100_million(price_cents: int, valid: bool) -> None:
    assert is_valid_price(price_cents) is valid


def test_not_a_number_is_no_price() -> None:
    assert not is_valid_price(float("nan"))  # type: ignore[arg-type]
    assert not is_valid_price(float("inf"))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("talk", "storable"),
    [("", True), ("Hello.", True), ("naïve \N{SLIGHTLY SMILING FACE}\n\t", True), ("a\0b", False), ("\ud83d", False)],
)
def test_text_is_what_every_store_can_hold(talk: str, storable: bool) -> None:
    assert is_text(talk) is storable


def test_a_refusal_carries_its_code_and_its_sentence() -> None:
    error = IllegalAction(RefusalCode.SOLD_OUT)
    assert error.code is RefusalCode.SOLD_OUT
    assert error.sentence == "Too late: this product has just been sold."
    assert str(error) == "sold_out: Too late: this product has just been sold."
