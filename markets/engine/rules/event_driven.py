"""Event-driven: both sides act when they like, on a simulated clock that the driver keeps.

An action is judged where it lands. What the other side can see (an offer, an answer, talk) wakes
it; a wait puts its sender to sleep until something arrives or its time is over; a search or a
refused move is known to its sender alone and wakes it again. Everything a party does counts as one
event towards the cap. The rounds that the parties are told of bind nobody.

From arXiv 2604.16472: the tools, the latency, batches, timed waits, the cap, the seller's initial
price. Ours, where its text is silent: that waits, searches and refused moves count as events, that
they are hidden from the other side, and that a refused move wakes its sender.
"""

from markets.engine.protocol import (
    MAX_WAIT_MS,
    IllegalAction,
    PriceSearched,
    RefusalCode,
    Role,
    SearchPrice,
    Wait,
    Waited,
)
from markets.engine.scenarios import EventDriven, Scenario
from markets.engine.state import State, Thread

_BUYER_FIRST = (Role.BUYER, Role.SELLER)


def refusal(mechanism: EventDriven, role: Role, thread: Thread) -> RefusalCode | None:
    """Why `role` may not act now; None where it may. Nobody speaks before the opener has."""
    opened = thread.seller_messages or thread.buyer_messages
    return None if opened or role is mechanism.opener else RefusalCode.NOT_YOUR_TURN


def budget_used(state: State) -> bool:
    """Whether the cap is reached."""
    mechanism = state.scenario.mechanism
    return type(mechanism) is EventDriven and state.events_used >= mechanism.events


def wait(thread: Thread, role: Role, action: Wait, now_ms: int) -> Waited:
    """Let time pass: `for_ms` milliseconds from now, or as long as it takes with 0."""
    if not 0 <= action.for_ms <= MAX_WAIT_MS:
        raise IllegalAction(RefusalCode.WAIT_OUT_OF_RANGE)
    return Waited(role, thread.buyer, now_ms + action.for_ms if action.for_ms else None)


def search(scenario: Scenario, thread: Thread, role: Role, action: SearchPrice) -> PriceSearched:
    """Look up the public price range of a product."""
    if not 0 <= action.product < len(scenario.products):
        raise IllegalAction(RefusalCode.UNKNOWN_PRODUCT)
    return PriceSearched(role, thread.buyer, action.product)


def to_act(mechanism: EventDriven, thread: Thread, now_ms: int) -> tuple[Role, ...]:
    """Who is to be asked for an action at `now_ms`, the buyer first: it is awake, or its timed wait is over."""
    due = []
    for role in _BUYER_FIRST:
        desk = thread.desk(role)
        over = desk.until_ms is not None and desk.until_ms <= now_ms
        if (desk.awake or over) and refusal(mechanism, role, thread) is None:
            due.append(role)
    return tuple(due)


def next_alarm_ms(thread: Thread, role: Role) -> int | None:
    """When the timed wait of `role` is over; None where it keeps none."""
    return thread.desk(role).until_ms
