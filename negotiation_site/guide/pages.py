"""The guide's page: one kind of market and one seat at a time, from the columnar copy that the leaderboards have."""

from dataclasses import dataclass, replace

from csp.decorators import csp_update
from django.http import HttpRequest, HttpResponse
from django.shortcuts import render
from django.urls import reverse
from django.utils.translation import gettext as _
from django.views.decorators.http import require_GET

from markets import market_page
from markets.engine.protocol import Role
from markets.engine.scenarios import Family
from markets.models import Market
from negotiation_site import dashboards
from negotiation_site.dashboards import Chart
from negotiation_site.guide import findings
from negotiation_site.guide.findings import OFFERS, OPENING, PATIENCE, STEP, Band, Findings, Habit
from negotiation_site.leaderboard import pages as leaderboard
from negotiation_site.leaderboard.facts import Facts
from negotiation_site.leaderboard.pages import Filters
from negotiation_site.leaderboard.words import count, decimal, estimated, percent, span

FILTERS = ("family", "role", "market")


@dataclass(frozen=True)
class GuidePage:
    """Context `page` of `guide/guide.html`."""

    heading: str
    counted_text: str
    charts: tuple[Chart, ...]
    lines: tuple[str, ...]
    """What stands out, a sentence each."""
    too_few_text: str = ""


@require_GET
@csp_update({"style-src": ["'unsafe-inline'"]})  # Plotly writes style attributes.
def guide(request: HttpRequest) -> HttpResponse:
    """What earned how much on one seat of one kind of market."""
    asked, problems = leaderboard.read_filters(request.GET, only=FILTERS)
    filters = _settled(asked)
    context = {
        "page": leaderboard.worked_out(("guide", filters), lambda held: _page(held, filters)),
        "filters": leaderboard.form(filters, only=FILTERS),
        "problems": problems,
        "filtered": asked != Filters(),
        "play_url": reverse("market", args=[filters.market]) if filters.market else reverse("market-list"),
    }
    return render(request, "guide/guide.html", context)


def _settled(asked: Filters) -> Filters:
    """One family and one seat: a market's own family, else that of two sides; the buyer's seat unless said."""
    found = Market.objects.filter(slug=asked.market).order_by("-pk").first() if asked.market else None
    family = found.family if found is not None else asked.family or Family.BILATERAL.value
    return replace(asked, family=family, role=asked.role or Role.BUYER.value)


def _page(held: Facts, filters: Filters) -> GuidePage:
    rows = leaderboard.matching(held, filters) & findings.open_rows(held, findings.closed_markets())
    found = findings.findings(held, rows, two_sided=filters.family == Family.BILATERAL)
    role = Role(filters.role)
    charts = tuple(_chart(habit, role) for habit in found.habits)
    return GuidePage(
        heading=_("As %(seat)s: %(family)s")
        % {
            "seat": _("the seller") if role is Role.SELLER else _("a buyer"),
            "family": market_page.family_text(Family(filters.family)).lower(),
        },
        counted_text=_(
            "From %(seats)s seats in %(games)s finished games in which something could be gained, %(people)s of them "
            "people's: simulations, and games that everybody in them gave as open data."
        )
        % {
            "seats": count(found.seats),
            "games": count(found.games),
            "people": count(found.people) if found.people else _("none"),
        },
        charts=charts,
        lines=tuple(_lines(found, role)),
        too_few_text=""
        if charts
        else _("There are too few games to say anything: %(seats)s seats, where each figure needs %(least)d.")
        % {"seats": count(found.seats), "least": findings.LEAST},
    )


