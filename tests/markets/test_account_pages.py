"""Pages of accounts: a stranger gets nothing, a session is one's own, and a way back stays on this host."""

import pytest
from django.contrib.auth.models import User
from django.test import Client
from django.urls import reverse

from markets import accounts, identity
from markets.engine.protocol import SELLER
from markets.models import Participant, Seat
from tests.markets import rooms
from tests.markets.engine.factories import B1, LEAVE, accept, bilateral, offer
from tests.markets.rooms import Game, staged
from tests.markets.tabs import browser, faults, session_of

pytestmark = pytest.mark.django_db

PASSWORD = "three green lamps"
PRIVATE = ["account", "account-games", "change-password", "delete-account"]


def page(client: Client, name: str, *, status: int = 200, **query: str) -> str:
    response = client.get(reverse(name), query)
    assert response.status_code == status
    html = response.content.decode()
    assert faults(html) == []
    return html


def fields(username: str = "ada", **more: str) -> dict[str, str]:
    return {"username": username, "password1": PASSWORD, "password2": PASSWORD, **more}


def signed_up(client: Client, username: str = "ada", **more: str) -> User:
    response = client.post(reverse("sign-up"), fields(username, **more))
    assert response.status_code == 302
    return User.objects.get(username=username)


def sign_in(client: Client, username: str = "ada", password: str = PASSWORD, **more: str):
    return client.post(reverse("sign-in"), {"username": username, "password": password, **more})


def who(client: Client) -> Participant | None:
    return identity.participant_of(client.session)


@pytest.fixture
def game() -> Game:
    """Two people agreed."""
    game = staged(bilateral(), people=(B1, SELLER))
    game.act(B1, offer(6_000, talk="Sixty."))
    game.act(SELLER, accept(1))
    return game


def room_of(game: Game) -> str:
    return f"/rooms/{game.room.public_id}/"


# --- Signing up -------------------------------------------------------------------------------------


def test_signing_up_carries_the_games_of_the_browser_along(game):
    client = browser(game.people[B1])
    html = page(client, "sign-up")
    assert "Bring along the 1 game" in html
    assert game.people[B1].pseudonym in html
    signed_up(client, carry="on")
    assert who(client) == game.people[B1]
    assert client.get(room_of(game)).status_code == 200
    assert room_of(game) in client.get("/history/").content.decode()


def test_somebody_elses_games_stay_behind_when_the_box_is_unticked(game):
    client = browser(game.people[B1])
    signed_up(client)
    assert who(client) is None
    assert client.get(room_of(game)).status_code == 404
    client.post(reverse("sign-out"))
    assert who(client) == game.people[B1]
    assert client.get(room_of(game)).status_code == 200


def test_a_player_with_nothing_behind_them_is_not_asked_about_games():
    assert "Bring along" not in page(browser(), "sign-up")


@pytest.mark.parametrize(
    ("typed", "sentence"),
    [
        ({"username": ""}, "This field is required"),
        ({"username": "a b<c>"}, "Enter a valid username"),
        ({"username": "ADA"}, "already exists"),
        ({"username": "x" * 151}, "at most 150"),
        ({"password2": "something else"}, "match"),
        ({"password1": "12345678", "password2": "12345678"}, "entirely numeric"),
        ({"email": "nobody"}, "valid email"),
    ],
    ids=["empty", "letters", "taken", "long", "twice", "weak", "email"],
)
def test_what_cannot_be_an_account_is_told_and_what_was_typed_stays(typed, sentence):
    User.objects.create_user("ada")
    client = browser()
    response = client.post(reverse("sign-up"), fields("grace") | typed)
    html = response.content.decode()
    assert response.status_code == 400
    assert sentence in html
    assert faults(html) == []
    assert PASSWORD not in html
    if "username" not in typed:
        assert 'value="grace"' in html
    assert User.objects.count() == 1
    assert "_auth_user_id" not in client.session


def test_a_limit_on_accounts_is_told(monkeypatch):
    monkeypatch.setattr(accounts, "SIGN_UPS_AN_HOUR", 0)
    response = browser().post(reverse("sign-up"), fields())
    assert response.status_code == 429
    assert "Try again in an hour" in response.content.decode()
    assert not User.objects.exists()


def test_who_is_signed_in_has_no_need_to_sign_up(game):
    client = browser(game.people[B1])
    signed_up(client, carry="on")
    assert client.get(reverse("sign-up")).url == reverse("history")
    assert client.post(reverse("sign-up"), fields("grace")).url == reverse("history")
    assert User.objects.count() == 1


# --- Signing in and out -----------------------------------------------------------------------------


def test_a_session_gets_another_key_when_it_is_signed_in(game):
    client = browser(game.people[B1])
    before = client.session.session_key
    signed_up(client, carry="on")
    after = client.session.session_key
    assert after != before
    assert identity.participant_of(identity.stored_session(before)) is None
    client.post(reverse("sign-out"))
    assert identity.participant_of(identity.stored_session(after)) is None
    sign_in(client)
    assert client.session.session_key not in (before, after)


