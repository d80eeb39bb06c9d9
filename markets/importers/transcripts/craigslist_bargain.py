"""CraigslistBargain (He et al. 2018): people bargain over a price, each told a target.

JSON lists of records. A target is what somebody was told to aim for, no reservation value, so surplus
is None. An offer that was turned down still stands in a record's `outcome`; what counts is `reward`.
"""

import math
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from markets.importers.transcripts import reading, records
from markets.importers.transcripts.reading import BadRecord, Repeat
from markets.importers.transcripts.records import Dialogue, Event, EventType, Outcome, Side, Text, Transcript

FORMAT = "craigslist-bargain"
_TYPES: dict[str, EventType] = {
    "message": "message",
    "offer": "offer",
    "accept": "accept",
    "reject": "reject",
    "quit": "leave",
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
    key = reading.key(fields.get("uuid"), what="uuid")
    scenario = reading.named(fields.get("scenario"), what="scenario")
    sides, item = _sides(scenario)
    parties = [side.party for side in sides]
    events, texts, started_at = _events(fields.get("events"), parties)
    list_price = reading.cents(item.get("Price"), what="price of the item")
    outcome, price, notes = _outcome(fields.get("outcome"), events)
    if any(event.type == "message" and event.began_ms is None for event in events):
        notes["began_ms"] = "The corpus does not say of every message when it was begun."
    if started_at is None:
        notes["started_at"] = notes["duration_ms"] = notes["at_ms"] = records.NO_TIMES
    if not list_price:
        notes["list_price_cents"] = "The listing gives no price."
    counted = tuple(records.counted(side, events, list_price_cents=list_price) for side in sides)
    dialogue = Dialogue(
        format=FORMAT,
        key=key,
        outcome=outcome,
        sides=records.in_price(counted, price_cents=price, deal=outcome == "deal"),
        events=events,
        currency="USD",
        title=reading.words(item.get("Title", ""), what="title", limit=500),
        category=reading.words(scenario.get("category", ""), what="category", limit=100),
        list_price_cents=list_price or None,
        price_cents=price,
        price_ratio=price / list_price if price is not None and list_price else None,
        started_at=started_at,
        duration_ms=events[-1].at_ms if events else None,
        notes=notes,
    )
    return Transcript(dialogue=dialogue, texts=(*_descriptions(scenario, parties), *texts))


def _sides(scenario: dict[str, Any]) -> tuple[tuple[Side, ...], dict[str, Any]]:
    """Both sides by the number of their agent, and the item as the buyer saw it."""
    sides, items = [], {}
    for knowledge in reading.listed(scenario.get("kbs"), what="list of what each side knows"):
        knows = reading.named(knowledge, what="knowledge of a side")
        personal = reading.named(knows.get("personal"), what="task of a side")
        role = personal.get("Role")
        if role not in ("seller", "buyer"):
            raise reading.RecordError("A side is neither seller nor buyer.")
        limit = personal.get("Bottomline")
        target = personal.get("Target")
        sides.append(
            Side(
                party="seller" if role == "seller" else "buyer-1",
                role=role,
                kind="person",
                target_cents=None if target is None else reading.cents(target, what=f"target of the {role}"),
                reservation_value_cents=None
                if limit is None
                else reading.cents(limit, what=f"bottom line of the {role}"),
                notes={"target_cents": "The corpus gives none."} if target is None else {},
            )
        )
        items[role] = reading.named(knows.get("item"), what="item")
    if sorted(side.role for side in sides) != ["buyer", "seller"]:
        raise reading.RecordError("The record has not exactly one seller and one buyer.")
    return tuple(sides), items["buyer"]


def _descriptions(scenario: dict[str, Any], parties: list[str]) -> Iterator[Text]:
    for party, knowledge in zip(parties, scenario["kbs"], strict=True):
        lines = knowledge["item"].get("Description") or []
        text = "\n".join(reading.words(line, what="description") for line in reading.listed(lines, what="description"))
        if text:
            yield Text(n=0, party=party, kind="private", text=reading.words(text, what="description"))


def _events(content: Any, parties: list[str]) -> tuple[tuple[Event, ...], list[Text], str | None]:
    raw = [reading.named(event, what="event") for event in reading.listed(content, what="list of events")]
    times = [_seconds(event.get("time"), what="time of an event") for event in raw]
    first = next((time for time in times if time is not None), None)
    events, texts = [], []
    for n, (event, time) in enumerate(zip(raw, times, strict=True), start=1):
        action, agent = event.get("action"), event.get("agent")
        if not isinstance(action, str) or action not in _TYPES:
            raise reading.RecordError(f"Event {n} is none that this corpus has.")
        if isinstance(agent, bool) or not isinstance(agent, int) or not 0 <= agent < len(parties):
            raise reading.RecordError(f"Event {n} is by nobody at the table.")
        data = event.get("data")
        price = data.get("price") if action == "offer" and isinstance(data, dict) else None
        events.append(
            Event(
                n=n,
                party=parties[agent],
                type=_TYPES[action],
                at_ms=_since(first, time),
                began_ms=_since(first, _begun(event.get("start_time"))),
                price_cents=None if price is None else reading.cents(price, what="offered price"),
            )
        )
        if action == "message":
            texts.append(Text(n=n, party=parties[agent], kind="said", text=reading.words(data, what="message")))
    began = None if first is None else datetime.fromtimestamp(first, UTC).isoformat()
    return tuple(events), texts, began


def _seconds(value: Any, *, what: str) -> float | None:
    if value is None:
        return None
    try:
        seconds = float(value)
    except (TypeError, ValueError, OverflowError):
        raise reading.RecordError(f"The {what} is no time.") from None
    if not math.isfinite(seconds) or not 0 <= seconds < 1e10:
        raise reading.RecordError(f"The {what} is no time.")
    return seconds


def _begun(value: Any) -> float | None:
    """When somebody began to write; None where the clock of their browser was not set (a negative time)."""
    try:
        return _seconds(value, what="start of an event")
    except reading.RecordError:
        return None


def _since(first: float | None, time: float | None) -> int | None:
    return None if first is None or time is None else round((time - first) * 1000)


def _outcome(content: Any, events: tuple[Event, ...]) -> tuple[Outcome, int | None, dict[str, str]]:
    """How it ended, the agreed price, and what to know of it."""
    fields = reading.named(content if content is not None else {}, what="outcome")
    reward = fields.get("reward")
    if isinstance(reward, bool) or reward not in (0, 1, None):
        raise reading.RecordError("The reward of the outcome is neither 0 nor 1.")
    if reward == 1:
        offer = reading.named(fields.get("offer"), what="agreed offer")
        price = reading.cents(offer.get("price"), what="agreed price")
        offered = any(event.type == "offer" and event.price_cents == price for event in events)
        return "deal", price, {} if offered else {"price_cents": "No formal offer of this price was made."}
    notes = {"price_cents": records.NOT_AGREED}
    if reward is None:
        return "unfinished", None, notes
    left = any(event.type == "leave" for event in events)
    return "walk_away" if left else "no_deal", None, notes
