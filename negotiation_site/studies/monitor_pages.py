"""The monitor: a study while it runs, one participant of it, and what the staff may do.

For the staff and the study's own researcher; to everybody else it is not there (`building.study_of`). The parts that
change are asked for again every few seconds; what is typed into is outside of them. An act is one call into `conduct`
or `authoring`, which note it with who did it; a refusal is a sentence on the page.
"""

from dataclasses import dataclass
from datetime import datetime

from django.contrib import messages
from django.contrib.auth.models import User
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_GET, require_POST

from markets.engine.money import format_amount
from negotiation_site.studies import authoring, bonus_pages, building, conduct, events, monitor
from negotiation_site.studies.authoring import AuthoringError
from negotiation_site.studies.conduct import StudyError
from negotiation_site.studies.models import Mode, Participation, State, Study, StudyStatus
from negotiation_site.studies.monitor import Act, Money, Snapshot, Somebody, Table

EVERY_S = 4


@dataclass(frozen=True)
class PersonLine:
    """A participant in the table."""

    public_id: str
    url: str
    act_url: str
    name: str
    cell: str
    where: str
    since: str
    heard: str
    silent: bool
    can_replace: bool
    can_extend: bool
    signs: str


@dataclass(frozen=True)
class TableLine:
    """A room in play."""

    who: str
    condition: str
    round: str
    turn: str
    left: str
    events: int


@dataclass(frozen=True)
class ActLine:
    """Something that was noted."""

    when: str
    what: str
    detail: str
    actor: str
    who: str


@dataclass(frozen=True)
class CellLine:
    """Balance of a cell."""

    condition: str
    role: str
    role_text: str
    inside: int
    seated: int
    finished: int


@dataclass(frozen=True)
class Live:
    """What is asked for again: context `live` of `studies/_monitor_live.html`."""

    url: str
    every_s: int
    figures: tuple[tuple[str, str], ...]
    states: tuple[tuple[str, int], ...]
    people: tuple[PersonLine, ...]
    tables: tuple[TableLine, ...]
    cells: tuple[CellLine, ...]
    acts: tuple[ActLine, ...]


@dataclass(frozen=True)
class MonitorPage:
    """Context `page` of `studies/monitor.html`."""

    slug: str
    title: str
    mode: str
    query: str
    other_mode: tuple[str, str]
    status_text: str
    status: str
    acts: tuple[tuple[str, str], ...]
    """What its status may become, and words."""


@dataclass(frozen=True)
class PersonPage:
    """Context `page` of `studies/monitor_person.html`."""

    slug: str
    title: str
    public_id: str
    name: str
    facts: tuple[tuple[str, str], ...]
    timeline: tuple[ActLine, ...]
    over: bool
    at_table: bool


# --- Looking ------------------------------------------------------------------------------------------


@require_GET
@building.for_researchers
def page(request: HttpRequest, slug: str) -> HttpResponse:
    """The monitor."""
    study = building.study_of(request, slug)
    mode = _mode(request, study)
    context = MonitorPage(
        slug=slug,
        title=conduct.newest_version(study).title,
        mode=mode.value,
        query=f"?mode={mode.value}",
        other_mode=("?mode=live", _("The study's people"))
        if mode is Mode.PILOT
        else ("?mode=pilot", _("The pilot's people")),
        status_text=str(StudyStatus(study.status).label),
        status=study.status,
        acts=_status_acts(study),
    )
    return render(request, "studies/monitor.html", {"page": context, "live": _live(study, mode)})


@require_GET
@building.for_researchers
def live(request: HttpRequest, slug: str) -> HttpResponse:
    """The parts that change."""
    study = building.study_of(request, slug)
    return render(request, "studies/_monitor_live.html", {"live": _live(study, _mode(request, study))})


def _mode(request: HttpRequest, study: Study) -> Mode:
    asked = request.GET.get("mode")
    return Mode(asked) if asked in (Mode.LIVE, Mode.PILOT) else study.mode


def _status_acts(study: Study) -> tuple[tuple[str, str], ...]:
    words = {
        StudyStatus.DRAFT: _("Back to a draft"),
        StudyStatus.PILOT: _("Run a pilot"),
        StudyStatus.OPEN: _("Let people in"),
        StudyStatus.PAUSED: _("Pause"),
        StudyStatus.CLOSED: _("Close"),
    }
    return tuple((status, words[StudyStatus(status)]) for status in authoring.may_become(study))


