"""What a model answers becomes exactly the move that it wrote down in the form, or none: nothing is guessed."""

import json
import string

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agents.backends import ChatReply
from agents.parsing import LONGEST_REPLY, FourPart, ParseFailure, PartNames, Tools
from markets.engine.observation import Observation
from markets.engine.protocol import (
    AcceptOffer,
    Action,
    Leave,
    MakeOffer,
    RefusalCode,
    RejectOffer,
    Say,
    SearchPrice,
    Wait,
    is_text,
)
from tests.agents.conversations import calls, text
from tests.markets.engine.factories import B1, B2, SELLER, Table, bilateral, catalogue, event_driven, multi_buyer, offer

ASKED = Table(bilateral()).play_all((B1, offer(4_000)), (SELLER, offer(9_000)))
"""The buyer bid $40, the seller asks $90, the buyer is to move."""
BID = Table(bilateral()).play_all((B1, offer(4_000)))
SEVERAL = Table(multi_buyer()).play_all((SELLER, offer(9_000, to=1)), (B1, offer(3_000)))
SHOP = Table(catalogue()).play_all((SELLER, offer(9_000, to=2, product=1)), (B2, offer(3_000, product=1)))
CLOCK = Table(event_driven()).play_all((SELLER, offer(9_000)))

BUYER, BILATERAL_SELLER = ASKED.sees(B1), BID.sees(SELLER)
MANY, CATALOGUE = SEVERAL.sees(SELLER), SHOP.sees(SELLER)


def four(reply: str, observation: Observation = BUYER, codec: FourPart | None = None) -> Action:
    (action,) = (codec or FourPart()).read(text(reply), observation)
    return action


def reason(reply: str | ChatReply, observation: Observation = BUYER, codec: FourPart | Tools | None = None) -> str:
    answer = text(reply) if isinstance(reply, str) else reply
    with pytest.raises(ParseFailure) as failed:
        (codec or FourPart()).read(answer, observation)
    assert failed.value.sentence
    return failed.value.reason


# --- Four parts -----------------------------------------------------------------------------------


def test_the_four_parts_are_read():
    assert four("Thought: low\nTalk: How about this?\nAction: [BUY] $45") == MakeOffer(
        price_cents=4_500, talk="How about this?", thought="low"
    )


@pytest.mark.parametrize(
    ("reply", "observation", "expected"),
    [
        ("Action: [BUY] $45.50", BUYER, MakeOffer(price_cents=4_550)),
        ("Action: [SELL] $1,234.50", BILATERAL_SELLER, MakeOffer(price_cents=123_450)),
        ("Action: [DEAL] $90", BUYER, AcceptOffer(offer_id=2)),
        ("Action: [DEAL] $90.01", BUYER, AcceptOffer(offer_id=2)),
        ("Action: [REJECT]", BUYER, RejectOffer(offer_id=2)),
        ("Action: [QUIT]", BUYER, Leave()),
        ("Talk: Hm.\nAction: [TALK]", BUYER, Say(talk="Hm.")),
        ("**Talk:** Hm.\n**Action:** [TALK]", BUYER, Say(talk="Hm.")),
        ("talk: Hm.\nACTION : [talk]", BUYER, Say(talk="Hm.")),
        ("Talk: one\ntwo\nAction: [BUY] $45.", BUYER, MakeOffer(price_cents=4_500, talk="one\ntwo")),
        ("Target: Buyer 1\nAction: [DEAL] $30", MANY, AcceptOffer(offer_id=2, buyer=1)),
        ("Target: 2\nAction: [SELL] $70", MANY, MakeOffer(price_cents=7_000, buyer=2)),
        (
            "Target: Buyer 9\nAction: [SELL] $70",
            MANY,
            MakeOffer(price_cents=7_000, buyer=9),
        ),  # For the rules to refuse.
        ("Target: Buyer 2\nAction: [SELL] #2 $70", CATALOGUE, MakeOffer(price_cents=7_000, buyer=2, product=1)),
        ("Target: Buyer 2\nAction: [DEAL] #2 $30", CATALOGUE, AcceptOffer(offer_id=2, buyer=2)),
    ],
)
def test_every_action_is_read_as_it_is_written(reply: str, observation: Observation, expected: Action):
    assert four(reply, observation) == expected


