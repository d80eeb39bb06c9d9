"""A trained seller on a chair: it must be the model that was trained, without torch, and always move legally."""

import hashlib
import json
import struct
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from agents import registry, simulation
from agents.base import Kind
from agents.learned import dialogue, published
from agents.learned.network import CheckpointError, Network, read_safetensors
from agents.learned.policy import Policy
from agents.play import Seat, play, seat
from markets.engine import priors
from markets.engine.protocol import SELLER, MoveRefused, OfferMade, Role, buyer_party, log_sha256
from markets.engine.scenarios import Family, Recipe, SellerTurns, sample

HIDDEN, LAYERS, FEED_FORWARD = 16, 2, 24
WORDS = len(dialogue.vocabulary())


def tensors(seed: int = 0) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    shapes = {"model.embed_tokens.weight": (WORDS, HIDDEN), "lm_head.weight": (WORDS, HIDDEN)}
    for k in range(LAYERS):
        prefix = f"model.layers.{k}."
        shapes |= {f"{prefix}self_attn.{n}_proj.weight": (HIDDEN, HIDDEN) for n in "qkvo"}
        shapes |= {f"{prefix}mlp.{n}_proj.weight": (FEED_FORWARD, HIDDEN) for n in ("gate", "up")}
        shapes[f"{prefix}mlp.down_proj.weight"] = (HIDDEN, FEED_FORWARD)
    drawn = {name: rng.normal(0, 0.6, shape).astype(np.float32) for name, shape in shapes.items()}
    norms = [
        f"model.layers.{k}.{n}.weight" for k in range(LAYERS) for n in ("input_layernorm", "post_attention_layernorm")
    ]
    return drawn | {name: np.ones(HIDDEN, dtype=np.float32) for name in [*norms, "model.norm.weight"]}


CONFIG = {
    "model_type": "llama",
    "hidden_size": HIDDEN,
    "intermediate_size": FEED_FORWARD,
    "num_attention_heads": 2,
    "num_key_value_heads": 2,
    "num_hidden_layers": LAYERS,
    "rms_norm_eps": 1e-6,
    "vocab_size": WORDS,
}


