"""A site of its own with many stored episodes, for benchmarks of what reads them.

Here: settings that point at a folder of the benchmark's own, and episodes as a site has them after some years:
tournaments of scripted agents, with words where those of the site keep them, and rooms of people with their seats,
events, agents' turns and sessions. Not here: measuring.

Contract. What is missing is played by the engine and written through the same functions as on the site
(`episodes.simulated_rows`, `episodes.insert`), a thousand to a transaction; what is there is left. The ends of the games
are spread over a year. With `copies` a part is played and the rest are copies of its rows, as scenarios of their own:
figures over them mean nothing, but tables and indexes have the size and the spread that they would have.
"""

import os
import random
import sys
import time
from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import islice
from pathlib import Path
from typing import Any

BILATERAL = ("linear", "conceder", "boulware", "tit-for-tat", "satisficer", "hardliner", "zi-c", "split-the-difference")
SELLERS = ("falling-ladder", "optimal-ladder", "explore-then-commit", "chase-highest-bid", "all-on-one", "linear")
BUYERS = ("linear", "conceder", "threshold", "impatient")
MATCHERS = ("greedy", "serial", "random-match", "linear")
PARTS = {"demo-bilateral": 0.70, "demo-multi-buyer": 0.18, "demo-catalogue": 0.08, "people": 0.04}
PEOPLE = 60
OFTEN = 4
"""The first few people play a hundred times as often as the others."""
BATCH = 1_000
YEAR = timedelta(days=365)


def own_site(folder: Path) -> None:
    """Settings of a site in `folder`, on SQLite there unless DATABASE_URL names a server; tables made."""
    folder.mkdir(parents=True, exist_ok=True)
    os.environ["PARLEY_VAR"] = str(folder)
    os.environ.setdefault("DJANGO_SETTINGS_MODULE", "negotiation_site.settings")
    os.environ.setdefault("LOG_LEVEL", "WARNING")
    os.environ.setdefault("OMP_NUM_THREADS", "1")  # As `manage.py lab` starts its web process.
    import django

    django.setup()
    from django.core.management import call_command

    call_command("migrate", verbosity=0)
    call_command("collectstatic", interactive=False, verbosity=0)


def fill(wanted: int, *, words: bool = False, rooms: bool = False, sessions: int = 0, copies: int = 1) -> None:
    """Bring the record up to some `wanted` episodes; `rooms` puts a room under every game of people."""
    from django.core.management import call_command

    from markets.models import Episode, Market, Participant

    if Episode.objects.count() >= wanted:
        return
    wanted //= copies
    call_command("seed_demo", verbosity=0, stdout=sys.stderr)
    started, done = time.perf_counter(), Episode.objects.count()
    people = [Participant.objects.get_or_create(pseudonym=f"Player {number}")[0] for number in range(PEOPLE)]
    _sessions(people, sessions)
    chance = random.Random(7)
    for name, part in PARTS.items():
        market = Market.objects.filter(slug="demo-bilateral" if name == "people" else name).latest("version")
        left = round(wanted * part)
        games = _games(name, market, words=words)
        while left > 0:
            batch = list(islice(games, min(BATCH, left)))
            left -= len(batch)
            end = datetime.now().astimezone() - YEAR * (1 - done / wanted)
            _store(market, batch, end, people=people if name == "people" else [], rooms=rooms, chance=chance)
            done += len(batch)
            print(f"{done:,} episodes stored, {time.perf_counter() - started:.0f} s", file=sys.stderr)
    for copy in range(1, copies):
        _copy(copy, of=copies)
        print(f"copy {copy} made, {time.perf_counter() - started:.0f} s", file=sys.stderr)


