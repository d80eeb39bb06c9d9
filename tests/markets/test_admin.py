"""The admin shows every table and lets nobody rewrite a record."""

import json
from pathlib import Path

import pytest
from django.apps import apps
from django.contrib import admin
from django.contrib.auth.models import User
from django.test import Client
from django.utils import timezone

from markets import corpora
from markets.models import RecordChange, Room, SignUp, Utterance
from tests.markets import dialogues
from tests.markets.engine.factories import B1, SELLER, accept, bilateral, offer
from tests.markets.rooms import Game, staged

pytestmark = pytest.mark.django_db

MODELS = list(apps.get_app_config("markets").get_models())
KEPT_BY_HAND = {"Catalogue", "Product"}
RECORDS = [model for model in MODELS if model.__name__ not in KEPT_BY_HAND]


@pytest.fixture
def staff() -> Client:
    client = Client()
    client.force_login(User.objects.create_superuser("root"), backend="django.contrib.auth.backends.ModelBackend")
    return client


@pytest.fixture
def over(tmp_path: Path) -> Game:
    game = staged(bilateral(), people=(B1, SELLER))
    game.act(B1, offer(6_000, talk="Sixty."))
    game.act(SELLER, accept(1))
    staged(bilateral(), people=(B1,)).act(B1, offer(6_000))
    RecordChange.objects.create(episode_number=1)
    SignUp.objects.create(address_digest="0" * 64, at=timezone.now())
    camps = tmp_path / "camps.json"
    camps.write_text(json.dumps([dialogues.camping()]))
    corpora.store(name="camps", format="casino", path=camps)
    return game


@pytest.mark.parametrize("model", MODELS, ids=lambda model: model.__name__)
def test_every_table_can_be_listed_searched_and_looked_into(staff, over, model):
    address = f"/admin/markets/{model._meta.model_name}/"
    assert staff.get(address).status_code == 200
    if admin.site._registry[model].search_fields:
        assert staff.get(address, {"q": "a b"}).status_code == 200
    for row in model.objects.all()[:2]:
        assert staff.get(f"{address}{row.pk}/change/").status_code == 200


@pytest.mark.parametrize("model", RECORDS, ids=lambda model: model.__name__)
def test_what_the_game_wrote_is_not_rewritten(staff, over, model):
    row = model.objects.first()
    address = f"/admin/markets/{model._meta.model_name}/"
    assert staff.get(f"{address}add/").status_code == 403
    before = model.objects.filter(pk=row.pk).values().get()
    assert staff.post(f"{address}{row.pk}/change/", {}).status_code == 403
    assert staff.post(f"{address}{row.pk}/delete/", {"post": "yes"}).status_code == 403
    assert model.objects.filter(pk=row.pk).values().get() == before


def test_the_admin_says_whether_a_record_is_as_it_was_written(staff, over):
    address = f"/admin/markets/episode/{over.episode.pk}/change/"
    assert "icon-yes" in staff.get(address).content.decode()
    type(over.episode).objects.update(seller_surplus_cents=1)
    assert "icon-no" in staff.get(address).content.decode()


def test_a_seats_link_is_not_shown_to_staff(staff):
    game = staged(bilateral(), people=(B1, SELLER), start=False)
    seat = game.seat(SELLER)
    html = staff.get(f"/admin/markets/seat/{seat.pk}/change/").content.decode()
    assert seat.join_token not in html


def test_players_and_strangers_have_no_admin(over):
    assert Client().get("/admin/markets/episode/").status_code == 302


def test_staff_who_may_sit_at_the_table_see_no_private_value_before_the_end(staff):
    game = staged(bilateral(value=7_351, cost=4_129), people=(B1, SELLER))
    game.act(B1, offer(6_000, talk="Sixty."))
    Utterance.objects.update(thought="up to 73.51")
    room = Room.objects.get()
    addresses = [
        f"/admin/markets/room/{room.pk}/change/",
        f"/admin/markets/utterance/{Utterance.objects.get().pk}/change/",
    ]
    before = "".join(staff.get(address).content.decode() for address in addresses)
    assert [secret for secret in ("7351", "4129", "73.51") if secret in before] == []
    game.act(SELLER, accept(1))
    after = "".join(staff.get(address).content.decode() for address in addresses)
    assert [secret for secret in ("7351", "4129", "73.51") if secret not in after] == []
