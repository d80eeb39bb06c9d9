"""What a model is worth at tables that it never saw: held-out products, seeds of their own.

Here: seating a model, playing the held-out games in batches or through a back end, figures with
intervals. Not here: how answers are written (`playing`), which games these are (`games`).

Contract: every model meets the same scenarios, seats and opponents. A share is the own part of the joint
surplus, 0 without a deal, over games where trade can gain; its interval is a bootstrap over scenarios.
`valid_rate` is the share of all answers that could be used, answers to a second asking included.
"""

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

import numpy as np

from agents import backends, calls, measuring
from agents.backends import ChatReply
from agents.base import Agent, AgentSpec, Kind
from agents.llm import ModelAgent
from agents.play import Played, Seat, play
from markets.engine import metrics
from markets.engine.protocol import Role
from markets.engine.scenarios import Family
from training import bootstrap, rows
from training.language.config import LanguageRun
from training.language.demonstrations import other_party, own_share, party_of
from training.language.games import Game, held_out_game
from training.language.playing import BACKEND, Asked, Tables, Writer


class Finished(NamedTuple):
    """A game and what its answers were taken for."""

    game: Game
    played: Played
    outcomes: list[str]
    """Of each answer: `used`, or why it was not."""
    refused: Sequence[Sequence[str]] = ()
    """What was written at each turn that came to no move, in order: the answer, and its repair where one was asked for."""


@dataclass
class Heard:
    """What became of the answers of one game."""

    outcomes: list[str] = field(default_factory=list)
    refused: list[list[str]] = field(default_factory=list)
    _unused: list[str] = field(default_factory=list)

    def take(self, call: calls.Call) -> None:
        """Count one in."""
        self.outcomes.append("used" if call.used else call.outcome)
        if call.purpose == "move":
            self._unused = []
        if call.used:
            if self._unused:
                self.refused.pop()
            return
        if not self._unused:
            self.refused.append(self._unused)
        self._unused.append("" if call.reply is None else written(call.reply))


def written(reply: ChatReply) -> str:
    """What a model wrote, functions called after the text."""
    called = [f"{call.name}({call.arguments})" for call in reply.tool_calls]
    return "\n".join(part for part in (reply.text.strip(), *called) if part)


def spec_of(agent: Agent, *, slug: str = BACKEND) -> AgentSpec:
    """The agent that a model in training is."""
    return AgentSpec(
        slug=slug,
        title=slug,
        summary="",
        kind=Kind.MODEL,
        roles=tuple(Role),
        families=(Family.BILATERAL,),
        build=lambda: agent,
    )


def model_agent(config: LanguageRun, *, backend: str = BACKEND, temperature: float | None = None) -> ModelAgent:
    """The model on a chair, as a room seats it: asked again once, and kept from losing money."""
    return ModelAgent(
        backend=backend,
        codec=rows.codec(config.protocol),
        regulated=True,
        temperature=config.sampling.temperature if temperature is None else temperature,
        max_tokens=config.sampling.longest,
    )


def table(game: Game, spec: AgentSpec, told: Callable[[Finished], None] | None = None) -> Finished:
    """Play one game with the agent of `spec` on the learner's chair; `told` hears of its end."""
    heard = Heard()
    seats = {party_of(game.role): Seat(spec, spec.build()), other_party(game.role): game.opponent}
    with calls.listening(calls.Listener(heard.take)):
        played = play(game.scenario, seats)
    done = Finished(game, played, heard.outcomes, heard.refused)
    if told is not None:
        told(done)
    return done


def held_out(config: LanguageRun) -> list[Game]:
    """The games that everybody is judged on."""
    return [held_out_game(config.market, k, rounds=config.judging.rounds) for k in range(config.judging.scenarios)]


def play_together(
    config: LanguageRun,
    games: Sequence[Game],
    writer: Writer,
    tokenizer: Any,
    agent: Agent,
    *,
    salts: Sequence[int] = (),
    grammar: bool = False,
    told: Callable[[Finished], None] | None = None,
) -> list[tuple[Finished, list[Asked]]]:
    """Play the games in step, `agent` asking the writer."""
    tables = Tables(writer, tokenizer, config.sampling, grammar=grammar)
    backends.seat(tables)
    spec = spec_of(agent)
    jobs: list[Callable[[], Finished]] = [partial(table, game, spec, told) for game in games]
    return tables.play(jobs, salts)


