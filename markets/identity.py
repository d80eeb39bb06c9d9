"""Who is at the browser: an anonymous player is a row that the server-side session points to.

Nothing about identity is kept in the page. A participant is made when somebody first does
something that needs one, never by looking at a page.
"""

import random
import secrets
from importlib import import_module

from django.conf import settings
from django.contrib.sessions.backends.base import SessionBase
from django.db import IntegrityError, transaction

from markets.models import Participant

SESSION_KEY = "participant"

_FIRST = [
    "Amber",
    "Brisk",
    "Calm",
    "Candid",
    "Copper",
    "Coral",
    "Dapper",
    "Eager",
    "Early",
    "Fair",
    "Frosty",
    "Gentle",
    "Golden",
    "Hazel",
    "Honest",
    "Humble",
    "Indigo",
    "Ivory",
    "Jolly",
    "Keen",
    "Lively",
    "Lucky",
    "Mellow",
    "Merry",
    "Misty",
    "Nimble",
    "Olive",
    "Patient",
    "Plain",
    "Polite",
    "Quiet",
    "Ready",
    "Rosy",
    "Russet",
    "Sandy",
    "Silver",
    "Steady",
    "Sunny",
    "Swift",
    "Tidy",
    "Umber",
    "Velvet",
    "Warm",
    "Wise",
]
_SECOND = [
    "Badger",
    "Bittern",
    "Crane",
    "Curlew",
    "Dormouse",
    "Dunlin",
    "Egret",
    "Falcon",
    "Finch",
    "Fox",
    "Gannet",
    "Gecko",
    "Hare",
    "Heron",
    "Ibis",
    "Jackdaw",
    "Kestrel",
    "Kite",
    "Lapwing",
    "Lark",
    "Linnet",
    "Lynx",
    "Magpie",
    "Marten",
    "Merlin",
    "Newt",
    "Otter",
    "Owl",
    "Plover",
    "Puffin",
    "Quail",
    "Raven",
    "Robin",
    "Siskin",
    "Sparrow",
    "Stoat",
    "Stork",
    "Swallow",
    "Tern",
    "Thrush",
    "Vole",
    "Wagtail",
    "Wren",
]


def stored_session(session_key: str | None) -> SessionBase:
    """The session as it is stored now; an empty one after log-out or expiry."""
    store: type[SessionBase] = import_module(settings.SESSION_ENGINE).SessionStore
    return store(session_key)


def participant_of(session: SessionBase) -> Participant | None:
    """The participant of this session, if there is one."""
    key = session.get(SESSION_KEY)
    return None if key is None else Participant.objects.filter(pk=key).first()


def ensure_participant(session: SessionBase) -> Participant:
    """The participant of this session, made now if need be."""
    known = participant_of(session)
    if known is not None:
        return known
    participant = _new_participant()
    session[SESSION_KEY] = participant.pk
    return participant


def _new_participant() -> Participant:
    """A participant under a pseudonym that nobody else has."""
    chance = random.Random(secrets.randbits(64))
    while True:
        name = f"{chance.choice(_FIRST)} {chance.choice(_SECOND)} {chance.randint(100, 9999)}"
        try:
            with transaction.atomic():
                return Participant.objects.create(pseudonym=name)
        except IntegrityError:
            continue
