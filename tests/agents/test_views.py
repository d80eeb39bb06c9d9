"""Staff can see what models were asked; nobody else can, not even who sat in the room."""

import pytest
from django.contrib.auth.models import User
from django.test import Client

from agents import backends
from agents.backends.fake import FakeBackend
from markets.engine.protocol import SELLER, Leave, Role
from tests.markets.engine.factories import B1, bilateral, offer
from tests.markets.rooms import Game, staged

pytestmark = [pytest.mark.django_db, pytest.mark.usefixtures("no_back_ends")]


@pytest.fixture
def game(no_back_ends: None) -> Game:
    backends.seat(FakeBackend(["Thought: SECRET-PLAN\nTalk: <b>Hi</b>\nAction: [SELL] $70"]))
    game = staged(bilateral(opener=Role.BUYER), agents={SELLER: "fake-model-unregulated"})
    game.act(B1, offer(4_000))
    game.let_agents_play()
    return game


def test_staff_see_prompt_answer_and_figures(client: Client, game: Game):
    client.force_login(User.objects.create(username="staff", is_staff=True))
    page = client.get(f"/rooms/{game.room.public_id}/model-calls/").content.decode()
    for text in ("SECRET-PLAN", "four_part@2", "You negotiate as the seller", "&lt;b&gt;Hi&lt;/b&gt;", "100%"):
        assert text in page


def test_a_room_without_models_says_so(client: Client):
    game = staged(bilateral())
    client.force_login(User.objects.create(username="staff", is_staff=True))
    page = client.get(f"/rooms/{game.room.public_id}/model-calls/")
    assert "No model was asked in this room." in page.content.decode()


def test_strangers_players_and_accounts_see_nothing(client: Client, game: Game):
    address = f"/rooms/{game.room.public_id}/model-calls/"
    assert client.get(address).status_code == 403
    client.force_login(User.objects.create(username="player"))
    answer = client.get(address)
    assert answer.status_code == 403
    assert "SECRET-PLAN" not in answer.content.decode()


def test_staff_who_play_do_not_read_what_their_opponent_was_told_before_the_end(client: Client, game: Game):
    staff = User.objects.create(username="staff", is_staff=True)
    client.force_login(staff)
    seat = game.room.seats.get(party=B1)
    seat.participant.account = staff
    seat.participant.save()
    address = f"/rooms/{game.room.public_id}/model-calls/"
    answer = client.get(address)
    assert answer.status_code == 403
    assert "SECRET-PLAN" not in answer.content.decode()
    game.act(B1, Leave())
    assert "SECRET-PLAN" in client.get(address).content.decode()


def test_the_agents_page_tells_how_many_answers_were_used(client: Client, game: Game):
    page = client.get("/agents/fake-model-unregulated/").content.decode().replace("\u00a0", " ")
    assert "100.0 % of 1 (95 % interval: 20.7 % to 100.0 %)" in page
    assert "1 in rooms, 0 in simulated games" in page
    assert "Answers of the model" not in client.get("/agents/linear/").content.decode()


def test_an_unknown_room_is_not_found(client: Client):
    client.force_login(User.objects.create(username="staff", is_staff=True))
    assert client.get("/rooms/nowhere/model-calls/").status_code == 404
