"""The pages of training runs: what came with the code is shown, and a run shows how it is doing."""

import json

import pytest
from django.test import Client

from agents.learned import published
from markets import setup
from markets.setup import MarketSpec
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


def test_an_unknown_run_is_not_found(client: Client) -> None:
    assert client.get("/runs/nobody/").status_code == 404


def test_only_the_chart_pages_let_plotly_write_styles(client: Client) -> None:
    slug = published.cards(published.SHIPPED)[0][1].slug
    assert "'unsafe-inline'" in client.get(f"/runs/{slug}/").headers["Content-Security-Policy"]
    assert "unsafe-inline" not in client.get("/runs/").headers["Content-Security-Policy"]
