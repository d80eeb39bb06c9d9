"""The plots of a board: what is asked, drawn from `tables.Board`, each with its table.

Every title is the question that the plot answers; every note says what is compared and out of how
much. Plots without anything to show are left out.
"""

from collections.abc import Sequence
from typing import Any

from django.utils.translation import gettext as _
from django.utils.translation import ngettext

from markets.engine.money import format_amount
from negotiation_site import dashboards
from negotiation_site.dashboards import Chart
from negotiation_site.leaderboard.facts import BUYER, SELLER
from negotiation_site.leaderboard.tables import PROVISIONAL, Board, Line
from negotiation_site.leaderboard.words import Name, count, decimal, decimals, estimated, percent

FEW = 6
"""Lines that can be told apart in one plot."""
LEAST_AT_A_STEP = 5
"""Games under which a point of a concession curve is not drawn."""
ROLES = ((SELLER, dashboards.SELLER, "square"), (BUYER, dashboards.BUYER, "circle"))


def of_board(board: Board, names: Sequence[Name], *, currency: str) -> tuple[Chart, ...]:
    """All plots of a board that have something to show."""
    drawn = (
        equal_terms(board, names),
        share_and_deals(board, names),
        meetings(board, names),
        tiers(board, names, currency=currency),
        openings(board, names),
        concessions(board, names),
        exploration(board, names),
    )
    return tuple(chart for chart in drawn if chart is not None)


def role_text(role: int) -> str:
    """A side of the table."""
    return _("as seller") if role == SELLER else _("as buyer")


def equal_terms(board: Board, names: Sequence[Name]) -> Chart | None:
    """The headline: shares on equal terms with intervals."""
    lines = [line for line in board.lines if line.equal_terms.value is not None]
    if len(lines) < 2:
        return None
    labels = [names[line.agent].title for line in lines]
    known = [line for line in lines if not line.provisional]
    traces = [
        dashboards.points(
            x=[line.equal_terms.value for line in group],
            y=[names[line.agent].title for line in group],
            name=name,
            colour=colour,
            symbol=symbol,
            x_intervals=[line.equal_terms for line in group],
            hovertemplate="%{y}: %{x:.1%}<extra></extra>",
        )
        for group, name, colour, symbol in (
            (known, _("share on equal terms"), dashboards.BUYER, "circle"),
            ([line for line in lines if line.provisional], _("provisional"), dashboards.REFERENCE, "circle-open"),
        )
        if group
    ]
    return dashboards.plot(
        "board-share",
        title=_("Who keeps most of what there is to share?"),
        caption=_("Surplus share on equal terms, with its interval"),
        note=ngettext(
            "Mean share of the surplus, no deal counted as 0, over %(tables)s table that several agents filled: the same "
            "scenario, the same seat, the same others. Bars are 95 %% intervals over scenarios.",
            "Mean share of the surplus, no deal counted as 0, over %(tables)s tables that several agents filled: the "
            "same scenario, the same seat, the same others. Bars are 95 %% intervals over scenarios.",
            board.tables,
        )
        % {"tables": count(board.tables)},
        traces=traces,
        columns=(_("agent"), _("share with its interval"), _("tables")),
        rows=[
            (label, estimated(line.equal_terms), count(line.tables)) for label, line in zip(labels, lines, strict=True)
        ],
        x=dashboards.share_axis(_("share of the surplus")),
        y={"categoryorder": "array", "categoryarray": labels[::-1], "ticklen": 0},
        height=max(260, 30 * len(lines) + 120),
    )


