"""Seller turns: the seller spends one of T messages on one buyer, and that buyer answers.

The seller may write to another buyer while an answer is due, so that several people can think at
the same time; a buyer writes only when addressed. The seller's offer, talk, acceptance and
rejection each cost one turn; leaving costs none.
"""

from markets.engine.protocol import IllegalAction, RefusalCode, Role
from markets.engine.scenarios import SellerTurns
from markets.engine.state import State, Thread


def check_turn(state: State, mechanism: SellerTurns, role: Role, thread: Thread) -> None:
    """Raise `IllegalAction` unless `role` may write in `thread` now."""
    if role is Role.BUYER:
        if thread.to_move is not Role.BUYER:
            raise IllegalAction(RefusalCode.NOT_YOUR_TURN)
    elif thread.to_move is Role.BUYER:
        raise IllegalAction(RefusalCode.AWAITING_ANSWER)
    elif state.turns_used >= mechanism.turns:
        raise IllegalAction(RefusalCode.TURNS_USED)


def budget_used(state: State, mechanism: SellerTurns) -> bool:
    """Whether no message is left and no answer is due."""
    return state.turns_used >= mechanism.turns and all(thread.to_move is not Role.BUYER for thread in state.threads)
