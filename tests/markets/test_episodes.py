"""The one record: the same from a live room and a simulation, valid without words or names, and false when touched."""

import json
from importlib import import_module

import pytest
from django.apps import apps
from django.utils import timezone

from agents import registry, simulation
from agents.words import with_words
from markets import episodes, export, services
from markets.engine import figures
from markets.engine.protocol import SELLER, AcceptOffer, Role
from markets.engine.scenarios import decode_recipe
from markets.models import (
    ConsentScope,
    Episode,
    EpisodeSeat,
    EpisodeText,
    Market,
    Participant,
    RecordChange,
    SeatKind,
    Utterance,
)
from tests.markets import rooms
from tests.markets.engine.factories import B1, B2, LEAVE, accept, bilateral, catalogue, offer, say
from tests.markets.rooms import Game, staged

pytestmark = pytest.mark.django_db


def dealt() -> Game:
    """Two people agree on $65, with words."""
    game = staged(bilateral(), people=(B1, SELLER))
    game.act(B1, offer(6_000, talk="Sixty?"))
    game.act(SELLER, offer(6_500, talk="Sixty-five, and it is yours."))
    game.act(B1, accept(2))
    return game


def simulated(market: Market, *, seller: str, buyers: str) -> Episode:
    """One stored episode of agents."""
    specs = [registry.get(seller), *map(registry.get, buyers.split(","))]
    ((scenario, played),) = simulation.simulate(
        recipe=decode_recipe(market.recipe),
        pool=services.market_pool(market),
        seller=specs[0],
        buyers=specs[1:],
        episodes=1,
        seed=5,
        words=with_words,
    )
    chairs = [SELLER, *(f"buyer-{k}" for k in range(1, scenario.buyers + 1))]
    sittings = tuple(
        episodes.Sitting(chair, SeatKind.AGENT.value, spec.slug, spec.version)
        for chair, spec in zip(chairs, specs, strict=True)
    )
    words = tuple(episodes.Words(n, SELLER, action.talk) for n, action in played.actions.items() if action.talk)
    batch = [episodes.Simulated(scenario=scenario, log=played.log, sittings=sittings, words=words)]
    episodes.store_simulated(market, batch, now=timezone.now())
    return Episode.objects.latest("pk")


