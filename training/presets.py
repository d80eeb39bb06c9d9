"""Named starting points of runs: a file of `configs/` with a run's own name, games and changes.

A change is `key.key=value` with TOML values, as on the scripts' command lines.
"""

import tomllib
from pathlib import Path

import msgspec

from agents import registry
from training.config import ConfigError, Game, RunConfig, apply_overrides, refuse_held_out

FOLDER = Path(__file__).with_name("configs")

PRESETS = ("tiny",)


def preset(preset_name: str, *, name: str, game: Game, overrides: tuple[str, ...] = ()) -> RunConfig:
    """The configuration of a run that starts from a preset. Raises `ConfigError` with a sentence."""
    if preset_name not in PRESETS:
        raise ConfigError(f"There is no preset {preset_name!r}; there is: {', '.join(PRESETS)}.")
    data = tomllib.loads((FOLDER / f"{preset_name}.toml").read_text(encoding="utf-8"))
    data |= {"name": name, "game": msgspec.to_builtins(game)}
    apply_overrides(data, overrides)
    try:
        config = msgspec.convert(data, RunConfig, strict=False)
        refuse_held_out(config.game)
    except (ValueError, registry.UnknownAgent) as error:
        raise ConfigError(f"This run cannot be configured so: {str(error).rstrip('.')}.") from error
    return config
