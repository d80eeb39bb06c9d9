"""The builder's pages: closed to everybody who may not build, nothing written before it is saved, nothing typed lost."""

import json
import re
from typing import Any

import pytest
from django.contrib.auth.models import Group, Permission, User
from django.core.management import CommandError, call_command
from django.test import Client
from django.urls import reverse

from markets import builder, services
from markets.apps import RESEARCHERS
from markets.engine.protocol import Role
from markets.models import Market, Room, RoomStatus
from negotiation_site.urls import urlpatterns
from tests.markets import rooms
from tests.markets.engine.factories import B1, LEAVE
from tests.markets.tabs import browser, faults

pytestmark = pytest.mark.django_db

MODEL_BACKEND = "django.contrib.auth.backends.ModelBackend"
FIELDS = {
    "name": "My fair",
    "slug": "my-fair",
    "family": "bilateral",
    "turns": "6",
    "opener": "seller",
    "catalogue": "",
    "products": "1",
    "stock": "1",
    "buyers": "1",
    "unit": "money",
    "values_kind": "uniform:LO:HI",
    "values:uniform:LO:HI:0": "20",
    "values:uniform:LO:HI:1": "120",
    "costs_kind": "constant:X",
    "costs:constant:X:0": "10",
    "rho": "0",
    "currency": "USD",
    "seller_agent": "linear",
    "buyer_agent": "linear",
    "listed": "on",
    "reveals": "on",
    "malformed_ends": "on",
    "openings": "on",
    "opening_low": "0.25",
    "opening_high": "0.3",
    "move_deadline_s": "600",
    "fill_wait_s": "120",
}


def signed_in(user: User) -> Client:
    client = browser()
    client.force_login(user, backend=MODEL_BACKEND)
    return client


@pytest.fixture
def researcher() -> User:
    user = User.objects.create_user("ada")
    user.groups.add(Group.objects.get(name=RESEARCHERS))
    return user


@pytest.fixture
def client(researcher) -> Client:
    return signed_in(researcher)


@pytest.fixture
def market() -> Market:
    return rooms.market("bilateral", slug="fair", summary="A fair.")


def page(client: Client, address: str, *, status: int = 200) -> str:
    response = client.get(address)
    assert response.status_code == status, (address, response.status_code)
    html = response.content.decode()
    assert faults(html) == [], address
    return html


def posted(client: Client, address: str, *, status: int = 302, **changes: Any):
    response = client.post(address, FIELDS | changes)
    assert response.status_code == status, response.content.decode()[:3_000]
    if status != 302:
        assert faults(response.content.decode()) == []
    return response


def stored() -> list[dict]:
    return list(Market.objects.order_by("pk").values())


ADDRESSES = {
    "list": ("get", "/builder/"),
    "new": ("get", "/builder/new/"),
    "new, sent": ("post", "/builder/new/"),
    "preview": ("post", "/builder/preview/"),
    "versions": ("get", "/builder/markets/fair/"),
    "version": ("get", "/builder/markets/fair/1/"),
    "change": ("get", "/builder/markets/fair/change/"),
    "change, sent": ("post", "/builder/markets/fair/change/"),
    "retire": ("post", "/builder/markets/fair/retire/"),
    "restore": ("post", "/builder/markets/fair/restore/"),
    "unknown": ("get", "/builder/markets/nowhere/"),
}


# --- Who may ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(("method", "address"), ADDRESSES.values(), ids=ADDRESSES)
def test_strangers_are_asked_to_sign_in_and_nothing_happens(market, method, address):
    before = stored()
    for client in (browser(), browser(rooms.person())):
        response = getattr(client, method)(address, FIELDS | {"based_on": "1"} if method == "post" else {})
        assert response.status_code == 302
        assert response.url.startswith("/account/sign-in/?next=/builder/")
    assert stored() == before


