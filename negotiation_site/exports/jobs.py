"""Exports in the background: writing one down, claiming it, filling its folder, packing it.

Contract: a row is claimed by compare-and-swap with a lease that is renewed while it is written; a dead worker's
lease expires and the export is made again from the beginning, `MAX_ATTEMPTS` times at most. It is done when its
folder and archive are whole and its counts are the database's.
"""

import os
import secrets
import shutil
import socket
import time
import zipfile
from collections.abc import Sequence
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
from django.conf import settings
from django.contrib.auth.models import User
from django.db import transaction
from django.db.models import F, Min, Q, QuerySet
from django.utils import timezone

from markets.export import ExportError
from markets.models import Participant
from negotiation_site.exports import asked as asking
from negotiation_site.exports import making
from negotiation_site.exports.asked import Asked
from negotiation_site.exports.models import Export, ExportedPerson, ExportStatus

LEASE = timedelta(seconds=120)
RENEW_EVERY_S = 2.0
MAX_ATTEMPTS = 3
OPEN = (ExportStatus.QUEUED, ExportStatus.RUNNING)


class Lost(Exception):
    """The export is no longer this worker's."""


def folder(row: Export) -> Path:
    """Where its files lie."""
    return Path(settings.VAR) / "exports" / row.public_id


def archive(row: Export) -> Path:
    """Its files as one, for a download."""
    return folder(row).with_suffix(".zip")


def order(asked: Asked, *, by: User | None) -> Export:
    """Write an export down; a worker makes it. Raises `ExportError` with a sentence."""
    asking.check(asked)
    return Export.objects.create(
        asked=msgspec.json.encode(asked).decode(),
        format=asked.format,
        consent=asked.consent,
        corpus=asked.corpus,
        asked_by=by,
    )


def claimable(now: datetime) -> Q:
    """Exports that nobody works on."""
    return Q(status=ExportStatus.QUEUED) | Q(status=ExportStatus.RUNNING, lease_until__lte=now)


def work(number: int) -> bool:
    """Make the export if nobody else does; false where somebody does."""
    now = timezone.now()
    owner = f"{socket.gethostname()}:{os.getpid()}:{secrets.token_hex(4)}"
    taken = Export.objects.filter(claimable(now), pk=number, attempts__lt=MAX_ATTEMPTS).update(
        status=ExportStatus.RUNNING, owner=owner, lease_until=now + LEASE, attempts=F("attempts") + 1, done=0
    )
    if not taken:
        return False
    row = Export.objects.get(pk=number)
    held = Export.objects.filter(pk=number, owner=owner, status=ExportStatus.RUNNING)
    noted = float("-inf")

    def progress(done: int, total: int) -> None:
        nonlocal noted
        if time.monotonic() - noted >= RENEW_EVERY_S or done == total:
            noted = time.monotonic()
            if not held.update(done=done, total=total, lease_until=timezone.now() + LEASE):
                raise Lost(str(row))

    try:
        made = making.make(msgspec.json.decode(row.asked, type=Asked), folder(row), progress=progress)
        size = pack(made, archive(row))
    except Lost:
        return False
    except (ExportError, OSError) as error:
        if held.update(status=ExportStatus.FAILED, error=str(error), ended_at=timezone.now()):
            clear(row)  # What was written before a disk filled would only keep it full.
        return True
    return _done(row, held, made, size)


def _done(row: Export, held: "QuerySet[Export]", made: making.Made, size: int) -> bool:
    """Mark an export as ready with everybody in it; false where it was taken away, or somebody in it was erased meanwhile."""
    with transaction.atomic():
        if not held.select_for_update().exists():
            return False
        there = set(Participant.objects.filter(pk__in=made.people).values_list("pk", flat=True))
        if len(there) < len(made.people):
            clear(row)
            held.update(status=ExportStatus.QUEUED, owner="", lease_until=None)
            return False
        ExportedPerson.objects.bulk_create(
            (ExportedPerson(export=row, participant_id=number) for number in made.people),
            batch_size=1_000,
            ignore_conflicts=True,
        )
        held.update(
            status=ExportStatus.DONE,
            people_noted=True,
            sha256=made.manifest["sha256"],
            counts=msgspec.json.encode(made.manifest).decode(),
            size_bytes=size,
            error="",
            ended_at=timezone.now(),
        )
    return True


