"""Published checkpoints as agents: folders with weights and a card, found without loading them.

Here: reading cards, and the agents they stand for, a greedy and a sampled one each. Not here: the
network and its choices, which are loaded when an agent first plays.

Contract: a folder `NAME/` holds `card.json`, `config.json` and `model.safetensors`. A card that
cannot be read is an error, not a missing agent. An agent's version is the hash of its weights, so
that a record says exactly who played. Reads files; no Django, no torch.
"""

import json
import os
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from agents.base import AgentSpec, Kind
from markets.engine.protocol import Role
from markets.engine.scenarios import Family

if TYPE_CHECKING:
    from agents.learned.policy import Policy

_ROOT = Path(__file__).resolve().parents[2]

SHIPPED = _ROOT / "training" / "checkpoints"
"""Checkpoints that come with the code."""


def own_folder() -> Path:
    """Where checkpoints made here are published: `checkpoints` under PARLEY_VAR."""
    return Path(os.environ.get("PARLEY_VAR", _ROOT / "var")) / "checkpoints"


class Card(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a checkpoint says about itself."""

    slug: str
    title: str
    summary: str
    weights_sha256: str
    command: str
    """The commands that make it again."""
    trained_on: str
    """The games it learned in, for people."""
    measured: dict[str, Any]
    """Figures by name, with their references and intervals."""
    limits: str
    """What it does not know."""
    grammar: str = "ladder"
    """What it reads and writes (`agents.learned.grammars`)."""
    role: Role = Role.SELLER
    family: Family = Family.MULTI_BUYER


def cards(folder: Path) -> list[tuple[Path, Card]]:
    """Every checkpoint in `folder`, by name."""
    found = []
    for file in sorted(folder.glob("*/card.json")):
        try:
            found.append((file.parent, msgspec.convert(json.loads(file.read_text(encoding="utf-8")), Card)))
        except (ValueError, OSError) as error:
            raise ValueError(f"{file} is no card of a checkpoint: {error}") from error
    return found


def specs(*folders: Path) -> tuple[AgentSpec, ...]:
    """The agents of all checkpoints in `folders`; of two with one slug the first counts."""
    made: dict[str, AgentSpec] = {}
    for folder in folders:
        for path, card in cards(folder):
            for spec in _specs(path, card):
                made.setdefault(spec.slug, spec)
    return tuple(made.values())


def available() -> tuple[AgentSpec, ...]:
    """The agents of the shipped checkpoints and of those published here, as they are now."""
    folders = (SHIPPED, own_folder())
    files = (file for folder in folders for file in sorted(folder.glob("*/card.json")))
    return _available(folders, tuple((file, file.stat().st_mtime_ns) for file in files))


@lru_cache(maxsize=8)
def _available(folders: tuple[Path, ...], cards_now: tuple[tuple[Path, int], ...]) -> tuple[AgentSpec, ...]:
    """`specs`, kept until a card comes, goes or changes."""
    return specs(*folders)


def _specs(path: Path, card: Card) -> tuple[AgentSpec, AgentSpec]:
    def spec(slug: str, title: str, summary: str, *, sampled: bool) -> AgentSpec:
        return AgentSpec(
            slug=slug,
            title=title,
            summary=summary,
            kind=Kind.LEARNED,
            roles=(card.role,),
            families=(card.family,),
            build=partial(load, path, sampled=sampled, grammar=card.grammar),
            version=card.weights_sha256[:12],
            source=f"Learned by playing here: {card.trained_on}",
        )

    return (
        spec(card.slug, card.title, card.summary, sampled=False),
        spec(
            f"{card.slug}-sampled",
            f"{card.title} (varied)",
            f"{card.title} again, drawing its moves instead of taking the likeliest.",
            sampled=True,
        ),
    )


@lru_cache(maxsize=16)
def load(path: Path, *, sampled: bool, grammar: str = "ladder") -> "Policy":
    """The policy of a checkpoint, kept for the life of the process."""
    from agents.learned import grammars
    from agents.learned.network import Network
    from agents.learned.policy import Policy

    return Policy(Network.load(path), sampled=sampled, grammar=grammars.by_name(grammar))
