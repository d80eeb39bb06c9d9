"""The bonus sheet for whoever runs a study: the page, its two files, and marking rows as paid.

For the staff and the study's own researcher; to everybody else it is not there (`building.study_of`). Looking and
downloading change nothing.
"""

from dataclasses import dataclass

from django.contrib import messages
from django.contrib.auth.models import User
from django.http import HttpRequest, HttpResponse
from django.shortcuts import redirect, render
from django.urls import reverse
from django.utils.formats import date_format
from django.utils.translation import gettext as _
from django.utils.translation import ngettext
from django.views.decorators.http import require_GET, require_POST

from markets.engine.money import format_amount
from negotiation_site.studies import bonus, building, conduct
from negotiation_site.studies.bonus import BonusError, Row
from negotiation_site.studies.design import Outcome
from negotiation_site.studies.models import Mode, State


@dataclass(frozen=True)
class Line:
    """A row of the page."""

    public_id: str
    person: str
    outcome: str
    cell: str
    counted: str
    fee: str
    bonus: str
    total: str
    """Empty while it is not known."""
    shown_cents: int | None
    """What settling it confirms; None where there is nothing to settle."""
    state: str
    settled: bool
    warning: str


@dataclass(frozen=True)
class BonusPage:
    """Context `page` of `studies/bonus.html`."""

    slug: str
    title: str
    mode: str
    other_mode: tuple[str, str]
    """Query and words of the other sheet: the pilot's, or the study's."""
    lines: tuple[Line, ...]
    figures: tuple[tuple[str, str], ...]
    can_settle: int
    in_bulk: int
    left_out: str


def mode_of(request: HttpRequest) -> Mode:
    """The study's data, unless the pilot's are asked for."""
    return Mode.PILOT if request.GET.get("mode") == Mode.PILOT else Mode.LIVE


@require_GET
@building.for_researchers
def page(request: HttpRequest, slug: str) -> HttpResponse:
    """The sheet."""
    study, mode = building.study_of(request, slug), mode_of(request)
    sheet = bonus.rows(study, mode=mode)
    pilot = mode is Mode.PILOT
    context = BonusPage(
        slug=slug,
        title=conduct.newest_version(study).title,
        mode=mode.value,
        other_mode=("", _("The study's sheet")) if pilot else ("?mode=pilot", _("The pilot's sheet")),
        lines=tuple(_line(row) for row in sheet),
        figures=_figures(sheet),
        can_settle=sum(row.can_settle for row in sheet),
        in_bulk=sum(bonus.in_bulk(row) for row in sheet),
        left_out=_left_out(sheet),
    )
    return render(request, "studies/bonus.html", {"page": context})


def _line(row: Row) -> Line:
    def money(cents: int | None) -> str:
        return "" if cents is None else format_amount(cents, row.currency)

    side = {"buyer": _("buyer"), "seller": _("seller")}.get(row.role, "")
    return Line(
        public_id=row.public_id,
        person=row.person or _("nobody the platform knows"),
        outcome=outcome_words()[row.outcome] if row.outcome else str(State(row.state).label),
        cell=f"{row.condition}, {side}" if row.condition else "",
        counted=", ".join(map(str, row.counted)),
        fee=money(row.fee_cents),
        bonus=money(row.bonus_cents),
        total=money(row.total_cents),
        shown_cents=row.total_cents if row.can_settle else None,
        state=_("paid on %(day)s") % {"day": date_format(row.settled_at, "SHORT_DATETIME_FORMAT")}
        if row.settled_at
        else _("to be paid")
        if row.total_cents
        else _("nothing to pay")
        if row.total_cents == 0
        else _("not known yet"),
        settled=row.settled,
        warning=_("The log gives %(amount)s now.") % {"amount": money(row.log_says_cents)}
        if row.log_says_cents is not None
        else "",
    )


