"""A folder with a card is an agent as soon as its back end is served, and none before."""

import json
from pathlib import Path

import msgspec
import pytest

from agents import adapters, backends, registry
from agents.backends import BackendConfig
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
