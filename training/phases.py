"""Phases of a strategy's evolution, marked by a rule on the figures of a run's rollouts.

Here: the rule. Not here: measuring (`training.watching`), words for people and plots (the site).

The predecessor of the papers that we implement describes four phases of a trained negotiator (arXiv
2604.09855): naive bargaining, aggressive opening prices, a deadlock, and then a strategy that closes
deals and keeps more. The paper marks them by reading; the rule below is ours, so that any run is marked alike.

Contract: every figure is the mean of its last `WINDOW` rollouts, and the start is the mean of the first
`WINDOW`. A rollout is in the first of these phases whose condition holds:

    deadlock   deals fell to `DEALS` or more below the start
    closing    what is kept over all games is `KEPT` or more above the start
    pressing   the opening is `OPENING` or more of the list price further in the own favour
    taught     none of these: it still plays as it was taught

A phase begins where its condition has held for `HOLDS` rollouts in a row. A run with fewer than `WINDOW`
rollouts, or without these figures, has no phases. Pure.
"""

from collections.abc import Mapping, Sequence
from enum import StrEnum
from typing import Any, NamedTuple

WINDOW = 5
"""Rollouts in a mean."""
HOLDS = 3
"""Rollouts in a row that make a phase."""
DEALS = 0.10
KEPT = 0.05
OPENING = 0.05

_NEEDED = ("deal_rate", "unconditional_share", "opening_of_list")


class Name(StrEnum):
    """What a phase is called."""

    TAUGHT = "taught"
    PRESSING = "pressing"
    DEADLOCK = "deadlock"
    CLOSING = "closing"


class Phase(NamedTuple):
    """A stretch of rollouts, both ends included."""

    name: Name
    first: int
    last: int


def phases(lines: Sequence[Mapping[str, Any]], *, seller: bool = True) -> tuple[Phase, ...]:
    """The phases of a run, in order; `lines` are its metrics of the kind `train`."""
    known = [line for line in lines if all(line.get(name) is not None for name in _NEEDED)]
    if len(known) < WINDOW:
        return ()
    start = _mean(known[:WINDOW])
    found = [Phase(Name.TAUGHT, int(known[0]["rollout"]), int(known[WINDOW - 1]["rollout"]))]
    waiting: list[tuple[Name, int]] = []
    for k in range(WINDOW, len(known)):
        rollout = int(known[k]["rollout"])
        name = _phase(_mean(known[k - WINDOW + 1 : k + 1]), start, seller=seller)
        if waiting and waiting[-1][0] is not name:
            waiting = []
        waiting.append((name, rollout))
        current = found[-1]
        if name is current.name:
            waiting = []
            found[-1] = current._replace(last=rollout)
        elif len(waiting) >= HOLDS:
            first = waiting[0][1]
            found[-1] = current._replace(last=first - 1)
            found.append(Phase(name, first, rollout))
            waiting = []
        else:
            found[-1] = current._replace(last=rollout)
    return tuple(found)


def _mean(lines: Sequence[Mapping[str, Any]]) -> dict[str, float]:
    return {name: sum(line[name] for line in lines) / len(lines) for name in _NEEDED}


def _phase(now: Mapping[str, float], start: Mapping[str, float], *, seller: bool) -> Name:
    gone = {name: now[name] - start[name] for name in _NEEDED}
    harder = gone["opening_of_list"] if seller else -gone["opening_of_list"]
    if gone["deal_rate"] <= -DEALS:
        return Name.DEADLOCK
    if gone["unconditional_share"] >= KEPT:
        return Name.CLOSING
    return Name.PRESSING if harder >= OPENING else Name.TAUGHT
