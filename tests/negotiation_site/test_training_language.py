"""Language models are launched, watched, compared and published from the site like any other run."""

import json
from itertools import islice
from pathlib import Path
from typing import Any

import msgspec
import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client
from django.utils import timezone

from agents import adapters, backends, entering, registry
from agents.backends import BackendConfig
from agents.entered import Entry
from markets import corpora, setup
from markets.engine.protocol import Role
from markets.importers import csv_catalogue
from markets.setup import MarketSpec
from tests.markets import dialogues
from training import capacity, entered_opponents, expectations, guards, model_opponents, presets, runs, services
from training.datasets import Chosen, Kind
from training.language import lessons
from training.language.config import LanguageRun, Market
from training.models import Run, RunStatus

pytestmark = pytest.mark.django_db

CATALOGUE = Path("negotiation_site/starter/catalogue.csv")


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch, settings):
    monkeypatch.setenv("PARLEY_VAR", str(tmp_path))
    settings.VAR = tmp_path
    return tmp_path


@pytest.fixture(autouse=True)
def room_enough(monkeypatch: pytest.MonkeyPatch) -> None:
    """What fits is told by the run, not by the machine that tests it."""
    monkeypatch.setattr(capacity, "machine_bytes", lambda: 32 * 10**9)


@pytest.fixture(autouse=True)
def haggle():
    setup.import_catalogue(name="things", rows=islice(csv_catalogue.read(CATALOGUE), 40), source="starter")
    setup.create_market(
        MarketSpec(slug="bands", family="multi_buyer", catalogue="things", values="bands", buyers=3, turns=8)
    )
    return setup.create_market(MarketSpec(slug="haggle", family="bilateral", catalogue="things", turns=6))


@pytest.fixture(autouse=True)
def trainer(client: Client) -> User:
    user = User.objects.create_user("trainer", is_staff=True)
    user.user_permissions.add(Permission.objects.get(codename="train_agents"))
    client.force_login(user)
    return user


def typed(**more: Any) -> dict[str, Any]:
    return {
        "name": "mine", "preset": "smollm2", "knobs_of": "smollm2", "market": "haggle", "role": "both", "seed": "7",
        "device": "cpu", "source": "", "base": "", "reward": "", "sft.rows": "40", "judging.scenarios": "4",
    } | more  # fmt: skip


def launched(client: Client, **more: Any) -> LanguageRun:
    answer = client.post("/runs/new/", typed(**more))
    assert answer.status_code == 302, answer.content.decode().split('data-testid="problem">')[1].split("</p>")[0]
    config = services.config_of(Run.objects.get(name=more.get("name", "mine")))
    assert isinstance(config, LanguageRun)
    return config


# --- Launching ----------------------------------------------------------------------------------------


def test_the_form_offers_every_preset_with_the_numbers_that_are_its_own(client: Client) -> None:
    html = client.get("/runs/new/").content.decode()
    assert all(f'<option value="{name}"' in html for name in presets.PRESETS)
    assert 'name="sft.demonstrations"' in html
    html = client.get("/runs/new/?preset=smollm2").content.decode()
    rank = presets.language_preset("smollm2", name="any", market=Market()).adapter.rank
    assert f'name="adapter.rank" type="text" inputmode="decimal" value="{rank}"' in html
    assert 'name="sft.demonstrations"' not in html


def test_a_language_model_is_launched_with_everything_that_was_chosen(client: Client) -> None:
    config = launched(
        client,
        more_opponents="linear 3\nboulware+chatty 1",
        changes="adapter.first_layer=20\ngrpo.accumulate=16",
        **{"grpo.rollouts": "2"},
    )
    assert (config.seed, config.sft.rows, config.adapter.first_layer, config.grpo.rollouts) == (7, 40, 20, 2)
    assert config.market.roles == (Role.SELLER, Role.BUYER)
    assert config.market.rounds == (6,)
    assert config.market.opponents == ("linear", "boulware+chatty")
    assert config.market.weights == (3.0, 1.0)
    assert config.judging.watch_every == presets.WATCH_EVERY
    assert Run.objects.get().device == "cpu"
    page = client.get("/runs/mine/").content.decode()
    assert "boulware+chatty 25" in page
    like = client.get("/runs/new/?like=mine").content.decode()
    assert 'name="sft.rows" type="text" inputmode="decimal" value="40"' in like
    assert "linear 3\nboulware+chatty 1" in like


def test_numbers_of_the_preset_that_was_shown_before_are_left_aside(client: Client) -> None:
    config = launched(client, knobs_of="tiny", **{"sft.steps": "250", "grpo.rollouts": "150"})
    assert (config.sft.steps, config.grpo.rollouts) == (0, 0)


