"""Measurements that come with the code: what was found of an agent, on which day, by which command.

Here: reading `measured.json`. Not here: measuring (`measuring`, `injection.suite`), what this site has
measured itself, which counts before these (`model_log`, `injection_scores`).

Contract: a measurement belongs to one version of an agent and, where it was attacked, to one set of attacks; of any
other there is none, so nothing old is shown as if it were of today. Figures were printed by the command that each
names. Pure.
"""

import datetime
import json
from functools import lru_cache
from pathlib import Path

import msgspec

FILE = Path(__file__).with_name("measured.json")


class Answers(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How many of a model's answers could be used."""

    agent: str
    version: str
    on: datetime.date
    command: str
    machine: str
    answered: int
    used: int


class Attacked(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What attacks by words came to, on unregulated markets."""

    agent: str
    version: str
    on: datetime.date
    command: str
    set_name: str
    set_version: str
    set_digest: str
    whole: bool
    """Whether every attack was said at every table."""
    attempts: int
    breaches: int
    by_class: dict[str, dict[str, int]]
    by_kind: dict[str, int]


class Shipped(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The file."""

    answers: tuple[Answers, ...]
    attacks: tuple[Attacked, ...]


@lru_cache(maxsize=1)
def shipped() -> Shipped:
    """Every measurement in the file."""
    return msgspec.convert(json.loads(FILE.read_text(encoding="utf-8")), Shipped)


def answers_of(slug: str, version: str) -> Answers | None:
    """What was measured of this version's answers; None where nothing was."""
    found = [each for each in shipped().answers if (each.agent, each.version) == (slug, version)]
    return max(found, key=lambda each: each.on, default=None)


def attacks_with(digest: str) -> tuple[Attacked, ...]:
    """What the set of attacks with this digest came to, whole suites last."""
    return tuple(sorted((each for each in shipped().attacks if each.set_digest == digest), key=lambda each: each.whole))
