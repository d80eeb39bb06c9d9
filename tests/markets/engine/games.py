"""Random negotiations for the property tests: scenarios, and moves that are mostly legal.

Here: hypothesis strategies. `scenarios` writes a scenario down field by field, with values that
need not make sense; `sampled_scenarios` draws one from a market's recipe. `plays` lets all parties
try moves, many of them illegal, and finishes the negotiation if asked to. Not here: what must
hold afterwards (`test_properties`, `test_observation`).
"""

import random
from dataclasses import dataclass

import msgspec
from hypothesis import strategies as st

from markets.engine import priors, rules, scenarios
from markets.engine.protocol import (
    SELLER,
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
    SearchPrice,
    Wait,
    buyer_of,
    buyer_party,
    role_of,
)
from markets.engine.scenarios import (
    Alternating,
    EventDriven,
    Family,
    Mechanism,
    OpeningBid,
    PriceRange,
    Prior,
    Product,
    ProductFacts,
    Recipe,
    Scenario,
    SellerTurns,
)
from markets.engine.state import State, evolve, initial


@dataclass(frozen=True)
class Step:
    """One attempt to move."""

    before: State
    party: Party
    action: Action | None
    """None for a deadline that passed."""
    refused: RefusalCode | None
    """Why the action broke a rule; its sender was told, and an agent's attempt logged."""
    events: tuple[Event, ...]
    """Empty where a person's move was refused."""
    after: State


@dataclass(frozen=True)
class Play:
    """A negotiation from its opening on."""

    scenario: Scenario
    opening: tuple[Event, ...]
    steps: tuple[Step, ...]

    @property
    def parties(self) -> tuple[Party, ...]:
        return parties_of(self.scenario)

    @property
    def batches(self) -> tuple[tuple[Event, ...], ...]:
        """Events in the groups they happened in, the opening first."""
        return (self.opening, *(step.events for step in self.steps if step.events))

    @property
    def log(self) -> tuple[LogEntry, ...]:
        entries: tuple[LogEntry, ...] = ()
        for number, batch in enumerate(self.batches):
            entries += rules.number(batch, after=len(entries), at_ms=1_000 * number)
        return entries

    @property
    def final(self) -> State:
        return self.steps[-1].after if self.steps else opened(self.scenario)


def parties_of(scenario: Scenario) -> tuple[Party, ...]:
    return (SELLER, *(buyer_party(buyer) for buyer in range(1, scenario.buyers + 1)))


def opened(scenario: Scenario) -> State:
    """The state after the opening bids."""
    state = initial(scenario)
    for event in rules.opening_events(state):
        state = evolve(state, event)
    return state


# --- Scenarios --------------------------------------------------------------------------------------

cents = st.one_of(st.integers(1, 40), st.integers(1, 30_000))
"""Small amounts often, so that prices and values meet exactly."""

regulations = st.sampled_from([(), (Role.SELLER,), (Role.BUYER,), (Role.SELLER, Role.BUYER)])


@st.composite
def mechanisms(draw: st.DrawFn, family: Family) -> Mechanism:
    """How a family may be played, short enough for a random game to reach its end."""
    if family is not Family.BILATERAL:
        return SellerTurns(turns=draw(st.sampled_from((1, 3, 6, 9))))
    opener = draw(st.sampled_from(list(Role)))
    if draw(st.booleans()):
        return Alternating(rounds=draw(st.sampled_from((1, 3, 6))), opener=opener)
    return EventDriven(
        rounds=draw(st.sampled_from((1, 3, 10))), events=draw(st.sampled_from((1, 4, 12, 50))), opener=opener
    )


def price_range(listed: int) -> PriceRange:
    """What a search finds where there is one product of a kind."""
    return PriceRange(
        products=1, lowest_list_price_cents=listed, median_list_price_cents=listed, highest_list_price_cents=listed
    )