def test_the_last_action_counts():
    assert four("Action: [BUY] $45\nTalk: no, wait\nAction: [BUY] $46") == MakeOffer(price_cents=4_600, talk="no, wait")
    assert four("Action: [BUY] $45 or rather [BUY] $46") == MakeOffer(price_cents=4_600)


def test_a_deal_takes_the_latest_offer_of_that_price():
    table = Table(bilateral()).play_all(
        (B1, offer(4_000)), (SELLER, offer(9_000)), (B1, offer(4_100)), (SELLER, offer(8_000))
    )
    assert four("Action: [DEAL] $80", table.sees(B1)) == AcceptOffer(offer_id=4)
    assert reason("Action: [DEAL] $90", table.sees(B1)) == "unmatched_deal"  # Replaced, so it stands no more.


@pytest.mark.parametrize(
    ("reply", "observation", "expected"),
    [
        ("", BUYER, "empty"),
        (" \n\t", BUYER, "empty"),
        ("I offer $45.", BUYER, "no_action"),
        ("[BUY] $45", BUYER, "no_action"),
        ("Thought: I could say [BUY] $45", BUYER, "no_action"),
        ("Talk: [DEAL] $90\nAction: yes", BUYER, "no_action"),
        ("Action: BUY $45", BUYER, "no_action"),
        ("Action: [ACCEPT]", BUYER, "unknown_action"),
        ("Action: [BUY] $45 [SIGNED]", BUYER, "unknown_action"),
        ("Action: [SELL] $45", BUYER, "wrong_role"),
        ("Action: [BUY] $45", BILATERAL_SELLER, "wrong_role"),
        ("Action: [BUY]", BUYER, "no_price"),
        ("Action: [BUY] about forty", BUYER, "bad_price"),
        ("Action: [BUY] $45 or $46", BUYER, "bad_price"),
        ("Action: [BUY] 40-50", BUYER, "bad_price"),
        ("Action: [BUY] $45.999", BUYER, "bad_price"),
        ("Action: [BUY] nan", BUYER, "bad_price"),
        ("Action: [BUY] $0", BUYER, "price_out_of_range"),
        ("Action: [BUY] -$5", BUYER, "price_out_of_range"),
        ("Action: [BUY] $999999999999", BUYER, "price_out_of_range"),
        ("Action: [DEAL] $89", BUYER, "unmatched_deal"),
        ("Action: [DEAL] $40", BUYER, "unmatched_deal"),
        ("Action: [DEAL] $50", Table(bilateral()).sees(B1), "unmatched_deal"),
        ("Action: [REJECT]", Table(bilateral()).sees(B1), "nothing_to_reject"),
        ("Action: [TALK]", BUYER, "nothing_said"),
        (f"Talk: {'x' * 2_001}\nAction: [TALK]", BUYER, "talk_too_long"),
        ("Talk: half \ud83d\nAction: [TALK]", BUYER, "not_text"),
        ("Talk: nul \0\nAction: [TALK]", BUYER, "not_text"),
        ("Action: [SELL] $70", MANY, "no_target"),
        ("Target: all buyers\nAction: [SELL] $70", MANY, "no_target"),
        ("Target: Buyer 1 and 2\nAction: [SELL] $70", MANY, "no_target"),
        ("Target: Buyer 2\nAction: [SELL] $70", CATALOGUE, "no_product"),
        ("Target: Buyer 2\nAction: [SELL] #3 $70", CATALOGUE, "no_product"),
        ("Action: [BUY] $45 " + "word " * 10_000, BUYER, "too_long"),
    ],
    ids=lambda value: value[:30] if isinstance(value, str) else "",
)
def test_what_is_not_written_in_the_form_is_no_move(reply: str, observation: Observation, expected: str):
    assert reason(reply, observation) == expected


