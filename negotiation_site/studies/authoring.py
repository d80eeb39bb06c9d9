"""Writes to studies: making one, changing its design, opening and closing it, links, copies. And who may.

A design is judged (`checks`) before it is stored. A version that somebody has entered never changes again: a
change makes the next one, which newcomers get, while those who are inside go on in theirs. Refusals raise
`AuthoringError` with a sentence and change nothing. Acts are noted with their actor.
"""

import secrets
from datetime import datetime

import msgspec
from django.contrib.auth.models import AnonymousUser, User
from django.db import IntegrityError, transaction
from django.db.models import Q, QuerySet
from django.utils import timezone
from django.utils.translation import gettext as _

from markets.setup import SetupError, check_slug
from negotiation_site.studies import checks, design, events, play
from negotiation_site.studies.checks import Problem
from negotiation_site.studies.design import Design, Scenarios
from negotiation_site.studies.models import (
    LinkKind,
    Mode,
    Participation,
    RecruitmentLink,
    Study,
    StudyStatus,
    StudyVersion,
)

PERMISSIONS = ("studies.run_study", "markets.build_market")
"""Either lets somebody run studies: whoever may build markets is a researcher."""
MAX_LINKS = 1_000
"""Most one-time links that are made at once."""

STATUS_AFTER: dict[str, tuple[str, ...]] = {
    StudyStatus.DRAFT: (StudyStatus.PILOT, StudyStatus.OPEN),
    StudyStatus.PILOT: (StudyStatus.DRAFT, StudyStatus.OPEN, StudyStatus.CLOSED),
    StudyStatus.OPEN: (StudyStatus.PAUSED, StudyStatus.CLOSED),
    StudyStatus.PAUSED: (StudyStatus.OPEN, StudyStatus.CLOSED),
    StudyStatus.CLOSED: (StudyStatus.OPEN,),
}
"""What a study may become from what it is."""


class AuthoringError(Exception):
    """Something that cannot be done to a study; the sentence is for its author."""


class Outdated(AuthoringError):
    """Another design was saved since the author looked."""


class DesignRefused(AuthoringError):
    """A design that cannot be run."""

    def __init__(self, problems: tuple[Problem, ...]) -> None:
        super().__init__(problems[0].sentence)
        self.problems = problems


# --- Who may ------------------------------------------------------------------------------------------


def may_run(user: User | AnonymousUser) -> bool:
    """Whether somebody may make studies at all: the staff, and researchers with the permission."""
    return isinstance(user, User) and user.is_active and (user.is_staff or any(map(user.has_perm, PERMISSIONS)))


def studies_of(user: User | AnonymousUser) -> QuerySet[Study]:
    """The studies somebody may see and change: one's own; the staff's are all."""
    if not isinstance(user, User) or not may_run(user):
        return Study.objects.none()
    return Study.objects.all() if user.is_staff else Study.objects.filter(Q(created_by=user))


# --- Designs ------------------------------------------------------------------------------------------


def create(*, slug: str, design: Design, author: User | None) -> Study:
    """A new study with its first version, as a draft."""
    try:
        check_slug(slug, what="study")
    except SetupError as error:
        raise AuthoringError(str(error)) from error
    _judge(design)
    try:
        with transaction.atomic():
            study = Study.objects.create(slug=slug, created_by=author)
            _new_version(study, 1, design, author)
    except IntegrityError as error:
        raise AuthoringError(_("There is a study called “%(slug)s” already.") % {"slug": slug}) from error
    return study


def save(
    study: Study, design: Design, *, based_on: int, author: User | None, note: str = "", seen: str = ""
) -> StudyVersion:
    """Store a changed design: in place while nobody has entered, else as the next version.

    `based_on` is the version that the author had before them, and `seen` its hash; what was saved since refuses the
    change with `Outdated`.
    """
    _judge(design)
    with transaction.atomic():
        study = Study.objects.select_for_update().get(pk=study.pk)
        newest = StudyVersion.objects.select_for_update().filter(study=study).order_by("-number").first()
        if newest is None or newest.number != based_on:
            raise Outdated(_("Somebody has saved another version meanwhile. Look at it, then change that one."))
        text = encode(design)
        if text == newest.design:
            return newest
        if seen and newest.sha256 != seen:
            raise Outdated(
                _(
                    "This study was saved meanwhile, in another tab or by somebody else. Look at it there first: "
                    "saving here once more puts this in its place."
                )
            )
        if newest.frozen_at is not None:
            return _new_version(study, newest.number + 1, design, author, note=note)
        newest.design, newest.sha256, newest.title = text, sha256(text), design.title
        newest.note, newest.created_by = note[:200], author
        newest.save()
        events.note(study, "version", detail=f"v{newest.number} {newest.sha256[:12]}", actor=author)
        return newest


def copy(study: Study, *, slug: str, author: User | None) -> Study:
    """A new draft with the newest design of another, and value draws of its own."""
    newest = StudyVersion.objects.filter(study=study).order_by("-number").first()
    if newest is None:
        raise AuthoringError(_("This study has no design yet."))
    original = newest.parsed
    fresh = msgspec.structs.replace(original.scenarios, seed=new_seed())
    return create(slug=slug, design=msgspec.structs.replace(original, scenarios=fresh), author=author)


