"""A folder with a card is an agent as soon as its back end is served, and none before."""

import json
import re
from pathlib import Path

import msgspec
import pytest

from agents import adapters, backends, registry
from agents.backends import BackendConfig
from agents.backends.config import Secret, variables
from agents.backends.fake import FakeBackend
from agents.base import Kind
from agents.llm import ModelAgent
from markets.engine.protocol import Role
from markets.engine.scenarios import Family

CARD = adapters.Card(
    slug="little-haggler",
    title="Little haggler",
    summary="Was taught to haggle.",
    base="smollm2-135m-instruct",
    protocol="four_part",
    roles=(Role.SELLER, Role.BUYER),
    families=(Family.BILATERAL,),
    temperature=0.7,
    longest=112,
    weights_sha256="0" * 64,
    command="python -m training.language train training/configs/smollm2.toml",
    trained_on="a few lessons.",
    measured={},
    limits="Knows little.",
)


@pytest.fixture
def published(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("PARLEY_VAR", str(tmp_path))
    monkeypatch.setattr(backends, "_configs", {})
    monkeypatch.setattr(backends, "_seated", {})
    file = tmp_path / "adapters" / CARD.slug / "card.json"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps(msgspec.to_builtins(CARD)))
    return file


def test_it_is_one_agent_where_it_is_served(published: Path):
    with pytest.raises(registry.UnknownAgent):
        registry.get(CARD.slug)
    backends.seat(FakeBackend(["Talk: Hi.\nAction: [TALK]"], name=CARD.slug))
    spec = registry.get(CARD.slug)
    assert (spec.kind, spec.title, spec.asks_models) == (Kind.MODEL, CARD.title, True)
    assert spec.can_play(role=Role.BUYER, family=Family.BILATERAL)
    assert not spec.can_play(role=Role.SELLER, family=Family.MULTI_BUYER)
    assert isinstance(spec.build(), ModelAgent)
    assert [found.slug for found in registry.all_specs() if CARD.slug in found.slug] == [CARD.slug]


def test_without_its_server_it_says_how_to_start_it(published: Path):
    with pytest.raises(registry.UnknownAgent) as told:
        registry.get(CARD.slug)
    sentence = str(told.value)
    assert "needs the model server, which does not run" in sentence
    assert f"python -m agents.inference --adapter {published.parent}" in sentence
    assert "PARLEY_LLM_LITTLE_HAGGLER_URL" in sentence


@pytest.mark.parametrize(
    ("slug", "told"),
    [
        ("embedded-model", "PARLEY_LLM_EMBEDDED_MODEL=smollm2-135m-instruct"),
        ("embedded-model-unregulated", "needs the model server"),
        ("big-model-tools", "set PARLEY_LLM_BIG_URL and PARLEY_LLM_BIG_MODEL"),
        ("no-such-agent", "There is no agent 'no-such-agent'"),
    ],
)
def test_an_agent_of_a_model_that_is_not_there_says_what_is_lacking(published: Path, slug: str, told: str):
    with pytest.raises(registry.UnknownAgent, match=re.escape(told)):
        registry.get(slug)


def test_one_that_is_published_later_joins_the_processes_that_run(published: Path, monkeypatch: pytest.MonkeyPatch):
    """Nobody restarts the site for it."""
    monkeypatch.setattr(backends, "LOOK_EVERY_S", 0.0)
    file = published.parent / "inference.json"
    kept = BackendConfig(name="embedded", url="http://here/v1", model="small")
    backends.configure({"embedded": kept})
    backends.follow(file)
    try:
        with pytest.raises(registry.UnknownAgent):
            registry.get(CARD.slug)
        served = BackendConfig(name=CARD.slug, url="http://there/v1", model=CARD.slug, key=Secret("k"))
        named = variables(served) | variables(msgspec.structs.replace(kept, url="http://elsewhere/v1"))
        file.write_text(json.dumps(named))
        assert registry.get(CARD.slug).slug == CARD.slug
        assert {config.name: config.url for config in backends.configured()} == {
            "embedded": "http://here/v1",
            CARD.slug: "http://there/v1",
        }
        file.write_text("{half")
        assert registry.get(CARD.slug).slug == CARD.slug, "what was there stays"
    finally:
        backends.follow(None)
        backends.configure({})


def test_other_weights_are_another_version(published: Path):
    backends.configure({CARD.slug: BackendConfig(name=CARD.slug, url="http://here", model=CARD.slug)})
    first = registry.get(CARD.slug).version
    published.write_text(json.dumps(msgspec.to_builtins(msgspec.structs.replace(CARD, weights_sha256="1" * 64))))
    assert registry.get(CARD.slug).version != first


def test_a_card_that_cannot_be_read_is_told_and_not_passed_over(published: Path):
    published.write_text('{"slug": "little-haggler"}')
    with pytest.raises(ValueError, match="is no card of an adapter"):
        adapters.cards()


def test_the_shipped_adapters_are_small_and_are_what_their_cards_say():
    import hashlib

    for folder, card in adapters.cards(adapters.SHIPPED):
        weights = (folder / "adapter_model.safetensors").read_bytes()
        assert hashlib.sha256(weights).hexdigest() == card.weights_sha256
        assert sum(file.stat().st_size for file in folder.iterdir()) < 5_000_000
        assert folder.name == card.slug
        assert "/" not in json.loads((folder / "adapter_config.json").read_text())["base_model_name_or_path"]
