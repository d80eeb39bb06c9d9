"""Writes to rooms: what a person does happens once or not at all, and nobody moves from a chair that is not theirs."""

from datetime import timedelta

import pytest
from django.utils import timezone

from markets import episodes, services
from markets.engine.protocol import SELLER, Leave, MakeOffer, Role, Say
from markets.engine.scenarios import OpeningBid, decode_scenario
from markets.models import (
    AgentTurn,
    Episode,
    Participant,
    Room,
    RoomEvent,
    RoomStatus,
    Seat,
    SeatKind,
    TurnState,
    Utterance,
)
from markets.services import RoomError
from tests.markets import rooms
from tests.markets.engine.factories import (
    B1,
    B2,
    LEAVE,
    accept,
    bilateral,
    catalogue,
    multi_buyer,
    offer,
    reject,
    say,
)
from tests.markets.rooms import Game, agree, staged

pytestmark = pytest.mark.django_db

NOW = timezone.now()


def open_solo(**changes):
    """A person in the buyer's seat of a market against an agent."""
    host = changes.pop("host", None) or rooms.person()
    spec = {"market": rooms.market(), "host": host, "role": Role.BUYER, "agents": {SELLER: rooms.agent("linear")}}
    return services.open_room(**{**spec, **changes})


def join_refusal(room: Room, token: str, participant: Participant) -> RoomError:
    with pytest.raises(RoomError) as refused:
        services.join_room(room=room, token=token, participant=participant)
    return refused.value


# --- Opening ----------------------------------------------------------------------------------------


def test_a_game_against_an_agent_begins_at_once():
    room = open_solo()
    assert (room.status, room.fills_at) == (RoomStatus.LIVE, None)
    assert room.opened_at is not None
    seats = {seat.party: seat for seat in room.seats.all()}
    assert (seats[B1].kind, seats[SELLER].kind) == (SeatKind.PERSON, SeatKind.AGENT)
    assert (seats[SELLER].agent_slug, seats[SELLER].agent_version) == ("linear", "1")
    assert seats[B1].due_position == 0


def test_a_seller_of_several_finds_an_agent_on_every_chair():
    agents = {f"buyer-{k}": rooms.agent("conceder") for k in (1, 2, 3)}
    room = open_solo(market=rooms.market("multi_buyer"), role=Role.SELLER, agents=agents)
    kinds = dict(room.seats.values_list("party", "kind"))
    assert kinds == {SELLER: "person", "buyer-1": "agent", "buyer-2": "agent", "buyer-3": "agent"}


def test_the_same_seed_deals_the_same_hand_for_ever():
    first, again, other = open_solo(seed=11), open_solo(seed=11), open_solo(seed=12)
    assert first.scenario == again.scenario
    assert first.scenario != other.scenario
    assert decode_scenario(first.scenario).seed == 11


def test_opening_bids_are_on_the_table_when_the_game_begins_and_cost_nobody_a_turn():
    game = staged(multi_buyer(openings=(2_700, 2_800, 2_900)), people=(SELLER,))
    assert game.kinds == ["offer_made"] * 3
    assert [thread.standing[0].price_cents for thread in game.state.threads] == [2_700, 2_800, 2_900]
    assert game.state.turns_used == 0
    assert game.seat(SELLER).due_position is not None


def test_nobody_can_open_rooms_without_end_and_finished_ones_do_not_count():
    host = rooms.person()
    ended = open_solo(host=host)
    Room.objects.filter(pk=ended.pk).update(status=RoomStatus.ENDED)
    for _ in range(services.MAX_OPEN_ROOMS):
        open_solo(host=host)
    with pytest.raises(RoomError, match="30 negotiations going") as refused:
        open_solo(host=host)
    assert refused.value.code == "too_many_rooms"
    assert Room.objects.count() == services.MAX_OPEN_ROOMS + 1


def test_who_has_many_rooms_going_does_not_sit_down_in_another(monkeypatch):
    monkeypatch.setattr(services, "MAX_OPEN_ROOMS", 1)
    game = staged(bilateral(), people=(B1, SELLER), start=False)
    busy = rooms.person()
    open_solo(host=busy)
    with pytest.raises(RoomError, match="1 negotiations going") as refused:
        services.join_room(room=game.room, token=game.seat(SELLER).join_token, participant=busy)
    assert refused.value.code == "too_many_rooms"
    assert game.fresh().status == RoomStatus.WAITING


# --- Joining ----------------------------------------------------------------------------------------


