"""Every game is stored exactly once, whoever works on it and whoever dies."""

import subprocess
import sys
import time
from datetime import timedelta

import pytest
from django.db import IntegrityError, transaction
from django.utils import timezone

from agents import registry, simulation
from markets import episodes, setup
from markets.engine.protocol import decode_log, encode
from markets.models import Episode, Market
from markets.services import market_pool
from markets.setup import MarketSpec
from training.models import ShardState, Tournament, TournamentGame, TournamentStatus
from training.tournaments import results, services, tasks
from training.tournaments.design import TournamentError
from training.tournaments.services import Lost

pytestmark = pytest.mark.django_db


def market(**changes) -> Market:
    spec = {
        "slug": "money", "family": "bilateral", "unit": "money", "values": "uniform:0:100", "cost": "uniform:0:60",
    }  # fmt: skip
    return setup.create_market(MarketSpec(**(spec | changes)))


def opened(*, name: str = "cup", agents: str = "linear,conceder", scenarios: int = 10, seed: int = 3) -> Tournament:
    there = Market.objects.filter(slug="money").first() or market()
    specs = [registry.get(slug) for slug in agents.split(",")]
    return services.open_tournament(name=name, market=there, agents=specs, scenarios=scenarios, seed=seed)[0]


def play(tournament: Tournament, **more) -> Tournament:
    services.work(services.cast_of(tournament), owner=services.owner_name(), **more)
    tournament.refresh_from_db()
    return tournament


def cells(tournament: Tournament) -> list[tuple[int, int]]:
    return sorted(tournament.games.values_list("pair", "scenario"))


def everything(tournament: Tournament) -> list[tuple[int, int]]:
    pairs = len(results.pairs_of(tournament))
    return [(pair, scenario) for pair in range(pairs) for scenario in range(tournament.scenarios)]


def test_every_pair_plays_every_scenario_and_is_kept_as_an_episode() -> None:
    tournament = play(opened())
    assert tournament.status == TournamentStatus.DONE
    assert cells(tournament) == everything(tournament)
    assert all(episodes.verify(episode) for episode in Episode.objects.all())
    assert results.progress(tournament).share == 1


def test_all_pairs_meet_in_the_same_scenarios_as_a_simulation_with_that_seed() -> None:
    tournament = play(opened(scenarios=4))
    there = tournament.market
    recipe = services.cast_of(tournament).recipe
    simulated = simulation.simulate(
        recipe=recipe, pool=market_pool(there), seller=registry.get("conceder"), buyers=[registry.get("linear")],
        episodes=4, seed=3,
    )  # fmt: skip
    pair = results.pairs_of(tournament).index(("conceder", "linear"))
    stored = [game.episode for game in tournament.games.filter(pair=pair).order_by("scenario")]
    for episode, (scenario, played) in zip(stored, simulated, strict=True):
        assert episode.scenario == encode(scenario).decode()
        assert decode_log(episode.log) == played.log
    texts = tournament.games.filter(scenario=2).values_list("episode__scenario", flat=True)
    assert len(set(texts)) == 1


def test_the_result_does_not_depend_on_the_shares_their_order_or_the_order_of_agents(monkeypatch) -> None:
    straight = play(opened())
    monkeypatch.setattr(services.design, "share_size", lambda _agents, **_more: 3)
    other = opened(name="other", agents="conceder,linear")
    cast = services.cast_of(other)
    claims = [services.claim_next(cast, owner=f"w{k}", now=timezone.now()) for k in range(other.shards.count())]
    for claim in reversed(claims):
        services.play_share(cast, claim)
    services.settle(other)
    other.refresh_from_db()
    assert other.shards.count() > straight.shards.count()
    assert other.result_sha256 == straight.result_sha256 != ""
    elsewhere = play(opened(name="seed", seed=4))
    assert elsewhere.result_sha256 != straight.result_sha256


def test_a_share_in_two_hands_is_stored_by_one_of_them() -> None:
    tournament = opened()
    cast = services.cast_of(tournament)
    first = services.claim_next(cast, owner="slow", now=timezone.now() - timedelta(hours=1))
    second = services.claim_next(cast, owner="quick", now=timezone.now())
    assert first.shard.pk == second.shard.pk, "the lease had run out"
    services.play_share(cast, second)
    with pytest.raises(Lost):
        services.play_share(cast, first)
    assert tournament.games.count() == second.shard.pairs * second.shard.scenarios
    assert Episode.objects.count() == tournament.games.count()


def test_a_share_that_is_held_is_nobody_elses() -> None:
    tournament = opened()
    cast = services.cast_of(tournament)
    taken = {services.claim_next(cast, owner=f"w{k}", now=timezone.now()).shard.pk for k in range(3)}
    assert len(taken) == 3


