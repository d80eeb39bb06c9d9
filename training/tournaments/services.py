"""Writes to tournaments: opening, claiming a share of the work, storing it, cancelling, finishing.

A share is claimed by compare-and-swap with a lease that its worker renews; its games and its completion
are one transaction, so that every (pair, scenario) is stored exactly once whoever dies when. Games are
played outside any transaction. Any number of processes may work on one tournament: Celery's workers, a
command's own processes, or both.

A name belongs to one tournament for ever. Opening it again with the same agents, market, scenarios and
seed takes it up where it stopped, a cancelled or failed one too: the games that were stored stay, since
they would come out the same. With anything else it is refused. It keeps the versions of market and
agents that it was opened with (`changes_since`); games of two versions of an agent are never mixed.
"""

import gc
import logging
import os
import secrets
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path

import msgspec
from django.db import IntegrityError, transaction
from django.db.models import F, Q, QuerySet
from django.utils import timezone

from agents import registry
from agents.base import AgentSpec
from agents.registry import UnknownAgent
from markets import episodes, selectors
from markets import services as market_services
from markets.engine.protocol import SELLER, buyer_party
from markets.engine.scenarios import ProductFacts, Recipe, decode_recipe
from markets.models import Market, SeatKind
from training.models import ShardState, Tournament, TournamentGame, TournamentShard, TournamentStatus
from training.tournaments import design, results
from training.tournaments.design import Block, Pair, TournamentError
from training.tournaments.games import Game, play_block

log = logging.getLogger(__name__)

RENEW_EVERY_S = 3.0
RESERVED = ("new",)
"""Names that stand for something else in an address."""
MAX_ATTEMPTS = 5
"""A share that was claimed this often and never stored fails its tournament."""

OPEN = (TournamentStatus.QUEUED, TournamentStatus.RUNNING)
STOPPED = (TournamentStatus.CANCELLED, TournamentStatus.FAILED)


class Lost(Exception):
    """The share is no longer this worker's, or its tournament no longer open; nothing was stored."""


@dataclass(frozen=True)
class Cast:
    """What is needed to play a tournament, read once by each worker."""

    tournament: Tournament
    market: Market
    recipe: Recipe
    pool: Sequence[ProductFacts]
    pairs: tuple[Pair, ...]
    lease: timedelta


@dataclass(frozen=True)
class Claim:
    """A share that this worker holds as long as it renews it."""

    shard: TournamentShard
    owner: str
    lease: timedelta


def open_tournament(
    *, name: str, market: Market, agents: Sequence[AgentSpec], scenarios: int, seed: int
) -> tuple[Tournament, bool]:
    """The tournament of a name, and whether it was made now. Raises `TournamentError` with a sentence."""
    if name in RESERVED:
        raise TournamentError(f"A tournament cannot be called {name!r}; its address is taken.")
    recipe = decode_recipe(market.recipe)
    design.check(agents=agents, family=recipe.family, scenarios=scenarios, seed=seed)
    known = Tournament.objects.filter(name=name).select_related("market").first()
    if known is not None:
        _check_same(known, market=market, agents=agents, scenarios=scenarios, seed=seed)
        reopen(known)
        return known, False
    pairs = design.pairs(agents, recipe.family)
    cut = design.blocks(
        pairs=len(pairs),
        scenarios=scenarios,
        games=design.share_size(agents, games=len(pairs) * scenarios),
    )
    try:
        return _create(name, market, agents, pairs, cut, scenarios=scenarios, seed=seed), True
    except IntegrityError:  # Somebody else was quicker by a moment.
        known = Tournament.objects.select_related("market").get(name=name)
        _check_same(known, market=market, agents=agents, scenarios=scenarios, seed=seed)
        return known, False


