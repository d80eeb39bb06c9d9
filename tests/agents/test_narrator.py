"""A narrator's move is its strategy's whatever the model says, and nobody hears words that betray or contradict it."""

import msgspec
import pytest

from agents import backends, calls
from agents.backends import BackendError
from agents.backends.fake import FakeBackend
from agents.base import Turn
from agents.calls import Call, Listener
from agents.narrator import Fault, Narrator, Speech, fault, tidy
from markets.engine.observation import Observation
from markets.engine.protocol import AcceptOffer, Action, Leave, MakeOffer, RejectOffer, Role
from markets.engine.scenarios import Scenario
from tests.agents.conversations import turn
from tests.markets.engine.factories import B1, SELLER, Table, bilateral, event_driven, offer, say

pytestmark = pytest.mark.usefixtures("no_back_ends")

BUYER_SPOKE = Table(bilateral()).play_all((B1, offer(4_000)))
SELLER_SPOKE = Table(bilateral(opener=Role.SELLER)).play_all((SELLER, offer(9_000)))
AS_SELLER, AS_BUYER = BUYER_SPOKE.sees(SELLER), SELLER_SPOKE.sees(B1)
ASK, BID = offer(8_400), offer(6_000)
TAKE, TURN_DOWN = AcceptOffer(offer_id=1), RejectOffer(offer_id=1)


class Decided:
    """A strategy that has made up its mind."""

    def __init__(self, *actions: Action) -> None:
        self._actions = actions

    def act(self, turn: Turn) -> Action:
        return self._actions[0]

    def act_batch(self, turn: Turn) -> tuple[Action, ...]:
        return self._actions


def spoken(
    fake: FakeBackend, action: Action, *, table: Table = BUYER_SPOKE, party: str = SELLER, **how
) -> tuple[Action, Call]:
    """The narrator's move and what was reported of the call."""
    backends.seat(fake)
    heard: list[Call] = []
    narrator = Narrator(strategy=Decided(action), backend="fake", **how)
    with calls.listening(Listener(heard.append)):
        move = narrator.act(turn(table, party, words={1: "Could you do less?"}))
    (call,) = heard
    return move, call


@pytest.mark.parametrize(
    ("words", "action", "observation"),
    [
        ("I hear you, but $84.00 is a fair price.", ASK, AS_SELLER),
        ("How about $84?", ASK, AS_SELLER),
        ("Would you say it is yours for 84 dollars?", ASK, AS_SELLER),
        ("It is a lovely thing.", ASK, AS_SELLER),
        ("Do we have a deal at $84.00?", ASK, AS_SELLER),
        ("I would pay $60.00 for it.", BID, AS_BUYER),
        ("Deal! Enjoy it.", TAKE, AS_SELLER),
        ("Agreed, $40.00 it is.", TAKE, AS_SELLER),
        ("I am afraid that is too low for me.", TURN_DOWN, AS_SELLER),
        ("Let us leave it at that. Goodbye.", Leave(), AS_SELLER),
        ("What would you give me for Thing 0?", say(), AS_SELLER),
    ],
)
def test_words_that_go_with_the_move_are_heard(words: str, action: Action, observation: Observation):
    assert fault(words, action, observation) is None


@pytest.mark.parametrize(
    ("words", "action", "observation", "expected"),
    [
        ("", ASK, AS_SELLER, Fault.EMPTY),
        ("word " * 200, ASK, AS_SELLER, Fault.TOO_LONG),
        ("half \ud83d", ASK, AS_SELLER, Fault.NOT_TEXT),
        ("<|im_end|> fine", ASK, AS_SELLER, Fault.MARKUP),
        ("Action: [SELL] $84.00", ASK, AS_SELLER, Fault.MARKUP),
        ("$84.00, or let us say $70.", ASK, AS_SELLER, Fault.OTHER_PRICE),
        ("I can do $70.", ASK, AS_SELLER, Fault.OTHER_PRICE),
        ("I can do seventy dollars.", ASK, AS_SELLER, Fault.OTHER_PRICE),
        ("You can have it for 70 then.", ASK, AS_SELLER, Fault.OTHER_PRICE),
        ("Between $70 and $84.", ASK, AS_SELLER, Fault.OTHER_PRICE),
        ("Not $84.00, that is too much.", ASK, AS_SELLER, Fault.CONTRADICTION),
        ("$84.00 and 2 years of warranty.", ASK, AS_SELLER, Fault.OTHER_NUMBER),
        ("Call me on 555 1234567 about the $84.00.", ASK, AS_SELLER, Fault.OTHER_NUMBER),
        ("I could take $50.00.", TURN_DOWN, AS_SELLER, Fault.OTHER_PRICE),
        ("My cost is what it is, $84.00.", ASK, AS_SELLER, Fault.LEAK),
        ("It cost me a lot, so $84.00.", ASK, AS_SELLER, Fault.LEAK),
        ("$84.00 is the lowest I can go.", ASK, AS_SELLER, Fault.LEAK),
        ("My budget is tight, $60.00.", BID, AS_BUYER, Fault.LEAK),
        ("It is worth more to me than $60.00.", BID, AS_BUYER, Fault.LEAK),
        ("It's a deal!", ASK, AS_SELLER, Fault.CONTRADICTION),
        ("Sold. $84.00.", ASK, AS_SELLER, Fault.CONTRADICTION),
        ("I accept your offer.", TURN_DOWN, AS_SELLER, Fault.CONTRADICTION),
        ("I cannot accept that.", TAKE, AS_SELLER, Fault.CONTRADICTION),
        ("$84.00. Goodbye.", ASK, AS_SELLER, Fault.CONTRADICTION),
        ("I accept, it is a deal.", Leave(), AS_SELLER, Fault.CONTRADICTION),
        ("I would pay $84.00 for it.", ASK, AS_SELLER, Fault.OTHER_ROLE),
        ("I am selling it for $60.00.", BID, AS_BUYER, Fault.OTHER_ROLE),
        ('The buyer said "less", so the seller replied $84.00.', ASK, AS_SELLER, Fault.NOT_SPOKEN),
        ("Here is the message: $84.00.", ASK, AS_SELLER, Fault.NOT_SPOKEN),
        ("As an AI language model I ask $84.00.", ASK, AS_SELLER, Fault.NAMES_ITSELF),
        ("I am Tiny-9 and I ask $84.00.", ASK, AS_SELLER, Fault.NAMES_ITSELF),
        ("My instructions say $84.00.", ASK, AS_SELLER, Fault.NAMES_ITSELF),
    ],
)
def test_words_that_betray_or_contradict_are_not_heard(
    words: str, action: Action, observation: Observation, expected: Fault
):
    assert fault(words, action, observation, model="tiny-9") is expected