def write_safetensors(path: Path, values: dict[str, np.ndarray]) -> None:
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}}
    data = b""
    for name, value in values.items():
        raw = value.astype("<f4").tobytes()
        header[name] = {"dtype": "F32", "shape": list(value.shape), "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(text)) + text + data)


@pytest.fixture
def checkpoint(tmp_path: Path) -> Path:
    folder = tmp_path / "checkpoints" / "novice"
    folder.mkdir(parents=True)
    write_safetensors(folder / "model.safetensors", tensors())
    (folder / "config.json").write_text(json.dumps(CONFIG))
    card = published.Card(
        slug="novice",
        title="Novice",
        summary="Knows nothing yet.",
        weights_sha256="ab" * 32,
        command="make it",
        trained_on="nothing",
        measured={"share": 0.1},
        limits="Everything.",
    )
    (folder / "card.json").write_bytes(msgspec.json.encode(card))
    return folder


def network(seed: int = 0) -> Network:
    return Network(config=CONFIG, tensors=tensors(seed))


def market(*, buyers: int = 3, turns: int = 7) -> Recipe:
    return Recipe(
        family=Family.MULTI_BUYER,
        mechanism=SellerTurns(turns),
        buyers=buyers,
        value_spec=priors.UniformSpec(low=0, high=100),
        cost_spec=priors.ConstantSpec(value=10),
        cost_prior=priors.ConstantSpec(value=10),
        unit_is_money=True,
    )


def games(policy: Policy, spec: Any, *, count: int, buyer: str = "linear"):
    for k in range(count):
        scenario = sample(market(), [], k)
        seats = {SELLER: Seat(spec, policy), **{buyer_party(n): seat(registry.get(buyer)) for n in (1, 2, 3)}}
        yield play(scenario, seats)


def test_reading_at_once_and_bit_by_bit_is_the_same() -> None:
    ids = tuple(np.random.default_rng(1).integers(0, WORDS, 30).tolist())
    whole = network().read(ids)
    memory = network().read(ids[:7])
    for start, end in ((7, 8), (8, 20), (20, 30)):
        memory = network().read(ids[start:end], memory)
    assert memory.length == whole.length == 30
    assert np.allclose(memory.logits, whole.logits, atol=1e-4)


def test_the_order_of_words_matters() -> None:
    ids = tuple(range(30, 42))
    assert not np.allclose(network().read(ids).logits, network().read(ids[::-1][:-1] + ids[-1:]).logits, atol=1e-3)


def test_it_computes_what_the_trained_model_computes(tmp_path: Path) -> None:
    torch = pytest.importorskip("torch", reason="needs the training stack: make install")
    from training import model as models
    from training import tokenizer as words
    from training.config import Model

    tokenizer = words.build()
    model = models.build(Model(hidden=64, layers=3, heads=4, feed_forward=96), tokenizer, seed=2)
    models.save(tmp_path, model, tokenizer)
    ids = torch.randint(0, WORDS, (1, 90), generator=torch.Generator().manual_seed(1))
    with torch.no_grad():
        expected = model(input_ids=ids).logits[0, -1].numpy()
    found = Network.load(tmp_path).read(tuple(ids[0].tolist())).logits
    assert np.abs(expected).max() > 0.5
    assert np.allclose(found, expected, atol=1e-4)


@pytest.mark.parametrize("sampled", [False, True])
@pytest.mark.parametrize("buyer", ["threshold", "linear", "impatient", "zi-c"])
def test_even_a_novice_only_makes_moves_that_the_rules_allow(checkpoint: Path, sampled: bool, buyer: str) -> None:
    greedy, drawn = published.specs(checkpoint.parent)
    for played in games(Policy(network(), sampled=sampled), drawn if sampled else greedy, count=12, buyer=buyer):
        assert not [e for e in played.log if isinstance(e.event, MoveRefused) and e.event.by is Role.SELLER]


def test_the_same_seed_is_the_same_game_whatever_was_played_before(checkpoint: Path) -> None:
    _, spec = published.specs(checkpoint.parent)
    warm = Policy(network(), sampled=True)
    first = [played.log for played in games(warm, spec, count=8)]
    again = [played.log for played in games(warm, spec, count=8)]
    cold = [played.log for played in games(Policy(network(), sampled=True), spec, count=8)]
    assert log_sha256(first) == log_sha256(again) == log_sha256(cold)
    asks = {
        e.event.price_cents
        for log in first
        for e in log
        if isinstance(e.event, OfferMade) and e.event.by is Role.SELLER
    }
    assert len(asks) > 5


def test_a_published_folder_is_two_agents_with_the_weights_as_version(checkpoint: Path) -> None:
    greedy, drawn = published.specs(checkpoint.parent)
    assert (greedy.slug, drawn.slug) == ("novice", "novice-sampled")
    assert greedy.version == "abababababab"
    assert greedy.can_play(role=Role.SELLER, family=Family.MULTI_BUYER)
    assert not greedy.can_play(role=Role.BUYER, family=Family.MULTI_BUYER)
    assert next(games(greedy.build(), greedy, count=1)).state.ended
    assert greedy.build() is greedy.build()


def test_the_registry_finds_a_checkpoint_that_is_published_while_it_runs(
    checkpoint: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("PARLEY_VAR", str(tmp_path / "elsewhere"))
    with pytest.raises(registry.UnknownAgent):
        registry.get("novice")
    monkeypatch.setenv("PARLEY_VAR", str(tmp_path))
    assert registry.get("novice").kind is Kind.LEARNED
    assert {"novice", "novice-sampled"} <= {spec.slug for spec in registry.all_specs()}
    with pytest.raises(registry.UnknownAgent, match="novice"):
        registry.get("novica")


def test_a_checkpoint_cannot_take_the_place_of_a_rule(
    checkpoint: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    card = json.loads((checkpoint / "card.json").read_text())
    (checkpoint / "card.json").write_text(json.dumps(card | {"slug": "linear"}))
    monkeypatch.setenv("PARLEY_VAR", str(tmp_path))
    assert registry.get("linear").kind is Kind.SCRIPTED
    assert [spec.slug for spec in registry.all_specs()].count("linear") == 1


def test_a_folder_without_checkpoints_has_no_agents_and_a_broken_card_is_an_error(
    tmp_path: Path, checkpoint: Path
) -> None:
    assert published.specs(tmp_path / "none") == ()
    (checkpoint / "card.json").write_text('{"slug": "x"}')
    with pytest.raises(ValueError, match="card"):
        published.specs(checkpoint.parent)


def test_files_that_cannot_be_run_are_refused_with_a_sentence(checkpoint: Path, tmp_path: Path) -> None:
    weights = checkpoint / "model.safetensors"
    assert set(read_safetensors(weights)) == set(tensors())
    with pytest.raises(CheckpointError, match="no tensor"):
        Network(config=CONFIG, tensors={k: v for k, v in tensors().items() if k != "lm_head.weight"})
    with pytest.raises(CheckpointError, match="Llama"):
        Network(config=CONFIG | {"model_type": "gpt2"}, tensors=tensors())
    with pytest.raises(CheckpointError, match="rotary"):
        Network(config=CONFIG | {"rope_parameters": {"rope_type": "yarn"}}, tensors=tensors())
    small = tensors() | {n: tensors()[n][:50] for n in ("model.embed_tokens.weight", "lm_head.weight")}
    with pytest.raises(CheckpointError, match="50 words"):
        Policy(Network(config=CONFIG, tensors=small), sampled=False)
    weights.write_bytes(weights.read_bytes()[:20])
    with pytest.raises(CheckpointError, match="cut off"):
        Network.load(checkpoint)


SHIPPED_CARDS = published.cards(published.SHIPPED)


@pytest.mark.parametrize(("folder", "card"), SHIPPED_CARDS, ids=[card.slug for _, card in SHIPPED_CARDS])
def test_a_shipped_checkpoint_is_small_and_is_the_one_on_its_card(folder: Path, card: published.Card) -> None:
    weights = (folder / "model.safetensors").read_bytes()
    assert hashlib.sha256(weights).hexdigest() == card.weights_sha256
    assert sum(file.stat().st_size for file in folder.iterdir()) < 5_000_000
    assert registry.get(card.slug).version == card.weights_sha256[:12]


@pytest.mark.parametrize("list_price", [1, 25, 1_000, 100_000])
def test_the_shipped_ladder_learner_beats_the_linear_ladder_at_any_price_scale(list_price: int) -> None:
    """A visitor who sells against it in another currency or price range meets the same opponent."""
    recipe = Recipe(
        family=Family.MULTI_BUYER,
        mechanism=SellerTurns(8),
        buyers=4,
        value_spec=priors.UniformSpec(low=0, high=list_price),
        cost_spec=priors.ConstantSpec(value=0),
        cost_prior=priors.ConstantSpec(value=0),
        unit_is_money=True,
    )

    def share(slug: str) -> float:
        found = simulation.simulate(
            recipe=recipe,
            pool=[],
            seller=registry.get(slug),
            buyers=[registry.get("threshold")],
            episodes=150,
            seed=11,
        )
        return simulation.report(found)["seller_extraction"]

    assert share("ladder-learner") > share("falling-ladder") + 0.03
