"""Alternating rounds: one seller and one buyer write in turn, one message each a round."""

from markets.engine.protocol import IllegalAction, RefusalCode, Role
from markets.engine.scenarios import Alternating
from markets.engine.state import Thread


def check_turn(role: Role, thread: Thread) -> None:
    """Raise `IllegalAction` unless `role` owes the next message."""
    if thread.to_move is not role:
        raise IllegalAction(RefusalCode.NOT_YOUR_TURN)


def budget_used(mechanism: Alternating, thread: Thread) -> bool:
    """Whether both sides have sent their last message."""
    return thread.seller_messages + thread.buyer_messages >= 2 * mechanism.rounds