def _lines(found: Findings, role: Role) -> list[str]:
    lines = []
    for habit in found.habits:
        name = _titles(role)[habit.name][0]
        if habit.apart is None:
            lines.append(_("%(habit)s: the ends are too close to call; their intervals overlap.") % {"habit": name})
            continue
        better, worse = habit.apart
        lines.append(
            _("%(habit)s: %(more)s kept %(better)s at a deal rate of %(deals)s, %(less)s %(worse)s at %(others)s.")
            % {
                "habit": name,
                "more": _band_text(habit, better, role),
                "better": estimated(better.share),
                "deals": percent(better.deals.value),
                "less": _band_text(habit, worse, role),
                "worse": estimated(worse.share),
                "others": percent(worse.deals.value),
            }
        )
    if found.pull.value is not None:
        lines.append(
            _(
                "First offers as anchors: where both sides' values were the same, a first offer higher by 10 points of "
                "the list price went with a deal price higher by %(points)s points (95\u00a0%% interval %(interval)s)."
            )
            % {"points": decimal(found.pull.value * 10, digits=1), "interval": span(found.pull, scale=10)}
        )
    return lines


def _titles(role: Role) -> dict[str, tuple[str, str, str]]:
    """Per habit its name, its question, and what its bands count."""
    selling = role is Role.SELLER
    return {
        OPENING: (
            _("Opening offer"),
            _("How boldly to open?"),
            _("First ask out of the own cost: 1 asks exactly the cost, more is bolder.")
            if selling
            else _("First bid out of the own value: 1 offers all of it, less is bolder."),
        ),
        OFFERS: (_("Number of offers"), _("How many offers to make?"), _("Binding offers of the seat in a game.")),
        STEP: (
            _("Size of a concession"),
            _("How much to give at a time?"),
            _("Mean step towards the other side, out of the way from the first offer to the own limit."),
        ),
        PATIENCE: (
            _("Patience"),
            _("How long to hold out?"),
            _("Part of the turns that was used before the deal; games without a deal are not in it."),
        ),
    }


def _band_text(habit: Habit, band: Band, role: Role) -> str:
    if habit.name == OFFERS:
        text = f"{band.low:.0f}" if band.low == band.high else _("%(low).0f to %(high).0f") % vars(band)
        return _("%(number)s offers") % {"number": text} if text != "1" else _("1 offer")
    if habit.name == OPENING:
        low, high = f"{band.low:.2f}", f"{band.high:.2f}"
        return (
            _("asks of %(low)s to %(high)s\u00a0× the cost") % {"low": low, "high": high}
            if role is Role.SELLER
            else _("bids of %(low)s to %(high)s\u00a0× the value") % {"low": low, "high": high}
        )
    ends = {"low": percent(band.low, digits=0), "high": percent(band.high, digits=0)}
    return (
        _("steps of %(low)s to %(high)s") % ends if habit.name == STEP else _("%(low)s to %(high)s of the turns") % ends
    )


def _chart(habit: Habit, role: Role) -> Chart:
    """Mean share of every band with its interval; the table has the deal rates and the numbers of seats."""
    name, question, what = _titles(role)[habit.name]
    drawn = [band for band in habit.bands if band.share.value is not None]
    texts = [_band_text(habit, band, role) for band in drawn]
    colour, symbol = (dashboards.SELLER, "square") if role is Role.SELLER else (dashboards.BUYER, "circle")
    return dashboards.plot(
        f"guide-{habit.name}",
        title=question,
        caption=_("%(habit)s and share of the surplus") % {"habit": name},
        note=_(
            "%(what)s Further right is a larger share of what there was to gain, no deal = 0; bars are 95 %% intervals. From "
            "%(seats)s seats, cut into thirds or counts; a group of fewer than %(least)d is not shown."
        )
        % {"what": what, "seats": count(sum(band.seats for band in habit.bands)), "least": findings.LEAST},
        traces=[
            dashboards.points(
                x=[band.share.value for band in drawn],
                y=texts,
                name=_("mean share"),
                colour=colour,
                symbol=symbol,
                x_intervals=[band.share for band in drawn],
                hovertemplate="%{y}: %{x:.1%}<extra></extra>",
            )
        ],
        columns=(name.lower(), _("share, no deal = 0"), _("deal rate"), _("seats")),
        rows=[
            (
                _band_text(habit, band, role),
                estimated(band.share) or _("too few"),
                estimated(band.deals) or _("too few"),
                count(band.seats),
            )
            for band in habit.bands
        ],
        x=dashboards.share_axis(_("share of the surplus"), rangemode="tozero"),
        y={"type": "category", "autorange": "reversed"},
        height=110 + 48 * len(drawn),
    )
