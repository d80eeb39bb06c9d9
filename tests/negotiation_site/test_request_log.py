"""Lines of the log can be followed by request and room, and tell nothing about people."""

import json
import logging
import logging.config

import pytest
from django.conf import settings
from django.test import Client

from markets import trace
from negotiation_site.request_log import traced
from tests.markets.engine.factories import B1, SELLER, bilateral
from tests.markets.rooms import staged

pytestmark = pytest.mark.django_db


def test_an_answer_carries_a_number_and_keeps_a_proxys(client: Client) -> None:
    own = client.get("/glossary/")["X-Request-ID"]
    assert len(own) == 16
    assert client.get("/glossary/")["X-Request-ID"] != own
    assert client.get("/glossary/", headers={"X-Request-ID": "edge-12345678"})["X-Request-ID"] == "edge-12345678"


@pytest.mark.parametrize("given", ["short", "x" * 65, "a b c d e f g", "12345678\n[request forged]"])
def test_a_number_that_could_forge_a_line_is_replaced(client: Client, given: str) -> None:
    assert client.get("/glossary/", headers={"X-Request-ID": given})["X-Request-ID"] != given


def test_a_line_of_a_room_names_it_and_the_next_request_does_not(client: Client, caplog) -> None:
    room = staged(bilateral(), people=(B1, SELLER)).room.public_id
    caplog.handler.addFilter(traced)
    with caplog.at_level(logging.WARNING, logger="django.request"):
        answer = client.get(f"/rooms/{room}/view.json")
        client.get("/nowhere/")
    inside, outside = caplog.records[-2:]
    assert (inside.room_id, inside.request_id) == (room, answer["X-Request-ID"])
    assert room in inside.trace
    assert outside.room_id == ""


def test_json_lines_are_one_object_each_with_request_and_room(capsys) -> None:
    formatters = settings.LOGGING["formatters"]
    formatter = logging.config.DictConfigurator({"version": 1}).configure_formatter(dict(formatters["json"]))
    record = logging.LogRecord("markets", logging.WARNING, __file__, 1, "Two\nlines of %s", ("ü",), None)
    with trace.in_room("abc"):
        traced(record)
    line = formatter.format(record)
    assert "\n" not in line
    told = json.loads(line)
    assert (told["level"], told["logger"], told["message"], told["room_id"]) == (
        "WARNING", "markets", "Two\nlines of ü", "abc",
    )  # fmt: skip
    assert "trace" not in told