def shape(value: object) -> object:
    """Names and kinds of a JSON structure, without its values."""
    if isinstance(value, dict):
        return {key: shape(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [shape(value[0])] if value else []
    return type(value).__name__ if value is not None else None


# --- One record -------------------------------------------------------------------------------------


def test_a_live_game_and_a_simulation_leave_records_of_the_same_form():
    live = dealt().episode
    other = simulated(rooms.market(slug="wide", values="uniform:80:120"), seller="conceder", buyers="conceder")
    assert other.deals == 1
    records = [export.record(episode) for episode in (live, other)]
    for record in records:
        del record["seats"], record["events"], record["scenario"]["opening_bids"]
    first, second = (shape(record) for record in records)
    first["scenario"].pop("prior"), second["scenario"].pop("prior")
    assert first == second
    for field in Episode._meta.get_fields():
        if field.concrete and field.name not in ("id", "public_id", "room"):
            assert type(getattr(live, field.name)) is type(getattr(other, field.name)), field.name


def test_a_live_record_says_who_sat_where_and_what_it_came_to():
    game = dealt()
    episode = game.episode
    assert (episode.source, episode.room, episode.deals, episode.end_reason) == ("live", game.room, 1, "deal")
    assert (episode.seller_surplus_cents, episode.buyer_surplus_cents) == (1_500, 1_500)
    assert (episode.welfare_cents, episode.first_best_cents, episode.seller_share) == (3_000, 3_000, 0.5)
    assert (episode.seller_messages, episode.buyer_messages) == (1, 2)
    seats = {seat.party: seat for seat in episode.seats.all()}
    assert (seats[B1].surplus_cents, seats[B1].surplus_share) == (1_500, 0.5)
    assert seats[B1].participant == game.people[B1]
    assert seats[B1].consent_version


def test_an_agents_seat_names_its_version():
    game = staged(bilateral(), people=(B1,), agents="boulware")
    game.act(B1, LEAVE)
    seat = game.episode.seats.get(party=SELLER)
    assert (seat.kind, seat.agent_slug, seat.agent_version, seat.participant) == ("agent", "boulware", "1", None)
    assert seat.consent_scope == ""


def test_a_loss_is_a_negative_surplus_and_counted_as_a_violation():
    game = staged(bilateral(), people=(B1, SELLER))
    game.act(B1, offer(9_000))
    game.act(SELLER, accept(1))
    episode = game.episode
    assert (episode.buyer_surplus_cents, episode.buyer_violations, episode.seller_violations) == (-1_000, 1, 0)


def test_without_a_zone_of_agreement_there_is_no_share():
    game = staged(bilateral(value=4_000, cost=6_000), people=(B1,))
    game.act(B1, LEAVE)
    assert game.episode.seller_share is None
    assert game.episode.first_best_cents == 0
    assert set(game.episode.seats.values_list("surplus_share", flat=True)) == {None}


def test_a_buyer_without_a_deal_is_measured_against_what_it_could_have_had():
    game = staged(catalogue(), people=(SELLER, B1, B2))
    game.act(SELLER, offer(6_000, to=1))
    game.act(B1, accept(1))
    game.act(B2, LEAVE)
    assert game.episode.end_reason in ("deal", "buyers_gone")
    seats = {seat.party: (seat.surplus_cents, seat.surplus_share) for seat in game.episode.seats.all()}
    assert seats[B1] == (3_000, 0.75)
    assert seats[B2] == (0, 0.0)
    assert seats[SELLER] == (1_000, game.episode.seller_share)


def test_words_are_copied_into_the_record_and_thoughts_with_them():
    game = dealt()
    texts = list(EpisodeText.objects.order_by("n").values_list("n", "party", "talk"))
    assert texts == [(1, B1, "Sixty?"), (2, SELLER, "Sixty-five, and it is yours.")]
    assert list(Utterance.objects.filter(room=game.room).order_by("n").values_list("n", "party", "talk")) == texts


def test_only_a_finished_negotiation_has_a_record():
    game = staged(bilateral(), people=(B1,))
    with pytest.raises(ValueError, match="finished"):
        episodes.store_simulated(
            game.room.market,
            [episodes.Simulated(scenario=game.scenario, log=(), sittings=())],
            now=timezone.now(),
        )
    assert not Episode.objects.exists()


# --- The hash ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("family", ["bilateral", "multi_buyer", "catalogue"])
def test_what_was_written_verifies(family):
    sellers = {"bilateral": "linear", "multi_buyer": "falling-ladder", "catalogue": "greedy"}
    market = rooms.market(family)
    buyers = decode_recipe(market.recipe).buyers
    assert episodes.verify(simulated(market, seller=sellers[family], buyers=",".join(["linear"] * buyers)))


def test_erasing_words_and_people_leaves_the_record_valid():
    game = dealt()
    Utterance.objects.all().delete()
    EpisodeText.objects.all().delete()
    for participant in Participant.objects.all():
        participant.delete()
    episode = Episode.objects.get()
    assert episode.room_id == game.room.pk
    assert set(episode.seats.values_list("kind", "participant")) == {("person", None)}
    assert episodes.verify(episode)
    record = json.dumps(export.record(episode))
    assert "Sixty" not in record


def test_changing_who_may_use_it_leaves_the_record_valid():
    game = dealt()
    rooms.agree(game, B1, "private")
    assert episodes.verify(game.episode)


def touched(episode: Episode, **changes: object) -> Episode:
    Episode.objects.filter(pk=episode.pk).update(**changes)
    return Episode.objects.get(pk=episode.pk)


@pytest.mark.parametrize(
    ("field", "old", "new"),
    [
        ("log", '"price_cents":6500', '"price_cents":6600'),
        ("log", '"by":"buyer"', '"by":"seller"'),
        ("log", '"buyer":1', '"buyer":9'),
        ("log", '"n":2', '"n":3'),
        ("log", "offer_made", "offer_maid"),
        ("log", "]", ""),
        ("scenario", '"seller_values_cents":[5000]', '"seller_values_cents":[1000]'),
        ("scenario", "{", "["),
        ("protocol_version", "2", "3"),
    ],
)
def test_a_touched_record_is_noticed(field, old, new):
    episode = dealt().episode
    text = getattr(episode, field)
    assert old in text
    assert not episodes.verify(touched(episode, **{field: text.replace(old, new)}))


@pytest.mark.parametrize(
    "changes",
    [
        {"seller_surplus_cents": 1},
        {"buyer_surplus_cents": 1},
        {"end_reason": "deadline"},
        {"deals": 2},
        {"welfare_cents": 9_999},
        {"first_best_cents": 1},
        {"seller_share": 0.9},
        {"seller_messages": 7},
        {"buyer_messages": 7},
        {"seller_violations": 1},
        {"buyer_violations": 1},
        {"scenario_key": 1},
    ],
    ids=str,
)
def test_a_figure_that_does_not_follow_from_the_log_is_noticed(changes):
    assert not episodes.verify(touched(dealt().episode, **changes))


def test_a_seat_given_to_another_agent_or_another_result_is_noticed():
    game = dealt()
    for changes in (
        {"agent_slug": "linear"},
        {"kind": "agent"},
        {"surplus_cents": 1},
        {"surplus_share": 0.1},
        {"figures": "{}"},
    ):
        old = EpisodeSeat.objects.filter(episode=game.episode, party=B1).values(*changes).get()
        EpisodeSeat.objects.filter(episode=game.episode, party=B1).update(**changes)
        assert not episodes.verify(game.episode), changes
        EpisodeSeat.objects.filter(episode=game.episode, party=B1).update(**old)
    assert episodes.verify(game.episode)


def test_the_hash_does_not_depend_on_the_order_of_seats():
    sittings = [episodes.Sitting(SELLER, "agent", "linear", "1"), episodes.Sitting(B1, "person")]
    parts = {"protocol_version": "1", "scenario": "{}", "log": "[]"}
    forwards = episodes.record_sha256(sittings=sittings, **parts)
    assert forwards == episodes.record_sha256(sittings=sittings[::-1], **parts)
    newer = [episodes.Sitting(SELLER, "agent", "linear", "2"), sittings[1]]
    assert forwards != episodes.record_sha256(sittings=newer, **parts)


# --- How each seat negotiated -----------------------------------------------------------------------


def test_a_record_keeps_how_each_seat_negotiated():
    episode = dealt().episode
    buyer = figures.decode(episode.seats.get(party=B1).figures)
    assert (buyer.opening_cents, buyer.opening_ratio, buyer.price_cents) == (6_000, 0.75, 6_500)
    assert figures.decode(episode.seats.get(party=SELLER).figures).patience == pytest.approx(2 / 6)


def test_equal_scenarios_share_a_key_and_others_do_not():
    market = rooms.market()
    first, again = (simulated(market, seller="linear", buyers=agent) for agent in ("linear", "boulware"))
    assert first.scenario_key == again.scenario_key == episodes.scenario_key(first.scenario) > 0
    other = simulated(rooms.market(slug="other", cost="uniform:10:80"), seller="linear", buyers="linear")
    assert other.scenario_key != first.scenario_key


def test_figures_are_worked_out_again_from_the_log():
    episode = dealt().episode
    EpisodeSeat.objects.filter(party=B1).update(figures="{}")
    assert not episodes.verify(episode)
    assert episodes.refresh_figures() == 1
    assert episodes.verify(Episode.objects.get())
    assert episodes.refresh_figures() == 0


def test_records_from_before_figures_were_kept_get_theirs_when_the_site_is_brought_up_to_date():
    migration = import_module("markets.migrations.0002_episode_figures")
    kept = [dealt().episode, simulated(rooms.market("catalogue"), seller="greedy", buyers="linear,linear")]
    Episode.objects.update(scenario_key=0)
    EpisodeSeat.objects.update(figures="")
    migration.work_out(apps, None)
    assert all(episodes.verify(Episode.objects.get(pk=episode.pk)) for episode in kept)


def changes() -> list[int]:
    return list(RecordChange.objects.values_list("episode_number", flat=True))


def test_writing_a_record_changes_no_record():
    dealt()
    assert changes() == []


def test_whoever_keeps_a_copy_is_told_of_a_person_who_goes_of_an_erased_record_and_of_consent():
    game = dealt()
    number = game.episode.pk
    rooms.agree(game, B1, "private")
    assert changes() == [number]
    game.people[B1].delete()
    assert changes() == [number] * 2
    Episode.objects.all().delete()
    assert changes() == [number] * 3


# --- Scope ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("people", "scope"),
    [
        ((), "public"),
        (("public",), "public"),
        (("public", "research"), "research"),
        (("research", "", "public"), "private"),
        (("private", "public"), "private"),
    ],
)
def test_the_scope_is_the_narrowest_of_the_people_and_agents_have_no_say(people, scope):
    seats = [EpisodeSeat(kind=SeatKind.PERSON, consent_scope=chosen) for chosen in people]
    seats.append(EpisodeSeat(kind=SeatKind.AGENT, consent_scope=""))
    assert episodes.narrowest_scope(seats) == scope
    assert scope in ConsentScope.values


def test_the_record_of_a_seller_who_sold_twice_adds_up():
    game = staged(catalogue(), people=(SELLER, B1, B2))
    game.act(SELLER, offer(7_000, to=1))
    game.act(B1, AcceptOffer(offer_id=1))
    game.act(SELLER, offer(6_000, to=2, product=1))
    game.act(B2, AcceptOffer(offer_id=1))
    episode = game.episode
    by_role = {role: sum(s.surplus_cents for s in episode.seats.all() if s.role == role) for role in Role}
    assert by_role == {"seller": episode.seller_surplus_cents, "buyer": episode.buyer_surplus_cents}
    assert episode.welfare_cents == sum(by_role.values()) == 4_000 + 3_500
    assert episode.deals == 2


def test_silence_is_recorded_as_silence():
    game = staged(bilateral(), people=(B1, SELLER))
    game.act(B1, say("Anybody there?"))
    services.sweep(game.seat(SELLER).deadline_at)
    assert (game.episode.end_reason, game.episode.deals) == ("deadline", 0)
