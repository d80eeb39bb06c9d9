"""What a language model imitates: scripted strategies that speak, as prompts and answers.

Here: playing teachers, putting their moves into words and thoughts, choosing games by what they came to.
Not here: the messages and the reading of answers (`agents.parsing`, `training.rows`), token ids (`base`).

Contract: a teacher knows what the learner knows; its prices are whole units of money where things cost
twenty or more, as people name them, and parts of its limit in steps; what it says is from the phrase book, conditioned on
what it heard. A thought names only what the own seat can see. A repair is the wrong reply that the protocol refused, the
request to mend it exactly as play puts it, and the teacher's move. The same configuration gives the same rows.
"""

import json
import math
import random
from collections.abc import Iterator
from typing import Any, NamedTuple

import msgspec

from agents import phrasebook, registry
from agents.backends import ChatReply, ToolCall
from agents.base import Agent, Turn
from agents.llm import allowed
from agents.parsing import ParseFailure
from agents.play import Played, Seat, play
from agents.prompts import table
from markets.engine import metrics
from markets.engine.money import Cents
from markets.engine.observation import Observation
from markets.engine.protocol import SELLER, AcceptOffer, Action, MakeOffer, Party, RejectOffer, Role, buyer_party
from markets.engine.seeds import derive_seed
from training import rows
from training.language.config import LanguageRun
from training.language.games import Game, training_game