def _create(
    name: str,
    market: Market,
    agents: Sequence[AgentSpec],
    pairs: Sequence[Pair],
    cut: Sequence[Block],
    *,
    scenarios: int,
    seed: int,
) -> Tournament:
    with transaction.atomic():
        tournament = Tournament.objects.create(
            name=name,
            market=market,
            agents=msgspec.json.encode([(spec.slug, spec.version) for spec in agents]).decode(),
            pairs=msgspec.json.encode([(pair.seller.slug, pair.buyer.slug) for pair in pairs]).decode(),
            scenarios=scenarios,
            seed=seed,
        )
        TournamentShard.objects.bulk_create(
            (
                TournamentShard(
                    tournament=tournament,
                    number=number,
                    first_pair=block.first_pair,
                    pairs=block.pairs,
                    first_scenario=block.first_scenario,
                    scenarios=block.scenarios,
                )
                for number, block in enumerate(cut)
            ),
            batch_size=1000,
        )
    return tournament


def _check_same(known: Tournament, *, market: Market, agents: Sequence[AgentSpec], scenarios: int, seed: int) -> None:
    """Raise `TournamentError` unless this is what the tournament was asked to be; versions are `changes_since`."""
    asked = {
        "market": market.slug,
        "agents": ", ".join(sorted(spec.slug for spec in agents)),
        "scenarios": scenarios,
        "seed": seed,
    }
    there = {
        "market": known.market.slug,
        "agents": ", ".join(sorted(slug for slug, _version in results.agents_of(known))),
        "scenarios": known.scenarios,
        "seed": known.seed,
    }
    for what, value in there.items():
        if asked[what] != value:
            raise TournamentError(
                f"There is already a tournament {known.name!r} with other {what} ({value}, not {asked[what]}); "
                "choose another name."
            )


def changes_since(tournament: Tournament) -> list[str]:
    """What has become of the tournament's market and agents since it was opened, in words."""
    current = selectors.market(tournament.market.slug)
    changed = []
    if current is not None and current.version != tournament.market.version:
        changed.append(
            f"{current.slug!r} is now version {current.version}; this tournament is held in version "
            f"{tournament.market.version}."
        )
    for slug, version in results.agents_of(tournament):
        with suppress(UnknownAgent):
            now = registry.get(slug, version=version).version
            if now != version:
                changed.append(f"{slug!r} is now version {now}; this tournament is that of version {version}.")
    return changed


def reopen(tournament: Tournament) -> bool:
    """Let a stopped tournament go on from where it stopped; false where it never stopped."""
    with transaction.atomic():
        changed = Tournament.objects.filter(pk=tournament.pk, status__in=STOPPED).update(
            status=TournamentStatus.QUEUED, error="", ended_at=None
        )
        tournament.shards.filter(state=ShardState.QUEUED).update(attempts=0, error="")
    tournament.refresh_from_db()
    return bool(changed)


def cancel(tournament: Tournament) -> None:
    """Stop a tournament; shares that are being played are thrown away. Raises `TournamentError` where it is over."""
    changed = Tournament.objects.filter(pk=tournament.pk, status__in=OPEN).update(
        status=TournamentStatus.CANCELLED, ended_at=timezone.now()
    )
    tournament.refresh_from_db()
    if not changed and tournament.status != TournamentStatus.CANCELLED:
        raise TournamentError(
            f"Only a tournament under way can be cancelled; {tournament.name!r} is {tournament.get_status_display()}."
        )


def known_tournament(name: str) -> Tournament:
    """The tournament of a name. Raises `TournamentError` with the names there are."""
    tournament = Tournament.objects.filter(name=name).select_related("market").first()
    if tournament is None:
        known = ", ".join(Tournament.objects.values_list("name", flat=True)[:20]) or "none yet"
        raise TournamentError(f"There is no tournament {name!r}; there is: {known}.")
    return tournament


# Working on it ----------------------------------------------------------------------------------


def owner_name() -> str:
    """A name for this worker that no other has: its host and process come first."""
    return f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"


