"""Adapters that teach the embedded model to play: folders with weights and a card, found without loading them.

Here: reading cards, where they lie. Not here: serving an adapter (`agents.inference`), the agents that they
stand for (`language_models`), making one (`training.language`).

Contract: a folder `NAME/` holds `card.json`, `adapter_config.json` and `adapter_model.safetensors`. A card
that cannot be read is an error, not a missing agent. Reads files; no Django, no torch.
"""

import json
import os
from pathlib import Path
from typing import Any

import msgspec

from markets.engine.protocol import Role
from markets.engine.scenarios import Family

_ROOT = Path(__file__).resolve().parents[1]

SHIPPED = _ROOT / "training" / "adapters"
"""Adapters that come with the code."""


def own_folder() -> Path:
    """Where adapters made here are published: `adapters` under PARLEY_VAR."""
    return Path(os.environ.get("PARLEY_VAR", _ROOT / "var")) / "adapters"


class Card(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What an adapter says about itself."""

    slug: str
    """Of the agent, and of the back end that serves it."""
    title: str
    summary: str
    base: str
    """The model that it belongs to, as it is served."""
    protocol: str
    roles: tuple[Role, ...]
    families: tuple[Family, ...]
    temperature: float
    longest: int
    """Tokens of an answer."""
    weights_sha256: str
    command: str
    """The command that makes it again."""
    trained_on: str
    """What it imitated, for people."""
    measured: dict[str, Any]
    """Figures by name, with their intervals."""
    limits: str
    """What it does not know."""


def cards(*folders: Path) -> list[tuple[Path, Card]]:
    """Every adapter in `folders` (those shipped and those made here unless named), by name; of two with one slug the
    first counts. Raises `ValueError` with a sentence."""
    found: dict[str, tuple[Path, Card]] = {}
    for folder in folders or (SHIPPED, own_folder()):
        for file in sorted(folder.glob("*/card.json")):
            try:
                card = msgspec.convert(json.loads(file.read_text(encoding="utf-8")), Card)
            except (ValueError, OSError) as error:
                raise ValueError(f"{file} is no card of an adapter: {error}") from error
            found.setdefault(card.slug, (file.parent, card))
    return list(found.values())