@pytest.mark.parametrize(("method", "address"), ADDRESSES.values(), ids=ADDRESSES)
def test_players_with_an_account_are_turned_away_and_nothing_happens(market, method, address):
    client, before = signed_in(User.objects.create_user("player")), stored()
    response = getattr(client, method)(address, FIELDS | {"based_on": "1"} if method == "post" else {})
    assert response.status_code == 403
    assert "Building markets is for researchers" in response.content.decode()
    assert stored() == before


def test_every_address_of_the_builder_is_among_those_that_are_guarded():
    names = {pattern.name for pattern in urlpatterns if getattr(pattern, "name", None)}
    ours = {name for name in names if name.startswith("builder")}
    assert len(ours) == 8
    reached = {reverse("builder"), reverse("builder-new"), reverse("builder-preview")} | {
        reverse(f"builder-{what}", args=["fair"]) for what in ("versions", "change", "retire", "restore")
    }
    reached.add(reverse("builder-version", args=["fair", 1]))
    assert reached <= {address for _method, address in ADDRESSES.values()}


def test_researchers_the_staff_and_whoever_has_the_permission_may_build(market, researcher):
    alone = User.objects.create_user("grace")
    alone.user_permissions.add(Permission.objects.get(codename="build_market"))
    for user in (researcher, alone, User.objects.create_user("staff", is_staff=True)):
        page(signed_in(user), "/builder/")
        assert "/builder/" in signed_in(user).get("/account/").content.decode()


def test_a_form_of_another_site_builds_nothing(market, researcher):
    client = Client(enforce_csrf_checks=True)
    client.force_login(researcher, backend=MODEL_BACKEND)
    before = stored()
    for method, address in ADDRESSES.values():
        if method == "post":
            assert client.post(address, FIELDS).status_code == 403
    assert stored() == before


# --- Looking ----------------------------------------------------------------------------------------


def test_the_starter_world_can_be_looked_at_version_by_version(client):
    call_command("seed_demo", "--bare", "--json")
    html = page(client, "/builder/")
    for market in Market.objects.all():
        assert f"/builder/markets/{market.slug}/" in html
    for slug in ("demo-bilateral", "demo-catalogue", "ladder-of-four"):
        page(client, f"/builder/markets/{slug}/")
        page(client, f"/builder/markets/{slug}/1/")
        page(client, f"/builder/markets/{slug}/change/")
        page(client, f"/builder/new/?from={slug}&version=1")


def test_an_empty_site_can_be_built_on(client):
    assert "There is no market yet" in page(client, "/builder/")
    page(client, "/builder/new/")


def test_a_market_or_version_that_is_not_there_is_nowhere(client, market):
    for address in ("/builder/markets/x/", "/builder/markets/fair/2/", "/builder/markets/x/change/"):
        page(client, address, status=404)
    assert client.get("/builder/new/?from=x").status_code == 404
    for address in ("retire", "restore"):
        assert client.post(f"/builder/markets/fair/{address}/", {"version": "9"}).status_code == 404
        assert client.post(f"/builder/markets/x/{address}/", {"version": "1"}).status_code == 404


# --- Preview ----------------------------------------------------------------------------------------


def test_the_preview_shows_draws_and_schedules_and_writes_nothing(client, market):
    before = stored()
    response = posted(client, "/builder/preview/", status=200)
    html = response.content.decode()
    figure = json.loads(re.search(r'id="chart-supply-demand-data"[^>]*>(.*?)</script>', html, re.S)[1])
    assert [trace["name"][:6] for trace in figure["data"][:2]] == ["demand", "supply"]
    assert html.count("<tr") >= 5
    assert "Games with a gain in them" in html
    assert "anything from $20.00 to $120.00" in html
    assert stored() == before
    assert not Room.objects.exists()


def test_the_preview_needs_no_name_and_says_what_is_wrong(client):
    posted(client, "/builder/preview/", status=200, name="", slug="")
    for changes, sentence in (
        ({"values:uniform:LO:HI:0": "900"}, "must be below"),
        ({"buyers": "3"}, "A bilateral market has one buyer"),
        ({"family": "multi_buyer", "buyers": "1"}, "Several buyers are two at least"),
        ({"turns": "x"}, "whole number"),
        ({"mechanism": "seller_turns"}, "alternating rounds"),
        ({"seller_agent": "oracle"}, "cannot sit in a market"),
        ({"seller_agent": "nobody"}, "nobody"),
        ({"family": "auction"}, "There is no family"),
        ({"catalogue": "nowhere"}, "There is no catalogue"),
    ):
        html = posted(client, "/builder/preview/", status=200, **changes).content.decode()
        assert "This cannot be drawn yet" in html, changes
        assert sentence in html, changes
    assert not Market.objects.exists()


