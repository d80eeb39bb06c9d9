"""Every agent that can be seated, by slug.

Here: the specs and the look-up. Not here: what an agent does (`scripted`, `learned`), or which
agent a market suggests. Trained agents are those of the published checkpoints, found anew when a
card comes or changes; no weights are read here. Pure: no Django.

Contract: slugs never change meaning; a changed strategy gets a new version. The order is the one
in which a person is offered opponents.
"""

import difflib
from functools import partial

from agents.base import AgentSpec, Kind
from agents.learned import published
from agents.scripted import bargainers, buyers, catalogues, ladders, reference
from markets.engine.protocol import Role
from markets.engine.scenarios import Family

BOTH_ROLES = (Role.SELLER, Role.BUYER)
EVERY_FAMILY = (Family.BILATERAL, Family.MULTI_BUYER, Family.CATALOGUE)


class UnknownAgent(LookupError):
    """No agent has this slug; the message is a sentence that names similar ones."""

    def __init__(self, slug: str) -> None:
        slugs = [spec.slug for spec in all_specs()]
        close = difflib.get_close_matches(slug, slugs, n=3, cutoff=0.4)
        hint = f"Did you mean {' or '.join(map(repr, close))}?" if close else f"The agents are: {', '.join(slugs)}."
        super().__init__(f"There is no agent {slug!r}. {hint}")
        self.slug = slug


_BARGAINERS = (
    AgentSpec(
        slug="linear",
        title="Steady",
        summary="Gives way by the same amount at every step until it is near its limit.",
        kind=Kind.SCRIPTED,
        roles=BOTH_ROLES,
        families=EVERY_FAMILY,
        build=partial(bargainers.TimeDependent, beta=(1.0, 1.0)),
        source="Time-dependent tactic with beta = 1 (Faratin, Sierra and Jennings 1998).",
    ),
    AgentSpec(
        slug="conceder",
        title="Conceder",
        summary="Gives a lot away early and little afterwards.",
        kind=Kind.SCRIPTED,
        roles=BOTH_ROLES,
        families=EVERY_FAMILY,
        build=partial(bargainers.TimeDependent, beta=(2.5, 6.0)),
        source="Time-dependent tactic with beta above 1 (Faratin, Sierra and Jennings 1998).",
    ),
    AgentSpec(
        slug="boulware",
        title="Boulware",
        summary="Holds out, then gives way at the last moment.",
        kind=Kind.SCRIPTED,
        roles=BOTH_ROLES,
        families=EVERY_FAMILY,
        build=partial(bargainers.TimeDependent, beta=(0.1, 0.4)),
        source="Time-dependent tactic with beta below 1 (Faratin, Sierra and Jennings 1998).",
    ),
    AgentSpec(
        slug="tit-for-tat",
        title="Tit for tat",
        summary="Moves towards you as far as you move towards it, and waits when you wait.",
        kind=Kind.SCRIPTED,
        roles=BOTH_ROLES,
        families=EVERY_FAMILY,
        build=bargainers.TitForTat,
        source="Absolute tit-for-tat (Faratin, Sierra and Jennings 1998), with a first step.",
    ),
    AgentSpec(
        slug="split-the-difference",
        title="Split the difference",
        summary="Proposes the middle between both first offers and stays there.",
        kind=Kind.SCRIPTED,
        roles=BOTH_ROLES,
        families=EVERY_FAMILY,
        build=bargainers.SplitTheDifference,
        source="The k = 1/2 rule (Chatterjee and Samuelson 1983), applied to the first offers.",
    ),
    AgentSpec(
        slug="satisficer",
        title="Satisficer",
        summary="Takes the first offer that is good enough, and slowly learns to want less.",
        kind=Kind.SCRIPTED,
        roles=BOTH_ROLES,
        families=EVERY_FAMILY,
        build=bargainers.Satisficer,
        source="Satisficing with a falling aspiration (Simon 1956).",
    ),
    AgentSpec(
        slug="hardliner",
        title="Hardliner",
        summary="Names one price and never moves from it.",
        kind=Kind.SCRIPTED,
        roles=BOTH_ROLES,
        families=EVERY_FAMILY,
        build=bargainers.Hardliner,
        source="Baseline of the automated negotiating agents competitions.",
    ),
    AgentSpec(
        slug="zi-c",
        title="Zero intelligence",
        summary="Names random prices, but never one that would cost it money.",
        kind=Kind.SCRIPTED,
        roles=BOTH_ROLES,
        families=EVERY_FAMILY,
        build=bargainers.ZiC,
        source="ZI-C traders (Gode and Sunder 1993).",
    ),
    AgentSpec(
        slug="zi-u",
        title="Zero intelligence, unconstrained",
        summary="Names random prices and does not mind losing money: a control, not an opponent.",
        kind=Kind.SCRIPTED,
        roles=BOTH_ROLES,
        families=EVERY_FAMILY,
        build=bargainers.ZiU,
        source="ZI-U traders (Gode and Sunder 1993).",
    ),
)

