"""The bonus sheet: one row a person and session, what they are paid, and whether it was.

Here: the rows, working them out again, marking them as paid, and the two files. Not here: the arithmetic (`pay`),
pages (`bonus_pages`), paying anybody.

Contract: every amount that is not settled is worked out from the event log again each time; what cannot be known yet
is None and an empty cell, which is not 0. A settled amount never changes; where the log says another one now, the row
says so. Settling is by row and amount: what has changed since it was looked at is refused, and refusing changes
nothing. Whoever withdrew or was erased has no row, unless they had been paid.
"""

import csv
import io
import re
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime

from django.contrib.auth.models import User
from django.db import transaction
from django.utils import timezone
from django.utils.translation import gettext as _

from markets.engine.money import format_amount, format_plain
from negotiation_site.studies import conduct, events, pay
from negotiation_site.studies.models import Mode, Participation, Payment, State, Study

COLUMNS = (
    "participation",
    "participant_id",
    "platform_study",
    "session_id",
    "mode",
    "version",
    "condition",
    "role",
    "outcome",
    "completion_code",
    "rounds_played",
    "rounds_counted",
    "currency",
    "fee",
    "bonus",
    "total",
    "settled",
    "settled_at",
    "settled_by",
    "log_says",
)
PLATFORM_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.@-]{0,119}")
"""An identifier that a platform's bulk format can hold; anything else would be read as something else."""


class BonusError(Exception):
    """Something that cannot be settled; the sentence is for whoever tried."""


@dataclass(frozen=True)
class Row:
    """What one person in one session is paid."""

    public_id: str
    person: str
    platform_study: str
    session: str
    mode: str
    version: int
    condition: str
    role: str
    state: str
    outcome: str
    code: str
    rounds_played: int
    counted: tuple[int, ...]
    currency: str
    fee_cents: int | None
    bonus_cents: int | None
    """None while it cannot be known."""
    settled_at: datetime | None
    settled_by: str
    log_says_cents: int | None
    """Of a settled row, the total that the log gives now, where that is another."""

    @property
    def total_cents(self) -> int | None:
        """Fee and bonus."""
        return None if self.fee_cents is None or self.bonus_cents is None else self.fee_cents + self.bonus_cents

    @property
    def settled(self) -> bool:
        """Whether it was paid."""
        return self.settled_at is not None

    @property
    def can_settle(self) -> bool:
        """Whether there is something to mark as paid."""
        return not self.settled and self.total_cents is not None and bool(self.outcome)


def rows(study: Study, *, mode: Mode | str = Mode.LIVE) -> list[Row]:
    """Everybody's, in the order in which they entered. Writes nothing."""
    found = (
        Participation.objects.filter(study=study, mode=mode)
        .select_related("study", "version", "payment__settled_by")
        .prefetch_related("rounds")
        .order_by("pk")
    )
    return [row_of(each) for each in found if each.state != State.WITHDREW or _settled(each)]


def _settled(participation: Participation) -> bool:
    payment = _payment(participation)
    return payment is not None and payment.settled_at is not None


def _payment(participation: Participation) -> Payment | None:
    return getattr(participation, "payment", None)


def row_of(participation: Participation) -> Row:
    """One row, as things stand."""
    now = pay.amounts(participation)
    payment = _payment(participation)
    paid = payment if payment is not None and payment.settled_at is not None else None
    over = participation.ended
    fee: int | None = now.fee_cents if over else None
    bonus, counted, currency = now.bonus_cents if over else None, now.counted, now.currency
    differs = None
    if paid is not None:
        fee, bonus, currency = paid.fee_cents, paid.bonus_cents, paid.currency
        counted = tuple(int(number) for number in paid.counted.split(",") if number)
        known = participation.state != State.WITHDREW and now.total_cents is not None
        differs = now.total_cents if known and now.total_cents != (fee or 0) + (bonus or 0) else None
    return Row(
        public_id=participation.public_id,
        person=participation.platform_person,
        platform_study=participation.platform_study,
        session=participation.platform_session,
        mode=participation.mode,
        version=participation.version.number,
        condition=participation.condition,
        role=participation.role,
        state=participation.state,
        outcome=participation.outcome,
        code=participation.completion_code,
        rounds_played=sum(each.number > 0 for each in participation.rounds.all()),
        counted=counted,
        currency=currency,
        fee_cents=fee,
        bonus_cents=bonus,
        settled_at=None if paid is None else paid.settled_at,
        settled_by="" if paid is None or paid.settled_by is None else paid.settled_by.get_username(),
        log_says_cents=differs,
    )


