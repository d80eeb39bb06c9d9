"""Turns the folder of a finished run into a folder of a published checkpoint, without loading the model.

Here: what is copied, the card, and that it is all there or nothing. Not here: measuring a checkpoint
that was never measured (`training.publish`). No Django and no torch: the site publishes through this.

Contract: at most 5 MB; a slug that is taken is refused unless it is to be replaced. What was published
before stays until the new folder is whole.
"""

import hashlib
import json
import shutil
from pathlib import Path
from typing import Any

import msgspec

from agents import registry
from agents.learned import grammars
from agents.learned.published import Card
from markets.engine.scenarios import Family
from training import runs
from training.config import ConfigError, RunConfig

RUN_FILE = "run"
"""Stem of the configuration that is kept beside the weights."""
MAX_BYTES = 5_000_000

FILES = (
    "model.safetensors",
    "config.json",
    "generation_config.json",
    "tokenizer.json",
    "tokenizer_config.json",
    "chat_template.jinja",
)


REPORT_FILES = ("metrics.jsonl", *(f"{stage}.json" for stage in runs.STAGES))
"""What a run's page shows; a run made stage by stage by hand may lack some of them."""


def _summary(config: RunConfig) -> str:
    """What people read of it; a run kept short to see how one goes has played no thousands."""
    budget = config.grpo
    games = "thousands of games" if budget.rollouts * budget.games * budget.group >= 2_000 else "games"
    buyers = [size[0] for size in config.game.sizes]
    if config.game.family is Family.BILATERAL:
        return f"Learned as a {config.game.role.value} by playing {games} here; knows no strategy by rule."
    if config.game.family is Family.CATALOGUE:
        return "Learned to sell several products to buyers who want one each; knows no strategy by rule."
    if config.game.catalogue:
        return f"Learned to sell over a catalogue in {games} here; knows no strategy by rule."
    if len(set(buyers)) == 1:
        return f"Learned its prices by playing {games} here; knows no strategy by rule."
    return f"Learned its prices at tables of {min(buyers)} to {max(buyers)} buyers; knows no strategy by rule."


def write(
    config: RunConfig,
    run: Path,
    folder: Path,
    *,
    file: Path,
    slug: str,
    title: str,
    measured: dict[str, Any],
    replace: bool,
) -> Card:
    """Write `folder/slug` from the folder of a run; the card comes back. Raises `ConfigError`."""
    source, target = run / "grpo", folder / slug
    if slug in {spec.slug for spec in registry.all_specs()} and not target.exists():
        raise ConfigError(f"There is an agent {slug!r} already.")
    if target.exists() and not replace:
        raise ConfigError(f"{target} exists; add --replace to overwrite it.")
    missing = [name for name in FILES if not (source / name).is_file()]
    if missing:
        raise ConfigError(f"The run's model is not whole: {source} has no {', '.join(missing)}.")
    size = sum((source / name).stat().st_size for name in FILES)
    if size > MAX_BYTES:
        raise ConfigError(f"The checkpoint has {size:,} bytes, more than {MAX_BYTES:,}.")
    card = Card(
        slug=slug,
        title=title,
        summary=_summary(config),
        weights_sha256=hashlib.sha256((source / "model.safetensors").read_bytes()).hexdigest(),
        command=f"python -m training.stages {file}",
        trained_on=_games(config),
        measured=_figures(measured),
        limits=_limits(config),
        grammar=config.game.dialogue,
        role=config.game.role,
        family=config.game.family,
    )
    with runs.whole(target) as draft:
        for name in FILES:
            shutil.copyfile(source / name, draft / name)
        for name in REPORT_FILES:
            if (run / name).exists():
                shutil.copyfile(run / name, draft / name)
        (draft / RUN_FILE).with_suffix(file.suffix).write_text(file.read_text(encoding="utf-8"), encoding="utf-8")
        (draft / "card.json").write_text(json.dumps(msgspec.to_builtins(card), indent=1) + "\n", encoding="utf-8")
    return card


def _limits(config: RunConfig) -> str:
    highest = grammars.by_name(config.game.dialogue).highest_number
    scope = "One product, a seller's turns"
    if config.game.catalogue:
        scope = "The kind of market it learned in"
    unit = "highest value that is publicly possible" if config.game.dialogue == "relative-ledger" else "list price"
    return (
        f"{scope}, prices in hundredths of the {unit} up to {highest}; other opponents than those it met are new to it."
    )


def _games(config: RunConfig) -> str:
    game = config.game
    if game.family is Family.BILATERAL:
        sizes = f"one to one as the {game.role.value}, {game.sizes[0][1]} {'rounds' if game.mechanism == 'rounds' else 'rounds told, on a clock'}"
    elif len(game.sizes) == 1:
        sizes = "{} buyers in {} turns".format(*game.sizes[0])
    else:
        buyers, turns = ({pair[side] for pair in game.sizes} for side in (0, 1))
        sizes = f"{min(buyers)} to {max(buyers)} buyers in {min(turns)} to {max(turns)} turns ({len(game.sizes)} pairs)"
    low, high = min(game.costs), max(game.costs)
    cost = f"cost {low:g}" if low == high else f"costs {low:g} to {high:g}"
    if game.catalogue:
        cost = f"cost {game.cost}, in multiples of list prices"
    values = " or ".join(dict.fromkeys((game.values, *game.further_values)))
    return f"{sizes}; values {values}, {cost}; opponents {', '.join(game.opponents)}; seed {config.seed}."


def _figures(measured: dict[str, Any]) -> dict[str, Any]:
    kept = ("episodes", "share", "share_low", "share_high", "deal_rate", "loss_rate", "refused_rate")
    ways = {way: {key: measured[way][key] for key in kept} for way in ("greedy", "sampled")}
    known = {key: measured[key] for key in ("references",) if key in measured}
    if "members" in measured:
        known["members"] = [{k: v for k, v in row.items() if k != "asks"} for row in measured["members"]]
    return ways | known
