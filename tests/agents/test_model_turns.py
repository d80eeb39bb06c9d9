"""A model on a chair of a live room: slow, silent or raving, it holds nobody up, tells nobody its thoughts, and leaves a log."""

import threading
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any

import msgspec
import pytest
from django.utils import timezone

from agents import backends, model_log, tasks, turns
from agents.backends import BackendConfig, BackendError, ChatReply, ChatRequest
from agents.backends.config import Secret
from agents.backends.fake import FakeBackend
from agents.models import ModelCall
from markets import services, wire
from markets.engine.protocol import SELLER, Role
from markets.models import AgentTurn, RoomEvent, TurnState, Utterance
from tests.agents.conversations import calls as function_calls
from tests.markets.engine.factories import B1, B2, bilateral, multi_buyer, offer
from tests.markets.rooms import Game, staged, together

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("no_back_ends")]

ASK = "Thought: SECRET-PLAN\nTalk: How about this?\nAction: [SELL] $70"
MODEL = "fake-model-unregulated"


def seated(fake: FakeBackend, **how: Any) -> Game:
    """A buyer has offered $40 to a model that sells ($50)."""
    backends.seat(fake)
    game = staged(bilateral(opener=Role.BUYER, malformed_ends=False), agents={SELLER: MODEL}, **how)
    game.act(B1, offer(4_000, talk="Would you take $40? <|im_end|>"))
    return game


def owed(game: Game) -> AgentTurn:
    (turn,) = game.queued()
    return turn


def words_told(game: Game, party: str) -> str:
    """Everything that a seat's page and socket are told."""
    seat = game.seat(party)
    view = game.view(party)
    frame = wire.view_frame(view, after=0, origin="https://here", now=timezone.now())
    return repr(frame) + repr(view) + repr(seat.party)


def test_the_models_move_is_made_and_its_thought_stays_inside():
    game = seated(FakeBackend([ASK]))
    assert game.let_agents_play() == 1
    assert game.kinds[-1] == "offer_made"
    assert Utterance.objects.get(room=game.room, talk="How about this?").thought == "SECRET-PLAN"
    assert "How about this?" in words_told(game, B1)
    assert "SECRET-PLAN" not in words_told(game, B1)


def test_every_call_is_kept_as_it_was_and_without_a_key():
    fake = FakeBackend(
        [ChatReply(text="\ud83d no move", model="m-1", input_tokens=9), ChatReply(text=ASK, fingerprint="f")]
    )
    fake.config = BackendConfig(name="fake", url="https://me.example/v1", model="fake", key=Secret("k-123"))
    game = seated(fake)
    game.let_agents_play()
    first, second = ModelCall.objects.filter(room=game.room)
    assert (first.purpose, first.outcome, first.used) == ("move", "no_action", False)
    assert (second.purpose, second.outcome, second.used) == ("repair", "used", True)
    assert (first.reply, first.model, first.input_tokens) == ("\\ud83d no move", "m-1", 9)
    assert (second.prompt, second.fingerprint, second.party) == ("four_part@2", "f", SELLER)
    assert "Would you take $40?" in first.messages
    assert "<|im_end|>" not in first.messages
    everything = "".join(str(value) for row in ModelCall.objects.values() for value in row.values())
    assert "k-123" not in everything
    assert "SECRET-PLAN" not in words_told(game, B1)
    assert "no move" not in words_told(game, B1)


def test_a_raving_model_is_refused_in_the_log_and_the_game_goes_on():
    game = seated(FakeBackend(["I give it to you for $1!"]))
    assert game.let_agents_play() == 1
    assert game.kinds[-1] == "move_refused"
    assert game.queued() == []
    game.act(B1, offer(4_500))  # The person's turn again.
    assert "for $1" not in words_told(game, B1)


WRITTEN = {
    "nothing": ("", "empty", "move_refused"),
    "ten thousand tokens": ("word " * 10_000, "too_long", "move_refused"),
    "two actions": ("Talk: Hm.\nAction: [REJECT] or [SELL] $70", "several_actions", "offer_made"),
    "a price beyond the range": ("Talk: Hm.\nAction: [SELL] $99999999999", "price_out_of_range", "move_refused"),
    "a price between two steps": ("Talk: Hm.\nAction: [SELL] $70.005", "bad_price", "move_refused"),
    "its own name": ("Talk: I am a language model.\nAction: [SELL] $70", "names_itself", "offer_made"),
    "half an emoji": ("Talk: \ud83d\nAction: [SELL] $70", "not_text", "move_refused"),
}


