"""Every agent that can be seated, by slug.

Here: the specs and the look-up, and which opponents training must refuse. Not here: what an agent
does (`scripted`, `learned`, `language_models`), or which agent a market suggests. Trained agents are
those of the published checkpoints, found anew when a card comes or changes; no weights are read
here. Agents that people entered are asked of whoever keeps them (`keep_entered`). Pure: no Django.

Contract: slugs never change meaning; a changed strategy gets a new version. The order is the one
in which a person is offered opponents: bargainers for either side, buyers, sellers, trained agents,
then variants, agents of chance and yardsticks, references last. An agent with a way of talking is
`AGENT+PERSONA` (`scripted.personas`): it can be looked up and seated, and is in no list. Entered
agents are in a list of their own, `entered_specs`, and have slugs that nothing else may have; only a
look-up of such a slug asks for them.
"""

import difflib
import hashlib
from collections.abc import Callable, Iterable
from functools import partial

import msgspec

from agents import entered, language_models, prompts
from agents.base import AgentSpec, Kind
from agents.learned import published
from agents.scripted import (
    bargainers,
    buyers,
    catalogues,
    concessions,
    equilibria,
    explorers,
    fixed_sequence,
    gullible,
    ladders,
    reference,
)
from agents.scripted.personas import MARK, Persona, UnknownPersona, split_slug, with_persona
from markets.engine import splits
from markets.engine.protocol import Role
from markets.engine.scenarios import Family

HELD_OUT_BUYERS = splits.BUYER_TYPES
"""Buyers that no training run meets (`markets.engine.splits`, where they were fixed)."""
HELD_OUT_PERSONAS = splits.PERSONAS
"""Ways of talking that no training run meets."""
NEGATIVE_CONTROLS = ("zi-u", "gullible")
"""Agents that break their own reservation value on purpose, the second one only when told to; every other one
keeps to it."""

BOTH_ROLES = (Role.SELLER, Role.BUYER)
EVERY_FAMILY = (Family.BILATERAL, Family.MULTI_BUYER, Family.CATALOGUE)


