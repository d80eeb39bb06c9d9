"""CaSiNo (Chawla et al. 2021): two campers divide food, water and firewood.

JSON lists of records. A unit of what somebody wants most is worth 5 points to them, then 4 and 3;
walking away is worth 5 in all. Who took part (age, gender, ethnicity, education, personality) and how
they liked it is not read.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from markets.importers.transcripts import reading, records
from markets.importers.transcripts.reading import BadRecord, Repeat
from markets.importers.transcripts.records import Dialogue, Event, EventType, Outcome, Side, Text, Transcript, Units

FORMAT = "casino"
POINTS = {"High": 5, "Medium": 4, "Low": 3}
WALK_AWAY_POINTS = 5
UNITS = 3
"""Of each issue."""
_MOVES: dict[str, EventType] = {
    "Submit-Deal": "offer",
    "Accept-Deal": "accept",
    "Reject-Deal": "reject",
    "Walk-Away": "leave",
}


def read(path: Path) -> Iterator[tuple[str, Transcript] | BadRecord | Repeat]:
    """Every record of the files, in their order."""
    for file in reading.data_files(path, suffix=".json"):
        for raw in reading.json_list(file, of="dialogues"):
            if isinstance(raw, BadRecord):
                yield raw
                continue
            try:
                yield raw.place, _transcript(raw.content)
            except reading.RecordError as problem:
                yield BadRecord(raw.place, str(problem))


def _transcript(content: Any) -> Transcript:
    fields = reading.named(content, what="record")
    key = str(reading.count(fields.get("dialogue_id"), what="dialogue_id", limit=10**9))
    info = reading.named(fields.get("participant_info"), what="participant_info")
    if len(info) != 2:
        raise reading.RecordError("There are not exactly two participants.")
    parties = {name: f"party-{place}" for place, name in enumerate(sorted(info), start=1)}
    sides, texts = [], []
    for name, party in parties.items():
        side, reasons = _side(info[name], party)
        sides.append(side)
        if reasons:
            texts.append(Text(n=0, party=party, kind="private", text=reasons))
    issues = dict.fromkeys(sorted(sides[0].points or {}), UNITS)
    if any(sorted(side.points or {}) != list(issues) for side in sides):
        raise reading.RecordError("The two participants do not divide the same things.")
    events = _events(fields.get("chat_logs"), parties, issues, texts)
    outcome, split = _outcome(events)
    settled = tuple(records.counted(_settled(side, outcome, split), events, list_price_cents=None) for side in sides)
    dialogue = Dialogue(
        format=FORMAT,
        key=key,
        outcome=outcome,
        sides=settled,
        events=events,
        title="Food, water and firewood for two campers",
        category="camping",
        issues=issues,
        notes={"at_ms": records.NO_TIMES, "started_at": records.NO_TIMES, "duration_ms": records.NO_TIMES},
    )
    return Transcript(dialogue=dialogue, texts=tuple(texts))


def _side(content: Any, party: str) -> tuple[Side, str]:
    """A camper, and in its words why it wants what it wants."""
    fields = reading.named(content, what="participant")
    wants = reading.named(fields.get("value2issue"), what="value2issue")
    if sorted(wants) != sorted(POINTS):
        raise reading.RecordError("A participant has no order of High, Medium and Low.")
    points = {reading.words(issue, what="issue", limit=50): POINTS[level] for level, issue in wants.items()}
    if len(points) != len(POINTS):
        raise reading.RecordError("A participant wants the same thing twice.")
    outcomes = reading.named(fields.get("outcomes") or {}, what="outcomes")
    scored = outcomes.get("points_scored")
    reasons = reading.named(fields.get("value2reason") or {}, what="value2reason")
    side = Side(
        party=party,
        role="",
        kind="person",
        points=points,
        no_deal_points=WALK_AWAY_POINTS,
        published_payoff=None if scored is None else reading.count(scored, what="points_scored"),
    )
    told = [
        f"{level}: {reading.words(reasons[level], what='reason of a participant')}"
        for level in POINTS
        if reasons.get(level)
    ]
    return side, "\n".join(told)


def _events(content: Any, parties: dict[str, str], issues: Units, texts: list[Text]) -> tuple[Event, ...]:
    events = []
    for n, entry in enumerate(reading.listed(content, what="chat_logs"), start=1):
        turn = reading.named(entry, what="turn")
        name = turn.get("id")
        if not isinstance(name, str) or name not in parties:
            raise reading.RecordError(f"Turn {n} is by nobody at the table.")
        text = reading.words(turn.get("text"), what="text of a turn")
        task = reading.named(turn.get("task_data") or {}, what="task_data")
        move = _MOVES.get(text) if task else None
        if task and move is None:
            raise reading.RecordError(f"Turn {n} is a move that this corpus does not have.")
        units = None
        if move == "offer":
            other = next(party for each, party in parties.items() if each != name)
            units = {
                parties[name]: _units(task.get("issue2youget"), issues),
                other: _units(task.get("issue2theyget"), issues),
            }
        elif move is None:
            texts.append(Text(n=n, party=parties[name], kind="said", text=text))
        events.append(Event(n=n, party=parties[name], type=move or "message", units=units))
    return tuple(events)


def _units(content: Any, issues: Units) -> Units:
    split = reading.named(content, what="division of an offer")
    if sorted(split) != list(issues):
        raise reading.RecordError("An offer does not divide what there is.")
    return {issue: reading.count(split[issue], what="count of an offer", limit=issues[issue]) for issue in issues}


def _outcome(events: tuple[Event, ...]) -> tuple[Outcome, dict[str, Units] | None]:
    if not events or events[-1].type not in ("accept", "leave"):
        return "unfinished", None
    if events[-1].type == "leave":
        return "walk_away", None
    offer = next((event for event in reversed(events) if event.type == "offer"), None)
    if offer is None or offer.units is None or offer.party == events[-1].party:
        raise reading.RecordError("A deal was accepted that the other side never offered.")
    return "deal", offer.units


def _settled(side: Side, outcome: Outcome, split: dict[str, Units] | None) -> Side:
    points = side.points or {}
    if split is not None:
        got = split[side.party]
        paid = sum(points[issue] * units for issue, units in got.items())
        return msgspec.structs.replace(side, units=got, payoff_points=paid)
    if outcome == "walk_away":
        return msgspec.structs.replace(side, payoff_points=WALK_AWAY_POINTS)
    return msgspec.structs.replace(side, notes={"payoff_points": "The dialogue breaks off before its end."})