def test_the_game_waits_for_the_other_person_and_begins_when_they_sit_down():
    game = staged(bilateral(), people=(B1, SELLER), start=False)
    assert game.fresh().status == RoomStatus.WAITING
    assert game.refusal(B1, offer(6_000)) == "not_started"
    guest = rooms.person()
    services.join_room(room=game.fresh(), token=game.seat(SELLER).join_token, participant=guest)
    seat = game.seat(SELLER)
    assert (seat.kind, seat.participant, seat.agent_slug) == (SeatKind.PERSON, guest, "")
    assert game.fresh().status == RoomStatus.LIVE
    assert game.act(B1, offer(6_000)).version == 1


def test_a_person_cannot_sit_on_both_sides_of_the_table():
    game = staged(bilateral(), people=(B1, SELLER), start=False)
    refused = join_refusal(game.fresh(), game.seat(SELLER).join_token, game.people[B1])
    assert refused.code == "already_seated"
    assert game.seat(SELLER).kind == SeatKind.OPEN


def test_opening_the_own_link_a_second_time_changes_nothing():
    game = staged(bilateral(), people=(B1, SELLER))
    before = game.fresh().version
    seat = services.join_room(room=game.fresh(), token=game.seat(SELLER).join_token, participant=game.people[SELLER])
    assert seat.party == SELLER
    assert game.fresh().version == before


def test_a_taken_seat_stays_taken():
    game = staged(bilateral(), people=(B1, SELLER))
    refused = join_refusal(game.fresh(), game.seat(SELLER).join_token, rooms.person())
    assert refused.code == "seat_taken"
    assert game.seat(SELLER).participant == game.people[SELLER]


def test_the_link_of_a_persons_own_seat_lets_nobody_else_in():
    game = staged(bilateral(), people=(B1, SELLER), start=False)
    assert join_refusal(game.fresh(), game.seat(B1).join_token, rooms.person()).code == "seat_taken"


def test_a_link_of_another_room_leads_nowhere():
    game, other = (staged(bilateral(), people=(B1, SELLER), start=False) for _ in range(2))
    stranger = rooms.person()
    assert join_refusal(game.fresh(), other.seat(SELLER).join_token, stranger).code == "unknown_link"
    assert not stranger.seats.exists()


def test_a_finished_room_cannot_be_joined():
    game = staged(bilateral(), people=(B1, SELLER))
    game.act(B1, LEAVE)
    assert game.fresh().status == RoomStatus.ENDED
    refused = join_refusal(game.fresh(), game.seat(SELLER).join_token, rooms.person())
    assert refused.code == "room_ended"


def test_an_agent_takes_the_open_seat_after_the_wait_and_not_before():
    game = staged(bilateral(), people=(B1, SELLER), start=False, agents="boulware")
    fills_at = game.fresh().fills_at
    services.sweep(fills_at - timedelta(seconds=1))
    assert game.fresh().status == RoomStatus.WAITING
    assert services.sweep(fills_at) == 1
    assert game.fresh().status == RoomStatus.LIVE
    assert (game.seat(SELLER).kind, game.seat(SELLER).agent_slug) == (SeatKind.AGENT, "boulware")
    assert join_refusal(game.fresh(), game.seat(SELLER).join_token, rooms.person()).code == "seat_taken"
    assert services.sweep(fills_at) == 0


def test_a_room_that_has_begun_is_not_filled_again():
    game = staged(bilateral(), people=(B1, SELLER))
    assert not services.fill_open_seats(game.fresh())


# --- Moving -----------------------------------------------------------------------------------------


def test_a_move_is_stored_with_its_words_and_hands_the_turn_on():
    game = staged(bilateral(), people=(B1,))
    assert game.act(B1, offer(6_000, talk="Sixty?")) == services.Accepted(version=1)
    event = RoomEvent.objects.get()
    assert (event.n, event.party) == (1, B1)
    assert "Sixty" not in event.event
    assert Utterance.objects.values_list("n", "party", "talk", "thought").get() == (1, B1, "Sixty?", "")
    assert [(turn.party, turn.position) for turn in game.queued()] == [(SELLER, 1)]
    assert game.seat(B1).due_position is None


def test_the_same_move_sent_twice_is_one_move():
    game = staged(bilateral(), people=(B1, SELLER))
    first = game.act(B1, offer(6_000), move="m-1", seen=0)
    again = game.act(B1, offer(6_000), move="m-1", seen=0)
    assert (first.repeated, again.repeated) == (False, True)
    assert again.version == first.version == 1
    assert RoomEvent.objects.count() == 1


def test_a_repeat_that_arrives_after_the_end_is_still_acknowledged():
    game = staged(bilateral(), people=(B1, SELLER))
    game.act(B1, LEAVE, move="bye")
    assert game.act(B1, LEAVE, move="bye").repeated
    assert Episode.objects.count() == 1