WHOLE_FROM_CENTS = 2_000
"""Things listed at this and more are haggled over in whole units of money."""
STEP = 5
"""A teacher's prices are so many hundredths of its limit, or a multiple: of what can follow a few words most are then
wrong, where any price would do a learner that writes digit by digit mixes them up."""
TOO_MUCH = (1.02, 2.5)
"""How far a wrong price lies beyond the limit, as a multiple of it (for a seller the inverse)."""
TAKES = 1 / 3
"""Of the wrong replies at tables with a losing offer, those that take it."""
FORGETS = 0.1
"""Of the wrong replies, those that forget the action."""


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
    """An offer at a whole unit of money where things cost enough, some steps of `STEP` hundredths better than the limit."""
    if not isinstance(action, MakeOffer):
        return action
    product = observation.products[0]
    unit = 100 if product.list_price_cents >= WHOLE_FROM_CENTS else 1
    limit = product.reservation_value_cents
    if limit <= 0:
        return msgspec.structs.replace(action, price_cents=-(-action.price_cents // unit) * unit)
    if observation.role is Role.SELLER:
        part = max(100 + STEP, math.ceil(100 * action.price_cents / limit / STEP) * STEP)
        price = -(-limit * part // (100 * unit)) * unit
    else:
        part = min(100 - STEP, max(STEP, math.floor(100 * action.price_cents / limit / STEP) * STEP))
        price = limit * part // (100 * unit) * unit
    return msgspec.structs.replace(action, price_cents=price) if price > 0 else action


def part_of_limit(price: Cents, limit: Cents, *, role: Role) -> int | None:
    """The hundredths of the limit that a rounded price stands for."""
    if limit <= 0:
        return None
    steps = 100 * price / limit / STEP
    return (math.floor(steps) if role is Role.SELLER else math.ceil(steps)) * STEP


def thought(action: Action, observation: Observation) -> str:
    """What goes through a bargainer's head: what the offer on the table gains, the own limit, what follows.

    Whoever writes from left to right decides a price where it is first named, so the limit stands before it.
    """
    heard = _heard(observation)
    match action:
        case AcceptOffer():
            return f"{heard}. I take it."
        case MakeOffer():
            limit = observation.products[0].reservation_value_cents
            part = part_of_limit(action.price_cents, limit, role=observation.role)
            return f"{heard}. {_aim(observation, part, table.money(observation, action.price_cents))}."
        case RejectOffer():
            return f"{heard}. I turn it down."
        case _:
            return f"{heard}."


def _heard(observation: Observation) -> str:
    """What the offer on the table comes to."""
    offers = [offer for offer in observation.threads[0].standing if not offer.mine]
    if not offers:
        return "No offer yet"
    gain = observation.surplus_cents(product=0, price_cents=offers[-1].price_cents)
    theirs, far = table.money(observation, offers[-1].price_cents), table.money(observation, abs(gain))
    return f"{theirs} {'gains' if gain >= 0 else 'loses'} me {far}"


def _aim(observation: Observation, part: int | None, price: str) -> str:
    """The own price beside the limit that it must respect, and how many hundredths of it that is."""
    own = table.money(observation, observation.products[0].reservation_value_cents)
    stay, name = ("above", "ask") if observation.role is Role.SELLER else ("below", "bid")
    return f"I stay {stay} {own} and {name} {price if part is None else f'{part}%: {price}'}"


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
            told = [{"role": message.role, "content": message.content} for message in asked]
            tools = protocol.tools(decision.turn.observation)
            yield Row(told, tools, said)
            chance = random.Random(derive_seed("repair", shown.game.scenario.seed, decision.n))
            if chance.random() < config.sft.repairs and (refused := refusal(decision, options, said, chance)):
                yield Row(told + refused, tools, said)


def refusal(
    decision: rows.Decision, options: rows.Options, said: dict[str, Any], chance: random.Random
) -> list[dict[str, Any]]:
    """A wrong reply in the place of what the teacher `said`, and what its writer is told; empty where none can be made."""
    observation = decision.turn.observation
    if chance.random() < FORGETS:
        reply = ChatReply(text=str(said["content"]).rpartition("\n")[0])
    else:
        wrong = mistaken(decision.actions[0], observation, chance)
        written = None if wrong is None else rows.answer(decision._replace(actions=(wrong,)), options)
        if written is None:
            return []
        calls = (call["function"] for call in written.get("tool_calls", ()))
        reply = ChatReply(
            text=written["content"],
            tool_calls=tuple(ToolCall(call["name"], json.dumps(call["arguments"])) for call in calls),
        )
    try:
        allowed(options.codec, reply, observation, regulated=True)
    except ParseFailure as failure:
        told = options.codec.repair(reply, failure, observation)
        return [{"role": message.role, "content": message.content} for message in told]
    return []


def mistaken(right: Action, observation: Observation, chance: random.Random) -> Action | None:
    """A move at a loss: the offer on the table taken where it loses money, or else a price beyond the limit."""
    product = observation.products[0]
    limit, role = product.reservation_value_cents, observation.role
    theirs = [offer for offer in observation.threads[0].standing if not offer.mine]
    if (
        theirs
        and chance.random() < TAKES
        and observation.surplus_cents(product=0, price_cents=theirs[-1].price_cents) < 0
    ):
        taken = AcceptOffer(buyer=right.buyer, offer_id=theirs[-1].offer_id, talk="That works for me.")
        return msgspec.structs.replace(taken, thought=thought(taken, observation))
    beyond = chance.uniform(*TOO_MUCH)
    unit = 100 if product.list_price_cents >= WHOLE_FROM_CENTS else 1
    price = round(limit / beyond if role is Role.SELLER else limit * beyond) // unit * unit
    offer = MakeOffer(buyer=right.buyer, price_cents=price)
    if price < 1 or metrics.surplus_cents(role=role, price_cents=price, reservation_value_cents=limit) >= 0:
        return None
    named = table.money(observation, price)
    talk = (
        right.talk.replace(table.money(observation, right.price_cents), named)
        if isinstance(right, MakeOffer)
        else named
    )
    part = chance.randrange(110, 200, STEP) if role is Role.SELLER else chance.randrange(50, 100, STEP)
    return msgspec.structs.replace(
        offer, talk=talk, thought=f"{_heard(observation)}. {_aim(observation, part, named)}."
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
