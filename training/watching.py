"""What is logged of the games of a rollout, for whoever watches a run.

Here: economics and conduct of the games just played, groups without spread, where the time went, and
games to read. Not here: shares on kept-apart games (`training.evaluation`), what is shown (the site).

Contract: computed from event logs alone (`markets.engine.measures`). A figure that is undefined in a
rollout is missing from its line, never 0.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Protocol

from markets.engine import measures
from markets.engine.figures import ViolationType
from markets.engine.protocol import LogEntry, Role
from markets.engine.scenarios import Scenario

FLAT = 1e-9


class Played(Protocol):
    """A game that was played to its end."""

    @property
    def scenario(self) -> Scenario:
        """What was at stake."""
        ...

    @property
    def log(self) -> tuple[LogEntry, ...]:
        """What happened."""
        ...


class Ended(NamedTuple):
    """A game by its scenario and its log alone."""

    scenario: Scenario
    log: tuple[LogEntry, ...]


@dataclass
class Stopwatch:
    """Seconds of a rollout that its games took, as against the model."""

    environment: float = 0.0


def figures(episodes: Sequence[Played], rewards: Sequence[float], *, group: int, role: Role) -> dict[str, Any]:
    """The figures of one rollout's games."""
    measured = [measures.measure(episode.scenario, episode.log) for episode in episodes]
    groups = [rewards[start : start + group] for start in range(0, len(rewards), group)]
    found: dict[str, Any] = {
        "deal_rate": measures.deal_rate(measured),
        "surplus_share": measures.surplus_share(measured, role),
        "unconditional_share": measures.unconditional_surplus(measured, role),
        "allocation_quality": measures.allocation_quality(measured),
        "extraction": measures.extraction(measured),
        "adherence": measures.constraint_adherence(measured, role),
        "opening": measures.opening_aggressiveness(measured, role),
        "opening_of_list": _opening_of_list(measured, role),
        "distinct_offers": measures.distinct_offers(measured, role),
        "coverage": measures.exploration_coverage(measured),
        "fixation": measures.fixation_rate(measured),
        "top_buyer_rate": measures.top_buyer_rate(measured),
        "zero_spread_groups": sum(max(own) - min(own) < FLAT for own in groups) / max(1, len(groups)),
    }
    broken = {kind.value: measures.violation_rate(measured, role, kind) for kind in ViolationType}
    found["violations"] = {kind: rate for kind, rate in broken.items() if rate}
    return {name: value for name, value in found.items() if value is not None}


def _opening_of_list(measured: Sequence[measures.Measured], role: Role) -> float | None:
    """Mean of the first own offer / list price, which a cost of 0 leaves defined."""
    ratios = [
        seat.opening_cents / seat.list_price_cents
        for episode in measured
        for seat in episode.of(role)
        if seat.opening_cents is not None and seat.list_price_cents
    ]
    return sum(ratios) / len(ratios) if ratios else None


def chosen(rewards: Sequence[float]) -> dict[str, int]:
    """Which games are kept to be read: the best paid, the worst paid and the one in the middle."""
    order = sorted(range(len(rewards)), key=lambda k: (rewards[k], k))
    return {"best": order[-1], "middle": order[len(order) // 2], "worst": order[0]} if order else {}
