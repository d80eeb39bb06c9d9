"""Tokens are made, shown once and revoked by their owner alone; the database holds no token."""

import pytest
from django.contrib.auth.models import Group, User
from django.db import connection
from django.test import Client

from markets import erasure
from markets.apps import RESEARCHERS
from negotiation_site.api import tokens
from negotiation_site.api.models import ApiToken

pytestmark = pytest.mark.django_db

ADDRESS = "/account/tokens/"


@pytest.fixture
def owner(client: Client) -> User:
    user = User.objects.create_user("pia", password="a long secret")
    client.force_login(user)
    return user


def made(client: Client, name: str = "nightly") -> str:
    response = client.post(ADDRESS, {"name": name})
    assert response.status_code == 200
    return str(response.context["page"].secret)


def test_strangers_sign_in_first(client):
    for answer in (client.get(ADDRESS), client.post(ADDRESS, {"name": "x"}), client.post(f"{ADDRESS}1/revoke/")):
        assert answer.status_code == 302
        assert answer.headers["Location"].startswith("/account/sign-in/")
    assert not ApiToken.objects.exists()


def test_a_token_is_shown_once_and_is_nowhere_in_the_database(client, owner):
    secret = made(client)
    assert secret.startswith(tokens.PREFIX)
    assert tokens.known(secret) is not None
    assert secret not in client.get(ADDRESS).content.decode()
    with connection.cursor() as cursor:
        cursor.execute("SELECT * FROM api_apitoken")
        assert not any(secret in str(value) for row in cursor.fetchall() for value in row)


def test_the_list_tells_tokens_by_name_beginning_and_use(client, owner):
    secret = made(client)
    text = client.get(ADDRESS).content.decode()
    assert "nightly" in text
    assert secret[: tokens.SHOWN] in text
    assert "never" in text


@pytest.mark.parametrize("name", ["", "   ", "x" * 61, "a\x00b"])
def test_a_name_that_is_none_is_refused_and_makes_nothing(client, owner, name):
    response = client.post(ADDRESS, {"name": name})
    assert response.status_code == 400
    assert response.context["page"].problem
    assert not ApiToken.objects.exists()


def test_sending_the_form_again_makes_no_second_token(client, owner):
    made(client)
    assert client.post(ADDRESS, {"name": " nightly "}).status_code == 400
    assert ApiToken.objects.count() == 1


def test_an_account_has_only_so_many_tokens(client, owner, monkeypatch):
    monkeypatch.setattr(tokens, "MOST", 1)
    made(client)
    assert "revoke one" in client.post(ADDRESS, {"name": "another"}).context["page"].problem


def test_revoking_is_the_owners_and_frees_the_name(client, owner):
    secret = made(client)
    number = ApiToken.objects.get().pk
    stranger = Client()
    stranger.force_login(User.objects.create_superuser("root"))
    stranger.post(f"{ADDRESS}{number}/revoke/")
    assert tokens.known(secret) is not None
    client.post(f"{ADDRESS}{number}/revoke/")
    assert tokens.known(secret) is None
    assert "nightly" not in client.get(ADDRESS).content.decode()
    assert made(client) != secret


def test_the_page_says_what_the_owner_may_read(client, owner):
    assert "kept for research" not in client.get(ADDRESS).content.decode()
    owner.groups.add(Group.objects.get(name=RESEARCHERS))
    assert "kept for research" in client.get(ADDRESS).content.decode()


def test_tokens_go_with_the_account(client, owner):
    made(client)
    erasure.erase(participant=None, account=owner)
    assert not ApiToken.objects.exists()


def test_the_account_leads_to_its_tokens_and_they_to_the_documentation(client, owner):
    assert f'href="{ADDRESS}"' in client.get("/account/").content.decode()
    assert 'href="/api/docs/"' in client.get(ADDRESS).content.decode()
