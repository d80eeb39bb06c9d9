"""An agent that a person enters on the site, from the form to a tournament: saved as typed, tried without a trace on any board, played."""

import io
import json
import uuid
from typing import Any

import pytest
from django.contrib.auth.models import User
from django.core.management import call_command
from django.test import Client
from django.urls import reverse

from agents import backends, entering, registry, turns
from agents.backends import ChatRequest
from agents.backends.fake import FakeBackend
from agents.entered import Entry
from agents.models import EnteredAgent
from markets import services
from markets.engine.protocol import Leave, Role
from markets.models import ConsentScope, Episode, Participant, Room, Seat
from markets.services import AgentName
from negotiation_site.leaderboard import facts
from tests.agents.conftest import no_back_ends
from tests.markets.rooms import market
from training.models import Tournament

pytestmark = pytest.mark.django_db

__all__ = ["no_back_ends"]  # a fixture of the agents' tests

TYPED = {
    "name": "Patient Ada",
    "summary": "Waits for the last moment.",
    "prompt": "Never move first.",
    "backend": "fake",
    "protocol": "four_part",
    "roles": "both",
    "regulated": "yes",
    "persona": "",
}
ENTRY = Entry(
    name="Patient Ada",
    summary="Waits for the last moment.",
    prompt="Never move first.",
    backend="fake",
    protocol="four_part",
    roles=(Role.SELLER, Role.BUYER),
)


def plays(request: ChatRequest) -> str:
    """A model that bids 45 or asks 70, whichever side it is on."""
    seller = "as the seller" in request.messages[0].content
    return f"Thought: so\nTalk: Hello!\nAction: {'[SELL] $70' if seller else '[BUY] $45'}"


@pytest.fixture(autouse=True)
def fake(no_back_ends: None) -> FakeBackend:
    backend = FakeBackend(script=plays)
    backends.seat(backend)
    return backend


@pytest.fixture
def author() -> User:
    return User.objects.create_user("ada")


@pytest.fixture
def agent(author: User) -> EnteredAgent:
    return entering.enter(ENTRY, author=author)


def text(answer: Any) -> str:
    return answer.content.decode()


def test_what_is_typed_is_what_is_saved(client: Client, author: User) -> None:
    client.force_login(author)
    answer = client.post(reverse("agents-new"), TYPED, follow=True)
    agent = EnteredAgent.objects.get()
    assert entering.entry_of(entering.newest_version(agent)) == ENTRY
    page = text(answer)
    assert "Version 1" in page
    assert "Try it as the buyer" in page
    assert "only for you" in page


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"prompt": "x" * 2_001}, "2001 characters"),
        ({"name": ""}, "This field is required"),
        ({"backend": "elsewhere"}, "elsewhere"),
    ],
)
def test_what_cannot_be_saved_comes_back_as_it_was_typed(
    client: Client, author: User, changes: dict[str, str], problem: str
) -> None:
    client.force_login(author)
    answer = client.post(reverse("agents-new"), {**TYPED, **changes})
    assert answer.status_code == 400
    assert problem in text(answer)
    assert TYPED["summary"] in text(answer)
    assert not EnteredAgent.objects.exists()


def test_a_change_is_another_version_and_one_made_from_an_old_page_is_refused(
    client: Client, agent: EnteredAgent
) -> None:
    client.force_login(agent.author)
    url = reverse("agent-versions", args=[agent.slug])
    changed = {**TYPED, "prompt": "Move first.", "note": "It moves.", "based_on": "1"}
    assert client.post(url, changed).status_code == 302
    stale = client.post(url, {**changed, "prompt": "Never move."})
    assert stale.status_code == 400
    assert "Version 2 was saved in the meantime" in text(stale)
    assert "Never move." in text(stale)
    assert [version.number for version in agent.versions.all()] == [2, 1]
    assert entering.entry_of(agent.versions.get(number=1)).prompt == "Never move first."