def cast_of(tournament: Tournament) -> Cast:
    """Everything that games of the tournament are played from. Raises `TournamentError` where an agent changed."""
    recipe = decode_recipe(tournament.market.recipe)
    specs = []
    for slug, version in results.agents_of(tournament):
        spec = registry.get(slug, version=version)
        if spec.version != version:
            raise TournamentError(
                f"{tournament.name!r} was begun with {slug!r} version {version}, which is now version {spec.version}; "
                "hold another tournament under another name."
            )
        specs.append(spec)
    return Cast(
        tournament=tournament,
        market=tournament.market,
        recipe=recipe,
        pool=market_services.market_pool(tournament.market),
        pairs=design.pairs(specs, recipe.family),
        lease=timedelta(seconds=design.lease_s(specs)),
    )


def work(
    cast: Cast,
    *,
    owner: str,
    stop: Callable[[], bool] = lambda: False,
    drop: Callable[[], bool] = lambda: False,
    after: Callable[[], None] = lambda: None,
) -> None:
    """Play shares until none is open, `stop()` says so, or the tournament is over.

    `drop()` is asked after every game: the share in hand is given back where it says so. `after` is called
    when a share is stored. Finishes the tournament where everything is played.
    """
    while not (stop() or drop()):
        claim = claim_next(cast, owner=owner, now=timezone.now())
        if claim is None:
            break
        try:
            play_share(cast, claim, drop=drop)
        except Lost:
            continue
        after()
    settle(cast.tournament)


def claim_next(cast: Cast, *, owner: str, now: datetime) -> Claim | None:
    """Take the next open share; None where there is none, or the tournament is over."""
    tournament = cast.tournament
    claimable = Q(state=ShardState.QUEUED) | Q(state=ShardState.RUNNING, lease_until__lte=now)
    while True:
        if not Tournament.objects.filter(pk=tournament.pk, status__in=OPEN).exists():
            return None
        shard = tournament.shards.filter(claimable).order_by("number").first()
        if shard is None:
            return None
        if shard.attempts >= MAX_ATTEMPTS:
            fail(tournament, shard.error or "A share of the games was taken up again and again and never finished.")
            return None
        taken = TournamentShard.objects.filter(claimable, pk=shard.pk).update(
            state=ShardState.RUNNING, owner=owner, lease_until=now + cast.lease, attempts=F("attempts") + 1
        )
        if taken:
            Tournament.objects.filter(pk=tournament.pk, status=TournamentStatus.QUEUED).update(
                status=TournamentStatus.RUNNING, started_at=now
            )
            return Claim(shard, owner, cast.lease)


def play_share(cast: Cast, claim: Claim, *, drop: Callable[[], bool] = lambda: False) -> None:
    """Play the claimed share and store it. Raises `Lost` where it was lost or given back."""
    block = Block(claim.shard.first_pair, claim.shard.pairs, claim.shard.first_scenario, claim.shard.scenarios)
    games = play_block(recipe=cast.recipe, pool=cast.pool, pairs=cast.pairs, block=block, seed=cast.tournament.seed)
    try:
        with _uncollected():
            played = list(_while_held(games, claim, drop))
            store(cast, claim, played, now=timezone.now())
    except Lost:
        _give_back(claim)
        raise
    except Exception as fault:
        _give_back(claim, error=f"{type(fault).__name__}: {fault}")
        raise


@contextmanager
def _uncollected() -> Iterator[None]:
    """No search for cycles while a share is played: games make none, and looking costs a fifth of the time."""
    was_on = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


def _while_held(games: Iterator[Game], claim: Claim, drop: Callable[[], bool]) -> Iterator[Game]:
    """Pass games through, renewing the lease. Raises `Lost`."""
    renewed = time.monotonic()
    for game in games:
        yield game
        if drop():
            raise Lost
        if time.monotonic() - renewed > RENEW_EVERY_S:
            renewed = time.monotonic()
            held = _held(claim).update(lease_until=timezone.now() + claim.lease)
            if not held:
                raise Lost


