"""What a run imitates, out of the sources of this server: which negotiations, and how many its model can read.

Here: what a small model has words for (`gather`), and the lessons of a language model (`lessons`). Not here: the sources
themselves (`training.datasets`), the files in a run's folder (`training.dialogues`, `training.language.lessons`).

Contract: only the training part of a source is imitated; what is held out for evaluation never is. A negotiation that
the model has no words for is left out and counted by its reason. Of an imported dialogue a small model reads the formal
moves alone, and only where these are all that was done and somebody's limit was told: a target is no limit.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

import msgspec

from agents.learned.dialogue import Message
from markets.engine.protocol import MessageSent, MoveRefused, Party, Role, role_of
from markets.engine.scenarios import Alternating, EventDriven, SellerTurns
from training import datasets, dialogues
from training.config import Game
from training.datasets import Chosen, DataError, Kind
from training.language.config import LanguageRun
from training.language.demonstrations import Row
from training.rows import Source, Tally

READ_OF_A_CORPUS = 300
"""Dialogues of a corpus that are looked at before a launch."""
MECHANISMS: Mapping[str, type] = {"turns": SellerTurns, "rounds": Alternating, "clock": EventDriven}

OTHER_GAME = "of another kind of game than the one that is learned"
TALKED = "somebody said something that is no formal move"
REFUSED = "a move was refused by the rules"
NO_LIMIT = "its sides were told a target and no limit"
NO_WORDS = "it holds moves that this model has no words for"


@dataclass(frozen=True)
class Gathered:
    """The dialogues of a choice."""

    dialogues: tuple[tuple[Message, ...], ...]
    looked_at: int
    """Negotiations of the choice's training part."""
    left_out: Mapping[str, int] = field(default_factory=dict)
    """How many were left out, by reason."""

    @property
    def sentence(self) -> str:
        """What was found."""
        reasons = "; ".join(f"{count:,}: {reason}" for reason, count in self.left_out.items())
        return (
            f"of {self.looked_at:,} negotiations chosen, {len(self.dialogues):,} can be written in the words of this "
            f"model{f' ({reasons})' if reasons else ''}."
        )


@dataclass(frozen=True)
class Taught:
    """The lessons of a choice."""

    games: tuple[tuple[Row, ...], ...]
    """The decisions of each side of each conversation."""
    looked_at: int
    moves: int
    """Moves that were looked at."""

    @property
    def rows(self) -> int:
        """Decisions to learn."""
        return sum(map(len, self.games))

    @property
    def sentence(self) -> str:
        """What was found."""
        return (
            f"of {self.looked_at:,} conversations chosen with {self.moves:,} moves, {self.rows:,} moves can be taught."
        )


# --- A small model --------------------------------------------------------------------------------------


def check(chosen: Chosen, game: Game) -> None:
    """Raise `DataError` with a sentence unless a small model can imitate this for its game."""
    chosen = _seen_from(chosen, game)
    datasets.check(chosen)
    if chosen.kind is Kind.CORPUS:
        few = gather(msgspec.structs.replace(chosen, most=min(chosen.most, READ_OF_A_CORPUS)), game)
        if not few.dialogues:
            raise DataError(
                f"The tiny preset reads moves and prices, not sentences: {few.sentence} Human dialogues are imitated in their "
                "words by a language model: choose the preset smollm2."
            )


def _seen_from(chosen: Chosen, game: Game) -> Chosen:
    """The choice from the learner's side."""
    sides = datasets.sides(chosen)
    if game.role.value not in sides:
        raise DataError(
            f"{chosen.name!r} is about things to divide: nobody sells, and the tiny preset reads prices. Human dialogues are "
            "imitated in their words by a language model: choose the preset smollm2."
        )
    return msgspec.structs.replace(chosen, perspective=game.role.value)


def gather(chosen: Chosen, game: Game, *, progress: Callable[[], None] = lambda: None) -> Gathered:
    """Every negotiation of the choice that can be imitated. Raises `DataError`."""
    chosen = _seen_from(chosen, game)
    found: list[tuple[Message, ...]] = []
    reasons: Counter[str] = Counter()
    looked_at = 0
    for source in datasets.played(chosen):
        for party in (each for each in source.chairs if role_of(each) is game.role):
            progress()
            looked_at += 1
            if (why := _reason(source, party, game, imported=chosen.kind is Kind.CORPUS)) is None:
                own = _written(source, party, game)
                why = NO_WORDS if own is None else None
                found += [own] if own is not None else []
            if why is not None:
                reasons[why] += 1
    return Gathered(tuple(found), looked_at, dict(reasons.most_common()))


def _reason(source: Source, party: Party, game: Game, *, imported: bool) -> str | None:
    """Why a small model cannot imitate a negotiation; None where nothing speaks against it yet."""
    scenario = source.scenario
    same = (
        scenario.family is game.family
        and isinstance(scenario.mechanism, MECHANISMS[game.mechanism])
        and len(scenario.products) == (game.products if game.catalogue else 1)
    )
    own = [entry.event for entry in source.log if getattr(entry.event, "by", None) is game.role]
    own = [event for event in own if game.role is Role.SELLER or getattr(event, "buyer", 0) == _number(party)]
    if not same:
        return OTHER_GAME
    if any(isinstance(event, MessageSent) for event in own):
        return TALKED
    if any(isinstance(event, MoveRefused) for event in own):
        return REFUSED
    return NO_LIMIT if imported and not source.limits_known else None


def _number(party: Party) -> int:
    return int(party.rpartition("-")[2])


def _written(source: Source, party: Party, game: Game) -> tuple[Message, ...] | None:
    if game.dialogue == "ladder":
        return dialogues.compact(source.scenario, source.log)
    return dialogues.told_anew(source.scenario, source.log, party)


# --- A language model -----------------------------------------------------------------------------------


def check_lessons(chosen: Chosen, config: LanguageRun) -> None:
    """Raise `DataError` with a sentence unless a language model can be taught this."""
    if chosen.kind is Kind.CORPUS and config.protocol != "four_part":
        raise DataError(
            "People's dialogues are written in labelled text and this run learns to call functions: write protocol=four_part under "
            "Other settings, or choose another source."
        )
    for side in _sides(chosen, config):
        datasets.check(_asked(chosen, config, side))


def lessons(chosen: Chosen, config: LanguageRun, *, progress: Callable[[], None] = lambda: None) -> Taught:
    """Every move of the choice that can be taught, from the sides that the run learns. Raises `DataError`."""
    tally, looked_at = Tally(), 0
    games: list[tuple[Row, ...]] = []
    for side in _sides(chosen, config):
        for rows in datasets.lessons(_asked(chosen, config, side), tally):
            progress()
            looked_at += 1
            if rows:
                games.append(tuple(map(_lesson, rows)))
    return Taught(tuple(games), looked_at, tally.decisions)


def _sides(chosen: Chosen, config: LanguageRun) -> tuple[str, ...]:
    """The sides whose moves are taught: those that the run learns, or every party where nobody sells."""
    known = datasets.sides(chosen)
    own = tuple(role.value for role in config.market.roles if role.value in known)
    return own or known


def _asked(chosen: Chosen, config: LanguageRun, side: str) -> Chosen:
    return msgspec.structs.replace(chosen, perspective=side, protocol=config.protocol, thoughts=config.thoughts)


def _lesson(row: Mapping[str, object]) -> Row:
    messages = row["messages"]
    tools = row.get("tools")
    assert isinstance(messages, list)
    return Row(messages[:-1], tuple(msgspec.json.decode(tools)) if isinstance(tools, str) else (), messages[-1])
