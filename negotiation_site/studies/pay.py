"""What a participation comes to in money, and the code that proves how it ended.

Here: arithmetic on a design and on the event logs of a participation's rooms, and the one row that keeps the
result (`Payment`). Not here: paying anybody.

Contract: the bonus follows from the logs alone, every time anew; the figures that `StudyRound` shows are not
read. What cannot be known yet is None, which is not 0. Doing it again changes nothing; a settled row never
changes.
"""

import base64
import hashlib
import hmac
from dataclasses import dataclass
from datetime import datetime

from django.conf import settings
from django.utils import timezone

from markets import episodes
from markets.engine import metrics
from markets.engine.protocol import decode_log
from markets.engine.scenarios import decode_scenario
from markets.engine.seeds import derive_seed
from markets.models import Episode
from negotiation_site.studies.design import Counts, Design, Outcome
from negotiation_site.studies.models import Participation, Payment, StudyRound

PPM = 1_000_000
PAID_OUTCOMES = (Outcome.FINISHED, Outcome.PARTNER_LEFT, Outcome.NO_PARTNER, Outcome.ENDED_BY_STAFF)
"""Whoever ended otherwise is paid nothing."""


@dataclass(frozen=True)
class Amounts:
    """What one participation is paid."""

    currency: str
    fee_cents: int
    bonus_cents: int | None
    """None where it cannot be known yet."""
    counted: tuple[int, ...]
    """Numbers of the rounds that count."""

    @property
    def total_cents(self) -> int | None:
        """Fee and bonus."""
        return None if self.bonus_cents is None else self.fee_cents + self.bonus_cents


def amounts(participation: Participation) -> Amounts:
    """What a participation is paid as things stand."""
    design = participation.version.parsed
    currency = design.pay.currency
    outcome = participation.outcome
    if not participation.ended or not outcome:
        return Amounts(currency, design.pay.show_up_cents, None, ())
    if outcome not in PAID_OUTCOMES:
        return Amounts(currency, 0, 0, ())
    played = {played.number: played for played in rounds_that_count(participation)}
    fee = design.pay.show_up_cents
    if outcome == Outcome.NO_PARTNER and not played:
        fee = design.waiting.pay_cents
    gains = {number: surplus_cents(each) for number, each in played.items()}
    if any(gain is None for gain in gains.values()):
        return Amounts(currency, fee, None, ())
    known = {number: gain for number, gain in gains.items() if gain is not None}
    counted = counted_rounds(design, participation.public_id, known)
    return Amounts(currency, fee, bonus_cents(design, [known[number] for number in counted]), counted)


def rounds_that_count(participation: Participation) -> list[StudyRound]:
    """The rounds after practice, in order."""
    return list(participation.rounds.filter(number__gt=0).select_related("room").order_by("number"))


def surplus_cents(played: StudyRound) -> int | None:
    """Own gain in a round, from the log of its room; None while that goes on. 0 for whoever was replaced."""
    if played.replaced_at is not None:
        return 0
    episode = Episode.objects.filter(room=played.room_id).first()
    if episode is None:
        return None
    scenario = decode_scenario(episode.scenario)
    result = metrics.outcome(scenario, decode_log(episode.log))
    return episodes.seat_result(scenario, result, played.party)[0]


def counted_rounds(design: Design, public_id: str, gains: dict[int, int]) -> tuple[int, ...]:
    """The rounds whose gains are paid, of those that were played."""
    numbers = sorted(gains)
    if not numbers or design.pay.counts is Counts.ALL:
        return tuple(numbers)
    if design.pay.counts is Counts.BEST:
        return (max(numbers, key=lambda number: (gains[number], -number)),)
    return (numbers[derive_seed("paid round", design.scenarios.seed, public_id) % len(numbers)],)


def bonus_cents(design: Design, gains: list[int]) -> int:
    """Exchanged, rounded half up, and held between floor and cap."""
    pay = design.pay
    bonus = (sum(gains) * pay.exchange_ppm * 2 + PPM) // (2 * PPM)
    bonus = max(bonus, pay.floor_cents)
    return bonus if pay.cap_cents is None else min(bonus, pay.cap_cents)


def store(participation: Participation, *, now: datetime | None = None) -> Payment:
    """Write what a participation is paid. One that is settled is left as it is."""
    known = Payment.objects.filter(participation=participation).first()
    if known is not None and known.settled_at is not None:
        return known
    found = amounts(participation)
    payment, _made = Payment.objects.update_or_create(
        participation=participation,
        defaults={
            "currency": found.currency,
            "fee_cents": found.fee_cents,
            "bonus_cents": found.bonus_cents,
            "counted": ",".join(map(str, found.counted)),
            "computed_at": now or timezone.now(),
        },
    )
    return payment


# --- Codes --------------------------------------------------------------------------------------------


def code_of(participation: Participation, outcome: Outcome) -> str:
    """The completion code of an outcome; nobody who withdrew has one."""
    if outcome is Outcome.WITHDREW:
        return ""
    design = participation.version.parsed
    code = design.completion.codes.get(outcome.value) or study_code(participation.study.slug, outcome)
    if design.completion.per_person:
        code = f"{code}-{_letters('person', participation.public_id)[:5]}"
    return code


def study_code(slug: str, outcome: Outcome) -> str:
    """The code of a study that names none itself: the same for everybody, guessable by nobody."""
    return _letters("study", slug, outcome.value)[:8]


def _letters(*parts: str) -> str:
    digest = hmac.new(settings.SECRET_KEY.encode(), "\x1f".join(parts).encode(), hashlib.sha256).digest()
    return base64.b32encode(digest).decode()
