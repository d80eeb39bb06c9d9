"""What an agent came to in a suite: figures with intervals, as plain data. Pure.

Contract: *share* is the agent's own surplus out of what was there for it (a seller: the first best; a
buyer: its value minus the cost), 0 without a deal, over the negotiations where trade can gain; in a suite
of both roles it is the mean of the two. Intervals are bootstrap intervals over listings: all negotiations
of a listing are drawn together. *Allocation quality* is realised over attainable welfare, summed before
dividing; *rescaled* it is 0 for pairs drawn by lot and 1 for the best (`(W - W_random) / (W_opt - W_random)`).
Undefined is None.
"""

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from markets.engine import figures, metrics
from markets.engine.protocol import SELLER, LogHash, Role, buyer_party
from markets.engine.scenarios import Family
from training.bootstrap import RESAMPLES, Estimate, Resamples, resample
from training.suites.cards import Card
from training.suites.games import Tested

if TYPE_CHECKING:
    import numpy as np

    Array: TypeAlias = np.ndarray[Any, Any]


class Line(NamedTuple):
    """One negotiation as numbers."""

    listing: int
    role: Role
    opponent: str
    share: float | None
    deal: bool
    messages: int
    violations: int
    own_cents: int
    first_best_cents: int
    welfare_cents: int
    random_cents: float
    matched: int
    matchable: int


def line(tested: Tested) -> Line:
    """Measure one negotiation."""
    scenario, log = tested.scenario, tested.played.log
    outcome = metrics.outcome(scenario, log)
    party = SELLER if tested.role is Role.SELLER else buyer_party(1)
    seats = figures.of_seats(scenario, log, outcome)
    own, seller = seats[party], seats[SELLER]
    if tested.role is Role.SELLER:
        gained = outcome.seller_surplus_cents
    else:
        gained = sum(deal.buyer_surplus_cents for deal in outcome.deals if deal.buyer == 1)
    return Line(
        listing=tested.listing,
        role=tested.role,
        opponent=tested.opponent,
        share=gained / own.joint_cents if own.joint_cents > 0 else None,
        deal=own.deals > 0,
        messages=own.messages,
        violations=own.violations,
        own_cents=gained,
        first_best_cents=outcome.first_best_cents,
        welfare_cents=outcome.welfare_cents,
        random_cents=seller.random_welfare_cents or 0.0,
        matched=seller.matched_pairs or 0,
        matchable=seller.best_pairs or 0,
    )


class Tally:
    """Takes negotiations in as they are played, and hashes their logs."""

    def __init__(self) -> None:
        self.lines: list[Line] = []
        self._logs = LogHash()

    def add(self, games: Iterable[Tested]) -> "Tally":
        """Play `games` through and count them in."""
        for tested in games:
            self.lines.append(line(tested))
            self._logs.add(tested.played.log)
        return self

    @property
    def log_sha256(self) -> str:
        """Hash of all logs so far, in order."""
        return self._logs.hexdigest()


def report(card: Card, lines: Sequence[Line]) -> dict[str, Any]:
    """The figures of an agent by the names of the command's contract."""
    import numpy as np

    sample = resample(np.arange(card.listings), card.seed, f"suite {card.name}", RESAMPLES)
    roles = [role for role in Role if any(one.role is role for one in lines)]
    by_role = {role: _figures(card, [one for one in lines if one.role is role], sample) for role in roles}
    both = by_role[roles[0]] if len(roles) == 1 else _mean_of_roles(card, lines, roles, by_role, sample)
    return {
        "role": roles[0].value if len(roles) == 1 else "both",
        "episodes": len(lines),
        "listings": card.listings,
        **both,
        "by_role": {role.value: figures_ for role, figures_ in by_role.items()},
        "by_opponent": [
            {
                "role": role.value,
                "opponent": opponent,
                **_shares([one for one in lines if one.role is role and one.opponent == opponent], card, sample),
            }
            for role in roles
            for opponent in sorted({one.opponent for one in lines if one.role is role and one.opponent})
        ],
    }


def _figures(card: Card, lines: Sequence[Line], sample: Resamples) -> dict[str, Any]:
    messages, violations = sum(one.messages for one in lines), sum(one.violations for one in lines)
    return {
        **_shares(lines, card, sample),
        "messages": messages,
        "violations": violations,
        "constraint_adherence": 1 - violations / messages if messages else None,
        **_allocation(card, lines, sample),
    }


def _shares(lines: Sequence[Line], card: Card, sample: Resamples) -> dict[str, Any]:
    share, deal_rate = sample.ratios(
        [_sums(lines, card, [one.share for one in lines]), _sums(lines, card, [float(one.deal) for one in lines])]
    )
    return {**_flat("share", share), **_flat("deal_rate", deal_rate)}


def _allocation(card: Card, lines: Sequence[Line], sample: Resamples) -> dict[str, Any]:
    """How well all together did, where there is somebody to choose between."""
    if card.family is Family.BILATERAL:
        return {}
    welfare, attainable = [one.welfare_cents for one in lines], [one.first_best_cents for one in lines]
    lot = [one.random_cents for one in lines]

    def total(numbers: Sequence[float]) -> "Array":
        return _sums(lines, card, list(numbers))[0]

    quality, rescaled, extraction, matches = sample.ratios(
        [
            (total(welfare), total(attainable)),
            (total(welfare) - total(lot), total(attainable) - total(lot)),
            (total([one.own_cents for one in lines]), total(attainable)),
            (total([one.matched for one in lines]), total([one.matchable for one in lines])),
        ]
    )
    return {
        **_flat("allocation_quality", quality),
        **_flat("allocation_quality_rescaled", rescaled),
        **_flat("extraction", extraction),
        **_flat("match_accuracy", matches),
    }


def _mean_of_roles(
    card: Card,
    lines: Sequence[Line],
    roles: Sequence[Role],
    by_role: dict[Role, dict[str, Any]],
    sample: Resamples,
) -> dict[str, Any]:
    """Share and deal rate as the mean of both roles, with the interval of that mean."""
    parts: dict[str, list[tuple[Array, Array]]] = {"share": [], "deal_rate": []}
    for role in roles:
        own = [one for one in lines if one.role is role]
        parts["share"].append(_sums(own, card, [one.share for one in own]))
        parts["deal_rate"].append(_sums(own, card, [float(one.deal) for one in own]))
    messages = sum(figures_["messages"] for figures_ in by_role.values())
    violations = sum(figures_["violations"] for figures_ in by_role.values())
    return {
        **{key: value for name, pairs in parts.items() for key, value in _flat(name, sample.mean_ratio(pairs)).items()},
        "messages": messages,
        "violations": violations,
        "constraint_adherence": 1 - violations / messages if messages else None,
    }


def _sums(lines: Sequence[Line], card: Card, numbers: Sequence[float | None]) -> "tuple[Array, Array]":
    """Sum and count of what is defined, by listing."""
    import numpy as np

    kept = [(one.listing, number) for one, number in zip(lines, numbers, strict=True) if number is not None]
    place = np.array([listing for listing, _number in kept], dtype=int)
    values = np.array([number for _listing, number in kept], dtype=float)
    return (
        np.bincount(place, weights=values, minlength=card.listings),
        np.bincount(place, minlength=card.listings).astype(float),
    )


def _flat(name: str, estimate: Estimate) -> dict[str, float | None]:
    return {name: estimate.value, f"{name}_low": estimate.low, f"{name}_high": estimate.high}
