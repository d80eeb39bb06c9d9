"""How often a language model's answers can be used, what they cost and how long they take, over whole games.

Here: playing an agent against a scripted one on every seat that it may have and listening to its calls,
and the figures. Not here: keeping calls (`model_log`), commands, pages. Pure but for the seconds that
back ends report.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from math import sqrt
from typing import Any

from agents import calls
from agents.base import AgentSpec
from agents.calls import Call
from agents.simulation import SeatError, simulate
from markets.engine.protocol import Role
from markets.engine.scenarios import ProductFacts, Recipe

Z95 = 1.959964


def interval(successes: int, trials: int) -> tuple[float, float] | None:
    """Wilson's 95 % interval of a rate; None where nothing was tried."""
    if not trials:
        return None
    rate, spread = successes / trials, Z95**2 / trials
    middle = (rate + spread / 2) / (1 + spread)
    half = Z95 * sqrt(rate * (1 - rate) / trials + spread / (4 * trials)) / (1 + spread)
    return max(0.0, middle - half), min(1.0, middle + half)


def play(
    spec: AgentSpec,
    opponent: AgentSpec,
    *,
    recipe: Recipe,
    pool: Sequence[ProductFacts],
    games: int,
    seed: int,
    roles: Sequence[Role] = (Role.SELLER, Role.BUYER),
    together: int = 1,
) -> Iterator[tuple[Role, list[Call]]]:
    """Play `games` games in turn on the seats that `spec` may have, the others taken by `opponent`, `together` at a time;
    gives of each game, in order, the role that was played and every call. Raises `SeatError`."""
    seats = [role for role in roles if spec.can_play(role=role, family=recipe.family)]
    if not seats:
        raise SeatError(f"{spec.slug!r} does not play {' or '.join(roles)} in {recipe.family.value} markets.")

    def one(game: int) -> tuple[Role, list[Call]]:
        role = seats[game % len(seats)]
        seller, buyer = (spec, opponent) if role is Role.SELLER else (opponent, spec)
        made: list[Call] = []
        with calls.listening(calls.Listener(made.append)):
            list(simulate(recipe=recipe, pool=pool, seller=seller, buyers=(buyer,), episodes=1, seed=seed + game))
        return role, made

    with ThreadPoolExecutor(together) as workers:
        try:
            yield from workers.map(one, range(games))
        finally:
            workers.shutdown(cancel_futures=True)


def figures(made: Sequence[Call]) -> dict[str, Any]:
    """What some calls came to."""
    answered = [call for call in made if call.reply is not None]
    used = sum(call.used for call in answered)
    between = interval(used, len(answered))
    replies = [call.reply for call in answered if call.reply is not None]
    costs = [reply.cost_micros for reply in replies if reply.cost_micros is not None]
    return {
        "calls": len(made),
        "answered": len(answered),
        "used": used,
        "valid_rate": used / len(answered) if answered else None,
        "valid_rate_low": between[0] if between else None,
        "valid_rate_high": between[1] if between else None,
        "by_purpose": dict(sorted(Counter(call.purpose for call in made).items())),
        "by_outcome": dict(sorted(Counter(call.outcome for call in made).items())),
        "input_tokens": sum(reply.input_tokens or 0 for reply in replies),
        "output_tokens": sum(reply.output_tokens or 0 for reply in replies),
        "cost_micros": sum(costs) if costs else None,
        "first_ms": _spread([reply.first_ms for reply in replies if reply.first_ms is not None]),
        "total_ms": _spread([reply.total_ms for reply in replies]),
    }


def _spread(times: Sequence[int]) -> dict[str, int | None]:
    ordered = sorted(times)
    at = {"p50": 0.5, "p95": 0.95}
    return {name: ordered[int(share * (len(ordered) - 1))] if ordered else None for name, share in at.items()}
