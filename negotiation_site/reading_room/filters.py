"""Narrowing episodes by what was negotiated, by whom, and what it came to. Pure queries: who may read is `access`.

Every filter reads the indexes `episode_reading` and `seat_reading`, or a tournament's games; none reads scenarios or
logs. So a seat is asked for by episode (`Exists`), which holds the order of the list, and not the other way round.
"""

from dataclasses import dataclass
from datetime import datetime
from enum import StrEnum

from django.db.models import BigIntegerField, Exists, ExpressionWrapper, F, OuterRef, Q, QuerySet, Value

from markets.models import Episode, EpisodeSeat, EpisodeSource, Market, SeatKind
from training.models import TournamentGame

PERSON = "person"
"""In place of an agent's slug: somebody who is none."""


class Source(StrEnum):
    """Where a negotiation was held."""

    LIVE = "live"
    SIMULATED = "simulated"
    TOURNAMENT = "tournament"
    CORPUS = "corpus"


@dataclass(frozen=True, kw_only=True)
class Economics:
    """What is asked of an episode. Empty and None ask nothing; shares are of the named seat, else of the seller's."""

    family: str = ""
    market: str = ""
    source: str = ""
    """`Source`; simulations and tournaments are told apart."""
    agent: str = ""
    role: str = ""
    outcome: str = ""
    """`deal` or `no-deal`."""
    min_share: float | None = None
    max_share: float | None = None
    min_turns: int | None = None
    max_turns: int | None = None
    since: datetime | None = None
    until: datetime | None = None


def narrowed(episodes: QuerySet[Episode], asked: Economics) -> QuerySet[Episode]:
    """The episodes that fit everything asked."""
    found = episodes
    if asked.family:
        found = found.filter(family=asked.family)
    if asked.market:
        # As a sum, which no index of markets alone answers: that one would lead to every record of the market.
        found = found.annotate(of=ExpressionWrapper(F("market_id") + Value(0), output_field=BigIntegerField()))
        found = found.filter(of__in=list(Market.objects.filter(slug=asked.market).values_list("pk", flat=True)))
    if asked.outcome:
        found = found.filter(deals__gt=0) if asked.outcome == "deal" else found.filter(deals=0)
    if asked.since is not None:
        found = found.filter(created_at__gte=asked.since)
    if asked.until is not None:
        found = found.filter(created_at__lt=asked.until)
    if asked.min_turns is not None or asked.max_turns is not None:
        found = found.annotate(turns=F("seller_messages") + F("buyer_messages"))
        if asked.min_turns is not None:
            found = found.filter(turns__gte=asked.min_turns)
        if asked.max_turns is not None:
            found = found.filter(turns__lte=asked.max_turns)
    return _of_seat(_of_source(found, asked.source), asked)


def _of_source(found: QuerySet[Episode], source: str) -> QuerySet[Episode]:
    match source:
        case Source.LIVE:
            return found.filter(source=EpisodeSource.LIVE)
        case Source.SIMULATED | Source.TOURNAMENT:
            game = Exists(TournamentGame.objects.filter(episode=OuterRef("pk")))
            # Not "is a simulation", for which there is an index that leads to every record of them.
            return found.filter(game if source == Source.TOURNAMENT else ~game, ~Q(source=EpisodeSource.LIVE))
        case Source.CORPUS:
            return found.none()
        case _:
            return found


def _of_seat(found: QuerySet[Episode], asked: Economics) -> QuerySet[Episode]:
    """By who sat somewhere and what this seat got; a share without a seat is the seller's, which the episode holds."""
    shares = {}
    if asked.min_share is not None:
        shares["share__gte"] = asked.min_share
    if asked.max_share is not None:
        shares["share__lte"] = asked.max_share
    if not asked.agent and asked.role != "buyer":
        return found.filter(**{f"seller_{name}": value for name, value in shares.items()})
    seats = EpisodeSeat.objects.filter(**{f"surplus_{name}": value for name, value in shares.items()})
    if asked.role:
        seats = seats.filter(role=asked.role)
    if asked.agent == PERSON:
        seats = seats.exclude(kind=SeatKind.AGENT)
    elif asked.agent:
        seats = seats.filter(agent_slug=asked.agent)
    elif not shares:
        return found  # Every negotiation has a buyer.
    return found.filter(Exists(seats.filter(episode=OuterRef("pk"))))
