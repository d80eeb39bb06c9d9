"""What a language model imitates: scripted strategies that speak, as prompts and answers.

Here: playing teachers, putting their moves into words and thoughts, choosing games by what they came to.
Not here: the messages and the reading of answers (`agents.parsing`, `training.rows`), token ids (`base`).

Contract: a teacher knows what the learner knows; its prices are whole units of money where things cost
twenty or more, as people name them, and keep a margin to its limit; what it says is from the phrase book, conditioned on what it heard.
A thought names only what the own seat can see. The same configuration gives the same rows.
"""

import math
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from agents import phrasebook, registry
from agents.base import Agent, Turn
from agents.play import Played, Seat, play
from agents.prompts import table
from markets.engine import metrics
from markets.engine.money import Cents
from markets.engine.observation import Observation
from markets.engine.protocol import SELLER, AcceptOffer, Action, MakeOffer, Party, RejectOffer, Role, buyer_party
from training import rows
from training.language.config import LanguageRun
from training.language.games import Game, training_game

WHOLE_FROM_CENTS = 2_000
"""Things listed at this and more are haggled over in whole units of money."""
MARGIN = 0.05
"""A teacher keeps this part of its limit as margin: a learner that writes digit by digit errs by some."""


class Row(NamedTuple):
    """One decision to learn."""

    messages: list[dict[str, Any]]
    tools: tuple[dict[str, Any], ...]
    answer: dict[str, Any]
    """The assistant's message."""


class Teacher:
    """A strategy that thinks aloud, names round prices and speaks from the phrase book."""

    def __init__(self, strategy: Agent) -> None:
        self._strategy = strategy

    def act(self, turn: Turn) -> Action:
        """The strategy's move, with words and a thought."""
        action = rounded(self._strategy.act(turn), turn.observation)
        book = phrasebook.open_for(turn, action)
        pick = turn.words
        move = pick.choice(book.moves)
        said = f"{pick.choice(book.openings)} {move}" if book.openings else move
        return msgspec.structs.replace(action, talk=said, thought=thought(action, turn.observation))


def rounded(action: Action, observation: Observation) -> Action:
    """An offer at a whole unit of money where things cost enough, at least `MARGIN` better than the own limit."""
    if not isinstance(action, MakeOffer):
        return action
    product = observation.products[0]
    unit = 100 if product.list_price_cents >= WHOLE_FROM_CENTS else 1
    limit = product.reservation_value_cents
    if observation.role is Role.SELLER:
        price = -(-max(action.price_cents, math.ceil(limit * (1 + MARGIN))) // unit) * unit
    else:
        price = min(action.price_cents, math.floor(limit * (1 - MARGIN))) // unit * unit
    return msgspec.structs.replace(action, price_cents=price) if price > 0 else action


def thought(action: Action, observation: Observation) -> str:
    """What goes through a bargainer's head: what the offer on the table gains, the own limit, what follows.

    Whoever writes from left to right decides a price where it is first named, so the limit stands before it.
    """
    limit = observation.products[0].reservation_value_cents
    offers = [offer for offer in observation.threads[0].standing if not offer.mine]
    own = table.money(observation, limit)
    if not offers:
        heard = "No offer yet"
    else:
        theirs = offers[-1].price_cents
        gain = metrics.surplus_cents(role=observation.role, price_cents=theirs, reservation_value_cents=limit)
        verdict = "gains" if gain >= 0 else "loses"
        heard = f"{table.money(observation, theirs)} {verdict} me {table.money(observation, abs(gain))}"
    match action:
        case AcceptOffer():
            return f"{heard}. I take it."
        case MakeOffer():
            price = table.money(observation, action.price_cents)
            said = f"above {own}, I ask {price}" if observation.role is Role.SELLER else f"below {own}, I bid {price}"
            return f"{heard}. I stay {said}."
        case RejectOffer():
            return f"{heard}. I turn it down."
        case _:
            return f"{heard}."


class Demonstrated(NamedTuple):
    """A teacher's game."""

    game: Game
    played: Played
    share: float | None
    """The teacher's part of the joint surplus."""


def demonstrate(config: LanguageRun, number: int) -> Demonstrated:
    """Teacher and opponent play game `number`."""
    game = training_game(config.market, number, seed=config.seed, stage="demonstration")
    spec = registry.get(config.sft.teachers[number // len(config.market.roles) % len(config.sft.teachers)])
    own = party_of(game.role)
    seats = {own: Seat(spec, Teacher(spec.build())), other_party(game.role): game.opponent}
    played = play(game.scenario, seats)
    return Demonstrated(game, played, own_share(game, played))


def own_share(game: Game, played: Played) -> float | None:
    """The learner's part of the joint surplus; 0 without a deal, None where trade cannot gain."""
    outcome = metrics.outcome(game.scenario, played.log)
    if outcome.first_best_cents <= 0:
        return None
    own: Cents = outcome.seller_surplus_cents if game.role is Role.SELLER else outcome.buyer_surplus_cents
    return own / outcome.first_best_cents


def party_of(role: Role) -> Party:
    """The seat of a role at a table of two."""
    return SELLER if role is Role.SELLER else buyer_party(1)


def other_party(role: Role) -> Party:
    """The seat opposite."""
    return buyer_party(1) if role is Role.SELLER else SELLER


def rows_of(config: LanguageRun, shown: Demonstrated) -> Iterator[Row]:
    """The teacher's decisions as a model would be asked for them."""
    protocol = rows.codec(config.protocol)
    own = party_of(shown.game.role)
    source = rows.Source(
        episode="",
        market="",
        scenario=shown.game.scenario,
        log=shown.played.log,
        talk={n: action.talk for n, action in shown.played.actions.items()},
        thoughts={n: action.thought for n, action in shown.played.actions.items()},
        chairs={},
        timed=False,
    )
    options = rows.Options(codec=protocol, role=shown.game.role, thoughts=config.thoughts)
    for decision in rows.decisions(source, own):
        if decision.chosen and (said := rows.answer(decision, options)) is not None:
            asked = protocol.messages(decision.turn, persona="")
            yield Row(
                [{"role": message.role, "content": message.content} for message in asked],
                protocol.tools(decision.turn.observation),
                said,
            )


class Demonstrations(NamedTuple):
    """What was played to get enough rows."""

    games: list[list[Row]]
    """The decisions of each game that is imitated."""
    played: int
    shares: list[float]
    """The teachers' shares in the games that are imitated."""


def collect(config: LanguageRun) -> Demonstrations:
    """Games for the run, from number 0 on, until there are as many decisions as it asks for."""
    found: list[list[Row]] = []
    shares: list[float] = []
    number = decisions = 0
    while decisions < config.sft.rows:
        shown = demonstrate(config, number)
        number += 1
        if shown.share is not None and shown.share < config.sft.least_share:
            continue
        found.append(list(rows_of(config, shown)))
        decisions += len(found[-1])
        if shown.share is not None:
            shares.append(shown.share)
    return Demonstrations(found, number, shares)
