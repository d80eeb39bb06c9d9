"""When each event of an episode happened, and how long its sender thought: read off the log.

Contract: server time is the wall clock of the server, known for live rooms alone; think time is what
passed since the sender last saw something happen. Both are None where the log keeps no time, and
think time is None for what the market did. Pure.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import NamedTuple

from markets.engine.protocol import SELLER, LogEntry, Party, Role, buyer_party
from markets.engine.scenarios import EventDriven, Scenario


class Moment(NamedTuple):
    """The times of one event."""

    server_time: str | None
    """ISO 8601 in UTC, to the millisecond."""
    think_ms: int | None


def sender(event: object) -> Party | None:
    """Whose move an event came from; None for what the market did."""
    by = getattr(event, "by", None)
    if by is None or getattr(event, "opening", False):
        return None
    return SELLER if by is Role.SELLER else buyer_party(getattr(event, "buyer", 0))


def moments(scenario: Scenario, log: Sequence[LogEntry], *, ended_at: datetime | None) -> list[Moment]:
    """Server time and think time of every event, in order. `ended_at` is the wall clock at the last of them."""
    timed = ended_at is not None or isinstance(scenario.mechanism, EventDriven)
    if not timed:
        return [Moment(None, None)] * len(log)
    opened = None if ended_at is None or not log else ended_at - timedelta(milliseconds=log[-1].at_ms)
    seen_by_seller, seen_in_thread = 0, [0] * (scenario.buyers + 1)
    found = []
    for entry in log:
        party, buyer = sender(entry.event), getattr(entry.event, "buyer", 0)
        think = None
        if party is not None:
            think = entry.at_ms - (seen_by_seller if party == SELLER else seen_in_thread[buyer])
        server = None
        if opened is not None:
            server = (opened + timedelta(milliseconds=entry.at_ms)).isoformat(timespec="milliseconds")
        found.append(Moment(server, think))
        seen_by_seller = entry.at_ms
        if buyer:
            seen_in_thread[buyer] = entry.at_ms
        else:
            seen_in_thread = [entry.at_ms] * len(seen_in_thread)
    return found