_BUYERS = (
    AgentSpec(
        slug="impatient",
        title="Impatient buyer",
        summary="Buys at any price it can afford, and may walk away each time it cannot.",
        kind=Kind.SCRIPTED,
        roles=(Role.BUYER,),
        families=EVERY_FAMILY,
        build=buyers.Impatient,
        source="Our own: a threshold buyer that leaves with a hidden hazard at each refusal.",
    ),
    AgentSpec(
        slug="threshold",
        title="Threshold buyer",
        summary="Says yes to any price within its value and no to all others, without haggling.",
        kind=Kind.SCRIPTED,
        roles=(Role.BUYER,),
        families=EVERY_FAMILY,
        build=buyers.Threshold,
        source="The myopic buyer of sequential posted prices (Chawla et al. 2010).",
    ),
    AgentSpec(
        slug="logit",
        title="Hesitant buyer",
        summary="Says yes the more surely the better the price is for it, without haggling.",
        kind=Kind.SCRIPTED,
        roles=(Role.BUYER,),
        families=EVERY_FAMILY,
        build=buyers.Logit,
        source="Logit choice (McFadden 1974), cut off at the buyer's value.",
    ),
)

_LADDERS = (
    AgentSpec(
        slug="optimal-ladder",
        title="Optimal ladder",
        summary="Knows the odds: asks along the best falling prices there are for this market.",
        kind=Kind.SCRIPTED,
        roles=(Role.SELLER,),
        families=(Family.BILATERAL, Family.MULTI_BUYER),
        build=ladders.OptimalLadder,
        source="Sequential posted prices with repeated visits (after Chawla et al. 2010), computed here.",
    ),
    AgentSpec(
        slug="falling-ladder",
        title="Falling prices",
        summary="Starts high and lowers the price in equal steps, asking everybody in turn.",
        kind=Kind.SCRIPTED,
        roles=(Role.SELLER,),
        families=(Family.BILATERAL, Family.MULTI_BUYER),
        build=ladders.FallingLadder,
        source="A Dutch sale in equal steps, round-robin.",
    ),
    AgentSpec(
        slug="one-pass",
        title="One pass",
        summary="Makes each buyer one well-chosen offer and then takes the best bid, if any.",
        kind=Kind.SCRIPTED,
        roles=(Role.SELLER,),
        families=(Family.MULTI_BUYER,),
        build=ladders.OnePass,
        source="Sequential posted prices (Chawla et al. 2010).",
    ),
    AgentSpec(
        slug="explore-then-commit",
        title="Explore, then commit",
        summary="Tries every buyer once, then stays with the one that answered best.",
        kind=Kind.SCRIPTED,
        roles=(Role.SELLER,),
        families=(Family.MULTI_BUYER,),
        build=ladders.ExploreThenCommit,
        source="A baseline of bandit problems: try every arm once, then commit.",
    ),
    AgentSpec(
        slug="chase-highest-bid",
        title="Chase the highest bid",
        summary="Always turns to whoever bids most right now.",
        kind=Kind.SCRIPTED,
        roles=(Role.SELLER,),
        families=(Family.MULTI_BUYER,),
        build=ladders.ChaseHighestBid,
        source="The fixation of untrained models in arXiv 2607.05863, as a rule.",
    ),
    AgentSpec(
        slug="all-on-one",
        title="All on one",
        summary="Picks one buyer and forgets about the others.",
        kind=Kind.SCRIPTED,
        roles=(Role.SELLER,),
        families=(Family.MULTI_BUYER,),
        build=ladders.AllOnOne,
        source="The best ladder for one buyer; the baseline that ignores competition.",
    ),
)

_CATALOGUE_SELLERS = (
    AgentSpec(
        slug="greedy",
        title="Greedy seller",
        summary="Goes after the pair of buyer and product with the most to gain, then the next.",
        kind=Kind.SCRIPTED,
        roles=(Role.SELLER,),
        families=(Family.CATALOGUE,),
        build=catalogues.Greedy,
        source="Greedy matching as a Dutch sale over pairs; the baseline of arXiv 2609.33289 as a negotiator.",
    ),
    AgentSpec(
        slug="serial",
        title="Serial seller",
        summary="Serves one buyer after the other with what that buyer likes best.",
        kind=Kind.SCRIPTED,
        roles=(Role.SELLER,),
        families=(Family.CATALOGUE,),
        build=catalogues.Serial,
        source="Serial dictatorship with prices.",
    ),
    AgentSpec(
        slug="random-match",
        title="Random matching",
        summary="Decides by lot who should get what, and bargains for just that.",
        kind=Kind.SCRIPTED,
        roles=(Role.SELLER,),
        families=(Family.CATALOGUE,),
        build=catalogues.RandomMatch,
        source="Random matching with prices.",
    ),
)

_REFERENCES = (
    AgentSpec(
        slug="oracle",
        title="Oracle",
        summary="Knows everybody's limits: a bound to measure against, not an opponent.",
        kind=Kind.REFERENCE,
        roles=BOTH_ROLES,
        families=EVERY_FAMILY,
        build=reference.Oracle,
        source="Full information.",
    ),
)

_RULED: tuple[AgentSpec, ...] = (*_BARGAINERS, *_BUYERS, *_LADDERS, *_CATALOGUE_SELLERS)
_BY_SLUG = {spec.slug: spec for spec in (*_RULED, *_REFERENCES)}


def all_specs() -> tuple[AgentSpec, ...]:
    """Every agent, in the order of a list for people."""
    return (*_RULED, *_learned(), *_REFERENCES)


def _learned() -> tuple[AgentSpec, ...]:
    """Trained agents; a slug that a rule has is the rule's."""
    return tuple(spec for spec in published.available() if spec.slug not in _BY_SLUG)


def get(slug: str) -> AgentSpec:
    """The agent with this slug. Raises `UnknownAgent`."""
    if slug in _BY_SLUG:
        return _BY_SLUG[slug]
    for spec in _learned():
        if spec.slug == slug:
            return spec
    raise UnknownAgent(slug)
