"""Scenarios and played moves for the engine's tests: small, explicit, without chance.

Here: one builder a family, with round numbers that a reader can do sums on, and `Table`, which
sits between a test and the rules and writes the log as a driver would. Not here: random play
(`games`), expected transcripts (`golden`).
"""

from collections.abc import Sequence
from typing import Any

from markets.engine import observation, rules
from markets.engine.observation import Observation, SeenEvent
from markets.engine.priors import BandsSpec, UniformSpec
from markets.engine.protocol import (
    AcceptOffer,
    Action,
    Event,
    IllegalAction,
    Leave,
    LogEntry,
    MakeOffer,
    Party,
    RefusalCode,
    RejectOffer,
    Role,
    Say,
    buyer_of,
)
from markets.engine.scenarios import (
    Alternating,
    EventDriven,
    Family,
    OpeningBid,
    PriceRange,
    Prior,
    Product,
    Scenario,
    SellerTurns,
)
from markets.engine.state import State, evolve, initial


def product(number: int = 0, *, list_price_cents: int = 10_000, stock: int = 1) -> Product:
    """A product with a list price of $100 unless told otherwise."""
    return Product(
        sku=f"sku-{number}",
        title=f"Thing {number}",
        category="Things",
        text="A thing.",
        list_price_cents=list_price_cents,
        stock=stock,
    )


def prior(products: Sequence[Product]) -> Prior:
    """The public prior of the builders here; says nothing about the values they are given."""
    return Prior(
        value_spec=BandsSpec(),
        cost_spec=UniformSpec(low=0.1, high=0.9),
        scales_cents=tuple(each.list_price_cents for each in products),
    )


def bilateral(
    *, value: int = 8_000, cost: int = 5_000, rounds: int = 6, opener: Role = Role.BUYER, **changes: Any
) -> Scenario:
    """One seller ($50), one buyer ($80), the buyer opens."""
    products = (product(),)
    return Scenario(
        family=Family.BILATERAL,
        mechanism=Alternating(rounds=rounds, opener=opener),
        products=products,
        seller_values_cents=(cost,),
        buyer_values_cents=((value,),),
        prior=prior(products),
        **{"seed": 1, **changes},
    )


def event_driven(
    *,
    value: int = 8_000,
    cost: int = 5_000,
    rounds: int = 10,
    events: int = 50,
    opener: Role = Role.SELLER,
    **changes: Any,
) -> Scenario:
    """One seller ($50), one buyer ($80) on a simulated clock; the seller opens, nothing is prevented."""
    products = (product(),)
    price_range = PriceRange(
        products=3, lowest_list_price_cents=4_000, median_list_price_cents=10_000, highest_list_price_cents=25_000
    )
    return Scenario(
        family=Family.BILATERAL,
        mechanism=EventDriven(rounds=rounds, events=events, opener=opener),
        products=products,
        seller_values_cents=(cost,),
        buyer_values_cents=((value,),),
        prior=prior(products),
        price_ranges=(price_range,),
        **{"seed": 1, "malformed_ends": False, **changes},
    )


def multi_buyer(
    *,
    values: Sequence[int] = (4_800, 7_200, 11_000),
    cost: int = 4_000,
    turns: int = 8,
    stock: int = 1,
    openings: Sequence[int] = (),
    **changes: Any,
) -> Scenario:
    """One product ($40) and three buyers ($48, $72, $110); `openings` are bids of buyer 1, 2, …"""
    products = (product(stock=stock),)
    return Scenario(
        family=Family.MULTI_BUYER,
        mechanism=SellerTurns(turns=turns),
        products=products,
        seller_values_cents=(cost,),
        buyer_values_cents=tuple((value,) for value in values),
        prior=prior(products),
        opening_bids=tuple(OpeningBid(buyer, 0, price) for buyer, price in enumerate(openings, start=1)),
        **{"seed": 1, **changes},
    )


