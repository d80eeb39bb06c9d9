"""After a person was erased, no table holds their words, their name or their pseudonym; every record holds."""

from typing import Any

import pytest
from axes.models import AccessAttempt, AccessFailureLog, AccessLog
from django.apps import apps
from django.contrib.admin.models import ADDITION, LogEntry
from django.contrib.auth.models import User
from django.contrib.contenttypes.models import ContentType
from django.contrib.sessions.backends.db import SessionStore
from django.db import connection, models
from django.utils import timezone

from agents.models import ModelCall
from markets import accounts, episodes, erasure, export, identity
from markets.engine.protocol import SELLER
from markets.models import (
    AgentTurn,
    Episode,
    EpisodeText,
    Participant,
    RoomStatus,
    Seat,
    SeatKind,
    Utterance,
)
from tests.markets.engine.factories import B1, accept, bilateral, offer
from tests.markets.rooms import Game, staged

pytestmark = pytest.mark.django_db

WORDS = "The plover nests behind Zanzibar road number twelve."
NAME = "quetzalina"
EMAIL = "quetzalina@example.org"


def remains(*needles: str) -> list[str]:
    """Every text column of the database in which one of the needles stands, as table.column: value."""
    found = []
    with connection.cursor() as cursor:
        for table in connection.introspection.table_names(cursor):
            for column in connection.introspection.get_table_description(cursor, table):
                quoted = connection.ops.quote_name
                cursor.execute(f"SELECT {quoted(column.name)} FROM {quoted(table)}")
                for (value,) in cursor.fetchall():
                    if isinstance(value, str) and any(needle.casefold() in value.casefold() for needle in needles):
                        found.append(f"{table}.{column.name}: {value[:80]}")
    return found


def everywhere() -> tuple[Game, Participant, User]:
    """A person with an account who played a person and left traces in every table that can hold some."""
    game = staged(bilateral(), people=(B1, SELLER))
    participant = game.people[B1]
    account = accounts.sign_up(
        username=NAME, password="a long secret", email=EMAIL, address="10.0.0.1", anonymous=participant
    )
    account.last_name = "Quetzal"
    account.save()
    game.act(B1, offer(6_000, talk=WORDS))
    game.act(SELLER, offer(7_500, talk=f"So the plover nests behind Zanzibar, {NAME.title()}?"))
    game.act(B1, offer(7_000, talk="Seventy is fine."))
    game.act(SELLER, offer(7_200, talk="Two more, thank you."))
    game.act(B1, accept(4))
    for row in (*Utterance.objects.filter(party=SELLER), *EpisodeText.objects.filter(party=SELLER)):
        row.thought = f"They said: {WORDS}"
        row.save()
    turn = AgentTurn.objects.create(
        room=game.room, party=SELLER, position=1, due_at=timezone.now(), error=f"cannot read {WORDS!r}"
    )
    ModelCall.objects.create(
        room=game.room,
        turn=turn,
        party=SELLER,
        agent_slug="some-agent",
        agent_version="1",
        purpose="move",
        backend="fake",
        asked_model="fake",
        prompt="four_part@1",
        sampling="{}",
        messages=f'[{{"role": "user", "content": "{WORDS}"}}]',
        reply=f"You said {WORDS}",
        tool_calls=f'[{{"name": "say", "arguments": "{WORDS}"}}]',
        outcome="used",
        used=True,
        detail=WORDS,
        input_tokens=12,
    )
    for table, more in ((AccessAttempt, {"failures_since_start": 1}), (AccessLog, {}), (AccessFailureLog, {})):
        table.objects.create(username=NAME, ip_address="10.0.0.1", **more)
    for row in (participant, account):
        LogEntry.objects.create(
            user=account,
            content_type=ContentType.objects.get_for_model(row),
            object_id=str(row.pk),
            object_repr=str(row),
            action_flag=ADDITION,
            change_message=NAME,
        )
    session = SessionStore()
    session[identity.SESSION_KEY] = participant.pk
    session.create()
    return game, Participant.objects.get(pk=participant.pk), account