def test_two_people_may_choose_the_same_identifier():
    game = staged(bilateral(), people=(B1, SELLER))
    game.act(B1, offer(6_000), move="1")
    assert not game.act(SELLER, offer(7_000), move="1").repeated
    assert game.kinds == ["offer_made", "offer_made"]


@pytest.mark.parametrize(
    ("action", "code"),
    [
        (offer(0), "price_out_of_range"),
        (offer(-100), "price_out_of_range"),
        (offer(10**12), "price_out_of_range"),
        (offer(6_000, product=4), "unknown_product"),
        (offer(6_000, to=2), "unknown_thread"),
        (accept(1), "unknown_offer"),
        (accept(99), "unknown_offer"),
        (reject(-1), "unknown_offer"),
        (say("   "), "empty_message"),
        (say("x" * 2_001), "talk_too_long"),
        (Say(talk="half \ud83d"), "talk_not_text"),
        (Say(talk="nul \0"), "talk_not_text"),
    ],
)
def test_a_refused_move_leaves_no_trace(action, code):
    game = staged(bilateral(), people=(B1, SELLER))
    assert game.refusal(B1, action) == code
    assert not Utterance.objects.exists()


def test_nobody_moves_out_of_turn():
    game = staged(bilateral(), people=(B1, SELLER))
    assert game.refusal(SELLER, offer(9_000)) == "not_your_turn"


def test_nothing_is_added_after_the_end():
    game = staged(bilateral(), people=(B1, SELLER))
    game.act(B1, LEAVE)
    assert game.refusal(SELLER, offer(9_000)) == "negotiation_ended"


def test_no_first_move_without_a_word_on_who_may_use_the_game():
    game = staged(bilateral(), people=(B1, SELLER), consent="")
    assert game.refusal(B1, offer(6_000)) == "no_consent"
    agree(game, B1, "private")
    game.act(B1, offer(6_000))
    assert game.refusal(SELLER, offer(9_000)) == "no_consent"


def test_whoever_wants_to_go_need_not_say_who_may_use_the_game():
    game = staged(bilateral(), people=(B1, SELLER), consent="")
    game.act(B1, LEAVE)
    assert game.episode.consent_scope == "private"


def test_a_second_tab_that_did_not_see_the_answer_is_told_so():
    game = staged(bilateral(), people=(B1, SELLER))
    game.act(B1, offer(5_500), seen=0)
    game.act(SELLER, offer(7_000), seen=1)
    assert game.refusal(B1, offer(5_600), seen=1) == "stale_view"
    assert game.refusal(B1, accept(2), seen=1) == "stale_view"
    game.act(B1, accept(2), seen=2)
    assert game.kinds[2] == "offer_accepted"


@pytest.mark.parametrize("seen", [-1, -(10**6)])
def test_a_view_older_than_the_beginning_is_stale_too(seen):
    game = staged(bilateral(), people=(B1, SELLER))
    game.act(B1, say(), seen=0)
    game.act(SELLER, say(), seen=1)
    assert game.refusal(B1, say(), seen=seen) == "stale_view"


def test_whoever_wants_to_leave_need_not_have_seen_the_last_word():
    game = staged(bilateral(), people=(B1, SELLER))
    game.act(B1, offer(5_500), seen=0)
    game.act(SELLER, offer(7_000), seen=1)
    game.act(B1, LEAVE, seen=0)
    assert game.kinds[-2:] == ["party_left", "negotiation_ended"]


def test_a_seller_may_write_to_one_buyer_while_another_answers():
    game = staged(multi_buyer(), people=(SELLER, B1, B2), agents="threshold")
    game.act(SELLER, say(to=1), seen=0)
    seen = game.view(SELLER).seq
    game.act(B1, offer(4_500), seen=1)
    game.act(SELLER, say(to=2), seen=seen)
    assert game.refusal(SELLER, say(to=1), seen=seen) == "stale_view"


def test_a_person_whose_seat_was_given_up_moves_nothing():
    game = staged(bilateral(), people=(B1, SELLER))
    old = game.seat(B1)
    Seat.objects.filter(pk=old.pk).update(participant=rooms.person())
    with pytest.raises(RoomError) as refused:
        services.submit_action(room=game.fresh(), seat=old, action=offer(6_000), client_move_id="m")
    assert refused.value.code == "not_seated"
    assert not RoomEvent.objects.exists()


def test_an_agents_chair_cannot_be_played_by_hand():
    game = staged(bilateral(opener=Role.SELLER), people=(B1,))
    assert game.refusal(SELLER, offer(9_000)) == "not_seated"


