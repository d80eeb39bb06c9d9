"""Who may do what, for every address of the site: an address that is not written down here fails the test.

Seven people knock at every address, by reading and by sending a form: nobody in particular, a player of another room,
somebody with an account, the owner of what is there, a researcher who does not own it, the staff, and the trainer.
Whoever is not named with an address is sent away (302 to sign in, 403 or 404; a script without a token 401) and
changes nothing; whoever is named is not.
"""

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.db import transaction
from django.test import Client
from django.urls import reverse

from agents import backends, entering
from agents.backends.fake import FakeBackend
from markets.models import Episode
from negotiation_site.exports import jobs, tasks
from negotiation_site.exports.asked import Asked
from negotiation_site.reading_room.models import Annotation
from negotiation_site.studies.models import Study
from tests.addresses import Address, addresses
from tests.agents.conftest import no_back_ends
from tests.markets.engine.factories import B1, SELLER, accept, bilateral, offer
from tests.markets.rooms import person, staged
from tests.markets.tabs import browser
from tests.negotiation_site.studies import people as study_people
from tests.negotiation_site.test_agent_forms import ENTRY

__all__ = ["no_back_ends"]  # a fixture of the agents' tests

pytestmark = pytest.mark.django_db

EVERYBODY = frozenset({"anonymous", "stranger", "member", "owner", "researcher", "staff", "trainer"})
ACCOUNTS = EVERYBODY - {"anonymous", "stranger"}
RESEARCH = frozenset({"researcher", "staff", "trainer"})
STAFF = frozenset({"staff", "trainer"})
OWNER = frozenset({"owner"})
PARTICIPANT = frozenset({"participant"})
SCRIPTS = frozenset({"script"})

MAY: dict[str, frozenset[str]] = {
    **dict.fromkeys(
        (
            "home", "market", "play", "agents", "agent", "leaderboard", "leaderboard-csv", "leaderboard-people",
            "leaderboard-corpora", "transcript", "glossary", "guide", "help", "first-game", "shared-result", "shared-card", "run-list", "run-compare", "run-quality", "run", "run-status",
            "run-curves", "run-samples", "tournament-list", "tournament", "tournament-progress", "tournament-ranking-csv",
            "tournament-games-csv", "suites", "transcripts", "transcripts-compare", "api-docs", "api-openapi", "about", "healthz",
            "readyz", "set_language", "market-list", "lobby", "history", "sign-up", "sign-in", "sign-out", "study-join",
            "room-join", "study-resume", "study-plan", "study-plan-json",
        ),
        EVERYBODY,
    ),
    # What a seat sees and does is its own: the player of this room is the "owner".
    **dict.fromkeys(
        (
            "room", "room-view", "room-act", "room-result", "room-cancel", "room-consent", "room-replay", "room-record",
            "room-rematch", "room-report", "room-share",
        ),
        OWNER,
    ),
    **dict.fromkeys(
        ("account", "account-games", "change-password", "delete-account", "api-tokens", "api-token-revoke", "agents-new",
         "agents-own"),
        ACCOUNTS,
    ),
    **dict.fromkeys(("agent-versions", "agent-try", "agent-put-up", "agent-retire"), OWNER | STAFF),
    **dict.fromkeys(
        (
            "builder", "builder-new", "builder-preview", "builder-versions", "builder-change", "builder-retire",
            "builder-restore", "builder-version", "tournament-new", "tournament-cancel", "tournament-resume", "export-list",
            "export-rows", "export-download", "export-delete", "corpora", "corpus", "corpus-dialogue", "transcript-notes",
            "transcript-notes-csv", "transcript-notes-jsonl", "transcript-notes-add",
        ),
        RESEARCH,
    ),
    **dict.fromkeys(("transcript-note", "transcript-note-delete"), STAFF),  # and its author, who does not knock here
    **dict.fromkeys(("model-calls", "moderation", "moderation-act", "metrics", "operations", "operations-figures"), STAFF),
    **dict.fromkeys(("run-cancel", "run-resume"), STAFF),
    **dict.fromkeys(("run-new", "run-preview", "run-log", "run-publish"), frozenset({"trainer"})),
    **dict.fromkeys(("studies", "study-new"), RESEARCH),
    **dict.fromkeys(
        ("api-episodes", "api-episode", "api-markets", "api-agents", "api-leaderboards", "api-training_runs"), SCRIPTS
    ),
}  # fmt: skip
"""By the name of the address. A study's participant has a link of its own kind; see `may`."""
SENT_AWAY = frozenset({302, 401, 403, 404, 405, 410})


def may(address: Address) -> frozenset[str] | None:
    """Who may; None where nobody thought of it."""
    if address.name in MAY:
        return MAY[address.name]
    if address.route.startswith("study/<slug:public_id>/"):
        return PARTICIPANT
    if address.route.startswith("studies/<slug:slug>/"):
        return STAFF  # and the researcher whose study it is, who is not the one that knocks here
    return None


