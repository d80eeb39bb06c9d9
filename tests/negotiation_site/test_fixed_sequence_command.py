"""The baseline that reads no reply can be found again for any market, by anybody, from a seed."""

import json

import pytest
from django.core.management import call_command
from django.core.management.base import CommandError

from markets import setup
from markets.setup import MarketSpec
from tests.markets import rooms

pytestmark = pytest.mark.django_db


def found(capsys: pytest.CaptureFixture[str], *words: str) -> dict:
    call_command("fixed_sequence", *words, "--json")
    return json.loads(capsys.readouterr().out)


def test_a_market_gets_the_same_sequence_from_the_same_seed(capsys: pytest.CaptureFixture[str]) -> None:
    setup.create_market(
        MarketSpec(
            slug="four",
            family="multi_buyer",
            values="uniform:0:100",
            cost="constant:0",
            buyers=4,
            turns=8,
            unit="money",
        )
    )
    first = found(capsys, "--market", "four", "--scenarios", "200")
    assert first == found(capsys, "--market", "four", "--scenarios", "200")
    assert first != found(capsys, "--market", "four", "--scenarios", "200", "--seed", "2")
    assert set(first) == {"market", "scenarios", "seed", "share", "steps"}
    assert len(first["steps"]) == 8
    assert set(first["steps"][0]) == {"buyer", "product", "price_share"}
    assert {step["buyer"] for step in first["steps"]} == {1, 2, 3, 4}
    assert first["share"] > 0.7


def test_people_read_words(capsys: pytest.CaptureFixture[str]) -> None:
    rooms.market("bilateral", slug="bench")
    call_command("fixed_sequence", "--market", "bench", "--scenarios", "50")
    said = capsys.readouterr().out
    assert "of the first best on 50 training scenarios." in said
    assert "price_share" in said


def test_a_market_that_is_not_there_gets_a_sentence() -> None:
    with pytest.raises(CommandError, match="There is no market 'nope'") as refused:
        call_command("fixed_sequence", "--market", "nope")
    assert refused.value.returncode == 2
