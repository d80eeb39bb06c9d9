"""Pages of researchers: their studies, the builder, a study's page with its status, links and previews.

For the staff and whoever has a permission of `authoring.PERMISSIONS`; researchers see their own studies, the staff all.
To everybody else a study is not there. A view reads the form (`building_form`), makes one call into `authoring`,
and renders; what was typed is never lost.
"""

import csv
import re
from collections.abc import Callable, Collection
from dataclasses import dataclass
from functools import wraps
from typing import Any

from django.contrib import messages
from django.contrib.auth.models import User
from django.contrib.auth.views import redirect_to_login
from django.db.models import Count
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.formats import date_format
from django.utils.text import slugify
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from agents import registry
from agents.base import Kind
from markets.engine.protocol import Role
from markets.presentation import Choice
from markets.result import percent
from markets.views import origin_of
from negotiation_site.studies import assignment, authoring, building_form, checks, conduct, holding, power
from negotiation_site.studies.authoring import AuthoringError, DesignRefused
from negotiation_site.studies.building_form import Part, Typed
from negotiation_site.studies.checks import Problem
from negotiation_site.studies.design import Design
from negotiation_site.studies.models import (
    LinkKind,
    Mode,
    Participation,
    RecruitmentLink,
    State,
    Study,
    StudyStatus,
    StudyVersion,
)

RESERVED = ("new",)
"""Addresses that are pages of their own."""
ADDRESS = re.compile(r"[A-Za-z0-9_-]{1,50}")
SHOWN_LINKS = 50
PLATFORM_QUERY = "?PROLIFIC_PID={{%PROLIFIC_PID%}}&STUDY_ID={{%STUDY_ID%}}&SESSION_ID={{%SESSION_ID%}}"


# --- What the templates read ------------------------------------------------------------------------


@dataclass(frozen=True)
class StudyLine:
    """A study in the list."""

    url: str
    title: str
    slug: str
    status: str
    status_text: str
    people_text: str
    author: str
    when: str


@dataclass(frozen=True)
class FormPage:
    """Context `page` of `studies/build.html`."""

    heading: str
    lead: str
    back: tuple[str, str]
    parts: tuple[Part, ...]
    counts: tuple[tuple[str, int], ...]
    """Hidden fields with the lengths of the lists."""
    problem: str
    based_on: int
    """The version that its author has before them; 0 for a new study."""
    seen: str
    """Hash of that version's design."""
    note: str
    save: str


@dataclass(frozen=True)
class Act:
    """A button that changes a study's status."""

    status: str
    words: str
    primary: bool
    sentence: str


@dataclass(frozen=True)
class LinkLine:
    """A recruitment link."""

    number: int
    url: str
    platform_url: str
    kind: str
    label: str
    state: str
    open: bool


@dataclass(frozen=True)
class CellLine:
    """How far a cell is."""

    condition: str
    role: str
    role_text: str
    inside: int
    finished: int


@dataclass(frozen=True)
class VersionLine:
    """A version of the design."""

    number: int
    when: str
    note: str
    sha256: str
    state: str
    plan_url: str
    """Where its public plan is, once registered."""
    can_register: bool


@dataclass(frozen=True)
class StudyPage:
    """Context `page` of `studies/study.html`."""

    slug: str
    title: str
    status: str
    status_text: str
    acts: tuple[Act, ...]
    problems: tuple[str, ...]
    cells: tuple[CellLine, ...]
    cells_text: str
    links: tuple[LinkLine, ...]
    versions: tuple[VersionLine, ...]
    previews: tuple[tuple[str, str], ...]
    """Condition and side as one value, and its words."""
    is_author: bool


# --- Who may ----------------------------------------------------------------------------------------


