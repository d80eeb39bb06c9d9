"""`manage.py refresh_figures` mends what is stored of seats and says how many it mended."""

import json

import pytest
from django.core.management import call_command

from markets import episodes
from markets.models import Episode, EpisodeSeat
from tests.markets import rooms
from tests.negotiation_site.leaderboard.records import stored

pytestmark = pytest.mark.django_db


def test_figures_of_another_version_are_worked_out_anew(capsys):
    stored(rooms.market(), seller="linear", count=3)
    EpisodeSeat.objects.filter(role="seller").update(figures="{}")
    call_command("refresh_figures", "--json")
    assert json.loads(capsys.readouterr().out) == {"episodes": 3, "seats_changed": 3}
    assert all(episodes.verify(episode) for episode in Episode.objects.all())
    call_command("refresh_figures", "--json")
    assert json.loads(capsys.readouterr().out) == {"episodes": 3, "seats_changed": 0}