def test_the_games_are_there_on_a_second_browser_and_gone_from_the_first_after_signing_out(game):
    first, second = browser(game.people[B1]), browser()
    signed_up(first, carry="on")
    assert sign_in(second).url == reverse("history")
    assert second.get(room_of(game)).status_code == 200
    first.post(reverse("sign-out"))
    assert who(first) is None
    assert first.get(room_of(game)).status_code == 404
    assert second.get(room_of(game)).status_code == 200


def test_a_second_browser_with_games_of_its_own_is_asked_and_brings_them(game):
    first, second = browser(), browser(game.people[B1])
    signed_up(first)
    own = identity.new_participant(account=User.objects.get())
    response = sign_in(second, next="/markets/")
    assert response.url == "/account/games/?next=%2Fmarkets%2F"
    html = page(second, "account-games", next="/markets/")
    assert "1 game" in html
    assert game.people[B1].pseudonym in html
    assert second.get(room_of(game)).status_code == 404  # Not the account's yet.
    response = second.post(reverse("account-games"), {"choice": "bring", "next": "/markets/"})
    assert response.url == "/markets/"
    assert game.seat(B1).participant == own
    assert second.get(room_of(game)).status_code == 200
    assert first.get(room_of(game)).status_code == 200
    assert second.post(reverse("account-games"), {"choice": "bring"}).url == reverse("history")


def test_games_that_are_left_are_there_again_after_signing_out(game):
    signed_up(browser())
    client = browser(game.people[B1])
    sign_in(client)
    client.post(reverse("account-games"), {"choice": "leave"})
    assert game.seat(B1).participant == game.people[B1]
    assert "This browser has games of its own" in page(client, "account")
    client.post(reverse("sign-out"))
    assert who(client) == game.people[B1]


def test_nobody_gets_at_an_accounts_games_by_a_session_that_points_to_them(game):
    owner, eve = browser(game.people[B1]), browser()
    signed_up(owner, carry="on")
    thief = Client()
    thief.cookies["sessionid"] = session_of(game.people[B1]).session_key
    assert identity.participant_of(thief.session) is None
    assert thief.get(room_of(game)).status_code == 404
    signed_up(eve, "eve")
    session = eve.session
    session[identity.SESSION_KEY] = game.people[B1].pk
    session.save()
    assert who(eve) is None
    assert eve.get(reverse("account-games")).status_code == 302
    eve.post(reverse("account-games"), {"choice": "bring"})
    assert game.seat(B1).participant == game.people[B1]


def test_another_account_on_the_same_browser_sees_nothing_of_the_first(game):
    client = browser(game.people[B1])
    signed_up(client, carry="on")
    User.objects.create_user("grace", password=PASSWORD)
    client.post(reverse("sign-out"))
    sign_in(client, "grace")
    assert who(client) is None
    assert room_of(game) not in client.get("/history/").content.decode()
    # Also without signing out in between.
    other = browser(game.people[SELLER])
    signed_up(other, "third", carry="on")
    other.force_login(User.objects.get(username="grace"), backend="django.contrib.auth.backends.ModelBackend")
    assert who(other) is None


def test_who_is_signed_in_plays_as_the_accounts_player():
    client = browser()
    account = signed_up(client)
    rooms.market("bilateral", slug="bench")
    for _ in range(2):
        client.post("/markets/bench/play/", {"seat": "buyer"})
    assert Participant.objects.get().account == account
    assert Seat.objects.filter(participant__account=account).count() == 2


@pytest.mark.parametrize("name", ["sign-in", "sign-up"])
@pytest.mark.parametrize(
    "elsewhere",
    [
        "https://evil.example/",
        "//evil.example",
        "javascript:alert(1)",
        "/\\evil.example",
        "http:///evil",
        "history",
        "no.page",
    ],
)
def test_a_way_back_stays_on_this_host(name, elsewhere):
    User.objects.create_user("ada", password=PASSWORD)
    client = browser()
    page(client, name, next=elsewhere)
    typed = fields("grace") if name == "sign-up" else {"username": "ada", "password": PASSWORD}
    response = client.post(reverse(name), typed | {"next": elsewhere})
    assert response.url == reverse("history")


def test_a_way_back_that_is_no_address_leads_to_ones_games():
    client = browser()
    client.force_login(User.objects.create_user("ada"), backend="django.contrib.auth.backends.ModelBackend")
    assert client.get(reverse("account-games"), {"next": "multi_buyer"}).url == reverse("history")


@pytest.mark.parametrize("name", ["sign-in", "sign-up"])
def test_a_way_back_on_this_host_is_followed(name):
    User.objects.create_user("ada", password=PASSWORD)
    typed = fields("grace") if name == "sign-up" else {"username": "ada", "password": PASSWORD}
    assert browser().post(reverse(name), typed | {"next": "/lobby/?x=1"}).url == "/lobby/?x=1"


