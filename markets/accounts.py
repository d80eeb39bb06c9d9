"""Writes to accounts: making one, bringing a browser's games along, and who may be erased (`erasure` does it).

An account is Django's own user. What others see of a player is the participant's pseudonym; the
user name is for signing in and shown to nobody else. Here are the rules, not the pages
(`account_pages`) and not who is asking (`identity`). Refusals raise `AccountError` with a sentence
and change nothing.

The rule of merging: a participant that no account owns may be brought into one, by whoever holds
the session it plays in. Its games become the account's; games in which both sat stay where they
are, because one person cannot sit on two chairs of a room.
"""

import hashlib
import hmac
from dataclasses import dataclass
from datetime import datetime, timedelta

from django.conf import settings
from django.contrib.auth.models import User
from django.db import IntegrityError, transaction
from django.db.models import Q
from django.utils import timezone
from django.utils.translation import gettext as _

from markets import episodes, erasure
from markets.models import EpisodeSeat, Participant, SignUp
from markets.signals import people_merged

SIGN_UPS_AN_HOUR = 30
"""Accounts that may be made from one network address in an hour: a class behind one router, not a script."""
LIMIT_WINDOW = timedelta(hours=1)


class AccountError(Exception):
    """Something that cannot be done with an account; the sentence is for whoever tried."""


# --- Signing up -------------------------------------------------------------------------------------


def sign_up(
    *,
    username: str,
    password: str,
    email: str = "",
    address: str,
    anonymous: Participant | None = None,
    now: datetime | None = None,
) -> User:
    """Make an account; `anonymous` is the player of this browser whose games come along."""
    now = now or timezone.now()
    digest = hmac.new(settings.SECRET_KEY.encode(), address.encode(), hashlib.sha256).hexdigest()
    try:
        with transaction.atomic():
            SignUp.objects.filter(at__lte=now - LIMIT_WINDOW).delete()
            if SignUp.objects.filter(address_digest=digest).count() >= SIGN_UPS_AN_HOUR:
                raise AccountError(_("Too many accounts were made from your network just now. Try again in an hour."))
            SignUp.objects.create(address_digest=digest, at=now)
            account = User.objects.create_user(username=username, password=password, email=email)
            if anonymous is not None:
                bring_along(account=account, anonymous=anonymous)
    except IntegrityError:
        raise AccountError(_("Somebody has taken that name in this moment. Choose another.")) from None
    return account


# --- Bringing games along ---------------------------------------------------------------------------


@dataclass(frozen=True)
class Brought:
    """What came along."""

    games: int
    stayed: int
    """Games in which the account sat too."""


def bring_along(*, account: User, anonymous: Participant) -> Brought:
    """Make an anonymous player's games the account's. Doing it again changes nothing."""
    with transaction.atomic():
        locked = Participant.objects.select_for_update().filter(Q(pk=anonymous.pk) | Q(account=account)).order_by("pk")
        people = {person.pk: person for person in locked}
        guest = people.pop(anonymous.pk, None)
        if guest is None or guest.account_id is not None:
            raise AccountError(_("These games belong to an account already."))
        if not people:
            guest.account = account
            guest.save(update_fields=["account"])
            return Brought(games=guest.seats.count(), stayed=0)
        (own,) = people.values()
        return _merge(own, guest)


def _merge(own: Participant, guest: Participant) -> Brought:
    shared = set(own.seats.values_list("room_id", flat=True))
    games = guest.seats.exclude(room__in=shared).update(participant=own)
    records = guest.episode_seats.exclude(episode__room__in=shared)
    numbers = sorted(records.values_list("episode_id", flat=True))
    EpisodeSeat.objects.filter(participant=guest, episode__in=numbers).update(participant=own)
    episodes.note_change(numbers)
    if not own.default_consent and guest.default_consent:
        own.default_consent = guest.default_consent
    own.barred_until = max(filter(None, (own.barred_until, guest.barred_until)), default=None)
    own.save(update_fields=["default_consent", "barred_until"])
    people_merged.send(sender=Participant, guest=guest, own=own)
    stayed = guest.seats.count()
    if not stayed and not guest.episode_seats.exists():
        guest.delete()
    return Brought(games=games, stayed=stayed)


# --- Erasing ----------------------------------------------------------------------------------------


def erase(*, account: User) -> None:
    """Erase a person: the account, the pseudonym and every word they wrote (`erasure`). The moves stay, without a name.

    Games that are still going are left first, as if they had pressed the button.
    """
    refuse_staff(account)
    erasure.erase(participant=Participant.objects.filter(account=account).first(), account=account)


def refuse_staff(account: User | None) -> None:
    """Raises `AccountError` for an account of the staff, which others' work may hang on."""
    if account is not None and account.is_staff:
        raise AccountError(_("An account of the staff is removed in the administration."))