def share_and_deals(board: Board, names: Sequence[Name]) -> Chart | None:
    """What a deal is worth against how often there is one."""
    lines = [
        line for line in board.lines if line.share.value is not None and line.deal_rate_with_gains.value is not None
    ]
    if len(lines) < 2:
        return None
    places = _places(board)
    return dashboards.plot(
        "board-deals",
        title=_("Do those who keep more close fewer deals?"),
        caption=_("Deal rate and share of every agent"),
        note=_(
            "All games of each agent in which something could be gained, whoever sat opposite. Numbers are places on "
            "the board; letters have none."
        ),
        traces=[
            dashboards.points(
                x=[line.deal_rate_with_gains.value for line in lines],
                y=[line.share.value for line in lines],
                name="",
                colour=dashboards.BUYER,
                x_intervals=[line.deal_rate_with_gains for line in lines],
                y_intervals=[line.share for line in lines],
                text=[places[line.agent] for line in lines],
                hovertext=[names[line.agent].title for line in lines],
                mode="markers+text",
                textposition="top center",
                hovertemplate="%{hovertext}: %{y:.1%}<extra></extra>",
                cliponaxis=False,
            )
        ],
        columns=(_("agent"), _("deals where gains exist"), _("share, no deal = 0"), _("games")),
        rows=[
            (
                _numbered(board, line, names),
                estimated(line.deal_rate_with_gains),
                estimated(line.share),
                count(line.games),
            )
            for line in lines
        ],
        x=dashboards.share_axis(_("deals where trade can gain")),
        y=dashboards.share_axis(_("share of the surplus")),
    )


def meetings(board: Board, names: Sequence[Name]) -> Chart | None:
    """Head to head: every seller against every buyer."""
    if len(board.meetings) < 2:
        return None
    sellers = _in_order(board, {meeting.seller for meeting in board.meetings})
    buyers = _in_order(board, {meeting.buyer for meeting in board.meetings})
    by_pair = {(meeting.seller, meeting.buyer): meeting for meeting in board.meetings}
    z = [[_value(by_pair.get((seller, buyer))) for buyer in buyers] for seller in sellers]
    return dashboards.plot(
        "board-meetings",
        title=_("Who gets how much from whom?"),
        caption=_("Seller's share of the surplus, sellers down, buyers across"),
        note=_("Over the %(count)s scenarios that all of these pairs played.") % {"count": count(board.meetings_paired)}
        if board.meetings_paired
        else _("Each pair over the scenarios it played; they are not the same for all, so read rows with care."),
        traces=[
            dashboards.heat(
                x=[names[buyer].title for buyer in buyers],
                y=[names[seller].title for seller in sellers],
                z=z,
                text=[["" if number is None else f"{number * 100:.0f}" for number in row] for row in z],
            )
            | {"hovertemplate": _("%{y} sells to %{x}: %{z:.1%}") + "<extra></extra>"}
        ],
        columns=(_("seller"), _("buyer"), _("seller's share"), _("deals"), _("games")),
        rows=[
            (
                names[meeting.seller].title,
                names[meeting.buyer].title,
                estimated(meeting.seller_share),
                percent(meeting.deal_rate),
                count(meeting.games),
            )
            for meeting in sorted(
                board.meetings, key=lambda each: (sellers.index(each.seller), buyers.index(each.buyer))
            )
        ],
        x=dashboards.axis(_("buyer"), tickangle=-40, side="bottom", showgrid=False),
        y=dashboards.axis(_("seller, share in percent"), autorange="reversed", showgrid=False),
        height=max(320, 34 * len(sellers) + 170),
    )


def tiers(board: Board, names: Sequence[Name], *, currency: str) -> Chart | None:
    """Share by quintile of the own value."""
    lines = [line for line in _ranked(board) if line.tier_spread is not None]
    if not lines:
        return None
    labels = tier_labels(board.tier_edges, currency)
    return dashboards.plot(
        "board-tiers",
        title=_("Do dear things go better than cheap ones?"),
        caption=_("Share of the surplus by fifth of the own value"),
        note=_(
            "Fifths of all seats by their own private value, the seller's cost or the buyer's value. Spread is the "
            "best fifth less the worst. The first %(few)d agents are drawn; the table has all."
        )
        % {"few": FEW},
        traces=[
            dashboards.line(
                x=labels,
                y=[tier.value for tier in line.tier_share],
                name=names[line.agent].title,
                series=place,
                intervals=line.tier_share,
            )
            for place, line in enumerate(lines[:FEW])
        ],
        columns=(_("agent"), *labels, _("spread"), _("deal rate, cheapest to dearest")),
        rows=[
            (
                names[line.agent].title,
                *(percent(tier.value) for tier in line.tier_share),
                percent(line.tier_spread),
                ", ".join(percent(tier.value, digits=0) or "–" for tier in line.tier_deals),
            )
            for line in lines
        ],
        x=dashboards.axis(_("own value, in fifths")),
        y=dashboards.share_axis(_("share of the surplus")),
    )


