"""Pages: a report from a seat, and the staff's list of reports with what can be done. Calls `services` for every change.

Who may: whoever sits in the room reports; the staff answer. For anybody else the addresses do not exist.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import wraps
from typing import Any

from django.contrib import messages
from django.contrib.auth.models import User
from django.core.paginator import Paginator
from django.http import Http404, HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, redirect, render
from django.utils import timezone
from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.cache import never_cache
from django.views.decorators.http import require_GET, require_http_methods, require_POST

from markets import identity, room_page, selectors
from markets.engine.protocol import SELLER, buyer_of
from markets.export_masking import REMOVED
from markets.models import Participant, Room, Seat, SeatKind, Utterance
from markets.presentation import Choice
from negotiation_site.moderation import services
from negotiation_site.moderation.models import HiddenWords, Reason, Report
from negotiation_site.moderation.services import ModerationError

A_PAGE = 20
MOST_LINES = 60


@dataclass(frozen=True)
class ReportPage:
    """The form of a seat."""

    room: str
    seats: tuple[Choice, ...]
    reasons: tuple[Choice, ...]
    note: str
    problem: str


@dataclass(frozen=True)
class Line:
    """Something that the reported seat said."""

    n: int
    words: str
    hidden: bool


@dataclass(frozen=True)
class Row:
    """A report as the staff read it."""

    number: int
    reason: str
    note: str
    when: Any
    by: str
    about: str
    seat: str
    room: str
    room_pk: int
    lines: tuple[Line, ...]
    more_lines: int
    participant: int
    barred_until: Any
    earlier: str
    closed: str
    answer: str


# --- From the table -----------------------------------------------------------------------------------


@require_http_methods(["GET", "POST"])
@never_cache
def report(request: HttpRequest, public_id: str) -> HttpResponse:
    """Say that somebody at the table went too far."""
    seat = selectors.seat_of(public_id=public_id, participant=identity.participant_of(request.session))
    if seat is None:
        raise Http404(_("There is no such room, or you do not sit in it."))
    typed = request.POST if request.method == "POST" else request.GET
    problem = ""
    if request.method == "POST":
        try:
            services.report(
                seat=seat,
                party=typed.get("party", ""),
                reason=typed.get("reason", ""),
                note=typed.get("note", ""),
            )
        except ModerationError as error:
            problem = str(error)
        else:
            messages.success(request, _("Thank you. The staff will look at it; nobody at the table is told who wrote."))
            return redirect("room", public_id=public_id)
    page = ReportPage(
        room=public_id,
        seats=_others(seat, typed.get("party", "")),
        reasons=tuple(
            Choice(value=reason.value, label=str(reason.label), selected=typed.get("reason") == reason.value)
            for reason in Reason
        ),
        note=typed.get("note", "")[: services.MOST_NOTE],
        problem=problem,
    )
    return render(request, "moderation/report.html", {"page": page}, status=400 if problem else 200)


def _others(seat: Seat, chosen: str) -> tuple[Choice, ...]:
    others = [each for each in seat.room.seats.exclude(pk=seat.pk) if each.kind != SeatKind.OPEN]
    buyers = seat.room.seats.exclude(party=SELLER).count()
    return tuple(
        Choice(
            value=each.party,
            label=_seat_name(each.party, alone=buyers == 1),
            selected=each.party == chosen or len(others) == 1,
        )
        for each in sorted(others, key=lambda each: each.pk)
    )


def _seat_name(party: str, *, alone: bool = False) -> str:
    """What a chair is called; `alone` a buyer beside whom there is no other, and who has no letter anywhere."""
    if party == SELLER:
        return _("the seller")
    if alone:
        return _("the buyer")
    return _("buyer %(letter)s") % {"letter": room_page.letter(buyer_of(party))}


# --- The staff's desk -----------------------------------------------------------------------------------


def staff_only(view: Callable[..., HttpResponse]) -> Callable[..., HttpResponse]:
    """The address does not exist for others."""

    @wraps(view)
    def guarded(request: HttpRequest, *args: Any, **kwargs: Any) -> HttpResponse:
        if not (request.user.is_active and request.user.is_staff):
            raise Http404
        return view(request, *args, **kwargs)

    return guarded


@require_GET
@never_cache
@staff_only
def desk(request: HttpRequest) -> HttpResponse:
    """Open reports, or with `closed` those that were answered."""
    closed = "closed" in request.GET
    found = Report.objects.filter(closed_at__isnull=not closed).select_related("room", "reported", "reporter")
    paginator = Paginator(found, A_PAGE)
    shown = paginator.get_page(request.GET.get("page"))
    text = (
        ngettext("%(count)d answered report.", "%(count)d answered reports.", paginator.count)
        if closed
        else ngettext("%(count)d report to look at.", "%(count)d reports to look at.", paginator.count)
    ) % {"count": paginator.count}
    context = {
        "rows": [_row(report) for report in shown],
        "count_text": text,
        "closed": closed,
        "shown": shown,
        "days": [
            Choice(
                value=str(days), label=ngettext("%(days)d day", "%(days)d days", days) % {"days": days}, selected=False
            )
            for days in services.DAYS
        ],
    }
    return render(request, "moderation/desk.html", context)


def _row(report: Report) -> Row:
    said = Utterance.objects.filter(room=report.room, party=report.party).exclude(talk="").order_by("n")
    hidden = dict(HiddenWords.objects.filter(room=report.room).values_list("n", "talk"))
    lines = [
        Line(n=each.n, words=hidden.get(each.n, each.talk), hidden=each.talk == REMOVED) for each in said[:MOST_LINES]
    ]
    about = report.reported
    earlier = Report.objects.filter(reported=about).exclude(pk=report.pk).count() if about is not None else 0
    now = timezone.now()
    return Row(
        number=report.pk,
        reason=report.get_reason_display(),
        note=report.note,
        when=report.created_at,
        by=report.reporter.pseudonym if report.reporter else _("somebody who was erased"),
        about=about.pseudonym if about else _("an agent, or somebody who was erased"),
        seat=_seat_name(report.party),
        room=report.room.public_id,
        room_pk=report.room_id,
        lines=tuple(lines),
        more_lines=max(0, said.count() - len(lines)),
        participant=about.pk if about else 0,
        barred_until=about.barred_until if about and about.barred_until and about.barred_until > now else None,
        earlier=ngettext("%(count)d earlier report of this person", "%(count)d earlier reports of this person", earlier)
        % {"count": earlier}
        if earlier
        else "",
        closed=report.closed_by.get_username() if report.closed_by else "",
        answer=report.answer,
    )


@require_POST
@staff_only
def act(request: HttpRequest) -> HttpResponse:
    """One act of the staff: hide, put_back, bar or close; back to the desk with a sentence."""
    try:
        messages.success(request, _done(request))
    except ModerationError as error:
        messages.error(request, str(error))
    return redirect("moderation")


def _done(request: HttpRequest) -> str:
    typed = request.POST
    user = request.user
    assert isinstance(user, User)
    match typed.get("act", ""):
        case "hide":
            services.hide(room=_room(typed), n=_number(typed, "n"), by=user)
            return _("The words are hidden. Pages that are open show it once they are loaded again.")
        case "put_back":
            services.put_back(room=_room(typed), n=_number(typed, "n"))
            return _("The words are shown again.")
        case "bar":
            somebody = get_object_or_404(Participant, pk=_number(typed, "participant"))
            until = services.bar(participant=somebody, days=_number(typed, "days"))
            if typed.get("days") == "0":
                return _("They may meet people again.")
            return _("They meet nobody until %(day)s; games against agents stay open to them.") % {
                "day": date_format(until)
            }
        case "close":
            services.close(number=_number(typed, "report"), by=user, answer=typed.get("answer", ""))
            return _("The report is put away.")
    raise ModerationError(_("There is no such act."))


def _number(typed: Any, name: str) -> int:
    word = typed.get(name, "")
    if not word.isascii() or not word.isdecimal() or len(word) > 18:
        raise ModerationError(_("That was not sent by this page; load it again."))
    return int(word)


def _room(typed: Any) -> Room:
    found = Room.objects.filter(pk=_number(typed, "room")).first()
    if found is None:
        raise ModerationError(_("This room is gone."))
    return found
