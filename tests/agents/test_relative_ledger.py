"""The relative ledger tells the ledger's table on the scale that is public, and nothing more."""

from typing import Any

import msgspec
import pytest

from agents.base import Turn
from agents.learned import relative_ledger
from agents.play import Seat, play, seat
from agents.registry import get
from markets.engine import priors
from markets.engine.observation import observe, seen_events
from markets.engine.protocol import SELLER, Action, MakeOffer, MoveRefused, OfferMade, Role, buyer_party
from markets.engine.scenarios import Family, ProductFacts, Recipe, Scenario, SellerTurns, sample
from markets.engine.state import replay

PRODUCTS = tuple(
    ProductFacts(
        sku=f"p-{cents}", title="T", list_price_cents=cents, lowest_price_cents=cents // 2, highest_price_cents=cents
    )
    for cents in (1_999, 48_000, 3_333)
)
COST = {"cost_spec": priors.LowestSpec(), "cost_prior": priors.EmpiricalSpec(quantiles=(0.5, 0.5))}
SHAPES: list[dict[str, Any]] = [
    {"family": Family.MULTI_BUYER, "mechanism": SellerTurns(7), "buyers": 3},
    {"family": Family.CATALOGUE, "mechanism": SellerTurns(9), "buyers": 4, "products": 3},
]
BANDS = priors.BandsSpec()
DEAR = priors.BandsSpec(bands=tuple((2 * low, 2 * high) for low, high in BANDS.bands))


def drawn(shape: dict[str, Any], seed: int, values: priors.ValueSpec = BANDS) -> Scenario:
    return sample(Recipe(value_spec=values, **COST, **shape), PRODUCTS, seed)


class Asker:
    """Names a price that the dialogue allows, another one each turn; keeps what it was told and said."""

    def __init__(self) -> None:
        self.told: list[tuple[tuple[str, ...], ...]] = []
        self.said: list[tuple[str, ...]] = []

    def act(self, turn: Turn) -> Action:
        conversation, messages = relative_ledger.conversation(turn.observation, turn.past)
        self.told.append(tuple(message.words for message in messages))
        answer: list[str] = []
        while allowed := conversation.allowed(turn.observation, answer):
            words = [word for word in allowed if word not in ("leave", "accept")]
            answer.append(words[7 * len(self.told) % len(words)])
        self.said.append(tuple(answer))
        action = conversation.read(turn.observation, answer)
        assert action is not None, answer
        return action


@pytest.mark.parametrize("shape", SHAPES, ids=["several buyers", "a catalogue"])
def test_what_it_allows_the_rules_allow_and_a_worker_rebuilds_what_was_said(shape: dict[str, Any]) -> None:
    for seed in range(8):
        scenario, asker = drawn(shape, seed), Asker()
        seats = {buyer_party(number): seat(get("linear")) for number in range(1, scenario.buyers + 1)}
        log = play(scenario, {SELLER: Seat(get("linear"), asker), **seats}).log
        for entry in log:
            event = entry.event
            assert not (isinstance(event, MoveRefused) and event.by is Role.SELLER), event
            if isinstance(event, OfferMade) and event.by is Role.SELLER:
                assert event.price_cents >= scenario.seller_values_cents[event.product]
        for k, told in enumerate(asker.told[1:], start=1):
            assert told[: 2 * k] == asker.told[k - 1]
            assert told[2 * k] == asker.said[k - 1]


def test_a_game_that_is_publicly_a_multiple_of_another_is_told_in_the_same_words_but_for_the_cost() -> None:
    """Otherwise a policy would have to meet every level of values to sell at it."""
    for seed in range(6):
        told = []
        for values in (BANDS, DEAR):
            scenario = drawn(SHAPES[0], seed, values)
            scenario = msgspec.structs.replace(scenario, opening_bids=())
            conversation = relative_ledger.Conversation(observe(replay(scenario, ()), SELLER))
            rules, table = conversation.opening([])
            told.append((rules.words[:3], rules.words[4:], table.words))
        assert told[0] == told[1]
        assert told[0][1][0] == "law"


def test_a_hundred_is_the_highest_value_that_is_publicly_possible() -> None:
    for values in (BANDS, DEAR, priors.parse_value_spec("bands*uniform:0.75:1.3")):
        scenario = drawn(SHAPES[0], 3, values)
        seen = observe(replay(scenario, ()), SELLER)
        conversation = relative_ledger.Conversation(seen)
        conversation.opening(list(seen_events(scenario, (), SELLER)))
        action = conversation.read(seen, ("ask", "1st", "100"))
        assert isinstance(action, MakeOffer)
        top = priors.high(values) * scenario.products[0].list_price_cents
        assert action.price_cents == pytest.approx(top, abs=1)


def test_it_tells_the_law_and_not_what_was_drawn_by_it() -> None:
    law = priors.parse_value_spec("bands*uniform:0.6:1.6")
    for seed in range(6):
        scenario = drawn(SHAPES[0], seed, law)
        other = msgspec.structs.replace(scenario, buyer_values_cents=tuple((1,) for _ in scenario.buyer_values_cents))
        words = [
            relative_ledger.Conversation(observe(replay(each, ()), SELLER)).opening([])[0].words
            for each in (scenario, other)
        ]
        assert words[0] == words[1]
        assert words[0][-3:] == tuple(str(round(100 * priors.quantile(law, d) / 1.84)) for d in (0.1, 0.5, 0.9))