@pytest.fixture
def knockers(no_back_ends: None, monkeypatch, settings, tmp_path) -> tuple[dict[str, Client], dict[str, object]]:
    """The people, and the names of what is there."""
    monkeypatch.setattr(tasks, "announce", lambda row: None)
    settings.VAR = tmp_path
    backends.seat(FakeBackend(["Thought: so\nTalk: Hello!\nAction: [BUY] $45"]))
    game = staged(bilateral(), people=(B1, SELLER))
    game.act(B1, offer(6_000))
    game.act(SELLER, accept(1))
    owner = User.objects.create_user("owner")
    game.people[B1].account = owner
    game.people[B1].save()
    agent = entering.enter(ENTRY, author=owner)
    export = jobs.order(Asked(format="jsonl"), by=None)
    jobs.work(export.pk)
    episode = Episode.objects.get()
    note = Annotation.objects.create(episode=episode, tag="x", author=User.objects.create_user("author"))
    way = study_people.link(study_people.study())
    participation = study_people.enter(way)
    known = {
        "public_id": game.room.public_id,
        "slug": game.room.market.slug,
        "name": "ladder-learner",
        "number": note.pk,
        "key": "nothing",
        "sha256": "0" * 64,
        "token": way.token,
        "episode": episode.public_id,
    }
    places = {
        "agent": {"slug": agent.slug}, "export": {"public_id": export.public_id},
        "study-page": {"public_id": participation.public_id}, "study": {"slug": Study.objects.get().slug, "public_id": participation.public_id},
        "transcript": {"public_id": episode.public_id},
    }  # fmt: skip
    return _people(owner), {"known": known, "places": places}


def _people(owner: User) -> dict[str, Client]:
    group = Group.objects.get(name="Researchers")
    researcher = User.objects.create_user("researcher")
    researcher.groups.add(group)
    staff = User.objects.create_user("staff", is_staff=True)
    trainer = User.objects.create_user("trainer", is_staff=True)
    trainer.user_permissions.add(Permission.objects.get(codename="train_agents"))
    users = {
        "member": User.objects.create_user("member"),
        "owner": owner,
        "researcher": researcher,
        "staff": staff,
        "trainer": trainer,
    }
    found = {"anonymous": browser(), "stranger": browser(person())}
    for name, user in users.items():
        found[name] = Client()
        found[name].force_login(user, backend="django.contrib.auth.backends.ModelBackend")
    return found


def written(address: Address, world: dict[str, object]) -> str:
    """The address of what is there."""
    known, places = dict(world["known"]), world["places"]  # type: ignore[call-overload]
    first = address.route.split("/")[0]
    if first == "agents":
        known |= places["agent"]
    elif first == "exports":
        known |= places["export"]
    elif first == "episodes":
        known |= places["transcript"]
    elif first == "study" and "public_id" in address.parameters:
        known |= places["study-page"]
    elif first == "studies":
        known |= places["study"]
    elif first == "markets" and address.name == "play":
        pass
    return reverse(address.name, kwargs={name: known[name] for name in address.parameters})


def knocked(client: Client, where: str, how: str) -> int:
    """Status of the answer, with whatever it changed undone."""
    with transaction.atomic():
        response = client.get(where) if how == "get" else client.post(where, {})
        status = response.status_code
        location = response.get("Location", "")
        transaction.set_rollback(True)
    if status == 302 and "/account/sign-in/" not in location and "/account/sign-up/" not in location:
        return 303  # led on, not sent away
    return status


def test_every_address_is_written_down() -> None:
    assert [address.route for address in addresses() if may(address) is None] == []
    names = {address.name for address in addresses()}
    assert sorted(name for name in MAY if name not in names) == []


def test_whoever_is_not_named_is_sent_away_and_whoever_is_comes_in(knockers) -> None:
    clients, world = knockers
    wrong = []
    for address in addresses():
        allowed = may(address) or frozenset()
        if allowed == EVERYBODY and address.name in ("sign-out", "healthz", "readyz"):
            continue
        where = written(address, world)
        # Where everybody may come in, the least of all shows it.
        knocking = {"anonymous": clients["anonymous"]} if allowed == EVERYBODY else clients
        for who, client in knocking.items():
            answers = {how: knocked(client, where, how) for how in ("get", "post")}
            if who not in allowed:
                wrong += [
                    f"{who} {how} {where} ({address.name}): {status}, and should be sent away"
                    for how, status in answers.items()
                    if status not in SENT_AWAY
                ]
            elif set(answers.values()) <= {401, 403}:
                wrong.append(f"{who} {where} ({address.name}): refused, and may come in")
    assert wrong == []


def test_a_form_of_another_site_is_believed_nowhere(knockers) -> None:
    clients, world = knockers
    strict = Client(enforce_csrf_checks=True)
    strict.cookies = clients["trainer"].cookies
    believed = []
    for address in addresses():
        where = written(address, world)
        with transaction.atomic():
            status = strict.post(where, {}).status_code
            transaction.set_rollback(True)
        if status not in (401, 403, 404, 405):
            believed.append(f"{address.name}: {status}")
    assert believed == []
