"""The rules: who may do what, and what follows from it.

`decide` judges one action and returns the events it causes, or raises `IllegalAction(code)`;
`step` also returns the state after them. `refuse` records an agent's broken move, `expire` a
missed deadline, `opening_events` what the market puts on the table. Who owes a message and when a
mechanism's budget is used up is told by one module per mechanism (`alternating`,
`seller_turns`, `event_driven`); what an offer, an acceptance or leaving means is the same everywhere
(`offers`).
"""

from collections.abc import Callable, Sequence
from typing import assert_never

from markets.engine.protocol import (
    MAX_TALK_CHARS,
    SELLER,
    AcceptOffer,
    Action,
    DeadlinePassed,
    EndReason,
    Event,
    IllegalAction,
    Leave,
    LogEntry,
    MakeOffer,
    MessageSent,
    MoveRefused,
    NegotiationEnded,
    OfferMade,
    Party,
    PartyLeft,
    RefusalCode,
    RejectOffer,
    Role,
    Say,
    SearchPrice,
    Wait,
    buyer_of,
    buyer_party,
    is_text,
    role_of,
)
from markets.engine.rules import alternating, event_driven, offers, seller_turns
from markets.engine.scenarios import Alternating, EventDriven, Mechanism, SellerTurns
from markets.engine.state import State, Thread, ThreadStatus, evolve

_FIRST_BUYER = buyer_party(1)
_SELLER, _BUYER, _OPEN = Role.SELLER, Role.BUYER, ThreadStatus.OPEN
"""Bound once: to look a member up on its class costs as much as a small structure."""

_ONLY_SELLER, _ONLY_BUYER = (SELLER,), (buyer_party(1),)


def opening_events(state: State) -> tuple[Event, ...]:
    """What the market's opening rule does before the first message."""
    counts: dict[int, int] = {}
    events = []
    for bid in state.scenario.opening_bids:
        offer_id = counts.get(bid.buyer, 0) + 1
        counts[bid.buyer] = offer_id
        events.append(
            OfferMade(
                by=Role.BUYER,
                buyer=bid.buyer,
                offer_id=offer_id,
                product=bid.product,
                price_cents=bid.price_cents,
                opening=True,
            )
        )
    return tuple(events)


def decide(state: State, party: Party, action: Action, now_ms: int = 0) -> tuple[Event, ...]:
    """The events that `action` of `party` causes. Raises `IllegalAction` and changes nothing."""
    return step(state, party, action, now_ms)[0]


def step(state: State, party: Party, action: Action, now_ms: int = 0) -> tuple[tuple[Event, ...], State]:
    """The events that `action` causes and the state after them. Raises `IllegalAction`."""
    buyer = thread_of(state, party, action)
    if state.end_reason is not None:
        raise IllegalAction(_code_after_the_end(state, buyer, action))
    deadline_ms = state.scenario.deadline_ms
    if deadline_ms is not None and now_ms > deadline_ms:
        raise IllegalAction(RefusalCode.DEADLINE_PASSED)
    if action.talk:
        _check_talk(action.talk)
    thread, role = state.threads[buyer - 1], _SELLER if party == SELLER else _BUYER
    if type(action) is not MakeOffer:
        if type(action) is Leave:
            return _leave(state, party)
        if type(action) is AcceptOffer or type(action) is RejectOffer:
            _check_status(thread)
            if offers.lost_to_another(state, thread, action.offer_id):
                raise IllegalAction(RefusalCode.SOLD_OUT)
    if thread.status is not _OPEN:
        _check_status(thread)
    if thread.to_move is not role:
        out_of_turn = _turn_refusal(state, role, thread)
        if out_of_turn is not None:
            raise IllegalAction(out_of_turn)
    if type(action) is MakeOffer:
        return _going_on(state, offers.make(state, thread, role, action))
    if type(action) is Say:
        if not action.talk.strip():
            raise IllegalAction(RefusalCode.EMPTY_MESSAGE)
        return _going_on(state, MessageSent(role, buyer))
    if type(action) is RejectOffer:
        return _going_on(state, offers.reject(thread, role, action))
    if type(action) is AcceptOffer:
        return _closing(state, offers.accept(state, thread, role, action))
    if type(state.scenario.mechanism) is not EventDriven:
        known = type(action) is Wait
        raise IllegalAction(RefusalCode.WAIT_NOT_AVAILABLE if known else RefusalCode.SEARCH_NOT_AVAILABLE)
    if type(action) is Wait:
        return _going_on(state, event_driven.wait(thread, role, action, now_ms))
    if type(action) is SearchPrice:
        return _going_on(state, event_driven.search(state.scenario, thread, role, action))
    assert_never(action)


def _check_talk(talk: str) -> None:
    if len(talk) > MAX_TALK_CHARS:
        raise IllegalAction(RefusalCode.TALK_TOO_LONG)
    if not is_text(talk):
        raise IllegalAction(RefusalCode.TALK_NOT_TEXT)