def outcome_words() -> dict[str, str]:
    """How somebody's part ended, in words for researchers."""
    return {
        Outcome.FINISHED: _("finished"),
        Outcome.SCREENED_OUT: _("did not pass the quiz"),
        Outcome.DECLINED: _("gave no consent"),
        Outcome.NO_PARTNER: _("nobody came"),
        Outcome.PARTNER_LEFT: _("the other side left"),
        Outcome.TIMED_OUT: _("fell silent"),
        Outcome.ENDED_BY_STAFF: _("ended by the staff"),
        Outcome.WITHDREW: _("withdrew"),
    }


def _figures(sheet: list[Row]) -> tuple[tuple[str, str], ...]:
    """What it comes to, by currency; unknown amounts are counted, not added."""
    found: list[tuple[str, str]] = []
    for currency in dict.fromkeys(row.currency for row in sheet):
        known = [(row, row.total_cents) for row in sheet if row.currency == currency and row.total_cents is not None]
        paid = sum(cents for row, cents in known if row.settled)
        owed = sum(cents for row, cents in known if not row.settled)
        found += [(_("Paid"), format_amount(paid, currency)), (_("To be paid"), format_amount(owed, currency))]
    unknown = sum(row.total_cents is None for row in sheet)
    return (*found, (_("Not known yet"), ngettext("%(count)d row", "%(count)d rows", unknown) % {"count": unknown}))


def _left_out(sheet: list[Row]) -> str:
    """Who is owed a bonus and cannot be in the bulk file."""
    count = sum(row.can_settle and (row.bonus_cents or 0) > 0 and not bonus.in_bulk(row) for row in sheet)
    if not count:
        return ""
    return ngettext(
        "%(count)d row with a bonus has no identifier that a platform would know; pay it by hand.",
        "%(count)d rows with a bonus have no identifier that a platform would know; pay them by hand.",
        count,
    ) % {"count": count}


@require_GET
@building.for_researchers
def full(request: HttpRequest, slug: str) -> HttpResponse:
    """Everything as CSV."""
    study, mode = building.study_of(request, slug), mode_of(request)
    return _file(bonus.full_csv(bonus.rows(study, mode=mode)), f"{slug}-{_named(mode)}.csv")


@require_GET
@building.for_researchers
def bulk(request: HttpRequest, slug: str) -> HttpResponse:
    """The platform's bulk format; `?pay=total` adds the show-up fee."""
    study, mode = building.study_of(request, slug), mode_of(request)
    sheet = bonus.rows(study, mode=mode)
    return _file(bonus.bulk_csv(sheet, fee_too=request.GET.get("pay") == "total"), f"{slug}-{_named(mode)}-bulk.csv")


def _named(mode: Mode) -> str:
    return "pilot-bonus" if mode is Mode.PILOT else "bonus"


def _file(text: str, name: str) -> HttpResponse:
    response = HttpResponse(text, content_type="text/csv; charset=utf-8")
    response["Content-Disposition"] = f'attachment; filename="{name}"'
    return response


@require_POST
@building.for_researchers
def settle(request: HttpRequest, slug: str) -> HttpResponse:
    """Mark the chosen rows as paid, at the amounts that were shown."""
    study = building.study_of(request, slug)
    assert isinstance(request.user, User)
    shown = {}
    for chosen in request.POST.getlist("row"):
        public_id, _colon, cents = chosen.partition(":")
        if not cents.removeprefix("-").isdecimal() or len(cents) > 15:
            return HttpResponse(_("A row is named by its participation and its amount in cents."), status=400)
        shown[public_id] = int(cents)
    try:
        count = bonus.settle(study, shown, actor=request.user)
    except BonusError as refused:
        messages.error(request, str(refused))
    else:
        messages.success(
            request,
            ngettext("%(count)d row is marked as paid.", "%(count)d rows are marked as paid.", count)
            % {"count": count},
        )
    query = "?mode=pilot" if request.POST.get("mode") == Mode.PILOT else ""
    return redirect(reverse("study-bonus", args=[slug]) + query)
