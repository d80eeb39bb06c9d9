"""Agents that people enter on the site: who may, and that nobody changes somebody else's."""

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from agents import backends, entering
from agents.backends.fake import FakeBackend
from agents.entered import Entry
from agents.models import EnteredAgent
from markets.engine.protocol import Role
from tests.agents.conftest import no_back_ends

pytestmark = pytest.mark.django_db

__all__ = ["no_back_ends"]  # a fixture of the agents' tests

ENTRY = Entry(
    name="Patient Ada",
    summary="Waits for the last moment.",
    prompt="Never move first.",
    backend="fake",
    protocol="four_part",
    roles=(Role.SELLER, Role.BUYER),
)
OWN = ("agents-new", "agents-own")
ONE = ("agent-versions", "agent-try", "agent-put-up", "agent-retire")


@pytest.fixture(autouse=True)
def fake(no_back_ends: None) -> None:
    backends.seat(FakeBackend(["Thought: so\nTalk: Hello!\nAction: [BUY] $45"]))


@pytest.fixture
def agent() -> EnteredAgent:
    return entering.enter(ENTRY, author=User.objects.create_user("ada"))


@pytest.mark.parametrize("name", OWN)
def test_without_an_account_nobody_enters_an_agent(client: Client, name: str) -> None:
    for answer in (client.get(reverse(name)), client.post(reverse(name))):
        assert answer.status_code in (302, 403, 405)
        if answer.status_code == 302:
            assert reverse("sign-in") in answer["Location"]
    assert not EnteredAgent.objects.exists()


@pytest.mark.parametrize("name", ONE)
@pytest.mark.parametrize("who", ["anonymous", "stranger"])
def test_nobody_else_changes_tries_or_sees_an_agent_that_is_not_put_up(
    client: Client, agent: EnteredAgent, name: str, who: str
) -> None:
    if who == "stranger":
        client.force_login(User.objects.create_user("eve"))
    before = EnteredAgent.objects.values().get()
    for answer in (client.get(reverse(name, args=[agent.slug])), client.post(reverse(name, args=[agent.slug]))):
        assert answer.status_code in (302, 403, 404, 405)
        assert b"Never move first." not in answer.content
    assert EnteredAgent.objects.values().get() == before
    assert agent.versions.count() == 1


def test_the_author_sees_puts_up_and_retires_it(client: Client, agent: EnteredAgent) -> None:
    client.force_login(agent.author)
    assert client.get(reverse("agents-own")).status_code == 200
    assert b"Never move first." in client.get(reverse("agent-versions", args=[agent.slug])).content
    client.post(reverse("agent-put-up", args=[agent.slug]), {"put_up": "yes"})
    client.post(reverse("agent-retire", args=[agent.slug]))
    agent.refresh_from_db()
    assert agent.retired_at is not None


def test_the_form_is_shown_and_bad_input_changes_nothing(client: Client) -> None:
    client.force_login(User.objects.create_user("ada"))
    assert client.get(reverse("agents-new")).status_code == 200
    answer = client.post(reverse("agents-new"), {"name": "", "prompt": "", "backend": "http://evil.example"})
    assert answer.status_code in (200, 400, 422)
    assert not EnteredAgent.objects.exists()