def test_the_same_game_cannot_be_stored_twice() -> None:
    tournament = play(opened(scenarios=1))
    game = tournament.games.first()
    other = Episode.objects.exclude(pk=game.episode_id).first()
    with pytest.raises(IntegrityError), transaction.atomic():
        TournamentGame.objects.create(tournament=tournament, pair=game.pair, scenario=game.scenario, episode=other)


def test_a_worker_that_dies_between_shares_leaves_the_rest_to_the_next() -> None:
    tournament = opened()
    asked = iter([False, False, True])
    play(tournament, stop=lambda: next(asked, True))
    assert 0 < tournament.games.count() < len(everything(tournament))
    assert tournament.status == TournamentStatus.RUNNING
    play(tournament)
    assert cells(tournament) == everything(tournament)


def test_a_worker_that_must_end_gives_its_share_back() -> None:
    tournament = opened()
    cast = services.cast_of(tournament)
    claim = services.claim_next(cast, owner="me", now=timezone.now())
    with pytest.raises(Lost):
        services.play_share(cast, claim, drop=lambda: True)
    claim.shard.refresh_from_db()
    assert (claim.shard.state, claim.shard.attempts, tournament.games.count()) == (ShardState.QUEUED, 0, 0)


def test_shares_of_a_dead_process_of_this_machine_are_free_at_once(monkeypatch) -> None:
    tournament = opened()
    cast = services.cast_of(tournament)
    claim = services.claim_next(cast, owner=services.owner_name(), now=timezone.now())
    assert services.release_dead(tournament) == 0
    monkeypatch.setattr(services, "_is_alive", lambda _process: False)
    assert services.release_dead(tournament) == 1
    assert services.claim_next(cast, owner="next", now=timezone.now()).shard.pk == claim.shard.pk


def test_a_killed_process_is_dead_before_anybody_has_collected_it() -> None:
    process = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    assert services._is_alive(process.pid)
    process.kill()
    until = time.monotonic() + 10
    while services._is_alive(process.pid) and time.monotonic() < until:
        time.sleep(0.01)
    assert not services._is_alive(process.pid)
    process.wait()
    assert not services._is_alive(process.pid)


def test_an_agents_fault_rises_is_written_down_and_fails_the_tournament_in_the_end(monkeypatch) -> None:
    tournament = opened()
    cast = services.cast_of(tournament)

    def broken(**_more):
        raise ZeroDivisionError("a bug")
        yield

    monkeypatch.setattr(services, "play_block", broken)
    for _attempt in range(services.MAX_ATTEMPTS):
        with pytest.raises(ZeroDivisionError):
            services.work(cast, owner="me")
    services.work(cast, owner="me")
    tournament.refresh_from_db()
    assert (tournament.status, tournament.error) == (TournamentStatus.FAILED, "ZeroDivisionError: a bug")
    assert tournament.games.count() == 0
    monkeypatch.undo()
    opened()
    assert play(tournament).status == TournamentStatus.DONE


def test_a_cancelled_tournament_stops_and_goes_on_under_the_same_name() -> None:
    tournament = opened()
    cast = services.cast_of(tournament)
    services.play_share(cast, services.claim_next(cast, owner="me", now=timezone.now()))
    in_hand = services.claim_next(cast, owner="me", now=timezone.now())
    services.cancel(tournament)
    with pytest.raises(Lost):
        services.play_share(cast, in_hand)
    kept = tournament.games.count()
    assert kept == in_hand.shard.pairs * in_hand.shard.scenarios
    assert services.claim_next(cast, owner="me", now=timezone.now()) is None
    services.cancel(tournament)
    again = play(opened())
    assert (again.pk, again.status) == (tournament.pk, TournamentStatus.DONE)
    assert cells(again) == everything(again)
    assert again.result_sha256 == play(opened(name="straight")).result_sha256


def test_a_finished_tournament_cannot_be_cancelled() -> None:
    tournament = play(opened(scenarios=1))
    with pytest.raises(TournamentError, match="Only a tournament under way"):
        services.cancel(tournament)
    assert tournament.status == TournamentStatus.DONE


@pytest.mark.parametrize(
    ("changes", "what"),
    [
        ({"agents": "linear,boulware"}, "other agents"),
        ({"scenarios": 11}, "other scenarios"),
        ({"seed": 9}, "other seed"),
    ],
    ids=["agents", "scenarios", "seed"],
)
def test_a_name_belongs_to_one_tournament(changes, what) -> None:
    opened()
    with pytest.raises(TournamentError, match=what):
        opened(**changes)
    assert Tournament.objects.count() == 1


