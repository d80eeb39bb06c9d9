"""Episodes as data: the JSON record of one, and raw formats of many.

`record` is the one place that turns a stored episode into a public structure; the download of a
room and `export_episodes` both use it. A buyer among other people downloads `record_of_seat`, which
holds what that seat was told and nothing of the others. People are pseudonyms or nothing; thoughts
are left out unless asked for. What a person consented to is checked by whoever selects the episodes.
"""

import hashlib
import json
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from django.db.models import Max, QuerySet

from markets.engine import metrics, observation
from markets.engine.protocol import Party, buyer_party, decode_log, encode
from markets.engine.scenarios import decode_scenario
from markets.engine.state import replay
from markets.models import Episode, EpisodeSeat

SCHEMA_VERSION = "1"


def record(episode: Episode, *, hears: set[int] | None = None, with_thoughts: bool = False) -> dict[str, Any]:
    """One episode as plain data.

    `hears` limits the words to events with these numbers (what one seat was told); None gives all.
    """
    scenario = decode_scenario(episode.scenario)
    outcome = metrics.outcome(scenario, decode_log(episode.log))
    texts = [text for text in episode.texts.all() if hears is None or text.n in hears]
    return _about(episode) | {
        "record_sha256": episode.record_sha256,
        "scenario": json.loads(episode.scenario),
        "seats": [_seat(seat) for seat in episode.seats.all()],
        "events": json.loads(episode.log),
        "texts": [
            {"n": text.n, "party": text.party, "talk": text.talk} | ({"thought": text.thought} if with_thoughts else {})
            for text in texts
        ],
        "outcome": json.loads(encode(outcome))
        | {
            "seller_share": outcome.seller_share,
            "allocation_quality": outcome.allocation_quality,
        },
    }


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


@dataclass(frozen=True)
class Written:
    """A finished file."""

    path: Path
    count: int
    sha256: str


class ExportError(ValueError):
    """An export that cannot be made; the sentence says why."""


def write_jsonl(episodes: QuerySet[Episode], folder: Path) -> Written:
    """One episode a line, in `folder`/episodes.jsonl, oldest first.

    Written beside and moved into place, so that no half file looks whole. Raises `ExportError` when
    the number of lines is not the number of episodes.
    """
    path, draft = folder / "episodes.jsonl", folder / ".episodes.jsonl.part"
    newest = episodes.aggregate(newest=Max("id"))["newest"] or 0
    episodes = episodes.filter(id__lte=newest)  # What ends meanwhile is for the next export.
    expected, count, digest = episodes.count(), 0, hashlib.sha256()
    try:
        if folder.exists() and not folder.is_dir():
            raise ExportError(f"{str(folder)!r} is a file; name a folder to write into.")
        folder.mkdir(parents=True, exist_ok=True)
        with draft.open("wb") as file:
            for episode in episodes.order_by("id").iterator(chunk_size=500):
                line = json.dumps(record(episode), ensure_ascii=False, separators=(",", ":")) + "\n"
                encoded = line.encode("utf-8", "replace")
                file.write(encoded)
                digest.update(encoded)
                count += 1
        if count != expected:
            raise ExportError(f"{count} of {expected} episodes were read; run the export again.")
        draft.replace(path)
    except OSError as error:
        raise ExportError(f"{str(folder)!r} cannot be written: {error.strerror}.") from error
    finally:
        with suppress(OSError):  # There is no draft where there is no folder.
            draft.unlink(missing_ok=True)
    return Written(path, count, digest.hexdigest())
