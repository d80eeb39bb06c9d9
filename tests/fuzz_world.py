"""A small world with something at every address, for what is thrown at the server.

Here: who may knock (`clients`), what there is by address, and what belongs to whom. Not here: what is thrown (`fuzz`).

Contract: every person is signed in or seated; what is known of an address is tried before what nobody made. `undo` gives
everybody the cookies back that they came with: an input is answered by the world as it was made, as signed in as at first.
"""

import json
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from http import HTTPStatus
from http.cookies import SimpleCookie
from pathlib import Path
from typing import Any

from django.contrib.auth.models import Group, Permission, User
from django.test import Client
from django.urls import reverse

from agents import backends, entering
from agents.backends.fake import FakeBackend
from markets import corpora
from markets.engine.protocol import SELLER, buyer_party
from markets.models import Episode, Market
from negotiation_site.api import tokens
from negotiation_site.exports import jobs
from negotiation_site.exports.asked import Asked
from negotiation_site.reading_room.models import Annotation
from negotiation_site.sharing.models import SharedResult
from negotiation_site.studies import authoring, conduct
from negotiation_site.studies.models import Participation, RecruitmentLink, State, StudyVersion
from tests.addresses import Address, addresses
from tests.markets import dialogues
from tests.markets.engine.factories import accept, bilateral, catalogue, multi_buyer, offer
from tests.markets.rooms import Game, market, staged
from tests.markets.tabs import session_of
from tests.negotiation_site.studies import people as study_people
from tests.negotiation_site.test_agent_forms import ENTRY
from training import services as training_services
from training.models import Tournament, TournamentGame

BUYER = buyer_party(1)
IN_STUDIES = (State.ENTERED, State.CONSENTED, State.QUIZ, State.PLAYING, State.SURVEY, State.FINISHED)
"""Where the participants of studies stand."""


@dataclass
class World:
    """Who may knock, and what is there."""

    clients: dict[str, Client] = field(default_factory=dict)
    seats: list[tuple[str, str]] = field(default_factory=list)
    """Client and address for frames."""
    known: dict[str, list[Any]] = field(default_factory=dict)
    """Values of parameters that exist somewhere."""
    places: dict[str, dict[str, list[Any]]] = field(default_factory=dict)
    """Those that exist under the first word of a route."""
    own: dict[tuple[str, str], dict[str, Any]] = field(default_factory=dict)
    """Those that belong to a client, under the first word of a route."""
    addresses: list[Address] = field(default_factory=list)
    read_only: set[str] = field(default_factory=set)
    """Addresses that turned out to take no form."""
    fields: dict[str, list[str]] = field(default_factory=dict)
    """Field names that the forms of an address have, learnt by looking at it."""
    _cookies: dict[str, dict[str, str]] = field(default_factory=dict)

    def enter(self, who: str, client: Client) -> Client:
        """Somebody comes in, with the cookies that they have now."""
        client.raise_request_exception = False
        self.clients[who] = client
        self._cookies[who] = {name: morsel.value for name, morsel in client.cookies.items()}
        return client

    def undo(self, who: str) -> None:
        """Somebody has the cookies that they came with."""
        self.clients[who].cookies = SimpleCookie(self._cookies[who])

    def values(self, address: Address, name: str) -> Sequence[Any]:
        """What exists for a parameter of an address."""
        return self.places.get(_first(address), {}).get(name) or self.known.get(name) or ["nobody"]

    def owned(self, who: str, address: Address) -> Mapping[str, Any]:
        """What of it belongs to somebody."""
        return self.own.get((who, _first(address)), {})


def _first(address: Address) -> str:
    return address.route.split("/")[0]


