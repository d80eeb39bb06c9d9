"""The pages of training runs: what came with the code is shown, and a run shows how it is doing."""

import json
import shutil
import subprocess
import sys
from typing import Any

import msgspec
import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.utils import timezone

from agents.learned import published
from markets import setup
from markets.engine.protocol import Role
from markets.engine.scenarios import Family
from markets.setup import MarketSpec
from negotiation_site import seating
from negotiation_site.starter.markets import MARKETS
from training import publishing, runs, services
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


def both(share: float) -> dict[str, Any]:
    """What a stage measures: the likeliest move, and moves drawn."""
    return {"greedy": measured(share), "sampled": measured(share)}


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
    searched = 0
    for path, card in published.cards(published.SHIPPED):
        html = client.get(f"/runs/{card.slug}/").content.decode()
        assert "chart-asks-data" in html, card.slug
        assert html.count('<pre class="transcript"') == 10, card.slug
        if (path / "exploits.json").exists():  # Tricks are looked for in games of one product.
            searched += 1
            assert "An absurd price" in html, card.slug
    assert searched >= 5


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


# --- Live, for whom --------------------------------------------------------------------------------


@pytest.fixture
def trainer(client: Client) -> User:
    user = User.objects.create_user("trainer", is_staff=True)
    user.user_permissions.add(Permission.objects.get(codename="train_agents"))
    client.force_login(user)
    return user


def train_line(rollout: int, **more: Any) -> dict[str, Any]:
    return {
        "kind": "train", "rollout": rollout, "reward": 0.3, "deal_rate": 0.8, "surplus_share": 0.5,
        "unconditional_share": 0.4, "opening_of_list": 0.7, "adherence": 0.98, "violations": {"format": 0.02},
        "coverage": 0.6, "fixation": 0.25, "zero_spread_groups": 0.125, "entropy": 1.25, "kl/update": 0.001,
        "kl/imitator": 0.02, "importance_ratio/mean": 1.0, "importance_ratio/max": 1.4, "tokens_per_second": 1234.0,
        "seconds": {"generation": 1.0, "environment": 0.5, "learning": 2.0, "looking": 0.0},
    } | more  # fmt: skip


@pytest.fixture
def learning(run: Run) -> Run:
    """A run in the middle of learning."""
    folder = runs.folder("mine")
    folder.mkdir(parents=True)
    runs.record(folder, "exploits", {"games": 1, "rows": [], "wall_seconds": 3.0, "peak_bytes": 1})
    runs.append(folder, {"kind": "imitate", "rollout": 0, "step": 25, "steps": 250, "loss": 1.5})
    for rollout in range(1, 16):
        more = {} if rollout < 8 else {"opening_of_list": 0.9}
        runs.append(folder, train_line(rollout, **more))
    runs.append_sample(folder, {"rollout": 15, "chosen": "best", "reward": 0.9, "text": "ask b2 84 <b>"})
    (folder / "log.txt").write_text("first\nlast words <b>\n")
    Run.objects.filter(pk=run.pk).update(status=RunStatus.RUNNING, stage="grpo", owner="x", heartbeat_at=timezone.now())
    return run


def test_a_run_is_followed_while_it_learns(client: Client, learning: Run) -> None:
    html = client.get("/runs/mine/").content.decode()
    for question in ("Does the reward", "Does it close", "Does it keep the rules", "How high does it open",
                     "Does it try several", "something to learn from", "How undecided", "How far has it moved",
                     "stay close to what was played", "How fast", "Where does the time go", "like those it imitates"):  # fmt: skip
        assert question in html, question
    assert 'hx-get="/runs/mine/status/"' in html
    assert 'hx-get="/runs/mine/curves/"' in html
    assert "pressing: rollouts" in html
    assert "How phases are marked" in html
    assert "cannot be read" in html  # A type of violation by its name.
    assert "ask b2 84 &lt;b&gt;" in html
    status = client.get("/runs/mine/status/").content.decode()
    assert "15 of 150" in status
    assert "This stage ends in" in status
    curves = client.get("/runs/mine/curves/").content.decode()
    data = curves.split('id="live-reward-data" type="application/json">')[1].split("</script>")[0]
    assert json.loads(data)["layout"]["annotations"][1]["text"] == "pressing"
    assert "HX-Refresh" not in client.get("/runs/mine/status/").headers


def test_a_stage_whose_steps_are_done_promises_no_seconds(client: Client, learning: Run) -> None:
    runs.append(runs.folder("mine"), train_line(150))
    status = client.get("/runs/mine/status/").content.decode()
    assert "150 of 150" in status
    assert "its steps are done; what it learned is measured and written" in status


def test_a_run_that_is_being_started_says_so(client: Client, run: Run) -> None:
    Run.objects.filter(pk=run.pk).update(status=RunStatus.RUNNING, stage="", owner="x", heartbeat_at=timezone.now())
    assert "Starting: the training stack is being loaded" in client.get(f"/runs/{run.name}/").content.decode()


def test_a_figure_that_a_run_never_logged_is_named(client: Client, learning: Run) -> None:
    assert (
        "Not logged by this run: first offer / own limit, deals with the buyer of highest value"
        in client.get("/runs/mine/curves/").content.decode()
    )


