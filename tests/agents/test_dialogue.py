"""The words of small models: a wrong word here and a trained seller sells at a wrong price."""

import pytest

from agents import registry
from agents.learned import dialogue
from agents.learned.dialogue import Message
from agents.play import play, seat
from markets.engine import priors
from markets.engine.observation import observe, seen_events
from markets.engine.protocol import SELLER, AcceptOffer, Leave, MakeOffer, OfferMade, Role, Say, buyer_party
from markets.engine.rules import step
from markets.engine.scenarios import Alternating, Family, Prior, Product, Scenario, SellerTurns
from markets.engine.state import evolve, initial


def table(*, family: Family = Family.MULTI_BUYER, list_price: int = 20_000, turns: int = 4) -> Scenario:
    buyers = 1 if family is Family.BILATERAL else 3
    return Scenario(
        family=family,
        mechanism=Alternating(4) if family is Family.BILATERAL else SellerTurns(turns),
        products=(Product(sku="a", title="A", list_price_cents=list_price),),
        seller_values_cents=(list_price // 10,),
        buyer_values_cents=((list_price * 6 // 10,), (list_price * 8 // 10,), (list_price * 3 // 10,))[:buyers],
        prior=Prior(
            value_spec=priors.UniformSpec(low=0, high=1),
            cost_spec=priors.ConstantSpec(value=0.1),
            scales_cents=(list_price,),
        ),
        seed=4,
    )


def test_the_first_messages_name_the_table_on_the_scale_of_the_list_price() -> None:
    for list_price in (100, 20_000, 1_234_567):
        observation = observe(initial(table(list_price=list_price)), SELLER)
        assert dialogue.opening(observation) == (
            Message("system", ("buyers", "n3", "turns", "t4", "cost", "10")),
            Message("user", ("left", "t4")),
        )


@pytest.mark.parametrize(
    ("words", "action"),
    [
        ("ask b2 84", MakeOffer(buyer=2, price_cents=16_800)),
        ("ask b2 0", MakeOffer(buyer=2, price_cents=1)),
        ("leave", Leave()),
        ("accept b1", None),
        ("ask b2 161", None),
        ("ask b13 84", None),
        ("ask 2 84", None),
        ("ask b2", None),
        ("ask b2 84 84", None),
        ("", None),
        ("buyers n3", None),
        ("ask b0 10", None),
        ("ask b2 ²", None),
    ],
)
def test_an_answer_is_one_action_or_none(words: str, action: object) -> None:
    observation = observe(initial(table()), SELLER)
    assert dialogue.read(observation, words.split()) == action


def test_accepting_takes_the_buyers_latest_bid() -> None:
    state = initial(table())
    for party, action in ((SELLER, MakeOffer(buyer=1, price_cents=19_000)), ("buyer-1", MakeOffer(price_cents=9_000))):
        state = step(state, party, action)[1]
    observation = observe(state, SELLER)
    assert dialogue.read(observation, ["accept", "b1"]) == AcceptOffer(buyer=1, offer_id=2)
    assert dialogue.read(observation, ["accept", "b2"]) is None


def test_what_is_written_reads_back_as_the_same_action() -> None:
    observation = observe(initial(table()), SELLER)
    for number in range(1, 161):
        action = MakeOffer(buyer=3, price_cents=number * 200)
        assert dialogue.read(observation, dialogue.write(observation, action)) == action
    with pytest.raises(dialogue.NoDialogue):
        dialogue.write(observation, Say(talk="hello"))


@pytest.mark.parametrize("buyer", ["threshold", "linear", "impatient", "zi-c", "tit-for-tat"])
def test_the_dialogue_is_rebuilt_from_the_sellers_own_past_at_every_turn(buyer: str) -> None:
    """A worker that answers one turn of a room reads what a rollout that saw every turn read."""
    scenario = table(turns=9)
    opponents = {buyer_party(k): seat(registry.get(buyer)) for k in (1, 2, 3)}
    played = play(scenario, {SELLER: seat(registry.get("chase-highest-bid")), **opponents})
    state, before = initial(scenario), ()
    for entry in played.log:
        event = entry.event
        if isinstance(event, OfferMade) and event.by is Role.SELLER:
            past = seen_events(scenario, played.log[: entry.n - 1], SELLER)
            messages = dialogue.transcript(observe(state, SELLER), past)
            assert messages[: len(before)] == before
            assert [message.role for message in messages[1:]] == ["user", "assistant"] * state.turns_used + ["user"]
            assert messages[-1].words[-1] == f"t{observe(state, SELLER).turns_left}"
            before = messages
        state = evolve(state, event)
    assert before


def test_every_word_that_can_be_written_or_heard_is_in_the_vocabulary() -> None:
    known = set(dialogue.vocabulary())
    assert len(known) == len(dialogue.vocabulary())
    for buyer in ("linear", "impatient", "threshold"):
        scenario = table(turns=12)
        opponents = {buyer_party(k): seat(registry.get(buyer)) for k in (1, 2, 3)}
        played = play(scenario, {SELLER: seat(registry.get("falling-ladder")), **opponents})
        past = seen_events(scenario, played.log, SELLER)
        for message in dialogue.transcript(observe(initial(scenario), SELLER), past):
            assert known.issuperset(message.words)


def test_no_value_of_a_buyer_reaches_the_words() -> None:
    scenario = table()
    changed = Scenario(
        **{f: getattr(scenario, f) for f in scenario.__struct_fields__} | {"buyer_values_cents": ((1,), (2,), (3,))}
    )
    ask = MakeOffer(buyer=1, price_cents=19_000)
    seen = []
    for own in (scenario, changed):
        state = step(initial(own), SELLER, ask)[1]
        seen.append(dialogue.opening(observe(state, SELLER)))
    assert seen[0] == seen[1]


def test_a_seat_without_words_is_refused() -> None:
    with pytest.raises(dialogue.NoDialogue):
        dialogue.opening(observe(initial(table(family=Family.BILATERAL)), SELLER))
    with pytest.raises(dialogue.NoDialogue):
        dialogue.opening(observe(initial(table()), "buyer-1"))