def for_researchers(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """Asks strangers to sign in and turns everybody else away who may not run studies."""

    @wraps(view)
    def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if not request.user.is_authenticated:
            return redirect_to_login(request.get_full_path() if request.method == "GET" else reverse("studies"))
        if not authoring.may_run(request.user):
            return render(request, "studies/not_allowed.html", status=403)
        return never_cache(view)(request, *args, **kwargs)

    return guarded


def study_of(request: HttpRequest, slug: str) -> Study:
    """The study at this address, if it is one of theirs."""
    study = authoring.studies_of(request.user).filter(slug=slug).first()
    if study is None:
        raise Http404(_("There is no study called %(slug)s, or it is somebody else's.") % {"slug": slug})
    return study


def _user(request: HttpRequest) -> User | None:
    return request.user if isinstance(request.user, User) else None


# --- The list ---------------------------------------------------------------------------------------


@require_GET
@for_researchers
def study_list(request: HttpRequest) -> HttpResponse:
    """One's studies; the staff's list has everybody's."""
    studies = authoring.studies_of(request.user).select_related("created_by").prefetch_related("versions")
    counted = dict(
        Participation.objects.filter(mode=Mode.LIVE)
        .order_by()
        .values_list("study")
        .annotate(count=Count("id"))
        .values_list("study", "count")
    )
    rows = tuple(_line(study, counted.get(study.pk, 0)) for study in studies)
    return render(request, "studies/list.html", {"rows": rows})


def _line(study: Study, people: int) -> StudyLine:
    newest = max(study.versions.all(), key=lambda version: version.number)
    return StudyLine(
        url=reverse("study", args=[study.slug]),
        title=newest.title,
        slug=study.slug,
        status=study.status,
        status_text=str(StudyStatus(study.status).label),
        people_text=ngettext("%(count)d participant", "%(count)d participants", people) % {"count": people}
        if people
        else _("nobody yet"),
        author=study.created_by.get_username() if study.created_by else _("the command line"),
        when=date_format(study.created_at),
    )


# --- The builder ------------------------------------------------------------------------------------


@require_http_methods(["GET", "HEAD", "POST"])
@for_researchers
def new(request: HttpRequest) -> HttpResponse:
    """Build a study."""
    if request.method != "POST":
        return _form(request, building_form.blank(), (), opened=building_form.NEW)
    typed = Typed({key: str(value) for key, value in request.POST.items()})
    button = request.POST.get("do", "")
    if (grown := typed.changed(button)) is not None:
        return _form(request, grown, (), opened=grown.touched(button))
    design, unread = building_form.design_of(typed, scenarios=authoring.new_scenarios())
    slug = typed["slug"].strip() or slugify(design.title)[:50]
    found = (*unread, *_slug_problems(slug), *checks.problems(design))
    if found:
        return _form(request, typed, found)
    try:
        study = authoring.create(slug=slug, design=design, author=_user(request))
    except AuthoringError as refused:
        return _form(request, typed, (Problem("slug", str(refused)),))
    messages.success(request, _("The study is saved as a draft. Look at it as a participant before you open it."))
    return redirect("study", slug=study.slug)


def _slug_problems(slug: str) -> tuple[Problem, ...]:
    if not slug or slug in RESERVED:
        return (Problem("slug", _("Give the study an address of its own.")),)
    if not ADDRESS.fullmatch(slug):
        sentence = _("An address has letters, digits, hyphens and underscores, at most 50 of them.")
        return (Problem("slug", sentence),)
    if Study.objects.filter(slug=slug).exists():
        return (Problem("slug", _("There is a study called “%(slug)s” already.") % {"slug": slug}),)
    return ()


@require_http_methods(["GET", "HEAD", "POST"])
@for_researchers
def change(request: HttpRequest, slug: str) -> HttpResponse:
    """Change a study's design: in place until somebody has entered, then as a new version."""
    study = study_of(request, slug)
    newest = conduct.newest_version(study)
    if request.method != "POST":
        return _form(request, building_form.typed_of(newest.parsed), (), study=study, newest=newest)
    typed = Typed({key: str(value) for key, value in request.POST.items()})
    button = request.POST.get("do", "")
    if (grown := typed.changed(button)) is not None:
        return _form(request, grown, (), study=study, newest=newest, opened=grown.touched(button))
    design, unread = building_form.design_of(typed, scenarios=newest.parsed.scenarios)
    found = (*unread, *checks.problems(design))
    if found:
        return _form(request, typed, found, study=study, newest=newest)
    based_on = typed["based_on"]
    number = int(based_on) if based_on.isdecimal() and len(based_on) < 7 else 0
    note, seen = typed["note"].strip(), typed["seen"]
    try:
        saved = authoring.save(study, design, based_on=number, seen=seen, author=_user(request), note=note)
    except AuthoringError as refused:
        if isinstance(refused, authoring.Outdated):  # Told once: what they save next, they save over it.
            typed = typed.without("based_on", "seen")
            newest = conduct.newest_version(study)
        return _form(request, typed, (Problem("", str(refused)),), study=study, newest=newest)
    messages.success(request, _("Saved as version %(number)d.") % {"number": saved.number})
    return redirect("study", slug=study.slug)


def _form(
    request: HttpRequest,
    typed: Typed,
    problems: tuple[Problem, ...],
    *,
    study: Study | None = None,
    newest: StudyVersion | None = None,
    opened: Collection[str] = (),
) -> HttpResponse:
    if newest is None or study is None:
        heading, save = _("A new study"), _("Save the study")
        lead = _("Everything a participant sees and everything that decides what they are paid, on one page.")
        back = (reverse("studies"), _("Studies"))
    else:
        heading, back = _("Change the study"), (reverse("study", args=[study.slug]), newest.title)
        frozen = newest.frozen_at is not None
        lead = (
            _("Version %(number)d is registered, so it stays as it is. What you save becomes version %(next)d.")
            % {"number": newest.number, "next": newest.number + 1}
            if newest.registered_at
            else _(
                "People have entered version %(number)d, so it stays as it is. What you save becomes version %(next)d."
            )
            % {"number": newest.number, "next": newest.number + 1}
            if frozen
            else _("Nobody has entered yet: what you save takes the place of what is there.")
        )
        save = _("Save as version %(number)d") % {"number": newest.number + frozen}
    general = [problem.sentence for problem in problems if not problem.field]
    page = FormPage(
        heading=heading,
        lead=lead,
        back=back,
        parts=building_form.parts(typed, problems, fixed_slug=study is not None, opened=opened),
        counts=tuple((name, typed.count(name)) for name in building_form.LISTS),
        problem=" ".join([checks.counted(problems), *general]) if problems else "",
        based_on=_stated_version(typed, newest),
        seen="" if newest is None else typed["seen"] or newest.sha256,
        note=typed["note"],
        save=save,
    )
    sentences = [(*building_form.place_of(problem), problem.sentence) for problem in problems if problem.field]
    status = 400 if problems else 200
    return render(request, "studies/build.html", {"page": page, "sentences": sentences}, status=status)


def _stated_version(typed: Typed, newest: StudyVersion | None) -> int:
    """The version that a form was filled in from, however often its page was drawn anew since."""
    if newest is None:
        return 0
    stated = typed["based_on"]
    return int(stated) if stated.isdecimal() and len(stated) < 7 else newest.number


# --- One study --------------------------------------------------------------------------------------


@require_GET
@for_researchers
def study(request: HttpRequest, slug: str) -> HttpResponse:
    """A study: what it is, how far it is, who may come in and by what."""
    found = study_of(request, slug)
    return render(request, "studies/study.html", {"page": _study_page(request, found)})


def _study_page(request: HttpRequest, study: Study) -> StudyPage:
    versions = list(study.versions.order_by("-number"))
    newest = versions[0]
    design = newest.parsed
    mode = study.mode
    return StudyPage(
        slug=study.slug,
        title=newest.title,
        status=study.status,
        status_text=_status_text(study),
        acts=_acts(study),
        problems=tuple(problem.sentence for problem in checks.problems(design))
        if study.status != StudyStatus.CLOSED
        else (),
        cells=_cells(study, newest, mode),
        cells_text=_("Pilot participants of the newest version")
        if mode is Mode.PILOT
        else _("Participants of the newest version"),
        links=tuple(_link(request, link) for link in study.links.order_by("kind", "pk")[:SHOWN_LINKS]),
        versions=tuple(_version(version) for version in versions),
        previews=_previews(design),
        is_author=study.created_by_id == request.user.pk,
    )


def _status_text(study: Study) -> str:
    if study.status == StudyStatus.CLOSED and not authoring.may_become(study):
        return _("Closed, and its games are open data: copy it to go on with newcomers.")
    return {
        StudyStatus.DRAFT: _("A draft: its links let nobody in."),
        StudyStatus.PILOT: _("A pilot: its links let people in, and their data is kept apart."),
        StudyStatus.OPEN: _("Open: its links let people in."),
        StudyStatus.PAUSED: _("Paused: nobody new gets in, and those inside wait before their next round."),
        StudyStatus.CLOSED: _("Closed: nobody new gets in; those still inside may finish."),
    }[StudyStatus(study.status)]


def _acts(study: Study) -> tuple[Act, ...]:
    words = {
        StudyStatus.DRAFT: (_("Back to a draft"), _("Links let nobody in.")),
        StudyStatus.PILOT: (_("Run a pilot"), _("Links let people in; their data is kept apart.")),
        StudyStatus.OPEN: (
            {StudyStatus.PAUSED: _("Go on"), StudyStatus.CLOSED: _("Open it again")}.get(
                StudyStatus(study.status), _("Open the study")
            ),
            _("Links let people in."),
        ),
        StudyStatus.PAUSED: (_("Pause"), _("Nobody new gets in; those inside wait before their next round.")),
        StudyStatus.CLOSED: (_("Close"), _("Nobody new gets in; those inside may finish.")),
    }
    return tuple(
        Act(
            status=status,
            words=words[StudyStatus(status)][0],
            primary=status == StudyStatus.OPEN and study.status != StudyStatus.CLOSED,
            sentence=words[StudyStatus(status)][1],
        )
        for status in authoring.may_become(study)
    )


def _cells(study: Study, version: StudyVersion, mode: Mode) -> tuple[CellLine, ...]:
    rows = Participation.objects.filter(version=version, mode=mode)
    inside = {
        (row["condition"], row["role"]): row["count"]
        for row in rows.filter(slot__isnull=False).order_by().values("condition", "role").annotate(count=Count("id"))
    }
    finished = {
        (row["condition"], row["role"]): row["count"]
        for row in rows.filter(state=State.FINISHED).order_by().values("condition", "role").annotate(count=Count("id"))
    }
    return tuple(
        CellLine(
            condition=cell.condition,
            role=cell.role.value,
            role_text=_("buyer") if cell.role is Role.BUYER else _("seller"),
            inside=inside.get((cell.condition, cell.role.value), 0),
            finished=finished.get((cell.condition, cell.role.value), 0),
        )
        for cell in assignment.cells(version.parsed)
    )


def _link(request: HttpRequest, link: RecruitmentLink) -> LinkLine:
    url = origin_of(request) + reverse("study-join", args=[link.token])
    used = link.kind == LinkKind.ONE_TIME and link.used_at is not None
    state = _("closed") if link.closed_at else _("used") if used else _("open")
    return LinkLine(
        number=link.pk,
        url=url,
        platform_url=url + PLATFORM_QUERY if link.kind == LinkKind.OPEN else "",
        kind=str(LinkKind(link.kind).label),
        label=link.label,
        state=state,
        open=link.closed_at is None and not used,
    )


def _version(version: StudyVersion) -> VersionLine:
    entered = Participation.objects.filter(version=version, mode=Mode.LIVE).exists()
    state = (
        _("registered on %(day)s") % {"day": date_format(version.registered_at, "DATETIME_FORMAT")}
        if version.registered_at
        else _("frozen on %(day)s") % {"day": date_format(version.frozen_at, "DATETIME_FORMAT")}
        if version.frozen_at
        else _("may still be changed")
    )
    return VersionLine(
        number=version.number,
        when=date_format(version.changed_at, "DATETIME_FORMAT"),
        note=version.note,
        sha256=version.sha256,
        state=state,
        plan_url=reverse("study-plan", args=[version.plan_sha256]) if version.registered_at else "",
        can_register=version.registered_at is None and not entered,
    )


def _previews(design: Design) -> tuple[tuple[str, str], ...]:
    return tuple(
        (
            f"{cell.condition}:{cell.role.value}",
            _("%(condition)s, as the %(role)s")
            % {"condition": cell.condition, "role": _("buyer") if cell.role is Role.BUYER else _("seller")},
        )
        for cell in assignment.cells(design)
    )


# --- What is done to one --------------------------------------------------------------------------------


@require_POST
@for_researchers
def set_status(request: HttpRequest, slug: str) -> HttpResponse:
    """Open, pause, close, or run as a pilot."""
    study = study_of(request, slug)
    wanted = request.POST.get("status", "")
    if wanted not in StudyStatus.values:
        return HttpResponse(_("A study can be a draft, a pilot, open, paused or closed."), status=400)
    try:
        authoring.set_status(study, StudyStatus(wanted), actor=_user(request))
    except DesignRefused as refused:
        for problem in refused.problems:
            messages.error(request, problem.sentence)
    except AuthoringError as refused:
        messages.error(request, str(refused))
    return redirect("study", slug=slug)


@require_POST
@for_researchers
def copy(request: HttpRequest, slug: str) -> HttpResponse:
    """A draft of the same design under another address."""
    study = study_of(request, slug)
    wanted = request.POST.get("slug", "").strip()
    problems = _slug_problems(wanted)
    try:
        if problems:
            raise AuthoringError(problems[0].sentence)
        made = authoring.copy(study, slug=wanted, author=_user(request))
    except AuthoringError as refused:
        messages.error(request, str(refused))
        return redirect("study", slug=slug)
    messages.success(request, _("This is a copy, as a draft, with value draws of its own."))
    return redirect("study", slug=made.slug)


@require_POST
@for_researchers
def make_links(request: HttpRequest, slug: str) -> HttpResponse:
    """An open link, or so many one-time links."""
    study = study_of(request, slug)
    label = request.POST.get("label", "").strip()
    count = request.POST.get("count", "").strip()
    try:
        if request.POST.get("kind") == LinkKind.ONE_TIME:
            if not count.isdecimal() or len(count) > 5:
                raise AuthoringError(_("Say how many links you want."))
            authoring.one_time_links(study, int(count), actor=_user(request), label=label)
        else:
            authoring.open_link(study, actor=_user(request), label=label)
    except AuthoringError as refused:
        messages.error(request, str(refused))
    return redirect("study", slug=slug)


@require_POST
@for_researchers
def close_link(request: HttpRequest, slug: str, number: int) -> HttpResponse:
    """Close a link."""
    link = RecruitmentLink.objects.filter(study=study_of(request, slug), pk=number).first()
    if link is None:
        raise Http404(_("This study has no such link."))
    authoring.close_link(link, actor=_user(request))
    return redirect("study", slug=slug)


@require_GET
@for_researchers
def links_csv(request: HttpRequest, slug: str) -> HttpResponse:
    """Every link, for a mailing."""
    study = study_of(request, slug)
    response = HttpResponse(content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{study.slug}-links.csv"'
    rows = csv.writer(response)
    rows.writerow(["link", "kind", "label", "state"])
    for link in study.links.order_by("kind", "pk"):
        line = _link(request, link)
        rows.writerow([line.url, link.kind, _plain(link.label), line.state])
    return response


def _plain(text: str) -> str:
    """A cell that a spreadsheet does not take for a formula."""
    return f"'{text}" if text.startswith(("=", "+", "-", "@", "\t", "\r")) else text


@require_POST
@for_researchers
def preview(request: HttpRequest, slug: str) -> HttpResponse:
    """Walk through the newest version as a participant of one condition; nothing of it counts."""
    study = study_of(request, slug)
    version = conduct.newest_version(study)
    wanted = request.POST.get("cell", "")
    cell = next((cell for cell in assignment.cells(version.parsed) if f"{cell.condition}:{cell.role}" == wanted), None)
    if cell is None:
        messages.error(request, _("Choose a condition and a side to look at."))
        return redirect("study", slug=slug)
    participation = conduct.enter_preview(
        version=version, condition=cell.condition, role=cell.role, device=conduct.new_device()
    )
    holding.hold(request.session, participation)
    return redirect("study-page", public_id=participation.public_id)


@require_POST
@for_researchers
def register(request: HttpRequest, slug: str, number: int) -> HttpResponse:
    """Register a version before its data are there."""
    version = StudyVersion.objects.filter(study=study_of(request, slug), number=number).first()
    if version is None:
        raise Http404(_("This study has no such version."))
    try:
        registered = authoring.register(version, actor=_user(request))
    except AuthoringError as refused:
        messages.error(request, str(refused))
        return redirect("study", slug=slug)
    return redirect("study-plan", sha256=registered.plan_sha256)


# --- What it can be expected to tell ------------------------------------------------------------------


@dataclass(frozen=True)
class PowerPage:
    """Context `page` of `studies/power.html`."""

    title: str
    slug: str
    participants: str
    """As typed: in each condition."""
    agents: tuple[Choice, ...]
    error: str
    rows: tuple[tuple[str, str, str, str, str], ...]
    """Condition, mean share, spread between people, deals, expected interval."""
    contrasts: tuple[tuple[str, str, str], ...]
    """Conditions, simulated difference, smallest difference that would be found."""


@require_GET
@for_researchers
def expected(request: HttpRequest, slug: str) -> HttpResponse:
    """The study played by agents: how wide its intervals would be for a number of participants."""
    study = study_of(request, slug)
    version = conduct.newest_version(study)
    design = version.parsed
    typed = request.GET.get("n", "").strip() or str(max(10, design.participants // len(design.conditions)) or 40)
    stand_in = request.GET.get("agent", "linear")
    rows: tuple[tuple[str, str, str, str, str], ...] = ()
    pairs: tuple[tuple[str, str, str], ...] = ()
    error = ""
    try:
        if not typed.isdecimal() or len(typed) > 5 or not 2 <= int(typed) <= 10_000:
            raise power.PowerError(
                _("Write how many participants each condition has: a whole number from 2 to 10,000.")
            )
        n, found = int(typed), power.expect(design, stand_in=stand_in)
    except power.PowerError as refused:
        error = str(refused)
    else:
        rows = tuple(
            (
                each.condition,
                percent(each.mean_share),
                percent(each.sd_share),
                percent(each.deal_rate),
                _("%(mean)s ± %(half)s")
                % {"mean": percent(each.mean_share), "half": percent(power.half_width(each, n=n))},
            )
            for each in found
        )
        pairs = tuple(
            (
                _("%(one)s and %(other)s") % {"one": each.one, "other": each.other},
                percent(abs(each.difference)),
                percent(each.smallest),
            )
            for each in power.contrasts(found, n=n)
        )
    page = PowerPage(
        title=version.title,
        slug=slug,
        participants=typed,
        agents=tuple(
            Choice(value=spec.slug, label=spec.title, selected=spec.slug == stand_in)
            for spec in registry.all_specs()
            if spec.kind is not Kind.REFERENCE and not spec.asks_models
        ),
        error=error,
        rows=rows,
        contrasts=pairs,
    )
    return render(request, "studies/power.html", {"page": page}, status=400 if error else 200)