def catalogue(
    *,
    values: Sequence[Sequence[int]] = ((9_000, 6_000), (8_000, 7_500)),
    costs: Sequence[int] = (5_000, 4_000),
    turns: int = 12,
    stock: int | Sequence[int] = 1,
    openings: Sequence[OpeningBid] = (),
    **changes: Any,
) -> Scenario:
    """Two products ($50, $40) and two buyers who value them at $90 and $60, $80 and $75."""
    units = (stock,) * len(costs) if isinstance(stock, int) else tuple(stock)
    products = tuple(product(number, stock=left) for number, left in enumerate(units))
    return Scenario(
        family=Family.CATALOGUE,
        mechanism=SellerTurns(turns=turns),
        products=products,
        seller_values_cents=tuple(costs),
        buyer_values_cents=tuple(tuple(own) for own in values),
        prior=prior(products),
        opening_bids=tuple(openings),
        **{"seed": 1, **changes},
    )


def offer(price_cents: int, *, to: int = 0, product: int = 0, talk: str = "") -> MakeOffer:
    """An offer; `to` names the buyer where the seller has several."""
    return MakeOffer(price_cents=price_cents, buyer=to, product=product, talk=talk)


def accept(offer_id: int, *, to: int = 0) -> AcceptOffer:
    return AcceptOffer(offer_id=offer_id, buyer=to)


def reject(offer_id: int, *, to: int = 0) -> RejectOffer:
    return RejectOffer(offer_id=offer_id, buyer=to)


def say(talk: str = "Hello.", *, to: int = 0) -> Say:
    return Say(talk=talk, buyer=to)


LEAVE = Leave()
SELLER = "seller"
B1, B2, B3 = "buyer-1", "buyer-2", "buyer-3"


class Table:
    """One negotiation in the making: a scenario, its log and the state the log leads to."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.state: State = initial(scenario)
        self.log: tuple[LogEntry, ...] = ()
        self._write(rules.opening_events(self.state), 0)

    def play(self, party: Party, action: Action, *, at_ms: int = 0) -> tuple[Event, ...]:
        """Make a legal move and give what happened."""
        events, after = rules.step(self.state, party, action, at_ms)
        self._write(events, at_ms)
        assert after == self.state, "what the rules return is what the log leads to"
        return events

    def play_all(self, *moves: tuple[Party, Action]) -> "Table":
        """Make several legal moves."""
        for party, action in moves:
            self.play(party, action)
        return self

    def refusal(self, party: Party, action: Action, *, at_ms: int = 0) -> RefusalCode:
        """The code that `action` is refused with; fails where it is legal or changes anything."""
        before = self.state
        try:
            events, _ = rules.step(self.state, party, action, at_ms)
        except IllegalAction as refused:
            assert self.state == before
            return refused.code
        raise AssertionError(f"{action!r} of {party} was legal: {events!r}")

    def refuse(self, party: Party, code: RefusalCode, *, buyer: int = 0, at_ms: int = 0) -> tuple[Event, ...]:
        """Log an agent's refused move."""
        events, after = rules.refuse(self.state, party, code, buyer=buyer)
        self._write(events, at_ms)
        assert after == self.state
        return events

    def expire(self, party: Party, *, at_ms: int = 0) -> tuple[Event, ...]:
        """Let `party` miss its deadline."""
        events, after = rules.expire(self.state, party)
        self._write(events, at_ms)
        assert after == self.state
        return events

    def fall_silent(self, *, at_ms: int = 0) -> tuple[Event, ...]:
        """Say that nobody will ever wake."""
        events, after = rules.fall_silent(self.state)
        self._write(events, at_ms)
        assert after == self.state
        return events

    def sees(self, party: Party, *, at_ms: int = 0) -> Observation:
        return observation.observe(self.state, party, now_ms=at_ms)

    def history(self, party: Party) -> tuple[SeenEvent, ...]:
        return observation.seen_events(self.scenario, self.log, party)

    def standing(self, party: Party) -> list[tuple[Role, int, int]]:
        """(by, product, price) of what stands in the thread of `party`, a buyer."""
        return [(o.by, o.product, o.price_cents) for o in self.state.thread(buyer_of(party)).standing]

    def _write(self, events: Sequence[Event], at_ms: int) -> None:
        self.log += rules.number(events, after=self.state.version, at_ms=at_ms)
        for event in events:
            self.state = evolve(self.state, event)
