"""Runs are held side by side, and every checkpoint's quality is shown with what it lacks."""

import json
from typing import Any

import pytest
from django.test import Client

from agents.learned import published
from markets import setup
from markets.engine import splits
from markets.setup import MarketSpec
from negotiation_site.training_comparison import AXES, axis_name
from training import runs, services
from training.config import ConfigError, load
from training.models import Run

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def two_runs(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("PARLEY_VAR", str(tmp_path))
    market = setup.create_market(
        MarketSpec(
            slug="four", family="multi_buyer", unit="money", values="uniform:0:100", cost="constant:0",
            buyers=4, turns=8, buyer_agents="threshold",
        )
    )  # fmt: skip
    for name, seed in (("first", 1), ("second", 2)):
        services.create_run(name=name, preset_name="tiny", market=market, overrides=(f"seed={seed}",))
        runs.folder(name).mkdir(parents=True)
    for rollout in (1, 2):
        runs.append(
            runs.folder("first"),
            {"kind": "train", "rollout": rollout, "reward": 0.1, "deal_rate": 0.5, "allocation_quality": 0.75, "extraction": 0.5},
        )  # fmt: skip
        runs.append(runs.folder("second"), {"kind": "train", "rollout": rollout, "reward": 0.2})


def measured(share: float, **more: Any) -> dict[str, Any]:
    return {
        "share": share, "share_low": share - 0.01, "share_high": share + 0.01, "deal_rate": 0.875,
        "allocation_quality": 0.9125, "refused_rate": 0.0,
    } | more  # fmt: skip


def chart(html: str, element: str) -> dict[str, Any]:
    return json.loads(html.split(f'id="{element}-data" type="application/json">')[1].split("</script>")[0])


def test_two_runs_show_what_differs_and_their_curves_in_one_plot(client: Client) -> None:
    html = client.get("/runs/compare/?a=first&b=second").content.decode()
    table = html.split('data-testid="differences"')[1].split("</table>")[0]
    assert "<code>seed</code>" in table
    assert "rollouts" not in table
    drawn = chart(html, "compare-reward")
    assert [(line["name"], line["y"]) for line in drawn["data"]] == [("first", [0.1, 0.1]), ("second", [0.2, 0.2])]
    assert "Not logged by second." in html


def test_a_key_is_broken_after_its_dots_and_underscores_alone(client: Client) -> None:
    shipped = published.cards(published.SHIPPED)[0][1].slug
    html = client.get(f"/runs/compare/?a=first&b={shipped}").content.decode()
    assert "<code>grpo.<wbr>rollouts</code>" in html


def test_three_are_compared_those_that_came_with_the_code_included(client: Client) -> None:
    shipped = published.cards(published.SHIPPED)[0][1].slug
    html = client.get(f"/runs/compare/?a=first&b=second&c={shipped}").content.decode()
    assert f'href="/runs/{shipped}/"' in html
    assert len(chart(html, "compare-reward")["data"]) == 3


def test_a_comparison_that_is_not_one_yet_says_what_to_do(client: Client) -> None:
    assert "Choose two runs" in client.get("/runs/compare/").content.decode()
    assert "Choose two runs" in client.get("/runs/compare/?a=first&b=first").content.decode()
    assert "There is no run &lt;b&gt;" in client.get("/runs/compare/?a=first&b=<b>").content.decode()


def test_quality_stands_by_checkpoint_and_by_held_out_axis(client: Client) -> None:
    rows = [measured(0.4, axis="buyer-type-impatient", stage=stage) for stage in ("sft", "grpo")]
    runs.record(
        runs.folder("first"),
        "evaluate",
        {"sft": {"greedy": measured(0.5)}, "grpo": {"greedy": measured(0.8)}, "axes": rows},
    )
    html = client.get("/runs/quality/?run=first").content.decode()
    assert "0.500 (0.490 to 0.510)" in html
    assert "buyers it never met: impatient" in html
    held_out = chart(html, "quality-axes")["data"]
    assert [line["x"] for line in held_out] == [[0.5, 0.4], [0.8, 0.4]]
    assert [line["y"] for line in chart(html, "quality-rollouts")["data"]] == [[0.75, 0.75], [0.5, 0.5]]
    assert "91.2 %" in html


def test_a_run_of_another_release_can_still_be_read(client: Client) -> None:
    run = Run.objects.get(name="second")
    told = json.loads(run.config)
    told["grpo"]["magic"] = 3
    told["spells"] = {"many": True}
    Run.objects.filter(pk=run.pk).update(config=json.dumps(told))
    for address in ("/runs/second/", "/runs/compare/?a=first&b=second", "/runs/quality/?run=second", "/runs/"):
        assert client.get(address).status_code == 200, address
    file = runs.folder("second") / "run.json"
    file.write_text(json.dumps(told))
    with pytest.raises(ConfigError, match="unknown field"):
        load(file)


def test_quality_names_what_is_not_there(client: Client) -> None:
    html = client.get("/runs/quality/?run=second").content.decode()
    unmeasured = html.split("Not measured yet: ")[1].split(".")[0].split(", ")
    assert {"first", "second"} <= set(unmeasured)
    assert "second was measured on no held-out axis" in html
    assert "second logged no allocation quality" in html


def test_every_axis_has_a_name_for_people() -> None:
    for axis in ("buyer-type", "buyer-type-impatient", "size-3x5", *splits.AXES):
        assert axis_name({"axis": axis}) != axis
    assert axis_name({"axis": "unheard-of"}) == "unheard-of"
    assert len({start for start, _text in AXES}) == len(AXES)
