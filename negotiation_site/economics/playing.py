"""Games played through the engine for the proof, added up.

Here: a `Job` (which scenarios, who sits where, how many), playing a stretch of it, and the sums that
shares and rates are taken from; on several processes if asked. Not here: what figures are wanted.

Contract: every game is `agents.play.play` on a scenario, so the rules, the secrecy gate and the agents
are those of a room; sums are over games in their order, whatever the number of processes.
"""

import multiprocessing
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, fields
from functools import partial

from agents import registry
from agents.base import AgentSpec
from agents.play import Seat, play, seat
from markets.engine import metrics, rewards
from markets.engine.protocol import SELLER, OfferMade, Party, Role, buyer_party
from markets.engine.scenarios import ProductFacts, Recipe, Scenario, sample
from markets.engine.seeds import derive_seed
from negotiation_site.economics import sellers

STRETCH = 500
"""Games that one process plays at a time."""

Draw = Callable[[int], Scenario]
"""Scenario number k; can be sent to another process."""


@dataclass(frozen=True)
class Job:
    """Games to be played."""

    draw: Draw
    seller: str
    """Slug of the registry, or of `sellers`."""
    games: int
    buyers: str = "threshold"


@dataclass(frozen=True)
class Sums:
    """What games came to; every field adds up."""

    games: int = 0
    gainful: int = 0
    """Games in which trade could gain."""
    deals: int = 0
    """Games with a deal."""
    gainful_deals: int = 0
    seller_cents: int = 0
    buyer_cents: int = 0
    welfare_cents: int = 0
    first_best_cents: int = 0
    deal_shares: float = 0.0
    """Sum over deals of the seller's surplus / what it could share (`seller_joint_cents`)."""
    pair_shares: float = 0.0
    """Sum over deals of the seller's surplus / the joint surplus of the pair that traded."""
    priced_deals: int = 0
    """Deals with a positive joint surplus, which those shares are over."""
    openings: float = 0.0
    """Sum of first ask / cost over the games with an ask and a cost in which trade could gain."""
    opened: int = 0
    rewards: float = 0.0
    """Sum of `rlvr_seller_multi` where there is one product."""

    def __add__(self, other: "Sums") -> "Sums":
        return Sums(*(getattr(self, field.name) + getattr(other, field.name) for field in fields(self)))

    @property
    def seller_share(self) -> float | None:
        """Seller's surplus / first best, sum over sum."""
        return over(self.seller_cents, self.first_best_cents)

    @property
    def buyer_share(self) -> float | None:
        """Buyers' surplus / first best."""
        return over(self.buyer_cents, self.first_best_cents)

    @property
    def welfare_share(self) -> float | None:
        """Welfare / first best."""
        return over(self.welfare_cents, self.first_best_cents)

    @property
    def deal_rate(self) -> float | None:
        """Games with a deal / games."""
        return over(self.deals, self.games)


def over(part: float, whole: float) -> float | None:
    """A share or rate; None where it is of nothing."""
    return part / whole if whole > 0 else None


# Scenarios -------------------------------------------------------------------------------------


def of_recipe(recipe: Recipe, pool: tuple[ProductFacts, ...] = (), *, seed: int = 1) -> Draw:
    """Scenarios of a recipe, numbered as `agents.simulation` numbers them."""
    return partial(_sampled, recipe, pool, seed)


def _sampled(recipe: Recipe, pool: tuple[ProductFacts, ...], seed: int, k: int) -> Scenario:
    return sample(recipe, pool, derive_seed("episode", seed, k))


# Playing ---------------------------------------------------------------------------------------


def play_all(jobs: Mapping[str, Job], *, workers: int) -> dict[str, Sums]:
    """The sums of every job, played on `workers` processes."""
    stretches = [
        (key, job, start, min(start + STRETCH, job.games))
        for key, job in jobs.items()
        for start in range(0, job.games, STRETCH)
    ]
    totals = dict.fromkeys(jobs, Sums())
    for key, sums in _on(workers, stretches):
        totals[key] = totals[key] + sums
    return totals


def _on(workers: int, stretches: list[tuple[str, Job, int, int]]) -> Iterator[tuple[str, Sums]]:
    if workers == 1:
        yield from map(_stretch, stretches)
        return
    context = multiprocessing.get_context("fork" if sys.platform == "linux" else "spawn")
    with ProcessPoolExecutor(max_workers=workers, mp_context=context) as pool:
        yield from pool.map(_stretch, stretches)


def _stretch(stretch: tuple[str, Job, int, int]) -> tuple[str, Sums]:
    key, job, start, stop = stretch
    return key, play_games(job, range(start, stop))


def play_games(job: Job, numbers: Iterable[int]) -> Sums:
    """Play these games of a job, here."""
    seller, buyer = seat(_seller(job.seller)), seat(registry.get(job.buyers))
    total = Sums()
    for k in numbers:
        scenario = job.draw(k)
        seats: dict[Party, Seat] = {SELLER: seller}
        seats |= {buyer_party(number): buyer for number in range(1, scenario.buyers + 1)}
        total = total + game_sums(scenario, play(scenario, seats).log)
    return total


def _seller(slug: str) -> AgentSpec:
    return sellers.BY_SLUG.get(slug) or registry.get(slug)


def game_sums(scenario: Scenario, log: rewards.Log) -> Sums:
    """One game as sums."""
    outcome = metrics.outcome(scenario, log)
    sold = bool(outcome.deals)
    gainful = outcome.first_best_cents > 0
    priced = [deal for deal in outcome.deals if deal.seller_joint_cents > 0 and deal.pair_joint_cents > 0]
    cost = scenario.seller_values_cents[0]
    ask = next(
        (
            entry.event.price_cents
            for entry in log
            if isinstance(entry.event, OfferMade) and entry.event.by is Role.SELLER
        ),
        None,
    )
    opened = gainful and ask is not None and cost > 0
    return Sums(
        games=1,
        gainful=int(gainful),
        deals=int(sold),
        gainful_deals=int(sold and gainful),
        seller_cents=outcome.seller_surplus_cents,
        buyer_cents=outcome.buyer_surplus_cents,
        welfare_cents=outcome.welfare_cents,
        first_best_cents=outcome.first_best_cents,
        deal_shares=sum(deal.seller_surplus_cents / deal.seller_joint_cents for deal in priced),
        pair_shares=sum(deal.seller_surplus_cents / deal.pair_joint_cents for deal in priced),
        priced_deals=len(priced),
        openings=ask / cost if opened and ask is not None else 0.0,
        opened=int(opened),
        rewards=rewards.rlvr_seller_multi(scenario, log) if len(scenario.products) == 1 else 0.0,
    )
