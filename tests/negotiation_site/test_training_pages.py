"""The pages of training runs: what came with the code is shown, and a run shows how it is doing."""

import json
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.test import Client

from agents.learned import published
from markets import setup
from markets.engine.protocol import Role
from markets.engine.scenarios import Family
from markets.setup import MarketSpec
from negotiation_site import seating
from negotiation_site.starter.markets import MARKETS
from training import runs, services
from training.models import Run, RunStatus

pytestmark = pytest.mark.django_db


@pytest.fixture
def market():
    return setup.create_market(
        MarketSpec(
            slug="four", family="multi_buyer", unit="money", values="uniform:0:100", cost="constant:0",
            buyers=4, turns=8, buyer_agents="threshold",
        )
    )  # fmt: skip


def test_a_shipped_agent_has_a_page_with_its_curve_and_its_strength(client: Client) -> None:
    for _path, card in published.cards(published.SHIPPED):
        assert card.slug in client.get("/runs/").content.decode()
        html = client.get(f"/runs/{card.slug}/").content.decode()
        assert "chart-learning-data" in html
        assert f"{card.measured['greedy']['share_low']:.3f}" in html
        assert "plotly/plotly" in html


def test_a_run_shows_its_curve_and_its_failure(client: Client, market, tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("PARLEY_VAR", str(tmp_path))
    run = services.create_run(name="mine", preset_name="tiny", market=market)
    runs.folder("mine").mkdir(parents=True)
    runs.append(runs.folder("mine"), {"kind": "watch", "rollout": 10, "greedy": 0.5, "sampled": 0.25})
    Run.objects.filter(pk=run.pk).update(status=RunStatus.FAILED, error="Out of <memory>.")
    html = client.get("/runs/mine/").content.decode()
    assert "Out of &lt;memory&gt;." in html
    data = html.split('id="chart-learning-data" type="application/json">')[1].split("</script>")[0]
    assert json.loads(data)["data"][0]["y"] == [0.5]


def measured(share: float) -> dict[str, Any]:
    return {
        "share": share,
        "share_low": share - 0.01,
        "share_high": share + 0.01,
        "asks": {"80-89": 3, "100-109": 1},
    }


@pytest.fixture
def run(market, tmp_path, monkeypatch) -> Run:
    monkeypatch.setenv("PARLEY_VAR", str(tmp_path))
    return services.create_run(name="mine", preset_name="tiny", market=market)


def test_a_finished_run_shows_its_whole_report(client: Client, run: Run) -> None:
    folder = runs.folder("mine")
    folder.mkdir(parents=True)
    tricks = [
        {"trick": "absurd ask", "mean": 0.0, "low": 0.0, "high": 0.0, "detail": "160"},
        {"trick": "hill-climbed fixed sequence", "mean": 0.814, "low": 0.803, "high": 0.825, "detail": "1:89 2:84"},
        {"trick": "linear ladder", "mean": 0.741, "low": 0.73, "high": 0.75, "detail": "a rule"},
    ]
    runs.record(folder, "exploits", {"games": 600, "rows": tricks})
    imitation = {"demonstrators": {"mean": 0.64, "low": 0.63, "high": 0.65}}
    runs.record(folder, "sft", imitation | {"greedy": measured(0.497), "sampled": measured(0.634)})
    games = [
        {"chosen": chosen, "game": k, "share": 0.9, "text": f"ask b2 8{k} <b>"}
        for k, chosen in enumerate(["best"] * 3 + ["worst"] * 3 + ["random"] * 4)
    ]
    member = {"buyers": 2, "turns": 10, "cost": 25.0, "trained": False, "greedy": 0.85, "optimal_ladder": 0.86,
              "linear_ladder": 0.84, "asks": [[1, 80]]}  # fmt: skip
    learner = {"greedy": measured(0.805), "sampled": measured(0.795), "transcripts": games, "members": [member],
               "references": {"optimal_ladder": 0.8212, "linear_ladder": 0.7391}}  # fmt: skip
    runs.record(folder, "evaluate", {"grpo": learner})
    html = client.get("/runs/mine/").content.decode()
    for figure in ("0.640", "0.497", "0.634", "0.805", "0.795", "0.814", "0.821", "0.739", "0.803 to 0.825"):
        assert figure in html, figure
    assert "1:89 2:84" in html
    assert "2 buyers, 10 turns" in html
    assert html.count('<pre class="transcript"') == 10
    assert "ask b2 80 &lt;b&gt;" in html
    data = html.split('id="chart-asks-data" type="application/json">')[1].split("</script>")[0]
    bars = json.loads(data)["data"][0]
    assert (bars["x"], bars["y"]) == (["80-89", "100-109"], [0.75, 0.25])


def test_a_shipped_agent_shows_tricks_asks_and_ten_games(client: Client) -> None:
    for _path, card in published.cards(published.SHIPPED):
        html = client.get(f"/runs/{card.slug}/").content.decode()
        assert "chart-asks-data" in html, card.slug
        assert html.count('<pre class="transcript"') == 10, card.slug
        assert "An absurd price" in html, card.slug


@pytest.mark.parametrize("verb", ["cancel", "resume"])
@pytest.mark.parametrize("account", [None, "visitor"])
def test_nobody_but_staff_stops_or_restarts_a_run(client: Client, run: Run, verb: str, account: str | None) -> None:
    if account:
        client.force_login(User.objects.create_user(account))
    Run.objects.filter(pk=run.pk).update(status=RunStatus.QUEUED if verb == "cancel" else RunStatus.FAILED)
    before = Run.objects.values().get()
    assert client.post(f"/runs/mine/{verb}/").status_code == 403
    assert client.post(f"/runs/nobody/{verb}/").status_code == 403
    assert Run.objects.values().get() == before
    assert "<form" not in client.get("/runs/mine/").content.decode().split("<main")[1].split("</main")[0]


def test_staff_cancels_and_resumes_a_run_from_its_page(client: Client, run: Run) -> None:
    client.force_login(User.objects.create_user("trainer", is_staff=True))
    assert 'action="/runs/mine/cancel/"' in client.get("/runs/mine/").content.decode()
    assert client.get("/runs/mine/cancel/").status_code == 405
    page = client.post("/runs/mine/cancel/", follow=True).content.decode()
    run.refresh_from_db()
    assert run.status == RunStatus.CANCELLED
    assert 'action="/runs/mine/resume/"' in page
    assert 'action="/runs/mine/cancel/"' not in page
    client.post("/runs/mine/resume/")
    run.refresh_from_db()
    assert run.status == RunStatus.QUEUED
    page = client.post("/runs/mine/resume/", follow=True).content.decode()
    assert "Only a failed or cancelled run can go on" in page
    assert client.post("/runs/nobody/cancel/").status_code == 404


def test_a_form_from_elsewhere_cannot_cancel_a_run(run: Run) -> None:
    strict = Client(enforce_csrf_checks=True)
    strict.force_login(User.objects.create_user("trainer", is_staff=True))
    assert strict.post("/runs/mine/cancel/").status_code == 403
    run.refresh_from_db()
    assert run.status == RunStatus.QUEUED


def test_an_unknown_run_is_not_found(client: Client) -> None:
    assert client.get("/runs/nobody/").status_code == 404


def test_only_the_chart_pages_let_plotly_write_styles(client: Client) -> None:
    slug = published.cards(published.SHIPPED)[0][1].slug
    assert "'unsafe-inline'" in client.get(f"/runs/{slug}/").headers["Content-Security-Policy"]
    assert "unsafe-inline" not in client.get("/runs/").headers["Content-Security-Policy"]


def test_the_starter_world_has_the_all_round_learner_selling_to_more_and_fewer_than_four() -> None:
    selling = {spec.buyers for spec in MARKETS if spec.seller_agent == "all-round-learner"}
    assert {2, 6} <= selling
    offered = {spec.slug for spec in seating.opponents(role=Role.SELLER, family=Family.MULTI_BUYER)}
    assert {"ladder-learner", "all-round-learner", "all-round-learner-sampled"} <= offered