def test_a_preview_tells_rows_time_and_memory_and_writes_nothing(client: Client, folder: Path) -> None:
    html = client.post("/runs/preview/", typed()).content.decode()
    assert 'data-testid="expected"' in html
    assert ">40<" in html
    assert "134.5 million" in html
    assert "GB" in html
    assert "Scaled from a run of the preset smollm2" in html
    assert "Action: [" in html
    assert not Run.objects.exists()
    assert not (folder / "runs").exists()


def test_a_model_that_this_machine_cannot_hold_is_refused_with_what_it_needs_and_what_to_do(
    client: Client, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    wish = typed(preset="qwen3-8b", knobs_of="qwen3-8b", **{"sft.rows": ""})
    html = client.post("/runs/preview/", wish).content.decode()
    assert "needs a graphics processor with about" in html
    assert "docs/training.md" in html
    assert "8.2 billion" in html  # What it would take is told all the same.
    assert "Being judged" in html
    refused = client.post("/runs/new/", wish)
    assert refused.status_code == 400
    monkeypatch.setattr(guards, "missing_device", lambda device: "")
    monkeypatch.setattr(capacity, "card_bytes", lambda number: 144 * 2**30)
    html = client.post("/runs/preview/", typed(**{**wish, "device": "cuda:0"})).content.decode()
    assert "PARLEY_BASE_QWEN3_8B" in html
    monkeypatch.setattr(capacity, "card_bytes", lambda number: 24 * 2**30)
    base = tmp_path / "base"
    base.mkdir()
    about = {"model_type": "qwen3", "num_hidden_layers": 36, "hidden_size": 4096, "intermediate_size": 12288}
    (base / "config.json").write_text(json.dumps(about | {"vocab_size": 151936}))
    for name in ("tokenizer.json", "model.safetensors.index.json"):
        (base / name).write_text("{}")
    monkeypatch.setattr(capacity, "stored_weights", lambda folder: 8_190_735_360)
    monkeypatch.setenv("PARLEY_BASE_QWEN3_8B", str(base))
    html = client.post("/runs/preview/", typed(**{**wish, "device": "cuda:0"})).content.decode()
    assert "adapter.rank=8" in html
    monkeypatch.setattr(capacity, "card_bytes", lambda number: 144 * 2**30)
    config = launched(client, **{**wish, "device": "cuda:0"})
    assert (config.base, config.download, config.sampling.vllm) == (str(base), False, "")
    assert Run.objects.get().device == "cuda:0"


@pytest.mark.parametrize(
    ("changed", "sentence"),
    [
        ({"market": "bands"}, "one to one"),
        ({"grpo.rollouts": "2", "grpo.games": "64"}, "grpo.accumulate"),
        ({"base_folder": "/etc"}, "not a model"),
        ({"base": "ladder-learner"}, "not a folder"),
        ({"reward": "rlvr_seller_multi"}, "no reward"),
        ({"opponents": "threshold"}, "plays no seller"),
        ({"opponents": "narrator"}, "model_calls"),
        ({"changes": "market.values=lognormal:0.9:0.3"}, "lognormal"),
        ({"changes": "sampling.vllm=http://169.254.169.254/"}, "PARLEY_VLLM"),
        ({"source": "corpus:lamps", "changes": "protocol=tools"}, "protocol=four_part"),
        (
            {"source": "corpus:lamps", "preset": "tiny", "role": "seller"},
            "1: its sides were told a target and no limit",
        ),
        ({"source": "corpus:camps", "preset": "tiny", "role": "seller"}, "things to divide"),
        ({"preset": "tiny"}, "learns one side"),
    ],
)
def test_what_cannot_be_launched_is_refused_with_the_true_reason(
    client: Client, tmp_path: Path, changed: dict[str, str], sentence: str
) -> None:
    imported(tmp_path)
    answer = client.post("/runs/new/", typed(**changed))
    assert answer.status_code == 400
    problem = answer.content.decode().split('data-testid="problem">')[1].split("</p>")[0]
    assert sentence in problem, problem
    assert not Run.objects.exists()


def test_a_server_that_the_administrator_named_may_be_asked(client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PARLEY_VLLM", "http://gpu1:8000 http://gpu2:8000/")
    assert launched(client, changes="sampling.vllm=http://gpu2:8000").sampling.vllm == "http://gpu2:8000"


# --- What it is taught --------------------------------------------------------------------------------


def imported(folder: Path) -> None:
    """One sale of a lamp and one division of a camp's goods, as people negotiated them."""
    for name, format_, content in (
        ("lamps", "craigslist-bargain", [dialogues.bargain(price=80, targets=(70, 100), key="C_1")]),
        ("camps", "casino", [dialogues.camping(1)]),
    ):
        (folder / f"{name}.json").write_text(json.dumps(content))
        corpora.store(name=name, format=format_, path=folder / f"{name}.json")


@pytest.mark.parametrize(
    ("chosen", "part"),
    [
        ({"kind": Kind.CORPUS, "name": "lamps"}, "Action: ["),
        ({"kind": Kind.CORPUS, "name": "camps"}, "[OFFER]"),
        ({"kind": Kind.DEMONSTRATIONS, "name": "haggle", "most": 4}, "Action: ["),
    ],
    ids=str,
)
def test_a_run_is_taught_by_what_was_chosen_and_its_hash_is_kept(
    client: Client, tmp_path: Path, chosen: dict[str, Any], part: str
) -> None:
    imported(tmp_path)
    source = Chosen(**chosen)
    launched(client, source=f"{source.kind.value}:{source.name}", most=str(source.most))
    run = Run.objects.get()
    services.prepare(run, made(runs.folder("mine")), lambda: True)
    config = services.config_of(run)
    shown = lessons.read(runs.folder("mine"), sha256=config.data)
    answers = [str(row.answer["content"]) for game in shown.games for row in game]
    assert answers
    assert any(part in answer for answer in answers), answers
    assert all(row.messages[0]["role"] == "system" for game in shown.games for row in game)
    wish = typed(name="next", source=f"{source.kind.value}:{source.name}", most=str(source.most))
    told = client.post("/runs/preview/", wish).content.decode()
    assert "counted" in told
    assert f">{len(answers)}<" in told


def made(path: Path) -> Path:
    path.mkdir(parents=True, exist_ok=True)
    return path


# --- Who sits opposite --------------------------------------------------------------------------------


def test_an_agent_that_somebody_entered_sits_opposite_in_the_version_of_the_launch(
    client: Client, trainer: User
) -> None:
    backends.configure({"oracle": BackendConfig(name="oracle", url="http://127.0.0.1:9/v1", model="m")})
    try:
        entry = Entry(
            name="Haggler", summary="Haggles.", prompt="Haggle hard.", backend="oracle", protocol="four_part",
            roles=(Role.SELLER, Role.BUYER),
        )  # fmt: skip
        agent = entering.enter(entry, author=trainer)
        refused = client.post("/runs/new/", typed(more_opponents=f"{agent.slug} 1", model_calls="9")).content.decode()
        assert "not put up" in refused
        entering.put_up(agent, up=True)
        assert agent.slug in client.get("/runs/new/").content.decode()
        launched(client, more_opponents=f"{agent.slug} 1\nlinear 1", model_calls="9", model_tokens="500")
        folder = made(runs.folder("mine"))
        services.prepare(Run.objects.get(), folder, lambda: True)
        entering.change(agent, msgspec.structs.replace(entry, prompt="Give in."), based_on=1, note="")
        (kept,) = entered_opponents.kept(folder)
        assert (kept.slug, kept.number, kept.entry.prompt) == (agent.slug, 1, "Haggle hard.")
        entered_opponents.seat(folder)
        assert registry.get(agent.slug).title == "Haggler"
        page = client.get("/runs/mine/").content.decode()
        assert "Haggle hard" not in page
        assert "Steady" in page.split("Measured against")[1].split("</div>")[0]
        Run.objects.update(status=RunStatus.RUNNING, stage="sft")
        status = client.get("/runs/mine/status/").content.decode()
        assert "of 9; 0 tokens. When they are used up the run stops" in status
        assert model_opponents.spent(folder) == (0, 0)
    finally:
        registry.keep_entered(listed=entering.listed, named=entering.named)
        backends.configure({})


# --- Watching -----------------------------------------------------------------------------------------


@pytest.fixture
def taught(client: Client) -> Path:
    """A language model's run that has imitated, learned and been judged."""
    launched(client, **{"grpo.rollouts": "2", "grpo.games": "1"})
    folder = made(runs.folder("mine"))
    for step in (1, 2, 3):
        runs.append(folder, {"kind": "imitate", "rollout": 0, "step": step, "steps": 9, "loss": 2.0 / step})
    runs.append(folder, {"kind": "look", "rollout": 0, "step": 2, "valid_rate": 0.25, "share": 0.1, "deal_rate": 0.5})
    runs.append_sample(
        folder, {"rollout": 0, "step": 2, "chosen": "best", "reward": 0.1, "text": "seller (learner): offers 9 <b>"}
    )
    Run.objects.update(status=RunStatus.RUNNING, stage="sft", owner="x", heartbeat_at=timezone.now())
    return folder


def verdict(share: float, valid: float) -> dict[str, Any]:
    return {
        "scenarios": 200, "scenarios_with_gains": 190, "share": share, "share_low": share - 0.02, "share_high": share + 0.02,
        "deal_rate": 0.6, "answers": 700, "valid_rate": valid,
    }  # fmt: skip


def test_a_language_model_is_followed_while_it_imitates(client: Client, taught: Path) -> None:
    html = client.get("/runs/mine/").content.decode()
    assert "Does it play what it reads?" in html
    assert "like those it imitates" in html
    assert "25.0 %" in html  # Answers that can be used, at its last look.
    assert "Step 2 of imitation, best paid" in html
    assert "offers 9 &lt;b&gt;" in html
    assert "hundredths of the list price" not in html
    assert "3 of 9" in client.get("/runs/mine/status/").content.decode()
    assert "hundredths" not in client.get("/runs/mine/samples/").content.decode()


def test_a_judged_language_model_shows_its_verdict_and_is_compared(client: Client, taught: Path) -> None:
    judged = {"base": verdict(0.0, 0.0), "sft": verdict(0.31, 0.96), "grpo": verdict(0.42, 0.97)}
    for name, found in judged.items():
        runs.record(taught, f"judge-{name}", found)
    runs.record(taught, "judge", judged)
    (taught / "judge-grpo.jsonl").write_text(
        "".join(json.dumps({"share": k / 10, "game": ["Lamp", f"seller: offers {k}"]}) + "\n" for k in range(9))
    )
    Run.objects.update(status=RunStatus.DONE)
    html = client.get("/runs/mine/").content.decode()
    assert "0.420" in html
    assert "97" in html
    assert "Before it was taught" in html
    assert html.count('<pre class="transcript"') == 8
    compared = client.get("/runs/compare/?a=mine&b=ladder-learner").content.decode()
    assert "Answers that could be used after imitation" in compared
    assert "0.310 (0.290 to 0.330)" in compared
    quality = client.get("/runs/quality/?run=mine").content.decode()
    assert "products it never saw" in quality
    assert "42" in client.get("/runs/").content.decode()


def test_the_pace_of_a_finished_run_here_is_the_basis_of_the_next(client: Client, taught: Path) -> None:
    figures = {"seconds": 100.0, "tokens": 50_000, "rows": 100, "rows_seen": 100}
    runs.record(taught, "sft", figures)
    Run.objects.update(status=RunStatus.DONE)
    pace = expectations.pace_before("cpu")
    assert pace.name == "mine"
    assert pace.flops > 0
    assert expectations.pace_before("cuda:0").assumed


def test_an_adapter_below_the_untaught_model_is_warned_of_before_it_is_published(client: Client, taught: Path) -> None:
    judged = {name: {"share": share, "share_low": share - 0.01, "share_high": share + 0.01, "valid_rate": 1.0,
                     "deal_rate": 0.5, "answers": 9, "scenarios": 4} for name, share in (("base", 0.4), ("sft", 0.3))}  # fmt: skip
    runs.record(taught, "judge", judged)
    Run.objects.update(status=RunStatus.DONE)
    page = client.get("/runs/mine/").content.decode()
    assert "less than before it was taught: 0.400" in page.partition('action="/runs/mine/publish/"')[0]


def test_a_finished_adapter_is_published_and_says_when_it_plays(client: Client, taught: Path, folder: Path) -> None:
    (taught / "grpo").mkdir()
    refused = client.post("/runs/mine/publish/", follow=True).content.decode()
    assert "Only a finished run" in refused
    Run.objects.update(status=RunStatus.DONE)
    (taught / "run.json").write_text(Run.objects.get().config)
    assert "holds no adapter" in client.post("/runs/mine/publish/", follow=True).content.decode()
    assert not (folder / "adapters" / "mine").exists()
    (taught / "grpo" / "adapter_model.safetensors").write_bytes(b"weights")
    (taught / "grpo" / "adapter_config.json").write_text("{}")
    page = client.post("/runs/mine/publish/", follow=True).content.decode()
    assert "started anew" in page
    ((_, card),) = adapters.cards(folder / "adapters")
    assert card.slug == "mine"
    assert 'href="/agents/mine/"' not in page  # It is no agent before its server knows it.
