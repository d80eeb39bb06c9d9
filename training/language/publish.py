"""Makes what a run learned an agent: copies an adapter, its run file and its figures, and writes the card.

Contract: at most 5 MB; a slug that is taken is refused unless it is replaced; nothing half-written is
published: the folder is made beside its place and renamed. A model that was trained whole is no adapter
and is served from its run's folder (`python -m agents.inference --checkpoint`).
"""

import hashlib
import json
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from agents import registry
from agents.adapters import Card
from agents.inference.adapter import CONFIG, WEIGHTS
from agents.inference.embedded import NAME
from markets.engine.protocol import Role
from markets.engine.scenarios import Family
from training import runs
from training.config import ConfigError
from training.language.config import EMBEDDED, LanguageRun

MAX_BYTES = 5_000_000
RUN_FILE = "run"
"""Stem of the run file that is kept beside the weights, TOML or JSON as it was."""
REPORT_FILES = ("sft.json", "grpo.json", "judge.json", "metrics.jsonl")
"""What the stages found, as far as they ran."""


def publish(
    config: LanguageRun,
    run: Path,
    folder: Path,
    *,
    file: Path,
    slug: str,
    title: str,
    replace: bool = False,
    roles: Sequence[Role] = (),
) -> Card:
    """Write `folder/slug` from the folder of a run; the card comes back. `roles` are the seats that it is good enough for,
    all that it learned unless named. Raises `ConfigError`."""
    source, target = trained(run), folder / slug
    if config.base != EMBEDDED:
        raise ConfigError("Only adapters of the embedded model are published; serve other folders with --checkpoint.")
    if not (source / WEIGHTS).is_file():
        raise ConfigError(f"{source} holds no adapter: there is no {WEIGHTS} in it.")
    if target.exists() and not replace:
        raise ConfigError(f"{target} exists; add --replace to overwrite it.")
    if slug in {spec.slug for spec in registry.all_specs()} and not target.exists():
        raise ConfigError(f"There is an agent {slug!r} already.")
    if lacking := set(roles) - set(config.market.roles):
        raise ConfigError(f"It did not learn to be a {' or a '.join(sorted(lacking))}.")
    size = sum((source / name).stat().st_size for name in (CONFIG, WEIGHTS))
    if size > MAX_BYTES:
        raise ConfigError(f"The adapter has {size:,} bytes, more than {MAX_BYTES:,}.")
    card = Card(
        slug=slug,
        title=title,
        summary="A small language model that was taught to haggle by imitation: it decides and speaks for itself.",
        base=NAME,
        protocol=config.protocol,
        roles=tuple(role for role in Role if role in (roles or config.market.roles)),
        families=(Family.BILATERAL,),
        temperature=config.sampling.temperature,
        longest=config.sampling.longest,
        weights_sha256=hashlib.sha256((source / WEIGHTS).read_bytes()).hexdigest(),
        command=f"python -m training.language train {file}",
        trained_on=learned_from(config, runs.figures(run, "sft")),
        measured=runs.figures(run, "judge") or {},
        limits="English; one product between two, in turns; prices up to a few thousand. It compares numbers by "
        "habit and not by arithmetic, and knows no more of the goods than what it was told.",
    )
    with runs.whole(target) as draft:
        for name in (CONFIG, WEIGHTS):
            shutil.copyfile(source / name, draft / name)
        for name in REPORT_FILES:
            if (run / name).exists():
                shutil.copyfile(run / name, draft / name)
        shutil.copyfile(file, (draft / RUN_FILE).with_suffix(file.suffix))
        (draft / "card.json").write_text(json.dumps(msgspec.to_builtins(card), indent=1) + "\n", encoding="utf-8")
    return card


def trained(run: Path) -> Path:
    """The last stage that left weights. Raises `ConfigError` where none did."""
    for stage in ("grpo", "sft"):
        if (run / stage).is_dir():
            return run / stage
    raise ConfigError(f"{run} holds nothing that was trained: run `python -m training.language train` first.")


def learned_from(config: LanguageRun, figures: dict[str, Any] | None) -> str:
    """What the card says of the lessons."""
    teachers = ", ".join(config.sft.teachers)
    rows = f"{figures['rows_seen']:,} decisions" if figures and "rows_seen" in figures else "decisions"
    learned = f"{rows} of {teachers}, in games where they got at least {config.sft.least_share:g} of what there was"
    if config.grpo.rollouts:
        learned += f", and {config.grpo.rollouts} rollouts of games of its own"
    return f"{learned}; seed {config.seed}."