def store(cast: Cast, claim: Claim, played: Sequence[Game], *, now: datetime) -> None:
    """Write a share's games and mark it done, together or not at all. Raises `Lost`."""
    rows = episodes.simulated_rows(
        cast.market,
        [
            episodes.Simulated(
                scenario=game.scenario,
                log=game.played.log,
                sittings=_sittings(cast.pairs[game.pair], game.scenario.buyers),
                words=tuple(episodes.words_of(game.played.log, game.played.actions)),
            )
            for game in played
        ],
        now=now,
    )
    with transaction.atomic():
        if not _held(claim).update(state=ShardState.DONE, lease_until=None, error=""):
            raise Lost
        stored = episodes.insert(rows)
        TournamentGame.objects.bulk_create(
            TournamentGame(tournament=cast.tournament, pair=game.pair, scenario=game.k, episode=episode)
            for game, episode in zip(played, stored, strict=True)
        )


def _sittings(pair: Pair, buyers: int) -> tuple[episodes.Sitting, ...]:
    seats = [(SELLER, pair.seller), *((buyer_party(number), pair.buyer) for number in range(1, buyers + 1))]
    return tuple(episodes.Sitting(party, SeatKind.AGENT.value, spec.slug, spec.version) for party, spec in seats)


def _held(claim: Claim) -> QuerySet[TournamentShard]:
    """The share as long as it is this worker's and its tournament goes on."""
    return TournamentShard.objects.filter(
        pk=claim.shard.pk,
        owner=claim.owner,
        state=ShardState.RUNNING,
        tournament__in=Tournament.objects.filter(status__in=OPEN),
    )


def _give_back(claim: Claim, *, error: str | None = None) -> None:
    """Let somebody else take the share at once; a fault is written beside it and counts as an attempt."""
    shards = TournamentShard.objects.filter(pk=claim.shard.pk, owner=claim.owner, state=ShardState.RUNNING)
    if error is None:
        shards.update(state=ShardState.QUEUED, owner="", lease_until=None, attempts=F("attempts") - 1)
    else:
        shards.update(state=ShardState.QUEUED, owner="", lease_until=None, error=error)


def release_dead(tournament: Tournament) -> int:
    """Give back the shares of processes of this machine that are no more, without waiting for their leases."""
    freed = 0
    host = socket.gethostname()
    for shard in tournament.shards.filter(state=ShardState.RUNNING, owner__startswith=f"{host}:"):
        if not _is_alive(int(shard.owner.removeprefix(f"{host}:").split(":")[0])):
            freed += tournament.shards.filter(pk=shard.pk, owner=shard.owner, state=ShardState.RUNNING).update(
                state=ShardState.QUEUED, owner="", lease_until=None, attempts=0
            )
    return freed


def _is_alive(process: int) -> bool:
    """Whether a process of this machine still runs; one that is dead and not yet collected does not."""
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    try:
        after_name = Path(f"/proc/{process}/stat").read_text(encoding="utf-8", errors="replace").rpartition(")")[2]
    except OSError:
        return True
    return not after_name.strip().startswith(("Z", "X"))


# The end ----------------------------------------------------------------------------------------


def settle(tournament: Tournament) -> None:
    """Finish the tournament if everything is played. Idempotent; several workers may do it."""
    if tournament.shards.exclude(state=ShardState.DONE).exists():
        return
    if not Tournament.objects.filter(pk=tournament.pk, status__in=OPEN).exists():
        return
    played = results.load(tournament)
    Tournament.objects.filter(pk=tournament.pk, status__in=OPEN).update(
        status=TournamentStatus.DONE,
        result_sha256=played.sha256,
        figures=msgspec.json.encode(results.measure(tournament, played)).decode(),
        ended_at=timezone.now(),
    )


def fail(tournament: Tournament, reason: str) -> None:
    """Stop a tournament that cannot go on."""
    log.error("Tournament %s failed: %s", tournament.name, reason)
    Tournament.objects.filter(pk=tournament.pk, status__in=OPEN).update(
        status=TournamentStatus.FAILED, error=reason, ended_at=timezone.now()
    )
