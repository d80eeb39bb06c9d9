"""What was measured elsewhere is shown with its day and command, of the very version it was measured on, and gives way to
what this site has measured."""

import datetime

import pytest
from django.test import Client

from agents import backends, injection_scores, measured, registry
from agents.backends.fake import FakeBackend
from agents.injection import attacks
from agents.measured import Answers, Attacked, Shipped
from negotiation_site.leaderboard import pages

pytestmark = pytest.mark.django_db
DAY = datetime.date(2026, 1, 2)


@pytest.fixture(autouse=True)
def model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(backends, "_configs", {})
    monkeypatch.setattr(backends, "_seated", {})
    backends.seat(FakeBackend(["Action: [QUIT]"], name="embedded"))


def ship(monkeypatch: pytest.MonkeyPatch, *, version: str) -> None:
    answers = Answers(
        agent="embedded-model",
        version=version,
        on=DAY,
        command="manage.py measure_model --agent embedded-model --market demo-bilateral",
        machine="two cores",
        answered=200,
        used=150,
    )
    attacked = Attacked(
        agent="embedded-model",
        version=version,
        on=DAY,
        command="manage.py injection_suite --agent embedded-model --most 1",
        set_name="parley",
        set_version=attacks.shipped().version,
        set_digest=attacks.shipped().digest,
        whole=False,
        attempts=6,
        breaches=1,
        by_class={"instruction": {"attempts": 6, "breaches": 1}},
        by_kind={"offer": 1},
    )
    monkeypatch.setattr(measured, "shipped", lambda: Shipped(answers=(answers,), attacks=(attacked,)))


def test_the_file_that_comes_with_the_code_can_be_read():
    found = measured.shipped()
    assert all(each.used <= each.answered for each in found.answers)
    assert all(each.breaches <= each.attempts for each in found.attacks)


def test_a_model_that_has_answered_nobody_here_shows_what_was_measured_and_when(
    client: Client, monkeypatch: pytest.MonkeyPatch
):
    ship(monkeypatch, version=registry.get("embedded-model").version)
    page = " ".join(client.get("/agents/embedded-model/").content.decode().split())
    assert "75.0 % of 200" in page
    assert "measured on 2 Jan 2026" in page
    assert "manage.py" not in page  # A player can do nothing with it.
    assert "1 of 6 attempts" in page
    assert "some tables only" in page
    (row,) = [row for row in pages._injection_table(commands=True).rows if "embedded-model" in row[0].url]
    assert (row[-1].text, row[-1].note) == (
        "1, a part",
        "manage.py injection_suite --agent embedded-model --most 1, 2 Jan 2026",
    )
    (row,) = [row for row in pages._injection_table(commands=False).rows if "embedded-model" in row[0].url]
    assert (row[-1].text, row[-1].note) == ("1, a part", "2 Jan 2026")


def test_figures_of_another_version_are_shown_nowhere(client: Client, monkeypatch: pytest.MonkeyPatch):
    ship(monkeypatch, version="another")
    page = client.get("/agents/embedded-model/").content.decode()
    assert "2 Jan 2026" not in page
    assert "not measured yet" in page
    assert not [row for row in pages._injection_table(commands=True).rows if "embedded-model" in row[0].url]


def test_what_this_site_has_measured_goes_first(monkeypatch: pytest.MonkeyPatch):
    from agents.models import InjectionScore

    spec = registry.get("embedded-model")
    ship(monkeypatch, version=spec.version)
    present = attacks.shipped()
    own = InjectionScore.objects.create(
        agent_slug=spec.slug,
        agent_version=spec.version,
        set_name=present.name,
        set_version=present.version,
        set_digest=present.digest,
        attempts=336,
        breaches=0,
        by_class={},
        by_kind={},
        command="own",
    )
    assert injection_scores.of_agent(spec.slug, spec.version) == own
    assert injection_scores.newest()[spec.slug, spec.version] == own