def test_a_deal_ends_the_room_and_writes_its_record():
    game = staged(bilateral(), people=(B1, SELLER))
    game.act(B1, offer(6_000))
    game.act(SELLER, accept(1))
    room = game.fresh()
    assert (room.status, room.version) == (RoomStatus.ENDED, 4)
    assert game.kinds == ["offer_made", "offer_accepted", "product_sold_out", "negotiation_ended"]
    assert room.ended_at is not None
    assert game.episode.seller_surplus_cents == 1_000
    assert game.episode.buyer_surplus_cents == 2_000
    assert not room.seats.exclude(due_position=None, deadline_at=None).exists()


def test_the_clock_of_the_log_starts_when_the_game_begins():
    game = staged(bilateral(), people=(B1, SELLER))
    opened_at = game.fresh().opened_at
    game.act(B1, offer(6_000), now=opened_at + timedelta(milliseconds=1_500))
    assert RoomEvent.objects.get().at_ms == 1_500


@pytest.mark.parametrize(
    "scenario",
    [
        bilateral(opener=Role.SELLER),
        multi_buyer(openings=(2_700, 2_800, 2_900)),
        catalogue(openings=(OpeningBid(1, 0, 2_500), OpeningBid(2, 1, 2_600))),
    ],
    ids=lambda scenario: scenario.family.value,
)
def test_the_rooms_row_never_differs_from_the_fold_of_its_log(scenario):
    game = staged(scenario, people=(B1,))
    for _ in range(100):
        game.let_agents_play()
        room = game.fresh()
        assert room.version == game.state.version == RoomEvent.objects.filter(room=room).count()
        assert (room.status == RoomStatus.ENDED) == game.state.ended
        if game.state.ended or not game.view(B1).observation.to_move:
            break
        game.act(B1, say("Go on."))
    assert game.state.ended
    assert episodes.verify(game.episode)


# --- Consent ----------------------------------------------------------------------------------------


def finished(*scopes: str) -> Game:
    game = staged(bilateral(), people=(B1, SELLER), consent="")
    for party, scope in zip((B1, SELLER), scopes, strict=True):
        agree(game, party, scope)
    game.act(B1, LEAVE)
    return game


@pytest.mark.parametrize(
    ("buyer", "seller", "narrowest"),
    [
        ("public", "public", "public"),
        ("public", "research", "research"),
        ("research", "private", "private"),
        ("private", "public", "private"),
    ],
)
def test_a_record_goes_no_further_than_the_most_careful_of_its_people_allows(buyer, seller, narrowest):
    game = finished(buyer, seller)
    assert game.episode.consent_scope == narrowest
    scopes = dict(game.episode.seats.values_list("party", "consent_scope"))
    assert scopes == {B1: buyer, SELLER: seller}


def test_a_choice_changed_later_narrows_and_widens_the_record():
    game = finished("public", "public")
    agree(game, SELLER, "private")
    assert game.episode.consent_scope == "private"
    agree(game, SELLER, "research")
    assert game.episode.consent_scope == "research"
    agree(game, SELLER, "public")
    assert game.episode.consent_scope == "public"
    assert episodes.verify(game.episode)


def test_a_person_who_never_chose_has_agreed_to_nothing():
    game = staged(bilateral(), people=(B1, SELLER), consent="")
    agree(game, B1, "public")
    game.act(B1, LEAVE)
    assert game.episode.consent_scope == "private"


def test_the_choice_is_offered_again_next_time():
    game = staged(bilateral(), people=(B1,), consent="research")
    assert Participant.objects.get(pk=game.people[B1].pk).default_consent == "research"


def test_an_unknown_choice_is_refused_and_the_old_one_stays():
    game = staged(bilateral(), people=(B1,), consent="research")
    with pytest.raises(RoomError, match="Choose open data"):
        agree(game, B1, "everybody")
    assert game.seat(B1).consent_scope == "research"


# --- Deadlines --------------------------------------------------------------------------------------


def after_deadline(game: Game, party: str):
    return game.seat(party).deadline_at + timedelta(seconds=1)


def test_silence_between_two_people_ends_as_leaving_and_the_log_says_that_it_was_the_clock():
    game = staged(bilateral(), people=(B1, SELLER))
    game.act(B1, offer(6_000))
    deadline = game.seat(SELLER).deadline_at
    assert services.sweep(deadline - timedelta(seconds=1)) == 0
    assert services.sweep(deadline) == 1
    assert game.kinds[1:] == ["deadline_passed", "party_left", "negotiation_ended"]
    assert game.episode.end_reason == "deadline"
    assert game.state.threads[0].status == "left"
    assert services.sweep(deadline) == 0