def test_a_refusal_is_counted_by_the_code_that_says_it_best():
    codes = {
        "Action: [BUY]": RefusalCode.MALFORMED,
        "Action: [BUY] $0": RefusalCode.PRICE_OUT_OF_RANGE,
        "Action: [DEAL] $1": RefusalCode.UNKNOWN_OFFER,
        "Talk: half \ud83d\nAction: [TALK]": RefusalCode.TALK_NOT_TEXT,
    }
    for reply, code in codes.items():
        with pytest.raises(ParseFailure) as failed:
            four(reply)
        assert failed.value.code is code


def test_a_failure_keeps_the_thought_and_the_buyer_it_was_meant_for():
    with pytest.raises(ParseFailure) as failed:
        four("Thought: hm\nTarget: Buyer 2\nAction: [SELL]", MANY)
    assert (failed.value.thought, failed.value.buyer) == ("hm", 2)


def test_the_names_of_the_parts_can_be_configured():
    codec = FourPart(names=PartNames(thought="Denken", target="An", talk="Sagen", action="Tun"))
    assert four("Denken: x\nSagen: Gut.\nTun: [BUY] $45", codec=codec) == MakeOffer(
        price_cents=4_500, talk="Gut.", thought="x"
    )
    assert reason("Thought: x\nAction: [BUY] $45", codec=codec) == "no_action"
    assert "Tun: your action" in codec.form(BUYER)


def test_a_thought_that_no_database_could_hold_is_spelled_out():
    action = four("Thought: half \ud83d and \0\nAction: [BUY] $45")
    assert is_text(action.thought)


# --- Tools ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reply", "observation", "expected"),
    [
        (calls(("make_offer", '{"price": 45}')), BUYER, MakeOffer(price_cents=4_500)),
        (calls(("make_offer", '{"price": 45.1, "message": "ok"}')), BUYER, MakeOffer(price_cents=4_510, talk="ok")),
        (calls(("make_offer", '{"price": "$45.50"}')), BUYER, MakeOffer(price_cents=4_550)),
        (calls(("respond_to_offer", '{"accept": true}')), BUYER, AcceptOffer(offer_id=2)),
        (calls(("respond_to_offer", '{"accept": false}')), BUYER, RejectOffer(offer_id=2)),
        (calls(("send_message", '{"message": "Hi"}')), BUYER, Say(talk="Hi")),
        (calls(("quit_negotiation", "")), BUYER, Leave()),
        (
            calls(("send_message", '{"message": "Hi"}'), ("make_offer", '{"price": 45, "message": "ok"}')),
            BUYER,
            MakeOffer(price_cents=4_500, talk="Hi\nok"),
        ),
        (calls(("make_offer", '{"price": 70, "buyer": 2}')), MANY, MakeOffer(price_cents=7_000, buyer=2)),
        (
            calls(("make_offer", '{"price": 70, "buyer": 2, "product": 2}')),
            CATALOGUE,
            MakeOffer(price_cents=7_000, buyer=2, product=1),
        ),
        (calls(("respond_to_offer", '{"accept": true, "buyer": 2}')), CATALOGUE, AcceptOffer(offer_id=2, buyer=2)),
    ],
)
def test_a_function_call_is_the_move_it_names(reply: ChatReply, observation: Observation, expected: Action):
    assert Tools().read(reply, observation) == (expected,)


def test_on_a_clock_several_calls_arrive_together():
    reply = calls(
        ("send_message", '{"message": "Hm"}'),
        ("search_price", "{}"),
        ("make_offer", '{"price": 45}'),
        ("wait_for_time_period", '{"seconds": 1.5}'),
        ("wait_for_response", "{}"),
        words="thinking",
    )
    assert Tools().read(reply, CLOCK.sees(B1)) == (
        Say(talk="Hm", thought="thinking"),
        SearchPrice(),
        MakeOffer(price_cents=4_500),
        Wait(for_ms=1_500),
        Wait(),
    )


