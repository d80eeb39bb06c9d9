"""The command line: one document on request, a sentence for every mistake, the same play for the same seed."""

import csv
import json
import os
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from django.conf import settings
from django.core.management import execute_from_command_line
from django.db import connections

from agents import registry
from markets import episodes
from markets.engine.metrics import outcome
from markets.engine.protocol import SELLER, decode_log
from markets.engine.scenarios import decode_recipe, decode_scenario
from markets.engine.state import replay
from markets.models import Catalogue, Episode, Market, Product
from negotiation_site.starter.markets import MARKETS
from tests.markets import rooms
from tests.markets.engine.factories import B1, LEAVE, bilateral, offer
from tests.markets.rooms import staged

pytestmark = pytest.mark.django_db

NAMED_IN_THE_CONTRACT = [
    "zi-u",
    "zi-c",
    "boulware",
    "linear",
    "conceder",
    "tit-for-tat",
    "hardliner",
    "split-the-difference",
    "satisficer",
    "threshold",
    "logit",
    "impatient",
    "chase-highest-bid",
    "one-pass",
    "falling-ladder",
    "explore-then-commit",
    "all-on-one",
    "optimal-ladder",
    "greedy",
    "serial",
    "random-match",
    "oracle",
]


@dataclass(frozen=True)
class Done:
    """What a command left behind."""

    code: int
    out: str
    err: str

    @property
    def document(self) -> Any:
        """Standard output, which is one JSON document and nothing else."""
        assert self.code == 0, self.err
        return json.loads(self.out)

    @property
    def sentence(self) -> str:
        """What a refused command said; fails where it said anything else or did not refuse."""
        assert (self.code, self.out) == (2, ""), self
        assert "Traceback" not in self.err
        last = self.err.strip().splitlines()[-1]
        return last.removeprefix("CommandError: ")


Cli = Callable[..., Done]


