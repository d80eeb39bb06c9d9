"""One line of the proof."""

import math
from dataclasses import dataclass
from typing import Any

MAX_TOLERANCE = 0.05
"""No row may be looser, in absolute terms."""


@dataclass(frozen=True, kw_only=True)
class Row:
    """A figure that must come out, and what came out."""

    name: str
    """What is measured, from the general to the special, parts apart by slashes."""
    reference: float
    measured: float | None
    """None where the figure is undefined, which is never right."""
    tolerance: float
    """Largest absolute difference that is right."""

    def __post_init__(self) -> None:
        if not 0 <= self.tolerance <= MAX_TOLERANCE:
            raise ValueError(f"The row {self.name!r} has a tolerance of {self.tolerance}.")

    @property
    def ok(self) -> bool:
        """Whether the figure came out."""
        if self.measured is None or not math.isfinite(self.measured):
            return False
        return abs(self.measured - self.reference) <= self.tolerance + 1e-12

    def told(self) -> dict[str, Any]:
        """The row as the command prints it."""
        measured = None if self.measured is None else round(self.measured, 6)
        return {
            "name": self.name,
            "reference": round(self.reference, 6),
            "measured": measured,
            "tolerance": self.tolerance,
            "ok": self.ok,
        }


@dataclass(frozen=True)
class Scale:
    """How much is played."""

    episodes: int
    """Games behind a row of the ladder table; other rows take a part of it."""

    def part(self, share: float) -> int:
        """That share of the games, rounded up."""
        return math.ceil(self.episodes * share)
