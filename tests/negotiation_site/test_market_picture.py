"""What a market page draws comes from the public odds alone, and says what it is out of."""

import json
import re

import pytest
from django.test import Client

from markets import services
from markets.engine.priors import LowestSpec, UniformSpec
from markets.engine.scenarios import decode_recipe, sample
from markets.models import Market
from negotiation_site import market_picture
from tests.markets import rooms

pytestmark = pytest.mark.django_db


def picture(client: Client, market: Market) -> tuple[str, dict[str, dict]]:
    body = client.get(f"/markets/{market.slug}/").content.decode()
    found = re.findall(r'<script id="(market-[\w-]+)-data" type="application/json">(.*?)</script>', body, flags=re.S)
    return body, {name: json.loads(figure) for name, figure in found}


@pytest.mark.parametrize("family", ["bilateral", "multi_buyer", "catalogue"])
def test_a_market_shows_supply_demand_and_what_there_is_to_gain(client: Client, family: str):
    body, drawn = picture(client, rooms.market(family))
    assert list(drawn) == ["market-supply-demand", "market-gains"]
    assert body.count("<table") == 2
    shares = drawn["market-gains"]["data"][0]["y"]
    assert sum(shares) == pytest.approx(1.0)
    assert re.search(r"Trade can gain in \d+ of 200 games drawn", drawn["market-gains"]["layout"]["title"]["text"])


def test_a_market_where_nothing_can_be_gained_says_so(client: Client):
    _body, drawn = picture(client, rooms.market(slug="dry", values="uniform:10:20", cost="uniform:30:40"))
    assert drawn["market-gains"]["layout"]["title"]["text"] == "In none of the games drawn could trade gain."
    assert drawn["market-gains"]["data"][0]["y"][0] == 1.0


def test_the_picture_of_a_version_is_drawn_once(client: Client, monkeypatch):
    market = rooms.market()
    picture(client, market)
    monkeypatch.setattr(services, "market_pool", None)
    assert market_picture.charts(market)


def test_costs_come_from_the_public_prior_and_are_never_looked_up():
    market = rooms.market()
    recipe = decode_recipe(market.recipe)
    secret = type(recipe)(
        **{name: getattr(recipe, name) for name in recipe.__struct_fields__}
        | {"cost_spec": LowestSpec(), "cost_prior": UniformSpec(low=10.0, high=90.0)}
    )
    public = market_picture.in_public(secret)
    assert public.cost_spec == UniformSpec(low=10.0, high=90.0)
    assert sample(public, (), 1).seller_values_cents != ()


def test_a_picture_under_an_error_would_break_the_policy_and_is_left_out(client: Client):
    market = rooms.market()
    response = client.post(f"/markets/{market.slug}/play/", {"seat": "nobody"})
    assert response.status_code == 400
    assert "data-chart" not in response.content.decode()
    assert "unsafe-inline" not in response["Content-Security-Policy"]


def test_how_agents_do_here_is_one_step_away(client: Client):
    market = rooms.market()
    body, _drawn = picture(client, market)
    assert f'href="/leaderboard/?market={market.slug}"' in body
