"""Episodes as two tables: one row an episode, one row an event.

Here: the columns with their types and meanings, and the rows. Not here: files (`export_files`), the
record of one episode with everything in it (`export`).

Contract: a row holds its columns in order. Amounts are integer cents, shares fractions, undefined is
None. What an event does not have is None, so that one table holds every type of event.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any, NamedTuple

from markets import export_times
from markets.engine.protocol import LogEntry
from markets.engine.scenarios import Scenario
from markets.export import ended_at, readable
from markets.models import Episode

TEXT, INT, FLOAT, BOOL = "string", "int64", "float64", "bool"


class Column(NamedTuple):
    """A column of a table."""

    name: str
    type: str
    meaning: str


EPISODES = (
    Column("episode", TEXT, "public identifier of the episode"),
    Column("split", TEXT, "train, validation or test; no scenario and no participant is in two"),
    Column("source", TEXT, "where it was played: live, simulated, or what it was imported from"),
    Column("market", TEXT, "slug of the market that drew the scenario"),
    Column("market_version", INT, "version of that market"),
    Column("family", TEXT, "bilateral, multi_buyer or catalogue"),
    Column("mechanism", TEXT, "how turns are taken: alternating, seller_turns or event_driven"),
    Column("currency", TEXT, "ISO 4217 code of every amount"),
    Column("protocol_version", TEXT, "version of events and actions"),
    Column("ended_at", TEXT, "when it ended, ISO 8601 in UTC"),
    Column("consent_scope", TEXT, "whom the people in it let use it; public where no person was"),
    Column("record_sha256", TEXT, "hash of protocol version, scenario, seats without identity, and events"),
    Column("buyers", INT, "number of buyers"),
    Column("products", INT, "number of products"),
    Column("title", TEXT, "title of the first product"),
    Column("list_price_cents", INT, "list price of the first product"),
    Column("cost_cents", INT, "the seller's reservation value for the first product"),
    Column("highest_value_cents", INT, "the highest buyer's reservation value for the first product"),
    Column("end_reason", TEXT, "why it ended"),
    Column("deals", INT, "units sold"),
    Column("seller_surplus_cents", INT, "what the seller gained over no deal"),
    Column("buyer_surplus_cents", INT, "what all buyers gained over no deal"),
    Column("welfare_cents", INT, "both together"),
    Column("first_best_cents", INT, "the most that could have been gained together"),
    Column("seller_share", FLOAT, "seller's surplus / first best; null where trade cannot gain"),
    Column("allocation_quality", FLOAT, "welfare / first best; null where trade cannot gain"),
    Column("seller_messages", INT, "messages of the seller, refused ones included"),
    Column("buyer_messages", INT, "messages of all buyers, refused ones included"),
    Column("seller_violations", INT, "the seller's refused messages"),
    Column("buyer_violations", INT, "the buyers' refused messages"),
    Column("events", INT, "rows of this episode in the table of events"),
    Column("duration_ms", INT, "time of the last event since the opening; 0 where no clock ran"),
    Column(
        "seats", TEXT, "JSON list: party, role, kind, agent, agent_version, participant, surplus_cents, surplus_share"
    ),
    Column("scenario", TEXT, "JSON of everything settled before the first move, private values included"),
)

EVENTS = (
    Column("episode", TEXT, "identifier of the episode"),
    Column("split", TEXT, "the episode's split"),
    Column("n", INT, "number of the event in its episode, from 1 without gaps"),
    Column("at_ms", INT, "milliseconds since the negotiation opened; 0 where no clock ran"),
    Column("server_time", TEXT, "wall clock of the server, ISO 8601; null outside live rooms"),
    Column("think_ms", INT, "milliseconds since its sender last saw something happen; null where no clock ran"),
    Column("type", TEXT, "what happened"),
    Column("party", TEXT, "whose move caused it: seller, buyer-1, …; null for what the market did"),
    Column("buyer", INT, "number of the buyer whose conversation it is in; null where it concerns all"),
    Column("product", INT, "index of the product, from 0"),
    Column("offer_id", INT, "number of the offer in its conversation, from 1"),
    Column("price_cents", INT, "price offered or agreed"),
    Column("opening", BOOL, "whether the market's opening rule made the offer"),
    Column("reason", TEXT, "why it ended, lapsed or was refused"),
    Column("talk", TEXT, "what was said with it"),
    Column("thought", TEXT, "what an agent thought with it; null unless thoughts were asked for"),
)


def episode_row(
    episode: Episode,
    scenario: Scenario,
    log: tuple[LogEntry, ...],
    *,
    split: str,
    pseudonyms: Mapping[int, str],
) -> tuple[Any, ...]:
    """The row of one episode."""
    first_best = episode.first_best_cents
    seats = [
        {
            "party": seat.party,
            "role": seat.role,
            "kind": seat.kind,
            "agent": seat.agent_slug or None,
            "agent_version": seat.agent_version or None,
            "participant": pseudonyms.get(seat.participant_id or 0),
            "surplus_cents": seat.surplus_cents,
            "surplus_share": seat.surplus_share,
        }
        for seat in episode.seats.all()
    ]
    product = scenario.products[0]
    return (
        episode.public_id,
        split,
        episode.source,
        episode.market.slug,
        episode.market.version,
        episode.family,
        episode.mechanism,
        episode.currency,
        episode.protocol_version,
        episode.created_at.isoformat(),
        episode.consent_scope,
        episode.record_sha256,
        scenario.buyers,
        len(scenario.products),
        product.title,
        product.list_price_cents,
        scenario.seller_values_cents[0],
        max(own[0] for own in scenario.buyer_values_cents),
        episode.end_reason,
        episode.deals,
        episode.seller_surplus_cents,
        episode.buyer_surplus_cents,
        episode.welfare_cents,
        first_best,
        episode.seller_share,
        episode.welfare_cents / first_best if first_best > 0 else None,
        episode.seller_messages,
        episode.buyer_messages,
        episode.seller_violations,
        episode.buyer_violations,
        len(log),
        log[-1].at_ms if log else 0,
        json.dumps(seats, ensure_ascii=False, separators=(",", ":")),
        readable(episode.scenario),
    )


def event_rows(
    episode: Episode,
    scenario: Scenario,
    log: tuple[LogEntry, ...],
    *,
    split: str,
    mask: Callable[[str], str],
    with_thoughts: bool,
) -> Iterator[tuple[Any, ...]]:
    """The rows of one episode's events."""
    words = {text.n: (mask(text.talk), mask(text.thought) if with_thoughts else "") for text in episode.texts.all()}
    for entry, moment in zip(log, export_times.moments(scenario, log, ended_at=ended_at(episode)), strict=True):
        event = entry.event
        talk, thought = words.get(entry.n, ("", ""))
        reason = getattr(event, "reason", None) or getattr(event, "code", None)
        yield (
            episode.public_id,
            split,
            entry.n,
            entry.at_ms,
            moment.server_time,
            moment.think_ms,
            type(event).__struct_config__.tag,
            export_times.sender(event),
            getattr(event, "buyer", 0) or None,
            getattr(event, "product", None),
            getattr(event, "offer_id", None),
            getattr(event, "price_cents", None),
            getattr(event, "opening", None),
            None if reason is None else str(reason),
            talk or None,
            thought or None,
        )