def _live(study: Study, mode: Mode) -> Live:
    now = timezone.now()
    seen = monitor.snapshot(study, mode=mode, now=now)
    names = {one.public_id: _name(one.person, one.public_id) for one in seen.people}
    return Live(
        url=reverse("study-monitor-live", args=[study.slug]) + f"?mode={mode.value}",
        every_s=EVERY_S,
        figures=_figures(seen),
        states=tuple((str(State(state).label), count) for state, count in seen.states.items()),
        people=tuple(_person_line(study, one, now) for one in seen.people),
        tables=tuple(_table_line(table, names, now) for table in seen.tables),
        cells=tuple(
            CellLine(cell.condition, cell.role, _role(cell.role), cell.inside, cell.seated, cell.finished)
            for cell in seen.cells
        ),
        acts=tuple(_act_line(act, names) for act in seen.acts),
    )


def _figures(seen: Snapshot) -> tuple[tuple[str, str], ...]:
    money = [figure for each in seen.money for figure in _money(each)]
    return (
        (_("Inside now"), str(seen.inside)),
        (_("Silent"), str(seen.silent)),
        (_("Tables in play"), str(len(seen.tables))),
        *money,
    )


def _money(each: Money) -> tuple[tuple[str, str], ...]:
    return (
        (_("Paid"), format_amount(each.paid_cents, each.currency)),
        (_("To be paid"), format_amount(each.owed_cents, each.currency)),
        (
            _("Not known yet"),
            ngettext("%(count)d person", "%(count)d people", each.unknown) % {"count": each.unknown},
        ),
    )


def _name(person: str, public_id: str) -> str:
    return person or public_id


def _role(role: str) -> str:
    return {"buyer": _("buyer"), "seller": _("seller")}.get(role, "")


def _ago(moment: datetime, now: datetime) -> str:
    return _span(int((now - moment).total_seconds()))