def pack(made: making.Made, path: Path) -> int:
    """The folder as one archive with the same bytes each time; gives its size."""
    draft = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    try:
        with zipfile.ZipFile(draft, "w", zipfile.ZIP_DEFLATED, compresslevel=6) as packed:
            for file in sorted(file for file in made.folder.rglob("*") if file.is_file()):
                entry = zipfile.ZipInfo(file.relative_to(made.folder).as_posix(), date_time=(1980, 1, 1, 0, 0, 0))
                entry.compress_type = zipfile.ZIP_DEFLATED
                with file.open("rb") as source, packed.open(entry, "w", force_zip64=True) as target:
                    shutil.copyfileobj(source, target, 1 << 20)
        draft.replace(path)
    finally:
        draft.unlink(missing_ok=True)
    return path.stat().st_size


def delete_files(row: Export) -> None:
    """Remove the files of an export that is over; its row, counts and hash stay. Raises `ExportError` for one under way."""
    changed = (
        Export.objects.filter(pk=row.pk)
        .exclude(status__in=(*OPEN, ExportStatus.WITHDRAWN))
        .update(status=ExportStatus.DELETED)
    )
    if not changed and not Export.objects.filter(pk=row.pk, status=ExportStatus.WITHDRAWN).exists():
        raise ExportError("An export that is being written cannot be deleted.")
    clear(row)


def clear(row: Export) -> None:
    """Remove the files of an export."""
    shutil.rmtree(folder(row), ignore_errors=True)
    archive(row).unlink(missing_ok=True)


# --- Somebody is erased ---------------------------------------------------------------------------------


def withdraw_person(participant: Participant) -> int:
    """Withdraw what holds a person, in the transaction that erases them; gives how many. What is being written begins anew."""
    Export.objects.filter(status=ExportStatus.RUNNING, corpus="").update(
        status=ExportStatus.QUEUED, owner="", lease_until=None
    )
    first = participant.episode_seats.aggregate(first=Min("episode__created_at"))["first"]
    holds = Q(people__participant=participant)
    if first is not None:
        holds |= Q(people_noted=False, corpus="", ended_at__gte=first)
    return _withdraw(Export.objects.filter(holds).distinct(), WITHDRAWN)


def withdraw_corpora(names: Sequence[str]) -> int:
    """Withdraw what was made of corpora of which a party is erased; gives how many."""
    of = Export.objects.filter(corpus__in=names).exclude(corpus="")
    of.filter(status=ExportStatus.RUNNING).update(status=ExportStatus.QUEUED, owner="", lease_until=None)
    return _withdraw(of, WITHDRAWN)


WITHDRAWN = "Somebody in it was erased, so its files were removed. Its counts and its hash stay."


def _withdraw(exports: "QuerySet[Export]", reason: str) -> int:
    numbers = list(exports.filter(status=ExportStatus.DONE).values_list("pk", flat=True))
    Export.objects.filter(pk__in=numbers).update(status=ExportStatus.WITHDRAWN, error=reason)
    transaction.on_commit(lambda: clear_withdrawn(numbers))
    return len(numbers)


def clear_withdrawn(numbers: Sequence[int] | None = None) -> None:
    """Remove the files of withdrawn exports that are still there: after a crash, too."""
    rows = Export.objects.filter(status=ExportStatus.WITHDRAWN)
    for row in rows if numbers is None else rows.filter(pk__in=numbers):
        if archive(row).exists() or folder(row).exists():
            clear(row)


def give_up(now: datetime) -> None:
    """Fail exports whose workers died too often."""
    lost = Export.objects.filter(status=ExportStatus.RUNNING, lease_until__lte=now, attempts__gte=MAX_ATTEMPTS)
    lost.update(status=ExportStatus.FAILED, error="Whoever wrote this export died, several times.", ended_at=now)


def counts(row: Export) -> dict[str, Any]:
    """What a finished export holds."""
    found: dict[str, Any] = msgspec.json.decode(row.counts) if row.counts else {}
    return found
