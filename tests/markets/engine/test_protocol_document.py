"""docs/protocol.md says what the code does: nothing is missing there and nothing is made up.

Read by outsiders who write agents, importers and analyses against it.
"""

import inspect
import re
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from types import UnionType
from typing import Any, get_args

import msgspec
import pytest

from markets import consumers, room_frames, wire
from markets.engine import protocol, scenarios
from markets.engine.money import CURRENCIES, MAX_PRICE_CENTS, AmountCode

PATH = Path(__file__).parents[3] / "docs" / "protocol.md"


@cache
def sections() -> dict[str, str]:
    """Heading without its hashes and back ticks -> text up to the next heading; `part/heading` for sub-headings."""
    found: dict[str, str] = {}
    part = ""
    for hashes, heading, body in re.findall(r"^(#+) (.+)\n((?:(?!#).*\n)*)", PATH.read_text(encoding="utf-8"), re.M):
        name = heading.replace("`", "")
        if len(hashes) == 2:
            part = name
        key = name if len(hashes) <= 2 else f"{part}/{name}"
        assert key not in found, f"two headings {key!r}"
        found[key] = body
    return found


def rows(section: str) -> list[list[str]]:
    """Cells of every table row of a section, without headers."""
    lines = [line for line in sections()[section].splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
    rules = [number for number, line in enumerate(lines) if re.fullmatch(r"\|[-|]+\|", line)]
    return [row for number, row in enumerate(cells) if number not in rules and number + 1 not in rules]


def documented_fields(section: str) -> dict[str, str]:
    """Field -> default as written, a dash for none."""
    return {row[0].strip("`"): row[2].strip("`") for row in rows(section)}


def fields(struct: type[msgspec.Struct], *, without: Iterable[str] = ()) -> dict[str, str]:
    """Field -> its default in JSON, a dash for none."""

    def default(field: msgspec.structs.FieldInfo) -> str:
        if field.default is msgspec.NODEFAULT and field.default_factory is msgspec.NODEFAULT:
            return "–"
        if field.default is msgspec.UNSET:
            return "left out"
        return msgspec.json.encode(field.default).decode()

    return {field.name: default(field) for field in msgspec.structs.fields(struct) if field.name not in without}


def members(union: Any) -> tuple[type[msgspec.Struct], ...]:
    return get_args(union) if isinstance(union, UnionType) or get_args(union) else (union,)


def tag(struct: type[msgspec.Struct]) -> str:
    return str(struct.__struct_config__.tag)


SHARED = [field.name for field in msgspec.structs.fields(protocol.Message)]
EVENTS = (*members(protocol.Event), protocol.TurnPassed)
BY_HEADING = {
    "Actions": protocol.Message,
    "Scenario": scenarios.Scenario,
    "Scenario/Mechanism alternating": scenarios.Alternating,
    "Scenario/Mechanism seller_turns": scenarios.SellerTurns,
    "Scenario/Mechanism event_driven": scenarios.EventDriven,
    "Scenario/Price range": scenarios.PriceRange,
    "Scenario/Product": scenarios.Product,
    "Scenario/Prior": scenarios.Prior,
    "Scenario/Opening bid": scenarios.OpeningBid,
    "Log": protocol.LogEntry,
}


def test_every_action_is_there_and_no_other() -> None:
    headings = {name.removeprefix("Actions/") for name in sections() if name.startswith("Actions/")}
    assert headings == {tag(action) for action in members(protocol.Action)}


def test_every_event_is_there_and_no_other() -> None:
    headings = {name.removeprefix("Events/") for name in sections() if name.startswith("Events/")}
    assert headings == {tag(event) for event in EVENTS}


@pytest.mark.parametrize("action", members(protocol.Action), ids=tag)
def test_the_fields_of_an_action_are_those_of_the_code(action: type[msgspec.Struct]) -> None:
    assert documented_fields(f"Actions/{tag(action)}") == fields(action, without=SHARED)


@pytest.mark.parametrize("event", EVENTS, ids=tag)
def test_the_fields_of_an_event_are_those_of_the_code(event: type[msgspec.Struct]) -> None:
    assert documented_fields(f"Events/{tag(event)}") == fields(event)
    assert list(documented_fields(f"Events/{tag(event)}")) == list(fields(event)), "in the order of the canonical form"


@pytest.mark.parametrize("heading", BY_HEADING)
def test_the_fields_of_what_is_stored_are_those_of_the_code(heading: str) -> None:
    assert documented_fields(heading) == fields(BY_HEADING[heading])


def test_every_refusal_is_there_with_its_sentence() -> None:
    told = {row[0].strip("`"): row[1] for row in rows("Refusals")}
    assert told == {code.value: sentence for code, sentence in protocol.REFUSAL_SENTENCES.items()}


def test_every_reason_is_there() -> None:
    told = [row[0].strip("`") for row in rows("Reasons")]
    assert told == [*protocol.LapseReason, *protocol.EndReason]


def test_the_limits_are_those_of_the_code() -> None:
    text = PATH.read_text(encoding="utf-8")
    assert f"{MAX_PRICE_CENTS:,} cents" in text
    assert f"at most {protocol.MAX_TALK_CHARS:,} characters" in text
    assert f"Version **{protocol.PROTOCOL_VERSION}**" in text
    assert rows("Versions")[-1][0] == protocol.PROTOCOL_VERSION
    assert all(f"`{currency}`" in text for currency in CURRENCIES)


def test_the_example_log_is_one() -> None:
    (example,) = re.findall(r"```json\n(.*?)```", PATH.read_text(encoding="utf-8"), re.S)
    log = protocol.decode_log(example)
    assert [entry.n for entry in log] == [1, 2, 3, 4]


# --- Frames of the room socket ------------------------------------------------------------------------------


def frames(side: str) -> set[str]:
    start = f"The room socket/From the {side}: "
    return {name.removeprefix(start) for name in sections() if name.startswith(start)}


def test_every_frame_of_a_page_is_there_and_no_other() -> None:
    assert frames("page") == {tag(frame) for frame in members(wire.ClientFrame)}


@pytest.mark.parametrize("frame", members(wire.ClientFrame), ids=tag)
def test_the_fields_of_a_pages_frame_are_those_of_the_code(frame: type[msgspec.Struct]) -> None:
    assert documented_fields(f"The room socket/From the page: {tag(frame)}") == fields(frame)


@pytest.mark.parametrize("action", members(wire.ActionWire), ids=tag)
def test_the_fields_of_an_action_on_the_wire_are_those_of_the_code(action: type[msgspec.Struct]) -> None:
    assert documented_fields(f"The room socket/Action {tag(action)}") == fields(action)


def test_every_frame_that_the_server_builds_is_there() -> None:
    source = "".join(inspect.getsource(module) for module in (wire, room_frames, consumers))
    built = set(re.findall(r'"type": "([a-z_]+)"', source))
    assert built - {"room"} <= frames("server")
    assert {"view", "ack", "refused", "preview", "price_read", "typing", "error", "pong"} <= built


def test_the_codes_of_the_price_reader_are_told_apart_from_the_refusals() -> None:
    """Both travel in `refused`; a code must mean one thing."""
    assert not set(AmountCode) & set(protocol.RefusalCode)


def test_links_inside_the_page_lead_somewhere() -> None:
    text = PATH.read_text(encoding="utf-8")
    anchors = {re.sub(r"[^a-z0-9 -]", "", name.lower()).replace(" ", "-") for name in sections() if "/" not in name}
    assert set(re.findall(r"\]\(#([^)]+)\)", text)) <= anchors