@pytest.fixture
def cli(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Cli:
    """`manage.py` in this process, on the test's database."""
    monkeypatch.setattr(connections, "close_all", lambda: None)

    def run(*words: object) -> Done:
        capsys.readouterr()
        code = 0
        try:
            execute_from_command_line(["manage.py", *map(str, words)])
        except SystemExit as left:
            code = left.code or 0
        captured = capsys.readouterr()
        return Done(code, captured.out, captured.err)

    return run


@pytest.fixture
def bench() -> Market:
    """A bilateral market without a catalogue."""
    return rooms.market("bilateral", slug="bench")


def simulation(market: str = "bench", **changes: object) -> list[object]:
    options = {"market": market, "seller": "linear", "buyers": "linear", "episodes": 20, "seed": 1} | changes
    return ["simulate", *(word for name, value in options.items() for word in (f"--{name}", value)), "--json"]


# --- One document -----------------------------------------------------------------------------------


def test_every_command_prints_one_document_and_nothing_else(cli, bench, tmp_path):
    table = tmp_path / "things.csv"
    table.write_text("title,list_price,lowest_price,highest_price\nDesk,100,50,120\n", encoding="utf-8")
    for words in (
        ("migrate",),
        ("seed_demo",),
        ("list_markets",),
        ("list_agents",),
        ("create_market", "--slug", "new", "--family", "bilateral", "--unit", "money", "--values", "uniform:1:2"),
        simulation()[:-1],
        ("import_catalogue", table, "--format", "csv", "--name", "things"),
        ("export_episodes", "--format", "jsonl", "--out", tmp_path / "out"),
    ):
        done = cli(*words, "--json")
        assert done.document is not None, words
        assert done.err == "", words


def test_without_json_people_read_words(cli, bench):
    for words in (("seed_demo",), ("list_markets",), ("list_agents",)):
        done = cli(*words)
        assert done.code == 0
        assert len(done.out) > 20
    assert "bench" in cli("list_markets").out


NEW_MARKET = ["create_market", "--slug", "x", "--family", "bilateral", "--unit", "money", "--values", "uniform:0:100"]


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (simulation("nowhere"), "There is no market 'nowhere'; there is: bench."),
        (simulation(seller="nobody"), "There is no agent 'nobody'."),
        (simulation(seller="liniar"), "Did you mean 'linear'"),
        (simulation(seller="threshold"), "'threshold' plays buyer only, not seller."),
        (simulation(buyers="optimal-ladder"), "'optimal-ladder' plays seller only, not buyer."),
        (simulation(seller="greedy"), "'greedy' plays catalogue markets only, not bilateral."),
        (simulation(buyers="linear,linear"), "This market seats 1 buyer"),
        (simulation(buyers=""), "There is no agent ''."),
        (simulation(episodes=0), "less than 1"),
        (simulation(episodes=-5), "less than 1"),
        (simulation(episodes="many"), "not a whole number"),
        (simulation(seed="x"), "invalid int value"),
        (["simulate", "--market", "bench"], "required"),
        (["create_market", "--slug", "x"], "required"),
        (["create_market", "--slug", "x", "--family", "auction", "--catalogue", "c"], "There is no family 'auction'"),
        (["create_market", "--slug", "a b", "--family", "bilateral", "--unit", "money"], "letters, digits, hyphens"),
        (["create_market", "--slug", "x" * 51, "--family", "bilateral", "--unit", "money"], "at most 50 characters"),
        ([*NEW_MARKET, "--name", "x" * 201], "at most 200 characters, not 201"),
        ([*NEW_MARKET, "--summary", "x" * 301], "at most 300 characters"),
        ([*NEW_MARKET, "--buyer-agents", ",".join(["linear"] * 60)], "at most 400 characters"),
        (["create_market", "--slug", "x", "--family", "bilateral", "--catalogue", "none"], "There is no catalogue"),
        (["create_market", "--slug", "x", "--family", "bilateral"], "needs a --catalogue"),
        (["create_market", "--slug", "x", "--family", "bilateral", "--unit", "money"], "--values uniform:0:100"),
        (["create_market", "--slug", "x", "--family", "bilateral", "--rho", "1.5"], "not at least 0 and below 1"),
        (["create_market", "--slug", "x", "--family", "bilateral", "--rho", "nan"], "not at least 0 and below 1"),
        (["create_market", "--slug", "x", "--family", "bilateral", "--turns", "0"], "less than 1"),
        (["create_market", "--slug", "x", "--family", "bilateral", "--unit", "euro"], "invalid choice"),
        ([*NEW_MARKET, "--mechanism", "auction"], "There is no mechanism 'auction'"),
        ([*NEW_MARKET, "--mechanism", "seller_turns"], "played in alternating rounds or event-driven"),
        ([*NEW_MARKET, "--events", "20"], "Only an event_driven market has a cap on events"),
        ([*NEW_MARKET, "--mechanism", "event_driven", "--events", "1001"], "must be 1 to 1000"),
        ([*NEW_MARKET, "--mechanism", "event_driven", "--turns", "65"], "must be 1 to 64"),
        (
            [
                "create_market",
                "--slug",
                "x",
                "--family",
                "multi_buyer",
                "--unit",
                "money",
                "--values",
                "uniform:1:2",
                "--mechanism",
                "event_driven",
            ],
            "A multi_buyer market is played in seller turns",
        ),
        (["import_catalogue", "/no/such/file", "--format", "csv", "--name", "c"], "/no/such/file"),
        (["import_catalogue", "/", "--format", "xml", "--name", "c"], "invalid choice"),
        (["import_catalogue", "/", "--format", "csv", "--name", "a b"], "letters, digits, hyphens"),
        (["export_episodes", "--format", "xml", "--out", "/tmp"], "invalid choice"),
        (["export_episodes", "--format", "csv", "--out", "/tmp"], "is not empty"),
        (["export_episodes", "--format", "sft", "--out", "/tmp/x", "--study", "nil"], "There is no study 'nil'"),
        (["export_episodes", "--format", "sft", "--out", "/tmp/x", "--agent", "liniar"], "Did you mean 'linear'"),
        (["export_episodes", "--format", "sft", "--out", "/tmp/x", "--since", "yesterday"], "'yesterday' is no date"),
        (["export_episodes", "--format", "jsonl", "--out", "/dev/null"], "is a file"),
        (["export_episodes", "--format", "jsonl", "--out", "/proc/nowhere"], "cannot be written"),
        (["export_episodes", "--format", "jsonl", "--out", "/dev/null/x"], "Not a directory"),
        (["export_episodes", "--format", "jsonl", "--out", "/tmp/" + "x" * 300], "File name too long"),
        (["export_episodes", "--format", "jsonl", "--out", "/tmp", "--market", "nowhere"], "There is no market"),
        (["list_markets", "--nonsense"], "unrecognized arguments"),
    ],
    ids=lambda value: " ".join(map(str, value))[:60] if isinstance(value, list) else "",
)
def test_a_wrong_argument_ends_with_two_and_a_sentence(cli, bench, words, part):
    assert part in cli(*words).sentence
    assert Market.objects.count() == 1
    assert not Episode.objects.exists()


