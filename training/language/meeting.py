"""A trained seller opposite buyers that are language models: `python -m training.language.meeting`.

    python -m training.language.meeting --seller ladder-learner --scenarios 100

Several buyers, each the embedded model (or a base, or what a run taught it) that decides and speaks for
itself, regulated, held to the protocol's form; the seller with its words (templates) and without any. The
same scenarios for every arm, from seeds that nothing trains on. Not here: the sellers, the writers.

Contract: JSON with a share of the first best, its interval by scenario, and what the buyers' answers were
taken for; arms are paired, so their difference has an interval too.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import torch

from agents import backends, calls, registry
from agents.base import AgentSpec
from agents.play import Played, Seat, play
from markets.engine import metrics
from markets.engine.protocol import (
    SELLER,
    DeadlinePassed,
    MoveRefused,
    OfferAccepted,
    OfferMade,
    PartyLeft,
    Role,
    buyer_party,
)
from markets.engine.scenarios import Family, Scenario, sample
from markets.engine.seeds import derive_seed
from training import bootstrap
from training.config import ConfigError, Game
from training.environment import recipe
from training.language import base, judging
from training.language.config import LanguageRun, Sampling, load
from training.language.games import Spoken
from training.language.playing import LocalWriter, Tables
from training.tokenizer import SetupError

ARMS = ("talk", "silent")
TEMPERATURE = 0.7
LONGEST = 160
"""Tokens of an answer; the grammar allows two sentences of 160 letters."""


class Met(NamedTuple):
    """One game of one arm."""

    scenario: Scenario
    played: Played
    outcomes: list[str]
    refused: list[list[str]]
    """What was written in the place of a move."""


def scenario(number: int, *, buyers: int, turns: int, values: str) -> Scenario:
    """Scenario `number`: the calibration game's kind, from seeds of this meeting alone."""
    made = recipe(Game(sizes=((buyers, turns),), values=values), buyers=buyers, turns=turns, cost=0.0)
    return sample(made, [], derive_seed("meeting", number))


def meet(game: Scenario, seller: AgentSpec, *, talks: bool, buyer: AgentSpec) -> Met:
    """Play one game."""
    heard = judging.Heard()
    agent = seller.build()
    seats = {SELLER: Seat(seller, Spoken(agent) if talks else agent)}
    seats |= {buyer_party(k): Seat(buyer, buyer.build()) for k in range(1, game.buyers + 1)}
    with calls.listening(calls.Listener(heard.take)):
        return Met(game, play(game, seats), heard.outcomes, heard.refused)


def buyer_spec(config: LanguageRun) -> AgentSpec:
    """The model on a buyer's chair."""
    spec = judging.spec_of(judging.model_agent(config))
    return msgspec.structs.replace(spec, families=(Family.MULTI_BUYER,))


def figures(met: Sequence[Met]) -> dict[str, Any]:
    """What one arm came to."""
    outcomes = [metrics.outcome(each.scenario, each.played.log) for each in met]
    shares = bootstrap.interval(shares_of(met))
    answers = [answer for each in met for answer in each.outcomes]
    events = [entry.event for each in met for entry in each.played.log]
    prices = [event.price_cents for event in events if isinstance(event, OfferAccepted)]
    asks = [each for each in map(_first_ask, met) if each is not None]
    return {
        "scenarios": len(met),
        "share": shares.value,
        "share_low": shares.low,
        "share_high": shares.high,
        "deal_rate": sum(bool(found.deals) for found in outcomes) / len(met),
        "mean_price": round(sum(prices) / len(prices) / 100, 2) if prices else None,
        "mean_first_ask": round(sum(asks) / len(asks) / 100, 2) if asks else None,
        "accepted_by_buyers": sum(isinstance(event, OfferAccepted) and event.by is Role.BUYER for event in events),
        "default_acts": sum(isinstance(event, DeadlinePassed) for event in events),
        "buyers_surplus_negative": sum(deal.buyer_surplus_cents < 0 for found in outcomes for deal in found.deals),
        "buyers_left": sum(isinstance(event, PartyLeft) for event in events),
        "refused_moves": sum(isinstance(event, MoveRefused) for event in events),
        "answers": len(answers),
        "valid_rate": answers.count("used") / len(answers) if answers else None,
        "unusable": {reason: answers.count(reason) for reason in sorted(set(answers) - {"used"})},
    }


def _first_ask(met: Met) -> int | None:
    """The seller's first price."""
    asks = (entry.event for entry in met.played.log if isinstance(entry.event, OfferMade))
    return next((ask.price_cents for ask in asks if ask.by is Role.SELLER), None)


def shares_of(met: Sequence[Met]) -> list[float]:
    """The seller's share of the first best in each scenario where there is any."""
    found = (metrics.outcome(each.scenario, each.played.log).seller_share for each in met)
    return [share for share in found if share is not None]


