"""NegotiationArena (Bianchi et al. 2024): logs of models that buy from and sell to each other.

One `game_state.json` a game; the `interaction.log` beside it says the same in prose and is passed over.
Only the game of one seller, one buyer and one object is read. What a player wrote for itself (its
reasons, its goals) is kept as thought and private text, never as said.
"""

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from markets.importers.transcripts import reading, records
from markets.importers.transcripts.reading import BadRecord, Repeat
from markets.importers.transcripts.records import Dialogue, Event, EventType, Outcome, Side, Text, Transcript

FORMAT = "negotiation-arena"
CURRENCY = "ZUP"
"""The money of the arena."""
_ANSWERS: dict[str, EventType] = {"PROPOSAL": "offer", "ACCEPT": "accept", "REJECT": "reject"}


def read(path: Path) -> Iterator[tuple[str, Transcript] | BadRecord | Repeat]:
    """Every game, by the names of the files."""
    for file in reading.data_files(path, suffix=".json"):
        raw = reading.json_object(file)
        if isinstance(raw, BadRecord):
            yield raw
            continue
        try:
            yield raw.place, _transcript(raw.content)
        except reading.RecordError as problem:
            yield BadRecord(raw.place, str(problem))


def _transcript(content: Any) -> Transcript:
    game = reading.named(content, what="game")
    if game.get("class") != "BuySellGame":
        raise reading.RecordError("This is no game of buying and selling, which is the only one that can be read.")
    key = reading.words(game.get("run_epoch_time_ms"), what="time of the run", limit=20)
    if not re.fullmatch(r"[0-9]{1,14}", key):
        raise reading.RecordError("The time of the run is no number.")
    states = [reading.named(state, what="state") for state in reading.listed(game.get("game_state"), what="game_state")]
    settings = reading.named(states[0].get("settings") if states else None, what="setting of the game")
    sides, names, product = _sides(game, settings)
    turns = [state for state in states if isinstance(state.get("current_iteration"), int)]
    events, texts = _events(turns, sides, names, product)
    summary = next((state["summary"] for state in states if isinstance(state.get("summary"), dict)), None)
    outcome, price = _outcome(summary, names, sides, product)
    published = _published(summary)
    settled = [msgspec.structs.replace(side, published_payoff=published[place]) for place, side in enumerate(sides)]
    counted = tuple(records.counted(side, events, list_price_cents=None) for side in settled)
    valued = records.in_price(counted, price_cents=price, deal=outcome == "deal")
    if outcome == "unfinished":
        valued = tuple(
            msgspec.structs.replace(
                side,
                surplus_cents=None,
                surplus_share=None,
                notes={**side.notes, "surplus_cents": "The game breaks off before its end."},
            )
            for side in valued
        )
    notes = {"at_ms": records.NO_TIMES, "duration_ms": records.NO_TIMES, "list_price_cents": "There is no list price."}
    if price is None:
        notes["price_cents"] = records.NOT_AGREED
    dialogue = Dialogue(
        format=FORMAT,
        key=key,
        outcome=outcome,
        sides=valued,
        events=events,
        currency=CURRENCY,
        title=product,
        category="object",
        price_cents=price,
        started_at=datetime.fromtimestamp(int(key) / 1000, UTC).isoformat() if len(key) <= 13 else None,
        notes=notes,
    )
    return Transcript(dialogue=dialogue, texts=tuple(texts))


def _inner(value: Any, *, what: str) -> Any:
    """What stands in a typed wrapper, however deep."""
    while isinstance(value, dict) and set(value) == {"_type", "_value"}:
        value = value["_value"]
    if value is None:
        raise reading.RecordError(f"The {what} is missing.")
    return value


