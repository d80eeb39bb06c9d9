"""Alternating rounds: one seller and one buyer write in turn, one message each a round."""

from markets.engine.protocol import RefusalCode, Role
from markets.engine.scenarios import Alternating
from markets.engine.state import State, Thread


def refusal(role: Role, thread: Thread) -> RefusalCode | None:
    """Why `role` may not write now; None where it owes the next message."""
    return None if thread.to_move is role else RefusalCode.NOT_YOUR_TURN


def budget_used(state: State) -> bool:
    """Whether both sides have sent their last message."""
    thread, mechanism = state.threads[0], state.scenario.mechanism
    return type(mechanism) is Alternating and thread.seller_messages + thread.buyer_messages >= 2 * mechanism.rounds