def _copy(number: int, *, of: int) -> None:
    """The played rows once more, with numbers and addresses of their own."""
    from django.core.management.color import no_style
    from django.db import connection, transaction

    from markets.models import AgentTurn, Episode, EpisodeSeat, EpisodeText, Room, RoomEvent, Seat, Utterance

    tables = (Room, Seat, RoomEvent, Utterance, AgentTurn, Episode, EpisodeSeat, EpisodeText)
    within = {model: model._default_manager.order_by("pk").values_list("pk", flat=True).last() or 0 for model in tables}
    first = {model: last // number for model, last in within.items()}  # The last of the played ones.
    own = {"public_id", "join_token"}
    with transaction.atomic(), connection.cursor() as cursor:
        for model in tables:
            shown, taken = [], []
            for field in model._meta.concrete_fields:
                column = str(field.column)
                shown.append(f'"{column}"')
                if field.primary_key:
                    taken.append(f'"{column}" + {first[model] * number}')
                elif column in own:
                    taken.append(f"\"{column}\" || '_{number}'")
                elif column == "scenario_key":
                    taken.append(f'"{column}" / {of} * {of} + {number}')
                elif field.is_relation and field.related_model in first:
                    taken.append(f'"{column}" + {first[field.related_model] * number}')
                else:
                    taken.append(f'"{column}"')
            cursor.execute(
                f'INSERT INTO "{model._meta.db_table}" ({", ".join(shown)}) '
                f'SELECT {", ".join(taken)} FROM "{model._meta.db_table}" WHERE id <= {first[model]}'
            )
        for statement in connection.ops.sequence_reset_sql(no_style(), tables):
            cursor.execute(statement)


def _store(
    market: Any, batch: list[Any], end: datetime, *, people: list[Any], rooms: bool, chance: random.Random
) -> None:
    from django.db import transaction

    from markets import episodes
    from markets.models import EpisodeSource

    rows = episodes.simulated_rows(market, batch, now=end)
    weights = [100 if place < OFTEN else 1 for place in range(len(people))]
    scopes = {}
    if people:
        for episode in rows.episodes:
            episode.source = EpisodeSource.LIVE
            episode.created_at = end + timedelta(seconds=chance.randrange(3600))
            episode.consent_scope = scopes[id(episode)] = chance.choices(("public", "research", "private"), (7, 2, 1))[
                0
            ]
        for seat in rows.seats:
            if seat.kind == "person":
                seat.participant = chance.choices(people, weights)[0]
                seat.consent_scope = scopes[id(seat.episode)]
    with transaction.atomic():
        if people and rooms:
            _rooms(market, batch, rows)
        episodes.insert(rows)


def _rooms(market: Any, batch: list[Any], rows: Any) -> None:
    """Rooms that these games were played in, with everything that stays of a room."""
    from markets.engine.protocol import encode
    from markets.models import AgentTurn, Room, RoomEvent, RoomStatus, Seat, TurnState, Utterance

    made = Room.objects.bulk_create(
        Room(
            market=market,
            scenario=episode.scenario,
            status=RoomStatus.ENDED,
            version=len(game.log),
            opened_at=episode.created_at - timedelta(minutes=9),
            ended_at=episode.created_at,
        )
        for game, episode in zip(batch, rows.episodes, strict=True)
    )
    place = {}
    for episode, room in zip(rows.episodes, made, strict=True):
        episode.room = place[id(episode)] = room
    Seat.objects.bulk_create(
        [
            Seat(
                room=place[id(row.episode)],
                party=row.party,
                role=row.role,
                kind=row.kind,
                participant=row.participant,
                agent_slug=row.agent_slug,
                agent_version=row.agent_version,
                agent_name=row.agent_slug,
                consent_scope=row.consent_scope,
            )
            for row in rows.seats
        ],
        batch_size=500,
    )
    events, turns = [], []
    for game, episode, room in zip(batch, rows.episodes, made, strict=True):
        for entry in game.log:
            by = getattr(entry.event, "by", None)
            party = "" if by is None else ("seller" if by.value == "seller" else "buyer-1")
            events.append(
                RoomEvent(room=room, n=entry.n, at_ms=entry.n * 4_000, party=party, event=encode(entry.event).decode())
            )
            if party == "seller":
                turns.append(
                    AgentTurn(
                        room=room,
                        party=party,
                        position=entry.n,
                        state=TurnState.DONE,
                        due_at=episode.created_at,
                        attempts=1,
                    )
                )
    RoomEvent.objects.bulk_create(events, batch_size=2_000)
    AgentTurn.objects.bulk_create(turns, batch_size=2_000)
    Utterance.objects.bulk_create(
        [
            Utterance(room=place[id(row.episode)], n=row.n, party=row.party, talk=row.talk, thought=row.thought)
            for row in rows.texts
        ],
        batch_size=2_000,
    )


def _sessions(people: list[Any], count: int) -> None:
    """Sessions of browsers, one in fifty of which plays as somebody known."""
    from django.contrib.sessions.backends.db import SessionStore
    from django.contrib.sessions.models import Session

    from markets.identity import SESSION_KEY

    store = SessionStore()
    expires = datetime.now().astimezone() + YEAR
    for start in range(Session.objects.count(), count, BATCH):
        Session.objects.bulk_create(
            Session(
                session_key=f"measured{number:024d}",
                session_data=store.encode(
                    {SESSION_KEY: people[number // 50 % len(people)].pk if number % 50 == 0 else -number}
                ),
                expire_date=expires,
            )
            for number in range(start, min(start + BATCH, count))
        )


def _games(name: str, market: Any, *, words: bool) -> Iterator[Any]:
    """Every scenario with every pair, without end."""
    from agents import registry
    from agents.play import play, seat
    from agents.words import with_words
    from markets import episodes, services
    from markets.engine.protocol import SELLER, buyer_party
    from markets.engine.scenarios import decode_recipe, sample
    from markets.engine.seeds import derive_seed

    recipe, pool = decode_recipe(market.recipe), services.market_pool(market)
    pairs = {
        "demo-bilateral": [(seller, buyer) for seller in BILATERAL for buyer in BILATERAL],
        "demo-multi-buyer": [(seller, buyer) for seller in SELLERS for buyer in BUYERS],
        "demo-catalogue": [(seller, buyer) for seller in MATCHERS for buyer in BUYERS],
        "people": [("linear", "conceder"), ("boulware", "satisficer"), ("conceder", "zi-c")],
    }[name]
    number = 0
    while True:
        scenario = sample(recipe, pool, derive_seed("board", name, number))
        number += 1
        for seller, buyer in pairs:
            specs = {SELLER: registry.get(seller)}
            specs |= {buyer_party(place): registry.get(buyer) for place in range(1, recipe.buyers + 1)}
            # Tournaments on the site keep the words of agents that speak; people always do.
            spoken = words and (name == "people" or number % 2 == 0)
            played = play(
                scenario, {party: seat(spec) for party, spec in specs.items()}, words=with_words if spoken else None
            )
            sittings = tuple(
                episodes.Sitting(party, "person")
                if name == "people" and party != SELLER
                else episodes.Sitting(party, "agent", spec.slug, spec.version)
                for party, spec in specs.items()
            )
            said = tuple(episodes.words_of(played.log, played.actions)) if spoken else ()
            yield episodes.Simulated(scenario=scenario, log=played.log, sittings=sittings, words=said)
            if name == "people":
                break