def test_the_fields_that_follow_from_another_come_with_the_preview(client):
    call_command("seed_demo", "--bare", "--json")
    shown = {"shown_seats": "bilateral:1", "shown_goods": ""}
    same = posted(client, "/builder/preview/", status=200, **shown).content.decode()
    assert "hx-swap-oob" not in same
    several = {"family": "multi_buyer", "buyers": "3", **shown}
    html = posted(client, "/builder/preview/", status=200, **several).content.decode()
    assert html.count('name="buyer_agent"') == 3
    assert 'id="builder-seats" hx-swap-oob="true"' in html
    goods = {"catalogue": "starter", "unit": "list", "costs_kind": "lowest", "values_kind": "bands", **shown}
    html = posted(client, "/builder/preview/", status=200, **goods).content.decode()
    assert 'id="builder-goods" hx-swap-oob="true"' in html
    assert '<option value="cameras"' in html


def test_a_preview_shows_no_value_of_a_live_room(client):
    """Examples are drawn from seeds 1, 2, 3…; a room's seed is one of 2**63."""
    made = rooms.market("bilateral", slug="fair")
    room = services.open_room(market=made, host=rooms.person(), role=Role.SELLER, agents={B1: rooms.agent("linear")})
    assert json.loads(room.scenario)["seed"] > 10_000


# --- Saving -----------------------------------------------------------------------------------------


def test_a_market_is_saved_and_can_be_played_at_once(client, researcher):
    response = posted(client, "/builder/new/")
    assert response.url == "/builder/markets/my-fair/1/"
    html = page(client, response.url)
    assert "Version 1 is saved." in html
    made = Market.objects.get()
    assert (made.slug, made.version, made.created_by, made.is_listed) == ("my-fair", 1, researcher, True)
    assert made.summary == "One seller and one buyer over one product; 6 rounds."
    assert "My fair" in browser().get("/markets/").content.decode()
    assert browser().post("/markets/my-fair/play/", {"seat": "buyer"}).status_code == 302


def test_a_market_with_everything_set_is_saved_as_it_was_typed(client):
    call_command("seed_demo", "--bare", "--json")
    fields = FIELDS | {
        "family": "catalogue",
        "catalogue": "starter",
        "category": "cameras",
        "prices": "range",
        "price_from": "100",
        "price_to": "$2,000.00",
        "unit": "list",
        "values_kind": "lognormal:MEDIAN:SIGMA",
        "values:lognormal:MEDIAN:SIGMA:0": "0.9",
        "values:lognormal:MEDIAN:SIGMA:1": "0.2",
        "costs_kind": "lowest",
        "products": "2",
        "buyers": "4",
        "stock": "2",
        "turns": "9",
        "rho": "0.5",
        "regulated": ["seller", "buyer"],
        "seller_agent": "greedy",
        "buyer_agent": ["linear", "conceder", "linear", "conceder"],
        "told_values": "lognormal:1:0.5",
        "told_costs": "uniform:0:1",
    }
    del fields["listed"], fields["reveals"]
    response = client.post("/builder/new/", fields)
    assert response.status_code == 302, response.content.decode()
    made = Market.objects.get(slug="my-fair")
    recipe = json.loads(made.recipe)
    assert (made.category, made.price_from_cents, made.price_to_cents) == ("cameras", 10_000, 200_000)
    assert (made.buyer_agents, made.is_listed, made.reveals_values) == ("linear,conceder", False, False)
    assert (recipe["buyers"], recipe["products"], recipe["stock"], recipe["rho"]) == (4, 2, 2, 0.5)
    assert recipe["regulated"] == ["seller", "buyer"]
    assert recipe["cost_prior"] == {"type": "uniform", "low": 0.0, "high": 1.0}
    assert recipe["value_prior"] == {"type": "lognormal", "median": 1.0, "sigma": 0.5}
    assert {product.category for product in services.market_pool(made)} == {"cameras"}
    assert "My fair" not in browser().get("/markets/").content.decode()


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"values:uniform:LO:HI:0": "abc"}, "where a number such as 0.8 belongs"),
        ({"turns": "100"}, "The number of turns must be 1 to 64"),
        ({"slug": "fair"}, "There is a market at the address fair already"),
        ({"slug": "a fair"}, "letters, digits, hyphens"),
        ({"name": "x" * 300}, "at most 200 characters"),
        ({"buyer_agent": "greedy"}, "does not play buyer"),
        ({"rho": "1"}, "below 1"),
    ],
    ids=lambda value: "-".join(value) if isinstance(value, dict) else "",
)
def test_bad_input_changes_nothing_and_keeps_what_was_typed(client, market, changes, sentence):
    before = stored()
    response = posted(client, "/builder/new/", status=400, summary="My own <words>.", **changes)
    html = response.content.decode()
    assert sentence in html.replace("&#x27;", "'")
    assert 'value="My own &lt;words&gt;."' in html
    for name, value in changes.items():
        if name != "buyer_agent":
            assert f'name="{name}"' in html
            assert f'value="{value}"' in html
    assert stored() == before