def make_world() -> World:
    """Rooms of every kind in play, a study with people at every step, something of everything that can be made."""
    world = World(addresses=addresses())
    world.enter("anonymous", Client())
    backends.seat(FakeBackend(["Thought: so\nTalk: Hello!\nAction: [BUY] $45"]))
    rooms = _rooms(world)
    users = _users(world)
    agent = entering.enter(ENTRY, author=users["member"])
    export = jobs.order(Asked(format="jsonl"), by=users["researcher"])
    jobs.work(export.pk)
    episode = Episode.objects.get()
    notes = [
        Annotation.objects.create(episode=episode, tag="x", author=users[name]).pk for name in ("researcher", "staff")
    ]
    _token, value = tokens.create(owner=users["researcher"], name="mine")
    markets = list(Market.objects.values_list("slug", flat=True))
    cup = Tournament.objects.create(
        name="cup", market=Market.objects.get(pk=episode.market_id), agents='[["linear","1"],["boulware","1"]]', pairs='[["linear","boulware"]]',
        scenarios=1, seed=1,
    )  # fmt: skip
    TournamentGame.objects.create(tournament=cup, pair=0, scenario=0, episode=episode)
    training_services.create_run(
        name="mine", preset_name="tiny", market=market("multi_buyer", slug="stall", cost="constant:0")
    )
    with tempfile.TemporaryDirectory() as folder:
        lamps = Path(folder) / "lamps.json"
        lamps.write_text(json.dumps([dialogues.bargain(price=88 + k, key=f"C_{k}") for k in range(3)]))
        corpora.store(name="lamps", format="craigslist-bargain", path=lamps)
    participants, ways, studies = _studies(world)
    world.known = {
        "slug": markets,
        "public_id": [*rooms, episode.public_id],
        "name": ["mine", "ladder-learner"],
        "token": list(SharedResult.objects.values_list("token", flat=True)),
        "number": [1, *notes],
        "key": ["C_1"],
        "episode": [episode.public_id],
        "sha256": list(StudyVersion.objects.exclude(plan_sha256="").values_list("plan_sha256", flat=True)),
        "bearer": [value],
    }
    world.places = {
        "agents": {"slug": [agent.slug, "linear", "narrator"]},
        "exports": {"public_id": [export.public_id]},
        "episodes": {"public_id": [episode.public_id]},
        "tournaments": {"name": [cup.name]},
        "corpora": {"name": ["lamps"]},
        "study": {"public_id": participants, "token": ways},
        "studies": {"slug": studies, "public_id": participants, "number": [1, *RecruitmentLink.objects.values_list("pk", flat=True)]},
    }  # fmt: skip
    world.own["member", "agents"] = {"slug": agent.slug}
    return world


def _rooms(world: World) -> list[str]:
    """Tables in play and one that is over, each with its players; their public ids."""
    ids = []
    for scenario, party in (
        (bilateral(), BUYER), (bilateral(), SELLER), (multi_buyer(), SELLER), (catalogue(), BUYER),
    ):  # fmt: skip
        game = staged(scenario, people=(party,))
        ids.append(game.room.public_id)
        _sit(world, f"player {len(ids)}", game, party)
        world.seats.append((f"player {len(ids)}", reverse("room-act", args=[ids[-1]])))
    over = staged(bilateral(), people=(BUYER, SELLER))
    over.act(BUYER, offer(6_000))
    over.act(SELLER, accept(1))
    ids.append(over.room.public_id)
    client = _sit(world, "player at the end", over, SELLER)
    assert client.post(reverse("room-share", args=[ids[-1]]), {"act": "make"}).status_code == HTTPStatus.FOUND
    return ids


def _sit(world: World, who: str, game: Game, party: str) -> Client:
    """A browser on a chair."""
    client = Client()
    client.cookies["sessionid"] = str(session_of(game.people[party]).session_key)
    world.own[who, "rooms"] = {"public_id": game.room.public_id}
    return world.enter(who, client)


def _users(world: World) -> dict[str, User]:
    """People with accounts, signed in."""
    made = {}
    for name in ("member", "researcher", "staff", "trainer"):
        rank = name in ("staff", "trainer")
        user = User.objects.create_user(name, password="pw-Parley-1", is_staff=rank, is_superuser=name == "staff")
        if name == "researcher":
            user.groups.add(*Group.objects.filter(name="Researchers"))
        if name == "trainer":
            user.user_permissions.add(Permission.objects.get(codename="train_agents"))
        client = Client()
        client.force_login(user, backend="django.contrib.auth.backends.ModelBackend")
        world.enter(name, client)
        made[name] = user
    return made


def _studies(world: World) -> tuple[list[str], list[str], list[str]]:
    """A study with somebody at every step: public ids of participations, tokens of links, slugs."""
    study = study_people.study()
    authoring.register(conduct.newest_version(study), actor=None)
    way = study_people.link(study)
    ids, ways = [], [way.token]
    for state in IN_STUDIES:
        client = Client()
        client.post(reverse("study-join", args=[way.token]))
        somebody = study_people.to(state, Participation.objects.latest("pk"))
        if state == State.PLAYING:
            conduct.go_on(somebody)
            study_people.agents_answer()
        who = f"participant ({state})"
        world.enter(who, client)
        world.own[who, "study"] = {"public_id": somebody.public_id}
        world.seats.append((who, reverse("study-room-act", args=[somebody.public_id])))
        ids.append(somebody.public_id)
        ways.append(somebody.resume_token)
    return ids, ways, [study.slug]
