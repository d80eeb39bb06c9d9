"""Golden transcripts: chosen negotiations with every event they must give, as files to be read.

Each `*.json` beside this module holds a scenario, the moves of its parties in order, and what the
rules make of them: the log, what each party may see of it, and what it came to. `written` plays
the moves again and gives the text that the file must have. After a wanted change of the rules or
the protocol:

    python -m tests.markets.engine.golden            # shows what would change, line by line
    python -m tests.markets.engine.golden --write    # changes the files

and the commit says why. To add a transcript, write a file with `about`, `scenario` and `moves`
alone; the second command fills in the rest, which is then read before it is committed.
"""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from markets.engine import metrics, observation
from markets.engine.protocol import Action, IllegalAction, Party, RefusalCode, encode
from markets.engine.scenarios import Scenario, decode_scenario
from tests.markets.engine.factories import Table
from tests.markets.engine.games import parties_of

FOLDER = Path(__file__).parent


class Move(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True, forbid_unknown_fields=True):
    """One attempt of a party: an action, or bytes that are none, or letting its time run out; or, on a
    simulated clock, that nobody will ever wake."""

    party: Party
    at_ms: int
    action: Action | None = None
    """None for bytes that are no move; the engine is told of them as malformed."""
    time_ran_out: bool = False
    nobody_wakes: bool = False
    agent: bool = False
    """An agent's broken move is logged and costs its message; a person's is only answered."""


class Story(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What a transcript is about and what happens in it, before the rules had their say."""

    about: str
    scenario: Scenario
    moves: tuple[Move, ...]


def load(name: str) -> Story:
    """The story of a transcript, without what it must lead to."""
    stored = json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))
    return Story(
        about=stored["about"],
        scenario=decode_scenario(json.dumps(stored["scenario"])),
        moves=msgspec.convert(
            [{k: v for k, v in move.items() if k != "refused"} for move in stored["moves"]], tuple[Move, ...]
        ),
    )


def written(story: Story) -> str:
    """The whole file: the story played by the rules as they are, one line an event."""
    table = Table(story.scenario)
    moves: list[dict[str, Any]] = []
    for move in story.moves:
        refused = _make(table, move)
        moves.append(_plain(move) | ({"refused": refused.value} if refused else {}))
    seen = {
        party: [
            {"seq": each.seq, "at_ms": each.at_ms, "thread": each.thread, "event": _plain(each.event)}
            for each in observation.seen_events(story.scenario, table.log, party)
        ]
        for party in parties_of(story.scenario)
    }
    return _layout(
        {
            "about": story.about,
            "scenario": _plain(story.scenario),
            "moves": moves,
            "log": [_plain(entry) for entry in table.log],
            "seen": seen,
            "outcome": _plain(metrics.outcome(story.scenario, table.log)),
        }
    )


def _make(table: Table, move: Move) -> RefusalCode | None:
    """Make one move at the table; the code where it was refused."""
    if move.time_ran_out:
        table.expire(move.party, at_ms=move.at_ms)
        return None
    if move.nobody_wakes:
        table.fall_silent(at_ms=move.at_ms)
        return None
    if move.action is None:
        table.refuse(move.party, RefusalCode.MALFORMED, at_ms=move.at_ms)
        return RefusalCode.MALFORMED
    try:
        table.play(move.party, move.action, at_ms=move.at_ms)
    except IllegalAction as refused:
        if move.agent:
            table.refuse(move.party, refused.code, buyer=move.action.buyer, at_ms=move.at_ms)
        return refused.code
    return None


def _plain(value: object) -> Any:
    return json.loads(encode(value))


def _layout(whole: dict[str, Any]) -> str:
    """JSON with one line an item, so that a changed event is a changed line."""
    parts = []
    for key, value in whole.items():
        if isinstance(value, list):
            parts.append(f'"{key}": {_list(value)}')
        elif key == "seen":
            inner = ",\n".join(f'"{party}": {_list(events)}' for party, events in value.items())
            parts.append(f'"{key}": {{\n{inner}\n}}')
        else:
            parts.append(f'"{key}": {_line(value)}')
    return "{\n" + ",\n".join(parts) + "\n}\n"


def _list(items: Sequence[Any]) -> str:
    return "[\n" + ",\n".join("  " + _line(item) for item in items) + "\n]" if items else "[]"


def _line(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def names() -> list[str]:
    """The transcripts there are."""
    return sorted(path.stem for path in FOLDER.glob("*.json"))
