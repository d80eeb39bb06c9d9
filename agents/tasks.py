"""Celery entry points of the agents: one a turn. They load nothing but identifiers and delegate.

A turn that waits for a language model goes to threads of its own, so that however many models are
slow, scripted agents in other rooms answer at once.
"""

import logging
from concurrent.futures import ThreadPoolExecutor

from celery import shared_task
from django.db import connection

from agents import turns

log = logging.getLogger(__name__)

MODEL_TURNS = 16
"""Turns that may wait for models at the same time in one worker; back ends have limits of their own."""

_waiting_room = ThreadPoolExecutor(MODEL_TURNS, thread_name_prefix="model-turn")


@shared_task
def take_turn(*, turn_id: int) -> None:
    """Play one agent's turn, if it is still there to be played."""
    if turns.asks_models(turn_id):
        _waiting_room.submit(_take_model_turn, turn_id)
    else:
        turns.take_turn(turn_id=turn_id)


def _take_model_turn(turn_id: int) -> None:
    """One turn in a thread of the waiting room; a fault is written down beside the turn and in the log."""
    try:
        turns.take_turn(turn_id=turn_id)
    except Exception:
        log.exception("Turn %s failed", turn_id)
        raise
    finally:
        connection.close()
