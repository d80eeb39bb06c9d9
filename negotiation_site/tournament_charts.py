"""The plots of a finished tournament, each with its table. Titles are the question that a plot answers."""

from collections.abc import Sequence

from django.utils.translation import gettext as _

from agents import registry
from markets.engine.money import format_amount
from markets.engine.protocol import Role
from negotiation_site import dashboards
from negotiation_site.dashboards import Chart
from negotiation_site.leaderboard import tables
from negotiation_site.leaderboard.words import count, estimated, percent
from training.bootstrap import Estimate
from training.findings import Habits
from training.ratings import Rated, Ratings
from training.tournaments.results import Kept

FEW = 6
"""Lines that can be told apart in one plot."""


def title(slug: str) -> str:
    """An agent by its name; by its slug once it is no longer installed."""
    return {spec.slug: spec.title for spec in (*registry.all_specs(), *registry.entered_specs())}.get(slug, slug)


def roles_text(roles: Sequence[Role]) -> str:
    """What an agent does, in words."""
    if len(roles) > 1:
        return _("sells and buys")
    return _("sells only") if Role.SELLER in roles else _("buys only")


def of_tournament(kept: Kept, *, currency: str) -> tuple[Chart, ...]:
    """All plots that have something to show."""
    drawn = (
        shares(kept.ratings),
        meetings(kept.ratings),
        *(conceding(kept.findings.agents, role) for role in Role),
        *(tiers(kept.findings.agents, role, currency=currency) for role in Role),
    )
    return tuple(chart for chart in drawn if chart is not None)


def _interval(estimate: Estimate) -> dashboards.Interval:
    return estimate.value, estimate.low, estimate.high


def shares(rated: Ratings) -> Chart | None:
    """The headline with its intervals, groups apart."""
    agents = [agent for agent in rated.agents if agent.share.value is not None]
    if len(agents) < 2:
        return None
    groups: dict[tuple[Role, ...], list[Rated]] = {}
    for agent in agents:
        groups.setdefault(agent.roles, []).append(agent)
    looks = (
        (dashboards.BUYER, "circle"),
        (dashboards.SELLER, "square"),
        (dashboards.YOU, "diamond"),
    )
    labels = [title(agent.agent) for agent in agents]
    return dashboards.plot(
        "tournament-share",
        title=_("Who keeps most of what there is to share?"),
        caption=_("Surplus share with its interval"),
        note=_("Mean over both roles and all opponents, no deal counted as 0. Bars are 95 % intervals over scenarios."),
        traces=[
            dashboards.points(
                x=[agent.share.value for agent in members],
                y=[title(agent.agent) for agent in members],
                name=roles_text(roles),
                colour=colour,
                symbol=symbol,
                x_intervals=[_interval(agent.share) for agent in members],
                hovertemplate="%{y}: %{x:.1%}<extra></extra>",
            )
            for (roles, members), (colour, symbol) in zip(groups.items(), looks, strict=False)
        ],
        columns=(_("agent"), _("share with its interval"), _("games")),
        rows=[(label, _text(agent.share), count(agent.games)) for label, agent in zip(labels, agents, strict=True)],
        x=dashboards.share_axis(_("share of the surplus, no deal = 0")),
        y={"categoryorder": "array", "categoryarray": labels[::-1], "ticklen": 0},
        height=max(240, 34 * len(agents) + 130),
    )


def meetings(rated: Ratings) -> Chart | None:
    """Head to head: every seller against every buyer."""
    by_pair = {(met.seller, met.buyer): met for met in rated.head_to_head}
    order = {agent.agent: place for place, agent in enumerate(rated.agents)}
    sellers = sorted({met.seller for met in rated.head_to_head}, key=order.__getitem__)
    buyers = sorted({met.buyer for met in rated.head_to_head}, key=order.__getitem__)
    if not rated.scenarios_with_gains or len(by_pair) < 2:
        return None
    z = [[by_pair[seller, buyer].seller_share.value for buyer in buyers] for seller in sellers]
    return dashboards.plot(
        "tournament-meetings",
        title=_("Who gets how much from whom?"),
        caption=_("Seller's share of the surplus, sellers down, buyers across"),
        note=_("Over the %(count)s scenarios in which trade could gain, the same for all pairs. No deal counts as 0.")
        % {"count": count(rated.scenarios_with_gains)},
        traces=[
            dashboards.heat(
                x=[title(buyer) for buyer in buyers],
                y=[title(seller) for seller in sellers],
                z=z,
                text=[["" if share is None else f"{share * 100:.0f}" for share in row] for row in z],
            )
            | {"hovertemplate": _("%{y} sells to %{x}: %{z:.1%}") + "<extra></extra>"}
        ],
        columns=(_("seller"), _("buyer"), _("seller's share"), _("buyer's share"), _("deals"), _("games")),
        rows=[
            (
                title(seller),
                title(buyer),
                _text(met.seller_share),
                _text(met.buyer_share),
                percent(met.deal_rate.value),
                count(met.games),
            )
            for seller in sellers
            for buyer in buyers
            for met in (by_pair[seller, buyer],)
        ],
        x=dashboards.axis(_("buyer"), tickangle=-40, side="bottom"),
        y=dashboards.axis(_("seller, share in percent"), autorange="reversed"),
        height=max(320, 36 * len(sellers) + 170),
    )


