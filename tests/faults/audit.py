"""What counts as lost: the promises that pages were given, held against what the database holds.

Here: pure comparison of a ledger (`players`) with the stored log, turns, views and episodes of its rooms. Not here:
reading them (`clerk`), and breaking anything.

A room is in order when every acknowledged move is in its log exactly once and nothing that was refused is in it; when
each page shows what the server would show it now; when every turn that an agent owed was taken once or its default is in
the log; and when the episode of its end replays to what is stored.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from markets.engine import rules
from markets.engine.protocol import DeadlinePassed, LogEntry, Party
from markets.engine.scenarios import EventDriven, Scenario
from markets.engine.state import State, evolve, initial

TAKEN = {"done", "defaulted"}


@dataclass(frozen=True)
class Row:
    """One stored event: its entry in the log, whose move caused it, and under which id."""

    entry: LogEntry
    party: Party
    client_move_id: str = ""


@dataclass(frozen=True)
class Turn:
    """One row of the agents' outbox."""

    party: Party
    position: int
    state: str


@dataclass(frozen=True)
class Page:
    """One page's side of the story."""

    party: Party
    moves: Sequence[Mapping[str, Any]]
    """`id` and `answer` of every move it sent."""
    seq: int
    items: Sequence[Sequence[Any]]
    """Number, thread and text of every line it shows."""
    panels: Mapping[str, str]
    ended: bool


@dataclass(frozen=True)
class Stored:
    """The server's side of the story of one room."""

    public_id: str
    scenario: Scenario
    rows: Sequence[Row]
    turns: Sequence[Turn]
    agents: frozenset[Party]
    ended: bool
    views: Mapping[Party, Mapping[str, Any]]
    """What the server would send each page now, from the first event on; nothing where the log is damaged."""
    replays: bool
    """Whether the room has its episode if it is over, and the episode replays to what is stored."""


@dataclass
class Findings:
    """Counts over many rooms, and a sentence for each thing found."""

    rooms: int = 0
    moves: int = 0
    """In the logs, of people and agents."""
    acknowledged: int = 0
    lost: int = 0
    doubled: int = 0
    unconverged: int = 0
    turns_missing: int = 0
    replay_mismatches: int = 0
    defaults: int = 0
    """Agents' default acts, which are in order where a fault kept the agent from answering."""
    unfinished: int = 0
    expired: int = 0
    """People whose time ran out."""
    notes: list[str] = field(default_factory=list)

    @property
    def ok(self) -> bool:
        return not (self.lost or self.doubled or self.unconverged or self.turns_missing or self.replay_mismatches)

    def add(self, name: str, sentence: str, count: int = 1) -> None:
        """Count something found."""
        setattr(self, name, getattr(self, name) + count)
        self.notes.append(f"{name}: {sentence}")


def judge(room: Stored, pages: Sequence[Page], found: Findings) -> None:
    """Count what is wrong with one room."""
    found.rooms += 1
    _moves(room, pages, found)
    _agents(room, found)
    for page in pages:
        _page(room, page, found)
    if not room.ended:
        found.unfinished += 1
    if not room.replays:
        found.add("replay_mismatches", f"{room.public_id} does not replay to its episode")


def _moves(room: Stored, pages: Sequence[Page], found: Findings) -> None:
    written = Counter((row.party, row.client_move_id) for row in room.rows if row.client_move_id)
    known = set()
    for page in pages:
        for move in page.moves:
            key = (page.party, move["id"])
            known.add(key)
            times = written[key]
            found.acknowledged += move["answer"] == "ack"
            if move["answer"] == "ack" and not times:
                found.add("lost", f"{room.public_id} has no {move['type']} {move['id']} of {page.party}")
            if times > 1:
                found.add("doubled", f"{room.public_id} has {move['id']} of {page.party} {times} times", times - 1)
            if move["answer"] == "refused" and times:
                found.add("doubled", f"{room.public_id} refused {move['id']} of {page.party} and has it")
    for party, number in written:
        if (party, number) not in known:
            found.add("doubled", f"{room.public_id} has {number} of {party}, which no page sent")
    people = {page.party for page in pages}
    for row in room.rows:
        if isinstance(row.entry.event, DeadlinePassed):
            found.expired += row.party in people
        found.moves += bool(row.client_move_id)


