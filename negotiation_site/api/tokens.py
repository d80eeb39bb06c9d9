"""Tokens of scripts: making, revoking, recognising, and how often one may ask.

Contract: a token is shown once, by `create`; what is kept is its SHA-256, which suffices for 256 random bits. A request
is counted in the database, so that all processes count together: at most `LIMIT` in a window of `WINDOW_S` seconds
that begins with the first one. A revoked token, or one whose owner may no longer sign in, is none.
"""

import hashlib
import hmac
import math
import secrets
from datetime import datetime, timedelta

from django.conf import settings
from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.db.models import F, Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from negotiation_site.api.models import ApiToken

PREFIX = "parley_"
SHOWN = len(PREFIX) + 6
MOST = 20
"""Tokens that an account may have at a time."""
LIMIT, WINDOW_S = 120, 60
LONGEST_NAME = 60


class TokenError(ValueError):
    """A token that cannot be made; the sentence is for its owner."""


class TooMany(Exception):
    """The token has used its window up."""

    def __init__(self, retry_after_s: int) -> None:
        super().__init__(retry_after_s)
        self.retry_after_s = retry_after_s


def create(*, owner: User, name: str) -> tuple[ApiToken, str]:
    """A new token, and what its owner has to keep. Raises `TokenError`."""
    name = " ".join(name.split())
    if not name:
        raise TokenError(_("Give the token a name, so that you know later what uses it."))
    if len(name) > LONGEST_NAME or not name.isprintable():
        raise TokenError(_("A name has at most %(count)d printable characters.") % {"count": LONGEST_NAME})
    secret = PREFIX + secrets.token_urlsafe(32)
    if of(owner).count() >= MOST:
        raise TokenError(_("You have %(count)d tokens; revoke one that nothing uses any more.") % {"count": MOST})
    try:
        with transaction.atomic():
            row = ApiToken.objects.create(owner=owner, name=name, start=secret[:SHOWN], token_sha256=_hash(secret))
    except IntegrityError as error:
        raise TokenError(_("You have a token called “%(name)s” already.") % {"name": name}) from error
    return row, secret


def of(owner: User) -> QuerySet[ApiToken]:
    """The tokens of an account that work."""
    return ApiToken.objects.filter(owner=owner, revoked_at=None)


def revoke(*, owner: User, number: int) -> bool:
    """Revoke one's own token; whether there was one that worked."""
    return bool(of(owner).filter(pk=number).update(revoked_at=timezone.now()))


def known(secret: str) -> ApiToken | None:
    """The token that this is, if it works."""
    if not secret.startswith(PREFIX) or len(secret) > 100:
        return None
    return (
        ApiToken.objects.filter(token_sha256=_hash(secret), revoked_at=None, owner__is_active=True)
        .select_related("owner")
        .first()
    )


def count_request(token: ApiToken, *, now: datetime) -> None:
    """Count one request of now. Raises `TooMany`."""
    row = ApiToken.objects.filter(pk=token.pk)
    over = now - timedelta(seconds=WINDOW_S)
    if row.filter(Q(window_began_at=None) | Q(window_began_at__lte=over)).update(
        window_began_at=now, window_requests=1, last_used_at=now
    ):
        return
    if row.filter(window_requests__lt=LIMIT).update(window_requests=F("window_requests") + 1, last_used_at=now):
        return
    began = row.values_list("window_began_at", flat=True).first() or now
    raise TooMany(max(1, math.ceil(WINDOW_S - (now - began).total_seconds())))


def pseudonym(token: ApiToken, participant: int | None) -> str | None:
    """What a person is called to this token, and to no other; None for nobody."""
    if participant is None:
        return None
    key = hmac.digest(settings.SECRET_KEY.encode(), b"api" + token.salt.encode(), "sha256")
    return f"p-{hmac.new(key, str(participant).encode(), 'sha256').hexdigest()[:16]}"


def _hash(secret: str) -> str:
    return hashlib.sha256(secret.encode("utf-8", "replace")).hexdigest()