def judge(
    config: LanguageRun,
    writer: Writer,
    tokenizer: Any,
    *,
    temperature: float | None = None,
    grammar: bool = False,
    told: Callable[[Finished], None] | None = None,
    part: tuple[int, int] = (1, 1),
) -> dict[str, Any]:
    """Figures of the model that `writer` writes with; `grammar` holds its answers to the protocol's form. Of several
    parts, (1, 2) is the first half of the games."""
    started, cpu = time.monotonic(), time.process_time()
    games = held_out(config)
    games = games[(part[0] - 1) * len(games) // part[1] : part[0] * len(games) // part[1]]
    agent = model_agent(config, temperature=temperature)
    finished = [
        done for done, _asked in play_together(config, games, writer, tokenizer, agent, grammar=grammar, told=told)
    ]
    return figures(finished, seconds=time.monotonic() - started) | {"cpu_seconds": round(time.process_time() - cpu, 1)}


def judge_within(config: LanguageRun, writer: Writer, tokenizer: Any, *, seconds: float) -> dict[str, Any]:
    """Figures of as many held-out games, in batches, as fit into the time; at least one batch."""
    started = time.monotonic()
    games = held_out(config)
    agent = model_agent(config)
    finished: list[Finished] = []
    for start in range(0, len(games), config.sampling.together):
        some = games[start : start + config.sampling.together]
        finished += [done for done, _asked in play_together(config, some, writer, tokenizer, agent)]
        if time.monotonic() - started >= seconds:
            break
    return figures(finished, seconds=time.monotonic() - started)


def judge_agent(config: LanguageRun, spec: AgentSpec) -> dict[str, Any]:
    """Figures of any agent: a scripted one, or one whose back end is served."""
    started = time.monotonic()
    finished = [table(game, spec) for game in held_out(config)]
    return figures(finished, seconds=time.monotonic() - started)


def figures(finished: Sequence[Finished], *, seconds: float) -> dict[str, Any]:
    """What the games came to."""
    return figures_of([line(done) for done in finished], seconds=seconds)


def figures_of(games: Sequence[dict[str, Any]], *, seconds: float) -> dict[str, Any]:
    """The same of games in short (`line`), in whatever order they ended."""
    games = sorted(games, key=lambda game: int(game["seed"]))
    gainful = [game for game in games if game["share"] is not None]
    interval = bootstrap.interval([game["share"] for game in gainful])
    outcomes = [outcome for game in games for outcome in game["answers"]]
    by_role = {
        role.value: bootstrap.interval([game["share"] for game in gainful if game["role"] == role.value])
        for role in Role
    }
    unusable = sorted({outcome for outcome in outcomes if outcome != "used"})
    return {
        "scenarios": len(games),
        "scenarios_with_gains": len(gainful),
        "share": interval.value,
        "share_low": interval.low,
        "share_high": interval.high,
        "share_by_role": {role: [found.value, found.low, found.high] for role, found in by_role.items()},
        "deal_rate": sum(game["deal"] for game in gainful) / len(gainful) if gainful else None,
        "share_of_deals": _mean([game["share"] for game in gainful if game["deal"]]),
        "answers": len(outcomes),
        "valid_rate": outcomes.count("used") / len(outcomes) if outcomes else None,
        "valid_by_role": {
            role.value: valid_rate([game for game in games if game["role"] == role.value]) for role in Role
        },
        "valid": valid_rate(games),
        "unusable": {reason: outcomes.count(reason) for reason in unusable},
        "seconds": round(seconds, 1),
    }


def valid_rate(games: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """How many of the answers could be used, with Wilson's interval of the rate over answers, and with one over games,
    whose answers hang together (a bootstrap of the games)."""
    used = [game["answers"].count("used") for game in games]
    answered = [len(game["answers"]) for game in games]
    between = measuring.interval(sum(used), sum(answered))
    drawn = bootstrap.resample(np.arange(len(games)), 0, "valid", bootstrap.RESAMPLES)
    by_games = drawn.ratios([(np.asarray(used), np.asarray(answered))])[0] if games else bootstrap.NONE
    return {
        "games": len(games),
        "answers": sum(answered),
        "used": sum(used),
        "rate": sum(used) / sum(answered) if sum(answered) else None,
        "between": between and list(between),
        "between_by_games": None if by_games.low is None else [by_games.low, by_games.high],
    }


def _mean(numbers: Sequence[float]) -> float | None:
    return sum(numbers) / len(numbers) if numbers else None


def line(done: Finished) -> dict[str, Any]:
    """One game in short, for a file that grows while many are played."""
    return {
        "seed": str(done.game.scenario.seed),
        "role": done.game.role.value,
        "opponent": done.game.opponent.spec.slug,
        "share": own_share(done.game, done.played),
        "deal": bool(metrics.outcome(done.game.scenario, done.played.log).deals),
        "answers": done.outcomes,
        "refused": done.refused,
        "game": transcript(done),
    }


def transcript(done: Finished) -> list[str]:
    """A game in lines, for people who look at a run."""
    return transcript_of(done.played)


def transcript_of(played: Played) -> list[str]:
    """A game in lines: every event, with the words and the thought behind it."""
    lines = []
    for entry in played.log:
        action = played.actions.get(entry.n)
        said = f' "{action.talk}"' if action is not None and action.talk else ""
        thought = f" ({action.thought})" if action is not None and action.thought else ""
        lines.append(f"{entry.event}{said}{thought}")
    return lines