def refuse(state: State, party: Party, code: RefusalCode, *, buyer: int = 0) -> tuple[tuple[Event, ...], State]:
    """Record an agent's refused or unreadable move: its message is spent, nothing else changes."""
    if state.ended:
        raise IllegalAction(RefusalCode.NEGOTIATION_ENDED)
    role = role_of(party)
    if role is Role.BUYER:
        buyer = buyer_of(party)
    elif state.scenario.buyers == 1:
        buyer = 1
    elif not 1 <= buyer <= state.scenario.buyers:
        buyer = 0
    if buyer and state.thread(buyer).status is not ThreadStatus.OPEN:
        buyer = 0 if role is Role.SELLER else buyer
    events: tuple[Event, ...] = (MoveRefused(by=role, buyer=buyer, code=code.value),)
    if (
        code is RefusalCode.MALFORMED
        and state.scenario.malformed_ends
        and not isinstance(state.scenario.mechanism, SellerTurns)
    ):
        events += (NegotiationEnded(reason=EndReason.MALFORMED),)
        return events, _fold(state, events)
    return _closing(state, events)


def expire(state: State, party: Party) -> tuple[tuple[Event, ...], State]:
    """What follows when `party` lets its time run out: it is taken to have left.

    Where nobody is left after that, the end says that it was the clock and not a decision.
    """
    if state.ended:
        raise IllegalAction(RefusalCode.NEGOTIATION_ENDED)
    left = _left(state, party)
    return _closing(state, (deadline_passed(party), left), nobody_left=EndReason.DEADLINE)


def fall_silent(state: State) -> tuple[tuple[Event, ...], State]:
    """The end of an event-driven negotiation in which nobody will ever wake: both wait for the other.

    The driver says so, since it alone knows that nothing is on its way.
    """
    if state.ended:
        raise IllegalAction(RefusalCode.NEGOTIATION_ENDED)
    events = (NegotiationEnded(reason=EndReason.SILENCE),)
    return events, _fold(state, events)


def deadline_passed(party: Party) -> DeadlinePassed:
    """The event that says `party` did not move in time."""
    return DeadlinePassed(by=role_of(party), buyer=buyer_of(party))


def parties_to_move(state: State) -> tuple[Party, ...]:
    """Who owes a message now: buyers with an answer due first, then the seller if it may write."""
    if state.end_reason is not None:
        return ()
    mechanism, threads = state.scenario.mechanism, state.threads
    if type(mechanism) is Alternating:
        return _ONLY_BUYER if threads[0].to_move is _BUYER else _ONLY_SELLER
    if type(mechanism) is EventDriven:
        return tuple([_party(role) for role in (_BUYER, _SELLER) if may_write(state, role, threads[0])])
    due = _answers_due(threads)
    for thread in threads:
        if may_write(state, _SELLER, thread):
            due.append(SELLER)
            break
    return tuple(due)


def _answers_due(threads: tuple[Thread, ...]) -> list[Party]:
    due = []
    for thread in threads:
        if thread.to_move is _BUYER and thread.status is _OPEN:
            due.append(buyer_party(thread.buyer))
    return due


def parties_due(state: State, now_ms: int = 0) -> tuple[Party, ...]:
    """Whom the negotiation waits for: every buyer with an answer due, else the seller.

    Event-driven, whoever is awake or has waited long enough at `now_ms`; nobody where both wait.
    """
    mechanism = state.scenario.mechanism
    if type(mechanism) is EventDriven:
        if state.end_reason is not None:
            return ()
        return tuple([_party(role) for role in event_driven.to_act(mechanism, state.threads[0], now_ms)])
    if type(mechanism) is SellerTurns and state.end_reason is None:
        answers = _answers_due(state.threads)
        if answers:
            return tuple(answers)
    return parties_to_move(state)


def next_alarm_ms(state: State, party: Party) -> int | None:
    """When the timed wait of `party` is over; None where it keeps none."""
    if state.end_reason is not None or not isinstance(state.scenario.mechanism, EventDriven):
        return None
    return event_driven.next_alarm_ms(state.threads[0], role_of(party))


def _party(role: Role) -> Party:
    """The chair of a role in a bilateral market."""
    return SELLER if role is _SELLER else _FIRST_BUYER


def may_write(state: State, role: Role, thread: Thread) -> bool:
    """Whether `role` may send a message in `thread` now."""
    if thread.status is not _OPEN or state.end_reason is not None:
        return False
    return thread.to_move is role or _turn_refusal(state, role, thread) is None


def turns_left(state: State) -> int:
    """Messages the seller has left; event-driven of those it was told of, which bind nobody."""
    mechanism = state.scenario.mechanism
    if type(mechanism) is SellerTurns:
        return mechanism.turns - state.turns_used
    if type(mechanism) is Alternating:
        return mechanism.rounds - state.threads[0].seller_messages
    return max(0, mechanism.rounds - state.threads[0].seller_messages)