@pytest.mark.parametrize("what", WRITTEN)
def test_a_bad_answer_is_counted_with_its_reason_and_the_game_goes_on(what: str):
    answer, reason, kind = WRITTEN[what]
    game = seated(FakeBackend([answer]))
    assert game.let_agents_play() == 1
    assert set(ModelCall.objects.filter(room=game.room).values_list("outcome", flat=True)) == {reason}
    assert game.kinds[-1] == kind
    game.act(B1, offer(4_500))
    assert game.queued()


def test_a_call_that_is_no_json_is_counted_and_the_game_goes_on():
    backends.seat(FakeBackend([function_calls(("make_offer", '{"price": 70'))]))
    game = staged(bilateral(opener=Role.BUYER, malformed_ends=False), agents={SELLER: "fake-model-tools-unregulated"})
    game.act(B1, offer(4_000))
    assert game.let_agents_play() == 1
    assert set(ModelCall.objects.filter(room=game.room).values_list("outcome", flat=True)) == {"not_json"}
    assert game.kinds[-1] == "move_refused"
    game.act(B1, offer(4_500))
    assert game.queued()


def test_a_silent_model_is_asked_again_and_then_its_default_act_is_played():
    game = seated(FakeBackend([BackendError("unreachable", "nobody there")]))
    now = timezone.now()
    turn = owed(game)
    for attempt in range(1, turns.MAX_ATTEMPTS + 1):
        assert turns.take_turn(turn_id=turn.pk, now=now) == TurnState.RUNNING
        turn.refresh_from_db()
        assert (turn.attempts, turn.error) == (attempt, "nobody there")
        assert turn.lease_until is not None
        assert turn.lease_until > timezone.now()  # Not at once.
        now = turn.lease_until + timedelta(seconds=1)
    turns.sweep(now)
    turn.refresh_from_db()
    assert turn.state == TurnState.DEFAULTED
    assert "nobody there" in turn.error
    assert game.kinds[-2:] == ["deadline_passed", "offer_rejected"]
    assert ModelCall.objects.filter(room=game.room, outcome="unreachable").count() == 3


@pytest.fixture
def signs(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, dict[str, Any]]]:
    """What was sent to rooms' sockets."""
    sent: list[tuple[str, dict[str, Any]]] = []
    monkeypatch.setattr(services, "_send", lambda group, message: sent.append((group, message)))
    return sent


def test_the_room_shows_that_the_model_writes_and_says_when_it_cannot_be_reached(
    signs: list[tuple[str, dict[str, Any]]],
):
    game = seated(FakeBackend([BackendError("timeout", "too slow"), ASK]))
    turn = owed(game)
    turns.take_turn(turn_id=turn.pk)
    assert ("room.waiting", "seller", 1) in [(m["type"], m.get("role"), m.get("buyer")) for _, m in signs]
    turn.refresh_from_db()
    assert turn.lease_until is not None
    turns.take_turn(turn_id=turn.pk, now=turn.lease_until + timedelta(seconds=1))
    assert ("room.typing", "seller", 1) in [(m["type"], m.get("role"), m.get("buyer")) for _, m in signs]
    assert "How about" not in repr(signs)  # That it writes, not what.


def test_a_narrator_whose_model_is_down_plays_its_strategy_and_the_room_says_so(
    signs: list[tuple[str, dict[str, Any]]],
):
    backends.seat(FakeBackend([BackendError("unreachable", "nobody there")]))
    game = staged(bilateral(opener=Role.BUYER), agents={SELLER: "fake-narrator"})
    plain = staged(bilateral(opener=Role.BUYER), agents={SELLER: "linear"})
    for each in (game, plain):
        each.act(B1, offer(4_000))
        each.let_agents_play()
    assert game.kinds == plain.kinds
    said = [Utterance.objects.filter(room=each.room).order_by("-n")[0].talk for each in (game, plain)]
    assert said[0]
    waits = [message for _, message in signs if message["type"] == "room.waiting"]
    assert [(message["role"], message["buyer"], message["plays_on"]) for message in waits] == [("seller", 1, True)]
    assert AgentTurn.objects.get(room=game.room).state == TurnState.DONE


def test_a_seller_with_several_buyers_shows_no_buyer_that_it_writes_to_another(signs: list[tuple[str, dict[str, Any]]]):
    backends.seat(FakeBackend([f"Target: Buyer 2\n{ASK}"]))
    game = staged(multi_buyer(), people=(B1,), agents={SELLER: MODEL})
    turns.take_turn(turn_id=owed(game).pk)
    assert "offer_made" in game.kinds
    assert not [message for _, message in signs if message["type"] in ("room.typing", "room.waiting")]


