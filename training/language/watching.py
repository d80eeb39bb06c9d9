"""What is logged of a language model's own games, for whoever watches its run.

Here: the figures of the games of a rollout or of a look during imitation, and games to read. Not here: held-out games
(`judging`), what is shown (the site).

Contract: figures are those of `training.watching`, from event logs alone. Where a model learns both sides a figure is the
mean of the two, weighed by games, except the opening: that is the seller's, which rises where a buyer's falls.
"""

import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from markets.engine.protocol import (
    EndReason,
    Event,
    LogEntry,
    MessageSent,
    MoveRefused,
    NegotiationEnded,
    OfferAccepted,
    OfferMade,
    OfferRejected,
    PartyLeft,
    Role,
    Say,
)
from training import runs, watching
from training.language import judging
from training.language.config import LanguageRun
from training.language.demonstrations import own_share
from training.language.games import training_game
from training.language.playing import Question, Writer, Written

LONGEST_SHOWN = 600
"""Characters of an answer that was no move."""
OF_THE_SELLER = ("opening", "opening_of_list")


class Timed:
    """A writer whose time and words are counted."""

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self.seconds = 0.0
        self.tokens = 0

    def write(self, questions: Sequence[Question]) -> list[Written]:
        """The writer's answers."""
        started = time.perf_counter()
        answers = self._writer.write(questions)
        self.seconds += time.perf_counter() - started
        self.tokens += sum(len(answer.ids) for answer in answers)
        return answers


def figures(finished: Sequence[judging.Finished], rewards: Sequence[float], *, group: int) -> dict[str, Any]:
    """The figures of games just played, in the order in which they were played."""
    by_role = {role: [k for k, done in enumerate(finished) if done.game.role is role] for role in Role}
    parts: list[tuple[int, dict[str, Any]]] = []
    for role, places in by_role.items():
        if places:
            games = [watching.Ended(finished[k].game.scenario, finished[k].played.log) for k in places]
            found = watching.figures(games, [rewards[k] for k in places], group=group, role=role)
            if role is Role.BUYER and by_role[Role.SELLER]:
                found = {name: value for name, value in found.items() if name not in OF_THE_SELLER}
            parts.append((len(places), found))
    violations = [(count, found.pop("violations")) for count, found in parts]
    outcomes = [outcome for done in finished for outcome in done.outcomes]
    merged = _mean(parts) | {"violations": _mean_of_all(violations)}
    return merged | {"valid_rate": outcomes.count("used") / len(outcomes)} if outcomes else merged


def _mean(parts: Sequence[tuple[int, dict[str, Any]]]) -> dict[str, Any]:
    """Each figure over the parts that have it, weighed by games."""
    names = dict.fromkeys(name for _count, found in parts for name in found)
    known = {name: [(count, found[name]) for count, found in parts if name in found] for name in names}
    return {
        name: sum(count * value for count, value in pairs) / sum(count for count, _value in pairs)
        for name, pairs in known.items()
    }


def _mean_of_all(parts: Sequence[tuple[int, dict[str, float]]]) -> dict[str, float]:
    """Each rate over all parts; what did not happen in one of them counts as 0 there."""
    games = sum(count for count, _found in parts)
    kinds = dict.fromkeys(kind for _count, found in parts for kind in found)
    return {kind: sum(count * found.get(kind, 0.0) for count, found in parts) / games for kind in kinds}


def keep_samples(
    folder: Path, finished: Sequence[judging.Finished], rewards: Sequence[float], *, at: dict[str, int]
) -> None:
    """Games to read: the best paid, the worst paid and the one in the middle."""
    for name, k in watching.chosen(rewards).items():
        text = "\n".join(readable(finished[k]))
        runs.append_sample(folder, {"rollout": 0, **at, "chosen": name, "reward": round(rewards[k], 4), "text": text})


def readable(done: judging.Finished) -> list[str]:
    """A game in lines, whose seat is whose and what was for sale first."""
    product = done.game.scenario.products[0]
    own, other = ("seller", "buyer") if done.game.role is Role.SELLER else ("buyer", "seller")
    refused = iter(done.refused)
    return [
        f"{product.title}; list price {product.list_price_cents / 100:,.2f}. "
        f"The learner is the {own}, {done.game.opponent.spec.slug} the {other}.",
        *(
            _line(entry, done, refused, own=own)
            for entry in done.played.log
            if not isinstance(entry.event, NegotiationEnded) or entry.event.reason is not EndReason.DEAL
        ),
    ]


def _line(entry: LogEntry, done: judging.Finished, refused: Iterator[Sequence[str]], *, own: str) -> str:
    """One event with the words and, of the learner, the thought that came with it, or what it wrote that is no move."""
    event = entry.event
    if isinstance(event, NegotiationEnded):
        return f"It ends: {event.reason.value}."
    by = getattr(event, "by", None)
    who = "" if by is None else f"{by.value}{' (learner)' if by.value == own else ''}: "
    action = done.played.actions.get(entry.n)
    if isinstance(event, MoveRefused) and event.by.value == own and type(action) is Say and not action.talk:
        answers = [" / ".join(text.split("\n")) or "nothing" for text in next(refused, ())]
        wrote = ", then ".join(f"“{answer[:LONGEST_SHOWN]}”" for answer in answers)
        return f"{who}{_done(event)}{f', and wrote {wrote}' if wrote else ''}"
    said = f' "{action.talk}"' if action is not None and action.talk else ""
    thought = f" (thinks: {action.thought})" if action is not None and action.thought else ""
    return f"{who}{_done(event)}{said}{thought}"


def _done(event: Event) -> str:
    match event:
        case OfferMade(price_cents=price):
            return f"offers {price / 100:,.2f}"
        case OfferAccepted(price_cents=price):
            return f"takes {price / 100:,.2f}"
        case OfferRejected():
            return "turns the offer down"
        case MessageSent():
            return "says"
        case PartyLeft():
            return "leaves"
        case MoveRefused(code=code):
            return f"writes what is refused ({code})"
        case _:
            return type(event).__name__


def look(
    config: LanguageRun, writer: Writer, tokenizer: Any, *, step: int
) -> tuple[dict[str, Any], list[Any], list[float]]:
    """A few games of the training part with the weights as they are: (figures, games, what each kept)."""
    games = [
        training_game(config.market, number, seed=config.seed, stage="watch", rounds=config.judging.rounds)
        for number in range(config.judging.watch_games)
    ]
    timed, started = Timed(writer), time.perf_counter()
    played = judging.play_together(config, games, timed, tokenizer, judging.model_agent(config))
    finished = [done for done, _asked in played]
    shares = [own_share(done.game, done.played) or 0.0 for done in finished]
    found = figures(finished, shares, group=len(finished))
    found.pop("zero_spread_groups", None)
    line = {"kind": "look", "rollout": 0, "step": step, "share": sum(shares) / max(1, len(shares)), **found}
    line["tokens_per_second"] = timed.tokens / timed.seconds if timed.seconds else None
    line["looking_seconds"] = round(time.perf_counter() - started, 2)
    return {name: value for name, value in line.items() if value is not None}, finished, shares
