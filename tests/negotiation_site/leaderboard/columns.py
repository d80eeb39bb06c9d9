"""Facts written down by hand: a row is a dictionary, what it leaves out is the plainest case."""

from typing import Any

import numpy as np

from negotiation_site.leaderboard.facts import _DTYPES, _WIDE, SELLER, Facts

NAN = float("nan")
PLAIN: dict[str, Any] = {
    "market": 1,
    "public": True,
    "role": SELLER,
    "opponent": 0,
    "first_best": 1_000.0,
    "joint": 1_000.0,
    "own_value": 5_000.0,
    "other_value": 6_000.0,
    "list_price": 10_000.0,
    "price": NAN,
    "share": 0.5,
    "deals": 1,
    "messages": 4,
    "offers": 2,
    "distinct": 2,
    "opening": NAN,
    "concession": NAN,
    "patience": NAN,
    "coverage": NAN,
    "entropy": NAN,
    "fixation": NAN,
    "matched": NAN,
    "best_pairs": NAN,
    "random_welfare": NAN,
}


def facts_of(*rows: dict[str, Any], agents: int = 5) -> Facts:
    """One row a seat; each has an episode of its own unless it names one."""
    filled = [{"episode": number, "scenario": number} | PLAIN | row for number, row in enumerate(rows, start=1)]
    columns = {name: np.array([row.get(name, 0) for row in filled], dtype) for name, dtype in _DTYPES.items()}
    for name, (dtype, width) in _WIDE.items():
        empty = [0] * width
        wide = [[*row.get(name, ()), *empty[len(row.get(name, ())) :]] for row in filled]
        columns[name] = np.array(wide, dtype).reshape(len(filled), width)
    columns["broken"] = columns["violations"].sum(axis=1).astype("i4")
    columns["steps"] = np.array([len(row.get("path", ())) for row in filled], "i1")
    return Facts(
        columns=columns,
        agents=tuple((f"agent-{number}", "1") for number in range(agents)),
        families=("bilateral",),
        currencies=("USD", "EUR"),
        lineups=tuple(range(200)),
        version=(len(rows), 0),
    )