def test_the_page_comes_anew_when_the_run_stands_still(client: Client, learning: Run) -> None:
    Run.objects.filter(pk=learning.pk).update(status=RunStatus.DONE)
    answer = client.get("/runs/mine/status/")
    assert answer.headers["HX-Refresh"] == "true"
    assert "hx-get" not in answer.content.decode()


@pytest.mark.parametrize("account", [None, "visitor", "staff"])
def test_nobody_without_the_permission_launches_publishes_or_reads_logs(
    client: Client, learning: Run, account: str | None
) -> None:
    if account:
        client.force_login(User.objects.create_user(account, is_staff=account == "staff"))
    Run.objects.filter(pk=learning.pk).update(status=RunStatus.DONE)
    before = list(Run.objects.values())
    form = client.get("/runs/new/")
    assert form.status_code == (403 if account else 302)
    assert client.post("/runs/new/", {"name": "theirs"}).status_code == (403 if account else 302)
    assert client.post("/runs/preview/", {"name": "theirs"}).status_code == 403
    assert client.get("/runs/mine/log/").status_code == 403
    assert client.get("/runs/nobody/log/").status_code == 403
    assert client.post("/runs/mine/publish/").status_code == 403
    assert list(Run.objects.values()) == before
    page = client.get("/runs/mine/").content.decode()
    assert "last words" not in page
    assert "/runs/mine/log/" not in page
    assert "publish" not in page.split("<main")[1].split("</main")[0].lower().replace("published", "")
    assert 'href="/runs/new/' not in client.get("/runs/").content.decode()


def test_a_permission_alone_does_not_make_staff(client: Client, run: Run) -> None:
    user = User.objects.create_user("visitor")
    user.user_permissions.add(Permission.objects.get(codename="train_agents"))
    client.force_login(user)
    assert client.get("/runs/new/").status_code == 403


def test_the_log_is_read_by_those_who_train(client: Client, trainer: User, learning: Run) -> None:
    assert 'hx-get="/runs/mine/log/"' in client.get("/runs/mine/").content.decode()
    assert "last words &lt;b&gt;" in client.get("/runs/mine/log/").content.decode()


def test_a_finished_run_is_published_by_one_click(client: Client, trainer: User, run: Run, settings, tmp_path) -> None:
    settings.VAR = tmp_path
    shipped = published.SHIPPED / "ladder-learner"
    folder = runs.folder("mine")
    shutil.copytree(shipped, folder / "grpo")
    shutil.copy(shipped / "evaluate.json", folder)
    (folder / "run.json").write_text(run.config)
    refused = client.post("/runs/mine/publish/", follow=True).content.decode()
    assert "Only a finished run can be published" in refused
    Run.objects.filter(pk=run.pk).update(status=RunStatus.DONE)
    assert 'action="/runs/mine/publish/"' in client.get("/runs/mine/").content.decode()
    page = client.post("/runs/mine/publish/", follow=True).content.decode()
    assert 'href="/agents/mine/"' in page
    assert 'action="/runs/mine/publish/"' not in page, "it is an agent already"
    assert client.get("/agents/mine/").status_code == 200


@pytest.mark.parametrize(
    ("evaluated", "said"),
    [
        ({"grpo": both(0.0)}, "It keeps nothing: 0.000 (95% interval"),
        (
            {"sft": both(0.5), "grpo": both(0.25)},
            "It keeps 0.250 (95% interval 0.240 to 0.260) of the first best in games kept apart, which is less than "
            "after imitation: 0.500",
        ),
        (None, "was not judged"),
        ({"sft": both(0.5), "grpo": both(0.75)}, ""),
    ],
)
def test_whoever_publishes_a_run_that_is_not_worth_it_is_told_so_before(
    client: Client, trainer: User, run: Run, evaluated: dict[str, Any] | None, said: str
) -> None:
    folder = runs.folder("mine")
    folder.mkdir(parents=True)
    if evaluated is not None:
        runs.record(folder, "evaluate", evaluated)
    Run.objects.filter(pk=run.pk).update(status=RunStatus.DONE)
    page = client.get("/runs/mine/").content.decode()
    before, _form, _after = page.partition('action="/runs/mine/publish/"')
    assert ('data-testid="doubt"' in page) == bool(said)
    assert said in before


def test_a_run_kept_short_is_not_said_to_have_played_thousands_of_games(run: Run) -> None:
    config = services.config_of(run)
    short = msgspec.structs.replace(config.grpo, rollouts=2, games=4, group=4)
    assert "thousands of games" in publishing._summary(config)
    assert "thousands" not in publishing._summary(msgspec.structs.replace(config, grpo=short))


def test_no_page_of_training_loads_torch() -> None:
    code = (
        "import os, sys; os.environ.setdefault('DJANGO_SETTINGS_MODULE', 'tests.settings'); import django; django.setup();"
        "from negotiation_site import training_comparison, training_forms, training_pages, urls;"
        "from training import expectations, imitation, publishing, services;"
        "print([name for name in ('torch', 'transformers', 'trl') if name in sys.modules])"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert told.stdout.strip().splitlines()[-1] == "[]"