@pytest.mark.parametrize(
    ("option", "spec"),
    [
        ("values", "uniform:2:1"),
        ("values", "uniform:1"),
        ("values", "uniform:a:b"),
        ("values", "normal:1:2"),
        ("values", "lognormal:0:1"),
        ("values", "lognormal:1:-1"),
        ("values", "constant:-1"),
        ("values", "constant:nan"),
        ("values", "constant:1e400"),
        ("values", "lowest"),
        ("values", ""),
        ("cost", "bands"),
        ("cost", "lognormal:1:1"),
        ("cost", "lowest"),
        ("cost", "uniform:-1:1"),
    ],
)
def test_a_distribution_that_is_none_ends_with_two_and_a_sentence(cli, option, spec):
    values = [] if option == "values" else ["--values", "uniform:1:2"]
    done = cli(
        "create_market",
        "--slug",
        "x",
        "--family",
        "bilateral",
        "--unit",
        "money",
        *values,
        f"--{option}",
        spec,
        "--json",
    )
    assert len(done.sentence) > 15
    assert not Market.objects.exists()


# --- The world --------------------------------------------------------------------------------------


def test_seeding_makes_a_world_and_seeding_again_changes_nothing(cli):
    first = cli("seed_demo", "--json").document
    before = {model: list(model.objects.order_by("pk").values()) for model in (Market, Product, Catalogue)}
    again = cli("seed_demo", "--json").document
    assert (first["products"], len(first["created"]), again["created"]) == (168, len(MARKETS), [])
    assert before == {model: list(model.objects.order_by("pk").values()) for model in before}


def test_the_world_has_enough_to_choose_from(cli):
    cli("seed_demo")
    markets = cli("list_markets", "--json").document
    assert len(markets) >= 8
    assert {"demo-bilateral", "demo-multi-buyer", "demo-catalogue"} <= {market["slug"] for market in markets}
    assert {market["family"] for market in markets} == {"bilateral", "multi_buyer", "catalogue"}
    assert {market["mechanism"] for market in markets} == {"alternating", "seller_turns", "event_driven"}
    assert Product.objects.count() >= 150
    assert Product.objects.values("category").distinct().count() >= 8
    for product in Product.objects.all():
        assert 0 < product.lowest_price_cents <= product.list_price_cents
        assert product.highest_price_cents
        assert product.stock
        assert product.text


def test_every_market_of_the_world_can_be_simulated_with_its_own_agents(cli):
    cli("seed_demo")
    for market in Market.objects.all():
        recipe = decode_recipe(market.recipe)
        buyers = (market.buyer_agents.split(",") * recipe.buyers)[: recipe.buyers]
        report = cli(*simulation(market.slug, seller=market.seller_agent, buyers=",".join(buyers), episodes=3)).document
        assert report["episodes"] == 3, market.slug


def test_the_agents_of_the_contract_are_listed(cli):
    agents = {agent["slug"]: agent for agent in cli("list_agents", "--json").document}
    assert set(NAMED_IN_THE_CONTRACT) <= set(agents)
    for slug, agent in agents.items():
        spec = registry.get(slug)
        assert agent["roles"] == [role.value for role in spec.roles]
        assert agent["families"] == [family.value for family in spec.families]
        assert agent["kind"] == spec.kind.value
    assert (agents["oracle"]["kind"], agents["linear"]["kind"]) == ("reference", "scripted")


# --- Markets ----------------------------------------------------------------------------------------