def new_seed() -> int:
    """A seed for a new study's draws."""
    return secrets.randbits(48)


def new_scenarios() -> Scenarios:
    """Value draws of a study of its own."""
    return Scenarios(seed=new_seed())


def encode(value: Design) -> str:
    """Canonical JSON of a design."""
    return design.encode(value)


def sha256(text: str) -> str:
    """Hash of a design's canonical JSON."""
    return design.sha256(text)


def _judge(design: Design) -> None:
    found = checks.problems(design)
    if found:
        raise DesignRefused(found)


def _new_version(study: Study, number: int, value: Design, author: User | None, *, note: str = "") -> StudyVersion:
    text = encode(value)
    version = StudyVersion.objects.create(
        study=study,
        number=number,
        title=value.title,
        design=text,
        sha256=sha256(text),
        note=note[:200],
        created_by=author,
    )
    events.note(study, "version", detail=f"v{number} {version.sha256[:12]}", actor=author)
    return version


def register(version: StudyVersion, *, actor: User | None, now: datetime | None = None) -> StudyVersion:
    """Register a version before its data are there: it is frozen, and its plan becomes public under its hash.

    Refused once a participant of the study (not of a pilot) has entered it. Doing it again changes nothing.
    """
    now = now or timezone.now()
    with transaction.atomic():
        study = Study.objects.select_for_update().get(pk=version.study_id)
        version = StudyVersion.objects.select_for_update().select_related("study").get(pk=version.pk)
        if version.registered_at is not None:
            return version
        if Participation.objects.filter(version=version, mode=Mode.LIVE).exists():
            raise AuthoringError(_("People have entered this version already; it can be registered only before."))
        version.registered_at = now
        version.frozen_at = version.frozen_at or now
        version.plan_sha256 = sha256(design.plan(version.parsed))
        version.save(update_fields=["registered_at", "frozen_at", "plan_sha256", "changed_at"])
        events.note(study, "register", detail=f"v{version.number} {version.plan_sha256}", actor=actor, now=now)
        return version


# --- Status -------------------------------------------------------------------------------------------


def may_become(study: Study) -> tuple[str, ...]:
    """What its status can be changed to: nothing for a closed study with games that are open data."""
    if study.status == StudyStatus.CLOSED and play.has_open_games(study):
        return ()
    return STATUS_AFTER[study.status]


def set_status(study: Study, status: StudyStatus, *, actor: User | None, now: datetime | None = None) -> Study:
    """Open, pause, close, reopen, or run as a pilot. Its newest design is judged again before people are let in."""
    now = now or timezone.now()
    with transaction.atomic():
        study = Study.objects.select_for_update().get(pk=study.pk)
        if study.status == status:
            return study
        if status not in STATUS_AFTER[study.status]:
            raise AuthoringError(
                _("A study that is %(now)s cannot become %(then)s.")
                % {"now": StudyStatus(study.status).label, "then": StudyStatus(status).label}
            )
        if study.status == StudyStatus.CLOSED and play.has_open_games(study):
            raise AuthoringError(
                _(
                    "Its games are open data now and tell the values that newcomers would meet. Copy it and open the copy."
                )
            )
        if status in (StudyStatus.PILOT, StudyStatus.OPEN):
            _judge(study.versions.order_by("-number")[0].parsed)
        study.status = status
        if status == StudyStatus.OPEN:
            study.opened_at, study.closed_at = study.opened_at or now, None
        elif status == StudyStatus.CLOSED:
            study.closed_at = now
        study.save()
        events.note(study, "status", detail=status, actor=actor, now=now)
    if status == StudyStatus.CLOSED:
        play.open_data(study, now=now)
    return study


# --- Links --------------------------------------------------------------------------------------------


def open_link(study: Study, *, actor: User | None, label: str = "") -> RecruitmentLink:
    """A link for anybody, and for a recruitment platform with its parameters."""
    link = RecruitmentLink.objects.create(study=study, kind=LinkKind.OPEN, label=label[:100])
    events.note(study, "link", detail=f"open {label}", actor=actor)
    return link


def one_time_links(study: Study, count: int, *, actor: User | None, label: str = "") -> list[RecruitmentLink]:
    """Links that let in one person each."""
    if not 1 <= count <= MAX_LINKS:
        raise AuthoringError(_("Make between 1 and 1,000 links at once."))
    links = RecruitmentLink.objects.bulk_create(
        RecruitmentLink(study=study, kind=LinkKind.ONE_TIME, label=label[:100]) for _number in range(count)
    )
    events.note(study, "link", detail=f"{count} one-time {label}", actor=actor)
    return links


def close_link(link: RecruitmentLink, *, actor: User | None, now: datetime | None = None) -> None:
    """Nobody gets in by it any more; whoever is inside stays."""
    RecruitmentLink.objects.filter(pk=link.pk, closed_at=None).update(closed_at=now or timezone.now())
    events.note(link.study, "link", detail=f"closed {link.label}", actor=actor, now=now)