def left(room: Room) -> None:
    """The agent has moved, the person leaves and gives the game as open data."""
    for turn in room.agent_turns.all():
        turns.take_turn(turn_id=turn.pk)
    seat = Seat.objects.get(room=room, party="buyer-1")
    services.submit_action(room=room, seat=seat, action=Leave(), client_move_id=uuid.uuid4().hex)
    Episode.objects.filter(room=room).update(consent_scope=ConsentScope.PUBLIC)


def test_trying_it_counts_on_no_board(client: Client, agent: EnteredAgent) -> None:
    client.force_login(agent.author)
    answer = client.post(reverse("agent-try", args=[agent.slug]), {"seat": "buyer"})
    room = Room.objects.get()
    assert answer["Location"] == reverse("room", args=[room.public_id])
    assert (room.market.slug, room.market.is_listed) == (entering.SANDBOX, False)
    left(room)
    assert Episode.objects.get().seats.filter(agent_slug=agent.slug).exists()
    assert agent.slug not in {slug for slug, _version in facts.current().agents}
    spec = registry.get(agent.slug)
    counted = services.open_room(  # The same game in a market that is no sandbox.
        market=market(),
        host=Participant.objects.create(pseudonym="Ada"),
        role=Role.BUYER,
        agents={"seller": AgentName(slug=spec.slug, version=spec.version, name=spec.title)},
    )
    left(counted)
    assert agent.slug in {slug for slug, _version in facts.current().agents}


def test_a_seat_on_its_own_side_is_not_given(client: Client, agent: EnteredAgent) -> None:
    client.force_login(agent.author)
    client.post(reverse("agent-try", args=[agent.slug]), {"seat": "umpire"})
    assert not Room.objects.exists()


def test_put_up_it_is_offered_and_taken_back_it_is_not(client: Client, agent: EnteredAgent) -> None:
    assert agent.slug not in {spec.slug for spec in registry.entered_specs()}
    client.force_login(agent.author)
    url = reverse("agent-put-up", args=[agent.slug])
    client.post(url, {"up": "1"})
    assert agent.slug in {spec.slug for spec in registry.entered_specs()}
    assert "Patient Ada" in text(Client().get(reverse("agent", args=[agent.slug])))
    assert "Never move first." not in text(Client().get(reverse("agent", args=[agent.slug])))
    client.post(url, {"up": "0"})
    assert agent.slug not in {spec.slug for spec in registry.entered_specs()}
    assert Client().get(reverse("agent", args=[agent.slug])).status_code == 404


def test_put_up_it_plays_in_a_tournament(agent: EnteredAgent, fake: FakeBackend) -> None:
    entering.put_up(agent, up=True)
    market(slug="cup-market")
    out = io.StringIO()
    words = ["--agents", f"linear,{agent.slug}", "--market", "cup-market", "--scenarios", "2", "--name", "cup"]
    call_command("tournament", *words, "--seed", "3", "--json", stdout=out, stderr=io.StringIO())
    document = json.loads(out.getvalue())
    assert document["status"] == "done"
    assert agent.slug in out.getvalue()
    asked = "\n".join(message.content for request in fake.requests for message in request.messages)
    assert "Never move first." in asked
    sold = Episode.objects.filter(seats__agent_slug=agent.slug)
    assert sold.exists()
    assert set(sold.values_list("seats__agent_version", flat=True)) >= {registry.get(agent.slug).version}


def test_put_up_it_can_be_chosen_for_a_tournament_on_its_page(client: Client, agent: EnteredAgent) -> None:
    market(slug="cup-market")
    client.force_login(User.objects.create_superuser("staff"))
    typed = {"name": "cup", "market": "cup-market", "agents": ["linear", agent.slug], "scenarios": "2", "seed": "1"}
    assert f'value="{agent.slug}"' not in text(client.get(reverse("tournament-new")))
    assert client.post(reverse("tournament-new"), typed).status_code == 400
    entering.put_up(agent, up=True)
    assert f'value="{agent.slug}"' in text(client.get(reverse("tournament-new")))
    assert client.post(reverse("tournament-new"), typed).status_code == 302
    assert agent.slug in str(Tournament.objects.values().get())