@pytest.fixture
def catalogue(cli, tmp_path) -> str:
    """A catalogue of three products."""
    path = tmp_path / "things.csv"
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(["title", "list_price", "lowest_price", "highest_price"])
        writer.writerows([[f"Thing {n}", 100 * n, 60 * n, 120 * n] for n in (1, 2, 3)])
    cli("import_catalogue", path, "--format", "csv", "--name", "things")
    return "things"


@pytest.mark.parametrize(
    "options",
    [
        "--family bilateral --catalogue things",
        "--family bilateral --catalogue things --values bands --cost lowest --turns 3",
        "--family bilateral --catalogue things --values lognormal:0.9:0.3 --cost constant:0.5 --opener buyer",
        "--family multi_buyer --catalogue things --buyers-n 5 --values uniform:0.5:1.3 --rho 0.7",
        "--family multi_buyer --unit money --values uniform:0:100 --cost constant:0 --buyers-n 4 --turns 8",
        "--family multi_buyer --unit money --values lognormal:50:0.5 --cost uniform:5:20",
        "--family multi_buyer --unit money --values constant:80 --cost constant:20",
        "--family catalogue --catalogue things --buyers-n 4 --products-m 3 --rho 0.5 --turns 16",
        "--family catalogue --unit money --values uniform:10:90 --cost uniform:1:9 --products-m 4 --buyers-n 4",
        "--family bilateral --unit money --values uniform:10:90 --catalogue things",
        "--family bilateral --mechanism event_driven --catalogue things",
        "--family bilateral --mechanism event_driven --catalogue things --turns 4 --events 12 --opener buyer",
        "--family bilateral --mechanism event_driven --unit money --values uniform:10:90",
    ],
)
def test_a_market_of_every_kind_can_be_made_and_played(cli, catalogue, options):
    made = cli("create_market", "--slug", "made", *options.split(), "--json").document
    assert (made["slug"], made["version"]) == ("made", 1)
    asked = dict(zip(options.split()[::2], options.split()[1::2], strict=True))
    assert made["family"] == asked["--family"]
    usual = "alternating" if made["family"] == "bilateral" else "seller_turns"
    assert made["mechanism"] == asked.get("--mechanism", usual)
    for option, field in (("--buyers-n", "buyers_n"), ("--turns", "turns"), ("--stock", "stock")):
        assert str(made[field]) == asked.get(option, str(made[field]))
    report = cli(*simulation("made", episodes=4)).document
    assert report["episodes"] == 4


def test_making_the_same_market_again_changes_nothing_and_another_one_needs_another_name(cli):
    words = ["create_market", "--slug", "x", "--family", "bilateral", "--unit", "money", "--values", "uniform:1:9"]
    assert cli(*words, "--json").document == cli(*words, "--json").document
    assert "choose another slug" in cli(*words, "--turns", "9").sentence
    assert Market.objects.count() == 1


def test_a_market_in_money_has_a_scale_of_one_unit(cli):
    cli(
        *[
            "create_market",
            "--slug",
            "x",
            "--family",
            "multi_buyer",
            "--unit",
            "money",
            "--values",
            "constant:80",
            "--cost",
            "constant:20.5",
        ],
        *["--buyers-n", "2"],
    )
    cli(*simulation("x", episodes=1), "--store")
    scenario = decode_scenario(Episode.objects.get().scenario)
    assert scenario.buyer_values_cents == ((8_000,), (8_000,))
    assert scenario.seller_values_cents == (2_050,)


# --- Simulations ------------------------------------------------------------------------------------


def test_a_report_says_what_the_contract_names(cli, bench):
    report = cli(*simulation()).document
    assert {
        "episodes",
        "deals",
        "deal_rate",
        "seller_surplus_share",
        "buyer_surplus_share",
        "unconditional_seller_share",
        "seller_extraction",
        "allocation_quality",
        "constraint_adherence",
        "constraint_adherence_by_role",
        "mean_turns",
        "seconds",
        "log_sha256",
    } <= set(report)
    assert set(report["constraint_adherence_by_role"]) == {"seller", "buyer"}
    assert len(report["log_sha256"]) == 64


