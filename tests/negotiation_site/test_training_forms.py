"""The form launches what was chosen, says beforehand what that takes, and refuses the rest with a sentence."""

from pathlib import Path
from typing import Any

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

from markets import setup
from markets.importers import csv_catalogue
from markets.setup import MarketSpec
from negotiation_site import training_forms
from training import expectations, runs, services
from training.environment import draw_table
from training.models import Run, RunStatus

pytestmark = pytest.mark.django_db


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("PARLEY_VAR", str(tmp_path))
    return tmp_path


@pytest.fixture(autouse=True)
def market():
    setup.create_market(
        MarketSpec(slug="one-to-one", family="bilateral", unit="money", values="uniform:0:100", cost="constant:0")
    )
    return setup.create_market(
        MarketSpec(
            slug="four", family="multi_buyer", unit="money", values="uniform:0:100", cost="constant:0",
            buyers=4, turns=8, buyer_agents="threshold",
        )
    )  # fmt: skip


@pytest.fixture(autouse=True)
def trainer(client: Client) -> User:
    user = User.objects.create_user("trainer", is_staff=True)
    user.user_permissions.add(Permission.objects.get(codename="train_agents"))
    client.force_login(user)
    return user


def typed(**more: Any) -> dict[str, Any]:
    return {
        "name": "mine", "preset": "tiny", "market": "four", "reward": "seller_profit", "seed": "7", "device": "cpu",
        "source": "", "base": "", "grpo.rollouts": "3", "grpo.games": "2", "grpo.group": "4", "sft.steps": "5",
        "sft.demonstrations": "40", "evaluation.final_episodes": "20", "evaluation.every": "1",
    } | more  # fmt: skip


def test_the_form_offers_what_there_is_and_names_what_there_is_not(client: Client) -> None:
    html = client.get("/runs/new/").content.decode()
    main = html.split("<main")[1]
    assert 'value="four"' in main
    assert 'value="one-to-one"' not in main  # A market that the preset cannot learn in.
    assert 'value="ladder-learner"' in main
    assert 'value="demonstrations:four"' in main
    assert "No human dialogues were imported" in main
    assert "No tournament has finished" in main
    assert 'value="impatient"' not in main  # Held out.
    assert 'name="weight-linear"' in main


def test_a_refused_number_is_named_as_the_form_names_it(client: Client) -> None:
    for address in ("/runs/new/", "/runs/preview/"):
        html = client.post(address, typed(**{"grpo.group": "1"})).content.decode()
        assert "“Tries of each game” must be at least 2" in html
        assert "grpo.group must" not in html


def test_the_form_starts_in_a_market_that_fits_the_preset_and_with_what_that_would_take(client: Client) -> None:
    for slug, name, buyers in (("two", "A ladder of two", 2), ("six", "The newest ladder", 6)):
        setup.create_market(
            MarketSpec(
                slug=slug, name=name, family="multi_buyer", unit="money", values="uniform:0:100", cost="constant:0",
                buyers=buyers, turns=8, buyer_agents="threshold",
            )
        )  # fmt: skip
    html = client.get("/runs/new/").content.decode()
    assert '<option value="four" selected>' in html  # Of the size that the preset is made for.
    assert 'data-testid="expected"' in html
    assert '<option value="six" selected>' in client.get("/runs/new/?market=six").content.decode()
    assert '<option value="four" selected>' in client.get("/runs/new/?market=one-to-one").content.decode()