@st.composite
def written_scenarios(draw: st.DrawFn) -> Scenario:
    """Any valid scenario of any family, whatever its values."""
    family = draw(st.sampled_from(list(Family)))
    buyers = 1 if family is Family.BILATERAL else draw(st.sampled_from((1, 2, 3, 4)))
    products = draw(st.integers(1, 3)) if family is Family.CATALOGUE else 1
    listed = [draw(cents) for _ in range(products)]
    openings: tuple[OpeningBid, ...] = ()
    if family is not Family.BILATERAL and draw(st.booleans()):
        openings = tuple(
            OpeningBid(buyer, draw(st.integers(0, products - 1)), draw(cents)) for buyer in range(1, buyers + 1)
        )
    mechanism = draw(mechanisms(family))
    return Scenario(
        family=family,
        mechanism=mechanism,
        price_ranges=tuple(price_range(price) for price in listed)
        if isinstance(mechanism, EventDriven)
        else msgspec.UNSET,
        products=tuple(
            Product(sku=f"s{index}", title=f"T{index}", list_price_cents=price, stock=draw(st.sampled_from((1, 1, 2))))
            for index, price in enumerate(listed)
        ),
        seller_values_cents=tuple(draw(cents) for _ in range(products)),
        buyer_values_cents=tuple(tuple(draw(cents) for _ in range(products)) for _ in range(buyers)),
        prior=Prior(
            value_spec=priors.BandsSpec(),
            cost_spec=priors.UniformSpec(low=0.1, high=0.9),
            scales_cents=tuple(listed),
        ),
        opening_bids=openings,
        regulated=draw(regulations),
        malformed_ends=draw(st.booleans()),
        deadline_ms=draw(st.sampled_from([None, None, 1_000])),
        seed=draw(st.integers(0, 2**63)),
    )


POOL = tuple(
    ProductFacts(
        sku=f"sku-{number}",
        title=f"Thing {number}",
        list_price_cents=1_000 * number + 99,
        lowest_price_cents=600 * number,
        highest_price_cents=1_100 * number,
    )
    for number in range(1, 9)
)


@st.composite
def recipes(draw: st.DrawFn) -> Recipe:
    """A market's rule for drawing from `POOL`."""
    family = draw(st.sampled_from(list(Family)))
    return Recipe(
        family=family,
        mechanism=draw(mechanisms(family)),
        buyers=1 if family is Family.BILATERAL else draw(st.integers(1, 5)),
        products=draw(st.integers(1, 3)) if family is Family.CATALOGUE else 1,
        stock=draw(st.integers(1, 2)) if family is Family.CATALOGUE else 1,
        value_spec=draw(
            st.sampled_from(
                [
                    priors.BandsSpec(),
                    priors.UniformSpec(low=0.4, high=1.2),
                    priors.LogNormalSpec(median=0.8, sigma=0.5),
                    priors.ConstantSpec(value=0.9),
                ]
            )
        ),
        cost_spec=draw(st.sampled_from([priors.LowestSpec(), priors.UniformSpec(low=0.3, high=0.9)])),
        cost_prior=priors.UniformSpec(low=0.3, high=0.9),
        rho=draw(st.sampled_from([0.0, 0.6])),
        regulated=draw(regulations),
    )


@st.composite
def sampled_scenarios(draw: st.DrawFn) -> Scenario:
    """A scenario as a market draws it."""
    return scenarios.sample(draw(recipes()), POOL, draw(st.integers(0, 10**6)))


any_scenario = st.one_of(written_scenarios(), sampled_scenarios())


# --- Moves ------------------------------------------------------------------------------------------


