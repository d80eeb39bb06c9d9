"""The run file of a language model: one TOML file, one dataclass.

Contract: unknown keys, wrong types, held-out opponents and values are refused with a sentence before
anything is loaded. Two runs with equal configurations and seeds see the same games in the same order.
"""

import hashlib
import json
import tomllib
from pathlib import Path
from typing import Any, Literal

import msgspec

from agents import registry
from agents.scripted.personas import UnknownPersona, split_slug
from markets.engine import priors, splits
from markets.engine.protocol import Role
from training.config import ConfigError, apply_overrides, check_numbers

EMBEDDED = "embedded"
"""The base that comes with the project's packages."""


class Market(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The games: one seller, one buyer, one thing, writing in turn."""

    catalogue: str = "negotiation_site/starter/catalogue.csv"
    """Products, as a CSV file; relative to the code."""
    rounds: tuple[int, ...] = (4, 4, 5, 6, 8)
    """Messages of each side, drawn with equal chance."""
    values: str = "uniform:0.6:1.2"
    """The buyer's value, in multiples of the list price."""
    cost: str = "lowest"
    """The seller's cost."""
    buyer_opens: float = 0.3
    """Share of the games in which the buyer writes first."""
    roles: tuple[Role, ...] = (Role.SELLER, Role.BUYER)
    """Seats that are learned, in equal parts."""
    opponents: tuple[str, ...] = ("linear", "conceder", "boulware", "tit-for-tat", "split-the-difference")
    """Agents opposite, drawn with equal chance; `AGENT+PERSONA` is one with a way of talking."""
    weights: tuple[float, ...] = ()
    """Chances of the opponents, in their order and of any sum; equal when empty."""
    model_calls: int = 0
    """Answers that opponents may ask of language models in all; what is in the run's cache is not counted."""
    model_tokens: int = 0
    """Tokens that these answers may read and write in all; 0 for no limit of their own."""


class Adapter(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Low-rank weights beside the base's; rank 0 trains the base itself."""

    rank: int = 8
    alpha: int = 16
    targets: tuple[str, ...] = ("q_proj", "k_proj", "v_proj", "o_proj", "gate_proj", "up_proj", "down_proj")
    first_layer: int = 0
    """Layers below this one stay as they are, so that nothing has to be computed back through them."""


class Sft(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Imitation."""

    teachers: tuple[str, ...] = ("linear", "boulware", "anchoring", "micro")
    least_share: float = 0.5
    """A game is imitated when its teacher got at least this share of the joint surplus (best-of), or where none was to be had."""
    rows: int = 1_600
    """Decisions to learn, repairs among them."""
    repairs: float = 0.0
    """Share of the decisions that are learned once more as the repair of a reply that was refused."""
    longest: int = 1_024
    """Tokens of a row; longer ones are left out and counted."""
    passes: float = 1.0
    """How often each game is seen."""
    steps: int = 0
    """Updates; 0 follows from games and passes."""
    stop_at: int = 0
    """Update after which to stop, before the schedule of the learning rate is over; 0 for none."""
    batch: int = 1
    """Games of one forward pass, of each process."""
    accumulate: int = 2
    """Forward passes of one update."""
    learning_rate: float = 1e-3
    warmup_steps: int = 10
    save_every: int = 25


class Grpo(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Reinforcement: groups of games of one scenario, every turn a row with its game's advantage."""

    rollouts: int = 0
    """0 leaves the stage out."""
    games: int = 4
    """Different scenarios of a rollout, of each process."""
    group: int = 8
    """Games of each scenario."""
    turns: int = 4
    """Rows that a game has; games have as many rounds, so that no turn is left out."""
    learning_rate: float = 1e-4
    clip: float = 0.2
    entropy_bonus: float = 0.0
    reward: str = "bilateral_share"
    accumulate: int = 1
    """Parts that a rollout is split into for one update."""
    save_every: int = 25


class Sampling(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How answers are written, in training and in judging."""

    temperature: float = 0.7
    longest: int = 112
    """Tokens of an answer."""
    together: int = 32
    """Answers written in one batch."""
    vllm: str = ""
    """Address of a `trl vllm-serve` that writes the answers of reinforcement; empty: the model trained writes them."""


class Judging(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Games kept apart: products that nothing trains on, seeds of their own."""

    scenarios: int = 200
    rounds: int = 4
    """Short games, so that a processor plays them in minutes."""
    watch_every: int = 0
    """Updates of imitation between two looks at games of its own; 0 for none."""
    watch_games: int = 4
    """Games of such a look, on products of the training part."""


class LanguageRun(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One run."""

    name: str
    seed: int = 1
    threads: int = 1
    base: str = EMBEDDED
    """`embedded`, a folder, or a model's name on a hub where `download` allows it."""
    download: bool = False
    device: str = "auto"
    """`cpu`, `cuda:0`, … or `auto`: a graphics processor where one is found."""
    data: str = ""
    """Hash of the lessons to imitate, which lie in the run's folder; empty: the teachers of `sft` are played."""
    protocol: Literal["four_part", "tools"] = "four_part"
    precision: Literal["bf16", "fp32"] = "bf16"
    thoughts: bool = True
    """Whether the demonstrations think before they speak."""
    market: Market = Market()
    adapter: Adapter = Adapter()
    sft: Sft = Sft()
    grpo: Grpo = Grpo()
    sampling: Sampling = Sampling()
    judging: Judging = Judging()

    @property
    def sha256(self) -> str:
        """Hash of everything above; what came later and is left at its default changes no hash."""
        told: dict[str, Any] = msgspec.to_builtins(self)
        for part, came_later in (
            (told, _LATER_RUN),
            (told["market"], _LATER_MARKET),
            (told["sft"], _LATER_SFT),
            (told["judging"], _LATER_JUDGING),
        ):
            for name, default in came_later.items():
                if part[name] == default:
                    del part[name]
        return hashlib.sha256(msgspec.json.encode(told)).hexdigest()


_LATER_RUN: dict[str, Any] = {"device": "auto", "data": ""}
_LATER_MARKET: dict[str, Any] = {"weights": (), "model_calls": 0, "model_tokens": 0}
_LATER_SFT: dict[str, Any] = {"repairs": 0.0}
_LATER_JUDGING: dict[str, Any] = {"watch_every": 0, "watch_games": 4}
"""Keys that older runs' files do not have, with what they stand for there."""


def load(path: Path, overrides: tuple[str, ...] = ()) -> LanguageRun:
    """Read a run file, TOML or JSON; `overrides` are `key.key=value` with TOML values. Raises `ConfigError`."""
    try:
        text = path.read_text(encoding="utf-8")
        data = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
        apply_overrides(data, overrides)
        config = msgspec.convert(data, LanguageRun, strict=True)
        check(config)
        return config
    except (
        OSError,
        ValueError,
        registry.UnknownAgent,
        UnknownPersona,
        splits.HeldOut,
        msgspec.ValidationError,
    ) as error:
        raise ConfigError(f"{path}: {error}") from error


def is_language_run(path: Path) -> bool:
    """Whether a run file is one of these: it alone says what protocol is spoken. False for what cannot be read."""
    try:
        text = path.read_text(encoding="utf-8")
        data = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
    except (OSError, ValueError):
        return False
    return isinstance(data, dict) and "protocol" in data


def check(config: LanguageRun) -> None:
    """Raise with a sentence unless the run may be trained and can be."""
    check_numbers(msgspec.to_builtins(config))
    market = config.market
    names = [split_slug(slug) for slug in market.opponents]
    registry.refuse_held_out(tuple(slug for slug, _persona in names))
    splits.refuse_held_out(
        values=priors.parse_value_rule(market.values),
        personas=[persona.value for _slug, persona in names if persona is not None],
    )
    for slug in (*(slug for slug, _ in names), *config.sft.teachers):
        registry.get(slug)
    for what, amount in (
        ("sft.rows", config.sft.rows),
        ("sft.batch", config.sft.batch),
        ("sft.accumulate", config.sft.accumulate),
        ("sft.save_every", config.sft.save_every),
        ("grpo.turns", config.grpo.turns),
        ("grpo.games", config.grpo.games),
        ("grpo.save_every", config.grpo.save_every),
        ("sampling.together", config.sampling.together),
        ("judging.scenarios", config.judging.scenarios),
    ):
        if amount < 1:
            raise ConfigError(f"{what} must be at least 1, not {amount}.")
    for what, rate in (
        ("sft.passes", config.sft.passes),
        ("sft.learning_rate", config.sft.learning_rate),
        ("grpo.learning_rate", config.grpo.learning_rate),
    ):
        if rate <= 0:
            raise ConfigError(f"{what} must be positive, not {rate:g}.")
    if config.sampling.temperature < 0:
        raise ConfigError(f"sampling.temperature must be at least 0, not {config.sampling.temperature:g}.")
    if not market.roles or not market.rounds or not market.opponents or not config.sft.teachers:
        raise ConfigError("A run needs at least one role, one number of rounds, one opponent and one teacher.")
    if market.weights and (len(market.weights) != len(market.opponents) or min(market.weights) <= 0):
        raise ConfigError(
            f"Weights are positive, one for each opponent: {len(market.opponents)} opponents, weights {market.weights}."
        )
    if config.grpo.rollouts and config.grpo.group < 2:
        raise ConfigError("grpo.group must be at least 2: a game alone has nothing to be better than.")