@pytest.mark.parametrize(
    ("reply", "observation", "expected"),
    [
        (text("I make an offer of $45."), BUYER, "no_action"),
        (text('make_offer({"price": 45})'), BUYER, "no_action"),
        (calls(("make_offer", "{price: 45}")), BUYER, "not_json"),
        (calls(("make_offer", '{"price": 45')), BUYER, "not_json"),
        (calls(("make_offer", "\ud83d")), BUYER, "not_json"),
        (calls(("make_offer", "[" * 5_000)), BUYER, "not_json"),
        (calls(("make_offer", "[]")), BUYER, "bad_arguments"),
        (calls(("make_offer", "{}")), BUYER, "bad_arguments"),
        (calls(("make_offer", '{"price": true}')), BUYER, "bad_arguments"),
        (calls(("make_offer", '{"price": 45, "as": "seller"}')), BUYER, "bad_arguments"),
        (calls(("respond_to_offer", '{"accept": "yes"}')), BUYER, "bad_arguments"),
        (calls(("make_offer", '{"price": 45.001}')), BUYER, "bad_price"),
        (calls(("make_offer", '{"price": "forty"}')), BUYER, "bad_price"),
        (calls(("make_offer", '{"price": 0}')), BUYER, "price_out_of_range"),
        (calls(("make_offer", '{"price": -3}')), BUYER, "price_out_of_range"),
        (calls(("make_offer", '{"price": 1e300}')), BUYER, "price_out_of_range"),
        (calls(("make_offer", '{"price": 1e999}')), BUYER, "not_json"),
        (calls(("give_everything", "{}")), BUYER, "unknown_tool"),
        (calls(("wait_for_response", "{}")), BUYER, "unknown_tool"),
        (calls(("make_offer", '{"price": 45}'), ("make_offer", '{"price": 46}')), BUYER, "several_actions"),
        (calls(*[("send_message", '{"message": "Hi"}')] * 9), BUYER, "several_actions"),
        (
            calls(("send_message", '{"message": "a", "buyer": 1}'), ("send_message", '{"message": "b", "buyer": 2}')),
            MANY,
            "several_actions",
        ),
        (calls(("respond_to_offer", '{"accept": true}')), Table(bilateral()).sees(B1), "unmatched_deal"),
        (calls(("respond_to_offer", '{"accept": false}')), Table(bilateral()).sees(B1), "nothing_to_reject"),
        (calls(("send_message", '{"message": " "}')), BUYER, "nothing_said"),
        (calls(("send_message", '{"message": "half \\ud83d"}')), BUYER, "not_json"),
        (calls(("make_offer", '{"price": 70}')), MANY, "no_target"),
        (calls(("make_offer", '{"price": 70, "buyer": 2}')), CATALOGUE, "no_product"),
        (calls(("wait_for_time_period", '{"seconds": 1e9}')), CLOCK.sees(B1), "bad_arguments"),
        (calls(("wait_for_time_period", '{"seconds": -1}')), CLOCK.sees(B1), "bad_arguments"),
    ],
)
def test_a_call_that_does_not_fit_is_no_move(reply: ChatReply, observation: Observation, expected: str):
    assert reason(reply, observation, Tools()) == expected


def test_the_seven_functions_are_offered_where_there_is_a_clock_and_no_waiting_elsewhere():
    named = {tool["function"]["name"] for tool in Tools().tools(CLOCK.sees(B1))}
    assert named == {
        "make_offer",
        "respond_to_offer",
        "send_message",
        "wait_for_response",
        "wait_for_time_period",
        "quit_negotiation",
        "search_price",
    }
    assert named - {tool["function"]["name"] for tool in Tools().tools(BUYER)} == {
        "wait_for_response",
        "wait_for_time_period",
        "search_price",
    }


# --- Anything at all ------------------------------------------------------------------------------

