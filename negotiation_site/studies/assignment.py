"""Which condition and side somebody gets, and which draws they meet.

Here: the arithmetic of balance and of blocks. Not here: locking (`conduct` holds the row of the study while
`assign` runs, so that people who come at the same moment are counted one after the other).

A *cell* is a condition with a side. Every cell has numbered slots; a newcomer gets the lowest free slot of the
cell that is emptiest for its weight, ties broken by a draw from the study's seed. Who drops out gives the slot
back, so that a later one meets the same draws in their stead.
"""

import random
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from math import gcd

from markets.engine.protocol import Role
from markets.engine.seeds import derive_seed
from negotiation_site.studies.design import Condition, Design
from negotiation_site.studies.models import Mode, Participation, StudyVersion


@dataclass(frozen=True)
class Cell:
    """A condition with a side."""

    condition: str
    role: Role
    weight: Fraction


@dataclass(frozen=True)
class Place:
    """Where a participant belongs in the design."""

    condition: str
    role: Role
    slot: int


@dataclass(frozen=True)
class Draw:
    """Which value draw a round meets."""

    scenario_set: int
    scenario_number: int
    seed: int


def cells(design: Design) -> tuple[Cell, ...]:
    """Every cell, in the design's order."""
    return tuple(cell for condition in design.conditions for cell in cells_of(condition))


def cells_of(condition: Condition) -> tuple[Cell, ...]:
    """The cells of one condition."""
    roles = condition.side.roles
    return tuple(Cell(condition.key, role, Fraction(condition.weight, len(roles))) for role in roles)


def unit(design: Design) -> int:
    """The smallest number of participants that fills every cell in proportion."""
    weights = [cell.weight * 2 for cell in cells(design)]
    whole = [weight.numerator for weight in weights if weight.denominator == 1]
    return sum(whole) // gcd(*whole) if whole else 0


def assign(version: StudyVersion, *, mode: Mode | str) -> Place:
    """The next free place. The caller holds the study's row locked and stores what it gets."""
    design = version.parsed
    taken = taken_slots(version, mode=mode)
    counts = Counter({key: len(slots) for key, slots in taken.items()})
    options = cells(design)
    load = {cell: counts[cell.condition, cell.role.value] / cell.weight for cell in options}
    least = min(load.values())
    candidates = [cell for cell in options if load[cell] == least]
    chance = random.Random(derive_seed("assignment", design.scenarios.seed, str(mode), counts.total()))
    cell = chance.choice(candidates)
    return Place(cell.condition, cell.role, free_slot(taken.get((cell.condition, cell.role.value), set())))


def taken_slots(version: StudyVersion, *, mode: Mode | str) -> dict[tuple[str, str], set[int]]:
    """Slots in use by condition and role."""
    taken: dict[tuple[str, str], set[int]] = {}
    rows = Participation.objects.filter(version=version, mode=mode, slot__isnull=False)
    for condition, role, slot in rows.values_list("condition", "role", "slot"):
        if slot is not None:
            taken.setdefault((condition, role), set()).add(slot)
    return taken


def free_slot(taken: set[int]) -> int:
    """The lowest number that is not in use."""
    return next(slot for slot in range(len(taken) + 1) if slot not in taken)


def draw(design: Design, *, slot: int, number: int, mode: Mode | str) -> Draw:
    """The draw of round `number` (1-based) for a slot: its block, in an order that rotates from block to block."""
    sets, rounds = design.scenarios.sets, design.rounds
    scenario_set = slot % sets
    scenario_number = (number - 1 + slot // sets) % rounds
    return Draw(scenario_set, scenario_number, seed_of(design, scenario_set, scenario_number, mode=mode))


def seed_of(design: Design, scenario_set: int, scenario_number: int, *, mode: Mode | str) -> int:
    """The seed of one draw. A pilot and a preview meet other draws than the study."""
    return derive_seed("study", design.scenarios.seed, str(mode), scenario_set, scenario_number) >> 1


def practice_seed(design: Design) -> int:
    """The seed of the practice round, the same for everybody and in no block."""
    return derive_seed("practice", design.scenarios.seed) >> 1