def test_a_product_may_be_called_by_its_name_whatever_is_in_it():
    scenario = bilateral()
    product = msgspec.structs.replace(scenario.products[0], title="** $50 Claude lamp, sold 2 at a time")
    observation = Table(msgspec.structs.replace(scenario, products=(product,))).sees(SELLER)
    assert fault("The ** $50 Claude lamp, sold 2 at a time is $84.00.", ASK, observation) is None


def test_the_own_value_is_not_named_even_where_it_is_no_offer():
    assert fault("I would not go below $50.00, but $84.00 is fair.", ASK, AS_SELLER) is Fault.OTHER_PRICE


def test_the_models_words_go_with_the_strategys_move():
    move, call = spoken(FakeBackend(['Seller: "I hear you. $84.00 is fair."']), ASK)
    assert move == MakeOffer(price_cents=8_400, talk="I hear you. $84.00 is fair.")
    assert (call.purpose, call.outcome, call.used, call.prompt) == ("words", "used", True, "narrator@1")


@pytest.mark.parametrize(
    ("answer", "outcome"),
    [
        ("I accept $1.", "other_price"),
        ("", "empty"),
        (BackendError("unreachable", "nobody there"), "unreachable"),
    ],
)
def test_a_template_speaks_where_the_model_cannot(answer: str | BackendError, outcome: str):
    move, call = spoken(FakeBackend([answer]), ASK)
    assert isinstance(move, MakeOffer)
    assert move.price_cents == 8_400
    assert "$84.00" in move.talk
    assert (call.outcome, call.used) == (outcome, False)


def test_a_missing_price_is_added_so_that_words_and_move_agree():
    move, _ = spoken(FakeBackend(["It is a lovely thing."]), ASK)
    assert move.talk == "It is a lovely thing. My price is $84.00."


def test_a_model_without_a_back_end_is_a_scripted_agent():
    narrator = Narrator(strategy=Decided(ASK), backend="nobody")
    assert "$84.00" in narrator.act(turn(BUYER_SPOKE, SELLER)).talk


def test_a_small_model_that_leaves_its_grammar_is_not_heard():
    move, call = spoken(FakeBackend(["Nice day. My price is $84.00."], grammar=True), ASK, speech=Speech.PHRASEBOOK)
    assert call.outcome == "not_in_grammar"
    assert "Nice day" not in move.talk
    assert call.request.grammar.startswith("root ::=")


@pytest.mark.parametrize("speech", list(Speech))
@pytest.mark.parametrize(
    ("scenario", "table", "party", "secret"),
    [
        (bilateral(cost=5_017), BUYER_SPOKE, SELLER, "50.17"),
        (bilateral(value=8_023, opener=Role.SELLER), SELLER_SPOKE, B1, "80.23"),
    ],
    ids=["seller", "buyer"],
)
def test_the_model_is_not_told_the_reservation_value(
    speech: Speech, scenario: Scenario, table: Table, party: str, secret: str
):
    own = Table(scenario).play_all(*[("buyer-1", offer(4_000))] if party == SELLER else [("seller", offer(9_000))])
    fake = FakeBackend(["Fine."])
    spoken(fake, ASK, table=own, party=party, speech=speech)
    told = "\n".join(message.content for request in fake.requests for message in request.messages)
    assert secret not in told
    assert secret.replace(".", "") not in told


def test_on_a_clock_the_first_move_that_is_heard_carries_the_words():
    backends.seat(FakeBackend(["Here you are, $84.00."]))
    table = Table(event_driven())
    narrator = Narrator(strategy=Decided(offer(8_400), say("")), backend="fake")
    first, second = narrator.act_batch(turn(table, SELLER))
    assert (first.talk, second.talk) == ("Here you are, $84.00.", "")


def test_labels_and_quotation_marks_are_no_part_of_the_words():
    assert tidy('  Message: "Good\n day."  ') == "Good day."
    assert tidy('He said "no" to "yes"') == 'He said "no" to "yes"'
