"""Nobody is left at a dead end: pages of requests that went wrong, and lists with nothing in them."""

import re
from pathlib import Path

import pytest
from django.conf import settings
from django.contrib.auth.models import AnonymousUser, Permission, User
from django.http import Http404
from django.test import Client

from negotiation_site import errors, throttle
from tests.addresses import addresses
from tests.markets.tabs import browser, faults

pytestmark = pytest.mark.django_db

ERROR = re.compile(r'<div class="error-page">(.*?)</div>', re.S)
EMPTY = re.compile(r'<div class="empty">(.*?)</div>', re.S)


def error_page(response) -> str:
    html = response.content.decode()
    assert faults(html) == []
    found = ERROR.search(html)
    assert found is not None
    assert str(response.status_code) in found[1]
    assert 'class="button' in found[1]
    assert 'href="/help/"' in found[1]
    return found[1]


def test_an_address_that_leads_nowhere_says_what_was_looked_for_and_where_games_are() -> None:
    room = error_page(browser().get("/rooms/never-existed/"))
    assert "There is no such room, or you do not sit in it." in room
    assert 'href="/history/"' in room
    assert "Resolver404" not in error_page(browser().get("/nothing/here/"))


def test_a_row_that_is_not_there_names_no_table(rf) -> None:
    request = rf.get("/")
    request.user = AnonymousUser()
    response = errors.not_found(request, Http404("No Participation matches the given query."))
    assert "Participation" not in error_page(response)


def test_a_request_that_cannot_be_read_changes_nothing_and_says_so() -> None:
    assert "Nothing was changed" in error_page(browser().get("/", headers={"host": "attacker.example"}))


def test_what_is_too_large_has_a_page_of_its_own(settings) -> None:
    settings.DATA_UPLOAD_MAX_MEMORY_SIZE = 10
    response = browser().post("/account/sign-in/", {"username": "x" * 50})
    assert response.status_code == 413
    assert "too much at once" in error_page(response)


def test_what_is_not_open_says_for_whom_it_is_and_who_can_open_it() -> None:
    member = Client()
    member.force_login(User.objects.create_user("member"), backend="django.contrib.auth.backends.ModelBackend")
    page = error_page(member.get("/corpora/"))
    assert "for the staff and researchers of this server" in page
    assert "Whoever runs this site" in page
    assert "/account/sign-in/" not in page


def test_too_much_at_once_says_when_to_try_again(rf) -> None:
    request = rf.post("/markets/x/play/")
    request.resolver_match = None
    request.user = AnonymousUser()
    page = error_page(throttle.refusal(request, seconds=7))
    assert "7 seconds" in page


def test_the_page_of_our_own_failures_needs_neither_database_nor_tags() -> None:
    text = (Path(settings.BASE_DIR) / "templates" / "500.html").read_text(encoding="utf-8")
    assert "{%" not in text
    assert "{{" not in text
    assert re.findall(r'href="(/[\w/]*)"', text) == ["/", "/history/"]


def test_every_empty_list_leads_on() -> None:
    trainer = User.objects.create_user("trainer", is_staff=True, is_superuser=True)
    trainer.user_permissions.add(Permission.objects.get(codename="train_agents"))
    client = Client()
    client.force_login(trainer, backend="django.contrib.auth.backends.ModelBackend")
    dead, seen = [], 0
    for address in addresses():
        if address.parameters:
            continue
        response = client.get(address.written({}))
        if response.status_code != 200 or "html" not in response.get("Content-Type", ""):
            continue
        for inside in EMPTY.findall(response.content.decode()):
            seen += 1
            if not re.search(r"<(a|form|button)\b", inside):
                dead.append(f"{address.name}: {re.sub('<[^>]+>', ' ', inside).strip()}")
    assert dead == []
    assert seen > 8
