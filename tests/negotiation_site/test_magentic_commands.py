"""The commands about profiles of another market answer with one document or one sentence."""

import json
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from django.core.management import CommandError, call_command

from markets.models import Catalogue, Market, Product

pytestmark = pytest.mark.django_db


def ran(*arguments: str) -> dict[str, Any]:
    out = StringIO()
    call_command(*arguments, "--json", stdout=out, stderr=StringIO())
    return json.loads(out.getvalue())


def test_the_optimum_is_held_against_what_was_published(parley_data):
    told = ran("optimal_welfare", str(parley_data / "magentic_marketplace" / "data" / "mexican_3_9"))
    assert (told["customers"], told["businesses"]) == (3, 9)
    assert (told["optimal_welfare"], told["published_cents"], told["matches"]) == (63.78, 6_378, True)


def test_profiles_become_a_market_once(parley_data):
    into = (
        str(parley_data / "magentic_marketplace" / "data" / "mexican_3_9"),
        "--format",
        "magentic",
        "--name",
        "tacos",
    )
    told = ran("import_market", *into)
    assert (told["market"], told["products"], told["optimal_welfare_cents"]) == ("tacos", 6, 6_378)
    assert ran("import_market", *into) == told
    assert Market.objects.get().catalogue.slug == "tacos"
    assert all(product.lowest_price_cents < product.list_price_cents for product in Product.objects.all())
    played = ran(
        "simulate", *["--market", "tacos", "--seller", "serial", "--buyers", "linear", "--episodes", "2", "--seed", "1"]
    )
    assert played["episodes"] == 2


def test_a_folder_of_something_else_changes_nothing(tmp_path: Path):
    for command in (("optimal_welfare",), ("import_market", "--format", "magentic", "--name", "tacos")):
        with pytest.raises(CommandError, match="holds no profiles") as told:
            call_command(command[0], str(tmp_path), *command[1:], stdout=StringIO(), stderr=StringIO())
        assert told.value.returncode == 2
    assert not Catalogue.objects.exists()
