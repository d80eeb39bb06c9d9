"""What a study can be expected to tell: its conditions played by agents in the participants' seats.

Here: simulated participants of every condition, with the spread of what they keep, and from that the width of
intervals and the smallest difference that a number of participants would show. Nothing is stored, and no draw of
the study is used: the draws are the plan's in kind, not in number.

A participant's figure is the mean over rounds of the own share of what there was to share (no deal is 0; a round
without anything to share counts in no mean). Widths are those of the normal approximation for independent
participants: half = 1.96 · s / √n; the smallest difference between two conditions that n participants in each find
with a probability of 80 % is (1.96 + 0.84) · √((s₁² + s₂²) / n). All this is ours and rests on one assumption that
no formula can check: that people vary as the chosen agent's games do. Agents that ask a language model are not
simulated.
"""

import math
import statistics
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import combinations

from django.utils.translation import gettext as _

from agents import play as games
from agents import registry, simulation
from agents.base import AgentSpec, Kind
from agents.registry import UnknownAgent
from agents.simulation import SeatError
from markets import episodes, services
from markets.engine import metrics, scenarios
from markets.engine.protocol import Role
from markets.engine.scenarios import decode_recipe
from markets.engine.seeds import derive_seed
from negotiation_site.studies import play
from negotiation_site.studies.design import Condition, Design

MOST_GAMES = 3_000
"""Games that one look may take: a second or two."""
MOST_PEOPLE = 100
FEWEST_PEOPLE = 10
NORMAL_95 = 1.96
NORMAL_80 = 0.84


class PowerError(Exception):
    """Something that cannot be simulated; the sentence is for the author."""


@dataclass(frozen=True)
class Expected:
    """One condition, as its simulated participants came out."""

    condition: str
    people: int
    """How many simulated participants have a figure."""
    mean_share: float
    sd_share: float
    """Between participants."""
    deal_rate: float


@dataclass(frozen=True)
class Contrast:
    """Two conditions with n participants in each."""

    one: str
    other: str
    difference: float
    """Of the means, as simulated."""
    smallest: float
    """Difference that n participants in each would find with a probability of 80 %."""


def half_width(expected: Expected, *, n: int) -> float:
    """Half the 95 % interval of a condition's mean with n participants."""
    return NORMAL_95 * expected.sd_share / math.sqrt(n)


def contrasts(found: Iterable[Expected], *, n: int) -> tuple[Contrast, ...]:
    """Every pair of conditions."""
    return tuple(
        Contrast(
            one=one.condition,
            other=other.condition,
            difference=one.mean_share - other.mean_share,
            smallest=(NORMAL_95 + NORMAL_80) * math.sqrt((one.sd_share**2 + other.sd_share**2) / n),
        )
        for one, other in combinations(found, 2)
    )


def expect(design: Design, *, stand_in: str) -> tuple[Expected, ...]:
    """Simulate every condition with `stand_in` in the participants' seats. Raises `PowerError`."""
    cells = sum(len(condition.side.roles) for condition in design.conditions)
    people = min(MOST_PEOPLE, MOST_GAMES // max(1, cells * design.rounds))
    if people < FEWEST_PEOPLE:
        raise PowerError(_("This study has too many conditions and rounds to be simulated here."))
    spec = _simulated(stand_in)
    if spec.kind is Kind.REFERENCE:  # A condition's own opponent may know the values; a participant does not.
        raise PowerError(
            _("%(agent)s knows what no participant knows; choose an agent that plays by the rules.")
            % {"agent": spec.title}
        )
    return tuple(_condition(design, condition, spec, people=people) for condition in design.conditions)


def _simulated(slug: str) -> AgentSpec:
    try:
        spec = registry.get_open(slug)
    except UnknownAgent as error:
        raise PowerError(_("There is no agent “%(agent)s”.") % {"agent": slug}) from error
    if spec.asks_models:
        raise PowerError(_("%(agent)s asks a language model and is not simulated here.") % {"agent": spec.title})
    return spec


def _condition(design: Design, condition: Condition, stand_in: AgentSpec, *, people: int) -> Expected:
    shares: list[float] = []
    deals = rounds = 0
    for role in condition.side.roles:
        market = play.market_of(condition)
        recipe, pool = decode_recipe(market.recipe), services.market_pool(market)
        opposite = play.agents_for(condition, market, host=role)
        specs = {party: _simulated(name.slug) for party, name in opposite.items()} | {play.party_of(role): stand_in}
        seller, buyers = specs["seller"], [specs[f"buyer-{number}"] for number in range(1, recipe.buyers + 1)]
        try:
            seats = simulation.seats_for(family=recipe.family, buyers_n=recipe.buyers, seller=seller, buyers=buyers)
        except SeatError as error:
            raise PowerError(str(error)) from error
        for person in range(people):
            own = []
            for number in range(design.rounds):
                seed = derive_seed("power", design.scenarios.seed, role.value, person, number)
                scenario = scenarios.sample(recipe, pool, seed)
                result = metrics.outcome(scenario, games.play(scenario, seats).log)
                _gain, share = episodes.seat_result(scenario, result, play.party_of(role))
                rounds += 1
                deals += _has_deal(result, role)
                if share is not None:
                    own.append(share)
            if own:
                shares.append(statistics.fmean(own))
    if len(shares) < FEWEST_PEOPLE:
        raise PowerError(_("In “%(condition)s” there is hardly ever anything to share.") % {"condition": condition.key})
    return Expected(
        condition=condition.key,
        people=len(shares),
        mean_share=statistics.fmean(shares),
        sd_share=statistics.stdev(shares),
        deal_rate=deals / rounds,
    )


def _has_deal(result: metrics.Outcome, role: Role) -> bool:
    return any(role is Role.SELLER or deal.buyer == 1 for deal in result.deals)