@pytest.mark.parametrize(
    ("family", "seller", "buyers"),
    [
        ("bilateral", "conceder", "boulware"),
        ("multi_buyer", "falling-ladder", "linear"),
        ("catalogue", "greedy", "linear"),
    ],
)
def test_the_figures_are_those_of_the_stored_episodes(cli, family, seller, buyers):
    market = rooms.market(family)
    report = cli(*simulation(market.slug, seller=seller, buyers=buyers, episodes=30), "--store").document
    stored = list(Episode.objects.prefetch_related("seats"))
    assert all(episodes.verify(episode) for episode in stored)
    results = [outcome(decode_scenario(e.scenario), decode_log(e.log)) for e in stored]
    gainful = [result for result in results if result.first_best_cents > 0]
    deals = [deal for result in results for deal in result.deals]
    assert report["episodes"] == len(stored) == 30
    assert report["deals"] == len(deals)
    assert report["deal_rate"] == pytest.approx(sum(bool(result.deals) for result in results) / 30)
    assert report["unconditional_seller_share"] == pytest.approx(
        sum(result.seller_surplus_cents / result.first_best_cents for result in gainful) / len(gainful)
    )
    first_best = sum(result.first_best_cents for result in results)
    assert report["seller_extraction"] == pytest.approx(sum(r.seller_surplus_cents for r in results) / first_best)
    assert report["allocation_quality"] == pytest.approx(sum(r.welfare_cents for r in results) / first_best)
    assert report["seller_surplus_share"] == pytest.approx(
        sum(deal.seller_surplus_cents / deal.seller_joint_cents for deal in deals) / len(deals)
    )
    assert report["buyer_surplus_share"] == pytest.approx(
        sum(deal.buyer_surplus_cents / deal.pair_joint_cents for deal in deals) / len(deals)
    )
    assert report["mean_turns"] == pytest.approx(sum(result.seller_messages for result in results) / 30)
    assert report["constraint_adherence"] == 1.0
    assert 0 < report["allocation_quality"] <= 1


def test_the_oracle_takes_everything_from_whoever_accepts_any_gain(cli):
    market = rooms.market("multi_buyer", slug="gain", values="uniform:50:100", cost="constant:20")
    report = cli(*simulation(market.slug, seller="oracle", buyers="threshold")).document
    assert report["allocation_quality"] == pytest.approx(1.0)
    assert report["seller_extraction"] == pytest.approx(1.0, abs=0.01)


def test_agents_that_may_lose_money_are_counted(cli, bench):
    report = cli(*simulation(seller="zi-u", buyers="zi-u", episodes=40)).document
    assert report["constraint_adherence"] < 1
    assert cli(*simulation(seller="zi-c", buyers="zi-c", episodes=40)).document["constraint_adherence"] == 1


def test_the_same_seed_is_the_same_play_and_another_seed_another(cli, bench):
    first, again, other = (cli(*simulation(seed=seed)).document["log_sha256"] for seed in (7, 7, 8))
    assert first == again != other


def test_keeping_the_episodes_changes_no_move(cli, bench):
    plain, stored = cli(*simulation()).document, cli(*simulation(), "--store").document
    assert plain["log_sha256"] == stored["log_sha256"]
    assert {key: value for key, value in plain.items() if key != "seconds"} == {
        key: value for key, value in stored.items() if key != "seconds"
    }
    assert Episode.objects.count() == 20


def test_kept_episodes_carry_words_agents_and_no_person(cli):
    market = rooms.market("multi_buyer")
    cli(*simulation(market.slug, seller="falling-ladder", buyers="linear,conceder,boulware", episodes=2), "--store")
    episode = Episode.objects.first()
    assert (episode.source, episode.consent_scope, episode.room) == ("simulated", "public", None)
    agents = dict(episode.seats.values_list("party", "agent_slug"))
    assert agents == {SELLER: "falling-ladder", "buyer-1": "linear", "buyer-2": "conceder", "buyer-3": "boulware"}
    assert episode.texts.exclude(talk="").exists()
    log = decode_log(episode.log)
    for text in episode.texts.all():
        event = log[text.n - 1].event
        assert text.party == (SELLER if event.by == "seller" else f"buyer-{event.buyer}")


def test_more_episodes_than_one_batch_are_all_kept(cli, bench, monkeypatch):
    monkeypatch.setattr("negotiation_site.management.commands.simulate.BATCH", 7)
    cli(*simulation(), "--store")
    assert Episode.objects.count() == 20


