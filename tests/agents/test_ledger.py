"""The ledger tells a seat what it knows and no more, and what it allows the rules allow."""

import random
from typing import Any

import msgspec
import pytest

from agents.base import Turn
from agents.learned import grammars, ledger
from agents.learned.dialogue import END
from agents.play import Seat, play, seat
from agents.registry import get
from markets.engine import priors
from markets.engine.observation import observe, seen_events
from markets.engine.protocol import (
    SELLER,
    Action,
    LogEntry,
    MakeOffer,
    MoveRefused,
    OfferMade,
    Party,
    Role,
    buyer_party,
    role_of,
)
from markets.engine.scenarios import (
    Alternating,
    EventDriven,
    Family,
    ProductFacts,
    Recipe,
    Scenario,
    SellerTurns,
    sample,
)
from markets.engine.state import replay

PRODUCTS = tuple(
    ProductFacts(
        sku=f"p-{k}",
        title=f"Thing {k}",
        list_price_cents=cents,
        lowest_price_cents=cents * 6 // 10,
        highest_price_cents=cents * 12 // 10,
    )
    for k, cents in enumerate((1_999, 48_000, 3_333, 120_050, 707))
)
LOWEST = {"cost_spec": priors.LowestSpec(), "cost_prior": priors.EmpiricalSpec(quantiles=(0.6, 0.6))}
SEVERAL: dict[str, Any] = {"family": Family.MULTI_BUYER, "mechanism": SellerTurns(7), "buyers": 3}
CATALOGUE: dict[str, Any] = {"family": Family.CATALOGUE, "mechanism": SellerTurns(9), "buyers": 4, "products": 3}
ROUNDS: dict[str, Any] = {"family": Family.BILATERAL, "mechanism": Alternating(rounds=6, opener=Role.BUYER)}
CLOCK: dict[str, Any] = {"family": Family.BILATERAL, "mechanism": EventDriven(rounds=6)}
GAMES = [
    pytest.param(SEVERAL, SELLER, "linear", id="several buyers"),
    pytest.param(CATALOGUE, SELLER, "logit", id="a catalogue"),
    pytest.param(ROUNDS, buyer_party(1), "conceder", id="a buyer in rounds"),
    pytest.param(CLOCK, SELLER, "tit-for-tat", id="a seller on the clock"),
    pytest.param(CLOCK, buyer_party(1), "boulware", id="a buyer on the clock"),
]


class Babbler:
    """Says anything that the ledger allows; keeps what it was told at every turn."""

    def __init__(self, *, eager: bool) -> None:
        self._eager = eager
        self.told: list[tuple[tuple[str, ...], ...]] = []
        self.said: list[tuple[str, ...]] = []

    def act(self, turn: Turn) -> Action:
        conversation, messages = ledger.conversation(turn.observation, turn.past)
        self.told.append(tuple(message.words for message in messages))
        answer: list[str] = []
        while allowed := conversation.allowed(turn.observation, answer):
            words = [word for word in allowed if self._eager or word not in ("leave", "accept")] or allowed
            answer.append(
                turn.chance.choice(list(words)) if not answer else random.Random(len(self.told)).choice(words)
            )
        self.said.append(tuple(answer))
        action = conversation.read(turn.observation, answer)
        assert action is not None, answer
        return action


def scenario(shape: dict[str, Any], seed: int) -> Scenario:
    recipe = Recipe(value_spec=priors.BandsSpec(), **LOWEST, **shape)
    return sample(recipe, PRODUCTS, seed)


def seats(drawn: Scenario, own: Party, agent: Any, opposite: str) -> dict[Party, Seat]:
    parties = [SELLER, *(buyer_party(number) for number in range(1, drawn.buyers + 1))]
    return {party: Seat(get("linear"), agent) if party == own else seat(get(opposite)) for party in parties}


@pytest.mark.parametrize(("shape", "own", "opposite"), GAMES)
def test_whatever_it_allows_the_rules_allow_and_loses_no_money(
    shape: dict[str, Any], own: Party, opposite: str
) -> None:
    for seed in range(25):
        drawn = scenario(shape, seed)
        log = play(drawn, seats(drawn, own, Babbler(eager=seed % 2 == 0), opposite)).log
        for entry in log:
            event = entry.event
            assert not (isinstance(event, MoveRefused) and event.by is role_of(own)), event
            if isinstance(event, OfferMade) and event.by is role_of(own):
                limit = drawn.reservation_value_cents(role=event.by, buyer=event.buyer, product=event.product)
                assert (event.price_cents >= limit) if own == SELLER else (event.price_cents <= limit)


