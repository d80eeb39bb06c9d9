"""Who is at the browser: the participant of the account that is signed in, else the one of this session.

An anonymous player is a row that the server-side session points to. Signing in leaves that pointer
where it is and looks past it: `set_aside` is who it names, until the games are brought along
(`accounts.bring_along`) or somebody signs out. An account's participant answers to sessions of that
account alone, whatever a session points to. Nothing about identity is kept in the page; a participant
is made when somebody first does something that needs one, never by looking at a page.
"""

import random
import secrets
from importlib import import_module
from typing import Any

from django.conf import settings
from django.contrib import auth
from django.contrib.auth.models import User
from django.contrib.sessions.backends.base import SessionBase
from django.contrib.sessions.models import Session
from django.db import IntegrityError, transaction
from django.db.models import Subquery
from django.http import HttpRequest
from django.utils import timezone

from markets.models import Participant
from markets.statements import Reading, Slot

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


def account_of(session: SessionBase) -> User | None:
    """The account signed in to this session, by Django's own rules: a changed password ends it everywhere else."""
    request = HttpRequest()
    request.session = session
    user = auth.get_user(request)
    return user if isinstance(user, User) else None


def participant_of(session: SessionBase) -> Participant | None:
    """Who plays in this session, if anybody has yet."""
    account = account_of(session)
    if account is not None:
        return Participant.objects.filter(account=account).first()
    return _anonymous(session)


_grounds: Reading[tuple[Any, ...]] = Reading(
    lambda: (
        Participant.objects.filter(pk=Slot("participant", Participant._meta.pk))
        .annotate(
            stored=Subquery(
                Session.objects.filter(
                    session_key=Slot("key", Session._meta.pk),
                    expire_date__gt=Slot("now", Session._meta.get_field("expire_date")),
                ).values("session_data")
            )
        )
        .order_by()
        .values_list("stored", "account_id", "account__password", "account__is_active")
    )
)


def grounds(session: SessionBase, participant_id: int | None) -> tuple[Any, ...] | None:
    """Everything stored by which `participant_of` tells whether the session is that participant's, in one look: while
    it stays the same, so does the answer. None where nothing of it is stored."""
    if not session.session_key or participant_id is None:
        return None
    found = _grounds.first(participant=participant_id, key=session.session_key, now=timezone.now())
    return None if found is None or found[0] is None else (session.session_key, participant_id, *found)


def set_aside(session: SessionBase) -> Participant | None:
    """The anonymous player of this browser, whom somebody signed in looks past."""
    return None if account_of(session) is None else _anonymous(session)


def _anonymous(session: SessionBase) -> Participant | None:
    key = session.get(SESSION_KEY)
    return None if key is None else Participant.objects.filter(pk=key, account=None).first()


def ensure_participant(session: SessionBase) -> Participant:
    """Who plays in this session, made now if need be."""
    known = participant_of(session)
    if known is not None:
        return known
    account = account_of(session)
    participant = new_participant(account=account)
    if account is None:
        session[SESSION_KEY] = participant.pk
    return participant


def new_participant(*, account: User | None = None) -> Participant:
    """A participant under a pseudonym that nobody else has; an account's own where it has one already."""
    chance = random.Random(secrets.randbits(64))
    while True:
        name = f"{chance.choice(_FIRST)} {chance.choice(_SECOND)} {chance.randint(100, 9999)}"
        try:
            with transaction.atomic():
                return Participant.objects.create(pseudonym=name, account=account)
        except IntegrityError:
            known = None if account is None else Participant.objects.filter(account=account).first()
            if known is not None:
                return known