# --- Catalogues -------------------------------------------------------------------------------------


def test_the_public_catalogue_goes_in_whole(cli, parley_data):
    folder = parley_data / "amazon_history_price"
    if not folder.is_dir():
        pytest.skip(f"no {folder}")
    for _ in range(2):
        done = cli(
            "import_catalogue", folder, "--format", "amazon-history-price", "--name", "amazon", "--json"
        ).document
        assert (done["products"], done["skipped"]) == (930, 0)
        assert Product.objects.filter(catalogue__slug="amazon").count() == 930
    assert all(p.lowest_price_cents <= p.highest_price_cents for p in Product.objects.all())


def test_bad_rows_are_reported_by_file_and_line_and_the_rest_goes_in(cli, tmp_path):
    table = tmp_path / "mixed.csv"
    table.write_text(
        "title,list_price,lowest_price,highest_price\n"
        "Good desk,100,50,120\n"
        "No price,,50,120\n"
        "Bad price,-5,1,2\n"
        'Größe „M“,"1,234.50",1000,1500\n'
        "Half,10\n",
        encoding="utf-8",
    )
    done = cli("import_catalogue", table, "--format", "csv", "--name", "mixed", "--json")
    assert (done.document["products"], done.document["skipped"]) == (2, 3)
    assert [(row["file"], row["line"]) for row in done.document["bad_rows"]] == [(str(table), n) for n in (3, 4, 6)]
    assert all(row["reason"].endswith(".") for row in done.document["bad_rows"])
    for line in (3, 4, 6):
        assert f"{table}:{line}: " in done.err
    assert Product.objects.get(title="Größe „M“").list_price_cents == 123_450


def test_importing_again_brings_products_up_to_date_and_keeps_them_one(cli, tmp_path):
    table = tmp_path / "things.csv"
    for price in (100, 90):
        table.write_text(f"title,list_price,lowest_price,highest_price,sku\nDesk,{price},50,120,d1\n", encoding="utf-8")
        cli("import_catalogue", table, "--format", "csv", "--name", "things")
    assert Product.objects.get().list_price_cents == 9_000


def test_a_file_without_a_good_row_imports_nothing(cli, tmp_path):
    table = tmp_path / "bad.csv"
    table.write_text("title,list_price,lowest_price,highest_price\nDesk,-1,1,2\n", encoding="utf-8")
    sentence = cli("import_catalogue", table, "--format", "csv", "--name", "bad").sentence
    assert f"{table}:2" in sentence
    assert not Catalogue.objects.exists()


# --- Exports ----------------------------------------------------------------------------------------


def played(scope: str) -> Episode:
    game = staged(bilateral(), people=(B1,), consent=scope)
    game.act(B1, offer(6_000, talk=f"Words of somebody who said {scope}."))
    game.act(B1, LEAVE)
    return game.episode


def export(cli: Cli, out: Path, *words: object) -> tuple[dict, list[dict]]:
    done = cli("export_episodes", "--format", "jsonl", "--out", out, *words, "--json").document
    lines = (out / "episodes.jsonl").read_text(encoding="utf-8").split("\n")[:-1]
    return done, [json.loads(line) for line in lines]


def test_only_what_was_given_leaves(cli, tmp_path):
    given = {scope: played(scope) for scope in ("public", "research", "private")}
    done, lines = export(cli, tmp_path / "open")
    assert [line["episode"] for line in lines] == [given["public"].public_id]
    assert (done["episodes"], done["left_out"]) == (1, 2)
    done, lines = export(cli, tmp_path / "here", "--consent", "research")
    assert [line["episode"] for line in lines] == [given["public"].public_id, given["research"].public_id]
    assert (done["episodes"], done["left_out"]) == (2, 1)
    for name in ("open", "here"):
        text = (tmp_path / name / "episodes.jsonl").read_text(encoding="utf-8")
        assert "said private" not in text
        assert "Person " not in text


def test_a_choice_taken_back_is_respected_by_the_next_export(cli, tmp_path):
    game = staged(bilateral(), people=(B1,))
    game.act(B1, LEAVE)
    assert export(cli, tmp_path / "before")[0]["episodes"] == 1
    rooms.agree(game, B1, "private")
    assert export(cli, tmp_path / "after")[0]["episodes"] == 0