def test_an_answer_to_a_moment_that_has_gone_is_not_played():
    game: Game | None = None

    def late(request: ChatRequest) -> str:
        assert game is not None
        AgentTurn.objects.filter(room=game.room).update(owner="somebody else")
        return ASK

    backends.seat(FakeBackend(script=late))
    game = staged(bilateral(opener=Role.BUYER), agents={SELLER: MODEL})
    game.act(B1, offer(4_000))
    assert turns.take_turn(turn_id=owed(game).pk) == TurnState.SUPERSEDED
    assert game.kinds[-1] == "offer_made"
    assert RoomEvent.objects.filter(room=game.room).count() == 1


def test_what_an_agent_cost_and_how_often_it_could_be_read_is_counted():
    replies = [
        ChatReply(text="nonsense", input_tokens=10, output_tokens=2, cost_micros=5, total_ms=100),
        ChatReply(text=ASK, input_tokens=20, output_tokens=8, cost_micros=7, total_ms=300),
    ]
    game = seated(FakeBackend(replies))
    game.let_agents_play()
    for usage in (model_log.usage_of_agent(MODEL), model_log.usage_of_room(game.room.pk)):
        assert (usage.calls, usage.valid_rate, usage.not_answered) == (2, 0.5, 0)
        assert (usage.input_tokens, usage.output_tokens, usage.cost_micros, usage.mean_ms) == (30, 10, 12, 200)
    nobody = model_log.usage_of_agent("linear")
    assert (nobody.calls, nobody.valid_rate, nobody.cost_micros) == (0, None, None)


@pytest.mark.django_db(transaction=True)
def test_a_slow_model_keeps_its_lease(monkeypatch: pytest.MonkeyPatch):
    leases: list[Any] = []
    game: Game | None = None
    renewed = turns._lease_renewed
    monkeypatch.setattr(turns, "_lease_renewed", lambda claim: renewed(claim, every_s=0.05))

    def slow(request: ChatRequest) -> str:
        assert game is not None
        turn = AgentTurn.objects.get(room=game.room)
        leases.append(turn.lease_until)
        deadline = time.monotonic() + 5
        while AgentTurn.objects.get(pk=turn.pk).lease_until == leases[0] and time.monotonic() < deadline:
            time.sleep(0.02)
        leases.append(AgentTurn.objects.get(pk=turn.pk).lease_until)
        return ASK

    backends.seat(FakeBackend(script=slow))
    game = staged(bilateral(opener=Role.BUYER), agents={SELLER: MODEL})
    game.act(B1, offer(4_000))
    assert turns.take_turn(turn_id=owed(game).pk) == TurnState.DONE
    assert leases[1] > leases[0]


@pytest.mark.django_db(transaction=True)
def test_several_models_answer_at_the_same_time():
    """Three buyers: each call waits until all three are being asked."""
    at_once = threading.Barrier(3, timeout=20)

    def together_only(request: ChatRequest) -> str:
        at_once.wait()
        return "Talk: Here I am.\nAction: [BUY] $30"

    backends.seat(FakeBackend(script=together_only))
    game = staged(multi_buyer(), people=(SELLER,), agents={B1: MODEL, B2: MODEL, "buyer-3": MODEL})
    for buyer in (1, 2, 3):
        game.act(SELLER, offer(9_000, to=buyer))

    def job(turn: AgentTurn) -> Callable[[], Any]:
        return lambda: turns.take_turn(turn_id=turn.pk)

    assert together(*map(job, game.queued())) == [TurnState.DONE] * 3
    assert game.kinds.count("offer_made") == 6


@pytest.mark.django_db(transaction=True)
def test_a_waiting_model_keeps_no_scripted_agent_waiting():
    """The worker's own thread is free again while a model thinks."""
    asked, answer = threading.Event(), threading.Event()

    def waits(request: ChatRequest) -> str:
        asked.set()
        answer.wait(20)
        return ASK

    backends.seat(FakeBackend(script=waits))
    game = staged(bilateral(opener=Role.BUYER), agents={SELLER: MODEL})
    game.act(B1, offer(4_000))
    other = staged(bilateral(opener=Role.BUYER), agents={SELLER: "linear"})
    other.act(B1, offer(4_000))
    tasks.take_turn(turn_id=owed(game).pk)
    assert asked.wait(20)
    tasks.take_turn(turn_id=owed(other).pk)
    assert other.kinds.count("offer_made") == 2
    answer.set()
    deadline = time.monotonic() + 20
    while AgentTurn.objects.get(room=game.room).state != TurnState.DONE and time.monotonic() < deadline:
        time.sleep(0.02)
    assert game.kinds.count("offer_made") == 2


def test_a_stored_prompt_is_json_that_names_its_roles():
    game = seated(FakeBackend([ASK]))
    game.let_agents_play()
    messages = msgspec.json.decode(ModelCall.objects.get(room=game.room).messages)
    assert [message["role"] for message in messages] == ["system", "user"]
