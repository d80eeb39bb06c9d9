"""The document of the record names every field that a record has, so that a reader finds each one."""

import re
from pathlib import Path

import pytest

from markets import export
from markets.engine.protocol import SELLER, Leave
from tests.markets.engine.factories import B1, bilateral
from tests.markets.rooms import staged

pytestmark = pytest.mark.django_db


def test_every_field_of_a_record_is_documented() -> None:
    text = (Path(__file__).parents[2] / "docs" / "data-formats.md").read_text(encoding="utf-8")
    documented = set(re.findall(r"`([a-z_0-9]+)`", text))
    game = staged(bilateral(), people=(SELLER, B1))
    game.act(SELLER, Leave())
    made = export.record(game.episode)
    assert set(made) <= documented
    assert set(made["seats"][0]) <= documented
