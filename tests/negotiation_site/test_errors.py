"""A request that went wrong gets our page, not Django's, and never a private detail."""

from collections.abc import Iterator

import pytest
from django.test import Client, override_settings

OUR_PAGES = {
    "400.html": "ours 400",
    "403.html": "ours 403 {{ exception }}",
    "404.html": "ours 404",
    "500.html": "ours 500",
}


@pytest.fixture(autouse=True)
def our_pages() -> Iterator[None]:
    loader = ("django.template.loaders.locmem.Loader", OUR_PAGES)
    engine = {"BACKEND": "django.template.backends.django.DjangoTemplates", "OPTIONS": {"loaders": [loader]}}
    with override_settings(TEMPLATES=[engine]):
        yield


def test_an_unknown_address_shows_our_page(client: Client) -> None:
    response = client.get("/no/such/page")
    assert (response.status_code, response.content) == (404, b"ours 404")


def test_a_foreign_host_name_shows_our_page(client: Client) -> None:
    response = client.get("/healthz", headers={"host": "attacker.example"})
    assert (response.status_code, response.content) == (400, b"ours 400")


def test_a_broken_page_shows_our_page(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> bool:
        raise RuntimeError("the buyer's value is 8400")

    monkeypatch.setattr("negotiation_site.health.database_answers", broken)
    response = Client(raise_request_exception=False).get("/readyz")
    assert (response.status_code, response.content) == (500, b"ours 500")


def test_an_old_form_is_explained_and_changes_nothing() -> None:
    response = Client(enforce_csrf_checks=True).post("/i18n/setlang/", {"language": "en"})
    assert response.status_code == 403
    assert "ours 403 This form was too old" in response.content.decode()