def line(arm: str, number: int, met: Met) -> dict[str, Any]:
    """One game in short, for a file that grows while many are played."""
    told = judging.transcript_of(met.played)
    return {"arm": arm, "scenario": number, "figures": figures([met]), "refused": met.refused, "game": told}


def run(
    config: LanguageRun,
    ready: base.Base | None,
    *,
    seller: AgentSpec,
    buyer: AgentSpec,
    scenarios: int,
    buyers: int,
    turns: int,
    values: str,
    arms: Sequence[str] = ARMS,
    told: Callable[[str, int, Met], None] = lambda arm, number, met: None,
) -> dict[str, Any]:
    """All arms on the same scenarios, side by side; `ready` is the model behind `buyer`, None where it has none. `told`
    hears of the end of each game."""
    games = [scenario(k, buyers=buyers, turns=turns, values=values) for k in range(scenarios)]

    def one(number: int, arm: str) -> Met:
        met = meet(games[number], seller, talks=arm == "talk", buyer=buyer)
        told(arm, number, met)
        return met

    started = time.monotonic()
    jobs: list[Callable[[], Met]] = [partial(one, number, arm) for number in range(scenarios) for arm in arms]
    if ready is None:
        ended = [job() for job in jobs]
    else:
        writer = LocalWriter(ready.model, ready.tokenizer, together=config.sampling.together, remembers=True)
        tables = Tables(writer, ready.tokenizer, config.sampling, grammar=True)
        backends.seat(tables)
        ended = [each for each, _asked in tables.play(jobs)]
    found: dict[str, Any] = {
        "seller": seller.slug,
        "seller_version": seller.version,
        "buyer": buyer.slug,
        "buyers": buyers,
        "turns": turns,
        "values": values,
    }
    met = {arm: ended[place :: len(arms)] for place, arm in enumerate(arms)}
    found |= {arm: figures(each) for arm, each in met.items()}
    if len(arms) == 2:
        first, second = (shares_of(met[arm]) for arm in arms)
        gap = bootstrap.interval([a - b for a, b in zip(first, second, strict=True)])
        found[f"{arms[0]}_minus_{arms[1]}"] = [gap.value, gap.low, gap.high]
    return found | {"seconds": round(time.monotonic() - started, 1)}


def _keep(file: Path, arm: str, number: int, met: Met) -> None:
    with file.open("a", encoding="utf-8", buffering=1 << 20) as opened:  # Games end in threads; a line is one write.
        opened.write(json.dumps(line(arm, number, met), ensure_ascii=False) + "\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Let them meet; the exit status."""
    parser = argparse.ArgumentParser(prog="python -m training.language.meeting", description=__doc__.split("\n")[0])
    parser.add_argument("--seller", default="ladder-learner")
    parser.add_argument("--buyer", default="", help="a scripted buyer in the model's place, to compare with")
    parser.add_argument("--config", type=Path, default=None, help="run file of another base than the embedded model")
    parser.add_argument(
        "--taught", type=Path, default=None, help="folder of an adapter, to meet a model that was taught"
    )
    parser.add_argument("--scenarios", type=int, default=100)
    parser.add_argument("--buyers", type=int, default=4)
    parser.add_argument("--turns", type=int, default=8)
    parser.add_argument("--values", default="uniform:0:100")
    parser.add_argument("--arms", nargs="+", choices=ARMS, default=list(ARMS))
    parser.add_argument("--together", type=int, default=64)
    parser.add_argument(
        "--games", type=Path, default=None, metavar="FILE", help="add every game that ends, as JSON lines"
    )
    asked = parser.parse_args(arguments)
    try:
        seller = registry.get(asked.seller)
        if asked.scenarios < 1:
            raise ConfigError("--scenarios must be at least 1.")
        config = load(asked.config) if asked.config else LanguageRun(name="meeting")
        sampling = Sampling(temperature=TEMPERATURE, longest=LONGEST, together=asked.together)
        config = msgspec.structs.replace(config, sampling=sampling)
        ready = None
        if not asked.buyer:
            torch.set_num_threads(config.threads)
            ready = base.learned(config, asked.taught, trainable=False) if asked.taught else base.load(config)
            ready = base.merged(ready)
        found = run(
            config,
            ready,
            seller=seller,
            buyer=registry.get(asked.buyer) if asked.buyer else buyer_spec(config),
            scenarios=asked.scenarios,
            buyers=asked.buyers,
            turns=asked.turns,
            values=asked.values,
            arms=asked.arms,
            told=partial(_keep, asked.games) if asked.games else lambda arm, number, met: None,
        )
    except (ConfigError, SetupError, registry.UnknownAgent) as error:
        sys.stderr.write(f"{error}\n")
        return 2
    sys.stdout.write(json.dumps(found) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