def tier_labels(edges: Sequence[float], currency: str) -> list[str]:
    """Names of the tiers, with their limits where these are amounts of one kind."""
    if not edges or not currency:
        return [_("cheapest"), _("2nd"), _("3rd"), _("4th"), _("dearest")]
    money = [format_amount(round(edge), currency).removesuffix(".00") for edge in edges]
    between = [_("to %(high)s") % {"high": high} for high in money]
    return [*between, _("above %(low)s") % {"low": money[-1]}]


def openings(board: Board, names: Sequence[Name]) -> Chart | None:
    """First offers against outcomes."""
    traces, rows, places = [], [], _places(board)
    for role, colour, symbol in ROLES:
        lines = [line for line in board.lines if role in line.opening and role in line.role_share]
        if not lines:
            continue
        traces.append(
            dashboards.points(
                x=[line.opening[role].value for line in lines],
                y=[line.role_share[role].value for line in lines],
                name=role_text(role),
                colour=colour,
                symbol=symbol,
                x_intervals=[line.opening[role] for line in lines],
                y_intervals=[line.role_share[role] for line in lines],
                text=[places[line.agent] for line in lines],
                hovertext=[names[line.agent].title for line in lines],
                mode="markers+text",
                textposition="top center",
                hovertemplate="%{hovertext}: %{x:.2f}, %{y:.1%}<extra></extra>",
                cliponaxis=False,
            )
        )
        rows += [
            (
                _numbered(board, line, names),
                role_text(role),
                decimals(line.opening[role]),
                estimated(line.role_share[role]),
                decimals(line.patience),
                decimals(line.distinct),
                decimal(line.slope),
            )
            for line in lines
        ]
    if not rows:
        return None
    return dashboards.plot(
        "board-openings",
        title=_("Does a bold opening pay?"),
        caption=_("First offer against share of the surplus"),
        note=_(
            "A seller's first ask out of its cost, a buyer's first bid out of its value: 1 is the own limit, and the "
            "further from it the bolder. The slope says how far deal prices follow the other side's value: 0 is one "
            "price for all, 1 follows it fully. Numbers are places on the board; letters have none."
        ),
        traces=traces,
        columns=(
            _("agent"),
            _("seat"),
            _("first offer / own value"),
            _("share, no deal = 0"),
            _("turns used before a deal"),
            _("different prices a game"),
            _("slope of price on other's value"),
        ),
        rows=rows,
        x=dashboards.axis(_("first offer / own value")),
        y=dashboards.share_axis(_("share of the surplus")),
    )