def _span(seconds: int) -> str:
    """A length of time as one looks at it while it runs: whole seconds, then minutes, then hours."""
    if seconds < 120:
        count = max(0, seconds)
        return ngettext("%(count)d second", "%(count)d seconds", count) % {"count": count}
    if seconds < 7_200:
        return ngettext("%(count)d minute", "%(count)d minutes", seconds // 60) % {"count": seconds // 60}
    return ngettext("%(count)d hour", "%(count)d hours", seconds // 3_600) % {"count": seconds // 3_600}


def _where(one: Somebody) -> str:
    if one.over and one.outcome:
        return bonus_pages.outcome_words()[one.outcome]
    if one.state == State.PLAYING:
        number = {"number": one.round if one.at_table else one.round + 1}
        return _("round %(number)d") % number if one.at_table else _("before round %(number)d") % number
    return str(State(one.state).label)


def _person_line(study: Study, one: Somebody, now: datetime) -> PersonLine:
    signs = [
        ngettext("%(count)d paste", "%(count)d pastes", one.pastes) % {"count": one.pastes} if one.pastes else "",
        ngettext("looked away %(count)d time", "looked away %(count)d times", one.looked_away)
        % {"count": one.looked_away}
        if one.looked_away
        else "",
        _("owes a move") if one.owes_move else "",
        _("has more time until %(time)s") % {"time": date_format(timezone.localtime(one.extended_until), "TIME_FORMAT")}
        if one.extended_until
        else "",
    ]
    return PersonLine(
        public_id=one.public_id,
        url=reverse("study-monitor-person", args=[study.slug, one.public_id]),
        act_url=reverse("study-monitor-act", args=[study.slug, one.public_id]),
        name=_name(one.person, one.public_id),
        cell=f"{one.condition}, {_role(one.role)}" if one.condition else "",
        where=_where(one),
        since=_ago(one.since, now),
        heard="" if one.over else _ago(one.last_seen_at, now),
        silent=one.silent,
        can_replace=one.silent and one.at_table,
        can_extend=one.silent,
        signs=", ".join(filter(None, signs)),
    )


def _table_line(table: Table, names: dict[str, str], now: datetime) -> TableLine:
    left = "" if table.deadline_at is None else _ago(now, table.deadline_at)
    return TableLine(
        who=" · ".join([*(names.get(each, each) for each in table.people), *([table.agent] if table.agent else [])]),
        condition=table.condition,
        round=_("practice") if table.number == 0 else str(table.number),
        turn=names.get(table.turn_of, table.turn_of) if table.turn_of else table.agent,
        left=left,
        events=table.events,
    )


def _act_line(act: Act, names: dict[str, str]) -> ActLine:
    return ActLine(
        when=date_format(timezone.localtime(act.at), "SHORT_DATETIME_FORMAT"),
        what=str(events.KINDS[act.kind]),
        detail=act.detail,
        actor=act.actor,
        who=names.get(act.public_id, act.public_id),
    )


# --- One participant -----------------------------------------------------------------------------------


def _participant(request: HttpRequest, slug: str, public_id: str) -> Participation:
    """A participant of the researcher's own study; an author who looks around is none."""
    study = building.study_of(request, slug)
    found = (
        Participation.objects.filter(study=study, public_id=public_id)
        .exclude(mode=Mode.PREVIEW)
        .select_related("study", "version")
        .first()
    )
    if found is None:
        raise Http404(_("This study has no such participant."))
    return found


@require_GET
@building.for_researchers
def person(request: HttpRequest, slug: str, public_id: str) -> HttpResponse:
    """One participant: where they are, what happened, what can be done."""
    found = _participant(request, slug, public_id)
    seen = monitor.snapshot(found.study, mode=found.mode, now=timezone.now())
    one = next(each for each in seen.people if each.public_id == public_id)
    now = timezone.now()
    facts = (
        (_("Where"), _where(one)),
        (_("Condition"), f"{one.condition}, {_role(one.role)}" if one.condition else _("none yet")),
        (_("Came in"), date_format(timezone.localtime(found.entered_at), "SHORT_DATETIME_FORMAT")),
        (_("Last heard of"), _("%(time)s ago") % {"time": _ago(one.last_seen_at, now)}),
        (_("Version of the study"), str(found.version.number)),
    )
    context = PersonPage(
        slug=slug,
        title=found.version.title,
        public_id=public_id,
        name=_name(one.person, public_id),
        facts=facts,
        timeline=tuple(_act_line(act, {public_id: ""}) for act in monitor.timeline(found)),
        over=found.ended,
        at_table=one.at_table,
    )
    return render(request, "studies/monitor_person.html", {"page": context})


# --- Acting -------------------------------------------------------------------------------------------


@require_POST
@building.for_researchers
def act(request: HttpRequest, slug: str, public_id: str) -> HttpResponse:
    """Message, more time, an agent in their place, or the end: `act` says which."""
    found = _participant(request, slug, public_id)
    wanted = request.POST.get("act", "")
    assert isinstance(request.user, User)
    try:
        done = _do(wanted, request, found, request.user)
    except StudyError as refused:
        messages.error(request, refused.sentence)
    else:
        if not done:
            return HttpResponse(_("Choose what to do: message, extend, replace or end."), status=400)
        messages.success(request, done)
    if request.POST.get("back") == "monitor":
        return redirect(reverse("study-monitor", args=[slug]) + f"?mode={found.mode}")
    return redirect("study-monitor-person", slug=slug, public_id=public_id)


def _do(wanted: str, request: HttpRequest, found: Participation, actor: User) -> str:
    """Do it; what was done, or nothing where that is no act."""
    match wanted:
        case "message":
            conduct.say(found.study, request.POST.get("text", ""), actor=actor, participation=found)
            return _("The message is on their page.")
        case "extend":
            typed = request.POST.get("minutes", "").strip()
            minutes = int(typed) if typed.isdecimal() and len(typed) < 5 else 0
            conduct.extend(found, minutes=minutes, actor=actor)
            return ngettext("They have %(count)d more minute.", "They have %(count)d more minutes.", minutes) % {
                "count": minutes
            }
        case "replace":
            conduct.replace(found, actor=actor)
            return _("An agent plays on in their place.")
        case "end":
            conduct.end(found, actor=actor)
            return _("Their part is over, with pay for what they played.")
    return ""


@require_POST
@building.for_researchers
def say(request: HttpRequest, slug: str) -> HttpResponse:
    """A message to everybody who is in the study."""
    study = building.study_of(request, slug)
    assert isinstance(request.user, User)
    try:
        conduct.say(study, request.POST.get("text", ""), actor=request.user)
    except StudyError as refused:
        messages.error(request, refused.sentence)
    else:
        messages.success(request, _("The message is on everybody's page."))
    return redirect("study-monitor", slug=slug)


@require_POST
@building.for_researchers
def set_status(request: HttpRequest, slug: str) -> HttpResponse:
    """Pause, close, or let people in again."""
    study = building.study_of(request, slug)
    wanted = request.POST.get("status", "")
    if wanted not in StudyStatus.values:
        return HttpResponse(_("A study can be a draft, a pilot, open, paused or closed."), status=400)
    assert isinstance(request.user, User)
    try:
        authoring.set_status(study, StudyStatus(wanted), actor=request.user)
    except AuthoringError as refused:
        messages.error(request, str(refused))
    return redirect("study-monitor", slug=slug)