@st.composite
def plays(
    draw: st.DrawFn, scenario: st.SearchStrategy[Scenario] = any_scenario, *, finish: bool = False, moves: int = 24
) -> Play:
    """A negotiation in which everybody tries things, out of turn and beyond the rules too.

    Who tries what comes from one drawn seed: most moves are then legal and games run to their end,
    which choices drawn one by one do not achieve.
    """
    drawn = draw(scenario)
    rng = random.Random(draw(st.integers(0, 2**32)))
    state = opened(drawn)
    steps: list[Step] = []
    for _ in range(draw(st.sampled_from((2, moves // 2, moves)))):
        step = _step(state, rng)
        steps.append(step)
        state = step.after
        if state.ended:
            break
    while finish and not state.ended:
        step = _attempt(state, rules.parties_to_move(state)[0], Leave(), logged=True)
        steps.append(step)
        state = step.after
    return Play(drawn, rules.opening_events(initial(drawn)), tuple(steps))


KINDS = {
    "offer": 40,
    "accept": 16,
    "reject": 8,
    "say": 12,
    "leave": 3,
    "wait": 3,
    "search": 1,
    "nothing to say": 1,
    "unreadable": 2,
    "expire": 1,
}


def _step(state: State, rng: random.Random) -> Step:
    in_turn = rng.random() < 0.85
    party = rng.choice(rules.parties_to_move(state) if in_turn else parties_of(state.scenario))
    (kind,) = rng.choices(list(KINDS), list(KINDS.values()))
    if kind == "expire":
        return _expire(state, party)
    if kind == "unreadable":
        events, after = rules.refuse(state, party, RefusalCode.MALFORMED, buyer=rng.randint(0, 4))
        return Step(state, party, None, RefusalCode.MALFORMED, events, after)
    logged = rng.random() < 0.5
    return _attempt(state, party, _action(state, party, kind, rng), logged=logged)


def _action(state: State, party: Party, kind: str, rng: random.Random) -> Action:
    buyer = _thread(state, party, rng)
    known = min(max(buyer, 1), state.scenario.buyers)
    named = buyer if party == SELLER or rng.random() < 0.1 else 0
    match kind:
        case "offer":
            product = rng.randrange(len(state.scenario.products) + (rng.random() < 0.05))
            return MakeOffer(price_cents=_price(state, known, product, rng), product=product, buyer=named)
        case "accept":
            return AcceptOffer(offer_id=_offer_id(state, party, known, rng), buyer=named)
        case "reject":
            return RejectOffer(offer_id=_offer_id(state, party, known, rng), buyer=named)
        case "say":
            return Say(talk="Well.", buyer=named)
        case "leave" if party != SELLER or rng.random() < 0.2:
            return Leave(buyer=named)
        case "wait":
            return Wait(buyer=named, for_ms=rng.choice((0, 0, 700, 60_000, -1)))
        case "search":
            return SearchPrice(buyer=named, product=rng.randrange(len(state.scenario.products) + (rng.random() < 0.05)))
        case _:
            return Say(talk=" ", buyer=named)


def _thread(state: State, party: Party, rng: random.Random) -> int:
    if party != SELLER:
        return buyer_of(party)
    free = [thread.buyer for thread in state.threads if rules.may_write(state, Role.SELLER, thread)]
    return rng.choice(free) if free and rng.random() < 0.9 else rng.randint(0, state.scenario.buyers + 1)


def _offer_id(state: State, party: Party, buyer: int, rng: random.Random) -> int:
    thread = state.thread(buyer)
    open_to_answer = [offer.offer_id for offer in thread.standing if offer.by is not role_of(party)]
    if open_to_answer and rng.random() < 0.85:
        return rng.choice(open_to_answer)
    return rng.randint(0, len(thread.offers) + 1)


def _price(state: State, buyer: int, product: int, rng: random.Random) -> int:
    """A price around what matters: both values, the list price, and sometimes what is no price."""
    index = min(product, len(state.scenario.products) - 1)
    cost = state.scenario.seller_values_cents[index]
    value = state.scenario.buyer_values_cents[buyer - 1][index]
    listed = state.scenario.products[index].list_price_cents
    if rng.random() < 0.04:
        return rng.choice((0, -1, 10**10 + 1))
    return max(1, rng.choice((cost, value, (cost + value) // 2, cost + 1, value - 1, cost - 1, value + 1, listed)))


def _attempt(state: State, party: Party, action: Action, *, logged: bool) -> Step:
    try:
        events, after = rules.step(state, party, action)
    except IllegalAction as refused:
        if not logged:
            return Step(state, party, action, refused.code, (), state)
        events, after = rules.refuse(state, party, refused.code, buyer=action.buyer)
        return Step(state, party, action, refused.code, events, after)
    return Step(state, party, action, None, events, after)


def _expire(state: State, party: Party) -> Step:
    try:
        events, after = rules.expire(state, party)
    except IllegalAction as refused:
        return Step(state, party, None, refused.code, (), state)
    return Step(state, party, None, None, events, after)
