"""Tasks reach the queue that somebody works on, and carry nothing but JSON."""

import pytest
from kombu.exceptions import EncodeError
from kombu.exceptions import OperationalError as BrokerError

from negotiation_site.celery import app


@pytest.mark.parametrize(
    ("task", "queue"),
    [("agents.tasks.play_turn", "agents"), ("training.tasks.launch", "gpu"), ("markets.tasks.export", "default")],
)
def test_a_task_goes_to_the_queue_of_its_package(task: str, queue: str) -> None:
    assert app.amqp.router.route({}, task)["queue"].name == queue


def test_an_unknown_queue_is_refused_rather_than_filled_for_ever() -> None:
    with pytest.raises((KeyError, BrokerError, ValueError, LookupError)):
        app.amqp.router.route({"queue": "agnets"}, "agents.tasks.play_turn")


def test_a_task_cannot_carry_an_object() -> None:
    with pytest.raises(EncodeError):
        app.send_task("markets.tasks.export", args=[object()])


def test_a_long_task_is_not_run_twice() -> None:
    assert app.conf.task_acks_late is False
    assert app.conf.broker_transport_options["visibility_timeout"] > 7 * 24 * 3600
    assert app.conf.worker_prefetch_multiplier == 1