ANY_TEXT = st.text(st.characters(codec=None, exclude_categories=()), max_size=200)
PIECES = st.sampled_from(
    [
        *(
            "Thought:",
            "Target:",
            "Talk:",
            "Action:",
            "\n",
            " ",
            "**",
            "[BUY]",
            "[SELL]",
            "[DEAL]",
            "[REJECT]",
            "[QUIT]",
        ),
        *("[TALK]", "[", "]", "$", "45", "90", "-", ".", "1e5", "#1", "#99", "Buyer 1", "buyer", "٤٥", "\ud83d", "\0"),
        *("<|im_end|>", "I accept", "deal", "yes", "{", "}", '"price"', ":"),
    ]
)
REPLIES = st.one_of(
    ANY_TEXT, st.lists(PIECES, max_size=30).map("".join), st.lists(PIECES | ANY_TEXT, max_size=12).map("".join)
)
TABLES = st.sampled_from([BUYER, BILATERAL_SELLER, MANY, CATALOGUE, CLOCK.sees(B1), Table(multi_buyer()).sees(SELLER)])


@given(reply=REPLIES, observation=TABLES)
def test_no_reply_in_text_breaks_anything_and_a_move_stands_in_it_as_written(reply: str, observation: Observation):
    try:
        (action,) = FourPart().read(text(reply), observation)
    except ParseFailure:
        return
    folded = reply.casefold()
    assert "action" in folded  # Prose alone is never a move.
    assert is_text(action.talk)
    assert is_text(action.thought)
    match action:
        case MakeOffer():
            assert ("[sell]" if observation.role == "seller" else "[buy]") in folded
            assert str(action.price_cents // 100) in reply.replace(",", "") or action.price_cents < 100
        case AcceptOffer():
            assert "[deal]" in folded
        case RejectOffer():
            assert "[reject]" in folded
        case Leave():
            assert "[quit]" in folded
        case Say():
            assert "[talk]" in folded


LINES = st.lists(PIECES | ANY_TEXT, max_size=4).map("".join)
LABELS = st.sampled_from(
    ["Thought:", "Thought: ", "Target: ", "Talk: ", "talk :", "Talk: **", "Action: ", "Action:", "\r"]
)


IN_ORDER = st.tuples(LINES, LINES, LINES).map("Thought: {0[0]}\nTalk: {0[1]}\nAction: {0[2]}".format)
IN_ANY_ORDER = st.lists(st.tuples(LABELS, LINES), max_size=6).map(lambda told: "\n".join(map("".join, told)))


@given(reply=IN_ORDER | IN_ANY_ORDER)
def test_a_reply_that_keeps_to_the_form_is_read_at_once_as_it_would_be_read_with_care(reply: str):
    at_once, with_care = FourPart(), FourPart()
    with_care._usual = None
    assert at_once._parts(reply) == with_care._parts(reply)


@given(reply=ANY_TEXT.filter(lambda reply: not set("[]") & set(reply)), observation=TABLES)
def test_nothing_without_brackets_is_ever_a_move(reply: str, observation: Observation):
    with pytest.raises(ParseFailure):
        FourPart().read(text(f"Action: {reply}"), observation)


NAMES = st.sampled_from(
    ["make_offer", "respond_to_offer", "send_message", "quit_negotiation", "wait_for_response", "search_price", "x"]
)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(string.ascii_lowercase, max_size=8), inner, max_size=4)
    ),
    max_leaves=8,
)
ARGUMENTS = st.one_of(
    ANY_TEXT,
    st.builds(repr, JSON),
    st.fixed_dictionaries(
        {}, optional={"price": JSON, "message": JSON, "buyer": JSON, "product": JSON, "accept": JSON, "seconds": JSON}
    ).map(lambda fields: json.dumps(fields)),
)


@given(named=st.lists(st.tuples(NAMES | ANY_TEXT, ARGUMENTS), max_size=4), words=ANY_TEXT, observation=TABLES)
def test_no_call_breaks_anything_and_none_is_made_up(
    named: list[tuple[str, str]], words: str, observation: Observation
):
    try:
        actions = Tools().read(calls(*named, words=words), observation)
    except ParseFailure:
        return
    assert 1 <= len(actions) <= len(named)
    for action in actions:
        assert is_text(action.talk)
        assert is_text(action.thought)


def test_a_reply_of_the_greatest_length_is_still_read():
    padding = "x" * (LONGEST_REPLY - 40)
    assert four(f"Thought: {padding}\nAction: [QUIT]").thought.startswith("xxx")
