"""Episodes as data: the JSON record of one.

`record` is the one place that turns a stored episode into a public structure; the download of a
room and `export_episodes` both use it. A buyer among other people downloads `record_of_seat`, which
holds what that seat was told and nothing of the others. People are pseudonyms or nothing; thoughts
are left out unless asked for. What a person consented to is checked by whoever selects the episodes.
Not here: files (`export_files`), tables (`export_tables`), splits and masks, the formats of training.
"""

import json
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any

from markets import export_times
from markets.engine import metrics, observation
from markets.engine.protocol import LogEntry, Party, buyer_party, decode_log, encode
from markets.engine.scenarios import Scenario, decode_scenario
from markets.engine.state import replay
from markets.models import Episode, EpisodeSeat, EpisodeSource

SCHEMA_VERSION = "2"


def record(
    episode: Episode,
    *,
    hears: set[int] | None = None,
    with_thoughts: bool = False,
    mask: Callable[[str], str] = str,
    pseudonyms: Mapping[int, str] | None = None,
) -> dict[str, Any]:
    """One episode as plain data.

    `hears` limits the words to events with these numbers (what one seat was told); None gives all.
    `mask` is put over words; `pseudonyms` names people by the number of their row, None names nobody.
    """
    scenario, log = decoded(episode)
    outcome = metrics.outcome(scenario, log)
    texts = [text for text in episode.texts.all() if hears is None or text.n in hears]
    return _about(episode) | {
        "record_sha256": episode.record_sha256,
        "scenario": json.loads(readable(episode.scenario)),
        "seats": [_seat(seat) | _named(seat, pseudonyms) for seat in episode.seats.all()],
        "events": json.loads(episode.log),
        "texts": [
            {"n": text.n, "party": text.party, "talk": mask(text.talk)}
            | ({"thought": mask(text.thought)} if with_thoughts else {})
            for text in texts
        ],
        "outcome": json.loads(encode(outcome))
        | {
            "seller_share": outcome.seller_share,
            "allocation_quality": outcome.allocation_quality,
        },
    }


def times(episode: Episode) -> list[dict[str, Any]]:
    """Server time and think time of every event, by its number."""
    scenario, log = decoded(episode)
    moments = export_times.moments(scenario, log, ended_at=ended_at(episode))
    return [
        {"n": entry.n, "server_time": moment.server_time, "think_ms": moment.think_ms}
        for entry, moment in zip(log, moments, strict=True)
    ]


def decoded(episode: Episode) -> tuple[Scenario, tuple[LogEntry, ...]]:
    """Scenario and log, whatever halves of characters stand in the names of products."""
    return decode_scenario(readable(episode.scenario)), decode_log(episode.log)


def readable(text: str) -> str:
    """Stored JSON without halves of characters: each becomes a question mark."""
    if "\\ud" not in text and "\\uD" not in text:
        return text
    return json.dumps(json.loads(text), ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace").decode()


def ended_at(episode: Episode) -> datetime | None:
    """When a game in a live room ended on the wall clock; None for any other episode."""
    return episode.created_at if episode.source == EpisodeSource.LIVE else None


def record_of_seat(episode: Episode, party: Party) -> dict[str, Any]:
    """What a buyer may take home of a negotiation in which other buyers were people.

    Its own thread as it was shown, numbered for this seat, its own value and the seller's, revealed.
    The draw's seed and the hash are left out: the values of all others can be found from them.
    """
    scenario, log = decode_scenario(episode.scenario), decode_log(episode.log)
    seen = observation.seen_events(scenario, log, party)
    end_reason = observation.observe(replay(scenario, log), party).end_reason
    own = next(seat for seat in episode.seats.all() if seat.party == party)
    numbers = {event.n: event.seq for event in seen}
    facts = json.loads(episode.scenario)
    del facts["seed"]
    return _about(episode) | {
        "seat": party,
        "scenario": facts
        | {
            "buyer_values_cents": [
                values if buyer_party(buyer) == party else None
                for buyer, values in enumerate(facts["buyer_values_cents"], start=1)
            ],
            "opening_bids": [bid for bid in facts["opening_bids"] if buyer_party(bid["buyer"]) == party],
        },
        "seats": [_seat(own)],
        "events": [{"n": event.seq, "at_ms": event.at_ms, "event": json.loads(encode(event.event))} for event in seen],
        "texts": [
            {"n": numbers[text.n], "party": text.party, "talk": text.talk}
            for text in episode.texts.all()
            if text.n in numbers and text.talk
        ],
        "outcome": {
            "end_reason": end_reason,
            "surplus_cents": own.surplus_cents,
            "surplus_share": own.surplus_share,
        },
    }


def _about(episode: Episode) -> dict[str, Any]:
    return {
        "schema_version": SCHEMA_VERSION,
        "episode": episode.public_id,
        "source": episode.source,
        "market": episode.market.slug,
        "market_version": episode.market.version,
        "protocol_version": episode.protocol_version,
        "ended_at": episode.created_at.isoformat(),
        "consent_scope": episode.consent_scope,
    }


def _seat(seat: EpisodeSeat) -> dict[str, Any]:
    return {
        "party": seat.party,
        "role": seat.role,
        "kind": seat.kind,
        "agent": seat.agent_slug or None,
        "agent_version": seat.agent_version or None,
        "surplus_cents": seat.surplus_cents,
        "surplus_share": seat.surplus_share,
    }


def _named(seat: EpisodeSeat, pseudonyms: Mapping[int, str] | None) -> dict[str, Any]:
    """Whose chair it was, under a pseudonym; null for an agent and for somebody who was erased."""
    return {} if pseudonyms is None else {"participant": pseudonyms.get(seat.participant_id or 0)}


class ExportError(ValueError):
    """An export that cannot be made; the sentence says why."""