def test_no_text_column_of_the_database_holds_anything_of_an_erased_person():
    game, participant, _account = everywhere()
    episode = Episode.objects.get(room=game.room)
    needles = ("plover", "zanzibar", NAME, "quetzal", EMAIL, participant.pseudonym)
    tables = {place.split(".")[0] for place in remains(*needles)}
    written = (Utterance, EpisodeText, AgentTurn, ModelCall, AccessAttempt, AccessLog, AccessFailureLog, LogEntry)
    assert tables >= {table._meta.db_table for table in (*written, User, Participant)}  # Or the search finds nothing.

    erased = erasure.erase(participant=participant)

    assert remains(*needles) == []
    assert (erased.rooms, erased.episodes, erased.texts, erased.account) == (1, 1, 4, True)
    assert (erased.model_calls, erased.sessions) == (1, 1)
    kept = Episode.objects.get(pk=episode.pk)
    assert kept.record_sha256 == episode.record_sha256
    assert episodes.verify(kept)
    assert "Two more, thank you." in set(EpisodeText.objects.values_list("talk", flat=True))
    assert ModelCall.objects.get().input_tokens == 12  # What it cost is nobody's word.
    assert not any(needle in str(export.record(kept)).casefold() for needle in needles)


def test_every_table_that_can_hold_words_is_one_the_search_was_made_for():
    """A new table with free text has to be thought of here: whose words can it hold, and who erases them?"""
    known = {
        "Catalogue", "Product", "Market", "Participant", "SignUp", "Room", "Seat", "RoomEvent", "Utterance", "AgentTurn",
        "Episode", "EpisodeSeat", "EpisodeText", "Corpus", "ImportedDialogue", "ImportedParty", "ImportedText", "ModelCall",
        "EnteredAgent", "EnteredVersion", "InjectionScore", "Annotation", "ApiToken",
        "Study", "StudyVersion", "RecruitmentLink", "Participation", "StudyRound", "StudyAnswer", "StudyEvent",
        "StudyNotice", "Payment", "Report", "HiddenWords", "SharedResult",
    }  # fmt: skip
    found = {
        model.__name__
        for label in ("markets", "agents", "reading_room", "api", "studies", "moderation", "sharing")
        for model in apps.get_app_config(label).get_models()
        if any(isinstance(field, models.CharField | models.TextField) for field in model._meta.get_fields())
    }
    assert found <= known


def test_somebody_without_an_account_is_erased_and_the_other_player_stays():
    game = staged(bilateral(), people=(B1, SELLER))
    game.act(B1, offer(6_000, talk=WORDS))
    erased = erasure.erase(participant=game.people[B1])
    assert (erased.rooms, erased.account) == (1, False)
    assert game.fresh().status == RoomStatus.ENDED
    assert Seat.objects.get(room=game.room, party=B1).kind == SeatKind.PERSON
    assert Participant.objects.filter(pk=game.people[SELLER].pk).exists()
    assert remains("plover") == []


def test_common_words_of_others_are_left_alone():
    traces = erasure.Traces(names=("ann",)).of(["I can give you fifty for it."])
    assert not traces.in_text("You can give me sixty.")
    assert not traces.in_text("The cannery is closed.")
    assert traces.in_text("Ann, that is too little.")
    assert traces.in_text("You say: can give you fifty FOR it?")


def test_foreseeing_changes_nothing():
    game, participant, _account = everywhere()

    def count() -> dict[str, Any]:
        return {model.__name__: model.objects.count() for model in apps.get_app_config("markets").get_models()}

    before = count()
    foreseen = erasure.foreseen(participant)
    assert (foreseen.rooms, foreseen.episodes, foreseen.texts, foreseen.account) == (1, 1, 4, True)
    assert count() == before
    assert game.fresh().status == RoomStatus.ENDED