def _agents(room: Stored, found: Findings) -> None:
    """Every turn that an agent owed: taken once, where it was due, or its default in the log."""
    open_ended = isinstance(room.scenario.mechanism, EventDriven)
    turns = {(turn.party, turn.position): turn for turn in room.turns}
    acted: Counter[tuple[Party, int]] = Counter()
    owed: set[tuple[Party, int]] = set()
    for before, batch in _batches(room):
        party = batch[0].party
        due = set() if before.end_reason is not None else set(rules.parties_due(before))
        if not open_ended:
            owed |= {(each, rules.position(before, each)) for each in due & room.agents}
        if party in room.agents:
            acted[party, rules.position(before, party)] += 1
            found.moves += 1
            found.defaults += isinstance(batch[0].entry.event, DeadlinePassed)
            if not open_ended and party not in due:
                found.add("doubled", f"{room.public_id}: {party} moved out of its turn at {batch[0].entry.n}")
    end = _fold(room)
    if end.end_reason is None and not open_ended:
        owed |= {(each, rules.position(end, each)) for each in set(rules.parties_due(end)) & room.agents}
    for key in sorted(owed):
        turn = turns.get(key)
        if turn is None:
            found.add("turns_missing", f"{room.public_id} never asked {key[0]} at {key[1]}")
        elif turn.state in TAKEN and not acted[key]:
            found.add("turns_missing", f"{room.public_id}: {key[0]} at {key[1]} is {turn.state} and not in the log")
        elif turn.state not in TAKEN and acted[key]:
            found.add("turns_missing", f"{room.public_id}: {key[0]} at {key[1]} moved and its turn is {turn.state}")
        elif turn.state not in TAKEN and end.end_reason is None and rules.position(end, key[0]) == key[1]:
            found.add("turns_missing", f"{room.public_id} still waits for {key[0]} at {key[1]} ({turn.state})")
    for key, times in sorted(acted.items()):
        if times > 1 and not open_ended:
            found.add("doubled", f"{room.public_id}: {key[0]} moved {times} times at {key[1]}", times - 1)
    if open_ended:
        for turn in room.turns:
            if turn.state in TAKEN and not acted[turn.party, turn.position]:
                found.add("turns_missing", f"{room.public_id}: {turn.party} at {turn.position} is not in the log")
            elif turn.state not in (*TAKEN, "superseded") and end.end_reason is None:
                found.add("turns_missing", f"{room.public_id} still waits for {turn.party} at {turn.position}")


def _page(room: Stored, page: Page, found: Findings) -> None:
    """Whether the page shows what the server would show it now."""
    view = room.views.get(page.party)
    if view is None:
        found.add("unconverged", f"{room.public_id} {page.party} cannot be shown anything")
        return
    served = [[item["seq"], item["thread"], item["html"]] for item in view["items"]]
    different = [name for name, text in view["panels"].items() if page.panels.get(name) != text]
    if not room.ended:
        reason = "waits in a room that never ended"
    elif page.ended != view["ended"] or page.seq != view["seq"]:
        reason = f"stopped at {page.seq} of {view['seq']}"
    elif [list(item) for item in page.items] != served:
        reason = "shows other lines than the server"
    elif different:
        reason = f"shows another {', '.join(different)}"
    else:
        return
    found.add("unconverged", f"{room.public_id} {page.party} {reason}")


def _batches(room: Stored) -> list[tuple[State, list[Row]]]:
    """The log cut where one move ends and the next begins, each with the state before it.

    A move's first event names who made it; what follows from it (lapses, the end) does not, and a default act follows
    the deadline that it stands for.
    """
    batches: list[tuple[State, list[Row]]] = []
    state = initial(room.scenario)
    for row in room.rows:
        event = row.entry.event
        named = getattr(event, "by", None) is not None and bool(row.party)
        follows = batches and isinstance(batches[-1][1][-1].entry.event, DeadlinePassed) and len(batches[-1][1]) == 1
        if row.party and named and not follows:
            batches.append((state, [row]))
        elif row.party and batches:
            batches[-1][1].append(row)
        state = evolve(state, event)
    return batches


def _fold(room: Stored) -> State:
    state = initial(room.scenario)
    for row in room.rows:
        state = evolve(state, row.entry.event)
    return state