def test_a_run_is_launched_with_everything_that_was_chosen(client: Client) -> None:
    answer = client.post(
        "/runs/new/",
        typed(
            opponents=["threshold", "linear"], **{"weight-threshold": "3", "weight-linear": "1"},
            more_opponents="linear+chatty 2", base="ladder-learner", source="demonstrations:four", most="30",
            changes="grpo.entropy_bonus=0.01\n", reward="rlvr_seller_multi",
        ),
    )  # fmt: skip
    assert answer.status_code == 302
    assert answer.headers["Location"] == "/runs/mine/"
    run = Run.objects.get()
    config = services.config_of(run)
    assert config.game.opponents == ("threshold", "linear", "linear+chatty")
    assert config.game.weights == (3.0, 1.0, 2.0)
    assert (config.seed, config.grpo.rollouts, config.grpo.entropy_bonus) == (7, 3, 0.01)
    assert config.game.reward == "rlvr_seller_multi"
    assert config.base.endswith("ladder-learner")
    assert '"most":30' in run.source
    assert (run.status, run.device) == (RunStatus.QUEUED, "cpu")
    assert "Threshold buyer 50" in client.get("/runs/mine/").content.decode()


def test_a_preview_says_what_it_takes_and_on_what_that_is_based_and_writes_nothing(client: Client, folder) -> None:
    html = client.post("/runs/preview/", typed(name="")).content.decode()
    assert "Rows" in html
    assert ">40<" in html
    assert ">24<" in html  # 3 rollouts of 2 games of 4 tries.
    assert "Scaled from a run that comes with the code" in html
    assert "buyers n4 turns t8 cost 0" in html
    counted = client.post("/runs/preview/", typed(source="demonstrations:four", most="30")).content.decode()
    assert "counted" in counted
    assert not Run.objects.exists()
    assert not (folder / "runs").exists()


def test_the_preview_is_there_without_scripts(client: Client) -> None:
    html = client.post("/runs/new/", typed(preview="yes")).content.decode()
    assert 'data-testid="expected"' in html
    assert 'value="mine"' in html
    assert not Run.objects.exists()


def test_the_time_of_a_finished_run_here_is_the_basis_of_the_next(client: Client) -> None:
    run = services.create_run(
        name="before", preset_name="tiny", market=setup_market(), overrides=("grpo.rollouts=3", "sft.steps=5")
    )
    for stage in runs.STAGES:
        runs.folder("before").mkdir(parents=True, exist_ok=True)
        runs.record(runs.folder("before"), stage, {"wall_seconds": 10.0, "peak_bytes": 2_000_000_000})
    Run.objects.filter(pk=run.pk).update(status=RunStatus.DONE)
    found = expectations.expect(services.config_of(run), None)
    assert found.basis.name == "before"
    assert found.seconds == pytest.approx(dict.fromkeys(runs.STAGES, 10.0))
    assert found.peak_bytes == 2_000_000_000
    assert "Scaled from the run before of this server" in client.post("/runs/preview/", typed()).content.decode()


def setup_market():
    from markets import selectors

    return selectors.market("four")


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"name": ""}, "name"),
        ({"name": "new"}, "address of a page"),
        ({"name": "linear"}, "already an agent"),
        ({"market": "nowhere"}, "Choose a market"),
        ({"market": "one-to-one"}, "bilateral"),
        ({"preset": "huge"}, "no preset"),
        ({"grpo.rollouts": "many"}, "Rollouts must be a whole number"),
        ({"grpo.rollouts": "9" * 40}, "Rollouts must be a whole number"),
        ({"changes": "grpo.rolluots=3"}, "configured"),
        ({"changes": "nonsense"}, "key=value"),
        ({"more_opponents": "satisficer 1"}, "satisficer"),
        ({"more_opponents": "threshold -1"}, "positive number"),
        ({"more_opponents": "threshold nan"}, "positive number"),
        ({"opponents": "narrator"}, "language model"),
        ({"base_folder": "/etc"}, "not a model"),
        ({"base_folder": "\0"}, "no such character"),
        ({"device": "cuda:63"}, "not there"),
        ({"reward": "rlvr_buyer"}, "no reward"),
        ({"source": "moon:x"}, "no such source"),
        ({"source": "corpus:casino"}, "no corpus"),
        ({"source": "tournament:x"}, "Name the agent"),
        ({"source": "demonstrations:nowhere"}, "no market"),
        ({"source": "best:four", "min_share": "half"}, "0.5"),
    ],
)
def test_what_cannot_be_launched_is_refused_with_a_sentence(
    client: Client, changed: dict[str, str], sentence: str
) -> None:
    answer = client.post("/runs/new/", typed(**changed))
    assert answer.status_code == 400
    problem = answer.content.decode().split('data-testid="problem">')[1].split("</p>")[0]
    assert sentence in problem, problem
    assert not Run.objects.exists()