def conceding(rows: Sequence[Habits], role: Role) -> Chart | None:
    """How much is given up against what is kept."""
    known = [row for row in rows if row.role is role and None not in (row.concession_rate.value, row.share.value)]
    if len(known) < 2:
        return None
    seller = role is Role.SELLER
    return dashboards.plot(
        f"tournament-conceding-{role.value}",
        title=_("Do sellers who give way fast keep less?") if seller else _("Do buyers who give way fast keep less?"),
        caption=_("Concession rate and share of every seller")
        if seller
        else _("Concession rate and share of every buyer"),
        note=_("Concession rate: mean step as a part of the way from the own opening to the own limit."),
        traces=[
            dashboards.points(
                x=[row.concession_rate.value for row in known],
                y=[row.share.value for row in known],
                name="",
                colour=dashboards.SELLER if seller else dashboards.BUYER,
                symbol="square" if seller else "circle",
                x_intervals=[_interval(row.concession_rate) for row in known],
                y_intervals=[_interval(row.share) for row in known],
                text=[title(row.agent) for row in known],
                mode="markers+text",
                textposition="top center",
                hovertemplate="%{text}: %{y:.1%}<extra></extra>",
                cliponaxis=False,
            )
        ],
        columns=(_("agent"), _("concession rate"), _("share"), _("deals")),
        rows=[(title(row.agent), _text(row.concession_rate), _text(row.share), _text(row.deal_rate)) for row in known],
        x=dashboards.share_axis(_("concession rate: part of the way in a step"), rangemode="tozero"),
        y=dashboards.share_axis(_("share of the surplus, no deal = 0")),
    )


def tiers(rows: Sequence[Habits], role: Role, *, currency: str) -> Chart | None:
    """Share by fifth of the own value."""
    known = [row for row in rows if row.role is role and len(row.tiers) > 1 and row.share_spread is not None]
    if not known:
        return None
    known.sort(key=lambda row: -(row.share.value or 0.0))
    labels = [
        _("%(low)s to %(high)s") % {"low": _whole(tier.low_cents, currency), "high": _whole(tier.high_cents, currency)}
        for tier in known[0].tiers
    ]
    seller = role is Role.SELLER
    return dashboards.plot(
        f"tournament-tiers-{role.value}",
        title=_("Do sellers do better with dear things?") if seller else _("Do buyers do better with dear things?"),
        caption=_("Share of the surplus by price tier"),
        note=_("Fifths of all seats by the seller's cost, the same for everybody.")
        if seller
        else _("Fifths of all seats by the buyer's value, the same for everybody."),
        traces=[
            dashboards.line(
                x=labels,
                y=[tier.share.value for tier in row.tiers],
                name=title(row.agent),
                series=place,
                intervals=[_interval(tier.share) for tier in row.tiers],
            )
            for place, row in enumerate(known[:FEW])
        ],
        columns=(_("agent"), *labels, _("spread"), _("deals, cheapest to dearest")),
        rows=[
            (
                title(row.agent),
                *(percent(tier.share.value) for tier in row.tiers),
                percent(row.share_spread),
                ", ".join(percent(tier.deal_rate.value, digits=0) or "–" for tier in row.tiers),
            )
            for row in known
        ],
        x=dashboards.axis(_("seller's cost") if seller else _("buyer's value")),
        y=dashboards.share_axis(_("share of the surplus, no deal = 0")),
    )


def worded(estimate: Estimate) -> tables.Estimate:
    """As the words of the leaderboards take it."""
    return tables.Estimate(estimate.value, estimate.low, estimate.high)


def _text(estimate: Estimate) -> str:
    return estimated(worded(estimate))


def _whole(cents: int, currency: str) -> str:
    """An amount without its cents, as an axis has room for it."""
    return format_amount(round(cents / 100) * 100, currency).removesuffix(".00")