def test_a_change_is_saved_as_the_next_version_and_shown_in_the_history(client, market, researcher):
    address = "/builder/markets/fair/change/"
    html = page(client, address)
    assert "Save as version 2" in html
    before = stored()
    response = posted(client, address, based_on="1", note="A longer one.", turns="9")
    assert response.url == "/builder/markets/fair/2/"
    assert stored()[:1] == before
    second = Market.objects.get(version=2)
    assert (second.slug, second.note, second.created_by) == ("fair", "A longer one.", researcher)
    html = page(client, "/builder/markets/fair/")
    assert "A longer one." in html
    assert "Length: 6 rounds → 9 rounds" in html
    assert "replaced by a newer one" in html


@pytest.mark.parametrize("based_on", ["0", "2", "", "x", "9" * 30])
def test_a_change_of_a_version_that_is_not_the_newest_is_told(client, market, based_on):
    before = stored()
    response = posted(client, "/builder/markets/fair/change/", status=400, based_on=based_on, turns="9")
    assert "saved in the meantime" in response.content.decode()
    assert stored() == before


@pytest.mark.parametrize(
    "word", ["\x00", "🍋\u202e", "<script>", "x" * 100_000, "١٢"], ids=["nul", "signs", "tag", "long", "digits"]
)
def test_strange_words_in_any_field_are_answered_with_a_page(client, market, word):
    for name in FIELDS:
        html = posted(client, "/builder/preview/", status=200, **{name: word}).content.decode()
        assert "<script>" not in html.replace('<script id="chart', "")
    assert client.post("/builder/new/", dict.fromkeys(FIELDS, word)).status_code == (413 if len(word) > 1_000 else 400)
    assert client.get("/builder/new/", {"from": word[:50], "version": word[:50]}).status_code == (
        200 if word == "\x00" else 404
    )
    assert Market.objects.count() == 1


def test_an_agent_with_a_way_of_talking_stays_on_its_seat(client, market):
    Market.objects.update(seller_agent="linear+begging")
    html = page(client, "/builder/markets/fair/change/")
    assert '<option value="linear" selected>' in html
    assert '<option value="begging" selected>' in html
    assert "not known" not in html