@pytest.mark.parametrize(("shape", "own", "opposite"), GAMES)
def test_a_later_dialogue_starts_with_the_earlier_one_and_holds_what_was_said(
    shape: dict[str, Any], own: Party, opposite: str
) -> None:
    """Otherwise what a worker rebuilds would not be what the model was trained on."""
    for seed in range(12):
        drawn = scenario(shape, seed)
        babbler = Babbler(eager=False)
        play(drawn, seats(drawn, own, babbler, opposite))
        for k, told in enumerate(babbler.told):
            assert len(told) == 2 + 2 * k
            if k:
                assert told[: 2 * k] == babbler.told[k - 1]
                assert told[2 * k] == babbler.said[k - 1]


def renumbered(drawn: Scenario, log: tuple[LogEntry, ...]) -> tuple[Scenario, tuple[LogEntry, ...]]:
    """The same negotiation with buyers 1, 2, 3 called 2, 3, 1."""
    new = {1: 2, 2: 3, 3: 1}
    values = (drawn.buyer_values_cents[2], *drawn.buyer_values_cents[:2])
    bids = tuple(msgspec.structs.replace(bid, buyer=new[bid.buyer]) for bid in drawn.opening_bids)
    entries = tuple(
        msgspec.structs.replace(entry, event=msgspec.structs.replace(entry.event, buyer=new[entry.event.buyer]))
        if getattr(entry.event, "buyer", 0)
        else entry
        for entry in log
    )
    return msgspec.structs.replace(drawn, buyer_values_cents=values, opening_bids=bids), entries


def words_of(drawn: Scenario, log: tuple[LogEntry, ...], party: Party = SELLER) -> list[tuple[str, ...]]:
    seen = observe(replay(drawn, log), party)
    return [message.words for message in ledger.conversation(seen, list(seen_events(drawn, log, party)))[1]]


def test_play_cannot_depend_on_how_buyers_are_numbered() -> None:
    for seed in range(12):
        drawn = scenario(SEVERAL, seed)
        log = play(drawn, seats(drawn, SELLER, Babbler(eager=False), "linear")).log
        cut = log[: len(log) // 2]
        if len({bid.price_cents for bid in drawn.opening_bids}) == 3:
            assert words_of(drawn, cut) == words_of(*renumbered(drawn, cut))


def test_a_seller_is_told_nothing_that_depends_on_what_buyers_think() -> None:
    for seed in range(12):
        drawn = scenario(SEVERAL, seed)
        log = play(drawn, seats(drawn, SELLER, Babbler(eager=False), "threshold")).log
        other = msgspec.structs.replace(drawn, buyer_values_cents=tuple((1,) for _ in drawn.buyer_values_cents))
        assert words_of(drawn, log) == words_of(other, log)


def test_a_buyer_is_told_nothing_that_depends_on_the_cost() -> None:
    drawn = scenario(CLOCK, 4)
    log = play(drawn, seats(drawn, buyer_party(1), Babbler(eager=False), "linear")).log
    other = msgspec.structs.replace(drawn, seller_values_cents=(1,))
    assert words_of(drawn, log, buyer_party(1)) == words_of(other, log, buyer_party(1))


@pytest.mark.parametrize("price", [707, 1_999, 120_050])
def test_own_limits_are_rounded_so_that_naming_them_loses_nothing(price: int) -> None:
    product = ProductFacts(sku="x", title="X", list_price_cents=price, lowest_price_cents=1, highest_price_cents=price)
    for share in (0.3331, 0.5, 0.7777):
        spec = priors.ConstantSpec(value=share)
        recipe = Recipe(value_spec=spec, cost_spec=spec, cost_prior=spec, **ROUNDS)
        drawn = sample(recipe, [product], 1)
        for party, verb in ((SELLER, "ask"), (buyer_party(1), "bid")):
            seen = observe(replay(drawn, ()), party)
            conversation = ledger.Conversation(seen)
            rules, _ = conversation.opening([])
            limit = rules.words[3]
            action = conversation.read(seen, (verb, limit))
            assert isinstance(action, MakeOffer)
            assert seen.surplus_cents(product=0, price_cents=action.price_cents) >= 0


def test_what_is_no_answer_of_the_seat_cannot_be_read() -> None:
    drawn = scenario(SEVERAL, 1)
    state = replay(drawn, play(drawn, seats(drawn, SELLER, Babbler(eager=False), "linear")).log[:3])
    seen = observe(state, SELLER)
    conversation = ledger.Conversation(seen)
    conversation.opening([])
    for words in (
        (),
        ("ask",),
        ("ask", "90"),
        ("ask", "4th", "90"),
        ("bid", "1st", "90"),
        ("ask", "1st", "201"),
        ("wait",),
    ):
        assert conversation.read(seen, words) is None, words


def test_a_tokenizer_tells_its_grammar_and_no_word_is_there_twice() -> None:
    for grammar in grammars.ALL:
        assert len(set(grammar.words)) == len(grammar.words)
        assert grammars.of_words(grammar.words) is grammar
        assert END in grammar.words
    assert grammars.of_words(["ask"]) is None