def concessions(board: Board, names: Sequence[Name]) -> Chart | None:
    """How each agent gives way from offer to offer."""
    lines = [line for line in _ranked(board) if line.concession.value is not None]
    if not lines:
        return None
    numbers = range(1, max(steps(line) for line in lines) + 1)
    return dashboards.plot(
        "board-concessions",
        title=_("Who gives way, and when?"),
        caption=_("Part of the way from the first offer to the own limit, given up by each offer"),
        note=_(
            "0 is the first offer, 100 %% the own limit. A point is the mean over the games that got so far, at least "
            "%(least)d; those that ended earlier are not in it. The first %(few)d agents are drawn."
        )
        % {"least": LEAST_AT_A_STEP, "few": FEW},
        traces=[
            dashboards.line(
                x=list(range(1, steps(line) + 1)),
                y=list(line.path[: steps(line)]),
                name=names[line.agent].title,
                series=place,
            )
            for place, line in enumerate(lines[:FEW])
        ],
        columns=(_("agent"), _("mean step"), *(_("offer %(number)d") % {"number": step} for step in numbers)),
        rows=[
            (
                names[line.agent].title,
                estimated(line.concession),
                *(percent(line.path[step - 1], digits=0) if step <= steps(line) else "" for step in numbers),
            )
            for line in lines
        ],
        x=dashboards.axis(_("number of the own offer"), dtick=1),
        y=dashboards.share_axis(_("part of the way given up")),
    )


def exploration(board: Board, names: Sequence[Name]) -> Chart | None:
    """Whether sellers with several buyers look around or chase the highest bid."""
    lines = [line for line in board.lines if line.coverage.value is not None and line.fixation.value is not None]
    if not lines:
        return None
    places = _places(board)
    return dashboards.plot(
        "board-exploration",
        title=_("Who looks around, and who chases the highest bid?"),
        caption=_("Exploration and fixation of sellers with several buyers"),
        note=_(
            "Coverage: buyers written to up to the first sale, out of all. Fixation: messages after the first that "
            "went to whoever was bidding most. Evenness of the messages: 1 spreads them evenly, 0 sends all to one. Numbers "
            "are places on the board; letters have none."
        ),
        traces=[
            dashboards.points(
                x=[line.coverage.value for line in lines],
                y=[line.fixation.value for line in lines],
                name="",
                colour=dashboards.SELLER,
                symbol="square",
                x_intervals=[line.coverage for line in lines],
                y_intervals=[line.fixation for line in lines],
                text=[places[line.agent] for line in lines],
                hovertext=[names[line.agent].title for line in lines],
                mode="markers+text",
                textposition="top center",
                hovertemplate="%{hovertext}<extra></extra>",
                cliponaxis=False,
            )
        ],
        columns=(
            _("agent"),
            _("coverage"),
            _("fixation"),
            _("evenness"),
            _("sold to the highest value"),
            _("pairs as in the best matching"),
        ),
        rows=[
            (
                _numbered(board, line, names),
                estimated(line.coverage),
                estimated(line.fixation),
                decimals(line.entropy),
                estimated(line.top_buyer),
                estimated(line.match_accuracy),
            )
            for line in lines
        ],
        x=dashboards.share_axis(_("coverage")),
        y=dashboards.share_axis(_("fixation")),
    )


def _places(board: Board) -> dict[int, str]:
    """The marks of agents in crowded plots: the place on the board, a letter for those without one."""
    ranked = [line.agent for line in board.lines if line.has_place]
    rest = [line.agent for line in board.lines if not line.has_place]
    letters = [chr(ord("a") + place % 26) * (1 + place // 26) for place in range(len(rest))]
    return {agent: str(place) for place, agent in enumerate(ranked, start=1)} | dict(zip(rest, letters, strict=True))


def _numbered(board: Board, line: Line, names: Sequence[Name]) -> str:
    return f"{_places(board)[line.agent]}. {names[line.agent].title}"


def steps(line: Line) -> int:
    """Offers up to which enough games got."""
    return max(1, sum(games >= LEAST_AT_A_STEP for games in line.path_games))


def _ranked(board: Board) -> list[Line]:
    """Lines in the order of the board, those with comparable games first."""
    return [line for line in board.lines if line.games >= min(PROVISIONAL, board.games)]


def _in_order(board: Board, agents: set[int]) -> list[int]:
    """Agents in the order of the board; those that are on it only as counterparts come last."""
    ranked = [line.agent for line in board.lines if line.agent in agents]
    return ranked + sorted(agents - set(ranked))


def _value(meeting: Any) -> float | None:
    return None if meeting is None else meeting.seller_share.value