def test_a_data_set_of_nothing_is_said_before_the_launch(client: Client) -> None:
    assert "empty" in client.post("/runs/preview/", typed(source="best:four")).content.decode()


def test_another_run_is_launched_like_one_that_was(client: Client) -> None:
    client.post("/runs/new/", typed(more_opponents="threshold 3\nlinear 1", source="demonstrations:four", most="30"))
    html = client.get("/runs/new/?like=mine").content.decode()
    assert "threshold 3\nlinear 1" in html
    assert '<option value="demonstrations:four" selected>' in html
    assert 'name="grpo.rollouts" type="text" inputmode="decimal" value="3"' in html
    assert 'name="name" type="text" value=""' in html


def test_a_server_installed_for_playing_says_so(client: Client, monkeypatch) -> None:
    monkeypatch.setattr(training_forms, "full_stack_missing", lambda: ("torch",))
    assert "needs the full stack (torch)" in client.get("/runs/new/").content.decode()
    answer = client.post("/runs/new/", typed())
    assert answer.status_code == 400
    assert "Run make install" in answer.content.decode()


def test_a_run_learns_either_side_of_a_market_over_a_catalogue(client: Client, folder, settings) -> None:
    settings.VAR = folder
    setup.import_catalogue(
        name="things", rows=csv_catalogue.read(Path("negotiation_site/starter/catalogue.csv")), source="starter"
    )
    for slug, family, more in (
        ("haggle", "bilateral", {}),
        ("bands", "multi_buyer", {"values": "bands", "buyers": 3, "turns": 8}),
        ("match", "catalogue", {"values": "bands", "buyers": 3, "products": 3, "turns": 12}),
    ):
        setup.create_market(MarketSpec(slug=slug, family=family, catalogue="things", **more))
    form = client.get("/runs/new/").content.decode()
    assert all(f'<option value="{slug}"' in form for slug in ("haggle", "bands", "match"))
    assert not (folder / "catalogues").exists()  # Looking copies nothing.
    for name, market, role, reward in (
        ("buys", "haggle", "buyer", "rlvr_buyer"),
        ("sells", "haggle", "seller", "bilateral_share"),
        ("explores", "bands", "seller", "rlvr_seller_multi"),
        ("matches", "match", "seller", "rlvr_seller_catalogue"),
    ):
        answer = client.post("/runs/new/", typed(name=name, market=market, role=role, reward="", opponents="linear"))
        assert answer.status_code == 302, answer.content.decode()
        game = services.config_of(Run.objects.get(name=name)).game
        assert (game.role.value, game.reward, game.dialogue) == (role, reward, "ledger")
        assert bool(services.config_of(Run.objects.get(name=name)).sft.teachers) == (market == "haggle")
        table = draw_table(game, 3)
        assert (
            table.scenario.family.value == {"haggle": "bilateral", "bands": "multi_buyer", "match": "catalogue"}[market]
        )
        assert table.scenario.products[0].list_price_cents > 0
    refused = client.post("/runs/new/", typed(name="x", market="bands", role="buyer", reward="")).content.decode()
    assert "one to one only" in refused
    haggling = client.post("/runs/preview/", typed(market="haggle", role="buyer", reward="", opponents="linear"))
    assert "The first rows" in haggling.content.decode()
    shown = client.post("/runs/preview/", typed(market="match", reward="", opponents="linear")).content.decode()
    assert "ask 2nd p" in shown
