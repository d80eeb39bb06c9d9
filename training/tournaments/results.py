"""Reads what a tournament came to from its stored episodes.

Here: progress, the games as `ratings.Games`, their hash, the document of the command. Writes are in
`services`.

Contract: the hash covers who sold and bought, the scenario's number and the hash of each episode's
record, in canonical order; so it does not depend on workers, shares, the order of agents or of play.
"""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import msgspec
from django.db.models import F, Sum

from markets.engine import figures
from markets.engine.protocol import Role
from markets.models import EpisodeSeat
from training import findings, ratings
from training.bootstrap import NONE, Estimate
from training.findings import Findings, SeatRow
from training.models import ShardState, Tournament, TournamentStatus
from training.ratings import Games, Ratings
from training.tournaments.design import TournamentError


@dataclass(frozen=True)
class Played:
    """The games of a finished tournament."""

    games: Games
    sha256: str


@dataclass(frozen=True)
class Progress:
    """How far a tournament is."""

    done: int
    """Games that are stored."""
    total: int

    @property
    def share(self) -> float:
        """Part that is stored."""
        return self.done / self.total if self.total else 0.0


def agents_of(tournament: Tournament) -> list[tuple[str, str]]:
    """Slug and version of every agent, in the order in which they were named."""
    return [(slug, version) for slug, version in msgspec.json.decode(tournament.agents)]


def pairs_of(tournament: Tournament) -> tuple[tuple[str, str], ...]:
    """Who sells and who buys, by the pair's number."""
    return tuple((seller, buyer) for seller, buyer in msgspec.json.decode(tournament.pairs))


def progress(tournament: Tournament) -> Progress:
    """Stored and all games."""
    games = Sum(F("pairs") * F("scenarios"))
    total = tournament.shards.aggregate(games=games)["games"] or 0
    done = tournament.shards.filter(state=ShardState.DONE).aggregate(games=games)["games"] or 0
    return Progress(done=done, total=total)


def load(tournament: Tournament) -> Played:
    """All games. Raises `ValueError` unless every pair has every scenario, which is a fault of ours."""
    import numpy as np

    pairs = pairs_of(tournament)
    shape = (tournament.scenarios, len(pairs))
    columns: dict[str, Any] = {name: np.zeros(shape, dtype=np.int64) for name in _COLUMNS}
    seen = np.zeros(shape, dtype=bool)
    records = np.zeros(shape, dtype="S64")
    rows = tournament.games.order_by().values_list(
        "pair", "scenario", "episode__record_sha256", *(f"episode__{name}" for name in _COLUMNS)
    )
    for pair, scenario, record, *values in rows.iterator(chunk_size=5000):
        seen[scenario, pair] = True
        records[scenario, pair] = record
        for name, value in zip(_COLUMNS, values, strict=True):
            columns[name][scenario, pair] = value
    if not seen.all():
        raise ValueError(f"{tournament.name!r} lacks {int((~seen).sum())} of its games.")
    digest = hashlib.sha256()
    for column in sorted(range(len(pairs)), key=pairs.__getitem__):
        seller, buyer = pairs[column]
        for scenario, record in enumerate(records[:, column].tolist()):
            digest.update(f"{seller}\t{buyer}\t{scenario}\t{record.decode()}\n".encode())
    games = Games(
        pairs=pairs,
        first_best=columns["first_best_cents"][:, 0],
        surplus={Role.SELLER: columns["seller_surplus_cents"], Role.BUYER: columns["buyer_surplus_cents"]},
        deals=columns["deals"] > 0,
        messages={Role.SELLER: columns["seller_messages"], Role.BUYER: columns["buyer_messages"]},
        violations={Role.SELLER: columns["seller_violations"], Role.BUYER: columns["buyer_violations"]},
    )
    return Played(games, digest.hexdigest())


_COLUMNS = (
    "first_best_cents",
    "seller_surplus_cents",
    "buyer_surplus_cents",
    "deals",
    "seller_messages",
    "buyer_messages",
    "seller_violations",
    "buyer_violations",
)


class Kept(msgspec.Struct, frozen=True, kw_only=True):
    """What a finished tournament keeps in its row."""

    ratings: Ratings
    findings: Findings


def measure(tournament: Tournament, played: Played) -> Kept:
    """Everything that is said of the games; intervals are drawn with the tournament's seed."""
    return Kept(
        ratings=ratings.rate(played.games, seed=tournament.seed),
        findings=findings.find(seat_rows(tournament), scenarios=tournament.scenarios, seed=tournament.seed),
    )


def seat_rows(tournament: Tournament) -> Iterator[SeatRow]:
    """Every agent's seat of every game, in no particular order."""
    rows = (
        EpisodeSeat.objects.filter(episode__tournament_game__tournament=tournament)
        .order_by()
        .values_list("episode__tournament_game__scenario", "agent_slug", "role", "surplus_share", "figures")
    )
    for scenario, agent, role, share, kept in rows.iterator(chunk_size=5000):
        yield SeatRow(scenario, agent, Role(role), share, figures.decode(kept))