def recompute(study: Study, *, mode: Mode | str = Mode.LIVE, now: datetime | None = None) -> int:
    """Store every amount anew from the logs, settled ones excepted. How many were stored."""
    over = Participation.objects.filter(study=study, mode=mode).exclude(outcome="").exclude(state=State.WITHDREW)
    stored = 0
    for each in over.select_related("study", "version").order_by("pk"):
        stored += pay.store(each, now=now).settled_at is None
    return stored


def settle(study: Study, shown: Mapping[str, int], *, actor: User, now: datetime | None = None) -> int:
    """Mark rows as paid: `shown` are the totals in cents by participation that were looked at. How many are new.

    A row that is settled already stays as it is. Raises `BonusError`, and changes nothing, where one is not of this
    study, is not known yet, or comes to something else now.
    """
    now = now or timezone.now()
    if not shown:
        raise BonusError(_("Choose at least one row."))
    settled = 0
    with transaction.atomic():
        there = Participation.objects.filter(study=study, public_id__in=list(shown)).exclude(mode=Mode.PREVIEW)
        found = {each.public_id: each for each in there}
        if unknown := sorted(set(shown) - set(found)):
            raise BonusError(_("%(row)s is not a participant of this study.") % {"row": unknown[0]})
        for public_id in sorted(found, key=lambda each: found[each].pk):
            settled += _settle(conduct.locked(found[public_id]), shown[public_id], actor=actor, now=now)
    return settled


def _settle(current: Participation, shown_cents: int, *, actor: User, now: datetime) -> bool:
    payment = pay.store(current, now=now) if current.ended else None
    if payment is not None and payment.settled_at is not None:
        return False
    if payment is None or payment.bonus_cents is None or current.state == State.WITHDREW:
        raise BonusError(_("What %(row)s is paid is not known yet.") % {"row": current.public_id})
    total = payment.fee_cents + payment.bonus_cents
    if total != shown_cents:
        raise BonusError(
            _("%(row)s comes to %(now)s by now, not %(then)s. Look again before you pay.")
            % {
                "row": current.public_id,
                "now": format_amount(total, payment.currency),
                "then": format_amount(shown_cents, payment.currency),
            }
        )
    Payment.objects.filter(pk=payment.pk).update(settled_at=now, settled_by=actor)
    events.note(
        current.study,
        "settle",
        participation=current,
        detail=f"{payment.currency} {format_plain(total)}",
        actor=actor,
        now=now,
    )
    return True


# --- Files --------------------------------------------------------------------------------------------


def full_csv(sheet: list[Row]) -> str:
    """Every row with a head. An unknown amount is an empty cell."""
    text = io.StringIO()
    out = csv.writer(text, lineterminator="\n")
    out.writerow(COLUMNS)
    for row in sheet:
        out.writerow(
            [
                row.public_id,
                plain(row.person),
                plain(row.platform_study),
                plain(row.session),
                row.mode,
                row.version,
                row.condition,
                row.role,
                row.outcome or row.state,
                plain(row.code),
                row.rounds_played,
                " ".join(map(str, row.counted)),
                row.currency,
                _cell(row.fee_cents),
                _cell(row.bonus_cents),
                _cell(row.total_cents),
                "yes" if row.settled else "no",
                "" if row.settled_at is None else row.settled_at.isoformat(),
                plain(row.settled_by),
                _cell(row.log_says_cents),
            ]
        )
    return text.getvalue()


def bulk_csv(sheet: list[Row], *, fee_too: bool = False) -> str:
    """What a recruitment platform's bulk payment takes: `participant_id,amount`, without a head.

    Of those who are known to the platform, are not settled, and are owed something: the bonus, with `fee_too` the
    show-up fee as well, where the platform does not pay that by itself.
    """
    owed = (
        (row.person, row.total_cents if fee_too else row.bonus_cents) for row in sheet if in_bulk(row, fee_too=fee_too)
    )
    return "".join(f"{person},{format_plain(cents)}\n" for person, cents in owed if cents is not None)


def in_bulk(row: Row, *, fee_too: bool = False) -> bool:
    """Whether a row is in the bulk file."""
    cents = row.total_cents if fee_too else row.bonus_cents
    return row.can_settle and cents is not None and cents > 0 and PLATFORM_ID.fullmatch(row.person) is not None


def _cell(cents: int | None) -> str:
    return "" if cents is None else format_plain(cents)


def plain(text: str) -> str:
    """A cell that a spreadsheet does not take for a formula."""
    return f"'{text}" if text[:1] in ("=", "+", "-", "@", "\t", "\r") else text
