"""A player is a row that the server's session points to, made when somebody first does something."""

import pytest
from django.contrib.sessions.backends.db import SessionStore

from markets import identity
from markets.models import Participant
from tests.markets.tabs import session_of

pytestmark = pytest.mark.django_db


def test_nobody_is_made_by_looking():
    assert identity.participant_of(SessionStore()) is None
    assert not Participant.objects.exists()


def test_somebody_is_made_once():
    session = SessionStore()
    first = identity.ensure_participant(session)
    assert identity.ensure_participant(session) == identity.participant_of(session) == first
    assert Participant.objects.count() == 1


def test_a_pseudonym_is_two_words_and_a_number_and_nobody_elses():
    names = [identity.ensure_participant(SessionStore()).pseudonym for _ in range(50)]
    assert len(set(names)) == 50
    assert all(len(name.split()) == 3 and name.split()[2].isdigit() for name in names)


def test_a_pseudonym_that_is_taken_is_drawn_again(monkeypatch):
    draws = iter(["Calm", "Otter", "Calm", "Otter", "Keen", "Wren"])
    monkeypatch.setattr("random.Random.choice", lambda self, words: next(draws))
    monkeypatch.setattr("random.Random.randint", lambda self, low, high: 123)
    names = [identity.ensure_participant(SessionStore()).pseudonym for _ in range(2)]
    assert names == ["Calm Otter 123", "Keen Wren 123"]


def test_a_session_of_somebody_erased_is_nobodys():
    session = session_of(Participant.objects.create(pseudonym="Calm Otter 1"))
    Participant.objects.all().delete()
    assert identity.participant_of(session) is None
    assert identity.ensure_participant(session).pk


def test_the_stored_session_is_what_counts_and_not_what_a_page_remembers():
    session = session_of(Participant.objects.create(pseudonym="Calm Otter 1"))
    key = session.session_key
    assert identity.participant_of(identity.stored_session(key)).pseudonym == "Calm Otter 1"
    session.flush()
    assert identity.participant_of(identity.stored_session(key)) is None
    assert identity.participant_of(identity.stored_session(None)) is None