def kept(tournament: Tournament) -> Kept | None:
    """Ratings and findings; None before the end."""
    return msgspec.json.decode(tournament.figures, type=Kept) if tournament.figures else None


def document(tournament: Tournament) -> dict[str, Any]:
    """The tournament as plain data: what it is, how far it is, what it came to."""
    so_far = progress(tournament)
    known = kept(tournament)
    seconds = (
        (tournament.ended_at - tournament.started_at).total_seconds()
        if tournament.ended_at is not None and tournament.started_at is not None
        else None
    )
    return {
        "name": tournament.name,
        "market": tournament.market.slug,
        "market_version": tournament.market.version,
        "family": tournament.market.family,
        "status": tournament.status,
        "agents": [slug for slug, _version in agents_of(tournament)],
        "agent_versions": dict(agents_of(tournament)),
        "pairs": len(pairs_of(tournament)),
        "scenarios": tournament.scenarios,
        "seed": tournament.seed,
        "episodes": so_far.done,
        "episodes_total": so_far.total,
        "error": tournament.error,
        "seconds": None if seconds is None else round(seconds, 3),
        "result_sha256": tournament.result_sha256 or None,
        **(_figures(known.ratings) if known else {"ranking": [], "differences": [], "head_to_head": []}),
        "path": f"/tournaments/{tournament.name}/",
    }


def finished(tournament: Tournament) -> bool:
    """Whether it has come to its result."""
    return tournament.status == TournamentStatus.DONE


def findings_document(tournament: Tournament) -> dict[str, Any]:
    """The findings as plain data. Raises `TournamentError` before the end."""
    known = kept(tournament)
    if known is None:
        raise TournamentError(
            f"{tournament.name!r} has not come to its end ({tournament.get_status_display()}); run it again to go on."
        )
    found = known.findings
    names = (*findings.HABITS, "share", "deal_rate")
    return {
        "name": tournament.name,
        "market": tournament.market.slug,
        "family": tournament.market.family,
        "scenarios": tournament.scenarios,
        "episodes": known.ratings.games,
        "result_sha256": tournament.result_sha256,
        "agents": [
            {
                "agent": row.agent,
                "role": row.role.value,
                "games": row.games,
                **{key: value for name in names for key, value in flat(name, getattr(row, name)).items()},
                "tiers": [
                    {
                        "tier": tier.tier,
                        "low_cents": tier.low_cents,
                        "high_cents": tier.high_cents,
                        "games": tier.games,
                        **flat("share", tier.share),
                        **flat("deal_rate", tier.deal_rate),
                    }
                    for tier in row.tiers
                ],
                **{
                    f"{name}_spread{end}": getattr(row, f"{name}_spread{end}")
                    for name in ("share", "deal_rate")
                    for end in ("", "_low", "_high")
                },
            }
            for row in found.agents
        ],
        "associations": msgspec.to_builtins(found.associations),
        "conceding": msgspec.to_builtins(found.conceding),
        "conceding_buyers_do_worst": next(row.holds for row in found.conceding if row.role is Role.BUYER),
    }


def _figures(rated: Ratings) -> dict[str, Any]:
    return {
        "scenarios_with_gains": rated.scenarios_with_gains,
        "level": rated.level,
        "resamples": rated.resamples,
        "ranking": [
            {
                "agent": agent.agent,
                "roles": [role.value for role in agent.roles],
                "rank": agent.rank,
                "rank_best": agent.rank_best,
                "rank_worst": agent.rank_worst,
                "games": agent.games,
                **flat("share", agent.share),
                **{
                    key: value
                    for role in Role
                    for key, value in flat(
                        f"{role.value}_share", agent.by_role[role].share if role in agent.by_role else NONE
                    ).items()
                },
                **flat("deal_rate", agent.deal_rate),
                **flat("bradley_terry", agent.bradley_terry),
                "messages": agent.messages,
                "violations": agent.violations,
                "constraint_adherence": agent.constraint_adherence,
            }
            for agent in rated.agents
        ],
        "differences": [
            {
                "a": gap.a,
                "b": gap.b,
                **flat("difference", gap.share),
                "p": gap.p,
                "p_holm": gap.p_holm,
                "wins": gap.wins,
                "losses": gap.losses,
                "ties": gap.ties,
            }
            for gap in rated.differences
        ],
        "head_to_head": [
            {
                "seller": met.seller,
                "buyer": met.buyer,
                "games": met.games,
                **flat("seller_share", met.seller_share),
                **flat("buyer_share", met.buyer_share),
                **flat("deal_rate", met.deal_rate),
            }
            for met in rated.head_to_head
        ],
    }


def flat(name: str, estimate: Estimate) -> dict[str, float | None]:
    """An estimate as three entries of a document."""
    return {name: estimate.value, f"{name}_low": estimate.low, f"{name}_high": estimate.high}