def test_one_line_is_one_episode_that_can_be_replayed(cli, bench, tmp_path):
    cli(*simulation(), "--store")
    done, lines = export(cli, tmp_path)
    assert done["episodes"] == len(lines) == Episode.objects.count() == 20
    for line in lines:
        scenario, log = decode_scenario(json.dumps(line["scenario"])), decode_log(json.dumps(line["events"]))
        result = outcome(scenario, log)
        assert result.welfare_cents == line["outcome"]["welfare_cents"]
        assert {text["n"] for text in line["texts"]} <= {entry.n for entry in log}


def test_what_was_played_on_a_simulated_clock_is_kept_told_and_verified_with_its_times(cli, tmp_path):
    rooms.market("bilateral", slug="bench", mechanism="event_driven")
    cli(*simulation(), "--store")
    _, lines = export(cli, tmp_path)
    for line in lines:
        log = decode_log(json.dumps(line["events"]))
        assert replay(decode_scenario(json.dumps(line["scenario"])), log).ended
        times = [entry.at_ms for entry in log]
        assert times == sorted(times)
        assert times[-1] > times[0] >= 500
    assert all(episodes.verify(episode) for episode in Episode.objects.all())
    assert {line["protocol_version"] for line in lines} == {"2"}


def test_talk_with_line_breaks_of_every_kind_stays_on_its_line(cli, tmp_path):
    episode = played("public")
    episode.texts.update(talk='U+2028 \u2028 and "quotes" and\nlines')
    _done, lines = export(cli, tmp_path)
    assert lines[0]["texts"][0]["talk"] == 'U+2028 \u2028 and "quotes" and\nlines'


def test_nothing_to_export_is_an_empty_file(cli, tmp_path):
    done, lines = export(cli, tmp_path / "new" / "folder")
    assert (done["episodes"], lines) == (0, [])


def test_one_market_can_be_exported_alone(cli, bench, tmp_path):
    cli(*simulation(episodes=3), "--store")
    rooms.market("bilateral", slug="other")
    cli(*simulation("other", episodes=2), "--store")
    done, lines = export(cli, tmp_path, "--market", "other")
    assert (done["episodes"], done["left_out"]) == (2, 0)
    assert {line["market"] for line in lines} == {"other"}


def test_exporting_twice_gives_the_same_bytes_and_leaves_no_draft(cli, bench, tmp_path):
    cli(*simulation(episodes=3), "--store")
    first, again = (export(cli, tmp_path)[0]["sha256"] for _ in range(2))
    assert first == again
    names = {"README.md", "SHA256SUMS", "croissant.json", "episodes.jsonl", "export.json", "fields.json"}
    assert {path.name for path in tmp_path.iterdir()} == names
    assert not [path for path in tmp_path.parent.iterdir() if path.name.startswith(".export-")]


# --- In processes of their own ----------------------------------------------------------------------


def manage(var: Path, *words: object, hash_seed: int = 0) -> Done:
    environment = os.environ | {"PARLEY_VAR": str(var), "PYTHONHASHSEED": str(hash_seed)}
    for name in ("DATABASE_URL", "DJANGO_SETTINGS_MODULE"):
        environment.pop(name, None)
    command = [sys.executable, settings.BASE_DIR / "manage.py", *map(str, words)]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, timeout=120, cwd=var)
    return Done(done.returncode, done.stdout, done.stderr)


@pytest.mark.slow
def test_an_empty_folder_becomes_a_world_and_plays_the_same_in_any_process(tmp_path):
    assert manage(tmp_path, "list_markets", "--json").sentence == (
        "The database has no tables yet: run `manage.py migrate` first."
    )
    assert "markets.0001_initial" in manage(tmp_path, "migrate", "--json").document["applied"]
    assert len(manage(tmp_path, "seed_demo", "--json").document["created"]) == len(MARKETS)
    reports = [
        manage(tmp_path, *simulation("demo-multi-buyer", seller="falling-ladder"), hash_seed=seed).document
        for seed in (1, 2)
    ]
    assert reports[0]["log_sha256"] == reports[1]["log_sha256"]
