"""What the endpoints ask for and answer, as pydantic models: the OpenAPI document is made of these.

Amounts are integer cents of the episode's currency, shares are fractions, undefined is null, times are ISO 8601 with
a time zone.
"""

from datetime import datetime
from typing import Any, Literal

from ninja import Schema
from pydantic import ConfigDict, Field

from agents.base import Kind
from markets.engine.protocol import Role
from markets.engine.scenarios import Family

MOST_ITEMS = 200
USUAL_ITEMS = 50
WORD = r"^[^\x00-\x1f]*$"


class Asked(Schema):
    """What every list understands."""

    model_config = ConfigDict(extra="forbid")

    limit: int = Field(USUAL_ITEMS, ge=1, le=MOST_ITEMS, description="How many items at most.")
    cursor: str = Field("", max_length=400, pattern=WORD, description="Where to go on: taken from `next`.")


class EpisodesAsked(Asked):
    """Filters of episodes; all of them at once."""

    market: str = Field("", max_length=100, pattern=WORD, description="Slug of a market.")
    family: Family | None = Field(None, description="Kind of market.")
    source: Literal["live", "simulated", "tournament"] | None = Field(
        None, description="`simulated` are simulations outside tournaments; the field `source` calls both simulated."
    )
    agent: str = Field("", max_length=100, pattern=WORD, description="Slug of an agent that sat in it.")
    role: Role | None = Field(None, description="The side of that agent, and of the share.")
    outcome: Literal["deal", "no-deal"] | None = Field(None, description="How it ended.")
    min_share: float | None = Field(None, allow_inf_nan=False, description="Least surplus share of that seat.")
    max_share: float | None = Field(None, allow_inf_nan=False, description="Largest surplus share of that seat.")
    since: datetime | None = Field(None, description="Ended at this moment or later.")
    until: datetime | None = Field(None, description="Ended before this moment.")
    consent: Literal["public", "research"] | None = Field(None, description="Only episodes of this scope.")


class LeaderboardsAsked(Asked):
    """Filters of the leaderboard, as on its page."""

    market: str = Field("", max_length=100, pattern=WORD, description="Slug of a market.")
    family: Family | None = Field(None, description="Kind of market.")
    role: Role | None = Field(None, description="Only seats of this side.")
    kind: Kind | None = Field(None, description="Only agents of this kind.")


class Problem(Schema):
    """Why a request was not answered."""

    error: str = Field(description="One word for programs.")
    detail: str = Field(description="A sentence for people.")


class Seat(Schema):
    """Who sat on one chair and what it came to."""

    party: str = Field(description="`seller`, `buyer-1`, …")
    role: Role
    kind: Literal["person", "agent", "open"]
    agent: str | None = Field(description="Slug of the agent.")
    agent_version: str | None
    participant: str | None = Field(description="A person's pseudonym, which holds for this token alone.")
    surplus_cents: int
    surplus_share: float | None


class Episode(Schema):
    """A finished negotiation, without its events."""

    episode: str = Field(description="Public identifier.")
    source: Literal["live", "simulated"]
    market: str
    market_version: int
    family: str
    mechanism: str
    currency: str
    protocol_version: str
    ended_at: datetime
    consent_scope: Literal["public", "research"]
    record_sha256: str
    end_reason: str
    deals: int
    welfare_cents: int
    first_best_cents: int
    seller_surplus_cents: int
    buyer_surplus_cents: int
    seller_share: float | None
    seller_messages: int
    buyer_messages: int
    seats: list[Seat]


class Text(Schema):
    """Words said with an event; e-mail addresses, links and telephone numbers are masked."""

    n: int
    party: str
    talk: str


class LoggedEvent(Schema):
    """One line of the economic log."""

    n: int = Field(description="From 1 without gaps.")
    at_ms: int = Field(description="Milliseconds since the negotiation opened.")
    event: dict[str, Any] = Field(description="Has a `type`; see the protocol.")


class EventTime(Schema):
    """When an event was written on the wall clock, and what its sender took for it."""

    n: int
    server_time: datetime | None
    think_ms: int | None


class EpisodeRecord(Schema):
    """A finished negotiation with everything that determined it."""

    schema_version: str
    episode: str
    source: Literal["live", "simulated"]
    market: str
    market_version: int
    protocol_version: str
    ended_at: datetime
    consent_scope: Literal["public", "research"]
    record_sha256: str
    scenario: dict[str, Any] = Field(description="Settled before the first move; holds the private values.")
    seats: list[Seat]
    events: list[LoggedEvent]
    texts: list[Text]
    times: list[EventTime]
    outcome: dict[str, Any]


class Market(Schema):
    """A market that can be played: the newest version of its rules."""

    market: str = Field(description="Slug.")
    version: int
    name: str
    summary: str
    family: str
    mechanism: str
    reveals_values: bool = Field(description="Whether values are shown to players once a game is over.")
    created_at: datetime
    episodes: int = Field(description="Finished negotiations in any version that this token may read.")
    recipe: dict[str, Any] = Field(description="The public rule that scenarios are drawn by.")


class Agent(Schema):
    """An agent that can be seated."""

    agent: str = Field(description="Slug.")
    version: str
    title: str
    summary: str
    kind: Kind
    roles: list[str]
    families: list[str]
    source: str = Field(description="Where the strategy comes from.")


class Estimate(Schema):
    """A figure with its 95 % interval, as far as they are defined."""

    value: float | None
    low: float | None
    high: float | None


class LeaderboardLine(Schema):
    """One agent on the leaderboard, the best first."""

    place: int | None = Field(description="Null where too few comparable games stand behind it.")
    agent: str
    version: str
    title: str
    games: int = Field(description="Seats it filled.")
    tables: int = Field(description="Tables at which another agent of the board sat too.")
    provisional: bool
    equal_terms: Estimate = Field(description="Share of the surplus on equal terms, no deal = 0.")
    bradley_terry: Estimate = Field(description="Points around 1000.")
    share: Estimate = Field(description="Share over all its games, whoever sat opposite.")
    deal_rate: Estimate
    rules_kept: Estimate = Field(description="Of its messages.")


class Run(Schema):
    """A training run of this server, or one whose checkpoint came with the code."""

    run: str
    market: str = Field(description="Slug of a market, or what a shipped checkpoint says it was trained on.")
    status: Literal["queued", "running", "done", "failed", "cancelled", "shipped"]
    stage: str
    preset: str
    created_at: datetime | None
    started_at: datetime | None
    ended_at: datetime | None
    published_agent: str | None
    share_greedy: float | None = Field(description="Share of the first best on final games, always the likeliest move.")
    share_sampled: float | None = Field(description="The same with moves drawn.")


class Episodes(Schema):
    """A page of episodes, the oldest first."""

    items: list[Episode]
    next: str | None = Field(description="Address of the next page; null at the end.")


class Markets(Schema):
    """A page of markets."""

    items: list[Market]
    next: str | None


class Leaderboard(Schema):
    """A page of the leaderboard."""

    items: list[LeaderboardLine]
    next: str | None


class Runs(Schema):
    """A page of runs, the oldest first; shipped ones at the end."""

    items: list[Run]
    next: str | None


class Agents(Schema):
    """A page of agents."""

    items: list[Agent]
    next: str | None
