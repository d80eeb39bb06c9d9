"""Named starting points of runs: a file of `configs/` with a run's own name, games and changes.

Here: a small model trained from nothing (`preset`), language models that are taught (`language_preset`), and
the folders of their bases. Not here: whether this machine can run one (`capacity`), launching (`services`).

A change is `key.key=value` with TOML values, as on the scripts' command lines. A language model that does not come
with the project's packages starts from a folder: the one that is named, or the one in `PARLEY_BASE_<PRESET>`.
"""

import os
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from agents import registry
from agents.scripted.personas import UnknownPersona
from markets.engine import splits
from training.config import ConfigError, Game, RunConfig, apply_overrides, check_amounts, refuse_held_out
from training.language.config import LanguageRun, Market, check

FOLDER = Path(__file__).with_name("configs")

SMALL = ("tiny",)
"""Models of our own, built from nothing."""
LANGUAGE = ("smollm2", "qwen3-8b", "qwen3-14b")
"""Language models, taught."""
PRESETS = (*SMALL, *LANGUAGE)

WATCH_EVERY = 50
"""Updates of imitation between two looks at games, unless a file or a change says otherwise."""


def _data(preset_name: str, known: tuple[str, ...]) -> dict[str, Any]:
    if preset_name not in known:
        raise ConfigError(f"There is no preset {preset_name!r}; there is: {', '.join(PRESETS)}.")
    return tomllib.loads((FOLDER / f"{preset_name}.toml").read_text(encoding="utf-8"))


def preset(preset_name: str, *, name: str, game: Game, overrides: tuple[str, ...] = ()) -> RunConfig:
    """The configuration of a run that starts from a preset. Raises `ConfigError` with a sentence."""
    data = _data(preset_name, SMALL)
    data |= {"name": name, "game": msgspec.to_builtins(game)}
    apply_overrides(data, overrides)
    try:
        config = msgspec.convert(data, RunConfig, strict=False)
        check_amounts(config)
        refuse_held_out(config.game)
    except (ValueError, registry.UnknownAgent) as error:
        raise ConfigError(f"This run cannot be configured so: {str(error).rstrip('.')}.") from error
    return config


def language_preset(
    preset_name: str, *, name: str, market: Market, overrides: tuple[str, ...] = (), **more: Any
) -> LanguageRun:
    """The configuration of a language model's run; `more` are fields of it that the caller settles.

    In one process the model writes its own answers, so a server is asked only where a change names one. Raises
    `ConfigError` with a sentence.
    """
    data = _data(preset_name, LANGUAGE)
    data |= {"name": name, "market": msgspec.to_builtins(market), **more}
    data.setdefault("judging", {}).setdefault("watch_every", WATCH_EVERY)
    data.setdefault("sampling", {})["vllm"] = ""
    apply_overrides(data, overrides)
    try:
        config = msgspec.convert(data, LanguageRun, strict=False)
        check(config)
    except (ValueError, registry.UnknownAgent, UnknownPersona, splits.HeldOut) as error:
        raise ConfigError(f"This run cannot be configured so: {str(error).rstrip('.')}.") from error
    return config


def base_variable(preset_name: str) -> str:
    """The environment variable that names the folder of a preset's base."""
    return f"PARLEY_BASE_{preset_name.upper().replace('-', '_')}"


def base_named(preset_name: str, environment: Mapping[str, str] = os.environ) -> str:
    """The folder that this machine has for a preset's base; empty where none is named."""
    return environment.get(base_variable(preset_name), "").strip()


SERVERS_VARIABLE = "PARLEY_VLLM"
"""The environment variable that names the servers which a run from the site may ask for answers."""


def servers_named(environment: Mapping[str, str] = os.environ) -> frozenset[str]:
    """Addresses of `trl vllm-serve` that this machine's administrator allows, with spaces between them."""
    return frozenset(address.rstrip("/") for address in environment.get(SERVERS_VARIABLE, "").split())
