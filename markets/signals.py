"""Signals of the markets package, sent after commit."""

from django.dispatch import Signal

turn_due = Signal()
"""An agent owes a move. Arguments: `turn_id`, the primary key of the `AgentTurn`; `delay_s`, seconds
until it may start, where it may not yet."""