def test_another_market_is_another_tournament() -> None:
    tournament = opened()
    other = market(slug="other", values="uniform:0:50")
    with pytest.raises(TournamentError, match="other market"):
        services.open_tournament(
            name="cup", market=other, agents=[registry.get("linear"), registry.get("conceder")], scenarios=10, seed=3
        )
    assert tournament.games.count() == 0


def test_an_agent_that_has_changed_since_is_not_mixed_in(monkeypatch) -> None:
    tournament = opened()
    Tournament.objects.filter(pk=tournament.pk).update(agents='[["linear","0"],["conceder","1"]]')
    tournament.refresh_from_db()
    with pytest.raises(TournamentError, match="version 0, which is now version"):
        services.cast_of(tournament)


def test_a_finished_tournament_stays_what_it_was_when_its_market_or_agents_move_on(monkeypatch) -> None:
    tournament = play(opened(scenarios=2))
    assert services.changes_since(tournament) == []
    newer = Market.objects.get(pk=tournament.market_id)
    newer.pk, newer.version = None, 2
    newer.save()
    again, made = services.open_tournament(
        name="cup", market=newer, agents=[registry.get("linear"), registry.get("conceder")], scenarios=2, seed=3
    )
    assert (again.pk, made, again.market.version) == (tournament.pk, False, 1)
    assert services.changes_since(again) == ["'money' is now version 2; this tournament is held in version 1."]


def test_sellers_and_buyers_of_a_market_with_several_buyers_fill_its_seats() -> None:
    there = market(slug="three", family="multi_buyer", buyers=3, cost="constant:0")
    specs = [registry.get(slug) for slug in ("one-pass", "linear", "threshold")]
    tournament, _made = services.open_tournament(name="three", market=there, agents=specs, scenarios=3, seed=1)
    play(tournament)
    assert tournament.games.count() == 4 * 3
    pair = results.pairs_of(tournament).index(("one-pass", "threshold"))
    seats = tournament.games.get(pair=pair, scenario=0).episode.seats
    assert list(seats.values_list("party", "agent_slug")) == [
        ("seller", "one-pass"), ("buyer-1", "threshold"), ("buyer-2", "threshold"), ("buyer-3", "threshold"),
    ]  # fmt: skip


def test_the_task_plays_and_calls_for_hands_when_its_stint_is_over(monkeypatch) -> None:
    tournament = opened()
    called: list[int] = []
    monkeypatch.setattr(tasks, "announce", lambda waiting: called.append(waiting.pk))
    monkeypatch.setattr(tasks, "STINT_S", 0.0)
    tasks.work(tournament_id=tournament.pk)
    assert called == [tournament.pk]
    monkeypatch.setattr(tasks, "STINT_S", 60.0)
    tasks.work(tournament_id=tournament.pk)
    tournament.refresh_from_db()
    assert (tournament.status, called) == (TournamentStatus.DONE, [tournament.pk])


def test_a_worker_lends_one_hand_at_a_time() -> None:
    tournament = opened()
    with tasks._hand:
        tasks.work(tournament_id=tournament.pk)
    assert tournament.games.count() == 0
    tasks.work(tournament_id=tournament.pk)
    assert tournament.games.count() == 40


def test_two_that_open_one_name_at_once_get_the_same_tournament(monkeypatch) -> None:
    first = opened()
    real = Tournament.objects.filter
    looks = iter([True])

    def filter_a_moment_too_early(**where):
        return Tournament.objects.none() if next(looks, False) else real(**where)

    monkeypatch.setattr(Tournament.objects, "filter", filter_a_moment_too_early)
    with pytest.raises(TournamentError, match="other seed"):
        opened(seed=9)
    assert Tournament.objects.count() == 1
    assert first.shards.count() == opened().shards.count()


def test_the_task_goes_to_the_default_queue() -> None:
    from negotiation_site.celery import app

    sent = app.amqp.router.route({}, tasks.work.name)
    assert sent["queue"].name == "default"
    assert tasks.work.name in app.tasks


def test_the_clock_calls_for_hands_while_shares_are_open_and_finishes_what_is_played(monkeypatch) -> None:
    tournament = opened()
    called: list[int] = []
    monkeypatch.setattr(tasks, "announce", lambda waiting: called.append(waiting.pk))
    tasks.sweep(now=timezone.now())
    assert called == [tournament.pk]
    cast = services.cast_of(tournament)
    while claim := services.claim_next(cast, owner="me", now=timezone.now()):
        services.play_share(cast, claim)
    tasks.sweep(now=timezone.now())
    tournament.refresh_from_db()
    assert (tournament.status, len(called)) == (TournamentStatus.DONE, 1)
    tasks.sweep(now=timezone.now())
    assert len(called) == 1
