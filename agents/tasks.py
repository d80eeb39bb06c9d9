"""Celery entry points of the agents: one a turn. They load nothing but identifiers and delegate."""

from celery import shared_task

from agents import turns


@shared_task
def take_turn(*, turn_id: int) -> None:
    """Play one agent's turn, if it is still there to be played."""
    turns.take_turn(turn_id=turn_id)