def position(state: State, party: Party) -> int:
    """How far the part of the negotiation that `party` sees has come; grows with every event.

    An answer thought out at another position is stale. A buyer's position is its thread's, so
    that several buyers can answer at once without cancelling one another. Event-driven it is the
    thread's and what the party did unseen.
    """
    if type(state.scenario.mechanism) is EventDriven:
        thread = state.threads[0]
        return thread.position + thread.desk(role_of(party)).unseen
    own = buyer_of(party)
    if own:
        return state.threads[own - 1].position
    return sum([thread.position for thread in state.threads]) + state.turns_used


def thread_of(state: State, party: Party, action: Action) -> int:
    """Number of the thread that `action` belongs to. Raises `IllegalAction` where none fits."""
    named = action.buyer
    if party != SELLER:
        own = buyer_of(party)
        if named and named != own:
            raise IllegalAction(RefusalCode.UNKNOWN_THREAD)
        return own
    if type(action) is Leave:
        return 0
    buyers = len(state.threads)
    if 0 < named <= buyers:
        return named
    if named == 0 and buyers == 1:
        return 1
    raise IllegalAction(RefusalCode.UNKNOWN_THREAD)


def number(events: Sequence[Event], *, after: int, at_ms: int) -> tuple[LogEntry, ...]:
    """Log entries for `events` that follow event number `after`."""
    if len(events) == 1:
        return (LogEntry(after + 1, at_ms, events[0]),)
    return tuple([LogEntry(after + k, at_ms, event) for k, event in enumerate(events, start=1)])


def _code_after_the_end(state: State, buyer: int, action: Action) -> RefusalCode:
    """Someone who accepts a moment after somebody else is told that the goods are gone."""
    if isinstance(action, AcceptOffer) and offers.lost_to_another(state, state.thread(buyer), action.offer_id):
        return RefusalCode.SOLD_OUT
    return RefusalCode.NEGOTIATION_ENDED


def _check_status(thread: Thread) -> None:
    if thread.status is _OPEN:
        return
    served = thread.status is ThreadStatus.SERVED
    raise IllegalAction(RefusalCode.ALREADY_SERVED if served else RefusalCode.THREAD_CLOSED)


def _turn_refusal(state: State, role: Role, thread: Thread) -> RefusalCode | None:
    """Why `role` may not write; whoever owes the next message may under every mechanism and need not ask."""
    mechanism = state.scenario.mechanism
    if type(mechanism) is SellerTurns:
        return seller_turns.refusal(state, mechanism, role, thread)
    if type(mechanism) is Alternating:
        return alternating.refusal(role, thread)
    if type(mechanism) is EventDriven:
        return event_driven.refusal(mechanism, role, thread)
    assert_never(mechanism)


def _leave(state: State, party: Party) -> tuple[tuple[Event, ...], State]:
    gone = EndReason.SELLER_LEFT if party == SELLER else EndReason.BUYERS_GONE
    return _closing(state, (_left(state, party),), nobody_left=gone)


def _left(state: State, party: Party) -> PartyLeft:
    buyer = buyer_of(party)
    if buyer:
        _check_status(state.thread(buyer))
    return PartyLeft(by=role_of(party), buyer=buyer)


def _going_on(state: State, event: Event) -> tuple[tuple[Event, ...], State]:
    """`event`, which sells nothing and closes no conversation: only a budget can end the negotiation with it."""
    after = evolve(state, event)
    if _BUDGET_USED[type(state.scenario.mechanism)](after):
        return _ended((event,), after, _out_of_budget(after))
    return (event,), after


def _closing(
    state: State,
    events: tuple[Event, ...],
    *,
    nobody_left: EndReason = EndReason.BUYERS_GONE,
) -> tuple[tuple[Event, ...], State]:
    """`events` and, where they leave nothing to do, the end."""
    after = _fold(state, events)
    reason = _end_reason(after, nobody_left)
    return (events, after) if reason is None else _ended(events, after, reason)


def _ended(events: tuple[Event, ...], after: State, reason: EndReason) -> tuple[tuple[Event, ...], State]:
    """`events` and the end."""
    ended = NegotiationEnded(reason)
    return (*events, ended), evolve(after, ended)


def _end_reason(state: State, nobody_left: EndReason) -> EndReason | None:
    if state.deals and not any(state.stock_left):
        return EndReason.DEAL if len(state.deals) == 1 else EndReason.SOLD_OUT
    for thread in state.threads:
        if thread.status is _OPEN:
            break
    else:
        return EndReason.DEAL if _all_served(state) else nobody_left
    return _out_of_budget(state) if _BUDGET_USED[type(state.scenario.mechanism)](state) else None


def _out_of_budget(state: State) -> EndReason:
    return EndReason.EVENTS_USED if type(state.scenario.mechanism) is EventDriven else EndReason.TURNS_USED


_BUDGET_USED: dict[type[Mechanism], Callable[[State], bool]] = {
    Alternating: alternating.budget_used,
    SellerTurns: seller_turns.budget_used,
    EventDriven: event_driven.budget_used,
}
"""Whether nothing may be written any more, as each mechanism counts."""


def _all_served(state: State) -> bool:
    return all(thread.status is ThreadStatus.SERVED for thread in state.threads)


def _fold(state: State, events: Sequence[Event]) -> State:
    for event in events:
        state = evolve(state, event)
    return state