def test_every_buyer_may_talk_in_a_way_of_its_own(client, market):
    fields = FIELDS | {
        "name": "Loud fair",
        "slug": "loud-fair",
        "family": "multi_buyer",
        "buyers": "2",
        "buyer_agent": ["linear", "conceder"],
        "buyer_persona": ["insulting", ""],
        "seller_persona": "terse",
    }
    response = client.post("/builder/new/", fields)
    assert response.status_code == 302, response.content.decode()
    made = Market.objects.get(slug="loud-fair")
    assert (made.seller_agent, made.buyer_agents) == ("linear+terse", "linear+insulting,conceder")
    html = client.post("/builder/preview/", fields | {"seller_persona": "shouting"}).content.decode()
    assert "shouting" in html
    assert client.post("/builder/new/", fields | {"name": "X", "seller_persona": "shouting"}).status_code == 400


def test_the_address_of_a_market_does_not_change_with_a_version(client, market):
    posted(client, "/builder/markets/fair/change/", based_on="1", slug="elsewhere", turns="9")
    assert set(Market.objects.values_list("slug", flat=True)) == {"fair"}


def test_a_copy_is_a_form_and_no_market(client, market):
    html = page(client, "/builder/new/?from=fair")
    assert 'value="Copy of Fair"' in html
    assert Market.objects.count() == 1


def test_without_scripts_a_button_shows_what_would_be_drawn(client):
    html = posted(client, "/builder/new/", status=200, look="1").content.decode()
    assert "Games with a gain in them" in html
    assert 'value="my-fair"' in html
    assert not Market.objects.exists()


# --- Retiring ---------------------------------------------------------------------------------------


def test_a_retired_market_is_listed_nowhere_its_address_says_so_and_games_go_on(client, market):
    player = browser()
    room_page = player.post("/markets/fair/play/", {"seat": "buyer"}).url
    client.post("/builder/markets/fair/retire/")
    stranger = browser()
    assert "/markets/fair/" not in stranger.get("/markets/").content.decode()
    html = page(stranger, "/markets/fair/")
    assert "This market is retired" in html
    assert "Take the seat" not in html
    response = stranger.post("/markets/fair/play/", {"seat": "buyer"})
    assert response.status_code == 400
    assert "This market is retired" in response.content.decode()
    assert Room.objects.count() == 1
    page(player, room_page)
    room = Room.objects.get()
    seat = room.seats.get(party=B1)
    services.submit_action(room=room, seat=seat, action=LEAVE, client_move_id="bye")
    room.refresh_from_db()
    assert room.status == RoomStatus.ENDED
    page(player, room_page)
    assert player.post(f"{room_page}rematch/").status_code == 400
    assert "Retired: nobody opens it anew" in page(client, "/builder/markets/fair/")
    assert "retired" in page(client, "/builder/")
    client.post("/builder/markets/fair/restore/", {"version": "1"})
    assert "Take the seat" in page(stranger, "/markets/fair/")


def test_a_retired_version_leaves_the_one_before_in_play(client, market):
    posted(client, "/builder/markets/fair/change/", based_on="1", turns="9")
    client.post("/builder/markets/fair/retire/", {"version": "2"})
    assert "6 rounds" in browser().get("/markets/fair/").content.decode()
    client.post("/builder/markets/fair/restore/", {"version": "2"})
    assert "9 rounds" in browser().get("/markets/fair/").content.decode()


def test_commands_take_the_newest_version_that_is_not_retired(client, market, capsys):
    posted(client, "/builder/markets/fair/change/", based_on="1", turns="9")

    def listed() -> list[tuple[str, int]]:
        call_command("list_markets", "--json")
        return [(row["slug"], row["version"]) for row in json.loads(capsys.readouterr().out)]

    def simulated() -> int:
        call_command(
            "simulate", "--market", "fair", "--seller", "linear", "--buyers", "linear", "--episodes", "2",
            "--seed", "1", "--store", "--json",
        )  # fmt: skip
        capsys.readouterr()
        return Market.objects.filter(episodes__isnull=False).order_by("-episodes__pk").first().version

    assert listed() == [("fair", 2)]
    assert simulated() == 2
    builder.retire(Market.objects.get(version=2))
    assert listed() == [("fair", 1)]
    assert simulated() == 1
    builder.retire_all("fair")
    assert listed() == []
    with pytest.raises(CommandError, match="The market 'fair' is retired"):
        simulated()
