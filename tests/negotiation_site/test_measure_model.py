"""Measuring a model's answers: counted as they were taken, kept on request, and no figure where nothing was answered."""

import io
import json
from typing import Any

import pytest
from django.core.management import CommandError, call_command
from django.test import Client

from agents import backends, measuring
from agents.backends import BackendError, ChatReply, ChatRequest
from agents.backends.fake import FakeBackend
from agents.models import ModelCall
from tests.agents.conftest import no_back_ends
from tests.markets.rooms import market

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("no_back_ends")]

__all__ = ["no_back_ends"]  # a fixture of the agents' tests

AGENT = "fake-model-unregulated"


def measured(*options: str) -> dict[str, Any]:
    out = io.StringIO()
    words = ["--agent", AGENT, "--market", market(slug="bench").slug, "--games", "4", "--json"]
    call_command("measure_model", *words, *options, stdout=out)
    return json.loads(out.getvalue())


def every_second(request: ChatRequest) -> ChatReply:
    """Nonsense first, a bid or an ask when it is sent back."""
    if len(request.messages) == 2:
        return ChatReply(text="Well.", input_tokens=10, output_tokens=1, total_ms=100)
    act = "[SELL] $70" if "as the seller" in request.messages[0].content else "[BUY] $45"
    return ChatReply(text=f"Talk: Hello!\nAction: {act}", input_tokens=20, output_tokens=5, total_ms=300, cost_micros=7)


def test_answers_are_counted_as_they_were_taken() -> None:
    backends.seat(FakeBackend(script=every_second))
    told = measured()
    assert told["answered"] == told["calls"] > 0
    assert told["valid_rate"] == 0.5
    assert told["valid_rate_low"] < 0.5 < told["valid_rate_high"]
    assert told["by_outcome"] == {"no_action": told["calls"] // 2, "used": told["calls"] // 2}
    assert told["by_purpose"] == {"move": told["calls"] // 2, "repair": told["calls"] // 2}
    assert told["input_tokens"] == 15 * told["calls"]
    assert told["cost_micros"] == 7 * told["calls"] // 2
    assert told["total_ms"] == {"p50": 100, "p95": 300}
    assert not ModelCall.objects.exists()
    assert measured() == told


def test_what_is_kept_stands_on_the_agents_page(client: Client) -> None:
    backends.seat(FakeBackend(script=every_second))
    told = measured("--store")
    assert ModelCall.objects.count() == told["calls"]
    assert set(ModelCall.objects.values_list("party", flat=True)) == {"seller", "buyer"}
    page = client.get(f"/agents/{AGENT}/").content.decode().replace("\u00a0", " ")
    assert f"50.0 % of {told['answered']} " in page
    assert f"0 in rooms, {told['calls']} in simulated games" in page


def test_one_seat_can_be_measured_alone() -> None:
    backends.seat(FakeBackend(script=every_second))
    measured("--role", "buyer", "--store")
    assert set(ModelCall.objects.values_list("party", flat=True)) == {"buyer"}


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        (["--agent", "linear"], "asks no language model"),
        (["--agent", "nobody"], "There is no agent"),
        (["--market", "nowhere"], "nowhere"),
        (["--agent", AGENT], "No model answers"),
    ],
)
def test_what_cannot_be_measured_is_a_sentence(options: list[str], sentence: str) -> None:
    backends.seat(FakeBackend([BackendError("unreachable", "It cannot be reached.")]))
    with pytest.raises(CommandError, match=sentence) as refusal:
        measured(*options)
    assert refusal.value.returncode == 2


def test_the_interval_of_nothing_is_none_and_of_something_holds_its_rate() -> None:
    assert measuring.interval(0, 0) is None
    for successes, trials in ((0, 5), (5, 5), (93, 100), (1, 1)):
        between = measuring.interval(successes, trials)
        assert between is not None
        low, high = between
        assert 0 <= low <= successes / trials <= high <= 1
    assert measuring.interval(93, 100) == pytest.approx((0.8625, 0.9657), abs=1e-3)