@pytest.mark.parametrize(
    "name", ["sign-up", "sign-in", "sign-out", "account-games", "change-password", "delete-account"]
)
def test_no_form_of_another_site_does_anything_here(name):
    User.objects.create_user("ada", password=PASSWORD)
    client = Client(enforce_csrf_checks=True)
    client.force_login(User.objects.get(), backend="django.contrib.auth.backends.ModelBackend")
    assert client.post(reverse(name), {"password": PASSWORD}).status_code == 403
    assert "_auth_user_id" in client.session
    assert User.objects.exists()


@pytest.mark.parametrize("name", PRIVATE)
def test_a_page_of_an_account_asks_strangers_to_sign_in(name):
    response = browser().get(reverse(name))
    assert response.url == f"/account/sign-in/?next={reverse(name)}"
    assert browser(rooms.person()).post(reverse(name), {}).status_code in (302, 405)


def test_signing_out_is_no_link():
    client = browser()
    signed_up(client)
    assert client.get(reverse("sign-out")).status_code == 405
    assert "_auth_user_id" in client.session


def test_a_wrong_password_is_told_and_after_ten_the_name_is_locked():
    User.objects.create_user("ada", password=PASSWORD)
    client = browser()
    response = sign_in(client, password="wrong")
    assert response.status_code == 400
    assert "Please enter a correct username and password" in response.content.decode()
    assert faults(response.content.decode()) == []
    for _ in range(9):
        response = sign_in(client, password="wrong")
    assert response.status_code == 429
    assert "Too many wrong passwords" in response.content.decode()
    assert sign_in(client).status_code == 429
    assert "_auth_user_id" not in client.session


def test_every_page_says_who_is_signed_in():
    client = browser()
    assert "Sign in" in page(client, "home")
    signed_up(client, "ada-lovelace")
    html = page(client, "home")
    assert "ada-lovelace" in html
    assert "ada-lovelace" not in page(browser(), "home")


# --- The account ------------------------------------------------------------------------------------


def test_the_account_page_says_what_others_see(game):
    client = browser(game.people[B1])
    signed_up(client, carry="on", email="ada@example.org")
    html = page(client, "account")
    assert game.people[B1].pseudonym in html
    assert "ada@example.org" in html
    assert "1 game" in html


def test_another_password_signs_every_other_browser_out(game):
    first, second = browser(game.people[B1]), browser()
    signed_up(first, carry="on")
    sign_in(second)
    page(first, "change-password")
    wrong = {"old_password": "no", "new_password1": "five red chairs", "new_password2": "five red chairs"}
    assert first.post(reverse("change-password"), wrong).status_code == 400
    assert who(second) == game.people[B1]
    response = first.post(reverse("change-password"), wrong | {"old_password": PASSWORD})
    assert response.url == reverse("account")
    assert who(first) == game.people[B1]
    assert who(second) is None
    assert second.get(room_of(game)).status_code == 404


def test_erasing_asks_for_the_password_and_then_forgets(game):
    client = browser(game.people[B1])
    signed_up(client, carry="on")
    page(client, "delete-account")
    response = client.post(reverse("delete-account"), {"password": "wrong"})
    assert response.status_code == 400
    assert "Nothing was erased" in response.content.decode()
    assert User.objects.exists()
    response = client.post(reverse("delete-account"), {"password": PASSWORD}, follow=True)
    assert "You are erased" in response.content.decode()
    assert not User.objects.exists()
    assert who(client) is None
    assert sign_in(client).status_code == 400
    html = browser(game.people[SELLER]).get(f"{room_of(game)}replay/").content.decode()
    assert "Sixty." not in html
    assert "$60.00" in html


def test_the_staff_has_no_button_to_erase_itself_with():
    client = browser()
    root = User.objects.create_superuser("root", password=PASSWORD)
    client.force_login(root, backend="django.contrib.auth.backends.ModelBackend")
    assert "Erase the account" not in page(client, "account")
    page(client, "delete-account")
    assert client.post(reverse("delete-account"), {"password": PASSWORD}).status_code == 400
    assert User.objects.exists()


def test_what_an_account_sends_is_never_kept_by_a_browser(game):
    client = browser(game.people[B1])
    for name in ("sign-up", "sign-in"):
        assert "no-store" in client.get(reverse(name)).headers["Cache-Control"]
    signed_up(client, carry="on")
    for name in PRIVATE:
        assert "no-store" in client.get(reverse(name)).headers["Cache-Control"]


def test_a_game_that_is_going_is_left_when_the_person_is_erased():
    game = staged(bilateral(), people=(B1, SELLER))
    client = browser(game.people[B1])
    signed_up(client, carry="on")
    client.post(reverse("delete-account"), {"password": PASSWORD})
    assert game.state.ended
    assert game.refusal(SELLER, LEAVE)
