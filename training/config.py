"""One TOML file, one dataclass: everything a run of `training.sft` or `training.grpo` depends on.

Contract: unknown keys and wrong types are refused with a sentence, and so are opponents and values
that stay out of training (`refuse_held_out`); defaults are the calibrated recipe; two runs with equal
configurations and seeds are the same run.
"""

import hashlib
import json
import tomllib
from pathlib import Path
from typing import Any, Literal

import msgspec

from agents import registry
from markets.engine import priors, splits
from markets.engine.protocol import Role
from markets.engine.scenarios import Family


class ConfigError(ValueError):
    """A configuration that cannot be run; the message is a sentence."""


class Game(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The family of games that is trained on."""

    sizes: tuple[tuple[int, int], ...]
    """Pairs of (buyers, turns), drawn with equal chance."""
    costs: tuple[float, ...] = (0.0,)
    """Seller's costs in money, drawn with equal chance."""
    values: str = "uniform:0:100"
    """Value spec in money."""
    further_values: tuple[str, ...] = ()
    """Other laws of values; each game is drawn by one of all of them with equal chance. Over a catalogue; what is
    judged on an axis, and by `training.verify`, is the game of `values` alone."""
    opponents: tuple[str, ...] = ("threshold",)
    """Slugs of the agents opposite, drawn for each seat."""
    weights: tuple[float, ...] = ()
    """Chances of the opponents, in their order and of any sum; equal when empty."""
    model_calls: int = 0
    """Answers that opponents may ask of language models in all; what is in the run's cache is not counted."""
    model_tokens: int = 0
    """Tokens that these answers may read and write in all; 0 for no limit of their own."""
    reward: str = "seller_profit"
    """Name in `markets.engine.rewards`."""
    dialogue: Literal["ladder", "ledger", "relative-ledger"] = "ladder"
    """What the learner reads and writes (`agents.learned.grammars`); everything below needs a ledger."""
    role: Role = Role.SELLER
    """The learner's side."""
    family: Family = Family.MULTI_BUYER
    mechanism: Literal["turns", "rounds", "clock"] = "turns"
    """Seller's turns, alternating rounds, or both sides on a simulated clock."""
    opener: Role = Role.SELLER
    """Who writes first, except under seller's turns."""
    catalogue: str = ""
    """Products, as a CSV file relative to the code: values and costs are then multiples of list prices, and
    `costs` is not used."""
    cost: str = "lowest"
    """Cost spec of a game over a catalogue."""
    products: int = 1
    """Products on the table at once."""
    rho: float = 0.0
    """Correlation of values."""
    limited: bool = False
    """Whether answers are limited, in training as at the table, to what can be read and loses no money."""
    axis: str = ""
    """Held-out axis of `markets.engine.splits` that the game is moved onto; for judging, never for training."""


class Model(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A Llama that is trained from scratch."""

    hidden: int = 128
    layers: int = 2
    heads: int = 4
    feed_forward: int = 384
    spread: float = 0.08
    """Standard deviation of the initial weights."""
    smooth_numbers: bool = True
    """Whether number words start near their neighbours (both embeddings)."""
    smooth_turns: bool = False
    """Whether the words for turns (`t8`) do so too, which helps with numbers of turns that were never trained on."""


class Exploits(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The effort of the search for tricks before training."""

    games: int = 600
    """Fresh games that each trick is measured on."""
    climb_games: int = 100
    climb_steps: int = 40


class Sft(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Imitation of the demonstrators before reinforcement."""

    demonstrations: int = 6_000
    habits: tuple[float, ...] = (0.35, 0.30, 0.35)
    """Shares of the demonstrators that go round, ask anybody, stay with one buyer, and turn to whoever bids most."""
    teachers: tuple[str, ...] = ()
    """Slugs of agents that are imitated instead, drawn with equal chance for each game."""
    before: tuple[str, ...] = ()
    """Agents that are imitated first, so that what `teachers` change can be told; their imitator is kept as `base`."""
    steps: int = 250
    batch: int = 64
    learning_rate: float = 2e-3
    warmup_steps: int = 20


class Grpo(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Reinforcement: groups of episodes of one game, no standard-deviation scaling, no KL."""

    rollouts: int = 150
    games: int = 16
    """Different games in a rollout."""
    group: int = 16
    """Episodes of each game."""
    updates: int = 2
    """Clipped updates on each rollout, each on the whole of it."""
    learning_rate: float = 1e-3
    final_learning_rate: float = 1e-4
    warmup: int = 0
    """Rollouts over which the rate rises to what it starts at: Adam's first steps are as long as the rate allows."""
    clip: float = 0.2
    entropy_bonus: float = 0.02
    """Coefficient of the mean entropy per learner token at the start."""
    entropy_until: float = 0.7
    """Share of the run, or of the stretch to the next restart, after which the bonus has fallen to 0."""
    restarts: tuple[int, ...] = ()
    """Rollouts after which rate and bonus start again, each time at half of what they started at before."""
    turn_baseline: bool = True
    """Baseline per turn among group members still at the table, instead of one per episode."""
    save_every: int = 25
    """Rollouts between checkpoints that a run can be resumed from."""


class Evaluation(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Watching a run on games kept apart from training and from the final seeds."""

    every: int = 10
    """Rollouts between two looks; 0 for none."""
    episodes: int = 512
    """Games of the `watch` split at each look."""
    final_episodes: int = 4_000
    """Games of the `choose` split behind the figures of a run's report."""
    axis_episodes: int = 0
    """Games of that split on each held-out axis, for every checkpoint of a run; 0 for none."""


class Verify(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What the result of a run must reach on the `final` games (`training.verify`)."""

    greedy: float = 0.97
    """Least share of the optimal ladder's, always taking the likeliest answer."""
    sampled: float = 0.95
    """Likewise, drawing answers; 0 where it is reported only."""
    of_linear: float = 1.0
    """Least part of the linear ladder's share, where the exact ladders are known."""
    sizes: tuple[tuple[int, int], ...] = ()
    """Pairs of (buyers, turns) to be judged on, drawn with equal chance over a catalogue; those of the game when empty."""
    costs: tuple[float, ...] = ()
    """Costs to be judged on; those of the game when empty."""
    episodes: int = 20_000
    """Games per pair and cost."""
    above: tuple[str, ...] = ()
    """Over a catalogue, where `greedy` and `sampled` are least mean rewards: agents that must be beaten on the same
    games with disjoint intervals, and on each axis in the mean."""
    axes: tuple[str, ...] = ()
    """Held-out axes (`training.held_out.axes`) that are judged too, each by itself."""
    kept: float = 0.85
    """Part of the reward in the trained games that must be kept on an axis."""
    seeds: tuple[int, ...] = (1, 2, 3)
    """Seeds that `training.verify --retrain` trains."""


class RunConfig(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One run."""

    name: str
    seed: int = 1
    threads: int = 1
    """Torch threads; more than the idle cores makes a run slower."""
    game: Game
    base: str = ""
    """Folder of a model to start from; empty: built from nothing by `model`."""
    data: str = ""
    """Hash of the dialogues to imitate, which lie in the run's folder; empty: the demonstrators of `sft` are played."""
    device: str = "auto"
    """`cpu`, `cuda:0`, … or `auto`: a graphics processor where one is found."""
    model: Model = Model()
    exploits: Exploits = Exploits()
    sft: Sft = Sft()
    grpo: Grpo = Grpo()
    evaluation: Evaluation = Evaluation()
    verify: Verify = Verify()

    @property
    def sha256(self) -> str:
        """Hash of everything above; what came later and is left at its default changes no hash."""
        told: dict[str, Any] = msgspec.to_builtins(self)
        for part, came_later in (
            (told, _LATER_RUN),
            (told["game"], _LATER_GAME),
            (told["sft"], _LATER_SFT),
            (told["evaluation"], _LATER_EVALUATION),
            (told["grpo"], _LATER_GRPO),
            (told["verify"], _LATER_VERIFY),
        ):
            for name, default in came_later.items():
                if part[name] == default:
                    del part[name]
        return hashlib.sha256(msgspec.json.encode(told)).hexdigest()


_LATER_RUN: dict[str, Any] = {"base": "", "data": "", "device": "auto"}
_LATER_GAME: dict[str, Any] = {
    "weights": (),
    "model_calls": 0,
    "model_tokens": 0,
    "further_values": (),
    "dialogue": "ladder",
    "role": "seller",
    "family": "multi_buyer",
    "mechanism": "turns",
    "opener": "seller",
    "catalogue": "",
    "cost": "lowest",
    "products": 1,
    "rho": 0.0,
    "axis": "",
    "limited": False,
}
_LATER_SFT: dict[str, Any] = {"teachers": (), "before": ()}
_LATER_GRPO: dict[str, Any] = {"warmup": 0}
_LATER_EVALUATION: dict[str, Any] = {"axis_episodes": 0}
_LATER_VERIFY: dict[str, Any] = {"of_linear": 1.0, "above": (), "axes": (), "kept": 0.85}
"""Keys that older runs' files do not have, with what they stand for there."""


def load(path: Path, overrides: tuple[str, ...] = ()) -> RunConfig:
    """Read a TOML file, or a run's own JSON; `overrides` are `key.key=value` with TOML values. Raises `ConfigError`."""
    try:
        text = path.read_text(encoding="utf-8")
        data = json.loads(text) if path.suffix == ".json" else tomllib.loads(text)
        apply_overrides(data, overrides)
        config = msgspec.convert(data, RunConfig, strict=True)
        check_amounts(config)
        refuse_held_out(config.game)
        return config
    except (OSError, ValueError, registry.UnknownAgent, msgspec.ValidationError) as error:
        raise ConfigError(f"{path}: {error}") from error


MOST = 2**53
"""No number of a run is larger: what is computed of them stays a number."""


def check_numbers(told: Any, *, where: str = "") -> None:
    """Raise `ConfigError` at a number that no run can have: not finite, negative where it counts, or beyond `MOST`."""
    if isinstance(told, dict):
        for key, value in told.items():
            check_numbers(value, where=f"{where}.{key}" if where else str(key))
    elif isinstance(told, list | tuple):
        for value in told:
            check_numbers(value, where=where)
    elif isinstance(told, int):
        if not 0 <= told <= MOST:
            raise ConfigError(f"{where} must be a whole number from 0 to {MOST:,}.")
    elif isinstance(told, float) and not -MOST <= told <= MOST:
        raise ConfigError(f"{where} must be a number, not {told:g}.")


def check_amounts(config: RunConfig) -> None:
    """Raise `ConfigError` unless there is something to learn from and something to learn with."""
    check_numbers(msgspec.to_builtins(config))
    model, sft, grpo = config.model, config.sft, config.grpo
    for what, amount in (
        ("threads", config.threads),
        ("model.hidden", model.hidden),
        ("model.layers", model.layers),
        ("model.heads", model.heads),
        ("model.feed_forward", model.feed_forward),
        ("sft.batch", sft.batch),
        ("grpo.games", grpo.games),
        ("grpo.updates", grpo.updates),
        ("grpo.save_every", grpo.save_every),
        ("evaluation.final_episodes", config.evaluation.final_episodes),
    ):
        if amount < 1:
            raise ConfigError(f"{what} must be at least 1, not {amount}.")
    if model.hidden % model.heads:
        raise ConfigError(
            f"model.hidden must be a multiple of model.heads, and {model.hidden} is none of {model.heads}."
        )
    if min(sft.learning_rate, grpo.learning_rate) <= 0:
        raise ConfigError("sft.learning_rate and grpo.learning_rate must be positive.")
    if grpo.rollouts and grpo.group < 2:
        raise ConfigError("grpo.group must be at least 2: a game alone has nothing to be better than.")


def refuse_held_out(game: Game) -> None:
    """Raise `splits.HeldOut` with a sentence unless the opponents and the values may be trained on."""
    registry.refuse_held_out(game.opponents)
    if game.weights and (len(game.weights) != len(game.opponents) or min(game.weights) <= 0):
        raise ConfigError(
            f"Weights are positive, one for each opponent: {len(game.opponents)} opponents, weights {game.weights}."
        )
    if game.axis:
        raise ConfigError(f"The axis {game.axis!r} is for judging and never trained on.")
    if not game.catalogue:
        if (game.dialogue, game.family, game.mechanism) != ("ladder", Family.MULTI_BUYER, "turns"):
            raise ConfigError("The ledger, and every game but several buyers in seller's turns, needs a catalogue.")
        if game.further_values:
            raise ConfigError("Several laws of values are for games over a catalogue.")
        splits.refuse_held_out(values=priors.parse_value_spec(game.values))
        return
    if game.dialogue == "ladder":
        raise ConfigError("A game over a catalogue is played in the ledger: set dialogue.")
    if game.dialogue == "relative-ledger" and game.family is Family.BILATERAL:
        raise ConfigError("The relative ledger is for a seller of several buyers.")
    if (game.role is Role.BUYER or game.mechanism != "turns") and game.family is not Family.BILATERAL:
        raise ConfigError("Buyers, rounds and the clock are for bilateral games.")
    if game.family is Family.BILATERAL and game.mechanism == "turns":
        raise ConfigError("A bilateral game is played in rounds or on the clock.")
    for values in (game.values, *game.further_values):
        splits.refuse_held_out(values=priors.parse_value_rule(values))
    if game.rho in splits.RHOS:
        raise splits.HeldOut(f"Held out for evaluation and so never trained on: the correlation {game.rho:g}.")
    for buyers, _ in game.sizes:
        if game.family is Family.MULTI_BUYER and buyers in splits.BUYERS:
            raise splits.HeldOut(f"Held out for evaluation and so never trained on: {buyers} buyers.")
        if game.family is Family.CATALOGUE and (buyers, game.products, 1) in splits.STRUCTURES:
            raise splits.HeldOut(
                f"Held out for evaluation and so never trained on: the structure {buyers}x{game.products}x1."
            )


def apply_overrides(data: dict[str, Any], overrides: tuple[str, ...]) -> None:
    """Change `data` by `key.key=value` texts. Raises `ConfigError` on one that is not of that form."""
    for override in overrides:
        _set(data, override)


def _set(data: dict[str, Any], override: str) -> None:
    key, separator, value = override.partition("=")
    if not separator:
        raise ConfigError(f"{override!r} is not of the form key=value.")
    *parents, last = key.strip().split(".")
    for parent in parents:
        data = data.setdefault(parent, {})
        if not isinstance(data, dict):
            raise ConfigError(f"{override!r} goes into {parent!r}, which has no parts.")
    data[last] = _value(value.strip())


def _value(text: str) -> Any:
    """A TOML value; what is none is a string, so that names need no quotes."""
    try:
        return tomllib.loads(f"x = {text}")["x"]
    except ValueError:  # No value of TOML, or a number of thousands of digits.
        return text
