"""Markets for tests in the browser, made in the running site's own database.

Values and costs are mostly the same in every game (a value of $100, a cost of $40), so that a test knows what a deal is
worth. Not listed, so that the market list stays what a visitor of the starter world sees.
"""

from django.contrib.auth.models import Group, User
from django.core.management import call_command

from markets.apps import RESEARCHERS
from markets.models import Market
from markets.setup import MarketSpec, create_market
from tests.browser.people import PASSWORD

VALUE, COST = "constant:100", "constant:40"

MARKETS = (
    # The agent named first fills the seat; tests may choose another.
    MarketSpec(slug="pair", family="bilateral", values=VALUE, cost=COST, turns=6, seller_agent="hardliner"),
    MarketSpec(slug="apart", family="bilateral", values="constant:30", cost=COST, turns=6, buyer_agents="threshold"),
    # Far above any coordinate or count: a private value that shows up anywhere is found.
    MarketSpec(slug="sealed", family="bilateral", values="uniform:2000:3000", cost="uniform:1000:1900", turns=6),
    MarketSpec(
        slug="crowd",
        family="multi_buyer",
        values=VALUE,
        cost=COST,
        buyers=3,
        turns=8,
        seller_agent="falling-ladder",
        buyer_agents="hardliner",
    ),
    MarketSpec(
        slug="shelf",
        family="catalogue",
        values=VALUE,
        cost=COST,
        buyers=3,
        products=3,
        turns=12,
        seller_agent="greedy",
        buyer_agents="threshold",
    ),
    MarketSpec(
        slug="floor", family="bilateral", mechanism="event_driven", values=VALUE, cost=COST, seller_agent="hardliner"
    ),
    MarketSpec(slug="hasty", family="bilateral", values=VALUE, cost=COST, turns=6, seller_agent="hardliner"),
)
WAITS_S = {"hasty": 4}
"""Seconds until an agent takes a seat that nobody came for; two minutes elsewhere."""


RESEARCHER = "researcher"
"""User name of somebody who may build markets."""
STAFF = "staff"
"""User name of somebody who may do everything."""

MEETINGS = (
    ("demo-bilateral", ("linear", "conceder"), ("linear", "boulware")),
    ("demo-multi-buyer", ("falling-ladder", "chase-highest-bid"), ("linear",)),
)
"""Market, and the agents that meet in `play`, as sellers and as buyers."""


def make() -> None:
    """Define the markets and who builds them. Run in the lab's environment: `manage.py shell -c`."""
    User.objects.create_superuser(STAFF, password=PASSWORD)
    User.objects.create_user(RESEARCHER, password=PASSWORD).groups.add(Group.objects.get(name=RESEARCHERS))
    for spec in MARKETS:
        market = create_market(MarketSpec(**(vars(spec) | {"unit": "money", "listed": False})))
        Market.objects.filter(pk=market.pk).update(fill_wait_s=WAITS_S.get(spec.slug, 120))


def play(episodes: int = 30) -> None:
    """Have agents meet and keep the games. Run as `make` is."""
    for market, sellers, buyers in MEETINGS:
        for seller in sellers:
            for buyer in buyers:
                call_command(
                    "simulate", market=market, seller=seller, buyers=buyer, episodes=episodes, seed=1, store=True
                )