class UnknownAgent(LookupError):
    """No agent has this slug; the message is a sentence that names similar ones."""

    def __init__(self, slug: str, sentence: str = "") -> None:
        if sentence:
            super().__init__(sentence)
            self.slug = slug
            return
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
        slug="anchoring",
        title="Anchored",
        summary="Lets your first offer colour what it thinks the price should be.",
        kind=Kind.SCRIPTED,
        roles=BOTH_ROLES,
        families=EVERY_FAMILY,
        build=concessions.Anchored,
        source="Anchoring and adjustment (Tversky and Kahneman 1974; Galinsky and Mussweiler 2001), as a rule.",
    ),
    AgentSpec(
        slug="micro",
        title="One for one",
        summary="Names its next best price only after you have named a new one.",
        kind=Kind.SCRIPTED,
        roles=BOTH_ROLES,
        families=EVERY_FAMILY,
        build=concessions.Micro,
        source="MiCRO (de Jonge 2022), on a grid of prices.",
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
    AgentSpec(
        slug="quoting",
        title="Quoting buyer",
        summary="Tells you what it would pay at most, truthfully, in a bid that binds it.",
        kind=Kind.SCRIPTED,
        roles=(Role.BUYER,),
        families=EVERY_FAMILY,
        build=buyers.Quoting,
        source="A truthful bidder; ours as a bargainer.",
    ),
    AgentSpec(
        slug="shading",
        title="Shading buyer",
        summary="Acts as if the thing were worth less to it than it is.",
        kind=Kind.SCRIPTED,
        roles=(Role.BUYER,),
        families=EVERY_FAMILY,
        build=buyers.Shading,
        source="Bid shading as in first-price auctions; the form is ours.",
    ),
    AgentSpec(
        slug="strategic",
        title="Strategic buyer",
        summary="Waits for a better price as long as waiting seems to pay.",
        kind=Kind.SCRIPTED,
        roles=(Role.BUYER,),
        families=EVERY_FAMILY,
        build=buyers.Strategic,
        source="Buyers who foresee prices (Coase 1972; Besanko and Winston 1990); the forecast is ours.",
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
        slug="equal-steps",
        title="Equal steps",
        summary="Lowers the price in equal steps that end short of giving it away.",
        kind=Kind.SCRIPTED,
        roles=(Role.SELLER,),
        families=(Family.BILATERAL, Family.MULTI_BUYER),
        build=ladders.EqualSteps,
        source="Equally spaced falling prices, best for one uniform threshold buyer; also in arXiv 2604.16472.",
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
    AgentSpec(
        slug="random-buyer-ladder",
        title="Random buyer",
        summary="Lowers the price in equal steps and asks whoever the dice say.",
        kind=Kind.SCRIPTED,
        roles=(Role.SELLER,),
        families=(Family.MULTI_BUYER,),
        build=ladders.RandomBuyerLadder,
        source="The linear ladder without an order, a baseline of ours.",
    ),
    AgentSpec(
        slug="epsilon-greedy",
        title="Epsilon-greedy",
        summary="Stays with the most promising buyer, and now and then tries another.",
        kind=Kind.SCRIPTED,
        roles=(Role.SELLER,),
        families=(Family.MULTI_BUYER,),
        build=explorers.EpsilonGreedy,
        source="Epsilon-greedy bandit with decay (Auer, Cesa-Bianchi and Fischer 2002).",
    ),
    AgentSpec(
        slug="ucb",
        title="Optimist",
        summary="Asks the buyer who could still be the best, promising or little known.",
        kind=Kind.SCRIPTED,
        roles=(Role.SELLER,),
        families=(Family.MULTI_BUYER,),
        build=explorers.UpperConfidence,
        source="UCB1 (Auer, Cesa-Bianchi and Fischer 2002) over buyers.",
    ),
    AgentSpec(
        slug="successive-elimination",
        title="Elimination",
        summary="Drops buyers who cannot be the best any more and splits the rest.",
        kind=Kind.SCRIPTED,
        roles=(Role.SELLER,),
        families=(Family.MULTI_BUYER,),
        build=explorers.SuccessiveElimination,
        source="Successive elimination (Even-Dar, Mannor and Mansour 2006) with binding asks.",
    ),
    AgentSpec(
        slug="play-off",
        title="Play-off",
        summary="Plays buyers off against one another: quotes the best bid and a bit to the others.",
        kind=Kind.SCRIPTED,
        roles=(Role.SELLER,),
        families=(Family.MULTI_BUYER,),
        build=explorers.PlayOff,
        source="An English auction by correspondence.",
    ),
    AgentSpec(
        slug="pandora",
        title="Pandora",
        summary="Tries buyers one by one and stops once trying another is not worth a turn.",
        kind=Kind.SCRIPTED,
        roles=(Role.SELLER,),
        families=(Family.MULTI_BUYER,),
        build=explorers.Pandora,
        source="Optimal search (Weitzman 1979) with binding asks.",
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
    AgentSpec(
        slug="re-solved-assignment",
        title="Replanner",
        summary="Works out anew at each turn who should get what, and asks for that.",
        kind=Kind.SCRIPTED,
        roles=(Role.SELLER,),
        families=(Family.CATALOGUE,),
        build=catalogues.ReSolvedAssignment,
        source="Assignment on posterior means (Shapley and Shubik 1971), re-solved; prices of a ladder.",
    ),
    AgentSpec(
        slug="rising-prices",
        title="Rising prices",
        summary="Raises the price of what too many want until nobody is left over.",
        kind=Kind.SCRIPTED,
        roles=(Role.SELLER,),
        families=(Family.CATALOGUE,),
        build=catalogues.RisingPrices,
        source="Approximate auction of Demange, Gale and Sotomayor (1986), by correspondence.",
    ),
)

_MORE_BARGAINERS = (
    AgentSpec(
        slug="exponential",
        title="Exponential",
        summary="Gives way along an exponential curve: almost nothing, then more and more.",
        kind=Kind.SCRIPTED,
        roles=BOTH_ROLES,
        families=EVERY_FAMILY,
        build=concessions.Exponential,
        source="Exponential time-dependent tactic (Faratin, Sierra and Jennings 1998).",
    ),
    AgentSpec(
        slug="resource-dependent",
        title="Resource watcher",
        summary="Gives way as the messages left for each open conversation run short.",
        kind=Kind.SCRIPTED,
        roles=BOTH_ROLES,
        families=EVERY_FAMILY,
        build=concessions.ResourceDependent,
        source="Resource-dependent tactic (Faratin, Sierra and Jennings 1998).",
    ),
    AgentSpec(
        slug="aspiration",
        title="Aspiration",
        summary="Wants a share of the best conceivable deal that falls with time, in one of three shapes.",
        kind=Kind.SCRIPTED,
        roles=BOTH_ROLES,
        families=EVERY_FAMILY,
        build=concessions.Aspiration,
        source="The aspiration curves of negmas (exponents 4, 1 and 1/4), rewritten.",
    ),
    AgentSpec(
        slug="relative-tit-for-tat",
        title="Relative tit for tat",
        summary="Gives way in the same proportion as you do.",
        kind=Kind.SCRIPTED,
        roles=BOTH_ROLES,
        families=EVERY_FAMILY,
        build=concessions.RelativeTitForTat,
        source="Relative tit-for-tat (Faratin, Sierra and Jennings 1998), with a first step.",
    ),
    AgentSpec(
        slug="averaged-tit-for-tat",
        title="Averaged tit for tat",
        summary="Answers the average of your last moves, so a single large one counts less.",
        kind=Kind.SCRIPTED,
        roles=BOTH_ROLES,
        families=EVERY_FAMILY,
        build=concessions.AveragedTitForTat,
        source="Averaged tit-for-tat (Faratin, Sierra and Jennings 1998), as a geometric mean.",
    ),
    AgentSpec(
        slug="random-tit-for-tat",
        title="Erratic tit for tat",
        summary="Moves as far as you do, give or take a little chance.",
        kind=Kind.SCRIPTED,
        roles=BOTH_ROLES,
        families=EVERY_FAMILY,
        build=concessions.RandomTitForTat,
        source="Random absolute tit-for-tat (Faratin, Sierra and Jennings 1998), with a first step.",
    ),
    AgentSpec(
        slug="late-hardliner",
        title="Late hardliner",
        summary="Never moves from its price, but takes what it can get at the very end.",
        kind=Kind.SCRIPTED,
        roles=BOTH_ROLES,
        families=EVERY_FAMILY,
        build=concessions.LateHardliner,
        source="Baseline of the automated negotiating agents competitions, accepting at the deadline.",
    ),
    AgentSpec(
        slug="zeuthen",
        title="Risk weigher",
        summary="Gives way when it has more to lose from a breakdown than you, just enough.",
        kind=Kind.SCRIPTED,
        roles=BOTH_ROLES,
        families=EVERY_FAMILY,
        build=equilibria.Zeuthen,
        source="Zeuthen 1930; monotonic concession protocol (Rosenschein and Zlotkin 1994).",
    ),
    AgentSpec(
        slug="rubinstein",
        title="Patient splitter",
        summary="Proposes the split that impatience alone would dictate, and stays with it.",
        kind=Kind.SCRIPTED,
        roles=BOTH_ROLES,
        families=EVERY_FAMILY,
        build=equilibria.Rubinstein,
        source="Alternating offers without a horizon (Rubinstein 1982), with an estimated gain.",
    ),
    AgentSpec(
        slug="stahl",
        title="Deadline splitter",
        summary="Proposes the split that follows from who has the last offer.",
        kind=Kind.SCRIPTED,
        roles=BOTH_ROLES,
        families=EVERY_FAMILY,
        build=equilibria.Stahl,
        source="Alternating offers with a horizon (Stahl 1972), with an estimated gain.",
    ),
)

_CHANCE = (
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
        slug="random",
        title="Coin tosser",
        summary="Does anything at all that costs it no money.",
        kind=Kind.SCRIPTED,
        roles=BOTH_ROLES,
        families=EVERY_FAMILY,
        build=concessions.RandomMoves,
        source="A random baseline, ours.",
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
    AgentSpec(
        slug="gullible",
        title="Gullible",
        summary="Does what it is told, at a loss if need be: a control, not an opponent.",
        kind=Kind.SCRIPTED,
        roles=BOTH_ROLES,
        families=EVERY_FAMILY,
        build=gullible.Gullible,
        source="The positive control of the injection suite, ours.",
    ),
)

_YARDSTICKS = (
    AgentSpec(
        slug="posted-price",
        title="Posted price",
        summary="Names the best single price for this market and means it.",
        kind=Kind.SCRIPTED,
        roles=BOTH_ROLES,
        families=EVERY_FAMILY,
        build=equilibria.PostedPrice,
        source="Optimal posted price (Myerson 1981; Riley and Zeckhauser 1983).",
    ),
    AgentSpec(
        slug="one-shot-seller",
        title="One-shot seller",
        summary="Asks half way between its cost and the highest value there may be, once and for all.",
        kind=Kind.SCRIPTED,
        roles=(Role.SELLER,),
        families=EVERY_FAMILY,
        build=equilibria.OneShotSeller,
        source="p = (s + b_max) / 2 (arXiv 2604.16472).",
    ),
    AgentSpec(
        slug="one-shot-buyer",
        title="One-shot buyer",
        summary="Bids half way between its value and the lowest cost there may be, once and for all.",
        kind=Kind.SCRIPTED,
        roles=(Role.BUYER,),
        families=EVERY_FAMILY,
        build=equilibria.OneShotBuyer,
        source="q = min((b + .6 L) / 2, .9 L) (arXiv 2604.16472), for any range of costs.",
    ),
    AgentSpec(
        slug="rising-bids",
        title="Rising bids",
        summary="Knows the odds: bids along the best rising prices there are for a buyer.",
        kind=Kind.SCRIPTED,
        roles=(Role.BUYER,),
        families=EVERY_FAMILY,
        build=equilibria.RisingBids,
        source="The optimal ladder in a mirror, computed here.",
    ),
    AgentSpec(
        slug="threshold-seller",
        title="Threshold seller",
        summary="Takes the first bid that covers its cost and never names a price.",
        kind=Kind.SCRIPTED,
        roles=(Role.SELLER,),
        families=(Family.BILATERAL,),
        build=ladders.ThresholdSeller,
        source="The myopic seller that rising bids are worked out against.",
    ),
    AgentSpec(
        slug="fixed-sequence",
        title="Fixed sequence",
        summary="Says what it settled beforehand, whatever you answer.",
        kind=Kind.SCRIPTED,
        roles=(Role.SELLER,),
        families=EVERY_FAMILY,
        build=fixed_sequence.FixedSequence,
        source="The best sequence that reads no reply, found by search on training scenarios.",
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
    AgentSpec(
        slug="optimal-assignment",
        title="Optimal assignment",
        summary="Sells the best assignment at full values: the most there is to gain.",
        kind=Kind.REFERENCE,
        roles=(Role.SELLER,),
        families=(Family.CATALOGUE,),
        build=reference.OptimalAssignment,
        source="Maximum-weight matching with full information (Shapley and Shubik 1971).",
    ),
    AgentSpec(
        slug="greedy-assignment",
        title="Greedy assignment",
        summary="Sells the greedy matching of the true values at full values.",
        kind=Kind.REFERENCE,
        roles=(Role.SELLER,),
        families=(Family.CATALOGUE,),
        build=reference.GreedyAssignment,
        source="Greedy matching with full information, the baseline of arXiv 2609.33289.",
    ),
    AgentSpec(
        slug="serial-assignment",
        title="Serial assignment",
        summary="Lets buyers in random order take what is best for them, at full values.",
        kind=Kind.REFERENCE,
        roles=(Role.SELLER,),
        families=(Family.CATALOGUE,),
        build=reference.SerialAssignment,
        source="Serial dictatorship with full information.",
    ),
    AgentSpec(
        slug="random-assignment",
        title="Random assignment",
        summary="Sells a matching drawn by lot at full values.",
        kind=Kind.REFERENCE,
        roles=(Role.SELLER,),
        families=(Family.CATALOGUE,),
        build=reference.RandomAssignment,
        source="Random matching with full information.",
    ),
)

_FIRST: tuple[AgentSpec, ...] = (*_BARGAINERS, *_BUYERS, *_LADDERS, *_CATALOGUE_SELLERS)
_LATER: tuple[AgentSpec, ...] = (*_MORE_BARGAINERS, *_CHANCE, *_YARDSTICKS, *_REFERENCES)
_BY_SLUG = {spec.slug: spec for spec in (*_FIRST, *_LATER)}


def all_specs() -> tuple[AgentSpec, ...]:
    """Every agent, in the order of a list for people."""
    return (*_modelled(), *_FIRST, *_learned(), *_LATER)


def _modelled() -> tuple[AgentSpec, ...]:
    """Agents of the configured language models; a slug that a rule has is the rule's."""
    made = language_models.listed(_BY_SLUG)
    return tuple(spec for spec in made if spec.slug not in _BY_SLUG and not entered.is_entered(spec.slug))


def narrated(slug: str) -> str:
    """The slug of the same strategy with a language model's words, where one is there to speak; else `slug`."""
    return language_models.narrated_slug(slug, _BY_SLUG)


def _learned() -> tuple[AgentSpec, ...]:
    """Trained agents; a slug that a rule has is the rule's."""
    found = published.available()
    return tuple(spec for spec in found if spec.slug not in _BY_SLUG and not entered.is_entered(spec.slug))


# --- Entered by people ----------------------------------------------------------------------------


class _Kept(msgspec.Struct):
    """Whom to ask for entered agents; nobody has entered one until somebody keeps them."""

    listed: Callable[[], tuple[AgentSpec, ...]] = tuple
    named: Callable[[str, str], AgentSpec | None] = lambda slug, version: None


_kept = _Kept()


def keep_entered(*, listed: Callable[[], tuple[AgentSpec, ...]], named: Callable[[str, str], AgentSpec | None]) -> None:
    """Say once, at the start of the process, who keeps the agents that people enter.

    `listed` gives those that are up for tournaments, in their newest version; `named` the agent of a slug
    in the version given, or in its newest, retired or not.
    """
    _kept.listed, _kept.named = listed, named


def entered_specs() -> tuple[AgentSpec, ...]:
    """Agents that people entered and put up for everybody."""
    return _kept.listed()


def get_open(slug: str) -> AgentSpec:
    """The agent with this slug if anybody may seat it: not one that its author has not put up. Raises `UnknownAgent`."""
    spec = get(slug)
    base, _persona = _named(slug)
    if entered.is_entered(base) and all(base != each.slug for each in entered_specs()):
        raise UnknownAgent(slug, f"The agent {slug!r} is not put up for others.")
    return spec


# --- Looking up -----------------------------------------------------------------------------------


def get(slug: str, *, version: str = "") -> AgentSpec:
    """The agent with this slug, with or without a persona. Raises `UnknownAgent`.

    `version` is one on record: an entered agent is given in that version where it is kept. Of all others
    there is only the present one.
    """
    base, persona = _named(slug)
    if persona is not None:
        return _in_persona(get(base, version=version), persona)
    if entered.is_entered(slug):
        if found := _kept.named(slug, version):
            return found
        raise UnknownAgent(slug)
    if slug in _BY_SLUG:
        return _BY_SLUG[slug]
    for spec in (*_learned(), *_modelled()):
        if spec.slug == slug:
            return spec
    if narrator := language_models.named(slug, _BY_SLUG):
        return narrator
    raise UnknownAgent(slug, language_models.why_missing(slug))


def _named(slug: str) -> tuple[str, Persona | None]:
    """The agent and the persona that a slug names. Raises `UnknownAgent` where there is no such persona."""
    try:
        return split_slug(slug)
    except UnknownPersona as error:
        raise UnknownAgent(slug, str(error)) from error


def _in_persona(spec: AgentSpec, persona: Persona) -> AgentSpec:
    """The same agent in other words; a model is told of them in its prompt, which makes another version."""
    changed = msgspec.structs.replace(
        spec,
        slug=f"{spec.slug}{MARK}{persona.value}",
        title=f"{spec.title}, {persona.value}",
        persona=persona.value,
    )
    if spec.speak_as is None:
        return msgspec.structs.replace(changed, build=partial(with_persona, spec.build, persona))
    told = prompts.load("personas")
    digest = hashlib.sha256(f"{spec.version} {told.label} {told.digest} {persona.value}".encode()).hexdigest()[:10]
    number = f"{entered.number_of(spec.version)}-" if entered.is_entered(spec.slug) else ""
    return msgspec.structs.replace(
        changed,
        build=partial(spec.speak_as, persona.value),
        version=f"{number}{digest}",
        speak_as=None,
    )


def refuse_held_out(slugs: Iterable[str]) -> None:
    """Raise `splits.HeldOut` with a sentence unless all of these may sit opposite in training.

    Looks through personas and voices: `impatient+chatty`, `linear+begging` and `narrator-impatient` may
    not, nor an entered agent that was given such a way of talking. Raises `UnknownAgent`.
    """
    specs: list[AgentSpec] = []
    for slug in slugs:
        base, persona = _named(slug)
        specs.append(get(base))
        if persona is not None:
            specs.append(_in_persona(specs[-1], persona))
    splits.refuse_held_out(
        opponents=[name for spec in specs for name in (spec.slug, spec.plays_as)],
        personas=[spec.persona for spec in specs],
    )