def test_each_move_gives_the_other_person_the_markets_full_time():
    game = staged(bilateral(), people=(B1, SELLER), market_changes={"move_deadline_s": 90})
    now = game.fresh().opened_at + timedelta(seconds=30)
    game.act(B1, offer(6_000), now=now)
    assert game.seat(B1).deadline_at is None
    assert game.seat(SELLER).deadline_at == now + timedelta(seconds=90)


def test_a_person_alone_with_agents_is_not_hurried():
    game = staged(bilateral(), people=(B1,))
    opened_at = game.fresh().opened_at
    assert services.sweep(opened_at + timedelta(hours=24)) == 0
    assert services.sweep(opened_at + timedelta(days=3)) == 1
    assert game.fresh().status == RoomStatus.ENDED


def test_whoever_is_left_alone_with_agents_is_not_hurried_any_more():
    game = staged(multi_buyer(), people=(SELLER, B1), agents="threshold")
    now = game.fresh().opened_at
    assert game.seat(SELLER).deadline_at - now < timedelta(hours=1)
    game.act(B1, LEAVE, now=now)
    assert game.seat(SELLER).deadline_at - now > timedelta(days=1)


def test_nobody_is_held_who_wants_to_go_without_having_chosen_anything():
    game = staged(bilateral(), people=(B1, SELLER), consent="")
    game.act(B1, LEAVE)
    assert game.episode.consent_scope == "private"


def test_a_move_in_time_is_not_undone_by_a_late_clock():
    game = staged(bilateral(), people=(B1, SELLER))
    stale = game.seat(B1)
    late = after_deadline(game, B1)
    game.act(B1, offer(6_000))
    assert not services.expire_seat(seat=stale, now=late)
    assert game.kinds == ["offer_made"]


def test_one_silent_buyer_does_not_end_the_game_of_the_others():
    game = staged(multi_buyer(), people=(SELLER, B1, B2), agents="threshold")
    game.act(SELLER, offer(9_000, to=1))
    assert services.sweep(after_deadline(game, B1)) == 1
    assert game.fresh().status == RoomStatus.LIVE
    assert [thread.status for thread in game.state.threads] == ["left", "open", "open"]
    game.act(SELLER, offer(6_000, to=2))
    game.act(B2, accept(1))
    assert game.episode.end_reason == "deal"


def test_a_buyer_waiting_for_the_seller_is_not_timed():
    game = staged(multi_buyer(), people=(SELLER, B1), agents="threshold")
    assert game.seat(B1).deadline_at is None
    assert game.seat(SELLER).deadline_at is not None


def test_leaving_does_not_need_a_turn():
    game = staged(bilateral(), people=(B1, SELLER))
    game.act(SELLER, Leave())
    assert game.episode.end_reason == "seller_left"


def test_an_agents_turn_in_the_outbox_dies_with_the_room():
    game = staged(bilateral(opener=Role.SELLER), people=(B1,))
    (turn,) = game.queued()
    game.act(B1, LEAVE)
    game.let_agents_play()
    assert AgentTurn.objects.get(pk=turn.pk).state == TurnState.SUPERSEDED
    assert game.kinds == ["party_left", "negotiation_ended"]


def test_one_damaged_room_does_not_stop_the_clock_for_the_others(caplog):
    damaged, sound = (staged(bilateral(), people=(B1, SELLER)) for _ in range(2))
    for game in (damaged, sound):
        game.act(B1, offer(6_000))
    RoomEvent.objects.filter(room=damaged.room).delete()
    assert services.sweep(after_deadline(sound, SELLER)) == 1
    assert sound.fresh().status == RoomStatus.ENDED
    assert damaged.room.public_id in caplog.text


def test_presence_is_the_time_somebody_was_last_heard_of():
    game = staged(bilateral(), people=(B1,))
    services.touch_seat(seat=game.seat(B1), now=NOW)
    assert game.seat(B1).last_seen_at == NOW


def test_an_offer_beyond_what_a_column_holds_is_refused_by_the_rules_and_not_by_the_database():
    game = staged(bilateral(), people=(B1,))
    assert game.refusal(B1, MakeOffer(price_cents=10**30)) == "price_out_of_range"


def test_a_move_after_the_deadline_is_late_even_before_a_clock_has_looked():
    game = staged(bilateral(), people=(B1, SELLER))
    late = after_deadline(game, B1)
    assert game.refusal(B1, MakeOffer(price_cents=5_000), now=late) == "deadline_passed"
