"""Seller turns: the seller spends one of T messages on one buyer, and that buyer answers.

The seller may write to another buyer while an answer is due, so that several people can think at
the same time; a buyer writes only when addressed. The seller's offer, talk, acceptance and
rejection each cost one turn; leaving costs none.
"""

from markets.engine.protocol import RefusalCode, Role
from markets.engine.scenarios import SellerTurns
from markets.engine.state import State, Thread

_BUYER = Role.BUYER


def refusal(state: State, mechanism: SellerTurns, role: Role, thread: Thread) -> RefusalCode | None:
    """Why `role` may not write in `thread` now; None where it may."""
    if role is _BUYER:
        return None if thread.to_move is _BUYER else RefusalCode.NOT_YOUR_TURN
    if thread.to_move is _BUYER:
        return RefusalCode.AWAITING_ANSWER
    return RefusalCode.TURNS_USED if state.turns_used >= mechanism.turns else None


def budget_used(state: State) -> bool:
    """Whether no message is left and no answer is due."""
    mechanism = state.scenario.mechanism
    if type(mechanism) is not SellerTurns or state.turns_used < mechanism.turns:
        return False
    return all(thread.to_move is not _BUYER for thread in state.threads)
