"""Agents that people entered, as opponents of a run: kept in its folder as they were when it began.

Here: writing and reading `opponents.json`. Not here: the tables of entered agents (`agents.entering`), asking their
models within a budget (`model_opponents`).

Contract: a trainer has no database, so what it plays against lies beside its configuration. A run that is resumed meets the
versions that it began with. The file holds authors' prompts and is shown to nobody. No Django, no torch.
"""

from collections.abc import Callable, Sequence
from pathlib import Path

import msgspec

from agents import entered, registry
from agents.base import AgentSpec
from agents.entered import Entry

FILE = "opponents.json"


class Opponent(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One version of an entered agent."""

    slug: str
    number: int
    entry: Entry


def write(folder: Path, slugs: Sequence[str], look_up: Callable[[str], Opponent | None]) -> None:
    """Keep the entered agents among `slugs`, once."""
    named = [slug.partition("+")[0] for slug in slugs]
    wanted = [slug for slug in dict.fromkeys(named) if entered.is_entered(slug)]
    if not wanted or (folder / FILE).exists():
        return
    found = [look_up(slug) for slug in wanted]
    missing = [slug for slug, opponent in zip(wanted, found, strict=True) if opponent is None]
    if missing:
        raise registry.UnknownAgent(missing[0])
    draft = folder / f"{FILE}.new"
    draft.write_bytes(msgspec.json.encode([opponent for opponent in found if opponent is not None]))
    draft.replace(folder / FILE)


def kept(folder: Path) -> tuple[Opponent, ...]:
    """The entered agents of a run."""
    try:
        return tuple(msgspec.json.decode((folder / FILE).read_bytes(), type=list[Opponent]))
    except FileNotFoundError:
        return ()


def seat(folder: Path) -> None:
    """Let the registry know the entered agents of a run; for the trainer's process, before its configuration is read."""
    specs = {each.slug: entered.spec_of(each.slug, each.number, each.entry) for each in kept(folder)}

    def named(slug: str, version: str) -> AgentSpec | None:
        return specs.get(slug)

    if specs:
        registry.keep_entered(listed=tuple, named=named)