def _sides(game: dict[str, Any], settings: dict[str, Any]) -> tuple[list[Side], list[str], str]:
    """Both sides in the players' order, their colours, and the name of the object."""
    players = [reading.named(player, what="player") for player in reading.listed(game.get("players"), what="players")]
    goals = reading.listed(settings.get("player_goals"), what="goals of the players")
    values = reading.listed(settings.get("player_valuation"), what="values of the players")
    if not len(players) == len(goals) == len(values) == 2:
        raise reading.RecordError("There are not exactly two players.")
    sides, names, products = [], [], set()
    for player, goal, value in zip(players, goals, values, strict=True):
        inner = goal.get("_value") if isinstance(goal, dict) else None
        kind = inner.get("_type") if isinstance(inner, dict) else None
        if kind not in ("seller_goal", "buyer_goal"):
            raise reading.RecordError("A player is neither seller nor buyer.")
        worth = reading.named(_inner(value, what="value of a player"), what="value of a player")
        if len(worth) != 1:
            raise reading.RecordError("There is not exactly one object.")
        ((product, amount),) = worth.items()
        products.add(reading.words(product, what="object", limit=100))
        role: Any = "seller" if kind == "seller_goal" else "buyer"
        sides.append(
            Side(
                party="seller" if role == "seller" else "buyer-1",
                role=role,
                kind="agent",
                agent=reading.words(player.get("model") or player.get("class") or "", what="model", limit=200),
                reservation_value_cents=reading.cents(amount, what="value of a player"),
            )
        )
        names.append(
            reading.words(player.get("agent_name"), what="name of a player", limit=100).removeprefix("Player ")
        )
    if sorted(side.role for side in sides) != ["buyer", "seller"] or len(products) != 1 or len(set(names)) != 2:
        raise reading.RecordError("The game has not exactly one seller, one buyer and one object.")
    return sides, names, products.pop()


def _events(
    turns: list[dict[str, Any]], sides: list[Side], names: list[str], product: str
) -> tuple[tuple[Event, ...], list[Text]]:
    events: list[Event] = []
    texts: list[Text] = []
    goals: set[str] = set()
    for n, turn in enumerate(turns, start=1):
        player = turn.get("turn")
        if isinstance(player, bool) or not isinstance(player, int) or player not in (0, 1):
            raise reading.RecordError(f"Turn {n} is by nobody at the table.")
        party = sides[player].party
        public = reading.named(turn.get("player_public_info_dict"), what="public part of a turn")
        private = reading.named(turn.get("player_private_info_dict") or {}, what="private part of a turn")
        answer = public.get("player answer")
        kind = _ANSWERS.get(answer.strip().upper(), "message") if isinstance(answer, str) else "message"
        price = _price(public.get("newly proposed trade"), names, sides, product) if kind == "offer" else None
        events.append(Event(n=n, party=party, type=kind, price_cents=price))
        said, thought = public.get("message"), private.get("reason")
        if said:
            texts.append(Text(n=n, party=party, kind="said", text=reading.words(said, what="message")))
        if thought:
            texts.append(Text(n=n, party=party, kind="thought", text=reading.words(thought, what="reason")))
        if private.get("my goals") and party not in goals:
            goals.add(party)
            told = reading.words(private["my goals"], what="goals")
            texts.append(Text(n=0, party=party, kind="private", text=told))
    return tuple(events), texts


def _price(trade: Any, names: list[str], sides: list[Side], product: str) -> int:
    """What the buyer would give for the one object."""
    given = reading.named(_inner(trade, what="trade"), what="trade")
    by_role = {side.role: given.get(name) for side, name in zip(sides, names, strict=True)}
    goods = reading.named(_inner(by_role["seller"], what="seller's part of a trade"), what="seller's part of a trade")
    money = reading.named(_inner(by_role["buyer"], what="buyer's part of a trade"), what="buyer's part of a trade")
    if goods.get(product) != 1 or set(money) != {CURRENCY}:
        raise reading.RecordError("A trade is not the one object against money.")
    return reading.cents(money[CURRENCY], what="price of a trade")


def _outcome(summary: Any, names: list[str], sides: list[Side], product: str) -> tuple[Outcome, int | None]:
    if summary is None:
        return "unfinished", None
    if summary.get("final_response") == "ACCEPT":
        return "deal", _price(summary.get("proposed_trade"), names, sides, product)
    return "no_deal", None


def _published(summary: Any) -> list[int | None]:
    """What the log says each player came to, in cents, which may be a loss."""
    outcomes = summary.get("player_outcome") if isinstance(summary, dict) else None
    if outcomes is None:
        return [None, None]
    if len(reading.listed(outcomes, what="player_outcome")) != 2:
        raise reading.RecordError("The player_outcome is not of two players.")
    return [_gain(outcome) for outcome in outcomes]


def _gain(outcome: Any) -> int:
    if isinstance(outcome, int | float) and not isinstance(outcome, bool) and outcome < 0:
        return -reading.cents(-outcome, what="player_outcome")
    return reading.cents(outcome, what="player_outcome")
